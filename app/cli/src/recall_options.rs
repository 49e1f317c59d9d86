//! Parses the options of `ask`, of tasks and of schedules that say how memory is used, and until when work is done.

use super::CliError;
use crate::arguments::AskArguments;
use agent::deadline::Deadline;
use agent::memory::{RecallOptions, ReplayMode};

/// Parses the option `--mode`: how replay is used to reach a goal.
pub(super) fn parse_mode(word: Option<&str>) -> Result<ReplayMode, CliError> {
    let word = word.unwrap_or("auto");
    ReplayMode::from_name(word)
        .ok_or_else(|| CliError::usage(format!("--mode is auto, learner or follower, not “{word}”")))
}

/// Parses the memory options of `ask`.
pub(super) fn parse_recall_options(args: &AskArguments) -> Result<RecallOptions, CliError> {
    let deadline = args.deadline.as_deref().map(parse_deadline).transpose()?;
    Ok(RecallOptions { mode: parse_mode(args.mode.as_deref())?, without: args.without.clone(), deadline })
}

/// Parses the option `--deadline`: a time from now, or a date in ISO form, which is local time unless it has an offset.
/// Returns milliseconds since 1970.
fn parse_deadline(word: &str) -> Result<i64, CliError> {
    let at = host::clock::parse_deadline(word).map_err(CliError::usage)?;
    match at > host::clock::unix_millis_now() {
        true => Ok(at),
        false => Err(CliError::usage(format!("--deadline has passed: {word}"))),
    }
}

/// Parses the option `--deadline` of a task. A duration counts from when the task begins.
pub(super) fn parse_task_deadline(word: &str) -> Result<Deadline, CliError> {
    match Deadline::parse(word) {
        Ok(after @ Deadline::After(_)) => Ok(after),
        Ok(Deadline::At(_)) | Err(_) => parse_deadline(word).map(Deadline::At),
    }
}
