//! Commands of the command line as calls: words and input go in, output and exit code come back.

use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of bytes that are kept of a command's output. What is beyond is an error of the call.
pub(crate) const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum number of bytes that are kept of a command's messages.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Maximum number of bytes of a name that a message quotes.
const MAX_QUOTED_NAME_BYTES: usize = 200;

/// A command for the owner of the workspace.
#[derive(Clone, Debug, Default)]
pub struct CommandCall {
    /// The arguments after `tracebook`.
    pub words: Vec<String>,
    /// Standard input.
    pub input: Vec<u8>,
    /// Set when nobody wants the result.
    pub cancelled: Arc<AtomicBool>,
    /// Set while the command only watches the workspace. It then doesn't keep a window from getting it, which ends it.
    pub watches: Arc<AtomicBool>,
    /// Set when the command has printed a message.
    pub has_messages: Arc<AtomicBool>,
}

impl CommandCall {
    /// Creates a call of a subcommand that prints JSON.
    pub(crate) fn json(name: &str) -> CommandCall {
        CommandCall { words: vec![name.to_owned(), "--json".to_owned()], ..CommandCall::default() }
    }

    /// Adds an option in the form `--name=value`, so that a value is never read as another option.
    pub(crate) fn option(mut self, name: &str, value: Option<impl std::fmt::Display>) -> CommandCall {
        if let Some(value) = value {
            self.words.push(format!("--{name}={value}"));
        }
        self
    }

    /// Adds an option without a value if `set`.
    pub(crate) fn flag(mut self, name: &str, set: bool) -> CommandCall {
        if set {
            self.words.push(format!("--{name}"));
        }
        self
    }

    /// Adds what follows the options. Nothing of it is read as an option.
    pub(crate) fn operands<const N: usize>(mut self, operands: [&str; N]) -> CommandCall {
        self.words.push("--".to_owned());
        self.words.extend(operands.map(str::to_owned));
        self
    }

    /// Sets standard input.
    pub(crate) fn with_input(mut self, input: impl Into<Vec<u8>>) -> CommandCall {
        self.input = input.into();
        self
    }

    /// Returns whether nobody wants the result.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// What a command printed, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Exit code: 0 done, 1 a cell or a check failed, 2 wrong use, 3 the workspace can't be used.
    pub code: u8,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub messages: String,
    /// Whether the output was longer than what is kept.
    pub is_cut: bool,
}

impl CommandOutcome {
    /// Adds output, up to the maximum.
    pub fn push_output(&mut self, bytes: &[u8]) {
        let room = MAX_OUTPUT_BYTES.saturating_sub(self.output.len());
        self.is_cut |= bytes.len() > room;
        self.output.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// Adds messages, up to the maximum.
    pub fn push_messages(&mut self, bytes: &[u8]) {
        if self.messages.len() < MAX_MESSAGE_BYTES {
            self.messages.push_str(&String::from_utf8_lossy(bytes));
        }
    }

    /// Returns the messages without the program's name before each, in words for other programs.
    pub(crate) fn said(&self) -> String {
        let lines = self.messages.lines().map(|line| program_line(line.strip_prefix("tracebook: ").unwrap_or(line)));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns why the command failed.
    pub(crate) fn reason(&self) -> String {
        match (self.said().trim(), self.is_cut) {
            (_, true) => "the result is longer than what can be returned; ask for less of it".to_owned(),
            ("", false) => format!("the command ended with exit code {}", self.code),
            (reason, false) => reason.to_owned(),
        }
    }

    /// Returns the output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Reads the output as one JSON value.
    pub(crate) fn value(&self) -> Option<Value> {
        serde_json::from_slice(&self.output).ok()
    }

    /// Reads which experience `memory add` has kept, and what happened in words.
    pub(crate) fn kept_memory(&self) -> (String, String) {
        let kept = self.value().unwrap_or_default();
        let id = kept["experience_id"].as_str().unwrap_or_default().to_owned();
        let said = match kept["new"] == false {
            true => format!("{id}: it was known already and counts once more"),
            false => id.clone(),
        };
        (id, said)
    }

    /// Reads the output as JSON values, one a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Returns a message of a command as it's said to other programs: with the field for the option that it begins with,
/// without the command that lists names, and with long names cut.
fn program_line(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    if let Some(option) = line.strip_prefix("--").filter(|option| option.starts_with(|c: char| c.is_ascii_lowercase()))
    {
        let length = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
        out = format!("`{}`", option[..length].replace('-', "_"));
        rest = &option[length..];
    }
    while let Some((before, quoted)) = rest.split_once('“') {
        let Some((name, after)) = quoted.split_once('”') else { break };
        let end = name.floor_char_boundary(MAX_QUOTED_NAME_BYTES);
        let more = if end < name.len() { "…" } else { "" };
        out.extend([before, "“", &name[..end], more, "”"]);
        rest = after;
    }
    match rest.split_once("; `tracebook ").map(|(before, hint)| (before, hint.split_once("` lists them"))) {
        Some((before, Some((command, after)))) if !command.contains('`') => out.extend([before, after]),
        _ => out.push_str(rest),
    }
    out
}

/// Performs commands in the process that owns the workspace: this one, or another through its socket.
pub trait WorkspaceCommands: Send + Sync + 'static {
    /// Performs a command and waits for its end. `on_line` gets each line of output as it's printed.
    fn perform(&self, call: &CommandCall, on_line: &mut dyn FnMut(&str)) -> CommandOutcome;
}

/// Returns the part of `text` from byte `from` that has at most `max` bytes, and where the rest begins.
pub(crate) fn text_page(text: &str, from: usize, max: usize) -> (&str, Option<usize>) {
    let from = text.floor_char_boundary(from);
    let end = text.floor_char_boundary(from.saturating_add(max));
    (text.get(from..end).unwrap_or_default(), (end < text.len()).then_some(end))
}

/// Returns the version of a text, which changes with every byte of it.
pub(crate) fn text_version(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().get(..32).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_options() {
        let call = CommandCall::json("cat").option("volume", Some("--json")).operands(["--workspace=/etc"]);
        assert_eq!(call.words, ["cat", "--json", "--volume=--json", "--", "--workspace=/etc"]);
    }

    #[test]
    fn messages_are_said_in_words_of_other_programs() {
        let said = |line: &str| {
            CommandOutcome { messages: format!("tracebook: {line}\n"), ..CommandOutcome::default() }.said()
        };
        assert_eq!(said("--if-version wants a number, not “--x”"), "`if_version` wants a number, not “--x”");
        let missing = "there is no note “a”; `tracebook ls` lists them. The closest are: b.";
        assert_eq!(said(missing), "there is no note “a”. The closest are: b.");
        assert_eq!(said("use `tracebook run --clean`; it’s “open"), "use `tracebook run --clean`; it’s “open");
        let long = said(&format!("there is no note “{}”; `tracebook ls` lists them.", "é".repeat(10_000)));
        assert_eq!(long, format!("there is no note “{}…”.", "é".repeat(100)));
    }

    #[test]
    fn pages_of_a_text_join_to_the_text() {
        let text = "aé→b".repeat(5);
        let (mut at, mut all) = (0, String::new());
        loop {
            let (page, next) = text_page(&text, at, 4);
            all.push_str(page);
            let Some(next) = next else { break };
            assert!(next > at);
            at = next;
        }
        assert_eq!(all, text);
    }
}
