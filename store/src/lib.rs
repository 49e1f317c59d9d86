//! Persistent data: the CRDT documents, the journal of edits, content-addressed blobs and the mirror state of files.
//!
//! This crate uses no threads, clocks, randomness or networks: actors, ids and times are arguments. It knows nothing
//! about Markdown, Python or the user interface. Only [`disk`] touches files, and only it uses SQLite.

mod conversation;
mod devices;
pub mod disk;
mod document;
mod error;
pub mod id;
mod journal;
mod keys;
mod note;
mod outputs;
mod position;
mod registry;
mod run;
mod schema;
mod session;
pub mod sync;
mod volume;
mod workspace;

pub use automerge::{ActorId, ChangeHash};
pub use conversation::{
    CallUsage, ExecutionStep, MAX_RESULT_FILES, MessageRole, SessionMessage, StepKind, StepTool, TodoItem, TodoStatus,
    ToolCall, ToolFileInfo, ToolFileType,
};
pub use devices::{DeviceAccess, DevicesDoc, PairedDevice};
pub use document::{ChangeParcel, ChunkCompactionError, HistoryEntry, LoadedDocument, compact_chunks};
pub use error::StoreError;
pub use id::{BlobHash, BlockId, DocId, ExecutionId, IdParseError, MessageId, StepId};
pub use journal::JournalRecord;
pub use note::{
    AuthoredPassage, Block, NoteChange, NoteDoc, NoteLetter, NoteOp, NotePast, TouchedBlocks, apply_op, coalesce,
    import_blocks, sort_blocks,
};
pub use outputs::{BlobRef, CellOutput, Execution, ExecutionStatus, OutputBody, OutputsDoc};
pub use position::{position_between, spread_positions};
pub use registry::{RegisteredTool, RegistryDoc, RegistryWrite, ToolGrants, ToolLanguage, UserTool};
pub use run::{
    AgentState, ChangeKind, CodePiece, DecisionMaker, DecisionRecord, DecisionScope, RunAbout, RunApproval, RunChange,
    RunDevice, RunDoc, RunEnding, RunOrigin, RunWrite, TextHunk,
};
pub use schema::{DocumentKind, SCHEMA_VERSION};
pub use session::{MessageTree, SessionAbout, SessionDoc};
pub use volume::{
    FileBytes, FileEntry, FileKind, ListedDocumentKind, VolumeChanges, VolumeDoc, is_device_only, is_hidden,
};
pub use workspace::{VolumeEntry, WorkspaceDoc};
