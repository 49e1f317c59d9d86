//! Vim's replace mode: what is typed stands in place of what was there, and Backspace puts that back.

use super::super::Window;
use editor::keys::Done;
use editor::motion;
use editor::vim::Mode;
use eframe::egui;
use unicode_segmentation::UnicodeSegmentation;

impl Window {
    /// Writes a text in place of what the caret is on, up to the end of the line.
    pub(super) fn overwrite(&mut self, ctx: &egui::Context, text: &str) {
        let mut held = Vec::new();
        for cluster in text.graphemes(true) {
            self.write(
                ctx,
                |editor, world| {
                    let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return Done::Not };
                    let at = target.shown_byte(caret.at);
                    let line = motion::line_around(&target.shown, at);
                    let end = if at < line.end { motion::after(&target.shown, at) } else { at };
                    held.push((end > at).then(|| target.shown[at..end].to_owned()));
                    Done::edit(target.replace(at..end, cluster, cluster.len()))
                },
                false,
            );
        }
        self.modal.overwritten.extend(held);
    }

    /// Puts back what was overwritten last. Whether letters are being overwritten.
    pub(super) fn put_back_letter(&mut self, ctx: &egui::Context) -> bool {
        if self.modal.vim.mode() != Mode::Replace {
            return false;
        }
        let Some(held) = self.modal.overwritten.pop() else {
            self.vim_place(ctx, |text, at| motion::before(text, at).max(motion::line_around(text, at).start));
            return true;
        };
        self.write(
            ctx,
            |editor, world| {
                let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return Done::Not };
                let at = target.shown_byte(caret.at);
                Done::edit(target.replace(motion::before(&target.shown, at)..at, held.as_deref().unwrap_or(""), 0))
            },
            false,
        );
        true
    }
}
