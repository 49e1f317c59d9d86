//! Sync in the session: which volumes are shared over which hubs, what other devices changed, and how far changes have
//! been delivered. The protocol is in the store (`store::sync`), connections are in the host.

mod apply_remote;
mod attachments;
mod deletions;
mod files;
pub(super) mod heads;
mod merges;
mod outbox;
mod presence;
mod status;

pub use heads::parse_heads;
pub use status::{SyncProgress, SyncStatus};

use crate::effect::Effect;
use crate::note::NotePhase;
use crate::records::sync::{
    DocumentsByVolume, HubConnection, HubState, LAN_HUB_ADDRESS, MERGES_KEY, SEEN_DEVICES_KEY, SYNC_LOG_KEY,
    SYNC_SHARES_KEY, SavedSyncState, SyncShares, SyncTargets,
};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::{Volume, VolumesState};
use crate::session::state::workspace::WorkspaceState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::sync::{document_address, parse_document_address};
use store::{DocId, FileEntry, VolumeDoc};
use text::time::UnixMillis;

/// Maximum number of documents reported to the host per millisecond.
const MAX_REPORTED_DOCUMENTS_PER_MS: usize = 100;
/// Maximum number of notes that are read at the same time to create their documents, which sync requires.
const MAX_CONCURRENT_NOTE_READS: usize = 64;
/// Maximum number of notes that are created or changed for other devices at once. Further changes wait, because all
/// pending notes are checked at each event.
const MAX_ARRIVING_NOTES: usize = 256;

/// Returns the address at which others get a volume: the hub's address, `#`, and the document's address.
pub fn volume_address(url: &str, volume: DocId) -> String {
    format!("{url}#{}", document_address(volume))
}

/// Parses the address of a shared volume into the hub's address and the volume's id.
///
/// # Errors
/// Returns a sentence for the user if the address is invalid.
pub fn read_volume_address(address: &str) -> Result<(String, DocId), CommandError> {
    let parts = address.split_once('#').and_then(|(url, doc)| Some((url, parse_document_address(doc)?)));
    let Some((url, doc)) = parts else {
        return Err(CommandError(format!(
            "a volume's address is a hub's address, # and a document's (ws://host:port#automerge:…): {address}"
        )));
    };
    Ok((hub_address(url)?, doc))
}

/// Normalizes a hub's address; `lan` is the local network.
///
/// # Errors
/// Returns a sentence for the user if the address is invalid.
pub fn hub_address(url: &str) -> Result<String, CommandError> {
    let url = url.trim().trim_end_matches('/');
    if url == LAN_HUB_ADDRESS || url == "lan" {
        return Ok(LAN_HUB_ADDRESS.to_owned());
    }
    let rest = url.strip_prefix("ws://").or_else(|| url.strip_prefix("wss://"));
    match rest {
        Some(rest) if !rest.is_empty() && url.len() <= 500 && !url.contains([' ', '#', '"']) => Ok(url.to_owned()),
        _ => Err(CommandError(format!(
            "a hub's address begins with ws:// or wss://, or is lan for the local network: {url}"
        ))),
    }
}

impl SyncState {
    pub(super) fn share_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        volume: DocId,
        url: &str,
    ) -> Result<(), CommandError> {
        let url = hub_address(url)?;
        let name = match files.volumes.by_id.get(&volume) {
            Some(Volume { root: Some(_), name, .. }) => name.clone(),
            Some(volume) => {
                return Err(CommandError(format!("the volume has no folder on this device: {}", volume.name)));
            }
            None => return Err(CommandError(format!("there is no volume {volume}"))),
        };
        self.hub_mut(&url).volumes.insert(volume);
        self.log_line(turn.now, format!("{name} is shared over {url}"));
        self.save_shares(turn, &files.volumes, runs);
        self.queue_undocumented_notes(&files.volumes, volume);
        runs.on_volume_list_loaded(turn, files, self, workspace, volume);
        Ok(())
    }

    pub(super) fn join_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &mut VolumesState,
        runs: &RunsState,
        workspace: &mut WorkspaceState,
        address: &str,
        folder: PathBuf,
    ) -> Result<(), CommandError> {
        let (url, id) = read_volume_address(address)?;
        if let Some(volume) = volumes.by_id.get(&id) {
            return Err(CommandError(format!("this volume is here already: {}", volume.name)));
        }
        let name = volumes.check_volume_folder(workspace, &folder, None)?;
        let doc =
            VolumeDoc::load(id, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?.doc;
        let hub = self.hub_mut(&url);
        hub.volumes.insert(id);
        hub.coming.insert(id);
        self.log_line(turn.now, format!("requesting {name} from {url}"));
        volumes.add_volume(turn, self, workspace, (id, name), folder, (doc, false))?;
        self.save_shares(turn, volumes, runs);
        Ok(())
    }

    pub(super) fn unshare_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
        volume: DocId,
        url: &str,
    ) -> Result<(), CommandError> {
        let mut any = false;
        for hub in self.shares.hubs.iter_mut().filter(|hub| url.is_empty() || hub.url == url) {
            any |= hub.volumes.remove(&volume);
            hub.coming.remove(&volume);
        }
        if !any {
            return Err(CommandError("the volume is not shared there".to_owned()));
        }
        self.shares.hubs.retain(|hub| !hub.volumes.is_empty());
        let name = volumes.by_id.get(&volume).map_or_else(|| volume.to_string(), |volume| volume.name.clone());
        self.log_line(turn.now, format!("stopped sharing {name}; other devices keep their copies"));
        self.save_shares(turn, volumes, runs);
        Ok(())
    }

    pub(super) fn pause_sync(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
        paused: bool,
    ) {
        if self.shares.paused != paused {
            self.shares.paused = paused;
            self.log_line(turn.now, if paused { "paused" } else { "resumed" }.to_owned());
            self.save_shares(turn, volumes, runs);
        }
    }

    /// Handles a hub's new state.
    pub(super) fn on_hub_state(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
        url: &str,
        state: HubState,
        said: Vec<String>,
    ) {
        if self.shares.hubs.iter().any(|hub| hub.url == url) {
            let before = self.states.get(url).cloned().unwrap_or_default();
            self.record_synced_times(volumes, turn.now, &before, &state);
            if before.reach == HubConnection::Online && state.reach != HubConnection::Online {
                self.on_hub_left(turn, volumes, runs, Some(url));
            }
            self.states.insert(url.to_owned(), state);
        } else {
            self.states.remove(url);
        }
        said.into_iter().for_each(|line| self.log_line(turn.now, line));
        self.revision += 1;
    }

    pub(super) fn save_shares(&mut self, turn: &mut ApplyContext<'_>, volumes: &VolumesState, runs: &RunsState) {
        self.track_outbox(turn, volumes, runs);
        let value = serde_json::to_vec(&self.shares).ok();
        self.mark_stale();
        self.last_reported = None; // at once
        self.prune_outboxes();
        let outbox = self.outbox_write();
        turn.append_writes(vec![RowWrite::Meta { key: SYNC_SHARES_KEY.to_owned(), value }, outbox], None);
    }

    /// Restores the saved state of sync at startup.
    pub(super) fn load_sync_state(&mut self, shares: SyncShares, log: Vec<(i64, String)>, told: SavedSyncState) {
        let SavedSyncState { merges, seen, agreed, outboxes } = told;
        self.outboxes = outboxes;
        self.set_seen(seen);
        self.set_agreed(agreed);
        self.log = log.into_iter().map(|(at, line)| (UnixMillis(at), line)).collect();
        self.merges = merges;
        self.shares = shares;
        self.mark_stale();
    }

    /// Queues the notes of a volume that have no document yet; they get one, a few at a time.
    pub(super) fn queue_undocumented_notes(&mut self, volumes: &VolumesState, volume: DocId) {
        if !self.is_shared(volume) {
            return;
        }
        if let Some(volume) = volumes.by_id.get(&volume) {
            // A note without a file is still waiting for its text.
            let is_made = |row: &&FileRow| row.size > 0 || row.mtime != 0;
            let bare = volume.files.values().filter(is_made).filter(|row| row.kind.is_text() && row.heads.is_empty());
            self.undocumented_notes.extend(bare.map(|row| row.id));
        }
        self.mark_stale();
    }

    /// Handles files of a volume that were added, removed or renamed here, after its document was updated.
    pub(super) fn sync_files_changed(
        &mut self,
        volumes: &VolumesState,
        volume: DocId,
        files: &[(DocId, Option<FileEntry>)],
    ) {
        if self.is_shared(volume) {
            self.on_remote_attachments(volumes, volume, files.iter().map(|(file, entry)| (file, entry.as_ref())));
            let new = files.iter().filter(|(_, entry)| entry.as_ref().is_some_and(|entry| entry.kind.is_text()));
            self.undocumented_notes.extend(new.map(|(file, _)| *file));
            self.mark_stale();
        }
    }

    /// Returns whether sync has anything to do.
    pub(super) fn is_active(&self) -> bool {
        !self.shares.hubs.is_empty() || self.is_stale
    }

    /// Applies other devices' changes to files and notes.
    pub(super) fn step_remote_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
    ) {
        self.decide_deletions(turn, files);
        self.apply_remote_file_changes(turn, files);
        self.apply_waiting_changes(turn, files, runs, workspace);
        self.place_arrived_notes(turn, files, workspace);
        self.step_undocumented_notes(turn, files);
    }

    /// Reports the current state of sync to the host, the hubs and the disk.
    pub(super) fn step_reports(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
    ) {
        self.save_sync_log(turn, false);
        self.step_outbox(turn, &files.volumes, runs);
        self.step_presence(turn, files);
        if self.is_stale {
            // This visits all documents, so it's done less often the more there are.
            let due = self
                .last_reported
                .map(|(at, count)| at.plus_ms((count / MAX_REPORTED_DOCUMENTS_PER_MS).min(1_000) as i64));
            if let Some(due) = due.filter(|due| turn.now < *due) {
                turn.wake_at(due);
                return self.step_attachments(turn, files, runs, workspace);
            }
            self.is_stale = false;
            let wanted = self.sync_targets(&files.volumes, runs);
            let of = |volumes: &DocumentsByVolume| match volumes.len() {
                1 => volumes.values().map(|docs| docs.len()).sum(),
                _ => volumes.values().flat_map(|docs| docs.iter()).collect::<BTreeSet<_>>().len(),
            };
            self.requested_counts = wanted.hubs.iter().map(|(url, volumes)| (url.clone(), of(volumes))).collect();
            self.last_reported = Some((turn.now, self.requested_counts.values().sum()));
            turn.effects.push(Effect::Sync(Box::new(wanted)));
        }
        self.step_attachments(turn, files, runs, workspace);
    }

    /// Creates documents for notes that have none yet.
    fn step_undocumented_notes(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState) {
        // Pending notes are at the start; they leave the list once they have a document.
        let next: Vec<DocId> = self.undocumented_notes.iter().copied().take(2 * MAX_CONCURRENT_NOTE_READS).collect();
        let mut room = MAX_CONCURRENT_NOTE_READS;
        for note in next {
            let open = files.notes.open.get(&note);
            let busy = open.is_some_and(|note| note.phase == NotePhase::Reading || note.is_document_loading());
            if busy || (room == 0 && open.is_none()) {
                room = room.saturating_sub(1);
                continue;
            }
            let begins = open.is_some_and(|note| note.phase == NotePhase::Ready && !note.adopted);
            let (is_open, done) = (
                open.is_some(),
                files.volumes.locate_file(note).is_none_or(|(volume, path)| {
                    let row = files.volumes.by_id.get(&volume).and_then(|volume| volume.files.get(path));
                    row.is_none_or(|row| !row.heads.is_empty())
                }),
            );
            if done {
                self.undocumented_notes.remove(&note);
                files.release_note(turn, self, note);
                continue;
            }
            if begins {
                files.notes.create_note_document(turn, note);
            } else if !is_open {
                files.read_note(turn, note);
            }
            room = room.saturating_sub(1);
        }
    }

    /// Writes the log to disk if it's due, or immediately with `now`.
    pub(super) fn save_sync_log(&mut self, turn: &mut ApplyContext<'_>, now: bool) {
        let Some(due) = self.log_due else { return };
        if !now && turn.now < due {
            return turn.wake_at(due);
        }
        self.log_due = None;
        let lines: Vec<(i64, &str)> = self.log.iter().map(|(at, line)| (at.0, line.as_str())).collect();
        let (lines, merges) = (serde_json::to_vec(&lines).ok(), serde_json::to_vec(&self.merges).ok());
        let log = RowWrite::Meta { key: SYNC_LOG_KEY.to_owned(), value: lines };
        let merges = RowWrite::Meta { key: MERGES_KEY.to_owned(), value: merges };
        let seen = RowWrite::Meta { key: SEEN_DEVICES_KEY.to_owned(), value: serde_json::to_vec(self.seen()).ok() };
        turn.append_writes(vec![log, merges, seen], None);
    }

    /// Returns the shared note that these outputs belong to.
    fn note_of_outputs(&self, volumes: &VolumesState, doc: DocId) -> Option<DocId> {
        self.notes.get(&doc).copied().filter(|note| volumes.locations.contains_key(note))
    }

    /// Returns which documents to sync over which hubs: for each volume its own document, its notes, the outputs of
    /// notes with cells, its sessions, runs and tools. Never device settings, keys, or data of the workspace alone.
    fn sync_targets(&mut self, volumes: &VolumesState, runs: &RunsState) -> SyncTargets {
        let (mut outputs, mut notes) = (std::mem::take(&mut self.outputs), std::mem::take(&mut self.notes));
        let shares = &self.shares;
        let mut known: BTreeMap<DocId, Arc<BTreeSet<DocId>>> = BTreeMap::new();
        for volume in shares.hubs.iter().flat_map(|hub| &hub.volumes) {
            if known.contains_key(volume) {
                continue;
            }
            let mut docs = BTreeSet::from([*volume]);
            let files = volumes.by_id.get(volume).into_iter().flat_map(|volume| volume.files.values());
            // A note with only a file gets a document soon, so it needn't be requested. A note whose text hasn't
            // arrived has neither.
            let waits = |row: &FileRow| row.size > 0 && row.heads.is_empty();
            for row in files.filter(|row| row.kind.is_text() && !waits(row)) {
                docs.insert(row.id);
                if row.cells > 0 {
                    docs.insert(*outputs.entry(row.id).or_insert_with(|| {
                        let outputs = row.id.outputs_id();
                        notes.insert(outputs, row.id);
                        outputs
                    }));
                }
            }
            if volumes.by_id.contains_key(volume) {
                docs.extend(runs.agent_docs(*volume));
            }
            let coming = self.expected_notes.iter().filter(|(_, (of, _))| of == volume);
            docs.extend(coming.map(|(note, _)| *note));
            known.insert(*volume, Arc::new(docs));
        }
        let of = |volume: &DocId| Some((*volume, known.get(volume)?.clone()));
        let hubs = shares.hubs.iter().map(|hub| (hub.url.clone(), hub.volumes.iter().filter_map(of).collect()));
        let wanted = SyncTargets { hubs: hubs.collect(), paused: shares.paused };
        (self.outputs, self.notes) = (outputs, notes);
        wanted
    }
}
