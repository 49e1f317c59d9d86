//! Presence: who is at a document, where their carets are, which cells they run. Sent as ephemeral messages in the
//! format of automerge-repo's `DocumentPresence`, so that its clients see us and we see them. Not stored; silent peers
//! expire.
//!
//! Nothing here reads a clock: all times are milliseconds of one that only goes forward.

use super::cbor::{CborError, CborReader, CborWriter};
use super::wire::PeerId;
use crate::id::{BlockId, DocId};
use std::collections::BTreeMap;

/// What has changed is said this many milliseconds after the last word at the earliest.
pub const MIN_PRESENCE_INTERVAL_MS: u64 = 200;
/// How often presence at a note is repeated …
const HEARTBEAT_INTERVAL_MS: u64 = 3_000;
/// … and is gone after so long a silence.
const SILENCE_TIMEOUT_MS: u64 = 8_000;
/// The same for a volume as a whole: there it is of interest who is connected, not where.
const VOLUME_HEARTBEAT_INTERVAL_MS: u64 = 60_000;
const VOLUME_SILENCE_TIMEOUT_MS: u64 = 150_000;
/// Newcomers are greeted at once where so few are known; where there are more, they learn of them by and by.
const MAX_GREETED_PEERS: usize = 32;
/// People at one document, and documents, that are kept in mind.
const MAX_PRESENT: usize = 128;
const MAX_PRESENCE_DOCUMENTS: usize = 512;
/// Carets and cells of one of them.
const MAX_PRESENCE_MARKS: usize = 64;
/// Bytes of a name.
const MAX_PERSON_NAME_BYTES: usize = 64;
/// Bytes of a message.
const MAX_PRESENCE_BYTES: usize = 16 << 10;
/// The field by which automerge-repo knows such messages.
const PRESENCE_FIELD: &str = "__presence";

/// A caret, with the other end of its selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaretMark {
    /// Its block, and the offset in the block in bytes.
    pub at: (BlockId, usize),
    /// The same for the other end; equal where nothing is selected.
    pub anchor: (BlockId, usize),
}

/// A person at a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresentPerson {
    /// How the device is called.
    pub name: String,
    /// The beginning of its key, where it has one.
    pub device: String,
    /// Their carets and selections, in drawing order.
    pub carets: Vec<CaretMark>,
    /// The cells that they run.
    pub running: Vec<BlockId>,
}

/// What we say of ourselves about a document.
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

/// Who is where, ourselves included.
#[derive(Debug, Default)]
pub struct DocumentPresence {
    own: BTreeMap<DocId, OwnPresence>,
    gone: Vec<DocId>,
    others: BTreeMap<DocId, BTreeMap<PeerId, OtherPresence>>,
}

/// What a message was about.
enum PresenceChange {
    State(PresentPerson),
    Beat,
    Goodbye,
}

impl DocumentPresence {
    /// What is to be said of us about this document from now on; `None`: that we are gone. `slow`: it is a volume's.
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

    /// All of it is to be said again: there is a new connection.
    pub fn resend_all(&mut self) {
        self.own.values_mut().for_each(|own| own.changed = true);
    }

    /// Returns when to act next: to send, or to expire somebody.
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

    /// This device is called so from now on.
    pub fn set_device_name(&mut self, name: &str, device: &str) {
        for own in self.own.values_mut().filter(|own| own.state.name != name || own.state.device != device) {
            (own.state.name, own.state.device) = (name.to_owned(), device.to_owned());
            own.changed = true;
        }
    }

    /// What is to be said now: about which document, and the message.
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

    /// Everything is to be said goodbye to: the program ends.
    pub fn take_goodbyes(&mut self) -> Vec<(DocId, Vec<u8>)> {
        let own = std::mem::take(&mut self.own);
        own.into_iter().filter(|(_, own)| own.last_sent.is_some()).map(|(doc, _)| (doc, encode_goodbye())).collect()
    }

    /// Handles an ephemeral message about a document. Returns whether it changes who is there, or where. Unreadable
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

    /// Who else is at a document.
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

/// As much of a name as is sent and shown.
fn truncate_name(name: &str) -> &str {
    let mut end = name.len().min(MAX_PERSON_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Reads a message; `None`: it is about something else.
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

/// Fields of other programs are skipped, even if they have our names and other types.
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
        // A newcomer is greeted, but not at once after the last word.
        assert!(two.take_due_messages(1_100).is_empty());
        assert_eq!(two.take_due_messages(1_200).len(), 1);
        // Changes are gathered, and without any there is a word now and then.
        one.set_own(DOC, Some(PresentPerson { carets: Vec::new(), ..desk() }), false);
        assert!(one.take_due_messages(1_100).is_empty());
        assert_eq!(one.take_due_messages(1_200).len(), 1);
        assert_eq!((one.take_due_messages(4_199).len(), one.take_due_messages(4_200).len()), (0, 1));
        assert!(two.expire_silent(1_100 + SILENCE_TIMEOUT_MS - 1).is_empty());
        assert_eq!(two.expire_silent(1_100 + SILENCE_TIMEOUT_MS), [DOC]);
        assert!(two.others_at(DOC).is_empty());
        const { assert!(SILENCE_TIMEOUT_MS < 10_000, "who is lost is gone within ten seconds") };
        // Who leaves says so.
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
        // No beginning of a message does harm, and none that is too long is read.
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
