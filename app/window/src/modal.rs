//! Editors with modes: brings keys to Vim's machine (`vim.rs`), and does in the note what it answers.

mod indent;
mod lines;
mod overwriting;
mod playing;

use super::Window;
use super::commands;
use super::page::Page;
use editor::keys::Done;
use editor::note_editor::{Caret, Edit, Editor, Shape, World};
use editor::rows::Kind;
use editor::vim::{Deed, Ground, Mode, Places, Press, Stroke, Vim};
use editor::{motion, source};
use eframe::egui;
use egui::{Key, Modifiers};
use engine::keymap::Preset;
use playing::Playing;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use store::DocId;
use ui::tokens;

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
    /// The marks of each note.
    places: HashMap<DocId, Places>,
    /// Keys of registers that are being played.
    playing: Playing,
    /// What was overwritten, letter by letter; `None`: there was none, the line ended.
    overwritten: Vec<Option<String>>,
    /// The last line behind a colon.
    line: String,
    /// What waits for the clipboard: behind the caret or in front of it, how often, and since when.
    fetching: Option<(bool, usize, f64)>,
}

/// Changes within so many bytes of one line are one.
const LINE: usize = 80;
/// So long, in seconds, a put waits for the clipboard.
const PATIENCE: f64 = 1.0;

impl Window {
    pub(super) fn preset(&self) -> Preset {
        self.session().map_or(Preset::default(), |session| session.settings().preset)
    }

    /// Whether letters are commands now, and no text.
    pub(super) fn commands_by_letter(&self) -> bool {
        self.preset() == Preset::Vim && !self.modal.vim.mode().writes()
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
        if !escapes || !self.modal.vim.mode().writes() {
            return false;
        }
        self.complete_key(Key::Escape, Modifiers::NONE);
        self.slash = None;
        self.modal.vim.record(Stroke::Key(Key::Escape, Modifiers::NONE));
        self.vim_press(ctx, Press::Escape);
        self.play_on(ctx);
        true
    }

    /// Whether a key with Ctrl is Vim's now, whatever command has it elsewhere.
    pub(super) fn is_vims(&self, key: Key, modifiers: Modifiers) -> bool {
        modifiers.matches_exact(Modifiers::COMMAND) && self.commands_by_letter() && press(key, modifiers).is_some()
    }

    /// Answers a key that is no text. Whether it meant something.
    pub(super) fn vim_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.preset() != Preset::Vim {
            return false;
        }
        if self.modal.vim.mode().writes() {
            let writes = modifiers.is_none() || modifiers.shift_only();
            let letters = matches!(key.name().chars().count(), 1);
            if writes && !letters {
                self.modal.vim.record(Stroke::Key(key, modifiers));
            }
            return key == Key::Backspace && modifiers.is_none() && self.put_back_letter(ctx);
        }
        let Some(press) = press(key, modifiers) else { return false };
        self.modal.vim.record(Stroke::Key(key, modifiers));
        self.vim_press(ctx, press);
        self.play_on(ctx);
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
        if self.modal.vim.mode() == Mode::Replace {
            self.modal.vim.record(Stroke::Text(text.to_owned()));
            self.overwrite(ctx, text);
            return true;
        }
        for letter in text.chars() {
            self.modal.vim.record(Stroke::Text(letter.to_string()));
            self.vim_press(ctx, Press::Letter(letter));
            self.play_on(ctx);
        }
        true
    }

    /// Answers what comes from the clipboard: what waits for it is put; where letters are commands, Ctrl+V selects a
    /// block, whatever the clipboard holds.
    pub(super) fn vim_paste(&mut self, ctx: &egui::Context, text: &str) -> bool {
        let now = ctx.input(|input| input.time);
        let waits = self.modal.fetching.take().filter(|(.., since)| now - since < PATIENCE);
        if !self.commands_by_letter() {
            return false;
        }
        match waits {
            Some((behind, times, _)) => {
                let text = text.replace("\r\n", "\n");
                let deeds =
                    self.vim_asked(ctx, |vim, ground, caret| vim.fetched(&text, (behind, times), ground, caret.at));
                self.vim_deeds(ctx, deeds);
            }
            None => _ = self.vim_key(ctx, Key::V, Modifiers::COMMAND),
        }
        true
    }

    /// What Ctrl+X takes for a cut elsewhere makes a number smaller where letters are commands.
    pub(super) fn vim_cut(&mut self, ctx: &egui::Context) -> bool {
        self.commands_by_letter() && self.vim_key(ctx, Key::X, Modifiers::COMMAND)
    }

    fn vim_press(&mut self, ctx: &egui::Context, press: Press) {
        let Some(note) = self.here.note else { return };
        let steps = self.undo_steps();
        if !self.modal.vim.replays && !self.modal.vim.plays {
            self.modal.from.get_or_insert((note, steps));
        }
        if !self.modal.vim.mode().writes() {
            self.here.editor.more.clear();
        }
        let deeds = self.vim_asked(ctx, |vim, ground, caret| vim.press(press, ground, caret.at, caret.anchor));
        self.vim_deeds(ctx, deeds);
        self.vim_settle();
        ctx.request_repaint();
    }

    /// Asks the machine, with the text as it is now.
    fn vim_asked(
        &mut self,
        ctx: &egui::Context,
        ask: impl FnOnce(&mut Vim, &Ground<'_>, Caret) -> Vec<Deed>,
    ) -> Vec<Deed> {
        let Some(note) = self.here.note else { return Vec::new() };
        let mut vim = std::mem::take(&mut self.modal.vim);
        vim.places = self.modal.places.remove(&note).unwrap_or_default();
        let dark = ctx.global_style().visuals.dark_mode;
        let now = ctx.input(|input| input.time);
        let deeds = self.with_note(ctx, dark, |world, editor, _| {
            editor.touched = now;
            go_along(&mut vim.places, world.note);
            let Some(caret) = editor.caret else { return Vec::new() };
            let text = world.note.text();
            let world = RefCell::new(world);
            let stands = |at: usize| stands(at, &mut world.borrow_mut());
            ask(&mut vim, &Ground { text: &text, stands: &stands }, caret)
        });
        self.modal.places.insert(note, std::mem::take(&mut vim.places));
        self.modal.vim = vim;
        deeds.unwrap_or_default()
    }

    fn vim_deeds(&mut self, ctx: &egui::Context, deeds: Vec<Deed>) {
        for deed in deeds {
            let seen = matches!(
                deed,
                Deed::Rows { .. } | Deed::Page { .. } | Deed::Screen { .. } | Deed::Match { .. } | Deed::Star { .. }
            );
            self.vim_deed(ctx, deed);
            // What goes by what is seen tells the machine where that was.
            if seen {
                let deeds = self.vim_asked(ctx, |vim, ground, caret| vim.led(ground, caret.at));
                deeds.into_iter().for_each(|deed| self.vim_deed(ctx, deed));
            }
        }
    }

    /// Where Vim's keys see the caret: in a selection, on its last letter.
    pub(super) fn vim_caret(&self) -> usize {
        let at = self.here.editor.caret.map_or(0, |caret| caret.at);
        self.modal.vim.head().unwrap_or(at)
    }

    /// Tells the machine that a search has led the caret to a place, up to which a selection reaches.
    pub(super) fn vim_led(&mut self, ctx: &egui::Context, at: usize) {
        let deeds = self.vim_asked(ctx, |vim, ground, _| vim.led(ground, at.min(ground.text.len())));
        self.vim_deeds(ctx, deeds);
    }

    /// Where a command has ended, its edits are taken back together from now on.
    fn vim_settle(&mut self) {
        let vim = &self.modal.vim;
        let whole = vim.mode() == Mode::Normal && !vim.replays && !vim.plays && !self.modal.playing.is_on();
        let Some((begun, from)) = self.modal.from.take_if(|_| whole) else { return };
        let to = self.undo_steps();
        if self.here.note == Some(begun) && to > from + 1 {
            self.modal.whole.retain(|(other, steps)| *other != begun || steps.end <= from);
            self.modal.whole.push((begun, from..to));
        }
    }

    fn undo_steps(&self) -> usize {
        self.here.note.and_then(|note| self.session()?.note(note)).map_or(0, engine::Note::undo_steps)
    }

    fn vim_deed(&mut self, ctx: &egui::Context, deed: Deed) {
        let none = Modifiers::NONE;
        match deed {
            Deed::Place { at, anchor } => {
                self.here.editor.more.clear();
                self.here.editor.select(anchor, at);
            }
            Deed::Splices { edits, at } => {
                let edits: Vec<Edit> = edits
                    .into_iter()
                    .map(|(range, insert)| Edit { at: range.start, delete: range.len(), insert, caret: at, anchor: at })
                    .collect();
                let ends = self.here.note.is_some_and(|_| edits.iter().any(|edit| edit.insert.contains('\n')));
                let edits = if ends { self.with_line_ends(ctx, edits) } else { edits };
                self.edit(edits);
                self.here.editor.more.clear();
                self.here.editor.place(at);
            }
            Deed::Marked(mark) => {
                let here = self.here.note;
                let others = self.modal.places.iter_mut().filter(|(note, _)| Some(**note) != here);
                others.for_each(|(_, places)| places.unset(mark));
            }
            Deed::Far { mark, line } => self.vim_far(ctx, mark, line),
            Deed::Carets(places) => self.vim_select(places.into_iter().map(|at| (at, at)).collect()),
            Deed::Select(places) => self.vim_select(places),
            Deed::Indent(range) => self.vim_indent(ctx, &range),
            Deed::Left => {
                self.here.editor.more.clear();
                self.modal.overwritten.clear();
                self.vim_place(ctx, |text, at| {
                    if at > motion::line_around(text, at).start { motion::before(text, at) } else { at }
                });
            }
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
            Deed::Find { back } => self.vim_find(ctx, back),
            Deed::Match { back, times } => {
                for _ in 0..times.min(ROWS) {
                    self.modal.vim.failed |= !self.seek_again(back);
                }
            }
            Deed::Star { back } => {
                let word = self.word_at_caret();
                self.modal.vim.failed |= !self.seek_word(word, back);
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
            Deed::Page { pages } => _ = self.write(ctx, |_, _| Done::Page(pages), false),
            Deed::Seat { part } => self.vim_page(ctx, |page, editor, world| page.seat(part, editor, world)),
            Deed::Scroll { lines } => self.here.page.scroll_by(lines * tokens::body().line),
            Deed::Screen { part, further } => {
                self.vim_page(ctx, |page, editor, world| page.go_to_part(part, editor, world));
                let key = if part < 0.5 { Key::ArrowDown } else { Key::ArrowUp };
                for _ in 0..further.min(ROWS) {
                    self.write(ctx, |editor, world| editor.key(key, none, world), false);
                }
                self.vim_place(ctx, indent);
            }
            Deed::Copy(text) => ctx.copy_text(text),
            Deed::Fetch { behind, times } => {
                self.modal.fetching = Some((behind, times, ctx.input(|input| input.time)));
                ctx.send_viewport_cmd(egui::ViewportCommand::RequestPaste);
            }
            Deed::Play { keys, times } => self.begin_play(keys, times),
            Deed::Ex { visual } => self.vim_line(ctx, visual),
            Deed::ExAgain => {
                let line = self.modal.line.clone();
                self.run_line(ctx, &line);
            }
            Deed::Run(id) => {
                if let Some(what) = commands::what(id) {
                    self.run(ctx, what);
                }
            }
        }
    }

    /// Goes to a mark in another note.
    fn vim_far(&mut self, ctx: &egui::Context, mark: char, line: bool) {
        let found = self.modal.places.iter().find_map(|(note, places)| Some((*note, places.get(mark)?)));
        let known = |note: DocId| self.session().is_some_and(|session| session.place(note).is_some());
        let Some((note, at)) = found.filter(|(note, _)| known(*note)) else {
            self.modal.vim.failed = true;
            return;
        };
        self.open(note);
        self.here.page.point_out(at);
        self.here.editor.place(at);
        let deeds = self.vim_asked(ctx, |vim, ground, _| {
            let at = motion::floor(ground.text, vim.places.get(mark).unwrap_or(at).min(ground.text.len()));
            vim.led(ground, if line { ground.indent(ground.line(at).start) } else { at })
        });
        self.vim_deeds(ctx, deeds);
    }

    /// Several carets, each with what it selects; the first leads.
    fn vim_select(&mut self, places: Vec<(usize, usize)>) {
        let mut carets = places.into_iter().map(|(at, anchor)| Caret { at, anchor });
        let Some(first) = carets.next() else { return };
        self.here.editor.select(first.anchor, first.at);
        self.here.editor.more = carets.collect();
    }

    fn vim_page(&mut self, ctx: &egui::Context, look: impl FnOnce(&mut Page, &mut Editor, &mut World<'_>)) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, page| look(page, editor, world));
    }

    /// Edits with line ends as the note has them.
    fn with_line_ends(&mut self, ctx: &egui::Context, mut edits: Vec<Edit>) -> Vec<Edit> {
        let dark = ctx.global_style().visuals.dark_mode;
        if self.with_note(ctx, dark, |world, _, _| world.crlf()).unwrap_or(false) {
            edits.iter_mut().for_each(|edit| edit.insert = edit.insert.replace("\r\n", "\n").replace('\n', "\r\n"));
        }
        edits
    }

    /// Plays a key that was pressed before.
    fn play(&mut self, ctx: &egui::Context, input: Stroke) {
        self.modal.vim.record(input.clone());
        if self.modal.vim.mode().writes() {
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
        let replaces = self.modal.vim.mode() == Mode::Replace;
        match input {
            Stroke::Text(text) if replaces => {
                self.overwrite(ctx, &text);
                true
            }
            Stroke::Key(Key::Backspace, _) if replaces => self.put_back_letter(ctx),
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
            noted.and_then(|note| note.shifts_since(before)).and_then(|shifts| shifts.map(|shift| shift.at).min());
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

/// Brings the marks of a note up to what it is now.
fn go_along(places: &mut Places, note: &engine::Note) {
    let since = std::mem::replace(&mut places.revision, note.revision());
    if since == note.revision() || since == 0 {
        return;
    }
    let (mut changed, mut last) = (None::<Range<usize>>, 0);
    for shift in note.shifts_since(since).into_iter().flatten() {
        places.shift(shift.at, shift.delete, shift.insert);
        if shift.foreign {
            continue;
        }
        let end = shift.at + shift.insert;
        let carried = changed.take().map(|range| {
            let through = |at: usize| text::splice::moved(at, shift.at, shift.delete, shift.insert, false);
            through(range.start).min(shift.at)..through(range.end).max(end)
        });
        changed = Some(carried.unwrap_or(shift.at..end));
        last = end.saturating_sub(1).max(shift.at);
    }
    if let Some(range) = changed {
        let near = places.last_change().is_some_and(|change| {
            let (from, to) = (change.min(last), change.max(last));
            to - from < LINE && note.slice(from, to - from).is_some_and(|text| !text.contains('\n'))
        });
        places.changed(range.start, range.end.saturating_sub(1).max(range.start), last, near);
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
            Key::F => Some(Press::Page { down: true }),
            Key::B => Some(Press::Page { down: false }),
            Key::E => Some(Press::Scroll { down: true }),
            Key::Y => Some(Press::Scroll { down: false }),
            Key::A => Some(Press::Count { down: false }),
            Key::X => Some(Press::Count { down: true }),
            Key::O => Some(Press::Jump { back: true }),
            Key::I => Some(Press::Jump { back: false }),
            Key::V => Some(Press::Block),
            _ => None,
        };
    }
    if modifiers.is_none() && matches!(key, Key::PageDown | Key::PageUp) {
        return Some(Press::Page { down: key == Key::PageDown });
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
