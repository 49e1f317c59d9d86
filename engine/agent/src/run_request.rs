//! A request for a run: the question, and what the run may do.

use crate::memory::RecallOptions;
use crate::policy::PolicyRule;
use crate::task_block::TaskBlock;
use store::{DocId, MessageId, RunOrigin, ToolCall};

/// A request for a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// Id of the run, new.
    pub run: DocId,
    /// The session of messages.
    pub session: DocId,
    /// The volume that the run works in.
    pub volume: DocId,
    /// The note that the message refers to.
    pub note: Option<DocId>,
    /// The message that this one follows.
    pub parent: Option<MessageId>,
    /// The message.
    pub text: String,
    /// The agent, if one is named.
    pub agent: Option<String>,
    /// What the run may cost, in US dollars.
    pub budget: Option<f64>,
    /// Rules that hold in this run.
    pub allow: Vec<PolicyRule>,
    /// The title of the session and the call of a pressed button, for which no model is called.
    pub button: Option<(String, ToolCall)>,
    /// Which earlier work the agent recalls.
    pub recall: RecallOptions,
    /// Who or what starts the run.
    pub origin: RunOrigin,
    /// The tasks to carry out, if the run gets a plan.
    pub plan: Option<Vec<TaskBlock>>,
    /// The project that the run works for, if an orchestrating agent leads one.
    pub project: Option<String>,
    /// The only provider that may be asked.
    pub provider: Option<String>,
}
