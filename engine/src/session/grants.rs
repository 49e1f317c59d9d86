//! What a note's cells reach beyond the folder of their note: what the user granted, on this device alone.

use super::{Reject, Session, Turn};
use crate::effect::Effect;
use crate::note::{KernelPhase, Note, Phase};
use serde::{Deserialize, Serialize};
use std::path::{Component, PathBuf};
use store::DocId;

/// Notes of which grants are remembered.
const REMEMBERED: usize = 1_000;
/// Folders that one note may be granted.
const FOLDERS: usize = 32;

/// What cells reach beyond the folder of their note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grant {
    /// The network.
    pub network: bool,
    /// Folders and files that they may read: whole paths.
    pub read: Vec<PathBuf>,
    /// Folders and files that they may read and write: whole paths.
    pub write: Vec<PathBuf>,
}

impl Grant {
    /// Whether nothing is granted.
    pub fn is_none(&self) -> bool {
        *self == Grant::default()
    }

    /// What is granted, in words.
    pub fn words(&self) -> String {
        let list =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let mut words = Vec::new();
        if self.network {
            words.push("the network".to_owned());
        }
        if !self.read.is_empty() {
            words.push(format!("{} (to read)", list(&self.read)));
        }
        if !self.write.is_empty() {
            words.push(format!("{} (to read and write)", list(&self.write)));
        }
        if words.is_empty() { "nothing beyond its folder".to_owned() } else { words.join("; ") }
    }
}

impl Session {
    /// What the cells of a note reach beyond its folder.
    pub fn granted(&self, note: DocId) -> Grant {
        let kept = self.settings.grants.iter().find(|(of, _)| *of == note);
        kept.map(|(_, grant)| grant.clone()).unwrap_or_default()
    }

    pub(super) fn grant(&mut self, turn: &mut Turn<'_>, id: DocId, grant: Grant) -> Result<(), Reject> {
        let Some(note) = self.notes.get(&id).filter(|note| note.phase == Phase::Ready) else {
            return Err(Reject("the note is not open yet; try again in a moment".to_owned()));
        };
        if matches!(note.kernel, KernelPhase::Busy(_)) {
            return Err(Reject("a cell is running; stop it before something else is granted".to_owned()));
        }
        if grant.read.len() + grant.write.len() > FOLDERS {
            return Err(Reject(format!("at most {FOLDERS} folders can be granted to a note")));
        }
        let whole = |path: &PathBuf| {
            path.is_absolute()
                && !path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
        };
        if let Some(path) = grant.read.iter().chain(&grant.write).find(|path| !whole(path)) {
            return Err(Reject(format!("{}: give the whole path of a folder to grant it", path.display())));
        }
        if let Some(path) = grant.read.iter().chain(&grant.write).find(|path| path.parent().is_none()) {
            return Err(Reject(format!("{}: all of the machine is not granted; name a folder", path.display())));
        }
        let mut settings = self.settings.clone();
        settings.grants.retain(|(other, _)| *other != id);
        if !grant.is_none() {
            settings.grants.push((id, grant));
        }
        let over = settings.grants.len().saturating_sub(REMEMBERED);
        settings.grants.drain(..over);
        self.set(turn, settings);
        self.end_kernel_of_other_grant(turn, id);
        Ok(())
    }

    /// Ends a kernel whose walls are not those that are granted now. Whether it does: then what waits goes on once it
    /// is gone.
    pub(super) fn end_kernel_of_other_grant(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let granted = self.granted(id);
        let Some(note) = self.notes.get_mut(&id) else { return false };
        let other = note.kernel == KernelPhase::Idle && note.kernel_is.is_none() && note.grant_is != granted;
        if other && !note.stopping {
            note.stopping = true;
            turn.effects.push(Effect::KillKernel { note: id });
        }
        other
    }
}

impl Note {
    /// What its running embedded kernel reaches.
    pub fn reaches(&self) -> Option<&Grant> {
        (self.kernel != KernelPhase::Off && self.kernel_is.is_none()).then_some(&self.grant_is)
    }
}
