//! Generated views: the user's permission to show a view, stored with the note, and the view's buttons. Each press is a
//! run that the policy checks and that calls no model.

use crate::note::NotePhase;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{PendingCall, new_step};
use crate::session::state::notes::NotesState;
use crate::session::state::runs::{RunRecord, RunRequest, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::generated_view::{self, AgentView, ButtonAction};
use agent::tool_catalog::BuiltInTool;
use agent::tool_spec::ToolSpec;
use agent::{agent_definition, tool_call_parser, tool_catalog};
use serde_json::{Map, Value, json};
use store::{BlobHash, DocId, MessageId, MessageRole, RunEnding, SessionMessage, StepKind, ToolCall};

/// Returns the id of the session for a note's buttons, which is the same on every device.
fn button_session_id(note: DocId) -> DocId {
    DocId::of_name(&format!("buttons of {note}"))
}

/// Returns the tool that runs a command of the window on a note's cells, with the same risk and permissions as running
/// a cell.
fn note_command_tool() -> Option<ToolSpec> {
    let cell = tool_catalog::built_in().into_iter().find(|tool| BuiltInTool::RunCell.is_named(&tool.name))?;
    let commands = generated_view::BUTTON_COMMANDS.map(|command| command.id);
    let parameters = json!({"type": "object", "additionalProperties": false, "required": ["path", "name"],
        "properties": {"path": {"type": "string"}, "name": {"enum": commands}}});
    Some(ToolSpec {
        name: BuiltInTool::NoteCommand.to_string(),
        description: "A command of the window on the cells of a note.".to_owned(),
        parameters,
        ..cell
    })
}

impl RunsState {
    /// Returns all tools that can be called, including those for buttons and events.
    pub(super) fn all_tools(&self) -> Vec<ToolSpec> {
        let mut tools = self.agent_tools();
        tools.extend(note_command_tool());
        tools.push(agent::agent_registry::python_agent_tool());
        tools.extend(agent::external_program::program_own_tools());
        tools.extend([agent::sampling::sampling_tool(), agent::server_form::form_tool()]);
        tools
    }

    /// Handles a button press in a visible view: looks up the button's action in the note, and requests a run for it.
    pub(in crate::session) fn press_button(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        workspace: &WorkspaceState,
        run: DocId,
        id: DocId,
        (name, button): (BlobHash, usize),
    ) -> Result<(), CommandError> {
        let Some(note) = files.notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if !note.shows_view(name) {
            return Err(CommandError(
                "the view is not rendered; press \u{201c}Render preview\u{201d} first".to_owned(),
            ));
        }
        let text = note.text();
        let source = generated_view::find_view(&text, name)
            .ok_or_else(|| CommandError("the view no longer exists".to_owned()))?;
        let read = AgentView::parse(source).map_err(|why| CommandError(format!("the view can't be read: {why}")))?;
        let buttons = read.buttons();
        let Some((label, action)) = buttons.get(button) else {
            return Err(CommandError("the view has no such button".to_owned()));
        };
        let Some((volume, path)) = files.volumes.locate_file(id).map(|(volume, path)| (volume, path.to_owned())) else {
            return Err(CommandError("the note no longer exists".to_owned()));
        };
        let (tool, arguments) = match (*action).clone() {
            ButtonAction::Tool { name, arguments } => (name, arguments),
            ButtonAction::Command(command) => {
                let mut arguments = Map::new();
                arguments.insert("path".to_owned(), Value::String(path.clone()));
                arguments.insert("name".to_owned(), Value::String(command.id.to_owned()));
                (BuiltInTool::NoteCommand.to_string(), arguments)
            }
        };
        let call = ToolCall { id: String::new(), name: tool, arguments };
        let question = RunRequest {
            run,
            session: button_session_id(id),
            volume,
            note: Some(id),
            parent: None,
            text: format!("Pressed \u{201c}{label}\u{201d} in {path}."),
            agent: Some(agent_definition::BUTTON_AGENT.to_owned()),
            budget: None,
            allow: Vec::new(),
            button: Some((format!("Buttons of {path}"), call)),
            recall: agent::memory::RecallOptions::default(),
            origin: store::RunOrigin::User,
            plan: None,
            project: None,
            provider: None,
        };
        self.request_run(turn, &files.volumes, workspace, question)
    }

    /// Starts the run of a button press. The policy checks its action like a model's tool call.
    pub(super) fn begin_button_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        call: ToolCall,
    ) {
        let tools = self.all_tools();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(call) = tool_call_parser::assign_call_ids(vec![call], &mut run.used_call_ids).pop() else { return };
        let said = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            tool_calls: vec![call.clone()],
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, "", turn.now.0)
        };
        let kind = StepKind::ToolCall {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            params: call.arguments.clone(),
        };
        let mut made = new_step(turn, Vec::new(), kind);
        let tool = tools.iter().find(|tool| tool.name == call.name);
        made.tool = tool.map(|tool| Box::new(tool.step_tool()));
        run.calls.push(PendingCall::new(call, made.id));
        self.record_run(turn, sync, id, RunRecord { steps: vec![made], messages: vec![said], ..RunRecord::default() });
        let mut record = RunRecord::default();
        self.check_new_calls(turn, files, sync, workspace, id, (&tools, &mut record));
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Ends the run of a button press, with the tool's result as the answer.
    pub(super) fn finish_button_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let said = run.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::ToolResult { success: true, result, .. } => {
                Some(Ok(result.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()))
            }
            StepKind::ToolResult { error, .. } => Some(Err(error.clone().unwrap_or_default())),
            _ => None,
        });
        let (kind, ending) = match said {
            Some(Ok(content)) => (StepKind::FinalAnswer { content }, RunEnding::Done),
            Some(Err(message)) => (StepKind::Error { message, recoverable: false }, RunEnding::Failed),
            None => {
                let message = "The action didn't complete. Press the button again.".to_owned();
                (StepKind::Error { message, recoverable: false }, RunEnding::Failed)
            }
        };
        let made = new_step(turn, run.last_step(), kind);
        self.end_run(
            turn,
            files,
            sync,
            workspace,
            id,
            (ending, RunRecord { steps: vec![made], ..RunRecord::default() }),
        );
    }
}

impl NotesState {
    /// Stores the user's decision with the note whether to show the view with this hash.
    pub(in crate::session) fn set_view_shown(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        name: BlobHash,
        shown: bool,
    ) -> Result<(), CommandError> {
        let Some(note) = self.open.get_mut(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if let Some(why) = note.edit_refusal() {
            return Err(CommandError(why));
        }
        if shown {
            let text = note.text();
            let source = generated_view::find_view(&text, name)
                .ok_or_else(|| CommandError("the view no longer exists".to_owned()))?;
            AgentView::parse(source).map_err(|why| CommandError(format!("the view can't be shown: {why}")))?;
        }
        note.views.insert(name, shown);
        self.create_note_document(turn, id);
        self.save_view_decisions(turn, id);
        Ok(())
    }
}
