//! `tracebook.v1.RunService`: runs of agents are started, read, followed, canceled and decided about.

use super::generated::v1::run_service_server::RunService;
use super::generated::v1::{
    CancelRunRequest, CancelRunResponse, DecideApprovalRequest, DecideApprovalResponse, Decision, GetRunRequest,
    GetRunResponse, ListAgentsRequest, ListAgentsResponse, ListPendingApprovalsRequest, ListPendingApprovalsResponse,
    ListRunStepsRequest, ListRunStepsResponse, ListRunsRequest, ListRunsResponse, StartRunRequest, StartRunResponse,
    WatchRunRequest, WatchRunResponse,
};
use super::json_fields::list_field;
use super::request_checks::{PageRequest, checked_name, given, refused, refused_field, scoped_caller, wrong_field};
use super::run_messages::{
    agent_message, approval_message, change_message, current_run, result_message, run_message, step_message,
    todo_message,
};
use super::run_watch::watch_run;
use super::task_names::{NameTaken, NamedTask};
use crate::access_tokens::TokenScope;
use crate::http_state::{ApiCaller, HttpState};
use crate::list_pages::{DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS};
use crate::rest_work::{self, DEFAULT_RUNS, MAX_DESCRIPTION_BYTES, MAX_RUNS, TaskRequest, needed_run};
use crate::tool_calls::new_run_id;
use futures_util::stream::BoxStream;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Maximum length of a comment in bytes.
const MAX_COMMENT_BYTES: usize = 64 << 10;

/// The service.
pub(super) struct RunGrpcService {
    pub(super) state: Arc<HttpState>,
}

/// Hashes what a run is asked for, whatever the order of its context.
fn run_fingerprint(asked: &StartRunRequest) -> blake3::Hash {
    let context: BTreeMap<_, _> = asked.context.iter().collect();
    let StartRunRequest { prompt, volume, agent, priority, budget_usd, .. } = asked;
    blake3::hash(json!([prompt, volume, agent, context, priority, budget_usd]).to_string().as_bytes())
}

impl RunGrpcService {
    async fn queue_run(&self, caller: &ApiCaller, run: &str, asked: StartRunRequest) -> Result<(), Status> {
        let volume = given(asked.volume);
        if let Some(name) = &volume {
            caller.needed_volume(name).await.map_err(refused_field("volume"))?;
        }
        let context = asked.context.into_iter().map(|(name, text)| (name, text.into())).collect();
        let request = TaskRequest {
            kind: None,
            description: asked.prompt,
            context: Some(context),
            priority: Some(asked.priority),
            agent: given(asked.agent),
            project: volume,
            budget: asked.budget_usd,
        };
        rest_work::ensure_project(caller, request.project.clone()).await.map_err(refused)?;
        rest_work::queue_task(caller, run.to_owned(), request, Vec::new(), None).map_err(refused)
    }
}

#[tonic::async_trait]
impl RunService for RunGrpcService {
    async fn list_agents(&self, request: Request<ListAgentsRequest>) -> Result<Response<ListAgentsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let agents = rest_work::find_agents(&caller, given(asked.volume)).await;
        let page = page.cut(agents.map_err(refused_field("volume"))?, |agent| agent.id.clone())?;
        Ok(Response::new(ListAgentsResponse {
            agents: page.items.into_iter().map(agent_message).collect(),
            next_page_token: page.next_token,
        }))
    }

    async fn start_run(&self, request: Request<StartRunRequest>) -> Result<Response<StartRunResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Agent)?;
        let asked = request.into_inner();
        if asked.prompt.trim().is_empty() || asked.prompt.len() > MAX_DESCRIPTION_BYTES {
            return Err(wrong_field("prompt", format!("`prompt` has 1 to {MAX_DESCRIPTION_BYTES} bytes")));
        }
        if asked.budget_usd.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
            return Err(wrong_field("budget_usd", "`budget_usd` is a number of US dollars"));
        }
        for (name, field) in [(&asked.volume, "volume"), (&asked.agent, "agent"), (&asked.request_id, "request_id")] {
            if !name.is_empty() {
                checked_name(name, field)?;
            }
        }
        let (mut run, token, names) = (new_run_id(), caller.token.id.clone(), &self.state.grpc.names);
        if asked.request_id.is_empty() {
            self.queue_run(&caller, &run, asked).await?;
        } else {
            // Apart from the ids of tasks of the other service.
            let name = format!("tracebook.v1 {}", asked.request_id);
            let task = NamedTask { run: run.clone(), fingerprint: run_fingerprint(&asked) };
            match names.claim(&token, &name, task) {
                Ok(Some(known)) => run = known,
                Ok(None) => {
                    if let Err(status) = self.queue_run(&caller, &run, asked).await {
                        names.forget(&token, &name);
                        return Err(status);
                    }
                }
                Err(NameTaken) => {
                    return Err(Status::already_exists(
                        "another run has this `request_id`; leave it out or choose one",
                    ));
                }
            }
        }
        let run = current_run(&caller, &run).await.map_err(refused)?;
        Ok(Response::new(StartRunResponse { run: Some(run) }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let run = current_run(&caller, &request.into_inner().run_id).await.map_err(refused)?;
        if run.start_time.is_none() {
            return Ok(Response::new(GetRunResponse { run: Some(run), ..GetRunResponse::default() }));
        }
        let about = rest_work::read_run(&caller, &run.id).await.map_err(refused)?;
        Ok(Response::new(GetRunResponse {
            run: Some(run),
            todos: list_field(&about, "todos", todo_message),
            changes: list_field(&about, "changes", change_message),
            result: result_message(&about),
        }))
    }

    async fn list_runs(&self, request: Request<ListRunsRequest>) -> Result<Response<ListRunsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_RUNS, MAX_RUNS)?;
        let page = page.cut(rest_work::reachable_runs(&caller).await.map_err(refused)?, rest_work::value_id)?;
        Ok(Response::new(ListRunsResponse {
            runs: page.items.iter().map(run_message).collect(),
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    async fn list_run_steps(
        &self,
        request: Request<ListRunStepsRequest>,
    ) -> Result<Response<ListRunStepsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let run = needed_run(&caller, asked.run_id).await.map_err(refused)?;
        let steps = rest_work::read_steps(&caller, &run).await.map_err(refused)?;
        let page = page.cut_messages(steps, rest_work::value_id, |step| step_message(&step))?;
        Ok(Response::new(ListRunStepsResponse {
            steps: page.items,
            next_page_token: page.next_token,
            total_size: page.total,
        }))
    }

    type WatchRunStream = BoxStream<'static, Result<WatchRunResponse, Status>>;

    async fn watch_run(&self, request: Request<WatchRunRequest>) -> Result<Response<Self::WatchRunStream>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let permit = self.state.grpc.watch_permit()?;
        watch_run(caller, asked.run_id, &asked.after_event_id, permit).await.map(Response::new)
    }

    async fn cancel_run(&self, request: Request<CancelRunRequest>) -> Result<Response<CancelRunResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Agent)?;
        rest_work::stop_task(&caller, request.into_inner().run_id).await.map_err(refused)?;
        Ok(Response::new(CancelRunResponse {}))
    }

    async fn list_pending_approvals(
        &self,
        request: Request<ListPendingApprovalsRequest>,
    ) -> Result<Response<ListPendingApprovalsResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Read)?;
        let asked = request.into_inner();
        let page = PageRequest::new(asked.page_size, &asked.page_token, DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS)?;
        let only = match given(asked.run_id) {
            Some(run) => Some(needed_run(&caller, run).await.map_err(refused)?),
            None => None,
        };
        let mut pending = rest_work::pending_approvals(&caller).await.map_err(refused)?;
        pending.retain(|approval| only.as_ref().is_none_or(|only| approval.run == *only));
        let page = page.cut(pending, |approval| approval.action_id.clone())?;
        Ok(Response::new(ListPendingApprovalsResponse {
            approvals: page.items.into_iter().map(approval_message).collect(),
            next_page_token: page.next_token,
        }))
    }

    async fn decide_approval(
        &self,
        request: Request<DecideApprovalRequest>,
    ) -> Result<Response<DecideApprovalResponse>, Status> {
        let caller = scoped_caller(&self.state, &request, TokenScope::Approve)?;
        let asked = request.into_inner();
        checked_name(&asked.approval_id, "approval_id")?;
        let is_allowed = match asked.decision() {
            Decision::Approve => true,
            Decision::Deny => false,
            Decision::Unspecified => {
                return Err(wrong_field("decision", "`decision` is DECISION_APPROVE or DECISION_DENY"));
            }
        };
        if asked.comment.len() > MAX_COMMENT_BYTES {
            return Err(wrong_field("comment", format!("`comment` has at most {MAX_COMMENT_BYTES} bytes")));
        }
        let wrong = |_| wrong_field("answers_json", "`answers_json` is a JSON object, or empty");
        let answers = given(asked.answers_json).map(|text| serde_json::from_str(&text)).transpose().map_err(wrong)?;
        let field = if answers.is_some() { "answers_json" } else { "comment" };
        let comment = given(asked.comment);
        let decision = rest_work::ApprovalDecision { answers, ..rest_work::ApprovalDecision::new(is_allowed, comment) };
        let decided = rest_work::decide(&caller, &asked.approval_id, decision).await;
        decided.map_err(refused_field(field))?;
        Ok(Response::new(DecideApprovalResponse {}))
    }
}
