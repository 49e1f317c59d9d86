//! Git operations that the user starts in the window. Each runs the user's own `git`, which never asks on a terminal.

use super::conflicts::{resolve, unresolve};
use super::{DiscardedFile, GitOutcome, ResolvedFile, sentence};
use crate::fs::atomic_write::{ReplaceOutcome, replace_file};
use crate::fs::confined_dir::ConfinedFolder;
use anyhow::{anyhow, bail};
use git_program::{GitCaller, GitOperation, GitProgramError, HalfDoneOperation};
use std::path::{Path, PathBuf};
use store::BlobHash;
use vcs::{ConflictChoice, FileChange, FileChangeKind, HunkAction, HunkChoice, IndexUpdate};
use vcs::{PullMode, RepositoryFolder, VcsError};

/// What the user wants from source control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitRequest {
    /// Makes the folder a repository.
    Init,
    /// Stages files.
    Stage(Vec<String>),
    /// Takes files out of what is staged.
    Unstage(Vec<String>),
    /// Replaces files by what is staged of them, or else by the last commit. New files are deleted. The bytes are kept.
    Discard(Vec<String>),
    /// Stages, unstages or discards hunks or lines of a file.
    Hunks {
        /// Path relative to the folder.
        path: String,
        /// The operation on the hunks.
        action: HunkAction,
        /// The hunks and lines.
        choices: Vec<HunkChoice>,
        /// Hash of the diff that the user saw; `None` takes the file as it is now.
        seen: Option<BlobHash>,
    },
    /// Resolves conflicts of a file, and stages it once none are left. The bytes are kept.
    Resolve {
        /// Path relative to the folder.
        path: String,
        /// The side to keep.
        choice: ConflictChoice,
        /// Number of the conflict in the file, from 1; `None` for a side's whole file, or for both sides of each.
        region: Option<usize>,
        /// Hash of the file that the user saw; `None` takes the file as it is now.
        seen: Option<String>,
    },
    /// Undoes the resolution of conflicts.
    Unresolve(ResolvedFile),
    /// A pull, merge or rebase that stops at conflicts and isn't taken back.
    KeepConflicts(Box<GitRequest>),
    /// Brings discarded files back.
    Restore(Vec<DiscardedFile>),
    /// Commits what is staged, or all changes if nothing is.
    Commit {
        /// The message.
        message: String,
        /// Whether the last commit is replaced.
        amend: bool,
        /// Whether a `Signed-off-by` line is added.
        signoff: bool,
    },
    /// Gets commits of all branches.
    Fetch,
    /// Gets commits, and merges them or rebases onto them as Git's settings say.
    Pull,
    /// Gets commits and merges them.
    PullMerge,
    /// Gets commits and rebases onto them.
    PullRebase,
    /// Sends the branch's commits.
    Push,
    /// Switches to a branch.
    Switch {
        /// Name of the branch.
        branch: String,
        /// Whether it's created.
        create: bool,
    },
    /// Creates a branch, and doesn't switch to it.
    CreateBranch {
        /// Name of the branch.
        name: String,
        /// Hash of its last commit.
        at: String,
    },
    /// Deletes a branch that is merged.
    DeleteBranch {
        /// Name of the branch.
        name: String,
        /// Hash of its last commit, for undo.
        at: String,
    },
    /// Merges a branch into the current one.
    Merge(String),
    /// Makes the current branch's own commits again on top of another branch.
    Rebase(String),
    /// Goes on with what stopped halfway.
    Continue(HalfDoneOperation),
    /// Takes back what stopped halfway.
    Abort(HalfDoneOperation),
    /// Creates a tag.
    CreateTag {
        /// Name of the tag.
        name: String,
        /// Its message; empty for a tag without one.
        message: String,
        /// Hash of what it names; `None` for the last commit.
        at: Option<String>,
    },
    /// Deletes a tag.
    DeleteTag {
        /// Name of the tag.
        name: String,
        /// Hash of what it names, for undo.
        at: String,
    },
    /// Puts all changes aside, with this description.
    StashPush(String),
    /// Takes a stash back.
    StashApply {
        /// Hash of its commit.
        id: String,
        /// Whether it's deleted then.
        pop: bool,
    },
    /// Deletes a stash.
    StashDrop {
        /// Hash of its commit.
        id: String,
        /// Its description, for undo.
        message: String,
    },
    /// Puts a deleted stash back in the list.
    StashStore {
        /// Hash of its commit.
        id: String,
        /// Its description.
        message: String,
    },
}

impl GitRequest {
    /// Returns what is running, for display.
    pub(super) fn title(&self) -> &'static str {
        match self {
            GitRequest::Init => "Creating the repository",
            GitRequest::Stage(_) => "Staging",
            GitRequest::Unstage(_) => "Unstaging",
            GitRequest::Discard(_) => "Discarding",
            GitRequest::Restore(_) | GitRequest::Unresolve(_) => "Restoring",
            GitRequest::Resolve { .. } => "Resolving",
            GitRequest::KeepConflicts(request) => request.title(),
            GitRequest::Hunks { action: HunkAction::Stage, .. } => "Staging",
            GitRequest::Hunks { action: HunkAction::Unstage, .. } => "Unstaging",
            GitRequest::Hunks { action: HunkAction::Discard, .. } => "Discarding",
            GitRequest::Commit { .. } => "Committing",
            GitRequest::Fetch => "Fetching",
            GitRequest::Pull | GitRequest::PullMerge | GitRequest::PullRebase => "Pulling",
            GitRequest::Push => "Pushing",
            GitRequest::Switch { .. } => "Switching",
            GitRequest::CreateBranch { .. } => "Creating the branch",
            GitRequest::DeleteBranch { .. } => "Deleting the branch",
            GitRequest::Merge(_) => "Merging",
            GitRequest::Rebase(_) => "Rebasing",
            GitRequest::Continue(_) => "Continuing",
            GitRequest::Abort(_) => "Aborting",
            GitRequest::CreateTag { .. } => "Creating the tag",
            GitRequest::DeleteTag { .. } => "Deleting the tag",
            GitRequest::StashPush(_) => "Stashing",
            GitRequest::StashApply { .. } => "Applying the stash",
            GitRequest::StashDrop { .. } => "Deleting the stash",
            GitRequest::StashStore { .. } => "Restoring the stash",
        }
    }

    /// Returns the label of a button that makes this request to undo another one.
    pub fn undo_label(&self) -> &'static str {
        if matches!(self, GitRequest::Restore(_)) { "Undo discard" } else { "Undo" }
    }

    /// Returns whether it changes files of the folder or its history.
    pub(super) fn changes_folder(&self) -> bool {
        !matches!(self, GitRequest::Fetch | GitRequest::Push)
    }
}

/// Performs a request in a folder. Notes in conflict are merged by their histories in the workspace, if one is given.
/// `progress` gets Git's messages, and `is_canceled` is asked often.
///
/// # Errors
/// Returns an error for the user.
pub fn perform(
    (root, workspace): (&Path, Option<&Path>),
    request: &GitRequest,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> anyhow::Result<GitOutcome> {
    let (request, keeps_conflicts) = match request {
        GitRequest::KeepConflicts(request) => (request.as_ref(), true),
        request => (request, false), // tidy: open because every other request is performed as it is
    };
    if let GitRequest::Merge(branch) | GitRequest::Rebase(branch) = request {
        let repository = RepositoryFolder::open(root)?;
        repository.refuse_merged_snapshot(branch).map_err(|why| anyhow!(sentence(&why.to_string())))?;
    }
    let mut undo = None;
    let mut run = |operation: GitOperation| {
        let operation = if keeps_conflicts { GitOperation::KeepConflicts(Box::new(operation)) } else { operation };
        let done = match workspace {
            Some(workspace) => {
                let place = (root, workspace);
                git_program::run_in_workspace(place, &operation, GitCaller::Window, progress, is_canceled)
            }
            None => git_program::run(root, &operation, GitCaller::Window, progress, is_canceled),
        };
        done.map_err(|error| match error {
            GitProgramError::Canceled => anyhow!("Cancelled."),
            error => anyhow::Error::new(error), // tidy: open because the text of all others is for the user
        })
    };
    let said = match request {
        GitRequest::Init => {
            run(GitOperation::Init)?;
            "This folder is a Git repository now.".to_owned()
        }
        GitRequest::Stage(files) => {
            RepositoryFolder::open(root)?.refuse_unresolved(files)?;
            run(GitOperation::Add { files: files.clone() })?;
            String::new()
        }
        GitRequest::Unstage(files) => {
            run(GitOperation::Unstage { files: files.clone() })?;
            String::new()
        }
        GitRequest::Discard(files) => return discard(root, files, &mut run),
        GitRequest::Hunks { path, action, choices, seen } => {
            return use_hunks(root, path, *action, (choices, *seen), &mut run);
        }
        GitRequest::Resolve { path, choice, region, seen } => {
            return resolve(root, path, (*choice, *region), seen.as_deref(), &mut run);
        }
        GitRequest::Unresolve(file) => unresolve(root, file, &mut run)?,
        GitRequest::KeepConflicts(_) => bail!("This can't be done."),
        GitRequest::Restore(files) => restore(root, files)?,
        GitRequest::Commit { message, amend, signoff } => {
            let repository = RepositoryFolder::open(root)?;
            repository.refuse_staged_outside().map_err(|why| anyhow!(sentence(&why.to_string())))?;
            let is_staged = |change: &FileChange| change.staged.is_some();
            if !amend && !repository.changes()?.0.iter().any(is_staged) {
                repository.refuse_unresolved(&[])?;
                run(GitOperation::Add { files: Vec::new() })?;
            }
            let message = message.trim().to_owned();
            run(GitOperation::Commit { message, files: Vec::new(), all: false, amend: *amend, signoff: *signoff })?;
            let last = RepositoryFolder::open(root)?.log(1)?;
            let last = last.first().ok_or_else(|| anyhow!("Git made no commit."))?;
            format!("Committed {}: {}", last.id.get(..8).unwrap_or(&last.id), last.summary)
        }
        GitRequest::Fetch => {
            run(GitOperation::Fetch)?;
            let state = RepositoryFolder::open(root)?.branch_state()?;
            match state.behind {
                0 => "Fetched. Nothing new for this branch.".to_owned(),
                1 => "Fetched. 1 commit to pull.".to_owned(),
                count => format!("Fetched. {count} commits to pull."),
            }
        }
        GitRequest::Pull | GitRequest::PullMerge | GitRequest::PullRebase => {
            let repository = RepositoryFolder::open(root)?;
            let before = repository.branch_state()?.head;
            run(match request {
                GitRequest::PullMerge => GitOperation::Pull { rebase: false },
                GitRequest::PullRebase => GitOperation::Pull { rebase: true },
                // tidy: open because only the pull that the settings want is left.
                _ => configured_pull(&repository).map_err(|why| anyhow!(sentence(&why.to_string())))?,
            })?;
            let after = RepositoryFolder::open(root)?.branch_state()?.head;
            if before == after { "Already up to date.".to_owned() } else { "Pulled.".to_owned() }
        }
        GitRequest::Push => {
            let first = RepositoryFolder::open(root)?.first_push_target()?;
            run(GitOperation::Push { first })?;
            let upstream = RepositoryFolder::open(root)?.branch_state()?.upstream;
            format!("Pushed to {}.", upstream.as_deref().unwrap_or("the remote"))
        }
        GitRequest::Switch { branch, create } => {
            run(GitOperation::Switch { branch: branch.clone(), create: *create })?;
            format!("Switched to {branch}.")
        }
        GitRequest::CreateBranch { name, at } => {
            run(GitOperation::CreateBranch { name: name.clone(), at: Some(at.clone()) })?;
            format!("Created the branch {name}.")
        }
        GitRequest::DeleteBranch { name, at } => {
            run(GitOperation::DeleteBranch { name: name.clone() })?;
            undo = Some(GitRequest::CreateBranch { name: name.clone(), at: at.clone() });
            format!("Deleted the branch {name}.")
        }
        GitRequest::Merge(branch) => {
            let head = || -> anyhow::Result<_> { Ok(RepositoryFolder::open(root)?.branch_state()?.head) };
            let before = head()?;
            run(GitOperation::Merge { branch: branch.clone() })?;
            match before == head()? {
                true => format!("{branch} has nothing that isn't here."),
                false => format!("Merged {branch}."),
            }
        }
        GitRequest::Rebase(onto) => {
            run(GitOperation::Rebase { onto: onto.clone() })?;
            format!("Rebased onto {onto}.")
        }
        GitRequest::Continue(what) => {
            run(GitOperation::Continue(*what))?;
            format!("The {} is done.", what.word())
        }
        GitRequest::Abort(what) => {
            run(GitOperation::Abort(*what))?;
            format!("The {} was undone.", what.word())
        }
        GitRequest::CreateTag { name, message, at } => {
            run(GitOperation::CreateTag { name: name.clone(), message: message.clone(), at: at.clone() })?;
            format!("Created the tag {name}.")
        }
        GitRequest::DeleteTag { name, at } => {
            run(GitOperation::DeleteTag { name: name.clone() })?;
            undo = Some(GitRequest::CreateTag { name: name.clone(), message: String::new(), at: Some(at.clone()) });
            format!("Deleted the tag {name}.")
        }
        GitRequest::StashPush(message) => {
            let before = RepositoryFolder::open(root)?.stashes()?.len();
            let is_within_folder = RepositoryFolder::open(root)?.is_below_top();
            run(GitOperation::StashPush { message: message.trim().to_owned(), is_within_folder })?;
            match RepositoryFolder::open(root)?.stashes()?.len() > before {
                true => "Stashed all changes.".to_owned(),
                false => "There are no changes to stash.".to_owned(),
            }
        }
        GitRequest::StashApply { id, pop } => {
            run(GitOperation::StashApply { number: stash_number(root, id)?, pop: *pop })?;
            "Applied the stash.".to_owned()
        }
        GitRequest::StashDrop { id, message } => {
            run(GitOperation::StashDrop { number: stash_number(root, id)? })?;
            undo = Some(GitRequest::StashStore { id: id.clone(), message: message.clone() });
            "Deleted the stash.".to_owned()
        }
        GitRequest::StashStore { id, message } => {
            run(GitOperation::StashStore { id: id.clone(), message: message.clone() })?;
            "Restored the stash.".to_owned()
        }
    };
    Ok(GitOutcome { text: said, undo })
}

/// Returns the pull that Git's settings want.
///
/// # Errors
/// Returns an error for a setting that Git doesn't know.
pub fn configured_pull(repository: &RepositoryFolder) -> Result<GitOperation, VcsError> {
    Ok(match repository.pull_mode()? {
        PullMode::Merge => GitOperation::Pull { rebase: false },
        PullMode::Rebase => GitOperation::Pull { rebase: true },
        PullMode::RebaseMerges => GitOperation::PullRebaseMerges,
    })
}

/// Returns the number of a stash now: numbers change whenever one is added or deleted.
fn stash_number(root: &Path, id: &str) -> anyhow::Result<usize> {
    let stashes = RepositoryFolder::open(root)?.stashes()?;
    let found = stashes.iter().find(|stash| stash.id == id);
    found.map(|stash| stash.number).ok_or_else(|| anyhow!("This stash is gone, so nothing was done."))
}

/// Returns the outcome of a discard.
fn discarded(text: String, files: Vec<DiscardedFile>) -> GitOutcome {
    GitOutcome { text, undo: (!files.is_empty()).then_some(GitRequest::Restore(files)) }
}

/// Discards changes after their bytes are kept in the repository's store.
fn discard(
    root: &Path,
    names: &[String],
    run: &mut dyn FnMut(GitOperation) -> anyhow::Result<String>,
) -> anyhow::Result<GitOutcome> {
    let repository = RepositoryFolder::open(root)?;
    let files = repository.find_unstaged(names)?;
    let mut files_kept = Vec::new();
    let (mut known, mut new) = (Vec::new(), Vec::new());
    for (path, kind) in &files {
        files_kept.push(DiscardedFile { path: path.clone(), kept: repository.keep_file(path)?, left: None });
        match kind {
            FileChangeKind::Untracked => new.push(path),
            FileChangeKind::Conflicted => bail!("{path} is in conflict. Resolve it, then stage it."),
            FileChangeKind::Modified | FileChangeKind::Added | FileChangeKind::Renamed | FileChangeKind::Deleted => {
                known.push(path.clone())
            }
        }
    }
    if !known.is_empty() {
        run(GitOperation::Discard { files: known })?;
    }
    for path in new {
        delete_file(root, path)?;
    }
    let said = match files.as_slice() {
        [(only, _)] => format!("Discarded the changes in {only}."),
        _ => format!("Discarded the changes in {} files.", files.len()),
    };
    Ok(discarded(said, files_kept))
}

/// Stages, unstages or discards hunks of a file.
fn use_hunks(
    root: &Path,
    path: &str,
    action: HunkAction,
    (choices, seen): (&[HunkChoice], Option<BlobHash>),
    run: &mut dyn FnMut(GitOperation) -> anyhow::Result<String>,
) -> anyhow::Result<GitOutcome> {
    let repository = RepositoryFolder::open(root)?;
    if let Some(seen) = seen {
        let (text, _) = match action.is_of_staged() {
            true => repository.staged_file_diff(path)?,
            false => repository.unstaged_diff(path)?,
        };
        if BlobHash::of(text.as_bytes()) != seen {
            bail!("{path} has changed meanwhile, so nothing was done. Look at its changes again.");
        }
    }
    if action == HunkAction::Discard {
        return discard_hunks(root, path, choices);
    }
    let operation = match repository.choose_staged(path, action.is_of_staged(), choices)? {
        IndexUpdate::Set { repository_path, id, mode } => GitOperation::SetStaged { repository_path, id, mode },
        IndexUpdate::Remove => GitOperation::RemoveStaged { file: path.to_owned() },
    };
    run(operation)?;
    Ok(GitOutcome::default())
}

/// Takes hunks out of a file after its bytes are kept in the repository's store.
fn discard_hunks(root: &Path, path: &str, choices: &[HunkChoice]) -> anyhow::Result<GitOutcome> {
    let repository = RepositoryFolder::open(root)?;
    let Some(kept) = repository.keep_file(path)? else { bail!("{path} no longer has changes to discard.") };
    let before = repository.kept_bytes(&kept)?;
    let bytes = repository.without_hunks(path, &before, choices)?;
    let (_folder, target) = confined_file(root, path, false)?;
    write_over(&target, path, &before, &bytes)?;
    let left = Some(BlobHash::of(&bytes));
    let file = DiscardedFile { path: path.to_owned(), kept: Some(kept), left };
    Ok(discarded(format!("Discarded these changes in {path}."), vec![file]))
}

/// Replaces a file's bytes, unless another program has changed them.
pub(super) fn write_over(target: &Path, path: &str, before: &[u8], bytes: &[u8]) -> anyhow::Result<()> {
    match replace_file(target, Some(BlobHash::of(before)), bytes)? {
        ReplaceOutcome::Done { .. } => Ok(()),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            bail!("{path} has changed meanwhile, so nothing was done. Look at its changes again.")
        }
    }
}

/// Replaces a file by bytes that a discard has kept. The file's current bytes are kept, too; returns them.
///
/// # Errors
/// Returns an error for the user, for instance if the repository no longer has the bytes.
pub fn restore_kept(root: &Path, path: &str, kept: &str) -> anyhow::Result<DiscardedFile> {
    let repository = RepositoryFolder::open(root)?;
    let bytes = repository.kept_bytes(kept).map_err(|why| anyhow!("There are no discarded bytes {kept}: {why}."))?;
    let current = repository.keep_file(path)?;
    let (_folder, target) = confined_file(root, path, true)?;
    match &current {
        Some(current) => write_over(&target, path, &repository.kept_bytes(current)?, &bytes)?,
        None => match replace_file(&target, None, &bytes)? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => bail!("{path} exists now, so nothing was done."),
        },
    }
    Ok(DiscardedFile { path: path.to_owned(), kept: current, left: Some(BlobHash::of(&bytes)) })
}

/// Brings discarded files back, unless they have changed since.
fn restore(root: &Path, files: &[DiscardedFile]) -> anyhow::Result<String> {
    let repository = RepositoryFolder::open(root)?;
    let (changes, _) = repository.changes()?;
    for file in files {
        let has_changed = match file.left {
            // Other hunks of the file may still be changed, so its bytes decide.
            Some(left) => {
                let current = repository.keep_file(&file.path)?.map(|id| repository.kept_bytes(&id)).transpose()?;
                current.is_none_or(|current| BlobHash::of(&current) != left)
            }
            None => changes.iter().any(|change| change.path == file.path && change.unstaged.is_some()),
        };
        if has_changed {
            bail!("{} has changed since, so it wasn't restored.", file.path);
        }
        let Some(kept) = &file.kept else {
            delete_file(root, &file.path)?;
            continue;
        };
        let bytes = repository.kept_bytes(kept)?;
        let (_folder, target) = confined_file(root, &file.path, true)?;
        let before = std::fs::read(&target).ok().map(|bytes| BlobHash::of(&bytes));
        match replace_file(&target, before, &bytes)? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                bail!("{} has changed meanwhile, so it wasn't restored.", file.path);
            }
        }
    }
    Ok(match files {
        [only] => format!("Restored the changes in {}.", only.path),
        _ => format!("Restored the changes in {} files.", files.len()),
    })
}

/// Returns a file's path through a folder that's held open, so that no link leads out of the volume.
pub(super) fn confined_file(root: &Path, path: &str, make: bool) -> anyhow::Result<(ConfinedFolder, PathBuf)> {
    let opened = ConfinedFolder::open_root(root).and_then(|folder| folder.open_parent(path, make));
    let (folder, name) = opened.map_err(|why| anyhow!("Can't open {path}: {why}"))?;
    let file = folder.stable_path().join(name);
    Ok((folder, file))
}

pub(super) fn delete_file(root: &Path, path: &str) -> anyhow::Result<()> {
    let (_folder, file) = confined_file(root, path, false)?;
    std::fs::remove_file(file).map_err(|error| anyhow!("Can't delete {path}: {}.", store::disk::io_reason(&error)))
}
