//! Why a run, or a decision about one, isn't sent.

use engine::CommandError;
use host::OwnerGone;
use host::peers::work::{RunOrderError, SignedTextError, WorkError};

/// Why a run, or a decision about one, isn't sent.
#[derive(Debug, thiserror::Error)]
pub enum SentRunError {
    /// The device's key or its list of devices can't be read.
    #[error("{0}")]
    Identity(#[source] anyhow::Error),
    /// This device isn't paired with the hub.
    #[error(
        "this device isn't paired with the hub, so it can't send or carry out runs there: `tracebook pair {address}`"
    )]
    NotPaired {
        /// The hub's address.
        address: String,
    },
    /// The volume isn't shared over a hub.
    #[error(
        "runs are sent over a hub, and this volume isn't shared over one: `tracebook sync share VOLUME wss://HOST:PORT`"
    )]
    NotShared,
    /// No device has this name or key.
    #[error("{hub} knows no device “{word}”; it knows {names}; `--on any` takes whichever worker is free")]
    UnknownDevice {
        /// The hub's name.
        hub: String,
        /// The name or key that the user gave.
        word: String,
        /// The names of its devices.
        names: String,
    },
    /// Several devices have this name, or keys that begin so.
    #[error("{hub} knows several devices “{word}”; give the beginning of the key")]
    SeveralDevices {
        /// The hub's name.
        hub: String,
        /// The name or key that the user gave.
        word: String,
    },
    /// The agent isn't known here, as a sentence that says which ones are.
    #[error("{0}")]
    Agent(String),
    /// A tool that is to be allowed isn't known here, as a sentence that says which ones are.
    #[error("{0}")]
    Tool(String),
    /// The agent works on memory, which other devices don't have.
    #[error("agents of memory work only on the device that has the memory")]
    MemoryAgent,
    /// The configuration, whose rules go with the run, has an error.
    #[error("the configuration can't be used, and its rules go with the run: {0}")]
    Configuration(String),
    /// The tools and agents couldn't be read in time.
    #[error("the tools could not be read in a minute")]
    Setup,
    /// The hub didn't get everything in time.
    #[error(
        "not everything was sent to the hub in a minute, so the worker would work on an older state; see `tracebook \
         sync status`"
    )]
    NotSynced,
    /// Only the device that sent the run allows its calls.
    #[error(
        "the device that sent the run decides about its calls; here you can deny it, or stop the run: `tracebook runs \
         RUN --stop`"
    )]
    NotOwner,
    /// An order doesn't hold.
    #[error(transparent)]
    Order(#[from] RunOrderError),
    /// The task of an order can't be read.
    #[error("the order isn't in the form that this version knows ({0})")]
    Task(#[source] serde_json::Error),
    /// The task or a decision can't be written.
    #[error("the run can't be written as JSON ({0})")]
    Form(#[source] serde_json::Error),
    /// The order or the decision can't be signed.
    #[error("the run can't be sent: {0}")]
    Sign(#[from] SignedTextError),
    /// The hub can't be reached, or refuses.
    #[error(transparent)]
    Queue(#[from] WorkError),
    /// A command was refused here.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The program is closing.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
}
