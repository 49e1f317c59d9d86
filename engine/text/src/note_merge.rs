//! Merges two versions of a note that have a common one, by finer parts than lines: in prose by sentences, elsewhere by
//! lines. Two changes of neighboring parts are both kept. Two changes of one part are a conflict.

use crate::markdown;
use imara_diff::{Algorithm, Diff, InternedInput};
use std::collections::HashMap;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A replacement of parts of the common version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartChange<'a> {
    /// The parts that are replaced, by their numbers.
    base: Range<usize>,
    /// The parts that stand there instead.
    new: Vec<&'a str>,
}

impl PartChange<'_> {
    fn is_insertion(&self) -> bool {
        self.base.is_empty()
    }

    fn is_deletion(&self) -> bool {
        self.new.is_empty()
    }

    fn grows(&self) -> bool {
        self.new.len() > self.base.len()
    }
}

/// Merges two versions of a note; `None` if both changed the same part differently, or if it isn't clear in which order
/// two changes belong.
pub fn merge_notes(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let (base, ours, theirs) = (split_into_parts(base), split_into_parts(ours), split_into_parts(theirs));
    let (ours, theirs) = (changes(&base, &ours), changes(&base, &theirs));
    let mut merged = String::new();
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    let mut at = 0;
    loop {
        let next = match (ours.peek(), theirs.peek()) {
            (None, None) => break,
            (Some(_), None) => ours.next(),
            (None, Some(_)) => theirs.next(),
            (Some(one), Some(other)) if one == other => {
                theirs.next();
                ours.next()
            }
            (Some(one), Some(other)) if are_in_conflict(one, other) => return None,
            // An insertion stands before a change that begins at the same place.
            (Some(one), Some(other)) => match (one.base.start, one.base.end) <= (other.base.start, other.base.end) {
                true => ours.next(),
                false => theirs.next(),
            },
        };
        let Some(change) = next else { break };
        merged.extend(base.get(at..change.base.start)?.iter().copied());
        merged.extend(change.new);
        at = change.base.end;
    }
    merged.extend(base[at..].iter().copied());
    Some(merged)
}

/// Returns whether two different changes, one of each side, can't both be kept.
fn are_in_conflict(one: &PartChange<'_>, other: &PartChange<'_>) -> bool {
    let (first, second) = match (one.base.start, one.base.end) <= (other.base.start, other.base.end) {
        true => (one, other),
        false => (other, one),
    };
    if first.base.end > second.base.start || first.is_insertion() && second.is_insertion() && first.base == second.base
    {
        return true;
    }
    if first.base.end < second.base.start {
        return false;
    }
    // They touch. What is added beside a deletion may have belonged to it, and two additions have no order.
    let is_beside_deletion =
        first.is_insertion() && second.is_deletion() || first.is_deletion() && second.is_insertion();
    is_beside_deletion || first.grows() && second.grows()
}

/// Returns whether a part with words is in a merge more often than in either version. Both may have got it in other
/// ways, and a comparison of texts doesn't see that it's one.
pub(crate) fn has_repetition(merged: &str, ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (count_parts(ours), count_parts(theirs));
    let most = |part: &str| ours.get(part).max(theirs.get(part)).copied().unwrap_or(0);
    count_parts(merged).into_iter().any(|(part, count)| part.contains(char::is_alphanumeric) && count > most(part))
}

/// Returns whether a version is again as the base at a place that a version between them has changed.
pub(crate) fn takes_back(base: &str, between: &str, version: &str) -> bool {
    let (base, between, version) = (split_into_parts(base), split_into_parts(between), split_into_parts(version));
    let (earlier, all) = (changes(&base, &between), changes(&base, &version));
    let touch = |one: &Range<usize>, other: &Range<usize>| one.start <= other.end && other.start <= one.end;
    earlier.iter().any(|change| !all.iter().any(|other| touch(&change.base, &other.base)))
}

fn count_parts(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for part in split_into_parts(text) {
        *counts.entry(part.trim()).or_default() += 1;
    }
    counts
}

/// Returns how a version differs from the common one, in order.
fn changes<'a>(base: &[&'a str], version: &[&'a str]) -> Vec<PartChange<'a>> {
    let mut input = InternedInput::default();
    input.update_before(base.iter().copied());
    input.update_after(version.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let hunks = diff.hunks().map(|hunk| PartChange {
        base: hunk.before.start as usize..hunk.before.end as usize,
        new: version[hunk.after.start as usize..hunk.after.end as usize].to_vec(),
    });
    hunks.collect()
}

/// Splits a note into parts that join to it: sentences of prose, and lines of everything else.
fn split_into_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    if let Some(end) = front_matter_end(text) {
        parts.extend(text[..end].split_inclusive('\n'));
        rest = &text[end..];
    }
    for block in markdown::split_into_blocks(rest) {
        let is_fenced = markdown::parse_fenced_block(block).is_some();
        for line in block.split_inclusive('\n') {
            // A fence in a longer run of Markdown isn't recognized here; its lines have few sentences.
            match is_fenced || is_structure(line) {
                true => parts.push(line),
                false => parts.extend(line.split_sentence_bounds()),
            }
        }
    }
    parts
}

/// Returns whether a line is of a table, HTML or indented code.
fn is_structure(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t') || line.trim_start().starts_with(['|', '<', '`', '~'])
}

/// Returns where the properties at the beginning of a note end.
fn front_matter_end(text: &str) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let mark = crate::outline::byte_order_mark_len(text);
    let mut end = lines.next().filter(|first| first[mark..].trim_end() == "---")?.len();
    for line in lines {
        end += line.len();
        if line.trim_end() == "---" {
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbors_are_merged_and_the_same_part_is_a_conflict() {
        let base = "one\ntwo\nthree\nfour\n";
        let merged = |ours: &str, theirs: &str| merge_notes(base, ours, theirs);
        assert_eq!(merged("1\ntwo\nthree\nfour\n", "one\n2\nthree\nfour\n").as_deref(), Some("1\n2\nthree\nfour\n"));
        assert_eq!(merged("one\n2a\nthree\nfour\n", "one\n2b\nthree\nfour\n"), None);
        assert_eq!(merged("one\n2\nthree\nfour\n", "one\n2\nthree\nfour\n").as_deref(), Some("one\n2\nthree\nfour\n"));
        // Two insertions at one place have no order; the same one is made once.
        assert_eq!(merged("one\na\ntwo\nthree\nfour\n", "one\nb\ntwo\nthree\nfour\n"), None);
        let same = "one\na\ntwo\nthree\nfour\n";
        assert_eq!(merged(same, same).as_deref(), Some(same));
        // What is added to a passage that the other side deletes.
        assert_eq!(merged("one\nthree\nfour\n", "one\ntwo\nmore\nthree\nfour\n"), None);
        assert_eq!(merged("one\nthree\nfour\n", "one\ntwo\n3\nfour\n").as_deref(), Some("one\n3\nfour\n"));
        // An insertion before or after a line that the other side changes.
        assert_eq!(
            merged("one\nnew\ntwo\nthree\nfour\n", "one\n2\nthree\nfour\n").as_deref(),
            Some("one\nnew\n2\nthree\nfour\n")
        );
        assert_eq!(
            merged("one\ntwo\nnew\nthree\nfour\n", "one\n2\nthree\nfour\n").as_deref(),
            Some("one\n2\nnew\nthree\nfour\n")
        );
    }

    #[test]
    fn prose_is_merged_by_sentences_and_code_by_lines() {
        let base = "The sun shines. The moon waits. Stars are far.\n";
        let ours = "The sun shines warmly. The moon waits. Stars are far.\n";
        let theirs = "The sun shines. The moon waits. Stars are very far.\n";
        let both = "The sun shines warmly. The moon waits. Stars are very far.\n";
        assert_eq!(merge_notes(base, ours, theirs).as_deref(), Some(both));
        let other = "The sun shines coldly. The moon waits. Stars are far.\n";
        assert_eq!(merge_notes(base, ours, other), None);
        let cell = |line: &str| format!("```python\n{line}\n```\n");
        let base = cell("print('One. Two. Three.')");
        assert_eq!(
            merge_notes(&base, &cell("print('1. Two. Three.')"), &cell("print('One. Two. 3.')")),
            None,
            "a line of code is one part"
        );
        let table = |one: &str, two: &str| format!("| a | b |\n| --- | --- |\n| {one} | {two} |\n");
        assert_eq!(merge_notes(&table("X.", "Y."), &table("X!", "Y."), &table("X.", "Y!")), None);
        let crlf = merge_notes("a\r\nb\r\n", "A\r\nb\r\n", "a\r\nB\r\n");
        assert_eq!(crlf.as_deref(), Some("A\r\nB\r\n"));
    }

    proptest! {
        #[test]
        fn parts_join_to_the_text(text in "(---\n)?([a-c.! ]{0,6}(\r?\n)?(```\n|\\| |    )?){0,12}") {
            prop_assert_eq!(split_into_parts(&text).concat(), text);
        }

        #[test]
        fn one_side_alone_is_taken_over(
            base in "([ab]{1,2}[.\n] ?){0,12}",
            ours in "([ab]{1,2}[.\n] ?){0,12}",
            theirs in "([ab]{1,2}[.\n] ?){0,12}",
        ) {
            prop_assert_eq!(merge_notes(&base, &ours, &base), Some(ours.clone()));
            prop_assert_eq!(merge_notes(&base, &base, &theirs), Some(theirs.clone()));
            prop_assert_eq!(merge_notes(&base, &ours, &theirs), merge_notes(&base, &theirs, &ours));
        }
    }
}
