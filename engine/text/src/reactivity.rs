//! Whether cells run, or are marked as stale, when a cell that they use has run: a property of their note.

use crate::properties;

/// What happens to the dependents of a cell that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Reactivity {
    /// Nothing runs automatically; only changes to a cell's own code are shown.
    Manual,
    /// Dependents are marked as stale.
    #[default]
    Marks,
    /// Dependents run too, after the cells that they need.
    Automatic,
}

impl Reactivity {
    /// The property of a note that sets its reactivity.
    pub const REACTIVITY_PROPERTY: &'static str = "cells";

    /// Returns the name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Reactivity::Manual => "manual",
            Reactivity::Marks => "stale marks",
            Reactivity::Automatic => "automatic",
        }
    }

    /// Reads the reactivity from the front matter of a note.
    pub fn from_note_text(text: &str) -> Reactivity {
        if !text.starts_with("---") {
            return Reactivity::default();
        }
        let Some(Ok(properties)) = properties::read(text) else { return Reactivity::default() };
        let stated = properties.iter().find(|property| property.key == Reactivity::REACTIVITY_PROPERTY);
        match stated.and_then(|property| property.values.first()).map(|(word, _)| word.as_str()) {
            Some("manual") => Reactivity::Manual,
            Some("automatic") => Reactivity::Automatic,
            _ => Reactivity::Marks,
        }
    }
}
