//! Error messages of model calls: host, cause, remedy. They never contain a key.

use crate::ProviderTimeouts;
use agent::model_call::{ModelEndpoint, ModelErrorKind, WireProtocol};
use genai::webc::StreamTimeout;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::error::Error as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of characters shown of a provider's message.
const MAX_SHOWN_MESSAGE_CHARS: usize = 300;
/// Maximum number of bytes read of an error response.
pub(crate) const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// Error of one attempt.
#[derive(Debug)]
pub(crate) struct ProviderError {
    pub(crate) kind: ModelErrorKind,
    /// Message with host, cause and remedy.
    pub(crate) why: String,
    /// Whether another attempt may succeed.
    pub(crate) can_retry: bool,
    /// How long the provider asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl ProviderError {
    pub(crate) fn new(kind: ModelErrorKind, why: impl Into<String>) -> ProviderError {
        let again = matches!(kind, ModelErrorKind::Unreachable | ModelErrorKind::RateLimited | ModelErrorKind::Server);
        ProviderError { kind, why: why.into(), can_retry: again, retry_after: None }
    }
}

/// A secret that's never displayed or printed.
#[derive(Clone)]
pub(crate) struct ApiKey(pub(crate) String);

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Masks the key in a text, since the server may have repeated it.
pub(crate) fn redact_key(text: &str, key: Option<&ApiKey>) -> String {
    // Shorter keys aren't secrets, and masking them would damage words.
    match key.filter(|key| key.0.len() >= 4) {
        Some(key) => text.replace(&key.0, "…"),
        None => text.to_owned(),
    }
}

/// Shortens a provider's message, and masks the key in it.
fn shorten_message(text: &str, key: Option<&ApiKey>) -> String {
    // Mask the key before cutting, because half a key would leak too.
    let text = redact_key(text.get(..text.floor_char_boundary(MAX_ERROR_BODY_BYTES)).unwrap_or_default(), key);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = text.chars().filter(|letter| !letter.is_control()).take(MAX_SHOWN_MESSAGE_CHARS).collect();
    if text.chars().count() > MAX_SHOWN_MESSAGE_CHARS {
        short.push('…');
    }
    short.trim_end_matches('.').to_owned()
}

/// Returns the error message in a response body; providers put it in different places.
fn error_message(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    find_error_message(&value).unwrap_or(body).to_owned()
}

fn find_error_message(value: &Value) -> Option<&str> {
    let value = if let Value::Array(list) = value { list.first()? } else { value };
    let inner = value.get("error").unwrap_or(value);
    inner.as_str().or_else(|| ["message", "detail", "error"].iter().find_map(|name| inner.get(name)?.as_str()))
}

/// Returns advice for an unreachable provider.
fn connection_advice(endpoint: &ModelEndpoint) -> String {
    let provider = &endpoint.provider;
    match (endpoint.local, endpoint.wire) {
        (true, WireProtocol::Ollama) => {
            format!(
                "Start Ollama (`ollama serve`), connect another model (`tracebook providers add`), or set \
                 llm.providers.{provider}.base_url in config.yaml"
            )
        }
        (true, _) => format!("Start the server, or set llm.providers.{provider}.base_url in config.yaml"),
        (false, _) => format!("Look at the network, or set llm.providers.{provider}.base_url in config.yaml"),
    }
}

/// Converts a response with an error status.
pub(crate) fn status_error(
    endpoint: &ModelEndpoint,
    host: &str,
    key: Option<&ApiKey>,
    status: u16,
    headers: &HeaderMap,
    body: &str,
) -> ProviderError {
    let said = shorten_message(&error_message(body), key);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let name = endpoint.key.as_deref();
    let wait = retry_after(headers, SystemTime::now());
    match status {
        401 | 403 => {
            let what = match (name, key) {
                (Some(name), Some(_)) => format!("Set another one with `tracebook secrets set {name}`"),
                (Some(name), None) => format!("Set it with `tracebook secrets set {name}`"),
                (None, _) => format!("Name its key in llm.providers.{}.api_key as ${{NAME}}", endpoint.provider),
            };
            let key = if key.is_some() { "does not accept the key" } else { "wants a key" };
            ProviderError::new(ModelErrorKind::Key, format!("{host} {key} ({status}{said}). {what}."))
        }
        429 => {
            let pause = wait.and_then(wait_label).unwrap_or_else(|| "a little".to_owned());
            let why = format!("{host} gets too many requests (429{said}). Wait {pause}, or ask another provider.");
            ProviderError { retry_after: wait, ..ProviderError::new(ModelErrorKind::RateLimited, why) }
        }
        500..=599 => {
            let later = wait.and_then(wait_label).map_or_else(|| "later".to_owned(), |pause| format!("in {pause}"));
            let why =
                format!("{host} has trouble of its own ({status}{said}). Try again {later}, or ask another provider.");
            ProviderError { retry_after: wait, ..ProviderError::new(ModelErrorKind::Server, why) }
        }
        300..=399 => ProviderError::new(
            ModelErrorKind::Refused,
            format!(
                "{host} sends elsewhere ({status}), where no key is taken along. Set llm.providers.{}.base_url.",
                endpoint.provider
            ),
        ),
        404 => ProviderError::new(
            ModelErrorKind::Refused,
            format!(
                "{host} does not know this (404{said}). Look at model “{}” and base_url of llm.providers.{}; \
                 `tracebook providers models {}` lists what there is.",
                endpoint.model, endpoint.provider, endpoint.provider
            ),
        ),
        _ => ProviderError::new(ModelErrorKind::Refused, format!("{host} refuses the request ({status}{said}).")),
    }
}

/// Returns how long a provider asks to wait: `Retry-After` in seconds or as a date, or `retry-after-ms`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = UNIX_EPOCH + Duration::from_secs(parse_http_date(text)?);
    Some(until.duration_since(now).unwrap_or_default())
}

/// Returns how long to wait, rounded up, as messages show it; `None` if it's too short or too long to matter.
fn wait_label(wait: Duration) -> Option<String> {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match seconds {
        2..=119 => Some(format!("{seconds} s")),
        120..=7_199 => Some(format!("{} min", seconds.div_ceil(60))),
        7_200..=31_536_000 => Some(format!("{} h", seconds.div_ceil(3_600))),
        _ => None,
    }
}

/// Parses an HTTP date like `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since 1970.
fn parse_http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_whitespace().skip(1);
    let day: u64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = parts.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = parts.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if hour > 23 || minute > 59 || second > 60 || parts.next() != Some("GMT") {
        return None;
    }
    // Days since 1970, counted in years that start in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Converts an error of the connection.
pub(crate) fn network_error(
    endpoint: &ModelEndpoint,
    host: &str,
    key: Option<&ApiKey>,
    error: &reqwest::Error,
) -> ProviderError {
    let mut chain = Vec::new();
    let mut cause = error.source();
    while let Some(next) = cause.filter(|_| chain.len() < 16) {
        chain.push(next.to_string());
        cause = next.source();
    }
    let all = chain.join(": ").to_lowercase();
    let last = chain.last().map(|last| shorten_message(last, key)).unwrap_or_default();
    if ["certificate", "tls", "handshake"].iter().any(|word| all.contains(word)) {
        let why = format!(
            "{host} cannot be trusted ({last}). Look at the address, the clock and the certificates of this machine."
        );
        return ProviderError { can_retry: false, ..ProviderError::new(ModelErrorKind::Unreachable, why) };
    }
    if error.is_connect() || error.is_request() || error.is_timeout() {
        let cause = if all.contains("refused") {
            "nothing is listening there".to_owned()
        } else if all.contains("dns") || all.contains("lookup") || all.contains("resolve") {
            "its name is not known".to_owned()
        } else if error.is_timeout() || all.contains("timed out") || all.contains("deadline") {
            "it does not answer in time".to_owned()
        } else if last.is_empty() {
            "the connection failed".to_owned()
        } else {
            last
        };
        return ProviderError::new(
            ModelErrorKind::Unreachable,
            format!("{host} cannot be reached: {cause}. {}.", connection_advice(endpoint)),
        );
    }
    if error.is_builder() {
        let why =
            format!("can't build the request to {host}: its address or key contains characters that aren't allowed");
        return ProviderError::new(ModelErrorKind::Refused, format!("{why}."));
    }
    ProviderError::new(
        ModelErrorKind::Cut,
        format!("{host} stopped in the middle of its answer ({last}). Ask again, or continue from the partial answer."),
    )
}

/// Converts an error of `genai`.
pub(crate) fn genai_error(
    endpoint: &ModelEndpoint,
    host: &str,
    key: Option<&ApiKey>,
    limits: &ProviderTimeouts,
    error: &genai::Error,
) -> ProviderError {
    let garbled = |what: &str| unreadable_error(endpoint, host, what);
    match error {
        genai::Error::WebStream { error, cause, .. } => {
            if let Some(genai::Error::HttpError { status: code, body, headers, .. }) = error.downcast_ref() {
                return status_error(endpoint, host, key, code.as_u16(), headers, body);
            }
            if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                return network_error(endpoint, host, key, error);
            }
            match error.downcast_ref::<StreamTimeout>() {
                Some(StreamTimeout::Headers) => silence_error(endpoint, host, limits),
                Some(StreamTimeout::Read) => stall_error(host, limits),
                None if error.downcast_ref::<std::string::FromUtf8Error>().is_some() => {
                    garbled("bytes that are no UTF-8")
                }
                None => garbled(&shorten_message(cause, key)),
            }
        }
        genai::Error::HttpError { status: code, body, headers, .. } => {
            status_error(endpoint, host, key, code.as_u16(), headers, body)
        }
        // Google's responses of an unexpected shape arrive as this error, too.
        genai::Error::ChatResponse { body, .. } if find_error_message(body).is_none() => {
            garbled("JSON of another shape")
        }
        genai::Error::ChatResponse { body, .. } => stream_error(endpoint, host, key, body),
        // Failed responses arrive in this form; text that isn't JSON has another category.
        genai::Error::StreamParse { serde_error, .. }
            if serde_error.is_data() && endpoint.wire == WireProtocol::Responses =>
        {
            let said = shorten_message(&serde_error.to_string(), key);
            ProviderError::new(
                ModelErrorKind::Server,
                format!("{host} has trouble of its own ({said}). Try again later."),
            )
        }
        genai::Error::StreamParse { .. } | genai::Error::JsonValueExt(_) | genai::Error::SerdeJson(_) => {
            garbled("invalid JSON")
        }
        genai::Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(error), .. } => {
            network_error(endpoint, host, key, error)
        }
        genai::Error::WebModelCall { webc_error, .. } => match webc_error {
            genai::webc::Error::ResponseFailedStatus { status: code, body, headers } => {
                status_error(endpoint, host, key, code.as_u16(), headers, body)
            }
            _ => garbled("no JSON"),
        },
        other => ProviderError::new(
            ModelErrorKind::Refused,
            format!("{host} cannot be asked: {}.", shorten_message(&other.to_string(), key)),
        ),
    }
}

/// Returns the error of an answer that has another form than expected.
pub(crate) fn unreadable_error(endpoint: &ModelEndpoint, host: &str, what: &str) -> ProviderError {
    let wire = wire_name(endpoint.wire);
    let why = format!("{host} answers with something that cannot be read ({what}). Is its wire “{wire}”?");
    ProviderError::new(ModelErrorKind::Malformed, why)
}

/// Returns the error of an answer that exceeds a limit of size.
pub(crate) fn excess_error(host: &str, over: &str) -> ProviderError {
    ProviderError::new(ModelErrorKind::Malformed, format!("{host} sends {over}; the rest is left out."))
}

/// Returns the error of a request without any answer. It isn't tried again, because that would take as long.
pub(crate) fn silence_error(endpoint: &ModelEndpoint, host: &str, limits: &ProviderTimeouts) -> ProviderError {
    let seconds = limits.first_response_of(endpoint).as_secs_f64();
    let (setting, other) = match endpoint.local {
        true => ("first_byte_local", "restart the server"),
        false => ("first_byte", "ask another provider"),
    };
    let why = format!(
        "{host} takes the request and does not answer within {seconds} s. Raise watchdog.{setting} in config.yaml if \
         its model is slow, or {other}."
    );
    ProviderError { can_retry: false, ..ProviderError::new(ModelErrorKind::Unreachable, why) }
}

/// Returns the error of an answer that stops coming.
pub(crate) fn stall_error(host: &str, limits: &ProviderTimeouts) -> ProviderError {
    let seconds = limits.stream_idle.as_secs_f64();
    let why = format!(
        "{host} stopped sending its answer for {seconds} s, the limit watchdog.silence in config.yaml. Ask again, or \
         continue from the partial answer."
    );
    ProviderError::new(ModelErrorKind::Cut, why)
}

/// Returns the error of an answer that takes too long as a whole.
pub(crate) fn late_error(host: &str, limits: &ProviderTimeouts) -> ProviderError {
    let seconds = limits.whole_response.as_secs_f64();
    let why = format!(
        "{host} didn't finish within {seconds} s, the limit watchdog.call in config.yaml. Ask again, or continue from \
         the partial answer."
    );
    ProviderError::new(ModelErrorKind::Cut, why)
}

/// Converts an error inside a stream, or in a response with a good status.
pub(crate) fn stream_error(endpoint: &ModelEndpoint, host: &str, key: Option<&ApiKey>, body: &Value) -> ProviderError {
    let all = body.to_string().to_lowercase();
    let code =
        ["code", "status"].iter().find_map(|name| body.get(name)?.as_u64()).and_then(|code| u16::try_from(code).ok());
    let has = |names: &[&str]| names.iter().any(|name| all.contains(name));
    let code = match code.filter(|code| (400..600).contains(code)) {
        Some(code) => code,
        None if has(&["rate_limit", "too many requests", "resource_exhausted"]) => 429,
        None if has(&["overloaded", "server_error", "internal", "unavailable", "timeout"]) => 503,
        None if has(&["authentication", "invalid_api_key", "permission"]) => 401,
        None => 400,
    };
    let said = find_error_message(body).map_or_else(|| body.to_string(), str::to_owned);
    status_error(endpoint, host, key, code, &HeaderMap::new(), &said)
}

/// Returns a protocol's name in configurations.
pub fn wire_name(wire: WireProtocol) -> &'static str {
    match wire {
        WireProtocol::OpenAi => "openai",
        WireProtocol::Responses => "responses",
        WireProtocol::Anthropic => "anthropic",
        WireProtocol::Google => "google",
        WireProtocol::Ollama => "ollama",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let table: [(&'static str, &'static str, Option<u64>); 9] = [
            ("retry-after", "2", Some(2_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("retry-after-ms", "1500", Some(1_500)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e400", None),
            ("retry-after", "Sun, 99 Nov 1994 08:49:37 GMT", None),
        ];
        for (name, value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_millis), "{name}: {value}");
        }
    }

    #[test]
    fn no_part_of_a_key_is_shown() {
        let key = ApiKey("sk-planted-0123456789".to_owned());
        let long = format!("{}{} and {}", "x".repeat(MAX_SHOWN_MESSAGE_CHARS - 5), key.0, key.0);
        let shown = shorten_message(&long, Some(&key));
        assert!(!shown.contains("sk-p") && shown.chars().count() <= MAX_SHOWN_MESSAGE_CHARS + 1, "{shown}");
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}
