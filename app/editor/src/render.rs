//! Renders Markdown rows, which are laid out once and drawn many times. Uses fonts and colors; independent of caret,
//! note and session.

use super::bidi_text;
use super::row_layout::{RowLayout, RowPart, SourceMap, SourceRun};
use super::row_splitter::RowKind;
use super::table_renderer::TableRenderer;
use eframe::egui;
use egui::text::LayoutJob;
use egui::{Color32, CornerRadius, Galley, Pos2, Rect, Vec2, pos2, vec2};
use pulldown_cmark::{CodeBlockKind, Event as Mark, LinkType, Options, Tag, TagEnd};
use std::ops::Range;
use std::sync::Arc;
use store::DocId;
use text::markdown::dialect::{self, CalloutKind, DialectToken};
use ui::theme::{self, ThemeColors, space};

mod blocks;
pub mod details;
pub mod embeds;
mod inline_fields;
mod inline_html;
mod inline_text;
mod properties;
mod task_fields;

pub use embeds::diagram;
use inline_html::HtmlElement;
pub(crate) use inline_text::InlineText;
use inline_text::{InlineInset, InsetContent};

/// Indentation of a list item relative to the enclosing one.
pub const LIST_ITEM_INDENT: f32 = space::XL;
/// Indentation of a quote.
pub(crate) const QUOTE_INDENT: f32 = space::L;

/// Everything needed to lay out text.
#[derive(Clone, Copy)]
pub struct TextStyleContext<'a> {
    /// Context that provides fonts and textures.
    pub ctx: &'a egui::Context,
    /// Colors of the theme.
    pub colours: &'static ThemeColors,
    /// The note that is laid out; link and picture targets are resolved relative to it.
    pub note: DocId,
}

impl TextStyleContext<'_> {
    /// Lays out a job, in reading order if it contains right-to-left text.
    pub fn galley(&self, job: LayoutJob) -> Arc<Galley> {
        if job.halign == egui::Align::LEFT && bidi_text::has_right_to_left(&job.text) {
            return bidi_text::layout_in_reading_order(self.ctx, job);
        }
        self.ctx.fonts_mut(|fonts| fonts.layout_job(job))
    }

    /// Lays out text in one style.
    pub fn text(&self, text: &str, kind: &theme::TypeStyle, colour: Color32, width: f32) -> Arc<Galley> {
        let mut job = LayoutJob::default();
        job.wrap.max_width = width;
        job.append(text, 0.0, ui::widgets::format(kind.font.clone(), kind.line, colour));
        self.galley(job)
    }
}

/// Renders a row. `source` is its content, `width` the column's width, and `wide` the width available to tables.
pub fn draw(source: &str, kind: RowKind, width: f32, wide: f32, pen: TextStyleContext<'_>) -> RowLayout {
    laid(source, kind, width, wide, None, pen)
}

/// Renders a row without its parts in a comment that spans rows. If nothing is left, a placeholder is shown.
pub fn draw_without(
    source: &str,
    kind: RowKind,
    width: f32,
    wide: f32,
    hidden: &[Range<usize>],
    pen: TextStyleContext<'_>,
) -> RowLayout {
    let covered = |at: usize| hidden.iter().any(|range| range.contains(&at));
    if source.char_indices().all(|(at, letter)| letter.is_whitespace() || covered(at)) {
        let galley = pen.text("%% …", &theme::caption(), pen.colours.muted, width);
        let map = SourceMap { runs: vec![SourceRun { chars: 0, source: 0..source.len(), exact: false }] };
        let (height, text) = (galley.size().y, "Comment".to_owned());
        return RowLayout {
            height,
            parts: vec![RowPart::Text { at: Vec2::ZERO, galley, map, links: Vec::new() }],
            bare: true,
            text,
        };
    }
    laid(source, kind, width, wide, Some(hidden), pen)
}

/// Renders a row's source in `muted`.
pub fn dimmed(source: &str, kind: RowKind, width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let shown = source.replace('\r', "");
    let mut job = super::source_layout::source_job(&shown, kind, width, pen);
    job.sections.iter_mut().for_each(|section| section.format.color = pen.colours.muted);
    let galley = pen.galley(job);
    let map = SourceMap { runs: vec![SourceRun { chars: 0, source: 0..source.len(), exact: true }] };
    let height = galley.size().y.max(super::source_layout::type_of(kind).line);
    let parts = vec![RowPart::Text { at: Vec2::ZERO, galley, map, links: Vec::new() }];
    RowLayout { height, parts, bare: true, text: shown }
}

fn laid(
    source: &str,
    kind: RowKind,
    width: f32,
    wide: f32,
    hidden: Option<&[Range<usize>]>,
    pen: TextStyleContext<'_>,
) -> RowLayout {
    match kind {
        RowKind::Meta => return properties::draw(source, width, pen),
        RowKind::Html => {
            return details::draw(source, width, wide, pen).unwrap_or_else(|| plain(source, kind, width, pen));
        }
        RowKind::Definition | RowKind::Indented => return plain(source, kind, width, pen),
        RowKind::Plain => return unread(source, width, pen),
        RowKind::Blank => return RowLayout { height: theme::body().line, ..RowLayout::default() },
        _ => {}
    }
    let dedented = match kind {
        RowKind::Item { .. } => DedentedSource::of(source),
        _ => DedentedSource { text: source.to_owned(), cuts: Vec::new() },
    };
    let mut draw = RowRenderer::new(&dedented, kind, width, wide, pen);
    let options = dialect::dialect_options() - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    // The footnotes that a row refers to are defined in other rows, but the parser needs a definition.
    let length = dedented.text.len();
    let with_notes = dedented.text.contains("[^").then(|| format!("{}\n\n{}", dedented.text, notes(&dedented.text)));
    let text = with_notes.as_deref().unwrap_or(&dedented.text);
    let tokens = match hidden {
        None => dialect::tokenize(text, options),
        Some(hidden) => {
            let own = |range: &Range<usize>| dedented.shown(range.start)..dedented.shown(range.end);
            dialect::tokenize_without(text, options, &hidden.iter().map(own).collect::<Vec<_>>())
        }
    };
    for (token, range) in tokens {
        if range.start < length || length == 0 {
            draw.token(token, range.start..range.end.min(length));
        }
    }
    draw.finish(source)
}

/// Returns an empty definition for every footnote that a text refers to.
fn notes(text: &str) -> String {
    let names = text.split("[^").skip(1).filter_map(|rest| rest.split_once(']')).map(|(name, _)| name);
    names.filter(|name| !name.contains(char::is_whitespace)).map(|name| format!("[^{name}]: .\n\n")).collect()
}

/// Renders the source as is.
fn plain(source: &str, kind: RowKind, width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let code = theme::code();
    let ground = matches!(kind, RowKind::Indented);
    let inset = if ground { space::M } else { 0.0 };
    let colour = if ground { pen.colours.ink } else { pen.colours.muted };
    let galley = pen.text(&source.replace('\r', ""), &code, colour, width - 2.0 * inset);
    let text_height = galley.size().y.max(code.line);
    let height = text_height + if ground { 2.0 * space::S } else { 0.0 };
    let mut parts = Vec::new();
    if ground {
        let rect = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
        parts.push(RowPart::Fill { rect, colour: pen.colours.sunken, corner: theme::CONTROL_CORNER });
    }
    // Carriage returns are removed above, so in text that has some, a click may land at the line's start.
    let map = SourceMap { runs: vec![SourceRun { chars: 0, source: 0..source.len(), exact: true }] };
    let at = vec2(inset, if ground { space::S } else { 0.0 });
    parts.push(RowPart::Text { at, galley, map, links: Vec::new() });
    RowLayout { height, parts, text: source.to_owned(), bare: false }
}

/// Renders text that couldn't be parsed as Markdown: its source, and the reason.
fn unread(source: &str, width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let mut drawn = plain(source, RowKind::Plain, width, pen);
    let why = text::markdown::check(source).err().map_or_else(|| "it can't be read".to_owned(), |why| why.to_string());
    let words = format!("Shown as plain text: {why}.");
    let galley = pen.text(&words, &theme::caption(), pen.colours.bad, width);
    let at = vec2(0.0, drawn.height + space::XS);
    drawn.height += galley.size().y + space::XS;
    drawn.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
    drawn.text = format!("{words}\n{}", drawn.text);
    drawn
}

/// An item's source without the indentation of its list.
pub(crate) struct DedentedSource {
    text: String,
    /// Offsets in `text` where indentation was removed, with the total bytes removed up to there.
    cuts: Vec<(usize, usize)>,
}

impl DedentedSource {
    fn of(source: &str) -> DedentedSource {
        let indent = source.len() - source.trim_start_matches([' ', '\t']).len();
        let mut text = String::with_capacity(source.len());
        let (mut cuts, mut left_out) = (Vec::new(), 0);
        for line in source.split_inclusive('\n') {
            let spaces = line.bytes().take(indent).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            left_out += spaces;
            cuts.push((text.len(), left_out));
            text.push_str(&line[spaces..]);
        }
        DedentedSource { text, cuts }
    }

    fn source(&self, at: usize) -> usize {
        let index = self.cuts.partition_point(|(from, _)| *from <= at);
        at + index.checked_sub(1).map_or(0, |index| self.cuts[index].1)
    }

    /// Maps a byte of the source to the dedented text.
    fn shown(&self, source: usize) -> usize {
        let index = self.cuts.partition_point(|(from, less)| from + less <= source);
        source - index.checked_sub(1).map_or(0, |index| self.cuts[index].1)
    }
}

/// Nested inline styles at the current position.
#[derive(Clone, Default)]
struct InlineStyle {
    strong: u32,
    emphasis: u32,
    strike: u32,
    link: Option<String>,
    highlight: bool,
    /// Number of open HTML elements whose look has no Markdown equivalent.
    underline: u32,
    small: u32,
    key: u32,
    raised: u32,
    lowered: u32,
}

/// An open quote or callout.
struct OpenQuote {
    top: f32,
    /// For a callout: its color, and the index of its background in the parts.
    callout: Option<(Color32, usize)>,
    /// Indentation by the lists around it.
    list_indent: f32,
    /// Whether its first line reads from right to left; `None` if it has no text yet.
    is_from_right: Option<bool>,
}

impl OpenQuote {
    /// Returns whether its bar is at the right. A callout's is always at the left.
    fn has_bar_at_right(&self) -> bool {
        self.callout.is_none() && self.is_from_right == Some(true)
    }
}

/// A callout whose title is rendered next.
struct CalloutTitle {
    kind: CalloutKind,
    words: String,
    /// For a foldable callout: whether it is open, and its fold key.
    fold: Option<(bool, u64)>,
}

/// A picture or embedded note within text.
struct InlineImage {
    target: String,
    wiki: bool,
    /// Alternative text.
    alt: String,
    range: Range<usize>,
}

struct RowRenderer<'a> {
    source: &'a DedentedSource,
    pen: TextStyleContext<'a>,
    width: f32,
    wide: f32,
    parts: Vec<RowPart>,
    text: String,
    x: f32,
    y: f32,
    /// The part of `x` by which lists in the innermost quote indent text.
    list_indent: f32,
    /// Space to leave before the next block.
    gap: f32,
    inline: Option<InlineText>,
    look: InlineStyle,
    /// HTML elements that are open in the current line of text.
    elements: Vec<HtmlElement>,
    heading: Option<u8>,
    quotes: Vec<OpenQuote>,
    title: Option<CalloutTitle>,
    /// Number of callouts and `<details>` so far.
    callouts: usize,
    /// Inside a folded callout: the depth of quotes around its body.
    folded: Option<usize>,
    /// Number of open quotes and callouts, including those that aren't drawn.
    depth: usize,
    image: Option<InlineImage>,
    /// Number of notes in which this text is embedded.
    embedded: u8,
    meta: bool,
    /// Next item number of each open list.
    lists: Vec<Option<u64>>,
    /// Number that the row's own item has instead.
    number: Option<u32>,
    /// Whether the row's own item marker is still to be rendered.
    own: bool,
    /// Index of the last item's marker in the parts, so that a checkbox can replace it.
    mark: Option<usize>,
    /// For each open item, whether its text is struck through.
    struck: Vec<bool>,
    /// Whether the text is that of a task, whose fields are drawn as chips.
    is_task: bool,
    /// Index of the checkbox whose label is the text that follows.
    unnamed: Option<usize>,
    /// Open code block: its text, language and range.
    code: Option<(String, String, Range<usize>)>,
    table: Option<TableRenderer>,
    /// Lines of the open HTML block, and their ranges.
    html_block: Option<Vec<(String, Range<usize>)>>,
    /// For each open `<details>` that is drawn unfolded: the number of items and quotes around it.
    details: Vec<usize>,
    /// The folded `<details>` that hides what follows.
    hidden: Option<details::HiddenDetails>,
    small: bool,
}

impl<'a> RowRenderer<'a> {
    fn new(
        source: &'a DedentedSource,
        kind: RowKind,
        width: f32,
        wide: f32,
        pen: TextStyleContext<'a>,
    ) -> RowRenderer<'a> {
        let (depth, number, tail) = match kind {
            RowKind::Item { depth, number, tail } => (depth, number, tail),
            _ => (0, None, false),
        };
        let list_indent = LIST_ITEM_INDENT * (f32::from(depth.min(12)) + if tail { 1.0 } else { 0.0 });
        RowRenderer {
            source,
            pen,
            width,
            wide,
            parts: Vec::new(),
            text: String::new(),
            x: list_indent,
            list_indent,
            y: 0.0,
            gap: 0.0,
            inline: None,
            look: InlineStyle::default(),
            elements: Vec::new(),
            heading: None,
            quotes: Vec::new(),
            title: None,
            callouts: 0,
            folded: None,
            depth: 0,
            image: None,
            embedded: 0,
            meta: false,
            lists: Vec::new(),
            number,
            own: matches!(kind, RowKind::Item { tail: false, .. }),
            mark: None,
            struck: Vec::new(),
            is_task: false,
            unnamed: None,
            code: None,
            table: None,
            html_block: None,
            details: Vec::new(),
            hidden: None,
            small: matches!(kind, RowKind::Footnote),
        }
    }

    fn is_embedded(&self) -> bool {
        self.embedded > 0
    }

    fn kind(&self) -> theme::TypeStyle {
        match self.heading {
            Some(level) => theme::heading(level),
            None if self.small => theme::small(),
            None => theme::body(),
        }
    }

    fn token(&mut self, token: DialectToken<'_>, range: Range<usize>) {
        if self.is_token_hidden(&token, &range) {
            return;
        }
        if let Some(outer) = self.folded {
            match token {
                DialectToken::Mark(Mark::Start(Tag::BlockQuote(_))) | DialectToken::Callout(_) => self.depth += 1,
                DialectToken::Mark(Mark::End(TagEnd::BlockQuote(_))) => {
                    self.depth -= 1;
                    if self.depth < outer {
                        self.folded = None;
                        self.end_quote();
                    }
                }
                _ => {}
            }
            return;
        }
        match token {
            DialectToken::Mark(event) => self.event(event, range),
            DialectToken::Highlight(on) => self.look.highlight = on,
            DialectToken::Label(_) => {
                let name = self.source.text.get(range.clone()).unwrap_or("").to_owned();
                self.chip(&name, &range);
            }
            DialectToken::Anchor(_) => {}
            DialectToken::State(state) => self.task(false, Some(state), &range),
            DialectToken::Callout(callout) => self.callout(callout, &range),
        }
    }

    fn event(&mut self, event: Mark<'_>, range: Range<usize>) {
        if let (Some(image), Mark::Text(text) | Mark::Code(text)) = (&mut self.image, &event) {
            image.alt.push_str(text);
            return;
        }
        match event {
            Mark::Text(_) if self.meta => {}
            Mark::Start(tag) => self.start(tag, range),
            Mark::End(tag) => self.end(tag),
            Mark::Text(text) => match &mut self.code {
                Some((code, ..)) => code.push_str(&text),
                None => self.push(&text, range, false),
            },
            Mark::Code(code) => self.push(&code, range, true),
            Mark::InlineHtml(html) => self.inline_html(&html, range),
            Mark::Html(html) => match &mut self.html_block {
                Some(lines) => lines.push((html.into_string(), range)),
                None => self.push(html.trim_end(), range, true),
            },
            Mark::SoftBreak | Mark::HardBreak => self.push("\n", range, false),
            Mark::Rule => {
                self.space();
                let width = (self.width - self.x).max(1.0);
                let rect = Rect::from_min_size(pos2(self.x, self.y + 11.5), vec2(width, 1.0));
                self.parts.push(RowPart::Fill { rect, colour: self.pen.colours.line, corner: CornerRadius::ZERO });
                self.y += 24.0;
            }
            Mark::TaskListMarker(done) => self.task(done, None, &range),
            Mark::FootnoteReference(name) => self.reference(&name, &range),
            Mark::InlineMath(math) => self.math(&math, range, false),
            Mark::DisplayMath(math) => {
                self.flush();
                self.math(&math, range, true);
                self.flush();
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            // A footnote's number is on the same line as its first paragraph.
            Tag::Paragraph if self.small && self.parts.is_empty() => {}
            Tag::Paragraph if self.title.is_some() => self.title_icon(&range),
            Tag::Paragraph => self.flush(),
            Tag::HtmlBlock => {
                self.flush();
                self.html_block = Some(Vec::new());
            }
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(level as u8);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.space();
                self.x += QUOTE_INDENT;
                self.depth += 1;
                let list_indent = std::mem::take(&mut self.list_indent);
                self.quotes.push(OpenQuote { top: self.y, callout: None, list_indent, is_from_right: None });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => super::source_layout::fence_language(&info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((String::new(), language, range));
            }
            Tag::List(number) => {
                self.flush();
                self.gap = self.gap.min(space::XS);
                self.lists.push(number);
                // Tasks nested in a canceled task aren't canceled by it.
                self.strike_item(false);
            }
            Tag::Item => self.item(&range),
            Tag::FootnoteDefinition(name) => {
                self.flush();
                let name = format!("{name}. ");
                self.push(&name, range.start..range.start, false);
            }
            Tag::Table(columns) => {
                self.flush();
                self.table = Some(TableRenderer::new(columns));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.inline = Some(InlineText::default()),
            Tag::Emphasis => self.look.emphasis += 1,
            Tag::Strong => self.look.strong += 1,
            Tag::Strikethrough => self.look.strike += 1,
            Tag::Superscript => self.look.raised += 1,
            Tag::Subscript => self.look.lowered += 1,
            Tag::Link { dest_url, .. } => self.look.link = Some(dest_url.into_string()),
            Tag::Image { dest_url, link_type, .. } => {
                let wiki = matches!(link_type, LinkType::WikiLink { .. });
                self.image = Some(InlineImage { target: dest_url.into_string(), wiki, alt: String::new(), range });
            }
            Tag::MetadataBlock(_) => self.meta = true,
            Tag::DefinitionList | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph if self.title.is_some() => self.end_title(),
            TagEnd::Paragraph => self.flush(),
            TagEnd::HtmlBlock => self.end_html_block(),
            TagEnd::Heading(_) => {
                self.flush();
                self.heading = None;
            }
            TagEnd::BlockQuote(_) => {
                self.depth -= 1;
                self.end_quote();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.strike_item(true);
            }
            TagEnd::Item => {
                self.flush();
                self.end_details();
                self.strike_item(false);
                self.struck.pop();
                self.is_task = false;
                self.x -= LIST_ITEM_INDENT;
                self.list_indent -= LIST_ITEM_INDENT;
                self.gap = self.gap.min(space::XS);
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.space();
                    let (height, text) =
                        table.layout_grid(&mut self.parts, self.x, self.y, self.width, self.wide, self.pen);
                    self.y += height;
                    self.text.push_str(&text);
                    self.gap = space::S;
                }
            }
            TagEnd::TableCell => {
                self.close_elements();
                if let (Some(cell), Some(table)) = (self.inline.take(), &mut self.table)
                    && let Some(row) = table.rows.last_mut()
                {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis => self.look.emphasis = self.look.emphasis.saturating_sub(1),
            TagEnd::Strong => self.look.strong = self.look.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.look.strike = self.look.strike.saturating_sub(1),
            TagEnd::Superscript => self.look.raised = self.look.raised.saturating_sub(1),
            TagEnd::Subscript => self.look.lowered = self.look.lowered.saturating_sub(1),
            TagEnd::Link => self.look.link = None,
            TagEnd::Image => self.end_image(),
            TagEnd::MetadataBlock(_) => self.meta = false,
            TagEnd::FootnoteDefinition => self.flush(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition => {}
        }
    }

    /// Adds the pending space between two blocks of a row.
    fn space(&mut self) {
        self.y += std::mem::take(&mut self.gap);
    }

    /// Ends the current line of text.
    fn flush(&mut self) {
        self.close_elements();
        let Some(mut inline) = self.inline.take() else { return };
        self.space();
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let words = inline.words();
        let task = self.unnamed.take();
        if let Some(RowPart::Task { label, .. }) = task.and_then(|index| self.parts.get_mut(index)) {
            words.trim().lines().next().unwrap_or("Task").clone_into(label);
        }
        self.text.push_str(&words);
        inline.job.wrap.max_width = (self.width - self.x).max(48.0);
        inline_fields::quiet(&mut inline.job, self.pen.colours);
        let galley = self.pen.galley(std::mem::take(&mut inline.job));
        let height = galley.size().y.max(self.kind().line);
        let mut at = vec2(self.x + inline.shift, self.y);
        let mark = self.mark.take().or(task);
        let is_from_right = bidi_text::begins_right_to_left(galley.text());
        for quote in &mut self.quotes {
            quote.is_from_right = quote.is_from_right.or(Some(is_from_right));
        }
        if is_from_right {
            at.x -= self.mirror_list(mark);
        }
        self.parts.extend(inline.grounds(&galley, at));
        self.parts.push(RowPart::Text { at, galley, map: inline.map, links: inline.links });
        self.y += height;
        self.gap = space::S;
    }

    fn finish(mut self, source: &str) -> RowLayout {
        self.flush();
        let text = self.text.trim().to_owned();
        for part in &mut self.parts {
            if let RowPart::Task { label, .. } = part
                && label.is_empty()
            {
                text.lines().next().unwrap_or("Task").clone_into(label);
            }
        }
        // A row that renders nothing is shown as source, so that it can be seen and clicked.
        if self.parts.is_empty() {
            return plain(source, RowKind::Definition, self.width, self.pen);
        }
        RowLayout { height: self.y.max(theme::body().line), parts: self.parts, text, bare: false }
    }
}
