//! Presence: who else is in a note, where their carets are and which cells they run, and when devices were last seen.
//! The session decides what to announce; the host decides how often and to whom (`store::sync::presence`).

use crate::effect::Effect;
use crate::note::{KernelPhase, Note};
use crate::records::sync::SeenDevice;
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::{RemotePeer, SyncState};
use std::collections::{BTreeMap, BTreeSet};
use store::sync::presence::{CaretMark, PresentPerson};
use store::{BlockId, DocId};

/// Maximum number of devices that are remembered.
const MAX_SEEN_DEVICES: usize = 100;
/// Maximum number of carets of a device that are announced and shown.
const MAX_SHARED_CARETS: usize = 32;

impl SyncState {
    /// Sets the user's carets as byte offsets in the note, each with the other end of its selection.
    pub(in crate::session) fn set_carets(
        &mut self,
        files: &FilesState,
        note: Option<DocId>,
        carets: &[(usize, usize)],
    ) {
        let own = note.and_then(|id| {
            let (volume, _) = files.volumes.locate_file(id)?;
            let note = files.notes.open.get(&id).filter(|_| self.is_shared(volume))?;
            let mark = |(at, anchor): &(usize, usize)| {
                Some(CaretMark { at: block_position(note, *at)?, anchor: block_position(note, *anchor)? })
            };
            Some((id, carets.iter().take(MAX_SHARED_CARETS).filter_map(mark).collect()))
        });
        self.presence.own_carets = own;
    }

    /// Updates the people in a document. `here`: id of each one's program, and what it announces.
    pub(in crate::session) fn on_presence(
        &mut self,
        turn: &ApplyContext<'_>,
        notes: &NotesState,
        doc: DocId,
        here: Vec<(String, PresentPerson)>,
    ) {
        let presence = &mut self.presence;
        let before = presence.peers.remove(&doc).unwrap_or_default();
        let mut devices = BTreeSet::new();
        let mut people = Vec::new();
        for (peer, present) in here {
            let name = if present.name.is_empty() { "Another device".to_owned() } else { present.name };
            let key = if present.device.is_empty() { name.clone() } else { present.device };
            presence.seen.insert(key.clone(), SeenDevice { name: name.clone(), at: turn.now });
            devices.insert(key);
            let known = before.iter().find(|one| one.peer == peer);
            let moves = match known.filter(|known| known.marks == present.carets) {
                Some(known) => known.moves,
                None => {
                    presence.moves += 1;
                    presence.moves
                }
            };
            let mut one = RemotePeer {
                peer,
                name,
                carets: Vec::new(),
                revision: 0,
                running: present.running,
                moves,
                marks: present.carets,
            };
            one.marks.truncate(MAX_SHARED_CARETS);
            match known.filter(|known| known.moves == moves) {
                Some(known) => (one.carets, one.revision) = (known.carets.clone(), known.revision),
                None => notes.open.get(&doc).into_iter().for_each(|note| one.place_carets(note)),
            }
            people.push(one);
        }
        // Devices that just left were seen until now.
        for key in presence.devices.remove(&doc).unwrap_or_default().difference(&devices) {
            presence.seen.entry(key.clone()).and_modify(|seen| seen.at = turn.now);
        }
        while presence.seen.len() > MAX_SEEN_DEVICES {
            let Some(oldest) = presence.seen.iter().min_by_key(|(_, seen)| seen.at).map(|(key, _)| key.clone()) else {
                break;
            };
            presence.seen.remove(&oldest);
        }
        if !devices.is_empty() {
            presence.devices.insert(doc, devices);
        }
        if !people.is_empty() {
            presence.peers.insert(doc, people);
        }
        self.log_due.get_or_insert(turn.now.plus_ms(crate::session::state::sync::SYNC_LOG_SAVE_INTERVAL_MS));
        self.revision += 1;
    }

    /// Places the carets of others in a note whose text is now available.
    pub(in crate::session) fn place_remote_carets(&mut self, notes: &NotesState, note: DocId) {
        let Some(read) = notes.open.get(&note) else { return };
        for one in self.presence.peers.get_mut(&note).into_iter().flatten() {
            one.place_carets(read);
        }
    }

    /// Sends changed presence to the host.
    pub(super) fn step_presence(&mut self, turn: &mut ApplyContext<'_>, files: &FilesState) {
        let mut wanted: BTreeMap<DocId, PresentPerson> = BTreeMap::new();
        if !self.shares.paused {
            let volumes = self.shares.hubs.iter().flat_map(|hub| &hub.volumes);
            wanted.extend(volumes.map(|volume| (*volume, PresentPerson::default())));
            let busy = |note: &Note| matches!(note.kernel, KernelPhase::Busy(_)) || !note.queue.is_empty();
            for (id, note) in files.notes.open.iter().filter(|(_, note)| busy(note)) {
                let running = running_cells(note);
                let shared = || files.volumes.locate_file(*id).is_some_and(|(volume, _)| self.is_shared(volume));
                if !running.is_empty() && shared() {
                    wanted.entry(*id).or_default().running = running;
                }
            }
            if let Some((note, carets)) =
                self.presence.own_carets.clone().filter(|(note, _)| files.notes.open.contains_key(note))
            {
                wanted.entry(note).or_default().carets = carets;
            }
        }
        let said = &mut self.presence.last_sent;
        if *said == wanted {
            return;
        }
        for (doc, state) in &wanted {
            if said.get(doc) != Some(state) {
                let volume = files.volumes.by_id.contains_key(doc);
                turn.effects.push(Effect::Present { doc: *doc, state: Some(Box::new(state.clone())), volume });
            }
        }
        for doc in said.keys().filter(|doc| !wanted.contains_key(doc)) {
            turn.effects.push(Effect::Present { doc: *doc, state: None, volume: false });
        }
        *said = wanted;
    }
}

impl RemotePeer {
    /// Maps the person's carets to the current text of the note.
    fn place_carets(&mut self, note: &Note) {
        let at = |(block, at): (BlockId, usize)| {
            let (start, text) = (note.block_start(block)?, &note.blocks.iter().find(|known| known.id == block)?.text);
            let mut at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            Some(start + at)
        };
        self.carets = self.marks.iter().filter_map(|mark| Some((at(mark.at)?, at(mark.anchor)?))).collect();
        self.revision = note.revision();
    }
}

/// Returns the block at a byte offset of the note, and the offset in the block.
fn block_position(note: &Note, at: usize) -> Option<(BlockId, usize)> {
    let mut start = 0;
    let mut last = None;
    for block in note.blocks() {
        if at < start + block.text.len() {
            return Some((block.id, at - start));
        }
        last = Some((block.id, block.text.len()));
        start += block.text.len();
    }
    last.filter(|_| at == start)
}

/// Returns the cells that are running or queued on this device.
fn running_cells(note: &Note) -> Vec<BlockId> {
    let now = match note.kernel {
        KernelPhase::Busy(execution) => note.executions.values().find(|run| run.id == execution).map(|run| run.cell),
        KernelPhase::Off | KernelPhase::Idle => None,
    };
    now.into_iter().chain(note.queue.iter().copied()).collect()
}

impl Note {
    /// Returns whether a cell is running or queued on this device.
    pub fn is_running_here(&self, cell: BlockId) -> bool {
        let now = self.executions.get(&cell).is_some_and(|run| self.kernel == KernelPhase::Busy(run.id));
        now || self.queue.contains(&cell)
    }
}
