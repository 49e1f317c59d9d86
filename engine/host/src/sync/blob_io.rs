//! Reads and writes exchanged blobs, on two threads that decide nothing.
//!
//! Attachments are in their volume's folder, and large outputs among the workspace's blobs. Incomplete blobs are in a
//! folder next to those.

use super::SyncTask;
use super::withdrawn_states::remove_done;
use crate::fs::atomic_write::{self, SwapOutcome};
use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read;
use crate::kernel::science::states_folder;
use ::kernel_states::{SharedState, offered_files};
use anyhow::{Context, anyhow, bail};
use engine::event::FileStamp;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use store::disk::{BlobHasher, BlobStore, DiskReader, PartialBlobs, read_file_piece, read_open_file_piece};
use store::sync::LinkId;
use store::sync::blobs::{BlobExtent, CheckOutcome, PIECE_BYTES, VolumeBlob};
use store::{ActorId, BlobHash, DocId, OutputsDoc, RunDoc};

/// Number of bytes hashed at once.
const HASH_BLOCK_BYTES: usize = 256 << 10;
/// Name of the workspace's folder for incomplete blobs.
pub(super) const PARTIAL_BLOBS_FOLDER: &str = "coming";

/// A task that may take long.
pub(super) enum BlobTask {
    /// Find the blobs that an outputs document or a run refers to. `owner`: the note and the volume of outputs.
    Named { doc: DocId, is_run: bool, owner: Option<(DocId, DocId)> },
    /// Copy a file's bytes to the workspace's blobs.
    Keep { item: VolumeBlob, from: (ConfinedPath, FileStamp) },
    /// Compute a file's hash.
    Hash { file: DocId, path: ConfinedPath },
    /// Write received bytes to a file.
    Place(Box<AttachmentPlacement>),
    /// Remove a received blob that isn't needed.
    Drop { hash: BlobHash },
    /// Remove withdrawn files of a note's states from its list.
    RemoveDone { note: DocId, files: Vec<VolumeBlob> },
}

/// Writes a received blob to an attachment's file.
pub(super) struct AttachmentPlacement {
    pub(super) volume: DocId,
    pub(super) file: DocId,
    pub(super) root: PathBuf,
    pub(super) path: String,
    pub(super) hash: BlobHash,
    /// Stamp of the file to replace; `None` if there must be none.
    pub(super) over: Option<FileStamp>,
    /// Path where the replaced file is kept.
    pub(super) kept: Option<String>,
    /// Another file known to have these bytes.
    pub(super) like: Option<(ConfinedPath, FileStamp)>,
}

/// Short tasks that accompany messages.
pub(super) enum BlobPiece {
    Look { item: VolumeBlob },
    Read { link: LinkId, item: VolumeBlob, offset: u64, file: Option<(ConfinedPath, FileStamp)> },
    Write { item: VolumeBlob, offset: u64, bytes: Vec<u8> },
    Check { item: VolumeBlob, keep: bool },
}

/// A blob that a document refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedBlob {
    /// Size in bytes, if known. It's always known if the blob is here.
    pub(super) size: Option<u64>,
    pub(super) here: bool,
}

/// The announced state of a note.
pub(super) struct AnnouncedState {
    /// The note's volume.
    pub(super) volume: DocId,
    /// Files that this device shares with the devices of the volume.
    pub(super) files: Vec<(ConfinedPath, FileStamp)>,
    /// Hashes of all its files, whichever device shares them.
    pub(super) named: Vec<BlobHash>,
}

/// Result of a task.
pub(super) enum BlobTaskOutcome {
    Named {
        doc: DocId,
        blobs: BTreeMap<BlobHash, NamedBlob>,
        /// The state of the note that is announced with these outputs.
        state: Option<AnnouncedState>,
    },
    Kept {
        item: VolumeBlob,
        /// Size in bytes; `None` if the file has changed or the disk fails.
        size: Option<u64>,
    },
    Hashed {
        file: DocId,
        stamp: Option<FileStamp>,
    },
    Placed {
        volume: DocId,
        file: DocId,
        path: String,
        result: anyhow::Result<FileStamp>,
    },
    Dropped,
    Looked {
        item: VolumeBlob,
        found: BlobExtent,
    },
    Read {
        link: LinkId,
        item: VolumeBlob,
        offset: u64,
        piece: Option<(u64, Vec<u8>)>,
    },
    Failed {
        item: VolumeBlob,
        why: String,
    },
    Checked {
        item: VolumeBlob,
        checked: CheckOutcome,
    },
}

/// Senders to the two threads.
pub(super) struct BlobThreads {
    pub(super) tasks: Sender<BlobTask>,
    pub(super) pieces: Sender<BlobPiece>,
}

#[derive(Clone)]
struct VolumeFolders {
    workspace: PathBuf,
    blobs: BlobStore,
    /// Completely received blobs that will be written to attachments' files.
    received_blobs: BlobStore,
    partial_blobs: PartialBlobs,
}

impl BlobThreads {
    /// Starts both threads. They end when their senders are dropped.
    pub(super) fn start(folder: &Path, reader: Box<dyn DiskReader>, tasks: Sender<SyncTask>) -> BlobThreads {
        let coming = folder.join(PARTIAL_BLOBS_FOLDER);
        let folders = VolumeFolders {
            workspace: folder.to_owned(),
            blobs: BlobStore::new(folder),
            received_blobs: BlobStore::new(&coming),
            partial_blobs: PartialBlobs::new(coming.clone()),
        };
        let ((chores, slow), (pieces, quick)) = (channel(), channel());
        let (also, back) = (folders.clone(), tasks.clone());
        std::thread::spawn(move || run_blob_tasks(&also, reader.as_ref(), &slow, &back));
        std::thread::spawn(move || run_blob_pieces(&folders, &quick, &tasks));
        BlobThreads { tasks: chores, pieces }
    }
}

fn run_blob_tasks(
    folders: &VolumeFolders,
    reader: &dyn DiskReader,
    queue: &Receiver<BlobTask>,
    tasks: &Sender<SyncTask>,
) {
    crate::workers::lower_thread_priority();
    for task in queue {
        let done = match task {
            BlobTask::Named { doc, is_run, owner } => {
                let (blobs, announcement) = referenced_blobs(folders, reader, doc, is_run);
                let state = owner.zip(announcement).map(|((note, volume), announcement)| AnnouncedState {
                    volume,
                    files: shared_state_files(folders, note, volume, &announcement),
                    named: announced_hashes(&announcement),
                });
                BlobTaskOutcome::Named { doc, blobs, state }
            }
            BlobTask::Keep { item, from } => {
                BlobTaskOutcome::Kept { item, size: copy_to_blobs(folders, item.hash, &from) }
            }
            BlobTask::Hash { file, path } => BlobTaskOutcome::Hashed { file, stamp: file_stamp(&path) },
            BlobTask::Place(placing) => {
                let result = place_attachment(folders, &placing);
                let AttachmentPlacement { volume, file, path, .. } = *placing;
                BlobTaskOutcome::Placed { volume, file, path, result }
            }
            BlobTask::Drop { hash } => {
                let _ = folders.received_blobs.remove(hash); // at worst it stays, and is used again
                BlobTaskOutcome::Dropped
            }
            BlobTask::RemoveDone { note, files } => {
                if let Err(why) = remove_done(&folders.workspace, note, &files) {
                    tracing::debug!(%why, "hubs are asked again to delete withdrawn variables");
                }
                continue;
            }
        };
        if tasks.send(SyncTask::BlobOutcome(done)).is_err() {
            return;
        }
    }
}

fn run_blob_pieces(folders: &VolumeFolders, queue: &Receiver<BlobPiece>, tasks: &Sender<SyncTask>) {
    for piece in queue {
        let done = match piece {
            BlobPiece::Look { item } => {
                let whole = folders.blobs.blob_len(item.hash).or_else(|| folders.received_blobs.blob_len(item.hash));
                let part = || BlobExtent::Part(folders.partial_blobs.received_len(item.hash));
                Some(BlobTaskOutcome::Looked { item, found: whole.map_or_else(part, BlobExtent::Whole) })
            }
            BlobPiece::Read { link, item, offset, file } => {
                let piece = read_blob_piece(folders, item.hash, offset, file.as_ref());
                Some(BlobTaskOutcome::Read { link, item, offset, piece })
            }
            BlobPiece::Write { item, offset, bytes } => {
                let failed = folders.partial_blobs.write_at(item.hash, offset, &bytes).err();
                failed.map(|error| BlobTaskOutcome::Failed { item, why: error.to_string() })
            }
            BlobPiece::Check { item, keep } => {
                let to = if keep { &folders.blobs } else { &folders.received_blobs };
                let checked = match folders.partial_blobs.finish_blob(item.hash, to) {
                    Ok(true) => CheckOutcome::Good,
                    Ok(false) => CheckOutcome::Bad,
                    Err(error) => CheckOutcome::Failed(error.to_string()),
                };
                Some(BlobTaskOutcome::Checked { item, checked })
            }
        };
        if done.is_some_and(|done| tasks.send(SyncTask::BlobOutcome(done)).is_err()) {
            return;
        }
    }
}

/// Returns the blobs that an outputs document or a run refers to, and the announcement of the kernel's state in
/// outputs. An unreadable document has none.
fn referenced_blobs(
    folders: &VolumeFolders,
    reader: &dyn DiskReader,
    doc: DocId,
    is_run: bool,
) -> (BTreeMap<BlobHash, NamedBlob>, Option<String>) {
    let chunks = reader.chunks(doc).unwrap_or_default();
    let chunks: Vec<Vec<u8>> = chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect();
    if chunks.is_empty() {
        return (BTreeMap::new(), None);
    }
    let nobody = ActorId::from([0; 16]);
    let (blobs, announcement): (BTreeMap<BlobHash, Option<u64>>, _) = if is_run {
        (RunDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc.blob_sizes()).unwrap_or_default(), None)
    } else {
        let outputs = OutputsDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc).ok();
        let blobs = outputs.as_ref().map(OutputsDoc::blob_refs).unwrap_or_default();
        let sizes = blobs.into_iter().map(|one| (one.blob, Some(one.size))).collect();
        (sizes, outputs.and_then(|outputs| outputs.shared_state()))
    };
    let named = |(blob, size): (BlobHash, Option<u64>)| {
        let there = folders.blobs.blob_len(blob);
        (blob, NamedBlob { size: there.or(size), here: there.is_some() })
    };
    (blobs.into_iter().map(named).collect(), announcement)
}

/// Returns the files of an announced state that are here, if this device's user shares the note's states with the
/// devices of this volume.
fn shared_state_files(
    folders: &VolumeFolders,
    note: DocId,
    volume: DocId,
    announcement: &str,
) -> Vec<(ConfinedPath, FileStamp)> {
    let folder = states_folder(&folders.workspace, note);
    let offered = offered_files(&folder, &volume.to_string(), announcement).into_iter();
    let there = offered.filter_map(|(file, path)| {
        let path = ConfinedPath::new(&folder, &path);
        let (_, meta) = path.open().ok()?;
        let stamp = FileStamp { size: file.size, mtime: read::mtime_nanos(&meta), hash: file.hash.parse().ok()? };
        (meta.len() == file.size).then_some((path, stamp))
    });
    there.collect()
}

/// Returns the hashes of an announced state's files.
fn announced_hashes(announcement: &str) -> Vec<BlobHash> {
    let shared = SharedState::parse(announcement).ok();
    shared.iter().flat_map(SharedState::files).filter_map(|file| file.hash.parse().ok()).collect()
}

/// Copies a file to the blobs if it still has the known content.
fn copy_to_blobs(folders: &VolumeFolders, hash: BlobHash, (path, stamp): &(ConfinedPath, FileStamp)) -> Option<u64> {
    let mut file = open_unchanged(path, stamp)?;
    let mut offset = 0;
    loop {
        let (_, bytes) = read_open_file_piece(&mut file, offset, PIECE_BYTES).ok()?;
        folders.partial_blobs.write_at(hash, offset, &bytes).ok()?;
        offset += bytes.len() as u64;
        if bytes.is_empty() || offset >= stamp.size {
            break;
        }
    }
    folders.partial_blobs.finish_blob(hash, &folders.blobs).ok()?.then_some(offset)
}

/// Returns a file's size, time and hash; `None` if it changes while it's read.
fn file_stamp(path: &ConfinedPath) -> Option<FileStamp> {
    let (mut file, before) = path.open().ok()?;
    let (mut hasher, mut block) = (BlobHasher::default(), vec![0; HASH_BLOCK_BYTES]);
    loop {
        match file.read(&mut block).ok()? {
            0 => break,
            count => hasher.update(&block[..count]),
        }
    }
    let after = path.open().ok()?.1;
    let same = (before.len(), read::mtime_nanos(&before)) == (after.len(), read::mtime_nanos(&after));
    same.then(|| FileStamp { size: after.len(), mtime: read::mtime_nanos(&after), hash: hasher.finish() })
}

/// Opens a file if it's unchanged since its stamp was taken.
fn open_unchanged(path: &ConfinedPath, stamp: &FileStamp) -> Option<File> {
    let (file, meta) = path.open().ok()?;
    (meta.len() == stamp.size && read::mtime_nanos(&meta) == stamp.mtime).then_some(file)
}

fn read_blob_piece(
    folders: &VolumeFolders,
    hash: BlobHash,
    offset: u64,
    file: Option<&(ConfinedPath, FileStamp)>,
) -> Option<(u64, Vec<u8>)> {
    if let Some((path, stamp)) = file
        && let Some(mut file) = open_unchanged(path, stamp)
    {
        return read_open_file_piece(&mut file, offset, PIECE_BYTES)
            .ok()
            .filter(|_| open_unchanged(path, stamp).is_some());
    }
    let there = [&folders.received_blobs, &folders.blobs].into_iter().find(|blobs| blobs.has(hash))?;
    read_file_piece(&there.blob_path(hash), offset, PIECE_BYTES).ok()
}

/// Writes a received blob to a volume's file, completely or not at all. An unknown version is never overwritten.
fn place_attachment(folders: &VolumeFolders, placing: &AttachmentPlacement) -> anyhow::Result<FileStamp> {
    let AttachmentPlacement { root, path, hash, over, kept, like, .. } = placing;
    let target = ConfinedPath::new(root, path);
    let like = like.as_ref().filter(|(path, stamp)| open_unchanged(path, stamp).is_some());
    // The source folder stays open until its bytes are copied.
    let near = like.and_then(|(path, _)| path.open_parent(false).ok());
    let from = match &near {
        Some((folder, name)) => folder.join(name),
        None => {
            let there = [&folders.received_blobs, &folders.blobs].into_iter().find(|blobs| blobs.has(*hash));
            there.map(|blobs| blobs.blob_path(*hash)).with_context(|| format!("its bytes are gone again: {path}"))?
        }
    };
    let (folder, name) = target.open_parent(true)?;
    let file = folder.join(&name);
    if let Some(there) = file_stamp(&target).filter(|there| there.hash == *hash) {
        return Ok(there); // done before, perhaps just before a crash
    }
    if let (Some(kept), Some(over)) = (kept, over) {
        let aside = ConfinedPath::new(root, kept);
        let (folder, name) = aside.open_parent(true)?;
        match atomic_write::replace_by_copy(&folder.join(&name), None, &file, over.hash)
            .map_err(|error| aside.with_display_path(error))?
        {
            SwapOutcome::Done { .. } => {}
            SwapOutcome::Raced | SwapOutcome::Gone => bail!("there is another file already: {kept}"),
        }
    }
    match atomic_write::replace_by_copy(&file, over.map(|over| over.hash), &from, *hash)
        .map_err(|error| target.with_display_path(error))?
    {
        SwapOutcome::Done { modified } => {
            let size = folder.metadata(&name).map_err(|error| anyhow!("{error}: {path}"))?.len();
            Ok(FileStamp { size, mtime: modified, hash: *hash })
        }
        SwapOutcome::Raced => Err(anyhow!("it was changed here meanwhile: {path}")),
        SwapOutcome::Gone => Err(anyhow!("it was removed here meanwhile: {path}")),
    }
}
