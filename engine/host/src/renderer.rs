//! Worker processes that draw and lay out notes.
//!
//! Each job has a budget of CPU time and memory, and its process is killed beyond it. A thread couldn't be stopped, nor
//! its memory bounded.
//!
//! A worker is this program, started as `tracebook renderer`. It reads a job from standard input, may ask questions
//! while it works, and answers on standard output. Only the caller knows the meaning of jobs and answers; they are
//! bytes here. A worker serves many jobs, one at a time, so that an ordinary drawing needs no new process.

mod frames;
mod worker;

pub use worker::{JobAsker, serve};

use crate::process_group::start_in_own_group;
use frames::{FrameKind, RenderFrame, read, write};
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Path of the worker program, as given when the first workspace was opened.
static WORKER_PROGRAM: OnceLock<PathBuf> = OnceLock::new();
/// Workers without a job.
static IDLE_WORKERS: Mutex<Vec<RenderWorker>> = Mutex::new(Vec::new());
/// Maximum number of idle workers kept.
const MAX_IDLE_WORKERS: usize = 3;
/// Maximum number of concurrent jobs per queue. Further jobs wait.
const MAX_CONCURRENT_JOBS: usize = 2;
/// Interval of checks while a worker runs a job.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A worker that gets no CPU is killed after this many times its time budget.
const STARVATION_FACTOR: u32 = 10;
/// Maximum length of a worker's standard error that's kept, in bytes.
const MAX_WORKER_ERROR_BYTES: u64 = 8 << 10;

/// Environment variables that a worker gets: font paths, and no secrets.
const WORKER_VARIABLES: [&str; 13] = [
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "SystemRoot",
    "TEMP",
    "WINDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
];

/// Time and memory that a job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderBudget {
    /// CPU time of the worker, plus the caller's time to answer the worker's questions.
    pub time: Duration,
    /// Additional memory of the worker during the job, in bytes.
    pub memory: u64,
}

/// Queues of jobs. They are separate because laying out a note requests drawings meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderQueue {
    /// One drawing of a note.
    Drawing,
    /// A whole note or document.
    Note,
}

/// A message to or from a worker: a header that describes it, and a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderMessage {
    /// The JSON header.
    pub head: Vec<u8>,
    /// The binary body.
    pub body: Vec<u8>,
}

/// An answer to a worker's question.
#[derive(Debug, Default)]
pub struct RenderAnswer {
    /// The message to the worker.
    pub message: RenderMessage,
    /// Time budget to restart with, if the worker begins something else; `None` to continue.
    pub renew: Option<Duration>,
    /// Additional time for the current work.
    pub time: Duration,
    /// Additional memory, in bytes.
    pub memory: u64,
    /// Whether the time that this answer took is free for the worker, because it had a separate budget.
    pub is_free: bool,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderFailure {
    /// The job takes longer than this budget.
    Time(Duration),
    /// The job needs more memory than this, in bytes.
    Memory(u64),
    /// The job's content is nested too deeply for the stack.
    Depth,
    /// The worker ended, with its status or error.
    Ended(String),
    /// No worker could be started, with the reason.
    Start(String),
    /// The caller stopped it.
    Stopped,
}

impl std::fmt::Display for RenderFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RenderFailure::Time(time) if time.as_millis() % 1_000 == 0 => {
                write!(f, "it takes longer than {} s", time.as_secs())
            }
            RenderFailure::Time(time) => write!(f, "it takes longer than {:.1} s", time.as_secs_f64()),
            RenderFailure::Memory(bytes) => write!(f, "it needs more than {} MB of memory", bytes >> 20),
            RenderFailure::Depth => write!(f, "it is nested too deeply"),
            RenderFailure::Ended(how) => write!(f, "the process that draws failed ({how})"),
            RenderFailure::Start(why) => write!(f, "the process that draws could not be started ({why})"),
            RenderFailure::Stopped => write!(f, "it was stopped"),
        }
    }
}

impl std::error::Error for RenderFailure {}

/// Sets the worker program. Only the first call has an effect.
pub(crate) fn set_worker_program(program: &std::path::Path) {
    WORKER_PROGRAM.get_or_init(|| program.to_owned());
}

/// Runs a job on a worker. `answer` answers the worker's questions; returning `None` stops the job.
///
/// # Errors
/// Returns why the job failed.
pub fn run_render_job(
    line: RenderQueue,
    job: &RenderMessage,
    budget: RenderBudget,
    answer: &mut dyn FnMut(RenderMessage) -> Option<RenderAnswer>,
) -> Result<RenderMessage, RenderFailure> {
    let _turn = RenderSlot::wait_for_slot(line);
    let mut worker = match take_idle_worker() {
        Some(worker) => worker,
        None => RenderWorker::start()?,
    };
    let done = worker.run_job(job, budget, answer);
    match done {
        Ok((message, fit)) => {
            if fit
                && let Ok(mut idle) = IDLE_WORKERS.lock()
                && idle.len() < MAX_IDLE_WORKERS
            {
                idle.push(worker);
            }
            Ok(message)
        }
        Err(failure) => {
            worker.kill();
            Err(failure)
        }
    }
}

/// Takes an idle worker that's still running.
fn take_idle_worker() -> Option<RenderWorker> {
    let mut idle = IDLE_WORKERS.lock().ok()?;
    while let Some(mut worker) = idle.pop() {
        if let Ok(None) = worker.child.try_wait() {
            return Some(worker);
        }
    }
    None
}

/// A slot among the running jobs, freed on drop.
struct RenderSlot(RenderQueue);

static RUNNING_JOBS: Mutex<[usize; 2]> = Mutex::new([0; 2]);
static SLOT_FREED: Condvar = Condvar::new();

impl RenderSlot {
    fn wait_for_slot(line: RenderQueue) -> RenderSlot {
        let mut running = RUNNING_JOBS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while running[line as usize] >= MAX_CONCURRENT_JOBS {
            running = SLOT_FREED.wait(running).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        running[line as usize] += 1;
        RenderSlot(line)
    }
}

impl Drop for RenderSlot {
    fn drop(&mut self) {
        RUNNING_JOBS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[self.0 as usize] -= 1;
        SLOT_FREED.notify_all();
    }
}

/// A worker process.
struct RenderWorker {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<RenderFrame>,
    errors: Arc<Mutex<Vec<u8>>>,
}

impl RenderWorker {
    fn start() -> Result<RenderWorker, RenderFailure> {
        let program = match WORKER_PROGRAM.get() {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|error| RenderFailure::Start(error.to_string()))?,
        };
        let mut command = Command::new(program);
        command.arg("renderer");
        RenderWorker::start_command(command)
    }

    fn start_command(mut command: Command) -> Result<RenderWorker, RenderFailure> {
        let fail = |error: std::io::Error| RenderFailure::Start(error.to_string());
        // A terminal's Ctrl-C must reach only the main program. A worker ends when its input closes.
        start_in_own_group(&mut command);
        let environment = WORKER_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.env_clear().envs(environment).current_dir(std::env::temp_dir());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(stderr)) = pipes else {
            return Err(RenderFailure::Start("it has no pipes".to_owned()));
        };
        let (send, frames) = sync_channel(1);
        let read_frames = move || {
            let mut output = BufReader::new(output);
            while let Ok(frame) = read(&mut output) {
                if send.send(frame).is_err() {
                    return;
                }
            }
        };
        let errors: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = errors.clone();
        let read_errors = move || {
            let mut stderr = stderr;
            let mut buffer = [0; 1_024];
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                let Ok(mut kept) = kept.lock() else { return };
                if (kept.len() as u64) < MAX_WORKER_ERROR_BYTES {
                    kept.extend_from_slice(&buffer[..count]);
                }
            }
        };
        std::thread::Builder::new().name("renderer".to_owned()).spawn(read_frames).map_err(fail)?;
        std::thread::Builder::new().name("renderer errors".to_owned()).spawn(read_errors).map_err(fail)?;
        Ok(RenderWorker { child, input: Some(input), frames, errors })
    }

    /// Runs a job. Also returns whether the worker can be reused.
    fn run_job(
        &mut self,
        job: &RenderMessage,
        budget: RenderBudget,
        answer: &mut dyn FnMut(RenderMessage) -> Option<RenderAnswer>,
    ) -> Result<(RenderMessage, bool), RenderFailure> {
        let mut memory = budget.memory;
        self.send_frame(FrameKind::Job, job, memory, memory)?;
        let mut clock = JobClock::start(self.child.id(), budget.time);
        loop {
            match self.frames.recv_timeout(WORKER_POLL_INTERVAL) {
                Ok(RenderFrame { kind: FrameKind::Done { fit }, message, .. }) => return Ok((message, fit)),
                Ok(RenderFrame { kind: FrameKind::Broken, .. }) => {
                    return Err(RenderFailure::Ended("it ran into an error of its own".to_owned()));
                }
                Ok(RenderFrame { kind: FrameKind::Question, message, .. }) => {
                    let begun = Instant::now();
                    let Some(answer) = answer(message) else { return Err(RenderFailure::Stopped) };
                    match answer.renew {
                        Some(time) => clock = JobClock::start(self.child.id(), time),
                        None => clock.record_answer(begun.elapsed(), &answer),
                    }
                    memory = memory.saturating_add(answer.memory);
                    self.send_frame(FrameKind::Answer, &answer.message, memory, memory)?;
                }
                Ok(RenderFrame { kind: FrameKind::Job | FrameKind::Answer, .. }) => {
                    return Err(RenderFailure::Ended("it said something else than it was asked".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.end_failure(memory)),
            }
            if clock.is_budget_used_up() {
                return Err(RenderFailure::Time(clock.budget));
            }
        }
    }

    fn send_frame(
        &mut self,
        kind: FrameKind,
        message: &RenderMessage,
        limit: u64,
        memory: u64,
    ) -> Result<(), RenderFailure> {
        let sent = match &mut self.input {
            Some(input) => write(input, kind, message, limit),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        // A worker that accepts no input has ended.
        sent.map_err(|_| self.end_failure(memory))
    }

    /// Returns why the worker ended.
    fn end_failure(&mut self, memory: u64) -> RenderFailure {
        let status = self.wait();
        let errors = self.errors.lock().map(|errors| String::from_utf8_lossy(&errors).into_owned()).unwrap_or_default();
        if errors.contains("memory allocation of") || errors.contains("Cannot allocate memory") {
            return RenderFailure::Memory(memory);
        }
        if errors.contains("overflowed its stack") {
            return RenderFailure::Depth;
        }
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
        RenderFailure::Ended(match status {
            Some(status) if last.is_empty() => status.to_string(),
            Some(status) => format!("{status}: {last}"),
            None => "it closed its output".to_owned(),
        })
    }

    /// Waits for the process to exit, which is imminent because its output has ended.
    fn wait(&mut self) -> Option<ExitStatus> {
        drop(self.input.take());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            if let Ok(Some(status)) = self.child.try_wait() {
                // Another thread reads its last error output.
                std::thread::sleep(WORKER_POLL_INTERVAL);
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn kill(mut self) {
        let _ = self.child.kill(); // it may have ended already
        // Reaps the process. Its exit status isn't needed.
        let _ = self.child.wait();
    }
}

/// Measures the time that a job has used.
struct JobClock {
    pid: u32,
    budget: Duration,
    /// CPU time of the process when the job began.
    computed: Option<Duration>,
    begun: Instant,
    /// Time that the caller took for answers, which counts against the budget.
    answering: Duration,
    /// Time of answers that had a separate budget.
    free: Duration,
    looked: Instant,
}

impl JobClock {
    fn start(pid: u32, budget: Duration) -> JobClock {
        let now = Instant::now();
        let (answering, free) = (Duration::ZERO, Duration::ZERO);
        JobClock { pid, budget, computed: process_cpu_time(pid), begun: now, answering, free, looked: now }
    }

    fn record_answer(&mut self, took: Duration, answer: &RenderAnswer) {
        if answer.is_free {
            self.free += took;
        } else {
            self.answering += took;
        }
        self.budget += answer.time;
    }

    /// Returns whether the budget is used up. CPU time counts instead of elapsed time, because a worker may wait for a
    /// CPU on a busy machine.
    fn is_budget_used_up(&mut self) -> bool {
        if self.looked.elapsed() < WORKER_POLL_INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        let passed = self.begun.elapsed().saturating_sub(self.free);
        if passed <= self.budget {
            return false;
        }
        match (self.computed, process_cpu_time(self.pid)) {
            (Some(before), Some(now)) => {
                now.saturating_sub(before) + self.answering > self.budget || passed > self.budget * STARVATION_FACTOR
            }
            _ => true,
        }
    }
}

/// Number of ticks per second in `/proc`. Linux promises programs 100, no matter how fast its own clock is (proc(5),
/// time(7)).
#[cfg(target_os = "linux")]
const TICKS_PER_SECOND: u64 = 100;

/// Returns the CPU time of a process; `None` if the system doesn't report it.
#[cfg(target_os = "linux")]
fn process_cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks.saturating_mul(1_000) / TICKS_PER_SECOND))
}

#[cfg(not(target_os = "linux"))]
fn process_cpu_time(_: u32) -> Option<Duration> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// Runs a job on a shell script, which stands for the worker's process and first reads the frame of the job.
    fn run_script(script: &str, time: Duration) -> Result<(RenderMessage, bool), RenderFailure> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("head -c 25 >/dev/null; {script}")]);
        let mut worker = RenderWorker::start_command(command).expect("a shell");
        let budget = RenderBudget { time, memory: 1 << 20 };
        let done = worker.run_job(&RenderMessage::default(), budget, &mut |_| None);
        worker.kill();
        done
    }

    #[test]
    fn nothing_hangs_and_nothing_ends_the_program() {
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(10));
        let frame = |kind: &str| run_script(&format!("printf '\\{kind}'; head -c 24 /dev/zero"), long);
        assert_eq!(frame("004"), Ok((RenderMessage::default(), true)));
        assert_eq!(frame("002"), Err(RenderFailure::Stopped), "its question had no answer");
        let panicked = frame("005");
        assert!(matches!(&panicked, Err(RenderFailure::Ended(why)) if why.contains("of its own")), "{panicked:?}");
        let died = run_script("kill -9 $$", long);
        assert!(matches!(died, Err(RenderFailure::Ended(_))), "{died:?}");
        assert_eq!(run_script("while :; do :; done", short), Err(RenderFailure::Time(short)));
    }
}
