//! Splits a block of Markdown into rows, the pieces that are laid out and edited one at a time. Works on text only,
//! with no fonts, caret or note.
//!
//! The split is lossless: the ranges of a block's rows, one after another, are the block byte for byte.

use super::details::{self, DetailsTag};
use super::long_rows::{self, OpenFence};
use pulldown_cmark::{CodeBlockKind, Event as Mark, Options, Tag, TagEnd};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Running text.
    Paragraph,
    /// A heading and its level, 1 to 6.
    Heading(u8),
    /// A list item with its content, up to the next item.
    Item {
        /// Number of lists around the item's own list.
        depth: u8,
        /// The item's number in an ordered list.
        number: Option<u32>,
        /// Whether it continues an item after a nested list, and has no marker.
        tail: bool,
    },
    /// A block quote.
    Quote,
    /// A Markdown table with all its rows.
    Table,
    /// Fenced code that isn't a cell.
    Fence {
        /// Whether it has a closing fence.
        closed: bool,
    },
    /// A part of fenced code that is too long for one row.
    Code {
        /// Whether the opening fence is its first line.
        first: bool,
        /// Whether the closing fence is its last line.
        last: bool,
    },
    /// An indented code block.
    Indented,
    /// An HTML block, shown as source.
    Html,
    /// YAML front matter.
    Meta,
    /// A horizontal rule.
    Rule,
    /// A footnote definition.
    Footnote,
    /// Text that Markdown doesn't show: a link reference definition.
    Definition,
    /// Text that isn't parsed as Markdown, because it is nested too deeply.
    Plain,
    /// An empty line in addition to the one that separates paragraphs.
    Blank,
    /// A code cell: fenced code that can be run.
    Cell,
}

impl RowKind {
    /// Returns whether the row's source is shown in the code font.
    pub fn is_mono(self) -> bool {
        matches!(
            self,
            RowKind::Table
                | RowKind::Fence { .. }
                | RowKind::Code { .. }
                | RowKind::Indented
                | RowKind::Html
                | RowKind::Meta
                | RowKind::Definition
                | RowKind::Plain
                | RowKind::Cell
        )
    }

    /// Returns whether the row is fenced code.
    pub fn is_fenced(self) -> bool {
        matches!(self, RowKind::Cell | RowKind::Fence { .. } | RowKind::Code { .. })
    }

    /// Returns whether the row's box has padding above, and below.
    pub fn has_padding(self) -> (bool, bool) {
        match self {
            RowKind::Cell | RowKind::Fence { .. } | RowKind::Indented => (true, true),
            RowKind::Code { first, last } => (first, last),
            _ => (false, false),
        }
    }

    /// Returns whether the previous row, and the next row, belong to the same fenced code.
    pub fn continues(self) -> (bool, bool) {
        match self {
            RowKind::Code { first, last } => (!first, !last),
            _ => (false, false),
        }
    }
}

/// The part of a row that belongs to a comment spanning rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommentSpan {
    /// The row is outside comments.
    #[default]
    None,
    /// Byte ranges of the row's content that are hidden.
    Hidden(Rc<[Range<usize>]>),
    /// The comment is open, so the row is shown as source.
    Open,
}

/// A row of a block; offsets are bytes of the block.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkdownRow {
    /// The whole row, with its line endings and the empty line after it.
    pub range: Range<usize>,
    /// The range that's shown and edited.
    pub content: Range<usize>,
    /// The code between the fences, if there are fences.
    pub code: Option<Range<usize>>,
    /// For a part of long code: the range of all the code in this block, and its language.
    pub whole: Option<long_rows::WholeCode>,
    /// Kind, which determines how the row is laid out and edited.
    pub kind: RowKind,
    /// The row's part in a comment that spans rows.
    pub comment: CommentSpan,
    /// What an HTML row begins or ends of `<details>`.
    pub details: DetailsTag,
    /// Whether the row shows a collection, a search or a generated view.
    pub base: bool,
    /// Whether the row continues the text of the previous row.
    pub part: bool,
    /// Whether an empty line precedes the row.
    pub spaced: bool,
    /// Hash of content and kind; rows with equal hashes look the same.
    pub hash: u64,
    /// Height at the last layout, without the space above; `None` if the row hasn't been laid out.
    pub height: Option<f32>,
    /// Layout generation for which [`MarkdownRow::height`] is valid.
    pub layout: u32,
    /// Whether folding hides the row.
    pub hidden: bool,
}

impl MarkdownRow {
    /// Returns a hash of everything that affects the row's look: content, kind and hidden ranges.
    pub fn layout_hash(&self) -> u64 {
        if self.comment == CommentSpan::None {
            return self.hash;
        }
        let mut hasher = DefaultHasher::new();
        (self.hash, &self.comment).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns whether the rows below it can be folded: it's a heading, or the summary of `<details>`.
    pub(crate) fn begins_fold(&self) -> bool {
        matches!(self.kind, RowKind::Heading(_)) || matches!(self.details, DetailsTag::Start { .. })
    }
}

/// The kind of text before a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrecedingContext {
    /// Nothing: the block is the note's first.
    Start,
    /// Text whose last line continues in the block.
    Line,
    /// The end of a line.
    LineEnd,
    /// An empty line.
    Gap,
    /// Long fenced code that was split, and continues.
    Code(Rc<OpenFence>),
}

impl PrecedingContext {
    /// Returns the context that a text leaves for the block after it.
    pub(crate) fn after_text(&self, text: &str) -> PrecedingContext {
        if let Some(open) = long_rows::open_at_end(self, text) {
            return PrecedingContext::Code(open);
        }
        let lines = text.bytes().rev().filter(|byte| *byte != b'\r').take_while(|byte| *byte == b'\n').take(2).count();
        let all = text.bytes().all(|byte| matches!(byte, b'\n' | b'\r'));
        match (lines, all, self) {
            (0, _, _) => PrecedingContext::Line,
            (_, true, PrecedingContext::Start) => PrecedingContext::Gap,
            (1, true, PrecedingContext::Line | PrecedingContext::Code(_)) => PrecedingContext::LineEnd,
            (1, false, _) => PrecedingContext::LineEnd,
            (_, _, _) => PrecedingContext::Gap,
        }
    }
}

/// A piece of Markdown before its surrounding lines are considered.
struct MarkdownPiece {
    start: usize,
    end: usize,
    kind: RowKind,
    code: Option<Range<usize>>,
}

/// Splits a block into rows. `cell` is the range of its code if the block is a cell; `last` says that no block follows.
pub fn rows(text: &str, before: &PrecedingContext, cell: Option<Range<usize>>, last: bool) -> Vec<MarkdownRow> {
    let bom =
        if *before == PrecedingContext::Start && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (mut at, mut whole, mut more) = (bom, None, Vec::new());
    let pieces = match (cell, before) {
        (Some(code), _) => {
            vec![MarkdownPiece { start: 0, end: line_end(text, code.end), kind: RowKind::Cell, code: Some(code) }]
        }
        (None, PrecedingContext::Code(open)) => {
            let (parts, code, end) = long_rows::continued_code_parts(text, open, last);
            (more, whole, at) = (parts, Some((code, open.language.clone())), end);
            pieces(&text[end..], end, false)
        }
        (None, _) => pieces(&text[bom..], bom, *before == PrecedingContext::Start),
    };
    let gap = !matches!(before, PrecedingContext::LineEnd | PrecedingContext::Code(_));
    let mut cut = RowSplitter { text, rows: Vec::new(), at: bom, gap, before: before.clone() };
    more.into_iter().for_each(|part| cut.part(part, whole.clone(), true));
    cut.at = at;
    for piece in pieces {
        cut.lines(piece.start, false);
        match long_rows::split_piece(text, piece.kind, piece.start..piece.end, piece.code.clone(), last) {
            Some((parts, whole)) => {
                for (index, part) in parts.into_iter().enumerate() {
                    cut.part(part, whole.clone(), index > 0);
                }
            }
            None => cut.push(piece.kind, piece.start..piece.end, piece.code),
        }
    }
    cut.lines(text.len(), last);
    cut.finish()
}

/// A split in progress: `at` is the current offset, always at the start of a line.
struct RowSplitter<'a> {
    text: &'a str,
    rows: Vec<MarkdownRow>,
    at: usize,
    /// Whether the empty line that separates the next row from the previous one has been seen.
    gap: bool,
    before: PrecedingContext,
}

impl RowSplitter<'_> {
    fn push(&mut self, kind: RowKind, content: Range<usize>, code: Option<Range<usize>>) {
        let mut hasher = DefaultHasher::new();
        (kind, &self.text[content.clone()]).hash(&mut hasher);
        self.at = after_line(self.text, content.end);
        let shows = matches!(kind, RowKind::Paragraph | RowKind::Fence { closed: true });
        let source = &self.text[content.clone()];
        let base = shows
            && (collection::parse_embed(source).is_some() || engine::generated_view::view_source(source).is_some());
        let details = if kind == RowKind::Html { DetailsTag::of(source) } else { DetailsTag::None };
        self.rows.push(MarkdownRow {
            base,
            details,
            comment: CommentSpan::None,
            range: content.clone(),
            content,
            code,
            whole: None,
            kind,
            part: false,
            spaced: self.gap,
            hash: hasher.finish(),
            height: None,
            layout: 0,
            hidden: false,
        });
        self.gap = false;
    }

    /// Adds a part of a piece that is too long for one row.
    fn part(&mut self, part: long_rows::LongRowPart, whole: Option<long_rows::WholeCode>, goes_on: bool) {
        self.push(part.kind, part.content, part.code);
        if let Some(row) = self.rows.last_mut() {
            let mut hasher = DefaultHasher::new();
            (row.hash, whole.as_ref().map(|(_, language)| language)).hash(&mut hasher);
            (row.hash, row.whole, row.part) = (hasher.finish(), whole, goes_on);
        }
    }

    /// Adds the lines up to `end` outside of pieces: empty lines, and text that Markdown doesn't show.
    fn lines(&mut self, end: usize, last: bool) {
        while self.at < end {
            let blanks = self.blanks(end);
            let rest = self.at + blanks.iter().map(Range::len).sum::<usize>();
            self.blank_rows(&blanks, last && rest >= end);
            self.at = rest;
            if rest >= end {
                break;
            }
            let mut stop = rest;
            while stop < end && !is_blank(line(self.text, stop)) {
                stop = after_line(self.text, stop);
            }
            let content = rest..trim_line_end(self.text, rest, stop);
            self.push(RowKind::Definition, content, None);
        }
    }

    /// Returns the empty lines from the current offset on, each with its line ending.
    fn blanks(&self, end: usize) -> Vec<Range<usize>> {
        let mut blanks = Vec::new();
        let mut at = self.at;
        while at < end && is_blank(line(self.text, at)) {
            let next = after_line(self.text, at).min(end);
            blanks.push(at..next);
            at = next;
        }
        blanks
    }

    /// Adds rows for empty lines. The first one after a text and the last one before a text are gaps; the others are
    /// rows.
    fn blank_rows(&mut self, blanks: &[Range<usize>], ends: bool) {
        let first = usize::from(!self.gap && !blanks.is_empty());
        self.gap |= first == 1;
        let free = &blanks[first..];
        // Enter at the end of a line puts the caret directly below it, so that empty line must be editable.
        let below_text =
            self.rows.last().is_some_and(|row| matches!(row.kind, RowKind::Paragraph | RowKind::Heading(_)));
        if !ends && first == 1 && free.len() == 1 && below_text {
            self.gap = false;
            self.push(RowKind::Blank, blanks[0].start..blanks[0].start, None);
            self.gap = true;
            return;
        }
        let shown = if ends || free.len() < 2 { free.len() } else { free.len() - 1 };
        for blank in &free[..shown] {
            let spaced = std::mem::take(&mut self.gap);
            self.push(RowKind::Blank, blank.start..blank.start, None);
            if let Some(row) = self.rows.last_mut() {
                row.spaced = spaced;
            }
        }
        // If the note ends in an empty line after a gap, the caret can be placed there.
        let own_line = self.text.ends_with('\n') && (!blanks.is_empty() || self.before == PrecedingContext::Gap);
        if ends && own_line {
            let end = self.text.len();
            let spaced = std::mem::take(&mut self.gap);
            self.push(RowKind::Blank, end..end, None);
            if let Some(row) = self.rows.last_mut() {
                row.spaced = spaced && free.is_empty();
            }
        }
        self.gap |= shown < free.len();
    }

    fn finish(mut self) -> Vec<MarkdownRow> {
        if self.rows.is_empty() {
            let end = trim_line_end(self.text, 0, self.text.len());
            self.at = 0;
            self.push(RowKind::Blank, end.min(self.text.len())..end, None);
        }
        let starts: Vec<usize> = self.rows.iter().map(|row| row.content.start).collect();
        for (index, row) in self.rows.iter_mut().enumerate() {
            row.range.start = if index == 0 { 0 } else { starts[index] };
            row.range.end = starts.get(index + 1).copied().unwrap_or(self.text.len());
        }
        self.rows
    }
}

fn options(first: bool) -> Options {
    let options = text::markdown::parser_options();
    if first { options } else { options - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS }
}

/// Splits a text into pieces of whole lines; each list item is a separate piece.
fn pieces(text: &str, offset: usize, first: bool) -> Vec<MarkdownPiece> {
    let read = text::markdown::parse(text, options(first), |parser| {
        let mut walk = PieceWalker { text, pieces: Vec::new(), stack: Vec::new(), numbers: Vec::new(), nested: false };
        for (event, range) in parser.into_offset_iter() {
            match event {
                Mark::Start(tag) => walk.start(&tag, range),
                Mark::End(tag) => walk.end(tag),
                Mark::Rule if walk.stack.is_empty() => walk.piece(range, RowKind::Rule),
                _ => {}
            }
        }
        walk.pieces
    });
    // Text that isn't parsed as Markdown is one piece, shown as source.
    let plain = |_| {
        let start = text.len() - text.trim_start_matches(['\n', '\r']).len();
        Vec::from_iter((!is_blank(text)).then_some(MarkdownPiece {
            start,
            end: text.len(),
            kind: RowKind::Plain,
            code: None,
        }))
    };
    let mut pieces = read.unwrap_or_else(plain);
    let ends: Vec<usize> = pieces.iter().skip(1).map(|next| next.start).chain([text.len()]).collect();
    for (piece, next) in pieces.iter_mut().zip(ends) {
        let open = matches!(piece.kind, RowKind::Fence { closed: false });
        piece.end = piece.end.min(next);
        if open {
            // Text typed into an open fence belongs to it, including empty lines.
            piece.end = if next == text.len() { next } else { trim_line_end(text, piece.start, next) };
        } else {
            piece.end = trim_blank(text, piece.start, piece.end).min(next);
        }
        piece.start += offset;
        piece.end += offset;
        if let Some(code) = &mut piece.code {
            *code = code.start.min(piece.end - offset) + offset..code.end.min(piece.end - offset) + offset;
        }
    }
    pieces
}

/// Returns the start of the fence that is still open at the end of a text.
pub(crate) fn open_fence(text: &str, first: bool) -> Option<usize> {
    let last = pieces(text, 0, first).pop()?;
    (last.kind == RowKind::Fence { closed: false }).then_some(last.start)
}

struct PieceWalker<'a> {
    text: &'a str,
    pieces: Vec<MarkdownPiece>,
    /// Open elements; `true` for lists and items.
    stack: Vec<bool>,
    /// Next item number of each open list.
    numbers: Vec<Option<u64>>,
    /// Whether a nested list in the open item has just ended.
    nested: bool,
}

impl PieceWalker<'_> {
    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        let lists_only = self.stack.iter().all(|list| *list);
        let top = self.stack.is_empty();
        match tag {
            Tag::List(number) if lists_only => {
                self.numbers.push(*number);
                self.stack.push(true);
                return;
            }
            Tag::Item if lists_only => {
                let depth = u8::try_from(self.numbers.len().saturating_sub(1)).unwrap_or(u8::MAX);
                let number = self.numbers.last_mut().and_then(Option::as_mut).map(|next| {
                    let number = *next;
                    *next += 1;
                    u32::try_from(number).unwrap_or(u32::MAX)
                });
                self.nested = false;
                self.piece(range, RowKind::Item { depth, number, tail: false });
                self.stack.push(true);
                return;
            }
            // Inline elements belong to the line that contains them, so they aren't pieces.
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. } => {}
            _ if top => {
                let (kind, code) = self.kind(tag, &range);
                if kind == RowKind::Html {
                    let block = line_start(self.text, range.start)..range.end;
                    details::split_block(self.text, block).into_iter().for_each(|part| self.piece(part, kind));
                } else {
                    self.piece(range, kind);
                }
                if let (Some(code), Some(piece)) = (code, self.pieces.last_mut()) {
                    piece.code = Some(code);
                }
            }
            _ if lists_only && std::mem::take(&mut self.nested) => {
                let depth = u8::try_from(self.numbers.len().saturating_sub(1)).unwrap_or(u8::MAX);
                self.piece(range, RowKind::Item { depth, number: None, tail: true });
            }
            _ => {}
        }
        self.stack.push(false);
    }

    fn end(&mut self, tag: TagEnd) {
        if self.stack.pop() == Some(true) && matches!(tag, TagEnd::List(_)) {
            self.numbers.pop();
            self.nested = !self.numbers.is_empty();
        }
    }

    fn kind(&self, tag: &Tag<'_>, range: &Range<usize>) -> (RowKind, Option<Range<usize>>) {
        let kind = match tag {
            Tag::Heading { level, .. } => RowKind::Heading(*level as u8),
            Tag::BlockQuote(_) => RowKind::Quote,
            Tag::Table(_) => RowKind::Table,
            Tag::CodeBlock(CodeBlockKind::Indented) => RowKind::Indented,
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                let (code, closed) = fence_code(self.text, line_start(self.text, range.start), range.end);
                return (RowKind::Fence { closed }, Some(code));
            }
            Tag::HtmlBlock => RowKind::Html,
            Tag::MetadataBlock(_) => RowKind::Meta,
            Tag::FootnoteDefinition(_) => RowKind::Footnote,
            _ => RowKind::Paragraph,
        };
        (kind, None)
    }

    fn piece(&mut self, range: Range<usize>, kind: RowKind) {
        let start = line_start(self.text, range.start);
        match self.pieces.last_mut() {
            // An item that begins on another item's line ("- - a") is part of that item.
            Some(last) if start <= last.start => last.end = last.end.max(range.end),
            _ => self.pieces.push(MarkdownPiece { start, end: range.end, kind, code: None }),
        }
    }
}

/// Returns the range of the code in a fence that begins at `start`, and whether the fence is closed.
fn fence_code(text: &str, start: usize, end: usize) -> (Range<usize>, bool) {
    let opening = line(text, start);
    let mark = opening.trim_start().chars().next().unwrap_or('`');
    let count = opening.trim_start().chars().take_while(|c| *c == mark).count();
    let from = after_line(text, start).min(end.max(start));
    let body_end = trim_blank(text, start, end);
    let last = line_start(text, body_end);
    let closing = text[last..body_end].trim();
    let closed = last > start && closing.chars().count() >= count && closing.chars().all(|c| c == mark);
    if closed { (from.min(last)..last, true) } else { (from..end.max(from), false) }
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// Returns the line that begins at `at`, without its line ending.
fn line(text: &str, at: usize) -> &str {
    &text[at..line_end(text, at)]
}

/// Returns the end of the line that contains `at`, before its line ending.
fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if end > at && text.as_bytes()[end - 1] == b'\r' { end - 1 } else { end }
}

/// Returns the start of the line after the one that contains `at`.
pub(crate) fn after_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the end of the last non-empty line in a range; spaces at its end are kept.
fn trim_blank(text: &str, start: usize, end: usize) -> usize {
    let trimmed = start + text[start..end.max(start)].trim_end().len();
    line_end(text, trimmed)
}

/// Returns the end of a range without its final line ending.
pub(crate) fn trim_line_end(text: &str, start: usize, end: usize) -> usize {
    let part = &text[start..end];
    let part = part.strip_suffix('\n').map_or(part, |part| part.strip_suffix('\r').unwrap_or(part));
    start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> Vec<String> {
        let cell = text::markdown::parse_cell(text).map(|cell| cell.code);
        let rows = rows(text, &PrecedingContext::Start, cell, true);
        let mut at = 0;
        for row in &rows {
            assert_eq!(row.range.start, at, "{text:?} {rows:?}");
            assert!(row.range.start <= row.content.start && row.content.end <= row.range.end, "{text:?} {row:?}");
            at = row.range.end;
        }
        assert_eq!(at, text.len());
        let name = |kind: RowKind| match kind {
            RowKind::Item { depth, number, tail } => {
                format!(
                    "item{depth}{}{}",
                    number.map_or(String::new(), |n| format!(":{n}")),
                    if tail { "+" } else { "" }
                )
            }
            RowKind::Fence { closed } => format!("fence{}", if closed { "" } else { "?" }),
            kind => format!("{kind:?}").to_lowercase(),
        };
        let gap = |row: &MarkdownRow| if row.spaced { "~" } else { "" };
        rows.iter().map(|row| format!("{}{} {:?}", gap(row), name(row.kind), &text[row.content.clone()])).collect()
    }

    #[test]
    fn pieces_of_every_kind() {
        assert_eq!(
            show("# A\nb\nc  \n\n- d\n- e\n  - f\n\n  g\n> h\n\n---\n\n|i|\n|-|\n|j|\n"),
            [
                "~heading(1) \"# A\"",
                "paragraph \"b\\nc  \"",
                "~item0 \"- d\"",
                "item0 \"- e\"",
                "item1 \"  - f\"",
                "~item0+ \"  g\"",
                "quote \"> h\"",
                "~rule \"---\"",
                "~table \"|i|\\n|-|\\n|j|\"",
            ]
        );
        assert_eq!(
            show("1. a\n1. b\n\n   more\n1. - c\n"),
            ["~item0:1 \"1. a\"", "item0:2 \"1. b\\n\\n   more\"", "item0:3 \"1. - c\""]
        );
        assert_eq!(
            show("---\nt: x\n---\n[a]: b\n\n    code\n\n[^1]: note\n"),
            [
                "~meta \"---\\nt: x\\n---\"",
                "definition \"[a]: b\"",
                "~indented \"    code\"",
                "~footnote \"[^1]: note\""
            ]
        );
        assert_eq!(
            show("<details>\n<summary>a</summary>\nb\n\nc\n</details>\nd\n"),
            [
                "~html \"<details>\\n<summary>a</summary>\"",
                "html \"b\"",
                "~paragraph \"c\"",
                "html \"</details>\"",
                "html \"d\""
            ]
        );
        assert_eq!(show("```js\na\n\n```\nb"), ["~fence \"```js\\na\\n\\n```\"", "paragraph \"b\""]);
        assert_eq!(show("```js\na\n\n"), ["~fence? \"```js\\na\\n\\n\""]);
        assert_eq!(show("```python\n1\n```\n"), ["~cell \"```python\\n1\\n```\""]);
    }

    #[test]
    fn empty_lines() {
        assert_eq!(show("a\n"), ["~paragraph \"a\""]);
        assert_eq!(show("a\n\n"), ["~paragraph \"a\"", "~blank \"\""]);
        assert_eq!(show("a\n\nb"), ["~paragraph \"a\"", "~paragraph \"b\""]);
        assert_eq!(show("a\n\n\n\nb"), ["~paragraph \"a\"", "~blank \"\"", "~paragraph \"b\""]);
        assert_eq!(show("a\n\n\nb"), ["~paragraph \"a\"", "blank \"\"", "~paragraph \"b\""], "below a line");
        assert_eq!(show("\n"), ["~blank \"\"", "blank \"\""]);
        assert_eq!(show("\r\na\r\n\r\n"), ["~blank \"\"", "paragraph \"a\"", "~blank \"\""]);
        assert_eq!(show("\u{feff}# a"), ["~heading(1) \"# a\""]);
    }

    #[test]
    fn a_block_goes_on_after_another() {
        let kinds = |text: &str, before| -> Vec<(RowKind, bool)> {
            rows(text, &before, None, false).iter().map(|row| (row.kind, row.spaced)).collect()
        };
        assert_eq!(kinds("\nb\n", PrecedingContext::LineEnd), [(RowKind::Paragraph, true)]);
        assert_eq!(kinds("b\n", PrecedingContext::LineEnd), [(RowKind::Paragraph, false)]);
        assert_eq!(kinds("\nb\n", PrecedingContext::Gap), [(RowKind::Blank, true), (RowKind::Paragraph, false)]);
        assert_eq!(PrecedingContext::Start.after_text("a\n"), PrecedingContext::LineEnd);
        assert_eq!(PrecedingContext::LineEnd.after_text("\n"), PrecedingContext::Gap);
        assert_eq!(PrecedingContext::Start.after_text("a\r\n\r\n"), PrecedingContext::Gap);
    }

    #[test]
    fn nothing_is_lost() {
        let parts =
            ["a", "\n", "\n\n", "- ", "  ", "> ", "```\n", "# ", "1. ", "|x|\n|-|\n", "\r\n", "é", "---\n", "\t"];
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(parts[(seed >> 40) as usize % parts.len()]);
            }
            show(&text);
        }
    }
}
