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
            self.toasts.show_message("No note is open.");
            return;
        };
        self.open(note);
        if let Some(driver) = self.driver.as_ref().filter(|driver| driver.session().note(note).is_some()) {
            self.view = Some(PageView::History(Box::new(HistoryPage::new(driver, note, authors))));
        }
    }

    /// Has the page of a note's past take in answers, and does what it asks for.
    pub(crate) fn history_step(&mut self, ctx: &egui::Context) {
        let (Some(PageView::History(page)), Some(driver)) = (&mut self.view, &self.driver) else { return };
        let note = page.note;
        let wishes = page.step(driver.session(), ctx.input(|input| input.time));
        for HistoryAction::Edit(edits, said) in wishes {
            let revision =
                self.driver.as_ref().and_then(|driver| driver.session().note(note)).map_or(0, engine::Note::revision);
            if !self.send(Command::EditAll { note, edits }) {
                continue;
            }
            self.toasts.show_with_action(said, "Undo", CommandId::NoteUndo);
            if self.active_pane.note == Some(note)
                && let Some(note) = self.driver.as_ref().and_then(|driver| driver.session().note(note))
            {
                self.active_pane.editor.follow_undo(revision, note);
            }
            ctx.request_repaint();
        }
    }
}
