//! Draws strokes, fills and text on a backend. It uses fractional points where the backend has integer coordinates.

use crate::colour::Rgb;
use crate::mathtext;
use crate::{FIGURE_FONT, FigureDrawError};
use plotters::prelude::{DrawingBackend, IntoFont, TextStyle};
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle};

pub(crate) use crate::plot_rect::{PlotPoint, PlotRect};

/// Maximum cost of all shapes of a drawing: a tile costs 1.
const MAX_SHAPE_COST: u32 = 4_000_000;
/// Cost of a line, a circle, a rectangle or a polygon.
const SHAPE_COST: u32 = 4;
/// Cost of a line of text.
const TEXT_COST: u32 = 40;
/// Maximum number of pixels of all images in a drawing.
const MAX_IMAGE_PIXELS: f64 = 64e6;
/// Maximum width of a line in points.
const MAX_STROKE_POINTS: f64 = 500.0;
/// Font sizes that are drawn, in points. A backend may have no room for larger letters.
const FONT_SIZES: [f64; 2] = [0.5, 300.0];

/// Returns the font size that is drawn for a size in points.
pub(crate) fn drawn_font_size(size: f64) -> f64 {
    size.clamp(FONT_SIZES[0], FONT_SIZES[1])
}

/// A backend with optional operations beyond plotters' own; those it doesn't support fall back to the common ones.
pub trait PlotBackend: DrawingBackend {
    /// Returns the pixels per point if many markers are best drawn as one image; `None` if as shapes.
    fn pixels_per_point(&self) -> Option<f64> {
        None
    }

    /// Returns the longest side of an image that [`PlotBackend::draw_pixels`] can draw, in pixels.
    fn max_picture_side(&self) -> u32 {
        4_096
    }

    /// Draws rows of RGBA pixels over a rectangle. Returns whether it's supported.
    fn draw_pixels(
        &mut self,
        _a: BackendCoord,
        _b: BackendCoord,
        _columns: usize,
        _rows: usize,
        _bytes: &[u8],
    ) -> bool {
        false
    }

    /// Fills a convex tile that adjoins others without a seam. Returns whether it's supported.
    fn fill_tile(&mut self, _corners: &[BackendCoord], _color: BackendColor) -> bool {
        false
    }

    /// Fills the area between two lines, given as pairs of points with the same x. Returns whether it's supported.
    fn fill_strip(&mut self, _pairs: &[(BackendCoord, BackendCoord)], _color: BackendColor) -> bool {
        false
    }
}

impl PlotBackend for plotters::backend::BitMapBackend<'_> {}

/// Style of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlotStroke<'a> {
    pub(crate) colour: Rgb,
    pub(crate) alpha: f64,
    pub(crate) width: f64,
    pub(crate) dash: &'a str,
}

struct BackendStroke {
    colour: BackendColor,
    width: u32,
}

impl BackendStyle for BackendStroke {
    fn color(&self) -> BackendColor {
        self.colour
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

/// Draws on a backend. The first error is kept, and returned by `finish`.
///
/// What is drawn is bounded, because a few bytes of a figure can ask for very many shapes. Beyond the bounds nothing is
/// drawn, and `finish` returns an error.
pub(crate) struct PlotPainter<'a, B: PlotBackend> {
    backend: &'a mut B,
    steps_per_point: f64,
    pub(crate) error: Option<String>,
    shape_cost: u32,
    image_pixels: f64,
    is_exhausted: bool,
}

impl<'a, B: PlotBackend> PlotPainter<'a, B> {
    pub(crate) fn new(backend: &'a mut B, steps: f64) -> PlotPainter<'a, B> {
        let (shape_cost, image_pixels, is_exhausted) = (0, 0.0, false);
        PlotPainter { backend, steps_per_point: steps, error: None, shape_cost, image_pixels, is_exhausted }
    }

    #[allow(clippy::cast_possible_truncation, reason = "far outside is as good as at the edge")]
    fn to_steps(&self, (x, y): PlotPoint) -> (i32, i32) {
        let far = 1e6;
        (
            (x * self.steps_per_point).clamp(-far, far).round() as i32,
            (y * self.steps_per_point).clamp(-far, far).round() as i32,
        )
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width of some points")]
    fn backend_stroke(&self, colour: Rgb, alpha: f64, width: f64) -> BackendStroke {
        BackendStroke {
            colour: BackendColor { alpha, rgb: colour },
            width: (width.min(MAX_STROKE_POINTS) * self.steps_per_point).round().clamp(1.0, 1e4) as u32,
        }
    }

    fn keep_error<E: std::error::Error>(&mut self, done: Result<(), E>) {
        if let Err(error) = done {
            self.error.get_or_insert(error.to_string());
        }
    }

    /// Returns whether there was more to draw than is allowed. Then nothing more is drawn.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Returns whether shapes with this cost can still be drawn, and counts them.
    fn spend(&mut self, cost: u32) -> bool {
        self.shape_cost = self.shape_cost.saturating_add(cost);
        self.is_exhausted |= self.shape_cost > MAX_SHAPE_COST;
        !self.is_exhausted
    }

    /// Returns whether an image with so many pixels can still be drawn, and counts them.
    pub(crate) fn spend_pixels(&mut self, pixels: f64) -> bool {
        self.image_pixels += pixels;
        self.is_exhausted |= self.image_pixels > MAX_IMAGE_PIXELS;
        !self.is_exhausted
    }

    /// Returns the pixels per point if many markers are best drawn as one image.
    pub(crate) fn pixels_per_point(&self) -> Option<f64> {
        self.backend.pixels_per_point()
    }

    /// Finishes the drawing and returns the first error, if there was one.
    pub(crate) fn finish(self) -> Result<(), FigureDrawError> {
        if self.is_exhausted {
            return Err(FigureDrawError::TooMuchToDraw);
        }
        let shown = self.backend.present().map_err(|error| error.to_string());
        self.error.map_or(shown, Err).map_err(FigureDrawError::Backend)
    }

    pub(crate) fn draw_path(&mut self, path: &[PlotPoint], stroke: PlotStroke<'_>) {
        let style = self.backend_stroke(stroke.colour, stroke.alpha, stroke.width);
        let pattern: &[f64] = match stroke.dash {
            "--" => &[3.7, 1.6],
            ":" => &[1.0, 1.65],
            "-." => &[6.4, 1.6, 1.0, 1.6],
            "none" | "" => return,
            _ => &[],
        };
        if path.len() < 2 || self.is_exhausted {
            return;
        }
        if pattern.is_empty() {
            // A sharp turn ends the stroke and starts a new one. A join there would stick out or collapse.
            let mut from = 0;
            for at in 1..path.len() {
                let sharp = path.get(at + 1).is_none_or(|next| {
                    let ((a, b), (c, d), (e, f)) = (path[at - 1], path[at], *next);
                    (c - a) * (e - c) + (d - b) * (f - d) < 0.0
                });
                if sharp {
                    if !self.spend(SHAPE_COST) {
                        return;
                    }
                    let steps: Vec<(i32, i32)> = path[from..=at].iter().map(|at| self.to_steps(*at)).collect();
                    let done = self.backend.draw_path(steps, &style);
                    self.keep_error(done);
                    from = at;
                }
            }
            return;
        }
        let scale = stroke.width.max(0.8);
        let (mut part, mut left, mut piece) = (0, pattern[0] * scale, vec![path[0]]);
        for pair in path.windows(2) {
            let ((mut x, mut y), (to_x, to_y)) = (pair[0], pair[1]);
            loop {
                let length = (to_x - x).hypot(to_y - y);
                if length <= left {
                    left -= length;
                    piece.push((to_x, to_y));
                    break;
                }
                (x, y) = (x + (to_x - x) * left / length, y + (to_y - y) * left / length);
                piece.push((x, y));
                if part % 2 == 0 {
                    if !self.spend(SHAPE_COST) {
                        return;
                    }
                    let steps: Vec<(i32, i32)> = piece.iter().map(|at| self.to_steps(*at)).collect();
                    let done = self.backend.draw_path(steps, &style);
                    self.keep_error(done);
                }
                part = (part + 1) % pattern.len();
                left = pattern[part] * scale;
                piece = vec![(x, y)];
            }
        }
        if part % 2 == 0 && piece.len() > 1 && self.spend(SHAPE_COST) {
            let steps: Vec<(i32, i32)> = piece.iter().map(|at| self.to_steps(*at)).collect();
            let done = self.backend.draw_path(steps, &style);
            self.keep_error(done);
        }
    }

    /// Draws a path clipped to a frame.
    pub(crate) fn draw_path_within(&mut self, path: &[PlotPoint], stroke: PlotStroke<'_>, frame: PlotRect) {
        let mut piece: Vec<PlotPoint> = Vec::new();
        for pair in path.windows(2) {
            match clip_segment(pair[0], pair[1], frame) {
                Some((from, to)) => {
                    if piece.last() != Some(&from) {
                        self.draw_path(&piece, stroke);
                        piece = vec![from];
                    }
                    piece.push(to);
                }
                None => {
                    self.draw_path(&piece, stroke);
                    piece.clear();
                }
            }
        }
        self.draw_path(&piece, stroke);
    }

    pub(crate) fn fill_polygon(&mut self, corners: &[PlotPoint], colour: Rgb, alpha: f64) {
        if corners.len() > 2 && self.spend(SHAPE_COST) {
            let style = self.backend_stroke(colour, alpha, 1.0);
            let steps: Vec<(i32, i32)> = corners.iter().map(|at| self.to_steps(*at)).collect();
            let done = self.backend.fill_polygon(steps, &style);
            self.keep_error(done);
        }
    }

    /// Fills a polygon clipped to a frame.
    pub(crate) fn fill_polygon_within(&mut self, corners: &[PlotPoint], colour: Rgb, alpha: f64, frame: PlotRect) {
        if corners.iter().all(|at| frame.contains(*at)) {
            self.fill_polygon(corners, colour, alpha);
        } else {
            self.fill_polygon(&clip_polygon(corners, frame), colour, alpha);
        }
    }

    /// Fills a tile that adjoins others without a seam, clipped to a frame.
    pub(crate) fn fill_tile_within(&mut self, corners: &[PlotPoint], colour: Rgb, frame: PlotRect) {
        let inner;
        let corners = if corners.iter().all(|at| frame.contains(*at)) {
            corners
        } else {
            inner = clip_polygon(corners, frame);
            &inner
        };
        if corners.len() > 2 && self.spend(1) {
            let steps: Vec<BackendCoord> = corners.iter().map(|at| self.to_steps(*at)).collect();
            if !self.backend.fill_tile(&steps, BackendColor { alpha: 1.0, rgb: colour }) {
                self.fill_polygon(corners, colour, 1.0);
            }
        }
    }

    /// Fills the area between two lines: pairs of points with the same x, the upper one first.
    pub(crate) fn fill_strip(&mut self, pairs: &[(PlotPoint, PlotPoint)], colour: Rgb, alpha: f64) {
        if pairs.len() < 2 || !self.spend(SHAPE_COST) {
            return;
        }
        let steps: Vec<_> = pairs.iter().map(|(a, b)| (self.to_steps(*a), self.to_steps(*b))).collect();
        if !self.backend.fill_strip(&steps, BackendColor { alpha, rgb: colour }) {
            let corners: Vec<PlotPoint> =
                pairs.iter().map(|(a, _)| *a).chain(pairs.iter().rev().map(|(_, b)| *b)).collect();
            self.fill_polygon(&corners, colour, alpha);
        }
    }

    /// Draws rows of RGBA pixels over a rectangle.
    pub(crate) fn draw_pixels(&mut self, a: PlotPoint, b: PlotPoint, columns: usize, rows: usize, bytes: &[u8]) {
        if columns == 0 || rows == 0 || bytes.len() < columns * rows * 4 || self.is_exhausted {
            return;
        }
        let (from, to) = (self.to_steps(a), self.to_steps(b));
        if self.backend.draw_pixels(from, to, columns, rows, bytes) {
            return;
        }
        let (wide, high) = ((b.0 - a.0) / columns as f64, (b.1 - a.1) / rows as f64);
        for (row, line) in bytes.chunks_exact(columns * 4).take(rows).enumerate() {
            let mut column = 0;
            // Adjacent pixels with the same color become one rectangle.
            for run in line.as_chunks::<4>().0.chunk_by(|a, b| a == b) {
                let [red, green, blue, alpha] = run[0];
                if alpha > 0 {
                    let x = [column, column + run.len()].map(|at| a.0 + wide * at as f64);
                    let y = [row, row + 1].map(|at| a.1 + high * at as f64);
                    let alpha = f64::from(alpha) / 255.0;
                    self.put_rectangle((x[0], y[0]), (x[1], y[1]), (red, green, blue), alpha, true, 1.0);
                }
                column += run.len();
            }
        }
    }

    /// Draws rows of RGBA pixels clipped to a frame: cells across its edges are cut.
    pub(crate) fn draw_pixels_within(
        &mut self,
        a: PlotPoint,
        b: PlotPoint,
        columns: usize,
        rows: usize,
        bytes: &[u8],
        frame: PlotRect,
    ) {
        let wide = frame.expanded(-0.49);
        if wide.contains(a) && wide.contains(b) {
            return self.draw_pixels(a, b, columns, rows, bytes);
        }
        let (wide, high) = ((b.0 - a.0) / columns as f64, (b.1 - a.1) / rows as f64);
        for (row, line) in bytes.chunks_exact(columns * 4).take(rows).enumerate() {
            let mut column = 0;
            for run in line.as_chunks::<4>().0.chunk_by(|a, b| a == b) {
                let [red, green, blue, alpha] = run[0];
                let x = [column, column + run.len()].map(|at| a.0 + wide * at as f64);
                let y = [row, row + 1].map(|at| a.1 + high * at as f64);
                if alpha > 0 {
                    let (a, b) = (frame.clamp((x[0], y[0])), frame.clamp((x[1], y[1])));
                    let corners = [a, (b.0, a.1), b, (a.0, b.1)].map(|at| self.to_steps(at));
                    let color = BackendColor { alpha: 1.0, rgb: (red, green, blue) };
                    if !self.backend.fill_tile(&corners, color) {
                        self.put_rectangle(a, b, (red, green, blue), 1.0, true, 1.0);
                    }
                }
                column += run.len();
            }
        }
    }

    pub(crate) fn draw_rectangle(
        &mut self,
        a: PlotPoint,
        b: PlotPoint,
        colour: Rgb,
        alpha: f64,
        fill: bool,
        width: f64,
    ) {
        if self.spend(SHAPE_COST) {
            self.put_rectangle(a, b, colour, alpha, fill, width);
        }
    }

    /// Draws a rectangle that is counted already, such as a pixel of an image.
    fn put_rectangle(&mut self, a: PlotPoint, b: PlotPoint, colour: Rgb, alpha: f64, fill: bool, width: f64) {
        let style = self.backend_stroke(colour, alpha, width);
        let (a, b) = ((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)));
        let (a, b) = (self.to_steps(a), self.to_steps(b));
        if a == b {
            return;
        }
        let done = self.backend.draw_rect(a, b, &style, fill);
        self.keep_error(done);
    }

    pub(crate) fn fill_rectangle_within(
        &mut self,
        a: PlotPoint,
        b: PlotPoint,
        colour: Rgb,
        alpha: f64,
        frame: PlotRect,
    ) {
        self.draw_rectangle(frame.clamp(a), frame.clamp(b), colour, alpha, true, 1.0);
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a radius of some points")]
    pub(crate) fn fill_circle(&mut self, centre: PlotPoint, radius: f64, colour: Rgb, alpha: f64) {
        if !self.spend(SHAPE_COST) {
            return;
        }
        let style = self.backend_stroke(colour, alpha, 1.0);
        let steps = (radius * self.steps_per_point).round().clamp(1.0, 1e5) as u32;
        let centre = self.to_steps(centre);
        let done = self.backend.draw_circle(centre, steps, &style, true);
        self.keep_error(done);
    }

    fn text_style(&self, size: f64, colour: Rgb) -> TextStyle<'static> {
        let size = drawn_font_size(size);
        // plotters expects the line height as font size.
        let mut style: TextStyle<'static> = (FIGURE_FONT, size * self.steps_per_point * 1.24).into_font().into();
        style.color = BackendColor { alpha: 1.0, rgb: colour };
        style
    }

    /// Returns the width of a text in points.
    pub(crate) fn text_width(&self, text: &str, size: f64) -> f64 {
        let style = self.text_style(size, (0, 0, 0));
        let text = mathtext::render_mathtext(text);
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or("");
        self.backend.estimate_text_size(widest, &style).map_or(0.0, |(wide, _)| f64::from(wide) / self.steps_per_point)
    }

    /// Draws text; `h` and `v` tell which part of it is at the point. `up` rotates it to read from bottom to top.
    pub(crate) fn draw_text(
        &mut self,
        text: &str,
        at: PlotPoint,
        size: f64,
        colour: Rgb,
        (h, v): (HPos, VPos),
        up: bool,
    ) {
        let text = mathtext::render_mathtext(text);
        let lines: Vec<&str> = text.lines().collect();
        let (count, height) = (lines.len() as f64, size * 1.25);
        for (line, number) in lines.iter().zip(0..) {
            let down = match v {
                VPos::Top => f64::from(number) * height,
                VPos::Center => (f64::from(number) - (count - 1.0) / 2.0) * height,
                VPos::Bottom => (f64::from(number) - (count - 1.0)) * height,
            };
            let style = self.text_style(size, colour).pos(Pos::new(h, v));
            let (style, at) = match up {
                true => (style.transform(FontTransform::Rotate270), (at.0 + down, at.1)),
                false => (style, (at.0, at.1 + down)),
            };
            if !self.spend(TEXT_COST) {
                return;
            }
            let at = self.to_steps(at);
            let done = self.backend.draw_text(line, &style, at);
            self.keep_error(done);
        }
    }
}

/// Clips a polygon to a frame, after Sutherland and Hodgman.
fn clip_polygon(corners: &[PlotPoint], frame: PlotRect) -> Vec<PlotPoint> {
    let sides: [&dyn Fn(PlotPoint) -> f64; 4] =
        [&|at| at.0 - frame.left, &|at| frame.right - at.0, &|at| at.1 - frame.top, &|at| frame.bottom - at.1];
    sides.into_iter().fold(corners.to_vec(), |corners, inside| {
        let mut kept = Vec::with_capacity(corners.len() + 4);
        for (number, from) in corners.iter().enumerate() {
            let to = corners[(number + 1) % corners.len()];
            let (a, b) = (inside(*from), inside(to));
            if a >= 0.0 {
                kept.push(*from);
            }
            if (a >= 0.0) != (b >= 0.0) {
                let share = a / (a - b);
                kept.push((from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share));
            }
        }
        kept
    })
}

/// Clips a line segment to a frame, after Liang and Barsky.
fn clip_segment(from: PlotPoint, to: PlotPoint, frame: PlotRect) -> Option<(PlotPoint, PlotPoint)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    if !(dx.is_finite() && dy.is_finite()) {
        return None;
    }
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    let sides = [
        (-dx, from.0 - frame.left),
        (dx, frame.right - from.0),
        (-dy, from.1 - frame.top),
        (dy, frame.bottom - from.1),
    ];
    for (along, room) in sides {
        if along == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if along < 0.0 {
            enter = enter.max(room / along);
        } else {
            leave = leave.min(room / along);
        }
    }
    let at = |share: f64| (from.0 + dx * share, from.1 + dy * share);
    (enter <= leave).then(|| (if enter > 0.0 { at(enter) } else { from }, if leave < 1.0 { at(leave) } else { to }))
}
