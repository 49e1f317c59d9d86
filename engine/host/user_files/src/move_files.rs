//! Moves a user's files to other names: all of them or none, and never over another file. What was moved before a crash
//! is recognized as done. This module doesn't decide which file goes where.

use crate::atomic_write::{open_regular_file, rename_new};
use crate::confined_dir::{ConfinedFolder, ConfinedPath, OpenRefusal};
use anyhow::{anyhow, bail};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use store::disk::{io_reason, sync_folder};

/// Moves files, then removes the folders in `emptied` that are empty.
///
/// # Errors
/// Returns a message if a file can't be moved; all files are then at their old places.
pub fn move_files(moves: &[(ConfinedPath, ConfinedPath)], emptied: &[ConfinedPath]) -> anyhow::Result<()> {
    for (done, (from, to)) in moves.iter().enumerate() {
        if let Err(why) = move_file(from, to) {
            for (from, to) in moves[..done].iter().rev() {
                move_file(to, from).map_err(|back| anyhow!("{why}; and going back failed: {back}"))?;
            }
            return Err(why);
        }
    }
    emptied.iter().for_each(remove_empty_folder);
    Ok(())
}

/// Deletes a file permanently, and its folder if that is empty then.
///
/// # Errors
/// Returns a message if the file can't be deleted; it's still there then.
pub fn delete_file(file: &ConfinedPath) -> anyhow::Result<()> {
    let fail = |why: &dyn std::fmt::Display| anyhow!("it cannot be deleted ({}): {}", io_reason(why), file.display());
    match file.open_parent(false) {
        Ok((folder, name)) if folder.has_entry(&name) => folder.remove_file(&name).map_err(|why| fail(&why))?,
        Ok(_) => {} // done before a crash
        Err(refused) if refused.is_missing() => {}
        Err(refused) => return Err(fail(&refused)),
    }
    if let Some((folder, _)) = file.path.rsplit_once('/') {
        remove_empty_folder(&ConfinedPath::new(&file.root, folder));
    }
    Ok(())
}

fn remove_empty_folder(folder: &ConfinedPath) {
    if let Ok((above, name)) = folder.open_parent(false) {
        above.remove_empty_folder(&name);
    }
}

/// An open folder and the name of a file in it, while the file is moved.
struct RelocatedPath {
    folder: ConfinedFolder,
    name: OsString,
}

impl RelocatedPath {
    fn of(file: &ConfinedPath, make: bool) -> Result<RelocatedPath, OpenRefusal> {
        file.open_parent(make).map(|(folder, name)| RelocatedPath { folder, name })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn exists(&self) -> bool {
        self.folder.has_entry(&self.name)
    }
}

fn move_file(from: &ConfinedPath, to: &ConfinedPath) -> anyhow::Result<()> {
    let say = |what: &str, error: &dyn std::fmt::Display, file: &ConfinedPath| {
        anyhow!("{what} ({}): {}", io_reason(error), file.display())
    };
    let spot = |file: &ConfinedPath| match RelocatedPath::of(file, false) {
        Ok(spot) => Ok(Some(spot)),
        Err(refused) if refused.is_missing() => Ok(None),
        Err(refused) => Err(say("it cannot be moved", &refused, file)),
    };
    let (at_from, at_to) = (spot(from)?, spot(to)?);
    let there = |spot: &Option<RelocatedPath>| spot.as_ref().is_some_and(RelocatedPath::exists);
    let is_same = match (&at_from, &at_to) {
        (Some(from), Some(to)) => is_same(&from.path(), &to.path()),
        _ => false,
    };
    match (there(&at_from), there(&at_to)) {
        (false, true) => return Ok(()), // done before a crash
        (true, true) if !is_same => {
            bail!("something has that name already, so nothing was moved: {}", to.display());
        }
        _ => {}
    }
    let Some(at_from) = at_from.filter(RelocatedPath::exists) else {
        bail!("it is gone, so it was not moved: {}", from.display());
    };
    let at_to = RelocatedPath::of(to, true).map_err(|refused| say("the folder cannot be made", &refused, to))?;
    let moved = match rename_new(&at_from.path(), &at_to.path()) {
        // The new name differs only in case, and the file system ignores case.
        Err(_) if is_same => std::fs::rename(at_from.path(), at_to.path()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => move_across_file_systems(&at_from, &at_to),
        moved => moved,
    };
    moved.map_err(|error| say("it cannot be moved", &error, from))?;
    for (spot, file) in [(&at_to, to), (&at_from, from)] {
        sync_folder(&spot.folder.stable_path())
            .map_err(|error| say("the move may not be on disk yet", &error, file))?;
    }
    Ok(())
}

/// Moves a file to another file system: copies it completely under a temporary name, then removes the old one.
fn move_across_file_systems(from: &RelocatedPath, to: &RelocatedPath) -> io::Result<()> {
    let temporary = to.folder.stable_path().join(format!(".tracebook-{:016x}.tmp", std::process::id()));
    let copy = || {
        let mut source = open_regular_file(&from.path())?;
        let mut target = std::fs::File::options().write(true).create_new(true).open(&temporary)?;
        io::copy(&mut source, &mut target)?;
        target.set_permissions(source.metadata()?.permissions())?;
        target.sync_all()?;
        rename_new(&temporary, &to.path())
    };
    let copied = copy();
    if copied.is_err() {
        // Report the first error; `fsck` removes a leftover file.
        let _ = std::fs::remove_file(&temporary);
        return copied;
    }
    std::fs::remove_file(from.path())
}

fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = |path| std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino())).ok();
        inode(one).is_some() && inode(one) == inode(other)
    }
    #[cfg(not(unix))]
    {
        std::fs::canonicalize(one).ok() == std::fs::canonicalize(other).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn all_or_none_and_never_over_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        let at = |name: &str| ConfinedPath::new(dir.path(), name);
        for name in ["a", "b", "taken"] {
            fs::write(path(name), name).expect("written");
        }
        let moves = [(at("a"), at("x/y/a")), (at("b"), at("taken"))];
        assert!(move_files(&moves, &[]).expect_err("refused").to_string().contains("taken"));
        assert_eq!(fs::read(path("a")).expect("it is back"), b"a");
        let moves = [(at("a"), at("x/y/a")), (at("b"), at("x/b"))];
        move_files(&moves[..1], &[]).expect("moved");
        move_files(&moves, &[]).expect("the first was done before");
        assert_eq!(
            (fs::read(path("x/y/a")).expect("there"), fs::read(path("x/b")).expect("there")),
            (b"a".into(), b"b".into())
        );
        let back = [(at("x/y/a"), at("a")), (at("x/b"), at("b"))];
        move_files(&back, &[at("x/y"), at("x")]).expect("moved back");
        assert!(!path("x").exists());
        assert!(move_files(&[(at("no"), at("nowhere"))], &[]).expect_err("refused").to_string().contains("gone"));
        assert!(move_files(&[(at("a"), at("../a"))], &[]).is_err());
        let spot = |name: &str| RelocatedPath::of(&at(name), false).expect("a place");
        move_across_file_systems(&spot("a"), &spot("c")).expect("carried");
        assert_eq!((fs::read(path("c")).expect("there"), path("a").exists()), (b"a".to_vec(), false));
        delete_file(&at("c")).expect("removed");
        delete_file(&at("c")).expect("removed before");
        assert!(!path("c").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_became_a_symlink_is_not_moved_through() {
        let dir = tempfile::tempdir().expect("a folder");
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(&root).expect("made");
        fs::create_dir_all(&outside).expect("made");
        fs::write(outside.join("n.md"), "theirs").expect("written");
        fs::write(root.join("n.md"), "ours").expect("written");
        std::os::unix::fs::symlink(&outside, root.join("sub")).expect("linked");
        let at = |name: &str| ConfinedPath::new(&root, name);
        for (from, to) in [("sub/n.md", "in.md"), ("n.md", "sub/in.md"), ("n.md", "sub/deep/in.md")] {
            let why = move_files(&[(at(from), at(to))], &[]).expect_err("refused");
            assert!(why.to_string().contains("leads out of the volume"), "{why}");
        }
        assert!(delete_file(&at("sub/n.md")).expect_err("refused").to_string().contains("leads out of the volume"));
        assert_eq!(fs::read_dir(&outside).expect("listed").count(), 1);
        assert_eq!(fs::read(outside.join("n.md")).expect("there"), b"theirs");
    }
}
