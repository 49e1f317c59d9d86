//! Edits that wait for their note.

use agent::memory::experience::Experience;
use agent::task_block::TaskStatus;
use serde_json::Value;
use store::DocId;
use text::task::CalendarDay;

/// An edit that waits until its note can be read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct NoteJob {
    pub(in crate::session) note: DocId,
    pub(in crate::session) at: usize,
    pub(in crate::session) what: NoteJobKind,
    pub(in crate::session) held: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) enum NoteJobKind {
    /// One piece of text becomes another.
    ReplaceText { old: String, new: String },
    /// One piece of text becomes another, behind these words if they are still there.
    ApplyHunk { before: String, old: String, new: String },
    /// The box of a task of these words is clicked.
    ToggleTask { words: String, today: CalendarDay },
    /// A property gets a value, or with `None` is taken out.
    SetProperty { key: String, value: Option<Value> },
    /// An experience comes through the gate.
    AddExperience(Box<Experience>),
    /// A task comes into the log.
    LogTask(String),
    /// The whole note becomes this text.
    ReplaceNote(String),
    /// The experiences of these names go.
    RemoveExperiences(Vec<String>),
    /// One replay more of a trace was good, or one less.
    CountReplay { good: bool },
    /// Sets the status of a task in a plan.
    SetTaskStatus { task: String, standing: TaskStatus },
}
