//! Memory maintenance: consolidates logs into long-term notes, or answers a query and keeps the answer. It's started
//! manually, by a schedule or after sessions, and works by retrieval and counting, without a model.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError, SessionRequest};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::{PendingMaintenance, SchedulesState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use agent::memory::experience::{EXPERIENCE_LOG_FILE, MemoryTier};
use agent::memory::insight::MemoryQuery;
use agent::memory::{
    self, LONG_TERM_FOLDER, MEMORY_FOLDER, MemoryMaintenance, PROJECTS_FOLDER, ProjectMemory, task_log,
};
use agent::notice::Notice;
use agent::schedule::ScheduleOutcome;
use std::collections::BTreeSet;
use store::DocId;
use text::task::CalendarDay;
use text::time::UnixMillis;

impl SchedulesState {
    pub(super) fn begin_memory_maintenance(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        volume: DocId,
        what: MemoryMaintenance,
        schedule: Option<DocId>,
    ) -> Result<(), CommandError> {
        let known = volumes.by_id.get(&volume).ok_or_else(|| CommandError(format!("there is no volume {volume}")))?;
        if known.root.is_none() {
            return Err(CommandError(format!("the volume has no folder on this device: {}", known.name)));
        }
        let new = PendingMaintenance { volume, what, schedule };
        if !self.pending_maintenance.contains(&new) {
            turn.requests.push_back(SessionRequest::OpenMemory { volume });
            self.pending_maintenance.push(new);
        }
        Ok(())
    }

    /// Requests the memory to maintain, once the files of its volume are known.
    pub(super) fn step_memory_maintenance(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &mut RunsState,
    ) {
        for volume in runs.take_idle_volumes(turn) {
            let what = MemoryMaintenance::Consolidate;
            let _ = self.begin_memory_maintenance(turn, volumes, volume, what, None); // it refuses only a closed volume
        }
        for PendingMaintenance { volume, .. } in &self.pending_maintenance {
            let home = volumes.by_id.get(&volumes.memory_home(*volume)).filter(|home| home.known);
            let Some(root) = home.and_then(|home| home.root.clone()) else { continue };
            if self.reading_memory.insert(*volume) {
                turn.effects.push(Effect::ReadMemory { volume: *volume, root });
            }
        }
    }

    pub(super) fn on_memory_read(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        volume: DocId,
        memory: &ProjectMemory,
    ) {
        self.reading_memory.remove(&volume);
        let (due, rest) =
            std::mem::take(&mut self.pending_maintenance).into_iter().partition(|one| one.volume == volume);
        self.pending_maintenance = rest;
        let due: Vec<PendingMaintenance> = due;
        for PendingMaintenance { what, schedule, .. } in due {
            let done = match what {
                MemoryMaintenance::Consolidate => files.consolidate(turn, sync, volume, memory),
                MemoryMaintenance::Analyze(query) => self.keep_analysis(turn, files, sync, volume, memory, &query),
            };
            let came = match done {
                Ok(()) => ScheduleOutcome::Done,
                Err(CommandError(why)) => {
                    turn.journal.problems.push(format!("memory could not be worked over: {why}"));
                    ScheduleOutcome::Failed { why }
                }
            };
            if let Some(schedule) = schedule {
                self.finish_schedule(turn, schedule, came);
            }
        }
    }

    /// Analyzes memory for a query and stores the answer as a note.
    fn keep_analysis(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        volume: DocId,
        memory: &ProjectMemory,
        query: &MemoryQuery,
    ) -> Result<(), CommandError> {
        let today = CalendarDay(turn.now.0.div_euclid(86_400_000));
        let text = memory.analyze(query, today).to_note(&query.query, &memory::trace::iso_timestamp(turn.now.0));
        let path = format!("{MEMORY_FOLDER}/{LONG_TERM_FOLDER}/analysis.md");
        let volume = files.volumes.memory_home(volume);
        files.upsert_own_note(turn, sync, volume, &path, text)?;
        turn.notify(Notice::Remembered { volume, path });
        Ok(())
    }
}

impl RunsState {
    /// Takes the volumes whose memory is consolidated now, because no agent has worked in them for a while.
    fn take_idle_volumes(&mut self, turn: &mut ApplyContext<'_>) -> Vec<DocId> {
        if self.idle_consolidation.is_empty() {
            return Vec::new();
        }
        let awake = self.runs.values().filter(|run| run.is_awake());
        let busy: BTreeSet<DocId> = awake.map(|run| run.about.volume).collect();
        let (due, next) = self.idle_consolidation.take_due(turn.now.0, &busy);
        next.into_iter().for_each(|at| turn.wake_at(UnixMillis(at)));
        due
    }
}

impl FilesState {
    /// Consolidates logs into long-term notes. Tasks in session logs that weren't written by Tracebook's own runs
    /// become experiences and are marked in the log. What a project inside the volume has learned goes into the
    /// volume's own memory.
    pub(super) fn consolidate(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        volume: DocId,
        memory: &ProjectMemory,
    ) -> Result<(), CommandError> {
        let today = CalendarDay(turn.now.0.div_euclid(86_400_000));
        let at = memory::trace::iso_timestamp(turn.now.0);
        let whole = format!("{MEMORY_FOLDER}/{EXPERIENCE_LOG_FILE}");
        let owner = self.volumes.by_id.get(&volume).and_then(|volume| volume.memory_of).unwrap_or(volume);
        let name = self.volumes.by_id.get(&owner).map_or_else(String::new, |volume| volume.name.clone());
        let volume = self.volumes.memory_home(volume);
        let logs =
            memory.entries.iter().filter_map(|entry| entry.path.strip_suffix(EXPERIENCE_LOG_FILE)?.strip_suffix('/'));
        let between = format!("/{}/", task_log::TASK_LOG_FOLDER);
        let lately = memory.logged.iter().filter_map(|entry| Some(entry.path.split_once(between.as_str())?.0));
        let mut folders: Vec<&str> = logs.chain(lately).collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            let project = folder.strip_prefix(&format!("{PROJECTS_FOLDER}/")).and_then(|rest| rest.split('/').next());
            let made = memory.consolidate(folder, project.unwrap_or(&name), today);
            self.upsert_own_note(
                turn,
                sync,
                volume,
                &format!("{folder}/{LONG_TERM_FOLDER}/patterns.md"),
                made.patterns,
            )?;
            self.upsert_own_note(
                turn,
                sync,
                volume,
                &format!("{folder}/{LONG_TERM_FOLDER}/best_practices.md"),
                made.best_practices,
            )?;
            let path = format!("{folder}/{EXPERIENCE_LOG_FILE}");
            let expired = made.expired.len();
            if let Some(log) = self.volumes.find_file(volume, &path).filter(|_| expired > 0) {
                self.remove_experiences(turn, sync, log, made.expired)?;
            }
            for (entry, one) in made.new {
                let Some(note) = self.volumes.find_file(volume, &entry.path) else { continue };
                let marked = entry.consolidated_metadata(&at);
                self.replace_note_text(turn, sync, note, entry.at, entry.front, marked)?;
                self.write_memory_note(turn, sync, volume, &path, Some(one.clone().with_limits(turn.now.0)), None);
                if project.is_some() {
                    self.write_memory_note(turn, sync, volume, &whole, Some(one.with_limits(turn.now.0)), None);
                }
            }
            if project.is_some() {
                let known =
                    |id: &str| memory.entries.iter().any(|one| one.path == whole && one.experience.experience_id == id);
                let own = memory.entries.iter().filter(|entry| entry.path == path);
                for one in own.map(|entry| &entry.experience) {
                    if one.is_current(today) && !known(&one.experience_id) && one.tier != MemoryTier::ShortTerm {
                        self.write_memory_note(turn, sync, volume, &whole, Some(one.clone()), None);
                    }
                }
            }
            let (folder, patterns) = (folder.to_owned(), made.patterns_found);
            turn.notify(Notice::Consolidated { volume, folder, patterns, expired });
        }
        Ok(())
    }

    /// Creates a note of the program with this text, or changes the existing one with minimal edits.
    pub(super) fn upsert_own_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        volume: DocId,
        path: &str,
        text: String,
    ) -> Result<(), CommandError> {
        match self.volumes.find_file(volume, path) {
            Some(note) => self.rewrite_note(turn, sync, note, text),
            None => {
                self.create_own_note(turn, sync, volume, path, &text);
                Ok(())
            }
        }
    }
}
