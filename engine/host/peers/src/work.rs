//! Runs that one device sends to another over a hub: what devices ask of the hub's queue, and the signatures that make
//! them believe each other.
//!
//! The hub is believed in one thing only: that it lets one device at a time carry out a run. What is to be done, and
//! what the owner has decided, is signed by the owner's key, so that no hub or third device can order work.

use crate::devices::PairedDevice;
use crate::handshake::{self, FrameSendError, FrameTransport, HandshakeError, PeerFrame};
use crate::hub_socket::{CertificateTrust, HubConnectError, HubSocket};
use crate::key::{DeviceId, DeviceKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use store::DocId;

/// WebSocket path of a hub's queue of runs.
pub const WORK_PATH: &str = "/work";
/// Maximum length of a message in bytes, both ways.
pub const MAX_WORK_MESSAGE_BYTES: usize = 1 << 20;
/// Maximum age of an order in milliseconds: a week.
const MAX_ORDER_AGE_MS: i64 = 7 * 24 * 3_600 * 1_000;
/// Maximum length of what is signed in bytes.
pub const MAX_SIGNED_BYTES: usize = 256 << 10;
/// How long the hub may take to answer one request.
const WORK_REPLY_TIMEOUT: Duration = Duration::from_secs(8);

/// A text with the signature of the device that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedText {
    /// The device that signed.
    pub by: DeviceId,
    /// What was signed, as JSON.
    pub text: String,
    /// The signature, in hexadecimal.
    pub signature: String,
}

/// What a signed text says, and the purpose of its signature.
pub trait SignedContent: Serialize + DeserializeOwned {
    /// The purpose, which keeps a signature from being used for something else.
    const PURPOSE: &'static str;
}

/// A run that a device wants another one to carry out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// The hub in whose queue the order is valid.
    pub hub: DeviceId,
    /// Id of the run, new.
    pub run: DocId,
    /// The volume that the run works in.
    pub volume: DocId,
    /// The device that is to carry it out; `None` for any worker.
    pub to: Option<DeviceId>,
    /// When it was ordered, in milliseconds since 1970.
    pub created: i64,
    /// What is to be done, in the form of the program that carries it out.
    pub task: Value,
}

impl SignedContent for RunOrder {
    const PURPOSE: &'static str = "order of a run";
}

/// The owner's decision about a call of a run that another device carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderedDecision {
    /// The hub in whose queue the decision is valid.
    pub hub: DeviceId,
    /// The run.
    pub run: DocId,
    /// Id of the approval.
    pub approval: String,
    /// Hash of the request as the owner saw it. Another request isn't decided.
    pub shown: String,
    /// The decision, in the form of the program that carries out the run.
    pub decision: Value,
}

impl SignedContent for OrderedDecision {
    const PURPOSE: &'static str = "decision about a run";
}

/// Why a signed text isn't believed.
#[derive(Debug, thiserror::Error)]
pub enum SignedTextError {
    /// The text can't be written as JSON, or isn't the expected JSON.
    #[error("it is not in the expected form ({0})")]
    Form(#[from] serde_json::Error),
    /// The text is too long.
    #[error("it is longer than {} KiB", MAX_SIGNED_BYTES >> 10)]
    TooLong,
    /// The signature isn't that of the device.
    #[error("the signature of {} does not hold", by.short_id())]
    Signature {
        /// The device that is said to have signed.
        by: DeviceId,
    },
}

impl SignedText {
    /// Signs what `content` says.
    ///
    /// # Errors
    /// Returns an error if it's too long, or can't be written as JSON.
    pub fn new<T: SignedContent>(key: &DeviceKey, content: &T) -> Result<SignedText, SignedTextError> {
        let text = serde_json::to_string(content)?;
        if text.len() > MAX_SIGNED_BYTES {
            return Err(SignedTextError::TooLong);
        }
        let signature = key.sign_file(T::PURPOSE, text.as_bytes());
        Ok(SignedText { by: key.id(), text, signature })
    }

    /// Returns what the device has signed.
    ///
    /// # Errors
    /// Returns an error if the signature doesn't hold, or the text isn't what it should be.
    pub fn open<T: SignedContent>(&self) -> Result<T, SignedTextError> {
        if self.text.len() > MAX_SIGNED_BYTES {
            return Err(SignedTextError::TooLong);
        }
        if !self.by.has_signed_file(T::PURPOSE, self.text.as_bytes(), &self.signature) {
            return Err(SignedTextError::Signature { by: self.by });
        }
        Ok(serde_json::from_str(&self.text)?)
    }
}

/// What a device asks of the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkRequest {
    /// Puts a run into the queue.
    Offer(SignedText),
    /// Lists the runs of these volumes, without what only the executor needs.
    List(Vec<DocId>),
    /// Claims a run that nobody carries out.
    Claim(DocId),
    /// Says that the executor is alive, and asks what is new. `decisions`: the number of decisions it has.
    Renew {
        /// The run.
        run: DocId,
        /// The number of its claim.
        epoch: u64,
        /// The number of decisions that the executor has received.
        decisions: usize,
    },
    /// Says that the run is over.
    Finish {
        /// The run.
        run: DocId,
        /// The number of its claim.
        epoch: u64,
        /// How it ended, as a word.
        ending: String,
        /// Why it isn't done, as a sentence.
        why: Option<String>,
    },
    /// Gives a claim back, so that another device can carry out the run.
    Release {
        /// The run.
        run: DocId,
        /// The number of its claim.
        epoch: u64,
    },
    /// Passes the owner's decision to the executor.
    Decide(DocId, SignedText),
    /// Says that the run is to be stopped.
    Cancel(DocId),
    /// Lists the devices that are paired with the hub.
    Devices,
}

/// The queue's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReply {
    /// It's done and durable.
    Done,
    /// The runs that were asked about.
    Runs(Vec<QueuedRun>),
    /// The paired devices, with their names.
    Devices(Vec<(DeviceId, String)>),
    /// The claim holds.
    Claimed {
        /// The number of the claim: 1 for the first executor.
        epoch: u64,
        /// Milliseconds after which the claim ends unless it's renewed.
        lease_ms: u64,
    },
    /// The claim still holds.
    Renewed {
        /// Whether the run is to be stopped.
        cancelled: bool,
        /// The decisions that are new.
        decisions: Vec<SignedText>,
    },
    /// This device no longer carries out the run: its claim has ended.
    Lost,
    /// It isn't done, for this reason.
    Refused(String),
}

/// A run in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedRun {
    /// Id of the run.
    pub run: DocId,
    /// The signed order.
    pub order: SignedText,
    /// Name of the device that ordered it, as the hub knows it.
    pub owner: String,
    /// The device that carries it out, and its name as the hub knows it.
    pub holder: Option<(DeviceId, String)>,
    /// Number of claims so far.
    pub epoch: u64,
    /// Whether it can be claimed: nobody carries it out, or the executor hasn't been heard for too long.
    pub is_free: bool,
    /// Whether it's to be stopped.
    pub cancelled: bool,
    /// How it ended; `None` while it waits or is carried out.
    pub ending: Option<String>,
    /// Why it isn't done, as a sentence.
    pub why: Option<String>,
}

/// Why the order of a queued run isn't carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunOrderError {
    /// Its signature doesn't hold, or it can't be read.
    #[error(transparent)]
    Signed(#[from] SignedTextError),
    /// It was signed for another queue, or for another run.
    #[error("the order is for another hub or another run")]
    Other,
    /// It was signed too long ago, or its time hasn't come.
    #[error("the order is older than a week, or from the future")]
    Age,
}

impl QueuedRun {
    /// Returns the order, if it holds for this run in the queue of `hub` at `now`, in milliseconds since 1970.
    ///
    /// # Errors
    /// Returns an error if its signature doesn't hold, if it's about something else, or if it's older than a week.
    pub fn open_order(&self, hub: DeviceId, now: i64) -> Result<RunOrder, RunOrderError> {
        let order: RunOrder = self.order.open()?;
        if order.hub != hub || order.run != self.run {
            return Err(RunOrderError::Other);
        }
        let age = now.saturating_sub(order.created);
        match (-MAX_ORDER_AGE_MS..=MAX_ORDER_AGE_MS).contains(&age) {
            true => Ok(order),
            false => Err(RunOrderError::Age),
        }
    }
}

/// Why the queue of a hub can't be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The system can't create a runtime.
    #[error("nothing can be waited for here ({0})")]
    Runtime(#[source] std::io::Error),
    /// The hub can't be reached.
    #[error(transparent)]
    Connect(#[from] HubConnectError),
    /// The hub refuses this device.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The request wasn't sent.
    #[error(transparent)]
    Send(#[from] FrameSendError),
    /// The request or the answer isn't valid JSON.
    #[error("the hub gives no valid answer about runs ({0}); it may be older than this program")]
    Form(#[from] serde_json::Error),
    /// The request is too long.
    #[error("it is longer than a hub accepts")]
    TooLong,
    /// The hub doesn't answer.
    #[error("the hub does not answer about runs")]
    NoAnswer,
    /// The hub refuses the request, with its reason.
    #[error("{0}")]
    Refused(String),
}

/// A device's way to the queue of one hub. Each request is a connection of its own, so that a restart of the hub is
/// never noticed.
#[derive(Clone, Debug)]
pub struct WorkClient {
    /// Id of the hub.
    pub hub: DeviceId,
    entry: PairedDevice,
    key: DeviceKey,
}

impl WorkClient {
    /// Creates the way to a paired hub, with its entry in the list of devices.
    pub fn new(hub: DeviceId, entry: PairedDevice, key: DeviceKey) -> WorkClient {
        WorkClient { hub, entry, key }
    }

    /// Sends a request and waits for the answer, for a few seconds at most.
    ///
    /// # Errors
    /// Returns an error if the hub can't be reached, or refuses.
    pub fn ask(&self, request: &WorkRequest) -> Result<WorkReply, WorkError> {
        let text = serde_json::to_string(request)?;
        if text.len() > MAX_WORK_MESSAGE_BYTES {
            return Err(WorkError::TooLong);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let asked = async {
            let address = self.address();
            let trust = self.entry.certificate.clone().map_or(CertificateTrust::Public, CertificateTrust::Pinned);
            let (mut way, binding) = HubSocket::connect(address, WORK_PATH, &trust).await?;
            handshake::authenticate_to_listener(&mut way, &self.key, self.hub, &binding).await?;
            way.send_frame(PeerFrame::Text(text)).await?;
            let answer = match way.next_frame().await {
                Some(PeerFrame::Text(answer)) => answer,
                Some(PeerFrame::Binary(_)) | None => return Err(WorkError::NoAnswer),
            };
            match serde_json::from_str(&answer)? {
                WorkReply::Refused(why) => Err(WorkError::Refused(why)),
                reply => Ok(reply),
            }
        };
        runtime.map_err(WorkError::Runtime)?.block_on(async {
            tokio::time::timeout(WORK_REPLY_TIMEOUT, asked).await.unwrap_or(Err(WorkError::NoAnswer))
        })
    }

    /// Signs an order or a decision for this hub's queue.
    ///
    /// # Errors
    /// Returns an error if it's too long.
    pub fn sign<T: SignedContent>(&self, content: &T) -> Result<SignedText, SignedTextError> {
        SignedText::new(&self.key, content)
    }

    /// Returns the id of this device.
    pub fn own_id(&self) -> DeviceId {
        self.key.id()
    }

    /// Returns the hub's address.
    pub fn address(&self) -> &str {
        self.entry.address.as_deref().unwrap_or_default()
    }

    /// Returns the hub's name.
    pub fn hub_name(&self) -> &str {
        &self.entry.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_for_this_purpose_is_believed() {
        let (owner, other) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let id = DocId([1; 16]);
        let order = RunOrder { hub: other.id(), run: id, volume: id, to: None, created: 1, task: Value::Null };
        let signed = SignedText::new(&owner, &order).expect("signed");
        assert_eq!(signed.open::<RunOrder>().expect("believed"), order);
        let forged = SignedText { by: other.id(), ..signed.clone() };
        assert!(matches!(forged.open::<RunOrder>(), Err(SignedTextError::Signature { .. })));
        let changed = SignedText { text: signed.text.replace("null", "true"), ..signed.clone() };
        assert!(matches!(changed.open::<RunOrder>(), Err(SignedTextError::Signature { .. })));
        assert!(matches!(signed.open::<OrderedDecision>(), Err(SignedTextError::Signature { .. })));
        let long = RunOrder { task: Value::String("x".repeat(MAX_SIGNED_BYTES)), ..order };
        assert!(matches!(SignedText::new(&owner, &long), Err(SignedTextError::TooLong)));
    }

    #[test]
    fn an_order_holds_for_its_run_in_its_queue_for_a_week() {
        let (owner, hub) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key").id());
        let (run, day) = (DocId([1; 16]), 24 * 3_600 * 1_000);
        let order = RunOrder { hub, run, volume: DocId([2; 16]), to: None, created: 100 * day, task: Value::Null };
        let signed = SignedText::new(&owner, &order).expect("signed");
        let queued = |run, order| QueuedRun {
            run,
            order,
            owner: String::new(),
            holder: None,
            epoch: 0,
            is_free: true,
            cancelled: false,
            ending: None,
            why: None,
        };
        let mine = queued(run, signed.clone());
        for days in [93, 100, 107] {
            assert_eq!(mine.open_order(hub, days * day).expect("it holds"), order);
        }
        for days in [0, 92, 108, i64::MAX / day] {
            assert!(matches!(mine.open_order(hub, days * day), Err(RunOrderError::Age)), "{days}");
        }
        // The hub can neither pass it off as another run nor take it from another queue.
        let other = queued(DocId([3; 16]), signed.clone()).open_order(hub, order.created);
        assert!(matches!(other, Err(RunOrderError::Other)));
        assert!(matches!(mine.open_order(owner.id(), order.created), Err(RunOrderError::Other)));
        let text = signed.text.replace("\"to\":null", &format!("\"to\":\"{}\"", hub));
        assert_ne!(text, signed.text);
        let changed = queued(run, SignedText { text, ..signed }).open_order(hub, order.created);
        assert!(matches!(changed, Err(RunOrderError::Signed(_))));
    }
}
