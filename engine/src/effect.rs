//! Effects: work that the session requests from the host. Plain data; the host makes no decisions.

use crate::records::files::FileStamp;
use crate::records::saving::BatchNumber;
use agent::agent_registry::AgentVolume;
use agent::model_call::{ModelCallId, ModelRequest};
use agent::server_material::ServerMaterial;
use agent::server_request::ServerReply;
use agent::tool_job::ToolJob;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::RowWrite;
use store::{BlobHash, DocId, ExecutionId};
use text::time::UnixMillis;

/// A file that a message mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MentionedFile {
    /// The name in the message.
    pub name: String,
    /// Folder of the file's volume.
    pub root: PathBuf,
    /// Path of the file, relative to `root`.
    pub path: String,
}

/// A task for the host, as data. The names in parentheses are the [`crate::Event`]s that answer it.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Commits these writes as one transaction, after all earlier batches (`Durable`). Retried until it succeeds.
    Append {
        /// Number of the batch.
        batch: BatchNumber,
        /// The writes of the batch.
        writes: Vec<RowWrite>,
    },
    /// Reads a volume's known files (`VolumeRead`), then their links (`VolumeLinked`), then its document
    /// (`VolumeLoaded`).
    LoadVolume {
        /// The volume to load.
        volume: DocId,
    },
    /// Scans a volume's folder (any number of `Scanned`, then `ScanDone`).
    Scan {
        /// The volume to scan.
        volume: DocId,
        /// The volume's folder.
        root: PathBuf,
        /// Unchanged notes to read and index anyway (`Indexed`).
        unindexed: BTreeSet<DocId>,
    },
    /// Extracts links, headings and tasks from a note (`Indexed`).
    Index {
        /// The note's volume.
        volume: DocId,
        /// The note to index.
        note: DocId,
        /// The text of its file.
        text: Arc<str>,
    },
    /// Moves files, all or none, never overwriting another file. After a crash, finished moves aren't repeated
    /// (`FilesMoved`).
    MoveFiles {
        /// Pairs of old and new path.
        moves: Vec<(PathBuf, PathBuf)>,
        /// Folders to remove if they're empty after the moves.
        emptied: Vec<PathBuf>,
    },
    /// Deletes a file in the trash and the folder that was created for it (`Discarded`).
    Discard {
        /// The file to delete.
        file: DocId,
        /// Its path in the trash.
        path: PathBuf,
    },
    /// Watches a folder for changes by other programs (`FileTouched`).
    Watch {
        /// The volume to watch.
        volume: DocId,
        /// The volume's folder.
        root: PathBuf,
        /// Whether the folder is created if it's missing: a volume that was joined has none yet.
        make: bool,
    },
    /// Stops watching a volume.
    Unwatch {
        /// The volume to stop watching.
        volume: DocId,
    },
    /// Reads a note's blocks, journal and file (`NoteRead`).
    ReadNote {
        /// The note to read.
        note: DocId,
        /// The note's volume.
        volume: DocId,
        /// The note's path in the volume.
        path: String,
        /// Absolute path of the note's file.
        file: PathBuf,
    },
    /// Loads a note's documents (`NoteLoaded`). A note without a document gets one from its rows on disk, once all
    /// batches sent so far are committed.
    LoadNote {
        /// The note to load.
        note: DocId,
    },
    /// Reads a note's file again (`FileRead`).
    ReadFile {
        /// The note whose file is read.
        note: DocId,
        /// Absolute path of the file.
        file: PathBuf,
        /// The version of the file that the note knows.
        known: Option<FileStamp>,
    },
    /// Replaces a note's file atomically (`FileWritten`, `FileRaced`, `FileFailed`).
    WriteFile {
        /// The note whose file is written.
        note: DocId,
        /// Absolute path of the file.
        file: PathBuf,
        /// Hash of the file's expected content; `None` if the file must not exist.
        expected: Option<BlobHash>,
        /// The note's text.
        text: Arc<str>,
    },
    /// Sets which documents to sync over which hubs, replacing the previous selection (`HubTold`, `Received`). Only
    /// what is on disk is sent.
    Sync(Box<crate::records::sync::SyncTargets>),
    /// Sets the volumes whose attachments and blobs to exchange, replacing the previous selection (`AttachmentRead`,
    /// `AttachmentPlaced`, `BlobsCame`).
    SyncFiles(Box<BTreeMap<DocId, crate::records::sync::VolumeAttachments>>),
    /// Reconnects to unreachable hubs now.
    RetrySync,
    /// Rejects changes that arrived as `Received`.
    RefuseReceived {
        /// The host's number for the received changes.
        ticket: u64,
        /// The reason, for the log.
        why: String,
    },
    /// Announces the user's presence to others who sync the document, until it changes.
    Present {
        /// The document that the user is in.
        doc: DocId,
        /// The user's carets and running cells; `None` if the user left. The host fills in name and device.
        state: Option<Box<store::sync::presence::PresentPerson>>,
        /// Whether the document is a volume's, for which only presence matters, not carets.
        volume: bool,
    },
    /// Rewrites the marker file next to the database, which lists volumes and folders.
    WriteMarker {
        /// Id, name and folder of each volume.
        volumes: Vec<(DocId, String, PathBuf)>,
        /// Names of the forks among them, each with the name of the volume that it's a copy of. Searches elsewhere
        /// leave forks out, and the marker does, too.
        forks: BTreeMap<String, String>,
    },
    /// Searches for Jupyter kernels that notes in this folder could use (`KernelsFound`).
    FindKernels {
        /// Absolute path of the folder.
        folder: PathBuf,
    },
    /// Sends a cell to the note's kernel, and starts a kernel if none is running (`KernelReady`, `Began`, any number of
    /// `Output`, `Asked`, `Finished`, `KernelDied`).
    Eval {
        /// The note that holds the cell.
        note: DocId,
        /// The folder that the kernel runs in.
        folder: PathBuf,
        /// Name of the note's file in the folder.
        file: PathBuf,
        /// The note's declaration of the packages that its cells need.
        packages: Option<Box<crate::records::kernels::NotePackages>>,
        /// Name of the Jupyter kernel to start; `None` for the built-in kernel.
        kernel: Option<String>,
        /// Fingerprint of the Jupyter kernel that the user has allowed; no other kernel is started.
        allowed: Option<String>,
        /// What a built-in kernel may access beyond the folder.
        grant: crate::records::kernels::KernelGrant,
        /// Id of the execution.
        execution: ExecutionId,
        /// The cell's code.
        code: String,
        /// The query, if it reads collections: their rows are added to its code.
        query: Option<String>,
        /// The cell's name in tracebacks.
        label: String,
        /// Names to delete first: those of removed cells, and those that their cells no longer assign.
        forget: Vec<String>,
        /// The names that the cell depends on and those that it assigns, if the result may come from the cache.
        pure: Option<(Vec<String>, Vec<String>)>,
        /// If states are saved: the executions, in order, in whose state the cell runs. Others are undone first
        /// (`StateMoved`). `None` to run in the current state.
        after: Option<Vec<ExecutionId>>,
        /// The branch of saved states in which the cell runs, so that the user's state stays as it is; `None`: the
        /// user's own.
        branch: Option<String>,
        /// Whether the kernel saves its variables.
        saves_states: bool,
    },
    /// Switches the note's kernel to another saved state; starts a kernel if none is running (`StateMoved`).
    MoveState {
        /// The note that the kernel belongs to.
        note: DocId,
        /// The folder that the kernel runs in.
        folder: PathBuf,
        /// What the kernel may access beyond the folder.
        grant: crate::records::kernels::KernelGrant,
        /// The state to switch to.
        to: crate::records::kernels::KernelStateMove,
    },
    /// Shares the saved state of the note's kernel with the volume's other devices, or fetches theirs
    /// (`SharedStateDone`).
    ShareState {
        /// The note that the kernel belongs to.
        note: DocId,
        /// The note's volume.
        volume: DocId,
        /// The change to the shared state.
        job: crate::records::kernels::SharedStateJob,
    },
    /// Starts a built-in kernel for this folder in advance, and stops one for another folder. `None` if no kernel is
    /// needed.
    Reserve {
        /// Absolute path of the folder.
        folder: Option<PathBuf>,
    },
    /// Answers the input prompt of a running cell.
    Answer {
        /// The note that holds the cell.
        note: DocId,
        /// The line that the user typed.
        text: String,
    },
    /// Interrupts the note's kernel.
    Interrupt {
        /// The note whose kernel is interrupted.
        note: DocId,
    },
    /// Kills the note's kernel (`KernelDied`).
    KillKernel {
        /// The note whose kernel is killed.
        note: DocId,
    },
    /// Loads a session's document (`SessionLoaded`).
    LoadSession {
        /// The session to load.
        session: DocId,
    },
    /// Loads a run's document (`RunLoaded`).
    LoadRun {
        /// The run to load.
        run: DocId,
    },
    /// Loads the document of the user's tools (`RegistryLoaded`).
    LoadRegistry {
        /// Id of the registry.
        registry: DocId,
    },
    /// Reads the configuration of agents (`AgentSetup`).
    ReadSetup,
    /// Reads the context of a message (`Gathered`).
    Gather {
        /// The run that needs the context.
        run: DocId,
        /// The volume's folder.
        root: PathBuf,
        /// Files named in the message; those that don't exist are skipped.
        paths: Vec<MentionedFile>,
        /// Text to search for.
        text: String,
        /// Maximum number of passages.
        limit: usize,
        /// Folder that holds the memory, and the folders inside it to read.
        memory: (PathBuf, Vec<String>),
        /// Name of the fork that the run works in, if it does.
        fork: Option<String>,
        /// Prompts and resources of servers that the message names.
        material: Vec<ServerMaterial>,
        /// Other volumes, whose agents can be called by name.
        elsewhere: Vec<AgentVolume>,
    },
    /// Reads the memory of a volume from all its folders (`MemoryRead`).
    ReadMemory {
        /// The volume to read.
        volume: DocId,
        /// Folder that holds its memory.
        root: PathBuf,
    },
    /// Calls a model (any number of `ModelDelta`, then `ModelDone`).
    CallModel {
        /// Id of the call.
        call: ModelCallId,
        /// The request with its messages and tools.
        request: Box<ModelRequest>,
    },
    /// Cancels a model call and drops the rest of its answer.
    CancelModel {
        /// Id of the call.
        call: ModelCallId,
    },
    /// Runs a tool (`ToolDone`).
    RunTool {
        /// The run that calls the tool.
        run: DocId,
        /// Id of the tool call.
        call: String,
        /// The job to carry out.
        job: Box<ToolJob>,
    },
    /// Cancels a tool call.
    CancelTool {
        /// The run that called the tool.
        run: DocId,
        /// Id of the tool call.
        call: String,
    },
    /// Answers a server's request ([`crate::Event::ServerAsked`]).
    AnswerServer {
        /// Id of the request.
        request: String,
        /// The answer, or why there's none.
        reply: ServerReply,
    },
    /// Removes the containers of a run that has ended.
    RemoveContainers {
        /// The run.
        run: DocId,
    },
    /// Closes the browser of a run that has ended.
    CloseBrowser {
        /// The run.
        run: DocId,
    },
    /// Posts a message to the user's webhook (`WebhookDone`).
    SendWebhook {
        /// The address in the configuration.
        url: String,
        /// The message.
        body: serde_json::Value,
    },
    /// Sends `Tick` at this time.
    Wake {
        /// The time to send it.
        at: UnixMillis,
    },
}
