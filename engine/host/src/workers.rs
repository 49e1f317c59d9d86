//! Two threads for work that takes longer than a frame: reading notes, loading documents, reading and writing files.

use crate::arrivals::{self, ArrivalBase, CommitFinder};
use crate::fs::atomic_write::{self, ReplaceOutcome};
use crate::fs::bulk_create;
use crate::fs::confined_dir::{self, ConfinedFolder, ConfinedPath, OpenRefusal};
use crate::fs::move_files;
use crate::fs::read::{self, FoundFile};
use crate::loader::{self, as_event_result};
use crate::mailbox::{DiskJob, Mailbox, MailboxMessage};
use anyhow::{anyhow, bail};
use engine::Event;
use engine::event::{DocumentLoadError, FileChangeError, FileReadError, FileStamp, FileText, OutlineSurvey};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::disk::{DiskError, DiskReader};
use store::{ActorId, BlobHash, DocId};

/// A write of a note's file.
struct ToWrite {
    note: DocId,
    file: ConfinedPath,
    expected: Option<BlobHash>,
    text: Arc<str>,
}

/// How a write ended.
enum WriteReport {
    /// As this event says.
    Done(Event),
    /// Another program wrote the file at the same time.
    Raced { note: DocId, file: ConfinedPath, expected: Option<BlobHash>, theirs: FileText },
}

/// New files to create. One worker creates them while other workers queue more, so a disk sync covers many files at
/// once.
#[derive(Default)]
struct FileCreation {
    waiting: Vec<ToWrite>,
    /// Whether a thread is creating files. It takes the waiting ones afterwards.
    busy: bool,
}

/// How long a file waits until Git no longer changes its repository, and the pause between looks.
const MAX_GIT_WAIT: Duration = Duration::from_secs(60);
const GIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of jobs examined before a waiting file is written.
const MAX_BATCHED_JOBS: usize = 256;

/// Sends jobs to the disk workers.
#[derive(Clone)]
pub(crate) struct DiskWorkers {
    jobs: Sender<DiskJob>,
}

impl DiskWorkers {
    pub(crate) fn start(readers: Vec<Box<dyn DiskReader>>, inbox: Mailbox, actor: [u8; 16]) -> DiskWorkers {
        let (jobs, queue) = channel();
        let (queue, making) = (Arc::new(Mutex::new(queue)), Arc::default());
        let finder = CommitFinder::start(inbox.clone());
        for reader in readers {
            let (queue, making, inbox) = (queue.clone(), Arc::clone(&making), inbox.clone());
            let finder = finder.clone();
            std::thread::spawn(move || {
                run_worker(reader.as_ref(), (&queue, &making), (&inbox, &finder), &ActorId::from(actor));
            });
        }
        DiskWorkers { jobs }
    }

    pub(crate) fn send(&self, job: DiskJob) {
        // Here and below: the receiver is gone only if the program ends or nobody waits.
        let _ = self.jobs.send(job);
    }
}

/// Lowers the priority of this thread and of those it starts, below typing and drawing. Ignored if the system doesn't
/// permit it.
pub(crate) fn lower_thread_priority() {
    // On Linux the priority is per thread; elsewhere this would slow down the whole program.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Runs bulk work that nobody waits for on a low-priority thread.
///
/// # Panics
/// Panics if the work does.
pub(crate) fn run_at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            // If this fails, the work merely competes with other threads.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::setpriority_process(None, 19);
            work()
        });
        thread.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run_worker(
    reader: &dyn DiskReader,
    (queue, making): (&Mutex<Receiver<DiskJob>>, &Arc<Mutex<FileCreation>>),
    (inbox, finder): (&Mailbox, &CommitFinder),
    actor: &ActorId,
) {
    loop {
        // The lock is held only while waiting for the next job, never while doing it.
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            Err(_) => return,
        };
        let Ok(job) = job else { return };
        let (mut files, mut next, mut taken) = (Vec::new(), Some(job), 0);
        while let Some(job) = next {
            match job {
                DiskJob::WriteFile { note, file, expected, text } => files.push(ToWrite { note, file, expected, text }),
                job => perform_job(reader, (inbox, finder), actor, making, job),
            }
            taken += 1;
            // First handle the jobs that are already queued: more files may be among them, and the disk is then synced
            // only once.
            let further = !files.is_empty() && taken < MAX_BATCHED_JOBS;
            next = if further { queue.try_lock().ok().and_then(|queue| queue.try_recv().ok()) } else { None };
        }
        write_unlocked_files(files, making, (inbox, finder));
    }
}

/// Writes files, those in a repository that Git is just changing once it's done: Git has looked at them already, and
/// would overwrite what comes now.
fn write_unlocked_files(
    files: Vec<ToWrite>,
    making: &Arc<Mutex<FileCreation>>,
    (inbox, finder): (&Mailbox, &CommitFinder),
) {
    let roots: BTreeSet<&Path> = files.iter().map(|one| one.file.root.as_path()).collect();
    let locked: Vec<PathBuf> =
        roots.into_iter().filter(|root| vcs::is_index_locked(root)).map(Path::to_owned).collect();
    let (held, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|one| locked.contains(&one.file.root));
    if !held.is_empty() {
        let (making, inbox, finder) = (Arc::clone(making), inbox.clone(), finder.clone());
        std::thread::spawn(move || {
            let begun = Instant::now();
            while begun.elapsed() < MAX_GIT_WAIT && locked.iter().any(|root| vcs::is_index_locked(root)) {
                std::thread::sleep(GIT_POLL_INTERVAL);
            }
            write_files(held, &making, |report| send_written(&inbox, &finder, report));
        });
    }
    write_files(files, making, |report| send_written(inbox, finder, report));
}

fn perform_job(
    reader: &dyn DiskReader,
    (inbox, finder): (&Mailbox, &CommitFinder),
    actor: &ActorId,
    making: &Mutex<FileCreation>,
    job: DiskJob,
) {
    match job {
        DiskJob::Volume { volume } => {
            // Load the files first, because they can be shown, and the document takes longer.
            loader::load_volume_files(reader, volume, |event| inbox.send_event(event));
            inbox.send_event(loader::load_volume_doc(reader, volume, actor));
        }
        DiskJob::Files { volume, answer } => {
            let _ = answer.send(reader.file_rows(volume));
        }
        DiskJob::ReadNote { note, volume, path, file } => {
            let mut content = loader::load_note_content(reader, note, volume, &path, || read_file_text(&file));
            if let Ok(content) = &mut content {
                arrivals::find_commits_of_content(&file, content);
            }
            let content = as_event_result(content.map(Box::new), DocumentLoadError);
            inbox.send_event(Event::NoteRead { note, content });
        }
        DiskJob::LoadNote { note } => {
            let docs = loader::load_note_docs(reader, note, actor).map(Box::new);
            inbox.send_event(Event::NoteLoaded { note, docs: as_event_result(docs, DocumentLoadError) });
        }
        DiskJob::LoadSession { session } => inbox.send_event(loader::load_session_doc(reader, session, actor)),
        DiskJob::LoadRun { run } => inbox.send_event(loader::load_run_doc(reader, run, actor)),
        DiskJob::LoadRegistry { registry } => inbox.send_event(loader::load_registry_doc(reader, registry, actor)),
        DiskJob::ReadFile { note, file, known } => {
            let file = match read::read_note_file(&file) {
                Ok(FoundFile::Text(text)) => {
                    let then = move |file| Event::FileRead { note, file: Ok(Some(file)) };
                    return finder.find(file, known.map(ArrivalBase::from), text, then);
                }
                Ok(FoundFile::Missing) => Ok(None),
                Ok(FoundFile::Other { why, .. }) => {
                    Err(anyhow!("the file was changed by another program, and {why}: {}", file.display()))
                }
                Err(why) => Err(why),
            };
            inbox.send_event(Event::FileRead { note, file: as_event_result(file, FileReadError) });
        }
        DiskJob::WriteFile { note, file, expected, text } => {
            write_files(vec![ToWrite { note, file, expected, text }], making, |event| {
                send_written(inbox, finder, event)
            });
        }
        DiskJob::Index { volume, note, text } => {
            let survey = OutlineSurvey::of(BlobHash::of(text.as_bytes()), &text);
            inbox.send_event(Event::Indexed { volume, notes: vec![(note, survey)] });
        }
        DiskJob::MoveFiles { moves, emptied } => {
            let result = as_event_result(move_files::move_files(&moves, &emptied), FileChangeError);
            inbox.send_event(Event::FilesMoved { result });
        }
        DiskJob::Discard { file, path } => {
            let result = as_event_result(move_files::delete_file(&path), FileChangeError);
            inbox.send_event(Event::Discarded { file, result });
        }
        DiskJob::Marker { folder, volumes, done } => {
            let mount = |(id, name, path)| store::disk::VolumeMount { id, name, path };
            let mounts: Vec<store::disk::VolumeMount> = volumes.into_iter().map(mount).collect();
            if let Err(error) = store::disk::write_marker(&folder, &mounts) {
                inbox.send(MailboxMessage::Event(Event::DiskTrouble { why: error.to_string() }));
            }
            let _ = done.send(());
        }
        DiskJob::Blob { hash, answer } => {
            let _ = answer.send(reader.read_blob(hash));
        }
        DiskJob::Actors { answer } => {
            let actors = reader.actors();
            let _ = answer.send(actors.map(|all| all.into_iter().map(|(actor, _)| actor.into()).collect()));
        }
    }
}

/// Reports a write. If another program wrote at the same time, it may have been Git.
fn send_written(inbox: &Mailbox, finder: &CommitFinder, report: WriteReport) {
    match report {
        WriteReport::Done(event) => inbox.send_event(event),
        WriteReport::Raced { note, file, expected, theirs } => {
            let known = expected.map(|hash| ArrivalBase { hash, since: None });
            finder.find(file, known, theirs, move |theirs| Event::FileRaced { note, theirs });
        }
    }
}

/// Reads a note's file.
fn read_file_text(file: &ConfinedPath) -> anyhow::Result<Option<FileText>> {
    match read::read_note_file(file) {
        Ok(FoundFile::Text(text)) => Ok(Some(text)),
        Ok(FoundFile::Missing) => Ok(None),
        Ok(FoundFile::Other { why, .. }) => bail!(why),
        Err(why) => Err(why),
    }
}

/// Writes notes' files. New files are created together, now or by a thread that's already creating some.
fn write_files(files: Vec<ToWrite>, making: &Mutex<FileCreation>, tell: impl Fn(WriteReport)) {
    let mut new = Vec::new();
    for one in files {
        if one.expected.is_none() {
            new.push(one);
            continue;
        }
        tell(match one.file.open_parent(true) {
            Ok((folder, name)) => write_result_event(
                &one,
                atomic_write::replace_file(&folder.join(&name), one.expected, one.text.as_bytes()),
            ),
            Err(refused) => folder_error_event(&one, &refused),
        });
    }
    loop {
        {
            let mut making = making.lock().unwrap_or_else(PoisonError::into_inner);
            making.waiting.append(&mut new);
            if making.busy {
                return;
            }
            new = std::mem::take(&mut making.waiting);
            if new.is_empty() {
                return;
            }
            making.busy = true;
        }
        create_missing_files(&std::mem::take(&mut new), &tell);
        making.lock().unwrap_or_else(PoisonError::into_inner).busy = false;
    }
}

/// Creates missing files. Each file's folder stays open until all are created.
fn create_missing_files(new: &[ToWrite], tell: &impl Fn(WriteReport)) {
    let mut folders: BTreeMap<(&Path, String), ConfinedFolder> = BTreeMap::new();
    let mut places: Vec<(&ToWrite, PathBuf)> = Vec::new();
    for one in new {
        let path = confined_dir::normalize_path(&one.file.path).unwrap_or_default();
        let (within, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let key = (one.file.root.as_path(), within.to_owned());
        if let Some(folder) = folders.get(&key).filter(|_| !name.is_empty()) {
            places.push((one, folder.join(name.as_ref())));
            continue;
        }
        match one.file.open_parent(true) {
            Ok((folder, name)) => {
                places.push((one, folder.join(&name)));
                folders.insert(key, folder);
            }
            Err(refused) => tell(folder_error_event(one, &refused)),
        }
    }
    let list: Vec<(&Path, &[u8])> = places.iter().map(|(one, path)| (path.as_path(), one.text.as_bytes())).collect();
    for ((one, _), done) in places.iter().zip(bulk_create::create_files(&list)) {
        tell(write_result_event(one, done));
    }
}

/// Returns the event for a file whose folder can't be opened or created.
fn folder_error_event(one: &ToWrite, refused: &OpenRefusal) -> WriteReport {
    let why = format!("it cannot be written ({refused}): {}", one.file.display());
    WriteReport::Done(Event::FileFailed { note: one.note, why })
}

/// Returns the event for a written file.
fn write_result_event(one: &ToWrite, done: Result<ReplaceOutcome, DiskError>) -> WriteReport {
    let ToWrite { note, file, text, expected } = one;
    let note = *note;
    WriteReport::Done(match done {
        Ok(ReplaceOutcome::Done { modified }) => {
            let stamp = FileStamp { size: text.len() as u64, mtime: modified, hash: BlobHash::of(text.as_bytes()) };
            Event::FileWritten { note, stamp }
        }
        Ok(ReplaceOutcome::Gone) => Event::FileGone { note },
        Ok(ReplaceOutcome::Raced { theirs }) => {
            let stamp = FileStamp { size: theirs.len() as u64, mtime: 0, hash: BlobHash::of(&theirs) };
            match String::from_utf8(theirs) {
                Ok(text) => {
                    let theirs = FileText { text, stamp, commits: Vec::new() };
                    return WriteReport::Raced { note, file: file.clone(), expected: *expected, theirs };
                }
                Err(_) => Event::FileFailed {
                    note,
                    why: format!("another program made it something that is not text: {}", file.display()),
                },
            }
        }
        Err(error) => Event::FileFailed { note, why: file.with_display_path(error).to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_come_while_others_are_made_are_made_too_each_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (making, told): (Mutex<FileCreation>, Mutex<Vec<DocId>>) = Default::default();
        let one = |worker: u8, number: u8| ToWrite {
            note: DocId([worker, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            file: ConfinedPath::new(folder.path(), &format!("folder {}/{worker} {number}.md", number % 3)),
            expected: None,
            text: format!("{number} of {worker}").into(),
        };
        let made = |report: WriteReport| match report {
            WriteReport::Done(Event::FileWritten { note, .. }) => told.lock().expect("lock").push(note),
            WriteReport::Done(other) => panic!("{other:?}"),
            WriteReport::Raced { file, .. } => panic!("{}", file.display()),
        };
        std::thread::scope(|threads| {
            for worker in 0..4 {
                let (making, one, made) = (&making, &one, &made);
                threads.spawn(move || {
                    (0..30_u8).for_each(|number| write_files(vec![one(worker, number)], making, made));
                });
            }
        });
        let mut told = told.into_inner().expect("lock");
        told.sort_unstable();
        let all = (0..4).flat_map(|worker| (0..30).map(move |number| one(worker, number)));
        for (known, one) in told.iter().zip(all.clone()) {
            assert_eq!(*known, one.note);
            assert_eq!(one.file.read_text(1 << 20).expect("made"), *one.text);
        }
        assert_eq!(told.len(), all.count());
        let making = making.into_inner().expect("lock");
        assert!(making.waiting.is_empty() && !making.busy);
    }
}
