//! Deadlines of runs: a moment, or a time after the beginning. At its deadline a run ends, whatever it's doing.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use text::task::CalendarDay;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Maximum time after the beginning: a year.
const MAX_AFTER_MS: i64 = 366 * DAY_MS;
/// Maximum number of characters of a refused text that are repeated.
const MAX_SHOWN_CHARS: usize = 40;

/// When a run ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// This many milliseconds after it begins.
    After(i64),
    /// At this time, in milliseconds since 1970.
    At(i64),
}

/// A text that is no deadline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is no deadline; it takes a time such as 20 min, 2 h or 1 d, or a date such as 2026-12-01T18:00Z")]
pub struct DeadlineError(String);

impl Deadline {
    /// Parses `90 s`, `20 min`, `2 h`, `1 d`, or a date in ISO form. Without a time, the day's end counts; without an
    /// offset, the time is UTC.
    ///
    /// # Errors
    /// Returns an error if the text is neither.
    pub fn parse(text: &str) -> Result<Deadline, DeadlineError> {
        let text = text.trim();
        let after = parse_duration(text).map(Deadline::After);
        let deadline = after.or_else(|| parse_moment(text).map(Deadline::At));
        deadline.ok_or_else(|| DeadlineError(text.chars().take(MAX_SHOWN_CHARS).collect()))
    }

    /// Returns the time, in milliseconds since 1970, for a run that begins at `start`.
    pub fn at(self, start: i64) -> i64 {
        match self {
            Deadline::After(milliseconds) => start.saturating_add(milliseconds),
            Deadline::At(at) => at,
        }
    }
}

fn parse_duration(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].trim() {
        "s" => SECOND_MS,
        "m" | "min" => MINUTE_MS,
        "h" => HOUR_MS,
        "d" => DAY_MS,
        _ => return None,
    };
    let milliseconds = digits.trim().parse::<u32>().ok().map(i64::from)?.checked_mul(unit)?;
    (SECOND_MS..=MAX_AFTER_MS).contains(&milliseconds).then_some(milliseconds)
}

/// Parses two digits that are at most `most`.
fn two_digits(text: &str, most: i64) -> Option<i64> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= most)
}

fn parse_moment(text: &str) -> Option<i64> {
    let day = text.get(..10).and_then(CalendarDay::parse)?.0.checked_mul(DAY_MS)?;
    let rest = text.get(10..)?;
    let Some(clock) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then(|| day.saturating_add(DAY_MS));
    };
    let (clock, offset) = match clock.find(['Z', '+', '-']) {
        Some(at) => clock.split_at(at),
        None => (clock, "Z"),
    };
    let mut parts = clock.split(':');
    let (hours, minutes) = (two_digits(parts.next()?, 23)?, two_digits(parts.next()?, 59)?);
    let seconds = match parts.next() {
        Some(seconds) => two_digits(seconds.split('.').next()?, 59)?,
        None => 0,
    };
    let offset = match offset.split_at_checked(1)? {
        ("Z", "") => 0,
        (sign, rest) => {
            let (hours, minutes) = rest.split_once(':')?;
            let offset = two_digits(hours, 23)? * HOUR_MS + two_digits(minutes, 59)? * MINUTE_MS;
            if sign == "-" { -offset } else { offset }
        }
    };
    let time = hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS - offset;
    parts.next().is_none().then(|| day.saturating_add(time))
}

/// Returns the earlier one of a known deadline and what a text says, if it says one, for a run that begins at `start`.
pub fn earliest(known: Option<i64>, text: &str, start: i64) -> Option<i64> {
    let said = Deadline::parse(text).ok().map(|deadline| deadline.at(start));
    known.into_iter().chain(said).min()
}

/// Formats a time in milliseconds since 1970 in ISO form, in UTC.
pub fn format_moment(at: i64) -> String {
    let (year, month, day) = CalendarDay(at.div_euclid(DAY_MS)).date();
    let rest = at.rem_euclid(DAY_MS);
    let (hours, minutes, seconds) = (rest / HOUR_MS, rest % HOUR_MS / MINUTE_MS, rest % MINUTE_MS / SECOND_MS);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deadline::At(at) => f.write_str(&format_moment(*at)),
            Deadline::After(after) if after % HOUR_MS == 0 => write!(f, "{} h", after / HOUR_MS),
            Deadline::After(after) if after % MINUTE_MS == 0 => write!(f, "{} min", after / MINUTE_MS),
            Deadline::After(after) => write!(f, "{} s", after / SECOND_MS),
        }
    }
}

impl Serialize for Deadline {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Deadline {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Deadline, D::Error> {
        Deadline::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_durations_or_moments() {
        let at = |text: &str| Deadline::parse(text).map(|deadline| deadline.at(5));
        for (text, milliseconds) in [("90 s", 90_005), ("20min", 1_200_005), ("2h", 7_200_005), (" 1 d ", 86_400_005)] {
            assert_eq!(at(text), Ok(milliseconds), "{text}");
        }
        let noon = 1_796_126_400_000;
        let offsets = ["2026-12-01T13:00:00.5+01:00", "2026-12-01T10:30-01:30"];
        for text in ["2026-12-01T12:00Z", "2026-12-01 12:00:00"].into_iter().chain(offsets) {
            assert_eq!(at(text), Ok(noon), "{text}");
        }
        assert_eq!(at("2026-12-01"), Ok(noon + 12 * HOUR_MS), "the day's end");
        for wrong in ["", "soon", "0 s", "9 y", "-1 h", "9999999 d", "2026-13-01", "2026-12-01T", "2026-12-01T25:00Z"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        for text in ["90 s", "20 min", "24 h", "2026-12-01T12:00:00Z"] {
            assert_eq!(Deadline::parse(text).expect("a deadline").to_string(), text);
        }
        assert_eq!((earliest(Some(7), "1 s", 5), earliest(None, "", 5)), (Some(7), None));
    }
}
