//! The only writer of the database: commits queued batches in order, as one group, and reports which are durable.

use crate::mailbox::{DiskJob, Mailbox, StoreWriter, WriterTask};
use crate::search::SearchService;
use crate::sync::SyncService;
use crate::workers::DiskWorkers;
use anyhow::{anyhow, bail};
use engine::{BatchNumber, Event};
use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::DocId;
use store::disk::{Disk, DiskError, RowWrite};

/// Maximum size of a group in bytes of content.
const MAX_GROUP_BYTES: usize = 16 << 20;
/// Delay before retrying a failed commit.
const WRITE_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Housekeeping starts after this much idle time.
const HOUSEKEEPING_IDLE_DELAY: Duration = Duration::from_millis(1_500);

impl StoreWriter {
    pub(crate) fn start(
        disk: Box<dyn Disk>,
        inbox: Mailbox,
        workers: DiskWorkers,
        search: Option<SearchService>,
        sync: Option<SyncService>,
    ) -> (StoreWriter, JoinHandle<anyhow::Result<()>>) {
        let (work, queue) = channel();
        let thread = std::thread::spawn(move || run(disk, &queue, &inbox, &workers, (search, sync)));
        (StoreWriter::new(work), thread)
    }
}

/// The state of the writer's thread.
struct WriterThread<'a> {
    disk: Box<dyn Disk>,
    workers: &'a DiskWorkers,
    queue: &'a Receiver<WriterTask>,
    inbox: &'a Mailbox,
    /// Search and sync are notified of durable batches.
    search: Option<SearchService>,
    sync: Option<SyncService>,
    /// Queued tasks, in order of arrival.
    waiting: VecDeque<WriterTask>,
    /// Remaining time for retries once the program is closing.
    close_timeout: Option<Duration>,
}

fn run(
    disk: Box<dyn Disk>,
    queue: &Receiver<WriterTask>,
    inbox: &Mailbox,
    workers: &DiskWorkers,
    (search, sync): (Option<SearchService>, Option<SyncService>),
) -> anyhow::Result<()> {
    let mut writer =
        WriterThread { disk, workers, queue, inbox, search, sync, waiting: VecDeque::new(), close_timeout: None };
    let mut rested = false;
    loop {
        queue.try_iter().for_each(|work| writer.enqueue(work));
        let Some(work) = writer.waiting.pop_front() else {
            if writer.close_timeout.is_some() {
                writer.disk.run_idle_tasks();
                return Ok(());
            }
            let next = if rested {
                queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                queue.recv_timeout(HOUSEKEEPING_IDLE_DELAY)
            };
            match next {
                Ok(work) => writer.enqueue(work),
                Err(RecvTimeoutError::Timeout) => {
                    writer.disk.run_idle_tasks();
                    rested = true;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            continue;
        };
        match work {
            WriterTask::Append { batch, writes } => {
                rested = false;
                for job in writer.commit_group(batch, writes)? {
                    workers.send(job);
                }
            }
            WriterTask::RunAfter(job) => workers.send(*job),
            WriterTask::AppendBestEffort { writes } => _ = writer.disk.commit(&writes),
            WriterTask::Blob { bytes, answer } => {
                // Here and below: if the receiver is gone, nobody needs the result.
                let _ = answer.send(writer.disk.put_blob(&bytes).map_err(Into::into));
            }
            // `enqueue` handles close requests itself and never queues them.
            WriterTask::Close { patience } => writer.close_timeout = Some(patience),
        }
    }
}

impl WriterThread<'_> {
    /// Queues a task. A close request takes effect at once: it sets how long to keep retrying.
    fn enqueue(&mut self, work: WriterTask) {
        match work {
            WriterTask::Close { patience } => self.close_timeout = Some(patience),
            WriterTask::Append { .. }
            | WriterTask::RunAfter(_)
            | WriterTask::AppendBestEffort { .. }
            | WriterTask::Blob { .. } => self.waiting.push_back(work),
        }
    }

    /// Commits a batch and the batches queued right after it as one group, and retries until it succeeds.
    ///
    /// Nothing is dropped, unless the program is closing and the time has run out.
    ///
    /// Returns the jobs queued between those batches. Everything sent before each job is on disk now, and so are later
    /// batches of the group. That's harmless, because a worker might have started the job only after those.
    fn commit_group(&mut self, batch: BatchNumber, writes: Vec<RowWrite>) -> anyhow::Result<Vec<DiskJob>> {
        let mut ends = vec![(batch, writes.len())];
        let mut group = writes;
        let mut jobs = Vec::new();
        let mut size = content_bytes(&group);
        while size < MAX_GROUP_BYTES
            && matches!(self.waiting.front(), Some(WriterTask::Append { .. } | WriterTask::RunAfter(_)))
        {
            match self.waiting.pop_front() {
                Some(WriterTask::Append { batch, writes }) => {
                    size += content_bytes(&writes);
                    group.extend(writes);
                    ends.push((batch, group.len()));
                }
                Some(WriterTask::RunAfter(job)) => jobs.push(*job),
                Some(WriterTask::AppendBestEffort { .. } | WriterTask::Blob { .. } | WriterTask::Close { .. })
                | None => {}
            }
        }
        let mut told: Option<String> = None;
        let mut numbers = Vec::new();
        loop {
            match self.disk.commit(&group) {
                Ok(given) => {
                    numbers = given;
                    break;
                }
                // Jobs wait only for writes to the documents that they read.
                Err(_) if self.send_unrelated_jobs(&group, &mut jobs) => {}
                Err(error @ DiskError::Refused { .. }) => {
                    self.commit_one_by_one(&group, &ends, &error);
                    break;
                }
                Err(error) => {
                    let why = error.to_string();
                    if told.as_ref() != Some(&why) {
                        self.inbox.send_event(Event::DiskTrouble { why: why.clone() });
                        told = Some(why.clone());
                    }
                    let pause = if matches!(error, DiskError::Full { .. }) {
                        WRITE_RETRY_INTERVAL
                    } else {
                        WRITE_RETRY_INTERVAL * 2
                    };
                    self.wait_before_retry(pause, &why)?;
                }
            }
        }
        if let Some((last, _)) = ends.last() {
            self.inbox.send_event(Event::Durable { batch: *last });
        }
        if let Some(search) = &self.search {
            search.note_writes(&group);
        }
        if let Some(sync) = &self.sync {
            sync.note_writes(&group, &numbers);
        }
        Ok(jobs)
    }

    /// While the disk rejects writes, sends jobs to the workers that read no document with pending writes.
    ///
    /// Returns whether there was one.
    fn send_unrelated_jobs(&mut self, group: &[RowWrite], jobs: &mut Vec<DiskJob>) -> bool {
        let mut concerned: BTreeSet<DocId> = group.iter().filter_map(written_document).collect();
        let before = jobs.len() + self.waiting.len();
        let send = |job: DiskJob, concerned: &BTreeSet<DocId>| match documents_read_by(&job) {
            Some(docs) if docs.iter().all(|doc| !concerned.contains(doc)) => {
                self.workers.send(job);
                None
            }
            Some(_) | None => Some(job),
        };
        *jobs = std::mem::take(jobs).into_iter().filter_map(|job| send(job, &concerned)).collect();
        let waiting = std::mem::take(&mut self.waiting).into_iter().filter_map(|work| match work {
            WriterTask::RunAfter(job) => send(*job, &concerned).map(|job| WriterTask::RunAfter(Box::new(job))),
            WriterTask::Append { batch, writes } => {
                concerned.extend(writes.iter().filter_map(written_document));
                Some(WriterTask::Append { batch, writes })
            }
            work @ (WriterTask::AppendBestEffort { .. } | WriterTask::Blob { .. } | WriterTask::Close { .. }) => {
                Some(work)
            }
        });
        self.waiting = waiting.collect();
        jobs.len() + self.waiting.len() < before
    }

    /// Waits before the next attempt. Meanwhile it answers only blob requests and close requests.
    fn wait_before_retry(&mut self, pause: Duration, why: &str) -> anyhow::Result<()> {
        match &mut self.close_timeout {
            Some(left) if *left < pause => bail!("{why}"),
            Some(left) => *left -= pause,
            None => {}
        }
        match self.queue.recv_timeout(pause) {
            Ok(WriterTask::Blob { answer, .. }) => {
                let _ = answer.send(Err(anyhow!("{why}")));
            }
            Ok(work) => self.enqueue(work),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.close_timeout.get_or_insert(Duration::ZERO);
            }
        }
        Ok(())
    }

    /// Commits a refused group batch by batch and then row by row, and reports how many rows failed.
    ///
    /// The refusal is an error in the data, which would also fail in every retry.
    fn commit_one_by_one(&mut self, group: &[RowWrite], ends: &[(BatchNumber, usize)], error: &DiskError) {
        let mut start = 0;
        let mut refused = 0;
        for (_, end) in ends {
            let batch = &group[start..*end];
            if self.disk.commit(batch).is_err() {
                refused += batch.iter().filter(|write| self.disk.commit(std::slice::from_ref(write)).is_err()).count();
            }
            start = *end;
        }
        let why = format!("{error}; {refused} rows were not written; run `tracebook fsck`");
        self.inbox.send_event(Event::DiskTrouble { why });
    }
}

/// Returns the document that a write concerns; `None` if it concerns none.
fn written_document(write: &RowWrite) -> Option<DocId> {
    match write {
        RowWrite::Journal { note, .. }
        | RowWrite::JournalDone { note, .. }
        | RowWrite::Block { note, .. }
        | RowWrite::NoteAhead { note, .. }
        | RowWrite::QuarantineJournal { note, .. } => Some(*note),
        RowWrite::Chunk { doc, .. }
        | RowWrite::Snapshot { doc, .. }
        | RowWrite::DropChunks { doc, .. }
        | RowWrite::QuarantineChunk { doc, .. }
        | RowWrite::DeleteDocument { doc } => Some(*doc),
        RowWrite::File(row) => Some(row.id),
        // The key contains the document's id.
        RowWrite::Meta { key, .. } => key.rsplit('/').next().and_then(|name| name.parse().ok()),
        RowWrite::RemoveFile { .. } | RowWrite::Actor { .. } => None,
    }
}

/// Returns the documents that a job reads; `None` if it reads anything else.
fn documents_read_by(job: &DiskJob) -> Option<Vec<DocId>> {
    match job {
        DiskJob::ReadNote { note, .. } => Some(vec![*note]),
        DiskJob::LoadNote { note } => Some(vec![*note, note.outputs_id()]),
        DiskJob::LoadSession { session: doc }
        | DiskJob::LoadRun { run: doc }
        | DiskJob::LoadRegistry { registry: doc } => Some(vec![*doc]),
        DiskJob::Volume { .. }
        | DiskJob::Files { .. }
        | DiskJob::ReadFile { .. }
        | DiskJob::WriteFile { .. }
        | DiskJob::Index { .. }
        | DiskJob::MoveFiles { .. }
        | DiskJob::Discard { .. }
        | DiskJob::Marker { .. }
        | DiskJob::Blob { .. }
        | DiskJob::Actors { .. } => None,
    }
}

fn content_bytes(writes: &[RowWrite]) -> usize {
    let one = |write: &RowWrite| match write {
        RowWrite::Journal { record, .. } => record.len(),
        RowWrite::Chunk { bytes, .. } | RowWrite::Snapshot { bytes, .. } => bytes.len(),
        RowWrite::Block { block, .. } => block.text.len(),
        RowWrite::Meta { value, .. } => value.as_ref().map_or(0, Vec::len),
        RowWrite::File(row) => row.path.len() + 200,
        RowWrite::JournalDone { .. }
        | RowWrite::DropChunks { .. }
        | RowWrite::RemoveFile { .. }
        | RowWrite::NoteAhead { .. }
        | RowWrite::Actor { .. }
        | RowWrite::QuarantineChunk { .. }
        | RowWrite::QuarantineJournal { .. }
        | RowWrite::DeleteDocument { .. } => 100,
    };
    writes.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::MailboxMessage;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;
    use store::BlobHash;
    use store::disk::{CommitFault, DiskReader, MemoryDisk};

    const NOTE: DocId = DocId([1; 16]);

    fn append(batch: BatchNumber) -> WriterTask {
        WriterTask::Append { batch, writes: vec![RowWrite::Journal { seq: batch, note: NOTE, record: vec![0; 100] }] }
    }

    struct Scene {
        disk: MemoryDisk,
        messages: Receiver<MailboxMessage>,
        writer: StoreWriter,
        thread: JoinHandle<anyhow::Result<()>>,
    }

    fn scene() -> Scene {
        let disk = MemoryDisk::new();
        let (inbox, messages) = Mailbox::channel();
        let readers = vec![disk.open_reader().expect("a reader")];
        let workers = DiskWorkers::start(readers, inbox.clone(), [0; 16]);
        let (writer, thread) = StoreWriter::start(Box::new(disk.clone()), inbox, workers, None, None);
        Scene { disk, messages, writer, thread }
    }

    impl Scene {
        /// Returns the reports until the writer ended: durable batches, number of disk errors, and the writer's result.
        fn told(self) -> (Vec<BatchNumber>, usize, anyhow::Result<()>) {
            let ended = self.thread.join().expect("no panic");
            drop(self.writer);
            let (mut durable, mut troubles) = (Vec::new(), 0);
            for post in self.messages.try_iter() {
                match post {
                    MailboxMessage::Event(Event::Durable { batch }) => durable.push(batch),
                    MailboxMessage::Event(Event::DiskTrouble { .. }) => troubles += 1,
                    _ => panic!("something else was told"),
                }
            }
            (durable, troubles, ended)
        }
    }

    #[test]
    fn what_waits_is_committed_before_the_end() {
        let scene = scene();
        scene.disk.fail_next_commits(1, CommitFault::Io);
        (1..=5).for_each(|batch| scene.writer.send(append(batch)));
        scene.writer.send(WriterTask::Close { patience: Duration::from_secs(60) });
        let disk = scene.disk.clone();
        let (durable, troubles, ended) = scene.told();
        ended.expect("saved");
        assert_eq!((durable.last(), troubles), (Some(&5), 1));
        assert_eq!(disk.journal_records(NOTE).expect("read").len(), 5);
    }

    /// A disk whose first commit blocks, and which counts commits.
    struct Slow {
        disk: MemoryDisk,
        gate: Option<Receiver<()>>,
        commits: Arc<AtomicUsize>,
    }

    impl Disk for Slow {
        fn commit(&mut self, writes: &[RowWrite]) -> Result<Vec<i64>, DiskError> {
            if let Some(gate) = self.gate.take() {
                let _ = gate.recv_timeout(Duration::from_secs(60));
            }
            self.commits.fetch_add(1, Ordering::SeqCst);
            self.disk.commit(writes)
        }

        fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash, DiskError> {
            self.disk.put_blob(bytes)
        }

        fn open_reader(&self) -> Result<Box<dyn DiskReader>, DiskError> {
            self.disk.open_reader()
        }

        fn run_idle_tasks(&mut self) {
            self.disk.run_idle_tasks();
        }
    }

    #[test]
    fn jobs_between_batches_cut_no_group_and_find_what_was_before_them() {
        let (disk, commits) = (MemoryDisk::new(), Arc::new(AtomicUsize::new(0)));
        let (open, gate) = channel();
        let slow = Slow { disk: disk.clone(), gate: Some(gate), commits: commits.clone() };
        let (inbox, _messages) = Mailbox::channel();
        let readers = (0..2).map(|_| disk.open_reader().expect("a reader")).collect();
        let workers = DiskWorkers::start(readers, inbox.clone(), [0; 16]);
        let (writer, thread) = StoreWriter::start(Box::new(slow), inbox, workers, None, None);
        let answers: Vec<Receiver<_>> = (1..=50_u8)
            .map(|number| {
                let actor = RowWrite::Actor { actor: vec![number; 16], at: 1 };
                writer.send(WriterTask::Append { batch: u64::from(number), writes: vec![actor] });
                let (answer, wait) = channel();
                writer.send(WriterTask::RunAfter(Box::new(DiskJob::Actors { answer })));
                wait
            })
            .collect();
        open.send(()).expect("it waits");
        for (number, wait) in (1..=50_u8).zip(answers) {
            let known = wait.recv_timeout(Duration::from_secs(60)).expect("an answer").expect("read");
            assert!(known.contains(&store::ActorId::from([number; 16])), "batch {number} was before its job");
        }
        writer.send(WriterTask::Close { patience: Duration::ZERO });
        thread.join().expect("no panic").expect("saved");
        // The first commit may have started before the other batches arrived.
        assert!(commits.load(Ordering::SeqCst) <= 2, "{} commits", commits.load(Ordering::SeqCst));
    }

    #[test]
    fn while_the_disk_refuses_what_it_has_is_read() {
        let scene = scene();
        scene.disk.fail_next_commits(1, CommitFault::Full);
        scene.disk.set_size_limit(Some(10));
        let other = DocId([2; 16]);
        let note = |note| WriterTask::RunAfter(Box::new(DiskJob::LoadSession { session: note }));
        scene.writer.send(append(1));
        scene.writer.send(note(NOTE));
        std::thread::park_timeout(Duration::from_millis(100));
        scene.writer.send(note(other));
        let mut read = None;
        let until = Instant::now() + Duration::from_secs(60);
        while read.is_none() && Instant::now() < until {
            let post = scene.messages.recv_timeout(Duration::from_secs(60));
            if let Ok(MailboxMessage::Event(Event::SessionLoaded { session, .. })) = post {
                read = Some(session);
            }
        }
        assert_eq!(read, Some(other), "what waits for the disk is not read before it is there");
        scene.writer.send(WriterTask::Close { patience: Duration::ZERO });
        assert!(scene.thread.join().expect("no panic").is_err());
    }

    #[test]
    fn patience_ends_also_for_what_came_while_the_disk_refused() {
        let scene = scene();
        // There's space for one record only. The first commit fails, and then records are committed one at a time.
        scene.disk.fail_next_commits(1, CommitFault::Full);
        scene.disk.set_size_limit(Some(150));
        scene.writer.send(append(1));
        std::thread::park_timeout(Duration::from_millis(200));
        (2..=3).for_each(|batch| scene.writer.send(append(batch)));
        let begun = Instant::now();
        scene.writer.send(WriterTask::Close { patience: Duration::from_millis(1_200) });
        let (durable, _, ended) = scene.told();
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(durable, [1]);
        assert!(ended.expect_err("told").to_string().contains("full"));
    }

    #[test]
    fn a_broken_rule_holds_nothing_else_up() {
        let scene = scene();
        let drop = RowWrite::DropChunks { doc: NOTE, upto: 7 };
        scene.writer.send(WriterTask::Append { batch: 1, writes: vec![drop] });
        scene.writer.send(append(2));
        scene.writer.send(WriterTask::Close { patience: Duration::ZERO });
        let disk = scene.disk.clone();
        let (durable, troubles, ended) = scene.told();
        ended.expect("saved");
        assert_eq!((durable.last(), troubles), (Some(&2), 1));
        assert_eq!(disk.journal_records(NOTE).expect("read").len(), 1);
    }
}
