//! The user's files: reading, writing, moving and watching them, always inside their volume.

pub use user_files::{atomic_write, confined_dir, file_rights, folder_names::folder_names};
pub(crate) use user_files::{bulk_create, file_info, move_files};

pub mod convert;
pub mod copy;
pub(crate) mod read;
pub(crate) mod scan;
pub mod shipped_files;
pub mod user_file;
pub mod user_texts;
pub(crate) mod volume_snapshot;
pub(crate) mod watch;
