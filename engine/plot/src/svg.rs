//! A backend that writes SVG: shapes and words, coordinates in points, images as PNG within.

use crate::colour::Rgb;
use crate::pen::Surface;
use base64::Engine;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;
use std::fmt::Write;

type Done = Result<(), DrawingErrorKind<Infallible>>;

/// An SVG that is being written.
pub(crate) struct Svg {
    size: (f64, f64),
    steps: f64,
    text: String,
}

impl Svg {
    /// A picture so large, so many steps to a point.
    pub(crate) fn new(width: f64, height: f64, steps: f64) -> Svg {
        Svg { size: (width, height), steps, text: String::new() }
    }

    /// The whole file.
    pub(crate) fn finish(self) -> String {
        let (width, height) = self.size;
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n{}</svg>\n",
            self.text
        )
    }

    fn put(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(words);
    }

    /// Steps in points, with as few letters as it takes.
    fn long(&self, steps: f64) -> String {
        let text = format!("{:.2}", steps / self.steps);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    fn points(&self, path: impl IntoIterator<Item = BackendCoord>) -> String {
        let mut out = String::new();
        for (x, y) in path {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&self.long(f64::from(x)));
            out.push(',');
            out.push_str(&self.long(f64::from(y)));
        }
        out
    }
}

fn colour((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn opacity(alpha: f64, name: &str) -> String {
    if alpha >= 1.0 { String::new() } else { format!(" {name}=\"{:.3}\"", alpha.max(0.0)) }
}

fn fill(color: BackendColor) -> String {
    format!("fill=\"{}\"{}", colour(color.rgb), opacity(color.alpha, "fill-opacity"))
}

impl Svg {
    fn stroke<S: BackendStyle>(&self, style: &S) -> String {
        let color = style.color();
        format!(
            "fill=\"none\" stroke=\"{}\"{} stroke-width=\"{}\"",
            colour(color.rgb),
            opacity(color.alpha, "stroke-opacity"),
            self.long(f64::from(style.stroke_width()))
        )
    }

    fn shape<S: BackendStyle>(&self, style: &S, filled: bool) -> String {
        if filled { fill(style.color()) } else { self.stroke(style) }
    }
}

impl DrawingBackend for Svg {
    type ErrorType = Infallible;

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the size is checked when it is read")]
    fn get_size(&self) -> (u32, u32) {
        ((self.size.0 * self.steps) as u32, (self.size.1 * self.steps) as u32)
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, of: BackendColor) -> Done {
        let (x, y, one) = (self.long(at.0.into()), self.long(at.1.into()), self.long(1.0));
        self.put(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{one}\" height=\"{one}\" {}/>\n", fill(of)));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Done {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S, filled: bool) -> Done {
        let (x, y) = (self.long(a.0.into()), self.long(a.1.into()));
        let (wide, high) = (self.long((b.0 - a.0).into()), self.long((b.1 - a.1).into()));
        let shape = self.shape(style, filled);
        self.put(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" {shape}/>\n"));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Done {
        let (points, stroke) = (self.points(path), self.stroke(style));
        self.put(format_args!("<polyline {stroke} stroke-linejoin=\"round\" points=\"{points}\"/>\n"));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, centre: BackendCoord, radius: u32, style: &S, filled: bool) -> Done {
        let (x, y, r) = (self.long(centre.0.into()), self.long(centre.1.into()), self.long(radius.into()));
        let shape = self.shape(style, filled);
        self.put(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {shape}/>\n"));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, corners: I, style: &S) -> Done {
        let (points, fill) = (self.points(corners), fill(style.color()));
        self.put(format_args!("<polygon {fill} points=\"{points}\"/>\n"));
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> Done {
        let (x, y) = (self.long(at.0.into()), self.long(at.1.into()));
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // The height of capital letters is 0.73 em.
        let down = match style.anchor().v_pos {
            VPos::Top => "0.85em",
            VPos::Center => "0.36em",
            VPos::Bottom => "-0.22em",
        };
        let turn = match style.transform() {
            FontTransform::Rotate270 => format!(" transform=\"rotate(270 {x} {y})\""),
            _ => String::new(),
        };
        let (size, ink) = (self.long(style.size() / 1.24), fill(style.color()));
        let words = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let words: String = words.chars().filter(|letter| !letter.is_control()).collect();
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{anchor}\" \
             font-family=\"Inter, sans-serif\" font-size=\"{size}\" {ink}{turn}>{words}</text>\n"
        ));
        Ok(())
    }
}

impl Surface for Svg {
    fn pixels(&mut self, a: BackendCoord, b: BackendCoord, columns: usize, rows: usize, bytes: &[u8]) -> bool {
        let Ok(png) = crate::encoded(columns, rows, png::ColorType::Rgba, bytes) else { return false };
        let (x, y) = (self.long(a.0.into()), self.long(a.1.into()));
        let (wide, high) = (self.long((b.0 - a.0).into()), self.long((b.1 - a.1).into()));
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        self.put(format_args!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" preserveAspectRatio=\"none\" \
             image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\" \
             xlink:href=\"data:image/png;base64,{data}\"/>\n"
        ));
        true
    }

    fn tile(&mut self, corners: &[BackendCoord], color: BackendColor) -> bool {
        let (points, fill) = (self.points(corners.iter().copied()), fill(color));
        // A hairline of its own colour closes the seam to its neighbour.
        let line = colour(color.rgb);
        self.put(format_args!("<polygon {fill} stroke=\"{line}\" stroke-width=\"0.3\" points=\"{points}\"/>\n"));
        true
    }
}
