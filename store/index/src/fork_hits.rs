//! Hits of searches where projects have forks: a copy of a note isn't found beside the note itself.

use crate::{PassageKind, SearchAnswer, SearchRequest};
use std::collections::BTreeMap;

/// Maximum number by which a query's limit is multiplied because hits in forks are left out.
const MAX_FORK_FACTOR: usize = 4;

impl SearchRequest {
    /// Returns the query with a limit at which enough hits remain without those that forks have, too.
    #[must_use]
    pub fn widened_for_forks(&self, forks: &BTreeMap<String, String>) -> SearchRequest {
        let limit = self.limit.saturating_mul(1 + forks.len().min(MAX_FORK_FACTOR));
        SearchRequest { limit, ..self.clone() }
    }
}

impl SearchAnswer {
    /// Removes hits in notes of other forks, and for a query in a fork those of the volume that it's a copy of. What
    /// runs did can be found from everywhere. `forks` has the volume's name by the fork's.
    #[must_use]
    pub fn without_forks(mut self, ask: &SearchRequest, forks: &BTreeMap<String, String>) -> SearchAnswer {
        if forks.is_empty() {
            return self;
        }
        let original = ask.fork.as_ref().and_then(|fork| forks.get(fork));
        let is_visible = |volume: &String| match forks.contains_key(volume) {
            true => ask.fork.as_ref() == Some(volume),
            false => original != Some(volume),
        };
        self.hits.retain(|hit| hit.kind == PassageKind::Run || is_visible(&hit.volume));
        self.hits.truncate(ask.limit);
        self
    }
}
