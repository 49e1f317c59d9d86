//! What runs: the session, decided purely.
//!
//! This crate does not know that files, threads, processes, clocks or windows exist. [`Session::apply`] is the only way
//! state changes: a [`Command`] (a user's wish) or an [`Event`] (a fact from the world) goes in, [`Effect`]s (work for
//! the host) or a [`Reject`] come out. Time and randomness are arguments, so every run can be replayed.

pub mod agenda;
mod arrangement;
pub mod base;
pub mod command;
pub mod commands;
pub mod compare;
pub mod effect;
pub mod event;
pub mod flow;
mod fresh;
pub mod history;
pub mod keymap;
pub mod links;
pub mod markdown;
pub mod names;
mod note;
pub mod outline;
mod plan;
pub mod properties;
mod session;
pub mod settings;
pub mod splice;
pub mod task;
mod time;
mod undo;
pub mod yaml;

pub use arrangement::Arrangement;
pub use command::Command;
pub use effect::{BatchNumber, Effect};
pub use event::Event;
pub use fresh::{Reactivity, Stale};
pub use note::{DocPhase, FileSide, KernelPhase, Note, Phase, Shift};
pub use session::{
    EMBEDDED, FileMove, Input, KernelSpec, LINKS, MOVED, MOVING, Moved, Moving, Question, RELINK, RENAMED, Reject,
    Renamed, Saving, Scanning, Session, Spot, TRASH, TRASH_FOLDER, Trashed, Verdict, Volume, links_key,
};
pub use settings::{Settings, Theme};
pub use time::Time;
