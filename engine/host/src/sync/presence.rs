//! Presence of people in documents, as the sync thread keeps it: the store's state with a clock and this device's name.

use rand::Rng;
use std::time::{Duration, Instant};
use store::DocId;
use store::sync::PeerId;
use store::sync::presence::{DocumentPresence, PresentPerson};

/// Other people at a document: the id of their program and their presence.
type RemotePresence = Vec<(String, PresentPerson)>;

pub(crate) struct PeerPresence {
    presence: DocumentPresence,
    began: Instant,
    /// Id of this run of the program.
    pub(crate) session: String,
    /// This device's name and the start of its key. They're read when first needed.
    own: Option<(String, String)>,
}

impl PeerPresence {
    pub(crate) fn new() -> PeerPresence {
        let session = format!("{:016x}", rand::rng().random::<u64>());
        PeerPresence { presence: DocumentPresence::default(), began: Instant::now(), session, own: None }
    }

    fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns when the next action is due. `heard` says whether anyone would receive our presence.
    pub(crate) fn next_deadline(&self, heard: bool) -> Option<Instant> {
        let due = if heard { self.presence.next_due() } else { self.presence.next_expiry() };
        due.map(|due| self.began + Duration::from_millis(due))
    }

    pub(crate) fn set_own_state(&mut self, doc: DocId, state: Option<PresentPerson>, volume: bool) {
        let (name, device) = self.own.get_or_insert_with(own_identity).clone();
        let state = state.map(|state| PresentPerson { name, device, ..state });
        self.presence.set_own(doc, state, volume);
    }

    pub(crate) fn announce_again(&mut self) {
        self.own = Some(own_identity());
        let (name, device) = self.own.clone().unwrap_or_default();
        self.presence.set_device_name(&name, &device);
        self.presence.resend_all();
    }

    pub(crate) fn due_messages(&mut self) -> Vec<(DocId, Vec<u8>)> {
        self.presence.take_due_messages(self.elapsed_millis())
    }

    pub(crate) fn departure_messages(&mut self) -> Vec<(DocId, Vec<u8>)> {
        self.presence.take_goodbyes()
    }

    /// Handles a presence message. Returns who is at the document now, if that has changed.
    pub(crate) fn receive(&mut self, doc: DocId, from: &PeerId, data: &[u8]) -> Option<RemotePresence> {
        let now = self.elapsed_millis();
        self.presence.receive(now, doc, from, data).then(|| self.remote_presence(doc))
    }

    /// Removes people who have been silent for too long. Returns the affected documents with the remaining people.
    pub(crate) fn remove_silent_peers(&mut self) -> Vec<(DocId, RemotePresence)> {
        let changed = self.presence.expire_silent(self.elapsed_millis());
        changed.into_iter().map(|doc| (doc, self.remote_presence(doc))).collect()
    }

    fn remote_presence(&self, doc: DocId) -> RemotePresence {
        self.presence.others_at(doc).into_iter().map(|(peer, present)| (peer.0, present)).collect()
    }
}

/// Returns this device's name and the start of its key, which is empty if it has none.
fn own_identity() -> (String, String) {
    let name = crate::sync::devices::own_device_name().unwrap_or_else(|_| crate::sync::devices::machine_name());
    let key = crate::sync::devices::existing_device_key().ok().flatten();
    (name, key.map(|(key, _)| key.id().short_id()).unwrap_or_default())
}
