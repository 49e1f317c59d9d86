//! A command that an agent runs in a terminal, seen from both ends: who runs it says what it prints and how it ended,
//! the agent's end says whether it's still wanted.

use crate::message_queue::ActionResult;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum length of the output that an agent gets at once, in bytes. The end is kept.
const MAX_TERMINAL_OUTPUT_BYTES: usize = 1 << 20;

#[derive(Default)]
struct CommandState {
    /// What the command has printed so far; `None` until it has started.
    output: Option<Arc<Mutex<Vec<u8>>>>,
    is_kill_wanted: bool,
    is_background_wanted: bool,
    is_in_background: bool,
    /// How it ended, if that was in the background.
    end: Option<ActionResult>,
}

/// A command of an agent. Copies are the same command.
#[derive(Clone, Default)]
pub struct RunningCommand(Arc<Mutex<CommandState>>);

impl PartialEq for RunningCommand {
    fn eq(&self, other: &RunningCommand) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for RunningCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        write!(f, "RunningCommand(started: {}, ended: {})", state.output.is_some(), state.end.is_some())
    }
}

impl RunningCommand {
    fn state(&self) -> MutexGuard<'_, CommandState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the command has started, and where its output grows.
    pub fn start(&self, output: Arc<Mutex<Vec<u8>>>) {
        self.state().output = Some(output);
    }

    /// Returns whether the command must end.
    pub fn is_kill_wanted(&self) -> bool {
        self.state().is_kill_wanted
    }

    /// Lets the command continue in the background if the agent needs something else meanwhile. Returns whether it
    /// does now; then [`Self::end`] must be called at its end. It's `true` once.
    pub fn continue_in_background(&self) -> bool {
        let mut state = self.state();
        let is_new = state.is_background_wanted && !state.is_in_background;
        state.is_in_background |= is_new;
        is_new
    }

    /// Notes how a command in the background ended.
    pub fn end(&self, result: ActionResult) {
        self.state().end = Some(result);
    }

    /// Makes the command end, also before it has started.
    pub(crate) fn kill(&self) {
        self.state().is_kill_wanted = true;
    }

    pub(crate) fn want_background(&self) {
        self.state().is_background_wanted = true;
    }

    pub(crate) fn is_started(&self) -> bool {
        self.state().output.is_some()
    }

    pub(crate) fn is_in_background(&self) -> bool {
        self.state().is_in_background
    }

    pub(crate) fn result(&self) -> Option<ActionResult> {
        self.state().end.clone()
    }

    /// Returns the end of what the command has printed so far, and whether something before it is left out.
    pub(crate) fn printed(&self) -> (String, bool) {
        let Some(output) = self.state().output.clone() else { return (String::new(), false) };
        let output = output.lock().unwrap_or_else(PoisonError::into_inner);
        let from = output.len().saturating_sub(MAX_TERMINAL_OUTPUT_BYTES);
        (String::from_utf8_lossy(output.get(from..).unwrap_or_default()).into_owned(), from > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_to_the_background_once_and_keeps_the_end_of_its_output() {
        let (command, output) = (RunningCommand::default(), Arc::new(Mutex::new(b"one ".to_vec())));
        assert_eq!((command.printed(), command.is_started()), ((String::new(), false), false));
        command.start(output.clone());
        assert_eq!((command.printed(), command.continue_in_background()), (("one ".to_owned(), false), false));
        command.want_background();
        assert_eq!((command.continue_in_background(), command.continue_in_background()), (true, false));
        output.lock().expect("unharmed").extend(vec![b'x'; MAX_TERMINAL_OUTPUT_BYTES]);
        let (text, is_cut) = command.printed();
        assert!(is_cut && text.len() == MAX_TERMINAL_OUTPUT_BYTES && text.starts_with('x'), "{}", text.len());
        assert!(!command.is_kill_wanted());
        command.clone().kill();
        assert!(command.is_kill_wanted());
    }
}
