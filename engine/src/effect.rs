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

/// One piece of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Commit these writes as one, after all earlier batches; answer with `Durable`. Never dropped, retried until done.
    Append {
        /// Its number.
        batch: BatchNumber,
        /// The writes.
        writes: Vec<RowWrite>,
    },
    /// Read a volume's known files (`VolumeRead`), then their links (`VolumeLinked`), then its document
    /// (`VolumeLoaded`).
    LoadVolume {
        /// Which.
        volume: DocId,
    },
    /// Scan a volume's folder (`Scanned`…, `ScanDone`).
    Scan {
        /// Which.
        volume: DocId,
        /// Its folder.
        root: PathBuf,
        /// Notes to be read although they have not changed, and told of (`Indexed`).
        unindexed: BTreeSet<DocId>,
    },
    /// Look at what a note holds that others refer to (`Indexed`).
    Index {
        /// Its volume.
        volume: DocId,
        /// Which note.
        note: DocId,
        /// The text of its file.
        text: Arc<str>,
    },
    /// Move files, all or none, never over another; what was done before a crash is not done again (`FilesMoved`).
    MoveFiles {
        /// From where to where.
        moves: Vec<(PathBuf, PathBuf)>,
        /// Folders that go if nothing is left in them.
        emptied: Vec<PathBuf>,
    },
    /// Remove a file of the trash, and the folder that was made for it (`Discarded`).
    Discard {
        /// Which.
        file: DocId,
        /// Where it lies.
        path: PathBuf,
    },
    /// Tell of outside changes below this folder (`FileTouched`) from now on.
    Watch {
        /// Which volume.
        volume: DocId,
        /// Its folder.
        root: PathBuf,
    },
    /// Stop that.
    Unwatch {
        /// Which volume.
        volume: DocId,
    },
    /// Read a note's blocks, journal and file (`NoteRead`).
    ReadNote {
        /// Which.
        note: DocId,
        /// Its volume.
        volume: DocId,
        /// Path inside the volume.
        path: String,
        /// The file.
        file: PathBuf,
    },
    /// Load a note's documents (`NoteLoaded`). Where there is none yet, make one of the note's rows on disk, once all
    /// batches sent so far are there.
    LoadNote {
        /// Which.
        note: DocId,
    },
    /// Read a note's file again (`FileRead`).
    ReadFile {
        /// Which note.
        note: DocId,
        /// The file.
        file: PathBuf,
    },
    /// Put the note's text into its file by atomic replace (`FileWritten`, `FileRaced`, `FileFailed`).
    WriteFile {
        /// Which note.
        note: DocId,
        /// The file.
        file: PathBuf,
        /// What it held when we last looked; `None`: it must not exist.
        expected: Option<BlobHash>,
        /// The text.
        text: Arc<str>,
    },
    /// Sync these documents over these hubs from now on, and no others (`HubTold`, `Received`). What is on disk alone
    /// is sent.
    Sync(Box<crate::records::sync::SyncTargets>),
    /// Exchange what these volumes have beside their documents from now on, and nothing else (`AttachmentRead`,
    /// `AttachmentPlaced`, `BlobsCame`).
    SyncFiles(Box<BTreeMap<DocId, crate::records::sync::VolumeAttachments>>),
    /// Try hubs again that are not there, at once.
    RetrySync,
    /// Changes that came as `Received` are not taken.
    RefuseReceived {
        /// Their number.
        ticket: u64,
        /// Why, for the log.
        why: String,
    },
    /// Say this of us to all who sync the document, now and as long as it is so.
    Present {
        /// Which.
        doc: DocId,
        /// Where our carets are, what we run; `None`: we are gone. Name and device are the host's to fill in.
        state: Option<Box<store::sync::presence::PresentPerson>>,
        /// Whether it is a volume's: there who is connected matters, and not where.
        volume: bool,
    },
    /// Rewrite the marker beside the database that names volumes and folders.
    WriteMarker {
        /// Id, name and folder of each volume.
        volumes: Vec<(DocId, String, PathBuf)>,
    },
    /// Look for the Jupyter kernels that notes of this folder could use (`KernelsFound`).
    FindKernels {
        /// The folder.
        folder: PathBuf,
    },
    /// Send a cell to the note's kernel, starting one if there is none
    /// (`KernelReady`, `Began`, `Output`…, `Asked`, `Finished`, `KernelDied`).
    Eval {
        /// Which note.
        note: DocId,
        /// The folder in which the kernel runs.
        folder: PathBuf,
        /// The Jupyter kernel to start if there is none; `None`: the embedded one.
        kernel: Option<String>,
        /// The print of the Jupyter kernel that the user has allowed; another one is not started.
        allowed: Option<String>,
        /// What an embedded kernel reaches beyond the folder.
        grant: crate::records::kernels::KernelGrant,
        /// Which execution.
        execution: ExecutionId,
        /// The code.
        code: String,
        /// What the traceback calls it.
        label: String,
        /// Names that the kernel forgets before: of cells that are gone, or no longer bind them.
        forget: Vec<String>,
        /// Its result may be one that was kept: the names that it is made of, and those that it binds.
        pure: Option<(Vec<String>, Vec<String>)>,
    },
    /// Have an embedded kernel started in this folder before it is needed; one in another folder ends. `None`: none is
    /// wanted.
    Reserve {
        /// The folder.
        folder: Option<PathBuf>,
    },
    /// Hand the running cell the line that it asked for.
    Answer {
        /// Which note.
        note: DocId,
        /// The line.
        text: String,
    },
    /// Ask the note's kernel to stop what it does.
    Interrupt {
        /// Which note.
        note: DocId,
    },
    /// End the note's kernel by force (`KernelDied`).
    KillKernel {
        /// Which note.
        note: DocId,
    },
    /// Load a session's document (`SessionLoaded`).
    LoadSession {
        /// Which.
        session: DocId,
    },
    /// Load a run's document (`RunLoaded`).
    LoadRun {
        /// Which.
        run: DocId,
    },
    /// Load the document of the user's tools (`RegistryLoaded`).
    LoadRegistry {
        /// Its id.
        registry: DocId,
    },
    /// Read what agents have to work with (`AgentSetup`).
    ReadSetup,
    /// Read what a message speaks of (`Gathered`).
    Gather {
        /// For which run.
        run: DocId,
        /// The volume's folder.
        root: PathBuf,
        /// Files that it names, inside the folder; what is no file is left out.
        paths: Vec<String>,
        /// What is searched for.
        text: String,
        /// At most so many passages.
        limit: usize,
        /// The folders of memory inside the volume's folder.
        memory: Vec<String>,
    },
    /// Read what a volume remembers, in all its folders of memory (`MemoryRead`).
    ReadMemory {
        /// Which volume.
        volume: DocId,
        /// Its folder.
        root: PathBuf,
    },
    /// Call a model (`ModelDelta`…, `ModelDone`).
    CallModel {
        /// Which call.
        call: ModelCallId,
        /// What it is asked.
        request: Box<ModelRequest>,
    },
    /// Break a call of a model off; what it still says is not wanted.
    CancelModel {
        /// Which call.
        call: ModelCallId,
    },
    /// Do what a tool asks for (`ToolDone`).
    RunTool {
        /// For which run.
        run: DocId,
        /// For which call.
        call: String,
        /// What.
        job: Box<ToolJob>,
    },
    /// Stop that.
    CancelTool {
        /// For which run.
        run: DocId,
        /// For which call.
        call: String,
    },
    /// Send `Tick` at this time.
    Wake {
        /// When.
        at: UnixMillis,
    },
}
