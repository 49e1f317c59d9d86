//! The layout of a row: what to paint where, and the mapping from a point back to the source.

use super::assets;
use super::bidi_text;
use eframe::egui;
use egui::epaint::text::CharIndex;
use egui::{Align2, Color32, CornerRadius, Galley, Pos2, Rect, Stroke, TextureHandle, Vec2, pos2, vec2};
use std::ops::Range;
use std::sync::Arc;
use typeset::formula::SetFormula;
use ui::theme::{self, ThemeColors};

/// Distance of an unresolved link's dashed line below the middle of its line, as a fraction of the line's height.
const UNRESOLVED_LINE_DROP: f32 = 0.36;

/// Maps characters of laid-out text to bytes of the source.
#[derive(Debug, Default)]
pub struct SourceMap {
    /// Runs of laid-out text, ordered by their first character.
    pub runs: Vec<SourceRun>,
}

/// A run of laid-out characters that come from one range of the source.
#[derive(Debug)]
pub struct SourceRun {
    /// Index of the first character in the part's laid-out text.
    pub chars: usize,
    /// Byte range of the source.
    pub source: Range<usize>,
    /// Whether the text equals the source, character by character.
    pub exact: bool,
}

impl SourceMap {
    /// Returns the byte of `source` for a character.
    pub(crate) fn source(&self, source: &str, chars: usize) -> usize {
        let index = self.runs.partition_point(|run| run.chars <= chars);
        let Some(run) = index.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return self.runs.first().map_or(0, |run| run.source.start);
        };
        let part = source.get(run.source.clone()).unwrap_or("");
        let skip = chars - run.chars;
        if !run.exact {
            return if skip == 0 { run.source.start } else { run.source.end };
        }
        run.source.start + part.char_indices().nth(skip).map_or(part.len(), |(at, _)| at)
    }

    /// Returns the character ranges, up to `total`, that come from a range of `source`.
    fn chars(&self, source: &str, range: &Range<usize>, total: usize) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            let end = self.runs.get(index + 1).map_or(total, |next| next.chars);
            let (from, to) = (range.start.max(run.source.start), range.end.min(run.source.end));
            let chars = if run.source.is_empty() {
                // A marker for something that has no text in the source.
                if range.contains(&run.source.start) { run.chars..end } else { continue }
            } else if from >= to {
                continue;
            } else if run.exact {
                let count = |range: Range<usize>| source.get(range).map_or(0, |part| part.chars().count());
                let start = run.chars + count(run.source.start..from);
                start.min(end)..(start + count(from..to)).min(end)
            } else {
                run.chars..end
            };
            match found.last_mut() {
                Some(last) if last.end == chars.start => last.end = chars.end,
                _ => found.push(chars),
            }
        }
        found
    }
}

/// Returns the rectangles of a range of characters in laid-out text, line by line.
pub fn text_rects(galley: &Galley, chars: Range<usize>) -> Vec<Rect> {
    let mut first = 0;
    let mut rects = Vec::new();
    for row in &galley.rows {
        let count = row.char_count_excluding_newline().0;
        let (from, to) = (chars.start.max(first), chars.end.min(first + count));
        if let Some(turned) = bidi_text::turned_rects(row, from.max(first) - first..to.max(first) - first) {
            rects.extend(turned);
        } else if from < to {
            let line = row.rect();
            let x = |place: usize| row.pos.x + row.x_offset(CharIndex(place - first));
            rects.push(Rect::from_min_max(pos2(x(from), line.top()), pos2(x(to), line.bottom())));
        }
        first += row.char_count_including_newline().0;
    }
    rects
}

/// Something to paint or click, at an offset from the row's top left corner.
pub enum RowPart {
    /// Laid-out text.
    Text {
        /// Offset of its top left corner.
        at: Vec2,
        /// The text, with its fonts and colors.
        galley: Arc<Galley>,
        /// Maps its characters to the source.
        map: SourceMap,
        /// Its links: character range of the laid-out text, and target.
        links: Vec<(Range<usize>, String)>,
    },
    /// A filled rectangle.
    Fill {
        /// Area of the rectangle.
        rect: Rect,
        /// Fill color.
        colour: Color32,
        /// Corner radius.
        corner: CornerRadius,
    },
    /// A checkbox; `mark` is the byte between its brackets, or the word for yes or no.
    Task {
        /// Area of the checkbox.
        rect: Rect,
        /// Byte range of the source that a click replaces.
        mark: Range<usize>,
        /// Whether it is checked.
        done: bool,
        /// The character between its brackets, if it is neither blank nor `x`.
        state: Option<char>,
        /// Whether it is read-only, because it belongs to an embedded note.
        fixed: bool,
        /// Its accessible name.
        label: String,
    },
    /// An area in which a click makes an edit.
    Edit {
        /// Clickable area.
        rect: Rect,
        /// Byte range of the source that is replaced.
        range: Range<usize>,
        /// Replacement text.
        insert: String,
        /// New caret position, in bytes after the start of `insert`; `None` leaves the caret where it is.
        caret: Option<usize>,
        /// Its accessible name.
        label: String,
    },
    /// A click area that folds a callout; nothing is painted for it.
    Fold {
        /// Clickable area.
        rect: Rect,
        /// Key under which the callout's fold state is kept.
        callout: u64,
        /// Whether the callout is unfolded.
        open: bool,
        /// Its accessible name.
        label: String,
    },
    /// A picture.
    Picture {
        /// Area of the picture, scaled to fit.
        rect: Rect,
        /// The picture's pixels.
        texture: TextureHandle,
    },
    /// A formula, in a rectangle that includes the padding of its drawing.
    Formula {
        /// Area of the formula, with padding.
        rect: Rect,
        /// The typeset formula.
        formula: Arc<SetFormula>,
        /// Color of its strokes.
        ink: Color32,
    },
    /// A tooltip without a visible mark.
    Remark {
        /// Area in which the pointer shows the tooltip.
        rect: Rect,
        /// Text of the tooltip.
        text: String,
    },
}

impl RowPart {
    /// Returns the part moved by an offset.
    pub(crate) fn translated(mut self, by: Vec2) -> RowPart {
        match &mut self {
            RowPart::Text { at, .. } => *at += by,
            RowPart::Fill { rect, .. }
            | RowPart::Task { rect, .. }
            | RowPart::Edit { rect, .. }
            | RowPart::Fold { rect, .. }
            | RowPart::Picture { rect, .. }
            | RowPart::Formula { rect, .. }
            | RowPart::Remark { rect, .. } => *rect = rect.translate(by),
        }
        self
    }
}

/// A laid-out row.
#[derive(Default)]
pub struct RowLayout {
    /// Height, in points.
    pub height: f32,
    /// Parts to paint, in z-order from bottom to top.
    pub parts: Vec<RowPart>,
    /// Whether the row is drawn without a box, as for code shown as a diagram.
    pub bare: bool,
    /// Text without markup, for screen readers.
    pub text: String,
}

/// Paints a background behind text. The current search match also has an outline, because not everyone can tell the two
/// backgrounds apart.
pub fn paint_ground(painter: &egui::Painter, rect: Rect, ground: Color32, colours: &ThemeColors) {
    painter.rect_filled(rect, CornerRadius::ZERO, ground);
    if ground == colours.mark_strong {
        let line = Stroke::new(1.0, colours.accent);
        painter.rect_stroke(rect, CornerRadius::ZERO, line, egui::StrokeKind::Outside);
    }
}

impl RowLayout {
    /// Paints the row, with background colors for ranges of its source.
    pub fn paint(
        &self,
        painter: &egui::Painter,
        origin: Pos2,
        colours: &ThemeColors,
        source: &str,
        grounds: &[(Range<usize>, Color32)],
    ) {
        for part in &self.parts {
            if let RowPart::Fill { rect, colour, corner } = part {
                painter.rect_filled(rect.translate(origin.to_vec2()), *corner, *colour);
            }
        }
        for part in &self.parts {
            let RowPart::Text { at, galley, map, .. } = part else { continue };
            let total = if grounds.is_empty() { 0 } else { galley.text().chars().count() };
            for (range, colour) in grounds {
                let whole = map.runs.is_empty() && range.start == 0 && range.end >= source.len();
                let chars = if whole { std::iter::once(0..total).collect() } else { map.chars(source, range, total) };
                for rect in chars.into_iter().flat_map(|chars| text_rects(galley, chars)) {
                    paint_ground(painter, rect.translate(origin.to_vec2() + *at), *colour, colours);
                }
            }
        }
        for part in &self.parts {
            match part {
                RowPart::Text { at, galley, .. } => painter.galley(origin + *at, galley.clone(), colours.ink),
                RowPart::Fill { .. } => {}
                RowPart::Task { rect, done, state, .. } => {
                    paint_task(painter, rect.translate(origin.to_vec2()), *done, *state, colours);
                }
                RowPart::Fold { .. } | RowPart::Edit { .. } | RowPart::Remark { .. } => {}
                RowPart::Formula { rect, formula, ink } => {
                    assets::paint_formula(painter, rect.translate(origin.to_vec2()), formula, *ink);
                }
                RowPart::Picture { rect, texture } => {
                    let whole = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
                    let image = egui::epaint::RectShape::filled(
                        rect.translate(origin.to_vec2()),
                        CornerRadius::same(6),
                        Color32::WHITE,
                    );
                    painter.add(image.with_texture(texture.id(), whole));
                }
            }
        }
    }

    /// Paints the links for which `leads_nowhere` returns true in a dimmed color, over a dashed line. `is_plain` says
    /// that nothing is selected or found in the row, so the background of a link is known.
    pub fn paint_unresolved_links(
        &self,
        painter: &egui::Painter,
        origin: Pos2,
        colours: &ThemeColors,
        is_plain: bool,
        mut leads_nowhere: impl FnMut(&str) -> bool,
    ) {
        for part in &self.parts {
            let RowPart::Text { at, galley, links, .. } = part else { continue };
            for (chars, _) in links.iter().filter(|(_, link)| leads_nowhere(link)) {
                for rect in text_rects(galley, chars.clone()) {
                    let ground = self.fill_behind(rect.translate(*at).center()).unwrap_or(colours.paper);
                    let rect = rect.translate(origin.to_vec2() + *at);
                    if is_plain {
                        // Text already painted in the link color would show through at the edges of letters.
                        painter.rect_filled(rect, CornerRadius::ZERO, ground);
                    }
                    let inside = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
                    inside.galley_with_override_text_color(origin + *at, galley.clone(), colours.muted);
                    let y = (rect.center().y + rect.height() * UNRESOLVED_LINE_DROP).min(rect.bottom() - 1.0);
                    let line = [pos2(rect.left(), y), pos2(rect.right(), y)];
                    painter.extend(egui::Shape::dashed_line(&line, Stroke::new(1.0, colours.muted), 3.0, 3.0));
                }
            }
        }
    }

    /// Returns the background color behind text at a point of the row, if it isn't the page's.
    fn fill_behind(&self, point: Pos2) -> Option<Color32> {
        self.parts.iter().rev().find_map(|part| match part {
            RowPart::Fill { rect, colour, .. } if rect.contains(point) && colour.is_opaque() => Some(*colour),
            _ => None,
        })
    }

    /// Returns the caret's rectangle at a byte of `source`.
    pub fn caret_rect(&self, source: &str, byte: usize) -> Option<Rect> {
        let mut last = None;
        for part in &self.parts {
            let RowPart::Text { at, galley, map, .. } = part else { continue };
            for run in map.runs.iter().filter(|run| run.source.start <= byte) {
                let inside = run.source.start..byte.min(run.source.end);
                let chars = if run.exact { source.get(inside).map_or(0, |part| part.chars().count()) } else { 0 };
                let cursor = egui::text::CCursor::new(run.chars + chars);
                last = Some(bidi_text::caret_place(galley, cursor).translate(*at));
            }
        }
        last
    }

    /// Returns a zero-width rectangle at the end of the row's last line of text.
    pub fn end_rect(&self) -> Option<Rect> {
        let last = self.parts.iter().rev().find_map(|part| match part {
            RowPart::Text { at, galley, .. } => Some(galley.rows.last()?.rect().translate(*at)),
            RowPart::Fill { .. }
            | RowPart::Task { .. }
            | RowPart::Fold { .. }
            | RowPart::Edit { .. }
            | RowPart::Picture { .. }
            | RowPart::Formula { .. }
            | RowPart::Remark { .. } => None,
        })?;
        Some(last.with_min_x(last.right()))
    }

    /// Returns the byte of `source` nearest to a point, and the link at that point.
    pub fn byte_at_point(&self, source: &str, point: Vec2) -> (usize, Option<&str>) {
        let mut best: Option<(f32, usize, Option<&str>)> = None;
        for part in &self.parts {
            let RowPart::Text { at, galley, map, links } = part else { continue };
            if map.runs.is_empty() {
                continue;
            }
            let rect = Rect::from_min_size(at.to_pos2(), galley.size());
            let distance = rect.distance_sq_to_pos(point.to_pos2());
            if best.as_ref().is_some_and(|(least, ..)| *least <= distance) {
                continue;
            }
            let chars = bidi_text::caret_at_point(galley, point - *at).index.0;
            let link = links.iter().find(|(range, _)| distance == 0.0 && range.contains(&chars));
            best = Some((distance, map.source(source, chars), link.map(|(_, target)| target.as_str())));
        }
        best.map_or((0, None), |(_, source, link)| (source, link))
    }
}

fn paint_task(painter: &egui::Painter, rect: Rect, done: bool, state: Option<char>, colours: &ThemeColors) {
    let square = Rect::from_center_size(rect.center(), Vec2::splat(16.0));
    if done {
        painter.rect_filled(square, CornerRadius::same(4), colours.accent);
        let [a, b, c] = [vec2(4.0, 8.5), vec2(7.0, 11.5), vec2(12.0, 5.0)].map(|at| square.min + at);
        painter.line(vec![a, b, c], Stroke::new(2.0, colours.paper));
    } else {
        painter.rect(
            square,
            CornerRadius::same(4),
            colours.paper,
            Stroke::new(1.5, colours.muted),
            egui::StrokeKind::Inside,
        );
        match state {
            // A half-done task.
            Some('/') => _ = painter.rect_filled(square.shrink(4.0).with_max_x(square.center().x), 1, colours.accent),
            Some('-') => {
                let bar = Rect::from_center_size(square.center(), vec2(8.0, 2.0));
                painter.rect_filled(bar, 1, colours.muted);
            }
            Some(state) => {
                let font = theme::inter_font(theme::InterCut::SemiBold, 11.0);
                painter.text(square.center(), Align2::CENTER_CENTER, state, font, colours.accent);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_bytes() {
        let source = "a **bé** c";
        let runs = vec![
            SourceRun { chars: 0, source: 0..2, exact: true },
            SourceRun { chars: 2, source: 4..7, exact: true },
            SourceRun { chars: 4, source: 9..11, exact: true },
        ];
        let map = SourceMap { runs };
        assert_eq!(map.chars(source, &(0..11), 6).first(), Some(&(0..6)));
        assert_eq!(map.chars(source, &(5..10), 6).first(), Some(&(3..5)));
        assert!(map.chars(source, &(2..4), 6).is_empty(), "marks that are not shown");
        assert_eq!((map.source(source, 3), map.source(source, 5)), (5, 10));
    }
}
