//! Errors of the hub's start and of its storage.

use peers::devices::DeviceListError;
use peers::key::RandomBytesError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use store::disk::DiskError;

/// Error when reading or writing a file in the hub's folder.
#[derive(Debug, thiserror::Error)]
pub enum HubFileError {
    /// The file or folder can't be accessed.
    #[error("{source}: {}", path.display())]
    Io {
        /// The I/O error.
        source: io::Error,
        /// The path of the file or folder.
        path: PathBuf,
    },
    /// The file isn't JSON of the expected form.
    #[error("{source}: {}", path.display())]
    Json {
        /// The JSON error.
        source: serde_json::Error,
        /// The path of the file.
        path: PathBuf,
    },
    /// The content can't be encoded as JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// The system provides no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
}

impl HubFileError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HubFileError {
        let path = path.into();
        move |source| HubFileError::Io { source, path }
    }
}

/// Error when creating or loading the hub's certificate.
#[derive(Debug, thiserror::Error)]
pub enum HubCertificateError {
    /// The certificate can't be written.
    #[error(transparent)]
    File(#[from] HubFileError),
    /// The certificate or key can't be read as PEM.
    #[error("{source}: {}", path.display())]
    Pem {
        /// The PEM error.
        source: rustls::pki_types::pem::Error,
        /// The path of the file.
        path: PathBuf,
    },
    /// The certificate file contains no certificate.
    #[error("there is no certificate in it: {}", path.display())]
    Missing {
        /// The path of the file.
        path: PathBuf,
    },
    /// The certificate doesn't match its key.
    #[error("{source}: {}", path.display())]
    Unfit {
        /// The TLS error.
        source: rustls::Error,
        /// The path of the certificate file.
        path: PathBuf,
    },
    /// TLS can't be configured.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// No self-signed certificate can be created.
    #[error(transparent)]
    SelfSigned(#[from] rcgen::Error),
}

/// Error that keeps a hub from starting.
#[derive(Debug, thiserror::Error)]
pub enum HubStartError {
    /// The address isn't local, and without TLS others could read the traffic.
    #[error("without TLS a hub listens on this machine alone, not on {0}; leave out --plain")]
    PlainAddress(SocketAddr),
    /// The hub's folder, or a file in it, can't be used.
    #[error(transparent)]
    File(#[from] HubFileError),
    /// Another hub uses the same folder.
    #[error("another hub runs over this folder: {}", folder.display())]
    AlreadyRuns {
        /// The path of the folder.
        folder: PathBuf,
    },
    /// The hub's certificate can't be used.
    #[error(transparent)]
    Certificate(#[from] HubCertificateError),
    /// The hub can't listen on its address.
    #[error("it cannot listen on {address} ({source})")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The I/O error.
        source: io::Error,
    },
    /// The list of devices can't be used.
    #[error(transparent)]
    Devices(#[from] DeviceListError),
    /// The hub's database can't be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The system provides no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// The system can't create a thread or a socket.
    #[error(transparent)]
    System(#[from] io::Error),
    /// No NATS server can be used.
    #[error("NATS cannot be used: {why}: {servers}")]
    Nats {
        /// The NATS client's message.
        why: String,
        /// The addresses of the servers.
        servers: String,
    },
    /// NATS has no stream for the hub, and none can be created.
    #[error("NATS has no stream for the hub, and none can be made: {0}")]
    NatsStream(String),
    /// NATS doesn't report the contents of its stream.
    #[error("{0}")]
    NatsStreamInfo(String),
}

/// Reason why a blob can't be read or stored now, for the log. The operation is retried.
#[derive(Debug, thiserror::Error)]
pub enum HubFilesError {
    /// A file can't be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The database reports an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// NATS reports an error.
    #[error("{0}")]
    Nats(String),
    /// NATS doesn't answer in time.
    #[error("no answer")]
    NatsTimeout,
    /// NATS has reported errors until the time limit; contains the last one.
    #[error("NATS does not answer as it should: {0}")]
    NatsUnreliable(#[source] Box<HubFilesError>),
    /// NATS refuses to store a message.
    #[error("NATS does not take it: {0}")]
    NatsRefused(String),
    /// A message in NATS isn't a piece of a file.
    #[error("NATS holds something that isn't a piece of a file")]
    NotPiece,
    /// NATS has lost a piece of a complete file.
    #[error("NATS lost part of a file; a device that has the file sends it again")]
    PieceLost,
    /// Another replica has completed the file in the meantime.
    #[error("another replica has completed it")]
    WholeElsewhere,
    /// Another replica is appending to the file.
    #[error("another replica is receiving it")]
    TakenElsewhere,
    /// The pieces before this one are gone.
    #[error("the piece before it is gone")]
    PredecessorGone,
    /// A piece before this one was not stored.
    #[error("the piece before it was refused")]
    PredecessorRefused,
    /// A piece of the file was not stored.
    #[error("some of it wasn't stored")]
    Incomplete,
    /// The pieces of several replicas don't fit together.
    #[error("the pieces from several replicas don't fit its hash")]
    MixedPieces,
    /// The file was removed while it was checked.
    #[error("it disappeared while it was being checked")]
    Disappeared,
    /// A piece doesn't start at a piece boundary.
    #[error("a piece does not begin where pieces begin")]
    Misplaced,
    /// The hub is shutting down.
    #[error("the hub is ending")]
    Closing,
}
