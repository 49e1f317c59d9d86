//! The workspace's list of processes that made containers. Each has a file that names its engine and that it keeps
//! locked as long as it lives; the containers of an unlocked one are removed by the next process that starts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Folder of the workspace with the files.
const LEDGER_FOLDER: &str = "containers";
/// Maximum length of a file in bytes: a path.
const MAX_LEDGER_BYTES: u64 = 4_096;

/// The file of one process and one engine. Other processes can't lock it while this exists.
#[derive(Debug)]
pub(crate) struct ContainerLedger {
    file: File,
    path: PathBuf,
    /// Name of the process in labels.
    pub(crate) owner: String,
    pub(crate) socket: PathBuf,
}

impl ContainerLedger {
    /// Records that this process makes containers with the engine at `socket`.
    pub(crate) fn begin(workspace: &Path, socket: &Path) -> io::Result<ContainerLedger> {
        let folder = workspace.join(LEDGER_FOLDER);
        fs::create_dir_all(&folder)?;
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        let owner = format!("{}-{random:016x}", std::process::id());
        let path = folder.join(&owner);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        file.lock()?;
        file.write_all(socket.as_os_str().as_encoded_bytes())?;
        file.sync_all()?;
        Ok(ContainerLedger { file, path, owner, socket: socket.to_owned() })
    }

    /// Takes over the files of processes that have ended without removing their containers.
    pub(crate) fn take_stale(workspace: &Path) -> Vec<ContainerLedger> {
        let entries = fs::read_dir(workspace.join(LEDGER_FOLDER)).into_iter().flatten().flatten();
        entries.filter_map(|entry| ContainerLedger::take(&entry.path())).collect()
    }

    fn take(path: &Path) -> Option<ContainerLedger> {
        let owner = path.file_name()?.to_str()?.to_owned();
        let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        file.try_lock().ok()?;
        let mut socket = String::new();
        (&mut file).take(MAX_LEDGER_BYTES).read_to_string(&mut socket).ok()?;
        Some(ContainerLedger { file, path: path.to_owned(), owner, socket: PathBuf::from(socket) })
    }

    /// Forgets the process, because none of its containers is left.
    pub(crate) fn finish(self) {
        let _ = fs::remove_file(&self.path); // otherwise the next process finds no container, and tries again
        drop(self.file);
    }
}
