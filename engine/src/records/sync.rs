//! Sync as the host and the disk see it: hubs, shared volumes, attachments, merges, devices.

use crate::records::files::FileStamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use store::{BlobHash, DocId, FileBytes};
use text::time::UnixMillis;

/// Address that stands for the local network, with all paired devices on it.
pub const LAN_HUB_ADDRESS: &str = "lan:";
/// Key under which the disk stores what is shared over which hubs.
pub const SYNC_SHARES_KEY: &str = "sync";
/// Key under which the disk stores the sync log.
pub const SYNC_LOG_KEY: &str = "sync/log";

/// A hub and the volumes that are shared over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHub {
    /// Address of the hub, `ws://…` or `wss://…`.
    pub url: String,
    /// The volumes shared over this hub.
    pub volumes: BTreeSet<DocId>,
    /// Volumes joined from this hub that haven't arrived yet.
    #[serde(default)]
    pub coming: BTreeSet<DocId>,
}

/// Sync settings stored on this device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncShares {
    /// The hubs and the volumes shared over each.
    pub hubs: Vec<SharedHub>,
    /// Whether the user has paused sync.
    pub paused: bool,
    /// Tools from other users that were removed here, so that they aren't proposed again.
    #[serde(default)]
    pub refused_tools: BTreeSet<BlobHash>,
}

/// Documents by the volume that they belong to.
pub type DocumentsByVolume = BTreeMap<DocId, Arc<BTreeSet<DocId>>>;

/// The hubs to connect to, and the documents to sync with each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTargets {
    /// Address of each hub, and the documents of each volume.
    pub hubs: Vec<(String, DocumentsByVolume)>,
    /// Whether sync is paused, so that no connection is made.
    pub paused: bool,
}

/// Stored state of other devices and hubs.
#[derive(Clone, Debug, Default)]
pub struct SavedSyncState {
    /// Effects of other devices' edits on notes, oldest first.
    pub merges: VecDeque<MergeRecord>,
    /// Devices seen so far, by the beginning of their key or by name.
    pub seen: BTreeMap<String, SeenDevice>,
    /// Attachment bytes that were last the same on all devices.
    pub agreed: BTreeMap<DocId, AgreedBytes>,
    /// Changes not yet sent to each hub, by the hub's address.
    pub outboxes: BTreeMap<String, HubOutbox>,
}

/// State of the exchange of blobs with a hub: images, other attachments, large outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubBlobState {
    /// Whether the hub stores blobs; `None` if unknown.
    pub kept: Option<bool>,
    /// Number of blobs that this device still needs.
    pub coming: usize,
    /// Number of needed blobs that a connected device may have.
    pub there: usize,
    /// Number of blobs still to be sent from here.
    pub going: usize,
    /// Number of blobs that the hub has rejected.
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
    /// Not connecting, because sync is paused.
    #[default]
    Paused,
    /// Connecting.
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
    /// Time of the last message from the hub; `None` if there was none.
    pub seen: Option<UnixMillis>,
    /// Number of documents that are synced with the hub.
    pub documents: usize,
    /// Bytes sent to the hub since the program started.
    pub sent: u64,
    /// Bytes received from the hub since the program started.
    pub received: u64,
    /// Documents that aren't the same on both sides yet.
    pub behind: Arc<BTreeSet<DocId>>,
    /// State of the exchange of blobs.
    pub blobs: HubBlobState,
}

/// How far the changes of a note or a volume have been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// The note or volume isn't shared.
    NotShared,
    /// All changes are on this device's disk; some aren't elsewhere yet.
    SavedLocally,
    /// Everything was sent, but not all hubs are reachable now.
    SentToAwayHub,
    /// All devices and hubs that share it have the same content.
    Synced,
}

/// Prefix of the keys under which the disk stores [`AgreedBytes`]; the attachment's id follows.
pub const AGREED_BYTES_KEY_PREFIX: &str = "sync/file/";

/// The bytes of an attachment that this device and the others last agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedBytes {
    /// BLAKE3 hash of the bytes.
    pub hash: BlobHash,
    /// Size in bytes.
    pub size: u64,
    /// The file's modification time on this device, nanoseconds since 1970.
    pub mtime: i64,
}

/// What the host does with an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachmentAction {
    /// Computes its hash (`AttachmentRead`).
    Read,
    /// Offers it to other devices, because the local bytes are those that others know.
    Offer(FileStamp),
    /// Fetches these bytes and writes them to the attachment's file (`AttachmentPlaced`).
    Fetch {
        /// The bytes to fetch.
        bytes: FileBytes,
        /// Stamp of the file to replace; `None` if no file is there. A file with any other content is left alone.
        over: Option<FileStamp>,
        /// Path where the replaced file is kept, because others don't have its bytes.
        kept: Option<String>,
        /// Whether the user has a view open that shows the attachment.
        urgent: bool,
    },
}

/// Attachments and blobs of a volume: what it has besides its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachments {
    /// The volume's folder on this device.
    pub root: PathBuf,
    /// The volume's attachments, each with its path on this device.
    pub files: BTreeMap<DocId, (String, AttachmentAction)>,
    /// Outputs of the volume's notes, each with whether the user has the note open.
    pub outputs: BTreeMap<DocId, bool>,
    /// The note of each of these outputs.
    pub notes_of_outputs: BTreeMap<DocId, DocId>,
    /// Agent runs of the volume, each with whether the user has the run open.
    pub runs: BTreeMap<DocId, bool>,
}

/// Key under which the disk stores the merge report.
pub const MERGES_KEY: &str = "sync/merges";

/// What happened to a note in a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeKind {
    /// The note's text was changed elsewhere.
    Text {
        /// The document's heads before the merge, as hexadecimal numbers separated by spaces.
        before: String,
        /// The document's heads after the merge, in the same form.
        after: String,
        /// Whether the changes met edits of this device that the other device didn't know.
        met: bool,
    },
    /// Two devices created a file with this path; both files are kept.
    Twins {
        /// The file that the other device created.
        other: DocId,
        /// The other file's new name.
        called: String,
    },
    /// The note was renamed elsewhere.
    Renamed {
        /// The note's earlier path on this device.
        from: String,
    },
    /// The note was deleted elsewhere and is in the trash.
    Deleted,
    /// The note was deleted elsewhere but edited here, so it's kept.
    Kept,
    /// The note was deleted here but edited elsewhere, so it's restored.
    Back,
}

/// An entry of the merge report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRecord {
    /// Time of the first change.
    pub from: UnixMillis,
    /// Time of the last change.
    pub to: UnixMillis,
    /// The note that was merged.
    pub note: DocId,
    /// The note's path at that time.
    pub path: String,
    /// What happened to the note.
    pub what: MergeKind,
}

impl MergeRecord {
    /// Describes what happened, as a phrase that follows the path in a sentence.
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

    /// Returns whether a text before and a text after the merge are available.
    pub fn has_texts(&self) -> bool {
        matches!(self.what, MergeKind::Text { .. } | MergeKind::Twins { .. })
    }
}

/// Key under which the disk stores the outboxes.
pub const OUTBOX_KEY: &str = "sync/outbox";

/// Changes that a hub hasn't received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubOutbox {
    /// When the hub was last connected.
    pub at: UnixMillis,
    /// Volumes that the outbox is complete for.
    pub volumes: BTreeSet<DocId>,
    /// Documents of those volumes that changed here since the hub was last in sync.
    pub waits: BTreeSet<DocId>,
}

/// Key under which the disk stores the devices seen.
pub const SEEN_DEVICES_KEY: &str = "sync/seen";

/// A device that this one has heard from, over any hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenDevice {
    /// Name of the device.
    pub name: String,
    /// When the device was last heard from.
    pub at: UnixMillis,
}
