//! Schedules as the session keeps them: what is due begins, in a process that stays. All that begins is a run under the
//! same policy as if the user had asked for it there and then; what it may not do by itself waits as an approval.

use super::runs::{Asking, COMMAND};
use super::{Reject, Session, Turn};
use crate::notice::Notice;
use agent::definition;
use agent::memory::trace::iso;
use agent::memory::{Recall, Upkeep};
use agent::policy::Policy;
use agent::schedule::{Came, Due, Last, Schedule, Work};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::disk::Write;
use store::{BlobHash, DocId, Ending, Origin, ToolCall};
use text::time::Time;
use text::zone::Zone;

/// The beginning of the names under which the disk keeps schedules.
pub const SCHEDULES: &str = "schedules/";
/// There are at most so many.
const MOST: usize = 200;
/// A volume that is still being read is waited for in steps of so many milliseconds.
const SOON: i64 = 1_000;
/// A clock that is behind by so many milliseconds was set back.
const BACK: i64 = 1_000;
/// A goal has at most so many bytes.
const GOAL: usize = 100_000;

/// What the session knows of schedules.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) all: BTreeMap<DocId, Schedule>,
    /// Whether what is due begins: this process stays.
    minded: bool,
    /// Whether something is due and waits for its volume to be read.
    waiting: bool,
    /// When was last looked.
    seen: Time,
    /// Clocks, as they are known today.
    zones: Vec<Zone>,
}

/// The session of all runs of a schedule's cells: the same one each time.
fn session_of(schedule: DocId) -> DocId {
    let hash = BlobHash::of(format!("schedule {schedule}").as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.0[..16]);
    DocId(id)
}

fn random(turn: &mut Turn<'_>) -> DocId {
    let mut bytes = [0; 16];
    turn.rng.fill_bytes(&mut bytes);
    DocId::random(bytes)
}

impl Session {
    /// The schedules of this device.
    pub fn schedules(&self) -> impl Iterator<Item = (DocId, &Schedule)> {
        self.planned.all.iter().map(|(id, schedule)| (*id, schedule))
    }

    /// Whether what a schedule began last is still under way, or waits for the user.
    pub fn is_scheduled_now(&self, schedule: DocId) -> bool {
        let last = self.planned.all.get(&schedule).and_then(|one| one.last.as_ref());
        match last.map(|last| &last.came) {
            Some(Came::Begun { run: Some(run) }) => {
                let agents = self.agents();
                let open = |run: &crate::Run| run.is_awake() || run.pending().next().is_some();
                agents.is_asking(*run) || agents.run(*run).is_some_and(open)
            }
            Some(Came::Begun { run: None }) => self.upkeeps.iter().any(|one| one.schedule == Some(schedule)),
            Some(Came::Ended { .. } | Came::Done | Came::Failed { .. } | Came::Skipped { .. }) | None => false,
        }
    }

    /// Whether nothing that a schedule began goes on without the user's word, and nothing is due.
    pub fn schedules_rest(&self) -> bool {
        let works = |run: &crate::Run| run.is_awake() && run.pending().next().is_none();
        !self.planned.waiting
            && self.upkeeps.is_empty()
            && self.errands() == 0
            && !self.agents().has_questions()
            && !self.agents().open_runs().any(works)
    }

    fn keep_schedule(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let value = self.planned.all.get(&id).and_then(|one| serde_json::to_vec(one).ok());
        self.append(turn, vec![Write::Meta { key: format!("{SCHEDULES}{id}"), value }], None);
    }

    pub(super) fn add_schedule(&mut self, turn: &mut Turn<'_>, id: DocId, mut new: Schedule) -> Result<(), Reject> {
        let reject = |why: &str| Err(Reject(why.to_owned()));
        new.name = new.name.trim().to_owned();
        if new.name.is_empty() || new.name.len() > 100 || new.name.contains(char::is_control) {
            return reject("a schedule needs a name of one line, of at most 100 bytes");
        }
        if self.planned.all.values().any(|known| known.name == new.name) || self.planned.all.contains_key(&id) {
            return Err(Reject(format!("there is a schedule called {} already", new.name)));
        }
        if self.planned.all.len() >= MOST {
            return Err(Reject(format!("there are {MOST} schedules already; remove some")));
        }
        if let Some(zone) = &new.zone {
            zone.check().map_err(Reject)?;
        }
        if new.offset.abs() > 18 * 60 || new.window > 3_660 * 86_400 {
            return reject("a clock is at most 18 hours from UTC, and a window at most ten years");
        }
        match &new.work {
            Work::Goal { goal, .. } if goal.trim().is_empty() => return reject("say what is to be done"),
            Work::Goal { goal, .. } if goal.len() > GOAL => return reject("a goal has at most 100 kB"),
            Work::Cells { note, .. } if self.place(*note).is_none() => return reject("there is no such note"),
            Work::Analyze { query } if query.query.trim().is_empty() => return reject("say what memory is asked"),
            Work::Goal { .. } | Work::Cells { .. } | Work::Consolidate | Work::Analyze { .. } => {}
        }
        match self.volumes.get(&new.volume) {
            None => return Err(Reject(format!("there is no volume {}", new.volume))),
            Some(volume) if volume.root.is_none() => return reject("the volume has no folder on this device"),
            Some(_) => {}
        }
        new.last = None;
        new.next = Some(new.upcoming(turn.now).map_err(Reject)?);
        self.planned.all.insert(id, new);
        self.keep_schedule(turn, id);
        self.tick_schedules(turn);
        Ok(())
    }

    pub(super) fn remove_schedule(&mut self, turn: &mut Turn<'_>, id: DocId) -> Result<(), Reject> {
        self.planned.all.remove(&id).ok_or_else(|| Reject("there is no such schedule".to_owned()))?;
        self.keep_schedule(turn, id);
        Ok(())
    }

    /// Lets a schedule rest, or go on: what fell into its rest is not made up for.
    pub(super) fn pause_schedule(&mut self, turn: &mut Turn<'_>, id: DocId, paused: bool) -> Result<(), Reject> {
        let one = self.planned.all.get_mut(&id).ok_or_else(|| Reject("there is no such schedule".to_owned()))?;
        one.paused = paused;
        one.next = one.upcoming(turn.now).ok();
        self.keep_schedule(turn, id);
        self.tick_schedules(turn);
        Ok(())
    }

    /// Begins what a schedule stands for now, whether it is due or not.
    pub(super) fn run_schedule(&mut self, turn: &mut Turn<'_>, id: DocId) -> Result<(), Reject> {
        let one = self.planned.all.get(&id).cloned();
        let one = one.ok_or_else(|| Reject("there is no such schedule".to_owned()))?;
        if self.is_scheduled_now(id) {
            return Err(Reject(format!("the last time of {} is still under way, or waits for you", one.name)));
        }
        let now = turn.now;
        self.begin_scheduled(turn, id, &one, now, 0);
        Ok(())
    }

    /// What is kept of schedules was read.
    pub(super) fn schedules_started(&mut self, turn: &mut Turn<'_>, all: BTreeMap<DocId, Schedule>) {
        self.planned.all = all;
        self.take_zones(turn);
    }

    /// When clocks change is decided anew now and then: schedules go by what is known of their clock today.
    fn take_zones(&mut self, turn: &mut Turn<'_>) {
        let known = |one: &Schedule| {
            let own = one.zone.as_ref()?;
            self.planned.zones.iter().find(|zone| zone.name == own.name && *zone != own).cloned()
        };
        let changed: Vec<(DocId, Zone)> =
            self.planned.all.iter().filter_map(|(id, one)| Some((*id, known(one)?))).collect();
        for (id, zone) in changed {
            let Some(one) = self.planned.all.get_mut(&id) else { continue };
            // What was due already stays due: it is made up for, or left out.
            let due = one.next.filter(|next| *next <= turn.now);
            one.zone = Some(zone);
            one.next = due.or_else(|| one.upcoming(turn.now).ok());
            self.keep_schedule(turn, id);
        }
    }

    /// From now on what is due begins: this process stays. `zones`: clocks, as they are known today.
    pub(super) fn mind_schedules(&mut self, turn: &mut Turn<'_>, zones: Vec<Zone>) -> Result<(), Reject> {
        if zones.len() > MOST + 1 {
            return Err(Reject("more clocks than there are schedules".to_owned()));
        }
        for zone in &zones {
            zone.check().map_err(Reject)?;
        }
        if !zones.is_empty() {
            self.planned.zones = zones;
            self.take_zones(turn);
        }
        if !std::mem::replace(&mut self.planned.minded, true) {
            self.planned.seen = Time(i64::MAX); // the clock may have been set back meanwhile
        }
        self.tick_schedules(turn);
        Ok(())
    }

    /// Begins what is due, and has itself called again when the next is.
    pub(super) fn tick_schedules(&mut self, turn: &mut Turn<'_>) {
        if !self.planned.minded {
            return;
        }
        let now = turn.now;
        let back = self.planned.seen.0.saturating_sub(now.0) > BACK;
        self.planned.seen = now;
        self.planned.waiting = false;
        let mut order: Vec<(Option<Time>, String, DocId)> =
            self.planned.all.iter().map(|(id, one)| (one.next, one.name.clone(), *id)).collect();
        order.sort();
        for (_, _, id) in order {
            if back {
                self.replan(turn, id);
            }
            self.begin_due(turn, id);
        }
        let next = self.planned.all.values().filter(|one| !one.paused).filter_map(|one| one.next).min();
        if let Some(next) = next {
            let at = if self.planned.waiting { now.plus(SOON) } else { next.max(now.plus(1)) };
            self.wake_at(turn, at);
        }
    }

    /// The clock was set back: what is due next may come sooner than was thought.
    fn replan(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(one) = self.planned.all.get_mut(&id) else { return };
        let Ok(upcoming) = one.upcoming(turn.now) else { return };
        if one.next.is_some_and(|next| upcoming < next) {
            one.next = Some(upcoming);
            self.keep_schedule(turn, id);
        }
    }

    fn begin_due(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(one) = self.planned.all.get(&id).cloned() else { return };
        let (due, missed, late) = match one.due(turn.now) {
            Due::No => return,
            Due::Yes { due, missed } => (due, missed, false),
            Due::Late { due, missed } => (due, missed, true),
        };
        let skip = |why: String| Came::Skipped { why };
        if late {
            let why = format!("it was due at {}, more than {} ago", iso(due.0), span(one.window));
            return self.came(turn, id, due, missed, skip(why));
        }
        match self.volumes.get(&one.volume) {
            Some(volume) if volume.root.is_some() && !volume.known => {
                self.planned.waiting = true;
                return;
            }
            Some(volume) if volume.root.is_some() => {}
            Some(_) | None => {
                let why = "its volume is not on this device any more".to_owned();
                return self.came(turn, id, due, missed, Came::Failed { why });
            }
        }
        if self.is_scheduled_now(id) {
            let why = "the last time is still under way, or waits for you".to_owned();
            let begun = one.last.map(|last| last.came);
            self.came(turn, id, due, missed, skip(why));
            // What is under way stays what is known of it.
            if let (Some(came), Some(last)) = (begun, self.planned.all.get_mut(&id).and_then(|one| one.last.as_mut())) {
                last.came = came;
            }
            return;
        }
        self.begin_scheduled(turn, id, &one, due, missed);
    }

    fn begin_scheduled(&mut self, turn: &mut Turn<'_>, id: DocId, one: &Schedule, due: Time, missed: u64) {
        let begun = self.begin_work(turn, id, one);
        match begun {
            Ok(run) => {
                let name = one.name.clone();
                self.notify(turn, Notice::Scheduled { schedule: id, name, due, missed });
                self.came(turn, id, due, missed, Came::Begun { run });
            }
            Err(Reject(why)) => self.came(turn, id, due, missed, Came::Failed { why }),
        }
    }

    /// Keeps what came of a point in time, and when the next is.
    fn came(&mut self, turn: &mut Turn<'_>, id: DocId, due: Time, missed: u64, came: Came) {
        let Some(one) = self.planned.all.get_mut(&id) else { return };
        let why = match &came {
            Came::Skipped { why } | Came::Failed { why } => Some(why.clone()),
            Came::Begun { .. } | Came::Ended { .. } | Came::Done => None,
        };
        one.last = Some(Last { due, at: turn.now, missed, came });
        one.next = one.upcoming(turn.now).ok();
        let name = one.name.clone();
        self.keep_schedule(turn, id);
        if let Some(why) = why {
            self.notify(turn, Notice::Skipped { schedule: id, name, why });
        }
    }

    fn begin_work(&mut self, turn: &mut Turn<'_>, id: DocId, one: &Schedule) -> Result<Option<DocId>, Reject> {
        let run = random(turn);
        let asking = |session: DocId, text: String, note: Option<DocId>| Asking {
            run,
            session,
            volume: one.volume,
            note,
            parent: None,
            text,
            agent: None,
            budget: None,
            allow: Policy::asked(&one.allow, run),
            button: None,
            recall: Recall::default(),
            origin: Origin::Schedule { schedule: id },
            plan: None,
            project: None,
        };
        let question = match one.work.clone() {
            Work::Goal { goal, note, agent, budget, mode } => {
                let recall = Recall { mode, without: Vec::new() };
                Asking { agent, budget, recall, ..asking(random(turn), goal, note) }
            }
            Work::Cells { note, cell } => {
                let path = self.place(note).map(|(_, path)| path.to_owned());
                let path = path.ok_or_else(|| Reject("its note is gone".to_owned()))?;
                let (name, key, value): (&str, &str, Value) = match cell {
                    Some(cell) => ("run_cell", "cell", json!(cell)),
                    None => (COMMAND, "name", json!("note.run_all")),
                };
                let mut arguments = Map::new();
                arguments.insert("path".to_owned(), json!(path));
                arguments.insert(key.to_owned(), value);
                let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
                let title = format!("Schedule {}", one.name);
                let text = format!("{}: {} in {path}.", title, one.work.words());
                let agent = Some(definition::BUTTON.to_owned());
                Asking { agent, button: Some((title, call)), ..asking(session_of(id), text, Some(note)) }
            }
            Work::Consolidate => {
                self.begin_upkeep(turn, one.volume, Upkeep::Consolidate, Some(id))?;
                return Ok(None);
            }
            Work::Analyze { query } => {
                self.begin_upkeep(turn, one.volume, Upkeep::Analyze(query), Some(id))?;
                return Ok(None);
            }
        };
        self.ask(turn, question)?;
        Ok(Some(run))
    }

    /// What a schedule has begun is over.
    pub(super) fn schedule_came(&mut self, turn: &mut Turn<'_>, id: DocId, came: Came) {
        let Some(one) = self.planned.all.get_mut(&id) else { return };
        let name = one.name.clone();
        let Some(last) = one.last.as_mut() else { return };
        let why = if let Came::Failed { why } = &came { Some(why.clone()) } else { None };
        last.came = came;
        self.keep_schedule(turn, id);
        if let Some(why) = why {
            self.notify(turn, Notice::Skipped { schedule: id, name, why });
        }
    }

    /// The end of a run that a schedule has begun.
    pub(super) fn schedule_ended(&mut self, turn: &mut Turn<'_>, run: DocId, origin: Origin, how: Ending) {
        if let Origin::Schedule { schedule } = origin {
            self.schedule_came(turn, schedule, Came::Ended { run, how });
        }
    }
}

/// So many seconds in words.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
