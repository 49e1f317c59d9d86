//! Requests of MCP servers for a model's answer, or for the user's. Each is a call of the run, beside the call whose
//! server asks: the policy checks it, the user decides about it, and its steps keep what was sent and answered. The
//! run's model sees none of it.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::runs::watchdog::model_patience_ms;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{
    AgentRun, CallPhase, LiveModelCall, PendingCall, PendingServerRequest, add_usage, new_step,
};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::budget::with_estimate;
use agent::model_call::{ModelCallId, ModelError, ModelRequest, ModelResponse};
use agent::policy::CallFacts;
use agent::router::{self, RequestFeatures, RoutingContext, RoutingDecision};
use agent::sampling::{self, SamplingCall, SamplingRequest, model_name};
use agent::server_form::{self, FormAnswer, FormCall};
use agent::server_request::{ServerReply, ServerRequest, request_count};
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::{failed_outcome, successful_outcome};
use serde_json::{Map, Value};
use store::{DecisionMaker, DecisionRecord, DecisionScope, DocId, ExecutionStep, StepKind, ToolCall};
use text::time::UnixMillis;

/// What a server is told whose tool call has ended.
const CALL_ENDED: &str = "The tool call has ended.";

/// Returns the decision of an approval that nobody needs to decide.
pub(super) fn cancelled_decision(now: UnixMillis) -> DecisionRecord {
    let (scope, by) = (DecisionScope::Once, DecisionMaker::Cancelled);
    DecisionRecord { allowed: false, scope, by, at: now.0, arguments: None, comment: None }
}

fn refuse(turn: &mut ApplyContext<'_>, (request, tool): (String, BuiltInTool), why: &str) {
    let reply = ServerReply::refusal(tool, None, why);
    turn.effects.push(Effect::AnswerServer { request, reply });
}

impl AgentRun {
    /// Returns whether a call's server waits for a model or the user.
    pub(super) fn waits_for_reply(&self, call: &str) -> bool {
        self.server_requests.iter().any(|asked| asked.owner == call)
    }

    /// Takes a model call that was made for a server, with the id of the request.
    pub(super) fn take_sampling_call(&mut self, call: ModelCallId) -> Option<(String, LiveModelCall)> {
        let take = |asked: &mut PendingServerRequest| {
            Some((asked.call.clone(), asked.live.take_if(|live| live.call == call)?))
        };
        self.server_requests.iter_mut().find_map(take)
    }

    /// Stops the model of a request and counts what it costs. Returns whether the call is a request.
    pub(super) fn stop_server_request(&mut self, turn: &mut ApplyContext<'_>, call: &str) -> bool {
        let Some(asked) = self.server_requests.iter_mut().find(|asked| asked.call == call) else { return false };
        if let Some(live) = asked.live.take() {
            turn.effects.push(Effect::CancelModel { call: live.call });
            asked.spent = live.received_usage(true);
            asked.route = Some(live.route);
            asked.spent.into_iter().for_each(|usage| add_usage(&mut self.about.spent, usage));
        }
        true
    }

    /// Answers the server of a request that has ended with this result. Returns the approvals that were still pending.
    pub(super) fn end_server_request(
        &mut self,
        turn: &mut ApplyContext<'_>,
        call: &str,
        failure: Option<&str>,
        result: &mut ExecutionStep,
    ) -> Vec<String> {
        self.stop_server_request(turn, call);
        let (mut closed, mut denied_by) = (Vec::new(), None);
        for approval in self.approvals.iter_mut().filter(|approval| approval.call_id() == call) {
            match &approval.decision {
                Some(decision) => {
                    let is_denied = !decision.allowed && decision.by != DecisionMaker::Cancelled;
                    denied_by = is_denied.then(|| decision.by.clone());
                }
                None => {
                    approval.decision = Some(cancelled_decision(turn.now));
                    closed.push(approval.id.clone());
                }
            }
        }
        let Some(at) = self.server_requests.iter().position(|asked| asked.call == call) else { return closed };
        let PendingServerRequest { tool, owner, since, reply, spent, route, .. } = self.server_requests.remove(at);
        (result.spent, result.route) = (spent, route);
        turn.wake_at(turn.now); // the watchdog looks at the server's tool again
        // The time in which a server waited isn't that of its tool.
        if !self.waits_for_reply(&owner) {
            let waited = turn.now.ms_since(since);
            for pending in self.calls.iter_mut().filter(|pending| pending.call.id == owner) {
                if let CallPhase::Running { since } = &mut pending.phase {
                    *since = since.plus_ms(waited);
                }
            }
        }
        for other in self.server_requests.iter_mut().filter(|asked| asked.owner == owner) {
            other.since = other.since.min(since);
        }
        let refusal = || ServerReply::refusal(tool, denied_by.as_ref(), failure.unwrap_or(CALL_ENDED));
        let reply = reply.filter(|_| failure.is_none()).unwrap_or_else(refusal);
        turn.effects.push(Effect::AnswerServer { request: call.to_owned(), reply });
        closed
    }

    /// Drops all requests of a run that is over.
    pub(super) fn drop_server_requests(&mut self, turn: &mut ApplyContext<'_>) {
        let calls: Vec<_> = self.server_requests.iter().map(|asked| (asked.call.clone(), asked.tool)).collect();
        for call in calls {
            self.stop_server_request(turn, &call.0);
            refuse(turn, call, "The run has ended.");
        }
        self.server_requests.clear();
    }
}

impl RunsState {
    /// Shows the user a server's request, or refuses it.
    pub(in crate::session) fn on_server_asked(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, owner): (DocId, &str),
        (name, server, request): (String, String, ServerRequest),
    ) {
        let request = request.masked(&self.own_keys());
        let kind = request.tool();
        let Some(run) = self.runs.get(&id).filter(|run| run.about.ending.is_none()) else {
            return refuse(turn, (name, kind), CALL_ENDED);
        };
        let asks = |call: &PendingCall| call.call.id == owner && matches!(call.phase, CallPhase::Running { .. });
        let Some((at, parent)) = run.calls.iter().position(asks).map(|at| (at, run.calls[at].step)) else {
            return refuse(turn, (name, kind), CALL_ENDED);
        };
        let (most, what) = match kind {
            BuiltInTool::McpForm => (server_form::MAX_FORM_REQUESTS, "forms of servers"),
            _ => (sampling::MAX_SAMPLING_REQUESTS, "requests for a model"),
        };
        if request_count(&run.steps, kind) >= most {
            return refuse(turn, (name, kind), &format!("A run has at most {most} {what}."));
        }
        let (arguments, tool, checked) = match request {
            ServerRequest::Form(form) => {
                let why = server_form::form_reason(&form);
                (FormCall::new(form).arguments(), server_form::form_tool(), Ok(why))
            }
            ServerRequest::Model(request) => {
                let routed = self.route_sampling((&files.volumes, workspace, turn.now), run, &request, None);
                let model = routed.as_ref().map(|choice| model_name(&choice.endpoint)).unwrap_or_default();
                let arguments = SamplingCall { server, model, request }.arguments();
                (arguments, sampling::sampling_tool(), routed.map(|choice| sampling::describe_cost(choice.cost)))
            }
        };
        let call = ToolCall { id: name.clone(), name: kind.to_string(), arguments };
        let (tool_call_id, tool_name, params) = (name.clone(), call.name.clone(), call.arguments.clone());
        let mut step = new_step(turn, vec![parent], StepKind::ToolCall { tool_call_id, tool_name, params });
        step.tool = Some(Box::new(tool.step_tool()));
        let Some(run) = self.runs.get_mut(&id) else { return };
        // Before the call that waits for it, so that it doesn't wait for that one.
        run.calls.insert(at, PendingCall { changes: false, ..PendingCall::new(call, step.id) });
        run.used_call_ids.insert(name.clone());
        let (call, owner, since) = (name.clone(), owner.to_owned(), turn.now);
        let (live, reply, spent, route) = (None, None, None, None);
        run.server_requests.push(PendingServerRequest { call, tool: kind, owner, since, live, reply, spent, route });
        let mut record = RunRecord { steps: vec![step], ..RunRecord::default() };
        match checked {
            Ok(why) => {
                let facts = CallFacts::default();
                self.check_call(turn, &files.volumes, (id, &name), &tool, facts, Some(why), &mut record);
            }
            Err(CommandError(why)) => self.answer_call(turn, id, &name, failed_outcome(why), &mut record),
        }
        let batch = self.record_run(turn, sync, id, record);
        self.tick_runs(turn, files, sync, workspace);
        self.continue_run_after(batch, id);
    }

    /// Chooses the model for a request: that of the run, or this one. Returns why if none may be asked.
    fn route_sampling(
        &self,
        (volumes, workspace, now): (&VolumesState, &WorkspaceState, UnixMillis),
        run: &AgentRun,
        request: &SamplingRequest,
        provider: Option<String>,
    ) -> Result<RoutingDecision, CommandError> {
        let setup = self.setup().ok_or_else(|| CommandError("The configuration is not read yet.".to_owned()))?;
        let own = self.routing_context(run, setup);
        let last = sampling::last_provider(&run.steps).filter(|last| setup.config.llm.providers.contains_key(*last));
        let only = provider.or_else(|| own.only.clone()).or_else(|| last.map(ToOwned::to_owned));
        let max_tokens = Some(request.max_tokens);
        let features = RequestFeatures::from_request("", request.tokens(), 0, max_tokens);
        let context = RoutingContext { only, max_tokens, tried: Vec::new(), ..own };
        let choice = router::choose_provider(&setup.config, &features, &context)
            .map_err(|failure| CommandError(failure.to_string()))?;
        let more = choice.cost.unwrap_or(0.0);
        let over = || {
            self.over_own_budget(run.id, more).or_else(|| self.over_budget_reason(volumes, workspace, run, now, more))
        };
        (choice.cost != Some(0.0)).then(over).flatten().map_or(Ok(choice), |why| Err(CommandError(why)))
    }

    /// Sends an allowed request to its model: what was allowed, and nothing else. Returns the outcome if that can't be.
    pub(super) fn begin_sampling(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        (id, call): (DocId, &str),
        arguments: &Map<String, Value>,
    ) -> Option<ToolOutcome> {
        let run = self.runs.get(&id)?;
        if run.server_requests.iter().all(|asked| asked.call != call) {
            return Some(failed_outcome("No server waits for this."));
        }
        let allowed = match SamplingCall::from_arguments(arguments) {
            Ok(allowed) => allowed,
            Err(why) => return Some(failed_outcome(format!("The request is refused: {why}."))),
        };
        let (request, provider) = (&allowed.request, Some(allowed.provider()));
        let choice = match self.route_sampling((volumes, workspace, turn.now), run, request, provider) {
            Ok(choice) if model_name(&choice.endpoint) == allowed.model => choice,
            Ok(_) => return Some(failed_outcome(format!("The model {} is not configured.", allowed.model))),
            Err(CommandError(why)) => return Some(failed_outcome(why)),
        };
        let price = self.setup()?.model_price(&choice.endpoint);
        let limits = self.watchdog_limits(run).model_call(choice.endpoint.local);
        let patience_ms = model_patience_ms(limits);
        let (cost, request_tokens) = (choice.cost.unwrap_or(0.0), request.tokens());
        let run = self.runs.get_mut(&id)?;
        run.next_call += 1;
        let number = ModelCallId { run: id, number: run.next_call };
        let live = LiveModelCall::new(number, turn.now, choice.describe_route(), patience_ms);
        let asked = run.server_requests.iter_mut().find(|asked| asked.call == call)?;
        asked.live = Some(LiveModelCall { cost, request_tokens, price, ..live });
        let request = ModelRequest {
            endpoint: choice.endpoint,
            system: request.system.clone().unwrap_or_default(),
            messages: request.messages(turn.now.0),
            tools: Vec::new(),
            max_tokens: Some(request.max_tokens),
            temperature: request.temperature,
            tool_choice: None,
            limits: Some(limits),
            program: None,
        };
        turn.effects.push(Effect::CallModel { call: number, request: Box::new(request) });
        self.notify_low_budgets(turn, volumes, workspace, id, cost);
        None
    }

    /// Gives a server the answers that the user has entered.
    pub(super) fn answer_form(
        &mut self,
        (id, call): (DocId, &str),
        decided: &Map<String, Value>,
    ) -> Option<ToolOutcome> {
        let run = self.runs.get_mut(&id)?;
        let asked = run.calls.iter().find(|pending| pending.call.id == call).map(|pending| &pending.requested)?;
        let Some(open) = run.server_requests.iter_mut().find(|open| open.call == call) else {
            return Some(failed_outcome("No server waits for this."));
        };
        Some(match server_form::decided_answers(asked, decided) {
            Ok(answers) => {
                open.reply = Some(ServerReply::Form(FormAnswer::Filled(answers)));
                successful_outcome("The server has the answers.")
            }
            Err(why) => failed_outcome(format!("The form isn't sent: {why}.")),
        })
    }

    /// Handles the end of a model call that was made for a server.
    pub(super) fn on_sampled(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        (id, call): (DocId, &str),
        result: Result<ModelResponse, ModelError>,
        live: LiveModelCall,
    ) {
        let own = self.own_keys();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let arguments = run.calls.iter().find(|pending| pending.call.id == call).map(|known| &known.call.arguments);
        let allowed = arguments.and_then(|arguments| SamplingCall::from_arguments(arguments).ok());
        let Some(asked) = run.server_requests.iter_mut().find(|asked| asked.call == call) else { return };
        asked.spent = match &result {
            Ok(response) => Some(response.spent),
            Err(_) => live.received_usage(false),
        };
        let outcome = match (result, allowed) {
            (Ok(response), Some(allowed)) => {
                let model = allowed.model.split_once('/').map_or("", |(_, model)| model).to_owned();
                let text = own.mask_text(&response.text).into_owned();
                let answer = allowed.request.sampled(text, response.stop, model);
                let outcome = successful_outcome(answer.text.as_str());
                asked.reply = Some(ServerReply::Model(Ok(answer)));
                outcome
            }
            (Ok(_), None) => failed_outcome(CALL_ENDED),
            (Err(failure), _) => failed_outcome(with_estimate(&failure.why, asked.spent)),
        };
        asked.route = Some(live.route);
        asked.spent.into_iter().for_each(|usage| add_usage(&mut run.about.spent, usage));
        let mut record = RunRecord::default();
        self.answer_call(turn, id, call, outcome, &mut record);
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Ends the requests of a call's server, because the call is over.
    pub(super) fn end_server_requests_of(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        owner: &str,
        record: &mut RunRecord,
    ) {
        let open = self.runs.get(&id).into_iter().flat_map(|run| &run.server_requests);
        let open: Vec<String> = open.filter(|asked| asked.owner == owner).map(|asked| asked.call.clone()).collect();
        for call in open {
            self.answer_call(turn, id, &call, failed_outcome(CALL_ENDED), record);
        }
    }
}
