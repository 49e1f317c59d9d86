//! The queue of runs that devices send to each other: one device at a time carries out a run.
//!
//! A claim is a lease. It's measured by this process's own clock since the executor was last heard, so neither a clock
//! that jumps nor a restart lets a second device in too early. With several replicas, each change names the version
//! that it replaces, and the store takes only one of two such changes.

use crate::storage::StoreFailure;
use peers::DeviceId;
use peers::work::{
    MAX_WORK_MESSAGE_BYTES, OrderedDecision, QueuedRun, RunOrder, SignedText, SignedTextError, WorkReply, WorkRequest,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{DeviceAccess, DocId};

/// How long a claim holds without being renewed, unless the settings say otherwise.
pub(crate) const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// Maximum number of runs of one device that aren't over.
const MAX_OPEN_RUNS: usize = 100;
/// Maximum number of decisions about one run.
const MAX_DECISIONS: usize = 500;
/// Number of runs that are kept after they are over, so that their devices learn of it.
const MAX_ENDED_RUNS: usize = 200;
/// Maximum size of a stored record in bytes, since NATS accepts messages of 1 MB.
const MAX_RECORD_BYTES: usize = 768 << 10;
/// Maximum size of a list of runs in bytes: a quarter of a message is left for quotes and escapes.
const MAX_LISTED_BYTES: usize = MAX_WORK_MESSAGE_BYTES / 2;
/// Size of a run in a list in bytes, besides its order, at most.
const LISTED_RUN_BYTES: usize = 2_000;
/// Maximum length of the word for how a run ended, in bytes.
const MAX_ENDING_BYTES: usize = 32;
/// Maximum length of the reason why a run isn't done, in characters.
const MAX_REASON_CHARS: usize = 1_000;
/// Maximum number of attempts while other replicas change the same run.
const MAX_WRITE_ATTEMPTS: u32 = 20;

/// A stored record: its bytes, and the version that the next write names.
pub(crate) type VersionedBytes = (Vec<u8>, u64);

/// Stores a record for each run. The calls block.
pub(crate) trait WorkStore: Send + Sync {
    /// Returns the record of a run; `None` if there's none.
    ///
    /// # Errors
    /// Returns an error if it can't be read now.
    fn read_record(&self, run: DocId) -> Result<Option<VersionedBytes>, StoreFailure>;

    /// Returns all records.
    ///
    /// # Errors
    /// Returns an error if they can't be read now.
    fn read_records(&self) -> Result<Vec<VersionedBytes>, StoreFailure>;

    /// Writes the record of a run, if its version is still `expected` (0: there's none). Returns whether it was.
    ///
    /// # Errors
    /// Returns an error if it isn't durable.
    fn write_record(&self, run: DocId, bytes: Vec<u8>, expected: u64) -> Result<bool, StoreFailure>;

    /// Removes the record of a run.
    ///
    /// # Errors
    /// Returns an error if it can't be removed now.
    fn remove_record(&self, run: DocId) -> Result<(), StoreFailure>;
}

/// A run in the queue, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WorkRecord {
    run: DocId,
    volume: DocId,
    order: SignedText,
    /// Name of the device that ordered it.
    owner: String,
    /// The only device that may claim it; `None` for any.
    to: Option<DeviceId>,
    holder: Option<(DeviceId, String)>,
    /// Number of claims so far.
    epoch: u64,
    /// Number of times that the current claim was renewed.
    beat: u64,
    decisions: Vec<SignedText>,
    cancelled: bool,
    ending: Option<String>,
    /// Why it isn't done, as the executor says.
    why: Option<String>,
    /// When it ended, in milliseconds since 1970, for cleaning up.
    ended: Option<i64>,
}

/// Why a request isn't fulfilled.
#[derive(Debug, thiserror::Error)]
enum WorkRefusal {
    #[error(
        "this device may not write in the volume of the run; the hub's owner can change that: `tracebook hub share`"
    )]
    NoAccess,
    #[error("the hub's queue has no such run")]
    Unknown,
    #[error("the run is in the hub's queue already")]
    Exists,
    #[error("only the device that ordered the run decides about its calls")]
    NotOwner,
    #[error("the run is for another device")]
    ForAnother,
    #[error("{0} carries out the run")]
    Held(String),
    #[error("the run is over")]
    Over,
    #[error("too many runs wait in the hub's queue; stop some: `tracebook worker stop RUN`")]
    Full,
    #[error("the order is for another hub or from another device")]
    OtherOrder,
    #[error(transparent)]
    Signed(#[from] SignedTextError),
    #[error("the record of the run can't be read ({0})")]
    Record(#[from] serde_json::Error),
    #[error("the hub can't store it now ({0})")]
    Store(#[from] StoreFailure),
    #[error("other devices change the run at this moment; try again")]
    Busy,
}

/// The device that asks, and what it may do.
pub(crate) struct WorkCaller<'a> {
    pub(crate) device: DeviceId,
    pub(crate) name: &'a str,
    /// Returns the device's access to a volume.
    pub(crate) access: &'a dyn Fn(DocId) -> DeviceAccess,
}

/// When an executor was last heard: the claim and its renewal, and the time here.
struct LastHeard {
    epoch: u64,
    beat: u64,
    at: Instant,
}

/// The queue of runs.
pub(crate) struct WorkQueue {
    store: Arc<dyn WorkStore>,
    hub: DeviceId,
    lease: Duration,
    heard: Mutex<HashMap<DocId, LastHeard>>,
    /// Held while a request reads and writes, so that those of this process don't disturb each other.
    turn: Mutex<()>,
}

impl WorkQueue {
    pub(crate) fn new(store: Arc<dyn WorkStore>, hub: DeviceId, lease: Duration) -> WorkQueue {
        WorkQueue { store, hub, lease, heard: Mutex::default(), turn: Mutex::default() }
    }

    /// Answers a request. `now`: the time of this process. Blocks while the store works.
    pub(crate) fn answer(&self, caller: &WorkCaller<'_>, request: WorkRequest, now: Instant) -> WorkReply {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = match request {
            WorkRequest::List(volumes) => self.list(caller, &volumes, now),
            WorkRequest::Offer(order) => self.offer(caller, order),
            WorkRequest::Claim(run)
            | WorkRequest::Renew { run, .. }
            | WorkRequest::Finish { run, .. }
            | WorkRequest::Release { run, .. }
            | WorkRequest::Decide(run, _)
            | WorkRequest::Cancel(run) => self.change(caller, run, &request, now),
            WorkRequest::Devices => Err(WorkRefusal::Unknown),
        };
        answered.unwrap_or_else(|why| WorkReply::Refused(why.to_string()))
    }

    /// Returns whether a run can be claimed, and remembers when its executor was heard.
    fn is_free(&self, record: &WorkRecord, now: Instant) -> bool {
        if record.holder.is_none() {
            return record.ending.is_none();
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let last = heard.entry(record.run).or_insert(LastHeard { epoch: 0, beat: 0, at: now });
        if (last.epoch, last.beat) != (record.epoch, record.beat) {
            *last = LastHeard { epoch: record.epoch, beat: record.beat, at: now };
        }
        record.ending.is_none() && now.saturating_duration_since(last.at) >= self.lease
    }

    fn list(&self, caller: &WorkCaller<'_>, volumes: &[DocId], now: Instant) -> Result<WorkReply, WorkRefusal> {
        let (mut runs, records) = (Vec::new(), self.store.read_records()?);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() > records.len() {
            heard.clear(); // each lease counts anew, which is safe
        }
        drop(heard);
        let mut known: Vec<WorkRecord> = Vec::new();
        for (bytes, _) in records {
            known.push(serde_json::from_slice(&bytes)?);
        }
        // Those that aren't over come first, and then the newest: a list has an end.
        known.sort_by_key(|record| (record.ending.is_some(), std::cmp::Reverse(record.ended)));
        let mut left = MAX_LISTED_BYTES;
        for record in known {
            let is_free = self.is_free(&record, now);
            if !volumes.contains(&record.volume) || (caller.access)(record.volume) < DeviceAccess::Read {
                continue;
            }
            left = left.saturating_sub(record.order.text.len() + LISTED_RUN_BYTES);
            if left == 0 {
                break;
            }
            let WorkRecord { run, order, owner, holder, epoch, cancelled, ending, why, .. } = record;
            runs.push(QueuedRun { run, order, owner, holder, epoch, is_free, cancelled, ending, why });
        }
        Ok(WorkReply::Runs(runs))
    }

    fn offer(&self, caller: &WorkCaller<'_>, order: SignedText) -> Result<WorkReply, WorkRefusal> {
        let RunOrder { hub, run, volume, to, .. } = order.open()?;
        if hub != self.hub || order.by != caller.device {
            return Err(WorkRefusal::OtherOrder);
        }
        if (caller.access)(volume) < DeviceAccess::Write {
            return Err(WorkRefusal::NoAccess);
        }
        let mut records: Vec<WorkRecord> = Vec::new();
        for (bytes, _) in self.store.read_records()? {
            records.push(serde_json::from_slice(&bytes)?);
        }
        if let Some(known) = records.iter().find(|record| record.run == run) {
            // The device sends it again if it didn't hear the answer.
            return if known.order == order { Ok(WorkReply::Done) } else { Err(WorkRefusal::Exists) };
        }
        let open = records.iter().filter(|one| one.ending.is_none() && one.volume == volume);
        let size: usize = open.map(|one| one.order.text.len() + LISTED_RUN_BYTES).sum();
        if size + order.text.len() + LISTED_RUN_BYTES > MAX_LISTED_BYTES {
            return Err(WorkRefusal::Full);
        }
        if records.iter().filter(|one| one.order.by == caller.device && one.ending.is_none()).count() >= MAX_OPEN_RUNS {
            return Err(WorkRefusal::Full);
        }
        let mut ended: Vec<(i64, DocId)> = records.iter().filter_map(|one| Some((one.ended?, one.run))).collect();
        ended.sort_unstable();
        for (_, old) in ended.iter().take(ended.len().saturating_sub(MAX_ENDED_RUNS)) {
            self.store.remove_record(*old)?;
        }
        let record = WorkRecord {
            run,
            volume,
            order,
            owner: caller.name.to_owned(),
            to,
            holder: None,
            epoch: 0,
            beat: 0,
            decisions: Vec::new(),
            cancelled: false,
            ending: None,
            why: None,
            ended: None,
        };
        match self.store.write_record(run, serde_json::to_vec(&record)?, 0)? {
            true => Ok(WorkReply::Done),
            false => Err(WorkRefusal::Exists),
        }
    }

    /// Changes the record of a run; starts again with the new record if another replica was faster.
    fn change(
        &self,
        caller: &WorkCaller<'_>,
        run: DocId,
        request: &WorkRequest,
        now: Instant,
    ) -> Result<WorkReply, WorkRefusal> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let (bytes, version) = self.store.read_record(run)?.ok_or(WorkRefusal::Unknown)?;
            let before: WorkRecord = serde_json::from_slice(&bytes)?;
            let is_free = self.is_free(&before, now);
            let mut record = before.clone();
            let reply = record.apply(caller, request, (is_free, self.lease, self.hub))?;
            if record == before {
                return Ok(reply);
            }
            let bytes = serde_json::to_vec(&record)?;
            if bytes.len() > MAX_RECORD_BYTES {
                return Err(WorkRefusal::Full);
            }
            if self.store.write_record(run, bytes, version)? {
                self.is_free(&record, Instant::now().max(now));
                return Ok(reply);
            }
        }
        Err(WorkRefusal::Busy)
    }
}

impl WorkRecord {
    /// Returns whether this claim is the one that holds.
    fn is_held_by(&self, device: DeviceId, epoch: u64) -> bool {
        self.epoch == epoch && self.holder.as_ref().is_some_and(|(holder, _)| *holder == device)
    }

    /// Carries out one request on the record.
    fn apply(
        &mut self,
        caller: &WorkCaller<'_>,
        request: &WorkRequest,
        (is_free, lease, hub): (bool, Duration, DeviceId),
    ) -> Result<WorkReply, WorkRefusal> {
        if (caller.access)(self.volume) < DeviceAccess::Write {
            return Err(WorkRefusal::NoAccess);
        }
        match request {
            WorkRequest::Claim(_) => {
                if self.ending.is_some() {
                    return Err(WorkRefusal::Over);
                }
                // Who ordered it may take it back.
                if self.to.is_some_and(|to| to != caller.device) && self.order.by != caller.device {
                    return Err(WorkRefusal::ForAnother);
                }
                if let Some((_, name)) = self.holder.as_ref().filter(|_| !is_free) {
                    return Err(WorkRefusal::Held(name.clone()));
                }
                self.holder = Some((caller.device, caller.name.to_owned()));
                self.epoch += 1;
                self.beat = 0;
                Ok(WorkReply::Claimed { epoch: self.epoch, lease_ms: millis(lease) })
            }
            WorkRequest::Renew { epoch, decisions, .. } => {
                if self.ending.is_some() || is_free || !self.is_held_by(caller.device, *epoch) {
                    return Ok(WorkReply::Lost);
                }
                self.beat += 1;
                let new = self.decisions.get(*decisions..).unwrap_or_default().to_vec();
                Ok(WorkReply::Renewed { cancelled: self.cancelled, decisions: new })
            }
            WorkRequest::Finish { epoch, ending, why, .. } => {
                if !self.is_held_by(caller.device, *epoch) || (is_free && self.ending.is_none()) {
                    return Ok(WorkReply::Lost);
                }
                if self.ending.is_none() {
                    self.why = why.as_ref().map(|why| why.chars().take(MAX_REASON_CHARS).collect());
                    self.end(ending.chars().take(MAX_ENDING_BYTES).filter(char::is_ascii_alphabetic).collect());
                }
                Ok(WorkReply::Done)
            }
            WorkRequest::Release { epoch, .. } => {
                if self.ending.is_some() || !self.is_held_by(caller.device, *epoch) {
                    return Ok(WorkReply::Lost);
                }
                self.holder = None;
                Ok(WorkReply::Done)
            }
            WorkRequest::Decide(run, decision) => {
                let OrderedDecision { hub: meant, run: of, .. } = decision.open()?;
                if decision.by != self.order.by || decision.by != caller.device {
                    return Err(WorkRefusal::NotOwner);
                }
                if meant != hub || of != *run {
                    return Err(WorkRefusal::OtherOrder);
                }
                if self.ending.is_some() {
                    return Err(WorkRefusal::Over);
                }
                if self.decisions.len() >= MAX_DECISIONS {
                    return Err(WorkRefusal::Full);
                }
                if !self.decisions.contains(decision) {
                    self.decisions.push(decision.clone());
                }
                Ok(WorkReply::Done)
            }
            WorkRequest::Cancel(_) => {
                if self.ending.is_some() {
                    return Err(WorkRefusal::Over);
                }
                self.cancelled = true;
                if is_free {
                    self.end("cancelled".to_owned());
                }
                Ok(WorkReply::Done)
            }
            WorkRequest::Offer(_) | WorkRequest::List(_) | WorkRequest::Devices => Err(WorkRefusal::Unknown),
        }
    }

    fn end(&mut self, ending: String) {
        self.ending = Some(ending);
        self.ended = Some(peers::devices::now_millis());
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use peers::DeviceKey;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use serde_json::Value;
    use std::collections::BTreeMap;

    const LEASE: Duration = Duration::from_secs(30);

    /// Records in memory with versions, as the servers of NATS keep them.
    #[derive(Default)]
    struct Memory {
        records: Mutex<BTreeMap<DocId, VersionedBytes>>,
    }

    impl WorkStore for Memory {
        fn read_record(&self, run: DocId) -> Result<Option<VersionedBytes>, StoreFailure> {
            Ok(self.records.lock().expect("lock").get(&run).cloned())
        }

        fn read_records(&self) -> Result<Vec<VersionedBytes>, StoreFailure> {
            Ok(self.records.lock().expect("lock").values().cloned().collect())
        }

        fn write_record(&self, run: DocId, bytes: Vec<u8>, expected: u64) -> Result<bool, StoreFailure> {
            let mut records = self.records.lock().expect("lock");
            let version = records.get(&run).map_or(0, |(_, version)| *version);
            if version == expected {
                records.insert(run, (bytes, version + 1));
            }
            Ok(version == expected)
        }

        fn remove_record(&self, run: DocId) -> Result<(), StoreFailure> {
            self.records.lock().expect("lock").remove(&run);
            Ok(())
        }
    }

    struct Scene {
        hub: DeviceId,
        owner: DeviceKey,
        store: Arc<Memory>,
        queue: WorkQueue,
        began: Instant,
    }

    impl Scene {
        fn new() -> Scene {
            let (hub, store) = (DeviceKey::generate().expect("key").id(), Arc::<Memory>::default());
            let queue = WorkQueue::new(Arc::clone(&store) as Arc<dyn WorkStore>, hub, LEASE);
            Scene { hub, owner: DeviceKey::generate().expect("key"), store, queue, began: Instant::now() }
        }

        fn replica(&self) -> WorkQueue {
            WorkQueue::new(Arc::clone(&self.store) as Arc<dyn WorkStore>, self.hub, LEASE)
        }

        fn order(&self, run: u8, to: Option<DeviceId>) -> SignedText {
            let (run, volume) = (DocId([run; 16]), DocId([9; 16]));
            let order = RunOrder { hub: self.hub, run, volume, to, created: 0, task: Value::Null };
            SignedText::new(&self.owner, &order).expect("signed")
        }

        fn ask(&self, device: DeviceId, seconds: u64, request: WorkRequest) -> WorkReply {
            ask(&self.queue, device, self.began + Duration::from_secs(seconds), request)
        }
    }

    fn ask(queue: &WorkQueue, device: DeviceId, now: Instant, request: WorkRequest) -> WorkReply {
        let access = |_| DeviceAccess::Write;
        queue.answer(&WorkCaller { device, name: "one", access: &access }, request, now)
    }

    fn device(number: u8) -> DeviceId {
        DeviceId([number; 32])
    }

    #[track_caller]
    fn refused(reply: WorkReply, words: &str) {
        let WorkReply::Refused(why) = &reply else { panic!("{reply:?}") };
        assert!(why.contains(words), "{why}");
    }

    #[test]
    fn a_run_has_one_executor_until_it_is_silent() {
        let scene = Scene::new();
        let (owner, run) = (scene.owner.id(), DocId([1; 16]));
        assert_eq!(scene.ask(owner, 0, WorkRequest::Offer(scene.order(1, None))), WorkReply::Done);
        assert_eq!(scene.ask(owner, 0, WorkRequest::Offer(scene.order(1, None))), WorkReply::Done);
        refused(scene.ask(owner, 0, WorkRequest::Offer(scene.order(1, Some(device(1))))), "already");
        let claimed = |epoch| WorkReply::Claimed { epoch, lease_ms: 30_000 };
        assert_eq!(scene.ask(device(1), 1, WorkRequest::Claim(run)), claimed(1));
        refused(scene.ask(device(2), 2, WorkRequest::Claim(run)), "carries out");
        let renew = |epoch| WorkRequest::Renew { run, epoch, decisions: 0 };
        let well = WorkReply::Renewed { cancelled: false, decisions: Vec::new() };
        assert_eq!(scene.ask(device(1), 25, renew(1)), well);
        refused(scene.ask(device(2), 40, WorkRequest::Claim(run)), "carries out");
        assert_eq!(scene.ask(device(2), 56, WorkRequest::Claim(run)), claimed(2));
        assert_eq!(scene.ask(device(1), 57, renew(1)), WorkReply::Lost);
        let finish = |epoch| WorkRequest::Finish { run, epoch, ending: "done".to_owned(), why: None };
        assert_eq!(scene.ask(device(1), 58, finish(1)), WorkReply::Lost);
        assert_eq!(scene.ask(device(2), 58, finish(2)), WorkReply::Done);
        assert_eq!(scene.ask(device(2), 99, finish(2)), WorkReply::Done);
        refused(scene.ask(device(1), 99, WorkRequest::Claim(run)), "over");
    }

    #[test]
    fn after_a_restart_the_lease_counts_from_the_start() {
        let scene = Scene::new();
        let run = DocId([1; 16]);
        scene.ask(scene.owner.id(), 0, WorkRequest::Offer(scene.order(1, None)));
        scene.ask(device(1), 0, WorkRequest::Claim(run));
        let again = scene.replica();
        let at = |seconds| scene.began + Duration::from_secs(seconds);
        refused(ask(&again, device(2), at(1_000), WorkRequest::Claim(run)), "carries out");
        assert!(matches!(ask(&again, device(2), at(1_030), WorkRequest::Claim(run)), WorkReply::Claimed { .. }));
    }

    #[test]
    fn only_the_owner_decides_and_only_those_who_may_write_take_part() {
        let scene = Scene::new();
        let (owner, run) = (scene.owner.id(), DocId([1; 16]));
        refused(scene.ask(device(1), 0, WorkRequest::Offer(scene.order(1, None))), "another device");
        let other = SignedText { signature: "00".repeat(64), ..scene.order(1, None) };
        refused(scene.ask(owner, 0, WorkRequest::Offer(other)), "signature");
        scene.ask(owner, 0, WorkRequest::Offer(scene.order(1, Some(device(2)))));
        refused(scene.ask(device(1), 0, WorkRequest::Claim(run)), "another device");
        scene.ask(device(2), 0, WorkRequest::Claim(run));
        let decision = |key: &DeviceKey| {
            let (approval, shown) = ("call_1".to_owned(), String::new());
            let content = OrderedDecision { hub: scene.hub, run, approval, shown, decision: Value::Bool(true) };
            SignedText::new(key, &content).expect("signed")
        };
        let stranger = DeviceKey::generate().expect("key");
        refused(scene.ask(stranger.id(), 1, WorkRequest::Decide(run, decision(&stranger))), "only the device");
        refused(scene.ask(stranger.id(), 1, WorkRequest::Decide(run, decision(&scene.owner))), "only the device");
        assert_eq!(scene.ask(owner, 1, WorkRequest::Decide(run, decision(&scene.owner))), WorkReply::Done);
        assert_eq!(scene.ask(owner, 1, WorkRequest::Decide(run, decision(&scene.owner))), WorkReply::Done);
        let WorkReply::Renewed { decisions, .. } =
            scene.ask(device(2), 2, WorkRequest::Renew { run, epoch: 1, decisions: 0 })
        else {
            panic!("the claim holds")
        };
        assert_eq!(decisions, [decision(&scene.owner)]);
        for access in [DeviceAccess::None, DeviceAccess::Read] {
            let access = move |_| access;
            let reader = WorkCaller { device: device(3), name: "reader", access: &access };
            refused(scene.queue.answer(&reader, WorkRequest::Cancel(run), scene.began), "may not write");
        }
        assert_eq!(scene.ask(device(4), 3, WorkRequest::Cancel(run)), WorkReply::Done);
        let asked = scene.ask(device(2), 3, WorkRequest::Renew { run, epoch: 1, decisions: 1 });
        assert_eq!(asked, WorkReply::Renewed { cancelled: true, decisions: Vec::new() });
        refused(scene.ask(owner, 4, WorkRequest::Decide(DocId([7; 16]), decision(&scene.owner))), "no such run");
    }

    #[test]
    fn who_ordered_a_run_takes_it_back_once_its_executor_is_silent() {
        let scene = Scene::new();
        let (owner, run) = (scene.owner.id(), DocId([1; 16]));
        scene.ask(owner, 0, WorkRequest::Offer(scene.order(1, Some(device(2)))));
        scene.ask(device(2), 0, WorkRequest::Claim(run));
        refused(scene.ask(owner, 29, WorkRequest::Claim(run)), "carries out");
        let claimed = WorkReply::Claimed { epoch: 2, lease_ms: 30_000 };
        assert_eq!(scene.ask(owner, 31, WorkRequest::Claim(run)), claimed);
        let finish = |epoch| WorkRequest::Finish { run, epoch, ending: "local".to_owned(), why: None };
        assert_eq!(scene.ask(device(2), 32, finish(1)), WorkReply::Lost);
        assert_eq!(scene.ask(owner, 32, finish(2)), WorkReply::Done);
        refused(scene.ask(device(2), 99, WorkRequest::Claim(run)), "over");
    }

    /// A list that is too long for a message would hide all runs from all workers.
    #[test]
    fn a_list_fits_into_a_message_whatever_is_ordered() {
        let scene = Scene::new();
        let owner = scene.owner.id();
        let long = |run: u8| {
            let task = Value::String("\"".repeat(100 << 10)); // each quote is escaped twice
            let (run, volume) = (DocId([run; 16]), DocId([9; 16]));
            let order = RunOrder { hub: scene.hub, run, volume, to: None, created: 0, task };
            SignedText::new(&scene.owner, &order).expect("signed")
        };
        let (mut open, mut ended) = (Vec::new(), 0);
        for run in 1..11 {
            match scene.ask(owner, 0, WorkRequest::Offer(long(run))) {
                WorkReply::Done => open.push(DocId([run; 16])),
                reply => {
                    refused(reply, "too many runs");
                    let over = open.remove(0);
                    assert_eq!(scene.ask(owner, 0, WorkRequest::Cancel(over)), WorkReply::Done);
                    ended += 1;
                }
            }
        }
        assert!(open.len() > 1 && ended > 1, "{} open, {ended} ended", open.len());
        let reply = scene.ask(owner, 0, WorkRequest::List(vec![DocId([9; 16])]));
        assert!(serde_json::to_string(&reply).expect("JSON").len() <= MAX_WORK_MESSAGE_BYTES);
        let WorkReply::Runs(runs) = reply else { panic!("{reply:?}") };
        // All that aren't over are in it.
        let listed: Vec<DocId> = runs.iter().filter(|run| run.ending.is_none()).map(|run| run.run).collect();
        assert!(open.iter().all(|run| listed.contains(run)), "{listed:?} of {open:?}");
    }

    /// Three executors at two replicas claim, renew and fall silent in random order. An executor believes in its claim
    /// for two thirds of the lease since it last asked; at no time do two believe.
    #[test]
    fn two_executors_never_believe_at_the_same_time() {
        for seed in 0..200 {
            let mut chance = StdRng::seed_from_u64(seed);
            let scene = Scene::new();
            let run = DocId([1; 16]);
            scene.ask(scene.owner.id(), 0, WorkRequest::Offer(scene.order(1, None)));
            let replicas = [scene.replica(), scene.replica()];
            let mut beliefs: [Option<(u64, Instant)>; 3] = [None; 3];
            let (mut now, mut last, mut claims) = (scene.began, 0, 0);
            for _ in 0..120 {
                now += Duration::from_millis(chance.random_range(100..15_000));
                let who = chance.random_range(0..3_usize);
                let (at, id) = (&replicas[chance.random_range(0..2_usize)], device(who as u8 + 1));
                let until = now + LEASE * 2 / 3;
                match beliefs[who].filter(|(_, until)| *until > now) {
                    None => match ask(at, id, now, WorkRequest::Claim(run)) {
                        WorkReply::Claimed { epoch, .. } => {
                            assert!(epoch > last, "seed {seed}: claim {epoch} after {last}");
                            (last, beliefs[who]) = (epoch, Some((epoch, until)));
                            claims += 1;
                        }
                        _ => beliefs[who] = None,
                    },
                    Some((epoch, _)) if chance.random_range(0..3) > 0 => {
                        let renew = WorkRequest::Renew { run, epoch, decisions: 0 };
                        beliefs[who] =
                            matches!(ask(at, id, now, renew), WorkReply::Renewed { .. }).then_some((epoch, until));
                    }
                    Some(_) => {} // silent
                }
                let believing = beliefs.iter().flatten().filter(|(_, until)| *until > now).count();
                assert!(believing <= 1, "seed {seed}: {believing} at once");
            }
            assert!(claims > 1, "seed {seed}: nobody took over");
        }
    }
}
