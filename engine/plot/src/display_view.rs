//! How a display list is looked at: the part of its axes that is seen, new ticks there, and what is near a place.

use crate::FigureDrawError;
use crate::colour::Rgb;
use crate::display_list::{
    DisplayAxes, DisplayColor, DisplayList, DisplayOperation, MAX_IMAGE_PIXELS, OperationShape, OutlinePath, TickPart,
};
use crate::display_raster::{DisplayRaster, GLYPH_UNITS, build_path, moves_with_axes};
use crate::figure::AxisSpec;
use crate::painter::{PlotBackend, PlotPainter, PlotRect, PlotStroke};
use crate::prepared::PreparedFigure;
use crate::scale::{AxisScale, TickLayout, layout_ticks};
use crate::view::{NearestPoint, PlacedAxes, PlotView, format_coordinate};
use plotters::style::text_anchor::{HPos, VPos};
use tiny_skia::{IntSize, Pixmap};

/// Points of one operation that are looked at for the nearest one.
const MAX_HOVERED_POINTS: usize = 400_000;
/// A point of a line that is hidden from the list's own ticks.
const TICK_GAP: f64 = 3.0;

/// A display list, ready to be drawn often.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreparedDisplay {
    pub(crate) list: DisplayList,
    /// Of each operation: its picture, if it has one that can be read.
    pub(crate) images: Vec<Option<Pixmap>>,
}

/// How what belongs to axes is moved and stretched: `x' = x * stretch + by`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AxesShift {
    stretch: [f32; 2],
    by: [f32; 2],
}

impl AxesShift {
    /// Where a place of the canvas moves to.
    pub(crate) fn apply(&self, x: f32, y: f32) -> (f32, f32) {
        (x * self.stretch[0] + self.by[0], y * self.stretch[1] + self.by[1])
    }
}

/// The pixels of a PNG, if there are no more than `most`.
fn decode_png(bytes: &[u8], most: usize) -> Option<Pixmap> {
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: 256 << 20 });
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let (width, height) = {
        let head = decoder.read_header_info().ok()?;
        (head.width, head.height)
    };
    let size = IntSize::from_wh(width, height)?;
    if width as usize * height as usize > most {
        return None;
    }
    let mut reader = decoder.read_info().ok()?;
    let mut raw = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut raw).ok()?;
    let pixels = raw.get(..frame.buffer_size())?;
    let over = |part: u8, alpha: u8| u8::try_from((u16::from(part) * u16::from(alpha) + 127) / 255).unwrap_or(u8::MAX);
    let rgba =
        |red: u8, green: u8, blue: u8, alpha: u8| [over(red, alpha), over(green, alpha), over(blue, alpha), alpha];
    let data: Vec<u8> = match frame.color_type {
        png::ColorType::Rgba => pixels
            .as_chunks::<4>()
            .0
            .iter()
            .flat_map(|[red, green, blue, alpha]| rgba(*red, *green, *blue, *alpha))
            .collect(),
        png::ColorType::Rgb => {
            pixels.as_chunks::<3>().0.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
        }
        png::ColorType::Grayscale => pixels.iter().flat_map(|gray| [*gray, *gray, *gray, 255]).collect(),
        png::ColorType::GrayscaleAlpha => {
            pixels.as_chunks::<2>().0.iter().flat_map(|[gray, alpha]| rgba(*gray, *gray, *gray, *alpha)).collect()
        }
        png::ColorType::Indexed => return None,
    };
    Pixmap::from_vec(data, size)
}

impl PreparedDisplay {
    /// Reads the pictures of a list.
    pub(crate) fn new(list: DisplayList) -> PreparedDisplay {
        let mut left = MAX_IMAGE_PIXELS;
        let images = list.ops.iter().map(|operation| match &operation.shape {
            OperationShape::Image { png, .. } => {
                let image = decode_png(&png.0, left)?;
                left -= image.pixels().len().min(left);
                Some(image)
            }
            _ => None,
        });
        let images = images.collect();
        PreparedDisplay { list, images }
    }

    /// How each pair of axes is moved by a view; nothing for what stays.
    fn shifts(&self, view: &PlotView) -> Vec<Option<AxesShift>> {
        let shift = |(number, axes): (usize, &DisplayAxes)| {
            let asked = view.limits_of(number);
            let scales = axes_scales(axes)?;
            if asked == [None, None] {
                return None;
            }
            let mut found = AxesShift { stretch: [1.0, 1.0], by: [0.0, 0.0] };
            for side in [0, 1] {
                let Some([low, high]) = asked[side] else { continue };
                let (old, new) = (scales[side], AxisScale { low, high, ..scales[side] });
                // Of two places what the new scale makes; between them it is straight, also where it is logarithmic.
                let [a, b] = [old.from, old.to].map(|at| new.position(old.number(at)));
                let stretch = (b - a) / (old.to - old.from);
                #[allow(clippy::cast_possible_truncation, reason = "pixels")]
                let [stretch, by] = [stretch, a - old.from * stretch].map(|part| part as f32);
                if !(stretch.is_finite() && by.is_finite()) {
                    return None;
                }
                (found.stretch[side], found.by[side]) = (stretch, by);
            }
            Some(found)
        };
        self.list.axes.iter().enumerate().map(shift).collect()
    }
}

/// The scales of axes whose numbers are known.
fn axes_scales(axes: &DisplayAxes) -> Option<[AxisScale; 2]> {
    let [left, top, right, bottom] = axes.frame;
    let sound = axes.frame.iter().all(|edge| edge.is_finite()) && right > left && bottom > top;
    if !sound || !axes.sides.iter().all(crate::display_list::DisplaySide::is_known) {
        return None;
    }
    let scale = |side: usize, from: f64, to: f64| {
        let [low, high] = axes.sides[side].limits;
        AxisScale { low, high, log: axes.sides[side].scale == "log", from, to }
    };
    Some([scale(0, left, right), scale(1, bottom, top)])
}

/// Draws a prepared list as pixels, so many to a point.
pub(crate) fn rasterize_display(
    display: &PreparedDisplay,
    size: [f64; 2],
    view: &PlotView,
    scale: f64,
    chosen: Option<usize>,
) -> Result<Pixmap, FigureDrawError> {
    let shifts = display.shifts(view);
    let mut raster = DisplayRaster::new(display, size, scale, &shifts)?;
    if let Some(only) = chosen {
        raster.draw_operation(only)?;
        return Ok(raster.finish());
    }
    for (number, operation) in display.list.ops.iter().enumerate() {
        if !is_replaced(operation, view) {
            raster.draw_operation(number)?;
        }
    }
    Ok(raster.finish())
}

/// Whether an operation is a tick of a side that shows other numbers now.
fn is_replaced(operation: &DisplayOperation, view: &PlotView) -> bool {
    let (Some(axes), Some(part)) = (operation.axes, operation.part) else { return false };
    view.limits_of(axes)[if part == TickPart::Across { 0 } else { 1 }].is_some()
}

/// Draws a list on a backend, as a picture of the pixels that this shows. Gives where its axes stand.
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
    let pixmap = rasterize_display(display, size, view, scale, None)?;
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

/// What the list's own ticks of a side look like.
struct TickStyle {
    /// Where they stand, along the other side.
    edge: f64,
    /// From there to their end: to the right or down.
    reach: f64,
    colour: Rgb,
    width: f64,
    /// The size of their words in points, and which colour these have; none where they say nothing.
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

/// Ticks for what is seen now, in the style of those that the list has.
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

/// The points of an operation that stand for numbers.
fn data_points(shape: &OperationShape) -> Option<(&[[f32; 2]], bool)> {
    match shape {
        OperationShape::Path { path, style } if style.fill.is_none() && is_line(path) => Some((path.v.points(), true)),
        OperationShape::Markers { at, .. } | OperationShape::Collection { at, .. } => Some((at.points(), false)),
        _ => None,
    }
}

fn is_line(path: &OutlinePath) -> bool {
    use crate::display_list::PathStep;
    let steps = || path.steps();
    steps().all(|step| matches!(step, PathStep::Move(_) | PathStep::Line(_)))
        && build_path(path, |[x, y]| (x, y)).is_some()
}

/// What is drawn nearest to a place in axes, not farther than `reach` points away; where nothing is, the place itself.
pub(crate) fn nearest_in_display(
    display: &PreparedDisplay,
    place: &PlacedAxes,
    view: &PlotView,
    at: [f64; 2],
    reach: f64,
) -> Option<NearestPoint> {
    let axes = display.list.axes.get(place.axes)?;
    let [sx, sy] = place.scales;
    let spec = |side: usize| AxisSpec { dates: axes.sides[side].dates, ..AxisSpec::default() };
    let say = |name: &str, spot: [f64; 2]| {
        let x = format_coordinate(&spec(0), sx.number(spot[0]), sx);
        let y = format_coordinate(&spec(1), sy.number(spot[1]), sy);
        let head = if name.is_empty() { String::new() } else { format!("{name}\n") };
        format!("{head}x = {x}\ny = {y}")
    };
    let shift = display.shifts(view).get(place.axes).copied().flatten();
    let mut best: Option<(f64, [f64; 2], &str)> = None;
    for operation in display.list.ops.iter().filter(|op| moves_with_axes(display, op) == Some(place.axes)) {
        let Some((points, _)) = data_points(&operation.shape) else { continue };
        for [x, y] in points.iter().take(MAX_HOVERED_POINTS) {
            let (x, y) = shift.map_or((*x, *y), |shift| shift.apply(*x, *y));
            let spot = [f64::from(x), f64::from(y)];
            let far = (spot[0] - at[0]).hypot(spot[1] - at[1]);
            if far <= reach && place.contains(spot) && best.as_ref().is_none_or(|(known, ..)| far < *known) {
                let name = operation.series.and_then(|series| display.list.series.get(series));
                best = Some((far, spot, name.map_or("", String::as_str)));
            }
        }
    }
    let (spot, name) = best.map_or((at, ""), |(_, spot, name)| (spot, name));
    Some(NearestPoint { at: spot, description: say(name, spot) })
}
