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
            // What was at each place of a reply, and what is there now.
            let mut places: Vec<(String, Value, Option<Value>)> = Vec::new();
            for (then, now) in before.iter().zip(now) {
                let now: BTreeMap<String, Value> = reply_values(&now.text).into_iter().collect();
                let moved = reply_values(&then.text).into_iter().map(|(place, old)| {
                    let new = now.get(&place).cloned();
                    (place, old, new)
                });
                places.extend(moved);
            }
            // From which of several places the ground truth has it is unknown, so all of them must agree.
            let mut copies = places.iter().filter(|(_, old, _)| old == value).map(|(_, _, new)| new);
            if let Some(first) = copies.next() {
                *is_stale |= first.is_none() || copies.any(|new| new != first);
                return first.clone().unwrap_or_else(|| value.clone());
            }
            if value.is_number() {
                return value.clone();
            }
            // A sentence may hold what was read.
            let mut text = written.clone();
            let mut replaced: BTreeMap<String, Option<String>> = BTreeMap::new();
            for (_, old, new) in places.iter().filter(|(place, _, _)| !place.is_empty()) {
                let (old, new) = (written_value(old), new.as_ref().map(written_value));
                if old.len() <= MIN_COPIED_BYTES || goal.names_all(&old) || !contains_word(&written, &old) {
                    continue;
                }
                if let Some(known) = replaced.get(&old) {
                    *is_stale |= *known != new;
                    continue;
                }
                *is_stale |= new.is_none();
                text = text.replace(&old, new.as_deref().unwrap_or_default());
                replaced.insert(old, new);
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
        let replies = |texts: [&str; 2]| -> Vec<CallReply> {
            let all = texts.map(|text| json!({"text": text, "ok": true, "changed": false}));
            serde_json::from_value(json!(all)).expect("replies")
        };
        let before = replies([
            r#"{"city": {"zip": "94016"}, "price": 220.5, "all": [220.5], "id": 7, "owner": "o-17"}"#,
            r#"{"zip": "94016", "winner": "o-17"}"#,
        ]);
        let after = replies([
            r#"{"city": {"zip": "74532"}, "price": 221.5, "all": [220.5], "id": 8, "owner": "o-17"}"#,
            r#"{"zip": "74532", "winner": "o-18"}"#,
        ]);
        let goal = ParsedGoal::parse("Buy 100 shares for 94017");
        let copy = |value: Value| {
            let mut is_stale = false;
            (copy_from_replies(&value, &goal, (before.as_slice(), after.as_slice()), &mut is_stale), is_stale)
        };
        assert_eq!(copy(json!(["94016", true, "94017"])), (json!(["74532", true, "94017"]), false));
        assert_eq!(copy(json!("at 94016")), (json!("at 74532"), false));
        assert_eq!(copy(json!(7)), (json!(7), false), "it's too short to be copied");
        assert!(copy(json!(220.5)).1, "it was at two places, which differ now");
        assert!(copy(json!("o-17")).1 && copy(json!("for o-17")).1, "the winner may be meant");
    }
}
