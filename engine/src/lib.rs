//! What runs: the session, decided purely.
//!
//! This crate does not know that files, threads, processes, clocks or windows exist. [`Session::apply`] is the only way
//! state changes: a [`Command`] (a user's wish) or an [`Event`] (a fact from the world) goes in, [`Effect`]s (work for
//! the host) or a [`Reject`] come out. Time and randomness are arguments, so every run can be replayed.

pub mod agenda;
mod arrangement;
pub mod command;
pub mod commands;
pub mod effect;
pub mod event;
mod fresh;
pub mod keymap;
mod note;
pub mod notice;
mod plan;
pub mod session;
pub mod settings;
mod undo;
pub mod view;

pub use arrangement::Arrangement;
pub use command::Command;
pub use effect::{BatchNumber, Effect};
pub use event::Event;
pub use fresh::{Reactivity, Stale};
pub use note::{DocPhase, FileSide, KernelPhase, Note, Phase, Shift};
pub use session::{
    AGREED, Agents, Agreed, Attached, Balance, Belongings, BlobState, CallPhase, Conversation, Documents, EMBEDDED,
    END_OF_INPUT, FileMove, Grant, Hub, HubState, Input, Kept, KernelSpec, LAN, LINKS, Live, MERGES, MOVED, MOVING,
    Merge, Merged, Moved, Moving, OUTBOX, OUTLAYS, Outbox, Outlay, PHASES, Pending, Purse, Question, RELINK, RENAMED,
    RULES, RUNS, Reach, Reached, Reject, Renamed, Run, RunLine, RunPhase, SCHEDULES, SEEN, SESSIONS, SYNC, SYNC_LOG,
    Saving, Scanning, Seen, Sent, Session, SessionLine, Setup, Shares, Somebody, Spending, Spot, Spread, Standing,
    Sync, TRASH, TRASH_FOLDER, Trashed, Verdict, Volume, Wanted, hub_address, links_key, parts, phases_of, read_heads,
    read_volume_address, run_address, session_address, volume_address,
};
pub use settings::{Settings, Theme};
pub use text::time::Time;
