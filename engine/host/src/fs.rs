//! Files of the user: reading, writing, moving and watching them, always inside their volume.

pub mod confined;
pub mod copy;
pub(crate) mod create;
pub(crate) mod files;
pub(crate) mod relocate;
pub mod replace;
pub(crate) mod scan;
pub(crate) mod watch;
