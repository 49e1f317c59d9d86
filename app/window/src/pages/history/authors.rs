//! The authors view: a version's text, each line with its last author and time, and passages with their author's color.

use super::side_by_side::fences;
use super::version_list::short_date_label;
use super::{glyph, hue};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Galley, Rect, Sense, Ui, pos2, vec2};
use host::history::AuthoredText;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use text::diff::line_ranges;
use text::history::{AuthoredSpan, ChangeAuthor, NoteHistory};
use text::untrusted_text;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::time::when;
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Width of the margin with author and time, in points.
const AUTHOR_MARGIN_WIDTH: f32 = 176.0;
/// Maximum bytes of a line that are drawn.
const MAX_AUTHORED_LINE_BYTES: usize = 8_000;
/// Time per frame spent on measuring the heights of lines.
const AUTHORED_MEASURE_BUDGET: Duration = Duration::from_millis(4);

/// A line of the text with its authors.
struct AuthoredRow {
    range: Range<usize>,
    /// Indices of the line's spans.
    written: Range<usize>,
    /// Index of the newest of these spans.
    newest: Option<usize>,
    code: bool,
    height: Option<f32>,
}

/// The text and its authors, as rows.
#[derive(Default)]
pub(super) struct AuthorsView {
    authored: Option<Arc<AuthoredText>>,
    rows: Vec<AuthoredRow>,
    /// The version of each span.
    versions: Vec<Option<usize>>,
    width: f32,
    top: bool,
}

impl AuthorsView {
    /// Sets the text and its authors, and rebuilds the rows.
    pub(super) fn set_authors(&mut self, authored: Arc<AuthoredText>, story: Option<&NoteHistory>) {
        let version = |written: &AuthoredSpan| {
            let change = written.change?;
            let story = story?;
            let at = story.versions.partition_point(|version| version.changes.end <= change);
            story.versions.get(at).filter(|version| version.changes.contains(&change)).map(|_| at)
        };
        self.versions = authored.spans.iter().map(version).collect();
        let (code, written) = (fences(&authored.text), &authored.spans);
        let mut first = 0;
        let rows = line_ranges(&authored.text, 0..authored.text.len()).map(|range| {
            while written.get(first).is_some_and(|one| one.range.end <= range.start) {
                first += 1;
            }
            let count =
                written[first..].iter().take_while(|one| one.range.start < range.end.max(range.start + 1)).count();
            let own = first..first + count;
            let newest = own.clone().max_by_key(|at| written[*at].change);
            let behind = code.partition_point(|code| code.end <= range.start);
            let code = code.get(behind).is_some_and(|code| code.start <= range.start)
                || authored.text.get(range.clone()).is_some_and(|line| line.starts_with('|'));
            AuthoredRow { range, written: own, newest, code, height: None }
        });
        self.rows = rows.collect();
        self.authored = Some(authored);
        self.top = true;
    }

    /// Draws the text. Returns the clicked version.
    pub(super) fn show(&mut self, ui: &mut Ui) -> Option<usize> {
        let authored = self.authored.clone()?;
        let width =
            (ui.available_width() - AUTHOR_MARGIN_WIDTH - 3.0 * space::L).clamp(80.0, theme::size::NOTE_COLUMN_WIDTH);
        if self.width != width {
            self.width = width;
            self.rows.iter_mut().for_each(|row| row.height = None);
        }
        let begun = Instant::now();
        for at in 0..self.rows.len() {
            if self.rows[at].height.is_none() {
                if begun.elapsed() > AUTHORED_MEASURE_BUDGET {
                    ui.ctx().request_repaint();
                    break;
                }
                let height = self.layout_row(ui, &authored, &self.rows[at]).size().y;
                self.rows[at].height = Some(height.max(20.0).round() + 2.0);
            }
        }
        let tops: Vec<f32> = std::iter::once(space::L)
            .chain(self.rows.iter().scan(space::L, |top, row| {
                *top += row.height.unwrap_or(22.0);
                Some(*top)
            }))
            .collect();
        let mut picked = None;
        let mut area = egui::ScrollArea::vertical().id_salt("writers").auto_shrink(false);
        if std::mem::take(&mut self.top) {
            area = area.vertical_scroll_offset(0.0);
        }
        area.show_viewport(ui, |ui, viewport| {
            ui.set_height(tops.last().copied().unwrap_or_default() + space::XXL);
            let page = ui.max_rect();
            let first = tops.partition_point(|top| *top < viewport.top()).saturating_sub(1);
            let mut last: Option<Option<usize>> = None;
            for (at, row) in self.rows.iter().enumerate().skip(first) {
                let (Some(top), Some(bottom)) = (tops.get(at), tops.get(at + 1)) else { break };
                if *top > viewport.bottom() {
                    break;
                }
                let y = page.top() + top..=page.top() + bottom;
                let version = row.newest.and_then(|newest| self.versions.get(newest).copied().flatten());
                let speaks = last.replace(version) != Some(version);
                let left = page.left() + space::L;
                let rect = Rect::from_x_y_ranges(
                    left..=left + AUTHOR_MARGIN_WIDTH + space::L + self.width,
                    *y.start()..=*y.end(),
                );
                if self.row(ui, rect, row, &authored, speaks) {
                    picked = version;
                }
            }
        });
        picked
    }

    fn layout_row(&self, ui: &Ui, authored: &AuthoredText, row: &AuthoredRow) -> Arc<Galley> {
        let colours = ThemeColors::of(ui);
        let font = if row.code { egui::FontId::new(12.5, egui::FontFamily::Monospace) } else { theme::small().font };
        let mut end = row.range.end.min(row.range.start + MAX_AUTHORED_LINE_BYTES);
        while !authored.text.is_char_boundary(end) {
            end -= 1;
        }
        let mut job = LayoutJob::default();
        job.wrap.max_width = self.width;
        for one in authored.spans.get(row.written.clone()).unwrap_or_default() {
            let (from, to) = (one.range.start.max(row.range.start), one.range.end.min(end));
            let Some(piece) = authored.text.get(from..to).filter(|piece| !piece.is_empty()) else { continue };
            let mut format = ui::widgets::format(font.clone(), 20.0, colours.ink);
            if let Some(who) = one.who.as_ref().filter(|who| **who != ChangeAuthor::Found) {
                format.background = colours.paper.lerp_to_gamma(hue(who, colours), 0.14);
            }
            job.append(&untrusted_text::escape_block(piece), 0.0, format);
        }
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    }

    /// Draws a line. Returns whether its version was clicked.
    fn row(&self, ui: &Ui, rect: Rect, row: &AuthoredRow, authored: &AuthoredText, speaks: bool) -> bool {
        let colours = ThemeColors::of(ui);
        let response = ui.interact(rect, ui.scope_id().with(("written", row.range.start)), Sense::CLICK);
        if response.hovered() {
            let ground = rect.with_max_x(rect.left() + AUTHOR_MARGIN_WIDTH);
            ui.painter().rect_filled(ground, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let newest = row.newest.and_then(|newest| authored.spans.get(newest));
        let who = newest.and_then(|one| one.who.as_ref());
        let said = who.map_or_else(|| "Unknown".to_owned(), ChangeAuthor::describe);
        let time = newest.map_or_else(String::new, |one| when(one.time));
        let text = authored.text.get(row.range.clone()).unwrap_or_default();
        let start: String = text.chars().take(400).collect();
        set_accessible_name(&response, Role::Label, &format!("{said}, {time}: {start}"));
        if let Some(who) = who {
            let bar = Rect::from_min_max(
                pos2(rect.left() + AUTHOR_MARGIN_WIDTH, rect.top()),
                pos2(rect.left() + AUTHOR_MARGIN_WIDTH + 3.0, rect.bottom()),
            );
            ui.painter().rect_filled(bar, 0.0, hue(who, colours));
        }
        if let Some(who) = who.filter(|_| speaks) {
            let icon = pos2(rect.left() + 8.0, rect.top() + 11.0);
            ui.painter().text(icon, Align2::CENTER_CENTER, glyph(who), theme::icon_font(13.0), hue(who, colours));
            let at_which = short_date_label(newest.map_or(0, |one| one.time));
            let words = if *who == ChangeAuthor::Found { said.clone() } else { format!("{said}  ·  {at_which}") };
            let at = pos2(rect.left() + 20.0, rect.top() + 3.0);
            paint_clipped_text(ui, at, AUTHOR_MARGIN_WIDTH - 20.0 - space::S, &words, &theme::caption(), colours.muted);
        }
        let galley = self.layout_row(ui, authored, row);
        ui.painter().galley(rect.left_top() + vec2(AUTHOR_MARGIN_WIDTH + space::L, 1.0), galley, colours.ink);
        let own = authored.spans.get(row.written.clone()).unwrap_or_default();
        let mut all: Vec<String> = Vec::new();
        for one in own {
            let who = one.who.as_ref().map_or_else(|| "Unknown".to_owned(), ChangeAuthor::describe);
            let line = if one.time == 0 { who } else { format!("{who}: {}", when(one.time)) };
            if !all.contains(&line) {
                all.push(line);
            }
        }
        let response = if all.len() > 1 {
            response.on_hover_text(untrusted_text::escape_block(&all.join("\n")).into_owned())
        } else {
            response
        };
        response.clicked()
    }
}
