//! The hidden folder beside the files: where they are from, their hashes, and what a pull that stopped halfway wanted.

use crate::address::{ApiAddress, GitHubRepository, is_branch_name, is_hash};
use crate::api_client::ApiClient;
use crate::api_error::GitHubError;
use crate::remote_tree::{RemoteTree, TreeFile, check_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use store::BlobHash;
use user_files::atomic_write::{read_regular_file, replace_file};

/// Name of the hidden folder. It's no part of the repository.
pub const STATE_FOLDER: &str = ".tracebook-github";
const RECORD_FILE: &str = "record.json";
/// The commit that a pull has begun to write.
const PULLING_FILE: &str = "pulling.json";
const ANSWERS_FILE: &str = "answers.json";
const LOCK_FILE: &str = "lock";
/// Folder for what a pull has downloaded.
const INCOMING_FOLDER: &str = "incoming";
/// Maximum size in bytes of each of these files.
const MAX_STATE_FILE_BYTES: u64 = 64 << 20;
/// Version of the record's format.
const RECORD_FORMAT: u32 = 1;

/// Where a folder's files are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderRecord {
    format: u32,
    /// The API's host.
    pub(crate) host: String,
    pub(crate) owner: String,
    pub(crate) name: String,
    /// The branch.
    pub branch: String,
    /// The commit whose files these are.
    pub commit: String,
    pub(crate) tree: String,
    pub(crate) files: BTreeMap<String, TreeFile>,
    /// Symbolic links and submodules of the repository, which aren't written.
    #[serde(default)]
    pub(crate) left_out: BTreeMap<String, String>,
}

impl FolderRecord {
    pub(crate) fn new(
        api: &ApiAddress,
        repository: &GitHubRepository,
        (branch, commit, tree): (String, String, String),
        files: RemoteTree,
    ) -> FolderRecord {
        FolderRecord {
            format: RECORD_FORMAT,
            host: api.host(),
            owner: repository.owner.clone(),
            name: repository.name.clone(),
            branch,
            commit,
            tree,
            files: files.files,
            left_out: files.left_out,
        }
    }

    pub(crate) fn repository(&self) -> GitHubRepository {
        GitHubRepository { owner: self.owner.clone(), name: self.name.clone() }
    }

    /// Returns `OWNER/NAME`.
    pub fn repository_text(&self) -> String {
        self.repository().display_text()
    }

    /// Says what is wrong with a record, which another program may have written.
    fn trouble(&self) -> Option<String> {
        if self.format != RECORD_FORMAT {
            return Some("a newer version of Tracebook has written it".to_owned());
        }
        let mut hashes = [&self.commit, &self.tree].into_iter().chain(self.files.values().map(|file| &file.hash));
        if !hashes.all(|hash| is_hash(hash)) {
            return Some("a hash in it isn't one".to_owned());
        }
        if GitHubRepository::new(&self.owner, &self.name).is_none() || !is_branch_name(&self.branch) {
            return Some("its repository or branch can't have that name".to_owned());
        }
        self.files.keys().chain(self.left_out.keys()).find_map(|path| check_path(path).err()).map(|why| why.to_string())
    }
}

#[derive(Serialize, Deserialize)]
struct PullMark {
    commit: String,
}

/// Returns the folder from GitHub that contains this one, and the path from there; `None` if there's none, or a
/// repository of Git is nearer.
pub fn find_folder(folder: &Path) -> Option<(PathBuf, String)> {
    let folder = folder.canonicalize().ok()?;
    for above in folder.ancestors() {
        if above.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let state = above.join(STATE_FOLDER);
        if state.symlink_metadata().is_ok_and(|found| found.is_dir()) && state.join(RECORD_FILE).exists() {
            let inside = folder.strip_prefix(above).ok()?.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
            return Some((above.to_owned(), inside));
        }
    }
    None
}

/// The state of a folder from GitHub. Another command waits outside while this is there.
#[derive(Debug)]
pub struct FolderState {
    root: PathBuf,
    /// Where the files are from.
    pub record: FolderRecord,
    record_hash: Option<BlobHash>,
    _lock: File,
}

impl FolderState {
    /// Makes a new folder one from GitHub. It's written by [`FolderState::write_record`].
    pub(crate) fn create(root: &Path, record: FolderRecord) -> Result<FolderState, GitHubError> {
        let state = root.join(STATE_FOLDER);
        std::fs::create_dir(&state).map_err(|error| GitHubError::io("created", &state, error))?;
        // A repository that is made here later leaves it out.
        let rules = state.join(".gitignore");
        std::fs::write(&rules, "*\n").map_err(|error| GitHubError::io("written", &rules, error))?;
        let lock = lock(root)?;
        let mut made = FolderState { root: root.to_owned(), record, record_hash: None, _lock: lock };
        made.write_record()?;
        Ok(made)
    }

    /// Opens a folder that [`find_folder`] has found.
    ///
    /// # Errors
    /// Returns [`GitHubError::Locked`] if another command works in it, [`GitHubError::Record`] if its record can't be
    /// used, and [`GitHubError::Refused`] if it's from another host.
    pub fn open(root: &Path, client: &ApiClient) -> Result<FolderState, GitHubError> {
        let lock = lock(root)?;
        let (record, hash) = read_record(root)?;
        if record.host != client.host() {
            return Err(GitHubError::Refused(format!(
                "This folder is from {}, and the configured API is {}. Set GITHUB_API_URL to the address of the first \
                 one.",
                record.host,
                client.host()
            )));
        }
        if let Some(answers) = read_state(&root.join(STATE_FOLDER).join(ANSWERS_FILE)).ok().flatten() {
            client.load_cache(&answers);
        }
        Ok(FolderState { root: root.to_owned(), record, record_hash: Some(hash), _lock: lock })
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn state_path(&self, name: &str) -> PathBuf {
        self.root.join(STATE_FOLDER).join(name)
    }

    pub(crate) fn write_record(&mut self) -> Result<(), GitHubError> {
        let bytes = serde_json::to_vec(&self.record).unwrap_or_default();
        replace_file(&self.state_path(RECORD_FILE), self.record_hash, &bytes)?;
        self.record_hash = Some(BlobHash::of(&bytes));
        Ok(())
    }

    /// Keeps the answers for the next command. They are only worth something, so a failure isn't one.
    pub fn write_cache(&self, client: &ApiClient) {
        let path = self.state_path(ANSWERS_FILE);
        let known = read_regular_file(&path).ok().map(|bytes| BlobHash::of(&bytes));
        let _ = replace_file(&path, known, &client.cache_bytes()); // the next command asks without an ETag
    }

    /// Returns the commit that a pull has begun to write and hasn't finished.
    pub fn unfinished_pull(&self) -> Option<String> {
        unfinished_pull(&self.root)
    }

    pub(crate) fn begin_pull(&self, commit: &str) -> Result<(), GitHubError> {
        let path = self.state_path(PULLING_FILE);
        let known = read_state(&path)?.map(|bytes| BlobHash::of(&bytes));
        let mark = PullMark { commit: commit.to_owned() };
        replace_file(&path, known, &serde_json::to_vec(&mark).unwrap_or_default())?;
        Ok(())
    }

    pub(crate) fn end_pull(&self) -> Result<(), GitHubError> {
        self.clear_incoming()?;
        let path = self.state_path(PULLING_FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitHubError::io("removed", &path, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns an empty folder for downloads.
    pub(crate) fn incoming_folder(&self) -> Result<PathBuf, GitHubError> {
        self.clear_incoming()?;
        let folder = self.state_path(INCOMING_FOLDER);
        std::fs::create_dir(&folder).map_err(|error| GitHubError::io("created", &folder, error))?;
        Ok(folder)
    }

    fn clear_incoming(&self) -> Result<(), GitHubError> {
        let folder = self.state_path(INCOMING_FOLDER);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitHubError::io("removed", &folder, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Reads the record of a folder, and returns it with the hash of its bytes. It's replaced as a whole, so no lock is
/// needed.
pub(crate) fn read_record(root: &Path) -> Result<(FolderRecord, BlobHash), GitHubError> {
    let path = root.join(STATE_FOLDER).join(RECORD_FILE);
    let wrong = |why: String| GitHubError::Record { path: path.clone(), why };
    let bytes = read_state(&path)?.ok_or_else(|| wrong("it's gone".to_owned()))?;
    let record: FolderRecord = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match record.trouble() {
        Some(why) => Err(wrong(why)),
        None => Ok((record, BlobHash::of(&bytes))),
    }
}

fn unfinished_pull(root: &Path) -> Option<String> {
    let bytes = read_state(&root.join(STATE_FOLDER).join(PULLING_FILE)).ok().flatten()?;
    let mark: PullMark = serde_json::from_slice(&bytes).ok()?;
    is_hash(&mark.commit).then_some(mark.commit)
}

/// Returns whether a pull has stopped halfway. One that runs has too.
pub(crate) fn is_pull_unfinished(root: &Path) -> bool {
    unfinished_pull(root).is_some()
}

/// Returns the files that change with every pull and commit.
pub(crate) fn state_files(root: &Path) -> Vec<PathBuf> {
    [RECORD_FILE, PULLING_FILE].map(|name| root.join(STATE_FOLDER).join(name)).to_vec()
}

fn lock(root: &Path) -> Result<File, GitHubError> {
    let path = root.join(STATE_FOLDER).join(LOCK_FILE);
    lock_file(&path)
        .map_err(|error| GitHubError::io("opened", &path, error))?
        .ok_or_else(|| GitHubError::Locked(root.to_owned()))
}

/// Opens and locks a file; `None` if another process has locked it.
pub(crate) fn lock_file(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn read_state(path: &Path) -> Result<Option<Vec<u8>>, GitHubError> {
    let fail = |error| GitHubError::io("read", path, error);
    match path.symlink_metadata() {
        Ok(found) if found.len() > MAX_STATE_FILE_BYTES => Err(fail(io::Error::other("it's too large"))),
        Ok(_) => read_regular_file(path).map(Some).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error)),
    }
}
