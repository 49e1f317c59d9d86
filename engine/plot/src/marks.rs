//! Draws the visible marks of a pair of axes. Very many points are reduced to what a screen can show.

use crate::colour::{PlotTheme, Rgb, colour_at};
use crate::density::{GridPoint, MAX_RASTER_PIXELS, MarkerInk, MarkerRaster, PointGrid};
use crate::downsample::{dedupe_path, downsample_columns, visible_range};
use crate::draw::{LABEL_FONT_SIZE, SMALL_FONT_SIZE};
use crate::figure::{Axes, FigureColumn, MappedValues, MarkKind};
use crate::painter::{PlotBackend, PlotPainter, PlotPoint, PlotRect, PlotStroke, drawn_font_size};
use crate::prepared::{MarkIndex, PreparedAxes};
use crate::raster_marks::RasterMarks;
use crate::scale::AxisScale;
use plotters::style::text_anchor::{HPos, VPos};
use std::borrow::Cow;

/// A line with more points is drawn without those that can't be told apart.
const MAX_EXACT_LINE_POINTS: usize = 5_000;
/// Maximum number of markers drawn individually; more are drawn by grid cell.
pub(crate) const MAX_EXACT_MARKERS: usize = 20_000;
/// Maximum number of grid cells drawn.
const MAX_GRID_CELLS: f64 = 80_000.0;
/// Maximum number of grid cells that keep only whether they hold a marker.
const MAX_DENSE_GRID_CELLS: f64 = 4_000_000.0;
/// Maximum radius of a marker in points.
const MAX_MARKER_RADIUS_POINTS: f64 = 1_000.0;
/// Maximum number of times that a letter of a hatch makes it denser.
const MAX_HATCH_DENSITY: f64 = 12.0;

/// Draws the marks of a pair of axes.
pub(crate) struct MarkPainter<'a> {
    pub(crate) axes: &'a Axes,
    pub(crate) prepared: &'a PreparedAxes,
    pub(crate) look: PlotTheme,
    pub(crate) scales: [AxisScale; 2],
    pub(crate) frame: PlotRect,
}

/// A line's markers.
struct MarkerSeries<'a> {
    x: &'a FigureColumn,
    y: &'a FigureColumn,
    marker: &'a str,
    index: &'a MarkIndex,
}

/// The visible points.
enum VisiblePoints {
    Exact(Vec<(PlotPoint, u32)>),
    Gridded(PointGrid),
}

/// Appearance of a marker.
struct MarkerStyle {
    radius: f64,
    colour: Rgb,
    edge: Option<Rgb>,
}

pub(crate) fn mapped_colour(shades: &MappedValues, value: f64) -> Rgb {
    colour_at(&shades.map, map_share(shades, value))
}

/// Returns the position of a value in the color map, from 0 to 1.
pub(crate) fn map_share(shades: &MappedValues, value: f64) -> f64 {
    let bent = |x: f64| if shades.log { x.max(f64::MIN_POSITIVE).ln() } else { x };
    let (low, high) = (bent(shades.low), bent(shades.high));
    if high == low { 0.5 } else { (bent(value) - low) / (high - low) }
}

impl MarkPainter<'_> {
    fn position_of(&self, x: f64, y: f64) -> PlotPoint {
        (self.scales[0].position(x), self.scales[1].position(y))
    }

    pub(crate) fn draw_mark<B: PlotBackend>(&self, number: usize, pen: &mut PlotPainter<'_, B>) {
        let [sx, sy] = self.scales;
        let (frame, look) = (self.frame, self.look);
        let (Some(mark), Some(hint)) = (self.axes.marks.get(number), self.prepared.mark_indexes.get(number)) else {
            return;
        };
        match &mark.kind {
            MarkKind::Line { x, y, color, width, dash, marker, size, face, edge, every, alpha, .. } => {
                let stroke = PlotStroke { colour: look.resolve_colour(color), alpha: *alpha, width: *width, dash };
                if dash != "none" {
                    for piece in self.line_pieces(&x.0, &y.0, hint) {
                        pen.draw_path_within(&piece, stroke, frame);
                    }
                }
                if !marker.is_empty() {
                    let colour = look.resolve_colour(if face.is_empty() { color } else { face });
                    let edge = (!edge.is_empty() || face == "none")
                        .then(|| look.resolve_colour(if edge.is_empty() { color } else { edge }));
                    let colour = if face == "none" { look.background(&self.axes.ground) } else { colour };
                    let stamp = |_: usize| MarkerStyle { radius: *size / 2.0, colour, edge };
                    self.draw_markers(
                        &MarkerSeries { x, y, marker, index: hint },
                        (*every).max(1),
                        *alpha,
                        true,
                        stamp,
                        pen,
                    );
                }
            }
            MarkKind::Points { x, y, sizes, colors, values, marker, edge, alpha, .. } => {
                let pick = |number: usize, count: usize| if count == 1 { 0 } else { number % count.max(1) };
                let edge = (!edge.is_empty() && edge != "none").then(|| look.resolve_colour(edge));
                let stamp = |number: usize| {
                    let area = sizes.0.get(pick(number, sizes.0.len())).copied().unwrap_or(36.0);
                    let shaded =
                        values.as_ref().and_then(|shades| Some(mapped_colour(shades, *shades.values.0.get(number)?)));
                    let named =
                        || look.resolve_colour(colors.get(pick(number, colors.len())).map_or("C0", String::as_str));
                    MarkerStyle { radius: area.max(0.0).sqrt() / 2.0, colour: shaded.unwrap_or_else(named), edge }
                };
                let same = values.is_none() && colors.len() <= 1 && sizes.0.len() <= 1 && edge.is_none();
                self.draw_markers(&MarkerSeries { x, y, marker, index: hint }, 1, *alpha, same, stamp, pen);
            }
            MarkKind::Bars { x, y, width, height, colors, edge, hatch, alpha, .. } => {
                let all = x.0.iter().zip(&y.0).zip(width.0.iter().zip(&height.0));
                for (number, ((x, y), (wide, high))) in all.enumerate() {
                    if pen.is_exhausted() {
                        return;
                    }
                    // A logarithmic scale has no zero, so bars start at its lower limit.
                    let low = if sy.log && *y <= 0.0 { sy.low } else { *y };
                    let left = if sx.log && *x <= 0.0 { sx.low } else { *x };
                    let (a, b) = (self.position_of(left, low), self.position_of(x + wide, y + high));
                    if ![a.0, a.1, b.0, b.1].iter().all(|at| at.is_finite()) || is_outside(a, b, frame) {
                        continue;
                    }
                    let fill = colors.get(number % colors.len().max(1)).map_or("C0", String::as_str);
                    if fill != "none" {
                        pen.fill_rectangle_within(a, b, look.resolve_colour(fill), *alpha, frame);
                    }
                    if !hatch.is_empty() {
                        self.draw_hatch(a, b, hatch, edge, pen);
                    }
                    if !edge.is_empty() && edge != "none" {
                        let corners = [a, (b.0, a.1), b, (a.0, b.1), a];
                        let stroke =
                            PlotStroke { colour: look.resolve_colour(edge), alpha: 1.0, width: 1.0, dash: "-" };
                        pen.draw_path_within(&corners, stroke, frame);
                    }
                }
            }
            MarkKind::Area { x, low, high, color, alpha, .. } => {
                for pairs in self.area_strips(&x.0, &low.0, &high.0, hint) {
                    pen.fill_strip(&pairs, look.resolve_colour(color), *alpha);
                }
            }
            MarkKind::Polygons { x, y, colors, values, edge, alpha, .. } => {
                let mut corners: Vec<PlotPoint> = Vec::new();
                let mut number = 0;
                let ends = x.0.iter().zip(&y.0).map(|(x, y)| self.position_of(*x, *y));
                for at in ends.chain([(f64::NAN, f64::NAN)]) {
                    if at.0.is_finite() && at.1.is_finite() {
                        corners.push(at);
                        continue;
                    }
                    if corners.is_empty() {
                        continue;
                    }
                    let shaded =
                        values.as_ref().and_then(|shades| Some(mapped_colour(shades, *shades.values.0.get(number)?)));
                    let fill = colors.get(number % colors.len().max(1)).map_or("C0", String::as_str);
                    if shaded.is_some() || fill != "none" {
                        let fill = shaded.unwrap_or_else(|| look.resolve_colour(fill));
                        pen.fill_polygon_within(&corners, fill, *alpha, frame);
                    }
                    if !edge.is_empty() && edge != "none" {
                        corners.push(corners[0]);
                        let stroke =
                            PlotStroke { colour: look.resolve_colour(edge), alpha: 1.0, width: 1.0, dash: "-" };
                        pen.draw_path_within(&corners, stroke, frame);
                    }
                    corners.clear();
                    number += 1;
                }
            }
            MarkKind::Rule { at, vertical, color, width, dash, alpha, .. } => {
                let path = match vertical {
                    true => [(sx.position(*at), frame.top), (sx.position(*at), frame.bottom)],
                    false => [(frame.left, sy.position(*at)), (frame.right, sy.position(*at))],
                };
                let stroke = PlotStroke { colour: look.resolve_colour(color), alpha: *alpha, width: *width, dash };
                pen.draw_path_within(&path, stroke, frame);
            }
            MarkKind::Band { low, high, vertical, color, alpha, .. } => {
                let (a, b) = match vertical {
                    true => ((sx.position(*low), frame.top), (sx.position(*high), frame.bottom)),
                    false => ((frame.left, sy.position(*low)), (frame.right, sy.position(*high))),
                };
                if [a.0, a.1, b.0, b.1].iter().all(|at| at.is_finite()) && !is_outside(a, b, frame) {
                    pen.fill_rectangle_within(a, b, look.resolve_colour(color), *alpha, frame);
                }
            }
            MarkKind::Segments { x, y, color, width, dash, arrows, alpha, .. } => {
                let dash = if dash.is_empty() { "-" } else { dash };
                let stroke = PlotStroke { colour: look.resolve_colour(color), alpha: *alpha, width: *width, dash };
                for (x, y) in x.0.chunks_exact(2).zip(y.0.chunks_exact(2)) {
                    let (from, to) = (self.position_of(x[0], y[0]), self.position_of(x[1], y[1]));
                    pen.draw_path_within(&[from, to], stroke, frame);
                    if *arrows && frame.contains(to) {
                        draw_arrow_head(from, to, *width * 3.5, stroke, pen);
                    }
                }
            }
            kind @ MarkKind::Text { .. } => self.draw_text_mark(kind, pen),
            kind @ MarkKind::Pie { .. } => self.draw_pie(kind, pen),
            kind @ (MarkKind::Image { .. } | MarkKind::Pixels { .. } | MarkKind::Contour { .. }) => {
                RasterMarks { scales: self.scales, frame, look }.draw(kind, pen);
            }
        }
    }

    /// Returns the unbroken visible pieces of a line.
    fn line_pieces(&self, x: &[f64], y: &[f64], hint: &MarkIndex) -> Vec<Vec<PlotPoint>> {
        let mut pieces: Vec<Vec<PlotPoint>> = Vec::new();
        let mut piece = Vec::new();
        let mut add = |at: PlotPoint, piece: &mut Vec<PlotPoint>| {
            if at.0.is_finite() && at.1.is_finite() {
                piece.push(at);
            } else if !piece.is_empty() {
                pieces.push(std::mem::take(piece));
            }
        };
        const LINE_BREAK: PlotPoint = (f64::NAN, f64::NAN);
        if hint.is_increasing {
            for part in downsample_columns(x, y, &hint.blocks[0], self.scales[0], self.frame) {
                part.iter().for_each(|number| add(self.position_of(x[*number], y[*number]), &mut piece));
                add(LINE_BREAK, &mut piece);
            }
            return pieces;
        }
        x.iter().zip(y).for_each(|(x, y)| add(self.position_of(*x, *y), &mut piece));
        add(LINE_BREAK, &mut piece);
        if x.len() > MAX_EXACT_LINE_POINTS {
            pieces.iter_mut().for_each(|piece| *piece = dedupe_path(piece));
        }
        pieces
    }

    /// Returns the visible area between two lines as pairs of points, the upper one first.
    fn area_strips(&self, x: &[f64], low: &[f64], high: &[f64], hint: &MarkIndex) -> Vec<Vec<(PlotPoint, PlotPoint)>> {
        let count = x.len().min(low.len()).min(high.len());
        let shown: Cow<'_, [usize]> = if hint.is_increasing {
            let [lows, highs] = &hint.blocks;
            let mut all = downsample_columns(x, low, lows, self.scales[0], self.frame).concat();
            all.extend(downsample_columns(x, high, highs, self.scales[0], self.frame).concat());
            // Missing points are kept, so that gaps stay visible.
            let seen = visible_range(x, self.scales[0]);
            let missing = seen.filter(|at| !(low[*at].is_finite() && high[*at].is_finite()));
            all.extend(missing.take(MAX_EXACT_LINE_POINTS));
            all.sort_unstable();
            all.dedup();
            all.into()
        } else {
            (0..count).collect()
        };
        let mut strips = vec![Vec::new()];
        let mut before: Option<(f64, f64, f64)> = None;
        for at in shown.iter().copied() {
            let (across, a, b) =
                (self.scales[0].position(x[at]), self.scales[1].position(high[at]), self.scales[1].position(low[at]));
            // A logarithmic scale has no zero, so the area extends to the bottom of the frame.
            let b = if self.scales[1].log && low[at] <= 0.0 { self.frame.bottom } else { b };
            if !(across.is_finite() && a.is_finite() && b.is_finite()) {
                strips.push(Vec::new());
                before = None;
                continue;
            }
            let Some(strip) = strips.last_mut() else { break };
            if let Some((x0, a0, b0)) = before {
                let (d0, d1) = (b0 - a0, b - a);
                let mut between: Vec<f64> = Vec::new();
                // Splits the strip where the lines cross each other or the frame.
                let mut cross = |from: f64, to: f64| {
                    if (from < 0.0) != (to < 0.0) && from != to {
                        between.push(from / (from - to));
                    }
                };
                cross(d0, d1);
                for edge in [self.frame.top, self.frame.bottom] {
                    cross(a0 - edge, a - edge);
                    cross(b0 - edge, b - edge);
                }
                for edge in [self.frame.left, self.frame.right] {
                    cross(x0 - edge, across - edge);
                }
                between.sort_by(f64::total_cmp);
                for share in between {
                    let of = |from: f64, to: f64| from + (to - from) * share;
                    self.push_clipped_pair(of(x0, across), of(a0, a), of(b0, b), strip);
                }
            }
            self.push_clipped_pair(across, a, b, strip);
            before = Some((across, a, b));
        }
        strips.retain(|strip| strip.len() > 1);
        strips
    }

    fn push_clipped_pair(&self, x: f64, a: f64, b: f64, strip: &mut Vec<(PlotPoint, PlotPoint)>) {
        let frame = self.frame;
        if x < frame.left - 1e-6 || x > frame.right + 1e-6 {
            return;
        }
        let inside = |y: f64| y.clamp(frame.top, frame.bottom);
        strip.push(((x, inside(a)), (x, inside(b))));
    }

    /// Draws markers at points; `same` means that all look alike.
    #[allow(clippy::cast_possible_truncation, reason = "no column has so many numbers")]
    fn draw_markers<B: PlotBackend>(
        &self,
        points: &MarkerSeries<'_>,
        every: usize,
        alpha: f64,
        same: bool,
        stamp: impl Fn(usize) -> MarkerStyle,
        pen: &mut PlotPainter<'_, B>,
    ) {
        let MarkerSeries { x, y, marker, index: hint } = points;
        let range = if hint.is_increasing { visible_range(&x.0, self.scales[0]) } else { 0..x.0.len().min(y.0.len()) };
        let place = |number: usize| self.position_of(x.0[number], y.0.get(number).copied().unwrap_or(f64::NAN));
        let seen = |at: PlotPoint| at.0.is_finite() && at.1.is_finite() && self.frame.contains(at);
        let radius = range.clone().next().map_or(1.0, |number| stamp(number).radius);
        // Markers at every second cell along both axes still cover the cells between them.
        let cell = (radius * 0.7).clamp(0.5, 2.0);
        let area = self.frame.width() * self.frame.height();
        let inner = same && alpha >= 1.0 && cell <= radius * 0.7 && area <= MAX_DENSE_GRID_CELLS * cell * cell;
        let fewest = (area / MAX_GRID_CELLS).sqrt();
        let cell = if inner { cell } else { cell.max(fewest) };
        let gathered = if hint.tiles.is_empty() {
            let all = range.step_by(every).map(|number| (place(number), number as u32));
            self.collect_visible(all.filter(|(at, _)| seen(*at)), cell, inner)
        } else {
            let onto = |side: usize| hint.tiles.frame_transform(side, self.scales[side].affine());
            let [(x, across), (y, up)] = [onto(0), onto(1)];
            // Rounding error of the tiled positions, which becomes visible at high zoom.
            let off = across.abs().max(up.abs()) * f64::from(f32::EPSILON);
            let exact = off > 0.2;
            let (every, around) = (u32::try_from(every).unwrap_or(u32::MAX), self.frame.expanded(off));
            let all = hint.tiles.points_within(self.scales.map(AxisScale::padded_ends));
            let all = all.map(|([a, b], which)| ((x + f64::from(*a) * across, y + f64::from(*b) * up), *which));
            let all = all.filter(|(at, which)| around.contains(*at) & (every == 1 || which % every == 0));
            let all = all.map(|(at, which)| if exact { (place(which as usize), which) } else { (at, which) });
            self.collect_visible(all.filter(|(at, _)| !exact || seen(*at)), cell, inner)
        };
        let cells = match gathered {
            VisiblePoints::Gridded(cells) => cells,
            VisiblePoints::Exact(few) => {
                for which in few.into_iter().map(|(_, which)| which as usize) {
                    let MarkerStyle { radius, colour, edge } = stamp(which);
                    draw_marker(pen, place(which), marker, &MarkerInk { radius, colour, alpha, edge });
                }
                return;
            }
        };
        // Small markers fill their cell, so that a full grid shows no pattern.
        let least = if cell > 0.5 { cell * 0.6 } else { 0.0 };
        // On screen, the markers become one image.
        let fits = |density: &f64| area * density * density <= MAX_RASTER_PIXELS;
        let density = pen.pixels_per_point().filter(fits);
        let density = density.filter(|density| pen.spend_pixels(area * density * density));
        let raster = density.and_then(|density| MarkerRaster::new(self.frame, density, marker, inner));
        let (mut raster, mut large) = (raster, Vec::new());
        cells.for_each_drawn(
            |number| place(number as usize),
            |GridPoint { at, index: which, count }| {
                let MarkerStyle { radius, colour, edge } = stamp(which as usize);
                // The more points share a cell, the more opaque it is.
                let alpha = if count > 1 { 1.0 - (1.0 - alpha).powf(f64::from(count)) } else { alpha };
                let ink = MarkerInk { radius: if radius > 0.0 { radius.max(least) } else { 0.0 }, colour, alpha, edge };
                match &mut raster {
                    Some(raster) if raster.can_stamp(ink.radius) => raster.stamp(at, &ink),
                    Some(_) | None => large.push((at, ink)),
                }
            },
        );
        large.iter().for_each(|(at, ink)| draw_marker(pen, *at, marker, ink));
        if let Some(raster) = raster {
            let (end, columns, rows, bytes) = raster.to_pixels();
            pen.draw_pixels((self.frame.left, self.frame.top), end, columns, rows, &bytes);
        }
    }

    /// Returns the visible points: individually in drawing order, or as cells of a grid.
    fn collect_visible(
        &self,
        mut seen: impl Iterator<Item = (PlotPoint, u32)>,
        cell: f64,
        same: bool,
    ) -> VisiblePoints {
        let mut few: Vec<(PlotPoint, u32)> = seen.by_ref().take(MAX_EXACT_MARKERS + 1).collect();
        if few.len() <= MAX_EXACT_MARKERS {
            few.sort_unstable_by_key(|(_, which)| *which);
            return VisiblePoints::Exact(few);
        }
        let mut cells = PointGrid::new(self.frame, cell, same);
        few.into_iter().chain(seen).for_each(|(at, which)| cells.add_point(at, which));
        VisiblePoints::Gridded(cells)
    }

    /// Draws hatch lines across a rectangle.
    fn draw_hatch<B: PlotBackend>(
        &self,
        a: PlotPoint,
        b: PlotPoint,
        hatch: &str,
        edge: &str,
        pen: &mut PlotPainter<'_, B>,
    ) {
        let frame = self.frame;
        let inner = PlotRect {
            left: a.0.min(b.0).max(frame.left),
            right: a.0.max(b.0).min(frame.right),
            top: a.1.min(b.1).max(frame.top),
            bottom: a.1.max(b.1).min(frame.bottom),
        };
        let colour = if edge.is_empty() || edge == "none" { self.look.ink } else { self.look.resolve_colour(edge) };
        let stroke = PlotStroke { colour, alpha: 0.8, width: 0.8, dash: "-" };
        let mut lines = |slope: f64, gap: f64| {
            let high = inner.height();
            let count = ((inner.width() + high) / gap).min(2_000.0);
            let mut at = 0.0;
            while at <= count {
                let x = inner.left - high + at * gap;
                let (from, to) = ((x, inner.bottom), (x + high, inner.top));
                let flip = |(x, y): PlotPoint| (inner.left + inner.right - x, y);
                let path = if slope > 0.0 { [from, to] } else { [flip(from), flip(to)] };
                pen.draw_path_within(&path, stroke, inner);
                at += 1.0;
            }
        };
        let count = |letter: char| {
            let times = hatch.chars().filter(|other| *other == letter).count() as f64;
            times.min(MAX_HATCH_DENSITY)
        };
        if count('/') + count('x') > 0.0 {
            lines(1.0, 12.0 / (count('/') + count('x')));
        }
        if count('\\') + count('x') > 0.0 {
            lines(-1.0, 12.0 / (count('\\') + count('x')));
        }
        let mut straight = |upright: bool, times: f64| {
            let gap = 10.0 / times;
            let (from, to) = if upright { (inner.left, inner.right) } else { (inner.top, inner.bottom) };
            let mut at = from + gap / 2.0;
            while at < to && gap > 0.5 {
                let ends = match upright {
                    true => [(at, inner.top), (at, inner.bottom)],
                    false => [(inner.left, at), (inner.right, at)],
                };
                pen.draw_path(&ends, stroke);
                at += gap;
            }
        };
        if count('|') + count('+') > 0.0 {
            straight(true, count('|') + count('+'));
        }
        if count('-') + count('+') > 0.0 {
            straight(false, count('-') + count('+'));
        }
        if count('.') + count('o') > 0.0 {
            let gap = 8.0 / (count('.') + count('o')).max(1.0);
            let mut y = inner.top + gap / 2.0;
            while y < inner.bottom && !pen.is_exhausted() {
                let mut x = inner.left + gap / 2.0;
                while x < inner.right && !pen.is_exhausted() {
                    pen.fill_circle((x, y), 0.9, colour, 0.8);
                    x += gap;
                }
                y += gap;
            }
        }
    }

    fn draw_text_mark<B: PlotBackend>(&self, kind: &MarkKind, pen: &mut PlotPainter<'_, B>) {
        let MarkKind::Text { x, y, text, color, size, h, v, arrow, shift, inside, turn, ground } = kind else { return };
        let (frame, colour) = (self.frame, self.look.resolve_colour(color));
        let size = drawn_font_size(*size);
        let base = match inside {
            true => (frame.left + x * frame.width(), frame.bottom - y * frame.height()),
            false => self.position_of(*x, *y),
        };
        let at = (base.0 + shift[0], base.1 - shift[1]);
        if !(at.0.is_finite() && at.1.is_finite()) {
            return;
        }
        let up = turn.abs() > 15.0;
        let wide = pen.text_width(text, size);
        let high = size * 1.25 * text.lines().count() as f64;
        let (wide, high) = if up { (high, wide) } else { (wide, high) };
        let h = match h.as_str() {
            "center" => HPos::Center,
            "right" => HPos::Right,
            _ => HPos::Left,
        };
        let v = match v.as_str() {
            "center" | "center_baseline" => VPos::Center,
            "top" => VPos::Top,
            _ => VPos::Bottom,
        };
        let left = match h {
            HPos::Left => at.0,
            HPos::Center => at.0 - wide / 2.0,
            HPos::Right => at.0 - wide,
        };
        let top = match v {
            VPos::Top => at.1,
            VPos::Center => at.1 - high / 2.0,
            VPos::Bottom => at.1 - high,
        };
        let around = PlotRect { left: left - 3.0, top: top - 2.0, right: left + wide + 3.0, bottom: top + high + 2.0 };
        if let Some([to_x, to_y]) = arrow {
            let to = self.position_of(*to_x, *to_y);
            let middle = ((around.left + around.right) / 2.0, (around.top + around.bottom) / 2.0);
            let stroke = PlotStroke { colour, alpha: 1.0, width: 1.0, dash: "-" };
            // The arrow starts at the edge of the text box, on the line from its center.
            let from = rect_exit_point(middle, to, around);
            if to.0.is_finite() && to.1.is_finite() {
                pen.draw_path(&[from, to], stroke);
                draw_arrow_head(from, to, 4.0, stroke, pen);
            }
        }
        // Text too far outside the axes has moved out of view with its position.
        if !inside && !frame.expanded(60.0).contains(at) {
            return;
        }
        if !ground.is_empty() && ground != "none" {
            let (a, b) = ((around.left, around.top), (around.right, around.bottom));
            pen.draw_rectangle(a, b, self.look.exact_colour(ground), 0.85, true, 1.0);
            pen.draw_rectangle(a, b, self.look.grid_line, 1.0, false, 0.8);
        }
        if up {
            let (h, v) = ((HPos::Center), (VPos::Center));
            pen.draw_text(text, (left + wide / 2.0, top + high / 2.0), size, colour, (h, v), true);
        } else {
            pen.draw_text(text, at, size, colour, (h, v), false);
        }
    }

    fn draw_pie<B: PlotBackend>(&self, kind: &MarkKind, pen: &mut PlotPainter<'_, B>) {
        let MarkKind::Pie { parts, colors, labels, shares, start, out, hole, clockwise } = kind else { return };
        let [sx, sy] = self.scales;
        let look = self.look;
        let total: f64 = parts.0.iter().sum();
        let mut from = start.to_radians();
        let radius = (sx.position(1.0) - sx.position(0.0)).min(sy.position(0.0) - sy.position(1.0));
        let sign = if *clockwise { -1.0 } else { 1.0 };
        for (number, part) in parts.0.iter().enumerate() {
            if pen.is_exhausted() {
                return;
            }
            let to = from + sign * part / total * std::f64::consts::TAU;
            let middle = f64::midpoint(from, to);
            let away = out.0.get(number).copied().unwrap_or(0.0) * radius;
            let centre = (sx.position(0.0) + away * middle.cos(), sy.position(0.0) - away * middle.sin());
            let point = |angle: f64, share: f64| {
                (centre.0 + radius * share * angle.cos(), centre.1 - radius * share * angle.sin())
            };
            let steps = 64_u32;
            let along = |at: u32| from + (to - from) * f64::from(at) / f64::from(steps);
            let arc = (0..=steps).map(|at| point(along(at), 1.0));
            let inner: Vec<PlotPoint> = match *hole > 0.0 {
                true => (0..=steps).rev().map(|at| point(along(at), *hole)).collect(),
                false => vec![point(0.0, 0.0)],
            };
            let corners: Vec<PlotPoint> = arc.chain(inner).collect();
            let fill = colors.get(number % colors.len().max(1)).map_or("C0", String::as_str);
            pen.fill_polygon_within(&corners, look.resolve_colour(fill), 1.0, self.frame);
            let edge = PlotStroke { colour: look.background(&self.axes.ground), alpha: 1.0, width: 1.5, dash: "-" };
            for angle in [from, to] {
                pen.draw_path_within(&[point(angle, *hole), point(angle, 1.0)], edge, self.frame);
            }
            let frame = self.frame.expanded(80.0);
            if let Some(label) = labels.get(number).filter(|_| frame.contains(point(middle, 1.1))) {
                let h = if middle.cos() < 0.0 { HPos::Right } else { HPos::Left };
                pen.draw_text(label, point(middle, 1.1), LABEL_FONT_SIZE, look.ink, (h, VPos::Center), false);
            }
            if let Some(share) = shares.get(number).filter(|_| self.frame.contains(point(middle, 0.6))) {
                let at = point(middle, if *hole > 0.0 { f64::midpoint(*hole, 1.0) } else { 0.6 });
                let (red, green, blue) = look.resolve_colour(fill);
                // Text on a color is dark or light, whichever is more readable.
                let light = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue) > 150.0;
                let ink = if light { (0x1f, 0x23, 0x28) } else { (255, 255, 255) };
                pen.draw_text(share, at, SMALL_FONT_SIZE, ink, (HPos::Center, VPos::Center), false);
            }
            from = to;
        }
    }
}

/// Returns whether a rectangle is entirely outside a frame.
fn is_outside(a: PlotPoint, b: PlotPoint, frame: PlotRect) -> bool {
    a.0.max(b.0) < frame.left || a.0.min(b.0) > frame.right || a.1.max(b.1) < frame.top || a.1.min(b.1) > frame.bottom
}

/// Returns where the line from a rectangle's center to a point crosses its edge.
fn rect_exit_point(middle: PlotPoint, to: PlotPoint, around: PlotRect) -> PlotPoint {
    let (dx, dy) = (to.0 - middle.0, to.1 - middle.1);
    let share = (around.width() / 2.0 / dx.abs()).min(around.height() / 2.0 / dy.abs());
    if share < 1.0 { (middle.0 + dx * share, middle.1 + dy * share) } else { middle }
}

/// Draws an arrowhead.
fn draw_arrow_head<B: PlotBackend>(
    from: PlotPoint,
    to: PlotPoint,
    size: f64,
    stroke: PlotStroke<'_>,
    pen: &mut PlotPainter<'_, B>,
) {
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    if length > 1.0 && length.is_finite() {
        let size = size.clamp(2.5, 8.0).min(length);
        let (dx, dy) = ((to.0 - from.0) / length, (to.1 - from.1) / length);
        let back = (to.0 - dx * size * 1.8, to.1 - dy * size * 1.8);
        let (left, right) = (
            (back.0 - dy * size * 0.8, back.1 + dx * size * 0.8),
            (back.0 + dy * size * 0.8, back.1 - dx * size * 0.8),
        );
        pen.fill_polygon(&[to, left, right], stroke.colour, stroke.alpha);
    }
}

/// Returns the corners of a polygonal marker; `None` for other markers.
pub(crate) fn marker_corners((x, y): PlotPoint, marker: &str, r: f64) -> Option<Vec<PlotPoint>> {
    let around = |count: u32, turn: f64, far: &dyn Fn(u32) -> f64| {
        let corner = |at: u32| {
            let angle = f64::from(at) * std::f64::consts::TAU / f64::from(count) + turn;
            (x + far(at) * angle.sin(), y - far(at) * angle.cos())
        };
        (0..count).map(corner).collect::<Vec<PlotPoint>>()
    };
    let half = std::f64::consts::PI;
    Some(match marker {
        "s" => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        "^" => vec![(x, y - r), (x + r, y + r), (x - r, y + r)],
        "v" => vec![(x, y + r), (x - r, y - r), (x + r, y - r)],
        "<" => vec![(x - r, y), (x + r, y - r), (x + r, y + r)],
        ">" => vec![(x + r, y), (x - r, y + r), (x - r, y - r)],
        "D" => around(4, 0.0, &|_| r * 1.3),
        "d" => vec![(x, y - r * 1.3), (x + r * 0.8, y), (x, y + r * 1.3), (x - r * 0.8, y)],
        "p" => around(5, 0.0, &|_| r * 1.05),
        "h" => around(6, 0.0, &|_| r * 1.05),
        "H" => around(6, half / 6.0, &|_| r * 1.05),
        "8" => around(8, half / 8.0, &|_| r * 1.05),
        "*" => around(10, 0.0, &|at| if at.is_multiple_of(2) { r * 1.3 } else { r * 0.5 }),
        "P" => {
            let s = r / 2.8;
            let out = [
                (-s, -r),
                (s, -r),
                (s, -s),
                (r, -s),
                (r, s),
                (s, s),
                (s, r),
                (-s, r),
                (-s, s),
                (-r, s),
                (-r, -s),
                (-s, -s),
            ];
            out.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
        }
        "X" => {
            let s = r / 2.0;
            let out = [
                (0.0, -s),
                (s, -r),
                (r, -s),
                (s, 0.0),
                (r, s),
                (s, r),
                (0.0, s),
                (-s, r),
                (-r, s),
                (-s, 0.0),
                (-r, -s),
                (-s, -r),
            ];
            out.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
        }
        _ => return None,
    })
}

/// Returns the strokes of a line marker, in multiples of its radius. Empty for other markers.
pub(crate) fn marker_strokes(marker: &str) -> &'static [[f64; 4]] {
    match marker {
        "x" => &[[-1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, -1.0]],
        "+" => &[[-1.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 1.0]],
        "|" => &[[0.0, -1.0, 0.0, 1.0]],
        "_" => &[[-1.0, 0.0, 1.0, 0.0]],
        "1" => &[[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, -0.87, -0.5], [0.0, 0.0, 0.87, -0.5]],
        "2" => &[[0.0, 0.0, 0.0, -1.0], [0.0, 0.0, -0.87, 0.5], [0.0, 0.0, 0.87, 0.5]],
        "3" => &[[0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.5, -0.87], [0.0, 0.0, 0.5, 0.87]],
        "4" => &[[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, -0.5, -0.87], [0.0, 0.0, -0.5, 0.87]],
        _ => &[],
    }
}

/// Draws a marker and its outline.
fn draw_marker<B: PlotBackend>(pen: &mut PlotPainter<'_, B>, at: PlotPoint, marker: &str, ink: &MarkerInk) {
    if ink.radius > 0.0 {
        let radius = ink.radius.min(MAX_MARKER_RADIUS_POINTS);
        fill_marker(pen, at, marker, radius, ink.colour, ink.alpha);
        if let Some(edge) = ink.edge {
            outline_marker(pen, at, marker, radius, edge);
        }
    }
}

/// Fills a marker at a point.
pub(crate) fn fill_marker<B: PlotBackend>(
    pen: &mut PlotPainter<'_, B>,
    (x, y): PlotPoint,
    marker: &str,
    r: f64,
    colour: Rgb,
    alpha: f64,
) {
    if let Some(corners) = marker_corners((x, y), marker, r) {
        return pen.fill_polygon(&corners, colour, alpha);
    }
    let lines = marker_strokes(marker);
    for [a, b, c, d] in lines {
        let stroke = PlotStroke { colour, alpha, width: 1.4, dash: "-" };
        pen.draw_path(&[(x + a * r, y + b * r), (x + c * r, y + d * r)], stroke);
    }
    match marker {
        _ if !lines.is_empty() => {}
        "." => pen.fill_circle((x, y), r * 0.5, colour, alpha),
        "," => pen.fill_circle((x, y), 0.5, colour, alpha),
        _ => pen.fill_circle((x, y), r, colour, alpha),
    }
}

/// Draws the outline of a marker.
fn outline_marker<B: PlotBackend>(pen: &mut PlotPainter<'_, B>, (x, y): PlotPoint, marker: &str, r: f64, edge: Rgb) {
    if !marker_strokes(marker).is_empty() {
        return;
    }
    let stroke = PlotStroke { colour: edge, alpha: 1.0, width: 1.0, dash: "-" };
    let mut around = marker_corners((x, y), marker, r).unwrap_or_else(|| {
        let r = if marker == "." { r * 0.5 } else { r };
        let angle = |at: u32| f64::from(at) * std::f64::consts::TAU / 24.0;
        (0..24).map(|at| (x + r * angle(at).cos(), y + r * angle(at).sin())).collect()
    });
    around.push(around[0]);
    around.push(around[1]);
    pen.draw_path(&around, stroke);
}
