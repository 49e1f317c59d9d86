//! Names in a folder.

use crate::confined_dir::ConfinedFolder;
use std::path::Path;

/// Returns the names of what is in a folder inside `root`, in order; none if the folder isn't there or a link leads to
/// it. Names that aren't UTF-8 are left out.
pub fn folder_names(root: &Path, path: &str) -> Vec<String> {
    let folder = ConfinedFolder::open_root(root).and_then(|root| root.open_folder(path));
    let Some(entries) = folder.ok().and_then(|folder| std::fs::read_dir(folder.stable_path()).ok()) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
