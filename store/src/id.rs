//! Ids of documents, blocks, executions, messages, steps and blobs. All are plain numbers, formatted in lower-case
//! hexadecimal.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// 128 bits that identify a document (and its file, volume or workspace).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DocId(pub [u8; 16]);

/// 64-bit id of a block, unique in its note.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlockId(pub u64);

/// 64-bit id of an execution of a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ExecutionId(pub u64);

/// 64-bit id of a message, unique in its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MessageId(pub u64);

impl MessageId {
    /// The parent of a session's first message; another message with this parent starts a new branch.
    pub const SESSION_ROOT: MessageId = MessageId(0);
}

/// 64-bit id of a step, unique in its run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StepId(pub u64);

/// BLAKE3 hash of a blob's bytes; also its name on disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlobHash(pub [u8; 32]);

impl DocId {
    /// Creates the id of a new document from 16 random bytes. It's a valid UUID of version 4, because other programs
    /// that use the protocol (automerge-repo before 2) accept no other ids.
    pub fn random(bytes: [u8; 16]) -> DocId {
        DocId::with_uuid_version(bytes, 4)
    }

    /// Returns the id that always belongs to this name.
    pub fn of_name(name: &str) -> DocId {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&BlobHash::of(name.as_bytes()).0[..16]);
        DocId(bytes)
    }

    fn with_uuid_version(mut bytes: [u8; 16], version: u8) -> DocId {
        bytes[6] = bytes[6] & 0x0f | version << 4;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        DocId(bytes)
    }

    fn is_uuid(self) -> bool {
        matches!(self.0[6] >> 4, 1..=5) && self.0[8] >> 6 == 2
    }

    /// Returns the id of this note's outputs document. It's derived, so that two devices never create two.
    pub fn outputs_id(self) -> DocId {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 outputs of note");
        hasher.update(&self.0);
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        if self.is_uuid() { DocId::with_uuid_version(bytes, 5) } else { DocId(bytes) }
    }
}

impl DocId {
    /// Returns the id of this workspace's tool registry. It's derived, so that two devices never create two.
    pub fn registry_id(self) -> DocId {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 registry of workspace");
        hasher.update(&self.0);
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        DocId(bytes)
    }
}

impl DocId {
    /// Returns the id of the document with this volume's tools. It's derived, so that two devices never create two.
    pub fn tools_id(self) -> DocId {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 tools of volume");
        hasher.update(&self.0);
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        DocId::with_uuid_version(bytes, 5)
    }
}

impl DocId {
    /// Returns the id of the volume with the memories for this volume that are stored outside of its folder. It's
    /// derived, so that no table is needed to find it.
    pub fn memory_id(self) -> DocId {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 memory of volume");
        hasher.update(&self.0);
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        DocId::with_uuid_version(bytes, 5)
    }
}

impl BlobHash {
    /// Computes the hash of `bytes`.
    pub fn of(bytes: &[u8]) -> BlobHash {
        BlobHash(*blake3::hash(bytes).as_bytes())
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The error for a text that isn't a valid id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {digits} hexadecimal digits: {text}")]
pub struct IdParseError {
    /// Number of hexadecimal digits that the id has.
    pub digits: usize,
    /// The invalid text.
    pub text: String,
}

fn unhex<const N: usize>(text: &str) -> Result<[u8; N], IdParseError> {
    let bad = || IdParseError { digits: N * 2, text: text.to_owned() };
    if text.len() != N * 2 || !text.is_ascii() {
        return Err(bad());
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).map_err(|_| bad())?;
    }
    Ok(bytes)
}

macro_rules! named {
    ($name:ident, $to:expr, $from:expr) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&$to(self.0), f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl FromStr for $name {
            type Err = IdParseError;
            fn from_str(text: &str) -> Result<Self, IdParseError> {
                unhex(text).map($from).map($name)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdParseError;
            fn try_from(text: String) -> Result<Self, IdParseError> {
                text.parse()
            }
        }
    };
}

named!(DocId, |bytes: [u8; 16]| bytes, |bytes: [u8; 16]| bytes);
named!(BlockId, u64::to_be_bytes, u64::from_be_bytes);
named!(ExecutionId, u64::to_be_bytes, u64::from_be_bytes);
named!(MessageId, u64::to_be_bytes, u64::from_be_bytes);
named!(StepId, u64::to_be_bytes, u64::from_be_bytes);
named!(BlobHash, |bytes: [u8; 32]| bytes, |bytes: [u8; 32]| bytes);
