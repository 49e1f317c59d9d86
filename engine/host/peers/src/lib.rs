//! Connections between devices: their keys, pairing, and transports.
//!
//! A device is identified by its Ed25519 key. Two devices are paired once by a short code ([`pairing`]); afterwards
//! each proves its key at every connection ([`challenge`]). Paired devices are in a list ([`devices`]), an automerge
//! document that they exchange. This crate doesn't know the content of documents.

pub mod challenge;
pub mod devices;
pub mod handshake;
pub mod hub_client;
pub mod hub_socket;
pub mod key;
pub mod lan;
pub mod lan_peers;
pub mod pairing;
pub mod pairing_flow;
pub mod qr;
pub mod signed_file;
pub mod work;

pub use key::{DeviceId, DeviceKey};
