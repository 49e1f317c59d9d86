//! What an agent's program has sent and nobody has worked on yet. A program that sends too much has to wait.

use crate::IncomingMessage;
use agent_client_protocol_schema::v1::{Error, ErrorCode};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the text begins that says that a file isn't there.
const MISSING_FILE: &str = "no such file or folder";
/// Maximum number of messages that wait. The program's output isn't read further meanwhile.
const MAX_QUEUED_MESSAGES: usize = 500;

#[derive(Default)]
struct QueueState {
    messages: VecDeque<IncomingMessage>,
    /// Results of actions, once they're all there.
    results: Option<Vec<(String, ActionResult)>>,
    is_closed: bool,
    is_cancelled: bool,
}

/// The outcome of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionResult {
    /// Whether it was done.
    pub success: bool,
    /// What it gave, or why it wasn't done.
    pub text: String,
}

impl ActionResult {
    /// Returns the error for what wasn't done. Agents look before they make a file; they know from the code, or from
    /// the protocol's words, that there's none yet.
    pub(crate) fn error(&self) -> Error {
        match self.text.starts_with(MISSING_FILE) {
            true => Error::new(i32::from(ErrorCode::ResourceNotFound), format!("Resource not found: {}", self.text)),
            false => Error::new(i32::from(ErrorCode::InternalError), self.text.clone()),
        }
    }
}

/// The next event of the queue.
pub(crate) enum QueueEvent {
    Message(IncomingMessage),
    /// Results of actions.
    Results(Vec<(String, ActionResult)>),
    /// Nothing came in this time.
    Idle,
    /// The program has closed its output, and everything before is worked on.
    Closed,
    /// The run was canceled.
    Cancelled,
}

/// The queue between the thread that reads and the one that works.
#[derive(Default)]
pub(crate) struct MessageQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl MessageQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, and waits for room before.
    pub(crate) fn push(&self, message: IncomingMessage) {
        let mut state = self.state();
        while state.messages.len() >= MAX_QUEUED_MESSAGES && !state.is_cancelled {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_cancelled {
            state.messages.push_back(message);
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn cancel(&self) {
        self.state().is_cancelled = true;
        self.changed.notify_all();
    }

    pub(crate) fn give_results(&self, results: Vec<(String, ActionResult)>) {
        self.state().results = Some(results);
        self.changed.notify_all();
    }

    /// Waits for the next message. The order is that in which the program sent them.
    pub(crate) fn next(&self, timeout: Duration) -> QueueEvent {
        let state = self.state();
        let is_quiet = |state: &mut QueueState| state.messages.is_empty() && !state.is_closed && !state.is_cancelled;
        let waited = self.changed.wait_timeout_while(state, timeout, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let event = match (state.is_cancelled, state.messages.pop_front()) {
            (true, _) => QueueEvent::Cancelled,
            (false, Some(message)) => QueueEvent::Message(message),
            (false, None) if state.is_closed => QueueEvent::Closed,
            (false, None) => QueueEvent::Idle,
        };
        drop(state);
        self.changed.notify_all();
        event
    }

    /// Waits for the results of actions, or for a message that can be served meanwhile. Other messages wait.
    pub(crate) fn next_while_busy(
        &self,
        timeout: Duration,
        is_served: impl Fn(&IncomingMessage) -> bool,
    ) -> QueueEvent {
        let state = self.state();
        let is_quiet = |state: &mut QueueState| {
            state.results.is_none() && !state.is_cancelled && !state.messages.iter().any(&is_served)
        };
        let waited = self.changed.wait_timeout_while(state, timeout, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_cancelled {
            return QueueEvent::Cancelled;
        }
        if let Some(results) = state.results.take() {
            return QueueEvent::Results(results);
        }
        let served = state.messages.iter().position(&is_served).and_then(|at| state.messages.remove(at));
        drop(state);
        self.changed.notify_all();
        served.map_or(QueueEvent::Idle, QueueEvent::Message)
    }

    /// Returns whether a message waits for which `is_meant` holds.
    pub(crate) fn has(&self, is_meant: impl Fn(&IncomingMessage) -> bool) -> bool {
        self.state().messages.iter().any(is_meant)
    }

    /// Returns whether the program has closed its output.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Waits for the results of actions. Messages wait meanwhile.
    pub(crate) fn wait_for_results(&self) -> QueueEvent {
        let state = self.state();
        let is_quiet = |state: &mut QueueState| state.results.is_none() && !state.is_cancelled;
        let mut state = self.changed.wait_while(state, is_quiet).unwrap_or_else(PoisonError::into_inner);
        match (state.is_cancelled, state.results.take()) {
            (false, Some(results)) => QueueEvent::Results(results),
            (true, _) | (false, None) => QueueEvent::Cancelled,
        }
    }
}
