//! The messages of automerge-repo's network protocol, version 1, as CBOR, one in each WebSocket message.
//!
//! Besides automerge-repo's messages there's [`WireMessage::Extension`], which is only sent to peers whose metadata
//! announces it. Input is untrusted: every length is checked before it's used.

use super::address;
use super::cbor::{CborError, CborReader, CborWriter};
use crate::id::DocId;
use std::fmt;

/// Supported version of the protocol.
pub const PROTOCOL_VERSION: &str = "1";
/// Version of [`WireMessage::Extension`] that a Tracebook peer announces in its metadata.
pub const EXTENSIONS_VERSION: u64 = 3;
/// Maximum size of a message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Maximum length of a name in bytes.
const MAX_WIRE_NAME_BYTES: usize = 256;
/// Maximum length of an error's text in bytes.
const MAX_ERROR_TEXT_BYTES: usize = 4_096;
/// Maximum number of names in a list.
const MAX_LISTED_NAMES: u64 = 1_024;

/// A peer's id, chosen by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub String);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a peer announces about itself in the handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerMetadata {
    /// Id of its storage, if it stores documents.
    pub storage: Option<String>,
    /// Whether it stores nothing after it disconnects.
    pub ephemeral: bool,
    /// Supported version of [`WireMessage::Extension`]; `None` for other programs.
    pub tracebook: Option<u64>,
    /// Supported version of [`super::blobs`]; `None` if it doesn't exchange blobs.
    pub blobs: Option<u64>,
}

/// One message of the sync protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireMessage {
    /// First message of the side that connected.
    Join {
        /// Peer id of the sender.
        sender: PeerId,
        /// Protocol versions that it supports.
        versions: Vec<String>,
        /// Metadata of the sender.
        metadata: PeerMetadata,
    },
    /// The answer to `Join`.
    Peer {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// The selected protocol version.
        version: String,
        /// Metadata of the sender.
        metadata: PeerMetadata,
    },
    /// The sender is about to disconnect.
    Leave {
        /// Peer id of the sender.
        sender: PeerId,
    },
    /// A sync message about a document that the sender does not have.
    Request {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// The requested document.
        doc: DocId,
        /// automerge's encoded sync message.
        data: Vec<u8>,
    },
    /// A sync message: changes to a document, or what the sender has of it.
    Sync {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// The document that's synced.
        doc: DocId,
        /// automerge's encoded sync message.
        data: Vec<u8>,
    },
    /// The sender doesn't have the document, or doesn't share it.
    Unavailable {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// The document that the sender doesn't have.
        doc: DocId,
    },
    /// An ephemeral message to all peers that sync a document; not stored.
    Ephemeral {
        /// The original author, not necessarily the peer that passed it on.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// Number of the message, increasing within the session.
        count: u64,
        /// The author's session: a new one for each start of the program.
        session: String,
        /// The document that the message is about.
        doc: DocId,
        /// The content, as CBOR because JavaScript peers expect that.
        data: Vec<u8>,
    },
    /// The sender reports a violation of the protocol.
    Error {
        /// What went wrong, as the sender describes it.
        message: String,
    },
    /// Subscribes to, or unsubscribes from, reports about the heads that others have.
    Subscription {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// Ids of storages to subscribe to.
        add: Vec<String>,
        /// Ids of storages to unsubscribe from.
        remove: Vec<String>,
    },
    /// Reports the heads that others have.
    RemoteHeads {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// The document whose heads are reported.
        doc: DocId,
        /// Storage id, its heads in encoded form, and the time of its report (milliseconds since 1970).
        heads: Vec<(String, Vec<String>, u64)>,
    },
    /// An extension message between Tracebook peers.
    Extension {
        /// Peer id of the sender.
        sender: PeerId,
        /// Peer id of the receiver.
        target: PeerId,
        /// Topic of the message; see [`super::peers`].
        topic: String,
        /// The content, read by the extension only.
        data: Vec<u8>,
    },
    /// A message of an unknown type, to be ignored.
    Unknown {
        /// The message's type as it was sent.
        kind: String,
    },
}

/// Why bytes aren't a valid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// More than [`MAX_MESSAGE_BYTES`] bytes.
    #[error("a message of {0} bytes is too large")]
    Large(usize),
    /// The bytes aren't a message of the protocol.
    #[error("not a message of the protocol: {0}")]
    Bad(&'static str),
    /// The message lacks a field.
    #[error("a message of kind \u{201c}{kind}\u{201d} lacks \u{201c}{field}\u{201d}")]
    Missing {
        /// Type of the message.
        kind: String,
        /// Name of the missing field.
        field: &'static str,
    },
}

impl From<CborError> for WireError {
    fn from(why: CborError) -> WireError {
        WireError::Bad(why)
    }
}

/// All fields that messages can have, as read.
#[derive(Default)]
struct MessageFields<'a> {
    kind: Option<&'a str>,
    sender: Option<&'a str>,
    target: Option<&'a str>,
    versions: Option<Vec<String>>,
    version: Option<&'a str>,
    metadata: PeerMetadata,
    doc: Option<DocId>,
    data: Option<&'a [u8]>,
    count: Option<u64>,
    session: Option<&'a str>,
    message: Option<&'a str>,
    add: Vec<String>,
    remove: Vec<String>,
    heads: Vec<(String, Vec<String>, u64)>,
    topic: Option<&'a str>,
}

/// Decodes one message.
///
/// # Errors
/// Returns a [`WireError`] if the bytes violate the protocol.
pub fn decode(bytes: &[u8]) -> Result<WireMessage, WireError> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(WireError::Large(bytes.len()));
    }
    let mut reader = CborReader::new(bytes);
    let mut fields = MessageFields::default();
    for _ in 0..reader.read_map(32)? {
        let key = reader.read_text(MAX_WIRE_NAME_BYTES)?;
        if reader.read_null()? {
            continue;
        }
        match key {
            "type" => fields.kind = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            "senderId" => fields.sender = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            "targetId" => fields.target = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            "supportedProtocolVersions" => fields.versions = Some(read_names(&mut reader)?),
            "selectedProtocolVersion" => fields.version = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            "peerMetadata" | "metadata" => fields.metadata = read_metadata(&mut reader)?,
            "documentId" => {
                let name = reader.read_text(MAX_WIRE_NAME_BYTES)?;
                fields.doc = Some(address::decode_document_name(name).ok_or("a document's name is none")?);
            }
            "data" => fields.data = Some(reader.read_bytes()?),
            "count" => fields.count = Some(reader.read_number()?),
            "sessionId" => fields.session = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            "message" => fields.message = Some(reader.read_text(MAX_ERROR_TEXT_BYTES)?),
            "add" => fields.add = read_names(&mut reader)?,
            "remove" => fields.remove = read_names(&mut reader)?,
            "newHeads" => fields.heads = read_heads(&mut reader)?,
            "topic" => fields.topic = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?),
            _ => reader.skip_value()?,
        }
    }
    if !reader.is_empty() {
        return Err(WireError::Bad("something follows it"));
    }
    build_message(fields)
}

fn build_message(fields: MessageFields<'_>) -> Result<WireMessage, WireError> {
    let kind = fields.kind.ok_or(WireError::Bad("it does not say what it is"))?;
    let missing = |field: &'static str| WireError::Missing { kind: kind.to_owned(), field };
    let peer = |name: Option<&str>, field| name.map(|name| PeerId(name.to_owned())).ok_or_else(|| missing(field));
    let sender = || peer(fields.sender, "senderId");
    let target = || peer(fields.target, "targetId");
    let doc = || fields.doc.ok_or_else(|| missing("documentId"));
    let data = || fields.data.map(<[u8]>::to_vec).ok_or_else(|| missing("data"));
    Ok(match kind {
        "join" => {
            let versions = fields.versions.clone().ok_or_else(|| missing("supportedProtocolVersions"))?;
            WireMessage::Join { sender: sender()?, versions, metadata: fields.metadata.clone() }
        }
        "peer" => {
            let version = fields.version.ok_or_else(|| missing("selectedProtocolVersion"))?.to_owned();
            WireMessage::Peer { sender: sender()?, target: target()?, version, metadata: fields.metadata.clone() }
        }
        "leave" => WireMessage::Leave { sender: sender()? },
        "request" => WireMessage::Request { sender: sender()?, target: target()?, doc: doc()?, data: data()? },
        "sync" => WireMessage::Sync { sender: sender()?, target: target()?, doc: doc()?, data: data()? },
        "doc-unavailable" => WireMessage::Unavailable { sender: sender()?, target: target()?, doc: doc()? },
        "ephemeral" => {
            let count = fields.count.ok_or_else(|| missing("count"))?;
            let session = fields.session.ok_or_else(|| missing("sessionId"))?.to_owned();
            WireMessage::Ephemeral { sender: sender()?, target: target()?, count, session, doc: doc()?, data: data()? }
        }
        "error" => WireMessage::Error { message: fields.message.unwrap_or_default().to_owned() },
        "remote-subscription-change" => {
            let (sender, target) = (sender()?, target()?);
            WireMessage::Subscription { sender, target, add: fields.add.clone(), remove: fields.remove.clone() }
        }
        "remote-heads-changed" => {
            let (sender, target, doc) = (sender()?, target()?, doc()?);
            WireMessage::RemoteHeads { sender, target, doc, heads: fields.heads.clone() }
        }
        "tracebook" => {
            let topic = fields.topic.ok_or_else(|| missing("topic"))?.to_owned();
            WireMessage::Extension { sender: sender()?, target: target()?, topic, data: data()? }
        }
        other => WireMessage::Unknown { kind: other.to_owned() },
    })
}

fn read_names(reader: &mut CborReader<'_>) -> Result<Vec<String>, WireError> {
    let count = reader.read_array(MAX_LISTED_NAMES)?;
    (0..count).map(|_| Ok(reader.read_text(MAX_WIRE_NAME_BYTES)?.to_owned())).collect()
}

fn read_metadata(reader: &mut CborReader<'_>) -> Result<PeerMetadata, WireError> {
    let mut metadata = PeerMetadata::default();
    for _ in 0..reader.read_map(32)? {
        let key = reader.read_text(MAX_WIRE_NAME_BYTES)?;
        if reader.read_null()? {
            continue;
        }
        match key {
            "storageId" => metadata.storage = Some(reader.read_text(MAX_WIRE_NAME_BYTES)?.to_owned()),
            "isEphemeral" => metadata.ephemeral = reader.read_bool()?,
            "tracebook" => metadata.tracebook = Some(reader.read_number()?),
            "tracebookBlobs" => metadata.blobs = Some(reader.read_number()?),
            _ => reader.skip_value()?,
        }
    }
    Ok(metadata)
}

fn read_heads(reader: &mut CborReader<'_>) -> Result<Vec<(String, Vec<String>, u64)>, WireError> {
    let mut all = Vec::new();
    for _ in 0..reader.read_map(MAX_LISTED_NAMES)? {
        let storage = reader.read_text(MAX_WIRE_NAME_BYTES)?.to_owned();
        let (mut heads, mut time) = (Vec::new(), 0);
        for _ in 0..reader.read_map(32)? {
            match reader.read_text(MAX_WIRE_NAME_BYTES)? {
                "heads" => heads = read_names(reader)?,
                "timestamp" => time = reader.read_number()?,
                _ => reader.skip_value()?,
            }
        }
        all.push((storage, heads, time));
    }
    Ok(all)
}

/// Encodes one message. For [`WireMessage::Unknown`], only the type is written.
pub fn encode(message: &WireMessage) -> Vec<u8> {
    let mut writer = CborWriter::default();
    let w = &mut writer;
    match message {
        WireMessage::Join { sender, versions, metadata } => {
            w.write_map(4).write_text("type").write_text("join").write_text("senderId").write_text(&sender.0);
            write_metadata(w, metadata);
            w.write_text("supportedProtocolVersions").write_array(versions.len());
            versions.iter().for_each(|version| _ = w.write_text(version));
        }
        WireMessage::Peer { sender, target, version, metadata } => {
            w.write_map(5).write_text("type").write_text("peer").write_text("senderId").write_text(&sender.0);
            write_metadata(w, metadata);
            w.write_text("selectedProtocolVersion").write_text(version).write_text("targetId").write_text(&target.0);
        }
        WireMessage::Leave { sender } => {
            w.write_map(2).write_text("type").write_text("leave").write_text("senderId").write_text(&sender.0);
        }
        WireMessage::Request { sender, target, doc, data } => {
            write_fields(w, 5, "request", sender, target, *doc).write_text("data").write_bytes(data);
        }
        WireMessage::Sync { sender, target, doc, data } => {
            write_fields(w, 5, "sync", sender, target, *doc).write_text("data").write_bytes(data);
        }
        WireMessage::Unavailable { sender, target, doc } => {
            write_fields(w, 4, "doc-unavailable", sender, target, *doc);
        }
        WireMessage::Ephemeral { sender, target, count, session, doc, data } => {
            let w = write_fields(w, 7, "ephemeral", sender, target, *doc);
            w.write_text("count")
                .write_number(*count)
                .write_text("sessionId")
                .write_text(session)
                .write_text("data")
                .write_bytes(data);
        }
        WireMessage::Error { message } => {
            w.write_map(2).write_text("type").write_text("error").write_text("message").write_text(message);
        }
        WireMessage::Subscription { sender, target, add, remove } => {
            w.write_map(5).write_text("type").write_text("remote-subscription-change");
            w.write_text("senderId").write_text(&sender.0).write_text("targetId").write_text(&target.0);
            for (key, names) in [("add", add), ("remove", remove)] {
                w.write_text(key).write_array(names.len());
                names.iter().for_each(|name| _ = w.write_text(name));
            }
        }
        WireMessage::RemoteHeads { sender, target, doc, heads } => {
            write_fields(w, 5, "remote-heads-changed", sender, target, *doc)
                .write_text("newHeads")
                .write_map(heads.len());
            for (storage, heads, time) in heads {
                w.write_text(storage).write_map(2).write_text("heads").write_array(heads.len());
                heads.iter().for_each(|head| _ = w.write_text(head));
                w.write_text("timestamp").write_number(*time);
            }
        }
        WireMessage::Extension { sender, target, topic, data } => {
            w.write_map(5).write_text("type").write_text("tracebook").write_text("senderId").write_text(&sender.0);
            w.write_text("targetId")
                .write_text(&target.0)
                .write_text("topic")
                .write_text(topic)
                .write_text("data")
                .write_bytes(data);
        }
        WireMessage::Unknown { kind } => {
            w.write_map(1).write_text("type").write_text(kind);
        }
    }
    writer.bytes
}

fn write_fields<'w>(
    writer: &'w mut CborWriter,
    fields: usize,
    kind: &str,
    sender: &PeerId,
    target: &PeerId,
    doc: DocId,
) -> &'w mut CborWriter {
    writer
        .write_map(fields)
        .write_text("type")
        .write_text(kind)
        .write_text("documentId")
        .write_text(&address::encode_document_name(doc));
    writer.write_text("senderId").write_text(&sender.0).write_text("targetId").write_text(&target.0)
}

fn write_metadata(writer: &mut CborWriter, metadata: &PeerMetadata) {
    let further = [metadata.storage.is_some(), metadata.tracebook.is_some(), metadata.blobs.is_some()];
    writer.write_text("peerMetadata").write_map(1 + further.into_iter().filter(|there| *there).count());
    if let Some(storage) = &metadata.storage {
        writer.write_text("storageId").write_text(storage);
    }
    writer.write_text("isEphemeral").write_bool(metadata.ephemeral);
    if let Some(version) = metadata.tracebook {
        writer.write_text("tracebook").write_number(version);
    }
    if let Some(version) = metadata.blobs {
        writer.write_text("tracebookBlobs").write_number(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unhex(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hex")).collect()
    }

    fn id(name: &str) -> PeerId {
        PeerId(name.to_owned())
    }

    /// Generated by the CBOR encoder of npm `@automerge/automerge-repo` 2.5.6.
    #[test]
    fn what_automerge_repo_writes_is_read() {
        let join = "b900046474797065646a6f696e6873656e6465724964646a732d316c706565724d65746164617461b900026973746f72\
                    6167654964f76b6973457068656d6572616cf57819737570706f7274656450726f746f636f6c56657273696f6e738161\
                    31";
        let metadata = PeerMetadata { ephemeral: true, ..PeerMetadata::default() };
        let expected = WireMessage::Join { sender: id("js-1"), versions: vec!["1".to_owned()], metadata };
        assert_eq!(decode(&unhex(join)), Ok(expected));
        let sync = "b9000564747970656473796e636873656e6465724964646a732d31687461726765744964636875626a646f63756d656e\
                    744964781c344e4d4e6e6b4d684c386a5872644a396a616d533538504156645875646461746143616263";
        let doc = address::decode_document_name("4NMNnkMhL8jXrdJ9jamS58PAVdXu").expect("a name");
        let expected = WireMessage::Sync { sender: id("js-1"), target: id("hub"), doc, data: b"abc".to_vec() };
        assert_eq!(decode(&unhex(sync)), Ok(expected));
        let ephemeral = "b90007647479706569657068656d6572616c6873656e6465724964646a732d316874617267657449646368756265\
                         636f756e741a000111706973657373696f6e496461736a646f63756d656e744964781c344e4d4e6e6b4d684c386a\
                         5872644a396a616d533538504156645875646461746141\
                         78";
        let (count, session, data) = (70_000, "s".to_owned(), b"x".to_vec());
        let expected = WireMessage::Ephemeral { sender: id("js-1"), target: id("hub"), count, session, doc, data };
        assert_eq!(decode(&unhex(ephemeral)), Ok(expected));
        let subscription = "b900056474797065781a72656d6f74652d737562736372697074696f6e2d6368616e67656873656e6465724964\
                            646a732d3168746172676574496463687562636164648161616672656d6f7665f7";
        let expected = WireMessage::Subscription {
            sender: id("js-1"),
            target: id("hub"),
            add: vec!["a".to_owned()],
            remove: vec![],
        };
        assert_eq!(decode(&unhex(subscription)), Ok(expected));
        let heads = "b9000564747970657472656d6f74652d68656164732d6368616e6765646873656e6465724964646a732d316874617267\
                     65744964636875626a646f63756d656e744964781c344e4d4e6e6b4d684c386a5872644a396a616d5335385041566458\
                     75686e65774865616473b90001627374b900026568656164738161716974696d657374616d70fb427a0c4506c00000";
        let heads_there = vec![("st".to_owned(), vec!["q".to_owned()], 1_790_000_000_000)];
        let expected = WireMessage::RemoteHeads { sender: id("js-1"), target: id("hub"), doc, heads: heads_there };
        assert_eq!(decode(&unhex(heads)), Ok(expected));
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9 \u{e4}\u{1f600}-]{0,40}"
    }

    fn any_message() -> impl Strategy<Value = WireMessage> {
        let two = (name(), name()).prop_map(|(sender, target)| (PeerId(sender), PeerId(target)));
        let about = (any::<[u8; 16]>().prop_map(DocId), proptest::collection::vec(any::<u8>(), 0..300));
        let version = || proptest::option::of(any::<u64>());
        let metadata = (proptest::option::of(name()), any::<bool>(), version(), version());
        let metadata = metadata.prop_map(|(storage, ephemeral, tracebook, blobs)| PeerMetadata {
            storage,
            ephemeral,
            tracebook,
            blobs,
        });
        let names = || proptest::collection::vec(name(), 0..30);
        let heads = proptest::collection::vec((name(), names(), any::<u64>()), 0..5);
        (two, about, metadata, (names(), names(), heads), (any::<u64>(), name()), 0..11_u8).prop_map(
            |((sender, target), (doc, data), metadata, (add, remove, heads), (count, text), kind)| match kind {
                0 => WireMessage::Join { sender, versions: add, metadata },
                1 => WireMessage::Peer { sender, target, version: text, metadata },
                2 => WireMessage::Leave { sender },
                3 => WireMessage::Request { sender, target, doc, data },
                4 => WireMessage::Sync { sender, target, doc, data },
                5 => WireMessage::Unavailable { sender, target, doc },
                6 => WireMessage::Ephemeral { sender, target, count, session: text, doc, data },
                7 => WireMessage::Error { message: text },
                8 => WireMessage::Subscription { sender, target, add, remove },
                9 => WireMessage::RemoteHeads { sender, target, doc, heads },
                _ => WireMessage::Extension { sender, target, topic: text, data },
            },
        )
    }

    proptest! {
        #[test]
        fn messages_come_back_as_they_were(message in any_message()) {
            prop_assert_eq!(decode(&encode(&message)), Ok(message));
        }

        #[test]
        fn damaged_messages_are_read_or_refused(message in any_message(), at in any::<usize>(), byte in any::<u8>()) {
            let mut bytes = encode(&message);
            let at = at % bytes.len();
            let _ = decode(&bytes[..at]);
            bytes[at] = byte;
            let _ = decode(&bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert_eq!(decode(&vec![0; MAX_MESSAGE_BYTES + 1]), Err(WireError::Large(MAX_MESSAGE_BYTES + 1)));
        // A map and a text that claim to be huge, endless nesting, indefinite lengths.
        for hex in ["bb00ffffffffffffff", "a17affffffff", "a164747970657affffffff", "bf6474797065646a6f696eff"] {
            assert!(decode(&unhex(hex)).is_err(), "{hex}");
        }
        let mut deep = unhex("a16178");
        deep.extend([0x81; 100_000]);
        assert_eq!(decode(&deep), Err(WireError::Bad("it is nested too deep")));
    }
}
