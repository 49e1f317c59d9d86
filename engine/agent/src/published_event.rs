//! Events that other programs publish, as `custom.NAME` with JSON: within limits of size, depth and number.

use crate::event_filter::custom_kind;
use crate::notice::Notice;
use serde_json::Value;
use std::collections::VecDeque;
use store::DocId;
use text::time::UnixMillis;
use text::untrusted_text::escape_line;

/// Maximum length of the JSON of an event, in bytes.
const MAX_PUBLISHED_BYTES: usize = 2_000;
/// Maximum depth of the JSON of an event.
const MAX_PUBLISHED_DEPTH: usize = 8;
/// Maximum number of events that are published within [`PUBLISH_WINDOW_MS`].
const MAX_PUBLISHED_EVENTS: usize = 100;
/// Time in milliseconds in which published events are counted.
const PUBLISH_WINDOW_MS: i64 = 60_000;
/// Maximum length in bytes of an unknown kind in an error.
const MAX_SHOWN_KIND_BYTES: usize = 80;

/// Why an event isn't published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The kind isn't one for other programs.
    #[error(
        "“{kind}” can't be published; use custom. and a name of letters, digits, _, - and ., such as custom.deployed"
    )]
    InvalidKind {
        /// The kind as it was written.
        kind: String,
    },
    /// The JSON is too long.
    #[error("the event's JSON has {bytes} bytes, more than {MAX_PUBLISHED_BYTES}; publish a path or an id instead")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The JSON is nested too deep.
    #[error("the event's JSON is nested deeper than {MAX_PUBLISHED_DEPTH} levels; make it flatter")]
    TooDeep,
    /// Too many events were published.
    #[error("{MAX_PUBLISHED_EVENTS} events were published within a minute; wait, and publish fewer")]
    TooMany,
}

/// When the last events of other programs were published.
#[derive(Debug, Default)]
pub struct PublishedEventTimes {
    times: VecDeque<UnixMillis>,
}

impl PublishedEventTimes {
    /// Checks an event of another program, and counts it. Returns the notice that publishes it.
    ///
    /// # Errors
    /// Returns an error if the kind is one of Tracebook's, the JSON is too large, or too many events were published.
    pub fn admit(&mut self, now: UnixMillis, volume: DocId, kind: &str, data: Value) -> Result<Notice, PublishError> {
        let kind = published_kind(kind)?;
        let bytes = data.to_string().len();
        if bytes > MAX_PUBLISHED_BYTES {
            return Err(PublishError::TooLong { bytes });
        }
        if is_deeper_than(&data, MAX_PUBLISHED_DEPTH) {
            return Err(PublishError::TooDeep);
        }
        // A clock that was set back must not keep events waiting.
        self.times.retain(|at| (0..PUBLISH_WINDOW_MS).contains(&now.0.saturating_sub(at.0)));
        if self.times.len() >= MAX_PUBLISHED_EVENTS {
            return Err(PublishError::TooMany);
        }
        self.times.push_back(now);
        let subject = data["subject"].as_str().or(data.as_str()).map(str::to_owned);
        Ok(Notice::Published { volume, kind, subject, data })
    }
}

/// Returns the kind of an event of another program, as filters compare it.
///
/// # Errors
/// Returns an error if it isn't `custom.` and a name.
pub fn published_kind(kind: &str) -> Result<String, PublishError> {
    let shown = || kind.get(..kind.floor_char_boundary(MAX_SHOWN_KIND_BYTES)).unwrap_or_default();
    custom_kind(kind).ok_or_else(|| PublishError::InvalidKind { kind: escape_line(shown()).into_owned() })
}

/// Returns whether a value has more than so many levels of arrays and objects.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(all) => levels == 0 || all.iter().any(|inner| is_deeper_than(inner, levels - 1)),
        Value::Object(all) => levels == 0 || all.values().any(|inner| is_deeper_than(inner, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const VOLUME: DocId = DocId([1; 16]);

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn only_small_events_of_other_kinds_are_published() {
        let mut times = PublishedEventTimes::default();
        let mut admit = |kind: &str, data: Value| times.admit(UnixMillis(0), VOLUME, kind, data);
        let deployed = admit("custom.deploy-done", json!({"subject": "site", "n": 1}));
        let Ok(Notice::Published { kind, subject, .. }) = deployed else { panic!("{deployed:?}") };
        assert_eq!((kind.as_str(), subject.as_deref()), ("CUSTOM.DEPLOY_DONE", Some("site")));
        for wrong in ["USER_INPUT", "deployed", "custom.", "custom", "custom.a b", "custom.a:b", "custom.é", ""] {
            assert!(matches!(admit(wrong, json!(1)), Err(PublishError::InvalidKind { .. })), "{wrong}");
        }
        assert!(admit("custom.x", nested(MAX_PUBLISHED_DEPTH)).is_ok());
        assert_eq!(admit("custom.x", nested(MAX_PUBLISHED_DEPTH + 1)), Err(PublishError::TooDeep));
        assert!(admit("custom.x", json!("a".repeat(MAX_PUBLISHED_BYTES - 2))).is_ok());
        let bytes = MAX_PUBLISHED_BYTES + 1;
        assert_eq!(admit("custom.x", json!("a".repeat(bytes - 2))), Err(PublishError::TooLong { bytes }));
    }

    #[test]
    fn events_are_counted_for_a_minute() {
        let mut times = PublishedEventTimes::default();
        let mut admit = |at: i64| times.admit(UnixMillis(at), VOLUME, "custom.x", Value::Null);
        for number in 0..MAX_PUBLISHED_EVENTS {
            assert!(admit(1_000 + i64::try_from(number).expect("small")).is_ok());
        }
        assert_eq!(admit(30_000), Err(PublishError::TooMany));
        assert!(admit(1_000 + PUBLISH_WINDOW_MS).is_ok(), "the first one no longer counts");
        assert_eq!(admit(1_000 + PUBLISH_WINDOW_MS), Err(PublishError::TooMany));
        assert!(admit(0).is_ok(), "the clock was set back");
    }
}
