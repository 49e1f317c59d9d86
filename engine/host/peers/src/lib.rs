//! Devices that speak to each other: their keys, pairing, and the ways between them.
//!
//! A device is its Ed25519 key. Two devices become acquainted once, by a short code ([`pairing`]); from then on each
//! proves its key at every connection ([`challenge`]). Who is welcome stands in a list ([`devices`]), an automerge
//! document that paired devices exchange. This crate does not know what documents hold.

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

pub use key::{DeviceId, DeviceKey};
