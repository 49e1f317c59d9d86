//! What commands of the table do, by subject.

pub(crate) mod agent_commands;
pub(crate) mod exports;
pub(crate) mod folding;
pub(crate) mod format_commands;
pub(crate) mod kernel_permissions;
pub(crate) mod link_navigation;
pub(crate) mod memory_commands;
pub(crate) mod note_actions;
