//! The care of a workspace: checks, backups, secrets, configuration and what this machine can do.

pub mod backup;
pub mod bug_report;
pub(crate) mod capabilities;
pub mod check;
pub mod config_edit;
pub mod configuration;
pub mod secrets;
