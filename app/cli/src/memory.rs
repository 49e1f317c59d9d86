//! Memory on the command line: earlier work and lessons from it.

mod budget;
mod curve;
mod experiences;
mod memory_files;
mod task_context;
mod trace_feedback;
mod trace_library;
pub(super) mod trace_question;
mod trace_verification;
mod trace_versions;
mod traces;

pub(super) use budget::cmd_budget;
pub(super) use experiences::{all_experiences, cmd_memory, note_text_at};
pub(super) use memory_files::{DELETION_TIMEOUT, write_note};
pub(super) use traces::cmd_traces;

use memory_files::{RememberedProject, find_file, load_projects, move_to_trash, open_memory};
