//! Templates: texts with slots such as `{month1}` or `{month1:words}`. Values of the goal and of earlier results are
//! replaced by slots when a trace is learned, and filled in again when it's replayed.

use super::goal::{MONTH_NAMES, SlotKind};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Key of an object that is the slot of a number from the goal.
const NUMBER_SLOT_KEY: &str = "$slot";
/// Form of a number that is written with a decimal point even if it's whole: 450.0 for 450.
const DECIMAL_FORM: &str = "decimal";
/// Maximum number of a result's lines that later steps can refer to.
const MAX_NAMED_RESULT_LINES: usize = 40;
/// Labels of rows that sum up the others, in lower case. What such a row means doesn't depend on the others.
const SUMMARY_LABELS: [&str; 9] =
    ["average", "count", "maximum", "mean", "median", "minimum", "subtotal", "sum", "total"];
/// Maximum number of a result's rows that sum up the others, to which later steps can refer.
const MAX_SUMMARY_ROWS: usize = 20;
/// Maximum length of a result in bytes that is parsed as JSON.
const MAX_JSON_RESULT_BYTES: usize = 64 << 10;
/// Maximum number of a JSON result's values that later steps can refer to.
const MAX_JSON_VALUES: usize = 200;

/// Values with their kinds, by slot name.
pub type SlotValues = BTreeMap<String, (SlotKind, String)>;

/// Why a template can't be read or filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `{` has no `}`.
    #[error("a {{ has no }}; a bracket of its own is written {{{{")]
    UnclosedBracket,
    /// A `}` has no `{`.
    #[error("a }} has no {{; a bracket of its own is written }}}}")]
    UnopenedBracket,
    /// The value of a slot can't be written in the requested form.
    #[error("{{{place}}}: {kind} has no such form")]
    UnknownForm {
        /// The placeholder: slot and form.
        place: String,
        /// The kind of value in the slot.
        kind: &'static str,
    },
    /// A placeholder names neither a slot nor a result.
    #[error("nothing is known of {{{place}}}")]
    UnknownPlace {
        /// The placeholder.
        place: String,
    },
    /// A result has several values for a placeholder.
    #[error("the result of step {step} says twice what {{{place}}} is")]
    Ambiguous {
        /// Number of the step, from 1.
        step: usize,
        /// The placeholder.
        place: String,
    },
    /// A result has no value for a placeholder.
    #[error("the result of step {step} does not say what {{{place}}} is")]
    NotInResult {
        /// Number of the step, from 1.
        step: usize,
        /// The placeholder.
        place: String,
    },
    /// The arguments are nested too deeply.
    #[error("arguments are nested too deep")]
    NestedTooDeep,
    /// The slot of a number has a value that isn't a number.
    #[error("{text} isn't a number")]
    NotNumber {
        /// The slot's value.
        text: String,
    },
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    /// Text that stays the same in each replay.
    Literal(String),
    /// A placeholder: a slot's name with the form of the value, or a reference to a step's result.
    Place(String),
}

/// Returns the ways to write a value: the name of each form and the text, plainest first.
pub(super) fn value_renderings(kind: SlotKind, text: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![("", text.to_owned())];
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<usize>().ok());
    let month = number(5, 7).and_then(|month| MONTH_NAMES.get(month.checked_sub(1)?)).copied();
    let (year, two) = (text.get(..4).unwrap_or(""), text.get(5..7).unwrap_or(""));
    match kind {
        SlotKind::Date => {
            let (Some(month), Some(day)) = (month, number(8, 10)) else { return all };
            all.push(("compact", text.replace('-', "")));
            all.push(("slashes", text.replace('-', "/")));
            all.push(("low", text.replace('-', "_")));
            all.push(("dots", format!("{day:02}.{two}.{year}")));
            all.push(("words", format!("{month} {day}, {year}")));
            all.push(("british", format!("{day} {month} {year}")));
            all.push(("month", format!("{year}-{two}")));
            all.push(("monthwords", format!("{month} {year}")));
        }
        SlotKind::Month => {
            let Some(month) = month else { return all };
            all.push(("low", text.replace('-', "_")));
            all.push(("slashes", text.replace('-', "/")));
            all.push(("compact", text.replace('-', "")));
            all.push(("words", format!("{month} {year}")));
            all.push(("short", format!("{} {year}", &month[..3])));
            all.push(("slug", format!("{}-{year}", month.to_lowercase())));
        }
        SlotKind::Path => {
            let name = text.rsplit('/').next().unwrap_or(text);
            all.push(("name", name.to_owned()));
            all.push(("stem", name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()));
        }
        SlotKind::Name | SlotKind::Text => {
            all.push(("lower", text.to_lowercase()));
            all.push(("upper", text.to_uppercase()));
            all.push(("slug", text.to_lowercase().replace(' ', "-")));
            all.push(("low", text.to_lowercase().replace(' ', "_")));
        }
        SlotKind::Number | SlotKind::Url => {}
    }
    all
}

/// Returns the parts of a value that mustn't remain in a text after extraction. If one does, the text contains the
/// value in an unknown form, which wouldn't be replaced.
pub(super) fn value_remnants(kind: SlotKind, text: &str) -> Vec<String> {
    let mut all: Vec<String> = value_renderings(kind, text).into_iter().map(|(_, text)| text.to_lowercase()).collect();
    if matches!(kind, SlotKind::Date | SlotKind::Month) {
        let month = text.get(5..7).and_then(|part| part.parse::<usize>().ok());
        if let Some(month) = month.and_then(|month| MONTH_NAMES.get(month.checked_sub(1)?)) {
            all.push(month.to_lowercase());
            all.push(month[..3].to_lowercase());
        }
        all.extend(text.get(..4).map(str::to_owned));
        all.extend(text.get(2..).map(str::to_owned));
    }
    all
}

/// Returns whether one of the lines is the number of a date's day or month: an argument that no slot fills.
pub(super) fn contains_date_number(kind: SlotKind, value: &str, lines: &str) -> bool {
    let parts: Vec<u32> = match kind {
        SlotKind::Date | SlotKind::Month => value.split('-').skip(1).filter_map(|part| part.parse().ok()).collect(),
        SlotKind::Number | SlotKind::Path | SlotKind::Url | SlotKind::Name | SlotKind::Text => Vec::new(),
    };
    lines.lines().any(|line| line.trim().parse::<u32>().is_ok_and(|number| parts.contains(&number)))
}

/// Values of at most this many bytes are extracted only if they're the whole text. In a longer one, they may be there
/// by chance.
const MAX_STANDALONE_VALUE_BYTES: usize = 2;

/// Returns the placeholder of each form of a slot's value, with the text it stands for.
pub(super) fn written_forms(name: &str, kind: SlotKind, value: &str) -> Vec<(String, String)> {
    let mut written: Vec<(String, String)> = Vec::new();
    for (form, text) in value_renderings(kind, value) {
        if text.len() > MAX_STANDALONE_VALUE_BYTES && written.iter().all(|(_, known)| *known != text) {
            written.push((if form.is_empty() { name.to_owned() } else { format!("{name}:{form}") }, text));
        }
    }
    written
}

/// Returns a result with the values of the slots replaced by placeholders: what it says, whatever the values are.
pub fn result_template(result: &str, values: &SlotValues) -> String {
    let known: Vec<(String, String)> =
        values.iter().flat_map(|(name, (kind, value))| written_forms(name, *kind, value)).collect();
    render_template(&extract_values(vec![TemplatePart::Literal(result.to_owned())], &known))
}

/// Finds `needle` in `text` as a whole word, starting at byte `from`.
pub(super) fn find_word(text: &str, needle: &str, from: usize) -> Option<usize> {
    let (first, last) = (needle.chars().next()?, needle.chars().next_back()?);
    let mut at = from;
    while let Some(found) = text.get(at..)?.find(needle).map(|found| found + at) {
        let before = text[..found].chars().next_back();
        let behind = text[found + needle.len()..].chars().next();
        let joined = |one: Option<char>, other: char| one.is_some_and(char::is_alphanumeric) && other.is_alphanumeric();
        // "12" must not match in "12.5".
        let digits = last.is_ascii_digit() && behind == Some('.') && {
            text[found + needle.len() + 1..].starts_with(|c: char| c.is_ascii_digit())
        };
        if !joined(before, first) && !joined(behind, last) && !digits {
            return Some(found);
        }
        at = found + first.len_utf8();
    }
    None
}

/// Returns whether `text` contains `needle` as a whole word, ignoring the case of `text`.
pub(super) fn contains_word(text: &str, needle: &str) -> bool {
    find_word(&text.to_lowercase(), needle, 0).is_some()
}

/// Replaces known values in a text by slots. `known` contains pairs of a placeholder and the text it replaces.
pub(super) fn extract_values(parts: Vec<TemplatePart>, known: &[(String, String)]) -> Vec<TemplatePart> {
    let mut parts = parts;
    // Longest first, so that a path is replaced before the name in it.
    let mut order: Vec<&(String, String)> = known.iter().filter(|(_, text)| !text.is_empty()).collect();
    order.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    for (place, text) in order {
        let mut next = Vec::new();
        for part in parts {
            let TemplatePart::Literal(literal) = part else {
                next.push(part);
                continue;
            };
            let mut from = 0;
            while let Some(at) = find_word(&literal, text, from) {
                if at > from {
                    next.push(TemplatePart::Literal(literal[from..at].to_owned()));
                }
                next.push(TemplatePart::Place(place.clone()));
                from = at + text.len();
            }
            if from < literal.len() {
                next.push(TemplatePart::Literal(literal[from..].to_owned()));
            }
        }
        parts = next;
    }
    parts
}

/// Writes parts as a template.
pub(super) fn render_template(parts: &[TemplatePart]) -> String {
    let one = |part: &TemplatePart| match part {
        TemplatePart::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
        TemplatePart::Place(name) => format!("{{{name}}}"),
    };
    parts.iter().map(one).collect()
}

/// Parses a template into parts.
///
/// # Errors
/// Returns an error if a bracket has no counterpart.
pub(super) fn parse_template(template: &str) -> Result<Vec<TemplatePart>, TemplateError> {
    let mut all = Vec::new();
    let mut literal = String::new();
    let mut rest = template;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '{' | '}' if rest.starts_with(letter) => {
                literal.push(letter);
                rest = &rest[1..];
            }
            '{' => {
                let (name, behind) = rest.split_once('}').ok_or(TemplateError::UnclosedBracket)?;
                if !literal.is_empty() {
                    all.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                }
                all.push(TemplatePart::Place(name.to_owned()));
                rest = behind;
            }
            '}' => return Err(TemplateError::UnopenedBracket),
            other => literal.push(other),
        }
    }
    if !literal.is_empty() {
        all.push(TemplatePart::Literal(literal));
    }
    Ok(all)
}

/// Returns the values in a step's result with the names by which later steps refer to them: the whole result, the
/// values of its JSON keys, its lines, and the text after each key.
pub(super) fn named_results(step: usize, result: &str) -> Vec<(String, String)> {
    let result = result.trim();
    let mut all = Vec::new();
    if result.len() >= 4 {
        all.push((format!("step{step}"), result.to_owned()));
    }
    let object = json_object(result);
    let json = object.as_ref().map(|object| json_values(step, object)).unwrap_or_default();
    let is_json_key = |name: &str| json.iter().any(|(known, _)| known == name);
    for (at, line) in result.lines().enumerate().take(MAX_NAMED_RESULT_LINES) {
        let line = line.trim();
        if let Some((key, value)) = line.split_once([':', '=']) {
            let (key, value) = (key.trim().trim_matches(['"', '-', '*', ' ']), value.trim().trim_matches([',', '"']));
            let name = format!("step{step}.{key}");
            if is_plain_key(key) && is_distinctive(value) && !is_json_key(&name) {
                all.push((name, value.to_owned()));
            }
        }
        if line.len() >= 6 && line != result {
            all.push((format!("step{step}.line{}", at + 1), line.to_owned()));
        }
    }
    for (label, value) in
        result.lines().filter(|line| !line.contains([':', '='])).filter_map(summary_row).take(MAX_SUMMARY_ROWS)
    {
        // Where the value is twice, another row may be meant.
        if is_distinctive(value) && is_once(result, value) {
            all.push((format!("step{step}.{label}"), value.to_owned()));
        }
    }
    if is_distinctive(result) && result.len() < 4 {
        all.push((format!("step{step}"), result.to_owned()));
    }
    // Of two places with the same value it's unknown which one is meant, and ordinary words may be there by chance.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    object.iter().flat_map(Map::values).for_each(|value| count_json_values(value, &mut counts));
    let is_only = counts.values().sum::<usize>() == 1;
    let is_telling = |text: &str| is_identifier(text) || (is_only && text.len() >= 3 && is_code_word(text));
    all.extend(json.into_iter().filter(|(_, text)| is_telling(text) && counts.get(text) == Some(&1)));
    all
}

/// Returns the label and the number of a row that sums up others: `total,1140`, `| Total | 1140 |` or `Total: 1140`.
pub(super) fn summary_row(line: &str) -> Option<(&str, &str)> {
    fn plain(cell: &str) -> &str {
        cell.trim().trim_matches(['"', '*', ' '])
    }
    let mut cells = line.trim().trim_matches('|').split([',', ';', '\t', '|', ':', '=']).map(plain);
    let (label, value) = (cells.next()?, cells.next()?);
    let sums_up = SUMMARY_LABELS.contains(&label.to_lowercase().as_str());
    (sums_up && cells.next().is_none() && value.parse::<f64>().is_ok()).then_some((label, value))
}

/// Returns whether a text contains a word exactly once.
pub(super) fn is_once(text: &str, word: &str) -> bool {
    find_word(text, word, 0).is_some_and(|at| find_word(text, word, at + word.len()).is_none())
}

fn is_plain_key(key: &str) -> bool {
    let plain = key.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    (1..=40).contains(&key.len()) && plain
}

/// Returns the texts and numbers of a JSON object with their paths of keys: `step1.owner.id`. The elements of lists
/// have no names: a list may be in another order next time.
fn json_values(step: usize, object: &Map<String, Value>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    collect_json_values(object, &format!("step{step}"), 0, &mut all);
    all
}

/// Parses a result that is a JSON object.
fn json_object(result: &str) -> Option<Map<String, Value>> {
    let is_object = result.starts_with('{') && result.len() <= MAX_JSON_RESULT_BYTES;
    is_object.then(|| serde_json::from_str(result).ok()).flatten()
}

/// Counts how often each text and number is in a value, at any depth: `serde_json` bounds it.
fn count_json_values(value: &Value, counts: &mut BTreeMap<String, usize>) {
    let mut add = |text: String| *counts.entry(text).or_default() += 1;
    match value {
        Value::String(text) => add(text.clone()),
        Value::Number(number) => add(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| count_json_values(item, counts)),
        Value::Object(map) => map.values().for_each(|item| count_json_values(item, counts)),
        Value::Bool(_) | Value::Null => {}
    }
}

fn collect_json_values(object: &Map<String, Value>, path: &str, deep: usize, into: &mut Vec<(String, String)>) {
    for (key, value) in object.iter().filter(|(key, _)| is_plain_key(key)) {
        if into.len() >= MAX_JSON_VALUES {
            return;
        }
        let path = format!("{path}.{key}");
        match value {
            Value::String(text) => into.push((path, text.clone())),
            Value::Number(number) => into.push((path, number.to_string())),
            Value::Object(inner) if deep < 6 => collect_json_values(inner, &path, deep + 1, into),
            Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// Returns whether a text identifies something, so that it isn't the same as another text by chance: a number of at
/// least three digits that is neither round nor a year, a code such as `id-7`, an address, a file.
pub(super) fn is_identifier(text: &str) -> bool {
    if text.parse::<f64>().is_ok() {
        let plain = text.trim_start_matches(['-', '+', '0']);
        let (whole, decimals) = plain.split_once('.').unwrap_or((plain, ""));
        let decimals = decimals.trim_end_matches('0');
        let telling = if decimals.is_empty() { whole.trim_end_matches('0') } else { plain };
        let is_year = decimals.is_empty() && whole.len() == 4 && (whole.starts_with("19") || whole.starts_with("20"));
        return !is_year && telling.bytes().filter(u8::is_ascii_digit).count() >= 3;
    }
    // `in_progress`, `text/plain` and "Done." are words of many results.
    let names_file = |text: &str| {
        let is_end = |end: &str| end.starts_with(|c: char| c.is_ascii_alphanumeric());
        !text.contains(char::is_whitespace) && text.rsplit_once('.').is_some_and(|(_, end)| is_end(end))
    };
    text.len() >= 3 && (text.bytes().any(|byte| byte.is_ascii_digit()) || text.contains('@') || names_file(text))
}

/// Returns whether a text has capital letters only, such as `NVDA`: inside of a sentence it may be there by chance.
pub(super) fn is_code_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Returns whether a value is long enough to be recognized in other texts.
fn is_distinctive(value: &str) -> bool {
    value.len() >= 4 || (value.len() >= 2 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Returns the value of a placeholder.
pub(super) fn slot_value(place: &str, values: &SlotValues, results: &[String]) -> Result<String, TemplateError> {
    let (name, form) = place.split_once(':').unwrap_or((place, ""));
    if let Some((kind, text)) = values.get(name) {
        if (*kind, form) == (SlotKind::Number, DECIMAL_FORM) {
            let whole = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'));
            return Ok(if whole { format!("{text}.0") } else { text.clone() });
        }
        let found = value_renderings(*kind, text).into_iter().find(|(known, _)| *known == form);
        let unknown = || TemplateError::UnknownForm { place: place.to_owned(), kind: kind.as_str() };
        return found.map(|(_, text)| text).ok_or_else(unknown);
    }
    let step = name.split('.').next().and_then(|step| step.strip_prefix("step")?.parse::<usize>().ok());
    let result = step.and_then(|step| results.get(step.checked_sub(1)?));
    let (Some(step), Some(result)) = (step, result) else {
        return Err(TemplateError::UnknownPlace { place: place.to_owned() });
    };
    let json = json_object(result.trim()).map(|object| json_values(step, &object)).unwrap_or_default();
    if let Some((_, text)) = json.into_iter().find(|(known, _)| known == place) {
        return Ok(text);
    }
    // Any number may be in the row that sums up the others.
    let mut rows = result.lines().filter_map(summary_row).filter(|(label, _)| format!("step{step}.{label}") == place);
    if let (Some((_, value)), None) = (rows.next(), rows.next()) {
        return Ok(value.to_owned());
    }
    let mut found = named_results(step, result).into_iter().filter(|(known, _)| known == place).map(|(_, text)| text);
    match (found.next(), found.next()) {
        (Some(text), None) => Ok(text),
        (Some(_), Some(_)) => Err(TemplateError::Ambiguous { step, place: place.to_owned() }),
        (None, _) => Err(TemplateError::NotInResult { step, place: place.to_owned() }),
    }
}

/// Returns a template's text with all placeholders filled in.
///
/// # Errors
/// Returns an error if the template is malformed or a placeholder has no value.
pub fn fill_template(template: &str, values: &SlotValues, results: &[String]) -> Result<String, TemplateError> {
    let mut text = String::new();
    for part in parse_template(template)? {
        match part {
            TemplatePart::Literal(literal) => text.push_str(&literal),
            TemplatePart::Place(place) => text.push_str(&slot_value(&place, values, results)?),
        }
    }
    Ok(text)
}

/// Returns arguments with all placeholders filled in.
///
/// # Errors
/// Returns an error if a template is malformed, a placeholder has no value, or the arguments are nested too deeply.
pub fn fill_arguments(
    input: &Map<String, Value>,
    values: &SlotValues,
    results: &[String],
) -> Result<Map<String, Value>, TemplateError> {
    input.iter().map(|(key, value)| Ok((key.clone(), fill_argument(value, values, results, 0)?))).collect()
}

fn fill_argument(value: &Value, values: &SlotValues, results: &[String], deep: usize) -> Result<Value, TemplateError> {
    if deep > 32 {
        return Err(TemplateError::NestedTooDeep);
    }
    Ok(match value {
        Value::String(template) => Value::String(fill_template(template, values, results)?),
        Value::Array(items) => {
            let items: Result<_, TemplateError> =
                items.iter().map(|item| fill_argument(item, values, results, deep + 1)).collect();
            Value::Array(items?)
        }
        Value::Object(object) => {
            if let (1, Some(Value::String(slot))) = (object.len(), object.get(NUMBER_SLOT_KEY)) {
                let text = slot_value(slot, values, results)?;
                let number =
                    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
                let number = number.or_else(|| Number::from_f64(text.parse().ok()?));
                return number.map(Value::Number).ok_or(TemplateError::NotNumber { text });
            }
            let map: Result<Map<String, Value>, TemplateError> = object
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill_argument(value, values, results, deep + 1)?)))
                .collect();
            Value::Object(map?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// Returns the object that represents a number from a place: a slot, or an earlier result.
pub(super) fn number_slot_object(place: &str) -> Value {
    Value::Object(Map::from_iter([(NUMBER_SLOT_KEY.to_owned(), Value::String(place.to_owned()))]))
}

/// Returns the place of a number in an argument that was equal to a slot's value. An argument with decimals keeps them.
pub(super) fn number_place(slot: &str, number: &Number) -> String {
    if number.is_f64() { format!("{slot}:{DECIMAL_FORM}") } else { slot.to_owned() }
}

/// Returns the slot's name if a value is a number slot.
pub(super) fn number_slot(value: &Value) -> Option<&str> {
    let place = number_slot_place(value)?;
    Some(place.split_once(':').map_or(place, |(slot, _)| slot))
}

/// Returns the place of the number if a value is a number slot.
pub(super) fn number_slot_place(value: &Value) -> Option<&str> {
    value.as_object().filter(|object| object.len() == 1)?.get(NUMBER_SLOT_KEY)?.as_str()
}

/// Returns the one text for all ways to write a number, such as 25.5 for 25.50; `None` if it's no number.
pub(super) fn canonical_number(text: &str) -> Option<String> {
    if let Ok(whole) = text.parse::<i128>() {
        return Some(whole.to_string());
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_lifted_and_put_in_again() {
        let known: Vec<(String, String)> = value_renderings(SlotKind::Month, "2026-10")
            .into_iter()
            .map(|(form, text)| (if form.is_empty() { "m".to_owned() } else { format!("m:{form}") }, text))
            .collect();
        let text = "# October 2026 {x}\nsee data/2026-10.csv, 2026-101";
        let template = render_template(&extract_values(vec![TemplatePart::Literal(text.to_owned())], &known));
        assert_eq!(template, "# {m:words} {{x}}\nsee data/{m}.csv, 2026-101");
        let values = SlotValues::from([("m".to_owned(), (SlotKind::Month, "2026-11".to_owned()))]);
        let next = fill_template(&template, &values, &[]).expect("filled");
        assert_eq!(next, "# November 2026 {x}\nsee data/2026-11.csv, 2026-101");
    }

    #[test]
    fn results_are_named() {
        let results = ["total: 1234.5\nrows: 12".to_owned()];
        let known = named_results(1, &results[0]);
        let template =
            render_template(&extract_values(vec![TemplatePart::Literal("The sum is 1234.5.".to_owned())], &known));
        assert_eq!(template, "The sum is {step1.total}.");
        assert_eq!(
            fill_template(&template, &SlotValues::new(), &["total: 7.25".to_owned()]),
            Ok("The sum is 7.25.".to_owned())
        );
        assert!(fill_template(&template, &SlotValues::new(), &["sum: 7.25".to_owned()]).is_err());
        assert!(fill_template(&template, &SlotValues::new(), &["total: 71\ntotal: 72".to_owned()]).is_err());
    }

    #[test]
    fn rows_that_sum_up_others_are_named_by_their_labels() {
        let named = |result: &str| {
            let mut known = named_results(1, result);
            known.retain(|(name, _)| name.to_lowercase().ends_with(".total"));
            known
        };
        let total = |label: &str, value: &str| vec![(format!("step1.{label}"), value.to_owned())];
        assert_eq!(named("shop,sold\na,10\ntotal,517\n"), total("total", "517"));
        assert_eq!(named("| Shop | Sold |\n|---|---|\n| a | 10 |\n| **Total** | 51.5 |"), total("Total", "51.5"));
        assert_eq!(named(&format!("{}total;517", "a;1\n".repeat(100))), total("total", "517"), "far below");
        for other in ["a,517\ntotal,517", "total,5", "total,lost", "total,51,70", "kale,517"] {
            assert!(named(other).is_empty(), "{other}");
        }
        let fill = |result: &str| fill_template("{step1.total}", &SlotValues::new(), &[result.to_owned()]);
        assert_eq!(fill("shop,sold\na,7\ntotal,7"), Ok("7".to_owned()), "any number may come");
        assert!(fill("shop,sold\na,7").is_err() && fill("total,7\ntotal,8").is_err() && fill("total,lost").is_err());
    }

    #[test]
    fn values_of_json_are_named_by_their_keys() {
        let result =
            r#"{"symbol": "ID-7", "price": 220.5, "state": "open", "day": {"low": 7, "high": 220.9}, "n": [815]}"#;
        let mut known: Vec<String> = named_results(1, result).into_iter().map(|(name, _)| name).collect();
        known.sort_unstable();
        assert_eq!(known, ["step1", "step1.day.high", "step1.price", "step1.symbol"]);
        let fill = |place: &str, result: &str| {
            fill_argument(&number_slot_object(place), &SlotValues::new(), &[result.to_owned()], 0)
        };
        assert_eq!(fill("step1.price", result), Ok(serde_json::json!(220.5)));
        assert_eq!(fill("step1.price", r#"{"price": 9}"#), Ok(serde_json::json!(9)), "any number may come instead");
        assert_eq!(fill("step1.day.high", r#"{"day": {"high": 1.0}}"#), Ok(serde_json::json!(1.0)));
        assert!(fill("step1.price", r#"{"cost": 9}"#).is_err() && fill("step1.symbol", result).is_err());
        let twice = named_results(1, r#"{"from": "id-7", "to": "id-7", "by": "id-8"}"#);
        assert_eq!(twice.last().map(|(name, _)| name.as_str()), Some("step1.by"), "which id-7 is meant is unknown");
        assert!(twice.iter().all(|(_, text)| text != "id-7"));
        let listed = named_results(1, r#"{"first": "id-7", "all": ["id-7", "id-8"]}"#);
        assert_eq!(listed.len(), 1, "the first of all may be another one than the first: {listed:?}");
        let named = |result: &str| named_results(1, result).len() - 1;
        assert_eq!(named(r#"{"symbol": "NVDA"}"#), 1, "it's all that was asked for");
        assert_eq!(named(r#"{"symbol": "NVDA", "currency": "USD"}"#), 0, "USD may be there by chance");
        let common = r#"{"a": "in_progress", "b": "text/plain", "c": "Done.", "d": 1000, "e": 2026, "f": 500.0}"#;
        assert_eq!(named(common), 0);
        assert_eq!(named(r#"{"a": "b.pdf", "b": "c@d.example", "c": 1205, "d": 0.25, "e": 0.125}"#), 4);
        // A name that only JSON over several lines has stays as it was.
        let lines = named_results(2, "{\n  \"a\": {\n    \"total\": 1234\n  }\n}");
        assert!(lines.contains(&("step2.total".to_owned(), "1234".to_owned())), "{lines:?}");
    }

    #[test]
    fn numbers_of_dates_are_found() {
        let of_day = |lines: &str| contains_date_number(SlotKind::Date, "2026-10-05", lines);
        assert!(of_day("a\n5\n") && of_day("10") && of_day("05") && !of_day("6\n2027\n5 days"));
        assert!(
            contains_date_number(SlotKind::Month, "2026-10", "10") && !contains_date_number(SlotKind::Number, "5", "5")
        );
    }

    #[test]
    fn numbers_keep_their_decimals() {
        let values = |text: &str| SlotValues::from([("number1".to_owned(), (SlotKind::Number, text.to_owned()))]);
        for (learned, asked, expected) in
            [("450.0", "12", "12.0"), ("25.5", "30.25", "30.25"), ("450", "12", "12"), ("450", "12.5", "12.5")]
                .into_iter()
                .chain([("450", "12345678901234567891", "12345678901234567891")])
        {
            let number: Number = serde_json::from_str(learned).expect("a number");
            let slot = number_slot_object(&number_place("number1", &number));
            assert_eq!(number_slot(&slot), Some("number1"));
            let filled = fill_argument(&slot, &values(asked), &[], 0).expect("filled");
            assert_eq!(filled.to_string(), expected, "{learned}");
        }
        assert_eq!(canonical_number("25.50"), canonical_number("25.5"));
        assert_eq!(canonical_number("450.0"), canonical_number("450"));
        assert_eq!(canonical_number("NVDA"), None);
        assert_ne!(canonical_number("12345678901234567890"), canonical_number("12345678901234567891"));
    }

    proptest! {
        #[test]
        fn any_json_is_named(text in "[{}\\[\\]\":,a1. \n]{0,60}") {
            for (name, text_of) in named_results(1, &text) {
                let is_object = text.starts_with('{');
                prop_assert!(is_object || name.starts_with("step1") && text.contains(text_of.trim()));
            }
        }

        #[test]
        fn templates_come_back(text in "(\\PC|[{}]){0,40}") {
            let parts_of = extract_values(vec![TemplatePart::Literal(text.clone())], &[]);
            prop_assert_eq!(fill_template(&render_template(&parts_of), &SlotValues::new(), &[]), Ok(text));
        }

        #[test]
        fn any_template_is_read(text in "(\\PC|[{}]|\\{step1\\}){0,40}") {
            let _ = fill_template(&text, &SlotValues::new(), &["a: b".to_owned()]);
        }
    }
}
