//! Opens the history of a note and restores versions.

use crate::app_window::AppWindow;
use crate::pages::history::{HistoryAction, HistoryPage};
use crate::shell::page_view::PageView;
use eframe::egui;
use engine::Command;
use engine::commands::CommandId;
use store::DocId;

impl AppWindow {
    /// Shows the past of a note.
    pub(crate) fn show_history(&mut self, note: Option<DocId>, authors: bool) {
        let Some(note) = note else {
            self.notices.toasts.show_message("No note is open.");
            return;
        };
        self.open(note);
        if self.host.session().note(note).is_some() {
            self.panes.view = Some(PageView::History(Box::new(HistoryPage::new(&self.host.driver, note, authors))));
        }
    }

    /// Has the page of a note's past take in answers, and does what it asks for.
    pub(crate) fn history_step(&mut self, ctx: &egui::Context) {
        let Some(PageView::History(page)) = &mut self.panes.view else { return };
        let note = page.note;
        let wishes = page.step(self.host.session(), ctx.input(|input| input.time));
        for HistoryAction::Edit(edits, said) in wishes {
            let revision = self.host.session().note(note).map_or(0, engine::Note::revision);
            if !self.send(Command::EditAll { note, edits }) {
                continue;
            }
            self.notices.toasts.show_with_action(said, "Undo", CommandId::NoteUndo);
            if self.panes.active.note == Some(note)
                && let Some(note) = self.host.session().note(note)
            {
                self.panes.active.editor.follow_undo(revision, note);
            }
            ctx.request_repaint();
        }
    }
}
