//! Reads and writes the notes of memory.

use super::super::retried_commands::{begin_move, edit_as_planned};
use super::super::{CliError, CommandContext, resolve};
use agent::memory::trace::RunTrace;
use agent::memory::{ProjectMemory, StoredTrace};
use engine::{Command, Session};
use host::agents::project_memory;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;

/// Returns the current time in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Maximum time for a deletion.
pub(crate) const DELETION_TIMEOUT: Duration = Duration::from_secs(60);

/// A project with its memory.
pub(super) struct RememberedProject {
    pub(super) id: DocId,
    /// The volume that contains its memory.
    pub(super) home: DocId,
    pub(super) name: String,
    pub(super) memory: ProjectMemory,
}

/// Loads the projects with their memory, or only the named one.
pub(super) fn load_projects(
    scene: &CommandContext<'_>,
    named: Option<&str>,
) -> Result<Vec<RememberedProject>, CliError> {
    resolve::wait_for_volumes(scene, true)?;
    let all: Vec<(DocId, String, (DocId, PathBuf))> = scene.handle.read(|session| {
        let one = |volume: &engine::Volume| Some((volume.id, volume.name.clone(), session.memory_home(volume.id)?));
        session.volumes().filter_map(one).collect()
    })?;
    let only = match named.map(ToOwned::to_owned) {
        Some(name) => Some(scene.handle.read(move |session| resolve::find_project(session, &name))??),
        None => None,
    };
    let wanted = all.into_iter().filter(|(id, ..)| only.is_none_or(|only| only == *id));
    let read = |(id, name, (home, root)): (DocId, String, (DocId, PathBuf))| {
        let memory = project_memory::read_project_memory(&root, &project_memory::memory_folders(&root));
        RememberedProject { id, home, name, memory }
    };
    Ok(wanted.map(read).collect())
}

/// Resolves a word to a trace: its path, its file name, or a prefix of its signature.
pub(super) fn find_trace<'a>(all: &'a [RememberedProject], word: &str) -> Result<(DocId, &'a StoredTrace), CliError> {
    let unknown = || CliError::usage(format!("there is no trace “{word}”; `tracebook traces` lists them"));
    named_trace(all, word)?.ok_or_else(unknown)
}

/// Returns the same; `None` if there's no such trace.
pub(super) fn named_trace<'a>(
    all: &'a [RememberedProject],
    word: &str,
) -> Result<Option<(DocId, &'a StoredTrace)>, CliError> {
    let found: Vec<(DocId, &StoredTrace)> = all
        .iter()
        .flat_map(|project| project.memory.traces.iter().map(|filed| (project.home, filed)))
        .filter(|(_, filed)| {
            let name = filed.path.rsplit('/').next().unwrap_or_default();
            let signed = word.len() >= 4 && filed.trace.known.goal_signature.starts_with(word);
            filed.path == word || name == word || name.trim_end_matches(".md") == word || signed
        })
        .collect();
    match found.as_slice() {
        [one] => Ok(Some(*one)),
        [] => Ok(None),
        _ => Err(CliError::usage(format!("several traces are called “{word}”; give the whole path"))),
    }
}

/// Ensures that a project's memory has a place, and returns its volume.
pub(super) fn open_memory(scene: &CommandContext<'_>, volume: DocId) -> Result<DocId, CliError> {
    scene.handle.run_command(Command::OpenMemory { volume })?;
    resolve::wait_for_volumes(scene, true)?;
    let home = scene.handle.read(move |session| session.memory_home(volume))?;
    home.map(|(home, _)| home).ok_or_else(|| CliError::workspace("the volume was closed meanwhile"))
}

/// Returns the id of the file at this path in a volume.
pub(super) fn find_file(scene: &CommandContext<'_>, volume: DocId, path: &str) -> Result<Option<DocId>, CliError> {
    let path = path.to_owned();
    Ok(scene.handle.read(move |session| Some(session.volume(volume)?.files.get(&path)?.id))?)
}

/// Moves files to the trash, and waits until they are there.
pub(super) fn move_to_trash(scene: &CommandContext<'_>, files: Vec<DocId>) -> Result<(), CliError> {
    let before = begin_move(scene.handle, &Command::DeleteFiles { files })?;
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
pub(crate) fn write_note(scene: &CommandContext<'_>, volume: DocId, path: &str, text: &str) -> Result<(), CliError> {
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
            let text = text.to_owned();
            edit_as_planned(scene.handle, note, move |_, old| Ok(text::text_edit::compute_edits(old, &text)))?;
            drop(held);
        }
    }
    Ok(export::open_note::wait_until_saved(scene.handle)?)
}

/// Writes a trace into its note, which keeps what people wrote in it.
pub(super) fn write_trace(
    scene: &CommandContext<'_>,
    volume: DocId,
    filed: &StoredTrace,
    trace: &RunTrace,
) -> Result<(), CliError> {
    let text = trace.written_into(&filed.text);
    let text = text.ok_or_else(|| CliError::workspace(format!("its note can't be changed: {}", filed.path)))?;
    write_note(scene, volume, &filed.path, &text)
}

/// Returns a clause as a sentence.
pub(super) fn capitalized(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
