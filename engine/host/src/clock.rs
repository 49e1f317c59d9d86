//! The user's local date and time. The engine gets them as arguments and never reads a clock.

use agent::deadline::{Deadline, DeadlineError};
use anyhow::anyhow;
use collection::LocalNow;
use engine::UnixMillis;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};
use text::task::CalendarDay;
use text::time_zone::ZoneClock;

/// Number of years for which a time zone's offset changes are listed, starting a year ago.
const ZONE_HORIZON_YEARS: i64 = 12;
/// Maximum number of listed offset changes of a time zone.
const MAX_ZONE_CHANGES: usize = 200;
/// Length of a day in ISO form.
const ISO_DAY_CHARS: usize = 10;

/// Returns the current time. All times passed to the session are read here.
pub(crate) fn unix_now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the current time in milliseconds since 1970, for code outside a session (fsck, backup).
pub fn unix_millis_now() -> i64 {
    unix_now().0
}

/// Returns the current day in the system's time zone.
pub fn today() -> CalendarDay {
    let date = jiff::Zoned::now().date();
    CalendarDay::from_date(i64::from(date.year()), i64::from(date.month()), i64::from(date.day()))
}

/// Returns the current local time and its UTC offset.
pub fn local_now() -> LocalNow {
    let now = jiff::Zoned::now();
    let offset = i64::from(now.offset().seconds()) * 1_000;
    LocalNow { local: now.timestamp().as_millisecond() + offset, offset }
}

/// Formats a time, in milliseconds since 1970, as local date and time.
pub fn format_moment(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns when a deadline that a user typed is, in milliseconds since 1970. It's a time from now, or a date in ISO
/// form, which is local time unless it has an offset.
///
/// # Errors
/// Returns an error if it's neither.
pub fn parse_deadline(text: &str) -> Result<i64, DeadlineError> {
    let text = text.trim();
    let wall = text.parse::<jiff::civil::DateTime>().ok();
    // A day ends with the next one.
    let wall = if text.len() == ISO_DAY_CHARS { wall.and_then(|day| day.tomorrow().ok()) } else { wall };
    let local = wall.and_then(|wall| wall.to_zoned(jiff::tz::TimeZone::system()).ok());
    match (text.parse::<jiff::Timestamp>(), local) {
        (Ok(at), _) => Ok(at.as_millisecond()),
        (Err(_), Some(local)) => Ok(local.timestamp().as_millisecond()),
        (Err(_), None) => Ok(Deadline::parse(text)?.at(unix_millis_now())),
    }
}

/// Returns a file name with the current time, such as `name-20261122-041207`. It has no spaces, so links need no
/// brackets.
pub fn timestamped_name(name: &str) -> String {
    format!("{name}-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"))
}

/// Loads this machine's time zone, or a zone by name, with its offset changes.
pub fn load_zone(name: Option<&str>) -> anyhow::Result<ZoneClock> {
    let zone = match name {
        Some(name) => TimeZone::get(name)
            .map_err(|_| anyhow!("there is no time zone {name} here; names are such as Europe/Berlin"))?,
        None => TimeZone::system(),
    };
    let year = SignedDuration::from_hours(366 * 24);
    let from = Timestamp::now().checked_sub(year).unwrap_or_default();
    let until = from.as_second() + ZONE_HORIZON_YEARS * 366 * 86_400;
    let near = zone.following(from).take_while(|change| change.timestamp().as_second() < until).take(MAX_ZONE_CHANGES);
    Ok(ZoneClock {
        name: zone.iana_name().unwrap_or("the clock here").to_owned(),
        first: zone.to_offset(from).seconds(),
        changes: near.map(|change| (change.timestamp().as_second(), change.offset().seconds())).collect(),
    })
}

/// Loads this machine's time zone and the zones with these names. Unknown names are left out.
pub fn load_zones(names: impl IntoIterator<Item = String>) -> Vec<ZoneClock> {
    let mut all: Vec<ZoneClock> = load_zone(None).into_iter().collect();
    for name in names {
        if all.iter().all(|known| known.name != name) {
            all.extend(load_zone(Some(&name)));
        }
    }
    all
}

/// Returns the names of the time zones that schedules use.
pub fn schedule_zone_names(session: &engine::Session) -> Vec<String> {
    session.schedules().filter_map(|(_, one)| Some(one.zone.as_ref()?.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_told_with_its_changes() {
        let utc = load_zone(Some("UTC")).expect("it is known everywhere");
        assert_eq!((utc.name.as_str(), utc.first, utc.changes.len()), ("UTC", 0, 0));
        assert!(load_zone(Some("Nowhere/At all")).is_err());
        let here = load_zone(None).expect("this machine has a clock");
        assert_eq!(here.check(), Ok(()));
        let now = Timestamp::now().as_second();
        assert_eq!(here.offset_at(now), jiff::Zoned::now().offset().seconds());
        let names = ["UTC", "Nowhere/At all", "UTC"].map(str::to_owned);
        let all = load_zones(names);
        assert_eq!(all.iter().filter(|zone| zone.name == "UTC").count(), 1, "{all:?}");
        assert!(all.contains(&here) && all.iter().all(|zone| zone.check().is_ok()));
        // If the system has a time zone database, a zone with daylight saving time has two changes of an hour per year.
        if let Ok(berlin) = load_zone(Some("Europe/Berlin")) {
            assert!(berlin.changes.len() >= 20, "{berlin:?}");
            assert!(berlin.changes.iter().all(|(_, offset)| [3_600, 7_200].contains(offset)), "{berlin:?}");
            assert_eq!(berlin.check(), Ok(()));
        }
    }
}
