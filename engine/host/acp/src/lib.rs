//! Connections that speak the Agent Client Protocol: JSON-RPC 2.0 with one message a line, requests in both directions.
//!
//! What the messages mean isn't known here. The types of the protocol are those of its schema crate.

mod line_reader;
mod peer_connection;

pub use agent_client_protocol_schema::{MaybeUndefined, MethodDispatchError, ProtocolVersion, v1};
pub use peer_connection::{IncomingMessage, PeerConnection, SentRequest, params_error};
