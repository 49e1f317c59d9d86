//! Schedules that wait for events, such as a changed file or a failed run. Changes that agents make start nothing, nor
//! do runs that schedules began, so that no schedule starts itself or another one in circles. A function of a plugin
//! that events call is a schedule of each volume where such an event happens.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::{SchedulesState, SeenEvents};
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::event_filter::{WorkspaceEvent, add_handled_event};
use agent::event_listeners::{EventListeners, FileStates, file_changes};
use agent::notice::Notice;
use agent::run_events::{RunEventCursor, RunEventSource};
use agent::schedule::{Schedule, ScheduledWork, unused_name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{DocId, RunOrigin};

/// A file that an agent changed less than this many milliseconds ago was changed by the agent: the file is written and
/// read again shortly after the change.
const AGENT_CHANGE_AGE_MS: i64 = 60_000;

impl SchedulesState {
    /// Publishes an event of another program.
    pub(in crate::session) fn publish_event(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        volume: DocId,
        (kind, data): (&str, Value),
    ) -> Result<(), CommandError> {
        if !volumes.by_id.contains_key(&volume) {
            return Err(CommandError(format!("there is no volume {volume}")));
        }
        let admitted = self.published.admit(turn.now, volume, kind, data);
        turn.notify(admitted.map_err(|why| CommandError(why.to_string()))?);
        Ok(())
    }

    /// Makes schedules due whose events happened since the last call.
    pub(in crate::session) fn step_schedule_events(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
    ) {
        let mut new = if self.is_active { self.update_handlers(turn, volumes, runs) } else { BTreeMap::new() };
        let all = self.by_id.iter().chain(&new).filter(|_| self.is_active);
        let mut listeners = EventListeners::of_schedules(all);
        let notice = turn.journal.notices.last_number();
        if listeners.is_empty() {
            // What happens until a schedule waits is no news to it.
            self.seen_events = SeenEvents { notice, ..SeenEvents::default() };
            return;
        }
        let seen = std::mem::replace(&mut self.seen_events.notice, notice);
        for noticed in turn.journal.notices.notices_after(seen) {
            let Some(mut event) = WorkspaceEvent::of_notice(noticed) else { continue };
            let volume = match event.id("run") {
                // A schedule that reacts to runs must not react to its own, nor to another schedule's.
                Some(run) if matches!(runs.root_origin(run), Some(RunOrigin::Schedule { .. })) => continue,
                Some(run) => runs.run_summaries.get(&run).map(|summary| summary.volume),
                None => event.id("volume"),
            };
            if let Some(volume) = volume {
                event.data.insert("volume".to_owned(), json!(volume.to_string()));
                listeners.add_event(volume, &event);
            }
        }
        if listeners.wait_for_steps() {
            for run in runs.open_runs() {
                let has_begun = || turn.journal.notices.has_run_begun(seen, run.id);
                let source = RunEventSource { run: run.id, about: &run.about, steps: &run.steps };
                let events = self.seen_events.runs.events_of(&source, has_begun);
                // Only what the user began here starts work.
                if !events.is_empty()
                    && workspace.is_own_device(run.device.as_ref())
                    && runs.root_origin(run.id) == Some(RunOrigin::User)
                {
                    events.iter().for_each(|event| listeners.add_event(run.about.volume, event));
                }
            }
        } else {
            self.seen_events.runs = RunEventCursor::default();
        }
        self.seen_events.files.retain(|volume, _| listeners.wait_for_files(*volume));
        for (id, volume) in volumes.by_id.iter().filter(|(_, volume)| volume.known) {
            let before = self.seen_events.files.get(id);
            if !listeners.wait_for_files(*id) || before.is_some_and(|(revision, _)| *revision == volume.revision) {
                continue;
            }
            if is_scheduled_call_running(runs, *id) {
                continue; // which files it has changed is known once it has ended
            }
            let now: FileStates =
                volume.files.iter().map(|(path, row)| (path.clone(), (row.size, row.mtime))).collect();
            for (path, change) in before.into_iter().flat_map(|(_, before)| file_changes(before, &now)) {
                if !is_changed_by_agent(runs, turn, *id, path) {
                    let event = WorkspaceEvent::of_file((*id, volume.name.as_str()), path, change, turn.now.0);
                    listeners.add_event(*id, &event);
                }
            }
            self.seen_events.files.insert(*id, (volume.revision, now));
        }
        for (id, events) in listeners.into_started() {
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
