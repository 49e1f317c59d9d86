//! Settings of a hub.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the hub's endpoint is secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS; listens on this machine only.
    Plain,
    /// Uses a certificate that the hub creates and keeps. Devices know it from when they were paired.
    Own,
    /// Uses an existing certificate from PEM files.
    Files {
        /// Path of the certificate with its chain.
        certificate: PathBuf,
        /// Path of the private key.
        key: PathBuf,
    },
}

/// Access for programs without a device key, such as those with npm's automerge-repo.
#[derive(Clone, PartialEq, Eq)]
pub enum OpenAccess {
    /// No access without pairing.
    Closed,
    /// Programs on this machine have access.
    Loopback,
    /// Programs with this token have access.
    Token(String),
}

impl std::fmt::Debug for OpenAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OpenAccess::Closed => "Closed",
            OpenAccess::Loopback => "Loopback",
            OpenAccess::Token(_) => "Token(…)",
        })
    }
}

/// All settings of a hub.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The hub's folder: its store, its list of devices, its certificate.
    pub folder: PathBuf,
    /// The hub's display name.
    pub name: String,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The address at which others reach the hub, as `wss://host:port`; derived from `listen` if left out.
    pub address: Option<String>,
    /// How the endpoint is secured.
    pub tls: TlsMode,
    /// Which programs other than devices are admitted.
    pub open: OpenAccess,
    /// NATS servers, as `nats://host:port`, separated by commas; `None`: the embedded store.
    pub nats: Option<String>,
    /// Maximum size of a protocol message in bytes.
    pub largest_message: usize,
    /// Maximum number of messages per second accepted from one connection.
    pub rate: u32,
    /// Maximum number of bytes that one device may store; 0: no limit.
    pub quota: u64,
    /// Maximum number of simultaneous connections.
    pub connections: usize,
    /// Maximum number of files and connections that the system allows this process to have open.
    pub files: usize,
    /// How long a device may be silent before another one takes over the run that it carries out.
    pub lease: Duration,
}

impl HubSettings {
    /// Returns the default settings for this folder.
    pub fn new(folder: PathBuf) -> HubSettings {
        HubSettings {
            folder,
            name: "hub".to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 7600)),
            address: None,
            tls: TlsMode::Plain,
            open: OpenAccess::Closed,
            nats: None,
            largest_message: 64 << 20,
            rate: 10_000,
            quota: 0,
            connections: 10_000,
            files: 1_024,
            lease: crate::work::DEFAULT_LEASE,
        }
    }
}
