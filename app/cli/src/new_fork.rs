//! Makes a fork for `ask --fork`, and opens it as a volume.

use super::{CliError, CommandContext, EXIT_FAILED, parse};
use crate::arguments::AskArguments;
use engine::records::forks::ForkOrigin;
use engine::{Command, ScanState, Session};
use forks::{DEFAULT_FORK_LIMIT_BYTES, ForkError, ForkPhase, ForkRecord, ForkRequest, ForkStore};
use serde_json::json;
use std::time::Duration;
use store::DocId;
use text::untrusted_text::escape_line;

/// Maximum time to scan a new fork.
const FORK_SCAN_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time to wait until a new fork can be searched. Its run begins then anyway.
const FORK_INDEX_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of bytes in a megabyte.
const MEGABYTE: u64 = 1_000_000;
/// Maximum number of names that a line of left out files has.
const MAX_NAMES_IN_LINE: usize = 5;

impl From<ForkError> for CliError {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Refused(_) | ForkError::TooLarge { .. } | ForkError::Repository(_) => CliError::usage(error),
            ForkError::Git(error) => error.into(),
            ForkError::Conflicts(_) | ForkError::Interrupted(_) => {
                CliError { code: EXIT_FAILED, why: error.to_string() }
            }
            ForkError::Disk(_) => CliError::workspace(error),
        }
    }
}

/// A fork in which a run begins: its volume, and the same note in it.
pub(super) struct ForkedProject {
    pub(super) volume: DocId,
    pub(super) note: Option<DocId>,
}

pub(super) fn fork_store(scene: &CommandContext<'_>) -> ForkStore {
    ForkStore::new(scene.handle.workspace_folder())
}

pub(super) fn unix_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
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

/// Makes the fork that `ask --fork` names, or finds it if its session goes on, and opens it.
pub(super) fn prepare_fork(
    scene: &mut CommandContext<'_>,
    (volume, note): (DocId, Option<DocId>),
    args: &AskArguments,
    prompt: &str,
) -> Result<ForkedProject, CliError> {
    let wanted = args.fork.as_deref().filter(|name| !name.is_empty());
    let megabytes = parse::number_option("fork-limit", args.fork_limit.as_deref())?;
    let limit_bytes = megabytes.map_or(DEFAULT_FORK_LIMIT_BYTES, |count| count.saturating_mul(MEGABYTE));
    let store = fork_store(scene);
    let (name, root) = scene
        .handle
        .read(move |session| session.volume(volume).map(|known| (known.name.clone(), known.root.clone())))?
        .ok_or_else(|| CliError::usage("the volume was closed meanwhile"))?;
    let root = root.ok_or_else(|| CliError::usage("the volume has no folder on this device"))?;
    let existing = wanted.filter(|_| args.session.is_some()).and_then(|name| store.read(name).ok());
    let (fork, is_new) = match existing {
        Some(fork) if fork.volume != volume => {
            return Err(CliError::usage(format!("the fork {} is one of {}", fork.name, fork.volume_name)));
        }
        Some(fork) if fork.phase != ForkPhase::Ready || !store.has_files(&fork) => {
            return Err(CliError::usage(format!(
                "the fork {0} isn't complete; `tracebook forks discard {0}` removes what there is of it",
                fork.name
            )));
        }
        Some(fork) => (fork, false),
        None => {
            // The agent sees what the user sees, so what was typed has to be in the files.
            export::open_note::wait_until_saved(scene.handle)?;
            let request = ForkRequest {
                name: wanted,
                prompt,
                volume: (volume, &name),
                project: &root,
                now: unix_now(),
                limit_bytes,
            };
            (store.create(request)?, true)
        }
    };
    let opened = open_fork(scene, &store, &fork)?;
    if is_new {
        report_new_fork(scene, &store, &fork)?;
    }
    let note = scene.handle.read(move |session| {
        let (_, path) = session.locate_file(note?)?;
        Some(session.volume(opened)?.files.get(path)?.id)
    })?;
    Ok(ForkedProject { volume: opened, note })
}

/// Opens a fork as a volume, if it isn't open, and waits until its files are known.
fn open_fork(scene: &CommandContext<'_>, store: &ForkStore, fork: &ForkRecord) -> Result<DocId, CliError> {
    let folder = store.files_folder(fork);
    let root = folder.clone();
    let find = move |session: &Session| {
        let mut volumes = session.fork_volumes();
        volumes.find(|volume| volume.root.as_ref() == Some(&root)).map(|volume| volume.id)
    };
    let id = match scene.handle.read(find.clone())? {
        Some(id) => id,
        None => {
            let origin = ForkOrigin { volume: fork.volume, name: fork.name.clone() };
            scene.handle.run_command(Command::OpenFork { origin, folder })?;
            let opened = scene.handle.read(find)?;
            opened.ok_or_else(|| CliError::workspace("the fork was closed meanwhile"))?
        }
    };
    let scanned = move |session: &Session| {
        let volume = session.volume(id)?;
        (volume.scans > 0 && volume.scanning == ScanState::Idle).then(|| volume.trouble.clone())
    };
    match scene.handle.wait_on_disk(Some(FORK_SCAN_TIMEOUT), scanned)? {
        Some(None) => {}
        Some(Some(trouble)) => return Err(CliError::workspace(trouble)),
        None => return Err(CliError::workspace("the fork could not be looked through in ten minutes")),
    }
    // Without the index, its run searches what is there so far.
    let _ = scene.handle.search().wait_until_indexed(FORK_INDEX_TIMEOUT);
    Ok(id)
}

fn report_new_fork(scene: &mut CommandContext<'_>, store: &ForkStore, fork: &ForkRecord) -> Result<(), CliError> {
    let folder = store.files_folder(fork);
    if scene.json {
        let branch = fork.git.as_ref().map(|git| &git.branch);
        let line = json!({"type": "fork", "name": fork.name, "volume": fork.volume_name, "folder": folder,
            "branch": branch, "files": fork.files, "bytes": fork.bytes, "left_out": fork.left_out});
        writeln!(scene.out, "{line}")?;
    } else {
        let branch = fork.git.as_ref().map_or_else(String::new, |git| format!(", branch {}", git.branch));
        let megabytes = fork.bytes as f64 / MEGABYTE as f64;
        writeln!(
            scene.out,
            "Fork {} of {}: {} files, {megabytes:.1} MB{branch}, in {}",
            fork.name,
            escape_line(&fork.volume_name),
            fork.files,
            escape_line(&folder.display().to_string())
        )?;
        for line in left_out_lines(fork) {
            writeln!(scene.out, "  {}", escape_line(&line))?;
        }
    }
    scene.out.flush()?;
    Ok(())
}
