//! A turn of an editor's session: one run, whose steps the editor gets as they happen, and whose approvals it decides.

use crate::acp_updates::{
    answer_chunk, approval_call, begun_call, change_diffs, ended_call, is_shown_otherwise, plan_update, proposed_diff,
    thought_chunk, unsent_text, unsent_thought,
};
use crate::command_calls::{CommandCall, WorkspaceCommands};
use acp::PeerConnection;
use acp::v1::{
    Error, ErrorCode, PermissionOption, PermissionOptionKind, PromptResponse, RequestId, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionNotification, SessionUpdate, StopReason,
};
use agent::tool_catalog::BuiltInTool;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it's checked whether a turn has ended while an editor's decision is awaited.
const DECISION_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Time between attempts to stop a canceled run, which may not have begun yet.
const STOP_INTERVAL: Duration = Duration::from_millis(300);
/// Error code for a run that failed.
const RUN_FAILED: ErrorCode = ErrorCode::InternalError;

/// Returns an error of the protocol with a reason in plain words.
pub(crate) fn plain_error(code: ErrorCode, why: impl Into<String>) -> Error {
    Error::new(code.into(), why)
}

/// Returns the error for a request that ended in a panic.
pub(crate) fn fault_error() -> Error {
    plain_error(ErrorCode::InternalError, "the request failed; this is a fault of Tracebook's")
}

/// What a turn waits for, and what the editor has got of it.
#[derive(Default)]
struct TurnState {
    /// The prompt that waits for the end of the turn. Without one, the agent has asked the user a question.
    prompt: Option<RequestId>,
    /// The approval by which the question of the agent is answered.
    question: Option<String>,
    /// Requests for permission that wait, by the id of the call.
    asked: BTreeMap<String, i64>,
}

/// A run that an editor follows.
pub(crate) struct PromptTurn {
    pub(crate) commands: Arc<dyn WorkspaceCommands>,
    pub(crate) peer: Arc<PeerConnection>,
    /// Id of the session, for the editor and the workspace.
    pub(crate) session: String,
    /// Id of the run.
    pub(crate) run: String,
    /// Folder of the volume.
    pub(crate) root: PathBuf,
    state: Mutex<TurnState>,
    is_cancelled: AtomicBool,
    is_over: AtomicBool,
    watches: Arc<AtomicBool>,
}

/// What was sent of a run so far.
#[derive(Default)]
struct SentSteps {
    /// Number of the model call whose answer is streamed, what it thinks, and its text.
    call: u64,
    thought: String,
    streamed: String,
    /// A thinking step of which nothing was streamed. It's text if calls follow, and a thought otherwise.
    held: Option<String>,
    /// Calls that aren't shown as such.
    hidden: BTreeSet<String>,
    /// The last error.
    error: Option<String>,
}

impl SentSteps {
    /// Notes which model call is streamed.
    fn begin_call(&mut self, call: &Value) {
        let call = call.as_u64().unwrap_or(0);
        if self.call != call {
            self.forget_stream();
            self.call = call;
        }
    }

    /// Notes that what was streamed is part of a step that was shown.
    fn forget_stream(&mut self) {
        self.thought.clear();
        self.streamed.clear();
    }
}

impl PromptTurn {
    pub(crate) fn new(
        commands: Arc<dyn WorkspaceCommands>,
        peer: Arc<PeerConnection>,
        (session, run): (String, String),
        root: PathBuf,
        prompt: RequestId,
    ) -> Arc<PromptTurn> {
        Arc::new(PromptTurn {
            commands,
            peer,
            session,
            run,
            root,
            state: Mutex::new(TurnState { prompt: Some(prompt), ..TurnState::default() }),
            is_cancelled: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            watches: Arc::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, update: SessionUpdate) {
        let notification = SessionNotification::new(self.session.clone(), update);
        self.peer.notify("session/update", &notification);
    }

    /// Returns whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Cancels the run. Returns once it's over, or the command that stops it was given and is still awaited.
    pub(crate) fn cancel(&self, attempts: u32) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        for _ in 0..attempts {
            if self.is_over() {
                return;
            }
            self.commands.perform(&CommandCall::json("runs").flag("stop", true).operands([&self.run]), &mut |_| {});
            std::thread::park_timeout(STOP_INTERVAL);
        }
    }

    /// Takes a prompt that comes while the run is active: the answer to the agent's question, if it has asked one.
    pub(crate) fn answer_question(&self, prompt: &RequestId, text: &str) -> Result<(), Error> {
        let mut state = self.state();
        let Some(approval) = state.question.take() else {
            let why = "the agent is still working on the last prompt; wait for it, or cancel it";
            return Err(plain_error(ErrorCode::InvalidRequest, why));
        };
        state.prompt = Some(prompt.clone());
        drop(state);
        let call = CommandCall::json("approvals").flag("allow", true).option("comment", Some(text));
        let call = call.operands([&approval]);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.commands.perform(&call, &mut |_| {})));
        let error = match outcome {
            Ok(outcome) if outcome.code == 0 => return Ok(()),
            Ok(outcome) => plain_error(RUN_FAILED, outcome.reason()),
            Err(_) => fault_error(),
        };
        let mut state = self.state();
        // The run's end may have answered the prompt meanwhile.
        match state.prompt.take() {
            None => Ok(()),
            Some(_) => {
                state.question = Some(approval);
                Err(error)
            }
        }
    }

    /// Performs the run, and answers the prompt at its end, also if that comes by a panic.
    pub(crate) fn follow(self: &Arc<Self>, call: CommandCall) {
        let result = catch_unwind(AssertUnwindSafe(|| self.perform_run(call))).unwrap_or_else(|_| Err(fault_error()));
        self.is_over.store(true, Ordering::Relaxed);
        // A turn without a title has ended all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| self.send_title()));
        let mut state = self.state();
        let (prompt, asked) = (state.prompt.take(), std::mem::take(&mut state.asked));
        drop(state);
        for id in asked.into_values() {
            self.peer.give_up(id);
        }
        if let Some(prompt) = prompt {
            self.peer.respond(&prompt, result);
        }
    }

    /// Performs the run, and shows its steps. Returns how the turn has ended.
    fn perform_run(self: &Arc<Self>, mut call: CommandCall) -> Result<PromptResponse, Error> {
        call.watches = self.watches.clone();
        let mut sent = SentSteps::default();
        let outcome = self.commands.perform(&call, &mut |line| {
            if let Ok(line) = serde_json::from_str::<Value>(line) {
                self.show(&mut sent, &line);
            }
        });
        if let Some(held) = sent.held.take() {
            self.send(thought_chunk(&held));
        }
        self.end(&sent, outcome.code, || outcome.reason())
    }

    /// Returns how the turn has ended.
    fn end(&self, sent: &SentSteps, code: u8, reason: impl FnOnce() -> String) -> Result<PromptResponse, Error> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        }
        if code == 0 {
            return Ok(PromptResponse::new(StopReason::EndTurn));
        }
        let about = self.commands.perform(&CommandCall::json("runs").operands([&self.run]), &mut |_| {});
        let about = about.value().unwrap_or_default();
        match about["about"]["ending"].as_str() {
            Some("done") => Ok(PromptResponse::new(StopReason::EndTurn)),
            Some("cancelled") => Ok(PromptResponse::new(StopReason::Cancelled)),
            Some("limit") => Ok(PromptResponse::new(StopReason::MaxTurnRequests)),
            // A window has taken over the workspace.
            None if about["about"].is_object() => {
                self.send(answer_chunk("\n\nThe run continues in the window of Tracebook."));
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
            _ => Err(plain_error(RUN_FAILED, sent.error.clone().unwrap_or_else(reason))),
        }
    }

    /// Shows a line of the run's output to the editor.
    fn show(self: &Arc<Self>, sent: &mut SentSteps, line: &Value) {
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        let waits = text("type") == "approval_pending";
        if !matches!(text("type"), "delta" | "thinking_delta" | "tool_pending") {
            // While it waits for an approval, a window can take over the workspace, and shows the approval.
            self.watches.store(waits, Ordering::Relaxed);
        }
        if let Some(held) = sent.held.take() {
            self.send(if text("type") == "tool_call" { answer_chunk(&held) } else { thought_chunk(&held) });
        }
        match text("type") {
            "delta" => {
                sent.begin_call(&line["call"]);
                sent.streamed.push_str(text("content"));
                self.send(answer_chunk(text("content")));
            }
            "thinking_delta" => {
                sent.begin_call(&line["call"]);
                sent.thought.push_str(text("content"));
                self.send(thought_chunk(text("content")));
            }
            // What is remembered isn't said by the agent, also if its first call follows at once.
            "thinking" if text("route") == "memory" => self.send(thought_chunk(&format!("{}\n\n", text("content")))),
            "thinking" if sent.thought.is_empty() && sent.streamed.is_empty() => {
                sent.held = Some(text("content").to_owned()).filter(|content| !content.trim().is_empty());
            }
            "thinking" => {
                let (thought, rest) = unsent_thought(text("content"), &sent.thought);
                if !thought.trim().is_empty() {
                    self.send(thought_chunk(thought));
                }
                let rest = unsent_text(rest, &sent.streamed);
                if !rest.trim().is_empty() {
                    self.send(answer_chunk(rest));
                }
            }
            "final_answer" => {
                let rest = unsent_text(text("content"), &sent.streamed);
                if !rest.trim().is_empty() {
                    self.send(answer_chunk(rest));
                }
                sent.forget_stream();
            }
            "tool_call" => {
                sent.forget_stream();
                self.show_call(sent, line);
            }
            "tool_result" => {
                sent.forget_stream();
                self.show_result(sent, line);
            }
            "todo" => self.send(plan_update(line)),
            "error" => {
                sent.forget_stream();
                sent.error = Some(text("message").to_owned());
                if line["recoverable"] == true {
                    self.send(thought_chunk(&format!("{}\n", text("message"))));
                }
            }
            "tool_pending" => {
                let name = line["tool"]["name"].as_str().unwrap_or_default();
                let words = format!("\n\nThe agent proposes a tool, {name}. Read and approve it: `tracebook tools`.\n");
                self.send(answer_chunk(&words));
            }
            "approval_pending" => self.ask(line),
            _ => {}
        }
    }

    fn show_call(&self, sent: &mut SentSteps, step: &Value) {
        let text = |name: &str| step[name].as_str().unwrap_or_default();
        let (id, tool, arguments) = (text("toolCallId"), text("toolName"), &step["params"]);
        if is_shown_otherwise(tool) {
            sent.hidden.insert(id.to_owned());
            return;
        }
        let before = BuiltInTool::WriteFile.is_named(tool).then(|| self.file_text(arguments)).flatten();
        // It may be written already.
        let before = before.filter(|before| arguments["content"] != before.as_str());
        let diff = proposed_diff(&self.root, tool, arguments, before);
        self.send(begun_call(&self.root, id, tool, arguments, diff));
    }

    /// Returns the text of the note that a call is about.
    fn file_text(&self, arguments: &Value) -> Option<String> {
        let path = self.root.join(arguments["path"].as_str()?);
        let call = CommandCall::json("cat").operands([path.to_str()?]);
        self.commands.perform(&call, &mut |_| {}).value()?["text"].as_str().map(str::to_owned)
    }

    fn show_result(&self, sent: &mut SentSteps, step: &Value) {
        let id = step["toolCallId"].as_str().unwrap_or_default();
        if let Some(request) = self.state().asked.remove(id) {
            // It was decided elsewhere.
            self.peer.give_up(request);
        }
        if sent.hidden.remove(id) {
            return;
        }
        let about = self.commands.perform(&CommandCall::json("runs").operands([&self.run]), &mut |_| {});
        let about = about.value().unwrap_or_default();
        // Later calls may have changed files already.
        let changes = about["changes"].as_array().into_iter().flatten();
        let own = changes.filter(|change| step["parents"][0] == change["step"]);
        let diffs = own.flat_map(|change| change_diffs(&self.root, change)).collect();
        self.send(ended_call(id, step, diffs));
    }

    /// Asks the editor's user for a decision, or lets the next prompt answer the agent's question.
    fn ask(self: &Arc<Self>, approval: &Value) {
        let text = |name: &str| approval[name].as_str().unwrap_or_default().to_owned();
        if BuiltInTool::AskUser.is_named(&text("tool")) {
            self.send(answer_chunk(&format!("\n\n{}", text("what"))));
            let mut state = self.state();
            state.question = Some(text("name"));
            let prompt = state.prompt.take();
            drop(state);
            if let Some(prompt) = prompt {
                self.peer.respond(&prompt, Ok(PromptResponse::new(StopReason::EndTurn)));
            }
            return;
        }
        let (name, call) = (text("name"), text("call"));
        let options = permission_options(!text("reach").is_empty());
        let request = RequestPermissionRequest::new(self.session.clone(), approval_call(&self.root, approval), options);
        let Ok(sent) = self.peer.request("session/request_permission", &request) else { return };
        self.state().asked.insert(call.clone(), sent.id);
        let turn = self.clone();
        std::thread::spawn(move || {
            let answer = loop {
                match sent.wait(DECISION_CHECK_INTERVAL) {
                    Some(answer) => break answer,
                    None if turn.is_over() => return,
                    None => {}
                }
            };
            turn.state().asked.remove(&call);
            turn.decide(&name, answer);
        });
    }

    /// Carries out what the editor's user has decided.
    fn decide(&self, approval: &str, answer: Result<Value, Error>) {
        let answer = answer.and_then(|answer| Ok(serde_json::from_value::<RequestPermissionResponse>(answer)?));
        let chosen = match answer {
            Ok(RequestPermissionResponse { outcome: RequestPermissionOutcome::Selected(chosen), .. }) => {
                chosen.option_id.0.to_string()
            }
            // The turn was canceled, or the editor can't ask: nothing is allowed by it.
            _ if self.is_cancelled.load(Ordering::Relaxed) || self.is_over() => return,
            Ok(_) => "deny".to_owned(),
            Err(error) => {
                let words = format!(
                    "\n\nThe editor did not answer ({}). Decide with `tracebook approvals {approval} --allow` or \
                     --deny.\n",
                    error.message
                );
                return self.send(answer_chunk(&words));
            }
        };
        let (allow, scope) = match chosen.as_str() {
            "once" => (true, "once"),
            "run" => (true, "run"),
            "project" => (true, "project"),
            "always" => (true, "always"),
            "never" => (false, "always"),
            _ => (false, "once"),
        };
        let call = CommandCall::json("approvals").flag("allow", allow).flag("deny", !allow);
        let outcome = self.commands.perform(&call.option("scope", Some(scope)).operands([approval]), &mut |_| {});
        // What was decided elsewhere at the same time needs no second decision.
        if outcome.code != 0 && !self.is_over() && self.is_pending(approval) {
            self.send(answer_chunk(&format!("\n\n{}\n", outcome.reason())));
        }
    }

    /// Returns whether an approval still waits for a decision, or can't be looked up.
    fn is_pending(&self, approval: &str) -> bool {
        let listed = self.commands.perform(&CommandCall::json("approvals"), &mut |_| {});
        listed.code != 0 || listed.lines().iter().any(|row| row["name"] == approval)
    }

    /// Tells the editor the title of the session.
    fn send_title(&self) {
        let sessions = self.commands.perform(&CommandCall::json("sessions"), &mut |_| {}).lines();
        let own = sessions.iter().find(|session| session["id"] == self.session.as_str());
        if let Some(title) = own.and_then(|session| session["title"].as_str()) {
            self.send(SessionUpdate::SessionInfoUpdate(acp::v1::SessionInfoUpdate::new().title(title.to_owned())));
        }
    }
}

/// Returns what the user can choose: answers that last only if there is something that they can be about.
fn permission_options(can_last: bool) -> Vec<PermissionOption> {
    let lasting = [
        ("run", "Allow in this run", PermissionOptionKind::AllowAlways),
        ("project", "Allow in this volume", PermissionOptionKind::AllowAlways),
        ("always", "Always allow", PermissionOptionKind::AllowAlways),
    ];
    let mut options = vec![PermissionOption::new("once", "Allow", PermissionOptionKind::AllowOnce)];
    if can_last {
        options.extend(lasting.map(|(id, name, kind)| PermissionOption::new(id, name, kind)));
    }
    options.push(PermissionOption::new("deny", "Deny", PermissionOptionKind::RejectOnce));
    if can_last {
        options.push(PermissionOption::new("never", "Always deny", PermissionOptionKind::RejectAlways));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_calls::CommandOutcome;
    use serde_json::json;
    use std::io::{self, Write};

    /// Refuses every decision, and lists these approvals.
    struct RefusedDecisions(&'static str);

    impl WorkspaceCommands for RefusedDecisions {
        fn perform(&self, call: &CommandCall, _: &mut dyn FnMut(&str)) -> CommandOutcome {
            match call.words.iter().any(|word| word == "--allow") {
                true => {
                    CommandOutcome { code: 2, messages: "tracebook: refused".to_owned(), ..CommandOutcome::default() }
                }
                false => CommandOutcome { output: self.0.into(), ..CommandOutcome::default() },
            }
        }
    }

    /// Keeps what the editor gets.
    #[derive(Clone, Default)]
    struct EditorInput(Arc<Mutex<Vec<u8>>>);

    impl Write for EditorInput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("free").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_refused_decision_is_reported_unless_it_was_decided_elsewhere() {
        let said = |listed| {
            let input = EditorInput::default();
            let peer = Arc::new(PeerConnection::new(Box::new(input.clone())));
            let ids = ("session".to_owned(), "run".to_owned());
            let turn =
                PromptTurn::new(Arc::new(RefusedDecisions(listed)), peer, ids, PathBuf::new(), RequestId::Number(1));
            turn.decide("12345678/t0c0", Ok(json!({"outcome": {"outcome": "selected", "optionId": "once"}})));
            let bytes = input.0.lock().expect("free").clone();
            String::from_utf8(bytes).expect("UTF-8")
        };
        let waiting = said("{\"name\": \"12345678/t0c1\"}\n{\"name\": \"12345678/t0c0\"}\n");
        assert!(waiting.contains("refused"), "{waiting}");
        assert_eq!(said("{\"name\": \"12345678/t0c1\"}\n"), "");
    }
}
