//! Sends messages to the user's webhook, one after the other, on a thread of its own. A message that fails is sent a
//! few times; nothing is kept beyond the process.

use crate::mailbox::Mailbox;
use crate::tools::{WebhookError, post_json};
use engine::Event;
use serde_json::Value;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Maximum number of messages that wait to be sent.
const MAX_QUEUED_MESSAGES: usize = 100;
/// Pauses before a message is sent again.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1_500)];
/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends messages to webhooks.
pub(crate) struct WebhookSender {
    inbox: Mailbox,
    queue: Option<SyncSender<(String, Value)>>,
}

impl WebhookSender {
    /// Creates a sender, whose thread starts with the first message.
    pub(crate) fn new(inbox: Mailbox) -> WebhookSender {
        WebhookSender { inbox, queue: None }
    }

    /// Sends a message, and reports the result as an event.
    pub(crate) fn send(&mut self, url: String, body: Value) {
        let inbox = self.inbox.clone();
        let queue = self.queue.get_or_insert_with(|| {
            let (queue, messages) = sync_channel::<(String, Value)>(MAX_QUEUED_MESSAGES);
            std::thread::spawn(move || {
                for (url, body) in messages {
                    let failure = send_with_retries(&url, &body).err().map(|error| error.to_string());
                    if let Some(why) = &failure {
                        tracing::warn!(target: "host::webhooks", why, "a message to the webhook was not accepted");
                    }
                    inbox.send_event(Event::WebhookDone { failure });
                }
            });
            queue
        });
        let failure = match queue.try_send((url, body)) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => format!("more than {MAX_QUEUED_MESSAGES} messages are waiting"),
            Err(TrySendError::Disconnected(_)) => "its thread has ended".to_owned(),
        };
        self.inbox.send_event(Event::WebhookDone { failure: Some(failure) });
    }
}

fn send_with_retries(url: &str, body: &Value) -> Result<(), WebhookError> {
    let mut delays = RETRY_DELAYS.iter();
    loop {
        match post_json(url, body, ATTEMPT_TIMEOUT) {
            Ok(()) => return Ok(()),
            Err(error) => match delays.next().filter(|_| error.can_retry()) {
                Some(delay) => std::thread::sleep(*delay),
                None => return Err(error),
            },
        }
    }
}
