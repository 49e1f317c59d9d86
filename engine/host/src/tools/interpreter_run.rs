//! Programs of tools: an embedded kernel for one run of Python, or of a function in JavaScript, in the same sandbox as
//! cells. Its output and result values are the tool's result.

use super::path_limits::time_over_note;
use super::script_files::{ScriptFileRequest, answer_file_request};
use super::shell::{self, append_end_note, end_child};
use super::tool_environment::ToolPython;
use super::truncate::store_blob;
use super::{MAX_JOB_SECS, StopSignal, ToolWorkspace, fetch};
use crate::fs::confined_dir::ConfinedFolder;
use crate::fs::volume_snapshot::VolumeSnapshot;
use crate::process_group::start_in_own_group;
use crate::sandbox::MAX_ADDED_BYTES;
use crate::sandbox_limits::limit_arguments;
use ::sandbox::{CpuShare, FolderGrowth};
use agent::config::SandboxLimits;
use agent::script_tool::ScriptToolCall;
use agent::tool_job::{ToolOutcome, WebAccess};
use anyhow::{anyhow, bail};
use base64::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use store::{BlobRef, ToolGrants};

/// Maximum size of a kernel's message in bytes; the kernel's own limit is lower.
const MAX_KERNEL_MESSAGE_BYTES: u64 = 80 << 20;
/// Maximum bytes of printed text and values together.
const MAX_RUN_OUTPUT_BYTES: usize = 50 << 20;
/// Maximum number of images in one run.
const MAX_RUN_IMAGES: usize = 32;
/// Image types of a value, in order of preference.
const IMAGE_MIME_TYPES: [&str; 4] =
    ["application/vnd.tracebook.figure+json", "image/png", "image/jpeg", "image/svg+xml"];
/// Interval for checking whether the run was canceled.
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for a kernel to start.
const KERNEL_START_TIMEOUT: Duration = Duration::from_secs(30);

/// Processor time that a function in JavaScript may use, in seconds.
const MAX_SCRIPT_CPU_SECS: u64 = 10;

/// Memory that a function in JavaScript may use, in bytes.
const MAX_SCRIPT_MEMORY_BYTES: u64 = 256 << 20;
/// Processor time in seconds beyond a function's own limit. Then the process ends if the engine hasn't ended it.
const SCRIPT_CPU_GRACE_SECS: u64 = 2;

/// Environment variables that are passed to the kernel.
const PASSED_VARIABLES: [&str; 5] = ["LANG", "LC_ALL", "SystemRoot", "TEMP", "TZ"];

/// Output of the run so far.
#[derive(Default)]
struct RunOutput {
    output: Vec<u8>,
    pictures: Vec<(String, Vec<u8>)>,
    failed: bool,
}

/// A program that a tool runs.
#[derive(Clone, Copy)]
pub(super) enum RunProgram<'a> {
    /// Python code. Its process works in the folder.
    Python {
        code: &'a str,
        /// The environment that it runs in; `None` for the built-in Python.
        environment: Option<&'a ToolPython>,
    },
    /// A function in JavaScript. Its process has no folder: the host reads and writes files for it.
    JavaScript(&'a ScriptToolCall),
}

impl RunProgram<'_> {
    /// Returns the name for messages about the process.
    fn title(&self) -> &str {
        match self {
            RunProgram::Python { .. } => "Python",
            RunProgram::JavaScript(call) => &call.name,
        }
    }

    /// Returns the code of the request that runs it.
    fn code(&self, run: &InterpreterRun<'_>) -> String {
        let call = match self {
            RunProgram::Python { code, .. } => return (*code).to_owned(),
            RunProgram::JavaScript(call) => call,
        };
        let ToolGrants { fs, ui, process } = run.grants;
        json!({
            "name": call.name,
            "func": call.func,
            "arguments": call.arguments,
            "permissions": {"network": run.web.is_some(), "fs": fs, "ui": ui, "process": process},
            "cpu_seconds": run.limits.cpu_seconds.unwrap_or(run.seconds.clamp(1, MAX_SCRIPT_CPU_SECS)),
            "memory_bytes": run.limits.memory_bytes.map(|most| most.min(MAX_SCRIPT_MEMORY_BYTES)),
        })
        .to_string()
    }
}

/// The program to run, with its limits and permissions.
pub(super) struct InterpreterRun<'a> {
    /// The folder that the program may use.
    pub(super) root: &'a Path,
    pub(super) program: RunProgram<'a>,
    pub(super) seconds: u64,
    /// What the code may fetch through this process; it has no network access of its own.
    pub(super) web: Option<&'a WebAccess>,
    /// What else the code may do. In Python, `fs` is decided by `root`.
    pub(super) grants: ToolGrants,
    pub(super) limits: &'a SandboxLimits,
}

pub(super) fn run(place: &ToolWorkspace, run: &InterpreterRun<'_>, stop: &StopSignal) -> anyhow::Result<ToolOutcome> {
    let root = ConfinedFolder::open_root(run.root)?;
    let before = VolumeSnapshot::capture(&root, &place.workspace);
    let title = run.program.title();
    let fail = |error: std::io::Error| anyhow!("{title} could not be started ({error})");
    let mut command = Command::new(&place.program);
    command.arg("kernel");
    // A function in JavaScript asks for files, so its process works in an empty folder.
    let empty = match run.program {
        RunProgram::JavaScript(_) => Some(shell::PrivateFolder::new()?),
        RunProgram::Python { .. } => None,
    };
    command.args(empty.as_ref().map(|_| "--javascript")).arg("--shut").arg(&place.workspace);
    match run.program {
        RunProgram::Python { environment, .. } => {
            if let Some(environment) = environment {
                command.arg("--environment").arg(&environment.python).arg("--advice").arg(&environment.advice);
            }
            command.args(limit_arguments(run.limits, root.original_path()))
        }
        RunProgram::JavaScript(_) => {
            let most = run.limits.cpu_seconds.unwrap_or(MAX_SCRIPT_CPU_SECS).saturating_add(SCRIPT_CPU_GRACE_SECS);
            command.arg("--cpu-seconds").arg(most.to_string())
        }
    };
    command.current_dir(empty.as_ref().map_or(root.original_path(), |empty| empty.path())).env_clear();
    command.envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let asks_host = run.web.is_some() || run.grants.process;
    command.envs(asks_host.then_some(("TRACEBOOK_WEB", "1")));
    command.envs(place.home.iter().map(|home| ("HOME", home)));
    start_in_own_group(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(fail)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let mut heard = RunOutput::default();
    let note = match input.zip(output) {
        Some((mut input, output)) => {
            let (tell, messages) = channel();
            std::thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while let Ok(1..) = (&mut output).take(MAX_KERNEL_MESSAGE_BYTES).read_until(b'\n', &mut line) {
                    let message = serde_json::from_slice::<Value>(&line).ok();
                    if !line.ends_with(b"\n") || message.is_some_and(|message| tell.send(message).is_err()) {
                        return;
                    }
                    line.clear();
                }
            });
            let folder = root.original_path().to_owned();
            let mut growth = FolderGrowth::limited(vec![folder], run.limits.disk_bytes, MAX_ADDED_BYTES);
            let note = execute_code(place, (&mut input, &messages, child.id()), run, (stop, &mut growth), &mut heard);
            match note {
                Ok(None) if growth.has_grown_too_much() => Ok(Some(growth.excess_note())),
                note => note,
            }
        }
        None => Err(anyhow!("{title} could not be started (no pipe)")),
    };
    end_child(&mut child);
    let note = note?;
    let mut attached = Vec::new();
    for (mime, bytes) in heard.pictures {
        attached.push(BlobRef { blob: store_blob(&bytes, &place.blobs)?, mime, size: bytes.len() as u64 });
    }
    let success = note.is_none() && !heard.failed;
    let note = note.unwrap_or_else(|| if heard.output.is_empty() { "(no output)" } else { "" }.to_owned());
    let (changed, remarks) = before.changes_since(&root, &place.blobs)?;
    let note = [note].into_iter().filter(|note| !note.is_empty()).chain(remarks).collect::<Vec<_>>().join("\n");
    let (text, whole) = append_end_note(heard.output, &note, place)?;
    Ok(ToolOutcome { success, text, whole, changed, attached, ..ToolOutcome::default() })
}

/// Sends the code and collects results. Returns why it didn't finish, if so.
fn execute_code(
    place: &ToolWorkspace,
    (input, messages, process): (&mut impl Write, &Receiver<Value>, u32),
    run: &InterpreterRun<'_>,
    (stop, growth): (&StopSignal, &mut FolderGrowth),
    heard: &mut RunOutput,
) -> anyhow::Result<Option<String>> {
    let time = Duration::from_secs(run.seconds.clamp(1, MAX_JOB_SECS));
    let title = run.program.title();
    let ended = match run.program {
        RunProgram::Python { .. } => match run.limits.cpu_seconds {
            Some(most) => format!("(Python's process ended; it may use {most} s of processor time)"),
            None => "(Python's process ended)".to_owned(),
        },
        RunProgram::JavaScript(_) => format!("({title} was stopped: its process used too much time or memory)"),
    };
    let mut begun = Instant::now();
    let mut ready = false;
    let mut fetching: Option<Receiver<Value>> = None;
    // Once it's ready, the process ends with this thread, so that it's never left stopped.
    let mut share: Option<CpuShare> = None;
    loop {
        share.iter_mut().for_each(CpuShare::update);
        if let Some(answer) = fetching.as_ref().and_then(|answer| answer.try_recv().ok()) {
            fetching = None;
            let reply = json!({"header": {"msg_type": "input_reply"}, "parent_header": {},
                "content": {"value": answer.to_string()}});
            let sent = writeln!(input, "{reply}").and_then(|()| input.flush());
            sent.map_err(|error| anyhow!("{title} did not listen ({error})"))?;
        }
        let message = match messages.recv_timeout(RUN_POLL_INTERVAL) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => Value::Null,
            Err(RecvTimeoutError::Disconnected) if ready => return Ok(Some(ended)),
            Err(RecvTimeoutError::Disconnected) => bail!("{title} did not start"),
        };
        if stop.is_stopped() {
            return Ok(Some("(cancelled)".to_owned()));
        } else if growth.is_exceeded() {
            return Ok(Some(growth.excess_note()));
        } else if begun.elapsed() >= if ready { time } else { KERNEL_START_TIMEOUT } {
            let seconds = begun.elapsed().as_secs();
            return Ok(Some(match run.program {
                RunProgram::Python { .. } => time_over_note("", seconds),
                RunProgram::JavaScript(_) => time_over_note(&format!("{title} was "), seconds),
            }));
        }
        let content = &message["content"];
        match message["header"]["msg_type"].as_str().unwrap_or_default() {
            "kernel_info_reply" if !ready => {
                if let Some(open) =
                    ["files", "processes", "network"].into_iter().find(|wall| content["sandbox"][wall] != true)
                {
                    bail!("there is no sandbox for {title} here: {open} cannot be shut off");
                }
                ready = true;
                share = run.limits.cpu_percent.map(|percent| CpuShare::new(process, percent)).transpose()?;
                begun = Instant::now();
                let request = json!({
                    "header": {"msg_type": "execute_request", "msg_id": "tool"},
                    "parent_header": {},
                    "content": {"code": run.program.code(run), "cell": "tool", "silent": false, "forget": []},
                });
                let sent = writeln!(input, "{request}").and_then(|()| input.flush());
                sent.map_err(|error| anyhow!("{title} did not listen ({error})"))?;
            }
            "stream" => heard.add_text(content["text"].as_str().unwrap_or_default()),
            "execute_result" | "display_data" => heard.add_value(&content["data"], run.grants.ui),
            "error" => {
                heard.failed = true;
                let lines = content["traceback"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let traceback = lines.collect::<Vec<_>>().join("\n");
                heard.start_line();
                heard.add_text(&traceback);
            }
            // Web requests are made here, under the same policy as `fetch_url`. There is one at a time, because the
            // program waits for the answer.
            "web_request" if fetching.is_none() => {
                let request = content["request"].as_str().unwrap_or_default().to_owned();
                let (tell, answer) = channel();
                if let Some(file) = requested_file(&request) {
                    let is_granted = run.grants.fs && matches!(run.program, RunProgram::JavaScript(_));
                    if !is_granted {
                        return Ok(Some("(stopped: it asked for a file, which it may not use)".to_owned()));
                    }
                    let (place, root, paths) = (place.clone(), run.root.to_owned(), run.limits.paths.clone());
                    // If the receiver is gone, nobody waits for the answer.
                    std::thread::spawn(move || tell.send(answer_file_request(&place, &root, &file, &paths)));
                } else if let Some(command) = requested_command(&request) {
                    if !run.grants.process {
                        return Ok(Some("(stopped: it asked for a command, which it may not run)".to_owned()));
                    }
                    let left = time.saturating_sub(begun.elapsed()).as_secs().max(1);
                    let (place, root, stop) = (place.clone(), run.root.to_owned(), stop.clone());
                    let limits = run.limits.clone();
                    // If the receiver is gone, nobody waits for the answer.
                    std::thread::spawn(move || tell.send(run_command(&place, (&root, &command), left, &limits, &stop)));
                } else {
                    let Some(web) = run.web.cloned() else {
                        return Ok(Some("(stopped: it asked for the network, which it may not use)".to_owned()));
                    };
                    std::thread::spawn(move || tell.send(fetch::answer_web_request(&request, &web)));
                }
                fetching = Some(answer);
            }
            "input_request" => return Ok(Some("(stopped: it asked for input, and there is nobody to ask)".to_owned())),
            "execute_reply" => {
                heard.failed |= content["status"] != "ok";
                return Ok(None);
            }
            _ => {}
        }
    }
}

/// Returns the command that a request to the host asks for; `None` if it's a web request.
fn requested_command(request: &str) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    request.get("command").and_then(Value::as_str).map(ToOwned::to_owned)
}

/// Returns the file that a request to the host asks for; `None` if it asks for something else.
fn requested_file(request: &str) -> Option<ScriptFileRequest> {
    let request: Value = serde_json::from_str(request).ok()?;
    serde_json::from_value(request.get("file")?.clone()).ok()
}

/// Runs a command for a tool, in the same sandbox as the shell tool, and returns the answer for the kernel.
fn run_command(
    place: &ToolWorkspace,
    (root, command): (&Path, &str),
    seconds: u64,
    limits: &SandboxLimits,
    stop: &StopSignal,
) -> Value {
    match shell::run(place, &shell::ShellRun { root, path: "", command, seconds, network: false, limits }, stop) {
        Ok(done) => json!({"success": done.success, "output": done.text}),
        Err(why) => json!({"error": why.to_string()}),
    }
}

impl RunOutput {
    fn add_text(&mut self, text: &str) {
        let room = MAX_RUN_OUTPUT_BYTES.saturating_sub(self.output.len());
        self.output.extend_from_slice(&text.as_bytes()[..text.floor_char_boundary(room)]);
    }

    /// Starts a new line unless the output is at the start of one.
    fn start_line(&mut self) {
        if !self.output.is_empty() && !self.output.ends_with(b"\n") {
            self.add_text("\n");
        }
    }

    /// Adds a value as text, with its image as an attachment.
    fn add_value(&mut self, data: &Value, may_show: bool) {
        self.start_line();
        let pictures = IMAGE_MIME_TYPES.into_iter().filter(|mime| !data[mime].is_null());
        if !may_show && pictures.count() > 0 {
            self.add_text("(a picture was left out: the tool has no ui permission)\n");
        }
        for mime in IMAGE_MIME_TYPES.into_iter().filter(|_| may_show) {
            let bytes = match (&data[mime], mime.ends_with("ml") || mime.ends_with("json")) {
                (Value::Null, _) => continue,
                (Value::String(text), true) => Some(text.as_bytes().to_vec()),
                (Value::String(text), false) => {
                    base64::engine::general_purpose::STANDARD.decode(text.trim_ascii()).ok()
                }
                (value, _) => Some(value.to_string().into_bytes()),
            };
            if let Some(bytes) = bytes.filter(|_| self.pictures.len() < MAX_RUN_IMAGES) {
                self.add_text(&format!("(a picture, {mime}, {} bytes)\n", bytes.len()));
                self.pictures.push((mime.to_owned(), bytes));
            }
            break;
        }
        if let Some(text) = data["text/plain"].as_str() {
            self.add_text(text);
            self.add_text("\n");
        }
    }
}
