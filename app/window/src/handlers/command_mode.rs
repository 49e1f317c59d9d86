//! Jupyter command mode: its keys, and the commands that run, move and change cells.

use crate::app_window::AppWindow;
use crate::shell::commands::{CellCommand, WindowCommand};
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::cell_edits::{self, CellEdit};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::keymap::KeymapPreset;
use engine::{Command, Note};
use std::ops::Range;
use store::BlockId;

/// The caret's row: its byte range in the note, and whether it's in a cell.
struct CaretRow {
    row: Range<usize>,
    is_cell: bool,
    pub(crate) caret: usize,
    text: String,
}

impl PaneState {
    /// Returns whether command mode is active, so that letters are cell commands.
    pub(crate) fn commands_cells(&self, host: &HostLink, input: &InputState) -> bool {
        let caret = self.active.editor.caret.map(|caret| caret.at);
        host.preset() == KeymapPreset::Jupyter && caret.is_some() && input.command_mode.command == caret
    }

    /// Enters command mode at the caret.
    fn begin_commands(&mut self, host: &HostLink, input: &mut InputState) {
        let caret = self.active.editor.caret.map(|caret| caret.at);
        if let Some(at) = caret.filter(|_| host.preset() == KeymapPreset::Jupyter) {
            self.active.editor.place_caret(at);
        }
        input.command_mode.command = caret;
    }

    fn place_of_caret(&mut self, host: &HostLink, ctx: &egui::Context) -> Option<CaretRow> {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, _| {
            let (caret, target) = (editor.caret?, editor.edit_target(world)?);
            let text = world.note.text();
            let row = match target.spot {
                Some(spot) => {
                    let start = world.sheet.start(spot.block);
                    let row = world.rows(spot.block).get(spot.row)?;
                    start + row.content.start..start + row.content.end
                }
                None => text.len()..text.len(),
            };
            Some(CaretRow { row, is_cell: target.kind == RowKind::Cell, caret: caret.at, text })
        })?
    }

    /// Moves the caret to the code of the next or previous cell.
    fn go_to_cell(&mut self, host: &HostLink, input: &mut InputState, ctx: &egui::Context, down: bool) {
        let Some(place) = self.place_of_caret(host, ctx) else { return };
        let cells = cell_edits::cells(&place.text);
        let next = match down {
            true => cells.iter().find(|cell| cell.whole.start > place.caret),
            false => cells.iter().rev().find(|cell| cell.whole.end < place.caret),
        };
        if let Some(cell) = next {
            self.active.editor.place_caret(cell.code.start);
        }
        self.begin_commands(host, input);
    }

    fn work(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        place: &CaretRow,
        work: CellEdit,
    ) {
        match cell_edits::apply_cell_edit(&place.text, work, &place.row, place.caret) {
            Ok(made) => self.replace_text(host, notices, ctx, made.range, made.with, made.caret),
            Err(why) => notices.toasts.show_message(why),
        }
    }

    /// Runs the cells above the caret's cell, or that cell and those below.
    fn run_from(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        place: &CaretRow,
        above: bool,
    ) {
        let own = self.cell_of_caret(host, ctx);
        let Some(note) = self.active.note else { return };
        let all: Vec<BlockId> = host.session().note(note).map_or_else(Vec::new, |note| {
            let side = |cell: &BlockId| match note.block_start(*cell) {
                Some(start) => Some(*cell) != own && (start < place.caret) == above,
                None => false,
            };
            Note::cells(note).filter(|cell| side(cell) || (!above && Some(*cell) == own)).collect()
        });
        if all.is_empty() {
            notices.toasts.show_message(if above { "No cell above" } else { "No cell below" });
            return;
        }
        host.send(Command::RunCells { note, cells: all }, notices);
    }
}

impl InputState {
    /// Handles a key press other than text. Returns whether it was used.
    pub(crate) fn jupyter_key(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        ctx: &egui::Context,
        key: Key,
        modifiers: Modifiers,
    ) -> bool {
        if host.preset() != KeymapPreset::Jupyter {
            return false;
        }
        if !panes.commands_cells(host, self) {
            let begins = key == Key::Escape && modifiers.is_none() && panes.cell_of_caret(host, ctx).is_some();
            if begins {
                panes.active.editor.more.clear();
                panes.begin_commands(host, self);
            }
            return begins;
        }
        match key {
            Key::Enter if modifiers.is_none() => self.command_mode.command = None,
            Key::ArrowUp if modifiers.is_none() => panes.go_to_cell(host, self, ctx, false),
            Key::ArrowDown if modifiers.is_none() => panes.go_to_cell(host, self, ctx, true),
            Key::Escape if modifiers.is_none() => {
                self.command_mode.command = None;
                return false;
            }
            Key::Tab | Key::PageUp | Key::PageDown => return false,
            _ => {}
        }
        ctx.request_repaint();
        true
    }
}

impl AppWindow {
    /// Handles letters in command mode. Returns whether they were handled as commands rather than text.
    pub(crate) fn jupyter_text(&mut self, ctx: &egui::Context, text: &str) -> bool {
        if !self.panes.commands_cells(&self.host, &self.input) {
            return false;
        }
        for letter in text.chars() {
            let first = self.input.command_mode.first.take();
            let work = |work: CellEdit| WindowCommand::Cells(CellCommand::Work(work));
            let what = match letter {
                'a' => work(CellEdit::Above),
                'b' => work(CellEdit::Below),
                'm' => work(CellEdit::Prose),
                'y' => work(CellEdit::Code),
                'M' => work(CellEdit::Merge),
                'x' => WindowCommand::Cells(CellCommand::Cut),
                'c' => WindowCommand::Cells(CellCommand::Copy),
                'v' => WindowCommand::Cells(CellCommand::Paste),
                'z' => WindowCommand::Undo,
                'Z' => WindowCommand::Redo,
                's' => WindowCommand::Save,
                'o' => WindowCommand::Cells(CellCommand::Fold),
                'd' if first == Some('d') => work(CellEdit::Delete),
                'i' if first == Some('i') => WindowCommand::Stop,
                '0' if first == Some('0') => WindowCommand::Restart,
                'j' | 'k' => {
                    self.panes.go_to_cell(&self.host, &mut self.input, ctx, letter == 'j');
                    continue;
                }
                letter => {
                    self.input.command_mode.first = Some(letter).filter(|letter| matches!(letter, 'd' | 'i' | '0'));
                    continue;
                }
            };
            self.run_command(ctx, what);
            self.panes.begin_commands(&self.host, &mut self.input);
        }
        ctx.request_repaint();
        true
    }

    /// Places the caret after a cell was run: with `on` in the next cell, or in a new one below the last.
    pub(crate) fn after_run(&mut self, ctx: &egui::Context, on: bool) {
        if !on {
            self.panes.begin_commands(&self.host, &mut self.input);
            return;
        }
        let Some(place) = self.panes.place_of_caret(&self.host, ctx) else { return };
        match cell_edits::cells(&place.text).iter().find(|cell| cell.whole.start > place.caret) {
            Some(cell) => {
                self.panes.active.editor.place_caret(cell.code.start);
                self.panes.begin_commands(&self.host, &mut self.input);
            }
            None => {
                self.run_command(ctx, WindowCommand::Cells(CellCommand::Work(CellEdit::Below)));
                self.input.command_mode.command = None;
            }
        }
    }

    /// Performs a command on whole cells.
    pub(crate) fn run_cells(&mut self, ctx: &egui::Context, wish: CellCommand) {
        let Some(place) = self.panes.place_of_caret(&self.host, ctx) else {
            self.notices.toasts.show_message("Click in a note first. This works on the cell at the caret.");
            return;
        };
        let whole = |place: &CaretRow| {
            let cells = cell_edits::cells(&place.text);
            cell_edits::cell_index_at(&cells, place.caret)
                .map(|index| place.text[cells[index].whole.clone()].to_owned())
        };
        match wish {
            CellCommand::Work(work) => self.panes.work(&mut self.host, &mut self.notices, ctx, &place, work),
            CellCommand::Copy | CellCommand::Cut => match whole(&place) {
                Some(cell) => {
                    ctx.copy_text(cell.clone());
                    self.input.command_mode.held = cell;
                    if wish == CellCommand::Cut {
                        self.panes.work(&mut self.host, &mut self.notices, ctx, &place, CellEdit::Delete);
                    }
                }
                None => self.notices.toasts.show_message("Put the caret into a Python cell first."),
            },
            CellCommand::Paste => {
                if self.input.command_mode.held.is_empty() {
                    self.notices.toasts.show_message("Cut or copy a cell first.");
                    return;
                }
                let at = if place.is_cell {
                    let cells = cell_edits::cells(&place.text);
                    cell_edits::cell_index_at(&cells, place.caret).map_or(place.row.end, |index| cells[index].whole.end)
                } else {
                    place.row.end
                };
                let (with, caret) = cell_edits::insert_below(&place.text, at, &self.input.command_mode.held);
                let opens = self.input.command_mode.held.find('\n').map_or(0, |newline| newline + 1);
                self.panes.replace_text(&mut self.host, &mut self.notices, ctx, at..at, with, caret + opens);
            }
            CellCommand::RunInsert => {
                self.run_command(ctx, WindowCommand::RunCell { on: false });
                if place.is_cell {
                    self.run_command(ctx, WindowCommand::Cells(CellCommand::Work(CellEdit::Below)));
                    self.input.command_mode.command = None;
                }
            }
            CellCommand::Fold | CellCommand::Save => match self.panes.cell_of_caret(&self.host, ctx) {
                Some(cell) if wish == CellCommand::Fold => self.panes.active.page.cells.toggle_output_fold(cell),
                Some(cell) => self.panes.ask_save(&self.host, &mut self.overlay, &mut self.notices, cell),
                None => self.notices.toasts.show_message("Put the caret into a Python cell first."),
            },
            CellCommand::RunAbove | CellCommand::RunBelow => {
                self.panes.run_from(&mut self.host, &mut self.notices, ctx, &place, wish == CellCommand::RunAbove)
            }
        }
    }
}
