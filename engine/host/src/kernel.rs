//! Kernels: child processes of the same program, one per note, that speak Jupyter messages over pipes.

pub(crate) mod collection_queries;
pub(crate) mod environment;
pub(crate) mod kernel_messages;
pub(crate) mod kernel_requests;
pub mod kernel_states;
pub(crate) mod kernelspec;
pub mod note_environment;
pub mod note_packages;
pub(crate) mod pure_cache;
pub mod python_setup;
pub(crate) mod science;
pub mod science_pack;
pub(crate) mod state_budget;

use crate::fs::confined_dir::{ConfinedFolder, ConfinedPath};
use crate::kernel::collection_queries::CollectionQuery;
use crate::kernel::kernel_messages::{KernelReplyReader, PureResultAccess};
use crate::kernel::kernel_requests::{InquiryAnswer, KernelInquiry, PendingInquiries};
use crate::kernel::pure_cache::PureCache;
use crate::mailbox::{Mailbox, MailboxMessage, StoreWriter};
use crate::process_group::{end_process_group, start_in_own_group};
use agent::config::SandboxLimits;
use anyhow::{Context, bail};
use engine::{Event, KernelGrant, KernelKind};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use store::{DocId, ExecutionId};

/// Maximum number of inquiries that may wait for a kernel's answer.
const MAX_PENDING_INQUIRIES: usize = 64;

/// How long the program waits at shutdown for kernels to save their variables.
const STATE_SAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a kernel that runs a cell may take to save its variables when it's ended while the program runs.
const STATE_KILL_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long an idle kernel may take: it's saving what its last cell left, which takes seconds if that is large.
const IDLE_STATE_SAVE_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval for checking whether a kernel has ended.
const STATE_SAVE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Environment variables that a confined kernel inherits from the program.
const KERNEL_VARIABLES: [&str; 9] =
    ["HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SystemRoot", "TEMP", "TZ", "USER"];

struct RunningKernel {
    /// Distinguishes this process from the note's earlier ones.
    number: u64,
    /// The note that the kernel belongs to; unset while it's a spare.
    note: Arc<OnceLock<DocId>>,
    process: Arc<Mutex<KernelProcess>>,
    /// Requests to the process, written by a thread of its own: a process that doesn't read mustn't block the UI
    /// thread.
    requests: Arc<Sender<String>>,
    alive: Arc<AtomicBool>,
    inquiries: PendingInquiries,
    /// Whether the kernel saves its variables, which takes a moment after a cell.
    saves_state: bool,
}

impl RunningKernel {
    fn send_inquiry(&self, number: u64, inquiry: KernelInquiry) -> Option<Receiver<InquiryAnswer>> {
        let id = format!("ask-{number}");
        let (kind, content) = inquiry.to_message();
        let request = json!({"header": {"msg_type": kind, "msg_id": id}, "parent_header": {}, "content": content});
        let (answer, wait) = channel();
        let mut inquiries = self.inquiries.lock().ok()?;
        if inquiries.len() >= MAX_PENDING_INQUIRIES {
            inquiries.clear(); // it does not answer; nobody waits for the old ones any more
        }
        inquiries.insert(id, (inquiry, answer));
        drop(inquiries);
        // If the kernel has died in the meantime, its reader reports that.
        let _ = self.requests.send(request.to_string());
        Some(wait)
    }
}

impl RunningKernel {
    /// Asks the kernel to save its state, and kills it after this time at the latest. Returns the flag that tells
    /// whether it's alive.
    fn shut_down(self, limit: Duration) -> Arc<AtomicBool> {
        let request = json!({
            "header": {"msg_type": "shutdown_request", "msg_id": "shutdown"}, "parent_header": {}, "content": {},
        });
        let _ = self.requests.send(request.to_string()); // it may have ended by itself
        let alive = self.alive.clone();
        std::thread::spawn(move || {
            let asked = Instant::now();
            while asked.elapsed() < limit && self.alive.load(Ordering::Acquire) {
                std::thread::sleep(STATE_SAVE_CHECK_INTERVAL);
            }
            KernelProcess::end_process(&self.process);
        });
        alive
    }
}

/// The process of a kernel, which is set once it has started.
#[derive(Default)]
struct KernelProcess {
    child: Option<Child>,
    /// Whether the process must end, or must not start.
    ended: bool,
}

impl KernelProcess {
    fn end_process(process: &Mutex<KernelProcess>) {
        if let Ok(mut process) = process.lock() {
            process.ended = true;
            if let Some(child) = &mut process.child {
                end_process_group(child);
            }
        }
    }
}

/// A Jupyter kernel that the user has allowed.
#[derive(Clone)]
pub(crate) struct AllowedKernel {
    pub(crate) name: String,
    /// Fingerprint of the approved kernel. `None`: any with that name that only the user can change.
    pub(crate) allowed: Option<String>,
    /// Folders that cells and agents can write.
    pub(crate) shared: Vec<PathBuf>,
    /// Name of the note's file and the packages that it lists, for a kernel in an environment.
    pub(crate) packages: Option<(PathBuf, engine::NotePackages)>,
}

/// A cell to be run by a kernel.
pub(crate) struct QueuedCell {
    /// The Jupyter kernel that runs it; `None`: the embedded one.
    pub(crate) kernel: Option<AllowedKernel>,
    /// What the embedded kernel may access beyond the folder.
    pub(crate) grant: KernelGrant,
    pub(crate) code: String,
    /// The query, if it reads collections.
    pub(crate) query: Option<String>,
    /// The cell's name in tracebacks.
    pub(crate) label: String,
    /// Path of the script that the cell is; `None` if it's in a note.
    pub(crate) script: Option<PathBuf>,
    /// Names that are deleted before it runs.
    pub(crate) forgotten_names: Vec<String>,
    /// If the result may come from the cache: the names that it depends on, and those that it assigns.
    pub(crate) pure: Option<(Vec<String>, Vec<String>)>,
    /// The executions in whose state it runs, if states are saved.
    pub(crate) after: Option<Vec<ExecutionId>>,
    /// The branch of saved states in which it runs; `None`: the note's own.
    pub(crate) branch: Option<String>,
    /// Whether the kernel saves its variables.
    pub(crate) saves_states: bool,
}

/// All running kernels of this process.
pub(crate) struct RunningKernels {
    program: PathBuf,
    /// The workspace's folder, which cells can't access.
    workspace: PathBuf,
    /// Cache for results of pure cells.
    pure: PureCache,
    inbox: Mailbox,
    writer: StoreWriter,
    running: HashMap<DocId, RunningKernel>,
    /// Flags of kernels that are saving their variables before they end: whether each is still alive.
    ending: Vec<Arc<AtomicBool>>,
    /// The spare kernel, and the folder that it runs in.
    warm_kernel: Option<(ConfinedPath, RunningKernel)>,
    started_count: u64,
    inquiry_count: u64,
}

impl RunningKernels {
    pub(crate) fn new(program: PathBuf, workspace: &Path, inbox: Mailbox, writer: StoreWriter) -> RunningKernels {
        let (workspace, pure) = (workspace.to_owned(), PureCache::new(workspace.join("pure")));
        RunningKernels {
            program,
            workspace,
            pure,
            inbox,
            writer,
            running: HashMap::new(),
            ending: Vec::new(),
            warm_kernel: None,
            started_count: 0,
            inquiry_count: 0,
        }
    }

    /// Sends a cell to the note's kernel; starts one if there is none.
    pub(crate) fn execute_cell(
        &mut self,
        note: DocId,
        folder: &ConfinedPath,
        execution: ExecutionId,
        cell: QueuedCell,
    ) {
        self.ensure_kernel(note, folder, cell.kernel.as_ref(), &cell.grant, cell.saves_states);
        let mut request = json!({
            "header": {"msg_type": "execute_request", "msg_id": execution},
            "parent_header": {},
            "content": {"code": cell.code, "cell": cell.label, "silent": false, "forget": cell.forgotten_names},
        });
        if let Some((uses, binds)) = &cell.pure {
            request["content"]["pure"] = json!({"uses": uses, "binds": binds});
        }
        if let Some(script) = &cell.script {
            request["content"]["file"] = json!(script.to_string_lossy());
        }
        if let Some(after) = &cell.after {
            request["content"]["after"] = json!(after);
        }
        if let Some(branch) = &cell.branch {
            request["content"]["branch"] = json!(branch);
        }
        let Some((query, kernel)) = cell.query.zip(self.running.get(&note)) else {
            return self.send_message(note, &request);
        };
        let (requests, alive) = (Arc::downgrade(&kernel.requests), kernel.alive.clone());
        let (inbox, workspace) = (self.inbox.clone(), self.workspace.clone());
        let query = CollectionQuery { note, query, request, requests, alive, inbox, workspace };
        if query.start().is_err() {
            self.kill(note, true); // the cell ends with it
        }
    }

    /// Starts the note's kernel if there is none.
    fn ensure_kernel(
        &mut self,
        note: DocId,
        folder: &ConfinedPath,
        kernel: Option<&AllowedKernel>,
        grant: &KernelGrant,
        saves_states: bool,
    ) {
        if self.running.get(&note).is_some_and(|kernel| !kernel.alive.load(Ordering::Acquire)) {
            self.running.remove(&note);
        }
        if !self.running.contains_key(&note) {
            let started = match self.take_warm_kernel(folder, kernel, grant) {
                Some(kernel) => kernel,
                None => self.start_kernel(folder, kernel, grant, Some((note, saves_states))),
            };
            // From here on, the kernel belongs to this note permanently.
            let _ = started.note.set(note);
            self.running.insert(note, started);
        }
    }

    /// Makes another saved state of the note's kernel the current one; starts a kernel if there is none.
    pub(crate) fn move_state(
        &mut self,
        note: DocId,
        folder: &ConfinedPath,
        grant: &KernelGrant,
        to: &engine::KernelStateMove,
    ) {
        let science = AllowedKernel {
            name: engine::SCIENCE_KERNEL.to_owned(),
            allowed: None,
            shared: Vec::new(),
            packages: None,
        };
        self.ensure_kernel(note, folder, Some(&science), grant, true);
        let request = json!({
            "header": {"msg_type": "state_request", "msg_id": "state"},
            "parent_header": {},
            "content": to,
        });
        self.send_message(note, &request);
    }

    /// Sends an inquiry to the note's kernel. `None`: there is none. The answer may never come.
    pub(crate) fn send_inquiry(&mut self, note: DocId, inquiry: KernelInquiry) -> Option<Receiver<InquiryAnswer>> {
        let kernel = self.running.get(&note).filter(|kernel| kernel.alive.load(Ordering::Acquire))?;
        self.inquiry_count += 1;
        kernel.send_inquiry(self.inquiry_count, inquiry)
    }

    /// Sends an inquiry to the spare kernel, which has run nothing; starts one in this folder if there is none.
    pub(crate) fn ask_warm_kernel(
        &mut self,
        folder: ConfinedPath,
        inquiry: KernelInquiry,
    ) -> Option<Receiver<InquiryAnswer>> {
        if !self.warm_kernel.as_ref().is_some_and(|(_, kernel)| kernel.alive.load(Ordering::Acquire)) {
            self.keep_warm_kernel(Some(folder));
        }
        let (_, kernel) = self.warm_kernel.as_ref()?;
        self.inquiry_count += 1;
        kernel.send_inquiry(self.inquiry_count, inquiry)
    }

    /// Answers the prompt of the note's running cell.
    pub(crate) fn answer_input_request(&mut self, note: DocId, text: &str) {
        let request = json!({
            "header": {"msg_type": "input_reply", "msg_id": "input"},
            "parent_header": {},
            "content": {"value": text, "status": "ok"},
        });
        self.send_message(note, &request);
    }

    /// Interrupts the note's kernel.
    pub(crate) fn interrupt(&mut self, note: DocId) {
        let request = json!({
            "header": {"msg_type": "interrupt_request", "msg_id": "interrupt"},
            "parent_header": {},
            "content": {},
        });
        self.send_message(note, &request);
    }

    /// Kills the note's kernel. Its reader reports the end to the session. `is_busy`: it runs a cell.
    pub(crate) fn kill(&mut self, note: DocId, is_busy: bool) {
        match self.running.remove(&note) {
            Some(kernel) if kernel.saves_state => {
                self.ending.retain(|alive| alive.load(Ordering::Acquire));
                let limit = if is_busy { STATE_KILL_TIMEOUT } else { IDLE_STATE_SAVE_TIMEOUT };
                self.ending.push(kernel.shut_down(limit));
            }
            Some(kernel) => KernelProcess::end_process(&kernel.process),
            None => self.inbox.send_event(Event::KernelDied { note, why: "there was no kernel".to_owned() }),
        }
    }

    /// Keeps a spare kernel ready in this folder; `None`: keeps none.
    pub(crate) fn keep_warm_kernel(&mut self, folder: Option<ConfinedPath>) {
        let is_there = |(known, kernel): &(ConfinedPath, RunningKernel)| {
            Some(known) == folder.as_ref() && kernel.alive.load(Ordering::Acquire)
        };
        if self.warm_kernel.as_ref().is_some_and(is_there) {
            return;
        }
        if let Some((_, kernel)) = self.warm_kernel.take() {
            KernelProcess::end_process(&kernel.process);
        }
        self.warm_kernel =
            folder.map(|folder| (folder.clone(), self.start_kernel(&folder, None, &KernelGrant::default(), None)));
    }

    fn take_warm_kernel(
        &mut self,
        folder: &ConfinedPath,
        kernel: Option<&AllowedKernel>,
        grant: &KernelGrant,
    ) -> Option<RunningKernel> {
        let fits = |(known, ready): &mut (ConfinedPath, RunningKernel)| {
            kernel.is_none() && grant.is_none() && known == folder && ready.alive.load(Ordering::Acquire)
        };
        self.warm_kernel.take_if(fits).map(|(_, kernel)| kernel)
    }

    /// Ends all kernels.
    pub(crate) fn close(&mut self) {
        if let Some((_, kernel)) = self.warm_kernel.take() {
            KernelProcess::end_process(&kernel.process);
        }
        for (_, kernel) in self.running.drain() {
            match kernel.saves_state {
                true => self.ending.push(kernel.shut_down(STATE_SAVE_TIMEOUT)),
                false => KernelProcess::end_process(&kernel.process),
            }
        }
        let asked = Instant::now();
        while asked.elapsed() < STATE_SAVE_TIMEOUT && self.ending.iter().any(|alive| alive.load(Ordering::Acquire)) {
            std::thread::sleep(STATE_SAVE_CHECK_INTERVAL);
        }
    }

    fn send_message(&mut self, note: DocId, message: &Value) {
        if let Some(kernel) = self.running.get_mut(&note) {
            // If the kernel has died in the meantime, its reader reports that.
            let _ = kernel.requests.send(message.to_string());
        }
    }

    /// Removes the ended process `number` of this note. Returns whether the session must know: the note may have a new
    /// kernel by now.
    pub(crate) fn remove_ended_kernel(&mut self, note: DocId, number: u64) -> bool {
        match self.running.get(&note) {
            Some(kernel) if kernel.number != number => false,
            Some(_) | None => {
                self.running.remove(&note);
                true
            }
        }
    }

    fn start_kernel(
        &mut self,
        folder: &ConfinedPath,
        kernel: Option<&AllowedKernel>,
        grant: &KernelGrant,
        owner: Option<(DocId, bool)>,
    ) -> RunningKernel {
        let mut command = Command::new(&self.program);
        // Ctrl-C in a terminal is for the program; the kernel gets an interrupt message instead.
        start_in_own_group(&mut command);
        command.arg("kernel").env_remove(crate::maintenance::secrets::PASSPHRASE_VARIABLE);
        let kind = KernelKind::of(kernel.map(|kernel| kernel.name.as_str()));
        let saves_state = kind.saves_state() && owner.is_some_and(|(_, saves)| saves);
        // The reason why it can't be started, if already known.
        let mut refused = None;
        if kind == KernelKind::Science {
            refused = science::add_arguments(&mut command, &self.workspace, owner).err();
        }
        if kind.is_confined() {
            // Cells mustn't see keys and tokens in the environment. A user's own kernel runs as in their shell.
            let surroundings = KERNEL_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
            command.arg("--shut").arg(&self.workspace);
            if grant.network {
                command.arg("--network");
            }
            for (flag, paths) in [("--read", &grant.read), ("--write", &grant.write)] {
                paths.iter().for_each(|path| _ = command.arg(flag).arg(path));
            }
            command.env_clear().envs(surroundings);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.started_count += 1;
        let number = self.started_count;
        let alive = Arc::new(AtomicBool::new(true));
        let process: Arc<Mutex<KernelProcess>> = Arc::default();
        let (requests, queue) = channel();
        let requests = Arc::new(requests);
        let inquiries = PendingInquiries::default();
        let note = Arc::new(OnceLock::new());
        let whose = note.clone();
        let kept =
            PureResultAccess { cache: self.pure.clone(), grant: grant.clone(), requests: Arc::downgrade(&requests) };
        let reader =
            KernelReplyReader::new(note.clone(), self.inbox.clone(), self.writer.clone(), inquiries.clone(), kept);
        let place = folder.clone();
        let budget = saves_state.then(|| self.workspace.clone()).zip(owner.map(|(note, _)| note));
        let jupyter = kernel.filter(|_| kind == KernelKind::Jupyter).cloned();
        let (packages, chosen) = (kernel.and_then(|kernel| kernel.packages.clone()), grant.interpreter.clone());
        let (started, still) = (process.clone(), alive.clone());
        let workspace = self.workspace.clone();
        std::thread::spawn(move || {
            let inbox = reader.inbox();
            let log = crate::logging::KernelLog::start(number, jupyter.is_some());
            // The folder stays open until the process has started in exactly this folder.
            let held = ConfinedFolder::open_root(&place.root).and_then(|root| root.open_folder(&place.path));
            let held = match refused {
                Some(why) => Err(why),
                None => held.map_err(anyhow::Error::from),
            };
            if let Some((workspace, note)) = budget {
                state_budget::limit_states(&mut command, &workspace, note);
            }
            let begun = held.and_then(|folder| {
                command.current_dir(folder.stable_path());
                if kind.is_confined() {
                    let root = place.root.canonicalize()?;
                    command.args(kernel_limits(&workspace, kind, &root, folder.original_path())?);
                }
                if let Some(chosen) = &jupyter {
                    configure_jupyter_kernel(&mut command, chosen, folder.original_path())?;
                } else if kind == KernelKind::Environment {
                    let root = place.root.canonicalize()?;
                    let place = (folder.original_path(), root.as_path());
                    environment::configure_environment_kernel(&mut command, place, packages.as_ref(), chosen)?;
                }
                launch_process(command, &started, queue)
            });
            let has_run = begun.is_ok();
            let why = match begun {
                Ok((replies, words)) => {
                    reader.read_messages(BufReader::new(replies));
                    still.store(false, Ordering::Release);
                    exit_reason(&started, &words)
                }
                Err(why) => {
                    still.store(false, Ordering::Release);
                    format!("the kernel could not be started: {why}")
                }
            };
            log.end(has_run, &why);
            inbox.send(MailboxMessage::KernelEnded { note: whose, number, why });
        });
        RunningKernel { number, note, process, requests, alive, inquiries, saves_state }
    }
}

/// Returns the arguments that limit a kernel as the configuration says. Processor time is limited for tools only: a
/// kernel runs as long as its note is open.
fn kernel_limits(workspace: &Path, kind: KernelKind, root: &Path, folder: &Path) -> anyhow::Result<Vec<OsString>> {
    let below = folder.strip_prefix(root).unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let mut limits = limits_in_folder(workspace, &below)?;
    limits.cpu_seconds = None;
    if kind == KernelKind::Science {
        limits.memory_bytes = None; // it has a limit of its own
    }
    Ok(crate::sandbox_limits::limit_arguments(&limits, root))
}

/// Returns the configured limits for a note in this folder of its volume. A note in a hidden folder reaches its own
/// folder.
fn limits_in_folder(workspace: &Path, below: &str) -> anyhow::Result<SandboxLimits> {
    let config = crate::maintenance::configuration::load_config(workspace)?;
    let mut limits = SandboxLimits::combine(&[&config.sandbox]);
    limits.paths.hidden.retain(|hidden| below != *hidden && !below.starts_with(&format!("{hidden}/")));
    Ok(limits)
}

/// Starts a Jupyter kernel instead of the built-in one: exactly the one that the user approved, in its current state.
fn configure_jupyter_kernel(command: &mut Command, chosen: &AllowedKernel, folder: &Path) -> anyhow::Result<()> {
    let AllowedKernel { name, allowed, shared, packages: _ } = chosen;
    let found = kernelspec::find_kernels(folder, shared);
    let Some(kernel) = found.iter().find(|kernel| kernel.spec.name == *name) else {
        let names: Vec<&str> = found.iter().map(|kernel| kernel.spec.name.as_str()).collect();
        let there = if names.is_empty() { "none is installed".to_owned() } else { names.join(", ") };
        bail!("there is no Jupyter kernel {name} here ({there})");
    };
    let spec = &kernel.spec;
    let again = "choose it again to allow it (Choose kernel, or `tracebook kernels`)";
    match allowed {
        Some(print) if *print == spec.print => {}
        Some(_) => bail!("it has changed since you allowed it: {}; {again}", spec.approval_question()),
        // A permission from an earlier version has only the kernel's name.
        None if spec.doubt.is_none() => {}
        None => bail!("you have not allowed it: {}; {again}", spec.approval_question()),
    }
    command.arg("--jupyter").arg(&spec.path).arg(&kernel.allowed);
    Ok(())
}

/// The end of a process's standard error, which may explain why it died.
type LastWords = Arc<Mutex<String>>;

/// How long the end of a dead process's errors is waited for.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts a kernel's process, with a thread that sends requests. Returns its standard output and the end of its errors.
fn launch_process(
    mut command: Command,
    process: &Mutex<KernelProcess>,
    queue: Receiver<String>,
) -> anyhow::Result<(ChildStdout, LastWords)> {
    let mut child = command.spawn()?;
    let mut requests = child.stdin.take().context("no pipe")?;
    let replies = child.stdout.take().context("no pipe")?;
    let errors = child.stderr.take().context("no pipe")?;
    if let Ok(mut process) = process.lock() {
        if process.ended {
            end_process_group(&mut child); // nobody wants it any more
        }
        process.child = Some(child);
    }
    std::thread::spawn(move || {
        for request in queue {
            if writeln!(requests, "{request}").and_then(|()| requests.flush()).is_err() {
                return;
            }
        }
    });
    let last_words = LastWords::default();
    let words = last_words.clone();
    std::thread::spawn(move || collect_error_tail(errors, &words));
    Ok((replies, last_words))
}

/// Returns why a process ended whose output has ended: it's dead, dying, or has closed its standard output, which
/// counts as the end.
fn exit_reason(process: &Mutex<KernelProcess>, words: &LastWords) -> String {
    let child = process.lock().ok().and_then(|mut process| process.child.take());
    let status = child.map(|mut child| {
        end_process_group(&mut child);
        child.wait()
    });
    // What it wrote at its end may still be read. A process that it left behind can hold the pipe open.
    let end = Instant::now() + LAST_WORDS_TIMEOUT;
    while Arc::strong_count(words) > 1 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let words = words.lock().map(|words| words.trim().to_owned()).unwrap_or_default();
    let why = match status {
        Some(Ok(status)) => format!("the kernel's process ended ({status}); the next run starts a new one"),
        Some(Err(_)) | None => "the kernel's process ended; the next run starts a new one".to_owned(),
    };
    words.lines().last().map_or(why.clone(), |last| format!("{why}. Its last words: {last}"))
}

fn collect_error_tail(mut from: impl Read, words: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if let Ok(mut words) = words.lock() {
            words.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if words.len() > 8192 {
                let mut cut = words.len() - 4096;
                while !words.is_char_boundary(cut) {
                    cut += 1;
                }
                words.drain(..cut);
            }
        }
    }
}
