//! Saved states of a note's kernel: pages of memory by their hash, and one file for each state.
//!
//! Each note has a folder:
//! - `segments/HASH`: pages that were new in one state. Header, a hash for each page, then the pages, compressed with
//!   zstd, a frame for every 32. The name is the hash of the file.
//! - `states/ID`: one state, its hash and compressed JSON: parent, code, names, and the place of each page.
//! - `heads`: the current state and branch, undone states that can be redone, and pinned states.
//! - `shared`: says that the note's states go to other devices, and what was announced last. `incoming` holds what came
//!   from another device until a kernel has checked it. `withdrawn` names files that hubs have to delete, because they
//!   are no longer shared.
//! - `index`: the records of states, so that a lineage is read at once. A state in the index without a file was
//!   thinned: its variables are recreated from the previous state, by running its cells.
//!
//! All files are written to a temporary file, flushed to the disk and renamed, so that a crash leaves the previous
//! state. Files are read as untrusted input: bounded, and checked by hash.

mod all_folders;
mod comparison;
mod copied_states;
mod errors;
mod files;
mod folder;
mod kernel_memory;
mod mapped_memory;
#[cfg_attr(not(target_os = "linux"), path = "no_memory_slots.rs")]
mod memory_slots;
mod moves;
mod note_states;
mod page_hasher;
mod pages;
mod received_state;
mod records;
mod retention;
mod saved_memory;
mod shared_state;
mod state_graph;
mod visited_branch;
mod withdrawn_files;

pub use all_folders::{all_folders_bytes, thin_least_used};
pub use comparison::{
    ComparedValue, ComparisonError, DifferingVariable, LoneVariable, StateComparison, run_comparison,
};
pub use errors::StateError;
pub use files::{ListedStates, folder_bytes, list_states, read_heads, write_heads};
pub use folder::{ReplayPlan, StateFolder};
pub use kernel_memory::KernelMemory;
pub use memory_slots::MemorySlots;
pub use moves::StateMove;
pub use note_states::{NoteStates, SavedState, list_note_states};
pub use pages::{MAX_GUEST_MEMORY_BYTES, PAGE_BYTES, PagePlace};
pub use received_state::{incoming_file, plan_receiving};
pub use records::{MAIN_BRANCH, StateHeads, StateRecord, is_branch_name};
pub use retention::thin_folder;
pub use saved_memory::{ChangedPages, FreshIsLarger, SavedMemory};
pub use shared_state::{
    MAX_ANNOUNCEMENT_BYTES, SharedState, SharedStateFile, announce_state, begin_sharing, end_sharing, offered_files,
};
pub use state_graph::{MAX_STATE_LANES, StateGraphRow, state_graph};
pub use visited_branch::VisitedState;
pub use withdrawn_files::{WithdrawnFile, remove_withdrawn, withdrawn_files};
