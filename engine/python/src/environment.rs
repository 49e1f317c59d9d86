//! The kernel of a Python environment: the body of the child process `tracebook kernel --environment PYTHON`.
//!
//! It uses the same protocol as the built-in kernel. Cells run in a second process, the environment's own CPython with
//! `cells.py`, in the same sandbox as the built-in kernel. This process sets up the sandbox on a thread and starts
//! Python from it, once. Requests and replies go through two pipes, one JSON object per line; output of native code
//! comes through two more. Nothing that comes from Python is trusted: it can only show what a cell may show.

mod interpreter_paths;
mod native_output;
mod python_process;

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::interrupt::InterruptGate;
use crate::outbox::KernelOutbox;
use crate::requests::{IncomingRequest, KernelQuery, RequestBody, RequestReader};
use crate::{KERNEL_SHUTDOWN_TIMEOUT, KernelTask, SandboxGrants, reply_to_shutdown, stdio};

use python_process::{PythonProcess, PythonReply};

/// Time that Python may take to start. Its first start on a cold disk reads a few thousand files.
const PYTHON_START_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which the end of a stopping process is checked.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// An environment whose Python interpreter runs the cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentKernel {
    /// Path of the interpreter as the environment names it, which tells Python which environment it's in.
    pub python: PathBuf,
    /// Access that cells have besides the working folder.
    pub grants: SandboxGrants,
    /// Advice shown when an import fails; `{package}` stands for the package's name.
    pub advice: String,
}

impl EnvironmentKernel {
    /// Reads the arguments after `tracebook kernel`: `--environment PYTHON`, `--advice TEXT`, and those of
    /// [`SandboxGrants::from_args`]. `None` if they name no environment.
    #[must_use]
    pub fn from_args(words: &[String]) -> Option<EnvironmentKernel> {
        let value = |flag: &str| words.iter().skip_while(|word| *word != flag).nth(1);
        let python = PathBuf::from(value("--environment")?);
        let advice = value("--advice").cloned().unwrap_or_default();
        Some(EnvironmentKernel { python, grants: SandboxGrants::from_args(words), advice })
    }
}

/// Runs the kernel until a `shutdown_request` or the end of standard input, and returns the process's exit code. Must
/// be called once, first thing in `main`.
#[must_use]
pub fn run_environment_kernel(kernel: &EnvironmentKernel) -> ExitCode {
    ::sandbox::close_inherited();
    stdio::die_with_parent();
    let (input, output) = match stdio::take() {
        Ok(pair) => pair,
        Err(error) => return fail(&format!("cannot take standard input and output: {error}")),
    };
    // Before any thread starts: mounts and limits apply to the whole process.
    if let Err(why) = ::sandbox::hide_paths(&kernel.grants.rules) {
        return fail(&why.to_string());
    }
    let outbox = KernelOutbox::install(output);
    let (replies, answers) = mpsc::channel();
    let question = Arc::new(AtomicU64::new(0));
    let python = match PythonProcess::start(kernel, outbox, &question, replies) {
        Ok(python) => Arc::new(python),
        Err(why) => return fail(&why.to_string()),
    };
    let info = match answers.recv_timeout(PYTHON_START_TIMEOUT) {
        Ok(PythonReply::Ready { version }) => kernel_info(&version, kernel.grants.network),
        Ok(_) | Err(RecvTimeoutError::Disconnected) => return fail(&format!("Python did not start: {}", python.end())),
        Err(RecvTimeoutError::Timeout) => {
            python.kill();
            return fail("Python did not start within a minute");
        }
    };
    outbox.send("kernel_info_reply", info.clone());

    let gate: &'static InterruptGate = Box::leak(Box::new(InterruptGate::new()));
    let (work, queue) = mpsc::channel();
    let session = EnvironmentSession { outbox, gate, python: python.clone(), answers, info, count: 0 };
    let spawned = std::thread::Builder::new().name("cells".into()).spawn(move || session.work(&queue));
    if let Err(error) = spawned {
        python.kill();
        return fail(&format!("cannot start a thread for cells: {error}"));
    }
    let asked = read_requests(input, outbox, gate, &python, &question, &work);

    interrupt(gate, &python);
    // Python ends by itself after its cell. The request fails only if Python has ended already.
    let _ = python.request(&json!({"do": "shutdown"}));
    let begun = Instant::now();
    while !python.has_ended() && begun.elapsed() < KERNEL_SHUTDOWN_TIMEOUT {
        std::thread::sleep(EXIT_CHECK_INTERVAL);
    }
    python.kill();
    python.drain_output();
    outbox.flush();
    reply_to_shutdown(outbox, asked.as_ref());
    // Exits here instead of returning, because the thread of cells may hold the outbox.
    std::process::exit(0);
}

/// Reads requests until the input ends or one asks to shut down. Returns the header of the shutdown request.
fn read_requests(
    input: std::fs::File,
    outbox: &'static KernelOutbox,
    gate: &'static InterruptGate,
    python: &Arc<PythonProcess>,
    question: &AtomicU64,
    work: &Sender<KernelTask>,
) -> Option<Value> {
    let mut requests = RequestReader::new(BufReader::new(input));
    loop {
        let (header, body) = match requests.next_request() {
            IncomingRequest::End => return None,
            IncomingRequest::Invalid { parent, why } => {
                outbox.send_reply(&parent, "error", json!({"ename": "ProtocolError", "evalue": why, "traceback": []}));
                continue;
            }
            IncomingRequest::Request { header, body } => (header, body),
        };
        let sent = match body {
            RequestBody::Interrupt => {
                interrupt(gate, python);
                outbox.send_reply(&header, "interrupt_reply", json!({"status": "ok"}));
                Ok(())
            }
            RequestBody::Shutdown => return Some(header),
            RequestBody::Info => work.send(KernelTask::Info { header }),
            RequestBody::Query(look) => work.send(KernelTask::Query { header, ticket: gate.ticket(), look }),
            RequestBody::Answer(text) => {
                let number = question.load(Ordering::Acquire);
                // If Python has ended, the thread that reads its replies reports it.
                let _ = python.request(&json!({"do": "answer", "number": number, "text": text}));
                Ok(())
            }
            // This kernel caches no results of pure cells: they run each time.
            RequestBody::PureReply(_) => Ok(()),
            RequestBody::State(_) => {
                let why = "only the kernel science saves its variables";
                outbox.send_reply(&header, "state_reply", json!({"status": "error", "why": why}));
                Ok(())
            }
            RequestBody::Execute(cell) => work.send(KernelTask::Execute { header, ticket: gate.ticket(), cell }),
        };
        if sent.is_err() {
            return None; // only while the thread of cells is ending the process itself
        }
    }
}

fn interrupt(gate: &'static InterruptGate, python: &Arc<PythonProcess>) {
    gate.interrupt(|| python.signal(libc::SIGINT));
    let python = python.clone();
    gate.wake_until_ended(move || python.signal(libc::SIGURG));
}

fn kernel_info(version: &str, network: bool) -> Value {
    json!({
        "status": "ok",
        "protocol_version": "5.4",
        "implementation": "tracebook-environment",
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "language_info": {
            "name": "python",
            "version": version,
            "mimetype": "text/x-python",
            "file_extension": ".py",
        },
        "banner": format!("Python {version}, behind Tracebook's walls"),
        "sandbox": {"files": true, "network": !network, "processes": true, "memory": true},
    })
}

/// Reports a fatal error on standard error, which the host shows.
fn fail(why: &str) -> ExitCode {
    eprintln!("tracebook kernel: {why}");
    ExitCode::FAILURE
}

/// State that persists between cells.
struct EnvironmentSession {
    outbox: &'static KernelOutbox,
    gate: &'static InterruptGate,
    python: Arc<PythonProcess>,
    answers: Receiver<PythonReply>,
    info: Value,
    /// Execution counter that the user sees.
    count: u64,
}

/// Error: Python has ended, or no longer follows the protocol.
#[derive(Debug, thiserror::Error)]
#[error("Python is gone")]
struct PythonGoneError;

impl EnvironmentSession {
    fn work(mut self, queue: &Receiver<KernelTask>) {
        while let Ok(task) = queue.recv() {
            let done = match task {
                KernelTask::Execute { header, ticket, cell } => self.execute(header, ticket, &cell),
                KernelTask::Query { header, ticket, look } => self.answer_query(header, ticket, &look),
                KernelTask::Info { header } => {
                    self.outbox.send_reply(&header, "kernel_info_reply", self.info.clone());
                    Ok(())
                }
                KernelTask::Shutdown { .. } => return,
            };
            if done.is_err() {
                self.python.drain_output();
                self.outbox.flush();
                let why = self.python.end();
                eprintln!("tracebook kernel: Python has ended: {why}");
                std::process::exit(101);
            }
        }
    }

    fn execute(
        &mut self,
        header: Value,
        ticket: crate::InterruptTicket,
        cell: &crate::cell::CellRequest,
    ) -> Result<(), PythonGoneError> {
        let outbox = self.outbox;
        outbox.begin_reply(header);
        outbox.send("status", json!({"execution_state": "busy"}));
        let request = json!({
            "do": "execute", "code": cell.code, "label": cell.label, "forget": cell.forget, "silent": cell.silent,
            "file": cell.file,
        });
        let mut status = json!("aborted");
        if let Some(reply) = self.ask(ticket, &request)? {
            self.count = reply["execution_count"].as_u64().unwrap_or(self.count);
            status = reply["status"].clone();
        }
        self.python.drain_output();
        outbox.send("execute_reply", json!({"status": status, "execution_count": self.count, "cached": false}));
        outbox.send("status", json!({"execution_state": "idle"}));
        Ok(())
    }

    fn answer_query(
        &mut self,
        header: Value,
        ticket: crate::InterruptTicket,
        look: &KernelQuery,
    ) -> Result<(), PythonGoneError> {
        self.outbox.begin_reply(header);
        let (kind, request) = match look {
            KernelQuery::Complete { code, at, imports } => {
                ("complete_reply", json!({"do": "complete", "code": code, "at": at, "imports": imports}))
            }
            KernelQuery::Inspect { code, at } => ("inspect_reply", json!({"do": "inspect", "code": code, "at": at})),
            KernelQuery::Variables => ("variables_reply", json!({"do": "variables"})),
            KernelQuery::Values { names } => {
                ("values_reply", json!({"do": "values", "names": names.lines().collect::<Vec<_>>()}))
            }
            KernelQuery::Redraw { figure, limits } => {
                ("redraw_reply", json!({"do": "redraw", "figure": figure, "limits": limits}))
            }
            KernelQuery::FrameRows { frame, first } => {
                ("frame_rows_reply", json!({"do": "rows", "frame": frame, "first": first}))
            }
        };
        let reply = self.ask(ticket, &request)?;
        self.outbox.send(kind, reply.unwrap_or_else(|| json!({"status": "error"})));
        Ok(())
    }

    /// Sends a request and returns Python's reply. `None` if an interrupt arrived before it started.
    fn ask(&self, ticket: crate::InterruptTicket, request: &Value) -> Result<Option<Value>, PythonGoneError> {
        // After Python confirms this, an interrupt applies to this request and not to the previous one.
        self.python.request(&json!({"do": "prepare"}))?;
        while !matches!(self.next_reply()?, PythonReply::Prepared) {}
        if !self.gate.begin_cell(ticket) {
            return Ok(None);
        }
        let reply = self.python.request(request).and_then(|()| {
            loop {
                if let PythonReply::Done(content) = self.next_reply()? {
                    return Ok(content);
                }
            }
        });
        self.gate.end_cell();
        reply.map(Some)
    }

    fn next_reply(&self) -> Result<PythonReply, PythonGoneError> {
        self.answers.recv().map_err(|_| PythonGoneError)
    }
}

/// Locks a mutex even if a thread panicked while holding it: no data here is left half updated.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::EnvironmentKernel;
    use std::path::PathBuf;

    #[test]
    fn arguments_name_an_environment_and_what_it_reaches() {
        let words = ["--shut", "/w", "--environment", "/e/bin/python", "--advice", "add {package}", "--network"];
        let kernel = EnvironmentKernel::from_args(&words.map(str::to_owned)).expect("an environment");
        assert_eq!((kernel.python, kernel.advice), (PathBuf::from("/e/bin/python"), "add {package}".to_owned()));
        assert!(kernel.grants.network && kernel.grants.shut == Some(PathBuf::from("/w")));
        assert_eq!(EnvironmentKernel::from_args(&["--network".to_owned()]), None);
        assert_eq!(EnvironmentKernel::from_args(&["--environment".to_owned()]), None);
    }
}
