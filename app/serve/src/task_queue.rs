//! Tasks that programs give to agents: some run, others wait their turn by priority.

use crate::command_calls::{CommandCall, CommandOutcome, WorkspaceCommands};
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

/// What is done with the outcome of a task.
pub(crate) type TaskEndAction = Box<dyn FnOnce(&CommandOutcome) + Send>;

/// A task for the queue.
pub(crate) struct QueuedTask {
    /// Id of its run.
    pub(crate) id: String,
    /// Of tasks that can begin, the highest begins first.
    pub(crate) priority: i32,
    pub(crate) call: CommandCall,
    /// Tasks of this queue that must be completed before.
    pub(crate) after: Vec<String>,
    pub(crate) on_end: Option<TaskEndAction>,
}

impl QueuedTask {
    fn end(self, outcome: &CommandOutcome) {
        if let Some(action) = self.on_end {
            action(outcome);
        }
    }
}

/// Returns the outcome of a task that never began.
fn unbegun(reason: &str) -> CommandOutcome {
    CommandOutcome { code: 1, messages: reason.to_owned(), ..CommandOutcome::default() }
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

    /// Drops the dependencies on a completed task.
    fn release(&mut self, id: &str) {
        for task in &mut self.waiting {
            task.after.retain(|before| before != id);
        }
    }

    /// Takes out the tasks that depend on a failed one, and those that depend on them, and remembers why.
    fn abandon(&mut self, id: &str) -> Vec<(QueuedTask, String)> {
        let (mut failed, mut abandoned) = (vec![id.to_owned()], Vec::new());
        while let Some(id) = failed.pop() {
            let reason = format!("the task {id}, on which it depends, was not completed");
            while let Some(at) = self.waiting.iter().position(|task| task.after.contains(&id)) {
                let task = self.waiting.remove(at);
                self.remember(&task.id, reason.clone());
                failed.push(task.id.clone());
                abandoned.push((task, reason.clone()));
            }
        }
        abandoned
    }
}

fn end_all(abandoned: Vec<(QueuedTask, String)>) {
    for (task, reason) in abandoned {
        task.end(&unbegun(&reason));
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
    pub(crate) fn add(self: &Arc<Self>, mut task: QueuedTask) -> bool {
        let mut state = self.state();
        if state.waiting.len() >= MAX_WAITING_TASKS {
            return false;
        }
        // What is over since its caller looked was completed, or has failed and is remembered.
        let failed = task.after.iter().find(|id| state.reasons.contains_key(*id)).cloned();
        let is_open = |id: &String| {
            state.running.contains(id) || state.waiting.iter().any(|other| other.id == *id) || failed.is_some()
        };
        task.after.retain(is_open);
        state.waiting.push(task);
        let abandoned = failed.map(|id| state.abandon(&id)).unwrap_or_default();
        drop(state);
        end_all(abandoned);
        self.start_waiting();
        true
    }

    /// Starts what waits, the highest priority first, as long as there's room.
    fn start_waiting(self: &Arc<Self>) {
        let mut state = self.state();
        while state.running.len() < MAX_RUNNING_TASKS {
            // Of the same priority, the one that came first.
            let ready = (0..state.waiting.len()).rev().filter(|at| state.waiting[*at].after.is_empty());
            let first = ready.max_by_key(|at| state.waiting[*at].priority);
            let Some(at) = first else { return };
            let task = state.waiting.remove(at);
            state.running.push(task.id.clone());
            let queue = self.clone();
            std::thread::spawn(move || queue.run(task));
        }
    }

    fn run(self: &Arc<Self>, task: QueuedTask) {
        let outcome = self.commands.perform(&task.call, &mut |line| {
            // While it waits for an approval, a window can take over the workspace, and shows the approval.
            if let Some(waits) = waits_for_approval(line) {
                task.call.watches.store(waits, Ordering::Relaxed);
            }
        });
        let mut state = self.state();
        state.running.retain(|id| *id != task.id);
        let mut abandoned = Vec::new();
        if outcome.code == 0 {
            state.release(&task.id);
        } else {
            state.remember(&task.id, outcome.reason());
            abandoned = state.abandon(&task.id);
        }
        drop(state);
        task.end(&outcome);
        end_all(abandoned);
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
        let Some(at) = state.waiting.iter().position(|task| task.id == id) else { return false };
        let task = state.waiting.remove(at);
        let reason = "the task was canceled before it began";
        state.remember(id, reason.to_owned());
        let abandoned = state.abandon(id);
        drop(state);
        task.end(&unbegun(reason));
        end_all(abandoned);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Performs what tests tell it to: each task ends with the exit code that is sent for it.
    struct ToldCommands(Mutex<mpsc::Receiver<u8>>);

    impl WorkspaceCommands for ToldCommands {
        fn perform(&self, _call: &CommandCall, _on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
            let code = self.0.lock().expect("held").recv().expect("told");
            CommandOutcome { code, ..CommandOutcome::default() }
        }
    }

    #[test]
    fn a_task_waits_for_others_and_fails_with_them() {
        let (tell, told) = mpsc::channel();
        let queue = Arc::new(TaskQueue::new(Arc::new(ToldCommands(Mutex::new(told)))));
        let (ended, ends) = mpsc::channel();
        let add = |id: &str, after: &[&str]| {
            let (ended, name) = (ended.clone(), id.to_owned());
            let on_end: TaskEndAction = Box::new(move |outcome| ended.send((name, outcome.code)).expect("sent"));
            let after = after.iter().map(|id| (*id).to_owned()).collect();
            let call = CommandCall::default();
            assert!(queue.add(QueuedTask { id: id.to_owned(), priority: 0, call, after, on_end: Some(on_end) }));
        };
        add("a", &[]);
        add("b", &["a"]);
        add("c", &["b"]);
        add("d", &["c", "a"]);
        assert_eq!((queue.status("a"), queue.status("b")), (QueueStatus::Running, QueueStatus::Waiting));
        tell.send(0).expect("told");
        assert_eq!(ends.recv().expect("an end"), ("a".to_owned(), 0));
        tell.send(1).expect("told");
        let order: Vec<(String, u8)> = (0..3).map(|_| ends.recv().expect("an end")).collect();
        assert_eq!(order, [("b".to_owned(), 1), ("c".to_owned(), 1), ("d".to_owned(), 1)]);
        let QueueStatus::Failed(why) = queue.status("d") else { panic!("{:?}", queue.status("d")) };
        assert!(why.contains("the task c"), "{why}");
        // One that depends on a failed task fails at once, and one that depends on a completed task begins.
        add("e", &["b"]);
        assert_eq!(ends.recv().expect("an end").0, "e");
        add("f", &["a"]);
        add("g", &["f"]);
        assert!(queue.withdraw("g") && !queue.withdraw("g"));
        assert_eq!(ends.recv().expect("an end"), ("g".to_owned(), 1));
        tell.send(0).expect("told");
        assert_eq!(ends.recv().expect("an end"), ("f".to_owned(), 0));
    }
}
