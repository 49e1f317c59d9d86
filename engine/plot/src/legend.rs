//! What explains a pair of axes: the legend and the scale of colours.

use crate::colour::{Look, shade};
use crate::draw::{GAP, NORMAL, SMALL};
use crate::figure::{Axes, Colorbar, Kind, Legend, Shades, Side};
use crate::marks::{Marks, stamped, tint};
use crate::pen::{At, Frame, Pen, Stroke, Surface};
use crate::scale::{Scale, Tick, ticks};
use crate::view::{Entry, View, entries};
use plotters::style::text_anchor::{HPos, VPos};

/// The room for the sample before an entry's words.
const SAMPLE: f64 = 22.0;
/// Points that are looked at for the best place.
const LOOKED: usize = 500;

/// How a legend is laid out.
struct Laid {
    size: f64,
    row: f64,
    rows: usize,
    wide: f64,
    title: f64,
    whole: [f64; 2],
}

fn laid<B: Surface>(axes: &Axes, asked: &Legend, pen: &Pen<'_, B>) -> Laid {
    let all = entries(axes);
    let size = if asked.size > 0.0 { asked.size.clamp(4.0, 40.0) } else { SMALL };
    let columns = asked.columns.clamp(1, all.len().max(1));
    let rows = all.len().div_ceil(columns);
    let label = |number: &usize| pen.wide(axes.marks[*number].kind.label(), size);
    let widest = all.iter().map(|(number, _)| label(number)).fold(0.0, f64::max);
    let (wide, row) = (widest + SAMPLE + 14.0, size * 1.6);
    let title = if asked.title.is_empty() { 0.0 } else { size * 1.6 };
    let across = (wide * columns as f64 + 8.0).max(pen.wide(&asked.title, size) + 16.0);
    Laid { size, row, rows, wide, title, whole: [across, row * rows as f64 + title + 8.0] }
}

/// How large a legend is.
pub(crate) fn size<B: Surface>(axes: &Axes, pen: &Pen<'_, B>) -> [f64; 2] {
    axes.legend.as_ref().map_or([0.0; 2], |asked| laid(axes, asked, pen).whole)
}

/// Draws a legend. Gives its entries.
pub(crate) fn draw<B: Surface>(
    marks: &Marks<'_>,
    view: &View,
    number: usize,
    asked: &Legend,
    pen: &mut Pen<'_, B>,
) -> Vec<Entry> {
    let (axes, look) = (marks.axes, marks.look);
    let all = entries(axes);
    if all.is_empty() {
        return Vec::new();
    }
    let laid = laid(axes, asked, pen);
    let over = place(marks, &asked.place, laid.whole);
    let ink = look.ink;
    if !asked.bare {
        let (a, b) = ((over.left, over.top), (over.right, over.bottom));
        pen.rectangle(a, b, look.ground(&axes.ground), 0.85, true, 1.0);
        pen.rectangle(a, b, look.line, 1.0, false, 0.8);
    }
    if laid.title > 0.0 {
        let at = ((over.left + over.right) / 2.0, over.top + 4.0 + laid.title / 2.0);
        pen.words(&asked.title, at, laid.size, ink, (HPos::Center, VPos::Center), false);
    }
    let mut found = Vec::with_capacity(all.len());
    for (at, (mark, together)) in all.into_iter().enumerate() {
        let (column, row) = (at / laid.rows, at % laid.rows);
        let left = over.left + 6.0 + laid.wide * column as f64;
        let y = over.top + 4.0 + laid.title + laid.row * (row as f64 + 0.5);
        let shown = !together.iter().any(|mark| view.hidden.contains(&(number, *mark)));
        for mark in &together {
            sample(&axes.marks[*mark].kind, look, (left, y), shown, pen);
        }
        let kind = &axes.marks[mark].kind;
        let words = if shown { ink } else { look.faint() };
        pen.words(kind.label(), (left + SAMPLE + 6.0, y), laid.size, words, (HPos::Left, VPos::Center), false);
        let rect = [left - 3.0, y - laid.row / 2.0, left + laid.wide - 4.0, y + laid.row / 2.0];
        found.push(Entry { label: kind.label().to_owned(), rect, marks: together, shown });
    }
    found
}

/// What an entry shows of its marks.
fn sample<B: Surface>(kind: &Kind, look: Look, (left, y): At, shown: bool, pen: &mut Pen<'_, B>) {
    let right = left + SAMPLE;
    let middle = (f64::midpoint(left, right), y);
    let faded = |alpha: f64| if shown { alpha } else { alpha * 0.3 };
    let swatch = |pen: &mut Pen<'_, B>, name: &str, edge: &str, alpha: f64| {
        let (a, b) = ((left, y - 4.0), (right, y + 4.0));
        if name != "none" {
            pen.rectangle(a, b, look.colour(name), faded(alpha), true, 1.0);
        }
        if !edge.is_empty() && edge != "none" {
            pen.rectangle(a, b, look.colour(edge), faded(1.0), false, 1.0);
        }
    };
    let mut line = |color: &str, width: f64, dash: &str, alpha: f64| {
        let dash = if dash.is_empty() { "-" } else { dash };
        let stroke = Stroke { colour: look.colour(color), alpha: faded(alpha), width, dash };
        pen.path(&[(left, y), (right, y)], stroke);
    };
    match kind {
        Kind::Line { color, width, dash, marker, size, face, alpha, .. } => {
            if dash != "none" {
                line(color, *width, dash, *alpha);
            }
            if !marker.is_empty() {
                let colour = look.colour(if face.is_empty() || face == "none" { color } else { face });
                stamped(pen, middle, marker, (size / 2.0).min(5.0), colour, faded(*alpha));
            }
        }
        Kind::Points { colors, values, marker, alpha, .. } => {
            let first = || look.colour(colors.first().map_or("C0", String::as_str));
            let colour = values.as_ref().map_or_else(first, |shades| shade(&shades.map, 0.5));
            stamped(pen, middle, marker, 3.0, colour, faded(*alpha));
        }
        Kind::Bars { colors, edge, alpha, .. } | Kind::Polygons { colors, edge, alpha, .. } => {
            swatch(pen, colors.first().map_or("C0", String::as_str), edge, *alpha);
        }
        Kind::Area { color, alpha, .. } | Kind::Band { color, alpha, .. } => swatch(pen, color, "", *alpha),
        Kind::Rule { color, width, dash, alpha, .. } => line(color, *width, dash, *alpha),
        Kind::Segments { x, y: up, color, width, dash, alpha, .. } => {
            // Error bars stand upright behind their points.
            let upright = x.0.first() == x.0.get(1) && up.0.first() != up.0.get(1);
            let own = !kind.label().is_empty();
            let stroke = Stroke { colour: look.colour(color), alpha: faded(*alpha), width: *width, dash: "-" };
            if own {
                line(color, *width, dash, *alpha);
            } else if upright {
                pen.path(&[(middle.0, y - 5.0), (middle.0, y + 5.0)], stroke);
            }
        }
        Kind::Text { .. } | Kind::Pie { .. } | Kind::Image { .. } | Kind::Pixels { .. } | Kind::Contour { .. } => {}
    }
}

/// Where a legend stands.
fn place(marks: &Marks<'_>, asked: &str, [wide, high]: [f64; 2]) -> Frame {
    let (frame, [sx, sy]) = (marks.frame, marks.scales);
    let frame_of = |place: &str| {
        let left = match place {
            "outside" => frame.right + 8.0,
            _ if place.contains("left") => frame.left + 6.0,
            _ if place.contains("right") || place == "best" => frame.right - wide - 6.0,
            _ => f64::midpoint(frame.left, frame.right) - wide / 2.0,
        };
        let top = match place {
            "outside" => frame.top,
            _ if place.contains("upper") || place == "best" => frame.top + 6.0,
            _ if place.contains("lower") => frame.bottom - high - 6.0,
            _ => f64::midpoint(frame.top, frame.bottom) - high / 2.0,
        };
        Frame { left, top, right: left + wide, bottom: top + high }
    };
    if asked != "best" {
        return frame_of(asked);
    }
    // What would lie below it: points, and the lines between them.
    let hidden = |place: &&&str| -> usize {
        let over = frame_of(place);
        let count = |all: &mut dyn Iterator<Item = At>| {
            let mut last: Option<At> = None;
            let mut below = 0;
            for at in all {
                below += usize::from(over.holds(at)) * 2;
                if let Some(from) = last {
                    let between = |share: f64| (from.0 + (at.0 - from.0) * share, from.1 + (at.1 - from.1) * share);
                    below += [0.25, 0.5, 0.75].into_iter().filter(|share| over.holds(between(*share))).count();
                }
                last = Some(at);
            }
            below
        };
        let below = marks.axes.marks.iter().map(|mark| match &mark.kind {
            Kind::Line { x, y, .. } => {
                let step = x.0.len() / LOOKED + 1;
                count(&mut x.0.iter().zip(&y.0).step_by(step).map(|(x, y)| (sx.at(*x), sy.at(*y))))
            }
            Kind::Points { x, y, .. } => {
                let step = x.0.len() / LOOKED + 1;
                let all = x.0.iter().zip(&y.0).step_by(step).map(|(x, y)| (sx.at(*x), sy.at(*y)));
                2 * all.filter(|at| over.holds(*at)).count()
            }
            Kind::Bars { x, y, width, height, .. } => {
                let all = x.0.iter().zip(&y.0).zip(width.0.iter().zip(&height.0));
                all.filter(|((x, y), (wide, high))| {
                    let (a, b) = ((sx.at(**x), sy.at(**y)), (sx.at(*x + *wide), sy.at(*y + *high)));
                    a.0.max(b.0) > over.left
                        && a.0.min(b.0) < over.right
                        && a.1.max(b.1) > over.top
                        && a.1.min(b.1) < over.bottom
                })
                .count()
                    * 2
            }
            Kind::Area { x, low, high, .. } => {
                let step = x.0.len() / LOOKED + 1;
                let all = x.0.iter().zip(low.0.iter().zip(&high.0)).step_by(step);
                all.filter(|(x, (low, high))| {
                    let (at, a, b) = (sx.at(**x), sy.at(**high), sy.at(**low));
                    at > over.left && at < over.right && a.min(b) < over.bottom && a.max(b) > over.top
                })
                .count()
            }
            _ => 0,
        });
        below.sum()
    };
    let places = [
        "upper right",
        "upper left",
        "lower left",
        "lower right",
        "center left",
        "center right",
        "lower center",
        "upper center",
        "center",
    ];
    frame_of(places.iter().min_by_key(hidden).copied().unwrap_or("upper right"))
}

/// The mark whose colours a scale explains.
pub(crate) fn scaled(axes: &Axes) -> Option<(&Kind, &Shades)> {
    let named = axes.colorbar.as_ref().and_then(|bar| bar.mark).and_then(|number| axes.marks.get(number));
    let last = || axes.marks.iter().rev().find(|mark| mark.kind.shades().is_some());
    let kind = &named.filter(|mark| mark.kind.shades().is_some()).or_else(last)?.kind;
    Some((kind, kind.shades()?))
}

/// The levels between which colours are the same, if there are such.
fn levels(kind: &Kind) -> Option<(&[f64], bool)> {
    match kind {
        Kind::Contour { levels, filled, .. } if levels.len() > 1 => Some((levels, *filled)),
        _ => None,
    }
}

/// The ticks of a scale of colours that is so long.
pub(crate) fn bar_ticks(axes: &Axes, long: f64) -> Vec<Tick> {
    let Some((kind, shades)) = scaled(axes) else { return Vec::new() };
    if let Some((levels, _)) = levels(kind) {
        let every = (levels.len() as f64 / (long / 24.0).max(2.0)).ceil().max(1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let shown = levels.iter().step_by(every as usize);
        let step = (levels[1] - levels[0]).abs();
        return shown.map(|at| Tick { at: *at, label: crate::scale::fine(*at, step) }).collect();
    }
    let side = Side { scale: if shades.log { "log".to_owned() } else { String::new() }, ..Side::default() };
    let marked = ticks(&side, shades.low, shades.high, long / 36.0);
    let times = if marked.times.is_empty() { String::new() } else { format!(" {}", marked.times) };
    let named =
        |tick: Tick| Tick { label: if tick.label.is_empty() { tick.label } else { tick.label + &times }, ..tick };
    marked.ticks.into_iter().map(named).collect()
}

/// Draws the scale of colours beside a frame, or `away` points below it.
pub(crate) fn colorbar<B: Surface>(
    axes: &Axes,
    bar: &Colorbar,
    look: Look,
    frame: Frame,
    away: f64,
    pen: &mut Pen<'_, B>,
) {
    let Some((kind, shades)) = scaled(axes) else { return };
    let area = match bar.below {
        true => {
            Frame { left: frame.left, right: frame.right, top: frame.bottom + away, bottom: frame.bottom + away + 10.0 }
        }
        false => Frame { left: frame.right + 12.0, right: frame.right + 22.0, top: frame.top, bottom: frame.bottom },
    };
    let levels = levels(kind);
    let (low, high) = match levels {
        Some((levels, _)) => (levels[0], levels[levels.len() - 1]),
        None => (shades.low, shades.high),
    };
    let (from, to) = if bar.below { (area.left, area.right) } else { (area.bottom, area.top) };
    let scale = Scale { low, high, log: shades.log, from, to };
    let across =
        |at: f64| if bar.below { [(at, area.top), (at, area.bottom)] } else { [(area.left, at), (area.right, at)] };
    let line = |colour, width: f64| Stroke { colour, alpha: 1.0, width, dash: "-" };
    match levels {
        Some((levels, true)) => {
            for pair in levels.windows(2) {
                let ([a, _], [_, b]) = (across(scale.at(pair[0])), across(scale.at(pair[1])));
                pen.rectangle(a, b, tint(shades, f64::midpoint(pair[0], pair[1])), 1.0, true, 1.0);
            }
        }
        Some((levels, false)) => {
            for level in levels {
                pen.path(&across(scale.at(*level)), line(tint(shades, *level), 1.5));
            }
        }
        None => {
            const PARTS: usize = 128;
            let mut bytes = Vec::with_capacity(PARTS * 4);
            for at in 0..PARTS {
                let share = (at as f64 + 0.5) / PARTS as f64;
                let (red, green, blue) = shade(&shades.map, if bar.below { share } else { 1.0 - share });
                bytes.extend([red, green, blue, 255]);
            }
            let (columns, rows) = if bar.below { (PARTS, 1) } else { (1, PARTS) };
            pen.pixels((area.left, area.top), (area.right, area.bottom), columns, rows, &bytes);
        }
    }
    pen.rectangle((area.left, area.top), (area.right, area.bottom), look.muted, 1.0, false, 0.6);
    let long = if bar.below { area.width() * 0.6 } else { area.height() };
    let mut widest: f64 = 0.0;
    for tick in bar_ticks(axes, long) {
        let at = scale.at(tick.at);
        widest = widest.max(pen.wide(&tick.label, SMALL));
        if bar.below {
            pen.path(&[(at, area.bottom), (at, area.bottom + 3.0)], line(look.muted, 0.8));
            let place = (at, area.bottom + 3.0 + GAP);
            pen.words(&tick.label, place, SMALL, look.muted, (HPos::Center, VPos::Top), false);
        } else {
            let short = if tick.label.is_empty() { 2.0 } else { 3.0 };
            pen.path(&[(area.right, at), (area.right + short, at)], line(look.muted, 0.8));
            let place = (area.right + 3.0 + GAP, at);
            pen.words(&tick.label, place, SMALL, look.muted, (HPos::Left, VPos::Center), false);
        }
    }
    let centre = (HPos::Center, VPos::Top);
    if bar.below {
        let at = ((area.left + area.right) / 2.0, area.bottom + 20.0);
        pen.words(&bar.label, at, NORMAL, look.ink, centre, false);
    } else {
        let at = (area.right + 3.0 + GAP + widest + GAP, (area.top + area.bottom) / 2.0);
        pen.words(&bar.label, at, NORMAL, look.ink, centre, true);
    }
}
