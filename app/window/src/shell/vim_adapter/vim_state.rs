//! What Vim remembers in this window: the machine, marks, undo steps, and keys that are played.

use editor::vim::{VimMachine, VimMarks, VimStroke};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use store::DocId;

/// Vim in this window.
#[derive(Default)]
pub(crate) struct VimAdapter {
    pub(crate) vim: VimMachine,
    /// Number of undo steps when the current command began.
    pub(crate) from: Option<(DocId, usize)>,
    /// Commands whose edits are taken back together: the steps before and after.
    pub(crate) whole: Vec<(DocId, Range<usize>)>,
    /// The marks of each note.
    pub(crate) places: HashMap<DocId, VimMarks>,
    /// Keys of registers that are being played.
    pub(crate) playing: MacroPlayback,
    /// What was overwritten, letter by letter; `None`: there was none, the line ended.
    pub(crate) overwritten: Vec<Option<String>>,
    /// The last line behind a colon.
    pub(crate) line: String,
    /// What waits for the clipboard: behind the caret or in front of it, how often, and since when.
    pub(crate) fetching: Option<(bool, usize, f64)>,
}

/// What is being played: the register begun last comes first.
#[derive(Default)]
pub(crate) struct MacroPlayback {
    pub(crate) stack: Vec<MacroFrame>,
    pub(crate) count: usize,
}

pub(crate) struct MacroFrame {
    pub(crate) keys: Rc<[VimStroke]>,
    pub(crate) next: usize,
    /// How often all of them come once more.
    pub(crate) left: usize,
}

impl MacroPlayback {
    /// Whether something is being played.
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
