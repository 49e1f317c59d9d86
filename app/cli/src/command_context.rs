//! What a running command works with: the workspace, its input and its output.

use host::Handle;
use std::io::{Read, Write};
use std::path::Path;

/// Context of a running command.
pub(super) struct CommandContext<'a> {
    pub(super) handle: &'a Handle,
    /// The folder in which the command was run.
    pub(super) folder: &'a Path,
    pub(super) json: bool,
    /// Whether the output goes to a terminal.
    pub(super) terminal: bool,
    pub(super) input: &'a mut dyn Read,
    pub(super) out: &'a mut dyn Write,
    pub(super) errors: &'a mut dyn Write,
    /// Whether the input is this process's own.
    pub(super) own: bool,
}

impl CommandContext<'_> {
    /// Prints what a command has done: as JSON for programs, otherwise as a line of text.
    pub(super) fn print_result(
        &mut self,
        json: &serde_json::Value,
        line: impl std::fmt::Display,
    ) -> std::io::Result<()> {
        if self.json { writeln!(self.out, "{json}") } else { writeln!(self.out, "{line}") }
    }

    /// Tells a person why a list is empty. For programs, an empty list is the answer.
    pub(super) fn explain_empty_list(&mut self, is_empty: bool, line: &str) -> std::io::Result<()> {
        if is_empty && self.terminal && !self.json { writeln!(self.out, "{line}") } else { Ok(()) }
    }
}
