//! The queue of runs over NATS JetStream: the last message of a run's subject is its record. A write names the sequence
//! of the message that it replaces, and the servers refuse it if that is no longer the last one. So of two replicas
//! that let a device claim the same run, one is told that it's too late.

use super::{NATS_TRY_TIMEOUT, NatsState, make_stream};
use crate::error::HubStartError;
use crate::storage::StoreFailure;
use crate::work::{VersionedBytes, WorkStore};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::DocId;
use tokio::runtime::Handle;

/// Name of the stream of runs.
const WORK_STREAM: &str = "TRACEBOOK-WORK";
/// Prefix of the subjects of runs, followed by the run's id.
const WORK_SUBJECT_PREFIX: &str = "tracebook.work.";
/// Maximum number of messages that are requested at once.
const MAX_BATCH_MESSAGES: usize = 64;

/// Store of queued runs. Its calls block, and so are made on threads that may.
pub(crate) struct NatsWork {
    inside: Arc<NatsState>,
    runtime: Handle,
}

fn failure(error: impl std::fmt::Display) -> StoreFailure {
    StoreFailure(format!("NATS: {error}"))
}

impl NatsWork {
    pub(super) async fn open(inside: Arc<NatsState>) -> Result<NatsWork, HubStartError> {
        make_stream(&inside.stream, WORK_STREAM, vec![format!("{WORK_SUBJECT_PREFIX}*")], &inside.log).await?;
        Ok(NatsWork { inside, runtime: Handle::current() })
    }

    fn block_on<T>(&self, work: impl Future<Output = Result<T, StoreFailure>>) -> Result<T, StoreFailure> {
        let timed = async { tokio::time::timeout(NATS_TRY_TIMEOUT, work).await };
        self.runtime.block_on(timed).map_err(|_| failure("no answer"))?
    }
}

impl WorkStore for NatsWork {
    fn read_record(&self, run: DocId) -> Result<Option<VersionedBytes>, StoreFailure> {
        self.block_on(async {
            let stream = self.inside.stream.get_stream_no_info(WORK_STREAM).await.map_err(failure)?;
            match stream.get_last_raw_message_by_subject(&format!("{WORK_SUBJECT_PREFIX}{run}")).await {
                Ok(message) => Ok(Some((message.payload.to_vec(), message.sequence))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(failure(error)),
            }
        })
    }

    fn read_records(&self) -> Result<Vec<VersionedBytes>, StoreFailure> {
        self.block_on(async {
            let stream = self.inside.stream.get_stream_no_info(WORK_STREAM).await.map_err(failure)?;
            // Older messages of a subject may still be there; the last one counts.
            let mut last: BTreeMap<String, VersionedBytes> = BTreeMap::new();
            let take = |message: &async_nats::Message, sequence| {
                last.insert(message.subject.to_string(), (message.payload.to_vec(), sequence));
            };
            let all = format!("{WORK_SUBJECT_PREFIX}*");
            self.inside.for_each_message(&stream, all, MAX_BATCH_MESSAGES, take).await.map_err(failure)?;
            Ok(last.into_values().collect())
        })
    }

    fn write_record(&self, run: DocId, bytes: Vec<u8>, expected: u64) -> Result<bool, StoreFailure> {
        self.block_on(async {
            let subject = format!("{WORK_SUBJECT_PREFIX}{run}");
            let message = PublishMessage::build().payload(bytes.into()).expected_last_subject_sequence(expected);
            let sent = self.inside.stream.send_publish(subject.clone(), message).await.map_err(failure)?;
            let sequence = match sent.await {
                Ok(stored) => stored.sequence,
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Ok(false),
                Err(error) => return Err(failure(error)),
            };
            // The record is durable: what it replaces is only a waste of space. (NATS 2.9 takes a purge up to the first
            // sequence of all for a purge of everything.)
            if expected == 0 {
                return Ok(true);
            }
            let stream = self.inside.stream.get_stream_no_info(WORK_STREAM).await.map_err(failure)?;
            if let Err(error) = stream.purge().filter(subject).sequence(sequence).await {
                tracing::debug!(%error, "an old record of a run is still in the NATS stream");
            }
            Ok(true)
        })
    }

    fn remove_record(&self, run: DocId) -> Result<(), StoreFailure> {
        self.block_on(async {
            let stream = self.inside.stream.get_stream_no_info(WORK_STREAM).await.map_err(failure)?;
            stream.purge().filter(format!("{WORK_SUBJECT_PREFIX}{run}")).await.map_err(failure)?;
            Ok(())
        })
    }
}
