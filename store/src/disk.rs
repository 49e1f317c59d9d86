//! Durable storage. This is the only module that touches files, and its submodules `disk/sqlite.rs`, `batch.rs`,
//! `reader.rs`, `inspect.rs` and `salvage.rs` are the only ones that use SQL.
//!
//! A [`Disk`] commits groups of [`RowWrite`]s: all or nothing, and durably on disk when `commit` returns. It decides
//! nothing about documents. It checks that it reads what it wrote, with a BLAKE3 checksum in every row.

mod batch;
mod blobs;
#[cfg(test)]
mod conformance;
mod copy;
mod durable;
mod error;
mod inspect;
mod interface;
mod marker;
mod memory;
mod pages;
mod partial_blobs;
mod progress;
mod reader;
mod rows;
mod salvage;
mod sqlite;

pub use blobs::{BLOBS_FOLDER, BlobHasher, BlobStore};
pub use durable::{create_folder, sync_folder};
pub use error::{BlobFault, DiskError, io_reason};
pub use inspect::{BadRow, InspectionReport};
pub use interface::{Disk, DiskReader, DocumentChunk, FileRow, QuarantinedRow, RowWrite};
pub use marker::{MARKER_FILE, MOUNTS_META_KEY, VolumeMount, path_form, read_marker, write_marker};
pub use memory::{CommitFault, FaultyRow, MemoryDisk};
pub use partial_blobs::{PartialBlobs, read_file_piece, read_open_file_piece};
pub use progress::{LOST_KEY, detect_loss};
pub use reader::SqliteReader;
pub use salvage::{DAMAGED_FOLDER, SalvageReport, TableCount, salvage_database};
pub use sqlite::{DATABASE_FILE, DATABASE_FORMAT, SqliteDisk};
