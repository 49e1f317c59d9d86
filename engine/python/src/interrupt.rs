//! Decides what an interrupt affects: the running cell and those queued behind it, never one that is requested later.
//!
//! The reading thread and the interpreter's thread agree through one lock on whether a cell runs. A signal is sent only
//! while the lock says so. This module knows nothing about messages and runs no Python.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Delays after which an interrupted cell is woken again, as long as it hasn't ended.
const WAKE_DELAYS: [Duration; 8] = {
    let ms = Duration::from_millis;
    [ms(5), ms(10), ms(20), ms(40), ms(80), ms(160), ms(320), ms(640)]
};

/// Number of interrupts before a request was read, to detect those that came later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterruptTicket(u64);

/// State shared by both threads: whether a cell runs, and how many interrupts there were.
pub(crate) struct InterruptGate(Mutex<InterruptState>);

#[derive(Default)]
struct InterruptState {
    running: bool,
    interrupts: u64,
    /// Number of cells that were started.
    cells_begun: u64,
}

impl InterruptGate {
    pub(crate) fn new() -> InterruptGate {
        InterruptGate(Mutex::default())
    }

    /// Returns the ticket of a request that has just been read.
    pub(crate) fn ticket(&self) -> InterruptTicket {
        InterruptTicket(self.state().interrupts)
    }

    /// Marks a cell as running and returns true, unless an interrupt arrived after its request: then it must not run.
    pub(crate) fn begin_cell(&self, ticket: InterruptTicket) -> bool {
        let mut state = self.state();
        state.running = ticket == InterruptTicket(state.interrupts);
        state.cells_begun += u64::from(state.running);
        state.running
    }

    /// Marks the cell as ended: from here on no interrupt is delivered. One may still be pending.
    pub(crate) fn end_cell(&self) {
        self.state().running = false;
    }

    /// Aborts queued cells and calls `deliver` if a cell runs. `deliver` must not call this gate.
    pub(crate) fn interrupt(&self, deliver: impl FnOnce()) {
        let mut state = self.state();
        state.interrupts += 1;
        if state.running {
            deliver();
        }
    }

    /// Calls `wake` repeatedly for about a second, until the running cell has ended. A signal that arrives between a
    /// check for signals and a blocking call (`time.sleep`) wakes nothing: the check is over, and the call hasn't
    /// begun.
    pub(crate) fn wake_until_ended(&'static self, wake: impl Fn() + Send + 'static) {
        let begun = {
            let state = self.state();
            if !state.running {
                return;
            }
            state.cells_begun
        };
        let nudge = move || {
            for pause in WAKE_DELAYS {
                std::thread::sleep(pause);
                let state = self.state();
                if !state.running || state.cells_begun != begun {
                    return;
                }
                wake();
            }
        };
        // If the thread can't be started (no memory), only the first signal is sent.
        let _ = std::thread::Builder::new().name("nudge".into()).spawn(nudge);
    }

    fn state(&self) -> MutexGuard<'_, InterruptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both ends of the path by which an interrupt reaches Python.
pub(crate) struct Interrupter {
    pub(crate) target: Target,
    pub(crate) receiver: Receiver,
}

#[cfg(not(unix))]
pub(crate) use by_channel::{Receiver, Target, interrupter};
#[cfg(unix)]
pub(crate) use by_signal::{Receiver, Target, interrupter};

/// Interrupts by SIGINT to the interpreter's thread, which also wakes a blocking call such as `time.sleep`.
#[cfg(unix)]
mod by_signal {
    use std::os::unix::thread::JoinHandleExt;
    use std::thread::JoinHandle;

    use super::Interrupter;

    /// Signal that cells don't use. It ends a blocking call, after which Python checks for signals.
    const WAKE: libc::c_int = libc::SIGURG;

    pub(crate) struct Target;
    pub(crate) struct Receiver;

    pub(crate) fn interrupter() -> Interrupter {
        extern "C" fn nothing(_: libc::c_int) {}
        #[allow(unsafe_code, reason = "std has no wrapper for sigaction")]
        // SAFETY: all zeros is a valid `sigaction` (no flags: calls aren't restarted), its handler touches nothing, and
        // the old action isn't requested.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(WAKE, &raw const action, std::ptr::null_mut())
        };
        // If it fails, the signal stays ignored, and only the first SIGINT counts.
        let _ = done;
        Interrupter { target: Target, receiver: Receiver }
    }

    impl Target {
        pub(crate) fn interrupt(&self, python: &JoinHandle<()>) {
            signal(python.as_pthread_t(), libc::SIGINT);
        }

        /// Returns a function that wakes the interpreter from a blocking call.
        pub(crate) fn waker(&self, python: &JoinHandle<()>) -> impl Fn() + Send + 'static {
            let thread = python.as_pthread_t();
            move || signal(thread, WAKE)
        }
    }

    /// Signals a thread. Must be called while the gate says that a cell runs.
    fn signal(thread: libc::pthread_t, signal: libc::c_int) {
        #[allow(unsafe_code, reason = "std has no way to signal one thread")]
        // SAFETY: a cell runs, so its thread hasn't ended; it is never detached, and only joined by the process's end.
        // RustPython's SIGINT handler, which only sets flags, is installed by then.
        let done = unsafe { libc::pthread_kill(thread, signal) };
        // Fails only if the thread has ended, and then there is nothing to interrupt.
        let _ = done;
    }

    impl Receiver {
        pub(crate) fn attach(self, _: &mut rustpython_vm::VirtualMachine) {}
    }
}

/// Interrupts by RustPython's own channel. It's checked between two instructions, so a blocking call has to end first.
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
            // Fails only if the interpreter has ended, and then there is nothing to interrupt.
            let _ = self
                .0
                .send(Box::new(|vm| Err(vm.new_exception_empty(vm.ctx.exceptions.keyboard_interrupt.to_owned()))));
        }
    }

    impl Target {
        /// Returns a function that does nothing: a blocking call can't be woken here.
        pub(crate) fn waker(&self, _: &JoinHandle<()>) -> impl Fn() + Send + 'static {
            || {}
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
    use super::InterruptGate;

    #[test]
    fn an_interrupt_hits_what_runs_and_what_waits_but_nothing_later() {
        let gate = InterruptGate::new();
        let mut delivered = 0;
        let (running, waiting) = (gate.ticket(), gate.ticket());
        assert!(gate.begin_cell(running));
        gate.interrupt(|| delivered += 1);
        gate.end_cell();
        assert!(!gate.begin_cell(waiting));
        gate.interrupt(|| delivered += 1); // idle
        assert!(gate.begin_cell(gate.ticket()));
        assert_eq!(delivered, 1);
    }

    #[test]
    fn what_goes_on_is_woken_until_it_ends() {
        let gate: &'static InterruptGate = Box::leak(Box::new(InterruptGate::new()));
        let (woken, wakes) = std::sync::mpsc::channel();
        let wake = move || _ = woken.send(());
        gate.wake_until_ended(wake.clone());
        assert!(wakes.try_recv().is_err(), "nothing runs");
        assert!(gate.begin_cell(gate.ticket()));
        gate.wake_until_ended(wake);
        for _ in 0..2 {
            wakes.recv_timeout(std::time::Duration::from_secs(60)).expect("it is woken");
        }
        gate.end_cell();
        // Another cell isn't woken, and the thread ends, since all senders are gone.
        assert!(gate.begin_cell(gate.ticket()));
        while wakes.recv_timeout(std::time::Duration::from_secs(60)).is_ok() {}
        gate.end_cell();
    }
}
