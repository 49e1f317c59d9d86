//! Carries out runs that other devices sent. Command line and window use the same functions.
//!
//! A worker believes only orders that are signed by a device that its user named. It works by the owner's policy, and
//! the owner decides about calls. Its claim is a lease: if it can't renew that in time, it stops at once, before the
//! hub lets another worker continue.

use crate::carry_out_error::CarryOutError;
use crate::claim::Claim;
use crate::hub_sync::wait_until_hubs_have_all;
use crate::send_errors::SentRunError;
use crate::setup_checks::{ensure_agent_available, wait_for_setup};
use crate::{RunTask, SentDecision, read_order, shown_hash};
use agent::agent_definition::{DEFAULT_AGENT, is_memory_agent};
use agent::memory::ReplayMode;
use agent::policy::ToolPolicy;
use engine::{Command, CommandError, Session};
use host::Handle;
use host::peers::work::{OrderedDecision, QueuedRun, SignedText, WorkClient, WorkError, WorkReply, WorkRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant, SystemTime};
use store::{DecisionRecord, DecisionScope, DocId, RunEnding, RunOrigin};

/// How often a run that is carried out is looked at.
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a run that couldn't begin here is left to other workers.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Time limit for what must arrive before a run begins, and be sent after it.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for sending what a run did.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for reading a run's document.
const DOCUMENT_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// What a worker tells its user about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerNoticeKind {
    /// An order doesn't hold.
    Refused,
    /// A decision about one of its calls doesn't hold.
    DecisionRefused,
    /// The worker begins or continues the run.
    Claimed,
    /// A call waits for the owner.
    ApprovalPending,
    /// The run is over.
    Ended,
    /// The claim is lost.
    Lost,
    /// The run was given back.
    Released,
}

/// A message of a worker about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerNotice {
    /// The kind of message.
    pub kind: WorkerNoticeKind,
    /// The run.
    pub run: DocId,
    /// What happens with the run, without a subject: “begins for desk: Write a report”. About a refused decision, a
    /// whole clause.
    pub words: String,
}

/// Gets the messages of a worker. If it fails, the worker stops.
pub type WorkerListener<'l> = dyn FnMut(WorkerNotice) -> io::Result<()> + 'l;

/// Carries out runs of other devices, one at a time.
pub struct RunWorker<'w> {
    handle: Handle,
    /// Returns whether the user named the device with this key.
    is_trusted: &'w dyn Fn(&str) -> bool,
    /// Runs that are left to other workers until then.
    later: BTreeMap<DocId, Instant>,
}

/// How work on a run ended.
enum WorkOutcome {
    /// The run is over: how, and why it isn't done.
    Over(String, Option<String>),
    /// The claim has ended.
    Lost,
    /// It can't be carried out here now.
    NotNow(String),
}

fn say(tell: &mut WorkerListener<'_>, kind: WorkerNoticeKind, run: DocId, words: String) -> io::Result<()> {
    tell(WorkerNotice { kind, run, words })
}

impl<'w> RunWorker<'w> {
    /// Creates a worker that carries out runs of the devices whose keys `is_trusted` accepts. A run is given back once
    /// its device isn't accepted any longer.
    pub fn new(handle: Handle, is_trusted: &'w dyn Fn(&str) -> bool) -> RunWorker<'w> {
        RunWorker { handle, is_trusted, later: BTreeMap::new() }
    }

    /// Carries out the first of these runs that can be claimed. Returns whether one came to its end.
    ///
    /// # Errors
    /// Returns an error if the program is closing, the setup can't be read, or `tell` fails.
    pub fn carry_out_first(
        &mut self,
        client: &WorkClient,
        runs: &[QueuedRun],
        tell: &mut WorkerListener<'_>,
    ) -> Result<bool, CarryOutError> {
        self.later.retain(|_, at| *at > Instant::now());
        for queued in runs {
            let owner = queued.order.by.to_string();
            if !queued.is_free || self.later.contains_key(&queued.run) || !(self.is_trusted)(&owner) {
                continue;
            }
            let (order, task) = match read_order(client, queued) {
                Ok(read) => read,
                Err(why) => {
                    self.later.insert(queued.run, Instant::now() + RETRY_AFTER);
                    say(tell, WorkerNoticeKind::Refused, queued.run, format!("is not carried out: {why}"))?;
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
            let (handle, lender, run) = (self.handle.clone(), client.clone(), queued.run);
            let on_lost = move || {
                if let Err(error) = give_up(&handle, &lender, run) {
                    tracing::warn!(%error, "a run whose claim was lost could not be given up");
                }
            };
            let claim = Claim::keep(client, (queued.run, epoch), (lease, sent), on_lost);
            let prompt = task.text.lines().next().unwrap_or_default();
            let verb = if epoch == 1 { "begins" } else { "is taken over" };
            let words = format!("{verb} for {}: {prompt}", queued.owner);
            say(tell, WorkerNoticeKind::Claimed, queued.run, words)?;
            return match self.carry_out(client, (queued, order.volume, &task), &claim, tell) {
                Ok(outcome) => self.finish(client, claim, outcome, tell),
                Err(error) => {
                    self.later.insert(run, Instant::now() + RETRY_AFTER);
                    // Unless this program is closing, others needn't wait for the end of the lease.
                    if give_up(&self.handle, client, run).is_ok() {
                        // If it can't be given back, the lease ends by itself.
                        let _ = client.ask(&WorkRequest::Release { run, epoch });
                    }
                    Err(error)
                }
            };
        }
        Ok(false)
    }

    /// Tells the queue how work on a run ended. Returns whether the run came to its end.
    fn finish(
        &mut self,
        client: &WorkClient,
        claim: Claim,
        outcome: WorkOutcome,
        tell: &mut WorkerListener<'_>,
    ) -> Result<bool, CarryOutError> {
        let (run, epoch, lease) = (claim.run, claim.epoch, claim.lease);
        match outcome {
            WorkOutcome::Over(ending, why) => {
                let request = WorkRequest::Finish { run, epoch, ending: ending.clone(), why: why.clone() };
                while claim.holds() {
                    match client.ask(&request) {
                        Ok(_) | Err(WorkError::Refused(_)) => break,
                        Err(_) => std::thread::park_timeout(RUN_POLL_INTERVAL),
                    }
                }
                give_up(&self.handle, client, run)?;
                let words = why.map_or_else(|| ending.clone(), |why| format!("{ending}: {why}"));
                say(tell, WorkerNoticeKind::Ended, run, words)?;
                Ok(true)
            }
            WorkOutcome::Lost => {
                give_up(&self.handle, client, run)?;
                let words = "was given up: the hub wasn't reached in time, so another worker may continue";
                say(tell, WorkerNoticeKind::Lost, run, words.to_owned())?;
                // Other workers come first.
                self.later.insert(run, Instant::now() + lease);
                Ok(false)
            }
            WorkOutcome::NotNow(why) => {
                give_up(&self.handle, client, run)?;
                // If it can't be given back, the lease ends by itself.
                let _ = client.ask(&WorkRequest::Release { run, epoch });
                say(tell, WorkerNoticeKind::Released, run, format!("was given back: {why}"))?;
                self.later.insert(run, Instant::now() + RETRY_AFTER);
                Ok(false)
            }
        }
    }

    /// Begins a run, or continues it, and watches it until its end.
    fn carry_out(
        &self,
        client: &WorkClient,
        (queued, volume, task): (&QueuedRun, DocId, &RunTask),
        claim: &Claim,
        tell: &mut WorkerListener<'_>,
    ) -> Result<WorkOutcome, CarryOutError> {
        let run = queued.run;
        let owner = queued.order.by.to_string();
        let untrusted = || WorkOutcome::NotNow("runs of its device are no longer carried out here".to_owned());
        // What the owner has written must be here, and what an earlier worker has done.
        let end = Instant::now() + SYNC_TIMEOUT;
        while !wait_until_hubs_have_all(&self.handle, Some(client.address()), Duration::from_secs(1))? {
            if !claim.holds() {
                return Ok(WorkOutcome::Lost);
            }
            if !(self.is_trusted)(&owner) {
                return Ok(untrusted());
            }
            if Instant::now() > end {
                return Ok(WorkOutcome::NotNow("not all of the volume has arrived here yet".to_owned()));
            }
        }
        wait_for_setup(&self.handle)?;
        let problems = self.handle.read(|session| session.problems().len())?;
        // The user may have changed that while the volume arrived.
        if !(self.is_trusted)(&owner) {
            return Ok(untrusted());
        }
        if let Err(refusal) = self.begin(client, (volume, task, claim.epoch), run) {
            self.handle.read(|_| ())?; // a program that is closing hasn't failed
            return Ok(WorkOutcome::Over("failed".to_owned(), Some(refusal.to_string())));
        }
        let mut asked: BTreeSet<String> = BTreeSet::new();
        let mut is_stopping = false;
        // Decisions about delegated work that another worker began, and that isn't continued yet.
        let mut undecided: Vec<SignedText> = Vec::new();
        loop {
            if !claim.holds() {
                return Ok(WorkOutcome::Lost);
            }
            if !(self.is_trusted)(&owner) {
                return Ok(untrusted());
            }
            undecided.extend(claim.take_decisions());
            for decision in std::mem::take(&mut undecided) {
                match self.apply_decision(client, queued, &decision) {
                    Ok(true) => {}
                    Ok(false) => undecided.push(decision),
                    Err(why) => {
                        let words = format!("a decision doesn't count: {why}");
                        say(tell, WorkerNoticeKind::DecisionRefused, run, words)?;
                    }
                }
            }
            if claim.is_cancelled() && !is_stopping {
                is_stopping = true;
                // It may be over just now.
                let _ = self.handle.run_command(Command::CancelRun { run });
            }
            let look = move |session: &Session| {
                let agents = session.agents();
                let Some(known) = agents.run(run) else {
                    let said = session.problems().get(problems..).unwrap_or_default().last().cloned();
                    let why = said.unwrap_or_else(|| "the question was not accepted".to_owned());
                    return (
                        None,
                        (!agents.is_request_pending(run) && !agents.is_reading()).then_some(why),
                        Vec::new(),
                    );
                };
                let parts = agents.run_family(run).into_iter().filter_map(|part| agents.run(part));
                let pending = parts.flat_map(|part| part.pending().map(move |approval| (part.id, approval)));
                let title = |approval| agent::approval_text::title(approval);
                let waits: Vec<(String, String)> =
                    pending.map(|(part, approval)| (format!("{part}/{}", approval.id), title(approval))).collect();
                (known.about.ending.filter(|_| known.is_durable()), None, waits)
            };
            let (ending, trouble, waits) = self.handle.read(look)?;
            for (name, title) in waits {
                if asked.insert(name) {
                    let words = format!("waits for {}: {title}", queued.owner);
                    say(tell, WorkerNoticeKind::ApprovalPending, run, words)?;
                }
            }
            if let Some(why) = trouble {
                return Ok(WorkOutcome::Over("failed".to_owned(), Some(why)));
            }
            if let Some(ending) = ending {
                self.end_parts(run)?;
                return self.deliver(client, claim, ending);
            }
            std::thread::park_timeout(RUN_POLL_INTERVAL);
        }
    }

    /// Ends what a run had delegated on a worker that was lost, and didn't have continued here.
    fn end_parts(&self, run: DocId) -> Result<(), CarryOutError> {
        let parts = self.handle.read(move |session| {
            let agents = session.agents();
            let open = |id: &DocId| agents.runs().any(|(of, line)| of == *id && line.ending.is_none());
            agents.run_family(run).into_iter().filter(|id| *id != run && open(id)).collect::<Vec<_>>()
        })?;
        for part in parts {
            if open_run(&self.handle, part).is_ok() {
                // It may be over just now.
                let _ = self.handle.run_command(Command::CancelRun { run: part });
            }
        }
        Ok(())
    }

    /// Waits until the hub has all that the run did.
    fn deliver(&self, client: &WorkClient, claim: &Claim, ending: RunEnding) -> Result<WorkOutcome, CarryOutError> {
        let kept = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
        let end = Instant::now() + DELIVERY_TIMEOUT;
        let mut is_kept = false;
        loop {
            if !claim.holds() {
                return Ok(WorkOutcome::Lost);
            }
            is_kept = is_kept || self.handle.wait(Some(Duration::from_secs(1)), kept)?.is_some();
            if is_kept && wait_until_hubs_have_all(&self.handle, Some(client.address()), Duration::from_secs(1))? {
                break;
            }
            if Instant::now() > end {
                let why =
                    "the worker has ended it, and couldn't send all that it did yet; it comes while the worker runs";
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
        &self,
        client: &WorkClient,
        (volume, task, epoch): (DocId, &RunTask, u64),
        run: DocId,
    ) -> Result<(), CarryOutError> {
        let RunTask { session, note, parent, text, agent, budget, provider, allow, recall, policy } = task.clone();
        if agent.as_deref().is_some_and(is_memory_agent) {
            return Err(SentRunError::MemoryAgent.into());
        }
        let mut policy = policy;
        policy.rules.extend(ToolPolicy::rules_for_question(&allow, run));
        let hub = client.address().to_owned();
        let hold = Command::HoldRun { run, hub, policy: Some(Box::new(policy)) };
        if self.handle.read(move |session| session.agents().runs().any(|(id, _)| id == run))? {
            if epoch == 1 {
                return Err(CarryOutError::NotCarriedOut);
            }
            open_run(&self.handle, run)?;
            if self.ensure_ordered((volume, task), run)?.is_some() {
                return Ok(());
            }
            if recall.mode == ReplayMode::Follower {
                return Err(CarryOutError::FollowerLost);
            }
            self.handle.run_command(hold)?;
            return Ok(());
        }
        if let Some(agent) = &agent {
            ensure_agent_available(&self.handle, volume, agent)?;
        }
        self.handle.run_command(hold)?;
        let provider = provider.map(String::into_boxed_str);
        let command = Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall, provider };
        self.handle.run_command(command)?;
        Ok(())
    }

    /// Checks that a run's document, which any device may have written, is about what was ordered. Returns how the run
    /// ended, if it's over.
    fn ensure_ordered(
        &self,
        (volume, task): (DocId, &RunTask),
        run: DocId,
    ) -> Result<Option<RunEnding>, CarryOutError> {
        let about = self.handle.read(move |session| session.agents().run(run).map(|run| run.about.clone()))?;
        let about = about.ok_or(CarryOutError::Closed)?;
        let is_agent = match &task.agent {
            Some(agent) => about.agent == *agent,
            None => about.agent == DEFAULT_AGENT || task.text.contains(&format!("@{}", about.agent)),
        };
        let is_same = (about.volume, about.session, about.note) == (volume, task.session, task.note)
            && (&about.prompt, about.budget, &about.provider) == (&task.text, task.budget, &task.provider)
            && about.origin == RunOrigin::Device
            && is_agent;
        match is_same {
            true => Ok(about.ending),
            false => Err(CarryOutError::OtherOrder),
        }
    }

    /// Applies a decision of the owner, if it's about a request as the owner saw it. Returns whether it was applied; if
    /// not, the work that it's about may still be continued here.
    fn apply_decision(
        &self,
        client: &WorkClient,
        queued: &QueuedRun,
        signed: &SignedText,
    ) -> Result<bool, CarryOutError> {
        let decision: OrderedDecision = signed.open()?;
        if signed.by != queued.order.by || decision.hub != client.hub || decision.run != queued.run {
            return Err(CarryOutError::OtherOwner);
        }
        let sent: SentDecision = serde_json::from_value(decision.decision)?;
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
        let (shown, may_come) = self.handle.read(look)?;
        match shown {
            _ if may_come => return Ok(false),
            None => return Err(CarryOutError::NothingWaits),
            Some(shown) if shown != decision.shown => return Err(CarryOutError::OtherRequest),
            Some(_) => {}
        }
        // What lasts longer than the run is the owner's own list of rules.
        let scope = match sent.record.scope {
            DecisionScope::Once => DecisionScope::Once,
            DecisionScope::Run | DecisionScope::Project | DecisionScope::Always => DecisionScope::Run,
        };
        let record = DecisionRecord { scope, ..sent.record };
        let command = Command::Decide { run, approval: decision.approval, decision: record };
        self.handle.run_command(command)?;
        Ok(true)
    }
}

/// Stops all work on a run, and records nothing.
fn give_up(handle: &Handle, client: &WorkClient, run: DocId) -> Result<(), CommandError> {
    handle.run_command(Command::HoldRun { run, hub: client.address().to_owned(), policy: None }).map(|_| ())
}

/// Loads a run, with its session if the run isn't over.
fn open_run(handle: &Handle, run: DocId) -> Result<(), CarryOutError> {
    handle.run_command(Command::OpenRun { run })?;
    let look = move |session: &Session| {
        let agents = session.agents();
        if let Some(why) = agents.read_error(run) {
            return Some(Err(why.to_owned()));
        }
        let known = agents.run(run)?;
        let is_whole = known.about.ending.is_some()
            || agents.session(known.about.session).is_some()
            || agents.read_error(known.about.session).is_some();
        is_whole.then_some(Ok(()))
    };
    match handle.wait(Some(DOCUMENT_READ_TIMEOUT), look)? {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(CarryOutError::Unreadable { why }),
        None => Err(CarryOutError::Unread),
    }
}
