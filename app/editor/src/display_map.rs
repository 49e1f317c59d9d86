//! Maps the open note to rows with heights, and finds rows by byte offset or by height. Blocks are split into rows only
//! when needed; an unchanged block keeps its rows and their heights.

use super::comments;
use super::row_splitter::{self, CommentSpan, MarkdownRow, PrecedingContext, RowKind};
use engine::Note;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use store::{Block, BlockId, DocId};
use ui::theme::{self, space};
use unicode_width::UnicodeWidthChar;

/// Position of a row in the note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowIndex {
    /// Index of the block in the note, from 0.
    pub block: usize,
    /// Index of the row in its block, from 0.
    pub row: usize,
}

/// Rows and height of a block.
#[derive(Debug)]
pub struct BlockRows {
    /// The block's id.
    pub id: BlockId,
    revision: u64,
    before: PrecedingContext,
    last: bool,
    cell: bool,
    bytes: usize,
    words: usize,
    /// The rows, once computed; `heads` says whether one of them is a heading.
    rows: Option<Vec<MarkdownRow>>,
    /// Byte offsets of `%%` in the block.
    pub(crate) marks: Vec<usize>,
    heads: bool,
    height: f32,
}

/// The rows of the open note.
#[derive(Debug, Default)]
pub struct DisplayMap {
    note: Option<DocId>,
    revision: u64,
    pieces: Vec<BlockRows>,
    /// First byte of each block, followed by the length of the note.
    starts: Vec<usize>,
    /// Top of each block, followed by the total height.
    tops: Vec<f32>,
    /// The first block from which `tops` must be recomputed.
    moved: usize,
    /// Layout generation; rows measured in an earlier one are measured again when they become visible.
    layout: u32,
    words: usize,
    cells: usize,
    /// Folded headings and details: their block, and their index among the headings and details of that block.
    pub folds: HashSet<(BlockId, usize)>,
    /// Whether any row is hidden by folding.
    hides: bool,
    /// Byte ranges of all comments and of those that span rows (`comments`); start offsets of the open ones, and of the
    /// last jump target (`gone_to`).
    pub(crate) pairs: Vec<Range<usize>>,
    pub(crate) comments: Vec<Range<usize>>,
    pub(crate) open: Vec<usize>,
    pub(crate) gone_to: Option<usize>,
    /// Whether rows have comment spans.
    pub(crate) commented: bool,
}

impl DisplayMap {
    /// Updates the map to the current note. Returns whether anything changed.
    pub fn sync(&mut self, note: &Note, texts: &[&Block]) -> bool {
        if self.note == Some(note.id) && self.revision == note.revision() && self.pieces.len() == texts.len() {
            return false;
        }
        let is_new = self.note != Some(note.id) || self.pieces.is_empty();
        if self.note != Some(note.id) {
            self.pieces.clear();
            self.folds.clear();
            (self.open, self.gone_to) = (Vec::new(), None);
            self.note = Some(note.id);
        }
        let (head, tail) = self.untouched(note, texts);
        self.revision = note.revision();
        let mut tail = tail;
        let mut before = match head.checked_sub(1) {
            Some(last) => self.pieces[last].before.after_text(&texts[last].text),
            None => PrecedingContext::Start,
        };
        let (from_end, to_end) = (self.pieces.len(), texts.len());
        let old: Vec<BlockRows> = self.pieces.splice(head..from_end - tail, std::iter::empty()).collect();
        let mut known: HashMap<BlockId, BlockRows> = old.into_iter().map(|piece| (piece.id, piece)).collect();
        let mut middle: Vec<BlockRows> = Vec::with_capacity(to_end - tail - head);
        let mut index = head;
        loop {
            if index >= to_end - tail {
                // A change in the text before these blocks may have changed what they are.
                if tail == 0 || self.pieces[head].before == before {
                    break;
                }
                let piece = self.pieces.remove(head);
                known.insert(piece.id, piece);
                tail -= 1;
            }
            let (text, last) = (texts[index], index + 1 == to_end);
            let after = before.after_text(&text.text);
            let this = std::mem::replace(&mut before, after);
            let same = |piece: &BlockRows| {
                piece.revision == note.block_revision(piece.id)
                    && piece.bytes == text.text.len()
                    && piece.before == this
                    && piece.last == last
            };
            middle.push(match known.remove(&text.id) {
                Some(piece) if same(&piece) => piece,
                old => BlockRows::new(note, text, this, last, old, self.layout),
            });
            index += 1;
        }
        self.pieces.splice(head..head, middle);
        self.starts.truncate(head);
        let mut at = match head.checked_sub(1) {
            Some(last) => self.starts[last] + self.pieces[last].bytes,
            None => 0,
        };
        for piece in &self.pieces[head..] {
            self.starts.push(at);
            at += piece.bytes;
        }
        self.starts.push(at);
        self.words = self.pieces.iter().map(|piece| piece.words).sum();
        self.cells = self.pieces.iter().filter(|piece| piece.cell).count();
        self.moved = self.moved.min(head);
        self.find_comments(note, texts);
        if is_new {
            self.fold_details(note, texts);
        }
        self.update_folds(note, texts);
        true
    }

    /// Returns how many blocks at the start and at the end are unaffected by the edits since the last sync.
    fn untouched(&self, note: &Note, texts: &[&Block]) -> (usize, usize) {
        let Some(shifts) = note.shifts_since(self.revision).filter(|_| self.revision != 0) else { return (0, 0) };
        let (mut front, mut back, mut length) = (usize::MAX, usize::MAX, note.length());
        for shift in shifts.collect::<Vec<_>>().into_iter().rev() {
            front = front.min(shift.at);
            back = back.min(length.saturating_sub(shift.at + shift.insert));
            length = (length + shift.delete).saturating_sub(shift.insert);
        }
        let same = |piece: &BlockRows, text: &Block| piece.id == text.id && piece.bytes == text.text.len();
        let most = self.pieces.len().min(texts.len());
        let (mut head, mut bytes) = (0, 0);
        while head < most && same(&self.pieces[head], texts[head]) {
            bytes += self.pieces[head].bytes;
            let last = head + 1 == texts.len();
            if bytes >= front || self.pieces[head].last != last {
                break;
            }
            head += 1;
        }
        let (mut tail, mut bytes) = (0, 0);
        while tail < most - head {
            let (piece, text) = (&self.pieces[self.pieces.len() - 1 - tail], texts[texts.len() - 1 - tail]);
            bytes += piece.bytes;
            if bytes >= back || !same(piece, text) {
                break;
            }
            tail += 1;
        }
        (head, tail)
    }

    /// Returns the ids of the blocks that are cells, in order.
    pub fn cell_ids(&self) -> impl Iterator<Item = BlockId> {
        self.pieces.iter().filter(|piece| piece.cell).map(|piece| piece.id)
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Returns the number of words in the note.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the number of blocks in the note.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns whether the note has no blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of the note's text in bytes.
    pub fn bytes(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Starts a new layout generation after a change of widths or fonts.
    pub fn relayout(&mut self) {
        self.layout = self.layout.wrapping_add(1);
    }

    /// Returns the rows and height of a block. Panics if the note has no such block.
    pub fn block_rows(&self, block: usize) -> &BlockRows {
        &self.pieces[block]
    }

    /// Returns the offset of a block's first byte in the note.
    pub fn start(&self, block: usize) -> usize {
        self.starts.get(block).copied().unwrap_or(0)
    }

    /// Returns the rows of a block, and computes them if needed.
    pub(crate) fn rows(&mut self, block: usize, note: &Note, texts: &[&Block]) -> &[MarkdownRow] {
        let piece = &mut self.pieces[block];
        if piece.rows.is_none() {
            let cell = note.cell_parts(piece.id).map(|cell| cell.code.clone());
            piece.take(row_splitter::rows(&texts[block].text, &piece.before, cell, piece.last));
            let height = piece.measure();
            if piece.height != height {
                piece.height = height;
                self.moved = self.moved.min(block);
            }
        }
        piece.rows.as_deref().unwrap_or(&[])
    }

    /// Returns whether a block has headings; `None` if its rows haven't been computed.
    pub fn has_headings(&self, block: usize) -> Option<bool> {
        self.pieces.get(block).and_then(|piece| piece.rows.is_some().then_some(piece.heads))
    }

    /// Returns a row that's already computed.
    pub fn row(&self, spot: RowIndex) -> Option<&MarkdownRow> {
        self.pieces.get(spot.block)?.rows.as_ref()?.get(spot.row)
    }

    /// Returns a row's height; `None` if it hasn't been measured in the current layout.
    pub fn measured_height(&self, spot: RowIndex) -> Option<f32> {
        self.row(spot).filter(|row| row.layout == self.layout).and_then(|row| row.height)
    }

    /// Stores a row's measured height; `stays` says whether it will be the same in the next frame.
    pub fn set_height(&mut self, spot: RowIndex, height: f32, stays: bool) {
        let layout = if stays { self.layout } else { self.layout.wrapping_sub(1) };
        let Some(piece) = self.pieces.get_mut(spot.block) else { return };
        let Some(row) = piece.rows.as_mut().and_then(|rows| rows.get_mut(spot.row)) else { return };
        row.layout = layout;
        if row.height != Some(height) {
            row.height = Some(height);
            piece.height = piece.measure();
            self.moved = self.moved.min(spot.block);
        }
    }

    /// Returns the row that contains a byte of the note.
    pub(crate) fn find_row(&mut self, at: usize, note: &Note, texts: &[&Block]) -> Option<RowIndex> {
        if self.pieces.is_empty() {
            return None;
        }
        let block = self.starts[..self.pieces.len()].partition_point(|start| *start <= at).saturating_sub(1);
        let local = at - self.starts[block];
        let row = self.rows(block, note, texts).partition_point(|row| row.range.start <= local).saturating_sub(1);
        Some(RowIndex { block, row })
    }

    /// Returns the start of the text after the front matter, or the note's end. `None` without front matter.
    pub fn start_of_text(&mut self, note: &Note, texts: &[&Block]) -> Option<usize> {
        let first = RowIndex::default();
        if self.pieces.is_empty() || self.rows(first.block, note, texts).first()?.kind != RowKind::Meta {
            return None;
        }
        let Some(spot) = self.row_after(first, note, texts) else { return Some(self.bytes()) };
        let start = self.rows(spot.block, note, texts).get(spot.row).map_or(0, |row| row.content.start);
        Some(self.start(spot.block) + start)
    }

    /// Returns the nearest row before this one that isn't hidden by folding.
    pub(crate) fn previous_row(&mut self, spot: RowIndex, note: &Note, texts: &[&Block]) -> Option<RowIndex> {
        let mut spot = self.row_before(spot, note, texts)?;
        while self.is_hidden(spot) {
            spot = self.row_before(spot, note, texts)?;
        }
        Some(spot)
    }

    /// Returns the nearest row after this one that isn't hidden by folding.
    pub(crate) fn following_row(&mut self, spot: RowIndex, note: &Note, texts: &[&Block]) -> Option<RowIndex> {
        let mut spot = self.row_after(spot, note, texts)?;
        while self.is_hidden(spot) {
            spot = self.row_after(spot, note, texts)?;
        }
        Some(spot)
    }

    /// Returns the row before this one, even if folding hides it; `None` for the first.
    pub fn row_before(&mut self, spot: RowIndex, note: &Note, texts: &[&Block]) -> Option<RowIndex> {
        if spot.row > 0 {
            return Some(RowIndex { row: spot.row - 1, ..spot });
        }
        let block = spot.block.checked_sub(1)?;
        let rows = self.rows(block, note, texts).len();
        Some(RowIndex { block, row: rows.saturating_sub(1) })
    }

    /// Returns the row after this one, even if folding hides it; `None` for the last.
    pub fn row_after(&mut self, spot: RowIndex, note: &Note, texts: &[&Block]) -> Option<RowIndex> {
        if spot.row + 1 < self.rows(spot.block, note, texts).len() {
            return Some(RowIndex { row: spot.row + 1, ..spot });
        }
        (spot.block + 1 < self.pieces.len()).then_some(RowIndex { block: spot.block + 1, row: 0 })
    }

    /// Returns the space above a row.
    pub fn space_above_row(&self, spot: RowIndex) -> f32 {
        if spot == RowIndex::default() {
            return 0.0;
        }
        let Some(rows) = self.pieces.get(spot.block).and_then(|piece| piece.rows.as_ref()) else { return 0.0 };
        leading_space(rows, spot.row, spot.block == 0)
    }

    /// Returns the top of a row, before the space above it.
    pub fn top(&mut self, spot: RowIndex) -> f32 {
        self.refresh();
        let top = self.tops.get(spot.block).copied().unwrap_or(0.0);
        let Some(rows) = self.pieces.get(spot.block).and_then(|piece| piece.rows.as_ref()) else { return top };
        top + (0..spot.row.min(rows.len()))
            .map(|row| leading_space(rows, row, spot.block == 0) + guess(&rows[row]))
            .sum::<f32>()
    }

    /// Returns the total height of all rows.
    pub fn height(&mut self) -> f32 {
        self.refresh();
        self.tops.last().copied().unwrap_or(0.0)
    }

    /// Returns the row at a height, and the distance from the row's top to it.
    pub fn at_height(&mut self, y: f32, note: &Note, texts: &[&Block]) -> Option<(RowIndex, f32)> {
        if self.pieces.is_empty() {
            return None;
        }
        self.refresh();
        let block = self.tops[..self.pieces.len()].partition_point(|top| *top <= y).saturating_sub(1);
        let mut left = y - self.tops[block];
        let rows = self.rows(block, note, texts);
        for (row, entry) in rows.iter().enumerate() {
            let height = leading_space(rows, row, block == 0) + guess(entry);
            if left < height || row + 1 == rows.len() {
                return Some((RowIndex { block, row }, left));
            }
            left -= height;
        }
        Some((RowIndex { block, row: 0 }, left))
    }

    /// Marks a row as hidden by folding.
    pub(crate) fn hide_row(&mut self, spot: RowIndex) {
        let rows = self.pieces.get_mut(spot.block).and_then(|piece| piece.rows.as_mut());
        if let Some(row) = rows.and_then(|rows| rows.get_mut(spot.row)) {
            row.hidden = true;
            self.hides = true;
        }
    }

    /// Marks exactly these rows as parts of comments.
    pub(crate) fn comment_rows(&mut self, rows: Vec<(RowIndex, CommentSpan)>) {
        let known = self.pieces.iter_mut().filter_map(|piece| piece.rows.as_mut()).flatten();
        let mut old: Vec<&mut MarkdownRow> = known.filter(|row| row.comment != CommentSpan::None).collect();
        old.iter_mut().for_each(|row| (row.comment, row.height) = (CommentSpan::None, None));
        for (spot, comment) in rows {
            let rows = self.pieces.get_mut(spot.block).and_then(|piece| piece.rows.as_mut());
            if let Some(row) = rows.and_then(|rows| rows.get_mut(spot.row)) {
                (row.comment, row.height) = (comment, None);
            }
        }
    }

    /// Clears the hidden mark of all rows.
    pub(crate) fn show_all(&mut self) {
        if !std::mem::take(&mut self.hides) {
            return;
        }
        for row in self.pieces.iter_mut().filter_map(|piece| piece.rows.as_mut()).flatten() {
            row.hidden = false;
        }
        self.remeasure();
    }

    /// Recomputes the heights of all blocks, and marks all tops as outdated.
    pub(crate) fn remeasure(&mut self) {
        for piece in &mut self.pieces {
            piece.height = piece.measure();
        }
        self.moved = 0;
    }

    fn refresh(&mut self) {
        if self.tops.len() == self.pieces.len() + 1 && self.moved >= self.pieces.len() {
            return;
        }
        self.tops.resize(self.pieces.len() + 1, 0.0);
        for block in self.moved.min(self.pieces.len())..self.pieces.len() {
            self.tops[block + 1] = self.tops[block] + self.pieces[block].height;
        }
        self.moved = usize::MAX;
    }
}

impl BlockRows {
    fn new(
        note: &Note,
        text: &Block,
        before: PrecedingContext,
        last: bool,
        old: Option<BlockRows>,
        layout: u32,
    ) -> BlockRows {
        let marks =
            if note.cell_parts(text.id).is_some() { Vec::new() } else { comments::comment_marks(&text.text, &before) };
        let mut piece = BlockRows {
            id: text.id,
            revision: note.block_revision(text.id),
            last,
            cell: note.cell_parts(text.id).is_some(),
            before,
            bytes: text.text.len(),
            words: count_words(&text.text),
            rows: None,
            marks,
            heads: false,
            height: 0.0,
        };
        // A block that is being edited is split into rows at once; unchanged rows keep their heights.
        if let Some(old) = old.and_then(|old| old.rows) {
            let heights: HashMap<u64, (f32, u32)> =
                old.iter().filter_map(|row| Some((row.hash, (row.height?, row.layout)))).collect();
            let cell = note.cell_parts(text.id).map(|cell| cell.code.clone());
            let mut rows = row_splitter::rows(&text.text, &piece.before, cell, last);
            for (index, row) in rows.iter_mut().enumerate() {
                if let Some((height, layout)) = heights.get(&row.hash) {
                    (row.height, row.layout) = (Some(*height), *layout);
                } else if let Some(same_place) = old.get(index).filter(|old| old.kind == row.kind) {
                    // The old height is a good estimate; the row is measured again when it becomes visible.
                    (row.height, row.layout) = (same_place.height, layout.wrapping_sub(1));
                }
            }
            piece.take(rows);
        }
        piece.height = match &piece.rows {
            Some(_) => piece.measure(),
            None => estimate(&text.text),
        };
        piece
    }

    fn take(&mut self, rows: Vec<MarkdownRow>) {
        self.heads = rows.iter().any(|row| matches!(row.kind, RowKind::Heading(_)));
        self.rows = Some(rows);
    }

    fn measure(&self) -> f32 {
        let Some(rows) = &self.rows else { return self.height };
        let first = self.before == PrecedingContext::Start;
        (0..rows.len()).map(|row| leading_space(rows, row, first) + guess(&rows[row])).sum()
    }
}

/// Estimates the height of a block that hasn't been laid out.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn estimate(text: &str) -> f32 {
    let newlines = text.bytes().filter(|byte| *byte == b'\n').count();
    (newlines as f32 * 18.0).max(text.len() as f32 / 90.0 * 24.0).max(24.0)
}

/// Returns a row's height, or an estimate if it hasn't been measured.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn guess(row: &MarkdownRow) -> f32 {
    if row.hidden {
        return 0.0;
    }
    row.height.unwrap_or_else(|| match row.kind {
        RowKind::Heading(level) => theme::heading(level).line,
        // Part of a long code block, which can be estimated closely: lines have about 35 characters.
        RowKind::Code { .. } => (row.content.len() as f32 / 35.0).ceil().max(1.0) * theme::code().line,
        _ => (row.content.len() as f32 / 90.0).ceil().max(1.0) * 24.0,
    })
}

/// Returns the space above a row: more before headings and blocks, less between related rows such as list items.
fn leading_space(rows: &[MarkdownRow], index: usize, first_block: bool) -> f32 {
    let row = &rows[index];
    if row.hidden || row.part {
        return 0.0;
    }
    let before = index.checked_sub(1).map(|before| rows[before].kind);
    if before.is_none() && first_block {
        return 0.0;
    }
    let after_heading = matches!(before, Some(RowKind::Heading(_)));
    match row.kind {
        RowKind::Blank => {
            if row.spaced {
                space::M
            } else {
                0.0
            }
        }
        _ if before == Some(RowKind::Blank) => {
            if row.spaced {
                space::M
            } else {
                0.0
            }
        }
        RowKind::Heading(_) if after_heading => space::L,
        RowKind::Heading(1) => space::XXXL,
        RowKind::Heading(2) => space::XXL,
        RowKind::Heading(_) => space::XL,
        RowKind::Item { .. } if matches!(before, Some(RowKind::Item { .. })) => {
            if row.spaced {
                space::S
            } else {
                space::XS
            }
        }
        _ if after_heading => space::M,
        kind if kind.is_fenced() || matches!(kind, RowKind::Table | RowKind::Indented | RowKind::Rule) => space::L,
        _ if before.is_none_or(|before| {
            before.is_fenced() || matches!(before, RowKind::Table | RowKind::Indented | RowKind::Rule)
        }) =>
        {
            space::L
        }
        _ => {
            if row.spaced {
                space::M
            } else {
                space::S
            }
        }
    }
}

/// Counts the words of a text: separated by spaces, or one for each Chinese or Japanese character.
fn count_words(text: &str) -> usize {
    let (mut count, mut in_word) = (0, false);
    for letter in text.chars() {
        let spaced = matches!(letter, '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}');
        if letter.is_whitespace() {
            in_word = false;
        } else if letter.is_alphanumeric() {
            let alone = !spaced && letter.width() == Some(2);
            count += usize::from(alone || !in_word);
            in_word = !alone;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::count_words;

    #[test]
    fn words_are_counted_with_and_without_spaces() {
        assert_eq!(count_words("It's one-way, isn't it? — 3 words + 5"), 7);
        assert_eq!(count_words("日本語のノート。"), 7);
        assert_eq!(count_words("Rust言語 is 言語"), 6);
        assert_eq!(count_words("한국어 노트"), 2);
        assert_eq!(count_words("слово שלום مرحبا"), 3);
    }
}
