//! Drawings as vectors: SVG is read, measured, made into pixels, or written again with nothing in it that acts. An SVG
//! is not trusted: it reaches no file and no address, and what would grow without end is refused. Reading and drawing
//! may still take seconds: callers give it a thread and a limit.

use crate::fonts::{FontSet, TEXT_FONT_FAMILY};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, ImageHrefResolver, Options, Tree, roxmltree};
use std::collections::{HashMap, HashSet};

/// A longer SVG is not read, in bytes.
const MAX_SVG_BYTES: usize = 8 << 20;
/// An SVG that comes to more elements than this is refused.
const MAX_SVG_ELEMENTS: u64 = 100_000;
/// No picture has more pixels.
const MAX_RASTER_PIXELS: u64 = 24 << 20;

/// A vector drawing: shapes and text.
pub struct VectorDrawing {
    pub(crate) tree: Tree,
    /// Its own width, in points.
    pub width: f32,
    /// Its own height, in points.
    pub height: f32,
}

/// A drawing as pixels: four bytes each, red, green, blue and opacity, the colours multiplied by it.
pub struct DrawingPixels {
    /// Pixels in a row.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// RGBA with premultiplied alpha, row by row.
    pub bytes: Vec<u8>,
}

/// Why an SVG isn't drawn: a sentence's end ("…: why").
#[derive(Debug, thiserror::Error)]
pub enum SvgReadError {
    /// It exceeds the limit of size.
    #[error("it is longer than {} MB", MAX_SVG_BYTES >> 20)]
    TooLong,
    /// It is not XML.
    #[error(transparent)]
    Xml(#[from] roxmltree::Error),
    /// With what it repeats, it has too many elements.
    #[error("it comes to more than {MAX_SVG_ELEMENTS} elements")]
    TooManyElements,
    /// It is XML, but no drawing.
    #[error(transparent)]
    Svg(#[from] usvg::Error),
}

impl VectorDrawing {
    /// Reads an SVG.
    ///
    /// # Errors
    /// It cannot be read or is too large.
    pub fn from_svg(svg: &str, fonts: &FontSet) -> Result<VectorDrawing, SvgReadError> {
        if svg.len() > MAX_SVG_BYTES {
            return Err(SvgReadError::TooLong);
        }
        let options = Options {
            font_family: TEXT_FONT_FAMILY.to_owned(),
            fontdb: fonts.db.clone(),
            image_href_resolver: ImageHrefResolver {
                resolve_data: ImageHrefResolver::default_data_resolver(),
                // By default names of files are opened.
                resolve_string: Box::new(|_, _| None),
            },
            ..Options::default()
        };
        let xml = roxmltree::ParsingOptions { allow_dtd: true, nodes_limit: 1_000_000, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(svg, xml)?;
        if count_elements(&document) > MAX_SVG_ELEMENTS {
            return Err(SvgReadError::TooManyElements);
        }
        let tree = Tree::from_xmltree(&document, &options)?;
        let size = tree.size();
        Ok(VectorDrawing { width: size.width(), height: size.height(), tree })
    }

    /// Draws it, so many pixels to a point; smaller where that would be too many.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "sides are checked"
    )]
    pub fn rasterize(&self, scale: f32) -> Option<DrawingPixels> {
        let area = self.width * self.height * scale * scale;
        let scale =
            if area > MAX_RASTER_PIXELS as f32 { scale * (MAX_RASTER_PIXELS as f32 / area).sqrt() } else { scale };
        let (width, height) = ((self.width * scale).ceil(), (self.height * scale).ceil());
        if !(1.0..=20_000.0).contains(&width) || !(1.0..=20_000.0).contains(&height) {
            return None;
        }
        let mut pixels = Pixmap::new(width as u32, height as u32)?;
        resvg::render(&self.tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        Some(DrawingPixels { width: pixels.width(), height: pixels.height(), bytes: pixels.take() })
    }

    /// It as SVG again, with shapes and words alone: no links, no scripts, no addresses.
    /// `prefix` begins all names in it.
    pub fn to_safe_svg(&self, prefix: &str) -> String {
        let id_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
        let indent = usvg::Indent::None;
        let options = usvg::WriteOptions { id_prefix, preserve_text: true, indent, ..Default::default() };
        self.tree.to_string(&options)
    }
}

/// How many elements an SVG comes to when every reference is followed: a few lines can stand for a billion.
fn count_elements(document: &roxmltree::Document<'_>) -> u64 {
    let ids: HashMap<&str, roxmltree::NodeId> =
        document.descendants().filter_map(|node| Some((node.attribute("id")?, node.id()))).collect();
    let mut known: HashMap<roxmltree::NodeId, u64> = HashMap::new();
    // Children before parents where no reference leads elsewhere; a few rounds let references settle.
    let mut above: HashSet<roxmltree::NodeId> = HashSet::new();
    // A stack of its own: a document may be nested deeper than the thread's is long.
    let mut stack = vec![(document.root(), false)];
    while let Some((node, done)) = stack.pop() {
        if known.contains_key(&node.id()) {
            continue;
        }
        let referred = || {
            let names = node.attributes().filter_map(|attribute| {
                let value = attribute.value().trim();
                let name = match attribute.name() {
                    "href" => value.strip_prefix('#'),
                    _ => value.split_once("url(#").and_then(|(_, rest)| rest.split(')').next()),
                };
                name.map(|name| name.trim_matches(['"', '\'']))
            });
            names.filter_map(|name| document.get_node(*ids.get(name)?)).collect::<Vec<_>>()
        };
        if done {
            let weigh = |node: roxmltree::Node<'_, '_>| known.get(&node.id()).copied().unwrap_or(1);
            let children = node.children().map(weigh).fold(0_u64, u64::saturating_add);
            // A marker is drawn at every corner of a path; a pattern is drawn once.
            let corners = match node.attribute("marker-mid") {
                Some(_) => node.attribute("d").map_or(1, |d| d.matches(char::is_whitespace).count() as u64 + 1),
                None => 1,
            };
            let others = referred().into_iter().map(weigh).fold(0_u64, u64::saturating_add);
            above.remove(&node.id());
            known.insert(node.id(), children.saturating_add(others.saturating_mul(corners)).saturating_add(1));
            continue;
        }
        if !above.insert(node.id()) {
            continue;
        }
        stack.push((node, true));
        stack.extend(
            node.children().chain(referred()).filter(|node| !above.contains(&node.id())).map(|node| (node, false)),
        );
    }
    known.get(&document.root().id()).copied().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
                        width=\"20\" height=\"10\">";

    fn read(body: &str) -> Result<VectorDrawing, SvgReadError> {
        VectorDrawing::from_svg(&format!("{HEAD}{body}</svg>"), &FontSet::bundled())
    }

    #[test]
    fn drawings_become_pixels() {
        let drawing = read("<rect width=\"20\" height=\"10\" fill=\"#f00\"/>").expect("a drawing");
        let raster = drawing.rasterize(2.0).expect("pixels");
        assert_eq!((raster.width, raster.height), (40, 20));
        assert_eq!(raster.bytes[..4], [255, 0, 0, 255]);
        assert!(drawing.rasterize(0.0).is_none() && drawing.rasterize(f32::NAN).is_none());
        assert!(drawing.rasterize(1e6).is_none_or(|raster| raster.bytes.len() < 200 << 20));
    }

    #[test]
    fn nothing_acts_and_nothing_is_reached() {
        let secret = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/window.png");
        let drawing = read(&format!(
            "<script>alert(1)</script><a href=\"javascript:alert(1)\"><text y=\"9\">words</text></a>\
             <image href=\"{}\" width=\"9\" height=\"9\"/><image href=\"https://example.org/x.png\"/>\
             <rect width=\"5\" height=\"5\" onload=\"alert(1)\"/>",
            secret.display()
        ));
        let plain = drawing.expect("a drawing").to_safe_svg("");
        for part in ["script", "alert", "javascript", "onload", "example.org", "<image", "<a"] {
            assert!(!plain.contains(part), "{part}: {plain}");
        }
        assert!(plain.contains("words"));
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let mut laughs = String::from("<defs><g id=\"a0\"><rect width=\"1\" height=\"1\"/></g>");
        for level in 1..40 {
            let below = format!("<use xlink:href=\"#a{}\"/>", level - 1);
            laughs.push_str(&format!("<g id=\"a{level}\">{below}{below}</g>"));
        }
        let why = read(&format!("{laughs}</defs><use xlink:href=\"#a39\"/>")).err().expect("refused");
        assert!(matches!(why, SvgReadError::TooManyElements), "{why}");
        assert!(read("<g id=\"a\"><use xlink:href=\"#a\"/></g>").is_ok(), "a circle is cut");
        assert!(read(&format!("{}{}", "<g>".repeat(5_000), "</g>".repeat(5_000))).is_err(), "deeper than any drawing");
        assert!(VectorDrawing::from_svg("<svg", &FontSet::bundled()).is_err());
        assert!(VectorDrawing::from_svg("", &FontSet::bundled()).is_err());
    }
}
