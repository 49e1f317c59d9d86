//! The process of an agent's program, with everything that it starts.

use crate::PeerConnection;
use crate::external_agent::{AgentFailure, AgentProgram, ExternalAgentError, read_into};
use crate::message_queue::MessageQueue;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum length in bytes of the end of a program's standard error that's kept.
const MAX_STDERR_BYTES: usize = 2_000;
/// How long to wait for the last standard error of a program that has ended.
const STDERR_DRAIN_DELAY: Duration = Duration::from_millis(200);
/// Environment variables that a program inherits.
const INHERITED_ENV_VARS: [&str; 17] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SystemRoot",
    "TEMP",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// A started program. It's killed when this is dropped.
pub(crate) struct AgentProcess {
    child: Child,
    stderr_tail: Arc<Mutex<String>>,
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl AgentProcess {
    pub(crate) fn start(program: &AgentProgram) -> io::Result<AgentProcess> {
        let mut command = Command::new(&program.command);
        let seen = INHERITED_ENV_VARS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.args(&program.args).env_clear().envs(seen).envs(&program.env).current_dir(&program.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its group is killed as a whole, and a terminal's Ctrl-C reaches only Tracebook.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let stderr_tail = Arc::new(Mutex::new(String::new()));
        if let Some(mut stderr) = child.stderr.take() {
            let tail = stderr_tail.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                    tail.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
                    let cut = tail.ceil_char_boundary(tail.len().saturating_sub(MAX_STDERR_BYTES));
                    tail.drain(..cut);
                }
            });
        }
        Ok(AgentProcess { child, stderr_tail })
    }

    /// Connects to the program, and starts the thread that reads what it sends.
    pub(crate) fn connect(&mut self, queue: &Arc<MessageQueue>) -> Arc<PeerConnection> {
        let input: Box<dyn io::Write + Send> = match self.child.stdin.take() {
            Some(input) => Box::new(input),
            None => Box::new(io::sink()),
        };
        let peer = Arc::new(PeerConnection::new(input));
        match self.child.stdout.take() {
            Some(output) => {
                let (queue, peer) = (queue.clone(), peer.clone());
                std::thread::spawn(move || read_into(&queue, &peer, output));
            }
            None => queue.close(),
        }
        peer
    }

    /// Kills the program and all that it has started, and waits for its end.
    pub(crate) fn kill(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            // Fails only if all of it has ended already.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        // Fails only if it has ended already, as above.
        let _ = self.child.kill();
        // Nothing is left to wait for if this fails.
        let _ = self.child.wait();
    }

    /// Returns a failure with the last line that the program printed about it.
    pub(crate) fn failure(&self, agent: &str, error: &ExternalAgentError) -> AgentFailure {
        std::thread::park_timeout(STDERR_DRAIN_DELAY);
        let tail = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let printed = line.map(|line| format!(". It printed: {line}")).unwrap_or_default();
        AgentFailure { agent: agent.to_owned(), what: error.to_string(), printed }
    }
}
