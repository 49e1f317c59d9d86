//! The time as the server writes it down.

/// Returns the time in milliseconds since 1970.
pub(crate) fn unix_millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
