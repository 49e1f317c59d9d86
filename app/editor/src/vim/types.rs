//! Vim's modes, keys and actions, as plain data.

use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::CommandId;
use std::ops::Range;

/// A Vim mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VimMode {
    /// Typed letters are commands.
    #[default]
    Normal,
    /// Typed letters are text.
    Insert,
    /// Typed text replaces existing text.
    Replace,
    /// Motions extend a selection of characters.
    Visual,
    /// Motions extend a selection of whole lines.
    Lines,
    /// Motions extend a selection of several lines between two columns.
    Block,
}

impl VimMode {
    /// Returns whether typed letters are text.
    pub fn is_typing(self) -> bool {
        matches!(self, VimMode::Insert | VimMode::Replace)
    }
}

/// A recorded key, replayed by `.`.
#[derive(Clone, Debug, PartialEq)]
pub enum VimStroke {
    /// Typed text.
    Text(String),
    /// Another key with its modifiers.
    Key(Key, Modifiers),
}

/// A key outside insert mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VimKey {
    /// A printable character.
    Letter(char),
    /// Returns to normal mode.
    Escape,
    /// Ctrl+R: redoes undone changes.
    Redo,
    /// Scrolls half a page.
    Half {
        /// Whether to scroll down instead of up.
        down: bool,
    },
    /// Scrolls a page.
    Page {
        /// Whether to scroll down instead of up.
        down: bool,
    },
    /// Scrolls one line.
    Scroll {
        /// Whether to scroll down instead of up.
        down: bool,
    },
    /// Increments or decrements a number.
    Count {
        /// Whether to decrement instead of increment.
        down: bool,
    },
    /// Moves in the jump list.
    Jump {
        /// Whether to go to the older position instead of the newer one.
        back: bool,
    },
    /// Ctrl+V: starts a block selection.
    Block,
}

/// An action that the editor performs.
#[derive(Clone, Debug, PartialEq)]
pub enum VimAction {
    /// Moves the caret and selects the text up to `anchor`.
    Place {
        /// Position of the caret, in bytes of the note.
        at: usize,
        /// Other end of the selection, in bytes of the note.
        anchor: usize,
    },
    /// Replaces a range with text and moves the caret to `at`.
    Replace {
        /// Byte range of the note.
        range: Range<usize>,
        /// The new text.
        with: String,
        /// Position of the caret afterwards, in bytes of the new text.
        at: usize,
    },
    /// Begins a line below or above, as Enter does.
    Open {
        /// Whether to begin it below instead of above.
        below: bool,
    },
    /// Indents or outdents the items or code in these lines.
    Shift {
        /// Byte range of the note.
        range: Range<usize>,
        /// Whether to outdent instead of indent.
        back: bool,
        /// Number of steps.
        times: usize,
    },
    /// Replaces several ranges at once and moves the caret to `at`, which is before all of them or in the first.
    Splices {
        /// Byte ranges of the note and their new text, in order.
        edits: Vec<(Range<usize>, String)>,
        /// Position of the caret afterwards, in bytes of the new text.
        at: usize,
    },
    /// Stores a mark that is shared by all notes, `A` to `Z`.
    Marked(char),
    /// Moves the caret to a mark that may be in another note.
    Far {
        /// The mark's letter, `A` to `Z`.
        mark: char,
        /// Whether to go to the beginning of the mark's line.
        line: bool,
    },
    /// Places carets at these positions; the first is the primary one.
    Carets(Vec<usize>),
    /// Makes several selections, each a caret and its other end; the first is the primary one.
    Select(Vec<(usize, usize)>),
    /// Re-indents lines of code to match the lines above them.
    Indent(Range<usize>),
    /// Undoes this number of changes.
    Undo(usize),
    /// Redoes this number of changes.
    Redo(usize),
    /// Starts a search.
    Find {
        /// Whether to search backward.
        back: bool,
    },
    /// Goes to the next or previous match.
    Match {
        /// Whether to go against the direction of the search.
        back: bool,
        /// Number of matches to advance.
        times: usize,
    },
    /// Searches for the word at the caret.
    Star {
        /// Whether to search backward.
        back: bool,
    },
    /// Repeats the keys of the last change.
    Again(Vec<VimStroke>),
    /// Passes keys to the editor, as in insert mode.
    Type(Vec<VimStroke>),
    /// Moves the caret one character left within its line.
    Left,
    /// Moves the caret by display lines, as they are wrapped.
    Rows {
        /// Whether to move down instead of up.
        down: bool,
        /// Number of display lines.
        times: usize,
    },
    /// Scrolls by pages.
    Page {
        /// Number of pages; negative scrolls up.
        pages: f32,
    },
    /// Scrolls so that the caret is at this fraction of the page's height.
    Seat {
        /// From 0 for the top to 1 for the bottom.
        part: f32,
    },
    /// Scrolls the page by lines; the caret stays in its line.
    Scroll {
        /// Number of lines; negative scrolls up.
        lines: f32,
    },
    /// Moves the caret to the line at a fraction of the page's height, plus a number of lines.
    Screen {
        /// From 0 for the top to 1 for the bottom.
        part: f32,
        /// Number of lines from there toward the middle.
        further: usize,
    },
    /// Copies a text to the system clipboard.
    Copy(String),
    /// Pastes the clipboard at the caret.
    Fetch {
        /// Whether to paste after the caret instead of before it.
        behind: bool,
        /// Number of repetitions.
        times: usize,
    },
    /// Plays keys as if they were pressed.
    Play {
        /// The keys, in order.
        keys: Vec<VimStroke>,
        /// Number of repetitions.
        times: usize,
    },
    /// Opens the command line (`:`).
    Ex {
        /// Whether it starts with the range of the selected lines.
        visual: bool,
    },
    /// Repeats the last command line.
    ExAgain,
    /// Runs a command of the command table.
    Run(CommandId),
}
