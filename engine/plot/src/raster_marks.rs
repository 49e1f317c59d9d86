//! Draws images and contours: numbers on a grid as colors and as contour lines.

use crate::colour::{PlotTheme, Rgb, colour_table};
use crate::figure::{MappedValues, MarkKind};
use crate::marks::{map_share, mapped_colour};
use crate::painter::{PlotBackend, PlotPainter, PlotPoint, PlotRect, PlotStroke};
use crate::scale::AxisScale;
use base64::Engine;
use plotters::style::text_anchor::{HPos, VPos};
use std::ops::Range;

/// Maximum image pixels per point.
const MAX_IMAGE_PIXELS_PER_POINT: f64 = 2.0;

/// Maximum number of cells drawn individually if they extend beyond the frame.
const MAX_CLIPPED_CELLS: usize = 4_000;

/// Draws gridded marks within a frame.
pub(crate) struct RasterMarks {
    pub(crate) scales: [AxisScale; 2],
    pub(crate) frame: PlotRect,
    pub(crate) look: PlotTheme,
}

/// A grid of cells and its position.
struct CellGrid {
    rows: usize,
    columns: usize,
    place: [f64; 4],
}

/// A grid of values at given x and y positions.
struct HeightGrid<'a> {
    x: &'a [f64],
    y: &'a [f64],
    shades: &'a MappedValues,
    levels: &'a [f64],
}

impl RasterMarks {
    pub(crate) fn draw<B: PlotBackend>(&self, kind: &MarkKind, pen: &mut PlotPainter<'_, B>) {
        match kind {
            MarkKind::Image { rows, columns, shades, place } => {
                let colours = colour_table(&shades.map);
                let grid = CellGrid { rows: *rows, columns: *columns, place: *place };
                self.draw_cells(&grid, pen, |at| {
                    let value = shades.values.0.get(at).copied().filter(|value| value.is_finite())?;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
                    let number = (map_share(shades, value).clamp(0.0, 1.0) * 255.999) as usize;
                    colours.get(number).copied()
                });
            }
            MarkKind::Pixels { rows, columns, colors, place } => {
                let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(colors) else { return };
                let grid = CellGrid { rows: *rows, columns: *columns, place: *place };
                self.draw_cells(&grid, pen, |at| {
                    let pixel = bytes.get(at * 3..at * 3 + 3)?;
                    Some((pixel[0], pixel[1], pixel[2]))
                });
            }
            MarkKind::Contour { x, y, shades, levels, filled, color, labels } => {
                let heights = HeightGrid { x: &x.0, y: &y.0, shades, levels };
                let sound = heights.x.len() > 1 && heights.y.len() > 1;
                if sound && *filled {
                    self.fill_bands(&heights, pen);
                } else if sound {
                    self.draw_contour_lines(&heights, color, *labels, pen);
                }
            }
            _ => {}
        }
    }

    /// Draws the visible cells as one image, no finer than the data and no finer than a screen shows.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cells within the grid")]
    fn draw_cells<B: PlotBackend>(
        &self,
        grid: &CellGrid,
        pen: &mut PlotPainter<'_, B>,
        colour: impl Fn(usize) -> Option<Rgb>,
    ) {
        let CellGrid { rows, columns, place: [left, right, bottom, top] } = *grid;
        let (from, to) = (
            (self.scales[0].position(left), self.scales[1].position(top)),
            (self.scales[0].position(right), self.scales[1].position(bottom)),
        );
        if rows == 0 || columns == 0 || ![from.0, from.1, to.0, to.1].iter().all(|at| at.is_finite()) {
            return;
        }
        // Returns the visible cells and where their edges are. With `fine`, they're sampled as pixels and cut at the
        // frame.
        let side = |from: f64, to: f64, count: usize, low: f64, high: f64, fine: bool| {
            let cell = (to - from) / count as f64;
            let ends = [(low - from) / cell, (high - from) / cell];
            let (first, last) = (ends[0].min(ends[1]).max(0.0), ends[0].max(ends[1]).min(count as f64));
            if first >= last {
                return None;
            }
            let pixels = ((last - first) * cell.abs() * MAX_IMAGE_PIXELS_PER_POINT).ceil().clamp(1.0, 4_000.0);
            if (last.ceil() - first.floor()) <= pixels && !fine {
                let seen: Range<usize> = first.floor() as usize..last.ceil() as usize;
                let (a, b) = (from + cell * seen.start as f64, from + cell * seen.end as f64);
                return Some((seen.collect::<Vec<usize>>(), a, b));
            }
            let at = |pixel: usize| (first + (pixel as f64 + 0.5) / pixels * (last - first)) as usize;
            let seen = (0..pixels as usize).map(|pixel| at(pixel).min(count - 1)).collect();
            Some((seen, from + cell * first, from + cell * last))
        };
        let frame = self.frame;
        let both = |fine: bool| {
            let across = side(from.0, to.0, columns, frame.left, frame.right, fine)?;
            Some((across, side(from.1, to.1, rows, frame.top, frame.bottom, fine)?))
        };
        let Some(mut seen) = both(false) else { return };
        let cut = frame.expanded(-0.49);
        if seen.0.0.len() * seen.1.0.len() > MAX_CLIPPED_CELLS
            && !(cut.contains((seen.0.1, seen.1.1)) && cut.contains((seen.0.2, seen.1.2)))
        {
            let Some(fine) = both(true) else { return };
            seen = fine;
        }
        let ((mut across, mut x0, mut x1), (mut down, mut y0, mut y1)) = seen;
        if x0 > x1 {
            across.reverse();
            (x0, x1) = (x1, x0);
        }
        if y0 > y1 {
            down.reverse();
            (y0, y1) = (y1, y0);
        }
        if !pen.spend_pixels(across.len() as f64 * down.len() as f64) {
            return;
        }
        let mut bytes = Vec::with_capacity(across.len() * down.len() * 4);
        for row in &down {
            for column in &across {
                match colour(row * columns + column) {
                    Some((red, green, blue)) => bytes.extend([red, green, blue, 255]),
                    None => bytes.extend([0; 4]),
                }
            }
        }
        pen.draw_pixels_within((x0, y0), (x1, y1), across.len(), down.len(), &bytes, frame);
    }

    fn grid_corner(&self, heights: &HeightGrid<'_>, row: usize, column: usize) -> (PlotPoint, f64) {
        let z = heights.shades.values.0.get(row * heights.x.len() + column).copied().unwrap_or(f64::NAN);
        ((self.scales[0].position(heights.x[column]), self.scales[1].position(heights.y[row])), z)
    }

    /// Calls `each` with every cell's two triangles: within a triangle, a contour is one straight line.
    fn for_each_triangle(&self, heights: &HeightGrid<'_>, mut each: impl FnMut([(PlotPoint, f64); 3])) {
        for row in 1..heights.y.len() {
            for column in 1..heights.x.len() {
                let corner = |row: usize, column: usize| self.grid_corner(heights, row, column);
                let (a, b) = (corner(row - 1, column - 1), corner(row - 1, column));
                let (c, d) = (corner(row, column), corner(row, column - 1));
                for triangle in [[a, b, c], [a, c, d]] {
                    let known = triangle.iter().all(|(at, z)| z.is_finite() && at.0.is_finite() && at.1.is_finite());
                    let near = |(at, _): &(PlotPoint, f64)| self.frame.expanded(1.0).contains(*at);
                    if known && (triangle.iter().any(near) || self.may_touch_frame(&triangle)) {
                        each(triangle);
                    }
                }
            }
        }
    }

    /// Returns whether a triangle may extend into the frame, although its corners don't.
    fn may_touch_frame(&self, triangle: &[(PlotPoint, f64); 3]) -> bool {
        let frame = self.frame;
        let all = |out: &dyn Fn(PlotPoint) -> bool| triangle.iter().all(|(at, _)| out(*at));
        !(all(&|at| at.0 < frame.left)
            || all(&|at| at.0 > frame.right)
            || all(&|at| at.1 < frame.top)
            || all(&|at| at.1 > frame.bottom))
    }

    fn fill_bands<B: PlotBackend>(&self, heights: &HeightGrid<'_>, pen: &mut PlotPainter<'_, B>) {
        let levels = heights.levels;
        self.for_each_triangle(heights, |triangle| {
            for pair in levels.windows(2) {
                let (low, high) = triangle
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, z)| (low.min(*z), high.max(*z)));
                if high < pair[0] || low > pair[1] {
                    continue;
                }
                let band = clip_by_height(clip_by_height(triangle.to_vec(), |z| pair[1] - z), |z| z - pair[0]);
                let corners: Vec<PlotPoint> = band.into_iter().map(|(at, _)| at).collect();
                let colour = mapped_colour(heights.shades, f64::midpoint(pair[0], pair[1]));
                pen.fill_tile_within(&corners, colour, self.frame);
            }
        });
    }

    fn draw_contour_lines<B: PlotBackend>(
        &self,
        heights: &HeightGrid<'_>,
        color: &str,
        labels: bool,
        pen: &mut PlotPainter<'_, B>,
    ) {
        let span = heights.levels.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(*at), high.max(*at)));
        let step = if span.1 > span.0 { (span.1 - span.0) / 10.0 } else { 1.0 };
        for level in heights.levels {
            let colour =
                if color.is_empty() { mapped_colour(heights.shades, *level) } else { self.look.resolve_colour(color) };
            let dash = if !color.is_empty() && *level < 0.0 { "--" } else { "-" };
            let stroke = PlotStroke { colour, alpha: 1.0, width: 1.5, dash };
            let mut pieces: Vec<(PlotPoint, PlotPoint)> = Vec::new();
            self.for_each_triangle(heights, |triangle| {
                let sides = [(0, 1), (1, 2), (2, 0)].map(|(from, to)| (triangle[from], triangle[to]));
                let crossings = sides.iter().filter_map(|((p, low), (q, high))| {
                    let share = (level - low) / (high - low);
                    let at = (p.0 + (q.0 - p.0) * share, p.1 + (q.1 - p.1) * share);
                    ((low < level) != (high < level)).then_some(at)
                });
                if let [from, to] = crossings.collect::<Vec<PlotPoint>>()[..] {
                    pieces.push((from, to));
                }
            });
            let paths = join_segments(pieces);
            for path in &paths {
                pen.draw_path_within(path, stroke, self.frame);
            }
            if labels && let Some(path) = paths.iter().max_by_key(|path| path.len()).filter(|path| path.len() > 8) {
                let at = path[path.len() / 2];
                if self.frame.contains(at) {
                    let words = crate::scale::format_with_step(*level, step);
                    let (wide, high) = (pen.text_width(&words, 9.0) / 2.0 + 2.0, 6.0);
                    let ground = self.look.background("");
                    pen.draw_rectangle((at.0 - wide, at.1 - high), (at.0 + wide, at.1 + high), ground, 1.0, true, 1.0);
                    pen.draw_text(&words, at, 9.0, colour, (HPos::Center, VPos::Center), false);
                }
            }
        }
    }
}

/// Joins segments with common endpoints into paths.
#[allow(clippy::cast_possible_truncation, reason = "a place on a figure")]
fn join_segments(pieces: Vec<(PlotPoint, PlotPoint)>) -> Vec<Vec<PlotPoint>> {
    use std::collections::HashMap;
    let key = |at: PlotPoint| ((at.0 * 64.0).round() as i64, (at.1 * 64.0).round() as i64);
    let mut ends: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    // The first segments come last, so that each is taken off once, however many end at one point.
    for (number, (from, to)) in pieces.iter().enumerate().rev() {
        ends.entry(key(*from)).or_default().push(number);
        ends.entry(key(*to)).or_default().push(number);
    }
    let mut used = vec![false; pieces.len()];
    let mut paths = Vec::new();
    for start in 0..pieces.len() {
        if std::mem::replace(&mut used[start], true) {
            continue;
        }
        let mut path = std::collections::VecDeque::from([pieces[start].0, pieces[start].1]);
        for front in [false, true] {
            while let Some(end) = if front { path.front() } else { path.back() }.copied() {
                let all = ends.get_mut(&key(end));
                let next = all.and_then(|all| std::iter::from_fn(|| all.pop()).find(|number| !used[*number]));
                let Some(next) = next else { break };
                used[next] = true;
                let (a, b) = pieces[next];
                let other = if key(a) == key(end) { b } else { a };
                if front {
                    path.push_front(other);
                } else {
                    path.push_back(other);
                }
            }
        }
        paths.push(path.into());
    }
    paths
}

/// Returns the part of a polygon in which `inside` of the height isn't negative.
fn clip_by_height(corners: Vec<(PlotPoint, f64)>, inside: impl Fn(f64) -> f64) -> Vec<(PlotPoint, f64)> {
    let mut kept = Vec::new();
    for (number, (from, low)) in corners.iter().enumerate() {
        let (to, high) = corners[(number + 1) % corners.len()];
        let (a, b) = (inside(*low), inside(high));
        if a >= 0.0 {
            kept.push((*from, *low));
        }
        if (a >= 0.0) != (b >= 0.0) {
            let share = a / (a - b);
            let at = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            kept.push((at, low + (high - low) * share));
        }
    }
    kept
}
