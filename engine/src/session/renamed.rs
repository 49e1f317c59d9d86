//! Files that other programs renamed: a scan sees a file gone and its bytes under a new name. The links that led to the
//! old name can follow, as with a rename of our own, once the user says so.

use super::{Reject, Session, Turn};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use store::disk::Write;
use store::{BlobHash, DocId};
use text::links::Relink;

/// Under which name the disk keeps which files other programs renamed.
pub const RENAMED: &str = "renamed";
/// Of more files it is not remembered.
const MOST: usize = 10_000;

/// A file that another program renamed, and that links may still mean by its old name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    volume: DocId,
    file: DocId,
    from: String,
    to: String,
    /// Whether the scan is over that says that no other file could be meant.
    sure: bool,
}

impl Session {
    /// A scan found a file's bytes under another name.
    pub(super) fn renamed_elsewhere(&mut self, volume: DocId, file: DocId, from: &str, to: &str) {
        match self.renamed.iter().position(|one| one.file == file) {
            Some(at) => to.clone_into(&mut self.renamed[at].to),
            None if self.renamed.len() < MOST => {
                let (from, to) = (from.to_owned(), to.to_owned());
                self.renamed.push(Renamed { volume, file, from, to, sure: false });
            }
            None => {}
        }
        // There and back again.
        self.renamed.retain(|one| one.from != one.to);
    }

    /// A scan is over: forgets what may as well be another file, and what no link means.
    pub(super) fn renames_known(&mut self, turn: &mut Turn<'_>, id: DocId, gone: &[String]) {
        if !self.renamed.iter().any(|one| one.volume == id) {
            return;
        }
        let new = |one: &Renamed| one.volume == id && !one.sure;
        let Some(volume) = self.volumes.get(&id) else { return };
        let mut alike: HashMap<(BlobHash, u64), usize> = HashMap::new();
        for row in volume.files.values() {
            *alike.entry((row.hash, row.size)).or_default() += 1;
        }
        for row in gone.iter().filter_map(|path| volume.files.get(path)) {
            // It counts twice: it may be what was renamed.
            *alike.entry((row.hash, row.size)).or_default() += 1;
        }
        let alone = |one: &Renamed| {
            let row = volume.files.get(&one.to).filter(|row| row.id == one.file && row.size > 0);
            row.is_some_and(|row| alike.get(&(row.hash, row.size)) == Some(&1)) && !volume.files.contains_key(&one.from)
        };
        let kept = self.renamed.iter().filter(|one| !new(one) || alone(one)).cloned();
        let kept: Vec<Renamed> = kept.map(|one| Renamed { sure: true, ..one }).collect();
        self.renamed = kept;
        self.renamed_notes = self.plan_renamed(id, false).len();
        if self.renamed_notes == 0 {
            self.renamed.retain(|one| one.volume != id);
        }
        let writes = vec![self.renamed_write()];
        self.append(turn, writes, None);
    }

    fn renamed_write(&self) -> Write {
        let value = (!self.renamed.is_empty()).then(|| serde_json::to_vec(&self.renamed).unwrap_or_default());
        Write::Meta { key: RENAMED.to_owned(), value }
    }

    /// What must be written in which notes so that links lead where they led before files of a volume were renamed.
    /// Unless `keep`, the outlines stay as they are.
    fn plan_renamed(&mut self, id: DocId, keep: bool) -> BTreeMap<DocId, Vec<Relink>> {
        let Some(volume) = self.volumes.get_mut(&id) else { return BTreeMap::new() };
        let valid = |one: &&Renamed| {
            let (files, there) = (&volume.files, &one.to);
            one.volume == id && files.get(there).is_some_and(|row| row.id == one.file) && !files.contains_key(&one.from)
        };
        let renames: Vec<Renamed> = self.renamed.iter().filter(valid).cloned().collect();
        let moves: Vec<(DocId, String)> = renames.iter().map(|one| (one.file, one.to.clone())).collect();
        renames.iter().for_each(|one| volume.links.enter(one.file, &one.from));
        let plan = volume.links.rename(&moves);
        if !keep {
            self.unplan_links(id, &plan);
        }
        plan
    }

    /// How many notes link to files by names that other programs took from them.
    pub fn links_to_follow(&self) -> usize {
        self.renamed_notes
    }

    /// Lets the links follow.
    pub(super) fn follow_renamed(&mut self, turn: &mut Turn<'_>) -> Result<(), Reject> {
        self.nothing_moves()?;
        let Some(id) = self.renamed.first().map(|one| one.volume) else {
            return Err(Reject("no link leads to a file that another program renamed".to_owned()));
        };
        if !self.volumes.get(&id).is_some_and(super::Volume::is_indexed) {
            return Err(Reject("not all notes are read yet; try again in a moment".to_owned()));
        }
        let plan = self.plan_renamed(id, true);
        self.renamed.retain(|one| one.volume != id);
        self.renamed_notes = 0;
        let writes = vec![self.renamed_write()];
        self.append(turn, writes, None);
        self.begin_relinks(turn, plan, false);
        Ok(())
    }
}
