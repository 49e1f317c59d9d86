//! A commit of some files by the user's own `git`, which signs it if the user's settings want that.

use crate::{GitCaller, GitOperation, GitProgramError, run};
use std::path::Path;

/// Maximum number of files in the arguments of one process.
const MAX_NAMED_FILES: usize = 200;

/// Commits the current content of files; other staged changes stay staged. `files` are paths relative to the folder,
/// and may be folders; none stand for all of the folder. `new` are the files among them that Git doesn't follow yet. If
/// the commit fails, they're not followed afterwards either.
///
/// # Errors
/// Returns a [`GitProgramError`], such as for a program that can't sign.
pub fn commit_chosen(
    folder: &Path,
    message: &str,
    (files, new): (&[String], &[String]),
    caller: GitCaller,
    is_canceled: &dyn Fn() -> bool,
) -> Result<(), GitProgramError> {
    let perform = |operation: GitOperation| run(folder, &operation, caller, &mut |_| {}, is_canceled);
    let commit = || {
        for files in new.chunks(MAX_NAMED_FILES) {
            perform(GitOperation::Add { files: files.to_vec() })?;
        }
        perform(GitOperation::Commit {
            message: message.to_owned(),
            files: if files.is_empty() { vec![".".to_owned()] } else { files.to_vec() },
            all: false,
            amend: false,
            signoff: false,
        })
    };
    let done = commit();
    if done.is_err() {
        for files in new.chunks(MAX_NAMED_FILES) {
            // The error of the commit says more; the files themselves are as they were.
            let _ = run(folder, &GitOperation::Unstage { files: files.to_vec() }, caller, &mut |_| {}, &|| false);
        }
    }
    done.map(|_| ())
}
