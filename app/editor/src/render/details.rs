//! Renders `<details>`: the rows of its summary and its end, and whole elements inside of a row, such as in a list item
//! or an embedded note.

use super::super::assets;
use super::super::details::{self, Details};
use super::super::row_layout::{RowLayout, RowPart, SourceMap};
use super::super::row_splitter::RowKind;
use super::{DedentedSource, Mark, RowRenderer, Tag, TagEnd, TextStyleContext, dialect};
use eframe::egui;
use egui::{CornerRadius, Pos2, Rect, Vec2, pos2, vec2};
use pulldown_cmark::Options;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use text::markdown::details::{DetailsPart, details_parts};
use text::markdown::dialect::DialectToken;
use ui::icons;
use ui::theme::{self, space};

/// Indentation of the summary, which has a caret before it.
const SUMMARY_INDENT: f32 = space::XL;
/// Height of the row that shows where an element ends, in points.
const END_HEIGHT: f32 = 12.0;

/// Renders an HTML row, if it begins or ends `<details>`.
pub(super) fn draw(source: &str, width: f32, wide: f32, pen: TextStyleContext<'_>) -> Option<RowLayout> {
    if details::is_end_only(source) {
        let rect = Rect::from_min_size(pos2(0.0, END_HEIGHT / 2.0), vec2(width, 1.0));
        let line = RowPart::Fill { rect, colour: pen.colours.line, corner: CornerRadius::ZERO };
        return Some(RowLayout {
            height: END_HEIGHT,
            parts: vec![line],
            bare: false,
            text: "End of details".to_owned(),
        });
    }
    let details = Details::parse(source)?;
    let mut drawn = RowLayout::default();
    region(&mut drawn, source, details.summary.clone(), true, (width, wide), pen);
    let label = drawn.text.clone();
    let mut is_unfolded = true;
    if details.is_whole {
        let mut hasher = DefaultHasher::new();
        (pen.note, "details", source).hash(&mut hasher);
        let fold = hasher.finish();
        is_unfolded = details.is_open != assets::is_turned(pen.ctx, fold);
        let caret = if is_unfolded { icons::CARET_DOWN } else { icons::CARET_RIGHT };
        let style = theme::TypeStyle { font: theme::icon_font(14.0), line: theme::body().line };
        let galley = pen.text(caret, &style, pen.colours.muted, f32::INFINITY);
        let rect = summary_area(&drawn);
        drawn.parts.push(RowPart::Text { at: Vec2::ZERO, galley, map: SourceMap::default(), links: Vec::new() });
        drawn.parts.push(RowPart::Fold { rect, callout: fold, open: is_unfolded, label });
    }
    if is_unfolded && !details::is_containers_only(&source[details.body.clone()]) {
        drawn.height += space::XS;
        drawn.text.push('\n');
        region(&mut drawn, source, details.body, false, (width, wide), pen);
    }
    Some(drawn)
}

/// Returns the area of a summary and the caret before it, in which a click folds or unfolds.
pub fn summary_area(drawn: &RowLayout) -> Rect {
    let words = drawn.parts.iter().find_map(|part| match part {
        RowPart::Text { at, galley, .. } => Some(at.x + galley.size().x),
        _ => None,
    });
    Rect::from_min_max(Pos2::ZERO, pos2(words.unwrap_or(SUMMARY_INDENT), theme::body().line))
}

/// Adds a part of the source below what is already drawn.
fn region(
    drawn: &mut RowLayout,
    source: &str,
    range: Range<usize>,
    is_summary: bool,
    (width, wide): (f32, f32),
    pen: TextStyleContext<'_>,
) {
    let own = DedentedSource { text: source[range.clone()].to_owned(), cuts: vec![(0, range.start)] };
    let mut renderer = RowRenderer::new(&own, RowKind::Paragraph, width, wide, pen);
    (renderer.x, renderer.y) = (SUMMARY_INDENT, drawn.height);
    renderer.look.strong = u32::from(is_summary);
    if range.is_empty() {
        renderer.push("Details", 0..0, false);
    }
    let options = dialect::dialect_options() - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for (token, range) in dialect::tokenize(&own.text, options) {
        renderer.token(token, range);
    }
    renderer.flush();
    drawn.height = renderer.y;
    drawn.text.push_str(renderer.text.trim());
    drawn.parts.append(&mut renderer.parts);
}

/// A folded element whose text is skipped.
pub(super) struct HiddenDetails {
    /// Number of elements that are open, this one among them.
    open: usize,
    /// Number of Markdown elements that are open in it.
    nesting: usize,
}

/// The text of an HTML block, and for each line its offset there and its place in the source.
struct HtmlBlockText {
    text: String,
    lines: Vec<(usize, usize)>,
}

impl HtmlBlockText {
    /// Returns a part as the source of a renderer.
    fn part(&self, range: &Range<usize>) -> DedentedSource {
        let first = self.lines.partition_point(|(at, _)| *at <= range.start).saturating_sub(1);
        let lines = self.lines.get(first..).unwrap_or_default().iter().take_while(|(at, _)| *at <= range.end);
        // Each line moves by the markers and indentation before it.
        let cuts = lines.map(|(at, source)| {
            let shown = at.saturating_sub(range.start);
            (shown, (source + range.start.saturating_sub(*at)).saturating_sub(shown))
        });
        DedentedSource { text: self.text[range.clone()].to_owned(), cuts: cuts.collect() }
    }
}

impl RowRenderer<'_> {
    /// Returns whether a token is in a folded element.
    pub(super) fn is_token_hidden(&mut self, token: &DialectToken<'_>, range: &Range<usize>) -> bool {
        let Some(hidden) = &mut self.hidden else { return false };
        match token {
            DialectToken::Mark(Mark::Start(Tag::HtmlBlock)) => self.html_block = Some(Vec::new()),
            DialectToken::Mark(Mark::Html(html)) => {
                if let Some(lines) = &mut self.html_block {
                    lines.push((html.to_string(), range.clone()));
                }
            }
            DialectToken::Mark(Mark::End(TagEnd::HtmlBlock)) if hidden.nesting == 0 => self.end_html_block(),
            DialectToken::Mark(Mark::End(TagEnd::HtmlBlock)) => self.html_block = None,
            DialectToken::Mark(Mark::Start(_)) | DialectToken::Callout(_) => hidden.nesting += 1,
            DialectToken::Mark(Mark::End(_)) => match hidden.nesting.checked_sub(1) {
                Some(nesting) => hidden.nesting = nesting,
                // The item or quote around it ends, and the element with it.
                None => {
                    self.hidden = None;
                    return false;
                }
            },
            _ => {}
        }
        true
    }

    /// Renders an HTML block inside of a row: `<details>` can be folded, and other HTML is shown as source.
    pub(super) fn end_html_block(&mut self) {
        let Some(lines) = self.html_block.take() else { return };
        let mut block = HtmlBlockText { text: String::new(), lines: Vec::new() };
        for (line, range) in &lines {
            block.lines.push((block.text.len(), self.source.source(range.start)));
            block.text.push_str(line);
        }
        let Some(parts) = details_parts(&block.text) else {
            if self.hidden.is_none() {
                lines.into_iter().for_each(|(line, range)| self.push(line.trim_end(), range, true));
                self.flush();
            }
            return;
        };
        for part in parts {
            if let Some(hidden) = &mut self.hidden {
                match part {
                    DetailsPart::Html(_) => {}
                    DetailsPart::Start { .. } => hidden.open += 1,
                    DetailsPart::End => {
                        hidden.open -= 1;
                        if hidden.open == 0 {
                            self.hidden = None;
                        }
                    }
                }
                continue;
            }
            match part {
                DetailsPart::Html(range) if details::is_containers_only(&block.text[range.clone()]) => {}
                DetailsPart::Html(range) => _ = self.html_part(&block, &range, false),
                DetailsPart::Start { is_open, summary } => self.start_details(&block, &summary, is_open),
                DetailsPart::End => {
                    if self.details.last() == Some(&self.items_and_quotes()) {
                        self.details.pop();
                        self.x -= SUMMARY_INDENT;
                    }
                }
            }
        }
    }

    /// Ends the elements that began in the innermost item or quote and weren't ended there.
    pub(super) fn end_details(&mut self) {
        while self.details.last().is_some_and(|around| *around >= self.items_and_quotes()) {
            self.details.pop();
            self.x -= SUMMARY_INDENT;
        }
    }

    fn items_and_quotes(&self) -> usize {
        self.struck.len() + self.quotes.len()
    }

    /// Draws a summary, and hides what follows if it's folded.
    fn start_details(&mut self, block: &HtmlBlockText, summary: &Range<usize>, is_open: bool) {
        self.space();
        let top = self.y;
        let (label, right) = self.html_part(block, summary, true);
        let mut is_unfolded = true;
        // What isn't ended in this row can't be hidden in the rows below.
        if details::is_balanced(&self.source.text) {
            let mut hasher = DefaultHasher::new();
            (self.pen.note, "details", self.callouts, &block.text).hash(&mut hasher);
            let fold = hasher.finish();
            self.callouts += 1;
            is_unfolded = is_open != assets::is_turned(self.pen.ctx, fold);
            let caret = if is_unfolded { icons::CARET_DOWN } else { icons::CARET_RIGHT };
            let style = theme::TypeStyle { font: theme::icon_font(14.0), line: theme::body().line };
            let galley = self.pen.text(caret, &style, self.pen.colours.muted, f32::INFINITY);
            let (at, map) = (vec2(self.x, top), SourceMap::default());
            self.parts.push(RowPart::Text { at, galley, map, links: Vec::new() });
            let rect = Rect::from_min_max(pos2(self.x, top), pos2(right, top + theme::body().line));
            self.parts.push(RowPart::Fold { rect, callout: fold, open: is_unfolded, label });
        }
        if is_unfolded {
            self.details.push(self.items_and_quotes());
            self.x += SUMMARY_INDENT;
            self.gap = space::XS;
        } else {
            self.hidden = Some(HiddenDetails { open: 1, nesting: 0 });
        }
    }

    /// Renders a part of an HTML block like Markdown. Returns its text, and where it ends at the right.
    fn html_part(&mut self, block: &HtmlBlockText, range: &Range<usize>, is_summary: bool) -> (String, f32) {
        self.flush();
        self.space();
        let own = block.part(range);
        let mut renderer = RowRenderer::new(&own, RowKind::Paragraph, self.width, self.wide, self.pen);
        (renderer.x, renderer.y) = (self.x + if is_summary { SUMMARY_INDENT } else { 0.0 }, self.y);
        (renderer.embedded, renderer.small) = (self.embedded, self.small);
        renderer.look.strong = u32::from(is_summary);
        if is_summary && range.is_empty() {
            renderer.push("Details", 0..0, false);
        }
        let options = dialect::dialect_options() - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        for (token, range) in dialect::tokenize(&own.text, options) {
            renderer.token(token, range);
        }
        renderer.flush();
        let text = renderer.text.trim().to_owned();
        let right = renderer.parts.iter().filter_map(|part| match part {
            RowPart::Text { at, galley, .. } => Some(at.x + galley.size().x),
            _ => None,
        });
        let right = right.fold(renderer.x, f32::max);
        (self.y, self.gap) = (renderer.y, renderer.gap);
        self.parts.append(&mut renderer.parts);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&text);
        (text, right)
    }
}
