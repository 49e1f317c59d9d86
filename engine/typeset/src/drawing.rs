//! Vector drawings: reads and measures SVG, rasterizes it, or writes it again without active content.
//!
//! An SVG isn't trusted: it can't access files or addresses, and one that expands without limit is rejected. Reading
//! and drawing may still take seconds, so callers run them on a thread with a time limit.

use crate::fonts::{FontSet, TEXT_FONT_FAMILY};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, ImageHrefResolver, Options, Tree, roxmltree};
use std::collections::{HashMap, HashSet};

/// Maximum length of an SVG in bytes; a longer one isn't read.
const MAX_SVG_BYTES: usize = 8 << 20;
/// Maximum number of elements of an SVG after its references are expanded; a larger one is rejected.
const MAX_SVG_ELEMENTS: u64 = 100_000;
/// Maximum number of pixels in an image.
const MAX_RASTER_PIXELS: u64 = 24 << 20;

/// A vector drawing: shapes and text.
pub struct VectorDrawing {
    pub(crate) tree: Tree,
    /// Intrinsic width in points.
    pub width: f32,
    /// Intrinsic height in points.
    pub height: f32,
}

/// A rasterized drawing: RGBA pixels with premultiplied alpha.
pub struct DrawingPixels {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// RGBA with premultiplied alpha, row by row.
    pub bytes: Vec<u8>,
}

/// Error from reading an SVG, phrased as the end of a sentence ("…: why").
#[derive(Debug, thiserror::Error)]
pub enum SvgReadError {
    /// The SVG exceeds the size limit.
    #[error("it is longer than {} MB", MAX_SVG_BYTES >> 20)]
    TooLong,
    /// The text isn't valid XML.
    #[error(transparent)]
    Xml(#[from] roxmltree::Error),
    /// The SVG has too many elements, counting repeated ones.
    #[error("it comes to more than {MAX_SVG_ELEMENTS} elements")]
    TooManyElements,
    /// The XML isn't a valid SVG drawing.
    #[error(transparent)]
    Svg(#[from] usvg::Error),
}

impl VectorDrawing {
    /// Reads an SVG.
    ///
    /// # Errors
    /// Returns an error if the text isn't valid SVG, is too long or has too many elements.
    pub fn from_svg(svg: &str, fonts: &FontSet) -> Result<VectorDrawing, SvgReadError> {
        if svg.len() > MAX_SVG_BYTES {
            return Err(SvgReadError::TooLong);
        }
        let options = Options {
            font_family: TEXT_FONT_FAMILY.to_owned(),
            fontdb: fonts.db.clone(),
            image_href_resolver: ImageHrefResolver {
                resolve_data: ImageHrefResolver::default_data_resolver(),
                // The default resolver would open files by name.
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

    /// Rasterizes the drawing with `scale` pixels per point, or fewer if that exceeds the limit of pixels.
    ///
    /// Returns `None` if a side would be below 1 or above 20,000 pixels.
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

    /// Writes the drawing as SVG with only shapes and text: no links, scripts or addresses.
    ///
    /// `prefix` is added to all ids.
    pub fn to_safe_svg(&self, prefix: &str) -> String {
        let id_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
        let indent = usvg::Indent::None;
        let options = usvg::WriteOptions { id_prefix, preserve_text: true, indent, ..Default::default() };
        self.tree.to_string(&options)
    }
}

/// Counts the elements of an SVG with all references expanded, because a few lines can expand to a billion.
fn count_elements(document: &roxmltree::Document<'_>) -> u64 {
    let ids: HashMap<&str, roxmltree::NodeId> =
        document.descendants().filter_map(|node| Some((node.attribute("id")?, node.id()))).collect();
    let mut known: HashMap<roxmltree::NodeId, u64> = HashMap::new();
    // Counts nodes after their children and references. A reference to an enclosing element is cut.
    let mut above: HashSet<roxmltree::NodeId> = HashSet::new();
    // Uses an explicit stack, because a document may be nested too deeply for recursion.
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
            // A marker is drawn at every vertex of a path; a pattern is drawn once.
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
