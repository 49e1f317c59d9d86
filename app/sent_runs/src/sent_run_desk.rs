//! Sends runs and decisions for a window, on threads of their own: the window shows what is known and asks for more.

use crate::send_errors::SentRunError;
use crate::task_courier::TaskCourier;
use crate::{
    SentQuestion, hub_devices, open_waiting_parts, queue_of_volume, queued_label, queued_runs, send_decision, send_run,
    shared_hubs, stop_if_queued,
};
use engine::Command;
use host::Handle;
use host::peers::DeviceId;
use host::peers::work::{WorkClient, WorkRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use store::{DecisionRecord, DocId};

/// How often the queue is asked about a run.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// How long a decision that was sent may take to arrive. If the call still waits then, it can be decided again.
const DECISION_TIMEOUT: Duration = Duration::from_secs(30);

/// A call of a run: the run, and the id of its approval.
pub type CallName = (DocId, String);

/// The devices that a hub knows, without this one; or why they aren't known.
pub type KnownDevices = Result<Vec<(DeviceId, String)>, UnknownDevicesError>;

/// Why the devices of a hub aren't known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownDevicesError(pub String);

/// What is known of sent runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentRunsNews {
    /// The devices that may carry out runs of a volume.
    pub devices: BTreeMap<DocId, KnownDevices>,
    /// What happens with runs in the queue, in words.
    pub labels: BTreeMap<DocId, String>,
    /// Runs that are over in the queue.
    pub ended: BTreeSet<DocId>,
    /// Runs that couldn't be sent.
    pub unsent: BTreeSet<DocId>,
    /// Decisions on their way, each with the name of the worker once the hub has it.
    pub decisions: BTreeMap<CallName, Option<String>>,
}

#[derive(Default)]
struct DeskState {
    news: Arc<SentRunsNews>,
    /// The runs that the queue is asked about.
    followed: BTreeSet<DocId>,
    /// The volumes whose devices are being asked for.
    asked_volumes: BTreeSet<DocId>,
    /// Why something wasn't sent, as clauses for the user.
    troubles: Vec<String>,
}

struct DeskShared {
    handle: Handle,
    state: Mutex<DeskState>,
    /// Called when something has changed.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl DeskShared {
    fn state(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, and lets the window draw it.
    fn change(&self, change: impl FnOnce(&mut SentRunsNews)) {
        change(Arc::make_mut(&mut self.state().news));
        (self.wake)();
    }

    fn fail(&self, why: &SentRunError) {
        self.state().troubles.push(why.to_string());
        (self.wake)();
    }

    fn queue(&self, volume: DocId) -> Result<WorkClient, SentRunError> {
        queue_of_volume(&self.handle.read(shared_hubs)?, volume)
    }

    fn devices(&self, volume: DocId) -> Result<Vec<(DeviceId, String)>, SentRunError> {
        let client = self.queue(volume)?;
        let mut devices = hub_devices(&client)?;
        devices.retain(|(id, _)| *id != client.own_id());
        Ok(devices)
    }

    fn decide(&self, run: DocId, approval: &str, record: DecisionRecord) -> Result<Option<String>, SentRunError> {
        let sent = send_decision(&self.handle, run, approval, &record)?;
        if sent.is_none() {
            // It wasn't sent by this device: what any device may decide is decided here.
            self.handle.run_command(Command::Decide { run, approval: approval.to_owned(), decision: record })?;
        }
        Ok(sent)
    }
}

/// Asks the queue about a run until it's over there, or the window is closed.
fn follow(shared: &Weak<DeskShared>, volume: DocId, run: DocId) {
    while let Some(desk) = shared.upgrade() {
        if open_waiting_parts(&desk.handle, run).is_err() {
            return; // the program is closing
        }
        // A hub that can't be reached now may be back later; the run continues meanwhile.
        let queued = desk.queue(volume).ok().and_then(|client| queued_runs(&client, vec![volume]).ok());
        if let Some(runs) = queued {
            let queued = runs.into_iter().find(|queued| queued.run == run);
            let is_over = queued.as_ref().is_none_or(|queued| queued.ending.is_some());
            // How it ended is in the run's document, except why there's none.
            let label = queued.filter(|queued| queued.ending.is_none() || queued.why.is_some());
            let label = label.map(|queued| queued_label(&queued));
            let is_new = desk.state().news.labels.get(&run) != label.as_ref();
            if is_new || is_over {
                desk.change(|news| {
                    match label {
                        Some(label) => _ = news.labels.insert(run, label),
                        None => _ = news.labels.remove(&run),
                    }
                    if is_over {
                        news.ended.insert(run);
                    }
                });
            }
            if is_over {
                return;
            }
        }
        drop(desk);
        std::thread::park_timeout(FOLLOW_INTERVAL);
    }
}

/// The window's access to the queues of hubs. Its threads end when this is dropped and they're done.
pub struct SentRunDesk {
    shared: Arc<DeskShared>,
    /// Sends the tasks of plans that run here.
    _tasks: TaskCourier,
}

impl SentRunDesk {
    /// Creates the access. `wake` lets the window draw again.
    pub fn new(handle: Handle, wake: impl Fn() + Send + Sync + 'static) -> SentRunDesk {
        let tasks = TaskCourier::start(handle.clone());
        let shared = DeskShared { handle, state: Mutex::default(), wake: Box::new(wake) };
        SentRunDesk { shared: Arc::new(shared), _tasks: tasks }
    }

    /// Returns what is known.
    pub fn news(&self) -> Arc<SentRunsNews> {
        self.shared.state().news.clone()
    }

    /// Takes the reasons why something wasn't sent, as clauses.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().troubles)
    }

    /// Asks for the devices that may carry out runs of a volume.
    pub fn request_devices(&self, volume: DocId) {
        if !self.shared.state().asked_volumes.insert(volume) {
            return;
        }
        let shared = self.shared.clone();
        std::thread::spawn(move || {
            let devices = shared.devices(volume).map_err(|why| UnknownDevicesError(why.to_string()));
            shared.state().asked_volumes.remove(&volume);
            shared.change(|news| _ = news.devices.insert(volume, devices));
        });
    }

    /// Sends a run, and says from then on what happens with it.
    pub fn send(&self, question: SentQuestion) {
        let (run, volume) = (question.run, question.volume);
        let shared = self.shared.clone();
        shared.state().followed.insert(run);
        shared.change(|news| _ = news.labels.insert(run, "is being sent".to_owned()));
        std::thread::spawn(move || {
            let sent = shared.queue(volume).and_then(|client| send_run(&shared.handle, &client, &question));
            if let Err(why) = sent {
                shared.change(|news| {
                    news.labels.remove(&run);
                    news.unsent.insert(run);
                });
                return shared.fail(&why);
            }
            let weak = Arc::downgrade(&shared);
            drop(shared);
            follow(&weak, volume, run);
        });
    }

    /// Says from now on what happens with a run that was sent before.
    pub fn follow(&self, volume: DocId, run: DocId) {
        if !self.shared.state().followed.insert(run) {
            return;
        }
        let weak = Arc::downgrade(&self.shared);
        std::thread::spawn(move || follow(&weak, volume, run));
    }

    /// Returns whether this window has sent the run, or asks the queue about it.
    pub fn is_followed(&self, run: DocId) -> bool {
        self.shared.state().followed.contains(&run)
    }

    /// Sends a decision about a call of a run that another device carries out.
    pub fn decide(&self, run: DocId, approval: &str, record: DecisionRecord) {
        let call = (run, approval.to_owned());
        if self.shared.state().news.decisions.contains_key(&call) {
            return;
        }
        self.shared.change(|news| _ = news.decisions.insert(call.clone(), None));
        let shared = self.shared.clone();
        std::thread::spawn(move || match shared.decide(call.0, &call.1, record) {
            Ok(Some(name)) => {
                shared.change(|news| _ = news.decisions.insert(call.clone(), Some(name)));
                let weak = Arc::downgrade(&shared);
                drop(shared);
                std::thread::park_timeout(DECISION_TIMEOUT);
                if let Some(shared) = weak.upgrade() {
                    shared.change(|news| _ = news.decisions.remove(&call));
                }
            }
            Ok(None) => shared.change(|news| _ = news.decisions.remove(&call)),
            Err(why) => {
                shared.change(|news| _ = news.decisions.remove(&call));
                shared.fail(&why);
            }
        });
    }

    /// Stops a run at the queue that it was sent to, whether or not a worker has begun it.
    pub fn stop(&self, volume: DocId, run: DocId) {
        let shared = self.shared.clone();
        std::thread::spawn(move || {
            let stopped = match shared.handle.read(move |session| session.agents().runs().any(|(id, _)| id == run)) {
                Ok(true) => stop_if_queued(&shared.handle, run),
                Ok(false) => shared.queue(volume).and_then(|client| {
                    client.ask(&WorkRequest::Cancel(run))?;
                    Ok(())
                }),
                Err(gone) => Err(gone.into()),
            };
            if let Err(why) = stopped {
                shared.fail(&why);
            }
        });
    }
}
