//! Seeded random numbers: PCG64 seeded as numpy seeds it, so that `default_rng(seed).random()` returns numpy's numbers.
//! Other distributions are correct, but their numbers differ from numpy's. Independent of Python.

const PCG_MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// State of a random number generator.
#[derive(Debug)]
pub(crate) struct Pcg64 {
    state: u128,
    step: u128,
    /// The second of two normally distributed numbers that were made at once, if it's unused.
    spare: Option<f64>,
}

/// Returns the words that numpy's `SeedSequence` makes of a seed, by a hash of Melissa O'Neill.
fn seed_words(seed: &[u32]) -> [u32; 8] {
    let mut constant = 0x43b0_d7e5_u32;
    let mut hash = |value: u32| {
        let value = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        let value = value.wrapping_mul(constant);
        value ^ (value >> 16)
    };
    let mix = |x: u32, y: u32| {
        let mixed = x.wrapping_mul(0xca01_f9dd).wrapping_sub(y.wrapping_mul(0x4973_f715));
        mixed ^ (mixed >> 16)
    };
    let mut pool = [0_u32; 4];
    for (at, word) in pool.iter_mut().enumerate() {
        *word = hash(seed.get(at).copied().unwrap_or(0));
    }
    for from in 0..4 {
        for to in 0..4 {
            if from != to {
                pool[to] = mix(pool[to], hash(pool[from]));
            }
        }
    }
    for word in seed.iter().skip(4) {
        for to in &mut pool {
            *to = mix(*to, hash(*word));
        }
    }
    let mut constant = 0x8b51_f9dd_u32;
    let mut out = [0; 8];
    for (at, word) in out.iter_mut().enumerate() {
        let value = pool[at % 4] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        let value = value.wrapping_mul(constant);
        *word = value ^ (value >> 16);
    }
    out
}

impl Pcg64 {
    /// Creates a generator from the 32-bit words of a seed, the lowest first.
    pub(crate) fn new(seed: &[u32]) -> Pcg64 {
        let words = seed_words(seed);
        let long = |at: usize| u128::from(words[at]) | (u128::from(words[at + 1]) << 32);
        let state = (long(0) << 64) | long(2);
        let sequence = (long(4) << 64) | long(6);
        let mut pcg = Pcg64 { state: 0, step: (sequence << 1) | 1, spare: None };
        pcg.advance();
        pcg.state = pcg.state.wrapping_add(state);
        pcg.advance();
        pcg
    }

    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(PCG_MULTIPLIER).wrapping_add(self.step);
    }

    /// Returns the next 64 random bits.
    #[allow(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.advance();
        let folded = ((self.state >> 64) as u64) ^ (self.state as u64);
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// Returns a random number from 0 (inclusive) to 1 (exclusive).
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a normally distributed number, by the polar method.
    pub(crate) fn next_normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.next_f64() - 1.0, 2.0 * self.next_f64() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// Returns a uniformly distributed integer below `end`.
    #[allow(clippy::cast_possible_truncation, reason = "the high half is what is wanted")]
    pub(crate) fn next_below(&mut self, end: u64) -> u64 {
        let limit = u64::MAX - (u64::MAX % end.max(1) + 1) % end.max(1);
        loop {
            let bits = self.next_u64();
            if bits <= limit {
                return bits % end.max(1);
            }
        }
    }
}
