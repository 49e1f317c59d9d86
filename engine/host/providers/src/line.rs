//! The line to whoever asked: deltas, then one end, then nothing more, from whichever thread the end comes.

use crate::Update;
use agent::model_call::{ModelDelta, ModelError, ModelErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

type Hears = Box<dyn Fn(Update) + Send>;

/// A line.
pub(crate) struct Line {
    state: Mutex<State>,
    stop: Notify,
}

struct State {
    /// Gone once the end was told.
    on: Option<Hears>,
    partial: String,
    /// Whether anything came that the user has seen.
    came: bool,
}

impl Line {
    pub(crate) fn new(on: impl Fn(Update) + Send + 'static) -> Line {
        Line {
            state: Mutex::new(State { on: Some(Box::new(on)), partial: String::new(), came: false }),
            stop: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn delta(&self, delta: ModelDelta) {
        let mut state = self.state();
        match &delta {
            ModelDelta::Text(text) => {
                state.partial.push_str(text);
                state.came = true;
            }
            ModelDelta::Thinking(_) => state.came = true,
            ModelDelta::Retry { .. } => state.partial.clear(),
        }
        if let Some(on) = &state.on {
            on(Update::Delta(delta));
        }
    }

    /// Tells the end, unless it was told.
    pub(crate) fn end(&self, update: Update) {
        let mut state = self.state();
        if let Some(on) = state.on.take() {
            on(update);
        }
    }

    /// Whether the user has seen anything of this answer.
    pub(crate) fn came(&self) -> bool {
        self.state().came
    }

    /// The text so far.
    pub(crate) fn partial(&self) -> String {
        self.state().partial.clone()
    }

    /// The user stops it: that is told at once, whatever the connection does.
    pub(crate) fn cancel(&self) {
        let partial = self.partial();
        self.end(Update::Failure(ModelError {
            kind: ModelErrorKind::Cancelled,
            why: "You stopped it.".to_owned(),
            partial,
        }));
        self.stop.notify_one();
    }

    /// Comes back once the user has stopped it.
    pub(crate) async fn stopped(&self) {
        self.stop.notified().await;
        // More than one may ask, one after the other.
        self.stop.notify_one();
    }
}
