//! The containers of this process: calls, and their end with the run, with the process, or when the next process finds
//! that this one was killed.

use crate::ContainerError;
use crate::container_ledger::ContainerLedger;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::DocId;

/// How long the end of the program waits until containers of an earlier process are removed.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval for checking whether a container in the background has used up its time.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// What of this device a job may use.
#[derive(Clone, Debug, Default)]
pub struct ContainerSetup {
    /// Folders that no container sees, nor their parents.
    pub closed: Vec<PathBuf>,
    /// The limits of the configuration and of the agent.
    pub limits: agent::config::SandboxLimits,
}

/// The containers of this process.
pub struct ContainerPool {
    workspace: PathBuf,
    ledgers: Mutex<Vec<ContainerLedger>>,
    sweep: Mutex<Option<JoinHandle<()>>>,
    /// Nobody holds it once the pool is gone.
    alive: Arc<()>,
}

impl Drop for ContainerPool {
    fn drop(&mut self) {
        self.close_all();
    }
}

impl ContainerPool {
    /// Creates the pool of a workspace. Nothing is started.
    pub fn new(workspace: &Path) -> ContainerPool {
        ContainerPool {
            workspace: workspace.to_owned(),
            ledgers: Mutex::default(),
            sweep: Mutex::default(),
            alive: Arc::default(),
        }
    }

    fn ledgers(&self) -> MutexGuard<'_, Vec<ContainerLedger>> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes in the background what processes that were killed have left.
    pub fn remove_leftovers(&self) {
        let stale = ContainerLedger::take_stale(&self.workspace);
        if stale.is_empty() {
            return;
        }
        let sweep = std::thread::spawn(move || stale.into_iter().for_each(remove_all_of));
        *self.sweep.lock().unwrap_or_else(PoisonError::into_inner) = Some(sweep);
    }

    /// Removes the containers of a run.
    pub fn close(&self, run: DocId) {
        #[cfg(unix)]
        {
            use crate::container_actions::remove_of_run;
            let sockets: Vec<PathBuf> = self.ledgers().iter().map(|ledger| ledger.socket.clone()).collect();
            for socket in sockets {
                let client = crate::engine_client::EngineClient::connect(&socket);
                // What stays is removed with the process, or by the next one.
                let _ = client.and_then(|client| client.run(remove_of_run(&client, &run.to_string())));
            }
        }
        #[cfg(not(unix))]
        let _ = run; // it has none
    }

    /// Removes all containers of this process.
    pub fn close_all(&self) {
        let ledgers = std::mem::take(&mut *self.ledgers());
        ledgers.into_iter().for_each(remove_all_of);
        let sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner).take();
        let until = Instant::now() + SWEEP_TIMEOUT;
        while sweep.as_ref().is_some_and(|sweep| !sweep.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the name of this process in labels, which is on disk before the first container is made.
    #[cfg(unix)]
    fn owner_for(&self, socket: &Path) -> Result<String, ContainerError> {
        let mut ledgers = self.ledgers();
        if let Some(known) = ledgers.iter().find(|ledger| ledger.socket == socket) {
            return Ok(known.owner.clone());
        }
        let system = |source| ContainerError::System { what: "recording the container", source };
        let ledger = ContainerLedger::begin(&self.workspace, socket).map_err(system)?;
        let owner = ledger.owner.clone();
        ledgers.push(ledger);
        Ok(owner)
    }

    /// Stops a container in the background after its time.
    #[cfg(unix)]
    fn watch(&self, socket: &Path, started: crate::container_actions::BackgroundContainer) {
        use crate::engine_client::{EngineClient, EngineLimit};
        let until = Instant::now() + Duration::from_secs(started.seconds);
        let (socket, alive) = (socket.to_owned(), Arc::downgrade(&self.alive));
        std::thread::spawn(move || {
            while Instant::now() < until {
                std::thread::sleep(WATCH_INTERVAL);
                if alive.upgrade().is_none() {
                    return; // removed with all others
                }
            }
            let limit = EngineLimit { is_stopped: &|| false };
            let client = EngineClient::connect(&socket);
            // If the engine doesn't answer now, the container is removed at the end of the run.
            let _ = client.and_then(|client| client.run(crate::container_actions::kill(&client, limit, &started.id)));
        });
    }

    /// Performs a job of a container tool. `is_stopped` is asked often; a job ends within some seconds of it, when what
    /// it has started is gone.
    ///
    /// # Errors
    /// Returns an error if there's no engine, the job fails, or it's one of another kind.
    #[cfg(unix)]
    pub fn perform_job(
        &self,
        job: &agent::tool_job::ToolJob,
        files: &dyn crate::ProjectFiles,
        setup: &ContainerSetup,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<crate::ContainerAnswer, ContainerError> {
        use crate::container_actions::ContainerCall;
        use crate::container_spec::ContainerOwner;
        use crate::engine_client::{EngineClient, EngineLimit};
        let agent::tool_job::ToolJob::Container { run, project, tool, arguments, socket, restricted, .. } = job else {
            return Err(ContainerError::Refused("that is no call of a container tool".to_owned()));
        };
        let request = crate::ContainerRequest::from_call(tool, arguments)?;
        let socket = crate::engine_socket::find_socket(socket.as_deref())?;
        let limit = EngineLimit { is_stopped };
        let client = EngineClient::connect_within(&socket, limit)?;
        let owner = match &request {
            crate::ContainerRequest::Run { .. } => self.owner_for(&socket)?,
            _ => String::new(),
        };
        // Who reaches the engine may do everything.
        let own_socket = socket.canonicalize().unwrap_or_else(|_| socket.clone());
        let closed: Vec<PathBuf> = setup.closed.iter().cloned().chain([own_socket]).collect();
        let call = ContainerCall {
            client: &client,
            limit,
            owner: ContainerOwner { owner, project: *project, run: *run },
            access: crate::project_folder::ProjectAccess { files, rules: &setup.limits.paths, closed: &closed },
            limits: &setup.limits,
            network_restricted: *restricted,
        };
        let (answer, started) = client.run(call.perform(&request))?;
        if let Some(started) = started {
            self.watch(&socket, started);
        }
        Ok(answer)
    }

    /// Refuses a job, because this system has no Unix sockets.
    ///
    /// # Errors
    /// Returns an error.
    #[cfg(not(unix))]
    pub fn perform_job(
        &self,
        _: &agent::tool_job::ToolJob,
        _: &dyn crate::ProjectFiles,
        _: &ContainerSetup,
        _: &dyn Fn() -> bool,
    ) -> Result<crate::ContainerAnswer, ContainerError> {
        Err(ContainerError::Unsupported)
    }
}

/// Removes the containers of a process, and forgets it if that succeeds.
fn remove_all_of(ledger: ContainerLedger) {
    #[cfg(unix)]
    {
        let client = crate::engine_client::EngineClient::connect(&ledger.socket);
        let removed =
            client.and_then(|client| client.run(crate::container_actions::remove_owned(&client, &ledger.owner)));
        if removed.is_ok() {
            ledger.finish();
        }
    }
    #[cfg(not(unix))]
    ledger.finish();
}
