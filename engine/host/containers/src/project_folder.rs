//! The folder of the project that a container sees: checked part by part, so that nothing leads out of the project.

use crate::ContainerError;
use agent::config::SandboxPaths;
use std::fs::File;
use std::path::{Path, PathBuf};

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name.
    pub name: String,
    /// Whether it's a folder; otherwise it's a file.
    pub is_folder: bool,
}

/// The project's files, opened so that neither `..` nor a symlink leads out of its folder. Paths are relative to it,
/// with `/` as separator; an empty one is the folder itself.
pub trait ProjectFiles {
    /// Opens a folder and returns where it is on this device.
    ///
    /// # Errors
    /// Returns why it can't be opened.
    fn locate_folder(&self, path: &str) -> Result<PathBuf, ContainerError>;
    /// Lists the files and folders in a folder; symlinks and special files are left out.
    ///
    /// # Errors
    /// Returns why it can't be read.
    fn list_folder(&self, path: &str) -> Result<Vec<FolderEntry>, ContainerError>;
    /// Opens an ordinary file.
    ///
    /// # Errors
    /// Returns why it can't be opened.
    fn open_file(&self, path: &str) -> Result<File, ContainerError>;
}

/// The project's files with what of this device is closed to containers.
#[derive(Clone, Copy)]
pub(crate) struct ProjectAccess<'a> {
    pub(crate) files: &'a dyn ProjectFiles,
    pub(crate) rules: &'a SandboxPaths,
    /// Folders that no container sees, nor their parents: the workspace, the user's home folder.
    pub(crate) closed: &'a [PathBuf],
}

impl ProjectAccess<'_> {
    /// Returns a path in its plain form.
    pub(crate) fn plain_path(path: &str) -> Result<String, ContainerError> {
        if matches!(path, "" | "." | "./") {
            return Ok(String::new());
        }
        agent::policy_rule::normalize_inside_volume(path).ok_or_else(|| {
            ContainerError::Refused(format!("{path} is outside of the project; name a folder inside it"))
        })
    }

    /// Returns where a folder of the project is, if a container may see all of it.
    ///
    /// The engine opens the path again. Whoever can rename folders of the project between this check and that could put
    /// a symlink there; see decision 57.
    pub(crate) fn locate_mount(&self, path: &str, writable: bool) -> Result<PathBuf, ContainerError> {
        let path = ProjectAccess::plain_path(path)?;
        let refused = |why: String| Err(ContainerError::Refused(why));
        let shown = if path.is_empty() { "the project's folder" } else { path.as_str() };
        let place = self.files.locate_folder(&path)?;
        let root = self.files.locate_folder("")?;
        // Where symlinks inside the project lead to counts, too.
        let inner = place.strip_prefix(&root).ok().and_then(Path::to_str);
        let Some(inner) = inner else {
            return refused(format!("{shown} leads out of the project; name a folder inside it"));
        };
        for name in [path.as_str(), inner] {
            if let Some(why) = self.rules.refusal(name, writable).filter(|_| !name.is_empty()) {
                return refused(format!("{shown} is closed: {why}"));
            }
            if let Some(closed) = self.closed_below(name, writable) {
                return refused(format!(
                    "{shown} holds {closed}, which is closed to programs; name a folder beside it"
                ));
            }
        }
        if writable && inner.is_empty() {
            return refused("a container may write only to a folder inside the project, not to all of it".to_owned());
        }
        let guarded = guarded::guarded_reason(inner).or_else(|| guarded::guarded_reason(&path));
        if let Some(why) = guarded.filter(|_| writable) {
            return refused(format!("a container may not write to {shown}: {why}"));
        }
        match self.closed.iter().find(|closed| closed.starts_with(&place)) {
            Some(closed) => refused(format!("{shown} holds {}, which containers don't see", closed.display())),
            None => Ok(place),
        }
    }

    /// Returns a path with a rule of its own below a folder that is mounted as a whole.
    fn closed_below(&self, folder: &str, writable: bool) -> Option<&str> {
        let below =
            |path: &&String| folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let read_only = self.rules.read_only.iter().filter(|_| writable);
        self.rules.hidden.iter().chain(read_only).find(below).map(String::as_str)
    }

    /// Returns whether a file is left out of what the engine gets to build with.
    pub(crate) fn is_left_out(&self, path: &str) -> bool {
        let secret = path.split('/').any(|part| matches!(part, ".git" | ".ssh" | ".gnupg"));
        secret || self.rules.is_hidden(path)
    }
}
