//! The server for other programs (`tracebook serve`), which the window starts and ends as a process of its own. It
//! reaches the workspace through this process, as any other command does.

use anyhow::{anyhow, bail};
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Maximum size of what the server says of itself, and of its messages, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Where the server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServedAddresses {
    /// The address for HTTP.
    pub url: Option<String>,
    /// The Unix socket.
    pub socket: Option<String>,
}

/// State of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerPhase {
    /// It isn't wanted.
    #[default]
    Off,
    /// It starts.
    Starting,
    /// It serves.
    On(ServedAddresses),
    /// Why it ended by itself, as a sentence.
    Failed(String),
}

#[derive(Default)]
struct ServerState {
    phase: ServerPhase,
    /// The options of `tracebook serve` that are wanted, or the last ones.
    options: Vec<String>,
    is_wanted: bool,
    /// Number of the current start. Threads of earlier ones change nothing.
    start: u64,
    /// The server ends when its input does, also if this process is killed.
    input: Option<ChildStdin>,
    /// The thread of the last start, which ends with its process.
    thread: Option<JoinHandle<()>>,
}

/// The server of a window. Clones are the same server; it ends with the last one.
#[derive(Clone)]
pub struct ProgramServer {
    program: PathBuf,
    workspace: PathBuf,
    state: Arc<Mutex<ServerState>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

fn lock(state: &Mutex<ServerState>) -> MutexGuard<'_, ServerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgramServer {
    /// Creates the server of a workspace, which is off. `program` is Tracebook; `wake` is called when its state
    /// changes.
    pub fn new(program: &Path, workspace: &Path, wake: impl Fn() + Send + Sync + 'static) -> ProgramServer {
        ProgramServer {
            program: program.to_owned(),
            workspace: workspace.to_owned(),
            state: Arc::default(),
            wake: Arc::new(wake),
        }
    }

    /// Returns the state of the server.
    pub fn phase(&self) -> ServerPhase {
        lock(&self.state).phase.clone()
    }

    /// Starts the server, ends it, or starts it with other options. Does nothing if that's how it is. A server that
    /// failed is not started again by itself.
    pub fn follow(&self, is_wanted: bool, options: &[String]) {
        let mut state = lock(&self.state);
        if state.is_wanted == is_wanted && (!is_wanted || state.options == options) {
            return;
        }
        state.is_wanted = is_wanted;
        state.options = options.to_vec();
        self.restart(&mut state);
    }

    /// Starts a server again that has failed.
    pub fn try_again(&self) {
        let mut state = lock(&self.state);
        if state.is_wanted && matches!(state.phase, ServerPhase::Failed(_)) {
            self.restart(&mut state);
        }
    }

    fn restart(&self, state: &mut ServerState) {
        state.start += 1;
        state.input = None;
        state.phase = ServerPhase::Off;
        if state.is_wanted {
            state.phase = ServerPhase::Starting;
            let (server, start, options) = (self.clone_for_thread(), state.start, state.options.clone());
            let earlier = state.thread.take();
            state.thread = Some(std::thread::spawn(move || {
                // Until the earlier process has ended, address and socket are taken.
                if let Some(earlier) = earlier {
                    let _ = earlier.join(); // if it has panicked, it has ended, too
                }
                server.run(start, &options);
            }));
        }
    }

    fn clone_for_thread(&self) -> ServerThread {
        ServerThread {
            program: self.program.clone(),
            workspace: self.workspace.clone(),
            // The thread doesn't keep the server alive.
            state: Arc::downgrade(&self.state),
            wake: self.wake.clone(),
        }
    }

    /// Makes a link that pairs a browser, named `name`, with the running server, once. The result comes later.
    pub fn pair_browser(&self, name: &str) -> Receiver<anyhow::Result<String>> {
        let (tell, told) = channel();
        let (mut command, wake) = (command(&self.program, &self.workspace), self.wake.clone());
        command.args(["tokens", "create", name, "--qr", "--json"]).stdin(Stdio::null());
        std::thread::spawn(move || {
            let _ = tell.send(pairing_link(&mut command)); // the page may be closed
            wake();
        });
        told
    }
}

fn command(program: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--workspace").arg(workspace);
    command
}

fn pairing_link(command: &mut Command) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct PairingAnswer {
        link: String,
    }
    let done = command.output()?;
    if !done.status.success() {
        bail!("{}", last_message(&String::from_utf8_lossy(&done.stderr)));
    }
    Ok(serde_json::from_slice::<PairingAnswer>(&done.stdout)?.link)
}

/// Returns the last line that a command has printed as an error, without the program's name.
fn last_message(messages: &str) -> String {
    let line = messages.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended without a message");
    line.strip_prefix("tracebook: ").unwrap_or(line).to_owned()
}

/// What the thread that watches the server's process has of it.
struct ServerThread {
    program: PathBuf,
    workspace: PathBuf,
    state: std::sync::Weak<Mutex<ServerState>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl ServerThread {
    /// Changes the state if this start is still the current one. Returns whether it is.
    fn change(&self, start: u64, change: impl FnOnce(&mut ServerState)) -> bool {
        let Some(state) = self.state.upgrade() else { return false };
        let mut state = lock(&state);
        let is_current = state.start == start;
        if is_current {
            change(&mut state);
            drop(state);
            (self.wake)();
        }
        is_current
    }

    fn run(&self, start: u64, options: &[String]) {
        let failed = match self.start_process(start, options) {
            Ok(Some((child, messages))) => self.watch(start, child, messages).err(),
            Ok(None) => None,
            Err(why) => Some(why),
        };
        if let Some(why) = failed {
            self.change(start, |state| {
                (state.phase, state.input) = (ServerPhase::Failed(why.to_string()), None);
            });
        }
    }

    /// Starts the process. Returns it with its messages, or `None` if it's no longer wanted.
    fn start_process(&self, start: u64, options: &[String]) -> anyhow::Result<Option<(Child, Receiver<String>)>> {
        let mut command = command(&self.program, &self.workspace);
        command.args(["serve", "--json", "--until-input-ends"]).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| anyhow!("the server doesn't start ({error})"))?;
        let (input, errors) = (child.stdin.take(), child.stderr.take());
        let (tell, messages) = channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut errors) = errors {
                // What was read until an error counts. The rest is read, too, so that the server never waits.
                let _ = errors.by_ref().take(MAX_ANSWER_BYTES).read_to_end(&mut text);
                let _ = tell.send(String::from_utf8_lossy(&text).into_owned()); // nobody waits after the end
                let _ = std::io::copy(&mut errors, &mut std::io::sink());
            }
        });
        match self.change(start, |state| state.input = input) {
            true => Ok(Some((child, messages))),
            false => {
                child.wait()?; // its input has ended
                Ok(None)
            }
        }
    }

    /// Follows the process until it ends.
    fn watch(&self, start: u64, mut child: Child, messages: Receiver<String>) -> anyhow::Result<()> {
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            // A process that ends says nothing here, and why in its messages.
            let _ = output.by_ref().take(MAX_ANSWER_BYTES).read_line(&mut line);
            if let Ok(addresses) = serde_json::from_str::<ServedAddresses>(&line) {
                self.change(start, |state| state.phase = ServerPhase::On(addresses));
            }
            // What follows isn't for us; it's read so that the server never waits.
            let _ = std::io::copy(&mut output, &mut std::io::sink());
        }
        child.wait()?;
        bail!("{}", last_message(&messages.recv().unwrap_or_default()))
    }
}
