//! Lists in the workspace that only the user can read: one JSON file each, changed by one process at a time.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Maximum size of a file in bytes.
const MAX_LIST_BYTES: u64 = 1 << 20;

/// Why a list can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum PrivateListError {
    /// The file can't be read or written.
    #[error("{path} can't be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file isn't one of ours.
    #[error("{path} can't be read ({source}); move it away to start with an empty one")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> PrivateListError {
    let path = path.to_owned();
    |source| PrivateListError::Io { path, source }
}

/// A list in a file of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct PrivateList<T> {
    path: PathBuf,
    lock_path: PathBuf,
    new_path: PathBuf,
    rows: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> PrivateList<T> {
    /// Returns the list with this name. The file is made with the first row.
    pub(crate) fn new(folder: &Path, name: &str) -> PrivateList<T> {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        PrivateList { path: file("json"), lock_path: file("lock"), new_path: file("json.new"), rows: PhantomData }
    }

    /// Reads all rows.
    pub(crate) fn read(&self) -> Result<Vec<T>, PrivateListError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error(&self.path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_LIST_BYTES).read_to_end(&mut bytes).map_err(io_error(&self.path))?;
        serde_json::from_slice(&bytes).map_err(|source| PrivateListError::Damaged { path: self.path.clone(), source })
    }

    /// Changes the rows while no other process can, and writes them durably if `change` succeeds.
    pub(crate) fn change<R, E: From<PrivateListError>>(
        &self,
        change: impl FnOnce(&mut Vec<T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let lock = private_options().open(&self.lock_path).map_err(io_error(&self.lock_path))?;
        lock.lock().map_err(io_error(&self.lock_path))?;
        let mut rows = self.read()?;
        let result = change(&mut rows)?;
        let bytes = serde_json::to_vec_pretty(&rows)
            .map_err(|source| PrivateListError::Damaged { path: self.path.clone(), source })?;
        let written = private_options()
            .truncate(true)
            .open(&self.new_path)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&self.new_path, &self.path));
        written.map_err(io_error(&self.path))?;
        Ok(result)
    }
}

/// Returns options that open a file for writing which only the user can read.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}
