//! Deletes files in the trash permanently: first the file, then, once it's gone, everything that the workspace stores
//! of it. After a crash in between it's still in the trash, and the same command finishes the deletion.

use crate::effect::Effect;
use crate::event::file_marks_key;
use crate::records::moves::{FileLocation, TRASH_KEY_PREFIX};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::Session;
use store::DocId;
use store::disk::RowWrite;

impl Session {
    pub(super) fn delete_from_trash(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &[DocId],
    ) -> Result<(), CommandError> {
        // A file that's leaving the trash no longer counts as in it.
        self.ensure_no_pending_move()?;
        let Some(paths) = files
            .iter()
            .map(|file| {
                self.resolve_location(&self.trash.get(file)?.row, &FileLocation::Trash).map(|path| (*file, path))
            })
            .collect::<Option<Vec<_>>>()
        else {
            return Err(CommandError("it is not in the trash; `tracebook trash` lists what is".to_owned()));
        };
        for (file, path) in paths {
            if self.deleting_from_trash.insert(file) {
                turn.effects.push(Effect::Discard { file, path });
            }
        }
        Ok(())
    }

    pub(super) fn on_trash_file_deleted(
        &mut self,
        turn: &mut ApplyContext<'_>,
        file: DocId,
        result: Result<(), String>,
    ) {
        self.deleting_from_trash.remove(&file);
        if let Err(why) = result {
            self.problems.push(why);
            return;
        }
        if self.trash.remove(&file).is_some() {
            let keys = [format!("{TRASH_KEY_PREFIX}{file}"), file_marks_key(file)];
            let mut writes: Vec<RowWrite> = keys.into_iter().map(|key| RowWrite::Meta { key, value: None }).collect();
            writes.extend([file, file.outputs_id()].map(|doc| RowWrite::DeleteDocument { doc }));
            self.append_writes(turn, writes, None);
            self.attachment_gone(file);
        }
    }

    /// Whether files are being deleted for good.
    pub fn is_deleting_trash(&self) -> bool {
        !self.deleting_from_trash.is_empty()
    }
}
