//! A device with documents in memory that speaks to a hub over a real socket: for measurements and tests.

#[cfg(test)]
use peers::link::{self, DEVICE_PATH};
use peers::link::{Control, Frame, Way};
use peers::socket::{Socket, Trust};
#[cfg(test)]
use peers::{DeviceId, DeviceKey};
use std::collections::HashMap;
use std::time::Duration;
#[cfg(test)]
use store::ChangeHash;
use store::DocId;
use store::sync::peers::Limits;
use store::sync::{Access, Link, Metadata, Output, PeerId, Peers};

const HUB: Link = 1;

/// The device.
pub(crate) struct Probe {
    pub(crate) way: Socket,
    pub(crate) peers: Peers,
    /// What it keeps.
    pub(crate) chunks: HashMap<DocId, Vec<Vec<u8>>>,
    /// Why the connection ended.
    pub(crate) ended: Option<String>,
    /// What the hub does not have.
    pub(crate) absent: Vec<DocId>,
    /// What was said by others.
    pub(crate) heard: Vec<Vec<u8>>,
}

impl Probe {
    /// Connects without a key, as automerge-repo does.
    pub(crate) async fn open(at: &str, path: &str, name: &str) -> Result<Probe, String> {
        let (way, _) = Socket::connect(at, path, &Trust::Any).await?;
        Ok(Probe::over(way, name))
    }

    fn over(way: Socket, name: &str) -> Probe {
        let mut peers = Peers::new(PeerId(name.to_owned()), Metadata::default(), Limits::default());
        peers.connect(HUB, true, None, Box::new(|_| Access::Write));
        let (chunks, ended, absent, heard) = (HashMap::new(), None, Vec::new(), Vec::new());
        Probe { way, peers, chunks, ended, absent, heard }
    }

    /// Wants a document, or offers the one that it has.
    pub(crate) async fn follow(&mut self, doc: DocId) {
        self.peers.follow(HUB, doc);
        self.perform().await;
    }

    /// Has written something.
    pub(crate) async fn wrote(&mut self, doc: DocId, chunk: Vec<u8>) {
        self.chunks.entry(doc).or_default().push(chunk.clone());
        self.peers.changed(doc, &chunk);
        self.perform().await;
    }

    /// Does what the protocol wants, until it wants nothing more.
    pub(crate) async fn perform(&mut self) {
        loop {
            let outputs = self.peers.take();
            if outputs.is_empty() {
                return;
            }
            for output in outputs {
                match output {
                    Output::Send { bytes, .. } => {
                        if let Err(why) = self.way.send(Frame::Binary(bytes)).await {
                            self.ended.get_or_insert(why);
                        }
                    }
                    Output::Load { doc } => {
                        let chunks = self.chunks.get(&doc).cloned().unwrap_or_default();
                        self.peers.loaded(doc, Ok(chunks));
                    }
                    Output::Store { doc, ticket, parcel, .. } => {
                        self.chunks.entry(doc).or_default().push(parcel.bytes);
                        self.peers.stored(ticket);
                    }
                    Output::Close { why, .. } => drop(self.ended.get_or_insert(why)),
                    Output::Absent { doc, .. } => self.absent.push(doc),
                    Output::Heard { data, .. } => self.heard.push(data),
                    Output::Welcome { .. }
                    | Output::Scope { .. }
                    | Output::Agreed { .. }
                    | Output::Step { .. }
                    | Output::Refused { .. }
                    | Output::Extension { .. } => {}
                }
            }
        }
    }

    /// Takes in one frame, if one comes within this time; says whether one came.
    pub(crate) async fn take(&mut self, within: Duration) -> bool {
        match tokio::time::timeout(within, self.way.next()).await {
            Err(_) => return false,
            Ok(None) => drop(self.ended.get_or_insert_with(|| "it hung up".to_owned())),
            Ok(Some(Frame::Binary(bytes))) => {
                self.peers.receive(HUB, &bytes);
                self.perform().await;
            }
            Ok(Some(Frame::Text(text))) => {
                if let Ok(Control::Refused(why)) = serde_json::from_str(&text) {
                    self.ended = Some(why);
                }
            }
        }
        true
    }

    /// Takes frames in until something holds; says whether it did in time.
    pub(crate) async fn until(&mut self, within: Duration, holds: impl Fn(&Probe) -> bool) -> bool {
        let end = tokio::time::Instant::now() + within;
        loop {
            if holds(self) {
                return true;
            }
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() || (self.ended.is_some() && !self.take(Duration::ZERO).await) {
                return holds(self);
            }
            self.take(left).await;
        }
    }
}

impl Probe {
    /// Says something that nobody keeps.
    pub(crate) async fn say(&mut self, doc: DocId, data: &[u8]) {
        self.peers.say(doc, "a session", data);
        self.perform().await;
    }

    /// Whether nothing of a document is here yet.
    pub(crate) fn heads_empty(&self, doc: DocId) -> bool {
        self.peers.heads(doc).is_none_or(|heads| heads.is_empty())
    }
}

/// What only tests do.
#[cfg(test)]
impl Probe {
    /// Connects as the device of this key to a plain hub.
    pub(crate) async fn device(at: &str, key: &DeviceKey, hub: DeviceId) -> Result<Probe, String> {
        let (mut way, binding) = Socket::connect(at, DEVICE_PATH, &Trust::Any).await?;
        link::call(&mut way, key, hub, &binding).await?;
        Ok(Probe::over(way, &key.id().to_string()))
    }

    /// The heads of a document.
    pub(crate) fn heads(&self, doc: DocId) -> Vec<ChangeHash> {
        self.peers.heads(doc).unwrap_or_default()
    }
}
