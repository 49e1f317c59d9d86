//! What other programs ask the user, until it's decided.
//!
//! A server asks in one process, and the user decides in another: in the window, on the command line, or over HTTP. So
//! a request is a file in the workspace. The server that asks holds a lock for it; a request whose lock is free is left
//! over from a server that was killed, and is removed.

mod approval_watch;

pub use approval_watch::ApprovalWatch;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Maximum number of requests that wait.
pub const MAX_WAITING_REQUESTS: usize = 200;
/// Maximum length of an id in bytes.
pub const MAX_ID_BYTES: usize = 200;
/// Maximum size of the change that a request shows, in bytes. A longer one can't be asked about.
pub const MAX_DIFF_BYTES: usize = 256 << 10;

/// The folder in the workspace that holds the requests.
const REQUESTS_FOLDER: &str = "program-approvals";
/// Maximum size of a file in that folder in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A request of a program that waits for the user's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramApproval {
    /// Under which it's decided: letters, digits, dots, dashes and underscores.
    pub id: String,
    /// What the program wants to use: a tool, or a word of its own.
    pub tool: String,
    /// What would be done, as a sentence.
    pub what: String,
    /// Why it's asked, as a sentence.
    pub reason: String,
    /// The program that asks, as it calls itself.
    pub program: String,
    /// The only volume that it's about; `None` if it's about none or several.
    #[serde(default)]
    pub volume: Option<String>,
    /// Path of the note that would be changed.
    #[serde(default)]
    pub path: Option<String>,
    /// The change of the note.
    #[serde(default)]
    pub diff: String,
    /// What else the program says.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// When it was asked, in milliseconds since 1970.
    pub asked: i64,
    /// When it expires and counts as denied, in milliseconds since 1970.
    pub expires: i64,
}

/// The user's decision about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramDecision {
    /// Whether it's approved; denied otherwise.
    pub approved: bool,
    /// What the program is told.
    #[serde(default)]
    pub comment: String,
}

/// Why a request can't be held, or decided.
#[derive(Debug, thiserror::Error)]
pub enum ProgramApprovalError {
    /// The id can't be one.
    #[error("an id has letters, digits, dots, dashes and underscores, and begins with one of the first two")]
    Id,
    /// A request with its id waits.
    #[error("a request with this id waits already")]
    Taken,
    /// Too many wait.
    #[error("{MAX_WAITING_REQUESTS} requests wait for a decision; try again later")]
    Full,
    /// The folder of requests can't be used.
    #[error("{path} can't be used: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> ProgramApprovalError {
    let path = path.to_owned();
    |source| ProgramApprovalError::Io { path, source }
}

/// Returns whether a text can be the id of a request.
pub fn is_request_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let begins = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    id.len() <= MAX_ID_BYTES && begins && id.bytes().all(is_plain)
}

/// Returns options that open a file for writing which only the user can read.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Reads a file of the folder; `None` if it's not there, or isn't one of ours.
fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The requests of a workspace.
#[derive(Clone, Debug)]
pub struct ProgramApprovals {
    folder: PathBuf,
}

impl ProgramApprovals {
    /// Returns the requests of the workspace in this folder.
    pub fn new(workspace: &Path) -> ProgramApprovals {
        ProgramApprovals { folder: workspace.join(REQUESTS_FOLDER) }
    }

    fn file(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }

    /// Keeps other processes from changing requests, until the file is dropped.
    fn lock(&self) -> Result<File, ProgramApprovalError> {
        let path = self.folder.join("lock");
        let file = private_file().open(&path).map_err(io_error(&path))?;
        file.lock().map_err(io_error(&path))?;
        Ok(file)
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), ProgramApprovalError> {
        let new = self.folder.join("new");
        let bytes = serde_json::to_vec(value).map_err(|error| io_error(&new)(error.into()))?;
        let written = private_file().truncate(true).open(&new).and_then(|mut file| file.write_all(&bytes));
        written.and_then(|()| std::fs::rename(&new, path)).map_err(io_error(path))
    }

    fn remove(&self, id: &str) {
        for ending in ["json", "decision", "alive"] {
            // What can't be removed is left over, and tried again with the next look.
            let _ = std::fs::remove_file(self.file(id, ending));
        }
    }

    /// Returns whether the server that asked still waits.
    fn is_held(&self, id: &str) -> bool {
        let Ok(file) = File::open(self.file(id, "alive")) else { return false };
        // Only a server that waits keeps others from this lock.
        matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
    }

    /// Reads the requests that wait, in the order of time. The lock is held meanwhile.
    fn read_waiting(&self, _lock: &File) -> Result<Vec<ProgramApproval>, ProgramApprovalError> {
        let mut waiting: Vec<ProgramApproval> = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(io_error(&self.folder))? {
            let name = entry.map_err(io_error(&self.folder))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|id| is_request_id(id));
            let Some(id) = id else { continue };
            let found = read_json::<ProgramApproval>(&self.file(id, "json")).filter(|request| request.id == id);
            match found {
                Some(request) if self.is_held(id) => {
                    if !self.file(id, "decision").exists() {
                        waiting.push(request);
                    }
                }
                _ => self.remove(id),
            }
        }
        waiting.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        Ok(waiting)
    }

    /// Returns the requests that wait for a decision, the oldest first.
    ///
    /// # Errors
    /// Returns an error if the folder can't be read.
    pub fn waiting(&self) -> Result<Vec<ProgramApproval>, ProgramApprovalError> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        self.read_waiting(&self.lock()?)
    }

    /// Lets a request wait until it's decided, or the returned value is dropped.
    ///
    /// # Errors
    /// Returns an error if its id is taken or can't be one, too many wait, or the folder can't be written.
    pub fn hold(&self, request: &ProgramApproval) -> Result<HeldApproval, ProgramApprovalError> {
        let id = &request.id;
        if !is_request_id(id) {
            return Err(ProgramApprovalError::Id);
        }
        create_private_folder(&self.folder).map_err(io_error(&self.folder))?;
        let lock = self.lock()?;
        let waiting = self.read_waiting(&lock)?;
        // One that was just decided still has its files.
        if self.file(id, "json").exists() {
            return Err(ProgramApprovalError::Taken);
        }
        if waiting.len() >= MAX_WAITING_REQUESTS {
            return Err(ProgramApprovalError::Full);
        }
        let path = self.file(id, "alive");
        let alive = private_file().open(&path).map_err(io_error(&path))?;
        alive.lock().map_err(io_error(&path))?;
        let mut held =
            HeldApproval { requests: self.clone(), id: id.clone(), alive: Some(alive), is_folder_locked: true };
        // With an error, `held` removes what there is of it.
        self.write_json(&self.file(id, "json"), request)?;
        held.is_folder_locked = false;
        Ok(held)
    }

    /// Decides the request with this id if `can_decide` it. Returns whether there was one.
    ///
    /// # Errors
    /// Returns an error if the folder can't be written.
    pub fn decide(
        &self,
        id: &str,
        can_decide: impl Fn(&ProgramApproval) -> bool,
        decision: &ProgramDecision,
    ) -> Result<bool, ProgramApprovalError> {
        if !is_request_id(id) || !self.folder.exists() {
            return Ok(false);
        }
        let lock = self.lock()?;
        let waiting = self.read_waiting(&lock)?;
        if !waiting.iter().any(|request| request.id == id && can_decide(request)) {
            return Ok(false);
        }
        self.write_json(&self.file(id, "decision"), decision)?;
        Ok(true)
    }
}

/// A request that waits. Dropping it takes the request back.
#[derive(Debug)]
pub struct HeldApproval {
    requests: ProgramApprovals,
    id: String,
    /// Locked for as long as the request waits.
    alive: Option<File>,
    /// Whether the one that drops it holds the lock of the folder.
    is_folder_locked: bool,
}

impl HeldApproval {
    /// Returns the decision, if there is one.
    pub fn decision(&self) -> Option<ProgramDecision> {
        read_json(&self.requests.file(&self.id, "decision"))
    }

    /// Takes the request back, unless it was decided in the last moment.
    pub fn withdraw(mut self) -> Option<ProgramDecision> {
        // While the lock is held, nobody decides.
        let lock = self.requests.lock().ok();
        let decision = self.decision();
        self.is_folder_locked = lock.is_some();
        drop(self);
        decision
    }
}

impl Drop for HeldApproval {
    fn drop(&mut self) {
        let _lock = if self.is_folder_locked { None } else { self.requests.lock().ok() };
        self.requests.remove(&self.id);
        self.alive = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn request(id: &str) -> ProgramApproval {
        ProgramApproval {
            id: id.to_owned(),
            tool: "edit_note".to_owned(),
            what: "Edit Boat.md".to_owned(),
            reason: "writes wait for your approval".to_owned(),
            program: "t".to_owned(),
            volume: Some("notes".to_owned()),
            path: Some("Boat.md".to_owned()),
            diff: "-a\n+b\n".to_owned(),
            parameters: Map::new(),
            asked: 1,
            expires: 2,
        }
    }

    fn approve() -> ProgramDecision {
        ProgramDecision { approved: true, comment: "go".to_owned() }
    }

    #[test]
    fn a_request_waits_until_it_is_decided_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (asking, deciding) = (ProgramApprovals::new(folder.path()), ProgramApprovals::new(folder.path()));
        assert!(deciding.waiting().expect("read").is_empty());
        assert!(!folder.path().join(REQUESTS_FOLDER).exists(), "looking makes nothing");
        let held = asking.hold(&request("a")).expect("held");
        assert!(matches!(asking.hold(&request("a")), Err(ProgramApprovalError::Taken)));
        assert_eq!(deciding.waiting().expect("read"), [request("a")]);
        assert_eq!(held.decision(), None);
        let never = |_: &ProgramApproval| false;
        assert!(!deciding.decide("a", never, &approve()).expect("read"), "it isn't seen");
        assert!(!deciding.decide("b", |_| true, &approve()).expect("read"));
        assert!(!deciding.decide("../a", |_| true, &approve()).expect("read"));
        assert!(deciding.decide("a", |_| true, &approve()).expect("written"));
        let denied = ProgramDecision::default();
        assert!(!deciding.decide("a", |_| true, &denied).expect("read"), "it's decided already");
        assert!(deciding.waiting().expect("read").is_empty());
        assert_eq!(held.decision(), Some(approve()));
        assert_eq!(held.withdraw(), Some(approve()));
        asking.hold(&request("a")).expect("its id is free again");
    }

    #[test]
    fn a_request_is_gone_with_who_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let requests = ProgramApprovals::new(folder.path());
        let held = requests.hold(&request("a")).expect("held");
        drop(held);
        assert!(requests.waiting().expect("read").is_empty());
        assert!(!requests.decide("a", |_| true, &approve()).expect("read"));
        // A server that was killed leaves its files, but no lock.
        let held = requests.hold(&request("b")).expect("held");
        let (from, to) = (folder.path().join(REQUESTS_FOLDER), folder.path().join("kept"));
        std::fs::create_dir(&to).expect("made");
        for name in ["b.json", "b.alive"] {
            std::fs::copy(from.join(name), to.join(name)).expect("copied");
        }
        drop(held);
        for name in ["b.json", "b.alive"] {
            std::fs::copy(to.join(name), from.join(name)).expect("copied");
        }
        assert!(requests.waiting().expect("read").is_empty());
        assert!(!from.join("b.json").exists(), "it's tidied away");
    }

    #[test]
    fn what_is_no_id_and_too_many_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let requests = ProgramApprovals::new(folder.path());
        for wrong in ["", ".", "..", "a/b", "é", "-a", &"x".repeat(MAX_ID_BYTES + 1)] {
            assert!(matches!(requests.hold(&request(wrong)), Err(ProgramApprovalError::Id)), "{wrong}");
        }
        let held: Vec<HeldApproval> =
            (0..MAX_WAITING_REQUESTS).map(|at| requests.hold(&request(&format!("r{at}"))).expect("held")).collect();
        assert!(matches!(requests.hold(&request("more")), Err(ProgramApprovalError::Full)));
        drop(held);
        requests.hold(&request("more")).expect("there is room again");
    }
}
