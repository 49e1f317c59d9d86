//! Pulls: the files of the branch's last commit, merged file by file with what was changed here.
//!
//! All is downloaded and merged before the first file changes. A mark says which commit is being written, so that a
//! pull after a crash finishes that one first: each file is then either as before or as wanted, and doing it again
//! changes nothing.

use crate::api_client::{ApiClient, ApiControl};
use crate::api_error::{GitHubError, quoted};
use crate::blob_download::{WantedBlob, fetch_blobs};
use crate::clone_folder::set_program;
use crate::endpoints::{MAX_LISTED_COMMITS, RepositoryApi};
use crate::folder_record::FolderState;
use crate::local_files::{LocalFile, LocalState, open_root, read_local};
use crate::remote_tree::{RemoteTree, TreeFile, folders_above};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use store::BlobHash;
use text::note_merge::merge_notes;
use user_files::atomic_write::{SwapOutcome, read_regular_file, rename_new, replace_by_copy};
use user_files::confined_dir::{ConfinedFolder, ConfinedPath};
use vcs::Commit;

/// Maximum size in bytes of a file that is merged.
const MAX_MERGED_BYTES: usize = 16 << 20;
/// Maximum number of second versions of one file.
const MAX_SECOND_VERSIONS: usize = 100;

/// The outcome of a pull.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullSummary {
    /// Whether there was anything new.
    pub is_new: bool,
    /// Number of files that were created or replaced.
    pub written: usize,
    /// Number of files that were deleted.
    pub deleted: usize,
    /// Files whose changes from both sides were merged.
    pub merged: Vec<String>,
    /// Files in conflict that kept the user's version.
    pub kept: Vec<String>,
}

/// Returns the last commits, newest first: those of the pulled commit and before.
///
/// # Errors
/// Returns a [`GitHubError`] if they can't be listed.
pub fn list_commits(
    state: &FolderState,
    client: &ApiClient,
    control: &ApiControl<'_>,
    limit: usize,
) -> Result<Vec<Commit>, GitHubError> {
    let api = RepositoryApi { client, repository: &state.record.repository(), control };
    api.commits(&state.record.commit, limit.min(MAX_LISTED_COMMITS))
}

/// Returns whether the branch has commits that aren't here.
///
/// # Errors
/// Returns a [`GitHubError`] if the branch can't be read.
pub fn has_newer_commits(
    state: &FolderState,
    client: &ApiClient,
    control: &ApiControl<'_>,
) -> Result<bool, GitHubError> {
    let api = RepositoryApi { client, repository: &state.record.repository(), control };
    Ok(api.branch_commit(&state.record.branch)? != state.record.commit)
}

/// Gets the branch's last commit. With `keep_conflicts`, the other version of each file in conflict is written beside
/// it instead of refusing all.
///
/// # Errors
/// Returns a [`GitHubError`]. Then no file has changed, unless it's [`GitHubError::ChangedMeanwhile`] or a file can't
/// be written: the next pull finishes it.
pub fn pull(
    state: &mut FolderState,
    client: &ApiClient,
    control: &ApiControl<'_>,
    keep_conflicts: bool,
) -> Result<PullSummary, GitHubError> {
    let repository = state.record.repository();
    let api = RepositoryApi { client, repository: &repository, control };
    let mut summary = PullSummary::default();
    if let Some(commit) = state.unfinished_pull() {
        match pull_commit(state, &api, &commit, keep_conflicts, &mut summary) {
            // The branch was replaced in the meantime.
            Ok(()) | Err(GitHubError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let commit = api.branch_commit(&state.record.branch)?;
    if commit != state.record.commit {
        pull_commit(state, &api, &commit, keep_conflicts, &mut summary)?;
    }
    state.write_cache(client);
    Ok(summary)
}

fn pull_commit(
    state: &mut FolderState,
    api: &RepositoryApi<'_>,
    commit: &str,
    keep_conflicts: bool,
    summary: &mut PullSummary,
) -> Result<(), GitHubError> {
    let tree_hash = api.commit_tree(commit)?;
    let tree = RemoteTree::fetch(api, &tree_hash)?;
    let incoming = state.incoming_folder()?;
    let mut plan = PullPlan::new(state, &tree, keep_conflicts)?;
    plan.download(api, &state.record.files, &tree, &incoming)?;
    plan.merge(state.root(), &state.record.files, &incoming)?;
    plan.kept.sort();
    plan.conflicts.sort();
    if !plan.conflicts.is_empty() {
        state.incoming_folder()?;
        return Err(GitHubError::Conflict(plan.conflicts));
    }
    api.control.check()?;
    // From here on it isn't canceled.
    state.begin_pull(commit)?;
    plan.apply(state.root(), &incoming)?;
    state.record.commit = commit.to_owned();
    state.record.tree = tree_hash;
    state.record.files = tree.files;
    state.record.left_out = tree.left_out;
    state.write_record()?;
    state.end_pull()?;
    summary.is_new = true;
    summary.deleted += plan.deletes.len();
    summary.written += plan.writes.len();
    summary.merged.append(&mut plan.merged);
    summary.kept.append(&mut plan.kept);
    Ok(())
}

/// A file that is replaced by a downloaded one, or created.
struct PlannedWrite {
    path: String,
    /// Hash of what it replaces.
    expected: Option<BlobHash>,
    /// Name and hash of the downloaded file.
    source: (String, BlobHash),
    is_program: bool,
}

/// A file that both sides have changed.
struct PlannedMerge {
    path: String,
    expected: BlobHash,
    theirs: TreeFile,
}

/// The steps of a pull.
#[derive(Default)]
struct PullPlan {
    keep_conflicts: bool,
    /// Files that are taken as they are: path, the hash of what they replace, and the new file.
    takes: Vec<(String, Option<BlobHash>, TreeFile)>,
    merges: Vec<PlannedMerge>,
    /// Other versions of files in conflict, for paths beside them.
    seconds: Vec<(String, TreeFile)>,
    deletes: Vec<(String, BlobHash)>,
    /// Files whose permission to run changes, and nothing else.
    modes: Vec<(String, bool)>,
    conflicts: Vec<String>,
    kept: Vec<String>,
    merged: Vec<String>,
    writes: Vec<PlannedWrite>,
    /// Hashes of downloaded files by their hash in Git.
    downloaded: BTreeMap<String, BlobHash>,
}

impl PullPlan {
    fn new(state: &FolderState, tree: &RemoteTree, keep_conflicts: bool) -> Result<PullPlan, GitHubError> {
        let folder = open_root(state.root())?;
        let base = &state.record.files;
        let mut plan = PullPlan { keep_conflicts, ..PullPlan::default() };
        let paths: BTreeSet<&String> = base.keys().chain(tree.files.keys()).collect();
        for path in paths {
            let (old, new) = (base.get(path), tree.files.get(path));
            if old == new {
                continue;
            }
            let ours = local_state(&folder, state.root(), path, base, tree)?;
            plan.decide(path, old, new, ours);
        }
        Ok(plan)
    }

    fn decide(&mut self, path: &str, old: Option<&TreeFile>, new: Option<&TreeFile>, ours: LocalState) {
        match (old, new, ours) {
            (_, None, LocalState::Missing) => {}
            (_, Some(new), LocalState::File(ours)) if ours.blob == new.hash => {
                if cfg!(unix) && ours.is_program != new.is_program {
                    self.modes.push((path.to_owned(), new.is_program));
                }
            }
            (None, Some(new), LocalState::Missing) => self.takes.push((path.to_owned(), None, new.clone())),
            (Some(old), None, LocalState::File(ours)) if ours.blob == old.hash => {
                self.deletes.push((path.to_owned(), ours.hash));
            }
            (Some(old), Some(new), LocalState::File(ours)) if ours.blob == old.hash => {
                self.takes.push((path.to_owned(), Some(ours.hash), new.clone()));
            }
            // The content stays, and the permission is taken over.
            (Some(old), Some(new), LocalState::File(_)) if old.hash == new.hash => {
                self.modes.push((path.to_owned(), new.is_program));
            }
            (Some(_), Some(new), LocalState::File(LocalFile { bytes, hash, .. }))
                if bytes.len() <= MAX_MERGED_BYTES =>
            {
                let merge = PlannedMerge { path: path.to_owned(), expected: hash, theirs: new.clone() };
                self.merges.push(merge);
            }
            (_, new, ours) => self.conflict(path, new, ours == LocalState::Missing),
        }
    }

    /// Notes a conflict: all is refused, or the user's version stays and the other one comes beside it.
    fn conflict(&mut self, path: &str, new: Option<&TreeFile>, is_missing: bool) {
        match (self.keep_conflicts, new) {
            (false, _) => self.conflicts.push(path.to_owned()),
            (true, Some(new)) if is_missing => self.takes.push((path.to_owned(), None, new.clone())),
            (true, new) => {
                self.kept.push(path.to_owned());
                self.seconds.extend(new.map(|new| (path.to_owned(), new.clone())));
            }
        }
    }

    /// Downloads what will be written or merged. Each file gets its hash as its name.
    fn download(
        &mut self,
        api: &RepositoryApi<'_>,
        base: &BTreeMap<String, TreeFile>,
        tree: &RemoteTree,
        incoming: &Path,
    ) -> Result<(), GitHubError> {
        let mut wanted: BTreeMap<&str, WantedBlob<'_>> = BTreeMap::new();
        for merge in &self.merges {
            let path = merge.path.as_str();
            wanted.extend(
                base.get(path).map(|old| (old.hash.as_str(), WantedBlob { path, hash: &old.hash, size: None })),
            );
            wanted.insert(&merge.theirs.hash, tree.wanted(path, &merge.theirs));
        }
        let takes = self.takes.iter().map(|(path, _, new)| (path, new));
        let seconds = self.seconds.iter().map(|(path, new)| (path, new));
        wanted.extend(takes.chain(seconds).map(|(path, new)| (new.hash.as_str(), tree.wanted(path, new))));
        let wanted: Vec<WantedBlob<'_>> = wanted.into_values().collect();
        let downloaded = Mutex::new(BTreeMap::new());
        fetch_blobs(api, &wanted, &|blob, bytes| {
            let path = incoming.join(blob.hash);
            std::fs::write(&path, &bytes).map_err(|error| GitHubError::io("written", &path, error))?;
            let mut downloaded = downloaded.lock().unwrap_or_else(PoisonError::into_inner);
            downloaded.insert(blob.hash.to_owned(), BlobHash::of(&bytes));
            Ok(())
        })?;
        self.downloaded = downloaded.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    /// Merges what both sides have changed, and settles what is written.
    fn merge(&mut self, root: &Path, base: &BTreeMap<String, TreeFile>, incoming: &Path) -> Result<(), GitHubError> {
        let folder = open_root(root)?;
        for merge in std::mem::take(&mut self.merges) {
            let ours = match read_local(&folder, &merge.path)? {
                LocalState::File(ours) if ours.hash == merge.expected => ours.bytes,
                _ => return Err(GitHubError::ChangedMeanwhile(merge.path)),
            };
            let read = |hash: &str| {
                let path = incoming.join(hash);
                read_regular_file(&path).map_err(|error| GitHubError::io("read", &path, error))
            };
            let old = base.get(&merge.path).map(|old| read(&old.hash)).transpose()?.unwrap_or_default();
            match merge_bytes(&merge.path, old, ours, read(&merge.theirs.hash)?)? {
                None => self.conflict(&merge.path, Some(&merge.theirs), false),
                Some(bytes) => {
                    let name = format!("merged-{}", self.merged.len());
                    let path = incoming.join(&name);
                    std::fs::write(&path, &bytes).map_err(|error| GitHubError::io("written", &path, error))?;
                    self.merged.push(merge.path.clone());
                    self.writes.push(PlannedWrite {
                        path: merge.path,
                        expected: Some(merge.expected),
                        source: (name, BlobHash::of(&bytes)),
                        is_program: merge.theirs.is_program,
                    });
                }
            }
        }
        let source = |downloaded: &BTreeMap<String, BlobHash>, hash: &str| {
            downloaded.get(hash).map(|known| (hash.to_owned(), *known)).ok_or_else(|| {
                GitHubError::Refused("A file wasn't downloaded. Run `tracebook git pull` again.".to_owned())
            })
        };
        for (path, expected, new) in std::mem::take(&mut self.takes) {
            let source = source(&self.downloaded, &new.hash)?;
            self.writes.push(PlannedWrite { path, expected, source, is_program: new.is_program });
        }
        for (path, new) in std::mem::take(&mut self.seconds) {
            let source = source(&self.downloaded, &new.hash)?;
            // None if an earlier try has written it.
            if let Some(path) = second_path(&folder, &path, &new.hash)? {
                self.writes.push(PlannedWrite { path, expected: None, source, is_program: new.is_program });
            }
        }
        Ok(())
    }

    fn apply(&self, root: &Path, incoming: &Path) -> Result<(), GitHubError> {
        let folder = open_root(root)?;
        for (number, (path, expected)) in self.deletes.iter().enumerate() {
            delete(root, path, *expected, &incoming.join(format!("deleted-{number}")))?;
        }
        for write in &self.writes {
            let (parent, name) = folder.open_parent(&write.path, true).map_err(|refusal| refused(&refusal))?;
            let (source, hash) = &write.source;
            match replace_by_copy(&parent.join(&name), write.expected, &incoming.join(source), *hash)? {
                SwapOutcome::Done { .. } => {}
                SwapOutcome::Raced | SwapOutcome::Gone => {
                    return Err(GitHubError::ChangedMeanwhile(quoted(&write.path)));
                }
            }
            if write.is_program || write.expected.is_some() {
                set_program(&parent.join(&name), write.is_program)?;
            }
        }
        for (path, is_program) in &self.modes {
            let (parent, name) = folder.open_parent(path, false).map_err(|refusal| refused(&refusal))?;
            set_program(&parent.join(&name), *is_program)?;
        }
        Ok(())
    }
}

fn refused(refusal: &dyn std::fmt::Display) -> GitHubError {
    GitHubError::Refused(format!("{refusal}. Run `tracebook git pull` again when that's settled."))
}

/// Reads what is at a path. What the same pull deletes on the way counts as gone.
fn local_state(
    folder: &ConfinedFolder,
    root: &Path,
    path: &str,
    base: &BTreeMap<String, TreeFile>,
    tree: &RemoteTree,
) -> Result<LocalState, GitHubError> {
    let is_deleted = |path: &str| base.contains_key(path) && !tree.files.contains_key(path);
    let is_file = |path: &str| root.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
    if folders_above(path).any(|above| is_deleted(above) && is_file(above)) {
        return Ok(LocalState::Missing);
    }
    match read_local(folder, path)? {
        LocalState::Other if !base.contains_key(path) && is_emptied(root, path, &is_deleted) => Ok(LocalState::Missing),
        found => Ok(found),
    }
}

/// Returns whether a path is a folder of nothing but files that will be deleted.
fn is_emptied(root: &Path, path: &str, is_deleted: &dyn Fn(&str) -> bool) -> bool {
    let Ok(entries) = std::fs::read_dir(root.join(path)) else { return false };
    entries.flatten().all(|entry| {
        let Some(name) = entry.file_name().to_str().map(|name| format!("{path}/{name}")) else { return false };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => is_emptied(root, &name, is_deleted),
            Ok(kind) => kind.is_file() && is_deleted(&name),
            Err(_) => false,
        }
    })
}

/// Merges three versions of a file; `None` if they aren't text or the same parts have changed.
fn merge_bytes(path: &str, old: Vec<u8>, ours: Vec<u8>, theirs: Vec<u8>) -> Result<Option<Vec<u8>>, GitHubError> {
    let (Ok(old), Ok(ours), Ok(theirs)) = (String::from_utf8(old), String::from_utf8(ours), String::from_utf8(theirs))
    else {
        return Ok(None);
    };
    if [&old, &ours, &theirs].iter().any(|text| text.contains('\0') || text.len() > MAX_MERGED_BYTES) {
        return Ok(None);
    }
    if let Ok(merged) = vcs::merge_texts(&old, &ours, &theirs, None)? {
        return Ok(Some(merged.into_bytes()));
    }
    let is_note = Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    Ok(is_note.then(|| merge_notes(&old, &ours, &theirs)).flatten().map(String::into_bytes))
}

/// Returns a free path beside a file for its other version; `None` if that is there already.
fn second_path(folder: &ConfinedFolder, path: &str, hash: &str) -> Result<Option<String>, GitHubError> {
    let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    for number in 1..=MAX_SECOND_VERSIONS {
        let number = if number == 1 { String::new() } else { format!(" {number}") };
        let name = format!("{stem} (GitHub{number}){extension}");
        let path = if above.is_empty() { name } else { format!("{above}/{name}") };
        match read_local(folder, &path)? {
            LocalState::Missing => return Ok(Some(path)),
            LocalState::File(file) if file.blob == hash => return Ok(None),
            LocalState::File(_) | LocalState::Other => {}
        }
    }
    Err(GitHubError::Refused(format!("There are too many other versions of {} beside it.", quoted(path))))
}

/// Deletes a file that is as expected, and folders that are empty then. Another program's change is put back.
fn delete(root: &Path, path: &str, expected: BlobHash, aside: &Path) -> Result<(), GitHubError> {
    let (parent, name) = match ConfinedPath::new(root, path).open_parent(false) {
        Ok(found) => found,
        Err(refusal) if refusal.is_missing() => return Ok(()),
        Err(refusal) => return Err(refused(&refusal)),
    };
    let place = parent.join(&name);
    let fail = |error| GitHubError::io("deleted", &root.join(path), error);
    match rename_new(&place, aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        done => done.map_err(fail)?,
    }
    let is_expected = read_regular_file(aside).is_ok_and(|bytes| BlobHash::of(&bytes) == expected);
    if !is_expected {
        rename_new(aside, &place).map_err(fail)?;
        return Err(GitHubError::ChangedMeanwhile(quoted(path)));
    }
    std::fs::remove_file(aside).map_err(fail)?;
    for above in folders_above(path) {
        if let Ok((parent, name)) = ConfinedPath::new(root, above).open_parent(false) {
            parent.remove_empty_folder(&name);
        }
    }
    Ok(())
}
