//! The upkeep of memory: consolidated into long-term notes, or asked and the answer kept. By hand and on a schedule, by
//! retrieval and counting; no model is needed.

use super::{Reject, Session, Turn};
use crate::effect::Effect;
use crate::notice::Notice;
use agent::memory::experience::{LOG, Tier};
use agent::memory::insight::Query;
use agent::memory::{self, FOLDER, LONG_TERM, Memory, PROJECTS, Upkeep, log};
use agent::schedule::Came;
use store::DocId;
use text::task::Day;

/// Something that is to be made of the memory of a volume, once that is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upkept {
    pub(super) volume: DocId,
    pub(super) what: Upkeep,
    /// The schedule that wants it.
    pub(super) schedule: Option<DocId>,
}

impl Session {
    /// Whether memory is being read to be worked over.
    pub fn is_keeping_up(&self) -> bool {
        !self.upkeeps.is_empty()
    }

    pub(super) fn begin_upkeep(
        &mut self,
        turn: &mut Turn<'_>,
        volume: DocId,
        what: Upkeep,
        schedule: Option<DocId>,
    ) -> Result<(), Reject> {
        let known = self.volumes.get(&volume).ok_or_else(|| Reject(format!("there is no volume {volume}")))?;
        let root = known.root.clone();
        let root = root.ok_or_else(|| Reject(format!("the volume has no folder on this device: {}", known.name)))?;
        let new = Upkept { volume, what, schedule };
        if self.upkeeps.contains(&new) {
            return Ok(());
        }
        if self.upkeeps.iter().all(|one| one.volume != volume) {
            turn.effects.push(Effect::ReadMemory { volume, root });
        }
        self.upkeeps.push(new);
        Ok(())
    }

    pub(super) fn memory_read(&mut self, turn: &mut Turn<'_>, volume: DocId, memory: &Memory) {
        let (due, rest) = std::mem::take(&mut self.upkeeps).into_iter().partition(|one| one.volume == volume);
        self.upkeeps = rest;
        let due: Vec<Upkept> = due;
        for Upkept { what, schedule, .. } in due {
            let done = match what {
                Upkeep::Consolidate => self.consolidate(turn, volume, memory),
                Upkeep::Analyze(query) => self.keep_analysis(turn, volume, memory, &query),
            };
            let came = match done {
                Ok(()) => Came::Done,
                Err(Reject(why)) => {
                    self.problems.push(format!("memory could not be worked over: {why}"));
                    Came::Failed { why }
                }
            };
            if let Some(schedule) = schedule {
                self.schedule_came(turn, schedule, came);
            }
        }
    }

    /// Makes long-term notes of the logs. Tasks of session logs that no run of ours has written become experiences, and
    /// are marked there; what a project inside the volume has learned comes into the volume's own memory.
    pub(super) fn consolidate(&mut self, turn: &mut Turn<'_>, volume: DocId, memory: &Memory) -> Result<(), Reject> {
        let today = Day(turn.now.0.div_euclid(86_400_000));
        let at = memory::trace::iso(turn.now.0);
        let whole = format!("{FOLDER}/{LOG}");
        let name = self.volumes.get(&volume).map_or_else(String::new, |volume| volume.name.clone());
        let logs = memory.entries.iter().filter_map(|entry| entry.path.strip_suffix(LOG)?.strip_suffix('/'));
        let between = format!("/{}/", log::FOLDER);
        let lately = memory.logged.iter().filter_map(|entry| Some(entry.path.split_once(between.as_str())?.0));
        let mut folders: Vec<&str> = logs.chain(lately).collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            let project = folder.strip_prefix(&format!("{PROJECTS}/")).and_then(|rest| rest.split('/').next());
            let made = memory.consolidated(folder, project.unwrap_or(&name), today);
            self.put_note(turn, volume, &format!("{folder}/{LONG_TERM}/patterns.md"), made.patterns)?;
            self.put_note(turn, volume, &format!("{folder}/{LONG_TERM}/best_practices.md"), made.best_practices)?;
            let path = format!("{folder}/{LOG}");
            let expired = made.expired.len();
            if let Some(log) = self.file_of(volume, &path).filter(|_| expired > 0) {
                self.forget_entries(turn, log, made.expired)?;
            }
            for (entry, one) in made.new {
                let Some(note) = self.file_of(volume, &entry.path) else { continue };
                let marked = entry.consolidated(&at);
                self.amend(turn, note, entry.at, entry.front, marked)?;
                self.put_into_memory(turn, volume, &path, Some(one.clone().bounded(turn.now.0)), None);
                if project.is_some() {
                    self.put_into_memory(turn, volume, &whole, Some(one.bounded(turn.now.0)), None);
                }
            }
            if project.is_some() {
                let known =
                    |id: &str| memory.entries.iter().any(|one| one.path == whole && one.experience.experience_id == id);
                let own = memory.entries.iter().filter(|entry| entry.path == path);
                for one in own.map(|entry| &entry.experience) {
                    if one.counts(today) && !known(&one.experience_id) && one.tier != Tier::ShortTerm {
                        self.put_into_memory(turn, volume, &whole, Some(one.clone()), None);
                    }
                }
            }
            let (folder, patterns) = (folder.to_owned(), made.patterns_found);
            self.notify(turn, Notice::Consolidated { volume, folder, patterns, expired });
        }
        Ok(())
    }

    /// Keeps what memory says to a question as a note.
    fn keep_analysis(
        &mut self,
        turn: &mut Turn<'_>,
        volume: DocId,
        memory: &Memory,
        query: &Query,
    ) -> Result<(), Reject> {
        let today = Day(turn.now.0.div_euclid(86_400_000));
        let text = memory.analyze(query, today).note(&query.query, &memory::trace::iso(turn.now.0));
        let path = format!("{FOLDER}/{LONG_TERM}/analysis.md");
        self.put_note(turn, volume, &path, text)?;
        self.notify(turn, Notice::Remembered { volume, path });
        Ok(())
    }

    /// A note of the program's own has this text from now on: it is made, or changed in the smallest steps.
    pub(super) fn put_note(
        &mut self,
        turn: &mut Turn<'_>,
        volume: DocId,
        path: &str,
        text: String,
    ) -> Result<(), Reject> {
        match self.file_of(volume, path) {
            Some(note) => self.retext(turn, note, text),
            None => {
                self.keep_note(turn, volume, path, &text);
                Ok(())
            }
        }
    }
}
