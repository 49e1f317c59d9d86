//! Records which version of each note a commit made here has, from what the workspace knows of the notes' files.

use std::path::{Path, PathBuf};
use store::disk::{DiskReader, SqliteReader, read_marker};
use store::{BlobHash, DocId};
use vcs::RepositoryFolder;

/// Records for the last commit of a folder's repository which version of each note it has. Notes' histories use it as a
/// hint, and find versions by their text without it: so nothing is said if it can't be recorded.
pub fn record_commit_heads(workspace: &Path, folder: &Path) {
    let Ok(Some(volumes)) = read_marker(workspace) else { return };
    let real = |path: PathBuf| path.canonicalize().ok();
    let roots = volumes.into_iter().filter_map(|volume| Some((volume.id, real(volume.path)?)));
    let roots: Vec<(DocId, PathBuf)> = roots.collect();
    let (Ok(reader), Ok(repository)) = (SqliteReader::open(workspace), RepositoryFolder::open(folder)) else { return };
    let heads_of = |file: &Path, bytes: &[u8]| known_heads(&reader, &roots, file, bytes).unwrap_or_default();
    let _ = repository.record_heads(heads_of); // it's only a hint, and the commit is made
}

/// Returns the heads of a note's document when it last agreed with its file, if the file had these bytes then.
fn known_heads(reader: &SqliteReader, roots: &[(DocId, PathBuf)], file: &Path, bytes: &[u8]) -> Option<Vec<[u8; 32]>> {
    let around = roots.iter().filter_map(|(volume, root)| Some((volume, file.strip_prefix(root).ok()?)));
    // Of volumes inside each other, the innermost holds the file.
    let (volume, inside) = around.min_by_key(|(_, inside)| inside.components().count())?;
    let path = inside.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    let row = reader.file_row(*volume, &path).ok()??;
    (row.hash == BlobHash::of(bytes)).then_some(row.heads)
}
