//! Reasons why a formula, diagram or image isn't drawn, and limits on embedded notes.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};

/// The reason why something isn't drawn, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DrawFailure {
    /// The source can't be parsed. Showing the source is enough.
    #[error("{0}")]
    Wrong(String),
    /// A limit is exceeded. The page shows the source and the reason.
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

    /// Returns the sentence if the page must show it.
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

/// Maximum total text of all notes embedded in one note, in bytes.
const MAX_EMBEDDED_BYTES: usize = 4 << 20;
/// Bytes that each embed counts in addition to its text.
const EMBED_OVERHEAD_BYTES: usize = 256;

/// The notes open around the one being read, and how much more text may be embedded.
#[derive(Debug)]
pub(crate) struct EmbedStack {
    open_notes: RefCell<Vec<(String, String)>>,
    bytes_left: Cell<usize>,
}

impl EmbedStack {
    /// Creates the stack for the note at a path.
    pub(crate) fn for_note(path: &str) -> EmbedStack {
        EmbedStack {
            open_notes: RefCell::new(vec![(path.to_owned(), String::new())]),
            bytes_left: Cell::new(MAX_EMBEDDED_BYTES),
        }
    }

    /// Pushes an embedded note, or a part of one.
    ///
    /// # Errors
    /// Returns an error if the note would be embedded in itself.
    pub(crate) fn push_note(&self, path: &str, part: Option<&str>) -> Result<(), DrawFailure> {
        let part = part.unwrap_or("");
        let mut open = self.open_notes.borrow_mut();
        if open.iter().any(|(known, of)| known == path && (of == part || part.is_empty())) {
            return Err(DrawFailure::Limit("A note can't be shown inside itself.".to_owned()));
        }
        open.push((path.to_owned(), part.to_owned()));
        Ok(())
    }

    /// Counts the text of an embedded note.
    ///
    /// # Errors
    /// Returns an error if the embedded notes exceed the limit together.
    pub(crate) fn count_bytes(&self, bytes: usize) -> Result<(), DrawFailure> {
        let Some(left) = self.bytes_left.get().checked_sub(bytes.saturating_add(EMBED_OVERHEAD_BYTES)) else {
            let most = MAX_EMBEDDED_BYTES >> 20;
            return Err(DrawFailure::Limit(format!("The notes inside this note come to more than {most} MB.")));
        };
        self.bytes_left.set(left);
        Ok(())
    }

    /// Pops the embedded note that was pushed last.
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
