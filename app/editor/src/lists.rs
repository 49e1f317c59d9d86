//! Numbering of ordered lists: which number each item should have. Works on text only.

use text::text_edit::TextEdit;

/// A list level that is open at the current line.
struct ListLevel {
    /// Column where items begin; `content` is the column where their text begins.
    indent: usize,
    content: usize,
    /// Number of the next item, and the delimiter after numbers; `None` for a bullet list.
    next: Option<(u64, u8)>,
}

/// Marker of a list item: its column, the column of its text, and the range and delimiter of its number.
struct ListMarker {
    indent: usize,
    content: usize,
    number: Option<(std::ops::Range<usize>, u8)>,
}

fn mark(line: &str) -> Option<ListMarker> {
    let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
    let indent = line[..spaces].bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum();
    let rest = line[spaces..].trim_end_matches(['\r', '\n']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let sign = *rest.as_bytes().get(digits)?;
    let ordered = (1..10).contains(&digits) && matches!(sign, b'.' | b')');
    let bullet = digits == 0 && matches!(sign, b'-' | b'*' | b'+');
    let behind = rest.as_bytes().get(digits + 1);
    if !(ordered || bullet) || behind.is_some_and(|byte| !matches!(byte, b' ' | b'\t')) {
        return None;
    }
    let number = ordered.then_some((spaces..spaces + digits, sign));
    Some(ListMarker { indent, content: indent + digits + 2, number })
}

/// Returns the edits that make every ordered list count up from its first item. Nested lists that begin at or after
/// `fresh` start at 1, and the outermost list starts at `start`.
fn fixes(text: &str, fresh: usize, start: Option<u64>) -> Vec<TextEdit> {
    let (mut fixes, mut levels, mut at) = (Vec::new(), Vec::<ListLevel>::new(), 0);
    let mut fence: Option<String> = None;
    let mut begins = start;
    for line in text.split_inclusive('\n') {
        let line_at = at;
        at += line.len();
        let trimmed = line.trim();
        if let Some(open) = &fence {
            if trimmed.starts_with(open.as_str()) {
                fence = None;
            }
            continue;
        }
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fence = Some(trimmed[..3].to_owned());
            continue;
        }
        let Some(mark) = mark(line) else { continue };
        let sibling = loop {
            let Some(top) = levels.last() else { break false };
            if mark.indent >= top.content {
                break false;
            }
            let around = levels.len().checked_sub(2).map_or(0, |index| levels[index].content);
            if mark.indent >= around && (mark.indent >= top.indent || levels.len() == 1 || mark.indent > around) {
                break true;
            }
            levels.pop();
        };
        let is_nested = levels.len() > usize::from(sibling);
        let expected = match (levels.last(), &mark.number) {
            (Some(level), Some((_, sign))) if sibling => {
                level.next.filter(|(_, own)| own == sign).map(|(next, _)| next)
            }
            _ => None,
        };
        let begins = begins.take();
        let next = mark.number.as_ref().map(|(range, sign)| {
            let number = line[range.clone()].parse::<u64>().unwrap_or(1);
            let first = if is_nested && line_at >= fresh { 1 } else { begins.unwrap_or(number) };
            let wanted = expected.unwrap_or(first);
            if wanted != number {
                let insert = wanted.to_string();
                fixes.push(TextEdit { at: line_at + range.start, delete: range.len(), insert });
            }
            (wanted + 1, *sign)
        });
        let level = ListLevel { indent: mark.indent, content: mark.content, next };
        if sibling {
            levels.pop();
        }
        levels.push(level);
    }
    fixes
}

/// Renumbers lists after an edit turned `old` into `new`; `from` is where it started in `new`. Lists that weren't
/// consecutive before are left unchanged.
pub(crate) fn renumbered(old: &str, new: &str, from: usize) -> Vec<TextEdit> {
    let first = old.lines().next().and_then(mark).and_then(|mark| mark.number);
    let start = first.and_then(|(range, _)| old[range].parse::<u64>().ok());
    if fixes(old, usize::MAX, None).is_empty() { fixes(new, from, start) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::text_edit::apply_edits;

    #[test]
    fn numbers_count_on() {
        let fixed = |text: &str| apply_edits(text, &fixes(text, usize::MAX, None));
        assert_eq!(fixed("1. a\n1. b\n7. c\n"), "1. a\n2. b\n3. c\n");
        assert_eq!(fixed("3. a\n\n   more\n3. b\n"), "3. a\n\n   more\n4. b\n");
        assert_eq!(fixed("1. a\n   1. x\n   5. y\n9. b\n"), "1. a\n   1. x\n   2. y\n2. b\n");
        assert_eq!(fixed("- a\n- b\n"), "- a\n- b\n");
        assert_eq!(fixed("1. a\n   ```\n   9. x\n   ```\n3. b\n"), "1. a\n   ```\n   9. x\n   ```\n2. b\n");
        assert_eq!(fixed("1. a\n5) b\n9) c\n"), "1. a\n5) b\n6) c\n");
    }

    #[test]
    fn what_did_not_count_stays() {
        assert!(renumbered("1. a\n1. b\n", "1. a\n1. x\n1. b\n", 5).is_empty());
        assert_eq!(renumbered("1. a\n2. b\n", "1. a\n   2. b\n", 5).len(), 1, "the first of a new list inside");
    }
}
