//! Note syntax beyond Markdown: wikilinks, tags, highlights, comments, formulas, callouts, block IDs. The window and
//! exports share this parser; it knows no fonts and no HTML.

use super::limits::parse;
use super::table_links::without_escape;
use super::tag_name;
use pulldown_cmark::{CowStr, Event, LinkType, Options, Tag, TagEnd};
use std::collections::VecDeque;
use std::ops::Range;

/// A token of a note's text.
#[derive(Clone, Debug, PartialEq)]
pub enum DialectToken<'a> {
    /// An event of the Markdown parser.
    Mark(Event<'a>),
    /// Start (`true`) or end of a highlight.
    Highlight(bool),
    /// A tag, without its `#`.
    Label(&'a str),
    /// ID of the block that ends here, without its `^`.
    Anchor(&'a str),
    /// Box of a task in a custom state, neither open nor done.
    State(char),
    /// A callout, at the start of its block quote. The next paragraph is its title, which may be empty.
    Callout(CalloutHead<'a>),
}

/// First line of a callout, without its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalloutHead<'a> {
    /// Kind that determines how the callout is shown.
    pub kind: CalloutKind,
    /// The word in the brackets.
    pub word: &'a str,
    /// Whether the callout is initially folded; `None` if it can't be folded.
    pub folded: Option<bool>,
}

/// Kinds of callouts; other names are aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the words say it")]
pub enum CalloutKind {
    Note,
    Abstract,
    Info,
    Todo,
    Tip,
    Success,
    Question,
    Warning,
    Failure,
    Danger,
    Bug,
    Example,
    Quote,
}

impl CalloutKind {
    /// Returns the kind for a name or alias. Unknown names are notes.
    pub fn of(word: &str) -> CalloutKind {
        match word.to_ascii_lowercase().as_str() {
            "abstract" | "summary" | "tldr" => CalloutKind::Abstract,
            "info" => CalloutKind::Info,
            "todo" => CalloutKind::Todo,
            "tip" | "hint" | "important" => CalloutKind::Tip,
            "success" | "check" | "done" => CalloutKind::Success,
            "question" | "help" | "faq" => CalloutKind::Question,
            "warning" | "caution" | "attention" => CalloutKind::Warning,
            "failure" | "fail" | "missing" => CalloutKind::Failure,
            "danger" | "error" => CalloutKind::Danger,
            "bug" => CalloutKind::Bug,
            "example" => CalloutKind::Example,
            "quote" | "cite" => CalloutKind::Quote,
            _ => CalloutKind::Note,
        }
    }

    /// Returns the kind's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            CalloutKind::Note => "note",
            CalloutKind::Abstract => "abstract",
            CalloutKind::Info => "info",
            CalloutKind::Todo => "todo",
            CalloutKind::Tip => "tip",
            CalloutKind::Success => "success",
            CalloutKind::Question => "question",
            CalloutKind::Warning => "warning",
            CalloutKind::Failure => "failure",
            CalloutKind::Danger => "danger",
            CalloutKind::Bug => "bug",
            CalloutKind::Example => "example",
            CalloutKind::Quote => "quote",
        }
    }
}

impl CalloutHead<'_> {
    /// Returns the title of a callout that has none: its word, capitalized.
    pub fn default_title(&self) -> String {
        let words = self.word.replace('-', " ");
        let mut letters = words.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    }
}

/// Splits the target of a wikilink into the note, and the heading or `^block` after `#`.
pub fn split_wiki_target(target: &str) -> (&str, Option<&str>) {
    match target.split_once('#') {
        Some((note, part)) => (note.trim(), Some(part.trim())),
        None => (target.trim(), None),
    }
}

/// Maximum length of a bare link.
const MAX_BARE_LINK_BYTES: usize = 8_192;

/// Returns the options for parsing notes: those for splitting into blocks, plus wikilinks and math.
pub fn dialect_options() -> Options {
    super::parser_options() | Options::ENABLE_WIKILINKS | Options::ENABLE_MATH
}

/// Tokenizes a text. `options` is [`dialect_options`] or a subset of it. Ranges are bytes of `text`.
pub fn tokenize(text: &str, options: Options) -> Vec<(DialectToken<'_>, Range<usize>)> {
    let marks = parse_events(text, options);
    let found = comment_ranges(text, &marks);
    tokenize_events(text, marks, &found)
}

/// Parses a text as Markdown; text that can't be parsed becomes one plain paragraph.
fn parse_events(text: &str, options: Options) -> Vec<(Event<'_>, Range<usize>)> {
    let plain = |_| {
        let all = 0..text.len();
        let words = (Event::Text(CowStr::from(text)), all.clone());
        vec![(Event::Start(Tag::Paragraph), all.clone()), words, (Event::End(TagEnd::Paragraph), all)]
    };
    parse(text, options, |parser| parser.into_offset_iter().collect()).unwrap_or_else(plain)
}

/// Tokenizes a part of a note whose comments are in these ranges.
pub fn tokenize_without<'a>(
    text: &'a str,
    options: Options,
    hidden: &[Range<usize>],
) -> Vec<(DialectToken<'a>, Range<usize>)> {
    tokenize_events(text, parse_events(text, options), hidden)
}

/// Returns a line of a note as plain text: without Markdown syntax, links as their text.
pub fn plain_text(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let options = dialect_options() - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for (token, range) in tokenize(line, options) {
        match token {
            DialectToken::Mark(
                Event::Text(words)
                | Event::Code(words)
                | Event::InlineMath(words)
                | Event::DisplayMath(words)
                | Event::InlineHtml(words)
                | Event::Html(words),
            ) => out.push_str(&words),
            DialectToken::Mark(Event::SoftBreak | Event::HardBreak) => out.push(' '),
            DialectToken::Mark(Event::FootnoteReference(_)) | DialectToken::Label(_) => out.push_str(&line[range]),
            DialectToken::Mark(_)
            | DialectToken::Highlight(_)
            | DialectToken::Anchor(_)
            | DialectToken::State(_)
            | DialectToken::Callout(_) => {}
        }
    }
    // Text that consists only of markup is shown as is.
    if out.trim().is_empty() { line.trim().to_owned() } else { out.trim().to_owned() }
}

fn tokenize_events<'a>(
    text: &'a str,
    marks: Vec<(Event<'a>, Range<usize>)>,
    hidden: &[Range<usize>],
) -> Vec<(DialectToken<'a>, Range<usize>)> {
    let marks = join_text_events(text, without_hidden(text, marks, hidden));
    let mut reading = DialectReader { text, out: Vec::with_capacity(marks.len()), links: 0, titles: VecDeque::new() };
    let lit = highlight_marks(text, &marks);
    for index in 0..marks.len() {
        reading.read_event(&marks, index, &lit);
    }
    reading.out
}

/// Returns the ranges of comments from `%%` through `%%`, outside code and formulas.
fn comment_ranges(text: &str, marks: &[(Event<'_>, Range<usize>)]) -> Vec<Range<usize>> {
    let found = percent_marks(text, marks);
    found.chunks_exact(2).map(|pair| pair[0]..pair[1] + 2).collect()
}

/// Returns the offsets of `%%` outside code and formulas, which alternately begin and end a comment. `options`: as for
/// [`tokenize`].
pub fn comment_marks(text: &str, options: Options) -> Vec<usize> {
    percent_marks(text, &parse_events(text, options))
}

fn percent_marks(text: &str, marks: &[(Event<'_>, Range<usize>)]) -> Vec<usize> {
    if !text.contains("%%") {
        return Vec::new();
    }
    let mut opaque: Vec<&Range<usize>> = Vec::new();
    for (event, range) in marks {
        if matches!(
            event,
            Event::Code(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::Start(Tag::CodeBlock(_) | Tag::MetadataBlock(_))
        ) {
            opaque.push(range);
        }
    }
    // The ranges are in order and don't overlap.
    let is_opaque = |at: &usize| {
        let before = opaque.partition_point(|range| range.start <= *at);
        before.checked_sub(1).is_some_and(|index| opaque[index].contains(at))
    };
    text.match_indices("%%").map(|(at, _)| at).filter(|at| !is_opaque(at)).collect()
}

/// Removes hidden ranges from the events.
fn without_hidden<'a>(
    text: &'a str,
    marks: Vec<(Event<'a>, Range<usize>)>,
    hidden: &[Range<usize>],
) -> Vec<(Event<'a>, Range<usize>)> {
    if hidden.is_empty() {
        return marks;
    }
    let mut hidden = hidden.to_vec();
    hidden.sort_by_key(|range| range.start);
    // The hidden ranges that a range may overlap; they're sorted.
    let near = |range: &Range<usize>| {
        let from = hidden.partition_point(|hidden| hidden.end < range.start);
        let to = hidden.partition_point(|hidden| hidden.start <= range.end);
        hidden[from..to.max(from)].iter()
    };
    let inside = |range: &Range<usize>| {
        let part = text.get(range.clone()).unwrap_or("");
        let start = range.start + part.len() - part.trim_start().len();
        let end = start + part.trim().len();
        near(range).any(|hidden| hidden.start <= start && end <= hidden.end && start < end)
    };
    let mut kept = Vec::with_capacity(marks.len());
    for (event, range) in marks {
        let is_source = matches!(&event, Event::Text(words) if text.get(range.clone()) == Some(&**words));
        // Spaces around a comment stay.
        if !is_source && inside(&range) {
            continue;
        }
        if !is_source || near(&range).all(|hidden| hidden.end <= range.start || range.end <= hidden.start) {
            let breaks = matches!(event, Event::SoftBreak | Event::HardBreak);
            if !breaks || near(&range).all(|hidden| range.end <= hidden.start || hidden.end < range.start) {
                kept.push((event, range));
            }
            continue;
        }
        let mut at = range.start;
        for part in near(&range).filter(|hidden| hidden.start < range.end && range.start < hidden.end) {
            if part.start > at {
                kept.push((Event::Text(CowStr::from(&text[at..part.start])), at..part.start));
            }
            at = at.max(part.end);
        }
        if at < range.end {
            kept.push((Event::Text(CowStr::from(&text[at..range.end])), at..range.end));
        }
    }
    kept
}

/// Joins adjacent text events whose text is in the source unchanged. A dollar sign that only looked like a formula
/// becomes text again.
fn join_text_events<'a>(text: &'a str, marks: Vec<(Event<'a>, Range<usize>)>) -> Vec<(Event<'a>, Range<usize>)> {
    let mut out: Vec<(Event<'a>, Range<usize>)> = Vec::with_capacity(marks.len());
    for (event, range) in marks {
        let event = match event {
            // "$5-$10" is an amount of money.
            Event::InlineMath(_) if text[range.end..].starts_with(|next: char| next.is_ascii_digit()) => {
                Event::Text(CowStr::from(&text[range.clone()]))
            }
            event => without_escape(event),
        };
        let is_source = matches!(&event, Event::Text(words) if text.get(range.clone()) == Some(&**words));
        if is_source
            && let Some((Event::Text(before), known)) = out.last_mut()
            && known.end == range.start
            && text.get(known.clone()) == Some(&**before)
        {
            known.end = range.end;
            *before = CowStr::from(&text[known.clone()]);
            continue;
        }
        out.push((event, range));
    }
    out
}

/// Returns the positions of `==` that start (`true`) or end a highlight, in order. Both ends are in the same inline
/// text.
fn highlight_marks(text: &str, marks: &[(Event<'_>, Range<usize>)]) -> Vec<(usize, bool)> {
    if !text.contains("==") {
        return Vec::new();
    }
    let mut found = Vec::new();
    // For each open element: the position of a `==` that may begin a highlight.
    let mut open: Vec<Option<usize>> = vec![None];
    for (event, range) in marks {
        match event {
            Event::Start(_) => open.push(None),
            Event::End(_) => _ = open.pop(),
            Event::Text(words) if text.get(range.clone()) == Some(&**words) => {
                let mut at = 0;
                while let Some(offset) = words[at..].find("==") {
                    let start = at + offset;
                    let run = words[start..].bytes().take_while(|byte| *byte == b'=').count();
                    at = start + run;
                    if run != 2 {
                        continue;
                    }
                    let place = range.start + start;
                    let space = |c: char| c.is_whitespace();
                    let before = text[..place].chars().next_back().is_none_or(space);
                    let after = text[place + 2..].chars().next().is_none_or(space);
                    let Some(slot) = open.last_mut() else { continue };
                    match *slot {
                        Some(begun) if !before => {
                            found.push((begun, true));
                            found.push((place, false));
                            *slot = None;
                        }
                        _ if !after => *slot = Some(place),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

struct DialectReader<'a> {
    text: &'a str,
    out: Vec<(DialectToken<'a>, Range<usize>)>,
    /// Number of open links. Tags and bare links aren't recognized inside one.
    links: usize,
    /// Callouts whose title is being read: the end of its line, and the number of elements open inside it.
    titles: VecDeque<CalloutHeading>,
}

struct CalloutHeading {
    /// Where the title's text begins.
    from: usize,
    end: usize,
    depth: usize,
}

impl<'a> DialectReader<'a> {
    fn read_event(&mut self, marks: &[(Event<'a>, Range<usize>)], index: usize, lit: &[(usize, bool)]) {
        let (event, range) = &marks[index];
        match event {
            Event::Start(Tag::BlockQuote(_)) => {
                let head = match marks.get(index + 1) {
                    Some((Event::Start(Tag::Paragraph), paragraph)) => parse_callout(self.text, paragraph.start),
                    _ => None,
                };
                if let Some((callout, from, end)) = head {
                    self.out.push((DialectToken::Callout(callout), range.clone()));
                    self.titles.push_back(CalloutHeading { from, end, depth: 0 });
                    return;
                }
            }
            Event::Start(Tag::Strikethrough) if is_subscript(self.text, range) => {
                self.out.push((DialectToken::Mark(Event::Start(Tag::Subscript)), range.clone()));
                return;
            }
            Event::End(TagEnd::Strikethrough) if is_subscript(self.text, range) => {
                self.out.push((DialectToken::Mark(Event::End(TagEnd::Subscript)), range.clone()));
                return;
            }
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => self.links += 1,
            Event::End(TagEnd::Link | TagEnd::Image) => self.links = self.links.saturating_sub(1),
            Event::Text(words) if self.text.get(range.clone()) == Some(&**words) => {
                let next = marks.get(index + 1).map(|(event, _)| event);
                let first = marks[..index].last().is_some_and(|(before, _)| match before {
                    Event::Start(Tag::Item) => true,
                    Event::Start(Tag::Paragraph) => {
                        index > 1 && matches!(marks[index - 2], (Event::Start(Tag::Item), _))
                    }
                    _ => false,
                });
                if first && let Some((state, length)) = task_state(words) {
                    self.out.push((DialectToken::State(state), range.start..range.start + 3));
                    self.read_running_text(range.start + length..range.end, next, lit);
                    return;
                }
                let from = self.titles.back().map_or(range.start, |title| title.from.clamp(range.start, range.end));
                self.read_running_text(from..range.end, next, lit);
                return;
            }
            _ => {}
        }
        if let Some(title) = self.titles.back_mut() {
            match event {
                Event::SoftBreak | Event::HardBreak if title.depth == 1 && range.start >= title.end => {
                    self.titles.pop_back();
                    self.out.push((DialectToken::Mark(Event::End(TagEnd::Paragraph)), range.clone()));
                    self.out.push((DialectToken::Mark(Event::Start(Tag::Paragraph)), range.end..range.end));
                    return;
                }
                Event::Start(_) => title.depth += 1,
                Event::End(_) => {
                    title.depth -= 1;
                    if title.depth == 0 {
                        self.titles.pop_back();
                    }
                }
                _ => {}
            }
        }
        self.out.push((DialectToken::Mark(event.clone()), range.clone()));
    }

    fn push_text(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.out.push((DialectToken::Mark(Event::Text(CowStr::from(&self.text[range.clone()]))), range));
        }
    }

    /// Reads inline text that is in the source unchanged.
    fn read_running_text(&mut self, range: Range<usize>, next: Option<&Event<'_>>, lit: &[(usize, bool)]) {
        let mut end = range.end;
        let anchor = block_anchor(self.text, range.clone(), next);
        if let Some(name) = &anchor {
            end = range.start + self.text[range.start..name.start - 1].trim_end_matches([' ', '\t']).len();
        }
        let (mut from, mut at) = (range.start, range.start);
        let bytes = self.text.as_bytes();
        while at < end {
            // No syntax begins inside a word.
            if bytes[at].is_ascii_alphanumeric() && at > 0 && bytes[at - 1].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            if let Ok(place) = lit.binary_search_by_key(&at, |(place, _)| *place) {
                self.push_text(from..at);
                self.out.push((DialectToken::Highlight(lit[place].1), at..at + 2));
                at += 2;
                from = at;
                continue;
            }
            if matches!(bytes[at], b'^' | b'~')
                && let Some(length) = script_length(self.text, at, end)
            {
                let (tag, tag_end) = match bytes[at] {
                    b'^' => (Tag::Superscript, TagEnd::Superscript),
                    _ => (Tag::Subscript, TagEnd::Subscript),
                };
                self.push_text(from..at);
                let whole = at..at + length + 2;
                self.out.push((DialectToken::Mark(Event::Start(tag)), whole.clone()));
                self.push_text(at + 1..at + 1 + length);
                self.out.push((DialectToken::Mark(Event::End(tag_end)), whole.clone()));
                (at, from) = (whole.end, whole.end);
                continue;
            }
            if self.links == 0
                && self.text.as_bytes()[at] == b'#'
                && let Some(length) = tag_length(self.text, at)
                && at + 1 + length <= end
            {
                self.push_text(from..at);
                at += 1 + length;
                self.out.push((DialectToken::Label(&self.text[at - length..at]), at - length - 1..at));
                from = at;
                continue;
            }
            if self.links == 0
                && let Some((length, target)) = bare_link_at(self.text, at, end)
            {
                self.push_text(from..at);
                let link_type = LinkType::Autolink;
                let (title, id) = (CowStr::Borrowed(""), CowStr::Borrowed(""));
                let tag = Tag::Link { link_type, dest_url: CowStr::from(target), title, id };
                self.out.push((DialectToken::Mark(Event::Start(tag)), at..at + length));
                self.push_text(at..at + length);
                self.out.push((DialectToken::Mark(Event::End(TagEnd::Link)), at..at + length));
                at += length;
                from = at;
                continue;
            }
            at += 1;
            while !self.text.is_char_boundary(at) {
                at += 1;
            }
        }
        self.push_text(from..end);
        if let Some(name) = anchor {
            self.out.push((DialectToken::Anchor(&self.text[name.clone()]), name));
        }
    }
}

/// Returns whether a superscript or subscript may begin here: right after a word, a number or a closing bracket.
fn follows_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || matches!(before, ')' | ']'))
}

/// Returns whether text that GitHub's Markdown parses as strikethrough is a subscript.
fn is_subscript(text: &str, range: &Range<usize>) -> bool {
    script_length(text, range.start, range.end).is_some_and(|length| length + 2 == range.len())
}

/// Returns the length of the superscript or subscript whose first mark is at `at`, without its marks: `x^2^`, `H~2~O`.
fn script_length(text: &str, at: usize, end: usize) -> Option<usize> {
    let mark = char::from(text.as_bytes()[at]);
    let inner = &text[at + 1..end];
    let length = inner.find(|letter: char| letter == mark || letter.is_whitespace())?;
    let closes = matches!(mark, '^' | '~') && inner[length..].starts_with(mark);
    (length > 0 && closes && follows_word(text, at)).then_some(length)
}

/// Returns the state of a task at the start of an item, `[/] `, and its length in bytes.
fn task_state(words: &str) -> Option<(char, usize)> {
    let rest = words.strip_prefix('[')?;
    let state = rest.chars().next().filter(|state| matches!(state, '/' | '-' | '>' | '<' | '!' | '?' | '*'))?;
    rest[1..].starts_with("] ").then_some((state, 4))
}

/// Parses a bare link as GitHub does. Returns its length and target.
fn bare_link_at(text: &str, at: usize, end: usize) -> Option<(usize, String)> {
    let first = text.as_bytes()[at].to_ascii_lowercase();
    let before = text[..at].chars().next_back();
    let fresh = before.is_none_or(|before| before.is_whitespace() || matches!(before, '*' | '_' | '~' | '('));
    if matches!(first, b'h' | b'w' | b'f') && fresh {
        let rest = &text[at..end];
        let scheme = ["https://", "http://", "ftp://"].into_iter().find(|scheme| rest.starts_with(scheme));
        let skip = scheme.map_or(0, str::len);
        if scheme.is_some() || rest.starts_with("www.") {
            let head = &rest[..rest.floor_char_boundary(MAX_BARE_LINK_BYTES)];
            let ends = head.find(|c: char| c.is_whitespace() || c == '<');
            let length = ends.or((head.len() == rest.len()).then_some(rest.len()))?;
            let length = trimmed_link_length(&rest[..length]);
            let host = rest[skip..length.max(skip)].split(['/', '?', '#']).next().unwrap_or("");
            let mut parts = host.rsplit('.');
            let last_two = parts.by_ref().take(2).all(|part| !part.is_empty() && !part.contains('_'));
            let good = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'));
            let prefix = if scheme.is_some() { "" } else { "http://" };
            return (host.contains('.') && last_two && good).then(|| (length, format!("{prefix}{}", &rest[..length])));
        }
    }
    let part = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b'+');
    let joined = |before: char| before == '\\' || (before.is_ascii() && part(before as u8));
    if !part(text.as_bytes()[at]) || before.is_some_and(joined) {
        return None;
    }
    // Possibly an email address. Most words aren't followed by `@`.
    let bytes = &text.as_bytes()[at..end];
    let name = bytes.iter().take_while(|byte| part(**byte)).count();
    if bytes.get(name) != Some(&b'@') {
        return None;
    }
    let rest = &bytes[name + 1..];
    let host = rest.iter().take_while(|byte| part(**byte) && **byte != b'+').count();
    let host = std::str::from_utf8(&rest[..host]).ok()?.trim_end_matches('.');
    let good = host.contains('.') && !host.starts_with('.') && !host.ends_with(['-', '_']);
    let length = name + 1 + host.len();
    good.then(|| (length, format!("mailto:{}", &text[at..at + length])))
}

/// Returns the length of a link without trailing punctuation that belongs to the sentence around it.
fn trimmed_link_length(link: &str) -> usize {
    let mut link = link;
    // Number of closing brackets without an opening one.
    let mut spare = link.matches(')').count().saturating_sub(link.matches('(').count());
    loop {
        let shorter = link.trim_end_matches(['?', '!', '.', ',', ':', '*', '_', '~', '\'', '"']);
        let shorter = match shorter.strip_suffix(')') {
            Some(inner) if spare > 0 => {
                spare -= 1;
                inner
            }
            _ => shorter,
        };
        let shorter = match shorter.strip_suffix(';').and_then(|inner| inner.rfind('&').map(|at| (inner, at))) {
            Some((inner, at)) if at + 1 < inner.len() && inner[at + 1..].bytes().all(|b| b.is_ascii_alphanumeric()) => {
                &inner[..at]
            }
            _ => shorter,
        };
        if shorter.len() == link.len() {
            return link.len();
        }
        link = shorter;
    }
}

/// Returns the length of the tag whose `#` is at `at`, in bytes after the `#`.
pub fn tag_length(text: &str, at: usize) -> Option<usize> {
    let before = text[..at].chars().next_back();
    if before.is_some_and(|before| !before.is_whitespace() && !matches!(before, '(' | '[' | '{' | ',' | ';' | '"')) {
        return None;
    }
    let name = tag_name(&text[at + 1..]).trim_end_matches(['/', '-']);
    // "#1" is a number, not a tag.
    (!name.starts_with('/') && name.chars().any(|c| !c.is_ascii_digit() && c != '/')).then_some(name.len())
}

/// Returns the range of the block ID (` ^name`) at the very end of a block, without its `^`.
fn block_anchor(text: &str, range: Range<usize>, next: Option<&Event<'_>>) -> Option<Range<usize>> {
    let ends = match next {
        None => true,
        Some(Event::End(
            TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::BlockQuote(_) | TagEnd::TableCell,
        )) => true,
        // An item that contains a list, without a paragraph around its text.
        Some(Event::Start(Tag::List(_))) => true,
        Some(_) => false,
    };
    let words = text[range.clone()].trim_end();
    let mark = words.rfind('^').filter(|_| ends)?;
    let name = &words[mark + 1..];
    let spaced =
        words[..mark].chars().next_back().map_or(text[..range.start].ends_with(['\n', ' ']), char::is_whitespace)
            || (mark == 0 && range.start == 0);
    let good = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (spaced && good).then(|| range.start + mark + 1..range.start + words.len())
}

/// Parses the head of a callout whose first line starts at `at`. Returns the head, where its title starts, and where
/// its line ends.
pub fn parse_callout(text: &str, at: usize) -> Option<(CalloutHead<'_>, usize, usize)> {
    let line = text[at..].lines().next().unwrap_or("");
    let rest = line.strip_prefix("[!")?;
    let (word, rest) = rest.split_once(']')?;
    if word.is_empty() || !word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') {
        return None;
    }
    let folded = match rest.as_bytes().first() {
        Some(b'-') => Some(true),
        Some(b'+') => Some(false),
        Some(b' ' | b'\t') | None => None,
        Some(_) => return None,
    };
    let rest = if folded.is_some() { &rest[1..] } else { rest };
    let title = rest.trim_start();
    let callout = CalloutHead { kind: CalloutKind::of(word), word, folded };
    Some((callout, at + line.len() - title.len(), at + line.trim_end().len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the tokens of a text in short form.
    fn show(text: &str) -> String {
        let mut out = String::new();
        let mut last = 0;
        for (token, range) in tokenize(text, dialect_options()) {
            assert!(text.get(range.clone()).is_some(), "{text:?}: {range:?}");
            match token {
                DialectToken::Mark(Event::Text(words)) => {
                    assert!(range.start >= last, "{text:?}");
                    last = range.end;
                    out.push_str(&words);
                }
                DialectToken::Mark(Event::Code(code)) => out.push_str(&format!("`{code}`")),
                DialectToken::Mark(Event::InlineMath(math) | Event::DisplayMath(math)) => {
                    out.push_str(&format!("${math}$"))
                }
                DialectToken::Mark(Event::Start(Tag::Link { dest_url, .. })) => out.push_str(&format!("<{dest_url}:")),
                DialectToken::Mark(Event::End(TagEnd::Link)) => out.push('>'),
                DialectToken::Mark(Event::Start(Tag::Superscript) | Event::End(TagEnd::Superscript)) => out.push('↑'),
                DialectToken::Mark(Event::Start(Tag::Subscript) | Event::End(TagEnd::Subscript)) => out.push('↓'),
                DialectToken::Mark(Event::Start(Tag::Paragraph)) => out.push('('),
                DialectToken::Mark(Event::End(TagEnd::Paragraph)) => out.push(')'),
                DialectToken::Mark(Event::SoftBreak) => out.push('/'),
                DialectToken::Mark(_) => {}
                DialectToken::Highlight(on) => out.push(if on { '{' } else { '}' }),
                DialectToken::Label(name) => out.push_str(&format!("#[{name}]")),
                DialectToken::Anchor(name) => out.push_str(&format!("^[{name}]")),
                DialectToken::State(state) => out.push_str(&format!("[{state}]")),
                DialectToken::Callout(CalloutHead { kind, folded, .. }) => {
                    out.push_str(&format!("!{} {folded:?}", kind.name()))
                }
            }
        }
        out
    }

    #[test]
    fn links_tags_highlights_and_formulas() {
        assert_eq!(show("see [[A b#c|d]] and [[E]]"), "(see <A b#c:d> and <E:E>)");
        assert_eq!(show("#a/b-c, (#d_e) a#f #1 #1a \\#g `#h`"), "(#[a/b-c], (#[d_e]) a#f #1 #[1a] #g `#h`)");
        assert_eq!(show("==a **b** c== == d ==e"), "({a b c} == d ==e)");
        assert_eq!(show("a == b and c == d, `==x==`"), "(a == b and c == d, `==x==`)");
        assert_eq!(show("$x_1$ costs $5-$10 and $$y$$"), "($x_1$ costs $5-$10 and $y$)");
    }

    #[test]
    fn links_without_brackets() {
        assert_eq!(show("at https://a.b/c?d=(e). x"), "(at <https://a.b/c?d=(e):https://a.b/c?d=(e)>. x)");
        assert_eq!(
            show("(www.a.b/c) xwww.a.b www.a http://x"),
            "((<http://www.a.b/c:www.a.b/c>) xwww.a.b <http://www.a:www.a> http://x)"
        );
        assert_eq!(show("a.b@c.de, e@f"), "(<mailto:a.b@c.de:a.b@c.de>, e@f)");
        assert_eq!(show("[https://a.b](c) `https://a.b`"), "(<c:https://a.b> `https://a.b`)");
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(show("a %%b%% c `%%` d"), "(a  c `%%` d)");
        assert_eq!(show("a\n\n%%\nb\n\n- c\n%%\n\nd"), "(a)(d)");
        assert_eq!(show("a %% b"), "(a %% b)");
        assert_eq!(show("%%%%"), "");
    }

    #[test]
    fn lines_are_plain_words() {
        assert_eq!(
            plain_text("**Buy** [[Bread|rye bread]] at [the shop](x) `now`, ~~or~~ ==not== #food/a"),
            "Buy rye bread at the shop now, or not #food/a"
        );
        assert_eq!(plain_text("see [[Other#Part]] %%not this%% $x_1$ ^id"), "see Other#Part  x_1");
        assert_eq!(
            (plain_text("**"), plain_text(" a < b "), plain_text("1. x")),
            ("**".into(), "a < b".into(), "x".into())
        );
    }

    #[test]
    fn blocks_have_names() {
        assert_eq!(show("a b ^c-1"), "(a b^[c-1])");
        assert_eq!(show("- a ^x\n- b^2"), "a^[x]b^2");
        assert_eq!(show("- [/] a\n- [x] b\n- [-]c"), "[/]ab[-]c");
        assert_eq!(show("2 ^ 3 ^y z"), "(2 ^ 3 ^y z)");
    }

    #[test]
    fn callouts_have_a_title_and_a_body() {
        assert_eq!(show("> [!warning] *Mind* it\n> a\n> b"), "!warning None(Mind it)(a/b)");
        assert_eq!(show("> [!tldr]-\n> a"), "!abstract Some(true)()(a)");
        assert_eq!(show("> [!x]+ t\n>\n> a"), "!note Some(false)(t)(a)");
        assert_eq!(show("> [a] b"), "([a] b)");
        assert_eq!(show("> [!info] a\n> > [!bug] b\n> > c"), "!info None(a)!bug None(b)(c)");
    }

    #[test]
    fn nothing_trips_it() {
        let parts = [
            "==", "%%", "#a", "^b", "[[", "]]", "|", "$", "$$", "> ", "[!x]-", "é", "\n", "\n\n", "`", "- ", "*", "\\",
        ];
        let mut seed = 3_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..14 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(parts[(seed >> 40) as usize % parts.len()]);
            }
            show(&text);
        }
    }

    #[test]
    fn words_are_raised_and_lowered() {
        assert_eq!(show("H~2~O, x^2^ and e^iπ^."), "(H↓2↓O, x↑2↑ and e↑iπ↑.)");
        assert_eq!(show("f(x)^2^ 10^-3^"), "(f(x)↑2↑ 10↑-3↑)");
        for text in ["2^10 and 2^5", "~struck~ and a~b c~", "~~struck~~", "x^^", "end ^name", "a\\^b^", "^alone^"] {
            assert!(!show(text).contains(['↑', '↓']), "{text}: {}", show(text));
        }
    }
}
