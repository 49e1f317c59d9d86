//! Draws a display list on a backend as an image, with new ticks where axes are panned or zoomed.

use crate::FigureDrawError;
use crate::colour::Rgb;
use crate::display_list::{DisplayColor, OperationShape, TickPart};
use crate::display_prepared::{PreparedDisplay, axes_scales};
use crate::display_raster::{GLYPH_UNITS, rasterize_display};
use crate::figure::AxisSpec;
use crate::painter::{PlotBackend, PlotPainter, PlotRect, PlotStroke};
use crate::prepared::PreparedFigure;
use crate::scale::{AxisScale, TickLayout, layout_ticks};
use crate::view::{PlacedAxes, PlotView};
use plotters::style::text_anchor::{HPos, VPos};

/// Gap between a tick and its label, in points.
const TICK_GAP: f64 = 3.0;

/// Draws a display list on a backend as an image at its resolution. Returns the positions of the axes.
pub(crate) fn draw_display<B: PlotBackend>(
    ready: &PreparedFigure,
    display: &PreparedDisplay,
    view: &PlotView,
    backend: &mut B,
    steps: f64,
) -> Result<Vec<PlacedAxes>, FigureDrawError> {
    let size = [ready.figure.width, ready.figure.height];
    let wanted = backend.pixels_per_point().unwrap_or(steps);
    let scale = wanted.min(f64::from(backend.max_picture_side()) / size[0].max(size[1]));
    let pixmap = rasterize_display(display, size, &view.limits, scale, None)?;
    let (columns, rows) = (pixmap.width() as usize, pixmap.height() as usize);
    let pixels = pixmap.take_demultiplied();
    let mut pen = PlotPainter::new(backend, steps);
    pen.draw_pixels((0.0, 0.0), (columns as f64 / scale, rows as f64 / scale), columns, rows, &pixels);
    let mut places = Vec::new();
    for (number, axes) in display.list.axes.iter().enumerate() {
        let Some(mut scales) = axes_scales(axes) else { continue };
        for side in [0, 1] {
            if let Some([low, high]) = view.limits_of(number)[side] {
                (scales[side].low, scales[side].high) = (low, high);
                draw_ticks(display, number, side, scales, &mut pen);
            }
        }
        let [left, top, right, bottom] = axes.frame;
        let frame = PlotRect { left, top, right, bottom };
        places.push(PlacedAxes { axes: number, frame, scales, entries: Vec::new() });
    }
    pen.finish()?;
    Ok(places)
}

/// Style of an axis' ticks, taken from the display list.
struct TickStyle {
    /// Position of the ticks along the other axis.
    edge: f64,
    /// Length of a tick, positive to the right or down.
    reach: f64,
    colour: Rgb,
    width: f64,
    /// Font size in points and color of the tick labels; `None` if the axis has none.
    words: Option<(f64, Rgb)>,
    grid: Option<(Rgb, f64)>,
}

fn opaque(DisplayColor([red, green, blue, _]): DisplayColor) -> Rgb {
    (red, green, blue)
}

impl TickStyle {
    fn of(display: &PreparedDisplay, number: usize, side: usize) -> Option<TickStyle> {
        let part = if side == 0 { TickPart::Across } else { TickPart::Up };
        let own = display.list.ops.iter().filter(|op| op.axes == Some(number) && op.part == Some(part));
        let (mut found, mut words, mut grid): (Option<TickStyle>, _, _) = (None, None, None);
        for operation in own {
            match &operation.shape {
                OperationShape::Markers { path, at, style } => {
                    let (Some([x, y]), Some(end)) = (at.points().first(), path.v.points().last()) else { continue };
                    let (edge, reach) = if side == 0 { (y, end[1]) } else { (x, end[0]) };
                    let colour = opaque(style.edge.unwrap_or_default());
                    found.get_or_insert(TickStyle {
                        edge: f64::from(*edge),
                        reach: f64::from(reach),
                        colour,
                        width: f64::from(style.width),
                        words: None,
                        grid: None,
                    });
                }
                OperationShape::Text { size, color, .. } => {
                    words.get_or_insert((f64::from(size * GLYPH_UNITS), opaque(*color)));
                }
                OperationShape::Path { style, .. } => {
                    grid.get_or_insert((opaque(style.edge.unwrap_or_default()), f64::from(style.width)));
                }
                _ => {}
            }
        }
        found.map(|style| TickStyle { words, grid, ..style })
    }
}

/// Draws ticks for the visible limits, in the style of the list's own ticks.
fn draw_ticks<B: PlotBackend>(
    display: &PreparedDisplay,
    number: usize,
    side: usize,
    scales: [AxisScale; 2],
    pen: &mut PlotPainter<'_, B>,
) {
    let (Some(axes), Some(style)) = (display.list.axes.get(number), TickStyle::of(display, number, side)) else {
        return;
    };
    let scale = scales[side];
    let spec = AxisSpec { scale: axes.sides[side].scale.clone(), dates: axes.sides[side].dates, ..AxisSpec::default() };
    let wanted = (scale.to - scale.from).abs() / if side == 0 { 80.0 } else { 40.0 };
    let TickLayout { ticks, multiplier } = layout_ticks(&spec, scale.low, scale.high, wanted);
    let [left, top, right, bottom] = axes.frame;
    let (near, far) = if side == 0 { (top, bottom) } else { (left, right) };
    let first = (style.edge - near).abs() < (style.edge - far).abs();
    let out = if first { -1.0 } else { 1.0 };
    for tick in ticks {
        let at = scale.position(tick.at);
        let place = |along: f64| if side == 0 { (at, along) } else { (along, at) };
        if let Some((colour, width)) = style.grid {
            let stroke = PlotStroke { colour, alpha: 0.5, width, dash: "-" };
            pen.draw_path(&[place(near), place(far)], stroke);
        }
        let stroke = PlotStroke { colour: style.colour, alpha: 1.0, width: style.width, dash: "-" };
        pen.draw_path(&[place(style.edge), place(style.edge + style.reach)], stroke);
        let Some((size, colour)) = style.words else { continue };
        let beside = style.edge + out * (style.reach.abs() + TICK_GAP);
        let anchor = match (side, first) {
            (0, true) => (HPos::Center, VPos::Bottom),
            (0, false) => (HPos::Center, VPos::Top),
            (_, true) => (HPos::Right, VPos::Center),
            (_, false) => (HPos::Left, VPos::Center),
        };
        pen.draw_text(&tick.label, place(beside), size, colour, anchor, false);
    }
    if let (Some((size, colour)), false) = (style.words, multiplier.is_empty()) {
        let (at, anchor) = match side {
            0 => ((right, bottom + 2.4 * size), (HPos::Right, VPos::Top)),
            _ => ((left, top - TICK_GAP), (HPos::Left, VPos::Bottom)),
        };
        pen.draw_text(&multiplier, at, size, colour, anchor, false);
    }
}
