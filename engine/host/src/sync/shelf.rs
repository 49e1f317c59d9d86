//! Where the bytes lie that devices exchange beside documents: attachments in their volume's folder, large outputs
//! among the workspace's blobs, what is still coming beside them. Two threads that read and write; they decide nothing.

use super::Task;
use crate::fs::confined::ConfinedPath;
use crate::fs::files;
use crate::fs::replace::{self, Swap};
use engine::event::FileStamp;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use store::disk::{BlobHasher, Blobs, Coming, Reader, read_piece};
use store::sync::Link;
use store::sync::blobs::{Checked, Found, Item, PIECE};
use store::{ActorId, BlobHash, DocId, OutputsDoc, RunDoc};

/// Bytes that are hashed at once.
const BLOCK: usize = 256 << 10;
/// The folder, inside the workspace, of what is on its way.
const COMING: &str = "coming";

/// What takes its time.
pub(super) enum Chore {
    /// Which blobs these outputs name, or this run.
    Named { doc: DocId, is_run: bool },
    /// Take the bytes of a file among the blobs.
    Keep { item: Item, from: (ConfinedPath, FileStamp) },
    /// Which bytes a file has.
    Hash { file: DocId, path: ConfinedPath },
    /// Put what has come into a file.
    Place(Box<Placing>),
    /// It is not needed on its way any more.
    Drop { hash: BlobHash },
}

/// Bytes for an attachment's file.
pub(super) struct Placing {
    pub(super) volume: DocId,
    pub(super) file: DocId,
    pub(super) root: PathBuf,
    pub(super) path: String,
    pub(super) hash: BlobHash,
    /// What is there now.
    pub(super) over: Option<FileStamp>,
    /// Where that is kept.
    pub(super) kept: Option<String>,
    /// A file that has these bytes, where one is known.
    pub(super) like: Option<(ConfinedPath, FileStamp)>,
}

/// What goes along with messages.
pub(super) enum Piece {
    Look { item: Item },
    Read { link: Link, item: Item, offset: u64, file: Option<(ConfinedPath, FileStamp)> },
    Write { item: Item, offset: u64, bytes: Vec<u8> },
    Check { item: Item, keep: bool },
}

/// A blob that a document names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// How many bytes it has, if that is known; if it is here, it is.
    pub(super) size: Option<u64>,
    pub(super) here: bool,
}

/// What came of it.
pub(super) enum Done {
    Named {
        doc: DocId,
        blobs: BTreeMap<BlobHash, Named>,
    },
    Kept {
        item: Item,
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
        item: Item,
        found: Found,
    },
    Read {
        link: Link,
        item: Item,
        offset: u64,
        piece: Option<(u64, Vec<u8>)>,
    },
    Failed {
        item: Item,
        why: String,
    },
    Checked {
        item: Item,
        checked: Checked,
    },
}

/// The ways to both threads.
pub(super) struct Shelf {
    pub(super) chores: Sender<Chore>,
    pub(super) pieces: Sender<Piece>,
}

#[derive(Clone)]
struct Folders {
    blobs: Blobs,
    /// What is here whole, on its way to an attachment's file.
    whole: Blobs,
    coming: Coming,
}

impl Shelf {
    /// Starts the threads; they end when this goes.
    pub(super) fn start(folder: &Path, reader: Box<dyn Reader>, tasks: Sender<Task>) -> Shelf {
        let coming = folder.join(COMING);
        let folders =
            Folders { blobs: Blobs::new(folder), whole: Blobs::new(&coming), coming: Coming::new(coming.clone()) };
        let ((chores, slow), (pieces, quick)) = (channel(), channel());
        let (also, back) = (folders.clone(), tasks.clone());
        std::thread::spawn(move || chore_thread(&also, reader.as_ref(), &slow, &back));
        std::thread::spawn(move || piece_thread(&folders, &quick, &tasks));
        Shelf { chores, pieces }
    }
}

fn chore_thread(folders: &Folders, reader: &dyn Reader, queue: &Receiver<Chore>, tasks: &Sender<Task>) {
    crate::worker::step_back();
    for chore in queue {
        let done = match chore {
            Chore::Named { doc, is_run } => Done::Named { doc, blobs: named(folders, reader, doc, is_run) },
            Chore::Keep { item, from } => Done::Kept { item, size: keep(folders, item.hash, &from) },
            Chore::Hash { file, path } => Done::Hashed { file, stamp: stamp(&path) },
            Chore::Place(placing) => {
                let result = place(folders, &placing);
                let Placing { volume, file, path, .. } = *placing;
                Done::Placed { volume, file, path, result }
            }
            Chore::Drop { hash } => {
                let _ = folders.whole.remove(hash); // at worst it stays, and is used again
                Done::Dropped
            }
        };
        if tasks.send(Task::Shelf(done)).is_err() {
            return;
        }
    }
}

fn piece_thread(folders: &Folders, queue: &Receiver<Piece>, tasks: &Sender<Task>) {
    for piece in queue {
        let done = match piece {
            Piece::Look { item } => {
                let whole = folders.blobs.len_of(item.hash).or_else(|| folders.whole.len_of(item.hash));
                let part = || Found::Part(folders.coming.len_of(item.hash));
                Some(Done::Looked { item, found: whole.map_or_else(part, Found::Whole) })
            }
            Piece::Read { link, item, offset, file } => {
                let piece = read(folders, item.hash, offset, file.as_ref());
                Some(Done::Read { link, item, offset, piece })
            }
            Piece::Write { item, offset, bytes } => {
                let failed = folders.coming.write(item.hash, offset, &bytes).err();
                failed.map(|error| Done::Failed { item, why: error.to_string() })
            }
            Piece::Check { item, keep } => {
                let to = if keep { &folders.blobs } else { &folders.whole };
                let checked = match folders.coming.finish(item.hash, to) {
                    Ok(true) => Checked::Good,
                    Ok(false) => Checked::Bad,
                    Err(error) => Checked::Failed(error.to_string()),
                };
                Some(Done::Checked { item, checked })
            }
        };
        if done.is_some_and(|done| tasks.send(Task::Shelf(done)).is_err()) {
            return;
        }
    }
}

/// The blobs that outputs or a run name. What cannot be read names none.
fn named(folders: &Folders, reader: &dyn Reader, doc: DocId, is_run: bool) -> BTreeMap<BlobHash, Named> {
    let chunks = reader.chunks(doc).unwrap_or_default();
    let chunks: Vec<Vec<u8>> = chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect();
    if chunks.is_empty() {
        return BTreeMap::new();
    }
    let nobody = ActorId::from([0; 16]);
    let blobs: BTreeMap<BlobHash, Option<u64>> = if is_run {
        RunDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc.blobs()).unwrap_or_default()
    } else {
        let blobs = OutputsDoc::load(doc, &chunks, nobody).map(|loaded| loaded.doc.blobs()).unwrap_or_default();
        blobs.into_iter().map(|one| (one.blob, Some(one.size))).collect()
    };
    let named = |(blob, size): (BlobHash, Option<u64>)| {
        let there = folders.blobs.len_of(blob);
        (blob, Named { size: there.or(size), here: there.is_some() })
    };
    blobs.into_iter().map(named).collect()
}

/// Copies a file among the blobs, where it holds what it is known to hold.
fn keep(folders: &Folders, hash: BlobHash, (path, stamp): &(ConfinedPath, FileStamp)) -> Option<u64> {
    let mut file = open_as(path, stamp)?;
    let mut offset = 0;
    loop {
        let (_, bytes) = piece(&mut file, offset)?;
        folders.coming.write(hash, offset, &bytes).ok()?;
        offset += bytes.len() as u64;
        if bytes.is_empty() || offset >= stamp.size {
            break;
        }
    }
    folders.coming.finish(hash, &folders.blobs).ok()?.then_some(offset)
}

/// A piece of an open file, and how many bytes the file has.
fn piece(file: &mut File, offset: u64) -> Option<(u64, Vec<u8>)> {
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes).ok()?;
    Some((size, bytes))
}

/// What a file is now: nothing when it changes while it is read.
fn stamp(path: &ConfinedPath) -> Option<FileStamp> {
    let (mut file, before) = path.open().ok()?;
    let (mut hasher, mut block) = (BlobHasher::default(), vec![0; BLOCK]);
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
    folders: &Folders,
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
    read_piece(&there.path(hash), offset, PIECE).ok()
}

/// Puts what has come into a file of a volume: all of it, and never over what is not known.
fn place(folders: &Folders, placing: &Placing) -> Result<FileStamp, String> {
    let Placing { root, path, hash, over, kept, like, .. } = placing;
    let target = ConfinedPath::new(root, path);
    let like = like.as_ref().filter(|(path, stamp)| open_as(path, stamp).is_some());
    // Its folder stays open until its bytes were taken.
    let near = like.and_then(|(path, _)| path.above(false).ok());
    let from = match &near {
        Some((folder, name)) => folder.join(name),
        None => {
            let there = [&folders.whole, &folders.blobs].into_iter().find(|blobs| blobs.has(*hash));
            there.map(|blobs| blobs.path(*hash)).ok_or_else(|| format!("its bytes are gone again: {path}"))?
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
            Swap::Done { .. } => {}
            Swap::Raced | Swap::Gone => return Err(format!("there is another file already: {kept}")),
        }
    }
    match replace::replace_by_copy(&file, over.map(|over| over.hash), &from, *hash)
        .map_err(|error| target.renamed(error).to_string())?
    {
        Swap::Done { modified } => {
            let size = folder.metadata(&name).map_err(|error| format!("{error}: {path}"))?.len();
            Ok(FileStamp { size, mtime: modified, hash: *hash })
        }
        Swap::Raced => Err(format!("it was changed here meanwhile: {path}")),
        Swap::Gone => Err(format!("it was removed here meanwhile: {path}")),
    }
}
