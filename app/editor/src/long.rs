//! What is too long to be one row: fenced code and paragraphs are cut into parts at line ends, so that only the parts
//! in sight are laid out, and an edit lays out one of them. Pure text, as `rows.rs` is.

use super::rows::{self, Before, Kind, after_line, trim_line_end};
use super::source;
use std::ops::Range;
use std::rc::Rc;

/// Code with more bytes than this is cut.
const CODE: usize = 4_096;
/// A paragraph with more bytes than this is cut where a line of its source ends.
const PARAGRAPH: usize = 3_000;
/// A part of a paragraph ends with the line in which it gets this many bytes; one of code, whose lines are short and
/// therefore high for their bytes, earlier.
const PART: usize = 1_000;
const CODE_PART: usize = 400;

/// Fenced code that goes on in the next block.
#[derive(Debug, PartialEq, Eq)]
pub struct Open {
    mark: u8,
    count: usize,
    /// The language that its opening fence names.
    pub(crate) language: Rc<str>,
}

/// A part of a long piece: what becomes one row. Offsets are bytes of the block.
pub(crate) struct Part {
    pub(crate) kind: Kind,
    pub(crate) content: Range<usize>,
    /// The code in it, with its last line end.
    pub(crate) code: Option<Range<usize>>,
}

/// The code of which a part is one, as far as it stands in the block, and its language.
pub(crate) type Whole = (Range<usize>, Rc<str>);

impl Open {
    fn of(opening: &str) -> Option<Open> {
        let body = opening.trim_start();
        let mark = *body.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let count = body.bytes().take_while(|byte| *byte == mark).count();
        Some(Open { mark, count, language: source::language(opening).into() })
    }

    /// The line that closes it, without its line end.
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

/// The code that is open where a text ends that stands behind something.
pub(crate) fn open_at_end(before: &Before, text: &str) -> Option<Rc<Open>> {
    let mut from = 0;
    if let Before::Code(open) = before {
        match open.closing(text) {
            Some(closing) => from = after_line(text, closing.end),
            None => return Some(open.clone()),
        }
    }
    let rest = &text[from..];
    if rest.len() < CODE || !(rest.contains("```") || rest.contains("~~~")) {
        return None;
    }
    let start = rows::open_fence(rest, *before == Before::Start)?;
    (rest.len() - start >= CODE).then(|| Open::of(&rest[start..after_line(rest, start)]).map(Rc::new))?
}

/// The parts of code that goes on from the block before, where it stands in this one, and where what follows begins.
/// `last`: no block follows.
pub(crate) fn rest(text: &str, open: &Open, last: bool) -> (Vec<Part>, Range<usize>, usize) {
    let closing = open.closing(text);
    let code = 0..closing.as_ref().map_or(text.len(), |closing| closing.start);
    let end = closing.as_ref().map_or(text.len(), |closing| after_line(text, closing.end));
    (code_parts(text, None, code.clone(), closing, last), code, end)
}

/// The parts of a piece, where it is too long to be one row. `last`: no block follows.
pub(crate) fn parts(
    text: &str,
    kind: Kind,
    range: Range<usize>,
    code: Option<Range<usize>>,
    last: bool,
) -> Option<(Vec<Part>, Option<Whole>)> {
    match (kind, code) {
        (Kind::Fence { closed }, Some(code)) if range.len() > CODE => {
            let closing = closed.then_some(code.end..range.end);
            let language: Rc<str> = source::language(&text[range.clone()]).into();
            if matches!(&*language, "mermaid" | engine::view::LANGUAGE) {
                return None; // a diagram is drawn whole, and so is a view
            }
            let parts = code_parts(text, Some(range.start), code.clone(), closing, last);
            (parts.len() > 1).then_some((parts, Some((code, language))))
        }
        // A line that shows a collection is a row of its own.
        (Kind::Paragraph, _) if !collection::parted(&text[range.clone()]).is_empty() => {
            let lines = collection::parted(&text[range.clone()]).into_iter();
            let part = |line: Range<usize>| {
                let (start, end) = (range.start + line.start, range.start + line.end);
                Part { kind, content: start..trim_line_end(text, start, end), code: None }
            };
            Some((lines.map(part).collect(), None))
        }
        (Kind::Paragraph, _) if range.len() > PARAGRAPH => {
            let cuts = cuts(text, range.clone(), PART, |next| next.starts_with(char::is_alphabetic));
            let ends = cuts.iter().skip(1).copied().chain([range.end]);
            let part = |(start, end): (usize, usize)| {
                let end = if end < range.end { trim_line_end(text, start, end) } else { end };
                Part { kind, content: start..end, code: None }
            };
            let parts: Vec<Part> = cuts.iter().copied().zip(ends).map(part).collect();
            (parts.len() > 1).then_some((parts, None))
        }
        _ => None,
    }
}

/// The parts of code between fences. `opening`: where the fence before it begins, if that is here.
fn code_parts(
    text: &str,
    opening: Option<usize>,
    code: Range<usize>,
    closing: Option<Range<usize>>,
    last: bool,
) -> Vec<Part> {
    let cuts = cuts(text, code.clone(), CODE_PART, |_| true);
    let ends: Vec<usize> = cuts.iter().skip(1).copied().chain([code.end]).collect();
    let part = |(index, (start, end)): (usize, (&usize, &usize))| {
        let (is_first, is_last) = (index == 0, index + 1 == cuts.len());
        let start = *start;
        let content_end = match &closing {
            Some(closing) if is_last => closing.end,
            // Where the note ends in open code, the caret can stand on its last line, also when that is empty.
            None if is_last && last => *end,
            _ => trim_line_end(text, start, *end),
        };
        let kind = Kind::Code { first: is_first && opening.is_some(), last: is_last && (closing.is_some() || last) };
        let from = opening.filter(|_| is_first).unwrap_or(start);
        Part { kind, content: from..content_end, code: Some(start..*end) }
    };
    cuts.iter().zip(&ends).enumerate().map(part).collect()
}

/// Where the parts of a range begin, at beginnings of lines that `fits` accepts, each with `part` bytes or more.
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
    use super::super::rows::{Row, rows};
    use super::*;

    fn code(lines: usize) -> String {
        (0..lines).map(|line| format!("const value{line} = {line};\n")).collect()
    }

    /// All of a block's text is in its rows, in order; gives them.
    fn cut(text: &str, before: &Before, last: bool) -> Vec<Row> {
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

    fn kinds(rows: &[Row]) -> Vec<(bool, bool)> {
        let flags = |row: &Row| match row.kind {
            Kind::Code { first, last } => Some((first, last)),
            _ => None,
        };
        rows.iter().filter_map(flags).collect()
    }

    #[test]
    fn long_code_is_cut_into_parts_that_are_the_code() {
        for end in ["\n", "\r\n"] {
            let body = code(300).replace('\n', end);
            let text = format!("```js{end}{body}```{end}{end}Text.{end}");
            let rows = cut(&text, &Before::Start, true);
            let parts: Vec<&Row> = rows.iter().filter(|row| matches!(row.kind, Kind::Code { .. })).collect();
            let shown: String = parts.iter().map(|row| &text[row.code.clone().unwrap_or_default()]).collect();
            assert_eq!(shown, body);
            assert!(parts.len() > 4 && parts.iter().all(|row| row.content.len() < CODE_PART + 100));
            let found = kinds(&rows);
            assert_eq!((found[0], found[1], found[found.len() - 1]), ((true, false), (false, false), (false, true)));
            assert!(parts.iter().all(|row| row.whole.as_ref().is_some_and(|(_, language)| &**language == "js")));
            assert_eq!((rows[0].part, rows[1].part), (false, true));
            assert_eq!(rows.last().map(|row| row.kind), Some(Kind::Paragraph));
        }
        assert_eq!(kinds(&cut(&format!("```js\n{}```\n", code(50)), &Before::Start, true)), [], "not long");
    }

    #[test]
    fn code_goes_on_in_the_next_block_until_it_is_closed() {
        let first = format!("Before.\n\n```js\n{}", code(400));
        let between = Before::Start.of(&first);
        assert!(matches!(&between, Before::Code(open) if &*open.language == "js"), "{between:?}");
        let rows = cut(&first, &Before::Start, false);
        assert_eq!(kinds(&rows).last(), Some(&(false, false)));
        let middle = code(100);
        assert_eq!(between.of(&middle), between);
        assert!(kinds(&cut(&middle, &between, false)).iter().all(|part| *part == (false, false)));
        let last = format!("{}  ```` \n\n# Next\n", code(60));
        let rows = cut(&last, &between, true);
        assert_eq!(kinds(&rows).last(), Some(&(false, true)));
        assert_eq!(rows.last().map(|row| row.kind), Some(Kind::Heading(1)));
        assert_eq!(between.of(&last), Before::LineEnd);
        assert_eq!(cut("```\n", &between, true).len(), 1, "the closing fence alone");
        let open = cut(&format!("{}\n", code(60)), &between, true);
        assert_eq!(kinds(&open).last(), Some(&(false, true)), "the note ends in open code");
        // A fence that somebody is just typing changes nothing behind its block.
        assert_eq!(Before::Start.of("```js\nlet a;\n"), Before::LineEnd);
    }

    #[test]
    fn long_paragraphs_are_cut_where_a_line_ends() {
        let text = "Some words of a line that is not short at all.\n- no item\n".repeat(200);
        let text = text.replace("- no item\n", "7. no item either\n");
        let rows = cut(&text, &Before::Start, true);
        assert!(rows.len() > 4, "{}", rows.len());
        assert!(rows.iter().skip(1).all(|row| row.part && text[row.content.clone()].starts_with("Some")));
        assert_eq!(cut(&"word ".repeat(700), &Before::Start, true).len(), 1, "one line stays one row");
    }
}
