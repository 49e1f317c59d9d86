//! The files of a commit as GitHub lists them, with paths that may be written.

use crate::api_error::{GitHubError, quoted};
use crate::blob_download::WantedBlob;
use crate::endpoints::{RepositoryApi, TreeEntryAnswer};
use crate::folder_record::STATE_FOLDER;
use crate::limits::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of requests for the trees of one commit, and how deep folders are.
const MAX_TREE_REQUESTS: usize = 2_000;
const MAX_FOLDER_DEPTH: usize = 64;
/// Maximum length in bytes of a path, and of a name in it.
const MAX_PATH_BYTES: usize = 2_000;
const MAX_NAME_BYTES: usize = 255;
/// Mode of an ordinary file, and of a program.
pub(crate) const FILE_MODE: &str = "100644";
pub(crate) const PROGRAM_MODE: &str = "100755";
/// Modes of what isn't written here.
const LINK_MODE: &str = "120000";
const SUBMODULE_MODE: &str = "160000";
const FOLDER_MODE: &str = "040000";

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeFile {
    /// Hash of its bytes.
    #[serde(rename = "sha")]
    pub(crate) hash: String,
    /// Whether it can be run as a program.
    #[serde(default, rename = "program", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_program: bool,
}

impl TreeFile {
    pub(crate) fn mode(&self) -> &'static str {
        if self.is_program { PROGRAM_MODE } else { FILE_MODE }
    }
}

/// The files of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteTree {
    pub(crate) files: BTreeMap<String, TreeFile>,
    /// Sizes of files in bytes.
    pub(crate) sizes: BTreeMap<String, u64>,
    /// What isn't written here: symbolic links and submodules, by path.
    pub(crate) left_out: BTreeMap<String, String>,
    /// Size of all files in bytes.
    pub(crate) total_bytes: u64,
}

impl RemoteTree {
    /// Gets a tree with all trees in it, and checks it.
    pub(crate) fn fetch(api: &RepositoryApi<'_>, tree: &str) -> Result<RemoteTree, GitHubError> {
        let mut found = RemoteTree::default();
        let mut requests = 0;
        // A large tree is cut off. Then each folder is requested by itself, and those in it if it is too large, too.
        let mut folders = vec![(tree.to_owned(), String::new(), 0)];
        while let Some((tree, prefix, depth)) = folders.pop() {
            api.control.check()?;
            requests += 1;
            if requests > MAX_TREE_REQUESTS || depth > MAX_FOLDER_DEPTH {
                return Err(GitHubError::TooLarge("The repository has very many or very deep folders".to_owned()));
            }
            let whole = api.tree(&tree, true)?;
            if !whole.truncated {
                found.add_all(&prefix, whole.tree)?;
                continue;
            }
            requests += 1;
            let flat = api.tree(&tree, false)?;
            if flat.truncated {
                let folder = if prefix.is_empty() { "The top folder" } else { prefix.trim_end_matches('/') };
                return Err(GitHubError::TooLarge(format!("{folder} has more files than GitHub lists")));
            }
            let (inner, files): (Vec<_>, Vec<_>) = flat.tree.into_iter().partition(|entry| entry.mode == FOLDER_MODE);
            for entry in inner {
                let path = format!("{prefix}{}", entry.path);
                check_path(&path)?;
                folders.push((entry.sha, format!("{path}/"), depth + 1));
            }
            found.add_all(&prefix, files)?;
            api.control.report(&format!("Listing files: {}", found.files.len()));
        }
        found.check_places()?;
        Ok(found)
    }

    /// Returns what is downloaded for a file.
    pub(crate) fn wanted<'a>(&self, path: &'a str, file: &'a TreeFile) -> WantedBlob<'a> {
        WantedBlob { path, hash: &file.hash, size: self.sizes.get(path).copied() }
    }

    fn add_all(&mut self, prefix: &str, entries: Vec<TreeEntryAnswer>) -> Result<(), GitHubError> {
        for entry in entries {
            let path = format!("{prefix}{}", entry.path);
            check_path(&path)?;
            let is_new = match entry.mode.as_str() {
                FOLDER_MODE => true,
                LINK_MODE => self.left_out.insert(path.clone(), "symbolic link".to_owned()).is_none(),
                SUBMODULE_MODE => self.left_out.insert(path.clone(), "submodule".to_owned()).is_none(),
                // Old repositories have other permissions, which Git reads as these two.
                mode if mode.len() == 6 && mode.starts_with("100") => {
                    let size = entry.size.unwrap_or_default();
                    if size > MAX_FILE_BYTES {
                        let size = size >> 20;
                        return Err(GitHubError::TooLarge(format!("{} has {size} MB", quoted(&path))));
                    }
                    self.total_bytes = self.total_bytes.saturating_add(size);
                    self.sizes.insert(path.clone(), size);
                    let file = TreeFile { hash: entry.sha, is_program: mode == PROGRAM_MODE };
                    self.files.insert(path.clone(), file).is_none()
                }
                _ => {
                    return Err(GitHubError::HostilePath {
                        path: quoted(&path),
                        why: "it's no kind of file that Git has",
                    });
                }
            };
            if !is_new || self.files.contains_key(&path) && self.left_out.contains_key(&path) {
                return Err(GitHubError::HostilePath { path: quoted(&path), why: "it's there twice" });
            }
            if self.files.len() + self.left_out.len() > MAX_FILES {
                return Err(GitHubError::TooLarge(format!("The repository has more than {MAX_FILES} files")));
            }
            if self.total_bytes > MAX_TOTAL_BYTES {
                let most = MAX_TOTAL_BYTES >> 30;
                return Err(GitHubError::TooLarge(format!("The files have more than {most} GB together")));
            }
        }
        Ok(())
    }

    /// Refuses a file in what is a file or a link itself.
    fn check_places(&self) -> Result<(), GitHubError> {
        for path in self.files.keys().chain(self.left_out.keys()) {
            if folders_above(path).any(|above| self.files.contains_key(above) || self.left_out.contains_key(above)) {
                return Err(GitHubError::HostilePath {
                    path: quoted(path),
                    why: "it's in something that isn't a folder",
                });
            }
        }
        Ok(())
    }
}

/// Returns the folders that a path is in, beginning with the nearest.
pub(crate) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(above, _)| above.rsplit_once('/')).map(|(above, _)| above)
}

/// Refuses a path that leads out of the folder, or into what Git or this program keep for themselves.
pub(crate) fn check_path(path: &str) -> Result<(), GitHubError> {
    let refuse = |why: &'static str| Err(GitHubError::HostilePath { path: quoted(path), why });
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return refuse("its path is empty or too long");
    }
    if path.contains(['\\', '\0']) || path.chars().any(char::is_control) {
        return refuse("its path has a backslash or a control character");
    }
    if cfg!(windows) && path.contains([':', '*', '?', '"', '<', '>', '|']) {
        return refuse("its path has a character that Windows doesn't allow");
    }
    for name in path.split('/') {
        if name.is_empty() || name == "." || name == ".." || name.len() > MAX_NAME_BYTES {
            return refuse("its path leads elsewhere");
        }
        if is_reserved(name) {
            return refuse("Git or Tracebook keeps its own files there");
        }
    }
    Ok(())
}

/// Returns whether a file system may take a name for `.git` or for the folder of the record.
fn is_reserved(name: &str) -> bool {
    // These are ignored by some file systems, or at the end of a name.
    let is_ignored = |letter: &char| {
        let code = u32::from(*letter);
        matches!(code, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x206a..=0x206f | 0xfeff)
    };
    let name: String = name.chars().filter(|letter| !is_ignored(letter)).flat_map(char::to_lowercase).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    name == ".git" || name == "git~1" || name == STATE_FOLDER || name.starts_with("tracebo~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_paths_are_refused() {
        let long = "x/".repeat(1_100);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            ".git/config",
            "a/.GIT/hooks/x",
            "GIT~1/x",
            ".git./config",
            ".git /config",
            ".g\u{200c}it/config",
            ".git::$INDEX_ALLOCATION/x",
            "a\\..\\b",
            "a\0b",
            "a\nb",
            ".tracebook-github/record.json",
            &long,
        ] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.md", ".gitignore", ".github/x.yml", "..a", "a..", "ä/日本.md", "a b/c", ".gitx/y"] {
            assert!(check_path(good).is_ok(), "{good:?}");
        }
        assert_eq!(folders_above("a/b/c").collect::<Vec<_>>(), ["a/b", "a"]);
    }
}
