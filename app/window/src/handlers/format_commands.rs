//! Formatting commands at the caret: inline styles, and moving rows. Their keys are in the command table.

use crate::shell::commands::FormatCommand;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::editor_keys::{CaretRange, KeyOutcome};
use editor::markdown_keys;
use editor::motion;
use editor::note_editor::{Caret, EditContext, Editor};
use eframe::egui;
use notebook::page;

impl PaneState {
    /// Performs a formatting command, if there's a caret.
    pub(crate) fn run_writing(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        writing: FormatCommand,
    ) {
        if self.active.editor.caret.is_none() {
            notices.toasts.show_message("Click in a note first. This writes at the caret.");
            return;
        }
        if let (FormatCommand::Up | FormatCommand::Down, Some(caret), true) =
            (writing, self.active.editor.caret, self.active.editor.more.is_empty())
        {
            let (dark, down) = (ctx.global_style().visuals.dark_mode, writing == FormatCommand::Down);
            let past = |world: &mut EditContext<'_>| {
                let spot = world.find_row(caret.at)?;
                // Hidden text next to the row has to be unfolded first.
                let hidden = [true, false].map(|behind| world.beside_hidden(spot, behind));
                if hidden == [false; 2] { page::past_cell(caret, down, world) } else { None }
            };
            if let Some((edits, at)) = self.with_note(host, ctx, dark, |world, _, _| past(world)).flatten() {
                return self.move_rows(host, notices, edits, Some(at));
            }
        }
        self.write(host, notices, ctx, |editor, world| act(editor, world, writing), false);
    }
}

impl PaneState {
    /// Selects the word at the caret, or the next or all occurrences of the selection.
    pub(crate) fn select_same(&mut self, host: &HostLink, ctx: &egui::Context, all: bool) {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(host, ctx, dark, |world, editor, _| {
            let Some(mut caret) = editor.caret else { return };
            if caret.is_empty() {
                let Some(target) = editor.edit_target(world) else { return };
                let word = motion::word_around(&target.shown, target.shown_byte(caret.at));
                editor.select(target.note_byte(word.start), target.note_byte(word.end));
                if !all {
                    return;
                }
                caret = editor.caret.unwrap_or(caret);
            }
            let (own, text) = (caret.range(), world.note.text());
            let Some(words) = text.get(own.clone()).filter(|words| !words.is_empty()) else { return };
            let taken: Vec<_> = editor.selected();
            let found = text.match_indices(words).map(|(at, words)| at..at + words.len());
            let free = |range: &std::ops::Range<usize>| !taken.contains(range);
            if all {
                editor.more = found.filter(free).map(|range| Caret { at: range.end, anchor: range.start }).collect();
                return;
            }
            let (before, behind): (Vec<_>, Vec<_>) = found.filter(free).partition(|range| range.start < own.end);
            if let Some(next) = behind.first().or(before.first()) {
                editor.more.push(caret);
                editor.select(next.start, next.end);
            }
        });
    }
}

fn act(editor: &mut Editor, world: &mut EditContext<'_>, writing: FormatCommand) -> KeyOutcome {
    let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else { return KeyOutcome::Not };
    let here = CaretRange::in_target(caret, &target);
    // A row moves past visible text only. Folded text next to it is unfolded first.
    if let (Some(spot), FormatCommand::Up | FormatCommand::Down | FormatCommand::Duplicate) = (target.spot, writing)
        && (world.unfold_beside(spot, true) || world.unfold_beside(spot, false))
    {
        return KeyOutcome::Moved;
    }
    match writing {
        FormatCommand::Up => markdown_keys::move_row(&target, caret, false, world),
        FormatCommand::Down => markdown_keys::move_row(&target, caret, true, world),
        FormatCommand::Duplicate => markdown_keys::duplicate_rows(&target, caret, world),
        FormatCommand::Bold => markdown_keys::toggle_inline_style(&target, &here, "**"),
        FormatCommand::Italic => markdown_keys::toggle_inline_style(&target, &here, "*"),
        FormatCommand::Code => markdown_keys::toggle_inline_style(&target, &here, "`"),
        FormatCommand::Strike => markdown_keys::toggle_inline_style(&target, &here, "~~"),
        FormatCommand::Link => markdown_keys::insert_link(&target, &here),
        FormatCommand::Task => markdown_keys::toggle_task(caret, &target),
    }
}
