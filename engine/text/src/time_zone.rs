//! A time zone's clock: its offset from UTC, and when the offset changes. Pure: the caller provides the rules.

use serde::{Deserialize, Serialize};

/// Number of seconds in a day.
const DAY_SECS: i64 = 86_400;
/// Maximum number of offset changes.
const MAX_KNOWN_CHANGES: usize = 1_000;
/// Maximum length of a zone's name.
const MAX_ZONE_NAME_BYTES: usize = 100;
/// Maximum offset from UTC.
const MAX_UTC_OFFSET_SECS: u32 = 18 * 3_600;

/// Local clock of a time zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneClock {
    /// Name of the zone, such as `Europe/Berlin`.
    pub name: String,
    /// Offset before the first change, in seconds east of UTC.
    pub first: i32,
    /// Times of offset changes, in seconds since 1970, and the new offset in seconds east of UTC; ascending.
    pub changes: Vec<(i64, i32)>,
}

/// Error: a clock isn't a valid time zone's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneClockError {
    /// The name is empty, too long or has several lines.
    #[error("a time zone has a name of one line, of at most {MAX_ZONE_NAME_BYTES} bytes")]
    Name,
    /// The offsets are too far from UTC, or the changes too many or out of order.
    #[error("the time zone {name} is at most 18 hours from UTC, and changes in order")]
    Offsets {
        /// The zone's name.
        name: String,
    },
}

impl ZoneClock {
    /// Creates a clock with a fixed offset in seconds east of UTC.
    pub fn fixed(name: &str, offset: i32) -> ZoneClock {
        ZoneClock { name: name.to_owned(), first: offset, changes: Vec::new() }
    }

    /// Checks that the clock is valid, since it may come from an untrusted source.
    ///
    /// # Errors
    /// Returns an error if the name, the offsets or the changes are invalid.
    pub fn check(&self) -> Result<(), ZoneClockError> {
        let named = !self.name.trim().is_empty()
            && self.name.len() <= MAX_ZONE_NAME_BYTES
            && !self.name.contains(char::is_control);
        let near = |offset: i32| offset.unsigned_abs() <= MAX_UTC_OFFSET_SECS;
        let ordered = self.changes.windows(2).all(|two| matches!(two, [(one, _), (other, _)] if one < other));
        let bounded = self.changes.iter().all(|(when, offset)| when.unsigned_abs() < u64::MAX / 8_000 && near(*offset));
        if !named {
            return Err(ZoneClockError::Name);
        }
        if !near(self.first) || !bounded || !ordered || self.changes.len() > MAX_KNOWN_CHANGES {
            return Err(ZoneClockError::Offsets { name: self.name.clone() });
        }
        Ok(())
    }

    /// Returns the offset at this time, in seconds east of UTC.
    pub fn offset_at(&self, at: i64) -> i32 {
        let before = self.changes.partition_point(|(when, _)| *when <= at);
        before.checked_sub(1).and_then(|place| self.changes.get(place)).map_or(self.first, |(_, offset)| *offset)
    }

    /// Returns the times at which this clock shows a wall time, in order: none if it's skipped, two if it's repeated.
    pub fn instants_showing(&self, wall: i64) -> Vec<i64> {
        let place = |at: i64| self.changes.partition_point(|(when, _)| *when <= at);
        let near = self.changes.get(place(wall - DAY_SECS)..place(wall + DAY_SECS)).unwrap_or_default();
        let offsets = std::iter::once(self.offset_at(wall - DAY_SECS)).chain(near.iter().map(|(_, offset)| *offset));
        let mut found: Vec<i64> = offsets
            .map(|offset| wall - i64::from(offset))
            .filter(|at| wall - at == i64::from(self.offset_at(*at)))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns Berlin's clock in 2026: summer time from March 29, 01:00 UTC, to October 25, 01:00 UTC.
    fn berlin() -> ZoneClock {
        let changes = vec![(1_774_746_000, 7_200), (1_792_890_000, 3_600)];
        ZoneClock { name: "Europe/Berlin".to_owned(), first: 3_600, changes }
    }

    #[test]
    fn an_hour_is_missing_and_one_comes_twice() {
        let zone = berlin();
        assert_eq!(zone.check(), Ok(()));
        let (spring, autumn) = (1_774_746_000, 1_792_890_000);
        assert_eq!([zone.offset_at(spring - 1), zone.offset_at(spring), zone.offset_at(autumn)], [3_600, 7_200, 3_600]);
        let half = 1_800;
        assert!(zone.instants_showing(spring + 3_600 + half).is_empty(), "02:30 is not shown");
        assert_eq!(zone.instants_showing(spring + 7_200), [spring]);
        assert_eq!(
            zone.instants_showing(autumn + 3_600 + half),
            [autumn - half, autumn + half],
            "02:30 is shown twice"
        );
        assert_eq!(zone.instants_showing(autumn + 7_200), [autumn + 3_600]);
        assert_eq!(ZoneClock::fixed("UTC", 0).instants_showing(17), [17]);
    }

    #[test]
    fn what_is_no_zone_is_refused() {
        for wrong in [
            ZoneClock::fixed("", 0),
            ZoneClock::fixed("a\nb", 0),
            ZoneClock::fixed("x", 19 * 3_600),
            ZoneClock { changes: vec![(2, 0), (1, 0)], ..berlin() },
            ZoneClock { changes: vec![(1, i32::MIN)], ..berlin() },
            ZoneClock { changes: (0..2_000).map(|at| (at, 0)).collect(), ..berlin() },
            ZoneClock { changes: vec![(i64::MAX, 0)], ..berlin() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn what_a_clock_shows_is_found_again(at in 1_770_000_000_i64..1_800_000_000) {
            let zone = berlin();
            let wall = at + i64::from(zone.offset_at(at));
            prop_assert!(zone.instants_showing(wall).contains(&at));
            prop_assert!(zone.instants_showing(wall).len() <= 2);
        }
    }
}
