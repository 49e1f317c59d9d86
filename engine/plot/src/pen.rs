//! Draws strokes, fills and words on a backend, in points with fractions, where the backend counts in whole steps.

use crate::FONT;
use crate::colour::Rgb;
use plotters::prelude::{DrawingBackend, IntoFont, TextStyle};
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendColor, BackendStyle};

/// A point in points.
pub(crate) type At = (f64, f64);

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(crate) fn holds(&self, (x, y): At) -> bool {
        x >= self.left - 0.5 && x <= self.right + 0.5 && y >= self.top - 0.5 && y <= self.bottom + 0.5
    }

    fn clamp(&self, (x, y): At) -> At {
        (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom))
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke<'a> {
    pub(crate) colour: Rgb,
    pub(crate) alpha: f64,
    pub(crate) width: f64,
    pub(crate) dash: &'a str,
}

struct Style {
    colour: BackendColor,
    width: u32,
}

impl BackendStyle for Style {
    fn color(&self) -> BackendColor {
        self.colour
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

/// A pen on a backend. The first failure is kept; what follows it is not drawn.
pub(crate) struct Pen<'a, B: DrawingBackend> {
    backend: &'a mut B,
    steps: f64,
    pub(crate) failed: Option<String>,
}

impl<'a, B: DrawingBackend> Pen<'a, B> {
    pub(crate) fn new(backend: &'a mut B, steps: f64) -> Pen<'a, B> {
        Pen { backend, steps, failed: None }
    }

    #[allow(clippy::cast_possible_truncation, reason = "far outside is as good as at the edge")]
    fn step(&self, (x, y): At) -> (i32, i32) {
        let far = 1e6;
        ((x * self.steps).clamp(-far, far).round() as i32, (y * self.steps).clamp(-far, far).round() as i32)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width of some points")]
    fn style(&self, colour: Rgb, alpha: f64, width: f64) -> Style {
        Style {
            colour: BackendColor { alpha, rgb: colour },
            width: (width * self.steps).round().clamp(1.0, 1e4) as u32,
        }
    }

    fn note<E: std::error::Error>(&mut self, done: Result<(), E>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error.to_string());
        }
    }

    /// The end of the drawing.
    pub(crate) fn finish(self) -> Result<(), String> {
        let shown = self.backend.present().map_err(|error| error.to_string());
        self.failed.map_or(shown, Err)
    }

    pub(crate) fn path(&mut self, path: &[At], stroke: Stroke<'_>) {
        let style = self.style(stroke.colour, stroke.alpha, stroke.width);
        let pattern: &[f64] = match stroke.dash {
            "--" => &[3.7, 1.6],
            ":" => &[1.0, 1.65],
            "-." => &[6.4, 1.6, 1.0, 1.6],
            "none" | "" => return,
            _ => &[],
        };
        if path.len() < 2 {
            return;
        }
        if pattern.is_empty() {
            // A sharp turn ends a stroke and begins the next: joined there, it would stick out or fall in on itself.
            let mut from = 0;
            for at in 1..path.len() {
                let sharp = path.get(at + 1).is_none_or(|next| {
                    let ((a, b), (c, d), (e, f)) = (path[at - 1], path[at], *next);
                    (c - a) * (e - c) + (d - b) * (f - d) < 0.0
                });
                if sharp {
                    let steps: Vec<(i32, i32)> = path[from..=at].iter().map(|at| self.step(*at)).collect();
                    let done = self.backend.draw_path(steps, &style);
                    self.note(done);
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
                    let steps: Vec<(i32, i32)> = piece.iter().map(|at| self.step(*at)).collect();
                    let done = self.backend.draw_path(steps, &style);
                    self.note(done);
                }
                part = (part + 1) % pattern.len();
                left = pattern[part] * scale;
                piece = vec![(x, y)];
            }
        }
        if part % 2 == 0 && piece.len() > 1 {
            let steps: Vec<(i32, i32)> = piece.iter().map(|at| self.step(*at)).collect();
            let done = self.backend.draw_path(steps, &style);
            self.note(done);
        }
    }

    /// The same, cut at the edges of a frame.
    pub(crate) fn path_within(&mut self, path: &[At], stroke: Stroke<'_>, frame: Frame) {
        let mut piece: Vec<At> = Vec::new();
        for pair in path.windows(2) {
            match cut(pair[0], pair[1], frame) {
                Some((from, to)) => {
                    if piece.last() != Some(&from) {
                        self.path(&piece, stroke);
                        piece = vec![from];
                    }
                    piece.push(to);
                }
                None => {
                    self.path(&piece, stroke);
                    piece.clear();
                }
            }
        }
        self.path(&piece, stroke);
    }

    pub(crate) fn polygon(&mut self, corners: &[At], colour: Rgb, alpha: f64) {
        if corners.len() > 2 {
            let style = self.style(colour, alpha, 1.0);
            let steps: Vec<(i32, i32)> = corners.iter().map(|at| self.step(*at)).collect();
            let done = self.backend.fill_polygon(steps, &style);
            self.note(done);
        }
    }

    pub(crate) fn rectangle(&mut self, a: At, b: At, colour: Rgb, alpha: f64, fill: bool, width: f64) {
        let style = self.style(colour, alpha, width);
        let (a, b) = ((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)));
        let (a, b) = (self.step(a), self.step(b));
        if a == b {
            return;
        }
        let done = self.backend.draw_rect(a, b, &style, fill);
        self.note(done);
    }

    pub(crate) fn rectangle_within(&mut self, a: At, b: At, colour: Rgb, alpha: f64, frame: Frame) {
        self.rectangle(frame.clamp(a), frame.clamp(b), colour, alpha, true, 1.0);
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a radius of some points")]
    pub(crate) fn circle(&mut self, centre: At, radius: f64, colour: Rgb, alpha: f64) {
        let style = self.style(colour, alpha, 1.0);
        let steps = (radius * self.steps).round().clamp(1.0, 1e5) as u32;
        let centre = self.step(centre);
        let done = self.backend.draw_circle(centre, steps, &style, true);
        self.note(done);
    }

    fn font(&self, size: f64, colour: Rgb) -> TextStyle<'static> {
        // plotters takes the height of a line for the size of a font.
        let mut style: TextStyle<'static> = (FONT, size * self.steps * 1.24).into_font().into();
        style.color = BackendColor { alpha: 1.0, rgb: colour };
        style
    }

    /// How wide words are.
    pub(crate) fn wide(&self, text: &str, size: f64) -> f64 {
        let style = self.font(size, (0, 0, 0));
        self.backend.estimate_text_size(text, &style).map_or(0.0, |(wide, _)| f64::from(wide) / self.steps)
    }

    /// Words: `h` and `v` say which part of them stands at the point. `up` turns them to be read from below.
    pub(crate) fn words(&mut self, text: &str, at: At, size: f64, colour: Rgb, (h, v): (HPos, VPos), up: bool) {
        let lines: Vec<&str> = text.lines().collect();
        let (count, height) = (lines.len() as f64, size * 1.25);
        for (line, number) in lines.iter().zip(0..) {
            let down = match v {
                VPos::Top => f64::from(number) * height,
                VPos::Center => (f64::from(number) - (count - 1.0) / 2.0) * height,
                VPos::Bottom => (f64::from(number) - (count - 1.0)) * height,
            };
            let style = self.font(size, colour).pos(Pos::new(h, v));
            let (style, at) = match up {
                true => (style.transform(FontTransform::Rotate270), (at.0 + down, at.1)),
                false => (style, (at.0, at.1 + down)),
            };
            let at = self.step(at);
            let done = self.backend.draw_text(line, &style, at);
            self.note(done);
        }
    }
}

/// The part of a line inside a frame, after Liang and Barsky.
fn cut(from: At, to: At, frame: Frame) -> Option<(At, At)> {
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
