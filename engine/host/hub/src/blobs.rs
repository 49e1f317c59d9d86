//! Blob storage of the hub: attachments and large outputs that devices send besides documents, stored by volume and
//! checked before they count as present. A separate thread reads and writes them, as files in the hub's folder or as
//! pieces in NATS ([`HubFiles`]); documents never wait for it.
//!
//! A blob is stored once per volume that it was sent for: naming a hash in another volume gives no access to it.

use crate::error::HubFilesError;
use crate::hub_core::{CoreInput, HubCore};
use crate::storage::HubFiles;
use peers::DeviceId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use store::DocId;
use store::disk::{BlobStore as Kept, PartialBlobs, read_file_piece};
use store::sync::blobs::{
    BLOBS_TOPIC, BlobCommand, BlobExtent, BlobLimits, BlobTransfers, CheckOutcome, MIN_BLOBS_VERSION, PIECE_BYTES,
    VolumeBlob,
};
use store::sync::{LinkId, PeerId, PeerMetadata};

/// Name of the folder for blobs inside the hub's folder.
const HUB_VOLUMES_FOLDER: &str = "volumes";
/// Name of the folder inside a volume's folder for files of kernel states, which can be removed.
const STATE_FILES_FOLDER: &str = "states";
/// Incomplete files without new data for this long are removed.
const STALE_PARTIAL_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Interval at which stale incomplete files are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(24 * 3_600);
/// Pieces for a connection wait while this many bytes or more are queued for it; the queue is then polled at the
/// interval below.
const MAX_QUEUED_PIECE_BYTES: usize = 64 << 10;
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of checks while other transfers are active.
const BLOB_TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Log line for attachments that can't be stored.
const NOT_KEPT_MESSAGE: &str = "the file can't be stored now";

enum BlobWork {
    Look { item: VolumeBlob, keeps: bool },
    Read { link: LinkId, item: VolumeBlob, offset: u64 },
    Write { item: VolumeBlob, offset: u64, bytes: Vec<u8> },
    Check { item: VolumeBlob, is_state: bool },
    Remove { link: LinkId, item: VolumeBlob },
}

/// Result of one [`BlobWork`] request.
pub(crate) enum BlobResult {
    Looked { item: VolumeBlob, found: BlobExtent },
    Read { link: LinkId, item: VolumeBlob, offset: u64, piece: Option<(u64, Vec<u8>)>, why: Option<String> },
    Failed { item: VolumeBlob, why: String },
    Checked { item: VolumeBlob, checked: CheckOutcome },
    Removed { link: LinkId, item: VolumeBlob, removed: Option<bool>, why: Option<String> },
}

/// State of the hub's blob transfers and the thread that stores blobs.
pub(crate) struct BlobKeeping {
    protocol: BlobTransfers,
    files: Arc<dyn HubFiles>,
    work: Sender<BlobWork>,
    thread: JoinHandle<()>,
    started_at: Instant,
    /// Whether something has happened since the last full step.
    stale: bool,
    wait: Option<Duration>,
    logged_lines: BTreeSet<String>,
}

/// Blob store with one file per blob, in a folder per volume. Files of kernel states are in a folder of their own in
/// it, so a request to remove one can't reach anything else.
pub(crate) struct BlobFolder(PathBuf);

impl BlobFolder {
    /// Returns the blob store inside the hub's folder.
    pub(crate) fn new(folder: &Path) -> BlobFolder {
        BlobFolder(folder.join(HUB_VOLUMES_FOLDER))
    }

    fn volume_folder(&self, volume: DocId) -> PathBuf {
        self.0.join(volume.to_string())
    }

    fn stored_blobs(&self, item: VolumeBlob) -> Kept {
        Kept::new(&self.volume_folder(item.volume))
    }

    fn state_files(&self, item: VolumeBlob) -> Kept {
        Kept::new(&self.volume_folder(item.volume).join(STATE_FILES_FOLDER))
    }

    fn partial_blobs(&self, item: VolumeBlob) -> PartialBlobs {
        PartialBlobs::new(self.volume_folder(item.volume).join("coming"))
    }
}

impl HubFiles for BlobFolder {
    fn blob_extent(&self, item: VolumeBlob) -> Result<BlobExtent, HubFilesError> {
        let part = || BlobExtent::Part(self.partial_blobs(item).received_len(item.hash));
        let whole = self.stored_blobs(item).blob_len(item.hash);
        let whole = whole.or_else(|| self.state_files(item).blob_len(item.hash));
        Ok(whole.map_or_else(part, BlobExtent::Whole))
    }

    fn read_piece(&self, item: VolumeBlob, offset: u64) -> Result<Option<(u64, Vec<u8>)>, HubFilesError> {
        let mut stores = [self.stored_blobs(item), self.state_files(item)].into_iter();
        let kept = stores.find(|kept| kept.has(item.hash));
        let piece = kept.map(|kept| read_file_piece(&kept.blob_path(item.hash), offset, PIECE_BYTES));
        Ok(piece.transpose()?)
    }

    fn write_piece(&self, item: VolumeBlob, offset: u64, bytes: Vec<u8>) -> Result<(), HubFilesError> {
        Ok(self.partial_blobs(item).write_at(item.hash, offset, &bytes)?)
    }

    fn finish_blob(&self, item: VolumeBlob, is_state: bool) -> Result<bool, HubFilesError> {
        let stored = if is_state { self.state_files(item) } else { self.stored_blobs(item) };
        Ok(self.partial_blobs(item).finish_blob(item.hash, &stored)?)
    }

    fn keep_blob(&self, item: VolumeBlob) -> Result<(), HubFilesError> {
        Ok(self.stored_blobs(item).take_from(&self.state_files(item), item.hash)?)
    }

    fn remove_state_file(&self, item: VolumeBlob) -> Result<bool, HubFilesError> {
        let files = self.state_files(item);
        let is_here = files.has(item.hash);
        files.remove(item.hash)?;
        Ok(is_here)
    }

    fn remove_stale_blobs(&self, age: Duration) {
        for volume in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            PartialBlobs::new(volume.path().join("coming")).remove_stale(|file| {
                let since = file.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
                since.is_some_and(|since| since > age)
            });
        }
    }

    fn close(&self) {}
}

/// Runs blob requests, and removes stale incomplete files at the interval `often`.
fn run_blob_thread(files: &dyn HubFiles, queue: &Receiver<BlobWork>, inputs: &Sender<CoreInput>, often: Duration) {
    let mut removed = None;
    loop {
        if removed.is_none_or(|at: Instant| at.elapsed() >= often) {
            files.remove_stale_blobs(STALE_PARTIAL_AGE);
            removed = Some(Instant::now());
        }
        let work = match queue.recv_timeout(often) {
            Ok(work) => work,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let told = match work {
            BlobWork::Look { item, keeps } => {
                let kept = if keeps { files.keep_blob(item) } else { Ok(()) };
                Some(match kept.and_then(|()| files.blob_extent(item)) {
                    Ok(found) => BlobResult::Looked { item, found },
                    Err(why) => BlobResult::Failed { item, why: why.to_string() },
                })
            }
            BlobWork::Read { link, item, offset } => {
                let (piece, why) = match files.read_piece(item, offset) {
                    Ok(piece) => (piece, None),
                    Err(why) => (None, Some(why.to_string())),
                };
                Some(BlobResult::Read { link, item, offset, piece, why })
            }
            BlobWork::Write { item, offset, bytes } => {
                let written = files.write_piece(item, offset, bytes);
                written.err().map(|why| BlobResult::Failed { item, why: why.to_string() })
            }
            BlobWork::Check { item, is_state } => {
                let checked = match files.finish_blob(item, is_state) {
                    Ok(true) => CheckOutcome::Good,
                    Ok(false) => CheckOutcome::Bad,
                    Err(why) => CheckOutcome::Failed(why.to_string()),
                };
                Some(BlobResult::Checked { item, checked })
            }
            BlobWork::Remove { link, item } => {
                let (removed, why) = match files.remove_state_file(item) {
                    Ok(removed) => (Some(removed), None),
                    Err(why) => (None, Some(why.to_string())),
                };
                Some(BlobResult::Removed { link, item, removed, why })
            }
        };
        if told.is_some_and(|told| inputs.send(CoreInput::Blob(told)).is_err()) {
            return;
        }
    }
}

impl BlobKeeping {
    /// Starts the thread that reads and writes blobs; it runs until [`BlobKeeping::end`].
    pub(crate) fn start(files: Arc<dyn HubFiles>, inputs: Sender<CoreInput>) -> std::io::Result<BlobKeeping> {
        let (send, queue) = channel();
        let thread = std::thread::Builder::new().name("hub-blobs".to_owned());
        let at = Arc::clone(&files);
        let thread = thread.spawn(move || run_blob_thread(at.as_ref(), &queue, &inputs, CLEANUP_INTERVAL))?;
        let protocol = BlobTransfers::new(true, BlobLimits::default());
        let (began, said) = (Instant::now(), BTreeSet::new());
        Ok(BlobKeeping {
            protocol,
            files,
            work: send,
            thread,
            started_at: began,
            stale: false,
            wait: None,
            logged_lines: said,
        })
    }

    /// Finishes pending requests as far as time permits.
    pub(crate) fn end(self) {
        self.files.close();
        drop(self.work);
        if self.thread.join().is_err() {
            tracing::error!("the hub's attachments failed");
        }
    }

    fn elapsed_millis(&self) -> i64 {
        i64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl HubCore {
    /// Returns how long the core may wait for input before the next blob step; `None`: until something arrives.
    pub(crate) fn blobs_timeout(&self) -> Option<Duration> {
        self.blobs.as_ref().and_then(|keeping| keeping.wait)
    }

    /// Registers a greeted connection for blob transfers, if its peer supports them.
    pub(crate) fn connect_blob_peer(&mut self, link: LinkId, peer: PeerId, metadata: &PeerMetadata) {
        if metadata.blobs.is_some_and(|version| version >= MIN_BLOBS_VERSION)
            && let Some(mut keeping) = self.blobs.take()
        {
            keeping.protocol.connect(link, peer, false, &|link, volume| self.client_access(link, volume));
            self.blobs = Some(keeping);
        }
    }

    /// Marks blob state for the next step, for example after a connection has closed.
    pub(crate) fn mark_blobs_stale(&mut self) {
        if let Some(keeping) = &mut self.blobs {
            keeping.stale = true;
        }
    }

    pub(crate) fn receive_blob_message(&mut self, link: LinkId, topic: &str, data: &[u8]) {
        let Some(mut keeping) = self.blobs.take_if(|_| topic == BLOBS_TOPIC) else { return };
        let by = self.device_of(link);
        keeping.protocol.set_quota(link, self.remaining_quota(by));
        let now = keeping.elapsed_millis();
        keeping.protocol.receive(link, data, now, &|link, volume| self.client_access(link, volume));
        keeping.stale = true;
        self.blobs = Some(keeping);
    }

    pub(crate) fn handle_blob_result(&mut self, told: BlobResult) {
        let Some(mut keeping) = self.blobs.take() else { return };
        let (now, may) = (keeping.elapsed_millis(), |link: LinkId, volume: DocId| self.client_access(link, volume));
        match told {
            BlobResult::Looked { item, found } => keeping.protocol.on_probed(item, found, &may),
            BlobResult::Read { link, item, offset, piece, why } => {
                keeping.protocol.on_read(link, item, offset, piece);
                if let Some(why) = why {
                    keeping.protocol.on_failed(item, now, &may);
                    self.log_once(&mut keeping, &format!("a file that a device requests can't be read: {why}"));
                }
            }
            BlobResult::Failed { item, why } => {
                keeping.protocol.on_failed(item, now, &may);
                self.log_once(&mut keeping, &format!("{NOT_KEPT_MESSAGE}: {why}"));
            }
            BlobResult::Checked { item, checked } => {
                if let CheckOutcome::Failed(why) = &checked {
                    self.log_once(&mut keeping, &format!("{NOT_KEPT_MESSAGE}: {why}"));
                }
                keeping.protocol.on_checked(item, &checked, now, &may);
            }
            BlobResult::Removed { link, item, removed, why } => {
                if let Some(why) = why {
                    self.log_once(&mut keeping, &format!("variables that a device withdrew can't be deleted: {why}"));
                }
                keeping.protocol.on_removed(link, item, removed, &may);
            }
        }
        keeping.stale = true;
        self.blobs = Some(keeping);
    }

    /// Records that another replica has stored a blob.
    pub(crate) fn handle_blob_added(&mut self, item: VolumeBlob, size: u64) {
        let Some(mut keeping) = self.blobs.take() else { return };
        keeping.protocol.on_stored_elsewhere(item, size, &|link, volume| self.client_access(link, volume));
        keeping.stale = true;
        self.blobs = Some(keeping);
    }

    /// Handles a blob that the store has lost: devices that have it are asked to send it again.
    pub(crate) fn handle_blob_lost(&mut self, item: VolumeBlob) {
        let Some(mut keeping) = self.blobs.take() else { return };
        keeping.protocol.announce_loss(item, &|link, volume| self.client_access(link, volume));
        keeping.stale = true;
        self.blobs = Some(keeping);
    }

    fn log_once(&self, keeping: &mut BlobKeeping, line: &str) {
        if keeping.logged_lines.len() < 1_000 && keeping.logged_lines.insert(line.to_owned()) {
            self.log_line(line);
        }
    }

    /// Advances blob transfers and runs their commands, if anything has happened or a timed step is due.
    pub(crate) fn step_blobs(&mut self, timed: bool) {
        let Some(mut keeping) = self.blobs.take_if(|keeping| timed || keeping.stale) else { return };
        keeping.stale = false;
        for link in keeping.protocol.links() {
            if !self.is_connected(link) {
                keeping.protocol.disconnect(link, &|link, volume| self.client_access(link, volume));
            }
        }
        let mut written: Vec<(Option<DeviceId>, u64)> = Vec::new();
        loop {
            let now = keeping.elapsed_millis();
            let may = |link: LinkId, volume: DocId| self.client_access(link, volume);
            keeping.protocol.advance(now, &may, &|link| self.waiting_bytes(link) < MAX_QUEUED_PIECE_BYTES);
            let deeds = keeping.protocol.take_commands();
            if deeds.is_empty() {
                break;
            }
            for deed in deeds {
                match deed {
                    BlobCommand::Send { link, data } => self.send_extension(link, BLOBS_TOPIC, data),
                    BlobCommand::Probe { item, keeps } => _ = keeping.work.send(BlobWork::Look { item, keeps }),
                    BlobCommand::Read { link, item, offset } => {
                        _ = keeping.work.send(BlobWork::Read { link, item, offset })
                    }
                    BlobCommand::Write { item, offset, bytes, link } => {
                        written.push((self.device_of(link), bytes.len() as u64));
                        // Sending fails only when the program or the connection ends.
                        let _ = keeping.work.send(BlobWork::Write { item, offset, bytes });
                    }
                    BlobCommand::Check { item, is_state } => _ = keeping.work.send(BlobWork::Check { item, is_state }),
                    BlobCommand::Remove { link, item } => _ = keeping.work.send(BlobWork::Remove { link, item }),
                    BlobCommand::Arrived { .. } | BlobCommand::Forgotten { .. } => {}
                    BlobCommand::Log { link, words } | BlobCommand::Refused { link, words } => {
                        self.log_refusal(link, words)
                    }
                }
            }
        }
        keeping.wait = match (keeping.protocol.has_requests(), keeping.protocol.is_busy()) {
            (true, _) => Some(QUEUE_POLL_INTERVAL),
            (false, true) => Some(BLOB_TICK_INTERVAL),
            (false, false) => None,
        };
        self.blobs = Some(keeping);
        written.into_iter().for_each(|(by, size)| self.charge(by, size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// An empty store that records calls that remove stale blobs.
    #[derive(Default)]
    struct Counts(Mutex<Vec<Duration>>);

    impl HubFiles for Counts {
        fn blob_extent(&self, _: VolumeBlob) -> Result<BlobExtent, HubFilesError> {
            Ok(BlobExtent::Part(0))
        }

        fn read_piece(&self, _: VolumeBlob, _: u64) -> Result<Option<(u64, Vec<u8>)>, HubFilesError> {
            Ok(None)
        }

        fn write_piece(&self, _: VolumeBlob, _: u64, _: Vec<u8>) -> Result<(), HubFilesError> {
            Ok(())
        }

        fn finish_blob(&self, _: VolumeBlob, _: bool) -> Result<bool, HubFilesError> {
            Ok(true)
        }

        fn keep_blob(&self, _: VolumeBlob) -> Result<(), HubFilesError> {
            Ok(())
        }

        fn remove_state_file(&self, _: VolumeBlob) -> Result<bool, HubFilesError> {
            Ok(false)
        }

        fn remove_stale_blobs(&self, age: Duration) {
            self.0.lock().expect("lock").push(age);
        }

        fn close(&self) {}
    }

    #[test]
    fn what_is_old_goes_while_the_hub_runs_whether_or_not_it_is_busy() {
        let files = Arc::new(Counts::default());
        let ((send, queue), (inputs, told)) = (channel(), channel());
        let (at, often) = (Arc::clone(&files), Duration::from_millis(50));
        let thread = std::thread::spawn(move || run_blob_thread(at.as_ref(), &queue, &inputs, often));
        let count = || files.0.lock().expect("lock").len();
        let until = Instant::now() + Duration::from_secs(60);
        let item = VolumeBlob { volume: DocId([1; 16]), hash: store::BlobHash([1; 32]) };
        while count() < 4 {
            assert!(Instant::now() < until, "while nothing is asked for");
            std::thread::sleep(Duration::from_millis(5));
        }
        let idle = count();
        while count() < idle + 3 {
            assert!(Instant::now() < until, "while something is always asked for");
            send.send(BlobWork::Look { item, keeps: false }).expect("it goes on");
            assert!(matches!(told.recv(), Ok(CoreInput::Blob(BlobResult::Looked { .. }))));
        }
        assert!(files.0.lock().expect("lock").iter().all(|age| *age == STALE_PARTIAL_AGE));
        drop(send);
        thread.join().expect("it ends with the queue");
    }
}
