//! The events of the workspace, numbered and kept for a while, so that a client that was away gets what it missed.
//!
//! One `tracebook events --follow` feeds all clients. It begins with the first client.

use crate::command_calls::{CommandCall, WorkspaceCommands};
use crate::problem::ProblemDetails;
use axum::http::StatusCode;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of events and bytes that are kept for clients that come back.
const MAX_KEPT_EVENTS: usize = 10_000;
const MAX_KEPT_BYTES: usize = 16 << 20;
/// Maximum time until events are followed.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(20);
const BEGIN_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time before events are followed again after the workspace went to another process, which it needs to open it.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// An event as it's sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedEvent {
    pub(crate) number: u64,
    pub(crate) kind: String,
    /// Id of the volume that it's about, if any.
    pub(crate) volume: Option<String>,
    /// The event as JSON.
    pub(crate) data: String,
}

#[derive(Default)]
struct KeptEvents {
    events: VecDeque<FeedEvent>,
    bytes: usize,
    last: u64,
}

/// The events that clients read.
pub(crate) struct EventFeed {
    commands: Arc<dyn WorkspaceCommands>,
    /// Tells numbers of this server from those of an earlier one.
    epoch: String,
    kept: Mutex<KeptEvents>,
    news: watch::Sender<u64>,
    has_begun: AtomicBool,
    /// Set when the workspace's state has been read, so that nothing is missed from then on.
    is_following: Arc<AtomicBool>,
}

impl EventFeed {
    pub(crate) fn new(commands: Arc<dyn WorkspaceCommands>) -> EventFeed {
        EventFeed {
            commands,
            epoch: format!("{:08x}", rand::random::<u32>()),
            kept: Mutex::default(),
            news: watch::Sender::new(0),
            has_begun: AtomicBool::new(false),
            is_following: Arc::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, KeptEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kind: String, volume: Option<String>, data: String) {
        let mut kept = self.kept();
        kept.last += 1;
        let number = kept.last;
        kept.bytes += data.len();
        kept.events.push_back(FeedEvent { number, kind, volume, data });
        while kept.events.len() > MAX_KEPT_EVENTS || kept.bytes > MAX_KEPT_BYTES {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.data.len();
        }
        drop(kept);
        self.news.send_replace(number);
    }

    /// Follows events for as long as the program runs, whoever owns the workspace.
    fn follow(&self) {
        loop {
            let mut call = CommandCall::json("events").flag("follow", true);
            call.watches.store(true, Ordering::Relaxed);
            call.has_messages = self.is_following.clone();
            let outcome = self.commands.perform(&call, &mut |line| {
                let Ok(event) = serde_json::from_str::<Value>(line) else { return };
                let text = |key: &str| event[key].as_str().map(str::to_owned);
                self.push(text("kind").unwrap_or_default(), text("volume"), line.to_owned());
            });
            self.is_following.store(false, Ordering::Relaxed);
            let why = serde_json::json!({"kind": "GAP", "why": outcome.reason()});
            self.push("GAP".to_owned(), None, why.to_string());
            std::thread::park_timeout(AGAIN_INTERVAL);
        }
    }

    /// Begins to follow events, and waits until nothing is missed.
    pub(crate) async fn begin(self: &Arc<Self>) -> Result<(), ProblemDetails> {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let feed = self.clone();
            std::thread::spawn(move || feed.follow());
        }
        let ready = async {
            while !self.is_following.load(Ordering::Relaxed) {
                tokio::time::sleep(BEGIN_CHECK_INTERVAL).await;
            }
        };
        let slow = |_| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "events can't be followed now; try again");
        tokio::time::timeout(BEGIN_TIMEOUT, ready).await.map_err(slow)
    }

    /// Returns the id under which clients know an event.
    pub(crate) fn event_id(&self, number: u64) -> String {
        format!("{}-{number}", self.epoch)
    }

    /// Returns the number of the newest event.
    pub(crate) fn last_number(&self) -> u64 {
        self.kept().last
    }

    /// Returns the number behind an id, if all events after it are still kept.
    pub(crate) fn resumed_number(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.split_once('-')?;
        let number: u64 = number.parse().ok().filter(|_| epoch == self.epoch)?;
        let kept = self.kept();
        let first = kept.events.front().map_or(kept.last + 1, |event| event.number);
        (number <= kept.last && number + 1 >= first).then_some(number)
    }

    /// Returns the first event after a number, and whether some between them are no longer kept.
    fn next_kept(&self, number: u64) -> Option<(FeedEvent, bool)> {
        let kept = self.kept();
        let first = kept.events.front()?.number;
        let at = usize::try_from((number + 1).saturating_sub(first)).ok()?;
        Some((kept.events.get(at)?.clone(), number + 1 < first))
    }

    /// Waits for the first event after a number. The flag says that some between them are no longer kept.
    pub(crate) async fn next_after(&self, number: u64) -> (FeedEvent, bool) {
        let mut news = self.news.subscribe();
        loop {
            if let Some(found) = self.next_kept(number) {
                return found;
            }
            // The sender lives as long as this feed.
            let _ = news.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_calls::CommandOutcome;

    struct SilentCommands;

    impl WorkspaceCommands for SilentCommands {
        fn perform(&self, _call: &CommandCall, _on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
            CommandOutcome::default()
        }
    }

    #[test]
    fn events_are_resumed_while_they_are_kept() {
        let feed = EventFeed::new(Arc::new(SilentCommands));
        for _ in 0..MAX_KEPT_EVENTS + 5 {
            feed.push("TASK".to_owned(), None, "{}".to_owned());
        }
        assert_eq!(feed.next_kept(0).map(|(event, gap)| (event.number, gap)), Some((6, true)));
        assert_eq!(feed.next_kept(5).map(|(event, gap)| (event.number, gap)), Some((6, false)));
        assert_eq!(feed.next_kept(feed.last_number()), None);
        assert_eq!(feed.resumed_number(&feed.event_id(5)), Some(5));
        assert_eq!(feed.resumed_number(&feed.event_id(4)), None);
        assert_eq!(feed.resumed_number(&feed.event_id(u64::MAX)), None);
        assert_eq!(feed.resumed_number("0-6"), None);
    }
}
