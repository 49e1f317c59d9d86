//! The `states` thread: hashes, compresses and writes a cell's changes after its reply, and thins old states while no
//! task waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use kernel_states::{
    ChangedPages, KernelMemory, MemorySlots, PagePlace, ReplayPlan, StateError, StateFolder, StateHeads, StateMove,
    StateRecord, VisitedState,
};
use python::protocol::KernelOutbox;
use serde_json::{Value, json};

/// Time that an ending kernel may continue thinning. The next kernel does the rest.
const TENDING_AT_END: Duration = Duration::from_millis(700);

/// Task of the `states` thread.
pub(crate) enum SaverTask {
    Save {
        changes: ChangedPages,
        record: Box<StateRecord>,
        parent: Value,
        /// Milliseconds that finding the changes has delayed the next cell.
        path_ms: f64,
    },
    /// Stores a thinned state that was recreated.
    KeepAgain {
        changes: ChangedPages,
        state: String,
    },
    Load {
        state: String,
        reply: Sender<Result<LoadedState, StateError>>,
    },
    Move {
        to: StateMove,
        /// Whether the move is kept even if no later cell is saved.
        is_lasting: bool,
        reply: Sender<Result<MovedState, StateError>>,
    },
    /// Continues on another branch, until the visit ends. `None` ends it.
    Visit {
        branch: Option<String>,
        reply: Sender<Result<VisitedState, StateError>>,
    },
    /// Makes these states current again.
    SetHeads {
        heads: StateHeads,
    },
    Lineage {
        reply: Sender<Vec<StateRecord>>,
    },
    /// Continues with another memory, whose pages are at these places.
    Adopt {
        places: Vec<PagePlace>,
    },
}

/// A loaded state: its base memory and the cells to run again.
pub(crate) struct LoadedState {
    pub(crate) plan: ReplayPlan,
    /// Memory of the plan's base, without its fresh pages. `None`: a fresh kernel.
    pub(crate) base: Option<KernelMemory>,
}

/// Result of a move between states.
pub(crate) struct MovedState {
    /// The current state after the move; `None` is a fresh kernel.
    pub(crate) state: Option<String>,
    /// Executions that the move undid.
    pub(crate) undone: Vec<String>,
    /// The current states before the move.
    pub(crate) before: StateHeads,
    pub(crate) branch: String,
}

impl MovedState {
    /// Returns the content of the reply. `rerun`: a cell that runs again moved back to the state before it.
    pub(crate) fn to_json(&self, rerun: bool) -> Value {
        json!({"status": "ok", "state": self.state, "undone": self.undone, "branch": self.branch, "rerun": rerun})
    }
}

/// Runs the `states` thread until the queue is closed.
pub(crate) fn save_states(
    mut folder: StateFolder,
    slots: Option<&Arc<MemorySlots>>,
    queue: &Receiver<SaverTask>,
    outbox: &'static KernelOutbox,
) {
    // `Adopt` or `Load` arrives before the first cell.
    let mut places = Vec::new();
    loop {
        // Thin states while no task waits.
        let task = match queue.try_recv() {
            Ok(task) => task,
            Err(TryRecvError::Empty) if folder.needs_tending() => {
                tend(&mut folder, &mut places);
                continue;
            }
            Err(TryRecvError::Empty) => match queue.recv() {
                Ok(task) => task,
                Err(_) => break,
            },
            Err(TryRecvError::Disconnected) => break,
        };
        match task {
            SaverTask::Save { changes, record, parent, path_ms } => {
                let before = Instant::now();
                let said = match folder.save(&mut places, &changes, *record) {
                    Ok(record) => {
                        let mut said = serde_json::to_value(&record).unwrap_or_default();
                        said["status"] = "ok".into();
                        said["path_ms"] = path_ms.into();
                        said["pages"] = changes.numbers.len().into();
                        said["ms"] = (before.elapsed().as_secs_f64() * 1000.0).into();
                        said
                    }
                    Err(why) => json!({"status": "error", "why": why.to_string(), "execution": parent["msg_id"]}),
                };
                outbox.send_reply(&parent, "state_saved", said);
            }
            SaverTask::Load { state, reply } => {
                let loaded = folder.replay_plan(&state).and_then(|plan| {
                    let base = plan.base.as_ref().map(|base| folder.load_for_kernel(base, slots)).transpose()?;
                    Ok(LoadedState { plan, base })
                });
                if let Ok(LoadedState { base: Some(base), .. }) = &loaded {
                    places = base.places().to_vec();
                }
                let _ = reply.send(loaded); // whoever asked may have ended
                folder.learn_loaded();
            }
            SaverTask::Move { to, is_lasting, reply } => {
                let _ = reply.send(move_heads(&mut folder, &to, is_lasting)); // as above
            }
            SaverTask::Visit { branch, reply } => {
                let visited = match branch {
                    Some(name) => folder.visit_branch(&name),
                    None => Ok(folder.end_visit()),
                };
                let _ = reply.send(visited); // as above
            }
            SaverTask::SetHeads { heads } => {
                if let Err(why) = folder.set_heads(heads) {
                    eprintln!("tracebook kernel: {why}");
                }
            }
            SaverTask::Lineage { reply } => {
                let current = folder.heads().current().map(ToOwned::to_owned);
                let _ = reply.send(folder.lineage(current.as_deref())); // as above
            }
            SaverTask::Adopt { places: other } => {
                folder.forget_unsaved();
                places = other;
            }
            SaverTask::KeepAgain { changes, state } => {
                if let Err(why) = folder.keep_again(&mut places, &changes, &state) {
                    eprintln!("tracebook kernel: {why}");
                }
            }
        }
    }
    let ended = Instant::now();
    if let Err(why) = folder.close() {
        eprintln!("tracebook kernel: {why}");
    }
    while folder.needs_tending() && ended.elapsed() < TENDING_AT_END {
        tend(&mut folder, &mut places);
    }
}

fn tend(folder: &mut StateFolder, places: &mut [PagePlace]) {
    if let Err(why) = folder.tend(places) {
        eprintln!("tracebook kernel: states can't be thinned: {why}");
    }
}

fn move_heads(folder: &mut StateFolder, to: &StateMove, is_lasting: bool) -> Result<MovedState, StateError> {
    let heads_before = folder.heads().clone();
    let before = folder.lineage(folder.heads().current());
    let to = match to {
        StateMove::Receive => StateMove::To(folder.receive()?),
        other => other.clone(),
    };
    if let StateMove::Take(_, state) = &to {
        folder.add_brought(state)?;
    }
    let heads = to.apply(folder.heads(), &|id| folder.record(id).ok())?;
    if is_lasting {
        folder.set_heads(heads)?;
    } else {
        folder.set_heads_until_saved(heads);
    }
    let after: std::collections::BTreeSet<String> =
        folder.lineage(folder.heads().current()).into_iter().map(|record| record.state).collect();
    let undone = before.into_iter().filter(|record| !after.contains(&record.state)).map(|record| record.execution);
    Ok(MovedState {
        state: folder.heads().current().map(ToOwned::to_owned),
        undone: undone.collect(),
        before: heads_before,
        branch: folder.heads().branch.clone(),
    })
}
