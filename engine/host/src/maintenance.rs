//! Maintenance of a workspace: checks, backups, secrets, configuration, and capabilities of the machine.

pub mod backup;
pub mod bug_report;
pub(crate) mod capabilities;
pub mod check;
pub mod config_edit;
pub mod configuration;
pub mod platform;
pub mod secrets;
pub mod update_check;
