//! User tools of other devices. Each shared volume has a document that lists the tools that its devices use; a tool
//! used on one device is proposed on the others. No tool is used before it was approved on the device itself.

use crate::effect::Effect;
use crate::event::DocumentLoadError;
use crate::session::apply_context::{ApplyContext, CommandError, RemoteChangeError};
use crate::session::state::runs::{RunsState, SharedTools};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use store::disk::RowWrite;
use store::{BlobHash, DocId, RegisteredTool, RegistryDoc, RegistryWrite, UserTool};

fn contains_tool(tools: &[RegisteredTool], tool: &UserTool) -> bool {
    let print_of = tool.content_hash();
    tools
        .iter()
        .flat_map(|known| &known.versions)
        .any(|known| known.name == tool.name && known.content_hash() == print_of)
}

impl VolumesState {
    /// Returns the shared volume that this document of tools belongs to.
    fn shared_tools_volume(&self, sync: &SyncState, id: DocId) -> Option<DocId> {
        self.by_id.keys().copied().find(|volume| sync.is_shared(*volume) && volume.tools_id() == id)
    }
}

impl RunsState {
    /// Requests a comparison with other devices after the user's tools changed.
    pub(super) fn tools_changed(&mut self, sync: &SyncState) {
        self.remote_runs.is_tool_sharing_due |= !sync.shares.hubs.is_empty();
    }

    /// Records that a tool was removed here, so that it isn't proposed again.
    pub(super) fn refuse_tool(
        &self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        name: &str,
    ) {
        if sync.shares.hubs.is_empty() {
            return;
        }
        let known = self.user_tools().unwrap_or_default().iter().flat_map(|tool| &tool.versions);
        let prints: Vec<BlobHash> = known.filter(|tool| tool.name == name).map(UserTool::content_hash).collect();
        sync.shares.refused_tools.extend(prints);
        sync.save_shares(turn, volumes, self);
    }

    /// Compares the tools of this device with those of others, once all are loaded.
    pub(in crate::session) fn step_tool_sharing(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        if !self.remote_runs.is_tool_sharing_due {
            return;
        }
        let shared = |volume: &DocId| sync.is_shared(*volume) && !sync.is_awaited(*volume);
        let shared: Vec<DocId> = volumes.by_id.keys().copied().filter(shared).collect();
        if shared.is_empty() {
            self.remote_runs.is_tool_sharing_due = false;
            return;
        }
        self.read_registry(turn, workspace);
        let mut ready = self.user_tools().is_some();
        if !ready && self.read_errors.contains_key(&workspace.id.registry_id()) {
            self.remote_runs.is_tool_sharing_due = false; // they cannot be read
            return;
        }
        for volume in &shared {
            let (id, elsewhere) = (volume.tools_id(), &self.remote_runs);
            if elsewhere.shared_tools.contains_key(volume) || self.read_errors.contains_key(&id) {
                continue;
            }
            ready = false;
            if self.loading.insert(id) {
                turn.effects.push(Effect::LoadRegistry { registry: id });
            }
        }
        if ready {
            self.remote_runs.is_tool_sharing_due = false;
            shared.into_iter().for_each(|volume| self.compare_tools(turn, volumes, sync, workspace, volume));
        }
    }

    fn compare_tools(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        volume: DocId,
    ) {
        let own: Vec<RegisteredTool> = self.user_tools().unwrap_or_default().to_vec();
        let Some(shelf) = self.remote_runs.shared_tools.get_mut(&volume) else { return };
        let there = shelf.doc.tools();
        let mut writes = Vec::new();
        for tool in own.iter().filter_map(RegisteredTool::usable_version).filter(|tool| !contains_tool(&there, tool)) {
            let known = there.iter().find_map(|known| known.newest_version().filter(|newest| newest.name == tool.name));
            let version = known.map_or(1, |newest| newest.version.saturating_add(1));
            writes.push(RegistryWrite::Version(Box::new(UserTool { version, ..tool.clone() })));
        }
        if !writes.is_empty() {
            match shelf.doc.commit(&writes, turn.now.as_seconds()) {
                Ok(bytes) => {
                    let bytes = if std::mem::take(&mut shelf.fresh) { shelf.doc.save() } else { bytes };
                    turn.append_writes(vec![RowWrite::Chunk { doc: volume.tools_id(), bytes }], None);
                }
                Err(error) => turn.journal.problems.push(error.to_string()),
            }
        }
        let refused = &sync.shares.refused_tools;
        let new = there.into_iter().flat_map(|tool| tool.versions);
        let new: Vec<UserTool> =
            new.filter(|tool| !contains_tool(&own, tool) && !refused.contains(&tool.content_hash())).collect();
        let name = volumes.by_id.get(&volume).map_or_else(String::new, |volume| volume.name.clone());
        for tool in new {
            let called = tool.name.clone();
            let said = match self.propose_tool(turn, sync, workspace, tool) {
                Ok(()) => format!("the tool {called} came with {name}; it is used once you have approved it"),
                Err(CommandError(why)) => format!("a tool that came with {name} is not taken: {why}"),
            };
            sync.log_line(turn.now, said);
        }
    }

    /// Handles the loaded tools of a shared volume.
    pub(super) fn on_shared_tools_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        id: DocId,
        doc: Result<Box<RegistryDoc>, DocumentLoadError>,
    ) {
        let early = self.remote_runs.early_changes.remove(&id).unwrap_or_default();
        match (volumes.shared_tools_volume(sync, id), doc) {
            (Some(volume), Ok(doc)) => {
                let fresh = doc.tools().is_empty();
                self.remote_runs.shared_tools.entry(volume).or_insert(SharedTools { doc, fresh });
            }
            (Some(_), Err(DocumentLoadError(why))) => {
                sync.log_line(turn.now, format!("tools of another device cannot be read: {why}"));
                self.read_errors.insert(id, why);
            }
            (None, _) => {}
        }
        for (ticket, bytes) in early {
            if let Some(Err(why)) = self.tools_received(turn, volumes, sync, id, ticket, &bytes) {
                turn.effects.push(Effect::RefuseReceived { ticket, why: why.to_string() });
            }
        }
    }

    /// Merges received changes of a volume's tools; `None` if the document isn't one of these.
    pub(super) fn tools_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &SyncState,
        id: DocId,
        ticket: u64,
        bytes: &[u8],
    ) -> Option<Result<(), RemoteChangeError>> {
        let volume = volumes.shared_tools_volume(sync, id)?;
        if let Some(why) = self.read_errors.get(&id) {
            return Some(Err(RemoteChangeError::Unreadable(why.clone())));
        }
        let Some(shelf) = self.remote_runs.shared_tools.get_mut(&volume) else {
            self.remote_runs.early_changes.entry(id).or_default().push((ticket, bytes.to_vec()));
            if self.loading.insert(id) {
                turn.effects.push(Effect::LoadRegistry { registry: id });
            }
            return Some(Ok(()));
        };
        if let Err(error) = shelf.doc.merge(id, bytes) {
            return Some(Err(error.into()));
        }
        // The received changes include the document's first change.
        shelf.fresh = false;
        self.remote_runs.is_tool_sharing_due = true;
        turn.append_writes(vec![RowWrite::Chunk { doc: id, bytes: bytes.to_vec() }], None);
        Some(Ok(()))
    }
}
