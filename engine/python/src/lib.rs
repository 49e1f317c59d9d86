//! The Python kernel: the body of the child process `tracebook kernel`.
//!
//! Speaks Jupyter messages, one JSON object a line, over its standard input and output, and runs cells in an
//! embedded RustPython. It knows nothing of notes, agents or the window: code comes in, messages go out. It must
//! never write to its standard output by itself (`stdio.rs` takes it away for the protocol), and it never restarts
//! itself: whoever started it watches it, ends it and starts the next one.
//!
//! Two threads matter. The first one reads requests, so that an interrupt arrives while a cell runs. The other one,
//! with a big stack, owns the interpreter and runs one cell after the other.

mod ask;
mod cell;
mod gate;
mod interpreter;
mod numpy;
mod outbox;
mod pure_results;
mod requests;
mod sandbox;
#[cfg(target_os = "macos")]
mod seatbelt;
mod stdio;
mod waits;

use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use gate::{Gate, Ticket};
use outbox::Outbox;
pub use sandbox::Reach;

use requests::{Body, Incoming, Requests};

/// Enough for Python's recursion limit also where each call passes through native code, which takes some 4 KiB of
/// stack, unoptimised 140 KiB. RustPython watches the real stack, too. Only what is used becomes memory.
const STACK: usize = if cfg!(debug_assertions) { 128 << 20 } else { 64 << 20 };

/// The name of the interpreter's thread, the only one that receives interrupts.
const PYTHON_THREAD: &str = "python";

/// How long a cell that was told to stop and the interpreter's own end (exit handlers, files to flush) may take
/// before the process ends without them.
const GRACE: Duration = Duration::from_secs(2);

/// What the reading thread hands to the interpreter's thread. Each carries the header of its request.
enum Work {
    Execute { header: Value, ticket: Ticket, cell: cell::Cell },
    Info { header: Value },
    Look { header: Value, ticket: Ticket, look: requests::Look },
    Shutdown { header: Option<Value> },
}

/// Runs the kernel until a `shutdown_request` or the end of standard input, and returns the process's exit code.
///
/// Call it once, first thing in `main`: it takes standard input and output for the protocol and, on Linux, asks to be
/// killed when the thread that started this process ends. Cells reach the working folder and what `reach` grants.
#[must_use]
pub fn run(reach: Reach) -> ExitCode {
    ::sandbox::close_inherited();
    stdio::die_with_parent();
    let (input, output) = match stdio::take() {
        Ok(pair) => pair,
        Err(error) => {
            eprintln!("tracebook kernel: cannot take standard input and output: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Before any thread: a Landlock domain is a thread's, and goes on to those that it starts.
    sandbox::Sandbox::enter(reach);
    let outbox = Outbox::install(output);
    let gate: &'static Gate = Box::leak(Box::new(Gate::new()));
    let (work, queue) = mpsc::channel();
    // Nothing is ever sent: that the sender is gone says that the interpreter's thread has ended.
    let (alive, ended) = mpsc::channel::<()>();

    let interrupter = gate::interrupter();
    let signals = interrupter.receiver;
    let spawned = std::thread::Builder::new().name(PYTHON_THREAD.into()).stack_size(STACK).spawn(move || {
        let _alive = alive;
        let outcome = catch_unwind(AssertUnwindSafe(|| interpreter::serve(outbox, gate, &queue, signals)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(why)) => give_up(outbox, "KernelError", &format!("Python did not start: {why}")),
            // The interpreter's state cannot be trusted after it panicked. Say why, and let the host start anew.
            Err(panic) => give_up(outbox, "KernelError", &format!("the Python interpreter failed: {}", said(&*panic))),
        }
    });
    let python = match spawned {
        Ok(python) => python,
        Err(error) => {
            eprintln!("tracebook kernel: cannot start a thread for Python: {error}");
            return ExitCode::FAILURE;
        }
    };
    let interrupt = |interrupter: &gate::Target| {
        gate.interrupt(|| interrupter.interrupt(&python));
        gate.nudge(interrupter.waker(&python));
    };

    let mut requests = Requests::new(BufReader::new(input));
    let asked = loop {
        let (header, body) = match requests.next() {
            Incoming::End => break None,
            Incoming::Bad { parent, why } => {
                outbox.send_for(&parent, "error", json!({"ename": "ProtocolError", "evalue": why, "traceback": []}));
                continue;
            }
            Incoming::Request { header, body } => (header, body),
        };
        let sent = match body {
            Body::Interrupt => {
                interrupt(&interrupter.target);
                outbox.send_for(&header, "interrupt_reply", json!({"status": "ok"}));
                Ok(())
            }
            Body::Shutdown => break Some(header),
            Body::Info => work.send(Work::Info { header }),
            Body::Look(look) => work.send(Work::Look { header, ticket: gate.ticket(), look }),
            Body::Answer(text) => {
                ask::answered(text);
                Ok(())
            }
            Body::PureReply(content) => {
                pure_results::answered(content);
                Ok(())
            }
            Body::Execute(cell) => work.send(Work::Execute { header, ticket: gate.ticket(), cell }),
        };
        if sent.is_err() {
            break None; // only while the interpreter's thread is ending the process itself
        }
    };

    interrupt(&interrupter.target);
    // A failure to send means that the interpreter is already gone, which the next line finds out.
    let _ = work.send(Work::Shutdown { header: asked.clone() });
    if ended.recv_timeout(GRACE) == Err(mpsc::RecvTimeoutError::Timeout) {
        outbox.flush();
        reply_to_shutdown(outbox, asked.as_ref());
        // Returning would be as good, were it not for a cell's threads that hold locks the runtime wants.
        std::process::exit(0);
    }
    ExitCode::SUCCESS
}

/// Answers a `shutdown_request`; the end of standard input has nobody to answer to.
fn reply_to_shutdown(outbox: &Outbox, header: Option<&Value>) {
    if let Some(header) = header {
        outbox.send_for(header, "shutdown_reply", json!({"status": "ok", "restart": false}));
    }
}

/// Says why there is no Python any more and ends the process.
fn give_up(outbox: &Outbox, name: &str, why: &str) -> ! {
    outbox.send("error", json!({"ename": name, "evalue": why, "traceback": [format!("{name}: {why}")]}));
    std::process::exit(101);
}

/// The words of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?")
}
