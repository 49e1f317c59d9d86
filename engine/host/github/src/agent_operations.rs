//! What agents do in a folder from GitHub, with results as text. Everything but a status uses the network.

use crate::api_client::{ApiClient, ApiControl};
use crate::api_error::GitHubError;
use crate::commit::commit_files;
use crate::endpoints::RepositoryApi;
use crate::folder_record::FolderState;
use crate::folder_status::read_status;
use crate::local_files::path_in_folder;
use crate::pull::{PullSummary, pull};
use std::path::Path;
use vcs::Commit;

/// Number of commits that a fetch lists.
const FETCHED_COMMITS: usize = 20;

/// An operation in a folder from GitHub that uses the network.
#[derive(Clone, Copy, Debug)]
pub enum AgentOperation<'a> {
    /// Lists the branch's last commits at GitHub.
    Fetch,
    /// Gets the branch's last commit and merges it. A conflict changes nothing.
    Pull,
    /// Commits to the branch at GitHub.
    Commit {
        /// The message.
        message: &'a str,
        /// Paths in the part of the folder; empty for all changed files there.
        files: &'a [String],
    },
}

/// Returns what has changed in a part of a folder from GitHub, as text. Asks nobody.
///
/// # Errors
/// As for [`read_status`].
pub fn describe_status(root: &Path, part: &str) -> Result<String, GitHubError> {
    let status = read_status(root, part)?;
    let branch = status.branch.branch.unwrap_or_default();
    let head = status.branch.head.as_deref().map(short_hash).unwrap_or_default().to_owned();
    let mut lines = vec![format!("on {branch} at {head}, from {} of GitHub without Git", status.repository)];
    if status.branch.under_way.is_some() {
        lines.push("a pull has stopped halfway; git_pull finishes it".to_owned());
    }
    lines.extend(status.changes.iter().map(|change| format!("{} {}", change.kind.letters(), change.path)));
    if status.changes.is_empty() {
        lines.push("nothing has changed since the last pull or commit".to_owned());
    }
    if !status.is_complete {
        lines.push(format!("… more than {} files …", vcs::MAX_STATUS_FILES));
    }
    Ok(lines.join("\n"))
}

/// Performs an operation in a part of a folder from GitHub, and returns what was done as text.
///
/// # Errors
/// Returns a [`GitHubError`] as [`pull`] and [`commit_files`] do.
pub fn perform_for_agent(
    root: &Path,
    part: &str,
    client: &ApiClient,
    operation: AgentOperation<'_>,
    control: &ApiControl<'_>,
) -> Result<String, GitHubError> {
    let mut state = FolderState::open(root, client)?;
    match operation {
        AgentOperation::Fetch => {
            let text = describe_commits(&state, client, control)?;
            state.write_cache(client);
            Ok(text)
        }
        AgentOperation::Pull => Ok(describe_pull(&pull(&mut state, client, control, false)?)),
        AgentOperation::Commit { message, files } => {
            let mut paths = files.iter().map(|file| path_in_folder(part, file)).collect::<Result<Vec<_>, _>>()?;
            if paths.is_empty() && !part.is_empty() {
                paths.push(part.to_owned());
            }
            let made = commit_files(&mut state, client, control, message, &paths)?;
            let id = short_hash(&made.commit.id);
            let repository = state.record.repository_text();
            Ok(format!("committed to {repository}: {id} “{}”\n{}", made.commit.summary, made.files.join("\n")))
        }
    }
}

/// Lists the branch's last commits at GitHub, and says which of them the folder has.
fn describe_commits(state: &FolderState, client: &ApiClient, control: &ApiControl<'_>) -> Result<String, GitHubError> {
    let api = RepositoryApi { client, repository: &state.record.repository(), control };
    let newest = api.branch_commit(&state.record.branch)?;
    let commits = api.commits(&newest, FETCHED_COMMITS)?;
    let here = short_hash(&state.record.commit);
    let first = match newest == state.record.commit {
        true => format!("{} has no newer commits", state.record.branch),
        false => format!("{} has newer commits than {here}, which is here; git_pull gets them", state.record.branch),
    };
    Ok(commits.iter().map(describe_commit).fold(first, |text, line| text + "\n" + &line))
}

fn describe_commit(commit: &Commit) -> String {
    let day = jiff::Timestamp::from_second(commit.author_time).map(|time| time.strftime("%Y-%m-%d").to_string());
    let day = day.unwrap_or_else(|_| "----------".to_owned());
    format!("{} {day} {}: {}", short_hash(&commit.id), commit.author, commit.summary)
}

/// Says what a pull has done.
pub fn describe_pull(pulled: &PullSummary) -> String {
    if !pulled.is_new {
        return "Already up to date.".to_owned();
    }
    let mut text = format!("Pulled. Files written: {}, deleted: {}.", pulled.written, pulled.deleted);
    if !pulled.merged.is_empty() {
        text.push_str(&format!(" Merged with your changes: {}.", pulled.merged.join(", ")));
    }
    if !pulled.kept.is_empty() {
        let files = pulled.kept.join(", ");
        text.push_str(&format!(
            " In conflict: {files}. Your versions stay, and the others are beside them with (GitHub) in their names."
        ));
    }
    text
}

fn short_hash(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}
