//! What `build.rs` makes of the files in `proto`.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

tonic::include_proto!("mixagent");

pub(super) mod v1 {
    tonic::include_proto!("tracebook.v1");
}

/// The descriptions, for reflection.
pub(super) const DESCRIPTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/services.bin"));
