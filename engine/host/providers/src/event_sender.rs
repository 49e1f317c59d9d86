//! Channel to the caller of a model call: deltas, then exactly one end, from whichever thread ends the call.

use crate::ModelUpdate;
use agent::model_call::{ModelDelta, ModelError, ModelErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

type ModelUpdateCallback = Box<dyn Fn(ModelUpdate) + Send>;

/// Sends events of a model call to the caller.
pub(crate) struct ModelEventSender {
    state: Mutex<EventSenderState>,
    cancelled: Notify,
}

struct EventSenderState {
    /// Callback for events; `None` once the end was sent.
    callback: Option<ModelUpdateCallback>,
    partial_text: String,
    /// Whether any output has reached the user.
    has_output: bool,
}

impl ModelEventSender {
    pub(crate) fn new(on: impl Fn(ModelUpdate) + Send + 'static) -> ModelEventSender {
        ModelEventSender {
            state: Mutex::new(EventSenderState {
                callback: Some(Box::new(on)),
                partial_text: String::new(),
                has_output: false,
            }),
            cancelled: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, EventSenderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn send_delta(&self, delta: ModelDelta) {
        let mut state = self.state();
        match &delta {
            ModelDelta::Text(text) => {
                state.partial_text.push_str(text);
                state.has_output = true;
            }
            ModelDelta::Thinking(_) => state.has_output = true,
            // Nothing of it was shown, so an answer that breaks off here can be asked for again.
            ModelDelta::ToolCall { .. } => {}
            ModelDelta::Retry { .. } => state.partial_text.clear(),
        }
        if let Some(on) = &state.callback {
            on(ModelUpdate::Delta(delta));
        }
    }

    /// Sends the end, unless it was sent already.
    pub(crate) fn finish(&self, update: ModelUpdate) {
        let mut state = self.state();
        if let Some(on) = state.callback.take() {
            on(update);
        }
    }

    /// Returns whether any output of this answer has reached the user.
    pub(crate) fn has_output(&self) -> bool {
        self.state().has_output
    }

    /// Returns the text received so far.
    pub(crate) fn partial_text(&self) -> String {
        self.state().partial_text.clone()
    }

    /// Cancels the call for the user: reported at once, whatever the connection does.
    pub(crate) fn cancel(&self) {
        let partial = self.partial_text();
        self.finish(ModelUpdate::Failure(ModelError {
            kind: ModelErrorKind::Cancelled,
            why: "You stopped it.".to_owned(),
            partial,
        }));
        self.cancelled.notify_one();
    }

    /// Waits until the user has canceled the call.
    pub(crate) async fn wait_until_cancelled(&self) {
        self.cancelled.notified().await;
        // Several callers may wait, one after the other.
        self.cancelled.notify_one();
    }
}
