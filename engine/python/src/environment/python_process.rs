//! The CPython process: starts it in its sandbox, sends it requests and signals, and ends it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::interpreter_paths::interpreter_paths;
use super::native_output::NativeOutput;
use super::{EnvironmentKernel, PythonGoneError, lock};
use crate::outbox::{KernelOutbox, OutputStream};
use crate::sandbox::interpreter_policy;
use crate::stdin_request::asks_host;

/// Maximum length of a line from Python, which is that of a message to the host.
const MAX_PYTHON_LINE_BYTES: u64 = 64 << 20;
/// Maximum size of a file that a cell writes.
const MAX_WRITTEN_FILE_BYTES: u64 = 4 << 30;
/// Maximum number of open files.
const MAX_OPEN_FILES: u64 = 1_024;
/// Memory limit for Python on a machine that doesn't report its memory.
const FALLBACK_MEMORY_BYTES: u64 = 8 << 30;
/// Prefix of these kernels' temporary folders; the process number follows.
const TEMPORARY_FOLDER_PREFIX: &str = "tracebook-kernel-";

/// Code that Python is started with: it reads the harness from the pipe and runs it.
const START_SOURCE: &str = include_str!("../environment_start.py");
const SERVE_SOURCE: &str = include_str!("../environment.py");
/// Module through which a tool's program asks the host.
const WEB_SOURCE: &str = include_str!("../web.py");

/// A message from Python that the thread of cells waits for.
pub(super) enum PythonReply {
    /// Python has started.
    Ready { version: String },
    /// Python is ready for a new request: interrupts from now on apply to it.
    Prepared,
    /// A request is finished; the content of its reply.
    Done(Value),
}

/// Why Python could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum PythonStartError {
    #[error("{0} isn't there; make the environment again or name another interpreter")]
    NoInterpreter(PathBuf),
    #[error("the walls around cells can't be built here, so no cell runs: {0}")]
    NoWalls(#[from] ::sandbox::SandboxError),
    #[error("{path} can't be started: {error}")]
    NotStarted { path: PathBuf, error: std::io::Error },
    #[error("a pipe or a thread is missing: {0}")]
    NoPipe(#[from] std::io::Error),
}

/// The running process.
pub(super) struct PythonProcess {
    child: Mutex<Child>,
    ended: Mutex<Option<ExitStatus>>,
    requests: Mutex<File>,
    output: Vec<Arc<NativeOutput>>,
    temporary: PathBuf,
}

impl PythonProcess {
    /// Starts Python, and a thread that passes its messages to `outbox` and `replies`. `question` receives the number
    /// of Python's latest input request.
    pub(super) fn start(
        kernel: &EnvironmentKernel,
        outbox: &'static KernelOutbox,
        question: &Arc<AtomicU64>,
        replies: Sender<PythonReply>,
    ) -> Result<PythonProcess, PythonStartError> {
        if !kernel.python.is_file() {
            return Err(PythonStartError::NoInterpreter(kernel.python.clone()));
        }
        let temporary = make_temporary_folder()?;
        let (to_read, requests) = std::io::pipe()?;
        let (said, to_say) = std::io::pipe()?;
        let (printed, stdout) = std::io::pipe()?;
        let (complained, stderr) = std::io::pipe()?;
        let mut command = Command::new(&kernel.python);
        let inherited = [to_read.as_raw_fd(), to_say.as_raw_fd()];
        command.args(["-I", "-B", "-X", "utf8", "-c", START_SOURCE]).args(inherited.map(|number| number.to_string()));
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        command.env("TMPDIR", &temporary).env("XDG_CACHE_HOME", temporary.join("cache"));
        command.env("MPLCONFIGDIR", temporary.join("matplotlib")).env("PYTHONNOUSERSITE", "1");
        // joblib would try to create a semaphore for its processes, and warn that the sandbox doesn't allow it.
        command.env("JOBLIB_MULTIPROCESSING", "0");
        let memory = machine_memory_bytes().min(kernel.grants.memory_bytes.unwrap_or(u64::MAX));
        let file_bytes = kernel.grants.file_bytes.unwrap_or(MAX_WRITTEN_FILE_BYTES);
        let cpu_seconds = kernel.grants.cpu_seconds;
        #[allow(unsafe_code, reason = "std has no way to keep a descriptor open in a child, nor for its limits")]
        // SAFETY: between fork and exec, the closure only makes system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || prepare_child(inherited, memory, file_bytes, cpu_seconds));
        }
        let (child, walls) = start_confined(kernel, command, &temporary)?;
        drop((to_read, to_say));
        let process = PythonProcess {
            child: Mutex::new(child),
            ended: Mutex::default(),
            requests: Mutex::new(File::from(std::os::fd::OwnedFd::from(requests))),
            output: vec![
                NativeOutput::start(File::from(std::os::fd::OwnedFd::from(printed)), OutputStream::Out, outbox)?,
                NativeOutput::start(File::from(std::os::fd::OwnedFd::from(complained)), OutputStream::Err, outbox)?,
            ],
            temporary,
        };
        let question = question.clone();
        std::thread::Builder::new().name("replies".into()).spawn(move || {
            read_replies(BufReader::new(said), outbox, &question, &replies);
        })?;
        let harness = format!("{}\n\n{SERVE_SOURCE}", crate::CPYTHON_HARNESS);
        let web = if asks_host() { WEB_SOURCE } else { "" };
        let start = json!({
            "harness": harness, "advice": kernel.advice, "walls": walls, "web": web,
            "backend": crate::MATPLOTLIB_BACKEND,
        });
        // If Python has ended already, the reading thread detects it.
        let _ = process.request(&start);
        Ok(process)
    }

    /// Sends a request, as one line of JSON.
    pub(super) fn request(&self, request: &Value) -> Result<(), PythonGoneError> {
        let mut line = request.to_string();
        line.push('\n');
        lock(&self.requests).write_all(line.as_bytes()).map_err(|_| PythonGoneError)
    }

    /// Sends a signal, unless the process has ended.
    pub(super) fn signal(&self, signal: libc::c_int) {
        let child = lock(&self.child);
        if lock(&self.ended).is_some() {
            return;
        }
        let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
        #[allow(unsafe_code, reason = "std has no wrapper for kill")]
        // SAFETY: waiting for the process takes the lock that is held here, so nobody has waited yet and its number is
        // still its own.
        let done = unsafe { libc::kill(pid, signal) };
        // Fails only if the process is about to end.
        let _ = done;
    }

    /// Returns whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        let mut child = lock(&self.child);
        let mut ended = lock(&self.ended);
        if ended.is_none() {
            *ended = child.try_wait().ok().flatten();
        }
        ended.is_some()
    }

    /// Kills the process and removes its temporary folder.
    pub(super) fn kill(&self) {
        if !self.has_ended() {
            let mut child = lock(&self.child);
            // Both fail only if it has just ended.
            let _ = child.kill();
            *lock(&self.ended) = child.wait().ok();
        }
        // The next kernel that starts removes any remains.
        let _ = std::fs::remove_dir_all(&self.temporary);
    }

    /// Ends the process, and returns how it ended if it did so by itself.
    pub(super) fn end(&self) -> String {
        // Python has closed its pipe, so it's about to end or it hangs.
        for _ in 0..100 {
            if self.has_ended() {
                break;
            }
            std::thread::sleep(super::EXIT_CHECK_INTERVAL);
        }
        let by_itself = self.has_ended();
        self.kill();
        match *lock(&self.ended) {
            Some(status) if by_itself => match status.signal() {
                Some(libc::SIGKILL) => "it was killed, perhaps because memory ran out".to_owned(),
                Some(libc::SIGSEGV) => "native code of a package has crashed (segmentation fault)".to_owned(),
                _ => status.to_string(),
            },
            _ => "it closed its pipe".to_owned(),
        }
    }

    /// Sends the output that native code has printed so far.
    pub(super) fn drain_output(&self) {
        for output in &self.output {
            output.drain();
        }
    }
}

/// Enters the sandbox on a new thread and starts Python from there. Returns the message for denied access, too.
fn start_confined(
    kernel: &EnvironmentKernel,
    mut command: Command,
    temporary: &Path,
) -> Result<(Child, &'static str), PythonStartError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let (mut policy, walls) = interpreter_policy(&kernel.grants, temporary);
    policy.read.extend(interpreter_paths(&kernel.python, home.as_deref()));
    let path = kernel.python.clone();
    let (tell, told) = channel();
    std::thread::Builder::new().name("walls".into()).spawn(move || {
        let confined = ::sandbox::enter(&policy);
        let started = confined.files.and(confined.calls).map_err(PythonStartError::from);
        let started = started
            .and_then(|()| command.spawn().map_err(|error| PythonStartError::NotStarted { path: path.clone(), error }));
        // The receiver waits without a time limit, so it exists.
        let _ = tell.send(started);
        // Python ends with the thread that started it, so this thread lives as long as the process.
        loop {
            std::thread::park();
        }
    })?;
    let child = told.recv().map_err(|_| std::io::Error::other("the thread of the walls has ended"))??;
    Ok((child, walls))
}

/// Prepares the child process before exec: keeps two pipes open, ends it with its parent, and sets resource limits.
fn prepare_child(inherited: [i32; 2], memory: u64, file_bytes: u64, cpu_seconds: Option<u64>) -> std::io::Result<()> {
    let limits = [
        Some((libc::RLIMIT_CORE, 0)),
        Some((libc::RLIMIT_FSIZE, file_bytes)),
        Some((libc::RLIMIT_NOFILE, MAX_OPEN_FILES)),
        Some((libc::RLIMIT_DATA, memory)),
        cpu_seconds.map(|most| (libc::RLIMIT_CPU, most.max(1))),
    ];
    for (kind, most) in limits.into_iter().flatten() {
        let limit = libc::rlimit { rlim_cur: most as libc::rlim_t, rlim_max: most as libc::rlim_t };
        #[allow(unsafe_code, reason = "std has no wrapper for setrlimit")]
        // SAFETY: setrlimit reads the one struct that it is given.
        let done = unsafe { libc::setrlimit(kind, &raw const limit) };
        if done != 0 && kind != libc::RLIMIT_NOFILE {
            return Err(std::io::Error::last_os_error());
        }
    }
    for number in inherited {
        #[allow(unsafe_code, reason = "std has no wrapper for fcntl")]
        // SAFETY: the descriptor is open, and the call touches no memory.
        let done = unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
        if done != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    crate::stdio::die_with_parent();
    Ok(())
}

/// Returns the machine's memory in bytes.
fn machine_memory_bytes() -> u64 {
    let ask = |what| {
        #[allow(unsafe_code, reason = "std has no wrapper for sysconf")]
        // SAFETY: it takes one number and touches no memory.
        let value = unsafe { libc::sysconf(what) };
        u64::try_from(value).ok().filter(|value| *value > 0)
    };
    match (ask(libc::_SC_PHYS_PAGES), ask(libc::_SC_PAGESIZE)) {
        (Some(pages), Some(size)) => pages.saturating_mul(size),
        _ => FALLBACK_MEMORY_BYTES,
    }
}

/// Creates a temporary folder for packages, and removes the folders of kernels that no longer run.
fn make_temporary_folder() -> std::io::Result<PathBuf> {
    let base = std::env::temp_dir();
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_FOLDER_PREFIX));
        let number = number.and_then(|number| number.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new("/proc").join(number.to_string()).exists()) {
            // Fails if it belongs to another user or another kernel is removing it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let folder = base.join(format!("{TEMPORARY_FOLDER_PREFIX}{}", std::process::id()));
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700).create(&folder)?;
    folder.canonicalize()
}

/// Reads Python's messages until it ends. Invalid ones are skipped.
fn read_replies(mut said: impl BufRead, outbox: &KernelOutbox, question: &AtomicU64, replies: &Sender<PythonReply>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(1 << 20); // do not hold on to what one huge message needed
        match said.by_ref().take(MAX_PYTHON_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") => {}
            Ok(_) | Err(_) => return, // the end, or a line beyond all measure
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(&line) else { continue };
        let mut take = |key: &str| message.get_mut(key).map(Value::take);
        let reply = if let (Some(Value::String(kind)), content) = (take("send"), take("content")) {
            send_message(outbox, &kind, content.unwrap_or_default());
            continue;
        } else if let Some(number) = take("ask") {
            question.store(number.as_u64().unwrap_or(0), Ordering::Release);
            if let Some(request) = take("web") {
                if asks_host() {
                    outbox.send("web_request", json!({"request": request}));
                } else {
                    // The host answers no such request, so Python would wait forever.
                    eprintln!("tracebook kernel: a web request without permission");
                    return;
                }
                continue;
            }
            let (prompt, password) = (take("prompt"), take("password"));
            outbox.send("input_request", json!({"prompt": prompt, "password": password == Some(Value::Bool(true))}));
            continue;
        } else if let Some(ready) = take("ready") {
            PythonReply::Ready { version: ready["version"].as_str().unwrap_or("3").to_owned() }
        } else if take("prepared").is_some() {
            PythonReply::Prepared
        } else if let Some(content) = take("reply") {
            PythonReply::Done(content)
        } else {
            continue;
        };
        if replies.send(reply).is_err() {
            return;
        }
    }
}

/// Sends a message of a cell, within the limits of a cell.
fn send_message(outbox: &KernelOutbox, kind: &str, content: Value) {
    match kind {
        "stream" => {
            let stream = if content["name"] == "stderr" { OutputStream::Err } else { OutputStream::Out };
            outbox.print_text(stream, content["text"].as_str().unwrap_or_default());
        }
        "display_data" | "update_display_data" | "execute_result" => outbox.send_display(kind, content),
        "error" => outbox.send_error(content),
        "clear_output" => outbox.send(kind, content),
        _ => {}
    }
}
