//! Why an operation on a repository failed, and what to do.

use std::path::PathBuf;

/// What to do about a commit, folder or file that the repository's store doesn't have.
pub(crate) const MISSING_OBJECT: &str = "this clone lacks a part of the history that is needed here, for instance \
                                         because it was made with --filter; `git fetch --refetch --no-filter` gets all \
                                         of it";

/// Why a Git operation failed.
#[derive(Debug, thiserror::Error)]
pub enum VcsError {
    /// The folder isn't in a repository.
    #[error("there is no git repository here or above; `git init` makes one: {}", .0.display())]
    None(PathBuf),
    /// The user's name and email aren't configured in Git.
    #[error("git does not know who you are; say `git config --global user.name NAME` and `… user.email ADDRESS`")]
    Nobody,
    /// The operation was refused, with the reason.
    #[error("{0}")]
    Refused(String),
    /// Nothing has the name that was given.
    #[error("{0}")]
    Missing(String),
    /// Only Git itself can stage or commit a file, since it runs a filter on the bytes.
    #[error("its bytes go through the filter {filter}, which only git itself runs: {file}")]
    Filtered {
        /// Path of the file in the folder.
        file: String,
        /// Name of the filter, such as `lfs`.
        filter: String,
    },
    /// An error of libgit2.
    #[error("git failed ({0})")]
    Git(String),
}

impl VcsError {
    /// Returns whether nothing has the name that was given.
    pub fn is_missing(&self) -> bool {
        matches!(self, VcsError::Missing(_))
    }
}

impl From<git2::Error> for VcsError {
    fn from(error: git2::Error) -> VcsError {
        let message = error.message();
        if error.class() == git2::ErrorClass::Odb && message.starts_with("object not found") {
            return VcsError::Refused(MISSING_OBJECT.to_owned());
        }
        // Formats that libgit2 can't read.
        let is_other_kind = ["unknown object format", "unsupported mandatory extension", "unsupported extension name"]
            .iter()
            .any(|start| message.starts_with(*start));
        if !is_other_kind {
            return VcsError::Git(message.to_owned());
        }
        let advice = if message.contains("'link'") {
            "; after `git update-index --no-split-index`, this works, too"
        } else if message.contains("'sdir'") {
            "; after `git sparse-checkout reapply --no-sparse-index`, this works, too"
        } else {
            ""
        };
        VcsError::Refused(format!(
            "this kind of repository isn't supported yet ({message}); use Git itself in it{advice}"
        ))
    }
}
