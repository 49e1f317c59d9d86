//! Points in time as one says them.

use anyhow::anyhow;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The moment on the clock here; none for the time before the first edit.
pub fn zoned(seconds: i64) -> Option<Zoned> {
    (seconds != 0).then(|| Timestamp::from_second(seconds).ok().map(|time| time.to_zoned(TimeZone::system())))?
}

/// A day as one says it.
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

/// A point in time as one says it.
pub fn when(seconds: i64) -> String {
    zoned(seconds).map_or_else(
        || "Before the first edit".to_owned(),
        |time| format!("{}, {}", day_words(time.date(), Zoned::now().date()), time.strftime("%H:%M")),
    )
}

/// Formats a time with a user's `strftime` format.
pub fn write_date(format: &str, now: &Zoned) -> anyhow::Result<String> {
    let written = jiff::fmt::strtime::format(format, now);
    let written = written.map_err(|error| anyhow!("“{format}” isn't a date format: {error}"))?;
    let fits = !written.trim().is_empty() && !written.contains('\n');
    if fits { Ok(written) } else { Err(anyhow!("“{format}” makes no name for a note")) }
}
