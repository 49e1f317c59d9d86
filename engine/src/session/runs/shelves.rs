//! The user's tools on other devices. Each shared volume has a document that says which tools its devices use; what one
//! of them uses is proposed on the others. Nothing is used before it was approved on the device itself.

use crate::effect::Effect;
use crate::session::{Reject, Session, Turn};
use store::disk::Write;
use store::{BlobHash, DocId, Registered, RegistryDoc, RegistryWrite, UserTool};

/// The tools that go along with a volume.
#[derive(Debug)]
pub(in crate::session) struct Shelf {
    doc: Box<RegistryDoc>,
    /// Nothing of it is on disk.
    fresh: bool,
}

/// What tells one tool from another, whatever its version is called.
fn print(tool: &UserTool) -> BlobHash {
    let parts = (&tool.name, &tool.code, &tool.parameters, tool.network);
    BlobHash::of(&serde_json::to_vec(&parts).unwrap_or_default())
}

fn holds(tools: &[Registered], tool: &UserTool) -> bool {
    let print_of = print(tool);
    tools.iter().flat_map(|known| &known.versions).any(|known| known.name == tool.name && print(known) == print_of)
}

impl Session {
    /// The shared volume whose tools these are.
    fn shelf_of(&self, id: DocId) -> Option<DocId> {
        self.volumes.keys().copied().find(|volume| self.sync.is_shared(*volume) && volume.tools() == id)
    }

    /// The user's tools have become others.
    pub(super) fn tools_changed(&mut self) {
        self.agents.elsewhere.tools_due |= !self.sync.shares.hubs.is_empty();
    }

    /// A tool was removed here: it is not proposed once more.
    pub(super) fn refuse_tool(&mut self, turn: &mut Turn<'_>, name: &str) {
        if self.sync.shares.hubs.is_empty() {
            return;
        }
        let known = self.user_tools().unwrap_or_default().iter().flat_map(|tool| &tool.versions);
        let prints: Vec<BlobHash> = known.filter(|tool| tool.name == name).map(print).collect();
        self.sync.shares.refused_tools.extend(prints);
        self.keep_shares(turn);
    }

    /// Compares the tools of this device with those of others, once all are read.
    pub(in crate::session) fn tools_step(&mut self, turn: &mut Turn<'_>) {
        if !self.agents.elsewhere.tools_due {
            return;
        }
        let shared = |volume: &DocId| self.sync.is_shared(*volume) && !self.sync.is_awaited(*volume);
        let shared: Vec<DocId> = self.volumes.keys().copied().filter(shared).collect();
        if shared.is_empty() {
            self.agents.elsewhere.tools_due = false;
            return;
        }
        self.read_registry(turn);
        let mut ready = self.user_tools().is_some();
        if !ready && self.agents.troubles.contains_key(&self.workspace.registry()) {
            self.agents.elsewhere.tools_due = false; // they cannot be read
            return;
        }
        for volume in &shared {
            let (id, elsewhere) = (volume.tools(), &self.agents.elsewhere);
            if elsewhere.shelves.contains_key(volume) || self.agents.troubles.contains_key(&id) {
                continue;
            }
            ready = false;
            if self.agents.loading.insert(id) {
                turn.effects.push(Effect::LoadRegistry { registry: id });
            }
        }
        if ready {
            self.agents.elsewhere.tools_due = false;
            shared.into_iter().for_each(|volume| self.compare_tools(turn, volume));
        }
    }

    fn compare_tools(&mut self, turn: &mut Turn<'_>, volume: DocId) {
        let own: Vec<Registered> = self.user_tools().unwrap_or_default().to_vec();
        let Some(shelf) = self.agents.elsewhere.shelves.get_mut(&volume) else { return };
        let there = shelf.doc.tools();
        let mut writes = Vec::new();
        for tool in own.iter().filter_map(Registered::usable).filter(|tool| !holds(&there, tool)) {
            let known = there.iter().find_map(|known| known.newest().filter(|newest| newest.name == tool.name));
            let version = known.map_or(1, |newest| newest.version.saturating_add(1));
            writes.push(RegistryWrite::Version(UserTool { version, ..tool.clone() }));
        }
        if !writes.is_empty() {
            match shelf.doc.commit(&writes, turn.now.seconds()) {
                Ok(bytes) => {
                    let bytes = if std::mem::take(&mut shelf.fresh) { shelf.doc.save() } else { bytes };
                    self.append(turn, vec![Write::Chunk { doc: volume.tools(), bytes }], None);
                }
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        let refused = &self.sync.shares.refused_tools;
        let new = there.into_iter().flat_map(|tool| tool.versions);
        let new: Vec<UserTool> = new.filter(|tool| !holds(&own, tool) && !refused.contains(&print(tool))).collect();
        let name = self.volumes.get(&volume).map_or_else(String::new, |volume| volume.name.clone());
        for tool in new {
            let called = tool.name.clone();
            let said = match self.propose_tool(turn, tool) {
                Ok(()) => format!("the tool {called} came with {name}; it is used once you have approved it"),
                Err(Reject(why)) => format!("a tool that came with {name} is not taken: {why}"),
            };
            self.sync.say(turn.now, said);
        }
    }

    /// The tools of a shared volume were read.
    pub(super) fn shelf_loaded(&mut self, turn: &mut Turn<'_>, id: DocId, doc: Result<Box<RegistryDoc>, String>) {
        let early = self.agents.elsewhere.early.remove(&id).unwrap_or_default();
        match (self.shelf_of(id), doc) {
            (Some(volume), Ok(doc)) => {
                let fresh = doc.tools().is_empty();
                self.agents.elsewhere.shelves.entry(volume).or_insert(Shelf { doc, fresh });
            }
            (Some(_), Err(why)) => {
                self.sync.say(turn.now, format!("tools of another device cannot be read: {why}"));
                self.agents.troubles.insert(id, why);
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
        turn: &mut Turn<'_>,
        id: DocId,
        ticket: u64,
        bytes: &[u8],
    ) -> Option<Result<(), String>> {
        let volume = self.shelf_of(id)?;
        if let Some(why) = self.agents.troubles.get(&id) {
            return Some(Err(why.clone()));
        }
        let Some(shelf) = self.agents.elsewhere.shelves.get_mut(&volume) else {
            self.agents.elsewhere.early.entry(id).or_default().push((ticket, bytes.to_vec()));
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
        self.agents.elsewhere.tools_due = true;
        self.append(turn, vec![Write::Chunk { doc: id, bytes: bytes.to_vec() }], None);
        Some(Ok(()))
    }
}
