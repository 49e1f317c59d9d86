//! The audit log: one line of JSON in the workspace for each HTTP request, answered or refused.

use crate::private_list::private_options;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use utoipa::ToSchema;

const AUDIT_FILE: &str = "access-log.jsonl";
const OLDER_AUDIT_FILE: &str = "access-log.old.jsonl";
/// Beyond this size the log becomes the older one, which replaces the one before.
const MAX_AUDIT_BYTES: u64 = 8 << 20;
/// Maximum number of bytes that are kept of a request's path.
const MAX_PATH_BYTES: usize = 1_000;
/// Number of bytes at the end of the log in which the newest requests are looked for.
const READ_BYTES: u64 = 256 << 10;

/// A request in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// When it was answered, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Id of the token; missing if none was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The method.
    pub(crate) method: String,
    /// The path, as it was sent.
    pub(crate) path: String,
    /// The status that was answered.
    pub(crate) status: u16,
    /// How long it took, in milliseconds.
    pub(crate) millis: u64,
}

/// The audit log of a workspace.
pub(crate) struct AuditLog {
    folder: PathBuf,
    /// The open file and its length.
    file: Mutex<Option<(File, u64)>>,
}

impl AuditLog {
    pub(crate) fn new(workspace: &Path) -> AuditLog {
        AuditLog { folder: workspace.to_owned(), file: Mutex::new(None) }
    }

    fn open(&self) -> std::io::Result<(File, u64)> {
        let mut file = private_options().read(true).open(self.folder.join(AUDIT_FILE))?;
        let length = file.seek(SeekFrom::End(0))?;
        Ok((file, length))
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Returns an error if it can't be written; the request then isn't answered.
    pub(crate) fn record(&self, mut entry: AuditEntry) -> std::io::Result<()> {
        entry.path.truncate(entry.path.floor_char_boundary(MAX_PATH_BYTES));
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, mut length) = match open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        if length > MAX_AUDIT_BYTES {
            drop(file);
            std::fs::rename(self.folder.join(AUDIT_FILE), self.folder.join(OLDER_AUDIT_FILE))?;
            (file, length) = self.open()?;
        }
        file.write_all(&line)?;
        *open = Some((file, length + line.len() as u64));
        Ok(())
    }

    /// Returns the newest requests, newest first.
    pub(crate) fn newest(&self, limit: usize) -> std::io::Result<Vec<AuditEntry>> {
        let (mut file, length) = self.open()?;
        file.seek(SeekFrom::Start(length.saturating_sub(READ_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES).read_to_end(&mut bytes)?;
        // The first line may be the end of one.
        let lines = bytes.split(|byte| *byte == b'\n').rev();
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).take(limit).collect())
    }
}
