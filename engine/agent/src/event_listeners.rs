//! Schedules that wait for events: which of them an event starts, and with which events a function of a plugin is
//! called.

use crate::event_filter::{WorkspaceEvent, add_handled_event};
use crate::schedule::{Schedule, ScheduleTrigger};
use serde_json::Value;
use std::collections::BTreeMap;
use store::DocId;

/// Files by path, each with its size in bytes and its modification time in nanoseconds since 1970.
pub type FileStates = BTreeMap<String, (u64, i64)>;

/// Schedules that wait for events, and the events that start each.
#[derive(Debug, Default)]
pub struct EventListeners {
    /// Schedules, their volumes, and what starts them.
    waiting: Vec<(DocId, DocId, ScheduleTrigger)>,
    started: BTreeMap<DocId, Vec<Value>>,
}

impl EventListeners {
    /// Finds the schedules that wait for events and aren't paused.
    pub fn of_schedules<'a>(all: impl Iterator<Item = (&'a DocId, &'a Schedule)>) -> EventListeners {
        let listening = all.filter(|(_, one)| !one.paused).filter_map(|(id, one)| {
            let trigger = ScheduleTrigger::parse(&one.when).ok().flatten()?;
            Some((*id, one.volume, trigger))
        });
        EventListeners { waiting: listening.collect(), started: BTreeMap::new() }
    }

    /// Returns whether no schedule waits for an event.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether changed files of the volume can start a schedule.
    pub fn wait_for_files(&self, volume: DocId) -> bool {
        self.waiting.iter().any(|(_, of, trigger)| *of == volume && trigger.waits_for_files())
    }

    /// Returns whether steps of runs can start a schedule.
    pub fn wait_for_steps(&self) -> bool {
        self.waiting.iter().any(|(_, _, trigger)| trigger.waits_for_steps())
    }

    /// Adds an event to each schedule of the volume that it starts.
    pub fn add_event(&mut self, volume: DocId, event: &WorkspaceEvent) {
        for (id, of, trigger) in &self.waiting {
            if *of == volume && trigger.is_started_by(event) {
                add_handled_event(self.started.entry(*id).or_default(), event.to_json());
            }
        }
    }

    /// Returns the schedules that start, each with its events, oldest first.
    pub fn into_started(self) -> BTreeMap<DocId, Vec<Value>> {
        self.started
    }
}

/// Returns the paths of files that differ, each with `changed`, `created` or `removed`.
pub fn file_changes<'a>(before: &'a FileStates, now: &'a FileStates) -> impl Iterator<Item = (&'a str, &'static str)> {
    let differing = now.iter().filter_map(move |(path, state)| match before.get(path) {
        Some(known) => (known != state).then_some((path.as_str(), "changed")),
        None => Some((path.as_str(), "created")),
    });
    let removed = before.keys().filter(move |path| !now.contains_key(*path)).map(|path| (path.as_str(), "removed"));
    differing.chain(removed)
}
