//! Splits fenced code and paragraphs that are too long for one row into parts at line endings. Only the visible parts
//! are laid out, and an edit lays out one of them again. Works on text only, as `row_splitter.rs` does.

use super::row_splitter::{self, PrecedingContext, RowKind, after_line, trim_line_end};
use super::source_layout;
use std::ops::Range;
use std::rc::Rc;

/// Maximum bytes of code that isn't split.
const MAX_UNSPLIT_CODE_BYTES: usize = 4_096;
/// Maximum bytes of a paragraph that isn't split; longer ones are split at the line endings of their source.
const MAX_UNSPLIT_PARAGRAPH_BYTES: usize = 3_000;
/// Minimum bytes of a paragraph's part, which ends with the line that reaches them. Parts of code are smaller, because
/// code lines are short and take more height for their bytes.
const PARAGRAPH_PART_BYTES: usize = 1_000;
const CODE_PART_BYTES: usize = 400;

/// Fenced code that continues in the next block.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenFence {
    mark: u8,
    count: usize,
    /// Language named by the opening fence.
    pub(crate) language: Rc<str>,
}

/// A part of a long piece of text, which becomes one row. Offsets are bytes of the block.
pub(crate) struct LongRowPart {
    pub(crate) kind: RowKind,
    pub(crate) content: Range<usize>,
    /// The code in the part, with its final line ending.
    pub(crate) code: Option<Range<usize>>,
}

/// The range of the whole code that a part belongs to, as far as it's in the block, and its language.
pub(crate) type WholeCode = (Range<usize>, Rc<str>);

impl OpenFence {
    fn of(opening: &str) -> Option<OpenFence> {
        let body = opening.trim_start();
        let mark = *body.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let count = body.bytes().take_while(|byte| *byte == mark).count();
        Some(OpenFence { mark, count, language: source_layout::language(opening).into() })
    }

    /// Returns the range of the closing fence's line, without its line ending.
    fn closing(&self, text: &str) -> Option<Range<usize>> {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let body = line.trim_start_matches(' ');
            let count = body.bytes().take_while(|byte| *byte == self.mark).count();
            if line.len() - body.len() < 4 && count >= self.count && body[count..].trim().is_empty() {
                return Some(at..trim_line_end(text, at, at + line.len()));
            }
            at += line.len();
        }
        None
    }
}

/// Returns the fence of code that is still open at the end of a text with this context.
pub(crate) fn open_at_end(before: &PrecedingContext, text: &str) -> Option<Rc<OpenFence>> {
    let mut from = 0;
    if let PrecedingContext::Code(open) = before {
        match open.closing(text) {
            Some(closing) => from = after_line(text, closing.end),
            None => return Some(open.clone()),
        }
    }
    let rest = &text[from..];
    if rest.len() < MAX_UNSPLIT_CODE_BYTES || !(rest.contains("```") || rest.contains("~~~")) {
        return None;
    }
    let start = row_splitter::open_fence(rest, *before == PrecedingContext::Start)?;
    (rest.len() - start >= MAX_UNSPLIT_CODE_BYTES)
        .then(|| OpenFence::of(&rest[start..after_line(rest, start)]).map(Rc::new))?
}

/// Returns the parts of code continued from the previous block, the code's range in this one, and where the text after
/// it starts. `last` says that no block follows.
pub(crate) fn continued_code_parts(
    text: &str,
    open: &OpenFence,
    last: bool,
) -> (Vec<LongRowPart>, Range<usize>, usize) {
    let closing = open.closing(text);
    let code = 0..closing.as_ref().map_or(text.len(), |closing| closing.start);
    let end = closing.as_ref().map_or(text.len(), |closing| after_line(text, closing.end));
    (code_parts(text, None, code.clone(), closing, last), code, end)
}

/// Splits a piece that is too long for one row; `None` if it isn't. `last` says that no block follows.
pub(crate) fn split_piece(
    text: &str,
    kind: RowKind,
    range: Range<usize>,
    code: Option<Range<usize>>,
    last: bool,
) -> Option<(Vec<LongRowPart>, Option<WholeCode>)> {
    match (kind, code) {
        (RowKind::Fence { closed }, Some(code)) if range.len() > MAX_UNSPLIT_CODE_BYTES => {
            let closing = closed.then_some(code.end..range.end);
            let language: Rc<str> = source_layout::language(&text[range.clone()]).into();
            if matches!(&*language, "mermaid" | engine::generated_view::VIEW_LANGUAGE) {
                return None; // a diagram is drawn whole, and so is a view
            }
            let parts = code_parts(text, Some(range.start), code.clone(), closing, last);
            (parts.len() > 1).then_some((parts, Some((code, language))))
        }
        // A line that embeds a collection becomes a separate row.
        (RowKind::Paragraph, _) if !collection::split_around_embeds(&text[range.clone()]).is_empty() => {
            let lines = collection::split_around_embeds(&text[range.clone()]).into_iter();
            let part = |line: Range<usize>| {
                let (start, end) = (range.start + line.start, range.start + line.end);
                LongRowPart { kind, content: start..trim_line_end(text, start, end), code: None }
            };
            Some((lines.map(part).collect(), None))
        }
        (RowKind::Paragraph, _) if range.len() > MAX_UNSPLIT_PARAGRAPH_BYTES => {
            let cuts = cuts(text, range.clone(), PARAGRAPH_PART_BYTES, |next| next.starts_with(char::is_alphabetic));
            let ends = cuts.iter().skip(1).copied().chain([range.end]);
            let part = |(start, end): (usize, usize)| {
                let end = if end < range.end { trim_line_end(text, start, end) } else { end };
                LongRowPart { kind, content: start..end, code: None }
            };
            let parts: Vec<LongRowPart> = cuts.iter().copied().zip(ends).map(part).collect();
            (parts.len() > 1).then_some((parts, None))
        }
        _ => None,
    }
}

/// Splits fenced code into parts. `opening` is the offset of the opening fence, if it is in this block.
fn code_parts(
    text: &str,
    opening: Option<usize>,
    code: Range<usize>,
    closing: Option<Range<usize>>,
    last: bool,
) -> Vec<LongRowPart> {
    let cuts = cuts(text, code.clone(), CODE_PART_BYTES, |_| true);
    let ends: Vec<usize> = cuts.iter().skip(1).copied().chain([code.end]).collect();
    let part = |(index, (start, end)): (usize, (&usize, &usize))| {
        let (is_first, is_last) = (index == 0, index + 1 == cuts.len());
        let start = *start;
        let content_end = match &closing {
            Some(closing) if is_last => closing.end,
            // If the note ends in open code, the caret can be on its last line, even if that's empty.
            None if is_last && last => *end,
            _ => trim_line_end(text, start, *end),
        };
        let kind = RowKind::Code { first: is_first && opening.is_some(), last: is_last && (closing.is_some() || last) };
        let from = opening.filter(|_| is_first).unwrap_or(start);
        LongRowPart { kind, content: from..content_end, code: Some(start..*end) }
    };
    cuts.iter().zip(&ends).enumerate().map(part).collect()
}

/// Returns where the parts of a range begin: at lines that `fits` accepts, each after at least `part` bytes.
fn cuts(text: &str, range: Range<usize>, part: usize, fits: impl Fn(&str) -> bool) -> Vec<usize> {
    let (mut cuts, mut at) = (vec![range.start], range.start);
    for line in text[range.clone()].split_inclusive('\n') {
        let start = cuts.last().copied().unwrap_or(range.start);
        if at - start >= part && fits(line) {
            cuts.push(at);
        }
        at += line.len();
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::super::row_splitter::{MarkdownRow, rows};
    use super::*;

    fn code(lines: usize) -> String {
        (0..lines).map(|line| format!("const value{line} = {line};\n")).collect()
    }

    /// Returns the rows of a block, after a check that they cover all of its text in order.
    fn cut(text: &str, before: &PrecedingContext, last: bool) -> Vec<MarkdownRow> {
        let rows = rows(text, before, None, last);
        let mut at = 0;
        for row in &rows {
            assert_eq!(row.range.start, at, "{row:?}");
            assert!(row.range.start <= row.content.start && row.content.end <= row.range.end, "{row:?}");
            at = row.range.end;
        }
        assert_eq!(at, text.len());
        rows
    }

    fn kinds(rows: &[MarkdownRow]) -> Vec<(bool, bool)> {
        let flags = |row: &MarkdownRow| match row.kind {
            RowKind::Code { first, last } => Some((first, last)),
            _ => None,
        };
        rows.iter().filter_map(flags).collect()
    }

    #[test]
    fn long_code_is_cut_into_parts_that_are_the_code() {
        for end in ["\n", "\r\n"] {
            let body = code(300).replace('\n', end);
            let text = format!("```js{end}{body}```{end}{end}Text.{end}");
            let rows = cut(&text, &PrecedingContext::Start, true);
            let parts: Vec<&MarkdownRow> = rows.iter().filter(|row| matches!(row.kind, RowKind::Code { .. })).collect();
            let shown: String = parts.iter().map(|row| &text[row.code.clone().unwrap_or_default()]).collect();
            assert_eq!(shown, body);
            assert!(parts.len() > 4 && parts.iter().all(|row| row.content.len() < CODE_PART_BYTES + 100));
            let found = kinds(&rows);
            assert_eq!((found[0], found[1], found[found.len() - 1]), ((true, false), (false, false), (false, true)));
            assert!(parts.iter().all(|row| row.whole.as_ref().is_some_and(|(_, language)| &**language == "js")));
            assert_eq!((rows[0].part, rows[1].part), (false, true));
            assert_eq!(rows.last().map(|row| row.kind), Some(RowKind::Paragraph));
        }
        assert_eq!(kinds(&cut(&format!("```js\n{}```\n", code(50)), &PrecedingContext::Start, true)), [], "not long");
    }

    #[test]
    fn code_goes_on_in_the_next_block_until_it_is_closed() {
        let first = format!("Before.\n\n```js\n{}", code(400));
        let between = PrecedingContext::Start.after_text(&first);
        assert!(matches!(&between, PrecedingContext::Code(open) if &*open.language == "js"), "{between:?}");
        let rows = cut(&first, &PrecedingContext::Start, false);
        assert_eq!(kinds(&rows).last(), Some(&(false, false)));
        let middle = code(100);
        assert_eq!(between.after_text(&middle), between);
        assert!(kinds(&cut(&middle, &between, false)).iter().all(|part| *part == (false, false)));
        let last = format!("{}  ```` \n\n# Next\n", code(60));
        let rows = cut(&last, &between, true);
        assert_eq!(kinds(&rows).last(), Some(&(false, true)));
        assert_eq!(rows.last().map(|row| row.kind), Some(RowKind::Heading(1)));
        assert_eq!(between.after_text(&last), PrecedingContext::LineEnd);
        assert_eq!(cut("```\n", &between, true).len(), 1, "the closing fence alone");
        let open = cut(&format!("{}\n", code(60)), &between, true);
        assert_eq!(kinds(&open).last(), Some(&(false, true)), "the note ends in open code");
        // An incomplete fence changes nothing after its block.
        assert_eq!(PrecedingContext::Start.after_text("```js\nlet a;\n"), PrecedingContext::LineEnd);
    }

    #[test]
    fn long_paragraphs_are_cut_where_a_line_ends() {
        let text = "Some words of a line that is not short at all.\n- no item\n".repeat(200);
        let text = text.replace("- no item\n", "7. no item either\n");
        let rows = cut(&text, &PrecedingContext::Start, true);
        assert!(rows.len() > 4, "{}", rows.len());
        assert!(rows.iter().skip(1).all(|row| row.part && text[row.content.clone()].starts_with("Some")));
        assert_eq!(cut(&"word ".repeat(700), &PrecedingContext::Start, true).len(), 1, "one line stays one row");
    }
}
