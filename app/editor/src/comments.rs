//! Comments that span rows: `%%` in one row and `%%` in a later one. The text between them is folded, and shown as
//! dimmed source while the caret is in it. Comments inside one row are handled by that row.

use super::display_map::{DisplayMap, RowIndex};
use super::long_rows;
use super::note_editor::{EditContext, Editor};
use super::row_splitter::{CommentSpan, PrecedingContext, RowKind};
use engine::Note;
use pulldown_cmark::Options;
use std::ops::Range;
use store::Block;
use text::markdown::dialect;

/// Returns the offsets of `%%` in a block, in order; those in code and formulas are skipped.
pub(crate) fn comment_marks(text: &str, before: &PrecedingContext) -> Vec<usize> {
    if !text.contains("%%") {
        return Vec::new();
    }
    let from = match before {
        PrecedingContext::Code(open) => long_rows::continued_code_parts(text, open, false).2,
        PrecedingContext::Start | PrecedingContext::Line | PrecedingContext::LineEnd | PrecedingContext::Gap => 0,
    };
    let properties = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let options = if *before == PrecedingContext::Start {
        dialect::dialect_options()
    } else {
        dialect::dialect_options() - properties
    };
    dialect::comment_marks(&text[from..], options).into_iter().map(|at| at + from).collect()
}

impl DisplayMap {
    /// Finds all comments that span rows.
    pub(crate) fn find_comments(&mut self, note: &Note, texts: &[&Block]) {
        let marks: Vec<usize> = (0..self.len())
            .flat_map(|block| self.block_rows(block).marks.iter().map(move |mark| (block, *mark)))
            .map(|(block, mark)| self.start(block) + mark)
            .collect();
        let pairs: Vec<Range<usize>> = marks.chunks_exact(2).map(|pair| pair[0]..pair[1] + 2).collect();
        let spans = |range: &Range<usize>, sheet: &mut DisplayMap| {
            sheet.find_row(range.start, note, texts) != sheet.find_row(range.end - 1, note, texts)
        };
        self.comments = pairs.iter().filter(|range| spans(range, self)).cloned().collect();
        self.pairs = pairs;
    }

    /// Returns the start of the multi-row comment that contains a byte; its ends are included.
    fn comment_at(&self, at: usize) -> Option<usize> {
        let place = self.comments.partition_point(|range| range.end < at);
        self.comments.get(place).filter(|range| range.start <= at).map(|range| range.start)
    }

    /// Folds all comments except open ones, and marks their rows accordingly.
    pub(crate) fn fold_comments(&mut self, note: &Note, texts: &[&Block]) {
        let mut rows: Vec<(RowIndex, CommentSpan)> = Vec::new();
        let mut hidden: Vec<RowIndex> = Vec::new();
        for range in self.comments.clone() {
            let (Some(first), Some(last)) =
                (self.find_row(range.start, note, texts), self.find_row(range.end - 1, note, texts))
            else {
                continue;
            };
            let open = self.open.contains(&range.start);
            let mut next = Some(first);
            while let Some(spot) = next.filter(|spot| *spot <= last) {
                next = self.row_after(spot, note, texts);
                let start = self.start(spot.block);
                self.rows(spot.block, note, texts);
                let Some(row) = self.row(spot) else { continue };
                let content = start + row.content.start..start + row.content.end;
                let text = texts.get(spot.block).map_or("", |block| block.text.as_str());
                let behind = range.end.min(content.end) - start;
                let ends = text.get(behind..row.content.end).is_some_and(|rest| rest.trim().is_empty());
                // A cell can be run, so it is never hidden.
                if row.kind == RowKind::Cell {
                    continue;
                }
                if open {
                    rows.push((spot, CommentSpan::Open));
                } else if spot != first && ends {
                    hidden.push(spot);
                } else if rows.last().is_none_or(|(known, _)| *known != spot) {
                    let from = self.pairs.partition_point(|range| range.end <= content.start);
                    let own = self.pairs[from..].iter().take_while(|range| range.start < content.end);
                    let inside = |range: &Range<usize>| {
                        let (from, mut to) = (range.start.max(content.start), range.end.min(content.end));
                        // Text after the comment starts the row, so the spaces between them are hidden too.
                        if from == content.start {
                            let rest = text.get(to - start..row.content.end).unwrap_or("");
                            to += rest.len() - rest.trim_start_matches(' ').len();
                        }
                        from - content.start..to - content.start
                    };
                    rows.push((spot, CommentSpan::Hidden(own.map(inside).collect())));
                }
            }
        }
        self.comment_rows(rows);
        hidden.into_iter().for_each(|spot| self.hide_row(spot));
    }
}

impl EditContext<'_> {
    /// Opens comments that contain a caret or a jump target, and folds the others.
    pub fn open_comments(&mut self, editor: &Editor, jumped: Option<usize>) {
        if self.sheet.comments.is_empty() {
            return;
        }
        let at = |at: usize, sheet: &DisplayMap| sheet.comment_at(at);
        let mut open: Vec<usize> = editor.carets().filter_map(|caret| at(caret.at, self.sheet)).collect();
        match jumped.and_then(|jumped| at(jumped, self.sheet)) {
            Some(comment) => self.sheet.gone_to = Some(comment),
            None if !open.is_empty() => self.sheet.gone_to = None,
            None => {}
        }
        open.extend(self.sheet.gone_to);
        if open != self.sheet.open {
            self.sheet.open = open;
            self.sheet.update_folds(self.note, self.texts);
        }
    }

    /// Opens the folded comment that contains a row. Returns whether there was one.
    pub(crate) fn unfold_comment(&mut self, spot: RowIndex) -> bool {
        let at = self.sheet.start(spot.block) + self.rows(spot.block).get(spot.row).map_or(0, |row| row.content.start);
        let Some(comment) = self.sheet.comment_at(at).filter(|comment| !self.sheet.open.contains(comment)) else {
            return false;
        };
        self.sheet.gone_to = Some(comment);
        self.sheet.open.push(comment);
        self.sheet.update_folds(self.note, self.texts);
        true
    }
}
