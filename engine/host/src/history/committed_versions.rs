//! The commits of Git among a note's versions.
//!
//! Which version of the note a commit has is found by the text, so a rebase, squash or amend loses nothing, and commits
//! of every program count. A commit made here has a record, too, which tells versions with the same text apart.

use std::path::Path;
use std::time::{Duration, Instant};
use store::NoteChange;
use text::commit_mark::CommitMark;
use text::history::{NoteHistory, VersionCommit};
use vcs::{Commit, FILE_LOG_TIMEOUT, FileCommit, MAX_FILE_LOG_COMMITS, RepositoryFolder, VcsError};

/// How long the note's versions are compared with those of commits.
const MATCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of changes before and after a commit's time whose text is compared.
const COMPARED_CHANGES: usize = 4;

/// A commit that changed a note's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedVersion {
    /// The commit.
    pub commit: Commit,
    /// Number of the note's changes after which it's as in the commit; `None` if only Git has this version.
    pub change: Option<usize>,
}

impl From<CommittedVersion> for VersionCommit {
    fn from(version: CommittedVersion) -> VersionCommit {
        let CommittedVersion { commit, change } = version;
        VersionCommit {
            id: commit.id,
            author: commit.author,
            author_time: commit.author_time,
            commit_time: commit.commit_time,
            change,
        }
    }
}

/// Returns the commits that changed a note's file, oldest first: those of the present branch, and those that brought
/// changes of the note. None are found where there's no repository.
pub fn committed_versions(root: &Path, path: &str, story: Option<&NoteHistory>) -> Vec<CommittedVersion> {
    let log = || -> Result<Vec<(Option<String>, FileCommit)>, VcsError> {
        let repository = RepositoryFolder::open(root)?;
        let (log, _) = repository.file_log(path, MAX_FILE_LOG_COMMITS, FILE_LOG_TIMEOUT)?;
        let heads = |of: &FileCommit| story.and_then(|_| repository.recorded_heads(&of.commit.id, path));
        Ok(log.into_iter().map(|of| (heads(&of), of)).collect())
    };
    let log = match vcs::is_in_repository(root) {
        true => log().unwrap_or_else(|error| {
            tracing::debug!(%error, "a file's commits could not be read");
            Vec::new()
        }),
        false => Vec::new(),
    };
    let until = Instant::now() + MATCH_TIMEOUT;
    let version = |(heads, of): (Option<String>, FileCommit)| {
        let change = story.and_then(|story| find_version(story, &of, heads.as_deref(), until));
        CommittedVersion { change, commit: of.commit }
    };
    let mut found: Vec<CommittedVersion> = log.into_iter().map(version).collect();
    // Without the repository, or after its history was rewritten, the changes still name the commits they came with.
    for (at, moment) in story.iter().flat_map(|story| story.past.moments.iter().enumerate()) {
        let Some(CommitMark { id, author, .. }) = mark_of(moment) else { continue };
        if found.iter().any(|known| known.commit.id == id || known.change == Some(at + 1)) {
            continue;
        }
        let (author_time, commit_time) = (moment.time, moment.time);
        let commit = Commit { id, author_time, commit_time, author, summary: String::new() };
        found.push(CommittedVersion { commit, change: Some(at + 1) });
    }
    found.sort_by_key(|one| (one.commit.commit_time, one.change));
    found
}

/// Returns a commit's hash and a note's text in it: as Git has it, or else as the note was after the change that came
/// with the commit.
///
/// # Errors
/// Returns an error for the user if neither knows the commit.
pub fn text_in_commit(
    root: Option<&Path>,
    path: &str,
    story: Option<&NoteHistory>,
    name: &str,
) -> anyhow::Result<(String, String)> {
    let read = root.map(|root| RepositoryFolder::open(root).and_then(|repository| repository.file_at(name, path)));
    let why = match read {
        Some(Ok((of, text))) => return Ok((of.commit.id, text)),
        Some(Err(error)) => error.to_string(),
        None => format!("no such commit: {name}"),
    };
    let is_named = |mark: &CommitMark| name.len() >= 4 && mark.id.starts_with(name);
    let marked = story.into_iter().flat_map(|story| {
        let marks = story.past.moments.iter().filter_map(|moment| Some((mark_of(moment)?, moment.hash)));
        marks.filter(|(mark, _)| is_named(mark)).map(move |(mark, hash)| (story, mark, hash))
    });
    match marked.last() {
        Some((story, mark, hash)) => Ok((mark.id, story.text_at(&[hash])?)),
        None => Err(anyhow::anyhow!(why)),
    }
}

fn mark_of(moment: &NoteChange) -> Option<CommitMark> {
    moment.message.as_deref().and_then(CommitMark::from_message)
}

/// Returns the number of changes after which a note is as in a commit, for which these heads may be recorded.
fn find_version(story: &NoteHistory, of: &FileCommit, heads: Option<&str>, until: Instant) -> Option<usize> {
    let moments = &story.past.moments;
    let marked = |fits: &dyn Fn(&CommitMark) -> bool| {
        moments.iter().rposition(|moment| mark_of(moment).is_some_and(|mark| fits(&mark))).map(|at| at + 1)
    };
    if let Some(count) = marked(&|mark| mark.id == of.commit.id) {
        return Some(count);
    }
    // Changes stand in causal order, and their clocks may differ.
    let mut latest = i64::MIN;
    let near = moments.iter().take_while(|moment| {
        latest = latest.max(moment.time);
        latest <= of.commit.commit_time
    });
    let near = near.count();
    let mut places: Vec<usize> = heads.and_then(|heads| story.count_at(heads)).into_iter().collect();
    places.extend((0..=COMPARED_CHANGES).filter_map(|back| near.checked_sub(back)));
    places.extend((1..=COMPARED_CHANGES).map(|on| near + on).filter(|place| *place <= moments.len()));
    // A rebase keeps the text and changes the time, so the last changes and those of other commits come next.
    places.extend((moments.len().saturating_sub(COMPARED_CHANGES)..=moments.len()).rev());
    places.extend(marked(&|mark| mark.blob == of.blob));
    let is_same = |count: &usize| vcs::is_content(&of.blob, &story.text_after(*count).unwrap_or_default());
    places.into_iter().take_while(|_| Instant::now() < until).find(is_same)
}
