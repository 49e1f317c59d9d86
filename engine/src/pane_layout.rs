//! Arrangement of open notes: the tabs and splits that a window saves.

use serde::{Deserialize, Serialize};
use store::DocId;

/// An arrangement of tabs and split panes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TabArrangement {
    /// Notes behind one another; `None` is a tab without a note.
    Tabs {
        /// The notes, from left to right.
        notes: Vec<Option<DocId>>,
        /// The one that is seen.
        shown: usize,
    },
    /// Side by side, each with its share of the room.
    Row(Vec<(f32, TabArrangement)>),
    /// Above one another, each with its share of the room.
    Column(Vec<(f32, TabArrangement)>),
}

impl TabArrangement {
    /// Whether there is more than one tab in it.
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
