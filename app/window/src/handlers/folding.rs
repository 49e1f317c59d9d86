//! Commands that fold and unfold headings of the open note.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::display_map::RowIndex;
use editor::note_editor::{EditContext, Editor};
use eframe::egui;

impl PaneState {
    /// Folds or unfolds the heading at the caret.
    pub(crate) fn fold_here(&mut self, host: &HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        let dark = ctx.global_style().visuals.dark_mode;
        let done = self.with_note(host, ctx, dark, |world, editor, _| {
            let spot = editor.caret.and_then(|caret| world.find_row(caret.at))?;
            let heading = world.heading_of(spot)?;
            world.toggle_fold(heading);
            leave_hidden(world, editor, heading);
            Some(())
        });
        if done.flatten().is_none() {
            notices.toasts.show_message("Put the caret below a heading first.");
        }
    }

    /// Folds all headings except a single one at the top level, or unfolds all.
    pub(crate) fn fold_all(&mut self, host: &HostLink, ctx: &egui::Context, fold: bool) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, _| {
            world.sheet.reset_folds(fold, world.note, world.texts);
            let mut headings = Vec::new();
            for block in (0..world.sheet.len()).filter(|_| fold) {
                for row in 0..world.rows(block).len() {
                    headings.extend(world.sheet.fold_of(RowIndex { block, row }));
                }
            }
            // A single top-level heading is the note's title. Folding it would hide the whole note.
            let top = headings.iter().map(|(_, level)| *level).min();
            let alone = headings.iter().filter(|(_, level)| Some(*level) == top).count() == 1 && headings.len() > 1;
            let folds = headings.into_iter().filter(|(_, level)| !alone || Some(*level) != top);
            world.sheet.folds.extend(folds.map(|(fold, _)| fold));
            world.sheet.update_folds(world.note, world.texts);
            if let Some(spot) = editor.caret.and_then(|caret| world.find_row(caret.at))
                && world.sheet.is_hidden(spot)
                && let Some(heading) = world.heading_of(spot)
            {
                leave_hidden(world, editor, heading);
            }
        });
    }
}

/// Moves the caret out of folded text, to the heading.
fn leave_hidden(world: &mut EditContext<'_>, editor: &mut Editor, heading: RowIndex) {
    let inside =
        editor.caret.and_then(|caret| world.find_row(caret.at)).is_some_and(|spot| world.sheet.is_hidden(spot));
    if inside && let Some(row) = world.sheet.row(heading) {
        let at = world.sheet.start(heading.block) + row.content.end;
        editor.more.clear();
        editor.place_caret(at);
        editor.reveal = false;
    }
}
