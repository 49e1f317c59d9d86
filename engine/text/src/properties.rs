//! Parses a note's front matter into typed properties with byte ranges, so that an edit of one changes no other and no
//! comment.

use crate::outline;
use crate::yaml_edit::{self, YamlEditError, YamlReadError, YamlStep};
use saphyr::{MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};
use std::ops::Range;

/// Maximum size of parsed front matter. Longer front matter is shown as source.
const MAX_FRONT_MATTER_BYTES: usize = 65_536;

/// Type of a property's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// Plain text.
    Text,
    /// A number, integer or decimal.
    Number,
    /// A day, `2026-11-22`, with or without a time.
    Date,
    /// A checkbox with its value.
    Check(bool),
    /// A list of values.
    List,
    /// A link to a note or to the web.
    Link,
    /// A nested object, shown as its YAML text.
    Nested,
}

/// A property of a note. Ranges are bytes of the parsed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The property's name as written.
    pub key: String,
    /// Type of the value.
    pub kind: PropertyKind,
    /// Parsed values and their ranges.
    pub values: Vec<(String, Range<usize>)>,
    /// Byte range of the property's lines, including line breaks.
    pub lines: Range<usize>,
}

/// Reason why a note's properties can't be read: a clause about the front matter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyReadError {
    /// The front matter exceeds the size limit.
    #[error("it is longer than 64 kB")]
    TooLong,
    /// The front matter is YAML, but neither empty nor a mapping.
    #[error("it is not a list of names with values")]
    NotMapping,
    /// The front matter isn't valid YAML.
    #[error(transparent)]
    Yaml(#[from] YamlReadError),
}

/// Error of setting a property of a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyEditError {
    /// The front matter exceeds the size limit.
    #[error("its properties are longer than 64 kB")]
    TooLong,
    /// The front matter can't be read, or can't be edited value by value.
    #[error(transparent)]
    Yaml(#[from] YamlEditError),
}

/// Parses the properties of a note. `None` if it has no front matter.
pub fn read(text: &str) -> Option<Result<Vec<Property>, PropertyReadError>> {
    let range = outline::front_matter_range(text)?;
    let yaml = &text[range.clone()];
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        return Some(Err(PropertyReadError::TooLong));
    }
    let documents = match yaml_edit::parse_marked(yaml) {
        Ok(documents) => documents,
        Err(why) => return Some(Err(outline::placed_in_note(text, &range, why).into())),
    };
    let Some(first) = documents.first() else { return Some(Ok(Vec::new())) };
    let entries = match &first.data {
        YamlData::Mapping(entries) => entries,
        YamlData::Value(Scalar::Null) => return Some(Ok(Vec::new())),
        _ => return Some(Err(PropertyReadError::NotMapping)),
    };
    // The YAML parser counts positions in characters.
    let bytes: Vec<usize> = yaml.char_indices().map(|(at, _)| at).chain([yaml.len()]).collect();
    let byte = |chars: usize| range.start + bytes.get(chars).copied().unwrap_or(yaml.len());
    let place = |node: &MarkedYaml<'_>| {
        let (start, end) = (byte(node.span.start.index()), byte(node.span.end.index()));
        start..start + text.get(start..end).map_or(0, |part| part.trim_end().len())
    };
    let mut found: Vec<Property> = Vec::new();
    for (key, value) in entries {
        let at = place(key);
        let lines = line_start(text, at.start);
        let own = place(value);
        let (kind, values) = match &value.data {
            YamlData::Sequence(items) => (
                PropertyKind::List,
                items.iter().map(|item| (unquoted_value(text, &place(item)), place(item))).collect(),
            ),
            YamlData::Mapping(_) => (PropertyKind::Nested, vec![(text.get(own.clone()).unwrap_or("").to_owned(), own)]),
            YamlData::Value(Scalar::Boolean(value)) => (PropertyKind::Check(*value), vec![(value.to_string(), own)]),
            YamlData::Value(Scalar::Integer(_) | Scalar::FloatingPoint(_)) => {
                (PropertyKind::Number, vec![(unquoted_value(text, &own), own)])
            }
            YamlData::Value(Scalar::Null) => (PropertyKind::Text, Vec::new()),
            _ => {
                let words = unquoted_value(text, &own);
                (guess_kind(&words), vec![(words, own)])
            }
        };
        let key = unquoted_value(text, &at);
        found.push(Property { key, kind, values, lines: lines..lines });
    }
    let ends: Vec<usize> = found.iter().skip(1).map(|next| next.lines.start).chain([range.end]).collect();
    for (property, end) in found.iter_mut().zip(ends) {
        // Comments above the next property belong to that one.
        let mut at = end;
        while let Some(line) = text[property.lines.start..at].trim_end_matches(['\n', '\r']).rfind('\n') {
            let start = property.lines.start + line + 1;
            if !text[start..at].trim_start().starts_with('#') {
                break;
            }
            at = start;
        }
        property.lines.end = at;
    }
    Some(Ok(found))
}

/// Returns a note's text with a property set. With `None`, the property is removed, including its name. Front matter is
/// created if there is none.
///
/// # Errors
/// Returns an error if the front matter can't be read or is too long, or is written in a way that can only be edited as
/// text.
pub fn set_property(text: &str, key: &str, value: Option<&Value>) -> Result<String, PropertyEditError> {
    let Some(range) = outline::front_matter_range(text) else {
        let Some(value) = value else { return Ok(text.to_owned()) };
        let end =
            if text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        let entry = yaml_edit::set_value("", &[YamlStep::from(key)], Some(value))?.replace('\n', end);
        let (mark, body) = text.split_at(outline::byte_order_mark_len(text));
        return Ok(format!("{mark}---{end}{entry}---{end}{body}"));
    };
    let front = &text[range.clone()];
    if front.len() > MAX_FRONT_MATTER_BYTES {
        return Err(PropertyEditError::TooLong);
    }
    // Names that differ only in case are most likely the same.
    let known = outline::parse_yaml(front).and_then(|known| {
        let keys = known.as_object()?;
        let same = |name: &&String| *name == key;
        keys.keys().find(same).or_else(|| keys.keys().find(|name| name.eq_ignore_ascii_case(key))).cloned()
    });
    let key = known.unwrap_or_else(|| key.to_owned());
    let mut new = yaml_edit::set_value(front, &[YamlStep::Key(key)], value)?;
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    Ok(format!("{}{new}{}", &text[..range.start], &text[range.end..]))
}

/// Formats properties as front matter.
pub fn format_front_matter(properties: &Map<String, Value>) -> String {
    let mut front = String::new();
    for (key, value) in properties {
        front = yaml_edit::set_value(&front, &[YamlStep::Key(key.clone())], Some(value)).unwrap_or(front);
    }
    if front.is_empty() { front } else { format!("---\n{front}---\n") }
}

/// Parses the user's input for a property of this kind. Input that doesn't fit the kind becomes text.
pub fn parse_typed(kind: PropertyKind, words: &str) -> Value {
    let words = words.trim();
    match kind {
        PropertyKind::List => {
            let items = words.split(',').map(str::trim).filter(|item| !item.is_empty());
            Value::Array(items.map(Value::from).collect())
        }
        _ if words.is_empty() => Value::Null,
        PropertyKind::Number => match words.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => words.parse::<f64>().ok().filter(|number| number.is_finite()).map_or(words.into(), Value::from),
        },
        PropertyKind::Check(_) => match words {
            "true" | "yes" => Value::Bool(true),
            "false" | "no" => Value::Bool(false),
            words => words.into(),
        },
        PropertyKind::Text | PropertyKind::Date | PropertyKind::Link | PropertyKind::Nested => words.into(),
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns a value without its quotes.
fn unquoted_value(text: &str, range: &Range<usize>) -> String {
    let raw = text.get(range.clone()).unwrap_or("");
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    let inner = inner.or_else(|| raw.strip_prefix('\'').and_then(|raw| raw.strip_suffix('\'')));
    inner.unwrap_or(raw).to_owned()
}

fn guess_kind(words: &str) -> PropertyKind {
    let bytes = words.as_bytes();
    let digits = |range: Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let is_date = digits(0..4) && digits(5..7) && digits(8..10) && bytes[4] == b'-' && bytes[7] == b'-';
    if is_date && (bytes.len() == 10 || matches!(bytes[10], b'T' | b' ')) {
        return PropertyKind::Date;
    }
    let linked = words.starts_with("[[") && words.ends_with("]]");
    if linked || words.starts_with("https://") || words.starts_with("http://") {
        PropertyKind::Link
    } else {
        PropertyKind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_stays_first() {
        let text = "\u{feff}---\r\nt: 1\r\n---\r\n# B\r\n";
        let found = read(text).expect("front matter").expect("YAML");
        assert_eq!((found.len(), &text[found[0].lines.clone()]), (1, "t: 1\r\n"));
        assert_eq!(outline::byte_order_mark_len(text), 3);
        let set = |text: &str| set_property(text, "u", Some(&Value::from(2))).expect("set");
        assert!(set(text).starts_with("\u{feff}---\r\nt: 1\r\n") && set(text).ends_with("---\r\n# B\r\n"));
        assert_eq!(set("\u{feff}# B\n"), "\u{feff}---\nu: 2\n---\n# B\n");
    }

    #[test]
    fn properties_have_types_and_places() {
        let text = "---\ntitle: \"Räin: a\"\n# how many\ndrops: 12 # about\ndone: false\nwhen: 2026-11-22\n\
                    tags: [a, b c]\nby:\n  - x\n  - \"[[Y]]\"\nsee: https://a.b\nempty:\nin:\n  a: 1\n---\nText\n";
        let found = read(text).expect("front matter").expect("YAML");
        let kinds: Vec<(&str, PropertyKind)> = found.iter().map(|one| (one.key.as_str(), one.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("title", PropertyKind::Text),
                ("drops", PropertyKind::Number),
                ("done", PropertyKind::Check(false)),
                ("when", PropertyKind::Date),
                ("tags", PropertyKind::List),
                ("by", PropertyKind::List),
                ("see", PropertyKind::Link),
                ("empty", PropertyKind::Text),
                ("in", PropertyKind::Nested),
            ]
        );
        let values: Vec<&str> = found.iter().flat_map(|one| &one.values).map(|(value, _)| value.as_str()).collect();
        assert_eq!(values, ["Räin: a", "12", "false", "2026-11-22", "a", "b c", "x", "[[Y]]", "https://a.b", "a: 1"]);
        let place = |at: usize| text.get(found[at].values[0].1.clone());
        assert_eq!((place(0), place(1), place(2)), (Some("\"Räin: a\""), Some("12"), Some("false")));
        assert_eq!(&text[found[0].lines.clone()], "title: \"Räin: a\"\n", "the comment belongs to what follows");
        assert_eq!(&text[found[5].lines.clone()], "by:\n  - x\n  - \"[[Y]]\"\n");
        assert_eq!(&text[found[8].lines.clone()], "in:\n  a: 1\n");
    }

    #[test]
    fn a_property_is_set_in_place() {
        let text = "---\ntags: [a]\nRating: 7 # of ten\nempty:\n---\nText\n";
        let put = |key: &str, value: Value| set_property(text, key, Some(&value)).expect("it fits");
        assert_eq!(put("rating", Value::from(8)), text.replace('7', "8"));
        assert_eq!(put("empty", "x: y".into()), text.replace("empty:", "empty: \"x: y\""));
        assert_eq!(put("new", true.into()), text.replace("empty:\n", "empty:\nnew: true\n"));
        assert_eq!(put("tags", parse_typed(PropertyKind::List, "a, b")), text.replace("[a]", "[a, b]"));
        assert_eq!(set_property(text, "rating", None), Ok(text.replace("Rating: 7 # of ten\n", "")));
        assert_eq!(set_property("Text\n", "a", Some(&"b".into())), Ok("---\na: b\n---\nText\n".to_owned()));
        assert_eq!(set_property("A\r\n", "a", Some(&1.into())), Ok("---\r\na: 1\r\n---\r\nA\r\n".to_owned()));
        assert_eq!(set_property("---\n---\n", "a", Some(&1.into())), Ok("---\na: 1\n---\n".to_owned()));
        assert!(set_property("---\na: [b\n---\n", "a", Some(&1.into())).is_err());
        assert_eq!(
            (parse_typed(PropertyKind::Number, "7.5"), parse_typed(PropertyKind::Number, "x")),
            (Value::from(7.5), Value::from("x"))
        );
        let front = Map::from_iter([
            ("a".to_owned(), Value::from(1)),
            ("b".to_owned(), parse_typed(PropertyKind::List, "x,[[y]]")),
        ]);
        assert_eq!(format_front_matter(&front), "---\na: 1\nb:\n  - x\n  - \"[[y]]\"\n---\n");
    }

    #[test]
    fn what_is_no_yaml_is_said() {
        assert!(read("Text\n").is_none());
        assert_eq!(read("---\n---\n"), Some(Ok(Vec::new())));
        assert!(read("---\na: [b\n---\n").expect("front matter").is_err());
        assert!(read("---\njust words\n---\n").expect("front matter").is_err());
    }
}
