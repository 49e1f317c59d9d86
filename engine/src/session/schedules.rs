//! Schedules: starts work that's due, in a process that stays open. It starts runs under the same policy as a request
//! of the user; calls that aren't allowed wait as approvals.

use super::runs::NOTE_COMMAND_TOOL;
use crate::notice::Notice;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::Session;
use crate::session::state::runs::RunRequest;
use agent::agent_definition;
use agent::memory::trace::iso_timestamp;
use agent::memory::{MemoryMaintenance, RecallOptions};
use agent::policy::ToolPolicy;
use agent::schedule::{DueStatus, LastOccurrence, Schedule, ScheduleOutcome, ScheduledWork};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::disk::RowWrite;
use store::{BlobHash, DocId, RunEnding, RunOrigin, ToolCall};
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// The beginning of the names under which the disk keeps schedules.
pub const SCHEDULE_KEY_PREFIX: &str = "schedules/";
/// Maximum number of schedules.
const MAX_SCHEDULES: usize = 200;
/// Retry interval while a volume is still being read.
const VOLUME_WAIT_INTERVAL_MS: i64 = 1_000;
/// A clock that goes back by this much was set back.
const MIN_CLOCK_SETBACK_MS: i64 = 1_000;
/// Maximum length of a goal in bytes.
const MAX_SCHEDULE_GOAL_BYTES: usize = 100_000;

/// The session of all runs of a schedule's cells: the same one each time.
fn schedule_session_id(schedule: DocId) -> DocId {
    let hash = BlobHash::of(format!("schedule {schedule}").as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.0[..16]);
    DocId(id)
}

fn random_id(turn: &mut ApplyContext<'_>) -> DocId {
    let mut bytes = [0; 16];
    turn.rng.fill_bytes(&mut bytes);
    DocId::random(bytes)
}

impl Session {
    /// The schedules of this device.
    pub fn schedules(&self) -> impl Iterator<Item = (DocId, &Schedule)> {
        self.schedules_state.schedules.iter().map(|(id, schedule)| (*id, schedule))
    }

    /// Whether the last work of a schedule is still in progress or waits for the user.
    pub fn is_schedule_active(&self, schedule: DocId) -> bool {
        let last = self.schedules_state.schedules.get(&schedule).and_then(|one| one.last.as_ref());
        match last.map(|last| &last.came) {
            Some(ScheduleOutcome::Begun { run: Some(run) }) => {
                let agents = self.agents();
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

    /// Whether no scheduled work can continue without the user, and nothing is due.
    pub fn are_schedules_idle(&self) -> bool {
        let works = |run: &crate::session::state::agent_run::AgentRun| run.is_awake() && run.pending().next().is_none();
        !self.schedules_state.waiting
            && self.pending_maintenance.is_empty()
            && self.pending_note_jobs() == 0
            && !self.agents().has_run_requests()
            && !self.agents().open_runs().any(works)
    }

    fn save_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let value = self.schedules_state.schedules.get(&id).and_then(|one| serde_json::to_vec(one).ok());
        self.append_writes(turn, vec![RowWrite::Meta { key: format!("{SCHEDULE_KEY_PREFIX}{id}"), value }], None);
    }

    pub(super) fn add_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        mut new: Schedule,
    ) -> Result<(), CommandError> {
        let reject = |why: &str| Err(CommandError(why.to_owned()));
        new.name = new.name.trim().to_owned();
        if new.name.is_empty() || new.name.len() > 100 || new.name.contains(char::is_control) {
            return reject("a schedule needs a name of one line, of at most 100 bytes");
        }
        if self.schedules_state.schedules.values().any(|known| known.name == new.name)
            || self.schedules_state.schedules.contains_key(&id)
        {
            return Err(CommandError(format!("there is a schedule called {} already", new.name)));
        }
        if self.schedules_state.schedules.len() >= MAX_SCHEDULES {
            return Err(CommandError(format!("there are {MAX_SCHEDULES} schedules already; remove some")));
        }
        if let Some(zone) = &new.zone {
            zone.check().map_err(CommandError)?;
        }
        if new.offset.abs() > 18 * 60 || new.window > 3_660 * 86_400 {
            return reject("a clock is at most 18 hours from UTC, and a window at most ten years");
        }
        match &new.work {
            ScheduledWork::Goal { goal, .. } if goal.trim().is_empty() => return reject("enter a goal"),
            ScheduledWork::Goal { goal, .. } if goal.len() > MAX_SCHEDULE_GOAL_BYTES => {
                return reject("a goal has at most 100 kB");
            }
            ScheduledWork::Cells { note, .. } if self.locate_file(*note).is_none() => {
                return reject("no such note");
            }
            ScheduledWork::Analyze { query } if query.query.trim().is_empty() => {
                return reject("say what memory is asked");
            }
            ScheduledWork::Goal { .. }
            | ScheduledWork::Cells { .. }
            | ScheduledWork::Consolidate
            | ScheduledWork::Analyze { .. } => {}
        }
        match self.volumes.get(&new.volume) {
            None => return Err(CommandError(format!("there is no volume {}", new.volume))),
            Some(volume) if volume.root.is_none() => return reject("the volume has no folder on this device"),
            Some(_) => {}
        }
        new.last = None;
        new.next = Some(new.next_upcoming(turn.now).map_err(CommandError)?);
        self.schedules_state.schedules.insert(id, new);
        self.save_schedule(turn, id);
        self.tick_schedules(turn);
        Ok(())
    }

    pub(super) fn remove_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        self.schedules_state.schedules.remove(&id).ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        self.save_schedule(turn, id);
        Ok(())
    }

    /// Pauses or resumes a schedule. Times missed during a pause aren't made up for.
    pub(super) fn pause_schedule(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        paused: bool,
    ) -> Result<(), CommandError> {
        let one =
            self.schedules_state.schedules.get_mut(&id).ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        one.paused = paused;
        one.next = one.next_upcoming(turn.now).ok();
        self.save_schedule(turn, id);
        self.tick_schedules(turn);
        Ok(())
    }

    /// Starts a schedule's work now, whether it's due or not.
    pub(super) fn run_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let one = self.schedules_state.schedules.get(&id).cloned();
        let one = one.ok_or_else(|| CommandError("no such schedule".to_owned()))?;
        if self.is_schedule_active(id) {
            return Err(CommandError(format!(
                "the last run of {} is still in progress or waiting for your approval",
                one.name
            )));
        }
        let now = turn.now;
        self.begin_scheduled(turn, id, &one, now, 0);
        Ok(())
    }

    /// The stored schedules were read.
    pub(super) fn schedules_started(&mut self, turn: &mut ApplyContext<'_>, all: BTreeMap<DocId, Schedule>) {
        self.schedules_state.schedules = all;
        self.refresh_zones(turn);
    }

    /// Rules of time zones change now and then; schedules use the rules known today.
    fn refresh_zones(&mut self, turn: &mut ApplyContext<'_>) {
        let known = |one: &Schedule| {
            let own = one.zone.as_ref()?;
            self.schedules_state.zones.iter().find(|zone| zone.name == own.name && *zone != own).cloned()
        };
        let changed: Vec<(DocId, ZoneClock)> =
            self.schedules_state.schedules.iter().filter_map(|(id, one)| Some((*id, known(one)?))).collect();
        for (id, zone) in changed {
            let Some(one) = self.schedules_state.schedules.get_mut(&id) else { continue };
            // What was due already stays due: it is made up for, or left out.
            let due = one.next.filter(|next| *next <= turn.now);
            one.zone = Some(zone);
            one.next = due.or_else(|| one.next_upcoming(turn.now).ok());
            self.save_schedule(turn, id);
        }
    }

    /// From now on what is due begins: this process stays. `zones`: clocks, as they are known today.
    pub(super) fn start_scheduler(
        &mut self,
        turn: &mut ApplyContext<'_>,
        zones: Vec<ZoneClock>,
    ) -> Result<(), CommandError> {
        if zones.len() > MAX_SCHEDULES + 1 {
            return Err(CommandError("more clocks than there are schedules".to_owned()));
        }
        for zone in &zones {
            zone.check().map_err(CommandError)?;
        }
        if !zones.is_empty() {
            self.schedules_state.zones = zones;
            self.refresh_zones(turn);
        }
        if !std::mem::replace(&mut self.schedules_state.is_active, true) {
            self.schedules_state.last_checked = UnixMillis(i64::MAX); // the clock may have been set back meanwhile
        }
        self.tick_schedules(turn);
        Ok(())
    }

    /// Begins what is due, and has itself called again when the next is.
    pub(super) fn tick_schedules(&mut self, turn: &mut ApplyContext<'_>) {
        if !self.schedules_state.is_active {
            return;
        }
        let now = turn.now;
        let back = self.schedules_state.last_checked.0.saturating_sub(now.0) > MIN_CLOCK_SETBACK_MS;
        self.schedules_state.last_checked = now;
        self.schedules_state.waiting = false;
        let mut order: Vec<(Option<UnixMillis>, String, DocId)> =
            self.schedules_state.schedules.iter().map(|(id, one)| (one.next, one.name.clone(), *id)).collect();
        order.sort();
        for (_, _, id) in order {
            if back {
                self.replan_schedule(turn, id);
            }
            self.begin_due_schedule(turn, id);
        }
        let next = self.schedules_state.schedules.values().filter(|one| !one.paused).filter_map(|one| one.next).min();
        if let Some(next) = next {
            let at = if self.schedules_state.waiting {
                now.plus_ms(VOLUME_WAIT_INTERVAL_MS)
            } else {
                next.max(now.plus_ms(1))
            };
            self.wake_at(turn, at);
        }
    }

    /// The clock was set back: what is due next may come sooner than was thought.
    fn replan_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(one) = self.schedules_state.schedules.get_mut(&id) else { return };
        let Ok(upcoming) = one.next_upcoming(turn.now) else { return };
        if one.next.is_some_and(|next| upcoming < next) {
            one.next = Some(upcoming);
            self.save_schedule(turn, id);
        }
    }

    fn begin_due_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(one) = self.schedules_state.schedules.get(&id).cloned() else { return };
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
        match self.volumes.get(&one.volume) {
            Some(volume) if volume.root.is_some() && !volume.known => {
                self.schedules_state.waiting = true;
                return;
            }
            Some(volume) if volume.root.is_some() => {}
            Some(_) | None => {
                let why = "its volume is no longer on this device".to_owned();
                return self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Failed { why });
            }
        }
        if self.is_schedule_active(id) {
            let why = "the last run is still in progress or waiting for your approval".to_owned();
            let begun = one.last.map(|last| last.came);
            self.record_schedule_outcome(turn, id, due, missed, skip(why));
            // Work in progress keeps its state.
            if let (Some(came), Some(last)) =
                (begun, self.schedules_state.schedules.get_mut(&id).and_then(|one| one.last.as_mut()))
            {
                last.came = came;
            }
            return;
        }
        self.begin_scheduled(turn, id, &one, due, missed);
    }

    fn begin_scheduled(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        one: &Schedule,
        due: UnixMillis,
        missed: u64,
    ) {
        let begun = self.begin_work(turn, id, one);
        match begun {
            Ok(run) => {
                let name = one.name.clone();
                self.notify(turn, Notice::Scheduled { schedule: id, name, due, missed });
                self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Begun { run });
            }
            Err(CommandError(why)) => {
                self.record_schedule_outcome(turn, id, due, missed, ScheduleOutcome::Failed { why })
            }
        }
    }

    /// Records the outcome of an occurrence and the next due time.
    fn record_schedule_outcome(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        due: UnixMillis,
        missed: u64,
        came: ScheduleOutcome,
    ) {
        let Some(one) = self.schedules_state.schedules.get_mut(&id) else { return };
        let why = match &came {
            ScheduleOutcome::Skipped { why } | ScheduleOutcome::Failed { why } => Some(why.clone()),
            ScheduleOutcome::Begun { .. } | ScheduleOutcome::Ended { .. } | ScheduleOutcome::Done => None,
        };
        one.last = Some(LastOccurrence { due, at: turn.now, missed, came });
        one.next = one.next_upcoming(turn.now).ok();
        let name = one.name.clone();
        self.save_schedule(turn, id);
        if let Some(why) = why {
            self.notify(turn, Notice::Skipped { schedule: id, name, why });
        }
    }

    fn begin_work(
        &mut self,
        turn: &mut ApplyContext<'_>,
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
        };
        let question = match one.work.clone() {
            ScheduledWork::Goal { goal, note, agent, budget, mode } => {
                let recall = RecallOptions { mode, without: Vec::new() };
                RunRequest { agent, budget, recall, ..asking(random_id(turn), goal, note) }
            }
            ScheduledWork::Cells { note, cell } => {
                let path = self.locate_file(note).map(|(_, path)| path.to_owned());
                let path = path.ok_or_else(|| CommandError("its note is gone".to_owned()))?;
                let (name, key, value): (&str, &str, Value) = match cell {
                    Some(cell) => ("run_cell", "cell", json!(cell)),
                    None => (NOTE_COMMAND_TOOL, "name", json!("note.run_all")),
                };
                let mut arguments = Map::new();
                arguments.insert("path".to_owned(), json!(path));
                arguments.insert(key.to_owned(), value);
                let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
                let title = format!("Schedule {}", one.name);
                let text = format!("{}: {} in {path}.", title, one.work.describe());
                let agent = Some(agent_definition::BUTTON_AGENT.to_owned());
                RunRequest { agent, button: Some((title, call)), ..asking(schedule_session_id(id), text, Some(note)) }
            }
            ScheduledWork::Consolidate => {
                self.begin_memory_maintenance(turn, one.volume, MemoryMaintenance::Consolidate, Some(id))?;
                return Ok(None);
            }
            ScheduledWork::Analyze { query } => {
                self.begin_memory_maintenance(turn, one.volume, MemoryMaintenance::Analyze(query), Some(id))?;
                return Ok(None);
            }
        };
        self.request_run(turn, question)?;
        Ok(Some(run))
    }

    /// What a schedule has begun is over.
    pub(super) fn finish_schedule(&mut self, turn: &mut ApplyContext<'_>, id: DocId, came: ScheduleOutcome) {
        let Some(one) = self.schedules_state.schedules.get_mut(&id) else { return };
        let name = one.name.clone();
        let Some(last) = one.last.as_mut() else { return };
        let why = if let ScheduleOutcome::Failed { why } = &came { Some(why.clone()) } else { None };
        last.came = came;
        self.save_schedule(turn, id);
        if let Some(why) = why {
            self.notify(turn, Notice::Skipped { schedule: id, name, why });
        }
    }

    /// The end of a run that a schedule has begun.
    pub(super) fn schedule_ended(
        &mut self,
        turn: &mut ApplyContext<'_>,
        run: DocId,
        origin: RunOrigin,
        how: RunEnding,
    ) {
        if let RunOrigin::Schedule { schedule } = origin {
            self.finish_schedule(turn, schedule, ScheduleOutcome::Ended { run, how });
        }
    }
}

/// Formats seconds for the user.
fn duration_text(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
