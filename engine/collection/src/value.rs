//! Values of a collection's expressions: numbers, text, dates, time spans, links, files and lists.

use super::table::CollectionCell;
use serde_json::Value;
use std::cmp::Ordering;
use store::DocId;
use text::outline::plain_value;
use text::task::CalendarDay;

/// Milliseconds in a day.
const DAY_MS: i64 = 86_400_000;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExprValue {
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    /// Local time in milliseconds since 1970, and whether the time of day is significant.
    Date(i64, bool),
    Span(TimeSpan),
    Link(LinkValue),
    /// A file and its path.
    File(DocId, String),
    List(Vec<ExprValue>),
    Object(Vec<(String, Value)>),
}

/// A link in a property.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkValue {
    /// Link target as written, without brackets.
    pub(super) target: String,
    /// The link's text, if it has one.
    pub(super) words: Option<String>,
    /// The linked file, if it exists.
    pub(super) to: Option<DocId>,
}

/// A time span in months and milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TimeSpan {
    pub(super) months: i64,
    pub(super) ms: i64,
}

impl TimeSpan {
    /// Returns the approximate length in milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "spans of people")]
    pub(super) fn approximate_ms(self) -> f64 {
        self.months as f64 * 30.436_875 * DAY_MS as f64 + self.ms as f64
    }

    /// Parses a time span such as `60d`, `2 weeks` or `1d 12h`.
    pub(super) fn parse(text: &str) -> Option<TimeSpan> {
        let mut span = TimeSpan::default();
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let (sign, unsigned) = rest.strip_prefix('-').map_or((1, rest), |rest| (-1, rest));
            let digits = unsigned.find(|letter: char| !letter.is_ascii_digit())?;
            let count: i64 = unsigned[..digits].parse::<i64>().ok()? * sign;
            let behind = unsigned[digits..].trim_start();
            let end = behind.find(|letter: char| !letter.is_alphabetic()).unwrap_or(behind.len());
            let (months, ms) = match &behind[..end] {
                "s" | "second" | "seconds" => (0, 1_000),
                "m" | "minute" | "minutes" => (0, 60_000),
                "h" | "hour" | "hours" => (0, 3_600_000),
                "d" | "day" | "days" => (0, DAY_MS),
                "w" | "week" | "weeks" => (0, 7 * DAY_MS),
                "M" | "month" | "months" => (1, 0),
                "y" | "year" | "years" => (12, 0),
                _ => return None,
            };
            span.months = span.months.checked_add(count.checked_mul(months)?)?;
            span.ms = span.ms.checked_add(count.checked_mul(ms)?)?;
            rest = behind[end..].trim_start_matches([' ', ',']);
        }
        Some(span)
    }
}

/// Parses a date such as `2026-11-22`, `2026-11-22T14:30` or `2026-11-22 14:30:05` that makes up the whole text.
pub(super) fn parse_date(text: &str) -> Option<(i64, bool)> {
    let text = text.trim();
    let day = CalendarDay::parse(text)?;
    let start = day.0.checked_mul(DAY_MS)?;
    let rest = text.get(10..)?;
    if rest.is_empty() {
        return Some((start, false));
    }
    let time = rest.strip_prefix(['T', ' '])?;
    let (time, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, ""),
    };
    if !zone.is_empty() && !zone[1..].chars().all(|letter| letter.is_ascii_digit() || letter == ':') {
        return None;
    }
    let mut parts = time.split(':');
    let mut part = |limit: i64| -> Option<i64> {
        let number: i64 = parts.next()?.get(..2)?.parse().ok()?;
        (0..limit).contains(&number).then_some(number)
    };
    let (hours, minutes) = (part(24)?, part(60)?);
    let seconds = part(60).unwrap_or(0);
    Some((start + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000, true))
}

/// Returns the calendar day of a date.
pub(super) fn day_of(ms: i64) -> CalendarDay {
    CalendarDay(ms.div_euclid(DAY_MS))
}

/// Formats a date for display.
pub(super) fn date_text(ms: i64, timed: bool) -> String {
    let minutes = ms.rem_euclid(DAY_MS) / 60_000;
    match timed {
        true => format!("{} {:02}:{:02}", day_of(ms), minutes / 60, minutes % 60),
        false => day_of(ms).to_string(),
    }
}

/// Adds a time span to a date, or subtracts it if `sign` is -1. Returns `None` on overflow.
pub(super) fn add_span(ms: i64, span: TimeSpan, sign: i64) -> Option<i64> {
    let months = span.months.checked_mul(sign)?;
    // Rejects more than 10,000 years (120,000 months): no real date needs a year with more than four digits.
    let start = if months.abs() > 120_000 { return None } else { day_of(ms).add_months(months) };
    start.0.checked_mul(DAY_MS)?.checked_add(ms.rem_euclid(DAY_MS))?.checked_add(span.ms.checked_mul(sign)?)
}

impl ExprValue {
    /// Converts a property's value; `resolve` returns the file that a link leads to.
    pub(super) fn from_property(value: &Value, resolve: &dyn Fn(&str) -> Option<DocId>) -> ExprValue {
        match value {
            Value::Null => ExprValue::Nothing,
            Value::Bool(value) => ExprValue::Bool(*value),
            Value::Number(number) => number.as_f64().map_or(ExprValue::Nothing, ExprValue::Number),
            Value::String(text) => match text.trim().strip_prefix("[[").and_then(|text| text.strip_suffix("]]")) {
                Some(link) if !link.contains("[[") => ExprValue::Link(LinkValue::parse(link, resolve)),
                Some(_) | None => match parse_date(text) {
                    Some((ms, timed)) => ExprValue::Date(ms, timed),
                    None => ExprValue::Text(text.clone()),
                },
            },
            Value::Array(items) => {
                ExprValue::List(items.iter().map(|item| ExprValue::from_property(item, resolve)).collect())
            }
            Value::Object(entries) => {
                ExprValue::Object(entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
            }
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            ExprValue::Nothing => false,
            ExprValue::Bool(value) => *value,
            ExprValue::Number(number) => *number != 0.0,
            ExprValue::Text(text) => !text.is_empty(),
            ExprValue::Date(..) | ExprValue::Span(_) | ExprValue::Link(_) | ExprValue::File(..) => true,
            ExprValue::List(items) => !items.is_empty(),
            ExprValue::Object(entries) => !entries.is_empty(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            ExprValue::Nothing => true,
            ExprValue::Text(text) => text.is_empty(),
            ExprValue::List(items) => items.iter().all(ExprValue::is_empty),
            ExprValue::Object(entries) => entries.is_empty(),
            ExprValue::Bool(_) | ExprValue::Number(_) | ExprValue::Date(..) | ExprValue::Span(_) => false,
            ExprValue::Link(link) => link.target.is_empty(),
            ExprValue::File(..) => false,
        }
    }

    /// Returns the value as shown in a cell.
    pub(super) fn to_text(&self) -> String {
        match self {
            ExprValue::Nothing => String::new(),
            ExprValue::Bool(value) => value.to_string(),
            ExprValue::Number(number) => number.to_string(),
            ExprValue::Text(text) => text.clone(),
            ExprValue::Date(ms, timed) => date_text(*ms, *timed),
            ExprValue::Span(span) => span_text(*span),
            ExprValue::Link(link) => link.label().to_owned(),
            ExprValue::File(_, path) => note_name(path).to_owned(),
            ExprValue::List(items) => items.iter().map(ExprValue::to_text).collect::<Vec<_>>().join(", "),
            ExprValue::Object(entries) => {
                let entry = |(key, value): &(String, Value)| format!("{key}: {}", plain_value(value));
                entries.iter().map(entry).collect::<Vec<_>>().join(", ")
            }
        }
    }

    pub(super) fn to_cell(&self) -> CollectionCell {
        match self {
            ExprValue::Nothing => CollectionCell::Empty,
            ExprValue::Bool(value) => CollectionCell::Check(*value),
            ExprValue::Number(number) => CollectionCell::Number(*number),
            ExprValue::Text(text) if text.starts_with("https://") || text.starts_with("http://") => {
                CollectionCell::Link { words: text.clone(), target: text.clone(), to: None }
            }
            ExprValue::Text(text) => match text.strip_prefix('[').and_then(|text| text.strip_suffix(')')) {
                Some(inner) => match inner.split_once("](") {
                    Some((words, target)) => {
                        CollectionCell::Link { words: words.to_owned(), target: target.to_owned(), to: None }
                    }
                    None => CollectionCell::Text(text.clone()),
                },
                None if text.is_empty() => CollectionCell::Empty,
                None => CollectionCell::Text(text.clone()),
            },
            ExprValue::Date(ms, timed) => CollectionCell::Date(date_text(*ms, *timed)),
            ExprValue::Link(link) => {
                CollectionCell::Link { words: link.label().to_owned(), target: link.target.clone(), to: link.to }
            }
            ExprValue::File(file, path) => {
                CollectionCell::Link { words: note_name(path).to_owned(), target: path.clone(), to: Some(*file) }
            }
            ExprValue::List(items) => {
                CollectionCell::List(items.iter().filter(|item| !item.is_empty()).map(ExprValue::to_cell).collect())
            }
            ExprValue::Span(_) | ExprValue::Object(_) => CollectionCell::Text(self.to_text()),
        }
    }

    /// Returns the value as a number, if it has one.
    #[allow(clippy::cast_precision_loss, reason = "times of people")]
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            ExprValue::Number(number) => Some(*number),
            ExprValue::Bool(value) => Some(f64::from(u8::from(*value))),
            ExprValue::Date(ms, _) => Some(*ms as f64),
            ExprValue::Span(span) => Some(span.approximate_ms()),
            ExprValue::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    pub(super) fn into_items(self) -> Vec<ExprValue> {
        match self {
            ExprValue::Nothing => Vec::new(),
            ExprValue::List(items) => items,
            one => vec![one],
        }
    }

    /// Returns the key by which the value is sorted.
    pub(super) fn sort_key(&self) -> SortKey {
        match self {
            worth if worth.is_empty() => SortKey::Nothing,
            ExprValue::Bool(value) => SortKey::Number(0, f64::from(u8::from(*value))),
            ExprValue::Number(number) => SortKey::Number(1, *number),
            ExprValue::Date(..) => SortKey::Number(2, self.as_number().unwrap_or(0.0)),
            ExprValue::Span(span) => SortKey::Number(3, span.approximate_ms()),
            ExprValue::List(items) if items.len() == 1 => items.first().map_or(SortKey::Nothing, ExprValue::sort_key),
            other => SortKey::Text(other.to_text().to_lowercase()),
        }
    }
}

impl LinkValue {
    /// Parses the text between a wiki link's brackets.
    pub(super) fn parse(text: &str, resolve: &dyn Fn(&str) -> Option<DocId>) -> LinkValue {
        let (target, words) = match text.split_once('|') {
            Some((target, words)) => (target, Some(words.to_owned()).filter(|words| !words.is_empty())),
            None => (text, None),
        };
        let path = target.split('#').next().unwrap_or(target);
        let to = if path.is_empty() { None } else { resolve(path) };
        LinkValue { target: target.to_owned(), words, to }
    }

    pub(super) fn label(&self) -> &str {
        let path = self.target.split('#').next().unwrap_or(&self.target);
        self.words.as_deref().unwrap_or_else(|| note_name(path))
    }
}

/// Returns a file's name without folders and `.md`.
pub(super) fn note_name(path: &str) -> &str {
    text::links::without_md_extension(path.rsplit('/').next().unwrap_or(path))
}

fn span_text(span: TimeSpan) -> String {
    let (mut parts, mut ms) = (Vec::new(), span.ms.abs());
    let sign = if span.ms < 0 || span.months < 0 { "-" } else { "" };
    let mut part = |count: i64, one: &str| {
        if count > 0 {
            parts.push(format!("{count} {one}{}", if count == 1 { "" } else { "s" }));
        }
    };
    part(span.months.abs() / 12, "year");
    part(span.months.abs() % 12, "month");
    for (unit, one) in [(DAY_MS, "day"), (3_600_000, "hour"), (60_000, "minute")] {
        part(ms / unit, one);
        ms %= unit;
    }
    if parts.is_empty() { "0 minutes".to_owned() } else { format!("{sign}{}", parts.join(" ")) }
}

/// Sort key of a value. It's a total order, even across kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SortKey {
    Number(u8, f64),
    Text(String),
    Nothing,
}

impl SortKey {
    /// Compares two keys; empty values sort last in either direction.
    pub(super) fn compare(&self, other: &SortKey, down: bool) -> Ordering {
        let order = match (self, other) {
            (SortKey::Nothing, SortKey::Nothing) => return Ordering::Equal,
            (SortKey::Nothing, _) => return Ordering::Greater,
            (_, SortKey::Nothing) => return Ordering::Less,
            (SortKey::Number(kind, one), SortKey::Number(other_kind, other)) => {
                kind.cmp(other_kind).then_with(|| one.total_cmp(other))
            }
            (SortKey::Text(one), SortKey::Text(other)) => natural_order(one, other),
            (SortKey::Number(..), SortKey::Text(_)) => Ordering::Less,
            (SortKey::Text(_), SortKey::Number(..)) => Ordering::Greater,
        };
        if down { order.reverse() } else { order }
    }
}

/// Compares text in natural order: digits in it compare as numbers.
fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let (Some(a), Some(b)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then_with(|| one.cmp(other));
        };
        if a.is_ascii_digit() && b.is_ascii_digit() {
            let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            let (to_left, to_right) = (digits(left), digits(right));
            let (first, second) = (left[..to_left].trim_start_matches('0'), right[..to_right].trim_start_matches('0'));
            let order = first.len().cmp(&second.len()).then_with(|| first.cmp(second));
            if order.is_ne() {
                return order;
            }
            (left, right) = (&left[to_left..], &right[to_right..]);
        } else if a == b {
            (left, right) = (&left[a.len_utf8()..], &right[b.len_utf8()..]);
        } else {
            return a.cmp(&b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        let shown = |text: &str| parse_date(text).map(|(ms, timed)| date_text(ms, timed));
        assert_eq!(shown("2026-11-22").as_deref(), Some("2026-11-22"));
        assert_eq!(shown("2026-11-22T14:05:09").as_deref(), Some("2026-11-22 14:05"));
        assert_eq!(shown("2026-11-22 14:05Z").as_deref(), Some("2026-11-22 14:05"));
        for no in ["2026-11-22 words", "2026-13-01", "12:30", "2026-11-22T25:00", "", "é026-11-22"] {
            assert_eq!(shown(no), None, "{no}");
        }
        assert_eq!(TimeSpan::parse("60d"), Some(TimeSpan { months: 0, ms: 60 * DAY_MS }));
        assert_eq!(TimeSpan::parse("1y 2 weeks"), Some(TimeSpan { months: 12, ms: 14 * DAY_MS }));
        assert_eq!(
            (TimeSpan::parse("x"), TimeSpan::parse("3"), TimeSpan::parse("9999999999999999999d")),
            (None, None, None)
        );
        let start = parse_date("2024-01-31").expect("a date").0;
        assert_eq!(
            add_span(start, TimeSpan { months: 1, ms: 0 }, 1).map(|ms| date_text(ms, false)).as_deref(),
            Some("2024-02-29")
        );
        assert_eq!(
            add_span(start, TimeSpan { months: 0, ms: DAY_MS }, -1).map(|ms| date_text(ms, false)).as_deref(),
            Some("2024-01-30")
        );
        assert_eq!(add_span(start, TimeSpan { months: i64::MAX, ms: 0 }, 1), None);
        assert_eq!(span_text(TimeSpan { months: 13, ms: DAY_MS + 60_000 }), "1 year 1 month 1 day 1 minute");
    }

    #[test]
    fn keys_have_one_order() {
        let keys = ["a2", "a10", "b", ""].map(|text| ExprValue::Text(text.to_owned()).sort_key());
        let mut all = vec![SortKey::Number(1, 3.0), SortKey::Number(1, -2.0)];
        all.extend(keys);
        all.sort_by(|one, other| one.compare(other, false));
        let texts = ["a2", "a10", "b"].map(|text| SortKey::Text(text.to_owned()));
        let [a, b, c] = texts;
        assert_eq!(all, [SortKey::Number(1, -2.0), SortKey::Number(1, 3.0), a, b, c, SortKey::Nothing]);
        assert_eq!(SortKey::Nothing.compare(&SortKey::Number(1, 0.0), true), Ordering::Greater, "nothing comes last");
    }
}
