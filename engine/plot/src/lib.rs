//! Figures as data, and the one code that draws them: as PNG, as SVG, and through any backend of `plotters`.
//!
//! It reads no file, writes none and knows no window: a figure goes in, a picture or strokes on a backend come out.

mod colormaps;
mod colour;
mod density;
mod display_hover;
mod display_list;
mod display_prepared;
mod display_raster;
mod display_svg;
mod display_view;
mod downsample;
mod draw;
mod figure;
mod legend;
mod marks;
mod mathtext;
mod painter;
mod plot_rect;
mod prepared;
mod raster_marks;
mod scale;
mod svg_backend;
mod view;

pub use colormaps::{has_map, map_names, map_size};
pub use colour::{PlotTheme, Rgb, colour_at};
pub use display_list::{DisplayList, DisplayListError};
pub use figure::{
    Axes, AxisSpec, Colorbar, FIGURE_MIME, Figure, FigureColumn, FigureColumnError, FigureLegend, FigureMark,
    FigureReadError, MappedValues, MarkKind, RequestedTicks,
};
pub use painter::PlotBackend;
pub use prepared::PreparedFigure;
pub use view::{LegendEntry, NearestPoint, PlacedAxes, PlotView};

use plotters::backend::BitMapBackend;
use std::sync::Once;

/// The family in which all words are set. A backend of its own may set them in what it has.
pub const FIGURE_FONT: &str = "Inter";

/// Why a figure can't be drawn.
#[derive(Debug, thiserror::Error)]
pub enum FigureDrawError {
    /// A sheet would have too many pixels.
    #[error("a sheet of so many figures is too large")]
    SheetTooLarge,
    /// The picture would have too many pixels.
    #[error("a picture of {width} by {height} pixels is too large")]
    PictureTooLarge {
        /// Pixels in a row.
        width: usize,
        /// How many rows.
        height: usize,
    },
    /// Drawing it would take too long.
    #[error("there is too much to draw: its shapes cover its ground too often")]
    TooMuchToDraw,
    /// The pixels can't be written as PNG.
    #[error("the picture cannot be written ({0})")]
    Png(#[from] png::EncodingError),
    /// What the backend says.
    #[error("{0}")]
    Backend(String),
}

/// A figure (JSON) whose lines have no more points than the widest screen shows; anything else stays as it is, also
/// what is no figure.
pub fn downsample_lines(json: &str) -> String {
    let Ok(mut figure) = serde_json::from_str::<serde_json::Value>(json) else { return json.to_owned() };
    let axes = figure["axes"].as_array_mut().into_iter().flatten();
    let marks = axes.filter_map(|axes| axes["marks"].as_array_mut()).flatten();
    for mark in marks.filter(|mark| mark["kind"] == "line" && !mark["y"].is_array()) {
        let column = |name: &str| serde_json::from_value::<FigureColumn>(mark[name].clone()).unwrap_or_default().0;
        if let Some((x, y)) = downsample::downsample_line(&column("x"), &column("y")) {
            // What was just written is JSON.
            mark["x"] = serde_json::from_str(&FigureColumn::to_json(&x)).unwrap_or_default();
            mark["y"] = serde_json::from_str(&FigureColumn::to_json(&y)).unwrap_or_default();
        }
    }
    figure.to_string()
}

/// Draws a figure on a backend that is so many steps to a point large. Gives where its axes stand.
///
/// # Errors
/// What the backend says.
pub fn draw_figure<B: PlotBackend>(
    ready: &PreparedFigure,
    view: &PlotView,
    backend: &mut B,
    steps: f64,
    look: &PlotTheme,
) -> Result<Vec<PlacedAxes>, FigureDrawError> {
    match &ready.display {
        Some(display) => display_view::draw_display(ready, display, view, backend, steps),
        None => draw::draw_marks_figure(ready, view, backend, steps, look),
    }
}

fn register_font() {
    static REGISTER_FONT: Once = Once::new();
    REGISTER_FONT.call_once(|| {
        let bytes = include_bytes!("../../../assets/fonts/Inter-Regular.ttf");
        // The file is ours and is a font.
        let _ = plotters::style::register_font(FIGURE_FONT, plotters::style::FontStyle::Normal, bytes);
    });
}

/// A figure as a PNG, so many pixels to a point.
///
/// # Errors
/// It cannot be drawn.
pub fn render_png(figure: &Figure, scale: f64) -> Result<Vec<u8>, FigureDrawError> {
    let (wide, high, pixels) = rasterize(figure, scale)?;
    encode_png(wide, high, png::ColorType::Rgb, &pixels)
}

/// Figures beside and below each other as one PNG, so many in a row, each in a cell as large as the largest.
///
/// # Errors
/// One cannot be drawn.
pub fn render_png_sheet(figures: &[Figure], columns: usize, scale: f64) -> Result<Vec<u8>, FigureDrawError> {
    let all = figures.iter().map(|figure| rasterize(figure, scale)).collect::<Result<Vec<_>, FigureDrawError>>()?;
    let columns = columns.clamp(1, 20);
    let cell_wide = all.iter().map(|(wide, ..)| *wide).max().unwrap_or(1);
    let cell_high = all.iter().map(|(_, high, _)| *high).max().unwrap_or(1);
    let (wide, rows) = (cell_wide * columns, all.len().div_ceil(columns));
    if wide * cell_high * rows > 100_000_000 {
        return Err(FigureDrawError::SheetTooLarge);
    }
    let mut out = vec![255; wide * cell_high * rows * 3];
    for (number, (own, high, pixels)) in all.iter().enumerate() {
        let (left, top) = (number % columns * cell_wide, number / columns * cell_high);
        for (row, line) in pixels.chunks_exact(own * 3).take(*high).enumerate() {
            let at = ((top + row) * wide + left) * 3;
            out[at..at + line.len()].copy_from_slice(line);
        }
    }
    encode_png(wide, cell_high * rows, png::ColorType::Rgb, &out)
}

/// A figure as rows of pixels: red, green, blue.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
fn rasterize(figure: &Figure, scale: f64) -> Result<(usize, usize, Vec<u8>), FigureDrawError> {
    let scale = scale.clamp(0.25, 8.0);
    if figure.display_list.is_some() {
        return rasterize_display_list(figure, scale);
    }
    register_font();
    // Drawn larger and then made smaller: plotters smooths thin lines only.
    const SUPERSAMPLING: usize = 3;
    let (wide, high) = ((figure.width * scale).ceil() as usize, (figure.height * scale).ceil() as usize);
    if wide * high > 50_000_000 {
        return Err(FigureDrawError::PictureTooLarge { width: wide, height: high });
    }
    let mut fine = vec![255; wide * high * SUPERSAMPLING * SUPERSAMPLING * 3];
    let size = ((wide * SUPERSAMPLING) as u32, (high * SUPERSAMPLING) as u32);
    let mut backend = BitMapBackend::with_buffer(&mut fine, size);
    let ready = PreparedFigure::new(figure.clone());
    draw_figure(&ready, &PlotView::default(), &mut backend, scale * SUPERSAMPLING as f64, &PlotTheme::LIGHT)?;
    drop(backend);
    let mut pixels = Vec::with_capacity(wide * high * 3);
    for y in 0..high {
        for x in 0..wide {
            for channel in 0..3 {
                let mut sum = 0_usize;
                for dy in 0..SUPERSAMPLING {
                    let row = ((y * SUPERSAMPLING + dy) * wide * SUPERSAMPLING + x * SUPERSAMPLING) * 3 + channel;
                    sum += (0..SUPERSAMPLING).map(|dx| usize::from(fine[row + dx * 3])).sum::<usize>();
                }
                pixels.push((sum / (SUPERSAMPLING * SUPERSAMPLING)) as u8);
            }
        }
    }
    Ok((wide, high, pixels))
}

/// A display list as rows of pixels on white paper: red, green, blue.
fn rasterize_display_list(figure: &Figure, scale: f64) -> Result<(usize, usize, Vec<u8>), FigureDrawError> {
    let ready = PreparedFigure::new(figure.clone());
    let Some(display) = &ready.display else { return Ok((1, 1, vec![255; 3])) };
    let size = [figure.width, figure.height];
    let pixmap = display_raster::rasterize_display(display, size, &[], scale, None)?;
    let (wide, high) = (pixmap.width() as usize, pixmap.height() as usize);
    // Colors are multiplied with their opacity: what is missing is the paper.
    let on_paper = |part: u8, alpha: u8| part.saturating_add(255 - alpha);
    let pixels = pixmap.data().as_chunks::<4>().0.iter();
    let pixels = pixels.flat_map(|[red, green, blue, alpha]| [red, green, blue].map(|part| on_paper(*part, *alpha)));
    Ok((wide, high, pixels.collect()))
}

/// Pixels as a PNG.
#[allow(clippy::cast_possible_truncation, reason = "sides are checked before")]
fn encode_png(wide: usize, high: usize, color: png::ColorType, pixels: &[u8]) -> Result<Vec<u8>, FigureDrawError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, wide as u32, high as u32);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels))?;
    Ok(out)
}

/// A figure as an SVG.
///
/// # Errors
/// It cannot be drawn.
pub fn render_svg(figure: &Figure) -> Result<String, FigureDrawError> {
    if figure.display_list.is_some() {
        return display_svg::render_display_svg(&PreparedFigure::new(figure.clone()));
    }
    register_font();
    // plotters counts in whole steps: so many to a point keep curves smooth.
    const SVG_STEPS_PER_POINT: f64 = 20.0;
    let mut svg = svg_backend::SvgBackend::new(figure.width, figure.height, SVG_STEPS_PER_POINT);
    draw_figure(
        &PreparedFigure::new(figure.clone()),
        &PlotView::default(),
        &mut svg,
        SVG_STEPS_PER_POINT,
        &PlotTheme::LIGHT,
    )?;
    Ok(svg.finish())
}
