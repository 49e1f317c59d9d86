//! Connections that speak the Agent Client Protocol: JSON-RPC 2.0 with one message a line, requests in both directions.
//!
//! What the messages mean isn't known here. The types of the protocol are those of its schema crate.

mod agent_process;
mod agent_requests;
mod agent_terminals;
mod external_agent;
mod kept_sessions;
mod line_reader;
mod message_queue;
mod peer_connection;
mod running_command;

pub use agent_client_protocol_schema::{MaybeUndefined, MethodDispatchError, ProtocolVersion, v1};
pub use agent_requests::{AgentAction, PlanItem, ReportedCall};
pub use external_agent::{
    AgentEvent, AgentFailure, AgentProgram, AgentPrompt, AgentTurnEnd, ExternalAgent, ResumedSession, settings_refusal,
};
pub use kept_sessions::{KeptSession, KeptSessions, SessionKey};
pub use message_queue::ActionResult;
pub use peer_connection::{IncomingMessage, PeerConnection, SentRequest, params_error};
pub use running_command::RunningCommand;
