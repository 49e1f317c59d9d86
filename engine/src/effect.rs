//! Work for the host: what the session decided must be done in the world. Plain data; the host decides nothing.

use crate::records::saving::BatchNumber;
use agent::model_call::{ModelCallId, ModelRequest};
use agent::tool_job::ToolJob;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use store::disk::RowWrite;
use store::{BlobHash, DocId, ExecutionId};
use text::time::UnixMillis;

/// A task for the host, as data.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Commits these writes as one, after all earlier batches, and answers with `Durable`. Retried until it succeeds.
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
    /// Scans a volume's folder (`Scanned`…, `ScanDone`).
    Scan {
        /// The volume to scan.
        volume: DocId,
        /// The volume's folder.
        root: PathBuf,
        /// Unchanged notes to read anyway and report (`Indexed`).
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
    /// Moves files, all or none, never over another; finished moves aren't repeated after a crash (`FilesMoved`).
    MoveFiles {
        /// Pairs of old and new path.
        moves: Vec<(PathBuf, PathBuf)>,
        /// Folders to remove if they're empty afterwards.
        emptied: Vec<PathBuf>,
    },
    /// Deletes a file of the trash and the folder that was made for it (`Discarded`).
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
    /// Loads a note's documents (`NoteLoaded`). A note without one gets it from its rows on disk, once all
    /// batches sent so far are there.
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
    },
    /// Replaces a note's file atomically (`FileWritten`, `FileRaced`, `FileFailed`).
    WriteFile {
        /// The note whose file is written.
        note: DocId,
        /// Absolute path of the file.
        file: PathBuf,
        /// Hash of the file's expected content; `None` if it must not exist.
        expected: Option<BlobHash>,
        /// The note's text.
        text: Arc<str>,
    },
    /// Syncs these documents over these hubs from now on, and no others (`HubTold`, `Received`). Only what is on disk
    /// is sent.
    Sync(Box<crate::records::sync::SyncTargets>),
    /// Exchanges the attachments and blobs of these volumes from now on, and no others (`AttachmentRead`,
    /// `AttachmentPlaced`, `BlobsCame`).
    SyncFiles(Box<BTreeMap<DocId, crate::records::sync::VolumeAttachments>>),
    /// Reconnects to unreachable hubs now.
    RetrySync,
    /// Refuses changes that came as `Received`.
    RefuseReceived {
        /// Number of the received changes.
        ticket: u64,
        /// The reason, for the log.
        why: String,
    },
    /// Announces our presence to others who sync the document, until it changes.
    Present {
        /// The document that we're at.
        doc: DocId,
        /// Our carets and what we run; `None` if we left. The host fills in name and device.
        state: Option<Box<store::sync::presence::PresentPerson>>,
        /// Whether the document is a volume's, where only presence counts and not carets.
        volume: bool,
    },
    /// Rewrites the marker file next to the database, which names volumes and folders.
    WriteMarker {
        /// Id, name and folder of each volume.
        volumes: Vec<(DocId, String, PathBuf)>,
    },
    /// Looks for Jupyter kernels that notes of this folder could use (`KernelsFound`).
    FindKernels {
        /// Absolute path of the folder.
        folder: PathBuf,
    },
    /// Sends a cell to the note's kernel, and starts one if there's none
    /// (`KernelReady`, `Began`, `Output`…, `Asked`, `Finished`, `KernelDied`).
    Eval {
        /// The note that holds the cell.
        note: DocId,
        /// The folder that the kernel runs in.
        folder: PathBuf,
        /// Name of the note's file in it.
        file: PathBuf,
        /// What the note says of the packages that its cells need.
        packages: Option<Box<crate::records::kernels::NotePackages>>,
        /// Name of the Jupyter kernel to start; `None` for the built-in kernel.
        kernel: Option<String>,
        /// Fingerprint of the Jupyter kernel that the user has allowed; no other one is started.
        allowed: Option<String>,
        /// What a built-in kernel may reach beyond the folder.
        grant: crate::records::kernels::KernelGrant,
        /// Id of the execution.
        execution: ExecutionId,
        /// The cell's code.
        code: String,
        /// The cell's name in tracebacks.
        label: String,
        /// Names to delete first: of removed cells, or no longer assigned by their cells.
        forget: Vec<String>,
        /// If the result may come from the cache: the names that it depends on, and those that it assigns.
        pure: Option<(Vec<String>, Vec<String>)>,
        /// Where states are saved: the executions in whose state it runs, in their order; others are undone first
        /// (`StateMoved`). `None`: it runs in the current state.
        after: Option<Vec<ExecutionId>>,
        /// Whether the kernel saves its variables.
        saves_states: bool,
    },
    /// Makes another saved state of the note's kernel the current one; starts a kernel if there's none (`StateMoved`).
    MoveState {
        /// The note whose kernel it is.
        note: DocId,
        /// The folder that the kernel runs in.
        folder: PathBuf,
        /// What the kernel may reach beyond the folder.
        grant: crate::records::kernels::KernelGrant,
        /// Which state.
        to: crate::records::kernels::KernelStateMove,
    },
    /// Starts a built-in kernel for this folder in advance; one for another folder ends. `None`: none is
    /// needed.
    Reserve {
        /// Absolute path of the folder.
        folder: Option<PathBuf>,
    },
    /// Answers the prompt of a running cell.
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
        /// The note whose kernel ends.
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
        /// Files named in the message, inside the folder; paths without a file are skipped.
        paths: Vec<String>,
        /// Text to search for.
        text: String,
        /// Maximum number of passages.
        limit: usize,
        /// Folder that holds the memory, and the folders inside it to read.
        memory: (PathBuf, Vec<String>),
    },
    /// Reads the memory of a volume from all its folders (`MemoryRead`).
    ReadMemory {
        /// The volume to read.
        volume: DocId,
        /// Folder that holds its memory.
        root: PathBuf,
    },
    /// Calls a model (`ModelDelta`…, `ModelDone`).
    CallModel {
        /// Id of the call.
        call: ModelCallId,
        /// The request with its messages and tools.
        request: Box<ModelRequest>,
    },
    /// Cancels a model call; the rest of its answer is dropped.
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
        /// What the tool is to do.
        job: Box<ToolJob>,
    },
    /// Cancels a tool call.
    CancelTool {
        /// The run that called the tool.
        run: DocId,
        /// Id of the tool call.
        call: String,
    },
    /// Sends `Tick` at this time.
    Wake {
        /// The time to send it.
        at: UnixMillis,
    },
}
