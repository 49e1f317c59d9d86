//! Runs in the queues of hubs, as devices send them to each other: the task, decisions about its calls, and the ways to
//! the queues. Nothing here carries out a run.

use super::{CliError, CommandContext, EXIT_FAILED};
use agent::memory::RecallOptions;
use agent::policy::ToolPolicy;
use engine::{LAN_HUB_ADDRESS, Session};
use host::peers::DeviceId;
use host::peers::devices::now_millis;
use host::peers::work::{
    OrderedDecision, QueuedRun, RunOrder, SignedTextError, WorkClient, WorkError, WorkReply, WorkRequest,
};
use host::sync::devices::hub_caller_identity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{BlobHash, DecisionRecord, DocId, MessageId, RunApproval, RunOrigin};

/// What is to be done in a run, and by whose policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunTask {
    pub(crate) session: DocId,
    pub(crate) note: Option<DocId>,
    pub(crate) parent: Option<MessageId>,
    pub(crate) text: String,
    pub(crate) agent: Option<String>,
    pub(crate) budget: Option<f64>,
    pub(crate) provider: Option<String>,
    /// Calls that need no approval in this run, as given with `--approve`.
    pub(crate) allow: Vec<String>,
    pub(crate) recall: RecallOptions,
    /// The owner's policy.
    pub(crate) policy: ToolPolicy,
}

/// A decision about a call of a run, or of one that it was delegated to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentDecision {
    pub(crate) run: DocId,
    pub(crate) record: DecisionRecord,
}

/// Returns the hash of a request for approval as it's shown: the call, its code, and the tool's definition.
pub(crate) fn shown_hash(approval: &RunApproval) -> String {
    let RunApproval { tool, arguments, code, definition, addresses, what, reason, reach, .. } = approval;
    let shown = (tool, arguments, code, definition, addresses, what, reason, reach);
    let shown = serde_json::to_vec(&shown).unwrap_or_default();
    BlobHash::of(&shown).to_string()
}

pub(crate) fn work_error(why: &WorkError) -> CliError {
    CliError { code: EXIT_FAILED, why: why.to_string() }
}

pub(crate) fn signing_error(why: &SignedTextError) -> CliError {
    CliError::usage(format!("the run can't be sent: {why}"))
}

/// Returns the addresses of the hubs that volumes are shared over, each with the volumes that are here.
pub(crate) fn shared_hubs(session: &Session) -> Vec<(String, BTreeSet<DocId>)> {
    let here = |volume: &DocId| session.volume(*volume).is_some_and(|volume| volume.root.is_some());
    let hubs = session.sync().shares.hubs.iter().filter(|hub| hub.url != LAN_HUB_ADDRESS);
    hubs.map(|hub| (hub.url.clone(), hub.volumes.iter().copied().filter(here).collect())).collect()
}

/// Returns the way to the queue of the hub with this address.
pub(crate) fn queue_at(address: &str) -> Result<WorkClient, CliError> {
    let (key, list) = hub_caller_identity().map_err(CliError::workspace)?;
    let address = address.trim_end_matches('/');
    let paired = list.iter().find(|(_, device)| device.is_authorized() && device.address.as_deref() == Some(address));
    match (paired, key) {
        (Some((id, device)), Some(key)) => Ok(WorkClient::new(*id, device.clone(), key)),
        _ => Err(CliError::usage(format!(
            "this device isn't paired with the hub, so it can't send or carry out runs there: `tracebook pair \
             {address}`"
        ))),
    }
}

/// Returns the way to the queue of the hub over which a volume is shared.
pub(crate) fn queue_of_volume(
    session_hubs: &[(String, BTreeSet<DocId>)],
    volume: DocId,
) -> Result<WorkClient, CliError> {
    let hub = session_hubs.iter().find(|(_, volumes)| volumes.contains(&volume)).ok_or_else(|| {
        CliError::usage(
            "runs are sent over a hub, and this volume isn't shared over one: `tracebook sync share VOLUME \
             wss://HOST:PORT`",
        )
    })?;
    queue_at(&hub.0)
}

/// Returns the queued runs of volumes.
pub(crate) fn queued_runs(client: &WorkClient, volumes: Vec<DocId>) -> Result<Vec<QueuedRun>, WorkError> {
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

/// Returns the only device with this name, or whose key begins so, of those that are paired with the hub.
pub(crate) fn find_device(client: &WorkClient, word: &str) -> Result<(DeviceId, String), CliError> {
    let devices = match client.ask(&WorkRequest::Devices).map_err(|why| work_error(&why))? {
        WorkReply::Devices(devices) => devices,
        WorkReply::Done
        | WorkReply::Runs(_)
        | WorkReply::Claimed { .. }
        | WorkReply::Renewed { .. }
        | WorkReply::Lost
        | WorkReply::Refused(_) => Vec::new(),
    };
    let digits = key_digits(word);
    let names: Vec<String> = devices.iter().map(|(_, name)| name.clone()).collect();
    let is_meant =
        |(id, name): &(DeviceId, String)| name == word || (digits.len() >= 4 && id.to_string().starts_with(&digits));
    let mut meant: Vec<(DeviceId, String)> = devices.into_iter().filter(is_meant).collect();
    match (meant.pop(), meant.is_empty()) {
        (Some(device), true) => Ok(device),
        (None, _) => Err(CliError::usage(format!(
            "{} knows no device “{word}”; it knows {}; `--on any` takes whichever worker is free",
            client.hub_name(),
            names.join(", ")
        ))),
        (Some(_), false) => Err(CliError::usage(format!(
            "{} knows several devices “{word}”; give the beginning of the key",
            client.hub_name()
        ))),
    }
}

/// Returns the digits of a key as people write it: in groups, in either case.
pub(crate) fn key_digits(word: &str) -> String {
    word.chars().filter(|letter| *letter != ' ').collect::<String>().to_lowercase()
}

/// Returns the order in a queued run if its signature holds, it's for this hub, and the task can be read.
pub(crate) fn read_order(client: &WorkClient, queued: &QueuedRun) -> Result<(RunOrder, RunTask), CliError> {
    let order = queued.open_order(client.hub, now_millis()).map_err(CliError::usage)?;
    let task = serde_json::from_value(order.task.clone())
        .map_err(|why| CliError::usage(format!("the order isn't in the form that this version knows ({why})")))?;
    Ok((order, task))
}

/// Sends a decision about a call to the worker that carries out its run. Returns the worker's name; `None` if the run
/// is this device's own, or wasn't sent by it.
pub(crate) fn send_decision(
    scene: &mut CommandContext<'_>,
    run: DocId,
    approval: &str,
    record: &DecisionRecord,
) -> Result<Option<String>, CliError> {
    let id = approval.to_owned();
    let is_for_others = scene.handle.read(move |session| {
        let agents = session.agents();
        let origin = |id: DocId| agents.runs().find(|(of, _)| *of == id).map(|(_, line)| line.origin);
        let root = agents.ancestors(run).last().copied().and_then(origin);
        let is_here = agents.run(run).is_some_and(|run| session.is_own_device(run.device.as_ref()));
        is_here && root == Some(RunOrigin::Device)
    })?;
    if is_for_others && record.allowed {
        return Err(CliError::usage(
            "the device that sent the run decides about its calls; here you can deny it, or stop the run: `tracebook \
             runs RUN --stop`",
        ));
    }
    let look = move |session: &Session| {
        let agents = session.agents();
        let known = agents.run(run).filter(|run| !session.is_own_device(run.device.as_ref()))?;
        let shown = known.pending().find(|one| one.id == id).map(shown_hash)?;
        Some((agents.ancestors(run).last().copied().unwrap_or(run), known.about.volume, shown, shared_hubs(session)))
    };
    let Some((root, volume, shown, hubs)) = scene.handle.read(look)? else { return Ok(None) };
    let Ok(client) = queue_of_volume(&hubs, volume) else { return Ok(None) };
    let runs = queued_runs(&client, vec![volume]).map_err(|why| work_error(&why))?;
    let is_sent = |queued: &QueuedRun| queued.run == root && queued.order.by == client.own_id();
    let Some(queued) = runs.into_iter().find(is_sent) else { return Ok(None) };
    let sent = SentDecision { run, record: record.clone() };
    let decision = serde_json::to_value(&sent).map_err(|why| CliError::workspace(why.to_string()))?;
    let order = OrderedDecision { hub: client.hub, run: root, approval: approval.to_owned(), shown, decision };
    let signed = client.sign(&order).map_err(|why| signing_error(&why))?;
    client.ask(&WorkRequest::Decide(root, signed)).map_err(|why| work_error(&why))?;
    Ok(Some(queued.holder.map_or_else(|| "the next worker".to_owned(), |(_, name)| name)))
}

/// Stops a run at the queue that it was sent to; nothing happens if it isn't there.
pub(crate) fn stop_if_queued(scene: &CommandContext<'_>, run: DocId) -> Result<(), CliError> {
    let look = move |session: &Session| {
        let volume = session.agents().runs().find(|(id, _)| *id == run).map(|(_, line)| line.volume)?;
        Some((volume, shared_hubs(session)))
    };
    let Some((volume, hubs)) = scene.handle.read(look)? else { return Ok(()) };
    if let Ok(client) = queue_of_volume(&hubs, volume) {
        // The run's document says that it's stopped, too; the queue only spares the next worker the look at it.
        let _ = client.ask(&WorkRequest::Cancel(run));
    }
    Ok(())
}
