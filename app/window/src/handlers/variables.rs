//! Shows the variables of the open note's kernel.

use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use editor::note_starters::last_cell;
use eframe::egui;
use egui::Ui;
use engine::commands::CommandId;
use engine::{KernelPhase, Note, Session};
use host::KernelInquiry;
use notebook::actions::PageAction;
use store::FileKind;
use ui::empty_state::show_panel_message;

impl DockState {
    /// Draws the panel, and queries the kernel after each run.
    pub(crate) fn show_variables(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ui: &mut Ui,
        actions: &mut Vec<PageAction>,
    ) {
        let Some(id) = panes.active.note else {
            if show_panel_message(ui, "The variables of the open note's cells are listed here.", Some("Go to note")) {
                actions.push(PageAction::Run(CommandId::SwitcherOpen));
            }
            return;
        };
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
            return show_before_first_run(ui, host.session(), note, actions);
        }
        if phase == KernelPhase::Idle && self.variables.asked != Some(state) {
            self.variables.asked = Some(state);
            self.variables.waits = host.driver.ask_kernel(id, KernelInquiry::Variables);
        }
        self.variables.receive(id);
        if let Some(name) = self.variables.show(ui, actions) {
            panes.insert_name(host, self, notices, ui.ctx(), &name);
        }
    }
}

/// Draws the panel of a note whose kernel is off.
fn show_before_first_run(ui: &mut Ui, session: &Session, note: &Note, actions: &mut Vec<PageAction>) {
    let path = session.locate_file(note.id).map_or("", |(_, path)| path);
    let can_add = FileKind::from_path(path) == FileKind::Note && note.edit_refusal().is_none();
    let has_cells = note.cells().next().is_some();
    let button = if has_cells { Some("Run the cells") } else { can_add.then_some("Add a cell") };
    let text = "The variables of this note's cells are listed here. No cell has run yet.";
    if show_panel_message(ui, text, button) {
        actions.push(match has_cells {
            true => PageAction::Run(CommandId::NoteRunAll),
            false => PageAction::Edit(last_cell(&note.text())),
        });
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
