//! Memory outside of a project's folder: a volume in the workspace's folder that isn't listed with the others. What
//! runs learn is still kept as notes with a history, but not among the user's notes.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::volumes::{Volume, VolumesState};
use crate::session::state::workspace::WorkspaceState;
use agent::memory::place::{MemoryPlace, has_memory_files, private_memory_root};
use std::path::PathBuf;
use store::DocId;

impl VolumesState {
    /// Returns the volume that holds the memory of this one: itself, or its private memory volume.
    pub(in crate::session) fn memory_home(&self, volume: DocId) -> DocId {
        let has_memory = |id: DocId| self.by_id.get(&id).is_some_and(|known| has_memory_files(&known.files));
        if self.by_id.get(&volume).is_some_and(|known| known.memory_of.is_some()) {
            return volume;
        }
        // What a run in a fork learns is learned about the project.
        let private = self.project_of(volume).memory_id();
        let in_folder = match self.memory_place {
            Some(place) => place == MemoryPlace::Folder,
            None => !has_memory(private) && has_memory(volume),
        };
        if in_folder { volume } else { private }
    }

    /// Returns the folder that holds the memory of a volume, whether or not it exists.
    pub(in crate::session) fn memory_root(&self, volume: DocId) -> Option<PathBuf> {
        let project = self.project_of(volume);
        let own = self.by_id.get(&project).or_else(|| self.by_id.get(&volume))?.root.as_ref()?;
        let home = self.by_id.get(&self.memory_home(volume)).and_then(|home| home.root.clone());
        Some(home.unwrap_or_else(|| private_memory_root(&self.workspace_folder, own)))
    }

    /// Opens the private memory volume of a volume, if its memory is kept there.
    pub(super) fn open_private_memory(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &mut WorkspaceState,
        owner: DocId,
    ) -> Result<(), CommandError> {
        let id = self.memory_home(owner);
        let (false, Some(root)) = (self.by_id.contains_key(&id), self.memory_root(owner)) else { return Ok(()) };
        let owner = self.project_of(owner);
        let name = self.by_id.get(&owner).map_or("", |volume| volume.name.as_str());
        let name = self.free_name(&format!("{name} (memory)"));
        let mut volume = Volume::new(id, name.clone(), Some(root.clone()));
        volume.memory_of = Some(owner);
        self.mounts.insert(id, root);
        self.by_id.insert(id, volume);
        let mut writes = workspace.workspace_writes(turn, id, Some(&name))?;
        writes.push(self.mounts_write());
        turn.append_writes(writes, None);
        self.report_volumes(turn);
        // As after a start: the folder may hold memory from before the volume was closed.
        turn.effects.push(Effect::LoadVolume { volume: id });
        Ok(())
    }

    /// Marks the private memory volumes among the workspace's volumes.
    pub(super) fn mark_private_memory(&mut self) {
        for owner in self.by_id.keys().copied().collect::<Vec<_>>() {
            if let Some(memory) = self.by_id.get_mut(&owner.memory_id()) {
                memory.memory_of = Some(owner);
            }
        }
    }
}
