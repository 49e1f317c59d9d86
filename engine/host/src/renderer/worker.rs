//! The worker process of the renderer: reads jobs, limits its memory to their budgets, and ends when its input closes.

use super::frames::{FrameKind, RenderFrame, read, write};
use super::{RenderFailure, RenderMessage};
use std::io::{BufReader, BufWriter, Stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};

/// Stack size of the working thread in bytes. Parsers of deeply nested text are recursive.
const WORKER_STACK_BYTES: usize = 32 << 20;
/// Maximum memory in bytes that a worker may keep after jobs and still be reused.
const MAX_MEMORY_GROWTH_BYTES: u64 = 96 << 20;

/// Asks the process that gave the job.
pub struct JobAsker {
    frames: Receiver<RenderFrame>,
    output: BufWriter<Stdout>,
    /// Private memory of this process when the job began, in bytes.
    before: Option<u64>,
}

impl JobAsker {
    /// Sends a question and waits for the answer.
    ///
    /// # Errors
    /// Returns [`RenderFailure::Stopped`] if nobody answers.
    pub fn ask(&mut self, question: &RenderMessage) -> Result<RenderMessage, RenderFailure> {
        write(&mut self.output, FrameKind::Question, question, 0).map_err(|_| RenderFailure::Stopped)?;
        match self.frames.recv() {
            Ok(RenderFrame { kind: FrameKind::Answer, memory, message }) => {
                limit_memory(self.before, memory);
                Ok(message)
            }
            Ok(_) | Err(_) => Err(RenderFailure::Stopped),
        }
    }
}

/// Runs the worker process until its input ends.
pub fn serve(perform: fn(RenderMessage, &mut JobAsker) -> RenderMessage) -> ExitCode {
    let work = move || {
        let (send, frames) = sync_channel(1);
        let listen = move || {
            let mut input = BufReader::new(std::io::stdin());
            while let Ok(frame) = read(&mut input) {
                if send.send(frame).is_err() {
                    break;
                }
            }
            // Nobody needs the result, so stop at once.
            std::process::exit(0);
        };
        if std::thread::Builder::new().name("input".to_owned()).spawn(listen).is_err() {
            return ExitCode::FAILURE;
        }
        // The parent process reports the reason itself, so a panic prints nothing.
        std::panic::set_hook(Box::new(|_| ()));
        let output = BufWriter::new(std::io::stdout());
        let first = private_memory_bytes();
        let mut asker = JobAsker { frames, output, before: None };
        while let Ok(RenderFrame { kind: FrameKind::Job, memory, message }) = asker.frames.recv() {
            asker.before = private_memory_bytes();
            limit_memory(asker.before, memory);
            let done = catch_unwind(AssertUnwindSafe(|| perform(message, &mut asker)));
            let grown = private_memory_bytes()
                .zip(first)
                .is_none_or(|(now, first)| now.saturating_sub(first) < MAX_MEMORY_GROWTH_BYTES);
            let sent = match done {
                Ok(message) => write(&mut asker.output, FrameKind::Done { fit: grown }, &message, 0),
                Err(_) => write(&mut asker.output, FrameKind::Broken, &RenderMessage::default(), 0),
            };
            if sent.is_err() {
                break;
            }
        }
        ExitCode::SUCCESS
    };
    match std::thread::Builder::new().name("work".to_owned()).stack_size(WORKER_STACK_BYTES).spawn(work) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the private memory of this process in bytes, as counted by `RLIMIT_DATA`.
#[cfg(target_os = "linux")]
fn private_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Limits the additional memory of this process. An allocation beyond the limit ends the process.
#[cfg(target_os = "linux")]
fn limit_memory(before: Option<u64>, memory: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let Some(before) = before else { return };
    let mut limit = getrlimit(Resource::Data);
    limit.current = Some(before.saturating_add(memory).min(limit.maximum.unwrap_or(u64::MAX)));
    let _ = setrlimit(Resource::Data, limit); // without it, time alone is limited
}

// Other systems have no limit on private memory. There, time and the size of each kind of input are limited.
#[cfg(not(target_os = "linux"))]
fn private_memory_bytes() -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: Option<u64>, _: u64) {}
