//! Why a hub doesn't start, and why its storage doesn't do it now.

use peers::devices::DeviceListError;
use peers::key::RandomBytesError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use store::disk::DiskError;

/// Why a file of a hub's folder can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HubFileError {
    /// The system refuses.
    #[error("{source}: {}", path.display())]
    Io {
        /// What the system says.
        source: io::Error,
        /// The file or folder.
        path: PathBuf,
    },
    /// It isn't JSON of the expected form.
    #[error("{source}: {}", path.display())]
    Json {
        /// What doesn't fit.
        source: serde_json::Error,
        /// The file.
        path: PathBuf,
    },
    /// What it should hold can't be written as JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// The system has no chance to give.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
}

impl HubFileError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HubFileError {
        let path = path.into();
        move |source| HubFileError::Io { source, path }
    }
}

/// Why a certificate can't be used or made.
#[derive(Debug, thiserror::Error)]
pub enum HubCertificateError {
    /// It can't be written.
    #[error(transparent)]
    File(#[from] HubFileError),
    /// It can't be read as PEM.
    #[error("{source}: {}", path.display())]
    Pem {
        /// What doesn't fit.
        source: rustls::pki_types::pem::Error,
        /// The file.
        path: PathBuf,
    },
    /// There is none in its file.
    #[error("there is no certificate in it: {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It doesn't fit its key.
    #[error("{source}: {}", path.display())]
    Unfit {
        /// What doesn't fit.
        source: rustls::Error,
        /// The file of the certificate.
        path: PathBuf,
    },
    /// TLS can't be used.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// None can be made.
    #[error(transparent)]
    SelfSigned(#[from] rcgen::Error),
}

/// Why a hub doesn't start.
#[derive(Debug, thiserror::Error)]
pub enum HubStartError {
    /// Without TLS, other machines could listen.
    #[error("without TLS a hub listens on this machine alone, not on {0}; leave out --plain")]
    PlainAddress(SocketAddr),
    /// Its folder, or a file in it, can't be used.
    #[error(transparent)]
    File(#[from] HubFileError),
    /// Another hub holds the folder.
    #[error("another hub runs over this folder: {}", folder.display())]
    AlreadyRuns {
        /// The folder.
        folder: PathBuf,
    },
    /// Its certificate can't be used.
    #[error(transparent)]
    Certificate(#[from] HubCertificateError),
    /// Its address can't be used.
    #[error("it cannot listen on {address} ({source})")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The list of devices can't be used.
    #[error(transparent)]
    Devices(#[from] DeviceListError),
    /// Its database can't be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The system has no chance to give.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// The system gives no thread or no socket.
    #[error(transparent)]
    System(#[from] io::Error),
    /// No server of NATS can be used.
    #[error("NATS cannot be used: {why}: {servers}")]
    Nats {
        /// What the client says.
        why: String,
        /// Addresses of the servers.
        servers: String,
    },
    /// NATS has no stream, and makes none.
    #[error("NATS has no stream for the hub, and none can be made: {0}")]
    NatsStream(String),
    /// NATS doesn't say what its stream has.
    #[error("{0}")]
    NatsStreamInfo(String),
}

/// Why a blob can't be read or stored now: what the log says. It's tried again.
#[derive(Debug, thiserror::Error)]
pub enum HubFilesError {
    /// A file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The disk doesn't take it.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// NATS reports an error.
    #[error("{0}")]
    Nats(String),
    /// NATS doesn't answer in time.
    #[error("no answer")]
    NatsTimeout,
    /// NATS has reported errors for a long time; the last one.
    #[error("NATS does not answer as it should: {0}")]
    NatsUnreliable(#[source] Box<HubFilesError>),
    /// NATS doesn't store a message.
    #[error("NATS does not take it: {0}")]
    NatsRefused(String),
    /// A message at NATS isn't ours.
    #[error("there is something at NATS that is no piece of a file")]
    NotPiece,
    /// NATS has lost a piece of a complete file.
    #[error("NATS lost part of a file; a device that has the file sends it again")]
    PieceLost,
    /// Another replica completed the file meanwhile.
    #[error("another replica has it whole by now")]
    WholeElsewhere,
    /// Another replica appends to the file.
    #[error("another replica takes it just now")]
    TakenElsewhere,
    /// The pieces before this one are gone.
    #[error("what stood before it is gone")]
    PredecessorGone,
    /// A piece before this one was not stored.
    #[error("what stands before it was not taken")]
    PredecessorRefused,
    /// A piece of the file was not stored.
    #[error("some of it wasn't stored")]
    Incomplete,
    /// The pieces of several replicas don't fit together.
    #[error("what several replicas took is not what its name says")]
    MixedPieces,
    /// The file was removed while it was checked.
    #[error("it disappeared while it was being checked")]
    Disappeared,
    /// A piece begins elsewhere than pieces do.
    #[error("a piece does not begin where pieces begin")]
    Misplaced,
    /// The hub ends.
    #[error("the hub is ending")]
    Closing,
}
