//! Small edits of YAML: sets or removes one value and keeps order, comments and style of the rest. The result is parsed
//! again and compared, so an edit that doesn't fit the text is rejected rather than guessed.

mod list_items;
mod read;

pub(crate) use read::parse_marked;
pub use read::{MAX_YAML_BYTES, MAX_YAML_DEPTH, YamlReadError, parse_typed, parse_typed_with, parse_value};

use crate::outline;
use saphyr::{MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};
use std::ops::Range;

/// Maximum size of YAML that is edited.
const MAX_EDITED_YAML_BYTES: usize = 1 << 20;
/// Maximum nesting depth of values that are written.
const MAX_WRITTEN_YAML_DEPTH: usize = 16;

/// A step of the path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlStep {
    /// The value of a key.
    Key(String),
    /// The value at an index of a list.
    Index(usize),
}

impl From<&str> for YamlStep {
    fn from(key: &str) -> YamlStep {
        YamlStep::Key(key.to_owned())
    }
}

impl From<usize> for YamlStep {
    fn from(at: usize) -> YamlStep {
        YamlStep::Index(at)
    }
}

/// Error of setting a value in YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlEditError {
    /// The text isn't valid YAML.
    #[error(transparent)]
    Read(#[from] YamlReadError),
    /// The layout of the text doesn't allow editing single values.
    #[error("it is written in a way that can only be edited as text")]
    OnlyAsText,
}

/// Returns the text with a value set. With `None`, the value is removed, including its key.
///
/// # Errors
/// Returns an error if the text isn't valid YAML, or its layout doesn't allow editing single values.
pub fn set_value(text: &str, path: &[YamlStep], value: Option<&Value>) -> Result<String, YamlEditError> {
    if text.len() > MAX_EDITED_YAML_BYTES || path.is_empty() || path.len() > MAX_WRITTEN_YAML_DEPTH {
        return Err(YamlEditError::OnlyAsText);
    }
    let blank = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    let old = match blank {
        true => Value::Object(Map::new()),
        false => read::parse_value(text)?,
    };
    let old = if old.is_null() { Value::Object(Map::new()) } else { old };
    let mut wanted = old.clone();
    set_at(&mut wanted, path, value).ok_or(YamlEditError::OnlyAsText)?;
    if wanted == old && value.is_none_or(|value| !value.is_null()) {
        return Ok(text.to_owned());
    }
    if let (Some(Value::Array(known)), Some(Value::Array(items))) = (value_at(&old, path), value)
        && let Some(new) = list_items::set_items(text, path, known, items)
        && outline::parse_yaml(&new).as_ref() == Some(&wanted)
    {
        return Ok(new);
    }
    // If a value is missing or shares a line with others, the value around it is rewritten.
    for depth in (1..=path.len()).rev() {
        let (path, value) = match depth == path.len() {
            true => (path, value.cloned()),
            false => (&path[..depth], value_at(&wanted, &path[..depth]).cloned()),
        };
        let Some(new) = write_value(text, path, value.as_ref()) else { continue };
        // An empty text contains no document.
        let read = outline::parse_yaml(&new).filter(|read| !read.is_null());
        if read.unwrap_or(Value::Object(Map::new())) == wanted {
            return Ok(new);
        }
    }
    if !old.as_object().is_some_and(Map::is_empty) {
        return Err(YamlEditError::OnlyAsText);
    }
    // The text contains only comments.
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let block = format_block(&wanted, 0, 0).ok_or(YamlEditError::OnlyAsText)?;
    let new = format!("{text}{end}{}\n", block.trim_start_matches('\n'));
    // A comment may contain text that YAML doesn't allow.
    let holds = outline::parse_yaml(&new).is_some_and(|read| read == wanted);
    holds.then_some(new).ok_or(YamlEditError::OnlyAsText)
}

fn value_at<'a>(value: &'a Value, path: &[YamlStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        YamlStep::Key(key) => value.get(key),
        YamlStep::Index(at) => value.get(at),
    })
}

fn set_at(root: &mut Value, path: &[YamlStep], value: Option<&Value>) -> Option<()> {
    let (step, rest) = path.split_first()?;
    if rest.is_empty() {
        match (step, value) {
            (YamlStep::Key(key), Some(value)) => {
                if root.is_null() {
                    *root = Value::Object(Map::new());
                }
                root.as_object_mut()?.insert(key.clone(), value.clone());
            }
            (YamlStep::Key(key), None) => _ = root.as_object_mut()?.remove(key),
            (YamlStep::Index(at), value) => {
                if root.is_null() {
                    *root = Value::Array(Vec::new());
                }
                let items = root.as_array_mut()?;
                match (value, *at < items.len()) {
                    (Some(value), true) => items[*at] = value.clone(),
                    (Some(value), false) => items.push(value.clone()),
                    (None, true) => _ = items.remove(*at),
                    (None, false) => {}
                }
            }
        }
        return Some(());
    }
    let inner = match step {
        YamlStep::Key(key) => {
            if root.is_null() {
                *root = Value::Object(Map::new());
            }
            root.as_object_mut()?.entry(key.clone()).or_insert(Value::Null)
        }
        YamlStep::Index(at) => root.as_array_mut()?.get_mut(*at)?,
    };
    set_at(inner, rest, value)
}

/// Maps the parser's character positions to bytes of a text.
struct YamlSpan<'a> {
    text: &'a str,
    bytes: Vec<usize>,
}

impl<'a> YamlSpan<'a> {
    fn of(text: &'a str) -> YamlSpan<'a> {
        YamlSpan { text, bytes: text.char_indices().map(|(at, _)| at).chain([text.len()]).collect() }
    }

    fn byte_offset(&self, chars: usize) -> usize {
        self.bytes.get(chars).copied().unwrap_or(self.text.len())
    }

    fn node_start(&self, node: &MarkedYaml<'_>) -> usize {
        self.byte_offset(node.span.start.index())
    }

    /// Returns where a node's text ends, without trailing spaces and comments.
    fn node_end(&self, node: &MarkedYaml<'_>) -> usize {
        let start = self.node_start(node);
        let last = match &node.data {
            _ if self.text[start..].starts_with(['[', '{']) => None,
            YamlData::Sequence(items) => items.last(),
            YamlData::Mapping(entries) => entries.iter().next_back().map(|(key, value)| {
                let empty = matches!(value.data, YamlData::Value(Scalar::Null)) && self.node_source(value).is_empty();
                if empty { key } else { value }
            }),
            _ => None,
        };
        match last {
            Some(last) => self.node_end(last),
            None => {
                let end = self.byte_offset(node.span.end.index()).max(start);
                // The parser's span of a bracketed value ends before its closing bracket.
                let closer = match self.text[start..].chars().next() {
                    Some('[') => "]",
                    Some('{') => "}",
                    // The span of a value in quotes may end after a comment behind it.
                    Some(quote @ ('\'' | '"')) => return start + quoted_len(&self.text[start..end], quote),
                    _ => return start + self.text[start..end].trim_end().len(),
                };
                let rest = self.text[end..].trim_start();
                if rest.starts_with(closer) { self.text.len() - rest.len() + 1 } else { end }
            }
        }
    }

    fn node_source(&self, node: &MarkedYaml<'_>) -> &str {
        let (start, end) = (self.node_start(node), self.byte_offset(node.span.end.index()));
        self.text.get(start..end).map_or("", str::trim_end)
    }

    fn column(&self, at: usize) -> usize {
        at - self.line_range(at).start
    }

    /// Returns the range of the line that contains a position, including its line break.
    fn line_range(&self, at: usize) -> Range<usize> {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1);
        start..end
    }
}

fn key_text(node: &MarkedYaml<'_>) -> Option<String> {
    match &node.data {
        YamlData::Value(Scalar::String(key)) => Some(key.to_string()),
        YamlData::Value(Scalar::Integer(key)) => Some(key.to_string()),
        YamlData::Representation(key, ..) => Some(key.to_string()),
        _ => None,
    }
}

/// Returns the value that a path leads to.
fn node_at<'a, 'text>(root: &'a MarkedYaml<'text>, path: &[YamlStep]) -> Option<&'a MarkedYaml<'text>> {
    path.iter().try_fold(root, |node, step| match (step, &node.data) {
        (YamlStep::Key(key), YamlData::Mapping(entries)) => {
            entries.iter().find(|(name, _)| key_text(name).as_ref() == Some(key)).map(|(_, value)| value)
        }
        (YamlStep::Index(at), YamlData::Sequence(items)) => items.get(*at),
        _ => None,
    })
}

/// Sets or removes a value in a text. Its parent must exist and use whole lines.
fn write_value(text: &str, path: &[YamlStep], value: Option<&Value>) -> Option<String> {
    let documents = parse_marked(text).ok()?;
    let places = YamlSpan::of(text);
    let (last, way) = path.split_last()?;
    let node = node_at(documents.first()?, way)?;
    if text[places.node_start(node)..].starts_with(['[', '{']) {
        return None;
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let new = match (last, &node.data) {
        (YamlStep::Key(key), YamlData::Mapping(entries)) => {
            let all: Vec<(&MarkedYaml<'_>, &MarkedYaml<'_>)> = entries.iter().collect();
            let at = all.iter().position(|(name, _)| key_text(name).as_ref() == Some(key));
            match (at, value) {
                (Some(at), Some(value)) => replace_entry(&places, all[at], value)?,
                (Some(at), None) => remove_entry(&places, &all, at)?,
                (None, Some(value)) => add_entry(&places, all.last()?, key, value)?,
                (None, None) => return Some(text.to_owned()),
            }
        }
        (YamlStep::Index(at), YamlData::Sequence(items)) => edit_item(&places, items, *at, value)?,
        _ => return None,
    };
    Some(if newline == "\n" { new } else { new.replace("\r\n", "\n").replace('\n', "\r\n") })
}

/// Returns the length of the value in quotes that a text begins with.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => _ = letters.next(),
            _ if letter != quote => {}
            '\'' if letters.peek().is_some_and(|(_, next)| *next == quote) => _ = letters.next(),
            _ => return at + quote.len_utf8(),
        }
    }
    text.trim_end().len()
}

fn replace_range(text: &str, range: Range<usize>, insert: &str) -> String {
    format!("{}{insert}{}", &text[..range.start], &text[range.end..])
}

fn replace_entry(
    places: &YamlSpan<'_>,
    (key, old): (&MarkedYaml<'_>, &MarkedYaml<'_>),
    value: &Value,
) -> Option<String> {
    let text = places.text;
    let key_end = places.node_end(key);
    let colon = key_end + text.get(key_end..)?.find(':')? + 1;
    let is_empty = places.node_source(old).is_empty();
    let end = if is_empty { colon } else { places.node_end(old).max(colon) };
    let indent = places.column(places.node_start(key));
    let new = format_like(places, old, value, indent)?;
    // A value that stays on its line leaves the rest of the line unchanged.
    if !is_empty && !new.starts_with('\n') && !text[colon..places.node_start(old)].contains('\n') && !new.is_empty() {
        return Some(replace_range(text, places.node_start(old)..end, &new));
    }
    // Comments between the key and the old value stay.
    let above = text.get(colon..places.node_start(old)).filter(|above| !is_empty && above.contains('#'));
    let above = above.and_then(|above| above.rsplit_once('\n')).map_or("", |(above, _)| above.trim_end());
    let new = match new.chars().next() {
        Some('\n') => format!("{above}{new}"),
        Some(_) => format!(" {new}{above}"),
        None => above.to_owned(),
    };
    Some(replace_range(text, colon..end, &new))
}

/// Formats a value in the style of the one that it replaces.
fn format_like(places: &YamlSpan<'_>, old: &MarkedYaml<'_>, value: &Value, indent: usize) -> Option<String> {
    let written = places.node_source(old);
    match (value, &old.data) {
        (Value::Array(items), YamlData::Sequence(known)) => {
            let raw = |value: &Value| {
                let same = |node: &&MarkedYaml<'_>| {
                    let part = &places.text[places.node_start(node)..places.node_end(node)];
                    !part.contains('\n') && outline::parse_yaml(part).as_ref() == Some(value)
                };
                known
                    .iter()
                    .find(same)
                    .map(|node| places.text[places.node_start(node)..places.node_end(node)].to_owned())
            };
            let simple = items.iter().all(|item| !item.is_array() && !item.is_object());
            if written.starts_with('[') && simple {
                let items: Vec<String> =
                    items.iter().map(|item| raw(item).unwrap_or_else(|| format_scalar(item, true))).collect();
                return Some(format!("[{}]", items.join(", ")));
            }
            if written.starts_with('[') || items.is_empty() || !simple {
                return format_block(value, indent, 1);
            }
            let first = places.node_start(known.first()?);
            let line = places.line_range(first);
            let dash = places.text[line.start..first].find('-')?;
            let pad = " ".repeat(dash);
            let items: Vec<String> = items
                .iter()
                .map(|item| format!("\n{pad}- {}", raw(item).unwrap_or_else(|| format_scalar(item, false))))
                .collect();
            Some(items.concat())
        }
        (Value::String(new), YamlData::Value(Scalar::String(_)))
            if written.starts_with('"') && !new.contains(['\n', '\r']) =>
        {
            Some(quote_text(new))
        }
        (Value::String(new), YamlData::Value(Scalar::String(_)))
            if written.starts_with('\'') && !new.contains(['\n', '\r']) =>
        {
            Some(format!("'{}'", new.replace('\'', "''")))
        }
        _ => format_block(value, indent, 1),
    }
}

fn remove_entry(places: &YamlSpan<'_>, all: &[(&MarkedYaml<'_>, &MarkedYaml<'_>)], at: usize) -> Option<String> {
    let (key, value) = all[at];
    let text = places.text;
    let start = places.node_start(key);
    let own_line = text[places.line_range(start).start..start].trim().is_empty();
    if !own_line {
        // The key follows the dash of a list.
        let (next, _) = all.get(at + 1)?;
        return Some(replace_range(text, start..places.node_start(next), ""));
    }
    let end = if places.node_source(value).is_empty() { places.node_end(key) } else { places.node_end(value) };
    Some(replace_range(text, places.line_range(start).start..places.line_range(end).end, ""))
}

fn add_entry(
    places: &YamlSpan<'_>,
    (last, value): &(&MarkedYaml<'_>, &MarkedYaml<'_>),
    key: &str,
    new: &Value,
) -> Option<String> {
    let indent = places.column(places.node_start(last));
    let end = if places.node_source(value).is_empty() { places.node_end(last) } else { places.node_end(value) };
    let entry = format_entry(key, new, indent, 0)?;
    Some(insert_below(places, end, &format!("{}{entry}", " ".repeat(indent))))
}

/// Inserts lines below the line that contains a position.
fn insert_below(places: &YamlSpan<'_>, at: usize, lines: &str) -> String {
    let line = places.line_range(at);
    let ends = places.text[line.clone()].ends_with('\n');
    let lines = if ends { format!("{lines}\n") } else { format!("\n{lines}") };
    replace_range(places.text, line.end..line.end, &lines)
}

fn edit_item(places: &YamlSpan<'_>, items: &[MarkedYaml<'_>], at: usize, value: Option<&Value>) -> Option<String> {
    let text = places.text;
    let first = places.node_start(items.first()?);
    let dash = places.line_range(first).start + text[places.line_range(first).start..first].find('-')?;
    let column = places.column(dash);
    let written = |value: &Value| -> Option<String> {
        let inner = format_block(value, column, 1)?;
        // The first line goes after the dash.
        let inner = match value {
            Value::Object(_) | Value::Array(_) => inner.trim_start().to_owned(),
            _ => inner,
        };
        Some(format!("{}- {inner}", " ".repeat(column)))
    };
    match (items.get(at), value) {
        (None, Some(value)) => Some(insert_below(places, places.node_end(items.last()?), &written(value)?)),
        (None, None) => Some(text.to_owned()),
        (Some(old), Some(value)) if !value.is_array() && !value.is_object() && !places.node_source(old).is_empty() => {
            let new = format_like(places, old, value, column)?;
            Some(replace_range(text, places.node_start(old)..places.node_end(old), &new))
        }
        (Some(old), value) => {
            let start = places.line_range(places.node_start(old)).start;
            let end = places.line_range(places.node_end(old)).end;
            let new = match value {
                Some(value) => format!("{}\n", written(value)?),
                None if items.len() == 1 => return None,
                None => String::new(),
            };
            Some(replace_range(text, start..end, &new))
        }
    }
}

/// Formats a key and its value.
fn format_entry(key: &str, value: &Value, indent: usize, depth: usize) -> Option<String> {
    let inner = format_block(value, indent, depth + 1)?;
    let between = if inner.starts_with('\n') || inner.is_empty() { "" } else { " " };
    Some(format!("{}:{between}{inner}", format_scalar(&Value::from(key), false)))
}

/// Keys that are written first, in the order that readers expect. Others follow alphabetically.
const YAML_KEY_ORDER: [&str; 8] =
    ["filters", "formulas", "properties", "views", "type", "name", "property", "direction"];

/// Formats a value on separate lines below a key at `indent`. Simple values stay on the line of the key.
fn format_block(value: &Value, indent: usize, depth: usize) -> Option<String> {
    if depth > MAX_WRITTEN_YAML_DEPTH {
        return None;
    }
    let inner = if depth == 0 { indent } else { indent + 2 };
    let pad = " ".repeat(inner);
    Some(match value {
        Value::Null => String::new(),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Array(items) => {
            let item = |item: &Value| {
                let written = format_block(item, inner, depth + 1)?;
                Some(format!("\n{pad}- {}", written.trim_start()))
            };
            items.iter().map(item).collect::<Option<String>>()?
        }
        Value::Object(entries) => {
            let place =
                |key: &String| YAML_KEY_ORDER.iter().position(|first| first == key).unwrap_or(YAML_KEY_ORDER.len());
            let mut all: Vec<(&String, &Value)> = entries.iter().collect();
            all.sort_by_key(|(key, _)| place(key));
            let line =
                |(key, value): (&String, &Value)| Some(format!("\n{pad}{}", format_entry(key, value, inner, depth)?));
            all.into_iter().map(line).collect::<Option<String>>()?
        }
        simple => format_scalar(simple, false),
    })
}

fn quote_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats a simple value as YAML, with quotes if it would mean something else without them. `flow`: inside brackets.
pub fn format_scalar(value: &Value, flow: bool) -> String {
    let Value::String(text) = value else { return outline::plain_value(value) };
    let odd = text.trim() != text
        || text.contains(['\n', '\r', '\t'])
        || text.contains(": ")
        || text.contains(" #")
        || text.ends_with(':')
        || text.starts_with(|first: char| "-?:,[]{}#&*!|>'\"%@`=<~".contains(first))
        || text.chars().any(char::is_control)
        || (flow && text.contains([',', '[', ']', '{', '}']));
    let plain = !odd && outline::parse_yaml(text).as_ref() == Some(value);
    if plain { text.clone() } else { quote_text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BASE: &str = "# mine\nfilters:\n  and:\n    - a > 1 # why\nviews:\n  - type: table\n    name: One # first\n\
                        \x20   order:\n      - file.name\n      - rating\n    sort:\n      - property: rating\n        \
                        direction: DESC\n  # the second\n  - type: cards\n    name: Two\n";

    fn path(steps: &[&str]) -> Vec<YamlStep> {
        let step = |step: &&str| step.parse::<usize>().map_or_else(|_| YamlStep::from(*step), YamlStep::Index);
        steps.iter().map(step).collect()
    }

    fn put_at(text: &str, steps: &[&str], value: Value) -> String {
        set_value(text, &path(steps), Some(&value)).expect("it fits")
    }

    #[test]
    fn comments_behind_values_in_quotes_stay() {
        for (old, new) in [("'it''s: 1'", "'it''s: 2'"), (r#""a \" #: 1""#, r#""a \" #: 2""#)] {
            let (before, after) = (format!("a:\n  - {old} # why\n"), format!("a:\n  - {new} # why\n"));
            let value = read::parse_value(new).expect("a text");
            assert_eq!(put_at(&before, &["a", "0"], value.clone()), after);
            assert_eq!(put_at(&format!("a: {old} # why\n"), &["a"], value), format!("a: {new} # why\n"));
        }
    }

    #[test]
    fn one_value_is_set_and_the_rest_stays() {
        assert_eq!(put_at(BASE, &["views", "0", "name"], json!("Uno")), BASE.replace("One #", "Uno #"));
        let sorted = put_at(BASE, &["views", "0", "sort"], json!([{"property": "year", "direction": "ASC"}]));
        assert_eq!(
            sorted,
            BASE.replace("property: rating\n        direction: DESC", "property: year\n        direction: ASC")
        );
        let limited = put_at(BASE, &["views", "1", "limit"], json!(20));
        assert_eq!(limited, format!("{BASE}    limit: 20\n"));
        let sized = put_at(BASE, &["views", "0", "columnSize", "note.rating"], json!(80));
        assert_eq!(
            sized,
            BASE.replace("direction: DESC\n", "direction: DESC\n    columnSize:\n      note.rating: 80\n")
        );
        assert_eq!(put_at(&sized, &["views", "0", "columnSize", "note.rating"], json!(90)), sized.replace("80", "90"));
        let ordered = put_at(BASE, &["views", "0", "order"], json!(["rating"]));
        assert_eq!(ordered, BASE.replace("      - file.name\n", ""));
        let two = put_at(BASE, &["views", "2"], json!({"name": "Three", "type": "table"}));
        assert_eq!(two, format!("{BASE}  - type: table\n    name: Three\n"));
        let without = set_value(BASE, &path(&["views", "0", "sort"]), None).expect("it fits");
        assert_eq!(without, BASE.replace("    sort:\n      - property: rating\n        direction: DESC\n", ""));
        assert_eq!(
            set_value(BASE, &path(&["views", "0", "type"]), None).expect("it fits"),
            BASE.replace("type: table\n    ", "")
        );
        assert_eq!(put_at(BASE, &["filters", "and", "0"], json!("b")), BASE.replace("a > 1 #", "b #"));
    }

    #[test]
    fn what_is_empty_or_on_one_line_is_written() {
        assert_eq!(
            put_at("", &["views"], json!([{"type": "table", "name": "T"}])),
            "views:\n  - type: table\n    name: T\n"
        );
        assert_eq!(put_at("# x\n", &["a"], json!(1)), "# x\na: 1\n");
        assert_eq!(put_at("a: {b: 1}\nc: 2\n", &["a", "d"], json!(true)), "a:\n  b: 1\n  d: true\nc: 2\n");
        assert_eq!(put_at("a:\nb: 1", &["a"], json!("x")), "a: x\nb: 1");
        assert_eq!(put_at("a:\n  - x\n  - 'y z'\n", &["a"], json!(["y z", "#n"])), "a:\n  - 'y z'\n  - \"#n\"\n");
        assert_eq!(put_at("a:\n- x\nb: 1\n", &["a"], json!(["x", "w"])), "a:\n- x\n- w\nb: 1\n");
        assert_eq!(put_at("a: [x, \"y\"] # c\n", &["a"], json!(["y", "1"])), "a: [\"y\", \"1\"] # c\n");
        assert_eq!(put_at("a: 'it''s'\n", &["a"], json!("it's so")), "a: 'it''s so'\n");
        assert_eq!(put_at("a: 1\r\nb: 2\r\n", &["c"], json!(["x"])), "a: 1\r\nb: 2\r\nc:\r\n  - x\r\n");
        assert_eq!(put_at("a: x\n", &["a"], Value::Null), "a:\n");
        assert_eq!(put_at("a: ü\nb: ö\n", &["b"], json!("[[Ä]]")), "a: ü\nb: \"[[Ä]]\"\n");
        assert_eq!(set_value("a: 1\n", &path(&["a"]), None).as_deref(), Ok(""), "the last one");
        assert!(set_value("a: [", &path(&["a"]), Some(&json!(1))).is_err());
        assert!(set_value("- a\n", &path(&["a"]), Some(&json!(1))).is_err());
        assert!(set_value("#\0\n", &path(&["a"]), Some(&json!(1))).is_err(), "no YAML, though it looks like a comment");
    }

    #[test]
    fn comments_in_a_list_stay_where_one_entry_changes() {
        let text = "deny:\n  # by hand\n  - push # why\n\n  # and this\n  - 'shell: rm *'\n  - fetch # slow\nb: 1\n";
        let put = |items: Value| put_at(text, &["deny"], items);
        assert_eq!(put(json!(["push", "shell: rm *", "fetch", "x"])), text.replace("# slow\n", "# slow\n  - x\n"));
        assert_eq!(put(json!(["push", "shell: mv *", "fetch"])), text.replace("rm", "mv"));
        assert_eq!(put(json!(["push", "fetch"])), text.replace("  - 'shell: rm *'\n", ""));
        let moved = "deny:\n  # by hand\n\n  # and this\n  - 'shell: rm *'\n  - push # why\n  - fetch # slow\nb: 1\n";
        assert_eq!(put(json!(["shell: rm *", "push", "fetch"])), moved);
        assert_eq!(
            put_at("deny:\n  # by hand\n  - a # why\nb: 1\n", &["deny"], json!([])),
            "deny: []\n  # by hand # why\nb: 1\n"
        );
        let rules = "rules:\n  # big\n  - when: large # long ones\n    use: a\n  - when: code\n    use: b # best\n";
        let changed = json!([{"when": "large", "use": ["c", "d"]}, {"when": "code", "use": "b"}]);
        assert_eq!(put_at(rules, &["rules"], changed), rules.replace("use: a\n", "use:\n      - c\n      - d\n"));
    }

    #[test]
    fn words_that_mean_something_else_get_quotes() {
        for odd in ["yes: no", "12", "true", "null", "~", "- x", "a #b", " x", "", "[[N]]", "{a", "1e3", "a\nb", "@x"] {
            let value = Value::from(odd);
            let text = put_at("k: v\n", &["k"], value.clone());
            assert_eq!(outline::parse_yaml(&text), Some(json!({"k": value})), "{text}");
        }
        for plain in ["words", "2026-11-22", "a-b", "https://a.b/c", "it's", "ö 🌲"] {
            assert_eq!(format_scalar(&Value::from(plain), false), plain);
        }
    }
}
