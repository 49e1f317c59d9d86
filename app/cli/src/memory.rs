//! Memory on the command line: earlier work and lessons from it.

mod budget;
mod experiences;
mod memory_files;
mod trace_feedback;
mod trace_library;
mod trace_verification;
mod trace_versions;
mod traces;

pub(super) use budget::cmd_budget;
pub(super) use experiences::{cmd_memory, note_text_at};
pub(super) use memory_files::{DELETION_TIMEOUT, write_note};
pub(super) use traces::cmd_traces;

use super::CliError;
use crate::arguments::AskArguments;
use agent::memory::{RecallOptions, ReplayMode};
use memory_files::{RememberedProject, find_file, load_projects, move_to_trash, open_memory};

/// Parses the option `--mode`: how replay is used to reach a goal.
pub(super) fn parse_mode(word: Option<&str>) -> Result<ReplayMode, CliError> {
    let word = word.unwrap_or("auto");
    ReplayMode::from_name(word)
        .ok_or_else(|| CliError::usage(format!("--mode is auto, learner or follower, not “{word}”")))
}

/// Parses the memory options of `ask`.
pub(super) fn parse_recall_options(args: &AskArguments) -> Result<RecallOptions, CliError> {
    Ok(RecallOptions { mode: parse_mode(args.mode.as_deref())?, without: args.without.clone() })
}
