//! A comparison of two texts, side by side or stacked in narrow panes: deletions on the left, insertions on the right,
//! changed words highlighted, common text folded.

use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Color32, Galley, Rect, Sense, Stroke, Ui, pos2, vec2};
use host::history::TextComparison;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use text::diff::{DiffLine, DiffPart, line_ranges};
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_focus_ring, set_accessible_name};

/// Number of unchanged lines shown around a change.
const DIFF_CONTEXT_LINES: usize = 3;
/// Minimum width for two columns. Below it, the sides are stacked.
const MIN_SIDE_BY_SIDE_WIDTH: f32 = 640.0;
/// Width of the gutter between the sides, with the buttons that restore a part.
const RESTORE_GUTTER_WIDTH: f32 = 44.0;
/// Width of the column with the sign of a line in the stacked view.
const DIFF_SIGN_WIDTH: f32 = 24.0;
/// Padding above and below the text of a row, in points.
const DIFF_ROW_PADDING: f32 = 3.0;
/// Maximum bytes of a line that are drawn.
const MAX_DIFF_LINE_BYTES: usize = 8_000;
/// Time per frame spent on measuring the heights of rows.
const DIFF_MEASURE_BUDGET: Duration = Duration::from_millis(4);

/// Content of a row.
#[derive(Clone, Debug)]
enum SideRow {
    /// Folded common lines: index of the part, and the number of lines.
    Fold(usize, usize),
    /// A common line: its range in the old and in the new text.
    Same(Range<usize>, Range<usize>),
    /// A row of a change with both sides: index of the part, and of the row in it.
    Both(usize, usize),
    /// A row with the old side only; `New` has the new side only.
    Old(usize, usize),
    New(usize, usize),
}

/// A comparison as a list of rows.
#[derive(Default)]
pub(crate) struct SideBySide {
    compared: Option<Arc<TextComparison>>,
    items: Vec<SideRow>,
    /// The height of each row for the current width, if it's measured.
    heights: Vec<Option<f32>>,
    /// The current width, and whether there are two columns.
    width: f32,
    wide: bool,
    unfolded: BTreeSet<usize>,
    /// Ranges of fenced code in the old and in the new text.
    code: [Vec<Range<usize>>; 2],
    /// The part of the change that was last navigated to.
    pub(crate) at: Option<usize>,
    /// The row to scroll to.
    aim: Option<usize>,
    made: bool,
}

impl SideBySide {
    /// Sets the comparison to show.
    pub(crate) fn set_comparison(&mut self, compared: Arc<TextComparison>) {
        self.code = [fences(&compared.old), fences(&compared.new)];
        self.unfolded.clear();
        self.compared = Some(compared);
        (self.made, self.at) = (false, None);
        self.aim = Some(0);
    }

    pub(crate) fn compared(&self) -> Option<Arc<TextComparison>> {
        self.compared.clone()
    }

    /// Returns the number of changes.
    pub(crate) fn changes(&self) -> usize {
        self.compared.as_ref().map_or(0, |compared| compared.comparison.change_count())
    }

    /// Moves to the next or previous change.
    pub(crate) fn go_to_change(&mut self, back: bool) {
        let Some(compared) = &self.compared else { return };
        let parts = compared.comparison.parts.iter().enumerate();
        let changes: Vec<usize> =
            parts.filter(|(_, part)| matches!(part, DiffPart::Change { .. })).map(|(at, _)| at).collect();
        let next = match (self.at, back) {
            (None, _) => changes.first(),
            (Some(at), false) => changes.iter().find(|change| **change > at).or(changes.last()),
            (Some(at), true) => changes.iter().rev().find(|change| **change < at).or(changes.first()),
        };
        self.at = next.copied();
        let first = |item: &SideRow| match item {
            SideRow::Both(part, _) | SideRow::Old(part, _) | SideRow::New(part, _) => Some(*part) == self.at,
            SideRow::Fold(..) | SideRow::Same(..) => false,
        };
        self.aim = self.items.iter().position(first);
    }

    /// Builds the rows.
    fn make(&mut self) {
        self.items.clear();
        let Some(compared) = &self.compared else { return };
        let parts = &compared.comparison.parts;
        for (at, part) in parts.iter().enumerate() {
            match part {
                DiffPart::Same { old, new, lines: count } => {
                    let head = if at == 0 { 0 } else { DIFF_CONTEXT_LINES };
                    let tail = if at + 1 == parts.len() { 0 } else { DIFF_CONTEXT_LINES };
                    let folds = *count > head + tail + 1 && !self.unfolded.contains(&at);
                    let both = line_ranges(&compared.old, old.clone()).zip(line_ranges(&compared.new, new.clone()));
                    for (place, (from, to)) in both.enumerate() {
                        if !folds || place < head || place + tail >= *count {
                            self.items.push(SideRow::Same(from, to));
                        } else if place == head {
                            self.items.push(SideRow::Fold(at, *count - head - tail));
                        }
                    }
                }
                DiffPart::Change { rows, .. } if self.wide => {
                    self.items.extend((0..rows.len()).map(|row| SideRow::Both(at, row)));
                }
                DiffPart::Change { rows, .. } => {
                    let all = 0..rows.len();
                    let gone = all.clone().filter(|row| rows[*row].old.is_some());
                    self.items.extend(gone.map(|row| SideRow::Old(at, row)));
                    self.items.extend(all.filter(|row| rows[*row].new.is_some()).map(|row| SideRow::New(at, row)));
                }
            }
        }
        self.heights = vec![None; self.items.len()];
        self.made = true;
    }

    /// Returns the width of a row's text, in points.
    fn column(&self) -> f32 {
        let all = if self.wide {
            (self.width - RESTORE_GUTTER_WIDTH) / 2.0 - 2.0 * space::M
        } else {
            self.width - DIFF_SIGN_WIDTH - RESTORE_GUTTER_WIDTH
        };
        all.max(40.0)
    }

    /// Draws the comparison. Returns the part that the user restores.
    pub(crate) fn show(&mut self, ui: &mut Ui, can: bool) -> Option<usize> {
        let compared = self.compared.clone()?;
        if self.changes() == 0 {
            empty_state::show_message(
                ui,
                "No differences: the note is the same now.",
                None,
                "Choose an older version.",
            );
            return None;
        }
        let width = ui.available_width() - 2.0 * space::L;
        let wide = width >= MIN_SIDE_BY_SIDE_WIDTH;
        if !self.made || self.wide != wide {
            (self.wide, self.width) = (wide, width);
            self.make();
        } else if self.width != width {
            self.width = width;
            self.heights.iter_mut().for_each(|height| *height = None);
        }
        self.measure(ui, &compared);
        let tops: Vec<f32> = std::iter::once(space::L)
            .chain(self.heights.iter().scan(space::L, |top, height| {
                *top += height.unwrap_or(size::MIN_CLICK_HEIGHT);
                Some(*top)
            }))
            .collect();
        let (mut picked, mut opened) = (None, None);
        let aim = self.aim.take();
        let mut area = egui::ScrollArea::vertical().id_salt("sides").auto_shrink(false);
        if let Some(row) = aim.filter(|row| *row < self.items.len()) {
            let top = tops.get(row).copied().unwrap_or_default();
            area = area.vertical_scroll_offset(if row == 0 { 0.0 } else { (top - 80.0).max(0.0) });
        }
        area.show_viewport(ui, |ui, viewport| {
            ui.set_height(tops.last().copied().unwrap_or_default() + space::XXL);
            let page = ui.max_rect();
            let first = tops.partition_point(|top| *top < viewport.top()).saturating_sub(1);
            for (row, item) in self.items.iter().enumerate().skip(first) {
                let (Some(top), Some(bottom)) = (tops.get(row), tops.get(row + 1)) else { break };
                if *top > viewport.bottom() {
                    break;
                }
                let left = page.left() + space::L;
                let rect =
                    Rect::from_min_max(pos2(left, page.top() + top), pos2(left + self.width, page.top() + bottom));
                match item {
                    SideRow::Fold(part, count) => {
                        if fold(ui, rect, *part, *count) {
                            opened = Some(*part);
                        }
                    }
                    item => {
                        let begins = row == 0 || part_of(&self.items[row - 1]) != part_of(item);
                        let chosen = self.at.is_some() && part_of(item) == self.at;
                        if self.row(ui, rect, item, &compared, (begins, chosen, can)) {
                            picked = part_of(item);
                        }
                    }
                }
            }
        });
        if let Some(part) = opened {
            self.unfolded.insert(part);
            self.made = false;
            ui.ctx().request_repaint();
        }
        picked
    }

    /// Measures the heights of rows, from the top, within the frame's time budget.
    fn measure(&mut self, ui: &Ui, compared: &TextComparison) {
        let begun = Instant::now();
        for row in 0..self.items.len() {
            if self.heights[row].is_some() {
                continue;
            }
            if begun.elapsed() > DIFF_MEASURE_BUDGET {
                ui.ctx().request_repaint();
                return;
            }
            let high = |galley: Option<Arc<Galley>>| galley.map_or(0.0, |galley| galley.size().y);
            let height = match &self.items[row] {
                SideRow::Fold(..) => size::MIN_CLICK_HEIGHT + space::S,
                SideRow::Same(from, _) if !self.wide => high(self.layout_line(ui, compared, false, &plain(from), None)),
                SideRow::Same(_, to) => high(self.layout_line(ui, compared, true, &plain(to), None)),
                item => {
                    let (old, new) = self.sides_of(item, compared);
                    let old = high(old.and_then(|line| self.layout_line(ui, compared, false, line, None)));
                    let new = high(new.and_then(|line| self.layout_line(ui, compared, true, line, None)));
                    old.max(new)
                }
            };
            self.heights[row] = Some(height.max(20.0).round() + 2.0 * DIFF_ROW_PADDING);
        }
    }

    /// Returns the old and new line of a row in a change.
    fn sides_of<'a>(
        &self,
        item: &SideRow,
        compared: &'a TextComparison,
    ) -> (Option<&'a DiffLine>, Option<&'a DiffLine>) {
        let row = |part: &usize, row: &usize| match compared.comparison.parts.get(*part) {
            Some(DiffPart::Change { rows, .. }) => rows.get(*row),
            Some(DiffPart::Same { .. }) | None => None,
        };
        match item {
            SideRow::Both(part, at) => row(part, at).map_or((None, None), |row| (row.old.as_ref(), row.new.as_ref())),
            SideRow::Old(part, at) => (row(part, at).and_then(|row| row.old.as_ref()), None),
            SideRow::New(part, at) => (None, row(part, at).and_then(|row| row.new.as_ref())),
            SideRow::Fold(..) | SideRow::Same(..) => (None, None),
        }
    }

    /// Lays out a line. `mark`: background of words that the other side lacks.
    fn layout_line(
        &self,
        ui: &Ui,
        compared: &TextComparison,
        new: bool,
        line: &DiffLine,
        mark: Option<Color32>,
    ) -> Option<Arc<Galley>> {
        let text = if new { &compared.new } else { &compared.old };
        let mut end = line.range.end.min(line.range.start + MAX_DIFF_LINE_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let fences = &self.code[usize::from(new)];
        let behind = fences.partition_point(|code| code.end <= line.range.start);
        let code = fences.get(behind).is_some_and(|code| code.start <= line.range.start)
            || text.get(line.range.clone())?.starts_with('|');
        let style = if code { theme::TypeStyle { line: 20.0, ..theme::code() } } else { theme::small() };
        let font = if code { egui::FontId::new(12.5, style.font.family) } else { style.font };
        let ink = ThemeColors::of(ui).ink;
        let mut job = LayoutJob::default();
        job.wrap.max_width = self.column();
        let mut put = |range: Range<usize>, ground: Option<Color32>| {
            let Some(piece) = text.get(range.start.min(end)..range.end.min(end)).filter(|piece| !piece.is_empty())
            else {
                return;
            };
            let mut format = ui::widgets::format(font.clone(), style.line, ink);
            format.background = ground.unwrap_or(Color32::TRANSPARENT);
            job.append(&untrusted_text::escape_block(piece), 0.0, format);
        };
        let mut at = line.range.start;
        for marked in &line.marks {
            put(at..marked.start, None);
            put(marked.clone(), mark);
            at = marked.end;
        }
        put(at..line.range.end, None);
        if end < line.range.end {
            job.append(" …", 0.0, ui::widgets::format(font, style.line, ThemeColors::of(ui).muted));
        }
        Some(ui.fonts_mut(|fonts| fonts.layout_job(job)))
    }

    /// Draws a row. Returns whether the user restores its part.
    fn row(
        &self,
        ui: &mut Ui,
        rect: Rect,
        item: &SideRow,
        compared: &TextComparison,
        (begins, chosen, can): (bool, bool, bool),
    ) -> bool {
        let colours = ThemeColors::of(ui);
        let half = (self.width - RESTORE_GUTTER_WIDTH) / 2.0;
        let (left, right) = if self.wide {
            (rect.with_max_x(rect.left() + half), rect.with_min_x(rect.right() - half))
        } else {
            let body = rect.with_max_x(rect.right() - RESTORE_GUTTER_WIDTH + space::M);
            (body, body)
        };
        let inset = if self.wide { space::M } else { DIFF_SIGN_WIDTH };
        let put = |ui: &Ui, at: Rect, new: bool, line: &DiffLine, ground: Option<(Color32, Color32)>| {
            let Some(galley) = self.layout_line(ui, compared, new, line, ground.map(|(_, mark)| mark)) else { return };
            if let Some((ground, _)) = ground {
                ui.painter().rect_filled(at, 0.0, ground);
            }
            ui.painter().galley(at.min + vec2(inset, DIFF_ROW_PADDING), galley, colours.ink);
        };
        let said = |new: bool, range: &Range<usize>| {
            let text = if new { &compared.new } else { &compared.old };
            let mut end = range.end.min(range.start + 400);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.get(range.start..end).unwrap_or_default().to_owned()
        };
        if let SideRow::Same(from, to) = item {
            if self.wide {
                put(ui, left, false, &plain(from), None);
            }
            put(ui, right, true, &plain(to), None);
            let response = ui.interact(rect, ui.scope_id().with(("same", from.start)), Sense::hover());
            set_accessible_name(&response, Role::Label, &said(true, to));
            return false;
        }
        let (old, new) = self.sides_of(item, compared);
        let gone = (colours.gone, colours.gone_strong);
        let come = (colours.come, colours.come_strong);
        if let Some(line) = old {
            put(ui, left, false, line, Some(gone));
            let response = ui.interact(left, ui.scope_id().with(("old", line.range.start)), Sense::hover());
            set_accessible_name(&response, Role::Label, &format!("Then: {}", said(false, &line.range)));
        } else if self.wide {
            ui.painter().rect_filled(left, 0.0, colours.sunken);
        }
        if let Some(line) = new {
            put(ui, right, true, line, Some(come));
            let response = ui.interact(right, ui.scope_id().with(("new", line.range.start)), Sense::hover());
            set_accessible_name(&response, Role::Label, &format!("Now: {}", said(true, &line.range)));
        } else if self.wide {
            ui.painter().rect_filled(right, 0.0, colours.sunken);
        }
        if !self.wide {
            let (sign, colour) = if old.is_some() { ("−", colours.bad) } else { ("+", colours.ok) };
            let at = rect.min + vec2(DIFF_SIGN_WIDTH / 2.0, 10.0 + DIFF_ROW_PADDING);
            ui.painter().text(at, Align2::CENTER_CENTER, sign, theme::tabular_font(13.0), colour);
        }
        if chosen {
            let bar = Rect::from_min_max(rect.left_top() - vec2(6.0, 0.0), rect.left_bottom() - vec2(3.0, 0.0));
            ui.painter().rect_filled(bar, 1.0, colours.accent);
        }
        if !(begins && can) {
            return false;
        }
        let x = if self.wide {
            rect.left() + half + RESTORE_GUTTER_WIDTH / 2.0
        } else {
            rect.right() - size::MIN_CLICK_HEIGHT / 2.0
        };
        let spot = Rect::from_center_size(
            pos2(x, rect.top() + 10.0 + DIFF_ROW_PADDING),
            egui::Vec2::splat(size::MIN_CLICK_HEIGHT),
        );
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(spot).id_salt(("back", part_of(item))));
        let response = icon_button(&mut child, icons::UNDO, "Bring back this part", None);
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        response.clicked()
    }
}

fn part_of(item: &SideRow) -> Option<usize> {
    match item {
        SideRow::Both(part, _) | SideRow::Old(part, _) | SideRow::New(part, _) => Some(*part),
        SideRow::Fold(..) | SideRow::Same(..) => None,
    }
}

fn plain(range: &Range<usize>) -> DiffLine {
    DiffLine { range: range.clone(), marks: Vec::new() }
}

/// Draws a row of folded common lines. Returns whether to unfold them.
fn fold(ui: &Ui, rect: Rect, part: usize, count: usize) -> bool {
    let colours = ThemeColors::of(ui);
    let rect = rect.shrink2(vec2(0.0, space::XS));
    let response = ui.interact(rect, ui.scope_id().with(("fold", part)), Sense::click());
    let words = if count == 1 { "1 line is the same".to_owned() } else { format!("{count} lines are the same") };
    set_accessible_name(&response, Role::Button, &format!("Show: {words}"));
    let colour = if response.hovered() { colours.ink } else { colours.muted };
    let middle = rect.center().y;
    let drawn = ui.painter().text(rect.center(), Align2::CENTER_CENTER, &words, theme::caption().font, colour);
    let line = Stroke::new(1.0, colours.line);
    ui.painter().hline(rect.left()..=drawn.left() - space::M, middle, line);
    ui.painter().hline(drawn.right() + space::M..=rect.right(), middle, line);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Returns the ranges of fenced code.
pub(super) fn fences(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            match open.take() {
                Some(from) => found.push(from..at),
                None => open = Some(start),
            }
        }
    }
    found.extend(open.map(|from| from..text.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_between_fences() {
        assert_eq!(fences("a\n```\nb\n```\nc\n~~~\nd"), [2..12, 14..19]);
        assert!(fences("none").is_empty());
    }
}
