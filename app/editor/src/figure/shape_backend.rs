//! A `plotters` backend that draws egui shapes, so that a plot is as sharp as the text around it.

use eframe::egui;
use egui::epaint::{Mesh, TextShape};
use egui::{
    Align2, Color32, ColorImage, FontId, Pos2, Rect, Shape, Stroke, TextureHandle, TextureOptions, Vec2, pos2, vec2,
};
use plot::PlotBackend;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;

/// Backend units per point, fine enough that curves look smooth.
pub(super) const STEPS_PER_POINT: f32 = 16.0;
/// Maximum number of corners that are compared to fill a drawing's polygons. What is left of a polygon isn't filled.
pub(super) const MAX_CORNER_TESTS: usize = 200_000_000;

/// Collects the shapes of a figure while it is drawn.
pub(super) struct ShapeBackend<'a> {
    pub(super) ctx: &'a egui::Context,
    pub(super) size: Vec2,
    pub(super) scale: f32,
    pub(super) shapes: Vec<Shape>,
    /// Textures that the shapes use; they must live as long as the shapes.
    pub(super) textures: Vec<TextureHandle>,
    /// Number of corners that may still be compared to fill polygons.
    pub(super) corner_tests: usize,
}

type DrawResult = Result<(), DrawingErrorKind<Infallible>>;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 255")]
fn colour(colour: BackendColor) -> Color32 {
    let (red, green, blue) = colour.rgb;
    Color32::from_rgba_unmultiplied(red, green, blue, (colour.alpha * 255.0).round() as u8)
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "steps on a screen")]
impl ShapeBackend<'_> {
    pub(crate) fn at(&self, (x, y): BackendCoord) -> Pos2 {
        pos2(x as f32, y as f32) * (self.scale / STEPS_PER_POINT)
    }

    fn long(&self, steps: u32) -> f32 {
        steps as f32 * self.scale / STEPS_PER_POINT
    }

    fn galley<T: BackendTextStyle>(&self, text: &str, style: &T) -> std::sync::Arc<egui::Galley> {
        let size = (style.size() / 1.24) as f32 * self.scale / STEPS_PER_POINT;
        let (text, colour) = (text::untrusted_text::escape_block(text).into_owned(), colour(style.color()));
        self.ctx.fonts_mut(|fonts| fonts.layout_no_wrap(text, FontId::proportional(size), colour))
    }

    fn stroke<S: BackendStyle>(&self, style: &S) -> Stroke {
        Stroke::new(self.long(style.stroke_width()), colour(style.color()))
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "steps")]
impl DrawingBackend for ShapeBackend<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        ((self.size.x * STEPS_PER_POINT) as u32, (self.size.y * STEPS_PER_POINT) as u32)
    }

    fn ensure_prepared(&mut self) -> DrawResult {
        Ok(())
    }

    fn present(&mut self) -> DrawResult {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, of: BackendColor) -> DrawResult {
        let rect = Rect::from_min_size(self.at(at), Vec2::splat(self.long(1)));
        self.shapes.push(Shape::rect_filled(rect, 0.0, colour(of)));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> DrawResult {
        self.shapes.push(Shape::line_segment([self.at(from), self.at(to)], self.stroke(style)));
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S, fill: bool) -> DrawResult {
        let rect = Rect::from_two_pos(self.at(a), self.at(b));
        self.shapes.push(if fill {
            Shape::rect_filled(rect, 0.0, colour(style.color()))
        } else {
            Shape::rect_stroke(rect, 0.0, self.stroke(style), egui::StrokeKind::Middle)
        });
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> DrawResult {
        let points: Vec<Pos2> = path.into_iter().map(|at| self.at(at)).collect();
        self.shapes.push(Shape::line(points, self.stroke(style)));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, centre: BackendCoord, radius: u32, style: &S, fill: bool) -> DrawResult {
        let (centre, radius) = (self.at(centre), self.long(radius));
        self.shapes.push(if fill {
            Shape::circle_filled(centre, radius, colour(style.color()))
        } else {
            Shape::circle_stroke(centre, radius, self.stroke(style))
        });
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> DrawResult {
        let corners: Vec<Pos2> = corners.into_iter().map(|at| self.at(at)).collect();
        self.shapes.push(if corners.len() == 3 || is_convex(&corners) {
            Shape::convex_polygon(corners, colour(style.color()), Stroke::NONE)
        } else {
            filled(corners, colour(style.color()), &mut self.corner_tests)
        });
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> DrawResult {
        let (galley, at, anchor) = (self.galley(text, style), self.at(at), style.anchor());
        let h = match anchor.h_pos {
            HPos::Left => egui::Align::Min,
            HPos::Center => egui::Align::Center,
            HPos::Right => egui::Align::Max,
        };
        let v = match anchor.v_pos {
            VPos::Top => egui::Align::Min,
            VPos::Center => egui::Align::Center,
            VPos::Bottom => egui::Align::Max,
        };
        let rect = Align2([h, v]).anchor_size(Pos2::ZERO, galley.size());
        let ink = colour(style.color());
        self.shapes.push(match style.transform() {
            FontTransform::Rotate270 => {
                // Rotated text reads from bottom to top: right becomes up, and down becomes right.
                let corner = at + vec2(rect.min.y, -rect.min.x);
                TextShape::new(corner, galley, ink).with_angle(-std::f32::consts::FRAC_PI_2).into()
            }
            _ => TextShape::new(at + rect.min.to_vec2(), galley, ink).into(),
        });
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = self.galley(text, style).size() * (STEPS_PER_POINT / self.scale);
        Ok((size.x.ceil() as u32, size.y.ceil() as u32))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "corners of a figure")]
impl PlotBackend for ShapeBackend<'_> {
    fn pixels_per_point(&self) -> Option<f64> {
        Some(f64::from(self.scale * self.ctx.pixels_per_point()))
    }

    fn max_picture_side(&self) -> u32 {
        // A drawing needs no more pixels than a window can show.
        const MAX_FIGURE_SIDE_PIXELS: usize = 8_192;
        let most = self.ctx.input(|input| input.max_texture_side).min(MAX_FIGURE_SIDE_PIXELS);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    fn draw_pixels(&mut self, a: BackendCoord, b: BackendCoord, columns: usize, rows: usize, bytes: &[u8]) -> bool {
        let most = self.ctx.input(|input| input.max_texture_side);
        if columns > most || rows > most {
            return false;
        }
        let image = ColorImage::from_rgba_unmultiplied([columns, rows], &bytes[..columns * rows * 4]);
        let texture = self.ctx.load_texture("figure", image, TextureOptions::NEAREST);
        let rect = Rect::from_two_pos(self.at(a), self.at(b));
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        self.shapes.push(Shape::image(texture.id(), rect, whole, Color32::WHITE));
        self.textures.push(texture);
        true
    }

    fn fill_tile(&mut self, corners: &[BackendCoord], color: BackendColor) -> bool {
        let color = colour(color);
        // Adjacent tiles share one mesh, so no gaps show between them. There may also be very many.
        let plain = |mesh: &Mesh| mesh.texture_id == egui::TextureId::default();
        if !matches!(self.shapes.last(), Some(Shape::Mesh(mesh)) if plain(mesh)) {
            self.shapes.push(Shape::mesh(Mesh::default()));
        }
        let corners: Vec<Pos2> = corners.iter().map(|at| self.at(*at)).collect();
        let Some(Shape::Mesh(mesh)) = self.shapes.last_mut() else { return false };
        let mesh = std::sync::Arc::make_mut(mesh);
        let first = mesh.vertices.len() as u32;
        corners.iter().for_each(|corner| mesh.colored_vertex(*corner, color));
        (2..corners.len() as u32).for_each(|at| mesh.add_triangle(first, first + at - 1, first + at));
        true
    }

    fn fill_strip(&mut self, pairs: &[(BackendCoord, BackendCoord)], color: BackendColor) -> bool {
        let color = colour(color);
        let mut mesh = Mesh::default();
        for (number, (upper, lower)) in pairs.iter().enumerate() {
            mesh.colored_vertex(self.at(*upper), color);
            mesh.colored_vertex(self.at(*lower), color);
            let at = number as u32 * 2;
            if number > 0 {
                mesh.add_triangle(at - 2, at - 1, at);
                mesh.add_triangle(at - 1, at, at + 1);
            }
        }
        self.shapes.push(Shape::mesh(mesh));
        true
    }
}

fn turn(a: Pos2, b: Pos2, c: Pos2) -> f32 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

fn is_convex(corners: &[Pos2]) -> bool {
    let count = corners.len();
    let turns = (0..count).map(|at| turn(corners[at], corners[(at + 1) % count], corners[(at + 2) % count]));
    let (mut left, mut right) = (false, false);
    for turn in turns {
        left |= turn > 1e-4;
        right |= turn < -1e-4;
    }
    !(left && right)
}

/// Fills a simple polygon with triangles by ear clipping. That takes up to the third power of its corners, so they're
/// compared at most `corner_tests` times.
fn filled(corners: Vec<Pos2>, colour: Color32, corner_tests: &mut usize) -> Shape {
    let mut mesh = Mesh::default();
    for corner in &corners {
        mesh.colored_vertex(*corner, colour);
    }
    let area: f32 = (0..corners.len())
        .map(|at| {
            let (a, b) = (corners[at], corners[(at + 1) % corners.len()]);
            a.x * b.y - b.x * a.y
        })
        .sum();
    let sign = area.signum();
    let mut left: Vec<u32> = (0..).take(corners.len()).collect();
    let (mut at, mut failed) = (0, 0);
    let corner = |index: u32| corners[index as usize];
    while left.len() > 2 && failed <= left.len() {
        let count = left.len();
        let Some(tests_left) = corner_tests.checked_sub(count) else { break };
        *corner_tests = tests_left;
        at %= count;
        let [a, b, c] = [left[at], left[(at + 1) % count], left[(at + 2) % count]];
        let ear = turn(corner(a), corner(b), corner(c)) * sign >= 0.0 && {
            let inside = |p: Pos2| {
                turn(corner(a), corner(b), p) * sign > 0.0
                    && turn(corner(b), corner(c), p) * sign > 0.0
                    && turn(corner(c), corner(a), p) * sign > 0.0
            };
            // Successive corners are usually close to each other; the others are checked too.
            !left.iter().any(|other| ![a, b, c].contains(other) && inside(corner(*other)))
        };
        if ear {
            mesh.add_triangle(a, b, c);
            left.remove((at + 1) % count);
            failed = 0;
        } else {
            at += 1;
            failed += 1;
        }
    }
    Shape::mesh(mesh)
}
