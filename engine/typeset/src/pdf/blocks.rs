//! Walks through a note's tokens and collects the blocks for its pages, before layout.

mod code;

use super::text_layout::{InlinePicture, ParagraphItem, PictureShape, WordStyle};
use super::{PdfRequest, metrics};
use crate::failure::{DrawFailure, EmbedStack};
use crate::formula::FORMULA_PADDING_EM;
use crate::html::{PageContext, cell_at, heading_slug, strip_tags};
use crate::tints::{Rgb, ThemeTints};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Tag, TagEnd};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use store::Execution;
use text::markdown::details::{DetailsPart, details_parts};
use text::markdown::dialect::{self, CalloutKind, DialectToken};
use text::properties::PropertyKind;

/// Maximum depth of embeds inside embeds.
const MAX_PDF_EMBED_DEPTH: u8 = 3;
/// Maximum nesting depth of lists, quotes and similar; deeper blocks are shown at this depth.
const MAX_BLOCK_NESTING: usize = 12;

/// The marker of a list item.
pub(super) enum ListBullet {
    Dot,
    Number(u64),
    Task { done: bool, state: Option<char> },
}

/// A block of a note.
pub(super) enum PdfBlock {
    Heading {
        level: u8,
        items: Vec<ParagraphItem>,
        words: String,
        place: String,
    },
    Text(Vec<ParagraphItem>),
    /// Lines of code; `ground` tells whether they have a background.
    Code {
        lines: Vec<Vec<ParagraphItem>>,
        ground: bool,
    },
    Table {
        columns: Vec<Alignment>,
        rows: Vec<Vec<Vec<ParagraphItem>>>,
    },
    Picture(InlinePicture),
    Rule,
    List {
        items: Vec<(ListBullet, Vec<PdfBlock>)>,
        numbered: bool,
    },
    Quote(Vec<PdfBlock>),
    Callout {
        colour: Rgb,
        title: Vec<ParagraphItem>,
        body: Vec<PdfBlock>,
    },
    /// An embedded note.
    Card(Vec<PdfBlock>),
    /// The footnotes: their numbers and contents.
    Notes(Vec<(usize, Vec<PdfBlock>)>),
    /// An anchor for links.
    Place(String),
}

/// The target of a link.
pub(super) enum LinkTarget {
    Url(String),
    Place(String),
}

/// State collected while the notes of a document are read.
pub(super) struct BlockReader<'a> {
    pub(super) tints: &'a ThemeTints,
    pub(super) asked: &'a PdfRequest<'a>,
    pub(super) links: Vec<LinkTarget>,
    /// Number of footnotes so far in all notes.
    pub(super) notes: usize,
    /// The notes that the current note embeds.
    pub(super) embeds: EmbedStack,
}

/// Returns a note's source as blocks, with the reason first. It's truncated to `most` bytes.
pub(super) fn source_blocks(reading: &BlockReader<'_>, text: &str, why: &str, most: usize) -> Vec<PdfBlock> {
    let tints = reading.tints;
    let shown = &text[..text.floor_char_boundary(most)];
    let mut reason = why.to_owned();
    if shown.len() < text.len() {
        reason.push_str(&format!(" This is the first part of {} bytes.", text.len()));
    }
    let style = WordStyle { colour: tints.ink, ..metrics::code_style() };
    let line = |line: &str| match line.is_empty() {
        true => Vec::new(),
        false => vec![ParagraphItem::Text(line.to_owned(), style)],
    };
    let lines = shown.lines().map(line).collect();
    let reason =
        PdfBlock::Text(vec![ParagraphItem::Text(reason, WordStyle { colour: tints.warn, ..metrics::body_style() })]);
    vec![reason, PdfBlock::Code { lines, ground: true }]
}

/// Reads a note into blocks. `own` is the prefix of its anchors.
pub(super) fn read_note(
    reading: &mut BlockReader<'_>,
    text: &str,
    runs: &[Option<Execution>],
    around: &dyn PageContext,
    own: &str,
    depth: u8,
) -> Vec<PdfBlock> {
    let mut walk = PdfWalker::new(reading, runs, around, own, depth);
    walk.cells = text::markdown::cell_ranges(text);
    if let (Some(Ok(properties)), 0) = (text::properties::read(text), depth) {
        let rows: Vec<Vec<Vec<ParagraphItem>>> = properties
            .iter()
            .map(|property| {
                let words: Vec<String> = property
                    .values
                    .iter()
                    .map(|(words, _)| match property.kind {
                        PropertyKind::Check(done) => if done { "yes" } else { "no" }.to_owned(),
                        _ => words.clone(),
                    })
                    .collect();
                let (ink, muted) = (walk.reading.tints.ink, walk.reading.tints.muted);
                let cell = |text: String, colour: Rgb| {
                    vec![ParagraphItem::Text(text, WordStyle { colour, ..metrics::small_style() })]
                };
                vec![cell(property.key.clone(), muted), cell(words.join(", "), ink)]
            })
            .collect();
        if !rows.is_empty() {
            let columns = vec![Alignment::None; 2];
            // The table has no header, so its first row is empty.
            let rows = std::iter::once(Vec::new()).chain(rows).collect();
            walk.push_block(PdfBlock::Table { columns, rows });
        }
    }
    for (token, range) in dialect::tokenize(text, dialect::dialect_options()) {
        walk.handle_token(token, &range);
    }
    walk.finish()
}

/// The blocks that are open at the current position.
enum BlockFrame {
    List {
        items: Vec<(ListBullet, Vec<PdfBlock>)>,
        next: Option<u64>,
    },
    Item(ListBullet),
    Quote,
    Callout {
        colour: Rgb,
        title: Vec<ParagraphItem>,
        default: String,
    },
    Note(String),
    /// Nested too deeply to be shown in its own form.
    Flat,
}

struct PdfWalker<'a, 'b> {
    reading: &'a mut BlockReader<'b>,
    runs: &'a [Option<Execution>],
    around: &'a dyn PageContext,
    note_path: &'a str,
    depth: u8,
    cells: Vec<Range<usize>>,
    /// The blocks read so far, and below them the suspended ones.
    block_stack: Vec<Vec<PdfBlock>>,
    frames: Vec<BlockFrame>,
    items: Vec<ParagraphItem>,
    strong: u32,
    emphasis: u32,
    strike: u32,
    is_highlighted: bool,
    heading: Option<u8>,
    /// Whether the next paragraph is the title of a callout.
    title: bool,
    link: Vec<Option<usize>>,
    code: Option<(String, String, Option<usize>)>,
    meta: bool,
    /// The HTML block read so far.
    html_block: String,
    #[allow(clippy::type_complexity, reason = "the columns, and rows of cells of pieces")]
    table: Option<(Vec<Alignment>, Vec<Vec<Vec<ParagraphItem>>>)>,
    image: Option<(String, bool, String)>,
    slugs: HashMap<String, usize>,
    order: Vec<String>,
    /// Index of each footnote in `order`.
    places: HashMap<String, usize>,
    notes: HashMap<String, Vec<PdfBlock>>,
    first_note: usize,
}

impl<'a, 'b> PdfWalker<'a, 'b> {
    fn new(
        reading: &'a mut BlockReader<'b>,
        runs: &'a [Option<Execution>],
        around: &'a dyn PageContext,
        own: &'a str,
        depth: u8,
    ) -> PdfWalker<'a, 'b> {
        let first_note = reading.notes;
        PdfWalker {
            reading,
            runs,
            around,
            note_path: own,
            depth,
            cells: Vec::new(),
            block_stack: vec![Vec::new()],
            frames: Vec::new(),
            items: Vec::new(),
            strong: 0,
            emphasis: 0,
            strike: 0,
            is_highlighted: false,
            heading: None,
            title: false,
            link: Vec::new(),
            code: None,
            meta: false,
            html_block: String::new(),
            table: None,
            image: None,
            slugs: HashMap::new(),
            order: Vec::new(),
            places: HashMap::new(),
            notes: HashMap::new(),
            first_note,
        }
    }

    fn push_block(&mut self, block: PdfBlock) {
        match self.block_stack.last_mut() {
            Some(out) => out.push(block),
            None => self.block_stack.push(vec![block]),
        }
    }

    fn current_style(&self, code: bool) -> WordStyle {
        let tints = self.reading.tints;
        let head = self.table.as_ref().is_some_and(|(_, rows)| rows.len() == 1);
        let base = match self.heading {
            Some(level) => metrics::heading_style(level).0,
            None if self.table.is_some() => metrics::small_style(),
            None => metrics::body_style(),
        };
        let bold = self.heading.is_some() || head || self.title;
        let weight = match (self.strong > 0, bold) {
            (true, _) => 700,
            (false, true) => 600,
            (false, false) => 400,
        };
        let italic = self.emphasis > 0;
        // There's no italic between regular and bold.
        let weight = if italic && weight == 600 { 700 } else { weight };
        let link = self.link.last().copied().flatten();
        let colour = match (link, self.heading) {
            (Some(_), _) => tints.accent,
            (None, Some(4..)) => tints.muted,
            (None, _) if self.strike > 0 => tints.muted,
            (None, _) => tints.ink,
        };
        let ground = if self.is_highlighted {
            Some(tints.lit)
        } else if code {
            Some(tints.sunken)
        } else {
            None
        };
        if code {
            let weight = if weight > 400 { 700 } else { 400 };
            let size = base.size * metrics::CODE_SIZE_RATIO;
            let italic = italic && weight == 400;
            return WordStyle { code, weight, italic, size, colour, ground, strike: self.strike > 0, rise: 0.0, link };
        }
        WordStyle { weight, italic, colour, ground, strike: self.strike > 0, link, ..base }
    }

    fn push_words(&mut self, text: &str) {
        let style = self.current_style(false);
        self.items.push(ParagraphItem::Text(text.to_owned(), style));
    }

    /// Ends the current text and adds it as a paragraph.
    fn end_paragraph(&mut self) {
        let items = std::mem::take(&mut self.items);
        if items.is_empty() {
            return;
        }
        if self.title {
            if let Some(BlockFrame::Callout { title, .. }) = self.frames.last_mut() {
                title.extend(items);
            }
            return;
        }
        self.push_block(PdfBlock::Text(items));
    }

    fn handle_token(&mut self, token: DialectToken<'_>, range: &Range<usize>) {
        match token {
            DialectToken::Mark(event) => self.handle_event(event, range),
            DialectToken::Highlight(on) => self.is_highlighted = on,
            DialectToken::Label(name) => {
                let style = WordStyle { colour: self.reading.tints.accent, ..self.current_style(false) };
                self.items.push(ParagraphItem::Text(format!("#{name}"), style));
            }
            DialectToken::Anchor(name) => self.push_block(PdfBlock::Place(format!("{}#^{name}", self.note_path))),
            DialectToken::State(state) => self.set_task(false, Some(state)),
            DialectToken::Callout(callout) => {
                self.end_paragraph();
                let colour = callout_tint(callout.kind, self.reading.tints);
                let default = callout.default_title();
                self.open_frame(BlockFrame::Callout { colour, title: Vec::new(), default });
                self.title = matches!(self.frames.last(), Some(BlockFrame::Callout { .. }));
            }
        }
    }

    fn set_task(&mut self, done: bool, state: Option<char>) {
        if let Some(BlockFrame::Item(bullet)) = self.frames.last_mut() {
            *bullet = ListBullet::Task { done, state };
        }
    }

    fn open_frame(&mut self, frame: BlockFrame) {
        if self.frames.len() >= MAX_BLOCK_NESTING {
            self.frames.push(BlockFrame::Flat);
        } else {
            self.frames.push(frame);
            self.block_stack.push(Vec::new());
        }
    }

    fn close_frame(&mut self) {
        self.end_paragraph();
        let Some(frame) = self.frames.pop() else { return };
        if matches!(frame, BlockFrame::Flat) {
            return;
        }
        let body = self.block_stack.pop().unwrap_or_default();
        match frame {
            BlockFrame::List { items, next } => self.push_block(PdfBlock::List { items, numbered: next.is_some() }),
            BlockFrame::Item(bullet) => match self.frames.last_mut() {
                Some(BlockFrame::List { items, .. }) => items.push((bullet, body)),
                _ => body.into_iter().for_each(|block| self.push_block(block)),
            },
            BlockFrame::Quote => self.push_block(PdfBlock::Quote(body)),
            BlockFrame::Callout { colour, mut title, default } => {
                if title.is_empty() {
                    title.push(ParagraphItem::Text(default, WordStyle { weight: 600, ..metrics::body_style() }));
                }
                for item in &mut title {
                    if let ParagraphItem::Text(_, style) = item
                        && style.link.is_none()
                    {
                        style.colour = colour;
                    }
                }
                self.push_block(PdfBlock::Callout { colour, title, body });
            }
            BlockFrame::Note(name) => _ = self.notes.entry(name).or_insert(body),
            BlockFrame::Flat => {}
        }
    }

    fn handle_event(&mut self, event: Event<'_>, range: &Range<usize>) {
        if let (Some((code, ..)), Event::Text(text)) = (&mut self.code, &event) {
            code.push_str(text);
            return;
        }
        if let (Some((_, _, alt)), Event::Text(text) | Event::Code(text)) = (&mut self.image, &event) {
            alt.push_str(text);
            return;
        }
        match event {
            Event::Text(_) if self.meta => {}
            Event::Start(tag) => self.start_tag(tag, range),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.push_words(&text),
            Event::Code(code) => {
                let style = self.current_style(true);
                self.items.push(ParagraphItem::Text(code.into_string(), style));
            }
            // Inline HTML has no effect in a PDF; only the text between the tags is shown.
            Event::InlineHtml(html) => {
                if html.trim_start_matches('<').starts_with("br") {
                    self.items.push(ParagraphItem::Break);
                }
            }
            Event::Html(html) => self.html_block.push_str(&html),
            Event::SoftBreak => self.push_words(" "),
            Event::HardBreak => self.items.push(ParagraphItem::Break),
            Event::Rule => {
                self.end_paragraph();
                self.push_block(PdfBlock::Rule);
            }
            Event::InlineMath(source) => self.push_math(&source, false),
            Event::DisplayMath(source) => self.push_math(&source, true),
            Event::TaskListMarker(done) => self.set_task(done, None),
            Event::FootnoteReference(name) => self.push_footnote_reference(&name),
        }
    }

    /// Adds an HTML block as source, apart from `<details>`: they're shown unfolded, below their summary.
    fn push_html_block(&mut self, html: &str) {
        let Some(parts) = details_parts(html) else {
            let style = WordStyle { ground: None, colour: self.reading.tints.muted, ..self.current_style(true) };
            for line in html.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("<!--")) {
                self.items.push(ParagraphItem::Text(line.trim_end().to_owned(), style));
                self.items.push(ParagraphItem::Break);
            }
            return;
        };
        for part in parts {
            let (range, is_summary) = match part {
                DetailsPart::Html(range) => (range, false),
                DetailsPart::Start { summary, .. } => (summary, true),
                DetailsPart::End => continue,
            };
            let words = strip_tags(&html[range]);
            let words = if is_summary && words.trim().is_empty() { "Details" } else { words.trim() };
            self.strong += u32::from(is_summary);
            if !words.is_empty() {
                self.push_words(&words.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            self.strong -= u32::from(is_summary);
            self.end_paragraph();
        }
    }

    fn push_math(&mut self, source: &str, display: bool) {
        let style = self.current_style(false);
        let em = style.size * metrics::FORMULA_SIZE_RATIO;
        let set = self.around.typeset_formula(source, display).and_then(|formula| {
            let drawing = formula.to_drawing(style.colour, self.reading.asked.fonts)?;
            Ok((formula, drawing))
        });
        let (formula, drawing) = match set {
            Ok(set) => set,
            Err(failure) => {
                let style = self.current_style(true);
                self.items.push(ParagraphItem::Text(source.trim().to_owned(), style));
                self.push_failure(&failure);
                return;
            }
        };
        let object = InlinePicture {
            shape: Rc::new(PictureShape::Drawing(drawing)),
            width: formula.width * em,
            height: formula.height * em,
            depth: formula.depth * em,
            pad: FORMULA_PADDING_EM * em,
            alt: source.trim().to_owned(),
            formula: true,
        };
        if display && self.table.is_none() && !self.title && self.heading.is_none() {
            self.end_paragraph();
            self.push_block(PdfBlock::Picture(object));
        } else {
            self.items.push(ParagraphItem::Object(object));
        }
    }

    /// Adds the reason why something isn't drawn, if the page must show it.
    fn push_failure(&mut self, failure: &DrawFailure) {
        if let Some(why) = failure.limit_message() {
            let style = WordStyle { colour: self.reading.tints.warn, ..metrics::small_style() };
            self.items.push(ParagraphItem::Text(format!(" Not drawn. {why} "), style));
        }
    }

    fn push_footnote_reference(&mut self, name: &str) {
        let at = match self.places.get(name) {
            Some(at) => *at,
            None => {
                self.order.push(name.to_owned());
                self.places.insert(name.to_owned(), self.order.len() - 1);
                self.order.len() - 1
            }
        };
        let link =
            self.add_link_target(LinkTarget::Place(format!("{}#note {}", self.note_path, self.first_note + at + 1)));
        let base = self.current_style(false);
        let style = WordStyle {
            size: base.size * 0.68,
            rise: base.size * 0.36,
            colour: self.reading.tints.accent,
            link: Some(link),
            ..base
        };
        self.items.push(ParagraphItem::Text((at + 1).to_string(), style));
    }

    fn add_link_target(&mut self, target: LinkTarget) -> usize {
        self.reading.links.push(target);
        self.reading.links.len() - 1
    }

    fn start_tag(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.end_paragraph(),
            Tag::Heading { level, .. } => {
                self.end_paragraph();
                self.heading = Some(level as u8);
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.open_frame(BlockFrame::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                let (info, cell) = match kind {
                    CodeBlockKind::Fenced(info) => (info.into_string(), cell_at(&self.cells, range.start)),
                    CodeBlockKind::Indented => (String::new(), None),
                };
                let word = info.trim_start_matches("{.").split([' ', '{', ',', '}']).next().unwrap_or("").to_owned();
                self.code = Some((String::new(), word, cell));
            }
            Tag::List(number) => {
                self.end_paragraph();
                self.open_frame(BlockFrame::List { items: Vec::new(), next: number });
            }
            Tag::Item => {
                let bullet = match self.frames.last_mut() {
                    Some(BlockFrame::List { next: Some(next), .. }) => {
                        *next = next.saturating_add(1);
                        ListBullet::Number(*next - 1)
                    }
                    _ => ListBullet::Dot,
                };
                self.open_frame(BlockFrame::Item(bullet));
            }
            Tag::FootnoteDefinition(name) => {
                self.end_paragraph();
                self.open_frame(BlockFrame::Note(name.into_string()));
            }
            Tag::Table(columns) => {
                self.end_paragraph();
                self.table = Some((columns, Vec::new()));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some((_, rows)) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.items.clear(),
            Tag::Emphasis => self.emphasis += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { link_type, dest_url, .. } => {
                let target = self.link_target(link_type, &dest_url);
                let link = target.map(|target| self.add_link_target(target));
                self.link.push(link);
            }
            Tag::Image { link_type, dest_url, .. } => {
                let wiki = matches!(link_type, LinkType::WikiLink { .. });
                self.image = Some((dest_url.into_string(), wiki, String::new()));
            }
            Tag::MetadataBlock(_) => self.meta = true,
            Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition => {}
        }
    }

    fn link_target(&self, link_type: LinkType, target: &str) -> Option<LinkTarget> {
        match link_type {
            LinkType::Email => Some(LinkTarget::Url(format!("mailto:{target}"))),
            LinkType::WikiLink { .. } => self.resolve_note_link(target),
            _ => match target.split_once(':') {
                Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
                    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
                    known.then(|| LinkTarget::Url(target.to_owned()))
                }
                _ => self.resolve_note_link(target),
            },
        }
    }

    /// Returns the target of a link to a note of the volume.
    fn resolve_note_link(&self, target: &str) -> Option<LinkTarget> {
        let (note, part) = dialect::split_wiki_target(target);
        let part = part.map(|part| if part.starts_with('^') { part.to_owned() } else { heading_slug(part) });
        let base = if note.is_empty() { format!("#{}", self.note_path) } else { self.around.resolve_link(note)? };
        let whole = part.map_or(base.clone(), |part| format!("{base}#{part}"));
        Some(match whole.strip_prefix('#') {
            Some(place) => LinkTarget::Place(place.to_owned()),
            None => LinkTarget::Url(whole),
        })
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_paragraph();
                self.title = false;
            }
            TagEnd::HtmlBlock => {
                let block = std::mem::take(&mut self.html_block);
                self.push_html_block(&block);
                self.end_paragraph();
                self.title = false;
            }
            TagEnd::Heading(_) => {
                let items = std::mem::take(&mut self.items);
                let Some(level) = self.heading.take() else { return };
                let words: String = items.iter().map(item_text).collect();
                let slug = heading_slug(&words);
                let times = self.slugs.entry(slug.clone()).or_insert(0);
                *times += 1;
                let slug = if *times == 1 { slug } else { format!("{slug}-{}", *times - 1) };
                let place = format!("{}#{slug}", self.note_path);
                self.push_block(PdfBlock::Heading { level, items, words, place });
            }
            TagEnd::BlockQuote(_) => {
                self.close_frame();
                self.title = false;
            }
            TagEnd::List(_) | TagEnd::Item | TagEnd::FootnoteDefinition => self.close_frame(),
            TagEnd::CodeBlock => self.end_code_block(),
            TagEnd::Table => {
                if let Some((columns, rows)) = self.table.take() {
                    self.push_block(PdfBlock::Table { columns, rows });
                }
            }
            TagEnd::TableCell => {
                let items = std::mem::take(&mut self.items);
                if let Some(row) = self.table.as_mut().and_then(|(_, rows)| rows.last_mut()) {
                    row.push(items);
                }
            }
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link => _ = self.link.pop(),
            TagEnd::Image => self.end_image(),
            TagEnd::MetadataBlock(_) => self.meta = false,
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition => {}
        }
    }

    fn end_image(&mut self) {
        let Some((target, wiki, alt)) = self.image.take() else { return };
        let width = alt.split('x').next().and_then(|width| width.trim().parse::<f32>().ok()).filter(|_| wiki);
        let words = if width.is_some() || (wiki && alt == target) { String::new() } else { alt };
        let alone = self.table.is_none() && !self.title && self.heading.is_none();
        let shown = alone.then(|| self.around.read_picture(&target)).flatten();
        let shown = shown.map_or(Ok(None), |bytes| decode_picture(bytes, self.around));
        if let Err(failure) = &shown {
            self.push_failure(failure);
        }
        if let Ok(Some(mut object)) = shown {
            object.alt = if words.is_empty() { target } else { words };
            // Image sizes are in screen pixels, of which four make three points.
            let scale = width.map_or(0.75, |width| width.clamp(8.0, 4_000.0) * 0.75 / object.width.max(1.0));
            (object.width, object.height) = (object.width * scale, object.height * scale);
            self.end_paragraph();
            self.push_block(PdfBlock::Picture(object));
            return;
        }
        if wiki && self.depth < MAX_PDF_EMBED_DEPTH && alone {
            let (note, part) = dialect::split_wiki_target(&target);
            let embedded = self.around.resolve_embed(note).map(|path| {
                self.reading.embeds.push_note(&path, part)?;
                let text = self.around.note_text(&path).unwrap_or_default();
                let text = part.map_or(text.as_str(), |part| text::markdown::linked_part(&text, part).unwrap_or(""));
                let own = format!("{} in", self.note_path);
                let counted = self.reading.embeds.count_bytes(text.len());
                let body = counted.map(|()| read_note(self.reading, text, &[], self.around, &own, self.depth + 1));
                self.reading.embeds.pop_note();
                body
            });
            match embedded {
                Some(Ok(body)) => {
                    self.end_paragraph();
                    self.push_block(PdfBlock::Card(body));
                    return;
                }
                Some(Err(failure)) => self.push_failure(&failure),
                None => {}
            }
        }
        let words = if words.is_empty() { target.clone() } else { words };
        let remote = target.starts_with("http://") || target.starts_with("https://");
        let leads = if remote { Some(LinkTarget::Url(target)) } else { self.resolve_note_link(&target) };
        let link = leads.map(|target| self.add_link_target(target));
        self.link.push(link);
        self.push_words(&words);
        self.link.pop();
    }

    fn finish(mut self) -> Vec<PdfBlock> {
        while !self.frames.is_empty() {
            self.close_frame();
        }
        self.end_paragraph();
        let mut out = self.block_stack.into_iter().next().unwrap_or_default();
        let mut notes = Vec::new();
        for (at, name) in self.order.iter().enumerate() {
            let place = PdfBlock::Place(format!("{}#note {}", self.note_path, self.first_note + at + 1));
            let body = self.notes.remove(name).unwrap_or_default();
            notes.push((at + 1, std::iter::once(place).chain(body).collect()));
        }
        self.reading.notes += self.order.len();
        if !notes.is_empty() {
            out.push(PdfBlock::Notes(notes));
        }
        out
    }
}

/// Returns the text of a paragraph item.
fn item_text(item: &ParagraphItem) -> String {
    match item {
        ParagraphItem::Text(text, _) => text.clone(),
        ParagraphItem::Object(object) => object.alt.clone(),
        ParagraphItem::Break => " ".to_owned(),
    }
}

/// Decodes an image file, with one point per pixel.
#[allow(clippy::cast_precision_loss, reason = "a picture's side is small")]
fn decode_picture(bytes: Vec<u8>, around: &dyn PageContext) -> Result<Option<InlinePicture>, DrawFailure> {
    let (shape, width, height) = if bytes.starts_with(b"<") || bytes.starts_with(b"\xef\xbb\xbf<") {
        match around.read_svg(bytes) {
            Ok(drawing) => {
                let (width, height) = (drawing.width, drawing.height);
                (PictureShape::Drawing(drawing), width, height)
            }
            Err(DrawFailure::Wrong(_)) => return Ok(None),
            Err(limit) => return Err(limit),
        }
    } else {
        match around.check_image(&bytes) {
            Ok(()) => {}
            Err(DrawFailure::Wrong(_)) => return Ok(None),
            Err(limit) => return Err(limit),
        }
        let Some(image) = super::decode_image(&bytes) else { return Ok(None) };
        let (width, height) = image.size();
        (PictureShape::Image(image), width as f32, height as f32)
    };
    let shape = Rc::new(shape);
    Ok(Some(InlinePicture { shape, width, height, depth: 0.0, pad: 0.0, alt: String::new(), formula: false }))
}

fn callout_tint(kind: CalloutKind, tints: &ThemeTints) -> Rgb {
    match kind {
        CalloutKind::Note => tints.accent,
        CalloutKind::Abstract | CalloutKind::Info | CalloutKind::Todo | CalloutKind::Tip => tints.tool,
        CalloutKind::Success => tints.ok,
        CalloutKind::Question | CalloutKind::Warning => tints.warn,
        CalloutKind::Failure | CalloutKind::Danger | CalloutKind::Bug => tints.bad,
        CalloutKind::Example => tints.thought,
        CalloutKind::Quote => tints.muted,
    }
}
