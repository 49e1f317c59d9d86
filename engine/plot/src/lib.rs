//! Figures as data, and the code that draws them: as PNG, as SVG, and on any `plotters` backend.
//!
//! It accesses no files and knows no windows: it takes a figure and returns an image, or draws on a backend.

mod colormaps;
mod colour;
mod density;
mod display_hover;
mod display_list;
mod display_prepared;
mod display_raster;
mod display_reach;
mod display_svg;
mod display_view;
mod downsample;
mod draw;
mod figure;
mod figure_bounds;
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

/// Font family of all text. Other backends may use a different font.
pub const FIGURE_FONT: &str = "Inter";

/// Error from drawing a figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureDrawError {
    /// The sheet would have too many pixels.
    #[error("a sheet of so many figures is too large")]
    SheetTooLarge,
    /// The image would have too many pixels.
    #[error("a picture of {width} by {height} pixels is too large")]
    PictureTooLarge {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// Drawing it would take too long.
    #[error("there is too much to draw")]
    TooMuchToDraw,
    /// The image can't be encoded as PNG.
    #[error("the picture cannot be written ({0})")]
    Png(#[from] png::EncodingError),
    /// An error from the backend.
    #[error("{0}")]
    Backend(String),
}

/// Downsamples the lines of a figure (JSON) to the number of points that the widest screen shows.
///
/// Anything else stays unchanged, including text that isn't a figure.
pub fn downsample_lines(json: &str) -> String {
    let Ok(mut figure) = serde_json::from_str::<serde_json::Value>(json) else { return json.to_owned() };
    let axes = figure["axes"].as_array_mut().into_iter().flatten();
    let marks = axes.filter_map(|axes| axes["marks"].as_array_mut()).flatten();
    for mark in marks.filter(|mark| mark["kind"] == "line" && !mark["y"].is_array()) {
        let column = |name: &str| serde_json::from_value::<FigureColumn>(mark[name].clone()).unwrap_or_default().0;
        if let Some((x, y)) = downsample::downsample_line(&column("x"), &column("y")) {
            // `to_json` always returns valid JSON.
            mark["x"] = serde_json::from_str(&FigureColumn::to_json(&x)).unwrap_or_default();
            mark["y"] = serde_json::from_str(&FigureColumn::to_json(&y)).unwrap_or_default();
        }
    }
    figure.to_string()
}

/// Draws a figure on a backend with `steps` steps per point. Returns the positions of the axes.
///
/// # Errors
/// Returns an error if the backend fails, the image would be too large, or drawing it would take too long.
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
        // The bundled file is a valid font.
        let _ = plotters::style::register_font(FIGURE_FONT, plotters::style::FontStyle::Normal, bytes);
    });
}

/// Renders a figure as PNG with `scale` pixels per point.
///
/// # Errors
/// Returns an error if the figure can't be drawn or is too large.
pub fn render_png(figure: &Figure, scale: f64) -> Result<Vec<u8>, FigureDrawError> {
    let (wide, high, pixels) = rasterize(figure, scale)?;
    encode_png(wide, high, png::ColorType::Rgb, &pixels)
}

/// Renders a prepared figure with `scale` pixels per point. Returns width, height and rows of RGB pixels.
///
/// # Errors
/// Returns an error if the figure can't be drawn or is too large.
pub fn render_pixels(ready: &PreparedFigure, scale: f64) -> Result<(usize, usize, Vec<u8>), FigureDrawError> {
    match ready.display.is_some() {
        true => rasterize_display_list(ready, scale.clamp(0.25, 8.0)),
        false => rasterize(&ready.figure, scale),
    }
}

/// Renders several figures as one PNG in a grid with `columns` columns. Each cell is as large as the largest figure.
///
/// # Errors
/// Returns an error if a figure can't be drawn, or the image is too large.
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

/// Rasterizes a figure into rows of RGB pixels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
fn rasterize(figure: &Figure, scale: f64) -> Result<(usize, usize, Vec<u8>), FigureDrawError> {
    let scale = scale.clamp(0.25, 8.0);
    if figure.display_list.is_some() {
        return rasterize_display_list(&PreparedFigure::new(figure.clone()), scale);
    }
    register_font();
    // Drawn at a larger size and scaled down, because plotters antialiases only thin lines.
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

/// Rasterizes a display list into rows of RGB pixels on a white background.
fn rasterize_display_list(ready: &PreparedFigure, scale: f64) -> Result<(usize, usize, Vec<u8>), FigureDrawError> {
    let Some(display) = &ready.display else { return Ok((1, 1, vec![255; 3])) };
    let size = [ready.figure.width, ready.figure.height];
    let pixmap = display_raster::rasterize_display(display, size, &[], scale, None)?;
    let (wide, high) = (pixmap.width() as usize, pixmap.height() as usize);
    // Colors are premultiplied, so adding the missing opacity blends them with white.
    let on_paper = |part: u8, alpha: u8| part.saturating_add(255 - alpha);
    let pixels = pixmap.data().as_chunks::<4>().0.iter();
    let pixels = pixels.flat_map(|[red, green, blue, alpha]| [red, green, blue].map(|part| on_paper(*part, *alpha)));
    Ok((wide, high, pixels.collect()))
}

/// Encodes pixels as PNG.
#[allow(clippy::cast_possible_truncation, reason = "sides are checked before")]
fn encode_png(wide: usize, high: usize, color: png::ColorType, pixels: &[u8]) -> Result<Vec<u8>, FigureDrawError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, wide as u32, high as u32);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels))?;
    Ok(out)
}

/// Renders a figure as SVG.
///
/// # Errors
/// Returns an error if the figure can't be drawn.
pub fn render_svg(figure: &Figure) -> Result<String, FigureDrawError> {
    if figure.display_list.is_some() {
        return display_svg::render_display_svg(&PreparedFigure::new(figure.clone()));
    }
    register_font();
    // plotters uses integer coordinates; this many steps per point keep curves smooth.
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
