//! Clients that type, for `tracebook bench hub`: against our hub or any other that speaks automerge-repo's protocol.
//! Two clients look at each document; one types, and it is measured when the other has what was typed.

use crate::PlainText;
use crate::hub_probe::HubProbe;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{ActorId, DocId};

/// What simulated clients do to load the hub.
#[derive(Clone, Copy, Debug)]
pub struct ClientLoad {
    /// Number of pairs of clients.
    pub pairs: usize,
    /// Number of keys that each client types.
    pub keys: usize,
    /// One key in this time.
    pub every: Duration,
}

/// Result of the measurement.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// For each key, milliseconds until the other client had it.
    pub milliseconds: Vec<f64>,
    /// Keys that the other client never got.
    pub lost: usize,
    /// From the first key to the last.
    pub took: Duration,
}

/// All clients have connected and know their documents; `begin` is called then, and the first key is typed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// A key that takes longer is lost.
const LOST_KEY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Default)]
struct SharedLoad {
    /// What was typed and not seen yet.
    typed: Mutex<HashMap<DocId, Instant>>,
    seen: Mutex<Vec<f64>>,
    /// Keys that were typed at all: a client whose key has not arrived types none behind it.
    keys: AtomicUsize,
    ready: AtomicUsize,
    begun: AtomicBool,
    done: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a free port of this machine, below those that Linux assigns to outgoing connections (from 32768 on,
/// `ip_local_port_range`): it stays free while what listens on it is started again. Each is returned once, since
/// another caller may not listen on its own yet.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, String> {
    const MAX_MEASURE_TRIES: usize = 200;
    static RETURNED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok() && lock(&RETURNED).insert(*port);
    let chance = || peers::key::random_bytes().map(u16::from_le_bytes).map(|number| 20_000 + number % 12_000);
    let tried: Result<Vec<u16>, _> = (0..MAX_MEASURE_TRIES).map(|_| chance()).collect();
    tried.map_err(|why| why.to_string())?.into_iter().find(free).ok_or_else(|| "no port is free".to_owned())
}

/// Whether a port of this machine is listening.
pub fn is_listening(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Lets clients type into documents of a hub at `ws://ADDRESS`, at `path`. `begin` is called when all are connected.
///
/// # Errors
/// The hub is not there, or does not serve them all.
pub fn run_client_load(at: &str, path: &str, load: ClientLoad, begin: impl FnOnce()) -> Result<LoadReport, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let common = Arc::new(SharedLoad::default());
    let (at, path) = (Arc::new(at.to_owned()), Arc::new(path.to_owned()));
    let done = runtime.block_on(async {
        let run: [u8; 8] = peers::key::random_bytes().map_err(|why| why.to_string())?;
        let mut clients = tokio::task::JoinSet::new();
        for pair in 0..load.pairs {
            let mut hash = blake3::Hasher::new();
            hash.update(&run);
            hash.update(&pair.to_le_bytes());
            let mut id = [0; 16];
            hash.finalize_xof().fill(&mut id);
            let doc = DocId::random(id);
            // The writer connects first, so that the reader finds something.
            let (common, at, path) = (Arc::clone(&common), Arc::clone(&at), Arc::clone(&path));
            clients.spawn(async move {
                let name = format!("bench {doc}");
                let writer = LoadWriter::new(&at, &path, &format!("{name} w"), doc).await?;
                let reader = HubProbe::open(&at, &path, &format!("{name} r")).await?;
                let reading = tokio::spawn(read_keys(reader, doc, Arc::clone(&common)));
                let wrote = writer.type_keys(load, &common).await;
                let read = reading.await.map_err(|error| error.to_string())?;
                wrote.and(read)
            });
            if pair % 16 == 15 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let until = Instant::now() + CONNECT_TIMEOUT;
        while common.ready.load(Ordering::Relaxed) < load.pairs * 2 {
            if Instant::now() > until {
                let ready = common.ready.load(Ordering::Relaxed);
                return Err(format!("of {} clients only {ready} got their document", load.pairs * 2));
            }
            if let Some(Ok(Err(why))) = clients.try_join_next() {
                return Err(why);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        begin();
        let since = Instant::now();
        common.begun.store(true, Ordering::Relaxed);
        let typing = load.every * u32::try_from(load.keys).unwrap_or(u32::MAX);
        tokio::time::sleep(typing).await;
        let until = Instant::now() + LOST_KEY_TIMEOUT;
        let wanted = load.pairs * load.keys;
        while lock(&common.seen).len() < wanted && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = since.elapsed();
        common.done.store(true, Ordering::Relaxed);
        while let Some(ended) = clients.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        let milliseconds = std::mem::take(&mut *lock(&common.seen));
        // One that was typed at the very end may still be on its way.
        let pending = lock(&common.typed).values().filter(|typed| typed.elapsed() < LOST_KEY_TIMEOUT).count();
        let typed = common.keys.load(Ordering::Relaxed).saturating_sub(pending);
        Ok(LoadReport { lost: typed.saturating_sub(milliseconds.len()), milliseconds, took })
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

struct LoadWriter {
    probe: HubProbe,
    doc: DocId,
    text: PlainText,
}

impl LoadWriter {
    async fn new(at: &str, path: &str, name: &str, doc: DocId) -> Result<LoadWriter, String> {
        let mut probe = HubProbe::open(at, path, name).await?;
        let text = PlainText::new("A note of some words.", ActorId::from(doc.0)).map_err(|error| error.to_string())?;
        probe.send_change(doc, text.save()).await;
        probe.follow(doc).await;
        match probe.receive_until(CONNECT_TIMEOUT, |probe| probe.peers.is_in_sync(1, doc) == Some(true)).await {
            true => Ok(LoadWriter { probe, doc, text }),
            false => Err(probe.ended.unwrap_or_else(|| "the hub does not take the document".to_owned())),
        }
    }

    async fn type_keys(mut self, load: ClientLoad, common: &SharedLoad) -> Result<(), String> {
        common.ready.fetch_add(1, Ordering::Relaxed);
        while !common.begun.load(Ordering::Relaxed) {
            self.probe.receive_frame(Duration::from_millis(20)).await;
        }
        // Not all at the same moment.
        let share = f64::from(self.doc.0[0]) / 256.0;
        let mut next = tokio::time::Instant::now() + load.every.mul_f64(share);
        let mut typed = 0;
        while !common.done.load(Ordering::Relaxed) {
            if typed < load.keys && tokio::time::Instant::now() >= next {
                // The previous key hasn't arrived: one typed now would arrive with it and measure nothing.
                let waits = lock(&common.typed).contains_key(&self.doc);
                if !waits {
                    let change = self.text.insert(typed % 20, "k").map_err(|error| error.to_string())?;
                    lock(&common.typed).insert(self.doc, Instant::now());
                    self.probe.send_change(self.doc, change).await;
                    typed += 1;
                    common.keys.fetch_add(1, Ordering::Relaxed);
                }
                next += load.every;
            }
            let rest = next.saturating_duration_since(tokio::time::Instant::now()).min(Duration::from_millis(100));
            self.probe.receive_frame(rest).await;
            if let Some(why) = self.probe.ended.take() {
                return Err(why);
            }
        }
        Ok(())
    }
}

async fn read_keys(mut probe: HubProbe, doc: DocId, common: Arc<SharedLoad>) -> Result<(), String> {
    probe.follow(doc).await;
    if !probe.receive_until(CONNECT_TIMEOUT, |probe| probe.chunks.contains_key(&doc)).await {
        return Err(probe.ended.unwrap_or_else(|| "the hub does not give the document".to_owned()));
    }
    common.ready.fetch_add(1, Ordering::Relaxed);
    let mut had = probe.chunks.get(&doc).map_or(0, Vec::len);
    while !common.done.load(Ordering::Relaxed) {
        probe.receive_frame(Duration::from_millis(100)).await;
        let has = probe.chunks.get(&doc).map_or(0, Vec::len);
        if std::mem::replace(&mut had, has) != has
            && let Some(typed) = lock(&common.typed).remove(&doc)
        {
            lock(&common.seen).push(typed.elapsed().as_secs_f64() * 1e3);
        }
        if let Some(why) = probe.ended.take() {
            return Err(why);
        }
    }
    Ok(())
}
