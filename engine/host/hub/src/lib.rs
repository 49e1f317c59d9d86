//! The hub: a peer that always listens, and stores what it receives. It speaks automerge-repo's protocol, so that
//! devices with Tracebook and other programs with automerge-repo can sync through it.
//!
//! One thread owns the protocol ([`store::sync::Peers`]); around it are the endpoints (`server`), storage
//! ([`HubStore`], [`HubFiles`]) and the connection to other replicas ([`HubBus`]). Nothing is sent or acknowledged
//! before it's durable. The hub doesn't know the content of documents except volumes, whose notes share their volume's
//! policy.

mod blobs;
mod certificate;
mod connections;
mod error;
mod hub_core;
mod invitation;
mod metrics;
mod nats;
#[cfg(feature = "otel")]
pub mod otel;
mod policy;
mod server;
mod settings;
mod sqlite_storage;
mod storage;
#[cfg(test)]
mod tests;
mod work;

pub use error::{HubCertificateError, HubFileError, HubFilesError, HubStartError};
pub use invitation::{InvitationGrant, running_hub_invitation};
pub use policy::{HubPolicy, VolumePolicy};
pub use server::{HubServer, RunningHub};
pub use settings::{HubSettings, OpenAccess, TlsMode};
pub use storage::{HubBus, HubFiles, HubStore, LoadedChunks, ReplicaNews, SharedBytes, StoreCallback, StoreFailure};

/// Callback that writes a line to the log. The lines contain no secrets.
pub type HubLog = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
