//! `mixagent.AgentService`: tasks, messages between agents, and approvals.

use super::generated::agent_service_server::AgentService;
use super::generated::{
    AgentId, AgentMessage, ApprovalRequest, ApprovalResponse, CancelResponse, Decision, DecisionResponse,
    MessageResponse, Task, TaskId, TaskResponse, TaskStatus,
};
use super::request_checks::{MAX_NAME_BYTES, TOKEN_CHECK_INTERVAL, checked_name, refused, scoped_caller};
use super::task_names::{NameTaken, NamedTask};
use crate::access_tokens::TokenScope;
use crate::approval_requests::{RequestRefusal, decided};
use crate::clock::unix_millis;
use crate::command_calls::{CommandCall, CommandOutcome};
use crate::http_state::{ApiCaller, HttpState};
use crate::rest_work::{self, ApprovalDecision, TaskRequest, TaskState};
use crate::task_queue::QueueStatus;
use crate::tool_calls::new_run_id;
use futures_util::stream::{self, BoxStream};
use program_approvals::{ProgramApproval, ProgramApprovalError, is_request_id};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Response, Status};

/// Maximum length of a message's payload in bytes.
const MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// Maximum number of tasks on which one depends.
const MAX_DEPENDENCIES: usize = 100;
/// Maximum length of a text for whoever decides, in bytes.
const MAX_SHOWN_BYTES: usize = 64 << 10;
/// How long a request waits for a decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The service.
pub(super) struct AgentGrpcService {
    pub(super) state: Arc<HttpState>,
}

fn wrong(why: impl Into<String>) -> Status {
    Status::invalid_argument(why.into())
}

/// Returns a context as JSON, without the entries that are read elsewhere.
fn context_json(context: HashMap<String, String>) -> Option<Map<String, Value>> {
    let context: Map<String, Value> = context.into_iter().map(|(name, text)| (name, text.into())).collect();
    (!context.is_empty()).then_some(context)
}

/// Hashes what a task asks for, whatever the order of its context.
fn task_fingerprint(task: &Task) -> blake3::Hash {
    let mut context: Vec<_> = task.context.iter().collect();
    context.sort();
    let all = json!([task.r#type, task.description, context, task.dependencies, task.priority]);
    blake3::hash(all.to_string().as_bytes())
}

fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "pending",
        TaskState::Running => "running",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
    }
}

/// Returns the answer of an agent: its kind and its text.
fn agent_answer(outcome: &CommandOutcome) -> (&'static str, String) {
    let steps = outcome.lines();
    let answer = steps.iter().rev().find(|step| step["type"] == "final_answer");
    match answer.and_then(|answer| answer["content"].as_str()) {
        Some(text) if outcome.code == 0 => ("answer", text.to_owned()),
        _ => ("error", outcome.reason()),
    }
}

fn refused_request(refusal: RequestRefusal) -> Status {
    let why = refusal.to_string();
    match refusal {
        RequestRefusal::Held(ProgramApprovalError::Id) => Status::invalid_argument(why),
        RequestRefusal::Held(ProgramApprovalError::Taken) => Status::already_exists(why),
        RequestRefusal::Held(ProgramApprovalError::Full) => Status::resource_exhausted(why),
        RequestRefusal::Held(ProgramApprovalError::Io { .. }) => Status::unavailable(why),
        RequestRefusal::TimedOut(_) => Status::deadline_exceeded(why),
    }
}

impl AgentGrpcService {
    /// Returns the program that makes a request, if its token has a scope.
    fn caller<T>(&self, request: &Request<T>, scope: TokenScope) -> Result<ApiCaller, Status> {
        scoped_caller(&self.state, request, scope)
    }

    /// Returns the run behind an id: its own, or one that the same token chose.
    fn run_of(&self, caller: &ApiCaller, id: &str) -> Result<String, Status> {
        checked_name(id, "id")?;
        let named = self.state.grpc.names.get(&caller.token.id, id);
        Ok(named.map_or_else(|| id.to_owned(), |task| task.run))
    }

    /// Returns the dependencies that aren't over yet.
    async fn open_dependencies(&self, caller: &ApiCaller, ids: &[String]) -> Result<Vec<String>, Status> {
        if ids.len() > MAX_DEPENDENCIES {
            return Err(wrong(format!("a task has at most {MAX_DEPENDENCIES} dependencies")));
        }
        let mut open = Vec::new();
        for id in ids {
            let run = self.run_of(caller, id)?;
            match self.state.tasks.status(&run) {
                QueueStatus::Waiting | QueueStatus::Running => open.push(run),
                QueueStatus::Failed(why) => {
                    return Err(Status::failed_precondition(format!("the task {id} has failed: {why}")));
                }
                QueueStatus::Unknown => {
                    let report = rest_work::report_task(caller, &run).await.map_err(refused)?;
                    if report.status != TaskState::Completed {
                        let why = format!("the task {id} isn't completed and isn't one that this server runs");
                        return Err(Status::failed_precondition(why));
                    }
                }
            }
        }
        Ok(open)
    }

    async fn queue(&self, caller: &ApiCaller, run: &str, mut task: Task) -> Result<(), Status> {
        let after = self.open_dependencies(caller, &task.dependencies).await?;
        let text = |text: String| (!text.is_empty()).then_some(text);
        let request = TaskRequest {
            kind: text(task.r#type),
            description: task.description,
            agent: task.context.remove("agent"),
            project: task.context.remove("project"),
            context: context_json(task.context),
            priority: Some(task.priority),
            budget: None,
        };
        rest_work::ensure_project(caller, request.project.clone()).await.map_err(refused)?;
        rest_work::queue_task(caller, run.to_owned(), request, after, None).map_err(refused)
    }

    /// Returns the volume in which an agent of this name is, if any.
    async fn agent_volume(&self, caller: &ApiCaller, name: &str) -> Result<Option<String>, Status> {
        let mut found = Vec::new();
        for volume in caller.volumes().await.map_err(refused)? {
            let Some(volume) = volume["name"].as_str() else { continue };
            let call = CommandCall::json("tasks").option("project", Some(volume)).operands(["agents"]);
            let agents = caller.perform_ok(call).await.map_err(refused)?.lines();
            // Agents of other volumes are listed, too.
            let mut own = agents.iter().filter(|agent| agent["volume"].is_null());
            if own.any(|agent| agent["id"] == name || agent["name"] == name) {
                found.push(volume.to_owned());
            }
        }
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            _ => {
                let why = format!("several volumes have an agent {name}; use a token for one volume");
                Err(Status::failed_precondition(why))
            }
        }
    }

    /// Gives a message to an agent of the workspace as a task. What it answers goes to the sender.
    fn give_to_agent(&self, caller: &ApiCaller, volume: String, message: AgentMessage) -> Result<String, Status> {
        let text = String::from_utf8(message.payload).map_err(|_| wrong("an agent's `payload` is UTF-8 text"))?;
        let (run, state, own) = (new_run_id(), self.state.clone(), caller.token.volume.clone());
        let (from, to) = (message.from_agent, message.to_agent.clone());
        let answer = move |outcome: &CommandOutcome| {
            let (kind, text) = agent_answer(outcome);
            // Without room, the answer is still in the run.
            state.grpc.mailbox.put(
                own,
                AgentMessage {
                    from_agent: to,
                    to_agent: from,
                    r#type: kind.to_owned(),
                    payload: text.into_bytes(),
                    timestamp: unix_millis(),
                },
            );
        };
        let request = TaskRequest {
            kind: (!message.r#type.is_empty()).then_some(message.r#type),
            description: text,
            context: None,
            priority: None,
            agent: Some(message.to_agent),
            project: Some(volume),
            budget: None,
        };
        let queued = rest_work::queue_task(caller, run.clone(), request, Vec::new(), Some(Box::new(answer)));
        queued.map(|()| run).map_err(refused)
    }
}

#[tonic::async_trait]
impl AgentService for AgentGrpcService {
    async fn submit_task(&self, request: Request<Task>) -> Result<Response<TaskResponse>, Status> {
        let caller = self.caller(&request, TokenScope::Agent)?;
        let task = request.into_inner();
        let (run, names) = (new_run_id(), &self.state.grpc.names);
        let accepted = |task_id: String, message: &str| {
            Ok(Response::new(TaskResponse { task_id, accepted: true, message: message.to_owned() }))
        };
        if task.id.is_empty() {
            self.queue(&caller, &run, task).await?;
            return accepted(run, "");
        }
        checked_name(&task.id, "id")?;
        let named = NamedTask { run: run.clone(), fingerprint: task_fingerprint(&task) };
        match names.claim(&caller.token.id, &task.id, named) {
            Ok(None) => {}
            Ok(Some(known)) => return accepted(known, "this task was submitted before"),
            Err(NameTaken) => {
                return Err(Status::already_exists("another task has this `id`; leave it out or choose one"));
            }
        }
        let id = task.id.clone();
        let queued = self.queue(&caller, &run, task).await;
        if queued.is_err() {
            names.forget(&caller.token.id, &id);
        }
        queued?;
        accepted(run, "")
    }

    async fn get_task_status(&self, request: Request<TaskId>) -> Result<Response<TaskStatus>, Status> {
        let caller = self.caller(&request, TokenScope::Read)?;
        let run = self.run_of(&caller, &request.into_inner().id)?;
        let report = rest_work::report_task(&caller, &run).await.map_err(refused)?;
        let result = report.result.map(|result| result.to_string()).unwrap_or_default();
        let status = state_name(report.status).to_owned();
        Ok(Response::new(TaskStatus { id: report.id, status, progress: report.progress, result }))
    }

    async fn cancel_task(&self, request: Request<TaskId>) -> Result<Response<CancelResponse>, Status> {
        let caller = self.caller(&request, TokenScope::Agent)?;
        let run = self.run_of(&caller, &request.into_inner().id)?;
        rest_work::stop_task(&caller, run.clone()).await.map_err(refused)?;
        Ok(Response::new(CancelResponse { task_id: run, canceled: true }))
    }

    async fn send_message(&self, request: Request<AgentMessage>) -> Result<Response<MessageResponse>, Status> {
        let caller = self.caller(&request, TokenScope::Agent)?;
        let mut message = request.into_inner();
        checked_name(&message.from_agent, "from_agent")?;
        checked_name(&message.to_agent, "to_agent")?;
        if message.payload.len() > MAX_PAYLOAD_BYTES || message.r#type.len() > MAX_NAME_BYTES {
            let why = format!("`payload` has at most {MAX_PAYLOAD_BYTES} bytes, and `type` {MAX_NAME_BYTES}");
            return Err(wrong(why));
        }
        if message.timestamp == 0 {
            message.timestamp = unix_millis();
        }
        if let Some(volume) = self.agent_volume(&caller, &message.to_agent).await? {
            let task_id = self.give_to_agent(&caller, volume, message)?;
            return Ok(Response::new(MessageResponse { accepted: true, task_id }));
        }
        if !self.state.grpc.mailbox.put(caller.token.volume, message) {
            return Err(Status::resource_exhausted("too many messages wait for their receivers; try again later"));
        }
        Ok(Response::new(MessageResponse { accepted: true, task_id: String::new() }))
    }

    type StreamMessagesStream = BoxStream<'static, Result<AgentMessage, Status>>;

    async fn stream_messages(&self, request: Request<AgentId>) -> Result<Response<Self::StreamMessagesStream>, Status> {
        let caller = self.caller(&request, TokenScope::Agent)?;
        let name = request.into_inner().id;
        checked_name(&name, "id")?;
        let owner = (caller.token.volume, name);
        let news = self.state.grpc.mailbox.news();
        let start = (self.state.clone(), caller.token.id, owner, news, false);
        let messages = stream::unfold(start, |(state, token, owner, mut news, has_ended)| async move {
            if has_ended {
                return None;
            }
            loop {
                news.mark_unchanged();
                if !state.tokens.holds(&token, unix_millis()) {
                    let end = Err(Status::unauthenticated("the token no longer holds"));
                    return Some((end, (state, token, owner, news, true)));
                }
                if let Some(message) = state.grpc.mailbox.take(&owner) {
                    return Some((Ok(message), (state, token, owner, news, false)));
                }
                // Time goes by, or there is news; both mean to look again.
                let _ = tokio::time::timeout(TOKEN_CHECK_INTERVAL, news.changed()).await;
            }
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn request_approval(&self, request: Request<ApprovalRequest>) -> Result<Response<ApprovalResponse>, Status> {
        let caller = self.caller(&request, TokenScope::Agent)?;
        let ask = request.into_inner();
        // Ids of the workspace's own approvals have a colon.
        if ask.action_id.len() > MAX_NAME_BYTES || !is_request_id(&ask.action_id) {
            return Err(wrong(
                "`action_id` has letters, digits, dots, dashes and underscores, and begins with one of the first two",
            ));
        }
        checked_name(&ask.action_type, "action_type")?;
        checked_name(&ask.agent, "agent")?;
        let parameters = context_json(ask.parameters).unwrap_or_default();
        if ask.description.len() + json!(parameters).to_string().len() > MAX_SHOWN_BYTES {
            return Err(wrong(format!("`description` and `parameters` have at most {MAX_SHOWN_BYTES} bytes")));
        }
        let action_id = ask.action_id.clone();
        let about = ProgramApproval {
            id: ask.action_id,
            tool: ask.action_type,
            what: ask.description,
            reason: format!("a program asks, and calls the risk {}", ask.risk_level),
            program: ask.agent,
            volume: caller.token.volume,
            path: None,
            diff: String::new(),
            parameters,
            asked: 0,
            expires: 0,
        };
        let held = self.state.grpc.approvals.hold(about, DECISION_TIMEOUT).map_err(refused_request)?;
        let decision = decided(held, DECISION_TIMEOUT).await.map_err(refused_request)?;
        Ok(Response::new(ApprovalResponse { action_id, approved: decision.approved, comment: decision.comment }))
    }

    async fn submit_decision(&self, request: Request<Decision>) -> Result<Response<DecisionResponse>, Status> {
        let caller = self.caller(&request, TokenScope::Approve)?;
        let Decision { action_id, approved, comment } = request.into_inner();
        checked_name(&action_id, "action_id")?;
        if comment.len() > MAX_SHOWN_BYTES {
            return Err(wrong(format!("`comment` has at most {MAX_SHOWN_BYTES} bytes")));
        }
        let comment = (!comment.is_empty()).then_some(comment);
        rest_work::decide(&caller, &action_id, ApprovalDecision::new(approved, comment)).await.map_err(refused)?;
        Ok(Response::new(DecisionResponse { action_id, approved }))
    }
}
