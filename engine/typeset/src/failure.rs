//! Why a formula, a diagram or a picture is not drawn, and what embedded notes may come to.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};

/// Why something is not drawn, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DrawFailure {
    /// It is not understood: its source says enough.
    #[error("{0}")]
    Wrong(String),
    /// It is beyond a limit: the page shows its source, and why.
    #[error("{0}")]
    Limit(String),
}

impl DrawFailure {
    /// Returns the error as a sentence.
    pub fn message(&self) -> &str {
        match self {
            DrawFailure::Wrong(why) | DrawFailure::Limit(why) => why,
        }
    }

    /// The sentence, where a page must say it.
    pub fn limit_message(&self) -> Option<&str> {
        match self {
            DrawFailure::Wrong(_) => None,
            DrawFailure::Limit(why) => Some(why),
        }
    }
}

impl From<DrawFailure> for String {
    fn from(failure: DrawFailure) -> String {
        match failure {
            DrawFailure::Wrong(why) | DrawFailure::Limit(why) => why,
        }
    }
}

/// Notes inside one note come to no more text than this, in bytes.
const MAX_EMBEDDED_BYTES: usize = 4 << 20;
/// What an embed counts beside its text, in bytes.
const EMBED_OVERHEAD_BYTES: usize = 256;

/// The notes that are shown inside a note, and those around the one that is read now.
#[derive(Debug)]
pub(crate) struct EmbedStack {
    open_notes: RefCell<Vec<(String, String)>>,
    bytes_left: Cell<usize>,
}

impl EmbedStack {
    /// Of the note of this path.
    pub(crate) fn for_note(path: &str) -> EmbedStack {
        EmbedStack {
            open_notes: RefCell::new(vec![(path.to_owned(), String::new())]),
            bytes_left: Cell::new(MAX_EMBEDDED_BYTES),
        }
    }

    /// Begins a note, or a part of one, inside what is open.
    ///
    /// # Errors
    /// It is inside itself.
    pub(crate) fn push_note(&self, path: &str, part: Option<&str>) -> Result<(), DrawFailure> {
        let part = part.unwrap_or("");
        let mut open = self.open_notes.borrow_mut();
        if open.iter().any(|(known, of)| known == path && (of == part || part.is_empty())) {
            return Err(DrawFailure::Limit("A note can't be shown inside itself.".to_owned()));
        }
        open.push((path.to_owned(), part.to_owned()));
        Ok(())
    }

    /// Counts the text of what was begun.
    ///
    /// # Errors
    /// All of them together are too much.
    pub(crate) fn count_bytes(&self, bytes: usize) -> Result<(), DrawFailure> {
        let Some(left) = self.bytes_left.get().checked_sub(bytes.saturating_add(EMBED_OVERHEAD_BYTES)) else {
            let most = MAX_EMBEDDED_BYTES >> 20;
            return Err(DrawFailure::Limit(format!("The notes inside this note come to more than {most} MB.")));
        };
        self.bytes_left.set(left);
        Ok(())
    }

    /// Ends what was begun last.
    pub(crate) fn pop_note(&self) {
        self.open_notes.borrow_mut().pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_inside_itself_and_there_is_an_end() {
        let embeds = EmbedStack::for_note("A.md");
        assert!(embeds.push_note("A.md", None).is_err(), "the note itself");
        embeds.push_note("A.md", Some("part")).expect("a part of it");
        assert!(embeds.push_note("A.md", Some("part")).is_err() && embeds.push_note("A.md", None).is_err());
        embeds.pop_note();
        embeds.push_note("B.md", None).expect("another note");
        embeds.pop_note();
        embeds.push_note("B.md", None).expect("the same one behind it");
        embeds.count_bytes(3 << 20).expect("not too much");
        let why = embeds.count_bytes(1 << 20).expect_err("too much");
        assert_eq!(why.limit_message(), Some("The notes inside this note come to more than 4 MB."));
    }
}
