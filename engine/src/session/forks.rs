//! Forks: copies of a project in which agents work, while the project's own folder stays as it is. A fork is a volume
//! in the workspace's folder that isn't listed with the others. What the user has allowed for the project applies in
//! its forks, but never more.

use crate::effect::Effect;
use crate::records::forks::{FORKS_FOLDER, FORKS_META_KEY, ForkOrigin};
use crate::records::kernels::KernelGrant;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::policy::ToolPolicy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::disk::RowWrite;
use store::{DocId, VolumeDoc};
use user_settings::settings::Settings;

impl VolumesState {
    /// Opens a folder that holds a copy of a volume as a fork of it.
    pub(super) fn open_fork(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &mut WorkspaceState,
        origin: ForkOrigin,
        folder: PathBuf,
    ) -> Result<(), CommandError> {
        let Some(project) = self.by_id.get(&origin.volume) else {
            return Err(CommandError(format!("there is no volume {}", origin.volume)));
        };
        if project.fork_of.is_some() || project.memory_of.is_some() {
            return Err(CommandError(format!("only a project can be forked, not {}", project.name)));
        }
        if !folder.starts_with(self.workspace_folder.join(FORKS_FOLDER)) {
            return Err(CommandError(format!("a fork's folder is in the workspace's folder: {}", folder.display())));
        }
        let name = format!("{} (fork {})", project.name, origin.name);
        let name = self.check_volume_folder(workspace, &folder, Some(name))?;
        let id = DocId::random(self.random_bytes(turn));
        let doc =
            VolumeDoc::load(id, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?.doc;
        // First on disk is that it's a fork, so that a crash leaves no copy among the user's volumes.
        self.forks.insert(id, origin.clone());
        let value = serde_json::to_vec(&self.forks).unwrap_or_default();
        turn.append_writes(vec![RowWrite::Meta { key: FORKS_META_KEY.to_owned(), value: Some(value) }], None);
        self.add_volume(turn, sync, workspace, (id, name), folder, (doc, true))
    }

    /// Marks the forks among the workspace's volumes. Their links may begin with the name of the project.
    pub(super) fn mark_forks(&mut self) {
        for (id, origin) in &self.forks {
            let project = self.by_id.get(&origin.volume).map(|project| project.name.clone());
            if let Some(fork) = self.by_id.get_mut(id) {
                project.into_iter().for_each(|name| fork.links.set_volume_name(&name));
                fork.fork_of = Some(origin.clone());
            }
        }
    }

    /// Returns the volume that a fork is a copy of, and any other volume itself.
    pub(in crate::session) fn project_of(&self, volume: DocId) -> DocId {
        self.forks.get(&volume).map_or(volume, |origin| origin.volume)
    }

    /// Returns the name of a volume if it's a fork.
    pub(in crate::session) fn fork_name(&self, volume: DocId) -> Option<String> {
        self.by_id.get(&volume).filter(|volume| volume.fork_of.is_some()).map(|volume| volume.name.clone())
    }

    /// Returns whether the user trusts a volume, or the volume that it's a fork of.
    pub(in crate::session) fn is_trusted(&self, settings: &Settings, volume: DocId) -> bool {
        settings.trusted_volumes.contains(&self.project_of(volume))
    }

    /// Lets rules that the user made for a project apply in its fork, too.
    pub(in crate::session) fn extend_rules_to_fork(&self, policy: &mut ToolPolicy, volume: DocId) {
        let project = self.project_of(volume);
        if project != volume {
            policy.rules.iter_mut().filter(|rule| rule.within == Some(project)).for_each(|rule| {
                rule.within = Some(volume);
            });
        }
    }

    /// Returns what the cells of a note may access beyond its folder. In a fork that's what the same note of the
    /// project may, but written is only inside the fork.
    pub(in crate::session) fn note_grant(&self, workspace: &WorkspaceState, note: DocId) -> KernelGrant {
        let own = workspace.kernel_grant(note);
        if !own.is_none() {
            return own;
        }
        self.grant_of_original(workspace, note).unwrap_or(own)
    }

    fn grant_of_original(&self, workspace: &WorkspaceState, note: DocId) -> Option<KernelGrant> {
        let (volume, path) = self.locate_file(note)?;
        let fork = self.by_id.get(&volume)?;
        let project = self.by_id.get(&fork.fork_of.as_ref()?.volume)?;
        let granted = workspace.kernel_grant(project.files.get(path)?.id);
        Some(grant_in_fork(&granted, project.root.as_deref()?, fork.root.as_deref()?))
    }

    /// Returns the forks' volume names, each with the name of the volume that it's a copy of.
    pub(in crate::session) fn forked_names(&self) -> BTreeMap<String, String> {
        let names = self.by_id.values().filter_map(|fork| {
            let project = self.by_id.get(&fork.fork_of.as_ref()?.volume)?;
            Some((fork.name.clone(), project.name.clone()))
        });
        names.collect()
    }

    /// Reports the volumes to the index and to the list that survives a lost database.
    pub(in crate::session) fn report_volumes(&self, turn: &mut ApplyContext<'_>) {
        turn.effects.push(Effect::WriteMarker { volumes: self.volume_markers(), forks: self.forked_names() });
    }
}

/// Returns a project's grant as it applies in a fork: folders of the project become the fork's, and others can only be
/// read.
fn grant_in_fork(granted: &KernelGrant, project: &Path, fork: &Path) -> KernelGrant {
    let moved = |path: &PathBuf| path.strip_prefix(project).ok().map(|inside| fork.join(inside));
    // A folder around the project would show the project's own files beside the fork's.
    let beside = |path: &&PathBuf| !project.starts_with(path);
    let read = granted.read.iter().chain(granted.write.iter().filter(|path| moved(path).is_none()));
    KernelGrant {
        network: granted.network,
        read: read.filter(beside).map(|path| moved(path).unwrap_or_else(|| path.clone())).collect(),
        write: granted.write.iter().filter_map(moved).collect(),
        interpreter: granted.interpreter.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_writes_only_inside_itself() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let granted = KernelGrant {
            network: true,
            read: paths(&["/data", "/home/me/project/in", "/home/me"]),
            write: paths(&["/home/me/project/out", "/results"]),
            interpreter: Some(PathBuf::from("/opt/python")),
        };
        let here = grant_in_fork(&granted, Path::new("/home/me/project"), Path::new("/w/forks/a/a"));
        assert_eq!(here.write, paths(&["/w/forks/a/a/out"]));
        assert_eq!(here.read, paths(&["/data", "/w/forks/a/a/in", "/results"]));
        assert!(here.network && here.interpreter == granted.interpreter);
    }
}
