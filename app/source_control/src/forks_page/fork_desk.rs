//! Does the work with forks for the window, on a thread of its own: the window shows what is known and asks for more.

use agent::memory::RecallOptions;
use engine::UnixMillis;
use forks::{
    AdoptedVariables, AdoptionChoice, AdoptionKind, AdoptionReport, ChangeMaker, ChangeSelection, ConflictPreference,
    DEFAULT_FORK_LIMIT_BYTES, ForkChanges, ForkError, ForkOverview, ForkPhase, ForkWish, GitCaller, OpenForks,
    PreparedFork, ProjectCommit,
};
use host::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::DocId;

/// Maximum number of files in conflict that a report names, and of places in each.
const MAX_SHOWN_CONFLICTS: usize = 3;

/// A fork in the list.
#[derive(Clone, Debug)]
pub struct ListedFork {
    /// The fork with its runs.
    pub overview: ForkOverview,
    /// Number of changed files; `None` if they can't be counted.
    pub changed: Option<usize>,
}

/// What a fork has changed, and which steps did.
#[derive(Clone, Debug)]
pub struct ForkDetails {
    /// The changes.
    pub changes: ForkChanges,
    /// The steps that changed files.
    pub makers: Vec<ChangeMaker>,
}

/// What has been read, or why it can't be.
pub(crate) type Reading<T> = Result<Arc<T>, Arc<str>>;

/// A change of a project or of a fork.
#[derive(Clone, Debug)]
pub enum ForkChange {
    /// Adopt these changes.
    Adopt(ChangeSelection, ConflictPreference),
    /// Undo the last adoption.
    Undo(ConflictPreference),
    /// Discard the fork.
    Discard,
}

impl ForkChange {
    fn title(&self) -> &'static str {
        match self {
            ForkChange::Adopt(..) => "Adopting the changes…",
            ForkChange::Undo(_) => "Undoing the adoption…",
            ForkChange::Discard => "Discarding the fork…",
        }
    }

    /// Returns the same change with another preference.
    pub(crate) fn preferring(self, prefer: ConflictPreference) -> ForkChange {
        match self {
            ForkChange::Adopt(selection, _) => ForkChange::Adopt(selection, prefer),
            ForkChange::Undo(_) => ForkChange::Undo(prefer),
            ForkChange::Discard => ForkChange::Discard,
        }
    }
}

/// A question to an agent that is to work in a new fork.
#[derive(Clone, Debug)]
pub struct ForkQuestion {
    /// The project.
    pub volume: DocId,
    /// The open note.
    pub note: Option<DocId>,
    /// What the agent is asked.
    pub text: String,
    /// The agent, if one is named.
    pub agent: Option<String>,
    /// Which earlier work the agent recalls.
    pub recall: RecallOptions,
}

/// A question whose fork is made.
#[derive(Clone, Debug)]
pub struct AnsweredWish {
    /// The question.
    pub question: ForkQuestion,
    /// The fork, or why there's none.
    pub fork: Result<PreparedFork, Arc<str>>,
}

/// The outcome of a change to a fork, for the user.
#[derive(Clone, Debug)]
pub struct ForkReport {
    /// The fork's name.
    pub fork: String,
    /// A sentence for the user.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// The change, if both sides have changed the same and the user can say whose version counts.
    pub conflict: Option<ForkChange>,
}

enum ForkTask {
    List,
    Read(String),
    /// The fork, the change, and what the user saw of the fork.
    Change(String, ForkChange, Option<Arc<ForkDetails>>),
    Ask(Box<ForkQuestion>),
}

#[derive(Default)]
struct DeskState {
    list: Option<Reading<Vec<ListedFork>>>,
    details: BTreeMap<String, Reading<ForkDetails>>,
    /// The forks whose changes are to be read.
    unread: BTreeSet<String>,
    /// Label of the change in progress.
    job: Option<&'static str>,
    report: Option<ForkReport>,
    answered: Option<AnsweredWish>,
    is_listing: bool,
}

/// The window's access to forks.
#[derive(Clone)]
pub struct ForkDesk {
    tasks: Sender<ForkTask>,
    state: Arc<Mutex<DeskState>>,
}

impl ForkDesk {
    /// Starts the thread, which ends with the window. `wake` lets the window draw again.
    pub fn start(handle: Handle, wake: impl Fn() + Send + 'static) -> ForkDesk {
        let (tasks, queue) = channel();
        let state = Arc::new(Mutex::new(DeskState::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            let forks = OpenForks::new(handle);
            for task in queue {
                perform(&forks, &shared, task);
                wake();
            }
        });
        ForkDesk { tasks, state }
    }

    fn state(&self) -> MutexGuard<'_, DeskState> {
        lock(&self.state)
    }

    fn send(&self, task: ForkTask) {
        // The thread ends only with the window.
        let _ = self.tasks.send(task);
    }

    /// Reads the list of forks again.
    pub fn refresh(&self) {
        if !std::mem::replace(&mut self.state().is_listing, true) {
            self.send(ForkTask::List);
        }
    }

    /// Returns the forks, newest first; `None` while they are read for the first time.
    pub fn list(&self) -> Option<Reading<Vec<ListedFork>>> {
        self.state().list.clone()
    }

    /// Reads what a fork has changed.
    pub fn read(&self, fork: &str) {
        if self.state().unread.insert(fork.to_owned()) {
            self.send(ForkTask::Read(fork.to_owned()));
        }
    }

    /// Returns what a fork has changed; `None` while it's read for the first time.
    pub fn details(&self, fork: &str) -> Option<Reading<ForkDetails>> {
        self.state().details.get(fork).cloned()
    }

    /// Begins a change. Does nothing while another is made.
    pub fn begin(&self, fork: &str, change: ForkChange) {
        let mut state = self.state();
        if state.job.is_none() {
            (state.job, state.report) = (Some(change.title()), None);
            let seen = state.details.get(fork).cloned().and_then(Result::ok);
            self.send(ForkTask::Change(fork.to_owned(), change, seen));
        }
    }

    /// Makes a fork for a question. Does nothing while something else is done.
    pub fn ask(&self, question: ForkQuestion) {
        let mut state = self.state();
        if state.job.is_none() {
            state.job = Some("Making a fork of the folder…");
            self.send(ForkTask::Ask(Box::new(question)));
        }
    }

    /// Returns the question whose fork is made, once.
    pub fn take_answered(&self) -> Option<AnsweredWish> {
        self.state().answered.take()
    }

    /// Returns what is being done.
    pub fn job(&self) -> Option<&'static str> {
        self.state().job
    }

    /// Returns how the last change ended.
    pub fn report(&self) -> Option<ForkReport> {
        self.state().report.clone()
    }

    /// Removes the report of the last change.
    pub fn dismiss_report(&self) {
        self.state().report = None;
    }
}

fn lock(state: &Mutex<DeskState>) -> MutexGuard<'_, DeskState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}

fn perform(forks: &OpenForks, shared: &Mutex<DeskState>, task: ForkTask) {
    match task {
        ForkTask::List => list(forks, shared),
        ForkTask::Read(fork) => read(forks, shared, fork),
        ForkTask::Change(fork, change, seen) => {
            let is_discarded = matches!(change, ForkChange::Discard);
            let report = make_change(forks, &fork, change, seen.as_deref());
            list(forks, shared);
            let is_gone = is_discarded && !report.is_error;
            if is_gone {
                lock(shared).details.remove(&fork);
            } else {
                read(forks, shared, fork);
            }
            let mut state = lock(shared);
            (state.job, state.report) = (None, Some(report));
        }
        ForkTask::Ask(question) => {
            let wish = ForkWish {
                name: None,
                prompt: &question.text,
                volume: question.volume,
                note: question.note,
                may_exist: false,
                limit_bytes: DEFAULT_FORK_LIMIT_BYTES,
                now: now(),
            };
            let fork = forks.prepare(&wish).map_err(|error| sentence(&error));
            let mut state = lock(shared);
            (state.job, state.answered) = (None, Some(AnsweredWish { question: *question, fork }));
        }
    }
}

fn list(forks: &OpenForks, shared: &Mutex<DeskState>) {
    // What happens from here on may be missed by this reading, and is a reason for another one.
    lock(shared).is_listing = false;
    let listed = || -> Result<Vec<ListedFork>, ForkError> {
        forks.close_lost()?;
        let mut all = forks.store().list()?;
        all.sort_by_key(|fork| std::cmp::Reverse(fork.created));
        let one = |fork: forks::ForkRecord| {
            // A fork whose folder is gone has no changes to count.
            let changes = (fork.phase == ForkPhase::Ready).then(|| forks.store().changes(&fork).ok()).flatten();
            Ok(ListedFork { overview: forks.overview(fork)?, changed: changes.map(|changes| changes.files.len()) })
        };
        all.into_iter().map(one).collect()
    };
    let listed = listed().map(Arc::new).map_err(|error| sentence(&error));
    lock(shared).list = Some(listed);
}

fn read(forks: &OpenForks, shared: &Mutex<DeskState>, name: String) {
    lock(shared).unread.remove(&name);
    let details = || -> Result<ForkDetails, ForkError> {
        let fork = forks.store().read(&name)?;
        let changes = forks.saved_changes(&fork)?;
        let runs = forks.overview(fork)?.runs;
        Ok(ForkDetails { changes, makers: forks.read_makers(&runs)? })
    };
    let details = details().map(Arc::new).map_err(|error| sentence(&error));
    lock(shared).details.insert(name, details);
}

fn sentence(error: &ForkError) -> Arc<str> {
    ui::text::sentence(&error.to_string()).into()
}

fn make_change(forks: &OpenForks, fork: &str, change: ForkChange, seen: Option<&ForkDetails>) -> ForkReport {
    // What the page hasn't shown has no version, so it isn't adopted. An interrupted change is finished as it began.
    let seen = Some(seen.map(|seen| seen.changes.version()).unwrap_or_default());
    let choice = |selection: ChangeSelection, prefer: ConflictPreference| AdoptionChoice {
        selection,
        seen: seen.clone(),
        prefer,
        caller: GitCaller::Window,
        now: now(),
    };
    let done = match change.clone() {
        ForkChange::Adopt(selection, prefer) => {
            forks.adopt(fork, choice(selection, prefer)).map(|(report, interrupted)| {
                let verb = match interrupted {
                    None => "Adopted",
                    Some(AdoptionKind::Adopt) => "Finished the interrupted adoption of",
                    Some(AdoptionKind::Undo) => "Finished the interrupted undo of",
                };
                adoption_words(verb, &report)
            })
        }
        ForkChange::Undo(prefer) => {
            forks.undo(fork, choice(ChangeSelection::default(), prefer)).map(|(report, is_interrupted)| {
                let verb = if is_interrupted { "Took back the interrupted change of" } else { "Undid the adoption of" };
                adoption_words(verb, &report)
            })
        }
        ForkChange::Discard => forks.discard(fork).map(|last| match last {
            Some(last) => {
                let last = last.get(..10).unwrap_or(&last);
                format!("The fork {fork} is gone. Git keeps the last commit of its branch for weeks: {last}")
            }
            None => format!("The fork {fork} is gone. The records of its runs stay."),
        }),
    };
    match done {
        Ok(text) => ForkReport { fork: fork.to_owned(), text, is_error: false, conflict: None },
        Err(error) => {
            let conflict = matches!(error, ForkError::Conflicts(_)).then_some(change);
            let text = match &error {
                ForkError::Conflicts(conflicts) => conflict_words(conflicts),
                _ => sentence(&error).to_string(), // tidy: open because every other error says it itself
            };
            ForkReport { fork: fork.to_owned(), text, is_error: true, conflict }
        }
    }
}

fn adoption_words(verb: &str, report: &AdoptionReport) -> String {
    if report.steps.is_empty() && report.variables.is_empty() {
        return "Nothing to do: the project has all of it already.".to_owned();
    }
    let mut words = match report.steps.len() {
        0 => "No file has changed.".to_owned(),
        count => format!("{verb} {}.", ui::text::counted(count, "file")),
    };
    match &report.commit {
        ProjectCommit::Made(id) => words.push_str(&format!(" Committed as {}.", id.get(..10).unwrap_or(id))),
        ProjectCommit::NotMade(why) => words.push_str(&format!(" Not committed, because {why}.")),
        ProjectCommit::NoRepository => {}
    }
    for AdoptedVariables { path, branch, problem } in &report.variables {
        if let Some(branch) = branch {
            words.push_str(&format!("\nThe variables of {path} in the fork are now its fork of variables {branch}."));
        }
        if let Some(why) = problem {
            words.push_str(&format!("\nThe variables of {path} stay in the fork: {why}."));
        }
    }
    for (path, why) in &report.skipped {
        words.push_str(&format!("\n{path} stays in the fork: {why}."));
    }
    words
}

fn conflict_words(conflicts: &[forks::AdoptConflict]) -> String {
    let mut words = "The project has changed where the fork has, so nothing was changed.".to_owned();
    for conflict in conflicts.iter().take(MAX_SHOWN_CONFLICTS) {
        words.push_str(&format!("\n{}: {}", conflict.path, conflict.why));
        for region in conflict.regions.iter().take(MAX_SHOWN_CONFLICTS) {
            for (side, text) in [("Project", &region.ours), ("Fork", &region.theirs)] {
                let line = text.lines().next().unwrap_or("(no lines)");
                words.push_str(&format!("\n{side}: {line}"));
            }
        }
    }
    words
}
