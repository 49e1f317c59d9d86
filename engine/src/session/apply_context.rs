//! What one call of `Session::apply` carries along, and what it says where a command cannot be fulfilled.

use crate::effect::Effect;
use rand_core::RngCore;
use text::time::UnixMillis;

/// A rejected command, with a sentence for the user: what happened, to what, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub String);

/// Context of one call of `apply`: time, randomness and collected effects.
pub(in crate::session) struct ApplyContext<'a> {
    pub(in crate::session) now: UnixMillis,
    pub(in crate::session) rng: &'a mut dyn RngCore,
    pub(in crate::session) effects: Vec<Effect>,
    /// How many names were given so far.
    pub(in crate::session) last_issued_id: u64,
}

impl ApplyContext<'_> {
    /// A name for a step or a message: those made later sort behind those made before, also inside a millisecond.
    pub(in crate::session) fn next_id(&mut self) -> u64 {
        self.last_issued_id += 1;
        let time = u64::try_from(self.now.0).unwrap_or(0) << 22;
        time | (self.last_issued_id & 0x3ff) << 12 | (self.rng.next_u64() & 0xfff)
    }
}
