//! The user's local date and time. The engine gets them as arguments and never reads a clock.

use anyhow::anyhow;
use collection::LocalNow;
use engine::UnixMillis;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};
use text::task::CalendarDay;
use text::time_zone::ZoneClock;

/// Number of years, from a year ago on, for which a zone's changes are listed.
const ZONE_HORIZON_YEARS: i64 = 12;
/// Maximum number of listed changes.
const MAX_ZONE_CHANGES: usize = 200;

/// The clock, read here and nowhere else on the way to the session.
pub(crate) fn unix_now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Milliseconds since 1970, for what stands outside a session (fsck, backup).
pub fn unix_millis_now() -> i64 {
    unix_now().0
}

/// The day by the system's clock and time zone.
pub fn today() -> CalendarDay {
    let date = jiff::Zoned::now().date();
    CalendarDay::from_date(i64::from(date.year()), i64::from(date.month()), i64::from(date.day()))
}

/// The time on the wall.
pub fn local_now() -> LocalNow {
    let now = jiff::Zoned::now();
    let offset = i64::from(now.offset().seconds()) * 1_000;
    LocalNow { local: now.timestamp().as_millisecond() + offset, offset }
}

/// A moment, milliseconds since 1970, as people write it.
pub fn format_moment(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A name for what is made now: `Name 2026-11-22 04.12.07`, as file systems allow it.
pub fn timestamped_name(name: &str) -> String {
    format!("{name} {}", jiff::Zoned::now().strftime("%Y-%m-%d %H.%M.%S"))
}

/// The clock of this machine, or of a zone by its name, with when it changes.
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

/// The clock of this machine and those of these names, as they are known today; what is not known is left out.
pub fn load_zones(names: impl IntoIterator<Item = String>) -> Vec<ZoneClock> {
    let mut all: Vec<ZoneClock> = load_zone(None).into_iter().collect();
    for name in names {
        if all.iter().all(|known| known.name != name) {
            all.extend(load_zone(Some(&name)));
        }
    }
    all
}

/// By which clocks schedules go.
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
        // Where the system knows zones, the one with summer time has two changes a year, each of an hour.
        if let Ok(berlin) = load_zone(Some("Europe/Berlin")) {
            assert!(berlin.changes.len() >= 20, "{berlin:?}");
            assert!(berlin.changes.iter().all(|(_, offset)| [3_600, 7_200].contains(offset)), "{berlin:?}");
            assert_eq!(berlin.check(), Ok(()));
        }
    }
}
