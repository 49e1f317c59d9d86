//! Draws a display list as pixels at any scale.
//!
//! The rules are Agg's, so that a figure looks as matplotlib draws it: rectilinear paths are snapped to whole pixels,
//! clips end at whole pixels, and hatches repeat every inch.

use crate::FigureDrawError;
use crate::display_list::{
    DisplayClip, DisplayColor, DisplayOperation, HatchPattern, OperationShape, OutlinePath, PathStep, ShapeStyle,
    StrokeCap, StrokeJoin, TickPart,
};
use crate::display_prepared::{AxesShift, PreparedDisplay, SeenLimits, mesh_cell, moves_with_axes};
use crate::display_reach::{MAX_DISTANCE_PIXELS, within_reach};
use std::collections::HashMap;
use tiny_skia::{
    Color, FillRule, FilterQuality, LineCap, LineJoin, Mask, Paint, Path, PathBuilder, Pattern, Pixmap,
    PremultipliedColorU8, Rect, Shader, SpreadMode, Stroke, StrokeDash, Transform,
};

/// Maximum number of pixels filled, counted each time they're filled: a few seconds of work.
const MAX_FILLED_PIXELS: u64 = 1_000_000_000;
/// Maximum number of dashes in a line; one with more is drawn solid.
const MAX_DASHES: f32 = 50_000.0;
/// Maximum width of a line that counts as thin. A wider one is counted by the area of its bounds.
const MAX_THIN_WIDTH_PIXELS: f32 = 8.0;
/// Maximum number of cached clip masks; each is as large as the canvas.
const MAX_KEPT_MASKS: usize = 8;
/// Miter limit: a sharper corner, which would extend more half widths than this, is beveled.
pub(crate) const MITER_LIMIT: f32 = 10.0;
/// Units of glyph outlines per font size.
pub(crate) const GLYPH_UNITS: f32 = 100.0;

/// A position in pixels.
type PixelPoint = (f32, f32);

/// Number of subpixel positions along each side for which a marker's stamp is cached.
const STAMPS_PER_PIXEL: usize = 4;
/// With fewer markers than this, each is drawn individually.
const MIN_STAMPED_MARKERS: usize = 100;
/// Markers larger than this, in pixels, are drawn individually.
const MAX_STAMP_SIDE_PIXELS: f32 = 64.0;

/// A marker: its fill and outline, around the origin.
#[derive(Clone, Copy)]
struct MarkerShape<'s> {
    path: &'s Path,
    outline: Option<&'s Path>,
    fill: Option<DisplayColor>,
    edge: Option<DisplayColor>,
    is_smooth: bool,
}

/// Cached marker images, one for each subpixel position.
#[derive(Default)]
struct MarkerStamps(HashMap<(usize, usize), Option<Pixmap>>);

impl MarkerShape<'_> {
    /// Returns left, top, right and bottom in whole pixels, with a margin for antialiasing.
    fn bounds(&self) -> [f32; 4] {
        let path = self.outline.unwrap_or(self.path).bounds();
        let own = self.path.bounds();
        [
            path.left().min(own.left()).floor() - 1.0,
            path.top().min(own.top()).floor() - 1.0,
            path.right().max(own.right()).ceil() + 2.0,
            path.bottom().max(own.bottom()).ceil() + 2.0,
        ]
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small marker")]
    fn stamp(&self, by: PixelPoint) -> Option<Pixmap> {
        let [left, top, right, bottom] = self.bounds();
        let mut pixmap = Pixmap::new((right - left) as u32, (bottom - top) as u32)?;
        let turn = Transform::from_translate(by.0 - left, by.1 - top);
        for (path, color) in [(Some(self.path), self.fill), (self.outline, self.edge)] {
            if let (Some(path), Some(DisplayColor(color))) = (path, color) {
                let paint = SolidBrush { color, is_smooth: self.is_smooth }.paint();
                pixmap.fill_path(path, &paint, FillRule::Winding, turn, None);
            }
        }
        Some(pixmap)
    }
}

/// A solid color with or without antialiasing.
#[derive(Clone, Copy)]
struct SolidBrush {
    color: [u8; 4],
    is_smooth: bool,
}

impl SolidBrush {
    fn paint(self) -> Paint<'static> {
        let mut paint = Paint::default();
        let [red, green, blue, alpha] = self.color;
        paint.set_color_rgba8(red, green, blue, alpha);
        paint.anti_alias = self.is_smooth;
        paint
    }
}

/// The visible part of an operation.
#[derive(Clone, Copy, PartialEq)]
enum VisiblePart {
    Everything,
    Nothing,
    /// What a clip's mask lets through.
    Masked((usize, Option<usize>)),
}

/// A pixel buffer that a display list is drawn into.
pub(crate) struct DisplayRaster<'a> {
    display: &'a PreparedDisplay,
    scale: f32,
    /// The transform of each pair of axes.
    shifts: &'a [Option<AxesShift>],
    pixmap: Pixmap,
    masks: HashMap<(usize, Option<usize>), Mask>,
    filled_pixels: u64,
}

/// Builds a path from an outline, with each point mapped.
pub(crate) fn build_path(path: &OutlinePath, map: impl Fn([f32; 2]) -> PixelPoint) -> Option<Path> {
    let mut builder = PathBuilder::with_capacity(path.length() + 1, path.length() + 1);
    for step in path.steps() {
        match step {
            PathStep::Move(to) => {
                let (x, y) = map(to);
                builder.move_to(x, y);
            }
            PathStep::Line(to) => {
                let (x, y) = map(to);
                builder.line_to(x, y);
            }
            PathStep::Quad(by, to) => {
                let ((x1, y1), (x, y)) = (map(by), map(to));
                builder.quad_to(x1, y1, x, y);
            }
            PathStep::Cubic(first, second, to) => {
                let ((x1, y1), (x2, y2), (x, y)) = (map(first), map(second), map(to));
                builder.cubic_to(x1, y1, x2, y2, x, y);
            }
            PathStep::Close => builder.close(),
        }
    }
    builder.finish()
}

/// Snaps a position to whole pixels; for odd line widths, to the middle of a pixel.
fn snapped((x, y): PixelPoint, width: f32) -> PixelPoint {
    let half = if width.round().rem_euclid(2.0) == 1.0 { 0.5 } else { 0.0 };
    ((x + 0.5).floor() + half, (y + 0.5).floor() + half)
}

/// Returns the dash pattern, repeated if necessary to make its length even. `None` draws a solid line.
fn stroke_dash(dash: &[f32], scale: f32, path: &Path) -> Option<StrokeDash> {
    let [offset, pattern @ ..] = dash else { return None };
    let mut pattern: Vec<f32> = pattern.iter().map(|part| part * scale).collect();
    if pattern.len() % 2 == 1 {
        pattern.extend_from_within(..);
    }
    let period: f32 = pattern.iter().sum();
    // Curves are measured along their control polygon, which is never shorter than the curve.
    let length: f32 = path.points().windows(2).map(|pair| (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y)).sum();
    let sound = period > 0.0 && pattern.iter().all(|part| part.is_finite() && *part >= 0.0);
    let few = length / period * (pattern.len() as f32) < MAX_DASHES;
    (sound && few).then(|| StrokeDash::new(pattern, offset * scale))?
}

/// Returns the stroke for a line style at a scale; `None` without a positive width.
fn stroke_of(width: f32, dash: &[f32], join: StrokeJoin, cap: StrokeCap, scale: f32, path: &Path) -> Option<Stroke> {
    let width = (width * scale).min(MAX_DISTANCE_PIXELS);
    (width > 0.0 && width.is_finite()).then(|| Stroke {
        width,
        miter_limit: MITER_LIMIT,
        line_cap: match cap {
            StrokeCap::Butt => LineCap::Butt,
            StrokeCap::Round => LineCap::Round,
            StrokeCap::Projecting => LineCap::Square,
        },
        line_join: match join {
            StrokeJoin::Miter => LineJoin::Miter,
            StrokeJoin::Round => LineJoin::Round,
            StrokeJoin::Bevel => LineJoin::Bevel,
        },
        dash: stroke_dash(dash, scale, path),
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "pixels")]
impl<'a> DisplayRaster<'a> {
    /// Creates an empty buffer with `scale` pixels per point.
    pub(crate) fn new(
        display: &'a PreparedDisplay,
        size: [f64; 2],
        scale: f64,
        shifts: &'a [Option<AxesShift>],
    ) -> Result<DisplayRaster<'a>, FigureDrawError> {
        let [width, height] = size.map(|side| (side * scale).round().max(1.0) as usize);
        let too_large = FigureDrawError::PictureTooLarge { width, height };
        if width.saturating_mul(height) > 50_000_000 {
            return Err(too_large);
        }
        let pixmap = Pixmap::new(width as u32, height as u32).ok_or(too_large)?;
        let scale = scale as f32;
        Ok(DisplayRaster { display, scale, shifts, pixmap, masks: HashMap::new(), filled_pixels: 0 })
    }

    /// Returns the finished pixels with premultiplied alpha.
    pub(crate) fn finish(self) -> Pixmap {
        self.pixmap
    }

    /// Draws one operation.
    pub(crate) fn draw_operation(&mut self, number: usize) -> Result<(), FigureDrawError> {
        let display = self.display;
        let Some(operation) = display.list.ops.get(number) else { return Ok(()) };
        let shift = moves_with_axes(display, operation).and_then(|axes| *self.shifts.get(axes)?);
        let scale = self.scale;
        let to_pixels = move |[x, y]: [f32; 2]| match shift {
            Some(shift) => {
                let (x, y) = shift.apply(x, y);
                (x * scale, y * scale)
            }
            None => (x * scale, y * scale),
        };
        let smooth = operation.aa.unwrap_or(true);
        match &operation.shape {
            OperationShape::Path { path, style } => {
                let snap = operation.snap.unwrap_or_else(|| path.is_rectilinear());
                let width = if style.edge.is_some() { style.width * scale } else { 0.0 };
                let map = |at| if snap { snapped(to_pixels(at), width) } else { to_pixels(at) };
                if let Some(path) = build_path(path, map) {
                    self.draw_styled(operation, &path, style, smooth)?;
                }
            }
            OperationShape::Markers { path, at, style } => {
                // Tick marks are snapped to whole pixels; round markers keep their position.
                let snap = operation.snap.unwrap_or(true) && path.is_rectilinear();
                let width = if style.edge.is_some() { style.width * scale } else { 0.0 };
                let map = |[x, y]: [f32; 2]| {
                    if snap { snapped((x * scale, y * scale), width) } else { (x * scale, y * scale) }
                };
                let Some(path) = build_path(path, map) else { return Ok(()) };
                let outline = style.edge.and_then(|_| {
                    let stroke = stroke_of(style.width, &style.dash, style.join, style.cap, scale, &path)?;
                    stroked(&path, &stroke)
                });
                let (at_count, mut stamps) = (at.points().len(), MarkerStamps::default());
                for at in at.points() {
                    let (mut x, mut y) = to_pixels(*at);
                    if snap {
                        (x, y) = ((x + 0.5).floor(), (y + 0.5).floor());
                    }
                    let shape = MarkerShape {
                        path: &path,
                        outline: outline.as_ref(),
                        fill: style.fill,
                        edge: style.edge,
                        is_smooth: smooth,
                    };
                    let known = (at_count >= MIN_STAMPED_MARKERS).then_some(&mut stamps);
                    self.draw_marker(operation, shape, (x, y), known)?;
                }
            }
            OperationShape::Collection { .. } => self.draw_collection(operation, to_pixels, smooth)?,
            OperationShape::Mesh { columns, v, fills, edges, width } => {
                let smooth = operation.aa.unwrap_or(false);
                for (cell, color) in fills.0.iter().enumerate() {
                    let Some(corners) = mesh_cell(v.points(), *columns, cell) else { continue };
                    let Some(path) = polygon(corners.map(to_pixels)) else { continue };
                    self.fill(operation, &path, DisplayColor(*color), smooth, Transform::identity())?;
                    if let Some(color) = edges.cycled(cell) {
                        self.stroke(operation, &path, (*width, color, &[]), smooth)?;
                    }
                }
            }
            OperationShape::Gouraud { v, fills } => self.draw_gouraud(operation, v.points(), &fills.0, to_pixels)?,
            OperationShape::Image { xs, ys, grid, .. } => {
                let xs: Vec<f32> = xs.0.iter().map(|x| to_pixels([*x, 0.0]).0).collect();
                let ys: Vec<f32> = ys.0.iter().map(|y| to_pixels([0.0, *y]).1).collect();
                if let Some(image) = display.images.get(number).and_then(Option::as_ref) {
                    self.draw_image(operation, image, [&xs, &ys], *grid)?;
                }
            }
            OperationShape::Text { at, size, color, glyphs, boxes, angle, .. } => {
                let turn = text_transform(to_pixels(*at), size * scale, *angle);
                let mut builder = PathBuilder::new();
                for [glyph, x, y, size] in glyphs.0.as_chunks::<4>().0 {
                    let Some(outline) = display.list.glyph(*glyph) else { continue };
                    if let Some(path) = build_path(outline, |at| (x + at[0] * size, y + at[1] * size)) {
                        builder.push_path(&path);
                    }
                }
                for [left, bottom, width, height] in boxes.0.as_chunks::<4>().0 {
                    if let Some(rect) = Rect::from_xywh(*left, *bottom, *width, *height) {
                        builder.push_rect(rect);
                    }
                }
                if let Some(path) = builder.finish().and_then(|path| path.transform(turn)) {
                    self.fill(operation, &path, *color, true, Transform::identity())?;
                }
            }
            OperationShape::Unknown => {}
        }
        Ok(())
    }

    /// Draws a path's fill, hatch and outline.
    fn draw_styled(
        &mut self,
        operation: &DisplayOperation,
        path: &Path,
        style: &ShapeStyle,
        smooth: bool,
    ) -> Result<(), FigureDrawError> {
        if let Some(color) = style.fill {
            self.fill(operation, path, color, smooth, Transform::identity())?;
        }
        if let Some(hatch) = style.hatch.and_then(|hatch| self.display.list.hatches.get(hatch)) {
            self.fill_hatch(operation, path, hatch)?;
        }
        if let Some(color) = style.edge
            && let Some(stroke) = stroke_of(style.width, &style.dash, style.join, style.cap, self.scale, path)
        {
            self.stroke_with(operation, path, color, &stroke, smooth)?;
        }
        Ok(())
    }

    fn draw_collection(
        &mut self,
        operation: &DisplayOperation,
        to_pixels: impl Fn([f32; 2]) -> PixelPoint,
        smooth: bool,
    ) -> Result<(), FigureDrawError> {
        let OperationShape::Collection {
            path, at, count, turns, sizes, fills, edges, widths, dashes, join, cap, ..
        } = &operation.shape
        else {
            return Ok(());
        };
        let (places, turns, scale) = (at.points(), turns.0.as_chunks::<6>().0, self.scale);
        let Some(outline) = build_path(path, |[x, y]| (x, y)) else { return Ok(()) };
        if places.is_empty() || turns.is_empty() {
            return Ok(());
        }
        // The path of the last item is cached by its transform and width, because most items share them.
        type ShapedItem = ([f32; 6], f32, Path, Option<Path>);
        let mut made: Option<ShapedItem> = None;
        let alike = |count: usize| count < 2;
        let is_uniform = *count >= MIN_STAMPED_MARKERS
            && [turns.len(), sizes.0.len(), fills.0.len(), edges.0.len(), widths.0.len(), dashes.len()]
                .into_iter()
                .all(alike);
        let mut stamps = MarkerStamps::default();
        for item in 0..*count {
            let (x, y) = to_pixels(places[item % places.len()]);
            if !(x.is_finite() && y.is_finite()) {
                continue;
            }
            let size = if sizes.0.is_empty() { 1.0 } else { sizes.0[item % sizes.0.len()] };
            let turn = turns[item % turns.len()].map(|part| part * scale * size);
            let (fill, edge) = (fills.cycled(item), edges.cycled(item));
            let width = if widths.0.is_empty() { 0.0 } else { widths.0[item % widths.0.len()] };
            let dash = if dashes.is_empty() { &[][..] } else { &dashes[item % dashes.len()][..] };
            let same = made.as_ref().is_some_and(|(known, wide, ..)| *known == turn && *wide == width);
            if !same || dashes.len() > 1 {
                let [a, b, c, d, e, f] = turn;
                let shaped = outline.clone().transform(Transform::from_row(a, b, c, d, e, f));
                made = shaped.map(|path| {
                    let stroke = stroke_of(width, dash, *join, *cap, scale, &path);
                    let edge = stroke.and_then(|stroke| stroked(&path, &stroke));
                    (turn, width, path, edge)
                });
            }
            let Some((.., path, outline)) = &made else { continue };
            let shape = MarkerShape { path, outline: outline.as_ref(), fill, edge, is_smooth: smooth };
            self.draw_marker(operation, shape, (x, y), is_uniform.then_some(&mut stamps))?;
        }
        Ok(())
    }

    /// Draws a marker as a path, or from the cached image of an earlier one.
    fn draw_marker(
        &mut self,
        operation: &DisplayOperation,
        shape: MarkerShape<'_>,
        (x, y): PixelPoint,
        stamps: Option<&mut MarkerStamps>,
    ) -> Result<(), FigureDrawError> {
        let [left, top, right, bottom] = shape.bounds();
        let small = (right - left).max(bottom - top) <= MAX_STAMP_SIDE_PIXELS;
        let near = x.abs().max(y.abs()) < 1e6;
        let Some(MarkerStamps(stamps)) = stamps.filter(|_| small && near) else {
            let turn = Transform::from_translate(x, y);
            if let Some(color) = shape.fill {
                self.fill(operation, shape.path, color, shape.is_smooth, turn)?;
            }
            if let (Some(color), Some(outline)) = (shape.edge, shape.outline) {
                self.fill(operation, outline, color, shape.is_smooth, turn)?;
            }
            return Ok(());
        };
        let part = self.visible_part(operation, [x + left, y + top, x + right, y + bottom], false)?;
        if part == VisiblePart::Nothing {
            return Ok(());
        }
        let steps = STAMPS_PER_PIXEL as f32;
        let [(column, across), (row, down)] = [x, y].map(|at| {
            let at = (at * steps).round();
            ((at / steps).floor(), at.rem_euclid(steps))
        });
        let stamp = stamps
            .entry((across as usize, down as usize))
            .or_insert_with(|| shape.stamp((across / steps, down / steps)));
        let Some(stamp) = stamp else { return Ok(()) };
        let (first, top) = ((column + left) as i64, (row + top) as i64);
        for (line, row) in stamp.pixels().chunks_exact(stamp.width() as usize).zip(top..) {
            for (color, column) in line.iter().zip(first..) {
                if color.alpha() > 0
                    && let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row))
                    && column < self.pixmap.width()
                    && row < self.pixmap.height()
                {
                    self.blend(column, row, *color, part);
                }
            }
        }
        Ok(())
    }

    /// Counts filled pixels, and returns an error if drawing would take too long.
    fn count_work(&mut self, pixels: u64) -> Result<(), FigureDrawError> {
        self.filled_pixels = self.filled_pixels.saturating_add(pixels);
        if self.filled_pixels > MAX_FILLED_PIXELS { Err(FigureDrawError::TooMuchToDraw) } else { Ok(()) }
    }

    fn canvas(&self) -> [f32; 4] {
        [0.0, 0.0, self.pixmap.width() as f32, self.pixmap.height() as f32]
    }

    /// Returns the visible part of an operation within bounds (left, top, right, bottom), and counts its work.
    fn visible_part(
        &mut self,
        operation: &DisplayOperation,
        bounds: [f32; 4],
        is_thin: bool,
    ) -> Result<VisiblePart, FigureDrawError> {
        let outside = |[left, top, right, bottom]: [f32; 4]| {
            bounds[2] < left - 1.0 || bounds[0] > right + 1.0 || bounds[3] < top - 1.0 || bounds[1] > bottom + 1.0
        };
        let canvas = self.canvas();
        if outside(canvas) {
            return Ok(VisiblePart::Nothing);
        }
        let side = |low: f32, high: f32, most: f32| u64::from((high.min(most) - low.max(0.0)).max(0.0) as u32) + 4;
        let (wide, high) = (side(bounds[0], bounds[2], canvas[2]), side(bounds[1], bounds[3], canvas[3]));
        // A thin line fills few pixels of its bounds.
        self.count_work(64 + if is_thin { (wide + high) * 8 } else { wide * high })?;
        let Some(number) = operation.clip else { return Ok(VisiblePart::Everything) };
        let Some(clip) = self.display.list.clips.get(number) else { return Ok(VisiblePart::Everything) };
        let no_path = clip.path.v.0.is_empty();
        if let Some(rect) = clip.rect {
            let rect = self.whole_pixels(rect);
            if outside(rect) {
                return Ok(VisiblePart::Nothing);
            }
            let inside = (0..2).all(|at| bounds[at] >= rect[at] && bounds[at + 2] <= rect[at + 2]);
            if no_path && inside {
                return Ok(VisiblePart::Everything);
            }
        } else if no_path {
            return Ok(VisiblePart::Everything);
        }
        let axes = if no_path { None } else { moves_with_axes(self.display, operation) };
        let axes = axes.filter(|axes| self.shifts.get(*axes).is_some_and(Option::is_some));
        let key = (number, axes);
        if !self.masks.contains_key(&key) {
            self.count_work(u64::from(self.pixmap.width()) * u64::from(self.pixmap.height()) / 4)?;
            let Some(mask) = self.clip_mask(clip, axes) else { return Ok(VisiblePart::Nothing) };
            if self.masks.len() >= MAX_KEPT_MASKS {
                self.masks.clear();
            }
            self.masks.insert(key, mask);
        }
        Ok(VisiblePart::Masked(key))
    }

    fn whole_pixels(&self, rect: [f32; 4]) -> [f32; 4] {
        let canvas = self.canvas();
        [0, 1, 2, 3].map(|at| (rect[at] * self.scale + 0.5).floor().clamp(0.0, canvas[at % 2 + 2]))
    }

    fn clip_mask(&self, clip: &DisplayClip, axes: Option<usize>) -> Option<Mask> {
        let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height())?;
        let whole = self.canvas();
        let [left, top, right, bottom] = clip.rect.map_or(whole, |rect| self.whole_pixels(rect));
        let rect = PathBuilder::from_rect(Rect::from_ltrb(left, top, right, bottom)?);
        mask.fill_path(&rect, FillRule::Winding, false, Transform::identity());
        if !clip.path.v.0.is_empty() {
            let shift = axes.and_then(|axes| *self.shifts.get(axes)?);
            let path = build_path(&clip.path, |[x, y]| {
                let (x, y) = shift.map_or((x, y), |shift| shift.apply(x, y));
                (x * self.scale, y * self.scale)
            })?;
            mask.intersect_path(
                within_reach(&path, Transform::identity())?.as_ref(),
                FillRule::Winding,
                true,
                Transform::identity(),
            );
        }
        Some(mask)
    }

    fn fill(
        &mut self,
        operation: &DisplayOperation,
        path: &Path,
        DisplayColor(color): DisplayColor,
        is_smooth: bool,
        turn: Transform,
    ) -> Result<(), FigureDrawError> {
        let bounds = path.bounds();
        let bounds =
            [bounds.left() + turn.tx, bounds.top() + turn.ty, bounds.right() + turn.tx, bounds.bottom() + turn.ty];
        let mask = match self.visible_part(operation, bounds, false)? {
            VisiblePart::Nothing => return Ok(()),
            VisiblePart::Everything => None,
            VisiblePart::Masked(key) => self.masks.get(&key),
        };
        let Some(path) = within_reach(path, turn) else { return Ok(()) };
        let paint = SolidBrush { color, is_smooth }.paint();
        self.pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), mask);
        Ok(())
    }

    fn stroke(
        &mut self,
        operation: &DisplayOperation,
        path: &Path,
        (width, color, dash): (f32, DisplayColor, &[f32]),
        smooth: bool,
    ) -> Result<(), FigureDrawError> {
        match stroke_of(width, dash, StrokeJoin::Round, StrokeCap::Butt, self.scale, path) {
            Some(stroke) => self.stroke_with(operation, path, color, &stroke, smooth),
            None => Ok(()),
        }
    }

    fn stroke_with(
        &mut self,
        operation: &DisplayOperation,
        path: &Path,
        DisplayColor(color): DisplayColor,
        stroke: &Stroke,
        is_smooth: bool,
    ) -> Result<(), FigureDrawError> {
        let (bounds, reach) = (path.bounds(), stroke.width * MITER_LIMIT);
        let bounds = [bounds.left() - reach, bounds.top() - reach, bounds.right() + reach, bounds.bottom() + reach];
        self.count_work(path.len() as u64 * 8)?;
        let mask = match self.visible_part(operation, bounds, stroke.width <= MAX_THIN_WIDTH_PIXELS)? {
            VisiblePart::Nothing => return Ok(()),
            VisiblePart::Everything => None,
            VisiblePart::Masked(key) => self.masks.get(&key),
        };
        let Some(path) = within_reach(path, Transform::identity()) else { return Ok(()) };
        let paint = SolidBrush { color, is_smooth }.paint();
        self.pixmap.stroke_path(&path, &paint, stroke, Transform::identity(), mask);
        Ok(())
    }

    fn fill_hatch(
        &mut self,
        operation: &DisplayOperation,
        path: &Path,
        hatch: &HatchPattern,
    ) -> Result<(), FigureDrawError> {
        let bounds = path.bounds();
        let part =
            self.visible_part(operation, [bounds.left(), bounds.top(), bounds.right(), bounds.bottom()], false)?;
        // One inch in pixels.
        let inch = self.display.list.dpi as f32 * self.scale;
        let tile = inch.round().clamp(4.0, 1_024.0);
        let Some(mut pixels) = Pixmap::new(tile as u32, tile as u32) else { return Ok(()) };
        let Some(lines) = build_path(&hatch.path, |[x, y]| (x * tile, (1.0 - y) * tile)) else { return Ok(()) };
        let paint = SolidBrush { color: hatch.color.0, is_smooth: true }.paint();
        let Some(lines) = within_reach(&lines, Transform::identity()) else { return Ok(()) };
        pixels.fill_path(&lines, &paint, FillRule::Winding, Transform::identity(), None);
        let stroke =
            stroke_of(hatch.width, &[], StrokeJoin::Miter, StrokeCap::Projecting, self.scale * tile / inch, &lines);
        if let Some(stroke) = stroke {
            pixels.stroke_path(&lines, &paint, &stroke, Transform::identity(), None);
        }
        self.count_work(pixels.data().len() as u64 / 4)?;
        let size = Transform::from_scale(inch / tile, inch / tile);
        let shader = Pattern::new(pixels.as_ref(), SpreadMode::Repeat, FilterQuality::Nearest, 1.0, size);
        self.fill_shader(path, shader, part);
        Ok(())
    }

    fn fill_shader(&mut self, path: &Path, shader: Shader<'_>, part: VisiblePart) {
        let mask = match part {
            VisiblePart::Nothing => return,
            VisiblePart::Everything => None,
            VisiblePart::Masked(key) => self.masks.get(&key),
        };
        let Some(path) = within_reach(path, Transform::identity()) else { return };
        let paint = Paint { shader, ..Paint::default() };
        self.pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), mask);
    }

    /// Blends a color over a pixel.
    fn blend(&mut self, column: u32, row: u32, color: PremultipliedColorU8, part: VisiblePart) {
        let at = row as usize * self.pixmap.width() as usize + column as usize;
        let shown = match part {
            VisiblePart::Masked(key) => self.masks.get(&key).and_then(|mask| mask.data().get(at).copied()).unwrap_or(0),
            _ => 255,
        };
        let Some(pixel) = self.pixmap.pixels_mut().get_mut(at) else { return };
        let over = |new: u8, old: u8, alpha: u8| {
            let new = u32::from(new) * u32::from(shown) / 255;
            let alpha = u32::from(alpha) * u32::from(shown) / 255;
            (new + u32::from(old) * (255 - alpha) / 255).min(255) as u8
        };
        let alpha = color.alpha();
        let mixed = [
            over(color.red(), pixel.red(), alpha),
            over(color.green(), pixel.green(), alpha),
            over(color.blue(), pixel.blue(), alpha),
            over(alpha, pixel.alpha(), alpha),
        ];
        let most = mixed[3];
        let mixed = mixed.map(|channel| channel.min(most));
        if let Some(mixed) = PremultipliedColorU8::from_rgba(mixed[0], mixed[1], mixed[2], mixed[3]) {
            *pixel = mixed;
        }
    }

    fn draw_image(
        &mut self,
        operation: &DisplayOperation,
        image: &Pixmap,
        [xs, ys]: [&[f32]; 2],
        grid: bool,
    ) -> Result<(), FigureDrawError> {
        let ([left, .., right], [top, .., bottom]) = (xs, ys) else { return Ok(()) };
        let [left, top, right, bottom] = [*left, *top, *right, *bottom];
        if ![left, top, right, bottom].iter().all(|edge| edge.is_finite()) {
            return Ok(());
        }
        let part = self.visible_part(operation, [left, top, right, bottom], false)?;
        if part == VisiblePart::Nothing {
            return Ok(());
        }
        if !grid {
            let [left, top, right, bottom] = [left, top, right, bottom].map(|edge| (edge + 0.5).floor());
            let (wide, high) = ((right - left).max(1.0), (bottom - top).max(1.0));
            let turn =
                Transform::from_row(wide / image.width() as f32, 0.0, 0.0, high / image.height() as f32, left, top);
            let same = wide == image.width() as f32 && high == image.height() as f32;
            let quality = if same { FilterQuality::Nearest } else { FilterQuality::Bilinear };
            let shader = Pattern::new(image.as_ref(), SpreadMode::Pad, quality, 1.0, turn);
            if let Some(rect) = Rect::from_xywh(left, top, wide, high) {
                self.fill_shader(&PathBuilder::from_rect(rect), shader, part);
            }
            return Ok(());
        }
        let columns = cells_of_pixels(xs, image.width(), self.pixmap.width());
        let rows = cells_of_pixels(ys, image.height(), self.pixmap.height());
        self.count_work(columns.len() as u64 * rows.len() as u64 * 4)?;
        for (y, row) in rows {
            for (x, column) in &columns {
                if let Some(color) = image.pixel(*column, row).filter(|color| color.alpha() > 0) {
                    self.blend(*x, y, color, part);
                }
            }
        }
        Ok(())
    }

    fn draw_gouraud(
        &mut self,
        operation: &DisplayOperation,
        corners: &[[f32; 2]],
        colors: &[[u8; 4]],
        to_pixels: impl Fn([f32; 2]) -> PixelPoint,
    ) -> Result<(), FigureDrawError> {
        let [.., wide, high] = self.canvas();
        for (triangle, colors) in corners.as_chunks::<3>().0.iter().zip(colors.as_chunks::<3>().0) {
            let [a, b, c] = triangle.map(&to_pixels);
            let (left, right) = (a.0.min(b.0).min(c.0), a.0.max(b.0).max(c.0));
            let (top, bottom) = (a.1.min(b.1).min(c.1), a.1.max(b.1).max(c.1));
            let area = (b.0 - a.0) * (c.1 - a.1) - (c.0 - a.0) * (b.1 - a.1);
            if !area.is_finite() || area == 0.0 {
                continue;
            }
            let part = self.visible_part(operation, [left, top, right, bottom], false)?;
            if part == VisiblePart::Nothing {
                continue;
            }
            let span =
                |low: f32, high: f32, most: f32| low.floor().max(0.0) as u32..high.ceil().clamp(0.0, most) as u32;
            let (columns, rows) = (span(left, right, wide), span(top, bottom, high));
            self.count_work(columns.len() as u64 * rows.len() as u64 * 4)?;
            for row in rows {
                for column in columns.clone() {
                    let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
                    let first = ((b.0 - x) * (c.1 - y) - (c.0 - x) * (b.1 - y)) / area;
                    let second = ((c.0 - x) * (a.1 - y) - (a.0 - x) * (c.1 - y)) / area;
                    let third = 1.0 - first - second;
                    if first < 0.0 || second < 0.0 || third < 0.0 {
                        continue;
                    }
                    let mix = |at: usize| {
                        let [p, q, r] = [0, 1, 2].map(|corner: usize| f32::from(colors[corner][at]));
                        ((p * first + q * second + r * third) / 255.0).clamp(0.0, 1.0)
                    };
                    if let Some(color) = Color::from_rgba(mix(0), mix(1), mix(2), mix(3)) {
                        self.blend(column, row, color.premultiply().to_color_u8(), part);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the outline of a stroke.
fn stroked(path: &Path, stroke: &Stroke) -> Option<Path> {
    let dashed = stroke.dash.as_ref().and_then(|dash| path.dash(dash, 1.0));
    dashed.as_ref().unwrap_or(path).stroke(&Stroke { dash: None, ..stroke.clone() }, 1.0)
}

/// Returns the transform from glyph units to pixels.
pub(crate) fn text_transform((x, y): PixelPoint, size: f32, angle: f32) -> Transform {
    let (sin, cos) = (-angle).to_radians().sin_cos();
    Transform::from_row(cos * size, sin * size, sin * size, -cos * size, x, y)
}

fn polygon<const N: usize>(corners: [PixelPoint; N]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (number, (x, y)) in corners.into_iter().enumerate() {
        if number == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    builder.close();
    builder.finish()
}

/// Maps pixels to cells along one side: a pixel belongs to the cell that covers its center.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "pixels")]
fn cells_of_pixels(edges: &[f32], cells: u32, pixels: u32) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (cell, pair) in (0..cells).zip(edges.windows(2)) {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        let from = (low + 0.5).floor().clamp(0.0, pixels as f32) as u32;
        let to = (high + 0.5).floor().clamp(0.0, pixels as f32) as u32;
        found.extend((from..to).map(|pixel| (pixel, cell)));
    }
    found
}

/// Draws a prepared display list into pixels, with `scale` pixels per point.
pub(crate) fn rasterize_display(
    display: &PreparedDisplay,
    size: [f64; 2],
    seen: &[SeenLimits],
    scale: f64,
    chosen: Option<usize>,
) -> Result<Pixmap, FigureDrawError> {
    let shifts = display.shifts(seen);
    let mut raster = DisplayRaster::new(display, size, scale, &shifts)?;
    if let Some(only) = chosen {
        raster.draw_operation(only)?;
        return Ok(raster.finish());
    }
    for (number, operation) in display.list.ops.iter().enumerate() {
        if !is_replaced(operation, seen) {
            raster.draw_operation(number)?;
        }
    }
    Ok(raster.finish())
}

/// Returns whether an operation is a tick of an axis whose limits have changed, so that new ticks replace it.
fn is_replaced(operation: &DisplayOperation, seen: &[SeenLimits]) -> bool {
    let (Some(axes), Some(part)) = (operation.axes, operation.part) else { return false };
    seen.get(axes).copied().unwrap_or_default()[if part == TickPart::Across { 0 } else { 1 }].is_some()
}
