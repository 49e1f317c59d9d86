//! The margin that shows which Git commit each part of a note is from.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Ui, pos2};
use engine::Note;
use host::source_control::{BlameReading, Commit};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use text::text_edit::shift_offset;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name};

/// Room between the text of the margin and the column, for the controls of rows and the boxes of cells.
const CONTROLS_WIDTH: f32 = 48.0;
/// Minimum width of text in the margin.
const MIN_BLAME_WIDTH: f32 = 24.0;
/// Maximum width that the longest text in the margin gets.
const MAX_BLAME_WIDTH: f32 = 200.0;
/// Maximum number of parts whose texts are measured.
const MAX_MEASURED_PARTS: usize = 500;

/// The commits of the displayed note's parts.
#[derive(Default)]
pub(super) struct BlameGutter {
    reading: Option<Arc<BlameReading>>,
    revision: u64,
    /// Where the parts of the reading are now.
    ranges: Vec<Range<usize>>,
    /// The part whose commit was last drawn in this frame.
    drawn: Option<usize>,
    /// Width of the longest text in the margin, once it's measured.
    text_width: Option<f32>,
}

impl BlameGutter {
    /// Takes what is known of the note; `None` shows nothing.
    pub(super) fn follow(&mut self, note: &Note, reading: Option<Arc<BlameReading>>) {
        let is_same = match (&self.reading, &reading) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            self.revision = reading.as_ref().map_or(0, |reading| reading.revision);
            self.ranges = reading.iter().flat_map(|reading| &reading.parts).map(|(range, _)| range.clone()).collect();
            self.reading = reading;
            self.text_width = None;
        }
        if self.reading.is_none() || self.revision == note.revision() {
            return;
        }
        match note.shifts_since(self.revision) {
            Some(shifts) => {
                for shift in shifts {
                    let through = |at: usize| shift_offset(at, shift.at, shift.delete, shift.insert, false);
                    self.ranges.iter_mut().for_each(|range| *range = through(range.start)..through(range.end));
                }
            }
            // Too much has changed; the next reading comes soon.
            None => self.ranges.clear(),
        }
        self.revision = note.revision();
    }

    /// Returns the margin that the longest text needs; `None` if nothing is shown.
    pub(super) fn wanted_margin(&mut self, ui: &Ui) -> Option<f32> {
        let reading = self.reading.as_ref()?;
        let text_width = self.text_width.get_or_insert_with(|| {
            let parts = reading.parts.iter().take(MAX_MEASURED_PARTS);
            let texts: BTreeSet<String> = parts.map(|(_, commit)| entry(reading, commit.as_ref()).0).collect();
            let style = theme::caption();
            let width = |text: &String| {
                let text = text::untrusted_text::escape_line(text).into_owned();
                ui.painter().layout_no_wrap(text, style.font.clone(), ThemeColors::of(ui).muted).size().x
            };
            texts.iter().map(width).fold(0.0, f32::max).min(MAX_BLAME_WIDTH).ceil()
        });
        Some(space::S + *text_width + CONTROLS_WIDTH)
    }

    /// Begins a frame.
    pub(super) fn begin_frame(&mut self) {
        self.drawn = None;
    }

    /// Draws the commit of a row that begins at this byte, if the row above is from another one.
    pub(super) fn show(&mut self, ui: &Ui, at: usize, area: Rect, column: f32) {
        let Some(reading) = &self.reading else { return };
        let part = self.ranges.partition_point(|range| range.end <= at);
        let is_there = self.ranges.get(part).is_some_and(|range| range.start <= at);
        if reading.trouble.is_none() && !is_there || self.drawn.replace(part) == Some(part) {
            return;
        }
        let commit = reading.parts.get(part).and_then(|(_, commit)| commit.as_ref());
        let (shown, about) = entry(reading, commit);
        let left = area.left() + space::S;
        let width = column - CONTROLS_WIDTH - left;
        if width < MIN_BLAME_WIDTH {
            return;
        }
        let rect = Rect::from_min_max(pos2(left, area.top()), pos2(left + width, area.top() + theme::body().line));
        let colours = ThemeColors::of(ui);
        let at = pos2(left, rect.center().y - 8.0);
        paint_clipped_text(ui, at, width, &shown, &theme::caption(), colours.muted);
        let response = ui.interact(rect, ui.scope_id().with(("blame", part)), Sense::hover());
        set_accessible_name(&response, Role::Label, &format!("Blame: {about}"));
        response.on_hover_text(text::untrusted_text::escape_block(&about).into_owned());
    }
}

/// Returns what the margin shows of a part, and the same in full.
fn entry(reading: &BlameReading, commit: Option<&Commit>) -> (String, String) {
    match (&reading.trouble, commit) {
        (Some(why), _) => (why.clone(), why.clone()),
        (None, None) => ("Not committed".to_owned(), "Not committed".to_owned()),
        (None, Some(commit)) => describe(commit),
    }
}

/// Returns a commit in few words, and in full.
fn describe(commit: &Commit) -> (String, String) {
    let when = ui::time::when(commit.author_time);
    let id = commit.id.get(..8).unwrap_or(&commit.id);
    (format!("{}, {when}", commit.author), format!("{}, {when}: {} ({id})", commit.author, commit.summary))
}
