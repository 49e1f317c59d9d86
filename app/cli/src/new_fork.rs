//! Makes a fork for `ask --fork`, and opens it as a volume.

use super::{CliError, CommandContext, EXIT_FAILED, parse};
use crate::arguments::AskArguments;
use crate::plurals::counted;
use engine::UnixMillis;
use forks::{DEFAULT_FORK_LIMIT_BYTES, ForkError, ForkRecord, ForkWish, OpenForks};
use serde_json::json;
use store::DocId;
use text::untrusted_text::escape_line;

/// Number of bytes in a megabyte.
const MEGABYTE: u64 = 1_000_000;
/// Maximum number of names that a line of left out files has.
const MAX_NAMES_IN_LINE: usize = 5;

impl From<ForkError> for CliError {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Refused(_) | ForkError::TooLarge { .. } | ForkError::Repository(_) => CliError::usage(error),
            ForkError::Git(error) => error.into(),
            ForkError::Conflicts(_) | ForkError::Interrupted(_) | ForkError::ChangedSinceSeen => {
                CliError { code: EXIT_FAILED, why: error.to_string() }
            }
            ForkError::Command(reject) => reject.into(),
            ForkError::Gone(_)
            | ForkError::Unsaved(_)
            | ForkError::Unreadable(_)
            | ForkError::Variables(_)
            | ForkError::Disk(_) => CliError::workspace(error),
        }
    }
}

/// A fork in which a run begins: its volume, and the same note in it.
pub(super) struct ForkedProject {
    pub(super) volume: DocId,
    pub(super) note: Option<DocId>,
}

pub(super) fn open_forks(scene: &CommandContext<'_>) -> OpenForks {
    OpenForks::new(scene.handle.clone())
}

pub(super) fn unix_now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}

/// Returns lines that say what a fork doesn't have.
pub(super) fn left_out_lines(fork: &ForkRecord) -> Vec<String> {
    let left = &fork.left_out;
    let ignored = if fork.git.is_some() { "ignored by Git" } else { "dependencies and caches" };
    let kinds = [
        (&left.ignored, ignored),
        (&left.secret, "files with secrets"),
        (&left.nested, "repositories in the project"),
        (&left.links, "links out of the project"),
        (&left.variables, "variables of notes"),
    ];
    let line = |(names, kind): &(&Vec<String>, &str)| {
        let more = names.len().saturating_sub(MAX_NAMES_IN_LINE);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let first = names.iter().take(MAX_NAMES_IN_LINE).cloned().collect::<Vec<_>>().join(", ");
        format!("left out, {kind}: {first}{rest}")
    };
    kinds.iter().filter(|(names, _)| !names.is_empty()).map(line).collect()
}

/// Rejects a size for a fork where none is made.
pub(super) fn ensure_no_fork_limit(args: &AskArguments) -> Result<(), CliError> {
    match args.fork_limit.is_some() && args.fork.is_none() {
        true => Err(CliError::usage("--fork-limit needs --fork")),
        false => Ok(()),
    }
}

/// Makes the fork that `ask --fork` names, or finds it if its session continues, and opens it.
pub(super) fn prepare_fork(
    scene: &mut CommandContext<'_>,
    (volume, note): (DocId, Option<DocId>),
    args: &AskArguments,
    prompt: &str,
) -> Result<ForkedProject, CliError> {
    let megabytes = parse::number_option("fork-limit", args.fork_limit.as_deref())?;
    let forks = open_forks(scene);
    let prepared = forks.prepare(&ForkWish {
        name: args.fork.as_deref().filter(|name| !name.is_empty()),
        prompt,
        volume,
        note,
        may_exist: args.session.is_some(),
        limit_bytes: megabytes.map_or(DEFAULT_FORK_LIMIT_BYTES, |count| count.saturating_mul(MEGABYTE)),
        now: unix_now(),
    })?;
    if prepared.is_new {
        report_new_fork(scene, &forks, &prepared.fork)?;
    }
    Ok(ForkedProject { volume: prepared.volume, note: prepared.note })
}

fn report_new_fork(scene: &mut CommandContext<'_>, forks: &OpenForks, fork: &ForkRecord) -> Result<(), CliError> {
    let folder = forks.store().files_folder(fork);
    if scene.json {
        let branch = fork.git.as_ref().map(|git| &git.branch);
        let line = json!({"type": "fork", "name": fork.name, "volume": fork.volume_name, "folder": folder,
            "branch": branch, "files": fork.files, "bytes": fork.bytes, "variables": fork.states.len(),
            "left_out": fork.left_out});
        writeln!(scene.out, "{line}")?;
    } else {
        let branch = fork.git.as_ref().map_or_else(String::new, |git| format!(", branch {}", git.branch));
        let megabytes = fork.bytes as f64 / MEGABYTE as f64;
        writeln!(
            scene.out,
            "Fork {} of {}: {}, {megabytes:.1} MB{branch}, in {}",
            fork.name,
            escape_line(&fork.volume_name),
            counted(fork.files, "file"),
            escape_line(&folder.display().to_string())
        )?;
        match fork.states.len() {
            0 => {}
            1 => writeln!(scene.out, "  with the variables of one note")?,
            count => writeln!(scene.out, "  with the variables of {count} notes")?,
        }
        for line in left_out_lines(fork) {
            writeln!(scene.out, "  {}", escape_line(&line))?;
        }
    }
    scene.out.flush()?;
    Ok(())
}
