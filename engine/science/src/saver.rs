//! The thread of states: hashes, compresses and writes what a cell changed, behind its reply, and thins old states
//! while nothing waits.

use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use kernel_states::{
    ChangedPages, PagePlace, ReplayPlan, SavedMemory, StateError, StateFolder, StateHeads, StateMove, StateRecord,
};
use python::protocol::KernelOutbox;
use serde_json::{Value, json};

/// How long a kernel that ends goes on thinning. What is left to do is done by the next one.
const TENDING_AT_END: Duration = Duration::from_millis(700);

/// What the thread of states does.
pub(crate) enum SaverTask {
    Save {
        changes: ChangedPages,
        record: Box<StateRecord>,
        parent: Value,
        /// Milliseconds that it has kept the next cell waiting.
        path_ms: f64,
    },
    /// A thinned state was made again.
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
        /// Whether it holds even if no cell is saved behind it.
        is_lasting: bool,
        reply: Sender<Result<MovedState, StateError>>,
    },
    /// These are current again.
    SetHeads {
        heads: StateHeads,
    },
    Lineage {
        reply: Sender<Vec<StateRecord>>,
    },
    /// Another memory is current: pages lie here.
    Adopt {
        places: Vec<PagePlace>,
    },
}

/// How a state is made current.
pub(crate) struct LoadedState {
    pub(crate) plan: ReplayPlan,
    /// The memory of the plan's base; its fresh pages are not filled yet. `None`: a fresh kernel.
    pub(crate) base: Option<SavedMemory>,
}

/// Where a move led.
pub(crate) struct MovedState {
    /// The state that is current now.
    pub(crate) state: Option<String>,
    /// Executions whose effect is gone by it.
    pub(crate) undone: Vec<String>,
    /// What was current before.
    pub(crate) before: StateHeads,
    pub(crate) branch: String,
}

impl MovedState {
    /// `rerun`: a cell made room for itself.
    pub(crate) fn to_json(&self, rerun: bool) -> Value {
        json!({"status": "ok", "state": self.state, "undone": self.undone, "branch": self.branch, "rerun": rerun})
    }
}

/// The body of the thread of states.
pub(crate) fn save_states(mut folder: StateFolder, queue: &Receiver<SaverTask>, outbox: &'static KernelOutbox) {
    // `Adopt` or `Load` comes before the first cell.
    let mut places = Vec::new();
    loop {
        // States are thinned while no cell waits.
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
                    let base = plan.base.as_ref().map(|base| folder.load_pages(base)).transpose()?;
                    Ok(LoadedState { plan, base })
                });
                if let Ok(LoadedState { base: Some(base), .. }) = &loaded {
                    places.clone_from(&base.places);
                }
                let _ = reply.send(loaded); // whoever asked may have ended
            }
            SaverTask::Move { to, is_lasting, reply } => {
                let _ = reply.send(move_heads(&mut folder, &to, is_lasting)); // as above
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
