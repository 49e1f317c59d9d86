//! The ids that programs choose for their tasks, beside those of the runs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Maximum number of names that are remembered.
const MAX_NAMES: usize = 10_000;

/// A token's id, and the name that it chose.
type NameOwner = (String, String);

/// A task under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTask {
    /// Id of its run.
    pub(super) run: String,
    /// Hash of what was asked for.
    pub(super) fingerprint: blake3::Hash,
}

/// Another task has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameTaken;

#[derive(Default)]
struct NamedTasks {
    tasks: HashMap<NameOwner, NamedTask>,
    /// The oldest first.
    order: VecDeque<NameOwner>,
}

/// The names of tasks. They don't survive the server.
#[derive(Default)]
pub(super) struct TaskNames(Mutex<NamedTasks>);

impl TaskNames {
    /// Returns the task that a token has under this name.
    pub(super) fn get(&self, token: &str, name: &str) -> Option<NamedTask> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.tasks.get(&(token.to_owned(), name.to_owned())).cloned()
    }

    /// Gives a task a name. Returns the run of the same task that has the name already.
    pub(super) fn claim(&self, token: &str, name: &str, task: NamedTask) -> Result<Option<String>, NameTaken> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = (token.to_owned(), name.to_owned());
        match known.tasks.get(&owner) {
            Some(same) if same.fingerprint == task.fingerprint => return Ok(Some(same.run.clone())),
            Some(_) => return Err(NameTaken),
            None => {}
        }
        known.tasks.insert(owner.clone(), task);
        known.order.push_back(owner);
        if known.order.len() > MAX_NAMES
            && let Some(oldest) = known.order.pop_front()
        {
            known.tasks.remove(&oldest);
        }
        Ok(None)
    }

    /// Forgets the name of a task that was not accepted.
    pub(super) fn forget(&self, token: &str, name: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = (token.to_owned(), name.to_owned());
        known.tasks.remove(&owner);
        known.order.retain(|other| *other != owner);
    }
}
