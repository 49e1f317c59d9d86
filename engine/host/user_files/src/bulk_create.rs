//! Creates many plain files at once, as thousands may arrive from other devices. All are written, the disk is synced
//! once, all get their names, and it's synced once more; one by one, each file would need two syncs. As with
//! [`replace_file`], each file has all of its bytes or, after any crash, none.

use crate::atomic_write::{self, ReplaceOutcome, TemporaryFile, replace_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use store::disk::{DiskError, sync_folder};

/// Minimum number of files for a bulk sync. Below it, files are created one by one, because syncing a whole file system
/// costs more.
const MIN_BULK_FILES: usize = 4;

/// Progress of one file.
enum CreateStage {
    /// The bytes are in a temporary file.
    Made { temporary: TemporaryFile, file: File },
    /// The file is finished, or failed.
    Done(Result<ReplaceOutcome, DiskError>),
}

/// Creates these files with their bytes. An existing file is left alone, as by [`replace_file`] when none is expected.
pub fn create_files(files: &[(&Path, &[u8])]) -> Vec<Result<ReplaceOutcome, DiskError>> {
    match files.len() < MIN_BULK_FILES {
        true => files.iter().map(|(path, bytes)| replace_file(path, None, bytes)).collect(),
        false => create(files, sync_file_systems, || ()),
    }
}

/// Implements [`create_files`]. For tests, `meanwhile` runs before the files get their names.
fn create(
    files: &[(&Path, &[u8])],
    flush: impl Fn(&mut dyn Iterator<Item = &File>) -> bool,
    meanwhile: impl FnOnce(),
) -> Vec<Result<ReplaceOutcome, DiskError>> {
    let mut stages: Vec<CreateStage> = files.iter().map(|(path, bytes)| write_temporary(path, bytes)).collect();
    if !flush(&mut temporary_files(&stages)) {
        for (stage, (path, _)) in stages.iter_mut().zip(files) {
            if let CreateStage::Made { file, .. } = stage
                && let Err(error) = file.sync_all()
            {
                *stage = CreateStage::Done(Err(DiskError::from_io("writing", path, &error)));
            }
        }
    }
    meanwhile();
    let mut folders = BTreeSet::new();
    for (stage, (path, _)) in stages.iter_mut().zip(files) {
        let CreateStage::Made { temporary, .. } = stage else { continue };
        match temporary.persist_noclobber(path) {
            Ok(()) => _ = folders.insert(parent_folder(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let theirs = atomic_write::read_regular_file(path).map(|theirs| ReplaceOutcome::Raced { theirs });
                *stage = CreateStage::Done(theirs.map_err(|error| DiskError::from_io("writing", path, &error)));
            }
            Err(error) => *stage = CreateStage::Done(Err(DiskError::from_io("writing", path, &error))),
        }
    }
    // The names are durable once their folders are.
    let mut lost: BTreeMap<&Path, io::Error> = BTreeMap::new();
    if folders.len() < MIN_BULK_FILES || !flush(&mut temporary_files(&stages)) {
        lost.extend(folders.into_iter().filter_map(|folder| Some((folder, sync_folder(folder).err()?))));
    }
    let end = |(stage, (path, _)): (CreateStage, &(&Path, &[u8]))| match stage {
        CreateStage::Done(done) => done,
        CreateStage::Made { temporary, .. } => match lost.get(parent_folder(path)) {
            Some(error) => Err(DiskError::from_io("writing", path, error)),
            None => Ok(ReplaceOutcome::Done { modified: temporary.modified }),
        },
    };
    stages.into_iter().zip(files).map(end).collect()
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn write_temporary(path: &Path, bytes: &[u8]) -> CreateStage {
    let is_new = match std::fs::symlink_metadata(path) {
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_new || !parent_folder(path).is_dir() {
        return CreateStage::Done(replace_file(path, None, bytes));
    }
    match TemporaryFile::write_unsynced(parent_folder(path), bytes, None) {
        Ok((temporary, file)) => CreateStage::Made { temporary, file },
        Err(error) => CreateStage::Done(Err(DiskError::from_io("writing", path, &error))),
    }
}

fn temporary_files(stages: &[CreateStage]) -> impl Iterator<Item = &File> {
    stages.iter().filter_map(|stage| match stage {
        CreateStage::Made { file, .. } => Some(file),
        CreateStage::Done(_) => None,
    })
}

/// Syncs the file systems of these files to disk. `false`: that isn't possible, or it failed.
#[cfg(target_os = "linux")]
fn sync_file_systems(files: &mut dyn Iterator<Item = &File>) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs. These are known to wait for the disk itself; network or user-space file
    /// systems may not.
    const SYNCFS_FILE_SYSTEMS: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];
    let mut known = BTreeSet::new();
    for file in files {
        let Ok(about) = file.metadata() else { return false };
        if known.insert(about.dev()) {
            let system = rustix::fs::fstatfs(file).map(|system| u64::try_from(system.f_type));
            let is_whole = matches!(system, Ok(Ok(kind)) if SYNCFS_FILE_SYSTEMS.contains(&kind));
            if !is_whole || rustix::fs::syncfs(file).is_err() {
                return false;
            }
        }
    }
    true
}

#[cfg(not(target_os = "linux"))]
fn sync_file_systems(_files: &mut dyn Iterator<Item = &File>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic_write::modified_nanos;
    use std::cell::Cell;
    use std::fs;
    use std::path::PathBuf;

    fn paths(dir: &Path) -> Vec<PathBuf> {
        (0..12)
            .map(|number| {
                let folder = dir.join(format!("folder {}", number % 5));
                fs::create_dir_all(&folder).expect("made");
                folder.join(format!("{number}.md"))
            })
            .collect()
    }

    fn files(dir: &Path) -> usize {
        let folders = fs::read_dir(dir).expect("listed").map(|folder| folder.expect("listed").path());
        folders.map(|folder| fs::read_dir(folder).expect("listed").count()).sum()
    }

    #[test]
    fn many_are_made_and_what_is_there_is_left_alone() {
        for together in [false, true] {
            let dir = tempfile::tempdir().expect("a folder");
            let paths = paths(dir.path());
            fs::write(&paths[3], "theirs").expect("written");
            fs::write(&paths[4], "text 4").expect("written");
            fs::create_dir(&paths[6]).expect("made");
            let texts: Vec<String> = (0..paths.len()).map(|number| format!("text {number}")).collect();
            let list: Vec<(&Path, &[u8])> =
                paths.iter().zip(&texts).map(|(path, text)| (path.as_path(), text.as_bytes())).collect();
            let gone = dir.path().join("no folder").join("a.md");
            let list = [list, vec![(gone.as_path(), &b"x"[..])]].concat();
            let flushes = Cell::new(0);
            let flush = |files: &mut dyn Iterator<Item = &File>| {
                flushes.set(flushes.get() + 1);
                together && super::sync_file_systems(files)
            };
            // Another program takes a name while the other files wait for theirs.
            let done = create(&list, flush, || fs::write(&paths[8], "between").expect("written"));
            assert_eq!(done.len(), list.len());
            for (number, done) in done.iter().enumerate() {
                let raced =
                    |theirs: &[u8]| matches!(done, Ok(ReplaceOutcome::Raced { theirs: found }) if found == theirs);
                match number {
                    3 => assert!(raced(b"theirs"), "{done:?}"),
                    8 => assert!(raced(b"between"), "{done:?}"),
                    6 | 12 => assert!(done.is_err(), "{number}: {done:?}"),
                    _ => {
                        let modified = modified_nanos(&fs::metadata(&paths[number]).expect("there"));
                        assert_eq!(done.as_ref().expect("made"), &ReplaceOutcome::Done { modified });
                        assert_eq!(fs::read_to_string(&paths[number]).expect("read"), texts[number]);
                    }
                }
            }
            assert_eq!((files(dir.path()), flushes.get()), (12, 2), "nothing is left over");
        }
    }

    #[test]
    fn few_are_made_too() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.md");
        assert!(create_files(&[]).is_empty());
        assert!(matches!(create_files(&[(&path, b"one")])[..], [Ok(ReplaceOutcome::Done { .. })]));
        assert!(
            matches!(&create_files(&[(&path, b"two")])[..], [Ok(ReplaceOutcome::Raced { theirs })] if theirs == b"one")
        );
    }
}
