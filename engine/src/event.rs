//! Events: what happened outside the session, the other half of [`crate::Input`].

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

/// Something that happened outside the session.
#[derive(Debug)]
pub enum Event {
    /// The workspace was opened. Always the first event of a session.
    Started(Box<WorkspaceStart>),
    /// The time that [`crate::Effect::Wake`] asked for has come.
    Tick,
    /// A volume's files as they were last known, before it's scanned.
    VolumeRead {
        /// The volume that was read.
        volume: DocId,
        /// Its files as they were last known.
        files: Box<KnownFiles>,
    },
    /// A volume's links as they were last known. Comes after `VolumeRead`, so that the tree needn't wait.
    VolumeLinked {
        /// The volume that was read.
        volume: DocId,
        /// Its links as they were last known.
        links: Box<KnownLinks>,
    },
    /// A volume's document was loaded.
    VolumeLoaded {
        /// The volume that was loaded.
        volume: DocId,
        /// The document; `Err` if it can't be read and was set aside.
        doc: Result<Box<VolumeDoc>, DocumentLoadError>,
    },
    /// A scan found some files.
    Scanned {
        /// The volume that's scanned.
        volume: DocId,
        /// New and changed files.
        files: Vec<ScannedFile>,
        /// Number of files that the scan has looked at so far.
        seen: u64,
    },
    /// A scan ended.
    ScanDone {
        /// The volume that was scanned.
        volume: DocId,
        /// Known paths that no longer exist.
        gone: Vec<String>,
        /// Files and folders that were skipped, with the reasons.
        skipped: Vec<SkippedFile>,
        /// Why the scan failed, for example because the folder is missing.
        failed: Option<String>,
    },
    /// The watcher noticed a change of a file.
    FileTouched {
        /// The volume that holds the file.
        volume: DocId,
        /// Path in the volume; `None` if names changed and a scan is needed.
        path: Option<String>,
        /// Size in bytes and modification time in nanoseconds since 1970; `None` if the file doesn't exist
        /// or isn't a regular file.
        seen: Option<(u64, i64)>,
    },
    /// Links, headings and tasks of notes were read from their files.
    Indexed {
        /// The volume that holds the notes.
        volume: DocId,
        /// The notes with their outlines.
        notes: Vec<(DocId, OutlineSurvey)>,
    },
    /// The result of [`crate::Effect::MoveFiles`].
    FilesMoved {
        /// `Err` if nothing was moved.
        result: Result<(), FileChangeError>,
    },
    /// The result of [`crate::Effect::Discard`].
    Discarded {
        /// The file that was deleted.
        file: DocId,
        /// `Err` if the file still exists.
        result: Result<(), FileChangeError>,
    },
    /// A note's blocks were read and can be shown.
    NoteRead {
        /// The note that was read.
        note: DocId,
        /// The content.
        content: Result<Box<NoteContent>, DocumentLoadError>,
    },
    /// A note's documents were loaded.
    NoteLoaded {
        /// The note that was loaded.
        note: DocId,
        /// Its documents.
        docs: Result<Box<NoteDocs>, DocumentLoadError>,
    },
    /// A file was read again.
    FileRead {
        /// The note that belongs to the file.
        note: DocId,
        /// The file's content; `Ok(None)` if it doesn't exist.
        file: Result<Option<FileText>, FileReadError>,
    },
    /// A note's file was written.
    FileWritten {
        /// The note whose file was written.
        note: DocId,
        /// Size, modification time and hash of the written file.
        stamp: FileStamp,
    },
    /// Another program wrote the file at the same time. Its text must be merged with ours and written again.
    FileRaced {
        /// The note that belongs to the file.
        note: DocId,
        /// The other program's text.
        theirs: FileText,
    },
    /// The file was removed before we could write it. It wasn't created again.
    FileGone {
        /// The note that belongs to the file.
        note: DocId,
    },
    /// A note's file couldn't be written.
    FileFailed {
        /// The note that belongs to the file.
        note: DocId,
        /// The reason: a sentence for the user.
        why: String,
    },
    /// A batch and all earlier ones are on disk.
    Durable {
        /// Number of the batch.
        batch: BatchNumber,
    },
    /// The disk rejects writes. The host keeps retrying; nothing is dropped.
    DiskTrouble {
        /// The reason: a sentence for the user.
        why: String,
    },
    /// Changes of a note came from another replica.
    Remote {
        /// The note that was changed.
        note: DocId,
        /// automerge changes, or a saved document.
        bytes: Vec<u8>,
    },
    /// Changes of a document came from another device. [`crate::Effect::RefuseReceived`] refuses them.
    Received {
        /// The document: of a volume, a note or outputs.
        doc: DocId,
        /// Number by which the host knows them.
        ticket: u64,
        /// The changes.
        parcel: ChangeParcel,
    },
    /// The state of a hub changed.
    HubTold {
        /// Address of the hub.
        hub: String,
        /// Its new state.
        state: Box<crate::records::sync::HubState>,
        /// New lines for the sync log.
        said: Vec<String>,
    },
    /// The people at a document changed.
    Presence {
        /// The document that they're at.
        doc: DocId,
        /// The people: id of their program and what they announce.
        here: Vec<(String, store::sync::presence::PresentPerson)>,
    },
    /// The result of [`crate::Attached::Read`].
    AttachmentRead {
        /// The attachment that was read.
        file: DocId,
        /// Its stamp; `None` if it can't be read or was changed meanwhile.
        stamp: Option<FileStamp>,
    },
    /// The result of [`crate::Attached::Fetch`].
    AttachmentPlaced {
        /// The volume that got the file.
        volume: DocId,
        /// The attachment that was written.
        file: DocId,
        /// Its path in the volume.
        path: String,
        /// Its new stamp.
        stamp: FileStamp,
    },
    /// Blobs of outputs came from other devices.
    BlobsCame {
        /// Number of blobs.
        count: u64,
    },
    /// The configuration of agents was read.
    AgentSetup(Box<agent::run_records::AgentSetup>),
    /// A session's document was loaded.
    SessionLoaded {
        /// The session that was loaded.
        session: DocId,
        /// The document.
        doc: Result<Box<SessionDoc>, DocumentLoadError>,
    },
    /// A run's document was loaded.
    RunLoaded {
        /// The run that was loaded.
        run: DocId,
        /// The document.
        doc: Result<Box<RunDoc>, DocumentLoadError>,
    },
    /// The document of the user's tools was loaded.
    RegistryLoaded {
        /// The registry: this workspace's, or that of a shared volume.
        registry: DocId,
        /// The document.
        doc: Result<Box<RegistryDoc>, DocumentLoadError>,
    },
    /// The context of a message was read.
    Gathered {
        /// The run that requested it.
        run: DocId,
        /// Passages: where each is from, and its text.
        found: Vec<(String, String)>,
        /// Memory of the project.
        memory: Box<agent::memory::ProjectMemory>,
        /// Agents of the project.
        crew: Box<agent::agent_registry::AgentRegistry>,
    },
    /// The memory of a volume was read.
    MemoryRead {
        /// The volume that was read.
        volume: DocId,
        /// Everything in its memory.
        memory: Box<agent::memory::ProjectMemory>,
    },
    /// Search paid for embeddings.
    Spent(agent::run_records::EmbeddingCost),
    /// A piece of a model's answer arrived.
    ModelDelta {
        /// Id of the call.
        call: ModelCallId,
        /// The piece of the answer.
        delta: ModelDelta,
    },
    /// A model call ended.
    ModelDone {
        /// Id of the call.
        call: ModelCallId,
        /// The answer, or why there's none.
        result: Result<Box<ModelResponse>, ModelError>,
    },
    /// A tool call ended.
    ToolDone {
        /// The run that called the tool.
        run: DocId,
        /// Id of the tool call.
        call: String,
        /// The result of the tool.
        outcome: Box<ToolOutcome>,
    },
    /// Jupyter kernels were found.
    KernelsFound {
        /// The kernels that were found.
        kernels: Vec<crate::records::kernels::KernelSpec>,
    },
    /// The note's kernel is ready.
    KernelReady {
        /// The note that the kernel belongs to.
        note: DocId,
    },
    /// The variables after an execution are on the disk.
    StateSaved {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// Why they aren't.
        problem: Option<String>,
    },
    /// Another saved state of the note's kernel is the current one.
    StateMoved {
        /// The note whose kernel it is.
        note: DocId,
        /// The state; `None`: a kernel that has run nothing.
        state: Option<String>,
        /// The branch.
        branch: String,
        /// Executions whose effect is gone.
        undone: Vec<ExecutionId>,
        /// Whether a cell made room for itself: what ran below it runs again.
        rerun: bool,
        /// Why it failed; then nothing has changed.
        problem: Option<String>,
    },
    /// The kernel started an execution.
    Began {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
    },
    /// A cell printed or returned something.
    Output {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// The output. The session joins adjacent pieces of one stream.
        output: CellOutput,
    },
    /// An output was replaced, perhaps after its execution ended.
    Updated {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// Index in the list of outputs.
        at: usize,
        /// The new output.
        output: CellOutput,
    },
    /// A cell cleared its outputs.
    Cleared {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
    },
    /// A cell waits for a line of input.
    Asked {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// The prompt to show.
        prompt: String,
        /// Whether to hide the answer, as for a password.
        password: bool,
    },
    /// An execution ended.
    Finished {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// How it ended.
        status: ExecutionStatus,
        /// The kernel's execution counter.
        count: Option<u64>,
        /// Full text of streams that were cut, by index in the list of outputs.
        whole: Vec<(usize, store::BlobRef)>,
        /// Whether the result came from the cache and nothing ran.
        cached: bool,
        /// How long the kernel was at it, in milliseconds, as it was measured where its messages arrive: the session
        /// hears of beginning and end only when it is next awake, perhaps of both at once.
        took: Option<u64>,
    },
    /// The kernel's process ended, on request or not.
    KernelDied {
        /// The note that the kernel belonged to.
        note: DocId,
        /// The reason: a sentence for the user.
        why: String,
    },
}

/// The state on disk when a workspace is opened.
#[derive(Debug)]
pub struct WorkspaceStart {
    /// Document id of the workspace.
    pub workspace: DocId,
    /// Folder of the workspace on this device.
    pub folder: PathBuf,
    /// The workspace's document.
    pub doc: Box<WorkspaceDoc>,
    /// Folders of volumes on this device.
    pub mounts: BTreeMap<DocId, PathBuf>,
    /// Where new memory is kept, if the configuration says so.
    pub memory_place: Option<agent::memory::place::MemoryPlace>,
    /// Name of this device.
    pub device: String,
    /// Settings of this device.
    pub settings: Settings,
    /// Highest journal number that was ever used.
    pub last_seq: u64,
    /// Notes with unfinished work: journal records that aren't in a change yet, or text that isn't in the file yet.
    pub unfinished: Vec<DocId>,
    /// New actor id of this process.
    pub actor: [u8; 16],
    /// Problems found while opening.
    pub problems: Vec<String>,
    /// Files in the trash.
    pub trash: BTreeMap<DocId, crate::records::moves::TrashedFile>,
    /// A move of files that was interrupted.
    pub moving: Option<crate::records::moves::PendingMove>,
    /// Moves that can be undone.
    pub moved: Vec<crate::records::moves::CompletedMove>,
    /// Files that other programs renamed and whose links can be updated.
    pub renamed: Vec<crate::records::moves::ExternalRename>,
    /// Summary of each session.
    pub sessions: BTreeMap<DocId, agent::run_records::SessionSummary>,
    /// Summary of each run.
    pub runs: BTreeMap<DocId, agent::run_records::RunSummary>,
    /// Volumes that are shared, by hub.
    pub shares: crate::records::sync::SyncShares,
    /// The sync log: milliseconds since 1970, and a line.
    pub sync_log: Vec<(i64, String)>,
    /// Saved state of other devices.
    pub sync_kept: crate::records::sync::SavedSyncState,
    /// Rules made by the user's decisions.
    pub rules: Vec<agent::policy::PolicyRule>,
    /// Schedules of this device.
    pub schedules: BTreeMap<DocId, agent::schedule::Schedule>,
    /// Cost outside runs on this device, by day.
    pub outlays: Vec<agent::run_records::EmbeddingCost>,
}

/// Outline of a note's file and its encoding on disk, both made where the file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineSurvey {
    pub(crate) outline: Arc<Outline>,
    pub(crate) stored: Vec<u8>,
}

impl OutlineSurvey {
    /// Surveys a file's text; `hash` is the hash of its bytes.
    pub fn of(hash: BlobHash, text: &str) -> OutlineSurvey {
        let outlined = OutlinedBytes::of(hash, text);
        let stored = serde_json::to_vec(&outlined).unwrap_or_default();
        OutlineSurvey { outline: Arc::new(outlined.outline), stored }
    }
}

/// A volume's known files in the form that the session keeps, made where they're read: with
/// many thousands of files that takes longer than a frame.
#[derive(Debug)]
pub struct KnownFiles {
    pub(crate) files: BTreeMap<String, FileRow>,
    pub(crate) places: HashMap<DocId, (DocId, String)>,
}

impl KnownFiles {
    /// Builds the table from a volume's rows.
    pub fn new(volume: DocId, rows: Vec<FileRow>) -> KnownFiles {
        let places = rows.iter().map(|row| (row.id, (volume, row.path.clone()))).collect();
        let files = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        KnownFiles { files, places }
    }
}

/// The known links between a volume's files, made where they're read like [`KnownFiles`].
#[derive(Debug)]
pub struct KnownLinks {
    pub(crate) links: VolumeLinks,
    pub(crate) unindexed: BTreeSet<DocId>,
}

impl KnownLinks {
    /// Builds the links of these files. An outline counts only if it was made from the bytes that the file's row names.
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

/// A new or changed file, found by a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    /// Path in the volume.
    pub path: String,
    /// Kind of file: note, collection, script or attachment.
    pub kind: FileKind,
    /// Size, modification time and hash.
    pub stamp: FileStamp,
    /// Number of blocks, if it's a note.
    pub blocks: u32,
    /// Number of cells, if it's a note.
    pub cells: u32,
    /// Outline of the file, if it's a note.
    pub survey: Option<OutlineSurvey>,
    /// The file's earlier path, if the scan recognized its bytes.
    pub was: Option<String>,
    /// Why a file that looks like a note is kept as an attachment.
    pub why: Option<String>,
}

/// A file or folder that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkippedFile {
    /// Path in the volume.
    pub path: String,
    /// The reason: a sentence for the user.
    pub why: String,
    /// Whether it's a symlink that leads out of the volume.
    #[serde(skip)]
    pub leads_outside: bool,
}

impl SkippedFile {
    /// A file that was left out for this reason.
    pub fn new(path: String, why: String) -> SkippedFile {
        SkippedFile { path, why, leads_outside: false }
    }
}

/// A file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The file's text, UTF-8.
    pub text: String,
    /// Size, modification time and hash of the file.
    pub stamp: FileStamp,
}

/// A version of a note's file that the note's text contains already, though the file's row does not say so yet: what we
/// are about to write there, or what another program wrote and was merged. Kept on disk until the row says so: after a
/// crash in between, the same edits must not be merged again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileMark {
    /// Hash of the file's bytes.
    pub hash: BlobHash,
    /// Heads of the document at that text; empty if the document never had it.
    pub heads: Vec<[u8; 32]>,
    /// The text, if the document can't reproduce it.
    pub text: Option<String>,
}

/// Returns the key under which the disk keeps a note's [`FileMark`]s, as JSON.
pub fn file_marks_key(note: DocId) -> String {
    format!("file/{note}")
}

/// Why a document can't be read: what the host says, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentLoadError(pub String);

/// Why a file can't be read or isn't text: what the host says, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileReadError(pub String);

/// Why files were not moved or deleted: what the host says, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileChangeError(pub String);

/// Parts of a note that are read before its document.
#[derive(Debug)]
pub struct NoteContent {
    /// Blocks with the journal replayed; for a note that was never edited here, the blocks of its file.
    pub blocks: Vec<Block>,
    /// Whether the blocks are rows on disk, since the note was edited or run here.
    pub adopted: bool,
    /// Journal records that aren't part of a change yet.
    pub records: Vec<JournalRecord>,
    /// The stored row of its file.
    pub row: Option<FileRow>,
    /// The file's content now; `None` if it doesn't exist; `Err` if it can't be read or isn't text.
    pub file: Result<Option<FileText>, FileReadError>,
    /// Whether the note was ahead of its file when it was last open.
    pub ahead: bool,
    /// Versions of the file that the note already contains.
    pub marks: Vec<FileMark>,
    /// Problems that were found and repaired, for the user.
    pub problems: Vec<String>,
}

/// Documents of a note: its text and its outputs.
#[derive(Debug)]
pub struct NoteDocs {
    /// The document of the note's text.
    pub doc: Box<NoteDoc>,
    /// Chunks to append: the first bytes of a new document, or a repair.
    pub chunks: Vec<Vec<u8>>,
    /// The whole document and its highest chunk number, if there were many chunks.
    pub snapshot: Option<(Vec<u8>, i64)>,
    /// Whether the outputs have no chunks on disk yet.
    pub outputs_new: bool,
    /// The document of its outputs; `Err` if it can't be read.
    pub outputs: Result<Box<OutputsDoc>, DocumentLoadError>,
    /// Problems that were found and repaired, for the user.
    pub problems: Vec<String>,
}
