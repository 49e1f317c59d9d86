//! Containers of Docker and Podman that agents run programs in, over the engine's API on a Unix socket of this machine.
//!
//! A model names an image, a command and a folder of the project; all else of a container is set here: no privileges,
//! no network unless it was asked for, limits of memory, processors, processes and time. Each container has labels with
//! its project, its run and the process that made it. Only containers with the project's label are touched, and those
//! of a run are removed with it. What the engine and the containers answer isn't trusted: it's bounded in size and
//! time.

#[cfg(unix)]
mod container_actions;
mod container_ledger;
mod container_pool;
mod container_spec;
#[cfg(unix)]
mod engine_client;
mod engine_socket;
#[cfg(unix)]
mod image_build;
mod project_folder;

pub use container_pool::{ContainerPool, ContainerSetup};
pub use engine_socket::describe_engine;
pub use project_folder::{FolderEntry, ProjectFiles};

use engine_socket::INSTALL_HINT;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of containers of one run.
pub const MAX_RUN_CONTAINERS: usize = 5;
/// Memory that a container gets where the configuration names no limit, in bytes.
pub const DEFAULT_MEMORY_BYTES: u64 = 2 << 30;
/// Maximum number of processors that a container uses.
pub const MAX_PROCESSORS: usize = 2;
/// Number of processes and threads of a container where the configuration names no limit.
pub const DEFAULT_PROCESSES: usize = 256;
/// Seconds that a command may take if the call names no limit.
pub const DEFAULT_COMMAND_SECS: u64 = 60;
/// Maximum number of seconds for a command that is waited for, and for a build.
pub const MAX_COMMAND_SECS: u64 = 600;
/// Maximum number of seconds for a container in the background.
pub const MAX_BACKGROUND_SECS: u64 = 3_600;
/// Maximum size in bytes of what a command prints. The engine keeps no more of a container's log.
pub const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// Maximum size in bytes of what the engine answers to one request.
pub const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// How long the engine may take for a request that does no work of its own.
pub const ENGINE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an image may take to arrive.
pub const PULL_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum length of a command in bytes.
pub const MAX_COMMAND_BYTES: usize = 100 << 10;

/// A call of one of the tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "tool", deny_unknown_fields)]
pub enum ContainerRequest {
    /// Lists images and the project's containers.
    #[serde(rename = "container_list")]
    List {},
    /// Gets an image from its registry.
    #[serde(rename = "container_pull")]
    Pull {
        /// Name of the image.
        image: String,
    },
    /// Builds an image from a folder of the project.
    #[serde(rename = "container_build")]
    Build {
        /// Path of the folder in the project; empty or `.` for the project's own.
        path: String,
        /// Name of the new image.
        name: String,
        /// Path of the Dockerfile in the folder.
        #[serde(default)]
        dockerfile: Option<String>,
        /// Whether its steps may use the network.
        #[serde(default)]
        network: bool,
        /// Time limit in seconds.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// Runs a command in a new container.
    #[serde(rename = "container_run")]
    Run {
        /// Name or id of an image that the engine has.
        image: String,
        /// Command line for the image's `sh`; `None` for the image's own command.
        #[serde(default)]
        command: Option<String>,
        /// Path of the folder of the project that the container sees at `/work`; `None` for none.
        #[serde(default)]
        path: Option<String>,
        /// Whether it may write there.
        #[serde(default)]
        writable: bool,
        /// Whether it may use the network.
        #[serde(default)]
        network: bool,
        /// Whether it continues after the call.
        #[serde(default)]
        background: bool,
        /// Time limit in seconds.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// Runs a command in a container that is running.
    #[serde(rename = "container_exec")]
    Exec {
        /// Name or id of the container.
        container: String,
        /// Command line for the container's `sh`.
        command: String,
        /// Time limit in seconds.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// Reads what a container has printed.
    #[serde(rename = "container_logs")]
    Logs {
        /// Name or id of the container.
        container: String,
        /// Number of lines from the end.
        #[serde(default)]
        lines: Option<u32>,
    },
    /// Stops or removes a container.
    #[serde(rename = "container_end")]
    End {
        /// Name or id of the container.
        container: String,
        /// Whether it is only stopped.
        action: EndAction,
    },
}

/// How a container ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndAction {
    /// Stops it; what it printed can still be read.
    Stop,
    /// Stops and removes it.
    Remove,
}

impl ContainerRequest {
    /// Reads a call from the tool's name and arguments.
    ///
    /// # Errors
    /// Returns an error if no tool has this name, or it has no such arguments.
    pub fn from_call(tool: &str, arguments: &Map<String, Value>) -> Result<ContainerRequest, ContainerError> {
        let mut all = arguments.clone();
        all.insert("tool".to_owned(), Value::String(tool.to_owned()));
        serde_json::from_value(Value::Object(all)).map_err(ContainerError::Arguments)
    }

    /// Returns whether the call can change files of the project while it's waited for.
    pub fn changes_files(&self) -> bool {
        matches!(self, ContainerRequest::Run { writable: true, background: false, .. })
    }
}

/// The answer to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerAnswer {
    /// Whether the command ended with exit code 0, or the request was carried out.
    pub success: bool,
    /// What happened, with what was printed as a quotation.
    pub text: String,
}

impl ContainerAnswer {
    pub(crate) fn done(text: impl Into<String>) -> ContainerAnswer {
        ContainerAnswer { success: true, text: text.into() }
    }
}

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// There's no engine.
    #[error("no Docker or Podman was found on this machine: {INSTALL_HINT}")]
    NotInstalled,
    /// The configured socket isn't there.
    #[error(
        "there is no socket {0}, which containers.socket in config.yaml names; start the engine, or change the setting"
    )]
    NoSocket(PathBuf),
    /// The engine isn't on this machine.
    #[error(
        "{setting} names the engine {address}, but agents use only an engine at a Unix socket of this machine; name \
         one as containers.socket in config.yaml"
    )]
    Remote {
        /// Where the address is configured.
        setting: &'static str,
        /// The address.
        address: String,
    },
    /// This system isn't supported.
    #[error("the container tools work on Linux and macOS only")]
    Unsupported,
    /// The engine doesn't accept a connection.
    #[error("the container engine at {socket} cannot be reached ({why}); start it, or ask for access to its socket")]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The engine refuses a request, or answers what nobody understands.
    #[error("the container engine failed at {what}: {why}")]
    Engine {
        /// The request that failed.
        what: &'static str,
        /// The engine's message.
        why: String,
    },
    /// The call was canceled.
    #[error("cancelled")]
    Cancelled,
    /// Something took too long.
    #[error("{what} took longer than {secs} s", secs = limit.as_secs())]
    TimedOut {
        /// The request that took too long.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// An argument is missing or wrong.
    #[error("the arguments don't fit: {0}")]
    Arguments(#[source] serde_json::Error),
    /// An argument is not allowed.
    #[error("{0}")]
    Refused(String),
    /// The engine doesn't have the image.
    #[error("the engine has no image {0}; container_list names those that it has, and container_pull gets one")]
    UnknownImage(String),
    /// The project has no such container.
    #[error("this project has no container {0}; container_list names those that there are")]
    UnknownContainer(String),
    /// The run has too many containers.
    #[error("this run has {MAX_RUN_CONTAINERS} containers already; remove one with container_end")]
    TooManyContainers,
    /// Something of the system failed.
    #[error("{what} failed ({source})")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests;
