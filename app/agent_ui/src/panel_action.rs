//! What the pages of agents and memory ask the window for.

use crate::memory::MemoryAction;
use engine::Command;
use engine::commands::CommandId;
use store::{DocId, StepId};

/// What a page asks for.
#[derive(Debug)]
pub enum PanelAction {
    /// A command for the session; its rejection becomes a toast.
    Do(Command),
    /// A command of the table, by its id.
    Run(CommandId),
    /// Show this note.
    Open(DocId),
    /// Show this note from a byte on.
    OpenAt(DocId, usize),
    /// Put a file into the trash.
    Delete(DocId),
    /// Follow a link in the open note.
    Follow(String),
    /// Show a toast.
    Say(String),
    /// Something is done with what is remembered.
    Memory(Box<MemoryAction>),
    /// Show a step of a run on its timeline.
    ShowStep(DocId, StepId),
}
