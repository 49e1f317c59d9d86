//! Decides conflicts of notes by the edits that their documents have recorded, once Git has stopped at them.

use crate::commit_heads::WorkspaceFiles;
use crate::unmarked_notes::take_out_markers;
use std::path::Path;
use std::time::{Duration, Instant};
use store::disk::{DiskReader, FileRow};
use store::{ActorId, BlobHash, NoteDoc};
use text::version_merge::{CommittedText, MergedVersions, merge_versions};
use user_files::atomic_write::{ReplaceOutcome, replace_file};
use user_files::confined_dir::ConfinedFolder;
use vcs::{ConflictVersion, ConflictVersions, MarkedNote, RepositoryFolder};

/// How long notes are merged at a stop of Git.
const MAX_MERGE_TIME: Duration = Duration::from_secs(2);

/// Notes whose conflicts were decided.
#[derive(Default)]
pub(crate) struct MergedNotes {
    /// Paths relative to the folder.
    pub(crate) paths: Vec<String>,
    /// Their paths in the repository, as Git names them.
    pub(crate) names: Vec<String>,
    /// Whether no other file is in conflict.
    pub(crate) is_complete: bool,
}

/// Writes the notes of a folder in conflict whose documents decide it. The caller stages them. With `is_whole`, nothing
/// is written unless all conflicts are decided.
pub(crate) fn merge_by_histories(folder: &Path, workspace: &Path, is_whole: bool) -> MergedNotes {
    merge(folder, workspace, is_whole).unwrap_or_default()
}

fn merge(folder: &Path, workspace: &Path, is_whole: bool) -> Option<MergedNotes> {
    let (versions, count) = RepositoryFolder::open(folder).and_then(|folder| folder.conflict_versions()).ok()?;
    let (files, root) = (WorkspaceFiles::open(workspace)?, folder.canonicalize().ok()?);
    let row_of = |note: &ConflictVersions| files.row(&root.join(&note.path)).filter(|row| !row.heads.is_empty());
    let known: Vec<(ConflictVersions, FileRow)> =
        versions.into_iter().filter_map(|note| row_of(&note).map(|row| (note, row))).collect();
    if known.is_empty() || is_whole && known.len() < count {
        return None;
    }
    // First, because markers in a note may not stay there for long.
    let unmarked = take_out_markers(folder).ok()?;
    let until = Instant::now() + MAX_MERGE_TIME;
    let merge_one = |(note, row): &(ConflictVersions, FileRow)| {
        let before = unmarked.iter().find(|unmarked| unmarked.path == note.path)?;
        Some((note.name.clone(), before, merge_note(&files, row, note, until)?))
    };
    let merged: Vec<(String, &MarkedNote, String)> = known.iter().filter_map(merge_one).collect();
    if is_whole && merged.len() < count {
        return None;
    }
    let written = merged.into_iter().filter(|(_, before, text)| is_written(folder, before, text));
    let (names, paths): (Vec<String>, Vec<String>) =
        written.map(|(name, before, _)| (name, before.path.clone())).unzip();
    let is_complete = paths.len() == count;
    Some(MergedNotes { paths, names, is_complete })
}

/// Merges both sides of a note by its document; `None` if that doesn't decide the conflict, or is damaged.
fn merge_note(files: &WorkspaceFiles, row: &FileRow, note: &ConflictVersions, until: Instant) -> Option<String> {
    let chunks = files.reader.chunks(row.id).ok()?;
    let whole: Vec<Vec<u8>> =
        chunks.into_iter().map(|chunk| chunk.intact.then_some(chunk.bytes)).collect::<Option<_>>()?;
    // Nothing is written by this actor.
    let loaded = NoteDoc::load(row.id, &whole, ActorId::from([0; 16])).ok()?;
    if !loaded.bad_chunks.is_empty() {
        return None;
    }
    let base = note.base.as_ref().map(committed_text);
    let versions = MergedVersions { base, ours: committed_text(&note.ours), theirs: committed_text(&note.theirs) };
    merge_versions(&loaded.doc, versions, &|| Instant::now() >= until).ok()?
}

fn committed_text(version: &ConflictVersion) -> CommittedText<'_> {
    CommittedText { text: &version.text, heads: version.heads.as_deref(), time: version.time }
}

/// Writes a note unless it has other bytes than after its markers were taken out.
fn is_written(folder: &Path, before: &MarkedNote, text: &str) -> bool {
    let opened = ConfinedFolder::open_root(folder).and_then(|root| root.open_parent(&before.path, false));
    let Ok((held, name)) = opened else { return false };
    let done = replace_file(&held.stable_path().join(name), Some(BlobHash::of(&before.text)), text.as_bytes());
    matches!(done, Ok(ReplaceOutcome::Done { .. }))
}
