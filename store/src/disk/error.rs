//! Why the disk refuses.

use crate::id::BlobHash;
use std::path::PathBuf;

/// What is wrong with a blob that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobFault {
    /// It isn't there.
    #[error("missing")]
    Missing,
    /// Its bytes are not those of its name.
    #[error("damaged")]
    Damaged,
}

/// Why the disk did not do it. Each names what happened, to what, and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The disk has no free space.
    #[error("the disk is full; free up space, and saving continues automatically: {}", path.display())]
    Full {
        /// What was to be written.
        path: PathBuf,
    },
    /// No permission to write.
    #[error("it cannot be written to (read-only, or not yours): {}", path.display())]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
    },
    /// The database does not hold together.
    #[error("the workspace's database is damaged ({why}); run `tracebook fsck`: {}", path.display())]
    Damaged {
        /// What does not hold.
        why: String,
        /// Path of the damaged database.
        path: PathBuf,
    },
    /// It was written by a newer version of the program.
    #[error("the workspace was made by a newer Tracebook (format {found}, this one knows {known}): {}", path.display())]
    Newer {
        /// Format number of the database.
        found: i64,
        /// Highest format number that this version reads.
        known: i64,
        /// Path of the database.
        path: PathBuf,
    },
    /// The folder contains no workspace.
    #[error("there is no workspace; `tracebook init` makes one: {}", path.display())]
    Missing {
        /// The expected path.
        path: PathBuf,
    },
    /// A blob is missing, or its bytes don't match its hash.
    #[error("the stored output {hash} is {what}")]
    Blob {
        /// Hash under which the blob is stored.
        hash: BlobHash,
        /// What is wrong with it.
        what: BlobFault,
    },
    /// The commit breaks a rule of [`RowWrite`]: the program's mistake. To try it again is of no use.
    #[error("{what} was refused ({why}): {}", path.display())]
    Refused {
        /// The operation that was attempted.
        what: &'static str,
        /// The rule that forbids it.
        why: String,
        /// The file or folder that it concerns.
        path: PathBuf,
    },
    /// Any other error of the operating system or SQLite.
    #[error("{what} failed ({why}): {}", path.display())]
    Io {
        /// The operation that was attempted.
        what: &'static str,
        /// The message of the operating system or SQLite.
        why: String,
        /// The file or folder that it concerns.
        path: PathBuf,
    },
}
