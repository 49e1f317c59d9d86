//! Rasterizes the window's triangles on the CPU, as a graphics card would.
//!
//! It handles triangles, textures and pixels, and knows nothing of the window.

use eframe::egui;
use egui::epaint::{ClippedPrimitive, ImageData, Primitive, Vertex};
use egui::{Color32, ColorImage, Rect, TextureId, TexturesDelta};
use std::collections::HashMap;

/// Fixed-point precision of vertices, so that two triangles with a common edge share no pixel.
const SUBPIXELS_PER_PIXEL: f32 = 256.0;

/// A software renderer with the textures that the window has uploaded.
#[derive(Default)]
pub(crate) struct SoftwareCanvas {
    textures: HashMap<TextureId, ColorImage>,
}

impl SoftwareCanvas {
    /// Applies new textures and partial updates.
    pub(crate) fn update_textures(&mut self, delta: &TexturesDelta) {
        for (id, change) in delta.set.iter().flat_map(|(id, changes)| changes.iter().map(move |change| (id, change))) {
            let ImageData::Color(image) = &change.image;
            let Some([left, top]) = change.pos else {
                self.textures.insert(*id, (**image).clone());
                continue;
            };
            let Some(texture) = self.textures.get_mut(id) else { continue };
            for (row, line) in image.pixels.chunks(image.size[0].max(1)).enumerate() {
                let at = (top + row) * texture.size[0] + left;
                if let Some(place) = texture.pixels.get_mut(at..at + line.len()) {
                    place.copy_from_slice(line);
                }
            }
        }
        for id in &delta.free {
            self.textures.remove(id);
        }
    }

    /// Paints triangles onto a background color. `scale` is pixels per point.
    pub(crate) fn paint(
        &self,
        size: [usize; 2],
        ground: Color32,
        scale: f32,
        primitives: &[ClippedPrimitive],
    ) -> ColorImage {
        let mut picture = ColorImage::filled(size, ground);
        for ClippedPrimitive { clip_rect, primitive } in primitives {
            let Primitive::Mesh(mesh) = primitive else { continue };
            let Some(texture) = self.textures.get(&mesh.texture_id) else { continue };
            let clip = ClipRect::of(*clip_rect, scale, size);
            for corners in mesh.indices.chunks_exact(3) {
                let vertex = |at: usize| mesh.vertices.get(corners[at] as usize).copied();
                if let (Some(a), Some(b), Some(c)) = (vertex(0), vertex(1), vertex(2)) {
                    fill_triangle(&mut picture, &clip, texture, scale, [a, b, c]);
                }
            }
        }
        picture
    }
}

/// The range of pixels that may be painted.
struct ClipRect {
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

impl ClipRect {
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "pixels of a window")]
    fn of(rect: Rect, scale: f32, size: [usize; 2]) -> ClipRect {
        let pixel = |at: f32, most: usize| ((at * scale).round() as i64).clamp(0, most as i64);
        ClipRect {
            left: pixel(rect.left(), size[0]),
            top: pixel(rect.top(), size[1]),
            right: pixel(rect.right(), size[0]),
            bottom: pixel(rect.bottom(), size[1]),
        }
    }
}

/// Edge function of a triangle's side: positive on the inner side.
struct TriangleEdge {
    value: i64,
    by_x: i64,
    by_y: i64,
    /// Minimum value that counts as inside: pixels on a left or top edge belong to the triangle, others to its
    /// neighbor.
    least: i64,
}

impl TriangleEdge {
    fn of(from: (i64, i64), to: (i64, i64), at: (i64, i64)) -> TriangleEdge {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let value = dx * (at.1 - from.1) - dy * (at.0 - from.0);
        let least = i64::from(!(dy < 0 || (dy == 0 && dx > 0)));
        TriangleEdge { value, by_x: -dy * SUBPIXELS_PER_PIXEL as i64, by_y: dx * SUBPIXELS_PER_PIXEL as i64, least }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "pixels and their parts"
)]
fn fill_triangle(
    picture: &mut ColorImage,
    clip: &ClipRect,
    texture: &ColorImage,
    scale: f32,
    mut corners: [Vertex; 3],
) {
    let fixed = |vertex: &Vertex| {
        (
            (vertex.pos.x * scale * SUBPIXELS_PER_PIXEL).round() as i64,
            (vertex.pos.y * scale * SUBPIXELS_PER_PIXEL).round() as i64,
        )
    };
    let [mut a, mut b, c] = [fixed(&corners[0]), fixed(&corners[1]), fixed(&corners[2])];
    let mut area = (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0);
    if area == 0 {
        return;
    }
    if area < 0 {
        (area, a, b) = (-area, b, a);
        corners.swap(0, 1);
    }
    let parts = SUBPIXELS_PER_PIXEL as i64;
    let (least, most) = (|x: i64, y: i64, z: i64| x.min(y).min(z), |x: i64, y: i64, z: i64| x.max(y).max(z));
    let left = (least(a.0, b.0, c.0) / parts).max(clip.left);
    let top = (least(a.1, b.1, c.1) / parts).max(clip.top);
    let right = (most(a.0, b.0, c.0) / parts + 1).min(clip.right);
    let bottom = (most(a.1, b.1, c.1) / parts + 1).min(clip.bottom);
    if left >= right || top >= bottom {
        return;
    }
    let centre = (left * parts + parts / 2, top * parts + parts / 2);
    // Each edge is opposite the vertex whose weight it measures.
    let mut sides = [TriangleEdge::of(b, c, centre), TriangleEdge::of(c, a, centre), TriangleEdge::of(a, b, centre)];
    let whole = 1.0 / area as f32;
    let plain = corners.iter().all(|corner| corner.uv == corners[0].uv && corner.color == corners[0].color);
    let flat = plain.then(|| interpolate_color(texture, &corners, [1.0, 0.0, 0.0]));
    let width = picture.size[0];
    for y in top..bottom {
        let mut at = sides.each_ref().map(|side| side.value);
        for x in left..right {
            if at.iter().zip(&sides).all(|(value, side)| *value >= side.least) {
                let colour =
                    flat.unwrap_or_else(|| interpolate_color(texture, &corners, at.map(|value| value as f32 * whole)));
                let pixel = &mut picture.pixels[y as usize * width + x as usize];
                *pixel = blend_over(colour, *pixel);
            }
            at.iter_mut().zip(&sides).for_each(|(value, side)| *value += side.by_x);
        }
        sides.iter_mut().for_each(|side| side.value += side.by_y);
    }
}

/// Returns the color at a position in a triangle, given by its barycentric weights.
fn interpolate_color(texture: &ColorImage, corners: &[Vertex; 3], shares: [f32; 3]) -> [f32; 4] {
    let mix =
        |of: fn(&Vertex) -> f32| corners.iter().zip(shares).map(|(corner, share)| of(corner) * share).sum::<f32>();
    let texel = sample_texture(texture, mix(|corner| corner.uv.x), mix(|corner| corner.uv.y));
    let own = [
        mix(|corner| f32::from(corner.color.r())),
        mix(|corner| f32::from(corner.color.g())),
        mix(|corner| f32::from(corner.color.b())),
        mix(|corner| f32::from(corner.color.a())),
    ];
    std::array::from_fn(|channel| own[channel] * texel[channel] / 255.0)
}

/// Samples a texture with bilinear filtering.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "pixels of a texture"
)]
fn sample_texture(texture: &ColorImage, u: f32, v: f32) -> [f32; 4] {
    let [width, height] = texture.size;
    let (x, y) = ((u * width as f32 - 0.5).max(0.0), (v * height as f32 - 0.5).max(0.0));
    let (left, top) = (x as usize, y as usize);
    let (right, bottom) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
    let (part_x, part_y) = (x - left as f32, y - top as f32);
    let pixel = |x: usize, y: usize| texture.pixels.get(y * width + x).copied().unwrap_or_default().to_array();
    let corners = [pixel(left, top), pixel(right, top), pixel(left, bottom), pixel(right, bottom)];
    let mixed = |a: u8, b: u8, part: f32| f32::from(a) + (f32::from(b) - f32::from(a)) * part;
    std::array::from_fn(|channel| {
        let upper = mixed(corners[0][channel], corners[1][channel], part_x);
        let lower = mixed(corners[2][channel], corners[3][channel], part_x);
        upper + (lower - upper) * part_y
    })
}

/// Blends a color over another; both have premultiplied alpha.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a channel of a colour")]
fn blend_over(colour: [f32; 4], ground: Color32) -> Color32 {
    let rest = 1.0 - colour[3] / 255.0;
    let ground = ground.to_array();
    let [r, g, b, a]: [u8; 4] = std::array::from_fn(|channel| {
        (colour[channel] + f32::from(ground[channel]) * rest).round().clamp(0.0, 255.0) as u8
    });
    Color32::from_rgba_premultiplied(r, g, b, a)
}

/// Scales an image down by an integer factor, averaging pixels.
#[allow(clippy::cast_possible_truncation, reason = "a mean of bytes is a byte")]
pub(crate) fn downscale(picture: &ColorImage, by: usize) -> ColorImage {
    let size = [picture.size[0] / by, picture.size[1] / by];
    let mut small = ColorImage::filled(size, Color32::WHITE);
    for y in 0..size[1] {
        for x in 0..size[0] {
            let mut sums = [0_usize; 3];
            for (dx, dy) in (0..by).flat_map(|dy| (0..by).map(move |dx| (dx, dy))) {
                let pixel = picture.pixels[(y * by + dy) * picture.size[0] + x * by + dx];
                sums[0] += usize::from(pixel.r());
                sums[1] += usize::from(pixel.g());
                sums[2] += usize::from(pixel.b());
            }
            let [r, g, b] = sums.map(|sum| (sum / (by * by)) as u8);
            small.pixels[y * size[0] + x] = Color32::from_rgb(r, g, b);
        }
    }
    small
}

/// Copies an image into another.
pub(crate) fn paste(small: &ColorImage, into: &mut ColorImage, [left, top]: [usize; 2]) {
    for (row, line) in small.pixels.chunks(small.size[0]).enumerate() {
        let at = (top + row) * into.size[0] + left;
        if let Some(place) = into.pixels.get_mut(at..at + line.len()) {
            place.copy_from_slice(line);
        }
    }
}

/// Encodes an image as PNG.
///
/// # Errors
/// Returns a sentence if the image can't be encoded.
pub(crate) fn encode_png(picture: &ColorImage) -> Result<Vec<u8>, String> {
    let fail = |error: png::EncodingError| format!("the picture cannot be packed ({error})");
    let side = |at: usize| u32::try_from(picture.size[at]).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(0), side(1));
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(fail)?;
    let pixels: Vec<u8> = picture.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
    writer.write_image_data(&pixels).map_err(fail)?;
    writer.finish().map_err(fail)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::epaint::Mesh;
    use egui::{Shape, pos2};

    #[test]
    fn two_triangles_share_an_edge_and_no_pixel() {
        let mut canvas = SoftwareCanvas::default();
        canvas.textures.insert(TextureId::default(), ColorImage::filled([1, 1], Color32::WHITE));
        let half = Color32::from_rgba_premultiplied(0, 0, 0, 128);
        let mut mesh = Mesh::default();
        mesh.add_colored_rect(Rect::from_min_max(pos2(1.0, 1.0), pos2(6.5, 7.0)), half);
        let Shape::Mesh(mesh) = Shape::mesh(mesh) else { panic!("a mesh") };
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(8.0, 8.0));
        let primitive = Primitive::Mesh((*mesh).clone());
        let painted = [ClippedPrimitive { clip_rect: whole, primitive }];
        let picture = canvas.paint([8, 8], Color32::WHITE, 1.0, &painted);
        let dark: Vec<usize> = (0..64).filter(|at| picture.pixels[*at] != Color32::WHITE).collect();
        let wanted: Vec<usize> = (1..7).flat_map(|y| (1..6).map(move |x| y * 8 + x)).collect();
        // The right edge runs through the middle of its pixels, so they belong to the neighbor.
        assert_eq!(dark, wanted);
        assert!(dark.iter().all(|at| picture.pixels[*at] == Color32::from_rgb(127, 127, 127)), "once each");
    }

    #[test]
    fn a_smaller_picture_is_the_mean() {
        let mut picture = ColorImage::filled([4, 2], Color32::BLACK);
        picture.pixels[0] = Color32::WHITE;
        picture.pixels[1] = Color32::WHITE;
        let small = downscale(&picture, 2);
        assert_eq!((small.size, small.pixels), ([2, 1], vec![Color32::from_rgb(127, 127, 127), Color32::BLACK]));
    }
}
