//! Converts an edit of a note to operations on its blocks, and decides when blocks are split and joined.
//!
//! Moving text between blocks is what concurrent edits tolerate worst, so it happens only where the structure requires
//! it: a cell is exactly one block, a line isn't spread over two blocks, and a block doesn't grow without limit.

use crate::markdown;
use crate::text_edit::TextEdit;
use rand_core::RngCore;
use std::collections::{BTreeSet, HashMap};
use store::{Block, BlockId, NoteOp, apply_op, position_between};

/// Size above which a block is split, because the cost of each change from another device grows with its block.
pub const MAX_BLOCK_BYTES: usize = 8_192;
/// Size above which a block is split while others may be typing in it. Text that they type into a part before they
/// learn that it was split off stays in the original block: it's kept, but ends up in another place. So such splits are
/// rare.
pub const MAX_SHARED_BLOCK_BYTES: usize = 32_768;

/// Collects operations on a list of blocks, and applies each one immediately.
pub struct BlockEdits<'a> {
    blocks: &'a mut Vec<Block>,
    /// Whether the whole note is one cell: a script.
    script: bool,
    /// Size in bytes above which a block is split.
    grown: usize,
    rng: &'a mut dyn RngCore,
    ops: Vec<NoteOp>,
}

impl<'a> BlockEdits<'a> {
    /// Starts to edit these blocks. `script`: the note is a script; `grown`: size in bytes above which a block is
    /// split; `rng`: for block IDs.
    pub fn new(blocks: &'a mut Vec<Block>, script: bool, grown: usize, rng: &'a mut dyn RngCore) -> BlockEdits<'a> {
        BlockEdits { blocks, script, grown, rng, ops: Vec::new() }
    }

    /// Returns the operations that make up the edit.
    pub fn finish(self) -> Vec<NoteOp> {
        self.ops
    }

    /// Applies several edits at once: in ascending order, at offsets of the current text, not touching each other. If a
    /// whole cell disappears in one place and appears in another, it has moved: it keeps its block and outputs.
    pub fn apply_edits(&mut self, splices: &[TextEdit]) {
        let leaving = self.leaving_cells(splices);
        let before = self.ops.len();
        for splice in splices.iter().rev() {
            self.replace_range(splice.at, splice.delete, &splice.insert);
        }
        if !leaving.is_empty() {
            self.restore_moved_cells(leaving, before);
        }
    }

    /// Returns cells that lose text, if the same edits insert lines or there are several cells: block and source.
    fn leaving_cells(&self, splices: &[TextEdit]) -> Vec<(BlockId, String)> {
        let deletes = splices.iter().any(|splice| splice.delete > 0);
        if !deletes || (splices.len() < 2 && !splices.iter().any(|splice| splice.insert.contains('\n'))) {
            return Vec::new();
        }
        let (mut start, mut leaving) = (0, Vec::new());
        for block in &*self.blocks {
            let (own, end) = (block.text.trim_end(), start + block.text.len());
            let goes = |splice: &TextEdit| splice.at < end && start < splice.at + splice.delete;
            if !own.is_empty() && splices.iter().any(goes) && markdown::parse_cell(&block.text).is_some() {
                leaving.push((block.id, own.to_owned()));
            }
            start = end;
        }
        leaving
    }

    /// Restores the blocks of cells that moved. Each gets the text and position of the block that received its source
    /// in the operations from `from` on.
    fn restore_moved_cells(&mut self, leaving: Vec<(BlockId, String)>, from: usize) {
        let text =
            |id: BlockId, plan: &Self| plan.block_index(id).map_or("", |at| plan.blocks[at].text.as_str()).to_owned();
        let free: BTreeSet<BlockId> = self.ops[from..].iter().map(NoteOp::block_id).collect();
        let mut free: Vec<BlockId> = free.into_iter().collect();
        // A cell that keeps its source, or gets an earlier one back, hasn't moved.
        let (stay, mut moved): (Vec<_>, Vec<_>) =
            leaving.into_iter().partition(|(id, source)| text(*id, self).trim_end() == source);
        free.retain(|id| stay.iter().all(|(other, _)| other != id));
        let mut swaps: Vec<(BlockId, String, String)> = Vec::new();
        let mut emptied: Vec<BlockId> = Vec::new();
        moved.retain(|(id, source)| {
            let place = free.iter().position(|other| text(*other, self).trim_end() == source);
            let Some(at) = place.and_then(|place| self.block_index(free.remove(place))) else { return false };
            let block = &self.blocks[at];
            swaps.push((*id, block.pos.clone(), block.text.clone()));
            emptied.push(block.id);
            true
        });
        // Never overwrite text that isn't kept elsewhere.
        let is_whole = |(id, ..): &(BlockId, String, String)| emptied.contains(id) || text(*id, self).is_empty();
        if !swaps.iter().all(is_whole) {
            return;
        }
        for id in emptied {
            let length = text(id, self).len();
            self.splice_block(id, 0, length, String::new());
        }
        for (id, pos, text) in swaps {
            self.apply_op(NoteOp::Move { block: id, pos });
            self.splice_block(id, 0, 0, text);
        }
    }

    /// Restores the deleted blocks of cells that reappear, with their outputs. `was` returns the blocks that a block
    /// with this code may have been.
    pub fn restore_deleted_cells(&mut self, was: impl Fn(BlockId, &str) -> Vec<BlockId>) {
        let touched: BTreeSet<BlockId> = self.ops.iter().map(NoteOp::block_id).collect();
        let is_empty =
            |id: BlockId, plan: &Self| plan.block_index(id).is_some_and(|at| plan.blocks[at].text.is_empty());
        // Deleted text may have been inserted by an earlier splice.
        let cells: Vec<BlockId> = if touched.iter().any(|id| is_empty(*id, self)) {
            self.blocks.iter().map(|block| block.id).collect()
        } else if self.ops.iter().any(|op| matches!(op, NoteOp::Insert { .. })) {
            touched.into_iter().collect()
        } else {
            return;
        };
        for id in cells {
            let Some(block) = self.block_index(id).map(|at| self.blocks[at].clone()) else { continue };
            let Some(cell) = markdown::parse_cell(&block.text) else { continue };
            let old = was(id, &block.text[cell.code]).into_iter().find(|old| is_empty(*old, self));
            if let Some(old) = old {
                self.splice_block(id, 0, block.text.len(), String::new());
                self.apply_op(NoteOp::Move { block: old, pos: block.pos });
                self.splice_block(old, 0, 0, block.text);
            }
        }
    }

    /// Replaces `delete` bytes at `at` with `insert`. The range must be inside the note, on character boundaries.
    pub fn replace_range(&mut self, at: usize, delete: usize, insert: &str) {
        let mut touched: Vec<BlockId> = Vec::new();
        let mut rest = delete;
        let mut insert = insert;
        let (mut index, mut offset) = self.locate(at, delete > 0);
        if self.blocks.is_empty() || self.blocks.iter().all(|block| block.text.is_empty()) {
            if !insert.is_empty() {
                let last = self.blocks.len();
                touched.push(self.insert_block(last, insert.to_owned()));
            }
            rest = 0;
            insert = "";
        }
        if rest == 0 && offset == 0 && self.stays_outside_cell(index, insert) {
            touched.push(self.insert_block(index, insert.to_owned()));
            insert = "";
        }
        while rest > 0 || !insert.is_empty() {
            let Some(block) = self.blocks.get(index) else { break };
            let count = rest.min(block.text.len() - offset);
            let id = block.id;
            if count > 0 || !insert.is_empty() {
                self.splice_block(id, offset, count, insert.to_owned());
                touched.push(id);
                insert = "";
            }
            rest -= count;
            index += 1;
            offset = 0;
        }
        for id in touched {
            self.repair_block(id);
        }
    }

    /// Returns whether text inserted right before a block stays outside of it, because the block is a cell and remains
    /// the same. Its ID and outputs must not go to a cell inserted before it.
    fn stays_outside_cell(&self, index: usize, insert: &str) -> bool {
        let Some(block) = self.blocks.get(index).filter(|_| insert.ends_with('\n')) else { return false };
        markdown::parse_cell(&block.text).is_some()
            && markdown::cell_ranges(&format!("{insert}{}", block.text)).iter().any(|cell| cell.start == insert.len())
    }

    /// Makes every cell of the whole text one block. Needed after external edits, when a fence may surround several
    /// blocks. A block that looks like a cell but is inside a larger one becomes part of it, unless `keep` says that
    /// its outputs would be lost.
    pub fn normalize_cells(&mut self, keep: impl Fn(BlockId) -> bool) {
        let text: String = self.blocks.iter().map(|block| block.text.as_str()).collect();
        for range in markdown::cell_ranges(&text) {
            let (first, offset) = self.locate(range.start, true);
            let (last, _) = self.locate(range.end.saturating_sub(1).max(range.start), true);
            let Some(block) = self.blocks.get(first) else { continue };
            if first == last && markdown::parse_cell(&block.text).is_some() {
                continue;
            }
            let id = self.join_blocks_through(block.id, last);
            self.split_out(id, offset, range.len());
        }
        self.dissolve_false_cells(keep);
    }

    /// Splits a range, with the blank lines after it, out of a block. The range keeps the block's ID.
    fn split_out(&mut self, id: BlockId, at: usize, length: usize) {
        let Some(index) = self.block_index(id) else { return };
        let text = self.blocks[index].text.clone();
        let (before, rest) = text.split_at(at);
        let blank = rest[length..].split_inclusive('\n').take_while(|line| line.trim().is_empty());
        let (_, behind) = rest.split_at(length + blank.map(str::len).sum::<usize>());
        if !behind.is_empty() {
            self.splice_block(id, text.len() - behind.len(), behind.len(), String::new());
            self.insert_block(index + 1, behind.to_owned());
        }
        if !before.is_empty() {
            self.splice_block(id, 0, at, String::new());
            self.insert_block(index, before.to_owned());
        }
    }

    /// Joins this block with the following ones, through the one at index `last`. Returns the ID of the joined block.
    fn join_blocks_through(&mut self, mut id: BlockId, last: usize) -> BlockId {
        let through = self.blocks[last].id;
        while id != through && self.block_index(through).is_some_and(|at| !self.blocks[at].text.is_empty()) {
            match self.block_index(id).and_then(|at| self.join_with_next(at, true)) {
                Some(joined) => id = joined,
                None => break,
            }
        }
        id
    }

    fn dissolve_false_cells(&mut self, keep: impl Fn(BlockId) -> bool) {
        let looks = |block: &Block| markdown::parse_cell(&block.text).is_some() && !keep(block.id);
        let mut suspects: Vec<BlockId> =
            self.blocks.iter().filter(|block| looks(block)).map(|block| block.id).collect();
        if suspects.is_empty() {
            return;
        }
        let text: String = self.blocks.iter().map(|block| block.text.as_str()).collect();
        let cells: Vec<usize> = markdown::cell_ranges(&text).into_iter().map(|range| range.start).collect();
        let starts = self.block_starts();
        suspects.retain(|id| starts.get(id).is_some_and(|start| !cells.contains(start)));
        for id in suspects {
            let Some(start) = self.block_starts().get(&id).copied() else { continue };
            let mut around = markdown::piece_around(&text, start);
            if around.end <= start {
                continue;
            }
            let (last, _) = self.locate(around.end - 1, true);
            // Start where a block and a piece start together, so that the block parses alone as it does in the whole
            // text.
            let (mut first, mut offset) = self.locate(around.start, true);
            while offset > 0 {
                let begins = around.start - offset;
                around.start = markdown::piece_around(&text, begins).start.min(begins);
                (first, offset) = self.locate(around.start, true);
                if around.start == begins {
                    break;
                }
            }
            if around.len() > self.grown {
                continue;
            }
            let Some(block) = self.blocks.get(first).filter(|_| first < last) else { continue };
            let id = self.join_blocks_through(block.id, last);
            self.repair_block(id);
        }
    }

    fn block_starts(&self) -> HashMap<BlockId, usize> {
        let mut at = 0;
        let start = |block: &Block| {
            let start = at;
            at += block.text.len();
            (block.id, start)
        };
        self.blocks.iter().map(start).collect()
    }

    /// Returns the block that contains the byte `at`, and the offset in it. At a boundary, an insertion goes to the
    /// block that begins there (`forward` isn't needed: a line belongs to the block in which it starts), or to the end
    /// of the last one.
    fn locate(&self, at: usize, forward: bool) -> (usize, usize) {
        let mut start = 0;
        let mut last = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            let end = start + block.text.len();
            if block.text.is_empty() {
                continue;
            }
            last = index;
            if at < end || (at == end && !forward && !block.text.ends_with('\n')) {
                return (index, at - start);
            }
            start = end;
        }
        // At the end of the note, text after a cell's closing fence starts a new block; other text extends the last
        // block.
        let length = self.blocks.get(last).map_or(0, |block| block.text.len());
        (last, length)
    }

    fn splice_block(&mut self, block: BlockId, at: usize, delete: usize, insert: String) {
        self.apply_op(NoteOp::Splice { block, at, delete, insert });
    }

    fn apply_op(&mut self, op: NoteOp) {
        // Every operation is derived from the list itself, so it can be applied.
        let fits = apply_op(self.blocks, &op);
        debug_assert!(fits.is_ok(), "{fits:?}");
        if fits.is_ok() {
            self.ops.push(op);
        }
    }

    /// Inserts a new block at this index of the list.
    fn insert_block(&mut self, index: usize, text: String) -> BlockId {
        let id = loop {
            let id = BlockId(self.rng.next_u64());
            if self.blocks.iter().all(|block| block.id != id) {
                break id;
            }
        };
        let low = index.checked_sub(1).map(|before| self.blocks[before].pos.clone());
        let high = self.blocks.get(index).map(|block| block.pos.clone());
        let pos = position_between(low.as_deref(), high.as_deref());
        // Two devices may have made equal positions, with no space between them: then the following blocks move back.
        let mut bound = (pos.clone(), id);
        let mut moves = Vec::new();
        for next in index..self.blocks.len() {
            if (&self.blocks[next].pos, self.blocks[next].id) > (&bound.0, bound.1) {
                break;
            }
            let after = self.blocks[next + 1..].iter().find(|block| block.pos > bound.0);
            let place = position_between(Some(&bound.0), after.map(|block| block.pos.as_str()));
            bound = (place.clone(), self.blocks[next].id);
            moves.push(NoteOp::Move { block: self.blocks[next].id, pos: place });
        }
        // In reverse, so that the order stays correct at every step.
        for op in moves.into_iter().rev() {
            self.apply_op(op);
        }
        self.apply_op(NoteOp::Insert { block: id, pos, text });
        id
    }

    fn block_index(&self, id: BlockId) -> Option<usize> {
        self.blocks.iter().position(|block| block.id == id)
    }

    /// Joins and splits a block after an edit, so that the rules for blocks hold again.
    fn repair_block(&mut self, id: BlockId) {
        let Some(mut index) = self.block_index(id) else { return };
        // An emptied block may leave the last line of the previous one open.
        if self.blocks[index].text.is_empty() {
            match self.blocks[..index].iter().rposition(|block| !block.text.is_empty()) {
                Some(before) => index = before,
                None => return,
            }
        }
        if self.script {
            while self.next_nonempty(index).is_some() && self.join_with_next(index, true).is_some() {}
            return;
        }
        while let Some(next) = self.next_nonempty(index) {
            let (this, that) = (&self.blocks[index].text, &self.blocks[next].text);
            let open = !this.ends_with('\n') || (this.ends_with('\r') && that.starts_with('\n'));
            if !open || this.len() + that.len() > self.grown.max(markdown::MAX_CELL_BYTES) {
                break;
            }
            // A line that was split because of its length stays split.
            if this.len() + that.len() > self.grown
                && markdown::parse_cell(this).is_none()
                && markdown::parse_cell(that).is_none()
            {
                break;
            }
            let Some(joined) = self.join_with_next(index, false) else { break };
            let Some(now) = self.block_index(joined) else { break };
            index = now;
        }
        self.split_block(self.blocks[index].id);
    }

    fn next_nonempty(&self, index: usize) -> Option<usize> {
        self.blocks[index + 1..].iter().position(|block| !block.text.is_empty()).map(|at| index + 1 + at)
    }

    /// Joins this block and the next one that has text. The text moves to the block of a cell, so that its outputs stay
    /// with it, else to the larger block.
    fn join_with_next(&mut self, index: usize, keep_first: bool) -> Option<BlockId> {
        let next = self.next_nonempty(index)?;
        let (this, that) = (self.blocks[index].clone(), self.blocks[next].clone());
        let into_next = !keep_first
            && markdown::parse_cell(&this.text).is_none()
            && (markdown::parse_cell(&that.text).is_some() || that.text.len() > this.text.len());
        if into_next {
            self.splice_block(this.id, 0, this.text.len(), String::new());
            self.splice_block(that.id, 0, 0, this.text);
            Some(that.id)
        } else {
            self.splice_block(that.id, 0, that.text.len(), String::new());
            self.splice_block(this.id, this.text.len(), 0, that.text);
            Some(this.id)
        }
    }

    /// Splits a block where a cell begins or ends in it, or if it has grown too large.
    fn split_block(&mut self, id: BlockId) {
        let Some(index) = self.block_index(id) else { return };
        let text = self.blocks[index].text.clone();
        if markdown::parse_cell(&text).is_some() {
            return;
        }
        let cells = markdown::cell_ranges(&text);
        if cells.is_empty() && text.len() <= self.grown {
            return;
        }
        let pieces = markdown::split_into_blocks(&text);
        if pieces.len() < 2 {
            return;
        }
        // A run of paragraphs isn't split until it has grown; around cells it is.
        let pieces: Vec<String> = if text.len() > self.grown { to_strings(&pieces) } else { join_text_pieces(&pieces) };
        if pieces.len() < 2 {
            return;
        }
        // The first cell keeps the ID, since outputs belong to it.
        let stays = pieces.iter().position(|piece| markdown::parse_cell(piece).is_some()).unwrap_or(0);
        let start: usize = pieces[..stays].iter().map(String::len).sum();
        let end = start + pieces[stays].len();
        self.splice_block(id, end, text.len() - end, String::new());
        self.splice_block(id, 0, start, String::new());
        for piece in &pieces[..stays] {
            if let Some(at) = self.block_index(id) {
                self.insert_block(at, piece.clone());
            }
        }
        let mut before = id;
        for piece in &pieces[stays + 1..] {
            if let Some(at) = self.block_index(before) {
                before = self.insert_block(at + 1, piece.clone());
            }
        }
    }
}

fn to_strings(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).to_owned()).collect()
}

/// Joins neighboring pieces that aren't cells.
fn join_text_pieces(pieces: &[&str]) -> Vec<String> {
    let mut out: Vec<(String, bool)> = Vec::new();
    for piece in pieces {
        let is_cell = markdown::parse_cell(piece).is_some();
        match out.last_mut() {
            Some((text, false)) if !is_cell => text.push_str(piece),
            _ => out.push(((*piece).to_owned(), is_cell)),
        }
    }
    out.into_iter().map(|(text, _)| text).collect()
}
