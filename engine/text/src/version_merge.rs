//! Merges two versions of a note that commits have, by the edits that its document has recorded. So a change that
//! reached both versions by sync is one change, where three texts show two additions.

use crate::history::AGENT_CHANGE_MESSAGE;
use crate::note_merge::{has_repetition, merge_notes, takes_back};
use store::{ChangeHash, NoteChange, NoteDoc, NotePast, StoreError};

/// Maximum number of a note's changes: beyond, a merge would take too long.
const MAX_CHANGES: usize = 50_000;
/// Maximum number of changes before a commit after which the note's text is compared with the commit's.
const MAX_COMPARED_CHANGES: usize = 24;

/// A version of a note's file that a commit has.
#[derive(Clone, Copy, Debug)]
pub struct CommittedText<'a> {
    /// The text.
    pub text: &'a str,
    /// Heads of the document that are recorded for it, as hexadecimal numbers separated by commas. They may be wrong.
    pub heads: Option<&'a str>,
    /// When it was committed at the latest, in seconds since 1970.
    pub time: i64,
}

/// The versions of a note that are merged.
#[derive(Clone, Copy, Debug)]
pub struct MergedVersions<'a> {
    /// The version that Git takes for the common one; `None` if both sides have added the note.
    pub base: Option<CommittedText<'a>>,
    /// The version of one side.
    pub ours: CommittedText<'a>,
    /// The version of the other side.
    pub theirs: CommittedText<'a>,
}

/// A document's changes, and the question whether there's no more time to compare texts.
struct VersionSearch<'a> {
    doc: &'a NoteDoc,
    past: NotePast,
    is_over: &'a dyn Fn() -> bool,
}

/// Merges two versions by the edits since the last one that both know. `None` if the document doesn't know both, if
/// they have changed the same part, or if it isn't clear which edits are whose.
///
/// # Errors
/// Returns an error if the document is damaged.
pub fn merge_versions(
    doc: &NoteDoc,
    versions: MergedVersions<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<String>, StoreError> {
    let search = VersionSearch { doc, past: doc.read_past(), is_over };
    if search.past.moments.len() > MAX_CHANGES {
        return Ok(None);
    }
    let (ours, theirs) = (search.find(versions.ours)?, search.find(versions.theirs)?);
    let bases = versions.base.map_or(Ok(Vec::new()), |base| search.find(base))?;
    let mut merged: Option<String> = None;
    // The note may have had a text more than once. Then all of these versions must lead to the same.
    for (one, other) in ours.iter().flat_map(|one| theirs.iter().map(move |other| (one, other))) {
        let found = search.merge(versions, &bases, (one, other))?;
        if is_over() || found.is_none() || merged.is_some() && merged != found {
            return Ok(None);
        }
        merged = found;
    }
    Ok(merged)
}

impl VersionSearch<'_> {
    /// Returns the heads of the document at a commit's text: those recorded, or else all that are found before it.
    fn find(&self, version: CommittedText<'_>) -> Result<Vec<Vec<ChangeHash>>, StoreError> {
        let parse =
            |heads: &str| heads.split(',').map(|head| head.parse::<ChangeHash>().ok()).collect::<Option<Vec<_>>>();
        let is_known = |heads: &Vec<ChangeHash>| heads.iter().all(|head| self.doc.contains_change(head));
        if let Some(heads) = version.heads.and_then(parse).filter(is_known)
            && self.doc.text_at(&heads)? == version.text
        {
            return Ok(vec![heads]);
        }
        let moments = &self.past.moments;
        let before = (0..moments.len()).rev().filter(|at| moments[*at].time <= version.time);
        let mut found = Vec::new();
        for at in before.take(MAX_COMPARED_CHANGES) {
            // What the author of a change knew, and what was there by then on all devices.
            for heads in [vec![moments[at].hash], self.past.heads_after(at + 1)] {
                if (self.is_over)() {
                    return Ok(Vec::new());
                }
                if !found.contains(&heads) && self.doc.text_at(&heads)? == version.text {
                    found.push(heads);
                }
            }
        }
        Ok(found)
    }

    fn merge(
        &self,
        MergedVersions { base, ours, theirs }: MergedVersions<'_>,
        bases: &[Vec<ChangeHash>],
        (one, other): (&[ChangeHash], &[ChangeHash]),
    ) -> Result<Option<String>, StoreError> {
        let (one, other) = (self.past.history_of(one), self.past.history_of(other));
        let common: Vec<bool> = one.iter().zip(&other).map(|(one, other)| *one && *other).collect();
        let all: Vec<bool> = one.iter().zip(&other).map(|(one, other)| *one || *other).collect();
        // A cherry-picked commit, or one that's taken back, has another base than what both sides know.
        let is_in_common = |heads: &Vec<ChangeHash>| {
            self.past.history_of(heads).iter().zip(&common).all(|(is_in, is_common)| *is_common || !is_in)
        };
        let is_common_base = base.is_none() || bases.iter().any(is_in_common);
        // When Git or another program replaced the text, it also took edits back that nobody wanted deleted, for
        // instance those of another branch.
        let mut new = self.past.moments.iter().zip(common.iter().zip(&all)).filter(|(_, (common, all))| common != all);
        if is_common_base && new.all(|(change, _)| is_edit(change)) {
            let start = self.doc.text_at(&self.past.heads_of(&common))?;
            // An edit doesn't say so if it's of another program and of the user at once. Deleting all that both had
            // added is then a question, too.
            let is_taken_back = |base: CommittedText<'_>| {
                takes_back(base.text, &start, ours.text) || takes_back(base.text, &start, theirs.text)
            };
            if base.is_some_and(is_taken_back) {
                return Ok(None);
            }
            let both = self.doc.text_at(&self.past.heads_of(&all))?;
            return Ok(merge_notes(&start, ours.text, theirs.text).filter(|merged| *merged == both));
        }
        let merged = base.and_then(|base| merge_notes(base.text, ours.text, theirs.text));
        Ok(merged.filter(|merged| !has_repetition(merged, ours.text, theirs.text)))
    }
}

/// Returns whether a change was made in the program, by a person or an agent.
fn is_edit(change: &NoteChange) -> bool {
    change.message.as_deref().is_none_or(|message| message == AGENT_CHANGE_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::EXTERNAL_CHANGE_MESSAGE;
    use proptest::prelude::*;
    use store::{ActorId, Block, BlockId, DocId, NoteOp};

    const BLOCK: BlockId = BlockId(7);

    fn note(text: &str) -> NoteDoc {
        let block = Block { id: BLOCK, pos: "a".to_owned(), text: text.to_owned() };
        let doc = NoteDoc::import(DocId([1; 16]), &[block], ActorId::from([9; 16])).expect("a note");
        copy(&doc, 1)
    }

    fn copy(doc: &NoteDoc, actor: u8) -> NoteDoc {
        NoteDoc::load(DocId([1; 16]), &[doc.save()], ActorId::from([actor; 16])).expect("a note").doc
    }

    fn text(doc: &NoteDoc) -> String {
        doc.blocks().into_iter().map(|block| block.text).collect()
    }

    /// Replaces the first place of a text.
    fn replace(doc: &mut NoteDoc, time: i64, from: &str, to: &str, message: Option<&str>) {
        let at = text(doc).find(from).expect("it's there");
        let op = NoteOp::Splice { block: BLOCK, at, delete: from.len(), insert: to.to_owned() };
        doc.commit(&[op], time, message).expect("a change");
    }

    fn at(text: &str, time: i64) -> CommittedText<'_> {
        CommittedText { text, heads: None, time }
    }

    fn merge(doc: &NoteDoc, base: Option<&str>, ours: (&str, i64), theirs: (&str, i64)) -> Option<String> {
        let base = base.map(|base| at(base, 10));
        let versions = MergedVersions { base, ours: at(ours.0, ours.1), theirs: at(theirs.0, theirs.1) };
        merge_versions(doc, versions, &|| false).expect("read")
    }

    /// Two devices that both have what one of them added, and have then changed it.
    fn devices() -> (NoteDoc, [String; 4]) {
        let mut here = note("Plan.\n");
        let base = text(&here);
        replace(&mut here, 20, "Plan.\n", "Plan.\nOne.\nTwo.\nThree.\n", None);
        let mut there = copy(&here, 2);
        replace(&mut here, 30, "One", "First", None);
        replace(&mut there, 31, "Three", "Third", None);
        let texts = [text(&here), text(&there)];
        here.merge(&there.save()).expect("merged");
        let [ours, theirs] = texts;
        let both = text(&here);
        (here, [base, ours, theirs, both])
    }

    #[test]
    fn what_both_have_by_sync_is_no_conflict() {
        let (doc, [base, ours, theirs, both]) = devices();
        assert_eq!(merge_notes(&base, &ours, &theirs), None, "for three texts it is one");
        assert_eq!(both, "Plan.\nFirst.\nTwo.\nThird.\n");
        let merged = |ours: &str, theirs: &str| merge(&doc, Some(&base), (ours, 40), (theirs, 40));
        assert_eq!(merged(&ours, &theirs).as_ref(), Some(&both));
        assert_eq!(merged(&theirs, &ours).as_ref(), Some(&both));
        // One side has all of the other.
        assert_eq!(merged(&both, &theirs).as_ref(), Some(&both));
        // Git knows no common version of a note that both sides have added.
        assert_eq!(merge(&doc, None, (&ours, 40), (&theirs, 40)).as_ref(), Some(&both));
        // What the document doesn't know, or not before the commit.
        assert_eq!(merged(&ours, "Plan.\nOther.\n"), None);
        assert_eq!(merge(&doc, Some(&base), (&ours, 40), (&theirs, 30)), None);
        assert_eq!(merge(&doc, Some("Other.\n"), (&ours, 40), (&theirs, 40)), None);
    }

    #[test]
    fn the_same_sentence_is_a_conflict() {
        let (mut doc, [base, ..]) = devices();
        let mut other = copy(&doc, 3);
        replace(&mut doc, 50, "Two", "2", None);
        replace(&mut other, 51, "Two", "Zwei", None);
        let (ours, theirs) = (text(&doc), text(&other));
        doc.merge(&other.save()).expect("merged");
        assert_eq!(merge(&doc, Some(&base), (&ours, 60), (&theirs, 60)), None);
    }

    #[test]
    fn what_git_takes_back_is_not_deleted() {
        // Two branches on one device: the switch takes the edit of the first one out of the document.
        let base = "Plan.\nOne.\nTwo.\n";
        let mut doc = note(base);
        replace(&mut doc, 20, "One", "First", None);
        let theirs = text(&doc);
        replace(&mut doc, 30, "First", "One", Some("commit of Git"));
        replace(&mut doc, 40, "Two", "Second", None);
        let ours = text(&doc);
        let both = "Plan.\nFirst.\nSecond.\n";
        assert_eq!(merge(&doc, Some(base), (&ours, 45), (&theirs, 45)).as_deref(), Some(both));
        // An edit of the user may have taken another one back, too.
        let mut typed = note(base);
        replace(&mut typed, 20, "Two", "More.\nTwo", None);
        let longer = text(&typed);
        replace(&mut typed, 30, &longer, &format!("New.\n{base}"), None);
        let shorter = text(&typed);
        assert_eq!(merge(&typed, Some(base), (&shorter, 45), (&longer, 45)), None);
        // Without a version that Git takes for the common one, nothing is decided.
        assert_eq!(merge(&doc, None, (&ours, 45), (&theirs, 45)), None);
        // Nor if a text was there twice, and both times lead to another result.
        let mut doc = note(base);
        replace(&mut doc, 20, "One", "First", None);
        let theirs = text(&doc);
        replace(&mut doc, 21, "Two", "Second", None);
        let ours = text(&doc);
        replace(&mut doc, 30, ours.as_str(), base, Some(EXTERNAL_CHANGE_MESSAGE));
        replace(&mut doc, 40, base, &ours, None);
        assert_eq!(merge(&doc, None, (&ours, 45), (&theirs, 45)), None);
        // A record says which one it is.
        let recorded = |time: i64| {
            let past = doc.read_past();
            let moment = past.moments.iter().find(|moment| moment.time == time).expect("a change");
            let heads = moment.hash.to_string();
            let ours = CommittedText { text: &ours, heads: Some(&heads), time: 45 };
            merge_versions(&doc, MergedVersions { base: None, ours, theirs: at(&theirs, 45) }, &|| false).expect("read")
        };
        assert_eq!((recorded(21).as_ref(), recorded(40)), (Some(&ours), None));
        // A wrong one is none.
        assert_eq!(recorded(20), None);
    }

    proptest! {
        #[test]
        fn a_merge_without_conflict_is_that_of_the_document(
            shared in proptest::collection::vec((0..8_usize, "[a-c]{1,3}"), 0..4),
            ours in proptest::collection::vec((0..10_usize, "[d-f]{1,3}"), 1..4),
            theirs in proptest::collection::vec((0..10_usize, "[g-i]{1,3}"), 1..4),
        ) {
            // Sentences of one word; an edit replaces, deletes or adds one.
            let edit = |doc: &mut NoteDoc, time: i64, (place, word): &(usize, String)| {
                let old = text(doc);
                let ends: Vec<usize> = old.match_indices('\n').map(|(at, _)| at + 1).collect();
                let line = place % ends.len();
                let start = if line == 0 { 0 } else { ends[line - 1] };
                let (delete, insert) = match place % 3 {
                    0 => (0, format!("{word}.\n")),
                    1 => (ends[line] - start - 1, format!("{word}.")),
                    _ => (ends[line] - start, String::new()),
                };
                if ends.len() > 1 || place % 3 != 2 {
                    doc.commit(&[NoteOp::Splice { block: BLOCK, at: start, delete, insert }], time, None)
                        .expect("a change");
                }
            };
            let base = "One.\nTwo.\nThree.\nFour.\nFive.\nSix.\n";
            let mut here = note(base);
            shared.iter().zip(11..).for_each(|(change, time)| edit(&mut here, time, change));
            let mut there = copy(&here, 2);
            ours.iter().zip(20..).for_each(|(change, time)| edit(&mut here, time, change));
            theirs.iter().zip(30..).for_each(|(change, time)| edit(&mut there, time, change));
            let (heads, texts) = ([here.heads(), there.heads()], [text(&here), text(&there)]);
            here.merge(&there.save()).expect("merged");
            let names = heads.map(|heads| heads.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
            let version = |side: usize| CommittedText { text: &texts[side], heads: Some(&names[side]), time: 50 };
            let versions = MergedVersions { base: Some(at(base, 10)), ours: version(0), theirs: version(1) };
            let merged = merge_versions(&here, versions, &|| false).expect("read");
            let swapped = MergedVersions { ours: versions.theirs, theirs: versions.ours, ..versions };
            prop_assert_eq!(&merge_versions(&here, swapped, &|| false).expect("read"), &merged);
            if let Some(merged) = merged {
                prop_assert_eq!(&merged, &text(&here));
                // Each side's own lines are there as often as on that side.
                for (side, changes) in [&ours, &theirs].into_iter().enumerate() {
                    for line in changes.iter().map(|(_, word)| format!("{word}.\n")) {
                        let count = |text: &str| text.split_inclusive('\n').filter(|of| *of == line).count();
                        prop_assert_eq!(count(&merged), count(&texts[side]), "{:?} in {:?}", line, merged);
                    }
                }
            }
        }
    }
}
