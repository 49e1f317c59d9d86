//! Numbers for new ids that depend only on a seed, so that two devices make the same ones.

use rand_core::{RngCore, impls};
use store::BlobHash;

/// A generator of numbers from hashes of a seed and a counter. Not for secrets.
pub(crate) struct DerivedIds {
    seed: String,
    count: u64,
}

impl DerivedIds {
    pub(crate) fn new(seed: String) -> DerivedIds {
        DerivedIds { seed, count: 0 }
    }
}

impl RngCore for DerivedIds {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        for part in dest.chunks_mut(32) {
            self.count += 1;
            let hash = BlobHash::of(format!("{} {}", self.count, self.seed).as_bytes());
            part.copy_from_slice(&hash.0[..part.len()]);
        }
    }
}
