//! Opens the history of a note and restores versions.

use crate::pages::history::{HistoryAction, HistoryPage};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::Command;
use engine::commands::CommandId;
use store::DocId;

impl PaneState {
    /// Shows the history of a note.
    pub(crate) fn show_history(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        note: Option<DocId>,
        authors: bool,
    ) {
        let Some(note) = note else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        self.open(host, notices, note);
        if host.session().note(note).is_some() {
            self.view = Some(PageView::History(Box::new(HistoryPage::new(&host.driver, note, authors))));
        }
    }

    /// Updates the history page with answers, and performs what the user requests on it.
    pub(crate) fn history_step(&mut self, host: &mut HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        let Some(PageView::History(page)) = &mut self.view else { return };
        let note = page.note;
        let wishes = page.step(host.session(), ctx.input(|input| input.time));
        for HistoryAction::Edit(edits, base, said) in wishes {
            let revision = host.session().note(note).map_or(0, engine::Note::revision);
            // If the note has changed since it was compared, it's compared again, and the places would be wrong.
            let is_current = host.session().note(note).is_some_and(|note| note.text() == *base);
            if !is_current || !host.send(Command::EditAll { note, edits }, notices) {
                continue;
            }
            notices.toasts.show_with_action(said, "Undo", CommandId::NoteUndo);
            if self.active.note == Some(note)
                && let Some(note) = host.session().note(note)
            {
                self.active.editor.follow_undo(revision, note);
            }
            ctx.request_repaint();
        }
    }
}
