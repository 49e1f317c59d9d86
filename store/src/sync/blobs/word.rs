//! What peers say of blobs, as bytes: a byte for what it is, the volume, the hash, and what belongs to it. Every length
//! is checked before it is believed.

use super::{Item, PIECE};
use crate::id::{BlobHash, DocId};

/// One message names at most so many blobs.
pub(super) const NAMED: usize = 256;

/// Why a peer does not take what it was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Room = 0,
    Right = 1,
    Large = 2,
}

impl Why {
    pub(super) fn words(self) -> &'static str {
        match self {
            Why::Room => "pictures and large outputs of this device are not taken: no room is left",
            Why::Right => "pictures and large outputs of this device are not taken: it may only read",
            Why::Large => "a file of this device is not taken: it is too large",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// The sender has these of a volume, and gives them.
    Have(DocId, Vec<(BlobHash, u64)>),
    /// It wants a piece.
    Want(Item, u64),
    /// A piece: where, how large the whole is.
    Piece(Item, u64, u64, &'a [u8]),
    /// It does not have it, or does not give it.
    Lack(Item),
    /// It does not take what it was offered.
    Refuse(Item, Why),
}

impl<'a> Word<'a> {
    pub(super) fn read(data: &'a [u8]) -> Option<Word<'a>> {
        let (kind, rest) = data.split_first()?;
        let (volume, rest) = rest.split_first_chunk::<16>()?;
        let volume = DocId(*volume);
        if *kind == 0 {
            let (blobs, odd) = rest.as_chunks::<40>();
            if !odd.is_empty() || blobs.is_empty() || blobs.len() > NAMED {
                return None;
            }
            let blob = |bytes: &[u8; 40]| {
                let (hash, size) = bytes.split_first_chunk::<32>()?;
                Some((BlobHash(*hash), u64::from_le_bytes(size.try_into().ok()?)))
            };
            return Some(Word::Have(volume, blobs.iter().map(blob).collect::<Option<_>>()?));
        }
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let item = Item { volume, hash: BlobHash(*hash) };
        Some(match (kind, rest) {
            (1, rest) => Word::Want(item, u64::from_le_bytes(rest.try_into().ok()?)),
            (2, rest) => {
                let (offset, rest) = rest.split_first_chunk::<8>()?;
                let (size, bytes) = rest.split_first_chunk::<8>()?;
                if bytes.len() as u64 > PIECE {
                    return None;
                }
                Word::Piece(item, u64::from_le_bytes(*offset), u64::from_le_bytes(*size), bytes)
            }
            (3, []) => Word::Lack(item),
            (4, [why]) => {
                let why = [Why::Room, Why::Right, Why::Large].into_iter().find(|one| *one as u8 == *why)?;
                Word::Refuse(item, why)
            }
            _ => return None,
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let begin = |kind: u8, item: &Item| {
            let mut data = vec![kind];
            data.extend(item.volume.0);
            data.extend(item.hash.0);
            data
        };
        match self {
            Word::Have(volume, blobs) => {
                let mut data = vec![0];
                data.extend(volume.0);
                for (hash, size) in blobs {
                    data.extend(hash.0);
                    data.extend(size.to_le_bytes());
                }
                data
            }
            Word::Want(item, offset) => {
                let mut data = begin(1, item);
                data.extend(offset.to_le_bytes());
                data
            }
            Word::Piece(item, offset, size, bytes) => {
                let mut data = begin(2, item);
                data.extend(offset.to_le_bytes());
                data.extend(size.to_le_bytes());
                data.extend(*bytes);
                data
            }
            Word::Lack(item) => begin(3, item),
            Word::Refuse(item, why) => {
                let mut data = begin(4, item);
                data.push(*why as u8);
                data
            }
        }
    }
}
