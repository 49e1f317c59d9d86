//! Splits a note's Markdown into blocks, and detects which blocks are cells. It knows text only: no documents, no
//! state.
//!
//! Splitting loses nothing: the concatenated pieces are the text, byte for byte.

pub mod details;
pub mod dialect;
mod limits;
mod plain;
mod table_links;
mod tag_names;

pub use limits::{MarkdownLimitError, check, parse};
pub use plain::plain_text;
pub use tag_names::{is_in_html_tag, tag_name};

use crate::cell_form::CellForm;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Size in bytes at which a run of paragraphs ends at the next boundary. A block is a text of its own in the document,
/// and a remote change scans the text that it touches (FACTS.md).
const MAX_RUN_BYTES: usize = 1_000;
/// Size at which a heading ends a run of paragraphs.
const MIN_RUN_BEFORE_HEADING_BYTES: usize = 300;
/// Size above which a paragraph is split at a line break, or else at a space.
const MAX_PARAGRAPH_BYTES: usize = 4_096;
/// Size above which tables, lists, raw HTML and code in other languages are split.
const MAX_STRUCTURE_BYTES: usize = 16_384;
/// Maximum size of a cell. A larger fenced Python block is text.
pub const MAX_CELL_BYTES: usize = 262_144;

/// Returns the options for parsing Markdown everywhere in the program: CommonMark, GitHub's extensions, front matter.
pub fn parser_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
}

/// Kind of a top-level piece of Markdown, as far as splitting is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopLevelPiece {
    Cell,
    Heading,
    Paragraph,
    Structure,
}

/// Parts of a cell, as byte ranges of its block's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellParts {
    /// The code between the fences, with its last line break.
    pub code: Range<usize>,
    /// Form of the text between the fences.
    pub form: CellForm,
}

/// Number of blocks and cells in a text, for listing notes that were never edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoteSurvey {
    /// Number of blocks.
    pub blocks: u32,
    /// Number of these blocks that are cells.
    pub cells: u32,
}

/// Splits a note's text into blocks.
pub fn split_into_blocks(text: &str) -> Vec<&str> {
    let mut cuts = Vec::new();
    let mut start = 0;
    let mut tops = scan_top_level(text).into_iter().peekable();
    while let Some((range, piece)) = tops.next() {
        let end = tops.peek().map_or(text.len(), |(next, _)| next.start);
        let closes = match piece {
            TopLevelPiece::Cell => true,
            TopLevelPiece::Heading => range.start - start >= MIN_RUN_BEFORE_HEADING_BYTES,
            TopLevelPiece::Paragraph | TopLevelPiece::Structure => {
                range.start - start >= MAX_RUN_BYTES || end - start > MAX_PARAGRAPH_BYTES
            }
        };
        if closes && range.start > start {
            cuts.push(range.start);
            start = range.start;
        }
        let longest = match piece {
            TopLevelPiece::Cell => usize::MAX,
            TopLevelPiece::Heading | TopLevelPiece::Paragraph => MAX_PARAGRAPH_BYTES,
            TopLevelPiece::Structure => MAX_STRUCTURE_BYTES,
        };
        while end - start > longest {
            start += find_long_cut(&text[start..end], longest);
            cuts.push(start);
        }
        if piece == TopLevelPiece::Cell && end > start && end < text.len() {
            cuts.push(end);
            start = end;
        }
    }
    while text.len() - start > MAX_STRUCTURE_BYTES {
        // The rest is only blank lines, or a huge cell at the end.
        start += find_long_cut(&text[start..], MAX_PARAGRAPH_BYTES);
        cuts.push(start);
    }
    if cuts.last().is_some_and(|last| *last >= text.len()) {
        cuts.pop();
    }
    let mut from = 0;
    let mut pieces: Vec<&str> = Vec::with_capacity(cuts.len() + 1);
    for cut in cuts {
        pieces.push(&text[from..cut]);
        from = cut;
    }
    if from < text.len() {
        pieces.push(&text[from..]);
    }
    pieces
}

/// Counts the blocks and cells of a text.
pub fn count_blocks_and_cells(text: &str) -> NoteSurvey {
    let blocks = split_into_blocks(text);
    let cells = blocks.iter().filter(|block| parse_cell(block).is_some()).count();
    NoteSurvey {
        blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
        cells: u32::try_from(cells).unwrap_or(u32::MAX),
    }
}

/// Returns the byte ranges of all cells in a text, including fences, without blank lines after them.
pub fn cell_ranges(text: &str) -> Vec<Range<usize>> {
    if !text.contains("```") && !text.contains("~~~") {
        return Vec::new();
    }
    scan_top_level(text)
        .into_iter()
        .filter(|(_, piece)| *piece == TopLevelPiece::Cell)
        .map(|(range, _)| range)
        .collect()
}

/// Returns the top-level pieces of a text, each from the start of its first line, and whether it is a paragraph.
pub fn top_level_pieces(text: &str) -> Vec<(Range<usize>, bool)> {
    scan_top_level(text).into_iter().map(|(range, piece)| (range, piece == TopLevelPiece::Paragraph)).collect()
}

/// Returns the byte range of the top-level piece that contains the byte `at`.
pub fn piece_around(text: &str, at: usize) -> Range<usize> {
    let pieces = scan_top_level(text);
    pieces.into_iter().map(|(range, _)| range).take_while(|range| range.start <= at).last().unwrap_or(0..0)
}

/// Returns the part of a note that a link names after `#`: a heading with its section, or with `^` a block.
pub fn linked_part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let tokens = dialect::tokenize(text, dialect::dialect_options());
    if let Some(name) = name.strip_prefix('^') {
        let at = tokens.iter().find_map(|(token, range)| match token {
            dialect::DialectToken::Anchor(known) if known.eq_ignore_ascii_case(name) => Some(range.start),
            _ => None,
        })?;
        let mut starts = tokens.iter().filter(|(token, range)| {
            let block = matches!(
                token,
                dialect::DialectToken::Callout(_)
                    | dialect::DialectToken::Mark(Event::Start(
                        Tag::Paragraph | Tag::Item | Tag::Heading { .. } | Tag::BlockQuote(_) | Tag::Table(_)
                    ))
            );
            block && range.contains(&at)
        });
        let range = starts.next_back().map(|(_, range)| line_start(text, range.start)..range.end)?;
        return text.get(range);
    }
    let mut headings: Vec<(usize, u8, String)> = Vec::new();
    let mut words = String::new();
    let mut open = None;
    for (token, range) in &tokens {
        match token {
            dialect::DialectToken::Mark(Event::Start(Tag::Heading { level, .. })) => {
                words.clear();
                open = Some((line_start(text, range.start), *level as u8));
            }
            dialect::DialectToken::Mark(Event::End(TagEnd::Heading(_))) => {
                headings.extend(open.take().map(|(start, level)| (start, level, words.clone())));
            }
            dialect::DialectToken::Mark(Event::Text(part) | Event::Code(part)) if open.is_some() => {
                words.push_str(part)
            }
            dialect::DialectToken::Label(part) if open.is_some() => words.push_str(part),
            _ => {}
        }
    }
    let known: Vec<(u8, &str)> = headings.iter().map(|(_, level, words)| (*level, words.as_str())).collect();
    let found = find_heading(&known, name)?;
    let (start, depth, _) = headings.get(found)?;
    let next = headings[found + 1..].iter().find(|(_, level, _)| level <= depth);
    text.get(*start..next.map_or(text.len(), |(end, _, _)| *end))
}

/// Returns which of a note's headings, given by level and text, the part of a link after `#` means. `A#B` is B below A;
/// GitHub writes headings in lower case with `-`, and a number at the end of those that repeat others.
pub fn find_heading(headings: &[(u8, &str)], part: &str) -> Option<usize> {
    let plain = |text: &str| -> String {
        let letters: String =
            text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if letters.is_empty() { text.trim().to_owned() } else { letters }
    };
    let known: Vec<(u8, String)> = headings.iter().map(|(level, text)| (*level, plain(text))).collect();
    let names: Vec<String> = part.split('#').map(plain).collect();
    let last = names.last().filter(|name| !name.is_empty()).map(std::slice::from_ref)?;
    let repeated = || {
        let (base, number) = part.rsplit_once('-')?;
        let (base, number) = (plain(base), number.parse::<usize>().ok()?);
        let same = known.iter().enumerate().filter(|(_, (_, words))| *words == base);
        same.map(|(at, _)| at).nth(number)
    };
    // A heading may have moved from below another one, so the last name alone is enough.
    find_below(&known, &names).or_else(|| find_below(&known, last)).or_else(repeated)
}

/// Returns the first heading with the last of these names that is below headings with the names before it.
fn find_below(headings: &[(u8, String)], names: &[String]) -> Option<usize> {
    let mut above: Vec<u8> = Vec::new();
    headings.iter().position(|(level, words)| {
        while above.last().is_some_and(|known| known >= level) {
            above.pop();
        }
        if names.get(above.len()) == Some(words) {
            above.push(*level);
        }
        above.len() == names.len()
    })
}

/// Returns the blocks of a file. A script is one block; any other file is split as Markdown.
pub fn split_file(kind: store::FileKind, text: &str) -> Vec<&str> {
    if kind == store::FileKind::Script {
        [text].into_iter().filter(|text| !text.is_empty()).collect()
    } else {
        split_into_blocks(text)
    }
}

/// Returns the parts of a block that is exactly one cell (blank lines may follow), else `None`.
pub fn parse_cell(block: &str) -> Option<CellParts> {
    if block.len() > MAX_CELL_BYTES {
        return None;
    }
    let (info, code) = parse_fenced_block(block)?;
    let (_, form) = fence_cell(info)?;
    Some(CellParts { code, form })
}

/// Returns the language, in lower case, of the kernel that runs a cell. Widgets and SQL run as Python.
pub fn cell_language(block: &str) -> Option<String> {
    fence_cell(CodeFence::parse_opening_fence(block.lines().next()?)?.info).map(|(language, _)| language)
}

/// Returns whether fences with this language in braces (```` ```{r} ````) are cells.
pub fn is_kernel_language(word: &str) -> bool {
    KERNEL_LANGUAGES.contains(&word.to_ascii_lowercase().as_str())
}

/// If the text is exactly one fenced block (blank lines may follow), returns its info string and the range of its code,
/// including the last line break.
pub fn parse_fenced_block(block: &str) -> Option<(&str, Range<usize>)> {
    let first_end = block.find('\n')? + 1;
    let fence = CodeFence::parse_opening_fence(&block[..first_end])?;
    let mut at = first_end;
    for line in block[first_end..].split_inclusive('\n') {
        if fence.is_closed_by(line) {
            let rest = &block[at + line.len()..];
            return rest.trim().is_empty().then_some((fence.info, first_end..at));
        }
        at += line.len();
    }
    None
}

/// Returns the time limit, in seconds, in a cell's info string (```` ```python timeout=120 ````); 0 is no limit.
pub fn cell_time_limit(block: &str) -> Option<u64> {
    stated_time_limits(block).find_map(|seconds| seconds.parse().ok())
}

/// Returns a time limit in a cell's info string that isn't a whole number of seconds, so that it doesn't count.
pub fn misread_time_limit(block: &str) -> Option<&str> {
    stated_time_limits(block).find(|seconds| seconds.parse::<u64>().is_err())
}

fn stated_time_limits(block: &str) -> impl Iterator<Item = &str> {
    let info = block.lines().next().unwrap_or_default();
    let words = info.split(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ','));
    words.filter_map(|word| word.strip_prefix("timeout=")).map(|seconds| seconds.trim_matches('"'))
}

/// Returns whether a cell is marked as pure: its result depends only on its code and the names that it uses. The mark
/// is `pure` in the info string, as in ```` ```python pure ````, or `# pure` as the first line of its code.
pub fn is_pure_cell(block: &str) -> bool {
    let mut lines = block.lines();
    let info = lines.next().unwrap_or_default();
    let mut words = info.split(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',')).skip(1);
    words.any(|word| word == "pure") || lines.next().is_some_and(|line| line.trim_end() == "# pure")
}

/// A code fence according to CommonMark 0.31.2, section 4.5.
struct CodeFence<'a> {
    mark: u8,
    count: usize,
    info: &'a str,
}

impl CodeFence<'_> {
    fn parse_opening_fence(line: &str) -> Option<CodeFence<'_>> {
        let body = line.trim_start_matches(' ');
        if line.len() - body.len() > 3 {
            return None;
        }
        let mark = *body.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let count = body.bytes().take_while(|byte| *byte == mark).count();
        let info = body[count..].trim();
        if count < 3 || (mark == b'`' && info.contains('`')) {
            return None;
        }
        Some(CodeFence { mark, count, info })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let body = line.trim_start_matches(' ');
        let count = body.bytes().take_while(|byte| *byte == self.mark).count();
        line.len() - body.len() <= 3 && count >= self.count && body[count..].trim().is_empty()
    }
}

/// Returns the kernel's language and the form of a cell with this info string. In braces, as in knitr and Quarto, it
/// can be any language with a kernel; other words in braces are directives.
fn fence_cell(info: &str) -> Option<(String, CellForm)> {
    let language = info.split(|c: char| c.is_whitespace() || c == '{' || c == ',').next().unwrap_or("");
    let braced = info.strip_prefix('{').map(|rest| rest.trim_start_matches('.'));
    let braced = braced.and_then(|rest| rest.split(|c: char| c.is_whitespace() || c == '}' || c == ',').next());
    let word = braced.unwrap_or(language).to_ascii_lowercase();
    match word.as_str() {
        "python" | "python3" | "py" => Some(("python".to_owned(), CellForm::Code)),
        "widget" if braced.is_none() => Some(("python".to_owned(), CellForm::Widget)),
        "sql" if braced.is_none() => Some(("python".to_owned(), CellForm::Query)),
        other => (info.starts_with('{') && !info.starts_with("{.") && is_kernel_language(other))
            .then_some((word, CellForm::Code)),
    }
}

/// Languages that have a Jupyter kernel.
const KERNEL_LANGUAGES: [&str; 45] = [
    "apl",
    "bash",
    "c",
    "c#",
    "c++",
    "clojure",
    "coffeescript",
    "cpp",
    "csharp",
    "dart",
    "elixir",
    "erlang",
    "f#",
    "fortran",
    "fsharp",
    "go",
    "groovy",
    "haskell",
    "java",
    "javascript",
    "js",
    "julia",
    "kotlin",
    "lua",
    "mathematica",
    "matlab",
    "ocaml",
    "octave",
    "perl",
    "php",
    "powershell",
    "prolog",
    "r",
    "racket",
    "ruby",
    "rust",
    "sagemath",
    "sas",
    "scala",
    "scheme",
    "sh",
    "sql",
    "stata",
    "swift",
    "typescript",
];

/// Returns the top-level pieces of a text, each from the start of its first line.
fn scan_top_level(text: &str) -> Vec<(Range<usize>, TopLevelPiece)> {
    // Text that can't be parsed as Markdown is one piece.
    let whole = |_| Vec::from_iter((!text.is_empty()).then_some((0..text.len(), TopLevelPiece::Structure)));
    parse(text, parser_options(), |parser| scan_top_level_with(text, parser)).unwrap_or_else(whole)
}

fn scan_top_level_with<'a>(text: &'a str, parser: Parser<'a>) -> Vec<(Range<usize>, TopLevelPiece)> {
    let mut pieces: Vec<(Range<usize>, TopLevelPiece)> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in parser.into_offset_iter() {
        let piece = match &event {
            Event::Start(tag) => {
                depth += 1;
                if depth > 1 {
                    continue;
                }
                match tag {
                    Tag::CodeBlock(CodeBlockKind::Fenced(info)) if fence_cell(info).is_some() => {
                        let start = line_start(text, range.start);
                        let closed = parse_cell(text[start..range.end].trim_end_matches('\r')).is_some();
                        if closed { TopLevelPiece::Cell } else { TopLevelPiece::Structure }
                    }
                    Tag::Heading { .. } => TopLevelPiece::Heading,
                    Tag::Paragraph => TopLevelPiece::Paragraph,
                    _ => TopLevelPiece::Structure,
                }
            }
            Event::End(TagEnd::Paragraph | TagEnd::CodeBlock) | Event::End(_) => {
                depth = depth.saturating_sub(1);
                continue;
            }
            Event::Rule if depth == 0 => TopLevelPiece::Structure,
            _ => continue,
        };
        let start = line_start(text, range.start);
        // Containers share a line's start with earlier pieces only in malformed ranges: keep them ascending.
        if pieces.last().is_none_or(|(last, _)| start >= last.end.min(start + 1) && start > last.start) {
            pieces.push((start..range.end, piece));
        }
    }
    pieces
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns where to split a piece that is longer than `longest` bytes: after a line, else after a space, else between
/// characters. The result is at least 1 and on a character boundary.
fn find_long_cut(text: &str, longest: usize) -> usize {
    let mut window = longest.min(text.len());
    while !text.is_char_boundary(window) {
        window -= 1;
    }
    let head = &text[..window];
    if let Some(newline) = head.rfind('\n').filter(|at| *at > window / 4) {
        return newline + 1;
    }
    if let Some(space) = head.rfind(' ').filter(|at| *at > window / 4) {
        return space + 1;
    }
    // Don't split between CR and LF.
    if head.ends_with('\r') && window > 1 { window - 1 } else { window.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_blocks_of_their_own() {
        let text = "# T\n\npara\n\n```python\nx = 1\n```\n\nafter\n\n\
                    ```py\ny\n```\n```js\nno\n```\n~~~ python title=a\n`\n~~~";
        let blocks = split_into_blocks(text);
        assert_eq!(
            blocks,
            [
                "# T\n\npara\n\n",
                "```python\nx = 1\n```\n\n",
                "after\n\n",
                "```py\ny\n```\n",
                "```js\nno\n```\n",
                "~~~ python title=a\n`\n~~~"
            ]
        );
        let found: Vec<Option<&str>> = blocks.iter().map(|b| parse_cell(b).map(|c| &b[c.code])).collect();
        assert_eq!(found, [None, Some("x = 1\n"), None, Some("y\n"), None, Some("`\n")]);
    }

    #[test]
    fn time_limits_are_whole_seconds() {
        assert_eq!(cell_time_limit("```python timeout=\"5\"\nx\n```"), Some(5));
        assert_eq!(misread_time_limit("```python timeout=5\nx\n```"), None);
        for (stated, block) in [("-1", "```python timeout=-1\nx\n```"), ("1m", "```{python, timeout=1m}\nx\n```")] {
            assert_eq!((cell_time_limit(block), misread_time_limit(block)), (None, Some(stated)));
        }
    }

    #[test]
    fn pure_cells_say_so() {
        let braced = "```{python pure}\n```";
        for yes in ["```python pure\nx\n```", "```python timeout=3, pure\n```", "~~~py\n# pure\nx\n~~~", braced] {
            assert!(is_pure_cell(yes), "{yes}");
        }
        for no in ["```python\nx\n# pure\n```", "```python impure\n```", "```python\n# purely\n```", ""] {
            assert!(!is_pure_cell(no), "{no}");
        }
    }

    #[test]
    fn what_is_not_a_cell() {
        for text in [
            "```python\nunclosed\n",
            "```\nplain\n```\n",
            "    ```python\n    indented\n    ```\n",
            "> ```python\n> quoted\n> ```\n",
            "- ```python\n  listed\n  ```\n",
            "````\n```python\ninside\n```\n````\n",
            "```pythonic\n```\n",
            "---\ntitle: ```python\n---\n",
        ] {
            assert!(cell_ranges(text).is_empty(), "{text}");
            assert_eq!(count_blocks_and_cells(text).cells, 0, "{text}");
        }
        assert_eq!(count_blocks_and_cells("\r\n```python\r\nx\r\n```\r\n").cells, 1);
        assert_eq!(count_blocks_and_cells("```python\n```").cells, 1);
        // Other languages are cells in braces. Code without braces, and directives, aren't.
        assert_eq!(count_blocks_and_cells("```{r}\nx <- 1\n```\n```{Julia echo=false}\n1\n```\n").cells, 2);
        assert_eq!(
            count_blocks_and_cells("```r\n1\n```\n```{.r}\n1\n```\n```{note}\nx\n```\n```{figure} r\n```\n").cells,
            0
        );
        assert_eq!(cell_language("```{R, echo=TRUE}\n1\n```").as_deref(), Some("r"));
        assert_eq!(cell_language("```py\n1\n```").as_deref(), Some("python"));
        assert_eq!(cell_language("```widget\ntext: a\n```").as_deref(), Some("python"));
        let form = |block: &str| parse_cell(block).map(|cell| cell.form);
        assert_eq!(form("```widget\ntext: a\n```\n"), Some(CellForm::Widget));
        assert_eq!(form("~~~ Widget\n~~~\n"), Some(CellForm::Widget));
        assert_eq!(form("```{widget}\ntext: a\n```\n"), None);
        assert_eq!(form("```sql\nselect 1\n```\n"), Some(CellForm::Query));
        // `{sql}` is code for a SQL kernel, and `{.sql}` is only shown.
        assert_eq!(form("```{sql}\nselect 1\n```\n"), Some(CellForm::Code));
        assert_eq!(cell_language("```{sql}\nselect 1\n```").as_deref(), Some("sql"));
        assert_eq!(form("```{.sql}\nselect 1\n```\n"), None);
        assert_eq!(form("```python\n```\n"), Some(CellForm::Code));
    }

    #[test]
    fn long_texts_are_cut() {
        let line = "word ".repeat(300_000);
        assert!(split_into_blocks(&line).iter().all(|block| block.len() <= MAX_PARAGRAPH_BYTES));
        let unbroken = "\u{e4}".repeat(100_000);
        assert_eq!(split_into_blocks(&unbroken).concat(), unbroken);
    }

    #[test]
    fn parts_are_found_by_their_names() {
        let text = "# A\n\na\n\n## B *c*\n\nb ^x\n\n- i\n- j ^y\n\n### D\n\nd\n\n## E\n\ne\n";
        assert_eq!(linked_part(text, "B c"), Some("## B *c*\n\nb ^x\n\n- i\n- j ^y\n\n### D\n\nd\n\n"));
        assert_eq!(linked_part(text, "a#e"), Some("## E\n\ne\n"));
        assert_eq!(linked_part(text, "^X"), Some("b ^x\n"));
        assert_eq!(linked_part(text, "^y").map(str::trim), Some("- j ^y"));
        assert_eq!((linked_part(text, "F"), linked_part(text, "^z"), linked_part(text, "")), (None, None, None));
        let text = "# A\n\n## Use\n\n1\n\n# B\n\n## Use\n\n2\n\n## 🎉\n\n3\n";
        let second = Some("## Use\n\n2\n\n");
        assert_eq!((linked_part(text, "B#Use"), linked_part(text, "use-1")), (second, second));
        assert_eq!(
            (linked_part(text, "Gone#use"), linked_part(text, "🎉")),
            (linked_part(text, "Use"), Some("## 🎉\n\n3\n"))
        );
        assert_eq!(linked_part(text, "use-2"), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "(\\PC|\n|\r\n|```python\n|```\n|# |- |> |\t|---\n|\\| a \\||<b>){0,80}") {
            let blocks = split_into_blocks(&text);
            prop_assert_eq!(blocks.concat(), text.as_str());
            prop_assert!(blocks.iter().all(|block| !block.is_empty()));
        }
    }
}
