//! Blob storage over NATS. The pieces of a file are messages of one subject, and each names its predecessor, so the
//! servers reject pieces out of order. Any replica can therefore continue where another one stopped.
//!
//! Once all pieces are there, their hash is checked over what the servers return. A message of another subject then
//! marks the file as complete, with the sequences of its pieces; it never changes after that. If the servers lose part
//! of it anyway, a reader notices, and a third subject tells all replicas that the file is no longer complete.

use super::{
    FROM_HEADER, NATS_RETRY_INTERVAL, NATS_TRY_TIMEOUT, NatsState, ReplicaListener, StreamEvent, follow_stream, from,
    make_stream,
};
use crate::error::{HubFilesError, HubStartError};
use crate::storage::{HubFiles, ReplicaNews};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{HeaderMap, Message};
use futures_util::StreamExt;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use store::disk::BlobHasher;
use store::sync::blobs::{BlobExtent, PIECE_BYTES, VolumeBlob};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Name of the stream of files.
const FILES_STREAM: &str = "TRACEBOOK-FILES";
/// Prefix of pieces' subjects, followed by the volume and the hash.
const PIECE_SUBJECT_PREFIX: &str = "tracebook.file.";
/// Prefix of subjects for complete files.
const WHOLE_SUBJECT_PREFIX: &str = "tracebook.whole.";
/// Prefix of the hash in subjects for lost files, which are sent to all replicas.
const LOST_HASH_PREFIX: &str = "lost-";
/// Header for the number of a piece within its file.
const PIECE_NUMBER_HEADER: &str = "Tracebook-Piece";
/// Header for the size of a whole file.
const FILE_SIZE_HEADER: &str = "Tracebook-Size";
/// Header of a whole file that came as the file of a kernel's state only, and may be removed. A later message about the
/// same file without it says that the file stays.
const STATE_FILE_HEADER: &str = "Tracebook-State";
/// Time limit for an operation, which is retried later; a device waits a minute for a piece.
const PIECE_TIMEOUT: Duration = Duration::from_secs(40);
/// Time limit for reading a whole file once.
const FILE_CHECK_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of pieces in memory while a file is checked.
const MAX_PIECES_PER_CHECK: usize = 64;
/// Maximum number of incomplete files whose state is cached.
const MAX_KNOWN_ENDS: usize = 10_000;
/// Maximum number of complete files whose piece sequences are cached, at most 64 KiB each.
const MAX_CACHED_PLACES: usize = 128;

/// Blob store whose pieces are messages in NATS.
pub(super) struct NatsFiles {
    pub(super) pieces: PieceStream,
    runtime: Handle,
    pub(super) known: Arc<Mutex<KnownFile>>,
    state: Mutex<NatsFileState>,
    closed: watch::Sender<bool>,
}

/// Cached state of complete files.
#[derive(Default)]
pub(super) struct KnownFile {
    /// Sizes of all complete files.
    whole: HashMap<VolumeBlob, u64>,
    /// Those of them that came as files of states only.
    states: HashSet<VolumeBlob>,
    pub(super) places: HashMap<VolumeBlob, Arc<PiecePlaces>>,
}

impl KnownFile {
    fn forget_places(&mut self, item: VolumeBlob) {
        self.whole.remove(&item);
        self.states.remove(&item);
        self.places.remove(&item);
    }

    fn add_whole(&mut self, item: VolumeBlob, size: u64, is_state: bool) {
        self.whole.insert(item, size);
        if is_state {
            self.states.insert(item)
        } else {
            self.states.remove(&item)
        };
    }
}

#[derive(Default)]
struct NatsFileState {
    ends: HashMap<VolumeBlob, FileEnd>,
    /// Files with a rejected piece; later pieces are rejected too.
    broken: HashSet<VolumeBlob>,
}

/// Progress of an incomplete file.
#[derive(Clone, Copy, Default)]
struct FileEnd {
    pieces: u64,
    /// The sequence of the last piece; 0 if there is none.
    last: u64,
}

/// Message sequences of a complete file's pieces.
pub(super) struct PiecePlaces {
    size: u64,
    pub(super) sequences: Vec<u64>,
    /// Whether it came as the file of a state only.
    is_state: bool,
}

impl PiecePlaces {
    fn from_message(message: &StreamMessage) -> Option<PiecePlaces> {
        let size: u64 = message.headers.get(FILE_SIZE_HEADER)?.as_str().parse().ok()?;
        let (sequences, odd) = message.payload.as_chunks::<8>();
        let sequences: Vec<u64> = sequences.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let count = size.div_ceil(PIECE_BYTES).max(1);
        let is_state = message.headers.get(STATE_FILE_HEADER).is_some();
        (odd.is_empty() && sequences.len() as u64 == count).then_some(PiecePlaces { size, sequences, is_state })
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.sequences.iter().flat_map(|sequence| sequence.to_le_bytes()).collect()
    }
}

/// State of a file on the servers, collected piece by piece.
struct SeenPieces {
    hasher: BlobHasher,
    places: PiecePlaces,
    /// Whether no piece is missing or surplus.
    sound: bool,
    /// Whether this replica has written all pieces.
    own: bool,
    last: u64,
}

impl SeenPieces {
    fn add_message(&mut self, message: &Message, sequence: u64, me: &str) {
        let number = message.headers.as_ref().and_then(piece_number);
        self.own &= from(message) == Some(me);
        let PiecePlaces { size, sequences, .. } = &mut self.places;
        self.sound &= number == Some(sequences.len() as u64) && *size == sequences.len() as u64 * PIECE_BYTES;
        self.last = sequence;
        if self.sound {
            self.hasher.update(&message.payload);
            *size += message.payload.len() as u64;
            sequences.push(sequence);
        }
    }
}

fn piece_number(headers: &HeaderMap) -> Option<u64> {
    headers.get(PIECE_NUMBER_HEADER)?.as_str().parse().ok()
}

fn blob_subject(begin: &str, item: VolumeBlob) -> String {
    format!("{begin}{}.{}", item.volume, item.hash)
}

fn lost_subject(item: VolumeBlob) -> String {
    format!("{WHOLE_SUBJECT_PREFIX}{}.{LOST_HASH_PREFIX}{}", item.volume, item.hash)
}

fn parse_lost_subject(subject: &str) -> Option<VolumeBlob> {
    let (volume, hash) = subject.strip_prefix(WHOLE_SUBJECT_PREFIX)?.split_once('.')?;
    Some(VolumeBlob { volume: volume.parse().ok()?, hash: hash.strip_prefix(LOST_HASH_PREFIX)?.parse().ok()? })
}

fn parse_subject(begin: &str, subject: &str) -> Option<VolumeBlob> {
    let (volume, hash) = subject.strip_prefix(begin)?.split_once('.')?;
    Some(VolumeBlob { volume: volume.parse().ok()?, hash: hash.parse().ok()? })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nats_error(error: impl std::fmt::Display) -> HubFilesError {
    HubFilesError::Nats(error.to_string())
}

/// Retries until success or the time limit: a cluster that elects a leader answers a little later.
async fn retry_until<T, F>(within: Duration, mut once: impl FnMut() -> F) -> Result<T, HubFilesError>
where
    F: Future<Output = Result<T, HubFilesError>>,
{
    let until = Instant::now() + PIECE_TIMEOUT;
    loop {
        let why = match tokio::time::timeout(within, once()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(why)) => why,
            Err(_) => HubFilesError::NatsTimeout,
        };
        if Instant::now() > until {
            return Err(HubFilesError::NatsUnreliable(Box::new(why)));
        }
        tokio::time::sleep(NATS_RETRY_INTERVAL).await;
    }
}

/// The stream of pieces.
#[derive(Clone)]
pub(super) struct PieceStream {
    inside: Arc<NatsState>,
}

impl PieceStream {
    pub(super) async fn stream(&self) -> Result<Stream<()>, HubFilesError> {
        self.inside.stream.get_stream_no_info(FILES_STREAM).await.map_err(nats_error)
    }

    /// Returns the last message of a subject, from the leader.
    async fn last_message(&self, subject: &str) -> Result<Option<StreamMessage>, HubFilesError> {
        let stream = self.stream().await?;
        retry_until(NATS_TRY_TIMEOUT, || async {
            match stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(message)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(nats_error(error)),
            }
        })
        .await
    }

    /// Returns the piece with this sequence; `None` if it's gone.
    async fn fetch_piece(&self, subject: &str, sequence: u64) -> Result<Option<Vec<u8>>, HubFilesError> {
        let stream = self.stream().await?;
        // First any of the servers, which may not have all messages yet; then the leader.
        if let Ok(Ok(message)) = tokio::time::timeout(NATS_TRY_TIMEOUT, stream.direct_get(sequence)).await
            && message.subject.as_str() == subject
        {
            return Ok(Some(message.payload.to_vec()));
        }
        retry_until(NATS_TRY_TIMEOUT, || async {
            match stream.get_raw_message(sequence).await {
                Ok(message) => Ok((message.subject.as_str() == subject).then(|| message.payload.to_vec())),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(nats_error(error)),
            }
        })
        .await
    }

    /// Removes all messages of a subject up to this one; later ones stay.
    async fn purge(&self, subject: &str, upto: u64) -> Result<(), HubFilesError> {
        let stream = self.stream().await?;
        retry_until(NATS_TRY_TIMEOUT, || async {
            stream.purge().filter(subject).sequence(upto + 1).await.map(drop).map_err(nats_error)
        })
        .await
    }

    async fn fetch_places(&self, item: VolumeBlob) -> Result<Option<PiecePlaces>, HubFilesError> {
        Ok(self
            .last_message(&blob_subject(WHOLE_SUBJECT_PREFIX, item))
            .await?
            .as_ref()
            .and_then(PiecePlaces::from_message))
    }

    /// Marks a file as lost after a piece has disappeared: the rest is deleted, and all replicas are notified. Returns
    /// false if another replica has noticed it before, or if the file was sent again since.
    async fn mark_lost(&self, item: VolumeBlob, piece: u64) -> Result<bool, HubFilesError> {
        let (whole, lost) = (blob_subject(WHOLE_SUBJECT_PREFIX, item), lost_subject(item));
        let Some(said) = self.last_message(&whole).await? else { return Ok(false) };
        let sequences = PiecePlaces::from_message(&said).map(|places| places.sequences).unwrap_or_default();
        if !sequences.is_empty() && !sequences.contains(&piece) {
            return Ok(false);
        }
        self.purge(&whole, said.sequence).await?;
        if let Some(last) = sequences.last() {
            self.purge(&blob_subject(PIECE_SUBJECT_PREFIX, item), *last).await?;
        }
        self.announce_lost(&lost).await?;
        Ok(true)
    }

    /// Tells all replicas that a file is no longer complete.
    async fn announce_lost(&self, lost: &str) -> Result<(), HubFilesError> {
        let before = self.last_message(lost).await?.map_or(0, |before| before.sequence);
        self.publish(lost, &self.piece_headers(), b"", before).await?;
        if before > 0 {
            self.purge(lost, before).await?;
        }
        Ok(())
    }

    /// Marks the complete file of a state as one that is never removed. The servers refuse this if another replica has
    /// marked it meanwhile.
    async fn keep_file(&self, item: VolumeBlob) -> Result<(), HubFilesError> {
        let whole = blob_subject(WHOLE_SUBJECT_PREFIX, item);
        let Some(said) = self.last_message(&whole).await? else { return Ok(()) };
        let Some(places) = PiecePlaces::from_message(&said).filter(|places| places.is_state) else { return Ok(()) };
        if self.publish(&whole, &self.whole_headers(&places, false), &said.payload, said.sequence).await?.is_none() {
            return Err(HubFilesError::TakenElsewhere);
        }
        self.purge(&whole, said.sequence).await
    }

    /// Removes the complete file of a state, and tells all replicas. Any other file stays: if another replica keeps
    /// this one meanwhile, its message is later than what is removed.
    async fn remove_state_file(&self, item: VolumeBlob) -> Result<bool, HubFilesError> {
        let whole = blob_subject(WHOLE_SUBJECT_PREFIX, item);
        let Some(said) = self.last_message(&whole).await? else { return Ok(false) };
        let Some(places) = PiecePlaces::from_message(&said).filter(|places| places.is_state) else { return Ok(false) };
        self.purge(&whole, said.sequence).await?;
        if self.last_message(&whole).await?.is_some() {
            return Ok(false);
        }
        if let Some(last) = places.sequences.last() {
            self.purge(&blob_subject(PIECE_SUBJECT_PREFIX, item), *last).await?;
        }
        self.announce_lost(&lost_subject(item)).await?;
        Ok(true)
    }

    /// Returns the progress of a file, and its number of bytes so far.
    async fn file_end(&self, subject: &str) -> Result<(FileEnd, u64), HubFilesError> {
        let Some(last) = self.last_message(subject).await? else { return Ok((FileEnd::default(), 0)) };
        let number = piece_number(&last.headers).ok_or(HubFilesError::NotPiece)?;
        let bytes = number * PIECE_BYTES + last.payload.len() as u64;
        Ok((FileEnd { pieces: number + 1, last: last.sequence }, bytes))
    }

    /// Publishes a message if `last` is still the last one of its subject; returns its sequence once the servers have
    /// it. `None`: another message has taken its place.
    async fn publish(
        &self,
        subject: &str,
        headers: &HeaderMap,
        bytes: &[u8],
        last: u64,
    ) -> Result<Option<u64>, HubFilesError> {
        let until = Instant::now() + PIECE_TIMEOUT;
        loop {
            let message = PublishMessage::build().payload(bytes.to_vec().into()).headers(headers.clone());
            let message = message.expected_last_subject_sequence(last);
            let sent = async { self.inside.stream.send_publish(subject.to_owned(), message).await?.await };
            let why = match tokio::time::timeout(NATS_TRY_TIMEOUT, sent).await {
                Ok(Ok(done)) => return Ok(Some(done.sequence)),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            // The servers may have stored it all the same, or another replica was quicker.
            match self.last_message(subject).await? {
                Some(there) if there.sequence == last => {}
                None if last == 0 => {}
                Some(there) if piece_number(&there.headers) == piece_number(headers) && *there.payload == *bytes => {
                    return Ok(Some(there.sequence));
                }
                Some(_) | None => return Ok(None),
            }
            if Instant::now() > until {
                return Err(HubFilesError::NatsRefused(why));
            }
            tokio::time::sleep(NATS_RETRY_INTERVAL).await;
        }
    }

    fn piece_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(FROM_HEADER, self.inside.me.as_str());
        headers
    }

    fn whole_headers(&self, places: &PiecePlaces, is_state: bool) -> HeaderMap {
        let mut headers = self.piece_headers();
        headers.insert(FILE_SIZE_HEADER, places.size.to_string().as_str());
        if is_state {
            headers.insert(STATE_FILE_HEADER, "yes");
        }
        headers
    }

    /// Appends a piece; returns the file's new end.
    async fn publish_piece(
        &self,
        item: VolumeBlob,
        at: u64,
        bytes: &[u8],
        end: Option<FileEnd>,
    ) -> Result<FileEnd, HubFilesError> {
        let subject = blob_subject(PIECE_SUBJECT_PREFIX, item);
        let mut end = match end {
            Some(end) => end,
            None => self.file_end(&subject).await?.0,
        };
        if at < end.pieces {
            // Another replica may have continued the file in the meantime.
            end = self.file_end(&subject).await?.0;
        }
        if at + 1 < end.pieces {
            return Ok(end); // whether this is what is there is seen once all of it is checked
        }
        if at + 1 == end.pieces {
            // The last piece is sent again, since it hasn't been checked.
            let there = self.last_message(&subject).await?.filter(|there| piece_number(&there.headers) == Some(at));
            if let Some(there) = there.filter(|there| *there.payload == *bytes) {
                return Ok(FileEnd { pieces: at + 1, last: there.sequence });
            }
            if self.fetch_places(item).await?.is_some() {
                return Err(HubFilesError::WholeElsewhere);
            }
            let stream = self.stream().await?;
            retry_until(NATS_TRY_TIMEOUT, || async {
                stream.delete_message(end.last).await.map(drop).map_err(nats_error)
            })
            .await?;
            end = self.file_end(&subject).await?.0;
        }
        if at != end.pieces {
            return Err(HubFilesError::PredecessorGone);
        }
        let mut headers = self.piece_headers();
        headers.insert(PIECE_NUMBER_HEADER, at.to_string().as_str());
        let last = self.publish(&subject, &headers, bytes, end.last).await?;
        let last = last.ok_or(HubFilesError::TakenElsewhere)?;
        Ok(FileEnd { pieces: at + 1, last })
    }

    /// Checks a file's pieces on the servers, and marks it as complete, as the file of a state or as one that stays;
    /// `None`: the hash is wrong, and the pieces are removed.
    async fn verify_file(&self, item: VolumeBlob, is_state: bool) -> Result<Option<PiecePlaces>, HubFilesError> {
        let (stream, pieces) = (self.stream().await?, blob_subject(PIECE_SUBJECT_PREFIX, item));
        let seen = retry_until(FILE_CHECK_TIMEOUT, || async {
            let places = PiecePlaces { size: 0, sequences: Vec::new(), is_state };
            let mut seen = SeenPieces { hasher: BlobHasher::default(), places, sound: true, own: true, last: 0 };
            let take = |message: &Message, sequence| seen.add_message(message, sequence, &self.inside.me);
            self.inside
                .for_each_message(&stream, pieces.clone(), MAX_PIECES_PER_CHECK, take)
                .await
                .map_err(nats_error)?;
            Ok(seen)
        })
        .await?;
        if !seen.sound || seen.places.sequences.is_empty() || seen.hasher.finish() != item.hash {
            self.purge(&pieces, seen.last).await?;
            if !seen.own {
                // It's unknown which replica's bytes were wrong: start again.
                return Err(HubFilesError::MixedPieces);
            }
            return Ok(None);
        }
        let headers = self.whole_headers(&seen.places, is_state);
        let whole = blob_subject(WHOLE_SUBJECT_PREFIX, item);
        let put = self.publish(&whole, &headers, &seen.places.to_bytes(), 0).await?;
        if !is_state {
            self.keep_file(item).await?; // another replica may have completed it as the file of a state
        }
        match put {
            Some(_) => Ok(Some(seen.places)),
            // Another replica has checked it too.
            None => self.fetch_places(item).await?.map(Some).ok_or(HubFilesError::Disappeared),
        }
    }

    /// Removes incomplete files without new data since this time, in seconds since 1970.
    async fn remove_stale_subjects(&self, since: i64) -> Result<(), HubFilesError> {
        let stream = self.stream().await?;
        let mut open = BTreeSet::new();
        for begin in [PIECE_SUBJECT_PREFIX, WHOLE_SUBJECT_PREFIX] {
            let mut names = stream.info_with_subjects(format!("{begin}*.*")).await.map_err(nats_error)?;
            while let Some(name) = names.next().await {
                let Some(item) = parse_subject(begin, &name.map_err(nats_error)?.0) else { continue };
                if begin == PIECE_SUBJECT_PREFIX {
                    open.insert(item)
                } else {
                    open.remove(&item)
                };
            }
        }
        for item in open {
            let subject = blob_subject(PIECE_SUBJECT_PREFIX, item);
            let last = self.last_message(&subject).await?.filter(|last| last.time.unix_timestamp() < since);
            if let Some(last) = last
                && self.fetch_places(item).await?.is_none()
            {
                self.purge(&subject, last.sequence).await?;
            }
        }
        Ok(())
    }
}

impl NatsFiles {
    /// Creates the stream if it's missing, and starts to follow the files that other replicas store.
    pub(super) async fn open(inside: Arc<NatsState>, heard: ReplicaListener) -> Result<NatsFiles, HubStartError> {
        let subjects = vec![format!("{PIECE_SUBJECT_PREFIX}*.*"), format!("{WHOLE_SUBJECT_PREFIX}*.*")];
        let made = make_stream(&inside.stream, FILES_STREAM, subjects, &inside.log).await?;
        let info = made.get_info().await.map_err(|error| HubStartError::NatsStreamInfo(error.to_string()))?;
        let begun = info.state.last_sequence;
        let known: Arc<Mutex<KnownFile>> = Arc::default();
        let here = Arc::clone(&known);
        let take = move |inside: &NatsState, message: &Message, sequence: u64| {
            if let Some(item) = parse_lost_subject(&message.subject) {
                lock(&here).forget_places(item);
                if sequence > begun {
                    heard(ReplicaNews::BlobLost { item });
                }
                return;
            }
            let size = message.headers.as_ref().and_then(|headers| headers.get(FILE_SIZE_HEADER));
            let size = size.and_then(|size| size.as_str().parse().ok());
            let Some((item, size)) = parse_subject(WHOLE_SUBJECT_PREFIX, &message.subject).zip(size) else { return };
            let is_state = message.headers.as_ref().is_some_and(|headers| headers.get(STATE_FILE_HEADER).is_some());
            if from(message) == Some(&inside.me) {
                lock(&here).add_whole(item, size, is_state);
                return;
            }
            {
                let mut here = lock(&here);
                here.forget_places(item); // it may have lain elsewhere
                here.add_whole(item, size, is_state);
            }
            if sequence > begun {
                heard(ReplicaNews::BlobAdded { item, size });
            }
        };
        let line =
            StreamEvent { stream: FILES_STREAM, filter: format!("{WHOLE_SUBJECT_PREFIX}*.*"), headers_only: true };
        tokio::spawn(follow_stream(Arc::clone(&inside), line, 0, take));
        let (closed, _) = watch::channel(false);
        let (pieces, runtime) = (PieceStream { inside }, Handle::current());
        Ok(NatsFiles { pieces, runtime, known, state: Mutex::default(), closed })
    }

    /// Runs a request to the servers until it ends or the hub closes.
    fn wait_for_servers<T>(&self, work: impl Future<Output = Result<T, HubFilesError>>) -> Result<T, HubFilesError> {
        let mut closed = self.closed.subscribe();
        self.runtime.block_on(async {
            tokio::select! {
                _ = closed.wait_for(|closed| *closed) => Err(HubFilesError::Closing),
                done = work => done,
            }
        })
    }

    fn cached_places(&self, item: VolumeBlob) -> Result<Option<Arc<PiecePlaces>>, HubFilesError> {
        if let Some(known) = lock(&self.known).places.get(&item) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(places) = self.wait_for_servers(self.pieces.fetch_places(item))?.map(Arc::new) else {
            return Ok(None);
        };
        self.cache_places(item, &places);
        Ok(Some(places))
    }

    pub(super) fn cache_places(&self, item: VolumeBlob, places: &Arc<PiecePlaces>) {
        let mut known = lock(&self.known);
        known.add_whole(item, places.size, places.is_state);
        if known.places.len() >= MAX_CACHED_PLACES {
            known.places.clear();
        }
        known.places.insert(item, Arc::clone(places));
    }
}

impl HubFiles for NatsFiles {
    fn blob_extent(&self, item: VolumeBlob) -> Result<BlobExtent, HubFilesError> {
        lock(&self.state).broken.remove(&item);
        if let Some(size) = lock(&self.known).whole.get(&item) {
            return Ok(BlobExtent::Whole(*size));
        }
        let (end, bytes) = self.wait_for_servers(self.pieces.file_end(&blob_subject(PIECE_SUBJECT_PREFIX, item)))?;
        if end.pieces > 0
            && let Some(places) = self.cached_places(item)?
        {
            return Ok(BlobExtent::Whole(places.size));
        }
        lock(&self.state).ends.insert(item, end);
        Ok(BlobExtent::Part(bytes))
    }

    fn read_piece(&self, item: VolumeBlob, offset: u64) -> Result<Option<(u64, Vec<u8>)>, HubFilesError> {
        let Some(places) = self.cached_places(item)? else { return Ok(None) };
        let at = usize::try_from(offset / PIECE_BYTES).ok().and_then(|at| places.sequences.get(at));
        let Some(sequence) = at else { return Ok(Some((places.size, Vec::new()))) };
        if let Some(piece) =
            self.wait_for_servers(self.pieces.fetch_piece(&blob_subject(PIECE_SUBJECT_PREFIX, item), *sequence))?
        {
            let from = usize::try_from(offset % PIECE_BYTES).unwrap_or(usize::MAX).min(piece.len());
            return Ok(Some((places.size, piece[from..].to_vec())));
        }
        lock(&self.known).forget_places(item);
        if self.wait_for_servers(self.pieces.mark_lost(item, *sequence))? {
            return Err(HubFilesError::PieceLost);
        }
        // The file was stored again elsewhere, or others have noticed the loss already.
        self.read_piece(item, offset)
    }

    fn write_piece(&self, item: VolumeBlob, offset: u64, bytes: Vec<u8>) -> Result<(), HubFilesError> {
        if !offset.is_multiple_of(PIECE_BYTES) || bytes.len() as u64 > PIECE_BYTES {
            return Err(HubFilesError::Misplaced);
        }
        let end = {
            let mut state = lock(&self.state);
            if state.broken.contains(&item) {
                return Err(HubFilesError::PredecessorRefused);
            }
            state.ends.remove(&item)
        };
        let put = self.wait_for_servers(self.pieces.publish_piece(item, offset / PIECE_BYTES, &bytes, end));
        let mut state = lock(&self.state);
        if state.ends.len() >= MAX_KNOWN_ENDS {
            state.ends.clear();
        }
        match put {
            Ok(end) => _ = state.ends.insert(item, end),
            Err(why) => {
                state.broken.insert(item);
                return Err(why);
            }
        }
        Ok(())
    }

    fn finish_blob(&self, item: VolumeBlob, is_state: bool) -> Result<bool, HubFilesError> {
        {
            let mut state = lock(&self.state);
            state.ends.remove(&item);
            if state.broken.contains(&item) {
                return Err(HubFilesError::Incomplete);
            }
        }
        let places = self.wait_for_servers(self.pieces.verify_file(item, is_state))?.map(Arc::new);
        if let Some(places) = &places {
            self.cache_places(item, places);
        }
        Ok(places.is_some())
    }

    fn keep_blob(&self, item: VolumeBlob) -> Result<(), HubFilesError> {
        {
            // Most files are known not to be files of states. Nothing is asked of the servers for them.
            let known = lock(&self.known);
            if known.whole.contains_key(&item) && !known.states.contains(&item) {
                return Ok(());
            }
        }
        self.wait_for_servers(self.pieces.keep_file(item))?;
        lock(&self.known).states.remove(&item);
        Ok(())
    }

    fn remove_state_file(&self, item: VolumeBlob) -> Result<bool, HubFilesError> {
        let removed = self.wait_for_servers(self.pieces.remove_state_file(item))?;
        if removed {
            lock(&self.known).forget_places(item);
            lock(&self.state).ends.remove(&item);
        }
        Ok(removed)
    }

    fn remove_stale_blobs(&self, age: Duration) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since = i64::try_from(now.saturating_sub(age).as_secs()).unwrap_or(i64::MAX);
        let pieces = self.pieces.clone();
        self.runtime.spawn(async move {
            if let Err(why) = pieces.remove_stale_subjects(since).await {
                (pieces.inside.log)(&format!("old unfinished uploads can't be removed: {why}"));
            }
        });
    }

    fn close(&self) {
        self.closed.send_replace(true);
    }
}
