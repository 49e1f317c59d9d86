//! Hashes by which changed pages are found: fast, with random keys, and different in each process.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;

/// Number of sums that are computed side by side, so that the processor needn't wait for one.
const LANES: usize = 4;
/// Number of bytes of a page that all lanes take together, 16 each.
const BLOCK_BYTES: usize = 16 * LANES;

/// Hashes pages with keys that no cell knows. Reading a page and hashing it takes half the time of comparing it with a
/// copy, because only one of them comes from memory. Two pages have the same hash once in 10^17 cases.
#[derive(Clone)]
pub(crate) struct PageHasher {
    seeds: [u64; LANES],
    keys: [u64; LANES],
}

impl Default for PageHasher {
    fn default() -> PageHasher {
        let random = RandomState::new();
        let number = |at: usize| random.hash_one(at);
        PageHasher { seeds: std::array::from_fn(number), keys: std::array::from_fn(|lane| number(LANES + lane)) }
    }
}

impl PageHasher {
    /// Returns the hash of a page, whose size is a multiple of 64 bytes.
    pub(crate) fn hash(&self, page: &[u8]) -> NonZeroU64 {
        let mut sums = self.seeds;
        let (blocks, _) = page.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            let (pairs, _) = words.as_chunks::<2>();
            for ((sum, key), [a, b]) in sums.iter_mut().zip(self.keys).zip(pairs) {
                *sum = folded_product(u64::from_ne_bytes(*a) ^ *sum, u64::from_ne_bytes(*b) ^ key);
            }
        }
        let [a, b, c, d] = sums;
        let hash = folded_product(folded_product(a, b ^ self.keys[0]) ^ c, d ^ self.keys[1]);
        NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN)
    }
}

/// Multiplies two numbers, and joins both halves of the product. Each bit of it depends on all bits.
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PAGE_BYTES;
    use std::collections::HashSet;

    #[test]
    fn pages_that_differ_in_a_bit_have_other_hashes() {
        let hasher = PageHasher::default();
        let mut hashes = HashSet::new();
        for filler in [0_u8, 1, 255] {
            let mut page = vec![filler; PAGE_BYTES];
            hashes.insert(hasher.hash(&page));
            for bit in 0..PAGE_BYTES * 8 {
                page[bit / 8] ^= 1 << (bit % 8);
                assert!(hashes.insert(hasher.hash(&page)), "bit {bit} of pages of {filler}");
                page[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(!hashes.insert(hasher.hash(&page)), "the same page has the same hash");
        }
        // Words that change places make another page.
        let mut page: Vec<u8> = (0..PAGE_BYTES).map(|at| (at / 8 % 251) as u8).collect();
        let before = hasher.hash(&page);
        for other in (16..PAGE_BYTES).step_by(8) {
            let (low, high) = page.split_at_mut(other);
            low[8..16].swap_with_slice(&mut high[..8]);
            let is_other = low[8..16] != high[..8];
            assert_eq!(hasher.hash(&page) != before, is_other, "word {other}");
            let (low, high) = page.split_at_mut(other);
            low[8..16].swap_with_slice(&mut high[..8]);
        }
    }
}
