//! Runs the user's own `git` for what needs network, hooks, signing or filters, so that credential helpers, the SSH
//! agent and the user's configuration apply.
//!
//! Arguments are a list that this crate fixes: no shell reads them, and no name or address can become an option.

mod address;
mod agent_repository;
mod chosen_commit;
mod clone_place;
mod commit_heads;
mod errors;
mod git_process;
mod history_merge;
mod merge_file;
mod unmarked_notes;

pub use address::{RepositoryAddress, RepositoryAddressError, host_of, repository_folder_name};
pub use agent_repository::{AgentGitError, AgentRepository, is_missing_name};
pub use chosen_commit::commit_chosen;
pub use commit_heads::record_commit_heads;
pub use errors::GitProgramError;
pub use merge_file::{MERGE_DRIVER_SETTING, MergedFile, merge_driver_command, merge_files};

use clone_place::ClonePlace;
use git_process::{GitOutput, run_git};
use history_merge::merge_by_histories;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who wants an operation, which decides what the repository may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitCaller {
    /// The user has typed the command: everything is as with `git` itself, hooks included.
    User,
    /// The user has chosen it in the window: as with `git` itself, but nothing asks on a terminal.
    Window,
    /// An agent: no hook of the repository runs, and nothing asks on a terminal. Settings of the repository that run
    /// programs must be refused by the caller ([`AgentRepository::check_settings`]).
    Agent,
}

/// An operation that stops halfway when both sides have changed the same lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfDoneOperation {
    /// A merge.
    Merge,
    /// A rebase.
    Rebase,
    /// A cherry-pick.
    CherryPick,
    /// A revert.
    Revert,
}

impl HalfDoneOperation {
    /// Returns Git's subcommand.
    pub fn word(self) -> &'static str {
        match self {
            HalfDoneOperation::Merge => "merge",
            HalfDoneOperation::Rebase => "rebase",
            HalfDoneOperation::CherryPick => "cherry-pick",
            HalfDoneOperation::Revert => "revert",
        }
    }

    /// Returns the operation of a subcommand.
    pub fn of_word(word: &str) -> Option<HalfDoneOperation> {
        use HalfDoneOperation::{CherryPick, Merge, Rebase, Revert};
        [Merge, Rebase, CherryPick, Revert].into_iter().find(|operation| operation.word() == word)
    }
}

/// An operation of Git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitOperation {
    /// Stages files; all changes below the folder if none are named.
    Add {
        /// Paths relative to the folder.
        files: Vec<String>,
    },
    /// Takes files out of what is staged. The files themselves stay.
    Unstage {
        /// Paths relative to the folder.
        files: Vec<String>,
    },
    /// Makes an entry of the index: content that is in the repository's store already.
    SetStaged {
        /// Path in the repository, which isn't relative to the folder.
        repository_path: String,
        /// Hash of the content.
        id: String,
        /// Mode as Git writes it, such as `100644`.
        mode: String,
    },
    /// Removes a file's entry from the index. The file itself stays.
    RemoveStaged {
        /// Path relative to the folder.
        file: String,
    },
    /// Replaces a file in conflict by one side of it. It stays in conflict until it's staged.
    TakeSide {
        /// Path relative to the folder.
        file: String,
        /// Whether it's the side that Git calls theirs.
        is_theirs: bool,
    },
    /// Puts a resolved file in conflict again. The file itself stays.
    Unresolve {
        /// Path relative to the folder.
        file: String,
    },
    /// Replaces files by what is staged of them, or else by the last commit.
    Discard {
        /// Paths relative to the folder.
        files: Vec<String>,
    },
    /// Makes the folder a repository.
    Init,
    /// Commits what is staged, or the current content of files.
    Commit {
        /// The message; empty to keep the last one while amending.
        message: String,
        /// Paths relative to the folder; empty for what is staged, or all changed files if nothing is.
        files: Vec<String>,
        /// Whether all changed files are committed.
        all: bool,
        /// Whether the last commit is replaced.
        amend: bool,
        /// Whether a `Signed-off-by` line is added.
        signoff: bool,
    },
    /// Gets commits of all branches from the remote.
    Fetch,
    /// Gets commits, and merges them or rebases onto them.
    Pull {
        /// Whether to rebase instead of to merge.
        rebase: bool,
    },
    /// Gets commits, and rebases onto them so that own merges stay merges.
    PullRebaseMerges,
    /// Sends the branch's commits.
    Push {
        /// Remote and branch for the first push; `None` if the branch has a remote one already.
        first: Option<(String, String)>,
    },
    /// Switches to a branch.
    Switch {
        /// Name of the branch.
        branch: String,
        /// Whether the branch is created.
        create: bool,
    },
    /// Creates a branch.
    CreateBranch {
        /// Name of the branch.
        name: String,
        /// Where it begins; `None` for the last commit.
        at: Option<String>,
    },
    /// Deletes a branch that is merged.
    DeleteBranch {
        /// Name of the branch.
        name: String,
    },
    /// Merges a branch into the current one.
    Merge {
        /// Name of the branch or commit.
        branch: String,
    },
    /// Makes the current branch's own commits again on top of another branch.
    Rebase {
        /// Name of the branch or commit.
        onto: String,
    },
    /// A merge, rebase or pull that stops at conflicts and isn't taken back.
    KeepConflicts(Box<GitOperation>),
    /// Goes on with what stopped halfway, once its conflicts are resolved and staged.
    Continue(HalfDoneOperation),
    /// Takes back what stopped halfway.
    Abort(HalfDoneOperation),
    /// Puts changes aside.
    StashPush {
        /// Description; empty for Git's own.
        message: String,
        /// Whether only changes in the folder are, and not those in all of the repository.
        is_within_folder: bool,
    },
    /// Takes a stash back; with `pop`, it's deleted then.
    StashApply {
        /// Number of the stash; 0 is the newest.
        number: usize,
        /// Whether the stash is deleted once its changes are back.
        pop: bool,
    },
    /// Deletes a stash.
    StashDrop {
        /// Number of the stash; 0 is the newest.
        number: usize,
    },
    /// Puts a stash that was deleted back in the list, as the newest.
    StashStore {
        /// Hash of its commit.
        id: String,
        /// Description.
        message: String,
    },
    /// Creates a tag.
    CreateTag {
        /// Name of the tag.
        name: String,
        /// Its message; empty for a tag without one.
        message: String,
        /// What it names; `None` for the last commit.
        at: Option<String>,
    },
    /// Deletes a tag.
    DeleteTag {
        /// Name of the tag.
        name: String,
    },
    /// Makes a folder a worktree of the repository on a new branch. No file is written into it, and no hook runs.
    AddWorktree {
        /// The new folder.
        folder: PathBuf,
        /// Name of the new branch.
        branch: String,
        /// Where the branch begins: a commit's hash.
        at: String,
    },
    /// Removes a worktree with all changes in it.
    RemoveWorktree {
        /// The worktree's folder.
        folder: PathBuf,
    },
    /// Forgets worktrees whose folders are gone.
    PruneWorktrees,
    /// Deletes a branch with commits that may be nowhere else.
    ForceDeleteBranch {
        /// Name of the branch.
        name: String,
    },
    /// Clones a repository into a new folder.
    Clone {
        /// Where the repository is.
        from: RepositoryAddress,
        /// The new folder.
        folder: PathBuf,
        /// Number of commits to get; `None` for all.
        depth: Option<u32>,
        /// The branch that is checked out; `None` for the remote's own.
        branch: Option<String>,
    },
}

impl GitOperation {
    /// Returns the subcommand and its arguments.
    fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |given: &[&str]| words.extend(given.iter().map(OsString::from));
        match self {
            GitOperation::Add { files } if files.is_empty() => add(&["add", "--all", "--", "."]),
            GitOperation::Add { files } => {
                add(&["add", "--"]);
                files.iter().for_each(|file| add(&[&literal(file)]));
            }
            GitOperation::Unstage { files } => {
                add(&["reset", "--quiet", "--"]);
                files.iter().for_each(|file| add(&[&literal(file)]));
            }
            GitOperation::SetStaged { repository_path, id, mode } => {
                add(&["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{repository_path}")]);
            }
            GitOperation::RemoveStaged { file } => add(&["update-index", "--force-remove", "--", file]),
            GitOperation::TakeSide { file, is_theirs } => {
                let side = if *is_theirs { "--theirs" } else { "--ours" };
                add(&["checkout", "--quiet", side, "--", &literal(file)]);
            }
            GitOperation::Unresolve { file } => add(&["update-index", "--unresolve", "--", file]),
            GitOperation::KeepConflicts(operation) => return operation.arguments(),
            GitOperation::Discard { files } => {
                add(&["checkout", "--quiet", "--"]);
                files.iter().for_each(|file| add(&[&literal(file)]));
            }
            GitOperation::Init => add(&["init", "--quiet"]),
            GitOperation::Commit { message, files, all, amend, signoff } => {
                add(&["commit", "--quiet"]);
                if !(message.is_empty() && *amend) {
                    add(&[&format!("--message={message}")]);
                } else {
                    add(&["--no-edit"]);
                }
                for (flag, is_set) in [("--amend", *amend), ("--signoff", *signoff), ("--all", *all)] {
                    if is_set {
                        add(&[flag]);
                    }
                }
                if !files.is_empty() {
                    add(&["--"]);
                    files.iter().for_each(|file| add(&[&literal(file)]));
                }
            }
            GitOperation::Fetch => add(&["fetch", "--progress", "--prune"]),
            GitOperation::Pull { rebase } => {
                add(&["pull", "--progress", "--no-edit", "--no-stat"]);
                add(&[if *rebase { "--rebase" } else { "--no-rebase" }]);
            }
            GitOperation::PullRebaseMerges => {
                add(&["pull", "--progress", "--no-edit", "--no-stat", "--rebase=merges"]);
            }
            GitOperation::Push { first: None } => add(&["push", "--progress"]),
            GitOperation::Push { first: Some((remote, branch)) } => {
                add(&["push", "--progress", "--set-upstream", "--end-of-options", remote]);
                add(&[&format!("refs/heads/{branch}:refs/heads/{branch}")]);
            }
            GitOperation::Switch { branch, create: false } => {
                add(&["switch", "--progress", "--end-of-options", branch])
            }
            GitOperation::Switch { branch, create: true } => add(&["switch", &format!("--create={branch}")]),
            GitOperation::CreateBranch { name, at } => {
                add(&["branch", "--end-of-options", name]);
                add(&at.iter().map(String::as_str).collect::<Vec<_>>());
            }
            GitOperation::DeleteBranch { name } => add(&["branch", "--delete", "--end-of-options", name]),
            GitOperation::Merge { branch } => add(&["merge", "--no-edit", "--no-stat", "--end-of-options", branch]),
            GitOperation::Rebase { onto } => add(&["rebase", "--no-stat", "--end-of-options", onto]),
            GitOperation::Continue(what) => add(&[what.word(), "--continue"]),
            GitOperation::Abort(what) => add(&[what.word(), "--abort"]),
            GitOperation::StashPush { message, is_within_folder } => {
                add(&["stash", "push", "--include-untracked"]);
                if !message.is_empty() {
                    add(&[&format!("--message={message}")]);
                }
                if *is_within_folder {
                    add(&["--", "."]);
                }
            }
            GitOperation::StashApply { number, pop } => {
                add(&["stash", if *pop { "pop" } else { "apply" }, &format!("stash@{{{number}}}")]);
            }
            GitOperation::StashDrop { number } => add(&["stash", "drop", &format!("stash@{{{number}}}")]),
            GitOperation::StashStore { id, message } => {
                // It doesn't know `--end-of-options`; a hash is no option.
                add(&["stash", "store", &format!("--message={message}"), id]);
            }
            GitOperation::CreateTag { name, message, at } => {
                add(&["tag"]);
                if !message.is_empty() {
                    add(&["--annotate", &format!("--message={message}")]);
                }
                add(&["--end-of-options", name]);
                add(&at.iter().map(String::as_str).collect::<Vec<_>>());
            }
            GitOperation::DeleteTag { name } => add(&["tag", "--delete", "--end-of-options", name]),
            GitOperation::AddWorktree { folder, branch, at } => {
                add(&["worktree", "add", "--quiet", "--no-checkout", "-b", branch, "--"]);
                words.push(folder.into());
                words.push(at.into());
            }
            GitOperation::RemoveWorktree { folder } => {
                add(&["worktree", "remove", "--force", "--force", "--"]);
                words.push(folder.into());
            }
            GitOperation::PruneWorktrees => add(&["worktree", "prune"]),
            GitOperation::ForceDeleteBranch { name } => {
                add(&["branch", "--delete", "--force", "--end-of-options", name]);
            }
            GitOperation::Clone { from, folder, depth, branch } => {
                add(&["clone", "--progress"]);
                if let Some(depth) = depth {
                    add(&[&format!("--depth={depth}")]);
                }
                if let Some(branch) = branch {
                    add(&[&format!("--branch={branch}")]);
                }
                add(&["--end-of-options", from.as_str()]);
                words.push(folder.into());
            }
        }
        words
    }

    /// Returns the command that takes back what the operation left half done.
    fn abort(&self) -> Option<&'static [&'static str]> {
        match self {
            GitOperation::Merge { .. } | GitOperation::Pull { rebase: false } => Some(&["merge", "--abort"]),
            GitOperation::Pull { rebase: true } | GitOperation::PullRebaseMerges | GitOperation::Rebase { .. } => {
                Some(&["rebase", "--abort"])
            }
            GitOperation::KeepConflicts(operation) => operation.abort(),
            _ => None, // tidy: open because other operations stop before they change anything, or can't conflict.
        }
    }

    /// Returns what ends the operation once all files that were in conflict are staged.
    fn completion(&self) -> Option<GitOperation> {
        match self {
            GitOperation::Merge { .. } | GitOperation::Pull { rebase: false } => {
                Some(GitOperation::Continue(HalfDoneOperation::Merge))
            }
            GitOperation::Pull { rebase: true } | GitOperation::PullRebaseMerges | GitOperation::Rebase { .. } => {
                Some(GitOperation::Continue(HalfDoneOperation::Rebase))
            }
            GitOperation::Continue(what) => Some(GitOperation::Continue(*what)),
            GitOperation::StashApply { number, pop: true } => Some(GitOperation::StashDrop { number: *number }),
            GitOperation::KeepConflicts(operation) => operation.completion(),
            _ => None, // tidy: open because a stash that is applied has no end, and nothing else stops at conflicts.
        }
    }

    /// Returns whether it stages or commits whatever has changed, without naming files.
    fn takes_all_changes(&self) -> bool {
        match self {
            GitOperation::Add { files } => files.is_empty() || files.as_slice() == ["."],
            GitOperation::Commit { files, all, .. } => *all || files.as_slice() == ["."],
            _ => false, // tidy: open because no other operation stages files.
        }
    }

    /// Returns whether it can be repeated after it failed at a lock. A stash is made or taken back in several steps.
    fn is_repeatable(&self) -> bool {
        !matches!(self, GitOperation::StashPush { .. } | GitOperation::StashApply { .. })
    }

    /// Returns whether it writes files first and moves the branch or `HEAD` afterwards.
    fn moves_head_last(&self) -> bool {
        let is_other = matches!(self, GitOperation::Switch { .. } | GitOperation::Continue(_) | GitOperation::Abort(_));
        is_other || self.abort().is_some()
    }
}

/// Returns a path that Git takes as it is, without wildcards.
fn literal(file: &str) -> String {
    format!("{}{file}", errors::LITERAL_MARK)
}

/// Runs an operation in a folder, and returns what Git printed.
///
/// `progress` gets each line of Git's messages as it comes, untrusted and without its end. `is_canceled` is asked
/// often; after a cancel, Git gets three seconds to tidy up.
///
/// A merge or rebase with conflicts is taken back, so that no file has conflict markers, unless it's in
/// [`GitOperation::KeepConflicts`]; notes then have no markers, either. One that stops halfway at a lock file is taken
/// back always, and tried again if the lock is gone within a second: prompts that show Git's status lock the index.
///
/// A clone is made in a hidden folder beside the new one, which gets its name at the end: a clone that is killed leaves
/// nothing that looks whole. The next clone removes what is left.
///
/// # Errors
/// Returns a [`GitProgramError`]; its text says what the user can do.
pub fn run(
    folder: &Path,
    operation: &GitOperation,
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<String, GitProgramError> {
    run_at((folder, None), operation, caller, progress, is_canceled)
}

/// Runs an operation like [`run`] in a folder that a workspace may have as a volume. Conflicts of notes that the
/// recorded edits of both sides decide are merged by them. If all are, the operation is completed.
///
/// # Errors
/// As for [`run`].
pub fn run_in_workspace(
    (folder, workspace): (&Path, &Path),
    operation: &GitOperation,
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<String, GitProgramError> {
    run_at((folder, Some(workspace)), operation, caller, progress, is_canceled)
}

fn run_at(
    (folder, workspace): (&Path, Option<&Path>),
    operation: &GitOperation,
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<String, GitProgramError> {
    if let GitOperation::Clone { folder: target, .. } = operation {
        // Git refuses a folder that isn't empty, and says so.
        let target = folder.join(target);
        if target.symlink_metadata().is_err() {
            return clone_apart(folder, (operation, &target), caller, progress, is_canceled);
        }
    }
    let mut locked_since: Option<Instant> = None;
    loop {
        let done = run_once((folder, workspace), operation, caller, progress, is_canceled);
        let lock = match &done {
            Err(GitProgramError::Locked { lock } | GitProgramError::PushedButLocked { lock }) => Some(lock.clone()),
            Err(GitProgramError::RemoteLocked { .. }) => None,
            _ => return done, // tidy: open because nothing else goes away by itself
        };
        // The time that the operation itself takes doesn't count: a push over a slow network is tried again, too.
        let since = *locked_since.get_or_insert_with(Instant::now);
        let is_over = || since.elapsed() > MAX_LOCK_WAIT || is_canceled();
        match lock {
            Some(lock) => {
                while lock.exists() && !is_over() {
                    std::thread::park_timeout(Duration::from_millis(20));
                }
            }
            None => std::thread::park_timeout(REMOTE_LOCK_PAUSE),
        }
        if is_over() || !operation.is_repeatable() {
            return done;
        }
    }
}

/// Clones into a hidden folder, and gives it its name once all is there.
fn clone_apart(
    here: &Path,
    (operation, target): (&GitOperation, &Path),
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<String, GitProgramError> {
    let fail = |source| GitProgramError::NotCreated { folder: target.to_owned(), source };
    let place = ClonePlace::create(target).map_err(fail)?;
    let files = place.files();
    let named = |text: &str| text.replace(&*files.to_string_lossy(), &target.to_string_lossy());
    let mut operation = operation.clone();
    if let GitOperation::Clone { folder, .. } = &mut operation {
        folder.clone_from(&files);
    }
    let said = run_once((here, None), &operation, caller, &mut |line| progress(&named(line)), is_canceled)?;
    place.finish(target).map_err(fail)?;
    Ok(named(&said))
}

/// Runs an operation once, whatever locks there are.
fn run_once(
    (folder, workspace): (&Path, Option<&Path>),
    operation: &GitOperation,
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<String, GitProgramError> {
    if operation.moves_head_last() {
        refuse_locked_head(folder, caller, is_canceled)?;
    }
    let abort = operation.abort();
    let is_begun_before = abort.is_some() && has_half_done_operation(folder, caller)?;
    let mut words = operation.arguments();
    if operation.takes_all_changes() {
        let left_out = leave_out_moved_submodules(folder, caller)?;
        if matches!(operation, GitOperation::Commit { all: true, .. }) && !left_out.is_empty() {
            // Git's own --all takes no such pattern.
            let mut add: Vec<OsString> = ["add", "--update", "--", ":/"].map(OsString::from).into();
            add.extend(left_out);
            let added = run_git(folder, &add, caller, progress, is_canceled)?;
            if !added.success {
                return Err(errors::explain(folder, &added.messages, &added.output));
            }
            words.retain(|word| word != "--all");
        } else {
            words.extend(left_out);
        }
    }
    let mut done = run_git(folder, &words, caller, progress, is_canceled)?;
    let is_undoable = abort.is_some() && !matches!(operation, GitOperation::KeepConflicts(_));
    let mut merged: Vec<String> = Vec::new();
    // A rebase can stop at each of its commits; these are the notes of the last stop, as Git names them.
    while let Some(workspace) = workspace
        && !done.success
        && !errors::conflicting_files(&done.output).is_empty()
    {
        let notes = merge_by_histories(folder, workspace, is_undoable);
        let is_staged = stage_merged(folder, operation, &notes.paths, caller)?;
        merged = notes.names;
        if !(is_staged && notes.is_complete) {
            break;
        }
        let Some(completion) = operation.completion() else { return Ok(MERGED_NOTES.to_owned()) };
        // Git has put none of a stash's new files back if one of them is there already.
        if let GitOperation::StashDrop { number } = &completion
            && has_new_files(folder, *number, caller)?
        {
            return Ok(KEPT_STASH.to_owned());
        }
        let completed = run_git(folder, &completion.arguments(), caller, progress, is_canceled);
        let has_stopped = |run: &GitOutput| !run.success && errors::conflicting_files(&run.output).is_empty();
        if let Some(abort) = abort.filter(|_| is_undoable && completed.as_ref().map_or(true, has_stopped)) {
            // A hook refused the commit, or the user canceled. If this fails, the next try says what is under way.
            let _ = run_silently(folder, abort, caller)?;
        }
        done = completed?;
    }
    if done.success {
        unmarked_notes::forget_past_choices(folder, operation, !merged.is_empty());
        if errors::has_stashed_conflict(&done.messages) {
            let _ = unmarked_notes::take_out_markers(folder); // if it fails, Git's markers stay
            return Err(GitProgramError::StashedConflict { files: unmarked_notes::files_in_conflict(folder) });
        }
        // Git says that it couldn't note what the remote has now, and counts that as success.
        let lock = matches!(operation, GitOperation::Push { .. }).then(|| errors::lock_file(folder, &done.messages));
        return match lock.flatten() {
            Some(lock) => Err(GitProgramError::PushedButLocked { lock }),
            None => Ok(done.printed()),
        };
    }
    let mut conflicts = errors::conflicting_files(&done.output);
    if !conflicts.is_empty() {
        let is_undone = match abort.filter(|_| is_undoable) {
            Some(abort) => run_silently(folder, abort, caller)?.success,
            None => false,
        };
        if is_undone {
            unmarked_notes::forget_past_choices(folder, operation, workspace.is_some());
        } else {
            conflicts.retain(|file| !merged.contains(file));
            let _ = unmarked_notes::take_out_markers(folder); // if it fails, Git's markers stay
        }
        return Err(GitProgramError::Conflict { files: conflicts, is_undone });
    }
    let why = errors::explain(folder, &done.messages, &done.output);
    if let (Some(abort), GitProgramError::Locked { .. }) = (abort, &why)
        && !is_begun_before
        && has_half_done_operation(folder, caller)?
    {
        // If it can't be taken back now, the next try says what is under way.
        let _ = run_silently(folder, abort, caller)?;
    }
    if let GitOperation::Abort(HalfDoneOperation::Rebase) | GitOperation::Continue(HalfDoneOperation::Rebase) =
        operation
        && matches!(why, GitProgramError::Other(_))
        && is_remnant_of_rebase(folder, caller)?
        && run_silently(folder, &["rebase", "--quit"], caller)?.success
    {
        return Ok(NO_REBASE.to_owned());
    }
    Err(why)
}

/// What is said if a stash was applied, and notes that were in conflict with it are merged.
const MERGED_NOTES: &str = "Notes that both sides have changed were merged by their histories.";

/// What is said if a stash that notes were merged with isn't deleted.
const KEPT_STASH: &str = "Notes that both sides have changed were merged by their histories. The stash has new files, \
     too, so it is kept. Delete it once they are here.";

/// Returns whether a stash has files that Git didn't know: they are in its third parent, which can be missing or empty.
fn has_new_files(folder: &Path, number: usize, caller: GitCaller) -> Result<bool, GitProgramError> {
    let parent = format!("stash@{{{number}}}^3");
    let listed = run_silently(folder, &["ls-tree", "--name-only", &parent], caller)?;
    Ok(listed.success && !listed.output.trim().is_empty())
}

/// Stages notes that were merged; what comes from a stash is only out of conflict then. Returns whether Git could.
fn stage_merged(
    folder: &Path,
    operation: &GitOperation,
    paths: &[String],
    caller: GitCaller,
) -> Result<bool, GitProgramError> {
    if paths.is_empty() {
        return Ok(true);
    }
    let files = paths.to_vec();
    let stage = match operation {
        GitOperation::StashApply { .. } => GitOperation::Unstage { files },
        _ => GitOperation::Add { files }, // tidy: open because everything else ends with a commit.
    };
    Ok(run_git(folder, &stage.arguments(), caller, &mut |_| {}, &|| false)?.success)
}

/// Returns patterns that leave out submodules whose checked out commit isn't the recorded one.
///
/// A pull moves what is recorded, and not the submodule: staging all changes would move it back. No list of changes
/// shows that, so only a file list that names a submodule takes it.
fn leave_out_moved_submodules(folder: &Path, caller: GitCaller) -> Result<Vec<OsString>, GitProgramError> {
    // `dirty` starts no Git inside of them.
    let listed = run_silently(folder, &["diff-files", "--raw", "-z", "--ignore-submodules=dirty"], caller)?;
    let mut parts = listed.output.split('\0');
    let mut patterns = Vec::new();
    while let (Some(change), Some(path)) = (parts.next(), parts.next()) {
        if change.starts_with(":160000 ") {
            patterns.push(format!(":(exclude,top,literal){path}").into());
        }
    }
    Ok(patterns)
}

/// What is said of a rebase of which only files are left.
const NO_REBASE: &str = "No rebase was under way; files that Git had left of one are removed.";

/// Returns whether Git was killed before it had noted down a rebase, or after the end while it removed its notes.
///
/// Git can't read such notes, and neither continues nor takes anything back. It leaves the branch for a detached `HEAD`
/// once all are written, and is back on it before it removes any.
fn is_remnant_of_rebase(folder: &Path, caller: GitCaller) -> Result<bool, GitProgramError> {
    let words = ["rev-parse", "--git-path", "rebase-merge", "--git-path", "rebase-apply"];
    let paths = run_silently(folder, &words, caller)?.output;
    let Some(notes) = paths.lines().map(|path| folder.join(path)).find(|notes| notes.is_dir()) else {
        return Ok(false);
    };
    let is_written = |name: &&str| notes.join(name).metadata().is_ok_and(|meta| meta.len() > 0);
    let is_complete = ["head-name", "onto", "orig-head"].iter().all(is_written);
    // `git am` has other notes in `rebase-apply`.
    let is_of_rebase = !notes.join("applying").exists();
    let is_on_branch = || run_silently(folder, &["symbolic-ref", "--quiet", "HEAD"], caller);
    Ok(is_of_rebase && !is_complete && is_on_branch()?.success)
}

/// Time that another Git program gets to release its lock of the branch or of `HEAD`.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);
/// Pause before a push is tried again that met a lock on the remote's device, which can't be watched from here.
const REMOTE_LOCK_PAUSE: Duration = Duration::from_millis(300);

/// Returns an error if another Git program has locked the branch or `HEAD`, or has left such a lock.
///
/// Git notices such a lock too late: it has written files and index by then, which look like changes of the user
/// afterwards, and `git rebase --abort` even reports success.
fn refuse_locked_head(folder: &Path, caller: GitCaller, is_canceled: &dyn Fn() -> bool) -> Result<(), GitProgramError> {
    let mut words = vec!["rev-parse", "--git-path", "HEAD.lock", "--git-path", "rebase-merge/head-name"];
    let head = run_silently(folder, &["symbolic-ref", "--quiet", "HEAD"], caller)?;
    let paths = run_silently(folder, &words, caller)?;
    let Some((_, noted)) = paths.output.split_once('\n').filter(|_| paths.success) else {
        return Ok(()); // no repository: the operation says so
    };
    let branch = match head.success {
        true => head.output,
        false => std::fs::read_to_string(folder.join(noted.trim_end_matches('\n'))).unwrap_or_default(),
    };
    let branch_lock = format!("{}.lock", branch.trim());
    if branch_lock.starts_with("refs/heads/") {
        words.extend(["--git-path", &branch_lock]);
    }
    let paths = run_silently(folder, &words, caller)?.output;
    let locks: Vec<PathBuf> =
        paths.lines().filter(|path| path.ends_with(".lock")).map(|path| folder.join(path)).collect();
    let begun = Instant::now();
    while let Some(lock) = locks.iter().find(|lock| lock.exists()) {
        if begun.elapsed() > MAX_LOCK_WAIT || is_canceled() {
            return Err(GitProgramError::Locked { lock: lock.clone() });
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns whether a merge or rebase of the folder's repository has begun and isn't over.
fn has_half_done_operation(folder: &Path, caller: GitCaller) -> Result<bool, GitProgramError> {
    let words = ["rev-parse", "--git-path", "rebase-merge", "--git-path", "rebase-apply", "--git-path", "MERGE_HEAD"];
    let done = run_silently(folder, &words, caller)?;
    Ok(done.success && done.output.lines().any(|path| folder.join(path).exists()))
}

fn run_silently(folder: &Path, words: &[&str], caller: GitCaller) -> Result<GitOutput, GitProgramError> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    run_git(folder, &words, caller, &mut |_| {}, &|| false)
}

#[cfg(test)]
mod tests;
