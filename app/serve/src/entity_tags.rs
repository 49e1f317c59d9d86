//! Entity tags in the headers `If-Match` and `If-None-Match` (RFC 9110).

use axum::http::{HeaderMap, HeaderName, header};

/// What the conditions of a request that reads say about the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadCondition {
    /// The client gets what it asks for.
    Send,
    /// The client has it already.
    NotModified,
    /// It's no longer what the client wants more of.
    Changed,
}

fn named_tags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(str::trim)
}

/// Returns whether a header of entity tags names this one. A weak tag names none: the bytes could differ.
pub(crate) fn names_tag(header: &str, tag: &str) -> bool {
    named_tags(header).any(|named| named == tag || named == "*")
}

/// Returns whether a client has what this tag names. A proxy that compresses answers makes tags weak.
fn has_tag(header: &str, tag: &str) -> bool {
    named_tags(header).any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

/// Compares the conditions of a request that reads with the tag of what it would get.
pub(crate) fn read_condition(headers: &HeaderMap, tag: &str) -> ReadCondition {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if text(header::IF_MATCH).is_some_and(|wanted| !names_tag(wanted, tag)) {
        return ReadCondition::Changed;
    }
    match text(header::IF_NONE_MATCH).is_some_and(|known| has_tag(known, tag)) {
        true => ReadCondition::NotModified,
        false => ReadCondition::Send,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReadCondition::{Changed, NotModified, Send};
    use axum::http::HeaderValue;

    #[test]
    fn entity_tags_are_compared_strongly_for_a_change() {
        assert!(names_tag("\"a\", \"b\"", "\"b\"") && names_tag("*", "\"b\""));
        assert!(!names_tag("W/\"b\"", "\"b\"") && !names_tag("b", "\"b\"") && !names_tag("", "\"b\""));
    }

    #[test]
    fn conditions_of_reads_are_compared_as_the_standard_says() {
        let condition = |wanted: Option<&'static str>, known: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            let pairs = [(header::IF_MATCH, wanted), (header::IF_NONE_MATCH, known)];
            let given = pairs.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::from_static(text?))));
            headers.extend(given);
            read_condition(&headers, "\"b\"")
        };
        assert_eq!(condition(None, None), Send);
        for known in ["\"b\"", "W/\"b\"", "\"a\", W/\"b\"", "*"] {
            assert_eq!(condition(None, Some(known)), NotModified, "{known}");
        }
        for other in ["\"a\"", "W/\"a\"", "b", ""] {
            assert_eq!(condition(None, Some(other)), Send, "{other}");
        }
        assert_eq!(condition(Some("\"b\""), None), Send);
        assert_eq!(condition(Some("*"), Some("\"b\"")), NotModified);
        for other in ["\"a\"", "W/\"b\""] {
            assert_eq!(condition(Some(other), Some("\"b\"")), Changed, "{other}");
        }
    }
}
