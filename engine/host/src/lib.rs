//! Performs what the engine decided: threads, processes, files, the local socket.
//!
//! This crate decides nothing: it turns [`engine::Effect`]s into work and what comes back into [`engine::Event`]s. It
//! never edits a document except through [`engine::Session::apply`], and holds no lock while it waits for anything.

mod agents;
pub mod backup;
pub mod check;
pub mod configuration;
pub mod confined;
pub mod copy;
mod create;
pub mod devices;
mod driver;
pub mod experience;
mod files;
mod handle;
pub mod history;
mod inquiry;
mod kernel;
mod kernelspec;
pub mod limits;
pub mod llm;
pub mod load;
mod machine;
pub mod measure;
mod memory;
mod mentions;
mod merges;
mod passages;
mod presence;
mod pure_cache;
mod relocate;
pub mod renderer;
pub mod replace;
mod replies;
pub mod sandbox;
mod scan;
pub mod search;
pub mod secrets;
pub mod socket;
pub mod spelling;
mod sync;
pub mod terminal;
pub mod tools;
mod watch;
mod worker;
mod workspace;
mod writer;

pub use ::hub;
pub use ::mcp;
pub use ::peers;
pub use driver::Driver;
pub use handle::{Gone, Handle, Unsaved};
pub use inquiry::{Answer, Choice, Inquiry, Variable};
pub use machine::{Offer, has_display, offers};
pub use mentions::Mention;
pub use workspace::{
    OpenError, Options, Owned, clock, default_folder, open, open_to_read, owner_socket, workspace_exists,
};
