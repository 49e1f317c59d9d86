//! What is kept of each fork: a JSON file in its folder.

use crate::fork_error::ForkError;
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{BlobHash, DocId};

/// Name of the file with a fork's record. Names of forks don't begin with a dot.
const RECORD_FILE: &str = ".fork.json";
/// Name of the file that lists what the fork was made from.
const BASE_FILE: &str = ".base.json";
/// Folder with the texts that the fork was made from, by hash.
const BASE_FOLDER: &str = ".base";
/// Folder with the bytes of adopted files before and after, by hash.
const KEPT_FOLDER: &str = ".kept";
/// Maximum size of a record in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 20;
/// Maximum length of a fork's name.
const MAX_NAME_CHARS: usize = 60;
/// Maximum number of words of a prompt in a name.
const MAX_NAME_WORDS: usize = 4;
/// Prefix of the branches of forks.
const BRANCH_PREFIX: &str = "tracebook/fork-";

/// The phase of a fork's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkPhase {
    /// It's being made, or that was interrupted.
    Making,
    /// Runs can work in it.
    Ready,
    /// It's being discarded, or that was interrupted.
    Discarding,
}

/// The branch and worktree of a fork in a Git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkBranch {
    /// Root folder of the user's repository.
    pub top: PathBuf,
    /// Path of the project's folder in the repository, with `/` between its parts; empty for the root.
    pub prefix: String,
    /// Name of the branch.
    pub branch: String,
    /// Hash of the commit at which the branch begins.
    pub commit: String,
    /// Hash of the branch's first own commit, which has what wasn't committed in the project; `None` if all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// What a fork doesn't have of its project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFiles {
    /// Files and folders that Git ignores, or without Git folders of dependencies and caches.
    pub ignored: Vec<String>,
    /// Untracked files that commonly hold secrets.
    pub secret: Vec<String>,
    /// Submodules and repositories inside the project.
    pub nested: Vec<String>,
    /// Links that lead out of the project, and what is no ordinary file.
    pub links: Vec<String>,
    /// Notes whose saved variables aren't there, and why.
    #[serde(default)]
    pub variables: Vec<String>,
}

/// A note of a fork whose variables are saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedVariables {
    /// The note in the fork.
    pub note: DocId,
    /// The state that it began with, which is one of the project's note.
    pub state: Option<String>,
}

/// A file as it was when the fork was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseFile {
    pub(crate) hash: BlobHash,
    pub(crate) size: u64,
    /// Modification time of the fork's copy, in nanoseconds since 1970.
    pub(crate) modified: i64,
    /// Whether its text is kept, which a merge needs.
    pub(crate) is_kept: bool,
}

/// The files that a fork was made from, by path.
pub(crate) type BaseFiles = BTreeMap<String, BaseFile>;

/// What changed the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdoptionKind {
    /// An adoption of the fork's changes.
    Adopt,
    /// The undoing of an adoption.
    Undo,
}

/// How far an adoption is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdoptionPhase {
    /// Files are being written.
    Writing,
    /// All files are written, and a commit may be missing.
    Committing,
    /// It's complete.
    Done,
}

/// A file that an adoption writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptionStep {
    /// Path in the project.
    pub path: String,
    /// The project's bytes before; `None` if there was no file.
    pub before: Option<BlobHash>,
    /// The project's bytes after; `None` if the file is deleted.
    pub after: Option<BlobHash>,
    /// Whether a new file can be executed.
    #[serde(default)]
    pub is_executable: bool,
}

/// A change of the project by a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptionRecord {
    /// The kind of adoption.
    pub kind: AdoptionKind,
    /// When it began, in milliseconds since 1970.
    pub at: i64,
    /// The last phase that it reached.
    pub phase: AdoptionPhase,
    /// The files that it writes.
    pub steps: Vec<AdoptionStep>,
    /// Whether only some of the fork's changes were chosen.
    pub is_partial: bool,
    /// Whether it was undone.
    #[serde(default)]
    pub is_undone: bool,
    /// Message of the commit to make; `None` if the reason in `not_committed` speaks against one, or without Git.
    pub message: Option<String>,
    /// Hash of the commit, once it's made.
    pub commit: Option<String>,
    /// Why there's no commit.
    pub not_committed: Option<String>,
}

/// What is kept of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkRecord {
    /// Name of the fork.
    pub name: String,
    /// The volume that was copied.
    pub volume: DocId,
    /// Name of that volume.
    pub volume_name: String,
    /// The project's folder.
    pub project: PathBuf,
    /// When the fork was made, in milliseconds since 1970.
    pub created: i64,
    /// The last phase that it reached.
    pub phase: ForkPhase,
    /// The branch; `None` without Git.
    pub git: Option<ForkBranch>,
    /// Number of copied files.
    pub files: usize,
    /// Size of copied files in bytes.
    pub bytes: u64,
    /// The files that weren't copied.
    pub left_out: LeftOutFiles,
    /// Changes of the project by this fork, oldest first.
    pub adoptions: Vec<AdoptionRecord>,
    /// Notes of the fork with saved variables that it began with, or that are deleted with it.
    #[serde(default)]
    pub states: Vec<ForkedVariables>,
}

impl ForkRecord {
    /// Returns the adoption that was interrupted, if any.
    pub fn interrupted(&self) -> Option<&AdoptionRecord> {
        self.adoptions.last().filter(|last| last.phase != AdoptionPhase::Done)
    }

    /// Returns the last adoption that is in effect.
    pub fn adopted(&self) -> Option<&AdoptionRecord> {
        let in_effect = |one: &&AdoptionRecord| {
            one.kind == AdoptionKind::Adopt && one.phase == AdoptionPhase::Done && !one.is_undone
        };
        self.adoptions.iter().rev().find(in_effect)
    }
}

/// The forks of a workspace.
#[derive(Clone, Debug)]
pub struct ForkStore {
    folder: PathBuf,
}

impl ForkStore {
    /// Returns the forks of the workspace in this folder.
    pub fn new(workspace: &Path) -> ForkStore {
        ForkStore { folder: workspace.join(engine::records::forks::FORKS_FOLDER) }
    }

    /// Returns the folder with the saved states of a note.
    pub(crate) fn states_folder(&self, note: DocId) -> PathBuf {
        // The forks' folder is in the workspace's.
        host::states_folder(self.folder.parent().unwrap_or(&self.folder), note)
    }

    /// Returns the folder that holds everything of a fork.
    pub(crate) fn fork_folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the folder with a fork's files: of its repository, if it has one.
    pub(crate) fn tree_folder(&self, name: &str) -> PathBuf {
        // Git names a worktree by its folder, so the folder is called as the fork.
        self.folder.join(name).join(name)
    }

    /// Returns the folder with the copy of the project.
    pub fn files_folder(&self, fork: &ForkRecord) -> PathBuf {
        let tree = self.tree_folder(&fork.name);
        match &fork.git {
            Some(git) if !git.prefix.is_empty() => tree.join(&git.prefix),
            _ => tree,
        }
    }

    /// Returns whether the folder with the copy of the project exists.
    pub fn has_files(&self, fork: &ForkRecord) -> bool {
        self.files_folder(fork).is_dir()
    }

    pub(crate) fn base_text_path(&self, name: &str, hash: BlobHash) -> PathBuf {
        self.fork_folder(name).join(BASE_FOLDER).join(hash.to_string())
    }

    pub(crate) fn kept_bytes(&self, name: &str) -> store::disk::BlobStore {
        store::disk::BlobStore::new(&self.fork_folder(name).join(KEPT_FOLDER))
    }

    /// Returns all forks by name. Folders without a readable record are left out.
    ///
    /// # Errors
    /// Returns an error if the folder can't be listed.
    pub fn list(&self) -> Result<Vec<ForkRecord>, ForkError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ForkError::io("listing", &self.folder, &error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut forks: Vec<ForkRecord> = names.filter_map(|name| self.read(&name).ok()).collect();
        forks.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
        Ok(forks)
    }

    /// Reads a fork's record.
    ///
    /// # Errors
    /// Returns [`ForkError::Refused`] if there's no fork with this name.
    pub fn read(&self, name: &str) -> Result<ForkRecord, ForkError> {
        check_name(name)?;
        let file = self.fork_folder(name).join(RECORD_FILE);
        let fork = host::fs::copy::read(&file, MAX_RECORD_BYTES)
            .and_then(|bytes| serde_json::from_slice::<ForkRecord>(&bytes).ok())
            .filter(|fork| fork.name == name);
        fork.ok_or_else(|| {
            ForkError::Refused(format!("there is no fork “{name}”; `tracebook forks` lists the forks that there are"))
        })
    }

    pub(crate) fn save(&self, fork: &ForkRecord) -> Result<(), ForkError> {
        self.write_json(&self.fork_folder(&fork.name).join(RECORD_FILE), fork)
    }

    pub(crate) fn save_base(&self, name: &str, base: &BaseFiles) -> Result<(), ForkError> {
        self.write_json(&self.fork_folder(name).join(BASE_FILE), base)
    }

    pub(crate) fn read_base(&self, name: &str) -> Result<BaseFiles, ForkError> {
        let file = self.fork_folder(name).join(BASE_FILE);
        let base = host::fs::copy::read(&file, MAX_RECORD_BYTES).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        base.ok_or_else(|| {
            ForkError::Refused(format!(
                "the list of what the fork {name} was made from can't be read; its files are in {}",
                self.tree_folder(name).display()
            ))
        })
    }

    fn write_json(&self, file: &Path, value: &impl Serialize) -> Result<(), ForkError> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| ForkError::io("writing", file, &std::io::Error::other(error)))?;
        let before = host::fs::copy::read(file, MAX_RECORD_BYTES).map(|bytes| BlobHash::of(&bytes));
        match replace_file(file, before, &bytes)? {
            ReplaceOutcome::Done { .. } => Ok(()),
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                Err(ForkError::Refused(format!("another program has changed {}; try again", file.display())))
            }
        }
    }

    /// Returns a free name: the given one, or one made of the prompt's first words.
    pub(crate) fn free_name(&self, wanted: Option<&str>, prompt: &str) -> Result<String, ForkError> {
        let taken: Vec<String> = std::fs::read_dir(&self.folder)
            .map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().to_lowercase()).collect())
            .unwrap_or_default();
        let is_taken = |name: &str| taken.contains(&name.to_lowercase());
        let Some(name) = wanted else {
            let name = name_of_prompt(prompt);
            let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name));
            return Ok(free.unwrap_or(name));
        };
        check_name(name)?;
        if is_taken(name) {
            return Err(ForkError::Refused(format!(
                "there is a fork {name} already; choose another name, or discard it: `tracebook forks discard {name}`"
            )));
        }
        Ok(name.to_owned())
    }

    /// Returns sentences about what was interrupted, for the user.
    pub fn interruptions(&self) -> Vec<String> {
        let forks = self.list().unwrap_or_default();
        let sentence = |fork: &ForkRecord| match fork.phase {
            ForkPhase::Making => Some(format!(
                "the fork {0} was not finished; `tracebook forks discard {0}` removes what there is of it",
                fork.name
            )),
            ForkPhase::Discarding => Some(format!(
                "the fork {0} is half discarded; `tracebook forks discard {0}` removes the rest",
                fork.name
            )),
            ForkPhase::Ready => fork.interrupted().map(|_| ForkError::Interrupted(fork.name.clone()).to_string()),
        };
        forks.iter().filter_map(sentence).collect()
    }
}

/// Returns the name of a fork's branch.
pub(crate) fn branch_name(name: &str) -> String {
    format!("{BRANCH_PREFIX}{name}")
}

/// Checks that a name can be that of a folder and of a branch.
fn check_name(name: &str) -> Result<(), ForkError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
        && name.len() <= MAX_NAME_CHARS
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.to_lowercase().ends_with(".lock");
    if is_good {
        return Ok(());
    }
    Err(ForkError::Refused(format!(
        "a fork's name has up to {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`, and begins with a letter or \
         digit, not “{}”",
        name.chars().take(MAX_NAME_CHARS).collect::<String>()
    )))
}

fn name_of_prompt(prompt: &str) -> String {
    let words = prompt.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.take(MAX_NAME_WORDS).map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let short: String = name.chars().take(MAX_NAME_CHARS / 2).collect();
    match short.trim_end_matches('-') {
        "" => "fork".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_folders_and_branches() {
        for good in ["a", "try-1", "A.b_c", "2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for wrong in
            ["", ".", "..", "../a", "a/b", "a\\b", "-a", ".a", "a..b", "a.", "a.lock", "a b", "ä", "a\0", "a:b"]
        {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
        assert!(check_name(&"a".repeat(61)).is_err());
        assert_eq!(name_of_prompt("Add tests, please: for the parser!"), "add-tests-please-for");
        assert_eq!(name_of_prompt("../../etc"), "etc");
        assert_eq!(name_of_prompt("日本"), "fork");
        assert!(check_name(&name_of_prompt(&"x".repeat(500))).is_ok());
    }
}
