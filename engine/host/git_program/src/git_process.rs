//! The process of `git`: what it may run and ask, its output, its progress, and its end when it's canceled.

use crate::GitCaller;
use crate::errors::{GitProgramError, is_percentage};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Maximum size in bytes of the kept output of each stream.
const MAX_KEPT_OUTPUT_BYTES: usize = 1 << 20;
/// Environment variable with the passphrase of the workspace's keys, which hooks and filters don't get.
pub(crate) const PASSPHRASE_VARIABLE: &str = "TRACEBOOK_PASSPHRASE";
/// Environment variables that lead Git to another repository, or change what paths mean. A hook has some of them.
const FOLDER_VARIABLES: [&str; 11] = [
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_INDEX_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];
/// Maximum length in bytes of a line of progress.
const MAX_PROGRESS_LINE_BYTES: usize = 400;
/// Interval for checking whether an operation was canceled.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that Git gets to remove its lock files after a cancel.
const CANCEL_GRACE_TIME: Duration = Duration::from_secs(3);

/// Result of a finished process.
pub(crate) struct GitOutput {
    pub(crate) success: bool,
    pub(crate) output: String,
    pub(crate) messages: String,
}

impl GitOutput {
    /// Returns the output, or if there's none, the last lines of the messages without progress.
    pub(crate) fn printed(&self) -> String {
        let kept = |line: &&str| !line.trim().is_empty() && !is_percentage(line);
        let lines: Vec<&str> = self.output.lines().chain(self.messages.lines()).filter(kept).collect();
        lines.join("\n")
    }
}

/// Runs `git` to its end in a folder, with what its caller may let it do.
pub(crate) fn run_git(
    folder: &Path,
    words: &[OsString],
    caller: GitCaller,
    progress: &mut dyn FnMut(&str),
    is_canceled: &dyn Fn() -> bool,
) -> Result<GitOutput, GitProgramError> {
    let mut command = Command::new("git");
    command.arg("--no-pager").args(["-c", "protocol.ext.allow=never", "-c", "advice.detachedHead=false"]);
    if caller == GitCaller::Agent {
        let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
        command.arg("-c").arg(format!("core.hooksPath={nothing}")).args(["-c", "core.fsmonitor=false"]);
        command.args(["-c", "submodule.recurse=false"]);
    }
    if caller != GitCaller::User {
        // Nothing waits for an answer that nobody can give; a helper with a window of its own still can ask.
        command.env("GIT_TERMINAL_PROMPT", "0").env("SSH_ASKPASS_REQUIRE", "force");
    }
    command.args(words).current_dir(folder);
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE").env_remove(PASSPHRASE_VARIABLE);
    // The repository is the one of the folder, whoever started this program.
    for name in FOLDER_VARIABLES {
        command.env_remove(name);
    }
    command.env("GIT_EDITOR", "true").env("GIT_MERGE_AUTOEDIT", "no");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    if caller != GitCaller::User {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        // A missing folder gives the same error as a missing program.
        std::io::ErrorKind::NotFound if folder.is_dir() => GitProgramError::NotInstalled,
        _ => GitProgramError::NotStarted { folder: folder.to_owned(), source: error },
    })?;
    let (tell, told) = channel();
    let mut readers = 0;
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    ];
    for (stream, pipe) in pipes.into_iter().enumerate() {
        let Some(mut pipe) = pipe else { continue };
        readers += 1;
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                // Once nobody listens, what comes is of no use.
                if tell.send((stream, buffer[..read].to_vec())).is_err() || read == 0 {
                    return;
                }
            }
        });
    }
    drop(tell);
    let mut kept = [Vec::new(), Vec::new()];
    let mut line = Vec::new();
    while readers > 0 {
        match told.recv_timeout(CANCEL_POLL_INTERVAL) {
            Ok((_, bytes)) if bytes.is_empty() => readers -= 1,
            Ok((stream, bytes)) => {
                let room = MAX_KEPT_OUTPUT_BYTES.saturating_sub(kept[stream].len());
                kept[stream].extend_from_slice(&bytes[..bytes.len().min(room)]);
                if stream == 1 {
                    for byte in bytes {
                        if matches!(byte, b'\r' | b'\n') {
                            if !line.is_empty() {
                                progress(&String::from_utf8_lossy(&line));
                            }
                            line.clear();
                        } else if line.len() < MAX_PROGRESS_LINE_BYTES {
                            line.push(byte);
                        }
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if is_canceled() {
            end_child(&mut child, caller);
            return Err(GitProgramError::Canceled);
        }
    }
    let status = child.wait().map_err(|source| GitProgramError::NotStarted { folder: folder.to_owned(), source })?;
    let [output, messages] = kept.map(|bytes| String::from_utf8_lossy(&bytes).replace('\r', "\n"));
    Ok(GitOutput { success: status.success(), output, messages })
}

/// Ends Git and what it has started: first so that it can remove its lock files.
fn end_child(child: &mut Child, caller: GitCaller) {
    #[cfg(unix)]
    let signal = |signal: rustix::process::Signal| {
        let process = rustix::process::Pid::from_child(child);
        // Fails only if it has ended already.
        let _ = match caller {
            GitCaller::Window | GitCaller::Agent => rustix::process::kill_process_group(process, signal),
            GitCaller::User => rustix::process::kill_process(process, signal),
        };
    };
    #[cfg(unix)]
    signal(rustix::process::Signal::TERM);
    #[cfg(not(unix))]
    let _ = caller; // there are no groups
    let begun = Instant::now();
    while cfg!(unix) && begun.elapsed() < CANCEL_GRACE_TIME {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(CANCEL_POLL_INTERVAL);
    }
    #[cfg(unix)]
    {
        let process = rustix::process::Pid::from_child(child);
        // Fails only if it has ended already.
        let _ = match caller {
            GitCaller::Window | GitCaller::Agent => {
                rustix::process::kill_process_group(process, rustix::process::Signal::KILL)
            }
            GitCaller::User => rustix::process::kill_process(process, rustix::process::Signal::KILL),
        };
    }
    // Both fail only if it has ended already.
    #[cfg(not(unix))]
    let _ = child.kill();
    let _ = child.wait();
}
