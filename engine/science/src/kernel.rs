//! The body of the process `tracebook kernel --science`: handles requests, sends messages, and saves a state after each
//! cell.
//!
//! It has four threads. The first reads requests, so that an interrupt arrives while a cell runs. `python` owns the
//! machine. `states` hashes, compresses and writes a cell's changes after its reply. `clock` makes running code check
//! for interrupts regularly.

mod restoring;

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use python::protocol::{
    CellRequest, IncomingRequest, KernelOutbox, KernelQuery, OutputStream, RequestBody, RequestReader,
};
use python::{CellSandbox, SandboxGrants};
use serde_json::{Value, json};

use crate::ScienceError;
use crate::compare::print_comparison;
use crate::machine::{
    DoorAnswer, GuestFolder, LIBRARY_FOLDER, LoadedPack, Machine, StopSwitch, TurnEnd, compile_installed,
};
use crate::saver::{SaverTask, save_states};
use kernel_states::{KernelMemory, MemorySlots, StateFolder, StateRecord};

/// Address space of the process. The guest's memory is reserved as a whole.
const ADDRESS_BYTES: u64 = 24 << 30;
/// Interval at which running code checks for interrupts.
const CLOCK_INTERVAL: Duration = Duration::from_millis(5);
/// Time an interrupted cell has to end. After that, or after a second interrupt, it is stopped by force.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);
/// Interval at which a cell that waits for an answer checks whether it was interrupted.
const ANSWER_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Path of the note's folder in the guest.
const NOTE_FOLDER: &str = "/note";
/// Folder of a kernel's scratch that stays empty. It stands for folders whose grant was revoked.
const REVOKED_FOLDER: &str = "revoked";
/// Path of the home folder in the guest.
const HOME_FOLDER: &str = "/home";
/// Python code of the guest's side.
const GUEST_SOURCE: &str = include_str!("guest.py");

/// Arguments after `tracebook kernel --science`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ScienceArguments {
    /// Folder of the installed pack.
    pack: PathBuf,
    /// ID of the pack in saved states.
    pack_id: String,
    /// Folder of the note's states; `None` saves none.
    states: Option<PathBuf>,
    /// Maximum size of the states' folder, in bytes.
    states_budget: Option<u64>,
    /// Folder for caches of packages.
    scratch: Option<PathBuf>,
    /// Two states in `states` to compare, instead of running cells.
    compare: Option<(String, String)>,
}

impl ScienceArguments {
    fn from_args(words: &[String]) -> ScienceArguments {
        let mut arguments = ScienceArguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().cloned().unwrap_or_default();
            match word.as_str() {
                "--pack" => arguments.pack = next().into(),
                "--pack-id" => arguments.pack_id = next(),
                "--states" => arguments.states = Some(next().into()),
                "--states-budget" => arguments.states_budget = next().parse().ok(),
                "--compare" => arguments.compare = Some((next(), next())),
                "--scratch" => arguments.scratch = Some(next().into()),
                _ => {}
            }
        }
        arguments
    }
}

/// Task for the `python` thread, sent by the reading thread.
enum Task {
    Execute {
        header: Value,
        cell: CellRequest,
        /// How many interrupts there were when it was requested.
        interrupts: u64,
    },
    Query {
        header: Value,
        look: KernelQuery,
    },
    Info {
        header: Value,
    },
    State {
        header: Value,
        content: Value,
    },
    Shutdown {
        header: Option<Value>,
    },
}

/// State of the running cell that the threads share.
#[derive(Default)]
struct CellClock {
    running: Mutex<bool>,
    changed: Condvar,
    /// Whether the running cell was interrupted.
    interrupted: AtomicBool,
    /// Number of interrupts, to detect those that arrive before a cell runs.
    interrupts: AtomicU64,
    asked: Mutex<Option<Instant>>,
    stop: Mutex<StopSwitch>,
    /// Whether output is dropped, because cells run again whose output was shown before.
    is_muted: AtomicBool,
    answer: Mutex<Option<String>>,
    answered: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CellClock {
    fn begin(&self) {
        self.interrupted.store(false, Ordering::Release);
        lock(&self.stop).forget_interrupt();
        *lock(&self.asked) = None;
        *lock(&self.running) = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        *lock(&self.running) = false;
        *lock(&self.asked) = None;
    }

    fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::AcqRel);
        if *lock(&self.running) {
            let again = self.interrupted.swap(true, Ordering::AcqRel);
            let mut asked = lock(&self.asked);
            match (again, *asked) {
                (true, Some(_)) => lock(&self.stop).stop(),
                (true, None) | (false, _) => {
                    *asked = Some(Instant::now());
                    lock(&self.stop).interrupt();
                }
            }
        }
    }

    /// Advances the engine's epoch while a cell runs, and stops a cell that ignores its interrupt.
    fn tick(&self, engine: &wasmtime::Engine) {
        loop {
            let mut running = lock(&self.running);
            while !*running {
                running = self.changed.wait(running).unwrap_or_else(PoisonError::into_inner);
            }
            drop(running);
            std::thread::sleep(CLOCK_INTERVAL);
            // The cell may have ended meanwhile, and the machine may be another one.
            let running = lock(&self.running);
            if *running && lock(&self.asked).is_some_and(|asked| asked.elapsed() > INTERRUPT_GRACE) {
                lock(&self.stop).stop();
            }
            drop(running);
            engine.increment_epoch();
        }
    }

    /// Waits for the user's input. `None` if the cell was interrupted.
    fn wait_for_answer(&self) -> Option<String> {
        loop {
            let waiting = lock(&self.answer);
            let (mut answer, _) = self
                .answered
                .wait_timeout_while(waiting, ANSWER_CHECK_INTERVAL, |answer| answer.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = answer.take() {
                return Some(answer);
            }
            if self.interrupted.load(Ordering::Acquire) {
                // The waiting call noticed the interrupt and raises KeyboardInterrupt itself.
                *lock(&self.asked) = None;
                lock(&self.stop).forget_interrupt();
                return None;
            }
        }
    }
}

/// Runs the kernel until a `shutdown_request` or the end of standard input, and returns the process's exit code.
///
/// Must be called once, first thing in `main`: it takes standard input and output for the protocol, and enters the
/// sandbox. `words` are the arguments after `tracebook kernel --science`.
#[must_use]
pub fn run_science_kernel(words: &[String]) -> ExitCode {
    let arguments = ScienceArguments::from_args(words);
    let mut reach = SandboxGrants::from_args(words);
    let mut folders = guest_folders(&reach);
    let (file, own_grant) = (granted_file(&reach), grant_with_own_files(&reach, &arguments));
    python::close_inherited();
    python::protocol::die_with_parent();
    if let Some(states) = &arguments.compare {
        return compare_states(&arguments, reach, states);
    }
    let (input, output) = match python::protocol::take() {
        Ok(pair) => pair,
        Err(error) => {
            eprintln!("tracebook kernel: cannot take standard input and output: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(path) = own_grant {
        eprintln!(
            "tracebook kernel: the kernel science can't reach {}, because Tracebook's own files are in that folder \
             or below it; grant a folder without them",
            path.display()
        );
        return ExitCode::FAILURE;
    }
    // The kernel can access the pack and the note's states. The guest can't: it only sees `folders`.
    reach.network = false;
    reach.read.push(arguments.pack.clone());
    if let Some(scratch) = &arguments.scratch {
        // Caches of packages must not be among the user's notes.
        for (name, guest) in [("home", Some(HOME_FOLDER)), ("tmp", Some("/tmp")), (REVOKED_FOLDER, None)] {
            let host = scratch.join(name);
            if let Err(error) = std::fs::create_dir_all(&host) {
                eprintln!("tracebook kernel: cannot make {}: {error}", host.display());
                return ExitCode::FAILURE;
            }
            // Inserted before granted folders, because saved memory refers to folders by number, and grants change.
            if let Some(guest) = guest {
                let at = folders.len().min(1);
                folders.insert(at, GuestFolder { host, guest: guest.to_owned(), write: true });
            }
        }
        reach.write.push(scratch.clone());
    }
    reach.write.extend(arguments.states.clone());
    reach.address_bytes = Some(ADDRESS_BYTES);
    // Compiled code is mapped before entering the sandbox, in which no memory can become executable. No guest code runs
    // yet. A pack that was compiled by another version is compiled now, which takes a minute or two.
    let loaded = compile_installed(&arguments.pack)
        .and_then(|compiled| LoadedPack::load(&compiled, &arguments.pack.join(LIBRARY_FOLDER)));
    let pack = match loaded {
        Ok(pack) => pack,
        Err(why) => {
            eprintln!("tracebook kernel: {why}");
            return ExitCode::FAILURE;
        }
    };
    let slots = MemorySlots::open();
    CellSandbox::enter(reach);
    if let Some(file) = file.filter(|_| !can_grant_files()) {
        eprintln!(
            "tracebook kernel: the kernel science can't reach a single file on this computer; grant the folder of {} \
             instead",
            file.display()
        );
        return ExitCode::FAILURE;
    }
    let outbox = KernelOutbox::install(output);
    let clock: Arc<CellClock> = Arc::default();
    let (work, queue) = channel();
    let (alive, ended) = channel::<()>();
    let spawned = {
        let clock = clock.clone();
        std::thread::Builder::new().name("python".into()).stack_size(16 << 20).spawn(move || {
            let _alive = alive;
            match ScienceKernel::start((pack, slots), &arguments, folders, outbox, &clock) {
                Ok(mut kernel) => kernel.serve(&queue),
                Err(why) => {
                    eprintln!("tracebook kernel: {why}");
                    std::process::exit(1);
                }
            }
        })
    };
    if let Err(error) = spawned {
        eprintln!("tracebook kernel: cannot start a thread for Python: {error}");
        return ExitCode::FAILURE;
    }
    let mut requests = RequestReader::new(BufReader::new(input));
    let asked = loop {
        let (header, body) = match requests.next_request() {
            IncomingRequest::End => break None,
            IncomingRequest::Invalid { parent, why } => {
                outbox.send_reply(&parent, "error", json!({"ename": "ProtocolError", "evalue": why, "traceback": []}));
                continue;
            }
            IncomingRequest::Request { header, body } => (header, body),
        };
        let sent = match body {
            RequestBody::Interrupt => {
                clock.interrupt();
                outbox.send_reply(&header, "interrupt_reply", json!({"status": "ok"}));
                Ok(())
            }
            RequestBody::Shutdown => break Some(header),
            RequestBody::Info => work.send(Task::Info { header }),
            RequestBody::Query(look) => work.send(Task::Query { header, look }),
            RequestBody::State(content) => work.send(Task::State { header, content }),
            RequestBody::Answer(text) => {
                *lock(&clock.answer) = Some(text);
                clock.answered.notify_all();
                Ok(())
            }
            RequestBody::PureReply(_) => Ok(()),
            RequestBody::Execute(cell) => {
                let interrupts = clock.interrupts.load(Ordering::Acquire);
                work.send(Task::Execute { header, cell, interrupts })
            }
        };
        if sent.is_err() {
            break None;
        }
    };
    clock.interrupt();
    // Fails only if the thread has ended, which the next line detects.
    let _ = work.send(Task::Shutdown { header: asked });
    // Wait until the last cell's changes are saved.
    let _ = ended.recv_timeout(Duration::from_secs(10));
    ExitCode::SUCCESS
}

/// Compares two states and prints the result. The process's start folder stands in for all folders that cells saw.
fn compare_states(arguments: &ScienceArguments, mut reach: SandboxGrants, (a, b): &(String, String)) -> ExitCode {
    let Some(states) = &arguments.states else { return ExitCode::FAILURE };
    let note = guest_folders(&SandboxGrants::default());
    let folders: Vec<GuestFolder> = [NOTE_FOLDER, HOME_FOLDER, "/tmp"]
        .iter()
        .flat_map(|guest| note.iter().map(|folder| GuestFolder { guest: (*guest).to_owned(), ..folder.clone() }))
        .collect();
    reach.network = false;
    reach.read.extend([arguments.pack.clone(), states.clone()]);
    reach.address_bytes = Some(ADDRESS_BYTES);
    let loaded = compile_installed(&arguments.pack)
        .and_then(|compiled| LoadedPack::load(&compiled, &arguments.pack.join(LIBRARY_FOLDER)));
    match loaded {
        Ok(pack) => {
            CellSandbox::enter(reach);
            print_comparison(&pack, (states, &arguments.pack_id), &folders, (a, b))
        }
        Err(why) => {
            eprintln!("tracebook kernel: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folders that cells see: the note's folder, those that were granted, and those of granted files. The
/// sandbox closes what lies beside a granted file; see [`can_grant_files`].
fn guest_folders(reach: &SandboxGrants) -> Vec<GuestFolder> {
    let mut folders: Vec<GuestFolder> = Vec::new();
    if let Ok(host) = std::env::current_dir() {
        folders.push(GuestFolder { host, guest: NOTE_FOLDER.to_owned(), write: true });
    }
    for (paths, write) in [(&reach.read, false), (&reach.write, true)] {
        for path in paths {
            let folder = if path.is_file() { path.parent() } else { Some(path.as_path()).filter(|path| path.is_dir()) };
            let Some(host) = folder else { continue }; // it's gone
            match folders.iter_mut().find(|known| known.host == host && known.guest != NOTE_FOLDER) {
                Some(known) => known.write |= write,
                None => folders.push(GuestFolder {
                    host: host.to_owned(),
                    guest: host.to_string_lossy().into_owned(),
                    write,
                }),
            }
        }
    }
    folders
}

/// Returns a granted path whose folder holds files of the kernel itself. The guest could reach them there, because the
/// sandbox leaves them to the kernel.
fn grant_with_own_files(reach: &SandboxGrants, arguments: &ScienceArguments) -> Option<PathBuf> {
    let own = [Some(&arguments.pack), arguments.states.as_ref(), arguments.scratch.as_ref()];
    // A note's first kernel creates its folders.
    let real = |path: &PathBuf| path.ancestors().find_map(|above| above.canonicalize().ok());
    let own: Vec<PathBuf> = own.into_iter().flatten().filter_map(real).collect();
    let holds_own = |path: &&PathBuf| {
        let folder = if path.is_file() { path.parent() } else { Some(path.as_path()) };
        let folder = folder.and_then(|folder| folder.canonicalize().ok());
        folder.is_some_and(|folder| own.iter().any(|path| path.starts_with(&folder)))
    };
    reach.read.iter().chain(&reach.write).find(holds_own).cloned()
}

/// Returns a granted path that is a file.
fn granted_file(reach: &SandboxGrants) -> Option<PathBuf> {
    reach.read.iter().chain(&reach.write).find(|path| path.is_file()).cloned()
}

/// Returns whether the active sandbox opens a granted file to the guest without the other files of its folder, which
/// WebAssembly alone can't separate.
fn can_grant_files() -> bool {
    cfg!(target_os = "linux") && CellSandbox::get().to_json()["files"] == true
}

/// Returns the guest's path of a script, which is in the kernel's folder.
fn guest_script(file: &str) -> String {
    let name = Path::new(file).file_name().unwrap_or_default();
    format!("{NOTE_FOLDER}/{}", name.to_string_lossy())
}

struct ScienceKernel {
    pack: LoadedPack,
    /// The folders that a fresh instance sees.
    granted: Vec<GuestFolder>,
    /// The folders that the current instance sees, in the order in which its memory knows them.
    folders: Vec<GuestFolder>,
    /// An empty folder.
    revoked: PathBuf,
    outbox: &'static KernelOutbox,
    clock: Arc<CellClock>,
    machine: Machine,
    /// Memory as it was after the last completed cell.
    saved: KernelMemory,
    /// Room for saved memory, where the system tells which pages cells write.
    slots: Option<Arc<MemorySlots>>,
    reply: Arc<Mutex<Option<Value>>>,
    saver: Option<Sender<SaverTask>>,
    saver_thread: Option<std::thread::JoinHandle<()>>,
    /// Message to show with the next cell.
    notice: Option<String>,
    count: u64,
}

impl ScienceKernel {
    fn start(
        (pack, slots): (LoadedPack, Option<Arc<MemorySlots>>),
        arguments: &ScienceArguments,
        folders: Vec<GuestFolder>,
        outbox: &'static KernelOutbox,
        clock: &Arc<CellClock>,
    ) -> Result<ScienceKernel, ScienceError> {
        {
            let (engine, clock) = (pack.engine().clone(), clock.clone());
            let spawned = std::thread::Builder::new().name("clock".into()).spawn(move || clock.tick(&engine));
            spawned.map_err(|source| ScienceError::Thread { source })?;
        }
        // The saved state is loaded while the instance starts.
        let (mut saver, mut saver_thread, mut notice, mut current) = (None, None, None, None);
        if let Some(states) = &arguments.states {
            match StateFolder::open(states, &arguments.pack_id) {
                Ok(mut folder) => {
                    if let Some(why) = folder.take_set_aside() {
                        notice = Some(format!(
                            "The saved variables could not be restored: {why}. Run the cells again; what was saved \
                             before is listed as saved states."
                        ));
                    }
                    if let Some(budget) = arguments.states_budget {
                        folder.set_budget(budget);
                    }
                    let state = folder.heads().current().map(ToOwned::to_owned);
                    let (tasks, queue) = channel();
                    current = state.map(|state| {
                        let (reply, loaded) = channel();
                        let _ = tasks.send(SaverTask::Load { state: state.clone(), reply }); // `queue` is here
                        (state, loaded)
                    });
                    let slots = slots.clone();
                    let thread = std::thread::Builder::new()
                        .name("states".into())
                        .spawn(move || save_states(folder, slots.as_ref(), &queue, outbox));
                    saver_thread = Some(thread.map_err(|source| ScienceError::Thread { source })?);
                    saver = Some(tasks);
                }
                Err(why) => notice = Some(format!("Variables aren't saved: {why}.")),
            }
        }
        let reply = Arc::default();
        let machine = start_machine(&pack, &folders, outbox, clock, &reply)?;
        *lock(&clock.stop) = machine.stop_switch();
        let scratch = arguments.scratch.as_ref();
        let mut kernel = ScienceKernel {
            pack,
            granted: folders.clone(),
            folders,
            revoked: scratch
                .map_or_else(|| arguments.pack.join(LIBRARY_FOLDER), |scratch| scratch.join(REVOKED_FOLDER)),
            outbox,
            clock: clock.clone(),
            machine,
            saved: KernelMemory::default(),
            slots,
            reply,
            saver,
            saver_thread,
            notice,
            count: 0,
        };
        match current {
            Some((state, loaded)) => match kernel.begin_with_coming(&state, &loaded) {
                Ok(()) => kernel.count = kernel.lineage().last().map_or(0, |record| record.count),
                Err(why) => kernel.give_up_saved(&why)?,
            },
            None => {
                kernel.forget_saved();
                kernel.prepare()?;
            }
        }
        outbox.send("kernel_info_reply", kernel_info());
        Ok(kernel)
    }

    fn serve(&mut self, queue: &Receiver<Task>) {
        for task in queue {
            match task {
                Task::Execute { header, cell, interrupts } => self.execute(header, &cell, interrupts),
                Task::Query { header, look } => self.answer(header, &look),
                Task::Info { header } => self.outbox.send_reply(&header, "kernel_info_reply", kernel_info()),
                Task::State { header, content } => self.change_state(&header, &content),
                Task::Shutdown { header } => {
                    // The `states` thread ends once everything is written.
                    self.saver = None;
                    if let Some(thread) = self.saver_thread.take() {
                        let _ = thread.join(); // a panic there was told on standard error
                    }
                    if let Some(header) = header {
                        self.outbox.send_reply(&header, "shutdown_reply", json!({"status": "ok"}));
                    }
                    return;
                }
            }
        }
    }

    /// Loads the harness into a fresh instance.
    fn prepare(&mut self) -> Result<(), ScienceError> {
        let literal = |text: &str| Value::from(text).to_string();
        let program = format!(
            "import sys, types\nm = types.ModuleType('_tracebook_cells')\nsys.modules['_tracebook_cells'] = m\n\
             m.HARNESS = {}\nm.BACKEND = {}\nm.FOLDERS = {}\nexec(compile({}, '<tracebook>', 'exec'), m.__dict__)\n",
            literal(python::CPYTHON_HARNESS),
            literal(python::MATPLOTLIB_BACKEND),
            json!(self.folder_names()),
            literal(GUEST_SOURCE)
        );
        match self.machine.turn(&program) {
            TurnEnd::Returned(0) => Ok(()),
            TurnEnd::Returned(_) | TurnEnd::Lost => Err(ScienceError::OtherProgram),
        }
    }

    /// Returns the guest's paths of the folders that the instance sees.
    fn folder_names(&self) -> Vec<&str> {
        self.folders.iter().map(|folder| folder.guest.as_str()).collect()
    }

    /// Calls a function of the guest's code with JSON arguments. Returns its reply, or `None` if there is none.
    fn call(&mut self, function: &str, arguments: &[&Value]) -> Option<Value> {
        lock(&self.reply).take();
        let arguments: Vec<String> =
            arguments.iter().map(|argument| Value::from(argument.to_string()).to_string()).collect();
        let program = format!("__import__('_tracebook_cells').{function}({})", arguments.join(", "));
        match self.machine.turn(&program) {
            TurnEnd::Returned(_) => lock(&self.reply).take(),
            TurnEnd::Lost => None,
        }
    }

    /// Runs a cell, unless there was an interrupt since it was requested: after an agent's cell, loading the user's
    /// variables takes a while.
    fn execute(&mut self, header: Value, cell: &CellRequest, interrupts: u64) {
        let execution = header["msg_id"].as_str().unwrap_or_default().to_owned();
        self.outbox.begin_reply(header.clone());
        self.outbox.send("status", json!({"execution_state": "busy"}));
        if let Some(branch) = &cell.branch
            && let Err(why) = self.visit_branch(branch)
        {
            return self.refuse_cell(&header, &why);
        }
        if let Some(after) = &cell.after
            && let Err(why) = self.run_after(after, &cell.label)
            && let Err(why) = self.give_up_saved(&why)
        {
            eprintln!("tracebook kernel: {why}");
            std::process::exit(1);
        }
        if let Some(notice) = self.notice.take() {
            self.outbox.print_text(OutputStream::Err, &format!("[{notice}]\n"));
        }
        let file = cell.file.as_deref().map(guest_script);
        let request = json!({
            "code": cell.code, "label": cell.label, "forget": cell.forget, "silent": cell.silent, "file": file,
        });
        self.clock.begin();
        let reply = match self.clock.interrupts.load(Ordering::Acquire) == interrupts {
            true => self.call("execute", &[&request]),
            false => {
                self.clock.interrupted.store(true, Ordering::Release);
                None
            }
        };
        self.clock.end();
        self.count += 1;
        let content = match &reply {
            Some(reply) => json!({
                "status": reply["status"], "execution_count": self.count, "cached": false,
            }),
            None => self.end_lost_cell(),
        };
        self.outbox.send("execute_reply", content);
        self.outbox.send("status", json!({"execution_state": "idle"}));
        match reply {
            Some(reply) => self.save(cell, execution, &reply, header),
            None => self.report_unchanged_state(&header),
        }
        if cell.branch.is_some() {
            self.return_to_own_branch();
        }
    }

    /// Ends a cell without running it, because the branch that it belongs to can't be continued.
    fn refuse_cell(&mut self, header: &Value, why: &ScienceError) {
        let (name, why) = ("KernelError", format!("the cell didn't run in a fork of the variables: {why}"));
        let traceback = [format!("{name}: {why}")];
        self.outbox.send("error", json!({"ename": name, "evalue": why, "traceback": traceback}));
        let content = json!({"status": "error", "execution_count": self.count, "cached": false});
        self.outbox.send("execute_reply", content);
        self.outbox.send("status", json!({"execution_state": "idle"}));
        self.report_unchanged_state(header);
    }

    /// Returns from the branch of an agent's cell. If the user's variables can't be loaded, the process ends, and the
    /// next one tries again.
    fn return_to_own_branch(&mut self) {
        if let Err(why) = self.end_visit() {
            eprintln!("tracebook kernel: {why}");
            std::process::exit(1);
        }
    }

    /// Handles a cell that was stopped or that ended Python: restores the previous state and returns the reply's
    /// content.
    fn end_lost_cell(&mut self) -> Value {
        let interrupted = self.clock.interrupted.load(Ordering::Acquire);
        let (name, why) = match interrupted {
            true => ("KeyboardInterrupt", "the cell was stopped by force; variables are as they were before it"),
            false => ("KernelError", "the cell ended Python; variables are as they were before it"),
        };
        if let Err(why) = self.return_to_saved() {
            eprintln!("tracebook kernel: {why}");
            std::process::exit(1);
        }
        self.count = self.count.saturating_sub(1);
        let traceback = [format!("{name}: {why}")];
        self.outbox.send("error", json!({"ename": name, "evalue": why, "traceback": traceback}));
        json!({"status": "error", "execution_count": self.count, "cached": false})
    }

    fn save(&mut self, cell: &CellRequest, execution: String, reply: &Value, parent: Value) {
        let begun = Instant::now();
        let changes = self.take_changes();
        let path_ms = begun.elapsed().as_secs_f64() * 1000.0;
        let names = |key: &str| {
            let names = reply[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        let record = StateRecord {
            cell: cell.label.clone(),
            execution,
            defined: names("defined"),
            changed: names("changed"),
            time: u64::try_from(time).unwrap_or(u64::MAX),
            code: cell.code.clone(),
            count: self.count,
            forgotten: cell.forget.clone(),
            file: cell.file.as_deref().map(guest_script),
            ..StateRecord::default()
        };
        match &self.saver {
            // Fails only if the thread has panicked, which was reported on standard error.
            Some(saver) => _ = saver.send(SaverTask::Save { changes, record: Box::new(record), parent, path_ms }),
            None => self.report_unchanged_state(&parent),
        }
    }

    /// Reports that a cell leaves no saved state, for which the program would wait.
    fn report_unchanged_state(&self, parent: &Value) {
        self.outbox.send_reply(parent, "state_saved", json!({"status": "unchanged"}));
    }

    fn answer(&mut self, header: Value, look: &KernelQuery) {
        let (kind, request) = match look {
            KernelQuery::Complete { code, at, imports } => ("complete_reply", json!(["complete", [code, at, imports]])),
            KernelQuery::Inspect { code, at } => ("inspect_reply", json!(["inspect", [code, at]])),
            KernelQuery::Variables => ("variables_reply", json!(["variables", []])),
            KernelQuery::Values { names } => {
                let names: Vec<&str> = names.lines().collect();
                ("values_reply", json!(["values", [names]]))
            }
            KernelQuery::Redraw { figure, limits } => ("redraw_reply", json!(["redraw", [figure, limits]])),
            KernelQuery::FrameRows { frame, first } => ("frame_rows_reply", json!(["rows", [frame, first]])),
        };
        self.outbox.begin_reply(header);
        self.clock.begin();
        let said = self.call("look", &[&request]);
        self.clock.end();
        if said.is_none()
            && let Err(why) = self.return_to_saved()
        {
            eprintln!("tracebook kernel: {why}");
            std::process::exit(1);
        }
        self.outbox.send(kind, said.unwrap_or_else(|| json!({"status": "error"})));
    }
}

fn kernel_info() -> Value {
    json!({
        "status": "ok",
        "protocol_version": "5.4",
        "implementation": "tracebook-science",
        "language_info": {"name": "python", "version": "3.15"},
        "sandbox": CellSandbox::get().to_json(),
    })
}

fn start_machine(
    pack: &LoadedPack,
    folders: &[GuestFolder],
    outbox: &'static KernelOutbox,
    clock: &Arc<CellClock>,
    reply: &Arc<Mutex<Option<Value>>>,
) -> Result<Machine, ScienceError> {
    let (clock, reply) = (clock.clone(), reply.clone());
    let door: DoorAnswer = Box::new(move |message| {
        let (kind, content): (String, Value) = serde_json::from_slice(message).ok()?;
        let mut answer = Vec::new();
        let is_muted = clock.is_muted.load(Ordering::Acquire);
        match kind.as_str() {
            "reply" => *lock(&reply) = Some(content),
            "input_request" if is_muted => answer = b"null".to_vec(),
            _ if is_muted => {}
            "stream" => {
                let err = content["name"] == "stderr";
                let stream = if err { OutputStream::Err } else { OutputStream::Out };
                outbox.print_text(stream, content["text"].as_str().unwrap_or_default());
            }
            "input_request" => {
                lock(&clock.answer).take(); // one that came too late for the question before
                outbox.send("input_request", content);
                answer = Value::from(clock.wait_for_answer()).to_string().into_bytes();
            }
            "display_data" | "update_display_data" | "execute_result" => outbox.send_display(&kind, content),
            "error" => outbox.send_error(content),
            "clear_output" => outbox.send(&kind, content),
            _ => return None,
        }
        Some(answer)
    });
    pack.start(folders, &[("HOME".to_owned(), HOME_FOLDER.to_owned())], door, StopSwitch::default())
}
