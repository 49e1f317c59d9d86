//! What the result of a step must be like when it is replayed: the same, of the same shape, or anything.

use super::trace::short;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A shape has at most so many bytes; a longer one is known by its hash.
const LONGEST: usize = 300;

/// What a result must be like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expect {
    /// The hash of the whole result: nothing else will do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub same: String,
    /// Its shape: the columns of a table, the keys of JSON.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shape: String,
}

impl Expect {
    /// Of a result that was seen; `same`: no other will do.
    pub fn of(result: &str, same: bool) -> Expect {
        Expect { same: if same { short(result.as_bytes()) } else { String::new() }, shape: shape(result) }
    }

    /// Whether a result is like this.
    ///
    /// # Errors
    /// What is different: a sentence.
    pub fn check(&self, result: &str) -> Result<(), String> {
        let now = shape(result);
        if !self.shape.is_empty() && now != self.shape {
            return Err(format!("it has another form: {now}, where there was {}", self.shape));
        }
        if !self.same.is_empty() && short(result.as_bytes()) != self.same {
            return Err(
                "it says something else than when the trace was learned, and what follows depends on it".to_owned()
            );
        }
        Ok(())
    }
}

/// The shape of a text: what stays the same where only the data are others.
pub fn shape(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "empty".to_owned();
    }
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let mut paths = BTreeSet::new();
        keys(&value, "", 0, &mut paths);
        return bounded(format!("json {}", paths.into_iter().collect::<Vec<_>>().join(" ")));
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim();
    for separator in ['\t', ';', ',', '|'] {
        let count = |line: &str| line.matches(separator).count();
        let columns = count(first);
        let mut rest = lines.clone().take(50).peekable();
        if columns > 0 && rest.peek().is_some() && rest.all(|line| count(line) == columns) {
            return bounded(format!("table {first}"));
        }
    }
    "text".to_owned()
}

fn bounded(shape: String) -> String {
    if shape.len() <= LONGEST {
        return shape;
    }
    let kind = shape.split(' ').next().unwrap_or_default();
    format!("{kind} {}", short(shape.as_bytes()))
}

fn keys(value: &Value, path: &str, deep: usize, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    into.insert(format!("{path}:{kind}"));
    if deep > 6 || into.len() > 500 {
        return;
    }
    match value {
        Value::Array(items) => items.iter().take(20).for_each(|item| keys(item, &format!("{path}[]"), deep + 1, into)),
        Value::Object(map) => {
            map.iter().take(100).for_each(|(key, item)| keys(item, &format!("{path}.{key}"), deep + 1, into));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_tell_forms_apart_and_not_data() {
        assert_eq!(shape("day,sold\n1,5\n2,7\n"), shape("day,sold\n1,50\n"));
        assert_ne!(shape("day,sold\n1,5\n"), shape("day,sold,back\n1,5,0\n"));
        assert_ne!(shape("day,sold\n1,5\n"), shape("sold,day\n1,5\n"));
        assert_eq!(shape(r#"{"a": [1, 2]}"#), shape(r#"{"a": [3]}"#));
        assert_ne!(shape(r#"{"a": 1}"#), shape(r#"{"error": "no"}"#));
        assert_eq!(shape("Hello, you\nhow are you"), "text");
        let expect = Expect::of("day,sold\n1,5\n", true);
        assert!(expect.check("day,sold\n1,5\n").is_ok() && expect.check("day,sold\n1,6\n").is_err());
        assert!(Expect::default().check("anything").is_ok());
    }
}
