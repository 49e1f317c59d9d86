//! Shell tool: runs a command line for `sh` in its own `tracebook sandbox` process, which is killed with everything it
//! started.

use super::path_limits::time_over_note;
use super::truncate::truncate_output;
use super::{MAX_JOB_SECS, StopSignal, ToolWorkspace};
use crate::fs::confined_dir::ConfinedFolder;
use crate::fs::file_rights::create_private_folder;
use crate::fs::volume_snapshot::VolumeSnapshot;
use crate::sandbox::granted_paths;
use crate::sandbox::{
    MAX_ADDED_BYTES, MAX_FILE_BYTES, MAX_MEMORY_BYTES, MAX_PROCESSES, SandboxOrder, SandboxReport, SandboxVerdict,
};
use crate::sandbox_limits::process_rules;
use ::sandbox::{FolderGrowth, ProcessCensus, ProcessExcess, command_environment};
use agent::config::SandboxLimits;
use agent::tool_job::ToolOutcome;
use anyhow::{anyhow, bail};
use rand::TryRngCore;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum bytes of output; a command that prints more is stopped.
const MAX_SHELL_OUTPUT_BYTES: usize = 50 << 20;
/// Maximum length of a command line in bytes.
const MAX_COMMAND_BYTES: usize = 100 << 10;
/// Interval for checking whether the command was canceled or has exceeded a limit.
const SHELL_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a command of an agent's program stays in the foreground, though the program needs something else.
const FOREGROUND_TIME: Duration = Duration::from_millis(500);
/// Result of a command that continues in the background.
const IN_BACKGROUND: &str = "It continues in the background. A later step says how it ended.";
/// Time limit for reading output that is still in the pipe after the command has ended.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The command to run, with its folder, time limit and network access.
pub(super) struct ShellRun<'a> {
    pub(super) root: &'a Path,
    pub(super) path: &'a str,
    pub(super) command: &'a str,
    pub(super) seconds: u64,
    pub(super) network: bool,
    pub(super) limits: &'a SandboxLimits,
}

/// How the command ended.
enum ShellExit {
    Verdict(SandboxVerdict),
    TimedOut,
    Cancelled,
    /// It hasn't ended: it continues in the background.
    Background,
    TooMuchOutput,
    Excess(ProcessExcess),
    /// It added too much to its folders, as this note says.
    Grown(String),
    /// The sandbox's own process ended without a report.
    Silent,
}

pub(super) fn run(place: &ToolWorkspace, shell: &ShellRun<'_>, stop: &StopSignal) -> anyhow::Result<ToolOutcome> {
    if shell.command.len() > MAX_COMMAND_BYTES || shell.command.contains('\0') {
        bail!("a command has at most {} kB and no zero byte", MAX_COMMAND_BYTES >> 10);
    }
    let seconds = shell.seconds.clamp(1, MAX_JOB_SECS);
    let root = ConfinedFolder::open_root(shell.root)?;
    let folder = root.open_folder(shell.path)?;
    let private = PrivateFolder::new()?;
    // Processor time: a process may use all processors the whole time.
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let order = SandboxOrder {
        command: shell.command.to_owned(),
        write: granted_paths(root.original_path(), place.home.as_deref(), &place.workspace),
        root: Some(root.original_path().to_owned()),
        private: vec![private.path.clone()],
        read: place.readable.clone(),
        network: shell.network,
        cpu_percent: shell.limits.cpu_percent,
        seconds: shell.limits.cpu_seconds.unwrap_or(seconds.saturating_mul(processors) + 1),
        rules: process_rules(root.original_path(), &shell.limits.paths).into(),
        memory_bytes: shell.limits.memory_bytes.unwrap_or(MAX_MEMORY_BYTES),
        processes: shell.limits.processes.unwrap_or(MAX_PROCESSES),
        file_bytes: shell.limits.file_bytes.unwrap_or(MAX_FILE_BYTES),
    };
    let before = VolumeSnapshot::capture(&root, &place.workspace);
    let grown = vec![root.original_path().to_owned(), private.path.clone()];
    let growth = FolderGrowth::limited(grown, shell.limits.disk_bytes, MAX_ADDED_BYTES);
    let mut running = ShellProcess::start(place, &order, (folder.original_path(), &private.path), growth)?;
    if let Some(command) = &stop.command {
        command.start(running.output.clone());
    }
    let limits = (seconds, order.processes, shell.limits.memory_bytes);
    let end = running.wait_for_exit(Duration::from_secs(seconds), stop);
    if let (ShellExit::Background, Some(command)) = (&end, stop.command.clone()) {
        let (place, stop) = (place.clone(), stop.clone());
        std::thread::spawn(move || {
            let end = running.wait_for_exit(Duration::from_secs(seconds), &stop);
            // What it has changed is found when the program reports its end.
            let done = finish(&place, (running, private), (&root, &before), end, limits);
            let done = done.map(|outcome| (outcome.success, outcome.text));
            let (success, text) = done.unwrap_or_else(|why| (false, why.to_string()));
            command.end(acp::ActionResult { success, text });
        });
        return Ok(ToolOutcome { success: true, text: IN_BACKGROUND.to_owned(), ..ToolOutcome::default() });
    }
    finish(place, (running, private), (&root, &before), end, limits)
}

/// Ends what is left of a command, and returns its outcome.
fn finish(
    place: &ToolWorkspace,
    (mut running, private): (ShellProcess, PrivateFolder),
    (root, before): (&ConfinedFolder, &VolumeSnapshot),
    mut end: ShellExit,
    (seconds, processes, memory_bytes): (u64, usize, Option<u64>),
) -> anyhow::Result<ToolOutcome> {
    running.end_group();
    if matches!(end, ShellExit::Verdict(SandboxVerdict::Exited(_))) && running.growth.has_grown_too_much() {
        end = ShellExit::Grown(running.growth.excess_note());
    }
    let mut output = running.read_output();
    drop(private);
    if output.len() > MAX_SHELL_OUTPUT_BYTES {
        end = ShellExit::TooMuchOutput; // also where it ended of that by itself: nobody listened any more
        output.truncate(MAX_SHELL_OUTPUT_BYTES);
    }
    let note = match &end {
        ShellExit::Verdict(SandboxVerdict::Refused(why)) => bail!("{why}"),
        ShellExit::Verdict(SandboxVerdict::Exited(0)) if output.is_empty() => "(no output)".to_owned(),
        ShellExit::Verdict(SandboxVerdict::Exited(0)) => String::new(),
        ShellExit::Verdict(SandboxVerdict::Exited(code)) => format!("(exit code {code})"),
        ShellExit::Verdict(SandboxVerdict::Signal(signal)) => format!("(ended by signal {signal})"),
        ShellExit::Excess(ProcessExcess::Memory) => match memory_bytes {
            Some(most) => format!("(stopped: it took more than {} MB of memory)", most >> 20),
            None => format!("(stopped: it took more than {} GB of memory)", MAX_MEMORY_BYTES >> 30),
        },
        ShellExit::Excess(ProcessExcess::Tasks) => format!("(stopped: it made more than {processes} processes)"),
        ShellExit::Grown(note) => note.clone(),
        ShellExit::TimedOut => time_over_note("", seconds),
        ShellExit::Cancelled | ShellExit::Background => "(cancelled)".to_owned(),
        ShellExit::TooMuchOutput => format!("(stopped: it printed more than {} MB)", MAX_SHELL_OUTPUT_BYTES >> 20),
        ShellExit::Silent => "(the sandbox ended without a word)".to_owned(),
    };
    let success = matches!(end, ShellExit::Verdict(SandboxVerdict::Exited(0)));
    let (changed, remarks) = before.changes_since(root, &place.blobs)?;
    let refused = running.refused.iter().map(|refused| format!("(not written: {refused})"));
    let notes = [note].into_iter().filter(|note| !note.is_empty()).chain(refused).chain(remarks);
    let (text, whole) = append_end_note(output, &notes.collect::<Vec<_>>().join("\n"), place)?;
    Ok(ToolOutcome { success, text, whole, changed, ..ToolOutcome::default() })
}

/// Runs an empty command in a folder of its own, to test the sandbox.
pub(super) fn probe_sandbox(place: &ToolWorkspace) -> anyhow::Result<ToolOutcome> {
    let private = PrivateFolder::new()?;
    let limits = SandboxLimits::default();
    let nothing =
        ShellRun { root: &private.path, path: "", command: ":", seconds: 30, network: false, limits: &limits };
    run(place, &nothing, &StopSignal::default())
}

/// Appends a note about the end to the output, on a line of its own, and truncates both.
pub(super) fn append_end_note(
    mut output: Vec<u8>,
    note: &str,
    place: &ToolWorkspace,
) -> anyhow::Result<(String, Option<store::BlobRef>)> {
    if !note.is_empty() {
        if !output.is_empty() && !output.ends_with(b"\n") {
            output.push(b'\n');
        }
        output.extend_from_slice(note.as_bytes());
    }
    truncate_output(&output, &place.blobs)
}

/// A running sandbox process, with its pipes.
struct ShellProcess {
    child: Child,
    begun: Instant,
    processes: ProcessCensus,
    /// What it adds to its folders.
    growth: FolderGrowth,
    /// Open pipe that shows the sandbox that this process is still alive.
    _input: std::process::ChildStdin,
    verdict: Receiver<Option<SandboxReport>>,
    /// Files that weren't written because other programs would execute them.
    refused: Vec<String>,
    output: Arc<Mutex<Vec<u8>>>,
    /// Receives nothing; it closes when the output has ended or is too long.
    ended: Receiver<()>,
}

impl ShellProcess {
    fn start(
        place: &ToolWorkspace,
        order: &SandboxOrder,
        (folder, private): (&Path, &Path),
        growth: FolderGrowth,
    ) -> anyhow::Result<ShellProcess> {
        let fail = |error: std::io::Error| anyhow!("the sandbox could not be started ({error})");
        let (mut from, to) = std::io::pipe().map_err(fail)?;
        let mut command = Command::new(&place.program);
        command.arg("sandbox").current_dir(folder).env_clear().envs(command_environment(private, &place.readable));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(to);
        let mut child = command.spawn().map_err(fail)?;
        drop(command); // and with it our end of the pipe
        let processes = ProcessCensus::new(child.id(), (order.processes, order.memory_bytes));
        let (Some(mut input), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            end_child(&mut child);
            bail!("the sandbox could not be started (no pipe)");
        };
        let line = serde_json::to_string(order).map_err(|error| anyhow!("the command cannot be handed on ({error})"));
        let given = line.and_then(|line| writeln!(input, "{line}").and_then(|()| input.flush()).map_err(fail));
        if let Err(why) = given {
            end_child(&mut child);
            return Err(why);
        }
        let (tell, verdict) = channel();
        std::thread::spawn(move || {
            let mut words = String::new();
            let read = said.take(1 << 16).read_to_string(&mut words);
            // If the receiver is gone, the report isn't needed.
            let _ = tell.send(read.ok().and_then(|_| serde_json::from_str(&words).ok()));
        });
        let output: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (alive, ended) = channel();
        let all = output.clone();
        std::thread::spawn(move || {
            let _alive: std::sync::mpsc::Sender<()> = alive;
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_SHELL_OUTPUT_BYTES + 1 - all.len();
                all.extend_from_slice(&buffer[..count.min(room)]);
                if all.len() > MAX_SHELL_OUTPUT_BYTES {
                    return;
                }
            }
        });
        let (begun, refused) = (Instant::now(), Vec::new());
        Ok(ShellProcess { child, begun, processes, growth, _input: input, verdict, refused, output, ended })
    }

    fn wait_for_exit(&mut self, time: Duration, stop: &StopSignal) -> ShellExit {
        loop {
            match self.verdict.recv_timeout(SHELL_POLL_INTERVAL) {
                Ok(Some(report)) => {
                    self.refused = report.refused;
                    return ShellExit::Verdict(report.verdict);
                }
                Ok(None) | Err(RecvTimeoutError::Disconnected) => return ShellExit::Silent,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.is_stopped() {
                return ShellExit::Cancelled;
            } else if self.begun.elapsed() >= time {
                return ShellExit::TimedOut;
            } else if self.begun.elapsed() >= FOREGROUND_TIME
                && stop.command.as_ref().is_some_and(acp::RunningCommand::continue_in_background)
            {
                return ShellExit::Background;
            } else if self.output.lock().unwrap_or_else(PoisonError::into_inner).len() > MAX_SHELL_OUTPUT_BYTES {
                return ShellExit::TooMuchOutput;
            } else if let Some(excess) = self.processes.find_excess() {
                return ShellExit::Excess(excess);
            } else if self.growth.is_exceeded() {
                return ShellExit::Grown(self.growth.excess_note());
            }
        }
    }

    fn end_group(&mut self) {
        end_child(&mut self.child);
    }

    /// Returns all output, after all processes that could print more have ended.
    fn read_output(&self) -> Vec<u8> {
        // Whatever was printed until the timeout is the output.
        let _ = self.ended.recv_timeout(PIPE_DRAIN_TIMEOUT);
        // An agent's program may still look at it.
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Kills the sandbox's process and its group, whether or not the group exists yet.
pub(super) fn end_child(child: &mut Child) {
    #[cfg(unix)]
    let group = || {
        let group = rustix::process::Pid::from_child(child);
        // Fails only if all processes of the group have ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    };
    #[cfg(unix)]
    group();
    // Fails only if the process has ended already.
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), rustix::process::Signal::KILL);
    // The process may have created its group and started others between these two calls. It can't start any after this.
    #[cfg(unix)]
    group();
    // Fails only if the process has ended already; then it's reaped below.
    #[cfg(not(unix))]
    let _ = child.kill();
    // Reaps the process; its exit status was read before, or doesn't matter.
    let _ = child.wait();
    // A killed process ends when it's next scheduled; wait, so that the caller finds it ended.
    let begun = Instant::now();
    while begun.elapsed() < PIPE_DRAIN_TIMEOUT && ::sandbox::is_group_alive(child.id()) {
        std::thread::sleep(SHELL_POLL_INTERVAL);
    }
}

/// A folder for this tool only, which is removed on drop.
pub(super) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn new() -> anyhow::Result<PrivateFolder> {
        let fail = |error: std::io::Error| anyhow!("there is no room for the tool's own files ({error})");
        let number = rand::rngs::OsRng.try_next_u64().map_err(|error| fail(std::io::Error::other(error)))?;
        let above = std::env::temp_dir().canonicalize().map_err(fail)?;
        let path = above.join(format!("tracebook-tool-{number:016x}"));
        create_private_folder(&path).map_err(fail)?;
        Ok(PrivateFolder { path })
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path); // a folder that the tool has shut stays until the system cleans up
    }
}
