//! Programs that work as agents, in the place of models: each run has its own process. What a program asks for becomes
//! the tool calls of an answer, and the next call brings their results.

use crate::agents::llm::ModelUpdate;
use crate::agents::program_sessions::ProgramSessions;
use crate::fs::volume_snapshot::ProgramBaselines;
use acp::{
    ActionResult, AgentAction, AgentEvent, AgentProgram, AgentPrompt, AgentTurnEnd, ExternalAgent, PlanItem,
    ReportedCall, RunningCommand,
};
use agent::agent_definition::AgentDefinition;
use agent::config::AgentConfig;
use agent::external_program::{ExternalProgram, prompt_of};
use agent::model_call::{
    ModelCallId, ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStopReason,
};
use agent::secrets::InstallationKeys;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::{FileChange, is_cut_result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::disk::BlobStore;
use store::{CallUsage, DocId, MessageRole, SessionMessage, ToolCall};

/// Time limit of a command that a program runs, in seconds.
const COMMAND_SECONDS: u64 = 600;
/// Maximum length of a file that a program reads at once, in bytes.
const MAX_READ_BYTES: usize = 1 << 20;

/// Where the updates of the current call go.
type UpdateSink = Arc<dyn Fn(ModelUpdate) + Send + Sync>;

/// What a program has said since its last answer.
#[derive(Default)]
struct AnswerParts {
    sink: Option<UpdateSink>,
    text: String,
    /// The last text of an earlier answer. It's the answer if the program ends with something that it does.
    last_text: String,
    thinking: String,
    /// Events that came while no call was there to take them.
    held: Vec<AgentEvent>,
    /// Ids of the calls whose results the program waits for.
    awaited: Vec<String>,
    is_over: bool,
}

impl AnswerParts {
    fn take_event(&mut self, event: AgentEvent) {
        let Some(sink) = self.sink.clone() else {
            self.held.push(event);
            return;
        };
        match event {
            AgentEvent::Begun(_) => {}
            AgentEvent::Text(text) => {
                self.text.push_str(&text);
                sink(ModelUpdate::Delta(ModelDelta::Text(text)));
            }
            AgentEvent::Thought(text) => {
                self.thinking.push_str(&text);
                sink(ModelUpdate::Delta(ModelDelta::Thinking(text)));
            }
            AgentEvent::Actions(actions) => {
                self.awaited = actions.iter().map(|(id, _)| id.clone()).collect();
                let calls = actions.into_iter().map(|(id, action)| tool_call(id, action)).collect();
                self.answer(&sink, calls, None);
            }
            AgentEvent::Ended(Ok(end)) => {
                self.is_over = true;
                self.answer(&sink, Vec::new(), Some(end));
            }
            AgentEvent::Ended(Err(failure)) => {
                self.is_over = true;
                self.sink = None;
                // Another model isn't asked instead.
                let (why, partial) = (failure.to_string(), std::mem::take(&mut self.text));
                sink(ModelUpdate::Failure(ModelError { kind: ModelErrorKind::Refused, why, partial }));
            }
        }
    }

    fn answer(&mut self, sink: &UpdateSink, calls: Vec<ToolCall>, end: Option<AgentTurnEnd>) {
        self.sink = None;
        let mut text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.last_text.clone_from(&text);
        } else if end.is_some() {
            text = std::mem::take(&mut self.last_text);
        }
        // What a program costs is known only if it says so.
        let cost = end.map_or(Some(0.0), |end| end.cost);
        let stop = if end.is_some_and(|end| end.is_cut) { ModelStopReason::Length } else { ModelStopReason::Done };
        sink(ModelUpdate::Answer(ModelResponse {
            text,
            thinking: std::mem::take(&mut self.thinking),
            calls,
            malformed: Vec::new(),
            spent: CallUsage { input_tokens: 0, output_tokens: 0, cost },
            stop,
        }));
    }
}

/// The program of a run.
struct RunningAgent {
    agent: ExternalAgent,
    parts: Arc<Mutex<AnswerParts>>,
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The programs that work on runs at the moment.
pub(crate) struct ExternalAgents {
    running: Mutex<HashMap<DocId, RunningAgent>>,
    /// Runs whose program is called for, until it's canceled or runs.
    expected: Mutex<HashSet<DocId>>,
    /// Canceled ones that may not have ended yet.
    canceled: Mutex<Vec<ExternalAgent>>,
    baselines: Arc<ProgramBaselines>,
    /// Commands that programs want to run, by the ids of their calls.
    commands: Arc<Mutex<HashMap<String, RunningCommand>>>,
    sessions: Arc<ProgramSessions>,
    workspace: PathBuf,
    blobs: BlobStore,
}

impl ExternalAgents {
    pub(crate) fn new(workspace: &Path, baselines: Arc<ProgramBaselines>) -> ExternalAgents {
        let (running, expected, canceled) = (Mutex::default(), Mutex::default(), Mutex::default());
        let blobs = BlobStore::new(workspace);
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let (sessions, commands) = (Arc::new(ProgramSessions::new(&workspace)), Arc::default());
        ExternalAgents { running, expected, canceled, baselines, commands, sessions, workspace, blobs }
    }

    /// Notes that [`Self::call`] follows on another thread, which [`Self::cancel`] may precede.
    pub(crate) fn expect(&self, run: DocId) {
        lock(&self.expected).insert(run);
    }

    /// Starts a run's program, or gives it the results that it waits for. `env` are its variables, filled in. Nothing
    /// happens if the run was canceled since [`Self::expect`].
    pub(crate) fn call(
        &self,
        call: ModelCallId,
        request: &ModelRequest,
        env: BTreeMap<String, String>,
        on_update: impl Fn(ModelUpdate) + Send + Sync + 'static,
    ) {
        let Some(program) = &request.program else { return };
        let sink: UpdateSink = Arc::new(on_update);
        let run = call.run;
        if !lock(&self.running).contains_key(&run) {
            // It takes its time, and a program that is canceled meanwhile must not wait for it.
            self.baselines.begin(run, &program.folder, &self.workspace);
        }
        let is_new = lock(&self.running).get(&run).is_none_or(|known| lock(&known.parts).is_over);
        let keys = match is_new {
            true => super::model_setup::installation_keys(&self.workspace),
            false => InstallationKeys::default(),
        };
        let mut running = lock(&self.running);
        if !lock(&self.expected).remove(&run) {
            return self.baselines.end(run);
        }
        running.retain(|run, known| {
            let is_kept = *run == call.run || !lock(&known.parts).is_over;
            if !is_kept {
                self.baselines.end(*run);
            }
            is_kept
        });
        if let Some(known) = running.get(&call.run).filter(|known| !lock(&known.parts).is_over) {
            let mut parts = lock(&known.parts);
            let awaited = std::mem::take(&mut parts.awaited);
            parts.sink = Some(sink);
            for event in std::mem::take(&mut parts.held) {
                parts.take_event(event);
            }
            drop(parts);
            lock(&self.commands).retain(|id, _| !awaited.contains(id));
            let results = self.results(&request.messages, &awaited);
            for (refused, _) in results.iter().filter(|(_, result)| !result.success) {
                self.baselines.refuse_write(run, refused);
            }
            known.agent.give_results(results);
            return;
        }
        if let Some(why) = acp::settings_refusal(&program.name, &program.folder).filter(|_| !program.is_trusted) {
            self.baselines.end(run);
            let (kind, partial) = (ModelErrorKind::Refused, String::new());
            return sink(ModelUpdate::Failure(ModelError { kind, why, partial }));
        }
        let parts = Arc::new(Mutex::new(AnswerParts { sink: Some(sink), ..AnswerParts::default() }));
        let resumed = self.sessions.find(program, &request.messages, prompt_of);
        let prompt = AgentPrompt { text: prompt_of(&request.messages), resumed };
        let last = request.messages.iter().rev().find(|message| message.role == MessageRole::User);
        let (asked, seen, sessions) = (program.clone(), last.map(|message| message.id), self.sessions.clone());
        let ExternalProgram { command, args, .. } = program.program.clone();
        let program = AgentProgram { name: program.name.clone(), command, args, env, folder: program.folder.clone() };
        let (events, baselines, commands) = (parts.clone(), self.baselines.clone(), self.commands.clone());
        let mask = move |text: &str| keys.mask_text(text).into_owned();
        // Ids are unique in the run, also after a restart.
        let prefix = format!("p{:08x}-", rand::random::<u32>());
        let agent = ExternalAgent::start(program, prompt, prefix, mask, move |event| {
            if let (AgentEvent::Begun(id), Some(seen)) = (&event, seen) {
                return sessions.remember(&asked, seen, id.clone());
            }
            if let AgentEvent::Actions(actions) = &event {
                for (id, action) in actions {
                    if let AgentAction::WriteFile { path, content } = action {
                        baselines.order_write(run, id, path, content);
                    } else if let AgentAction::Run { running, .. } = action {
                        lock(&commands).insert(id.clone(), running.clone());
                    }
                }
            }
            lock(&events).take_event(event);
        });
        running.insert(call.run, RunningAgent { agent, parts });
    }

    /// Returns the command of a program that a call runs.
    pub(crate) fn command_of(&self, call: &str) -> Option<RunningCommand> {
        lock(&self.commands).get(call).cloned()
    }

    /// Notes changes that a call of a run has made, so that no report of its program repeats them.
    pub(crate) fn note_changes(&self, run: DocId, changed: &[FileChange]) {
        self.baselines.note_changes(run, changed);
    }

    /// Returns the results of calls, from the messages that answer them.
    fn results(&self, messages: &[SessionMessage], awaited: &[String]) -> Vec<(String, ActionResult)> {
        let result = |id: &String| {
            let message = messages.iter().rev().find(|message| message.tool_call_id.as_ref() == Some(id));
            let Some(message) = message else {
                return ActionResult { success: false, text: "it was not done".to_owned() };
            };
            let is_read = message.tool_name.as_deref().is_some_and(|name| BuiltInTool::ReadFile.is_named(name));
            match (&message.error, &message.whole) {
                (Some(error), _) => ActionResult { success: false, text: error.clone() },
                (None, Some(whole)) if whole.size <= MAX_READ_BYTES as u64 => {
                    match self.blobs.read(whole.blob).map(String::from_utf8) {
                        Ok(Ok(text)) => ActionResult { success: true, text },
                        _ => ActionResult { success: false, text: "the result can't be read".to_owned() },
                    }
                }
                // A part that passes for the whole could be written back.
                (None, whole) if is_read && (whole.is_some() || is_cut_result(&message.content)) => ActionResult {
                    success: false,
                    text: format!(
                        "the file has more than {MAX_READ_BYTES} bytes; read it in parts, with line and limit"
                    ),
                },
                (None, _) => ActionResult { success: true, text: message.content.clone() },
            }
        };
        awaited.iter().map(|id| (id.clone(), result(id))).collect()
    }

    /// Ends the program of a run.
    pub(crate) fn cancel(&self, run: DocId) {
        lock(&self.expected).remove(&run);
        self.baselines.end(run);
        let Some(known) = lock(&self.running).remove(&run) else { return };
        known.agent.cancel();
        let mut canceled = lock(&self.canceled);
        canceled.retain(|agent| !agent.has_ended());
        canceled.push(known.agent);
    }

    /// Ends all programs, and waits until they and all that they have started have ended.
    pub(crate) fn close(&self) {
        lock(&self.expected).clear();
        let running = std::mem::take(&mut *lock(&self.running));
        let mut all = std::mem::take(&mut *lock(&self.canceled));
        all.extend(running.into_values().map(|known| known.agent));
        all.iter().for_each(ExternalAgent::cancel);
        all.into_iter().for_each(ExternalAgent::end);
    }
}

/// Returns the call of our own tool that does what a program wants.
fn tool_call(id: String, action: AgentAction) -> ToolCall {
    let mut arguments = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            arguments.insert(name.to_owned(), value);
        }
    };
    let tool = match action {
        AgentAction::ReadFile { path, line, limit } => {
            set("path", path.into());
            set("from_line", line.map(|line| line.max(1)).into());
            set("lines", limit.map(|limit| limit.clamp(1, 5_000)).into());
            BuiltInTool::ReadFile
        }
        AgentAction::WriteFile { path, content } => {
            set("path", path.into());
            set("content", content.into());
            BuiltInTool::WriteFile
        }
        AgentAction::Run { command, folder, .. } => {
            set("command", command.into());
            set("workdir", (!folder.is_empty()).then_some(folder).into());
            set("seconds", COMMAND_SECONDS.into());
            BuiltInTool::Shell
        }
        AgentAction::Permission { title, kind, input, details, paths } => {
            set("action", title.into());
            set("kind", kind.into());
            set("input", input.unwrap_or_default());
            set("details", (!details.trim().is_empty()).then_some(details).into());
            set("paths", Value::from(Some(paths).filter(|paths| !paths.is_empty())));
            BuiltInTool::AgentPermission
        }
        AgentAction::Plan(items) => {
            let todo = |one: PlanItem| json!({"content": one.content, "status": one.status, "priority": one.priority});
            set("todos", items.into_iter().map(todo).collect());
            BuiltInTool::TodoWrite
        }
        AgentAction::Report(ReportedCall { title, kind, input, success, text, paths, diffs }) => {
            let mut output = text;
            for (path, old, new) in diffs {
                output.push_str(&format!("\n{}", text::diff::unified_diff(&path, old.as_deref(), Some(&new))));
            }
            set("action", title.into());
            set("kind", kind.into());
            set("input", input.unwrap_or_default());
            set("success", success.into());
            set("output", output.trim_start().into());
            set("paths", Value::from(Some(paths).filter(|paths| !paths.is_empty())));
            BuiltInTool::AgentReport
        }
    };
    ToolCall { id, name: tool.to_string(), arguments }
}

/// Returns the programs that can be used as agents here.
pub(crate) fn program_agents(config: &AgentConfig) -> Vec<AgentDefinition> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = |command: &str| std::env::split_paths(&path).any(|folder| folder.join(command).is_file());
    let agent = |(name, description, program)| AgentDefinition {
        name,
        description,
        program: Some(program),
        ..AgentDefinition::default()
    };
    agent::config::external_programs(&config.acp_agents, &is_installed).into_iter().map(agent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::MessageId;

    fn message(role: MessageRole, content: &str) -> SessionMessage {
        SessionMessage::new(MessageId(1), role, content, 0)
    }

    #[test]
    fn a_part_never_passes_for_the_whole() {
        let agents = ExternalAgents::new(Path::new("/nowhere"), Arc::default());
        let answer = |content: &str| SessionMessage {
            tool_call_id: Some("a".to_owned()),
            tool_name: Some("read_file".to_owned()),
            ..message(MessageRole::Tool, content)
        };
        let result = |content: &str| agents.results(&[answer(content)], &["a".to_owned()]).remove(0).1;
        assert_eq!(result("all\n"), ActionResult { success: true, text: "all\n".to_owned() });
        assert!(!result("some\n[The rest was left out.]").success);
        assert!(!result("some\n… 12 of 99 bytes are left out here …\nend").success);
        assert!(!agents.results(&[], &["a".to_owned()]).remove(0).1.success);
    }
}
