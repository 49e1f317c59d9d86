//! A backend that writes SVG: shapes and text with coordinates in points, and images as embedded PNG.

use crate::colour::Rgb;
use crate::painter::PlotBackend;
use base64::Engine;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;
use std::fmt::Write;

type SvgResult = Result<(), DrawingErrorKind<Infallible>>;

/// An SVG under construction.
pub(crate) struct SvgBackend {
    size: (f64, f64),
    steps: f64,
    text: String,
}

impl SvgBackend {
    /// Creates an SVG with a size in points and `steps` steps per point.
    pub(crate) fn new(width: f64, height: f64, steps: f64) -> SvgBackend {
        SvgBackend { size: (width, height), steps, text: String::new() }
    }

    /// Returns the complete SVG file.
    pub(crate) fn finish(self) -> String {
        let (width, height) = self.size;
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n{}</svg>\n",
            self.text
        )
    }

    fn append(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a `String` can't fail.
        let _ = self.text.write_fmt(words);
    }

    /// Formats a length given in steps as points, with as few characters as possible.
    fn format_length(&self, steps: f64) -> String {
        let text = format!("{:.2}", steps / self.steps);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    fn format_points(&self, path: impl IntoIterator<Item = BackendCoord>) -> String {
        let mut out = String::new();
        for (x, y) in path {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&self.format_length(f64::from(x)));
            out.push(',');
            out.push_str(&self.format_length(f64::from(y)));
        }
        out
    }
}

fn hex_colour((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn opacity_attribute(alpha: f64, name: &str) -> String {
    if alpha >= 1.0 { String::new() } else { format!(" {name}=\"{:.3}\"", alpha.max(0.0)) }
}

fn fill_attributes(color: BackendColor) -> String {
    format!("fill=\"{}\"{}", hex_colour(color.rgb), opacity_attribute(color.alpha, "fill-opacity"))
}

impl SvgBackend {
    fn stroke_attributes<S: BackendStyle>(&self, style: &S) -> String {
        let color = style.color();
        format!(
            "fill=\"none\" stroke=\"{}\"{} stroke-width=\"{}\"",
            hex_colour(color.rgb),
            opacity_attribute(color.alpha, "stroke-opacity"),
            self.format_length(f64::from(style.stroke_width()))
        )
    }

    fn shape_attributes<S: BackendStyle>(&self, style: &S, filled: bool) -> String {
        if filled { fill_attributes(style.color()) } else { self.stroke_attributes(style) }
    }
}

impl DrawingBackend for SvgBackend {
    type ErrorType = Infallible;

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
    fn get_size(&self) -> (u32, u32) {
        ((self.size.0 * self.steps) as u32, (self.size.1 * self.steps) as u32)
    }

    fn ensure_prepared(&mut self) -> SvgResult {
        Ok(())
    }

    fn present(&mut self) -> SvgResult {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, of: BackendColor) -> SvgResult {
        let (x, y, one) = (self.format_length(at.0.into()), self.format_length(at.1.into()), self.format_length(1.0));
        self.append(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{one}\" height=\"{one}\" {}/>\n",
            fill_attributes(of)
        ));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> SvgResult {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S, filled: bool) -> SvgResult {
        let (x, y) = (self.format_length(a.0.into()), self.format_length(a.1.into()));
        let (wide, high) = (self.format_length((b.0 - a.0).into()), self.format_length((b.1 - a.1).into()));
        let shape = self.shape_attributes(style, filled);
        self.append(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" {shape}/>\n"));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> SvgResult {
        let (points, stroke) = (self.format_points(path), self.stroke_attributes(style));
        self.append(format_args!("<polyline {stroke} stroke-linejoin=\"round\" points=\"{points}\"/>\n"));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        filled: bool,
    ) -> SvgResult {
        let (x, y, r) = (
            self.format_length(centre.0.into()),
            self.format_length(centre.1.into()),
            self.format_length(radius.into()),
        );
        let shape = self.shape_attributes(style, filled);
        self.append(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {shape}/>\n"));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> SvgResult {
        let (points, fill) = (self.format_points(corners), fill_attributes(style.color()));
        self.append(format_args!("<polygon {fill} points=\"{points}\"/>\n"));
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> SvgResult {
        let (x, y) = (self.format_length(at.0.into()), self.format_length(at.1.into()));
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // Capital letters are 0.73 em high.
        let down = match style.anchor().v_pos {
            VPos::Top => "0.85em",
            VPos::Center => "0.36em",
            VPos::Bottom => "-0.22em",
        };
        let turn = match style.transform() {
            FontTransform::Rotate270 => format!(" transform=\"rotate(270 {x} {y})\""),
            _ => String::new(),
        };
        let (size, ink) = (self.format_length(style.size() / 1.24), fill_attributes(style.color()));
        let words = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let words: String = words.chars().filter(|letter| !letter.is_control()).collect();
        self.append(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{anchor}\" \
             font-family=\"Inter, sans-serif\" font-size=\"{size}\" {ink}{turn}>{words}</text>\n"
        ));
        Ok(())
    }
}

impl PlotBackend for SvgBackend {
    fn draw_pixels(&mut self, a: BackendCoord, b: BackendCoord, columns: usize, rows: usize, bytes: &[u8]) -> bool {
        let Ok(png) = crate::encode_png(columns, rows, png::ColorType::Rgba, bytes) else { return false };
        let (x, y) = (self.format_length(a.0.into()), self.format_length(a.1.into()));
        let (wide, high) = (self.format_length((b.0 - a.0).into()), self.format_length((b.1 - a.1).into()));
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        self.append(format_args!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" preserveAspectRatio=\"none\" \
             image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\" \
             xlink:href=\"data:image/png;base64,{data}\"/>\n"
        ));
        true
    }

    fn fill_tile(&mut self, corners: &[BackendCoord], color: BackendColor) -> bool {
        let (points, fill) = (self.format_points(corners.iter().copied()), fill_attributes(color));
        // A hairline in the same color closes the seam to the adjacent tile.
        let line = hex_colour(color.rgb);
        self.append(format_args!("<polygon {fill} stroke=\"{line}\" stroke-width=\"0.3\" points=\"{points}\"/>\n"));
        true
    }
}
