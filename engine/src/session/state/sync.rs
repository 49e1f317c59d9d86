//! The state of sync: shares, hubs, presence, attachments, and changes that wait.

use crate::effect::Effect;
use crate::records::files::FileStamp;
use crate::records::sync::{
    AGREED_BYTES_KEY_PREFIX, AgreedBytes, HubConnection, HubOutbox, HubState, MergeRecord, SeenDevice, SharedHub,
    SyncShares,
};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::volume_paths::normalize_volume_path;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use store::FileKind;
use store::disk::FileRow;
use store::disk::RowWrite;
use store::is_hidden;
use store::sync::presence::{CaretMark, PresentPerson};
use store::{BlobHash, BlockId, ChangeParcel, DocId, FileBytes, FileEntry};
use text::time::UnixMillis;

/// Lines of the log that are kept.
pub(in crate::session) const MAX_SYNC_LOG_LINES: usize = 200;
/// The log is kept on disk this often at most, in milliseconds.
pub(in crate::session) const SYNC_LOG_SAVE_INTERVAL_MS: i64 = 2_000;

/// All that the session knows of sync.
#[derive(Debug, Default)]
pub struct SyncState {
    /// What is shared where.
    pub shares: SyncShares,
    /// State of each hub, by address.
    pub states: BTreeMap<String, HubState>,
    /// What happened, oldest first.
    pub log: VecDeque<(UnixMillis, String)>,
    /// What other devices' edits did to notes here, oldest first.
    pub merges: VecDeque<MergeRecord>,
    /// Counts changes of all this.
    pub revision: u64,
    /// When changes of other devices came last: of notes, volumes.
    pub(in crate::session) last_received: BTreeMap<DocId, UnixMillis>,
    /// When documents and volumes were the same everywhere last.
    pub(in crate::session) last_synced: BTreeMap<DocId, UnixMillis>,
    /// Who else is where.
    pub(in crate::session) presence: PresenceState,
    pub(in crate::session) attachments: AttachmentsState,
    /// What hubs have not been sent, and when a shared document changed here last.
    pub(in crate::session) outboxes: HubOutboxes,
    /// When it is to be kept on disk, if there is much of it.
    pub(in crate::session) outbox_due: Option<UnixMillis>,
    pub(in crate::session) changed: Option<UnixMillis>,
    /// When the log is to be kept on disk, if it has new lines.
    pub(in crate::session) log_due: Option<UnixMillis>,
    /// Whether the host needs new targets.
    pub(in crate::session) is_stale: bool,
    /// When the host last got targets, and for how many documents.
    pub(in crate::session) last_reported: Option<(UnixMillis, usize)>,
    /// Of how many for each hub.
    pub(in crate::session) requested_counts: BTreeMap<String, usize>,
    /// The outputs document of each shared note with cells, and back.
    pub(in crate::session) outputs: HashMap<DocId, DocId>,
    pub(in crate::session) notes: HashMap<DocId, DocId>,
    /// Notes of shared volumes that have no document yet.
    pub(in crate::session) undocumented_notes: BTreeSet<DocId>,
    /// Changes of a volume's document that came before it was loaded.
    pub(in crate::session) early_volume_changes: Vec<(DocId, u64, ChangeParcel)>,
    /// New notes of other devices whose text hasn't arrived yet, by volume.
    pub(in crate::session) expected_notes: BTreeMap<DocId, (DocId, FileEntry)>,
    /// Text of such notes that waits for its place to be free.
    pub(in crate::session) arrived_notes: Vec<(DocId, u64, ChangeParcel)>,
    /// Received changes that wait for capacity, with their tickets.
    pub(in crate::session) waiting_changes: VecDeque<(DocId, u64, ChangeParcel)>,
    /// Changes to files by other devices that must be repeated here.
    pub(in crate::session) renames: BTreeSet<DocId>,
    pub(in crate::session) deleted: BTreeSet<DocId>,
    pub(in crate::session) restored: BTreeSet<DocId>,
    /// Notes that were deleted elsewhere and may have been edited here, each with whether it is held open for it.
    pub(in crate::session) remote_deletions: BTreeMap<DocId, bool>,
    /// What could not be done is tried again then, and so often it was tried.
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

    /// A volume was closed: forget other devices' files in it.
    pub(in crate::session) fn attachments_closed(&mut self, volume: DocId) {
        for file in self.attachments.remote_files.remove(&volume).unwrap_or_default().into_keys() {
            self.attachments.reading.remove(&file);
        }
        self.attachments.paths.retain(|(of, _), _| *of != volume);
        self.attachments.incoming.remove(&volume);
        self.mark_stale();
    }

    /// A file was removed from its volume or from the trash.
    pub(in crate::session) fn attachment_gone(&mut self, file: DocId) {
        if self.attachments.agreed_bytes.contains_key(&file) {
            self.mark_stale();
        }
    }

    /// Whether an attachment of another device may have this name here.
    pub(in crate::session) fn is_valid_attachment_path(
        &mut self,
        turn: &mut ApplyContext<'_>,
        file: DocId,
        path: &str,
    ) -> bool {
        let sound =
            normalize_volume_path(path).is_ok_and(|sound| sound == path) && !FileKind::from_path(path).is_text();
        if sound && is_hidden(path) {
            return false; // what is hidden is a program's own, and stays where it is
        }
        if !sound && self.attachments.refused_names.insert(file) {
            let path: String = path.chars().take(200).collect();
            self.log_line(turn.now, format!("a file name from another device is refused: {path:?}"));
        }
        sound
    }

    /// The file has these bytes, here and for others.
    pub(in crate::session) fn record_agreement(&mut self, turn: &mut ApplyContext<'_>, file: DocId, stamp: FileStamp) {
        let agreed = AgreedBytes { hash: stamp.hash, size: stamp.size, mtime: stamp.mtime };
        if self.attachments.agreed_bytes.insert(file, agreed) != Some(agreed) {
            let value = serde_json::to_vec(&agreed).ok();
            turn.append_writes(vec![RowWrite::Meta { key: format!("{AGREED_BYTES_KEY_PREFIX}{file}"), value }], None);
        }
        self.attachments.read.remove(&file);
    }

    /// Whether changes of a note may still arrive, including those that the deleting device knew.
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

    /// Who else is at a note.
    pub fn peers_at(&self, note: DocId) -> &[RemotePeer] {
        self.presence.peers.get(&note).map_or(&[], Vec::as_slice)
    }

    /// Who runs a cell on another device.
    pub fn remote_runner(&self, note: DocId, cell: BlockId) -> Option<&str> {
        let runs = |one: &&RemotePeer| one.running.contains(&cell);
        self.peers_at(note).iter().find(runs).map(|one| one.name.as_str())
    }

    /// Devices that were seen, each with whether it is here now; those first, then the one that was seen last.
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

    /// Why a cell cannot be run here: another device does.
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

    /// Whether the volume was requested and hasn't arrived: nothing may be written into its document.
    pub(in crate::session) fn is_coming(&self, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| hub.coming.contains(&volume))
    }

    /// Whether a volume was requested and hasn't arrived.
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

    /// Whether the host has reported the hubs' states since it got the current targets. Before that, "in sync" may only
    /// mean that nobody has checked.
    pub fn has_current_hub_states(&self) -> bool {
        self.shares.hubs.iter().all(|hub| {
            let state = self.states.get(&hub.url);
            state.is_some_and(|state| Some(&state.documents) == self.requested_counts.get(&hub.url))
        })
    }

    /// Whether others may be looking: a hub that shares the volume is connected.
    pub(in crate::session) fn is_hub_online(&self, volume: DocId) -> bool {
        let there = |url: &str| self.states.get(url).is_some_and(|state| state.reach == HubConnection::Online);
        self.shares.hubs.iter().any(|hub| hub.volumes.contains(&volume) && there(&hub.url))
    }

    /// Whether a volume is shared at all.
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

/// That of each hub, by address.
pub(in crate::session) type HubOutboxes = BTreeMap<String, HubOutbox>;

/// Another person at a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePeer {
    /// What names this run of their program.
    pub peer: String,
    /// How their device is called.
    pub name: String,
    /// Their carets in bytes of the note, each with the other end of its selection.
    pub carets: Vec<(usize, usize)>,
    /// The note's revision for which these bytes are right.
    pub revision: u64,
    /// The cells that they run.
    pub running: Vec<BlockId>,
    /// Counts what was heard of them: their carets have moved when it grows.
    pub moves: u64,
    pub(in crate::session) marks: Vec<CaretMark>,
}

/// What the session knows of presence.
#[derive(Debug, Default)]
pub(in crate::session) struct PresenceState {
    /// Who is at which document.
    pub(in crate::session) peers: BTreeMap<DocId, Vec<RemotePeer>>,
    /// Devices by the beginning of their key, or by name.
    pub(in crate::session) seen: BTreeMap<String, SeenDevice>,
    /// Those of them that are here, by where they are.
    pub(in crate::session) devices: BTreeMap<DocId, BTreeSet<String>>,
    /// Where the user's carets are.
    pub(in crate::session) own_carets: Option<(DocId, Vec<CaretMark>)>,
    /// The presence that the host announces now.
    pub(in crate::session) last_sent: BTreeMap<DocId, PresentPerson>,
    pub(in crate::session) moves: u64,
}

/// An attachment that others have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct RemoteFile {
    pub(in crate::session) path: String,
    pub(in crate::session) bytes: Option<FileBytes>,
    /// What was said of it at the same time, and does not stand.
    pub(in crate::session) rivals: Vec<BlobHash>,
}

/// State of attachments.
#[derive(Debug, Default)]
pub(in crate::session) struct AttachmentsState {
    /// As the volumes' documents have them.
    pub(in crate::session) remote_files: BTreeMap<DocId, BTreeMap<DocId, RemoteFile>>,
    /// The same by their paths.
    pub(in crate::session) paths: HashMap<(DocId, String), DocId>,
    pub(in crate::session) agreed_bytes: BTreeMap<DocId, AgreedBytes>,
    /// What was read here since.
    pub(in crate::session) read: BTreeMap<DocId, FileStamp>,
    /// What could not be read, as it was: size and time.
    pub(in crate::session) unreadable: BTreeMap<DocId, (u64, i64)>,
    /// What is being read.
    pub(in crate::session) reading: BTreeSet<DocId>,
    /// Names that are refused.
    pub(in crate::session) refused_names: BTreeSet<DocId>,
    /// What is to come, by volume: path and bytes.
    pub(in crate::session) incoming: BTreeMap<DocId, Vec<(String, u64)>>,
    pub(in crate::session) is_stale: bool,
    pub(in crate::session) last_reported: Option<(UnixMillis, usize)>,
    /// Rises when attachments arrive or are announced.
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

    /// Which bytes a file has here, if that is known.
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
