//! The one process that an interpreter's walls let be made, and the one program that may be started in it. Both are
//! ours: they come before anything untrusted runs, so their arguments need no look.

use crate::ConfinedKind;
use std::sync::atomic::{AtomicBool, Ordering};

/// What of an interpreter's start has not been used yet.
pub(crate) struct InterpreterStart {
    process: AtomicBool,
    program: AtomicBool,
}

impl InterpreterStart {
    /// Nothing may be started behind other walls, or is not the supervisor's to decide.
    pub(crate) fn of(kind: ConfinedKind) -> InterpreterStart {
        let may = kind == ConfinedKind::Interpreter;
        InterpreterStart { process: AtomicBool::new(may), program: AtomicBool::new(may) }
    }

    /// Whether the process may be made: once.
    pub(crate) fn take_process(&self) -> bool {
        self.process.swap(false, Ordering::AcqRel)
    }

    /// Whether the program may be started: once.
    pub(crate) fn take_program(&self) -> bool {
        self.program.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::InterpreterStart;
    use crate::ConfinedKind;

    #[test]
    fn an_interpreter_is_started_once_and_others_never() {
        let start = InterpreterStart::of(ConfinedKind::Interpreter);
        assert!(start.take_process() && start.take_program());
        assert!(!start.take_process() && !start.take_program());
        let none = InterpreterStart::of(ConfinedKind::Cells);
        assert!(!none.take_process() && !none.take_program());
    }
}
