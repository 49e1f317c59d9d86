//! Writes a display list as SVG. Paths stay vectors, and glyph outlines are defined once.

use crate::FigureDrawError;
use crate::display_list::{
    DisplayColor, DisplayOperation, OperationShape, OutlinePath, PackedFloats, PathStep, ShapeStyle, StrokeCap,
    StrokeJoin,
};
use crate::display_prepared::{PreparedDisplay, mesh_cell};
use crate::display_raster::{MITER_LIMIT, rasterize_display};
use crate::prepared::PreparedFigure;
use base64::Engine;
use std::fmt::Write;

/// Maximum length of an SVG in bytes.
const MAX_SVG_BYTES: usize = 64 << 20;
/// Pixels per point for content that SVG has no shape for.
const PICTURE_SCALE: f64 = 2.0;

/// An SVG under construction.
struct DisplaySvg<'a> {
    ready: &'a PreparedFigure,
    display: &'a PreparedDisplay,
    text: String,
}

/// Formats a number with as few characters as possible.
fn short(number: f32) -> String {
    let text = format!("{number:.3}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Returns the path data, or an empty string if a coordinate isn't finite.
fn path_data(path: &OutlinePath) -> String {
    let mut out = String::new();
    let at = |[x, y]: [f32; 2]| format!("{} {}", short(x), short(y));
    let mut begun = false;
    for step in path.steps() {
        // Writing to a `String` can't fail.
        let _ = match step {
            PathStep::Move(to) => write!(out, "M{}", at(to)),
            PathStep::Line(to) if begun => write!(out, "L{}", at(to)),
            PathStep::Line(to) => write!(out, "M{}", at(to)),
            PathStep::Quad(by, to) if begun => write!(out, "Q{} {}", at(by), at(to)),
            PathStep::Cubic(a, b, to) if begun => write!(out, "C{} {} {}", at(a), at(b), at(to)),
            PathStep::Close if begun => write!(out, "Z"),
            _ => Ok(()),
        };
        begun = !out.is_empty();
    }
    if path.v.0.iter().all(|number| number.is_finite()) { out } else { String::new() }
}

fn color_attributes(name: &str, color: Option<DisplayColor>) -> String {
    match color {
        None => format!(" {name}=\"none\""),
        Some(DisplayColor([red, green, blue, 255])) => format!(" {name}=\"#{red:02x}{green:02x}{blue:02x}\""),
        Some(DisplayColor([red, green, blue, alpha])) => {
            let share = f32::from(alpha) / 255.0;
            format!(" {name}=\"#{red:02x}{green:02x}{blue:02x}\" {name}-opacity=\"{}\"", short(share))
        }
    }
}

fn stroke_attributes(width: f32, dash: &[f32], join: StrokeJoin, cap: StrokeCap) -> String {
    let join = match join {
        StrokeJoin::Miter => "miter",
        StrokeJoin::Round => "round",
        StrokeJoin::Bevel => "bevel",
    };
    let cap = match cap {
        StrokeCap::Butt => "butt",
        StrokeCap::Round => "round",
        StrokeCap::Projecting => "square",
    };
    let mut out = format!(" stroke-width=\"{}\" stroke-linejoin=\"{join}\" stroke-linecap=\"{cap}\"", short(width));
    if join == "miter" {
        // Writing to a `String` can't fail.
        let _ = write!(out, " stroke-miterlimit=\"{MITER_LIMIT}\"");
    }
    if let [offset, pattern @ ..] = dash
        && !pattern.is_empty()
    {
        let pattern: Vec<String> = pattern.iter().map(|part| short(*part)).collect();
        // Writing to a `String` can't fail.
        let _ = write!(out, " stroke-dasharray=\"{}\" stroke-dashoffset=\"{}\"", pattern.join(","), short(*offset));
    }
    out
}

/// Renders a figure's display list as SVG.
pub(crate) fn render_display_svg(ready: &PreparedFigure) -> Result<String, FigureDrawError> {
    let Some(display) = &ready.display else { return Ok(String::new()) };
    let mut svg = DisplaySvg { ready, display, text: String::new() };
    let (width, height) = (ready.figure.width, ready.figure.height);
    svg.append(format_args!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"
    ))?;
    svg.define()?;
    for number in 0..display.list.ops.len() {
        svg.draw(number)?;
    }
    svg.append(format_args!("</svg>\n"))?;
    Ok(svg.text)
}

impl DisplaySvg<'_> {
    fn append(&mut self, words: std::fmt::Arguments<'_>) -> Result<(), FigureDrawError> {
        // Writing to a `String` can't fail.
        let _ = self.text.write_fmt(words);
        if self.text.len() > MAX_SVG_BYTES { Err(FigureDrawError::TooMuchToDraw) } else { Ok(()) }
    }

    /// Writes the definitions that shapes refer to: glyphs, clips and hatches.
    fn define(&mut self) -> Result<(), FigureDrawError> {
        let list = &self.display.list;
        self.append(format_args!("<defs>\n"))?;
        for (number, glyph) in list.glyphs.iter().enumerate() {
            self.append(format_args!("<path id=\"g{number}\" d=\"{}\"/>\n", path_data(glyph)))?;
        }
        for (number, clip) in list.clips.iter().enumerate() {
            let outer =
                clip.rect.filter(|_| !clip.path.v.0.is_empty()).map(|_| format!(" clip-path=\"url(#r{number})\""));
            if let Some([left, top, right, bottom]) = clip.rect {
                let name = if outer.is_some() { "r" } else { "c" };
                let (wide, high) = ((right - left).max(0.0), (bottom - top).max(0.0));
                self.append(format_args!(
                    "<clipPath id=\"{name}{number}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
                    short(left),
                    short(top),
                    short(wide),
                    short(high)
                ))?;
            }
            if !clip.path.v.0.is_empty() {
                let (outer, path) = (outer.unwrap_or_default(), path_data(&clip.path));
                self.append(format_args!("<clipPath id=\"c{number}\"{outer}><path d=\"{path}\"/></clipPath>\n"))?;
            }
        }
        #[allow(clippy::cast_possible_truncation, reason = "pixels")]
        let inch = list.dpi as f32;
        for (number, hatch) in list.hatches.iter().enumerate() {
            let (path, size) = (path_data(&hatch.path), short(inch));
            let color = color_attributes("fill", Some(hatch.color)) + &color_attributes("stroke", Some(hatch.color));
            let width = short(if inch > 0.0 { hatch.width / inch } else { 0.0 });
            self.append(format_args!(
                "<pattern id=\"h{number}\" patternUnits=\"userSpaceOnUse\" width=\"{size}\" height=\"{size}\">\
                 <path transform=\"translate(0 {size}) scale({size} -{size})\" d=\"{path}\"{color} \
                 stroke-width=\"{width}\" stroke-linecap=\"square\"/></pattern>\n"
            ))?;
        }
        self.append(format_args!("</defs>\n"))
    }

    fn draw(&mut self, number: usize) -> Result<(), FigureDrawError> {
        let display = self.display;
        let operation = &display.list.ops[number];
        let clip = operation.clip.filter(|clip| *clip < display.list.clips.len());
        let clip = clip.map(|clip| format!(" clip-path=\"url(#c{clip})\"")).unwrap_or_default();
        let edges = if operation.aa == Some(false) { " shape-rendering=\"crispEdges\"" } else { "" };
        match &operation.shape {
            OperationShape::Path { path, style } => {
                let data = path_data(path);
                if data.is_empty() {
                    return Ok(());
                }
                if let Some(hatch) = style.hatch.filter(|hatch| *hatch < display.list.hatches.len()) {
                    let fill = color_attributes("fill", style.fill);
                    self.append(format_args!("<path d=\"{data}\"{fill}{clip}{edges}/>\n"))?;
                    let stroke = styled(&ShapeStyle { fill: None, ..style.clone() });
                    self.append(format_args!("<path d=\"{data}\" fill=\"url(#h{hatch})\"{clip}/>\n"))?;
                    return self.append(format_args!("<path d=\"{data}\"{stroke}{clip}{edges}/>\n"));
                }
                self.append(format_args!("<path d=\"{data}\"{}{clip}{edges}/>\n", styled(style)))
            }
            OperationShape::Markers { path, at, style } => {
                self.append(format_args!(
                    "<g{clip}{edges}><defs><path id=\"m{number}\" d=\"{}\"{}/></defs>\n",
                    path_data(path),
                    styled(style)
                ))?;
                for [x, y] in at.points().iter().filter(|at| at.iter().all(|side| side.is_finite())) {
                    let (x, y) = (short(*x), short(*y));
                    self.append(format_args!("<use xlink:href=\"#m{number}\" x=\"{x}\" y=\"{y}\"/>\n"))?;
                }
                self.append(format_args!("</g>\n"))
            }
            OperationShape::Collection { .. } => self.draw_collection(operation, &clip, edges),
            OperationShape::Mesh { columns, v, fills, edges: lines, width } => {
                self.append(format_args!("<g{clip} shape-rendering=\"crispEdges\">\n"))?;
                for (cell, color) in fills.0.iter().enumerate() {
                    let Some(corners) = mesh_cell(v.points(), *columns, cell) else { continue };
                    let path = OutlinePath { v: PackedFloats(corners.concat()), ..OutlinePath::default() };
                    let style = ShapeStyle {
                        fill: Some(DisplayColor(*color)),
                        edge: lines.cycled(cell),
                        width: *width,
                        ..ShapeStyle::default()
                    };
                    self.append(format_args!("<path d=\"{}Z\"{}/>\n", path_data(&path), styled(&style)))?;
                }
                self.append(format_args!("</g>\n"))
            }
            OperationShape::Image { png, xs, ys, grid: false } if display.images[number].is_some() => {
                let ([left, .., right], [top, .., bottom]) = (&xs.0[..], &ys.0[..]) else { return Ok(()) };
                let data = base64::engine::general_purpose::STANDARD.encode(&png.0);
                let place = [*left, *top, right - left, bottom - top];
                self.image(&data, place, &clip, "")
            }
            OperationShape::Image { .. } | OperationShape::Gouraud { .. } => self.draw_as_picture(number),
            OperationShape::Text { at, size, color, glyphs, boxes, angle, text } => {
                let words: String = text.chars().filter(|letter| !letter.is_control()).collect();
                let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let fill = color_attributes("fill", Some(*color));
                let [x, y] = at.map(short);
                let turn = if *angle == 0.0 { String::new() } else { format!(" rotate({})", short(-angle)) };
                let size = format!("{size:.5}");
                self.append(format_args!(
                    "<g{fill}{clip} transform=\"translate({x} {y}){turn} scale({size} -{size})\"><title>{words}</title>"
                ))?;
                for [glyph, x, y, size] in glyphs.0.as_chunks::<4>().0 {
                    if display.list.glyph(*glyph).is_some() {
                        let scale = if *size == 1.0 { String::new() } else { format!(" scale({})", short(*size)) };
                        let (x, y) = (short(*x), short(*y));
                        self.append(format_args!(
                            "<use xlink:href=\"#g{glyph}\" transform=\"translate({x} {y}){scale}\"/>"
                        ))?;
                    }
                }
                for [left, bottom, width, height] in boxes.0.as_chunks::<4>().0 {
                    let [x, y, wide, high] = [left, bottom, width, height].map(|side| short(*side));
                    self.append(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\"/>"))?;
                }
                self.append(format_args!("</g>\n"))
            }
            OperationShape::Unknown => Ok(()),
        }
    }

    fn draw_collection(
        &mut self,
        operation: &DisplayOperation,
        clip: &str,
        smooth: &str,
    ) -> Result<(), FigureDrawError> {
        let OperationShape::Collection {
            path, at, count, turns, sizes, fills, edges, widths, dashes, join, cap, ..
        } = &operation.shape
        else {
            return Ok(());
        };
        let (places, turns) = (at.points(), turns.0.as_chunks::<6>().0);
        if places.is_empty() || turns.is_empty() {
            return Ok(());
        }
        self.append(format_args!("<g{clip}{smooth}>\n"))?;
        for item in 0..*count {
            let [x, y] = places[item % places.len()];
            let size = if sizes.0.is_empty() { 1.0 } else { sizes.0[item % sizes.0.len()] };
            let [a, b, c, d, e, f] = turns[item % turns.len()].map(|part| part * size);
            if !(x.is_finite() && y.is_finite()) {
                continue;
            }
            let map = |[px, py]: [f32; 2]| [a * px + c * py + e + x, b * px + d * py + f + y];
            let placed: Vec<f32> = path.v.points().iter().flat_map(|at| map(*at)).collect();
            let placed = OutlinePath { v: PackedFloats(placed), c: path.c.clone() };
            let style = ShapeStyle {
                fill: fills.cycled(item),
                edge: edges.cycled(item),
                width: if widths.0.is_empty() { 0.0 } else { widths.0[item % widths.0.len()] },
                dash: if dashes.is_empty() { Vec::new() } else { dashes[item % dashes.len()].clone() },
                join: *join,
                cap: *cap,
                hatch: None,
            };
            self.append(format_args!("<path d=\"{}\"{}/>\n", path_data(&placed), styled(&style)))?;
        }
        self.append(format_args!("</g>\n"))
    }

    /// Draws an operation that SVG has no shape for as an image.
    fn draw_as_picture(&mut self, number: usize) -> Result<(), FigureDrawError> {
        let size = [self.ready.figure.width, self.ready.figure.height];
        let pixmap = rasterize_display(self.display, size, &[], PICTURE_SCALE, Some(number))?;
        let (wide, high) = (pixmap.width() as usize, pixmap.height() as usize);
        let seen = |pixel: &tiny_skia::PremultipliedColorU8| pixel.alpha() > 0;
        let rows: Vec<&[tiny_skia::PremultipliedColorU8]> = pixmap.pixels().chunks_exact(wide).collect();
        let used = |row: &&&[tiny_skia::PremultipliedColorU8]| row.iter().any(seen);
        let Some(top) = rows.iter().position(|row| used(&row)) else { return Ok(()) };
        let bottom = rows.iter().rposition(|row| used(&row)).map_or(high, |row| row + 1);
        let left = rows.iter().filter_map(|row| row.iter().position(seen)).min().unwrap_or(0);
        let right = rows.iter().filter_map(|row| row.iter().rposition(seen)).max().map_or(wide, |column| column + 1);
        let pixels = rows[top..bottom].iter().flat_map(|row| &row[left..right]).flat_map(|pixel| {
            let color = pixel.demultiply();
            [color.red(), color.green(), color.blue(), color.alpha()]
        });
        let pixels: Vec<u8> = pixels.collect();
        let png = crate::encode_png(right - left, bottom - top, png::ColorType::Rgba, &pixels)?;
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        #[allow(clippy::cast_possible_truncation, reason = "pixels")]
        let place = [left, top, right - left, bottom - top].map(|side| (side as f64 / PICTURE_SCALE) as f32);
        self.image(&data, place, "", " image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\"")
    }

    fn image(&mut self, png: &str, place: [f32; 4], clip: &str, more: &str) -> Result<(), FigureDrawError> {
        if !place.iter().all(|side| side.is_finite()) || place[2] <= 0.0 || place[3] <= 0.0 {
            return Ok(());
        }
        let [x, y, wide, high] = place.map(short);
        self.append(format_args!(
            "<g{clip}><image x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" preserveAspectRatio=\"none\"{more} \
             xlink:href=\"data:image/png;base64,{png}\"/></g>\n"
        ))
    }
}

fn styled(style: &ShapeStyle) -> String {
    let mut out = color_attributes("fill", style.fill);
    if let Some(edge) = style.edge {
        out += &color_attributes("stroke", Some(edge));
        out += &stroke_attributes(style.width, &style.dash, style.join, style.cap);
    }
    out
}
