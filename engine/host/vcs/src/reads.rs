//! Reads for people and agents: the branch and its remote, commits, branches and stashes.

use crate::diff_text::format_diff;
use crate::encodings::decode;
use crate::errors::VcsError;
use crate::repository_folder::{Commit, RepositoryFolder};
use git2::{Branch, BranchType, ConfigLevel, DiffOptions, ErrorCode, ObjectType, RepositoryState};

/// Maximum size in bytes of a file whose lines are blamed.
pub const MAX_BLAME_FILE_BYTES: u64 = 4 << 20;
/// Maximum number of branches and stashes in a list.
pub const MAX_LISTED_REFERENCES: usize = 2_000;
/// What is said where a remote is needed.
const NO_REMOTE: &str = "the repository has no remote; `git remote add origin URL` adds one";

/// The current branch, and its state against its remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BranchState {
    /// Name of the branch; `None` if no branch is checked out.
    pub branch: Option<String>,
    /// Hash of the last commit; `None` if there's none yet.
    pub head: Option<String>,
    /// The remote branch that it follows, such as `origin/main`.
    pub upstream: Option<String>,
    /// Number of commits that the remote branch doesn't have.
    pub ahead: usize,
    /// Number of commits that only the remote branch has.
    pub behind: usize,
    /// What is under way, such as `merge` or `rebase`; `None` if nothing is.
    pub under_way: Option<&'static str>,
}

/// How a pull brings commits of both sides together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullMode {
    /// By a merge.
    #[default]
    Merge,
    /// By a rebase.
    Rebase,
    /// By a rebase that keeps own merges.
    RebaseMerges,
}

/// A branch in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BranchInfo {
    /// Name of the branch, such as `main` or `origin/main`.
    pub name: String,
    /// Whether it's checked out.
    pub current: bool,
    /// Whether it's a branch of a remote.
    pub remote: bool,
    /// The remote branch that it follows.
    pub upstream: Option<String>,
    /// Hash of its last commit.
    pub id: String,
    /// The first line of that commit's message.
    pub summary: String,
}

/// A line of a file, and the commit that it's from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BlameLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Hash of the commit; `None` if the line isn't committed.
    pub id: Option<String>,
    /// Name of the author.
    pub author: String,
    /// When the author made the change, in seconds since 1970; `None` if the line isn't committed.
    pub author_time: Option<i64>,
    /// When the commit was made, in seconds since 1970; `None` if the line isn't committed.
    pub commit_time: Option<i64>,
    /// Text of the line, without its end.
    pub text: String,
}

/// Consecutive lines of a text that are from one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameSpan {
    /// Number of lines.
    pub lines: usize,
    /// The commit; `None` if the lines aren't committed.
    pub commit: Option<Commit>,
}

/// A stash: changes that were put aside.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StashInfo {
    /// Number of the stash; 0 is the newest.
    pub number: usize,
    /// Hash of its commit.
    pub id: String,
    /// Its description.
    pub message: String,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TagInfo {
    /// Its name.
    pub name: String,
    /// Hash of its commit.
    pub id: String,
    /// Hash of the object that it names: the commit, or a tag with a message.
    pub object: String,
    /// First line of its message, or of its commit's if it has none.
    pub summary: String,
}

impl RepositoryFolder {
    /// Returns the current branch and its state against its remote.
    ///
    /// # Errors
    /// Returns libgit2's error, here and in the methods below.
    pub fn branch_state(&self) -> Result<BranchState, VcsError> {
        let under_way = match self.repository.state() {
            RepositoryState::Clean => None,
            RepositoryState::Merge => Some("merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("cherry-pick"),
            RepositoryState::Bisect => Some("bisect"),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailbox
            | RepositoryState::ApplyMailboxOrRebase => Some("rebase"),
        };
        let mut state = BranchState { under_way, ..BranchState::default() };
        let head = match self.repository.head() {
            Ok(head) => head,
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                let name = self.repository.find_reference("HEAD")?;
                let name = name.symbolic_target_bytes().map(|name| String::from_utf8_lossy(name).into_owned());
                state.branch = name.map(|name| name.trim_start_matches("refs/heads/").to_owned());
                return Ok(state);
            }
            Err(error) => return Err(error.into()),
        };
        let id = head.peel_to_commit()?.id();
        state.head = Some(id.to_string());
        if !head.is_branch() {
            return Ok(state);
        }
        let branch = Branch::wrap(head);
        state.branch = Some(branch_name(&branch)?);
        if let Ok(upstream) = branch.upstream() {
            state.upstream = Some(branch_name(&upstream)?);
            let other = upstream.get().peel_to_commit()?.id();
            (state.ahead, state.behind) = self.repository.graph_ahead_behind(id, other)?;
        }
        Ok(state)
    }

    /// Returns how the current branch is pulled: by its own setting, or else by `pull.rebase`.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] for a value that Git doesn't know.
    pub fn pull_mode(&self) -> Result<PullMode, VcsError> {
        let config = self.repository.config()?;
        let branch = self.branch_state()?.branch;
        let own = branch.map(|branch| format!("branch.{branch}.rebase"));
        for name in own.into_iter().chain(["pull.rebase".to_owned()]) {
            match config.get_bool(&name) {
                Ok(true) => return Ok(PullMode::Rebase),
                Ok(false) => return Ok(PullMode::Merge),
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                Err(_) => {} // it may be a word
            }
            return match config.get_string(&name)?.as_str() {
                "merges" | "m" => Ok(PullMode::RebaseMerges),
                // Nobody edits the list of commits here.
                "interactive" | "i" => Ok(PullMode::Rebase),
                other => Err(VcsError::Refused(format!(
                    "the setting {name} of Git is “{other}”; set it to true, false or merges"
                ))),
            };
        }
        Ok(PullMode::Merge)
    }

    /// Returns the remote and the branch to name at the first push; `None` if the branch has a remote one already.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if no branch is checked out, if there's no remote, or if what wasn't committed
    /// when a fork began would be pushed.
    pub fn first_push_target(&self) -> Result<Option<(String, String)>, VcsError> {
        let state = self.branch_state()?;
        let Some(branch) = state.branch else {
            return Err(VcsError::Refused("no branch is checked out; switch to one first".to_owned()));
        };
        if state.head.is_none() {
            return Err(VcsError::Refused("there is no commit yet; commit something first".to_owned()));
        }
        self.refuse_pushed_snapshot()?;
        if state.upstream.is_some() {
            return Ok(None);
        }
        Ok(Some((self.default_remote()?, branch)))
    }

    /// Refuses to fetch where there's no remote. A branch may follow one of its own repository, which needs none.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's none.
    pub fn refuse_without_remote(&self) -> Result<(), VcsError> {
        match self.repository.remotes()?.is_empty() && self.branch_state()?.upstream.is_none() {
            true => Err(VcsError::Refused(NO_REMOTE.to_owned())),
            false => Ok(()),
        }
    }

    /// Returns the remote that is used when none is named: `origin`, or the only one.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's none.
    pub fn default_remote(&self) -> Result<String, VcsError> {
        let names = self.repository.remotes()?;
        let names: Vec<String> = names.iter().filter_map(|name| name.ok().flatten().map(ToOwned::to_owned)).collect();
        match names.as_slice() {
            names if names.iter().any(|name| name == "origin") => Ok("origin".to_owned()),
            [only] => Ok(only.clone()),
            [] => Err(VcsError::Refused(NO_REMOTE.to_owned())),
            [..] => Err(VcsError::Refused(format!(
                "the repository has several remotes and none is called origin: {}",
                names.join(", ")
            ))),
        }
    }

    /// Returns the value of a setting that counts in the repository.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn setting(&self, name: &str) -> Result<Option<String>, VcsError> {
        match self.repository.config()?.get_string(name) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a setting of the repository's own configuration.
    ///
    /// # Errors
    /// Returns libgit2's error, such as for a locked file.
    pub fn set_own_setting(&self, name: &str, value: &str) -> Result<(), VcsError> {
        Ok(self.repository.config()?.open_level(ConfigLevel::Local)?.set_str(name, value)?)
    }

    /// Returns a commit with its diff, as text, and whether the diff is complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no such commit.
    pub fn show(&self, name: &str) -> Result<(Commit, String, bool), VcsError> {
        self.show_commit(name, false)
    }

    /// Returns a commit with its whole message, its diff in which renamed files are marked, and whether that is
    /// complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no such commit.
    pub fn show_message(&self, name: &str) -> Result<(Commit, String, String, bool), VcsError> {
        let (commit, diff, whole) = self.show_commit(name, true)?;
        let found = self.repository.find_commit(git2::Oid::from_str(&commit.id)?)?;
        let message = commit_text(&found, found.message_bytes()).trim_end().to_owned();
        Ok((commit, message, diff, whole))
    }

    fn show_commit(&self, name: &str, finds_renames: bool) -> Result<(Commit, String, bool), VcsError> {
        if name == "HEAD" && self.head_tree()?.is_none() {
            return Err(VcsError::Refused("there is no commit yet; commit something first".to_owned()));
        }
        let unknown = |error: git2::Error| match error.code() {
            ErrorCode::NotFound | ErrorCode::InvalidSpec | ErrorCode::Ambiguous | ErrorCode::Peel => {
                VcsError::Refused(format!("no such commit, or more than one: {name}"))
            }
            _ => VcsError::from(error),
        };
        let object = self.repository.revparse_single(name).map_err(unknown)?;
        let object = object.peel(ObjectType::Commit).map_err(unknown)?;
        let commit = self.repository.find_commit(object.id())?;
        let before = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        let mut options = DiffOptions::new();
        options.disable_pathspec_match(true).max_size(10 << 20);
        if !self.prefix.is_empty() {
            options.pathspec(&self.prefix);
        }
        let tree = commit.tree()?;
        let mut diff = self.repository.diff_tree_to_tree(before.as_ref(), Some(&tree), Some(&mut options))?;
        if finds_renames {
            self.mark_renames(&mut diff)?;
        }
        let (text, whole) = format_diff(&diff)?;
        Ok((describe(&commit), text, whole))
    }

    /// Returns the staged changes as a unified diff, and whether it's complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn staged_diff(&self, path: Option<&str>) -> Result<(String, bool), VcsError> {
        self.staged_diff_paths(&path.map(ToOwned::to_owned).into_iter().collect::<Vec<_>>())
    }

    /// Returns what is staged of files and folders, or of all of the folder if none are named.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if a path leads out of the folder.
    pub fn staged_diff_paths(&self, paths: &[String]) -> Result<(String, bool), VcsError> {
        let mut options = self.diff_options(paths)?;
        let head = self.head_tree()?;
        let diff = self.repository.diff_tree_to_index(head.as_ref(), None, Some(&mut options))?;
        format_diff(&diff)
    }

    /// Returns the local branches and those of remotes.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn branches(&self) -> Result<Vec<BranchInfo>, VcsError> {
        let mut all = Vec::new();
        for found in self.repository.branches(None)?.take(MAX_LISTED_REFERENCES) {
            let (branch, kind) = found?;
            // `origin/HEAD` only points to another branch.
            let Ok(commit) = branch.get().peel_to_commit() else { continue };
            if branch.get().symbolic_target_bytes().is_some() {
                continue;
            }
            let upstream = branch.upstream().ok().map(|upstream| branch_name(&upstream)).transpose()?;
            all.push(BranchInfo {
                name: branch_name(&branch)?,
                current: branch.is_head(),
                remote: kind == BranchType::Remote,
                upstream,
                id: commit.id().to_string(),
                summary: describe(&commit).summary,
            });
        }
        all.sort_by(|one, other| (one.remote, &one.name).cmp(&(other.remote, &other.name)));
        Ok(all)
    }

    /// Creates a branch at the last commit, without switching to it.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the name is taken or isn't allowed, or if there's no commit yet.
    pub fn create_branch(&self, name: &str) -> Result<(), VcsError> {
        if name.starts_with('-') || !Branch::name_is_valid(name).unwrap_or(false) {
            return Err(VcsError::Refused(format!("a branch can't have this name: {name}")));
        }
        let commit = match self.repository.head() {
            Ok(head) => head.peel_to_commit()?,
            Err(error) if error.code() == ErrorCode::UnbornBranch => {
                return Err(VcsError::Refused("there is no commit yet; commit something first".to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        match self.repository.branch(name, &commit, false) {
            Ok(_) => Ok(()),
            Err(error) if error.code() == ErrorCode::Exists => {
                Err(VcsError::Refused(format!("a branch with that name already exists: {name}")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the tags by name. Tags of anything but a commit are left out.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn tags(&self) -> Result<Vec<TagInfo>, VcsError> {
        let mut all = Vec::new();
        for reference in self.repository.references_glob("refs/tags/*")?.take(MAX_LISTED_REFERENCES) {
            let reference = reference?;
            let Ok(commit) = reference.peel_to_commit() else { continue };
            let name = String::from_utf8_lossy(reference.shorthand_bytes()).into_owned();
            let first = |bytes: &[u8]| {
                let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
                String::from_utf8_lossy(line).into_owned()
            };
            let own = reference.peel_to_tag().ok().and_then(|tag| tag.message_bytes().map(first));
            all.push(TagInfo {
                name,
                id: commit.id().to_string(),
                object: reference.target().unwrap_or_else(|| commit.id()).to_string(),
                summary: own.unwrap_or_else(|| describe(&commit).summary),
            });
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Returns the stashes, newest first.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn stashes(&mut self) -> Result<Vec<StashInfo>, VcsError> {
        let mut all = Vec::new();
        self.repository.stash_foreach(|number, message, id| {
            let message = String::from_utf8_lossy(message.as_bytes()).into_owned();
            all.push(StashInfo { number, id: id.to_string(), message });
            all.len() < MAX_LISTED_REFERENCES
        })?;
        Ok(all)
    }

    /// Returns what a stash has changed as a unified diff with its new files, and whether it's complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no such commit.
    pub fn stash_diff(&self, id: &str) -> Result<(String, bool), VcsError> {
        let (_, mut text, mut is_complete) = self.show(id)?;
        // Files that Git didn't know are the third parent's.
        if self.repository.revparse_single(&format!("{id}^3")).is_ok() {
            let (_, new, is_whole) = self.show(&format!("{id}^3"))?;
            text.push_str(&new);
            is_complete &= is_whole;
        }
        Ok((text, is_complete))
    }
}

fn branch_name(branch: &Branch<'_>) -> Result<String, VcsError> {
    Ok(String::from_utf8_lossy(branch.name_bytes()?).into_owned())
}

/// Returns a part of a commit's text, which is in UTF-8, or else in the encoding that the commit names.
fn commit_text(commit: &git2::Commit<'_>, bytes: &[u8]) -> String {
    decode_text(bytes, commit.message_encoding().ok().flatten().unwrap_or_default())
}

fn decode_text(bytes: &[u8], encoding: &str) -> String {
    // Names of people are often in UTF-8 beside a message that isn't. All bytes of `iso-2022-jp` are ASCII, too.
    match std::str::from_utf8(bytes) {
        Ok(text) if !encoding.to_ascii_lowercase().starts_with("iso-2022") => text.to_owned(),
        Ok(_) | Err(_) => decode(bytes, encoding).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Returns the first paragraph of a commit's message in a line, as Git shows it.
fn subject(message: &[u8]) -> Vec<u8> {
    let lines = message.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let lines = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(&b' ')
}

/// Describes a commit as in the log.
pub(crate) fn describe(commit: &git2::Commit<'_>) -> Commit {
    let words = |bytes: &[u8]| commit_text(commit, bytes);
    Commit {
        id: commit.id().to_string(),
        author_time: commit.author().when().seconds(),
        commit_time: commit.time().seconds(),
        author: words(commit.author().name_bytes()),
        summary: words(&subject(commit.message_raw_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_commits_are_in_utf_8_or_in_the_named_encoding() {
        assert_eq!(decode_text("Zoë".as_bytes(), "ISO-8859-1"), "Zoë");
        assert_eq!(decode_text(b"\xc4rger", "ISO-8859-1"), "Ärger");
        assert_eq!(decode_text(b"\x1b$B$3$s\x1b(B", "ISO-2022-JP"), "こん");
        // Neither an unknown name nor a wrong one loses the text.
        assert_eq!(
            (decode_text("é".as_bytes(), "x"), decode_text(b"a\xff", "EUC-JP")),
            ("é".into(), "a\u{fffd}".into())
        );
    }

    #[test]
    fn the_first_paragraph_is_the_subject() {
        let subject = |text: &str| String::from_utf8(subject(text.as_bytes())).expect("text");
        assert_eq!(subject("One\n\nTwo\n"), "One");
        assert_eq!(subject("\n \nOne  \r\n two\n \nThree"), "One  two");
        assert_eq!((subject("One"), subject("")), ("One".to_owned(), String::new()));
    }
}
