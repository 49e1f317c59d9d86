//! Content besides plain text: callouts, tags, formulas, diagrams, pictures, embedded notes.

use super::super::assets::{self, Asset, DrawingState};
use super::super::row_layout::{RowLayout, RowPart, SourceMap, SourceRun};
use super::super::row_splitter::RowKind;
use super::{
    CalloutTitle, DedentedSource, InlineImage, InlineInset, InlineText, InsetContent, OpenQuote, RowRenderer,
    TextStyleContext,
};
use collection::is_collection;
use eframe::egui;
use egui::{CornerRadius, Rect, Vec2, pos2, vec2};
use pulldown_cmark::{Event as Mark, Tag};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use text::markdown::dialect::{self, CalloutHead, CalloutKind, DialectToken};
use typeset::formula::SetFormula;
use ui::icons;
use ui::theme::{self, InterCut, space};
use ui::widgets::format;

/// Prefix of links to tags. No note can contain it.
pub const TAG: &str = "\0tag:";

/// Maximum nesting depth of embeds.
const MAX_EMBED_DEPTH: u8 = 2;
/// Maximum height of a picture, in points.
const MAX_PICTURE_HEIGHT: f32 = 640.0;
/// Maximum height of a diagram, in points.
const MAX_DIAGRAM_HEIGHT: f32 = 1_000.0;
/// Font size of a formula relative to the surrounding text.
const FORMULA_FONT_SCALE: f32 = 1.18;
/// Maximum width of a formula in a table, in points; wider ones are scaled down.
const MAX_TABLE_FORMULA_WIDTH: f32 = 360.0;
/// Maximum width of a collection's card, in points.
const MAX_COLLECTION_CARD_WIDTH: f32 = 360.0;
/// Width of the bar to the left of quotes and callouts, in points.
const QUOTE_BAR_WIDTH: f32 = 3.0;

fn icon(kind: CalloutKind) -> &'static str {
    match kind {
        CalloutKind::Note => icons::PENCIL,
        CalloutKind::Abstract => icons::LIST,
        CalloutKind::Info => icons::INFO,
        CalloutKind::Todo => icons::CHECK_CIRCLE,
        CalloutKind::Tip => icons::LIGHTNING,
        CalloutKind::Success => icons::CHECK,
        CalloutKind::Question => icons::QUESTION,
        CalloutKind::Warning => icons::WARNING,
        CalloutKind::Failure => icons::X,
        CalloutKind::Danger => icons::WARNING_CIRCLE,
        CalloutKind::Bug => icons::WRENCH,
        CalloutKind::Example => icons::LIST_BULLETS,
        CalloutKind::Quote => icons::CHAT,
    }
}

impl RowRenderer<'_> {
    /// Starts a callout: reserves its background and bar, and indents its content.
    pub(super) fn callout(&mut self, callout: CalloutHead<'_>, range: &Range<usize>) {
        self.flush();
        self.space();
        let colour = self.pen.colours.callout_color(callout.kind);
        let mut hasher = DefaultHasher::new();
        (self.pen.note, self.callouts, self.source.text.get(range.clone())).hash(&mut hasher);
        let name = hasher.finish();
        self.callouts += 1;
        let fold = callout.folded.map(|folded| (folded == assets::is_turned(self.pen.ctx, name), name));
        self.title = Some(CalloutTitle { kind: callout.kind, words: callout.default_title(), fold });
        self.depth += 1;
        let list_indent = std::mem::take(&mut self.list_indent);
        self.quotes.push(OpenQuote {
            top: self.y,
            callout: Some((colour, self.parts.len())),
            list_indent,
            is_from_right: None,
        });
        // Background and bar are drawn behind everything else; their size is set at the end of the callout.
        for _ in 0..2 {
            self.parts.push(RowPart::Fill { rect: Rect::ZERO, colour, corner: theme::CONTROL_CORNER });
        }
        self.x += space::L;
        self.width -= space::M;
        self.y += space::M;
    }

    /// Adds the icon before a callout's title.
    pub(super) fn title_icon(&mut self, range: &Range<usize>) {
        let Some(title) = &self.title else { return };
        let colour = self.pen.colours.callout_color(title.kind);
        let kind = self.kind();
        let galley = self.pen.text(
            icon(title.kind),
            &theme::TypeStyle { font: theme::icon_font(18.0), line: kind.line },
            colour,
            48.0,
        );
        let at = self.source.source(range.start);
        let map = SourceMap { runs: vec![SourceRun { chars: 0, source: at..at, exact: false }] };
        self.parts.push(RowPart::Text { at: vec2(self.x, self.y), galley, map, links: Vec::new() });
        self.x += space::XL + space::XS;
    }

    pub(super) fn end_title(&mut self) {
        let Some(title) = &self.title else { return };
        let words = title.words.clone();
        if self.inline.as_ref().is_none_or(|inline| inline.job.text.trim().is_empty()) {
            self.push(&words, 0..0, false);
        }
        let label = self.inline.as_ref().map_or(words, InlineText::words);
        let top = self.y;
        let width = self.inline.as_ref().map_or(0.0, |inline| self.pen.galley(inline.job.clone()).size().x);
        self.flush();
        self.x -= space::XL + space::XS;
        let Some(CalloutTitle { kind, fold, .. }) = self.title.take() else { return };
        let Some((open, callout)) = fold else { return };
        let caret = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
        let style = theme::TypeStyle { font: theme::icon_font(14.0), line: self.kind().line };
        let galley = self.pen.text(caret, &style, self.pen.colours.callout_color(kind), 48.0);
        let x = (self.x + space::XL + space::S + width).min(self.width - 20.0);
        self.parts.push(RowPart::Text { at: vec2(x, top), galley, map: SourceMap::default(), links: Vec::new() });
        let rect = Rect::from_min_max(pos2(self.x - space::S, top - 2.0), pos2(x + 24.0, top + self.kind().line + 2.0));
        self.parts.push(RowPart::Fold { rect, callout, open, label });
        if !open {
            self.folded = Some(self.depth);
        }
    }

    /// Ends a quote or callout: its background and bar get their final height.
    pub(super) fn end_quote(&mut self) {
        if self.title.is_some() {
            self.title_icon(&(0..0));
            self.end_title();
            self.folded = None;
        }
        self.flush();
        self.end_details();
        let Some(quote) = self.quotes.pop() else { return };
        self.list_indent = quote.list_indent;
        let colours = self.pen.colours;
        let Some((colour, at)) = quote.callout else {
            self.x -= super::QUOTE_INDENT;
            let right = self.width - self.quote_indent_at_right() - QUOTE_BAR_WIDTH;
            let left = if quote.has_bar_at_right() { right } else { self.x };
            let rect = Rect::from_min_max(pos2(left, quote.top), pos2(left + QUOTE_BAR_WIDTH, self.y));
            self.parts.push(RowPart::Fill { rect, colour: colours.line, corner: CornerRadius::same(1) });
            return;
        };
        self.x -= space::L;
        self.width += space::M;
        self.y += space::M;
        let whole = Rect::from_min_max(pos2(self.x, quote.top), pos2(self.width, self.y));
        let ground = colours.paper.lerp_to_gamma(colour, 0.07);
        self.parts[at] = RowPart::Fill { rect: whole, colour: ground, corner: theme::CONTROL_CORNER };
        let bar = whole.with_max_x(self.x + QUOTE_BAR_WIDTH);
        let corner = CornerRadius { nw: 6, sw: 6, ne: 0, se: 0 };
        self.parts[at + 1] = RowPart::Fill { rect: bar, colour, corner };
        self.gap = space::S;
    }

    /// Adds a tag: smaller text on a colored background, with a link.
    pub(super) fn chip(&mut self, name: &str, range: &Range<usize>) {
        let kind = self.kind();
        let colours = self.pen.colours;
        let source = self.source.source(range.start)..self.source.source(range.end);
        let inline = self.inline.get_or_insert_default();
        inline.map.runs.push(SourceRun { chars: inline.chars, source, exact: true });
        let count = name.chars().count();
        inline.lit.push((inline.chars..inline.chars + count, colours.accent_ground));
        let link = format!("{}{}", TAG, name.trim_start_matches('#'));
        inline.links.push((inline.chars..inline.chars + count, link));
        let size = (kind.font.size * 0.92).min(kind.font.size);
        inline.job.append(name, 0.0, format(theme::inter_font(InterCut::Regular, size), kind.line, colours.accent));
        inline.chars += count;
    }

    /// Adds a formula on the baseline, or its source if it can't be parsed.
    pub(super) fn math(&mut self, source: &str, range: Range<usize>, display: bool) {
        let chars = self.inline.as_ref().map_or(0, |inline| inline.chars);
        match assets::formula(self.pen.ctx, source, display) {
            Some(Ok(formula)) => self.formula(formula, source, &range, display),
            Some(Err(why)) => {
                self.push(source.trim(), range, true);
                let inline = self.inline.get_or_insert_default();
                inline
                    .insets
                    .push(InlineInset { chars: chars..inline.chars, what: InsetContent::Remark(why.to_string()) });
            }
            None => self.push(source.trim(), range, true),
        }
    }

    fn formula(&mut self, formula: Arc<SetFormula>, source: &str, range: &Range<usize>, display: bool) {
        let (kind, ink) = (self.kind(), self.colour());
        let (size, line) = if self.table.is_some() { (14.0, 20.0) } else { (kind.font.size, kind.line) };
        // At the same font size, Inter looks larger than the letters of formulas.
        let full = size * FORMULA_FONT_SCALE;
        let room = if self.table.is_some() { MAX_TABLE_FORMULA_WIDTH } else { (self.width - self.x).max(48.0) };
        let em = full.min(room / formula.width.max(0.01));
        // Distance of the baseline below the middle of the line.
        let probe =
            self.pen.text("x", &theme::TypeStyle { font: theme::inter_font(InterCut::Regular, size), line }, ink, 48.0);
        let base = probe.rows.first().and_then(|row| Some(row.glyphs.first()?.pos.y - row.size.y / 2.0)).unwrap_or(0.0);
        let (above, below) = (formula.height * em - base, formula.depth * em + base);
        let high = line.max(2.0 * above + 4.0).max(2.0 * below + 4.0);
        let width = formula.width * em;
        let source_range = self.source.source(range.start)..self.source.source(range.end);
        let inline = self.inline.get_or_insert_default();
        inline.map.runs.push(SourceRun { chars: inline.chars, source: source_range, exact: false });
        // Two invisible, non-breaking characters reserve the formula's width.
        let mut style = format(theme::inter_font(InterCut::Regular, 1.0), high, ink);
        inline.job.append("\u{a0}", 0.0, style.clone());
        style.extra_letter_spacing = (width - 0.5).max(0.0);
        inline.job.append("\u{a0}", 0.0, style);
        let words = formula.words.clone().unwrap_or_else(|| source.trim().to_owned());
        let what = InsetContent::Formula { formula, em, base, ink, words };
        inline.insets.push(InlineInset { chars: inline.chars..inline.chars + 2, what });
        inline.chars += 2;
        if display && self.table.is_none() {
            inline.shift = ((room - width) / 2.0).max(0.0);
        }
    }

    /// Adds a diagram in place of its source code. Returns whether it is ready to be drawn.
    pub(super) fn diagram(&mut self, code: &str, range: &Range<usize>) -> bool {
        let DrawingState::Ready(texture, natural) = assets::diagram(self.pen.ctx, code, self.pen.colours) else {
            return false;
        };
        self.space();
        let rect = diagram_rect(natural, self.x, self.y, self.width);
        self.parts.push(RowPart::Picture { rect, texture });
        let galley = self.pen.text("", &theme::body(), self.pen.colours.ink, rect.width());
        let map = self.mark(range);
        self.parts.push(RowPart::Text { at: rect.min.to_vec2(), galley, map, links: Vec::new() });
        self.text.push_str(&format!("Diagram: {code}"));
        self.y += rect.height();
        self.gap = space::S;
        true
    }

    /// Adds a picture or embedded note, once its alternative text is complete.
    pub(super) fn end_image(&mut self) {
        let Some(image) = self.image.take() else { return };
        let remote = image.target.contains("://");
        if image.wiki && self.table.is_none() && is_collection(dialect::split_wiki_target(&image.target).0) {
            return self.collection(&image);
        }
        let sight = match (remote || self.table.is_some(), self.embedded < MAX_EMBED_DEPTH) {
            (false, true) => assets::request_asset(self.pen.ctx, self.pen.note, &image.target),
            _ => Asset::None,
        };
        match sight {
            Asset::Picture(texture, natural) => self.picture(&image, texture, natural),
            Asset::Text(text) if image.wiki => self.embed(&image, &text),
            Asset::Remark(words) => self.named(InlineImage { alt: words.to_string(), ..image }),
            Asset::Waiting | Asset::Text(_) | Asset::None => self.named(image),
        }
    }

    /// Adds a card that links to a collection inside a list, quote or embedded note, where there's no room for its
    /// table.
    fn collection(&mut self, image: &InlineImage) {
        self.flush();
        self.space();
        let (target, view) = dialect::split_wiki_target(&image.target);
        let name = target.rsplit('/').next().unwrap_or(target);
        let name = name.strip_suffix(".base").unwrap_or(name);
        let what = match view.filter(|view| !view.is_empty()) {
            Some(view) => format!("Collection, view “{view}”"),
            None => "Collection".to_owned(),
        };
        let (colours, left, top) = (self.pen.colours, self.x, self.y);
        let width = (self.width - left).clamp(96.0, MAX_COLLECTION_CARD_WIDTH);
        let inset = space::M + 20.0 + space::M;
        let room = width - inset - space::M;
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 14.0), line: 20.0 };
        let icon = theme::TypeStyle { font: theme::icon_font(20.0), line: 24.0 };
        let icon = self.pen.text(icons::TABLE, &icon, colours.muted, f32::INFINITY);
        let title = self.pen.text(name, &style, colours.accent, room);
        let caption = self.pen.text(&what, &theme::caption(), colours.muted, room);
        let high = title.size().y + caption.size().y;
        let rect = Rect::from_min_size(pos2(left, top), vec2(width, high + 2.0 * space::S));
        let links = vec![(0..name.chars().count() + 1, image.target.clone())];
        let (map, y) = (self.mark(&image.range), top + space::S);
        let at = vec2(left + space::M, rect.center().y - icon.size().y / 2.0);
        let below = vec2(left + inset, y + title.size().y);
        self.parts.push(RowPart::Fill { rect, colour: colours.sunken, corner: theme::CARD_CORNER });
        self.parts.push(RowPart::Text { at, galley: icon, map: SourceMap::default(), links: Vec::new() });
        self.parts.push(RowPart::Text { at: vec2(left + inset, y), galley: title, map, links });
        self.parts.push(RowPart::Text { at: below, galley: caption, map: SourceMap::default(), links: Vec::new() });
        self.text.push_str(&format!("{what}: {name}\n"));
        self.y = rect.bottom();
        self.gap = space::S;
    }

    /// Adds a link with the name of a target that isn't shown.
    fn named(&mut self, image: InlineImage) {
        self.icon(image.range.start);
        let words = if image.alt.is_empty() { image.target.clone() } else { image.alt };
        self.look.link = Some(image.target);
        self.push(&words, image.range, false);
        self.look.link = None;
    }

    /// Returns a map that leads a click anywhere on an element to its source.
    fn mark(&self, range: &Range<usize>) -> SourceMap {
        let source = self.source.source(range.start)..self.source.source(range.end);
        SourceMap { runs: vec![SourceRun { chars: 0, source, exact: false }] }
    }

    fn picture(&mut self, image: &InlineImage, texture: egui::TextureHandle, natural: Vec2) {
        self.flush();
        self.space();
        let room = (self.width - self.x).max(48.0);
        // `|300` or `|300x200` sets the width.
        let asked =
            image.alt.split('x').next().and_then(|width| width.trim().parse::<f32>().ok()).filter(|_| image.wiki);
        let width = asked.unwrap_or(natural.x).clamp(8.0, room);
        let scale = (width / natural.x.max(1.0)).min(MAX_PICTURE_HEIGHT / natural.y.max(1.0));
        let size = natural * scale;
        let rect = Rect::from_min_size(pos2(self.x, self.y), size);
        self.parts.push(RowPart::Picture { rect, texture });
        // An empty text lets a click on the picture find its source.
        let galley = self.pen.text("", &theme::body(), self.pen.colours.ink, size.x);
        let map = self.mark(&image.range);
        self.parts.push(RowPart::Text { at: rect.min.to_vec2(), galley, map, links: Vec::new() });
        if asked.is_none() {
            self.text.push_str(&image.alt);
        }
        self.y += size.y;
        self.gap = space::S;
    }

    /// Adds an embedded note: its name, and its text on a card below it.
    fn embed(&mut self, image: &InlineImage, text: &str) {
        self.flush();
        self.space();
        let colours = self.pen.colours;
        let (left, top) = (self.x, self.y);
        let width = (self.width - left).max(96.0);
        let ground = self.parts.len();
        self.parts.push(RowPart::Fill { rect: Rect::ZERO, colour: colours.sunken, corner: theme::CARD_CORNER });
        let galley = self.pen.text(&image.target, &theme::caption(), colours.accent, width - 2.0 * space::L);
        let links = vec![(0..image.target.chars().count() + 1, image.target.clone())];
        let (at, high) = (vec2(left + space::L, top + space::S), galley.size().y);
        self.parts.push(RowPart::Text { at, galley, map: self.mark(&image.range), links });
        let inner = inner(self, text, width - 2.0 * space::L);
        let by = vec2(left + space::L, top + space::S + high + space::XS);
        self.text.push_str(&inner.text);
        let map = self.mark(&image.range);
        for part in inner.parts {
            self.parts.push(match part.translated(by) {
                RowPart::Text { at, galley, links, .. } => {
                    let runs =
                        map.runs.iter().map(|run| SourceRun { chars: 0, source: run.source.clone(), exact: false });
                    RowPart::Text { at, galley, map: SourceMap { runs: runs.collect() }, links }
                }
                // An embedded note is edited, and its checkboxes are toggled, only in the note itself.
                RowPart::Edit { .. } => continue,
                RowPart::Task { rect, mark, done, state, label, .. } => {
                    RowPart::Task { rect, mark, done, state, fixed: true, label }
                }
                part => part,
            });
        }
        self.y = by.y + inner.height + space::M;
        let card = Rect::from_min_max(pos2(left, top), pos2(left + width, self.y));
        self.parts[ground] = RowPart::Fill { rect: card, colour: colours.sunken, corner: theme::CARD_CORNER };
        self.gap = space::S;
    }
}

/// Returns the rectangle of a diagram, centered, and scaled down if it's too large.
fn diagram_rect(natural: Vec2, x: f32, y: f32, width: f32) -> Rect {
    let room = (width - x).max(48.0);
    let scale = (room / natural.x.max(1.0)).min(MAX_DIAGRAM_HEIGHT / natural.y.max(1.0)).min(1.0);
    let size = natural * scale;
    Rect::from_min_size(pos2(x + ((room - size.x) / 2.0).max(0.0), y), size)
}

/// Renders a code block as a diagram; `code` is its layout as code, used until the diagram is ready or if it fails.
pub fn diagram(code: RowLayout, source: &str, range: Range<usize>, width: f32, pen: TextStyleContext<'_>) -> RowLayout {
    let map = SourceMap { runs: vec![SourceRun { chars: 0, source: range, exact: false }] };
    match assets::diagram(pen.ctx, source, pen.colours) {
        DrawingState::Waiting => code,
        DrawingState::Ready(texture, natural) => {
            let rect = diagram_rect(natural, 0.0, space::S, width);
            let galley = pen.text("", &theme::body(), pen.colours.ink, rect.width());
            let text = RowPart::Text { at: rect.min.to_vec2(), galley, map, links: Vec::new() };
            let parts = vec![text, RowPart::Picture { rect, texture }];
            let height = rect.height() + 2.0 * space::S;
            RowLayout { height, parts, bare: true, text: format!("Diagram: {source}") }
        }
        DrawingState::Failed(why) => {
            let mut code = code;
            let galley = pen.text(&format!("Not drawn. {why}"), &theme::caption(), pen.colours.warn, width);
            let at = vec2(0.0, code.height - space::XS);
            code.height += galley.size().y + space::XS;
            code.text = format!("{} Not drawn. {why}", code.text);
            code.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
            code
        }
    }
}

/// Lays out the text of an embedded note in a width.
fn inner(around: &RowRenderer<'_>, text: &str, width: f32) -> RowLayout {
    let source = DedentedSource { text: text.to_owned(), cuts: Vec::new() };
    let mut draw = RowRenderer::new(&source, RowKind::Paragraph, width, width, around.pen);
    draw.embedded = around.embedded + 1;
    for (token, range) in dialect::tokenize(text, dialect::dialect_options()) {
        draw.token(token, range);
    }
    draw.finish(text)
}

/// Returns the target of the link or picture at a byte of a row's source, and whether it's a picture.
pub fn link_in_source(text: &str, at: usize) -> Option<(String, bool)> {
    let tokens = dialect::tokenize(text, dialect::dialect_options());
    let around = tokens.into_iter().filter(|(_, range)| range.contains(&at));
    let mut links = around.filter_map(|(token, _)| match token {
        DialectToken::Mark(Mark::Start(Tag::Link { dest_url, .. })) => Some((dest_url.into_string(), false)),
        DialectToken::Mark(Mark::Start(Tag::Image { dest_url, .. })) => Some((dest_url.into_string(), true)),
        _ => None,
    });
    links.next_back()
}
