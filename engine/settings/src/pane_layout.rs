//! Arrangement of open notes: the tabs and splits that a window saves.

use serde::{Deserialize, Serialize};
use store::DocId;

/// Where a note was left, in bytes of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotePosition {
    /// The text at the top of the page.
    pub top: usize,
    /// The caret, if the note had one.
    pub caret: Option<usize>,
}

/// An arrangement of tabs and split panes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TabArrangement {
    /// Notes in tabs of one pane; `None` is a tab without a note.
    Tabs {
        /// The notes, from left to right.
        notes: Vec<Option<DocId>>,
        /// Index of the visible tab.
        shown: usize,
    },
    /// Panes side by side, each with its share of the width.
    Row(Vec<(f32, TabArrangement)>),
    /// Panes one above another, each with its share of the height.
    Column(Vec<(f32, TabArrangement)>),
}

impl TabArrangement {
    /// Returns whether the arrangement has more than one tab.
    pub fn has_several_tabs(&self) -> bool {
        self.count_tabs() > 1
    }

    fn count_tabs(&self) -> usize {
        match self {
            TabArrangement::Tabs { notes, .. } => notes.len(),
            TabArrangement::Row(parts) | TabArrangement::Column(parts) => {
                parts.iter().map(|(_, part)| part.count_tabs()).sum()
            }
        }
    }
}
