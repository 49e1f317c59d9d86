//! Walks through a note's tokens and renders them as HTML.

use super::raw_html::RawHtml;
use super::{
    MAX_HTML_EMBED_DEPTH, PageContext, cell_at, drawing_html, escape_html, failure_html, heading_slug, outputs_html,
    picture_html, split_picture_width,
};
use crate::failure::EmbedStack;
use crate::highlight::{self, CodeHue};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Tag, TagEnd};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use store::Execution;
use text::markdown::details::{DetailsPart, details_parts};
use text::markdown::dialect::{self, DialectToken};
use text::properties::{Property, PropertyKind};

/// Renders a text as HTML. `depth` is the number of notes around an embedded one.
pub(super) fn write_note(
    text: &str,
    runs: &[Option<Execution>],
    around: &dyn PageContext,
    embeds: &EmbedStack,
    depth: u8,
) -> String {
    let mut walk = HtmlWalker::new(text, runs, around, embeds, depth);
    if let (Some(Ok(properties)), 0) = (text::properties::read(text), depth) {
        walk.write_properties(&properties);
    }
    for (token, range) in dialect::tokenize(text, dialect::dialect_options()) {
        walk.handle_token(token, &range);
    }
    walk.finish()
}

/// The role of the next paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParagraphHead {
    /// An ordinary paragraph.
    None,
    /// The title of a callout; `folds` tells whether it can be collapsed.
    Title { folds: bool },
}

/// A code block being read.
struct OpenCode {
    text: String,
    language: String,
    /// Index of the code cell; `None` if the block isn't one.
    cell: Option<usize>,
}

struct HtmlWalker<'a> {
    around: &'a dyn PageContext,
    embeds: &'a EmbedStack,
    runs: &'a [Option<Execution>],
    cells: Vec<Range<usize>>,
    depth: u8,
    /// The output, and below it the suspended outputs: footnotes are rendered separately.
    output_stack: Vec<String>,
    raw: RawHtml,
    /// The HTML block being read.
    html_block: Option<String>,
    /// Number of open `<details>` in the note, and in each open quote, item and footnote.
    details: Vec<usize>,
    /// The end tag of each open quote.
    quotes: Vec<&'static str>,
    head: ParagraphHead,
    /// Whether a `<p>` element is open.
    paragraph: bool,
    /// Default title of a callout without a title.
    title: String,
    code: Option<OpenCode>,
    meta: Option<String>,
    table: (Vec<Alignment>, usize, bool),
    /// Offset in the output at which the open image's alternative text starts, its target, and whether it's a wiki
    /// link.
    image: Option<(usize, String, bool)>,
    /// The end tag of each open link.
    links: Vec<&'static str>,
    heading: Option<usize>,
    slugs: HashMap<String, usize>,
    /// Footnotes in order of their first reference, with the number of references.
    order: Vec<(String, usize)>,
    /// Index of each footnote in `order`.
    places: HashMap<String, usize>,
    notes: HashMap<String, String>,
    note: Option<String>,
}

impl<'a> HtmlWalker<'a> {
    fn new(
        text: &str,
        runs: &'a [Option<Execution>],
        around: &'a dyn PageContext,
        embeds: &'a EmbedStack,
        depth: u8,
    ) -> HtmlWalker<'a> {
        HtmlWalker {
            around,
            embeds,
            runs,
            cells: text::markdown::cell_ranges(text),
            depth,
            output_stack: vec![String::new()],
            raw: RawHtml::default(),
            html_block: None,
            details: vec![0],
            quotes: Vec::new(),
            head: ParagraphHead::None,
            paragraph: false,
            title: String::new(),
            code: None,
            meta: None,
            table: (Vec::new(), 0, false),
            image: None,
            links: Vec::new(),
            heading: None,
            slugs: HashMap::new(),
            order: Vec::new(),
            places: HashMap::new(),
            notes: HashMap::new(),
            note: None,
        }
    }

    fn output(&mut self) -> &mut String {
        if self.output_stack.is_empty() {
            self.output_stack.push(String::new());
        }
        let last = self.output_stack.len() - 1;
        &mut self.output_stack[last]
    }

    fn push_html(&mut self, html: &str) {
        self.output().push_str(html);
    }

    fn write_properties(&mut self, properties: &[Property]) {
        if properties.is_empty() {
            return;
        }
        self.push_html("<table class=\"properties\">\n");
        for property in properties {
            let value = |(words, _): &(String, Range<usize>)| match property.kind {
                PropertyKind::Check(done) => {
                    format!(
                        "<input type=\"checkbox\" aria-label=\"Value\" disabled{}>",
                        if done { " checked" } else { "" }
                    )
                }
                PropertyKind::List => format!("<span class=\"tag\">{}</span>", escape_html(words)),
                PropertyKind::Text
                | PropertyKind::Number
                | PropertyKind::Date
                | PropertyKind::Link
                | PropertyKind::Nested => escape_html(words),
            };
            let values: Vec<String> = property.values.iter().map(value).collect();
            // Here and below: writing to a `String` can't fail.
            let _ = writeln!(
                self.output(),
                "<tr><th>{}</th><td>{}</td></tr>",
                escape_html(&property.key),
                values.join(" ")
            );
        }
        self.push_html("</table>\n");
    }

    fn handle_token(&mut self, token: DialectToken<'_>, range: &Range<usize>) {
        match token {
            DialectToken::Mark(event) => self.handle_event(event, range),
            DialectToken::Highlight(true) => self.push_html("<mark>"),
            DialectToken::Highlight(false) => self.push_html("</mark>"),
            DialectToken::Label(name) => {
                let _ = write!(self.output(), "<span class=\"tag\">#{}</span>", escape_html(name));
            }
            DialectToken::Anchor(name) => {
                let _ = write!(self.output(), "<span id=\"^{}\"></span>", escape_html(name));
            }
            DialectToken::State(state) => {
                let _ = write!(
                    self.output(),
                    "<input type=\"checkbox\" aria-label=\"Done\" disabled title=\"{}\"> ",
                    escape_html(&state.to_string())
                );
            }
            DialectToken::Callout(callout) => {
                let (element, open) = match callout.folded {
                    Some(true) => ("details", ""),
                    Some(false) => ("details", " open"),
                    None => ("aside", ""),
                };
                let name = callout.kind.name();
                let _ = writeln!(self.output(), "<{element} class=\"callout {name}\"{open}>");
                self.quotes.push(if element == "aside" { "</aside>\n" } else { "</details>\n" });
                self.details.push(0);
                self.head = ParagraphHead::Title { folds: element == "details" };
                self.title = callout.default_title();
            }
        }
    }

    fn handle_event(&mut self, event: Event<'_>, range: &Range<usize>) {
        if let Some(code) = &mut self.code
            && let Event::Text(text) = &event
        {
            code.text.push_str(text);
            return;
        }
        if let Some(meta) = &mut self.meta
            && let Event::Text(text) = &event
        {
            meta.push_str(text);
            return;
        }
        match event {
            Event::Start(tag) => self.start_tag(tag, range),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.push_html(&escape_html(&text)),
            Event::Code(code) => {
                let _ = write!(self.output(), "<code>{}</code>", escape_html(&code));
            }
            Event::InlineHtml(html) => {
                let html = self.raw.sanitize(&html);
                self.push_html(&html);
            }
            Event::Html(html) => match &mut self.html_block {
                Some(block) => block.push_str(&html),
                None => self.write_html("", &html, ""),
            },
            Event::SoftBreak => self.push_html("\n"),
            Event::HardBreak => self.push_html("<br>\n"),
            Event::Rule => self.push_html("<hr>\n"),
            Event::InlineMath(source) => self.write_math(&source, false),
            Event::DisplayMath(source) => self.write_math(&source, true),
            Event::TaskListMarker(done) => {
                let done = if done { " checked" } else { "" };
                let _ = write!(self.output(), "<input type=\"checkbox\" aria-label=\"Done\" disabled{done}> ");
            }
            Event::FootnoteReference(name) => self.write_footnote_reference(&name),
        }
    }

    /// Writes the harmless part of raw HTML between two tags, if there is any. Elements that it opened are closed.
    fn write_html(&mut self, start: &str, html: &str, end: &str) {
        let html = self.raw.sanitize(html) + &self.raw.close_all();
        if !html.trim().is_empty() {
            self.push_html(&format!("{start}{}{end}", html.trim()));
        }
    }

    /// Writes an HTML block. Its tags of `<details>` are kept: what they fold may be in later blocks.
    fn write_html_block(&mut self, html: &str) {
        let parts = details_parts(html).unwrap_or_else(|| vec![DetailsPart::Html(0..html.len())]);
        for part in parts {
            match part {
                DetailsPart::Html(range) => self.write_html("<div class=\"html\">", &html[range], "</div>\n"),
                DetailsPart::Start { is_open, summary } => {
                    self.push_html(if is_open { "<details open>\n" } else { "<details>\n" });
                    if let Some(count) = self.details.last_mut() {
                        *count += 1;
                    }
                    self.write_html("<summary>", &html[summary], "</summary>\n");
                }
                // An end tag can't end what began outside of the quote, item or footnote.
                DetailsPart::End => {
                    if let Some(count) = self.details.last_mut().filter(|count| **count > 0) {
                        *count -= 1;
                        self.push_html("</details>\n");
                    }
                }
            }
        }
    }

    /// Ends the `<details>` that began in a quote, item or footnote and weren't ended there.
    fn end_details(&mut self) {
        let count = self.details.pop().unwrap_or(0);
        self.push_html(&"</details>\n".repeat(count));
    }

    fn write_math(&mut self, source: &str, display: bool) {
        match self.around.formula_mathml(source, display) {
            Ok(mathml) => self.push_html(&mathml),
            Err(failure) => {
                let _ = write!(self.output(), "<code class=\"formula\">{}</code>", escape_html(source.trim()));
                if failure.limit_message().is_some() {
                    self.push_html(" ");
                    self.push_html(&failure_html(&failure, "span"));
                }
            }
        }
    }

    fn write_footnote_reference(&mut self, name: &str) {
        let at = match self.places.get(name) {
            Some(at) => *at,
            None => {
                self.order.push((name.to_owned(), 0));
                self.places.insert(name.to_owned(), self.order.len() - 1);
                self.order.len() - 1
            }
        };
        self.order[at].1 += 1;
        let (number, times) = (at + 1, self.order[at].1);
        let suffix = if times > 1 { format!("-{times}") } else { String::new() };
        let _ = write!(
            self.output(),
            "<sup class=\"ref\"><a id=\"ref-{number}{suffix}\" href=\"#note-{number}\">{number}</a></sup>"
        );
    }

    fn start_tag(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => {
                self.paragraph = self.head == ParagraphHead::None;
                self.push_html(match self.head {
                    ParagraphHead::None => "<p>",
                    ParagraphHead::Title { folds: true } => "<summary>",
                    ParagraphHead::Title { folds: false } => "<p class=\"title\">",
                });
            }
            Tag::Heading { level, .. } => {
                let _ = write!(self.output(), "<{level}>");
                self.heading = Some(self.output().len());
            }
            Tag::BlockQuote(_) => {
                self.push_html("<blockquote>\n");
                self.quotes.push("</blockquote>\n");
                self.details.push(0);
            }
            Tag::CodeBlock(kind) => {
                let cells = match kind {
                    CodeBlockKind::Fenced(_) => self.cells.as_slice(),
                    CodeBlockKind::Indented => &[],
                };
                let cell = cell_at(cells, range.start);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let first = info.trim_start_matches("{.").split([' ', '{', ',', '}']).next().unwrap_or("");
                self.code = Some(OpenCode { text: String::new(), language: first.to_owned(), cell });
            }
            Tag::HtmlBlock => self.html_block = Some(String::new()),
            Tag::List(None) => self.push_html("<ul>\n"),
            Tag::List(Some(1)) => self.push_html("<ol>\n"),
            Tag::List(Some(start)) => {
                let _ = writeln!(self.output(), "<ol start=\"{start}\">");
            }
            Tag::Item => {
                self.push_html("<li>");
                self.details.push(0);
            }
            Tag::FootnoteDefinition(name) => {
                self.output_stack.push(String::new());
                self.details.push(0);
                self.note = Some(name.into_string());
            }
            Tag::Table(columns) => {
                self.table = (columns, 0, true);
                self.push_html("<div class=\"table\"><table>\n");
            }
            Tag::TableHead => self.push_html("<thead>\n<tr>"),
            Tag::TableRow => {
                self.table.1 = 0;
                self.push_html("<tr>");
            }
            Tag::TableCell => {
                let align = match self.table.0.get(self.table.1) {
                    Some(Alignment::Left) => " class=\"left\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::None) | None => "",
                };
                let cell = if self.table.2 { "th" } else { "td" };
                let _ = write!(self.output(), "<{cell}{align}>");
            }
            Tag::Emphasis => self.push_html("<em>"),
            Tag::Strong => self.push_html("<strong>"),
            Tag::Strikethrough => self.push_html("<del>"),
            Tag::Link { link_type, dest_url, title, .. } => self.start_link(link_type, &dest_url, &title),
            Tag::Image { link_type, dest_url, .. } => {
                let wiki = matches!(link_type, LinkType::WikiLink { .. });
                let at = self.output().len();
                self.image = Some((at, dest_url.into_string(), wiki));
            }
            Tag::MetadataBlock(_) => self.meta = Some(String::new()),
            Tag::Superscript => self.push_html("<sup>"),
            Tag::Subscript => self.push_html("<sub>"),
            Tag::DefinitionList | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {}
        }
    }

    fn start_link(&mut self, link_type: LinkType, target: &str, title: &str) {
        let href = match link_type {
            LinkType::Email => Some(format!("mailto:{target}")),
            LinkType::WikiLink { .. } => self.resolve_note_link(target),
            _ if target.starts_with('#') => Some(target.to_owned()),
            _ => match target.split_once(':') {
                Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
                    known.then(|| target.to_owned())
                }
                _ => self.resolve_note_link(target),
            },
        };
        match href {
            Some(href) => {
                let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape_html(title)) };
                let _ = write!(self.output(), "<a href=\"{}\"{title}>", escape_html(&href));
                self.links.push("</a>");
            }
            None => {
                self.push_html("<span class=\"link\">");
                self.links.push("</span>");
            }
        }
    }

    /// Returns the target of a link to a note of the volume.
    fn resolve_note_link(&self, target: &str) -> Option<String> {
        let (note, part) = dialect::split_wiki_target(target);
        // Of `#A#B`, B below A, the page has the last one.
        let heading = |part: &str| heading_slug(part.rsplit('#').next().unwrap_or(part));
        let part = part.map(|part| if part.starts_with('^') { part.to_owned() } else { heading(part) });
        match (note, part) {
            ("", part) => part.map(|part| format!("#{part}")),
            (note, None) => self.around.resolve_link(note),
            (note, Some(part)) => self.around.resolve_link(note).map(|link| format!("{link}#{part}")),
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(level) => {
                if let Some(at) = self.heading.take() {
                    let words = self.output().split_off(at);
                    let id = self.unique_slug(&heading_slug(&strip_tags(&words)));
                    let open = format!("<{level}>");
                    let start = at - open.len();
                    self.output().truncate(start);
                    let _ = write!(self.output(), "<{level} id=\"{}\">{words}</{level}>", escape_html(&id));
                }
                self.push_html("\n");
            }
            TagEnd::BlockQuote(_) => {
                if let ParagraphHead::Title { .. } = self.head {
                    // The callout has no content.
                    self.start_tag(Tag::Paragraph, &(0..0));
                    self.end_paragraph();
                }
                self.end_details();
                let end = self.quotes.pop().unwrap_or("");
                self.push_html(end);
            }
            TagEnd::CodeBlock => self.end_code_block(),
            TagEnd::HtmlBlock => {
                let block = self.html_block.take().unwrap_or_default();
                self.write_html_block(&block);
            }
            TagEnd::List(ordered) => self.push_html(if ordered { "</ol>\n" } else { "</ul>\n" }),
            TagEnd::Item => {
                let end = self.raw.close_all();
                self.push_html(&end);
                self.end_details();
                self.push_html("</li>\n");
            }
            TagEnd::FootnoteDefinition => {
                self.end_details();
                if let (Some(name), Some(html)) = (self.note.take(), self.output_stack.pop()) {
                    self.notes.entry(name).or_insert(html);
                }
            }
            TagEnd::Table => {
                if !self.table.2 {
                    self.push_html("</tbody>\n");
                }
                self.push_html("</table></div>\n");
            }
            TagEnd::TableHead => {
                self.push_html("</tr>\n</thead>\n<tbody>\n");
                self.table.2 = false;
            }
            TagEnd::TableRow => self.push_html("</tr>\n"),
            TagEnd::TableCell => {
                self.table.1 += 1;
                let end = self.raw.close_all();
                self.push_html(&end);
                self.push_html(if self.table.2 { "</th>" } else { "</td>" });
            }
            TagEnd::Emphasis => self.push_html("</em>"),
            TagEnd::Strong => self.push_html("</strong>"),
            TagEnd::Strikethrough => self.push_html("</del>"),
            TagEnd::Link => {
                let end = self.links.pop().unwrap_or("");
                self.push_html(end);
            }
            TagEnd::Image => self.end_image(),
            TagEnd::MetadataBlock(_) => self.meta = None,
            TagEnd::Superscript => self.push_html("</sup>"),
            TagEnd::Subscript => self.push_html("</sub>"),
            TagEnd::DefinitionList | TagEnd::DefinitionListTitle | TagEnd::DefinitionListDefinition => {}
        }
    }

    fn end_paragraph(&mut self) {
        let end = self.raw.close_all();
        self.push_html(&end);
        self.paragraph = false;
        match std::mem::replace(&mut self.head, ParagraphHead::None) {
            ParagraphHead::None if self.output().ends_with("<p>") => {
                let length = self.output().len() - "<p>".len();
                self.output().truncate(length);
            }
            ParagraphHead::None => self.push_html("</p>\n"),
            ParagraphHead::Title { folds } => {
                let opening = if folds { "<summary>" } else { "<p class=\"title\">" };
                if self.output().ends_with(opening) {
                    let title = escape_html(&std::mem::take(&mut self.title));
                    self.push_html(&title);
                }
                self.push_html(if folds { "</summary>\n" } else { "</p>\n" });
            }
        }
    }

    fn unique_slug(&mut self, slug: &str) -> String {
        let times = self.slugs.entry(slug.to_owned()).or_insert(0);
        *times += 1;
        if *times == 1 { slug.to_owned() } else { format!("{slug}-{}", *times - 1) }
    }

    fn end_image(&mut self) {
        let Some((at, target, wiki)) = self.image.take() else { return };
        let out = self.output();
        let words = strip_tags(&out.split_off(at.min(out.len())));
        let (alt, width) = split_picture_width(&words);
        let alt = if wiki && alt == target { "" } else { alt };
        if let Some(image) = self.around.read_picture(&target).and_then(|bytes| picture_html(&bytes, alt, width)) {
            self.push_html(&image);
            return;
        }
        if wiki && self.depth < MAX_HTML_EMBED_DEPTH {
            let (note, part) = dialect::split_wiki_target(&target);
            let embedded = self.around.resolve_embed(note).map(|path| {
                self.embeds.push_note(&path, part)?;
                let text = self.around.note_text(&path).unwrap_or_default();
                let text = part.map_or(text.as_str(), |part| text::markdown::linked_part(&text, part).unwrap_or(""));
                let counted = self.embeds.count_bytes(text.len());
                let html = counted.map(|()| write_note(text, &[], self.around, self.embeds, self.depth + 1));
                self.embeds.pop_note();
                html
            });
            if let Some(Err(failure)) = &embedded {
                let mut why = failure_html(failure, "span");
                why.push(' ');
                self.push_html(&why);
            }
            if let Some(Ok(html)) = embedded {
                // A paragraph can't contain the embedded note's blocks.
                let paragraph = self.paragraph;
                if paragraph {
                    self.end_paragraph();
                }
                let _ = writeln!(self.output(), "<section class=\"embed\">\n{html}</section>");
                if paragraph {
                    self.start_tag(Tag::Paragraph, &(0..0));
                }
                return;
            }
        }
        let words = if words.is_empty() { target.clone() } else { words };
        let remote = target.starts_with("http://") || target.starts_with("https://");
        let href = if remote { Some(target.clone()) } else { self.resolve_note_link(&target) };
        // Remote images are linked, not loaded.
        let _ = match href {
            Some(href) => {
                write!(self.output(), "<a class=\"image\" href=\"{}\">{}</a>", escape_html(&href), escape_html(&words))
            }
            None => write!(self.output(), "<span class=\"link\">{}</span>", escape_html(&words)),
        };
    }

    fn end_code_block(&mut self) {
        let Some(OpenCode { text, language, cell }) = self.code.take() else { return };
        let name =
            if language.is_empty() { String::new() } else { format!(" data-language=\"{}\"", escape_html(&language)) };
        let diagram = (language == "mermaid").then(|| self.around.render_diagram(&text));
        if let Some(Ok(drawing)) = &diagram {
            let html = drawing_html(drawing, &text, &self.around.diagram_css());
            self.push_html(&html);
            return;
        }
        let class = if cell.is_some() { "cell" } else { "code" };
        let html = highlighted_html(&text, &language);
        let _ = writeln!(self.output(), "<pre class=\"{class}\"{name}><code>{html}</code></pre>");
        if let Some(Err(failure)) = diagram {
            self.push_html(&failure_html(&failure, "p"));
        }
        if let Some(Some(run)) = cell.and_then(|cell| self.runs.get(cell)) {
            let html = outputs_html(run, self.around);
            self.push_html(&html);
        }
    }

    fn finish(mut self) -> String {
        self.end_details();
        let mut out = self.output_stack.first().cloned().unwrap_or_default();
        if self.order.iter().all(|(name, _)| !self.notes.contains_key(name)) {
            return out;
        }
        out.push_str("<section class=\"notes\">\n<ol>\n");
        for (index, (name, times)) in self.order.iter().enumerate() {
            let number = index + 1;
            let html = self.notes.remove(name).unwrap_or_default();
            let back: String = (1..=*times)
                .map(|time| if time == 1 { String::new() } else { format!("-{time}") })
                .map(|suffix| format!(" <a class=\"back\" href=\"#ref-{number}{suffix}\" aria-label=\"Back\">↩</a>"))
                .collect();
            let html = match html.strip_suffix("</p>\n") {
                Some(html) => format!("{html}{back}</p>\n"),
                None => format!("{html}{back}\n"),
            };
            let _ = writeln!(out, "<li id=\"note-{number}\">{html}</li>");
        }
        out.push_str("</ol>\n</section>\n");
        out
    }
}

/// Renders code as HTML, with colored ranges in `span` elements with one-letter classes.
fn highlighted_html(code: &str, language: &str) -> String {
    let Some(hues) = highlight::highlight_code(code, language) else { return escape_html(code) };
    let mut out = String::with_capacity(code.len() * 2);
    let mut at = 0;
    for (range, hue) in hues {
        let letter = match hue {
            CodeHue::Keyword => 'k',
            CodeHue::Text => 's',
            CodeHue::Comment => 'c',
            CodeHue::Number => 'n',
            CodeHue::Name => 'f',
        };
        out.push_str(&escape_html(&code[at..range.start]));
        let _ = write!(out, "<span class=\"{letter}\">{}</span>", escape_html(&code[range.clone()]));
        at = range.end;
    }
    out.push_str(&escape_html(&code[at..]));
    out
}

/// Returns the text of HTML that was rendered here.
pub(crate) fn strip_tags(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        rest = rest[start..].find('>').map_or("", |end| &rest[start + end + 1..]);
    }
    out.push_str(rest);
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
