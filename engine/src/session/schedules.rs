//! Schedules: starts due work in a process that stays open. Its runs are under the same policy as a request of the
//! user; calls that aren't allowed wait as approvals.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::notes::NotesState;
use crate::session::state::runs::{RunRequest, RunsState};
use crate::session::state::schedules::SchedulesState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_definition;
use agent::memory::trace::iso_timestamp;
use agent::memory::{MemoryMaintenance, RecallOptions};
use agent::notice::Notice;
use agent::policy::ToolPolicy;
use agent::schedule::{DueStatus, MIN_TRIGGER_INTERVAL_MS, Schedule, ScheduleOutcome, ScheduledWork, duration_text};
use agent::tool_catalog::BuiltInTool;
use commands::CommandId;
use serde_json::{Map, Value, json};
use store::{DocId, RunOrigin, ToolCall};
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// Maximum number of schedules.
const MAX_SCHEDULES: usize = 200;
/// Retry interval in milliseconds while a volume is still being read.
const VOLUME_WAIT_INTERVAL_MS: i64 = 1_000;
/// Minimum jump of the clock backwards, in milliseconds, that counts as being set back.
const MIN_CLOCK_SETBACK_MS: i64 = 1_000;
/// Maximum length of a goal in bytes.
const MAX_SCHEDULE_GOAL_BYTES: usize = 100_000;

/// Returns the id of the session for all runs of a schedule's cells or function, which is always the same.
fn schedule_session_id(schedule: DocId) -> DocId {
    DocId::of_name(&format!("schedule {schedule}"))
}

fn random_id(turn: &mut ApplyContext<'_>) -> DocId {
    let mut bytes = [0; 16];
    turn.rng.fill_bytes(&mut bytes);
    DocId::random(bytes)
}

impl SchedulesState {
    /// Returns whether the last work of a schedule is still in progress or waits for the user.
    pub(in crate::session) fn is_schedule_active(&self, runs: &RunsState, schedule: DocId) -> bool {
        let last = self.by_id.get(&schedule).and_then(|one| one.last.as_ref());
        match last.map(|last| &last.came) {
            Some(ScheduleOutcome::Begun { run: Some(run) }) => {
                let agents = runs;
                let open =
                    |run: &crate::session::state::agent_run::AgentRun| run.is_awake() || run.pending().next().is_some();
                agents.is_request_pending(*run) || agents.run(*run).is_some_and(open)
            }
            Some(ScheduleOutcome::Begun { run: None }) => {
                self.pending_maintenance.iter().any(|one| one.schedule == Some(schedule))
            }
            Some(
                ScheduleOutcome::Ended { .. }
                | ScheduleOutcome::Done
                | ScheduleOutcome::Failed { .. }
                | ScheduleOutcome::Skipped { .. },
            )
            | None => false,
        }
    }

    /// Returns whether nothing is due and no scheduled work can continue without the user.
    pub(in crate::session) fn are_schedules_idle(&self, notes: &NotesState, runs: &RunsState) -> bool {
        let works = |run: &crate::session::state::agent_run::AgentRun| run.is_awake() && run.pending().next().is_none();
        !self.waiting
            && self.pending_maintenance.is_empty()
            && notes.pending_note_jobs() == 0
            && !runs.has_run_requests()
            && !runs.open_runs().any(works)
    }

    pub(super) fn add_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
        mut new: Schedule,
    ) -> Result<(), CommandError> {
        let reject = |why: &str| Err(CommandError(why.to_owned()));
        new.name = new.name.trim().to_owned();
        if new.name.is_empty() || new.name.len() > 100 || new.name.contains(char::is_control) {
            return reject("a schedule needs a name of one line, of at most 100 bytes");
        }
        if self.by_id.values().any(|known| known.name == new.name) || self.by_id.contains_key(&id) {
            return Err(CommandError(format!("there is a schedule called {} already", new.name)));
        }
        if self.by_id.len() >= MAX_SCHEDULES {
            return Err(CommandError(format!("there are {MAX_SCHEDULES} schedules already; remove some")));
        }
        if let Some(zone) = &new.zone {
            zone.check().map_err(|why| CommandError(why.to_string()))?;
        }
        if new.offset.abs() > 18 * 60 || new.window > 3_660 * 86_400 {
            return reject("a clock is at most 18 hours from UTC, and a window at most ten years");
        }
        match &new.work {
            ScheduledWork::Goal { goal, .. } if goal.trim().is_empty() => return reject("enter a goal"),
            ScheduledWork::Goal { goal, .. } if goal.len() > MAX_SCHEDULE_GOAL_BYTES => {
                return reject("a goal has at most 100 kB");
            }
            ScheduledWork::Cells { note, .. } if volumes.locate_file(*note).is_none() => {
                return reject("no such note");
            }
            ScheduledWork::Analyze { query } if query.query.trim().is_empty() => {
                return reject("say what memory is asked");
            }
            ScheduledWork::Goal { .. }
            | ScheduledWork::Cells { .. }
            | ScheduledWork::Consolidate
            | ScheduledWork::Analyze { .. }
            | ScheduledWork::Handler { .. } => {}
        }
        match volumes.by_id.get(&new.volume) {
            None => return Err(CommandError(format!("there is no volume {}", new.volume))),
            Some(volume) if volume.root.is_none() => return reject("the volume has no folder on this device"),
            Some(_) => {}
        }
        new.last = None;
        new.triggered = Vec::new();
        new.next = new.next_upcoming(turn.now).map_err(|why| CommandError(why.to_string()))?;
        self.by_id.insert(id, new);
        self.save_schedule(turn, id);
        self.tick_schedules(turn, volumes, runs, workspace);
        Ok(())
    }

    /// Pauses or resumes a schedule. Occurrences missed during a pause aren't made up for.
    pub(super) fn pause_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
        paused: bool,
    ) -> Result<(), CommandError> {
        let one = self.by_id.get_mut(&id).ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        one.paused = paused;
        one.next = one.next_upcoming(turn.now).ok().flatten();
        self.save_schedule(turn, id);
        self.tick_schedules(turn, volumes, runs, workspace);
        Ok(())
    }

    /// Starts a schedule's work now, whether it's due or not.
    pub(super) fn run_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        let one = self.by_id.get(&id).cloned();
        let one = one.ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        if self.is_schedule_active(runs, id) {
            return Err(CommandError(format!(
                "the last run of {} is still in progress or waiting for your approval",
                one.name
            )));
        }
        let now = turn.now;
        self.begin_scheduled(turn, volumes, runs, workspace, (id, &one), (now, 0));
        Ok(())
    }

    /// Starts scheduling: from now on, due work is started, because this process stays open. `zones`: current time zone
    /// rules.
    pub(super) fn start_scheduler(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        zones: Vec<ZoneClock>,
    ) -> Result<(), CommandError> {
        if zones.len() > MAX_SCHEDULES + 1 {
            return Err(CommandError("more clocks than there are schedules".to_owned()));
        }
        for zone in &zones {
            zone.check().map_err(|why| CommandError(why.to_string()))?;
        }
        if !zones.is_empty() {
            self.zones = zones;
            self.refresh_zones(turn);
        }
        runs.read_registry(turn, workspace); // it says which functions events call
        if !std::mem::replace(&mut self.is_active, true) {
            self.last_checked = UnixMillis(i64::MAX); // the clock may have been set back meanwhile
        }
        self.tick_schedules(turn, volumes, runs, workspace);
        Ok(())
    }

    /// Starts the work that is due, and requests a tick for the next due time.
    pub(super) fn tick_schedules(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
    ) {
        if !self.is_active {
            return;
        }
        let now = turn.now;
        let back = self.last_checked.0.saturating_sub(now.0) > MIN_CLOCK_SETBACK_MS;
        self.last_checked = now;
        self.waiting = false;
        let mut order: Vec<(Option<UnixMillis>, String, DocId)> =
            self.by_id.iter().map(|(id, one)| (one.next, one.name.clone(), *id)).collect();
        order.sort();
        for (_, _, id) in order {
            if back {
                self.replan_schedule(turn, id);
            }
            self.begin_due_schedule(turn, volumes, runs, workspace, id);
        }
        let next = self.by_id.values().filter(|one| !one.paused).filter_map(|one| one.next).min();
        if let Some(next) = next {
            let at = if self.waiting { now.plus_ms(VOLUME_WAIT_INTERVAL_MS) } else { next.max(now.plus_ms(1)) };
            turn.wake_at(at);
        }
    }

    fn begin_due_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let Some(one) = self.by_id.get(&id).cloned() else { return };
        let (due, missed, late) = match one.due_status(turn.now) {
            DueStatus::No => return,
            DueStatus::Yes { due, missed } => (due, missed, false),
            DueStatus::Late { due, missed } => (due, missed, true),
        };
        let skip = |why: String| ScheduleOutcome::Skipped { why };
        if late {
            let why = format!("it was due at {}, more than {} ago", iso_timestamp(due.0), duration_text(one.window));
            return self.record_schedule_outcome(turn, id, due, missed, skip(why));
        }
        match volumes.by_id.get(&one.volume) {
            Some(volume) if volume.root.is_some() && !volume.known => {
                self.waiting = true;
                return;
            }
            Some(volume) if volume.root.is_some() => {}
            Some(_) | None => {
                let why = "its volume is no longer on this device".to_owned();
                return self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Failed { why });
            }
        }
        if self.is_schedule_active(runs, id) {
            if let Some(handler) = self.by_id.get_mut(&id)
                && handler.handled_events().is_some()
            {
                handler.next = Some(turn.now.plus_ms(MIN_TRIGGER_INTERVAL_MS)); // its events wait
                return;
            }
            let why = "the last run is still in progress or waiting for your approval".to_owned();
            let begun = one.last.map(|last| last.came);
            self.record_schedule_outcome(turn, id, due, missed, skip(why));
            // Work in progress keeps its state.
            if let (Some(came), Some(last)) = (begun, self.by_id.get_mut(&id).and_then(|one| one.last.as_mut())) {
                last.came = came;
            }
            return;
        }
        self.begin_scheduled(turn, volumes, runs, workspace, (id, &one), (due, missed));
    }

    fn begin_scheduled(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        (id, one): (DocId, &Schedule),
        (due, missed): (UnixMillis, u64),
    ) {
        let begun = self.begin_work(turn, volumes, runs, workspace, id, one);
        match begun {
            Ok(run) => {
                let name = one.name.clone();
                if let Some(events) = self.by_id.get_mut(&id).and_then(Schedule::handled_events) {
                    events.clear();
                }
                turn.notify(Notice::Scheduled { schedule: id, name, due, missed });
                self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Begun { run });
            }
            Err(CommandError(why)) => {
                self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Failed { why })
            }
        }
    }

    fn begin_work(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
        one: &Schedule,
    ) -> Result<Option<DocId>, CommandError> {
        let run = random_id(turn);
        let asking = |session: DocId, text: String, note: Option<DocId>| RunRequest {
            run,
            session,
            volume: one.volume,
            note,
            parent: None,
            text,
            agent: None,
            budget: None,
            allow: ToolPolicy::rules_for_question(&one.allow, run),
            button: None,
            recall: RecallOptions::default(),
            origin: RunOrigin::Schedule { schedule: id },
            plan: None,
            project: None,
            provider: None,
        };
        let question = match one.work.clone() {
            ScheduledWork::Goal { goal, note, agent, budget, mode } => {
                let recall = RecallOptions { mode, ..RecallOptions::default() };
                RunRequest { agent, budget, recall, ..asking(random_id(turn), goal, note) }
            }
            ScheduledWork::Cells { note, cell } => {
                let path = volumes.locate_file(note).map(|(_, path)| path.to_owned());
                let path = path.ok_or_else(|| CommandError("its note is gone".to_owned()))?;
                let (tool, key, value): (BuiltInTool, &str, Value) = match cell {
                    Some(cell) => (BuiltInTool::RunCell, "cell", json!(cell)),
                    None => (BuiltInTool::NoteCommand, "name", json!(CommandId::NoteRunAll.as_str())),
                };
                let mut arguments = Map::new();
                arguments.insert("path".to_owned(), json!(path));
                arguments.insert(key.to_owned(), value);
                let call = ToolCall { id: String::new(), name: tool.to_string(), arguments };
                let title = format!("Schedule {}", one.name);
                let text = format!("{}: {} in {path}.", title, one.work.describe());
                let agent = Some(agent_definition::BUTTON_AGENT.to_owned());
                RunRequest { agent, button: Some((title, call)), ..asking(schedule_session_id(id), text, Some(note)) }
            }
            ScheduledWork::Handler { tool, events } => {
                if events.is_empty() {
                    return Err(CommandError("no event has happened since its last start".to_owned()));
                }
                let title = format!("Schedule {}", one.name);
                let text = format!("{title}: {}.", one.work.describe());
                let arguments = Map::from_iter([("events".to_owned(), Value::Array(events))]);
                let call = ToolCall { id: String::new(), name: tool, arguments };
                let agent = Some(agent_definition::BUTTON_AGENT.to_owned());
                RunRequest { agent, button: Some((title, call)), ..asking(schedule_session_id(id), text, None) }
            }
            ScheduledWork::Consolidate => {
                self.begin_memory_maintenance(turn, volumes, one.volume, MemoryMaintenance::Consolidate, Some(id))?;
                return Ok(None);
            }
            ScheduledWork::Analyze { query } => {
                self.begin_memory_maintenance(turn, volumes, one.volume, MemoryMaintenance::Analyze(query), Some(id))?;
                return Ok(None);
            }
        };
        runs.request_run(turn, volumes, workspace, question)?;
        Ok(Some(run))
    }
}
