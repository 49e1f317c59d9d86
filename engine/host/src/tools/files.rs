//! Tools for files of a volume: read, list, replace, edit, remove. Content before and after is stored as blobs.

use super::truncate::{store_blob, truncate_output};
use super::{StopSignal, ToolWorkspace};
use crate::fs::atomic_write::{ReplaceOutcome, replace_file};
use crate::fs::confined_dir::{ConfinedFolder, OpenRefusal, normalize_path};
use crate::fs::file_info::tool_file_info;
use agent::config::SandboxPaths;
use agent::tool_job::{FileChange, ToolOutcome};
use agent::tool_lines::select_lines;
use anyhow::{anyhow, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use store::{BlobHash, MAX_RESULT_FILES, ToolFileInfo, ToolFileType};
use text::diff::unified_diff;

/// Maximum size of a file that tools read or write, in bytes.
pub(super) const MAX_TOOL_FILE_BYTES: u64 = 10 << 20;
/// Maximum size of a file that tools remove, in bytes, because a copy is kept.
const MAX_REMOVED_FILE_BYTES: u64 = 100 << 20;
/// Maximum number of entries in a listing.
const MAX_LISTED_ENTRIES: usize = 2_000;
/// Number of retries if another program writes between our read and our write.
const MAX_WRITE_TRIES: usize = 4;

/// There's no file with that name.
#[derive(Debug, thiserror::Error)]
#[error("no such file or folder: {0}")]
pub(super) struct MissingFileError(String);

/// Returns whether an error means that there's no file with that name.
pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    error.is::<MissingFileError>()
        || error.downcast_ref::<OpenRefusal>().is_some_and(OpenRefusal::is_missing)
        || git_program::is_missing_name(error.root_cause())
}

pub(super) fn read(
    place: &ToolWorkspace,
    root: &Path,
    path: &str,
    lines: Option<(usize, usize)>,
) -> anyhow::Result<ToolOutcome> {
    let folder = ConfinedFolder::open_root(root)?;
    let file = folder.open_real_file(path)?;
    let files = file.metadata().iter().map(|meta| tool_file_info(path, meta)).collect();
    let text = decode_utf8(read_bytes(file, MAX_TOOL_FILE_BYTES, path)?, path)?;
    // Mask secrets before selecting lines, because a cut key wouldn't be recognized.
    let text = agent::secrets::mask_known_secrets(&text);
    let part = select_lines(&text, lines).map_err(|error| anyhow!("{error}: {path}"))?;
    let (text, whole) = truncate_output(part.as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, files, ..ToolOutcome::default() })
}

pub(super) fn list(
    place: &ToolWorkspace,
    (root, path): (&Path, &str),
    paths: &SandboxPaths,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    let tidied = normalize_path(path)?;
    if tidied.split('/').any(is_git_folder_name) {
        bail!("git's own files are not listed; `git_status`, `git_log` and `git_diff` read them: {path}");
    }
    let folder = ConfinedFolder::open_root(root)?.open_folder(&tidied)?;
    let mut found = Vec::new();
    let in_volume = |name: &str| if tidied.is_empty() { name.to_owned() } else { format!("{tidied}/{name}") };
    let whole = walk(&folder, ("", 2), &mut found, &|name| paths.is_hidden(&in_volume(name)), stop)?;
    let mut text: String = found.iter().map(describe_file).collect();
    if found.is_empty() {
        text += "(the folder is empty)\n";
    }
    found.truncate(MAX_RESULT_FILES);
    found.iter_mut().for_each(|file| file.path = in_volume(&file.path));
    if !whole {
        text += &format!("… more than {MAX_LISTED_ENTRIES} entries; list a folder below …\n");
    }
    let (text, whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, files: found, ..ToolOutcome::default() })
}

/// Lists a folder, and its subfolders if `deep` is set. Returns whether the listing is complete.
fn walk(
    folder: &ConfinedFolder,
    (before, deep): (&str, usize),
    listed: &mut Vec<ToolFileInfo>,
    hidden: &dyn Fn(&str) -> bool,
    stop: &StopSignal,
) -> anyhow::Result<bool> {
    let entries =
        std::fs::read_dir(folder.stable_path()).map_err(|error| anyhow!("the folder cannot be listed ({error})"))?;
    let mut found = Vec::new();
    let mut whole = true;
    for entry in entries.flatten() {
        if listed.len() + found.len() >= MAX_LISTED_ENTRIES {
            whole = false;
            break;
        }
        stop.check_not_stopped()?;
        // Tools can't name files whose names aren't UTF-8.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(meta) = entry.metadata() else { continue }; // gone meanwhile
        // The repository's own files are numerous and irrelevant.
        if !crate::fs::atomic_write::is_temporary_file(name.as_ref()) && !is_git_folder_name(&name) {
            found.push((name, meta));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, meta) in found {
        if listed.len() >= MAX_LISTED_ENTRIES {
            return Ok(false);
        }
        let path = format!("{before}{name}");
        if hidden(&path) {
            continue;
        }
        listed.push(tool_file_info(&path, &meta));
        if meta.is_dir()
            && deep > 1
            && let Ok(below) = folder.open_folder(&name)
            && !walk(&below, (&format!("{path}/"), deep - 1), listed, hidden, stop)?
        {
            return Ok(false);
        }
    }
    Ok(whole)
}

/// Describes a file in a line: its path, size, type, last change, and whether it's read-only.
fn describe_file(file: &ToolFileInfo) -> String {
    let ToolFileInfo { path, size, .. } = file;
    match file.file_type {
        ToolFileType::Folder => return format!("{path}/\n"),
        ToolFileType::Link => return format!("{path} (a link)\n"),
        ToolFileType::File => {}
    }
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    let kind = ending.map(|ending| format!(", {}", ending.to_lowercase())).unwrap_or_default();
    let changed = file.modified.and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    let changed = changed.map(|time| format!(", changed {}", time.strftime("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
    let locked = if file.read_only { ", read-only" } else { "" };
    format!("{path} ({size} bytes{kind}{changed}{locked})\n")
}

pub(super) fn write_text(
    place: &ToolWorkspace,
    root: &Path,
    path: &str,
    text: &str,
    expected: Option<Option<BlobHash>>,
) -> anyhow::Result<ToolOutcome> {
    change_file(place, root, path, true, &|old| {
        if expected.is_some_and(|expected| expected != old.map(BlobHash::of)) {
            bail!("the file has changed since it was read; read it again: {path}");
        }
        Ok(text.to_owned())
    })
}

pub(super) fn edit_text(
    place: &ToolWorkspace,
    root: &Path,
    path: &str,
    old: &str,
    new: &str,
) -> anyhow::Result<ToolOutcome> {
    if old.is_empty() {
        bail!("the text to replace is empty; give the exact text from the file");
    }
    change_file(place, root, path, false, &|there| {
        let Some(there) = there else { return Err(MissingFileError(path.to_owned()).into()) };
        let there = std::str::from_utf8(there).map_err(|_| not_text_error(path))?;
        match there.matches(old).count() {
            0 => Err(anyhow!("the text to replace isn't in the file; read the file again: {path}")),
            1 => Ok(there.replacen(old, new, 1)),
            many => Err(anyhow!("the text to replace occurs {many} times; include more of the text around it: {path}")),
        }
    })
}

/// Writes a file's bytes, whatever it contains now.
pub(super) fn write_bytes(place: &ToolWorkspace, root: &Path, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let tidied = check_writable_path(path)?;
    if bytes.len() as u64 > MAX_TOOL_FILE_BYTES {
        bail!("a file of more than {} MB is not written: {path}", MAX_TOOL_FILE_BYTES >> 20);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return write_text(place, root, &tidied, text, None).map(|_| ());
    }
    let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(&tidied, true)?;
    for _ in 0..MAX_WRITE_TRIES {
        let there = std::fs::symlink_metadata(folder.join(&name)).is_ok();
        let old = match there {
            true => Some(BlobHash::of(&read_bytes(folder.open_real_file(&name)?, MAX_TOOL_FILE_BYTES, path)?)),
            false => None,
        };
        if let ReplaceOutcome::Done { .. } = replace_file(&folder.join(&name), old, bytes)? {
            return Ok(());
        }
    }
    Err(anyhow!("another program writes to the file all the time; nothing was changed: {path}"))
}

/// Function that makes a file's new text from its bytes; `None` if the file doesn't exist.
type FileTextMaker<'a> = dyn Fn(Option<&[u8]>) -> anyhow::Result<String> + 'a;

/// Replaces a file's content by a function of its bytes (`None` if it doesn't exist), and returns the diff.
fn change_file(
    place: &ToolWorkspace,
    root: &Path,
    path: &str,
    make: bool,
    made: &FileTextMaker<'_>,
) -> anyhow::Result<ToolOutcome> {
    let tidied = check_writable_path(path)?;
    let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(path, make)?;
    let file = folder.stable_path().join(&name);
    let own = |error: store::disk::DiskError| {
        let here = folder.original_path().join(&name);
        anyhow!(error.to_string().replace(&*file.to_string_lossy(), &here.to_string_lossy()))
    };
    for _ in 0..MAX_WRITE_TRIES {
        let there = std::fs::symlink_metadata(&file).is_ok();
        let old = match there {
            true => Some(read_bytes(folder.open_real_file(&name)?, MAX_TOOL_FILE_BYTES, path)?),
            false => None,
        };
        let text = made(old.as_deref())?;
        if text.len() as u64 > MAX_TOOL_FILE_BYTES {
            bail!("a file of more than {} MB is not written: {path}", MAX_TOOL_FILE_BYTES >> 20);
        }
        let before = old.as_deref().map(|old| store_blob(old, &place.blobs)).transpose()?;
        let after = store_blob(text.as_bytes(), &place.blobs)?;
        match replace_file(&file, before, text.as_bytes()).map_err(own)? {
            ReplaceOutcome::Done { .. } => {
                let old = old.map(|old| String::from_utf8_lossy(&old).into_owned());
                let diff = unified_diff(&tidied, old.as_deref(), Some(&text));
                let diff = if diff.is_empty() { "nothing differs".to_owned() } else { diff };
                let (text, whole) = truncate_output(diff.as_bytes(), &place.blobs)?;
                let files = file.symlink_metadata().iter().map(|meta| tool_file_info(&tidied, meta)).collect();
                let changed = FileChange { path: tidied, before, after: Some(after), hunks: Vec::new() };
                let changed = if before == Some(after) { Vec::new() } else { vec![changed] };
                return Ok(ToolOutcome { success: true, text, whole, changed, files, ..ToolOutcome::default() });
            }
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {}
        }
    }
    Err(anyhow!("another program writes to the file all the time; nothing was changed: {path}"))
}

pub(super) fn remove(place: &ToolWorkspace, root: &Path, path: &str) -> anyhow::Result<ToolOutcome> {
    let tidied = check_writable_path(path)?;
    let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(path, false)?;
    let meta = std::fs::symlink_metadata(folder.stable_path().join(&name));
    match meta {
        Err(_) => return Err(MissingFileError(path.to_owned()).into()),
        Ok(meta) if meta.is_dir() => bail!("it's a folder; only files can be removed: {path}"),
        Ok(meta) if meta.is_symlink() => bail!("it's a link; only files can be removed: {path}"),
        Ok(_) => {}
    }
    let old = read_bytes(folder.open_real_file(&name)?, MAX_REMOVED_FILE_BYTES, path)?;
    let before = Some(store_blob(&old, &place.blobs)?);
    folder.remove_file(&name).map_err(|why| anyhow!("{why}: {path}"))?;
    let diff = std::str::from_utf8(&old).map_or_else(
        |_| format!("{tidied} is removed ({} bytes)", old.len()),
        |old| unified_diff(&tidied, Some(old), None),
    );
    let (text, whole) = truncate_output(diff.as_bytes(), &place.blobs)?;
    let changed = vec![FileChange { path: tidied, before, after: None, hunks: Vec::new() }];
    Ok(ToolOutcome { success: true, text, whole, changed, ..ToolOutcome::default() })
}

/// Restores a file's earlier content if it still has the expected one.
pub(super) fn restore(
    place: &ToolWorkspace,
    root: &Path,
    path: &str,
    expected: Option<BlobHash>,
    to: Option<BlobHash>,
) -> anyhow::Result<ToolOutcome> {
    let moved = || anyhow!("the file has changed since, so it was left alone: {path}");
    let Some(to) = to else {
        let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(path, false)?;
        let now = read_bytes(folder.open_real_file(&name)?, MAX_REMOVED_FILE_BYTES, path)?;
        return if Some(BlobHash::of(&now)) == expected { remove(place, root, path) } else { Err(moved()) };
    };
    let old = place.blobs.read(to)?;
    if let Ok(text) = String::from_utf8(old.clone()) {
        return write_text(place, root, path, &text, Some(expected)).map_err(|_| moved());
    }
    let tidied = check_writable_path(path)?;
    let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(path, true)?;
    match crate::fs::atomic_write::replace_file(&folder.stable_path().join(&name), expected, &old) {
        Ok(crate::fs::atomic_write::ReplaceOutcome::Done { .. }) => {}
        Ok(_) => return Err(moved()),
        Err(error) => return Err(error.into()),
    }
    let changed = vec![FileChange { path: tidied, before: expected, after: Some(to), hunks: Vec::new() }];
    Ok(ToolOutcome { success: true, text: format!("{path} is as it was"), changed, ..ToolOutcome::default() })
}

/// Normalizes a path that a tool may write. Refuses paths in `.git`, because Git would run files there as the user,
/// outside every sandbox.
pub(super) fn check_writable_path(path: &str) -> anyhow::Result<String> {
    let path = normalize_path(path)?;
    if path.split('/').any(is_git_folder_name) {
        bail!("git's own files are not written by tools: {path}");
    }
    Ok(path)
}

/// Returns whether this is the name of a repository's own folder.
fn is_git_folder_name(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Reads a whole file, unless it's too large or not an ordinary file.
fn read_bytes(file: File, most: u64, path: &str) -> anyhow::Result<Vec<u8>> {
    let fail = |error: std::io::Error| anyhow!("the file cannot be read ({}): {path}", store::disk::io_reason(&error));
    let meta = file.metadata().map_err(fail)?;
    if meta.is_dir() {
        bail!("it is a folder: {path}");
    }
    if !meta.is_file() {
        bail!("it is not an ordinary file: {path}");
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > most {
        bail!("the file has {} bytes, more than the {} MB that are read: {path}", meta.len(), most >> 20);
    }
    Ok(bytes)
}

fn decode_utf8(bytes: Vec<u8>, path: &str) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|_| not_text_error(path))
}

fn not_text_error(path: &str) -> anyhow::Error {
    anyhow!("the file is not UTF-8 text: {path}")
}
