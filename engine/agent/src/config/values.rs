//! Single values of the configuration, checked while parsing so that errors have line and column.

use crate::model_call::WireProtocol;
use crate::tool_spec::ToolRisk;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use std::collections::BTreeMap;

/// Options for strict YAML: `yes` isn't a boolean and `5` isn't a name.
pub(super) fn strict_yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true, no_schema: true, with_snippet: false }
}

/// Returns the parser's message on one line, without the position.
pub(super) fn error_text(why: &serde_saphyr::Error) -> String {
    let text = why.without_snippet().to_string();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    let plainer = [
        (", set DuplicateKeyPolicy in Options if acceptable", ""),
        ("duplicate mapping key: ", "duplicate name: "),
        ("expected sequence start", "expected a list"),
        ("expected mapping start", "expected names and values"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
    ];
    for (from, to) in plainer {
        text = text.replace(from, to);
    }
    // The message contains text from the file; keep it short.
    text.chars().take(400).collect()
}

/// Parses a section; an empty one has its defaults.
pub(super) fn section<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Parses a value without conversion: quoted `"true"` isn't a boolean, `"5"` isn't a number.
pub(super) fn plain<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    T::deserialize(serde_json::Value::deserialize(from)?).map_err(D::Error::custom)
}

/// Parses an amount of money in US dollars that isn't negative.
pub(super) fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let amount: f64 = plain(from)?;
    match amount.is_finite() && amount >= 0.0 {
        true => Ok(amount),
        false => Err(D::Error::custom(format!("{amount} is no amount of US dollars; it takes 0 or more"))),
    }
}

pub(super) fn dollars<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let Some(amount) = plain::<D, Option<f64>>(from)? else { return Ok(None) };
    match amount.is_finite() && amount >= 0.0 {
        true => Ok(Some(amount)),
        false => Err(D::Error::custom(format!("{amount} is no amount of US dollars; it takes 0 or more, or null"))),
    }
}

pub(super) fn temperature<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let Some(value) = plain::<D, Option<f64>>(from)? else { return Ok(None) };
    match (0.0..=2.0).contains(&value) {
        true => Ok(Some(value)),
        false => Err(D::Error::custom(format!("{value} is no temperature; it takes 0 to 2, or null"))),
    }
}

/// Parses a limit of tokens, at least 1.
pub(super) fn tokens<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match plain::<D, Option<u32>>(from)? {
        Some(0) => Err(D::Error::custom("no answer fits into 0 tokens; it takes 1 or more, or null")),
        limit => Ok(limit),
    }
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value: u64 = plain(from)?;
    match (1..=604_800).contains(&value) {
        true => Ok(value),
        false => Err(D::Error::custom(format!("{value} seconds is too little or too much; it takes 1 to 604800"))),
    }
}

/// Parses a share from 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value: f64 = plain(from)?;
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(D::Error::custom(format!("{value} is no share; it takes 0 to 1, such as 0.9"))),
    }
}

/// Shortest time limit in milliseconds.
const MIN_TIME_LIMIT_MS: f64 = 1_000.0;
/// Longest time limit in milliseconds: a day.
const MAX_TIME_LIMIT_MS: f64 = 86_400_000.0;

/// Parses a time limit such as `90 s`, `3 min` or `1 h`. Returns milliseconds.
pub(super) fn time_limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(text) = plain::<D, Option<serde_json::Value>>(from)? else { return Ok(None) };
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    let digits = text.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.trim()[digits.len()..].trim() {
        "s" => Some(1_000.0),
        "min" => Some(60_000.0),
        "h" => Some(3_600_000.0),
        _ => None,
    };
    let milliseconds = digits.trim().parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit);
    match milliseconds.filter(|limit| (MIN_TIME_LIMIT_MS..=MAX_TIME_LIMIT_MS).contains(limit)) {
        // The range fits, and parts of a millisecond don't matter.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked against the range above")]
        Some(limit) => Ok(Some(limit as u64)),
        None => {
            let shown: String = text.chars().take(40).collect();
            Err(D::Error::custom(format!(
                "“{shown}” is no time limit; it takes a number with s, min or h, from 1 s to 24 h, such as 3 min"
            )))
        }
    }
}

/// Parses the risk below which no approval is needed. High and critical are rejected: what leaves the sandbox must
/// always be able to ask.
pub(super) fn level<'de, D: Deserializer<'de>>(from: D) -> Result<ToolRisk, D::Error> {
    match ToolRisk::deserialize(from)? {
        level @ (ToolRisk::None | ToolRisk::Low | ToolRisk::Medium) => Ok(level),
        ToolRisk::High | ToolRisk::Critical => Err(D::Error::custom("auto_approve_level takes none, low or medium")),
    }
}

/// Parses `${NAME}` and returns `NAME`.
pub(super) fn key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    // The value may be a key, so the message doesn't repeat it.
    placeholder_name(&text).map(|name| Some(name.to_owned())).ok_or_else(|| {
        D::Error::custom(
            "a key does not belong in a file; write ${NAME} and keep the key in the environment variable NAME or by \
             `tracebook secrets set NAME`",
        )
    })
}

/// Returns the name in `${NAME}`; `None` if the text has another form.
fn placeholder_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let fits = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') && !name.is_empty();
    (fits && name.len() <= 128).then_some(name)
}

/// Parses environment variables or HTTP headers. Those with a secret-sounding name must use `${NAME}` as the value.
pub(super) fn hidden<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, String>>::deserialize(from)?.unwrap_or_default();
    for (name, value) in &map {
        let low = name.to_lowercase();
        let secret = ["key", "token", "secret", "password", "authorization", "cookie"];
        if secret.iter().any(|word| low.contains(word)) && !value.contains("${") {
            return Err(D::Error::custom(format!(
                "the value of {name} does not belong in a file; write ${{NAME}} and keep it in the environment \
                 variable NAME or by `tracebook secrets set NAME`"
            )));
        }
    }
    Ok(map)
}

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    match host(&text) {
        Some(host) if host.contains('@') => {
            Err(D::Error::custom("an address holds no user and no password; a key is named by api_key"))
        }
        Some(_) if text.len() <= 2_000 && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) => {
            Ok(Some(text))
        }
        _ => Err(D::Error::custom("this is no address; it begins with http:// or https:// and names a host")),
    }
}

/// Parses the address of a webhook: https, or http on this machine. An empty text means none.
pub(super) fn webhook<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    // The address may hold a token, so the message doesn't repeat it.
    let Ok(address) = crate::web_address::WebAddress::read(&text) else {
        return Err(D::Error::custom("this is no address; a webhook begins with https:// and names a host"));
    };
    let is_here = address.ip.is_some_and(|ip| ip.is_loopback());
    match address.site.scheme == "https" || is_here {
        true => Ok(Some(text)),
        false => {
            Err(D::Error::custom("a webhook takes https; http only for this machine, such as http://127.0.0.1:8080"))
        }
    }
}

/// Returns the host and port of an HTTP address.
fn host(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"))?;
    let host = rest.split(['/', '?', '#']).next()?;
    (!host.is_empty()).then_some(host)
}

/// Returns whether an address is on this machine.
pub fn is_local(address: &str) -> bool {
    let Some(host) = host(address) else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || matches!(name, "::1" | "::" | "0.0.0.0")
        || (name.starts_with("127.")
            && name.split('.').count() == 4
            && name.split('.').all(|part| part.parse::<u8>().is_ok()))
}

/// Returns the default API protocol of a provider, by its name.
pub(super) fn default_wire_protocol(name: &str) -> WireProtocol {
    match name {
        "ollama" => WireProtocol::Ollama,
        "anthropic" => WireProtocol::Anthropic,
        "google" | "gemini" => WireProtocol::Google,
        "openai" => WireProtocol::Responses,
        _ => WireProtocol::OpenAi,
    }
}
