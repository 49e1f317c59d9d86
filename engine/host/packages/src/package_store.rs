//! Installs, updates and removes packages in a workspace. What will change is on disk, with all new bytes, before the
//! first file changes. So after a crash the change is finished; before that point nothing has happened.

use crate::package_lock::LOCK_FILE;
use crate::{
    InstalledFile, InstalledPackage, InstalledVolume, PackageContent, PackageError, PackageLock, PackagePart,
    PackageSource,
};
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::confined_dir::ConfinedFolder;
use host::fs::copy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::BlobHash;

/// Folder in the workspace's folder with a change that isn't finished.
const PENDING_FOLDER: &str = "packages.pending";
/// File in it that says what changes. Without it, nothing has changed yet.
const PLAN_FILE: &str = "plan.json";
/// Maximum size of a plan in bytes.
const MAX_PLAN_BYTES: u64 = 32 << 20;
/// Maximum size of a file that is compared with a package's, in bytes. A larger one is the user's.
const MAX_COMPARED_BYTES: u64 = 4 << 20;

/// Where the files of packages go.
#[derive(Clone, Debug)]
pub struct InstallTargets {
    /// The volume that gets notes, with its folder; `None` if the package has none.
    pub volume: Option<(InstalledVolume, PathBuf)>,
    /// Path of the folder of templates in volumes.
    pub templates: String,
}

/// A file that changes: from one hash to another, where `None` means that it doesn't exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStep {
    root: PathBuf,
    path: String,
    before: Option<BlobHash>,
    after: Option<BlobHash>,
}

/// A change of installed packages, ready to be carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedChange {
    steps: Vec<FileStep>,
    /// Folders that are removed if they are empty afterwards.
    emptied: Vec<(PathBuf, String)>,
    /// The lock file afterwards, and the hash of the one before.
    lock: PackageLock,
    lock_before: Option<BlobHash>,
    /// Names of tools that are no longer there.
    gone_tools: Vec<String>,
    /// Files that stay as they are because the user has changed or deleted them.
    kept: Vec<String>,
    /// Bytes of the new files.
    #[serde(skip)]
    bytes: Vec<Vec<u8>>,
}

/// What a change has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettledChange {
    /// Files that stay as they are because the user has changed or deleted them.
    pub kept: Vec<String>,
    /// Names of tools whose registration must be removed before [`PackageStore::finish`].
    pub gone_tools: Vec<String>,
    /// Folders of volumes in which files have changed.
    pub changed_roots: BTreeSet<PathBuf>,
}

/// The packages of a workspace. Only the process that owns the workspace may use it.
#[derive(Clone, Debug)]
pub struct PackageStore {
    workspace: PathBuf,
}

impl PackageStore {
    /// Creates the store of a workspace.
    pub fn new(workspace: &Path) -> PackageStore {
        PackageStore { workspace: workspace.to_owned() }
    }

    /// Returns what is installed.
    ///
    /// # Errors
    /// Returns an error if the lock file can't be read.
    pub fn lock(&self) -> Result<PackageLock, PackageError> {
        Ok(PackageLock::read(&self.workspace)?.0)
    }

    /// Returns whether a change was interrupted, by a crash for instance.
    pub fn has_interrupted_change(&self) -> bool {
        copy::exists(&self.workspace.join(PENDING_FOLDER))
    }

    fn root_of<'a>(&'a self, part: PackagePart, volume: Option<&'a Path>) -> Option<&'a Path> {
        if part.is_note() { volume } else { Some(&self.workspace) }
    }

    /// Returns the files of a package that the user has changed, and those that are gone.
    pub fn changed_files(&self, package: &InstalledPackage, volume: Option<&Path>) -> (Vec<String>, Vec<String>) {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for file in &package.files {
            let Some(root) = self.root_of(file.part, volume) else { continue };
            match current_hash(root, &file.path) {
                CurrentFile::Missing => gone.push(file.path.clone()),
                CurrentFile::Known(hash) if hash == file.hash => {}
                CurrentFile::Known(_) | CurrentFile::Other => changed.push(file.path.clone()),
            }
        }
        (changed, gone)
    }

    /// Plans to install a package, or another version of an installed one.
    ///
    /// # Errors
    /// Returns an error if a file of the user's is where one of the package should be. Nothing has changed then.
    pub fn plan_install(
        &self,
        content: &PackageContent,
        source: &PackageSource,
        targets: &InstallTargets,
    ) -> Result<PlannedChange, PackageError> {
        let (mut lock, lock_before) = PackageLock::read(&self.workspace)?;
        let name = &content.manifest.name;
        let old = lock.packages.get(name).cloned();
        let volume_root = targets.volume.as_ref().map(|(_, root)| root.as_path());
        let mut change = PlannedChange::new(lock_before);
        let mut files = Vec::new();
        for (part, file, bytes) in content.parts() {
            let folder = part.target_folder(&targets.templates);
            let root = self.root_of(part, volume_root).ok_or_else(|| {
                PackageError::Conflict(format!("{name} has notes, which need a volume; name one with --volume"))
            })?;
            let known = old
                .iter()
                .flat_map(|old| &old.files)
                .find(|known| known.part == part && known.path.rsplit('/').next() == Some(file));
            // A file stays where it was installed, even if the setting for templates has changed since.
            let path = known.map_or_else(
                || format!("{folder}/{file}").trim_start_matches('/').to_owned(),
                |known| known.path.clone(),
            );
            let after = BlobHash::of(bytes);
            let current = current_hash(root, &path);
            match (known, current) {
                (_, CurrentFile::Known(hash)) if known.is_some() && hash == after => {}
                (Some(known), CurrentFile::Known(hash)) if hash == known.hash => {
                    change.add_step(root, &path, Some(hash), Some((after, bytes)));
                }
                (Some(_), _) => change.kept.push(path.clone()),
                (None, CurrentFile::Missing) => {
                    let volume =
                        targets.volume.as_ref().filter(|_| part.is_note()).map(|(volume, _)| volume.id.clone());
                    lock.made_folders.extend(missing_folders(root, &path).map(|folder| (volume.clone(), folder)));
                    change.add_step(root, &path, None, Some((after, bytes)));
                }
                (None, CurrentFile::Known(_) | CurrentFile::Other) => {
                    return Err(PackageError::Conflict(format!(
                        "there is a file {path} already, which isn't from this package; rename or delete it first"
                    )));
                }
            }
            files.push(InstalledFile { part, path, hash: after });
        }
        if let Some(old) = &old {
            let is_gone =
                |file: &&InstalledFile| files.iter().all(|now| now.path != file.path || now.part != file.part);
            self.remove_files(&mut change, old.files.iter().filter(is_gone), volume_root);
            change.forget_tools_except(old, |tool| content.tools.contains_key(tool));
        }
        let manifest = &content.manifest;
        let path_of = |file: &String| format!("{}/{file}", PackagePart::Tools.target_folder(&targets.templates));
        let tools = content.tools.iter().map(|(name, file)| (name.clone(), path_of(file))).collect();
        let installed = InstalledPackage {
            name: name.clone(),
            version: manifest.version.clone(),
            source: source.clone(),
            hash: content.hash,
            signer: content.signer.clone(),
            permissions: manifest.permissions.clone(),
            volume: targets.volume.as_ref().map(|(volume, _)| volume.clone()).filter(|_| content.has_notes()),
            files,
            tools,
        };
        lock.packages.insert(name.clone(), installed);
        change.lock = lock;
        Ok(change)
    }

    /// Plans to remove a package. `volume` is the folder of the volume with its notes, if it's still there.
    ///
    /// # Errors
    /// Returns an error if no such package is installed.
    pub fn plan_removal(&self, name: &str, volume: Option<&Path>) -> Result<PlannedChange, PackageError> {
        let (mut lock, lock_before) = PackageLock::read(&self.workspace)?;
        let old = lock.package(name)?.clone();
        let mut change = PlannedChange::new(lock_before);
        self.remove_files(&mut change, old.files.iter(), volume);
        change.forget_tools_except(&old, |_| false);
        lock.packages.remove(name);
        let volume_id = old.volume.as_ref().map(|volume| volume.id.clone());
        let mut folders: Vec<_> = lock.made_folders.iter().cloned().collect();
        // Inner folders first.
        folders.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        for (owner, path) in folders {
            let root = match &owner {
                None => Some(self.workspace.as_path()),
                Some(owner) if Some(owner) == volume_id.as_ref() => volume,
                Some(_) => continue,
            };
            let is_used = lock.packages.values().any(|package| {
                let has_owner = |file: &&InstalledFile| {
                    let volume = package.volume.as_ref().filter(|_| file.part.is_note()).map(|volume| &volume.id);
                    volume == owner.as_ref()
                };
                package.files.iter().filter(has_owner).any(|file| file.path.starts_with(&format!("{path}/")))
            });
            if !is_used {
                change.emptied.extend(root.map(|root| (root.to_owned(), path.clone())));
                lock.made_folders.remove(&(owner, path));
            }
        }
        change.lock = lock;
        Ok(change)
    }

    fn remove_files<'a>(
        &self,
        change: &mut PlannedChange,
        files: impl Iterator<Item = &'a InstalledFile>,
        volume: Option<&Path>,
    ) {
        for file in files {
            let Some(root) = self.root_of(file.part, volume) else { continue };
            match current_hash(root, &file.path) {
                CurrentFile::Missing => {}
                CurrentFile::Known(hash) if hash == file.hash => change.add_step(root, &file.path, Some(hash), None),
                CurrentFile::Known(_) | CurrentFile::Other => change.kept.push(file.path.clone()),
            }
        }
    }

    /// Carries out a change. Call [`PackageStore::finish`] when everything that follows from it is done.
    ///
    /// # Errors
    /// Returns an error if the disk fails. What was begun is then finished by the next command.
    pub fn carry_out(&self, change: &PlannedChange) -> Result<SettledChange, PackageError> {
        let pending = self.workspace.join(PENDING_FOLDER);
        let fail = |error: std::io::Error| PackageError::io("writing", &pending, &error);
        self.finish()?;
        std::fs::create_dir(&pending).map_err(fail)?;
        for bytes in &change.bytes {
            let place = pending.join(BlobHash::of(bytes).to_string());
            replace_file(&place, None, bytes)?;
        }
        let plan = serde_json::to_vec(change).map_err(|error| fail(std::io::Error::other(error)))?;
        replace_file(&pending.join(PLAN_FILE), None, &plan)?;
        self.settle(change)
    }

    /// Finishes a change that was interrupted. One that has changed nothing yet is given up.
    ///
    /// # Errors
    /// Returns an error if the disk fails, or the plan can't be read.
    pub fn resume(&self) -> Result<Option<SettledChange>, PackageError> {
        let place = self.workspace.join(PENDING_FOLDER).join(PLAN_FILE);
        if !copy::exists(&place) {
            self.finish()?;
            return Ok(None);
        }
        let refuse = |why: &str| {
            let place = place.display();
            PackageError::Lock(format!("a change of packages was interrupted, and {place} can't be read: {why}"))
        };
        let bytes = copy::read(&place, MAX_PLAN_BYTES).ok_or_else(|| refuse("it's no ordinary file"))?;
        let change: PlannedChange = serde_json::from_slice(&bytes).map_err(|error| refuse(&error.to_string()))?;
        self.remove_leftovers(&change);
        self.settle(&change).map(Some)
    }

    /// Removes the temporary files that a killed process has left beside the files of a change. What another program
    /// writes at this moment isn't one of them: it has other bytes.
    fn remove_leftovers(&self, change: &PlannedChange) {
        let pending = self.workspace.join(PENDING_FOLDER);
        let planned = |hash: &BlobHash| copy::read(&pending.join(hash.to_string()), MAX_COMPARED_BYTES);
        let mut news: Vec<Vec<u8>> = change.steps.iter().filter_map(|step| planned(step.after.as_ref()?)).collect();
        news.push(change.lock.to_bytes());
        let olds: Vec<BlobHash> =
            change.steps.iter().filter_map(|step| step.before).chain(change.lock_before).collect();
        let mut places: BTreeSet<(&Path, &str)> =
            change.steps.iter().map(|step| (step.root.as_path(), step.path.as_str())).collect();
        places.insert((self.workspace.as_path(), LOCK_FILE));
        let mut seen = BTreeSet::new();
        for (root, path) in places {
            if !seen.insert((root, path.rsplit_once('/').map_or("", |(folder, _)| folder))) {
                continue;
            }
            let Ok(confined) = open_root(root) else { continue };
            let Ok((above, _)) = confined.open_parent(path, false) else { continue };
            for entry in std::fs::read_dir(above.walk_path()).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_temporary =
                    name.to_str().is_some_and(|name| name.starts_with(".tracebook-") && name.ends_with(".tmp"));
                let place = above.join(&name);
                let Some(bytes) = copy::read(&place, MAX_COMPARED_BYTES).filter(|_| is_temporary) else { continue };
                // Nobody else writes into the folders for packages; in a volume, an empty file may be anyone's.
                let is_begun = !bytes.is_empty() || (root == self.workspace && path != LOCK_FILE);
                let is_ours = olds.contains(&BlobHash::of(&bytes)) || news.iter().any(|new| new.starts_with(&bytes));
                if is_begun && is_ours {
                    // What can't be removed is hidden, and does no harm.
                    let _ = std::fs::remove_file(place);
                }
            }
        }
    }

    /// Forgets a change that is complete.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn finish(&self) -> Result<(), PackageError> {
        let pending = self.workspace.join(PENDING_FOLDER);
        let fail = |error: std::io::Error| PackageError::io("removing", &pending, &error);
        // Without the plan, the rest is only leftovers.
        match std::fs::remove_file(pending.join(PLAN_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        match std::fs::remove_dir_all(&pending) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(fail(error)),
            _ => Ok(()),
        }
    }

    /// Performs the steps of a plan that are still to be done. Doing it again changes nothing.
    fn settle(&self, change: &PlannedChange) -> Result<SettledChange, PackageError> {
        let mut kept = change.kept.clone();
        for step in &change.steps {
            if !self.perform_step(step)? {
                kept.push(step.path.clone());
            }
        }
        for (root, path) in &change.emptied {
            if let Ok((above, name)) = open_root(root).and_then(|root| root.open_parent(path, false).map_err(refusal)) {
                // It stays if it holds something, or is gone already.
                let _ = std::fs::remove_dir(above.join(&name));
            }
        }
        let place = self.workspace.join(LOCK_FILE);
        if change.lock == PackageLock::default() {
            // The last removal leaves nothing, not even an empty list.
            match std::fs::remove_file(&place) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(PackageError::io("removing", &place, &error));
                }
                _ => return Ok(change.settled(&self.workspace, kept)),
            }
        }
        let bytes = change.lock.to_bytes();
        match replace_file(&place, change.lock_before, &bytes)? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                return Err(PackageError::Lock(format!(
                    "another program has changed {} in the middle of this; restore it, and try again",
                    place.display()
                )));
            }
        }
        Ok(change.settled(&self.workspace, kept))
    }

    /// Performs a step. Returns `false` if the user has changed the file meanwhile, so that it stays.
    fn perform_step(&self, step: &FileStep) -> Result<bool, PackageError> {
        let root = match open_root(&step.root) {
            Ok(root) => root,
            // A volume that is gone has no files to remove.
            Err(_) if step.after.is_none() => return Ok(true),
            Err(error) => return Err(error),
        };
        let Some(after) = step.after else {
            let Ok((above, name)) = root.open_parent(&step.path, false) else { return Ok(true) };
            return match current_hash(&step.root, &step.path) {
                CurrentFile::Missing => Ok(true),
                CurrentFile::Known(hash) if Some(hash) == step.before => {
                    let place = above.join(&name);
                    std::fs::remove_file(&place)
                        .map_err(|error| PackageError::io("removing", &step.root.join(&step.path), &error))?;
                    Ok(true)
                }
                CurrentFile::Known(_) | CurrentFile::Other => Ok(false),
            };
        };
        let place = self.workspace.join(PENDING_FOLDER).join(after.to_string());
        let bytes = copy::read(&place, MAX_COMPARED_BYTES).filter(|bytes| BlobHash::of(bytes) == after);
        let (above, name) = root.open_parent(&step.path, true).map_err(refusal)?;
        let Some(bytes) = bytes else {
            return Err(PackageError::Lock(format!("{} is damaged; add the package again", place.display())));
        };
        Ok(matches!(replace_file(&above.join(&name), step.before, &bytes)?, ReplaceOutcome::Done { .. }))
    }
}

impl PlannedChange {
    fn new(lock_before: Option<BlobHash>) -> PlannedChange {
        PlannedChange {
            steps: Vec::new(),
            emptied: Vec::new(),
            lock: PackageLock::default(),
            lock_before,
            gone_tools: Vec::new(),
            kept: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Lists the tools of a package whose files go. A tool whose file the user has changed is the user's own now.
    fn forget_tools_except(&mut self, old: &InstalledPackage, stays: impl Fn(&str) -> bool) {
        let is_gone = |(name, path): &(&String, &String)| !stays(name) && !self.kept.contains(path);
        self.gone_tools = old.tools.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
    }

    fn settled(&self, workspace: &Path, kept: Vec<String>) -> SettledChange {
        let roots = self.steps.iter().map(|step| &step.root);
        let changed_roots = roots.filter(|root| *root != workspace).cloned().collect();
        SettledChange { kept, gone_tools: self.gone_tools.clone(), changed_roots }
    }

    fn add_step(&mut self, root: &Path, path: &str, before: Option<BlobHash>, after: Option<(BlobHash, &[u8])>) {
        self.bytes.extend(after.map(|(_, bytes)| bytes.to_vec()));
        let after = after.map(|(hash, _)| hash);
        self.steps.push(FileStep { root: root.to_owned(), path: path.to_owned(), before, after });
    }
}

fn open_root(root: &Path) -> Result<ConfinedFolder, PackageError> {
    ConfinedFolder::open_chosen(root).map_err(refusal)
}

fn refusal(error: host::fs::confined_dir::OpenRefusal) -> PackageError {
    PackageError::Conflict(error.to_string())
}

/// What is at the place of a package's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentFile {
    Missing,
    Known(BlobHash),
    /// A folder, a link, or a file that no package has.
    Other,
}

fn current_hash(root: &Path, path: &str) -> CurrentFile {
    let Ok(confined) = ConfinedFolder::open_chosen(root) else { return CurrentFile::Missing };
    let (above, name) = match confined.open_parent(path, false) {
        Ok(found) => found,
        Err(error) if error.is_missing() => return CurrentFile::Missing,
        Err(_) => return CurrentFile::Other,
    };
    match above.metadata(&name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => CurrentFile::Missing,
        Ok(meta) if meta.is_file() => copy::read(&above.join(&name), MAX_COMPARED_BYTES)
            .map_or(CurrentFile::Other, |bytes| CurrentFile::Known(BlobHash::of(&bytes))),
        _ => CurrentFile::Other,
    }
}

/// Returns the folders above a path that don't exist yet.
fn missing_folders<'a>(root: &'a Path, path: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.filter(|folder| !copy::exists(&root.join(folder))).map(str::to_owned)
}
