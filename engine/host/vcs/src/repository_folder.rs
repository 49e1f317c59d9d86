//! A folder of a repository, its commits, and the limits of what is read and committed. The operations are in other
//! modules.

use git2::Repository;
use std::path::PathBuf;

/// Maximum number of files listed by a status.
pub const MAX_STATUS_FILES: usize = 2_000;
/// Maximum size of a committed file in bytes.
pub const MAX_COMMIT_FILE_BYTES: u64 = 100 << 20;
/// Maximum length of a commit message in bytes.
pub const MAX_COMMIT_MESSAGE_BYTES: usize = 64 << 10;

/// A commit as listed in the log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Commit {
    /// Commit hash, 40 hexadecimal digits.
    pub id: String,
    /// When the author made the change, in seconds since 1970.
    pub author_time: i64,
    /// When the commit was made, in seconds since 1970: later than the change if it was rebased or amended since.
    pub commit_time: i64,
    /// Name of the author.
    pub author: String,
    /// The first paragraph of the commit message in a line, as Git shows it.
    pub summary: String,
}

/// One folder of a Git repository.
pub struct RepositoryFolder {
    pub(crate) repository: Repository,
    /// Path of the folder relative to the repository's root, with `/` separators; empty if they're the same.
    pub(crate) prefix: String,
    /// Root folder of the repository.
    pub(crate) top: PathBuf,
}
