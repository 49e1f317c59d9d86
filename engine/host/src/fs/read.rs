//! Reads a user's plain files, and tells editable text from other bytes, with the reason.

use crate::fs::confined_dir::ConfinedPath;
use anyhow::anyhow;
use engine::event::{FileStamp, FileText};
use std::fs::Metadata;
use std::io::Read;
use std::time::UNIX_EPOCH;
use store::{BlobHash, disk::io_reason};

/// Maximum size of a note in bytes; a larger Markdown file is kept as an attachment.
pub(crate) const MAX_NOTE_BYTES: u64 = 16 << 20;
/// Name prefix of our own temporary files, next to the files that they will replace.
pub(crate) const TEMPORARY_PREFIX: &str = ".tracebook-";

/// Content found at a file's path.
pub(crate) enum FoundFile {
    /// A text file.
    Text(FileText),
    /// Bytes that aren't a note's, with the reason.
    Other { stamp: FileStamp, why: String },
    /// There is no file.
    Missing,
}

/// Returns the modification time in nanoseconds since 1970.
pub(crate) fn mtime_nanos(meta: &Metadata) -> i64 {
    let Ok(modified) = meta.modified() else { return 0 };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// Reads a note's file.
///
/// # Errors
/// Returns a message for the user: no permission, not a regular file, a symlink that leads out of the volume, a failing
/// disk.
pub(crate) fn read_note_file(path: &ConfinedPath) -> anyhow::Result<FoundFile> {
    let fail = |error: std::io::Error| anyhow!("the file can't be read ({}): {}", io_reason(&error), path.display());
    let (file, meta) = match path.open() {
        Ok(opened) => opened,
        Err(refused) if refused.is_missing() => return Ok(FoundFile::Missing),
        Err(refused) => return Err(refused.into()),
    };
    let stamp = |hash| FileStamp { size: meta.len(), mtime: mtime_nanos(&meta), hash };
    if meta.len() > MAX_NOTE_BYTES {
        let why = format!("it has more than {} MiB, too much to edit as a note", MAX_NOTE_BYTES >> 20);
        return Ok(FoundFile::Other { stamp: stamp(BlobHash([0; 32])), why });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.take(MAX_NOTE_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    let stamp = FileStamp { size: bytes.len() as u64, ..stamp(BlobHash::of(&bytes)) };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(FoundFile::Text(FileText { text, stamp, commits: Vec::new() })),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let why = format!("it is not UTF-8 text (at byte {at}), so it is kept as it is");
            Ok(FoundFile::Other { stamp, why })
        }
    }
}
