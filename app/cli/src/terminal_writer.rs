//! Writer for terminal output that escapes control characters in untrusted text.

use std::io::Write;
use text::untrusted_text::{self, EscapeForm};

/// Maximum length of an incomplete escape sequence that is held back.
const MAX_PENDING_SEQUENCE_BYTES: usize = 64;
/// Commands whose output is data when another program reads it: then it's written byte for byte as stored or printed.
const DATA_COMMANDS: [&str; 8] = ["attachments", "cat", "export", "run", "outputs", "history", "completions", "man"];

/// How output is escaped for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenForm {
    /// Writes text unchanged.
    Exact,
    /// Escapes control characters.
    Text,
    /// Escapes control characters except colors.
    Colours,
    /// Escapes control characters as JSON escapes, which mean the same.
    Json,
}

impl ScreenForm {
    /// Returns the form for a command's output. `terminal`: output goes to a terminal.
    pub(super) fn for_command(name: &str, args: &clap::ArgMatches, json: bool, terminal: bool) -> ScreenForm {
        let flag = |id: &str| {
            let there = args.ids().any(|known| known.as_str() == id);
            there && matches!(args.try_get_one::<bool>(id), Ok(Some(true)))
        };
        let whole = name == "steps" && flag("whole");
        match name {
            _ if json || (flag("export") && name != "traces") => ScreenForm::Json,
            "run" | "outputs" if terminal => ScreenForm::Colours,
            _ if !terminal && (DATA_COMMANDS.contains(&name) || whole || flag("export")) => ScreenForm::Exact,
            _ => ScreenForm::Text,
        }
    }
}

/// A writer that escapes text for terminals.
pub(super) struct TerminalWriter<'a> {
    to: &'a mut dyn Write,
    form: ScreenForm,
    /// The start of an incomplete character or color sequence.
    held: Vec<u8>,
}

impl<'a> TerminalWriter<'a> {
    pub(super) fn new(to: &'a mut dyn Write, form: ScreenForm) -> TerminalWriter<'a> {
        TerminalWriter { to, form, held: Vec::new() }
    }

    fn write_escaped(&mut self, text: &str) -> std::io::Result<()> {
        match self.form {
            ScreenForm::Exact => self.to.write_all(text.as_bytes()),
            ScreenForm::Text => self.to.write_all(untrusted_text::escape_as(text, EscapeForm::Visible).as_bytes()),
            ScreenForm::Json => self.to.write_all(untrusted_text::escape_as(text, EscapeForm::Json).as_bytes()),
            ScreenForm::Colours => {
                // Each state of a progress bar that overwrites itself becomes a line.
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                self.to.write_all(untrusted_text::escape_terminal(&text).as_bytes())
            }
        }
    }

    /// Writes the bytes held back, even if they are incomplete.
    fn finish(&mut self) -> std::io::Result<()> {
        let rest = std::mem::take(&mut self.held);
        if rest.is_empty() { Ok(()) } else { self.write_escaped(&String::from_utf8_lossy(&rest)) }
    }
}

/// Returns the length without an incomplete character or color sequence at the end.
fn complete_prefix_length(bytes: &[u8], form: ScreenForm) -> usize {
    let letters = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid UTF-8 is replaced; only an incomplete end may still become a character.
        Err(_) => {
            let from = bytes.len().saturating_sub(3);
            let begins = |at: &usize| bytes[*at] >= 0xc0 && std::str::from_utf8(&bytes[*at..]).is_err();
            (from..bytes.len()).find(begins).unwrap_or(bytes.len())
        }
        Ok(_) => bytes.len(),
    };
    let open = bytes[..letters].iter().rposition(|byte| *byte == 0x1b).filter(|at| {
        let behind = &bytes[at + 1..letters];
        let number = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
        form == ScreenForm::Colours
            && behind.len() < MAX_PENDING_SEQUENCE_BYTES
            && (behind.is_empty() || (behind[0] == b'[' && behind[1..].iter().all(number)))
    });
    open.unwrap_or(letters)
}

impl Write for TerminalWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.form == ScreenForm::Exact {
            return self.to.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        let end = complete_prefix_length(&self.held, self.form);
        let rest = self.held.split_off(end);
        let now = std::mem::replace(&mut self.held, rest);
        self.write_escaped(&String::from_utf8_lossy(&now))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

impl Drop for TerminalWriter<'_> {
    fn drop(&mut self) {
        let _ = self.finish().and_then(|()| self.to.flush()); // nobody reads it any more where that fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: ScreenForm, pieces: &[&[u8]]) -> String {
        let mut to = Vec::new();
        let mut screen = TerminalWriter::new(&mut to, form);
        for piece in pieces {
            screen.write_all(piece).expect("written");
        }
        drop(screen);
        String::from_utf8(to).expect("text")
    }

    #[test]
    fn data_is_exact_only_where_no_terminal_reads_it() {
        for name in DATA_COMMANDS.into_iter().chain(["ls", "search", "ask", "todos", "approvals", "steps"]) {
            let args = clap::ArgMatches::default();
            let exact = DATA_COMMANDS.contains(&name);
            let piped = ScreenForm::for_command(name, &args, false, false);
            assert_eq!(piped, if exact { ScreenForm::Exact } else { ScreenForm::Text }, "{name}");
            let colours = matches!(name, "run" | "outputs");
            let seen = ScreenForm::for_command(name, &args, false, true);
            assert_eq!(seen, if colours { ScreenForm::Colours } else { ScreenForm::Text }, "{name}");
            assert_eq!(ScreenForm::for_command(name, &args, true, true), ScreenForm::Json, "{name}");
        }
    }

    #[test]
    fn nothing_is_let_through_however_it_is_cut() {
        let text = "a\u{1b}[2Jb\u{9b}c\u{202e}d\r\u{1b}[31me — ü\u{1b}";
        let safe = "a␛[2Jb\\u{9b}c\\u{202e}d␍␛[31me — ü␛";
        for cut in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(written(ScreenForm::Text, &[one, two]), safe, "{cut}");
            assert_eq!(written(ScreenForm::Exact, &[one, two]), text, "{cut}");
            let coloured = written(ScreenForm::Colours, &[one, two]);
            assert!(coloured.contains("\u{1b}[31m") && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
            assert!(!coloured.contains('\r') && coloured.ends_with('␛'), "{coloured:?}");
        }
        assert_eq!(written(ScreenForm::Text, &[b"a\xff\x1bb", b"\xe2\x80"]), "a\u{fffd}␛b\u{fffd}");
        let json = serde_json::to_string("\u{202e}\u{9b}\u{1b}").expect("written");
        let safe = written(ScreenForm::Json, &[json.as_bytes()]);
        assert_eq!(safe, "\"\\u202e\\u009b\\u001b\"");
    }
}
