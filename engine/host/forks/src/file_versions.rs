//! Reads the versions of a file: what a fork was made from, the fork's, and the project's.

use crate::fork_error::ForkError;
use crate::fork_record::{BaseFile, ForkRecord, ForkStore};
use host::fs::confined_dir::{ConfinedFolder, OpenRefusal};
use host::fs::file_rights::is_executable;
use std::io::Read;
use store::BlobHash;

/// Maximum size in bytes of a file that is adopted.
pub(crate) const MAX_ADOPTED_FILE_BYTES: u64 = 64 << 20;
/// Maximum size in bytes of a text that's compared by lines.
pub(crate) const MAX_MERGED_TEXT_BYTES: u64 = 4 << 20;

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileVersion {
    /// There is no file.
    Missing,
    /// A text.
    Text(String),
    /// Other bytes.
    Bytes(Vec<u8>),
    /// Only the hash is known.
    Hash(BlobHash),
}

impl FileVersion {
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> FileVersion {
        if bytes.len() as u64 > MAX_MERGED_TEXT_BYTES || bytes.contains(&0) {
            return FileVersion::Bytes(bytes);
        }
        String::from_utf8(bytes).map_or_else(|error| FileVersion::Bytes(error.into_bytes()), FileVersion::Text)
    }

    pub(crate) fn hash(&self) -> Option<BlobHash> {
        match self {
            FileVersion::Missing => None,
            FileVersion::Text(text) => Some(BlobHash::of(text.as_bytes())),
            FileVersion::Bytes(bytes) => Some(BlobHash::of(bytes)),
            FileVersion::Hash(hash) => Some(*hash),
        }
    }

    /// Returns the text; nothing for a missing file, and `None` if it isn't text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            FileVersion::Missing => Some(""),
            FileVersion::Text(text) => Some(text),
            FileVersion::Bytes(_) | FileVersion::Hash(_) => None,
        }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            FileVersion::Text(text) => Some(text.as_bytes()),
            FileVersion::Bytes(bytes) => Some(bytes),
            FileVersion::Missing | FileVersion::Hash(_) => None,
        }
    }
}

/// Why a file can't be read to adopt it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VersionReadError {
    #[error("it is a link or no ordinary file")]
    NoFile,
    #[error("it has more than {} MB; copy it by hand", MAX_ADOPTED_FILE_BYTES / 1_000_000)]
    TooLarge,
    #[error(transparent)]
    Refused(#[from] OpenRefusal),
    #[error("it can't be read ({0})")]
    Unreadable(#[from] std::io::Error),
}

/// Reads a file of a folder, and whether it can be executed.
pub(crate) fn read_version(folder: &ConfinedFolder, path: &str) -> Result<(FileVersion, bool), VersionReadError> {
    let entry = match folder.open_parent(path, false) {
        Ok((above, name)) => above.metadata(&name),
        Err(refused) if refused.is_missing() => return Ok((FileVersion::Missing, false)),
        Err(refused) => return Err(refused.into()),
    };
    match entry {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((FileVersion::Missing, false)),
        Err(error) => return Err(error.into()),
        Ok(meta) if !meta.is_file() => return Err(VersionReadError::NoFile),
        Ok(_) => {}
    }
    let (file, meta) = folder.open_regular_file(path)?;
    if meta.len() > MAX_ADOPTED_FILE_BYTES {
        return Err(VersionReadError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.take(MAX_ADOPTED_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((FileVersion::of_bytes(bytes), is_executable(&meta)))
}

impl ForkStore {
    /// Returns the version of a file that the fork was made from.
    pub(crate) fn base_version(&self, name: &str, base: Option<&BaseFile>) -> FileVersion {
        let Some(base) = base else { return FileVersion::Missing };
        let kept = base.is_kept.then(|| {
            host::fs::copy::read(&self.base_text_path(name, base.hash), MAX_MERGED_TEXT_BYTES)
                .filter(|bytes| BlobHash::of(bytes) == base.hash)
        });
        // What a lost disk cache has damaged is as unknown as a picture.
        kept.flatten().map_or(FileVersion::Hash(base.hash), FileVersion::of_bytes)
    }

    /// Opens the folder with the copy of the project.
    pub(crate) fn open_files(&self, fork: &ForkRecord) -> Result<ConfinedFolder, ForkError> {
        ConfinedFolder::open_chosen(&self.files_folder(fork)).map_err(|refused| {
            let why = if refused.is_missing() { "is gone".to_owned() } else { format!("can't be opened ({refused})") };
            ForkError::Refused(format!(
                "the folder of the fork {0} {why}; `tracebook forks discard {0}` removes what is left of it",
                fork.name
            ))
        })
    }
}
