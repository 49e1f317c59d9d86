//! Reads figures within bounds. Their JSON is untrusted: a cell, a notebook or another device may have made it.

use crate::figure::{Axes, Figure, FigureMark, FigureReadError, MarkKind};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Maximum number of values in all evenly spaced columns of a figure. Each is a few bytes of JSON, whatever its length.
const MAX_EVEN_NUMBERS: u64 = 20_000_000;
/// Maximum number of axes.
const MAX_AXES: u64 = 1_000;
/// Maximum number of marks in all axes.
const MAX_MARKS: u64 = 20_000;
/// Maximum number of requested ticks on all axes.
const MAX_TICKS: u64 = 20_000;
/// Maximum length of one text in bytes.
const MAX_LABEL_BYTES: u64 = 10_000;
/// Maximum length of all texts in bytes.
const MAX_TEXT_BYTES: u64 = 1_000_000;
/// Maximum number of automatic ticks on an axis, each of which repeats the axis' format.
const MAX_FORMATTED_TICKS: u64 = 60;
/// Maximum number of cells of an image.
const MAX_GRID_CELLS: u64 = 100_000_000;
/// Maximum number of levels of a contour.
const MAX_CONTOUR_LEVELS: u64 = 1_000;
/// Maximum number of cells of all contours, where each level visits all cells.
const MAX_CONTOUR_STEPS: u64 = 50_000_000;
/// Maximum number of comparisons between the marks of a legend.
const MAX_LEGEND_STEPS: u64 = 4_000_000;
/// Maximum distance of axes from a figure's corner, as a fraction of its side.
const MAX_AXES_OFFSET: f64 = 4.0;

impl Figure {
    /// Reads a figure from JSON.
    ///
    /// # Errors
    /// Returns an error if the JSON isn't a valid figure, its size is out of range, it's more than can be drawn, or its
    /// display list is invalid.
    pub fn from_json(json: &str) -> Result<Figure, FigureReadError> {
        // Counted before the columns are expanded.
        let found: JsonCount = serde_json::from_str(json)?;
        at_most("evenly spaced numbers", found.even, MAX_EVEN_NUMBERS)?;
        let figure: Figure = serde_json::from_str(json)?;
        if !(figure.width >= 16.0 && figure.height >= 16.0 && figure.width.max(figure.height) <= 10_000.0) {
            return Err(FigureReadError::Size { width: figure.width, height: figure.height });
        }
        check_marks(&figure)?;
        if let Some(list) = &figure.display_list {
            list.check_bounds()?;
        }
        Ok(figure)
    }
}

/// Checks axes and marks.
fn check_marks(figure: &Figure) -> Result<(), FigureReadError> {
    let all = &figure.axes;
    at_most("axes", count(all.len()), MAX_AXES)?;
    at_most("marks", all.iter().map(|axes| count(axes.marks.len())).sum(), MAX_MARKS)?;
    let ticks = all.iter().flat_map(|axes| &axes.sides).filter_map(|side| side.ticks.as_ref());
    at_most("ticks", ticks.map(|ticks| count(ticks.at.len())).sum(), MAX_TICKS)?;
    let (mut text, mut contour_steps) = (checked_length(&figure.title)?, 0_u64);
    for axes in all {
        if !axes.place.iter().all(|share| share.abs() <= MAX_AXES_OFFSET) {
            return Err(FigureReadError::AxesPlace);
        }
        text = text.saturating_add(axes_text_bytes(axes)?);
        for mark in &axes.marks {
            text = text.saturating_add(mark_text_bytes(&mark.kind)?);
            contour_steps = contour_steps.saturating_add(grid_steps(&mark.kind)?);
        }
        if axes.legend.is_some() {
            let is_labeled = |mark: &&FigureMark| !mark.kind.label().is_empty();
            let labeled = count(axes.marks.iter().filter(is_labeled).count());
            at_most("pairs of marks in a legend", labeled * count(axes.marks.len()), MAX_LEGEND_STEPS)?;
        }
    }
    at_most("bytes of text", text, MAX_TEXT_BYTES)?;
    at_most("cells and levels of contours", contour_steps, MAX_CONTOUR_STEPS)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn at_most(what: &'static str, count: u64, most: u64) -> Result<(), FigureReadError> {
    if count <= most { Ok(()) } else { Err(FigureReadError::TooMany { what, count, most }) }
}

/// Returns the length of a text, which is limited.
fn checked_length(text: &str) -> Result<u64, FigureReadError> {
    at_most("bytes in a text", count(text.len()), MAX_LABEL_BYTES)?;
    Ok(count(text.len()))
}

fn sum_lengths<'t>(texts: impl IntoIterator<Item = &'t String>) -> Result<u64, FigureReadError> {
    texts.into_iter().map(|text| checked_length(text)).sum()
}

/// Returns the length of the texts that axes show.
fn axes_text_bytes(axes: &Axes) -> Result<u64, FigureReadError> {
    let mut bytes = checked_length(&axes.title)?;
    for side in &axes.sides {
        bytes += checked_length(&side.label)? + checked_length(&side.form)? * MAX_FORMATTED_TICKS;
        if let Some(ticks) = &side.ticks {
            // A tick without a label shows its value in the axis' format.
            bytes = bytes.saturating_add(sum_lengths(&ticks.labels)?);
            bytes = bytes.saturating_add(count(side.form.len()).saturating_mul(count(ticks.at.len())));
        }
    }
    bytes += axes.legend.as_ref().map_or(Ok(0), |legend| checked_length(&legend.title))?;
    bytes += axes.colorbar.as_ref().map_or(Ok(0), |bar| checked_length(&bar.label))?;
    Ok(bytes)
}

/// Returns the length of the texts that a mark shows.
fn mark_text_bytes(kind: &MarkKind) -> Result<u64, FigureReadError> {
    match kind {
        MarkKind::Text { text, .. } => checked_length(text),
        MarkKind::Pie { labels, shares, .. } => Ok(sum_lengths(labels)?.saturating_add(sum_lengths(shares)?)),
        MarkKind::Bars { hatch, label, .. } => Ok(checked_length(hatch)? + checked_length(label)?),
        _ => checked_length(kind.label()),
    }
}

/// Checks the grid of a mark. Returns how many cells are visited to draw it as a contour.
fn grid_steps(kind: &MarkKind) -> Result<u64, FigureReadError> {
    match kind {
        MarkKind::Image { rows, columns, .. } | MarkKind::Pixels { rows, columns, .. } => {
            at_most("cells of an image", count(*rows).saturating_mul(count(*columns)), MAX_GRID_CELLS)?;
            Ok(0)
        }
        MarkKind::Contour { x, y, levels, .. } => {
            at_most("levels of a contour", count(levels.len()), MAX_CONTOUR_LEVELS)?;
            let cells = count(x.0.len()).saturating_mul(count(y.0.len()));
            Ok(cells.saturating_mul(count(levels.len()).max(1)))
        }
        _ => Ok(0),
    }
}

/// What JSON holds: the values of its evenly spaced columns, and the number that it is, if it's a whole number.
#[derive(Default)]
struct JsonCount {
    even: u64,
    number: u64,
}

impl<'de> Deserialize<'de> for JsonCount {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<JsonCount, D::Error> {
        json.deserialize_any(JsonCountVisitor)
    }
}

struct JsonCountVisitor;

impl<'de> Visitor<'de> for JsonCountVisitor {
    type Value = JsonCount;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonCount, E> {
        Ok(JsonCount::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonCount, E> {
        Ok(JsonCount::default())
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonCount, E> {
        Ok(JsonCount { number, even: 0 })
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonCount, E> {
        Ok(JsonCount::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonCount, E> {
        Ok(JsonCount::default())
    }

    fn visit_unit<E>(self) -> Result<JsonCount, E> {
        Ok(JsonCount::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonCount, A::Error> {
        let mut all = JsonCount::default();
        while let Some(item) = items.next_element::<JsonCount>()? {
            all.even = all.even.saturating_add(item.even);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<JsonCount, A::Error> {
        let (mut all, mut count) = (JsonCount::default(), 0);
        let (mut has_start, mut has_step) = (false, false);
        while let Some((name, value)) = fields.next_entry::<String, JsonCount>()? {
            all.even = all.even.saturating_add(value.even);
            match name.as_str() {
                "start" => has_start = true,
                "step" => has_step = true,
                "count" => count = value.number.max(count),
                _ => {}
            }
        }
        if has_start && has_step {
            all.even = all.even.saturating_add(count);
        }
        Ok(all)
    }
}
