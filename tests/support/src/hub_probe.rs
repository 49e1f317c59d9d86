//! A device with documents in memory that speaks to a hub over a real socket: for measurements and tests.

use peers::handshake::{self, DEVICE_PATH};
use peers::handshake::{ControlMessage, FrameTransport, PeerFrame};
use peers::hub_socket::{CertificateTrust, HubSocket};
use peers::{DeviceId, DeviceKey};
use std::collections::HashMap;
use std::time::Duration;
use store::ChangeHash;
use store::DocId;
use store::sync::peers::SyncLimits;
use store::sync::{DocumentAccess, LinkId, PeerId, PeerMetadata, PeersOutput, SyncPeers};

const HUB_LINK: LinkId = 1;

/// A device that tests use to probe a hub.
pub struct HubProbe {
    /// The connection.
    pub socket: HubSocket,
    /// Its side of the protocol.
    pub peers: SyncPeers,
    /// Chunks received so far, by document.
    pub chunks: HashMap<DocId, Vec<Vec<u8>>>,
    /// Why the connection ended.
    pub ended: Option<String>,
    /// What the hub does not have.
    pub absent: Vec<DocId>,
    /// What was said by others.
    pub ephemeral: Vec<Vec<u8>>,
}

impl HubProbe {
    /// Connects without a key, as automerge-repo does.
    pub async fn open(at: &str, path: &str, name: &str) -> Result<HubProbe, String> {
        let (way, _) = HubSocket::connect(at, path, &CertificateTrust::Any).await.map_err(|why| why.to_string())?;
        Ok(HubProbe::from_socket(way, name))
    }

    fn from_socket(way: HubSocket, name: &str) -> HubProbe {
        let mut peers = SyncPeers::new(PeerId(name.to_owned()), PeerMetadata::default(), SyncLimits::default());
        peers.connect(HUB_LINK, true, None, Box::new(|_| DocumentAccess::Write));
        let (chunks, ended, absent, heard) = (HashMap::new(), None, Vec::new(), Vec::new());
        HubProbe { socket: way, peers, chunks, ended, absent, ephemeral: heard }
    }

    /// Wants a document, or offers the one that it has.
    pub async fn follow(&mut self, doc: DocId) {
        self.peers.follow(HUB_LINK, doc);
        self.perform().await;
    }

    /// Announces a chunk that it has written.
    pub async fn send_change(&mut self, doc: DocId, chunk: Vec<u8>) {
        self.chunks.entry(doc).or_default().push(chunk.clone());
        self.peers.on_changed(doc, &chunk);
        self.perform().await;
    }

    /// Does what the protocol wants, until it wants nothing more.
    pub async fn perform(&mut self) {
        loop {
            let outputs = self.peers.take_outputs();
            if outputs.is_empty() {
                return;
            }
            for output in outputs {
                match output {
                    PeersOutput::Send { bytes, .. } => {
                        if let Err(why) = self.socket.send_frame(PeerFrame::Binary(bytes)).await {
                            self.ended.get_or_insert(why.to_string());
                        }
                    }
                    PeersOutput::Load { doc } => {
                        let chunks = self.chunks.get(&doc).cloned().unwrap_or_default();
                        self.peers.on_loaded(doc, Ok(chunks));
                    }
                    PeersOutput::Store { doc, ticket, parcel, .. } => {
                        self.chunks.entry(doc).or_default().push(parcel.bytes);
                        self.peers.on_stored(ticket);
                    }
                    PeersOutput::Close { why, .. } => drop(self.ended.get_or_insert(why)),
                    PeersOutput::Absent { doc, .. } => self.absent.push(doc),
                    PeersOutput::Ephemeral { data, .. } => self.ephemeral.push(data),
                    PeersOutput::Greeted { .. }
                    | PeersOutput::NeedVolumeDocs { .. }
                    | PeersOutput::Agreed { .. }
                    | PeersOutput::SyncChanged { .. }
                    | PeersOutput::Refused { .. }
                    | PeersOutput::Extension { .. } => {}
                }
            }
        }
    }

    /// Takes in one frame, if one comes within this time; says whether one came.
    pub async fn receive_frame(&mut self, within: Duration) -> bool {
        match tokio::time::timeout(within, self.socket.next_frame()).await {
            Err(_) => return false,
            Ok(None) => drop(self.ended.get_or_insert_with(|| "it hung up".to_owned())),
            Ok(Some(PeerFrame::Binary(bytes))) => {
                self.peers.receive(HUB_LINK, &bytes);
                self.perform().await;
            }
            Ok(Some(PeerFrame::Text(text))) => {
                if let Ok(ControlMessage::Refused(why)) = serde_json::from_str(&text) {
                    self.ended = Some(why);
                }
            }
        }
        true
    }

    /// Takes frames in until something holds; says whether it did in time.
    pub async fn receive_until(&mut self, within: Duration, holds: impl Fn(&HubProbe) -> bool) -> bool {
        let end = tokio::time::Instant::now() + within;
        loop {
            if holds(self) {
                return true;
            }
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() || (self.ended.is_some() && !self.receive_frame(Duration::ZERO).await) {
                return holds(self);
            }
            self.receive_frame(left).await;
        }
    }
}

impl HubProbe {
    /// Sends an ephemeral message.
    pub async fn send_ephemeral(&mut self, doc: DocId, data: &[u8]) {
        self.peers.broadcast(doc, "a session", data);
        self.perform().await;
    }

    /// Whether nothing of a document is here yet.
    pub fn is_document_empty(&self, doc: DocId) -> bool {
        self.peers.heads(doc).is_none_or(|heads| heads.is_empty())
    }
}

/// What only tests do.
impl HubProbe {
    /// Connects as the device of this key to a plain hub.
    pub async fn device(at: &str, key: &DeviceKey, hub: DeviceId) -> Result<HubProbe, String> {
        let (mut way, binding) =
            HubSocket::connect(at, DEVICE_PATH, &CertificateTrust::Any).await.map_err(|why| why.to_string())?;
        let proved = handshake::authenticate_to_listener(&mut way, key, hub, &binding).await;
        proved.map_err(|why| why.to_string())?;
        Ok(HubProbe::from_socket(way, &key.id().to_string()))
    }

    /// The heads of a document.
    pub fn heads(&self, doc: DocId) -> Vec<ChangeHash> {
        self.peers.heads(doc).unwrap_or_default()
    }
}
