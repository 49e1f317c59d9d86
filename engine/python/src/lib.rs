//! The Python kernel: the body of the child process `tracebook kernel`.
//!
//! Exchanges Jupyter messages, one JSON object per line, over standard input and output, and runs cells in an embedded
//! RustPython. It knows nothing about notes, agents or the window. Nothing else may write to standard output
//! (`stdio.rs` reserves it for the protocol). The kernel never restarts itself: the parent process monitors it, ends it
//! and starts the next one.
//!
//! Two threads matter. The first reads requests, so that an interrupt arrives while a cell runs. The other, with a big
//! stack, owns the interpreter and runs one cell after the other.

mod cell;
#[cfg(target_os = "linux")]
mod environment;
mod interpreter;
mod interrupt;
mod interruptible_wait;
mod ipython_syntax;
mod numpy;
mod outbox;
mod pure_results;
mod requests;
mod sandbox;
#[cfg(target_os = "macos")]
mod seatbelt;
mod stdin_request;
mod stdio;

use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
pub use environment::{EnvironmentKernel, run_environment_kernel};
use interrupt::{InterruptGate, InterruptTicket};
use outbox::KernelOutbox;
pub use sandbox::{CellSandbox, SandboxGrants};

/// Protocol between a kernel's process and its parent, also used by the kernels in other crates.
pub mod protocol {
    pub use crate::cell::{CellRequest, PureCellBindings};
    pub use crate::outbox::{KernelOutbox, OutputStream};
    pub use crate::requests::{IncomingRequest, KernelQuery, RequestBody, RequestReader};
    pub use crate::stdio::{die_with_parent, take};
}

/// Python source that runs cells in CPython, 3.9 or newer, natively or in WebAssembly: `cells.py` and what it shares
/// with the built-in kernel. Run it under a file name that no cell has (`<tracebook>`), then create one `Cells(send,
/// ask)`; `cells.py` describes its methods.
pub const CPYTHON_HARNESS: &str = concat!(
    include_str!("cells.py"),
    "\n\n",
    include_str!("frames.py"),
    "\n\n_GETPASS_SOURCE = r'''",
    include_str!("getpass.py"),
    "'''\n_COMMANDS_SOURCE = r'''",
    include_str!("ipython_commands.py"),
    "'''\n_IPYTHON_SOURCE = r'''",
    include_str!("ipython.py"),
    "'''\n_LOOK_SOURCE = r'''",
    include_str!("introspection.py"),
    "'''\n_SHOWN_SOURCE = r'''",
    include_str!("displays.py"),
    "'''\n_VARIABLES_SOURCE = r'''",
    include_str!("variables.py"),
    "'''\n",
);

use requests::{IncomingRequest, RequestBody, RequestReader};

/// Python module `tracebook_backend`: a matplotlib backend whose figures are display lists, for every CPython kernel.
/// Register it in `sys.modules` under that name before cells run, and call its `install(display)`, where `display(data,
/// metadata)` shows a bundle; call `flush_figures()` after each cell. It imports nothing of matplotlib until a cell
/// does. For Jupyter kernels, `engine/jupyter/src/ipython_setup.py` does all this.
pub const MATPLOTLIB_BACKEND: &str = include_str!("matplotlib_backend.py");

/// Stack size of the interpreter's thread. It's enough for Python's recursion limit even if each call passes through
/// native code, which takes about 4 KiB of stack, unoptimized 140 KiB. RustPython checks the real stack, too. Only used
/// pages take memory.
const INTERPRETER_STACK_BYTES: usize = if cfg!(debug_assertions) { 128 << 20 } else { 64 << 20 };

/// Name of the interpreter's thread, the only one that receives interrupts.
const PYTHON_THREAD: &str = "python";

/// Time that an interrupted cell and the interpreter's shutdown (exit handlers, flushing of files) may take before the
/// process exits anyway.
const KERNEL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A task for the interpreter's thread, sent by the reading thread. Each carries the header of its request.
enum KernelTask {
    Execute { header: Value, ticket: InterruptTicket, cell: cell::CellRequest },
    Info { header: Value },
    Query { header: Value, ticket: InterruptTicket, look: requests::KernelQuery },
    Shutdown { header: Option<Value> },
}

/// Closes the descriptors inherited from the parent, except the standard streams.
pub fn close_inherited() {
    ::sandbox::close_inherited();
}

/// Runs the kernel until a `shutdown_request` or the end of standard input, and returns the process's exit code.
///
/// Must be called once, first thing in `main`: it takes standard input and output for the protocol and, on Linux, asks
/// to be killed when the thread that started this process ends. Cells reach the working folder and what `reach` grants.
#[must_use]
pub fn run_kernel(reach: SandboxGrants) -> ExitCode {
    ::sandbox::close_inherited();
    stdio::die_with_parent();
    let (input, output) = match stdio::take() {
        Ok(pair) => pair,
        Err(error) => {
            eprintln!("tracebook kernel: cannot take standard input and output: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Before any thread starts: a Landlock domain applies to a thread and the threads that it starts.
    sandbox::CellSandbox::enter(reach);
    let outbox = KernelOutbox::install(output);
    let gate: &'static InterruptGate = Box::leak(Box::new(InterruptGate::new()));
    let (work, queue) = mpsc::channel();
    // Nothing is ever sent: the dropped sender shows that the interpreter's thread has ended.
    let (alive, ended) = mpsc::channel::<()>();

    let interrupter = interrupt::interrupter();
    let signals = interrupter.receiver;
    let spawned =
        std::thread::Builder::new().name(PYTHON_THREAD.into()).stack_size(INTERPRETER_STACK_BYTES).spawn(move || {
            let _alive = alive;
            let outcome =
                catch_unwind(AssertUnwindSafe(|| interpreter::run_interpreter(outbox, gate, &queue, signals)));
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(why)) => exit_with_error(outbox, "KernelError", &format!("Python did not start: {why}")),
                // After a panic the interpreter's state can't be trusted. Report it, and let the host start a new
                // process.
                Err(panic) => exit_with_error(
                    outbox,
                    "KernelError",
                    &format!("the Python interpreter failed: {}", panic_message(&*panic)),
                ),
            }
        });
    let python = match spawned {
        Ok(python) => python,
        Err(error) => {
            eprintln!("tracebook kernel: cannot start a thread for Python: {error}");
            return ExitCode::FAILURE;
        }
    };
    let interrupt = |interrupter: &interrupt::Target| {
        gate.interrupt(|| interrupter.interrupt(&python));
        gate.wake_until_ended(interrupter.waker(&python));
    };

    let mut requests = RequestReader::new(BufReader::new(input));
    let asked = loop {
        let (header, body) = match requests.next_request() {
            IncomingRequest::End => break None,
            IncomingRequest::Invalid { parent, why } => {
                outbox.send_reply(&parent, "error", json!({"ename": "ProtocolError", "evalue": why, "traceback": []}));
                continue;
            }
            IncomingRequest::Request { header, body } => (header, body),
        };
        let sent = match body {
            RequestBody::Interrupt => {
                interrupt(&interrupter.target);
                outbox.send_reply(&header, "interrupt_reply", json!({"status": "ok"}));
                Ok(())
            }
            RequestBody::Shutdown => break Some(header),
            RequestBody::Info => work.send(KernelTask::Info { header }),
            RequestBody::Query(look) => work.send(KernelTask::Query { header, ticket: gate.ticket(), look }),
            RequestBody::Answer(text) => {
                stdin_request::deliver_answer(text);
                Ok(())
            }
            RequestBody::PureReply(content) => {
                pure_results::deliver_reply(content);
                Ok(())
            }
            RequestBody::State(_) => {
                let why = "the built-in kernel saves no states; choose the kernel science";
                outbox.send_reply(&header, "state_reply", json!({"status": "error", "why": why}));
                Ok(())
            }
            RequestBody::Execute(cell) => work.send(KernelTask::Execute { header, ticket: gate.ticket(), cell }),
        };
        if sent.is_err() {
            break None; // only while the interpreter's thread is ending the process itself
        }
    };

    interrupt(&interrupter.target);
    // Sending fails only if the interpreter has ended, which the next line detects.
    let _ = work.send(KernelTask::Shutdown { header: asked.clone() });
    if ended.recv_timeout(KERNEL_SHUTDOWN_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
        outbox.flush();
        reply_to_shutdown(outbox, asked.as_ref());
        // Don't return: a cell's threads may hold locks that the runtime needs.
        std::process::exit(0);
    }
    ExitCode::SUCCESS
}

/// Answers a `shutdown_request`; the end of standard input needs no answer.
fn reply_to_shutdown(outbox: &KernelOutbox, header: Option<&Value>) {
    if let Some(header) = header {
        outbox.send_reply(header, "shutdown_reply", json!({"status": "ok", "restart": false}));
    }
}

/// Reports why Python has ended and exits the process.
fn exit_with_error(outbox: &KernelOutbox, name: &str, why: &str) -> ! {
    outbox.send("error", json!({"ename": name, "evalue": why, "traceback": [format!("{name}: {why}")]}));
    std::process::exit(101);
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?")
}
