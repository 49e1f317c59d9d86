//! The errors of a disk.

use crate::id::BlobHash;
use std::fmt::Display;
use std::path::PathBuf;

/// Returns the message of an I/O error without the operating system's number, which tells a user nothing.
pub fn io_reason(error: &dyn Display) -> String {
    let text = error.to_string();
    let mut parts = text.split(" (os error ");
    let mut reason = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        reason.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    reason
}

/// What is wrong with a blob that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobFault {
    /// The blob doesn't exist.
    #[error("missing")]
    Missing,
    /// Its bytes don't match its hash.
    #[error("damaged")]
    Damaged,
}

/// Why a disk operation failed. Each variant says what happened, to which file, and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The disk has no free space.
    #[error("the disk is full; free up space, and saving continues automatically: {}", path.display())]
    Full {
        /// The file or folder that should have been written.
        path: PathBuf,
    },
    /// No permission to write.
    #[error("it is read-only or belongs to another user: {}", path.display())]
    ReadOnly {
        /// The file or folder that should have been written.
        path: PathBuf,
    },
    /// The database is inconsistent.
    #[error("the workspace's database is damaged ({why}); run `tracebook fsck`: {}", path.display())]
    Damaged {
        /// What is inconsistent.
        why: String,
        /// Path of the damaged database.
        path: PathBuf,
    },
    /// The database was written by a newer version of the program.
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
    /// The commit breaks a rule of [`RowWrite`]. This is a bug in the program, and a retry doesn't help.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_number_of_the_system() {
        let refused = std::io::Error::from_raw_os_error(13);
        assert!(refused.to_string().contains("os error 13"), "{refused}");
        assert!(refused.to_string().starts_with(&io_reason(&refused)) && !io_reason(&refused).contains("os error"));
        assert_eq!(io_reason(&"a: denied (os error 13): b (os error 2)"), "a: denied: b");
        assert_eq!(io_reason(&std::io::Error::other("its own words (really)")), "its own words (really)");
    }
}
