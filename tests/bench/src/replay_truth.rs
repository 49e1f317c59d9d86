//! What a task's ground truth copies from replies, for the benchmark of replays: an argument that an earlier reply said
//! is what that reply says now.

use super::replay::CallReply;
use agent::memory::goal::ParsedGoal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Shortest text or number, in bytes, that counts as copied from a reply: shorter ones may be equal by chance.
const MIN_COPIED_BYTES: usize = 3;

/// Returns whether a text contains another as a whole word.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let ends = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        ends(text[..at].chars().next_back()) && ends(text[at + word.len()..].chars().next())
    })
}

/// Returns a text or number as it's written.
fn written_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the texts and numbers of a reply with their places in it.
fn reply_values(reply: &str) -> Vec<(String, Value)> {
    fn collect(value: &Value, place: &str, into: &mut Vec<(String, Value)>) {
        match value {
            Value::String(_) | Value::Number(_) => into.push((place.to_owned(), value.clone())),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| collect(item, &format!("{place}/{at}"), into));
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, item)| collect(item, &format!("{place}/{key}"), into));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut found = Vec::new();
    let value = serde_json::from_str(reply).unwrap_or_else(|_| Value::String(reply.to_owned()));
    collect(&value, "", &mut found);
    found
}

/// Copies into an argument what the ground truth copied from replies: of what was at a place in the `before`, what is
/// there `now`. Sets `is_stale` if a copied value is gone, or was at places that now differ.
pub(super) fn copy_from_replies(
    value: &Value,
    goal: &ParsedGoal,
    (before, now): (&[CallReply], &[CallReply]),
    is_stale: &mut bool,
) -> Value {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| copy_from_replies(item, goal, (before, now), is_stale)).collect()
        }
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), copy_from_replies(item, goal, (before, now), is_stale)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) => value.clone(),
        Value::String(_) | Value::Number(_) => {
            let written = written_value(value);
            if written.len() < MIN_COPIED_BYTES || goal.names_all(&written) {
                return value.clone();
            }
            let replies = || {
                let pairs = before.iter().zip(now);
                pairs.map(|(before, now)| {
                    (reply_values(&before.text), reply_values(&now.text).into_iter().collect::<BTreeMap<_, _>>())
                })
            };
            for (then, now) in replies() {
                let places: Vec<&String> = then.iter().filter(|(_, of)| of == value).map(|(place, _)| place).collect();
                let Some(first) = places.first() else { continue };
                let new = now.get(*first);
                *is_stale |= new.is_none() || places.iter().any(|place| now.get(*place) != new);
                return new.cloned().unwrap_or_else(|| value.clone());
            }
            if value.is_number() {
                return value.clone();
            }
            // A sentence may hold what was read.
            let mut text = written;
            for (then, now) in replies() {
                for (place, old) in then.iter().filter(|(place, _)| !place.is_empty()) {
                    let old = written_value(old);
                    if old.len() > MIN_COPIED_BYTES && !goal.names_all(&old) && contains_word(&text, &old) {
                        *is_stale |= !now.contains_key(place);
                        text = text.replace(&old, &now.get(place).map(written_value).unwrap_or_default());
                    }
                }
            }
            Value::String(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_copied_is_copied_again() {
        let replies = |text: &str| -> Vec<CallReply> {
            serde_json::from_value(json!([{"text": text, "ok": true, "changed": false}])).expect("replies")
        };
        let before = replies(r#"{"city": {"zip": "94016"}, "price": 220.5, "all": [220.5], "id": 7}"#);
        let after = replies(r#"{"city": {"zip": "74532"}, "price": 221.5, "all": [220.5], "id": 8}"#);
        let goal = ParsedGoal::parse("Buy 100 shares for 94017");
        let copy = |value: Value| {
            let mut is_stale = false;
            (copy_from_replies(&value, &goal, (before.as_slice(), after.as_slice()), &mut is_stale), is_stale)
        };
        assert_eq!(copy(json!(["94016", true, "94017"])), (json!(["74532", true, "94017"]), false));
        assert_eq!(copy(json!("at 94016")), (json!("at 74532"), false));
        assert_eq!(copy(json!(7)), (json!(7), false), "it's too short to be copied");
        assert!(copy(json!(220.5)).1, "it was at two places, which differ now");
    }
}
