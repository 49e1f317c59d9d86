//! Where what runs learn is kept: in the workspace, where only this device has it, or as notes of the project's folder.

use super::{MEMORY_FOLDER, PROJECTS_FOLDER, is_experience_log, is_trace, task_log};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::BlobHash;

/// The folder in the workspace's folder that holds private memory: a subfolder for each folder of notes.
pub const PRIVATE_MEMORY_FOLDER: &str = "private_memory";
/// Number of hexadecimal digits that name the memory of one folder.
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

/// The folder that holds the private memory of a folder of notes. Named by the folder's path, so that a folder that was
/// closed finds its memory when it's opened again.
pub fn private_memory_root(workspace: &Path, notes: &Path) -> PathBuf {
    let mut name = BlobHash::of(notes.to_string_lossy().as_bytes()).to_string();
    name.truncate(FOLDER_HASH_DIGITS);
    workspace.join(PRIVATE_MEMORY_FOLDER).join(name)
}

/// Whether a folder was named by [`private_memory_root`].
pub fn is_private_memory_root(root: &Path) -> bool {
    root.parent().and_then(Path::file_name).is_some_and(|name| name == PRIVATE_MEMORY_FOLDER)
}

/// Whether runs have kept memory among the files of a volume, by their paths.
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
