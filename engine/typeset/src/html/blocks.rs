//! The walk through a note: each token as HTML.

use super::raw::RawHtml;
use super::{MAX_HTML_EMBED_DEPTH, PageContext, cell_at, drawn, escaped, outputs, picture, reason, slug};
use crate::colour::{self, CodeHue};
use crate::failure::EmbedStack;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Tag, TagEnd};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use store::Execution;
use text::markdown::dialect::{self, DialectToken};
use text::properties::{Property, PropertyKind};

/// Writes a text. `depth` counts the notes around an embedded one.
pub(super) fn write(
    text: &str,
    runs: &[Option<Execution>],
    around: &dyn PageContext,
    embeds: &EmbedStack,
    depth: u8,
) -> String {
    let mut walk = HtmlWalker::new(text, runs, around, embeds, depth);
    if let (Some(Ok(properties)), 0) = (text::properties::read(text), depth) {
        walk.properties(&properties);
    }
    for (token, range) in dialect::tokens(text, dialect::options()) {
        walk.token(token, &range);
    }
    walk.finish()
}

/// What the paragraph is that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParagraphHead {
    /// An ordinary one.
    None,
    /// The title of a callout, which folds or not.
    Title { folds: bool },
}

/// Code under way.
struct OpenCode {
    text: String,
    language: String,
    /// Which cell it is, if it is one.
    cell: Option<usize>,
}

struct HtmlWalker<'a> {
    around: &'a dyn PageContext,
    embeds: &'a EmbedStack,
    runs: &'a [Option<Execution>],
    cells: Vec<Range<usize>>,
    depth: u8,
    /// What is written, and below it what waits: a footnote is written apart.
    outs: Vec<String>,
    raw: RawHtml,
    /// What each open quote ends with.
    quotes: Vec<&'static str>,
    head: ParagraphHead,
    /// Whether a paragraph is open.
    paragraph: bool,
    /// The title of a callout that was given none.
    title: String,
    code: Option<OpenCode>,
    meta: Option<String>,
    table: (Vec<Alignment>, usize, bool),
    /// Where the words of the open picture's text begin in what is written.
    image: Option<(usize, String, bool)>,
    /// What each open link ends with.
    links: Vec<&'static str>,
    heading: Option<usize>,
    slugs: HashMap<String, usize>,
    /// The footnotes in the order in which they are referred to, and how often.
    order: Vec<(String, usize)>,
    /// Where each of them stands among those.
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
            cells: text::markdown::cells(text),
            depth,
            outs: vec![String::new()],
            raw: RawHtml::default(),
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

    fn out(&mut self) -> &mut String {
        if self.outs.is_empty() {
            self.outs.push(String::new());
        }
        let last = self.outs.len() - 1;
        &mut self.outs[last]
    }

    fn put(&mut self, html: &str) {
        self.out().push_str(html);
    }

    fn properties(&mut self, properties: &[Property]) {
        if properties.is_empty() {
            return;
        }
        self.put("<table class=\"properties\">\n");
        for property in properties {
            let value = |(words, _): &(String, Range<usize>)| match property.kind {
                PropertyKind::Check(done) => {
                    format!("<input type=\"checkbox\" disabled{}>", if done { " checked" } else { "" })
                }
                PropertyKind::List => format!("<span class=\"tag\">{}</span>", escaped(words)),
                PropertyKind::Text
                | PropertyKind::Number
                | PropertyKind::Date
                | PropertyKind::Link
                | PropertyKind::Nested => escaped(words),
            };
            let values: Vec<String> = property.values.iter().map(value).collect();
            let _ = writeln!(self.out(), "<tr><th>{}</th><td>{}</td></tr>", escaped(&property.key), values.join(" "));
        }
        self.put("</table>\n");
    }

    fn token(&mut self, token: DialectToken<'_>, range: &Range<usize>) {
        match token {
            DialectToken::Mark(event) => self.event(event, range),
            DialectToken::Highlight(true) => self.put("<mark>"),
            DialectToken::Highlight(false) => self.put("</mark>"),
            DialectToken::Label(name) => {
                let _ = write!(self.out(), "<span class=\"tag\">#{}</span>", escaped(name));
            }
            DialectToken::Anchor(name) => {
                let _ = write!(self.out(), "<span id=\"^{}\"></span>", escaped(name));
            }
            DialectToken::State(state) => {
                let _ =
                    write!(self.out(), "<input type=\"checkbox\" disabled title=\"{}\"> ", escaped(&state.to_string()));
            }
            DialectToken::Callout(callout) => {
                let (element, open) = match callout.folded {
                    Some(true) => ("details", ""),
                    Some(false) => ("details", " open"),
                    None => ("aside", ""),
                };
                let name = callout.kind.name();
                let _ = writeln!(self.out(), "<{element} class=\"callout {name}\"{open}>");
                self.quotes.push(if element == "aside" { "</aside>\n" } else { "</details>\n" });
                self.head = ParagraphHead::Title { folds: element == "details" };
                self.title = callout.default_title();
            }
        }
    }

    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
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
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.put(&escaped(&text)),
            Event::Code(code) => {
                let _ = write!(self.out(), "<code>{}</code>", escaped(&code));
            }
            Event::InlineHtml(html) => {
                let html = self.raw.write(&html);
                self.put(&html);
            }
            Event::Html(html) => {
                let html = self.raw.write(&html);
                self.put(&html);
            }
            Event::SoftBreak => self.put("\n"),
            Event::HardBreak => self.put("<br>\n"),
            Event::Rule => self.put("<hr>\n"),
            Event::InlineMath(source) => self.math(&source, false),
            Event::DisplayMath(source) => self.math(&source, true),
            Event::TaskListMarker(done) => {
                let done = if done { " checked" } else { "" };
                let _ = write!(self.out(), "<input type=\"checkbox\" disabled{done}> ");
            }
            Event::FootnoteReference(name) => self.reference(&name),
        }
    }

    fn math(&mut self, source: &str, display: bool) {
        match self.around.mathml(source, display) {
            Ok(mathml) => self.put(&mathml),
            Err(failure) => {
                let _ = write!(self.out(), "<code class=\"formula\">{}</code>", escaped(source.trim()));
                if failure.limit().is_some() {
                    self.put(" ");
                    self.put(&reason(&failure, "span"));
                }
            }
        }
    }

    fn reference(&mut self, name: &str) {
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
            self.out(),
            "<sup class=\"ref\"><a id=\"ref-{number}{suffix}\" href=\"#note-{number}\">{number}</a></sup>"
        );
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => {
                self.paragraph = self.head == ParagraphHead::None;
                self.put(match self.head {
                    ParagraphHead::None => "<p>",
                    ParagraphHead::Title { folds: true } => "<summary>",
                    ParagraphHead::Title { folds: false } => "<p class=\"title\">",
                });
            }
            Tag::Heading { level, .. } => {
                let _ = write!(self.out(), "<{level}>");
                self.heading = Some(self.out().len());
            }
            Tag::BlockQuote(_) => {
                self.put("<blockquote>\n");
                self.quotes.push("</blockquote>\n");
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
            Tag::HtmlBlock => self.put("<div class=\"html\">"),
            Tag::List(None) => self.put("<ul>\n"),
            Tag::List(Some(1)) => self.put("<ol>\n"),
            Tag::List(Some(start)) => {
                let _ = writeln!(self.out(), "<ol start=\"{start}\">");
            }
            Tag::Item => self.put("<li>"),
            Tag::FootnoteDefinition(name) => {
                self.outs.push(String::new());
                self.note = Some(name.into_string());
            }
            Tag::Table(columns) => {
                self.table = (columns, 0, true);
                self.put("<div class=\"table\"><table>\n");
            }
            Tag::TableHead => self.put("<thead>\n<tr>"),
            Tag::TableRow => {
                self.table.1 = 0;
                self.put("<tr>");
            }
            Tag::TableCell => {
                let align = match self.table.0.get(self.table.1) {
                    Some(Alignment::Left) => " class=\"left\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::None) | None => "",
                };
                let cell = if self.table.2 { "th" } else { "td" };
                let _ = write!(self.out(), "<{cell}{align}>");
            }
            Tag::Emphasis => self.put("<em>"),
            Tag::Strong => self.put("<strong>"),
            Tag::Strikethrough => self.put("<del>"),
            Tag::Link { link_type, dest_url, title, .. } => self.link(link_type, &dest_url, &title),
            Tag::Image { link_type, dest_url, .. } => {
                let wiki = matches!(link_type, LinkType::WikiLink { .. });
                let at = self.out().len();
                self.image = Some((at, dest_url.into_string(), wiki));
            }
            Tag::MetadataBlock(_) => self.meta = Some(String::new()),
            Tag::Superscript => self.put("<sup>"),
            Tag::Subscript => self.put("<sub>"),
            Tag::DefinitionList | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {}
        }
    }

    fn link(&mut self, link_type: LinkType, target: &str, title: &str) {
        let href = match link_type {
            LinkType::Email => Some(format!("mailto:{target}")),
            LinkType::WikiLink { .. } => self.inside(target),
            _ if target.starts_with('#') => Some(target.to_owned()),
            _ => match target.split_once(':') {
                Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
                    known.then(|| target.to_owned())
                }
                _ => self.inside(target),
            },
        };
        match href {
            Some(href) => {
                let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escaped(title)) };
                let _ = write!(self.out(), "<a href=\"{}\"{title}>", escaped(&href));
                self.links.push("</a>");
            }
            None => {
                self.put("<span class=\"link\">");
                self.links.push("</span>");
            }
        }
    }

    /// Where a link to a note of the volume leads.
    fn inside(&self, target: &str) -> Option<String> {
        let (note, part) = dialect::wiki_target(target);
        let part = part.map(|part| if part.starts_with('^') { part.to_owned() } else { slug(part) });
        match (note, part) {
            ("", part) => part.map(|part| format!("#{part}")),
            (note, None) => self.around.link(note),
            (note, Some(part)) => self.around.link(note).map(|link| format!("{link}#{part}")),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(level) => {
                if let Some(at) = self.heading.take() {
                    let words = self.out().split_off(at);
                    let id = self.unique(&slug(&plain(&words)));
                    let open = format!("<{level}>");
                    let start = at - open.len();
                    self.out().truncate(start);
                    let _ = write!(self.out(), "<{level} id=\"{}\">{words}</{level}>", escaped(&id));
                }
                self.put("\n");
            }
            TagEnd::BlockQuote(_) => {
                if let ParagraphHead::Title { .. } = self.head {
                    // A callout with nothing in it.
                    self.start(Tag::Paragraph, &(0..0));
                    self.end_paragraph();
                }
                let end = self.quotes.pop().unwrap_or("");
                self.put(end);
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::HtmlBlock => {
                let end = self.raw.end();
                self.put(&end);
                self.put("</div>\n");
            }
            TagEnd::List(ordered) => self.put(if ordered { "</ol>\n" } else { "</ul>\n" }),
            TagEnd::Item => {
                let end = self.raw.end();
                self.put(&end);
                self.put("</li>\n");
            }
            TagEnd::FootnoteDefinition => {
                if let (Some(name), Some(html)) = (self.note.take(), self.outs.pop()) {
                    self.notes.entry(name).or_insert(html);
                }
            }
            TagEnd::Table => {
                if !self.table.2 {
                    self.put("</tbody>\n");
                }
                self.put("</table></div>\n");
            }
            TagEnd::TableHead => {
                self.put("</tr>\n</thead>\n<tbody>\n");
                self.table.2 = false;
            }
            TagEnd::TableRow => self.put("</tr>\n"),
            TagEnd::TableCell => {
                self.table.1 += 1;
                let end = self.raw.end();
                self.put(&end);
                self.put(if self.table.2 { "</th>" } else { "</td>" });
            }
            TagEnd::Emphasis => self.put("</em>"),
            TagEnd::Strong => self.put("</strong>"),
            TagEnd::Strikethrough => self.put("</del>"),
            TagEnd::Link => {
                let end = self.links.pop().unwrap_or("");
                self.put(end);
            }
            TagEnd::Image => self.end_image(),
            TagEnd::MetadataBlock(_) => self.meta = None,
            TagEnd::Superscript => self.put("</sup>"),
            TagEnd::Subscript => self.put("</sub>"),
            TagEnd::DefinitionList | TagEnd::DefinitionListTitle | TagEnd::DefinitionListDefinition => {}
        }
    }

    fn end_paragraph(&mut self) {
        let end = self.raw.end();
        self.put(&end);
        self.paragraph = false;
        match std::mem::replace(&mut self.head, ParagraphHead::None) {
            ParagraphHead::None if self.out().ends_with("<p>") => {
                let length = self.out().len() - "<p>".len();
                self.out().truncate(length);
            }
            ParagraphHead::None => self.put("</p>\n"),
            ParagraphHead::Title { folds } => {
                let opening = if folds { "<summary>" } else { "<p class=\"title\">" };
                if self.out().ends_with(opening) {
                    let title = escaped(&std::mem::take(&mut self.title));
                    self.put(&title);
                }
                self.put(if folds { "</summary>\n" } else { "</p>\n" });
            }
        }
    }

    fn unique(&mut self, slug: &str) -> String {
        let times = self.slugs.entry(slug.to_owned()).or_insert(0);
        *times += 1;
        if *times == 1 { slug.to_owned() } else { format!("{slug}-{}", *times - 1) }
    }

    fn end_image(&mut self) {
        let Some((at, target, wiki)) = self.image.take() else { return };
        let out = self.out();
        let words = plain(&out.split_off(at.min(out.len())));
        // `![[picture.png|300]]` says how wide, which a page decides for itself.
        let sized = wiki && words.split('x').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        let alt = if sized || (wiki && words == target) { "" } else { words.as_str() };
        if let Some(image) = self.around.picture(&target).and_then(|bytes| picture(&bytes, alt)) {
            self.put(&image);
            return;
        }
        if wiki && self.depth < MAX_HTML_EMBED_DEPTH {
            let (note, part) = dialect::wiki_target(&target);
            let embedded = self.around.note(note).map(|path| {
                self.embeds.begin(&path, part)?;
                let text = self.around.text(&path).unwrap_or_default();
                let text = part.map_or(text.as_str(), |part| text::markdown::part(&text, part).unwrap_or(""));
                let counted = self.embeds.count(text.len());
                let html = counted.map(|()| write(text, &[], self.around, self.embeds, self.depth + 1));
                self.embeds.end();
                html
            });
            if let Some(Err(failure)) = &embedded {
                let mut why = reason(failure, "span");
                why.push(' ');
                self.put(&why);
            }
            if let Some(Ok(html)) = embedded {
                // A paragraph cannot hold what is embedded.
                let paragraph = self.paragraph;
                if paragraph {
                    self.end_paragraph();
                }
                let _ = writeln!(self.out(), "<section class=\"embed\">\n{html}</section>");
                if paragraph {
                    self.start(Tag::Paragraph, &(0..0));
                }
                return;
            }
        }
        let words = if words.is_empty() { target.clone() } else { words };
        let remote = target.starts_with("http://") || target.starts_with("https://");
        let href = if remote { Some(target.clone()) } else { self.inside(&target) };
        // Pictures of the network are named, not fetched.
        let _ = match href {
            Some(href) => write!(self.out(), "<a class=\"image\" href=\"{}\">{}</a>", escaped(&href), escaped(&words)),
            None => write!(self.out(), "<span class=\"link\">{}</span>", escaped(&words)),
        };
    }

    fn code_block(&mut self) {
        let Some(OpenCode { text, language, cell }) = self.code.take() else { return };
        let name =
            if language.is_empty() { String::new() } else { format!(" data-language=\"{}\"", escaped(&language)) };
        let diagram = (language == "mermaid").then(|| self.around.diagram(&text));
        if let Some(Ok(drawing)) = &diagram {
            let html = drawn(drawing, &text, &self.around.colours());
            self.put(&html);
            return;
        }
        let class = if cell.is_some() { "cell" } else { "code" };
        let html = coloured(&text, &language);
        let _ = writeln!(self.out(), "<pre class=\"{class}\"{name}><code>{html}</code></pre>");
        if let Some(Err(failure)) = diagram {
            self.put(&reason(&failure, "p"));
        }
        if let Some(Some(run)) = cell.and_then(|cell| self.runs.get(cell)) {
            let html = outputs(run, self.around);
            self.put(&html);
        }
    }

    fn finish(mut self) -> String {
        let mut out = self.outs.first().cloned().unwrap_or_default();
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

/// Code as HTML, with what stands out in elements of one letter.
fn coloured(code: &str, language: &str) -> String {
    let Some(hues) = colour::colours(code, language) else { return escaped(code) };
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
        out.push_str(&escaped(&code[at..range.start]));
        let _ = write!(out, "<span class=\"{letter}\">{}</span>", escaped(&code[range.clone()]));
        at = range.end;
    }
    out.push_str(&escaped(&code[at..]));
    out
}

/// The words of a piece of HTML that was made here.
fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        rest = rest[start..].find('>').map_or("", |end| &rest[start + end + 1..]);
    }
    out.push_str(rest);
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
