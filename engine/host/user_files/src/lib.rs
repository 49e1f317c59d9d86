//! Reading, writing and moving a user's plain files, always inside their folder. After any crash a file has
//! either all new bytes or the old ones, and what another program wrote in the meantime is never lost.

pub mod atomic_write;
pub mod bulk_create;
pub mod confined_dir;
pub mod copy;
pub mod file_info;
pub mod file_rights;
pub mod folder_names;
pub mod move_files;
