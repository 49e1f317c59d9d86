//! Runs of programs that work as agents. The program takes the place of the model: what it asks for are the run's tool
//! calls, which the policy checks like all others, and their results go back to the program.

use crate::effect::Effect;
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, LiveModelCall};
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::external_program::ExternalProgram;
use agent::model_call::{ModelCallId, ModelCallLimits, ModelEndpoint, ModelRequest, ProgramCall, WireProtocol};
use agent::model_context;
use agent::tool_job::FileChange;
use store::{AgentState, DocId, RunEnding, RunOrigin, StepKind};

/// Maximum number of turns in which a program passes on what it asks for.
const MAX_PROGRAM_TURNS: u64 = 2_000;
/// Maximum length of a result that a program gets, in bytes. It may write a file back, so it has to get all of it.
pub(super) const MAX_PROGRAM_RESULT_BYTES: usize = 1 << 20;

impl RunsState {
    /// Keeps changes until it's known whether the calls that were to make them have made them.
    pub(super) fn hold_ordered_changes(&mut self, id: DocId, report: &str, ordered: Vec<(String, FileChange)>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(step) = run.calls.iter().find(|pending| pending.call.id == report).map(|pending| pending.step) else {
            return;
        };
        run.ordered_changes.extend(ordered.into_iter().map(|(call, change)| (call, step, change)));
    }

    /// Records the changes that calls of a program, which are all done, found made: the program made them itself.
    fn record_ordered_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let volume = run.about.volume;
        for (call, step, change) in std::mem::take(&mut run.ordered_changes) {
            let Some(run) = self.runs.get(&id) else { return };
            let write = run.steps.iter().rev().find_map(|step| match &step.kind {
                StepKind::ToolCall { tool_call_id, .. } if *tool_call_id == call => Some(step.id),
                _ => None,
            });
            if run.changes.iter().any(|known| Some(known.step) == write && known.path == change.path) {
                continue;
            }
            let note = files.volumes.find_file(volume, &change.path).filter(|file| files.volumes.is_note(*file));
            let (file, what) = change.kind(note);
            self.record_change_in_step(turn, sync, id, step, (volume, file, change.path), what);
        }
    }

    /// Returns whether a program does a run's work.
    pub(super) fn is_program_run(&self, run: &AgentRun) -> bool {
        self.definition_of(run).program.is_some()
    }

    /// Starts the program of a run, or gives it the results that it waits for.
    pub(super) fn call_program(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, program): (DocId, ExternalProgram),
    ) {
        self.record_ordered_changes(turn, files, sync, id);
        let Some(run) = self.runs.get(&id) else { return };
        let (name, volume) = (run.about.agent.clone(), run.about.volume);
        if run.about.origin != RunOrigin::User {
            let why = format!(
                "{name} is a program with your rights, so only you can give it work: ask it with `tracebook ask \
                 --agent {name}` or in the agent panel."
            );
            return self.fail_run(turn, files, sync, workspace, id, (why, RunEnding::Failed));
        }
        if run.about.iteration >= MAX_PROGRAM_TURNS {
            let why = format!("{name} has asked for something {MAX_PROGRAM_TURNS} times, which is too often.");
            return self.fail_run(turn, files, sync, workspace, id, (why, RunEnding::Failed));
        }
        let Some(folder) = files.volumes.by_id.get(&volume).and_then(|volume| volume.root.clone()) else {
            let why = "The project's folder is not on this device.".to_owned();
            return self.fail_run(turn, files, sync, workspace, id, (why, RunEnding::Failed));
        };
        let (session, is_trusted) = (run.about.session, files.volumes.is_trusted(&workspace.settings, volume));
        let Some(conversation) = self.sessions.get(&session) else { return };
        let mut messages = model_context::context_messages(conversation.tree(), run.about.head);
        self.mask_messages(&mut messages);
        let watchdog = self.watchdog_limits(run);
        // A program may work for long without a word, such as while it tests what it has made.
        let limits = ModelCallLimits { first_byte: watchdog.call, silence: watchdog.call, whole: watchdog.call };
        let patience_ms = super::watchdog::model_patience_ms(limits);
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.next_call += 1;
        let call = ModelCallId { run: id, number: run.next_call };
        run.live = Some(LiveModelCall::new(call, turn.now, format!("{name}/acp"), patience_ms));
        run.about.agent_state = AgentState::Thinking;
        run.revision += 1;
        self.revision += 1;
        let endpoint = ModelEndpoint {
            provider: name.clone(),
            wire: WireProtocol::OpenAi,
            base_url: None,
            model: "acp".to_owned(),
            key: None,
            local: true,
        };
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages,
            tools: Vec::new(),
            max_tokens: None,
            temperature: None,
            tool_choice: None,
            limits: Some(limits),
            program: Some(ProgramCall { name, program, folder, session, is_trusted }),
        };
        turn.effects.push(Effect::CallModel { call, request: Box::new(request) });
        turn.wake_at(turn.now.plus_ms(patience_ms.0));
    }

    /// Ends the program of a run that is over, whatever it does at the moment.
    pub(super) fn end_program(&self, turn: &mut ApplyContext<'_>, id: DocId) {
        if let Some(run) = self.runs.get(&id).filter(|run| run.next_call > 0 && self.is_program_run(run)) {
            turn.effects.push(Effect::CancelModel { call: ModelCallId { run: id, number: run.next_call } });
        }
    }
}
