//! The sync protocol without networking: the messages between devices ([`wire`]), and the state machine that handles
//! them ([`peers`]).
//!
//! Nothing here waits, reads a clock or opens a socket: bytes and events go in, bytes and commands come out. So many
//! devices can be tested in one process. The protocol is automerge-repo's, version 1, so any of its clients can take
//! part.

pub mod address;
pub mod blobs;
mod cbor;
pub(crate) mod inflate;
pub mod peers;
pub mod presence;
#[cfg(test)]
mod simulation;
pub mod wire;

pub use address::{document_address, parse_document_address};
pub use peers::{
    ChunksReadError, DiskTicket, DocumentAccess, HeadsHash, LinkId, LinkProgress, PeersOutput, SharePolicy, SyncPeers,
    VolumeDocs,
};
pub use wire::{PeerId, PeerMetadata, WireError, WireMessage};
