//! Project memory in the window: experiences and traces, read in the background when files have changed, and the
//! actions on them.

mod agents;
mod budget;
mod curve;
mod detail;
mod experiences;
mod plans;
mod schedule;
mod trace_import;
mod traces;
mod widgets;

pub use agents::{AgentsPage, CallableAgents};
pub use budget::{BudgetPage, LowBudgetWarning, ModelCostStatus};
pub use experiences::ExperiencesPage;
pub use plans::PlansPage;
pub use schedule::SchedulesPage;
pub use traces::TracesPage;

use agent::memory::trace::RunTrace;
use agent::memory::{ProjectMemory, is_memory};
use agent::schedule::Schedule;
use agent::task_block::TaskBlock;
use eframe::egui;
use engine::{Command, Session};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use store::{BlobHash, DocId};

/// A command from the command table that concerns memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryCommand {
    /// Shows what agents remember.
    Experiences,
    /// Shows the traces that runs can follow.
    Traces,
    /// Shows spending and budgets.
    Budget,
    /// Shows the schedules.
    Schedule,
    /// Shows the agents that can be called.
    Agents,
    /// Shows the plans and their tasks.
    Plans,
    /// Restores the item that was deleted last.
    Undo,
}

/// Action requested by a memory page.
#[derive(Debug)]
pub enum MemoryAction {
    /// Removes an entry from its note, deletes a schedule, or cancels a task.
    Forget(ForgottenItem),
    /// Shows the run that something comes from, at the step with this id.
    ShowRun(DocId, String),
    /// Shows the experience with this id.
    Show(String),
    /// Imports traces into a volume.
    Import {
        /// The volume whose memory receives the traces.
        volume: DocId,
        /// Traces read from a file.
        traces: Vec<RunTrace>,
    },
    /// Starts a message to the agent with this name.
    Call(String),
    /// Creates a note, and shows it if requested.
    Make {
        /// The volume that receives the note.
        volume: DocId,
        /// Path in the volume.
        path: String,
        /// Initial text of the note.
        text: String,
        /// Whether the window shows it.
        shown: bool,
    },
    /// Runs a plan, or one task of it.
    CarryOut {
        /// The plan's note.
        note: DocId,
        /// All tasks of the plan.
        tasks: Vec<TaskBlock>,
        /// The id of the only task to run; `None` runs all open ones.
        only: Option<String>,
    },
}

/// A deleted item that can be restored.
#[derive(Clone, Debug)]
pub enum ForgottenItem {
    /// An entry that was removed from its note.
    Entry {
        /// The note that contained it.
        note: DocId,
        /// Byte offset at which it began.
        at: usize,
        /// Its full text.
        text: String,
    },
    /// A schedule that was deleted.
    Schedule {
        /// Its id, which is kept when it's restored.
        id: DocId,
        /// The schedule.
        what: Box<Schedule>,
    },
    /// A task of a plan that was canceled.
    Task {
        /// The plan's note.
        note: DocId,
        /// The task's id in the plan.
        task: String,
        /// Whether it had failed before.
        failed: bool,
    },
}

impl ForgottenItem {
    /// Returns the command that deletes the item, a message, and the command that restores it.
    pub fn commands(&self) -> (Command, &'static str, Command) {
        match self.clone() {
            ForgottenItem::Entry { note, at, text } => {
                let (old, new) = (text.clone(), String::new());
                let back = Command::Amend { note, at, old: String::new(), new: text };
                (Command::Amend { note, at, old, new }, "Forgotten.", back)
            }
            ForgottenItem::Schedule { id: schedule, what } => {
                (Command::RemoveSchedule { schedule }, "Schedule deleted.", Command::AddSchedule { schedule, what })
            }
            ForgottenItem::Task { note, task, failed } => (
                Command::CancelTask { note, task: task.clone() },
                "Task canceled.",
                Command::ReopenTask { note, task, failed },
            ),
        }
    }
}

/// The part of a volume's files that a page shows.
trait VolumeContents: Send + Sized + 'static {
    /// Returns whether the file at this path belongs to it.
    fn has(path: &str) -> bool;
    /// Reads it from a volume's folder. `project` is the folder of the volume whose memory it may be. Blocks.
    fn read(root: &Path, project: &Path) -> Self;
    /// Whether private memory volumes contain it, too.
    const IN_PRIVATE_MEMORY: bool = false;
}

impl VolumeContents for ProjectMemory {
    const IN_PRIVATE_MEMORY: bool = true;

    fn has(path: &str) -> bool {
        is_memory(path)
    }

    fn read(root: &Path, project: &Path) -> ProjectMemory {
        let folders = host::agents::project_memory::memory_folders(root);
        let mut memory = host::agents::project_memory::read_project_memory(root, &folders);
        host::agents::project_memory::read_written_files(project, &mut memory);
        memory
    }
}

/// Contents read from one volume.
struct VolumeMemory<T> {
    volume: DocId,
    name: String,
    holds: T,
}

/// Contents of all volumes as last read.
struct MemoryCache<T> {
    /// The volumes that it was read from, with their revisions.
    key: Option<Vec<(DocId, u64)>>,
    /// The files that it was read from, with their hashes.
    watched: Vec<(DocId, String, Option<BlobHash>)>,
    waits: Option<Receiver<Vec<VolumeMemory<T>>>>,
    kept: Vec<VolumeMemory<T>>,
    /// Incremented with each result; 0 before the first.
    revision: u64,
}

impl<T> Default for MemoryCache<T> {
    fn default() -> MemoryCache<T> {
        MemoryCache { key: None, watched: Vec::new(), waits: None, kept: Vec::new(), revision: 0 }
    }
}

impl<T: VolumeContents> MemoryCache<T> {
    /// Receives results, and reads again if files have changed.
    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        if let Some(waits) = &self.waits {
            match waits.try_recv() {
                Ok(kept) => {
                    self.kept = kept;
                    self.revision += 1;
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {}
            }
            self.waits = None;
        }
        let volumes = || session.volumes().chain(session.memory_volumes().filter(|_| T::IN_PRIVATE_MEMORY));
        let key: Vec<(DocId, u64)> = volumes().map(|volume| (volume.id, volume.revision)).collect();
        let hash = |volume: DocId, path: &str| Some(session.volume(volume)?.files.get(path)?.hash);
        let same = self.watched.iter().all(|(volume, path, known)| hash(*volume, path) == *known);
        if same && self.key.as_ref() == Some(&key) {
            return;
        }
        self.watched = if self.key.as_ref() == Some(&key) {
            let again = |(volume, path, _): (DocId, String, _)| {
                let now = hash(volume, &path);
                (volume, path, now)
            };
            std::mem::take(&mut self.watched).into_iter().map(again).collect()
        } else {
            let of = |volume: &engine::Volume| {
                let id = volume.id;
                let own = volume.files.iter().filter(|(path, _)| T::has(path));
                own.map(move |(path, row)| (id, path.clone(), Some(row.hash))).collect::<Vec<_>>()
            };
            volumes().flat_map(of).collect()
        };
        self.key = Some(key);
        let owner = |volume: &engine::Volume| session.volume(volume.memory_of.unwrap_or(volume.id));
        let place = |volume: &engine::Volume| {
            let owner = owner(volume)?;
            Some((volume.id, owner.name.clone(), volume.root.clone()?, owner.root.clone()?))
        };
        let roots: Vec<(DocId, String, PathBuf, PathBuf)> = volumes().filter_map(place).collect();
        let (tell, told) = channel();
        let wake = ctx.clone();
        std::thread::spawn(move || {
            let one = |(volume, name, root, project): (DocId, String, PathBuf, PathBuf)| VolumeMemory {
                volume,
                name,
                holds: T::read(&root, &project),
            };
            let _ = tell.send(roots.into_iter().map(one).collect()); // the page may be closed
            wake.request_repaint();
        });
        self.waits = Some(told);
    }
}

impl MemoryCache<ProjectMemory> {
    /// Returns the read errors, each with its reason.
    fn problems(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().flat_map(|kept| kept.holds.problems.iter().map(String::as_str))
    }
}

/// Returns the volume for new items: the open note's, or the first with a folder.
fn home(session: &Session, note: Option<DocId>) -> Option<DocId> {
    let here = note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
    here.or_else(|| session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id))
}

/// Returns the id of the file at this path in a volume.
pub fn file(session: &Session, volume: DocId, path: &str) -> Option<DocId> {
    session.volume(volume)?.files.get(path).map(|row| row.id)
}
