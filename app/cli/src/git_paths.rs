//! Names of files for `git` as search and tools show them: with the volume in front, or with `/` for its root. What Git
//! knows in the folder itself comes first, so a name means what it means to Git.

use super::CliError;
use super::parse::PATH_MARK;
use crate::git_commands::GitArguments;
use agent::config::{VolumeKind, VolumeSettings};
use agent::name_suggestions;
use agent::path_resolver::{self, KnownVolume, PathPlace, PathUse};
use host::maintenance::configuration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::disk::{VolumeMount, read_marker};
use vcs::RepositoryFolder;

/// A volume and its folder on this device.
pub(super) struct GitVolume {
    /// Name of the volume.
    pub(super) name: String,
    /// Its folder.
    pub(super) root: PathBuf,
    /// Its kind, if the configuration says it.
    pub(super) kind: Option<VolumeKind>,
}

impl GitVolume {
    /// Returns whether a name may begin with the volume.
    fn is_named_by(&self, name: &str) -> bool {
        let first = name.trim_start_matches('/').split(['/', ':']).next().unwrap_or_default();
        first.eq_ignore_ascii_case(&self.name)
            || self.kind.is_some_and(|kind| first.eq_ignore_ascii_case(kind.as_str()))
            || Path::new(name).starts_with(&self.root)
    }

    /// Returns the files that Git knows in the volume, or would offer to add.
    fn files(&self) -> BTreeMap<String, ()> {
        let found = RepositoryFolder::open(&self.root).and_then(|repository| repository.project_files());
        let found = found.unwrap_or_default(); // without a repository, no name is found in it
        found.tracked.into_iter().chain(found.untracked).map(|path| (path, ())).collect()
    }
}

/// Where a subcommand runs, and its arguments with paths relative to that folder.
pub(super) struct GitPlace {
    /// The folder.
    pub(super) folder: PathBuf,
    /// The arguments.
    pub(super) args: GitArguments,
    /// The first name that means no file, and a sentence with the closest ones.
    missing: Option<(String, String)>,
}

impl GitPlace {
    /// Adds the closest paths to an error about a name that means no file.
    pub(super) fn explain(&self, mut error: CliError) -> CliError {
        // Git names only the beginning of a whole path that isn't there.
        let is_about = |name: &str| name.starts_with('/') || error.why.contains(name);
        if let Some((name, closest)) = self.missing.as_ref().filter(|(name, _)| is_about(name)) {
            // What has a mark of revisions isn't a path.
            let is_path = !name.contains(['~', '^', '@']);
            if is_path && !closest.is_empty() {
                let end = if error.why.ends_with(['.', '!', '?']) { "" } else { "." };
                error.why.push_str(end);
                error.why.push_str(closest);
            }
        }
        error
    }
}

/// Finds the files that a subcommand names, among the volumes of a workspace.
///
/// The workspace isn't opened for this, because another process may have it open.
pub(super) fn find_in_workspace(workspace: &Path, here: &Path, args: &GitArguments) -> Result<GitPlace, CliError> {
    // A workspace that can't be read has no volumes here; its own commands report it.
    let volumes = || -> Vec<GitVolume> {
        let mounts = read_marker(workspace).ok().flatten().unwrap_or_default();
        let settings: VolumeSettings =
            configuration::load_config(workspace).map(|config| config.volumes).unwrap_or_default();
        let volume =
            |mount: VolumeMount| GitVolume { kind: settings.kind(&mount.name), name: mount.name, root: mount.path };
        mounts.into_iter().map(volume).collect()
    };
    find_files(volumes, here, args)
}

/// Finds the files that a subcommand names, relative to `here` or in one of the volumes. It runs in the folder of the
/// volume if a name begins with it.
pub(super) fn find_files(
    volumes: impl FnOnce() -> Vec<GitVolume>,
    here: &Path,
    args: &GitArguments,
) -> Result<GitPlace, CliError> {
    let mut place = GitPlace { folder: here.to_owned(), args: args.clone(), missing: None };
    let takes_revisions = matches!(args.verb.as_str(), "diff" | "log");
    let mark = args.names.iter().position(|name| takes_revisions && name == PATH_MARK);
    let first_file = mark.map_or(0, |mark| mark + 1);
    let takes_files = takes_revisions
        || matches!(args.verb.as_str(), "blame" | "add" | "restore" | "resolve" | "conflicts" | "commit");
    if !takes_files || github::find_folder(here).is_some() {
        return Ok(place);
    }
    let repository = RepositoryFolder::open(here).ok();
    let is_known = |name: &str| repository.as_ref().is_some_and(|repository| repository.is_known_folder(name).is_ok());
    let is_revision = |name: &String| {
        let means_commit = |repository: &RepositoryFolder| repository.commit_range(std::slice::from_ref(name)).is_ok();
        takes_revisions && mark.is_none() && (name.contains("..") || repository.as_ref().is_some_and(means_commit))
    };
    let names: Vec<(usize, &String)> = args.names.iter().enumerate().skip(first_file).collect();
    let is_unknown = |&&(_, name): &&(usize, &String)| !is_known(name) && !is_revision(name);
    let unknown: Vec<(usize, &String)> = names.iter().filter(is_unknown).copied().collect();
    if unknown.is_empty() {
        return Ok(place);
    }
    let (mut volumes, inside) = volumes_around(volumes(), here);
    let own = volumes.remove(0);
    volumes.retain(|volume| unknown.iter().any(|(_, name)| volume.is_named_by(name)));
    volumes.insert(0, own);
    let files: Vec<BTreeMap<String, ()>> = volumes.iter().map(GitVolume::files).collect();
    let known = volumes.iter().zip(&files).map(|(volume, files)| KnownVolume {
        name: &volume.name,
        root: Some(volume.root.as_path()),
        kind: volume.kind,
        files,
    });
    let known: Vec<KnownVolume<'_, ()>> = known.collect();
    let mut found: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for (at, name) in unknown {
        let is_of_volume = name.starts_with('/') || volumes.iter().any(|volume| volume.is_named_by(name));
        let word = if is_of_volume { name.clone() } else { join(&inside, name) };
        let resolved = path_resolver::resolve(&known, None, &word, PathUse::Folder).map_err(CliError::usage)?;
        let volume = match resolved.place {
            PathPlace::Volume(volume) => volume,
            PathPlace::System if resolved.exists => {
                return Err(CliError::usage("System has no history in Git: it is part of the program."));
            }
            PathPlace::System => 0,
        };
        let path = match (resolved.path.as_str(), takes_revisions) {
            // What changes files takes a whole volume only as `.`.
            ("", takes_all) => takes_all.then(|| ".".to_owned()),
            (path, _) => existing_path(&volumes[volume].root, path, &files[volume]),
        };
        match path {
            Some(path) => _ = found.insert(at, (volume, path)),
            // After `--`, a file may be in older commits only.
            None if mark.is_some() && is_of_volume && resolved.place == PathPlace::Volume(volume) => {
                found.insert(at, (volume, resolved.path));
            }
            None if place.missing.is_none() => {
                // A volume in front says which files were meant.
                let meant = (1..volumes.len()).find(|at| volumes[*at].is_named_by(name)).unwrap_or(volume);
                let known = files[meant].keys().map(|path| match meant {
                    0 => path.clone(),
                    _ => format!("{}/{path}", volumes[meant].name),
                });
                let known: Vec<String> = known.collect();
                let closest = name_suggestions::closest_sentence(&word, known.iter().map(String::as_str));
                place.missing = Some((name.clone(), closest));
            }
            None => {}
        }
    }
    let Some((volume, _)) = found.values().next().cloned() else { return Ok(place) };
    for (at, name) in names {
        let path = match found.remove(&at) {
            Some((other, path)) if other == volume => path,
            None if !is_known(name) => continue,
            None if volume == 0 => join(&inside, name),
            Some(_) | None => {
                let why = "files of several volumes are named; name those of one volume at a time";
                return Err(CliError::usage(format!("{why}, so not {name}")));
            }
        };
        place.args.names[at] = path;
    }
    place.folder.clone_from(&volumes[volume].root);
    let name = &volumes[volume].name;
    if place.args.volume.is_none() && place.folder != here && !name.is_empty() {
        place.args.volume = Some(name.clone()); // for what messages advise
    }
    Ok(place)
}

/// Returns the path of a file or folder that Git knows in the folder: as it is, or with `.md`.
fn existing_path(root: &Path, path: &str, files: &BTreeMap<String, ()>) -> Option<String> {
    let note = format!("{path}.md");
    let is_known = RepositoryFolder::open(root).is_ok_and(|repository| repository.is_known_folder(path).is_ok());
    if is_known { Some(path.to_owned()) } else { Some(note).filter(|note| files.contains_key(note)) }
}

/// Puts the innermost volume around a folder first, or the folder itself if there's none. Returns the path of the
/// folder in it, too.
fn volumes_around(mut volumes: Vec<GitVolume>, here: &Path) -> (Vec<GitVolume>, String) {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(here);
    let depth = |volume: &GitVolume| real(&volume.root).components().count();
    let around = volumes.iter().enumerate().filter(|(_, volume)| folder.starts_with(real(&volume.root)));
    let innermost = around.max_by_key(|(_, volume)| depth(volume)).map(|(at, _)| at);
    let own = match innermost {
        Some(at) => volumes.remove(at),
        None => GitVolume { name: String::new(), root: here.to_owned(), kind: None },
    };
    let inside = folder.strip_prefix(real(&own.root)).unwrap_or(Path::new(""));
    let parts: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    volumes.insert(0, own);
    (volumes, parts.join("/"))
}

/// Returns a name in a folder, which is empty for the root.
fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
