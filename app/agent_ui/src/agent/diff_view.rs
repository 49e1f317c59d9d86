//! A hunk of a change, line by line: line numbers in the gutter, context lines, and highlighted words that differ.

use eframe::egui;
use egui::text::{LayoutJob, TextFormat};
use egui::{Color32, Pos2, Rect, Ui, pos2, vec2};
use std::ops::Range;
use std::sync::Arc;
use store::TextHunk;
use text::diff::{self, DiffLine, DiffPart};
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};

/// Width of a line number in the gutter.
const LINE_NUMBER_WIDTH: f32 = 34.0;
/// Where the text of a line begins, after both line numbers and the sign.
const TEXT_INDENT: f32 = 2.0 * LINE_NUMBER_WIDTH + 20.0;
/// Height of a line that isn't wrapped.
const LINE_HEIGHT: f32 = 18.0;
/// Maximum number of lines of a hunk that are shown.
const MAX_SHOWN_LINES: usize = 400;
/// Maximum number of bytes of a line that are shown.
const MAX_SHOWN_LINE_BYTES: usize = 4_000;

/// Kind of a line in a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HunkLineKind {
    Same,
    Gone,
    Come,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HunkLine {
    kind: HunkLineKind,
    /// Line numbers in the old and the new text, from 1; 0 if unknown.
    numbers: (usize, usize),
    text: String,
    /// Byte ranges of the words that the other side doesn't have.
    marks: Vec<Range<usize>>,
}

/// A hunk prepared for display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffView {
    lines: Vec<HunkLine>,
    left_out: usize,
}

/// Returns the line's text, shortened, with its marks clipped to fit.
fn shown_line(text: &str, line: &DiffLine) -> (String, Vec<Range<usize>>) {
    let whole = text.get(line.range.clone()).unwrap_or_default();
    let end = whole.floor_char_boundary(MAX_SHOWN_LINE_BYTES);
    let shift = |mark: &Range<usize>| {
        let start = mark.start.checked_sub(line.range.start)?;
        let stop = mark.end.checked_sub(line.range.start)?.min(end);
        (start < stop).then_some(start..stop)
    };
    (whole[..end].to_owned(), line.marks.iter().filter_map(shift).collect())
}

impl DiffView {
    /// Builds the view of a hunk, with its recorded context lines.
    pub fn of_hunk(hunk: &TextHunk) -> DiffView {
        let mut view = DiffView::default();
        let (mut old, mut new) = hunk.lines.map_or((0, 0), |(old, new)| (old as usize, new as usize));
        let count = hunk.lines_before.lines().count();
        (old, new) = (old.saturating_sub(count), new.saturating_sub(count));
        view.push_same(&hunk.lines_before, &mut old, &mut new);
        view.push_changes(&hunk.removed, &hunk.inserted, &mut old, &mut new);
        view.push_same(&hunk.lines_after, &mut old, &mut new);
        view.left_out = view.lines.len().saturating_sub(MAX_SHOWN_LINES);
        view.lines.truncate(MAX_SHOWN_LINES);
        view
    }

    /// Builds the view of newly created text.
    pub fn of_new_text(text: &str) -> DiffView {
        let hunk = TextHunk { inserted: text.to_owned(), lines: Some((1, 1)), ..TextHunk::default() };
        DiffView::of_hunk(&hunk)
    }

    fn push_same(&mut self, text: &str, old: &mut usize, new: &mut usize) {
        for line in text.lines() {
            let text = line[..line.floor_char_boundary(MAX_SHOWN_LINE_BYTES)].to_owned();
            self.lines.push(HunkLine { kind: HunkLineKind::Same, numbers: (*old, *new), text, marks: Vec::new() });
            advance(old);
            advance(new);
        }
    }

    fn push_changes(&mut self, removed: &str, inserted: &str, old: &mut usize, new: &mut usize) {
        for part in diff::compare(removed, inserted).parts {
            match part {
                DiffPart::Same { old: range, .. } => {
                    self.push_same(removed.get(range).unwrap_or_default(), old, new);
                }
                DiffPart::Change { rows, .. } => {
                    for line in rows.iter().filter_map(|row| row.old.as_ref()) {
                        let (text, marks) = shown_line(removed, line);
                        self.lines.push(HunkLine { kind: HunkLineKind::Gone, numbers: (*old, 0), text, marks });
                        advance(old);
                    }
                    for line in rows.iter().filter_map(|row| row.new.as_ref()) {
                        let (text, marks) = shown_line(inserted, line);
                        self.lines.push(HunkLine { kind: HunkLineKind::Come, numbers: (0, *new), text, marks });
                        advance(new);
                    }
                }
            }
        }
    }

    /// Returns the hunk as a textual diff, for screen readers.
    pub fn text(&self) -> String {
        let sign = |kind: HunkLineKind| match kind {
            HunkLineKind::Same => ' ',
            HunkLineKind::Gone => '-',
            HunkLineKind::Come => '+',
        };
        self.lines.iter().map(|line| format!("{}{}\n", sign(line.kind), line.text)).collect()
    }

    fn galley(ui: &Ui, line: &HunkLine, width: f32) -> Arc<egui::Galley> {
        let colours = ThemeColors::of(ui);
        let font = egui::FontId::new(12.0, theme::code().font.family);
        let ink = if line.kind == HunkLineKind::Same { colours.muted } else { colours.ink };
        let ground = match line.kind {
            HunkLineKind::Same => Color32::TRANSPARENT,
            HunkLineKind::Gone => colours.gone_strong,
            HunkLineKind::Come => colours.come_strong,
        };
        let mut job = LayoutJob::default();
        job.wrap.max_width = (width - TEXT_INDENT - space::S).max(48.0);
        let plain = ui::widgets::format(font, LINE_HEIGHT, ink);
        let mut at = 0;
        let mut push = |range: Range<usize>, format: TextFormat| {
            let piece = untrusted_text::escape_line(line.text.get(range).unwrap_or_default());
            job.append(&piece, 0.0, format);
        };
        for mark in &line.marks {
            push(at..mark.start, plain.clone());
            push(mark.clone(), TextFormat { background: ground, ..plain.clone() });
            at = mark.end;
        }
        push(at..line.text.len(), plain);
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    }

    /// Returns the height at this width.
    pub fn height(&self, ui: &Ui, width: f32) -> f32 {
        let lines = self.lines.iter().map(|line| DiffView::galley(ui, line, width).size().y.max(LINE_HEIGHT));
        lines.sum::<f32>() + if self.left_out > 0 { LINE_HEIGHT } else { 0.0 }
    }

    /// Draws the hunk.
    pub fn paint(&self, ui: &Ui, at: Pos2, width: f32) {
        let (colours, clip) = (ThemeColors::of(ui), ui.clip_rect());
        let mut top = at.y;
        for line in &self.lines {
            let galley = DiffView::galley(ui, line, width);
            let height = galley.size().y.max(LINE_HEIGHT);
            let rect = Rect::from_min_size(pos2(at.x, top), vec2(width, height));
            top += height;
            if !rect.intersects(clip) {
                continue;
            }
            let (ground, sign) = match line.kind {
                HunkLineKind::Same => (None, ""),
                HunkLineKind::Gone => (Some(colours.gone), "-"),
                HunkLineKind::Come => (Some(colours.come), "+"),
            };
            if let Some(ground) = ground {
                ui.painter().rect_filled(rect, 0.0, ground);
            }
            let number = |number: usize, right: f32| {
                if number > 0 {
                    let place = pos2(rect.left() + right, rect.top() + LINE_HEIGHT / 2.0);
                    let font = theme::tabular_font(11.0);
                    ui.painter().text(place, egui::Align2::RIGHT_CENTER, number, font, colours.muted);
                }
            };
            number(line.numbers.0, LINE_NUMBER_WIDTH - 4.0);
            number(line.numbers.1, 2.0 * LINE_NUMBER_WIDTH - 4.0);
            let font = egui::FontId::new(12.0, theme::code().font.family);
            let place = pos2(rect.left() + 2.0 * LINE_NUMBER_WIDTH + 8.0, rect.top() + LINE_HEIGHT / 2.0);
            ui.painter().text(place, egui::Align2::CENTER_CENTER, sign, font, colours.muted);
            ui.painter().galley(pos2(rect.left() + TEXT_INDENT, rect.top()), galley, colours.ink);
        }
        if self.left_out > 0 {
            let words = format!("… and {} lines more", self.left_out);
            let place = pos2(at.x + TEXT_INDENT, top);
            ui.painter().text(place, egui::Align2::LEFT_TOP, words, theme::caption().font, colours.muted);
        }
    }
}

/// Increments a line number if it's known.
fn advance(number: &mut usize) {
    if *number > 0 {
        *number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_is_shown_line_by_line_with_numbers_and_words() {
        let hunk = TextHunk {
            removed: "- [ ] Call Ann\n".to_owned(),
            inserted: "- [ ] email Ann\n- [ ] rest\n".to_owned(),
            lines: Some((4, 4)),
            lines_before: "# List\n\n".to_owned(),
            lines_after: "- [ ] last\n".to_owned(),
            ..TextHunk::default()
        };
        let view = DiffView::of_hunk(&hunk);
        assert_eq!(view.text(), " # List\n \n-- [ ] Call Ann\n+- [ ] email Ann\n+- [ ] rest\n - [ ] last\n");
        let numbers: Vec<(usize, usize)> = view.lines.iter().map(|line| line.numbers).collect();
        assert_eq!(numbers, [(2, 2), (3, 3), (4, 0), (0, 4), (0, 5), (5, 6)]);
        let marked: Vec<&str> = view.lines[3].marks.iter().map(|mark| &view.lines[3].text[mark.clone()]).collect();
        assert_eq!(marked, ["email"]);
        // Changes recorded by an older version have neither line numbers nor context lines.
        let old = TextHunk { removed: "a".to_owned(), inserted: "b".to_owned(), ..TextHunk::default() };
        assert_eq!(DiffView::of_hunk(&old).lines.iter().map(|line| line.numbers).collect::<Vec<_>>(), [(0, 0), (0, 0)]);
    }
}
