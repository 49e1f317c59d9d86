//! Runs in the queues of hubs, as devices send them to each other: the task, decisions about its calls, the ways to the
//! queues, and a worker that carries out runs of others. Command line and window use the same functions.

pub mod carry_out_error;
mod claim;
pub mod hub_sync;
pub mod run_worker;
pub mod run_worker_desk;
pub mod send_errors;
pub mod sent_run_desk;
pub mod setup_checks;
pub mod task_courier;

use crate::hub_sync::wait_until_hubs_have_all;
use crate::send_errors::SentRunError;
use agent::memory::RecallOptions;
use agent::policy::ToolPolicy;
use agent::sent_task::sent_task_calls;
use engine::{Command, LAN_HUB_ADDRESS, Session};
use host::Handle;
use host::peers::DeviceId;
use host::peers::devices::now_millis;
use host::peers::work::{
    OrderedDecision, QueuedRun, RunOrder, SignedText, WorkClient, WorkError, WorkReply, WorkRequest,
};
use host::sync::devices::hub_caller_identity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{BlobHash, DecisionRecord, DocId, MessageId, RunApproval, RunOrigin};

/// Time limit until the hub has what the worker needs.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of attempts to put a run into the queue.
const MAX_OFFER_TRIES: u32 = 3;
/// Minimum number of digits that stand for a device's key.
const MIN_KEY_DIGITS: usize = 4;

/// What is to be done in a run, and by whose policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTask {
    /// The session of messages.
    pub session: DocId,
    /// The note that the message refers to.
    pub note: Option<DocId>,
    /// The message that this one follows.
    pub parent: Option<MessageId>,
    /// The message.
    pub text: String,
    /// The agent, if one is named.
    pub agent: Option<String>,
    /// What the run may cost, in US dollars.
    pub budget: Option<f64>,
    /// The provider, if one is named.
    pub provider: Option<String>,
    /// Calls that need no approval in this run, as given with `--approve`.
    pub allow: Vec<String>,
    /// Which earlier work the agent recalls.
    pub recall: RecallOptions,
    /// The owner's policy.
    pub policy: ToolPolicy,
}

/// A decision about a call of a run, or of one that it was delegated to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentDecision {
    /// The run whose call it is.
    pub run: DocId,
    /// The decision.
    pub record: DecisionRecord,
}

/// A message for an agent on another device.
#[derive(Clone, Debug, PartialEq)]
pub struct SentQuestion {
    /// Id of the run, new.
    pub run: DocId,
    /// The volume that the run works in.
    pub volume: DocId,
    /// The device that is to carry it out; `None` for any worker.
    pub to: Option<DeviceId>,
    /// What is to be done. The rules in it are added to this device's policy when it's sent.
    pub task: RunTask,
}

/// Returns the hash of a request for approval as it's shown: the call, its code, and the tool's definition.
pub fn shown_hash(approval: &RunApproval) -> String {
    let RunApproval { tool, arguments, code, definition, addresses, what, reason, reach, .. } = approval;
    let shown = (tool, arguments, code, definition, addresses, what, reason, reach);
    let shown = serde_json::to_vec(&shown).unwrap_or_default();
    BlobHash::of(&shown).to_string()
}

/// Returns the addresses of the hubs that volumes are shared over, each with the volumes that are here.
pub fn shared_hubs(session: &Session) -> Vec<(String, BTreeSet<DocId>)> {
    let here = |volume: &DocId| session.volume(*volume).is_some_and(|volume| volume.root.is_some());
    let hubs = session.sync().shares.hubs.iter().filter(|hub| hub.url != LAN_HUB_ADDRESS);
    hubs.map(|hub| (hub.url.clone(), hub.volumes.iter().copied().filter(here).collect())).collect()
}

/// Returns whether a volume is shared over a hub, so that runs in it can be sent to other devices.
pub fn is_shared_over_hub(session: &Session, volume: DocId) -> bool {
    session.sync().shares.hubs.iter().any(|hub| hub.url != LAN_HUB_ADDRESS && hub.volumes.contains(&volume))
}

/// Returns whether another device carries out a run, or this one does so for another.
pub fn is_for_others(session: &Session, run: DocId) -> bool {
    let known = session.agents().run(run);
    known.is_some_and(|run| run.about.origin == RunOrigin::Device || !session.is_own_device(run.device.as_ref()))
}

/// Returns the way to the queue of the hub with this address.
///
/// # Errors
/// Returns an error if this device isn't paired with the hub, or its key can't be read.
pub fn queue_at(address: &str) -> Result<WorkClient, SentRunError> {
    let (key, list) = hub_caller_identity().map_err(SentRunError::Identity)?;
    let address = address.trim_end_matches('/');
    let paired = list.iter().find(|(_, device)| device.is_authorized() && device.address.as_deref() == Some(address));
    match (paired, key) {
        (Some((id, device)), Some(key)) => Ok(WorkClient::new(*id, device.clone(), key)),
        _ => Err(SentRunError::NotPaired { address: address.to_owned() }),
    }
}

/// Returns the way to the queue of the hub over which a volume is shared.
///
/// # Errors
/// Returns an error if it's shared over none, or this device isn't paired with it.
pub fn queue_of_volume(session_hubs: &[(String, BTreeSet<DocId>)], volume: DocId) -> Result<WorkClient, SentRunError> {
    let hub = session_hubs.iter().find(|(_, volumes)| volumes.contains(&volume)).ok_or(SentRunError::NotShared)?;
    queue_at(&hub.0)
}

/// Returns the queued runs of volumes.
///
/// # Errors
/// Returns an error if the hub can't be reached, or refuses.
pub fn queued_runs(client: &WorkClient, volumes: Vec<DocId>) -> Result<Vec<QueuedRun>, WorkError> {
    match client.ask(&WorkRequest::List(volumes))? {
        WorkReply::Runs(runs) => Ok(runs),
        WorkReply::Done
        | WorkReply::Devices(_)
        | WorkReply::Claimed { .. }
        | WorkReply::Renewed { .. }
        | WorkReply::Lost
        | WorkReply::Refused(_) => Err(WorkError::NoAnswer),
    }
}

/// Returns the devices that are paired with the hub, with their names.
///
/// # Errors
/// Returns an error if the hub can't be reached, or refuses.
pub fn hub_devices(client: &WorkClient) -> Result<Vec<(DeviceId, String)>, WorkError> {
    match client.ask(&WorkRequest::Devices)? {
        WorkReply::Devices(devices) => Ok(devices),
        WorkReply::Done
        | WorkReply::Runs(_)
        | WorkReply::Claimed { .. }
        | WorkReply::Renewed { .. }
        | WorkReply::Lost
        | WorkReply::Refused(_) => Err(WorkError::NoAnswer),
    }
}

/// Returns the only device with this name, or whose key begins so, of those that are paired with the hub.
///
/// # Errors
/// Returns an error if there's none or several, or the hub can't be reached.
pub fn find_device(client: &WorkClient, word: &str) -> Result<(DeviceId, String), SentRunError> {
    let devices = hub_devices(client)?;
    let digits = key_digits(word);
    let names: Vec<String> = devices.iter().map(|(_, name)| name.clone()).collect();
    let is_meant = |(id, name): &(DeviceId, String)| {
        name == word || (digits.len() >= MIN_KEY_DIGITS && id.to_string().starts_with(&digits))
    };
    let mut meant: Vec<(DeviceId, String)> = devices.into_iter().filter(is_meant).collect();
    let (hub, word) = (client.hub_name().to_owned(), word.to_owned());
    match (meant.pop(), meant.is_empty()) {
        (Some(device), true) => Ok(device),
        (None, _) => Err(SentRunError::UnknownDevice { hub, word, names: names.join(", ") }),
        (Some(_), false) => Err(SentRunError::SeveralDevices { hub, word }),
    }
}

/// Returns the digits of a key as people write it: in groups, in either case.
pub fn key_digits(word: &str) -> String {
    word.chars().filter(|letter| *letter != ' ').collect::<String>().to_lowercase()
}

/// Returns the order in a queued run if its signature holds, it's for this hub, and the task can be read.
///
/// # Errors
/// Returns an error otherwise.
pub fn read_order(client: &WorkClient, queued: &QueuedRun) -> Result<(RunOrder, RunTask), SentRunError> {
    let order = queued.open_order(client.hub, now_millis())?;
    let task = serde_json::from_value(order.task.clone()).map_err(SentRunError::Task)?;
    Ok((order, task))
}

/// Sends a run to a worker: checks the names in it, waits until the hub has what was written up to now, and puts the
/// signed order into the queue.
///
/// # Errors
/// Returns an error if a name is unknown here, the hub can't be reached, or it doesn't get everything in a minute.
pub fn send_run(handle: &Handle, client: &WorkClient, question: &SentQuestion) -> Result<(), SentRunError> {
    let SentQuestion { run, volume, to, task } = question;
    setup_checks::check_names(handle, *volume, task)?;
    if !wait_until_hubs_have_all(handle, Some(client.address()), SEND_TIMEOUT)? {
        return Err(SentRunError::NotSynced);
    }
    let mut policy = handle.read(|session| session.agents().policy())?;
    policy.rules.retain(|rule| rule.within.is_none_or(|within| within == *volume));
    policy.rules.extend(task.policy.rules.iter().cloned());
    let task = RunTask { policy, ..task.clone() };
    let task = serde_json::to_value(&task).map_err(SentRunError::Form)?;
    let order = RunOrder { hub: client.hub, run: *run, volume: *volume, to: *to, created: now_millis(), task };
    offer(client, client.sign(&order)?)
}

/// Puts an order into the queue. If the answer is lost, the same order is sent again, which changes nothing.
fn offer(client: &WorkClient, order: SignedText) -> Result<(), SentRunError> {
    let request = WorkRequest::Offer(order);
    let mut tries = 1;
    loop {
        match client.ask(&request) {
            Ok(_) => return Ok(()),
            Err(why @ WorkError::Refused(_)) => return Err(why.into()),
            Err(why) if tries >= MAX_OFFER_TRIES => return Err(why.into()),
            Err(_) => tries += 1,
        }
    }
}

/// Sends a decision about a call to the worker that carries out its run. Returns the worker's name; `None` if the run
/// is this device's own, or wasn't sent by it.
///
/// # Errors
/// Returns an error if the run is carried out here for another device, which alone can allow its calls, or if the hub
/// can't be reached.
pub fn send_decision(
    handle: &Handle,
    run: DocId,
    approval: &str,
    record: &DecisionRecord,
) -> Result<Option<String>, SentRunError> {
    let id = approval.to_owned();
    let is_held_here = handle.read(move |session| {
        let agents = session.agents();
        let origin = |id: DocId| agents.runs().find(|(of, _)| *of == id).map(|(_, line)| line.origin);
        let root = agents.ancestors(run).last().copied();
        let is_here = agents.run(run).is_some_and(|run| session.is_own_device(run.device.as_ref()));
        // A task that this device took back is its own.
        is_here && root.and_then(origin) == Some(RunOrigin::Device) && root.is_none_or(|root| !agents.is_awaited(root))
    })?;
    if is_held_here && record.allowed {
        return Err(SentRunError::NotOwner);
    }
    let look = move |session: &Session| {
        let agents = session.agents();
        let known = agents.run(run).filter(|run| !session.is_own_device(run.device.as_ref()))?;
        let shown = known.pending().find(|one| one.id == id).map(shown_hash)?;
        Some((agents.ancestors(run).last().copied().unwrap_or(run), known.about.volume, shown, shared_hubs(session)))
    };
    let Some((root, volume, shown, hubs)) = handle.read(look)? else { return Ok(None) };
    let Ok(client) = queue_of_volume(&hubs, volume) else { return Ok(None) };
    let runs = queued_runs(&client, vec![volume])?;
    let is_sent = |queued: &QueuedRun| queued.run == root && queued.order.by == client.own_id();
    let Some(queued) = runs.into_iter().find(is_sent) else { return Ok(None) };
    let sent = SentDecision { run, record: record.clone() };
    let decision = serde_json::to_value(&sent).map_err(SentRunError::Form)?;
    let order = OrderedDecision { hub: client.hub, run: root, approval: approval.to_owned(), shown, decision };
    client.ask(&WorkRequest::Decide(root, client.sign(&order)?))?;
    Ok(Some(queued.holder.map_or_else(|| "the next worker".to_owned(), |(_, name)| name)))
}

/// Opens the delegated runs of a run elsewhere whose calls wait for the user, so that these calls are shown.
///
/// # Errors
/// Returns an error if the program is closing.
pub fn open_waiting_parts(handle: &Handle, run: DocId) -> Result<(), SentRunError> {
    let look = move |session: &Session| {
        let agents = session.agents();
        let family = agents.run_family(run);
        let waits = agents.runs().filter(|(_, line)| line.ending.is_none() && line.pending > 0).map(|(id, _)| id);
        waits.filter(|id| family.contains(id) && agents.run(*id).is_none()).collect::<Vec<DocId>>()
    };
    for part in handle.read(look)? {
        handle.run_command(Command::OpenRun { run: part })?;
    }
    Ok(())
}

/// Stops a run at the queue that it was sent to, and the tasks of its plan that were; nothing happens if none is there.
///
/// # Errors
/// Returns an error if the program is closing.
pub fn stop_if_queued(handle: &Handle, run: DocId) -> Result<(), SentRunError> {
    let look = move |session: &Session| {
        let agents = session.agents();
        let volume = agents.runs().find(|(id, _)| *id == run).map(|(_, line)| line.volume)?;
        let tasks = agents.run(run).map(|lead| sent_task_calls(run, &lead.steps)).unwrap_or_default();
        let is_over = |id: DocId| agents.runs().any(|(known, line)| known == id && line.ending.is_some());
        let tasks: BTreeSet<DocId> = tasks.into_iter().map(|task| task.run).filter(|id| !is_over(*id)).collect();
        Some((volume, tasks, shared_hubs(session)))
    };
    let Some((volume, tasks, hubs)) = handle.read(look)? else { return Ok(()) };
    if let Ok(client) = queue_of_volume(&hubs, volume) {
        // The run's document says that it's stopped, too; the queue only spares the next worker the look at it.
        let _ = client.ask(&WorkRequest::Cancel(run));
        for task in tasks {
            let _ = client.ask(&WorkRequest::Cancel(task)); // it may be over
        }
    }
    Ok(())
}

/// Describes what happens with a queued run.
pub fn queued_label(queued: &QueuedRun) -> String {
    match (&queued.ending, &queued.holder) {
        (Some(ending), _) => match &queued.why {
            Some(why) => format!("{ending}: {why}"),
            None => ending.clone(),
        },
        (None, _) if queued.cancelled => "is being stopped".to_owned(),
        (None, Some((_, name))) if queued.is_free => format!("{name} is silent; the next free worker continues"),
        (None, Some((_, name))) => format!("on {name}"),
        (None, None) => "waits for a worker".to_owned(),
    }
}
