//! Images and contours: numbers on a grid as colours and as lines of equal height.

use crate::colour::{Look, Rgb, table};
use crate::figure::{Kind, Shades};
use crate::marks::{share, tint};
use crate::pen::{At, Frame, Pen, Stroke, Surface};
use crate::scale::Scale;
use base64::Engine;
use plotters::style::text_anchor::{HPos, VPos};
use std::ops::Range;

/// Pixels of an image to a point, at most.
const FINE: f64 = 2.0;

/// Cells that are drawn one by one where they reach over the edges.
const APART: usize = 4_000;

/// Where a grid is drawn.
pub(crate) struct Field {
    pub(crate) scales: [Scale; 2],
    pub(crate) frame: Frame,
    pub(crate) look: Look,
}

/// A grid of cells and where it lies.
struct Grid {
    rows: usize,
    columns: usize,
    place: [f64; 4],
}

/// A grid of numbers at crossings.
struct Heights<'a> {
    x: &'a [f64],
    y: &'a [f64],
    shades: &'a Shades,
    levels: &'a [f64],
}

impl Field {
    pub(crate) fn draw<B: Surface>(&self, kind: &Kind, pen: &mut Pen<'_, B>) {
        match kind {
            Kind::Image { rows, columns, shades, place } => {
                let colours = table(&shades.map);
                let grid = Grid { rows: *rows, columns: *columns, place: *place };
                self.cells(&grid, pen, |at| {
                    let value = shades.values.0.get(at).copied().filter(|value| value.is_finite())?;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
                    let number = (share(shades, value).clamp(0.0, 1.0) * 255.999) as usize;
                    colours.get(number).copied()
                });
            }
            Kind::Pixels { rows, columns, colors, place } => {
                let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(colors) else { return };
                let grid = Grid { rows: *rows, columns: *columns, place: *place };
                self.cells(&grid, pen, |at| {
                    let pixel = bytes.get(at * 3..at * 3 + 3)?;
                    Some((pixel[0], pixel[1], pixel[2]))
                });
            }
            Kind::Contour { x, y, shades, levels, filled, color, labels } => {
                let heights = Heights { x: &x.0, y: &y.0, shades, levels };
                let sound = heights.x.len() > 1 && heights.y.len() > 1 && levels.len() <= 1_000;
                if sound && *filled {
                    self.bands(&heights, pen);
                } else if sound {
                    self.lines(&heights, color, *labels, pen);
                }
            }
            _ => {}
        }
    }

    /// The cells that can be seen, as one picture: no finer than it is, and no finer than a screen shows.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cells within the grid")]
    fn cells<B: Surface>(&self, grid: &Grid, pen: &mut Pen<'_, B>, colour: impl Fn(usize) -> Option<Rgb>) {
        let Grid { rows, columns, place: [left, right, bottom, top] } = *grid;
        let (from, to) =
            ((self.scales[0].at(left), self.scales[1].at(top)), (self.scales[0].at(right), self.scales[1].at(bottom)));
        if rows == 0 || columns == 0 || ![from.0, from.1, to.0, to.1].iter().all(|at| at.is_finite()) {
            return;
        }
        // Which cells are in sight, and where their edges are. `fine`: as pixels, cut at the edges of the frame.
        let side = |from: f64, to: f64, count: usize, low: f64, high: f64, fine: bool| {
            let cell = (to - from) / count as f64;
            let ends = [(low - from) / cell, (high - from) / cell];
            let (first, last) = (ends[0].min(ends[1]).max(0.0), ends[0].max(ends[1]).min(count as f64));
            if first >= last {
                return None;
            }
            let pixels = ((last - first) * cell.abs() * FINE).ceil().clamp(1.0, 4_000.0);
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
        let cut = frame.wider(-0.49);
        if seen.0.0.len() * seen.1.0.len() > APART
            && !(cut.holds((seen.0.1, seen.1.1)) && cut.holds((seen.0.2, seen.1.2)))
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
        let mut bytes = Vec::with_capacity(across.len() * down.len() * 4);
        for row in &down {
            for column in &across {
                match colour(row * columns + column) {
                    Some((red, green, blue)) => bytes.extend([red, green, blue, 255]),
                    None => bytes.extend([0; 4]),
                }
            }
        }
        pen.pixels_within((x0, y0), (x1, y1), across.len(), down.len(), &bytes, frame);
    }

    fn corner(&self, heights: &Heights<'_>, row: usize, column: usize) -> (At, f64) {
        let z = heights.shades.values.0.get(row * heights.x.len() + column).copied().unwrap_or(f64::NAN);
        ((self.scales[0].at(heights.x[column]), self.scales[1].at(heights.y[row])), z)
    }

    /// Each cell of the grid, cut in two triangles: in a triangle a level is one straight line.
    fn triangles(&self, heights: &Heights<'_>, mut each: impl FnMut([(At, f64); 3])) {
        for row in 1..heights.y.len() {
            for column in 1..heights.x.len() {
                let corner = |row: usize, column: usize| self.corner(heights, row, column);
                let (a, b) = (corner(row - 1, column - 1), corner(row - 1, column));
                let (c, d) = (corner(row, column), corner(row, column - 1));
                for triangle in [[a, b, c], [a, c, d]] {
                    let known = triangle.iter().all(|(at, z)| z.is_finite() && at.0.is_finite() && at.1.is_finite());
                    let near = |(at, _): &(At, f64)| self.frame.wider(1.0).holds(*at);
                    if known && (triangle.iter().any(near) || self.around(&triangle)) {
                        each(triangle);
                    }
                }
            }
        }
    }

    /// Whether a triangle may reach into the frame though its corners do not.
    fn around(&self, triangle: &[(At, f64); 3]) -> bool {
        let frame = self.frame;
        let all = |out: &dyn Fn(At) -> bool| triangle.iter().all(|(at, _)| out(*at));
        !(all(&|at| at.0 < frame.left)
            || all(&|at| at.0 > frame.right)
            || all(&|at| at.1 < frame.top)
            || all(&|at| at.1 > frame.bottom))
    }

    fn bands<B: Surface>(&self, heights: &Heights<'_>, pen: &mut Pen<'_, B>) {
        let levels = heights.levels;
        self.triangles(heights, |triangle| {
            for pair in levels.windows(2) {
                let (low, high) = triangle
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, z)| (low.min(*z), high.max(*z)));
                if high < pair[0] || low > pair[1] {
                    continue;
                }
                let band = part(part(triangle.to_vec(), |z| pair[1] - z), |z| z - pair[0]);
                let corners: Vec<At> = band.into_iter().map(|(at, _)| at).collect();
                let colour = tint(heights.shades, f64::midpoint(pair[0], pair[1]));
                pen.tile_within(&corners, colour, self.frame);
            }
        });
    }

    fn lines<B: Surface>(&self, heights: &Heights<'_>, color: &str, labels: bool, pen: &mut Pen<'_, B>) {
        let span = heights.levels.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(*at), high.max(*at)));
        let step = if span.1 > span.0 { (span.1 - span.0) / 10.0 } else { 1.0 };
        for level in heights.levels {
            let colour = if color.is_empty() { tint(heights.shades, *level) } else { self.look.colour(color) };
            let dash = if !color.is_empty() && *level < 0.0 { "--" } else { "-" };
            let stroke = Stroke { colour, alpha: 1.0, width: 1.5, dash };
            let mut pieces: Vec<(At, At)> = Vec::new();
            self.triangles(heights, |triangle| {
                let sides = [(0, 1), (1, 2), (2, 0)].map(|(from, to)| (triangle[from], triangle[to]));
                let crossings = sides.iter().filter_map(|((p, low), (q, high))| {
                    let share = (level - low) / (high - low);
                    let at = (p.0 + (q.0 - p.0) * share, p.1 + (q.1 - p.1) * share);
                    ((low < level) != (high < level)).then_some(at)
                });
                if let [from, to] = crossings.collect::<Vec<At>>()[..] {
                    pieces.push((from, to));
                }
            });
            let paths = joined(pieces);
            for path in &paths {
                pen.path_within(path, stroke, self.frame);
            }
            if labels && let Some(path) = paths.iter().max_by_key(|path| path.len()).filter(|path| path.len() > 8) {
                let at = path[path.len() / 2];
                if self.frame.holds(at) {
                    let words = crate::scale::fine(*level, step);
                    let (wide, high) = (pen.wide(&words, 9.0) / 2.0 + 2.0, 6.0);
                    let ground = self.look.ground("");
                    pen.rectangle((at.0 - wide, at.1 - high), (at.0 + wide, at.1 + high), ground, 1.0, true, 1.0);
                    pen.words(&words, at, 9.0, colour, (HPos::Center, VPos::Center), false);
                }
            }
        }
    }
}

/// Pieces whose ends meet, as paths.
#[allow(clippy::cast_possible_truncation, reason = "a place on a figure")]
fn joined(pieces: Vec<(At, At)>) -> Vec<Vec<At>> {
    use std::collections::HashMap;
    let key = |at: At| ((at.0 * 64.0).round() as i64, (at.1 * 64.0).round() as i64);
    let mut ends: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (number, (from, to)) in pieces.iter().enumerate() {
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
                let next = ends.get(&key(end)).and_then(|all| all.iter().find(|number| !used[**number])).copied();
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

/// The part of a polygon in which a function of the height is not negative.
fn part(corners: Vec<(At, f64)>, inside: impl Fn(f64) -> f64) -> Vec<(At, f64)> {
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
