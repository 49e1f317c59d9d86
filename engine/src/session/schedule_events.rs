//! Schedules that wait for events, such as a changed file or a failed run. Changes that agents make start nothing, so
//! that no schedule starts itself or another one in circles. A function of a plugin that events call is a schedule of
//! each volume where such an event happens.

use crate::session::apply_context::ApplyContext;
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::{SchedulesState, SeenFiles};
use crate::session::state::volumes::VolumesState;
use agent::event_filter::{WorkspaceEvent, add_handled_event};
use agent::notice::Notice;
use agent::schedule::{Schedule, ScheduleTrigger, ScheduledWork, unused_name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{DocId, RunOrigin};

/// A file that an agent changed less than this many milliseconds ago was changed by the agent: the file is written and
/// read again shortly after the change.
const AGENT_CHANGE_AGE_MS: i64 = 60_000;

/// Returns the trigger of a schedule that waits for an event.
fn trigger_of(schedule: &Schedule) -> Option<ScheduleTrigger> {
    if schedule.paused { None } else { ScheduleTrigger::parse(&schedule.when).ok().flatten() }
}

/// Work that waits for events: a schedule, its volume, and the events that start it.
type WaitingSchedule = (DocId, DocId, ScheduleTrigger);

impl SchedulesState {
    /// Makes schedules due whose events happened since the last call.
    pub(in crate::session) fn step_schedule_events(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
    ) {
        let mut new = if self.is_active { self.update_handlers(turn, volumes, runs) } else { BTreeMap::new() };
        let waiting: Vec<WaitingSchedule> = self
            .by_id
            .iter()
            .chain(&new)
            .filter_map(|(id, one)| Some((*id, one.volume, trigger_of(one)?)))
            .filter(|_| self.is_active)
            .collect();
        if waiting.is_empty() {
            // What happens until a schedule waits is no news to it.
            self.seen_events.files.clear();
            self.seen_events.notice = turn.journal.notices.last_number();
            return;
        }
        let mut due: BTreeMap<DocId, Vec<Value>> = BTreeMap::new();
        let mut happened = |volume: DocId, event: &WorkspaceEvent| {
            for (id, ..) in waiting.iter().filter(|(_, of, trigger)| *of == volume && trigger.is_started_by(event)) {
                add_handled_event(due.entry(*id).or_default(), event.to_json());
            }
        };
        for noticed in turn.journal.notices.notices_after(self.seen_events.notice) {
            let Some(mut event) = WorkspaceEvent::of_notice(noticed) else { continue };
            let volume = match event.id("run").and_then(|run| runs.run_summaries.get(&run)) {
                // A schedule that reacts to runs must not react to its own, nor to another schedule's.
                Some(summary) if matches!(summary.origin, RunOrigin::Schedule { .. }) => continue,
                Some(summary) => Some(summary.volume),
                None => event.id("volume"),
            };
            if let Some(volume) = volume {
                event.data.insert("volume".to_owned(), json!(volume.to_string()));
                happened(volume, &event);
            }
        }
        self.seen_events.notice = turn.journal.notices.last_number();
        let watched = |volume: &DocId| waiting.iter().any(|(_, of, trigger)| of == volume && trigger.waits_for_files());
        self.seen_events.files.retain(|volume, _| watched(volume));
        for (id, volume) in volumes.by_id.iter().filter(|(id, volume)| volume.known && watched(id)) {
            let before = self.seen_events.files.get(id);
            if before.is_some_and(|(revision, _)| *revision == volume.revision) {
                continue;
            }
            if is_scheduled_call_running(runs, *id) {
                continue; // which files it has changed is known once it has ended
            }
            let now: SeenFiles = volume.files.iter().map(|(path, row)| (path.clone(), (row.size, row.mtime))).collect();
            if let Some((_, before)) = before {
                let differing = now.iter().filter_map(|(path, state)| match before.get(path) {
                    Some(known) => (known != state).then_some((path, "changed")),
                    None => Some((path, "created")),
                });
                let removed = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path, "removed"));
                for (path, change) in differing.chain(removed) {
                    if !is_changed_by_agent(runs, turn, *id, path) {
                        happened(*id, &WorkspaceEvent::of_file((*id, volume.name.as_str()), path, change, turn.now.0));
                    }
                }
            }
            self.seen_events.files.insert(*id, (volume.revision, now));
        }
        for (id, events) in due {
            if let Some(mut one) = new.remove(&id) {
                let taken: Vec<&str> = self.by_id.values().map(|one| one.name.as_str()).collect();
                one.name = unused_name(&one.work, &taken);
                self.by_id.insert(id, one);
            }
            self.make_due(turn, id, events);
        }
    }

    /// Makes a schedule due because of these events, or pauses it if it starts too often.
    fn make_due(&mut self, turn: &mut ApplyContext<'_>, id: DocId, events: Vec<Value>) {
        let Some(one) = self.by_id.get_mut(&id) else { return };
        let (name, planned) = (one.name.clone(), one.next);
        let handled = one.handled_events();
        let is_handler = handled.is_some();
        if let Some(handled) = handled {
            events.into_iter().for_each(|event| add_handled_event(handled, event));
        }
        if !one.trigger(turn.now) {
            let why = "its event came 30 times within an hour, so it is paused; look at what causes it, then resume it";
            turn.notify(Notice::Skipped { schedule: id, name, why: why.to_owned() });
        } else if one.next == planned && !is_handler {
            return;
        }
        if let Some(next) = self.by_id.get(&id).and_then(|one| one.next) {
            turn.wake_at(next);
        }
        self.save_schedule(turn, id);
    }

    /// Brings the schedules of functions that events call up to date with what the user has approved. Returns those
    /// that don't exist yet, because none of their events has happened.
    fn update_handlers(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
    ) -> BTreeMap<DocId, Schedule> {
        let Some(handlers) = runs.event_handlers() else { return BTreeMap::new() };
        let is_approved = |name: &str| handlers.iter().any(|handler| handler.name == name);
        let is_gone = |one: &Schedule| matches!(&one.work, ScheduledWork::Handler { tool, .. } if !is_approved(tool));
        let gone: Vec<DocId> = self.by_id.iter().filter(|(_, one)| is_gone(one)).map(|(id, _)| *id).collect();
        for id in gone {
            self.by_id.remove(&id);
            self.save_schedule(turn, id);
        }
        let mut new: BTreeMap<DocId, Schedule> = BTreeMap::new();
        for (volume, _) in volumes.by_id.iter().filter(|(_, volume)| volume.root.is_some()) {
            for handler in &handlers {
                let id = DocId::of_name(&format!("handler {} of {volume}", handler.name));
                let one = Schedule::for_handler(handler, *volume);
                if let Some(known) = self.by_id.get_mut(&id) {
                    known.when = one.when;
                } else {
                    new.insert(id, one);
                }
            }
        }
        new
    }
}

/// Returns whether a tool call of scheduled work is running in a volume.
fn is_scheduled_call_running(runs: &RunsState, volume: DocId) -> bool {
    let scheduled = |run: &&AgentRun| {
        run.about.volume == volume && run.is_awake() && matches!(run.about.origin, RunOrigin::Schedule { .. })
    };
    let mut calls = runs.open_runs().filter(scheduled).flat_map(|run| &run.calls);
    calls.any(|call| matches!(call.phase, CallPhase::Running { .. }))
}

/// Returns whether an agent changed this file a short time ago.
fn is_changed_by_agent(runs: &RunsState, turn: &ApplyContext<'_>, volume: DocId, path: &str) -> bool {
    runs.open_runs().flat_map(|run| run.changes.iter()).any(|change| {
        change.volume == volume && change.path == path && turn.now.0.saturating_sub(change.at) < AGENT_CHANGE_AGE_MS
    })
}
