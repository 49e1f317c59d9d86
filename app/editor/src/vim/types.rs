//! Vim's modes, keys and actions, as plain data.

use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::CommandId;
use std::ops::Range;

/// What typing means now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VimMode {
    /// Letters are commands.
    #[default]
    Normal,
    /// Letters are text.
    Insert,
    /// Typed text replaces existing text.
    Replace,
    /// Motions extend a selection of letters.
    Visual,
    /// Motions extend a selection of whole lines.
    Lines,
    /// The letters of several lines between two columns.
    Block,
}

impl VimMode {
    /// Whether letters are text.
    pub fn is_typing(self) -> bool {
        matches!(self, VimMode::Insert | VimMode::Replace)
    }
}

/// A recorded key, replayed by `.`.
#[derive(Clone, Debug, PartialEq)]
pub enum VimStroke {
    /// Text as it was typed.
    Text(String),
    /// Another key, with the modifiers that were down.
    Key(Key, Modifiers),
}

/// A key outside insert mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VimKey {
    /// A letter or another printed character.
    Letter(char),
    /// Back to normal mode.
    Escape,
    /// Ctrl+R: what was undone is done again.
    Redo,
    /// Half a page.
    Half {
        /// Down, and not up.
        down: bool,
    },
    /// A page.
    Page {
        /// Down, and not up.
        down: bool,
    },
    /// A line of the page.
    Scroll {
        /// Down, and not up.
        down: bool,
    },
    /// A number becomes larger or smaller.
    Count {
        /// Smaller, and not larger.
        down: bool,
    },
    /// The way over the places from which the caret jumped.
    Jump {
        /// To the older place, and not the newer one.
        back: bool,
    },
    /// Ctrl+V: a selection of columns.
    Block,
}

/// An action for the editor.
#[derive(Clone, Debug, PartialEq)]
pub enum VimAction {
    /// Moves the caret, and selects the text in between.
    Place {
        /// The caret, a byte of the note.
        at: usize,
        /// The other end of the selection, a byte of the note.
        anchor: usize,
    },
    /// A text comes in place of a range; the caret goes to `at`.
    Replace {
        /// Bytes of the note.
        range: Range<usize>,
        /// The new text.
        with: String,
        /// Where the caret stands afterwards, a byte of the new text.
        at: usize,
    },
    /// A line is begun below or above, as Enter does it.
    Open {
        /// Below, and not above.
        below: bool,
    },
    /// Items or code in these lines move in or out.
    Shift {
        /// Bytes of the note.
        range: Range<usize>,
        /// Out, and not in.
        back: bool,
        /// By so many steps.
        times: usize,
    },
    /// Texts come in place of ranges, all at once; the caret goes to `at`, which is in front of them all or the first.
    Splices {
        /// Bytes of the note and their new text, in order.
        edits: Vec<(Range<usize>, String)>,
        /// Where the caret stands afterwards, a byte of the new text.
        at: usize,
    },
    /// A mark was set that is one in all notes: `A` to `Z`.
    Marked(char),
    /// The caret goes to a mark that may stand in another note.
    Far {
        /// The mark's letter, `A` to `Z`.
        mark: char,
        /// Whether to the beginning of its line.
        line: bool,
    },
    /// What is typed comes at each of these places; the first leads.
    Carets(Vec<usize>),
    /// Each is selected, as a place and the other end; the first leads.
    Select(Vec<(usize, usize)>),
    /// Lines of code are moved in or out as those above them ask for.
    Indent(Range<usize>),
    /// So many changes are undone.
    Undo(usize),
    /// So many changes are done again.
    Redo(usize),
    /// Something is searched for.
    Find {
        /// Towards the beginning.
        back: bool,
    },
    /// The next match, or the one before.
    Match {
        /// Against the direction of the search.
        back: bool,
        /// So many matches further.
        times: usize,
    },
    /// The word at the caret is looked for.
    Star {
        /// Towards the beginning.
        back: bool,
    },
    /// These keys are played again.
    Again(Vec<VimStroke>),
    /// These keys go to the editor, as in insert mode.
    Type(Vec<VimStroke>),
    /// The caret goes a letter back, if there is one in its line.
    Left,
    /// The caret goes by rows as they are wrapped.
    Rows {
        /// Down, and not up.
        down: bool,
        /// So many rows.
        times: usize,
    },
    /// Scrolls by pages.
    Page {
        /// How many, negative for upwards.
        pages: f32,
    },
    /// Scrolls so that the caret is at this part of the page, or by this many lines.
    Seat {
        /// From 0 for the top to 1 for the bottom.
        part: f32,
    },
    /// The page moves by lines; the caret stays in its line.
    Scroll {
        /// How many, negative for upwards.
        lines: f32,
    },
    /// Moves the caret to the line at this part of the page, plus this many lines.
    Screen {
        /// From 0 for the top to 1 for the bottom.
        part: f32,
        /// So many lines from there towards the middle.
        further: usize,
    },
    /// A text goes to the clipboard of the system.
    Copy(String),
    /// What is on the clipboard is put at the caret.
    Fetch {
        /// Behind the caret, and not before it.
        behind: bool,
        /// So often.
        times: usize,
    },
    /// These keys are played as often, as if they were pressed.
    Play {
        /// The keys, in their order.
        keys: Vec<VimStroke>,
        /// So often.
        times: usize,
    },
    /// A line behind a colon is asked for.
    Ex {
        /// Whether it begins with the lines that were selected.
        visual: bool,
    },
    /// The last such line once more.
    ExAgain,
    /// A command of the table.
    Run(CommandId),
}
