//! What day it is where the user is. The engine is told; it never looks.

use engine::task::Day;

/// The day by the system's clock and time zone.
pub(crate) fn today() -> Day {
    let date = jiff::Zoned::now().date();
    Day::of(i64::from(date.year()), i64::from(date.month()), i64::from(date.day()))
}
