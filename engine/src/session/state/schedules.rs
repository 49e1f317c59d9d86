//! The state of schedules, and of memory maintenance that they or the user began.

use agent::memory::MemoryMaintenance;
use agent::schedule::Schedule;
use std::collections::BTreeMap;
use store::DocId;
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// What the session knows of schedules.
#[derive(Debug, Default)]
pub(in crate::session) struct SchedulesState {
    pub(in crate::session) schedules: BTreeMap<DocId, Schedule>,
    /// Whether what is due begins: this process stays.
    pub(in crate::session) is_active: bool,
    /// Whether something is due and waits for its volume to be read.
    pub(in crate::session) waiting: bool,
    /// When was last looked.
    pub(in crate::session) last_checked: UnixMillis,
    /// Clocks, as they are known today.
    pub(in crate::session) zones: Vec<ZoneClock>,
}

/// Maintenance to perform once the memory of a volume is read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct PendingMaintenance {
    pub(in crate::session) volume: DocId,
    pub(in crate::session) what: MemoryMaintenance,
    /// The schedule that wants it.
    pub(in crate::session) schedule: Option<DocId>,
}
