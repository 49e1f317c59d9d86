//! Computes minimal edits between two texts, and rebases edits over each other. Pure text; offsets are bytes.

use imara_diff::{Algorithm, Diff, InternedInput, TokenSource};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An edit that replaces `delete` bytes at `at` by `insert`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextEdit {
    /// Where the edit starts, in bytes.
    pub at: usize,
    /// Number of bytes to delete.
    pub delete: usize,
    /// The inserted text.
    pub insert: String,
}

/// Maximum size of parts that are compared by words and characters. Larger ones are compared by lines first; parts that
/// are still larger then are only trimmed by their common prefix and suffix.
const MAX_REFINED_BYTES: usize = 20_000;
/// Maximum size of parts that are compared by words.
const MAX_WORD_COMPARED_BYTES: usize = 4 << 20;

/// Returns the edits that turn `old` into `new`: in order, at offsets of `old`, not touching each other.
pub fn compute_edits(old: &str, new: &str) -> Vec<TextEdit> {
    if old == new {
        return Vec::new();
    }
    // The common case, one edit in one place, needs no diff.
    let (from, to) = trim_common(old, new);
    let (old_part, new_part) = (&old[from.clone()], &new[to]);
    if old_part.is_empty() || new_part.is_empty() {
        return vec![TextEdit { at: from.start, delete: from.len(), insert: new_part.to_owned() }];
    }
    let mut splices = Vec::new();
    if old_part.len() + new_part.len() <= MAX_REFINED_BYTES {
        refine_edits(old_part, new_part, from.start, &mut splices);
        return splices;
    }
    let input = InternedInput::new(old_part, new_part);
    let mut lines = Diff::compute(Algorithm::Histogram, &input);
    lines.postprocess_lines(&input);
    let (old_starts, new_starts) =
        (piece_starts(old_part.split_inclusive('\n')), piece_starts(new_part.split_inclusive('\n')));
    for hunk in lines.hunks() {
        let before = old_starts[hunk.before.start as usize]..old_starts[hunk.before.end as usize];
        let after = new_starts[hunk.after.start as usize]..new_starts[hunk.after.end as usize];
        refine_edits(&old_part[before.clone()], &new_part[after], from.start + before.start, &mut splices);
    }
    splices
}

/// A text as pieces that are compared as units.
struct TextPieces<'a>(Vec<&'a str>);

impl<'a> TextPieces<'a> {
    fn split_words(text: &'a str) -> TextPieces<'a> {
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
        TextPieces(pieces)
    }

    fn split_characters(text: &'a str) -> TextPieces<'a> {
        let ends = text.char_indices().map(|(at, letter)| (at, at + letter.len_utf8()));
        TextPieces(ends.map(|(at, end)| &text[at..end]).collect())
    }
}

impl<'a> TokenSource for &TextPieces<'a> {
    type Token = &'a str;
    type Tokenizer = std::vec::IntoIter<&'a str>;

    fn tokenize(&self) -> Self::Tokenizer {
        self.0.clone().into_iter()
    }

    fn estimate_tokens(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// Computes the edits of a part: first by words, where rare words show what corresponds, then by characters.
fn refine_edits(old: &str, new: &str, offset: usize, splices: &mut Vec<TextEdit>) {
    if old.len() + new.len() > MAX_REFINED_BYTES {
        push_trimmed_edit(old, new, offset, splices);
        return;
    }
    for_each_hunk(
        &TextPieces::split_words(old),
        &TextPieces::split_words(new),
        Algorithm::Histogram,
        |before, after| {
            let (old, new, offset) = (&old[before.clone()], &new[after], offset + before.start);
            for_each_hunk(
                &TextPieces::split_characters(old),
                &TextPieces::split_characters(new),
                Algorithm::Myers,
                |before, after| {
                    push_trimmed_edit(&old[before.clone()], &new[after], offset + before.start, splices);
                },
            );
        },
    );
}

/// Calls `each` with the byte ranges of the differing words.
pub(crate) fn for_each_word_hunk(old: &str, new: &str, each: impl FnMut(Range<usize>, Range<usize>)) {
    for_each_hunk(&TextPieces::split_words(old), &TextPieces::split_words(new), Algorithm::Histogram, each);
}

/// Calls `each` with the byte ranges of each difference.
fn for_each_hunk(
    old: &TextPieces<'_>,
    new: &TextPieces<'_>,
    by: Algorithm,
    mut each: impl FnMut(Range<usize>, Range<usize>),
) {
    let found = Diff::compute(by, &InternedInput::new(old, new));
    let (old, new) = (piece_starts(old.0.iter().copied()), piece_starts(new.0.iter().copied()));
    for hunk in found.hunks() {
        let before = old[hunk.before.start as usize]..old[hunk.before.end as usize];
        let after = new[hunk.after.start as usize]..new[hunk.after.end as usize];
        each(before, after);
    }
}

/// Adds one edit, without the common prefix and suffix.
fn push_trimmed_edit(old: &str, new: &str, offset: usize, splices: &mut Vec<TextEdit>) {
    let (from, to) = trim_common(old, new);
    if !from.is_empty() || !to.is_empty() {
        splices.push(TextEdit { at: offset + from.start, delete: from.len(), insert: new[to].to_owned() });
    }
}

fn piece_starts<'a>(pieces: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut at = 0;
    let mut starts = vec![0];
    for piece in pieces {
        at += piece.len();
        starts.push(at);
    }
    starts
}

/// Returns the ranges of `old` and `new` without their common prefix and suffix.
pub fn trim_common(old: &str, new: &str) -> (Range<usize>, Range<usize>) {
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

/// Applies edits as [`compute_edits`] returns them.
pub fn apply_edits(text: &str, splices: &[TextEdit]) -> String {
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

/// Transforms `theirs`, edits of a base, for a text that `ours` already made from the same base (as two replicas of a
/// CRDT would merge): their deletions apply to text that still exists, their insertions keep their place. The result is
/// in ascending order, at offsets of our text.
pub fn rebase_edits(theirs: &[TextEdit], ours: &[TextEdit]) -> Vec<TextEdit> {
    let mut carried = Vec::new();
    for splice in theirs {
        let mut at = splice.at;
        let end = splice.at + splice.delete;
        let mut insert = Some(splice.insert.clone());
        // Parts of the deleted range that we kept, at their offsets in our text.
        for kept in surviving_ranges(at..end, ours) {
            let piece = TextEdit {
                at: map_offset(kept.start, ours, true),
                delete: kept.len(),
                insert: insert.take().unwrap_or_default(),
            };
            at = kept.end;
            carried.push(piece);
        }
        if let Some(insert) = insert.filter(|insert| !insert.is_empty()) {
            carried.push(TextEdit { at: map_offset(at, ours, false), delete: 0, insert });
        }
    }
    carried
}

fn surviving_ranges(range: Range<usize>, ours: &[TextEdit]) -> Vec<Range<usize>> {
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

/// Maps a base offset to our text. `behind`: after text that we inserted there.
fn map_offset(offset: usize, ours: &[TextEdit], behind: bool) -> usize {
    let mut shift = 0_isize;
    for splice in ours {
        let end = splice.at + splice.delete;
        if splice.at > offset || (splice.at == offset && !behind) {
            break;
        }
        if end > offset {
            // Inside text that we deleted: place it right after our insertion.
            shift += to_isize(splice.insert.len()) - to_isize(offset - splice.at);
            break;
        }
        shift += to_isize(splice.insert.len()) - to_isize(splice.delete);
    }
    to_usize(to_isize(offset) + shift)
}

fn to_usize(value: isize) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn to_isize(value: usize) -> isize {
    isize::try_from(value).unwrap_or(isize::MAX)
}

/// Returns whether `text` was made from `newer` rather than from `older`, the base of `newer`. That's the case if it
/// contains nearly all additions of `newer` and needs fewer changes. In doubt the answer is no, since duplicated text
/// is better than lost text.
pub fn is_based_on(text: &str, newer: &str, older: &str) -> bool {
    let mut brought: Vec<Range<usize>> = Vec::new();
    let mut shift = 0;
    for splice in compute_edits(older, newer) {
        let start = splice.at + brought.iter().map(Range::len).sum::<usize>() - shift;
        brought.push(start..start + splice.insert.len());
        shift += splice.delete;
    }
    let changes = compute_edits(newer, text);
    let missing = |range: &Range<usize>| -> usize {
        let gone = changes.iter().map(|change| change.at.max(range.start)..(change.at + change.delete).min(range.end));
        gone.map(|gone| gone.len()).sum()
    };
    let one = |splice: &TextEdit| splice.delete + splice.insert.len();
    let size = |splices: &[TextEdit]| -> usize { splices.iter().map(one).sum() };
    let lost: usize = brought.iter().map(missing).sum();
    lost * 8 <= brought.iter().map(Range::len).sum() && size(&changes) < size(&compute_edits(older, text))
}

/// Origin of a piece of text that was made from a base: its range, and its offset in the base if it's from there.
struct PieceOrigin {
    range: Range<usize>,
    base: Option<usize>,
}

/// Returns the origin of each piece of the text that `edits` make from a base of this length.
fn piece_origins(edits: &[TextEdit], base: usize) -> Vec<PieceOrigin> {
    let (mut origins, mut at, mut from) = (Vec::new(), 0, 0);
    let mut push = |length: usize, base: Option<usize>| {
        if length > 0 {
            origins.push(PieceOrigin { range: at..at + length, base });
            at += length;
        }
    };
    for edit in edits {
        push(edit.at - from, Some(from));
        push(edit.insert.len(), None);
        from = edit.at + edit.delete;
    }
    push(base - from, Some(from));
    origins
}

/// Returns the sorted items that overlap a range, each with the overlap.
fn overlapping<'a, T>(
    all: &'a [T],
    of: impl Fn(&T) -> Range<usize> + Copy + 'a,
    range: Range<usize>,
) -> impl Iterator<Item = (&'a T, Range<usize>)> {
    let first = all.partition_point(|one| of(one).end <= range.start);
    let (start, end) = (range.start, range.end);
    all[first..]
        .iter()
        .take_while(move |one| of(one).start < end)
        .map(move |one| (one, of(one).start.max(start)..of(one).end.min(end)))
        .filter(|(_, range)| !range.is_empty())
}

/// Returns the ranges where two texts differ, by whole words, since equal letters in two words mean nothing. But an
/// incomplete word may be only the beginning of the other.
fn differing_words(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut before, mut after) = trim_common(old, new);
    let mut found = Vec::new();
    if before.len() + after.len() > MAX_WORD_COMPARED_BYTES {
        found.push((before, after));
        return found;
    }
    // The common prefix and suffix must end at a word boundary.
    let head = old[..before.start].trim_end_matches(char::is_alphanumeric).len();
    let tail = old[before.end..].len() - old[before.end..].trim_start_matches(char::is_alphanumeric).len();
    (before, after) = (head..before.end + tail, head..after.end + tail);
    let (old_part, new_part) = (&old[before.clone()], &new[after.clone()]);
    for_each_word_hunk(old_part, new_part, |from, to| {
        let from = before.start + from.start..before.start + from.end;
        let to = after.start + to.start..after.start + to.end;
        let (left, right) = (&old[from.clone()], &new[to.clone()]);
        let begins = |text: &str, at: usize| !text[..at].ends_with(char::is_alphanumeric);
        if let Some((at, _)) = right.match_indices(left).find(|(at, _)| !left.is_empty() && begins(right, *at)) {
            found.push((from.start..from.start, to.start..to.start + at));
            found.push((from.end..from.end, to.start + at + left.len()..to.end));
        } else if let Some((at, _)) = left.match_indices(right).find(|(at, _)| !right.is_empty() && begins(left, *at)) {
            found.push((from.start..from.start + at, to.start..to.start));
            found.push((from.start + at + right.len()..from.end, to.end..to.end));
        } else {
            // Letters inserted into or deleted from a word.
            let (inner, other) = trim_common(left, right);
            let within = inner.is_empty() || other.is_empty();
            found.push(match within {
                true => {
                    (from.start + inner.start..from.start + inner.end, to.start + other.start..to.start + other.end)
                }
                false => (from, to),
            });
        }
    });
    found
}

/// Merges two texts that may not both be made from `base`. After a partial loss of the database, a file may contain
/// text that the journal is about to add again. Common text is taken once. If `theirs` contains nearly all of our
/// additions and more, it was made from our text and is the result.
pub fn merge_uncertain_base(base: &str, ours: &str, theirs: &str) -> String {
    let edits = |text: &str| -> Vec<TextEdit> {
        let changes = differing_words(base, text).into_iter();
        changes.map(|(from, to)| TextEdit { at: from.start, delete: from.len(), insert: text[to].to_owned() }).collect()
    };
    let (own, other) = (edits(ours), edits(theirs));
    let (own_origins, other_origins) = (piece_origins(&own, base.len()), piece_origins(&other, base.len()));
    let changes = differing_words(ours, theirs);
    let missing = |range: &Range<usize>| -> usize {
        overlapping(&changes, |(from, _)| from.clone(), range.clone()).map(|(_, gone)| gone.len()).sum()
    };
    let brought = own_origins.iter().filter(|piece| piece.base.is_none()).map(|piece| &piece.range);
    let (mut total, mut lost, mut twice) = (0, 0, false);
    for range in brought {
        (total, lost) = (total + range.len(), lost + missing(range));
        let mut at = range.start;
        let gone = overlapping(&changes, |(from, _)| from.clone(), range.clone()).map(|(_, gone)| gone);
        for gone in gone.chain(std::iter::once(range.end..range.end)) {
            twice |= ours[at..gone.start].contains(char::is_alphanumeric);
            at = gone.end;
        }
    }
    if total == 0 || (!twice && lost > 0) {
        // No text would be duplicated.
        return apply_edits(ours, &rebase_edits(&compute_edits(base, theirs), &compute_edits(base, ours)));
    }
    if lost * 8 <= total && changes.iter().any(|(_, to)| !to.is_empty()) {
        return theirs.to_owned();
    }
    let mut kept = own_origins.iter().filter_map(|piece| Some((piece.base?, piece.range.clone()))).collect::<Vec<_>>();
    kept.sort_by_key(|(base, _)| *base);
    // Text that's only in theirs: their additions, and base text replaced by other text of theirs.
    let news = |to: Range<usize>| {
        let mut news = String::new();
        for (piece, here) in overlapping(&other_origins, |piece| piece.range.clone(), to) {
            let Some(start) = piece.base else {
                news.push_str(&theirs[here]);
                continue;
            };
            let from = start + here.start - piece.range.start;
            let of_base = |(base, range): &(usize, Range<usize>)| *base..*base + range.len();
            for ((base_start, range), both) in overlapping(&kept, of_base, from..from + here.len()) {
                let at = range.start + both.start - base_start;
                let letters = base[both].char_indices().map(|(offset, letter)| (at + offset, letter));
                news.extend(letters.filter(|(at, _)| missing(&(*at..at + 1)) == 0).map(|(_, letter)| letter));
            }
        }
        news
    };
    let mut merged = String::with_capacity(ours.len() + theirs.len());
    let mut at = 0;
    for (from, to) in &changes {
        merged.push_str(&ours[at..from.start]);
        for (piece, here) in overlapping(&own_origins, |piece| piece.range.clone(), from.clone()) {
            let Some(start) = piece.base else {
                merged.push_str(&ours[here]);
                continue;
            };
            // Base text is removed only if they deleted it.
            let start = start + here.start - piece.range.start;
            surviving_ranges(start..start + here.len(), &other)
                .into_iter()
                .for_each(|kept| merged.push_str(&base[kept]));
        }
        merged.push_str(&news(to.clone()));
        at = from.end;
    }
    merged.push_str(&ours[at..]);
    merged
}

/// Returns an offset (a caret, a mark) after an edit. `after`: an insertion at the offset moves it.
pub fn shift_offset(offset: usize, at: usize, delete: usize, insert: usize, after: bool) -> usize {
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
        let splices = compute_edits("one\ntwo\nthree\nfour\n", "one\nTwo\nthree\nfour!\n");
        assert_eq!(
            splices,
            [TextEdit { at: 4, delete: 1, insert: "T".into() }, TextEdit { at: 18, delete: 0, insert: "!".into() }]
        );
    }

    #[test]
    fn both_sides_stay() {
        let base = "alpha\nbeta\ngamma\n";
        let ours = compute_edits(base, "alpha!\nbeta\ngamma\n");
        let theirs = compute_edits(base, "alpha\nbeta\ndelta\ngamma\n");
        assert_eq!(apply_edits("alpha!\nbeta\ngamma\n", &rebase_edits(&theirs, &ours)), "alpha!\nbeta\ndelta\ngamma\n");
    }

    #[test]
    fn what_a_text_stands_on() {
        assert!(is_based_on("one two three four", "one two three", "one"));
        assert!(is_based_on("zero one two", "one two", "one two three"));
        assert!(!is_based_on("one four", "one two three", "one"));
        assert!(!is_based_on("theirs\n", "ours\n", ""));
        assert!(!is_based_on("one", "one two", "one"));
    }

    #[test]
    fn what_a_file_has_already_does_not_come_twice() {
        for (base, ours, theirs, expected) in [
            ("a\n", "a\nb", "a\nbcd", "a\nbcd"),
            ("a\n", "a\n1 2 3 ", "a\n1 2 3 4 5 ", "a\n1 2 3 4 5 "),
            ("a\n", "a\n1 2 3 4 5 ", "a\n1 2 3 ", "a\n1 2 3 4 5 "),
            ("", "# New\n", "# New\n\nText\n", "# New\n\nText\n"),
            // A typo was fixed later, and deleted text was restored.
            (
                "one two three",
                "one three, and all teh rest of it as it stood",
                "one two three, and all the rest of it as it stood!",
                "one two three, and all the rest of it as it stood!",
            ),
            // Another author started from the old text.
            ("one\n", "one\nours\n", "one\ntheirs\n", "one\ntheirs\nours\n"),
            ("one two", "one", "one two three", "one three"),
            (
                "one\n",
                "one\nok fine",
                "one\nlook, often it is not so fine, but even so: keep on\n",
                "one\noklook, often it is not so fine, but even so: keep on\n",
            ),
        ] {
            assert_eq!(merge_uncertain_base(base, ours, theirs), expected, "{base:?} {ours:?} {theirs:?}");
        }
        // Their text contains one of our additions but not the other.
        let ours = "a\nthis was written before the crash\nb\nand this as well, just then\n";
        let theirs = "a\nthis was written before the crash\nb\nmore\n";
        let both = merge_uncertain_base("a\nb\n", ours, theirs);
        assert_eq!(both.matches("before the crash").count(), 1, "{both}");
        assert!(both.contains("as well, just then") && both.contains("more"), "{both}");
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "b\n", "\u{e4}", "c c\n", "\u{1f600}", "\r\n", "x"]),
            0..30,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        /// Text is typed word by word at random places. The database has one earlier version and the base that it
        /// shared with the file before, and the file has any later version.
        #[test]
        fn a_later_file_is_taken_as_it_is(
            places in prop::collection::vec(0_usize..1_000, 3..30),
            times in (0_usize..30, 0_usize..30, 0_usize..30),
        ) {
            let mut states = vec!["# A note\n\nwith two lines.\n".to_owned()];
            for (number, place) in places.iter().enumerate() {
                let mut text = states[number].clone();
                let word = format!("word{number} ");
                // Mostly after the previous word, as people type.
                let before = number.checked_sub(1).and_then(|last| text.find(&format!("word{last} ")));
                let behind = before.map(|at| at + format!("word{} ", number - 1).len());
                let at = behind.filter(|_| place % 4 > 0).unwrap_or(place % (text.len() + 1));
                // Never inside another word, which would look like a deleted word.
                let free = |at: &usize| *at == 0 || text[..*at].ends_with([' ', '\n']);
                let at = (at..=text.len()).find(free).unwrap_or(text.len());
                text.insert_str(at, &word);
                states.push(text);
            }
            let mut times = [times.0, times.1, times.2].map(|time| time % states.len());
            times.sort_unstable();
            let [base, ours, theirs] = times.map(|time| states[time].as_str());
            prop_assert_eq!(&merge_uncertain_base(base, ours, theirs), theirs, "{:?} {:?}", base, ours);
        }

        /// The same for text typed key by key, including inside a word.
        #[test]
        fn a_later_file_of_any_key_is_taken_as_it_is(times in (0_usize..90, 0_usize..90, 0_usize..90)) {
            let (before, behind) = ("# Alpha\n\nBravo stands ", "here.\n");
            let typed = "The quick brown fox jumps over the lazy dog, and nobody minds that at all this time.";
            let mut times = [times.0, times.1, times.2].map(|time| time % (typed.len() + 1));
            times.sort_unstable();
            let [base, ours, theirs] = times.map(|time| format!("{before}{}{behind}", &typed[..time]));
            prop_assert_eq!(&merge_uncertain_base(&base, &ours, &theirs), &theirs, "{:?} {:?}", base, ours);
            // Something else was also written in another place of the file.
            let more = theirs.replace("Alpha", "Alpha and beta");
            prop_assert_eq!(merge_uncertain_base(&base, &ours, &more), more, "{:?} {:?}", base, ours);
        }

        /// For any three texts: every word of ours and of the file is kept, unless the other side deleted it.
        #[test]
        fn no_word_is_lost_whatever_the_texts_are(
            base in prop::collection::vec(0_u8..12, 0..12),
            ours in prop::collection::vec((0_usize..12, 0_usize..3, 12_u8..20), 0..4),
            theirs in prop::collection::vec((0_usize..12, 0_usize..3, 15_u8..24), 0..4),
        ) {
            // No two words share letters that could be matched.
            let name = |word: &u8| char::from(b'a' + word).to_string().repeat(4) + " ";
            let text = |words: &[u8]| words.iter().map(name).collect::<String>();
            let change = |edits: &[(usize, usize, u8)]| {
                let mut words = base.clone();
                for (at, delete, insert) in edits {
                    let at = (*at).min(words.len());
                    words.splice(at..(at + delete).min(words.len()), [*insert]);
                }
                words
            };
            let (own, other) = (change(&ours), change(&theirs));
            let merged = merge_uncertain_base(&text(&base), &text(&own), &text(&other));
            for word in own.iter().filter(|word| !base.contains(word)) {
                let taken = other.iter().filter(|word| !base.contains(word)).count() > 0;
                let there = merged.contains(name(word).trim());
                prop_assert!(there || taken, "word{} of ours: {:?}", word, merged);
            }
            for word in other.iter().filter(|word| !base.contains(word)) {
                prop_assert!(merged.contains(name(word).trim()), "word{} of theirs: {:?}", word, merged);
            }
        }

        #[test]
        fn difference_makes_the_new_text(old in text(), new in text()) {
            prop_assert_eq!(apply_edits(&old, &compute_edits(&old, &new)), new);
        }

        #[test]
        fn carried_edits_keep_what_both_sides_wrote(
            base in text(),
            edits in prop::collection::vec((0_usize..40, 0_usize..5), 2..4),
        ) {
            // Each side deletes a range and inserts its own letter: both letters must be in the result once.
            let side = |(at, delete): (usize, usize), letter: &str| {
                let mut chars: Vec<String> = base.chars().map(String::from).collect();
                let at = at.min(chars.len());
                let end = (at + delete).min(chars.len());
                chars.splice(at..end, [letter.to_owned()]);
                chars.concat()
            };
            let (ours, theirs) = (side(edits[0], "O"), side(edits[1], "T"));
            let merged = apply_edits(&ours, &rebase_edits(&compute_edits(&base, &theirs), &compute_edits(&base,
                &ours)));
            prop_assert_eq!(merged.matches('O').count(), 1, "{:?} + {:?} = {:?}", ours, theirs, merged);
            prop_assert_eq!(merged.matches('T').count(), 1, "{:?} + {:?} = {:?}", ours, theirs, merged);
        }
    }
}
