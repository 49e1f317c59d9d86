//! The channel to the caller: deltas, then one end, then nothing more, from whichever thread ends the call.

use crate::ModelUpdate;
use agent::model_call::{ModelDelta, ModelError, ModelErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

type ModelUpdateCallback = Box<dyn Fn(ModelUpdate) + Send>;

/// Sends events of a model call to the session.
pub(crate) struct ModelEventSender {
    state: Mutex<EventSenderState>,
    cancelled: Notify,
}

struct EventSenderState {
    /// `None` once the end was sent.
    callback: Option<ModelUpdateCallback>,
    partial_text: String,
    /// Whether anything came that the user has seen.
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

    /// Whether the user has seen anything of this answer.
    pub(crate) fn has_output(&self) -> bool {
        self.state().has_output
    }

    /// The text so far.
    pub(crate) fn partial_text(&self) -> String {
        self.state().partial_text.clone()
    }

    /// The user cancels: that's reported at once, whatever the connection does.
    pub(crate) fn cancel(&self) {
        let partial = self.partial_text();
        self.finish(ModelUpdate::Failure(ModelError {
            kind: ModelErrorKind::Cancelled,
            why: "You stopped it.".to_owned(),
            partial,
        }));
        self.cancelled.notify_one();
    }

    /// Comes back once the user has stopped it.
    pub(crate) async fn wait_until_cancelled(&self) {
        self.cancelled.notified().await;
        // More than one may ask, one after the other.
        self.cancelled.notify_one();
    }
}
