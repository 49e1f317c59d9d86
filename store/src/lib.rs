//! What lasts: the CRDT documents, the journal of keystrokes, content-addressed blobs and the files' mirror state.
//!
//! This crate does not know that threads, clocks, randomness or networks exist: actors, ids and times are arguments.
//! It does not know Markdown, Python or the window. Only [`disk`] touches files, and only it knows SQLite.

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
mod plain;
mod position;
mod registry;
mod run;
mod schema;
mod session;
pub mod sync;
mod volume;
mod workspace;

pub use automerge::{ActorId, ChangeHash};
pub use conversation::{ExecutionStep, Message, Role, Spent, StepKind, TodoItem, TodoStatus, ToolCall};
pub use devices::{Access, Device, DevicesDoc};
pub use document::{HistoryEntry, Loaded, Parcel, fold};
pub use error::StoreError;
pub use id::{BlobHash, BlockId, DocId, ExecutionId, MessageId, StepId};
pub use journal::Record;
pub use note::{Block, Moment, NoteDoc, Op, Passage, Past, Touched, apply_op, coalesce, import_blocks, sort_blocks};
pub use outputs::{BlobRef, Execution, Output, OutputBody, OutputsDoc, Status};
pub use plain::PlainText;
pub use position::{between, spread};
pub use registry::{Registered, RegistryDoc, RegistryWrite, UserTool};
pub use run::{
    AgentState, Approval, Change, ChangeKind, Decision, Ending, Hunk, Origin, Piece, RunAbout, RunDevice, RunDoc,
    RunWrite, Scope,
};
pub use schema::{DocumentKind, SCHEMA};
pub use session::{About, MessageTree, SessionDoc};
pub use volume::{FileBytes, FileEntry, FileKind, Kept, VolumeChanges, VolumeDoc, is_hidden};
pub use workspace::{VolumeEntry, WorkspaceDoc};
