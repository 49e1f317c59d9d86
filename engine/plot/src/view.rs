//! The view of a figure: the visible limits of its axes and its hidden marks. Also maps positions in a drawn figure
//! back to values, and finds the nearest point.

use crate::display_hover::nearest_point;
use crate::display_prepared::PreparedDisplay;
use crate::downsample::visible_range;
use crate::figure::{Axes, AxisSpec, MarkKind};
use crate::painter::{PlotPoint, PlotRect};
use crate::prepared::PreparedFigure;
use crate::scale::{AxisScale, format_date, format_with_step};
use std::collections::BTreeSet;

/// The view of a figure: visible limits and hidden marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotView {
    /// Visible limits along x and y, by index of the axes; `None` for the default.
    pub limits: Vec<[Option<[f64; 2]>; 2]>,
    /// Hidden marks: index of the axes and of the mark.
    pub hidden: BTreeSet<(usize, usize)>,
}

/// Position of a drawn pair of axes, in points from the figure's top left corner.
#[derive(Clone, Debug)]
pub struct PlacedAxes {
    /// Index of the axes in the figure.
    pub axes: usize,
    pub(crate) frame: PlotRect,
    pub(crate) scales: [AxisScale; 2],
    /// The entries of the legend.
    pub entries: Vec<LegendEntry>,
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendEntry {
    /// Label of the entry.
    pub label: String,
    /// Left, top, right and bottom.
    pub rect: [f64; 4],
    /// Indices of the marks that the entry stands for.
    pub marks: Vec<usize>,
    /// Whether these marks are visible.
    pub shown: bool,
}

/// The data point nearest to a position.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestPoint {
    /// Position in points from the figure's top left corner.
    pub at: [f64; 2],
    /// Description of the point, one line each for its series and values.
    pub description: String,
}

/// Smallest span that can be zoomed to, relative to the magnitude of the values.
const MIN_RELATIVE_SPAN: f64 = 1e-12;

impl PlotView {
    /// Returns whether the view is the default one.
    pub fn is_plain(&self) -> bool {
        self.hidden.is_empty() && self.limits.iter().flatten().all(Option::is_none)
    }

    /// Returns the visible limits of a pair of axes.
    pub(crate) fn limits_of(&self, axes: usize) -> [Option<[f64; 2]>; 2] {
        self.limits.get(axes).copied().unwrap_or_default()
    }

    /// Sets the limits of a pair of axes, and of those that share them.
    fn set_limits(&mut self, ready: &PreparedFigure, axes: usize, side: usize, limits: [f64; 2]) {
        let all = ready.shared_sides(side);
        self.limits.resize(all.len().max(self.limits.len()), [None, None]);
        let shared = |at: usize| all.get(at).copied().flatten();
        for at in 0..all.len() {
            if at == axes || (shared(at).is_some() && shared(at) == shared(axes)) {
                self.limits[at][side] = Some(limits);
            }
        }
    }

    /// Zooms by `factor` around a position (below 1 zooms out), including axes that overlay these.
    pub fn zoom(&mut self, ready: &PreparedFigure, place: &PlacedAxes, at: [f64; 2], factor: f64) {
        for side in [0, 1] {
            let scale = place.scales[side];
            let ends = [scale.from, scale.to].map(|end| scale.number(at[side] + (end - at[side]) / factor));
            self.set_limits_if_sound(ready, place, side, ends);
        }
    }

    /// Pans the view by a number of points.
    pub fn pan(&mut self, ready: &PreparedFigure, place: &PlacedAxes, by: [f64; 2]) {
        for side in [0, 1].into_iter().filter(|side| by[*side] != 0.0) {
            let scale = place.scales[side];
            let ends = [scale.from, scale.to].map(|end| scale.number(end - by[side]));
            self.set_limits_if_sound(ready, place, side, ends);
        }
    }

    fn set_limits_if_sound(&mut self, ready: &PreparedFigure, place: &PlacedAxes, side: usize, [low, high]: [f64; 2]) {
        let (span, large) = ((high - low).abs(), low.abs().max(high.abs()));
        let sound =
            low.is_finite() && high.is_finite() && span > large * MIN_RELATIVE_SPAN && span > 1e-290 && large < 1e290;
        if sound && (!place.scales[side].log || low.min(high) > 0.0) {
            self.set_limits(ready, place.axes, side, [low, high]);
        }
    }

    /// Toggles the visibility of a legend entry's marks.
    pub fn toggle(&mut self, axes: usize, entry: &LegendEntry) {
        for mark in &entry.marks {
            if entry.shown {
                self.hidden.insert((axes, *mark));
            } else {
                self.hidden.remove(&(axes, *mark));
            }
        }
    }
}

/// Formats a value for the hover card.
fn format_coordinate(side: &AxisSpec, x: f64, scale: AxisScale) -> String {
    let step = (scale.high - scale.low).abs() / 500.0;
    if let Some(ticks) = &side.ticks
        && let Some(at) = ticks.at.iter().position(|at| (at - x).abs() < 1e-9 && !ticks.labels.is_empty())
        && let Some(label) = ticks.labels.get(at)
    {
        return label.clone();
    }
    if side.dates {
        let day = 86_400.0;
        let whole = x.rem_euclid(day) == 0.0;
        return if whole { format_date(x, day) } else { format!("{} {}", format_date(x, day), format_date(x, 1.0)) };
    }
    format_with_step(x, if scale.log { x.abs() / 1_000.0 } else { step })
}

impl PlacedAxes {
    /// Returns whether a position is within the frame.
    pub fn contains(&self, at: [f64; 2]) -> bool {
        self.frame.contains((at[0], at[1]))
    }

    /// Returns left, top, right and bottom of the frame.
    pub fn frame(&self) -> [f64; 4] {
        [self.frame.left, self.frame.top, self.frame.right, self.frame.bottom]
    }

    /// Returns the limits along x and y, as drawn.
    pub fn limits(&self) -> [[f64; 2]; 2] {
        self.scales.map(|scale| [scale.low, scale.high])
    }

    /// Returns the data point nearest to a position, at most `reach` points away.
    pub fn nearest(&self, ready: &PreparedFigure, view: &PlotView, at: [f64; 2], reach: f64) -> Option<NearestPoint> {
        if let Some(display) = &ready.display {
            return self.nearest_in_display(display, view, at, reach);
        }
        let axes = ready.figure.axes.get(self.axes)?;
        let known = ready.axes.get(self.axes)?;
        let mut best: Option<(f64, NearestPoint)> = None;
        for number in known.order.iter().rev().filter(|number| !view.hidden.contains(&(self.axes, **number))) {
            let Some(mark) = axes.marks.get(*number) else { continue };
            let grows = known.mark_indexes.get(*number).is_some_and(|hint| hint.is_increasing);
            if let Some((far, near)) = self.nearest_on_mark(axes, &mark.kind, grows, (at[0], at[1]), reach)
                && best.as_ref().is_none_or(|(known, _)| far < *known)
            {
                best = Some((far, near));
            }
        }
        best.map(|(_, near)| near)
    }

    /// Returns the nearest point in a display list, or the position itself if none is near.
    fn nearest_in_display(
        &self,
        display: &PreparedDisplay,
        view: &PlotView,
        at: [f64; 2],
        reach: f64,
    ) -> Option<NearestPoint> {
        let axes = display.list.axes.get(self.axes)?;
        let near = nearest_point(display, (self.axes, self.frame), &view.limits, at, reach);
        let (spot, name) = near.unwrap_or((at, ""));
        let say = |side: usize| {
            let (spec, scale) = (AxisSpec { dates: axes.sides[side].dates, ..AxisSpec::default() }, self.scales[side]);
            format_coordinate(&spec, scale.number(spot[side]), scale)
        };
        let head = if name.is_empty() { String::new() } else { format!("{name}\n") };
        Some(NearestPoint { at: spot, description: format!("{head}x = {}\ny = {}", say(0), say(1)) })
    }

    fn nearest_on_mark(
        &self,
        axes: &Axes,
        kind: &MarkKind,
        grows: bool,
        at: PlotPoint,
        reach: f64,
    ) -> Option<(f64, NearestPoint)> {
        let [sx, sy] = self.scales;
        let label = kind.label();
        let words = |parts: &[(&str, String)]| {
            let head = (!label.is_empty()).then(|| label.to_owned());
            let parts = parts.iter().map(|(name, value)| format!("{name} = {value}"));
            head.into_iter().chain(parts).collect::<Vec<_>>().join("\n")
        };
        let x = |value: f64| ("x", format_coordinate(&axes.sides[0], value, sx));
        let y = |value: f64| ("y", format_coordinate(&axes.sides[1], value, sy));
        let inside = |from: [f64; 2], to: [f64; 2]| {
            at.0 >= from[0].min(to[0])
                && at.0 <= from[0].max(to[0])
                && at.1 >= from[1].min(to[1])
                && at.1 <= from[1].max(to[1])
        };
        match kind {
            MarkKind::Line { x: across, y: up, .. } | MarkKind::Points { x: across, y: up, .. } => {
                let count = across.0.len().min(up.0.len());
                let range = if grows {
                    let ends = [at.0 - reach, at.0 + reach].map(|at| sx.number(at));
                    visible_range(&across.0, AxisScale { low: ends[0], high: ends[1], ..sx })
                } else {
                    0..count
                };
                let (far, index) = range
                    .filter_map(|index| {
                        let place = (sx.position(*across.0.get(index)?), sy.position(*up.0.get(index)?));
                        let far = (place.0 - at.0).hypot(place.1 - at.1);
                        (far <= reach && self.frame.contains(place)).then_some((far, index))
                    })
                    .min_by(|a, b| a.0.total_cmp(&b.0))?;
                let (a, b) = (across.0[index], up.0[index]);
                let mut parts = vec![x(a), y(b)];
                if let Some(value) = kind.mapped_values().and_then(|shades| shades.values.0.get(index)) {
                    parts.push(("value", format_with_step(*value, value.abs() / 1_000.0)));
                }
                Some((far, NearestPoint { at: [sx.position(a), sy.position(b)], description: words(&parts) }))
            }
            MarkKind::Bars { x: left, y: low, width, height, .. } => {
                let all = left.0.iter().zip(&low.0).zip(width.0.iter().zip(&height.0));
                let ((left, low), (wide, high)) = all.into_iter().rev().find(|((left, low), (wide, high))| {
                    let low = if sy.log && **low <= 0.0 { sy.low } else { **low };
                    inside(
                        [sx.position(**left), sy.position(low)],
                        [sx.position(*left + *wide), sy.position(low + **high)],
                    )
                })?;
                let lying = axes.sides[1].ticks.is_some() && axes.sides[0].ticks.is_none();
                let (value, name) =
                    if lying { (left + wide, low + high / 2.0) } else { (low + high, left + wide / 2.0) };
                let parts = if lying { [x(value), y(name)] } else { [x(name), y(value)] };
                let place = if lying {
                    [sx.position(value), sy.position(name)]
                } else {
                    [sx.position(name), sy.position(value)]
                };
                Some((reach * 0.5, NearestPoint { at: place, description: words(&parts) }))
            }
            MarkKind::Image { rows, columns, shades, place } => {
                let (row, column) = self.image_cell(*rows, *columns, *place, at)?;
                let value = *shades.values.0.get(row * columns + column)?;
                let parts =
                    [x(sx.number(at.0)), y(sy.number(at.1)), ("value", format_with_step(value, value.abs() / 1_000.0))];
                Some((reach * 0.9, NearestPoint { at: [at.0, at.1], description: words(&parts) }))
            }
            MarkKind::Pixels { rows, columns, place, .. } => {
                let (row, column) = self.image_cell(*rows, *columns, *place, at)?;
                let parts = [("x", column.to_string()), ("y", row.to_string())];
                Some((reach * 0.9, NearestPoint { at: [at.0, at.1], description: words(&parts) }))
            }
            MarkKind::Pie { parts, labels, start, clockwise, .. } => {
                let (dx, dy) = (sx.number(at.0), sy.number(at.1));
                let total: f64 = parts.0.iter().sum();
                let turned = (dy.atan2(dx).to_degrees() - start) * if *clockwise { -1.0 } else { 1.0 };
                let mut left = turned.rem_euclid(360.0) / 360.0 * total;
                let far = dx.hypot(dy) <= 1.0;
                let number = parts.0.iter().position(|part| {
                    left -= part;
                    left < 0.0
                })?;
                let share = parts.0[number] / total * 100.0;
                let name = labels.get(number).map(|label| format!("{label}\n")).unwrap_or_default();
                let said = format!(
                    "{name}{} ({share:.1}%)",
                    format_with_step(parts.0[number], parts.0[number].abs() / 1_000.0)
                );
                far.then_some((reach * 0.9, NearestPoint { at: [at.0, at.1], description: said }))
            }
            MarkKind::Contour { x: across, y: up, shades, .. } => {
                let (a, b) = (sx.number(at.0), sy.number(at.1));
                let next = |all: &[f64], to: f64| {
                    all.iter()
                        .enumerate()
                        .min_by(|p, q| (p.1 - to).abs().total_cmp(&(q.1 - to).abs()))
                        .map(|(at, _)| at)
                };
                let (column, row) = (next(&across.0, a)?, next(&up.0, b)?);
                let value = *shades.values.0.get(row * across.0.len() + column)?;
                let spot = [sx.position(across.0[column]), sy.position(up.0[row])];
                let parts = [x(across.0[column]), y(up.0[row]), ("z", format_with_step(value, value.abs() / 1_000.0))];
                self.contains(spot).then(|| (reach * 0.95, NearestPoint { at: spot, description: words(&parts) }))
            }
            _ => None,
        }
    }

    /// Returns the row and column of an image's cell at a position.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the image")]
    fn image_cell(
        &self,
        rows: usize,
        columns: usize,
        [left, right, bottom, top]: [f64; 4],
        at: PlotPoint,
    ) -> Option<(usize, usize)> {
        let (x, y) = (self.scales[0].number(at.0), self.scales[1].number(at.1));
        let (across, down) = ((x - left) / (right - left), (y - top) / (bottom - top));
        let inside = (0.0..1.0).contains(&across) && (0.0..1.0).contains(&down);
        inside.then_some(((down * rows as f64) as usize, (across * columns as f64) as usize))
    }
}

/// Returns the legend entries: the index of the labeled mark, and the indices of all marks that belong to it.
pub(crate) fn legend_entries(axes: &Axes) -> Vec<(usize, Vec<usize>)> {
    let named = axes.marks.iter().enumerate().filter(|(_, mark)| !mark.kind.label().is_empty());
    named
        .map(|(number, mark)| {
            let with =
                |other: &usize| *other == number || (mark.group.is_some() && axes.marks[*other].group == mark.group);
            (number, (0..axes.marks.len()).filter(with).collect())
        })
        .collect()
}
