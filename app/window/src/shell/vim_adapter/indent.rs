//! Vim's `=` operator: indents lines of code to match the lines above.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use eframe::egui;
use std::ops::Range;

/// Number of spaces per indentation level.
const INDENT_SPACES: usize = 4;

impl PaneState {
    /// Reindents lines of code, as Vim's `=` does. Prose stays unchanged.
    pub(super) fn vim_indent(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        range: &Range<usize>,
    ) {
        let dark = ctx.global_style().visuals.dark_mode;
        let asked = range.clone();
        let edits = self.with_note(host, ctx, dark, |world, editor, _| {
            let first = super::indent(&world.note.text(), asked.start);
            editor.place_caret(first);
            let Some(target) = editor.edit_target(world).filter(|target| target.code_only) else { return Vec::new() };
            let (from, to) = (target.shown_byte(asked.start), target.shown_byte(asked.end));
            let mut edits = Vec::new();
            for (at, own, wanted) in indents(&target.shown, from, to) {
                if own != wanted {
                    edits.push(target.replace(at..at + own, &" ".repeat(wanted), wanted));
                }
            }
            edits
        });
        let edits: Vec<NoteEdit> = edits.unwrap_or_default();
        if !edits.is_empty() {
            self.apply_edits(host, notices, edits);
            self.active.editor.more.clear();
            self.active.editor.place_caret(range.start);
        }
        self.vim_place(host, ctx, |text, _| super::indent(text, range.start));
    }
}

/// Returns the start, current indentation and correct indentation of each line in a range of code.
fn indents(code: &str, from: usize, to: usize) -> Vec<(usize, usize, usize)> {
    let (mut at, mut before, mut lines) = (0, None, Vec::new());
    for line in code.split('\n') {
        let words = line.trim();
        let own = line.len() - line.trim_start_matches([' ', '\t']).len();
        let mut width = own;
        if !words.is_empty() && at + line.len() >= from && at <= to {
            if let Some((above, opens)) = before {
                let closes = words.starts_with([')', ']', '}']);
                let wanted = above + if opens { INDENT_SPACES } else { 0 };
                // A line with less indentation ends a block, and only the author knows where that is, so it's kept.
                width = match (opens, closes) {
                    (true, true) => above,
                    (true, false) => wanted,
                    (false, _) if own < wanted => own,
                    (false, _) => wanted,
                };
            }
            lines.push((at, own, width));
        }
        if !words.is_empty() {
            before = Some((width, words.ends_with([':', '(', '[', '{'])));
        }
        at += line.len() + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::indents;

    #[test]
    fn lines_stand_as_those_above_ask_for() {
        let anew = |code: &str| {
            let mut out = code.to_owned();
            for (at, own, wanted) in indents(code, 0, code.len()).into_iter().rev() {
                out.replace_range(at..at + own, &" ".repeat(wanted));
            }
            out
        };
        assert_eq!(anew("if a:\nb\n      c\nd"), "if a:\n    b\n    c\nd");
        assert_eq!(anew("if a:\n    b\nc"), "if a:\n    b\nc", "the end of a block is its writer's");
        assert_eq!(anew("f(\na,\n)\n"), "f(\n    a,\n)\n");
        assert_eq!(anew("    a\n        b"), "    a\n    b", "the first line is where it is");
    }
}
