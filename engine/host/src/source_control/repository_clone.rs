//! A clone of a repository for the window: the user's own Git makes it on a thread, with progress and cancel. Without
//! Git, files of GitHub come over its API.

use super::github_api::{clone_over_api, is_github_address};
use git_program::{GitCaller, GitOperation, GitProgramError, RepositoryAddress};
use github::{ApiControl, GitHubError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The phase of a clone in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClonePhase {
    /// Git works; its last line, which is untrusted.
    Running(String),
    /// The new folder is complete.
    Done(PathBuf),
    /// It was canceled, and the folder is gone.
    Canceled,
    /// Why it failed, as a sentence.
    Failed(String),
}

/// A clone that runs or has ended. It's canceled when this is dropped.
pub struct RepositoryClone {
    phase: Arc<Mutex<ClonePhase>>,
    is_canceled: Arc<AtomicBool>,
}

impl RepositoryClone {
    /// Starts to clone the repository at an address, as [`RepositoryAddress::read`] takes it, into a new folder.
    /// `depth`: how many commits are downloaded; all without it. `wake` is called when there's something new.
    pub fn start(
        address: String,
        folder: PathBuf,
        depth: Option<u32>,
        wake: impl Fn() + Send + 'static,
    ) -> RepositoryClone {
        let phase = Arc::new(Mutex::new(ClonePhase::Running(String::new())));
        let is_canceled = Arc::new(AtomicBool::new(false));
        let clone = RepositoryClone { phase: phase.clone(), is_canceled: is_canceled.clone() };
        std::thread::spawn(move || {
            let wake = Mutex::new(wake);
            let set = |new: ClonePhase| {
                *phase.lock().unwrap_or_else(PoisonError::into_inner) = new;
                wake.lock().unwrap_or_else(PoisonError::into_inner)();
            };
            let progress = |line: &str| set(ClonePhase::Running(line.to_owned()));
            let done = clone_into(&address, &folder, depth, &progress, &|| is_canceled.load(Ordering::Relaxed));
            set(match done {
                Ok(()) => ClonePhase::Done(folder),
                Err(CloneError::Git(GitProgramError::Canceled) | CloneError::GitHub(GitHubError::Canceled)) => {
                    ClonePhase::Canceled
                }
                Err(why) => ClonePhase::Failed(why.to_string()),
            });
        });
        clone
    }

    /// Returns how far it is.
    pub fn phase(&self) -> ClonePhase {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends Git, which removes what it has made.
    pub fn cancel(&self) {
        self.is_canceled.store(true, Ordering::Relaxed);
    }
}

impl Drop for RepositoryClone {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Why there is no clone.
#[derive(Debug, thiserror::Error)]
enum CloneError {
    #[error("there is something at {} already; choose another folder", .0.display())]
    Taken(PathBuf),
    #[error(transparent)]
    Address(#[from] git_program::RepositoryAddressError),
    #[error(transparent)]
    Git(#[from] GitProgramError),
    #[error(transparent)]
    GitHub(#[from] GitHubError),
}

fn clone_into(
    address: &str,
    folder: &Path,
    depth: Option<u32>,
    progress: &(dyn Fn(&str) + Sync),
    is_canceled: &(dyn Fn() -> bool + Sync),
) -> Result<(), CloneError> {
    // Git fills an empty folder, and wouldn't remove it after a failure.
    if folder.symlink_metadata().is_ok() {
        return Err(CloneError::Taken(folder.to_owned()));
    }
    // Relative addresses are taken from the folder that will have the clone; Git runs in one that is there.
    let above = folder.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(Path::new("/"));
    let from = RepositoryAddress::read(address, above)?;
    let operation = GitOperation::Clone { from: from.clone(), folder: folder.to_owned(), depth, branch: None };
    match git_program::run(above, &operation, GitCaller::Window, &mut |line| progress(line), is_canceled) {
        Err(GitProgramError::NotInstalled) if is_github_address(address, &from) => {
            clone_over_api(address, folder, &ApiControl::new(progress, is_canceled))?;
        }
        done => drop(done?),
    }
    Ok(())
}
