//! Sends tasks of plans to workers, follows them, and gives the plans their results. A task whose worker was lost,
//! and which no other worker continues, is taken back from the queue and continues here.

use crate::hub_sync::wait_until_hubs_have_all;
use crate::send_errors::SentRunError;
use crate::{
    RunTask, SEND_TIMEOUT, SentDecision, SentQuestion, find_device, open_waiting_parts, queue_of_volume, queued_runs,
    send_run, shared_hubs, shown_hash,
};
use agent::memory::trace_extraction::final_answer;
use agent::policy::ToolPolicy;
use agent::run_request::RunRequest;
use agent::sent_task::SentPlanTask;
use agent::task_block::ANY_DEVICE;
use engine::{AgentRun, Command, Session};
use host::Handle;
use host::peers::work::{OrderedDecision, QueuedRun, SignedText, WorkClient, WorkError, WorkReply, WorkRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{DocId, RunEnding, StepKind};

/// How often the queues are looked at while tasks are away.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a task whose worker was lost is left to other workers, which look every two seconds.
const TAKE_BACK_AFTER: Duration = Duration::from_secs(6);
/// How long it's tried to take a task back.
const TAKE_BACK_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to read a run's document.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a look waits for a hub to have everything. Other tasks aren't looked at meanwhile.
const SYNC_PATIENCE: Duration = Duration::from_secs(1);
/// How the queue says that a task was taken back.
const TAKEN_BACK_ENDING: &str = "local";

/// How a task ended: its answer, or why there's none.
type TaskOutcome = (RunEnding, String);

/// Sends tasks of plans and follows them, on a thread of its own until it's dropped or the program closes.
pub struct TaskCourier {
    is_over: Arc<AtomicBool>,
}

impl TaskCourier {
    /// Starts to look for tasks of plans that are to be sent.
    pub fn start(handle: Handle) -> TaskCourier {
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            // It ends with the program: tasks on other devices continue, and are found again.
            let _ = carry(&handle, &over);
        });
        TaskCourier { is_over }
    }
}

impl Drop for TaskCourier {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// What is known here of a task that is away.
struct FollowedTask {
    volume: DocId,
    is_sent: bool,
    /// Why the queue didn't take it.
    refusal: Option<String>,
    /// Since when nobody carries it out, after its worker was lost.
    free_since: Option<Instant>,
    /// Since when it's tried to take it back.
    taking_since: Option<Instant>,
    /// Since when the queue says that it's over.
    over_since: Option<Instant>,
    /// What the user decided about its calls, which its worker may not have heard.
    decisions: Vec<SignedText>,
}

fn carry(handle: &Handle, is_over: &AtomicBool) -> Result<(), SentRunError> {
    let mut followed: BTreeMap<DocId, FollowedTask> = BTreeMap::new();
    while !is_over.load(Ordering::Acquire) {
        if followed.is_empty() {
            handle.wait(None, |session| (!session.agents().sent_tasks().is_empty()).then_some(()))?;
        }
        let look = |session: &Session| (session.agents().sent_tasks().clone(), shared_hubs(session));
        let (tasks, hubs) = handle.read(look)?;
        followed.retain(|run, task| tasks.contains_key(run) || !is_stopped(&hubs, task.volume, *run));
        for (run, task) in &tasks {
            let state = followed.entry(*run).or_insert_with(|| FollowedTask {
                volume: task.request.volume,
                is_sent: false,
                refusal: None,
                free_since: None,
                taking_since: None,
                over_since: None,
                decisions: Vec::new(),
            });
            let (outcome, has_failed) = match advance(handle, &hubs, task, state) {
                Ok(outcome) => (outcome, false),
                Err(why @ SentRunError::Gone(_)) => return Err(why),
                Err(why) if may_pass(&why) => (None, false),
                Err(why) => (Some((RunEnding::Failed, why.to_string())), true),
            };
            if let Some((ending, said)) = outcome {
                // A task that failed here may still be in the queue: the next look cancels it there.
                if !has_failed {
                    followed.remove(run);
                }
                // It's refused if the plan was stopped meanwhile.
                let _ = handle.run_command(Command::FinishSentTask { run: *run, ending, said });
            }
        }
        std::thread::park_timeout(LOOK_INTERVAL);
    }
    Ok(())
}

/// Returns whether a later look may succeed: the hub may be back by then, or have what it needs.
fn may_pass(why: &SentRunError) -> bool {
    match why {
        SentRunError::Queue(why) => !matches!(why, WorkError::Refused(_)),
        why => matches!(why, SentRunError::NotSynced),
    }
}

/// Stops a task that its plan no longer waits for. Returns whether the queue knows it.
fn is_stopped(hubs: &[(String, BTreeSet<DocId>)], volume: DocId, run: DocId) -> bool {
    let Ok(client) = queue_of_volume(hubs, volume) else { return true };
    // A refusal says that it's over, or was never there.
    matches!(client.ask(&WorkRequest::Cancel(run)), Ok(_) | Err(WorkError::Refused(_)))
}

/// Does the next thing for a task. Returns how it ended, once it has.
fn advance(
    handle: &Handle,
    hubs: &[(String, BTreeSet<DocId>)],
    task: &SentPlanTask,
    state: &mut FollowedTask,
) -> Result<Option<TaskOutcome>, SentRunError> {
    let (run, volume) = (task.request.run, task.request.volume);
    let client = queue_of_volume(hubs, volume)?;
    let queued = queued_runs(&client, vec![volume])?.into_iter().find(|queued| queued.run == run);
    match queued {
        None => send(handle, &client, task, state),
        Some(queued) if queued.order.by != client.own_id() => {
            Ok(Some((RunEnding::Failed, "another device has put a run with this id into the queue".to_owned())))
        }
        Some(queued) => {
            state.is_sent = true;
            if is_known(handle, run)? {
                handle.run_command(Command::OpenRun { run })?; // its requests for approval are shown here
                open_waiting_parts(handle, run)?;
            }
            follow(handle, &client, &queued, state)
        }
    }
}

/// Sends a task that isn't in the queue.
fn send(
    handle: &Handle,
    client: &WorkClient,
    task: &SentPlanTask,
    state: &mut FollowedTask,
) -> Result<Option<TaskOutcome>, SentRunError> {
    let RunRequest { run, session, volume, note, parent, text, agent, budget, allow, recall, provider, .. } =
        task.request.clone();
    // The queue forgets what was over long ago. Of a task that was never sent, only another device can have written.
    if (task.is_resumed || state.is_sent)
        && let Some((Some(ending), said)) = recorded_outcome(handle, run)?
    {
        return Ok(Some((ending, said)));
    }
    if let Some(why) = state.refusal.take() {
        return Ok(Some((RunEnding::Failed, why)));
    }
    if state.is_sent {
        return Ok(Some((RunEnding::Failed, "the hub's queue no longer has it".to_owned())));
    }
    if !wait_until_hubs_have_all(handle, Some(client.address()), SYNC_PATIENCE)? {
        return Ok(None); // a worker would work on an older state
    }
    let to = match task.device.as_str() {
        ANY_DEVICE => None,
        word => Some(find_device(client, word)?.0),
    };
    let policy = ToolPolicy { rules: allow, ..ToolPolicy::default() };
    let task = RunTask { session, note, parent, text, agent, budget, provider, allow: Vec::new(), recall, policy };
    match send_run(handle, client, &SentQuestion { run, volume, to, task }) {
        Ok(()) => state.is_sent = true,
        // It may be there already: the next look shows it.
        Err(SentRunError::Queue(WorkError::Refused(why))) => state.refusal = Some(why),
        Err(why) => return Err(why),
    }
    Ok(None)
}

/// Looks at a task in the queue.
fn follow(
    handle: &Handle,
    client: &WorkClient,
    queued: &QueuedRun,
    state: &mut FollowedTask,
) -> Result<Option<TaskOutcome>, SentRunError> {
    match queued.ending.as_deref() {
        Some(TAKEN_BACK_ENDING) => take_back(handle, client, queued.run, state),
        Some(ending) => {
            // The worker has sent everything before it said so.
            let is_late = state.over_since.get_or_insert_with(Instant::now).elapsed() >= SEND_TIMEOUT;
            if !wait_until_hubs_have_all(handle, Some(client.address()), SYNC_PATIENCE)? && !is_late {
                return Ok(None);
            }
            let ending = match ending {
                "done" => RunEnding::Done,
                "cancelled" | "stopped" => RunEnding::Cancelled,
                "budget" => RunEnding::Budget,
                _ => RunEnding::Failed,
            };
            let said = recorded_outcome(handle, queued.run)?.map(|(_, said)| said).filter(|said| !said.is_empty());
            let said = said.or_else(|| queued.why.clone());
            Ok(Some((ending, said.unwrap_or_else(|| "It was stopped before a worker began it.".to_owned()))))
        }
        None if queued.is_free && queued.cancelled => {
            client.ask(&WorkRequest::Cancel(queued.run))?; // its worker was lost before it heard that
            Ok(None)
        }
        None if queued.is_free && queued.epoch > 0 => {
            if state.free_since.get_or_insert_with(Instant::now).elapsed() >= TAKE_BACK_AFTER {
                claim_back(client, queued.run, state)?;
            }
            Ok(None)
        }
        None => {
            state.free_since = None;
            Ok(None)
        }
    }
}

/// Takes a task whose worker was lost out of the queue, so that no worker continues it.
fn claim_back(client: &WorkClient, run: DocId, state: &mut FollowedTask) -> Result<(), WorkError> {
    match client.ask(&WorkRequest::Claim(run)) {
        Ok(WorkReply::Claimed { epoch, .. }) => {
            let renewed = client.ask(&WorkRequest::Renew { run, epoch, decisions: 0 })?;
            if let WorkReply::Renewed { decisions, .. } = renewed {
                state.decisions = decisions;
            }
            let ending = TAKEN_BACK_ENDING.to_owned();
            let why = Some("its worker was lost, so the device that sent it carries it out".to_owned());
            client.ask(&WorkRequest::Finish { run, epoch, ending, why }).map(drop)
        }
        // Another worker was faster.
        Ok(_) | Err(WorkError::Refused(_)) => Ok(()),
        Err(why) => Err(why),
    }
}

/// Goes on here with a task that was taken out of the queue.
fn take_back(
    handle: &Handle,
    client: &WorkClient,
    run: DocId,
    state: &mut FollowedTask,
) -> Result<Option<TaskOutcome>, SentRunError> {
    let is_late = state.taking_since.get_or_insert_with(Instant::now).elapsed() >= TAKE_BACK_TIMEOUT;
    // What its worker did must be here.
    if !wait_until_hubs_have_all(handle, Some(client.address()), SYNC_PATIENCE)? && !is_late {
        return Ok(None);
    }
    if let Some((Some(ending), said)) = recorded_outcome(handle, run)? {
        return Ok(Some((ending, said)));
    }
    match handle.run_command(Command::TakeBackTask { run, hub: client.address().to_owned() }) {
        Ok(_) => {
            apply_decisions(handle, client, std::mem::take(&mut state.decisions))?;
            Ok(None)
        }
        Err(why) if is_late => Ok(Some((RunEnding::Failed, why.to_string()))),
        Err(_) => Ok(None), // its document may still be read
    }
}

/// Applies what the user decided about calls that were to run elsewhere, if they still wait and are as they were shown.
fn apply_decisions(handle: &Handle, client: &WorkClient, decisions: Vec<SignedText>) -> Result<(), SentRunError> {
    for signed in decisions.into_iter().filter(|signed| signed.by == client.own_id()) {
        let Ok(OrderedDecision { approval, shown, decision, .. }) = signed.open::<OrderedDecision>() else { continue };
        let Ok(SentDecision { run, record }) = serde_json::from_value(decision) else { continue };
        let id = approval.clone();
        let look = move |session: &Session| {
            session.agents().run(run)?.pending().find(|pending| pending.id == id).map(shown_hash)
        };
        if handle.read(look)? == Some(shown) {
            // It may have run out of time just now.
            let _ = handle.run_command(Command::Decide { run, approval, decision: record });
        }
    }
    Ok(())
}

fn is_known(handle: &Handle, run: DocId) -> Result<bool, SentRunError> {
    Ok(handle.read(move |session| session.agents().runs().any(|(id, _)| id == run))?)
}

/// Returns how a run ended, if it has, and its last words; `None` if nothing of it is here.
fn recorded_outcome(handle: &Handle, run: DocId) -> Result<Option<(Option<RunEnding>, String)>, SentRunError> {
    if !is_known(handle, run)? {
        return Ok(None);
    }
    handle.run_command(Command::OpenRun { run })?;
    let look = move |session: &Session| {
        let agents = session.agents();
        let read = agents.run(run).map(|run| (run.about.ending, last_words(run)));
        read.map(Some).or_else(|| agents.read_error(run).map(|_| None))
    };
    Ok(handle.wait(Some(READ_TIMEOUT), look)?.flatten())
}

/// Returns a run's answer, or its last error.
fn last_words(run: &AgentRun) -> String {
    let error = || {
        run.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::Error { message, .. } => Some(message.as_str()),
            StepKind::FinalAnswer { .. }
            | StepKind::ToolCall { .. }
            | StepKind::ToolResult { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. } => None,
        })
    };
    final_answer(&run.steps).or_else(error).unwrap_or_default().to_owned()
}
