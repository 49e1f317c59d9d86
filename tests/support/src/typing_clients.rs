//! Test clients that type while hubs come and go: each counts a key as acknowledged once the hub has confirmed it.
//! Whatever fails, acknowledged keys must exist afterwards.

use crate::PlainText;
use crate::hub_probe::HubProbe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{ActorId, DocId};

/// How long a client waits for a document at the end.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// A client with this many unacknowledged keys waits: keys are acknowledged when both sides have the same changes,
/// which may never happen on a busy machine while typing continues.
const MAX_UNACKNOWLEDGED_KEYS: usize = 200;
/// Delay before reconnecting.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);

/// Running clients, until [`TypingClients::stop`].
#[derive(Debug)]
pub struct TypingClients {
    threads: Vec<std::thread::JoinHandle<(DocId, TypedText)>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
}

/// What a client has typed.
#[derive(Clone, Copy, Debug, Default)]
struct TypedText {
    /// Keys that the hub has said it has.
    acknowledged: usize,
    /// The longest time without any being acknowledged.
    longest: Duration,
}

/// Result of the test.
#[derive(Clone, Debug)]
pub struct EnduranceReport {
    /// Keys that were acknowledged, of each document.
    pub acknowledged: BTreeMap<DocId, usize>,
    /// The longest time in which a client got no acknowledgement.
    pub longest: Duration,
}

fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

impl TypingClients {
    /// Starts this many clients, each with its own document. Each connects to one of the hubs at these addresses, and
    /// to the next one when that fails.
    pub fn start(at: &[String], count: u8) -> TypingClients {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (0..count).map(|number| {
            let (at, stop, all) = (at.to_vec(), Arc::clone(&stop), Arc::clone(&acknowledged));
            std::thread::spawn(move || {
                let doc = DocId([number.wrapping_add(100); 16]);
                let typed =
                    runtime().map(|runtime| runtime.block_on(type_until_stopped(&at, number, doc, &stop, &all)));
                (doc, typed.unwrap_or_default())
            })
        });
        TypingClients { threads: threads.collect(), stop, acknowledged }
    }

    /// Keys that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Stops the clients, even with unacknowledged keys.
    pub fn stop(self) -> EnduranceReport {
        self.stop.store(true, Ordering::Relaxed);
        let ended: Vec<_> = self.threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        let longest = ended.iter().map(|(_, typed)| typed.longest).max().unwrap_or_default();
        EnduranceReport { acknowledged: ended.iter().map(|(doc, typed)| (*doc, typed.acknowledged)).collect(), longest }
    }
}

async fn type_until_stopped(at: &[String], number: u8, doc: DocId, stop: &AtomicBool, all: &AtomicU64) -> TypedText {
    let mut typed = TypedText::default();
    let Ok(mut text) = PlainText::new("", ActorId::from([number.wrapping_add(1); 16])) else { return typed };
    let (mut keys, mut calls, mut last) = (0, usize::from(number), Instant::now());
    let mut chunks = vec![text.save()];
    while !stop.load(Ordering::Relaxed) {
        calls += 1;
        let Some(address) = at.get(calls % at.len().max(1)) else { return typed };
        let Ok(mut probe) = HubProbe::open(address, "/", &format!("typist {number}")).await else {
            tokio::time::sleep(RECONNECT_INTERVAL).await;
            continue;
        };
        probe.chunks.insert(doc, std::mem::take(&mut chunks));
        probe.follow(doc).await;
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) && probe.ended.is_none() {
            if probe.peers.is_in_sync(1, doc) == Some(true) && keys > typed.acknowledged {
                all.fetch_add((keys - typed.acknowledged) as u64, Ordering::Relaxed);
                typed.acknowledged = keys;
                typed.longest = typed.longest.max(last.elapsed());
                last = Instant::now();
            }
            let waits = keys - typed.acknowledged >= MAX_UNACKNOWLEDGED_KEYS;
            if Instant::now() >= next && !waits && !probe.is_document_empty(doc) {
                if let Ok(change) = text.insert(keys, "k") {
                    keys += 1;
                    probe.send_change(doc, change).await;
                }
                next = Instant::now() + Duration::from_millis(20);
            }
            probe.receive_frame(Duration::from_millis(10)).await;
        }
        chunks = probe.chunks.remove(&doc).unwrap_or_default();
    }
    typed
}

/// Whether a hub has everything that was acknowledged; if not, what is missing.
///
/// # Errors
/// What is missing, or that the hub does not give it.
pub fn check_acknowledged(at: &str, endured: &EnduranceReport) -> Result<(), String> {
    let runtime = runtime().ok_or("nothing can be waited for here")?;
    runtime.block_on(async {
        let mut probe = HubProbe::open(at, "/", "who checks").await?;
        for (doc, acknowledged) in &endured.acknowledged {
            probe.follow(*doc).await;
            let there = |probe: &HubProbe| {
                let chunks = probe.chunks.get(doc).cloned().unwrap_or_default();
                let text = PlainText::load(&chunks, ActorId::from([255; 16])).and_then(|text| text.text());
                text.map_or(0, |text| text.len())
            };
            if !probe.receive_until(DOCUMENT_TIMEOUT, |probe| there(probe) >= *acknowledged).await {
                let there = there(&probe);
                return Err(format!("of {acknowledged} acknowledged keys {there} are there: {doc} at {at}"));
            }
        }
        Ok(())
    })
}

/// Checks that an ephemeral message about one of these documents from a client of one hub reaches a client of another.
///
/// # Errors
/// Nothing is heard.
pub fn check_ephemeral_delivery(from: &str, to: &str, endured: &EnduranceReport) -> Result<(), String> {
    let runtime = runtime().ok_or("nothing can be waited for here")?;
    let doc = *endured.acknowledged.keys().next().ok_or("there is no document")?;
    runtime.block_on(async {
        let mut speaker = HubProbe::open(from, "/", "who speaks").await?;
        let mut listener = HubProbe::open(to, "/", "who listens").await?;
        for probe in [&mut speaker, &mut listener] {
            probe.follow(doc).await;
            if !probe.receive_until(DOCUMENT_TIMEOUT, |probe| !probe.is_document_empty(doc)).await {
                return Err(format!("the document does not come: {doc}"));
            }
        }
        let word = [0x61, b'x'];
        let end = Instant::now() + DOCUMENT_TIMEOUT;
        while Instant::now() < end {
            speaker.send_ephemeral(doc, &word).await;
            if listener
                .receive_until(Duration::from_millis(500), |listener| listener.ephemeral.contains(&word.to_vec()))
                .await
            {
                return Ok(());
            }
            speaker.receive_frame(Duration::from_millis(1)).await;
        }
        Err(format!("said at {from}, not heard at {to}"))
    })
}
