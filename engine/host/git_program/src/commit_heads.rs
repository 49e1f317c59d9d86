//! Records which version of each note a commit made here has, from what the workspace knows of the notes' files.

use std::path::{Path, PathBuf};
use store::disk::{DiskReader, FileRow, SqliteReader, read_marker};
use store::{BlobHash, DocId};
use vcs::RepositoryFolder;

/// What a workspace knows of the files in its volumes.
pub(crate) struct WorkspaceFiles {
    pub(crate) reader: SqliteReader,
    roots: Vec<(DocId, PathBuf)>,
}

impl WorkspaceFiles {
    /// Opens a workspace; `None` if it can't be read.
    pub(crate) fn open(workspace: &Path) -> Option<WorkspaceFiles> {
        let volumes = read_marker(workspace).ok()??;
        let real = |path: PathBuf| path.canonicalize().ok();
        let roots = volumes.into_iter().filter_map(|volume| Some((volume.id, real(volume.path)?))).collect();
        Some(WorkspaceFiles { reader: SqliteReader::open(workspace).ok()?, roots })
    }

    /// Returns what is known of a file by its real path.
    pub(crate) fn row(&self, file: &Path) -> Option<FileRow> {
        let around = self.roots.iter().filter_map(|(volume, root)| Some((volume, file.strip_prefix(root).ok()?)));
        // Of volumes inside each other, the innermost holds the file.
        let (volume, inside) = around.min_by_key(|(_, inside)| inside.components().count())?;
        let path = inside.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
        self.reader.file_row(*volume, &path).ok()?
    }
}

/// Records for the last commit of a folder's repository which version of each note it has. Notes' histories use it as a
/// hint, and find versions by their text without it: so nothing is said if it can't be recorded.
pub fn record_commit_heads(workspace: &Path, folder: &Path) {
    let Some(files) = WorkspaceFiles::open(workspace) else { return };
    let Ok(repository) = RepositoryFolder::open(folder) else { return };
    // The heads when the document last agreed with the file, if the file had these bytes then.
    let heads_of = |file: &Path, bytes: &[u8]| {
        let row = files.row(file).filter(|row| row.hash == BlobHash::of(bytes));
        row.map(|row| row.heads).unwrap_or_default()
    };
    let _ = repository.record_heads(heads_of); // it's only a hint, and the commit is made
}
