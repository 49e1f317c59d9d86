//! State of schedules, and of memory maintenance started by them or by the user.

use crate::session::apply_context::{ApplyContext, CommandError};
use agent::event_listeners::FileStates;
use agent::memory::MemoryMaintenance;
use agent::notice::Notice;
use agent::published_event::PublishedEventTimes;
use agent::run_events::RunEventCursor;
use agent::schedule::LastOccurrence;
use agent::schedule::Schedule;
use agent::schedule::ScheduleOutcome;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;
use store::disk::RowWrite;
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// Prefix of the keys under which the disk stores schedules.
pub const SCHEDULE_KEY_PREFIX: &str = "schedules/";

/// State of schedules.
#[derive(Debug, Default)]
pub(in crate::session) struct SchedulesState {
    pub(in crate::session) by_id: BTreeMap<DocId, Schedule>,
    /// Whether due work is started, because this process stays open.
    pub(in crate::session) is_active: bool,
    /// Whether due work is waiting for its volume to be read.
    pub(in crate::session) waiting: bool,
    /// Time of the last check for due work.
    pub(in crate::session) last_checked: UnixMillis,
    /// Current rules of time zones.
    pub(in crate::session) zones: Vec<ZoneClock>,
    /// Maintenance to perform once the memory has been read.
    pub(in crate::session) pending_maintenance: Vec<PendingMaintenance>,
    /// What the schedules that wait for events have seen.
    pub(in crate::session) seen_events: SeenEvents,
    /// When other programs published events.
    pub(in crate::session) published: PublishedEventTimes,
    /// Volumes whose memory is being read for maintenance.
    pub(in crate::session) reading_memory: BTreeSet<DocId>,
}

/// What schedules that wait for events have seen.
#[derive(Debug, Default)]
pub(in crate::session) struct SeenEvents {
    /// Number of the last notice.
    pub(in crate::session) notice: u64,
    /// Steps of runs.
    pub(in crate::session) runs: RunEventCursor,
    /// For each volume: its revision and its files.
    pub(in crate::session) files: BTreeMap<DocId, (u64, FileStates)>,
}

impl SchedulesState {
    /// Returns whether memory is being read for maintenance.
    pub(in crate::session) fn is_maintaining_memory(&self) -> bool {
        !self.pending_maintenance.is_empty()
    }

    /// Returns the schedules of this device.
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

    /// Sets the stored schedules at startup.
    pub(in crate::session) fn schedules_started(
        &mut self,
        turn: &mut ApplyContext<'_>,
        all: BTreeMap<DocId, Schedule>,
    ) {
        self.by_id = all;
        self.refresh_zones(turn);
    }

    /// Applies the current rules of time zones to the schedules, because these rules change now and then.
    pub(in crate::session) fn refresh_zones(&mut self, turn: &mut ApplyContext<'_>) {
        let known = |one: &Schedule| {
            let own = one.zone.as_ref()?;
            self.zones.iter().find(|zone| zone.name == own.name && *zone != own).cloned()
        };
        let changed: Vec<(DocId, ZoneClock)> =
            self.by_id.iter().filter_map(|(id, one)| Some((*id, known(one)?))).collect();
        for (id, zone) in changed {
            let Some(one) = self.by_id.get_mut(&id) else { continue };
            // An occurrence that was already due stays due: it's made up for or skipped.
            let due = one.next.filter(|next| *next <= turn.now);
            one.zone = Some(zone);
            one.next = due.or_else(|| one.next_upcoming(turn.now).ok().flatten());
            self.save_schedule(turn, id);
        }
    }

    /// Recomputes the next occurrence after the clock was set back, because it may come sooner than expected.
    pub(in crate::session) fn replan_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(one) = self.by_id.get_mut(&id) else { return };
        let Ok(Some(upcoming)) = one.next_upcoming(turn.now) else { return };
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
        one.next = one.next_upcoming(turn.now).ok().flatten();
        let name = one.name.clone();
        self.save_schedule(turn, id);
        if let Some(why) = why {
            turn.notify(Notice::Skipped { schedule: id, name, why });
        }
    }

    /// Records how the work started by a schedule has ended.
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

/// Maintenance to perform once the memory of a volume has been read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct PendingMaintenance {
    pub(in crate::session) volume: DocId,
    pub(in crate::session) what: MemoryMaintenance,
    /// The schedule that requested it; `None` if the user did.
    pub(in crate::session) schedule: Option<DocId>,
}
