//! The only entry point for parsing YAML: depth, size, number of values and aliases are limited before values are
//! built.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, Yaml};
use saphyr_parser::{Event, Parser, ScanError, Span};
use serde::de::{DeserializeOwned, Error};
use serde_json::Value;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum nesting depth of lists and mappings.
pub const MAX_YAML_DEPTH: usize = 64;
/// Maximum size of YAML. Longer YAML is refused.
pub const MAX_YAML_BYTES: usize = 8 << 20;
/// Maximum number of values, lists and mappings.
const MAX_YAML_VALUES: usize = 250_000;
/// Maximum total number of values that aliases (`*name`) stand for.
const MAX_ALIASED_VALUES: usize = 20_000;
/// Maximum total size of text that aliases stand for.
const MAX_ALIASED_BYTES: usize = 4 << 20;
/// Maximum number of values in a mapping's key that is itself a list or mapping, such as `{{title}}` of a template.
const MAX_KEY_VALUES: usize = 8;

/// Reason why YAML can't be read: a clause for a sentence that names the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlReadError {
    /// The text isn't valid YAML.
    #[error(transparent)]
    Syntax(#[from] ScanError),
    /// The text exceeds the size limit.
    #[error("it is longer than {} MB", MAX_YAML_BYTES >> 20)]
    TooLong,
    /// The text has too many values.
    #[error("it holds more than {MAX_YAML_VALUES} values")]
    TooManyValues,
    /// Lists and mappings nest too deep.
    #[error("it nests more than {MAX_YAML_DEPTH} levels deep, line {line}")]
    NestedTooDeep {
        /// The line on which the limit is exceeded.
        line: usize,
    },
    /// Aliases stand for too many values or too much text.
    #[error("its aliases (*name) stand for too many values, line {line}")]
    AliasesTooLarge {
        /// The line of the alias that exceeds the limit.
        line: usize,
    },
    /// A key of a mapping is a complex list or mapping.
    #[error("a name on line {line} is itself a list or a mapping; put it in quotes")]
    ComplexKey {
        /// The line of the key.
        line: usize,
    },
    /// The parser panicked.
    #[error("the YAML reader fails on it")]
    ReaderPanicked,
}

/// Parses the first document of a text as JSON; `null` if there is none.
///
/// # Errors
/// Returns an error if the text isn't valid YAML or exceeds a limit.
pub fn parse_value(text: &str) -> Result<Value, YamlReadError> {
    let documents: Vec<Yaml<'_>> = load_documents(text)?;
    Ok(documents.first().map_or(Value::Null, to_json))
}

/// Parses the documents of a text with the positions of their values.
///
/// # Errors
/// Returns an error under the same conditions as [`parse_value`].
pub(crate) fn parse_marked(text: &str) -> Result<Vec<MarkedYaml<'_>>, YamlReadError> {
    load_documents(text)
}

/// Deserializes the first document of a text.
///
/// # Errors
/// Returns an error if the document doesn't fit the type, or the text exceeds a limit.
pub fn parse_typed<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    parse_typed_with(text, serde_saphyr::Options::default())
}

/// Deserializes the first document of a text with these options.
///
/// # Errors
/// Returns an error under the same conditions as [`parse_typed`].
pub fn parse_typed_with<T: DeserializeOwned>(
    text: &str,
    options: serde_saphyr::Options,
) -> Result<T, serde_saphyr::Error> {
    check_limits(text).map_err(serde_saphyr::Error::custom)?;
    catch_panic(|| serde_saphyr::from_str_with_options(text, options)).map_err(serde_saphyr::Error::custom)?
}

fn load_documents<'a, Node: LoadableYamlNode<'a>>(text: &'a str) -> Result<Vec<Node>, YamlReadError> {
    check_limits(text)?;
    Ok(catch_panic(|| Node::load_from_str(text))??)
}

/// Calls a parser and turns its panic into an error, so that it only affects this text.
fn catch_panic<R>(read: impl FnOnce() -> R) -> Result<R, YamlReadError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| YamlReadError::ReaderPanicked)
}

/// Checks that a text is within the limits, event by event, without building values. Invalid YAML passes, since
/// building the values reports it.
fn check_limits(text: &str) -> Result<(), YamlReadError> {
    if text.len() > MAX_YAML_BYTES {
        return Err(YamlReadError::TooLong);
    }
    catch_panic(|| {
        let mut parser = Parser::new_from_iter(text.chars());
        let mut limits = YamlLimits::default();
        while let Some(Ok((event, span))) = parser.next_event() {
            limits.visit_event(&event, span)?;
        }
        Ok(())
    })?
}

/// An open list or mapping.
struct OpenNode {
    anchor: usize,
    /// Whether the next value is a key; `None` in a list.
    key_next: Option<bool>,
    /// Whether this node is a key, or part of one.
    in_key: bool,
    size: ValueSize,
}

/// Size of a value, including the value itself.
#[derive(Clone, Copy, Default)]
struct ValueSize {
    values: usize,
    bytes: usize,
    depth: usize,
}

#[derive(Default)]
struct YamlLimits {
    open: Vec<OpenNode>,
    anchors: HashMap<usize, ValueSize>,
    values: usize,
    aliased: ValueSize,
}

impl YamlLimits {
    fn visit_event(&mut self, event: &Event<'_>, span: Span) -> Result<(), YamlReadError> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, _, anchor, _) => {
                self.values += 1;
                self.close_value(*anchor, ValueSize { values: 1, bytes: text.len(), depth: 0 }, line)?;
            }
            Event::Alias(id) => {
                // An alias inside its own anchor has no value yet.
                let size = self.anchors.get(id).copied().unwrap_or(ValueSize { values: 1, bytes: 0, depth: 0 });
                self.values += 1;
                self.aliased.values += size.values;
                self.aliased.bytes += size.bytes;
                if self.aliased.values > MAX_ALIASED_VALUES || self.aliased.bytes > MAX_ALIASED_BYTES {
                    return Err(YamlReadError::AliasesTooLarge { line });
                }
                self.close_value(0, size, line)?;
            }
            Event::SequenceStart(anchor, _) => self.open_node(*anchor, None, line)?,
            Event::MappingStart(anchor, _) => self.open_node(*anchor, Some(true), line)?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(ended) = self.open.pop() {
                    self.close_value(ended.anchor, ValueSize { depth: ended.size.depth + 1, ..ended.size }, line)?;
                }
            }
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::DocumentEnd | Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        if self.values > MAX_YAML_VALUES {
            return Err(YamlReadError::TooManyValues);
        }
        Ok(())
    }

    fn open_node(&mut self, anchor: usize, key_next: Option<bool>, line: usize) -> Result<(), YamlReadError> {
        self.values += 1;
        if self.open.len() >= MAX_YAML_DEPTH {
            return Err(YamlReadError::NestedTooDeep { line });
        }
        let is_key = self.open.last().is_some_and(|open| open.key_next == Some(true));
        let in_key = self.open.last().is_some_and(|open| open.in_key);
        if is_key && in_key {
            return Err(YamlReadError::ComplexKey { line });
        }
        self.open.push(OpenNode {
            anchor,
            key_next,
            in_key: is_key || in_key,
            size: ValueSize { values: 1, bytes: 0, depth: 0 },
        });
        Ok(())
    }

    /// Adds a complete value to the node around it, and checks the limits.
    fn close_value(&mut self, anchor: usize, size: ValueSize, line: usize) -> Result<(), YamlReadError> {
        if anchor > 0 {
            self.anchors.insert(anchor, size);
        }
        if self.open.len() + size.depth > MAX_YAML_DEPTH {
            return Err(YamlReadError::NestedTooDeep { line });
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.size.values += size.values;
        open.size.bytes += size.bytes;
        open.size.depth = open.size.depth.max(size.depth);
        if let Some(key_next) = &mut open.key_next {
            let complex = size.depth > 1 || (size.depth == 1 && size.values > MAX_KEY_VALUES);
            if *key_next && complex {
                return Err(YamlReadError::ComplexKey { line });
            }
            *key_next = !*key_next;
        }
        Ok(())
    }
}

fn to_json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Null) | Yaml::BadValue | Yaml::Alias(_) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::from(*value),
        Yaml::Value(Scalar::Integer(value)) => Value::from(*value),
        Yaml::Value(Scalar::FloatingPoint(value)) => Value::from(value.into_inner()),
        Yaml::Value(Scalar::String(value)) => Value::from(value.as_ref()),
        Yaml::Representation(value, _, _) => Value::from(value.as_ref()),
        Yaml::Tagged(_, inner) => to_json(inner),
        Yaml::Sequence(items) => items.iter().map(to_json).collect(),
        Yaml::Mapping(entries) => {
            let entry =
                |(key, value): (&Yaml<'_>, &Yaml<'_>)| (crate::outline::plain_value(&to_json(key)), to_json(value));
            Value::Object(entries.iter().map(entry).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, Instant};

    /// Reads a text through each entry point, and checks that all agree on whether a limit refuses it.
    #[track_caller]
    fn read(text: &str) -> Result<Value, String> {
        let begun = Instant::now();
        let read = parse_value(text).map_err(|why| why.to_string());
        let marked = parse_marked(text).map(drop).map_err(|why| why.to_string());
        let typed = parse_typed::<Value>(text).map(drop).map_err(|error| error.to_string());
        // Without limits, this would take minutes or forever. On a loaded machine it may take seconds.
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {:.60}", begun.elapsed(), text);
        if let Err(why) = check_limits(text).map_err(|why| why.to_string()) {
            assert_eq!((read.clone().map(drop), marked), (Err(why.clone()), Err(why.clone())));
            assert!(typed.is_err_and(|error| error.contains(&why)), "{text:.60}");
        }
        read
    }

    #[test]
    fn depth_is_limited() {
        for open in ["? ", "- ", "[", "{a: ", "- ? ", "? - ", "[{a: ", "!t [", "&a [", "- - ? "] {
            // Below or above the depth limit: the time is bounded either way.
            let _ = read(&format!("{}x\n", open.repeat(28)));
            for times in [100, 2_000, 100_000] {
                let text = format!("{}x\n", open.repeat(times));
                assert!(read(&text).is_err(), "{text:.60}");
                assert!(read(&format!("a: 1\nb:\n  {text}")).is_err(), "{text:.60}");
            }
        }
        assert!(read(&format!("a:\n{}x\n", "- ".repeat(10_000))).is_err());
        let nested: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(read(&nested).expect_err("too deep").contains("64 levels"));
        assert!(read(&format!("{}x{}", "[".repeat(64), "]".repeat(64))).is_ok());
        assert!(read(&format!("{}x{}", "[".repeat(65), "]".repeat(65))).is_err());
    }

    #[test]
    fn names_are_simple() {
        for text in ["? [[a]]\n: b\n", "? {a: {b: c}}\n: d\n", "? - ? x\n", "? {? {a} : b}\n: c\n"] {
            assert!(read(text).is_err_and(|why| why.contains("put it in quotes")), "{text}");
        }
        assert!(read(&format!("x: &a [{}]\n*a : b\n", "1,".repeat(20))).is_err());
        // As in the front matter of a template.
        assert_eq!(read("title: {{title}}\ntags: [a]\n").expect("read")["tags"], json!(["a"]));
    }

    #[test]
    fn aliases_are_counted() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let refs = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{refs}]\n"));
        }
        assert!(read(&laughs).is_err_and(|why| why.contains("aliases")));
        // Each alias nests one level deeper.
        let mut deep = "a0: &a0 [x]\n".to_owned();
        for level in 1..100 {
            deep.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert!(read(&deep).is_err_and(|why| why.contains("64 levels")));
        let wide = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(60_000), "*a, ".repeat(1_000));
        assert!(read(&wide).is_err_and(|why| why.contains("aliases")));
        assert_eq!(read("a: &a [1]\nb: *a\n").expect("read"), json!({"a": [1], "b": [1]}));
        let _ = read("a: &a [*a]\n");
        let _ = read("<<: &a {<<: *a}\n");
    }

    #[test]
    fn size_is_limited() {
        assert!(read(&"a".repeat(MAX_YAML_BYTES + 1)).is_err());
        assert!(read(&format!("[{}]", "1,".repeat(MAX_YAML_VALUES + 1))).is_err_and(|why| why.contains("values")));
    }
}
