//! Completes the link at the caret.

use crate::overlays::link_completion::{MAX_LINK_QUERY_BYTES, offers};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::FirstStep;

impl InputState {
    /// Checks the text before the caret, and draws suggestions.
    pub(crate) fn show_link_completion(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        let typed = panes.typed(host, overlay, self);
        if typed.as_ref().map(|(from, _)| *from) != self.link_completion.left {
            self.link_completion.left = None;
        }
        self.link_completion.open = typed.filter(|_| self.link_completion.left.is_none());
        let Some((_, query)) = self.link_completion.open.clone() else {
            self.link_completion.made = None;
            return;
        };
        let session = host.session();
        let Some(note) = panes.active.note else { return };
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let key = (note, volume.links.revision(), query.clone());
        if self.link_completion.made.as_ref() != Some(&key) {
            self.link_completion.offers = offers(session, volume, note, &query);
            self.link_completion.chosen = 0;
            self.link_completion.made = Some(key);
        }
        if self.link_completion.offers.is_empty() {
            self.link_completion.open = None;
            return;
        }
        let Some(caret) = panes.active.editor.stands else { return };
        if let Some(chosen) = self.link_completion.show(ctx, caret) {
            self.link_completion.chosen = chosen;
            self.accept(host, panes, notices);
        }
    }

    /// Handles a key press while suggestions are visible. Returns whether it was used.
    pub(crate) fn complete_key(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        key: Key,
        modifiers: Modifiers,
    ) -> bool {
        let Some((from, _)) = &self.link_completion.open else { return false };
        let count = self.link_completion.offers.len();
        if !modifiers.is_none() || count == 0 {
            return false;
        }
        match key {
            Key::ArrowDown => self.link_completion.chosen = (self.link_completion.chosen + 1) % count,
            Key::ArrowUp => self.link_completion.chosen = (self.link_completion.chosen + count - 1) % count,
            Key::Enter => self.accept(host, panes, notices),
            Key::Escape => self.link_completion.left = Some(*from),
            _ => return false,
        }
        true
    }

    /// Inserts the chosen suggestion.
    fn accept(&mut self, host: &mut HostLink, panes: &mut PaneState, notices: &mut NoticeState) {
        let Some((at, query)) = self.link_completion.open.take() else { return };
        let Some(offer) = self.link_completion.offers.get(self.link_completion.chosen).cloned() else {
            return;
        };
        let note = panes.open_note(host);
        let closed = note.and_then(|note| note.slice(at + query.len(), 2)).is_some_and(|rest| rest == "]]");
        let delete = query.len() + if closed { 2 } else { 0 };
        let insert = format!("{}]]", offer.insert);
        let caret = at + insert.len();
        panes.apply_edits(host, notices, vec![NoteEdit { at, delete, insert, caret, anchor: caret }]);
        host.complete_step(FirstStep::LinkNotes);
        self.link_completion.made = None;
    }
}

impl PaneState {
    /// Returns the text typed after `[[`, and the offset where it starts.
    fn typed(&self, host: &HostLink, overlay: &WindowOverlay, input: &InputState) -> Option<(usize, String)> {
        let editor = &self.active.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
        if self.view.is_some() || !matches!(overlay, WindowOverlay::None) || input.commands_by_letter(host) {
            return None;
        }
        let note = self.open_note(host)?;
        let before = (0..4).find_map(|less| {
            let length = caret.at.min(MAX_LINK_QUERY_BYTES) - less.min(caret.at);
            note.slice(caret.at - length, length)
        })?;
        let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
        let query = &line[line.rfind("[[")? + 2..];
        (!query.contains("]]") && !query.contains('|')).then(|| (caret.at - query.len(), query.to_owned()))
    }
}
