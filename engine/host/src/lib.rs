//! Performs the engine's decisions with threads, processes, files and the local socket.
//!
//! This crate decides nothing: it turns [`engine::Effect`]s into work and results into [`engine::Event`]s. It changes
//! documents only through [`engine::Session::apply`], and holds no lock while it waits.

pub mod agents;
mod allocator;
mod arrivals;
pub mod clock;
pub mod desktop;
mod driver;
mod error;
pub mod fs;
mod handle;
pub mod history;
mod kernel;
pub mod loader;
mod lock;
pub mod logging;
mod mailbox;
pub mod maintenance;
mod process_group;
pub mod renderer;
pub mod sandbox;
mod sandbox_limits;
pub mod search;
pub mod socket;
pub mod source_control;
pub mod spelling;
pub mod sync;
pub mod tools;
mod volume_mirror;
mod webhooks;
mod workers;
mod workspace;
mod writer;

pub use crate::kernel::environment::choose_interpreter;
pub use crate::kernel::kernel_requests::{CompletionChoice, InquiryAnswer, KernelInquiry, KernelVariable};
pub use crate::kernel::kernel_states;
pub use crate::kernel::kernelspec::find_jupyter_kernels;
pub use crate::kernel::note_environment;
pub use crate::kernel::note_packages;
pub use crate::kernel::python_setup;
pub use crate::kernel::science::{BUILT_WITHOUT_SCIENCE, states_folder};
pub use crate::kernel::science_pack;
pub use crate::maintenance::capabilities::{MachineCapability, detect_capabilities, has_display};
pub use crate::search::unlinked_mentions::UnlinkedMention;
#[cfg(feature = "hub")]
pub use ::hub;
pub use ::mcp;
pub use ::peers;
pub use ::sandbox::{check_interpreter, open_file_limit as rlimits};
pub use clock::unix_millis_now;
pub use driver::Driver;
pub use error::OpenError;
pub use handle::{BlobReadError, Handle, OwnerGone, SaveError, WaitError};
pub use lock::{WorkspaceLock, owner_socket};
pub use workspace::{WorkspaceOptions, default_folder, open_workspace, open_workspace_read_only, workspace_exists};
