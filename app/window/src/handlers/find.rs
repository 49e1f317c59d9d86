//! Searches the open note and moves between matches.

use crate::app_window::AppWindow;
use crate::overlays::find_bar::{FindBar, field, with_field};
use crate::shell::commands;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use egui::{Key, Modifiers};
use std::rc::Rc;
use text::find_query::FindQuery;

impl PaneState {
    /// Opens the find bar with the selected text.
    pub(crate) fn open_find(
        &mut self,
        host: &HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        replacing: bool,
    ) {
        if self.active.note.is_none() {
            notices.toasts.show_message("No note is open.");
            return;
        }
        let selected = self.selected_text(host);
        let from = self.active.editor.caret.map_or(0, |caret| caret.range().start);
        let find = input.find.get_or_insert_default();
        if !selected.is_empty() && !selected.contains('\n') {
            find.query.text = selected;
        }
        find.replacing |= replacing;
        find.focus = Some(field());
        find.go = Some(from).filter(|_| !find.query.text.is_empty());
        // When the palette that started this closes, it would give the keyboard focus back to the note.
        self.active.editor.focus = false;
    }

    /// Removes highlights of matches.
    pub(crate) fn unmark_found(&mut self, host: &HostLink, input: &mut InputState) {
        if input.find.is_some() {
            self.close_find(host, input);
        }
        self.active.page.found = Rc::default();
        self.active.page.current = None;
    }

    /// Closes the bar. The last match stays selected.
    pub(crate) fn close_find(&mut self, host: &HostLink, input: &mut InputState) {
        input.last_search = input.find.take().or(input.last_search.take());
        if let Some(caret) = self.active.editor.caret.filter(|_| input.commands_by_letter(host)) {
            self.active.editor.place_caret(caret.range().start);
        }
        self.active.page.found = Rc::default();
        self.active.page.current = None;
        self.active.editor.focus = self.active.editor.caret.is_some();
    }

    /// Moves to the next or previous match.
    pub(crate) fn next_match(
        &mut self,
        host: &HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        back: bool,
    ) {
        let note = self.open_note(host);
        let (Some(find), Some(note)) = (&mut input.find, note) else {
            self.open_find(host, input, notices, false);
            return;
        };
        find.refresh(note);
        let caret = self.active.editor.caret.map_or(0..0, editor::note_editor::Caret::range);
        find.go(&mut self.active, if back { caret.start } else { caret.end }, back);
    }

    /// Jumps to the next or previous match of the last search, even if the bar is closed. Returns whether there is one.
    pub(crate) fn seek_again(
        &mut self,
        host: &HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        back: bool,
    ) -> bool {
        let note = self.open_note(host);
        let (Some(find), Some(note)) = (input.find.as_mut().or(input.last_search.as_mut()), note) else {
            self.open_find(host, input, notices, false);
            return false;
        };
        find.refresh(note);
        let back = back != find.back;
        let at = self.active.editor.caret.map_or(0, |caret| caret.range().start);
        let next = match back {
            true => find.found[..find.found.partition_point(|range| range.start < at)].last().or(find.found.last()),
            false => find.found.get(find.found.partition_point(|range| range.start <= at)).or(find.found.first()),
        };
        match next {
            Some(range) => self.active.editor.place_caret(range.start),
            None => {
                notices.toasts.show_message(format!("No match: {}", find.query.text));
                return false;
            }
        }
        true
    }
}

impl AppWindow {
    /// Opens the bar as Vim's `/` and `?` do: empty, with the first match searched after or before the caret.
    pub(crate) fn open_seeking(&mut self, ctx: &egui::Context, back: bool) {
        let at = self.panes.vim_caret(&self.input);
        self.panes.active.editor.select(at, at);
        self.run_command(ctx, commands::WindowCommand::Find);
        let note = self.panes.open_note(&self.host);
        let next = note.map_or(at, |note| editor::motion::next_grapheme(&note.text(), at));
        if let Some(find) = &mut self.input.find {
            find.query.text.clear();
            (find.back, find.origin) = (back, Some((at, if back { at } else { next })));
            find.go = None;
        }
    }

    /// Handles a key press while the bar has the keyboard focus. Returns whether it was used.
    pub(crate) fn find_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        let focused = ctx.memory(|memory| memory.focused());
        // Escape has already removed the focus from the field.
        let left = focused.is_none() && key == Key::Escape;
        if self.input.find.is_none() || !(left || focused == Some(field()) || focused == Some(with_field())) {
            return false;
        }
        match key {
            Key::Escape if modifiers.is_none() => {
                // Canceling puts the caret back where it was.
                let origin = self.input.find.as_ref().and_then(|find| find.origin);
                self.panes.close_find(&self.host, &mut self.input);
                if let Some((at, _)) = origin.filter(|_| self.input.commands_by_letter(&self.host)) {
                    self.vim_led(ctx, at);
                }
            }
            // Enter ends the search, and the note gets the keys again.
            Key::Enter
                if modifiers.is_none() && focused == Some(field()) && self.input.commands_by_letter(&self.host) =>
            {
                let note = self.panes.open_note(&self.host);
                if let (Some(find), Some(note)) = (&mut self.input.find, note) {
                    // The caret may not have moved to the match for the last typed characters yet.
                    find.refresh(note);
                    if let Some(from) = find.go.take() {
                        find.go(&mut self.panes.active, from, find.back);
                    }
                    let words = find.query.text.clone();
                    self.input.record_line(&words);
                }
                self.panes.close_find(&self.host, &mut self.input);
                let at = self.panes.active.editor.caret.map_or(0, |caret| caret.at);
                self.vim_led(ctx, at);
            }
            Key::Enter if modifiers.is_none() && focused == Some(field()) => {
                self.panes.next_match(&self.host, &mut self.input, &mut self.notices, false)
            }
            Key::Enter if modifiers.shift_only() => {
                self.panes.next_match(&self.host, &mut self.input, &mut self.notices, true)
            }
            Key::Enter if modifiers.is_none() => {
                let note = self.panes.open_note(&self.host);
                let mut actions = Vec::new();
                if let (Some(find), Some(note)) = (&mut self.input.find, note) {
                    find.replace(note, &mut self.panes.active, false, &mut actions);
                }
                self.perform_actions(ctx, actions);
            }
            _ => return false,
        }
        ctx.request_repaint();
        true
    }
}

impl InputState {
    /// Searches for a pattern as Vim's `/` does. Returns whether there's a match.
    pub(crate) fn find_pattern(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        words: String,
        back: bool,
    ) -> bool {
        let find = self.last_search.get_or_insert_default();
        if !words.is_empty() {
            find.query = FindQuery { text: words, ..FindQuery::default() };
        }
        find.back = back;
        self.find = None;
        panes.seek_again(host, self, notices, false)
    }

    /// Returns the last search as a pattern.
    pub(crate) fn last_search_pattern(&self) -> Option<String> {
        let query = &self.find.as_ref().or(self.last_search.as_ref())?.query;
        let pattern = if query.regex { query.text.clone() } else { regex_lite::escape(&query.text) };
        (!pattern.is_empty()).then_some(pattern)
    }

    /// Stores the last search.
    pub(crate) fn remember_search(&mut self, pattern: String, case: bool) {
        let query = FindQuery { text: pattern, case, whole: false, regex: true };
        self.last_search = Some(FindBar { query, ..FindBar::default() });
    }

    /// Searches for a whole word after or before the caret. Returns whether there's a match.
    pub(crate) fn seek_word(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        word: String,
        back: bool,
    ) -> bool {
        if word.is_empty() {
            return false;
        }
        let query = FindQuery { text: word, case: true, whole: true, regex: false };
        match &mut self.find {
            Some(find) => (find.query, find.back) = (query, back),
            None => self.last_search = Some(FindBar { query, back, ..FindBar::default() }),
        }
        panes.seek_again(host, self, notices, false)
    }
}
