//! The legend and color bar of a pair of axes.

use crate::colour::{PlotTheme, colour_at};
use crate::draw::{LABEL_FONT_SIZE, LABEL_GAP, SMALL_FONT_SIZE};
use crate::figure::{Axes, AxisSpec, Colorbar, FigureLegend, MappedValues, MarkKind};
use crate::marks::{MarkPainter, fill_marker, mapped_colour};
use crate::painter::{PlotBackend, PlotPainter, PlotPoint, PlotRect, PlotStroke};
use crate::scale::{AxisScale, AxisTick, layout_ticks};
use crate::view::{LegendEntry, PlotView, legend_entries};
use plotters::style::text_anchor::{HPos, VPos};

/// Width of the sample before an entry's label, in points.
const SAMPLE_WIDTH: f64 = 22.0;
/// Number of points that are sampled to find the best position.
const PLACEMENT_SAMPLE_POINTS: usize = 500;

/// The layout of a legend.
struct LegendLayout {
    size: f64,
    row: f64,
    rows: usize,
    wide: f64,
    title: f64,
    total_size: [f64; 2],
}

fn layout_legend<B: PlotBackend>(axes: &Axes, asked: &FigureLegend, pen: &PlotPainter<'_, B>) -> LegendLayout {
    let all = legend_entries(axes);
    let size = if asked.size > 0.0 { asked.size.clamp(4.0, 40.0) } else { SMALL_FONT_SIZE };
    let columns = asked.columns.clamp(1, all.len().max(1));
    let rows = all.len().div_ceil(columns);
    let label = |number: &usize| pen.text_width(axes.marks[*number].kind.label(), size);
    let widest = all.iter().map(|(number, _)| label(number)).fold(0.0, f64::max);
    let (wide, row) = (widest + SAMPLE_WIDTH + 14.0, size * 1.6);
    let title = if asked.title.is_empty() { 0.0 } else { size * 1.6 };
    let across = (wide * columns as f64 + 8.0).max(pen.text_width(&asked.title, size) + 16.0);
    LegendLayout { size, row, rows, wide, title, total_size: [across, row * rows as f64 + title + 8.0] }
}

/// Returns the size of a legend in points.
pub(crate) fn legend_size<B: PlotBackend>(axes: &Axes, pen: &PlotPainter<'_, B>) -> [f64; 2] {
    axes.legend.as_ref().map_or([0.0; 2], |asked| layout_legend(axes, asked, pen).total_size)
}

/// Draws a legend and returns its entries.
pub(crate) fn draw_legend<B: PlotBackend>(
    marks: &MarkPainter<'_>,
    view: &PlotView,
    number: usize,
    asked: &FigureLegend,
    pen: &mut PlotPainter<'_, B>,
) -> Vec<LegendEntry> {
    let (axes, look) = (marks.axes, marks.look);
    let all = legend_entries(axes);
    if all.is_empty() {
        return Vec::new();
    }
    let laid = layout_legend(axes, asked, pen);
    let over = place_legend(marks, &asked.place, laid.total_size);
    let ink = look.ink;
    if !asked.bare {
        let (a, b) = ((over.left, over.top), (over.right, over.bottom));
        pen.draw_rectangle(a, b, look.background(&axes.ground), 0.85, true, 1.0);
        pen.draw_rectangle(a, b, look.grid_line, 1.0, false, 0.8);
    }
    if laid.title > 0.0 {
        let at = ((over.left + over.right) / 2.0, over.top + 4.0 + laid.title / 2.0);
        pen.draw_text(&asked.title, at, laid.size, ink, (HPos::Center, VPos::Center), false);
    }
    let mut found = Vec::with_capacity(all.len());
    for (at, (mark, together)) in all.into_iter().enumerate() {
        let (column, row) = (at / laid.rows, at % laid.rows);
        let left = over.left + 6.0 + laid.wide * column as f64;
        let y = over.top + 4.0 + laid.title + laid.row * (row as f64 + 0.5);
        let shown = !together.iter().any(|mark| view.hidden.contains(&(number, *mark)));
        for mark in &together {
            draw_sample(&axes.marks[*mark].kind, look, (left, y), shown, pen);
        }
        let kind = &axes.marks[mark].kind;
        let words = if shown { ink } else { look.faint_ink() };
        pen.draw_text(
            kind.label(),
            (left + SAMPLE_WIDTH + 6.0, y),
            laid.size,
            words,
            (HPos::Left, VPos::Center),
            false,
        );
        let rect = [left - 3.0, y - laid.row / 2.0, left + laid.wide - 4.0, y + laid.row / 2.0];
        found.push(LegendEntry { label: kind.label().to_owned(), rect, marks: together, shown });
    }
    found
}

/// Draws the sample of an entry.
fn draw_sample<B: PlotBackend>(
    kind: &MarkKind,
    look: PlotTheme,
    (left, y): PlotPoint,
    shown: bool,
    pen: &mut PlotPainter<'_, B>,
) {
    let right = left + SAMPLE_WIDTH;
    let middle = (f64::midpoint(left, right), y);
    let faded = |alpha: f64| if shown { alpha } else { alpha * 0.3 };
    let swatch = |pen: &mut PlotPainter<'_, B>, name: &str, edge: &str, alpha: f64| {
        let (a, b) = ((left, y - 4.0), (right, y + 4.0));
        if name != "none" {
            pen.draw_rectangle(a, b, look.resolve_colour(name), faded(alpha), true, 1.0);
        }
        if !edge.is_empty() && edge != "none" {
            pen.draw_rectangle(a, b, look.resolve_colour(edge), faded(1.0), false, 1.0);
        }
    };
    let mut line = |color: &str, width: f64, dash: &str, alpha: f64| {
        let dash = if dash.is_empty() { "-" } else { dash };
        let stroke = PlotStroke { colour: look.resolve_colour(color), alpha: faded(alpha), width, dash };
        pen.draw_path(&[(left, y), (right, y)], stroke);
    };
    match kind {
        MarkKind::Line { color, width, dash, marker, size, face, alpha, .. } => {
            if dash != "none" {
                line(color, *width, dash, *alpha);
            }
            if !marker.is_empty() {
                let colour = look.resolve_colour(if face.is_empty() || face == "none" { color } else { face });
                fill_marker(pen, middle, marker, (size / 2.0).min(5.0), colour, faded(*alpha));
            }
        }
        MarkKind::Points { colors, values, marker, alpha, .. } => {
            let first = || look.resolve_colour(colors.first().map_or("C0", String::as_str));
            let colour = values.as_ref().map_or_else(first, |shades| colour_at(&shades.map, 0.5));
            fill_marker(pen, middle, marker, 3.0, colour, faded(*alpha));
        }
        MarkKind::Bars { colors, edge, alpha, .. } | MarkKind::Polygons { colors, edge, alpha, .. } => {
            swatch(pen, colors.first().map_or("C0", String::as_str), edge, *alpha);
        }
        MarkKind::Area { color, alpha, .. } | MarkKind::Band { color, alpha, .. } => swatch(pen, color, "", *alpha),
        MarkKind::Rule { color, width, dash, alpha, .. } => line(color, *width, dash, *alpha),
        MarkKind::Segments { x, y: up, color, width, dash, alpha, .. } => {
            // Error bars are drawn as a vertical line behind their points.
            let upright = x.0.first() == x.0.get(1) && up.0.first() != up.0.get(1);
            let own = !kind.label().is_empty();
            let stroke =
                PlotStroke { colour: look.resolve_colour(color), alpha: faded(*alpha), width: *width, dash: "-" };
            if own {
                line(color, *width, dash, *alpha);
            } else if upright {
                pen.draw_path(&[(middle.0, y - 5.0), (middle.0, y + 5.0)], stroke);
            }
        }
        MarkKind::Text { .. }
        | MarkKind::Pie { .. }
        | MarkKind::Image { .. }
        | MarkKind::Pixels { .. }
        | MarkKind::Contour { .. } => {}
    }
}

/// Returns the rectangle of a legend.
fn place_legend(marks: &MarkPainter<'_>, asked: &str, [wide, high]: [f64; 2]) -> PlotRect {
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
        PlotRect { left, top, right: left + wide, bottom: top + high }
    };
    if asked != "best" {
        return frame_of(asked);
    }
    // Counts the content that the legend would cover: points and the lines between them.
    let hidden = |place: &&&str| -> usize {
        let over = frame_of(place);
        let count = |all: &mut dyn Iterator<Item = PlotPoint>| {
            let mut last: Option<PlotPoint> = None;
            let mut below = 0;
            for at in all {
                below += usize::from(over.contains(at)) * 2;
                if let Some(from) = last {
                    let between = |share: f64| (from.0 + (at.0 - from.0) * share, from.1 + (at.1 - from.1) * share);
                    below += [0.25, 0.5, 0.75].into_iter().filter(|share| over.contains(between(*share))).count();
                }
                last = Some(at);
            }
            below
        };
        let below = marks.axes.marks.iter().map(|mark| match &mark.kind {
            MarkKind::Line { x, y, .. } => {
                let step = x.0.len() / PLACEMENT_SAMPLE_POINTS + 1;
                count(&mut x.0.iter().zip(&y.0).step_by(step).map(|(x, y)| (sx.position(*x), sy.position(*y))))
            }
            MarkKind::Points { x, y, .. } => {
                let step = x.0.len() / PLACEMENT_SAMPLE_POINTS + 1;
                let all = x.0.iter().zip(&y.0).step_by(step).map(|(x, y)| (sx.position(*x), sy.position(*y)));
                2 * all.filter(|at| over.contains(*at)).count()
            }
            MarkKind::Bars { x, y, width, height, .. } => {
                let all = x.0.iter().zip(&y.0).zip(width.0.iter().zip(&height.0));
                all.filter(|((x, y), (wide, high))| {
                    let (a, b) =
                        ((sx.position(**x), sy.position(**y)), (sx.position(*x + *wide), sy.position(*y + *high)));
                    a.0.max(b.0) > over.left
                        && a.0.min(b.0) < over.right
                        && a.1.max(b.1) > over.top
                        && a.1.min(b.1) < over.bottom
                })
                .count()
                    * 2
            }
            MarkKind::Area { x, low, high, .. } => {
                let step = x.0.len() / PLACEMENT_SAMPLE_POINTS + 1;
                let all = x.0.iter().zip(low.0.iter().zip(&high.0)).step_by(step);
                all.filter(|(x, (low, high))| {
                    let (at, a, b) = (sx.position(**x), sy.position(**high), sy.position(**low));
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

/// Returns the mark that the color bar explains.
pub(crate) fn colorbar_source(axes: &Axes) -> Option<(&MarkKind, &MappedValues)> {
    let named = axes.colorbar.as_ref().and_then(|bar| bar.mark).and_then(|number| axes.marks.get(number));
    let last = || axes.marks.iter().rev().find(|mark| mark.kind.mapped_values().is_some());
    let kind = &named.filter(|mark| mark.kind.mapped_values().is_some()).or_else(last)?.kind;
    Some((kind, kind.mapped_values()?))
}

/// Returns the contour levels, and whether the bands between them are filled.
fn contour_levels(kind: &MarkKind) -> Option<(&[f64], bool)> {
    match kind {
        MarkKind::Contour { levels, filled, .. } if levels.len() > 1 => Some((levels, *filled)),
        _ => None,
    }
}

/// Returns the ticks of a color bar with a length in points.
pub(crate) fn colorbar_ticks(axes: &Axes, long: f64) -> Vec<AxisTick> {
    let Some((kind, shades)) = colorbar_source(axes) else { return Vec::new() };
    if let Some((levels, _)) = contour_levels(kind) {
        let every = (levels.len() as f64 / (long / 24.0).max(2.0)).ceil().max(1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let shown = levels.iter().step_by(every as usize);
        let step = (levels[1] - levels[0]).abs();
        return shown.map(|at| AxisTick { at: *at, label: crate::scale::format_with_step(*at, step) }).collect();
    }
    let side = AxisSpec { scale: if shades.log { "log".to_owned() } else { String::new() }, ..AxisSpec::default() };
    let marked = layout_ticks(&side, shades.low, shades.high, long / 36.0);
    let times = if marked.multiplier.is_empty() { String::new() } else { format!(" {}", marked.multiplier) };
    let named = |tick: AxisTick| AxisTick {
        label: if tick.label.is_empty() { tick.label } else { tick.label + &times },
        ..tick
    };
    marked.ticks.into_iter().map(named).collect()
}

/// Draws the color bar beside a frame, or `away` points below it.
pub(crate) fn draw_colorbar<B: PlotBackend>(
    axes: &Axes,
    bar: &Colorbar,
    look: PlotTheme,
    frame: PlotRect,
    away: f64,
    pen: &mut PlotPainter<'_, B>,
) {
    let Some((kind, shades)) = colorbar_source(axes) else { return };
    let area = match bar.below {
        true => PlotRect {
            left: frame.left,
            right: frame.right,
            top: frame.bottom + away,
            bottom: frame.bottom + away + 10.0,
        },
        false => PlotRect { left: frame.right + 12.0, right: frame.right + 22.0, top: frame.top, bottom: frame.bottom },
    };
    let levels = contour_levels(kind);
    let (low, high) = match levels {
        Some((levels, _)) => (levels[0], levels[levels.len() - 1]),
        None => (shades.low, shades.high),
    };
    let (from, to) = if bar.below { (area.left, area.right) } else { (area.bottom, area.top) };
    let scale = AxisScale { low, high, log: shades.log, from, to };
    let across =
        |at: f64| if bar.below { [(at, area.top), (at, area.bottom)] } else { [(area.left, at), (area.right, at)] };
    let line = |colour, width: f64| PlotStroke { colour, alpha: 1.0, width, dash: "-" };
    match levels {
        Some((levels, true)) => {
            for pair in levels.windows(2) {
                let ([a, _], [_, b]) = (across(scale.position(pair[0])), across(scale.position(pair[1])));
                pen.draw_rectangle(a, b, mapped_colour(shades, f64::midpoint(pair[0], pair[1])), 1.0, true, 1.0);
            }
        }
        Some((levels, false)) => {
            for level in levels {
                pen.draw_path(&across(scale.position(*level)), line(mapped_colour(shades, *level), 1.5));
            }
        }
        None => {
            const COLORBAR_STEPS: usize = 128;
            let mut bytes = Vec::with_capacity(COLORBAR_STEPS * 4);
            for at in 0..COLORBAR_STEPS {
                let share = (at as f64 + 0.5) / COLORBAR_STEPS as f64;
                let (red, green, blue) = colour_at(&shades.map, if bar.below { share } else { 1.0 - share });
                bytes.extend([red, green, blue, 255]);
            }
            let (columns, rows) = if bar.below { (COLORBAR_STEPS, 1) } else { (1, COLORBAR_STEPS) };
            pen.draw_pixels((area.left, area.top), (area.right, area.bottom), columns, rows, &bytes);
        }
    }
    pen.draw_rectangle((area.left, area.top), (area.right, area.bottom), look.muted, 1.0, false, 0.6);
    let long = if bar.below { area.width() * 0.6 } else { area.height() };
    let mut widest: f64 = 0.0;
    for tick in colorbar_ticks(axes, long) {
        let at = scale.position(tick.at);
        widest = widest.max(pen.text_width(&tick.label, SMALL_FONT_SIZE));
        if bar.below {
            pen.draw_path(&[(at, area.bottom), (at, area.bottom + 3.0)], line(look.muted, 0.8));
            let place = (at, area.bottom + 3.0 + LABEL_GAP);
            pen.draw_text(&tick.label, place, SMALL_FONT_SIZE, look.muted, (HPos::Center, VPos::Top), false);
        } else {
            let short = if tick.label.is_empty() { 2.0 } else { 3.0 };
            pen.draw_path(&[(area.right, at), (area.right + short, at)], line(look.muted, 0.8));
            let place = (area.right + 3.0 + LABEL_GAP, at);
            pen.draw_text(&tick.label, place, SMALL_FONT_SIZE, look.muted, (HPos::Left, VPos::Center), false);
        }
    }
    let centre = (HPos::Center, VPos::Top);
    if bar.below {
        let at = ((area.left + area.right) / 2.0, area.bottom + 20.0);
        pen.draw_text(&bar.label, at, LABEL_FONT_SIZE, look.ink, centre, false);
    } else {
        let at = (area.right + 3.0 + LABEL_GAP + widest + LABEL_GAP, (area.top + area.bottom) / 2.0);
        pen.draw_text(&bar.label, at, LABEL_FONT_SIZE, look.ink, centre, true);
    }
}
