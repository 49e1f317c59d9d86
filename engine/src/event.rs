//! Events: things that happened outside the session, one half of [`crate::Input`].

pub use crate::records::files::FileStamp;

use crate::records::saving::BatchNumber;
use agent::model_call::{ModelCallId, ModelDelta, ModelError, ModelResponse};
use agent::server_material::ServerMaterial;
use agent::server_request::ServerRequest;
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
use text::commit_mark::CommitMark;
use text::links::VolumeLinks;
use text::outline::{Outline, OutlinedBytes};
use user_settings::settings::Settings;

/// Something that happened outside the session.
#[derive(Debug)]
pub enum Event {
    /// The workspace was opened. Always the first event of a session.
    Started(Box<WorkspaceStart>),
    /// The time requested with [`crate::Effect::Wake`] has come.
    Tick,
    /// A volume's last known files were read, before the volume is scanned.
    VolumeRead {
        /// The volume that was read.
        volume: DocId,
        /// The volume's last known files.
        files: Box<KnownFiles>,
    },
    /// A volume's last known links were read. Comes after `VolumeRead`, so that the file tree can be shown earlier.
    VolumeLinked {
        /// The volume that was read.
        volume: DocId,
        /// The volume's last known links.
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
        /// Number of files that the scan has checked so far.
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
        /// Why the scan failed, for example because the folder is missing; `None` if it succeeded.
        failed: Option<String>,
    },
    /// The watcher noticed a change to a file.
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
        /// The note's content.
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
        /// The note that the file belongs to.
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
    /// Another program wrote the file at the same time. Its text must be merged with the note's and written again.
    FileRaced {
        /// The note that the file belongs to.
        note: DocId,
        /// The other program's text.
        theirs: FileText,
    },
    /// The file was removed before it could be written. It wasn't created again.
    FileGone {
        /// The note that the file belongs to.
        note: DocId,
    },
    /// A note's file couldn't be written.
    FileFailed {
        /// The note that the file belongs to.
        note: DocId,
        /// The reason: a sentence for the user.
        why: String,
    },
    /// A batch and all earlier ones are on disk.
    Durable {
        /// Number of the batch.
        batch: BatchNumber,
    },
    /// The disk rejected a write. The host keeps retrying; nothing is dropped.
    DiskTrouble {
        /// The reason: a sentence for the user.
        why: String,
    },
    /// Changes to a note arrived from another replica.
    Remote {
        /// The note that was changed.
        note: DocId,
        /// automerge changes, or a saved document.
        bytes: Vec<u8>,
    },
    /// Changes to a document arrived from another device. [`crate::Effect::RefuseReceived`] rejects them.
    Received {
        /// The document of a volume, a note or outputs.
        doc: DocId,
        /// The host's number for these changes.
        ticket: u64,
        /// The changes.
        parcel: ChangeParcel,
    },
    /// The state of a hub changed.
    HubTold {
        /// The hub's address.
        hub: String,
        /// The hub's new state.
        state: Box<crate::records::sync::HubState>,
        /// New lines for the sync log.
        said: Vec<String>,
    },
    /// The people in a document changed.
    Presence {
        /// The document that they're in.
        doc: DocId,
        /// The people: the id of each one's program, and what it announces.
        here: Vec<(String, store::sync::presence::PresentPerson)>,
    },
    /// The result of [`crate::AttachmentAction::Read`].
    AttachmentRead {
        /// The attachment that was read.
        file: DocId,
        /// Stamp of the file; `None` if it can't be read or was changed meanwhile.
        stamp: Option<FileStamp>,
    },
    /// The result of [`crate::AttachmentAction::Fetch`].
    AttachmentPlaced {
        /// The volume that got the file.
        volume: DocId,
        /// The attachment that was written.
        file: DocId,
        /// The file's path in the volume.
        path: String,
        /// The file's new stamp.
        stamp: FileStamp,
    },
    /// Blobs of outputs arrived from other devices.
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
        /// Passages, as pairs of source and text.
        found: Vec<(String, String)>,
        /// Prompts and resources of servers, in the order in which they were asked for.
        material: Vec<(ServerMaterial, ToolOutcome)>,
        /// Memory of the project.
        memory: Box<agent::memory::ProjectMemory>,
        /// The agents of the project.
        crew: Box<agent::agent_registry::AgentRegistry>,
    },
    /// The memory of a volume was read.
    MemoryRead {
        /// The volume that was read.
        volume: DocId,
        /// The complete memory of the volume.
        memory: Box<agent::memory::ProjectMemory>,
    },
    /// Search spent money on embeddings.
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
    /// The server of a running tool call wants a model or the user to answer. [`crate::Effect::AnswerServer`] follows,
    /// unless `ToolDone` for the id of the request withdraws it.
    ServerAsked {
        /// The run that called the tool.
        run: DocId,
        /// Id of the tool call.
        call: String,
        /// Id of the request, unlike that of any call.
        request: String,
        /// Name of the server.
        server: String,
        /// What is asked, within the limits.
        asked: Box<ServerRequest>,
    },
    /// A message to the webhook was accepted, or given up.
    WebhookDone {
        /// Why it was given up, as a part of a sentence.
        failure: Option<String>,
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
    /// The variables after an execution were saved to disk, or saving them failed.
    StateSaved {
        /// The note that holds the cell.
        note: DocId,
        /// Id of the execution.
        execution: ExecutionId,
        /// Why they couldn't be saved; `None` if they were.
        problem: Option<String>,
    },
    /// A cell left no state: the variables are as they were before it.
    StateUnchanged {
        /// The note that holds the cell.
        note: DocId,
    },
    /// The note's kernel switched to another saved state, or failed to.
    StateMoved {
        /// The note that the kernel belongs to.
        note: DocId,
        /// Id of the state; `None` for a kernel that has run nothing.
        state: Option<String>,
        /// Name of the branch.
        branch: String,
        /// Executions whose effects were undone.
        undone: Vec<ExecutionId>,
        /// Whether a cell switched the state so that it can run; what ran below it runs again.
        rerun: bool,
        /// Why switching failed; the state is unchanged in that case.
        problem: Option<String>,
    },
    /// A job on the state that the note shares with other devices ended.
    SharedStateDone {
        /// The note that the kernel belongs to.
        note: DocId,
        /// Its result.
        outcome: crate::records::kernels::SharedStateOutcome,
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
        /// Full text of streams that were truncated, by index in the list of outputs.
        whole: Vec<(usize, store::BlobRef)>,
        /// Whether the result came from the cache and nothing ran.
        cached: bool,
        /// Duration of the execution in milliseconds, measured where the kernel's messages arrive. The session can't
        /// measure it: it learns of start and end only when it's next awake, possibly of both at once.
        took: Option<u64>,
    },
    /// The kernel's process ended, whether requested or not.
    KernelDied {
        /// The note that the kernel belonged to.
        note: DocId,
        /// The reason: a sentence for the user.
        why: String,
    },
}

/// State on disk when a workspace is opened.
#[derive(Debug)]
pub struct WorkspaceStart {
    /// Document id of the workspace.
    pub workspace: DocId,
    /// Folder of the workspace on this device.
    pub folder: PathBuf,
    /// The workspace's document.
    pub doc: Box<WorkspaceDoc>,
    /// Folders of the volumes on this device.
    pub mounts: BTreeMap<DocId, PathBuf>,
    /// Where new memory is kept; `None` if the configuration doesn't say.
    pub memory_place: Option<agent::memory::place::MemoryPlace>,
    /// What the configuration says of volumes.
    pub volume_settings: agent::config::VolumeSettings,
    /// What each fork is a copy of, also of those that were discarded.
    pub forks: BTreeMap<DocId, crate::records::forks::ForkOrigin>,
    /// Name of this device.
    pub device: String,
    /// Settings of this device.
    pub settings: Settings,
    /// Highest journal number ever used.
    pub last_seq: u64,
    /// Notes with unfinished work: journal records that aren't in a change yet, or text that isn't in the file yet.
    pub unfinished: Vec<DocId>,
    /// New actor id for this process.
    pub actor: [u8; 16],
    /// Problems found while opening the workspace.
    pub problems: Vec<String>,
    /// Files in the trash.
    pub trash: BTreeMap<DocId, crate::records::moves::TrashedFile>,
    /// A move of files that was interrupted, if any.
    pub moving: Option<crate::records::moves::PendingMove>,
    /// Moves that can be undone.
    pub moved: Vec<crate::records::moves::CompletedMove>,
    /// Files that other programs renamed and whose links can be updated.
    pub renamed: Vec<crate::records::moves::ExternalRename>,
    /// Notes that other programs deleted, at most one for each path.
    pub gone: Vec<store::disk::FileRow>,
    /// Summary of each session.
    pub sessions: BTreeMap<DocId, agent::run_records::SessionSummary>,
    /// Summary of each run.
    pub runs: BTreeMap<DocId, agent::run_records::RunSummary>,
    /// What each active run knows of the notes that it has read.
    pub known_texts: BTreeMap<DocId, agent::known_texts::KnownTexts>,
    /// Volumes that are shared, by hub.
    pub shares: crate::records::sync::SyncShares,
    /// The sync log: milliseconds since 1970, and a line.
    pub sync_log: Vec<(i64, String)>,
    /// Saved sync state of other devices.
    pub sync_kept: crate::records::sync::SavedSyncState,
    /// Policy rules created by the user's decisions.
    pub rules: Vec<agent::policy::PolicyRule>,
    /// Schedules of this device.
    pub schedules: BTreeMap<DocId, agent::schedule::Schedule>,
    /// Costs on this device outside of runs, by day.
    pub outlays: Vec<agent::run_records::EmbeddingCost>,
    /// Recent latencies of model providers, as measured on this device.
    pub latencies: agent::router::ProviderLatencies,
}

impl WorkspaceStart {
    /// Returns the forks' volume names, each with the name of the volume that it's a copy of.
    pub fn forked_names(&self) -> BTreeMap<String, String> {
        let volumes = self.doc.volumes();
        let name = |id: &DocId| volumes.get(id).map(|entry| entry.name.clone());
        self.forks.iter().filter_map(|(fork, origin)| Some((name(fork)?, name(&origin.volume)?))).collect()
    }
}

/// Outline of a note's file and its encoding on disk, both computed where the file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineSurvey {
    pub(crate) outline: Arc<Outline>,
    pub(crate) stored: Vec<u8>,
}

impl OutlineSurvey {
    /// Creates the survey of a file's text; `hash` is the hash of its bytes.
    pub fn of(hash: BlobHash, text: &str) -> OutlineSurvey {
        let outlined = OutlinedBytes::of(hash, text);
        let stored = serde_json::to_vec(&outlined).unwrap_or_default();
        OutlineSurvey { outline: Arc::new(outlined.outline), stored }
    }
}

/// A volume's known files in the form that the session keeps. Built where they're read, because building takes longer
/// than a frame with many thousands of files.
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

/// Known links between a volume's files, built where they're read like [`KnownFiles`].
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
    /// Kind of the file: note, collection, script or attachment.
    pub kind: FileKind,
    /// Size, modification time and hash of the file.
    pub stamp: FileStamp,
    /// Number of blocks, if it's a note.
    pub blocks: u32,
    /// Number of cells, if it's a note.
    pub cells: u32,
    /// Outline of the file, if it's a note.
    pub survey: Option<OutlineSurvey>,
    /// The file's earlier path, if the scan recognized its bytes as those of a renamed file.
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
    /// Creates a skipped file with its reason.
    pub fn new(path: String, why: String) -> SkippedFile {
        SkippedFile { path, why, leads_outside: false }
    }
}

/// A file's text and stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The file's text, UTF-8.
    pub text: String,
    /// Size, modification time and hash of the file.
    pub stamp: FileStamp,
    /// The commits of Git that brought the text, oldest first; empty if it's not known to be from any.
    pub commits: Vec<ArrivedCommit>,
}

/// A version of a note's file that a commit of Git brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivedCommit {
    /// The commit and its author.
    pub mark: CommitMark,
    /// When the author made the change, in seconds since 1970.
    pub time: i64,
    /// The file's text in it.
    pub text: Arc<str>,
}

/// A version of a note's file that the note's text already contains, although the file's row doesn't say so yet. It's
/// either what is about to be written there, or what another program wrote and was merged. Kept on disk until the row
/// says so, because the same edits must not be merged again after a crash in between.
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

/// Why a document can't be read, as a sentence for the user from the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentLoadError(pub String);

/// Why a file can't be read or isn't text, as a sentence for the user from the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileReadError(pub String);

/// Why files weren't moved or deleted, as a sentence for the user from the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileChangeError(pub String);

/// The parts of a note that are read before its document.
#[derive(Debug)]
pub struct NoteContent {
    /// Blocks with the journal replayed; for a note that was never edited here, the blocks of its file.
    pub blocks: Vec<Block>,
    /// Whether the blocks are rows on disk, because the note was edited or run here.
    pub adopted: bool,
    /// Journal records that aren't part of a change yet.
    pub records: Vec<JournalRecord>,
    /// Stored row of the note's file, if any.
    pub row: Option<FileRow>,
    /// Current content of the file; `None` if it doesn't exist; `Err` if it can't be read or isn't text.
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
    /// Document of the note's text.
    pub doc: Box<NoteDoc>,
    /// Chunks to append: the first bytes of a new document, or a repair.
    pub chunks: Vec<Vec<u8>>,
    /// The whole document and its highest chunk number, if it had many chunks.
    pub snapshot: Option<(Vec<u8>, i64)>,
    /// Whether the outputs have no chunks on disk yet.
    pub outputs_new: bool,
    /// Document of the note's outputs; `Err` if it can't be read.
    pub outputs: Result<Box<OutputsDoc>, DocumentLoadError>,
    /// Problems that were found and repaired, for the user.
    pub problems: Vec<String>,
}
