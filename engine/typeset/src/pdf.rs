//! Exports notes as PDF with the quality of print.
//!
//! Lines break well, headings stay with their text, and table headers repeat on each page. Links work, and the text
//! structure is tagged for screen readers.

mod blocks;
mod metrics;
mod page_flow;
mod paint;
mod text_layout;

use crate::drawing::VectorDrawing;
use crate::failure::{DrawFailure, EmbedStack};
use crate::fonts::FontSet;
use crate::html::PageContext;
use crate::tints::ThemeTints;
use krilla::SerializeSettings;
use krilla::geom::{Point, Size};
use krilla::image::Image;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use store::Execution;

/// Paper size of a PDF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PaperSize {
    /// 210 by 297 millimeters.
    #[default]
    A4,
    /// 8.5 by 11 inches.
    Letter,
}

impl PaperSize {
    /// Width and height in points.
    pub fn size_in_points(self) -> (f32, f32) {
        match self {
            PaperSize::A4 => (595.28, 841.89),
            PaperSize::Letter => (612.0, 792.0),
        }
    }
}

/// A note of the document.
pub struct PdfNote<'a> {
    /// Title, used if the text has none.
    pub title: String,
    /// Anchor for links inside the document: `PageContext::resolve_link` returns it with a leading `#`.
    pub place: String,
    /// The note's Markdown.
    pub text: String,
    /// The latest execution of each cell, in order.
    pub outputs: Vec<Option<Execution>>,
    /// The note's context.
    pub around: Rc<dyn PageContext + 'a>,
    /// If set, the source is shown instead of the rendered note, for this reason.
    pub plain: Option<String>,
}

/// Maximum length of source shown for a note that can't be rendered, in bytes.
const MAX_SOURCE_BYTES: usize = 100_000;

/// Settings of a PDF export.
pub struct PdfRequest<'a> {
    /// Title in the document's metadata.
    pub title: &'a str,
    /// The paper size.
    pub paper: PaperSize,
    /// Colors of a light theme; the page itself stays white.
    pub tints: ThemeTints,
    /// The fonts to embed.
    pub fonts: &'a FontSet,
}

/// A finished PDF.
pub struct PdfDocument {
    /// Bytes of the PDF file.
    pub bytes: Vec<u8>,
    /// Number of pages.
    pub pages: usize,
    /// Characters that no font has; they're shown as boxes.
    pub missing: Vec<char>,
}

/// Error from writing a PDF, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum PdfWriteError {
    /// The export was canceled.
    #[error("Stopped before it was done.")]
    Stopped,
    /// The paper has no width or height.
    #[error("The paper has no size.")]
    NoPaper,
    /// The PDF library returned an error.
    #[error("The document cannot be written ({0:?}).")]
    Unwritable(krilla::error::KrillaError),
    /// Part of the export panicked.
    #[error("The document cannot be made.")]
    Panicked,
}

/// Writes notes as PDF, each starting on a new page.
///
/// `go_on` is called regularly with the progress (0 to 1); the export stops when it returns false.
///
/// # Errors
/// Returns an error if the export was canceled or failed.
pub fn write_pdf<'a>(
    asked: &PdfRequest<'_>,
    notes: impl IntoIterator<Item = PdfNote<'a>>,
    go_on: &mut dyn FnMut(f32) -> bool,
) -> Result<PdfDocument, PdfWriteError> {
    let make = || {
        let mut tints = asked.tints;
        tints.paper = [255; 3];
        let mut reading =
            blocks::BlockReader { tints: &tints, asked, links: Vec::new(), notes: 0, embeds: EmbedStack::for_note("") };
        let mut flow = page_flow::PageFlow::new(asked.fonts, &tints, asked.paper);
        for note in notes {
            if !go_on(0.1) {
                return Err(PdfWriteError::Stopped);
            }
            reading.embeds = EmbedStack::for_note(&note.around.note_path());
            let around = note.around.as_ref();
            let blocks = match &note.plain {
                Some(why) => blocks::source_blocks(&reading, &note.text, why, MAX_SOURCE_BYTES),
                None => blocks::read_note(&mut reading, &note.text, &note.outputs, around, &note.place, 0),
            };
            flow.lay_out_note(&note.title, &note.place, blocks);
        }
        if !go_on(0.4) {
            return Err(PdfWriteError::Stopped);
        }
        let laid = flow.into_pages();
        paint::paint_pages(asked, &tints, laid, &reading.links, &mut |share| go_on(0.4 + 0.5 * share))
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(done) => done,
        Err(_) => Err(PdfWriteError::Panicked),
    }
}

/// Checks whether a raster image can be embedded in a PDF. Returns its decoded size in bytes.
///
/// # Errors
/// Returns an error if the image can't be decoded or is too large.
pub fn try_image(bytes: &[u8]) -> Result<u64, DrawFailure> {
    let image = decode_image(bytes).ok_or_else(|| DrawFailure::Wrong("The picture cannot be read.".to_owned()))?;
    let (width, height) = image.size();
    Ok(u64::from(width) * u64::from(height) * 4)
}

/// Checks whether a drawing can be embedded in a PDF. Parts that aren't shapes are rasterized, which takes time.
///
/// # Errors
/// Returns an error if the drawing can't be drawn.
pub fn try_drawing(drawing: &VectorDrawing) -> Result<(), DrawFailure> {
    let draw = || {
        let mut alone = krilla::Document::new_with(serialize_settings());
        let size = Size::from_wh(drawing.width.clamp(1.0, 2_000.0), drawing.height.clamp(1.0, 2_000.0))?;
        let mut page = alone.start_page_with(PageSettings::from_wh(size.width(), size.height())?);
        let mut surface = page.surface();
        surface.draw_svg(&drawing.tree, size, SvgSettings::default());
        surface.finish();
        page.finish();
        alone.finish().ok().map(|_| ())
    };
    let drawn = catch_unwind(AssertUnwindSafe(draw)).ok().flatten();
    drawn.ok_or_else(|| DrawFailure::Wrong("The picture cannot be drawn in a document.".to_owned()))
}

/// Returns the settings for writing PDFs.
fn serialize_settings() -> SerializeSettings {
    SerializeSettings {
        enable_tagging: true,
        render_svg_glyph_fn: krilla_svg::render_svg_glyph,
        ..SerializeSettings::default()
    }
}

/// Decodes an image file; `None` if it can't be drawn.
fn decode_image(bytes: &[u8]) -> Option<Image> {
    let data = || bytes.to_vec().into();
    let image = match bytes {
        [0x89, b'P', b'N', b'G', ..] => Image::from_png(data(), true),
        [0xff, 0xd8, 0xff, ..] => Image::from_jpeg(data(), true),
        [b'G', b'I', b'F', b'8', ..] => Image::from_gif(data(), true),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Image::from_webp(data(), true),
        _ => return None,
    };
    let image = image.ok()?;
    let (width, height) = image.size();
    if width == 0 || height == 0 || u64::from(width) * u64::from(height) > 40_000_000 {
        return None;
    }
    // Images are decoded at the end, and a broken one would fail the whole document, so each is tested separately.
    let mut alone = krilla::Document::new();
    let settings = PageSettings::from_wh(10.0, 10.0)?;
    let mut page = alone.start_page_with(settings);
    let mut surface = page.surface();
    surface.draw_image(image.clone(), Size::from_wh(10.0, 10.0)?);
    surface.finish();
    page.finish();
    alone.finish().ok().map(|_| image)
}

fn to_point(x: f32, y: f32) -> Point {
    Point::from_xy(x, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::Alone;
    use crate::tints::PLAIN;
    use crate::trips;

    fn made(text: &str) -> PdfDocument {
        static FONTS: std::sync::LazyLock<FontSet> = std::sync::LazyLock::new(FontSet::bundled);
        let asked = PdfRequest { title: "Everything", paper: PaperSize::A4, tints: PLAIN, fonts: &FONTS };
        let note = note("Everything", text);
        write_pdf(&asked, [note], &mut |_| true).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    fn note(title: &str, text: &str) -> PdfNote<'static> {
        let (title, place, text) = (title.to_owned(), "Everything.md".to_owned(), text.to_owned());
        PdfNote { title, place, text, outputs: Vec::new(), around: Rc::new(Alone), plain: None }
    }

    #[test]
    fn long_words_and_long_lines_take_time_that_grows_with_them() {
        // Each of these once took quadratic time and memory.
        for text in ["[a](".repeat(20_000), "x".repeat(80_000), format!("|a|\n|-|\n|{}|\n", "w ".repeat(40_000))] {
            let begun = std::time::Instant::now();
            made(&text);
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
        }
        let headings = "# A\n".repeat(20_000);
        let begun = std::time::Instant::now();
        assert!(made(&headings).pages > 100);
        assert!(begun.elapsed() < std::time::Duration::from_secs(120), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_note_whose_source_is_shown_says_why() {
        let fonts = FontSet::bundled();
        let asked = PdfRequest { title: "T", paper: PaperSize::A4, tints: PLAIN, fonts: &fonts };
        let text = "# A\n\n".repeat(40_000);
        let plain = PdfNote { plain: Some("It takes longer than 2 s.".to_owned()), ..note("T", &text) };
        let made = write_pdf(&asked, [plain], &mut |_| true).expect("a document");
        assert!((100..2_000).contains(&made.pages), "{} pages: cut to what is shown", made.pages);
    }

    #[test]
    fn the_same_note_makes_the_same_bytes() {
        let text =
            "# A\n\nword *word* `code` $x^2$ 漢\n\n|a|b|\n|-|-|\n|1|2|\n\n```mermaid\nflowchart LR\n A-->B\n```\n";
        let (one, other) = (made(text), made(text));
        assert!(one.bytes == other.bytes, "the same bytes");
        assert!(one.bytes.starts_with(b"%PDF-") && one.pages == 1);
        assert_eq!(one.missing, ['漢'], "our fonts have no Han");
    }

    #[test]
    fn long_notes_have_pages_and_can_be_stopped() {
        let text = "A paragraph of some words that is long enough to be broken into lines.\n\n".repeat(400);
        assert!(made(&text).pages > 10);
        let fonts = FontSet::bundled();
        let asked = PdfRequest { title: "T", paper: PaperSize::Letter, tints: PLAIN, fonts: &fonts };
        let stopped = write_pdf(&asked, [note("T", &text), note("T", &text)], &mut |share| share < 0.5);
        assert!(matches!(stopped, Err(PdfWriteError::Stopped)));
        assert!(write_pdf(&asked, [], &mut |_| true).is_ok(), "no note at all");
    }

    #[test]
    fn nothing_trips_it() {
        let own = [
            "1. ",
            "$$\\frac{a}{b}$$",
            "```\n",
            "```mermaid\n",
            "# ",
            "    ",
            "[^a]: ",
            "[[B#x|y]]",
            "![](a.png)",
            "---\n",
            "שלום",
            "漢字",
            "🙂",
            "\u{202e}",
            "- [x] ",
            "- [/] ",
            "[a](https://b.c)",
            "\t",
            "a\u{301}",
            "\u{0}",
        ];
        let parts: Vec<&str> = trips::NOTE.into_iter().chain(own).collect();
        for text in trips::texts(&parts, 60, 16) {
            assert!(made(&text).bytes.len() > 100, "{text}");
        }
        for deep in ["> ", "- ", "> - ", "1. "] {
            made(&format!("{}words", deep.repeat(300)));
        }
        made(&format!("|{}\n|{}\n|{}\n", "a|".repeat(200), "-|".repeat(200), "b|".repeat(200)));
        made(&"x".repeat(5_000));
        made(&format!("|a|\n|-|\n|{}|\n", "word ".repeat(5_000)));
        made(&format!("```\n{}\n```", "x".repeat(20_000)));
    }
}
