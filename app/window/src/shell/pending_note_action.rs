//! What is done with a note once its text has been read.

use store::DocId;

/// An action that waits for a note's text.
pub(crate) struct PendingNoteAction {
    pub(crate) source: DocId,
    pub(crate) then: FollowUpAction,
}

pub(crate) enum FollowUpAction {
    /// A new note of it; `fill`: it is a template.
    New { volume: DocId, path: String, fill: bool },
    /// It goes into a note, as a template.
    Insert { note: DocId },
}
