//! Encoding of blob messages: a byte for the kind, the volume, the hash, and the rest. Every length is checked before
//! it's used.

use super::{PIECE_BYTES, VolumeBlob};
use crate::id::{BlobHash, DocId};

/// Maximum number of blobs named in one message.
pub(super) const MAX_NAMED_BLOBS: usize = 256;

/// Why a peer rejects an offered blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobRefusal {
    NoRoom = 0,
    ReadOnly = 1,
    TooLarge = 2,
}

impl BlobRefusal {
    pub(super) fn reason(self) -> &'static str {
        match self {
            BlobRefusal::NoRoom => "pictures and large outputs of this device are not taken: no room is left",
            BlobRefusal::ReadOnly => "pictures and large outputs of this device are not taken: it may only read",
            BlobRefusal::TooLarge => "a file of this device is not taken: it is too large",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlobMessage<'a> {
    /// The sender has these blobs of a volume (hash and size), and shares them.
    Have(DocId, Vec<(BlobHash, u64)>),
    /// The sender requests the piece at an offset.
    Want(VolumeBlob, u64),
    /// A piece: its offset, the size of the whole blob, and the bytes.
    Piece(VolumeBlob, u64, u64, &'a [u8]),
    /// The sender doesn't have the blob, or doesn't share it.
    Lack(VolumeBlob),
    /// The sender rejects the offered blob.
    Refuse(VolumeBlob, BlobRefusal),
    /// The sender has these files of saved states (hash and size), and shares them. Since version 2.
    HaveStates(DocId, Vec<(BlobHash, u64)>),
    /// The sender no longer shares this file of a saved state. Since version 2.
    Forget(VolumeBlob),
    /// The sender has handled a `Forget`. Since version 2.
    Forgotten(VolumeBlob),
}

impl<'a> BlobMessage<'a> {
    pub(super) fn decode(data: &'a [u8]) -> Option<BlobMessage<'a>> {
        let (kind, rest) = data.split_first()?;
        let (volume, rest) = rest.split_first_chunk::<16>()?;
        let volume = DocId(*volume);
        if matches!(kind, 0 | 5) {
            let (blobs, odd) = rest.as_chunks::<40>();
            if !odd.is_empty() || blobs.is_empty() || blobs.len() > MAX_NAMED_BLOBS {
                return None;
            }
            let blob = |bytes: &[u8; 40]| {
                let (hash, size) = bytes.split_first_chunk::<32>()?;
                Some((BlobHash(*hash), u64::from_le_bytes(size.try_into().ok()?)))
            };
            let blobs = blobs.iter().map(blob).collect::<Option<_>>()?;
            return Some(if *kind == 0 {
                BlobMessage::Have(volume, blobs)
            } else {
                BlobMessage::HaveStates(volume, blobs)
            });
        }
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let item = VolumeBlob { volume, hash: BlobHash(*hash) };
        Some(match (kind, rest) {
            (1, rest) => BlobMessage::Want(item, u64::from_le_bytes(rest.try_into().ok()?)),
            (2, rest) => {
                let (offset, rest) = rest.split_first_chunk::<8>()?;
                let (size, bytes) = rest.split_first_chunk::<8>()?;
                if bytes.len() as u64 > PIECE_BYTES {
                    return None;
                }
                BlobMessage::Piece(item, u64::from_le_bytes(*offset), u64::from_le_bytes(*size), bytes)
            }
            (3, []) => BlobMessage::Lack(item),
            (4, [why]) => {
                let why = [BlobRefusal::NoRoom, BlobRefusal::ReadOnly, BlobRefusal::TooLarge]
                    .into_iter()
                    .find(|one| *one as u8 == *why)?;
                BlobMessage::Refuse(item, why)
            }
            (6, []) => BlobMessage::Forget(item),
            (7, []) => BlobMessage::Forgotten(item),
            _ => return None,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let begin = |kind: u8, item: &VolumeBlob| {
            let mut data = vec![kind];
            data.extend(item.volume.0);
            data.extend(item.hash.0);
            data
        };
        match self {
            BlobMessage::Have(volume, blobs) | BlobMessage::HaveStates(volume, blobs) => {
                let mut data = vec![if matches!(self, BlobMessage::Have(..)) { 0 } else { 5 }];
                data.extend(volume.0);
                for (hash, size) in blobs {
                    data.extend(hash.0);
                    data.extend(size.to_le_bytes());
                }
                data
            }
            BlobMessage::Want(item, offset) => {
                let mut data = begin(1, item);
                data.extend(offset.to_le_bytes());
                data
            }
            BlobMessage::Piece(item, offset, size, bytes) => {
                let mut data = begin(2, item);
                data.extend(offset.to_le_bytes());
                data.extend(size.to_le_bytes());
                data.extend(*bytes);
                data
            }
            BlobMessage::Lack(item) => begin(3, item),
            BlobMessage::Refuse(item, why) => {
                let mut data = begin(4, item);
                data.push(*why as u8);
                data
            }
            BlobMessage::Forget(item) => begin(6, item),
            BlobMessage::Forgotten(item) => begin(7, item),
        }
    }
}
