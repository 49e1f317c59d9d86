//! Paths of files in a volume, and the disk's keys for data about them.

use crate::session::apply_context::CommandError;
use std::collections::BTreeMap;
use std::path::{Component, Path};
use store::disk::FileRow;
use store::{DocId, FileKind};

/// Prefix of the keys under which the disk stores the outlines of notes, with links, headings and tasks.
pub const LINKS_KEY_PREFIX: &str = "links/";

/// Returns the key under which the disk stores the outline of a note.
pub fn links_key(note: DocId) -> String {
    format!("{LINKS_KEY_PREFIX}{note}")
}

/// Normalizes a path that must stay inside its volume, with `/` as the separator.
pub(in crate::session) fn normalize_volume_path(path: &str) -> Result<String, CommandError> {
    let refuse = |why: &str| Err(CommandError(format!("{why}: {path}")));
    if path.trim().is_empty() {
        return refuse("a note needs a name");
    }
    if path.contains('\0') || path.len() > 1_000 {
        return refuse("that name cannot be used for a file");
    }
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return refuse("a note must be inside its volume; leave out .. and the leading /");
            }
        }
    }
    if parts.iter().any(|part| part.len() > 250) {
        return refuse("a file's name has at most 250 bytes");
    }
    if parts[..parts.len().saturating_sub(1)].iter().any(|part| part.starts_with('.')) {
        return refuse("hidden folders are not part of a volume");
    }
    Ok(parts.join("/"))
}

/// Returns whether a file of another device may have this path here: inside its volume, and obeyed by no program.
pub(in crate::session) fn is_acceptable_remote_path(path: &str, kind: FileKind) -> bool {
    normalize_volume_path(path).is_ok_and(|sound| sound == path)
        && FileKind::from_path(path) == kind
        && agent::protected_writes::executed_reason(path).is_none()
}

/// Checks that a new file of a volume can lie at this path: nothing above it is a file, and it isn't a folder.
///
/// Such a note could never be written, and commands that save would wait for it.
pub(in crate::session) fn ensure_place_is_free(
    files: &BTreeMap<String, FileRow>,
    path: &str,
) -> Result<(), CommandError> {
    if let Some((at, _)) = path.match_indices('/').find(|(at, _)| files.contains_key(&path[..*at])) {
        return Err(CommandError(format!("this is a file, not a folder; choose another path: {}", &path[..at])));
    }
    let below = format!("{path}/");
    if files.range(below.clone()..).next().is_some_and(|(file, _)| file.starts_with(&below)) {
        return Err(CommandError(format!("a folder has that name already; choose another: {path}")));
    }
    Ok(())
}

/// Returns the name for a file next to another one with the same name. It's the same on every device.
pub(in crate::session) fn sibling_name(path: &str, file: DocId) -> String {
    let mark: String = file.to_string().chars().take(4).collect();
    name_with_mark(path, &mark)
}

/// Returns the path with a mark appended to the file name.
pub(in crate::session) fn name_with_mark(path: &str, mark: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let (stem, ending) = name.rsplit_once('.').map_or((name, ""), |(stem, ending)| (stem, ending));
    let name = if ending.is_empty() { format!("{stem} ({mark})") } else { format!("{stem} ({mark}).{ending}") };
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}
