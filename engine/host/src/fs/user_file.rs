//! Files of the user outside of volumes that are changed as a whole, such as another program's configuration.

use crate::fs::atomic_write::{self, ReplaceOutcome};
use crate::fs::copy;
use anyhow::{anyhow, bail};
use std::io;
use std::path::{Path, PathBuf};
use store::{BlobHash, disk::io_reason};

/// Returns the path behind symbolic links, as of configuration that is kept in another folder.
fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads a file of at most `most` bytes; `None` if there is none.
///
/// # Errors
/// Returns a message if the file is longer, or can't be read.
pub fn read_user_file(path: &Path, most: u64) -> anyhow::Result<Option<Vec<u8>>> {
    let path = resolved(path);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.len() > most => bail!("{} has more than {most} bytes", path.display()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("{} can't be read: {}", path.display(), io_reason(&error)),
    }
    match atomic_write::read_regular_file(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => Err(anyhow!("{} can't be read: {}", path.display(), io_reason(&error))),
    }
}

/// Replaces a file durably if it still has the bytes `old` (`None`: if there is none). Its mode stays.
///
/// # Errors
/// Returns a message if another program has changed the file, or it can't be written; it then has its old bytes.
pub fn replace_user_file(path: &Path, old: Option<&[u8]>, new: &[u8]) -> anyhow::Result<()> {
    let path = resolved(path);
    if let Some(parent) = path.parent() {
        copy::create_folder(parent)?;
    }
    match atomic_write::replace_file(&path, old.map(BlobHash::of), new)? {
        ReplaceOutcome::Done { .. } => Ok(()),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            Err(anyhow!("another program changed {} just now; try again", path.display()))
        }
    }
}
