//! Fields of messages from the JSON that commands print.

use prost_types::Timestamp;
use serde_json::Value;

/// Maximum length of a field that holds JSON, in bytes. Clients of gRPC take messages of 4 MiB.
const MAX_JSON_FIELD_BYTES: usize = 1 << 20;

/// Returns a text; empty if it's missing.
pub(super) fn text_field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// Returns a whole number; 0 if it's missing.
pub(super) fn number_field(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_default()
}

/// Returns a smaller whole number; 0 if it's missing.
pub(super) fn small_number_field(value: &Value, name: &str) -> i32 {
    i32::try_from(number_field(value, name)).unwrap_or(i32::MAX)
}

/// Returns a number; 0 if it's missing.
pub(super) fn decimal_field(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_default()
}

/// Returns texts.
pub(super) fn text_list_field(value: &Value, name: &str) -> Vec<String> {
    let texts = value[name].as_array().map(Vec::as_slice).unwrap_or_default();
    texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Returns the items of a list.
pub(super) fn list_field<T>(value: &Value, name: &str, item: impl Fn(&Value) -> T) -> Vec<T> {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(item).collect()
}

/// Returns a time in milliseconds since 1970.
pub(super) fn time_field(value: &Value, name: &str) -> Option<Timestamp> {
    value[name].as_i64().map(timestamp)
}

/// Returns a time that is written as in 2026-11-22T10:30:00Z.
pub(super) fn stated_time_field(value: &Value, name: &str) -> Option<Timestamp> {
    let stated: jiff::Timestamp = value[name].as_str()?.parse().ok()?;
    Some(timestamp(stated.as_millisecond()))
}

/// Returns a time from milliseconds since 1970.
pub(super) fn timestamp(millis: i64) -> Timestamp {
    // The remainder is positive, and less than a second.
    let nanos = i32::try_from(millis.rem_euclid(1_000) * 1_000_000).unwrap_or_default();
    Timestamp { seconds: millis.div_euclid(1_000), nanos }
}

/// Returns JSON as text. Of what is too long for a message, nothing is left, and the flag says so.
pub(super) fn json_text(value: &Value) -> (String, bool) {
    let text = if value.is_null() { String::new() } else { value.to_string() };
    if text.len() > MAX_JSON_FIELD_BYTES { (String::new(), true) } else { (text, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_have_positive_nanoseconds() {
        assert_eq!(timestamp(1_500), Timestamp { seconds: 1, nanos: 500_000_000 });
        assert_eq!(timestamp(-1), Timestamp { seconds: -1, nanos: 999_000_000 });
        let stated = serde_json::json!({"at": "1970-01-01T00:00:01.5Z", "never": ""});
        assert_eq!(stated_time_field(&stated, "at"), Some(timestamp(1_500)));
        assert_eq!(stated_time_field(&stated, "never"), None);
    }
}
