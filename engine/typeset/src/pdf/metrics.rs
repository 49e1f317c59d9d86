//! Sizes on the page, in points.

use super::text_layout::WordStyle;

/// Page margins: left and right, top, bottom.
pub(super) const SIDE_MARGIN_PT: f32 = 74.0;
pub(super) const TOP_MARGIN_PT: f32 = 72.0;
pub(super) const BOTTOM_MARGIN_PT: f32 = 76.0;
/// Line heights of text, small text and code.
pub(super) const LINE_HEIGHT_PT: f32 = 15.2;
pub(super) const SMALL_LINE_HEIGHT_PT: f32 = 12.8;
pub(super) const CODE_LINE_HEIGHT_PT: f32 = 12.4;
/// Space between two paragraphs.
pub(super) const PARAGRAPH_GAP_PT: f32 = 7.5;
/// Indent of list items.
pub(super) const LIST_INDENT_PT: f32 = 17.0;
/// Padding inside a background.
pub(super) const GROUND_PAD_PT: f32 = 9.0;
/// Size of inline code relative to text.
pub(super) const CODE_SIZE_RATIO: f32 = 0.9;
/// Font size of formulas relative to text.
pub(super) const FORMULA_SIZE_RATIO: f32 = 1.15;

const BODY_STYLE: WordStyle = WordStyle {
    code: false,
    weight: 400,
    italic: false,
    size: 10.2,
    colour: [0x1f, 0x23, 0x28],
    ground: None,
    strike: false,
    rise: 0.0,
    link: None,
};

pub(super) fn body_style() -> WordStyle {
    BODY_STYLE
}

pub(super) fn small_style() -> WordStyle {
    WordStyle { size: 9.0, ..BODY_STYLE }
}

pub(super) fn code_style() -> WordStyle {
    WordStyle { code: true, size: 8.6, ..BODY_STYLE }
}

/// Returns a heading's style, its line height and the space above it.
pub(super) fn heading_style(level: u8) -> (WordStyle, f32, f32) {
    let style = WordStyle { weight: 600, ..BODY_STYLE };
    match level {
        1 => (WordStyle { size: 21.0, ..style }, 27.0, 26.0),
        2 => (WordStyle { size: 15.5, ..style }, 21.0, 22.0),
        3 => (WordStyle { size: 12.5, ..style }, 17.5, 16.0),
        _ => (WordStyle { size: 10.4, ..style }, 15.2, 12.0),
    }
}
