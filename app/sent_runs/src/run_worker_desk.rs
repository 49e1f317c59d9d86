//! Carries out runs of other devices beside an open window, on a thread of its own.

use crate::carry_out_error::CarryOutError;
use crate::run_worker::{RunWorker, WorkerNotice, WorkerNoticeKind};
use crate::{queue_at, queued_runs, shared_hubs};
use host::Handle;
use host::peers::devices::MIN_TRUSTED_KEY_DIGITS;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use store::DocId;

/// How often the queues are looked at while nothing is carried out.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum length of a sentence for the user, in characters. It holds the first line of a message of any length.
const MAX_NEWS_CHARS: usize = 240;

struct RunWorkerShared {
    handle: Handle,
    /// The beginnings of the keys of devices whose runs are carried out.
    trusted: Mutex<Vec<String>>,
    /// What happened, as sentences for the user.
    news: Mutex<Vec<String>>,
    /// Set when the program is closing.
    is_over: AtomicBool,
    /// Called when there is news.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl RunWorkerShared {
    fn is_trusted(&self, owner: &str) -> bool {
        let trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.iter().any(|key| key.len() >= MIN_TRUSTED_KEY_DIGITS && owner.starts_with(key.as_str()))
    }

    fn has_trusted(&self) -> bool {
        !self.trusted.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn report(&self, sentence: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
        (self.wake)();
    }

    /// Carries out what the queues have now. `told` holds what was reported of each run.
    fn look(&self, worker: &mut RunWorker<'_>, told: &mut BTreeSet<(DocId, String)>) -> Result<(), CarryOutError> {
        let mut tell = |notice: WorkerNotice| -> io::Result<()> {
            let WorkerNotice { kind, run, words } = notice;
            let Some(sentence) = news_of(kind, &words) else { return Ok(()) };
            // What can't be carried out is tried again and again.
            if told.insert((run, sentence.clone())) {
                self.report(sentence);
            }
            Ok(())
        };
        for (address, volumes) in self.handle.read(shared_hubs)? {
            let Ok(client) = queue_at(&address) else { continue };
            // The status bar says when a hub can't be reached.
            let Ok(runs) = queued_runs(&client, volumes.into_iter().collect()) else { continue };
            worker.carry_out_first(&client, &runs, &mut tell)?;
        }
        Ok(())
    }
}

/// Returns what the user is told of a message; `None` if nothing.
fn news_of(kind: WorkerNoticeKind, words: &str) -> Option<String> {
    let text = match kind {
        WorkerNoticeKind::ApprovalPending => return None, // it's the owner's to decide
        WorkerNoticeKind::DecisionRefused => format!("For a run of another device, {words}"),
        WorkerNoticeKind::Ended => format!("A run of another device has ended: {words}"),
        WorkerNoticeKind::Claimed | WorkerNoticeKind::Refused | WorkerNoticeKind::Lost | WorkerNoticeKind::Released => {
            format!("A run of another device {words}")
        }
    };
    Some(as_sentence(text))
}

/// Shortens a text, and ends it with a full stop unless it has an end.
fn as_sentence(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_NEWS_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    if !text.ends_with(['.', '?', '!', '…']) {
        text.push('.');
    }
    text
}

/// Carries out runs until no device is trusted, or the program is closing.
fn serve_queues(weak: &Weak<RunWorkerShared>) {
    let is_trusted = |owner: &str| weak.upgrade().is_some_and(|shared| shared.is_trusted(owner));
    let Some(handle) = weak.upgrade().map(|shared| shared.handle.clone()) else { return };
    let mut worker = RunWorker::new(handle, &is_trusted);
    let (mut told, mut trouble) = (BTreeSet::new(), String::new());
    while let Some(shared) = weak.upgrade().filter(|shared| shared.has_trusted()) {
        if let Err(why) = shared.look(&mut worker, &mut told) {
            if shared.handle.read(|_| ()).is_err() {
                shared.is_over.store(true, Ordering::Relaxed);
                return;
            }
            let why = as_sentence(format!("Runs of other devices can't be carried out: {why}"));
            if why != trouble {
                trouble.clone_from(&why);
                shared.report(why);
            }
        }
        drop(shared);
        std::thread::park_timeout(QUEUE_POLL_INTERVAL);
    }
}

/// The window's worker. Its thread ends when this is dropped and it's done.
pub struct RunWorkerDesk {
    shared: Arc<RunWorkerShared>,
    thread: Option<JoinHandle<()>>,
    is_paused: bool,
}

impl RunWorkerDesk {
    /// Creates a worker that carries out nothing yet. `wake` lets the window draw again.
    pub fn new(handle: Handle, wake: impl Fn() + Send + Sync + 'static) -> RunWorkerDesk {
        let (trusted, news, is_over) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let shared = RunWorkerShared { handle, trusted, news, is_over, wake: Box::new(wake) };
        RunWorkerDesk { shared: Arc::new(shared), thread: None, is_paused: false }
    }

    /// Carries out nothing while the window is closing. The run that is carried out is given back.
    pub fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
        if is_paused {
            self.follow(&[]);
        }
    }

    /// Carries out runs of the devices whose keys begin so from now on. What is carried out for others is given back.
    pub fn follow(&mut self, keys: &[String]) {
        let keys: &[String] = if self.is_paused { &[] } else { keys };
        let mut trusted = self.shared.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        if *trusted != keys {
            *trusted = keys.to_vec();
        }
        drop(trusted);
        let is_idle = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        if is_idle && !keys.is_empty() && !self.shared.is_over.load(Ordering::Relaxed) {
            let weak = Arc::downgrade(&self.shared);
            self.thread = Some(std::thread::spawn(move || serve_queues(&weak)));
        }
    }

    /// Takes what has happened since the last call, as sentences.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_is_a_sentence_of_bounded_length() {
        let news = |kind, words: &str| news_of(kind, words).unwrap_or_default();
        assert_eq!(news(WorkerNoticeKind::Ended, "done"), "A run of another device has ended: done.");
        let begins = "A run of another device begins for desk: Is it here?";
        assert_eq!(news(WorkerNoticeKind::Claimed, "begins for desk: Is it here?"), begins);
        let refused = news(WorkerNoticeKind::DecisionRefused, "a decision doesn't count: nothing waits for it");
        assert_eq!(refused, "For a run of another device, a decision doesn't count: nothing waits for it.");
        assert_eq!(news_of(WorkerNoticeKind::ApprovalPending, "waits for desk: rm"), None);
        let long = as_sentence("ä".repeat(100_000));
        assert_eq!((long.chars().count(), long.ends_with("ä…")), (MAX_NEWS_CHARS + 1, true));
    }
}
