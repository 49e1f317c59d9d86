//! `cmd_mv`, `cmd_rm`, `cmd_trash`, `restore-note`, `cmd_undo`, `cmd_follow`: move, delete and restore files, and
//! update links.

use super::retried_commands::{MOVE_TIMEOUT, begin_move};
use super::{CliError, CommandContext, EXIT_DONE, resolve};
use crate::arguments::{MvArguments, RestoreNoteArguments, RmArguments, TrashArguments};
use crate::plurals::counted;
use engine::{Command, Session};
use store::{BlobHash, DocId};
use text::untrusted_text;

/// Waits until every note's links are known.
pub(super) fn wait_for_links(scene: &CommandContext<'_>) -> Result<(), CliError> {
    resolve::wait_for_volumes(scene, true)?;
    let look = |session: &Session| session.is_indexed().then_some(());
    match scene.handle.wait(Some(MOVE_TIMEOUT), look)? {
        Some(()) => Ok(()),
        None => Err(CliError::workspace("the notes could not be read in ten minutes")),
    }
}

/// Runs a command that moves files, and waits until everything is done and saved.
fn perform_move(scene: &mut CommandContext<'_>, command: &Command) -> Result<(), CliError> {
    let before = begin_move(scene.handle, command)?;
    let look = move |session: &Session| {
        session.pending_move().is_none().then(|| session.problems().get(before..).unwrap_or_default().join("; "))
    };
    match scene.handle.wait_on_disk(Some(MOVE_TIMEOUT), look)? {
        Some(problems) if problems.is_empty() => Ok(export::open_note::wait_until_saved(scene.handle)?),
        Some(problems) => Err(CliError::workspace(problems)),
        None => Err(CliError::workspace("the move didn't finish within ten minutes; it continues at the next start")),
    }
}

pub(super) fn cmd_mv(scene: &mut CommandContext<'_>, args: &MvArguments) -> Result<u8, CliError> {
    let word = args.note.as_str().to_owned();
    wait_for_links(scene)?;
    let (named, moves): (_, Vec<(DocId, String)>) = match resolve::resolve_note(scene, &word) {
        Ok(note) => {
            let own = scene.handle.read(move |session| session.locate_file(note).map(|(volume, _)| volume))?;
            let (named, to) = resolve::read_new_path(scene, &args.path, None, own)?;
            let moved = scene.handle.read(move |session| resolve_new_path(session, note, &to))?;
            (named, moved.into_iter().collect())
        }
        Err(refusal) => {
            let folder = scene.handle.read(move |session| resolve::find_folder(session, &word))?;
            let Some((own, from)) = folder else { return Err(refusal) };
            let (named, to) = resolve::read_new_path(scene, &args.path, None, Some(own))?;
            (named, scene.handle.read(move |session| plan_folder_move(session, own, &from, &to))?)
        }
    };
    let ids: Vec<DocId> = moves.iter().map(|(file, _)| *file).collect();
    if let Some(named) = named {
        let own = ids.clone();
        let other = scene.handle.read(move |session| {
            let volume = |id: &DocId| session.volume(session.locate_file(*id)?.0).map(|volume| volume.name.clone());
            own.iter().filter_map(volume).find(|own| *own != named)
        })?;
        if let Some(own) = other {
            let why = format!("a file is moved inside of its volume, which is {own}; `tracebook cp` copies a note");
            return Err(CliError::usage(format!("{why} into another")));
        }
    }
    let was = note_paths(scene, ids.clone())?;
    perform_move(scene, &Command::MoveFiles { moves })?;
    let now = note_paths(scene, ids)?;
    for (was, now) in was.into_iter().zip(now) {
        if scene.json {
            writeln!(scene.out, "{}", serde_json::json!({"from": was, "to": now}))?;
        } else {
            writeln!(scene.out, "{} -> {}", untrusted_text::escape_line(&was), untrusted_text::escape_line(&now))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Returns a note's new path. A folder (existing, or marked by a trailing `/`) keeps the note's name.
fn resolve_new_path(session: &Session, note: DocId, to: &str) -> Option<(DocId, String)> {
    let (volume, path) = session.locate_file(note)?;
    let folder = to.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let below = format!("{folder}/");
    let known = session.volume(volume)?.files.range(below.clone()..).next();
    let is_folder = to.ends_with('/') || folder == "." || known.is_some_and(|(path, _)| path.starts_with(&below));
    let to = match is_folder {
        true if folder == "." || folder.is_empty() => name.to_owned(),
        true => format!("{folder}/{name}"),
        false => to.to_owned(),
    };
    Some((note, to))
}

/// Returns all files of a folder with their new paths.
fn plan_folder_move(session: &Session, volume: DocId, from: &str, to: &str) -> Vec<(DocId, String)> {
    let (from, to) = (format!("{from}/"), to.trim_end_matches('/'));
    let files = session.volume(volume).into_iter().flat_map(|volume| &volume.files);
    let moved = files.filter_map(|(path, row)| Some((row.id, format!("{to}/{}", path.strip_prefix(&from)?))));
    moved.collect()
}

fn note_paths(scene: &CommandContext<'_>, ids: Vec<DocId>) -> Result<Vec<String>, CliError> {
    let path = |session: &Session, id| session.locate_file(id).map_or_else(String::new, |(_, path)| path.to_owned());
    Ok(scene.handle.read(move |session| ids.into_iter().map(|id| path(session, id)).collect())?)
}

/// Moves a file to the trash, and waits until it's there.
pub(super) fn delete_file(scene: &mut CommandContext<'_>, file: DocId) -> Result<(), CliError> {
    perform_move(scene, &Command::DeleteFiles { files: vec![file] })
}

pub(super) fn cmd_rm(scene: &mut CommandContext<'_>, args: &RmArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    resolve::wait_for_volumes(scene, true)?;
    let path = note_paths(scene, vec![note])?.remove(0);
    match &args.if_version {
        None => delete_file(scene, note)?,
        Some(version) => {
            let unknown = |_| CliError::usage("the note has changed since it was read; read it again");
            let expected = version.parse::<BlobHash>().map_err(unknown)?;
            let _held = export::open_note::hold_note(scene.handle, note)?;
            perform_move(scene, &Command::DeleteIfUnchanged { note, expected })?;
        }
    }
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": note}))?;
    } else {
        let path = untrusted_text::escape_line(&path);
        writeln!(scene.out, "{path} is in the trash; `tracebook restore-note` brings it back")?;
    }
    Ok(EXIT_DONE)
}

/// Undoes the last move or deletion.
pub(super) fn cmd_undo(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    wait_for_links(scene)?;
    perform_move(scene, &Command::UndoMove)?;
    scene.print_result(&serde_json::json!({"undone": true}), "undone")?;
    Ok(EXIT_DONE)
}

/// Updates links to files that other programs renamed.
pub(super) fn cmd_follow(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    wait_for_links(scene)?;
    let notes = scene.handle.read(Session::count_outdated_link_notes)?;
    perform_move(scene, &Command::FollowRenamed)?;
    let line = format!("links follow in {}", counted(notes, "note"));
    scene.print_result(&serde_json::json!({"notes": notes}), line)?;
    Ok(EXIT_DONE)
}

/// Returns the files in the trash: id, volume, path and time of deletion, newest first.
fn list_trash(scene: &CommandContext<'_>) -> Result<Vec<(DocId, String, String, i64)>, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let read = |session: &Session| {
        let name = |volume| session.volume(volume).map_or_else(String::new, |volume| volume.name.clone());
        let row = |(id, trashed): (DocId, &engine::TrashedFile)| {
            (id, name(trashed.row.volume), trashed.row.path.clone(), trashed.at)
        };
        let mut rows: Vec<_> = session.trash().map(row).collect();
        rows.sort_by_key(|(_, _, path, at)| (-at, path.clone()));
        rows
    };
    Ok(scene.handle.read(read)?)
}

/// Resolves a word to a file in the trash; of several with the same name, the last deleted one.
fn find_in_trash(all: &[(DocId, String, String, i64)], word: &str) -> Result<DocId, CliError> {
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md").to_owned();
    let fits = |(id, volume, path, _): &&(DocId, String, String, i64)| {
        id.to_string() == word || path == word || format!("{volume}:{path}") == word || short(path) == short(word)
    };
    let found = all.iter().find(fits).map(|(file, ..)| *file);
    found.ok_or_else(|| CliError::usage(format!("there is no “{word}” in the trash; `tracebook trash` lists what is")))
}

/// Permanently deletes files from the trash, and waits until they are gone.
fn delete_from_trash(scene: &mut CommandContext<'_>, files: Vec<DocId>) -> Result<(), CliError> {
    let before = scene.handle.read(|session| session.problems().len())?;
    let count = files.len();
    scene.handle.run_command(Command::Discard { files })?;
    let look = move |session: &Session| {
        (!session.is_deleting_trash()).then(|| session.problems().get(before..).unwrap_or_default().join("; "))
    };
    match scene.handle.wait_on_disk(Some(MOVE_TIMEOUT), look)? {
        Some(problems) if problems.is_empty() => {}
        Some(problems) => return Err(CliError::workspace(problems)),
        None => return Err(CliError::workspace("the files could not be deleted in ten minutes")),
    }
    export::open_note::wait_until_saved(scene.handle)?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"deleted": count}))?;
    } else {
        writeln!(scene.out, "permanently deleted: {count}")?;
    }
    Ok(())
}

pub(super) fn cmd_trash(scene: &mut CommandContext<'_>, args: &TrashArguments) -> Result<u8, CliError> {
    if let Some(word) = args.delete.as_ref() {
        let file = find_in_trash(&list_trash(scene)?, word)?;
        delete_from_trash(scene, vec![file])?;
        return Ok(EXIT_DONE);
    }
    if args.empty {
        let files = list_trash(scene)?.into_iter().map(|(file, ..)| file).collect();
        delete_from_trash(scene, files)?;
        return Ok(EXIT_DONE);
    }
    let files = list_trash(scene)?;
    scene.explain_empty_list(files.is_empty(), "The trash is empty.")?;
    for (id, volume, path, at) in files {
        let when = jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default();
        if scene.json {
            let row = serde_json::json!({"id": id, "volume": volume, "path": path, "deleted": when});
            writeln!(scene.out, "{row}")?;
        } else {
            writeln!(
                scene.out,
                "{}  {}:{}",
                super::agents::format_time(at),
                untrusted_text::escape_line(&volume),
                untrusted_text::escape_line(&path)
            )?;
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_restore_note(scene: &mut CommandContext<'_>, args: &RestoreNoteArguments) -> Result<u8, CliError> {
    let word = args.note.as_str();
    let file = find_in_trash(&list_trash(scene)?, word)?;
    let path = args.path.clone();
    resolve::wait_for_volumes(scene, true)?;
    perform_move(scene, &Command::RestoreFile { file, path })?;
    let path = note_paths(scene, vec![file])?.remove(0);
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": file}))?;
    } else {
        writeln!(scene.out, "{}", untrusted_text::escape_line(&path))?;
    }
    Ok(EXIT_DONE)
}
