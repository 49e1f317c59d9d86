//! The smallest edits between two texts, and how edits pass through each other. Pure text; offsets are bytes.

use imara_diff::{Algorithm, Diff, InternedInput, TokenSource};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Replaces `delete` bytes at `at` by `insert`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// Where, in bytes.
    pub at: usize,
    /// How many bytes go.
    pub delete: usize,
    /// What comes.
    pub insert: String,
}

/// Parts up to this size are compared by words and characters, larger ones by lines first; what then is still larger
/// only loses what both have in common at its ends.
const REFINED: usize = 20_000;

/// The edits that make `new` of `old`: in order, at offsets of `old`, none touching another.
pub fn difference(old: &str, new: &str) -> Vec<Splice> {
    if old == new {
        return Vec::new();
    }
    // The common case, one edit in one place, needs no diff.
    let (from, to) = trim(old, new);
    let (old_part, new_part) = (&old[from.clone()], &new[to]);
    if old_part.is_empty() || new_part.is_empty() {
        return vec![Splice { at: from.start, delete: from.len(), insert: new_part.to_owned() }];
    }
    let mut splices = Vec::new();
    if old_part.len() + new_part.len() <= REFINED {
        refine(old_part, new_part, from.start, &mut splices);
        return splices;
    }
    let input = InternedInput::new(old_part, new_part);
    let mut lines = Diff::compute(Algorithm::Histogram, &input);
    lines.postprocess_lines(&input);
    let (old_starts, new_starts) = (starts(old_part.split_inclusive('\n')), starts(new_part.split_inclusive('\n')));
    for hunk in lines.hunks() {
        let before = old_starts[hunk.before.start as usize]..old_starts[hunk.before.end as usize];
        let after = new_starts[hunk.after.start as usize]..new_starts[hunk.after.end as usize];
        refine(&old_part[before.clone()], &new_part[after], from.start + before.start, &mut splices);
    }
    splices
}

/// A text as pieces that are compared whole.
struct Pieces<'a>(Vec<&'a str>);

impl<'a> Pieces<'a> {
    fn words(text: &'a str) -> Pieces<'a> {
        let mut pieces = Vec::new();
        let mut start = 0;
        let mut inside = false;
        for (at, letter) in text.char_indices() {
            let goes_on = inside && letter.is_alphanumeric();
            if at > start && !goes_on {
                pieces.push(&text[start..at]);
                start = at;
            }
            inside = letter.is_alphanumeric();
        }
        if start < text.len() {
            pieces.push(&text[start..]);
        }
        Pieces(pieces)
    }

    fn characters(text: &'a str) -> Pieces<'a> {
        let ends = text.char_indices().map(|(at, letter)| (at, at + letter.len_utf8()));
        Pieces(ends.map(|(at, end)| &text[at..end]).collect())
    }
}

impl<'a> TokenSource for &Pieces<'a> {
    type Token = &'a str;
    type Tokenizer = std::vec::IntoIter<&'a str>;

    fn tokenize(&self) -> Self::Tokenizer {
        self.0.clone().into_iter()
    }

    fn estimate_tokens(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// Splices of a part: first by words, where a rare one shows what belongs together, then by characters.
fn refine(old: &str, new: &str, offset: usize, splices: &mut Vec<Splice>) {
    if old.len() + new.len() > REFINED {
        whole(old, new, offset, splices);
        return;
    }
    hunks(&Pieces::words(old), &Pieces::words(new), Algorithm::Histogram, |before, after| {
        let (old, new, offset) = (&old[before.clone()], &new[after], offset + before.start);
        hunks(&Pieces::characters(old), &Pieces::characters(new), Algorithm::Myers, |before, after| {
            whole(&old[before.clone()], &new[after], offset + before.start, splices);
        });
    });
}

/// Calls `each` with the byte ranges of the words that differ.
pub(crate) fn word_hunks(old: &str, new: &str, each: impl FnMut(Range<usize>, Range<usize>)) {
    hunks(&Pieces::words(old), &Pieces::words(new), Algorithm::Histogram, each);
}

/// Calls `each` with the byte ranges of what differs.
fn hunks(old: &Pieces<'_>, new: &Pieces<'_>, by: Algorithm, mut each: impl FnMut(Range<usize>, Range<usize>)) {
    let found = Diff::compute(by, &InternedInput::new(old, new));
    let (old, new) = (starts(old.0.iter().copied()), starts(new.0.iter().copied()));
    for hunk in found.hunks() {
        let before = old[hunk.before.start as usize]..old[hunk.before.end as usize];
        let after = new[hunk.after.start as usize]..new[hunk.after.end as usize];
        each(before, after);
    }
}

/// One splice, without what both have in common at its ends.
fn whole(old: &str, new: &str, offset: usize, splices: &mut Vec<Splice>) {
    let (from, to) = trim(old, new);
    if !from.is_empty() || !to.is_empty() {
        splices.push(Splice { at: offset + from.start, delete: from.len(), insert: new[to].to_owned() });
    }
}

fn starts<'a>(pieces: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut at = 0;
    let mut starts = vec![0];
    for piece in pieces {
        at += piece.len();
        starts.push(at);
    }
    starts
}

/// What differs once the common beginning and end are left out, as ranges of `old` and of `new`.
pub fn trim(old: &str, new: &str) -> (Range<usize>, Range<usize>) {
    let mut head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    while !old.is_char_boundary(head) || !new.is_char_boundary(head) {
        head -= 1;
    }
    let (old_rest, new_rest) = (&old.as_bytes()[head..], &new.as_bytes()[head..]);
    let mut tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    while !old.is_char_boundary(old.len() - tail) || !new.is_char_boundary(new.len() - tail) {
        tail -= 1;
    }
    (head..old.len() - tail, head..new.len() - tail)
}

/// Performs edits as [`difference`] gives them.
pub fn perform(text: &str, splices: &[Splice]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        out.push_str(&text[at..splice.at]);
        out.push_str(&splice.insert);
        at = splice.at + splice.delete;
    }
    out.push_str(&text[at..]);
    out
}

/// Carries `theirs`, edits of a base, over to a text that `ours` already made of the same base (as two replicas of a
/// CRDT would merge): what they delete is deleted where it is still there, what they insert stands where it stood.
/// The answer is in order, at offsets of our text.
pub fn carry(theirs: &[Splice], ours: &[Splice]) -> Vec<Splice> {
    let mut carried = Vec::new();
    for splice in theirs {
        let mut at = splice.at;
        let end = splice.at + splice.delete;
        let mut insert = Some(splice.insert.clone());
        // Pieces of the deleted range that we kept, each moved to where it stands in our text.
        for kept in kept_pieces(at..end, ours) {
            let piece = Splice {
                at: through(kept.start, ours, true),
                delete: kept.len(),
                insert: insert.take().unwrap_or_default(),
            };
            at = kept.end;
            carried.push(piece);
        }
        if let Some(insert) = insert.filter(|insert| !insert.is_empty()) {
            carried.push(Splice { at: through(at, ours, false), delete: 0, insert });
        }
    }
    carried
}

fn kept_pieces(range: Range<usize>, ours: &[Splice]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    for splice in ours.iter().filter(|splice| splice.at <= range.end && splice.at + splice.delete >= range.start) {
        let cut = splice.at.clamp(at, range.end);
        if cut > at {
            pieces.push(at..cut);
        }
        at = at.max((splice.at + splice.delete).min(range.end));
    }
    if at < range.end {
        pieces.push(at..range.end);
    }
    pieces
}

/// Where a base offset stands in our text. `behind`: after what we inserted right there.
fn through(offset: usize, ours: &[Splice], behind: bool) -> usize {
    let mut shift = 0_isize;
    for splice in ours {
        let end = splice.at + splice.delete;
        if splice.at > offset || (splice.at == offset && !behind) {
            break;
        }
        if end > offset {
            // Inside what we deleted: stand right after what we put there.
            shift += to_isize(splice.insert.len()) - to_isize(offset - splice.at);
            break;
        }
        shift += to_isize(splice.insert.len()) - to_isize(splice.delete);
    }
    usize::try_from(to_isize(offset) + shift).unwrap_or(0)
}

fn to_isize(value: usize) -> isize {
    isize::try_from(value).unwrap_or(isize::MAX)
}

/// Whether `text` was made of `newer` rather than of `older`, of which `newer` was made: nearly all that `newer`
/// brought is there, and less had to be changed. In doubt the answer is no: the same words twice are better than none.
pub(crate) fn stands_on(text: &str, newer: &str, older: &str) -> bool {
    let mut brought: Vec<Range<usize>> = Vec::new();
    let mut shift = 0;
    for splice in difference(older, newer) {
        let start = splice.at + brought.iter().map(Range::len).sum::<usize>() - shift;
        brought.push(start..start + splice.insert.len());
        shift += splice.delete;
    }
    let changes = difference(newer, text);
    let missing = |range: &Range<usize>| -> usize {
        let gone = changes.iter().map(|change| change.at.max(range.start)..(change.at + change.delete).min(range.end));
        gone.map(|gone| gone.len()).sum()
    };
    let one = |splice: &Splice| splice.delete + splice.insert.len();
    let size = |splices: &[Splice]| -> usize { splices.iter().map(one).sum() };
    let lost: usize = brought.iter().map(missing).sum();
    lost * 8 <= brought.iter().map(Range::len).sum() && size(&changes) < size(&difference(older, text))
}

/// Where an offset (a caret, a mark) stands after an edit. `after`: an insertion right at it pushes it along.
pub fn moved(offset: usize, at: usize, delete: usize, insert: usize, after: bool) -> usize {
    if offset < at || (offset == at && !(after && delete == 0)) {
        offset
    } else if offset >= at + delete {
        offset - delete + insert
    } else {
        at + insert
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn smallest() {
        let splices = difference("one\ntwo\nthree\nfour\n", "one\nTwo\nthree\nfour!\n");
        assert_eq!(
            splices,
            [Splice { at: 4, delete: 1, insert: "T".into() }, Splice { at: 18, delete: 0, insert: "!".into() }]
        );
    }

    #[test]
    fn both_sides_stay() {
        let base = "alpha\nbeta\ngamma\n";
        let ours = difference(base, "alpha!\nbeta\ngamma\n");
        let theirs = difference(base, "alpha\nbeta\ndelta\ngamma\n");
        assert_eq!(perform("alpha!\nbeta\ngamma\n", &carry(&theirs, &ours)), "alpha!\nbeta\ndelta\ngamma\n");
    }

    #[test]
    fn what_a_text_stands_on() {
        assert!(stands_on("one two three four", "one two three", "one"));
        assert!(stands_on("zero one two", "one two", "one two three"));
        assert!(!stands_on("one four", "one two three", "one"));
        assert!(!stands_on("theirs\n", "ours\n", ""));
        assert!(!stands_on("one", "one two", "one"));
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "b\n", "\u{e4}", "c c\n", "\u{1f600}", "\r\n", "x"]),
            0..30,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn difference_makes_the_new_text(old in text(), new in text()) {
            prop_assert_eq!(perform(&old, &difference(&old, &new)), new);
        }

        #[test]
        fn carried_edits_keep_what_both_sides_wrote(
            base in text(),
            edits in prop::collection::vec((0_usize..40, 0_usize..5), 2..4),
        ) {
            // Each side deletes a range and inserts a letter of its own: both letters must be in the result once.
            let side = |(at, delete): (usize, usize), letter: &str| {
                let mut chars: Vec<String> = base.chars().map(String::from).collect();
                let at = at.min(chars.len());
                let end = (at + delete).min(chars.len());
                chars.splice(at..end, [letter.to_owned()]);
                chars.concat()
            };
            let (ours, theirs) = (side(edits[0], "O"), side(edits[1], "T"));
            let merged = perform(&ours, &carry(&difference(&base, &theirs), &difference(&base, &ours)));
            prop_assert_eq!(merged.matches('O').count(), 1, "{:?} + {:?} = {:?}", ours, theirs, merged);
            prop_assert_eq!(merged.matches('T').count(), 1, "{:?} + {:?} = {:?}", ours, theirs, merged);
        }
    }
}
