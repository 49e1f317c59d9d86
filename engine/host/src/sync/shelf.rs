//! Reads and writes exchanged bytes: attachments in their volume's folder, large outputs among the workspace's blobs,
//! incomplete ones next to them. Two threads that decide nothing.

use super::SyncTask;
use crate::fs::confined::ConfinedPath;
use crate::fs::files;
use crate::fs::replace::{self, SwapOutcome};
use engine::event::FileStamp;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use store::disk::{BlobHasher, BlobStore, DiskReader, PartialBlobs, read_file_piece};
use store::sync::LinkId;
use store::sync::blobs::{BlobExtent, CheckOutcome, PIECE_BYTES, VolumeBlob};
use store::{ActorId, BlobHash, DocId, OutputsDoc, RunDoc};

/// Bytes that are hashed at once.
const HASH_BLOCK_BYTES: usize = 256 << 10;
/// Folder of incomplete blobs in the workspace.
const COMING: &str = "coming";

/// What takes its time.
pub(super) enum BlobTask {
    /// Which blobs these outputs name, or this run.
    Named { doc: DocId, is_run: bool },
    /// Take the bytes of a file among the blobs.
    Keep { item: VolumeBlob, from: (ConfinedPath, FileStamp) },
    /// Which bytes a file has.
    Hash { file: DocId, path: ConfinedPath },
    /// Put what has come into a file.
    Place(Box<AttachmentPlacement>),
    /// The incomplete blob isn't needed.
    Drop { hash: BlobHash },
}

/// Bytes for an attachment's file.
pub(super) struct AttachmentPlacement {
    pub(super) volume: DocId,
    pub(super) file: DocId,
    pub(super) root: PathBuf,
    pub(super) path: String,
    pub(super) hash: BlobHash,
    /// Stamp of the current file.
    pub(super) over: Option<FileStamp>,
    /// Where that is kept.
    pub(super) kept: Option<String>,
    /// A file that has these bytes, where one is known.
    pub(super) like: Option<(ConfinedPath, FileStamp)>,
}

/// What goes along with messages.
pub(super) enum BlobPiece {
    Look { item: VolumeBlob },
    Read { link: LinkId, item: VolumeBlob, offset: u64, file: Option<(ConfinedPath, FileStamp)> },
    Write { item: VolumeBlob, offset: u64, bytes: Vec<u8> },
    Check { item: VolumeBlob, keep: bool },
}

/// A blob that a document names.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedBlob {
    /// How many bytes it has, if that is known; if it is here, it is.
    pub(super) size: Option<u64>,
    pub(super) here: bool,
}

/// Result of a task.
pub(super) enum BlobTaskOutcome {
    Named {
        doc: DocId,
        blobs: BTreeMap<BlobHash, NamedBlob>,
    },
    Kept {
        item: VolumeBlob,
        /// How many bytes it has; `None`: the file holds something else by now, or the disk refuses.
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
        result: Result<FileStamp, String>,
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

/// The ways to both threads.
pub(super) struct BlobThreads {
    pub(super) chores: Sender<BlobTask>,
    pub(super) pieces: Sender<BlobPiece>,
}

#[derive(Clone)]
struct VolumeFolders {
    blobs: BlobStore,
    /// What is here whole, on its way to an attachment's file.
    whole: BlobStore,
    coming: PartialBlobs,
}

impl BlobThreads {
    /// Starts the threads; they end when this goes.
    pub(super) fn start(folder: &Path, reader: Box<dyn DiskReader>, tasks: Sender<SyncTask>) -> BlobThreads {
        let coming = folder.join(COMING);
        let folders = VolumeFolders {
            blobs: BlobStore::new(folder),
            whole: BlobStore::new(&coming),
            coming: PartialBlobs::new(coming.clone()),
        };
        let ((chores, slow), (pieces, quick)) = (channel(), channel());
        let (also, back) = (folders.clone(), tasks.clone());
        std::thread::spawn(move || chore_thread(&also, reader.as_ref(), &slow, &back));
        std::thread::spawn(move || piece_thread(&folders, &quick, &tasks));
        BlobThreads { chores, pieces }
    }
}

fn chore_thread(
    folders: &VolumeFolders,
    reader: &dyn DiskReader,
    queue: &Receiver<BlobTask>,
    tasks: &Sender<SyncTask>,
) {
    crate::worker::step_back();
    for chore in queue {
        let done = match chore {
            BlobTask::Named { doc, is_run } => {
                BlobTaskOutcome::Named { doc, blobs: named(folders, reader, doc, is_run) }
            }
            BlobTask::Keep { item, from } => BlobTaskOutcome::Kept { item, size: keep(folders, item.hash, &from) },
            BlobTask::Hash { file, path } => BlobTaskOutcome::Hashed { file, stamp: stamp(&path) },
            BlobTask::Place(placing) => {
                let result = place(folders, &placing);
                let AttachmentPlacement { volume, file, path, .. } = *placing;
                BlobTaskOutcome::Placed { volume, file, path, result }
            }
            BlobTask::Drop { hash } => {
                let _ = folders.whole.remove(hash); // at worst it stays, and is used again
                BlobTaskOutcome::Dropped
            }
        };
        if tasks.send(SyncTask::Shelf(done)).is_err() {
            return;
        }
    }
}

fn piece_thread(folders: &VolumeFolders, queue: &Receiver<BlobPiece>, tasks: &Sender<SyncTask>) {
    for piece in queue {
        let done = match piece {
            BlobPiece::Look { item } => {
                let whole = folders.blobs.blob_len(item.hash).or_else(|| folders.whole.blob_len(item.hash));
                let part = || BlobExtent::Part(folders.coming.received_len(item.hash));
                Some(BlobTaskOutcome::Looked { item, found: whole.map_or_else(part, BlobExtent::Whole) })
            }
            BlobPiece::Read { link, item, offset, file } => {
                let piece = read(folders, item.hash, offset, file.as_ref());
                Some(BlobTaskOutcome::Read { link, item, offset, piece })
            }
            BlobPiece::Write { item, offset, bytes } => {
                let failed = folders.coming.write_at(item.hash, offset, &bytes).err();
                failed.map(|error| BlobTaskOutcome::Failed { item, why: error.to_string() })
            }
            BlobPiece::Check { item, keep } => {
                let to = if keep { &folders.blobs } else { &folders.whole };
                let checked = match folders.coming.finish_blob(item.hash, to) {
                    Ok(true) => CheckOutcome::Good,
                    Ok(false) => CheckOutcome::Bad,
                    Err(error) => CheckOutcome::Failed(error.to_string()),
                };
                Some(BlobTaskOutcome::Checked { item, checked })
            }
        };
        if done.is_some_and(|done| tasks.send(SyncTask::Shelf(done)).is_err()) {
            return;
        }
    }
}

/// The blobs that outputs or a run name. What cannot be read names none.
fn named(folders: &VolumeFolders, reader: &dyn DiskReader, doc: DocId, is_run: bool) -> BTreeMap<BlobHash, NamedBlob> {
    let chunks = reader.chunks(doc).unwrap_or_default();
    let chunks: Vec<Vec<u8>> = chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect();
    if chunks.is_empty() {
        return BTreeMap::new();
    }
    let nobody = ActorId::from([0; 16]);
    let blobs: BTreeMap<BlobHash, Option<u64>> = if is_run {
        RunDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc.blob_sizes()).unwrap_or_default()
    } else {
        let blobs = OutputsDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc.blob_refs()).unwrap_or_default();
        blobs.into_iter().map(|one| (one.blob, Some(one.size))).collect()
    };
    let named = |(blob, size): (BlobHash, Option<u64>)| {
        let there = folders.blobs.blob_len(blob);
        (blob, NamedBlob { size: there.or(size), here: there.is_some() })
    };
    blobs.into_iter().map(named).collect()
}

/// Copies a file to the blobs if it still has the known content.
fn keep(folders: &VolumeFolders, hash: BlobHash, (path, stamp): &(ConfinedPath, FileStamp)) -> Option<u64> {
    let mut file = open_as(path, stamp)?;
    let mut offset = 0;
    loop {
        let (_, bytes) = piece(&mut file, offset)?;
        folders.coming.write_at(hash, offset, &bytes).ok()?;
        offset += bytes.len() as u64;
        if bytes.is_empty() || offset >= stamp.size {
            break;
        }
    }
    folders.coming.finish_blob(hash, &folders.blobs).ok()?.then_some(offset)
}

/// A piece of an open file, and how many bytes the file has.
fn piece(file: &mut File, offset: u64) -> Option<(u64, Vec<u8>)> {
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(PIECE_BYTES).read_to_end(&mut bytes).ok()?;
    Some((size, bytes))
}

/// What a file is now: nothing when it changes while it is read.
fn stamp(path: &ConfinedPath) -> Option<FileStamp> {
    let (mut file, before) = path.open().ok()?;
    let (mut hasher, mut block) = (BlobHasher::default(), vec![0; HASH_BLOCK_BYTES]);
    loop {
        match file.read(&mut block).ok()? {
            0 => break,
            count => hasher.update(&block[..count]),
        }
    }
    let after = path.open().ok()?.1;
    let same = (before.len(), files::mtime(&before)) == (after.len(), files::mtime(&after));
    same.then(|| FileStamp { size: after.len(), mtime: files::mtime(&after), hash: hasher.finish() })
}

/// Opens a file that is as it was when its hash was found out.
fn open_as(path: &ConfinedPath, stamp: &FileStamp) -> Option<File> {
    let (file, meta) = path.open().ok()?;
    (meta.len() == stamp.size && files::mtime(&meta) == stamp.mtime).then_some(file)
}

fn read(
    folders: &VolumeFolders,
    hash: BlobHash,
    offset: u64,
    file: Option<&(ConfinedPath, FileStamp)>,
) -> Option<(u64, Vec<u8>)> {
    if let Some((path, stamp)) = file
        && let Some(mut file) = open_as(path, stamp)
    {
        return piece(&mut file, offset).filter(|_| open_as(path, stamp).is_some());
    }
    let there = [&folders.whole, &folders.blobs].into_iter().find(|blobs| blobs.has(hash))?;
    read_file_piece(&there.blob_path(hash), offset, PIECE_BYTES).ok()
}

/// Puts what has come into a file of a volume: all of it, and never over what is not known.
fn place(folders: &VolumeFolders, placing: &AttachmentPlacement) -> Result<FileStamp, String> {
    let AttachmentPlacement { root, path, hash, over, kept, like, .. } = placing;
    let target = ConfinedPath::new(root, path);
    let like = like.as_ref().filter(|(path, stamp)| open_as(path, stamp).is_some());
    // Its folder stays open until its bytes were taken.
    let near = like.and_then(|(path, _)| path.above(false).ok());
    let from = match &near {
        Some((folder, name)) => folder.join(name),
        None => {
            let there = [&folders.whole, &folders.blobs].into_iter().find(|blobs| blobs.has(*hash));
            there.map(|blobs| blobs.blob_path(*hash)).ok_or_else(|| format!("its bytes are gone again: {path}"))?
        }
    };
    let (folder, name) = target.above(true)?;
    let file = folder.join(&name);
    if let Some(there) = stamp(&target).filter(|there| there.hash == *hash) {
        return Ok(there); // done before, perhaps just before a crash
    }
    if let (Some(kept), Some(over)) = (kept, over) {
        let aside = ConfinedPath::new(root, kept);
        let (folder, name) = aside.above(true)?;
        match replace::replace_by_copy(&folder.join(&name), None, &file, over.hash)
            .map_err(|error| aside.renamed(error).to_string())?
        {
            SwapOutcome::Done { .. } => {}
            SwapOutcome::Raced | SwapOutcome::Gone => return Err(format!("there is another file already: {kept}")),
        }
    }
    match replace::replace_by_copy(&file, over.map(|over| over.hash), &from, *hash)
        .map_err(|error| target.renamed(error).to_string())?
    {
        SwapOutcome::Done { modified } => {
            let size = folder.metadata(&name).map_err(|error| format!("{error}: {path}"))?.len();
            Ok(FileStamp { size, mtime: modified, hash: *hash })
        }
        SwapOutcome::Raced => Err(format!("it was changed here meanwhile: {path}")),
        SwapOutcome::Gone => Err(format!("it was removed here meanwhile: {path}")),
    }
}
