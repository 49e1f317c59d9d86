//! `cmd_mcp`, `cmd_acp`, `cmd_serve`: servers through which other programs use the workspace.
//!
//! A server performs each request as a command. It owns the workspace only while it's busy and for a while after; if a
//! window or another command has it, requests go through that process, and a window that starts gets it at once.

mod mcp_client;
mod mcp_install;
mod mcp_offers;
pub(super) mod tokens;

use super::{CliError, EXIT_DONE, program_path, run_request, serve_request, sleep};
use crate::arguments::{McpArguments, ServeArguments};
use anyhow::anyhow;
use host::socket::{self, GuestRequests, SocketError, SocketRequest};
use host::{Driver, Handle, OpenError, WorkspaceOptions};
use serve::{
    CommandCall, CommandOutcome, HttpServerSettings, McpPermissions, PairingLink, ServedPlaces, TlsFiles, TlsSource,
    WorkspaceCommands, WritePermission,
};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An idle server keeps the workspace this long, so that the next request doesn't wait for it to open.
const KEEP_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a server looks whether to give up the workspace.
const RELEASE_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Number of attempts to reach the owner of the workspace, and the time between them.
const OWNER_ATTEMPTS: u32 = 50;
const OWNER_ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// Where `serve` listens if nothing else is said.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7610";

/// Whether this process is a server, which can give up the workspace.
static IS_SERVER: AtomicBool = AtomicBool::new(false);
/// Whether a window of another process wants the workspace.
static IS_RELEASE_WANTED: AtomicBool = AtomicBool::new(false);

/// Asks the server in this process to give up the workspace. Returns whether there is one.
pub(super) fn request_release() -> bool {
    let is_server = IS_SERVER.load(Ordering::Relaxed);
    if is_server {
        IS_RELEASE_WANTED.store(true, Ordering::Relaxed);
    }
    is_server
}

/// Opens the workspace for a window. If a server has it, the server is asked to give it up.
pub(super) fn open_released(folder: &Path, options: WorkspaceOptions) -> Result<Driver, OpenError> {
    let again = WorkspaceOptions { program: options.program.clone(), create: options.create };
    let mut last = host::open_workspace(folder, options);
    for _ in 0..OWNER_ATTEMPTS {
        let Err(OpenError::Owned { socket: Some(socket), .. }) = &last else { return last };
        let request = SocketRequest { words: Vec::new(), folder: PathBuf::from("/"), terminal: false };
        let answer = socket::exchange(socket, &request, &[], &mut io::sink(), &mut io::sink());
        if matches!(answer, Ok(code) if code != EXIT_DONE) {
            return last;
        }
        sleep(OWNER_ATTEMPT_INTERVAL);
        last = host::open_workspace(folder, WorkspaceOptions { program: again.program.clone(), create: again.create });
    }
    last
}

/// The workspace while this process owns it.
struct OwnedWorkspace {
    handle: Handle,
    session: JoinHandle<anyhow::Result<()>>,
    guests: Option<GuestRequests>,
}

impl OwnedWorkspace {
    fn new(driver: Driver) -> OwnedWorkspace {
        let guests = driver.serve_requests(serve_request).ok();
        let handle = driver.handle();
        let session = std::thread::spawn(move || driver.run());
        OwnedWorkspace { handle, session, guests }
    }

    /// Ends requests of other processes, saves, and releases the workspace.
    fn close(self, folder: &Path) {
        if let Some(guests) = self.guests {
            guests.drain();
            if let Ok(Some(socket)) = host::owner_socket(folder) {
                // This only wakes the listener, which ends.
                let request = SocketRequest { words: Vec::new(), folder: PathBuf::from("/"), terminal: false };
                let _answer = socket::exchange(&socket, &request, &[], &mut io::sink(), &mut io::sink());
            }
        }
        self.handle.close();
        match self.session.join() {
            Ok(Ok(())) => {}
            Ok(Err(why)) => eprintln!("tracebook: not everything could be saved: {why}"),
            Err(_) => eprintln!("tracebook: the session failed; what was acknowledged is on disk"),
        }
    }
}

#[derive(Default)]
struct LinkState {
    owned: Option<OwnedWorkspace>,
    /// The requests that are using `owned`: for each, whether it only watches.
    active: Vec<Arc<AtomicBool>>,
    last_used: Option<Instant>,
}

/// The way from a server to the workspace, whoever owns it.
pub(super) struct WorkspaceLink {
    folder: PathBuf,
    program: PathBuf,
    /// Relative paths in requests start here.
    here: PathBuf,
    state: Mutex<LinkState>,
    is_closed: AtomicBool,
}

impl WorkspaceLink {
    /// Creates a link to the workspace in this folder, and starts the thread that releases it when it's idle.
    pub(super) fn start(folder: &Path) -> Result<Arc<WorkspaceLink>, CliError> {
        if !host::workspace_exists(folder) {
            return Err(CliError::usage(format!(
                "there is no workspace in {}; make one: tracebook init --workspace {}",
                folder.display(),
                folder.display()
            )));
        }
        IS_SERVER.store(true, Ordering::Relaxed);
        let link = Arc::new(WorkspaceLink {
            folder: folder.to_owned(),
            program: program_path()?,
            here: PathBuf::from("/"),
            state: Mutex::new(LinkState::default()),
            is_closed: AtomicBool::new(false),
        });
        let release = link.clone();
        std::thread::spawn(move || {
            while !release.is_closed.load(Ordering::Relaxed) {
                sleep(RELEASE_CHECK_INTERVAL);
                release.release_if_idle(KEEP_TIMEOUT);
            }
        });
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the workspace if no request uses it, and it was idle this long or a window wants it.
    fn release_if_idle(&self, keep: Duration) {
        let wanted = IS_RELEASE_WANTED.load(Ordering::Relaxed);
        let mut state = self.state();
        let is_unused = state.last_used.is_none_or(|used| used.elapsed() >= keep);
        let is_watched = !state.active.is_empty() && !keep.is_zero();
        let is_used = state.active.iter().any(|watches| !watches.load(Ordering::Relaxed));
        let is_idle = !is_used && (wanted || (is_unused && !is_watched));
        if is_idle && let Some(owned) = state.owned.take() {
            IS_RELEASE_WANTED.store(false, Ordering::Relaxed);
            // Requests wait meanwhile: until it's closed, nobody can open it.
            owned.close(&self.folder);
        }
    }

    /// Releases the workspace when the server ends.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        for _ in 0..OWNER_ATTEMPTS {
            self.release_if_idle(Duration::ZERO);
            if self.state().owned.is_none() {
                return;
            }
            sleep(OWNER_ATTEMPT_INTERVAL);
        }
        // A request that doesn't end, such as a cell in a loop: what was acknowledged is on disk.
        tracing::warn!("the server ended while a request was running");
    }

    /// Performs a request here if this process owns the workspace, or can; `Err` if another process has it.
    fn perform_here(
        &self,
        request: &SocketRequest,
        call: &CommandCall,
        out: &mut dyn Write,
        errors: &mut dyn Write,
    ) -> Result<u8, OpenError> {
        let mut state = self.state();
        if state.owned.is_none() && self.is_closed.load(Ordering::Relaxed) {
            return Err(OpenError::Other("the server is ending".to_owned()));
        }
        if state.owned.is_none() {
            let options = WorkspaceOptions { program: self.program.clone(), create: false };
            state.owned = Some(OwnedWorkspace::new(host::open_workspace(&self.folder, options)?));
        }
        let Some(handle) = state.owned.as_ref().map(|owned| owned.handle.clone()) else {
            return Err(OpenError::Other("the workspace was closed".to_owned()));
        };
        state.active.push(call.watches.clone());
        drop(state);
        let mut input = call.input.as_slice();
        let code = run_request(&handle, request, &mut input, out, errors, false);
        let mut state = self.state();
        let at = state.active.iter().position(|watches| Arc::ptr_eq(watches, &call.watches));
        if let Some(at) = at {
            state.active.swap_remove(at);
        }
        state.last_used = Some(Instant::now());
        Ok(code)
    }
}

/// Collects a command's output, and passes on each line.
struct OutputLines<'a> {
    call: &'a CommandCall,
    outcome: &'a Mutex<CommandOutcome>,
    on_line: &'a mut dyn FnMut(&str),
    line: Vec<u8>,
}

impl Write for OutputLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.call.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).push_output(bytes);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                (self.on_line)(String::from_utf8_lossy(&self.line).trim_end());
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct MessageLines<'a>(&'a Mutex<CommandOutcome>, &'a AtomicBool);

impl Write for MessageLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_messages(bytes);
        self.1.store(true, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WorkspaceCommands for WorkspaceLink {
    fn perform(&self, call: &CommandCall, on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
        let outcome = Mutex::new(CommandOutcome::default());
        let request = SocketRequest { words: call.words.clone(), folder: self.here.clone(), terminal: false };
        let mut out = OutputLines { call, outcome: &outcome, on_line, line: Vec::new() };
        let mut errors = MessageLines(&outcome, &call.has_messages);
        let mut done: anyhow::Result<u8> = Err(anyhow!("the workspace is busy; try again"));
        for _ in 0..OWNER_ATTEMPTS {
            done = match self.perform_here(&request, call, &mut out, &mut errors) {
                Ok(code) => Ok(code),
                Err(OpenError::Owned { socket: Some(socket), .. }) => {
                    match socket::exchange(&socket, &request, &call.input, &mut out, &mut errors) {
                        Ok(code) => Ok(code),
                        Err(SocketError::Interrupted(error)) => Err(anyhow!(
                            "the program that has the workspace open ended in the middle of this ({}); look at \
                             what was done, and try again",
                            store::disk::io_reason(&error)
                        )),
                        Err(SocketError::NotStarted(_)) => {
                            sleep(OWNER_ATTEMPT_INTERVAL);
                            continue;
                        }
                    }
                }
                Err(OpenError::Owned { socket: None, .. }) => {
                    sleep(OWNER_ATTEMPT_INTERVAL);
                    continue;
                }
                Err(error @ (OpenError::Disk(_) | OpenError::Other(_))) => Err(error.into()),
            };
            break;
        }
        let mut outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(code) => outcome.code = code,
            Err(why) => {
                outcome.code = super::EXIT_WORKSPACE;
                outcome.push_messages(format!("{why}\n").as_bytes());
            }
        }
        outcome
    }
}

/// Returns what `--allow-write` says.
fn write_permission(word: &str) -> Result<WritePermission, CliError> {
    match word {
        "" => Ok(WritePermission::Yes),
        "ask" => Ok(WritePermission::AfterApproval),
        "no" => Ok(WritePermission::No),
        other => Err(CliError::usage(format!(
            "--allow-write is ask, no, or has no value, not “{}”",
            text::untrusted_text::escape_line(other)
        ))),
    }
}

/// Runs `cmd_mcp`: serves MCP on standard input and output, writes a program's configuration, or uses other servers.
pub(super) fn cmd_mcp(folder: &Path, args: &McpArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    match (args.what.as_deref().unwrap_or("serve"), args.name.as_deref()) {
        ("serve", None) => {
            let seconds = super::parse::number_option("timeout", args.timeout.as_deref())?;
            let permissions = McpPermissions {
                write: write_permission(args.allow_write.as_deref().unwrap_or("no"))?,
                // The user works with this program, and sees its forms.
                approve_writes: true,
                approval_timeout: seconds.map(|seconds| Duration::from_secs(seconds.max(1))),
                run: args.allow_run,
                agent: args.allow_agent,
                approve: args.allow_approve,
            };
            let link = WorkspaceLink::start(folder)?;
            let done = serve::serve_mcp(link.clone(), folder, permissions);
            link.close();
            done.map(|()| EXIT_DONE).map_err(CliError::usage)
        }
        ("serve", Some(_)) => Err(CliError::usage("mcp serve takes no name")),
        ("install", Some(program)) => mcp_install::install(folder, program, args, json, out),
        ("install", None) => Err(CliError::usage(format!("name a program: {}", mcp_install::program_names()))),
        (what @ ("tools" | "call" | "prompts" | "resources" | "login" | "logout"), _) => {
            mcp_client::use_server(folder, what, args, json, out)
        }
        (other, _) => Err(CliError::usage(format!(
            "mcp does serve, install, tools, call, prompts, resources, login or logout, not “{other}”"
        ))),
    }
}

/// Runs `cmd_acp`: serves the agents to an editor on standard input and output, until the editor closes it.
pub(super) fn cmd_acp(folder: &Path) -> Result<u8, CliError> {
    let link = WorkspaceLink::start(folder)?;
    let done = serve::serve_acp(link.clone(), &mut io::stdin().lock(), Box::new(io::stdout()));
    link.close();
    done.map(|()| EXIT_DONE).map_err(CliError::usage)
}

/// Shows where the server is, and how a browser is paired with it.
fn show_places(places: &ServedPlaces, link: Option<&PairingLink>, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        let pair = link.map(|link| link.url.as_str());
        let value = serde_json::json!({
            "url": places.url, "shared_url": places.shared_url, "socket": places.socket, "pair": pair,
        });
        return writeln!(out, "{value}");
    }
    if let Some(url) = &places.url {
        writeln!(out, "serving at {url}")?;
    }
    if let Some(socket) = &places.socket {
        writeln!(out, "serving at {}", socket.display())?;
    }
    // The code is for a person in front of a terminal, or for a camera.
    link.map_or(Ok(()), |link| tokens::show_pairing_link(link, io::stdout().is_terminal(), out))
}

/// Runs `cmd_serve`: serves HTTP until the system asks the program to end.
pub(super) fn cmd_serve(folder: &Path, args: &ServeArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(_), Some(_)) if args.tls => {
            return Err(CliError::usage("choose one of --tls, and --tls-cert with --tls-key"));
        }
        (Some(certificate), Some(key)) => {
            Some(TlsSource::Files(TlsFiles { certificate: certificate.into(), key: key.into() }))
        }
        (None, None) => args.tls.then_some(TlsSource::Workspace),
        _ => return Err(CliError::usage("TLS needs both --tls-cert and --tls-key")),
    };
    let listen = match (&args.listen, args.no_tcp) {
        (Some(_), true) => return Err(CliError::usage("choose one of --listen and --no-tcp")),
        (None, true) => None,
        (listen, false) => Some(listen.as_deref().unwrap_or(DEFAULT_ADDRESS).parse().map_err(|_| {
            CliError::usage("--listen wants ADDRESS:PORT, such as 127.0.0.1:7610; names aren't addresses")
        })?),
    };
    // Every connection is an open file.
    host::rlimits::raise_open_file_limit();
    let link = WorkspaceLink::start(folder)?;
    let settings = HttpServerSettings {
        workspace: folder.to_owned(),
        listen,
        tls,
        host_names: args.host.clone(),
        until_input_ends: args.until_input_ends,
    };
    let mut announce = |places: &ServedPlaces| {
        let now = jiff::Timestamp::now().as_millisecond();
        let link = places.url.as_ref().and_then(|_| serve::pairing_link(folder, tokens::browser_grant(), now).ok());
        // A closed standard output doesn't matter to clients.
        let _ = show_places(places, link.as_ref(), json, out).and_then(|()| out.flush());
    };
    let done = serve::serve_http(link.clone(), &settings, &mut announce);
    link.close();
    done.map(|()| EXIT_DONE).map_err(CliError::usage)
}
