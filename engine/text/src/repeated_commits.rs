//! Text that reached a note twice: someone typed it and committed it, another device pulled the commit, and later sync
//! brought what was typed, too. A document keeps both; one of them is a repetition.
//!
//! A change that took over a commit names the file's hash. If the note had exactly that text after a change that the
//! first one doesn't know, all that the commit brought is there already. Only letters that stand at the same place in
//! both texts, and that neither side had before, are repetitions. Which of them stays is the same on each device: what
//! was typed, and of two that took over the same commit, the one with the lower hash. Deleting a letter twice is the
//! same as once, so two devices that do this at the same time agree.

use crate::commit_mark::CommitMark;
use crate::history::EXTERNAL_CHANGE_MESSAGE;
use crate::text_edit::compute_edits;
use crate::time::UnixMillis;
use std::collections::HashSet;
use store::{Block, ChangeHash, NoteChange, NoteDoc, NoteLetter, NoteOp, NotePast, StoreError, TouchedBlocks};

/// Maximum number of a note's changes: beyond, a merge would take too long.
const MAX_CHANGES: usize = 50_000;
/// Maximum number of changes of which the text is compared with a commit's: those at the nearest times.
const MAX_COMPARED_CHANGES: usize = 24;
/// Maximum number of such comparisons for a merge.
const MAX_COMPARISONS: usize = 240;

/// A text with its letters, in order.
struct LetteredText {
    text: String,
    /// Each letter and where it begins in bytes.
    letters: Vec<(usize, NoteLetter)>,
}

impl LetteredText {
    fn read(doc: &NoteDoc, past: &NotePast, heads: &[ChangeHash]) -> Result<Option<LetteredText>, StoreError> {
        let (mut text, mut letters, mut at) = (String::new(), Vec::new(), 0);
        for (block, written) in doc.letters_at(past, heads)? {
            text.push_str(&block.text);
            for letter in written {
                let length = letter.length;
                letters.push((at, letter));
                at += length;
            }
            if at != text.len() {
                return Ok(None); // something else than letters is in it
            }
        }
        Ok(Some(LetteredText { text, letters }))
    }

    fn letter_at(&self, offset: usize) -> Option<&NoteLetter> {
        let found = self.letters.binary_search_by_key(&offset, |(at, _)| *at).ok()?;
        self.letters.get(found).map(|(_, letter)| letter)
    }
}

/// Deletes text that came both by a commit of Git and by sync. Returns the change, if there is such text.
///
/// # Errors
/// Returns an error if the document is damaged.
pub fn delete_repeated_text(
    doc: &mut NoteDoc,
    before: &[ChangeHash],
    now: UnixMillis,
    (touched, known): (&mut TouchedBlocks, &[Block]),
) -> Result<Option<Vec<u8>>, StoreError> {
    let ops = find_repeated_text(doc, before)?;
    if ops.is_empty() {
        return Ok(None);
    }
    let change = doc.commit(&ops, now.as_seconds(), Some(EXTERNAL_CHANGE_MESSAGE))?;
    touched.apply_ops(known, &ops)?;
    Ok(Some(change))
}

/// Returns the operations that delete repeated text after changes of others were merged into a note that had the heads
/// `before`. Finds nothing in a note with more than 50,000 changes.
///
/// # Errors
/// Returns an error if the document is damaged.
fn find_repeated_text(doc: &NoteDoc, before: &[ChangeHash]) -> Result<Vec<NoteOp>, StoreError> {
    let past = doc.read_past();
    if past.moments.len() > MAX_CHANGES {
        return Ok(Vec::new());
    }
    let mark_of = |change: &NoteChange| change.message.as_deref().and_then(CommitMark::from_message);
    let marks: Vec<Option<CommitMark>> = past.moments.iter().map(mark_of).collect();
    if marks.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let is_old = past.history_of(before);
    let mut comparisons = 0;
    let mut repeated: HashSet<NoteLetter> = HashSet::new();
    for (at, mark) in marks.iter().enumerate() {
        let Some(mark) = mark else { continue };
        let taken_over = &past.moments[at];
        let (is_known, knows_it) = (past.history_of(&[taken_over.hash]), past.successors_of(at));
        // Only what this merge has brought together is new.
        let is_news = |other: &usize| !(is_old[at] && is_old[*other]);
        let is_concurrent = |other: &usize| !is_known[*other] && !knows_it[*other];
        let mut others: Vec<usize> = (0..past.moments.len()).filter(is_news).filter(is_concurrent).collect();
        others.sort_by_key(|other| past.moments[*other].time.abs_diff(taken_over.time));
        for other in others.into_iter().take(MAX_COMPARED_CHANGES) {
            comparisons += 1;
            if comparisons > MAX_COMPARISONS {
                break;
            }
            let heads = [past.moments[other].hash];
            if !mark.has_content(&doc.text_at(&heads)?) {
                continue;
            }
            let typed = LetteredText::read(doc, &past, &heads)?;
            let brought = LetteredText::read(doc, &past, &[taken_over.hash])?;
            let (Some(typed), Some(brought)) = (typed, brought) else { continue };
            let stays = |letter: &NoteLetter| {
                let Some(writer) = letter.moment.filter(|writer| !is_known[*writer]) else { return false };
                marks[writer].is_none() || past.moments[writer].hash < taken_over.hash
            };
            repeated.extend(repetitions(&typed, &brought, at, stays));
            break;
        }
    }
    delete_letters(doc, &past, &repeated)
}

/// Returns the letters of the change `at` that stand at the same places in `typed`, and stay there.
fn repetitions(
    typed: &LetteredText,
    brought: &LetteredText,
    at: usize,
    stays: impl Fn(&NoteLetter) -> bool,
) -> Vec<NoteLetter> {
    let mut found = Vec::new();
    let mut take_same = |typed_range: std::ops::Range<usize>, brought_from: usize| {
        let first = brought.letters.partition_point(|(offset, _)| *offset < brought_from);
        for (offset, letter) in brought.letters.iter().skip(first) {
            let place = typed_range.start + (offset - brought_from);
            if place >= typed_range.end {
                break;
            }
            if letter.moment == Some(at) && typed.letter_at(place).is_some_and(&stays) {
                found.push(letter.clone());
            }
        }
    };
    let (mut typed_at, mut brought_at) = (0, 0);
    for edit in compute_edits(&typed.text, &brought.text) {
        take_same(typed_at..edit.at, brought_at);
        brought_at += edit.at - typed_at + edit.insert.len();
        typed_at = edit.at + edit.delete;
    }
    take_same(typed_at..typed.text.len(), brought_at);
    found
}

/// Returns the operations that delete letters, as far as they are still there.
fn delete_letters(doc: &NoteDoc, past: &NotePast, letters: &HashSet<NoteLetter>) -> Result<Vec<NoteOp>, StoreError> {
    let mut ops = Vec::new();
    if letters.is_empty() {
        return Ok(ops);
    }
    for (block, written) in doc.letters_at(past, &doc.heads())? {
        let (mut at, mut runs): (usize, Vec<(usize, usize)>) = (0, Vec::new());
        for letter in &written {
            if letters.contains(letter) {
                match runs.last_mut() {
                    Some((from, length)) if *from + *length == at => *length += letter.length,
                    _ => runs.push((at, letter.length)),
                }
            }
            at += letter.length;
        }
        // From the end, so that offsets stay right.
        ops.extend(runs.into_iter().rev().map(|(at, delete)| NoteOp::Splice {
            block: block.id,
            at,
            delete,
            insert: String::new(),
        }));
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{ActorId, Block, BlockId, DocId};

    const BLOCK: BlockId = BlockId(7);

    /// The message of a change that took over a commit with this text. The hashes are those of `git hash-object`.
    fn mark(text: &str) -> String {
        let blob = match text {
            "one TYPED\n" => "2dbee1ca093ff0e80565b371e55e9d64ea5bad33",
            _ => "5626abf0f72e58d7a153368ba57db4c673c0e171",
        };
        CommitMark { id: "a".repeat(40), blob: blob.to_owned(), author: "Ada".to_owned() }.to_message()
    }

    fn note(actor: u8) -> NoteDoc {
        let block = Block { id: BLOCK, pos: "a".to_owned(), text: "one\n".to_owned() };
        let doc = NoteDoc::import(DocId([1; 16]), &[block], ActorId::from([9; 16])).expect("a note");
        NoteDoc::load(DocId([1; 16]), &[doc.save()], ActorId::from([actor; 16])).expect("a note").doc
    }

    fn splice(at: usize, delete: usize, insert: &str) -> NoteOp {
        NoteOp::Splice { block: BLOCK, at, delete, insert: insert.to_owned() }
    }

    fn text(doc: &NoteDoc) -> String {
        doc.blocks().into_iter().map(|block| block.text).collect()
    }

    /// Merges what the other one has, and deletes what is repeated.
    fn merge(doc: &mut NoteDoc, bytes: &[u8]) -> bool {
        let before = doc.heads();
        let touched = doc.merge(bytes).expect("merged");
        let ops = find_repeated_text(doc, &before).expect("read");
        assert!(touched.is_concurrent || ops.is_empty(), "what was known to both isn't repeated");
        doc.commit(&ops, 300, None).expect("a change");
        !ops.is_empty()
    }

    #[test]
    fn text_that_came_by_git_and_by_sync_is_there_once() {
        let (mut here, mut there) = (note(1), note(2));
        here.commit(&[splice(3, 0, " TYPED")], 100, None).expect("a change");
        here.commit(&[splice(0, 0, "later ")], 150, None).expect("a change");
        // The other device has typed, too, before the commit came there.
        there.commit(&[splice(0, 0, "zero ")], 110, None).expect("a change");
        there.commit_reproducibly(&[splice(8, 0, " TYPED")], 101, &mark("one TYPED\n")).expect("a change");
        there.commit(&[splice(0, 0, "more ")], 160, None).expect("a change");
        assert_eq!(text(&there), "more zero one TYPED\n");
        let (from_here, from_there) = (here.save(), there.save());
        assert!(merge(&mut here, &from_there) && merge(&mut there, &from_here), "each finds it");
        // Both have deleted the same letters, so together they agree.
        let (from_here, from_there) = (here.save(), there.save());
        assert!(!merge(&mut here, &from_there) && !merge(&mut there, &from_here));
        assert_eq!(text(&here), text(&there));
        assert_eq!(text(&here).matches(" TYPED").count(), 1, "{}", text(&here));
        for words in ["later ", "more ", "zero ", "one"] {
            assert_eq!(text(&here).matches(words).count(), 1, "{}", text(&here));
        }
    }

    #[test]
    fn one_commit_that_two_devices_took_over_differently_is_there_once() {
        let (mut here, mut there) = (note(1), note(2));
        let message = mark("one TYPED\n");
        here.commit_reproducibly(&[splice(3, 0, " TYPED")], 101, &message).expect("a change");
        there.commit(&[splice(4, 0, "own\n")], 90, None).expect("a change");
        there.commit(&[splice(4, 4, "")], 91, None).expect("a change");
        there.commit_reproducibly(&[splice(3, 0, " TYPED")], 101, &message).expect("a change");
        let (from_here, from_there) = (here.save(), there.save());
        merge(&mut here, &from_there);
        merge(&mut there, &from_here);
        let (from_here, from_there) = (here.save(), there.save());
        merge(&mut here, &from_there);
        merge(&mut there, &from_here);
        assert_eq!((text(&here), text(&there)), ("one TYPED\n".to_owned(), "one TYPED\n".to_owned()));
    }

    #[test]
    fn text_that_stands_there_only_once_stays() {
        // The text of a commit is also the one that another device had: but what it has is the old letters, which were
        // deleted here and then brought back by the commit.
        let (mut here, mut there) = (note(1), note(2));
        here.commit(&[splice(0, 0, "x")], 100, None).expect("a change");
        here.commit(&[splice(0, 1, "")], 101, None).expect("a change");
        there.commit(&[splice(0, 3, "")], 100, None).expect("a change");
        there.commit_reproducibly(&[splice(0, 0, "one")], 102, &mark("one\n")).expect("a change");
        let from_here = here.save();
        assert!(!merge(&mut there, &from_here));
        assert_eq!(text(&there), "one\n");
        // Nor is it a repetition if the text differs.
        let (mut here, mut there) = (note(1), note(2));
        here.commit(&[splice(3, 0, " TYPED!")], 100, None).expect("a change");
        there.commit_reproducibly(&[splice(3, 0, " TYPED")], 101, &mark("one TYPED\n")).expect("a change");
        let from_here = here.save();
        assert!(!merge(&mut there, &from_here));
        assert_eq!(text(&there).matches("TYPED").count(), 2, "{}", text(&there));
    }
}
