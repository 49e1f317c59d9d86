//! The care of a workspace: checks, backups, secrets, configuration and what this machine can do.

pub mod backup;
pub mod check;
pub mod configuration;
pub(crate) mod machine;
pub mod secrets;
