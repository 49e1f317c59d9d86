//! A rotating log file, bounded in size and number of files. Several processes may write to it.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the newest file. Older ones are called `tracebook.1.log` and so on.
const LOG_FILE: &str = "tracebook.log";
/// Size in bytes at which a file is rotated.
const MAX_LOG_FILE_BYTES: u64 = 2 << 20;
/// Number of older files kept besides the newest one.
const MAX_OLD_LOG_FILES: u32 = 3;

/// Opens a file for appending. A new file is readable only by its owner. A symlink isn't followed.
pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not an ordinary file")),
    }
}

/// Appends whole lines to the newest file, and rotates it when it's full.
pub(super) struct RotatingLogFile {
    folder: PathBuf,
    max_bytes: u64,
    open: Option<File>,
}

impl RotatingLogFile {
    pub(super) fn new(folder: &Path) -> RotatingLogFile {
        RotatingLogFile { folder: folder.to_owned(), max_bytes: MAX_LOG_FILE_BYTES, open: None }
    }

    /// Appends a line. After an error, the file is opened again for the next line.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.open.take() {
            Some(file) if self.is_newest(&file) => file,
            _ => open_private_file(&self.path(0))?,
        };
        let length = file.metadata()?.len();
        if length > 0 && length + line.len() as u64 > self.max_bytes {
            self.set_aside(&file)?;
            file = open_private_file(&self.path(0))?;
        }
        file.write_all(line)?;
        self.open = Some(file);
        Ok(())
    }

    fn path(&self, number: u32) -> PathBuf {
        match number {
            0 => self.folder.join(LOG_FILE),
            number => self.folder.join(format!("tracebook.{number}.log")),
        }
    }

    /// Returns whether this file is still at the path. Another process may have rotated it.
    fn is_newest(&self, file: &File) -> bool {
        let at_path = std::fs::symlink_metadata(self.path(0));
        matches!((file.metadata(), at_path), (Ok(open), Ok(at_path)) if is_same_file(&open, &at_path))
    }

    /// Renames the full file. A lock on it admits one process at a time; the next one finds a different file at the
    /// path.
    fn set_aside(&self, full: &File) -> io::Result<()> {
        if full.try_lock().is_err() || !self.is_newest(full) {
            return Ok(());
        }
        for number in (0..MAX_OLD_LOG_FILES).rev() {
            match std::fs::rename(self.path(number), self.path(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    one.created().ok() == other.created().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_in(folder: &Path) -> RotatingLogFile {
        RotatingLogFile { folder: folder.to_owned(), max_bytes: 100, open: None }
    }

    fn files_in(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("entry").path()).collect();
        files.sort();
        files
    }

    #[test]
    fn size_and_number_of_files_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = log_in(folder.path());
        for number in 0..100 {
            log.append(format!("line {number:04}\n").as_bytes()).expect("written");
        }
        let files = files_in(folder.path());
        assert_eq!(files.len(), 4, "{files:?}");
        assert!(files.iter().all(|file| file.metadata().expect("a file").len() <= 100));
        let newest = std::fs::read_to_string(folder.path().join(LOG_FILE)).expect("read");
        assert!(newest.ends_with("line 0099\n"), "{newest}");
    }

    #[test]
    fn two_processes_set_a_full_file_aside_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut one, mut other) = (log_in(folder.path()), log_in(folder.path()));
        let mut written = String::new();
        for number in 0..24 {
            let line = format!("line {number:04}\n");
            let log = if number % 3 == 0 { &mut other } else { &mut one };
            log.append(line.as_bytes()).expect("written");
            written += &line;
        }
        let files = files_in(folder.path());
        let mut lines: Vec<String> = files
            .iter()
            .flat_map(|file| {
                std::fs::read_to_string(file).expect("read").lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        lines.sort();
        assert_eq!(lines, written.lines().collect::<Vec<_>>(), "no line is lost or torn");
        assert_eq!(files.len(), 3, "{files:?}");
    }

    #[test]
    fn a_folder_that_comes_back_is_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("not there");
        let mut log = RotatingLogFile::new(&missing);
        assert!(log.append(b"line\n").is_err());
        std::fs::create_dir(&missing).expect("made");
        log.append(b"later\n").expect("written");
        assert_eq!(std::fs::read_to_string(missing.join(LOG_FILE)).expect("read"), "later\n");
    }
}
