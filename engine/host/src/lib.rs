//! Performs what the engine decided: threads, processes, files, the local socket.
//!
//! This crate decides nothing: it turns [`engine::Effect`]s into work and what comes back into [`engine::Event`]s. It
//! never edits a document except through [`engine::Session::apply`], and holds no lock while it waits for anything.

pub mod agents;
pub mod clock;
mod driver;
pub mod fs;
mod handle;
pub mod history;
mod kernel;
pub mod limits;
pub mod load;
pub mod maintenance;
pub mod measure;
mod memory;
pub mod renderer;
pub mod sandbox;
pub mod search;
pub mod socket;
pub mod spelling;
pub mod sync;
pub mod terminal;
pub mod tools;
mod worker;
mod workspace;
mod writer;

pub use crate::kernel::inquiry::{Answer, Choice, Inquiry, Variable};
pub use crate::maintenance::machine::{Offer, has_display, offers};
pub use crate::search::mentions::Mention;
pub use ::hub;
pub use ::mcp;
pub use ::peers;
pub use driver::Driver;
pub use handle::{Gone, Handle, Unsaved};
pub use workspace::{
    OpenError, Options, Owned, clock, default_folder, open, open_to_read, owner_socket, workspace_exists,
};
