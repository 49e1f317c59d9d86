//! The requests that wait, for a window: a thread looks for them, so that drawing never reads a file.

use crate::{ProgramApproval, ProgramApprovals, ProgramDecision};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often the thread looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
struct SeenRequests {
    waiting: Arc<Vec<ProgramApproval>>,
    /// Why a decision could not be taken, as a sentence.
    trouble: Option<String>,
}

struct WatchState {
    requests: ProgramApprovals,
    seen: Mutex<SeenRequests>,
    /// Called when something has changed.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl WatchState {
    fn seen(&self) -> MutexGuard<'_, SeenRequests> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) {
        // A folder that can't be read now is read with the next look.
        let Ok(waiting) = self.requests.waiting() else { return };
        let mut seen = self.seen();
        if *seen.waiting != waiting {
            seen.waiting = Arc::new(waiting);
            drop(seen);
            (self.wake)();
        }
    }

    fn decide(&self, id: &str, decision: &ProgramDecision) {
        let trouble = match self.requests.decide(id, |_| true, decision) {
            Ok(true) => None,
            Ok(false) => Some("The program no longer waits for this.".to_owned()),
            Err(why) => Some(format!("The decision could not be kept: {why}.")),
        };
        self.seen().trouble = trouble;
        self.look();
        (self.wake)();
    }
}

/// The requests of a workspace that wait, as far as they're known. The thread ends when this is dropped.
pub struct ApprovalWatch {
    state: Arc<WatchState>,
}

fn follow(state: &Weak<WatchState>) {
    while let Some(now) = state.upgrade() {
        now.look();
        drop(now);
        std::thread::park_timeout(LOOK_INTERVAL);
    }
}

impl ApprovalWatch {
    /// Begins to look for the requests of the workspace in this folder. `wake` is called when they change.
    pub fn start(workspace: &Path, wake: impl Fn() + Send + Sync + 'static) -> ApprovalWatch {
        let requests = ProgramApprovals::new(workspace);
        let state = Arc::new(WatchState { requests, seen: Mutex::default(), wake: Box::new(wake) });
        let followed = Arc::downgrade(&state);
        std::thread::spawn(move || follow(&followed));
        ApprovalWatch { state }
    }

    /// Returns the requests that wait, the oldest first.
    pub fn waiting(&self) -> Arc<Vec<ProgramApproval>> {
        self.state.seen().waiting.clone()
    }

    /// Decides a request, on a thread of its own.
    pub fn decide(&self, id: &str, decision: ProgramDecision) {
        let (state, id) = (self.state.clone(), id.to_owned());
        std::thread::spawn(move || state.decide(&id, &decision));
    }

    /// Takes the reason why the last decision could not be taken.
    pub fn take_trouble(&self) -> Option<String> {
        self.state.seen().trouble.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::request;
    use std::sync::mpsc::channel;

    #[test]
    fn what_waits_is_seen_and_decided() {
        let folder = tempfile::tempdir().expect("a folder");
        let requests = ProgramApprovals::new(folder.path());
        let (tell, told) = channel();
        let watch = ApprovalWatch::start(folder.path(), move || {
            let _ = tell.send(()); // the test may be over
        });
        let held = requests.hold(&request("a")).expect("held");
        told.recv_timeout(Duration::from_secs(60)).expect("the window is woken");
        assert_eq!(*watch.waiting(), [request("a")]);
        watch.decide("a", ProgramDecision { approved: true, comment: String::new() });
        while !watch.waiting().is_empty() {
            told.recv_timeout(Duration::from_secs(60)).expect("the window is woken");
        }
        assert!(held.decision().is_some_and(|decision| decision.approved));
        assert_eq!(watch.take_trouble(), None);
        watch.decide("b", ProgramDecision::default());
        let mut trouble = None;
        while trouble.is_none() {
            told.recv_timeout(Duration::from_secs(60)).expect("the window is woken");
            trouble = watch.take_trouble();
        }
        assert!(trouble.is_some_and(|why| why.contains("no longer waits")));
    }
}
