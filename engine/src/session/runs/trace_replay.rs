//! Trace replay: runs whose calls come from a trace instead of a model. They pass the same policy and sandbox as
//! calls of a model: a trace grants nothing, and takes nothing away. If a condition doesn't hold, a model takes over.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, PendingCall, ProjectReadState, RunMemory, TraceReplay, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::memory::goal::ParsedGoal;
use agent::memory::replay_steps::{
    REPLAY_STOPPED_PREFIX, ReplayStopError, call_result, has_open_replay, is_replay_stop, replayed_trace,
};
use agent::memory::slots;
use agent::memory::trace::{self, RunTrace, iso_timestamp};
use agent::memory::trace_edits::LastTraceRun;
use agent::memory::trace_extraction::{CompletedCall, CompletedRun, ToolFacts, TraceLearnError};
use agent::memory::trace_feedback::RunRating;
use agent::memory::trace_trust::{DEFAULT_FOLLOW_CONFIDENCE, TraceTrust};
use agent::memory::trace_update::TraceUpdate;
use agent::memory::{self, ProjectMemory, ReplayMode, StoredTrace};
use agent::notice::Notice;
use agent::tool_catalog::BuiltInTool;
use agent::tool_spec::{ToolRisk, ToolSource};
use agent::{agent_definition, prompt_quote, tool_call_parser};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{AgentState, DocId, FileKind, MessageId, MessageRole, RunEnding, SessionMessage, StepKind, ToolCall};
use text::time::UnixMillis;
use user_settings::settings::Settings;

/// Why no trace can be made from a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunTraceError {
    /// The run isn't in memory.
    #[error("the run is not open")]
    NotOpen,
    /// The run can't be replayed by rules.
    #[error(transparent)]
    Learn(#[from] TraceLearnError),
}

/// Maximum length of the last result when the trace has no answer of its own, in bytes.
const MAX_REPLAY_ANSWER_BYTES: usize = 2_000;

impl RunsState {
    /// Returns the schema hash and idempotence of an agent's tools, by tool name.
    pub(super) fn tool_facts(&self, agent: &agent_definition::AgentDefinition) -> BTreeMap<String, ToolFacts> {
        let tools = agent.allowed_tools(self.available_tools());
        let fact = |tool: agent::tool_spec::ToolSpec| {
            let code = self.approved_tool(&tool.name).map_or("", |own| own.code.as_str());
            let schema = trace::schema_hash(&tool, code);
            (tool.name, ToolFacts { schema, idempotent: tool.idempotent, parameters: tool.parameters.to_string() })
        };
        tools.into_iter().map(fact).collect()
    }

    /// Returns the schema hashes of an agent's tools by tool name, as used in the steps of a trace.
    pub(in crate::session) fn tool_schemas(&self, agent: &str) -> BTreeMap<String, String> {
        let own = self.setup().map(|setup| setup.agents.as_slice()).unwrap_or_default();
        self.schemas_of(&agent_definition::find(agent, own))
    }

    /// Returns the same as [`RunsState::tool_schemas`] for an agent's definition.
    pub(super) fn schemas_of(&self, agent: &agent_definition::AgentDefinition) -> BTreeMap<String, String> {
        self.tool_facts(agent).into_iter().map(|(name, facts)| (name, facts.schema)).collect()
    }

    /// Returns how far this workspace trusts a trace.
    pub(in crate::session) fn trace_trust(
        &self,
        (volumes, sync): (&VolumesState, &SyncState),
        settings: &Settings,
        trace: &RunTrace,
    ) -> TraceTrust {
        let threshold = self.setup().map_or(DEFAULT_FOLLOW_CONFIDENCE, |setup| setup.config.memory.follow_confidence);
        let pinned = !settings.pinned_traces.is_empty() && settings.pinned_traces.contains(&trace.fingerprint());
        TraceTrust::of_trace(trace, threshold, pinned, self.is_known_run(volumes, sync, &trace.known.learned_from))
    }

    /// Returns whether a trace's counts were made here. Its note may come from someone else, who can't know the random
    /// id of a run of this workspace, unless the memory is in a shared volume, which lists the runs.
    fn is_known_run(&self, volumes: &VolumesState, sync: &SyncState, id: &str) -> bool {
        let line = id.parse().ok().and_then(|id: DocId| self.run_summaries.get(&id));
        line.is_some_and(|line| !sync.is_shared(volumes.memory_home(line.volume)))
    }

    /// Returns whether a run may only follow a trace, and follows none.
    pub(super) fn has_no_trace_to_follow(&self, id: DocId) -> bool {
        self.runs.get(&id).is_some_and(|run| {
            let memory = &run.run_memory;
            memory.recall.mode == ReplayMode::Follower && memory.replay.is_none() && !self.is_program_run(run)
        })
    }

    /// Selects a trace that a run can replay, and adds the step that announces it to the record.
    pub(super) fn choose_replay(
        &mut self,
        turn: &mut ApplyContext<'_>,
        (volumes, sync, workspace): (&VolumesState, &SyncState, &WorkspaceState),
        id: DocId,
        memory: ProjectMemory,
        record: &mut RunRecord,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let recall = run.run_memory.recall.clone();
        let begins = self.sessions.get(&run.about.session).is_none_or(|conversation| {
            conversation.tree().get(run.about.asked).is_none_or(|message| message.parents.is_empty())
        });
        let schemas = self.schemas_of(&self.definition_of(run));
        let note = volumes.note_of(run);
        let about = run.about.clone();
        let mut chosen = None;
        // Who asks a program wants its work. A message in the middle of a conversation may refer to earlier messages.
        if (begins || recall.mode == ReplayMode::Follower) && !self.is_program_run(run) {
            let trust = |trace: &RunTrace| self.trace_trust((volumes, sync), &workspace.settings, trace);
            chosen = memory.choose_trace(&about.prompt, note.as_deref(), &about.agent, &schemas, &recall, &trust);
        }
        let tools = self.all_tools().into_iter();
        let served = tools.filter(|tool| matches!(tool.source, ToolSource::Server { .. }));
        let served: BTreeSet<String> = served.map(|tool| tool.name).collect();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let memory = Arc::new(memory);
        run.run_memory.memory = Arc::clone(&memory);
        let filed = chosen.and_then(|fitting| Some((memory.traces.get(fitting.at)?, fitting)));
        let Some((StoredTrace { path, trace, .. }, fitting)) = filed else { return };
        let hands_on = trace.steps.iter().any(|step| BuiltInTool::AskAgent.is_named(&step.tool));
        let asked = match hands_on {
            true => "Only the agents that it hands work to ask a model",
            false if trace.steps.iter().any(|step| served.contains(&step.tool)) => {
                "No model is asked while it fits, unless the server of a tool asks for one"
            }
            false => "No model is asked while it fits",
        };
        let number = trace.version.number;
        let version = if number > 1 { format!(", version {number}") } else { String::new() };
        let content = format!("Replaying {path}{version}: {}. {asked}.", fitting.why);
        let parents = record.steps.last().map_or_else(|| run.last_step(), |step| vec![step.id]);
        let mut made = new_step(turn, parents, StepKind::Thinking { content, is_streaming: None });
        made.route = Some(format!("trace/{path}"));
        record.steps.push(made);
        run.run_memory.replay = Some(Box::new(TraceReplay {
            path: path.clone(),
            trace: trace.for_goal(&ParsedGoal::parse(&about.prompt)).into_owned(),
            values: fitting.values,
            at: 0,
            call: None,
            results: Vec::new(),
            since: turn.now,
        }));
    }

    /// Reads the agents and memory of a run's project, unless that was done since the run was loaded. Returns whether
    /// they're being read; the run continues once they are.
    pub(super) fn read_project(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        match run.project_read {
            ProjectReadState::Loaded => return false,
            ProjectReadState::ReadingToStart | ProjectReadState::ReadingToResume => return true,
            ProjectReadState::Unread if run.steps.is_empty() && run.about.head == run.about.asked => {
                // The program ended before anything was read for it, so it begins again.
                let material = self.requested_material(run.about.origin, &run.about.prompt).unwrap_or_default();
                self.gather_context(turn, files, workspace, id, material);
                return true;
            }
            ProjectReadState::Unread => {}
        }
        let volumes = &files.volumes;
        let Some(root) = volumes.by_id.get(&run.about.volume).and_then(|volume| volume.root.clone()) else {
            return false;
        };
        let memory_root = volumes.memory_root(run.about.volume).unwrap_or_default();
        let memory = (memory_root, memory::memory_folders(volumes.note_of(run).as_deref()));
        let text = run.about.prompt.clone();
        let (paths, material, fork, limit) = (Vec::new(), Vec::new(), None, 0);
        let elsewhere = volumes.agent_volumes(&workspace.settings, run.about.volume);
        turn.effects.push(Effect::Gather { run: id, root, paths, text, limit, memory, fork, material, elsewhere });
        if let Some(run) = self.runs.get_mut(&id) {
            run.project_read = ProjectReadState::ReadingToResume;
        }
        true
    }

    /// Does the next step of a replay. Returns `false` if there's no replay, so that a model is called.
    pub(super) fn replay_next(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        if run.run_memory.replay.is_none() {
            let volume = files.volumes.by_id.get(&run.about.volume);
            if volume.is_some_and(|volume| volume.scans == 0 && volume.root.is_some()) && has_open_replay(&run.steps) {
                self.stalled_runs.insert(id); // its conditions are about files, which aren't known yet
                return true;
            }
            match files.volumes.interrupted_replay(run) {
                None => return false,
                Some(Ok(replay)) => {
                    if let Some(run) = self.runs.get_mut(&id) {
                        run.run_memory.replay = Some(replay);
                    }
                }
                Some(Err((path, number, why))) => {
                    self.stop_replay(turn, sync, id, &path, &format!("at step {number}"), &why);
                    return true;
                }
            }
        }
        let Some(run) = self.runs.get_mut(&id) else { return false };
        let Some(mut replay) = run.run_memory.replay.take() else { return false };
        let ended = self.check_result(&files.volumes, id, &mut replay).map_err(|why| (replay.at, why));
        let made = ended.and_then(|()| {
            if replay.at == replay.trace.steps.len() {
                return Ok(None);
            }
            self.next_call(&files.volumes, id, &replay).map(Some).map_err(|why| (replay.at + 1, why))
        });
        match made {
            Ok(Some(call)) => self.issue_call(turn, files, sync, workspace, (id, replay), call),
            Ok(None) => self.end_replay(turn, files, sync, workspace, id, &replay),
            Err((number, why)) => self.hand_over_to_model(turn, files, sync, id, &replay, (number, &why)),
        }
        true
    }

    /// Checks that the result of the last step meets the trace's expectations.
    fn check_result(&self, volumes: &VolumesState, id: DocId, replay: &mut TraceReplay) -> Result<(), ReplayStopError> {
        let Some(call) = replay.call.take() else { return Ok(()) };
        let run = self.runs.get(&id).ok_or(ReplayStopError::RunClosed)?;
        let (success, text) = call_result(&run.steps, &call).ok_or(ReplayStopError::NoResult)?;
        let done = replay.at.checked_sub(1).and_then(|at| replay.trace.steps.get(at));
        let done = done.ok_or(ReplayStopError::TraceChanged)?;
        if !success {
            let first = text.lines().next().unwrap_or_default();
            let first = first[..first.floor_char_boundary(300)].to_owned();
            let of_call = run.approvals.iter().filter(|approval| approval.call_id() == call);
            let is_refused = of_call.flat_map(|approval| &approval.decision).any(|decision| !decision.allowed);
            let why = if is_refused { ReplayStopError::CallRefused } else { ReplayStopError::CallFailed };
            return Err(why(first));
        }
        done.expect.check(&text, &replay.values)?;
        let volume = run.about.volume;
        for (places, wanted) in [(&done.leaves, true), (&done.removes, false)] {
            for place in places {
                let path = slots::fill_template(place, &replay.values, &replay.results)?;
                if volumes.is_there(volume, &path) != wanted {
                    let state = if wanted { "is not there after it" } else { "is still there after it" };
                    return Err(ReplayStopError::Path { path, state });
                }
            }
        }
        replay.results.push(text);
        Ok(())
    }

    /// Returns the next call of a trace, after checking the step's preconditions.
    fn next_call(
        &self,
        volumes: &VolumesState,
        id: DocId,
        replay: &TraceReplay,
    ) -> Result<(String, Map<String, Value>), ReplayStopError> {
        let run = self.runs.get(&id).ok_or(ReplayStopError::RunClosed)?;
        let next = replay.trace.steps.get(replay.at).ok_or(ReplayStopError::NoStep)?;
        let schemas = self.schemas_of(&self.definition_of(run));
        if schemas.get(&next.tool) != Some(&next.schema) {
            return Err(ReplayStopError::ToolChanged(next.tool.clone()));
        }
        for (places, wanted) in [(&next.needs, true), (&next.free, false)] {
            for place in places {
                let path = slots::fill_template(place, &replay.values, &replay.results)?;
                if volumes.is_there(run.about.volume, &path) != wanted {
                    let state = if wanted { "is not there" } else { "is there already" };
                    return Err(ReplayStopError::Path { path, state });
                }
            }
        }
        let arguments = slots::fill_arguments(&next.input, &replay.values, &replay.results)?;
        Ok((next.tool.clone(), arguments))
    }

    /// Makes a call as if a model had requested it.
    fn issue_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, mut replay): (DocId, Box<TraceReplay>),
        (tool, mut arguments): (String, Map<String, Value>),
    ) {
        let tools = self.available_tools();
        let Some(run) = self.runs.get_mut(&id) else { return };
        files.volumes.normalize_call(run.about.volume, &tool, &mut arguments);
        let call = ToolCall { id: String::new(), name: tool, arguments };
        let Some(call) = tool_call_parser::assign_call_ids(vec![call], &mut run.used_call_ids).pop() else { return };
        let kind = StepKind::ToolCall {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            params: call.arguments.clone(),
        };
        let mut made = new_step(turn, run.last_step(), kind);
        let tool = tools.iter().find(|tool| tool.name == call.name);
        made.tool = tool.map(|tool| Box::new(tool.step_tool()));
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            tool_calls: vec![call.clone()],
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, String::new(), turn.now.0)
        };
        let changes = tool.is_some_and(|tool| tool.risk > ToolRisk::None);
        replay.at += 1;
        replay.call = Some(call.id.clone());
        run.about.agent_state = AgentState::Executing;
        run.calls.push(PendingCall { changes, ..PendingCall::new(call, made.id) });
        run.run_memory.replay = Some(replay);
        let record = RunRecord { steps: vec![made], messages: vec![message], ..RunRecord::default() };
        self.record_run(turn, sync, id, record);
        let mut record = RunRecord::default();
        self.check_new_calls(turn, files, sync, workspace, id, (&tools, &mut record));
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Ends a replay whose steps are all done and whose conditions all held.
    fn end_replay(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        replay: &TraceReplay,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let own = replay.trace.answer.as_ref();
        let own = own.and_then(|answer| slots::fill_template(answer, &replay.values, &replay.results).ok());
        let text = own.unwrap_or_else(|| {
            let last =
                replay.results.last().map_or("", |text| &text[..text.floor_char_boundary(MAX_REPLAY_ANSWER_BYTES)]);
            let count = replay.trace.steps.len();
            format!("Done as before, in {count} steps of {}. The last one said:\n\n{last}", replay.path)
        });
        let volume = files.volumes.memory_home(run.about.volume);
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, text.clone(), turn.now.0)
        };
        let made = new_step(turn, run.last_step(), StepKind::FinalAnswer { content: text });
        // Where a model answered a server of a tool, it's unknown what was saved.
        let took_ms = (run.about.spent.input_tokens == 0).then(|| turn.now.ms_since(replay.since));
        let last = files.volumes.last_trace_run(run, replay.results.clone(), true);
        if let Some(run) = self.runs.get_mut(&id) {
            // A replayed run isn't learned again.
            run.run_memory.recall.mode = ReplayMode::Follower;
        }
        let update = TraceUpdate::Replayed { is_good: true, took_ms, last };
        files.update_trace(turn, sync, (volume, &replay.path), update);
        let record = RunRecord { steps: vec![made], messages: vec![message], ..RunRecord::default() };
        self.end_run(turn, files, sync, workspace, id, (RunEnding::Done, record));
    }

    /// Hands a replay over to a model, with the results so far, because a condition doesn't hold.
    fn hand_over_to_model(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        replay: &TraceReplay,
        (number, why): (usize, &ReplayStopError),
    ) {
        let Some(volume) = self.runs.get(&id).map(|run| files.volumes.memory_home(run.about.volume)) else { return };
        // A refusal says nothing about the trace.
        if !matches!(why, ReplayStopError::CallRefused(_)) {
            let update = TraceUpdate::Replayed { is_good: false, took_ms: None, last: None };
            files.update_trace(turn, sync, (volume, &replay.path), update);
        }
        let count = replay.trace.steps.len();
        let place = format!("at step {number} of {count}");
        self.stop_replay(turn, sync, id, &replay.path, &place, &why.to_string());
    }

    /// Records that a replay stopped, where and why, and that a model continues with the same information.
    fn stop_replay(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        path: &str,
        place: &str,
        why: &str,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.run_memory.stopped = Some(path.to_owned());
        let reason = why.trim_end_matches('.');
        let words = format!("{REPLAY_STOPPED_PREFIX}{place}: {reason}. A model continues from here.");
        let made = new_step(turn, run.last_step(), StepKind::Error { message: words, recoverable: true });
        let told = format!(
            "The steps above repeat what was done for a goal like this before. They were stopped {place}. Go on from \
             here by yourself; do not do again what has been done. Why they were stopped: {}\n{}",
            prompt_quote::QUOTED_MATERIAL_PREAMBLE,
            prompt_quote::quote_block("the replay", why)
        );
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, told, turn.now.0)
        };
        let batch = self.record_run(
            turn,
            sync,
            id,
            RunRecord { steps: vec![made], messages: vec![message], ..RunRecord::default() },
        );
        self.continue_run_after(batch, id);
    }

    /// Adjusts the success count of a trace: a replay whose changes the user has all reverted no longer counts, and
    /// counts again when they're reapplied.
    pub(super) fn count_reverted_replay(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        good: bool,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let Some(path) = run.replayed_trace().filter(|_| run.rated_run().is_replay) else { return };
        let volume = files.volumes.memory_home(run.about.volume);
        let update = TraceUpdate::Reverted { run: run.rated_run(), is_undone: !good };
        files.update_trace(turn, sync, (volume, path), update);
    }

    /// Rates a run for the trace that it replayed, or from which it could be replayed.
    pub(in crate::session) fn rate_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        rating: Option<RunRating>,
    ) -> Result<(), CommandError> {
        let Some(run) = self.runs.get(&id).filter(|run| run.about.ending.is_some()) else {
            return Err(CommandError("the run isn't over, or not open yet; try again once it has ended".to_owned()));
        };
        let volume = files.volumes.memory_home(run.about.volume);
        let taught = || {
            let folder = memory::memory_folder(files.volumes.note_of(run).as_deref());
            let name = self.trace_of_run(&files.volumes, id).ok()?.file_name();
            Some(format!("{folder}/{}/{name}", trace::TRACES_FOLDER))
        };
        let path = run.replayed_trace().map(str::to_owned).or_else(taught);
        let Some(path) = path.filter(|path| files.volumes.find_file(volume, path).is_some()) else {
            return Err(CommandError("no trace belongs to this run, so a rating would change nothing".to_owned()));
        };
        files.update_trace(turn, sync, (volume, &path), TraceUpdate::Rated { run: run.rated_run(), rating });
        if let Some(run) = self.runs.get_mut(&id) {
            run.rating = rating;
            run.revision += 1;
        }
        Ok(())
    }

    /// Learns from what the user edited of what the last runs of traces wrote.
    pub(super) fn learn_from_edits(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        memory: &mut ProjectMemory,
    ) {
        let wanted = self.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.runs.get(&id).filter(|_| wanted) else { return };
        let volume = run.about.volume;
        let is_by_user = |run: &str, path: &str| {
            files.is_file_current(volume, path) && !self.was_changed_by_later_run(run, volume, path)
        };
        let home = files.volumes.memory_home(volume);
        for at in memory.review_edits(&is_by_user, &iso_timestamp(turn.now.0)) {
            let Some(StoredTrace { path, trace, .. }) = memory.traces.get(at) else { continue };
            files.update_trace(turn, sync, (home, path), TraceUpdate::Reviewed(Box::new(trace.clone())));
        }
    }

    /// Returns whether a run that began after another one may have changed a file. A run that isn't known counts as
    /// changed by anyone.
    pub fn was_changed_by_later_run(&self, run: &str, volume: DocId, path: &str) -> bool {
        let known = run.parse::<DocId>().ok().and_then(|id| Some((id, self.run_summaries.get(&id)?)));
        known.is_none_or(|(id, first)| {
            self.run_summaries.iter().any(|(other, line)| {
                let is_later = *other != id && line.start_time >= first.start_time;
                is_later && line.volume == volume && line.may_have_changed(path)
            })
        })
    }

    /// Learns a trace from a run, or compares the run with the existing trace.
    pub(super) fn learn_run(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) {
        let wanted = self.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.runs.get(&id).filter(|_| wanted) else { return };
        let RunMemory { recall, memory, stopped, .. } = run.run_memory.clone();
        let before = || {
            replayed_trace(&run.steps).filter(|_| run.steps.iter().any(is_replay_stop)).map(|(_, path)| path.to_owned())
        };
        let stopped = stopped.or_else(before);
        let begins = self.sessions.get(&run.about.session).is_some_and(|conversation| {
            conversation.tree().get(run.about.asked).is_some_and(|message| message.parents.is_empty())
        });
        let replayed = recall.mode == ReplayMode::Follower && stopped.is_none() && run.about.iteration == 0;
        if !begins || replayed {
            return;
        }
        let Ok(mut learned) = self.trace_of_run(&files.volumes, id) else { return };
        let [compressed, all] = self.calls_to_compare(run);
        let last_of = |calls: &[CompletedCall]| {
            let results = calls.iter().map(|call| call.result.clone()).collect();
            files.volumes.last_trace_run(run, results, false)
        };
        let last = last_of(&compressed);
        let (prompt, note) = (run.about.prompt.clone(), files.volumes.note_of(run));
        let volume = files.volumes.memory_home(run.about.volume);
        let known = memory.traces.iter().find(|filed| {
            filed.trace.goal_signature() == learned.goal_signature()
                && filed.trace.match_goal(&ParsedGoal::parse(&prompt), note.as_deref()).is_ok()
        });
        let Some(filed) = known else {
            let path =
                format!("{}/{}/{}", memory::memory_folder(note.as_deref()), trace::TRACES_FOLDER, learned.file_name());
            last.into_iter().for_each(|last| learned.remember_run(last));
            files.create_own_note(turn, sync, volume, &path, &learned.to_note());
            return turn.notify(Notice::Remembered { volume, path });
        };
        let values = filed.trace.match_goal(&ParsedGoal::parse(&prompt), note.as_deref()).unwrap_or_default();
        let does_the_same = |calls: &&Vec<CompletedCall>| {
            let results: Vec<String> = calls.iter().map(|call| call.result.clone()).collect();
            let told = filed.trace.predicted_calls(&values, &results);
            told.len() == calls.len()
                && told.iter().zip(calls.iter()).all(|(told, call)| {
                    told.as_ref().is_ok_and(|(tool, arguments)| *tool == call.tool && *arguments == call.arguments)
                })
        };
        let update = match [&compressed, &all].into_iter().find(does_the_same).filter(|_| stopped.is_none()) {
            Some(calls) => {
                let last = last_of(calls);
                if !self.is_known_run(&files.volumes, sync, &filed.trace.known.learned_from) {
                    // From now on a run of this workspace vouches for the trace.
                    let run = id.to_string();
                    files.update_trace(turn, sync, (volume, &filed.path), TraceUpdate::VouchedBy { run });
                }
                // A model did what the trace would have done, which verifies the trace once more.
                TraceUpdate::Replayed { is_good: true, took_ms: None, last }
            }
            None => {
                // A trace that stopped, or proved nothing, gives way to what was learned now.
                let gives_way = stopped.as_ref() == Some(&filed.path) || filed.trace.is_unproved();
                TraceUpdate::Relearned { learned: Box::new(learned), is_proposed: !gives_way, last }
            }
        };
        files.update_trace(turn, sync, (volume, &filed.path), update);
    }

    /// Returns the trace of a run.
    ///
    /// # Errors
    /// Returns why the run can't be replayed by rules.
    pub(in crate::session) fn trace_of_run(
        &self,
        volumes: &VolumesState,
        id: DocId,
    ) -> Result<RunTrace, RunTraceError> {
        let run = self.runs.get(&id).ok_or(RunTraceError::NotOpen)?;
        let mut there = BTreeSet::new();
        for call in memory::trace_extraction::completed_calls(&run.steps, &run.approvals, &run.changes) {
            // The watcher reports other files later, so only certain facts become conditions.
            if let Some(path) = call.arguments.get("path").and_then(Value::as_str)
                && (FileKind::from_path(path).is_text() || !call.created)
                && volumes.is_there(run.about.volume, path)
            {
                there.insert(path.to_owned());
            }
        }
        let note = volumes.note_of(run);
        Ok(memory::trace_extraction::learn_trace(&CompletedRun {
            about: &run.about,
            steps: &run.steps,
            approvals: &run.approvals,
            changes: &run.changes,
            tools: &self.tool_facts(&self.definition_of(run)),
            note: note.as_deref(),
            there: &there,
            run: &id.to_string(),
        })?)
    }
}

impl VolumesState {
    /// Returns what is needed to learn from edits of what a run wrote. Nothing is learned from a fork's files.
    fn last_trace_run(&self, run: &AgentRun, results: Vec<String>, is_replay: bool) -> Option<LastTraceRun> {
        let began_at = iso_timestamp(run.about.start_time);
        let (goal, note) = (run.about.prompt.clone(), self.note_of(run));
        let last = LastTraceRun { run: run.id.to_string(), began_at, is_replay, goal, note, results };
        self.fork_name(run.about.volume).is_none().then_some(last)
    }

    /// Restores a replay that was running when the program ended, from the run's steps. `None` if there's none.
    ///
    /// # Errors
    /// Returns the trace's path, the number of the step where the replay was, and why it can't continue.
    fn interrupted_replay(&self, run: &AgentRun) -> Option<Result<Box<TraceReplay>, (String, usize, String)>> {
        let (begun, path) = replayed_trace(&run.steps).filter(|_| has_open_replay(&run.steps))?;
        let since = UnixMillis(run.steps.get(begun)?.timestamp);
        let behind = run.steps.get(begun + 1..).unwrap_or_default();
        let made: Vec<(&str, &str, &Map<String, Value>)> = behind
            .iter()
            .filter_map(|step| match &step.kind {
                StepKind::ToolCall { tool_call_id, tool_name, params } => {
                    Some((tool_call_id.as_str(), tool_name.as_str(), params))
                }
                StepKind::ToolResult { .. }
                | StepKind::Thinking { .. }
                | StepKind::Todo { .. }
                | StepKind::FinalAnswer { .. }
                | StepKind::Error { .. } => None,
            })
            .collect();
        let count = made.len();
        let fail = |why: &str| Some(Err((path.to_owned(), count + 1, why.to_owned())));
        let Some(filed) = run.run_memory.memory.traces.iter().find(|filed| filed.path == path) else {
            return fail("the trace no longer exists");
        };
        let goal = ParsedGoal::parse(&run.about.prompt);
        let trace = filed.trace.for_goal(&goal).into_owned();
        let Ok(values) = trace.match_goal(&goal, self.note_of(run).as_deref()) else {
            return fail("the trace was changed and no longer fits the goal");
        };
        let mut results: Vec<String> = Vec::new();
        for (at, (call, tool, params)) in made.iter().enumerate() {
            let edited = run.approvals.iter().any(|approval| {
                approval.id == *call && approval.decision.as_ref().is_some_and(|decision| decision.arguments.is_some())
            });
            let same = trace.steps.get(at).is_some_and(|step| {
                let told = slots::fill_arguments(&step.input, &values, &results);
                step.tool == *tool && (edited || told.is_ok_and(|told| told == **params))
            });
            if !same {
                return fail("the trace was changed meanwhile");
            }
            if at + 1 < count {
                results.push(call_result(&run.steps, call).map(|(_, text)| text).unwrap_or_default());
            }
        }
        let call = made.last().map(|(call, ..)| (*call).to_owned());
        Some(Ok(Box::new(TraceReplay { path: path.to_owned(), trace, values, at: count, call, results, since })))
    }
}

impl FilesState {
    /// Creates and saves a note of the program without showing it.
    pub(in crate::session) fn create_own_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        volume: DocId,
        path: &str,
        text: &str,
    ) {
        if let Err(CommandError(why)) = self.new_note(turn, sync, volume, path, text) {
            turn.journal.problems.push(why);
            return;
        }
        let Some(id) = self.volumes.find_file(volume, path) else { return };
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.shown = false; // it is not looked at; it closes once it is saved
            note.by_agent = true;
        }
        self.notes.end_burst(turn, id);
    }
}
