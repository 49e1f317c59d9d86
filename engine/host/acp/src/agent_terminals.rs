//! The terminals of an agent in one turn. Each runs one command, in the foreground until the agent needs something
//! else.

use crate::message_queue::ActionResult;
use crate::running_command::RunningCommand;
use crate::{IncomingMessage, PeerConnection};
use agent_client_protocol_schema::v1::{
    Error, ErrorCode, RequestId, TerminalExitStatus, TerminalOutputResponse, WaitForTerminalExitResponse,
};
use std::collections::BTreeMap;

/// Maximum number of terminals of a turn that aren't released.
const MAX_TERMINALS: usize = 100;
/// Maximum number of commands that run at the same time.
const MAX_RUNNING_COMMANDS: usize = 16;
/// Maximum number of requests that wait for the end of a command.
const MAX_WAITING_REQUESTS: usize = 64;
/// Exit code of a command that was not allowed to run, as shells have it.
const NOT_EXECUTABLE: u32 = 126;
/// How a command has ended that was killed.
const KILLED_SIGNAL: &str = "SIGKILL";
/// What the output of a command ends with that was canceled before it started.
const CANCELED_OUTPUT: &str = "(cancelled)";

/// What the result of a tool says in its middle if something was left out there.
const LEFT_OUT_MARK: &str = " bytes are left out here …";

/// Hides secrets in a text.
pub(crate) type TextMask = Box<dyn Fn(&str) -> String + Send>;

/// A command that has ended in the background.
pub(crate) struct EndedCommand {
    pub(crate) line: String,
    pub(crate) success: bool,
    pub(crate) text: String,
}

/// A command that runs, or has ended.
struct AgentTerminal {
    command: RunningCommand,
    line: String,
    ended: Option<(String, TerminalExitStatus)>,
    /// Requests that wait for its end.
    waiting: Vec<RequestId>,
    output_limit: usize,
    is_killed: bool,
    is_released: bool,
}

/// The terminals of a turn. Their commands end when this is dropped.
pub(crate) struct AgentTerminals {
    terminals: BTreeMap<String, AgentTerminal>,
    mask: TextMask,
}

impl Drop for AgentTerminals {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// Returns whether a message is about a terminal that's there, so that it can be served while other requests wait.
pub(crate) fn is_terminal_request(message: &IncomingMessage) -> bool {
    let served = ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"];
    matches!(message, IncomingMessage::Request { method, .. } if served.contains(&method.as_str()))
}

/// Returns how a command ended, from the result of the tool that ran it.
fn exit_status(result: &ActionResult) -> TerminalExitStatus {
    if result.success {
        return TerminalExitStatus::new().exit_code(0_u32);
    }
    let line = result.text.trim_end().lines().next_back().unwrap_or_default();
    let inner = |start: &str| line.strip_prefix(start)?.strip_suffix(')');
    if let Some(signal) = inner("(ended by signal ") {
        return TerminalExitStatus::new().signal(signal.to_owned());
    }
    if line == CANCELED_OUTPUT || inner("(stopped").is_some() {
        return TerminalExitStatus::new().signal(KILLED_SIGNAL.to_owned());
    }
    let code = inner("(exit code ").and_then(|code| code.parse::<u32>().ok());
    TerminalExitStatus::new().exit_code(code.unwrap_or(NOT_EXECUTABLE))
}

/// Returns what a command has printed, without the line in which the result of the tool says how it has ended.
fn printed_text(result: ActionResult) -> String {
    let ActionResult { success, mut text } = result;
    let whole = text.trim_end();
    let begin = whole.rfind('\n').map_or(0, |at| at + 1);
    let line = whole.get(begin..).unwrap_or_default();
    let is_end = line.starts_with("(exit code ") || line.starts_with("(ended by signal ");
    if !success && is_end && line.ends_with(')') {
        text.truncate(begin);
    }
    text
}

impl AgentTerminal {
    fn end(&mut self, peer: &PeerConnection, result: ActionResult) {
        let status = exit_status(&result);
        for request in std::mem::take(&mut self.waiting) {
            peer.respond(&request, Ok(WaitForTerminalExitResponse::new(status.clone())));
        }
        self.ended = Some((printed_text(result), status));
    }

    fn kill(&mut self, peer: &PeerConnection) {
        if self.ended.is_some() {
            return;
        }
        self.is_killed = true;
        self.command.kill();
        // One that still waits for an approval never starts.
        if !self.command.is_started() {
            self.end(peer, ActionResult { success: false, text: CANCELED_OUTPUT.to_owned() });
        }
    }

    fn is_running(&self) -> bool {
        self.ended.is_none() && self.command.is_started()
    }
}

impl AgentTerminals {
    pub(crate) fn new(mask: TextMask) -> AgentTerminals {
        AgentTerminals { terminals: BTreeMap::new(), mask }
    }

    /// Adds a terminal. Returns its command, or why there's no room for it.
    pub(crate) fn add(
        &mut self,
        id: &str,
        line: &str,
        output_limit: Option<u64>,
    ) -> Result<RunningCommand, &'static str> {
        if self.terminals.len() >= MAX_TERMINALS {
            return Err("too many terminals are open; release some");
        }
        if self.terminals.values().filter(|terminal| terminal.ended.is_none()).count() >= MAX_RUNNING_COMMANDS {
            return Err("too many commands run; kill some, or wait for their end");
        }
        let command = RunningCommand::default();
        let terminal = AgentTerminal {
            command: command.clone(),
            line: line.to_owned(),
            ended: None,
            waiting: Vec::new(),
            output_limit: output_limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
            is_killed: false,
            is_released: false,
        };
        self.terminals.insert(id.to_owned(), terminal);
        Ok(command)
    }

    fn terminal(&mut self, id: &str) -> Option<&mut AgentTerminal> {
        self.terminals.get_mut(id).filter(|terminal| !terminal.is_released)
    }

    /// Returns what a command has printed so far, and how it has ended; `None` if the terminal isn't there.
    pub(crate) fn output(&self, id: &str) -> Option<TerminalOutputResponse> {
        let terminal = self.terminals.get(id).filter(|terminal| !terminal.is_released)?;
        let (text, is_cut, status) = match &terminal.ended {
            Some((text, status)) => (text.clone(), text.contains(LEFT_OUT_MARK), Some(status.clone())),
            None => {
                let (text, is_cut) = terminal.command.printed();
                ((self.mask)(&text), is_cut, None)
            }
        };
        let from = text.ceil_char_boundary(text.len().saturating_sub(terminal.output_limit));
        let kept = text.get(from..).unwrap_or_default();
        Some(TerminalOutputResponse::new(kept, is_cut || from > 0).exit_status(status))
    }

    /// Answers a request as soon as a command has ended. Returns whether the terminal is there.
    pub(crate) fn answer_at_end(&mut self, peer: &PeerConnection, id: &str, request: &RequestId) -> bool {
        let Some(terminal) = self.terminal(id) else { return false };
        match &terminal.ended {
            Some((_, status)) => peer.respond(request, Ok(WaitForTerminalExitResponse::new(status.clone()))),
            None if terminal.waiting.len() >= MAX_WAITING_REQUESTS => {
                let busy = Error::new(ErrorCode::InternalError.into(), "too many requests wait for this command");
                peer.respond(request, Err::<WaitForTerminalExitResponse, Error>(busy));
            }
            None => terminal.waiting.push(request.clone()),
        }
        true
    }

    /// Ends a command. Its terminal stays. Returns whether the terminal is there.
    pub(crate) fn kill(&mut self, peer: &PeerConnection, id: &str) -> bool {
        let Some(terminal) = self.terminal(id) else { return false };
        terminal.kill(peer);
        true
    }

    /// Ends a command, and forgets its terminal.
    pub(crate) fn release(&mut self, peer: &PeerConnection, id: &str) {
        if let Some(terminal) = self.terminal(id) {
            terminal.kill(peer);
            terminal.is_released = true;
        }
        self.forget_released();
    }

    fn forget_released(&mut self) {
        self.terminals.retain(|_, terminal| !terminal.is_released || terminal.ended.is_none());
    }

    /// Takes the result of a command in the foreground.
    pub(crate) fn take_result(&mut self, peer: &PeerConnection, id: &str, result: ActionResult) {
        if let Some(terminal) = self.terminals.get_mut(id)
            && terminal.ended.is_none()
            && !terminal.command.is_in_background()
        {
            terminal.end(peer, result);
        }
        self.forget_released();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terminals.is_empty()
    }

    /// Returns whether a command hasn't started yet, and still may.
    pub(crate) fn is_expected(&self, id: &str) -> bool {
        self.terminals.get(id).is_some_and(|terminal| terminal.ended.is_none() && !terminal.command.is_started())
    }

    /// Sends the running commands to the background for which `is_awaited_beside` holds: the agent needs other things.
    pub(crate) fn send_to_background(&self, is_awaited_beside: impl Fn(&str) -> bool) {
        for (id, terminal) in &self.terminals {
            if terminal.is_running() && is_awaited_beside(id) {
                terminal.command.want_background();
            }
        }
    }

    /// Notices the ends of commands in the background.
    pub(crate) fn take_ends(&mut self, peer: &PeerConnection) -> Vec<EndedCommand> {
        let mut all = Vec::new();
        for terminal in self.terminals.values_mut().filter(|terminal| terminal.ended.is_none()) {
            if let Some(ActionResult { success, text }) = terminal.command.result() {
                let text = (self.mask)(&text);
                // What the agent ended has done what it should.
                let is_good = success || terminal.is_killed;
                all.push(EndedCommand { line: terminal.line.clone(), success: is_good, text: text.clone() });
                terminal.end(peer, ActionResult { success, text });
            }
        }
        self.forget_released();
        all
    }

    /// Ends all commands.
    pub(crate) fn kill_all(&mut self) {
        for terminal in self.terminals.values_mut().filter(|terminal| terminal.ended.is_none()) {
            terminal.is_killed = true;
            terminal.command.kill();
        }
    }

    /// Returns whether a command still runs in the background.
    pub(crate) fn has_background_command(&self) -> bool {
        self.terminals.values().any(|terminal| terminal.ended.is_none() && terminal.command.is_in_background())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_output_of_a_terminal_is_what_was_printed() {
        let printed = |success: bool, text: &str| printed_text(ActionResult { success, text: text.to_owned() });
        assert_eq!(printed(false, "no\n(exit code 7)"), "no\n");
        assert_eq!(printed(false, "(ended by signal 11)"), "");
        // What it has printed itself, and why it didn't run.
        assert_eq!(printed(true, "done\n(exit code 7)"), "done\n(exit code 7)");
        assert_eq!(printed(false, "denied\n"), "denied\n");
    }

    #[test]
    fn the_end_of_a_command_is_read_from_its_result() {
        let status = |success: bool, text: &str| {
            let status = exit_status(&ActionResult { success, text: text.to_owned() });
            (status.exit_code, status.signal)
        };
        assert_eq!(status(true, "done\n(exit code 7)"), (Some(0), None));
        assert_eq!(status(false, "no\n(exit code 7)"), (Some(7), None));
        assert_eq!(status(false, "(ended by signal 11)"), (None, Some("11".to_owned())));
        assert_eq!(status(false, "on it\n(cancelled)"), (None, Some("SIGKILL".to_owned())));
        assert_eq!(status(false, "(stopped after 600 s)"), (None, Some("SIGKILL".to_owned())));
        assert_eq!(status(false, "The user said no."), (Some(126), None));
    }

    #[test]
    fn a_command_in_the_background_is_followed_to_its_end() {
        let peer = PeerConnection::new(Box::new(std::io::sink()));
        let mut all = AgentTerminals::new(Box::new(|text: &str| text.replace("key", "***")));
        let command = all.add("t1", "serve", Some(12)).expect("room");
        assert!(all.is_expected("t1"));
        command.start(Arc::new(Mutex::new(b"0123456789 a key".to_vec())));
        let output = all.output("t1").expect("there");
        assert_eq!((output.output.as_str(), output.truncated, output.exit_status), ("456789 a ***", true, None));
        all.send_to_background(|_| false);
        assert!(!command.continue_in_background() && !all.has_background_command());
        all.send_to_background(|_| true);
        assert!(command.continue_in_background() && all.has_background_command());
        all.take_result(&peer, "t1", ActionResult { success: true, text: "it continues".to_owned() });
        assert!(all.kill(&peer, "t1") && command.is_kill_wanted() && all.take_ends(&peer).is_empty());
        command.end(ActionResult { success: false, text: "(cancelled)".to_owned() });
        let ends = all.take_ends(&peer);
        assert!(ends.len() == 1 && ends[0].success && ends[0].line == "serve");
        let status = all.output("t1").expect("there").exit_status.expect("ended");
        assert_eq!(status.signal.as_deref(), Some("SIGKILL"));
        all.release(&peer, "t1");
        assert!(all.output("t1").is_none() && !all.kill(&peer, "t1"));
    }

    #[test]
    fn commands_that_run_have_a_limit_and_end_with_the_turn() {
        let mut all = AgentTerminals::new(Box::new(str::to_owned));
        let add = |all: &mut AgentTerminals, at: usize| all.add(&format!("t{at}"), "sleep 9", None);
        let commands: Vec<RunningCommand> =
            (0..MAX_RUNNING_COMMANDS).map(|at| add(&mut all, at).expect("room")).collect();
        assert!(add(&mut all, MAX_RUNNING_COMMANDS).is_err());
        drop(all);
        assert!(commands.iter().all(RunningCommand::is_kill_wanted));
    }
}
