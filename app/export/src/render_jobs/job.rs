//! Messages between the program and the rendering process: headers as JSON.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use store::Execution;
use typeset::failure::DrawFailure;
use typeset::formula::SetFormula;
use typeset::highlight::CodeHue;
use typeset::pdf::PaperSize;
use typeset::tints::{Rgb, ThemeTints};

/// A drawing or layout job.
#[derive(Serialize, Deserialize)]
pub(super) enum DrawingJob {
    /// Typesets a formula.
    Formula { source: String, display: bool },
    /// Rasterizes a formula at this width in pixels.
    FormulaPixels { formula: SetFormula, ink: Rgb, width: f32 },
    /// Converts a formula to MathML.
    Mathml { source: String, display: bool },
    /// Renders a mermaid diagram as SVG. `document`: for use in a PDF.
    Diagram { source: String, tints: ThemeTints, document: bool },
    /// Rasterizes a mermaid diagram.
    DiagramPixels { source: String, tints: ThemeTints, scale: f32 },
    /// Checks whether the SVG in the body can be used. `document`: in a PDF.
    Svg { document: bool },
    /// Rasterizes the SVG in the body.
    SvgPixels { scale: f32, side: u32 },
    /// Decodes the bitmap in the body, with no side longer than this.
    Bitmap { side: u32 },
    /// Checks whether the bitmap in the body can be used in a PDF.
    Image,
    /// Renders the figure in the body as SVG. `document`: for use in a PDF.
    Figure { document: bool },
    /// Renders the figure in the body as PNG.
    FigurePixels { scale: f64 },
    /// Highlights code.
    Colours { code: String, language: String },
    /// Converts the HTML in the body to Markdown. `lone`: there is no plain-text alternative.
    Html { lone: bool },
    /// Renders a note as an HTML page. `alone`: without context.
    Page { note: LayoutNote, light: String, dark: String, colours: String, alone: bool },
    /// Renders notes as one PDF; they're requested one by one.
    Document { title: String, paper: PaperSize, tints: ThemeTints },
}

/// A note to lay out.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LayoutNote {
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) outputs: Vec<Option<Execution>>,
    /// Why the note is shown as source; `None` if it isn't.
    pub(crate) plain: Option<String>,
}

/// Result of a job.
#[derive(Serialize, Deserialize)]
pub(super) enum JobOutput {
    Formula(SetFormula),
    /// A text or file in the body.
    Text,
    /// RGBA pixels in the body, with premultiplied colors or not, and the size in points.
    Pixels {
        width: u32,
        height: u32,
        size: [f32; 2],
        multiplied: bool,
    },
    /// The content can be used, with this many bytes of output.
    Fits {
        bytes: u64,
    },
    Colours(Option<Vec<(Range<usize>, CodeHue)>>),
    /// A document in the body, and the characters missing in all fonts.
    Document {
        missing: Vec<char>,
    },
    /// No result, since the input isn't of the expected kind.
    Nothing,
    Failed(DrawFailure),
}

/// Question of a process that lays out notes. `usize` is the index of the note.
#[derive(Serialize, Deserialize)]
pub(crate) enum LayoutQuestion {
    /// Fonts are loaded: the job's time starts now.
    Ready,
    /// Requests the next note of a document.
    Next,
    /// Reports the finished share, and asks whether to continue.
    GoOn(f32),
    /// Requests the bytes of a file.
    Picture(usize, String),
    /// Requests the target of a link.
    Link(usize, String),
    /// Requests the path of an embedded note.
    Note(usize, String),
    /// Requests the text of the note at this path.
    Text(usize, String),
    Diagram(usize, String),
    /// Requests a drawing of the figure in the body.
    Figure(usize),
    /// Requests a check of the SVG in the body.
    Svg(usize),
    /// Requests a check of the bitmap in the body.
    Image(usize),
    Formula {
        source: String,
        display: bool,
    },
    /// Requests a formula as MathML.
    Mathml {
        source: String,
        display: bool,
    },
}

/// The answer to a question.
#[derive(Serialize, Deserialize)]
pub(crate) enum LayoutReply {
    /// Not found, or nothing to report.
    Nothing,
    /// A path, an address, or MathML.
    Text(String),
    /// Bytes, text or SVG in the body.
    Bytes,
    Note(LayoutNote),
    Formula(SetFormula),
    Failed(DrawFailure),
}
