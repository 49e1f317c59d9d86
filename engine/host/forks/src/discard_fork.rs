//! Removes a fork: its worktree, branch and copy. The records of its runs aren't here, and stay.

use crate::adoption::one_at_a_time;
use crate::fork_error::ForkError;
use crate::fork_record::{ForkPhase, ForkRecord, ForkStore, ForkedVariables};
use git_program::{GitCaller, GitOperation, GitProgramError};
use host::kernel_states::StateFolder;
use std::path::Path;
use store::DocId;
use vcs::RepositoryFolder;

impl ForkStore {
    /// Marks a fork as one that is being discarded, before its volume is closed. `notes` are its notes with saved
    /// variables, which are deleted, too.
    ///
    /// # Errors
    /// Returns [`ForkError::Refused`] if there's no fork with this name, and [`ForkError::Interrupted`] if an adoption
    /// was interrupted, since then the project is half changed.
    pub fn begin_discard(&self, name: &str, notes: Vec<DocId>) -> Result<ForkRecord, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read(name)?;
        if fork.interrupted().is_some() {
            return Err(ForkError::Interrupted(name.to_owned()));
        }
        fork.phase = ForkPhase::Discarding;
        let is_new = |note: &DocId| fork.states.iter().all(|known| known.note != *note);
        let new: Vec<DocId> = notes.into_iter().filter(is_new).collect();
        fork.states.extend(new.into_iter().map(|note| ForkedVariables { note, state: None }));
        self.save(&fork)?;
        Ok(fork)
    }

    /// Removes a fork's worktree, branch, copy and saved variables. Returns the hash of the branch's last commit if
    /// runs or the user have committed there.
    ///
    /// # Errors
    /// Returns an error if something can't be removed; what is left of the fork can be discarded again.
    pub fn discard(&self, name: &str) -> Result<Option<String>, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read(name)?;
        let last = fork.git.as_ref().and_then(|git| {
            let branches = RepositoryFolder::open(&git.top).and_then(|repository| repository.branches()).ok()?;
            let branch = branches.into_iter().find(|branch| branch.name == git.branch && !branch.remote)?;
            (branch.id != git.commit && Some(&branch.id) != git.snapshot.as_ref()).then_some(branch.id)
        });
        self.remove(&mut fork)?;
        Ok(last)
    }

    pub(crate) fn remove(&self, fork: &mut ForkRecord) -> Result<(), ForkError> {
        fork.phase = ForkPhase::Discarding;
        self.save(fork)?;
        let tree = self.tree_folder(&fork.name);
        if let Some(git) = fork.git.as_ref().filter(|git| git.top.is_dir()) {
            let run = |operation: &GitOperation| {
                git_program::run(&git.top, operation, GitCaller::Agent, &mut |_| {}, &|| false)
            };
            let remove = GitOperation::RemoveWorktree { folder: tree.clone() };
            if run(&remove).is_err() {
                // Git refuses a worktree that was damaged by hand or by a crash, but not one that is gone.
                remove_folder(&tree)?;
                let _ = run(&remove); // if not, Git forgets it by itself later
            }
            remove_folder(&tree)?;
            // Any other error is about a repository that is no longer whole, and then there's nothing to forget.
            if let Err(GitProgramError::NotInstalled) = run(&GitOperation::PruneWorktrees) {
                return Err(GitProgramError::NotInstalled.into());
            }
            let is_there = RepositoryFolder::open(&git.top)
                .and_then(|repository| repository.branches())
                .is_ok_and(|branches| branches.iter().any(|branch| branch.name == git.branch && !branch.remote));
            if is_there {
                run(&GitOperation::ForceDeleteBranch { name: git.branch.clone() })?;
            }
        }
        for copy in &fork.states {
            StateFolder::remove_folder(&self.states_folder(copy.note))?;
        }
        remove_folder(&self.fork_folder(&fork.name))
    }
}

fn remove_folder(folder: &Path) -> Result<(), ForkError> {
    let is_denied = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    if std::fs::remove_dir_all(folder).as_ref().is_err_and(is_denied) {
        unlock_folders(folder);
    }
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ForkError::io("removing", folder, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes folders writable that a run has locked.
fn unlock_folders(folder: &Path) {
    #[cfg(unix)]
    for entry in walkdir::WalkDir::new(folder).follow_links(false).into_iter().flatten() {
        if entry.file_type().is_dir() {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            // What stays locked is reported when it can't be removed.
            let _ = std::fs::set_permissions(entry.path(), mode);
        }
    }
    #[cfg(not(unix))]
    let _ = folder; // folders can't be locked like that there
}
