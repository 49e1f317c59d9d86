//! Notes as a PDF, set as a printer would: lines that break well, headings that stay with what they head, tables whose
//! heads come again, links that lead somewhere, and the structure of the text for those who listen to it.

mod blocks;
mod flow;
mod look;
mod paint;
mod text;

use crate::fonts::Fonts;
use crate::html::Around;
use crate::tints::Tints;
use krilla::geom::{Point, Size};
use krilla::image::Image;
use krilla::page::PageSettings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use store::Execution;

/// The paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paper {
    /// 210 by 297 millimetres.
    #[default]
    A4,
    /// 8.5 by 11 inches.
    Letter,
}

impl Paper {
    /// Width and height in points.
    pub fn size(self) -> (f32, f32) {
        match self {
            Paper::A4 => (595.28, 841.89),
            Paper::Letter => (612.0, 792.0),
        }
    }
}

/// A note of a document.
pub struct Note<'a> {
    /// Its title, for where its text has none.
    pub title: &'a str,
    /// What links inside the document call it: `Around::link` answers with `#` and this.
    pub place: &'a str,
    /// Its Markdown.
    pub text: &'a str,
    /// The latest execution of each cell, in order.
    pub outputs: &'a [Option<Execution>],
    /// What stands around it.
    pub around: &'a dyn Around,
}

/// How a document is asked for.
pub struct Asked<'a> {
    /// Its title.
    pub title: &'a str,
    /// The paper.
    pub paper: Paper,
    /// The colours of a light theme; the page itself stays white.
    pub tints: Tints,
    /// The fonts.
    pub fonts: &'a Fonts,
}

/// A document that was made.
pub struct Pdf {
    /// The file.
    pub bytes: Vec<u8>,
    /// How many pages it has.
    pub pages: usize,
    /// Letters that no font has: they are shown as boxes.
    pub missing: Vec<char>,
}

/// Makes a document of notes, each of which begins on a page of its own. `go_on` is asked now and then, with what part
/// of the work is done (0 to 1); where it answers no, there is no document.
///
/// # Errors
/// A sentence, where it cannot be made or was not to be.
pub fn write<'a>(
    asked: &Asked<'_>,
    notes: impl IntoIterator<Item = Note<'a>>,
    go_on: &mut dyn FnMut(f32) -> bool,
) -> Result<Pdf, String> {
    let make = || {
        let mut tints = asked.tints;
        tints.paper = [255; 3];
        let mut reading = blocks::Reading { tints: &tints, asked, links: Vec::new(), notes: 0 };
        let mut flow = flow::Flow::new(asked.fonts, &tints, asked.paper);
        for note in notes {
            if !go_on(0.1) {
                return Err(STOPPED.to_owned());
            }
            let blocks = blocks::read(&mut reading, note.text, note.outputs, note.around, note.place, 0);
            flow.note(note.title, note.place, blocks);
        }
        if !go_on(0.4) {
            return Err(STOPPED.to_owned());
        }
        let laid = flow.pages();
        paint::paint(asked, &tints, laid, &reading.links, &mut |share| go_on(0.4 + 0.5 * share))
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(done) => done,
        Err(_) => Err("The document cannot be made.".to_owned()),
    }
}

const STOPPED: &str = "Stopped before it was done.";

/// A picture of a file, if it is one that can be drawn.
fn image(bytes: &[u8]) -> Option<Image> {
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
    // It is decoded at the end, and a broken one would break the whole document: it is tried alone first.
    let mut alone = krilla::Document::new();
    let settings = PageSettings::from_wh(10.0, 10.0)?;
    let mut page = alone.start_page_with(settings);
    let mut surface = page.surface();
    surface.draw_image(image.clone(), Size::from_wh(10.0, 10.0)?);
    surface.finish();
    page.finish();
    alone.finish().ok().map(|_| image)
}

fn point(x: f32, y: f32) -> Point {
    Point::from_xy(x, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::Alone;
    use crate::tints::PLAIN;
    use crate::trips;

    fn made(text: &str) -> Pdf {
        static FONTS: std::sync::LazyLock<Fonts> = std::sync::LazyLock::new(Fonts::bundled);
        let asked = Asked { title: "Everything", paper: Paper::A4, tints: PLAIN, fonts: &FONTS };
        let note = Note { title: "Everything", place: "Everything.md", text, outputs: &[], around: &Alone };
        write(&asked, [note], &mut |_| true).unwrap_or_else(|why| panic!("{why}: {text}"))
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
        let fonts = Fonts::bundled();
        let asked = Asked { title: "T", paper: Paper::Letter, tints: PLAIN, fonts: &fonts };
        let note = || Note { title: "T", place: "T.md", text: &text, outputs: &[], around: &Alone };
        let stopped = write(&asked, [note(), note()], &mut |share| share < 0.5);
        assert_eq!(stopped.err().as_deref(), Some(STOPPED));
        assert!(write(&asked, [], &mut |_| true).is_ok(), "no note at all");
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
