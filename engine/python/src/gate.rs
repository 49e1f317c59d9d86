//! Decides what an interrupt hits: the running cell and those waiting behind it, never one that comes later.
//!
//! The reading thread and the interpreter's thread agree through one lock on whether a cell runs; a signal is sent
//! only while the lock says so. This module knows nothing of messages and runs no Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which interrupts a waiting request has already seen. Taken when the request is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Whether a cell runs, and how many interrupts there were.
pub(crate) struct Gate(Mutex<State>);

#[derive(Default)]
struct State {
    running: bool,
    interrupts: u64,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(Mutex::default())
    }

    /// The ticket of a request that has just been read.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.state().interrupts)
    }

    /// Marks a cell as running, unless an interrupt came after its request: then it must not run.
    pub(crate) fn open(&self, ticket: Ticket) -> bool {
        let mut state = self.state();
        state.running = ticket == Ticket(state.interrupts);
        state.running
    }

    /// Marks the cell as over: from here on no interrupt is delivered. One may still be pending.
    pub(crate) fn close(&self) {
        self.state().running = false;
    }

    /// Aborts what waits and calls `deliver` if a cell runs. `deliver` must not come back here.
    pub(crate) fn interrupt(&self, deliver: impl FnOnce()) {
        let mut state = self.state();
        state.interrupts += 1;
        if state.running {
            deliver();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both ends of the way by which an interrupt reaches Python.
pub(crate) struct Interrupter {
    pub(crate) target: Target,
    pub(crate) receiver: Receiver,
}

#[cfg(not(unix))]
pub(crate) use by_channel::{Receiver, Target, interrupter};
#[cfg(unix)]
pub(crate) use by_signal::{Receiver, Target, interrupter};

/// SIGINT to the interpreter's thread: also wakes a blocking call, such as `time.sleep`.
#[cfg(unix)]
mod by_signal {
    use std::os::unix::thread::JoinHandleExt;
    use std::thread::JoinHandle;

    use super::Interrupter;

    pub(crate) struct Target;
    pub(crate) struct Receiver;

    pub(crate) fn interrupter() -> Interrupter {
        Interrupter { target: Target, receiver: Receiver }
    }

    impl Target {
        pub(crate) fn interrupt(&self, python: &JoinHandle<()>) {
            #[allow(unsafe_code, reason = "std has no way to signal one thread")]
            // SAFETY: the handle is borrowed, so the thread is neither joined nor detached and its id is valid.
            // The gate is open, so RustPython's SIGINT handler, which only sets flags, is installed.
            let done = unsafe { libc::pthread_kill(python.as_pthread_t(), libc::SIGINT) };
            // Can only say that the thread has ended, and then there is nothing to interrupt.
            let _ = done;
        }
    }

    impl Receiver {
        pub(crate) fn attach(self, _: &mut rustpython_vm::VirtualMachine) {}
    }
}

/// RustPython's own channel: seen between two instructions, so a blocking call has to end first.
#[cfg(not(unix))]
mod by_channel {
    use std::thread::JoinHandle;

    use rustpython_vm::signal::{UserSignalReceiver, UserSignalSender, user_signal_channel};

    use super::Interrupter;

    pub(crate) struct Target(UserSignalSender);
    pub(crate) struct Receiver(UserSignalReceiver);

    pub(crate) fn interrupter() -> Interrupter {
        let (sender, receiver) = user_signal_channel();
        Interrupter { target: Target(sender), receiver: Receiver(receiver) }
    }

    impl Target {
        pub(crate) fn interrupt(&self, _: &JoinHandle<()>) {
            // Can only say that the interpreter is gone, and then there is nothing to interrupt.
            let _ = self
                .0
                .send(Box::new(|vm| Err(vm.new_exception_empty(vm.ctx.exceptions.keyboard_interrupt.to_owned()))));
        }
    }

    impl Receiver {
        pub(crate) fn attach(self, vm: &mut rustpython_vm::VirtualMachine) {
            vm.set_user_signal_channel(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn an_interrupt_hits_what_runs_and_what_waits_but_nothing_later() {
        let gate = Gate::new();
        let mut delivered = 0;
        let (running, waiting) = (gate.ticket(), gate.ticket());
        assert!(gate.open(running));
        gate.interrupt(|| delivered += 1);
        gate.close();
        assert!(!gate.open(waiting));
        gate.interrupt(|| delivered += 1); // idle
        assert!(gate.open(gate.ticket()));
        assert_eq!(delivered, 1);
    }
}
