//! Documents' names as automerge-repo writes them: `automerge:` and 16 bytes in base 58 with a checksum (bs58check).

use crate::id::DocId;
use sha2::{Digest, Sha256};

const BASE58_ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Scheme of a document's address.
const ADDRESS_SCHEME: &str = "automerge:";
/// 20 bytes are at most this many digits.
const MAX_ADDRESS_DIGITS: usize = 28;

/// A document's name on the wire.
pub fn encode_document_name(doc: DocId) -> String {
    let mut bytes = doc.0.to_vec();
    bytes.extend(checksum(&doc.0));
    // Digits of base 58, the lowest first.
    let mut digits: Vec<u8> = Vec::with_capacity(MAX_ADDRESS_DIGITS);
    for byte in &bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let letters = std::iter::repeat_n(0, zeros).chain(digits.into_iter().rev());
    letters.map(|digit| char::from(BASE58_ALPHABET[usize::from(digit)])).collect()
}

/// Reads a document's name back; `None` when it is none (wrong letters, length or checksum).
pub fn decode_document_name(text: &str) -> Option<DocId> {
    if text.len() > MAX_ADDRESS_DIGITS {
        return None;
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(20); // the lowest first
    for letter in text.bytes() {
        let mut carry = BASE58_ALPHABET.iter().position(|known| *known == letter)? as u32;
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        while carry > 0 {
            bytes.push((carry & 0xff) as u8);
            carry >>= 8;
        }
    }
    let zeros = text.bytes().take_while(|letter| *letter == b'1').count();
    bytes.extend(std::iter::repeat_n(0, zeros));
    bytes.reverse();
    let (id, sum) = bytes.split_at_checked(16)?;
    let id: [u8; 16] = id.try_into().ok()?;
    (sum == checksum(&id)).then_some(DocId(id))
}

/// A document's address: `automerge:` and its name.
pub fn document_address(doc: DocId) -> String {
    format!("{ADDRESS_SCHEME}{}", encode_document_name(doc))
}

/// Reads an address (or a bare name) back.
pub fn parse_document_address(text: &str) -> Option<DocId> {
    decode_document_name(text.strip_prefix(ADDRESS_SCHEME).unwrap_or(text))
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let twice = Sha256::digest(Sha256::digest(bytes));
    [twice[0], twice[1], twice[2], twice[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_automerge_repo() {
        // Made by npm `@automerge/automerge-repo` 2.5 (`stringifyAutomergeUrl`).
        let known = [
            ([0; 16], "automerge:11111111111111114Ki9Gx"),
            (*b"tracebook-sync-7", "automerge:2d6R8DMXJxgobcVerRLvBPqRPouJ"),
            ([0xff; 16], "automerge:4ZrjxJnU1LA5xSyrWMNuXTozYEvA"),
        ];
        for (bytes, text) in known {
            assert_eq!(document_address(DocId(bytes)), text);
            assert_eq!(parse_document_address(text), Some(DocId(bytes)));
        }
        for seed in 0..200_u8 {
            let id = DocId(std::array::from_fn(|at| seed.wrapping_mul(37).wrapping_add((at as u8).wrapping_mul(seed))));
            assert_eq!(parse_document_address(&document_address(id)), Some(id));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let good = encode_document_name(DocId([7; 16]));
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] = if bad[at] == b'2' { b'3' } else { b'2' };
            assert_eq!(decode_document_name(std::str::from_utf8(&bad).expect("ascii")), None, "{at}");
        }
        for bad in ["", "0", "automerge:", "\u{e9}", &"z".repeat(29), &good[1..], "1111"] {
            assert_eq!(decode_document_name(bad), None, "{bad}");
        }
    }
}
