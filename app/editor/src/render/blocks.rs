//! Block elements inside a row: list items with their checkboxes, and code.

use super::super::row_layout::{RowPart, SourceMap, SourceRun};
use super::super::source_layout;
use super::{LIST_ITEM_INDENT, QUOTE_INDENT, RowRenderer};
use eframe::egui;
use egui::text::LayoutJob;
use egui::{Rect, pos2, vec2};
use std::ops::Range;
use ui::theme::{self, space};

impl RowRenderer<'_> {
    /// Starts an item: draws its bullet, or its number right-aligned before the text.
    pub(super) fn item(&mut self, range: &Range<usize>) {
        self.flush();
        self.space();
        let number = self.lists.last_mut().and_then(Option::as_mut).map(|next| {
            let number = *next;
            *next += 1;
            number
        });
        let own = std::mem::take(&mut self.own);
        let number = if own { self.number.map(u64::from) } else { number };
        let kind = theme::body();
        let (mark, kind) = match number {
            Some(number) => {
                let font = theme::tabular_font(kind.font.size);
                (format!("{number}."), theme::TypeStyle { font, ..kind })
            }
            None => (if self.lists.len() % 2 == 1 { "•" } else { "–" }.to_owned(), kind),
        };
        let galley = self.pen.text(&mark, &kind, self.pen.colours.muted, f32::INFINITY);
        let x = if number.is_some() {
            (self.x + LIST_ITEM_INDENT - space::S - galley.size().x).max(self.x - LIST_ITEM_INDENT)
        } else {
            self.x + 6.0
        };
        let at = self.source.source(range.start);
        let map = SourceMap { runs: vec![SourceRun { chars: 0, source: at..at, exact: false }] };
        self.mark = Some(self.parts.len());
        self.struck.push(false);
        self.is_task = false;
        self.parts.push(RowPart::Text { at: vec2(x, self.y), galley, map, links: Vec::new() });
        self.x += LIST_ITEM_INDENT;
        self.list_indent += LIST_ITEM_INDENT;
    }

    /// Returns by how much quotes that are read from right to left indent their text at the right.
    pub(super) fn quote_indent_at_right(&self) -> f32 {
        self.quotes.iter().filter(|quote| quote.has_bar_at_right()).map(|_| QUOTE_INDENT).sum()
    }

    /// Moves an item's marker to the right of its text, which is read from right to left. Returns how far the text
    /// moves to the left: by the indentation of lists and quotes, which is at the right, too.
    pub(super) fn mirror_list(&mut self, marker: Option<usize>) -> f32 {
        let quote_indent = self.quote_indent_at_right();
        let sum = self.x - self.list_indent + self.width - quote_indent;
        match marker.and_then(|index| self.parts.get_mut(index)) {
            Some(RowPart::Task { rect, .. }) => {
                *rect = Rect::from_x_y_ranges(sum - rect.right()..=sum - rect.left(), rect.y_range());
            }
            Some(RowPart::Text { at, galley, .. }) => {
                // A number's period is between the number and the text, so here it's to the left of the number.
                if let (Some(number), Some(section)) = (galley.text().strip_suffix('.'), galley.job.sections.first()) {
                    let job = LayoutJob::single_section(format!(".{number}"), section.format.clone());
                    *galley = self.pen.galley(job);
                }
                at.x = sum - at.x - galley.size().x;
            }
            _ => {}
        }
        self.list_indent + quote_indent
    }

    pub(super) fn task(&mut self, done: bool, state: Option<char>, range: &Range<usize>) {
        let rect = Rect::from_min_size(pos2(self.x - LIST_ITEM_INDENT - 2.0, self.y), vec2(LIST_ITEM_INDENT, 24.0));
        let mark = self.source.source(range.start + 1);
        let mark = mark..mark + 1;
        let part = RowPart::Task { rect, mark, done, state, fixed: false, label: String::new() };
        if state == Some('-') {
            match self.struck.last_mut() {
                Some(struck) => *struck = true,
                None => self.struck.push(true),
            }
            self.strike_item(true);
        }
        let index = self.mark.take().filter(|index| *index < self.parts.len()).unwrap_or(self.parts.len());
        match self.parts.get_mut(index) {
            Some(dot) => *dot = part,
            None => self.parts.push(part),
        }
        self.unnamed = Some(index);
        self.is_task = true;
    }

    /// Begins or ends strikethrough for the open item if its task is canceled.
    pub(super) fn strike_item(&mut self, begins: bool) {
        if self.struck.last() == Some(&true) {
            self.look.strike = if begins { self.look.strike + 1 } else { self.look.strike.saturating_sub(1) };
        }
    }

    pub(super) fn code_block(&mut self) {
        let Some((code, language, range)) = self.code.take() else { return };
        if language == "mermaid" && self.diagram(&code, &range) {
            return;
        }
        self.space();
        let width = (self.width - self.x).max(48.0);
        let line = theme::code().line;
        let mut job = source_layout::code_job(code.trim_end_matches('\n'), &language, false, self.pen);
        job.wrap.max_width = width - 2.0 * space::M;
        let galley = self.pen.galley(job);
        let height = galley.size().y.max(line) + 2.0 * space::S;
        let rect = Rect::from_min_size(pos2(self.x, self.y), vec2(width, height));
        self.parts.push(RowPart::Fill { rect, colour: self.pen.colours.sunken, corner: theme::CONTROL_CORNER });
        let at = vec2(self.x + space::M, self.y + space::S);
        self.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
        self.text.push_str(&code);
        self.y += height;
        self.gap = space::S;
        let place = if self.is_embedded() { "in its own note" } else { "outside of lists and quotes" };
        let says = match language.to_lowercase().as_str() {
            "base" => format!("A collection is drawn {place}."),
            "query" => format!("A search is drawn {place}."),
            other => match source_layout::foreign_query_hint(other) {
                Some(hint) => hint.to_owned(),
                None => return,
            },
        };
        let galley = self.pen.text(&says, &theme::caption(), self.pen.colours.muted, width);
        let at = vec2(self.x, self.y + space::XS);
        self.y += galley.size().y + space::XS;
        self.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
        self.text.push_str(&says);
    }
}
