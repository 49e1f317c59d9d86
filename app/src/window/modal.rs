//! Editors with modes: brings keys to Vim's machine (`vim.rs`), and does in the note what it answers.

use super::Window;
use super::commands::What;
use super::editor::{Edit, Editor, Shape, World};
use super::keys::Done;
use super::rows::Kind;
use super::vim::{Deed, Ground, Mode, Press, Stroke, Vim};
use super::{motion, source};
use eframe::egui;
use egui::{Key, Modifiers};
use engine::keymap::Preset;
use std::cell::RefCell;
use std::ops::Range;
use store::DocId;

/// Wrapped lines that one command goes over at most.
const ROWS: usize = 1_000;

/// Vim in this window.
#[derive(Default)]
pub(super) struct Modal {
    vim: Vim,
    /// How many steps could be taken back when the command under way began.
    from: Option<(DocId, usize)>,
    /// Commands whose edits are taken back together: the steps before and after.
    whole: Vec<(DocId, Range<usize>)>,
}

impl Window {
    pub(super) fn preset(&self) -> Preset {
        self.session().map_or(Preset::default(), |session| session.settings().preset)
    }

    /// Whether letters are commands now, and no text.
    pub(super) fn commands_by_letter(&self) -> bool {
        self.preset() == Preset::Vim && self.modal.vim.mode() != Mode::Insert
    }

    /// How the caret looks.
    pub(super) fn caret_shape(&self) -> Shape {
        match (self.commands_by_letter(), self.commands_cells()) {
            (true, _) => Shape::Block,
            (false, true) => Shape::None,
            (false, false) => Shape::Line,
        }
    }

    /// What the status line says of the mode.
    pub(super) fn mode_says(&self) -> Option<String> {
        if self.commands_cells() {
            return Some("Command".to_owned());
        }
        let caret = self.here.editor.caret.filter(|_| self.preset() == Preset::Vim)?;
        Some(self.modal.vim.says(caret.at, caret.anchor))
    }

    /// Ends insert mode, where it is on, with what floats at the caret.
    pub(super) fn vim_escape(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        let escapes = is_escape(key, modifiers) && self.preset() == Preset::Vim;
        if !escapes || self.modal.vim.mode() != Mode::Insert {
            return false;
        }
        self.complete_key(Key::Escape, Modifiers::NONE);
        self.slash = None;
        self.modal.vim.record(Stroke::Key(Key::Escape, Modifiers::NONE));
        self.vim_press(ctx, Press::Escape);
        true
    }

    /// Answers a key that is no text. Whether it meant something.
    pub(super) fn vim_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.preset() != Preset::Vim {
            return false;
        }
        if self.modal.vim.mode() == Mode::Insert {
            let writes = modifiers.is_none() || modifiers.shift_only();
            let letters = matches!(key.name().chars().count(), 1);
            if writes && !letters {
                self.modal.vim.record(Stroke::Key(key, modifiers));
            }
            return false;
        }
        let Some(press) = press(key, modifiers) else { return false };
        self.modal.vim.record(Stroke::Key(key, modifiers));
        self.vim_press(ctx, press);
        true
    }

    /// Answers letters. Whether they were commands, and no text.
    pub(super) fn vim_text(&mut self, ctx: &egui::Context, text: &str) -> bool {
        if self.preset() != Preset::Vim {
            return false;
        }
        if self.modal.vim.mode() == Mode::Insert {
            self.modal.vim.record(Stroke::Text(text.to_owned()));
            return false;
        }
        for letter in text.chars() {
            self.modal.vim.record(Stroke::Text(letter.to_string()));
            self.vim_press(ctx, Press::Letter(letter));
        }
        true
    }

    fn vim_press(&mut self, ctx: &egui::Context, press: Press) {
        let Some(note) = self.here.note else { return };
        let steps = self.undo_steps();
        if !self.modal.vim.replays {
            self.modal.from.get_or_insert((note, steps));
        }
        if self.modal.vim.mode() != Mode::Insert {
            self.here.editor.more.clear();
        }
        let mut vim = std::mem::take(&mut self.modal.vim);
        let dark = ctx.global_style().visuals.dark_mode;
        let now = ctx.input(|input| input.time);
        let deeds = self.with_note(ctx, dark, |world, editor, _| {
            editor.touched = now;
            let Some(caret) = editor.caret else { return Vec::new() };
            let text = world.note.text();
            let world = RefCell::new(world);
            let stands = |at: usize| stands(at, &mut world.borrow_mut());
            vim.press(press, &Ground { text: &text, stands: &stands }, caret.at, caret.anchor)
        });
        self.modal.vim = vim;
        for deed in deeds.into_iter().flatten() {
            self.vim_deed(ctx, deed);
        }
        if self.modal.vim.mode() == Mode::Normal
            && !self.modal.vim.replays
            && let Some((begun, from)) = self.modal.from.take()
        {
            let to = self.undo_steps();
            if begun == note && to > from + 1 {
                self.modal.whole.retain(|(other, steps)| *other != note || steps.end <= from);
                self.modal.whole.push((note, from..to));
            }
        }
        ctx.request_repaint();
    }

    fn undo_steps(&self) -> usize {
        self.here.note.and_then(|note| self.session()?.note(note)).map_or(0, engine::Note::undo_steps)
    }

    fn vim_deed(&mut self, ctx: &egui::Context, deed: Deed) {
        let none = Modifiers::NONE;
        match deed {
            Deed::Place { at, anchor } => self.here.editor.select(anchor, at),
            Deed::Left => self.vim_place(ctx, |text, at| {
                if at > motion::line_around(text, at).start { motion::before(text, at) } else { at }
            }),
            Deed::Replace { range, with, at } => self.replace_text(ctx, range, with, at),
            Deed::Open { below } => _ = self.write(ctx, |editor, world| open(editor, world, below), false),
            Deed::Shift { range, back, times } => {
                let first = range.start;
                let modifiers = if back { Modifiers::SHIFT } else { none };
                let several = self.selects_lines(&range);
                self.here.editor.select(range.start, if several { range.end } else { range.start });
                for _ in 0..times.min(ROWS) {
                    self.write(ctx, |editor, world| editor.key(Key::Tab, modifiers, world), false);
                }
                self.vim_place(ctx, |text, _| indent(text, first));
            }
            Deed::Undo(times) => self.vim_undo(ctx, times, false),
            Deed::Redo(times) => self.vim_undo(ctx, times, true),
            Deed::Find => self.run(ctx, What::Find),
            Deed::Match { back } => self.seek_again(back),
            Deed::Star { back } => {
                let word = self.word_at_caret();
                self.seek_word(word, back);
            }
            Deed::Again(inputs) => {
                self.modal.vim.replays = true;
                inputs.into_iter().for_each(|input| self.play(ctx, input));
                self.modal.vim.replays = false;
            }
            Deed::Type(inputs) => inputs.into_iter().for_each(|input| self.type_again(ctx, input)),
            Deed::Rows { down, times } => {
                let key = if down { Key::ArrowDown } else { Key::ArrowUp };
                for _ in 0..times.min(ROWS) {
                    self.write(ctx, |editor, world| editor.key(key, none, world), false);
                }
            }
            Deed::Half { down } => {
                self.write(ctx, |_, _| Done::Page(if down { 0.5 } else { -0.5 }), false);
            }
            Deed::Palette => self.run(ctx, What::Palette),
        }
    }

    /// Plays a key that was pressed before.
    fn play(&mut self, ctx: &egui::Context, input: Stroke) {
        if self.modal.vim.mode() == Mode::Insert {
            match input {
                Stroke::Key(key, modifiers) if is_escape(key, modifiers) => self.vim_press(ctx, Press::Escape),
                input => self.type_again(ctx, input),
            }
            return;
        }
        match input {
            Stroke::Text(text) => text.chars().for_each(|letter| self.vim_press(ctx, Press::Letter(letter))),
            Stroke::Key(key, modifiers) => {
                if let Some(press) = press(key, modifiers) {
                    self.vim_press(ctx, press);
                }
            }
        }
    }

    fn type_again(&mut self, ctx: &egui::Context, input: Stroke) {
        match input {
            Stroke::Text(text) => self.write(ctx, |editor, world| editor.write(&text, world), false),
            Stroke::Key(key, modifiers) => self.write(ctx, |editor, world| editor.key(key, modifiers, world), false),
        };
    }

    /// Puts the caret where a look at the text says.
    fn vim_place(&mut self, ctx: &egui::Context, place: impl FnOnce(&str, usize) -> usize) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let text = world.note.text();
            let at = editor.caret.map_or(0, |caret| motion::floor(&text, caret.at));
            editor.place(place(&text, at));
        });
    }

    /// Puts a text in place of a range of the note, with line ends as the note has them; the caret goes to `at`.
    pub(super) fn replace_text(&mut self, ctx: &egui::Context, range: Range<usize>, with: String, at: usize) {
        let dark = ctx.global_style().visuals.dark_mode;
        let crlf = self.with_note(ctx, dark, |world, _, _| world.crlf()).unwrap_or(false);
        let inside = at.saturating_sub(range.start).min(with.len());
        let (head, tail) = with.split_at(motion::floor(&with, inside));
        let lines = |text: &str| if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
        let caret = if at > range.start { at + lines(head).len() - head.len() } else { at };
        let insert = lines(head) + &lines(tail);
        self.edit(vec![Edit { at: range.start, delete: range.len(), insert, caret, anchor: caret }]);
        self.here.editor.reveal = true;
    }

    /// Whether a range holds more than one line.
    fn selects_lines(&self, range: &Range<usize>) -> bool {
        let note = self.here.note.and_then(|note| self.session()?.note(note));
        note.and_then(|note| note.slice(range.start, range.len())).is_some_and(|text| text.contains('\n'))
    }

    /// Takes whole commands back, or makes them again.
    fn vim_undo(&mut self, ctx: &egui::Context, times: usize, redo: bool) {
        let Some(note) = self.here.note else { return };
        let revision =
            |window: &Window| window.session().and_then(|session| session.note(note)).map_or(0, engine::Note::revision);
        let before = revision(self);
        for _ in 0..times.min(ROWS) {
            let steps = self.undo_steps();
            let edge = |range: &Range<usize>| if redo { range.start } else { range.end };
            let whole = self.modal.whole.iter().find(|(other, range)| *other == note && edge(range) == steps);
            for _ in 0..whole.map_or(1, |(_, range)| range.len()) {
                self.undo(redo);
            }
        }
        let noted = self.session().and_then(|session| session.note(note));
        let first =
            noted.and_then(|note| note.shifts_since(before)).and_then(|shifts| shifts.last().map(|shift| shift.at));
        if let Some(at) = first {
            self.vim_place(ctx, |text, _| {
                let at = motion::floor(text, at);
                let line = motion::line_around(text, at);
                if at == line.end && at > line.start { motion::before(text, at) } else { at }
            });
        }
    }

    fn word_at_caret(&self) -> String {
        let note = self.here.note.and_then(|note| self.session()?.note(note));
        let Some((note, caret)) = note.zip(self.here.editor.caret) else { return String::new() };
        let text = note.text();
        text.get(motion::word_around(&text, motion::floor(&text, caret.at))).unwrap_or("").trim().to_owned()
    }
}

fn is_escape(key: Key, modifiers: Modifiers) -> bool {
    (key == Key::Escape && modifiers.is_none())
        || (key == Key::OpenBracket && modifiers.matches_exact(Modifiers::COMMAND))
}

/// What a key that is no text means outside insert mode.
fn press(key: Key, modifiers: Modifiers) -> Option<Press> {
    if is_escape(key, modifiers) {
        return Some(Press::Escape);
    }
    if modifiers.matches_exact(Modifiers::COMMAND) {
        return match key {
            Key::R => Some(Press::Redo),
            Key::D => Some(Press::Half { down: true }),
            Key::U => Some(Press::Half { down: false }),
            _ => None,
        };
    }
    let letter = match key {
        Key::Enter => '\n',
        Key::Backspace | Key::ArrowLeft => 'h',
        Key::ArrowRight => 'l',
        Key::ArrowUp => 'k',
        Key::ArrowDown => 'j',
        Key::Home => '0',
        Key::End => '$',
        Key::Delete => 'x',
        _ => return None,
    };
    modifiers.is_none().then_some(Press::Letter(letter))
}

/// Whether a caret can stand at a byte: in a row that is to be seen, in code between its fences.
fn stands(at: usize, world: &mut World<'_>) -> bool {
    let Some(spot) = world.find(at) else { return true };
    let start = world.sheet.start(spot.block);
    let Some(row) = world.rows(spot.block).get(spot.row).filter(|row| !row.hidden).cloned() else { return false };
    let mut own = row.content;
    if let Some(code) = row.code.filter(|_| matches!(row.kind, Kind::Cell | Kind::Fence { closed: true })) {
        let text = world.texts.get(spot.block).and_then(|block| block.text.get(code.clone())).unwrap_or("");
        own = code.start..code.start + text.trim_end_matches(['\n', '\r']).len();
    }
    (start + own.start..=start + own.end).contains(&at)
}

/// The first byte of a line that is no space.
fn indent(text: &str, at: usize) -> usize {
    let line = motion::line_around(text, motion::floor(text, at));
    let words = &text[line.clone()];
    line.start + (words.len() - words.trim_start_matches([' ', '\t']).len())
}

/// Begins a line below that of the caret, as Enter does at its end, or above it.
fn open(editor: &mut Editor, world: &mut World<'_>, below: bool) -> Done {
    let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return Done::Not };
    let at = target.shown_byte(caret.at);
    let text = &target.shown;
    let line = motion::line_around(text, at);
    let lead = &text[line.start..indent(text, at)];
    let put = |at: usize, insert: &str, caret: usize| Done::edit(target.replace(at..at, insert, caret));
    if below {
        return editor.key(Key::Enter, Modifiers::NONE, world);
    }
    let mark = source::lead(&text[line.clone()], target.kind);
    match target.kind {
        Kind::Item { tail: false, .. } if line.start == 0 => {
            let mark = mark.replace("[x]", "[ ]").replace("[X]", "[ ]");
            put(0, &format!("{mark}\n"), mark.len())
        }
        Kind::Quote => put(line.start, &format!("{mark}\n"), mark.len()),
        kind if line.start == 0 && !kind.is_mono() && kind != Kind::Blank => put(0, "\n\n", 0),
        _ => put(line.start, &format!("{lead}\n"), lead.len()),
    }
}
