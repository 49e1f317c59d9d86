//! Schedules that wait for events: a changed file, or a failed run. Changes that agents make start nothing, so that no
//! schedule starts itself or another one in circles.

use crate::session::apply_context::ApplyContext;
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::{SchedulesState, SeenFiles};
use crate::session::state::volumes::VolumesState;
use agent::notice::Notice;
use agent::schedule::{Schedule, ScheduleTrigger};
use store::{DocId, RunEnding, RunOrigin};

/// A file that an agent changed less than this many milliseconds ago was changed by the agent: the file is written and
/// read again shortly after the change.
const AGENT_CHANGE_AGE_MS: i64 = 60_000;

/// Returns the trigger of a schedule that waits for an event.
fn trigger_of(schedule: &Schedule) -> Option<ScheduleTrigger> {
    if schedule.paused { None } else { ScheduleTrigger::parse(&schedule.when).ok().flatten() }
}

impl SchedulesState {
    /// Makes schedules due whose events happened since the last call.
    pub(in crate::session) fn step_schedule_events(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
    ) {
        let waiting: Vec<(DocId, DocId, ScheduleTrigger)> = self
            .by_id
            .iter()
            .filter_map(|(id, one)| Some((*id, one.volume, trigger_of(one)?)))
            .filter(|_| self.is_active)
            .collect();
        if waiting.is_empty() {
            // What happens until a schedule waits is no news to it.
            self.seen_events.files.clear();
            self.seen_events.notice = turn.journal.notices.last_number();
            return;
        }
        let mut due: Vec<DocId> = Vec::new();
        for noticed in turn.journal.notices.notices_after(self.seen_events.notice) {
            let Notice::RunEnded { run, ending: RunEnding::Failed | RunEnding::Limit | RunEnding::Budget, .. } =
                &noticed.notice
            else {
                continue;
            };
            let Some(summary) = runs.run_summaries.get(run) else { continue };
            // A schedule that reacts to failures must not react to its own, nor to another schedule's.
            if matches!(summary.origin, RunOrigin::Schedule { .. }) {
                continue;
            }
            let fits = |(_, volume, trigger): &&(DocId, DocId, ScheduleTrigger)| {
                *trigger == ScheduleTrigger::FailedRun && *volume == summary.volume
            };
            due.extend(waiting.iter().filter(fits).map(|(id, ..)| *id));
        }
        self.seen_events.notice = turn.journal.notices.last_number();
        let watched = |volume: &DocId| {
            waiting.iter().any(|(_, of, trigger)| of == volume && matches!(trigger, ScheduleTrigger::FileChange { .. }))
        };
        self.seen_events.files.retain(|volume, _| watched(volume));
        for (id, volume) in volumes.by_id.iter().filter(|(id, volume)| volume.known && watched(id)) {
            let before = self.seen_events.files.get(id);
            if before.is_some_and(|(revision, _)| *revision == volume.revision) {
                continue;
            }
            let now: SeenFiles = volume.files.iter().map(|(path, row)| (path.clone(), (row.size, row.mtime))).collect();
            if let Some((_, before)) = before {
                let changed = now.iter().filter(|(path, state)| before.get(*path) != Some(state)).map(|(path, _)| path);
                let removed = before.keys().filter(|path| !now.contains_key(*path));
                for path in changed.chain(removed).filter(|path| !is_changed_by_agent(runs, turn, *id, path)) {
                    let fits =
                        |(_, of, trigger): &&(DocId, DocId, ScheduleTrigger)| of == id && trigger.is_file_change(path);
                    due.extend(waiting.iter().filter(fits).map(|(schedule, ..)| *schedule));
                }
            }
            self.seen_events.files.insert(*id, (volume.revision, now));
        }
        due.sort_unstable();
        due.dedup();
        for id in due {
            let Some(one) = self.by_id.get_mut(&id) else { continue };
            let (name, planned) = (one.name.clone(), one.next);
            if !one.trigger(turn.now) {
                let why =
                    "its event came 30 times within an hour, so it is paused; look at what causes it, then resume \
                           it"
                    .to_owned();
                turn.notify(Notice::Skipped { schedule: id, name, why });
            } else if one.next == planned {
                continue;
            }
            if let Some(next) = self.by_id.get(&id).and_then(|one| one.next) {
                turn.wake_at(next);
            }
            self.save_schedule(turn, id);
        }
    }
}

/// Returns whether an agent changed this file a short time ago.
fn is_changed_by_agent(runs: &RunsState, turn: &ApplyContext<'_>, volume: DocId, path: &str) -> bool {
    runs.open_runs().flat_map(|run| run.changes.iter()).any(|change| {
        change.volume == volume && change.path == path && turn.now.0.saturating_sub(change.at) < AGENT_CHANGE_AGE_MS
    })
}
