//! A copy of the search index elsewhere, which answers queries if the workspace's disk is full or read-only.

use crate::fs::file_rights::create_private_folder;
use rand::Rng;
use std::path::{Path, PathBuf};

/// Folder of the copy, which is removed on drop.
#[derive(Debug)]
pub(super) struct IndexCopy(PathBuf);

impl IndexCopy {
    /// Copies the index to a place with space; an unreadable one is rebuilt there. `None` if there's no space anywhere.
    pub(super) fn make_copy(index: &Path) -> Option<IndexCopy> {
        let places = [std::env::temp_dir(), PathBuf::from("/dev/shm"), PathBuf::from("/var/tmp")];
        places.into_iter().find_map(|place| {
            let folder = place.join(format!("tracebook-index-{:016x}", rand::rng().random::<u64>()));
            // Notes are private.
            create_private_folder(&folder).ok()?;
            let copy = IndexCopy(folder);
            copy_files(index, &copy.0).ok().map(|()| copy)
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for IndexCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what is left is in the system's folder for such
    }
}

/// Copies files and folders, except links. Fails if the destination can't take all of them.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in walkdir::WalkDir::new(from).follow_root_links(true).min_depth(1).into_iter().filter_map(Result::ok) {
        let Ok(relative) = entry.path().strip_prefix(from) else { continue };
        let to = to.join(relative);
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&to)?;
        } else if entry.file_type().is_file() {
            // The copy of a file that can't be written is written to.
            std::io::copy(&mut std::fs::File::open(entry.path())?, &mut std::fs::File::create(&to)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_a_file_that_cannot_be_written_can_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (index, copy) = (folder.path().join("index"), folder.path().join("copy"));
        for made in [&index, &copy] {
            std::fs::create_dir(made).expect("made");
        }
        let file = index.join("meta.lock");
        std::fs::write(&file, "x").expect("written");
        let mut rights = std::fs::metadata(&file).expect("it's there").permissions();
        rights.set_readonly(true);
        std::fs::set_permissions(&file, rights).expect("set");
        copy_files(&index, &copy).expect("copied");
        let copied = copy.join("meta.lock");
        assert_eq!(std::fs::read(&copied).expect("read"), b"x");
        assert!(!std::fs::metadata(&copied).expect("it's there").permissions().readonly());
    }
}
