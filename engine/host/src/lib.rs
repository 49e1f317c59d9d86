//! Performs what the engine decided: threads, processes, files, the local socket.
//!
//! This crate decides nothing: it turns [`engine::Effect`]s into work and results into [`engine::Event`]s. It changes
//! documents only through [`engine::Session::apply`], and holds no lock while it waits.

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

pub use crate::kernel::inquiry::{CompletionChoice, InquiryAnswer, KernelInquiry, KernelVariable};
pub use crate::maintenance::machine::{MachineCapability, has_display, offers};
pub use crate::search::mentions::UnlinkedMention;
#[cfg(feature = "hub")]
pub use ::hub;
pub use ::mcp;
pub use ::peers;
pub use driver::Driver;
pub use handle::{Handle, OwnerGone, WaitError};
pub use workspace::{
    OpenError, WorkspaceLock, WorkspaceOptions, clock, default_folder, open, open_to_read, owner_socket,
    workspace_exists,
};
