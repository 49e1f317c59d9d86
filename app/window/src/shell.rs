//! The frame around notes: keys and commands, panes and tabs, status bar, clipboard, shutdown.

pub(crate) mod activity_rail;
pub(crate) mod background_jobs;
pub mod clipboard;
pub(crate) mod command_mode;
pub(crate) mod commands;
pub(crate) mod dispatch;
pub(crate) mod dock_state;
pub(crate) mod file_drop;
pub(crate) mod host_link;
pub(crate) mod input_state;
pub(crate) mod key_dispatch;
pub(crate) mod layout;
pub(crate) mod notice_state;
pub(crate) mod page_view;
pub(crate) mod pane;
pub(crate) mod pane_state;
pub(crate) mod panes;
pub(crate) mod pending_note_action;
pub(crate) mod shutdown;
pub(crate) mod status_bar;
pub(crate) mod tabs;
pub(crate) mod vim_adapter;
pub(crate) mod window_state;
