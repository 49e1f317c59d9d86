//! What a repository says as text for agents.

use crate::diff_text::MAX_DIFF_BYTES;
use crate::errors::VcsError;
use crate::reads::{BlameLine, BranchInfo, BranchState};
use crate::repository_folder::{Commit, MAX_STATUS_FILES, RepositoryFolder};
use crate::revisions::CommitRange;
use std::time::Duration;

/// Number of digits of a hash in texts.
const SHORT_ID_DIGITS: usize = 8;

/// Number of commits in a log for agents by default.
const DEFAULT_TOOL_LOG_COMMITS: usize = 20;
/// Maximum number of commits in a log for agents.
const MAX_TOOL_LOG_COMMITS: usize = 200;

/// How long commits are searched for agents.
const TOOL_LOG_TIMEOUT: Duration = Duration::from_secs(20);

/// Describes the current branch in a sentence.
pub fn describe_branch(state: &BranchState) -> String {
    let branch = state.branch.as_deref().unwrap_or("no branch (a commit is checked out)");
    let remote = match &state.upstream {
        None => "it has no remote branch".to_owned(),
        Some(upstream) if state.ahead + state.behind == 0 => format!("even with {upstream}"),
        Some(upstream) => format!("{} ahead of and {} behind {upstream}", state.ahead, state.behind),
    };
    let under_way = state.under_way.map(|what| format!("; a {what} is under way")).unwrap_or_default();
    format!("on {branch}, {remote}{under_way}")
}

impl RepositoryFolder {
    /// Describes the changed files, and the branch if there's more to say of it than its name.
    ///
    /// # Errors
    /// Returns libgit2's error, here and in the methods below.
    pub fn status_text(&self) -> Result<String, VcsError> {
        let files = match self.status()? {
            (lines, _) if lines.is_empty() => "nothing has changed since the last commit".to_owned(),
            (lines, true) => lines.join("\n"),
            (lines, false) => format!("{}\n… more than {MAX_STATUS_FILES} files …", lines.join("\n")),
        };
        let state = self.branch_state()?;
        Ok(match state.upstream.is_some() || state.under_way.is_some() || state.branch.is_none() {
            true => format!("{}\n{files}", describe_branch(&state)),
            false => files,
        })
    }

    /// Describes what differs from the last commit, or between the commits that `revision` names as in `git diff`: in
    /// one file or folder, or in all of the folder.
    ///
    /// # Errors
    /// Returns [`VcsError::Missing`] if nothing has this path, and [`VcsError::Refused`] if it leads out of the
    /// folder or there's no such commit.
    pub fn diff_text(&self, revision: Option<&str>, path: Option<&str>) -> Result<String, VcsError> {
        let paths: Vec<String> = path.into_iter().map(ToOwned::to_owned).collect();
        let (text, is_complete, nothing) = match self.revision_diff(&revision_words(revision), false)? {
            Some(what) => {
                let compared = self.compare_versions(&what, &paths, false)?;
                (compared.text, compared.is_complete, "nothing differs")
            }
            None => {
                let (text, is_complete) = self.diff_paths(&paths)?;
                (text, is_complete, "nothing differs from the last commit")
            }
        };
        if let (true, Some(path)) = (text.is_empty() && revision.is_none(), path) {
            self.is_known_folder(path)?;
        }
        Ok(match is_complete {
            true if text.is_empty() => nothing.to_owned(),
            true => text,
            false => format!("{text}\n… more than {} MB …", MAX_DIFF_BYTES >> 20),
        })
    }

    /// Describes a commit: its message, and how it changed files. `day` formats a time in seconds since 1970.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no such commit.
    pub fn show_text(&self, name: &str, day: &dyn Fn(i64) -> String) -> Result<String, VcsError> {
        let (commit, message, diff, is_whole) = self.show_message(name)?;
        let rest = if is_whole { String::new() } else { format!("\n… more than {} MB …", MAX_DIFF_BYTES >> 20) };
        Ok(format!("{} {} {}\n{message}\n\n{diff}{rest}", commit.id, day(commit.author_time), commit.author))
    }

    /// Lists the stashes, each with its number.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn stashes_text(&mut self) -> Result<String, VcsError> {
        let stashes = self.stashes()?;
        Ok(match stashes.is_empty() {
            true => "nothing is stashed".to_owned(),
            false => stashes.iter().map(|stash| format!("{} {}\n", stash.number, stash.message)).collect(),
        })
    }

    /// Describes who last changed each line of a file. `day` formats a time in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error as [`RepositoryFolder::blame`] does.
    pub fn describe_blame(&self, path: &str, day: &dyn Fn(i64) -> String) -> Result<String, VcsError> {
        let line = |line: &BlameLine| {
            let id = line.id.as_deref().map_or("--------", short_id);
            let day = line.author_time.map_or_else(|| "----------".to_owned(), day);
            format!("{id} {day} {} {}: {}", line.author, line.line, line.text)
        };
        Ok(self.blame(path)?.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// Lists all branches, each with its last commit.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn branches_text(&self) -> Result<String, VcsError> {
        let line = |branch: &BranchInfo| {
            let mark = if branch.current { "* " } else { "  " };
            format!("{mark}{} {} {}", branch.name, short_id(&branch.id), branch.summary)
        };
        Ok(match self.branches()?.as_slice() {
            [] => "there is no commit yet".to_owned(),
            branches => branches.iter().map(line).collect::<Vec<_>>().join("\n"),
        })
    }

    /// Lists the last commits, or those that `revision` names as in `git log`: all of them, or those that changed a
    /// file. `day` formats a time in seconds since 1970.
    ///
    /// # Errors
    /// Returns [`VcsError::Missing`] if nothing has this path, and [`VcsError::Refused`] if there's no such commit,
    /// or if the path leads out of the folder or is a folder.
    pub fn log_text(
        &self,
        revision: Option<&str>,
        path: Option<&str>,
        limit: Option<usize>,
        day: &dyn Fn(i64) -> String,
    ) -> Result<String, VcsError> {
        let range = self.commit_range(&revision_words(revision))?;
        let limit = limit.unwrap_or(DEFAULT_TOOL_LOG_COMMITS).min(MAX_TOOL_LOG_COMMITS);
        let (commits, is_complete) = match path {
            None => self.log_range(&range, limit, TOOL_LOG_TIMEOUT)?,
            Some(path) if self.is_known_folder(path).unwrap_or(false) => {
                return Err(VcsError::Refused(format!("a log is of one file, and this is a folder: {path}")));
            }
            Some(path) => self.file_commits(path, &range, limit, TOOL_LOG_TIMEOUT)?,
        };
        let line = |commit: &Commit| {
            format!("{} {} {}: {}", short_id(&commit.id), day(commit.author_time), commit.author, commit.summary)
        };
        let mut lines: Vec<String> = commits.iter().map(line).collect();
        if !is_complete {
            lines.push("… older commits are left out, because the search takes too long …".to_owned());
        } else if lines.is_empty() {
            if let Some(path) = path {
                self.is_known_folder(path)?;
            }
            let has_begun = range != CommitRange::default();
            lines.push(if has_begun { "no commit".to_owned() } else { "there is no commit yet".to_owned() });
        }
        Ok(lines.join("\n"))
    }
}

/// Returns the revisions that a text names.
fn revision_words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect()
}

pub(crate) fn short_id(id: &str) -> &str {
    id.get(..SHORT_ID_DIGITS).unwrap_or(id)
}
