//! Approvals: the user's decisions, their consequences, and timeouts.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::policy::{self, CallFacts, Permission, ToolPolicy};
use agent::run_records::POLICY_RULES_KEY;
use agent::server_form;
use agent::task_block::TaskStatus;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::string_argument;
use store::disk::RowWrite;
use store::{DecisionMaker, DecisionRecord, DecisionScope, DocId, RunApproval, RunOrigin};
use text::time::UnixMillis;

/// Returns the facts about a call that were known when its approval was shown.
pub(super) fn shown_facts(approval: &RunApproval) -> CallFacts {
    let ips = approval.addresses.iter().filter_map(|ip| ip.parse().ok()).collect();
    CallFacts { code: approval.code.clone(), ips }
}

impl RunsState {
    /// Applies the user's decision to a pending approval.
    pub(in crate::session) fn decide_approval(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, approval): (DocId, &str),
        decision: DecisionRecord,
    ) -> Result<(), CommandError> {
        let (tools, rules) = (self.all_tools(), self.policy_of(id));
        let DecisionRecord { allowed, scope, arguments, comment, .. } = decision;
        let carries_out = self.carries_out(workspace, id);
        let Some(run) = self.runs.get_mut(&id) else {
            return Err(CommandError("the run is not open yet; try again in a moment".to_owned()));
        };
        if run.about.ending.is_some() {
            return Err(CommandError("the run is over, so there is nothing to decide".to_owned()));
        }
        if !self.sessions.contains_key(&run.about.session) {
            return Err(CommandError("the run's session is still being read; try again in a moment".to_owned()));
        }
        let Some(known) = run.approvals.iter_mut().find(|known| known.id == approval) else {
            return Err(CommandError(format!("no such approval: {approval}")));
        };
        if known.decision.is_some() {
            return Err(CommandError("that was decided already".to_owned()));
        }
        let elsewhere = run.device.as_ref().filter(|_| !carries_out);
        if let Some(device) = elsewhere.filter(|_| allowed && !BuiltInTool::AskUser.is_named(&known.tool)) {
            let name = &device.name;
            return Err(CommandError(if run.about.origin == RunOrigin::Device {
                format!("{name} carries out the run; the device that sent it allows it by `tracebook approvals`")
            } else {
                format!("the run is active on {name}; you can deny it here, but allow it only there")
            }));
        }
        let tool = tools.iter().find(|tool| tool.name == known.tool).filter(|_| elsewhere.is_none());
        let facts = shown_facts(known);
        // What is asked about each time has no lasting answer.
        let scope = if policy::each_time_reason(&known.tool).is_some() { DecisionScope::Once } else { scope };
        let (used, volume) = (arguments.clone().unwrap_or_else(|| known.arguments.clone()), run.about.volume);
        // Unchanged arguments count as none.
        let arguments = arguments.filter(|arguments| *arguments != known.arguments);
        if let (Some(arguments), Some(tool), true) = (&arguments, tool, allowed) {
            agent::tool_call_parser::check_arguments(tool, arguments).map_err(|why| CommandError(why.to_string()))?;
            let verdict = rules.decide(tool, arguments, &CallFacts::default(), volume, id);
            if verdict.word == Permission::Deny {
                return Err(CommandError(format!("that is not allowed either: {}", verdict.why)));
            }
        }
        if allowed && BuiltInTool::McpForm.is_named(&known.tool) {
            server_form::decided_answers(&known.arguments, &used).map_err(|why| CommandError(why.to_string()))?;
        }
        let by = DecisionMaker::User;
        let shown = arguments.is_none() || known.code.is_empty();
        let same = tool.filter(|tool| tool.definition_hash() == known.definition && (shown || !allowed));
        known.decision = Some(DecisionRecord { allowed, scope, by, at: turn.now.0, arguments, comment });
        // A lasting decision applies to what was shown: not to a tool that has changed meanwhile, and not to code that
        // other arguments lead to.
        if let Some(rule) =
            same.and_then(|tool| ToolPolicy::rule_from_decision(scope, allowed, tool, &used, &facts, volume, id))
        {
            self.rules.push(rule);
            self.save_rules(turn);
        }
        self.on_approval_decided(turn, files, sync, workspace, id, approval);
        Ok(())
    }

    /// Carries out the consequences of a decision.
    pub(super) fn on_approval_decided(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        approval: &str,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(known) = run.approvals.iter().find(|known| known.id == approval).cloned() else { return };
        let Some(decision) = known.decision.clone() else { return };
        let mut record = RunRecord { approvals: vec![approval.to_owned()], ..RunRecord::default() };
        let call = known.call_id().to_owned();
        // A call with a newer approval request waits for that one.
        let waits = |pending: &&mut crate::session::state::agent_run::PendingCall| {
            pending.call.id == call && pending.phase == CallPhase::AwaitingApproval
        };
        let pending = run.calls.iter_mut().find(waits);
        let Some(pending) = pending else {
            self.record_run(turn, sync, id, record);
            return;
        };
        // A run that was only read from disk continues if someone decides about it, not when a time is over.
        let continues = run.is_awake || decision.by != DecisionMaker::Timeout || self.held.contains_key(&id);
        let changed = decision.arguments.is_some();
        if let Some(arguments) = decision.arguments {
            pending.call.arguments = arguments;
        }
        let answer = BuiltInTool::AskUser.is_named(&known.tool);
        // A task of a plan that isn't begun has failed.
        let task = string_argument(&pending.call.arguments, "task").to_owned();
        let is_refused_task = !decision.allowed && BuiltInTool::AskAgent.is_named(&known.tool) && !task.is_empty();
        if decision.allowed && !answer && changed && !known.code.is_empty() {
            // Other arguments may lead to other code, which the user hasn't seen.
            self.record_run(turn, sync, id, record);
            let why = "you changed it, and this is what would run now".to_owned();
            return self.recheck_call(turn, files, sync, workspace, (id, &call), (&[], Some(why)));
        }
        run.active_since = None; // the time of waiting doesn't count
        if decision.allowed && !answer {
            pending.phase = CallPhase::Ready;
        } else {
            let comment = decision.comment.unwrap_or_default();
            let outcome = if decision.allowed {
                ToolOutcome { success: true, text: comment, ..ToolOutcome::default() }
            } else {
                let who = match decision.by {
                    DecisionMaker::Timeout => "Nobody decided in time, so it counts as denied.".to_owned(),
                    DecisionMaker::User
                    | DecisionMaker::Cancelled
                    | DecisionMaker::Policy
                    | DecisionMaker::Other(_) => "The user denied it.".to_owned(),
                };
                let words = if comment.is_empty() { who } else { format!("{who} They say: “{comment}”.") };
                ToolOutcome { success: false, text: format!("{words} Do not try it again."), ..ToolOutcome::default() }
            };
            self.answer_call(turn, id, &call, outcome, &mut record);
        }
        let batch = self.record_run(turn, sync, id, record);
        if is_refused_task {
            self.update_task_status(turn, files, sync, id, &task, TaskStatus::Failed);
        }
        if continues {
            return self.continue_run_after(batch, id);
        }
        if let Some(run) = self.runs.get_mut(&id).filter(|run| run.pending().next().is_none()) {
            run.calls.clear(); // the user can resume it
        }
    }

    pub(in crate::session) fn save_rules(&self, turn: &mut ApplyContext<'_>) {
        let value = serde_json::to_vec(&self.rules).ok();
        turn.append_writes(vec![RowWrite::Meta { key: POLICY_RULES_KEY.to_owned(), value }], None);
    }

    /// Removes a policy rule that a decision created.
    pub(in crate::session) fn forget_rule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        number: usize,
    ) -> Result<(), CommandError> {
        if number >= self.rules.len() {
            return Err(CommandError(format!("there is no rule {}", number + 1)));
        }
        self.rules.remove(number);
        self.revision += 1;
        self.save_rules(turn);
        Ok(())
    }

    /// Denies approvals whose timeout has passed.
    pub(in crate::session) fn tick_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        let now = turn.now.0;
        let mut late: Vec<(DocId, String)> = Vec::new();
        let mut next: Option<i64> = None;
        let ours: Vec<DocId> = self.runs.keys().copied().filter(|id| self.carries_out(workspace, *id)).collect();
        let is_ours = |run: &&mut AgentRun| ours.contains(&run.id) && run.about.ending.is_none();
        for run in self.runs.values_mut().filter(is_ours) {
            for approval in run.approvals.iter_mut().filter(|approval| approval.decision.is_none()) {
                if approval.expires > now {
                    next = Some(next.map_or(approval.expires, |next| next.min(approval.expires)));
                    continue;
                }
                let by = DecisionMaker::Timeout;
                let scope = DecisionScope::Once;
                approval.decision =
                    Some(DecisionRecord { allowed: false, scope, by, at: now, arguments: None, comment: None });
                late.push((run.id, approval.id.clone()));
            }
        }
        for (run, approval) in late {
            self.on_approval_decided(turn, files, sync, workspace, run, &approval);
        }
        if let Some(next) = next {
            turn.wake_at(UnixMillis(next));
        }
    }
}
