//! Sync as the host and the disk know it: hubs, what is shared over them, attachments, merges, devices.

use crate::records::files::FileStamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use store::{BlobHash, DocId, FileBytes};
use text::time::UnixMillis;

/// Address that means the local network: all paired devices on it.
pub const LAN_HUB_ADDRESS: &str = "lan:";
/// Under which name the disk keeps what is shared over which hubs.
pub const SYNC_SHARES_KEY: &str = "sync";
/// Under which name the disk keeps the log of sync.
pub const SYNC_LOG_KEY: &str = "sync/log";

/// A hub, and what is shared over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHub {
    /// Its address: `ws://…` or `wss://…`.
    pub url: String,
    /// The volumes shared over this hub.
    pub volumes: BTreeSet<DocId>,
    /// Those of them that came from there and have not arrived yet.
    #[serde(default)]
    pub coming: BTreeSet<DocId>,
}

/// What lasts of the settings of sync, on this device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncShares {
    /// The hubs and what is shared over each.
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

/// Stored state of other devices and hubs.
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

/// State of the exchange of blobs with a hub: pictures, other attachments, large outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubBlobState {
    /// Whether the hub stores blobs; `None` if unknown.
    pub kept: Option<bool>,
    /// Number of blobs that this device still needs.
    pub coming: usize,
    /// Number of those that a connected device may have.
    pub there: usize,
    /// How many are still to go from here.
    pub going: usize,
    /// How many it has refused.
    pub refused: usize,
    /// Number of items on this device still being checked.
    pub busy: usize,
}

impl HubBlobState {
    /// Describes the state; empty if there's nothing to report.
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

/// State of the connection to a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HubConnection {
    /// It is not tried: sync is paused.
    #[default]
    Paused,
    /// It is being tried.
    Connecting,
    /// The connection is open.
    Online,
    /// The hub is unreachable and is retried automatically. This isn't an error: changes are sent later.
    Offline {
        /// The reason, as a sentence.
        why: String,
    },
}

/// State of a hub as the host reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubState {
    /// State of the connection.
    pub reach: HubConnection,
    /// When something was heard from it last.
    pub seen: Option<UnixMillis>,
    /// Documents that are synced with it.
    pub documents: usize,
    /// Bytes that were sent to it and came from it since the program began.
    pub sent: u64,
    /// Bytes received from it since the program started.
    pub received: u64,
    /// Documents that aren't the same on both sides yet.
    pub behind: Arc<BTreeSet<DocId>>,
    /// State of the exchange of blobs.
    pub blobs: HubBlobState,
}

/// How far a note or a volume has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is not shared.
    NotShared,
    /// It is on this device's disk, and not yet all of it elsewhere.
    SavedLocally,
    /// Everything was sent, but not all hubs are reachable now.
    SentToAwayHub,
    /// All that shares it has the same.
    Synced,
}

/// Before the id of an attachment: under this name the disk keeps [`AgreedBytes`].
pub const AGREED_BYTES_KEY_PREFIX: &str = "sync/file/";

/// The bytes of an attachment that this device and the others agreed on last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedBytes {
    /// BLAKE3 hash of the bytes.
    pub hash: BlobHash,
    /// Size in bytes.
    pub size: u64,
    /// The file's modification time here, nanoseconds since 1970.
    pub mtime: i64,
}

/// What is to be done with an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachmentAction {
    /// Find out its hash (`AttachmentRead`).
    Read,
    /// It is here as others know it: they may have it.
    Offer(FileStamp),
    /// Get these bytes, and put them into its file (`AttachmentPlaced`).
    Fetch {
        /// The bytes to fetch.
        bytes: FileBytes,
        /// What is there now; `None`: nothing. What is there otherwise then is left alone.
        over: Option<FileStamp>,
        /// Where what is there is kept, since others do not have it.
        kept: Option<String>,
        /// Whether somebody looks at where it belongs.
        urgent: bool,
    },
}

/// What a volume has beside its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachments {
    /// The volume's folder on this device.
    pub root: PathBuf,
    /// Its attachments: each with its path here.
    pub files: BTreeMap<DocId, (String, AttachmentAction)>,
    /// The outputs of its notes, and whether somebody looks at the note.
    pub outputs: BTreeMap<DocId, bool>,
    /// The runs of agents in it, and whether somebody looks at the run.
    pub runs: BTreeMap<DocId, bool>,
}

/// Under which name the disk keeps the report.
pub const MERGES_KEY: &str = "sync/merges";

/// What happened to a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeKind {
    /// Its text was changed elsewhere.
    Text {
        /// The document's heads before, as hexadecimal numbers with spaces between.
        before: String,
        /// The document's heads after the merge, in the same form.
        after: String,
        /// Whether edits of this device met them, which the other did not know.
        met: bool,
    },
    /// Two devices made a file of this path: both are kept.
    Twins {
        /// The file that the other device created.
        other: DocId,
        /// What that is called now.
        called: String,
    },
    /// It was renamed elsewhere.
    Renamed {
        /// Its earlier path on this device.
        from: String,
    },
    /// It was deleted elsewhere, and is in the trash.
    Deleted,
    /// It was deleted elsewhere and edited here: it stays.
    Kept,
    /// It was deleted here and edited elsewhere: it is back.
    Back,
}

/// An entry of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRecord {
    /// Time of the first change.
    pub from: UnixMillis,
    /// When the last change of it came.
    pub to: UnixMillis,
    /// The note that was merged.
    pub note: DocId,
    /// Its path at that time.
    pub path: String,
    /// What happened to the note.
    pub what: MergeKind,
}

impl MergeRecord {
    /// Describes what happened, to follow the path in a sentence.
    pub fn describe(&self) -> String {
        match &self.what {
            MergeKind::Text { met: false, .. } => "was changed on another device".to_owned(),
            MergeKind::Text { met: true, .. } => "was changed on two devices at once; both edits are in it".to_owned(),
            MergeKind::Twins { called, .. } => format!("was made on two devices; both are kept, the other is {called}"),
            MergeKind::Renamed { from } => format!("was {from} before it was renamed on another device"),
            MergeKind::Deleted => "was deleted on another device; it is in the trash".to_owned(),
            MergeKind::Kept => "was deleted on another device and edited on this one; it stays".to_owned(),
            MergeKind::Back => "was deleted on this device and edited on another; it is back".to_owned(),
        }
    }

    /// Whether there is a text before and one after.
    pub fn has_texts(&self) -> bool {
        matches!(self.what, MergeKind::Text { .. } | MergeKind::Twins { .. })
    }
}

/// Under which name the disk keeps it.
pub const OUTBOX_KEY: &str = "sync/outbox";

/// What a hub has not been sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubOutbox {
    /// When the hub was there last.
    pub at: UnixMillis,
    /// Volumes that the outbox is complete for.
    pub volumes: BTreeSet<DocId>,
    /// Their documents that have changed here since all was the same.
    pub waits: BTreeSet<DocId>,
}

/// Under which name the disk keeps which devices were seen.
pub const SEEN_DEVICES_KEY: &str = "sync/seen";

/// A device that was heard of, over any hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenDevice {
    /// How it is called.
    pub name: String,
    /// When it was heard of last.
    pub at: UnixMillis,
}
