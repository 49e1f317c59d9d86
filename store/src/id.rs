//! Names of things: documents, blocks, executions, blobs. All are plain numbers, shown in lower-case hexadecimal.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// 128 bits that name a document (and the file, volume or workspace that it stands for).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DocId(pub [u8; 16]);

/// 64 bits that name a block inside its note.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlockId(pub u64);

/// 64 bits that name one execution of a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ExecutionId(pub u64);

/// BLAKE3 hash of a blob's bytes; also its name on disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlobHash(pub [u8; 32]);

impl DocId {
    /// The outputs document that belongs to this note. Derived, so that two devices never make two.
    pub fn outputs(self) -> DocId {
        let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 outputs of note");
        hasher.update(&self.0);
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        DocId(bytes)
    }
}

impl BlobHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> BlobHash {
        BlobHash(*blake3::hash(bytes).as_bytes())
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn unhex<const N: usize>(text: &str) -> Result<[u8; N], String> {
    let bad = || format!("not {} hexadecimal digits: {text}", N * 2);
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
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                unhex(text).map($from).map($name)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    };
}

named!(DocId, |bytes: [u8; 16]| bytes, |bytes: [u8; 16]| bytes);
named!(BlockId, u64::to_be_bytes, u64::from_be_bytes);
named!(ExecutionId, u64::to_be_bytes, u64::from_be_bytes);
named!(BlobHash, |bytes: [u8; 32]| bytes, |bytes: [u8; 32]| bytes);
