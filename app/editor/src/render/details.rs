//! Renders the rows of `<details>`: its summary, the text in the same row, and its end.

use super::super::assets;
use super::super::details::{self, Details};
use super::super::row_layout::{RowLayout, RowPart, SourceMap};
use super::super::row_splitter::RowKind;
use super::{DedentedSource, RowRenderer, TextStyleContext, dialect};
use eframe::egui;
use egui::{CornerRadius, Pos2, Rect, Vec2, pos2, vec2};
use pulldown_cmark::Options;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
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
