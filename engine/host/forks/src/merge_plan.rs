//! Decides what an adoption makes of each file: a three-way merge between what the fork was made from, the project and
//! the fork.

use crate::file_versions::{FileVersion, read_version};
use crate::fork_changes::{ChangedForkFile, ForkChanges, apply_hunks};
use crate::fork_error::ForkError;
use crate::fork_record::AdoptionStep;
use host::fs::confined_dir::ConfinedFolder;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use store::disk::BlobStore;
use vcs::{MergeSide, TextConflict, merge_texts};

/// Whose version counts where both the project and the fork have changed the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictPreference {
    /// Nobody's: nothing is adopted.
    Refuse,
    /// The project's.
    Project,
    /// The fork's.
    Fork,
}

/// A file in which both the project and the fork have changed the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdoptConflict {
    /// Path in the project.
    pub path: String,
    /// The conflict, in words.
    pub why: String,
    /// The lines in conflict: `ours` are the project's, `theirs` the fork's.
    pub regions: Vec<TextConflict>,
}

/// Which changes of a fork are adopted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSelection {
    /// The chosen files, each with the numbers of the chosen hunks; none for all of them. No files for everything.
    files: BTreeMap<String, Vec<usize>>,
}

impl ChangeSelection {
    /// Adds a file, or one of its hunks.
    pub fn add(&mut self, path: &str, hunk: Option<usize>) {
        let hunks = self.files.get(path).cloned();
        let hunks = match (hunks, hunk) {
            // All of the file was chosen before, or is now.
            (Some(all), Some(_)) if all.is_empty() => Vec::new(),
            (_, None) => Vec::new(),
            (known, Some(hunk)) => known.unwrap_or_default().into_iter().chain([hunk]).collect(),
        };
        self.files.insert(path.to_owned(), hunks);
    }

    /// Returns whether only some changes are chosen.
    pub fn is_partial(&self) -> bool {
        !self.files.is_empty()
    }

    /// Returns the chosen files; `None` for everything.
    pub(crate) fn paths(&self) -> Option<BTreeSet<String>> {
        self.is_partial().then(|| self.files.keys().cloned().collect())
    }

    fn check(&self, changes: &ForkChanges) -> Result<(), ForkError> {
        for (path, hunks) in &self.files {
            let Some(file) = changes.files.iter().find(|file| file.path == *path) else {
                let skipped = changes.skipped.iter().find(|(skipped, _)| skipped == path);
                return Err(ForkError::Refused(match skipped {
                    Some((_, why)) => format!("{path} can't be adopted: {why}"),
                    None => format!("the fork hasn't changed {path}; `tracebook forks show` lists what it has"),
                }));
            };
            if let Some(wrong) = hunks.iter().find(|hunk| file.hunks.iter().all(|known| known.number != **hunk)) {
                return Err(ForkError::Refused(format!("{path} has {} hunks, and no hunk {wrong}", file.hunks.len())));
            }
        }
        Ok(())
    }

    /// Returns what a file becomes in the fork if only the chosen changes count; `None` if it isn't chosen.
    fn chosen_version(&self, file: &ChangedForkFile) -> Option<FileVersion> {
        if self.files.is_empty() {
            return Some(file.now.clone());
        }
        let hunks = self.files.get(&file.path)?;
        let all = hunks.is_empty() || file.hunks.iter().all(|hunk| hunks.contains(&hunk.number));
        match file.base.text().filter(|_| !all) {
            Some(old) => Some(FileVersion::Text(apply_hunks(old, &file.hunks, hunks))),
            None => Some(file.now.clone()),
        }
    }
}

/// A file to merge into the project.
pub(crate) struct MergeInput {
    pub(crate) path: String,
    pub(crate) base: FileVersion,
    pub(crate) theirs: FileVersion,
    pub(crate) is_executable: bool,
}

/// Returns the chosen changes of a fork.
pub(crate) fn chosen_changes(changes: ForkChanges, selection: &ChangeSelection) -> Result<Vec<MergeInput>, ForkError> {
    selection.check(&changes)?;
    let input = |file: ChangedForkFile| {
        let theirs = selection.chosen_version(&file)?;
        Some(MergeInput { path: file.path, base: file.base, theirs, is_executable: file.is_executable })
    };
    Ok(changes.files.into_iter().filter_map(input).collect())
}

/// Merges files into the project as far as that can be said without writing, and keeps the bytes before and after.
pub(crate) fn plan_merge(
    project: &ConfinedFolder,
    kept: &BlobStore,
    inputs: &[MergeInput],
    prefer: ConflictPreference,
) -> Result<Vec<AdoptionStep>, ForkError> {
    let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
    for input in inputs {
        let ours = match read_version(project, &input.path) {
            Ok((ours, _)) => ours,
            Err(error) => {
                let why = error.to_string();
                conflicts.push(AdoptConflict { path: input.path.clone(), why, regions: Vec::new() });
                continue;
            }
        };
        match merge_file(input, &ours, prefer)? {
            Ok(None) => {}
            Ok(Some(merged)) => {
                for bytes in [ours.bytes(), merged.bytes()].into_iter().flatten() {
                    kept.put(bytes)?;
                }
                steps.push(AdoptionStep {
                    path: input.path.clone(),
                    before: ours.hash(),
                    after: merged.hash(),
                    is_executable: input.is_executable,
                });
            }
            Err(conflict) => conflicts.push(conflict),
        }
    }
    if conflicts.is_empty() { Ok(steps) } else { Err(ForkError::Conflicts(conflicts)) }
}

/// Returns what a file of the project becomes; `None` if it stays as it is.
fn merge_file(
    input: &MergeInput,
    ours: &FileVersion,
    prefer: ConflictPreference,
) -> Result<Result<Option<FileVersion>, AdoptConflict>, ForkError> {
    let (base, theirs) = (&input.base, &input.theirs);
    let hashes = (base.hash(), ours.hash(), theirs.hash());
    if hashes.2 == hashes.0 || hashes.2 == hashes.1 {
        return Ok(Ok(None));
    }
    if hashes.1 == hashes.0 {
        return Ok(Ok(Some(theirs.clone())));
    }
    let mut regions = Vec::new();
    let is_gone = |version: &FileVersion| *version == FileVersion::Missing;
    if let (Some(old), Some(first), Some(second)) = (base.text(), ours.text(), theirs.text())
        && !is_gone(ours)
        && !is_gone(theirs)
    {
        let take = match prefer {
            ConflictPreference::Refuse => None,
            ConflictPreference::Project => Some(MergeSide::Ours),
            ConflictPreference::Fork => Some(MergeSide::Theirs),
        };
        match merge_texts(old, first, second, take)? {
            Ok(text) => return Ok(Ok((text != first).then_some(FileVersion::Text(text)))),
            Err(found) => regions = found,
        }
    }
    let why = match () {
        () if is_gone(ours) => "deleted here, changed there".to_owned(),
        () if is_gone(theirs) => "changed here, deleted there".to_owned(),
        () if regions.is_empty() => "both have changed it, and it isn't text".to_owned(),
        () if regions.len() == 1 => "1 place".to_owned(),
        () => format!("{} places", regions.len()),
    };
    Ok(match prefer {
        ConflictPreference::Refuse => Err(AdoptConflict { path: input.path.clone(), why, regions }),
        ConflictPreference::Project => Ok(None),
        ConflictPreference::Fork => Ok(Some(theirs.clone())),
    })
}
