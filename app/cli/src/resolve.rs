//! Resolves names on the command line to notes and volumes.

use super::{CliError, CommandContext};
use agent::config::VolumeSettings;
use agent::name_suggestions;
use agent::path_resolver::{self, KnownVolume, PathPlace, PathUse};
use agent::system_volume::{self, SYSTEM_READ_ONLY, SYSTEM_VOLUME_NAME};
use engine::{Session, Volume};
use host::fs::confined_dir::ConfinedPath;
use host::maintenance::configuration;
use std::collections::BTreeMap;
use std::time::Duration;
use store::disk::FileRow;
use store::{DocId, FileKind};

/// What a name resolves to.
pub(super) enum ResolvedName {
    Note(DocId),
    Volume(DocId),
}

/// Name of the volume that the first new file of a workspace makes.
pub(super) const FIRST_VOLUME_NAME: &str = "Notes";
/// Maximum number of notes that are named if a name fits several.
const MAX_AMBIGUOUS_NAMES: usize = 3;
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
        ResolvedName::Volume(_) => Err(CliError::usage(format!(
            "“{word}” is a volume, not a note; `tracebook ls --volume {word}` lists its notes"
        ))),
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
            match (scene.handle.read(find)?, read_kind_in_front(scene, word)?) {
                (Err(_), Some(named)) => resolve_note_or_volume(scene, &named),
                (Err(error), None) => Err(unopened_file_error(scene, word)?.unwrap_or(error)),
                (found, _) => found,
            }
        }
        found => found,
    }
}

/// Returns what to do with a file that is in no volume, if the word names one. Programs aren't told which files exist.
fn unopened_file_error(scene: &CommandContext<'_>, word: &str) -> Result<Option<CliError>, CliError> {
    let file = scene.folder.join(word);
    if scene.json || !file.is_file() {
        return Ok(None);
    }
    let folder = file.parent().unwrap_or(&file).display().to_string();
    let holds_it = move |volume: &Volume| volume.root.as_ref().is_some_and(|root| file.starts_with(root));
    if scene.handle.read(move |session| session.volumes().any(holds_it))? {
        return Ok(None);
    }
    Ok(Some(CliError::usage(format!(
        "{word} is in no volume; `tracebook open {folder}` opens its folder, `tracebook import {word}` copies it"
    ))))
}

/// Reads what the configuration says of volumes. One that can't be read says nothing, and other commands report it.
pub(super) fn volume_settings(scene: &CommandContext<'_>) -> VolumeSettings {
    configuration::load_config(scene.handle.workspace_folder()).map(|config| config.volumes).unwrap_or_default()
}

/// Returns `team/PATH` or `user/PATH` as `VOLUME:PATH`, if there's one volume of that kind.
fn read_kind_in_front(scene: &CommandContext<'_>, word: &str) -> Result<Option<String>, CliError> {
    let Some((kind, path)) = word.trim_start_matches('/').split_once(['/', ':']) else { return Ok(None) };
    Ok(volume_of_kind(scene, kind)?.map(|name| format!("{name}:{path}")))
}

/// Returns the name of the volume that the word for a kind means.
fn volume_of_kind(scene: &CommandContext<'_>, kind: &str) -> Result<Option<String>, CliError> {
    if agent::config::VolumeKind::from_name(kind).is_none() {
        return Ok(None);
    }
    let (settings, kind) = (volume_settings(scene), kind.to_owned());
    let find = move |session: &Session| {
        let names = session.volumes().map(|volume| volume.name.as_str());
        settings.named_by_kind(&kind, names).map(ToOwned::to_owned)
    };
    Ok(scene.handle.read(find)?)
}

/// Returns the volumes as the tools' resolver sees them, in the order of `all`.
fn known_volumes<'a>(all: &[&'a Volume]) -> Vec<KnownVolume<'a, FileRow>> {
    let known = |volume: &&'a Volume| KnownVolume {
        name: &volume.name,
        root: volume.root.as_deref(),
        kind: None,
        files: &volume.files,
    };
    all.iter().map(known).collect()
}

fn find_in_session(session: &Session, word: &str, folder: &std::path::Path) -> Result<ResolvedName, CliError> {
    let all: Vec<&Volume> = session.volumes().collect();
    if let Some(volume) = all.iter().find(|volume| volume.name == word)
        && !all.iter().any(|volume| volume.files.get(word).is_some_and(is_note))
    {
        return Ok(ResolvedName::Volume(volume.id));
    }
    let volumes = known_volumes(&all);
    let found = path_resolver::find_files(&volumes, word, folder, is_note);
    let row = |&(at, path): &(usize, &str)| all.get(at).and_then(|volume| volume.files.get(path));
    if let [_, _, ..] = found.as_slice() {
        return Err(CliError::usage(ambiguous_sentence(word, &all, &found)));
    }
    if let Some(note) = found.first().and_then(row) {
        return Ok(ResolvedName::Note(note.id));
    }
    if let [one] = path_resolver::find_files(&volumes, word, folder, |_| true).as_slice()
        && let (Some(volume), Some(row)) = (all.get(one.0), row(one))
    {
        let path = &row.path;
        if let Some(demoted) = volume.demoted.iter().find(|other| other.path == *path) {
            return Err(CliError::usage(format!("{}: {path}", demoted.why)));
        }
        return Err(CliError::usage(match row.kind {
            FileKind::Collection => {
                format!("it is a collection, not a note; `tracebook base` prints it as a table: {path}")
            }
            FileKind::Attachment | FileKind::Note | FileKind::Script => {
                format!("it is an attachment, not a note; `tracebook attachments get` prints it: {path}")
            }
        }));
    }
    let bare = word.trim_matches('/');
    if let Some(volume) = all.iter().find(|volume| volume.name.eq_ignore_ascii_case(bare)) {
        return Ok(ResolvedName::Volume(volume.id));
    }
    if system_path(word).is_some() {
        return Err(CliError::usage(SYSTEM_READ_ONLY));
    }
    let is_in_volume = |volume: &&Volume| {
        let below = |path: &String| path.starts_with("system/");
        volume.name.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME) || volume.files.keys().any(below)
    };
    if let Some(path) = below_system(word).filter(|path| !path.is_empty() && !all.iter().any(is_in_volume)) {
        let known: Vec<String> =
            system_volume::list("").map(|(path, _)| format!("{SYSTEM_VOLUME_NAME}/{path}")).collect();
        let near = name_suggestions::closest_sentence(path, known.iter().map(String::as_str));
        return Err(CliError::usage(format!("there is no file “{path}” in System.{near}")));
    }
    // With several volumes, a path alone may fit notes of each of them.
    let is_only = all.len() == 1;
    let names = all.iter().flat_map(|volume| {
        let notes = volume.files.values().filter(|row| row.kind.is_text());
        notes.map(move |row| if is_only { row.path.clone() } else { format!("{}/{}", volume.name, row.path) })
    });
    let names: Vec<String> = names.collect();
    let near = name_suggestions::closest_sentence(word, names.iter().map(String::as_str));
    if all.is_empty() {
        let why = "the workspace has no volumes yet; `tracebook open FOLDER` makes one";
        return Err(CliError::usage(format!("there is no note “{word}”; {why}")));
    }
    Err(CliError::usage(format!("there is no note “{word}”; `tracebook ls` lists them.{near}")))
}

fn is_note(row: &FileRow) -> bool {
    matches!(row.kind, FileKind::Note | FileKind::Script)
}

/// Says that a name fits several notes, and which ones: three of them, the nearest to the root of a volume first.
fn ambiguous_sentence(word: &str, all: &[&Volume], found: &[(usize, &str)]) -> String {
    let name = |&(at, path): &(usize, &str)| {
        let volume = all.get(at).map_or("", |volume| volume.name.as_str());
        (path.matches('/').count(), format!("{volume}:{path}"))
    };
    let mut names: Vec<(usize, String)> = found.iter().map(name).collect();
    names.sort();
    let shown: Vec<&str> = names.iter().take(MAX_AMBIGUOUS_NAMES).map(|(_, name)| name.as_str()).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("“{word}” fits several notes, name one: {}{more}", shown.join(", "))
}

/// Returns the path in System of `system/…` or `system:…`, if there's such a file.
pub(super) fn system_path(word: &str) -> Option<String> {
    below_system(word).and_then(system_volume::find_path)
}

/// Returns what follows `system/` or `system:`.
fn below_system(word: &str) -> Option<&str> {
    let bare = word.trim_start_matches('/');
    let (head, rest) = bare.split_at_checked(SYSTEM_VOLUME_NAME.len())?;
    let rest = rest.strip_prefix(['/', ':'])?;
    head.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME).then_some(rest)
}

/// Reads the path of a new file as tools do, for the volume `own`, or else the first one. The path may begin with the
/// name of its volume, and `VOLUME:PATH` is in that volume unless `volume` is named already. After `./`, the path is
/// taken as it is. Returns the name of the volume if it's another one or was named, and the path in it.
pub(super) fn read_new_path(
    scene: &CommandContext<'_>,
    word: &str,
    volume: Option<&str>,
    own: Option<DocId>,
) -> Result<(Option<String>, String), CliError> {
    if let Some(exact) = word.strip_prefix("./") {
        return Ok((volume.map(ToOwned::to_owned), exact.trim_start_matches("./").to_owned()));
    }
    // Whether there's a folder called as the volume decides.
    wait_for_volumes(scene, true)?;
    let (name, path) = match volume {
        Some(name) => (Some(name.to_owned()), word.to_owned()),
        None => {
            let wanted = word.to_owned();
            let named = scene.handle.read(move |session| {
                let exact = session.volumes().find_map(|volume| {
                    let path = wanted.strip_prefix(&volume.name)?.strip_prefix(':')?;
                    Some((Some(volume.name.clone()), path.to_owned()))
                });
                exact.or_else(|| {
                    let (name, path) = wanted.split_once(':')?;
                    Some((Some(find_volume(session, name)?.name.clone()), path.to_owned()))
                })
            })?;
            named.unwrap_or_else(|| (None, word.to_owned()))
        }
    };
    let own = match (&name, own) {
        (Some(name), _) => resolve_volume(scene, Some(name))?,
        (None, Some(own)) => Some(own),
        (None, None) => resolve_volume(scene, None)?,
    };
    let settings = volume_settings(scene);
    let find = move |session: &Session| place_new_path(session, &settings, own, name, &path);
    scene.handle.read(find)?
}

/// Returns where a new file goes: the volume if it's another one than `own` or was named, and the path in it.
fn place_new_path(
    session: &Session,
    settings: &VolumeSettings,
    own: Option<DocId>,
    name: Option<String>,
    path: &str,
) -> Result<(Option<String>, String), CliError> {
    let no_files = BTreeMap::new();
    let first = own.and_then(|own| session.volume(own));
    // Without a volume, the first file makes one.
    let missing =
        first.is_none().then_some(KnownVolume { name: FIRST_VOLUME_NAME, root: None, kind: None, files: &no_files });
    let others = session.volumes().filter(|volume| Some(volume.id) != own);
    let known = first.into_iter().chain(others).map(|volume| KnownVolume {
        name: &volume.name,
        root: volume.root.as_deref(),
        kind: settings.kind(&volume.name),
        files: &volume.files,
    });
    let volumes: Vec<KnownVolume<'_, FileRow>> = missing.into_iter().chain(known).collect();
    let named = name.as_ref().and_then(|_| volumes.first()).map(|volume| volume.name);
    let found = path_resolver::resolve(&volumes, named, path, PathUse::New).map_err(CliError::usage)?;
    let PathPlace::Volume(at) = found.place else { return Err(CliError::usage(SYSTEM_READ_ONLY)) };
    let other = match (at, name) {
        (0, name) => name,
        (_, None) => volumes.get(at).map(|volume| volume.name.to_owned()),
        (_, Some(name)) => return Err(CliError::usage(format!("this path is in another volume than {name}: {path}"))),
    };
    let is_folder = path.trim_end().ends_with('/') || path.is_empty() && other.is_some();
    let path = match (found.path.is_empty(), is_folder) {
        (true, true) => "./".to_owned(),
        // A note may be called as its volume.
        (true, false) => path.trim_start_matches('/').to_owned(),
        (false, true) => format!("{}/", found.path.trim_end_matches('/')),
        (false, false) => found.path,
    };
    Ok((other, path))
}

/// Returns the volume and the path of a folder with files: as it's written, else as tools understand it.
pub(super) fn find_folder(session: &Session, word: &str) -> Option<(DocId, String)> {
    let bare = word.trim_end_matches('/');
    let below = format!("{bare}/");
    let holds = |volume: &&Volume| volume.files.keys().any(|path| path.starts_with(&below));
    if let Some(volume) = session.volumes().find(holds) {
        return Some((volume.id, bare.to_owned()));
    }
    let all: Vec<&Volume> = session.volumes().collect();
    let volumes = known_volumes(&all);
    let found = path_resolver::resolve(&volumes, None, word, PathUse::Folder).ok()?;
    let PathPlace::Volume(at) = found.place else { return None };
    let volume = all.get(at).filter(|_| found.exists && !found.path.is_empty())?;
    Some((volume.id, found.path))
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

/// Returns the volume with a name or id, or the only one whose name differs in its case only.
fn find_volume<'a>(session: &'a Session, name: &str) -> Option<&'a Volume> {
    let is_exact = |volume: &&Volume| volume.name == name || volume.id.to_string() == name;
    let any_case = || {
        let mut found = session.volumes().filter(|volume| volume.name.eq_ignore_ascii_case(name));
        found.next().filter(|_| found.next().is_none())
    };
    session.volumes().find(is_exact).or_else(any_case)
}

/// Finds a project, a volume with a folder, by its name or its folder, or the only one whose name differs in its case
/// only.
pub(super) fn find_project(session: &Session, name: &str) -> Result<DocId, CliError> {
    let all: Vec<&Volume> = session.volumes().filter(|volume| volume.root.is_some()).collect();
    let is_exact = |volume: &&&Volume| {
        volume.name == name || volume.root.as_deref().is_some_and(|root| root == std::path::Path::new(name))
    };
    let mut similar = all.iter().filter(|volume| volume.name.eq_ignore_ascii_case(name));
    let similar = similar.next().filter(|_| similar.next().is_none());
    let found = all.iter().find(is_exact).or(similar);
    found.map(|volume| volume.id).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|volume| volume.name.as_str()).collect();
        let there = match names.as_slice() {
            [] => "open a folder first: tracebook open FOLDER".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        CliError::usage(format!("there is no project “{name}”; {there}"))
    })
}

/// Resolves a name to a volume; without a name, returns the first one.
pub(super) fn resolve_volume(scene: &CommandContext<'_>, name: Option<&str>) -> Result<Option<DocId>, CliError> {
    wait_for_volumes(scene, false)?;
    let of_kind = name.map(|name| volume_of_kind(scene, name)).transpose()?.flatten();
    let wanted = of_kind.or_else(|| name.map(ToOwned::to_owned));
    let find = move |session: &Session| match wanted {
        Some(name) => match find_volume(session, &name) {
            Some(volume) => Ok(Some(volume.id)),
            None if name.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME) => Err(CliError::usage(SYSTEM_READ_ONLY)),
            None => {
                let mut names: Vec<&str> = session.volumes().map(|volume| volume.name.as_str()).collect();
                names.sort_unstable();
                let why = match names.as_slice() {
                    [] => "there are none yet; `tracebook open FOLDER` makes one".to_owned(),
                    names => format!("there are: {}", names.join(", ")),
                };
                Err(CliError::usage(format!("there is no volume “{name}”; {why}")))
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
