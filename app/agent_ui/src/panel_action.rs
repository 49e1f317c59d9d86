//! Actions that the agent and memory pages request from the window.

use crate::memory::MemoryAction;
use engine::Command;
use engine::commands::CommandId;
use store::{DocId, StepId};

/// Action requested by a page.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a page asks for a few at a time, and none is kept")]
pub enum PanelAction {
    /// Runs a command of the session; its rejection becomes a toast.
    Do(Command),
    /// Runs a command from the command table, by its id.
    Run(CommandId),
    /// Shows this note.
    Open(DocId),
    /// Shows this note, scrolled to a byte offset.
    OpenAt(DocId, usize),
    /// Moves a file to the trash.
    Delete(DocId),
    /// Follows a link in the open note.
    Follow(String),
    /// Shows a toast.
    Say(String),
    /// Performs an action on a remembered item.
    Memory(Box<MemoryAction>),
    /// Shows what this run and the others of its session changed.
    ShowChanges(DocId),
    /// Shows a step of a run on its timeline.
    ShowStep(DocId, StepId),
}
