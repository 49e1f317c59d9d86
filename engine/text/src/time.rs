//! Points in time, given by the caller. The engine never reads a clock.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Returns the time this many milliseconds later.
    pub fn plus_ms(self, milliseconds: i64) -> UnixMillis {
        UnixMillis(self.0.saturating_add(milliseconds))
    }

    /// Returns the milliseconds since `earlier`; 0 if the clock was set back.
    pub fn ms_since(self, earlier: UnixMillis) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }

    /// Returns whole seconds since 1970, the unit of timestamps in documents.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
}
