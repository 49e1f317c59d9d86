//! What MCP servers ask while a run calls a tool of theirs: a model's answer, or the user's in a form. Each request is
//! a call of the run, of a tool that no model can call.

use crate::sampling::{SamplingAnswer, SamplingRefusal, SamplingRequest};
use crate::secrets::InstallationKeys;
use crate::server_form::{FormAnswer, UserForm};
use crate::tool_catalog::BuiltInTool;
use store::{DecisionMaker, ExecutionStep, StepKind};

/// A request of an MCP server to the user or the model.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerRequest {
    /// A model's answer.
    Model(SamplingRequest),
    /// The user's answers.
    Form(UserForm),
}

/// The reply to an MCP server's request.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerReply {
    /// A model's answer, or why there's none.
    Model(SamplingAnswer),
    /// The user's answers, or that there are none.
    Form(FormAnswer),
}

impl ServerRequest {
    /// Returns the tool whose call stands for the request.
    pub fn tool(&self) -> BuiltInTool {
        match self {
            ServerRequest::Model(_) => BuiltInTool::McpSampling,
            ServerRequest::Form(_) => BuiltInTool::McpForm,
        }
    }

    /// Masks secrets, before the user sees the request.
    #[must_use]
    pub fn masked(self, own: &InstallationKeys) -> ServerRequest {
        match self {
            ServerRequest::Model(request) => ServerRequest::Model(request.masked(own)),
            ServerRequest::Form(form) => ServerRequest::Form(form.masked(own)),
        }
    }
}

impl ServerReply {
    /// Makes the reply to a request that isn't fulfilled: because of a decision, or for another reason.
    pub fn refusal(tool: BuiltInTool, denied_by: Option<&DecisionMaker>, why: &str) -> ServerReply {
        if tool == BuiltInTool::McpForm {
            return ServerReply::Form(match denied_by {
                // Nobody has said no.
                None | Some(DecisionMaker::Timeout) => FormAnswer::Closed,
                Some(_) => FormAnswer::Declined,
            });
        }
        ServerReply::Model(Err(match denied_by {
            Some(_) => SamplingRefusal::Rejected,
            None => SamplingRefusal::Refused(why.to_owned()),
        }))
    }
}

/// Returns whether a tool stands for requests of servers.
pub fn is_server_request(tool: &str) -> bool {
    BuiltInTool::McpSampling.is_named(tool) || BuiltInTool::McpForm.is_named(tool)
}

/// Returns the number of requests of a kind that servers have made in a run.
pub fn request_count(steps: &[ExecutionStep], tool: BuiltInTool) -> usize {
    let is_request = |step: &&ExecutionStep| match &step.kind {
        StepKind::ToolCall { tool_name, .. } => tool.is_named(tool_name),
        StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => false,
    };
    steps.iter().filter(is_request).count()
}
