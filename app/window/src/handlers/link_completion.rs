//! Completes the link that is being written.

use crate::app_window::AppWindow;
use crate::overlays::link_completion::{MAX_LINK_QUERY_BYTES, offers};
use crate::overlays::window_overlay::WindowOverlay;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::{Key, Modifiers};

impl AppWindow {
    /// Checks the text before the caret, and draws suggestions.
    pub(crate) fn show_link_completion(&mut self, ctx: &egui::Context) {
        let typed = self.typed();
        if typed.as_ref().map(|(from, _)| *from) != self.completion.left {
            self.completion.left = None;
        }
        self.completion.open = typed.filter(|_| self.completion.left.is_none());
        let Some(((_, query), session)) =
            self.completion.open.clone().zip(self.driver.as_ref().map(host::Driver::session))
        else {
            self.completion.made = None;
            return;
        };
        let Some(note) = self.active_pane.note else { return };
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let key = (note, volume.links.revision(), query.clone());
        if self.completion.made.as_ref() != Some(&key) {
            self.completion.offers = offers(session, volume, note, &query);
            self.completion.chosen = 0;
            self.completion.made = Some(key);
        }
        if self.completion.offers.is_empty() {
            self.completion.open = None;
            return;
        }
        let Some(caret) = self.active_pane.editor.stands else { return };
        if let Some(chosen) = self.completion.show(ctx, caret) {
            self.completion.chosen = chosen;
            self.accept();
        }
    }

    /// What was typed behind `[[`, and where that begins.
    fn typed(&self) -> Option<(usize, String)> {
        let editor = &self.active_pane.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
        if self.view.is_some() || !matches!(self.overlay, WindowOverlay::None) || self.commands_by_letter() {
            return None;
        }
        let note = self.session()?.note(self.active_pane.note?)?;
        let before = (0..4).find_map(|less| {
            let length = caret.at.min(MAX_LINK_QUERY_BYTES) - less.min(caret.at);
            note.slice(caret.at - length, length)
        })?;
        let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
        let query = &line[line.rfind("[[")? + 2..];
        (!query.contains("]]") && !query.contains('|')).then(|| (caret.at - query.len(), query.to_owned()))
    }

    /// A key while something is offered; whether it meant that.
    pub(crate) fn complete_key(&mut self, key: Key, modifiers: Modifiers) -> bool {
        let Some((from, _)) = &self.completion.open else { return false };
        let count = self.completion.offers.len();
        if !modifiers.is_none() || count == 0 {
            return false;
        }
        match key {
            Key::ArrowDown => self.completion.chosen = (self.completion.chosen + 1) % count,
            Key::ArrowUp => self.completion.chosen = (self.completion.chosen + count - 1) % count,
            Key::Enter => self.accept(),
            Key::Escape => self.completion.left = Some(*from),
            _ => return false,
        }
        true
    }

    /// Writes what was chosen.
    fn accept(&mut self) {
        let Some((at, query)) = self.completion.open.take() else { return };
        let Some(offer) = self.completion.offers.get(self.completion.chosen).cloned() else { return };
        let note = self.session().zip(self.active_pane.note).and_then(|(session, note)| session.note(note));
        let closed = note.and_then(|note| note.slice(at + query.len(), 2)).is_some_and(|rest| rest == "]]");
        let delete = query.len() + if closed { 2 } else { 0 };
        let insert = format!("{}]]", offer.insert);
        let caret = at + insert.len();
        self.apply_edits(vec![NoteEdit { at, delete, insert, caret, anchor: caret }]);
        self.completion.made = None;
    }
}
