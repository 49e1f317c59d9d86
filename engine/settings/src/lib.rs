//! The user's settings for a workspace on this device, and what follows from them: the keys of commands, and the
//! arrangement of tabs. Plain data; who reads and writes it is the host.

pub mod kernel_access;
pub mod keymap;
pub mod pane_layout;
pub mod settings;
