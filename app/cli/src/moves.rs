//! `mv`, `rm`, `trash`, `restore-note`, `undo`, `follow`: files moved, deleted and taken back, and links that follow.

use super::parse::needed;
use super::{CliError, CommandContext, EXIT_DONE, choose};
use clap::ArgMatches;
use engine::{Command, Session};
use std::time::Duration;
use store::DocId;
use text::visible;

/// How long a move and the links that it changes may take.
const MOVE: Duration = Duration::from_secs(600);

/// Waits until every note's links are known.
pub(super) fn indexed(scene: &CommandContext<'_>) -> Result<(), CliError> {
    choose::volumes_known(scene, true)?;
    let look = |session: &Session| session.is_indexed().then_some(());
    match scene.handle.wait(Some(MOVE), look)? {
        Some(()) => Ok(()),
        None => Err(CliError::workspace("the notes could not be read in ten minutes")),
    }
}

/// Performs a command that moves files, and waits until all of it is done and saved.
fn perform(scene: &mut CommandContext<'_>, command: Command) -> Result<(), CliError> {
    let before = scene.handle.read(|session| session.problems().len())?;
    scene.handle.command(command)?;
    let look = move |session: &Session| {
        session.pending_move().is_none().then(|| session.problems().get(before..).unwrap_or_default().join("; "))
    };
    match scene.handle.wait_on_disk(Some(MOVE), look)? {
        Some(problems) if problems.is_empty() => Ok(export::open_note::saved(scene.handle)?),
        Some(problems) => Err(CliError::workspace(problems)),
        None => Err(CliError::workspace("the move takes longer than ten minutes; it goes on at the next start")),
    }
}

pub(super) fn mv(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    let (word, to) = (needed(args, "NOTE")?.to_owned(), needed(args, "PATH")?.to_owned());
    indexed(scene)?;
    let moves = match choose::note(scene, &word) {
        Ok(note) => scene.handle.read(move |session| into_place(session, note, &to).into_iter().collect())?,
        Err(refusal) => {
            let moves = scene.handle.read(move |session| folder(session, &word, &to))?;
            if moves.is_empty() {
                return Err(refusal);
            }
            moves
        }
    };
    let ids: Vec<DocId> = moves.iter().map(|(file, _)| *file).collect();
    let was = paths(scene, ids.clone())?;
    perform(scene, Command::MoveFiles { moves })?;
    let now = paths(scene, ids)?;
    for (was, now) in was.into_iter().zip(now) {
        if scene.json {
            writeln!(scene.out, "{}", serde_json::json!({"from": was, "to": now}))?;
        } else {
            writeln!(scene.out, "{} -> {}", visible::line(&was), visible::line(&now))?;
        }
    }
    Ok(EXIT_DONE)
}

/// A note's new path: a folder, said by a `/` at its end or known to be one, keeps the note's name.
fn into_place(session: &Session, note: DocId, to: &str) -> Option<(DocId, String)> {
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

/// All files of a folder and where they go.
fn folder(session: &Session, from: &str, to: &str) -> Vec<(DocId, String)> {
    let (from, to) = (format!("{}/", from.trim_end_matches('/')), to.trim_end_matches('/'));
    let files = session.volumes().map(|volume| {
        let files = volume.files.iter().filter_map(|(path, row)| Some((row.id, path.strip_prefix(&from)?)));
        files.map(|(id, rest)| (id, format!("{to}/{rest}"))).collect::<Vec<_>>()
    });
    files.into_iter().find(|files| !files.is_empty()).unwrap_or_default()
}

fn paths(scene: &CommandContext<'_>, ids: Vec<DocId>) -> Result<Vec<String>, CliError> {
    let path = |session: &Session, id| session.locate_file(id).map_or_else(String::new, |(_, path)| path.to_owned());
    Ok(scene.handle.read(move |session| ids.into_iter().map(|id| path(session, id)).collect())?)
}

pub(super) fn rm(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    let note = choose::note(scene, needed(args, "NOTE")?)?;
    choose::volumes_known(scene, true)?;
    let path = paths(scene, vec![note])?.remove(0);
    perform(scene, Command::DeleteFiles { files: vec![note] })?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": note}))?;
    } else {
        let path = visible::line(&path);
        writeln!(scene.out, "{path} is in the trash; `tracebook restore-note` brings it back")?;
    }
    Ok(EXIT_DONE)
}

/// Takes back what was moved or deleted last.
pub(super) fn undo(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    indexed(scene)?;
    perform(scene, Command::UndoMove)?;
    writeln!(scene.out, "taken back")?;
    Ok(EXIT_DONE)
}

/// Lets links follow files that other programs renamed.
pub(super) fn follow(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    indexed(scene)?;
    let notes = scene.handle.read(Session::count_outdated_link_notes)?;
    perform(scene, Command::FollowRenamed)?;
    writeln!(scene.out, "links follow in {notes} {}", if notes == 1 { "note" } else { "notes" })?;
    Ok(EXIT_DONE)
}

/// What lies in the trash: id, volume, path and time of deletion, the newest first.
fn trashed(scene: &CommandContext<'_>) -> Result<Vec<(DocId, String, String, i64)>, CliError> {
    choose::volumes_known(scene, false)?;
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

/// Which file of the trash a word means; of several of one name, the one that was deleted last.
fn in_trash(all: &[(DocId, String, String, i64)], word: &str) -> Result<DocId, CliError> {
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md").to_owned();
    let fits = |(id, volume, path, _): &&(DocId, String, String, i64)| {
        id.to_string() == word || path == word || format!("{volume}:{path}") == word || short(path) == short(word)
    };
    let found = all.iter().find(fits).map(|(file, ..)| *file);
    found.ok_or_else(|| CliError::usage(format!("there is no “{word}” in the trash; `tracebook trash` lists what is")))
}

/// Deletes files of the trash for good, and waits until they are gone.
fn discard(scene: &mut CommandContext<'_>, files: Vec<DocId>) -> Result<(), CliError> {
    let before = scene.handle.read(|session| session.problems().len())?;
    let count = files.len();
    scene.handle.command(Command::Discard { files })?;
    let look = move |session: &Session| {
        (!session.is_deleting_trash()).then(|| session.problems().get(before..).unwrap_or_default().join("; "))
    };
    match scene.handle.wait_on_disk(Some(MOVE), look)? {
        Some(problems) if problems.is_empty() => {}
        Some(problems) => return Err(CliError::workspace(problems)),
        None => return Err(CliError::workspace("the files could not be deleted in ten minutes")),
    }
    export::open_note::saved(scene.handle)?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"deleted": count}))?;
    } else {
        writeln!(scene.out, "deleted for good: {count}")?;
    }
    Ok(())
}

pub(super) fn trash(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    if let Some(word) = args.get_one::<String>("delete") {
        let file = in_trash(&trashed(scene)?, word)?;
        discard(scene, vec![file])?;
        return Ok(EXIT_DONE);
    }
    if args.get_flag("empty") {
        let files = trashed(scene)?.into_iter().map(|(file, ..)| file).collect();
        discard(scene, files)?;
        return Ok(EXIT_DONE);
    }
    for (id, volume, path, at) in trashed(scene)? {
        let when = jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default();
        if scene.json {
            let row = serde_json::json!({"id": id, "volume": volume, "path": path, "deleted": when});
            writeln!(scene.out, "{row}")?;
        } else {
            writeln!(scene.out, "{when}  {}:{}", visible::line(&volume), visible::line(&path))?;
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn restore(scene: &mut CommandContext<'_>, args: &ArgMatches) -> Result<u8, CliError> {
    let word = needed(args, "NOTE")?;
    let file = in_trash(&trashed(scene)?, word)?;
    let path = args.get_one::<String>("PATH").cloned();
    choose::volumes_known(scene, true)?;
    perform(scene, Command::RestoreFile { file, path })?;
    let path = paths(scene, vec![file])?.remove(0);
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "id": file}))?;
    } else {
        writeln!(scene.out, "{}", visible::line(&path))?;
    }
    Ok(EXIT_DONE)
}
