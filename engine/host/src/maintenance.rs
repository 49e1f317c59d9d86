//! The care of a workspace: checks, backups, secrets, configuration and what this machine can do.

pub mod backup;
pub mod bug_report;
pub(crate) mod capabilities;
pub mod check;
pub mod configuration;
pub mod secrets;
pub mod update_check;
