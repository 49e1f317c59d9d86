//! Requests to and answers from the rendering process: message headers as JSON.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use store::Execution;
use typeset::failure::DrawFailure;
use typeset::formula::SetFormula;
use typeset::highlight::CodeHue;
use typeset::pdf::PaperSize;
use typeset::tints::{Rgb, ThemeTints};

/// Something to draw or to lay out.
#[derive(Serialize, Deserialize)]
pub(super) enum DrawingJob {
    /// Lay out a formula.
    Formula { source: String, display: bool },
    /// Rasterize a formula at this width in pixels.
    FormulaPixels { formula: SetFormula, ink: Rgb, width: f32 },
    /// A formula as MathML.
    Mathml { source: String, display: bool },
    /// Renders a mermaid diagram as SVG. `document`: for use in a PDF.
    Diagram { source: String, tints: ThemeTints, document: bool },
    /// The same as pixels.
    DiagramPixels { source: String, tints: ThemeTints, scale: f32 },
    /// Tries whether the SVG in the body can be read.
    Svg { document: bool },
    /// The SVG in the body as pixels.
    SvgPixels { scale: f32, side: u32 },
    /// The picture of pixels in the body, unpacked, with no side longer than this.
    Bitmap { side: u32 },
    /// Checks whether the bitmap in the body can be used in a PDF.
    Image,
    /// The figure in the body, as SVG.
    Figure { document: bool },
    /// The figure in the body, as PNG.
    FigurePixels { scale: f64 },
    /// The colours of code.
    Colours { code: String, language: String },
    /// The HTML in the body, as Markdown. `lone`: there is no plain text beside it.
    Html { lone: bool },
    /// Renders a note as an HTML page. `alone`: without context.
    Page { note: LayoutNote, light: String, dark: String, colours: String, alone: bool },
    /// Renders notes as one PDF; they're requested one by one.
    Document { title: String, paper: PaperSize, tints: ThemeTints },
}

/// A note that is laid out.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LayoutNote {
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) outputs: Vec<Option<Execution>>,
    /// Why it's shown as source, if it is.
    pub(crate) plain: Option<String>,
}

/// Result of a job.
#[derive(Serialize, Deserialize)]
pub(super) enum JobOutput {
    Formula(SetFormula),
    /// A text: in the body.
    Text,
    /// Pixels in the body, four bytes each, their colours multiplied by their opacity or not, and the size in points.
    Pixels {
        width: u32,
        height: u32,
        size: [f32; 2],
        multiplied: bool,
    },
    /// It's possible, with this many bytes of output.
    Fits {
        bytes: u64,
    },
    Colours(Option<Vec<(Range<usize>, CodeHue)>>),
    /// A document: in the body.
    Document {
        missing: Vec<char>,
    },
    /// Nothing, since what was given is not of that kind.
    Nothing,
    Failed(DrawFailure),
}

/// What a process asks that lays out notes. `usize` says which note.
#[derive(Serialize, Deserialize)]
pub(crate) enum LayoutQuestion {
    /// It has read its fonts: its time begins now.
    Ready,
    /// The next note of a document.
    Next,
    /// Whether to continue; the finished share.
    GoOn(f32),
    /// The bytes of a file.
    Picture(usize, String),
    /// Where a link leads.
    Link(usize, String),
    /// The path of a note that is shown inside.
    Note(usize, String),
    /// The text of the note of a path.
    Text(usize, String),
    Diagram(usize, String),
    /// The figure in the body.
    Figure(usize),
    /// The SVG in the body.
    Svg(usize),
    /// The picture of pixels in the body.
    Image(usize),
    Formula {
        source: String,
        display: bool,
    },
    /// A formula as MathML.
    Mathml {
        source: String,
        display: bool,
    },
}

/// The answer to a question.
#[derive(Serialize, Deserialize)]
pub(crate) enum LayoutReply {
    /// It doesn't exist, or there's nothing to report.
    Nothing,
    /// A path, an address, MathML.
    Text(String),
    /// Bytes, a text or SVG: in the body.
    Bytes,
    Note(LayoutNote),
    Formula(SetFormula),
    Failed(DrawFailure),
}
