//! Vim's modes, keys and deeds, as plain data.

use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::CommandId;
use std::ops::Range;

/// What typing means now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VimMode {
    #[default]
    Normal,
    Insert,
    /// Typed text replaces existing text.
    Replace,
    Visual,
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
    Text(String),
    Key(Key, Modifiers),
}

/// A key outside insert mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VimKey {
    Letter(char),
    Escape,
    Redo,
    /// Half a page, a page, a line of the page.
    Half {
        down: bool,
    },
    Page {
        down: bool,
    },
    Scroll {
        down: bool,
    },
    /// A number becomes larger or smaller.
    Count {
        down: bool,
    },
    /// The way over the places from which the caret jumped.
    Jump {
        back: bool,
    },
    Block,
}

/// An action for the editor.
#[derive(Clone, Debug, PartialEq)]
pub enum VimAction {
    /// Moves the caret, and selects the text in between.
    Place {
        at: usize,
        anchor: usize,
    },
    /// A text comes in place of a range; the caret goes to `at`.
    Replace {
        range: Range<usize>,
        with: String,
        at: usize,
    },
    /// A line is begun below or above, as Enter does it.
    Open {
        below: bool,
    },
    /// Items or code in these lines move in or out.
    Shift {
        range: Range<usize>,
        back: bool,
        times: usize,
    },
    /// Texts come in place of ranges, all at once; the caret goes to `at`, which is in front of them all or the first.
    Splices {
        edits: Vec<(Range<usize>, String)>,
        at: usize,
    },
    /// A mark was set that is one in all notes; the caret goes to such a mark in another note, or to its line.
    Marked(char),
    Far {
        mark: char,
        line: bool,
    },
    /// What is typed comes at each of these places; the first leads.
    Carets(Vec<usize>),
    /// Each is selected, as a place and the other end; the first leads.
    Select(Vec<(usize, usize)>),
    /// Lines of code are moved in or out as those above them ask for.
    Indent(Range<usize>),
    Undo(usize),
    Redo(usize),
    /// Searches: the next or previous match, or the word at the caret. `back`: backward.
    Find {
        back: bool,
    },
    Match {
        back: bool,
        times: usize,
    },
    Star {
        back: bool,
    },
    /// These keys are played again; these go to the editor, as in insert mode.
    Again(Vec<VimStroke>),
    Type(Vec<VimStroke>),
    /// The caret goes a letter back, if there is one in its line.
    Left,
    /// Lines as they are wrapped, and half pages.
    Rows {
        down: bool,
        times: usize,
    },
    /// Scrolls by pages.
    Page {
        pages: f32,
    },
    /// Scrolls so that the caret is at this part of the page, or by this many lines.
    Seat {
        part: f32,
    },
    Scroll {
        lines: f32,
    },
    /// Moves the caret to the line at this part of the page, plus this many lines.
    Screen {
        part: f32,
        further: usize,
    },
    /// A text goes to the clipboard of the system; what is there is put at the caret.
    Copy(String),
    Fetch {
        behind: bool,
        times: usize,
    },
    /// These keys are played as often, as if they were pressed.
    Play {
        keys: Vec<VimStroke>,
        times: usize,
    },
    /// A line behind a colon; `visual`: about what was selected. The last one once more.
    Ex {
        visual: bool,
    },
    ExAgain,
    /// A command of the table.
    Run(CommandId),
}
