//! The one drawing code: lays a figure out and draws it with a pen.

use crate::colour::{Look, Rgb, shade};
use crate::figure::{Axes, Column, Figure, Mark, Shades, Ticks};
use crate::pen::{At, Frame, Pen, Stroke};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};

const SMALL: f64 = 10.0;
const NORMAL: f64 = 11.0;
const TITLE: f64 = 12.5;
const GAP: f64 = 4.0;
const TICK: f64 = 3.5;

/// Draws a figure on a backend that is so many steps to a point large.
///
/// # Errors
/// What the backend says.
pub fn draw<B: DrawingBackend>(figure: &Figure, backend: &mut B, steps: f64, look: &Look) -> Result<(), String> {
    backend.ensure_prepared().map_err(|error| error.to_string())?;
    let mut pen = Pen::new(backend, steps);
    if let Some(paper) = look.paper {
        pen.rectangle((0.0, 0.0), (figure.width, figure.height), paper, 1.0, true, 1.0);
    }
    let top = if figure.title.is_empty() {
        0.0
    } else {
        let at = (figure.width / 2.0, 8.0);
        pen.words(&figure.title, at, TITLE + 1.0, look.ink, (HPos::Center, VPos::Top), false);
        24.0
    };
    for axes in &figure.axes {
        let [left, above, width, height] = axes.place;
        let room = figure.height - top;
        let cell = Frame {
            left: left * figure.width,
            top: top + above * room,
            right: (left + width) * figure.width,
            bottom: top + (above + height) * room,
        };
        Plot::new(axes, cell, *look).draw(&mut pen);
    }
    pen.finish()
}

/// One way along a side: from numbers to points.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, x: f64) -> f64 {
        let (low, high, x) = if self.log { (self.low.ln(), self.high.ln(), x.ln()) } else { (self.low, self.high, x) };
        self.from + (x - low) / (high - low) * (self.to - self.from)
    }
}

struct Plot<'a> {
    axes: &'a Axes,
    cell: Frame,
    look: Look,
}

/// Extends `range` by the numbers that can be shown.
fn extend<'x>(range: &mut [f64; 2], all: impl IntoIterator<Item = &'x f64>, log: bool) {
    for x in all.into_iter().filter(|x| x.is_finite() && (!log || **x > 0.0)) {
        *range = [range[0].min(*x), range[1].max(*x)];
    }
}

impl<'a> Plot<'a> {
    fn new(axes: &'a Axes, cell: Frame, look: Look) -> Plot<'a> {
        Plot { axes, cell, look }
    }

    /// What the marks cover, along x and y, and whether they want room around them.
    fn covered(&self) -> ([f64; 2], [f64; 2], [bool; 2]) {
        let none = [f64::INFINITY, f64::NEG_INFINITY];
        let (mut across, mut up, mut room) = (none, none, [true, true]);
        let (xlog, ylog) = (self.axes.xlog, self.axes.ylog);
        for mark in &self.axes.marks {
            match mark {
                Mark::Line { x, y, .. } | Mark::Points { x, y, .. } | Mark::Segments { x, y, .. } => {
                    extend(&mut across, &x.0, xlog);
                    extend(&mut up, &y.0, ylog);
                }
                Mark::Bars { x, y, width, height, .. } => {
                    let ends = |from: &Column, by: &Column| -> Vec<f64> {
                        from.0.iter().zip(&by.0).flat_map(|(from, by)| [*from, from + by]).collect()
                    };
                    extend(&mut across, &ends(x, width), xlog);
                    extend(&mut up, &ends(y, height), ylog);
                }
                Mark::Area { x, low, high, .. } => {
                    extend(&mut across, &x.0, xlog);
                    extend(&mut up, low.0.iter().chain(&high.0), ylog);
                }
                Mark::Rule { at, vertical, .. } => extend(if *vertical { &mut across } else { &mut up }, [at], false),
                Mark::Text { .. } => {}
                Mark::Pie { .. } => (across, up) = ([-1.25, 1.25], [-1.25, 1.25]),
                Mark::Image { place: [left, right, bottom, top], .. } => {
                    extend(&mut across, [left, right], false);
                    extend(&mut up, [bottom, top], false);
                    room = [false, false];
                }
                Mark::Contour { x, y, .. } => {
                    extend(&mut across, &x.0, false);
                    extend(&mut up, &y.0, false);
                    room = [false, false];
                }
            }
        }
        // Bars stand on their ground.
        let grounded =
            |of: &[f64; 2]| self.axes.marks.iter().any(|mark| matches!(mark, Mark::Bars { .. })) && of[0] == 0.0;
        if grounded(&up) {
            room[1] = room[1] && !grounded(&up);
            up[1] += (up[1] - up[0]) * 0.05;
        } else if grounded(&across) {
            room[0] = false;
            across[1] += (across[1] - across[0]) * 0.05;
        }
        (across, up, room)
    }

    fn range(covered: [f64; 2], room: bool, limits: Option<[f64; 2]>, log: bool) -> [f64; 2] {
        if let Some([low, high]) = limits
            && low.is_finite()
            && high.is_finite()
            && low != high
            && (!log || low.min(high) > 0.0)
        {
            return [low, high];
        }
        let [low, high] = if covered[0] <= covered[1] { covered } else { [if log { 1.0 } else { 0.0 }, 1.0] };
        match (log, room) {
            (true, _) if low == high => [low / 3.0, high * 3.0],
            (true, _) => {
                let more = (high / low).powf(0.05);
                [low / more, high * more]
            }
            (false, _) if low == high => [low - low.abs().max(1.0) * 0.05, high + high.abs().max(1.0) * 0.05],
            (false, true) => [low - (high - low) * 0.05, high + (high - low) * 0.05],
            (false, false) => [low, high],
        }
    }

    fn draw<B: DrawingBackend>(&self, pen: &mut Pen<'_, B>) {
        let (axes, look) = (self.axes, self.look);
        let (across, up, room) = self.covered();
        let [x_low, x_high] = Self::range(across, room[0], axes.xlim, axes.xlog);
        let [y_low, y_high] = Self::range(up, room[1], axes.ylim, axes.ylog);
        let bar = axes.colorbar.as_ref().and_then(|label| Some((label, self.shades()?)));
        let title = if axes.title.is_empty() { 10.0 } else { 12.0 + TITLE * 1.25 * axes.title.lines().count() as f64 };
        let below = if axes.off { 8.0 } else { TICK + GAP + SMALL * 1.3 } + label_room(&axes.xlabel) + 6.0;
        let tall = (self.cell.height() - title - below).max(20.0);
        let y_ticks = ticks(axes.yticks.as_ref(), y_low, y_high, axes.ylog, tall / 32.0);
        let widest = y_ticks.iter().map(|(_, label)| pen.wide(label, SMALL)).fold(0.0, f64::max);
        let beside = if axes.off { 8.0 } else { TICK + GAP + widest + 6.0 } + label_room(&axes.ylabel);
        let right = match bar {
            Some((label, _)) if !label.is_empty() => 72.0,
            Some(_) => 52.0,
            None => 14.0,
        };
        let mut frame = Frame {
            left: self.cell.left + beside,
            top: self.cell.top + title,
            right: (self.cell.right - right).max(self.cell.left + beside + 10.0),
            bottom: self.cell.top + title + tall,
        };
        if axes.equal {
            let per = (frame.width() / (x_high - x_low).abs()).min(frame.height() / (y_high - y_low).abs());
            let (wide, high) = ((x_high - x_low).abs() * per, (y_high - y_low).abs() * per);
            let (more_x, more_y) = ((frame.width() - wide) / 2.0, (frame.height() - high) / 2.0);
            frame.left += more_x;
            frame.right -= more_x;
            frame.top += more_y;
            frame.bottom -= more_y;
        }
        let x = Scale { low: x_low, high: x_high, log: axes.xlog, from: frame.left, to: frame.right };
        let y = Scale { low: y_low, high: y_high, log: axes.ylog, from: frame.bottom, to: frame.top };
        let x_ticks = ticks(axes.xticks.as_ref(), x_low, x_high, axes.xlog, frame.width() / 62.0);
        let line = |colour: Rgb, width: f64| Stroke { colour, alpha: 1.0, width, dash: "-" };
        if axes.grid && !axes.off {
            for (at, _) in &x_ticks {
                pen.path(&[(x.at(*at), frame.top), (x.at(*at), frame.bottom)], line(look.line, 0.8));
            }
            for (at, _) in &y_ticks {
                pen.path(&[(frame.left, y.at(*at)), (frame.right, y.at(*at))], line(look.line, 0.8));
            }
        }
        for mark in &axes.marks {
            self.mark(mark, x, y, frame, pen);
        }
        if !axes.off {
            // Two sides are enough of a frame; an image has four.
            pen.path(
                &[(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)],
                line(look.muted, 0.8),
            );
            for (at, label) in &x_ticks {
                let at = x.at(*at);
                pen.path(&[(at, frame.bottom), (at, frame.bottom + TICK)], line(look.muted, 0.8));
                let place = (at, frame.bottom + TICK + GAP);
                pen.words(label, place, SMALL, look.muted, (HPos::Center, VPos::Top), false);
            }
            for (at, label) in &y_ticks {
                let at = y.at(*at);
                pen.path(&[(frame.left - TICK, at), (frame.left, at)], line(look.muted, 0.8));
                let place = (frame.left - TICK - GAP, at);
                pen.words(label, place, SMALL, look.muted, (HPos::Right, VPos::Center), false);
            }
        }
        let middle = (frame.left + frame.right) / 2.0;
        pen.words(&axes.title, (middle, frame.top - 7.0), TITLE, look.ink, (HPos::Center, VPos::Bottom), false);
        let at = (middle, frame.bottom + if axes.off { GAP } else { TICK + GAP + SMALL * 1.3 + GAP });
        pen.words(&axes.xlabel, at, NORMAL, look.ink, (HPos::Center, VPos::Top), false);
        let at = (frame.left - beside + 6.0, (frame.top + frame.bottom) / 2.0);
        pen.words(&axes.ylabel, at, NORMAL, look.ink, (HPos::Center, VPos::Top), true);
        if let Some((label, shades)) = bar {
            self.colorbar(label, shades, frame, pen);
        }
        if let Some(place) = &axes.legend {
            self.legend(place, x, y, frame, pen);
        }
    }

    fn shades(&self) -> Option<&'a Shades> {
        self.axes.marks.iter().rev().find_map(|mark| match mark {
            Mark::Image { shades, .. } | Mark::Contour { shades, .. } => Some(shades),
            Mark::Points { values, .. } => values.as_ref(),
            _ => None,
        })
    }

    fn colorbar<B: DrawingBackend>(&self, label: &str, shades: &Shades, frame: Frame, pen: &mut Pen<'_, B>) {
        let (left, right) = (frame.right + 12.0, frame.right + 22.0);
        let scale = Scale { low: shades.low, high: shades.high, log: false, from: frame.bottom, to: frame.top };
        const PARTS: u32 = 64;
        let part = frame.height() / f64::from(PARTS);
        for at in 0..PARTS {
            let bottom = frame.bottom - part * f64::from(at);
            let colour = shade(&shades.map, (f64::from(at) + 0.5) / f64::from(PARTS));
            pen.rectangle((left, bottom - part), (right, bottom), colour, 1.0, true, 1.0);
        }
        for (at, words) in ticks(None, shades.low, shades.high, false, frame.height() / 40.0) {
            let place = (right + GAP, scale.at(at));
            pen.words(&words, place, SMALL, self.look.muted, (HPos::Left, VPos::Center), false);
        }
        let at = (right + 32.0, (frame.top + frame.bottom) / 2.0);
        pen.words(label, at, NORMAL, self.look.ink, (HPos::Center, VPos::Top), true);
    }

    fn mark<B: DrawingBackend>(&self, mark: &Mark, sx: Scale, sy: Scale, frame: Frame, pen: &mut Pen<'_, B>) {
        let colour = |name: &str| self.look.colour(name);
        match mark {
            Mark::Line { x, y, color, width, dash, marker, size, alpha, .. } => {
                let stroke = Stroke { colour: colour(color), alpha: *alpha, width: *width, dash };
                for piece in pieces(&x.0, &y.0, sx, sy) {
                    pen.path_within(&decimated(&piece, frame), stroke, frame);
                    if !marker.is_empty() {
                        for at in piece.iter().filter(|at| frame.holds(**at)) {
                            stamp(pen, *at, marker, *size / 2.0, colour(color), *alpha);
                        }
                    }
                }
            }
            Mark::Points { x, y, sizes, colors, values, marker, alpha, .. } => {
                for (number, (x, y)) in x.0.iter().zip(&y.0).enumerate() {
                    let at = (sx.at(*x), sy.at(*y));
                    if !(at.0.is_finite() && at.1.is_finite() && frame.holds(at)) {
                        continue;
                    }
                    let pick = |count: usize| if count == 1 { 0 } else { number % count.max(1) };
                    let area = sizes.0.get(pick(sizes.0.len())).copied().unwrap_or(36.0);
                    let shaded = values.as_ref().and_then(|shades| Some(tint(shades, *shades.values.0.get(number)?)));
                    let named = || colour(colors.get(pick(colors.len())).map_or("C0", String::as_str));
                    stamp(pen, at, marker, area.max(0.0).sqrt() / 2.0, shaded.unwrap_or_else(named), *alpha);
                }
            }
            Mark::Bars { x, y, width, height, colors, edge, alpha, .. } => {
                let all = x.0.iter().zip(&y.0).zip(width.0.iter().zip(&height.0));
                for (number, ((x, y), (wide, high))) in all.enumerate() {
                    // On a logarithmic scale there is no nought to stand on.
                    let y = if self.axes.ylog && *y <= 0.0 { sy.low } else { *y };
                    let (a, b) = ((sx.at(*x), sy.at(y)), (sx.at(x + wide), sy.at(y + high)));
                    if ![a.0, a.1, b.0, b.1].iter().all(|at| at.is_finite()) {
                        continue;
                    }
                    let fill = colors.get(number % colors.len().max(1)).map_or("C0", String::as_str);
                    if fill != "none" {
                        pen.rectangle_within(a, b, colour(fill), *alpha, frame);
                    }
                    if !edge.is_empty() && edge != "none" {
                        let corners = [a, (b.0, a.1), b, (a.0, b.1), a];
                        let stroke = Stroke { colour: colour(edge), alpha: 1.0, width: 1.0, dash: "-" };
                        pen.path_within(&corners, stroke, frame);
                    }
                }
            }
            Mark::Area { x, low, high, color, alpha, .. } => {
                let lows = pieces(&x.0, &low.0, sx, sy);
                for (lower, upper) in lows.iter().zip(pieces(&x.0, &high.0, sx, sy)) {
                    let (lower, upper) = (decimated(lower, frame), decimated(&upper, frame));
                    let corners: Vec<At> = upper.into_iter().chain(lower.into_iter().rev()).collect();
                    let inside = |(x, y): &At| (x.clamp(frame.left, frame.right), y.clamp(frame.top, frame.bottom));
                    pen.polygon(&corners.iter().map(inside).collect::<Vec<_>>(), colour(color), *alpha);
                }
            }
            Mark::Rule { at, vertical, color, width, dash, alpha, .. } => {
                let path = match vertical {
                    true => [(sx.at(*at), frame.top), (sx.at(*at), frame.bottom)],
                    false => [(frame.left, sy.at(*at)), (frame.right, sy.at(*at))],
                };
                pen.path_within(&path, Stroke { colour: colour(color), alpha: *alpha, width: *width, dash }, frame);
            }
            Mark::Segments { x, y, color, width, alpha, .. } => {
                let stroke = Stroke { colour: colour(color), alpha: *alpha, width: *width, dash: "-" };
                for (x, y) in x.0.chunks_exact(2).zip(y.0.chunks_exact(2)) {
                    pen.path_within(&[(sx.at(x[0]), sy.at(y[0])), (sx.at(x[1]), sy.at(y[1]))], stroke, frame);
                }
            }
            Mark::Text { x, y, text, color, size, h, v, arrow } => {
                let at = (sx.at(*x), sy.at(*y));
                if let Some([to_x, to_y]) = arrow {
                    self.arrow(at, (sx.at(*to_x), sy.at(*to_y)), colour(color), pen);
                }
                let h = match h.as_str() {
                    "center" => HPos::Center,
                    "right" => HPos::Right,
                    _ => HPos::Left,
                };
                let v = match v.as_str() {
                    "center" => VPos::Center,
                    "top" => VPos::Top,
                    _ => VPos::Bottom,
                };
                pen.words(text, at, *size, colour(color), (h, v), false);
            }
            Mark::Pie { parts, colors, labels, shares, start } => {
                let total: f64 = parts.0.iter().sum();
                let mut from = start.to_radians();
                let radius = (sx.at(1.0) - sx.at(0.0)).min(sy.at(0.0) - sy.at(1.0));
                let point = |angle: f64, share: f64| {
                    (sx.at(0.0) + radius * share * angle.cos(), sy.at(0.0) - radius * share * angle.sin())
                };
                for (number, part) in parts.0.iter().enumerate() {
                    let to = from + part / total * std::f64::consts::TAU;
                    let arc = (0..=48).map(|at| point(from + (to - from) * f64::from(at) / 48.0, 1.0));
                    let corners: Vec<At> = std::iter::once(point(0.0, 0.0)).chain(arc).collect();
                    let fill = colors.get(number % colors.len().max(1)).map_or("C0", String::as_str);
                    pen.polygon(&corners, colour(fill), 1.0);
                    let edge = Stroke {
                        colour: self.look.paper.unwrap_or((0x16, 0x18, 0x1d)),
                        alpha: 1.0,
                        width: 1.5,
                        dash: "-",
                    };
                    pen.path(&[point(0.0, 0.0), point(from, 1.0)], edge);
                    pen.path(&[point(0.0, 0.0), point(to, 1.0)], edge);
                    let middle = f64::midpoint(from, to);
                    if let Some(label) = labels.get(number) {
                        let h = if middle.cos() < -0.05 { HPos::Right } else { HPos::Left };
                        pen.words(label, point(middle, 1.08), NORMAL, self.look.ink, (h, VPos::Center), false);
                    }
                    if let Some(share) = shares.get(number) {
                        let centre = (HPos::Center, VPos::Center);
                        pen.words(share, point(middle, 0.6), SMALL, (255, 255, 255), centre, false);
                    }
                    from = to;
                }
            }
            Mark::Image { rows, columns, shades, place: [left, right, bottom, top] } => {
                let (wide, high) = ((right - left) / *columns as f64, (top - bottom) / *rows as f64);
                for (number, value) in shades.values.0.iter().enumerate().take(rows * columns) {
                    if value.is_finite() {
                        let (row, column) = ((number / columns) as f64, (number % columns) as f64);
                        let a = (sx.at(left + wide * column), sy.at(top - high * row));
                        let b = (sx.at(left + wide * (column + 1.0)), sy.at(top - high * (row + 1.0)));
                        pen.rectangle_within(a, b, tint(shades, *value), 1.0, frame);
                    }
                }
            }
            Mark::Contour { x, y, shades, levels, filled } => {
                self.contour((&x.0, &y.0), shades, (levels, *filled), (sx, sy), frame, pen);
            }
        }
    }

    fn arrow<B: DrawingBackend>(&self, from: At, to: At, colour: Rgb, pen: &mut Pen<'_, B>) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        if length > 1.0 && length.is_finite() {
            let (dx, dy) = ((to.0 - from.0) / length, (to.1 - from.1) / length);
            pen.path(&[from, to], Stroke { colour, alpha: 1.0, width: 1.0, dash: "-" });
            let back = (to.0 - dx * 7.0, to.1 - dy * 7.0);
            pen.polygon(
                &[to, (back.0 - dy * 3.0, back.1 + dx * 3.0), (back.0 + dy * 3.0, back.1 - dx * 3.0)],
                colour,
                1.0,
            );
        }
    }

    /// Each cell of the grid is cut in two triangles; in a triangle a level is one straight line.
    fn contour<B: DrawingBackend>(
        &self,
        (xs, ys): (&[f64], &[f64]),
        shades: &Shades,
        (levels, filled): (&[f64], bool),
        (sx, sy): (Scale, Scale),
        frame: Frame,
        pen: &mut Pen<'_, B>,
    ) {
        let columns = xs.len();
        let corner = |row: usize, column: usize| {
            let z = shades.values.0.get(row * columns + column).copied().unwrap_or(f64::NAN);
            ((sx.at(xs[column]), sy.at(ys[row])), z)
        };
        for row in 1..ys.len() {
            for column in 1..columns {
                let [a, b, c, d] = [
                    corner(row - 1, column - 1),
                    corner(row - 1, column),
                    corner(row, column),
                    corner(row, column - 1),
                ];
                for triangle in [[a, b, c], [a, c, d]] {
                    if triangle.iter().any(|(_, z)| !z.is_finite()) {
                        continue;
                    }
                    if filled {
                        for pair in levels.windows(2) {
                            let band = above(below(triangle.to_vec(), pair[1]), pair[0]);
                            let corners: Vec<At> = band.into_iter().map(|(at, _)| at).collect();
                            pen.polygon(&corners, tint(shades, f64::midpoint(pair[0], pair[1])), 1.0);
                        }
                        continue;
                    }
                    for level in levels {
                        let sides = [(0, 1), (1, 2), (2, 0)].map(|(from, to)| (triangle[from], triangle[to]));
                        let crossings = sides.iter().filter_map(|((p, low), (q, high))| {
                            let share = (level - low) / (high - low);
                            let at = (p.0 + (q.0 - p.0) * share, p.1 + (q.1 - p.1) * share);
                            ((low < level) != (high < level)).then_some(at)
                        });
                        let path: Vec<At> = crossings.collect();
                        let stroke = Stroke { colour: tint(shades, *level), alpha: 1.0, width: 1.5, dash: "-" };
                        pen.path_within(&path, stroke, frame);
                    }
                }
            }
        }
    }

    fn legend<B: DrawingBackend>(&self, place: &str, sx: Scale, sy: Scale, frame: Frame, pen: &mut Pen<'_, B>) {
        let entries: Vec<(&Mark, &str)> =
            self.axes.marks.iter().filter_map(|mark| Some((mark, named(mark)?))).collect();
        if entries.is_empty() {
            return;
        }
        let widest = entries.iter().map(|(_, label)| pen.wide(label, SMALL)).fold(0.0, f64::max);
        let (wide, high, row) = (widest + 44.0, entries.len() as f64 * 16.0 + 8.0, 16.0);
        let corners = ["upper right", "upper left", "lower left", "lower right"];
        let frame_of = |place: &str| {
            let left = match place {
                _ if place.contains("left") => frame.left + 8.0,
                _ if place.contains("right") || place == "best" => frame.right - wide - 8.0,
                _ => f64::midpoint(frame.left, frame.right) - wide / 2.0,
            };
            let top = match place {
                _ if place.contains("upper") || place == "best" => frame.top + 6.0,
                _ if place.contains("lower") => frame.bottom - high - 6.0,
                _ => f64::midpoint(frame.top, frame.bottom) - high / 2.0,
            };
            Frame { left, top, right: left + wide, bottom: top + high }
        };
        let hidden = |place: &&&str| {
            let over = frame_of(place);
            let points = self.axes.marks.iter().map(|mark| match mark {
                Mark::Line { x, y, .. } | Mark::Points { x, y, .. } => {
                    let step = x.0.len() / 500 + 1;
                    let all = x.0.iter().zip(&y.0).step_by(step);
                    all.filter(|(x, y)| over.holds((sx.at(**x), sy.at(**y)))).count()
                }
                Mark::Bars { x, y, width, height, .. } => {
                    let all = x.0.iter().zip(&y.0).zip(width.0.iter().zip(&height.0));
                    let tops = all.map(|((x, y), (wide, high))| (sx.at(x + wide / 2.0), sy.at(y + high)));
                    tops.filter(|(x, y)| *x > over.left && *x < over.right && *y < over.bottom).count()
                }
                _ => 0,
            });
            points.sum::<usize>()
        };
        let place = if place == "best" { corners.iter().min_by_key(hidden).copied().unwrap_or(place) } else { place };
        let over = frame_of(place);
        if let Some(paper) = self.look.paper {
            pen.rectangle((over.left, over.top), (over.right, over.bottom), paper, 0.85, true, 1.0);
        }
        for (number, (mark, label)) in entries.into_iter().enumerate() {
            let y = over.top + 4.0 + row * (number as f64 + 0.5);
            let (left, right) = (over.left + 6.0, over.left + 28.0);
            let colour = |name: &str| self.look.colour(name);
            let swatch = |pen: &mut Pen<'_, B>, name: &str, alpha: f64| {
                pen.rectangle((left, y - 4.0), (right, y + 4.0), colour(name), alpha, true, 1.0);
            };
            match mark {
                Mark::Line { color, width, dash, marker, size, alpha, .. } => {
                    let stroke = Stroke { colour: colour(color), alpha: *alpha, width: *width, dash };
                    pen.path(&[(left, y), (right, y)], stroke);
                    if !marker.is_empty() {
                        stamp(pen, (f64::midpoint(left, right), y), marker, size / 2.0, colour(color), *alpha);
                    }
                }
                Mark::Points { colors, marker, alpha, .. } => {
                    let first = colors.first().map_or("C0", String::as_str);
                    stamp(pen, (f64::midpoint(left, right), y), marker, 3.0, colour(first), *alpha);
                }
                Mark::Bars { colors, alpha, .. } => swatch(pen, colors.first().map_or("C0", String::as_str), *alpha),
                Mark::Area { color, alpha, .. } => swatch(pen, color, *alpha),
                Mark::Rule { color, width, dash, alpha, .. } => {
                    pen.path(
                        &[(left, y), (right, y)],
                        Stroke { colour: colour(color), alpha: *alpha, width: *width, dash },
                    );
                }
                Mark::Segments { color, width, alpha, .. } => {
                    let stroke = Stroke { colour: colour(color), alpha: *alpha, width: *width, dash: "-" };
                    pen.path(&[(left, y), (right, y)], stroke);
                }
                Mark::Text { .. } | Mark::Pie { .. } | Mark::Image { .. } | Mark::Contour { .. } => {}
            }
            pen.words(label, (right + 8.0, y), SMALL, self.look.ink, (HPos::Left, VPos::Center), false);
        }
    }
}

/// The room that a label takes beside the ticks.
fn label_room(label: &str) -> f64 {
    if label.is_empty() { 0.0 } else { GAP + NORMAL * 1.25 * label.lines().count() as f64 }
}

fn named(mark: &Mark) -> Option<&str> {
    let label = match mark {
        Mark::Line { label, .. }
        | Mark::Points { label, .. }
        | Mark::Bars { label, .. }
        | Mark::Area { label, .. }
        | Mark::Rule { label, .. }
        | Mark::Segments { label, .. } => label,
        Mark::Text { .. } | Mark::Pie { .. } | Mark::Image { .. } | Mark::Contour { .. } => return None,
    };
    (!label.is_empty() && !label.starts_with('_')).then_some(label)
}

fn tint(shades: &Shades, value: f64) -> Rgb {
    let span = shades.high - shades.low;
    shade(&shades.map, if span == 0.0 { 0.5 } else { (value - shades.low) / span })
}

/// The part of a polygon whose height is at most `level`, and the part that is at least so high.
fn below(corners: Vec<(At, f64)>, level: f64) -> Vec<(At, f64)> {
    part(corners, |z| level - z)
}

fn above(corners: Vec<(At, f64)>, level: f64) -> Vec<(At, f64)> {
    part(corners, |z| z - level)
}

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

/// The runs of points that can be shown.
fn pieces(x: &[f64], y: &[f64], sx: Scale, sy: Scale) -> Vec<Vec<At>> {
    let mut pieces = vec![Vec::new()];
    for (x, y) in x.iter().zip(y) {
        let at = (sx.at(*x), sy.at(*y));
        if at.0.is_finite() && at.1.is_finite() {
            pieces.last_mut().into_iter().for_each(|piece: &mut Vec<At>| piece.push(at));
        } else if pieces.last().is_some_and(|piece| !piece.is_empty()) {
            pieces.push(Vec::new());
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Of many points that go from left to right, those that a column of pixels shows: its first, lowest, highest and last.
fn decimated(path: &[At], frame: Frame) -> Vec<At> {
    // Two columns to a point: no screen shows more.
    let columns = (frame.width() * 2.0).max(1.0);
    if (path.len() as f64) < columns * 6.0 || path.windows(2).any(|pair| pair[1].0 < pair[0].0) {
        return path.to_vec();
    }
    let column = |at: &At| ((at.0 - frame.left) * 2.0).floor();
    let mut kept = Vec::new();
    for run in path.chunk_by(|a, b| column(a) == column(b)) {
        let (mut low, mut high) = (0, 0);
        for (number, at) in run.iter().enumerate() {
            if at.1 < run[low].1 {
                low = number;
            }
            if at.1 > run[high].1 {
                high = number;
            }
        }
        let mut shown = [0, low, high, run.len() - 1];
        shown.sort_unstable();
        kept.extend(
            shown
                .iter()
                .zip(0..)
                .filter(|(at, number)| *number == 0 || shown[number - 1] != **at)
                .map(|(at, _)| run[*at]),
        );
    }
    kept
}

/// The same for a line that is kept: what a screen of 2,000 columns shows of it. `None`: it is short enough as it is.
pub(crate) fn thinned(x: &[f64], y: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut range = [f64::INFINITY, f64::NEG_INFINITY];
    extend(&mut range, x, false);
    // What is missing divides a line: such a line stays as it is.
    if x.len() < 20_000 || range[0] >= range[1] || x.iter().chain(y).any(|number| !number.is_finite()) {
        return None;
    }
    let frame = Frame { left: 0.0, top: 0.0, right: 1_000.0, bottom: 1.0 };
    let scale = 1_000.0 / (range[1] - range[0]);
    let path: Vec<At> = x.iter().zip(y).map(|(x, y)| ((x - range[0]) * scale, *y)).collect();
    Some(decimated(&path, frame).into_iter().map(|(x, y)| (x / scale + range[0], y)).unzip())
}

fn stamp<B: DrawingBackend>(pen: &mut Pen<'_, B>, (x, y): At, marker: &str, r: f64, colour: Rgb, alpha: f64) {
    let stroke = Stroke { colour, alpha, width: 1.4, dash: "-" };
    match marker {
        "s" => pen.rectangle((x - r, y - r), (x + r, y + r), colour, alpha, true, 1.0),
        "^" => pen.polygon(&[(x, y - r), (x + r, y + r), (x - r, y + r)], colour, alpha),
        "v" => pen.polygon(&[(x, y + r), (x - r, y - r), (x + r, y - r)], colour, alpha),
        "<" => pen.polygon(&[(x - r, y), (x + r, y - r), (x + r, y + r)], colour, alpha),
        ">" => pen.polygon(&[(x + r, y), (x - r, y + r), (x - r, y - r)], colour, alpha),
        "D" | "d" => pen.polygon(&[(x, y - r * 1.3), (x + r, y), (x, y + r * 1.3), (x - r, y)], colour, alpha),
        "x" => {
            pen.path(&[(x - r, y - r), (x + r, y + r)], stroke);
            pen.path(&[(x - r, y + r), (x + r, y - r)], stroke);
        }
        "+" => {
            pen.path(&[(x - r, y), (x + r, y)], stroke);
            pen.path(&[(x, y - r), (x, y + r)], stroke);
        }
        "*" => {
            let corner = |at: u32| {
                let angle = f64::from(at) * std::f64::consts::PI / 5.0;
                let far = if at.is_multiple_of(2) { r * 1.3 } else { r * 0.5 };
                (x + far * angle.sin(), y - far * angle.cos())
            };
            pen.polygon(&(0..10).map(corner).collect::<Vec<_>>(), colour, alpha);
        }
        "." => pen.circle((x, y), r * 0.5, colour, alpha),
        "," => pen.circle((x, y), 0.5, colour, alpha),
        _ => pen.circle((x, y), r, colour, alpha),
    }
}

/// Where ticks stand and what they say: those that were asked for, or about `wanted` round numbers.
#[allow(clippy::cast_possible_truncation, reason = "exponents are small")]
fn ticks(asked: Option<&Ticks>, low: f64, high: f64, log: bool, wanted: f64) -> Vec<(f64, String)> {
    let (from, to) = (low.min(high), low.max(high));
    if let Some(asked) = asked {
        let label = |number: usize, at: f64| asked.labels.get(number).cloned().unwrap_or_else(|| short(at));
        let all = asked.at.iter().enumerate().map(|(number, at)| (*at, label(number, *at)));
        let slack = (to - from) * 1e-9;
        return all.filter(|(at, _)| *at >= from - slack && *at <= to + slack).collect();
    }
    if log {
        let (first, last) = (from.log10().ceil() as i32, to.log10().floor() as i32);
        let every = (f64::from(last - first + 1) / wanted.max(2.0)).ceil().max(1.0) as i32;
        let decade = |power: i32| {
            let label = if (-3..=4).contains(&power) { short(10_f64.powi(power)) } else { format!("1e{power}") };
            (10_f64.powi(power), label)
        };
        let all: Vec<_> = (first..=last).step_by(every.unsigned_abs() as usize).map(decade).collect();
        if all.len() > 1 {
            return all;
        }
    }
    let rough = (to - from) / wanted.clamp(2.0, 9.0);
    let ten = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|part| part * ten).find(|step| *step >= rough * 0.999);
    let Some(step) = step.filter(|step| step.is_normal()) else { return Vec::new() };
    let first = (from / step - 1e-9).ceil();
    let count = ((to / step + 1e-9).floor() - first).clamp(-1.0, 50.0);
    let places = (0..=30).find(|places| {
        let scaled = step * 10_f64.powi(*places);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    let large = from.abs().max(to.abs());
    let number = |at: i32| {
        let x = (first + f64::from(at)) * step;
        let label = match places {
            Some(places @ 0..=6) if large < 1e7 => format!("{x:.*}", places.unsigned_abs() as usize),
            _ => format!("{:.*e}", usize::from((x / 10_f64.powf(large.log10().floor())).fract() != 0.0), x),
        };
        let label = if label.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
            label.trim_start_matches('-').to_owned()
        } else {
            label.replacen('-', "\u{2212}", usize::from(label.starts_with('-')))
        };
        (x, label)
    };
    (0..=count as i32).filter(|_| count >= 0.0).map(number).collect()
}

/// A number in few characters.
fn short(x: f64) -> String {
    let text = format!("{x}");
    let text = if text.len() > 8 { format!("{x:.3e}") } else { text };
    text.replacen('-', "\u{2212}", usize::from(text.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let says =
            |low, high, log| ticks(None, low, high, log, 6.0).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(says(0.0, 1.0, false), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(says(-1.1, 1.1, false), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(says(0.0, 1234.0, false), ["0", "250", "500", "750", "1000"]);
        assert_eq!(says(1.0, 1000.0, true), ["1", "10", "100", "1000"]);
        assert_eq!(says(f64::NAN, 1.0, false), Vec::<String>::new());
        assert_eq!(says(1.0, 1.0, false), Vec::<String>::new());
    }

    #[test]
    fn a_million_points_become_what_the_pixels_show() {
        let frame = Frame { left: 0.0, top: 0.0, right: 500.0, bottom: 300.0 };
        let path: Vec<At> = (0..1_000_000).map(|at| (f64::from(at) / 2_000.0, f64::from(at % 7) * 10.0)).collect();
        let kept = decimated(&path, frame);
        assert!(kept.len() <= 4_004, "{}", kept.len());
        for column in kept.chunk_by(|a, b| (a.0 * 2.0).floor() == (b.0 * 2.0).floor()) {
            let heights: Vec<f64> = column.iter().map(|at| at.1).collect();
            assert!(heights.contains(&0.0) && heights.contains(&60.0), "{heights:?}");
        }
        assert_eq!(decimated(&path[..100], frame), &path[..100]);
    }
}
