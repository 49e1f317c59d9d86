//! Takes Git's markers out of notes in conflict, once Git has stopped at them.

use crate::GitOperation;
use std::path::Path;
use store::BlobHash;
use user_files::atomic_write::replace_file;
use user_files::confined_dir::ConfinedFolder;
use vcs::{FileChange, FileChangeKind, MarkedNote, RepositoryFolder, VcsError};

/// Takes Git's markers out of the notes of a folder that are in conflict. The index keeps both sides, and the conflicts
/// are choices in the note. A note that can't be written keeps its markers, and is resolved by them. Returns the notes
/// that had markers.
pub(crate) fn take_out_markers(folder: &Path) -> Result<Vec<MarkedNote>, VcsError> {
    let repository = RepositoryFolder::open(folder)?;
    let notes = repository.marked_notes()?;
    repository.record_marked_notes(&notes)?;
    for note in &notes {
        let opened = ConfinedFolder::open_root(folder).and_then(|root| root.open_parent(&note.path, false));
        let Ok((held, name)) = opened else { continue };
        // What another program has written meanwhile stays.
        let _ = replace_file(&held.stable_path().join(name), Some(BlobHash::of(&note.marked)), &note.text);
    }
    Ok(notes)
}

/// Returns the files of a folder that are in conflict; none if the repository can't be read.
pub(crate) fn files_in_conflict(folder: &Path) -> Vec<String> {
    let is_in_conflict = |change: &FileChange| change.unstaged == Some(FileChangeKind::Conflicted);
    let changes = RepositoryFolder::open(folder).and_then(|repository| repository.changes());
    let (changes, _) = changes.unwrap_or_default();
    changes.into_iter().filter(is_in_conflict).map(|change| change.path).collect()
}

/// Forgets what was chosen in notes, once a merge, rebase or the like is over: the same one can begin again.
pub(crate) fn forget_past_choices(folder: &Path, operation: &GitOperation, has_unmarked: bool) {
    if has_unmarked || matches!(operation, GitOperation::Continue(_) | GitOperation::Abort(_)) {
        // If it fails, choices made before count in a merge of the same versions by Git itself.
        let _ = RepositoryFolder::open(folder).and_then(|repository| repository.forget_past_choices());
    }
}
