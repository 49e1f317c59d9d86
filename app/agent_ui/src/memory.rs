//! What projects remember, as the window shows it: experiences and traces, read elsewhere when files have changed; and
//! what is wished of them.

mod agents;
mod budget;
mod detail;
mod experiences;
mod plans;
mod schedule;
mod traces;
mod widgets;

pub use agents::{AgentsPage, CallableAgents};
pub use budget::{BudgetPage, LowBudgetWarning};
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

/// A command of the table that concerns memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryCommand {
    /// Show what agents remember.
    Experiences,
    /// Show the traces that runs can follow.
    Traces,
    /// Show what was spent.
    Budget,
    /// Show the schedules.
    Schedule,
    /// Show the agents that can be called.
    Agents,
    /// Show the plans and their tasks.
    Plans,
    /// Brings back what was forgotten last.
    Undo,
}

/// What pages of memory ask for.
#[derive(Debug)]
pub enum MemoryAction {
    /// An entry goes out of its note, a schedule out of the list; a task is given up.
    Forget(ForgottenItem),
    /// The run from which something comes, at one of its steps.
    ShowRun(DocId, String),
    /// The experience of this id.
    Show(String),
    /// Traces come into a volume.
    Import {
        /// The volume whose memory gets them.
        volume: DocId,
        /// What was read of a file.
        traces: Vec<RunTrace>,
    },
    /// A message to the agent of this name is begun.
    Call(String),
    /// A note is made, and shown where it is wished.
    Make {
        /// The volume that gets the note.
        volume: DocId,
        /// Path in the volume.
        path: String,
        /// Initial text of the note.
        text: String,
        /// Whether the window shows it.
        shown: bool,
    },
    /// A plan is carried out, or one task of it.
    CarryOut {
        /// The note that the plan is.
        note: DocId,
        /// All tasks of the plan.
        tasks: Vec<TaskBlock>,
        /// The id of the only task to do; `None`: all that are open.
        only: Option<String>,
    },
}

/// What was forgotten, and can be brought back.
#[derive(Clone, Debug)]
pub enum ForgottenItem {
    /// An entry that was taken out of its note.
    Entry {
        /// The note that held it.
        note: DocId,
        /// The byte at which it began.
        at: usize,
        /// Its whole text.
        text: String,
    },
    /// A schedule that was removed.
    Schedule {
        /// Its id, kept if it's brought back.
        id: DocId,
        /// The schedule as it was.
        what: Box<Schedule>,
    },
    /// A task of a plan that was given up.
    Task {
        /// The note that the plan is.
        note: DocId,
        /// The task's id in the plan.
        task: String,
        /// Whether it had failed before.
        failed: bool,
    },
}

impl ForgottenItem {
    /// Returns the command that deletes it, the message, and the command that restores it.
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

/// What a page shows of the files of volumes.
trait VolumeContents: Send + Sized + 'static {
    /// Whether a file of this path is part of it.
    fn has(path: &str) -> bool;
    /// Reads it from a volume's folder. Blocks.
    fn read(root: &Path) -> Self;
}

impl VolumeContents for ProjectMemory {
    fn has(path: &str) -> bool {
        is_memory(path)
    }

    fn read(root: &Path) -> ProjectMemory {
        host::agents::project_memory::read_project_memory(root, &host::agents::project_memory::memory_folders(root))
    }
}

/// What a volume holds of it.
struct VolumeMemory<T> {
    volume: DocId,
    name: String,
    holds: T,
}

/// What all volumes hold of it, as it was read last.
struct MemoryCache<T> {
    /// State of the volumes that it was read from.
    key: Option<Vec<(DocId, u64)>>,
    /// Those of them that are part of it, and what was in each.
    watched: Vec<(DocId, String, Option<BlobHash>)>,
    waits: Option<Receiver<Vec<VolumeMemory<T>>>>,
    kept: Vec<VolumeMemory<T>>,
    /// Rises with each result; 0 before the first.
    revision: u64,
}

impl<T> Default for MemoryCache<T> {
    fn default() -> MemoryCache<T> {
        MemoryCache { key: None, watched: Vec::new(), waits: None, kept: Vec::new(), revision: 0 }
    }
}

impl<T: VolumeContents> MemoryCache<T> {
    /// Stores results, and reads again if files have changed.
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
        let key: Vec<(DocId, u64)> = session.volumes().map(|volume| (volume.id, volume.revision)).collect();
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
            session.volumes().flat_map(of).collect()
        };
        self.key = Some(key);
        let roots: Vec<(DocId, String, PathBuf)> = session
            .volumes()
            .filter_map(|volume| Some((volume.id, volume.name.clone(), volume.root.clone()?)))
            .collect();
        let (tell, told) = channel();
        let wake = ctx.clone();
        std::thread::spawn(move || {
            let one =
                |(volume, name, root): (DocId, String, PathBuf)| VolumeMemory { volume, name, holds: T::read(&root) };
            let _ = tell.send(roots.into_iter().map(one).collect()); // the page may be closed
            wake.request_repaint();
        });
        self.waits = Some(told);
    }
}

impl MemoryCache<ProjectMemory> {
    /// What could not be read, each with the reason.
    fn problems(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().flat_map(|kept| kept.holds.problems.iter().map(String::as_str))
    }
}

/// The volume in which something new is made: the open note's, or the first.
fn home(session: &Session, note: Option<DocId>) -> Option<DocId> {
    let here = note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
    here.or_else(|| session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id))
}

/// The file of this path in a volume.
pub fn file(session: &Session, volume: DocId, path: &str) -> Option<DocId> {
    session.volume(volume)?.files.get(path).map(|row| row.id)
}
