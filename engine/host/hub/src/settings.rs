//! How a hub is set up.

use std::net::SocketAddr;
use std::path::PathBuf;

/// How the hub's way in is secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Plain: on this machine alone.
    Plain,
    /// By a certificate that the hub makes for itself and keeps. Devices know it from when they were paired.
    Own,
    /// Uses an existing certificate from PEM files.
    Files {
        /// The certificate and those that lead to it.
        certificate: PathBuf,
        /// Path of the private key.
        key: PathBuf,
    },
}

/// Whether programs without a device's key are let in, such as those with npm's automerge-repo.
#[derive(Clone, PartialEq, Eq)]
pub enum OpenAccess {
    /// No access without pairing.
    Closed,
    /// Those on this machine.
    Loopback,
    /// Those that give this token.
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
    /// How it calls itself.
    pub name: String,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// How others reach it, as `wss://host:port`; worked out of `listen` when left out.
    pub address: Option<String>,
    /// How its way in is secured.
    pub tls: TlsMode,
    /// Whether others than devices are let in.
    pub open: OpenAccess,
    /// NATS servers, as `nats://host:port`, several with commas; empty: the embedded store.
    pub nats: Option<String>,
    /// Maximum size of a protocol message in bytes.
    pub largest_message: usize,
    /// Messages a second that are taken from one connection.
    pub rate: u32,
    /// Bytes that one device may store; 0: as many as it likes.
    pub quota: u64,
    /// Connections at the same time.
    pub connections: usize,
    /// Files and connections that the system lets this process have open.
    pub files: usize,
}

impl HubSettings {
    /// Those by default, in this folder.
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
        }
    }
}
