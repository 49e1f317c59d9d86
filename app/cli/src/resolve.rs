//! Resolves names on the command line to notes and volumes.

use super::{CliError, CommandContext, system_files};
use agent::system_volume::{SYSTEM_READ_ONLY, SYSTEM_VOLUME_NAME};
use engine::{Session, Volume};
use host::fs::confined_dir::ConfinedPath;
use std::time::Duration;
use store::{DocId, FileKind};

/// What a name resolves to.
pub(super) enum ResolvedName {
    Note(DocId),
    Volume(DocId),
}

/// Maximum time to wait until the volumes' files are known.
const SCAN_TIMEOUT: Duration = Duration::from_secs(600);

/// Waits until every volume's files are known and, with `scanned`, until each was scanned once.
pub(super) fn wait_for_volumes(scene: &CommandContext<'_>, scanned: bool) -> Result<(), CliError> {
    let ready = move |volume: &Volume| volume.known && (!scanned || volume.scans > 0 || volume.root.is_none());
    let look = move |session: &Session| {
        (session.is_open()
            && session.volumes().chain(session.memory_volumes()).chain(session.fork_volumes()).all(ready))
        .then_some(())
    };
    match scene.handle.wait(Some(SCAN_TIMEOUT), look)? {
        Some(()) => Ok(()),
        None => Err(CliError::workspace("the volumes' files could not be read in ten minutes")),
    }
}

/// Resolves a name to a note: known files first, new ones after a rescan.
pub(super) fn resolve_note(scene: &CommandContext<'_>, word: &str) -> Result<DocId, CliError> {
    match resolve_note_or_volume(scene, word)? {
        ResolvedName::Note(note) => Ok(note),
        ResolvedName::Volume(_) => Err(CliError::usage(format!("it is a volume, not a note: {word}"))),
    }
}

/// Resolves a name to a note or a volume.
pub(super) fn resolve_note_or_volume(scene: &CommandContext<'_>, word: &str) -> Result<ResolvedName, CliError> {
    wait_for_volumes(scene, false)?;
    let wanted = word.to_owned();
    let folder = scene.folder.to_owned();
    let find = move |session: &Session| find_in_session(session, &wanted, &folder);
    match scene.handle.read(find.clone())? {
        Err(_) => {
            wait_for_volumes(scene, true)?;
            scene.handle.read(find)?
        }
        found => found,
    }
}

/// Returns whether a path in a volume matches a name.
type NameMatch<'a> = &'a dyn Fn(&Volume, &str) -> bool;

fn find_in_session(session: &Session, word: &str, folder: &std::path::Path) -> Result<ResolvedName, CliError> {
    let files = || session.volumes().flat_map(|volume| volume.files.values().map(move |row| (volume, row)));
    let notes = |fits: NameMatch<'_>| -> Vec<(String, DocId)> {
        files()
            .filter(|(volume, row)| matches!(row.kind, FileKind::Note | FileKind::Script) && fits(volume, &row.path))
            .map(|(volume, row)| (format!("{}:{}", volume.name, row.path), row.id))
            .collect()
    };
    let absolute = folder.join(word);
    // From the strictest match to the loosest; the first match wins.
    let bare = word.trim_start_matches('/');
    let meanings: [NameMatch<'_>; 6] = [
        &|_, path| path == word,
        &|volume, path| {
            let rest = bare.strip_prefix(&volume.name).and_then(|rest| rest.strip_prefix([':', '/']));
            rest.is_some_and(|rest| rest == path || path.strip_suffix(".md") == Some(rest))
        },
        &|volume, path| volume.root.as_ref().is_some_and(|root| root.join(path) == absolute),
        &|_, path| path == bare,
        &|_, path| path.strip_suffix(".md") == Some(bare),
        &|_, path| {
            let path = path.strip_suffix(".md").unwrap_or(path).to_lowercase();
            let word = bare.strip_suffix(".md").unwrap_or(bare).to_lowercase();
            path == word || path.ends_with(&format!("/{word}"))
        },
    ];
    for (looseness, meaning) in meanings.into_iter().enumerate() {
        let mut found = notes(meaning);
        found.sort();
        match found.as_slice() {
            [] => {}
            [(_, id)] => return Ok(ResolvedName::Note(*id)),
            many => {
                let names: Vec<&str> = many.iter().take(5).map(|(name, _)| name.as_str()).collect();
                return Err(CliError::usage(format!("“{word}” fits several notes, name one: {}", names.join(", "))));
            }
        }
        if looseness == 0
            && let Some(volume) = session.volumes().find(|volume| volume.name == word)
        {
            return Ok(ResolvedName::Volume(volume.id));
        }
    }
    if let Some((volume, row)) = files().find(|(_, row)| row.path == word) {
        let why = volume.demoted.iter().find(|other| other.path == row.path);
        let why = why.map_or("it is an attachment, not a note", |other| other.why.as_str());
        return Err(CliError::usage(format!("{why}: {word}")));
    }
    if system_files::system_path(word).is_some() {
        return Err(CliError::usage(SYSTEM_READ_ONLY));
    }
    let notes = files().filter(|(_, row)| row.kind.is_text()).map(|(_, row)| row.path.as_str());
    let near = agent::name_suggestions::closest_paths(word, notes);
    let hint = if near.is_empty() { String::new() } else { format!(" The closest are: {}.", near.join(", ")) };
    Err(CliError::usage(format!("there is no note “{word}”; `tracebook ls` lists them.{hint}")))
}

/// Reads the path of a new file, which may begin with the name of a volume, as `VOLUME:PATH`, unless `volume` is named
/// already. Returns the name of the volume, and the path in it.
pub(super) fn read_new_path(
    scene: &CommandContext<'_>,
    word: &str,
    volume: Option<&str>,
) -> Result<(Option<String>, String), CliError> {
    if volume.is_some() {
        return Ok((volume.map(ToOwned::to_owned), word.to_owned()));
    }
    wait_for_volumes(scene, false)?;
    let wanted = word.to_owned();
    let named = scene.handle.read(move |session| {
        session.volumes().find_map(|volume| {
            let path = wanted.strip_prefix(&volume.name)?.strip_prefix(':')?;
            Some((Some(volume.name.clone()), path.to_owned()))
        })
    })?;
    Ok(named.unwrap_or_else(|| (None, word.to_owned())))
}

/// Finds the attachment that is named exactly, as `VOLUME:PATH`.
pub(super) fn find_attachment(scene: &CommandContext<'_>, word: &str) -> Result<Option<ConfinedPath>, CliError> {
    let wanted = word.to_owned();
    let find = move |session: &Session| {
        session.volumes().find_map(|volume| {
            let path = wanted.strip_prefix(&volume.name)?.strip_prefix(':')?;
            let row = volume.files.get(path).filter(|row| row.kind == FileKind::Attachment)?;
            let is_hidden = store::is_hidden(&row.path);
            volume.root.as_ref().filter(|_| !is_hidden).map(|root| ConfinedPath::new(root, &row.path))
        })
    };
    Ok(scene.handle.read(find)?)
}

/// Resolves a name to a volume; without a name, returns the first one.
pub(super) fn resolve_volume(scene: &CommandContext<'_>, name: Option<&str>) -> Result<Option<DocId>, CliError> {
    wait_for_volumes(scene, false)?;
    let wanted = name.map(ToOwned::to_owned);
    let find = move |session: &Session| match wanted {
        Some(name) => match session.volumes().find(|volume| volume.name == name || volume.id.to_string() == name) {
            Some(volume) => Ok(Some(volume.id)),
            None if name.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME) => Err(CliError::usage(SYSTEM_READ_ONLY)),
            None => {
                let mut names: Vec<&str> = session.volumes().map(|volume| volume.name.as_str()).collect();
                names.sort_unstable();
                Err(CliError::usage(format!("there is no volume “{name}”; there are: {}", names.join(", "))))
            }
        },
        None => {
            let mut volumes: Vec<&Volume> = session.volumes().filter(|volume| volume.root.is_some()).collect();
            volumes.sort_by_key(|volume| &volume.name);
            Ok(volumes.first().map(|volume| volume.id))
        }
    };
    scene.handle.read(find)?
}
