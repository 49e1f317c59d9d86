//! Exports a note as a self-contained HTML file: inline styles, images as data URLs, and no scripts.
//!
//! Notes aren't trusted: anything that isn't known to be harmless is shown as text.

mod raw_html;
mod walker;

use crate::ansi;
use crate::drawing::VectorDrawing;
use crate::failure::{DrawFailure, EmbedStack};
use crate::formula::{self, SetFormula};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use store::{Execution, ExecutionStatus, OutputBody};
use unicode_bidi::{BidiClass, bidi_class};

pub(crate) use walker::strip_tags;

/// Maximum depth of embeds inside embeds.
const MAX_HTML_EMBED_DEPTH: u8 = 4;

/// The context of an exported note: other notes and files of its volume, and the renderers.
pub trait PageContext {
    /// Returns the path of the note.
    fn note_path(&self) -> String;
    /// Returns the bytes of a file that the note shows as an image.
    fn read_picture(&self, target: &str) -> Option<Vec<u8>>;
    /// Returns the exported target of a link to another note or file, if it has one.
    fn resolve_link(&self, target: &str) -> Option<String>;
    /// Returns the path of an embedded note.
    fn resolve_embed(&self, target: &str) -> Option<String>;
    /// Returns the Markdown of the note at a path.
    fn note_text(&self, path: &str) -> Option<String>;
    /// Renders a Mermaid diagram.
    ///
    /// # Errors
    /// Returns the reason why the diagram isn't drawn.
    fn render_diagram(&self, source: &str) -> Result<VectorDrawing, DrawFailure>;
    /// Renders a cell's output if its media type is that of a figure.
    ///
    /// # Errors
    /// Returns the reason why the figure isn't drawn.
    fn render_figure(&self, media: &str, json: &str) -> Result<Option<VectorDrawing>, DrawFailure>;
    /// Reads an SVG image.
    ///
    /// # Errors
    /// Returns the reason why the image isn't drawn.
    fn read_svg(&self, bytes: Vec<u8>) -> Result<VectorDrawing, DrawFailure>;
    /// Checks whether a raster image can be decoded.
    ///
    /// # Errors
    /// Returns the reason why the image can't be decoded.
    fn check_image(&self, bytes: &[u8]) -> Result<(), DrawFailure> {
        // This default decodes no images; other implementations need the bytes.
        let _ = bytes;
        Ok(())
    }
    /// Typesets a formula.
    ///
    /// # Errors
    /// Returns the reason why the formula isn't typeset.
    fn typeset_formula(&self, source: &str, display: bool) -> Result<SetFormula, DrawFailure> {
        SetFormula::new(source, display)
    }
    /// Converts a formula to MathML.
    ///
    /// # Errors
    /// Returns the reason why the formula isn't converted.
    fn formula_mathml(&self, source: &str, display: bool) -> Result<String, DrawFailure> {
        formula::to_mathml(source, display)
    }
    /// Returns the colors of diagrams as CSS variable declarations, so that diagrams follow the theme.
    fn diagram_css(&self) -> String {
        String::new()
    }
}

/// A note to export as HTML.
pub struct HtmlNote<'a> {
    /// The page title shown by the browser.
    pub title: &'a str,
    /// The note's Markdown.
    pub text: &'a str,
    /// The latest execution of each cell, in order.
    pub outputs: &'a [Option<Execution>],
    /// Colors of the light theme, as CSS variable declarations.
    pub light: &'a str,
    /// Colors of the dark theme, as CSS variable declarations.
    pub dark: &'a str,
    /// The note's context.
    pub around: &'a dyn PageContext,
}

/// Renders a complete HTML file.
pub fn render_page(page: &HtmlNote<'_>) -> String {
    let mut out = page_head(page.title, page.text, page.light, page.dark);
    out.push_str(&render_body(page.text, page.outputs, page.around));
    out.push_str(PAGE_FOOT);
    out
}

/// Renders the HTML file of a note that can't be laid out: its source and the reason.
pub fn render_source_page(title: &str, text: &str, why: &str, light: &str, dark: &str) -> String {
    let mut out = page_head(title, text, light, dark);
    let (title, why, text) = (escape_html(title), escape_html(why), escape_html(text));
    // Here and below: writing to a `String` can't fail.
    let _ =
        write!(out, "<h1>{title}</h1>\n<p class=\"limit\">{why}</p>\n<pre class=\"code\"><code>{text}</code></pre>\n");
    out.push_str(PAGE_FOOT);
    out
}

/// The style of what a note shows. Its colors are variables: see [`ThemeTints::css_variables`].
///
/// [`ThemeTints::css_variables`]: crate::tints::ThemeTints::css_variables
pub const NOTE_STYLE: &str = include_str!("html/style.css");

const PAGE_FOOT: &str = "</main>\n</body>\n</html>\n";

fn page_head(title: &str, text: &str, light: &str, dark: &str) -> String {
    let mut out = String::new();
    // The content security policy is a second line of defense: even if something slips through, nothing runs or loads.
    let _ = write!(
        out,
        "<!doctype html>\n<html{}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" \
         content=\"Tracebook\">\n<title>{}</title>\n<style>\n:root{{{light}}}\n\
         @media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n@media print{{:root{{{light}}}}}\n{}</style>\n\
         </head>\n<body>\n<main>\n",
        language_attributes(text),
        escape_html(title),
        NOTE_STYLE,
    );
    out
}

/// How much of a note shows in which script it's written.
const MAX_SCRIPT_CHARS: usize = 20_000;

/// Returns the attributes of a page in the script of its text. The language is only given for the Latin script: a wrong
/// one makes browsers choose wrong fonts, and screen readers wrong voices.
fn language_attributes(text: &str) -> &'static str {
    let (mut latin, mut from_right, mut others) = (0_usize, 0_usize, 0_usize);
    for letter in text.chars().take(MAX_SCRIPT_CHARS).filter(|letter| letter.is_alphabetic()) {
        match bidi_class(letter) {
            BidiClass::R | BidiClass::AL => from_right += 1,
            _ if letter < '\u{250}' => latin += 1,
            _ => others += 1,
        }
    }
    match (from_right > latin.max(others), others > latin) {
        (true, _) => " dir=\"rtl\"",
        (false, true) => "",
        (false, false) => " lang=\"en\"",
    }
}

/// Returns the content of a rendered page, without its head and style.
pub fn page_content(page: &str) -> &str {
    // A note's own text can't form these elements.
    let content = page.split_once("<main>\n").map_or(page, |(_, content)| content);
    content.strip_suffix(PAGE_FOOT).unwrap_or(content)
}

/// Renders the content of `<main>`.
pub fn render_body(text: &str, outputs: &[Option<Execution>], around: &dyn PageContext) -> String {
    walker::write_note(text, outputs, around, &EmbedStack::for_note(&around.note_path()), 0)
}

/// Escapes text for HTML, including quoted attributes. NUL, which HTML doesn't have, becomes U+FFFD.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\0' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns a heading's anchor in links: lowercase, with words joined by `-`.
pub fn heading_slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim().chars() {
        match c {
            c if c.is_alphanumeric() || c == '_' => out.extend(c.to_lowercase()),
            ' ' | '-' | '\t' | '\n' => out.push('-'),
            _ => {}
        }
    }
    out
}

/// Returns the media type of an image; `None` for formats that aren't shown.
fn picture_media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        // As an image, SVG runs no scripts and loads nothing.
        _ => {
            let head = std::str::from_utf8(&bytes[..bytes.len().min(1_000)]).ok()?.trim_start();
            (head.starts_with("<svg") || (head.starts_with("<?xml") && head.contains("<svg")))
                .then_some("image/svg+xml")
        }
    }
}

/// Returns the index of the cell that contains a position.
pub(crate) fn cell_at(cells: &[Range<usize>], at: usize) -> Option<usize> {
    let index = cells.partition_point(|cell| cell.start <= at).checked_sub(1)?;
    cells.get(index)?.contains(&at).then_some(index)
}

/// Splits a picture's text from its width, as Obsidian writes them: `text|300`, `300` or `300x200`. The height follows
/// from the width.
fn split_picture_width(words: &str) -> (&str, Option<&str>) {
    let (alt, size) = words.rsplit_once('|').unwrap_or(("", words));
    let (width, height) = size.split_once('x').map_or((size, None), |(width, height)| (width, Some(height)));
    let is_number = |part: &str| (1..=5).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(width) && height.is_none_or(is_number) { (alt, Some(width)) } else { (words, None) }
}

fn picture_html(bytes: &[u8], alt: &str, width: Option<&str>) -> Option<String> {
    let media = picture_media_type(bytes)?;
    let width = width.map_or_else(String::new, |width| format!(" width=\"{width}\""));
    Some(format!("<img alt=\"{}\"{width} src=\"data:{media};base64,{}\">", escape_html(alt), STANDARD.encode(bytes)))
}

/// Renders an inline drawing. It follows the theme if `diagram_css` declares its colors.
fn drawing_html(drawing: &VectorDrawing, words: &str, colours: &str) -> String {
    // Ids in one drawing must not clash with those of another.
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    let mut svg = drawing.to_safe_svg(&format!("d{:x}-", hasher.finish()));
    let view = format!("<svg viewBox=\"0 0 {} {}\" ", drawing.width, drawing.height);
    svg = svg.replacen("<svg ", &view, 1);
    for (name, colour) in colours.split(';').filter_map(|part| part.split_once(':')) {
        for what in ["fill", "stroke"] {
            svg = svg.replace(&format!("{what}=\"{colour}\""), &format!("{what}=\"var({name})\""));
        }
    }
    format!("<figure class=\"drawn\" role=\"img\" aria-label=\"{}\">{svg}</figure>\n", escape_html(words.trim()))
}

/// Renders the reason why something isn't drawn, if the page must show it.
fn failure_html(failure: &DrawFailure, element: &str) -> String {
    let Some(why) = failure.limit_message() else { return String::new() };
    let end = if element == "p" { "\n" } else { "" };
    format!("<{element} class=\"limit\">Not drawn. {}</{element}>{end}", escape_html(why))
}

/// Renders what a cell printed and returned.
fn outputs_html(run: &Execution, around: &dyn PageContext) -> String {
    let mut out = String::new();
    let text = |out: &mut String, class: &str, text: &str| {
        let text = ansi::strip_codes(text);
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            let _ = writeln!(out, "<pre class=\"{class}\">{}</pre>", escape_html(text));
        }
    };
    for output in &run.outputs {
        match &output.body {
            OutputBody::Stream { name, text: words } => {
                text(&mut out, if name == "stderr" { "err" } else { "out" }, words);
            }
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                let figure = data.iter().find_map(|(media, value)| {
                    let json = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    around.render_figure(media, &json).transpose()
                });
                match figure {
                    Some(Ok(figure)) => {
                        let alt =
                            data.get("text/plain").map(ansi::multiline_text).unwrap_or_else(|| "Figure".to_owned());
                        out.push_str(&drawing_html(&figure, &alt, ""));
                        continue;
                    }
                    Some(Err(failure)) => out.push_str(&failure_html(&failure, "p")),
                    None => {}
                }
                let raster = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                let raster = raster.iter().find_map(|media| data.get(*media)).map(ansi::multiline_text);
                let bytes = raster.and_then(|coded| STANDARD.decode(coded.replace(['\n', '\r', ' '], "")).ok());
                let bytes =
                    bytes.or_else(|| data.get("image/svg+xml").map(|svg| ansi::multiline_text(svg).into_bytes()));
                let alt = data.get("text/plain").map(ansi::multiline_text).unwrap_or_else(|| "Output".to_owned());
                match bytes.and_then(|bytes| picture_html(&bytes, &alt, None)) {
                    Some(image) => out.push_str(&format!("<p>{image}</p>\n")),
                    None => text(&mut out, "out", &alt),
                }
            }
            OutputBody::Error { ename, evalue, traceback } => {
                let head = if evalue.is_empty() { ename.clone() } else { format!("{ename}: {evalue}") };
                let trace = ansi::strip_codes(&traceback.join("\n"));
                let trace = trace.trim_end();
                text(&mut out, "err", if trace.ends_with(head.trim_end()) { trace } else { &head });
            }
        }
    }
    match run.status {
        ExecutionStatus::Interrupted if run.is_canceled_in_queue() => text(&mut out, "err", "Not run."),
        ExecutionStatus::Interrupted => text(&mut out, "err", "Stopped before it was done."),
        ExecutionStatus::Died => text(&mut out, "err", "The kernel ended in the middle of it."),
        ExecutionStatus::Queued | ExecutionStatus::Running | ExecutionStatus::Ok | ExecutionStatus::Error => {}
    }
    if out.is_empty() { out } else { format!("<div class=\"outputs\">\n{out}</div>\n") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trips;

    pub(crate) struct Alone;

    impl PageContext for Alone {
        fn note_path(&self) -> String {
            "Everything.md".to_owned()
        }
        fn read_picture(&self, target: &str) -> Option<Vec<u8>> {
            (target == "a.png").then(|| vec![0x89, b'P', b'N', b'G'])
        }
        fn resolve_link(&self, target: &str) -> Option<String> {
            (target == "B").then(|| "B.html".to_owned())
        }
        fn resolve_embed(&self, target: &str) -> Option<String> {
            (target == "B").then(|| "B.md".to_owned())
        }
        fn note_text(&self, path: &str) -> Option<String> {
            (path == "B.md").then(|| "# B\n\nembedded\n\n![[B]]\n".to_owned())
        }
        fn render_diagram(&self, source: &str) -> Result<VectorDrawing, DrawFailure> {
            let fonts = crate::fonts::FontSet::bundled();
            VectorDrawing::from_svg(&crate::diagram::diagram_svg(source, &crate::tints::PLAIN)?, &fonts)
                .map_err(|why| DrawFailure::Limit(why.to_string()))
        }
        fn render_figure(&self, media: &str, json: &str) -> Result<Option<VectorDrawing>, DrawFailure> {
            let drawn = || VectorDrawing::from_svg(json, &crate::fonts::FontSet::bundled());
            (media == "figure").then(drawn).transpose().map_err(|why| DrawFailure::Limit(why.to_string()))
        }
        fn read_svg(&self, bytes: Vec<u8>) -> Result<VectorDrawing, DrawFailure> {
            let text = String::from_utf8(bytes).map_err(|_| DrawFailure::Wrong("It is not UTF-8.".to_owned()))?;
            VectorDrawing::from_svg(&text, &crate::fonts::FontSet::bundled())
                .map_err(|why| DrawFailure::Limit(why.to_string()))
        }
    }

    fn html(text: &str) -> String {
        render_body(text, &[], &Alone)
    }

    #[test]
    fn blocks_and_words() {
        assert_eq!(html("# A *b*\n\n# A b\n"), "<h1 id=\"a-b\">A <em>b</em></h1>\n<h1 id=\"a-b-1\">A b</h1>\n");
        assert_eq!(
            html("==a== #t/u ^x"),
            "<p><mark>a</mark> <span class=\"tag\">#t/u</span><span id=\"^x\"></span></p>\n"
        );
        assert_eq!(
            html("- [x] a\n- [ ] b\n"),
            "<ul>\n<li><input type=\"checkbox\" aria-label=\"Done\" disabled checked> a</li>\n\
             <li><input type=\"checkbox\" aria-label=\"Done\" disabled> b</li>\n</ul>\n"
        );
        assert!(html("$$\\sqrt{x}$$").contains("<msqrt>"));
        assert_eq!(html("$\\nonsense$"), "<p><code class=\"formula\">\\nonsense</code></p>\n");
        assert!(html("```rust\nfn x() {}\n```").contains("<span class=\"k\">fn</span>"));
        assert_eq!(html("a %%b%%\n\n%%c%%\n"), "<p>a </p>\n");
        assert_eq!(html("|a|b|\n|-|-:|\n|1|2|\n").matches("class=\"right\"").count(), 2);
    }

    #[test]
    fn diagrams_and_figures_are_drawn() {
        let page = html("```mermaid\nflowchart LR\n  A[Rain] --> B\n```\n");
        assert!(page.starts_with("<figure class=\"drawn\" role=\"img\" aria-label=\"flowchart LR"), "{page}");
        assert!(page.contains("<svg viewBox=\"0 0 ") && page.contains("Rain</t"), "{page}");
        let wrong = html("```mermaid\nflowchart LR\n  click A \"javascript:alert(1)\"\n  subgraph x\n```\n");
        assert!(wrong.contains("<pre class=\"code\"") && !wrong.contains("<svg"), "{wrong}");
        let evil = html("```mermaid\nflowchart LR\n  A-->B\n  click A \"javascript:alert(1)\"\n```\n");
        assert!(evil.contains("<svg") && !evil.replace("aria-label", "").contains("href"), "{evil}");
    }

    #[test]
    fn a_page_is_written_in_the_direction_of_its_text() {
        assert_eq!(language_attributes("Rain שלום and `code`"), " lang=\"en\"");
        assert_eq!(language_attributes("# مرحبًا بك في موقع Obsidian\n"), " dir=\"rtl\"");
        assert_eq!((language_attributes("这是笔记 ok"), language_attributes("")), ("", " lang=\"en\""));
    }

    #[test]
    fn callouts_and_footnotes() {
        assert_eq!(
            html("> [!warning]- Mind\n> a\n"),
            "<details class=\"callout warning\">\n<summary>Mind</summary>\n<p>a</p>\n</details>\n"
        );
        assert_eq!(html("> [!tip]\n"), "<aside class=\"callout tip\">\n<p class=\"title\">Tip</p>\n</aside>\n");
        let notes = html("b[^x] a[^y] c[^x]\n\n[^y]: Y\n\n[^x]: X\n");
        assert!(notes.contains("<a id=\"ref-1\" href=\"#note-1\">1</a></sup> a"), "{notes}");
        assert!(notes.contains("<li id=\"note-1\"><p>X <a class=\"back\" href=\"#ref-1\""), "{notes}");
        assert!(notes.contains("#ref-1-2") && notes.contains("<li id=\"note-2\"><p>Y"), "{notes}");
    }

    #[test]
    fn details_fold_their_text_where_it_ends() {
        assert_eq!(
            html("<details>\n<summary>a <b>b</summary>\n\n*c*\n\n</details>\n\nd\n"),
            "<details>\n<summary>a <b>b</b></summary>\n<p><em>c</em></p>\n</details>\n<p>d</p>\n"
        );
        assert_eq!(
            html("<details open>a<script></details>"),
            "<details open>\n<div class=\"html\">a&lt;script&gt;</div>\n</details>\n"
        );
        // What isn't ended ends with the item or the note; what ended nothing is left out.
        assert_eq!(
            html("</details>\n\n- <details>\n  <summary>b</summary>\n\n  c\n\n<details>\n"),
            "<ul>\n<li><details>\n<summary>b</summary>\n<p>c</p>\n</details>\n</li>\n</ul>\n<details>\n</details>\n"
        );
        assert_eq!(html("<!--\na\n-->\n\nb\n"), "<p>b</p>\n");
    }

    #[test]
    fn links_pictures_and_embeds() {
        assert_eq!(html("[[B#C d|x]]"), "<p><a href=\"B.html#c-d\">x</a></p>\n");
        assert_eq!(html("[[Z]] [[#C d]]"), "<p><span class=\"link\">Z</span> <a href=\"#c-d\">#C d</a></p>\n");
        assert_eq!(
            html("![[a.png|30]]"),
            "<p><img alt=\"\" width=\"30\" src=\"data:image/png;base64,iVBORw==\"></p>\n"
        );
        assert!(html("![w|300x200](a.png)").contains("<img alt=\"w\" width=\"300\" src"));
        assert!(html("![[a.png|4 x 5]] ![[a.png]]").contains("<img alt=\"4 x 5\" src"));
        assert!(html("![w](a.png)").contains("<img alt=\"w\""));
        let embed = html("x ![[B]] y");
        assert!(embed.starts_with("<p>x </p>\n<section class=\"embed\">\n<h1 id=\"b\">B</h1>\n<p>embedded"), "{embed}");
        assert!(embed.ends_with("<p> y</p>\n"), "{embed}");
        assert_eq!(html("![p](https://a.b/c.png)"), "<p><a class=\"image\" href=\"https://a.b/c.png\">p</a></p>\n");
    }

    #[test]
    fn nothing_runs() {
        for evil in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[a](javascript:alert(1)) [b](JaVaScRiPt:x) [c](data:text/html,x) [d](vbscript:x)",
            "<a href=\"javascript:x\">a</a>",
            "![\"onload=\"x](a.png)",
            "[[\"onclick=\"x|y]] [[javascript:x]]",
            "```\"><script>\nx\n```",
            "# a\"onclick=\"x",
            "> [!\"><script>] x",
            "[x][y]\n\n[y]: javascript:x \"<script>\"",
            "text ^a\"b <svg onload=x>",
        ] {
            let html = html(evil);
            for part in
                ["<script", "<img src=x", "href=\"javascript", "href=\"JaVa", "href=\"data", "<svg", "href=\"vb"]
            {
                assert!(!html.contains(part), "{evil}: {html}");
            }
            for tag in html.split('<').skip(1).filter_map(|tag| tag.split('>').next()) {
                let quotes = tag.matches('"').count();
                let bare: String = tag.split('"').step_by(2).collect();
                assert!(quotes % 2 == 0 && !bare.contains("onclick") && !bare.contains("onload"), "{evil}: {html}");
            }
        }
    }

    #[test]
    fn the_content_of_a_page_is_its_body() {
        let (text, outputs) = ("# A\n\n<main>\n</main>\n", [None]);
        let note = HtmlNote { title: "</main>", text, outputs: &outputs, light: "", dark: "", around: &Alone };
        assert_eq!(page_content(&render_page(&note)), html(text));
    }

    #[test]
    fn nothing_trips_it() {
        for text in trips::texts(&trips::NOTE, 3_000, 14) {
            let _ = html(&text);
        }
    }
}
