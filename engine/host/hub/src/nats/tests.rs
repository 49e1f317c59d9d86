//! Tests of blob storage with two replicas over one real NATS server, piece by piece and in any order.

use super::files::{NatsFiles, lock};
use super::{NatsReplicas, ReplicaListener};
use crate::HubLog;
use crate::storage::{HubBus, HubFiles, HubStore, ReplicaNews, SharedBytes};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::sync::blobs::{BlobExtent, PIECE_BYTES, VolumeBlob};
use store::{BlobHash, DocId};
use support::hub_load::{free_port, is_listening};
use tokio::runtime::Runtime;

/// NATS server process that is killed on drop.
struct Server {
    process: Child,
    at: String,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server; `None` if this machine has no `nats-server`.
    fn start() -> Option<Server> {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port().expect("a port");
        let mut command = Command::new("nats-server");
        command.args(["--jetstream", "--addr", "127.0.0.1", "--port", &port.to_string(), "--store_dir"]);
        let process = command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(process) = process else {
            assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "TRACEBOOK_CI=1 and there is no nats-server");
            println!("left out: there is no nats-server on this machine");
            return None;
        };
        let server = Server { process, at: format!("nats://127.0.0.1:{port}"), _folder: folder };
        until("it listens", || is_listening(port));
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The part of a replica that stores files.
struct Replica {
    files: Arc<NatsFiles>,
    news: Arc<Mutex<Vec<ReplicaNews>>>,
}

impl Replica {
    fn open(runtime: &Runtime, server: &Server) -> Replica {
        let news: Arc<Mutex<Vec<ReplicaNews>>> = Arc::default();
        let told = Arc::clone(&news);
        let heard: ReplicaListener = Arc::new(move |news| told.lock().expect("lock").push(news));
        let log: HubLog = Arc::new(|line| println!("{line}"));
        let opened = runtime.block_on(NatsReplicas::open(&server.at, heard, log)).expect("opened");
        Replica { files: opened.files, news }
    }

    fn lost(&self) -> usize {
        self.news.lock().expect("lock").iter().filter(|news| matches!(news, ReplicaNews::BlobLost { .. })).count()
    }

    /// Sends a piece if more are expected; returns whether that succeeded.
    fn take(&self, item: VolumeBlob, bytes: &[u8], at: &mut u64) -> bool {
        let piece = &bytes[*at as usize..bytes.len().min((*at + PIECE_BYTES) as usize)];
        let taken = self.files.write_piece(item, *at, piece.to_vec());
        *at += piece.len() as u64;
        taken.is_ok()
    }

    /// Sends a whole file, starting where other replicas stopped.
    fn bring(&self, item: VolumeBlob, bytes: &[u8]) {
        self.bring_as(item, bytes, false);
    }

    fn bring_as(&self, item: VolumeBlob, bytes: &[u8], is_state: bool) {
        let mut at = self.begin(item).expect("it is not here");
        while at < bytes.len() as u64 {
            assert!(self.take(item, bytes, &mut at));
        }
        assert!(self.files.finish_blob(item, is_state).expect("checked"));
    }

    /// Returns the offset to continue at, as the protocol does: the last piece is sent again. `None` if it's complete.
    fn begin(&self, item: VolumeBlob) -> Option<u64> {
        match self.files.blob_extent(item).expect("looked") {
            BlobExtent::Whole(_) => None,
            BlobExtent::Part(bytes) => Some(bytes.saturating_sub(1) / PIECE_BYTES * PIECE_BYTES),
        }
    }

    /// Returns what a client gets that requests the whole file.
    fn read(&self, item: VolumeBlob) -> Result<Option<Vec<u8>>, String> {
        let mut all = Vec::new();
        loop {
            let read = self.files.read_piece(item, all.len() as u64).map_err(|why| why.to_string())?;
            let Some((size, piece)) = read else { return Ok(None) };
            all.extend(&piece);
            if all.len() as u64 >= size || piece.is_empty() {
                return Ok(Some(all));
            }
        }
    }

    /// Returns the sequences of the stream's messages with these words in their subject.
    fn messages(&self, runtime: &Runtime, words: &str) -> Vec<u64> {
        let all = async {
            let stream = self.files.pieces.stream().await.expect("there");
            let last = stream.get_info().await.expect("told").state.last_sequence;
            let mut found = Vec::new();
            for sequence in 1..=last {
                if let Ok(message) = stream.get_raw_message(sequence).await
                    && message.subject.contains(words)
                {
                    found.push(sequence);
                }
            }
            found
        };
        runtime.block_on(all)
    }

    fn lose(&self, runtime: &Runtime, sequence: u64) {
        let lost = async { self.files.pieces.stream().await.expect("there").delete_message(sequence).await };
        assert!(runtime.block_on(lost).expect("deleted"));
    }
}

#[test]
fn of_two_replicas_that_change_a_run_one_is_told_that_it_is_too_late() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let open = || {
        let log: HubLog = Arc::new(|line| println!("{line}"));
        let opened = runtime.block_on(NatsReplicas::open(&server.at, Arc::new(|_| ()), log)).expect("opened");
        runtime.block_on(opened.open_work()).expect("a store of runs")
    };
    let (one, two) = (open(), open());
    let (run, other) = (DocId([1; 16]), DocId([2; 16]));
    assert_eq!(one.read_record(run), Ok(None));
    assert_eq!(one.read_records(), Ok(Vec::new()));
    assert_eq!(one.write_record(run, b"waits".to_vec(), 0), Ok(true));
    assert_eq!(two.write_record(run, b"waits, too".to_vec(), 0), Ok(false));
    assert_eq!(two.write_record(other, b"another".to_vec(), 0), Ok(true));
    let (bytes, version) = two.read_record(run).expect("read").expect("there");
    assert_eq!(bytes, b"waits");
    assert_eq!(two.write_record(run, b"claimed by two".to_vec(), version), Ok(true));
    assert_eq!(one.write_record(run, b"claimed by one".to_vec(), version), Ok(false));
    let texts = |all: Vec<(Vec<u8>, u64)>| all.into_iter().map(|(bytes, _)| bytes).collect::<Vec<_>>();
    assert_eq!(texts(one.read_records().expect("read")), [b"claimed by two".to_vec(), b"another".to_vec()]);
    one.remove_record(run).expect("removed");
    assert_eq!(texts(two.read_records().expect("read")), [b"another".to_vec()]);
    assert_eq!(two.write_record(run, b"again".to_vec(), 0), Ok(true));
}

#[test]
fn a_replica_has_caught_up_once_it_heard_what_others_acknowledged_before() {
    let Some(server) = Server::start() else { return };
    // Each replica has its own threads, as each is a process of its own: the one that waits holds none of the other's.
    let (first, second) = (runtime(), runtime());
    let news: Arc<Mutex<Vec<ReplicaNews>>> = Arc::default();
    let told = Arc::clone(&news);
    let open = |runtime: &Runtime, heard: ReplicaListener| {
        let log: HubLog = Arc::new(|line| println!("{line}"));
        runtime.block_on(NatsReplicas::open(&server.at, heard, log)).expect("opened")
    };
    let one = open(&first, Arc::new(move |news| told.lock().expect("lock").push(news)));
    let two = open(&second, Arc::new(|_| ()));
    let doc = DocId([7; 16]);
    let (done, stored) = channel();
    // The first replica receives slowly.
    let slow = news.lock().expect("lock");
    two.append(doc, SharedBytes::new(b"a change".to_vec()), Box::new(move |result| drop(done.send(result))));
    stored.recv_timeout(Duration::from_secs(60)).expect("answered").expect("acknowledged");
    let (done, caught_up) = channel();
    one.notify_when_caught_up(Box::new(move || _ = done.send(())));
    assert!(caught_up.recv_timeout(Duration::from_millis(500)).is_err(), "it has not heard of it");
    drop(slow);
    caught_up.recv_timeout(Duration::from_secs(60)).expect("it has heard");
    assert!(
        matches!(news.lock().expect("lock").as_slice(), [ReplicaNews::Changed { doc: changed, .. }] if *changed == doc)
    );
    // With no pending changes it calls back at once.
    let (done, caught_up) = channel();
    two.notify_when_caught_up(Box::new(move || _ = done.send(())));
    caught_up.recv_timeout(Duration::from_secs(60)).expect("its own change is known to it");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime")
}

fn file(seed: u64, pieces: usize) -> (VolumeBlob, Vec<u8>) {
    let mut bytes = vec![0; pieces * PIECE_BYTES as usize - 1_000];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    (VolumeBlob { volume: DocId([9; 16]), hash: BlobHash::of(&bytes) }, bytes)
}

#[test]
fn what_nobody_finished_is_served_to_nobody_and_goes_at_some_time() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let (one, two) = (Replica::open(&runtime, &server), Replica::open(&runtime, &server));
    let ((done, whole), (cut, half)) = (file(1, 3), file(2, 4));
    one.bring(done, &whole);
    let mut at = 0;
    assert!(one.take(cut, &half, &mut at) && one.take(cut, &half, &mut at));
    for replica in [&one, &two] {
        assert_eq!(replica.read(cut), Ok(None));
        assert_eq!(replica.files.blob_extent(cut).expect("looked"), BlobExtent::Part(2 * PIECE_BYTES));
    }
    // The file isn't old, so it stays.
    let pieces = |item: VolumeBlob| one.messages(&runtime, &item.hash.to_string()).len();
    two.files.remove_stale_blobs(Duration::from_secs(3_600));
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!((pieces(cut), pieces(done)), (2, 3 + 1));
    two.files.remove_stale_blobs(Duration::from_secs(1));
    until("what is old goes", || pieces(cut) == 0);
    assert_eq!(pieces(done), 3 + 1, "what is whole stays");
    assert_eq!(two.read(done), Ok(Some(whole)));
    // A client that continues after a loss gets an error, and starts again.
    assert!(!one.take(cut, &half, &mut at));
    one.bring(cut, &half);
    assert_eq!(two.read(cut), Ok(Some(half)));
}

#[test]
fn what_is_lost_of_a_file_is_missed_whoever_knew_where_it_lay() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let (one, two) = (Replica::open(&runtime, &server), Replica::open(&runtime, &server));
    let (item, bytes) = file(3, 4);
    one.bring(item, &bytes);
    for (round, gone) in [1, 0, 3].into_iter().enumerate() {
        for replica in [&one, &two] {
            assert_eq!(replica.read(item).expect("read"), Some(bytes.clone()));
        }
        let pieces = one.messages(&runtime, &format!("file.{}.{}", item.volume, item.hash));
        assert_eq!(pieces.len(), 4);
        one.lose(&runtime, pieces[gone]);
        let why = two.read(item).expect_err("there is a hole");
        assert!(why.contains("NATS lost part of a file"), "{why}");
        // Both replicas are notified, even the one that has read the file; it can be sent again.
        until("both heard of it", || one.lost() == round + 1 && two.lost() == round + 1);
        for replica in [&one, &two] {
            assert_eq!(replica.files.blob_extent(item).expect("looked"), BlobExtent::Part(0));
            assert_eq!(replica.read(item).expect("read"), None);
        }
        one.bring(item, &bytes);
    }
    // A replica that starts later isn't notified of earlier losses.
    let late = Replica::open(&runtime, &server);
    let whole = BlobExtent::Whole(bytes.len() as u64);
    until("it knows what is whole", || late.files.blob_extent(item).is_ok_and(|extent| extent == whole));
    assert_eq!((late.read(item), late.lost()), (Ok(Some(bytes)), 0));
}

#[test]
fn who_reads_where_a_file_lay_before_takes_nothing_from_the_one_that_has_come_since() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let (one, two) = (Replica::open(&runtime, &server), Replica::open(&runtime, &server));
    let (item, bytes) = file(4, 3);
    one.bring(item, &bytes);
    assert_eq!(two.read(item).as_ref(), Ok(&Some(bytes.clone())));
    let old = lock(&two.files.known).places[&item].clone();
    one.lose(&runtime, old.sequences[0]);
    assert!(one.read(item).is_err());
    one.bring(item, &bytes);
    until("the other has heard of it", || {
        matches!(two.news.lock().expect("lock").last(), Some(ReplicaNews::BlobAdded { .. }))
    });
    // Simulate that the replica has missed it.
    two.files.cache_places(item, &old);
    assert_eq!(two.read(item).as_ref(), Ok(&Some(bytes.clone())));
    assert_eq!((one.read(item), one.lost(), two.lost()), (Ok(Some(bytes)), 1, 1));
}

#[test]
fn files_of_states_are_removed_through_any_replica_and_others_stay() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let (one, two) = (Replica::open(&runtime, &server), Replica::open(&runtime, &server));
    let ((state, pages), (picture, bytes), (both, shared)) = (file(11, 2), file(12, 2), file(13, 2));
    for (item, bytes, is_state) in [(state, &pages, true), (picture, &bytes, false), (both, &shared, true)] {
        one.bring_as(item, bytes, is_state);
    }
    // An attachment has the same bytes as a state, and another device brings it to the other replica.
    until("the other knows it", || matches!(two.files.blob_extent(both), Ok(BlobExtent::Whole(_))));
    two.files.keep_blob(both).expect("kept");
    let removed = [state, picture, both].map(|item| two.files.remove_state_file(item).expect("asked"));
    assert_eq!(removed, [true, false, false]);
    until("both heard of it", || one.lost() == 1 && two.lost() == 1);
    for replica in [&one, &two] {
        assert_eq!(replica.files.blob_extent(state).expect("looked"), BlobExtent::Part(0));
        assert_eq!(replica.read(state), Ok(None));
        assert_eq!(replica.read(picture), Ok(Some(bytes.clone())));
        assert_eq!(replica.read(both), Ok(Some(shared.clone())));
    }
    let messages = one.messages(&runtime, &state.hash.to_string());
    assert_eq!(messages.len(), 1, "only that it is gone");
    assert_eq!(one.messages(&runtime, &format!("whole.{}.{}", both.volume, both.hash)).len(), 1);
    // It can come again, and is removed again.
    two.bring_as(state, &pages, true);
    until("the first knows it", || one.read(state) == Ok(Some(pages.clone())));
    assert!(one.files.remove_state_file(state).expect("asked"));
    assert!(!two.files.remove_state_file(state).expect("asked"));
}

#[test]
fn two_replicas_take_the_same_file_in_any_order_and_one_whole_file_is_there() {
    let Some(server) = Server::start() else { return };
    let runtime = runtime();
    let both = [Replica::open(&runtime, &server), Replica::open(&runtime, &server)];
    for seed in 0..60 {
        let mut chance = StdRng::seed_from_u64(seed);
        let (item, bytes) = file(1_000 + seed, 1 + chance.random_range(0..6));
        // Offset of each replica: `None` before it has looked, and after the servers have refused something.
        let (mut at, mut done) = ([None, None], [false, false]);
        let mut steps = 0;
        while done != [true, true] {
            steps += 1;
            assert!(steps < 2_000, "seed {seed}: they do not end");
            let who = chance.random_range(0..2);
            match at[who] {
                _ if done[who] => {}
                None => match both[who].begin(item) {
                    Some(offset) => at[who] = Some(offset),
                    None => done[who] = true,
                },
                Some(offset) if offset < bytes.len() as u64 => {
                    let mut next = offset;
                    at[who] = both[who].take(item, &bytes, &mut next).then_some(next);
                }
                Some(_) => {
                    assert!(
                        !matches!(both[who].files.finish_blob(item, false), Ok(false)),
                        "seed {seed}: nobody brought anything else"
                    );
                    at[who] = None;
                }
            }
        }
        for replica in &both {
            assert_eq!(replica.read(item), Ok(Some(bytes.clone())), "seed {seed}");
        }
        let count = |begin: &str| both[0].messages(&runtime, &format!("{begin}.{}.{}", item.volume, item.hash)).len();
        assert_eq!((count("file"), count("whole")), (bytes.len().div_ceil(PIECE_BYTES as usize), 1), "seed {seed}");
    }
}
