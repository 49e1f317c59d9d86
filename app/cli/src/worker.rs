//! `cmd_worker`: carries out runs of other devices, and shows and stops those in the queues of hubs. `ask --on` puts
//! them there.
//!
//! A worker believes only orders that are signed by a device that its user named. It works by the owner's policy, and
//! the owner decides about calls. Its claim is a lease: if it can't renew that in time, it stops at once, before the
//! hub lets another worker continue.

mod claim;
mod sending;

pub(super) use sending::cmd_ask_on;

use self::claim::Claim;
use super::agents::{read_run, resolve_run, wait_for_setup};
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::WorkerArguments;
use agent::agent_definition::{DEFAULT_AGENT, is_memory_agent};
use agent::memory::ReplayMode;
use agent::policy::ToolPolicy;
use engine::{Command, Session};
use host::Handle;
use host::peers::DeviceId;
use host::peers::work::{OrderedDecision, QueuedRun, SignedText, WorkClient, WorkError, WorkReply, WorkRequest};
use host::sync::devices::open_device_list;
use sent_runs::hub_sync::wait_until_hubs_have_all;
use sent_runs::send_errors::SentRunError;
use sent_runs::{
    RunTask, SentDecision, key_digits, queue_at, queued_label, queued_runs, read_order, shared_hubs, shown_hash,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};
use store::{DecisionRecord, DecisionScope, DocId, RunEnding, RunOrigin};
use text::untrusted_text::escape_line;

/// How often the queues are looked at while nothing is carried out.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often a run that is carried out is looked at.
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a run that couldn't begin here is left to other workers.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Time limit for what must arrive before a run begins, and be sent after it.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for sending what a run did.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(600);
/// Minimum number of digits of a key that stand for the device.
const MIN_KEY_DIGITS: usize = 16;

/// How work on a run ended.
enum WorkOutcome {
    /// The run is over: how, and why it isn't done.
    Over(String, Option<String>),
    /// The claim has ended.
    Lost,
    /// It can't be carried out here now.
    NotNow(String),
}

pub(super) fn cmd_worker(scene: &mut CommandContext<'_>, args: &WorkerArguments) -> Result<u8, CliError> {
    match args.what.as_deref().unwrap_or("run") {
        "run" => serve_queues(scene, args),
        "list" => list_queues(scene),
        "stop" => {
            let word = args.run.as_deref();
            stop_queued(scene, word.ok_or_else(|| CliError::usage("which run? `tracebook worker list` shows them"))?)
        }
        other => Err(CliError::usage(format!("`worker {other}` is not known: run, list, stop"))),
    }
}

/// Returns the beginnings of the keys of devices whose runs are carried out.
fn trusted_keys(words: &[String]) -> Result<Vec<String>, CliError> {
    if words.is_empty() {
        return Err(CliError::usage(
            "whose runs? Name the device: --for KEY, with the key that `tracebook devices` shows there as “this \
             device”",
        ));
    }
    let list = open_device_list().map_err(CliError::workspace)?;
    let key_of = |word: &String| {
        let digits = key_digits(word);
        if digits.len() >= MIN_KEY_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(digits);
        }
        match list.find_by_name_or_key(word) {
            Ok((id, _)) => Ok(id.to_string()),
            Err(_) => Err(CliError::usage(format!(
                "no device “{word}” is paired with this one; give the {MIN_KEY_DIGITS} digits of its key that \
                 `tracebook devices` shows there"
            ))),
        }
    };
    words.iter().map(key_of).collect()
}

fn say(scene: &mut CommandContext<'_>, kind: &str, run: DocId, words: &str) -> Result<(), CliError> {
    if scene.json {
        writeln!(scene.out, "{}", json!({"type": kind, "run": run, "what": words}))?;
    } else {
        writeln!(scene.out, "{}  {}", &run.to_string()[..8], escape_line(words))?;
    }
    Ok(scene.out.flush()?)
}

fn serve_queues(scene: &mut CommandContext<'_>, args: &WorkerArguments) -> Result<u8, CliError> {
    let trusted = trusted_keys(&args.owners)?;
    if !scene.own {
        return Err(CliError::usage(
            "another program has this workspace open; close it, or give the worker a workspace of its own: --workspace \
             DIR",
        ));
    }
    resolve::wait_for_volumes(scene, true)?;
    let mut hubs = scene.handle.read(shared_hubs)?;
    if hubs.is_empty() {
        return Err(CliError::usage(
            "no volume is shared over a hub here; join one first: `tracebook sync join ADDRESS FOLDER`",
        ));
    }
    let mut clients: Vec<(WorkClient, Vec<DocId>)> = Vec::new();
    for (address, volumes) in &hubs {
        clients.push((queue_at(address)?, volumes.iter().copied().collect()));
    }
    let names: Vec<&str> = clients.iter().map(|(client, _)| client.hub_name()).collect();
    if scene.json {
        writeln!(scene.out, "{}", json!({"type": "ready", "hubs": names}))?;
    } else {
        writeln!(scene.out, "Waiting for runs at {}. Ctrl+C ends it.", names.join(", "))?;
    }
    scene.out.flush()?;
    let mut troubles: BTreeMap<DeviceId, String> = BTreeMap::new();
    let mut later: BTreeMap<DocId, Instant> = BTreeMap::new();
    loop {
        let mut is_done = false;
        let now = scene.handle.read(shared_hubs)?;
        if now != hubs {
            clients = follow_volumes(scene, &now)?;
            hubs = now;
        }
        for (client, volumes) in &clients {
            match queued_runs(client, volumes.clone()) {
                Ok(runs) => {
                    troubles.remove(&client.hub);
                    is_done |= carry_out_first(scene, client, &runs, &trusted, &mut later)?;
                }
                Err(why) => {
                    let why = format!("{}: {why}", client.hub_name());
                    if troubles.insert(client.hub, why.clone()).as_ref() != Some(&why) {
                        writeln!(scene.errors, "tracebook: {why}; it's tried again")?;
                    }
                }
            }
        }
        if is_done && args.once {
            return Ok(EXIT_DONE);
        }
        if !is_done {
            super::sleep(QUEUE_POLL_INTERVAL);
        }
    }
}

/// Returns the ways to the queues of these hubs, whose volumes have changed while the worker runs, and says so.
fn follow_volumes(
    scene: &mut CommandContext<'_>,
    hubs: &[(String, BTreeSet<DocId>)],
) -> Result<Vec<(WorkClient, Vec<DocId>)>, CliError> {
    let mut clients = Vec::new();
    for (address, volumes) in hubs {
        match queue_at(address) {
            Ok(client) => clients.push((client, volumes.iter().copied().collect::<Vec<DocId>>())),
            Err(why) => writeln!(scene.errors, "tracebook: no runs of {}: {why}", escape_line(address))?,
        }
    }
    let all: BTreeSet<DocId> = clients.iter().flat_map(|(_, volumes)| volumes.iter().copied()).collect();
    let names: Vec<String> = scene.handle.read(move |session| {
        all.iter().filter_map(|id| session.volume(*id)).map(|volume| volume.name.clone()).collect()
    })?;
    if scene.json {
        writeln!(scene.out, "{}", json!({"type": "volumes", "volumes": names}))?;
    } else if names.is_empty() {
        writeln!(scene.out, "No volume is shared over a hub here now.")?;
    } else {
        writeln!(scene.out, "Waiting for runs in {}.", escape_line(&names.join(", ")))?;
    }
    scene.out.flush()?;
    Ok(clients)
}

/// Carries out the first run that can be claimed. Returns whether one came to its end.
fn carry_out_first(
    scene: &mut CommandContext<'_>,
    client: &WorkClient,
    runs: &[QueuedRun],
    trusted: &[String],
    later: &mut BTreeMap<DocId, Instant>,
) -> Result<bool, CliError> {
    later.retain(|_, at| *at > Instant::now());
    for queued in runs {
        let owner = queued.order.by.to_string();
        if !queued.is_free || later.contains_key(&queued.run) || !trusted.iter().any(|key| owner.starts_with(key)) {
            continue;
        }
        let (order, task) = match read_order(client, queued) {
            Ok(read) => read,
            Err(why) => {
                later.insert(queued.run, Instant::now() + RETRY_AFTER);
                say(scene, "refused", queued.run, &format!("is not carried out: {why}"))?;
                continue;
            }
        };
        if order.to.is_some_and(|to| to != client.own_id()) {
            continue;
        }
        let sent = (Instant::now(), SystemTime::now());
        let (epoch, lease) = match client.ask(&WorkRequest::Claim(queued.run)) {
            Ok(WorkReply::Claimed { epoch, lease_ms }) => (epoch, Duration::from_millis(lease_ms)),
            // Another worker was faster, or the hub is gone: the next look shows which.
            Ok(_) | Err(_) => continue,
        };
        let (handle, lender, run) = (scene.handle.clone(), client.clone(), queued.run);
        let on_lost = move || {
            if let Err(error) = give_up(&handle, &lender, run) {
                tracing::warn!(%error, "a run whose claim was lost could not be given up");
            }
        };
        let claim = Claim::keep(client, (queued.run, epoch), (lease, sent), on_lost);
        let prompt = task.text.lines().next().unwrap_or_default();
        let verb = if epoch == 1 { "begins" } else { "is taken over" };
        say(scene, "claimed", queued.run, &format!("{verb} for {}: {prompt}", queued.owner))?;
        let outcome = carry_out(scene, client, (queued, order.volume, &task), &claim)?;
        return finish(scene, client, claim, outcome, later);
    }
    Ok(false)
}

/// Tells the queue how work on a run ended. Returns whether the run came to its end.
fn finish(
    scene: &mut CommandContext<'_>,
    client: &WorkClient,
    claim: Claim,
    outcome: WorkOutcome,
    later: &mut BTreeMap<DocId, Instant>,
) -> Result<bool, CliError> {
    let (run, epoch, lease) = (claim.run, claim.epoch, claim.lease);
    match outcome {
        WorkOutcome::Over(ending, why) => {
            let request = WorkRequest::Finish { run, epoch, ending: ending.clone(), why: why.clone() };
            while claim.holds() {
                match client.ask(&request) {
                    Ok(_) | Err(WorkError::Refused(_)) => break,
                    Err(_) => super::sleep(RUN_POLL_INTERVAL),
                }
            }
            give_up(scene.handle, client, run)?;
            let words = why.map_or_else(|| ending.clone(), |why| format!("{ending}: {why}"));
            say(scene, "ended", run, &words)?;
            Ok(true)
        }
        WorkOutcome::Lost => {
            give_up(scene.handle, client, run)?;
            say(scene, "lost", run, "was given up: the hub wasn't reached in time, so another worker may continue")?;
            // Other workers come first.
            later.insert(run, Instant::now() + lease);
            Ok(false)
        }
        WorkOutcome::NotNow(why) => {
            give_up(scene.handle, client, run)?;
            // If it can't be given back, the lease ends by itself.
            let _ = client.ask(&WorkRequest::Release { run, epoch });
            say(scene, "released", run, &format!("was given back: {why}"))?;
            later.insert(run, Instant::now() + RETRY_AFTER);
            Ok(false)
        }
    }
}

/// Stops all work on a run, and records nothing.
fn give_up(handle: &Handle, client: &WorkClient, run: DocId) -> Result<(), engine::CommandError> {
    handle.run_command(Command::HoldRun { run, hub: client.address().to_owned(), policy: None }).map(|_| ())
}

/// Begins a run, or continues it, and watches it until its end.
fn carry_out(
    scene: &mut CommandContext<'_>,
    client: &WorkClient,
    (queued, volume, task): (&QueuedRun, DocId, &RunTask),
    claim: &Claim,
) -> Result<WorkOutcome, CliError> {
    let run = queued.run;
    // What the owner has written must be here, and what an earlier worker has done.
    let end = Instant::now() + SYNC_TIMEOUT;
    while !wait_until_hubs_have_all(scene.handle, Some(client.address()), Duration::from_secs(1))? {
        if !claim.holds() {
            return Ok(WorkOutcome::Lost);
        }
        if Instant::now() > end {
            return Ok(WorkOutcome::NotNow("not all of the volume has arrived here yet".to_owned()));
        }
    }
    wait_for_setup(scene)?;
    let problems = scene.handle.read(|session| session.problems().len())?;
    match begin(scene, client, (volume, task, claim.epoch), run) {
        Ok(()) => {}
        Err(refusal) => return Ok(WorkOutcome::Over("failed".to_owned(), Some(refusal.why))),
    }
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let mut is_stopping = false;
    // Decisions about delegated work that another worker began, and that isn't continued yet.
    let mut undecided: Vec<SignedText> = Vec::new();
    loop {
        if !claim.holds() {
            return Ok(WorkOutcome::Lost);
        }
        undecided.extend(claim.take_decisions());
        for decision in std::mem::take(&mut undecided) {
            match apply_decision(scene, client, queued, &decision) {
                Ok(true) => {}
                Ok(false) => undecided.push(decision),
                Err(why) => say(scene, "refused", run, &format!("a decision doesn't count: {}", why.why))?,
            }
        }
        if claim.is_cancelled() && !is_stopping {
            is_stopping = true;
            // It may be over just now.
            let _ = scene.handle.run_command(Command::CancelRun { run });
        }
        let look = move |session: &Session| {
            let agents = session.agents();
            let Some(known) = agents.run(run) else {
                let said = session.problems().get(problems..).unwrap_or_default().last().cloned();
                let why = said.unwrap_or_else(|| "the question was not accepted".to_owned());
                return (None, (!agents.is_request_pending(run) && !agents.is_reading()).then_some(why), Vec::new());
            };
            let parts = agents.run_family(run).into_iter().filter_map(|part| agents.run(part));
            let pending = parts.flat_map(|part| part.pending().map(move |approval| (part.id, approval)));
            let title = |approval| agent::approval_text::title(approval);
            let waits: Vec<(String, String)> =
                pending.map(|(part, approval)| (format!("{part}/{}", approval.id), title(approval))).collect();
            (known.about.ending.filter(|_| known.is_durable()), None, waits)
        };
        let (ending, trouble, waits) = scene.handle.read(look)?;
        for (name, title) in waits {
            if asked.insert(name) {
                say(scene, "approval_pending", run, &format!("waits for {}: {title}", queued.owner))?;
            }
        }
        if let Some(why) = trouble {
            return Ok(WorkOutcome::Over("failed".to_owned(), Some(why)));
        }
        if let Some(ending) = ending {
            end_parts(scene, run)?;
            return deliver(scene, client, claim, ending);
        }
        super::sleep(RUN_POLL_INTERVAL);
    }
}

/// Ends what a run had delegated on a worker that was lost, and didn't have continued here.
fn end_parts(scene: &CommandContext<'_>, run: DocId) -> Result<(), CliError> {
    let parts = scene.handle.read(move |session| {
        let agents = session.agents();
        let open = |id: &DocId| agents.runs().any(|(of, line)| of == *id && line.ending.is_none());
        agents.run_family(run).into_iter().filter(|id| *id != run && open(id)).collect::<Vec<_>>()
    })?;
    for part in parts {
        if resolve_run(scene, &part.to_string()).is_ok() {
            // It may be over just now.
            let _ = scene.handle.run_command(Command::CancelRun { run: part });
        }
    }
    Ok(())
}

/// Waits until the hub has all that the run did.
fn deliver(
    scene: &CommandContext<'_>,
    client: &WorkClient,
    claim: &Claim,
    ending: RunEnding,
) -> Result<WorkOutcome, CliError> {
    let kept = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
    let end = Instant::now() + DELIVERY_TIMEOUT;
    let mut is_kept = false;
    loop {
        if !claim.holds() {
            return Ok(WorkOutcome::Lost);
        }
        is_kept = is_kept || scene.handle.wait(Some(Duration::from_secs(1)), kept)?.is_some();
        if is_kept && wait_until_hubs_have_all(scene.handle, Some(client.address()), Duration::from_secs(1))? {
            break;
        }
        if Instant::now() > end {
            let why = "the worker has ended it, and couldn't send all that it did yet; it comes while the worker runs";
            return Ok(WorkOutcome::Over("failed".to_owned(), Some(why.to_owned())));
        }
    }
    let word = match ending {
        RunEnding::Done => "done",
        RunEnding::Cancelled => "stopped",
        RunEnding::Failed => "failed",
        RunEnding::Limit => "limit",
        RunEnding::Budget => "budget",
    };
    Ok(WorkOutcome::Over(word.to_owned(), None))
}

/// Begins a run; one that another worker began is continued.
fn begin(
    scene: &mut CommandContext<'_>,
    client: &WorkClient,
    (volume, task, epoch): (DocId, &RunTask, u64),
    run: DocId,
) -> Result<(), CliError> {
    let RunTask { session, note, parent, text, agent, budget, provider, allow, recall, policy } = task.clone();
    if agent.as_deref().is_some_and(is_memory_agent) {
        return Err(SentRunError::MemoryAgent.into());
    }
    let mut policy = policy;
    policy.rules.extend(ToolPolicy::rules_for_question(&allow, run));
    let hub = client.address().to_owned();
    let hold = Command::HoldRun { run, hub, policy: Some(Box::new(policy)) };
    if scene.handle.read(move |session| session.agents().runs().any(|(id, _)| id == run))? {
        if epoch == 1 {
            return Err(CliError::usage("there is a run with this id that nobody has carried out"));
        }
        resolve_run(scene, &run.to_string())?;
        ensure_ordered(scene, (volume, task), run)?;
        if read_run(scene, run, |run| run.about.ending.is_some())? {
            return Ok(());
        }
        if recall.mode == ReplayMode::Follower {
            return Err(CliError::usage("its worker has failed, and in the mode follower no other one continues"));
        }
        scene.handle.run_command(hold)?;
        return Ok(());
    }
    if let Some(agent) = &agent {
        super::agents::ensure_agent_available(scene, volume, agent)?;
    }
    scene.handle.run_command(hold)?;
    let provider = provider.map(String::into_boxed_str);
    let command = Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall, provider };
    scene.handle.run_command(command)?;
    Ok(())
}

/// Checks that a run's document, which any device may have written, is about what was ordered.
fn ensure_ordered(scene: &CommandContext<'_>, (volume, task): (DocId, &RunTask), run: DocId) -> Result<(), CliError> {
    let about = read_run(scene, run, |run| run.about.clone())?;
    let is_agent = match &task.agent {
        Some(agent) => about.agent == *agent,
        None => about.agent == DEFAULT_AGENT || task.text.contains(&format!("@{}", about.agent)),
    };
    let is_same = (about.volume, about.session, about.note) == (volume, task.session, task.note)
        && (&about.prompt, about.budget, &about.provider) == (&task.text, task.budget, &task.provider)
        && about.origin == RunOrigin::Device
        && is_agent;
    match is_same {
        true => Ok(()),
        false => Err(CliError::usage("the run's document isn't about what was ordered, so it isn't continued")),
    }
}

/// Applies a decision of the owner, if it's about a request as the owner saw it. Returns whether it was applied; if
/// not, the work that it's about may still be continued here.
fn apply_decision(
    scene: &CommandContext<'_>,
    client: &WorkClient,
    queued: &QueuedRun,
    signed: &SignedText,
) -> Result<bool, CliError> {
    let decision: OrderedDecision = signed.open().map_err(CliError::usage)?;
    if signed.by != queued.order.by || decision.hub != client.hub || decision.run != queued.run {
        return Err(CliError::usage("it isn't from the device that sent the run"));
    }
    let sent: SentDecision = serde_json::from_value(decision.decision).map_err(CliError::usage)?;
    let (root, run, id) = (queued.run, sent.run, decision.approval.clone());
    let look = move |session: &Session| {
        let agents = session.agents();
        if !agents.run_family(root).contains(&run) {
            return (None, false);
        }
        let known = agents.run(run);
        let may_come = known.is_none_or(|known| known.about.ending.is_none() && !known.is_awake());
        let shown = known.and_then(|known| known.pending().find(|approval| approval.id == id).map(shown_hash));
        (shown, run != root && may_come)
    };
    let (shown, may_come) = scene.handle.read(look)?;
    match shown {
        _ if may_come => return Ok(false),
        None => return Err(CliError::usage("nothing waits for it")),
        Some(shown) if shown != decision.shown => {
            return Err(CliError::usage("it's about another request than the one here"));
        }
        Some(_) => {}
    }
    // What lasts longer than the run is the owner's own list of rules.
    let scope = match sent.record.scope {
        DecisionScope::Once => DecisionScope::Once,
        DecisionScope::Run | DecisionScope::Project | DecisionScope::Always => DecisionScope::Run,
    };
    let record = DecisionRecord { scope, ..sent.record };
    let command = Command::Decide { run, approval: decision.approval, decision: record };
    scene.handle.run_command(command)?;
    Ok(true)
}

/// Returns the runs in the queues of all hubs, each with its hub's queue.
fn all_queued(scene: &mut CommandContext<'_>) -> Result<Vec<(WorkClient, QueuedRun)>, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let mut all = Vec::new();
    for (address, volumes) in scene.handle.read(shared_hubs)? {
        let client = queue_at(&address)?;
        let runs = queued_runs(&client, volumes.into_iter().collect()).map_err(SentRunError::from)?;
        all.extend(runs.into_iter().map(|run| (client.clone(), run)));
    }
    Ok(all)
}

fn list_queues(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    for (client, queued) in all_queued(scene)? {
        let read = read_order(&client, &queued);
        let prompt = read.as_ref().map_or_else(ToString::to_string, |(_, task)| task.text.clone());
        if scene.json {
            let to = read.as_ref().ok().and_then(|(order, _)| order.to);
            let line = json!({"run": queued.run, "hub": client.hub_name(), "owner": queued.owner,
                "prompt": prompt, "to": to, "worker": queued.holder.as_ref().map(|(_, name)| name),
                "claims": queued.epoch, "free": queued.is_free, "cancelled": queued.cancelled,
                "ending": queued.ending, "why": queued.why});
            writeln!(scene.out, "{line}")?;
        } else {
            let (id, prompt) = (&queued.run.to_string()[..8], prompt.lines().next().unwrap_or_default().to_owned());
            let (state, owner) = (queued_label(&queued), &queued.owner);
            writeln!(
                scene.out,
                "{id}  {}  {}  (of {})",
                escape_line(&state),
                escape_line(&prompt),
                escape_line(owner)
            )?;
        }
    }
    Ok(EXIT_DONE)
}

fn stop_queued(scene: &mut CommandContext<'_>, word: &str) -> Result<u8, CliError> {
    let wanted = word.trim_start_matches("run-").to_lowercase();
    let mut meant: Vec<(WorkClient, QueuedRun)> = all_queued(scene)?;
    meant.retain(|(_, queued)| !wanted.is_empty() && queued.run.to_string().starts_with(&wanted));
    let [(client, queued)] = meant.as_slice() else {
        let words = if meant.is_empty() { "no run in the queue begins" } else { "several runs in the queue begin" };
        return Err(CliError::usage(format!("{words} with “{word}”; `tracebook worker list` shows them")));
    };
    match client.ask(&WorkRequest::Cancel(queued.run)) {
        Ok(_) => Ok(EXIT_DONE),
        Err(why) => Err(SentRunError::from(why).into()),
    }
}

/// Returns the exit code for how a run ended elsewhere.
fn exit_code(ending: &str) -> u8 {
    if ending == "done" { EXIT_DONE } else { EXIT_FAILED }
}
