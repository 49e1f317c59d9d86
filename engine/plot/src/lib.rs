//! Figures as data, and the one code that draws them: as PNG, as SVG, and through any backend of `plotters`.
//!
//! It reads no file, writes none and knows no window: a figure goes in, a picture or strokes on a backend come out.

mod colour;
mod crowd;
mod draw;
mod field;
mod figure;
mod legend;
mod maps;
mod marks;
mod math;
mod pen;
mod ready;
mod scale;
mod svg;
mod thin;
mod view;

pub use colour::{Look, Rgb, shade};
pub use draw::draw;
pub use figure::{Axes, Colorbar, Column, Figure, Kind, Legend, MIME, Mark, Shades, Side, Ticks};
pub use maps::{has_map, map_size, maps};
pub use pen::Surface;
pub use ready::Ready;
pub use view::{Entry, Near, Place, View};

use plotters::backend::BitMapBackend;
use std::sync::Once;

/// The family in which all words are set. A backend of its own may set them in what it has.
pub const FONT: &str = "Inter";

/// A figure (JSON) whose lines have no more points than the widest screen shows; anything else stays as it is, also
/// what is no figure.
pub fn lighter(json: &str) -> String {
    let Ok(mut figure) = serde_json::from_str::<serde_json::Value>(json) else { return json.to_owned() };
    let axes = figure["axes"].as_array_mut().into_iter().flatten();
    let marks = axes.filter_map(|axes| axes["marks"].as_array_mut()).flatten();
    for mark in marks.filter(|mark| mark["kind"] == "line" && !mark["y"].is_array()) {
        let column = |name: &str| serde_json::from_value::<Column>(mark[name].clone()).unwrap_or_default().0;
        if let Some((x, y)) = thin::thinned(&column("x"), &column("y")) {
            // What was just written is JSON.
            mark["x"] = serde_json::from_str(&Column::json(&x)).unwrap_or_default();
            mark["y"] = serde_json::from_str(&Column::json(&y)).unwrap_or_default();
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
pub fn png(figure: &Figure, scale: f64) -> Result<Vec<u8>, String> {
    let (wide, high, pixels) = pixels(figure, scale)?;
    encoded(wide, high, png::ColorType::Rgb, &pixels)
}

/// Figures beside and below each other as one PNG, so many in a row, each in a cell as large as the largest.
///
/// # Errors
/// A sentence, where one cannot be drawn.
pub fn sheet(figures: &[Figure], columns: usize, scale: f64) -> Result<Vec<u8>, String> {
    let all = figures.iter().map(|figure| pixels(figure, scale)).collect::<Result<Vec<_>, String>>()?;
    let columns = columns.clamp(1, 20);
    let cell_wide = all.iter().map(|(wide, ..)| *wide).max().unwrap_or(1);
    let cell_high = all.iter().map(|(_, high, _)| *high).max().unwrap_or(1);
    let (wide, rows) = (cell_wide * columns, all.len().div_ceil(columns));
    if wide * cell_high * rows > 100_000_000 {
        return Err("a sheet of so many figures is too large".to_owned());
    }
    let mut out = vec![255; wide * cell_high * rows * 3];
    for (number, (own, high, pixels)) in all.iter().enumerate() {
        let (left, top) = (number % columns * cell_wide, number / columns * cell_high);
        for (row, line) in pixels.chunks_exact(own * 3).take(*high).enumerate() {
            let at = ((top + row) * wide + left) * 3;
            out[at..at + line.len()].copy_from_slice(line);
        }
    }
    encoded(wide, cell_high * rows, png::ColorType::Rgb, &out)
}

/// A figure as rows of pixels: red, green, blue.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
fn pixels(figure: &Figure, scale: f64) -> Result<(usize, usize, Vec<u8>), String> {
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
    let mut backend = BitMapBackend::with_buffer(&mut fine, size);
    let ready = Ready::new(figure.clone());
    draw(&ready, &View::default(), &mut backend, scale * FINER as f64, &Look::LIGHT)?;
    drop(backend);
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
    Ok((wide, high, pixels))
}

/// Pixels as a PNG.
#[allow(clippy::cast_possible_truncation, reason = "sides are checked before")]
fn encoded(wide: usize, high: usize, color: png::ColorType, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, wide as u32, high as u32);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
    written.map(|()| out).map_err(|error| format!("the picture cannot be written ({error})"))
}

/// A figure as an SVG.
///
/// # Errors
/// A sentence, where it cannot be drawn.
pub fn svg(figure: &Figure) -> Result<String, String> {
    with_font();
    // plotters counts in whole steps: so many to a point keep curves smooth.
    const STEPS: f64 = 20.0;
    let mut svg = svg::Svg::new(figure.width, figure.height, STEPS);
    draw(&Ready::new(figure.clone()), &View::default(), &mut svg, STEPS, &Look::LIGHT)?;
    Ok(svg.finish())
}
