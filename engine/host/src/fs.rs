//! The user's files: reading, writing, moving and watching them, always inside their volume.

pub mod atomic_write;
pub(crate) mod bulk_create;
pub mod confined_dir;
pub mod convert;
pub mod copy;
pub(crate) mod move_files;
pub mod obsidian_settings;
pub(crate) mod read;
pub(crate) mod scan;
pub mod shipped_files;
pub mod user_file;
pub mod user_texts;
pub(crate) mod volume_snapshot;
pub(crate) mod watch;
