//! Source control for the window: reads the Git repositories of volumes in the background, and runs Git operations with
//! progress and cancel.
//!
//! Nothing here waits on the caller's thread. Reads run in process and start no program. They follow changed files of
//! a volume and the repository's own state files, and pause in proportion to the time that they take.

mod blame;
mod conflicts;
pub mod github_api;
mod operations;
mod repository_clone;

use anyhow::anyhow;
pub use blame::BlameReading;
use blame::BlameReadings;
pub use conflicts::{ConflictReading, ResolvedFile};
use engine::Session;
use git_program::GitProgramError;
pub use git_program::{HalfDoneOperation, repository_folder_name};
use github::{ApiControl, GitHubError};
pub use operations::{GitRequest, configured_pull, perform, restore_kept};
pub use repository_clone::{ClonePhase, RepositoryClone};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use store::{BlobHash, DocId};
pub use text::unified_diff::FileDiff;
use text::unified_diff::UnifiedDiff;
pub use vcs::{BranchInfo, BranchState, Commit, FileChange, FileChangeKind, HunkAction, HunkChoice};
pub use vcs::{ConflictChoice, ConflictKind, ConflictRegion, ConflictSide, ConflictSides, FileConflict};
pub use vcs::{GraphRow, MAX_GRAPH_LANES, StashInfo, TagInfo};
use vcs::{RepositoryFolder, VcsError};

/// Interval for checking whether another program has changed the repository.
const STATE_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum pause between two reads of a repository, and the share of time that reads may take.
const MIN_READ_PAUSE: Duration = Duration::from_millis(150);
const READ_PAUSE_FACTOR: u32 = 4;
/// How long an operation runs before it's shown, so that short ones don't flicker.
pub const MAX_QUIET_TIME: Duration = Duration::from_millis(400);
/// How long an operation waits for edits to be written.
pub const MAX_SAVE_WAIT: Duration = Duration::from_secs(5);
/// Number of commits that are listed.
const LISTED_COMMITS: usize = 30;

/// What is known of a volume's repository.
#[derive(Clone, Debug)]
pub enum RepositoryReading {
    /// The first read hasn't ended.
    Waiting,
    /// The volume's folder isn't in a repository.
    Missing,
    /// The repository can't be read; the reason is a sentence.
    Failed(String),
    /// The state at the last read.
    Read(Arc<RepositoryStatus>),
}

/// State of a volume's repository.
#[derive(Clone, Debug, Default)]
pub struct RepositoryStatus {
    /// Number of the read, for caches.
    pub number: u64,
    /// The current branch and its state against its remote.
    pub branch: BranchState,
    /// Changed files by path.
    pub changes: Vec<FileChange>,
    /// Whether all changed files are listed.
    pub is_complete: bool,
    /// Changed files and the folders around them, by path without a `/` at the end.
    pub badges: BTreeMap<String, FileChangeKind>,
    /// Local branches.
    pub branches: Vec<BranchInfo>,
    /// Branches of remotes.
    pub remote_branches: Vec<BranchInfo>,
    /// Tags by name.
    pub tags: Vec<TagInfo>,
    /// Stashes, newest first.
    pub stashes: Vec<StashInfo>,
    /// The last commits, newest first.
    pub commits: Vec<Commit>,
    /// Whether there's a remote.
    pub has_remote: bool,
    /// `OWNER/NAME` of a folder that came from GitHub without Git. Nothing is staged in it, and its commits aren't
    /// listed.
    pub github: Option<String>,
    /// Hash of where all branches and tags are: the history is the same as long as this is.
    pub history: Option<BlobHash>,
}

/// The graph of all commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphReading {
    /// The commits, newest first.
    pub rows: Vec<GraphRow>,
    /// Whether these are all; otherwise more are read, or there are too many.
    pub is_complete: bool,
    /// Whether more are being read.
    pub is_reading: bool,
    /// Why it can't be read.
    pub trouble: Option<String>,
}

/// A diff that a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffTarget {
    /// What is staged of a file.
    Staged(String),
    /// What isn't staged of a file.
    Unstaged(String),
    /// The conflicts of a file.
    Conflict(String),
    /// What a commit has changed.
    Commit(String),
    /// What a stash has changed, by the hash of its commit.
    Stash(String),
}

/// A diff, file by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReading {
    /// The files with their hunks.
    pub files: Vec<FileDiff>,
    /// Whether the diff is complete.
    pub is_complete: bool,
    /// Why it can't be read.
    pub trouble: Option<String>,
    /// Hash of the diff, by which a choice of hunks is checked.
    pub hash: Option<BlobHash>,
    /// The conflicts instead of a diff.
    pub conflict: Option<ConflictReading>,
}

/// An operation that runs.
#[derive(Clone, Debug)]
pub struct GitJobStatus {
    /// The volume.
    pub volume: DocId,
    /// What runs, such as “Pushing”.
    pub title: &'static str,
    /// The last line that Git said; untrusted.
    pub progress: String,
    since: Instant,
}

impl GitJobStatus {
    /// Returns whether it runs for so long that it's worth showing.
    pub fn is_slow(&self) -> bool {
        self.since.elapsed() >= MAX_QUIET_TIME
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitReport {
    /// The volume.
    pub volume: DocId,
    /// What was done, or why it failed, in sentences.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether it was a commit.
    pub is_commit: bool,
    /// What undoes it, if that's possible.
    pub undo: Option<GitRequest>,
    /// What does it again and stops at the conflicts for which it was taken back.
    pub retry: Option<GitRequest>,
}

/// What an operation has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitOutcome {
    /// A sentence; empty if the page shows it anyway.
    pub text: String,
    /// What undoes it, if that's possible.
    pub undo: Option<GitRequest>,
}

/// A file that was discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedFile {
    /// Path relative to the volume's folder.
    pub path: String,
    /// Hash of its bytes in the repository's store; `None` if there was no file.
    pub kept: Option<String>,
    /// Hash of the file after hunks of it were discarded; `None` if the whole file was.
    pub left: Option<BlobHash>,
}

/// The number of a volume's last change, and that of the last edit in its file.
type VolumeChange = (u64, u64);
/// A volume whose repository is followed: its folder, and its last change.
type FollowedVolume = (DocId, PathBuf, VolumeChange);

enum ReaderRequest {
    Follow(Vec<FollowedVolume>),
    Diff(DocId, DiffTarget),
    Refresh(DocId),
}

#[derive(Default)]
struct SharedReadings {
    repositories: BTreeMap<DocId, RepositoryReading>,
    diff: Option<(DocId, DiffTarget, u64, Arc<DiffReading>)>,
    /// The diff that was last asked for.
    asked_diff: Option<(DocId, DiffTarget, u64)>,
    blames: BlameReadings,
    graph: Option<(DocId, Arc<GraphReading>)>,
    /// The graph that was last asked for.
    asked_graph: Option<(DocId, Option<BlobHash>)>,
    job: Option<GitJobStatus>,
    report: Option<GitReport>,
    is_report_seen: bool,
}

type WakeWindow = Arc<dyn Fn() + Send + Sync>;

/// Reads repositories and runs operations, for one window.
pub struct SourceControl {
    shared: Arc<Mutex<SharedReadings>>,
    requests: Sender<ReaderRequest>,
    wake: WakeWindow,
    is_canceled: Arc<AtomicBool>,
    /// The workspace's folder.
    workspace: PathBuf,
    followed: Vec<FollowedVolume>,
    /// Number of the last saved change when all edits were in their files.
    saved: u64,
    /// An operation that begins once all edits are in their files.
    waiting: Option<WaitingOperation>,
}

/// An operation that waits for edits to be written.
struct WaitingOperation {
    volume: DocId,
    root: PathBuf,
    request: GitRequest,
    since: Instant,
}

fn lock(shared: &Mutex<SharedReadings>) -> MutexGuard<'_, SharedReadings> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SourceControl {
    /// Starts the reader of the volumes of the workspace in this folder. `wake` is called when there's something new.
    pub fn start(workspace: &Path, wake: impl Fn() + Send + Sync + 'static) -> SourceControl {
        let workspace = workspace.to_owned();
        let (requests, asked) = channel();
        let shared: Arc<Mutex<SharedReadings>> = Arc::default();
        let wake: WakeWindow = Arc::new(wake);
        let reader =
            RepositoryReader { shared: shared.clone(), wake: Some(wake.clone()), ..RepositoryReader::default() };
        std::thread::spawn(move || reader.run(&asked));
        let is_canceled = Arc::default();
        SourceControl { shared, requests, wake, is_canceled, workspace, followed: Vec::new(), saved: 0, waiting: None }
    }

    /// Follows the session's volumes, and starts an operation that waits for edits to be saved. Costs nothing if no
    /// file has changed.
    pub fn follow(&mut self, session: &Session) {
        let is_ready = |waiting: &mut WaitingOperation| {
            session.is_saved() || waiting.since.elapsed() >= MAX_SAVE_WAIT || self.is_canceled.load(Ordering::Relaxed)
        };
        if let Some(operation) = self.waiting.take_if(is_ready) {
            self.start_operation(operation, session.is_saved());
        }
        // A volume's own number doesn't change when edits of notes reach their files.
        if session.is_saved() {
            self.saved = session.saving().durable;
        }
        let saved = self.saved;
        let change = |volume: &engine::Volume| (volume.revision, saved);
        let is_same = |(known, volume): (&FollowedVolume, &engine::Volume)| {
            known.0 == volume.id && known.2 == change(volume) && Some(&known.1) == volume.root.as_ref()
        };
        let rooted = || session.volumes().filter(|volume| volume.root.is_some());
        if rooted().count() == self.followed.len() && self.followed.iter().zip(rooted()).all(is_same) {
            return;
        }
        let row = |volume: &engine::Volume| Some((volume.id, volume.root.clone()?, change(volume)));
        self.followed = session.volumes().filter_map(row).collect();
        // Fails only if the reader has ended with the program.
        let _ = self.requests.send(ReaderRequest::Follow(self.followed.clone()));
    }

    /// Returns what is known of a volume's repository.
    pub fn repository(&self, volume: DocId) -> RepositoryReading {
        lock(&self.shared).repositories.get(&volume).cloned().unwrap_or(RepositoryReading::Waiting)
    }

    /// Returns the state of a volume's repository, if it has one.
    pub fn status(&self, volume: DocId) -> Option<Arc<RepositoryStatus>> {
        match self.repository(volume) {
            RepositoryReading::Read(status) => Some(status),
            RepositoryReading::Waiting | RepositoryReading::Missing | RepositoryReading::Failed(_) => None,
        }
    }

    /// Returns the diff of this target, and reads it in the background if it isn't current. `number` is the number of
    /// the status that it belongs to.
    pub fn diff(&self, volume: DocId, target: &DiffTarget, number: u64) -> Option<Arc<DiffReading>> {
        let mut shared = lock(&self.shared);
        let known = shared.diff.as_ref().filter(|(of, known, _, _)| *of == volume && known == target);
        let found = known.map(|(_, _, number, reading)| (*number, reading.clone()));
        let wanted = (volume, target.clone(), number);
        if found.as_ref().is_none_or(|(read, _)| *read < number) && shared.asked_diff.as_ref() != Some(&wanted) {
            shared.asked_diff = Some(wanted);
            let _ = self.requests.send(ReaderRequest::Diff(volume, target.clone())); // fails only at the end
        }
        found.map(|(_, reading)| reading)
    }

    /// Returns the graph of all commits, and reads it in the background if the repository's history has changed.
    pub fn graph(&self, volume: DocId, status: &RepositoryStatus) -> Option<Arc<GraphReading>> {
        let mut shared = lock(&self.shared);
        let wanted = (volume, status.history);
        if shared.asked_graph != Some(wanted)
            && let Some((_, root, _)) = self.followed.iter().find(|(known, _, _)| *known == volume)
        {
            shared.asked_graph = Some(wanted);
            let (root, readings, wake) = (root.clone(), self.shared.clone(), self.wake.clone());
            // A thread of its own: status and diffs don't wait for a long history.
            std::thread::spawn(move || read_graph(&root, wanted, &readings, &*wake));
        }
        shared.graph.as_ref().filter(|(known, _)| *known == volume).map(|(_, reading)| reading.clone())
    }

    /// Returns the operation that runs.
    pub fn job(&self) -> Option<GitJobStatus> {
        lock(&self.shared).job.clone()
    }

    /// Returns how the last operation ended, for the page that shows it.
    pub fn report(&self) -> Option<GitReport> {
        let mut shared = lock(&self.shared);
        shared.is_report_seen = true;
        shared.report.clone()
    }

    /// Returns how the last operation ended if nothing has shown it yet.
    pub fn unseen_report(&self) -> Option<GitReport> {
        let mut shared = lock(&self.shared);
        let report = shared.report.clone().filter(|_| !shared.is_report_seen);
        shared.is_report_seen |= report.is_some();
        report
    }

    /// Returns how the last operation ended if it was a choice in the conflicts of this file that can be undone.
    ///
    /// The path is relative to the volume's folder.
    pub fn conflict_report(&self, volume: DocId, path: &str) -> Option<GitReport> {
        let mut shared = lock(&self.shared);
        let is_about = |report: &&GitReport| {
            report.volume == volume
                && matches!(&report.undo, Some(GitRequest::Unresolve(resolved)) if resolved.path == path)
        };
        let report = shared.report.as_ref().filter(is_about).cloned();
        shared.is_report_seen |= report.is_some();
        report
    }

    /// Removes the report of the last operation.
    pub fn dismiss_report(&self) {
        lock(&self.shared).report = None;
    }

    /// Reads a volume's repository again soon.
    pub fn refresh(&self, volume: DocId) {
        let _ = self.requests.send(ReaderRequest::Refresh(volume)); // fails only at the end
    }

    /// Cancels the operation that runs.
    pub fn cancel(&self) {
        self.is_canceled.store(true, Ordering::Relaxed);
    }

    /// Starts an operation in a volume's folder, once all edits are in their files.
    ///
    /// # Errors
    /// Returns an error for the user if the volume can't be changed or another operation runs.
    pub fn begin(&mut self, session: &Session, volume: DocId, request: GitRequest) -> anyhow::Result<()> {
        let root = session.volume(volume).and_then(|volume| volume.root.clone());
        let root = root.ok_or_else(|| anyhow!("The volume has no folder on this device."))?;
        if let Some(why) = session.read_only_reason(volume).filter(|_| request.changes_folder()) {
            return Err(anyhow!("{why}"));
        }
        let mut shared = lock(&self.shared);
        if let Some(job) = &shared.job {
            return Err(anyhow!("{} is still running. Wait for it, or cancel it.", job.title));
        }
        shared.job =
            Some(GitJobStatus { volume, title: request.title(), progress: String::new(), since: Instant::now() });
        shared.report = None;
        drop(shared);
        self.is_canceled.store(false, Ordering::Relaxed);
        self.waiting = Some(WaitingOperation { volume, root, request, since: Instant::now() });
        self.follow(session);
        Ok(())
    }

    fn start_operation(&self, WaitingOperation { volume, root, request, .. }: WaitingOperation, is_saved: bool) {
        let (shared, wake, is_canceled) = (self.shared.clone(), self.wake.clone(), self.is_canceled.clone());
        let (requests, workspace) = (self.requests.clone(), self.workspace.clone());
        std::thread::spawn(move || {
            let report_progress = |line: &str| {
                if let Some(job) = &mut lock(&shared).job {
                    line.clone_into(&mut job.progress);
                }
                wake();
            };
            let is_canceled = || is_canceled.load(Ordering::Relaxed);
            let is_commit = matches!(request, GitRequest::Commit { .. });
            let done = match (is_saved, github::find_folder(&root)) {
                (true, Some((top, part))) => {
                    let control = ApiControl::new(&report_progress, &is_canceled);
                    github_api::perform(&top, &part, &request, &control)
                }
                (true, None) => {
                    let place = (root.as_path(), Some(workspace.as_path()));
                    operations::perform(place, &request, &mut &report_progress, &is_canceled)
                }
                (false, _) => {
                    Err(anyhow!("Edits aren't in their files yet, so nothing was done. Save first, and try again."))
                }
            };
            if is_commit && done.is_ok() {
                git_program::record_commit_heads(&workspace, &root);
            }
            let report = match done {
                Ok(GitOutcome { text, undo }) => {
                    GitReport { volume, text, is_error: false, is_commit, undo, retry: None }
                }
                Err(why) => {
                    let is_undone =
                        |error: &GitProgramError| matches!(error, GitProgramError::Conflict { is_undone: true, .. });
                    let is_conflict = |error: &GitHubError| matches!(error, GitHubError::Conflict(_));
                    let retry =
                        why.downcast_ref().is_some_and(is_undone) || why.downcast_ref().is_some_and(is_conflict);
                    let retry = retry.then(|| GitRequest::KeepConflicts(Box::new(request)));
                    GitReport { volume, text: why.to_string(), is_error: true, is_commit, undo: None, retry }
                }
            };
            let mut readings = lock(&shared);
            readings.job = None;
            (readings.report, readings.is_report_seen) = (Some(report), false);
            drop(readings);
            let _ = requests.send(ReaderRequest::Refresh(volume)); // fails only at the end
            wake();
        });
    }
}

/// A followed repository, as the reader knows it.
struct ReaderVolume {
    root: PathBuf,
    change: VolumeChange,
    /// Whether it must be read again.
    is_outdated: bool,
    /// Before this time, it isn't read again.
    not_before: Instant,
    state_files: Vec<PathBuf>,
    stamps: Vec<Option<SystemTime>>,
}

/// The thread that reads repositories.
#[derive(Default)]
struct RepositoryReader {
    shared: Arc<Mutex<SharedReadings>>,
    wake: Option<WakeWindow>,
    volumes: BTreeMap<DocId, ReaderVolume>,
    reads: u64,
}

impl RepositoryReader {
    fn run(mut self, asked: &Receiver<ReaderRequest>) {
        let mut next_poll = Instant::now() + STATE_POLL_INTERVAL;
        loop {
            let due = self.volumes.values().filter(|volume| volume.is_outdated).map(|volume| volume.not_before).min();
            let until = due.map_or(next_poll, |due| due.min(next_poll));
            match asked.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(request) => {
                    self.accept(request);
                    while let Ok(request) = asked.try_recv() {
                        self.accept(request);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= next_poll {
                next_poll = now + STATE_POLL_INTERVAL;
                for volume in self.volumes.values_mut().filter(|volume| !volume.is_outdated) {
                    volume.is_outdated = file_times(&volume.state_files) != volume.stamps;
                }
            }
            let is_due = |volume: &ReaderVolume| volume.is_outdated && volume.not_before <= now;
            let due: Vec<DocId> = self.volumes.iter().filter(|(_, known)| is_due(known)).map(|(id, _)| *id).collect();
            due.into_iter().for_each(|volume| self.read(volume));
        }
    }

    fn accept(&mut self, request: ReaderRequest) {
        match request {
            ReaderRequest::Follow(volumes) => {
                self.volumes.retain(|known, _| volumes.iter().any(|(volume, _, _)| volume == known));
                lock(&self.shared).repositories.retain(|known, _| self.volumes.contains_key(known));
                for (volume, root, change) in volumes {
                    let known = self.volumes.get(&volume);
                    if known.is_some_and(|known| known.root == root && known.change == change) {
                        continue;
                    }
                    let not_before = known.map_or_else(Instant::now, |known| known.not_before);
                    let (state_files, stamps) = (Vec::new(), Vec::new());
                    let row = ReaderVolume { root, change, is_outdated: true, not_before, state_files, stamps };
                    self.volumes.insert(volume, row);
                }
            }
            ReaderRequest::Refresh(volume) => {
                if let Some(volume) = self.volumes.get_mut(&volume) {
                    volume.is_outdated = true;
                    volume.not_before = Instant::now();
                }
            }
            ReaderRequest::Diff(volume, target) => self.read_diff(volume, target),
        }
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    fn read(&mut self, volume: DocId) {
        let Some(known) = self.volumes.get_mut(&volume) else { return };
        let begun = Instant::now();
        self.reads += 1;
        let (reading, state_files, stamps) = match read_repository(&known.root, self.reads) {
            Ok((status, files, stamps)) => (RepositoryReading::Read(Arc::new(status)), files, stamps),
            Err(RepositoryReadError::Git(VcsError::None(_))) => {
                // A repository that is made later has these files.
                let files = vec![known.root.join(".git/HEAD"), known.root.join(".git")];
                let stamps = file_times(&files);
                (RepositoryReading::Missing, files, stamps)
            }
            Err(why) => (RepositoryReading::Failed(sentence(&why.to_string())), Vec::new(), Vec::new()),
        };
        (known.state_files, known.stamps) = (state_files, stamps);
        // What failed may have been the fault of a file that came or went meanwhile.
        known.is_outdated = matches!(reading, RepositoryReading::Failed(_));
        let pause = if known.is_outdated { STATE_POLL_INTERVAL } else { MIN_READ_PAUSE };
        known.not_before = Instant::now() + (begun.elapsed() * READ_PAUSE_FACTOR).max(pause);
        lock(&self.shared).repositories.insert(volume, reading);
        self.wake();
    }

    fn read_diff(&mut self, volume: DocId, target: DiffTarget) {
        let Some(known) = self.volumes.get(&volume) else { return };
        let read = match &target {
            DiffTarget::Conflict(path) => conflicts::read_conflict(&known.root, path),
            DiffTarget::Staged(_) | DiffTarget::Unstaged(_) | DiffTarget::Commit(_) | DiffTarget::Stash(_) => {
                read_other_diff(&known.root, &target)
            }
        };
        let reading = match read {
            Ok(reading) => reading,
            Err(why) => DiffReading { trouble: Some(sentence(&why.to_string())), ..DiffReading::default() },
        };
        lock(&self.shared).diff = Some((volume, target, self.reads, Arc::new(reading)));
        self.wake();
    }
}

/// Reads a diff other than that of a conflict.
fn read_other_diff(root: &Path, target: &DiffTarget) -> Result<DiffReading, VcsError> {
    let repository = RepositoryFolder::open(root)?;
    let (text, is_complete) = match target {
        DiffTarget::Staged(path) => repository.staged_file_diff(path),
        DiffTarget::Unstaged(path) | DiffTarget::Conflict(path) => repository.unstaged_diff(path),
        DiffTarget::Stash(id) => repository.stash_diff(id),
        DiffTarget::Commit(id) => repository.show(id).map(|(_, text, is_complete)| (text, is_complete)),
    }?;
    let hash = Some(BlobHash::of(text.as_bytes()));
    let UnifiedDiff { files, is_complete } = UnifiedDiff::parse(&text, is_complete);
    Ok(DiffReading { files, is_complete, hash, ..DiffReading::default() })
}

/// Reads the graph of all commits as long as it's wanted.
fn read_graph(
    root: &Path,
    wanted: (DocId, Option<BlobHash>),
    readings: &Mutex<SharedReadings>,
    wake: &(dyn Fn() + Send + Sync),
) {
    let volume = wanted.0;
    let publish = |reading: GraphReading| {
        let mut shared = lock(readings);
        let is_wanted = shared.asked_graph == Some(wanted);
        // Until all is read, an older graph shows more than the first commits of the new one.
        let has_older = shared.graph.as_ref().is_some_and(|(known, older)| *known == volume && !older.is_reading);
        if is_wanted && !(reading.is_reading && has_older) {
            shared.graph = Some((volume, Arc::new(reading)));
            drop(shared);
            wake();
        }
        is_wanted
    };
    let mut is_first = true;
    let mut on_rows = |rows: &[GraphRow]| match std::mem::take(&mut is_first) {
        true => publish(GraphReading { rows: rows.to_vec(), is_reading: true, ..GraphReading::default() }),
        false => lock(readings).asked_graph == Some(wanted),
    };
    let read = RepositoryFolder::open(root)
        .and_then(|repository| repository.commit_graph(true, vcs::MAX_GRAPH_COMMITS, &mut on_rows));
    publish(match read {
        Ok((rows, is_complete)) => GraphReading { rows, is_complete, ..GraphReading::default() },
        Err(why) => GraphReading { trouble: Some(sentence(&why.to_string())), ..GraphReading::default() },
    });
}

/// Returns a hash of where branches and tags are.
fn history_hash(head: Option<&str>, branches: [&[BranchInfo]; 2], tags: &[TagInfo]) -> BlobHash {
    let mut text = head.unwrap_or_default().to_owned();
    for one in branches.into_iter().flatten() {
        text.push_str(&format!("\n{} {}", one.id, one.name));
    }
    for tag in tags {
        text.push_str(&format!("\n{} {}", tag.id, tag.name));
    }
    BlobHash::of(text.as_bytes())
}

/// Returns a message as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', ')', '…']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn file_times(files: &[PathBuf]) -> Vec<Option<SystemTime>> {
    files.iter().map(|file| file.symlink_metadata().and_then(|meta| meta.modified()).ok()).collect()
}

/// A repository's state, its state files, and their times before the read: what changes meanwhile is read again.
type ReadRepository = (RepositoryStatus, Vec<PathBuf>, Vec<Option<SystemTime>>);

/// Why a repository can't be read.
#[derive(Debug, thiserror::Error)]
enum RepositoryReadError {
    #[error(transparent)]
    Git(#[from] VcsError),
    #[error(transparent)]
    GitHub(#[from] GitHubError),
}

fn read_repository(root: &Path, number: u64) -> Result<ReadRepository, RepositoryReadError> {
    if let Some((top, part)) = github::find_folder(root) {
        return Ok(github_api::read_folder(&top, &part, number)?);
    }
    let mut repository = RepositoryFolder::open(root)?;
    let state_files = repository.state_files();
    let stamps = file_times(&state_files);
    let (changes, is_complete) = repository.changes()?;
    let (remote_branches, branches): (Vec<_>, Vec<_>) =
        repository.branches()?.into_iter().partition(|branch| branch.remote);
    let (stashes, tags, branch) = (repository.stashes()?, repository.tags()?, repository.branch_state()?);
    let history = Some(history_hash(branch.head.as_deref(), [&branches, &remote_branches], &tags));
    let status = RepositoryStatus {
        number,
        branch,
        badges: roll_up(&changes),
        changes,
        is_complete,
        branches,
        remote_branches,
        tags,
        stashes,
        commits: repository.log(LISTED_COMMITS)?,
        has_remote: !repository.remote_urls()?.is_empty(),
        github: None,
        history,
    };
    Ok((status, state_files, stamps))
}

/// Returns the marks of changed files and of the folders around them. A folder has its own mark if all changes below
/// are of one kind, and otherwise counts as modified; a conflict always shows.
fn roll_up(changes: &[FileChange]) -> BTreeMap<String, FileChangeKind> {
    let mut badges = BTreeMap::new();
    for change in changes {
        let Some(kind) = change.unstaged.or(change.staged) else { continue };
        let kind = match (change.staged, kind) {
            (Some(FileChangeKind::Added), FileChangeKind::Modified) => FileChangeKind::Added,
            (_, kind) => kind,
        };
        badges.insert(change.path.clone(), kind);
        for (at, _) in change.path.match_indices('/') {
            let folder = badges.entry(change.path[..at].to_owned()).or_insert(kind);
            if kind == FileChangeKind::Conflicted || *folder == FileChangeKind::Conflicted {
                *folder = FileChangeKind::Conflicted;
            } else if *folder != kind {
                *folder = FileChangeKind::Modified;
            }
        }
    }
    badges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_rolled_up_to_folders() {
        let change =
            |path: &str, staged, unstaged| FileChange { path: path.to_owned(), old_path: None, staged, unstaged };
        let (new, changed) = (Some(FileChangeKind::Untracked), Some(FileChangeKind::Modified));
        let badges = roll_up(&[
            change("a/b/new.md", None, new),
            change("a/changed.md", None, changed),
            change("c/added.md", Some(FileChangeKind::Added), changed),
            change("d/x.md", None, Some(FileChangeKind::Conflicted)),
            change("d/y.md", None, changed),
        ]);
        let letters: Vec<(&str, &str)> = badges.iter().map(|(path, kind)| (path.as_str(), kind.letter())).collect();
        let folders: Vec<_> = letters.into_iter().filter(|(path, _)| !path.ends_with(".md")).collect();
        assert_eq!(folders, [("a", "M"), ("a/b", "?"), ("c", "A"), ("d", "!")]);
        assert_eq!(badges["c/added.md"], FileChangeKind::Added);
    }
}
