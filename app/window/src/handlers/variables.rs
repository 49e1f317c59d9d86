//! Shows the variables of the open note's kernel.

use crate::panels::variables::words;
use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::Ui;
use engine::KernelPhase;
use host::KernelInquiry;

impl DockState {
    /// Draws the panel, and queries the kernel after each run.
    pub(crate) fn show_variables(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ui: &mut Ui,
    ) {
        let Some(id) = panes.active.note else { return words(ui, "No note is open.") };
        let Some(note) = host.session().note(id) else { return };
        let (phase, state) = (note.kernel, (id, note.run_revision()));
        if let Some(caret) = panes.active.editor.caret.filter(|_| panes.active.editor.more.is_empty()) {
            self.variables.last = Some((id, note.revision(), caret.range()));
        }
        if self.variables.known.as_ref().is_some_and(|(of, _)| *of != id) || phase == KernelPhase::Off {
            (self.variables.known, self.variables.waits) = (None, None);
        }
        if phase == KernelPhase::Off {
            self.variables.asked = None;
            return words(ui, "No cell has run yet: the kernel is off.");
        }
        if phase == KernelPhase::Idle && self.variables.asked != Some(state) {
            self.variables.asked = Some(state);
            self.variables.waits = host.driver.ask_kernel(id, KernelInquiry::Variables);
        }
        self.variables.receive(id);
        if let Some(name) = self.variables.show(ui) {
            panes.insert_name(host, self, notices, ui.ctx(), &name);
        }
    }
}

impl PaneState {
    /// Inserts a name at the caret if it is, or was just now, in a cell. Otherwise copies the name to the clipboard.
    fn insert_name(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        name: &str,
    ) {
        let now = self.active.note.and_then(|note| Some((note, host.session().note(note)?.revision())));
        let last = dock.variables.last.clone().filter(|(note, revision, _)| now == Some((*note, *revision)));
        match last.filter(|(_, _, range)| self.is_code(host, range.start)) {
            Some((_, _, range)) => {
                let end = range.start + name.len();
                let (at, delete, insert) = (range.start, range.len(), name.to_owned());
                self.apply_edits(host, notices, vec![NoteEdit { at, delete, insert, caret: end, anchor: end }]);
            }
            None => {
                ctx.copy_text(name.to_owned());
                notices.toasts.show_message(format!("{name} is copied."));
            }
        }
    }
}
