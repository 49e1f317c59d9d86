//! Sync as the session sees it: which volumes are shared over which hubs, what other devices changed, how far all of it
//! has got. The protocol is the store's (`store::sync`), connections are the host's.

mod apply_remote;
mod attachments;
mod deletions;
mod files;
mod merges;
mod outbox;
mod presence;
mod status;

pub use attachments::{AGREED_BYTES_KEY_PREFIX, AgreedBytes, AttachmentAction, VolumeAttachments};
pub(super) use files::format_heads;
pub use merges::{MERGES_KEY, MergeKind, MergeRecord, parse_heads};
pub use outbox::{HubOutbox, OUTBOX_KEY};
pub use presence::{RemotePeer, SEEN_DEVICES_KEY, SeenDevice};
pub use status::{SyncProgress, SyncStatus};

use super::{ApplyContext, CommandError, Session, Volume};
use crate::effect::Effect;
use crate::note::NotePhase;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::sync::{document_address, parse_document_address};
use store::{BlobHash, ChangeParcel, DocId, FileEntry, VolumeDoc};
use text::time::UnixMillis;

/// What stands for the local network in place of a hub's address: all paired devices on it.
pub const LAN_HUB_ADDRESS: &str = "lan:";
/// Under which name the disk keeps what is shared over which hubs.
pub const SYNC_SHARES_KEY: &str = "sync";
/// Under which name the disk keeps the log of sync.
pub const SYNC_LOG_KEY: &str = "sync/log";
/// Lines of the log that are kept.
const MAX_SYNC_LOG_LINES: usize = 200;
/// The log is kept on disk this often at most, in milliseconds.
const SYNC_LOG_SAVE_INTERVAL_MS: i64 = 2_000;
/// The host is told of this many documents in a millisecond, at most.
const MAX_REPORTED_DOCUMENTS_PER_MS: usize = 100;
/// Notes that are read at the same time so that they get documents, before they can be synced.
const MAX_CONCURRENT_NOTE_READS: usize = 64;
/// Notes that are being made or changed at the same time as other devices want it. What comes for further ones waits:
/// all that is under way is gone through whenever something happens.
const MAX_ARRIVING_NOTES: usize = 256;

/// A hub, and what is shared over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHub {
    /// Its address: `ws://…` or `wss://…`.
    pub url: String,
    /// The volumes.
    pub volumes: BTreeSet<DocId>,
    /// Those of them that came from there and have not arrived yet.
    #[serde(default)]
    pub coming: BTreeSet<DocId>,
}

/// What lasts of the settings of sync, on this device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncShares {
    /// The hubs.
    pub hubs: Vec<SharedHub>,
    /// Whether nothing is synced for now, since the user wants it so.
    pub paused: bool,
    /// Tools of others that were removed here: they are not proposed again.
    #[serde(default)]
    pub refused_tools: BTreeSet<BlobHash>,
}

/// Documents by the volume that they belong to.
pub type DocumentsByVolume = BTreeMap<DocId, Arc<BTreeSet<DocId>>>;

/// What the host is to connect to, and which documents it is to sync there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTargets {
    /// Address of each hub, and the documents of each volume.
    pub hubs: Vec<(String, DocumentsByVolume)>,
    /// Whether to connect to none for now.
    pub paused: bool,
}

/// What the disk kept of what was seen.
#[derive(Clone, Debug, Default)]
pub struct SavedSyncState {
    /// What other devices' edits did to notes, oldest first.
    pub merges: VecDeque<MergeRecord>,
    /// Devices that were seen, by the beginning of their key or by name.
    pub seen: BTreeMap<String, SeenDevice>,
    /// The bytes of attachments that were the same everywhere last.
    pub agreed: BTreeMap<DocId, AgreedBytes>,
    /// What hubs have not been sent, by their address.
    pub outboxes: BTreeMap<String, HubOutbox>,
}

/// How blobs stand with a hub: pictures, other attachments, large outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubBlobState {
    /// Whether it keeps any; `None`: nobody knows yet.
    pub kept: Option<bool>,
    /// How many are still to come to this device.
    pub coming: usize,
    /// How many of them somebody who is there may have.
    pub there: usize,
    /// How many are still to go from here.
    pub going: usize,
    /// How many it has refused.
    pub refused: usize,
    /// What is still being looked at on this device: what it names may be to come or to go.
    pub busy: usize,
}

impl HubBlobState {
    /// In words; nothing where there is nothing to say.
    pub fn describe(&self) -> String {
        let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let mut words = Vec::new();
        if self.kept == Some(false) {
            words.push("it keeps no pictures and no large outputs".to_owned());
        }
        if self.coming > 0 {
            words.push(format!("{} to come", files(self.coming)));
        }
        if self.coming > self.there && self.kept != Some(false) {
            words.push(format!("{} of them not there yet", self.coming - self.there));
        }
        if self.going > 0 {
            words.push(format!("{} to go", files(self.going)));
        }
        if self.refused > 0 {
            words.push(format!("{} refused", files(self.refused)));
        }
        words.join(", ")
    }
}

/// How the connection to a hub stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HubConnection {
    /// It is not tried: sync is paused.
    #[default]
    Paused,
    /// It is being tried.
    Connecting,
    /// It is there.
    Online,
    /// It is not there; it is tried again by itself. That is no error: all that is done meanwhile is sent later.
    Offline {
        /// Why, in words.
        why: String,
    },
}

/// What the host tells of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubState {
    /// Whether it is there.
    pub reach: HubConnection,
    /// When something was heard from it last.
    pub seen: Option<UnixMillis>,
    /// Documents that are synced with it.
    pub documents: usize,
    /// Bytes that were sent to it and came from it since the program began.
    pub sent: u64,
    /// The other way.
    pub received: u64,
    /// Documents of which not both have the same yet.
    pub behind: Arc<BTreeSet<DocId>>,
    /// How blobs stand.
    pub blobs: HubBlobState,
}

/// How far a note or a volume has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is not shared.
    NotShared,
    /// It is on this device's disk, and not yet all of it elsewhere.
    SavedLocally,
    /// All of it was sent, to hubs of which not all are there now.
    SentToAwayHub,
    /// All that shares it has the same.
    Synced,
}

/// All that the session knows of sync.
#[derive(Debug, Default)]
pub struct SyncState {
    /// What is shared where.
    pub shares: SyncShares,
    /// How each hub stands, by address.
    pub states: BTreeMap<String, HubState>,
    /// What happened, oldest first.
    pub log: VecDeque<(UnixMillis, String)>,
    /// What other devices' edits did to notes here, oldest first.
    pub merges: VecDeque<MergeRecord>,
    /// Counts changes of all this.
    pub revision: u64,
    /// When changes of other devices came last: of notes, volumes.
    last_received: BTreeMap<DocId, UnixMillis>,
    /// When documents and volumes were the same everywhere last.
    last_synced: BTreeMap<DocId, UnixMillis>,
    /// Who else is where.
    presence: presence::PresenceState,
    attachments: attachments::AttachmentsState,
    /// What hubs have not been sent, and when a shared document changed here last.
    outboxes: outbox::HubOutboxes,
    /// When it is to be kept on disk, if there is much of it.
    outbox_due: Option<UnixMillis>,
    changed: Option<UnixMillis>,
    /// When the log is to be kept on disk, if it has new lines.
    log_due: Option<UnixMillis>,
    /// Whether the host is to be told anew what is wanted.
    is_stale: bool,
    /// When it was told last, and of how many documents.
    last_reported: Option<(UnixMillis, usize)>,
    /// Of how many for each hub.
    requested_counts: BTreeMap<String, usize>,
    /// The outputs document of each shared note with cells, and back.
    outputs: HashMap<DocId, DocId>,
    notes: HashMap<DocId, DocId>,
    /// Notes of shared volumes that have no document yet.
    undocumented_notes: BTreeSet<DocId>,
    /// Changes of a volume's document that came before it was loaded.
    early_volume_changes: Vec<(DocId, u64, ChangeParcel)>,
    /// New notes of other devices, by volume, until their text is there.
    expected_notes: BTreeMap<DocId, (DocId, FileEntry)>,
    /// Text of such notes that waits for its place to be free.
    arrived_notes: Vec<(DocId, u64, ChangeParcel)>,
    /// What has come while enough is under way, with what it is answered by.
    waiting_changes: VecDeque<(DocId, u64, ChangeParcel)>,
    /// What other devices did to files, and is to be done here.
    renames: BTreeSet<DocId>,
    deleted: BTreeSet<DocId>,
    restored: BTreeSet<DocId>,
    /// Notes that were deleted elsewhere and may have been edited here, each with whether it is held open for it.
    remote_deletions: BTreeMap<DocId, bool>,
    /// What could not be done is tried again then, and so often it was tried.
    retry_at: Option<UnixMillis>,
    retry_counts: BTreeMap<DocId, u32>,
}

impl SyncState {
    pub(super) fn log_line(&mut self, now: UnixMillis, line: String) {
        if self.log.back().is_some_and(|(_, last)| *last == line) {
            self.log.pop_back(); // the same again: now
        } else if self.log.len() >= MAX_SYNC_LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back((now, line));
        self.log_due.get_or_insert(now.plus_ms(SYNC_LOG_SAVE_INTERVAL_MS));
        self.revision += 1;
    }

    /// Whether the volume is one that was asked for and is not here yet: nothing may be written into its document.
    pub(super) fn is_coming(&self, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| hub.coming.contains(&volume))
    }

    /// Whether a volume was asked for and is not here yet.
    pub fn is_awaited(&self, volume: DocId) -> bool {
        self.is_coming(volume)
    }

    /// Whether all that came is in its place, and all that is to be sent can be. Notes whose text no hub has yet are
    /// not waited for.
    pub fn is_settled(&self) -> bool {
        !self.is_stale
            && self.arrived_notes.is_empty()
            && self.waiting_changes.is_empty()
            && self.early_volume_changes.is_empty()
            && self.undocumented_notes.is_empty()
            && self.renames.is_empty()
            && self.deleted.is_empty()
            && self.restored.is_empty()
            && self.remote_deletions.is_empty()
            && (self.shares.hubs.is_empty() || self.attachments_settled())
    }

    /// Whether the host has said how the hubs stand since it was told last what is to be synced there: before that,
    /// nothing may be behind only because nobody has looked.
    pub fn has_current_hub_states(&self) -> bool {
        self.shares.hubs.iter().all(|hub| {
            let state = self.states.get(&hub.url);
            state.is_some_and(|state| Some(&state.documents) == self.requested_counts.get(&hub.url))
        })
    }

    /// Whether others may be looking: a hub that shares the volume is there.
    pub(super) fn is_hub_online(&self, volume: DocId) -> bool {
        let there = |url: &str| self.states.get(url).is_some_and(|state| state.reach == HubConnection::Online);
        self.shares.hubs.iter().any(|hub| hub.volumes.contains(&volume) && there(&hub.url))
    }

    /// Whether a volume is shared at all.
    pub fn is_shared(&self, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| hub.volumes.contains(&volume))
    }

    /// What the host is to be told once more.
    pub(super) fn mark_stale(&mut self) {
        self.is_stale = true;
        self.mark_attachments_stale();
        self.revision += 1;
    }
}

/// The address under which others get a volume: the hub's, `#`, and the document's.
pub fn volume_address(url: &str, volume: DocId) -> String {
    format!("{url}#{}", document_address(volume))
}

/// Reads such an address.
///
/// # Errors
/// A sentence.
pub fn read_volume_address(address: &str) -> Result<(String, DocId), CommandError> {
    let parts = address.split_once('#').and_then(|(url, doc)| Some((url, parse_document_address(doc)?)));
    let Some((url, doc)) = parts else {
        return Err(CommandError(format!(
            "a volume's address is a hub's address, # and a document's (ws://host:port#automerge:…): {address}"
        )));
    };
    Ok((hub_address(url)?, doc))
}

/// A hub's address as it is kept; `lan` is the local network.
///
/// # Errors
/// A sentence.
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

impl Session {
    /// What the session knows of sync.
    pub fn sync(&self) -> &SyncState {
        &self.sync
    }

    pub(super) fn share_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volume: DocId,
        url: &str,
    ) -> Result<(), CommandError> {
        let url = hub_address(url)?;
        let name = match self.volumes.get(&volume) {
            Some(Volume { root: Some(_), name, .. }) => name.clone(),
            Some(volume) => {
                return Err(CommandError(format!("the volume has no folder on this device: {}", volume.name)));
            }
            None => return Err(CommandError(format!("there is no volume {volume}"))),
        };
        self.hub_mut(&url).volumes.insert(volume);
        self.sync.log_line(turn.now, format!("{name} is shared over {url}"));
        self.save_shares(turn);
        self.queue_undocumented_notes(volume);
        self.on_volume_list_loaded(turn, volume);
        Ok(())
    }

    pub(super) fn join_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        address: &str,
        folder: PathBuf,
    ) -> Result<(), CommandError> {
        let (url, id) = read_volume_address(address)?;
        if let Some(volume) = self.volumes.get(&id) {
            return Err(CommandError(format!("this volume is here already: {}", volume.name)));
        }
        let name = self.check_volume_folder(&folder, None)?;
        let doc = VolumeDoc::load(id, &[], self.actor.clone()).map_err(|error| CommandError(error.to_string()))?.doc;
        let hub = self.hub_mut(&url);
        hub.volumes.insert(id);
        hub.coming.insert(id);
        self.sync.log_line(turn.now, format!("{name} is asked for at {url}"));
        self.add_volume(turn, id, name, folder, doc, false)?;
        self.save_shares(turn);
        Ok(())
    }

    pub(super) fn unshare_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volume: DocId,
        url: &str,
    ) -> Result<(), CommandError> {
        let mut any = false;
        for hub in self.sync.shares.hubs.iter_mut().filter(|hub| url.is_empty() || hub.url == url) {
            any |= hub.volumes.remove(&volume);
            hub.coming.remove(&volume);
        }
        if !any {
            return Err(CommandError("the volume is not shared there".to_owned()));
        }
        self.sync.shares.hubs.retain(|hub| !hub.volumes.is_empty());
        let name = self.volumes.get(&volume).map_or_else(|| volume.to_string(), |volume| volume.name.clone());
        self.sync.log_line(turn.now, format!("{name} is not shared any more; what others have of it stays with them"));
        self.save_shares(turn);
        Ok(())
    }

    pub(super) fn pause_sync(&mut self, turn: &mut ApplyContext<'_>, paused: bool) {
        if self.sync.shares.paused != paused {
            self.sync.shares.paused = paused;
            self.sync.log_line(turn.now, if paused { "paused" } else { "goes on" }.to_owned());
            self.save_shares(turn);
        }
    }

    pub(super) fn retry_sync(&mut self, turn: &mut ApplyContext<'_>) {
        turn.effects.push(Effect::RetrySync);
    }

    /// The host tells how a hub stands.
    pub(super) fn on_hub_state(&mut self, turn: &mut ApplyContext<'_>, url: &str, state: HubState, said: Vec<String>) {
        if self.sync.shares.hubs.iter().any(|hub| hub.url == url) {
            let before = self.sync.states.get(url).cloned().unwrap_or_default();
            self.record_synced_times(turn.now, &before, &state);
            if before.reach == HubConnection::Online && state.reach != HubConnection::Online {
                self.on_hub_left(turn, Some(url));
            }
            self.sync.states.insert(url.to_owned(), state);
        } else {
            self.sync.states.remove(url);
        }
        said.into_iter().for_each(|line| self.sync.log_line(turn.now, line));
        self.sync.revision += 1;
    }

    fn hub_mut(&mut self, url: &str) -> &mut SharedHub {
        let hubs = &mut self.sync.shares.hubs;
        let at = hubs.iter().position(|hub| hub.url == url).unwrap_or_else(|| {
            hubs.push(SharedHub { url: url.to_owned(), volumes: BTreeSet::new(), coming: BTreeSet::new() });
            hubs.len() - 1
        });
        &mut hubs[at]
    }

    pub(super) fn save_shares(&mut self, turn: &mut ApplyContext<'_>) {
        let value = serde_json::to_vec(&self.sync.shares).ok();
        self.sync.mark_stale();
        self.sync.last_reported = None; // at once
        self.sync.prune_outboxes();
        let outbox = self.sync.outbox_write();
        self.append_writes(turn, vec![RowWrite::Meta { key: SYNC_SHARES_KEY.to_owned(), value }, outbox], None);
    }

    /// What was shared when the program ended.
    pub(super) fn load_sync_state(&mut self, shares: SyncShares, log: Vec<(i64, String)>, told: SavedSyncState) {
        let SavedSyncState { merges, seen, agreed, outboxes } = told;
        self.sync.outboxes = outboxes;
        self.sync.set_seen(seen);
        self.sync.set_agreed(agreed);
        self.sync.log = log.into_iter().map(|(at, line)| (UnixMillis(at), line)).collect();
        self.sync.merges = merges;
        self.sync.shares = shares;
        self.sync.mark_stale();
    }

    /// Notes of this volume without a document get one, a few at a time.
    pub(super) fn queue_undocumented_notes(&mut self, volume: DocId) {
        if !self.sync.is_shared(volume) {
            return;
        }
        if let Some(volume) = self.volumes.get(&volume) {
            // Of what has no file either the text is still to come.
            let is_made = |row: &&FileRow| row.size > 0 || row.mtime != 0;
            let bare = volume.files.values().filter(is_made).filter(|row| row.kind.is_text() && row.heads.is_empty());
            self.sync.undocumented_notes.extend(bare.map(|row| row.id));
        }
        self.sync.mark_stale();
    }

    /// Files of a volume came, went or were renamed here, and its document says so.
    pub(super) fn sync_files_changed(&mut self, volume: DocId, files: &[(DocId, Option<FileEntry>)]) {
        if self.sync.is_shared(volume) {
            self.on_remote_attachments(volume, files.iter().map(|(file, entry)| (file, entry.as_ref())));
            let new = files.iter().filter(|(_, entry)| entry.as_ref().is_some_and(|entry| entry.kind.is_text()));
            self.sync.undocumented_notes.extend(new.map(|(file, _)| *file));
            self.sync.mark_stale();
        }
    }

    /// Called whenever something has happened.
    pub(super) fn step_sync(&mut self, turn: &mut ApplyContext<'_>) {
        if self.sync.shares.hubs.is_empty() && !self.sync.is_stale {
            return;
        }
        self.decide_deletions(turn);
        self.apply_remote_file_changes(turn);
        self.apply_waiting_changes(turn);
        self.place_arrived_notes(turn);
        self.step_undocumented_notes(turn);
        self.step_tool_sharing(turn);
        self.write_volume_lists(turn);
        self.save_sync_log(turn, false);
        self.step_outbox(turn);
        self.step_presence(turn);
        if self.sync.is_stale {
            // All documents are gone through for it: the more there are, the more seldom.
            let due = self
                .sync
                .last_reported
                .map(|(at, count)| at.plus_ms((count / MAX_REPORTED_DOCUMENTS_PER_MS).min(1_000) as i64));
            if let Some(due) = due.filter(|due| turn.now < *due) {
                self.wake_at(turn, due);
                return self.step_attachments(turn);
            }
            self.sync.is_stale = false;
            let wanted = self.sync_targets();
            let of = |volumes: &DocumentsByVolume| match volumes.len() {
                1 => volumes.values().map(|docs| docs.len()).sum(),
                _ => volumes.values().flat_map(|docs| docs.iter()).collect::<BTreeSet<_>>().len(),
            };
            self.sync.requested_counts = wanted.hubs.iter().map(|(url, volumes)| (url.clone(), of(volumes))).collect();
            self.sync.last_reported = Some((turn.now, self.sync.requested_counts.values().sum()));
            turn.effects.push(Effect::Sync(Box::new(wanted)));
        }
        self.step_attachments(turn);
    }

    /// Gives documents to notes that have none yet.
    fn step_undocumented_notes(&mut self, turn: &mut ApplyContext<'_>) {
        // Those that are under way stand among the first: they leave the list when they have a document.
        let next: Vec<DocId> =
            self.sync.undocumented_notes.iter().copied().take(2 * MAX_CONCURRENT_NOTE_READS).collect();
        let mut room = MAX_CONCURRENT_NOTE_READS;
        for note in next {
            let open = self.notes.get(&note);
            let busy = open.is_some_and(|note| note.phase == NotePhase::Reading || note.is_document_loading());
            if busy || (room == 0 && open.is_none()) {
                room = room.saturating_sub(1);
                continue;
            }
            let begins = open.is_some_and(|note| note.phase == NotePhase::Ready && !note.adopted);
            let (is_open, done) = (
                open.is_some(),
                self.locate_file(note).is_none_or(|(volume, path)| {
                    let row = self.volumes.get(&volume).and_then(|volume| volume.files.get(path));
                    row.is_none_or(|row| !row.heads.is_empty())
                }),
            );
            if done {
                self.sync.undocumented_notes.remove(&note);
                self.release_note(turn, note);
                continue;
            }
            if begins {
                self.create_note_document(turn, note);
            } else if !is_open {
                self.read_note(turn, note);
            }
            room = room.saturating_sub(1);
        }
    }

    /// Keeps the log on disk, if it is time or `now`.
    pub(super) fn save_sync_log(&mut self, turn: &mut ApplyContext<'_>, now: bool) {
        let Some(due) = self.sync.log_due else { return };
        if !now && turn.now < due {
            return self.wake_at(turn, due);
        }
        self.sync.log_due = None;
        let lines: Vec<(i64, &str)> = self.sync.log.iter().map(|(at, line)| (at.0, line.as_str())).collect();
        let (lines, merges) = (serde_json::to_vec(&lines).ok(), serde_json::to_vec(&self.sync.merges).ok());
        let log = RowWrite::Meta { key: SYNC_LOG_KEY.to_owned(), value: lines };
        let merges = RowWrite::Meta { key: MERGES_KEY.to_owned(), value: merges };
        let seen =
            RowWrite::Meta { key: SEEN_DEVICES_KEY.to_owned(), value: serde_json::to_vec(self.sync.seen()).ok() };
        self.append_writes(turn, vec![log, merges, seen], None);
    }

    /// The shared note whose outputs these are.
    fn note_of_outputs(&self, doc: DocId) -> Option<DocId> {
        self.sync.notes.get(&doc).copied().filter(|note| self.file_locations.contains_key(note))
    }

    /// Which documents are to be synced where: of each volume its own, its notes, the outputs of notes with cells, its
    /// sessions, runs and tools. Never settings of this device, keys, or what a workspace alone knows.
    fn sync_targets(&mut self) -> SyncTargets {
        let (mut outputs, mut notes) = (std::mem::take(&mut self.sync.outputs), std::mem::take(&mut self.sync.notes));
        let shares = &self.sync.shares;
        let mut known: BTreeMap<DocId, Arc<BTreeSet<DocId>>> = BTreeMap::new();
        for volume in shares.hubs.iter().flat_map(|hub| &hub.volumes) {
            if known.contains_key(volume) {
                continue;
            }
            let mut docs = BTreeSet::from([*volume]);
            let files = self.volumes.get(volume).into_iter().flat_map(|volume| volume.files.values());
            // A note that has only its file will have a document in a moment, and need not be asked for. One whose text
            // has not come yet has neither.
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
            if self.volumes.contains_key(volume) {
                docs.extend(self.agent_docs(*volume));
            }
            let coming = self.sync.expected_notes.iter().filter(|(_, (of, _))| of == volume);
            docs.extend(coming.map(|(note, _)| *note));
            known.insert(*volume, Arc::new(docs));
        }
        let of = |volume: &DocId| Some((*volume, known.get(volume)?.clone()));
        let hubs = shares.hubs.iter().map(|hub| (hub.url.clone(), hub.volumes.iter().filter_map(of).collect()));
        let wanted = SyncTargets { hubs: hubs.collect(), paused: shares.paused };
        (self.sync.outputs, self.sync.notes) = (outputs, notes);
        wanted
    }
}
