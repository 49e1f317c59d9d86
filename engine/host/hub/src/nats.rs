//! Replicas of one hub over NATS JetStream. Every chunk is a message under its document's subject, and three servers
//! hold it before it's acknowledged. All replicas receive all chunks by sequence. A replica that starts while others
//! write, or that was disconnected for a while, therefore misses nothing.
//!
//! A replica stores nothing of its own but the certificate and a copy of the list of devices.

mod files;
#[cfg(test)]
mod tests;
mod work;

use self::files::NatsFiles;
use self::work::NatsWork;
use crate::HubLog;
use crate::error::HubStartError;
use crate::storage::{HubBus, HubFiles, HubStore, LoadedChunks, ReplicaNews, SharedBytes, StoreCallback, StoreFailure};
use crate::work::WorkStore;
use async_nats::connection::State;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectOptions, HeaderMap, Message, ServerAddr};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::DocId;
use store::sync::ChunksReadError;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Name of the stream of documents.
const DOCUMENTS_STREAM: &str = "TRACEBOOK";
/// Prefix of documents' subjects, followed by the document's id.
const DOCUMENT_SUBJECT_PREFIX: &str = "tracebook.doc.";
/// Subject for the list of devices.
const DEVICES_SUBJECT: &str = "tracebook.devices";
/// Subject for ephemeral messages; not part of the stream.
const EPHEMERAL_SUBJECT: &str = "tracebook-said";
/// Header that names the replica that wrote a message.
const FROM_HEADER: &str = "Tracebook-From";
/// Header for parts of a chunk: part number, number of parts, chunk name.
const PART_HEADER: &str = "Tracebook-Part";
/// Maximum size of one message: larger chunks are split, because a server accepts 1 MB by default.
const MAX_PART_BYTES: usize = 512 << 10;
/// Time limit for storing a chunk; after it, the chunk is refused.
const APPEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of one attempt.
const NATS_TRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait between two attempts.
const NATS_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// A document with more messages than this is folded into one.
const MAX_MESSAGES_UNFOLDED: usize = 512;

/// Callback for news from other replicas.
pub(crate) type ReplicaListener = Arc<dyn Fn(ReplicaNews) + Send + Sync>;

/// Store and message bus over NATS, which are one object here.
pub(crate) struct NatsReplicas {
    inside: Arc<NatsState>,
    runtime: Handle,
    files: Arc<NatsFiles>,
    /// The sequence up to which all changes were received.
    heard_sequence: watch::Receiver<u64>,
}

struct NatsState {
    client: Client,
    stream: jetstream::Context,
    me: String,
    log: HubLog,
    /// The last published list of devices.
    last_devices: Mutex<Vec<u8>>,
    /// Whether the last attempt to store something failed.
    refused: AtomicBool,
}

/// Joins the parts of chunks.
#[derive(Default)]
struct ChunkAssembler {
    waiting: HashMap<String, Vec<u8>>,
}

impl ChunkAssembler {
    /// Adds a message; returns its content, or the whole chunk if this part completes it.
    fn add_part(&mut self, message: &Message) -> Option<Vec<u8>> {
        let header = message.headers.as_ref().and_then(|headers| headers.get(PART_HEADER)).map(|part| part.as_str());
        let Some(header) = header else { return Some(message.payload.to_vec()) };
        let mut words = header.split(' ');
        let at: usize = words.next()?.parse().ok()?;
        let of: usize = words.next()?.parse().ok()?;
        let name = words.next()?;
        if at == 0 {
            // Interrupted writers start again under another name; unfinished parts are dropped eventually.
            if self.waiting.len() > 1_000 {
                self.waiting.clear();
            }
            self.waiting.insert(name.to_owned(), Vec::new());
        }
        let whole = self.waiting.get_mut(name)?;
        // A part that was sent twice arrives once: the servers know its message id.
        if whole.len() != at * MAX_PART_BYTES {
            return None;
        }
        whole.extend_from_slice(&message.payload);
        if at + 1 == of { self.waiting.remove(name) } else { None }
    }
}

fn from(message: &Message) -> Option<&str> {
    message.headers.as_ref()?.get(FROM_HEADER).map(|name| name.as_str())
}

impl NatsReplicas {
    /// Connects to NATS, creates the stream if it's missing, and starts to follow what others write.
    pub(crate) async fn open(
        servers: &str,
        heard: ReplicaListener,
        log: HubLog,
    ) -> Result<NatsReplicas, HubStartError> {
        let fail =
            |error: &dyn std::fmt::Display| HubStartError::Nats { why: error.to_string(), servers: servers.to_owned() };
        let addresses: Result<Vec<ServerAddr>, _> = servers.split(',').map(|one| one.trim().parse()).collect();
        let addresses = addresses.map_err(|error| fail(&error))?;
        let connecting =
            ConnectOptions::new().name("tracebook hub").request_timeout(Some(NATS_TRY_TIMEOUT)).connect(addresses);
        let client =
            tokio::time::timeout(NATS_TRY_TIMEOUT * 3, connecting).await.map_err(|_| fail(&"no server answers"))?;
        let client = client.map_err(|error| fail(&error))?;
        let context = jetstream::new(client.clone());
        let subjects = vec![format!("{DOCUMENT_SUBJECT_PREFIX}*"), DEVICES_SUBJECT.to_owned()];
        let made = make_stream(&context, DOCUMENTS_STREAM, subjects, &log).await?;
        let chance: [u8; 8] = peers::key::random_bytes()?;
        let me: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        let inside = NatsState {
            client,
            stream: context,
            me,
            log,
            last_devices: Mutex::default(),
            refused: AtomicBool::new(false),
        };
        let inside = Arc::new(inside);
        if let Ok(last) = made.get_last_raw_message_by_subject(DEVICES_SUBJECT).await {
            heard(ReplicaNews::Devices(Arc::new(last.payload.to_vec())));
        }
        let since = made.get_info().await.map_err(|error| fail(&error))?.state.last_sequence;
        let said = inside.client.subscribe(EPHEMERAL_SUBJECT).await.map_err(|error| fail(&error))?;
        tokio::spawn(forward_ephemeral(Arc::clone(&inside), said, Arc::clone(&heard)));
        let files = NatsFiles::open(Arc::clone(&inside), Arc::clone(&heard)).await?;
        let changes = StreamEvent { stream: DOCUMENTS_STREAM, filter: String::new(), headers_only: false };
        let (reach, reached) = watch::channel(since);
        let mut changed = change_handler(heard);
        let take = move |inside: &NatsState, message: &Message, sequence| {
            changed(inside, message);
            reach.send_replace(sequence);
        };
        tokio::spawn(follow_stream(Arc::clone(&inside), changes, since, take));
        Ok(NatsReplicas { inside, runtime: Handle::current(), files: Arc::new(files), heard_sequence: reached })
    }

    /// Opens the store of the runs that devices send to each other.
    pub(crate) async fn open_work(&self) -> Result<Arc<dyn WorkStore>, HubStartError> {
        Ok(Arc::new(NatsWork::open(Arc::clone(&self.inside)).await?))
    }

    /// Returns the store of blobs.
    pub(crate) fn hub_files(&self) -> Arc<dyn HubFiles> {
        Arc::clone(&self.files) as Arc<dyn HubFiles>
    }
}

/// Creates a stream, on three servers if there are three. `async-nats` can't create a bucket with the servers of Debian
/// (2.9), but it can create a stream.
async fn make_stream(
    context: &jetstream::Context,
    name: &str,
    subjects: Vec<String>,
    log: &HubLog,
) -> Result<stream::Stream, HubStartError> {
    let mut why = String::new();
    // A cluster that has just started has no leader yet.
    for _ in 0..30 {
        match context.get_stream(name).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.to_string(),
        }
        for replicas in [3, 1] {
            let config = stream::Config {
                name: name.to_owned(),
                subjects: subjects.clone(),
                num_replicas: replicas,
                discard: stream::DiscardPolicy::New,
                allow_direct: true,
                duplicate_window: APPEND_TIMEOUT * 2,
                ..stream::Config::default()
            };
            match context.create_stream(config).await {
                Ok(stream) => {
                    if replicas == 1 {
                        log("NATS is one server: what it loses is lost. Three keep what one loses");
                    }
                    return Ok(stream);
                }
                // A cluster with missing servers mustn't create the stream on a single one.
                Err(error) if replicas == 3 => {
                    why = error.to_string();
                    if !why.contains("replicas > 1 not supported") {
                        break;
                    }
                }
                Err(error) => why = error.to_string(),
            }
        }
        tokio::time::sleep(NATS_RETRY_INTERVAL * 2).await;
    }
    Err(HubStartError::NatsStream(why))
}

async fn forward_ephemeral(inside: Arc<NatsState>, mut said: async_nats::Subscriber, heard: ReplicaListener) {
    while let Some(message) = said.next().await {
        if from(&message) != Some(&inside.me) {
            heard(ReplicaNews::Ephemeral(Arc::new(message.payload.to_vec())));
        }
    }
}

/// Options for following a stream.
struct StreamEvent {
    stream: &'static str,
    /// Subject filter; empty for all.
    filter: String,
    headers_only: bool,
}

/// Follows all messages after `since`, each once and in order, however often the connection breaks.
async fn follow_stream(
    inside: Arc<NatsState>,
    line: StreamEvent,
    mut since: u64,
    mut take: impl FnMut(&NatsState, &Message, u64),
) {
    loop {
        if let Err(why) = follow_stream_until_broken(&inside, &line, &mut since, &mut take).await {
            (inside.log)(&format!("lost the connection to the other replicas; reconnecting: {why}"));
        }
        tokio::time::sleep(NATS_RETRY_INTERVAL).await;
    }
}

async fn follow_stream_until_broken(
    inside: &NatsState,
    line: &StreamEvent,
    since: &mut u64,
    take: &mut impl FnMut(&NatsState, &Message, u64),
) -> Result<(), async_nats::Error> {
    let stream = inside.stream.get_stream(line.stream).await?;
    let config = pull::Config {
        filter_subject: line.filter.clone(),
        headers_only: line.headers_only,
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *since + 1 },
        ack_policy: AckPolicy::None,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: Duration::from_secs(30),
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let mut messages =
        consumer.stream().heartbeat(Duration::from_secs(2)).expires(Duration::from_secs(10)).messages().await?;
    let mut number = 0;
    while let Some(message) = messages.next().await {
        let message = message?;
        let info = message.info()?;
        let (sequence, count) = (info.stream_sequence, info.consumer_sequence);
        number += 1;
        if count != number {
            // Something was lost on the way: start again after the last message.
            return Err("a message is missing".into());
        }
        *since = sequence;
        take(inside, &message, sequence);
    }
    Ok(())
}

/// Returns the handler for received changes.
fn change_handler(heard: ReplicaListener) -> impl FnMut(&NatsState, &Message) {
    let mut parts = ChunkAssembler::default();
    move |inside, message| {
        let own = from(message) == Some(&inside.me);
        let Some(bytes) = parts.add_part(message).filter(|_| !own) else { return };
        if message.subject.as_str() == DEVICES_SUBJECT {
            heard(ReplicaNews::Devices(Arc::new(bytes)));
        } else if let Some(doc) = message.subject.strip_prefix(DOCUMENT_SUBJECT_PREFIX).and_then(|doc| doc.parse().ok())
        {
            heard(ReplicaNews::Changed { doc, bytes: Arc::new(bytes) });
        }
    }
}

impl NatsState {
    /// Publishes a durable message; returns once the servers have stored it.
    async fn publish(&self, subject: String, bytes: &[u8]) -> Result<(), StoreFailure> {
        let chance: [u8; 12] = peers::key::random_bytes().map_err(|why| StoreFailure(why.to_string()))?;
        let name: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        let count = bytes.len().div_ceil(MAX_PART_BYTES).max(1);
        for at in 0..count {
            let part = bytes.get(at * MAX_PART_BYTES..((at + 1) * MAX_PART_BYTES).min(bytes.len())).unwrap_or_default();
            let mut headers = HeaderMap::new();
            headers.insert(FROM_HEADER, self.me.as_str());
            if count > 1 {
                headers.insert(PART_HEADER, format!("{at} {count} {name}").as_str());
            }
            let until = Instant::now() + APPEND_TIMEOUT;
            loop {
                // The message id stays the same: servers that already have the message don't store it twice.
                let message = PublishMessage::build()
                    .payload(part.to_vec().into())
                    .headers(headers.clone())
                    .message_id(format!("{name}-{at}"));
                let sent = async { self.stream.send_publish(subject.clone(), message).await?.await };
                let why = match tokio::time::timeout(NATS_TRY_TIMEOUT, sent).await {
                    Ok(Ok(_)) => {
                        self.refused.store(false, Ordering::Relaxed);
                        break;
                    }
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "no answer".to_owned(),
                };
                self.refused.store(true, Ordering::Relaxed);
                if Instant::now() > until {
                    return Err(StoreFailure(format!("NATS does not take it: {why}")));
                }
                tokio::time::sleep(NATS_RETRY_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Iterates over all messages of a subject in order, in batches. Fails if some are missing: a server that was away
    /// returns what it has, and claims that this is everything.
    async fn for_each_message(
        &self,
        stream: &stream::Stream<()>,
        subject: String,
        most: usize,
        mut take: impl FnMut(&Message, u64),
    ) -> Result<usize, async_nats::Error> {
        // The leader has all messages.
        let newest = match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => message.sequence,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => 0,
            Err(error) => return Err(error.into()),
        };
        let config = pull::Config {
            filter_subject: subject,
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::None,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: Duration::from_secs(10),
            ..pull::Config::default()
        };
        let mut consumer = stream.create_consumer(config).await?;
        let info = consumer.info().await?;
        let (name, pending) = (info.name.clone(), usize::try_from(info.num_pending)?);
        let (mut seen, mut last) = (0, 0);
        while seen < pending {
            let mut batch =
                consumer.fetch().max_messages((pending - seen).min(most)).expires(NATS_TRY_TIMEOUT).messages().await?;
            let before = seen;
            while let Some(message) = batch.next().await {
                let message = message?;
                let info = message.info()?;
                seen += 1;
                if info.consumer_sequence != seen as u64 {
                    return Err("a message is missing".into());
                }
                last = info.stream_sequence;
                take(&message, last);
            }
            if seen == before {
                return Err("the servers do not give all of it".into());
            }
        }
        if let Err(error) = stream.delete_consumer(&name).await {
            tracing::debug!(%error, "a NATS consumer was not deleted; the server forgets it by itself");
        }
        if last < newest {
            return Err("a server is still behind the others".into());
        }
        Ok(seen)
    }

    /// Returns the sequence of the last change that the servers have, as the leader reports it.
    async fn last_sequence(&self) -> Result<u64, async_nats::Error> {
        let stream = self.stream.get_stream_no_info(DOCUMENTS_STREAM).await?;
        Ok(stream.get_info().await?.state.last_sequence)
    }

    async fn load(&self, doc: DocId) -> Result<Vec<Vec<u8>>, async_nats::Error> {
        let stream = self.stream.get_stream_no_info(DOCUMENTS_STREAM).await?;
        let (mut chunks, mut last, mut parts) = (Vec::new(), 0, ChunkAssembler::default());
        let take = |message: &Message, sequence| {
            last = sequence;
            chunks.extend(parts.add_part(message));
        };
        if self.for_each_message(&stream, format!("{DOCUMENT_SUBJECT_PREFIX}{doc}"), 256, take).await?
            > MAX_MESSAGES_UNFOLDED
        {
            self.fold_document(&stream, doc, &chunks, last).await;
        }
        Ok(chunks)
    }

    /// Merges a document's messages into one, which is stored before the old ones are deleted.
    async fn fold_document(&self, stream: &stream::Stream<()>, doc: DocId, chunks: &[Vec<u8>], last: u64) {
        let subject = format!("{DOCUMENT_SUBJECT_PREFIX}{doc}");
        let Ok(whole) = store::compact_chunks(chunks) else { return };
        if self.publish(subject.clone(), &whole).await.is_ok()
            && let Err(error) = stream.purge().filter(subject).sequence(last + 1).await
        {
            tracing::warn!(%error, "folded messages are still in the NATS stream");
        }
    }
}

impl HubStore for NatsReplicas {
    fn load(&self, doc: DocId, loaded: LoadedChunks) {
        let inside = Arc::clone(&self.inside);
        self.runtime.spawn(async move {
            let until = Instant::now() + APPEND_TIMEOUT;
            loop {
                let why = match tokio::time::timeout(NATS_TRY_TIMEOUT * 2, inside.load(doc)).await {
                    Ok(Ok(chunks)) => return loaded(Ok(chunks)),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "no answer".to_owned(),
                };
                if Instant::now() > until {
                    return loaded(Err(ChunksReadError(format!("NATS does not give it: {why}"))));
                }
                tokio::time::sleep(NATS_RETRY_INTERVAL).await;
            }
        });
    }

    fn append(&self, doc: DocId, bytes: SharedBytes, done: StoreCallback) {
        let inside = Arc::clone(&self.inside);
        self.runtime
            .spawn(async move { done(inside.publish(format!("{DOCUMENT_SUBJECT_PREFIX}{doc}"), &bytes).await) });
    }

    fn document_count(&self) -> Option<u64> {
        None
    }

    fn check_health(&self) -> Result<(), &'static str> {
        match self.inside.client.connection_state() {
            State::Connected if self.inside.refused.load(Ordering::Relaxed) => Err("NATS does not store what comes"),
            State::Connected => Ok(()),
            State::Pending | State::Disconnected => Err("no NATS server answers"),
        }
    }

    fn close(&self) {
        // Published messages are on their way; unacknowledged ones were reported to no client.
        let flushed = async { tokio::time::timeout(NATS_TRY_TIMEOUT, self.inside.client.flush()).await };
        if !matches!(self.runtime.block_on(flushed), Ok(Ok(()))) {
            tracing::warn!("NATS did not take the last messages in time");
        }
    }
}

impl HubBus for NatsReplicas {
    fn announce(&self, news: ReplicaNews) {
        let inside = Arc::clone(&self.inside);
        match news {
            ReplicaNews::Ephemeral(bytes) => {
                let mut headers = HeaderMap::new();
                headers.insert(FROM_HEADER, inside.me.as_str());
                self.runtime.spawn(async move {
                    let bytes = SharedBytes::unwrap_or_clone(bytes);
                    if let Err(error) =
                        inside.client.publish_with_headers(EPHEMERAL_SUBJECT, headers, bytes.into()).await
                    {
                        tracing::debug!(%error, "presence was not passed on to NATS");
                    }
                });
            }
            ReplicaNews::Devices(bytes) => {
                {
                    let mut told = inside.last_devices.lock().unwrap_or_else(PoisonError::into_inner);
                    if *told == *bytes {
                        return;
                    }
                    told.clone_from(&bytes);
                }
                self.runtime.spawn(async move {
                    if let Err(why) = inside.publish(DEVICES_SUBJECT.to_owned(), &bytes).await {
                        (inside.log)(&format!("other replicas do not know the list of devices yet: {why}"));
                    }
                });
            }
            // The streams themselves report these.
            ReplicaNews::Changed { .. } | ReplicaNews::BlobAdded { .. } | ReplicaNews::BlobLost { .. } => {}
        }
    }

    fn notify_when_caught_up(&self, done: Box<dyn FnOnce() + Send>) {
        let (inside, mut reached) = (Arc::clone(&self.inside), self.heard_sequence.clone());
        self.runtime.spawn(async move {
            let until = Instant::now() + APPEND_TIMEOUT;
            while Instant::now() < until {
                let Ok(Ok(newest)) = tokio::time::timeout(NATS_TRY_TIMEOUT, inside.last_sequence()).await else {
                    tokio::time::sleep(NATS_RETRY_INTERVAL).await;
                    continue;
                };
                // Received changes were delivered before, so `done` runs after them.
                if let Ok(Ok(_)) = tokio::time::timeout(APPEND_TIMEOUT, reached.wait_for(|at| *at >= newest)).await {
                    done();
                }
                return;
            }
        });
    }
}
