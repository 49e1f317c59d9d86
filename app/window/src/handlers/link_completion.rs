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
        if typed.as_ref().map(|(from, _)| *from) != self.input.link_completion.left {
            self.input.link_completion.left = None;
        }
        self.input.link_completion.open = typed.filter(|_| self.input.link_completion.left.is_none());
        let Some((_, query)) = self.input.link_completion.open.clone() else {
            self.input.link_completion.made = None;
            return;
        };
        let session = self.host.session();
        let Some(note) = self.panes.active.note else { return };
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let key = (note, volume.links.revision(), query.clone());
        if self.input.link_completion.made.as_ref() != Some(&key) {
            self.input.link_completion.offers = offers(session, volume, note, &query);
            self.input.link_completion.chosen = 0;
            self.input.link_completion.made = Some(key);
        }
        if self.input.link_completion.offers.is_empty() {
            self.input.link_completion.open = None;
            return;
        }
        let Some(caret) = self.panes.active.editor.stands else { return };
        if let Some(chosen) = self.input.link_completion.show(ctx, caret) {
            self.input.link_completion.chosen = chosen;
            self.accept();
        }
    }

    /// What was typed behind `[[`, and where that begins.
    fn typed(&self) -> Option<(usize, String)> {
        let editor = &self.panes.active.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
        if self.panes.view.is_some() || !matches!(self.overlay, WindowOverlay::None) || self.commands_by_letter() {
            return None;
        }
        let note = self.panes.open_note(&self.host)?;
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
        let Some((from, _)) = &self.input.link_completion.open else { return false };
        let count = self.input.link_completion.offers.len();
        if !modifiers.is_none() || count == 0 {
            return false;
        }
        match key {
            Key::ArrowDown => self.input.link_completion.chosen = (self.input.link_completion.chosen + 1) % count,
            Key::ArrowUp => self.input.link_completion.chosen = (self.input.link_completion.chosen + count - 1) % count,
            Key::Enter => self.accept(),
            Key::Escape => self.input.link_completion.left = Some(*from),
            _ => return false,
        }
        true
    }

    /// Writes what was chosen.
    fn accept(&mut self) {
        let Some((at, query)) = self.input.link_completion.open.take() else { return };
        let Some(offer) = self.input.link_completion.offers.get(self.input.link_completion.chosen).cloned() else {
            return;
        };
        let note = self.panes.open_note(&self.host);
        let closed = note.and_then(|note| note.slice(at + query.len(), 2)).is_some_and(|rest| rest == "]]");
        let delete = query.len() + if closed { 2 } else { 0 };
        let insert = format!("{}]]", offer.insert);
        let caret = at + insert.len();
        self.apply_edits(vec![NoteEdit { at, delete, insert, caret, anchor: caret }]);
        self.input.link_completion.made = None;
    }
}
