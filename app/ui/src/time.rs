//! Formatting of dates and times in the window.

use anyhow::anyhow;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Returns a time in the system's time zone; `None` for 0, the time before the first edit.
pub fn zoned(seconds: i64) -> Option<Zoned> {
    (seconds != 0).then(|| Timestamp::from_second(seconds).ok().map(|time| time.to_zoned(TimeZone::system())))?
}

/// Formats a day relative to today: a word or weekday for the last week, otherwise a date.
pub fn day_words(date: Date, today: Date) -> String {
    let written = |format: &str| date.strftime(format).to_string();
    match (today - date).get_days() {
        0 => "Today".to_owned(),
        1 => "Yesterday".to_owned(),
        2..=6 => written("%A"),
        _ if date.year() == today.year() => written("%-d %B"),
        _ => written("%-d %B %Y"),
    }
}

/// Formats a time as a relative day and the time of day.
pub fn when(seconds: i64) -> String {
    zoned(seconds).map_or_else(
        || "Before the first edit".to_owned(),
        |time| format!("{}, {}", day_words(time.date(), Zoned::now().date()), time.strftime("%H:%M")),
    )
}

/// Formats a time with a user's format: `strftime`, or the tokens of moment.js as in Obsidian (`YYYY-MM-DD`).
pub fn write_date(format: &str, now: &Zoned) -> anyhow::Result<String> {
    let written = jiff::fmt::strtime::format(text::date_format::strftime_format(format), now);
    let written = written.map_err(|error| anyhow!("“{format}” isn't a date format: {error}"))?;
    let written = text::date_format::write_ordinals(&written);
    let fits = !written.trim().is_empty() && !written.contains('\n');
    if fits { Ok(written) } else { Err(anyhow!("“{format}” makes no name for a note")) }
}
