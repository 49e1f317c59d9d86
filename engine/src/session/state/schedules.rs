//! The state of schedules, and of memory maintenance that they or the user began.

use crate::notice::Notice;
use crate::session::apply_context::{ApplyContext, CommandError};
use agent::memory::MemoryMaintenance;
use agent::schedule::LastOccurrence;
use agent::schedule::Schedule;
use agent::schedule::ScheduleOutcome;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;
use store::disk::RowWrite;
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// The beginning of the names under which the disk keeps schedules.
pub const SCHEDULE_KEY_PREFIX: &str = "schedules/";

/// What the session knows of schedules.
#[derive(Debug, Default)]
pub(in crate::session) struct SchedulesState {
    pub(in crate::session) by_id: BTreeMap<DocId, Schedule>,
    /// Whether what is due begins: this process stays.
    pub(in crate::session) is_active: bool,
    /// Whether something is due and waits for its volume to be read.
    pub(in crate::session) waiting: bool,
    /// When was last looked.
    pub(in crate::session) last_checked: UnixMillis,
    /// Clocks, as they are known today.
    pub(in crate::session) zones: Vec<ZoneClock>,
    /// What is to be made of memory, once that is read.
    pub(in crate::session) pending_maintenance: Vec<PendingMaintenance>,
    /// Volumes whose memory is being read for that.
    pub(in crate::session) reading_memory: BTreeSet<DocId>,
}

impl SchedulesState {
    /// Whether memory is being read to be worked over.
    pub(in crate::session) fn is_maintaining_memory(&self) -> bool {
        !self.pending_maintenance.is_empty()
    }

    /// The schedules of this device.
    pub(in crate::session) fn schedules(&self) -> impl Iterator<Item = (DocId, &Schedule)> {
        self.by_id.iter().map(|(id, schedule)| (*id, schedule))
    }

    pub(in crate::session) fn save_schedule(&self, turn: &mut ApplyContext<'_>, id: DocId) {
        let value = self.by_id.get(&id).and_then(|one| serde_json::to_vec(one).ok());
        turn.append_writes(vec![RowWrite::Meta { key: format!("{SCHEDULE_KEY_PREFIX}{id}"), value }], None);
    }

    pub(in crate::session) fn remove_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
    ) -> Result<(), CommandError> {
        self.by_id.remove(&id).ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        self.save_schedule(turn, id);
        Ok(())
    }

    /// The stored schedules were read.
    pub(in crate::session) fn schedules_started(
        &mut self,
        turn: &mut ApplyContext<'_>,
        all: BTreeMap<DocId, Schedule>,
    ) {
        self.by_id = all;
        self.refresh_zones(turn);
    }

    /// Rules of time zones change now and then; schedules use the rules known today.
    pub(in crate::session) fn refresh_zones(&mut self, turn: &mut ApplyContext<'_>) {
        let known = |one: &Schedule| {
            let own = one.zone.as_ref()?;
            self.zones.iter().find(|zone| zone.name == own.name && *zone != own).cloned()
        };
        let changed: Vec<(DocId, ZoneClock)> =
            self.by_id.iter().filter_map(|(id, one)| Some((*id, known(one)?))).collect();
        for (id, zone) in changed {
            let Some(one) = self.by_id.get_mut(&id) else { continue };
            // What was due already stays due: it is made up for, or left out.
            let due = one.next.filter(|next| *next <= turn.now);
            one.zone = Some(zone);
            one.next = due.or_else(|| one.next_upcoming(turn.now).ok());
            self.save_schedule(turn, id);
        }
    }

    /// The clock was set back: what is due next may come sooner than was thought.
    pub(in crate::session) fn replan_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(one) = self.by_id.get_mut(&id) else { return };
        let Ok(upcoming) = one.next_upcoming(turn.now) else { return };
        if one.next.is_some_and(|next| upcoming < next) {
            one.next = Some(upcoming);
            self.save_schedule(turn, id);
        }
    }

    /// Records the outcome of an occurrence and the next due time.
    pub(in crate::session) fn record_schedule_outcome(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        due: UnixMillis,
        missed: u64,
        came: ScheduleOutcome,
    ) {
        let Some(one) = self.by_id.get_mut(&id) else { return };
        let why = match &came {
            ScheduleOutcome::Skipped { why } | ScheduleOutcome::Failed { why } => Some(why.clone()),
            ScheduleOutcome::Begun { .. } | ScheduleOutcome::Ended { .. } | ScheduleOutcome::Done => None,
        };
        one.last = Some(LastOccurrence { due, at: turn.now, missed, came });
        one.next = one.next_upcoming(turn.now).ok();
        let name = one.name.clone();
        self.save_schedule(turn, id);
        if let Some(why) = why {
            turn.notify(Notice::Skipped { schedule: id, name, why });
        }
    }

    /// What a schedule has begun is over.
    pub(in crate::session) fn finish_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        came: ScheduleOutcome,
    ) {
        let Some(one) = self.by_id.get_mut(&id) else { return };
        let name = one.name.clone();
        let Some(last) = one.last.as_mut() else { return };
        let why = if let ScheduleOutcome::Failed { why } = &came { Some(why.clone()) } else { None };
        last.came = came;
        self.save_schedule(turn, id);
        if let Some(why) = why {
            turn.notify(Notice::Skipped { schedule: id, name, why });
        }
    }
}

/// Maintenance to perform once the memory of a volume is read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct PendingMaintenance {
    pub(in crate::session) volume: DocId,
    pub(in crate::session) what: MemoryMaintenance,
    /// The schedule that wants it.
    pub(in crate::session) schedule: Option<DocId>,
}
