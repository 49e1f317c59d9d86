//! The outline of a note: links, headings, tags, block ids, aliases, properties, tasks. It depends on the note's text
//! alone, so it can be computed on any thread and stored with the file's hash.

use crate::markdown;
use crate::task::NoteTask;
use crate::yaml_edit::YamlReadError;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use store::BlobHash;

/// Syntax of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkKind {
    /// A link to a note, `[[note]]`.
    #[serde(rename = "w")]
    Wiki,
    /// An embedded note or file, `![[note]]`.
    #[serde(rename = "e")]
    Embed,
    /// A Markdown link, `[text](note.md)`.
    #[serde(rename = "m")]
    Markdown,
    /// A Markdown link with angle brackets, `[text](<my note.md>)`.
    #[serde(rename = "a")]
    Angled,
}

/// A link to another file of the volume, or to a part of the same note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteLink {
    /// Syntax of the link.
    #[serde(rename = "k")]
    pub kind: LinkKind,
    /// The link's target as written, without the part after `#`.
    #[serde(rename = "t")]
    pub target: String,
    /// The heading that the link leads to, or with a leading `^` the block.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Byte offset of the target in the note.
    #[serde(rename = "o")]
    pub at: usize,
    /// The line that contains the link, shortened.
    #[serde(rename = "l")]
    pub line: String,
}

impl NoteLink {
    /// Returns the target as a path.
    pub fn path(&self) -> Cow<'_, str> {
        link_path(self.kind, &self.target)
    }
}

/// Returns a link's target as a path.
pub fn link_path(kind: LinkKind, target: &str) -> Cow<'_, str> {
    match kind {
        LinkKind::Wiki | LinkKind::Embed => Cow::Borrowed(target.trim()),
        LinkKind::Markdown | LinkKind::Angled => percent_decode(target),
    }
}

/// A heading of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteHeading {
    /// Level of the heading, 1 to 6.
    #[serde(rename = "n")]
    pub level: u8,
    /// Text of the heading without markup.
    #[serde(rename = "t")]
    pub text: String,
    /// Byte offset of the heading in the note.
    #[serde(rename = "o")]
    pub at: usize,
}

/// Everything in a note that other notes can refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outline {
    /// Links in document order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<NoteLink>,
    /// Headings in document order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<NoteHeading>,
    /// Tags without `#`, without duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Block IDs without `^`, and their offsets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<(String, usize)>,
    /// Aliases of the note.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Tasks in document order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<NoteTask>,
    /// Properties from the front matter.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
    /// Why a part of the note is shown as plain text, as a sentence. The rest of the outline is read as far as
    /// possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An outline, and the hash of the file that it was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlinedBytes {
    /// The first bytes of the file's hash.
    pub hash: u64,
    /// Outline of the file's text.
    pub outline: Outline,
}

impl OutlinedBytes {
    /// Creates the outline of a file's text.
    pub fn of(hash: BlobHash, text: &str) -> OutlinedBytes {
        OutlinedBytes { hash: hash_stamp(hash), outline: Outline::of(text) }
    }

    /// Returns whether the outline was read from a file with this hash.
    pub fn matches_hash(&self, hash: BlobHash) -> bool {
        self.hash == hash_stamp(hash)
    }
}

/// Number of the rules by which outlines are read. Those read by other rules are read again.
const OUTLINE_RULES: u64 = 2;

/// Returns whether one of these ranges, which are in order and don't overlap, contains a place.
fn is_within(ranges: &[Range<usize>], at: usize) -> bool {
    let before = ranges.partition_point(|range| range.start <= at);
    before.checked_sub(1).is_some_and(|index| ranges[index].contains(&at))
}

fn hash_stamp(hash: BlobHash) -> u64 {
    hash.0.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte)) ^ OUTLINE_RULES
}

/// Approximate maximum length of a line of context.
const MAX_CONTEXT_CHARS: usize = 160;

impl Outline {
    /// Reads the outline of a note's text.
    pub fn of(text: &str) -> Outline {
        let mut outline = Outline::default();
        let front = front_matter_range(text);
        if let Some(front) = &front {
            match parse_properties(&text[front.clone()]) {
                Ok(properties) => outline.properties = properties,
                Err(why) => {
                    let why = placed_in_note(text, front, why);
                    outline.problem = Some(format!("Its properties can't be read: {why}."));
                }
            }
            outline.aliases = property_words(&outline.properties, &["aliases", "alias"], ',');
            outline.tags = property_words(&outline.properties, &["tags", "tag"], ' ');
            outline.tags.iter_mut().for_each(|tag| *tag = tag.trim_start_matches('#').to_owned());
        }
        outline.aliases.extend(page_aliases(&text[front.as_ref().map_or(0, |front| front.end)..]));
        let options = markdown::parser_options() & !Options::ENABLE_WIKILINKS;
        let parsed = markdown::parse(text, options, |parser| outline.read_markdown(text, parser));
        let [code, html, html_comments] = match parsed {
            Ok(ranges) => ranges,
            Err(why) => {
                outline.problem = Some(format!("It's shown as plain text: {why}."));
                Default::default()
            }
        };
        outline.read_lines(text, front.map_or(0, |front| front.end), &code, &html);
        if outline.problem.is_none() && !outline.tasks.is_empty() {
            // As in Obsidian, what is commented out is no task.
            let marks = match text.contains("%%") {
                true => markdown::dialect::comment_marks(text, markdown::dialect::dialect_options()),
                false => Vec::new(),
            };
            let comments: Vec<Range<usize>> = marks.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            outline.tasks.retain(|task| !is_within(&html_comments, task.at) && !is_within(&comments, task.at));
        }
        outline.links.sort_by_key(|link| link.at);
        outline.tags.sort();
        outline.tags.dedup();
        outline
    }

    /// Reads headings and Markdown links. Returns the ranges of code, those of HTML, and those of comments in HTML that
    /// begin a line.
    fn read_markdown<'a>(&mut self, text: &'a str, parser: Parser<'a>) -> [Vec<Range<usize>>; 3] {
        let [mut code, mut html, mut comments]: [Vec<Range<usize>>; 3] = Default::default();
        let mut heading: Option<NoteHeading> = None;
        let mut definitions: Vec<Range<usize>> =
            parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
        definitions.sort_by_key(|span| span.start);
        for span in definitions {
            if let Some(colon) = text[span.clone()].find("]:") {
                let from = span.start + colon + 2;
                let space = text[from..span.end].len() - text[from..span.end].trim_start().len();
                self.push_markdown_link(text, from + space);
            }
        }
        // Open inline links, and how far their text was read. The destination follows it.
        let mut open: Vec<usize> = Vec::new();
        for (event, range) in parser.into_offset_iter() {
            let ends = matches!(event, Event::End(TagEnd::Link | TagEnd::Image));
            if let Some(read) = open.last_mut().filter(|_| !ends) {
                *read = (*read).max(if matches!(event, Event::Start(_)) { range.start } else { range.end });
            }
            match event {
                Event::Start(Tag::CodeBlock(_)) => code.push(range),
                Event::Html(_) | Event::InlineHtml(_) => html.push(range),
                Event::Start(Tag::HtmlBlock) if text[range.start..].trim_start().starts_with("<!--") => {
                    comments.push(range);
                }
                Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.text.push_str(&part);
                    }
                    code.push(range);
                }
                Event::Text(part) => {
                    if let Some(heading) = &mut heading {
                        heading.text.push_str(&part);
                    }
                }
                Event::Start(Tag::Heading { level, .. }) => {
                    heading = Some(NoteHeading { level: level as u8, text: String::new(), at: range.start });
                }
                Event::End(TagEnd::Heading(_)) => self.headings.extend(heading.take()),
                Event::Start(Tag::Link { link_type: LinkType::Inline, .. }) => open.push(range.start + 1),
                Event::Start(Tag::Image { link_type: LinkType::Inline, .. }) => open.push(range.start + 2),
                Event::Start(Tag::Link { .. } | Tag::Image { .. }) => open.push(usize::MAX),
                Event::End(TagEnd::Link | TagEnd::Image) => {
                    // The end event covers the whole link; earlier events recorded where its text ends.
                    if let Some(read) = open.pop().filter(|read| *read < range.end)
                        && let Some(from) = destination_start(&text[read..range.end])
                    {
                        self.push_markdown_link(text, read + from);
                    }
                    if let Some(outer) = open.last_mut() {
                        *outer = (*outer).max(range.end);
                    }
                }
                _ => {}
            }
        }
        [code, html, comments]
    }

    /// Adds the Markdown link whose destination begins at `from`.
    fn push_markdown_link(&mut self, text: &str, from: usize) {
        let rest = &text[from..];
        let (kind, at, target) = match rest.strip_prefix('<') {
            Some(inner) => (LinkKind::Angled, from + 1, inner.split(['>', '\n']).next().unwrap_or("")),
            None => {
                let mut depth = 0;
                let end = rest.find(|letter: char| {
                    depth += i32::from(letter == '(') - i32::from(letter == ')');
                    depth < 0 || letter.is_whitespace()
                });
                (LinkKind::Markdown, from, &rest[..end.unwrap_or(rest.len())])
            }
        };
        let elsewhere = target.split_once(':').is_some_and(|(scheme, _)| {
            scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        // Logseq writes `[text]([[note]])`, which is found as a wikilink.
        if !elsewhere && !target.is_empty() && !target.starts_with("//") && !target.starts_with("[[") {
            self.push_link(text, kind, at, target);
        }
    }

    fn push_link(&mut self, text: &str, kind: LinkKind, at: usize, target: &str) {
        let (path, part) = match target.split_once('#') {
            Some((path, part)) => (path, Some(part)),
            None => (target, None),
        };
        let part = part.map(|part| match kind {
            LinkKind::Wiki | LinkKind::Embed => part.trim().to_owned(),
            LinkKind::Markdown | LinkKind::Angled => percent_decode(part).into_owned(),
        });
        let (target, line) = (path.to_owned(), context_line(text, at));
        self.links.push(NoteLink { kind, target, part, at, line });
    }

    /// Reads line-based syntax: wikilinks, tags, block IDs, tasks.
    fn read_lines(&mut self, text: &str, front: usize, code: &[Range<usize>], html: &[Range<usize>]) {
        let mut code = code.iter().peekable();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let (start, end) = (at, at + line.len());
            at = end;
            while code.peek().is_some_and(|range| range.end <= start) {
                code.next();
            }
            if code.peek().is_some_and(|range| range.start <= start && range.end >= end) {
                continue;
            }
            let near: Vec<&Range<usize>> = code.clone().take_while(|range| range.start < end).collect();
            let in_code = |at: usize| {
                let before = near.partition_point(|range| range.start <= at);
                before.checked_sub(1).is_some_and(|index| near[index].contains(&at))
            };
            let body = line.trim_end_matches(['\n', '\r']);
            self.read_wiki_links(text, start, body, &in_code);
            if start < front {
                continue;
            }
            // Colors and ids in HTML aren't tags.
            self.read_tags(start, body, &|at| in_code(at) || is_within(html, at));
            if let Some(task) = NoteTask::parse_line(body, start) {
                self.tasks.push(task);
            }
            let id = body
                .trim_end()
                .rsplit_once('^')
                .filter(|(before, _)| before.is_empty() || before.ends_with(|letter: char| letter.is_whitespace()));
            if let Some((before, id)) = id
                && !id.is_empty()
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !in_code(start + before.len())
            {
                self.blocks.push((id.to_owned(), start));
            }
        }
    }

    fn read_wiki_links(&mut self, text: &str, start: usize, line: &str, in_code: &dyn Fn(usize) -> bool) {
        let mut from = 0;
        while let Some(open) = line[from..].find("[[").map(|open| from + open) {
            let inner = open + 2;
            let Some(close) = line[inner..].find("]]").map(|close| inner + close) else { return };
            // In `[[a [[b]]`, the inner brackets are the link.
            let inner = line[inner..close].rfind("[[").map_or(inner, |again| inner + again + 2);
            from = close + 2;
            let whole = &line[inner..close];
            let target = whole.split('|').next().unwrap_or(whole);
            let target = if target.len() < whole.len() { target.strip_suffix('\\').unwrap_or(target) } else { target };
            if target.trim().is_empty() || in_code(start + inner) {
                continue;
            }
            let kind = if line[..inner - 2].ends_with('!') { LinkKind::Embed } else { LinkKind::Wiki };
            self.push_link(text, kind, start + inner, target);
        }
    }

    fn read_tags(&mut self, start: usize, line: &str, in_code: &dyn Fn(usize) -> bool) {
        for (at, _) in line.match_indices('#') {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|before| !before.is_whitespace()) {
                continue;
            }
            let rest = &line[at + 1..];
            let tag = markdown::tag_name(rest).trim_end_matches('/');
            if tag.chars().any(|letter| !letter.is_ascii_digit()) && !in_code(start + at) {
                self.tags.push(tag.to_owned());
            }
        }
    }
}

/// Returns the offset of an inline link's destination in the text after its label.
fn destination_start(rest: &str) -> Option<usize> {
    let from = rest.find("](")? + 2;
    Some(rest.len() - rest[from..].trim_start().len())
}

/// Returns the line around a byte, trimmed and shortened on both sides.
fn context_line(text: &str, at: usize) -> String {
    // Of a long line, only the shown part is read, without surrounding spaces.
    let (low, high) = (
        text.ceil_char_boundary(at.saturating_sub(8 * MAX_CONTEXT_CHARS)),
        text.floor_char_boundary(at + 8 * MAX_CONTEXT_CHARS),
    );
    let start = text[low..at].rfind('\n').map_or(low, |newline| low + newline + 1);
    let end = text[at..high].find('\n').map_or(high, |newline| at + newline);
    let before = text[start..at].trim_start();
    let cut = before.char_indices().rev().nth(MAX_CONTEXT_CHARS / 2).map_or(0, |(cut, _)| cut);
    let mut line = String::new();
    if cut > 0 {
        line.push('…');
    }
    line.push_str(&before[cut..]);
    let after = text[at..end].trim_end();
    match after.char_indices().nth(MAX_CONTEXT_CHARS / 2) {
        Some((cut, _)) => {
            line.push_str(&after[..cut]);
            line.push('…');
        }
        None => line.push_str(after),
    }
    line
}

/// Returns the names that a page of Logseq gives itself in the lines at its start: `title:: …` and `alias:: …, …`.
fn page_aliases(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| matches!(line.trim_end(), "---" | ""));
    let properties = lines.map_while(|line| line.trim_start_matches(['-', ' ', '\u{feff}']).split_once("::"));
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '/' | '.');
    let properties = properties.take_while(|(key, _)| !key.is_empty() && key.chars().all(is_name));
    let mut aliases = Vec::new();
    for (key, value) in properties {
        match key {
            "title" => aliases.push(value.trim().to_owned()),
            "alias" => {
                let names = value.split(',').map(|name| name.trim().trim_start_matches("[[").trim_end_matches("]]"));
                aliases.extend(names.map(ToOwned::to_owned));
            }
            _ => {}
        }
    }
    aliases.retain(|alias| !alias.is_empty());
    aliases
}

/// Returns the range of the YAML in a note's front matter, if it has one. A byte order mark may be before it.
pub fn front_matter_range(text: &str) -> Option<Range<usize>> {
    let first = text.split_inclusive('\n').next()?;
    if first[byte_order_mark_len(text)..].trim_end() != "---" {
        return None;
    }
    let mut at = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some(first.len()..at);
        }
        at += line.len();
    }
    None
}

/// Returns the length of the byte order mark with which a text begins; 0 if it has none.
pub fn byte_order_mark_len(text: &str) -> usize {
    text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len()
}

/// Converts an error in front matter so that lines and bytes are counted from the start of the note. The line above the
/// front matter opens a YAML document, so both can be read together.
pub(crate) fn placed_in_note(text: &str, front: &Range<usize>, why: YamlReadError) -> YamlReadError {
    crate::yaml_edit::parse_value(&text[..front.end]).err().unwrap_or(why)
}

/// Parses YAML as JSON. Returns `None` if it can't be parsed.
pub fn parse_yaml(text: &str) -> Option<Value> {
    crate::yaml_edit::parse_value(text).ok()
}

fn parse_properties(text: &str) -> Result<Map<String, Value>, YamlReadError> {
    match crate::yaml_edit::parse_value(text)? {
        Value::Object(properties) => Ok(properties),
        _ => Ok(Map::new()),
    }
}

/// Formats a value as plain text.
pub fn plain_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain_value).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns the words of the first existing property: a list, or a text split at `between`.
fn property_words(properties: &Map<String, Value>, names: &[&str], between: char) -> Vec<String> {
    let found = properties.iter().filter(|(key, _)| names.iter().any(|name| key.eq_ignore_ascii_case(name)));
    let mut words = Vec::new();
    for (_, value) in found {
        match value {
            Value::Array(items) => words.extend(items.iter().map(plain_value)),
            Value::String(text) => words.extend(text.split([between, ',']).map(|word| word.trim().to_owned())),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
            Value::Number(number) => words.push(number.to_string()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Percent-encodes a path for a URL.
pub fn percent_encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Decodes percent-encoding, such as `%20`.
pub fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let code = tail.first().and_then(digit).zip(tail.get(1).and_then(digit)).filter(|_| *first == b'%');
        match code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_coded_and_read_back() {
        assert_eq!(percent_encode_path("a b/é.md"), "a%20b/%C3%A9.md");
        assert_eq!(percent_decode(&percent_encode_path("a b/é%.md")), "a b/é%.md");
        assert_eq!((percent_decode("100%"), percent_decode("%zz%+1")), ("100%".into(), "%zz%+1".into()));
    }

    fn links(text: &str) -> Vec<(LinkKind, String, Option<String>)> {
        let outline = Outline::of(text);
        for link in &outline.links {
            assert!(text[link.at..].starts_with(&link.target), "{link:?}");
        }
        outline.links.into_iter().map(|link| (link.kind, link.target, link.part)).collect()
    }

    #[test]
    fn links_of_all_kinds() {
        use LinkKind::{Angled, Embed, Markdown, Wiki};
        let one = |kind, target: &str| vec![(kind, target.to_owned(), None)];
        let part = |kind, target: &str, part: &str| vec![(kind, target.to_owned(), Some(part.to_owned()))];
        assert_eq!(links("see [[A b|c]] now"), one(Wiki, "A b"));
        assert_eq!(links("![[x/A#H i|c]]"), part(Embed, "x/A", "H i"));
        assert_eq!(links("[[#^id]]"), part(Wiki, "", "^id"));
        assert_eq!(links("| [[A\\|b]] |\n|---|\n| [[C\\|d]] |\n").len(), 2);
        assert_eq!(links("[[a [[b]]"), one(Wiki, "b"));
        assert_eq!(links("[t [x] `]`](a%20b.md#c%20d)"), part(Markdown, "a%20b.md", "c d"));
        assert_eq!(links("![t](<a b.png> \"title\")"), one(Angled, "a b.png"));
        assert_eq!(links("[t](a(1).md \"title\")"), one(Markdown, "a(1).md"));
        assert_eq!(links("[t][r]\n\n[r]: sub/x.md \"t\"\n"), one(Markdown, "sub/x.md"));
        assert_eq!(links("---\nup: \"[[A]]\"\n---\n"), one(Wiki, "A"));
        let none = "[a](https://x.y) <mailto:a@b> `[[a]]` [[]]\n\n```\n[[b]]\n```\n\n    [[c]]\n[d]() \\";
        assert_eq!(links(none), []);
    }

    #[test]
    fn pages_of_logseq_name_themselves() {
        let aliases = |text: &str| Outline::of(text).aliases;
        let page = "title:: AI/Code\nicon:: 🤖\nalias:: Code AI, [[Programming]]\n\n- alias:: of a block\n";
        assert_eq!(aliases(page), ["AI/Code", "Code AI", "Programming"]);
        assert_eq!(aliases("- alias:: one\n- text\n- alias:: two"), ["one"]);
        assert_eq!(aliases("---\naliases: [A]\n---\nalias:: B\n"), ["A", "B"]);
        assert_eq!(aliases("Some text:: here\nalias:: no\n"), Vec::<String>::new());
        assert_eq!(aliases("alias::\ntitle::  \n"), Vec::<String>::new());
    }

    #[test]
    fn tags_hold_all_that_obsidian_allows() {
        let tags = |text: &str| Outline::of(text).tags;
        assert_eq!(
            tags("#🌱 #area/🌱seed #हिन्दी #العربية، #标签，然后 #tag。 #a·b #café!"),
            ["area/🌱seed", "a·b", "café", "tag", "العربية", "हिन्दी", "标签", "🌱"]
        );
        assert_eq!(tags("#️⃣ #️ #1 #“x” #… x#y"), Vec::<String>::new());
        let html = "a <mark style=\"background: #ADCCFFA6;\">b #c</mark>\n\n\
                    <style>\n#id { color: #fff; }\n</style>\n\n#d <!-- #e -->";
        assert_eq!(tags(html), ["c", "d"]);
    }

    #[test]
    fn everything_else() {
        let text = "---\naliases: [B, C]\ntags: one two\nrating: 7\n---\n\
                    # Head `x`\n\ntext #tag/sub #1 a#b `#no` ^id-1\n\
                    ```\n# no\n#no\n```\n- [ ] do it\n";
        let outline = Outline::of(text);
        assert_eq!(outline.aliases, ["B", "C"]);
        assert_eq!(outline.tags, ["one", "tag/sub", "two"]);
        assert_eq!(outline.headings.len(), 1);
        assert_eq!(outline.headings[0].text, "Head x");
        assert_eq!(outline.blocks, [("id-1".to_owned(), text.find("text").expect("there"))]);
        assert_eq!(outline.properties["rating"], 7);
        assert_eq!(outline.tasks.len(), 1);
        let stored = serde_json::to_string(&outline).expect("written");
        assert_eq!(serde_json::from_str::<Outline>(&stored).expect("read"), outline);
        assert_eq!(percent_decode("a%20b%C3%A4%zz%"), "a bä%zz%");
    }

    #[test]
    fn what_is_commented_out_is_no_task() {
        let text = "- [ ] a %% b %%\n<!--\n- [ ] no\n\n- [ ] no\n-->\n- [ ] c <!-- d -->\n\n%%\n- [ ] no\n%%\n\n\
                    ```\n%%\n```\n<div>\n- [ ] e\n</div>\n\n- [ ] 100%% f\n- [ ] g\n";
        let outline = Outline::of(text);
        let tasks: Vec<&str> = outline.tasks.iter().map(|task| task.text.as_str()).collect();
        assert_eq!(tasks, ["a %% b %%", "c <!-- d -->", "e", "100%% f", "g"]);
    }

    #[test]
    fn context_is_short() {
        let long = format!("{} [[x]] {}", "ä ".repeat(500), "b ".repeat(500));
        let line = &Outline::of(&long).links[0].line;
        assert!(line.chars().count() < 200 && line.contains("[[x]]"), "{line}");
    }
}
