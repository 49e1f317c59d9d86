//! Saved states that notes share: announces those of this device, and fetches those of others with the blobs.
//!
//! What is fetched is put where the note's kernel, which is confined, finds and checks it.

use super::blob_io::PARTIAL_BLOBS_FOLDER;
use super::withdrawn_states::read_withdrawn;
use super::{SyncService, SyncTask};
use crate::fs::confined_dir::ConfinedFolder;
use crate::kernel::science::states_folder;
use crate::mailbox::Mailbox;
use ::kernel_states::{
    SharedStateFile, StateError, announce_state, begin_sharing, end_sharing, incoming_file, plan_receiving,
};
use engine::{Event, SharedStateJob, SharedStateOutcome};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use store::disk::BlobStore;
use store::sync::blobs::VolumeBlob;
use store::{BlobHash, DocId};

/// Time that the first device or hub may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Time that others may take to connect, if no connected one has the state.
const FURTHER_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for fetching a state. The next run continues where this one stopped.
const FETCH_TIMEOUT: Duration = Duration::from_secs(600);

/// A job that waits for those before it.
pub(super) type SharedStateTask = Box<dyn FnOnce() + Send>;

/// A state that is being fetched.
pub(super) struct StateFetch {
    volume: DocId,
    /// Its files, with their sizes in bytes.
    files: Vec<(BlobHash, u64)>,
    /// Where to report the end: whether all files are here. `None`: it was reported.
    done: Option<Sender<bool>>,
    began: Instant,
}

impl StateFetch {
    /// Returns the blobs to fetch, with their sizes in bytes.
    pub(super) fn items(&self) -> impl Iterator<Item = (VolumeBlob, u64)> {
        self.files.iter().map(|(hash, size)| (VolumeBlob { volume: self.volume, hash: *hash }, *size))
    }

    /// Reports the end, if all files are here or one can't come from the peers, of which there may be none.
    pub(super) fn report(
        &mut self,
        has_peers: bool,
        is_here: &dyn Fn(&VolumeBlob) -> bool,
        may_come: &dyn Fn(&VolumeBlob) -> bool,
    ) {
        let timeout = if has_peers { FURTHER_CONNECT_TIMEOUT } else { CONNECT_TIMEOUT };
        let missing: Vec<VolumeBlob> = self.items().map(|(item, _)| item).filter(|item| !is_here(item)).collect();
        let is_lost = self.began.elapsed() > timeout && !missing.iter().all(may_come);
        if (missing.is_empty() || is_lost)
            && let Some(done) = self.done.take()
        {
            let _ = done.send(missing.is_empty()); // the thread that asked may have given up
        }
    }
}

impl SyncService {
    /// Fetches files from other devices into the folder for received blobs, and waits for them. Returns whether all are
    /// there. They stay until [`SyncService::end_state_fetch`].
    fn fetch_state(&self, note: DocId, volume: DocId, files: &[SharedStateFile]) -> bool {
        let files: Vec<_> = files.iter().filter_map(|file| Some((file.hash.parse().ok()?, file.size))).collect();
        let (done, wait) = channel();
        let fetch = StateFetch { volume, files, done: Some(done), began: Instant::now() };
        self.active.load(Ordering::Acquire)
            && self.tasks.send(SyncTask::SetStateFetch(note, Some(Box::new(fetch)))).is_ok()
            && wait.recv_timeout(FETCH_TIMEOUT).unwrap_or(false)
    }

    fn end_state_fetch(&self, note: DocId) {
        let _ = self.tasks.send(SyncTask::SetStateFetch(note, None)); // the receiver ends only with the program
    }
}

/// Starts a job on a note's shared state. What shares, announces or unshares is done in order, so that no old
/// announcement comes after a newer one; fetching, which takes longer, has a thread of its own.
pub(crate) fn start_shared_state_job(
    workspace: &Path,
    sync: &SyncService,
    inbox: &Mailbox,
    (note, volume): (DocId, DocId),
    job: SharedStateJob,
) {
    let is_fetch = matches!(job, SharedStateJob::Fetch(_) | SharedStateJob::FetchAnyway(_));
    let (workspace, inbox, with) = (workspace.to_owned(), inbox.clone(), sync.clone());
    let task = move || {
        let run = || run_shared_state_job(&workspace, &with, (note, volume), job);
        let outcome = outcome_or_panic(is_fetch, run);
        if !is_fetch {
            // The receiver ends only with the program, and the list is in the note's folder.
            let _ = with.tasks.send(SyncTask::SetWithdrawn(note, read_withdrawn(&workspace, note)));
        }
        inbox.send_event(Event::SharedStateDone { note, outcome });
    };
    if is_fetch {
        std::thread::spawn(task);
    } else {
        let queue = sync.state_tasks.get_or_init(|| {
            let (tasks, queue) = channel::<SharedStateTask>();
            std::thread::spawn(move || queue.into_iter().for_each(|task| task()));
            tasks
        });
        let _ = queue.send(Box::new(task)); // the thread ends only with the program
    }
}

/// Returns the outcome of a job even if it panics, which the panic hook logs: later jobs need the thread, and the note
/// waits for an outcome.
fn outcome_or_panic(is_fetch: bool, run: impl FnOnce() -> SharedStateOutcome) -> SharedStateOutcome {
    let failed = if is_fetch { SharedStateOutcome::FetchFailed } else { SharedStateOutcome::ShareFailed };
    let panicked = |_| failed("the variables can't be transferred; this is a fault of Tracebook's".to_owned());
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked)
}

fn run_shared_state_job(
    workspace: &Path,
    sync: &SyncService,
    (note, volume): (DocId, DocId),
    job: SharedStateJob,
) -> SharedStateOutcome {
    let (folder, volume_id) = (states_folder(workspace, note), volume.to_string());
    let announce = |()| match announce_state(&folder, &volume_id)? {
        Some(shared) => shared.to_text().map(Some),
        None => Ok(None),
    };
    let fetch = |announcement: &str, is_asked| fetch_state(workspace, sync, (note, volume), announcement, is_asked);
    let failed = |why: StateError| SharedStateOutcome::ShareFailed(format!("the variables can't be shared: {why}"));
    match job {
        SharedStateJob::Share => {
            begin_sharing(&folder, &volume_id).and_then(announce).map_or_else(failed, SharedStateOutcome::Announced)
        }
        SharedStateJob::Announce => announce(()).map_or_else(failed, SharedStateOutcome::Announced),
        SharedStateJob::Unshare => end_sharing(&folder).map_or_else(failed, |()| SharedStateOutcome::Unshared),
        SharedStateJob::Fetch(announcement) => {
            fetch(&announcement, false).map_or_else(fetch_failed, SharedStateOutcome::Fetched)
        }
        SharedStateJob::FetchAnyway(announcement) => match fetch(&announcement, true) {
            Ok(true) => SharedStateOutcome::Fetched(true),
            Ok(false) => SharedStateOutcome::FetchFailed("this device has the newest shared variables".to_owned()),
            Err(why) => fetch_failed(why),
        },
    }
}

fn fetch_failed(why: StateError) -> SharedStateOutcome {
    SharedStateOutcome::FetchFailed(format!("the variables of the other device could not be restored: {why}"))
}

/// Fetches an announced state for the note's kernel. Returns whether the kernel has something to take or to refuse.
fn fetch_state(
    workspace: &Path,
    sync: &SyncService,
    (note, volume): (DocId, DocId),
    announcement: &str,
    is_asked: bool,
) -> Result<bool, StateError> {
    let folder = states_folder(workspace, note);
    let pack = science_pack::PackFolder::of_user().installed().map(|pack| pack.wheel_sha256);
    let Some(wanted) = plan_receiving(&folder, announcement, pack.as_deref(), is_asked)? else { return Ok(false) };
    if wanted.is_empty() {
        return Ok(true);
    }
    let mut placed = Ok(());
    if sync.fetch_state(note, volume, &wanted) {
        placed = wanted.iter().try_for_each(|file| place_state_file(workspace, &folder, file));
    }
    sync.end_state_fetch(note);
    placed.map(|()| true)
}

/// Puts a received file where the note's kernel finds it.
fn place_state_file(workspace: &Path, folder: &Path, file: &SharedStateFile) -> Result<(), StateError> {
    let Ok(hash) = file.hash.parse::<BlobHash>() else { return Err(StateError::BadAnnouncement) };
    let stores = [BlobStore::new(&workspace.join(PARTIAL_BLOBS_FOLDER)), BlobStore::new(workspace)];
    let Some(from) = stores.iter().find(|blobs| blobs.has(hash)) else { return Err(StateError::NotReceived) };
    let (from, to) = (from.blob_path(hash), incoming_file(folder, file));
    copy_into_folder(&from, folder, &to).map_err(|source| StateError::Write { path: to, source })
}

/// Copies a file to a path in a note's folder, where the kernel's process may write. So it isn't linked there, which
/// would let that process reach the blob, and no link that lies there is followed. A copy gets its name when it is
/// whole.
fn copy_into_folder(from: &Path, folder: &Path, to: &Path) -> io::Result<()> {
    let inside = to.strip_prefix(folder).map_err(io::Error::other)?;
    let above = ConfinedFolder::open_chosen(folder).and_then(|folder| folder.open_parent(inside, true));
    let (above, name) = above.map_err(io::Error::other)?;
    let part = above.join(Path::new(&name).with_extension("part").as_os_str());
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {} // it was left by an earlier attempt
    }
    let mut copy = File::options().write(true).create_new(true).open(&part)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    std::fs::rename(&part, above.join(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_panics_has_failed() {
        let panicked = |is_fetch| outcome_or_panic(is_fetch, || panic!("a test"));
        assert!(matches!(panicked(false), SharedStateOutcome::ShareFailed(why) if why.contains("a fault")));
        assert!(matches!(panicked(true), SharedStateOutcome::FetchFailed(why) if why.contains("a fault")));
        assert_eq!(outcome_or_panic(false, || SharedStateOutcome::Unshared), SharedStateOutcome::Unshared);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_in_a_folder_of_states_is_followed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        let read = |name: &str| std::fs::read_to_string(at(name)).expect("text");
        std::fs::create_dir_all(at("note/incoming")).expect("created");
        std::fs::create_dir(at("outside")).expect("created");
        std::fs::write(at("blob"), "pages").expect("written");
        std::fs::write(at("own"), "kept").expect("written");
        symlink(at("own"), at("note/incoming/abc.part")).expect("linked");
        copy_into_folder(&at("blob"), &at("note"), &at("note/incoming/abc")).expect("copied");
        assert_eq!((read("note/incoming/abc").as_str(), read("own").as_str()), ("pages", "kept"));
        std::fs::remove_dir_all(at("note/incoming")).expect("removed");
        symlink(at("outside"), at("note/incoming")).expect("linked");
        copy_into_folder(&at("blob"), &at("note"), &at("note/incoming/abc")).expect_err("it leads out");
        assert_eq!(std::fs::read_dir(at("outside")).expect("a folder").count(), 0);
    }
}
