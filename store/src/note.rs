//! The note document: an ordered set of blocks, each with its own text.
//!
//! A note's bytes are exactly the texts of its blocks, sorted by position and id. A block with empty text doesn't
//! exist. So a block is deleted by deleting its text, and text that another device typed into it meanwhile remains
//! visible. The document doesn't interpret blocks; the engine interprets Markdown.

mod history;

pub use history::{AuthoredPassage, NoteChange, NoteLetter, NotePast};

use crate::document::{self, ChangeParcel, HistoryEntry, LoadedDocument, MergeOutcome};
use crate::error::StoreError;
use crate::id::{BlockId, DocId};
use crate::schema::DocumentKind;
use crate::{keys, position};
use automerge::legacy::{Key, ObjectId};
use automerge::transaction::{CommitOptions, Transactable, Transaction};
use automerge::{ActorId, Automerge, ChangeHash, ObjId, ObjType, ROOT, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// A block with its current position and text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Unique id of the block.
    pub id: BlockId,
    /// Fractional index that orders the block in the note.
    pub pos: String,
    /// Text of the block. Line endings are as in the file.
    pub text: String,
}

/// The elementary operations on a note. Offsets and lengths are bytes of UTF-8, on character boundaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoteOp {
    /// Replaces `delete` bytes at `at` with `insert`.
    Splice {
        /// The block that's edited.
        block: BlockId,
        /// Where the edit starts, in bytes of the block's text.
        at: usize,
        /// Number of deleted bytes.
        delete: usize,
        /// The text that's inserted there.
        insert: String,
    },
    /// Inserts a new block.
    Insert {
        /// Id of the new block.
        block: BlockId,
        /// Fractional index that orders it in the note.
        pos: String,
        /// Its initial text.
        text: String,
    },
    /// Moves a block to another position.
    Move {
        /// The block that's moved.
        block: BlockId,
        /// Its new fractional index.
        pos: String,
    },
}

impl NoteOp {
    /// Returns the block that the operation changes.
    pub fn block_id(&self) -> BlockId {
        match self {
            NoteOp::Splice { block, .. } | NoteOp::Insert { block, .. } | NoteOp::Move { block, .. } => *block,
        }
    }
}

/// The blocks that a merge touched, in their current state: all that it changed, and perhaps some that are unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedBlocks {
    /// The blocks, sorted by position. Their text may be empty now.
    pub blocks: Vec<Block>,
    /// Whether changes came that don't know all of what was here: both sides have changed the note.
    pub is_concurrent: bool,
}

impl TouchedBlocks {
    /// Includes what operations have done after the merge. `known`: the blocks before it.
    ///
    /// # Errors
    /// As for [`apply_op`].
    pub fn apply_ops(&mut self, known: &[Block], ops: &[NoteOp]) -> Result<(), StoreError> {
        for op in ops {
            let block = op.block_id();
            if !self.blocks.iter().any(|touched| touched.id == block) {
                self.blocks.extend(known.iter().find(|known| known.id == block).cloned());
                sort_blocks(&mut self.blocks);
            }
            apply_op(&mut self.blocks, op)?;
        }
        Ok(())
    }
}

/// Sorts blocks by position and id, the order of a note.
pub fn sort_blocks(blocks: &mut [Block]) {
    blocks.sort_by(|a, b| (&a.pos, a.id).cmp(&(&b.pos, b.id)));
}

/// Applies one operation to materialized blocks. Empty blocks stay in the list, so that later operations find them.
///
/// # Errors
/// Returns [`StoreError::Edit`] if the block or the range doesn't exist. Nothing is changed then.
pub fn apply_op(blocks: &mut Vec<Block>, op: &NoteOp) -> Result<(), StoreError> {
    match op {
        NoteOp::Splice { block, at, delete, insert } => {
            let found = find_block(blocks, *block)?;
            let text = &mut blocks[found].text;
            let end = at.checked_add(*delete).filter(|end| *end <= text.len());
            match end {
                Some(end) if text.is_char_boundary(*at) && text.is_char_boundary(end) => {
                    text.replace_range(*at..end, insert);
                    Ok(())
                }
                Some(_) | None => Err(StoreError::Edit(format!(
                    "bytes {at} to {} of block {block}, which has {} bytes",
                    at.saturating_add(*delete),
                    text.len()
                ))),
            }
        }
        NoteOp::Insert { block, pos, text } => {
            if blocks.iter().any(|known| known.id == *block) {
                return Err(StoreError::Edit(format!("block {block} exists already")));
            }
            let at = blocks.partition_point(|known| (&known.pos, known.id) < (pos, *block));
            blocks.insert(at, Block { id: *block, pos: pos.clone(), text: text.clone() });
            Ok(())
        }
        NoteOp::Move { block, pos } => {
            let found = find_block(blocks, *block)?;
            let mut moved = blocks.remove(found);
            moved.pos.clone_from(pos);
            let at = blocks.partition_point(|known| (&known.pos, known.id) < (&moved.pos, moved.id));
            blocks.insert(at, moved);
            Ok(())
        }
    }
}

fn find_block(blocks: &[Block], id: BlockId) -> Result<usize, StoreError> {
    blocks.iter().position(|block| block.id == id).ok_or_else(|| StoreError::Edit(format!("there is no block {id}")))
}

/// Joins adjacent splices of a block, so that a burst of keystrokes becomes one or few operations.
pub fn coalesce(ops: &[NoteOp]) -> Vec<NoteOp> {
    let mut out: Vec<NoteOp> = Vec::new();
    for op in ops {
        let joined = match (out.last_mut(), op) {
            (
                Some(NoteOp::Splice { block: last_block, at: last_at, delete: last_delete, insert: last_insert }),
                NoteOp::Splice { block, at, delete, insert },
            ) if last_block == block => join_splices((last_at, last_delete, last_insert), (*at, *delete, insert)),
            (Some(NoteOp::Insert { block: last_block, text, .. }), NoteOp::Splice { block, at, delete, insert })
                if last_block == block && text.get(*at..at + delete).is_some() =>
            {
                text.replace_range(*at..at + delete, insert);
                true
            }
            _ => false,
        };
        if !joined {
            out.push(op.clone());
        }
    }
    out
}

/// Joins the second splice into the first if it touches the text that the first inserted. Returns whether it did.
fn join_splices(first: (&mut usize, &mut usize, &mut String), second: (usize, usize, &str)) -> bool {
    let (at, delete, insert) = first;
    let (start, count, new) = second;
    let inserted_end = *at + insert.len();
    if start > inserted_end || start + count < *at {
        return false;
    }
    // The parts of the second deletion before, inside and after the first insertion.
    let before = at.saturating_sub(start);
    let behind = (start + count).saturating_sub(inserted_end);
    let inside = start.max(*at) - *at..(start + count).min(inserted_end) - *at;
    insert.replace_range(inside, new);
    *at -= before;
    *delete += before + behind;
    true
}

/// The automerge document of a note. Cloning is cheap, because clones share their data.
#[derive(Clone)]
pub struct NoteDoc {
    id: DocId,
    doc: Automerge,
    blocks: ObjId,
    /// The text object of each block. Otherwise each burst of keystrokes would search the document.
    texts: HashMap<BlockId, ObjId>,
    /// The block that an object belongs to, as its map or its text. A remote change names objects only.
    owners: HashMap<ObjId, BlockId>,
}

impl std::fmt::Debug for NoteDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NoteDoc {}", self.id)
    }
}

impl NoteDoc {
    /// Loads the note from its chunks. Further changes are written under `actor`, which must be new for this process.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<NoteDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } = document::load_document(id, DocumentKind::Note, chunks, actor)?;
        let blocks = find_container(&doc, id, keys::BLOCKS)?;
        let mut note = NoteDoc { id, doc, blocks, texts: HashMap::new(), owners: HashMap::new() };
        note.index_blocks();
        Ok(LoadedDocument { doc: note, bad_chunks: bad })
    }

    /// Creates an empty note that will merge a complete received one. Its first change needn't be stored, since the
    /// received document contains it. Returns `None` if the received bytes aren't a complete note, or weren't loaded.
    ///
    /// # Errors
    /// No input causes an error.
    pub fn empty_before_merge(id: DocId, parcel: &ChangeParcel, actor: ActorId) -> Result<Option<NoteDoc>, StoreError> {
        let Some(read) = &parcel.loaded else { return Ok(None) };
        let note = NoteDoc::load(id, &[], actor)?.doc;
        Ok(document::contains_heads(read, &note.heads()).then_some(note))
    }

    /// Creates a note whose first own change inserts `blocks`. The change depends only on the blocks (they determine
    /// its actor and time), so two devices that import the same file make the same change.
    ///
    /// # Errors
    /// No input causes an error.
    pub fn import(id: DocId, blocks: &[Block], actor: ActorId) -> Result<NoteDoc, StoreError> {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 actor of an imported note");
        for block in blocks {
            hasher.update(&block.id.0.to_be_bytes());
            hasher.update(&(block.pos.len() as u64).to_be_bytes());
            hasher.update(block.pos.as_bytes());
            hasher.update(&(block.text.len() as u64).to_be_bytes());
            hasher.update(block.text.as_bytes());
        }
        let mut importer = [0; 16];
        hasher.finalize_xof().fill(&mut importer);
        let mut note = NoteDoc::load(id, &[], ActorId::from(importer))?.doc;
        let ops: Vec<NoteOp> = blocks
            .iter()
            .filter(|block| !block.text.is_empty())
            .map(|block| NoteOp::Insert { block: block.id, pos: block.pos.clone(), text: block.text.clone() })
            .collect();
        note.commit(&ops, 0, Some("import"))?;
        note.doc.set_actor(actor);
        Ok(note)
    }

    /// Returns the note's document id.
    pub fn id(&self) -> DocId {
        self.id
    }

    /// Returns the hashes of the newest changes, which have no successors.
    pub fn heads(&self) -> Vec<ChangeHash> {
        self.doc.get_heads()
    }

    /// Whether the note contains this change.
    pub fn contains_change(&self, change: &ChangeHash) -> bool {
        self.doc.get_change_by_hash(change).is_some()
    }

    /// Whether the note has never been edited.
    pub fn is_untouched(&self) -> bool {
        self.texts.is_empty()
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Saves all changes since `heads` as one chunk.
    pub fn save_since(&self, heads: &[ChangeHash]) -> Vec<u8> {
        document::save_since(&self.doc, heads)
    }

    /// Returns all changes, oldest first.
    pub fn history(&self) -> Vec<HistoryEntry> {
        document::read_history(&self.doc)
    }

    /// Returns the current blocks, sorted, without empty ones.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self
            .texts
            .iter()
            .filter_map(|(id, text)| {
                let text = self.doc.text(text).ok().filter(|text| !text.is_empty())?;
                Some(Block { id: *id, pos: self.block_position(*id).unwrap_or_default(), text })
            })
            .collect();
        sort_blocks(&mut blocks);
        blocks
    }

    /// Commits all `ops` as one change and returns it as a chunk to append. `time` is in seconds since 1970.
    ///
    /// # Errors
    /// Returns [`StoreError::Edit`] if an operation isn't applicable. Nothing is changed then.
    pub fn commit(&mut self, ops: &[NoteOp], time: i64, message: Option<&str>) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let mut options = CommitOptions::default().with_time(time);
        if let Some(message) = message {
            options.set_message(message);
        }
        let mut made = HashMap::new();
        let mut tx = self.doc.transaction();
        for op in &coalesce(ops) {
            if let Err(error) = write_op(&mut tx, &self.blocks, &self.texts, &mut made, op) {
                tx.rollback();
                return Err(error);
            }
        }
        tx.commit_with(options);
        for (id, [block, text]) in made {
            self.owners.insert(block, id);
            self.owners.insert(text.clone(), id);
            self.texts.insert(id, text);
        }
        Ok(document::save_since(&self.doc, &before))
    }

    /// Commits `ops` like [`NoteDoc::commit`], under an actor that only this state of the note, the operations and the
    /// message determine. So two devices that take the same text over from elsewhere make the same change.
    ///
    /// # Errors
    /// Returns [`StoreError::Edit`] if an operation isn't applicable. Nothing is changed then.
    pub fn commit_reproducibly(&mut self, ops: &[NoteOp], time: i64, message: &str) -> Result<Vec<u8>, StoreError> {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 actor of a reproducible change");
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_be_bytes()).update(bytes);
        };
        part(message.as_bytes());
        self.doc.get_heads().iter().for_each(|head| part(&head.0));
        for op in &coalesce(ops) {
            part(&op.block_id().0.to_be_bytes());
            match op {
                NoteOp::Splice { at, delete, insert, .. } => {
                    part(&(*at as u64).to_be_bytes());
                    part(&(*delete as u64).to_be_bytes());
                    part(insert.as_bytes());
                }
                NoteOp::Insert { pos, text, .. } => {
                    part(pos.as_bytes());
                    part(text.as_bytes());
                }
                NoteOp::Move { pos, .. } => part(pos.as_bytes()),
            }
        }
        let mut actor = [0; 16];
        hasher.finalize_xof().fill(&mut actor);
        let own = self.doc.get_actor().clone();
        self.doc.set_actor(ActorId::from(actor));
        let done = self.commit(ops, time, Some(message));
        self.doc.set_actor(own);
        done
    }

    /// Merges changes from another replica and returns the blocks that they touched.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read. Nothing is merged then.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<TouchedBlocks, StoreError> {
        self.merge_loaded(bytes, None)
    }

    /// Merges received changes, which may already be loaded. The parcel keeps its bytes.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read. Nothing is merged then.
    pub fn merge_parcel(&mut self, parcel: &mut ChangeParcel) -> Result<TouchedBlocks, StoreError> {
        let read = parcel.loaded.take();
        self.merge_loaded(&parcel.bytes, read)
    }

    fn merge_loaded(&mut self, bytes: &[u8], read: Option<Box<Automerge>>) -> Result<TouchedBlocks, StoreError> {
        let (blocks, owners) = (&self.blocks, &self.owners);
        let mut touched = BTreeSet::new();
        let (mut known, mut is_concurrent): (BTreeSet<ChangeHash>, _) =
            (self.doc.get_heads().into_iter().collect(), false);
        let merged = document::merge_changes(self.id, &mut self.doc, bytes, read, |change| {
            is_concurrent |= change.deps.iter().any(|parent| !known.contains(parent));
            known.extend(change.hash);
            for op in &change.operations {
                let ObjectId::Id(object) = &op.obj else { continue };
                let object = ObjId::Id(object.0, object.1.clone(), 0);
                match &op.key {
                    Key::Map(key) if object == *blocks => touched.extend(key.parse::<BlockId>().ok()),
                    Key::Map(_) | Key::Seq(_) => touched.extend(owners.get(&object)),
                }
            }
        })?;
        if merged == MergeOutcome::Replaced {
            touched.extend(self.doc.keys(&self.blocks).filter_map(|key| key.parse::<BlockId>().ok()));
        }
        let mut blocks = Vec::new();
        for id in touched {
            if let Some(text) = self.index_block(id) {
                let text = self.doc.text(&text)?;
                blocks.push(Block { id, pos: self.block_position(id).unwrap_or_default(), text });
            }
        }
        sort_blocks(&mut blocks);
        Ok(TouchedBlocks { blocks, is_concurrent })
    }

    /// Returns the operations that make this document's blocks equal to `blocks`, to repair it after chunks were
    /// quarantined.
    pub fn diff_blocks(&self, blocks: &[Block]) -> Vec<NoteOp> {
        let have: HashMap<BlockId, Block> = self.blocks().into_iter().map(|block| (block.id, block)).collect();
        let want: HashMap<BlockId, &Block> = blocks.iter().map(|block| (block.id, block)).collect();
        let mut ops = Vec::new();
        for block in have.values().filter(|block| !want.contains_key(&block.id)) {
            ops.push(NoteOp::Splice { block: block.id, at: 0, delete: block.text.len(), insert: String::new() });
        }
        for block in blocks {
            if !self.texts.contains_key(&block.id) {
                if !block.text.is_empty() {
                    ops.push(NoteOp::Insert { block: block.id, pos: block.pos.clone(), text: block.text.clone() });
                }
                continue;
            }
            let old = have.get(&block.id).map_or("", |block| block.text.as_str());
            if old != block.text {
                let (delete, insert) = (old.len(), block.text.clone());
                ops.push(NoteOp::Splice { block: block.id, at: 0, delete, insert });
            }
            if self.block_position(block.id).is_some_and(|pos| pos != block.pos) {
                ops.push(NoteOp::Move { block: block.id, pos: block.pos.clone() });
            }
        }
        ops
    }

    fn block_position(&self, id: BlockId) -> Option<String> {
        let (_, block) = self.doc.get(&self.blocks, id.to_string()).ok()??;
        let (pos, _) = self.doc.get(&block, keys::POS).ok()??;
        pos.as_str().map(str::to_owned)
    }

    fn index_blocks(&mut self) {
        let ids: Vec<BlockId> = self.doc.keys(&self.blocks).filter_map(|key| key.parse().ok()).collect();
        for id in ids {
            self.index_block(id);
        }
    }

    /// Indexes the objects of a block. Returns its text object, if it has one.
    fn index_block(&mut self, id: BlockId) -> Option<ObjId> {
        let (_, block) = self.doc.get(&self.blocks, id.to_string()).ok()??;
        let text = self.doc.get(&block, keys::TEXT);
        // A block without text may get one by a later change, which names only the block.
        self.owners.insert(block, id);
        let text = match text.ok()?? {
            (automerge::Value::Object(ObjType::Text), text) => text,
            _ => return None,
        };
        self.owners.insert(text.clone(), id);
        self.texts.insert(id, text.clone());
        Some(text)
    }
}

/// Returns the container `key` of a document that [`crate::schema::check`] has accepted.
pub(crate) fn find_container(doc: &Automerge, id: DocId, key: &str) -> Result<ObjId, StoreError> {
    match doc.get(ROOT, key)? {
        Some((_, object)) => Ok(object),
        None => Err(StoreError::Damaged { doc: id, why: format!("it has no \u{201c}{key}\u{201d}") }),
    }
}

fn write_op(
    tx: &mut Transaction<'_>,
    blocks: &ObjId,
    known: &HashMap<BlockId, ObjId>,
    made: &mut HashMap<BlockId, [ObjId; 2]>,
    op: &NoteOp,
) -> Result<(), StoreError> {
    let missing = |id: &BlockId| StoreError::Edit(format!("there is no block {id}"));
    match op {
        NoteOp::Splice { block, at, delete, insert } => {
            let text =
                made.get(block).map(|[_, text]| text).or_else(|| known.get(block)).ok_or_else(|| missing(block))?;
            let delete = isize::try_from(*delete).map_err(|_| missing(block))?;
            tx.splice_text(text, *at, delete, insert)?;
        }
        NoteOp::Insert { block, pos, text } => {
            if made.contains_key(block) || known.contains_key(block) {
                return Err(StoreError::Edit(format!("block {block} exists already")));
            }
            let object = tx.put_object(blocks, block.to_string(), ObjType::Map)?;
            tx.put(&object, keys::POS, pos.as_str())?;
            let content = tx.put_object(&object, keys::TEXT, ObjType::Text)?;
            tx.splice_text(&content, 0, 0, text)?;
            made.insert(*block, [object, content]);
        }
        NoteOp::Move { block, pos } => {
            let found = tx.get(blocks, block.to_string())?;
            let (_, object) = found.ok_or_else(|| missing(block))?;
            tx.put(&object, keys::POS, pos.as_str())?;
        }
    }
    Ok(())
}

/// Creates blocks for `texts`, evenly spaced, with ids that depend only on the texts (see [`NoteDoc::import`]).
pub fn import_blocks<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Vec<Block> {
    let positions = position::spread_positions(texts.len());
    let mut chain = blake3::Hasher::new_derive_key("tracebook 2026 block of an imported note");
    positions
        .into_iter()
        .zip(texts)
        .map(|(pos, text)| {
            chain.update(&(text.len() as u64).to_be_bytes());
            chain.update(text.as_bytes());
            let mut id = [0; 8];
            chain.clone().finalize_xof().fill(&mut id);
            Block { id: BlockId(u64::from_be_bytes(id)), pos, text: text.to_owned() }
        })
        .collect()
}
