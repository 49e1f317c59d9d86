//! A claim on a queued run: renewed on a thread of its own while the run is carried out.

use host::peers::work::{SignedText, WorkClient, WorkReply, WorkRequest};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use store::DocId;

/// Maximum time between two renewals.
const MAX_RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// How often the time of a claim is looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// What the queue has said since the claim.
#[derive(Debug)]
struct ClaimState {
    /// When the last successful renewal was sent. The steady clock stops while the machine sleeps and the other one can
    /// be set, so both count.
    sent: (Instant, SystemTime),
    is_lost: bool,
    is_over: bool,
    cancelled: bool,
    decisions: Vec<SignedText>,
    received_decisions: usize,
}

/// A claim that is kept until it's dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) run: DocId,
    pub(crate) epoch: u64,
    /// How long the hub waits for a silent executor.
    pub(crate) lease: Duration,
    state: Arc<Mutex<ClaimState>>,
    /// The thread that renews the claim, and the one that watches the time.
    threads: Vec<JoinHandle<()>>,
}

impl ClaimState {
    /// Returns whether the claim holds; it's lost once the last renewal is too long ago.
    fn check_time(&mut self, lease: Duration) -> bool {
        let most = lease * 2 / 3;
        let (steady, wall) = self.sent;
        let is_late = steady.elapsed() > most || wall.elapsed().is_ok_and(|elapsed| elapsed > most);
        self.is_lost |= is_late;
        !self.is_lost
    }
}

fn lock(state: &Mutex<ClaimState>) -> MutexGuard<'_, ClaimState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claim {
    /// Begins to keep a claim that the queue has granted. `sent`: when it was requested. `on_lost` is called once, on
    /// another thread, as soon as the claim can't be relied on.
    pub(crate) fn keep(
        client: &WorkClient,
        (run, epoch): (DocId, u64),
        (lease, sent): (Duration, (Instant, SystemTime)),
        on_lost: impl FnOnce() + Send + 'static,
    ) -> Claim {
        let state = ClaimState {
            sent,
            is_lost: false,
            is_over: false,
            cancelled: false,
            decisions: Vec::new(),
            received_decisions: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let (client, shared) = (client.clone(), Arc::clone(&state));
        let interval = (lease / 6).min(MAX_RENEW_INTERVAL);
        let thread = std::thread::spawn(move || {
            loop {
                let decisions = match lock(&shared) {
                    state if state.is_lost || state.is_over => return,
                    state => state.received_decisions,
                };
                let sent = (Instant::now(), SystemTime::now());
                // A hub that can't be reached now may be back before the lease ends.
                let reply = client.ask(&WorkRequest::Renew { run, epoch, decisions });
                let mut state = lock(&shared);
                match reply {
                    Ok(WorkReply::Renewed { cancelled, decisions }) => {
                        state.sent = sent;
                        state.cancelled |= cancelled;
                        state.received_decisions += decisions.len();
                        state.decisions.extend(decisions);
                    }
                    Ok(WorkReply::Lost) => state.is_lost = true,
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "a claim could not be renewed"),
                }
                drop(state);
                std::thread::park_timeout(interval);
            }
        });
        let watched = Arc::clone(&state);
        let watch = std::thread::spawn(move || {
            loop {
                let (is_over, holds) = {
                    let mut state = lock(&watched);
                    (state.is_over, state.check_time(lease))
                };
                match (is_over, holds) {
                    (true, _) => return,
                    (false, true) => std::thread::park_timeout(WATCH_INTERVAL),
                    (false, false) => return on_lost(),
                }
            }
        });
        Claim { run, epoch, lease, state, threads: vec![thread, watch] }
    }

    /// Returns whether this device may still work on the run. It stops long before the hub lets another one in.
    pub(crate) fn holds(&self) -> bool {
        lock(&self.state).check_time(self.lease)
    }

    /// Returns whether the run is to be stopped.
    pub(crate) fn is_cancelled(&self) -> bool {
        lock(&self.state).cancelled
    }

    /// Returns the decisions that arrived since the last call.
    pub(crate) fn take_decisions(&self) -> Vec<SignedText> {
        std::mem::take(&mut lock(&self.state).decisions)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.state).is_over = true;
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a thread that keeps a claim failed");
            }
        }
    }
}
