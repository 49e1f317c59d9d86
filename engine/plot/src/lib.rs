//! Figures as data, and the one code that draws them: as PNG, as SVG, and through any backend of `plotters`.
//!
//! It reads no file, writes none and knows no window: a figure goes in, a picture or strokes on a backend come out.

mod colour;
mod draw;
mod figure;
mod pen;

pub use colour::{Look, MAPS, Rgb};
pub use draw::draw;
pub use figure::{Axes, Column, Figure, MIME, Mark, Shades, Ticks};

use plotters::backend::{BitMapBackend, SVGBackend};
use std::sync::Once;

/// The family in which all words are set. A backend of its own may set them in what it has.
pub const FONT: &str = "Inter";

/// A figure (JSON) whose lines have no more points than the widest screen shows; anything else stays as it is, also
/// what is no figure.
pub fn lighter(json: &str) -> String {
    let Ok(mut figure) = serde_json::from_str::<serde_json::Value>(json) else { return json.to_owned() };
    let axes = figure["axes"].as_array_mut().into_iter().flatten();
    let marks = axes.filter_map(|axes| axes["marks"].as_array_mut()).flatten();
    for mark in marks.filter(|mark| mark["kind"] == "line" && mark["x"].is_string()) {
        let column = |name: &str| serde_json::from_value::<Column>(mark[name].clone()).unwrap_or_default().0;
        if let Some((x, y)) = draw::thinned(&column("x"), &column("y")) {
            mark["x"] = figure::pack(&x).into();
            mark["y"] = figure::pack(&y).into();
        }
    }
    figure.to_string()
}

fn with_font() {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        let bytes = include_bytes!("../../../assets/fonts/Inter-Regular.ttf");
        // The file is ours and is a font.
        let _ = plotters::style::register_font(FONT, plotters::style::FontStyle::Normal, bytes);
    });
}

/// A figure as a PNG, so many pixels to a point.
///
/// # Errors
/// A sentence, where it cannot be drawn.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
pub fn png(figure: &Figure, scale: f64) -> Result<Vec<u8>, String> {
    with_font();
    // Drawn larger and then made smaller: plotters smooths thin lines only.
    const FINER: usize = 3;
    let scale = scale.clamp(0.25, 8.0);
    let (wide, high) = ((figure.width * scale).ceil() as usize, (figure.height * scale).ceil() as usize);
    if wide * high > 50_000_000 {
        return Err(format!("a picture of {wide} by {high} pixels is too large"));
    }
    let mut fine = vec![255; wide * high * FINER * FINER * 3];
    let size = ((wide * FINER) as u32, (high * FINER) as u32);
    draw(figure, &mut BitMapBackend::with_buffer(&mut fine, size), scale * FINER as f64, &Look::LIGHT)?;
    let mut pixels = Vec::with_capacity(wide * high * 3);
    for y in 0..high {
        for x in 0..wide {
            for channel in 0..3 {
                let mut sum = 0_usize;
                for dy in 0..FINER {
                    let row = ((y * FINER + dy) * wide * FINER + x * FINER) * 3 + channel;
                    sum += (0..FINER).map(|dx| usize::from(fine[row + dx * 3])).sum::<usize>();
                }
                pixels.push((sum / (FINER * FINER)) as u8);
            }
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, wide as u32, high as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.map(|()| out).map_err(|error| format!("the picture cannot be written ({error})"))
}

/// A figure as an SVG.
///
/// # Errors
/// A sentence, where it cannot be drawn.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
pub fn svg(figure: &Figure) -> Result<String, String> {
    with_font();
    // plotters counts in whole steps: ten of them to a point keep curves smooth.
    const STEPS: f64 = 10.0;
    let size = ((figure.width * STEPS) as u32, (figure.height * STEPS) as u32);
    let mut text = String::new();
    draw(figure, &mut SVGBackend::with_string(&mut text, size), STEPS, &Look::LIGHT)?;
    let large = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let small = format!("width=\"{}\" height=\"{}\"", figure.width, figure.height);
    Ok(text.replacen(&large, &small, 1).replace("font-family=\"Inter\"", "font-family=\"Inter, sans-serif\""))
}
