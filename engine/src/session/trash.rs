//! Permanently deletes files in the trash: first the file, then, once it's gone, everything that the workspace stores
//! about it. After a crash in between, it's still in the trash, and the same command finishes the deletion.

use crate::effect::Effect;
use crate::event::{FileChangeError, file_marks_key};
use crate::records::moves::{FileLocation, TRASH_KEY_PREFIX};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::moves::MovesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use store::DocId;
use store::disk::RowWrite;

impl FilesState {
    pub(super) fn delete_from_trash(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &WorkspaceState,
        files: &[DocId],
    ) -> Result<(), CommandError> {
        // A file that's leaving the trash no longer counts as in it.
        self.moves.ensure_no_pending_move()?;
        let Some(paths) = files
            .iter()
            .map(|file| {
                self.volumes
                    .resolve_location(workspace, &self.moves.trash.get(file)?.row, &FileLocation::Trash)
                    .map(|path| (*file, path))
            })
            .collect::<Option<Vec<_>>>()
        else {
            return Err(CommandError("it is not in the trash; `tracebook trash` lists what is".to_owned()));
        };
        for (file, path) in paths {
            if self.moves.deleting.insert(file) {
                turn.effects.push(Effect::Discard { file, path });
            }
        }
        Ok(())
    }
}

impl MovesState {
    pub(super) fn on_trash_file_deleted(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        file: DocId,
        result: Result<(), FileChangeError>,
    ) {
        self.deleting.remove(&file);
        if let Err(why) = result {
            turn.journal.problems.push(why.0);
            return;
        }
        if self.trash.remove(&file).is_some() {
            let keys = [format!("{TRASH_KEY_PREFIX}{file}"), file_marks_key(file)];
            let mut writes: Vec<RowWrite> = keys.into_iter().map(|key| RowWrite::Meta { key, value: None }).collect();
            writes.extend([file, file.outputs_id()].map(|doc| RowWrite::DeleteDocument { doc }));
            turn.append_writes(writes, None);
            sync.attachment_gone(file);
        }
    }
}
