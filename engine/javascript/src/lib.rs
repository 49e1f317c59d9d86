//! The process that runs a tool's JavaScript: the body of the child process `tracebook kernel --javascript`.
//!
//! It runs one function in QuickJS (`script_engine.rs`), in the same sandbox as cells. It speaks the messages of
//! kernels: a request to execute carries a [`ScriptCall`] as its code. It opens no file and no connection itself; what
//! a function asks for goes to the host, which decides.

mod script_engine;

pub use script_engine::{ScriptCall, ScriptError, ScriptHost, ScriptPermissions, run_script};

use python::protocol::{
    IncomingRequest, KernelOutbox, OutputStream, RequestBody, RequestReader, die_with_parent, take,
};
use python::{CellSandbox, SandboxGrants};
use serde_json::{Value, json};
use std::io::BufReader;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Connects a running script to the host's messages.
struct HostLink {
    outbox: &'static KernelOutbox,
    answers: Receiver<String>,
}

impl ScriptHost for HostLink {
    fn print(&self, text: &str) {
        self.outbox.print_text(OutputStream::Out, text);
    }

    fn show(&self, bundle: &str) {
        let data: Value = serde_json::from_str(bundle).unwrap_or_default();
        self.outbox.send_display("display_data", json!({"data": data, "metadata": {}, "transient": {}}));
    }

    fn send_request(&self, request: &str) {
        self.outbox.send("web_request", json!({"request": request}));
    }

    fn receive_answer(&self, timeout: Duration) -> Option<String> {
        self.answers.recv_timeout(timeout).ok()
    }
}

/// Runs calls until a `shutdown_request` or the end of standard input, and returns the process's exit code.
///
/// Must be called once, first thing in `main`: it takes standard input and output for the protocol. The function
/// reaches nothing but what `reach` grants; the working folder should be an empty one.
#[must_use]
pub fn run_script_worker(reach: SandboxGrants) -> ExitCode {
    python::close_inherited();
    die_with_parent();
    let (input, output) = match take() {
        Ok(pair) => pair,
        Err(error) => {
            eprintln!("tracebook kernel: cannot take standard input and output: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Before any thread starts: the sandbox applies to a thread and the threads that it starts.
    CellSandbox::enter(reach);
    let outbox = KernelOutbox::install(output);
    let info = || json!({"status": "ok", "implementation": "quickjs", "sandbox": CellSandbox::get().to_json()});
    outbox.send("kernel_info_reply", info());
    let mut requests = RequestReader::new(BufReader::new(input));
    let mut running: Option<Sender<String>> = None;
    loop {
        match requests.next_request() {
            IncomingRequest::End => return ExitCode::SUCCESS,
            IncomingRequest::Invalid { parent, why } => refuse_request(outbox, &parent, &why),
            IncomingRequest::Request { header, body } => match body {
                RequestBody::Info => outbox.send_reply(&header, "kernel_info_reply", info()),
                RequestBody::Shutdown => return ExitCode::SUCCESS,
                RequestBody::Answer(text) => {
                    // Without a running script, nobody waits for it.
                    let _ = running.as_ref().map(|running| running.send(text));
                }
                RequestBody::Execute(cell) => match serde_json::from_str::<ScriptCall>(&cell.code) {
                    Ok(call) => running = start_call(outbox, header, call),
                    Err(why) => refuse_request(outbox, &header, &format!("the call isn't valid: {why}")),
                },
                // The host interrupts a script by ending this process.
                RequestBody::Interrupt | RequestBody::Query(_) | RequestBody::PureReply(_) | RequestBody::State(_) => {
                    refuse_request(outbox, &header, "this process only runs functions of tools");
                }
            },
        }
    }
}

fn refuse_request(outbox: &KernelOutbox, header: &Value, why: &str) {
    let content = json!({"ename": "ProtocolError", "evalue": why, "traceback": [why]});
    outbox.send_reply(header, "error", content);
    outbox.send_reply(header, "execute_reply", json!({"status": "error"}));
}

/// Runs a call on a thread of its own. Returns where the host's answers go; `None` if there's no thread.
fn start_call(outbox: &'static KernelOutbox, header: Value, call: ScriptCall) -> Option<Sender<String>> {
    let (sender, answers) = channel();
    let failed = header.clone();
    let run = move || {
        outbox.begin_reply(header.clone());
        let status = match run_script(&call, Rc::new(HostLink { outbox, answers })) {
            Ok(json) => {
                let content = json!({"data": {"text/plain": json}, "metadata": {}, "execution_count": 1});
                outbox.send("execute_result", content);
                "ok"
            }
            Err(error) => {
                let why = error.to_string();
                outbox.send("error", json!({"ename": "ScriptError", "evalue": why, "traceback": [why]}));
                "error"
            }
        };
        outbox.send_reply(&header, "execute_reply", json!({"status": status}));
    };
    let stack = script_engine::SCRIPT_THREAD_STACK_BYTES;
    let started = std::thread::Builder::new().name("script".to_owned()).stack_size(stack).spawn(run);
    if let Err(error) = started {
        refuse_request(outbox, &failed, &format!("no thread could be started ({error})"));
        return None;
    }
    Some(sender)
}
