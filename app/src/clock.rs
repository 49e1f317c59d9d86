//! What day and time it is where the user is. The engine is told; it never looks.

use engine::base::Now;
use engine::task::Day;

/// The day by the system's clock and time zone.
pub(crate) fn today() -> Day {
    let date = jiff::Zoned::now().date();
    Day::of(i64::from(date.year()), i64::from(date.month()), i64::from(date.day()))
}

/// The time on the wall.
pub(crate) fn now() -> Now {
    let now = jiff::Zoned::now();
    let offset = i64::from(now.offset().seconds()) * 1_000;
    Now { local: now.timestamp().as_millisecond() + offset, offset }
}

/// A moment, milliseconds since 1970, as people write it.
pub(crate) fn moment(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A name for what is made now: `Name 2026-11-22 04.12.07`, as file systems allow it.
pub(crate) fn stamped(name: &str) -> String {
    format!("{name} {}", jiff::Zoned::now().strftime("%Y-%m-%d %H.%M.%S"))
}
