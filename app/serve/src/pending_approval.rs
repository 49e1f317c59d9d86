//! What waits for a decision: a call of an agent, or what a program asks for.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A call of an agent that waits for a decision.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PendingApproval {
    /// Its id, for the decision.
    pub(crate) action_id: String,
    /// The tool.
    pub(crate) action_type: String,
    /// What the call does, as a sentence.
    pub(crate) description: String,
    /// Why it needs approval, as a sentence.
    pub(crate) reason: String,
    /// The run that waits.
    pub(crate) run: String,
    /// The agent that made the call.
    pub(crate) agent: String,
    /// Arguments of the call.
    #[schema(value_type = Object)]
    pub(crate) parameters: Value,
    /// Code that would run and isn't part of the arguments.
    #[schema(value_type = Vec<Object>)]
    pub(crate) code: Vec<Value>,
    /// When it was asked, in milliseconds since 1970.
    pub(crate) asked: i64,
    /// When it expires and counts as denied, in milliseconds since 1970.
    pub(crate) expires: i64,
}
