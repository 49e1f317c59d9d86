//! Resolves paths as models and people write them: with a leading `/`, with the volume in front, as an argument of its
//! own, or in another case. Every tool and mention uses it, so what search and prompts show is accepted everywhere.

use crate::config::VolumeKind;
use crate::name_suggestions::closest_sentence;
use crate::system_volume;
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use text::links::{fold_name, without_md_extension};

/// Names that models use for the volume that they work in, if no volume has such a name.
const OWN_VOLUME_NAMES: [&str; 4] = ["user", "project", "workspace", "current"];
/// Folders at the root of an operating system. A path that begins with one, and with `/`, isn't meant for a volume.
const SYSTEM_ROOTS: [&str; 24] = [
    "applications",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "library",
    "media",
    "mnt",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "users",
    "usr",
    "var",
    "windows",
];
/// Maximum number of files that are compared with a path that isn't there.
const MAX_COMPARED_FILES: usize = 20_000;
/// Maximum length in characters of names that are compared.
const MAX_COMPARED_CHARS: usize = 100;

/// A volume and its known files, by their paths with `/` as separator.
#[derive(Debug)]
pub struct KnownVolume<'a, T> {
    /// Name of the volume as the user sees it.
    pub name: &'a str,
    /// Folder of the volume on this device, if it's here.
    pub root: Option<&'a Path>,
    /// Kind of the volume, if the configuration says it.
    pub kind: Option<VolumeKind>,
    /// Files of the volume, by path.
    pub files: &'a BTreeMap<String, T>,
}

/// The volume and file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPlace {
    /// In the volume with this number; 0 is the one that the path is used in.
    Volume(usize),
    /// In the read-only volume inside the program.
    System,
}

/// What a path is for, which decides how something that isn't there is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// A file that should exist.
    Existing,
    /// A file or folder that is created with exactly this name.
    New,
    /// A file that is created or replaced. One whose name differs in its case only is replaced: on many systems, both
    /// names mean one file.
    Written,
    /// A folder that should exist; the volume itself is one.
    Folder,
}

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The volume.
    pub place: PathPlace,
    /// Path in that volume, without a leading `/`; empty for the volume itself.
    pub path: String,
    /// Whether a known file or folder has this path.
    pub exists: bool,
}

/// Why a path can't be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// There's no volume with this name.
    #[error("There is no volume “{name}”. There are: {}.", known.join(", "))]
    UnknownVolume {
        /// The name.
        name: String,
        /// Names of all volumes.
        known: Vec<String>,
    },
}

/// Returns the volume with a name: exactly, then in any case, then for the word of its kind, and for what models call
/// their own volume.
///
/// # Errors
/// Returns an error with the known names if there's none.
pub fn find_volume<T>(volumes: &[KnownVolume<'_, T>], name: &str) -> Result<PathPlace, PathError> {
    let name = name.trim().trim_matches('/');
    let any_case = || volumes.iter().position(|volume| volume.name.eq_ignore_ascii_case(name));
    if let Some(at) = volumes.iter().position(|volume| volume.name == name) {
        Ok(PathPlace::Volume(at))
    } else if name.eq_ignore_ascii_case(system_volume::SYSTEM_VOLUME_NAME) {
        Ok(PathPlace::System)
    } else if let Some(at) = any_case() {
        Ok(PathPlace::Volume(at))
    } else if let Some(at) = find_kind(volumes, name) {
        Ok(PathPlace::Volume(at))
    } else if name.is_empty() || OWN_VOLUME_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        Ok(PathPlace::Volume(0))
    } else {
        let mut known: Vec<String> = volumes.iter().map(|volume| volume.name.to_owned()).collect();
        known.push(system_volume::SYSTEM_VOLUME_NAME.to_owned());
        Err(PathError::UnknownVolume { name: name.chars().take(MAX_COMPARED_CHARS).collect(), known })
    }
}

/// Returns the only volume of the kind with this word, unless a volume is called so.
fn find_kind<T>(volumes: &[KnownVolume<'_, T>], word: &str) -> Option<usize> {
    let kind = VolumeKind::from_name(word)?;
    let mut found = volumes.iter().enumerate().filter(|(_, volume)| volume.kind == Some(kind)).map(|(at, _)| at);
    let first = found.next()?;
    let is_name = volumes.iter().any(|volume| volume.name.eq_ignore_ascii_case(word));
    (!is_name && found.next().is_none()).then_some(first)
}

/// Returns the name of a volume that a path begins with, or the word for its kind if that means the volume, and what
/// follows it.
fn strip_volume<'a, T>(volumes: &[KnownVolume<'a, T>], at: usize, path: &'a str) -> Option<(&'a str, &'a str)> {
    let volume = volumes.get(at)?;
    if let Some(rest) = strip_name(path, volume.name) {
        // Of volumes whose names differ in their case only, the one that is written exactly so is meant.
        let is_exact = |name: &str| path.starts_with(name) && strip_name(path, name).is_some();
        let is_other = !is_exact(volume.name) && volumes.iter().any(|other| is_exact(other.name));
        return (!is_other).then_some((volume.name, rest));
    }
    let kind = volume.kind.map(VolumeKind::as_str).filter(|kind| find_kind(volumes, kind) == Some(at))?;
    strip_name(path, kind).filter(|rest| !rest.is_empty()).map(|rest| (kind, rest))
}

/// Resolves a path. `volumes` begins with the volume that the path is used in; `volume` is the name that was given
/// beside the path, if any.
///
/// # Errors
/// Returns an error if there's no volume with that name.
pub fn resolve<T>(
    volumes: &[KnownVolume<'_, T>],
    volume: Option<&str>,
    path: &str,
    purpose: PathUse,
) -> Result<ResolvedPath, PathError> {
    let path = path.trim();
    let named = volume.map(|name| find_volume(volumes, name)).transpose()?;
    if let Some(PathPlace::System) = named {
        let inside = strip_name(trim_slashes(path), system_volume::SYSTEM_VOLUME_NAME);
        return Ok(resolve_system(inside.unwrap_or_else(|| trim_slashes(path))));
    }
    if let Some((at, inside)) = below_root(volumes, path) {
        return Ok(resolve_in(volumes, at, inside, purpose));
    }
    let bare = trim_slashes(path);
    if let Some(PathPlace::Volume(at)) = named {
        return Ok(resolve_in(volumes, at, bare, purpose));
    }
    let own = resolve_in(volumes, 0, bare, purpose);
    if own.exists {
        return Ok(own);
    }
    let first = bare.split(['/', ':']).next().unwrap_or_default();
    // Where the own volume has such a folder, a new file goes there.
    let has_folder = volumes.first().is_some_and(|own| is_folder(own.files, first));
    let is_own = has_folder && matches!(purpose, PathUse::New | PathUse::Written);
    for at in (1..volumes.len()).filter(|_| !is_own) {
        let Some((_, inside)) = strip_volume(volumes, at, bare) else { continue };
        let found = resolve_in(volumes, at, inside, purpose);
        // A new file stays in the own volume: a folder may be meant. With `volume` it's made elsewhere.
        if found.exists {
            return Ok(found);
        }
    }
    if let Some(inside) = strip_name(bare, system_volume::SYSTEM_VOLUME_NAME).filter(|_| !is_own) {
        let found = resolve_system(inside);
        if found.exists || !has_folder {
            return Ok(found);
        }
    }
    let foreign = path.starts_with('/') && SYSTEM_ROOTS.iter().any(|root| root.eq_ignore_ascii_case(first));
    if foreign {
        // The policy refuses it, and says why.
        return Ok(ResolvedPath { path: path.to_owned(), ..own });
    }
    Ok(own)
}

/// Resolves a path in one volume: as it is, without the volume's name in front, without `.md`, and in any case.
fn resolve_in<T>(volumes: &[KnownVolume<'_, T>], at: usize, path: &str, purpose: PathUse) -> ResolvedPath {
    let place = PathPlace::Volume(at);
    let Some(volume) = volumes.get(at) else { return ResolvedPath { place, path: path.to_owned(), exists: false } };
    let there = |path: &str| ResolvedPath { place, path: path.to_owned(), exists: true };
    let exists = |path: &str| {
        let is_file = volume.files.contains_key(path) || volume.files.contains_key(&format!("{path}.md"));
        match purpose {
            PathUse::Existing | PathUse::New | PathUse::Written => is_file,
            PathUse::Folder => path.is_empty() || is_file || is_folder(volume.files, path),
        }
    };
    if exists(path) {
        return there(path);
    }
    // A folder that is called as its volume is one; otherwise the name in front is the volume's.
    let named = strip_volume(volumes, at, path).filter(|(word, _)| !is_folder(volume.files, word));
    let stripped = named.map(|(_, rest)| rest);
    if let Some(stripped) = stripped.filter(|stripped| exists(stripped)) {
        return there(stripped);
    }
    for candidate in [Some(path), stripped].into_iter().flatten().filter(|candidate| !candidate.is_empty()) {
        if let Some(found) = find_any_case(volume.files, candidate, purpose) {
            return there(&found);
        }
    }
    let path = stripped.unwrap_or(path);
    let spelled = Some(path).filter(|_| purpose == PathUse::Written).and_then(|path| spell_folders(volume.files, path));
    ResolvedPath { place, path: spelled.unwrap_or_else(|| path.to_owned()), exists: false }
}

fn resolve_system(path: &str) -> ResolvedPath {
    match system_volume::find_path(path) {
        Some(path) => ResolvedPath { place: PathPlace::System, path, exists: true },
        None => {
            ResolvedPath { place: PathPlace::System, path: path.to_owned(), exists: system_volume::is_folder(path) }
        }
    }
}

/// Returns the files that a path means to someone who works in the folder `here` rather than in a volume: those of all
/// volumes that it fits most strictly, so a path that means several files could be any of them. Only files that
/// `is_meant` accepts count.
pub fn find_files<'a, T>(
    volumes: &[KnownVolume<'a, T>],
    path: &str,
    here: &Path,
    is_meant: impl Fn(&T) -> bool,
) -> Vec<(usize, &'a str)> {
    let bare = trim_slashes(path);
    if bare.is_empty() || path.ends_with('/') {
        return Vec::new();
    }
    let exact = |at: usize, path: &str| -> Option<&'a str> {
        let found = volumes.get(at)?.files.get_key_value(path);
        found.filter(|&(_, file)| is_meant(file)).map(|(path, _)| path.as_str())
    };
    let note = |at: usize, path: &str| exact(at, path).or_else(|| exact(at, &format!("{path}.md")));
    let absolute = here.join(path);
    let on_device = |at: usize| -> Option<&'a str> {
        let inside = absolute.strip_prefix(volumes.get(at)?.root?).ok()?;
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        exact(at, &parts.join("/"))
    };
    let is_on_device = Path::new(path).is_absolute() || ["./", "../"].iter().any(|start| path.starts_with(start));
    let rest = |at: usize| strip_volume(volumes, at, bare).map(|(_, rest)| rest).filter(|rest| !rest.is_empty());
    let similar = |at: usize, fits: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        let Some(volume) = volumes.get(at).filter(|_| path.len() <= 4 * MAX_COMPARED_CHARS) else { return Vec::new() };
        let fitting =
            |&(path, file): &(&String, &T)| is_meant(file) && fits(&plain_spelling(without_md_extension(path)));
        volume.files.iter().filter(fitting).map(|(path, _)| path.as_str()).collect()
    };
    let wanted = plain_spelling(without_md_extension(bare));
    let ending = format!("/{wanted}");
    // From the strictest meaning to the loosest. A folder that is called as its volume comes before the volume.
    let meanings: [&dyn Fn(usize) -> Vec<&'a str>; 8] = [
        &|at| exact(at, path).into_iter().collect(),
        &|at| on_device(at).filter(|_| is_on_device).into_iter().collect(),
        &|at| note(at, bare).into_iter().collect(),
        &|at| rest(at).and_then(|rest| note(at, rest)).into_iter().collect(),
        &|at| on_device(at).into_iter().collect(),
        &|at| similar(at, &|known| known == wanted),
        &|at| {
            let Some(wanted) = rest(at).map(|rest| plain_spelling(without_md_extension(rest))) else {
                return Vec::new();
            };
            similar(at, &|known| known == wanted)
        },
        &|at| similar(at, &|known| known.ends_with(&ending)),
    ];
    let found = |meaning: &&dyn Fn(usize) -> Vec<&'a str>| -> Vec<(usize, &'a str)> {
        (0..volumes.len()).flat_map(|at| meaning(at).into_iter().map(move |path| (at, path))).collect()
    };
    meanings.iter().map(found).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns the volume whose folder on this device contains an absolute path, and the path in it.
fn below_root<'a, T>(volumes: &[KnownVolume<'_, T>], path: &'a str) -> Option<(usize, &'a str)> {
    if !Path::new(path).is_absolute() {
        return None;
    }
    volumes.iter().enumerate().find_map(|(at, volume)| {
        let inside = Path::new(path).strip_prefix(volume.root?).ok()?;
        Some((at, inside.to_str()?))
    })
}

/// Returns what follows a volume's name in `NAME/…`, `NAME:…` or just `NAME`.
fn strip_name<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let head = path.get(..name.len())?;
    let rest = &path[name.len()..];
    if name.is_empty() || !head.eq_ignore_ascii_case(name) {
        return None;
    }
    if rest.is_empty() {
        return Some("");
    }
    rest.strip_prefix(['/', ':']).map(trim_slashes)
}

/// Removes what stands for the volume itself from both ends of a path.
fn trim_slashes(path: &str) -> &str {
    let mut path = path;
    loop {
        let shorter = path.trim_start_matches('/');
        let shorter = shorter.strip_prefix("./").unwrap_or(shorter);
        if shorter.len() == path.len() {
            break;
        }
        path = shorter;
    }
    let path = path.trim_end_matches('/');
    if path == "." { "" } else { path }
}

/// Returns whether files have paths below this one.
fn is_folder<T>(files: &BTreeMap<String, T>, path: &str) -> bool {
    let below = format!("{path}/");
    let mut after = files.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    after.next().is_some_and(|(first, _)| first.starts_with(&below))
}

/// Returns the form of a path in which case, forms of Unicode, `-`, `_` and spaces make no difference.
fn plain_spelling(path: &str) -> String {
    fold_name(path).replace(['-', ' '], "_")
}

/// Returns the only path that differs in its case only, or in `-`, `_` and spaces. For a file that is written, only the
/// case counts.
fn find_any_case<T>(files: &BTreeMap<String, T>, path: &str, purpose: PathUse) -> Option<String> {
    if purpose == PathUse::New || path.len() > 4 * MAX_COMPARED_CHARS {
        return None; // what is created gets exactly the name that was given
    }
    let is_written = purpose == PathUse::Written;
    let spelling: fn(&str) -> String = if is_written { fold_name } else { plain_spelling };
    let wanted = spelling(path);
    let with_ending = format!("{wanted}.md");
    let mut found: Option<&str> = None;
    for known in files.keys().take(MAX_COMPARED_FILES) {
        let known_plain = spelling(known);
        let is_below = || known_plain.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/'));
        let candidate = if known_plain == wanted || (!is_written && known_plain == with_ending) {
            known.as_str()
        } else if purpose == PathUse::Folder
            && is_below()
            // The folder's name may have another length than the wanted one.
            && let Some((end, _)) = known.match_indices('/').nth(wanted.matches('/').count())
        {
            &known[..end]
        } else {
            continue;
        };
        if found.is_some_and(|found| found != candidate) {
            return None; // it could be either
        }
        found = Some(candidate);
    }
    found.map(ToOwned::to_owned)
}

/// Returns the path of a written file with the spelling of its known folders, if only their case differs.
fn spell_folders<T>(files: &BTreeMap<String, T>, path: &str) -> Option<String> {
    let (folder, _) = path.rsplit_once('/')?;
    if is_folder(files, folder) || path.len() > 4 * MAX_COMPARED_CHARS {
        return None;
    }
    let wanted: Vec<String> = folder.split('/').map(fold_name).collect();
    let (mut deepest, mut spellings): (usize, Vec<&str>) = (0, Vec::new());
    for known in files.keys().take(MAX_COMPARED_FILES) {
        let Some((known_folder, _)) = known.rsplit_once('/') else { continue };
        let parts = known_folder.split('/').zip(&wanted);
        let depth = parts.take_while(|(part, wanted)| fold_name(part) == **wanted).count();
        if depth == 0 || depth < deepest {
            continue;
        }
        let spelling = known.match_indices('/').nth(depth - 1).map_or(known_folder, |(end, _)| &known[..end]);
        if depth > deepest {
            (deepest, spellings) = (depth, Vec::new());
        }
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    let [spelling] = spellings.as_slice() else { return None }; // none, or it could be either
    let rest: Vec<&str> = path.split('/').skip(deepest).collect();
    Some(format!("{spelling}/{}", rest.join("/")))
}

/// Returns the argument that names a file or folder for a tool, and what it's for.
fn path_argument(tool: BuiltInTool) -> Option<(&'static str, PathUse)> {
    match tool {
        BuiltInTool::WriteFile => Some(("path", PathUse::Written)),
        BuiltInTool::ReadFile
        | BuiltInTool::EditFile
        | BuiltInTool::DeleteFile
        | BuiltInTool::RunCell
        | BuiltInTool::ProposeView
        | BuiltInTool::GitBlame => Some(("path", PathUse::Existing)),
        BuiltInTool::GitDiff | BuiltInTool::GitLog => Some(("path", PathUse::Folder)),
        BuiltInTool::ListFiles => Some(("directory", PathUse::Folder)),
        BuiltInTool::GitClone => Some(("directory", PathUse::New)),
        _ => None, // tidy: open because other tools name no file.
    }
}

/// Returns whether a tool has a `volume` argument.
pub fn takes_volume(tool: BuiltInTool) -> bool {
    path_argument(tool).is_some() || tool.is_for_git()
}

/// Returns the path of the note that a call means where it leaves out the extension: rules hold for a file's own path.
fn complete_note_path<T>(files: &BTreeMap<String, T>, path: &str) -> String {
    let note = format!("{path}.md");
    let is_short = !files.contains_key(path) && !is_folder(files, path) && files.contains_key(&note);
    if is_short { note } else { path.to_owned() }
}

/// Rewrites the arguments of a call to their canonical form: `path` is relative to its volume, and `volume` is there
/// only for another volume than the run's own.
///
/// # Errors
/// Returns an error if the call names an unknown volume; the arguments are unchanged then.
pub fn normalize_arguments<T>(
    volumes: &[KnownVolume<'_, T>],
    tool: BuiltInTool,
    arguments: &mut Map<String, Value>,
) -> Result<(), PathError> {
    if !takes_volume(tool) {
        return Ok(());
    }
    let named = arguments.get("volume").and_then(Value::as_str).map(ToOwned::to_owned);
    let mut place = match &named {
        Some(name) => find_volume(volumes, name)?,
        None => PathPlace::Volume(0),
    };
    if let Some((key, purpose)) = path_argument(tool)
        && let Some(Value::String(path)) = arguments.get(key)
    {
        let resolved = resolve(volumes, named.as_deref(), path, purpose)?;
        place = resolved.place;
        let files = match place {
            // A folder that a clone makes has no extension to leave out.
            PathPlace::Volume(at) => volumes.get(at).map(|volume| volume.files).filter(|_| key == "path"),
            PathPlace::System => None,
        };
        let path = files.map_or_else(|| resolved.path.clone(), |files| complete_note_path(files, &resolved.path));
        arguments.insert(key.to_owned(), Value::String(path));
    }
    if let Some(Value::Array(files)) = arguments.get_mut("files") {
        for file in files.iter_mut() {
            let Some(path) = file.as_str() else { continue };
            let resolved = resolve(volumes, named.as_deref(), path, PathUse::Folder)?;
            if resolved.place == place {
                *file = Value::String(resolved.path);
            }
        }
    }
    match place {
        PathPlace::Volume(0) => _ = arguments.remove("volume"),
        PathPlace::Volume(at) => {
            let name = volumes.get(at).map_or("", |volume| volume.name).to_owned();
            arguments.insert("volume".to_owned(), Value::String(name));
        }
        PathPlace::System => {
            let name = system_volume::SYSTEM_VOLUME_NAME.to_owned();
            arguments.insert("volume".to_owned(), Value::String(name));
        }
    }
    Ok(())
}

/// Returns a sentence with the paths closest to the one that a call names and that isn't there.
pub fn closest_to_call<T>(files: &BTreeMap<String, T>, arguments: &Map<String, Value>) -> String {
    let one =
        ["path", "directory"].iter().filter_map(|key| arguments.get(*key)?.as_str()).find(|path| !path.is_empty());
    let mut several = arguments.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing = one.or_else(|| several.find(|path| !files.contains_key(*path) && !is_folder(files, path)));
    missing.map_or_else(String::new, |path| closest_sentence(path, files.keys().map(String::as_str)))
}

/// Returns whether a call may change files of its volume, so that a read-only volume refuses it.
pub fn changes_volume(tool: BuiltInTool) -> bool {
    matches!(
        tool,
        BuiltInTool::WriteFile
            | BuiltInTool::EditFile
            | BuiltInTool::DeleteFile
            | BuiltInTool::ProposeView
            | BuiltInTool::ProposeComponent
            | BuiltInTool::GitAdd
            | BuiltInTool::GitCommit
            | BuiltInTool::GitPull
            | BuiltInTool::GitBranch
            | BuiltInTool::GitSwitch
            | BuiltInTool::GitMerge
            | BuiltInTool::GitStash
            | BuiltInTool::GitClone
            | BuiltInTool::Shell
            | BuiltInTool::RunPython
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn files(paths: &[&str]) -> BTreeMap<String, ()> {
        paths.iter().map(|path| ((*path).to_owned(), ())).collect()
    }

    fn resolved(path: &str, purpose: PathUse, volume: Option<&str>) -> (PathPlace, String, bool) {
        let own = files(&["Note.md", "calc.py", "sub/deep.md", "Old-Plan.md"]);
        let other = files(&["Note.md", "Only here.md"]);
        let nested = files(&["nest/a.md"]);
        let volumes = [
            KnownVolume { name: "proj", root: Some(Path::new("/home/ada/proj")), kind: None, files: &own },
            KnownVolume { name: "nb", root: None, kind: None, files: &other },
            KnownVolume { name: "nest", root: None, kind: None, files: &nested },
        ];
        let found = resolve(&volumes, volume, path, purpose).expect("a known volume");
        (found.place, found.path, found.exists)
    }

    #[test]
    fn every_way_to_write_a_path_leads_to_the_same_file() {
        let own = |path: &str| (PathPlace::Volume(0), path.to_owned(), true);
        for path in ["Note.md", "/Note.md", "./Note.md", "proj/Note.md", "/proj/Note.md", "proj:Note.md", "note.md"] {
            assert_eq!(resolved(path, PathUse::Existing, None), own("Note.md"), "{path}");
            assert_eq!(resolved(path, PathUse::Existing, Some("proj")), own("Note.md"), "{path}");
            assert_eq!(resolved(path, PathUse::Existing, Some("user")), own("Note.md"), "{path}");
        }
        assert_eq!(resolved("/home/ada/proj/sub/deep.md", PathUse::Existing, None), own("sub/deep.md"));
        assert_eq!(resolved("old_plan", PathUse::Existing, None), own("Old-Plan.md"));
        let other = (PathPlace::Volume(1), "Only here.md".to_owned(), true);
        assert_eq!(resolved("nb/Only here.md", PathUse::Existing, None), other);
        assert_eq!(resolved("Only here.md", PathUse::Existing, Some("NB")), other);
        for folder in ["", "/", ".", "proj", "proj/", "/proj"] {
            assert_eq!(resolved(folder, PathUse::Folder, None), own(""), "{folder}");
        }
        assert_eq!(resolved("proj/sub/", PathUse::Folder, None), own("sub"));
    }

    #[test]
    fn a_volume_in_front_is_never_a_folder_unless_there_is_one() {
        let new = |path: &str| (PathPlace::Volume(0), path.to_owned(), false);
        for path in ["new.md", "/new.md", "proj/new.md", "/proj/new.md"] {
            assert_eq!(resolved(path, PathUse::New, None), new("new.md"), "{path}");
            assert_eq!(resolved(path, PathUse::New, Some("proj")), new("new.md"), "{path}");
        }
        assert_eq!(resolved("nb/new.md", PathUse::New, None), new("nb/new.md"), "a folder may be meant");
        assert_eq!(resolved("nest/new.md", PathUse::New, Some("nest")).1, "nest/new.md", "such a folder exists");
        assert_eq!(resolved("/etc/passwd", PathUse::Existing, None), new("/etc/passwd"), "for the policy to refuse");
    }

    #[test]
    fn what_is_written_has_the_case_of_what_is_there() {
        let written = |path: &str| resolved(path, PathUse::Written, None);
        let at = |path: &str, exists: bool| (PathPlace::Volume(0), path.to_owned(), exists);
        assert_eq!(written("proj/note.MD"), at("Note.md", true));
        assert_eq!(written("SUB/Deep.md"), at("sub/deep.md", true));
        assert_eq!(written("Sub/new.md"), at("sub/new.md", false));
        assert_eq!(written("/proj/SUB/Deeper/New.md"), at("sub/Deeper/New.md", false));
        assert_eq!(written("old_plan.md"), at("old_plan.md", false), "another name");
        assert_eq!(written("calc"), at("calc", false), "another name");
        assert_eq!(resolved("Sub/note.md", PathUse::New, None), at("Sub/note.md", false), "exactly this name");
        let either = files(&["a/x.md", "A/x.md"]);
        let volumes = [KnownVolume { name: "proj", root: None, kind: None, files: &either }];
        for path in ["A/X.md", "A/new.md", "b/new.md"] {
            let found = resolve(&volumes, None, path, PathUse::Written).expect("a known volume");
            assert_eq!((found.path.as_str(), found.exists), (path, false), "it could be either, or there's none");
        }
    }

    #[test]
    fn a_path_outside_of_volumes_means_what_it_fits_best() {
        let own = files(&["Note.md", "sub/deep.md", "Old-Plan.md", "proj/in.md", "in.md", "other/Week.md"]);
        let other = files(&["Note.md", "Only here.md", "week.md", "pic.png"]);
        let volumes = [
            KnownVolume { name: "proj", root: Some(Path::new("/home/ada/proj")), kind: None, files: &own },
            KnownVolume { name: "NB", root: Some(Path::new("/home/ada/nb")), kind: None, files: &other },
        ];
        let found = |path: &str| find_files(&volumes, path, Path::new("/home/ada/proj/sub"), |_| true);
        assert_eq!(found("Note.md"), [(0, "Note.md"), (1, "Note.md")], "it could be either");
        for path in ["proj/Note.md", "/proj/Note", "PROJ:note.md", "/home/ada/proj/Note.md", "Proj/Note"] {
            assert_eq!(found(path), [(0, "Note.md")], "{path}");
        }
        for path in ["nb/only-here", "Only_here.md", "NB:Only here", "/nb/ONLY HERE.MD", "here"] {
            assert_eq!(found(path).len(), usize::from(path != "here"), "{path}");
        }
        assert_eq!(found("old_plan"), [(0, "Old-Plan.md")]);
        assert_eq!((found("deep.md"), found("./deep.md")), (vec![(0, "sub/deep.md")], vec![(0, "sub/deep.md")]));
        assert_eq!((found("proj/in.md"), found("proj/in")), (vec![(0, "proj/in.md")], vec![(0, "proj/in.md")]));
        assert_eq!(found("proj/proj/in.md"), [(0, "proj/in.md")], "the volume, and the folder that is called so");
        assert_eq!(found("Week"), [(1, "week.md")], "the whole path comes first");
        for path in ["", "/", "proj", "sub/", "nowhere", "system/agents/system.md"] {
            assert!(found(path).is_empty(), "{path}");
        }
        assert!(find_files(&volumes, "pic.png", Path::new("/"), |_| false).is_empty(), "none is meant");
    }

    #[test]
    fn the_word_for_a_kind_names_the_only_volume_of_that_kind() {
        let (own, shared) = (files(&["Note.md", "user.md"]), files(&["Plan.md", "sub/a.md"]));
        let known = |kinds: [Option<VolumeKind>; 2], path: &str, volume: Option<&str>, purpose: PathUse| {
            let volumes = [
                KnownVolume { name: "proj", root: None, kind: kinds[0], files: &own },
                KnownVolume { name: "Harbor", root: None, kind: kinds[1], files: &shared },
            ];
            resolve(&volumes, volume, path, purpose).map(|found| (found.place, found.path))
        };
        let (user, team) = (Some(VolumeKind::User), Some(VolumeKind::Team));
        let at = |place: usize, path: &str| Ok((PathPlace::Volume(place), path.to_owned()));
        for (path, volume) in
            [("Plan.md", Some("team")), ("team/Plan.md", None), ("/Team/plan", None), ("team:Plan.md", Some("Harbor"))]
        {
            assert_eq!(known([user, team], path, volume, PathUse::Existing), at(1, "Plan.md"), "{path}");
        }
        assert_eq!(known([user, team], "new.md", Some("team"), PathUse::New), at(1, "new.md"));
        assert_eq!(known([user, team], "user/Note.md", None, PathUse::Existing), at(0, "Note.md"));
        assert_eq!(known([user, team], "user/new.md", None, PathUse::New), at(0, "new.md"));
        assert_eq!(known([user, team], "user", None, PathUse::Existing), at(0, "user"), "a note may be called so");
        assert_eq!(known([team, user], "Plan.md", Some("user"), PathUse::Existing), at(1, "Plan.md"), "not the own");
        assert_eq!(known([team, team], "team/Plan.md", None, PathUse::Existing), at(0, "team/Plan.md"), "either");
        let why = known([team, team], "Plan.md", Some("team"), PathUse::Existing).expect_err("it could be either");
        assert!(why.to_string().contains("no volume “team”"), "{why}");
    }

    #[test]
    fn system_has_the_names_of_the_seed() {
        for path in ["system/agents/system.md", "/system/agents/SystemAgent.md", "system/Agents/system_agent.md"] {
            let (place, path, exists) = resolved(path, PathUse::Existing, None);
            assert_eq!((place, path.as_str(), exists), (PathPlace::System, "agents/system.md", true));
        }
        let (place, path, exists) = resolved("agents/MemoryAnalysisAgent.md", PathUse::Existing, Some("system"));
        assert_eq!((place, path.as_str(), exists), (PathPlace::System, "agents/memory-analysis.md", true));
        assert_eq!(resolved("system/agents/x.md", PathUse::New, None).0, PathPlace::System);
    }

    #[test]
    fn arguments_become_canonical() {
        let own = files(&["Note.md"]);
        let volumes = [KnownVolume { name: "proj", root: None, kind: None, files: &own }];
        let normalized = |tool, given: Value| {
            let mut arguments = given.as_object().cloned().expect("an object");
            normalize_arguments(&volumes, tool, &mut arguments).map(|()| Value::Object(arguments))
        };
        let read = normalized(BuiltInTool::ReadFile, json!({"volume": "proj", "path": "/proj/Note.md"}));
        assert_eq!(read, Ok(json!({"path": "Note.md"})));
        for path in ["Note", "/proj/Note", "./Note"] {
            for tool in [BuiltInTool::ReadFile, BuiltInTool::WriteFile, BuiltInTool::DeleteFile] {
                assert_eq!(normalized(tool, json!({"path": path})), Ok(json!({"path": "Note.md"})), "{path}");
            }
        }
        let clone = json!({"repository": "https://example.org/x.git", "directory": "Note"});
        assert_eq!(normalized(BuiltInTool::GitClone, clone.clone()), Ok(clone), "the folder's name is free");
        let commit = json!({"volume": "user", "message": "m", "files": ["proj/Note.md", "new.md"]});
        assert_eq!(
            normalized(BuiltInTool::GitCommit, commit),
            Ok(json!({"message": "m", "files": ["Note.md", "new.md"]}))
        );
        let why = normalized(BuiltInTool::ReadFile, json!({"volume": "nowhere", "path": "a"})).expect_err("unknown");
        assert_eq!(why.to_string(), "There is no volume “nowhere”. There are: proj, system.");
    }
}
