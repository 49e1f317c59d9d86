//! The hidden folder in which a clone is made.
//!
//! It gets the name of the new folder at the end. What a killed program leaves there is removed by the next try.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The folder, locked against other clones to the same place. It's removed on drop.
pub(crate) struct ClonePlace {
    folder: PathBuf,
    lock: Option<File>,
}

impl ClonePlace {
    /// Creates it beside the new folder, and removes what an earlier try has left.
    pub(crate) fn create(target: &Path) -> io::Result<ClonePlace> {
        let (Some(above), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it isn't the name of a folder"));
        };
        fs::create_dir_all(above)?;
        let folder = above.join(format!(".{}.tracebook-clone", name.to_string_lossy()));
        match fs::create_dir(&folder) {
            // Not through a link to another folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(&folder) => {}
            done => done?,
        }
        let lock = File::options().write(true).create(true).truncate(false).open(folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another program clones to it")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let place = ClonePlace { folder, lock: Some(lock) };
        match fs::remove_dir_all(place.files()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(place),
        }
    }

    /// Returns the folder that Git creates.
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Gives the clone its name, unless there's something with that name now.
    pub(crate) fn finish(self, target: &Path) -> io::Result<()> {
        rename_folder(&self.files(), target)
    }
}

impl Drop for ClonePlace {
    fn drop(&mut self) {
        drop(self.lock.take()); // Windows removes no open file
        let _ = fs::remove_dir_all(&self.folder); // what is left is removed by the next try
    }
}

/// Renames a folder unless the target exists.
fn rename_folder(from: &Path, target: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
            // Some file systems don't know it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            done => return Ok(done?),
        }
    }
    match target.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, target),
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
