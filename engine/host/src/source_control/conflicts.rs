//! Resolves conflicts by the user's choices: a side's text for one conflict of a file or for all of it. What the file
//! held is kept in the repository's store, so that a choice can be undone.

use super::operations::{confined_file, delete_file, write_over};
use super::{DiffReading, GitOutcome, GitRequest};
use crate::fs::atomic_write::{ReplaceOutcome, replace_file};
use anyhow::bail;
use git_program::GitOperation;
use std::path::Path;
use vcs::{ConflictChoice, ConflictSides, FileConflict, RepositoryFolder, VcsError};

/// The conflicts of a file, and what both sides are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictReading {
    /// The file.
    pub file: FileConflict,
    /// Both sides.
    pub sides: ConflictSides,
}

/// A file whose conflicts were resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFile {
    /// Path relative to the volume's folder.
    pub path: String,
    /// Hash of its former bytes in the repository's store; `None` if there was no file.
    pub kept: Option<String>,
    /// Hash of its bytes after the choice; `None` if it was deleted.
    pub left: Option<String>,
    /// What the repository had recorded of choices in it, if it's a note without markers.
    pub choices: Option<String>,
}

type RunGit<'a> = &'a mut dyn FnMut(GitOperation) -> anyhow::Result<String>;

/// Reads the conflicts of a file for the page.
pub(super) fn read_conflict(root: &Path, path: &str) -> Result<DiffReading, VcsError> {
    let repository = RepositoryFolder::open(root)?;
    let conflict = ConflictReading { file: repository.conflict(path)?, sides: repository.conflict_sides()? };
    Ok(DiffReading { is_complete: true, conflict: Some(conflict), ..DiffReading::default() })
}

/// Resolves conflicts of a file, and stages it once none are left.
pub(super) fn resolve(
    root: &Path,
    path: &str,
    (choice, region): (ConflictChoice, Option<usize>),
    seen: Option<&str>,
    run: RunGit<'_>,
) -> anyhow::Result<GitOutcome> {
    let repository = RepositoryFolder::open(root)?;
    let conflict = repository.conflict(path)?;
    if seen.is_some() && conflict.seen.as_deref() != seen {
        bail!("{path} has changed meanwhile, so nothing was done. Look at its conflicts again.");
    }
    let sides = repository.conflict_sides()?;
    let (kept, choices) = (repository.keep_file(path)?, repository.recorded_choices(path)?);
    let left_conflicts = match (choice, region) {
        (ConflictChoice::Ours | ConflictChoice::Theirs, None) => {
            take_side(root, path, conflict.kind.has_file(choice == ConflictChoice::Theirs), choice, run)?;
            0
        }
        (ConflictChoice::Both, None) | (_, Some(_)) => {
            let Some(kept) = &kept else { bail!("{path} is gone, so keep or delete it as a whole.") };
            let before = repository.kept_bytes(kept)?;
            let resolved = repository.resolve_regions(path, &before, choice, region)?;
            let (_folder, target) = confined_file(root, path, false)?;
            repository.record_choice(&resolved, false)?;
            write_over(&target, path, &before, &resolved.bytes)?;
            repository.record_choice(&resolved, true)?;
            if resolved.left == 0 {
                run(GitOperation::Add { files: vec![path.to_owned()] })?;
            }
            resolved.left
        }
    };
    let file = ResolvedFile { path: path.to_owned(), kept, left: repository.file_id(path)?, choices };
    let taken = match choice {
        ConflictChoice::Ours => format!("“{}”", sides.ours.name),
        ConflictChoice::Theirs => format!("“{}”", sides.theirs.name),
        ConflictChoice::Both => "both sides".to_owned(),
    };
    let rest = match left_conflicts {
        0 if file.left.is_none() => "The file is deleted, and that is staged.".to_owned(),
        0 => "No conflicts are left in it, so it's staged.".to_owned(),
        1 => "1 conflict is left in it.".to_owned(),
        count => format!("{count} conflicts are left in it, numbered from 1 again."),
    };
    Ok(GitOutcome { text: format!("Kept {taken} in {path}. {rest}"), undo: Some(GitRequest::Unresolve(file)) })
}

/// Replaces a file by a side's whole file, or deletes it if the side has none, and stages that.
fn take_side(root: &Path, path: &str, has_file: bool, choice: ConflictChoice, run: RunGit<'_>) -> anyhow::Result<()> {
    if has_file {
        run(GitOperation::TakeSide { file: path.to_owned(), is_theirs: choice == ConflictChoice::Theirs })?;
        run(GitOperation::Add { files: vec![path.to_owned()] })?;
        return Ok(());
    }
    run(GitOperation::RemoveStaged { file: path.to_owned() })?;
    let is_there = confined_file(root, path, false).is_ok_and(|(_folder, file)| file.symlink_metadata().is_ok());
    if is_there { delete_file(root, path) } else { Ok(()) }
}

/// Puts a resolved file in conflict again, unless it has changed since.
pub(super) fn unresolve(root: &Path, file: &ResolvedFile, run: RunGit<'_>) -> anyhow::Result<String> {
    let path = &file.path;
    if RepositoryFolder::open(root)?.file_id(path)? != file.left {
        bail!("{path} has changed since, so it wasn't restored.");
    }
    let is_in_conflict = || -> anyhow::Result<bool> { Ok(RepositoryFolder::open(root)?.conflict(path).is_ok()) };
    if !is_in_conflict()? {
        // It fails if Git no longer knows both sides, for instance after a commit.
        let _ = run(GitOperation::Unresolve { file: path.clone() });
        if !is_in_conflict()? {
            bail!("Git no longer knows both sides of {path}, so it wasn't restored.");
        }
    }
    let repository = RepositoryFolder::open(root)?;
    file.choices.as_deref().map_or(Ok(()), |choices| repository.restore_recorded_choices(choices))?;
    match (&file.kept, &file.left) {
        (None, None) => {}
        (None, Some(_)) => delete_file(root, path)?,
        (Some(kept), left) => {
            let bytes = repository.kept_bytes(kept)?;
            let (_folder, target) = confined_file(root, path, true)?;
            match left {
                Some(_) => write_over(&target, path, &std::fs::read(&target)?, &bytes)?,
                None => match replace_file(&target, None, &bytes)? {
                    ReplaceOutcome::Done { .. } => {}
                    ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                        bail!("{path} exists now, so it wasn't restored.")
                    }
                },
            }
        }
    }
    Ok(format!("Restored the conflicts in {path}."))
}
