//! A canvas as a list of drawing operations: what matplotlib draws, kept as data (docs/decisions/0037).
//!
//! The list is written by `engine/python/src/matplotlib_backend.py`. All lengths and positions are pixels of the canvas
//! from its top left corner, and the canvas has the same size in points. The data is untrusted, so its size and the
//! work of drawing it are limited here.

use base64::Engine;
use serde::Deserialize;

/// Maximum number of operations in a list. The writer uses the same limit, `_MAX_OPERATIONS`.
pub(crate) const MAX_OPERATIONS: usize = 50_000;
/// Maximum number of numbers in all paths and columns of a list.
pub(crate) const MAX_NUMBERS: usize = 8_000_000;
/// Maximum number of points drawn, where a marker's points count for each of its positions.
pub(crate) const MAX_DRAWN_POINTS: usize = 40_000_000;
/// Maximum number of pixels in all images of a list.
pub(crate) const MAX_IMAGE_PIXELS: usize = 24_000_000;
/// Maximum number of axes, clips, hatches, glyphs and series in a list, each.
const MAX_TABLE_ROWS: usize = 20_000;
/// The newest supported version of the format.
const DISPLAY_LIST_VERSION: u32 = 1;

/// Error from checking or parsing a display list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisplayListError {
    /// The list was written by a newer version.
    #[error("a newer version of Tracebook wrote this figure (form {version}); update to see it")]
    NewerVersion {
        /// The version in the list.
        version: u32,
    },
    /// The list exceeds a limit.
    #[error("a figure with {count} {what} is too large; the most are {most}")]
    TooMany {
        /// What exceeds its limit.
        what: &'static str,
        /// The number in the list.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// Text isn't valid base64.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// Binary data ends within a number or a color.
    #[error("a column ends in the middle of a value")]
    TornValue,
    /// A path contains an unknown code.
    #[error("{letter:?} is no code of a path")]
    PathCode {
        /// The unknown code.
        letter: char,
    },
    /// Text isn't a valid color.
    #[error("{text:?} is no color")]
    Color {
        /// The invalid text.
        text: String,
    },
}

/// Numbers as JSON: a list, or little-endian 32-bit floats in base64.
#[derive(Deserialize)]
#[serde(untagged)]
enum PackedEncoding {
    List(Vec<f32>),
    Packed(String),
}

/// A list of numbers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "PackedEncoding")]
pub(crate) struct PackedFloats(pub(crate) Vec<f32>);

impl TryFrom<PackedEncoding> for PackedFloats {
    type Error = DisplayListError;

    fn try_from(wire: PackedEncoding) -> Result<PackedFloats, DisplayListError> {
        match wire {
            PackedEncoding::List(all) => Ok(PackedFloats(all)),
            PackedEncoding::Packed(text) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
                let (all, rest) = bytes.as_chunks::<4>();
                if rest.is_empty() {
                    Ok(PackedFloats(all.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
                } else {
                    Err(DisplayListError::TornValue)
                }
            }
        }
    }
}

impl PackedFloats {
    /// Returns the numbers as pairs.
    pub(crate) fn points(&self) -> &[[f32; 2]] {
        self.0.as_chunks().0
    }
}

/// A color as RGBA. In JSON it's `#rrggbb` or `#rrggbbaa`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) struct DisplayColor(pub(crate) [u8; 4]);

impl TryFrom<String> for DisplayColor {
    type Error = DisplayListError;

    fn try_from(text: String) -> Result<DisplayColor, DisplayListError> {
        let hex = text.strip_prefix('#').filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match (hex.map(str::len), number) {
            (Some(6), Some(number)) => Ok(DisplayColor((number << 8 | 0xff).to_be_bytes())),
            (Some(8), Some(number)) => Ok(DisplayColor(number.to_be_bytes())),
            _ => Err(DisplayListError::Color { text: text.chars().take(40).collect() }),
        }
    }
}

/// Colors as base64, four bytes (RGBA) each.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) struct PackedColors(pub(crate) Vec<[u8; 4]>);

impl TryFrom<String> for PackedColors {
    type Error = DisplayListError;

    fn try_from(text: String) -> Result<PackedColors, DisplayListError> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
        let (all, rest) = bytes.as_chunks::<4>();
        if rest.is_empty() { Ok(PackedColors(all.to_vec())) } else { Err(DisplayListError::TornValue) }
    }
}

impl PackedColors {
    /// Returns an item's color, repeating the list if it has fewer colors than items. `None` if it's transparent.
    pub(crate) fn cycled(&self, at: usize) -> Option<DisplayColor> {
        (!self.0.is_empty()).then(|| DisplayColor(self.0[at % self.0.len()])).filter(|color| color.0[3] > 0)
    }
}

/// The bytes of a file, as base64.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) struct PackedFile(pub(crate) Vec<u8>);

impl TryFrom<String> for PackedFile {
    type Error = DisplayListError;

    fn try_from(text: String) -> Result<PackedFile, DisplayListError> {
        Ok(PackedFile(base64::engine::general_purpose::STANDARD.decode(text)?))
    }
}

impl std::fmt::Debug for PackedFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

/// A path command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathVerb {
    Move,
    Line,
    Quad,
    Cubic,
    Close,
}

/// The commands of a path, each with a repeat count. An empty list means a single polyline.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) struct PathCodes(Vec<(PathVerb, u32)>);

impl TryFrom<String> for PathCodes {
    type Error = DisplayListError;

    fn try_from(text: String) -> Result<PathCodes, DisplayListError> {
        let mut codes = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let verb = match letter {
                'M' => PathVerb::Move,
                'L' => PathVerb::Line,
                'Q' => PathVerb::Quad,
                'C' => PathVerb::Cubic,
                'Z' => PathVerb::Close,
                letter => return Err(DisplayListError::PathCode { letter }),
            };
            let mut count: Option<u32> = None;
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                count = Some(count.unwrap_or(0).saturating_mul(10).saturating_add(digit));
                letters.next();
            }
            codes.push((verb, if verb == PathVerb::Close { 1 } else { count.unwrap_or(1) }));
        }
        Ok(PathCodes(codes))
    }
}

/// A step of a path, with its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PathStep {
    Move([f32; 2]),
    Line([f32; 2]),
    Quad([f32; 2], [f32; 2]),
    Cubic([f32; 2], [f32; 2], [f32; 2]),
    Close,
}

/// A path: its points and its commands.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct OutlinePath {
    pub(crate) v: PackedFloats,
    pub(crate) c: PathCodes,
}

impl OutlinePath {
    /// Returns the steps of the path. It ends when its points run out, whatever its commands say.
    pub(crate) fn steps(&self) -> impl Iterator<Item = PathStep> + '_ {
        let points = self.v.points();
        // A path without commands is a polyline through all points.
        const LINE: &[(PathVerb, u32)] = &[(PathVerb::Move, 1), (PathVerb::Line, u32::MAX)];
        let verbs = if self.c.0.is_empty() { LINE } else { &self.c.0 }.iter().copied();
        let mut at = 0;
        let mut take = move || {
            let point = points.get(at).copied();
            at += 1;
            point
        };
        verbs.flat_map(|(verb, count)| std::iter::repeat_n(verb, count as usize)).map_while(move |verb| {
            Some(match verb {
                PathVerb::Move => PathStep::Move(take()?),
                PathVerb::Line => PathStep::Line(take()?),
                PathVerb::Quad => PathStep::Quad(take()?, take()?),
                PathVerb::Cubic => PathStep::Cubic(take()?, take()?, take()?),
                PathVerb::Close => PathStep::Close,
            })
        })
    }

    /// Returns the number of points plus the number of commands.
    pub(crate) fn length(&self) -> usize {
        self.v.points().len() + self.c.0.len()
    }

    /// Returns whether all segments are horizontal or vertical, so that the path looks best on whole pixels.
    pub(crate) fn is_rectilinear(&self) -> bool {
        // Agg doesn't snap paths with more points than this either.
        const MAX_SNAPPED_POINTS: usize = 1_024;
        const NEARLY: f32 = 1e-3;
        if self.length() > MAX_SNAPPED_POINTS {
            return false;
        }
        let mut last = [0.0_f32; 2];
        self.steps().all(|step| match step {
            PathStep::Move(to) => {
                last = to;
                true
            }
            PathStep::Line(to) => {
                let level = (to[0] - last[0]).abs() < NEARLY || (to[1] - last[1]).abs() < NEARLY;
                last = to;
                level
            }
            PathStep::Close => true,
            PathStep::Quad(..) | PathStep::Cubic(..) => false,
        })
    }
}

/// How two line segments are joined.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StrokeJoin {
    Miter,
    #[default]
    Round,
    Bevel,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StrokeCap {
    #[default]
    Butt,
    Round,
    Projecting,
}

/// Fill, outline and hatch of a shape.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct ShapeStyle {
    pub(crate) fill: Option<DisplayColor>,
    pub(crate) edge: Option<DisplayColor>,
    pub(crate) width: f32,
    /// Offset of the dash pattern, then alternating lengths of dashes and gaps.
    pub(crate) dash: Vec<f32>,
    pub(crate) join: StrokeJoin,
    pub(crate) cap: StrokeCap,
    /// Index into the list's hatches.
    pub(crate) hatch: Option<usize>,
}

/// The shape that an operation draws.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum OperationShape {
    /// A path.
    Path {
        #[serde(flatten)]
        path: OutlinePath,
        #[serde(flatten)]
        style: ShapeStyle,
    },
    /// One path, drawn at many positions.
    Markers {
        path: OutlinePath,
        at: PackedFloats,
        #[serde(flatten)]
        style: ShapeStyle,
    },
    /// One path at many positions, with individual sizes and colors; shorter columns repeat.
    Collection {
        path: OutlinePath,
        at: PackedFloats,
        count: usize,
        /// Matrices: `x' = a x + c y + e`, `y' = b x + d y + f`.
        turns: PackedFloats,
        #[serde(default)]
        sizes: PackedFloats,
        #[serde(default)]
        fills: PackedColors,
        #[serde(default)]
        edges: PackedColors,
        #[serde(default)]
        widths: PackedFloats,
        #[serde(default)]
        dashes: Vec<Vec<f32>>,
        #[serde(default)]
        join: StrokeJoin,
        #[serde(default)]
        cap: StrokeCap,
    },
    /// A quadrilateral mesh, row by row; `v` holds its vertices.
    Mesh {
        columns: usize,
        v: PackedFloats,
        fills: PackedColors,
        #[serde(default)]
        edges: PackedColors,
        #[serde(default)]
        width: f32,
    },
    /// Triangles with a color at each corner.
    Gouraud { v: PackedFloats, fills: PackedColors },
    /// An image. With `grid`, it's rectangles of one color each, with one more edge than columns and rows.
    Image {
        png: PackedFile,
        xs: PackedFloats,
        ys: PackedFloats,
        #[serde(default)]
        grid: bool,
    },
    /// Text as outlines; each glyph has its index, position and scale.
    Text {
        text: String,
        at: [f32; 2],
        size: f32,
        color: DisplayColor,
        glyphs: PackedFloats,
        /// Rectangles such as fraction bars: left, bottom, width, height.
        #[serde(default)]
        boxes: PackedFloats,
        /// Rotation in degrees, counterclockwise.
        #[serde(default)]
        angle: f32,
    },
    /// An operation from a newer version.
    #[serde(other)]
    Unknown,
}

/// The axis whose tick an operation draws.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum TickPart {
    #[serde(rename = "xtick")]
    Across,
    #[serde(rename = "ytick")]
    Up,
}

/// An operation: a shape with its clip, axes and series.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct DisplayOperation {
    #[serde(flatten)]
    pub(crate) shape: OperationShape,
    /// Index into the list's clips.
    #[serde(default)]
    pub(crate) clip: Option<usize>,
    /// Whether edges are antialiased. The default is yes for most shapes and no for meshes.
    #[serde(default)]
    pub(crate) aa: Option<bool>,
    /// Whether the shape is snapped to whole pixels. By default rectilinear paths are.
    #[serde(default)]
    pub(crate) snap: Option<bool>,
    /// Index of the axes that the operation belongs to.
    #[serde(default)]
    pub(crate) axes: Option<usize>,
    #[serde(default)]
    pub(crate) part: Option<TickPart>,
    /// Index into the list's series.
    #[serde(default)]
    pub(crate) series: Option<usize>,
}

/// The visible area of an operation: a rectangle (left, top, right, bottom), the inside of a path, or both.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct DisplayClip {
    pub(crate) rect: Option<[f32; 4]>,
    #[serde(flatten)]
    pub(crate) path: OutlinePath,
}

/// A hatch pattern: a path in a repeated square of one inch, with y pointing up.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct HatchPattern {
    #[serde(flatten)]
    pub(crate) path: OutlinePath,
    pub(crate) color: DisplayColor,
    pub(crate) width: f32,
}

/// One axis of a pair of axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct DisplaySide {
    /// Lower and upper limit.
    pub(crate) limits: [f64; 2],
    /// `linear`, `log`, or another scale whose values can't be computed here.
    pub(crate) scale: String,
    /// Whether the values are seconds since 1970.
    pub(crate) dates: bool,
}

impl DisplaySide {
    /// Returns whether positions can be converted to values.
    pub(crate) fn is_known(&self) -> bool {
        let [low, high] = self.limits;
        let sound = low.is_finite() && high.is_finite() && low != high;
        sound && (self.scale == "linear" || (self.scale == "log" && low > 0.0 && high > 0.0))
    }
}

/// A pair of axes: its frame and its scales.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct DisplayAxes {
    /// Left, top, right and bottom of the frame.
    pub(crate) frame: [f64; 4],
    /// The x and y axis.
    pub(crate) sides: [DisplaySide; 2],
    pub(crate) title: String,
    /// Color of the text beside the axes.
    pub(crate) ink: DisplayColor,
    /// Axes with the same number share their limits.
    pub(crate) shared_x: Option<u32>,
    pub(crate) shared_y: Option<u32>,
}

/// A canvas as a list of operations, drawn from back to front.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct DisplayList {
    pub(crate) version: u32,
    /// Pixels per inch.
    pub(crate) dpi: f64,
    pub(crate) axes: Vec<DisplayAxes>,
    pub(crate) clips: Vec<DisplayClip>,
    pub(crate) hatches: Vec<HatchPattern>,
    /// Glyph outlines in hundredths of the font size, relative to the baseline.
    pub(crate) glyphs: Vec<OutlinePath>,
    pub(crate) series: Vec<String>,
    pub(crate) ops: Vec<DisplayOperation>,
}

impl DisplayList {
    /// Returns the number of operations.
    pub fn operation_count(&self) -> usize {
        self.ops.len()
    }

    /// Returns the number of axes.
    pub fn axes_count(&self) -> usize {
        self.axes.len()
    }

    /// Checks that the list can be drawn within the limits.
    ///
    /// # Errors
    /// Returns an error if the list exceeds a limit, or was written by a newer version.
    pub(crate) fn check_bounds(&self) -> Result<(), DisplayListError> {
        if self.version > DISPLAY_LIST_VERSION {
            return Err(DisplayListError::NewerVersion { version: self.version });
        }
        let bound = |what, count, most| {
            if count > most { Err(DisplayListError::TooMany { what, count, most }) } else { Ok(()) }
        };
        bound("operations", self.ops.len(), MAX_OPERATIONS)?;
        let tables = [self.axes.len(), self.clips.len(), self.hatches.len(), self.glyphs.len(), self.series.len()];
        bound("table rows", tables.into_iter().max().unwrap_or(0), MAX_TABLE_ROWS)?;
        let tables = self.clips.iter().map(|clip| clip.path.length());
        let tables = tables.chain(self.hatches.iter().map(|hatch| hatch.path.length()));
        let tables = tables.chain(self.glyphs.iter().map(OutlinePath::length));
        let (mut numbers, mut drawn) = (2 * tables.sum::<usize>(), 0_usize);
        for operation in &self.ops {
            let (own, work) = self.operation_work(&operation.shape);
            numbers = numbers.saturating_add(own);
            drawn = drawn.saturating_add(work);
        }
        bound("numbers", numbers, MAX_NUMBERS)?;
        bound("drawn points", drawn, MAX_DRAWN_POINTS)
    }

    /// Returns the count of numbers in an operation, and the number of points drawn for it.
    fn operation_work(&self, shape: &OperationShape) -> (usize, usize) {
        match shape {
            OperationShape::Path { path, style } => {
                let hatch =
                    style.hatch.and_then(|hatch| self.hatches.get(hatch)).map_or(0, |hatch| hatch.path.length());
                (path.length() * 2 + style.dash.len(), path.length() + hatch)
            }
            OperationShape::Markers { path, at, .. } => {
                (path.length() * 2 + at.0.len(), (path.length() + 1).saturating_mul(at.points().len()))
            }
            OperationShape::Collection { path, at, count, turns, sizes, widths, dashes, .. } => {
                let dashes: usize = dashes.iter().map(Vec::len).sum();
                let own = path.length() * 2 + at.0.len() + turns.0.len() + sizes.0.len() + widths.0.len() + dashes;
                (own, (path.length() + 1).saturating_mul(*count))
            }
            OperationShape::Mesh { v, fills, .. } => (v.0.len(), fills.0.len() * 4),
            OperationShape::Gouraud { v, .. } => (v.0.len(), v.0.len()),
            OperationShape::Image { xs, ys, .. } => (xs.0.len() + ys.0.len(), 4),
            OperationShape::Text { glyphs, boxes, .. } => {
                let outline = |glyph: &[f32; 4]| self.glyph(glyph[0]).map_or(0, OutlinePath::length);
                let letters = glyphs.0.as_chunks::<4>().0.iter().map(outline);
                (glyphs.0.len() + boxes.0.len(), letters.sum::<usize>() + boxes.0.len())
            }
            OperationShape::Unknown => (0, 0),
        }
    }

    /// Returns a glyph by its index.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a row of a short table")]
    pub(crate) fn glyph(&self, number: f32) -> Option<&OutlinePath> {
        (0.0..1e6).contains(&number).then(|| self.glyphs.get(number as usize))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_with_its_codes() {
        let path: OutlinePath =
            serde_json::from_str(r#"{"v": [0,0, 1,0, 1,1, 2,2, 3,3], "c": "ML2QZ"}"#).expect("read");
        let steps: Vec<PathStep> = path.steps().collect();
        assert_eq!(steps.len(), 5);
        assert_eq!(steps[3], PathStep::Quad([2.0, 2.0], [3.0, 3.0]));
        let short: OutlinePath = serde_json::from_str(r#"{"v": [0,0, 1,0], "c": "ML4000000000Z"}"#).expect("read");
        assert_eq!(short.steps().count(), 2);
        let line: OutlinePath = serde_json::from_str(r#"{"v": "AAAAAAAAAAAAAIA/AACAPw=="}"#).expect("read");
        assert_eq!(line.steps().collect::<Vec<_>>(), [PathStep::Move([0.0, 0.0]), PathStep::Line([1.0, 1.0])]);
    }

    #[test]
    fn work_is_bounded_before_it_is_done() {
        let json = r#"{"version": 1, "ops": [{"op": "collection", "path": {"v": [0,0, 1,1]}, "at": [0,0],
                       "count": 4000000000, "turns": [1,0,0,1,0,0]}]}"#;
        let list: DisplayList = serde_json::from_str(json).expect("read");
        let why = list.check_bounds().expect_err("refused").to_string();
        assert!(why.contains("drawn points"), "{why}");
        let newer: DisplayList = serde_json::from_str(r#"{"version": 2}"#).expect("read");
        assert!(newer.check_bounds().expect_err("refused").to_string().contains("newer version"));
        assert!(serde_json::from_str::<DisplayColor>("\"#12345\"").is_err());
        assert_eq!(serde_json::from_str::<DisplayColor>("\"#01020380\"").expect("read"), DisplayColor([1, 2, 3, 128]));
    }
}
