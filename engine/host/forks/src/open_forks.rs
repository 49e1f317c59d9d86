//! Forks of a workspace that a program has open: the store, and the session that has the forks' volumes open. Blocks
//! the calling thread until the work is done.

use crate::adoption::{AdoptRequest, AdoptionReport};
use crate::create_fork::ForkRequest;
use crate::fork_changes::ForkChanges;
use crate::fork_error::ForkError;
use crate::fork_record::{AdoptionKind, ForkPhase, ForkRecord, ForkStore};
use crate::merge_plan::{ChangeSelection, ConflictPreference};
use crate::project_commit::ProjectCommit;
use engine::records::forks::ForkOrigin;
use engine::{Command, RunSummary, ScanState, Session, UnixMillis};
use git_program::GitCaller;
use host::Handle;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use store::DocId;

/// Maximum time to scan a fork, or its project.
const SCAN_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time to wait until a new fork can be searched. Its run begins then anyway.
const INDEX_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time until notes have taken up what an adoption wrote.
const NOTE_MERGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum length of the first line of a commit's message.
const MAX_SUBJECT_CHARS: usize = 72;

/// The forks of an open workspace.
#[derive(Clone)]
pub struct OpenForks {
    pub(crate) handle: Handle,
    store: ForkStore,
}

/// The fork that a run is to work in.
#[derive(Clone, Copy, Debug)]
pub struct ForkWish<'a> {
    /// The fork's name; `None` for one that is made of the prompt.
    pub name: Option<&'a str>,
    /// What the agent is asked.
    pub prompt: &'a str,
    /// The project.
    pub volume: DocId,
    /// A note of the project that the question is about.
    pub note: Option<DocId>,
    /// Whether a fork with this name may exist, because its session continues.
    pub may_exist: bool,
    /// Maximum size of the files in bytes.
    pub limit_bytes: u64,
    /// Current time.
    pub now: UnixMillis,
}

/// A fork that a run can work in.
#[derive(Clone, Debug)]
pub struct PreparedFork {
    /// Its record.
    pub fork: ForkRecord,
    /// Whether it was made just now.
    pub is_new: bool,
    /// Its volume.
    pub volume: DocId,
    /// The same note in it.
    pub note: Option<DocId>,
}

/// The state of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkState {
    /// Making it was interrupted.
    Unfinished,
    /// Discarding it was interrupted.
    HalfDiscarded,
    /// A change of the project by it was interrupted.
    Interrupted,
    /// Its folder is gone.
    Missing,
    /// Some of its changes are adopted.
    AdoptedInPart,
    /// Its changes are adopted.
    Adopted,
    /// As its last run is.
    AsRun,
    /// Nothing was asked in it.
    NoRun,
}

/// A fork with its runs.
#[derive(Clone, Debug)]
pub struct ForkOverview {
    /// Its record.
    pub fork: ForkRecord,
    /// The fork's state.
    pub state: ForkState,
    /// Its runs, oldest first.
    pub runs: Vec<(DocId, RunSummary)>,
}

impl ForkOverview {
    /// Returns the number of tokens that its runs have used.
    pub fn tokens(&self) -> u64 {
        let tokens = |line: &RunSummary| line.spent.input_tokens.saturating_add(line.spent.output_tokens);
        self.runs.iter().map(|(_, line)| tokens(line)).sum()
    }

    /// Returns what its runs have cost in US dollars; `None` if that isn't known.
    pub fn cost(&self) -> Option<f64> {
        self.runs.iter().map(|(_, line)| line.spent.cost).sum()
    }
}

/// Which changes of a fork are adopted, and how.
#[derive(Clone, Debug)]
pub struct AdoptionChoice {
    /// The changes to adopt.
    pub selection: ChangeSelection,
    /// Version of the changes that the user has seen; see [`AdoptRequest::seen`].
    pub seen: Option<String>,
    /// Whose version counts where both have changed the same.
    pub prefer: ConflictPreference,
    /// Who wants it, for the user's `git`.
    pub caller: GitCaller,
    /// Current time.
    pub now: UnixMillis,
}

impl AdoptionChoice {
    fn request(self, message: String) -> AdoptRequest {
        let AdoptionChoice { selection, seen, prefer, caller, now } = self;
        AdoptRequest { selection, seen, prefer, message, now: now.0, caller }
    }
}

impl OpenForks {
    /// Returns the forks of the workspace that a program has open.
    pub fn new(handle: Handle) -> OpenForks {
        let store = ForkStore::new(handle.workspace_folder());
        OpenForks { handle, store }
    }

    /// Returns the store.
    pub fn store(&self) -> &ForkStore {
        &self.store
    }

    /// Closes forks of which nothing is recorded here, after a crash while one was discarded, or in a restored
    /// workspace.
    ///
    /// # Errors
    /// Returns an error if the program is closing, here and in the methods below.
    pub fn close_lost(&self) -> Result<(), ForkError> {
        let open = self.handle.read(|session| {
            let name = |volume: &engine::Volume| volume.fork_of.as_ref().map(|origin| origin.name.clone());
            session.fork_volumes().map(|volume| (volume.id, name(volume), volume.root.clone())).collect::<Vec<_>>()
        })?;
        for (volume, name, root) in open {
            let record = name.and_then(|name| self.store.read(&name).ok());
            if record.is_none_or(|fork| Some(self.store.files_folder(&fork)) != root) {
                self.handle.run_command(Command::CloseVolume { volume })?;
            }
        }
        Ok(())
    }

    /// Returns the volume of a fork; `None` if it isn't open.
    pub(crate) fn volume(&self, fork: &ForkRecord) -> Result<Option<DocId>, ForkError> {
        let root = self.store.files_folder(fork);
        Ok(self.handle.read(move |session| {
            let mut volumes = session.fork_volumes();
            volumes.find(|volume| volume.root.as_ref() == Some(&root)).map(|volume| volume.id)
        })?)
    }

    /// Returns a fork with its runs.
    ///
    /// # Errors
    /// See above.
    pub fn overview(&self, fork: ForkRecord) -> Result<ForkOverview, ForkError> {
        let mut runs: Vec<(DocId, RunSummary)> = match self.volume(&fork)? {
            Some(volume) => self.handle.read(move |session| {
                let runs = session.agents().runs().filter(|(_, line)| line.volume == volume);
                runs.map(|(id, line)| (id, line.clone())).collect()
            })?,
            None => Vec::new(),
        };
        runs.sort_by_key(|(id, line)| (line.start_time, *id));
        let is_active = runs.last().is_some_and(|(_, line)| line.ending.is_none());
        let state = match fork.phase {
            ForkPhase::Making => ForkState::Unfinished,
            ForkPhase::Discarding => ForkState::HalfDiscarded,
            ForkPhase::Ready if fork.interrupted().is_some() => ForkState::Interrupted,
            ForkPhase::Ready if !self.store.has_files(&fork) => ForkState::Missing,
            ForkPhase::Ready => match fork.adopted() {
                _ if is_active => ForkState::AsRun,
                Some(adopted) if adopted.is_partial => ForkState::AdoptedInPart,
                Some(_) => ForkState::Adopted,
                None if runs.is_empty() => ForkState::NoRun,
                None => ForkState::AsRun,
            },
        };
        Ok(ForkOverview { fork, state, runs })
    }

    /// Returns what has changed in a fork, once everything that was typed is in its files.
    ///
    /// # Errors
    /// Returns an error if the fork can't be read.
    pub fn saved_changes(&self, fork: &ForkRecord) -> Result<ForkChanges, ForkError> {
        self.handle.wait_until_saved()?;
        self.store.changes(fork)
    }

    /// Makes the fork, or finds it if its session continues, and opens it.
    ///
    /// # Errors
    /// Returns an error if it can't be made or opened. Nothing is left then of a fork that can't be made.
    pub fn prepare(&self, wish: &ForkWish<'_>) -> Result<PreparedFork, ForkError> {
        let volume = wish.volume;
        let known =
            move |session: &Session| session.volume(volume).map(|known| (known.name.clone(), known.root.clone()));
        let refuse = |why: &str| ForkError::Refused(why.to_owned());
        let (name, root) = self.handle.read(known)?.ok_or_else(|| refuse("the volume was closed meanwhile"))?;
        let root = root.ok_or_else(|| refuse("the volume has no folder on this device"))?;
        let existing = wish.name.filter(|_| wish.may_exist).and_then(|name| self.store.read(name).ok());
        let (mut fork, is_new) = match existing {
            Some(fork) if fork.volume != volume => {
                return Err(ForkError::Refused(format!("the fork {} is one of {}", fork.name, fork.volume_name)));
            }
            Some(fork) if fork.phase != ForkPhase::Ready || !self.store.has_files(&fork) => {
                return Err(ForkError::Refused(format!(
                    "the fork {0} isn't complete; `tracebook forks discard {0}` removes what there is of it",
                    fork.name
                )));
            }
            Some(fork) => (fork, false),
            None => {
                // The agent sees what the user sees, so what was typed has to be in the files.
                self.handle.wait_until_saved()?;
                let request = ForkRequest {
                    name: wish.name,
                    prompt: wish.prompt,
                    volume: (volume, &name),
                    project: &root,
                    now: wish.now.0,
                    limit_bytes: wish.limit_bytes,
                };
                (self.store.create(request)?, true)
            }
        };
        let opened = self.open(&fork)?;
        if is_new {
            self.copy_variables(&mut fork, opened, wish.limit_bytes)?;
        }
        let note = wish.note;
        let note = self.handle.read(move |session| {
            let (_, path) = session.locate_file(note?)?;
            Some(session.volume(opened)?.files.get(path)?.id)
        })?;
        Ok(PreparedFork { fork, is_new, volume: opened, note })
    }

    /// Opens a fork as a volume, if it isn't open, and waits until its files are known.
    fn open(&self, fork: &ForkRecord) -> Result<DocId, ForkError> {
        let id = match self.volume(fork)? {
            Some(id) => id,
            None => {
                let origin = ForkOrigin { volume: fork.volume, name: fork.name.clone() };
                let folder = self.store.files_folder(fork);
                self.handle.run_command(Command::OpenFork { origin, folder })?;
                let closed = || ForkError::Unreadable("the fork was closed meanwhile".to_owned());
                self.volume(fork)?.ok_or_else(closed)?
            }
        };
        let scanned = move |session: &Session| {
            let volume = session.volume(id)?;
            (volume.scans > 0 && volume.scanning == ScanState::Idle).then(|| volume.trouble.clone())
        };
        match self.handle.wait_on_disk(Some(SCAN_TIMEOUT), scanned)? {
            Some(None) => {}
            Some(Some(trouble)) => return Err(ForkError::Unreadable(trouble)),
            None => {
                let why = "the fork could not be looked through in ten minutes";
                return Err(ForkError::Unreadable(why.to_owned()));
            }
        }
        // Without the index, its run searches what is there so far.
        let _ = self.handle.search().wait_until_indexed(INDEX_TIMEOUT);
        Ok(id)
    }

    /// Rejects a fork in which a run is active.
    fn ensure_idle(&self, fork: &ForkRecord) -> Result<(), ForkError> {
        let Some(volume) = self.volume(fork)? else { return Ok(()) };
        let active = self.handle.read(move |session| {
            let mut runs = session.agents().runs();
            runs.find(|(_, line)| line.volume == volume && line.ending.is_none()).map(|(id, _)| id)
        })?;
        match active {
            Some(run) => Err(ForkError::Refused(format!(
                "a run in the fork {} isn't over; end it first: tracebook runs {} --stop",
                fork.name,
                &run.to_string()[..8]
            ))),
            None => Ok(()),
        }
    }

    /// Rejects a change of a project that is closed, elsewhere or read-only.
    fn ensure_project(&self, fork: &ForkRecord) -> Result<(), ForkError> {
        let (volume, project, name) = (fork.volume, fork.project.clone(), fork.volume_name.clone());
        let obstacle = self.handle.read(move |session| match session.volume(volume) {
            Some(known) if known.root.as_ref() == Some(&project) => session.read_only_reason(volume),
            Some(_) | None => Some(format!(
                "{name} isn't open at {}; open that folder first: tracebook open FOLDER",
                project.display()
            )),
        })?;
        obstacle.map_or(Ok(()), |why| Err(ForkError::Refused(why)))
    }

    /// Adopts changes of a fork in its project, and adds the variables of its notes to theirs, as forks. If an earlier
    /// change of the project was interrupted, finishes that instead, and returns what it was.
    ///
    /// # Errors
    /// Returns an error if the project can't be changed, a run is active in the fork, or both have changed the same.
    /// Nothing is adopted then.
    pub fn adopt(
        &self,
        name: &str,
        choice: AdoptionChoice,
    ) -> Result<(AdoptionReport, Option<AdoptionKind>), ForkError> {
        let fork = self.store.read(name)?;
        self.ensure_project(&fork)?;
        self.handle.wait_until_saved()?;
        let interrupted = fork.interrupted().map(|interrupted| (interrupted.kind, interrupted.is_partial));
        let chosen = choice.selection.paths();
        let mut report = match interrupted {
            Some(_) => self.store.finish_interrupted(name, choice.caller)?,
            None => {
                self.ensure_idle(&fork)?;
                let message = self.commit_message(&fork)?;
                self.store.adopt(name, &choice.request(message))?
            }
        };
        self.read_project(&fork, &report)?;
        let paths = match interrupted {
            None => chosen,
            Some((AdoptionKind::Adopt, false)) => None,
            Some((AdoptionKind::Adopt, true)) => Some(report.steps.iter().map(|step| step.path.clone()).collect()),
            Some((AdoptionKind::Undo, _)) => Some(BTreeSet::new()),
        };
        report.variables = self.adopt_variables(&fork, paths.as_ref())?;
        Ok((report, interrupted.map(|(kind, _)| kind)))
    }

    /// Takes the last adoption back, or an interrupted change of the project. Returns what was written, and whether it
    /// was an interrupted change.
    ///
    /// # Errors
    /// As for [`OpenForks::adopt`].
    pub fn undo(&self, name: &str, choice: AdoptionChoice) -> Result<(AdoptionReport, bool), ForkError> {
        let fork = self.store.read(name)?;
        self.ensure_project(&fork)?;
        self.handle.wait_until_saved()?;
        let is_interrupted = fork.interrupted().is_some();
        let report = if is_interrupted {
            let steps = self.store.take_back_interrupted(name)?;
            let commit = ProjectCommit::NoRepository;
            AdoptionReport { steps, commit, skipped: Vec::new(), variables: Vec::new() }
        } else {
            self.store.undo_adoption(name, &choice.request(format!("Undo the adoption of fork {name}")))?
        };
        self.read_project(&fork, &report)?;
        Ok((report, is_interrupted))
    }

    /// Discards a fork. Returns the hash of its branch's last commit if it has commits of its own.
    ///
    /// # Errors
    /// Returns an error if a run is active in it, or if something can't be removed.
    pub fn discard(&self, name: &str) -> Result<Option<String>, ForkError> {
        let fork = self.store.read(name)?;
        self.ensure_idle(&fork)?;
        let volume = self.volume(&fork)?;
        let notes = volume.map(|volume| self.notes_with_variables(volume)).transpose()?.unwrap_or_default();
        self.store.begin_discard(name, notes)?;
        if let Some(volume) = volume {
            self.handle.wait_until_saved()?;
            self.handle.run_command(Command::CloseVolume { volume })?;
            self.handle.wait_until_saved()?;
        }
        self.store.discard(name)
    }

    /// Returns the message of an adoption's commit: the fork, what was asked, and the runs.
    fn commit_message(&self, fork: &ForkRecord) -> Result<String, ForkError> {
        let runs = self.overview(fork.clone())?.runs;
        let prompt = runs.first().and_then(|(_, line)| line.prompt.lines().next()).unwrap_or_default();
        let subject = format!("Adopt fork {}: {}", fork.name, prompt.trim());
        let subject: String = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        let runs: Vec<String> = runs.iter().map(|(id, _)| format!("Tracebook-Run: {id}")).collect();
        Ok(format!("{}\n\n{}\n", subject.trim_end_matches([' ', ':']), runs.join("\n")))
    }

    /// Lets the session read what was written to a project.
    fn read_project(&self, fork: &ForkRecord, report: &AdoptionReport) -> Result<(), ForkError> {
        if report.steps.is_empty() {
            return Ok(());
        }
        self.rescan(&fork.project)?;
        let settled = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
        self.handle.wait(Some(NOTE_MERGE_TIMEOUT), settled)?;
        Ok(self.handle.wait_until_saved()?)
    }

    fn rescan(&self, folder: &Path) -> Result<(), ForkError> {
        let root = folder.to_owned();
        let before = self.handle.read(move |session| {
            let known = session.volumes().find(|volume| volume.root.as_ref() == Some(&root));
            known.map_or(0, |volume| volume.scans + u64::from(volume.scanning != ScanState::Idle))
        })?;
        self.handle.run_command(Command::OpenFolder { folder: folder.to_owned(), name: None })?;
        let root = folder.to_owned();
        let scanned = move |session: &Session| {
            let volume = session.volumes().find(|volume| volume.root.as_ref() == Some(&root))?;
            (volume.scans > before && volume.scanning == ScanState::Idle).then_some(())
        };
        match self.handle.wait_on_disk(Some(SCAN_TIMEOUT), scanned)? {
            Some(()) => Ok(()),
            None => Err(ForkError::Unreadable("the project could not be looked through in ten minutes".to_owned())),
        }
    }
}
