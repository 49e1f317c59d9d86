//! Vim keys in the window: passes keys to the Vim state machine (`vim.rs`), and applies its actions to the note.

mod command_line;
mod indent;
mod macros;
mod replace_mode;
pub(crate) mod vim_state;

use super::commands;
use crate::app_window::AppWindow;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::editor_keys::KeyOutcome;
use editor::motion;
use editor::note_editor::{Caret, CaretShape, EditContext, Editor, NoteEdit};
use editor::row_splitter::RowKind;
use editor::source_layout;
use editor::vim::{BufferView, VimAction, VimKey, VimMachine, VimMarks, VimMode, VimStroke};
use eframe::egui;
use egui::{Key, Modifiers};
use engine::keymap::KeymapPreset;
use notebook::page::NotePage;
use std::cell::RefCell;
use std::ops::Range;
use store::DocId;
use ui::theme;

/// Maximum number of wrapped lines that one command moves over.
const MAX_WRAPPED_LINES_PER_COMMAND: usize = 1_000;

/// Changes on one line within this many bytes count as one.
const SAME_LINE_CHANGE_BYTES: usize = 80;
/// How long a put waits for the clipboard, in seconds.
const CLIPBOARD_TIMEOUT_SECONDS: f64 = 1.0;

impl HostLink {
    pub(crate) fn preset(&self) -> KeymapPreset {
        self.session().settings().keymap_preset
    }
}

impl InputState {
    /// Returns whether letters are Vim commands now, rather than text.
    pub(crate) fn commands_by_letter(&self, host: &HostLink) -> bool {
        host.preset() == KeymapPreset::Vim && !self.vim.vim.mode().is_typing()
    }

    /// Returns whether Vim handles a key with Ctrl, even if the key is assigned to a command.
    pub(crate) fn is_vims(&self, host: &HostLink, key: Key, modifiers: Modifiers) -> bool {
        modifiers.matches_exact(Modifiers::COMMAND) && self.commands_by_letter(host) && press(key, modifiers).is_some()
    }

    /// Passes input to the state machine with the current text. Returns its actions.
    fn vim_asked(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        ctx: &egui::Context,
        ask: impl FnOnce(&mut VimMachine, &BufferView<'_>, Caret) -> Vec<VimAction>,
    ) -> Vec<VimAction> {
        let Some(note) = panes.active.note else { return Vec::new() };
        let mut vim = std::mem::take(&mut self.vim.vim);
        vim.places = self.vim.places.remove(&note).unwrap_or_default();
        let dark = ctx.global_style().visuals.dark_mode;
        let now = ctx.input(|input| input.time);
        let deeds = panes.with_note(host, ctx, dark, |world, editor, _| {
            editor.touched = now;
            go_along(&mut vim.places, world.note);
            let Some(caret) = editor.caret else { return Vec::new() };
            let text = world.note.text();
            let world = RefCell::new(world);
            let stands = |at: usize| is_caret_stop(at, &mut world.borrow_mut());
            ask(&mut vim, &BufferView { text: &text, stands: &stands }, caret)
        });
        self.vim.places.insert(note, std::mem::take(&mut vim.places));
        self.vim.vim = vim;
        deeds.unwrap_or_default()
    }

    /// Groups the edits of a finished command, so that they are undone together.
    fn finish_vim_action(&mut self, host: &HostLink, panes: &mut PaneState) {
        let vim = &self.vim.vim;
        let whole = vim.mode() == VimMode::Normal && !vim.replays && !vim.plays && !self.vim.playing.is_playing();
        let Some((begun, from)) = self.vim.from.take_if(|_| whole) else { return };
        let to = panes.undo_steps(host);
        if panes.active.note == Some(begun) && to > from + 1 {
            self.vim.whole.retain(|(other, steps)| *other != begun || steps.end <= from);
            self.vim.whole.push((begun, from..to));
        }
    }

    fn type_again(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        input: VimStroke,
    ) {
        let replaces = self.vim.vim.mode() == VimMode::Replace;
        match input {
            VimStroke::Text(text) if replaces => {
                self.overwrite_text(host, panes, notices, ctx, &text);
                true
            }
            VimStroke::Key(Key::Backspace, _) if replaces => self.restore_overwritten_char(host, panes, notices, ctx),
            VimStroke::Text(text) => panes.write(host, notices, ctx, |editor, world| editor.write(&text, world), false),
            VimStroke::Key(key, modifiers) => {
                panes.write(host, notices, ctx, |editor, world| editor.key(key, modifiers, world), false)
            }
        };
    }
}

impl PaneState {
    /// Returns the shape of the caret.
    pub(crate) fn caret_shape(&self, host: &HostLink, input: &InputState) -> CaretShape {
        match (input.commands_by_letter(host), self.commands_cells(host, input)) {
            (true, _) => CaretShape::Block,
            (false, true) => CaretShape::None,
            (false, false) => CaretShape::Line,
        }
    }

    /// Returns the text about the mode for the status bar.
    pub(crate) fn mode_says(&self, host: &HostLink, input: &InputState) -> Option<String> {
        if self.commands_cells(host, input) {
            return Some("Command".to_owned());
        }
        let caret = self.active.editor.caret.filter(|_| host.preset() == KeymapPreset::Vim)?;
        Some(input.vim.vim.status_text(caret.at, caret.anchor))
    }

    /// Returns the caret's position for Vim's keys, which is the last character in a selection.
    pub(crate) fn vim_caret(&self, input: &InputState) -> usize {
        let at = self.active.editor.caret.map_or(0, |caret| caret.at);
        input.vim.vim.head().unwrap_or(at)
    }

    fn undo_steps(&self, host: &HostLink) -> usize {
        self.open_note(host).map_or(0, engine::Note::undo_steps)
    }

    /// Sets several carets with their selections. The first is the main one.
    fn vim_select(&mut self, places: Vec<(usize, usize)>) {
        let mut carets = places.into_iter().map(|(at, anchor)| Caret { at, anchor });
        let Some(first) = carets.next() else { return };
        self.active.editor.select(first.anchor, first.at);
        self.active.editor.more = carets.collect();
    }

    fn vim_page(
        &mut self,
        host: &HostLink,
        ctx: &egui::Context,
        look: impl FnOnce(&mut NotePage, &mut Editor, &mut EditContext<'_>),
    ) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, page| look(page, editor, world));
    }

    /// Converts the line endings of edits to those of the note.
    fn with_line_ends(&mut self, host: &HostLink, ctx: &egui::Context, mut edits: Vec<NoteEdit>) -> Vec<NoteEdit> {
        let dark = ctx.global_style().visuals.dark_mode;
        if self.with_note(host, ctx, dark, |world, _, _| world.crlf()).unwrap_or(false) {
            edits.iter_mut().for_each(|edit| edit.insert = edit.insert.replace("\r\n", "\n").replace('\n', "\r\n"));
        }
        edits
    }

    /// Moves the caret to a position computed from the text.
    fn vim_place(&mut self, host: &HostLink, ctx: &egui::Context, place: impl FnOnce(&str, usize) -> usize) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, _| {
            let text = world.note.text();
            let at = editor.caret.map_or(0, |caret| motion::floor_grapheme(&text, caret.at));
            editor.place_caret(place(&text, at));
        });
    }

    /// Presses a key that moves by wrapped lines, at most as often as a command may.
    fn vim_repeat_key(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        key: Key,
        times: usize,
    ) {
        for _ in 0..times.min(MAX_WRAPPED_LINES_PER_COMMAND) {
            self.write(host, notices, ctx, |editor, world| editor.key(key, Modifiers::NONE, world), false);
        }
    }

    /// Replaces a range of the note, with the note's line endings. The caret moves to `at`.
    pub(crate) fn replace_text(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        range: Range<usize>,
        with: String,
        at: usize,
    ) {
        let dark = ctx.global_style().visuals.dark_mode;
        let crlf = self.with_note(host, ctx, dark, |world, _, _| world.crlf()).unwrap_or(false);
        let inside = at.saturating_sub(range.start).min(with.len());
        let (head, tail) = with.split_at(motion::floor_grapheme(&with, inside));
        let lines = |text: &str| if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
        let caret = if at > range.start { at + lines(head).len() - head.len() } else { at };
        let insert = lines(head) + &lines(tail);
        self.apply_edits(
            host,
            notices,
            vec![NoteEdit { at: range.start, delete: range.len(), insert, caret, anchor: caret }],
        );
        self.active.editor.reveal = true;
    }

    /// Returns whether a range spans more than one line.
    fn selects_lines(&self, host: &HostLink, range: &Range<usize>) -> bool {
        let note = self.open_note(host);
        note.and_then(|note| note.slice(range.start, range.len())).is_some_and(|text| text.contains('\n'))
    }

    /// Undoes or redoes whole commands.
    fn vim_undo(
        &mut self,
        host: &mut HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        times: usize,
        redo: bool,
    ) {
        let Some(note) = self.active.note else { return };
        let before = host.session().note(note).map_or(0, engine::Note::revision);
        for _ in 0..times.min(MAX_WRAPPED_LINES_PER_COMMAND) {
            let steps = self.undo_steps(host);
            let edge = |range: &Range<usize>| if redo { range.start } else { range.end };
            let whole = input.vim.whole.iter().find(|(other, range)| *other == note && edge(range) == steps);
            for _ in 0..whole.map_or(1, |(_, range)| range.len()) {
                self.undo(host, notices, redo);
            }
        }
        let noted = host.session().note(note);
        let first =
            noted.and_then(|note| note.shifts_since(before)).and_then(|shifts| shifts.map(|shift| shift.at).min());
        if let Some(at) = first {
            self.vim_place(host, ctx, |text, _| {
                let at = motion::floor_grapheme(text, at);
                let line = motion::line_around(text, at);
                if at == line.end && at > line.start { motion::previous_grapheme(text, at) } else { at }
            });
        }
    }

    fn word_at_caret(&self, host: &HostLink) -> String {
        let note = self.open_note(host);
        let Some((note, caret)) = note.zip(self.active.editor.caret) else { return String::new() };
        let text = note.text();
        text.get(motion::word_around(&text, motion::floor_grapheme(&text, caret.at))).unwrap_or("").trim().to_owned()
    }
}

impl AppWindow {
    /// Ends insert mode and closes the menus at the caret. Returns whether the key was used.
    pub(crate) fn vim_escape(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        let escapes = is_escape(key, modifiers) && self.host.preset() == KeymapPreset::Vim;
        if !escapes || !self.input.vim.vim.mode().is_typing() {
            return false;
        }
        self.input.complete_key(&mut self.host, &mut self.panes, &mut self.notices, Key::Escape, Modifiers::NONE);
        self.input.slash = None;
        self.input.vim.vim.record(VimStroke::Key(Key::Escape, Modifiers::NONE));
        self.vim_press(ctx, VimKey::Escape);
        self.continue_macro(ctx);
        true
    }

    /// Handles a key press other than text. Returns whether it was used.
    pub(crate) fn vim_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.host.preset() != KeymapPreset::Vim {
            return false;
        }
        if self.input.vim.vim.mode().is_typing() {
            let writes = modifiers.is_none() || modifiers.shift_only();
            let letters = matches!(key.name().chars().count(), 1);
            if writes && !letters {
                self.input.vim.vim.record(VimStroke::Key(key, modifiers));
            }
            return key == Key::Backspace
                && modifiers.is_none()
                && self.input.restore_overwritten_char(&mut self.host, &mut self.panes, &mut self.notices, ctx);
        }
        let Some(press) = press(key, modifiers) else { return false };
        self.input.vim.vim.record(VimStroke::Key(key, modifiers));
        self.vim_press(ctx, press);
        self.continue_macro(ctx);
        true
    }

    /// Handles typed text. Returns whether it was used as commands or to overwrite, rather than to be inserted.
    pub(crate) fn vim_text(&mut self, ctx: &egui::Context, text: &str) -> bool {
        if self.host.preset() != KeymapPreset::Vim {
            return false;
        }
        if self.input.vim.vim.mode() == VimMode::Insert {
            self.input.vim.vim.record(VimStroke::Text(text.to_owned()));
            return false;
        }
        if self.input.vim.vim.mode() == VimMode::Replace {
            self.input.vim.vim.record(VimStroke::Text(text.to_owned()));
            self.input.overwrite_text(&mut self.host, &mut self.panes, &mut self.notices, ctx, text);
            return true;
        }
        for letter in text.chars() {
            self.input.vim.vim.record(VimStroke::Text(letter.to_string()));
            self.vim_press(ctx, VimKey::Letter(letter));
            self.continue_macro(ctx);
        }
        true
    }

    /// Handles text from the clipboard. Returns whether it was used.
    ///
    /// A pending put inserts it. Otherwise, in normal mode, Ctrl+V selects a block, whatever the clipboard holds.
    pub(crate) fn vim_paste(&mut self, ctx: &egui::Context, text: &str) -> bool {
        let now = ctx.input(|input| input.time);
        let waits = self.input.vim.fetching.take().filter(|(.., since)| now - since < CLIPBOARD_TIMEOUT_SECONDS);
        if !self.input.commands_by_letter(&self.host) {
            return false;
        }
        match waits {
            Some((behind, times, _)) => {
                let text = text.replace("\r\n", "\n");
                let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
                    vim.paste_clipboard(&text, (behind, times), ground, caret.at)
                });
                self.apply_vim_actions(ctx, deeds);
            }
            None => _ = self.vim_key(ctx, Key::V, Modifiers::COMMAND),
        }
        true
    }

    /// Handles Ctrl+X, which arrives as a cut: in normal mode it decrements a number. Returns whether it was used.
    pub(crate) fn vim_cut(&mut self, ctx: &egui::Context) -> bool {
        self.input.commands_by_letter(&self.host) && self.vim_key(ctx, Key::X, Modifiers::COMMAND)
    }

    fn vim_press(&mut self, ctx: &egui::Context, press: VimKey) {
        let Some(note) = self.panes.active.note else { return };
        let steps = self.panes.undo_steps(&self.host);
        if !self.input.vim.vim.replays && !self.input.vim.vim.plays {
            self.input.vim.from.get_or_insert((note, steps));
        }
        if !self.input.vim.vim.mode().is_typing() {
            self.panes.active.editor.more.clear();
        }
        let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
            vim.handle_key(press, ground, caret.at, caret.anchor)
        });
        self.apply_vim_actions(ctx, deeds);
        self.input.finish_vim_action(&self.host, &mut self.panes);
        ctx.request_repaint();
    }

    fn apply_vim_actions(&mut self, ctx: &egui::Context, deeds: Vec<VimAction>) {
        for deed in deeds {
            let seen = matches!(
                deed,
                VimAction::Rows { .. }
                    | VimAction::Page { .. }
                    | VimAction::Screen { .. }
                    | VimAction::Match { .. }
                    | VimAction::Star { .. }
            );
            self.apply_vim_action(ctx, deed);
            // Motions by screen lines report the position back to the state machine.
            if seen {
                let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, caret| {
                    vim.extend_selection_to(ground, caret.at)
                });
                deeds.into_iter().for_each(|deed| self.apply_vim_action(ctx, deed));
            }
        }
    }

    /// Reports to the state machine that a search moved the caret, so that a selection extends there.
    pub(crate) fn vim_led(&mut self, ctx: &egui::Context, at: usize) {
        let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, _| {
            vim.extend_selection_to(ground, at.min(ground.text.len()))
        });
        self.apply_vim_actions(ctx, deeds);
    }

    fn apply_vim_action(&mut self, ctx: &egui::Context, deed: VimAction) {
        let none = Modifiers::NONE;
        match deed {
            VimAction::Place { at, anchor } => {
                self.panes.active.editor.more.clear();
                self.panes.active.editor.select(anchor, at);
            }
            VimAction::Splices { edits, at } => {
                let edits: Vec<NoteEdit> = edits
                    .into_iter()
                    .map(|(range, insert)| NoteEdit {
                        at: range.start,
                        delete: range.len(),
                        insert,
                        caret: at,
                        anchor: at,
                    })
                    .collect();
                let ends = self.panes.active.note.is_some_and(|_| edits.iter().any(|edit| edit.insert.contains('\n')));
                let edits = if ends { self.panes.with_line_ends(&self.host, ctx, edits) } else { edits };
                self.panes.apply_edits(&mut self.host, &mut self.notices, edits);
                self.panes.active.editor.more.clear();
                self.panes.active.editor.place_caret(at);
            }
            VimAction::Marked(mark) => {
                let here = self.panes.active.note;
                let others = self.input.vim.places.iter_mut().filter(|(note, _)| Some(**note) != here);
                others.for_each(|(_, places)| places.remove_mark(mark));
            }
            VimAction::Far { mark, line } => self.vim_far(ctx, mark, line),
            VimAction::Carets(places) => self.panes.vim_select(places.into_iter().map(|at| (at, at)).collect()),
            VimAction::Select(places) => self.panes.vim_select(places),
            VimAction::Indent(range) => self.panes.vim_indent(&mut self.host, &mut self.notices, ctx, &range),
            VimAction::Left => {
                self.panes.active.editor.more.clear();
                self.input.vim.overwritten.clear();
                self.panes.vim_place(&self.host, ctx, |text, at| {
                    if at > motion::line_around(text, at).start { motion::previous_grapheme(text, at) } else { at }
                });
            }
            VimAction::Replace { range, with, at } => {
                self.panes.replace_text(&mut self.host, &mut self.notices, ctx, range, with, at)
            }
            VimAction::Open { below } => {
                _ = self.panes.write(
                    &mut self.host,
                    &mut self.notices,
                    ctx,
                    |editor, world| open(editor, world, below),
                    false,
                )
            }
            VimAction::Shift { range, back, times } => {
                let first = range.start;
                let modifiers = if back { Modifiers::SHIFT } else { none };
                let several = self.panes.selects_lines(&self.host, &range);
                self.panes.active.editor.select(range.start, if several { range.end } else { range.start });
                for _ in 0..times.min(MAX_WRAPPED_LINES_PER_COMMAND) {
                    self.panes.write(
                        &mut self.host,
                        &mut self.notices,
                        ctx,
                        |editor, world| editor.key(Key::Tab, modifiers, world),
                        false,
                    );
                }
                self.panes.vim_place(&self.host, ctx, |text, _| indent(text, first));
            }
            VimAction::Undo(times) => {
                self.panes.vim_undo(&mut self.host, &mut self.input, &mut self.notices, ctx, times, false)
            }
            VimAction::Redo(times) => {
                self.panes.vim_undo(&mut self.host, &mut self.input, &mut self.notices, ctx, times, true)
            }
            VimAction::Find { back } => self.vim_find(ctx, back),
            VimAction::Match { back, times } => {
                for _ in 0..times.min(MAX_WRAPPED_LINES_PER_COMMAND) {
                    self.input.vim.vim.failed |=
                        !self.panes.seek_again(&self.host, &mut self.input, &mut self.notices, back);
                }
            }
            VimAction::Star { back } => {
                let word = self.panes.word_at_caret(&self.host);
                self.input.vim.vim.failed |=
                    !self.input.seek_word(&self.host, &mut self.panes, &mut self.notices, word, back);
            }
            VimAction::Again(inputs) => {
                self.input.vim.vim.replays = true;
                inputs.into_iter().for_each(|input| self.replay_stroke(ctx, input));
                self.input.vim.vim.replays = false;
            }
            VimAction::Type(inputs) => inputs.into_iter().for_each(|input| {
                self.input.type_again(&mut self.host, &mut self.panes, &mut self.notices, ctx, input)
            }),
            VimAction::Rows { down, times } => {
                let key = if down { Key::ArrowDown } else { Key::ArrowUp };
                self.panes.vim_repeat_key(&mut self.host, &mut self.notices, ctx, key, times);
            }
            VimAction::Page { pages } => {
                _ = self.panes.write(&mut self.host, &mut self.notices, ctx, |_, _| KeyOutcome::Page(pages), false)
            }
            VimAction::Seat { part } => {
                self.panes.vim_page(&self.host, ctx, |page, editor, world| page.scroll_caret_to(part, editor, world))
            }
            VimAction::Scroll { lines } => self.panes.active.page.scroll_by(lines * theme::body().line),
            VimAction::Screen { part, further } => {
                self.panes.vim_page(&self.host, ctx, |page, editor, world| page.go_to_part(part, editor, world));
                let key = if part < 0.5 { Key::ArrowDown } else { Key::ArrowUp };
                self.panes.vim_repeat_key(&mut self.host, &mut self.notices, ctx, key, further);
                self.panes.vim_place(&self.host, ctx, indent);
            }
            VimAction::Copy(text) => ctx.copy_text(text),
            VimAction::Fetch { behind, times } => {
                self.input.vim.fetching = Some((behind, times, ctx.input(|input| input.time)));
                ctx.send_viewport_cmd(egui::ViewportCommand::RequestPaste);
            }
            VimAction::Play { keys, times } => self.input.start_macro(keys, times),
            VimAction::Ex { visual } => self.vim_line(ctx, visual),
            VimAction::ExAgain => {
                let line = self.input.vim.line.clone();
                self.run_line(ctx, &line);
            }
            VimAction::Run(id) => {
                if let Some(what) = commands::window_command(id) {
                    self.run_command(ctx, what);
                }
            }
        }
    }

    /// Jumps to a mark in another note.
    fn vim_far(&mut self, ctx: &egui::Context, mark: char, line: bool) {
        let found = self.input.vim.places.iter().find_map(|(note, places)| Some((*note, places.get(mark)?)));
        let known = |note: DocId| self.host.session().locate_file(note).is_some();
        let Some((note, at)) = found.filter(|(note, _)| known(*note)) else {
            self.input.vim.vim.failed = true;
            return;
        };
        self.panes.open(&mut self.host, &mut self.notices, note);
        self.panes.active.page.point_out(at);
        self.panes.active.editor.place_caret(at);
        let deeds = self.input.vim_asked(&self.host, &mut self.panes, ctx, |vim, ground, _| {
            let at = motion::floor_grapheme(ground.text, vim.places.get(mark).unwrap_or(at).min(ground.text.len()));
            vim.extend_selection_to(ground, if line { ground.indent(ground.line(at).start) } else { at })
        });
        self.apply_vim_actions(ctx, deeds);
    }

    /// Replays a recorded key.
    fn replay_stroke(&mut self, ctx: &egui::Context, input: VimStroke) {
        self.input.vim.vim.record(input.clone());
        if self.input.vim.vim.mode().is_typing() {
            match input {
                VimStroke::Key(key, modifiers) if is_escape(key, modifiers) => self.vim_press(ctx, VimKey::Escape),
                input => self.input.type_again(&mut self.host, &mut self.panes, &mut self.notices, ctx, input),
            }
            return;
        }
        match input {
            VimStroke::Text(text) => text.chars().for_each(|letter| self.vim_press(ctx, VimKey::Letter(letter))),
            VimStroke::Key(key, modifiers) => {
                if let Some(press) = press(key, modifiers) {
                    self.vim_press(ctx, press);
                }
            }
        }
    }
}

/// Updates a note's marks to its current text.
fn go_along(places: &mut VimMarks, note: &engine::Note) {
    let since = std::mem::replace(&mut places.revision, note.revision());
    if since == note.revision() || since == 0 {
        return;
    }
    let (mut changed, mut last) = (None::<Range<usize>>, 0);
    for shift in note.shifts_since(since).into_iter().flatten() {
        places.shift_marks(shift.at, shift.delete, shift.insert);
        if shift.foreign {
            continue;
        }
        let end = shift.at + shift.insert;
        let carried = changed.take().map(|range| {
            let through = |at: usize| text::text_edit::shift_offset(at, shift.at, shift.delete, shift.insert, false);
            through(range.start).min(shift.at)..through(range.end).max(end)
        });
        changed = Some(carried.unwrap_or(shift.at..end));
        last = end.saturating_sub(1).max(shift.at);
    }
    if let Some(range) = changed {
        let near = places.last_change().is_some_and(|change| {
            let (from, to) = (change.min(last), change.max(last));
            to - from < SAME_LINE_CHANGE_BYTES && note.slice(from, to - from).is_some_and(|text| !text.contains('\n'))
        });
        places.record_change(range.start, range.end.saturating_sub(1).max(range.start), last, near);
    }
}

fn is_escape(key: Key, modifiers: Modifiers) -> bool {
    (key == Key::Escape && modifiers.is_none())
        || (key == Key::OpenBracket && modifiers.matches_exact(Modifiers::COMMAND))
}

/// Maps a key press other than text to a Vim key outside insert mode.
fn press(key: Key, modifiers: Modifiers) -> Option<VimKey> {
    if is_escape(key, modifiers) {
        return Some(VimKey::Escape);
    }
    if modifiers.matches_exact(Modifiers::COMMAND) {
        return match key {
            Key::R => Some(VimKey::Redo),
            Key::D => Some(VimKey::Half { down: true }),
            Key::U => Some(VimKey::Half { down: false }),
            Key::F => Some(VimKey::Page { down: true }),
            Key::B => Some(VimKey::Page { down: false }),
            Key::E => Some(VimKey::Scroll { down: true }),
            Key::Y => Some(VimKey::Scroll { down: false }),
            Key::A => Some(VimKey::Count { down: false }),
            Key::X => Some(VimKey::Count { down: true }),
            Key::O => Some(VimKey::Jump { back: true }),
            Key::I => Some(VimKey::Jump { back: false }),
            Key::V => Some(VimKey::Block),
            _ => None,
        };
    }
    if modifiers.is_none() && matches!(key, Key::PageDown | Key::PageUp) {
        return Some(VimKey::Page { down: key == Key::PageDown });
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
    modifiers.is_none().then_some(VimKey::Letter(letter))
}

/// Returns whether the caret can be at a byte: in a visible row, and within the fences of code.
fn is_caret_stop(at: usize, world: &mut EditContext<'_>) -> bool {
    let Some(spot) = world.find_row(at) else { return true };
    let start = world.sheet.start(spot.block);
    let Some(row) = world.rows(spot.block).get(spot.row).filter(|row| !row.hidden).cloned() else { return false };
    let mut own = row.content;
    if let Some(code) = row.code.filter(|_| matches!(row.kind, RowKind::Cell | RowKind::Fence { closed: true })) {
        let text = world.texts.get(spot.block).and_then(|block| block.text.get(code.clone())).unwrap_or("");
        own = code.start..code.start + text.trim_end_matches(['\n', '\r']).len();
    }
    (start + own.start..=start + own.end).contains(&at)
}

/// Returns the position of the first character in a line that isn't a space or tab.
fn indent(text: &str, at: usize) -> usize {
    let line = motion::line_around(text, motion::floor_grapheme(text, at));
    let words = &text[line.clone()];
    line.start + (words.len() - words.trim_start_matches([' ', '\t']).len())
}

/// Opens a line below the caret's line, as Enter does at its end, or above it.
fn open(editor: &mut Editor, world: &mut EditContext<'_>, below: bool) -> KeyOutcome {
    let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else { return KeyOutcome::Not };
    let at = target.shown_byte(caret.at);
    let text = &target.shown;
    let line = motion::line_around(text, at);
    let lead = &text[line.start..indent(text, at)];
    let put = |at: usize, insert: &str, caret: usize| KeyOutcome::edit(target.replace(at..at, insert, caret));
    if below {
        return editor.key(Key::Enter, Modifiers::NONE, world);
    }
    let mark = source_layout::row_marks(&text[line.clone()], target.kind);
    match target.kind {
        RowKind::Item { tail: false, .. } if line.start == 0 => {
            let mark = mark.replace("[x]", "[ ]").replace("[X]", "[ ]");
            put(0, &format!("{mark}\n"), mark.len())
        }
        RowKind::Quote => put(line.start, &format!("{mark}\n"), mark.len()),
        kind if line.start == 0 && !kind.is_mono() && kind != RowKind::Blank => put(0, "\n\n", 0),
        _ => put(line.start, &format!("{lead}\n"), lead.len()),
    }
}
