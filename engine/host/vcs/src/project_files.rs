//! What a copy of a project consists of: the files that Git knows or would offer to add, and what it leaves out.

use crate::errors::VcsError;
use crate::ignore_rules::{is_ignored, list_statuses};
use crate::racy_entries::write_index;
use crate::repository_folder::RepositoryFolder;
use git2::{IndexEntryExtendedFlag, Status, StatusOptions};
use std::path::PathBuf;

/// Mode of an index entry for a submodule.
const SUBMODULE_MODE: u32 = 0o160_000;
/// The bits of a mode that say what kind of entry it is.
const ENTRY_KIND_MASK: u32 = 0o170_000;

/// The files of a folder as Git sees them, by path relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    /// Files that are tracked. They may be gone.
    pub tracked: Vec<String>,
    /// Files that are untracked and not ignored.
    pub untracked: Vec<String>,
    /// Ignored files, and ignored folders with a `/` at the end.
    pub ignored: Vec<String>,
    /// Submodules, and folders that are repositories themselves.
    pub nested: Vec<String>,
}

impl RepositoryFolder {
    /// Returns the folder's files as Git sees them.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn project_files(&self) -> Result<ProjectFiles, VcsError> {
        let mut found = ProjectFiles::default();
        let below = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        for entry in self.repository.index()?.iter() {
            // A file name that isn't valid UTF-8 can't be a volume's.
            let Ok(path) = String::from_utf8(entry.path) else { continue };
            let Some(inside) = path.strip_prefix(&below) else { continue };
            match entry.mode & ENTRY_KIND_MASK == SUBMODULE_MODE {
                true => found.nested.push(inside.to_owned()),
                false => found.tracked.push(inside.to_owned()),
            }
        }
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(true).exclude_submodules(true);
        options.disable_pathspec_match(true);
        if !self.prefix.is_empty() {
            options.pathspec(&self.prefix);
        }
        let (listed, mut ignored) = list_statuses(&self.repository, &self.prefix, &mut options)?;
        for entry in listed.iter() {
            let Ok(path) = String::from_utf8(entry.path_bytes().to_vec()) else { continue };
            let inside = self.folder_path(&path).to_owned();
            match entry.status() {
                status
                    if status.contains(Status::IGNORED)
                        || status.contains(Status::WT_NEW) && ignored.contain(&path) =>
                {
                    found.ignored.push(inside);
                }
                status if status.contains(Status::WT_NEW) && path.ends_with('/') => {
                    found.nested.push(inside.trim_end_matches('/').to_owned());
                }
                status if status.contains(Status::WT_NEW) => found.untracked.push(inside),
                _ => {} // tidy: open because every other file is in the index
            }
        }
        for list in [&mut found.tracked, &mut found.untracked, &mut found.ignored, &mut found.nested] {
            list.sort();
            list.dedup();
        }
        Ok(found)
    }

    /// Makes the index what the last commit is, without touching a file. Files outside the folder count as unchanged,
    /// since a worktree may have only the folder.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no commit.
    pub fn index_last_commit(&self) -> Result<(), VcsError> {
        let Some(tree) = self.head_tree()? else {
            return Err(VcsError::Refused("the repository has no commit yet".to_owned()));
        };
        let mut index = self.repository.index()?;
        index.read_tree(&tree)?;
        if !self.prefix.is_empty() {
            let below = format!("{}/", self.prefix);
            let outside: Vec<_> = index.iter().filter(|entry| !entry.path.starts_with(below.as_bytes())).collect();
            for mut entry in outside {
                entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
                index.add(&entry)?;
            }
        }
        write_index(&self.repository, &mut index)
    }

    /// Returns whether Git ignores a path of the folder; folders end with `/`.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn is_ignored(&self, path: &str) -> Result<bool, VcsError> {
        let folder = if path.ends_with('/') { "/" } else { "" };
        let inside = format!("{}{folder}", self.repository_path(path.trim_end_matches('/'))?);
        Ok(is_ignored(&self.repository, &inside)?)
    }

    /// Returns whether Git ignores this folder itself, which then only happens to lie in a repository.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn is_ignored_folder(&self) -> Result<bool, VcsError> {
        Ok(!self.prefix.is_empty() && is_ignored(&self.repository, &format!("{}/", self.prefix))?)
    }

    /// Returns the root folder of the repository, and the path of this folder in it with `/` between its parts.
    pub fn place(&self) -> (PathBuf, &str) {
        (self.top.clone(), &self.prefix)
    }
}
