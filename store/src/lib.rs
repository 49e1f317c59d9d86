//! What lasts: the CRDT documents, the journal of keystrokes, content-addressed blobs and the files' mirror state.
//!
//! This crate does not know that threads, clocks, randomness or networks exist: actors, ids and times are arguments.
//! It does not know Markdown, Python or the window. Only [`disk`] touches files, and only it knows SQLite.

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
mod schema;
mod volume;
mod workspace;

pub use automerge::{ActorId, ChangeHash};
pub use document::{HistoryEntry, Loaded};
pub use error::StoreError;
pub use id::{BlobHash, BlockId, DocId, ExecutionId};
pub use journal::Record;
pub use note::{Block, Moment, NoteDoc, Op, Passage, Past, Touched, apply_op, coalesce, import_blocks, sort_blocks};
pub use outputs::{BlobRef, Execution, Output, OutputBody, OutputsDoc, Status};
pub use plain::PlainText;
pub use position::{between, spread};
pub use schema::{DocumentKind, SCHEMA};
pub use volume::{FileEntry, FileKind, VolumeDoc};
pub use workspace::{VolumeEntry, WorkspaceDoc};
