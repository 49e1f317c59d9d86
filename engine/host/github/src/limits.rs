//! What is too much for the API.

/// Maximum size of a file in bytes. GitHub has the same limit.
pub const MAX_FILE_BYTES: u64 = 100 << 20;
/// Maximum number of files of a repository.
pub const MAX_FILES: usize = 50_000;
/// Maximum size of all files of a repository in bytes.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;
