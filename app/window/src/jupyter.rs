//! Cells as Jupyter's notebooks have them: command mode, in which letters mean cells, and what the commands of the
//! table do to cells. The text of it is in `cellwork.rs`.

use super::Window;
use super::commands::What;
use editor::cellwork::{self, Work};
use editor::rows::Kind;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::keymap::Preset;
use engine::{Command, Note};
use std::ops::Range;
use store::BlockId;

/// A command of the table that concerns whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    Work(Work),
    Copy,
    Cut,
    Paste,
    /// Runs the cell and begins one below.
    RunInsert,
    RunAbove,
    RunBelow,
    /// What it printed is folded away, or shown.
    Fold,
    /// What it printed becomes a file.
    Save,
}

/// What a command of the table is here.
pub(super) fn cells(id: &str) -> Option<Cells> {
    Some(match id {
        "cell.above" => Cells::Work(Work::Above),
        "cell.below" => Cells::Work(Work::Below),
        "cell.delete" => Cells::Work(Work::Delete),
        "cell.prose" => Cells::Work(Work::Prose),
        "cell.code" => Cells::Work(Work::Code),
        "cell.merge" => Cells::Work(Work::Merge),
        "cell.split" => Cells::Work(Work::Split),
        "cell.copy" => Cells::Copy,
        "cell.cut" => Cells::Cut,
        "cell.paste" => Cells::Paste,
        "cell.run_insert" => Cells::RunInsert,
        "cell.fold" => Cells::Fold,
        "cell.save" => Cells::Save,
        "note.run_above" => Cells::RunAbove,
        "note.run_below" => Cells::RunBelow,
        _ => return None,
    })
}

/// Jupyter in this window.
#[derive(Default)]
pub(super) struct Jupyter {
    /// Command mode, and where the caret stood when it was seen last; elsewhere, somebody went on writing.
    command: Option<usize>,
    /// The first of two letters.
    first: Option<char>,
    /// The cell that was cut or copied last, with its fences.
    held: String,
}

/// The row of the caret: its bytes in the note, and whether it is a cell.
struct Place {
    row: Range<usize>,
    is_cell: bool,
    caret: usize,
    text: String,
}

impl Window {
    /// Whether letters mean cells now.
    pub(super) fn commands_cells(&self) -> bool {
        let caret = self.here.editor.caret.map(|caret| caret.at);
        self.preset() == Preset::Jupyter && caret.is_some() && self.jupyter.command == caret
    }

    /// Answers a key that is no text. Whether it meant something.
    pub(super) fn jupyter_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.preset() != Preset::Jupyter {
            return false;
        }
        if !self.commands_cells() {
            let begins = key == Key::Escape && modifiers.is_none() && self.cell_of_caret(ctx).is_some();
            if begins {
                self.here.editor.more.clear();
                self.begin_commands();
            }
            return begins;
        }
        match key {
            Key::Enter if modifiers.is_none() => self.jupyter.command = None,
            Key::ArrowUp if modifiers.is_none() => self.go_to_cell(ctx, false),
            Key::ArrowDown if modifiers.is_none() => self.go_to_cell(ctx, true),
            Key::Escape if modifiers.is_none() => {
                self.jupyter.command = None;
                return false;
            }
            Key::Tab | Key::PageUp | Key::PageDown => return false,
            _ => {}
        }
        ctx.request_repaint();
        true
    }

    /// Answers letters. Whether they were commands, and no text.
    pub(super) fn jupyter_text(&mut self, ctx: &egui::Context, text: &str) -> bool {
        if !self.commands_cells() {
            return false;
        }
        for letter in text.chars() {
            let first = self.jupyter.first.take();
            let work = |work: Work| What::Cells(Cells::Work(work));
            let what = match letter {
                'a' => work(Work::Above),
                'b' => work(Work::Below),
                'm' => work(Work::Prose),
                'y' => work(Work::Code),
                'M' => work(Work::Merge),
                'x' => What::Cells(Cells::Cut),
                'c' => What::Cells(Cells::Copy),
                'v' => What::Cells(Cells::Paste),
                'z' => What::Undo,
                'Z' => What::Redo,
                's' => What::Save,
                'o' => What::Cells(Cells::Fold),
                'd' if first == Some('d') => work(Work::Delete),
                'i' if first == Some('i') => What::Stop,
                '0' if first == Some('0') => What::Restart,
                'j' | 'k' => {
                    self.go_to_cell(ctx, letter == 'j');
                    continue;
                }
                letter => {
                    self.jupyter.first = Some(letter).filter(|letter| matches!(letter, 'd' | 'i' | '0'));
                    continue;
                }
            };
            self.run(ctx, what);
            self.begin_commands();
        }
        ctx.request_repaint();
        true
    }

    /// Command mode, wherever the caret is.
    fn begin_commands(&mut self) {
        let caret = self.here.editor.caret.map(|caret| caret.at);
        if let Some(at) = caret.filter(|_| self.preset() == Preset::Jupyter) {
            self.here.editor.place(at);
        }
        self.jupyter.command = caret;
    }

    fn place_of_caret(&mut self, ctx: &egui::Context) -> Option<Place> {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let (caret, target) = (editor.caret?, editor.target(world)?);
            let text = world.note.text();
            let row = match target.spot {
                Some(spot) => {
                    let start = world.sheet.start(spot.block);
                    let row = world.rows(spot.block).get(spot.row)?;
                    start + row.content.start..start + row.content.end
                }
                None => text.len()..text.len(),
            };
            Some(Place { row, is_cell: target.kind == Kind::Cell, caret: caret.at, text })
        })?
    }

    /// The caret goes to the code of the next cell, or the one before.
    fn go_to_cell(&mut self, ctx: &egui::Context, down: bool) {
        let Some(place) = self.place_of_caret(ctx) else { return };
        let cells = cellwork::cells(&place.text);
        let next = match down {
            true => cells.iter().find(|cell| cell.whole.start > place.caret),
            false => cells.iter().rev().find(|cell| cell.whole.end < place.caret),
        };
        if let Some(cell) = next {
            self.here.editor.place(cell.code.start);
        }
        self.begin_commands();
    }

    /// Where a cell that runs leaves the caret: with `on` in the next cell, or in a new one below the last.
    pub(super) fn after_run(&mut self, ctx: &egui::Context, on: bool) {
        if !on {
            self.begin_commands();
            return;
        }
        let Some(place) = self.place_of_caret(ctx) else { return };
        match cellwork::cells(&place.text).iter().find(|cell| cell.whole.start > place.caret) {
            Some(cell) => {
                self.here.editor.place(cell.code.start);
                self.begin_commands();
            }
            None => {
                self.run(ctx, What::Cells(Cells::Work(Work::Below)));
                self.jupyter.command = None;
            }
        }
    }

    /// Performs a command that concerns whole cells.
    pub(super) fn run_cells(&mut self, ctx: &egui::Context, wish: Cells) {
        let Some(place) = self.place_of_caret(ctx) else {
            self.toasts.say("Click into a note first: this concerns the cell at the caret.");
            return;
        };
        let whole = |place: &Place| {
            let cells = cellwork::cells(&place.text);
            cellwork::at(&cells, place.caret).map(|index| place.text[cells[index].whole.clone()].to_owned())
        };
        match wish {
            Cells::Work(work) => self.work(ctx, &place, work),
            Cells::Copy | Cells::Cut => match whole(&place) {
                Some(cell) => {
                    ctx.copy_text(cell.clone());
                    self.jupyter.held = cell;
                    if wish == Cells::Cut {
                        self.work(ctx, &place, Work::Delete);
                    }
                }
                None => self.toasts.say("Put the caret into a Python cell first."),
            },
            Cells::Paste => {
                if self.jupyter.held.is_empty() {
                    self.toasts.say("Cut or copy a cell first.");
                    return;
                }
                let at = if place.is_cell {
                    let cells = cellwork::cells(&place.text);
                    cellwork::at(&cells, place.caret).map_or(place.row.end, |index| cells[index].whole.end)
                } else {
                    place.row.end
                };
                let (with, caret) = cellwork::below(&place.text, at, &self.jupyter.held);
                let opens = self.jupyter.held.find('\n').map_or(0, |newline| newline + 1);
                self.replace_text(ctx, at..at, with, caret + opens);
            }
            Cells::RunInsert => {
                self.run(ctx, What::RunCell { on: false });
                if place.is_cell {
                    self.run(ctx, What::Cells(Cells::Work(Work::Below)));
                    self.jupyter.command = None;
                }
            }
            Cells::Fold | Cells::Save => match self.cell_of_caret(ctx) {
                Some(cell) if wish == Cells::Fold => self.here.page.cells.fold(cell),
                Some(cell) => self.ask_save(cell),
                None => self.toasts.say("Put the caret into a Python cell first."),
            },
            Cells::RunAbove | Cells::RunBelow => self.run_from(ctx, &place, wish == Cells::RunAbove),
        }
    }

    fn work(&mut self, ctx: &egui::Context, place: &Place, work: Work) {
        match cellwork::made(&place.text, work, &place.row, place.caret) {
            Ok(made) => self.replace_text(ctx, made.range, made.with, made.caret),
            Err(why) => self.toasts.say(why),
        }
    }

    /// Runs the cells above the caret's, or that one and those below.
    fn run_from(&mut self, ctx: &egui::Context, place: &Place, above: bool) {
        let own = self.cell_of_caret(ctx);
        let Some(note) = self.here.note else { return };
        let all: Vec<BlockId> = self.session().and_then(|session| session.note(note)).map_or_else(Vec::new, |note| {
            let side = |cell: &BlockId| match note.start(*cell) {
                Some(start) => Some(*cell) != own && (start < place.caret) == above,
                None => false,
            };
            Note::cells(note).filter(|cell| side(cell) || (!above && Some(*cell) == own)).collect()
        });
        if all.is_empty() {
            self.toasts.say(if above { "There is no cell above." } else { "There is no cell below." });
            return;
        }
        self.send(Command::RunCells { note, cells: all });
    }
}
