//! Errors of Git in words that say what to do.

use std::path::{Path, PathBuf};

/// Maximum number of lines of Git's own message in an error.
const MAX_MESSAGE_LINES: usize = 6;
/// Maximum number of files that an error names.
const MAX_NAMED_FILES: usize = 10;
/// What stands before a path that Git takes as it is, without wildcards.
pub(crate) const LITERAL_MARK: &str = ":(literal)";

/// What is said if Git says nothing, as when a hook ends without a word.
const NO_REASON: &str = "it gave no reason. One of the repository's hooks may have stopped it.";

/// Why an operation of Git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitProgramError {
    /// There's no `git` on this device.
    #[error(
        "Git isn't installed, and this needs it. Install it from https://git-scm.com or with your package manager, and \
         try again."
    )]
    NotInstalled,
    /// Git can't be started.
    #[error("Git can't be started in {} ({source}).", folder.display())]
    NotStarted {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder of a clone can't be created.
    #[error("Can't create {}: {source}. Choose another folder.", folder.display())]
    NotCreated {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The operation was canceled.
    #[error("cancelled")]
    Canceled,
    /// Both sides changed the same places.
    #[error("Both sides have changed the same lines of {}. {}", named_files(files), conflict_advice(*is_undone))]
    Conflict {
        /// Paths of the files in the repository.
        files: Vec<String>,
        /// Whether everything is as it was before.
        is_undone: bool,
    },
    /// It's done, but changes that Git had put aside for it (`rebase.autoStash`) conflict with what came.
    #[error(
        "The commits are here, but your changes that weren't committed conflict with them{}. Choose a side for each \
         conflict. Git keeps these changes in a stash, too; `git stash drop` deletes it.",
        in_files(files)
    )]
    StashedConflict {
        /// Paths of the files in conflict.
        files: Vec<String>,
    },
    /// The remote has commits that aren't here.
    #[error("The remote has commits that aren't here, so nothing was pushed. Pull first, then push again.")]
    Rejected,
    /// A hook or a rule of the remote refused it.
    #[error("The remote refused the push: {0}")]
    Refused(String),
    /// The remote didn't accept the credentials, or there are none.
    #[error(
        "The remote didn't accept your credentials, or there are none. Set them up with a credential helper or an SSH \
         key, and check with `git fetch` in a terminal. Git says: {0}"
    )]
    Credentials(String),
    /// The remote's certificate isn't one that Git trusts.
    #[error(
        "The remote's certificate isn't trusted, so nothing was sent. If the server is yours, name its certificate in \
         Git's setting http.sslCAInfo. Git says: {0}"
    )]
    Certificate(String),
    /// The remote's host key isn't one that SSH knows.
    #[error(
        "The remote's host key isn't known on this device, or it has changed, so nothing was sent. Check the key, and \
         connect once with `ssh` in a terminal. Git says: {0}"
    )]
    HostKey(String),
    /// The remote can't be reached.
    #[error("The remote can't be reached; nothing has changed. Git says: {0}")]
    Unreachable(String),
    /// The connection ended before the remote had said that all is done.
    #[error(
        "The connection to the remote broke off. Your files and commits are as they were. Try again; what has arrived \
         isn't sent twice. Git says: {0}"
    )]
    BrokenOff(String),
    /// Another Git program has locked the repository, or was killed.
    #[error(
        "Another program works in this repository, or was interrupted. If none is running, delete {} and try again.",
        lock.display()
    )]
    Locked {
        /// The lock file.
        lock: PathBuf,
    },
    /// The commits are on the remote, and a lock here kept Git from noting that.
    #[error(
        "The commits are pushed, but this repository can't note that: another program works in it, or was interrupted. \
         If none is running, delete {} and push again.",
        lock.display()
    )]
    PushedButLocked {
        /// The lock file.
        lock: PathBuf,
    },
    /// Another Git program has locked the remote on its own device, or was killed there.
    #[error(
        "Another program works in the remote repository, or was interrupted there, so nothing was pushed. Try again \
         later. If none is running there, delete {lock} on the remote's device."
    )]
    RemoteLocked {
        /// The lock file, as the remote names it.
        lock: String,
    },
    /// Files with changes would be overwritten.
    #[error("Changes that aren't committed would be lost, so nothing was done. Commit or stash them first: {0}")]
    WouldOverwrite(String),
    /// Files are in conflict still.
    #[error("Files are still in conflict. Choose a side for each, or resolve and stage them, and try again.")]
    Unmerged,
    /// A merge, rebase or the like isn't over.
    #[error(
        "A merge, rebase or the like is under way in this repository, as `git status` says. Continue it or abort it, \
         and try again."
    )]
    UnderWay,
    /// A branch has commits that no other has.
    #[error(
        "The branch has commits that aren't merged, so it wasn't deleted. Merge it first, or delete it with `git \
         branch -D NAME`."
    )]
    NotMerged,
    /// There was nothing to commit.
    #[error("Nothing has changed since the last commit.")]
    NothingToCommit,
    /// Git doesn't know the user.
    #[error(
        "Git doesn't know who you are. Run `git config --global user.name NAME` and `git config --global user.email \
         ADDRESS`."
    )]
    Nobody,
    /// The repository belongs to another user.
    #[error(
        "The repository belongs to another user. `git config --global --add safe.directory {}` trusts it.",
        vcs::shell_word(&folder.display().to_string())
    )]
    Owner {
        /// The folder.
        folder: PathBuf,
    },
    /// Git knows no file that is called so.
    #[error("There's no file or folder {0} here.")]
    NoFile(String),
    /// No branch, tag or commit is called so.
    #[error("No branch, tag or commit is called {0}. `git branch` lists the branches, `git tag` the tags.")]
    NoRevision(String),
    /// There's no stash with the number.
    #[error("There's no stash with this number. `git stash list` lists them.")]
    NoStash,
    /// The branch follows no branch of a remote.
    #[error(
        "This branch follows no branch of a remote, so there's nothing to pull. Push it first, or choose one with `git \
         branch --set-upstream-to=REMOTE/BRANCH`."
    )]
    NoUpstream,
    /// A commit is checked out instead of a branch, so there's nothing that a pull could change.
    #[error("No branch is checked out, so there's nothing to pull into. Switch to a branch first.")]
    NoBranch,
    /// Another error, in Git's words.
    #[error("Git failed: {0}")]
    Other(String),
}

fn named_files(files: &[String]) -> String {
    let shown = files.iter().take(MAX_NAMED_FILES).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_NAMED_FILES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn in_files(files: &[String]) -> String {
    if files.is_empty() { String::new() } else { format!(" in {}", named_files(files)) }
}

fn conflict_advice(is_undone: bool) -> &'static str {
    match is_undone {
        true => "Nothing was merged, and your files are as they were.",
        false => "Choose a side for each conflict, then continue or commit.",
    }
}

/// Returns whether a line is Git's progress, such as `Receiving objects:  50% (1/2)`.
pub(crate) fn is_percentage(line: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    line.split_once("% (").is_some_and(|(before, after)| before.ends_with(is_digit) && after.starts_with(is_digit))
}

/// Returns whether Git couldn't bring back changes that it had put aside itself, which it counts as success.
pub(crate) fn has_stashed_conflict(messages: &str) -> bool {
    messages.contains("Applying autostash resulted in conflicts")
}

/// Returns the files with conflicts that Git's output names.
pub(crate) fn conflicting_files(output: &str) -> Vec<String> {
    let file = |line: &str| {
        let rest = line.strip_prefix("CONFLICT (")?;
        let (_, rest) = rest.split_once("): ")?;
        let file = match rest.split_once("Merge conflict in ") {
            Some((_, file)) => file,
            None => rest.split(" deleted in ").next()?.split(" renamed ").next()?,
        };
        Some(file.trim().to_owned())
    };
    let mut files: Vec<String> = output.lines().filter_map(file).collect();
    files.dedup();
    files
}

/// Returns the file that Git doesn't know, without the mark that this crate puts before names.
fn unknown_file(messages: &str) -> Option<String> {
    messages.lines().find_map(|line| {
        let (_, rest) = line.split_once("pathspec '")?;
        let (file, _) = rest.rsplit_once("' did not match any file")?;
        Some(file.strip_prefix(LITERAL_MARK).unwrap_or(file).to_owned())
    })
}

/// Returns the branch, tag or commit that Git doesn't know.
fn unknown_revision(messages: &str) -> Option<String> {
    let around = [
        ("fatal: invalid reference: ", ""),
        ("fatal: invalid upstream '", "'"),
        ("fatal: not a valid object name: '", "'"),
        ("fatal: Not a valid object name: '", "'."),
        ("fatal: Failed to resolve '", "' as a valid ref."),
        ("merge: ", " - not something we can merge"),
        ("error: branch '", "' not found"),
        ("error: branch '", "' not found."),
        ("error: tag '", "' not found."),
    ];
    let named = |line: &str, (start, end): (&str, &str)| {
        line.strip_prefix(start)?.strip_suffix(end).filter(|name| !name.is_empty()).map(str::to_owned)
    };
    messages.lines().find_map(|line| around.iter().find_map(|words| named(line.trim_end(), *words)))
}

/// Returns the error that Git's messages mean.
pub(crate) fn explain(folder: &Path, messages: &str, output: &str) -> GitProgramError {
    let has = |words: &[&str]| words.iter().any(|words| messages.contains(words) || output.contains(words));
    let useful = |line: &&str| {
        let line = line.trim();
        let is_progress =
            ["hint:", "Cloning into ", "Enumerating objects:", "Total "].iter().any(|one| line.starts_with(one));
        // A push that broke off ends with what an empty one says.
        !line.is_empty() && !is_progress && !is_percentage(line) && line != "Everything up-to-date"
    };
    let text = || {
        let lines: Vec<&str> = messages.lines().chain(output.lines()).filter(useful).map(str::trim).collect();
        let start = lines.len().saturating_sub(MAX_MESSAGE_LINES);
        lines[start..].join("; ")
    };
    // Some subcommands don't say which lock is in their way.
    let silent = [
        ("index.lock", &["could not write index", "unable to write new index"][..]),
        ("refs/stash.lock", &["Cannot save the current status", "Cannot update refs/stash"]),
    ];
    let left = || silent.iter().find_map(|(name, words)| repository_file(folder, name).filter(|_| has(words)));
    if let Some(lock) = lock_file(folder, messages).or_else(left) {
        return GitProgramError::Locked { lock };
    }
    if let Some(lock) = remote_lock(messages) {
        return GitProgramError::RemoteLocked { lock };
    }
    if let Some(file) = unknown_file(messages) {
        GitProgramError::NoFile(file)
    } else if let Some(name) = unknown_revision(messages) {
        GitProgramError::NoRevision(name)
    } else if has(&["log for 'stash' only has", "error: stash@{"]) {
        GitProgramError::NoStash
    } else if has(&["There is no tracking information for the current branch"]) {
        GitProgramError::NoUpstream
    } else if has(&["You are not currently on a branch"]) {
        GitProgramError::NoBranch
    } else if has(&["dubious ownership"]) {
        GitProgramError::Owner { folder: folder.to_owned() }
    } else if has(&["Please tell me who you are", "unable to auto-detect email address", "empty ident name"]) {
        GitProgramError::Nobody
    } else if has(&[
        "you have unmerged files",
        "You must edit all merge conflicts",
        "is not possible because you have",
        ": needs merge",
    ]) {
        GitProgramError::Unmerged
    } else if has(&["cannot switch branch while", "already a rebase-", "You have not concluded your"]) {
        GitProgramError::UnderWay
    } else if has(&["is not fully merged"]) {
        GitProgramError::NotMerged
    } else if has(&["would be overwritten", "You have unstaged changes", "Your index contains uncommitted changes"]) {
        GitProgramError::WouldOverwrite(text())
    } else if has(&["nothing to commit", "nothing added to commit", "no changes added to commit"]) {
        GitProgramError::NothingToCommit
    } else if has(&["(fetch first)", "(non-fast-forward)", "(stale info)"]) {
        GitProgramError::Rejected
    } else if has(&["[remote rejected]", "[rejected]", "RPC failed; HTTP 4"]) {
        GitProgramError::Refused(text())
    } else if has(&[
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "Permission denied (",
        "terminal prompts disabled",
    ]) {
        GitProgramError::Credentials(text())
    } else if has(&["Host key verification failed"]) {
        GitProgramError::HostKey(text())
    } else if has(&["certificate verification failed", "SSL certificate problem", "certificate subject name"]) {
        GitProgramError::Certificate(text())
    } else if has(&[
        "Could not resolve host",
        "Failed to connect",
        "Couldn't connect",
        "Connection refused",
        "Connection timed out",
        "Could not read from remote repository",
        "does not appear to be a git repository",
        "unable to access",
    ]) {
        GitProgramError::Unreachable(text())
    } else if has(&["unexpected disconnect", "hung up unexpectedly", "early EOF", "RPC failed"]) {
        GitProgramError::BrokenOff(text())
    } else {
        GitProgramError::Other(Some(text()).filter(|text| !text.is_empty()).unwrap_or_else(|| NO_REASON.to_owned()))
    }
}

/// Returns a file of Git's own in the repository that has the folder, if it's there.
fn repository_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let own = vcs::git_folder(folder)?;
    // A worktree shares all but a few files with the repository that it's of.
    let shared = std::fs::read_to_string(own.join("commondir")).ok().map(|path| own.join(path.trim_end()));
    [Some(own), shared].into_iter().flatten().map(|git| git.join(name)).find(|file| file.exists())
}

/// Returns the lock file that Git couldn't create. Those of a remote on another device aren't meant.
pub(crate) fn lock_file(folder: &Path, messages: &str) -> Option<PathBuf> {
    let is_here = |line: &str, lock: &Path| !line.starts_with("remote:") || lock.exists();
    messages.lines().filter(|line| line.contains("File exists")).find_map(|line| {
        let locked = || line.split_once("could not lock '").and_then(|(_, rest)| rest.split_once('\''));
        let config = || line.split_once("could not lock config file ").and_then(|(_, rest)| rest.rsplit_once(": "));
        let lock = quoted_lock(line).map(str::to_owned);
        let lock = lock.or_else(|| Some(format!("{}.lock", locked().or_else(config)?.0)))?;
        let in_folder = folder.join(&lock);
        let found = if in_folder.exists() { in_folder } else { lock.into() };
        // A remote writes `/./` before a path in it.
        Some(found.components().collect()).filter(|lock: &PathBuf| is_here(line, lock))
    })
}

/// Returns the lock file that a remote on another device names.
fn remote_lock(messages: &str) -> Option<String> {
    let mut lines = messages.lines().filter(|line| line.starts_with("remote:") && line.contains("File exists"));
    lines.find_map(quoted_lock).map(|lock| lock.replace("/./", "/"))
}

/// Returns the lock file that a message has in quotes. Another quoted name may come first, such as that of a reference.
fn quoted_lock(line: &str) -> Option<&str> {
    line.split('\'').find(|part| part.ends_with(".lock"))
}
