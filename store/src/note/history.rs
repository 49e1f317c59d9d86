//! A note's history: its changes in order, its text after any of them, and the change that added each passage. Computed
//! from the document on demand, not stored.

use super::{Block, NoteDoc, sort_blocks};
use crate::error::StoreError;
use crate::id::BlockId;
use crate::keys;
use automerge::{ActorId, ChangeHash, ObjId, ReadDoc, ScalarValueRef, ValueRef};
use std::collections::HashMap;

/// One change of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteChange {
    /// The author, as an index into [`NotePast::actors`].
    pub actor: usize,
    /// Time of the change in seconds since 1970, by the author's clock. 0 for the first change and for imported file
    /// content.
    pub time: i64,
    /// Number of operations: about one for each inserted or deleted character.
    pub operations: u64,
    /// Purpose of the change, such as `import`, if recorded.
    pub message: Option<String>,
    /// automerge hash of the change.
    pub hash: ChangeHash,
    first_op: u64,
    parents: Vec<u32>,
}

/// A letter of a note's text, which may have several bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NoteLetter {
    /// The operation that wrote it. It stays the same wherever the letter moves.
    pub id: ObjId,
    /// Length in bytes.
    pub length: usize,
    /// Index of the change that wrote it in [`NotePast::moments`]; `None` if the document doesn't contain this
    /// information.
    pub moment: Option<usize>,
}

/// All changes of a note in causal order, otherwise by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotePast {
    /// The changes, oldest first.
    pub moments: Vec<NoteChange>,
    /// The authors of the changes.
    pub actors: Vec<ActorId>,
}

/// A passage of text that one change added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthoredPassage {
    /// Length of the passage in bytes.
    pub length: usize,
    /// Index of the change in [`NotePast::moments`]; `None` if the document doesn't contain this information.
    pub moment: Option<usize>,
}

impl NotePast {
    /// Returns the note's heads after the first `count` changes.
    pub fn heads_after(&self, count: usize) -> Vec<ChangeHash> {
        let set: Vec<bool> = (0..self.moments.len()).map(|at| at < count).collect();
        self.heads_of(&set)
    }

    /// Returns the heads of a set of changes that contains what each of them is based on.
    pub fn heads_of(&self, set: &[bool]) -> Vec<ChangeHash> {
        let mut is_last = set.to_vec();
        for (moment, _) in self.moments.iter().zip(set).filter(|(_, is_in)| **is_in) {
            moment.parents.iter().for_each(|parent| is_last[*parent as usize] = false);
        }
        let mut heads: Vec<ChangeHash> =
            self.moments.iter().zip(is_last).filter(|(_, is_last)| *is_last).map(|(moment, _)| moment.hash).collect();
        heads.sort_unstable();
        heads
    }

    /// Returns for each change whether it's among these heads or before them.
    pub fn history_of(&self, heads: &[ChangeHash]) -> Vec<bool> {
        let mut is_in: Vec<bool> = self.moments.iter().map(|moment| heads.contains(&moment.hash)).collect();
        // Parents come before their children.
        for (at, moment) in self.moments.iter().enumerate().rev() {
            if is_in[at] {
                moment.parents.iter().for_each(|parent| is_in[*parent as usize] = true);
            }
        }
        is_in
    }

    /// Returns for each change whether it's based on the change at this index, or is it.
    pub fn successors_of(&self, index: usize) -> Vec<bool> {
        let mut is_after = vec![false; self.moments.len()];
        for (at, moment) in self.moments.iter().enumerate().skip(index) {
            is_after[at] = at == index || moment.parents.iter().any(|parent| is_after[*parent as usize]);
        }
        is_after
    }
}

impl NoteDoc {
    /// Returns all changes. Takes about a microsecond per change, because no text is built.
    pub fn read_past(&self) -> NotePast {
        let changes = self.doc.get_changes_meta(&[]);
        let places: HashMap<ChangeHash, usize> =
            changes.iter().enumerate().map(|(place, change)| (change.hash, place)).collect();
        // The document lists each change after its parents. If a parent's clock was ahead, its children sort after it
        // too.
        let mut order: Vec<(i64, usize)> = Vec::with_capacity(changes.len());
        for (place, change) in changes.iter().enumerate() {
            let known = change.deps.iter().filter_map(|parent| order.get(*places.get(parent)?));
            let time = known.map(|(time, _)| *time).max().unwrap_or(i64::MIN).max(change.timestamp);
            order.push((time, place));
        }
        order.sort_unstable();
        let mut now = vec![0_u32; order.len()];
        for (new, (_, old)) in order.iter().enumerate() {
            now[*old] = u32::try_from(new).unwrap_or(u32::MAX);
        }
        let mut past = NotePast::default();
        let mut actors: HashMap<&ActorId, usize> = HashMap::new();
        for (_, place) in &order {
            let change = &changes[*place];
            let actor = *actors.entry(&*change.actor).or_insert_with(|| {
                past.actors.push(change.actor.clone().into_owned());
                past.actors.len() - 1
            });
            past.moments.push(NoteChange {
                actor,
                time: change.timestamp,
                operations: (change.max_op + 1).saturating_sub(change.start_op),
                message: change.message.as_ref().map(|message| message.to_string()),
                hash: change.hash,
                first_op: change.start_op,
                parents: change.deps.iter().filter_map(|parent| places.get(parent).map(|place| now[*place])).collect(),
            });
        }
        past
    }

    /// Returns the note's whole text at `heads_after`.
    ///
    /// # Errors
    /// Returns automerge's error if `heads_after` aren't part of this history.
    pub fn text_at(&self, heads: &[ChangeHash]) -> Result<String, StoreError> {
        Ok(self.blocks_at(heads)?.into_iter().map(|(block, _)| block.text).collect())
    }

    /// Returns which change added each passage of the text at `heads_after`. The lengths add up to that of
    /// [`NoteDoc::text_at`].
    ///
    /// # Errors
    /// Returns automerge's error if `heads_after` aren't part of this history.
    pub fn authored_passages(&self, past: &NotePast, heads: &[ChangeHash]) -> Result<Vec<AuthoredPassage>, StoreError> {
        let mut passages: Vec<AuthoredPassage> = Vec::new();
        let mut add = |length: usize, moment: Option<usize>| match passages.last_mut() {
            Some(last) if last.moment == moment => last.length += length,
            _ => passages.push(AuthoredPassage { length, moment }),
        };
        for (block, letters) in self.letters_at(past, heads)? {
            if letters.iter().map(|letter| letter.length).sum::<usize>() == block.text.len() {
                letters.into_iter().for_each(|letter| add(letter.length, letter.moment));
            } else {
                add(block.text.len(), None);
            }
        }
        Ok(passages)
    }

    /// Returns the blocks at `heads_after` in order, each with the letters of its text.
    ///
    /// # Errors
    /// Returns automerge's error if `heads_after` aren't part of this history.
    pub fn letters_at(
        &self,
        past: &NotePast,
        heads: &[ChangeHash],
    ) -> Result<Vec<(Block, Vec<NoteLetter>)>, StoreError> {
        let actors: HashMap<&ActorId, usize> = past.actors.iter().enumerate().map(|(at, actor)| (actor, at)).collect();
        let mut begins: Vec<Vec<(u64, usize)>> = vec![Vec::new(); past.actors.len()];
        for (at, moment) in past.moments.iter().enumerate() {
            if let Some(begins) = begins.get_mut(moment.actor) {
                begins.push((moment.first_op, at));
            }
        }
        begins.iter_mut().for_each(|begins| begins.sort_unstable());
        let moment = |id: &ObjId| {
            let ObjId::Id(counter, actor, _) = id else { return None };
            let begins = begins.get(*actors.get(actor)?)?;
            let behind = begins.partition_point(|(first, _)| first <= counter);
            begins.get(behind.checked_sub(1)?).map(|(_, at)| *at)
        };
        let letters = |text: &ObjId| -> Vec<NoteLetter> {
            let letters = self.doc.list_range_at(text, .., heads).map(|item| {
                let length = match &item.value {
                    ValueRef::Scalar(ScalarValueRef::Str(letters)) => letters.len(),
                    ValueRef::Scalar(_) | ValueRef::Object(_) => '\u{fffc}'.len_utf8(),
                };
                let id = item.id();
                NoteLetter { moment: moment(&id), id, length }
            });
            letters.collect()
        };
        let blocks = self.blocks_at(heads)?;
        Ok(blocks.into_iter().map(|(block, text)| (block, letters(&text))).collect())
    }

    /// Returns the blocks at `heads`, with their text objects.
    fn blocks_at(&self, heads: &[ChangeHash]) -> Result<Vec<(Block, ObjId)>, StoreError> {
        let mut objects: HashMap<BlockId, ObjId> = HashMap::new();
        let mut found = Vec::new();
        for key in self.doc.keys_at(&self.blocks, heads) {
            let (Ok(id), Some((_, block))) = (key.parse(), self.doc.get_at(&self.blocks, key.as_str(), heads)?) else {
                continue;
            };
            let pos = self.doc.get_at(&block, keys::POS, heads)?;
            let pos = pos.and_then(|(pos, _)| pos.as_str().map(str::to_owned)).unwrap_or_default();
            if let Some((_, text)) = self.doc.get_at(&block, keys::TEXT, heads)? {
                found.push(Block { id, pos, text: self.doc.text_at(&text, heads)? });
                objects.insert(id, text);
            }
        }
        sort_blocks(&mut found);
        Ok(found.into_iter().filter_map(|block| objects.remove(&block.id).map(|text| (block, text))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocId, NoteOp};

    fn note(actor: u8) -> NoteDoc {
        NoteDoc::load(DocId([1; 16]), &[], ActorId::from([actor; 16])).expect("a note").doc
    }

    fn splice(block: BlockId, at: usize, delete: usize, insert: &str) -> NoteOp {
        NoteOp::Splice { block, at, delete, insert: insert.to_owned() }
    }

    #[test]
    fn the_same_text_taken_over_on_two_devices_is_one_change() {
        let block = BlockId(7);
        let mut here = note(1);
        let insert = NoteOp::Insert { block, pos: "a".to_owned(), text: "one\n".to_owned() };
        here.commit(&[insert], 100, None).expect("a change");
        let mut there = NoteDoc::load(DocId([1; 16]), &[here.save()], ActorId::from([2; 16])).expect("a note").doc;
        let theirs = [splice(block, 3, 0, " two")];
        here.commit_reproducibly(&theirs, 90, "commit").expect("a change");
        let made = there.commit_reproducibly(&theirs, 90, "commit").expect("a change");
        assert_eq!(here.heads(), there.heads());
        here.merge(&made).expect("merged");
        assert_eq!(here.blocks()[0].text, "one two\n");
        // Each continues under its own actor.
        let before = there.heads();
        here.commit(&[splice(block, 0, 0, "> ")], 200, None).expect("a change");
        there.commit(&[splice(block, 7, 0, "!")], 201, None).expect("a change");
        here.merge(&there.save_since(&before)).expect("merged");
        assert_eq!(here.blocks()[0].text, "> one two!\n");
        // The same after another change is another change.
        let mut later = here.clone();
        later.commit_reproducibly(&theirs, 90, "commit").expect("a change");
        assert_ne!(later.heads(), here.heads());
    }

    #[test]
    fn two_who_wrote_at_the_same_time_are_told_apart() {
        let block = BlockId(7);
        let mut here = note(1);
        let insert = NoteOp::Insert { block, pos: "a".to_owned(), text: "one two\n".to_owned() };
        here.commit(&[insert], 100, None).expect("a change");
        let mut there = NoteDoc::load(DocId([1; 16]), &[here.save()], ActorId::from([2; 16])).expect("a note").doc;
        let before = there.heads();
        there.commit(&[splice(block, 4, 3, "zw\u{f6}lf")], 50, Some("outside")).expect("a change");
        here.commit(&[splice(block, 0, 0, "> ")], 200, None).expect("a change");
        here.merge(&there.save_since(&before)).expect("merged");
        let past = here.read_past();
        let times: Vec<i64> = past.moments.iter().map(|moment| moment.time).collect();
        assert_eq!(times, [0, 100, 50, 200], "behind what it stands on");
        assert_eq!(past.moments[2].message.as_deref(), Some("outside"));
        let text = |count| here.text_at(&past.heads_after(count)).expect("a text");
        assert_eq!([text(1), text(2), text(3)], ["", "one two\n", "one zw\u{f6}lf\n"]);
        assert_eq!(text(4), "> one zw\u{f6}lf\n");
        assert_eq!(past.heads_after(4), here.heads());
        let passages = here.authored_passages(&past, &past.heads_after(4)).expect("passages");
        let seen: Vec<(usize, Option<usize>)> = passages.iter().map(|one| (one.length, one.moment)).collect();
        assert_eq!(seen, [(2, Some(3)), (4, Some(1)), (6, Some(2)), (1, Some(1))]);
    }
}
