//! The hub: a peer that always listens, and keeps what it hears. It speaks automerge-repo's protocol, so that devices
//! with Tracebook and other programs with automerge-repo meet in it.
//!
//! One thread owns the protocol ([`store::sync::Peers`]); around it stand the ways in (`server`), what lasts
//! ([`HubStore`], [`HubFiles`]) and the line to other replicas ([`HubBus`]). Nothing is sent or acknowledged before it
//! is durable. The hub does not know what documents hold, but for volumes, whose notes share their volume's policy.

mod blobs;
mod certificate;
mod connections;
mod core;
mod embedded;
pub mod endure;
mod invitation;
pub mod measure;
mod metrics;
mod nats;
mod policy;
mod probe;
mod server;
mod settings;
mod storage;
#[cfg(test)]
mod tests;

pub use invitation::{InvitationGrant, reached};
pub use policy::{HubPolicy, VolumePolicy};
pub use server::{HubServer, RunningHub};
pub use settings::{HubSettings, OpenAccess, TlsMode};
pub use storage::{HubBus, HubFiles, HubStore, LoadedChunks, ReplicaNews, SharedBytes, StoreCallback, StoreFailure};

/// A line of the log, in plain words. Nothing secret stands in it.
pub type HubLog = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
