//! Ending, stopping and resuming runs.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError, SessionRequest};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{CallPhase, ProjectReadState, add_usage, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::notice::Notice;
use agent::schedule::ScheduleOutcome;
use agent::tool_catalog::BuiltInTool;
use store::RunOrigin;
use store::{AgentState, DocId, MessageId, MessageRole, RunEnding, SessionMessage, StepKind, TodoItem};

impl RunsState {
    /// Ends a run and records how it ended.
    pub(super) fn end_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (ending, mut record): (RunEnding, RunRecord),
    ) {
        files.notes.forget_known_texts(turn, |run| *run == id);
        let consolidates = self.setup().is_some_and(|setup| setup.config.memory.consolidates_after_sessions());
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.about.ending = Some(ending);
        run.about.ended = Some(turn.now.0);
        if consolidates {
            self.idle_consolidation.on_run_ended(&run.about);
        }
        run.about.agent_state = AgentState::Idle;
        run.is_awake = false;
        let origin = run.about.origin;
        (run.live, run.calls) = (None, Vec::new());
        run.drop_server_requests(turn);
        self.end_program(turn, id);
        let Some(run) = self.runs.get_mut(&id) else { return };
        // Close pending approvals, which are no longer needed.
        for approval in run.approvals.iter_mut().filter(|approval| approval.decision.is_none()) {
            approval.decision = Some(super::server_requests::cancelled_decision(turn.now));
            record.approvals.push(approval.id.clone());
        }
        if run.has_called(BuiltInTool::is_for_browser) {
            turn.effects.push(Effect::CloseBrowser { run: id });
        }
        if run.has_called(BuiltInTool::is_for_containers) {
            turn.effects.push(Effect::RemoveContainers { run: id });
        }
        self.drop_tool_note_jobs(turn, files, sync, id);
        // Permissions for this run end with it.
        let before = self.rules.len();
        self.rules.retain(|rule| rule.within != Some(id));
        if self.rules.len() != before {
            self.save_rules(turn);
        }
        let said = record.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::FinalAnswer { content } => Some(content.clone()),
            StepKind::Error { message, .. } => Some(message.clone()),
            _ => None,
        });
        let why = record.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::Error { message, .. } if ending != RunEnding::Done => Some(message.clone()),
            _ => None,
        });
        self.record_run(turn, sync, id, record);
        self.remember_run(turn, files, sync, id);
        turn.notify(Notice::RunEnded { run: id, ending, why });
        self.report_run_end(turn, id, ending);
        if let RunOrigin::Schedule { schedule } = origin {
            let outcome = ScheduleOutcome::Ended { run: id, how: ending };
            turn.requests.push_back(SessionRequest::FinishSchedule { schedule, outcome });
        }
        self.stop_children(turn, files, sync, workspace, id);
        self.on_child_ended(turn, files, sync, workspace, id, (Some(ending), said.as_deref().unwrap_or_default()));
    }

    /// Stops a run. Its results so far are kept.
    pub(in crate::session) fn cancel_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        if let Some(at) = self.run_requests.iter().position(|question| question.run == id) {
            self.run_requests.remove(at);
            self.on_child_ended(turn, files, sync, workspace, id, (Some(RunEnding::Cancelled), "it was stopped"));
            return Ok(());
        }
        let Some(run) = self.runs.get(&id) else { return Err(CommandError("the run is not open".to_owned())) };
        if run.about.ending.is_some() {
            return Err(CommandError("the run is over".to_owned()));
        }
        self.stop_run(turn, files, sync, workspace, id, (RunEnding::Cancelled, "Stopped by the user."));
        Ok(())
    }

    /// Stops what a run is doing and ends it, with the reason as a sentence. What the stopped call has cost is counted.
    pub(super) fn stop_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (ending, why): (RunEnding, &str),
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let mut record = RunRecord::default();
        let usage = run.live.as_ref().and_then(|live| live.received_usage(true));
        if let Some(live) = &run.live {
            turn.effects.push(Effect::CancelModel { call: live.call });
            if !live.text.is_empty() && live.summary_of.is_empty() {
                record.messages.push(SessionMessage {
                    parents: vec![run.about.head],
                    run: Some(id),
                    partial: Some("cancelled".to_owned()),
                    ..SessionMessage::new(
                        MessageId(turn.next_id()),
                        MessageRole::Assistant,
                        live.text.clone(),
                        turn.now.0,
                    )
                });
            }
        }
        let running: Vec<String> = run
            .calls
            .iter()
            .filter(|pending| matches!(pending.phase, CallPhase::Running { .. }))
            .map(|pending| pending.call.id.clone())
            .collect();
        let parents = run.last_step();
        let message = agent::budget::with_estimate(why, usage);
        let mut stopped = new_step(turn, parents, StepKind::Error { message, recoverable: true });
        stopped.spent = usage;
        record.steps.push(stopped);
        if let Some((run, usage)) = self.runs.get_mut(&id).zip(usage) {
            add_usage(&mut run.about.spent, usage);
        }
        for call in running {
            self.stop_tool_call(turn, files, sync, id, &call);
        }
        self.end_run(turn, files, sync, workspace, id, (ending, record));
    }

    /// Resumes a run that ended or was interrupted. `more`: number of additional iterations.
    pub(in crate::session) fn resume_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        more: Option<u64>,
        budget: Option<f64>,
    ) -> Result<(), CommandError> {
        let Some(run) = self.runs.get_mut(&id) else {
            return Err(CommandError("the run is not open yet; try again in a moment".to_owned()));
        };
        if run.is_busy() {
            let why = match run.pending().next() {
                Some(_) => "the run waits for a decision; `tracebook approvals` lists it",
                None => "the run is at work",
            };
            return Err(CommandError(why.to_owned()));
        }
        if run.about.ending.is_none()
            && let Some(device) = run.device.as_ref().filter(|device| device.id != workspace.device.id)
        {
            return Err(super::remote_runs::other_device_error(device));
        }
        if run.about.origin == RunOrigin::Device && !self.held.contains_key(&id) {
            return Err(CommandError(
                "another device sent the run, so a worker with the hub's claim continues it".to_owned(),
            ));
        }
        if run.about.ending == Some(RunEnding::Done) {
            return Err(CommandError("the run has ended with an answer; ask something new".to_owned()));
        }
        let session = run.about.session;
        if !self.session_summaries.contains_key(&session) {
            return Err(CommandError("the run's session was deleted".to_owned()));
        }
        if run.about.iteration >= run.about.limit && more.is_none() {
            let limit = run.about.limit;
            return Err(CommandError(format!("the run has had its {limit} iterations; say how many more it may have")));
        }
        run.about.limit = run.about.limit.saturating_add(more.unwrap_or(0)).min(10_000);
        run.about.budget = budget.or(run.about.budget);
        (run.about.ending, run.about.ended) = (None, None);
        run.about.agent_state = AgentState::Thinking;
        run.is_awake = true;
        (run.active_since, run.limits) = (None, None);
        run.orchestrator.started_tasks.clear();
        run.orchestrator.stop_reason = None;
        run.device = Some(workspace.device.clone());
        run.failed_providers.clear();
        if run.project_read == ProjectReadState::Loaded {
            run.project_read = ProjectReadState::Unread; // its project's agents and memory may be others by now
        }
        if !self.sessions.contains_key(&session) {
            self.open_session(turn, session)?;
        }
        let batch = self.record_run(turn, sync, id, RunRecord::default());
        self.continue_run_after(batch, id);
        Ok(())
    }

    /// Replaces a run's todos with those that the user edited.
    pub(in crate::session) fn set_todos(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        todos: Vec<TodoItem>,
    ) -> Result<(), CommandError> {
        if !self.runs.contains_key(&id) {
            return Err(CommandError("the run is not open".to_owned()));
        }
        if todos.len() > 1_000 || todos.iter().any(|todo| todo.content.len() > 10_000) {
            return Err(CommandError("a run has at most 1,000 todos, each of at most 10,000 bytes".to_owned()));
        }
        self.record_run(turn, sync, id, RunRecord { todos: Some(todos), ..RunRecord::default() });
        Ok(())
    }
}
