//! Where the memory of runs is kept: privately in the workspace, on this device only, or as notes in the project's
//! folder.

use super::{MEMORY_FOLDER, PROJECTS_FOLDER, is_experience_log, is_trace, task_log};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::BlobHash;

/// Folder of private memory in the workspace's folder. It has a subfolder for each folder of notes.
pub const PRIVATE_MEMORY_FOLDER: &str = "private_memory";
/// Number of hexadecimal digits in the name of a folder's private memory.
const FOLDER_HASH_DIGITS: usize = 16;

/// Where new memory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPlace {
    /// In the workspace: on this device only, and not among the notes.
    Private,
    /// As notes in `memory/` of the project's folder, which are searched, synced and shared with it.
    Folder,
}

/// Returns the folder of the private memory for a folder of notes. Its name is derived from the path of the notes, so
/// that a closed folder finds its memory when it's opened again.
pub fn private_memory_root(workspace: &Path, notes: &Path) -> PathBuf {
    let mut name = BlobHash::of(notes.to_string_lossy().as_bytes()).to_string();
    name.truncate(FOLDER_HASH_DIGITS);
    workspace.join(PRIVATE_MEMORY_FOLDER).join(name)
}

/// Returns whether a folder is one returned by [`private_memory_root`].
pub fn is_private_memory_root(root: &Path) -> bool {
    root.parent().and_then(Path::file_name).is_some_and(|name| name == PRIVATE_MEMORY_FOLDER)
}

/// Returns whether runs have stored memory among the files of a volume, by the files' paths.
pub fn has_memory_files<T>(files: &BTreeMap<String, T>) -> bool {
    [MEMORY_FOLDER, PROJECTS_FOLDER].iter().any(|folder| {
        let start = format!("{folder}/");
        let mut below = files.range(start.clone()..).map(|(path, _)| path).take_while(|path| path.starts_with(&start));
        below.any(|path| is_trace(path) || is_experience_log(path) || task_log::is_task_log(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_folder_is_found_by_its_path() {
        let workspace = Path::new("/w");
        let root = private_memory_root(workspace, Path::new("/u/notes"));
        assert_eq!(root, private_memory_root(workspace, Path::new("/u/notes")));
        assert_ne!(root, private_memory_root(workspace, Path::new("/u/other")));
        assert!(root.starts_with("/w/private_memory") && is_private_memory_root(&root));
        assert!(!is_private_memory_root(Path::new("/u/notes")));
    }

    #[test]
    fn notes_that_only_look_like_memory_do_not_count() {
        let has = |paths: &[&str]| has_memory_files(&paths.iter().map(|path| ((*path).to_owned(), ())).collect());
        assert!(has(&["a.md", "memory/memory_log.md", "z.md"]));
        assert!(has(&["projects/fft/memory/traces/a.md"]));
        assert!(has(&["memory/short_term/execution_log.md"]));
        assert!(!has(&["memory/childhood.md", "notes/memory/memory_log.md", "memory.md", "projects/fft/plan.md"]));
    }
}
