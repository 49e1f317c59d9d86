//! Two threads that do what takes longer than a frame: reading notes, loading documents, reading and writing files.

use crate::driver::{Inbox, Post};
use crate::files::{self, Found};
use crate::replace::{self, Replaced};
use engine::Event;
use engine::event::{FileStamp, NoteContent, NoteDocs};
use engine::markdown;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::disk::{Chunk, FileRow, Reader};
use store::{ActorId, BlobHash, DocId, NoteDoc, OutputsDoc, Record, VolumeDoc, apply_op, import_blocks};

/// A document with more chunks than this is written anew as one, in passing.
const CHUNKS: usize = 256;

/// One piece of work.
pub(crate) enum Job {
    Volume { volume: DocId },
    Files { volume: DocId, answer: Sender<Result<Vec<FileRow>, String>> },
    ReadNote { note: DocId, volume: DocId, path: String, file: PathBuf },
    LoadNote { note: DocId },
    ReadFile { note: DocId, file: PathBuf },
    WriteFile { note: DocId, file: PathBuf, expected: Option<BlobHash>, text: Arc<str> },
    Marker { folder: PathBuf, volumes: Vec<(DocId, String, PathBuf)> },
    Blob { hash: BlobHash, answer: Sender<Result<Vec<u8>, String>> },
}

/// The way to the workers.
#[derive(Clone)]
pub(crate) struct Workers {
    jobs: Sender<Job>,
}

impl Workers {
    pub(crate) fn start(readers: Vec<Box<dyn Reader>>, inbox: Inbox, actor: [u8; 16]) -> Workers {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for reader in readers {
            let (queue, inbox) = (queue.clone(), inbox.clone());
            std::thread::spawn(move || work(reader.as_ref(), &queue, &inbox, &ActorId::from(actor)));
        }
        Workers { jobs }
    }

    pub(crate) fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }
}

fn work(reader: &dyn Reader, queue: &Mutex<Receiver<Job>>, inbox: &Inbox, actor: &ActorId) {
    loop {
        // The lock is held only while waiting for the next job, never while doing it.
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            Err(_) => return,
        };
        let Ok(job) = job else { return };
        match job {
            Job::Volume { volume } => {
                match reader.files(volume) {
                    Ok(files) => inbox.event(Event::VolumeRead { volume, files }),
                    Err(error) => inbox.event(Event::VolumeLoaded { volume, doc: Err(error.to_string()) }),
                }
                let doc = load(reader, volume, |chunks| VolumeDoc::load(volume, chunks, actor.clone()));
                inbox.event(Event::VolumeLoaded { volume, doc: doc.map(|loaded| Box::new(loaded.doc)) });
            }
            Job::Files { volume, answer } => {
                let _ = answer.send(reader.files(volume).map_err(|error| error.to_string()));
            }
            Job::ReadNote { note, volume, path, file } => {
                let content = read_note(reader, note, volume, &path, &file).map(Box::new);
                inbox.event(Event::NoteRead { note, content });
            }
            Job::LoadNote { note } => {
                let docs = load_note(reader, note, actor).map(Box::new);
                inbox.event(Event::NoteLoaded { note, docs });
            }
            Job::ReadFile { note, file } => {
                let file = match files::read(&file) {
                    Ok(Found::Text(text)) => Ok(Some(text)),
                    Ok(Found::Missing) => Ok(None),
                    Ok(Found::Other { why, .. }) => {
                        Err(format!("the file was changed by another program, and {why}: {}", file.display()))
                    }
                    Err(why) => Err(why),
                };
                inbox.event(Event::FileRead { note, file });
            }
            Job::WriteFile { note, file, expected, text } => {
                inbox.event(write_file(note, &file, expected, &text));
            }
            Job::Marker { folder, volumes } => {
                let mount = |(id, name, path)| store::disk::Mount { id, name, path };
                let mounts: Vec<store::disk::Mount> = volumes.into_iter().map(mount).collect();
                if let Err(error) = store::disk::write_marker(&folder, &mounts) {
                    inbox.post(Post::Event(Event::DiskTrouble { why: error.to_string() }));
                }
            }
            Job::Blob { hash, answer } => {
                let _ = answer.send(reader.blob(hash).map_err(|error| error.to_string()));
            }
        }
    }
}

struct Loaded<D> {
    doc: D,
    chunks: Vec<Chunk>,
    problems: Vec<String>,
    bad: bool,
}

/// Loads a document from those of its chunks that hold.
fn load<D>(
    reader: &dyn Reader,
    doc: DocId,
    load: impl Fn(&[Vec<u8>]) -> Result<store::Loaded<D>, store::StoreError>,
) -> Result<Loaded<D>, String> {
    let chunks = reader.chunks(doc).map_err(|error| error.to_string())?;
    let whole: Vec<Vec<u8>> = chunks.iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes.clone()).collect();
    let torn = chunks.len() - whole.len();
    let loaded = load(&whole).map_err(|error| format!("{error}; `tracebook fsck` sets it aside"))?;
    let bad = torn + loaded.bad.len();
    let mut problems = Vec::new();
    if bad > 0 {
        problems.push(format!("{bad} stored changes cannot be read; the text is whole, `tracebook fsck` mends the rest"));
    }
    Ok(Loaded { doc: loaded.doc, chunks, problems, bad: bad > 0 })
}

fn read_note(
    reader: &dyn Reader,
    note: DocId,
    volume: DocId,
    path: &str,
    file: &Path,
) -> Result<NoteContent, String> {
    let say = |error: store::disk::DiskError| error.to_string();
    let (mut blocks, bad) = reader.blocks(note).map_err(say)?;
    let mut problems = Vec::new();
    if !bad.is_empty() {
        problems.push(format!("{} blocks cannot be read; `tracebook fsck` takes them from the history", bad.len()));
    }
    let mut records = Vec::new();
    for (seq, bytes) in reader.journal(note).map_err(say)? {
        let replayed = Record::decode(seq, note, &bytes).and_then(|record| {
            let mut next = blocks.clone();
            record.ops.iter().try_for_each(|op| apply_op(&mut next, op))?;
            Ok((record, next))
        });
        match replayed {
            Ok((record, next)) => {
                blocks = next;
                records.push(record);
            }
            Err(error) => {
                problems.push(format!("the last edits could not be read back: {error}"));
                break;
            }
        }
    }
    let row = reader.file(volume, path).map_err(say)?;
    let ahead = reader.unfinished().map_err(say)?.contains(&note);
    let file = match files::read(file) {
        Ok(Found::Text(text)) => Ok(Some(text)),
        Ok(Found::Missing) => Ok(None),
        Ok(Found::Other { why, .. }) | Err(why) => Err(why),
    };
    let known = row.as_ref().is_some_and(|row| !row.heads.is_empty());
    let adopted = known || ahead || !blocks.is_empty() || !records.is_empty();
    if !adopted && let Ok(Some(file)) = &file {
        blocks = import_blocks(markdown::segment(&file.text).into_iter());
    }
    Ok(NoteContent { blocks, adopted, records, row, file, ahead, problems })
}

fn load_note(reader: &dyn Reader, note: DocId, actor: &ActorId) -> Result<NoteDocs, String> {
    let mut loaded = load(reader, note, |chunks| NoteDoc::load(note, chunks, actor.clone()))?;
    let (rows, _) = reader.blocks(note).map_err(|error| error.to_string())?;
    let mut append = Vec::new();
    let mut snapshot = None;
    if loaded.chunks.is_empty() {
        loaded.doc = NoteDoc::import(note, &rows, actor.clone()).map_err(|error| error.to_string())?;
        append.push(loaded.doc.save());
    } else if loaded.bad {
        // What cannot be read of the history is in the rows: the document is made to say what they say.
        let difference = loaded.doc.difference(&rows);
        if !rows.is_empty() && !difference.is_empty() {
            let repair = loaded.doc.commit(&difference, 0, Some("repair")).map_err(|error| error.to_string())?;
            append.push(repair);
        }
    } else if loaded.chunks.len() > CHUNKS {
        let covers = loaded.chunks.iter().map(|chunk| chunk.seq).max().unwrap_or(0);
        snapshot = Some((loaded.doc.save(), covers));
    }
    let outputs = load(reader, note.outputs(), |chunks| OutputsDoc::load(note.outputs(), chunks, actor.clone()));
    let (outputs, outputs_new) = match outputs {
        Ok(outputs) => {
            loaded.problems.extend(outputs.problems);
            (Ok(Box::new(outputs.doc)), outputs.chunks.is_empty())
        }
        Err(why) => (Err(format!("the kept outputs: {why}")), false),
    };
    Ok(NoteDocs {
        doc: Box::new(loaded.doc),
        chunks: append,
        snapshot,
        outputs_new,
        outputs,
        problems: loaded.problems,
    })
}

fn write_file(note: DocId, file: &Path, expected: Option<BlobHash>, text: &str) -> Event {
    if let Some(parent) = file.parent()
        && let Err(error) = std::fs::create_dir_all(parent)
    {
        return Event::FileFailed { note, why: format!("the folder cannot be made ({error}): {}", parent.display()) };
    }
    match replace::replace_file(file, expected, text.as_bytes()) {
        Ok(Replaced::Done { modified }) => {
            let stamp =
                FileStamp { size: text.len() as u64, mtime: modified, hash: BlobHash::of(text.as_bytes()) };
            Event::FileWritten { note, stamp }
        }
        Ok(Replaced::Gone) => Event::FileGone { note },
        Ok(Replaced::Raced { theirs }) => {
            let stamp = FileStamp { size: theirs.len() as u64, mtime: 0, hash: BlobHash::of(&theirs) };
            match String::from_utf8(theirs) {
                Ok(text) => Event::FileRaced { note, theirs: engine::event::FileText { text, stamp } },
                Err(_) => Event::FileFailed {
                    note,
                    why: format!("another program made it something that is not text: {}", file.display()),
                },
            }
        }
        Err(error) => Event::FileFailed { note, why: error.to_string() },
    }
}
