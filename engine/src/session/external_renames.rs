//! Files that other programs renamed: a scan sees a file gone and its bytes under a new name. With the user's consent,
//! links to the old name are updated, as for a rename in Tracebook.

use crate::records::moves::ExternalRename;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::moves::MovesState;
use std::collections::{BTreeMap, HashMap};
use store::{BlobHash, DocId};
use text::links::LinkRewrite;

/// Maximum number of external renames that are remembered.
const MAX_EXTERNAL_RENAMES: usize = 10_000;

impl MovesState {
    /// Records that a scan found a file's bytes under another name.
    pub(super) fn record_external_rename(&mut self, volume: DocId, file: DocId, from: &str, to: &str) {
        match self.external_renames.iter().position(|one| one.file == file) {
            Some(at) => to.clone_into(&mut self.external_renames[at].to),
            None if self.external_renames.len() < MAX_EXTERNAL_RENAMES => {
                let (from, to) = (from.to_owned(), to.to_owned());
                self.external_renames.push(ExternalRename { volume, file, from, to, sure: false });
            }
            None => {}
        }
        // Drop files that were renamed back.
        self.external_renames.retain(|one| one.from != one.to);
    }
}

impl FilesState {
    /// Removes renames that are ambiguous or that no link needs, after a scan ended.
    pub(super) fn prune_external_renames(&mut self, turn: &mut ApplyContext<'_>, id: DocId, gone: &[String]) {
        if !self.moves.external_renames.iter().any(|one| one.volume == id) {
            return;
        }
        let new = |one: &ExternalRename| one.volume == id && !one.sure;
        let Some(volume) = self.volumes.by_id.get(&id) else { return };
        let mut alike: HashMap<(BlobHash, u64), usize> = HashMap::new();
        for row in volume.files.values() {
            *alike.entry((row.hash, row.size)).or_default() += 1;
        }
        for row in gone.iter().filter_map(|path| volume.files.get(path)) {
            // Counted twice, because this file may be the renamed one.
            *alike.entry((row.hash, row.size)).or_default() += 1;
        }
        let alone = |one: &ExternalRename| {
            let row = volume.files.get(&one.to).filter(|row| row.id == one.file && row.size > 0);
            row.is_some_and(|row| alike.get(&(row.hash, row.size)) == Some(&1)) && !volume.files.contains_key(&one.from)
        };
        let kept = self.moves.external_renames.iter().filter(|one| !new(one) || alone(one)).cloned();
        let kept: Vec<ExternalRename> = kept.map(|one| ExternalRename { sure: true, ..one }).collect();
        self.moves.external_renames = kept;
        self.moves.outdated_link_notes = self.plan_rename_relinks(id, false).len();
        if self.moves.outdated_link_notes == 0 {
            self.moves.external_renames.retain(|one| one.volume != id);
        }
        let writes = vec![self.moves.external_renames_write()];
        turn.append_writes(writes, None);
    }

    /// Plans the link rewrites per note that keep links pointing to the same files after files of a volume were
    /// renamed. Unless `keep`, the outlines stay as they are.
    fn plan_rename_relinks(&mut self, id: DocId, keep: bool) -> BTreeMap<DocId, Vec<LinkRewrite>> {
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return BTreeMap::new() };
        let valid = |one: &&ExternalRename| {
            let (files, there) = (&volume.files, &one.to);
            one.volume == id && files.get(there).is_some_and(|row| row.id == one.file) && !files.contains_key(&one.from)
        };
        let renames: Vec<ExternalRename> = self.moves.external_renames.iter().filter(valid).cloned().collect();
        let moves: Vec<(DocId, String)> = renames.iter().map(|one| (one.file, one.to.clone())).collect();
        renames.iter().for_each(|one| volume.links.set_path(one.file, &one.from));
        let plan = volume.links.rename_files(&moves);
        if !keep {
            self.volumes.cancel_relinks(id, &plan);
        }
        plan
    }

    /// Updates the links to the renamed files.
    pub(super) fn follow_external_renames(&mut self, turn: &mut ApplyContext<'_>) -> Result<(), CommandError> {
        self.moves.ensure_no_pending_move()?;
        let Some(id) = self.moves.external_renames.first().map(|one| one.volume) else {
            return Err(CommandError("no link leads to a file that another program renamed".to_owned()));
        };
        if !self.volumes.by_id.get(&id).is_some_and(crate::session::state::volumes::Volume::is_indexed) {
            return Err(CommandError("not all notes are read yet; try again in a moment".to_owned()));
        }
        let plan = self.plan_rename_relinks(id, true);
        self.moves.external_renames.retain(|one| one.volume != id);
        self.moves.outdated_link_notes = 0;
        let writes = vec![self.moves.external_renames_write()];
        turn.append_writes(writes, None);
        self.begin_relinks(turn, plan, false);
        Ok(())
    }
}
