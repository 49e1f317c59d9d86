//! The user's tools on other devices. Each shared volume has a document that says which tools its devices use; what one
//! of them uses is proposed on the others. Nothing is used before it was approved on the device itself.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::Session;
use crate::session::state::runs::SharedTools;
use store::disk::RowWrite;
use store::{BlobHash, DocId, RegisteredTool, RegistryDoc, RegistryWrite, UserTool};

/// Returns a hash that identifies a tool regardless of its version number.
fn tool_fingerprint(tool: &UserTool) -> BlobHash {
    let parts = (&tool.name, &tool.code, &tool.parameters, tool.network);
    BlobHash::of(&serde_json::to_vec(&parts).unwrap_or_default())
}

fn contains_tool(tools: &[RegisteredTool], tool: &UserTool) -> bool {
    let print_of = tool_fingerprint(tool);
    tools
        .iter()
        .flat_map(|known| &known.versions)
        .any(|known| known.name == tool.name && tool_fingerprint(known) == print_of)
}

impl Session {
    /// The shared volume whose tools these are.
    fn shared_tools_volume(&self, id: DocId) -> Option<DocId> {
        self.volumes.keys().copied().find(|volume| self.sync.is_shared(*volume) && volume.tools_id() == id)
    }

    /// The user's tools have become others.
    pub(super) fn tools_changed(&mut self) {
        self.agents.remote_runs.is_tool_sharing_due |= !self.sync.shares.hubs.is_empty();
    }

    /// A tool was removed here: it is not proposed once more.
    pub(super) fn refuse_tool(&mut self, turn: &mut ApplyContext<'_>, name: &str) {
        if self.sync.shares.hubs.is_empty() {
            return;
        }
        let known = self.user_tools().unwrap_or_default().iter().flat_map(|tool| &tool.versions);
        let prints: Vec<BlobHash> = known.filter(|tool| tool.name == name).map(tool_fingerprint).collect();
        self.sync.shares.refused_tools.extend(prints);
        self.save_shares(turn);
    }

    /// Compares the tools of this device with those of others, once all are read.
    pub(in crate::session) fn step_tool_sharing(&mut self, turn: &mut ApplyContext<'_>) {
        if !self.agents.remote_runs.is_tool_sharing_due {
            return;
        }
        let shared = |volume: &DocId| self.sync.is_shared(*volume) && !self.sync.is_awaited(*volume);
        let shared: Vec<DocId> = self.volumes.keys().copied().filter(shared).collect();
        if shared.is_empty() {
            self.agents.remote_runs.is_tool_sharing_due = false;
            return;
        }
        self.read_registry(turn);
        let mut ready = self.user_tools().is_some();
        if !ready && self.agents.read_errors.contains_key(&self.workspace.registry_id()) {
            self.agents.remote_runs.is_tool_sharing_due = false; // they cannot be read
            return;
        }
        for volume in &shared {
            let (id, elsewhere) = (volume.tools_id(), &self.agents.remote_runs);
            if elsewhere.shared_tools.contains_key(volume) || self.agents.read_errors.contains_key(&id) {
                continue;
            }
            ready = false;
            if self.agents.loading.insert(id) {
                turn.effects.push(Effect::LoadRegistry { registry: id });
            }
        }
        if ready {
            self.agents.remote_runs.is_tool_sharing_due = false;
            shared.into_iter().for_each(|volume| self.compare_tools(turn, volume));
        }
    }

    fn compare_tools(&mut self, turn: &mut ApplyContext<'_>, volume: DocId) {
        let own: Vec<RegisteredTool> = self.user_tools().unwrap_or_default().to_vec();
        let Some(shelf) = self.agents.remote_runs.shared_tools.get_mut(&volume) else { return };
        let there = shelf.doc.tools();
        let mut writes = Vec::new();
        for tool in own.iter().filter_map(RegisteredTool::usable_version).filter(|tool| !contains_tool(&there, tool)) {
            let known = there.iter().find_map(|known| known.newest_version().filter(|newest| newest.name == tool.name));
            let version = known.map_or(1, |newest| newest.version.saturating_add(1));
            writes.push(RegistryWrite::Version(UserTool { version, ..tool.clone() }));
        }
        if !writes.is_empty() {
            match shelf.doc.commit(&writes, turn.now.as_seconds()) {
                Ok(bytes) => {
                    let bytes = if std::mem::take(&mut shelf.fresh) { shelf.doc.save() } else { bytes };
                    self.append_writes(turn, vec![RowWrite::Chunk { doc: volume.tools_id(), bytes }], None);
                }
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        let refused = &self.sync.shares.refused_tools;
        let new = there.into_iter().flat_map(|tool| tool.versions);
        let new: Vec<UserTool> =
            new.filter(|tool| !contains_tool(&own, tool) && !refused.contains(&tool_fingerprint(tool))).collect();
        let name = self.volumes.get(&volume).map_or_else(String::new, |volume| volume.name.clone());
        for tool in new {
            let called = tool.name.clone();
            let said = match self.propose_tool(turn, tool) {
                Ok(()) => format!("the tool {called} came with {name}; it is used once you have approved it"),
                Err(CommandError(why)) => format!("a tool that came with {name} is not taken: {why}"),
            };
            self.sync.log_line(turn.now, said);
        }
    }

    /// The tools of a shared volume were read.
    pub(super) fn on_shared_tools_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        doc: Result<Box<RegistryDoc>, String>,
    ) {
        let early = self.agents.remote_runs.early_changes.remove(&id).unwrap_or_default();
        match (self.shared_tools_volume(id), doc) {
            (Some(volume), Ok(doc)) => {
                let fresh = doc.tools().is_empty();
                self.agents.remote_runs.shared_tools.entry(volume).or_insert(SharedTools { doc, fresh });
            }
            (Some(_), Err(why)) => {
                self.sync.log_line(turn.now, format!("tools of another device cannot be read: {why}"));
                self.agents.read_errors.insert(id, why);
            }
            (None, _) => {}
        }
        for (ticket, bytes) in early {
            if let Some(Err(why)) = self.tools_received(turn, id, ticket, &bytes) {
                turn.effects.push(Effect::RefuseReceived { ticket, why });
            }
        }
    }

    /// Changes of a volume's tools have come; `None`: the document is none of these.
    pub(super) fn tools_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        ticket: u64,
        bytes: &[u8],
    ) -> Option<Result<(), String>> {
        let volume = self.shared_tools_volume(id)?;
        if let Some(why) = self.agents.read_errors.get(&id) {
            return Some(Err(why.clone()));
        }
        let Some(shelf) = self.agents.remote_runs.shared_tools.get_mut(&volume) else {
            self.agents.remote_runs.early_changes.entry(id).or_default().push((ticket, bytes.to_vec()));
            if self.agents.loading.insert(id) {
                turn.effects.push(Effect::LoadRegistry { registry: id });
            }
            return Some(Ok(()));
        };
        if let Err(error) = shelf.doc.merge(id, bytes) {
            return Some(Err(error.to_string()));
        }
        // What was received holds the first change too.
        shelf.fresh = false;
        self.agents.remote_runs.is_tool_sharing_due = true;
        self.append_writes(turn, vec![RowWrite::Chunk { doc: id, bytes: bytes.to_vec() }], None);
        Some(Ok(()))
    }
}
