//! Runs tool jobs: each on a thread of its own, several at once, limited in time and size, and canceled within a
//! second. This module doesn't decide what may be done; that was decided before.

#[cfg(feature = "containers")]
mod container_job;
mod fetch;
mod files;
mod git;
mod interpreter_run;
mod mcp;
mod path_limits;
mod script_files;
mod server_requests;
mod shell;
pub mod tool_environment;
mod truncate;

pub use fetch::fetch_file;
pub(crate) use fetch::{WebhookError, fetch_text_file, post_json};
pub(crate) use server_requests::ServerRequests;

use crate::agents::project_memory::{memory_folders, read_project_memory};
use crate::fs::volume_snapshot::{ProgramBaselines, ProgramChanges};
use crate::search::{SearchRequest, SearchService, excerpt, highlight_ranges};
use agent::config::{SandboxLimits, SandboxPaths};
use agent::tool_job::{GitJob, ToolJob, ToolOutcome};
use agent::tool_lines::line_range;
use anyhow::{Context, anyhow, bail};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use store::DocId;
use store::disk::BlobStore;
use truncate::truncate_output;

/// Maximum number of simultaneous jobs; others wait for a free slot.
pub const MAX_RUNNING_TOOL_JOBS: usize = 16;
/// Maximum duration of a job in seconds, whatever it requests.
pub const MAX_JOB_SECS: u64 = 3_600;
/// Interval for checking whether a job was canceled.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum bytes shown of each passage found.
const MAX_PASSAGE_BYTES: usize = 600;

/// Returns the user's own toolchains: folders below the home folder that contain programs and no secrets.
fn tool_chains(home: &Path) -> Vec<PathBuf> {
    let known =
        [".cargo/bin", ".rustup", ".local/bin", ".pyenv", ".nvm/versions", ".volta", ".asdf", ".deno/bin", "go/bin"];
    let folders = known.iter().map(|folder| home.join(folder)).filter(|folder| folder.is_dir());
    folders.filter_map(|folder| folder.canonicalize().ok()).filter(|folder| folder.starts_with(home)).collect()
}

/// Environment that tools work with.
#[derive(Clone)]
pub struct ToolWorkspace {
    /// Path of the program, which is also the sandbox and the kernel.
    pub program: PathBuf,
    /// Folders that sandboxed programs may read besides the system's own: the user's toolchains.
    pub readable: Vec<PathBuf>,
    /// Service that searches passages.
    pub search: Option<SearchService>,
    /// MCP servers whose tools can be called.
    pub servers: Option<::mcp::McpServerPool>,
    /// Where these servers' requests go; `None` if there are no runs.
    pub(crate) server_requests: Option<ServerRequests>,
    /// The browsers of runs.
    #[cfg(feature = "browser")]
    browsers: Arc<::browser::BrowserPool>,
    /// The containers of runs.
    #[cfg(feature = "containers")]
    containers: Arc<::containers::ContainerPool>,
    /// What programs that work as agents have found in their folders.
    pub(crate) baselines: Arc<ProgramBaselines>,
    /// The user's home folder, whose hidden files are off limits.
    pub home: Option<PathBuf>,
    /// The workspace's folder, which tools can't access.
    workspace: PathBuf,
    /// Blob store for results.
    blobs: BlobStore,
}

impl ToolWorkspace {
    /// Creates the tools' environment for this workspace; `program` is Tracebook itself.
    pub fn new(program: PathBuf, workspace: &Path) -> ToolWorkspace {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let blobs = BlobStore::new(&workspace);
        let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
        #[cfg(feature = "containers")]
        let containers = Arc::new(::containers::ContainerPool::new(&workspace));
        let readable = home.as_deref().map(tool_chains).unwrap_or_default();
        ToolWorkspace {
            program,
            readable,
            search: None,
            servers: None,
            server_requests: None,
            #[cfg(feature = "browser")]
            browsers: Arc::default(),
            #[cfg(feature = "containers")]
            containers,
            baselines: Arc::default(),
            home,
            workspace,
            blobs,
        }
    }
}

/// Flag that tells a job to stop.
#[derive(Clone, Default)]
struct StopSignal {
    flag: Arc<AtomicBool>,
    /// The command of a program that works as an agent; it may end it.
    command: Option<acp::RunningCommand>,
}

impl StopSignal {
    fn is_stopped(&self) -> bool {
        self.flag.load(Ordering::Acquire) || self.command.as_ref().is_some_and(acp::RunningCommand::is_kill_wanted)
    }

    fn check_not_stopped(&self) -> anyhow::Result<()> {
        if self.is_stopped() { Err(anyhow!(CANCELLED_MESSAGE)) } else { Ok(()) }
    }
}

const CANCELLED_MESSAGE: &str = "cancelled";

/// All running jobs.
#[derive(Default)]
struct ToolJobs {
    running: Mutex<HashMap<u64, StopSignal>>,
    /// Number of jobs that have a slot.
    busy: Mutex<usize>,
}

/// Runs tool jobs. Dropping it cancels all running ones.
pub struct ToolRunner {
    place: Arc<ToolWorkspace>,
    jobs: Arc<ToolJobs>,
    confined: OnceLock<()>,
}

impl Drop for ToolRunner {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl ToolRunner {
    /// Creates a runner; nothing is started before the first job.
    pub fn new(place: ToolWorkspace) -> ToolRunner {
        ToolRunner { place: Arc::new(place), jobs: Arc::default(), confined: OnceLock::new() }
    }

    /// Starts a job under an id that no other running job has. `on_done` is called exactly once, on another thread,
    /// whatever happens.
    pub fn start(&self, id: u64, job: ToolJob, on_done: impl FnOnce(ToolOutcome) + Send + 'static) {
        self.start_command(id, job, None, on_done);
    }

    /// Starts a job like [`Self::start`]. If it runs a command of a program that works as an agent, that program sees
    /// it.
    pub(crate) fn start_command(
        &self,
        id: u64,
        job: ToolJob,
        command: Option<acp::RunningCommand>,
        on_done: impl FnOnce(ToolOutcome) + Send + 'static,
    ) {
        let stop = StopSignal { command, ..StopSignal::default() };
        if let Some(before) = self.running_jobs().insert(id, stop.clone()) {
            before.flag.store(true, Ordering::Release); // two of one name: the first is not wanted any more
        }
        let (place, jobs) = (self.place.clone(), self.jobs.clone());
        std::thread::spawn(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _turn = jobs.wait_for_slot(&stop)?;
                let call = crate::logging::ToolCallLog::begin(&job);
                let done = run_job(&place, &job, &stop);
                call.end(&done);
                done
            }));
            let done = done.unwrap_or_else(|_| Err(anyhow!("the tool failed; this is a fault of Tracebook's")));
            let mut running = jobs.running.lock().unwrap_or_else(PoisonError::into_inner);
            if running.get(&id).is_some_and(|known| Arc::ptr_eq(&known.flag, &stop.flag)) {
                running.remove(&id);
            }
            drop(running);
            on_done(done.unwrap_or_else(|why| ToolOutcome {
                text: agent::tool_job::truncate_middle(&why.to_string()),
                is_missing: files::is_missing(&why),
                ..ToolOutcome::default()
            }));
        });
    }

    /// Cancels a job within a second; `on_done` gets its result so far. Returns whether the job exists.
    pub fn cancel(&self, id: u64) -> bool {
        let running = self.running_jobs();
        running.get(&id).inspect(|stop| stop.flag.store(true, Ordering::Release)).is_some()
    }

    /// Cancels all jobs, closes all browsers and removes all containers.
    pub fn cancel_all(&self) {
        self.running_jobs().values().for_each(|stop| stop.flag.store(true, Ordering::Release));
        #[cfg(feature = "browser")]
        self.place.browsers.close_all();
        #[cfg(feature = "containers")]
        self.place.containers.close_all();
    }

    /// Closes the browser of a run in the background.
    pub fn close_browser(&self, run: DocId) {
        #[cfg(feature = "browser")]
        {
            let browsers = self.place.browsers.clone();
            std::thread::spawn(move || browsers.close(run));
        }
        #[cfg(not(feature = "browser"))]
        let _ = run; // it has none
    }

    /// Removes in the background what processes that were killed have left in the workspace.
    pub fn remove_leftovers(&self) {
        #[cfg(feature = "containers")]
        self.place.containers.remove_leftovers();
    }

    /// Removes the containers of a run in the background.
    pub fn remove_containers(&self, run: DocId) {
        #[cfg(feature = "containers")]
        {
            let containers = self.place.containers.clone();
            std::thread::spawn(move || containers.close(run));
        }
        #[cfg(not(feature = "containers"))]
        let _ = run; // it has none
    }

    /// Returns the number of running jobs.
    pub fn running_count(&self) -> usize {
        self.running_jobs().len()
    }

    /// Checks that shell and Python can be sandboxed here. The first successful check takes some milliseconds, later
    /// ones none.
    ///
    /// # Errors
    /// Returns a message that says what this machine lacks; such jobs are then refused.
    pub fn check_confinement(&self) -> anyhow::Result<()> {
        let look = || {
            let tried = shell::probe_sandbox(&self.place)?;
            if tried.success { Ok(()) } else { Err(anyhow!("the sandbox does not work here: {}", tried.text)) }
        };
        if self.confined.get().is_none() {
            look()?; // a machine that is too busy now may not be so later: only what works is remembered
            // Another thread may have finished the same check first.
            let _ = self.confined.set(());
        }
        Ok(())
    }

    fn running_jobs(&self) -> std::sync::MutexGuard<'_, HashMap<u64, StopSignal>> {
        self.jobs.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's slot, which is freed on drop.
struct ToolSlot<'a>(&'a ToolJobs);

impl Drop for ToolSlot<'_> {
    fn drop(&mut self) {
        *self.0.busy.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

impl ToolJobs {
    fn wait_for_slot(&self, stop: &StopSignal) -> anyhow::Result<ToolSlot<'_>> {
        loop {
            stop.check_not_stopped()?;
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            if *busy < MAX_RUNNING_TOOL_JOBS {
                *busy += 1;
                return Ok(ToolSlot(self));
            }
            drop(busy);
            std::thread::sleep(CANCEL_POLL_INTERVAL);
        }
    }
}

fn run_job(place: &Arc<ToolWorkspace>, job: &ToolJob, stop: &StopSignal) -> anyhow::Result<ToolOutcome> {
    match job {
        ToolJob::Limited { limits, job } => {
            path_limits::check_job_paths(job, &limits.paths)?;
            run_limited_job(place, job, limits, stop)
        }
        job => run_limited_job(place, job, &SandboxLimits::default(), stop),
    }
}

fn run_limited_job(
    place: &Arc<ToolWorkspace>,
    job: &ToolJob,
    limits: &SandboxLimits,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    match job {
        ToolJob::Limited { .. } => bail!("a job has one list of limits"),
        ToolJob::Read { root, path, lines } => files::read(place, root, path, *lines),
        ToolJob::MemoryLog { roots, lines } => {
            let read = |root: &PathBuf| read_project_memory(root, &memory_folders(root)).entries;
            let entries: Vec<_> = roots.iter().flat_map(read).collect();
            let text = line_range(&agent::system_volume::memory_log(&entries), *lines);
            let (text, whole) = truncate_output(text.as_bytes(), &place.blobs)?;
            Ok(ToolOutcome { success: true, text, whole, ..ToolOutcome::default() })
        }
        ToolJob::List { root, path } => files::list(place, (root, path), &limits.paths, stop),
        ToolJob::Replace { root, path, text, expected } => files::write_text(place, root, path, text, *expected),
        ToolJob::Amend { root, path, old, new } => files::edit_text(place, root, path, old, new),
        ToolJob::Remove { root, path } => files::remove(place, root, path),
        ToolJob::Restore { root, path, expected, to } => files::restore(place, root, path, *expected, *to),
        ToolJob::Shell { root, path, command, seconds, network } => {
            let seconds = path_limits::limited_seconds(*seconds, limits);
            shell::run(place, &shell::ShellRun { root, path, command, seconds, network: *network, limits }, stop)
        }
        ToolJob::Python { root, code, seconds, web, grants, packages } => {
            let packages = packages.as_deref();
            let python = packages.map(|packages| tool_environment::find_tool_python(&place.workspace, packages));
            let python = python.transpose()?;
            let program = interpreter_run::RunProgram::Python { code, environment: python.as_ref() };
            let seconds = path_limits::limited_seconds(*seconds, limits);
            let run =
                interpreter_run::InterpreterRun { root, program, seconds, web: web.as_ref(), grants: *grants, limits };
            run_interpreter(place, run, stop)
        }
        ToolJob::JavaScript { root, call, seconds, web, grants } => {
            let program = interpreter_run::RunProgram::JavaScript(call);
            let seconds = path_limits::limited_seconds(*seconds, limits);
            let run =
                interpreter_run::InterpreterRun { root, program, seconds, web: web.as_ref(), grants: *grants, limits };
            run_interpreter(place, run, stop)
        }
        ToolJob::ProgramReport { root, run, paths, success, text } => {
            let ProgramChanges { own: changed, ordered, remarks } =
                place.baselines.changes_of(*run, root, paths, &place.blobs)?;
            let text =
                [text.as_str()].into_iter().chain(remarks.iter().map(String::as_str)).collect::<Vec<_>>().join("\n");
            let text = text.trim_start().to_owned();
            Ok(ToolOutcome { success: *success, text, changed, ordered, ..ToolOutcome::default() })
        }
        ToolJob::Search { query, limit, fork } => {
            let ask = SearchRequest { text: query.clone(), limit: *limit, fork: fork.clone(), ..Default::default() };
            let paths = limits.paths.clone();
            run_detached(place, stop, move |place| search_notes(place, ask, &paths))
        }
        ToolJob::Git { root, what } => {
            // A commit that has begun isn't abandoned halfway; read-only operations can be.
            let (root, what, paths, stopped) = (root.clone(), what.clone(), limits.paths.clone(), stop.clone());
            match &what {
                GitJob::Add { .. } | GitJob::Commit { .. } | GitJob::Branch { name: Some(_) } => {
                    git::run(place, (&root, &paths), &what, stop)
                }
                _ => run_detached(place, stop, move |place| git::run(place, (&root, &paths), &what, &stopped)),
            }
        }
        ToolJob::GitProgram { root, what, web } => git::run_program(place, root, what, web, stop),
        ToolJob::Fetch { url, hosts, inside } => {
            let (url, hosts, inside) = (url.clone(), hosts.clone(), inside.clone());
            run_detached(place, stop, move |place| fetch::run(place, &url, &hosts, &inside))
        }
        #[cfg(feature = "browser")]
        ToolJob::Browser { .. } => {
            let answer = place.browsers.perform_job(job, limits.memory_bytes, &|| stop.is_stopped())?;
            let mut outcome =
                ToolOutcome { success: answer.asks.is_none(), asks: answer.asks, ..ToolOutcome::default() };
            for file in answer.files {
                let blob = truncate::store_blob(&file.bytes, &place.blobs)?;
                outcome.attached.push(store::BlobRef { blob, mime: file.mime, size: file.bytes.len() as u64 });
            }
            (outcome.text, outcome.whole) = truncate_output(answer.text.as_bytes(), &place.blobs)?;
            Ok(outcome)
        }
        #[cfg(not(feature = "browser"))]
        ToolJob::Browser { .. } => bail!(
            "this build has no browser tools; `cargo build --release --ignore-rust-version --features full` makes one \
             that has"
        ),
        #[cfg(feature = "containers")]
        ToolJob::Container { root, .. } => container_job::run(place, root, job, limits, stop),
        #[cfg(not(feature = "containers"))]
        ToolJob::Container { .. } => bail!(
            "this build has no container tools; `cargo build --release --ignore-rust-version --features full` makes \
             one that has"
        ),
        ToolJob::Mcp { run, root, call, server, tool, arguments, definition } => {
            mcp::run(place, &mcp::McpCall { run: *run, root, call, server, tool, arguments, definition }, stop)
        }
    }
}

/// Runs a program in the project's folder, or in an empty one if it may not use files.
fn run_interpreter(
    place: &ToolWorkspace,
    run: interpreter_run::InterpreterRun<'_>,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    if run.grants.fs {
        return interpreter_run::run(place, &run, stop);
    }
    let own = shell::PrivateFolder::new()?;
    interpreter_run::run(place, &interpreter_run::InterpreterRun { root: own.path(), ..run }, stop)
}

/// Runs work that can't be interrupted on a thread of its own. The thread is abandoned on cancel, because it changes
/// nothing.
fn run_detached(
    place: &Arc<ToolWorkspace>,
    stop: &StopSignal,
    work: impl FnOnce(&ToolWorkspace) -> anyhow::Result<ToolOutcome> + Send + 'static,
) -> anyhow::Result<ToolOutcome> {
    let (tell, told) = channel();
    let place = place.clone();
    std::thread::spawn(move || {
        let _ = tell.send(work(&place)); // nobody may wait any more
    });
    loop {
        match told.recv_timeout(CANCEL_POLL_INTERVAL) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => stop.check_not_stopped()?,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the tool failed; this is a fault of Tracebook's");
            }
        }
    }
}

fn search_notes(place: &ToolWorkspace, ask: SearchRequest, paths: &SandboxPaths) -> anyhow::Result<ToolOutcome> {
    let search = place.search.as_ref().context("there is no search here")?;
    let query = ask.text.clone();
    let answer = search.search_blocking(SearchRequest { limit: ask.limit.clamp(1, 50), ..ask })?;
    let mut text = String::new();
    let shown = answer.hits.iter().filter(|hit| answer.has_match() && !paths.is_hidden(&hit.path));
    for hit in shown {
        let (passage, _) = excerpt(&hit.text, &highlight_ranges(&hit.text, &answer.terms), MAX_PASSAGE_BYTES);
        text += &format!("{}/{} ({}, {})\n{}\n\n", hit.volume, hit.path, hit.title, hit.place, passage.trim());
    }
    let found_nothing = text.is_empty();
    if found_nothing {
        text = format!("nothing fits “{query}”");
    }
    let (text, whole) = truncate_output(text.trim_end().as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, found_nothing, ..ToolOutcome::default() })
}
