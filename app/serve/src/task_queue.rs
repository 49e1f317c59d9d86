//! Tasks that programs give to agents: some run, others wait their turn by priority.

use crate::command_calls::{CommandCall, WorkspaceCommands};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of tasks that run at the same time.
const MAX_RUNNING_TASKS: usize = 4;
/// Maximum number of tasks that wait.
const MAX_WAITING_TASKS: usize = 200;
/// Maximum number of tasks whose failure to begin is remembered.
const MAX_REMEMBERED_FAILURES: usize = 200;

struct QueuedTask {
    id: String,
    priority: i32,
    call: CommandCall,
}

#[derive(Default)]
struct QueueState {
    /// In the order in which they came.
    waiting: Vec<QueuedTask>,
    running: Vec<String>,
    failures: VecDeque<String>,
    /// Why tasks ended without success, by id.
    reasons: HashMap<String, String>,
}

impl QueueState {
    /// Keeps why a task ended without success.
    fn remember(&mut self, id: &str, reason: String) {
        self.failures.push_back(id.to_owned());
        self.reasons.insert(id.to_owned(), reason);
        if self.failures.len() > MAX_REMEMBERED_FAILURES
            && let Some(oldest) = self.failures.pop_front()
        {
            self.reasons.remove(&oldest);
        }
    }
}

/// What the queue knows about a task. What runs or has ended is in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueueStatus {
    /// It waits for others to end.
    Waiting,
    /// It was given to an agent.
    Running,
    /// The command ended without success, for this reason.
    Failed(String),
    /// The queue doesn't know it, or it has ended well.
    Unknown,
}

/// Returns whether a run waits after this line of its output; `None` if the line doesn't say.
fn waits_for_approval(line: &str) -> Option<bool> {
    let line: Value = serde_json::from_str(line).ok()?;
    match line["type"].as_str()? {
        "approval_pending" => Some(true),
        "delta" | "thinking_delta" | "tool_pending" => None,
        _ => Some(false),
    }
}

/// The tasks of a server.
pub(crate) struct TaskQueue {
    commands: Arc<dyn WorkspaceCommands>,
    state: Mutex<QueueState>,
}

impl TaskQueue {
    pub(crate) fn new(commands: Arc<dyn WorkspaceCommands>) -> TaskQueue {
        TaskQueue { commands, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. Returns whether there was room for it.
    pub(crate) fn add(self: &Arc<Self>, id: String, priority: i32, call: CommandCall) -> bool {
        let mut state = self.state();
        if state.waiting.len() >= MAX_WAITING_TASKS {
            return false;
        }
        state.waiting.push(QueuedTask { id, priority, call });
        drop(state);
        self.start_waiting();
        true
    }

    /// Starts what waits, the highest priority first, as long as there's room.
    fn start_waiting(self: &Arc<Self>) {
        let mut state = self.state();
        while state.running.len() < MAX_RUNNING_TASKS {
            // Of the same priority, the one that came first.
            let first = (0..state.waiting.len()).rev().max_by_key(|at| state.waiting[*at].priority);
            let Some(at) = first else { return };
            let task = state.waiting.remove(at);
            state.running.push(task.id.clone());
            let queue = self.clone();
            std::thread::spawn(move || queue.run(&task));
        }
    }

    fn run(self: &Arc<Self>, task: &QueuedTask) {
        let outcome = self.commands.perform(&task.call, &mut |line| {
            // While it waits for an approval, a window can take over the workspace, and shows the approval.
            if let Some(waits) = waits_for_approval(line) {
                task.call.watches.store(waits, Ordering::Relaxed);
            }
        });
        let mut state = self.state();
        state.running.retain(|id| *id != task.id);
        if outcome.code != 0 {
            state.remember(&task.id, outcome.reason());
        }
        drop(state);
        self.start_waiting();
    }

    /// Returns what the queue knows about a task.
    pub(crate) fn status(&self, id: &str) -> QueueStatus {
        let state = self.state();
        if state.waiting.iter().any(|task| task.id == id) {
            return QueueStatus::Waiting;
        }
        if state.running.iter().any(|running| running == id) {
            return QueueStatus::Running;
        }
        state.reasons.get(id).cloned().map_or(QueueStatus::Unknown, QueueStatus::Failed)
    }

    /// Takes a task that waits out of the queue. Returns whether it waited.
    pub(crate) fn withdraw(&self, id: &str) -> bool {
        let mut state = self.state();
        let count = state.waiting.len();
        state.waiting.retain(|task| task.id != id);
        let was_waiting = state.waiting.len() < count;
        if was_waiting {
            state.remember(id, "the task was canceled before it began".to_owned());
        }
        was_waiting
    }
}
