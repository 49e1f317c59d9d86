//! Vim's replace mode: typed text overwrites, and Backspace restores it.

use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::editor_keys::KeyOutcome;
use editor::motion;
use editor::vim::VimMode;
use eframe::egui;
use unicode_segmentation::UnicodeSegmentation;

impl InputState {
    /// Overwrites text from the caret up to the end of the line.
    pub(super) fn overwrite_text(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        text: &str,
    ) {
        let mut held = Vec::new();
        for cluster in text.graphemes(true) {
            panes.write(
                host,
                notices,
                ctx,
                |editor, world| {
                    let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else {
                        return KeyOutcome::Not;
                    };
                    let at = target.shown_byte(caret.at);
                    let line = motion::line_around(&target.shown, at);
                    let end = if at < line.end { motion::next_grapheme(&target.shown, at) } else { at };
                    held.push((end > at).then(|| target.shown[at..end].to_owned()));
                    KeyOutcome::edit(target.replace(at..end, cluster, cluster.len()))
                },
                false,
            );
        }
        self.vim.overwritten.extend(held);
    }

    /// Restores the last overwritten character. Returns whether replace mode is active.
    pub(super) fn restore_overwritten_char(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) -> bool {
        if self.vim.vim.mode() != VimMode::Replace {
            return false;
        }
        let Some(held) = self.vim.overwritten.pop() else {
            panes.vim_place(host, ctx, |text, at| {
                motion::previous_grapheme(text, at).max(motion::line_around(text, at).start)
            });
            return true;
        };
        panes.write(
            host,
            notices,
            ctx,
            |editor, world| {
                let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else {
                    return KeyOutcome::Not;
                };
                let at = target.shown_byte(caret.at);
                KeyOutcome::edit(target.replace(
                    motion::previous_grapheme(&target.shown, at)..at,
                    held.as_deref().unwrap_or(""),
                    0,
                ))
            },
            false,
        );
        true
    }
}
