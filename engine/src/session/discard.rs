//! Files of the trash deleted for good: first the file, then, once it is gone, all that the workspace keeps of it. A
//! crash in between leaves it in the trash, and the same wish brings it to its end.

use super::moves::{Spot, TRASH};
use super::{Reject, Session, Turn};
use crate::effect::Effect;
use crate::event::marks_key;
use store::DocId;
use store::disk::Write;

impl Session {
    pub(super) fn discard(&mut self, turn: &mut Turn<'_>, files: &[DocId]) -> Result<(), Reject> {
        // A file that is on its way out of the trash is not there any more.
        self.nothing_moves()?;
        let Some(paths) = files
            .iter()
            .map(|file| self.spot(&self.trash.get(file)?.row, &Spot::Trash).map(|path| (*file, path)))
            .collect::<Option<Vec<_>>>()
        else {
            return Err(Reject("it is not in the trash; `tracebook trash` lists what is".to_owned()));
        };
        for (file, path) in paths {
            if self.discarding.insert(file) {
                turn.effects.push(Effect::Discard { file, path });
            }
        }
        Ok(())
    }

    pub(super) fn discarded(&mut self, turn: &mut Turn<'_>, file: DocId, result: Result<(), String>) {
        self.discarding.remove(&file);
        if let Err(why) = result {
            self.problems.push(why);
            return;
        }
        if self.trash.remove(&file).is_some() {
            let keys = [format!("{TRASH}{file}"), marks_key(file)];
            let mut writes: Vec<Write> = keys.into_iter().map(|key| Write::Meta { key, value: None }).collect();
            writes.extend([file, file.outputs()].map(|doc| Write::Forget { doc }));
            self.append(turn, writes, None);
            self.attachment_gone(file);
        }
    }

    /// Whether files are being deleted for good.
    pub fn is_discarding(&self) -> bool {
        !self.discarding.is_empty()
    }
}
