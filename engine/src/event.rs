//! Facts from the world: the other half of [`crate::Input`]. They enter by the same door as the user's wishes.

pub use crate::records::files::FileStamp;

use crate::records::saving::BatchNumber;
use crate::settings::Settings;
use agent::model_call::{ModelCallId, ModelDelta, ModelError, ModelResponse};
use agent::tool_job::ToolOutcome;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use store::WorkspaceDoc;
use store::disk::FileRow;
use store::{
    BlobHash, Block, CellOutput, ChangeParcel, DocId, ExecutionId, ExecutionStatus, FileKind, JournalRecord, NoteDoc,
    OutputsDoc, RegistryDoc, RunDoc, SessionDoc, VolumeDoc,
};
use text::links::VolumeLinks;
use text::outline::{Outline, OutlinedBytes};

/// A fact.
#[derive(Debug)]
pub enum Event {
    /// The workspace was opened. First event of every session.
    Started(Box<WorkspaceStart>),
    /// The time that a [`crate::Effect::Wake`] asked for has come.
    Tick,
    /// What is known of a volume's files, before anything is scanned.
    VolumeRead {
        /// Which.
        volume: DocId,
        /// Its files as they were last.
        files: Box<KnownFiles>,
    },
    /// What is known of the links between a volume's files. Comes after `VolumeRead`: the tree need not wait for it.
    VolumeLinked {
        /// Which.
        volume: DocId,
        /// Its links as they were last.
        links: Box<KnownLinks>,
    },
    /// A volume's document is loaded.
    VolumeLoaded {
        /// Which.
        volume: DocId,
        /// The document; `Err` when it cannot be read (it was set aside; the sentence is for the user).
        doc: Result<Box<VolumeDoc>, String>,
    },
    /// Some files of a folder, as a scan found them.
    Scanned {
        /// The volume.
        volume: DocId,
        /// New and changed files.
        files: Vec<ScannedFile>,
        /// How many files the scan has looked at so far.
        seen: u64,
    },
    /// A scan has ended.
    ScanDone {
        /// The volume.
        volume: DocId,
        /// Paths that are known and no longer there.
        gone: Vec<String>,
        /// What was left out, and why.
        skipped: Vec<SkippedFile>,
        /// Why the scan could not be made (the folder is gone).
        failed: Option<String>,
    },
    /// The watcher saw something happen to a file.
    FileTouched {
        /// The volume.
        volume: DocId,
        /// Path inside; `None`: names changed, look at everything.
        path: Option<String>,
        /// The size and modification time of the file that is there, in bytes and nanoseconds since 1970; `None`: there
        /// is none, or it is no ordinary file.
        seen: Option<(u64, i64)>,
    },
    /// What notes hold that others refer to, as their files have it.
    Indexed {
        /// The volume.
        volume: DocId,
        /// The notes.
        notes: Vec<(DocId, OutlineSurvey)>,
    },
    /// The end of [`crate::Effect::MoveFiles`].
    FilesMoved {
        /// Done; or nothing was done, and why: a sentence for the user.
        result: Result<(), String>,
    },
    /// The end of [`crate::Effect::Discard`].
    Discarded {
        /// Which file.
        file: DocId,
        /// Why it is still there: a sentence for the user.
        result: Result<(), String>,
    },
    /// A note's blocks, ready to be shown.
    NoteRead {
        /// Which.
        note: DocId,
        /// What was read; `Err` is a sentence for the user.
        content: Result<Box<NoteContent>, String>,
    },
    /// A note's documents are loaded.
    NoteLoaded {
        /// Which.
        note: DocId,
        /// The documents.
        docs: Result<Box<NoteDocs>, String>,
    },
    /// A file was read again.
    FileRead {
        /// The note that mirrors it.
        note: DocId,
        /// What is there now; `Ok(None)`: nothing.
        file: Result<Option<FileText>, String>,
    },
    /// Our text is in the file.
    FileWritten {
        /// Which note.
        note: DocId,
        /// Bytes, modification time and hash of what was written.
        stamp: FileStamp,
    },
    /// Somebody else wrote the file at the same time. It holds their text; ours must be merged and written again.
    FileRaced {
        /// Which note.
        note: DocId,
        /// What is there.
        theirs: FileText,
    },
    /// The file was removed while we were about to write it; it was not made again.
    FileGone {
        /// Which note.
        note: DocId,
    },
    /// The file could not be written.
    FileFailed {
        /// Which note.
        note: DocId,
        /// A sentence for the user.
        why: String,
    },
    /// A batch is on disk, and with it all before it.
    Durable {
        /// Which.
        batch: BatchNumber,
    },
    /// The disk refuses. The host keeps trying; nothing is dropped.
    DiskTrouble {
        /// A sentence for the user.
        why: String,
    },
    /// Changes of a note from another replica.
    Remote {
        /// Which note.
        note: DocId,
        /// Changes or a saved document.
        bytes: Vec<u8>,
    },
    /// Changes of a document from another device, over a hub. What is not taken is refused by an effect.
    Received {
        /// Which document: of a volume, a note, outputs.
        doc: DocId,
        /// Their number, for the host.
        ticket: u64,
        /// Changes.
        parcel: ChangeParcel,
    },
    /// How a hub stands.
    HubTold {
        /// Its address.
        hub: String,
        /// How it stands.
        state: Box<crate::records::sync::HubState>,
        /// Lines for the log.
        said: Vec<String>,
    },
    /// Others are at a document, or no longer.
    Presence {
        /// Which.
        doc: DocId,
        /// Who: what names their program, and what they say.
        here: Vec<(String, store::sync::presence::PresentPerson)>,
    },
    /// The end of [`crate::Attached::Read`].
    AttachmentRead {
        /// Which file.
        file: DocId,
        /// What it is; `None`: it cannot be read, or changed meanwhile.
        stamp: Option<FileStamp>,
    },
    /// The end of [`crate::Attached::Fetch`].
    AttachmentPlaced {
        /// Its volume.
        volume: DocId,
        /// Which file.
        file: DocId,
        /// Its path inside.
        path: String,
        /// What it is now.
        stamp: FileStamp,
    },
    /// Blobs of outputs have come from other devices.
    BlobsCame {
        /// How many.
        count: u64,
    },
    /// What agents have to work with, read anew.
    AgentSetup(Box<crate::records::runs::AgentSetup>),
    /// A session's document is loaded.
    SessionLoaded {
        /// Which.
        session: DocId,
        /// The document; `Err` is a sentence for the user.
        doc: Result<Box<SessionDoc>, String>,
    },
    /// A run's document is loaded.
    RunLoaded {
        /// Which.
        run: DocId,
        /// The document; `Err` is a sentence for the user.
        doc: Result<Box<RunDoc>, String>,
    },
    /// The document of the user's tools is loaded.
    RegistryLoaded {
        /// Which: this workspace's, or that of a shared volume.
        registry: DocId,
        /// The document; `Err` is a sentence for the user.
        doc: Result<Box<RegistryDoc>, String>,
    },
    /// What a message speaks of.
    Gathered {
        /// Of which run.
        run: DocId,
        /// Where it stands, and what.
        found: Vec<(String, String)>,
        /// What the project remembers.
        memory: Box<agent::memory::ProjectMemory>,
        /// The agents of the project.
        crew: Box<agent::agent_registry::AgentRegistry>,
    },
    /// What a volume remembers.
    MemoryRead {
        /// Which volume.
        volume: DocId,
        /// All that it remembers.
        memory: Box<agent::memory::ProjectMemory>,
    },
    /// Search has paid for what texts mean.
    Spent(crate::records::runs::EmbeddingCost),
    /// A piece of a model's answer.
    ModelDelta {
        /// Of which call.
        call: ModelCallId,
        /// The piece.
        delta: ModelDelta,
    },
    /// A model has answered, or will not.
    ModelDone {
        /// Which call.
        call: ModelCallId,
        /// The answer, or why there is none.
        result: Result<Box<ModelResponse>, ModelError>,
    },
    /// A tool has done what it could.
    ToolDone {
        /// For which run.
        run: DocId,
        /// For which call.
        call: String,
        /// What came of it.
        outcome: Box<ToolOutcome>,
    },
    /// The Jupyter kernels that were looked for.
    KernelsFound {
        /// They.
        kernels: Vec<crate::records::kernels::KernelSpec>,
    },
    /// The note's kernel is ready.
    KernelReady {
        /// Which note.
        note: DocId,
    },
    /// The kernel has begun with this execution.
    Began {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
    },
    /// A cell printed or returned something.
    Output {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
        /// What. Neighbouring pieces of one stream are joined by the session.
        output: CellOutput,
    },
    /// An output became another one, perhaps after its execution was over.
    Updated {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
        /// Its place in the list of outputs.
        at: usize,
        /// What it is now.
        output: CellOutput,
    },
    /// A cell takes back its outputs so far.
    Cleared {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
    },
    /// A cell asks the user for a line of text, and waits.
    Asked {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
        /// What it asks.
        prompt: String,
        /// Whether the answer is not to be seen.
        password: bool,
    },
    /// An execution is over.
    Finished {
        /// Which note.
        note: DocId,
        /// Which execution.
        execution: ExecutionId,
        /// How.
        status: ExecutionStatus,
        /// The kernel's count.
        count: Option<u64>,
        /// The whole of each stream that was cut (by place in the list of outputs).
        whole: Vec<(usize, store::BlobRef)>,
        /// Whether nothing ran: its result had been kept.
        cached: bool,
        /// How long the kernel was at it, in milliseconds, as it was measured where its messages arrive: the session
        /// hears of beginning and end only when it is next awake, perhaps of both at once.
        took: Option<u64>,
    },
    /// The kernel's process ended, asked or not.
    KernelDied {
        /// Which note.
        note: DocId,
        /// A sentence for the user.
        why: String,
    },
}

/// What the disk holds when a workspace is opened.
#[derive(Debug)]
pub struct WorkspaceStart {
    /// The workspace's id.
    pub workspace: DocId,
    /// Its folder on this device.
    pub folder: PathBuf,
    /// Its document.
    pub doc: Box<WorkspaceDoc>,
    /// Where volumes lie on this device.
    pub mounts: BTreeMap<DocId, PathBuf>,
    /// How this device is called.
    pub device: String,
    /// This device's settings.
    pub settings: Settings,
    /// The highest journal number ever given.
    pub last_seq: u64,
    /// Notes with unfinished work: keystrokes not yet in a change, or text not yet in the file.
    pub unfinished: Vec<DocId>,
    /// This process's actor; fresh.
    pub actor: [u8; 16],
    /// What was found wrong while opening.
    pub problems: Vec<String>,
    /// What lies in the trash.
    pub trash: BTreeMap<DocId, crate::records::moves::TrashedFile>,
    /// A move of files that was under way.
    pub moving: Option<crate::records::moves::PendingMove>,
    /// Moves that can be taken back.
    pub moved: Vec<crate::records::moves::CompletedMove>,
    /// Files that other programs renamed, for which links could follow.
    pub renamed: Vec<crate::records::moves::ExternalRename>,
    /// A line about each session.
    pub sessions: BTreeMap<DocId, crate::records::runs::SessionSummary>,
    /// A line about each run.
    pub runs: BTreeMap<DocId, crate::records::runs::RunSummary>,
    /// What is shared over which hubs.
    pub shares: crate::records::sync::SyncShares,
    /// The log of sync: milliseconds since 1970, and a line.
    pub sync_log: Vec<(i64, String)>,
    /// What was seen of other devices.
    pub sync_kept: crate::records::sync::SavedSyncState,
    /// Rules that the user's decisions have made.
    pub rules: Vec<agent::policy::PolicyRule>,
    /// The schedules of this device.
    pub schedules: BTreeMap<DocId, agent::schedule::Schedule>,
    /// What was spent beside runs on this device, by day.
    pub outlays: Vec<crate::records::runs::EmbeddingCost>,
}

/// An outline made of a note's file, and how the disk keeps it: both made where the file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineSurvey {
    pub(crate) outline: Arc<Outline>,
    pub(crate) stored: Vec<u8>,
}

impl OutlineSurvey {
    /// Of a file's text and the hash of its bytes.
    pub fn of(hash: BlobHash, text: &str) -> OutlineSurvey {
        let outlined = OutlinedBytes::of(hash, text);
        let stored = serde_json::to_vec(&outlined).unwrap_or_default();
        OutlineSurvey { outline: Arc::new(outlined.outline), stored }
    }
}

/// A volume's files as they were last, in the form in which the session keeps them: made where they are read, since
/// for many thousands of files that takes longer than a frame.
#[derive(Debug)]
pub struct KnownFiles {
    pub(crate) files: BTreeMap<String, FileRow>,
    pub(crate) places: HashMap<DocId, (DocId, String)>,
}

impl KnownFiles {
    /// The rows of a volume.
    pub fn new(volume: DocId, rows: Vec<FileRow>) -> KnownFiles {
        let places = rows.iter().map(|row| (row.id, (volume, row.path.clone()))).collect();
        let files = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        KnownFiles { files, places }
    }
}

/// The links between a volume's files as they were last, made where they are read, as [`KnownFiles`].
#[derive(Debug)]
pub struct KnownLinks {
    pub(crate) links: VolumeLinks,
    pub(crate) unindexed: BTreeSet<DocId>,
}

impl KnownLinks {
    /// Of these files; an outline holds where it is of the bytes that the file's row names.
    pub fn new<'a>(
        files: impl IntoIterator<Item = &'a FileRow>,
        outlines: impl IntoIterator<Item = (DocId, OutlinedBytes)>,
    ) -> KnownLinks {
        let (mut links, mut unindexed, mut hashes) = (VolumeLinks::default(), BTreeSet::new(), HashMap::new());
        for row in files {
            links.set_path(row.id, &row.path);
            hashes.insert(row.id, row.hash);
            if row.kind == FileKind::Note {
                unindexed.insert(row.id);
            }
        }
        for (note, outlined) in outlines {
            if hashes.get(&note).is_some_and(|hash| outlined.matches_hash(*hash)) && unindexed.remove(&note) {
                links.set_outline(note, Arc::new(outlined.outline));
            }
        }
        KnownLinks { links, unindexed }
    }
}

/// A file that a scan found new or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    /// Path inside the volume.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes, modification time, hash.
    pub stamp: FileStamp,
    /// Blocks, if it is a note.
    pub blocks: u32,
    /// Cells among them.
    pub cells: u32,
    /// What it holds that others refer to, if it is a note.
    pub survey: Option<OutlineSurvey>,
    /// The path that this file had before, if the scan recognised it by its bytes.
    pub was: Option<String>,
    /// Why a file that looks like a note is kept as an attachment.
    pub why: Option<String>,
}

/// A file or folder that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkippedFile {
    /// Path inside the volume.
    pub path: String,
    /// A sentence for the user.
    pub why: String,
}

/// A file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The text.
    pub text: String,
    /// Its stamp.
    pub stamp: FileStamp,
}

/// A version of a note's file that the note's text contains already, though the file's row does not say so yet: what we
/// are about to write there, or what another program wrote and was merged. Kept on disk until the row says so: after a
/// crash in between, the same edits must not be merged again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileMark {
    /// Hash of the file's bytes.
    pub hash: BlobHash,
    /// The document's heads at that text; empty when it never was the document's text.
    pub heads: Vec<[u8; 32]>,
    /// That text, if the document cannot tell it.
    pub text: Option<String>,
}

/// Under which name the disk keeps a note's [`FileMark`]s, as JSON.
pub fn file_marks_key(note: DocId) -> String {
    format!("file/{note}")
}

/// What was read of a note before its document.
#[derive(Debug)]
pub struct NoteContent {
    /// Materialised blocks with the journal replayed, or for a note that was never edited here those of its file.
    pub blocks: Vec<Block>,
    /// Whether the blocks are rows on disk: the note was edited or run here before.
    pub adopted: bool,
    /// Journal records that are not yet part of a change.
    pub records: Vec<JournalRecord>,
    /// What is known of its file.
    pub row: Option<FileRow>,
    /// The file as it is now; `None` when it is gone; `Err`: cannot be read or is no longer text.
    pub file: Result<Option<FileText>, String>,
    /// Whether the note's text was ahead of its file when it was last open.
    pub ahead: bool,
    /// Versions of its file that are part of it already.
    pub marks: Vec<FileMark>,
    /// What was found wrong and mended, for the user.
    pub problems: Vec<String>,
}

/// A note's documents.
#[derive(Debug)]
pub struct NoteDocs {
    /// The note.
    pub doc: Box<NoteDoc>,
    /// Chunks to append: the first bytes of a new document, or a repair.
    pub chunks: Vec<Vec<u8>>,
    /// The whole document and the highest chunk number that it contains, when there were many chunks.
    pub snapshot: Option<(Vec<u8>, i64)>,
    /// Whether the outputs have no chunks on disk yet.
    pub outputs_new: bool,
    /// Its outputs; `Err` when they cannot be read.
    pub outputs: Result<Box<OutputsDoc>, String>,
    /// What was found wrong and mended, for the user.
    pub problems: Vec<String>,
}
