//! Files of the user: reading, writing, moving and watching them, always inside their volume.

pub mod atomic_write;
pub(crate) mod bulk_create;
pub mod confined_dir;
pub mod copy;
pub(crate) mod move_files;
pub(crate) mod read;
pub(crate) mod scan;
pub(crate) mod watch;
