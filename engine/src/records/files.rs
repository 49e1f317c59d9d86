//! File stamps, which distinguish versions of a file.

use store::BlobHash;

/// Identifies a version of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime: i64,
    /// Hash of the bytes.
    pub hash: BlobHash,
}
