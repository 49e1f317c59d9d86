//! Compares two texts: which lines differ, which lines correspond, and which words differ in them. Pure text.

use crate::text_edit::{self, TextEdit};
use imara_diff::{Algorithm, Diff, InternedInput};
use std::ops::Range;

/// Maximum number of line pairs that are compared by words. Beyond it, lines are paired in order.
const MAX_WEIGHED_LINE_PAIRS: usize = 4_000;
/// Minimum share of common words at which two lines count as one changed line.
const MIN_LINE_SIMILARITY: f32 = 0.34;
/// Maximum length of two lines that are compared by words. Longer ones are compared only by common prefix and suffix.
const MAX_REFINED_LINE_BYTES: usize = 20_000;
/// Maximum length of the context lines on each side of a hunk.
const MAX_HUNK_CONTEXT_BYTES: usize = 1_000;
/// Number of context lines around a change in a unified diff.
const DIFF_CONTEXT_LINES: usize = 3;

/// Differences between two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDiff {
    /// Parts that cover both texts completely, in order.
    pub parts: Vec<DiffPart>,
}

/// A part of a comparison. Ranges are in bytes and cover whole lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffPart {
    /// Lines that both texts have.
    Same {
        /// Byte range in the old text.
        old: Range<usize>,
        /// Byte range in the new text.
        new: Range<usize>,
        /// Number of lines.
        lines: usize,
    },
    /// Lines that differ.
    Change {
        /// Byte range in the old text.
        old: Range<usize>,
        /// Byte range in the new text.
        new: Range<usize>,
        /// The lines side by side.
        rows: Vec<DiffRow>,
    },
}

/// A row of a side-by-side comparison: a line of each text, or of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffRow {
    /// The line in the old text.
    pub old: Option<DiffLine>,
    /// The line in the new text.
    pub new: Option<DiffLine>,
}

/// A line of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Byte range of the line, without its line break.
    pub range: Range<usize>,
    /// Byte ranges in the text that the other side doesn't have.
    pub marks: Vec<Range<usize>>,
}

/// Compares two texts line by line.
pub fn compare(old: &str, new: &str) -> TextDiff {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (old_starts, new_starts) = (line_starts(old), line_starts(new));
    let bytes = |starts: &[usize], lines: Range<usize>| starts[lines.start]..starts[lines.end];
    let mut parts = Vec::new();
    let (mut from, mut to) = (0, 0);
    let same = |parts: &mut Vec<DiffPart>, from: Range<usize>, to: Range<usize>| {
        if !from.is_empty() {
            let lines = from.len();
            parts.push(DiffPart::Same { old: bytes(&old_starts, from), new: bytes(&new_starts, to), lines });
        }
    };
    for hunk in diff.hunks() {
        let before = hunk.before.start as usize..hunk.before.end as usize;
        let after = hunk.after.start as usize..hunk.after.end as usize;
        same(&mut parts, from..before.start, to..after.start);
        (from, to) = (before.end, after.end);
        let rows = align_lines(old, new, &old_starts[before.start..=before.end], &new_starts[after.start..=after.end]);
        parts.push(DiffPart::Change { old: bytes(&old_starts, before), new: bytes(&new_starts, after), rows });
    }
    same(&mut parts, from..old_starts.len() - 1, to..new_starts.len() - 1);
    TextDiff { parts }
}

impl TextDiff {
    /// Returns the number of changes.
    pub fn change_count(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, DiffPart::Change { .. })).count()
    }
}

/// A hunk of differing lines. Ranges are in bytes and cover whole lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// Byte range in the old text.
    pub old: Range<usize>,
    /// Byte range in the new text.
    pub new: Range<usize>,
    /// Numbers of the first line in both texts, from 1.
    pub lines: (usize, usize),
    /// Byte range in the new text of the lines before it.
    pub before: Range<usize>,
    /// Byte range in the new text of the lines after it.
    pub after: Range<usize>,
}

/// Returns the lines in which two texts differ, each hunk with a few lines around it.
pub fn line_hunks(old: &str, new: &str) -> Vec<LineHunk> {
    let parts = compare(old, new).parts;
    let mut lines = (1, 1);
    let mut hunks: Vec<LineHunk> = Vec::new();
    let mut before = 0..0;
    for part in parts {
        match part {
            DiffPart::Same { new: same, lines: count, .. } => {
                let text = &new[same.clone()];
                if let Some(last) = hunks.last_mut() {
                    let ends = text.split_inclusive('\n').take(DIFF_CONTEXT_LINES).map(str::len);
                    last.after = same.start..same.start + bounded_sum(ends);
                }
                let starts = text.split_inclusive('\n').rev().take(DIFF_CONTEXT_LINES).map(str::len);
                before = same.end - bounded_sum(starts)..same.end;
                lines = (lines.0 + count, lines.1 + count);
            }
            DiffPart::Change { old: gone, new: come, rows } => {
                let after = come.end..come.end;
                let hunk = LineHunk { old: gone, new: come, lines, before: before.clone(), after };
                before = hunk.after.clone();
                lines.0 += rows.iter().filter(|row| row.old.is_some()).count();
                lines.1 += rows.iter().filter(|row| row.new.is_some()).count();
                hunks.push(hunk);
            }
        }
    }
    hunks
}

/// Returns the sum of the first lengths that doesn't exceed [`MAX_HUNK_CONTEXT_BYTES`].
fn bounded_sum(lengths: impl Iterator<Item = usize>) -> usize {
    lengths
        .scan(0, |sum, length| {
            *sum += length;
            (*sum <= MAX_HUNK_CONTEXT_BYTES).then_some(*sum)
        })
        .last()
        .unwrap_or(0)
}

/// Returns the edits that restore the old text of one part: in order, at offsets of the new text.
pub fn revert_part(part: &DiffPart, old: &str, new: &str) -> Vec<TextEdit> {
    let DiffPart::Change { old: before, new: after, .. } = part else { return Vec::new() };
    let (Some(was), Some(is)) = (old.get(before.clone()), new.get(after.clone())) else { return Vec::new() };
    let mut splices = text_edit::compute_edits(is, was);
    splices.iter_mut().for_each(|splice| splice.at += after.start);
    splices
}

/// Returns a unified diff of a file that `patch` and git understand. `None` means that the file doesn't exist. The diff
/// is empty if nothing differs.
pub fn unified_diff(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (olds, news): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let hunks: Vec<(Range<usize>, Range<usize>)> = diff
        .hunks()
        .map(|hunk| {
            (hunk.before.start as usize..hunk.before.end as usize, hunk.after.start as usize..hunk.after.end as usize)
        })
        .collect();
    let mut out = String::new();
    if hunks.is_empty() && old.is_some() == new.is_some() {
        return out;
    }
    let name = |there: bool, side: &str| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
    out += &format!("--- {}\n+++ {}\n", name(old.is_some(), "a"), name(new.is_some(), "b"));
    let line = |out: &mut String, sign: char, text: &str| {
        out.push(sign);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    };
    let mut rest = hunks.as_slice();
    while let Some((first, _)) = rest.first() {
        // Changes whose context lines meet form one hunk.
        let count =
            1 + rest.windows(2).take_while(|pair| pair[1].0.start - pair[0].0.end <= 2 * DIFF_CONTEXT_LINES).count();
        let (group, later) = rest.split_at(count);
        rest = later;
        let Some((last, last_new)) = group.last() else { break };
        let start = first.start.saturating_sub(DIFF_CONTEXT_LINES);
        let end = (last.end + DIFF_CONTEXT_LINES).min(olds.len());
        let start_new = group[0].1.start - (first.start - start);
        let end_new = last_new.end + (end - last.end);
        // An empty side is given as the line before it.
        let side = |start: usize, end: usize| format!("{},{}", start + usize::from(end > start), end - start);
        out += &format!("@@ -{} +{} @@\n", side(start, end), side(start_new, end_new));
        let mut at = start;
        for (gone, come) in group {
            olds[at..gone.start].iter().for_each(|text| line(&mut out, ' ', text));
            olds[gone.clone()].iter().for_each(|text| line(&mut out, '-', text));
            news[come.clone()].iter().for_each(|text| line(&mut out, '+', text));
            at = gone.end;
        }
        olds[at..end].iter().for_each(|text| line(&mut out, ' ', text));
    }
    out
}

/// Returns the byte ranges of the lines in a range of a text, without their line breaks.
pub fn line_ranges(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    text.get(range).unwrap_or_default().split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    })
}

/// Returns the offsets where the lines of a text begin, and the offset of its end.
fn line_starts(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    starts
}

/// Returns the lines of a change, side by side.
fn align_lines(old: &str, new: &str, old_starts: &[usize], new_starts: &[usize]) -> Vec<DiffRow> {
    let cut = |text: &str, starts: &[usize]| -> Vec<Range<usize>> {
        let line = |pair: &[usize]| pair[0]..pair[0] + text[pair[0]..pair[1]].trim_end_matches(['\n', '\r']).len();
        starts.windows(2).map(line).collect()
    };
    let (old_lines, new_lines) = (cut(old, old_starts), cut(new, new_starts));
    let whole = |range: &Range<usize>| DiffLine { range: range.clone(), marks: Vec::new() };
    let pairs = pair_lines(old, new, &old_lines, &new_lines);
    pairs
        .into_iter()
        .map(|pair| match pair {
            (Some(from), Some(to)) => {
                let (from, to) = (&old_lines[from], &new_lines[to]);
                let (gone, come) = changed_words(&old[from.clone()], &new[to.clone()]);
                let shift = |marks: Vec<Range<usize>>, by: usize| -> Vec<Range<usize>> {
                    marks.into_iter().map(|mark| mark.start + by..mark.end + by).collect()
                };
                DiffRow {
                    old: Some(DiffLine { range: from.clone(), marks: shift(gone, from.start) }),
                    new: Some(DiffLine { range: to.clone(), marks: shift(come, to.start) }),
                }
            }
            (from, to) => {
                DiffRow { old: from.map(|at| whole(&old_lines[at])), new: to.map(|at| whole(&new_lines[at])) }
            }
        })
        .collect()
}

/// Pairs old lines with the new lines that they became. Unpaired lines are alone.
fn pair_lines(
    old: &str,
    new: &str,
    old_lines: &[Range<usize>],
    new_lines: &[Range<usize>],
) -> Vec<(Option<usize>, Option<usize>)> {
    let (high, wide) = (old_lines.len(), new_lines.len());
    let mut found = Vec::with_capacity(high.max(wide));
    if high * wide > MAX_WEIGHED_LINE_PAIRS || high == 0 || wide == 0 {
        let one = |at: usize, count: usize| (at < count).then_some(at);
        return (0..high.max(wide)).map(|at| (one(at, high), one(at, wide))).collect();
    }
    let words = |text: &str, lines: &[Range<usize>]| -> Vec<Vec<String>> {
        let one = |line: &Range<usize>| {
            let mut words: Vec<String> = text[line.clone()]
                .split(|letter: char| !letter.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(str::to_lowercase)
                .collect();
            words.sort_unstable();
            words
        };
        lines.iter().map(one).collect()
    };
    let (old_words, new_words) = (words(old, old_lines), words(new, new_lines));
    // Best total similarity of the lines from here on, computed from the end to the beginning.
    let mut best = vec![0.0_f32; (high + 1) * (wide + 1)];
    let place = |from: usize, to: usize| from * (wide + 1) + to;
    let mut pair = vec![0.0_f32; high * wide];
    for from in (0..high).rev() {
        for to in (0..wide).rev() {
            let alike = word_similarity(&old_words[from], &new_words[to]);
            pair[from * wide + to] = alike;
            let skip = best[place(from + 1, to)].max(best[place(from, to + 1)]);
            let take = if alike >= MIN_LINE_SIMILARITY { best[place(from + 1, to + 1)] + alike } else { 0.0 };
            best[place(from, to)] = skip.max(take);
        }
    }
    let (mut from, mut to) = (0, 0);
    while from < high && to < wide {
        let (alike, here) = (pair[from * wide + to], best[place(from, to)]);
        if alike >= MIN_LINE_SIMILARITY && best[place(from + 1, to + 1)] + alike >= here {
            found.push((Some(from), Some(to)));
            (from, to) = (from + 1, to + 1);
        } else if best[place(from + 1, to)] >= here {
            found.push((Some(from), None));
            from += 1;
        } else {
            found.push((None, Some(to)));
            to += 1;
        }
    }
    found.extend((from..high).map(|from| (Some(from), None)));
    found.extend((to..wide).map(|to| (None, Some(to))));
    found
}

/// Returns the share of words that two lines have in common, 0 to 1. Both lists are sorted.
fn word_similarity(old: &[String], new: &[String]) -> f32 {
    let all = old.len() + new.len();
    if all == 0 {
        return 1.0;
    }
    let (mut from, mut to, mut shared) = (0, 0, 0_usize);
    while let (Some(a), Some(b)) = (old.get(from), new.get(to)) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => from += 1,
            std::cmp::Ordering::Greater => to += 1,
            std::cmp::Ordering::Equal => (from, to, shared) = (from + 1, to + 1, shared + 1),
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "counts of words in a line")]
    let part = 2.0 * shared as f32 / all as f32;
    part
}

/// Returns the ranges that only the old line has, and those that only the new line has.
fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len() + new.len() > MAX_REFINED_LINE_BYTES {
        let (from, to) = text_edit::trim_common(old, new);
        let some = |range: Range<usize>| if range.is_empty() { Vec::new() } else { vec![range] };
        return (some(from), some(to));
    }
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    text_edit::for_each_word_hunk(old, new, |before, after| {
        push_mark(&mut gone, before, old);
        push_mark(&mut come, after, new);
    });
    (gone, come)
}

/// Adds a range; it's joined with the last one if only spaces separate them.
fn push_mark(marks: &mut Vec<Range<usize>>, mark: Range<usize>, text: &str) {
    if mark.is_empty() {
        return;
    }
    match marks.last_mut() {
        Some(last) if text[last.end..mark.start].trim().is_empty() => last.end = mark.end,
        _ => marks.push(mark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hunks_are_whole_lines_with_lines_around_them() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\nx\ne\nf\n");
        let hunks = line_hunks(old, new);
        assert_eq!(hunks.len(), 1);
        let hunk = &hunks[0];
        assert_eq!((&old[hunk.old.clone()], &new[hunk.new.clone()], hunk.lines), ("d\n", "D\nx\n", (4, 4)));
        assert_eq!((&new[hunk.before.clone()], &new[hunk.after.clone()]), ("a\nb\nc\n", "e\nf\n"));
        let two = line_hunks("1\n2\n3\n", "0\n1\n2\n3");
        assert_eq!(two.iter().map(|hunk| hunk.lines).collect::<Vec<_>>(), [(1, 1), (3, 4)]);
        assert!(line_hunks("same\n", "same\n").is_empty());
    }

    #[test]
    fn a_unified_diff_is_one_that_patch_understands() {
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("3\n4\n", "3\nfour\n").replace("19\n20\n", "19\n20\nend");
        let expected = "--- a/n.txt\n+++ b/n.txt\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n\
                        @@ -18,3 +18,4 @@\n 18\n 19\n 20\n+end\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("n.txt", Some(&old), Some(&new)), expected);
        assert_eq!(unified_diff("n", None, Some("a\n")), "--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified_diff("n", Some("a\n"), None), "--- a/n\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(unified_diff("n", None, Some("")), "--- /dev/null\n+++ b/n\n");
        assert_eq!(unified_diff("n", Some("same"), Some("same")), "");
    }

    /// Formats a comparison as text: deleted text in `[-…-]`, inserted text in `{+…+}`.
    fn shown(old: &str, new: &str) -> String {
        let mut out = String::new();
        let line = |out: &mut String, text: &str, line: &Option<DiffLine>, sign: &str, open: &str, shut: &str| {
            let Some(line) = line else { return };
            out.push_str(sign);
            let mut at = line.range.start;
            for mark in &line.marks {
                out.push_str(&text[at..mark.start]);
                out.push_str(&format!("{open}{}{shut}", &text[mark.clone()]));
                at = mark.end;
            }
            out.push_str(&text[at..line.range.end]);
            out.push('\n');
        };
        for part in compare(old, new).parts {
            match part {
                DiffPart::Same { lines, .. } => out.push_str(&format!("  {lines} same\n")),
                DiffPart::Change { rows, .. } => {
                    for row in &rows {
                        line(&mut out, old, &row.old, "- ", "[", "]");
                        line(&mut out, new, &row.new, "+ ", "{", "}");
                    }
                }
            }
        }
        out
    }

    #[test]
    fn lines_are_paired_and_words_marked() {
        let old = "# Rain\n\nThe rain in Spain stays mainly in the plain.\n\nOld end.\n";
        let new = "# Rain\n\nA new line before it.\nThe rain in France stays mostly in the plain.\n\nOld end.\n";
        let seen = shown(old, new);
        let expected = "  2 same\n+ A new line before it.\n- The rain in [Spain] stays [mainly] in the plain.\n\
                        + The rain in {France} stays {mostly} in the plain.\n  2 same\n";
        assert_eq!(seen, expected);
        assert_eq!(shown("", "one\n"), "+ one\n");
        assert_eq!(shown("same", "same"), "  1 same\n");
        assert_eq!(shown("a b c\n", "a x y c\n"), "- a [b] c\n+ a {x y} c\n");
    }

    #[test]
    fn a_part_comes_back() {
        let (old, new) = ("one\ntwo\nthree\nfour\n", "one\n2\nthree\n4\nfive\n");
        let comparison = compare(old, new);
        let change = comparison.parts.iter().find(|part| matches!(part, DiffPart::Change { .. })).expect("a change");
        assert_eq!(text_edit::apply_edits(new, &revert_part(change, old, new)), "one\ntwo\nthree\n4\nfive\n");
        assert_eq!(comparison.change_count(), 2);
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec!["a", "b\n", "\u{e4} c", "c c\n", "\u{1f600}", "\r\n", "x y z\n", "\n"]);
        prop::collection::vec(piece, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn both_texts_are_there_whole(old in text(), new in text()) {
            let comparison = compare(&old, &new);
            let (mut was, mut is, mut back) = (String::new(), String::new(), Vec::new());
            for part in &comparison.parts {
                let (from, to) = match part {
                    DiffPart::Same { old, new, .. } => (old, new),
                    DiffPart::Change { old: from, new: to, rows } => {
                        for line in rows.iter().flat_map(|row| [row.old.as_ref(), row.new.as_ref()]).flatten() {
                            prop_assert!(line.marks.iter().all(|mark| mark.start >= line.range.start));
                            prop_assert!(line.marks.iter().all(|mark| mark.end <= line.range.end));
                        }
                        let count = |text: &str, range: &Range<usize>| line_ranges(text, range.clone()).count();
                        prop_assert_eq!(rows.iter().filter(|row| row.old.is_some()).count(), count(&old, from));
                        prop_assert_eq!(rows.iter().filter(|row| row.new.is_some()).count(), count(&new, to));
                        back.extend(revert_part(part, &old, &new));
                        (from, to)
                    }
                };
                was.push_str(&old[from.clone()]);
                is.push_str(&new[to.clone()]);
            }
            prop_assert_eq!(&was, &old);
            prop_assert_eq!(&is, &new);
            prop_assert_eq!(text_edit::apply_edits(&new, &back), old);
        }
    }
}
