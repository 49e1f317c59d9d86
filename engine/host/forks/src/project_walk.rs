//! Lists the files of a folder that a fork copies or compares. Links aren't followed.

use crate::fork_error::ForkError;
use host::fs::atomic_write::is_temporary_file;
use host::fs::confined_dir::ConfinedFolder;
use std::fs::Metadata;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Maximum number of files of a fork.
pub(crate) const MAX_FORK_FILES: usize = 200_000;
/// Maximum depth of folders.
const MAX_FOLDER_DEPTH: usize = 64;

/// What a walk has found, by path.
#[derive(Debug, Default)]
pub(crate) struct WalkedFiles {
    /// Ordinary files.
    pub(crate) files: Vec<(String, Metadata)>,
    /// Links.
    pub(crate) links: Vec<String>,
    /// Folders that were left out.
    pub(crate) left_out: Vec<String>,
    /// Folders that hold a repository of their own, without their `.git`.
    pub(crate) nested: Vec<String>,
}

/// Walks a folder. `is_left_out` gets each folder, and its path with `/` between the parts.
pub(crate) fn walk_project(
    folder: &ConfinedFolder,
    is_left_out: &dyn Fn(&Path, &str) -> bool,
) -> Result<WalkedFiles, ForkError> {
    let top = folder.walk_path();
    let mut found = WalkedFiles::default();
    let mut walk = WalkDir::new(&top).follow_links(false).max_depth(MAX_FOLDER_DEPTH).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue }; // a folder that can't be read can't be copied either
        if entry.depth() == 0 || is_temporary_file(entry.file_name()) {
            continue;
        }
        // Names that aren't UTF-8 text aren't a volume's.
        let Some(path) = relative_path(&top, &entry) else { continue };
        if entry.file_name() == ".git" {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
            if let Some((above, _)) = path.rsplit_once('/') {
                found.nested.push(above.to_owned());
            }
        } else if entry.file_type().is_dir() {
            if is_left_out(entry.path(), &path) {
                walk.skip_current_dir();
                found.left_out.push(format!("{path}/"));
            }
        } else if entry.file_type().is_symlink() {
            found.links.push(path);
        } else if let Ok(meta) = entry.metadata()
            && meta.is_file()
        {
            found.files.push((path, meta));
            if found.files.len() > MAX_FORK_FILES {
                return Err(ForkError::Refused(format!("a fork has at most {MAX_FORK_FILES} files")));
            }
        } else {
            found.links.push(path);
        }
    }
    Ok(found)
}

fn relative_path(top: &Path, entry: &DirEntry) -> Option<String> {
    let inside = entry.path().strip_prefix(top).ok()?;
    let parts: Option<Vec<&str>> = inside.components().map(|part| part.as_os_str().to_str()).collect();
    Some(parts?.join("/"))
}

/// Returns whether a folder holds dependencies or a cache, which a program can make again.
pub(crate) fn is_dependency_folder(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    matches!(name, "node_modules" | "__pycache__" | ".ipynb_checkpoints")
        || folder.join("pyvenv.cfg").is_file()
        || folder.join("CACHEDIR.TAG").is_file()
}
