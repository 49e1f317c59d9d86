//! Vim state of this window: the state machine, marks, undo steps, and playing macros.

use editor::vim::{VimMachine, VimMarks, VimStroke};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use store::DocId;

/// Vim state of this window.
#[derive(Default)]
pub(crate) struct VimAdapter {
    pub(crate) vim: VimMachine,
    /// The note and its number of undo steps when the current command began.
    pub(crate) from: Option<(DocId, usize)>,
    /// Commands whose edits are undone together, as ranges of undo steps.
    pub(crate) whole: Vec<(DocId, Range<usize>)>,
    /// The marks of each note.
    pub(crate) places: HashMap<DocId, VimMarks>,
    /// The macros that are playing.
    pub(crate) playing: MacroPlayback,
    /// The overwritten characters; `None` where the line had ended.
    pub(crate) overwritten: Vec<Option<String>>,
    /// The last command line.
    pub(crate) line: String,
    /// A put that waits for the clipboard: whether after the caret, how often, and since when.
    pub(crate) fetching: Option<(bool, usize, f64)>,
}

/// The playing macros as a stack. The one started last is on top and plays first.
#[derive(Default)]
pub(crate) struct MacroPlayback {
    pub(crate) stack: Vec<MacroFrame>,
    pub(crate) count: usize,
}

pub(crate) struct MacroFrame {
    pub(crate) keys: Rc<[VimStroke]>,
    pub(crate) next: usize,
    /// How many more times the keys are played.
    pub(crate) left: usize,
}

impl MacroPlayback {
    /// Returns whether a macro is playing.
    pub(crate) fn is_playing(&self) -> bool {
        !self.stack.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<VimStroke> {
        self.pop_finished_macros();
        let top = self.stack.last_mut()?;
        let key = top.keys.get(top.next).cloned();
        top.next += 1;
        self.count += 1;
        key
    }

    /// Removes finished macros.
    pub(crate) fn pop_finished_macros(&mut self) {
        while let Some(top) = self.stack.last_mut() {
            if top.next < top.keys.len() {
                return;
            }
            if top.left > 0 && !top.keys.is_empty() {
                (top.next, top.left) = (0, top.left - 1);
                return;
            }
            self.stack.pop();
        }
    }
}
