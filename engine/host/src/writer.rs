//! The one writer: takes batches in order, commits all that wait as one group, and says what is durable.

use crate::driver::{Inbox, Post};
use crate::worker::{Job, Workers};
use engine::{BatchNumber, Event};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::BlobHash;
use store::disk::{Disk, DiskError, Write};

/// What the writer is asked for.
pub(crate) enum Work {
    /// Commit this after all before it.
    Append { batch: BatchNumber, writes: Vec<Write> },
    /// Give this job to the workers once everything before it is on disk.
    Then(Box<Job>),
    /// Store a blob.
    Blob { bytes: Vec<u8>, answer: Sender<Result<BlobHash, String>> },
    /// Commit what waits, trying `patience` long, then end.
    Close { patience: Duration },
}

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    work: Sender<Work>,
}

/// Writes of a group are committed together up to this many bytes of content.
const GROUP: usize = 16 << 20;
/// Pause after a refusal before the next try.
const RETRY: Duration = Duration::from_millis(500);
/// Housekeeping begins when nothing was asked for this long.
const IDLE: Duration = Duration::from_millis(1_500);

impl Writer {
    pub(crate) fn start(
        disk: Box<dyn Disk>,
        inbox: Inbox,
        workers: Workers,
    ) -> (Writer, JoinHandle<Result<(), String>>) {
        let (work, queue) = channel();
        let thread = std::thread::spawn(move || run(disk, &queue, &inbox, &workers));
        (Writer { work }, thread)
    }

    /// Sends work; after the writer's end there is nobody left to do it.
    pub(crate) fn send(&self, work: Work) {
        let _ = self.work.send(work);
    }

    /// Stores a blob and waits for it.
    pub(crate) fn blob(&self, bytes: Vec<u8>) -> Result<BlobHash, String> {
        let (answer, wait) = channel();
        self.send(Work::Blob { bytes, answer });
        wait.recv().unwrap_or_else(|_| Err("the program is closing".to_owned()))
    }
}

fn run(mut disk: Box<dyn Disk>, queue: &Receiver<Work>, inbox: &Inbox, workers: &Workers) -> Result<(), String> {
    let mut next: Option<Work> = None;
    let mut rested = false;
    loop {
        let work = match next.take() {
            Some(work) => work,
            None if rested => match queue.recv() {
                Ok(work) => work,
                Err(_) => return Ok(()),
            },
            None => match queue.recv_timeout(IDLE) {
                Ok(work) => work,
                Err(RecvTimeoutError::Timeout) => {
                    disk.idle();
                    rested = true;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            },
        };
        match work {
            Work::Append { batch, mut writes } => {
                rested = false;
                let mut last = batch;
                let mut size = weight(&writes);
                while size < GROUP {
                    match queue.try_recv() {
                        Ok(Work::Append { batch, writes: more }) => {
                            size += weight(&more);
                            writes.extend(more);
                            last = batch;
                        }
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                commit(disk.as_mut(), &writes, last, queue, inbox, &mut next)?;
            }
            Work::Then(job) => workers.send(*job),
            Work::Blob { bytes, answer } => {
                let _ = answer.send(disk.put_blob(&bytes).map_err(|error| error.to_string()));
            }
            Work::Close { .. } => {
                disk.idle();
                return Ok(());
            }
        }
    }
}

/// Commits a group, trying until it is done. Nothing is dropped, unless the program closes and patience ends.
fn commit(
    disk: &mut dyn Disk,
    writes: &[Write],
    last: BatchNumber,
    queue: &Receiver<Work>,
    inbox: &Inbox,
    next: &mut Option<Work>,
) -> Result<(), String> {
    let mut held: Vec<Work> = Vec::new();
    let mut patience: Option<Duration> = None;
    let mut told: Option<String> = None;
    loop {
        match disk.commit(writes) {
            Ok(_) => break,
            // A rule was broken, and will be at every further try: all else of the group is written, and it is said.
            Err(DiskError::Refused { what, why, path }) => {
                let refused = writes.iter().filter(|write| disk.commit(std::slice::from_ref(write)).is_err()).count();
                let path = path.display();
                let why = format!("{what} was refused ({why}; {refused} rows); run `tracebook fsck`: {path}");
                inbox.post(Post::Event(Event::DiskTrouble { why }));
                break;
            }
            Err(error) => {
                let why = error.to_string();
                if told.as_ref() != Some(&why) {
                    inbox.post(Post::Event(Event::DiskTrouble { why: why.clone() }));
                    told = Some(why.clone());
                }
                let pause = if matches!(error, DiskError::Full { .. }) { RETRY } else { RETRY * 2 };
                match &mut patience {
                    Some(left) if *left < pause => return Err(why),
                    Some(left) => *left -= pause,
                    None => {}
                }
                // While the disk refuses, a blob or the end of the program may be asked for.
                match queue.recv_timeout(pause) {
                    Ok(Work::Close { patience: end }) => patience = Some(end),
                    Ok(Work::Blob { answer, .. }) => {
                        let _ = answer.send(Err(why));
                    }
                    Ok(work) => held.push(work),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        patience.get_or_insert(Duration::ZERO);
                    }
                }
            }
        }
    }
    inbox.post(Post::Event(Event::Durable { batch: last }));
    if held.is_empty() && patience.is_none() {
        return Ok(());
    }
    // What came in while the disk refused is done now, in its order, before anything new.
    let mut order: Vec<Work> = next.take().into_iter().collect();
    order.extend(held);
    let mut rest: Option<Work> = None;
    for work in order {
        match work {
            Work::Append { batch, writes } => commit(disk, &writes, batch, queue, inbox, &mut rest)?,
            Work::Then(job) => inbox.post(Post::Job(job)),
            Work::Blob { bytes, answer } => {
                let _ = answer.send(disk.put_blob(&bytes).map_err(|error| error.to_string()));
            }
            Work::Close { patience: end } => patience = Some(end),
        }
    }
    *next = rest;
    if let Some(patience) = patience {
        *next = Some(Work::Close { patience });
    }
    Ok(())
}

fn weight(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Journal { record, .. } => record.len(),
        Write::Chunk { bytes, .. } | Write::Snapshot { bytes, .. } => bytes.len(),
        Write::Block { block, .. } => block.text.len(),
        Write::Meta { value, .. } => value.as_ref().map_or(0, Vec::len),
        Write::File(row) => row.path.len() + 200,
        Write::JournalDone { .. }
        | Write::DropChunks { .. }
        | Write::FileGone { .. }
        | Write::Ahead { .. }
        | Write::Actor { .. }
        | Write::SetAside { .. }
        | Write::SetAsideJournal { .. } => 100,
    };
    writes.iter().map(one).sum()
}
