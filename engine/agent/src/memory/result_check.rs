//! Checks the result of a replayed step: it must be identical, have the same shape, or can be anything.

use super::slots::{self, SlotValues};
use super::trace::short_hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of a result's shape in bytes; longer ones are compared by hash.
const MAX_RESULT_SHAPE_BYTES: usize = 300;

/// Requirements on a step's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultCheck {
    /// Hash of the whole result, which must be identical; empty if it may differ.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub same: String,
    /// Hash of the result with the goal's values replaced by placeholders; empty if it has none of them. A result with
    /// this hash says the same about other values, and is as good as an identical one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub like: String,
    /// Required shape: the columns of a table or the keys of JSON; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// Whether it's the last result, of a tool that only reads, so that no step needs what a list holds: an empty list
    /// fits where there were some. Where it was empty, elements don't fit: the run may have done nothing for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

/// How a result differs from the required one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultDifference {
    /// The shape differs.
    #[error("it has another form: {now}, where there was {before}")]
    Shape {
        /// The shape of the result.
        now: String,
        /// The shape of the recorded result.
        before: String,
    },
    /// The text differs, and later steps depend on it.
    #[error("it says something else than when the trace was learned, and what follows depends on it")]
    Text,
}

impl ResultCheck {
    /// Creates a check from a recorded result and the values of the goal. With `same`, the result must be identical,
    /// except for these values.
    pub fn from_result(result: &str, same: bool, values: &SlotValues) -> ResultCheck {
        let (mut check, template) = (ResultCheck::default(), slots::result_template(result, values));
        check.shape = result_shape(result);
        if same {
            check.same = short_hash(result.as_bytes());
            if template != slots::result_template(result, &SlotValues::new()) {
                check.like = short_hash(template.as_bytes());
            }
        }
        check
    }

    /// Checks whether a result meets the requirements in a replay with these values.
    ///
    /// # Errors
    /// Returns the difference if it doesn't.
    pub fn check(&self, result: &str, values: &SlotValues) -> Result<(), ResultDifference> {
        if !self.like.is_empty() && short_hash(slots::result_template(result, values).as_bytes()) == self.like {
            return Ok(());
        }
        let now = result_shape(result);
        let fits = now == self.shape || (self.is_last && without_list_elements(&now, &self.shape));
        if !self.shape.is_empty() && !fits {
            return Err(ResultDifference::Shape { now, before: self.shape.clone() });
        }
        if !self.same.is_empty() && short_hash(result.as_bytes()) != self.same {
            return Err(ResultDifference::Text);
        }
        Ok(())
    }
}

/// Returns the shape of a text: what stays the same if only the data change.
pub fn result_shape(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "empty".to_owned();
    }
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let mut paths = BTreeSet::new();
        collect_json_keys(&value, "", 0, &mut paths);
        return bound_shape(format!("json {}", paths.into_iter().collect::<Vec<_>>().join(" ")));
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim();
    for separator in ['\t', ';', ',', '|'] {
        let count = |line: &str| line.matches(separator).count();
        let columns = count(first);
        let mut rest = lines.clone().take(50).peekable();
        if columns > 0 && rest.peek().is_some() && rest.all(|line| count(line) == columns) {
            return bound_shape(format!("table {first}"));
        }
    }
    "text".to_owned()
}

/// Returns whether two shapes of JSON differ only in the elements of lists that are empty now.
fn without_list_elements(now: &str, before: &str) -> bool {
    let keys = |shape: &str| -> Option<BTreeSet<String>> {
        Some(shape.strip_prefix("json ")?.split(' ').map(str::to_owned).collect())
    };
    let (Some(now), Some(before)) = (keys(now), keys(before)) else { return false };
    // A path of an element begins with that of its list, which both have, and "[]".
    let lists = now.intersection(&before).filter_map(|path| path.strip_suffix(":list")).map(|list| format!("{list}[]"));
    let empty: Vec<String> = lists.filter(|list| !now.iter().any(|path| path.starts_with(list.as_str()))).collect();
    let is_element = |path: &String| empty.iter().any(|list| path.starts_with(list.as_str()));
    now.symmetric_difference(&before).all(is_element)
}

fn bound_shape(shape: String) -> String {
    if shape.len() <= MAX_RESULT_SHAPE_BYTES {
        return shape;
    }
    let kind = shape.split(' ').next().unwrap_or_default();
    format!("{kind} {}", short_hash(shape.as_bytes()))
}

fn collect_json_keys(value: &Value, path: &str, deep: usize, into: &mut BTreeSet<String>) {
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
        Value::Array(items) => {
            items.iter().take(20).for_each(|item| collect_json_keys(item, &format!("{path}[]"), deep + 1, into))
        }
        Value::Object(map) => {
            map.iter()
                .take(100)
                .for_each(|(key, item)| collect_json_keys(item, &format!("{path}.{key}"), deep + 1, into));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::goal::SlotKind;
    use super::*;

    #[test]
    fn shapes_tell_forms_apart_and_not_data() {
        assert_eq!(result_shape("day,sold\n1,5\n2,7\n"), result_shape("day,sold\n1,50\n"));
        assert_ne!(result_shape("day,sold\n1,5\n"), result_shape("day,sold,back\n1,5,0\n"));
        assert_ne!(result_shape("day,sold\n1,5\n"), result_shape("sold,day\n1,5\n"));
        assert_eq!(result_shape(r#"{"a": [1, 2]}"#), result_shape(r#"{"a": [3]}"#));
        assert_ne!(result_shape(r#"{"a": 1}"#), result_shape(r#"{"error": "no"}"#));
        assert_eq!(result_shape("Hello, you\nhow are you"), "text");
        let none = SlotValues::new();
        let expect = ResultCheck::from_result("day,sold\n1,5\n", true, &none);
        assert!(expect.check("day,sold\n1,5\n", &none).is_ok() && expect.check("day,sold\n1,6\n", &none).is_err());
        assert_eq!(expect.like, "");
        assert!(ResultCheck::default().check("anything", &none).is_ok());
    }

    #[test]
    fn the_last_list_may_be_empty() {
        let none = SlotValues::new();
        let found = r#"{"found": [{"id": 1}], "of": "a b"}"#;
        let mut expect = ResultCheck::from_result(found, false, &none);
        let empty = r#"{"found": [], "of": "c"}"#;
        assert!(expect.check(empty, &none).is_err(), "a step may need what was found");
        expect.is_last = true;
        assert!(expect.check(empty, &none).is_ok() && expect.check(found, &none).is_ok());
        for other in [r#"{"found": []}"#, r#"{"found": [{"no": 1}], "of": "c"}"#, r#"{"found": null, "of": "c"}"#, "[]"]
        {
            assert!(expect.check(other, &none).is_err(), "{other}");
        }
        let mut expect = ResultCheck::from_result(empty, false, &none);
        expect.is_last = true;
        assert!(expect.check(found, &none).is_err(), "nothing was done as nothing was found");
    }

    #[test]
    fn a_result_may_say_the_same_about_another_value() {
        let of = |value: &str| SlotValues::from([("name1".to_owned(), (SlotKind::Name, value.to_owned()))]);
        let expect = ResultCheck::from_result(r#"{"found": "ada.txt of Ada"}"#, true, &of("Ada"));
        assert!(expect.check(r#"{"found": "bob.txt of Bob"}"#, &of("Bob")).is_ok());
        assert!(expect.check(r#"{"found": "bob.txt of Bob, too"}"#, &of("Bob")).is_err());
        assert!(expect.check(r#"{"found": "ada.txt of Ada"}"#, &of("Bob")).is_ok(), "it's the same as then");
        assert!(expect.check(r#"{"found": "eve.txt of Eve"}"#, &of("Bob")).is_err(), "neither of them");
        // A recorded key that is a value may be another one, too.
        let keyed = ResultCheck::from_result(r#"{"Ada": 4}"#, true, &of("Ada"));
        assert!(keyed.check(r#"{"Bob": 4}"#, &of("Bob")).is_ok() && keyed.check(r#"{"Bob": 5}"#, &of("Bob")).is_err());
    }
}
