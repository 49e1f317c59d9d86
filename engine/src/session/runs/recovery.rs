//! Loads runs from disk, and restores those that were active when the program ended.

use super::approvals::shown_facts;
use super::orchestrated_run::{argument_text, orchestrated_project};
use crate::effect::Effect;
use crate::event::DocumentLoadError;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase, PendingCall, add_usage, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::budget::with_estimate;
use agent::memory::trace_extraction::final_answer;
use agent::sent_task::{self, interrupted_call_text};
use agent::server_request::is_server_request;
use agent::tool_job::ToolOutcome;
use std::collections::BTreeSet;
use store::{
    AgentState, DocId, ExecutionStep, RunAbout, RunApproval, RunDoc, RunEnding, RunWrite, StepKind, TodoItem, ToolCall,
};
use text::time::UnixMillis;

impl RunsState {
    /// Imports an exported run.
    pub(in crate::session) fn import_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (about, todos, steps, approvals): (RunAbout, Vec<TodoItem>, Vec<ExecutionStep>, Vec<RunApproval>),
    ) -> Result<(), CommandError> {
        if self.run_summaries.contains_key(&id) {
            return Err(CommandError("a run with that id already exists".to_owned()));
        }
        let failed = |error: store::StoreError| CommandError(error.to_string());
        let mut doc = RunDoc::load(id, &[], workspace.actor.clone()).map_err(failed)?.doc;
        let ending = about.ending.unwrap_or(RunEnding::Cancelled);
        let about = RunAbout { agent_state: AgentState::Idle, ending: Some(ending), ..about };
        let write = RunWrite {
            steps: steps.iter().collect(),
            todos: Some(&todos),
            approvals: approvals.iter().collect(),
            ..RunWrite::default()
        };
        doc.commit(&write, turn.now.as_seconds()).map_err(failed)?;
        let mut run = AgentRun::new(id, about, Box::new(doc), true);
        (run.device, run.durable_step_count) = (Some(workspace.device.clone()), 0);
        self.runs.insert(id, run);
        self.record_run(turn, sync, id, RunRecord::default());
        Ok(())
    }

    pub(in crate::session) fn open_run(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        if !self.run_summaries.contains_key(&id) {
            return Err(CommandError(format!("there is no run {id}")));
        }
        self.remote_runs.keep_loaded(id);
        if !self.runs.contains_key(&id) && self.loading.insert(id) {
            turn.effects.push(Effect::LoadRun { run: id });
        }
        Ok(())
    }

    pub(in crate::session) fn run_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        doc: Result<Box<RunDoc>, DocumentLoadError>,
    ) {
        self.loading.remove(&id);
        self.revision += 1;
        let Some(doc) = self.merge_early_run(turn, sync, workspace, id, doc) else { return };
        if self.runs.contains_key(&id) || !self.run_summaries.contains_key(&id) {
            return; // it is there, or was deleted meanwhile
        }
        let read = doc.and_then(|doc| match doc.about() {
            Some(about) => Ok((about, doc)),
            None => {
                Err(DocumentLoadError(format!("the run {id} cannot be read; `tracebook fsck` looks for the cause")))
            }
        });
        let (about, doc) = match read {
            Ok(read) => read,
            Err(why) => {
                self.read_errors.insert(id, why.0);
                return self.rejoin_run(turn, files, sync, workspace, id);
            }
        };
        let session = about.session;
        let waits =
            about.ending.is_none() && !self.sessions.contains_key(&session) && !self.read_errors.contains_key(&session);
        if waits && self.open_session(turn, session).is_ok() {
            // The message about its end must be added to the session too.
            self.loading.insert(id);
            self.read_runs.push((id, doc));
            return;
        }
        let mut run = AgentRun::new(id, about, doc, false);
        run.device = self.believed_device(workspace, id, run.device.take());
        let is_active = run.about.ending.is_none();
        self.runs.insert(id, run);
        sync.mark_attachments_stale(); // somebody looks at it: what it names is wanted soon
        if is_active && self.carries_out(workspace, id) {
            self.restore_run(turn, sync, id);
        }
        self.rejoin_run(turn, files, sync, workspace, id);
        self.tick_runs(turn, files, sync, workspace);
    }

    /// Has a run continue whose lead waits for it again after an interruption. If it has an answer, or can't continue,
    /// the lead is told.
    pub(super) fn rejoin_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let Some((lead, _)) = self.children.get(&id).filter(|_| !self.sent_tasks.contains_key(&id)) else { return };
        let project = self.runs.get(lead).and_then(|lead| lead.project.clone().or_else(|| orchestrated_project(lead)));
        let is_idle = |run: &AgentRun| run.about.ending.is_none() && !run.is_busy() && !run.is_awake();
        if let Some(run) = self.runs.get_mut(&id).filter(|run| is_idle(run)) {
            run.device = Some(workspace.device.clone()); // a worker that was lost may have begun it
            self.restore_run(turn, sync, id);
        }
        let (ending, said) = match self.runs.get_mut(&id) {
            None => (None, self.read_errors.get(&id).cloned().unwrap_or_default()),
            Some(run) if run.about.ending == Some(RunEnding::Done) => {
                (run.about.ending, final_answer(&run.steps).unwrap_or_default().to_owned())
            }
            Some(run) => {
                run.project = run.project.take().or(project);
                if run.is_busy() || run.is_awake() {
                    run.is_awake = true; // it continues also when the time for its approvals is over
                    self.record_run(turn, sync, id, RunRecord::default());
                    return;
                }
                match self.resume_run(turn, sync, workspace, id, None, None) {
                    Ok(()) => return,
                    Err(CommandError(why)) => (None, why),
                }
            }
        };
        self.on_child_ended(turn, files, sync, workspace, id, (ending, &said));
    }

    /// Restores what a run of this device was doing when the program that carried it out ended.
    pub(super) fn restore_run(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        let unsettled = self.run_summaries.get(&id).and_then(|line| line.unsettled);
        let Some(run) = self.runs.get_mut(&id) else { return };
        let left = restore_open_calls(run);
        let waiting = run.calls.iter().filter(|pending| pending.phase == CallPhase::AwaitingApproval);
        let waiting: Vec<&str> = waiting.map(|pending| argument_text(&pending.call.arguments, "task")).collect();
        run.orchestrator.started_tasks = sent_task::begun_tasks(&run.steps, &waiting);
        if let Some(usage) = unsettled {
            // The provider bills the call, although its answer is lost.
            let message = with_estimate("The program ended while a model was answering.", Some(usage));
            let mut made = new_step(turn, run.last_step(), StepKind::Error { message, recoverable: true });
            made.spent = Some(usage);
            add_usage(&mut run.about.spent, usage);
            self.record_run(turn, sync, id, RunRecord { steps: vec![made], ..RunRecord::default() });
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        // Nobody could decide while the program was closed, so the timeout starts again.
        for approval in run.approvals.iter_mut().filter(|approval| approval.decision.is_none()) {
            let time = approval.expires.saturating_sub(approval.asked);
            approval.expires = approval.expires.max(turn.now.0.saturating_add(time));
        }
        if !left.is_empty() {
            let mut record = RunRecord::default();
            for (call, text) in left {
                self.answer_call(turn, id, &call, ToolOutcome { text, ..ToolOutcome::default() }, &mut record);
            }
            self.record_run(turn, sync, id, record);
        }
        if let Some(run) = self.runs.get_mut(&id)
            && run.calls.iter().all(|pending| pending.phase == CallPhase::Done)
        {
            // The run doesn't continue automatically; the user can resume it.
            run.calls.clear();
        }
    }

    /// Continues loading the runs that waited for their session.
    pub(super) fn continue_read_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        for (id, doc) in std::mem::take(&mut self.read_runs) {
            self.run_loaded(turn, files, sync, workspace, id, Ok(doc));
        }
    }
}

/// Restores the calls of the last turn that were open when the program ended. Pending approvals stay pending. Returns
/// the calls that were decided and have no result, because these were running, with what is said of them.
fn restore_open_calls(run: &mut AgentRun) -> Vec<(String, String)> {
    let answered: BTreeSet<&str> = run
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            StepKind::ToolResult { tool_call_id, .. } => Some(tool_call_id.as_str()),
            StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => None,
        })
        .collect();
    let mut calls = Vec::new();
    let mut left = Vec::new();
    for step in &run.steps {
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { continue };
        if answered.contains(tool_call_id.as_str()) {
            continue;
        }
        // The last one counts, because approval for a call may have been requested again.
        let approval = run.approvals.iter().rev().find(|approval| approval.call_id() == tool_call_id);
        let waits = approval.is_some_and(|approval| approval.decision.is_none());
        let waits = waits && !is_server_request(tool_name); // no server waits for it any more
        let arguments = approval.map_or_else(|| params.clone(), |approval| approval.arguments.clone());
        let call = ToolCall { id: tool_call_id.clone(), name: tool_name.clone(), arguments };
        let facts = approval.map(shown_facts);
        if !waits {
            left.push((call.id.clone(), interrupted_call_text(tool_name, params)));
        }
        let phase =
            if waits { CallPhase::AwaitingApproval } else { CallPhase::Running { since: UnixMillis(step.timestamp) } };
        let (facts, requested) = (facts.unwrap_or_default(), params.clone());
        calls.push(PendingCall { phase, facts, requested, is_checked: true, ..PendingCall::new(call, step.id) });
    }
    run.calls = calls;
    run.about.agent_state = AgentState::Idle;
    left
}
