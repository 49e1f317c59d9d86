//! State of sync: shares, hubs, presence, attachments, and pending changes.

use crate::effect::Effect;
use crate::records::files::FileStamp;
use crate::records::sync::{
    AGREED_BYTES_KEY_PREFIX, AgreedBytes, HubConnection, HubOutbox, HubState, MergeRecord, SeenDevice, SharedHub,
    SyncShares,
};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::volume_paths::is_acceptable_remote_path;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use store::FileKind;
use store::disk::FileRow;
use store::disk::RowWrite;
use store::is_hidden;
use store::sync::presence::{CaretMark, PresentPerson};
use store::{BlobHash, BlockId, ChangeParcel, DocId, FileBytes, FileEntry};
use text::time::UnixMillis;

/// Maximum number of log lines.
pub(in crate::session) const MAX_SYNC_LOG_LINES: usize = 200;
/// Minimum interval between writes of the log to disk, in milliseconds.
pub(in crate::session) const SYNC_LOG_SAVE_INTERVAL_MS: i64 = 2_000;

/// State of sync.
#[derive(Debug, Default)]
pub struct SyncState {
    /// The hubs and the volumes shared over each.
    pub shares: SyncShares,
    /// State of each hub, by address.
    pub states: BTreeMap<String, HubState>,
    /// The sync log, oldest line first.
    pub log: VecDeque<(UnixMillis, String)>,
    /// Effects of other devices' edits on notes here, oldest first.
    pub merges: VecDeque<MergeRecord>,
    /// Counter that increases with each change to the state of sync.
    pub revision: u64,
    /// When changes from other devices last arrived, by note or volume.
    pub(in crate::session) last_received: BTreeMap<DocId, UnixMillis>,
    /// When documents and volumes were last the same everywhere.
    pub(in crate::session) last_synced: BTreeMap<DocId, UnixMillis>,
    /// Presence of other people and devices.
    pub(in crate::session) presence: PresenceState,
    pub(in crate::session) attachments: AttachmentsState,
    /// Changes not yet sent to each hub. `changed` is when a shared document last changed here.
    pub(in crate::session) outboxes: HubOutboxes,
    /// When to write the outboxes to disk, if many changes are pending.
    pub(in crate::session) outbox_due: Option<UnixMillis>,
    pub(in crate::session) changed: Option<UnixMillis>,
    /// When to write the log to disk, if it has new lines.
    pub(in crate::session) log_due: Option<UnixMillis>,
    /// Whether the host needs new targets.
    pub(in crate::session) is_stale: bool,
    /// When the host last got targets, and the number of documents in them.
    pub(in crate::session) last_reported: Option<(UnixMillis, usize)>,
    /// Number of documents requested for each hub.
    pub(in crate::session) requested_counts: BTreeMap<String, usize>,
    /// Outputs document of each shared note with cells; `notes` is the reverse map.
    pub(in crate::session) outputs: HashMap<DocId, DocId>,
    pub(in crate::session) notes: HashMap<DocId, DocId>,
    /// Notes of shared volumes that have no document yet.
    pub(in crate::session) undocumented_notes: BTreeSet<DocId>,
    /// Changes of volume documents that arrived before the document was loaded.
    pub(in crate::session) early_volume_changes: Vec<(DocId, u64, ChangeParcel)>,
    /// New notes of other devices whose text hasn't arrived yet, by volume.
    pub(in crate::session) expected_notes: BTreeMap<DocId, (DocId, FileEntry)>,
    /// Text of such notes that waits for its path to become free.
    pub(in crate::session) arrived_notes: Vec<(DocId, u64, ChangeParcel)>,
    /// Received changes that wait for capacity, with their tickets.
    pub(in crate::session) waiting_changes: VecDeque<(DocId, u64, ChangeParcel)>,
    /// Files whose renames by other devices must be repeated here; `deleted` and `restored` hold those for other
    /// changes.
    pub(in crate::session) renames: BTreeSet<DocId>,
    pub(in crate::session) deleted: BTreeSet<DocId>,
    pub(in crate::session) restored: BTreeSet<DocId>,
    /// Notes that were deleted elsewhere and may have been edited here, each with whether it's held open for the check.
    pub(in crate::session) remote_deletions: BTreeMap<DocId, bool>,
    /// When failed file changes are retried; `retry_counts` holds the number of attempts per file.
    pub(in crate::session) retry_at: Option<UnixMillis>,
    pub(in crate::session) retry_counts: BTreeMap<DocId, u32>,
}

impl SyncState {
    pub(in crate::session) fn refuse_received(&mut self, turn: &mut ApplyContext<'_>, ticket: u64, why: String) {
        self.log_line(turn.now, format!("changes from another device were refused: {why}"));
        turn.effects.push(Effect::RefuseReceived { ticket, why });
    }

    pub(in crate::session) fn retry_sync(&self, turn: &mut ApplyContext<'_>) {
        turn.effects.push(Effect::RetrySync);
    }

    pub(in crate::session) fn hub_mut(&mut self, url: &str) -> &mut SharedHub {
        let hubs = &mut self.shares.hubs;
        let at = hubs.iter().position(|hub| hub.url == url).unwrap_or_else(|| {
            hubs.push(SharedHub { url: url.to_owned(), volumes: BTreeSet::new(), coming: BTreeSet::new() });
            hubs.len() - 1
        });
        &mut hubs[at]
    }

    /// Forgets other devices' files of a volume that was closed.
    pub(in crate::session) fn attachments_closed(&mut self, volume: DocId) {
        for file in self.attachments.remote_files.remove(&volume).unwrap_or_default().into_keys() {
            self.attachments.reading.remove(&file);
        }
        self.attachments.paths.retain(|(of, _), _| *of != volume);
        self.attachments.incoming.remove(&volume);
        self.mark_stale();
    }

    /// Marks sync as stale after a file was removed from its volume or from the trash, if bytes were agreed for it.
    pub(in crate::session) fn attachment_gone(&mut self, file: DocId) {
        if self.attachments.agreed_bytes.contains_key(&file) {
            self.mark_stale();
        }
    }

    /// Returns whether an attachment from another device may have this path here.
    pub(in crate::session) fn is_valid_attachment_path(
        &mut self,
        turn: &mut ApplyContext<'_>,
        file: DocId,
        path: &str,
    ) -> bool {
        let sound = is_acceptable_remote_path(path, FileKind::Attachment);
        if sound && is_hidden(path) {
            return false; // what is hidden is a program's own, and stays where it is
        }
        if !sound && self.attachments.refused_names.insert(file) {
            let path: String = path.chars().take(200).collect();
            self.log_line(turn.now, format!("a file name from another device is refused: {path:?}"));
        }
        sound
    }

    /// Records that the file has the same bytes here and on other devices.
    pub(in crate::session) fn record_agreement(&mut self, turn: &mut ApplyContext<'_>, file: DocId, stamp: FileStamp) {
        let agreed = AgreedBytes { hash: stamp.hash, size: stamp.size, mtime: stamp.mtime };
        if self.attachments.agreed_bytes.insert(file, agreed) != Some(agreed) {
            let value = serde_json::to_vec(&agreed).ok();
            turn.append_writes(vec![RowWrite::Meta { key: format!("{AGREED_BYTES_KEY_PREFIX}{file}"), value }], None);
        }
        self.attachments.read.remove(&file);
    }

    /// Returns whether changes of a note may still arrive, including those that the deleting device knew.
    pub(in crate::session) fn may_receive_more(&self, volume: DocId, file: DocId) -> bool {
        let hubs = self.shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume));
        let states: Vec<_> = hubs.filter_map(|hub| self.states.get(&hub.url)).collect();
        let online = |reach: &HubConnection| *reach == HubConnection::Online;
        !states.iter().any(|state| online(&state.reach))
            || states.iter().any(|state| online(&state.reach) && state.behind.contains(&file))
    }

    pub(in crate::session) fn save_outbox(&mut self, turn: &mut ApplyContext<'_>) {
        self.outbox_due = None;
        let write = self.outbox_write();
        turn.append_writes(vec![write], None);
    }

    /// Returns the other people in a note.
    pub fn peers_at(&self, note: DocId) -> &[RemotePeer] {
        self.presence.peers.get(&note).map_or(&[], Vec::as_slice)
    }

    /// Returns the name of the device that is running a cell remotely, if any.
    pub fn remote_runner(&self, note: DocId, cell: BlockId) -> Option<&str> {
        let runs = |one: &&RemotePeer| one.running.contains(&cell);
        self.peers_at(note).iter().find(runs).map(|one| one.name.as_str())
    }

    /// Returns known devices, each with whether it's connected: connected ones first, then the most recently seen.
    pub fn devices(&self) -> Vec<(&SeenDevice, bool)> {
        let here = |key: &String| self.presence.devices.values().any(|devices| devices.contains(key));
        let mut all: Vec<(&SeenDevice, bool)> =
            self.presence.seen.iter().map(|(key, seen)| (seen, here(key))).collect();
        all.sort_by_key(|(seen, here)| (!here, std::cmp::Reverse(seen.at), seen.name.clone()));
        all
    }

    pub(in crate::session) fn seen(&self) -> &BTreeMap<String, SeenDevice> {
        &self.presence.seen
    }

    pub(in crate::session) fn set_seen(&mut self, seen: BTreeMap<String, SeenDevice>) {
        self.presence.seen = seen;
    }

    /// Checks that no other device is running these cells; the error names the device.
    pub(in crate::session) fn ensure_not_running_remotely(
        &self,
        note: DocId,
        cells: &[BlockId],
    ) -> Result<(), CommandError> {
        match cells.iter().find_map(|cell| self.remote_runner(note, *cell)) {
            Some(name) => Err(CommandError(format!("{name} runs this cell; what it prints is seen here, too"))),
            None => Ok(()),
        }
    }
}

impl SyncState {
    pub(in crate::session) fn log_line(&mut self, now: UnixMillis, line: String) {
        if self.log.back().is_some_and(|(_, last)| *last == line) {
            self.log.pop_back(); // the same again: now
        } else if self.log.len() >= MAX_SYNC_LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back((now, line));
        self.log_due.get_or_insert(now.plus_ms(SYNC_LOG_SAVE_INTERVAL_MS));
        self.revision += 1;
    }

    /// Returns whether a volume was requested and hasn't arrived, so that nothing may be written to its document.
    pub(in crate::session) fn is_coming(&self, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| hub.coming.contains(&volume))
    }

    /// Returns whether a volume was requested and hasn't arrived.
    pub fn is_awaited(&self, volume: DocId) -> bool {
        self.is_coming(volume)
    }

    /// Returns whether all received changes are applied and all local changes can be sent. Doesn't wait for notes whose
    /// text no hub has yet.
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

    /// Returns whether the host has reported the hubs' states since it got the current targets. Before that, "in sync"
    /// may only mean that nothing was checked yet.
    pub fn has_current_hub_states(&self) -> bool {
        self.shares.hubs.iter().all(|hub| {
            let state = self.states.get(&hub.url);
            state.is_some_and(|state| Some(&state.documents) == self.requested_counts.get(&hub.url))
        })
    }

    /// Returns whether others may have the volume open, because a hub that shares it is connected.
    pub(in crate::session) fn is_hub_online(&self, volume: DocId) -> bool {
        let there = |url: &str| self.states.get(url).is_some_and(|state| state.reach == HubConnection::Online);
        self.shares.hubs.iter().any(|hub| hub.volumes.contains(&volume) && there(&hub.url))
    }

    /// Returns whether a volume is shared over any hub.
    pub fn is_shared(&self, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| hub.volumes.contains(&volume))
    }

    /// Marks the host's targets as outdated.
    pub(in crate::session) fn mark_stale(&mut self) {
        self.is_stale = true;
        self.mark_attachments_stale();
        self.revision += 1;
    }
}

/// Outbox of each hub, by address.
pub(in crate::session) type HubOutboxes = BTreeMap<String, HubOutbox>;

/// Another person in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePeer {
    /// Id of the person's running program.
    pub peer: String,
    /// Name of the person's device.
    pub name: String,
    /// The person's carets as byte offsets in the note, each with the other end of its selection.
    pub carets: Vec<(usize, usize)>,
    /// The note's revision that these offsets refer to.
    pub revision: u64,
    /// The cells that the person is running.
    pub running: Vec<BlockId>,
    /// Counter that increases when the person's carets move.
    pub moves: u64,
    pub(in crate::session) marks: Vec<CaretMark>,
}

/// State of presence.
#[derive(Debug, Default)]
pub(in crate::session) struct PresenceState {
    /// People in each document.
    pub(in crate::session) peers: BTreeMap<DocId, Vec<RemotePeer>>,
    /// Known devices, by the beginning of their key or by name.
    pub(in crate::session) seen: BTreeMap<String, SeenDevice>,
    /// Keys of the devices that are connected now, by document.
    pub(in crate::session) devices: BTreeMap<DocId, BTreeSet<String>>,
    /// The user's note and carets.
    pub(in crate::session) own_carets: Option<(DocId, Vec<CaretMark>)>,
    /// Presence that the host currently announces.
    pub(in crate::session) last_sent: BTreeMap<DocId, PresentPerson>,
    pub(in crate::session) moves: u64,
}

/// An attachment on other devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct RemoteFile {
    pub(in crate::session) path: String,
    pub(in crate::session) bytes: Option<FileBytes>,
    /// Hashes that were set concurrently and lost the conflict.
    pub(in crate::session) rivals: Vec<BlobHash>,
}

/// State of attachments.
#[derive(Debug, Default)]
pub(in crate::session) struct AttachmentsState {
    /// Attachments in the volumes' documents, by volume and file.
    pub(in crate::session) remote_files: BTreeMap<DocId, BTreeMap<DocId, RemoteFile>>,
    /// The same attachments by volume and path.
    pub(in crate::session) paths: HashMap<(DocId, String), DocId>,
    pub(in crate::session) agreed_bytes: BTreeMap<DocId, AgreedBytes>,
    /// Stamps of local files that were read since the last agreement.
    pub(in crate::session) read: BTreeMap<DocId, FileStamp>,
    /// Size and modification time of files that couldn't be read.
    pub(in crate::session) unreadable: BTreeMap<DocId, (u64, i64)>,
    /// Files that are being read.
    pub(in crate::session) reading: BTreeSet<DocId>,
    /// Files whose paths were rejected.
    pub(in crate::session) refused_names: BTreeSet<DocId>,
    /// Files that will arrive, by volume: path and size in bytes.
    pub(in crate::session) incoming: BTreeMap<DocId, Vec<(String, u64)>>,
    pub(in crate::session) is_stale: bool,
    pub(in crate::session) last_reported: Option<(UnixMillis, usize)>,
    /// Counter that increases when attachments arrive or are announced.
    pub(in crate::session) arrival_count: u64,
}

impl AttachmentsState {
    pub(in crate::session) fn set_remote_file(&mut self, volume: DocId, file: DocId, theirs: Option<RemoteFile>) {
        let all = self.remote_files.entry(volume).or_default();
        if let Some(old) = all.remove(&file)
            && self.paths.get(&(volume, old.path.clone())) == Some(&file)
        {
            self.paths.remove(&(volume, old.path));
        }
        if let Some(theirs) = theirs {
            self.paths.insert((volume, theirs.path.clone()), file);
            all.insert(file, theirs);
        }
    }

    /// Returns the stamp of a file on this device, if its bytes are known.
    pub(in crate::session) fn local_stamp(&self, row: &FileRow) -> Option<FileStamp> {
        let agreed = self.agreed_bytes.get(&row.id).map(|agreed| FileStamp {
            size: agreed.size,
            mtime: agreed.mtime,
            hash: agreed.hash,
        });
        let read = self.read.get(&row.id).copied();
        read.into_iter().chain(agreed).find(|stamp| stamp.size == row.size && stamp.mtime == row.mtime)
    }
}
