//! Finds the commits of Git that brought a file's new text, so that a note's history names their authors. A thread of
//! its own looks into the repository, in process, and waits for Git to finish what it's just doing.

use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read::{FoundFile, read_note_file};
use crate::mailbox::Mailbox;
use engine::Event;
use engine::event::{ArrivedCommit, FileStamp, FileText, NoteContent};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use store::BlobHash;
use text::commit_mark::CommitMark;
use text::text_edit;
use vcs::{FileVersion, RepositoryFolder, VcsError};

/// How long a file's text waits for Git to finish.
const MAX_GIT_WAIT: Duration = Duration::from_secs(10);
/// Pause between looks at the repository.
const GIT_WAIT_INTERVAL: Duration = Duration::from_millis(20);
/// How long a repository isn't waited for after a wait in vain.
const VAIN_WAIT_PAUSE: Duration = Duration::from_secs(10);

/// The version of a file that a note knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalBase {
    /// Hash of its bytes.
    pub(crate) hash: BlobHash,
    /// When it was written, in seconds since 1970; `None` if unknown.
    pub(crate) since: Option<i64>,
}

impl From<FileStamp> for ArrivalBase {
    fn from(stamp: FileStamp) -> ArrivalBase {
        let since = (stamp.mtime > 0).then(|| stamp.mtime.div_euclid(1_000_000_000));
        ArrivalBase { hash: stamp.hash, since }
    }
}

/// A file's text whose commits are wanted.
struct FinderJob {
    file: ConfinedPath,
    base: ArrivalBase,
    text: FileText,
    then: Box<dyn FnOnce(FileText) -> Event + Send>,
}

/// Sends files' texts to the thread that finds their commits.
#[derive(Clone)]
pub(crate) struct CommitFinder {
    jobs: Sender<FinderJob>,
    inbox: Mailbox,
}

impl CommitFinder {
    pub(crate) fn start(inbox: Mailbox) -> CommitFinder {
        let (jobs, queue) = channel::<FinderJob>();
        let answers = inbox.clone();
        std::thread::spawn(move || {
            let mut vain: Option<(PathBuf, Instant)> = None;
            for FinderJob { file, base, mut text, then } in queue {
                let is_vain = |(root, at): &(PathBuf, Instant)| *root == file.root && at.elapsed() < VAIN_WAIT_PAUSE;
                let patience = if vain.as_ref().is_some_and(is_vain) { Duration::ZERO } else { MAX_GIT_WAIT };
                let begun = Instant::now();
                text.commits = find_commits(&file, base, &text.text, patience);
                // Meanwhile, Git may have written it again, or markers were taken out of a note in conflict.
                if begun.elapsed() >= GIT_WAIT_INTERVAL
                    && let Ok(FoundFile::Text(now)) = read_note_file(&file)
                    && now.stamp.hash != text.stamp.hash
                {
                    text = now;
                    text.commits = find_commits(&file, base, &text.text, Duration::ZERO);
                }
                if text.commits.is_empty() && begun.elapsed() >= patience && !patience.is_zero() {
                    vain = Some((file.root.clone(), Instant::now()));
                }
                answers.send_event(then(text));
            }
        });
        CommitFinder { jobs, inbox }
    }

    /// Sends the event that `then` makes of a file's text, once its commits are known.
    pub(crate) fn find(
        &self,
        file: ConfinedPath,
        base: Option<ArrivalBase>,
        text: FileText,
        then: impl FnOnce(FileText) -> Event + Send + 'static,
    ) {
        match base.filter(|base| base.hash != text.stamp.hash && vcs::is_in_repository(&file.root)) {
            // The thread ends only with the program.
            Some(base) => _ = self.jobs.send(FinderJob { file, base, text, then: Box::new(then) }),
            None => self.inbox.send_event(then(text)),
        }
    }
}

/// Finds the commits of a closed note's file that has changed since. Doesn't wait for Git.
pub(crate) fn find_commits_of_content(file: &ConfinedPath, content: &mut NoteContent) {
    let (Ok(Some(text)), Some(row)) = (&mut content.file, &content.row) else { return };
    if !content.adopted || content.ahead || row.hash == text.stamp.hash || !vcs::is_in_repository(&file.root) {
        return;
    }
    let base = FileStamp { size: row.size, mtime: row.mtime, hash: row.hash }.into();
    text.commits = find_commits(file, base, &text.text, Duration::ZERO);
}

/// Returns the versions of a file since the known one; none if it isn't clear that they are from commits.
fn find_commits(file: &ConfinedPath, base: ArrivalBase, text: &str, patience: Duration) -> Vec<ArrivedCommit> {
    let begun = Instant::now();
    loop {
        match look_for_commits(&file.root, &file.path, base, text) {
            Ok(Some(found)) => return found,
            Ok(None) => {}
            // The text is then another program's, as without a repository.
            Err(error) => {
                tracing::debug!(%error, "the commits of a file could not be read");
                return Vec::new();
            }
        }
        let is_git_busy = || {
            RepositoryFolder::open(&file.root)
                .is_ok_and(|repository| repository.is_head_about_to_move(&file.path, text))
        };
        if begun.elapsed() >= patience || !is_git_busy() {
            return Vec::new();
        }
        std::thread::sleep(GIT_WAIT_INTERVAL);
    }
}

/// Returns the versions of a file since the known one; `None` if its text isn't that of the last commit.
fn look_for_commits(
    root: &Path,
    path: &str,
    base: ArrivalBase,
    text: &str,
) -> Result<Option<Vec<ArrivedCommit>>, VcsError> {
    let repository = RepositoryFolder::open(root)?;
    let is_known = |text: &str| BlobHash::of(text.as_bytes()) == base.hash;
    let known = std::cell::RefCell::new(None);
    let is_base = |text: &str| {
        let is_base = is_known(text);
        if is_base {
            *known.borrow_mut() = Some(text.to_owned());
        }
        is_base
    };
    let Some(arrival) = repository.arrival(path, text, &is_base)? else { return Ok(None) };
    // Without the known version in the history, it may have been rewritten, or another branch was switched to. Or a
    // program took edits back, and HEAD never moved.
    let is_by_git = arrival.begins_at_known
        || base.since.is_some_and(|since| repository.has_head_moved(path, since).unwrap_or(false));
    if !is_by_git {
        return Ok(Some(Vec::new()));
    }
    let mut found = Vec::new();
    let mut before = known.into_inner();
    for version in arrival.versions {
        if let (Some(before), Some(base)) = (&before, &version.merge_base) {
            let ours = text_edit::compute_edits(base, before);
            // The present text comes last, which may differ from what comes out here.
            for theirs in version.merged.iter().filter(|theirs| theirs.of != version.of) {
                let mut edits = text_edit::compute_edits(base, &theirs.text);
                edits.retain(|edit| !ours.contains(edit)); // the user's own commits, made again by a rebase
                let edits = text_edit::rebase_edits(&edits, &ours);
                found.push(arrived(theirs, &text_edit::apply_edits(before, &edits)));
            }
        }
        before = Some(version.text.clone());
        found.push(arrived(&version, &version.text));
    }
    Ok(Some(found))
}

fn arrived(version: &FileVersion, text: &str) -> ArrivedCommit {
    let commit = &version.of.commit;
    let (id, author) = (commit.id.clone(), commit.author.clone());
    ArrivedCommit {
        mark: CommitMark { id, blob: version.of.blob.clone(), author },
        time: commit.author_time,
        text: Arc::from(text),
    }
}
