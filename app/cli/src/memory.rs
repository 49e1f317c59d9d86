//! Memory on the command line: earlier work and lessons from it.

mod budget;
mod experiences;
mod trace_library;
mod trace_verification;
mod traces;

pub(super) use budget::cmd_budget;
pub(super) use experiences::{cmd_memory, note_text_at};
pub(super) use traces::cmd_traces;

use super::{CliError, CommandContext, resolve};
use crate::arguments::AskArguments;
use agent::memory::{ProjectMemory, RecallOptions, ReplayMode};
use engine::{Command, Session};
use host::agents::project_memory;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;

/// Maximum time for a deletion.
pub(super) const DELETION_TIMEOUT: Duration = Duration::from_secs(60);

/// A project with its memory.
struct RememberedProject {
    id: DocId,
    /// The volume that contains its memory.
    home: DocId,
    name: String,
    memory: ProjectMemory,
}

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

/// Loads the projects with their memory, or only the named one.
fn load_projects(scene: &CommandContext<'_>, named: Option<&str>) -> Result<Vec<RememberedProject>, CliError> {
    resolve::wait_for_volumes(scene, true)?;
    let all: Vec<(DocId, String, (DocId, PathBuf))> = scene.handle.read(|session| {
        let one = |volume: &engine::Volume| Some((volume.id, volume.name.clone(), session.memory_home(volume.id)?));
        session.volumes().filter_map(one).collect()
    })?;
    if let Some(name) = named.filter(|name| all.iter().all(|(_, known, _)| known != name)) {
        let names: Vec<&str> = all.iter().map(|(_, name, _)| name.as_str()).collect();
        return Err(CliError::usage(format!("there is no project {name}; there are {}", names.join(", "))));
    }
    let wanted = all.into_iter().filter(|(_, name, _)| named.is_none_or(|named| named == name));
    let read = |(id, name, (home, root)): (DocId, String, (DocId, PathBuf))| {
        let memory = project_memory::read_project_memory(&root, &project_memory::memory_folders(&root));
        RememberedProject { id, home, name, memory }
    };
    Ok(wanted.map(read).collect())
}

/// Ensures that a project's memory has a place, and returns its volume.
fn open_memory(scene: &CommandContext<'_>, volume: DocId) -> Result<DocId, CliError> {
    scene.handle.run_command(Command::OpenMemory { volume })?;
    resolve::wait_for_volumes(scene, true)?;
    let home = scene.handle.read(move |session| session.memory_home(volume))?;
    home.map(|(home, _)| home).ok_or_else(|| CliError::workspace("the volume was closed meanwhile"))
}

/// Returns the id of the file at this path in a volume.
fn find_file(scene: &CommandContext<'_>, volume: DocId, path: &str) -> Result<Option<DocId>, CliError> {
    let path = path.to_owned();
    Ok(scene.handle.read(move |session| Some(session.volume(volume)?.files.get(&path)?.id))?)
}

/// Moves files to the trash, and waits until they are there.
fn move_to_trash(scene: &CommandContext<'_>, files: Vec<DocId>) -> Result<(), CliError> {
    let before = scene.handle.read(|session| session.problems().len())?;
    scene.handle.run_command(Command::DeleteFiles { files })?;
    let look = move |session: &Session| {
        session.pending_move().is_none().then(|| session.problems().get(before..).unwrap_or_default().join("; "))
    };
    match scene.handle.wait(Some(DELETION_TIMEOUT), look)? {
        Some(problems) if problems.is_empty() => Ok(export::open_note::wait_until_saved(scene.handle)?),
        Some(problems) => Err(CliError::workspace(problems)),
        None => Err(CliError::workspace("this didn't finish within a minute; it continues at the next start")),
    }
}

/// Writes a note's text: creates the note, or applies minimal edits.
pub(super) fn write_note(scene: &CommandContext<'_>, volume: DocId, path: &str, text: &str) -> Result<(), CliError> {
    match find_file(scene, volume, path)? {
        None => {
            let (path, text) = (path.to_owned(), text.to_owned());
            scene.handle.run_command(Command::NewNote { volume, path: path.clone(), text })?;
            if let Some(note) = find_file(scene, volume, &path)? {
                scene.handle.run_command(Command::CloseNote { note })?;
            }
        }
        Some(note) => {
            let held = export::open_note::hold_note(scene.handle, note)?;
            let old = scene.handle.read(move |session| session.note(note).map(engine::Note::text))?.unwrap_or_default();
            let edits = text::text_edit::compute_edits(&old, text);
            if !edits.is_empty() {
                scene.handle.run_command(Command::EditAll { note, edits })?;
            }
            drop(held);
        }
    }
    Ok(export::open_note::wait_until_saved(scene.handle)?)
}
