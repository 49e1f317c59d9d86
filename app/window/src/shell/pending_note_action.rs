//! Actions on a note that run once its text is loaded.

use store::DocId;

/// An action that waits for a note's text.
pub(crate) struct PendingNoteAction {
    pub(crate) source: DocId,
    pub(crate) then: FollowUpAction,
}

pub(crate) enum FollowUpAction {
    /// Creates a new note with the text; `fill`: the text is a template to fill.
    New { volume: DocId, path: String, fill: bool },
    /// Inserts the text into a note, as a template.
    Insert { note: DocId },
    /// Draws the sample's first figure.
    DrawSample,
    /// Adds an item to the end of the note. If there's a place, the note is a template for a new note there.
    Capture { place: Option<(DocId, String)>, item: String },
}
