//! Presence: who is viewing a document, where their carets are, and which cells they run. Sent as ephemeral messages in
//! the format of automerge-repo's `DocumentPresence`, so that its clients and Tracebook can see each other. Not stored;
//! silent peers expire.
//!
//! Nothing here reads a clock: all times are in milliseconds of a monotonic clock.

use super::cbor::{CborError, CborReader, CborWriter};
use super::wire::PeerId;
use crate::id::{BlockId, DocId};
use std::collections::BTreeMap;

/// Minimum time between two messages about a document, in milliseconds.
pub const MIN_PRESENCE_INTERVAL_MS: u64 = 200;
/// Interval at which presence in a note is repeated, in milliseconds.
const HEARTBEAT_INTERVAL_MS: u64 = 3_000;
/// A person without messages for this time, in milliseconds, is removed.
const SILENCE_TIMEOUT_MS: u64 = 8_000;
/// The same two limits for a volume as a whole, where only the connected devices matter, not their positions.
const VOLUME_HEARTBEAT_INTERVAL_MS: u64 = 60_000;
const VOLUME_SILENCE_TIMEOUT_MS: u64 = 150_000;
/// With fewer known people, newcomers get an immediate answer. With more, they learn of the others gradually.
const MAX_GREETED_PEERS: usize = 32;
/// Maximum number of people per document. `MAX_PRESENCE_DOCUMENTS` is the maximum number of documents.
const MAX_PRESENT: usize = 128;
const MAX_PRESENCE_DOCUMENTS: usize = 512;
/// Maximum number of carets, and of running cells, per person.
const MAX_PRESENCE_MARKS: usize = 64;
/// Maximum length of a name in bytes.
const MAX_PERSON_NAME_BYTES: usize = 64;
/// Maximum size of a message in bytes.
const MAX_PRESENCE_BYTES: usize = 16 << 10;
/// Name of the field that marks presence messages in automerge-repo.
const PRESENCE_FIELD: &str = "__presence";

/// A caret, with the other end of its selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaretMark {
    /// The caret's block, and its offset in the block in bytes.
    pub at: (BlockId, usize),
    /// The other end of the selection, equal to `at` if nothing is selected.
    pub anchor: (BlockId, usize),
}

/// A person who is viewing a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresentPerson {
    /// Name of the device.
    pub name: String,
    /// The beginning of the device's key, if it has one.
    pub device: String,
    /// Their carets and selections, in drawing order.
    pub carets: Vec<CaretMark>,
    /// The cells that this person is running.
    pub running: Vec<BlockId>,
}

/// This device's presence in a document.
#[derive(Debug)]
struct OwnPresence {
    state: PresentPerson,
    last_sent: Option<u64>,
    changed: bool,
    slow: bool,
}

#[derive(Debug)]
struct OtherPresence {
    state: PresentPerson,
    last_heard: u64,
    slow: bool,
}

/// The presence of this and other devices, by document.
#[derive(Debug, Default)]
pub struct DocumentPresence {
    own: BTreeMap<DocId, OwnPresence>,
    gone: Vec<DocId>,
    others: BTreeMap<DocId, BTreeMap<PeerId, OtherPresence>>,
}

/// The content of a presence message.
enum PresenceChange {
    State(PresentPerson),
    Beat,
    Goodbye,
}

impl DocumentPresence {
    /// Sets this device's presence in a document; `None` removes it. `slow` selects the longer intervals of a volume.
    pub fn set_own(&mut self, doc: DocId, state: Option<PresentPerson>, slow: bool) {
        match state {
            None => {
                if self.own.remove(&doc).is_some_and(|own| own.last_sent.is_some()) {
                    self.gone.push(doc);
                }
            }
            Some(state) => {
                self.gone.retain(|gone| *gone != doc);
                let own = self.own.entry(doc).or_insert(OwnPresence {
                    state: PresentPerson::default(),
                    last_sent: None,
                    changed: true,
                    slow,
                });
                if own.state != state {
                    (own.state, own.changed) = (state, true);
                }
            }
        }
    }

    /// Marks all presence of this device to be sent again, for a new connection.
    pub fn resend_all(&mut self) {
        self.own.values_mut().for_each(|own| own.changed = true);
    }

    /// Returns when to act next: to send a message, or to expire a person.
    pub fn next_due(&self) -> Option<u64> {
        let own = self.own.values().map(|own| match (own.last_sent, own.changed) {
            (None, _) => 0,
            (Some(said), true) => said + MIN_PRESENCE_INTERVAL_MS,
            (Some(said), false) => said + if own.slow { VOLUME_HEARTBEAT_INTERVAL_MS } else { HEARTBEAT_INTERVAL_MS },
        });
        own.chain(self.next_expiry()).chain((!self.gone.is_empty()).then_some(0)).min()
    }

    /// Returns when the next person expires.
    pub fn next_expiry(&self) -> Option<u64> {
        let others = self.others.values().flat_map(BTreeMap::values);
        others
            .map(|other| other.last_heard + if other.slow { VOLUME_SILENCE_TIMEOUT_MS } else { SILENCE_TIMEOUT_MS })
            .min()
    }

    /// Sets the name and the key prefix of this device.
    pub fn set_device_name(&mut self, name: &str, device: &str) {
        for own in self.own.values_mut().filter(|own| own.state.name != name || own.state.device != device) {
            (own.state.name, own.state.device) = (name.to_owned(), device.to_owned());
            own.changed = true;
        }
    }

    /// Returns the messages that are due now, each with its document.
    pub fn take_due_messages(&mut self, now: u64) -> Vec<(DocId, Vec<u8>)> {
        let mut words: Vec<(DocId, Vec<u8>)> = self.gone.drain(..).map(|doc| (doc, encode_goodbye())).collect();
        for (doc, own) in &mut self.own {
            let next = match (own.last_sent, own.changed) {
                (None, _) => now,
                (Some(said), true) => said + MIN_PRESENCE_INTERVAL_MS,
                (Some(said), false) => {
                    said + if own.slow { VOLUME_HEARTBEAT_INTERVAL_MS } else { HEARTBEAT_INTERVAL_MS }
                }
            };
            if next <= now {
                (own.last_sent, own.changed) = (Some(now), false);
                words.push((*doc, encode_snapshot(&own.state)));
            }
        }
        words
    }

    /// Returns the goodbye messages for all documents, when the program ends.
    pub fn take_goodbyes(&mut self) -> Vec<(DocId, Vec<u8>)> {
        let own = std::mem::take(&mut self.own);
        own.into_iter().filter(|(_, own)| own.last_sent.is_some()).map(|(doc, _)| (doc, encode_goodbye())).collect()
    }

    /// Handles an ephemeral message about a document. Returns whether it changes who is present, or where. Unreadable
    /// messages and other kinds change nothing.
    pub fn receive(&mut self, now: u64, doc: DocId, from: &PeerId, data: &[u8]) -> bool {
        let Ok(Some(said)) = decode_message(data) else { return false };
        let slow = self.own.get(&doc).is_some_and(|own| own.slow);
        let documents = self.others.len();
        let here = match self.others.entry(doc) {
            std::collections::btree_map::Entry::Occupied(here) => here.into_mut(),
            std::collections::btree_map::Entry::Vacant(_) if documents >= MAX_PRESENCE_DOCUMENTS => return false,
            std::collections::btree_map::Entry::Vacant(none) => none.insert(BTreeMap::new()),
        };
        let known = here.len();
        let state = match said {
            PresenceChange::Goodbye => {
                let gone = here.remove(from).is_some();
                if here.is_empty() {
                    self.others.remove(&doc);
                }
                return gone;
            }
            PresenceChange::Beat => None,
            PresenceChange::State(state) => Some(state),
        };
        match here.get_mut(from) {
            Some(other) => {
                other.last_heard = now;
                state.is_some_and(|state| std::mem::replace(&mut other.state, state.clone()) != state)
            }
            None if known >= MAX_PRESENT => false,
            None => {
                here.insert(from.clone(), OtherPresence { state: state.unwrap_or_default(), last_heard: now, slow });
                if known < MAX_GREETED_PEERS
                    && let Some(own) = self.own.get_mut(&doc)
                {
                    own.changed = true;
                }
                true
            }
        }
    }

    /// Expires people who were silent for too long. Returns the affected documents.
    pub fn expire_silent(&mut self, now: u64) -> Vec<DocId> {
        let mut changed = Vec::new();
        self.others.retain(|doc, here| {
            let before = here.len();
            here.retain(|_, other| {
                now < other.last_heard + if other.slow { VOLUME_SILENCE_TIMEOUT_MS } else { SILENCE_TIMEOUT_MS }
            });
            if here.len() != before {
                changed.push(*doc);
            }
            !here.is_empty()
        });
        changed
    }

    /// Returns the other people who are viewing a document.
    pub fn others_at(&self, doc: DocId) -> Vec<(PeerId, PresentPerson)> {
        let here = self.others.get(&doc).into_iter().flatten();
        here.map(|(peer, other)| (peer.clone(), other.state.clone())).collect()
    }
}

fn encode_envelope(kind: &str, fields: usize, write: impl FnOnce(&mut CborWriter)) -> Vec<u8> {
    let mut out = CborWriter::default();
    out.write_map(1).write_text(PRESENCE_FIELD).write_map(1 + fields).write_text("type").write_text(kind);
    write(&mut out);
    out.bytes
}

fn encode_goodbye() -> Vec<u8> {
    encode_envelope("goodbye", 0, |_| ())
}

fn encode_snapshot(state: &PresentPerson) -> Vec<u8> {
    encode_envelope("snapshot", 1, |out| {
        out.write_text("state").write_map(3);
        out.write_text("user")
            .write_map(2)
            .write_text("name")
            .write_text(truncate_name(&state.name))
            .write_text("device")
            .write_text(truncate_name(&state.device));
        let place = |out: &mut CborWriter, (block, at): (BlockId, usize)| {
            out.write_array(2).write_text(&block.to_string()).write_number(at as u64);
        };
        let carets = &state.carets[..state.carets.len().min(MAX_PRESENCE_MARKS)];
        out.write_text("carets").write_array(carets.len());
        for mark in carets {
            out.write_map(2).write_text("at");
            place(out, mark.at);
            out.write_text("anchor");
            place(out, mark.anchor);
        }
        let running = &state.running[..state.running.len().min(MAX_PRESENCE_MARKS)];
        out.write_text("running").write_array(running.len());
        for cell in running {
            out.write_text(&cell.to_string());
        }
    })
}

/// Truncates a name to the length that is sent and displayed.
fn truncate_name(name: &str) -> &str {
    let mut end = name.len().min(MAX_PERSON_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Decodes a message; `None` if it isn't about presence.
fn decode_message(data: &[u8]) -> Result<Option<PresenceChange>, CborError> {
    if data.len() > MAX_PRESENCE_BYTES {
        return Err("it is too long");
    }
    let mut reader = CborReader::new(data);
    let mut said = None;
    for _ in 0..reader.read_map(64)? {
        if reader.read_text(MAX_PERSON_NAME_BYTES)? == PRESENCE_FIELD {
            said = read_message(&mut reader)?;
        } else {
            reader.skip_value()?;
        }
    }
    Ok(said)
}

fn read_message(reader: &mut CborReader<'_>) -> Result<Option<PresenceChange>, CborError> {
    let (mut kind, mut state) = (String::new(), None);
    for _ in 0..reader.read_map(64)? {
        match reader.read_text(MAX_PERSON_NAME_BYTES)? {
            "type" => kind = reader.read_text(MAX_PERSON_NAME_BYTES)?.to_owned(),
            "state" => state = Some(read_state(reader)?),
            _ => reader.skip_value()?,
        }
    }
    Ok(match kind.as_str() {
        "snapshot" => state.map(PresenceChange::State),
        // An update of one field by another client: it's present, at least.
        "heartbeat" | "update" => Some(PresenceChange::Beat),
        "goodbye" => Some(PresenceChange::Goodbye),
        _ => None,
    })
}

/// Reads a person's state. Fields of other programs are skipped, even if they have the same names with other types.
fn read_state(reader: &mut CborReader<'_>) -> Result<PresentPerson, CborError> {
    let mut state = PresentPerson::default();
    for _ in 0..reader.read_map(256)? {
        let name = reader.read_text(MAX_PERSON_NAME_BYTES)?.to_owned();
        let mut field = reader.clone();
        let read = match name.as_str() {
            "user" => read_user(&mut field, &mut state),
            "carets" => read_carets(&mut field).map(|carets| state.carets = carets),
            "running" => read_running(&mut field).map(|running| state.running = running),
            _ => Err("unknown"),
        };
        match read {
            Ok(()) => *reader = field,
            Err(_) => reader.skip_value()?,
        }
    }
    Ok(state)
}

fn read_user(reader: &mut CborReader<'_>, state: &mut PresentPerson) -> Result<(), CborError> {
    let text = |reader: &mut CborReader<'_>| -> Result<String, CborError> {
        let plain = |letter: &char| !letter.is_control();
        Ok(truncate_name(&reader.read_text(MAX_PRESENCE_BYTES)?.chars().filter(plain).collect::<String>()).to_owned())
    };
    for _ in 0..reader.read_map(64)? {
        match reader.read_text(MAX_PERSON_NAME_BYTES)? {
            "name" => state.name = text(reader)?,
            "device" => state.device = text(reader)?,
            _ => reader.skip_value()?,
        }
    }
    Ok(())
}

fn read_block(reader: &mut CborReader<'_>) -> Result<BlockId, CborError> {
    reader.read_text(MAX_PERSON_NAME_BYTES)?.parse().map_err(|_| "a block was expected")
}

fn read_place(reader: &mut CborReader<'_>) -> Result<(BlockId, usize), CborError> {
    if reader.read_array(2)? != 2 {
        return Err("a place was expected");
    }
    Ok((read_block(reader)?, usize::try_from(reader.read_number()?).map_err(|_| "a place was expected")?))
}

fn read_carets(reader: &mut CborReader<'_>) -> Result<Vec<CaretMark>, CborError> {
    let mut carets = Vec::new();
    for _ in 0..reader.read_array(MAX_PRESENCE_MARKS as u64)? {
        let (mut at, mut anchor) = (None, None);
        for _ in 0..reader.read_map(8)? {
            match reader.read_text(MAX_PERSON_NAME_BYTES)? {
                "at" => at = Some(read_place(reader)?),
                "anchor" => anchor = Some(read_place(reader)?),
                _ => reader.skip_value()?,
            }
        }
        let at = at.ok_or("a caret without a place")?;
        carets.push(CaretMark { at, anchor: anchor.unwrap_or(at) });
    }
    Ok(carets)
}

fn read_running(reader: &mut CborReader<'_>) -> Result<Vec<BlockId>, CborError> {
    (0..reader.read_array(MAX_PRESENCE_MARKS as u64)?).map(|_| read_block(reader)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: DocId = DocId([7; 16]);

    fn peer(name: &str) -> PeerId {
        PeerId(name.to_owned())
    }

    fn desk() -> PresentPerson {
        let (from, to) = ((BlockId(1), 3), (BlockId(2), 0));
        let carets = vec![CaretMark { at: from, anchor: from }, CaretMark { at: to, anchor: from }];
        PresentPerson { name: "desk é".to_owned(), device: "ab12".to_owned(), carets, running: vec![BlockId(9)] }
    }

    #[test]
    fn what_is_said_is_understood_and_silence_ends_it() {
        let (mut one, mut two) = (DocumentPresence::default(), DocumentPresence::default());
        one.set_own(DOC, Some(desk()), false);
        two.set_own(DOC, Some(PresentPerson::default()), false);
        assert_eq!(one.next_due(), Some(0));
        let words = one.take_due_messages(1_000);
        assert_eq!(words.len(), 1);
        assert!(two.take_due_messages(1_000).len() == 1 && two.next_due() == Some(4_000));
        assert!(two.receive(1_000, DOC, &peer("one"), &words[0].1));
        assert_eq!(two.others_at(DOC), [(peer("one"), desk())]);
        assert!(!two.receive(1_100, DOC, &peer("one"), &words[0].1), "the same again is no news");
        // A newcomer gets an answer, but not immediately after the last message.
        assert!(two.take_due_messages(1_100).is_empty());
        assert_eq!(two.take_due_messages(1_200).len(), 1);
        // Changes are batched, and without changes there is a periodic message.
        one.set_own(DOC, Some(PresentPerson { carets: Vec::new(), ..desk() }), false);
        assert!(one.take_due_messages(1_100).is_empty());
        assert_eq!(one.take_due_messages(1_200).len(), 1);
        assert_eq!((one.take_due_messages(4_199).len(), one.take_due_messages(4_200).len()), (0, 1));
        assert!(two.expire_silent(1_100 + SILENCE_TIMEOUT_MS - 1).is_empty());
        assert_eq!(two.expire_silent(1_100 + SILENCE_TIMEOUT_MS), [DOC]);
        assert!(two.others_at(DOC).is_empty());
        const { assert!(SILENCE_TIMEOUT_MS < 10_000, "who is lost is gone within ten seconds") };
        // A person who leaves sends a goodbye.
        assert!(two.receive(0, DOC, &peer("one"), &words[0].1));
        one.set_own(DOC, None, false);
        let goodbye = one.take_due_messages(5_000);
        assert!(two.receive(1, DOC, &peer("one"), &goodbye[0].1) && two.others_at(DOC).is_empty());
        assert_eq!(two.take_goodbyes().len(), 1);
        assert_eq!(one.next_due(), None);
    }

    #[test]
    fn what_other_programs_say_is_taken_as_far_as_it_is_understood() {
        let mut presence = DocumentPresence::default();
        let mut foreign = CborWriter::default();
        foreign
            .write_map(1)
            .write_text(PRESENCE_FIELD)
            .write_map(2)
            .write_text("type")
            .write_text("snapshot")
            .write_text("state")
            .write_map(2);
        foreign
            .write_text("carets")
            .write_map(1)
            .write_text("x")
            .write_number(3)
            .write_text("user")
            .write_map(1)
            .write_text("name")
            .write_text("J\u{7}S");
        assert!(presence.receive(0, DOC, &peer("js"), &foreign.bytes));
        assert_eq!(presence.others_at(DOC)[0].1.name, "JS");
        let mut beat = CborWriter::default();
        beat.write_map(1).write_text(PRESENCE_FIELD).write_map(1).write_text("type").write_text("heartbeat");
        assert!(!presence.receive(5_000, DOC, &peer("js"), &beat.bytes));
        assert!(presence.expire_silent(9_000).is_empty(), "a heartbeat keeps it there");
        let mut other = CborWriter::default();
        other.write_map(1).write_text("cursor").write_number(3);
        assert!(!presence.receive(0, DOC, &peer("x"), &other.bytes), "it is about something else");
        // Truncated messages do no harm, and messages that are too long aren't read.
        let whole = encode_snapshot(&desk());
        for end in 0..whole.len() {
            assert!(!presence.receive(0, DOC, &peer("x"), &whole[..end]));
        }
        let mut long = CborWriter::default();
        long.write_map(1)
            .write_text(PRESENCE_FIELD)
            .write_map(1)
            .write_text("type")
            .write_text(&"x".repeat(MAX_PRESENCE_BYTES));
        assert!(!presence.receive(0, DOC, &peer("x"), &long.bytes));
        for number in 0..1_000 {
            presence.receive(0, DOC, &peer(&number.to_string()), &whole);
            presence.receive(0, DocId([number as u8; 16]), &peer("x"), &whole);
        }
        assert!(presence.others_at(DOC).len() <= MAX_PRESENT);
        let long = PresentPerson { name: "é".repeat(100), ..PresentPerson::default() };
        presence.receive(0, DOC, &peer("js"), &encode_snapshot(&long));
        assert_eq!(truncate_name(&long.name).len(), MAX_PERSON_NAME_BYTES);
    }
}
