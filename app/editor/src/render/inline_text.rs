//! Inline text during rendering: its characters, formats, backgrounds and insets.

use super::super::row_layout::{RowPart, SourceMap, SourceRun, text_rects};
use super::task_fields::{self, TaskField};
use super::{OpenQuote, RowRenderer};
use eframe::egui;
use egui::text::LayoutJob;
pub(super) use egui::{Align, Color32, CornerRadius, Galley, Rect, Stroke, Vec2, pos2, vec2};
use std::ops::Range;
use std::sync::Arc;
use typeset::formula::SetFormula;
use ui::icons;
use ui::theme::{self, InterCut};
use ui::widgets::format;

/// Distance by which the background of inline code extends beyond its characters, in points.
const INLINE_CODE_OUTSET: f32 = 3.0;

/// A run of inline text that is being built.
#[derive(Default)]
pub(crate) struct InlineText {
    pub(crate) job: LayoutJob,
    pub(crate) map: SourceMap,
    pub(crate) links: Vec<(Range<usize>, String)>,
    /// Character ranges with a background color: code, tags, highlights.
    pub(super) lit: Vec<(Range<usize>, Color32)>,
    /// Content drawn in place of characters, in order.
    pub(super) insets: Vec<InlineInset>,
    /// Horizontal offset of its start, in points.
    pub(super) shift: f32,
    pub(super) chars: usize,
    /// Whether the last text was code or a key, whose background extends beyond its characters.
    behind_code: bool,
}

/// Content drawn in place of characters, or a tooltip for them.
pub(super) struct InlineInset {
    pub(super) chars: Range<usize>,
    pub(super) what: InsetContent,
}

pub(super) enum InsetContent {
    /// A formula with font size `em`; `base` is the distance of the baseline below the middle of the line.
    Formula { formula: Arc<SetFormula>, em: f32, base: f32, ink: Color32, words: String },
    /// A tooltip for the characters.
    Remark(String),
    /// An icon in place of this emoji, which screen readers still read.
    Mark(&'static str),
}

impl InlineText {
    pub(crate) fn is_numeric(&self) -> bool {
        let text = self.job.text.trim();
        !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "+-−.,:%\u{2009}\u{a0} ".contains(c))
    }

    /// Returns the text for screen readers, with formulas in words.
    pub(crate) fn words(&self) -> String {
        let mut insets = self.insets.iter().filter_map(|inset| match &inset.what {
            InsetContent::Formula { words, .. } => Some((&inset.chars, words.as_str())),
            InsetContent::Mark(emoji) => Some((&inset.chars, *emoji)),
            InsetContent::Remark(_) => None,
        });
        let mut next = insets.next();
        let mut out = String::with_capacity(self.job.text.len());
        for (at, letter) in self.job.text.chars().enumerate() {
            match next {
                Some((chars, words)) if chars.start == at => out.push_str(words),
                Some((chars, _)) if chars.contains(&at) => {}
                _ => out.push(letter),
            }
            if next.is_some_and(|(chars, _)| at + 1 >= chars.end) {
                next = insets.next();
            }
        }
        out
    }

    /// Returns the backgrounds and insets of the text, laid out at a position.
    pub(crate) fn grounds(&self, galley: &Galley, at: Vec2) -> Vec<RowPart> {
        let mut parts = Vec::new();
        for InlineInset { chars, what } in &self.insets {
            for rect in text_rects(galley, chars.clone()).into_iter().map(|rect| rect.translate(at)) {
                parts.push(match what {
                    InsetContent::Mark(_) => continue,
                    InsetContent::Remark(text) => RowPart::Remark { rect, text: text.clone() },
                    InsetContent::Formula { formula, em, base, ink, .. } => {
                        let line = rect.center().y + base;
                        let high = formula.height + formula.depth;
                        let left_top = pos2(rect.left(), line - formula.height * em);
                        let size = vec2(formula.width, high) * *em;
                        let rect =
                            Rect::from_min_size(left_top, size).expand(typeset::formula::FORMULA_PADDING_EM * em);
                        RowPart::Formula { rect, formula: formula.clone(), ink: *ink }
                    }
                });
            }
        }
        let mut first = 0;
        for row in galley.rows.iter().filter(|_| !self.lit.is_empty()) {
            for (chars, colour) in &self.lit {
                let glyphs = row.glyphs.iter().enumerate().filter(|(index, _)| chars.contains(&(first + index)));
                let reach = glyphs.map(|(_, glyph)| (glyph.pos.x, glyph.max_x())).map(|(a, b)| (a.min(b), a.max(b)));
                let Some((from, to)) = reach.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { continue };
                let line = row.rect().translate(at);
                let half = (line.height() / 2.0 - 2.0).min(10.0);
                let rect = Rect::from_x_y_ranges(
                    at.x + row.pos.x + from - 3.0..=at.x + row.pos.x + to + 3.0,
                    line.center().y - half..=line.center().y + half,
                );
                parts.push(RowPart::Fill { rect, colour: *colour, corner: CornerRadius::same(4) });
            }
            first += row.char_count_including_newline().0;
        }
        parts
    }
}

impl RowRenderer<'_> {
    /// Adds an image icon, which marks the name after it as that of a picture.
    pub(super) fn icon(&mut self, at: usize) {
        let colours = self.pen.colours;
        let at = self.source.source(at);
        let kind = self.kind();
        let inline = self.inline.get_or_insert_default();
        inline.map.runs.push(SourceRun { chars: inline.chars, source: at..at, exact: false });
        let size = (kind.font.size + 2.0).min(20.0);
        inline.job.append(icons::IMAGE, 0.0, format(theme::icon_font(size), kind.line, colours.muted));
        inline.job.append(" ", 0.0, format(kind.font, kind.line, colours.muted));
        inline.chars += 2;
    }

    /// Returns the text color at the current position.
    pub(super) fn colour(&self) -> Color32 {
        let colours = self.pen.colours;
        match (&self.look.link, self.heading, self.quotes.last()) {
            (Some(_), _, _) => colours.accent,
            (None, Some(4..), _) => colours.muted,
            (None, _, Some(OpenQuote { callout: None, .. })) => colours.muted,
            (None, _, Some(OpenQuote { callout: Some((colour, _)), .. })) if self.title.is_some() => *colour,
            (None, _, _) => colours.ink,
        }
    }

    /// Adds text; the fields of a task become chips.
    pub(super) fn push(&mut self, text: &str, range: Range<usize>, code: bool) {
        if !code
            && self.is_task
            && self.table.is_none()
            && self.look.link.is_none()
            && let Some(field) = task_fields::first_field(text)
            && let Some(offset) = self.source.text.get(range.clone()).and_then(|part| part.find(text))
        {
            let from = range.start + offset;
            if field.start > 0 {
                self.push_text(&text[..field.start], from..from + field.start, false);
            }
            self.push_field(text, from, &field);
            if field.end < text.len() {
                self.push(&text[field.end..], from + field.end..from + text.len(), false);
            }
            return;
        }
        self.push_text(text, range, code);
    }

    /// Adds a field of a task as a chip: an icon in place of its emoji, and the value. `from`: where `text` begins.
    fn push_field(&mut self, text: &str, from: usize, field: &TaskField) {
        let kind = self.kind();
        let colours = self.pen.colours;
        let [start, mark_end, end] =
            [field.start, field.mark_end, field.end].map(|offset| self.source.source(from + offset));
        let is_struck = self.look.strike > 0;
        let value = &text[field.mark_end..field.end];
        let inline = self.inline.get_or_insert_default();
        let first = inline.chars;
        inline.map.runs.push(SourceRun { chars: first, source: start..mark_end, exact: false });
        inline.insets.push(InlineInset { chars: first..first + 1, what: InsetContent::Mark(field.mark) });
        inline.job.append(field.icon, 0.0, format(theme::icon_font(kind.font.size), kind.line, colours.muted));
        inline.map.runs.push(SourceRun { chars: first + 1, source: mark_end..end, exact: true });
        let mut style = format(theme::inter_font(InterCut::Regular, kind.font.size * 0.9), kind.line, colours.muted);
        if is_struck {
            style.strikethrough = Stroke::new(1.0, colours.muted);
        }
        inline.job.append(value, 0.0, style);
        inline.chars += 1 + value.chars().count();
        inline.lit.push((first..inline.chars, colours.sunken));
        inline.behind_code = false;
    }

    fn push_text(&mut self, text: &str, range: Range<usize>, code: bool) {
        let kind = self.kind();
        let colours = self.pen.colours;
        let source = &self.source.text;
        let (from, exact) = match source.get(range.clone()).and_then(|part| part.find(text)) {
            Some(offset) if !text.is_empty() => (range.start + offset, true),
            _ => (range.start, false),
        };
        let span = if exact {
            self.source.source(from)..self.source.source(from + text.len())
        } else {
            self.source.source(range.start)..self.source.source(range.end)
        };
        let head = self.table.as_ref().is_some_and(|table| table.rows.len() == 1);
        let base_bold = self.heading.is_some() || head || self.title.is_some();
        let cut = match (self.look.strong > 0, self.look.emphasis > 0) {
            (true, true) => InterCut::BoldItalic,
            (true, false) => InterCut::Bold,
            (false, true) if base_bold => InterCut::BoldItalic,
            (false, true) => InterCut::Italic,
            (false, false) if base_bold => InterCut::SemiBold,
            (false, false) => InterCut::Regular,
        };
        let colour = self.colour();
        let size = if self.table.is_some() { 14.0 } else { kind.font.size };
        let line = if self.table.is_some() { 20.0 } else { kind.line };
        let mut style = if code {
            let mut style = format(theme::code().font, line, colour);
            style.font_id.size = size * 0.9;
            style
        } else {
            format(theme::inter_font(cut, size), line, colour)
        };
        if self.look.key > 0 {
            style = format(theme::code().font, line, colour);
            style.font_id.size = size * 0.85;
        }
        if self.look.small > 0 {
            style.font_id.size *= 0.85;
        }
        if self.look.raised > 0 || self.look.lowered > 0 {
            let at = if self.look.raised > 0 { Align::TOP } else { Align::BOTTOM };
            (style.font_id.size, style.line_height, style.valign) = (size * 0.7, Some(line * 0.7), at);
        }
        if self.look.underline > 0 {
            style.underline = Stroke::new(1.0, colour);
        }
        if self.look.strike > 0 {
            style.strikethrough = Stroke::new(1.0, colours.muted);
            style.color = colours.muted;
        }
        let inline = self.inline.get_or_insert_default();
        let count = text.chars().count();
        if let Some(link) = &self.look.link {
            inline.links.push((inline.chars..inline.chars + count, link.clone()));
        }
        if code {
            inline.lit.push((inline.chars..inline.chars + count, colours.sunken));
        }
        if self.look.key > 0 && !code {
            inline.lit.push((inline.chars..inline.chars + count, colours.pressed_color()));
        }
        if self.look.highlight {
            match inline.lit.last_mut() {
                Some((last, colour)) if last.end == inline.chars && *colour == colours.lit => last.end += count,
                _ => inline.lit.push((inline.chars..inline.chars + count, colours.lit)),
            }
        }
        inline.map.runs.push(SourceRun { chars: inline.chars, source: span, exact });
        // The background of code and keys extends beyond its characters, so a gap of that width is added around it.
        let is_boxed = code || self.look.key > 0;
        let was_boxed = std::mem::replace(&mut inline.behind_code, is_boxed);
        let lead = if was_boxed != is_boxed { INLINE_CODE_OUTSET } else { 0.0 };
        inline.job.append(text, if inline.chars > 0 { lead } else { 0.0 }, style);
        inline.chars += count;
    }

    /// Adds a footnote reference: small and raised.
    pub(super) fn reference(&mut self, name: &str, range: &Range<usize>) {
        let kind = self.kind();
        let source = self.source.source(range.start)..self.source.source(range.end);
        let inline = self.inline.get_or_insert_default();
        inline.map.runs.push(SourceRun { chars: inline.chars, source, exact: false });
        let font = theme::inter_font(InterCut::SemiBold, kind.font.size * 0.7);
        let mut style = format(font, kind.line * 0.7, self.pen.colours.accent);
        style.valign = Align::TOP;
        inline.job.append(name, 1.0, style);
        inline.chars += name.chars().count();
    }
}
