//! A hunk with the old text at the left and the new one at the right, line beside line, and highlighted words that
//! differ.

use eframe::egui;
use egui::text::{LayoutJob, TextFormat};
use egui::{Align2, Color32, Galley, Pos2, Rect, Ui, pos2, vec2};
use std::ops::Range;
use std::sync::Arc;
use store::TextHunk;
use text::diff::{self, DiffLine, DiffPart, DiffRow};
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};

/// Minimum width of a hunk for showing both texts beside each other.
const MIN_SPLIT_WIDTH: f32 = 640.0;
/// Width of a line number.
const LINE_NUMBER_WIDTH: f32 = 34.0;
/// Where the text of a line begins in its half.
const TEXT_INDENT: f32 = LINE_NUMBER_WIDTH + 8.0;
/// Height of a line that isn't wrapped.
const LINE_HEIGHT: f32 = 18.0;
/// Maximum number of rows of a hunk that are shown.
const MAX_SHOWN_ROWS: usize = 400;
/// Maximum number of bytes of a line that are shown.
const MAX_SHOWN_LINE_BYTES: usize = 4_000;

/// A line of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SplitLine {
    /// Its number in its text, from 1; 0 if unknown.
    number: usize,
    text: String,
    /// Byte ranges of the words that the other side doesn't have.
    marks: Vec<Range<usize>>,
}

/// Both sides of a row. Where only one has a line, the other is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SplitRow {
    old: Option<SplitLine>,
    new: Option<SplitLine>,
    has_changed: bool,
}

/// A hunk prepared for display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitDiff {
    rows: Vec<SplitRow>,
    left_out: usize,
}

impl SplitDiff {
    /// Builds the view of a hunk, with its recorded context lines; `None` if both texts don't fit beside each other, or
    /// if one of them is empty.
    pub(crate) fn for_width(hunk: &TextHunk, width: f32) -> Option<SplitDiff> {
        let has_both = !hunk.removed.is_empty() && !hunk.inserted.is_empty();
        (has_both && width >= MIN_SPLIT_WIDTH).then(|| SplitDiff::of_hunk(hunk))
    }

    fn of_hunk(hunk: &TextHunk) -> SplitDiff {
        let (old, new) = hunk.lines.map_or((0, 0), |(old, new)| (old as usize, new as usize));
        let count = hunk.lines_before.lines().count();
        let mut numbers = (old.saturating_sub(count), new.saturating_sub(count));
        let mut diff = SplitDiff::default();
        diff.push_same(&hunk.lines_before, &mut numbers);
        for part in diff::compare(&hunk.removed, &hunk.inserted).parts {
            match part {
                DiffPart::Same { old: range, .. } => {
                    diff.push_same(hunk.removed.get(range).unwrap_or_default(), &mut numbers);
                }
                DiffPart::Change { rows, .. } => {
                    for (old, new) in lines_beside_each_other(&rows) {
                        let old = old.map(|line| side_line(&hunk.removed, line, &mut numbers.0));
                        let new = new.map(|line| side_line(&hunk.inserted, line, &mut numbers.1));
                        diff.rows.push(SplitRow { old, new, has_changed: true });
                    }
                }
            }
        }
        diff.push_same(&hunk.lines_after, &mut numbers);
        diff.left_out = diff.rows.len().saturating_sub(MAX_SHOWN_ROWS);
        diff.rows.truncate(MAX_SHOWN_ROWS);
        diff
    }

    fn push_same(&mut self, text: &str, numbers: &mut (usize, usize)) {
        for line in text.lines() {
            let text = &line[..line.floor_char_boundary(MAX_SHOWN_LINE_BYTES)];
            let side = |number: &mut usize| {
                Some(SplitLine { number: take_number(number), text: text.to_owned(), marks: Vec::new() })
            };
            let (old, new) = (side(&mut numbers.0), side(&mut numbers.1));
            self.rows.push(SplitRow { old, new, has_changed: false });
        }
    }

    /// Returns the height at this width.
    pub(crate) fn height(&self, ui: &Ui, width: f32) -> f32 {
        let rows = self.rows.iter().map(|row| row_height(&galleys(ui, row, width)));
        rows.sum::<f32>() + if self.left_out > 0 { LINE_HEIGHT } else { 0.0 }
    }

    /// Draws the hunk.
    pub(crate) fn paint(&self, ui: &Ui, at: Pos2, width: f32) {
        let (colours, clip) = (ThemeColors::of(ui), ui.clip_rect());
        let mut top = at.y;
        for row in &self.rows {
            let galleys = galleys(ui, row, width);
            let height = row_height(&galleys);
            let rect = Rect::from_min_size(pos2(at.x, top), vec2(width, height));
            top += height;
            if !rect.intersects(clip) {
                continue;
            }
            let halves = [rect.with_max_x(rect.center().x), rect.with_min_x(rect.center().x)];
            let grounds = [colours.gone, colours.come];
            let sides = [&row.old, &row.new].into_iter().zip(galleys).zip(halves.into_iter().zip(grounds));
            for ((line, galley), (half, ground)) in sides {
                let (Some(line), Some(galley)) = (line, galley) else { continue };
                if row.has_changed {
                    ui.painter().rect_filled(half, 0.0, ground);
                }
                if line.number > 0 {
                    let place = pos2(half.left() + LINE_NUMBER_WIDTH - 4.0, half.top() + LINE_HEIGHT / 2.0);
                    let font = theme::tabular_font(11.0);
                    ui.painter().text(place, Align2::RIGHT_CENTER, line.number, font, colours.muted);
                }
                ui.painter().galley(half.min + vec2(TEXT_INDENT, 0.0), galley, colours.ink);
            }
        }
        let middle = at.x + width / 2.0;
        ui.painter().vline(middle, at.y..=top, egui::Stroke::new(1.0, colours.line));
        if self.left_out > 0 {
            let words = format!("… and {} lines more", self.left_out);
            let place = pos2(at.x + TEXT_INDENT, top);
            ui.painter().text(place, Align2::LEFT_TOP, words, theme::caption().font, colours.muted);
        }
    }
}

/// Returns the lines of a change in rows. Lines that replace others stand beside them even if they have no words in
/// common.
fn lines_beside_each_other(rows: &[DiffRow]) -> Vec<(Option<&DiffLine>, Option<&DiffLine>)> {
    let mut out = Vec::with_capacity(rows.len());
    for alone in rows.split_inclusive(|row| row.old.is_some() && row.new.is_some()) {
        let is_pair = |row: &&DiffRow| row.old.is_some() && row.new.is_some();
        let pair = alone.last().filter(is_pair);
        let alone = &alone[..alone.len() - usize::from(pair.is_some())];
        let mut old = alone.iter().filter_map(|row| row.old.as_ref());
        let mut new = alone.iter().filter_map(|row| row.new.as_ref());
        loop {
            match (old.next(), new.next()) {
                (None, None) => break,
                row => out.push(row),
            }
        }
        out.extend(pair.map(|row| (row.old.as_ref(), row.new.as_ref())));
    }
    out
}

/// Returns a line of a side, shortened, with its marks clipped to fit.
fn side_line(text: &str, line: &DiffLine, number: &mut usize) -> SplitLine {
    let whole = text.get(line.range.clone()).unwrap_or_default();
    let end = whole.floor_char_boundary(MAX_SHOWN_LINE_BYTES);
    let shift = |mark: &Range<usize>| {
        let start = mark.start.checked_sub(line.range.start)?;
        let stop = mark.end.checked_sub(line.range.start)?.min(end);
        (start < stop).then_some(start..stop)
    };
    let marks = line.marks.iter().filter_map(shift).collect();
    SplitLine { number: take_number(number), text: whole[..end].to_owned(), marks }
}

/// Returns a line's number, and increments it if it's known.
fn take_number(number: &mut usize) -> usize {
    let taken = *number;
    if taken > 0 {
        *number += 1;
    }
    taken
}

/// Lays out both sides of a row.
fn galleys(ui: &Ui, row: &SplitRow, width: f32) -> [Option<Arc<Galley>>; 2] {
    let colours = ThemeColors::of(ui);
    let ink = if row.has_changed { colours.ink } else { colours.muted };
    let room = (width / 2.0 - TEXT_INDENT - space::S).max(48.0);
    let lay_out = |line: &Option<SplitLine>, ground| line.as_ref().map(|line| galley(ui, line, (ink, ground), room));
    [lay_out(&row.old, colours.gone_strong), lay_out(&row.new, colours.come_strong)]
}

fn galley(ui: &Ui, line: &SplitLine, (ink, ground): (Color32, Color32), room: f32) -> Arc<Galley> {
    let font = egui::FontId::new(12.0, theme::code().font.family);
    let plain = ui::widgets::format(font, LINE_HEIGHT, ink);
    let mut job = LayoutJob::default();
    job.wrap.max_width = room;
    let mut push = |range: Range<usize>, format: TextFormat| {
        let piece = untrusted_text::escape_line(line.text.get(range).unwrap_or_default());
        job.append(&piece, 0.0, format);
    };
    let mut at = 0;
    for mark in &line.marks {
        push(at..mark.start, plain.clone());
        push(mark.clone(), TextFormat { background: ground, ..plain.clone() });
        at = mark.end;
    }
    push(at..line.text.len(), plain);
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

/// Returns the height of a row: that of its higher side.
fn row_height(galleys: &[Option<Arc<Galley>>; 2]) -> f32 {
    galleys.iter().flatten().map(|galley| galley.size().y).fold(LINE_HEIGHT, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_sides_stand_beside_each_other() {
        let hunk = TextHunk {
            removed: "- [ ] Call Ann\n".to_owned(),
            inserted: "- [ ] email Ann\n- [ ] rest\n".to_owned(),
            lines: Some((4, 5)),
            lines_before: "# List\n".to_owned(),
            lines_after: "- [ ] last\n".to_owned(),
            ..TextHunk::default()
        };
        assert_eq!(SplitDiff::for_width(&hunk, MIN_SPLIT_WIDTH - 1.0), None, "too narrow");
        let diff = SplitDiff::for_width(&hunk, MIN_SPLIT_WIDTH).expect("it's wide enough");
        let side = |line: &Option<SplitLine>| line.as_ref().map(|line| (line.number, line.text.clone()));
        let row = |old: Option<(usize, &str)>, new: Option<(usize, &str)>| {
            (old.map(|(number, text)| (number, text.to_owned())), new.map(|(number, text)| (number, text.to_owned())))
        };
        let rows: Vec<_> = diff.rows.iter().map(|row| (side(&row.old), side(&row.new))).collect();
        assert_eq!(
            rows,
            [
                row(Some((3, "# List")), Some((4, "# List"))),
                row(Some((4, "- [ ] Call Ann")), Some((5, "- [ ] email Ann"))),
                row(None, Some((6, "- [ ] rest"))),
                row(Some((5, "- [ ] last")), Some((7, "- [ ] last"))),
            ]
        );
        let marked = diff.rows[1].new.as_ref().map(|line| line.text[line.marks[0].clone()].to_owned());
        assert_eq!(marked.as_deref(), Some("email"));
        let other = TextHunk {
            removed: "- two\nA line with words.\n".to_owned(),
            inserted: "- 2\n- four\nA line with words, too.\n".to_owned(),
            lines: Some((1, 1)),
            ..TextHunk::default()
        };
        let diff = SplitDiff::for_width(&other, MIN_SPLIT_WIDTH).expect("it's wide enough");
        let rows: Vec<_> = diff.rows.iter().map(|row| (side(&row.old), side(&row.new))).collect();
        assert_eq!(
            rows,
            [
                row(Some((1, "- two")), Some((1, "- 2"))),
                row(None, Some((2, "- four"))),
                row(Some((2, "A line with words.")), Some((3, "A line with words, too."))),
            ]
        );
        let new_file = TextHunk { inserted: "all of it\n".to_owned(), ..TextHunk::default() };
        assert_eq!(SplitDiff::for_width(&new_file, 2_000.0), None, "there's nothing to compare");
    }
}
