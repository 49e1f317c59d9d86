//! Shows the variables of the open note's kernel.

use crate::app_window::AppWindow;
use crate::panels::variables::words;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::Ui;
use engine::KernelPhase;
use host::KernelInquiry;

impl AppWindow {
    /// Draws the panel, and asks the kernel when something has run.
    pub(crate) fn show_variables(&mut self, ui: &mut Ui) {
        let Some(id) = self.panes.active.note else { return words(ui, "No note is open.") };
        let Some(note) = self.host.session().note(id) else { return };
        let (phase, state) = (note.kernel, (id, note.run_revision()));
        if let Some(caret) = self.panes.active.editor.caret.filter(|_| self.panes.active.editor.more.is_empty()) {
            self.dock.variables.last = Some((id, note.revision(), caret.range()));
        }
        if self.dock.variables.known.as_ref().is_some_and(|(of, _)| *of != id) || phase == KernelPhase::Off {
            (self.dock.variables.known, self.dock.variables.waits) = (None, None);
        }
        if phase == KernelPhase::Off {
            self.dock.variables.asked = None;
            return words(ui, "No cell has run yet: the kernel is off.");
        }
        if phase == KernelPhase::Idle && self.dock.variables.asked != Some(state) {
            self.dock.variables.asked = Some(state);
            self.dock.variables.waits = self.host.driver.ask_kernel(id, KernelInquiry::Variables);
        }
        self.dock.variables.receive(id);
        if let Some(name) = self.dock.variables.show(ui) {
            self.insert_name(ui.ctx(), &name);
        }
    }

    /// A name goes to the caret, if that is or was just now in a cell, and else to the clipboard.
    fn insert_name(&mut self, ctx: &egui::Context, name: &str) {
        let now = self.panes.active.note.and_then(|note| Some((note, self.host.session().note(note)?.revision())));
        let last = self.dock.variables.last.clone().filter(|(note, revision, _)| now == Some((*note, *revision)));
        match last.filter(|(_, _, range)| self.is_code(range.start)) {
            Some((_, _, range)) => {
                let end = range.start + name.len();
                let (at, delete, insert) = (range.start, range.len(), name.to_owned());
                self.apply_edits(vec![NoteEdit { at, delete, insert, caret: end, anchor: end }]);
            }
            None => {
                ctx.copy_text(name.to_owned());
                self.notices.toasts.show_message(format!("{name} is copied."));
            }
        }
    }
}
