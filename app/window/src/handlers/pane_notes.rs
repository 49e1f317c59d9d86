//! Notes in the active pane: opens and creates them, places the caret, edits them, and undoes edits.

use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use editor::row_splitter::RowKind;
use eframe::egui;
use engine::Command;
use notebook::actions::RowDrag;
use store::{BlockId, DocId, FileKind};
use text::text_edit::TextEdit;

/// Maximum number of background notes that stay open in the session, with their undo history and kernels.
const MAX_BACKGROUND_NOTES: usize = 8;

impl PaneState {
    /// Moves the caret to a line of a cell, both counted from 1.
    pub(crate) fn show_line(&mut self, host: &HostLink, notices: &mut NoticeState, cell: usize, line: usize) {
        let found = self.open_note(host).and_then(|note| {
            let id = note.cells().nth(cell.checked_sub(1)?)?;
            let (start, code) = (note.block_start(id)? + note.cell_parts(id)?.code.start, note.cell_code(id)?);
            let before: usize = code.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            Some(start + before.min(code.trim_end_matches('\n').len()))
        });
        match found {
            Some(at) => {
                self.active.editor.place_caret(at);
                self.active.editor.focus = true;
                self.active.editor.reveal = true;
            }
            None => notices.toasts.show_message("This cell no longer exists."),
        }
    }

    /// Applies edits to the open note as one undo step.
    pub(crate) fn apply_edits(&mut self, host: &mut HostLink, notices: &mut NoticeState, edits: Vec<NoteEdit>) {
        let Some(note) = self.active.note else { return };
        let mut splices: Vec<TextEdit> = edits
            .iter()
            .filter(|edit| edit.delete > 0 || !edit.insert.is_empty())
            .map(|edit| TextEdit { at: edit.at, delete: edit.delete, insert: edit.insert.clone() })
            .collect();
        splices.sort_by_key(|splice| (splice.at, splice.delete));
        let command = match splices.as_slice() {
            [one] => {
                let TextEdit { at, delete, insert } = one.clone();
                Command::Edit { note, at, delete, insert }
            }
            _ => Command::EditAll { note, edits: splices },
        };
        if host.send(command, notices)
            && let Some(note) = host.session().note(note)
        {
            self.active.editor.apply_own_edits(&edits, note);
        }
        // If the edits were refused, the note is unchanged and the caret stays where it was.
        self.active.editor.focus = true;
    }

    /// Moves rows of the open note, as one edit.
    pub(crate) fn move_rows(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        edits: Vec<TextEdit>,
        caret: Option<usize>,
    ) {
        let Some(note) = self.active.note else { return };
        if host.send(Command::EditAll { note, edits }, notices)
            && let (Some(caret), Some(note)) = (caret, host.session().note(note))
        {
            let edit = NoteEdit { at: 0, delete: 0, insert: String::new(), caret, anchor: caret };
            self.active.editor.apply_own_edits(&[edit], note);
            self.active.editor.focus = true;
        }
    }

    /// Moves rows into another note. They are inserted there before they are deleted here, so a refusal loses nothing.
    pub(crate) fn carry_rows(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        held: RowDrag,
        to: DocId,
        edit: TextEdit,
        caret: usize,
    ) {
        let revision = host.session().note(held.note).map(engine::Note::revision);
        if revision != Some(held.revision) {
            notices.toasts.show_message("The note has changed in the meantime, so the block wasn't moved.");
            return;
        }
        if !host.send(Command::EditAll { note: to, edits: vec![edit] }, notices) {
            return;
        }
        host.send(Command::EditAll { note: held.note, edits: vec![held.gone] }, notices);
        if self.active.note != Some(to)
            && let Some(pane) = self.layout.pane_with_note(to)
        {
            self.go_to_pane(host, notices, pane);
        }
        self.active.editor.place_caret(caret);
    }

    /// Opens a note in the active pane.
    pub(crate) fn open(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: DocId) {
        self.has_chosen_note = true;
        self.view = None;
        // If the note's volume was closed in the meantime, the note must be opened again.
        let is_open = host.session().note(note).is_some() || host.is_attachment(note);
        if (self.active.note == Some(note) && is_open) || self.go_to_note(host, notices, note) {
            return;
        }
        // An attachment is displayed directly; only notes have text to open.
        if host.is_attachment(note) {
            self.active.show_note(Some(note));
            return;
        }
        if !host.send(Command::OpenNote { note }, notices) {
            return;
        }
        self.active.show_note(Some(note));
        self.background_notes.retain(|kept| *kept != note);
        self.background_notes.push_front(note);
        // Closes notes that haven't been used for long, unless their kernel holds variables.
        while self.background_notes.len() > MAX_BACKGROUND_NOTES {
            let Some(old) = self.background_notes.pop_back() else { break };
            if self.layout.pane_with_note(old).is_some() {
                continue;
            }
            let off = host.session().note(old).is_some_and(|note| note.kernel == engine::KernelPhase::Off);
            if off {
                host.send(Command::CloseNote { note: old }, notices);
            }
        }
    }

    /// Opens the last session's note at startup, or a welcome note on the first start.
    pub(crate) fn choose_first(&mut self, host: &mut HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        if self.has_chosen_note {
            return;
        }
        let session = host.session();
        if let Some(note) = self.pending_note {
            if session.locate_file(note).is_some() {
                self.open(host, notices, note);
                ctx.request_repaint();
                return;
            }
            if session.volumes().all(|volume| volume.known && volume.scans > 0) && session.is_open() {
                self.pending_note = None;
            }
            return;
        }
        let first = session.volumes().next().filter(|volume| volume.scans > 0 && session.settings().recent.is_empty());
        let welcome = first.and_then(|volume| {
            let notes = || volume.files.iter().filter(|(path, row)| row.kind == FileKind::Note && !path.contains('/'));
            let named = notes().find(|(path, _)| path.eq_ignore_ascii_case("welcome.md"));
            named.or_else(|| notes().next()).map(|(_, row)| row.id)
        });
        if let Some(note) = welcome {
            self.open(host, notices, note);
            ctx.request_repaint();
        } else if first.is_some() {
            self.has_chosen_note = true;
        }
    }

    /// Moves the caret to a cell's code, unless it's already there. Returns whether the cell exists.
    pub(crate) fn place_caret_in_cell(&mut self, host: &HostLink, cell: BlockId) -> bool {
        let code = self.open_note(host).and_then(|note| {
            let (start, code) = (note.block_start(cell)?, &note.cell_parts(cell)?.code);
            Some(start + code.start..start + code.end)
        });
        let Some(code) = code else { return false };
        if !self.active.editor.caret.is_some_and(|caret| (code.start..=code.end).contains(&caret.at)) {
            self.active.editor.more.clear();
            self.active.editor.place_caret(code.start);
        }
        true
    }

    /// Returns the cell at the caret.
    pub(crate) fn cell_of_caret(&mut self, host: &HostLink, ctx: &egui::Context) -> Option<BlockId> {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            (target.kind == RowKind::Cell)
                .then(|| target.spot.map(|spot| world.sheet.block_rows(spot.block).id))
                .flatten()
        })?
    }

    pub(crate) fn undo(&mut self, host: &mut HostLink, notices: &mut NoticeState, redo: bool) {
        let Some(note) = self.active.note else { return };
        let revision = host.session().note(note).map_or(0, engine::Note::revision);
        let command = if redo { Command::Redo { note } } else { Command::Undo { note } };
        if host.send(command, notices)
            && let Some(note) = host.session().note(note)
        {
            self.active.editor.follow_undo(revision, note);
        }
    }

    /// Reports the result of a clean run once.
    pub(crate) fn report_clean_run(&mut self, host: &HostLink, notices: &mut NoticeState) {
        let Some(note) = self.open_note(host) else { return };
        let Some((count, _)) = note.clean_run_report() else { return };
        if notices.last_reported_runs.insert(note.id, count) != Some(count)
            && let Some(words) = note.clean_run_summary()
        {
            notices.toasts.show_message(words + ".");
        }
    }

    /// Creates a note and shows it, with the caret in it. Returns an error that says why it can't be created.
    pub(crate) fn make_note(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        volume: DocId,
        path: &str,
    ) -> anyhow::Result<()> {
        let command = Command::NewNote { volume, path: path.to_owned(), text: String::new() };
        host.command(command)?;
        let known = host.session().volume(volume).and_then(|volume| {
            let with_ending = format!("{}.md", path.trim_start_matches("./"));
            volume.files.get(path).or_else(|| volume.files.get(&with_ending)).map(|row| row.id)
        });
        if let Some(note) = known {
            self.open(host, notices, note);
            self.active.editor.place_caret(0);
        }
        Ok(())
    }

    /// Closes the overlay and gives the keyboard focus back to the note.
    pub(crate) fn close_overlay(&mut self, overlay: &mut WindowOverlay) {
        *overlay = WindowOverlay::None;
        self.active.editor.focus = self.active.editor.caret.is_some();
    }
}
