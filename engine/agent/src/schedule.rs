//! Schedules: work started by cron expressions, and how missed times are handled. Pure: the time is an argument.
//!
//! If times were missed (the program was closed, the machine slept, the clock was set), only the last one counts. If
//! it's within the schedule's window, it's made up for, once; otherwise it's skipped, and reported. Nothing starts
//! twice for the same time, even if the clock is set back. If it's set back by more than a day, the earlier time was
//! wrong, and the schedule restarts from now.
//!
//! Instead of a time, a schedule may name an event: `on change Inbox/*`, `on failed run`, or any that starts work, as
//! in `on event RUN_ENDED: done`. It then starts soon after the event, at most once in [`MIN_TRIGGER_INTERVAL_MS`], and
//! is paused if it starts too often. Functions of plugins that events call are such schedules.
//!
//! Expressions use local time including summer time. A time skipped by the change starts right after it. A time that
//! occurs twice starts at the first. Intervals of minutes or hours continue through both changes.

use crate::event_filter::{EventFilter, EventFilterError, WorkspaceEvent};
use crate::memory::ReplayMode;
use crate::memory::insight::MemoryQuery;
use crate::policy_rule::matches_wildcard;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Ordering;
use store::{DocId, RunEnding, UserTool};
use text::task::CalendarDay;
use text::time::UnixMillis;
use text::time_zone::ZoneClock;

/// Default maximum age in seconds of a missed occurrence that is still made up for.
pub const DEFAULT_CATCH_UP_SECS: u64 = 12 * 3_600;
/// Explains missed times and summer time to the author of a schedule.
pub const CATCH_UP_POLICY_TEXT: &str = "If times were missed while nothing was open, only the last one is made up \
for, and only if it's no more than 12 hours ago (or as the schedule says); otherwise it's skipped, and the schedule \
says so. A time skipped by the change to summer time starts right after the gap; one that occurs twice in autumn \
starts once, at the first. Instead of a time, an event can start it: “on change Inbox/*” or “on failed run”.";
/// If the clock is set back by more than this, in milliseconds, the earlier time was wrong.
const MAX_TRUSTED_SETBACK_MS: i64 = 86_400_000;
/// Maximum length of an expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 200;
/// Delay in milliseconds between an event and the work that it starts, so that a burst of events starts it once.
const TRIGGER_DELAY_MS: i64 = 2_000;
/// Minimum time in milliseconds between two starts by events.
pub const MIN_TRIGGER_INTERVAL_MS: i64 = 10_000;
/// A schedule that starts more often than this in an hour is paused, because it may have started itself.
const MAX_TRIGGERS_PER_HOUR: usize = 30;
const HOUR_MS: i64 = 3_600_000;
/// Maximum number of missed times counted.
const MAX_COUNTED_MISSES: u64 = 10_000;

/// Work that a schedule starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ScheduledWork {
    /// Gives a goal to an agent.
    Goal {
        /// The goal for the agent.
        goal: String,
        /// The note that the goal is about.
        #[serde(default)]
        note: Option<DocId>,
        /// Name of the agent; `None` chooses it by the goal, with the assistant as the fallback.
        #[serde(default)]
        agent: Option<String>,
        /// Maximum cost of each run in US dollars.
        #[serde(default)]
        budget: Option<f64>,
        /// Whether a trace may be replayed for the goal.
        #[serde(default)]
        mode: ReplayMode,
    },
    /// Runs cells of a note.
    Cells {
        /// The note whose cells run.
        note: DocId,
        /// Number of the cell, from 1; `None` runs all cells.
        #[serde(default)]
        cell: Option<u64>,
    },
    /// Consolidates memory: recurring goals and proven practices become long-term notes.
    Consolidate,
    /// Queries memory and stores the answer as a note.
    Analyze {
        /// The query.
        query: MemoryQuery,
    },
    /// Calls a function of a plugin with the events that happened.
    Handler {
        /// Name of the tool that the function is.
        tool: String,
        /// Events that it wasn't called with yet, oldest first.
        #[serde(default)]
        events: Vec<Value>,
    },
}

impl ScheduledWork {
    /// Describes the work on one line.
    pub fn describe(&self) -> String {
        match self {
            ScheduledWork::Goal { goal, .. } => goal.lines().next().unwrap_or_default().to_owned(),
            ScheduledWork::Cells { cell: Some(cell), .. } => format!("run cell {cell}"),
            ScheduledWork::Cells { cell: None, .. } => "run all cells".to_owned(),
            ScheduledWork::Consolidate => "consolidate memory".to_owned(),
            ScheduledWork::Analyze { query } => format!("analyze: {}", query.query),
            ScheduledWork::Handler { tool, .. } => format!("call {tool}"),
        }
    }
}

/// Outcome of an occurrence of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "snake_case")]
pub enum ScheduleOutcome {
    /// The work has started.
    Begun {
        /// The run; `None` if the work has no run.
        run: Option<DocId>,
    },
    /// The run has ended.
    Ended {
        /// The run that ended.
        run: DocId,
        /// How the run ended.
        how: RunEnding,
    },
    /// The work is done, without a run.
    Done,
    /// The work couldn't start.
    Failed {
        /// The reason, as a sentence.
        why: String,
    },
    /// The occurrence was skipped.
    Skipped {
        /// The reason, as a sentence.
        why: String,
    },
}

impl ScheduleOutcome {
    /// Describes the outcome in a few words.
    pub fn describe(&self) -> String {
        match self {
            ScheduleOutcome::Begun { .. } => "began".to_owned(),
            ScheduleOutcome::Done | ScheduleOutcome::Ended { how: RunEnding::Done, .. } => "done".to_owned(),
            ScheduleOutcome::Ended { how, .. } => format!("{how:?}").to_lowercase(),
            ScheduleOutcome::Failed { why } => format!("could not begin: {why}"),
            ScheduleOutcome::Skipped { why } => format!("left out: {why}"),
        }
    }
}

/// The last time that a schedule was due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastOccurrence {
    /// When it was due.
    pub due: UnixMillis,
    /// When the program noticed that it was due.
    pub at: UnixMillis,
    /// Number of missed occurrences before it.
    pub missed: u64,
    /// The outcome.
    pub came: ScheduleOutcome,
}

impl LastOccurrence {
    /// Describes the outcome, and the missed times before it.
    pub fn describe(&self) -> String {
        let missed = if self.missed > 0 { format!(" ({} missed)", self.missed) } else { String::new() };
        format!("{}{missed}", self.came.describe())
    }
}

/// Formats seconds for the user.
pub fn duration_text(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Returns an unused name made from the first words of the work.
pub fn unused_name(work: &ScheduledWork, taken: &[&str]) -> String {
    let said = work.describe().to_lowercase();
    let words = said.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let base: String = words.take(4).collect::<Vec<_>>().join("-").chars().take(24).collect();
    let base = match work {
        ScheduledWork::Handler { tool, .. } => tool.clone(),
        _ if base.is_empty() => "schedule".to_owned(),
        _ => base,
    };
    let mut name = base.clone();
    let mut number = 2;
    while taken.contains(&name.as_str()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

/// A schedule, stored on this device. Each device has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Name that the user gave it.
    pub name: String,
    /// The cron expression (minute, hour, day of the month, month, day of the week), or an event as in
    /// [`ScheduleTrigger::parse`].
    pub when: String,
    /// Fixed offset from UTC in minutes, used if `zone` is `None`.
    #[serde(default)]
    pub offset: i32,
    /// Time zone with its summer time; `None` uses `offset`.
    #[serde(default)]
    pub zone: Option<ZoneClock>,
    /// The volume that the schedule works in.
    pub volume: DocId,
    /// The work that it starts.
    pub work: ScheduledWork,
    /// Policy patterns that the user allowed for its runs when creating it.
    #[serde(default)]
    pub allow: Vec<String>,
    /// A missed occurrence is made up for within this many seconds.
    pub window: u64,
    /// Whether the schedule is paused.
    #[serde(default)]
    pub paused: bool,
    /// Next due time; `None` if there's none.
    #[serde(default)]
    pub next: Option<UnixMillis>,
    /// The last occurrence; `None` before the first.
    #[serde(default)]
    pub last: Option<LastOccurrence>,
    /// When events started it within the last hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggered: Vec<UnixMillis>,
}

/// An event that starts a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleTrigger {
    /// A file of the volume was created, changed or removed, but not by an agent.
    FileChange {
        /// Pattern for the file's path, in which `*` matches any text.
        pattern: String,
    },
    /// A run of an agent in the volume failed.
    FailedRun,
    /// An event of the volume that one of the filters lets through.
    Events {
        /// The filters.
        filters: Vec<EventFilter>,
    },
}

impl ScheduleTrigger {
    /// Parses `on change PATTERN`, `on failed run`, or `on event` with filters between `;`. Returns `None` if the text
    /// doesn't begin with `on`.
    ///
    /// # Errors
    /// Returns an error if it begins with `on` and isn't one of these.
    pub fn parse(when: &str) -> Result<Option<ScheduleTrigger>, ScheduleTimeError> {
        let Some(event) = when.trim().strip_prefix("on ") else { return Ok(None) };
        let event = event.trim();
        if event == "failed run" {
            return Ok(Some(ScheduleTrigger::FailedRun));
        }
        if let Some(filters) = event.strip_prefix("event ") {
            return Ok(Some(ScheduleTrigger::Events { filters: EventFilter::parse_starting(filters)? }));
        }
        let pattern = event.strip_prefix("change ").map(|pattern| pattern.trim().trim_start_matches("./"));
        let shown = || when.chars().take(MAX_EXPRESSION_BYTES).collect();
        match pattern.filter(|pattern| !pattern.is_empty()) {
            Some(_) if when.len() > MAX_EXPRESSION_BYTES => Err(ScheduleTimeError::TooLong),
            Some(pattern) if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") => {
                Err(ScheduleTimeError::OutsideVolume { when: shown() })
            }
            Some(pattern) => Ok(Some(ScheduleTrigger::FileChange { pattern: pattern.to_owned() })),
            None => Err(ScheduleTimeError::NoEvent { when: shown() }),
        }
    }

    /// Returns whether the event starts the schedule.
    pub fn is_started_by(&self, event: &WorkspaceEvent) -> bool {
        match self {
            ScheduleTrigger::FileChange { pattern } => {
                event.changed_file().is_some_and(|path| matches_wildcard(pattern, path))
            }
            ScheduleTrigger::FailedRun => event.is_failed_run(),
            ScheduleTrigger::Events { filters } => filters.iter().any(|filter| filter.fits(event)),
        }
    }

    /// Returns whether changed files can start the schedule.
    pub fn waits_for_files(&self) -> bool {
        match self {
            ScheduleTrigger::FileChange { .. } => true,
            ScheduleTrigger::FailedRun => false,
            ScheduleTrigger::Events { filters } => filters.iter().any(EventFilter::is_for_files),
        }
    }

    /// Returns whether steps of runs can start the schedule.
    pub fn waits_for_steps(&self) -> bool {
        matches!(self, ScheduleTrigger::Events { filters } if filters.iter().any(EventFilter::is_for_steps))
    }
}

/// Whether a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueStatus {
    /// The schedule isn't due.
    No,
    /// The work starts now.
    Yes {
        /// The time it was due.
        due: UnixMillis,
        /// Number of earlier occurrences that were missed.
        missed: u64,
    },
    /// The occurrence is too long ago and is skipped.
    Late {
        /// The time it was due.
        due: UnixMillis,
        /// Number of earlier occurrences that were missed.
        missed: u64,
    },
}

/// A point in time, in seconds since 1970, with a time zone that converts it to wall-clock time.
#[derive(Clone, Copy, Debug)]
struct WallClockTime<'a> {
    at: i64,
    zone: &'a ZoneClock,
}

impl CronDateTime for WallClockTime<'_> {
    fn to_civil(&self) -> CivilDateTime {
        let wall = self.wall_seconds();
        let (year, month, day) = CalendarDay(wall.div_euclid(86_400)).date();
        let part = |number: i64| u32::try_from(number).unwrap_or(0);
        let seconds = wall.rem_euclid(86_400);
        let date = CivilDate::from_parts_unchecked(i32::try_from(year).unwrap_or(0), part(month), part(day));
        let time = CivilTime::from_parts_unchecked(part(seconds / 3_600), part(seconds / 60 % 60), part(seconds % 60));
        CivilDateTime::new(date, time)
    }

    fn civil_weekday(&self) -> Weekday {
        let monday = CalendarDay(self.wall_seconds().div_euclid(86_400)).weekday();
        Weekday::from_days_from_sunday(u32::try_from(monday + 1).unwrap_or(0))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let day = CalendarDay::from_date(i64::from(civil.year()), i64::from(civil.month()), i64::from(civil.day()));
        let time = i64::from(civil.hour() * 3_600 + civil.minute() * 60 + civil.second());
        let at = |at: i64| WallClockTime { at, ..*self };
        Ok(match self.zone.instants_showing(day.0 * 86_400 + time).as_slice() {
            [] => Resolution::Gap,
            [only] => Resolution::Single(at(*only)),
            [first, .., last] => Resolution::Ambiguous(at(*first), at(*last)),
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        Some(WallClockTime { at: self.at.checked_add(seconds)?, ..*self })
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

impl WallClockTime<'_> {
    /// Returns the wall-clock time as seconds since 1970.
    fn wall_seconds(&self) -> i64 {
        self.at + i64::from(self.zone.offset_at(self.at))
    }

    fn to_time(self) -> UnixMillis {
        UnixMillis(self.at.saturating_mul(1_000))
    }
}

/// Why a schedule has no next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleTimeError {
    /// The expression is longer than `MAX_EXPRESSION_BYTES`.
    #[error("a cron expression has at most {MAX_EXPRESSION_BYTES} bytes")]
    TooLong,
    /// The expression isn't a valid cron expression.
    #[error("“{when}” is no cron expression of minute, hour, day, month and weekday, as in “0 9 * * 1-5”: {why}")]
    NotCron {
        /// The expression.
        when: String,
        /// The parser's message.
        why: String,
    },
    /// The pattern is for files that no volume can have.
    #[error("“{when}” never happens: files are named from the volume's folder, as in “on change Inbox/*”")]
    OutsideVolume {
        /// The text.
        when: String,
    },
    /// The text names no event that starts a schedule.
    #[error("“{when}” names no event; write “on change Inbox/*”, “on failed run” or “on event RUN_ENDED: done”")]
    NoEvent {
        /// The text.
        when: String,
    },
    /// A filter isn't one, or lets no event through that starts work.
    #[error(transparent)]
    InvalidEvent(#[from] EventFilterError),
    /// The expression never occurs.
    #[error("“{when}” never comes")]
    Never {
        /// The expression.
        when: String,
    },
}

/// Parses an expression: five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
fn parse_cron(when: &str) -> Result<Cron, ScheduleTimeError> {
    if when.len() > MAX_EXPRESSION_BYTES {
        return Err(ScheduleTimeError::TooLong);
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(when).map_err(|error| ScheduleTimeError::NotCron { when: when.to_owned(), why: cron_fault(&error) })
}

/// Says what is wrong with a cron expression, without names of the parser's own.
fn cron_fault(error: &CronError) -> String {
    let text = match error {
        CronError::EmptyPattern => "it is empty",
        CronError::InvalidPattern(why) | CronError::IllegalCharacters(why) | CronError::ComponentError(why) => why,
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => {
            "it names no time that comes"
        }
    };
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + letters.as_str())
}

impl Schedule {
    /// Returns the schedule that calls a function of a plugin for the events of a volume. Approving the function allows
    /// these calls.
    pub fn for_handler(tool: &UserTool, volume: DocId) -> Schedule {
        Schedule {
            name: tool.name.clone(),
            when: format!("on event {}", tool.event),
            offset: 0,
            zone: None,
            volume,
            work: ScheduledWork::Handler { tool: tool.name.clone(), events: Vec::new() },
            allow: vec![tool.name.clone()],
            window: DEFAULT_CATCH_UP_SECS,
            paused: false,
            next: None,
            last: None,
            triggered: Vec::new(),
        }
    }

    /// Returns the events that its function wasn't called with yet; `None` if it calls none.
    pub fn handled_events(&mut self) -> Option<&mut Vec<Value>> {
        if let ScheduledWork::Handler { events, .. } = &mut self.work { Some(events) } else { None }
    }

    /// Returns the time zone of the schedule.
    pub fn zone_clock(&self) -> ZoneClock {
        match &self.zone {
            Some(zone) => zone.clone(),
            None if self.offset == 0 => ZoneClock::fixed("UTC", 0),
            None => {
                let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.abs());
                ZoneClock::fixed(
                    &format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
                    self.offset.saturating_mul(60),
                )
            }
        }
    }

    /// Returns the event that starts the schedule, or its expression and time zone.
    pub fn when_text(&self) -> String {
        match ScheduleTrigger::parse(&self.when) {
            Ok(Some(_)) => self.when.clone(),
            Ok(None) | Err(_) => format!("{} ({})", self.when, self.zone_clock().name),
        }
    }

    /// Returns whether an event starts the schedule.
    pub fn waits_for_event(&self) -> bool {
        matches!(ScheduleTrigger::parse(&self.when), Ok(Some(_)))
    }

    /// Returns the first occurrence after `time`.
    ///
    /// # Errors
    /// Returns an error if the expression is invalid or never occurs.
    pub fn next_after(&self, time: UnixMillis) -> Result<UnixMillis, ScheduleTimeError> {
        let zone = self.zone_clock();
        let from = WallClockTime { at: time.as_seconds(), zone: &zone };
        let found = parse_cron(&self.when)?.find_next_occurrence(&from, false);
        found.map(|wall| wall.to_time()).map_err(|_| ScheduleTimeError::Never { when: self.when.clone() })
    }

    /// Returns the next occurrence after `now`, without those that have already been due; `None` if an event starts the
    /// schedule.
    ///
    /// # Errors
    /// Returns the errors of [`Schedule::next_after`].
    pub fn next_upcoming(&self, now: UnixMillis) -> Result<Option<UnixMillis>, ScheduleTimeError> {
        if ScheduleTrigger::parse(&self.when)?.is_some() {
            return Ok(None);
        }
        let last = self.last.as_ref().map(|last| last.due).filter(|due| due.0 - now.0 <= MAX_TRUSTED_SETBACK_MS);
        self.next_after(last.map_or(now, |due| due.max(now))).map(Some)
    }

    /// Makes the schedule due because its event happened. Returns `false` if it starts too often; it's paused then.
    pub fn trigger(&mut self, now: UnixMillis) -> bool {
        self.triggered.retain(|at| (0..HOUR_MS).contains(&now.ms_since(*at)));
        if self.triggered.len() >= MAX_TRIGGERS_PER_HOUR {
            self.paused = true;
            self.next = None;
            self.triggered.clear();
            return false;
        }
        if self.next.is_none() {
            let earliest = self.triggered.last().map(|last| last.plus_ms(MIN_TRIGGER_INTERVAL_MS));
            let next = now.plus_ms(TRIGGER_DELAY_MS);
            let next = earliest.map_or(next, |earliest| earliest.max(next));
            self.next = Some(next);
            self.triggered.push(next);
        }
        true
    }

    /// Returns whether the schedule is due, and how many earlier occurrences were missed.
    pub fn due_status(&self, now: UnixMillis) -> DueStatus {
        let Some(next) = self.next.filter(|next| *next <= now && !self.paused) else { return DueStatus::No };
        if self.waits_for_event() {
            return DueStatus::Yes { due: next, missed: 0 };
        }
        let Ok(cron) = parse_cron(&self.when) else { return DueStatus::No };
        let zone = self.zone_clock();
        let wall = |time: UnixMillis| WallClockTime { at: time.as_seconds(), zone: &zone };
        let due = cron.find_previous_occurrence(&wall(now), true).map_or(next, |wall| wall.to_time()).max(next);
        let mut missed = 0;
        let mut at = next;
        while at < due && missed < MAX_COUNTED_MISSES {
            missed += 1;
            at = cron.find_next_occurrence(&wall(at), false).map_or(due, |wall| wall.to_time());
        }
        let late = u64::try_from(now.ms_since(due)).unwrap_or(0) / 1_000;
        if late <= self.window { DueStatus::Yes { due, missed } } else { DueStatus::Late { due, missed } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(when: &str, offset: i32) -> Schedule {
        Schedule {
            name: "s".to_owned(),
            when: when.to_owned(),
            offset,
            zone: None,
            volume: DocId([1; 16]),
            work: ScheduledWork::Consolidate,
            allow: Vec::new(),
            window: 3_600,
            paused: false,
            next: None,
            last: None,
            triggered: Vec::new(),
        }
    }

    #[test]
    fn events_start_a_schedule_but_not_too_often() {
        let change = |pattern: &str| ScheduleTrigger::FileChange { pattern: pattern.to_owned() };
        assert_eq!(ScheduleTrigger::parse("on change Inbox/*"), Ok(Some(change("Inbox/*"))));
        assert_eq!(ScheduleTrigger::parse(" on failed run "), Ok(Some(ScheduleTrigger::FailedRun)));
        assert_eq!(ScheduleTrigger::parse("0 9 * * *"), Ok(None));
        assert_eq!(ScheduleTrigger::parse("on change ./Inbox/*"), Ok(Some(change("Inbox/*"))));
        for wrong in
            ["on ", "on change", "on change ", "on fire", "on change ../*", "on change /etc/*", "on event SKIPPED"]
        {
            assert!(ScheduleTrigger::parse(wrong).is_err() || ScheduleTrigger::parse(wrong) == Ok(None), "{wrong}");
            assert!(schedule(wrong, 0).next_upcoming(UnixMillis(0)).is_err(), "{wrong}");
        }
        let file = |path: &str| WorkspaceEvent::of_file((DocId([1; 16]), "notes"), path, "changed", 0);
        let events = ScheduleTrigger::parse("on event FILE_CHANGED: Log.*; ASKED").expect("read").expect("an event");
        assert!(change("Inbox/*").is_started_by(&file("Inbox/a.md")) && events.is_started_by(&file("Log.md")));
        assert!(!change("Inbox/*").is_started_by(&file("Log.md")) && !events.is_started_by(&file("Inbox/a.md")));
        assert!(events.waits_for_files() && !ScheduleTrigger::FailedRun.waits_for_files());

        let mut one = schedule("on change *", 0);
        let mut now = at("2026-11-22", 18, 20);
        assert_eq!((one.next_upcoming(now), one.due_status(now)), (Ok(None), DueStatus::No));
        assert!(one.trigger(now) && one.trigger(now));
        let due = now.plus_ms(TRIGGER_DELAY_MS);
        assert_eq!((one.due_status(now), one.due_status(due)), (DueStatus::No, DueStatus::Yes { due, missed: 0 }));
        // The second start keeps its distance from the first.
        one.next = None;
        assert!(one.trigger(due));
        assert_eq!(one.next, Some(due.plus_ms(MIN_TRIGGER_INTERVAL_MS)));
        for _ in 2..MAX_TRIGGERS_PER_HOUR {
            now = one.next.expect("due");
            one.next = None;
            assert!(one.trigger(now));
        }
        one.next = None;
        assert!(!one.trigger(now) && one.paused && one.next.is_none());
        assert_eq!(one.due_status(now.plus_ms(HOUR_MS)), DueStatus::No);
    }

    fn at(day: &str, hour: i64, minute: i64) -> UnixMillis {
        let day = CalendarDay::parse(day).expect("a day");
        UnixMillis((day.0 * 86_400 + hour * 3_600 + minute * 60) * 1_000)
    }

    #[test]
    fn expressions_name_points_in_time() {
        // 2026-11-22 is a Sunday.
        let now = at("2026-11-22", 18, 20);
        let cases = [
            ("0 9 * * 1-5", 0, at("2026-11-23", 9, 0)),
            ("0 9 * * 1-5", 60, at("2026-11-23", 8, 0)),
            ("0 9 * * *", -480, at("2026-11-23", 17, 0)),
            ("*/15 * * * *", 0, at("2026-11-22", 18, 30)),
            ("30 18 L * *", 0, at("2026-11-30", 18, 30)),
            ("0 0 29 2 *", 0, at("2028-02-29", 0, 0)),
            ("@daily", 0, at("2026-11-23", 0, 0)),
            ("20 18 * * *", 0, at("2026-11-23", 18, 20)),
        ];
        for (when, offset, next) in cases {
            assert_eq!(schedule(when, offset).next_after(now), Ok(next), "{when}");
        }
        let long = "*".repeat(500);
        for wrong in ["", "9", "0 0 30 2 *", "61 * * * *", "* * * * * *", "0 9 * * mörgen", long.as_str()] {
            assert!(schedule(wrong, 0).next_after(now).is_err(), "{wrong}");
        }
    }

    /// Returns Berlin's time zone in 2026 and 2027. Summer time lasts from the last Sunday of March to that of October,
    /// and changes at 01:00 UTC.
    fn berlin() -> ZoneClock {
        let changes = [("2026-03-29", 7_200), ("2026-10-25", 3_600), ("2027-03-28", 7_200)];
        let changes = changes.map(|(day, offset)| (at(day, 1, 0).as_seconds(), offset)).to_vec();
        ZoneClock { name: "Europe/Berlin".to_owned(), first: 3_600, changes }
    }

    fn in_berlin(when: &str) -> Schedule {
        Schedule { zone: Some(berlin()), ..schedule(when, 0) }
    }

    /// Returns the next occurrences after a time, in UTC.
    fn following(one: &Schedule, mut time: UnixMillis, count: usize) -> Vec<UnixMillis> {
        let mut found = Vec::new();
        for _ in 0..count {
            time = one.next_after(time).expect("it comes");
            found.push(time);
        }
        found
    }

    #[test]
    fn an_expression_goes_by_the_clock_on_the_wall_the_whole_year() {
        // 09:00 is 08:00 UTC in winter and 07:00 UTC in summer: before and after each change.
        let nine = in_berlin("0 9 * * *");
        let spring = following(&nine, at("2026-03-27", 12, 0), 3);
        assert_eq!(spring, [at("2026-03-28", 8, 0), at("2026-03-29", 7, 0), at("2026-03-30", 7, 0)]);
        let autumn = following(&nine, at("2026-10-23", 12, 0), 3);
        assert_eq!(autumn, [at("2026-10-24", 7, 0), at("2026-10-25", 8, 0), at("2026-10-26", 8, 0)]);
    }

    #[test]
    fn the_hour_that_is_missing_and_the_one_that_comes_twice() {
        // 02:30 doesn't exist on March 29: the work starts at 03:00 instead, which is 01:00 UTC, on that day only.
        let half = in_berlin("30 2 * * *");
        let spring = following(&half, at("2026-03-27", 12, 0), 3);
        assert_eq!(spring, [at("2026-03-28", 1, 30), at("2026-03-29", 1, 0), at("2026-03-30", 0, 30)]);
        // 02:30 occurs twice on October 25: the work starts at the first, 00:30 UTC, and not again an hour later.
        let autumn = following(&half, at("2026-10-23", 12, 0), 3);
        assert_eq!(autumn, [at("2026-10-24", 0, 30), at("2026-10-25", 0, 30), at("2026-10-26", 1, 30)]);
        // A half-hourly schedule continues through both changes, by elapsed time and not by the clock's display.
        let every = in_berlin("*/30 * * * *");
        for change in ["2026-03-29", "2026-10-25"] {
            let found = following(&every, at(change, 0, 0), 4);
            assert_eq!(found, [at(change, 0, 30), at(change, 1, 0), at(change, 1, 30), at(change, 2, 0)], "{change}");
        }
    }

    #[test]
    fn what_was_missed_over_a_change_is_counted_once() {
        // The program was closed over the night of the change and opened at 05:00 UTC: that day's 02:30 is made up for,
        // once.
        for (day, due, next) in [
            ("2026-03-29", at("2026-03-29", 1, 0), at("2026-03-30", 0, 30)),
            ("2026-10-25", at("2026-10-25", 0, 30), at("2026-10-26", 1, 30)),
        ] {
            let mut one = in_berlin("30 2 * * *");
            one.window = DEFAULT_CATCH_UP_SECS;
            one.next = one.next_after(UnixMillis(due.0 - 36 * 3_600_000)).ok();
            let now = at(day, 5, 0);
            let DueStatus::Yes { due: found, missed } = one.due_status(now) else {
                panic!("{:?}", one.due_status(now))
            };
            assert_eq!((found, missed), (due, 1), "the day before was missed, too");
            one.last = Some(LastOccurrence { due, at: now, missed, came: ScheduleOutcome::Done });
            assert_eq!(one.next_upcoming(now), Ok(Some(next)));
            // If the clock is set back to the due time, nothing starts twice.
            assert_eq!(one.next_upcoming(due), Ok(Some(next)));
        }
    }

    #[test]
    fn what_was_missed_is_made_up_for_once_or_left_out() {
        let mut one = schedule("0 * * * *", 0);
        one.next = Some(at("2026-11-22", 8, 0));
        assert_eq!(one.due_status(at("2026-11-22", 7, 59)), DueStatus::No);
        assert_eq!(one.due_status(at("2026-11-22", 8, 0)), DueStatus::Yes { due: at("2026-11-22", 8, 0), missed: 0 });
        let later = at("2026-11-22", 11, 20);
        assert_eq!(one.due_status(later), DueStatus::Yes { due: at("2026-11-22", 11, 0), missed: 3 });
        one.window = 600;
        assert_eq!(one.due_status(later), DueStatus::Late { due: at("2026-11-22", 11, 0), missed: 3 });
        one.paused = true;
        assert_eq!(one.due_status(later), DueStatus::No);
        // Counting stops at the maximum instead of going through a year of minutes.
        let minutes = Schedule { next: Some(at("2025-11-22", 8, 0)), ..schedule("* * * * *", 0) };
        assert_eq!(minutes.due_status(later), DueStatus::Yes { due: later, missed: MAX_COUNTED_MISSES });
    }

    #[test]
    fn a_clock_that_is_set_back_begins_nothing_twice() {
        let mut one = schedule("0 * * * *", 0);
        let due = at("2026-11-22", 10, 0);
        one.last = Some(LastOccurrence { due, at: due, missed: 0, came: ScheduleOutcome::Done });
        assert_eq!(one.next_upcoming(at("2026-11-22", 9, 30)), Ok(Some(at("2026-11-22", 11, 0))));
        assert_eq!(one.next_upcoming(at("2026-11-22", 10, 0)), Ok(Some(at("2026-11-22", 11, 0))));
        // If the clock is set back by more than a day, the earlier time was wrong.
        assert_eq!(one.next_upcoming(at("2026-11-20", 9, 30)), Ok(Some(at("2026-11-20", 10, 0))));
    }
}
