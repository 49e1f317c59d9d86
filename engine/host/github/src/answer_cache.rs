//! Earlier answers with their ETags: a request that names one costs nothing of the rate limit if nothing has changed.

use lru::LruCache;
use serde::{Deserialize, Serialize};

/// Bounds of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Maximum size of all answers in bytes.
    pub total_bytes: usize,
    /// Maximum size of one answer in bytes.
    pub answer_bytes: usize,
    /// How long an answer is kept, in seconds.
    pub seconds: i64,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits { total_bytes: 8 << 20, answer_bytes: 4 << 20, seconds: 30 * 24 * 60 * 60 }
    }
}

/// An answer and its ETag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedAnswer {
    pub(crate) url: String,
    pub(crate) etag: String,
    /// When it came, in seconds since 1970.
    pub(crate) time: i64,
    /// The body, which is JSON.
    pub(crate) body: String,
}

impl CachedAnswer {
    fn size(&self) -> usize {
        // Also counts what an entry itself takes.
        self.url.len() + self.etag.len() + self.body.len() + size_of::<CachedAnswer>()
    }
}

/// The answers that were used last, within [`CacheLimits`].
#[derive(Debug)]
pub struct AnswerCache {
    limits: CacheLimits,
    answers: LruCache<String, CachedAnswer>,
    bytes: usize,
}

impl AnswerCache {
    /// Creates an empty cache.
    pub fn new(limits: CacheLimits) -> AnswerCache {
        AnswerCache { limits, answers: LruCache::unbounded(), bytes: 0 }
    }

    /// Returns the number of answers, and their size in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.answers.len(), self.bytes)
    }

    /// Returns an answer that isn't too old.
    pub(crate) fn get(&mut self, url: &str, now: i64) -> Option<CachedAnswer> {
        let found = self.answers.get(url)?;
        if (0..self.limits.seconds).contains(&(now - found.time)) {
            return Some(found.clone());
        }
        if let Some(old) = self.answers.pop(url) {
            self.bytes -= old.size();
        }
        None
    }

    /// Keeps an answer, and drops those that were used the longest time ago if there are too many.
    pub(crate) fn put(&mut self, answer: CachedAnswer) {
        let size = answer.size();
        if let Some(old) = self.answers.pop(&answer.url) {
            self.bytes -= old.size();
        }
        if size > self.limits.answer_bytes.min(self.limits.total_bytes) {
            return;
        }
        self.bytes += size;
        self.answers.put(answer.url.clone(), answer);
        while self.bytes > self.limits.total_bytes
            && let Some((_, oldest)) = self.answers.pop_lru()
        {
            self.bytes -= oldest.size();
        }
    }

    /// Reads answers that were written by [`AnswerCache::to_bytes`]. What can't be read is left out.
    pub(crate) fn from_bytes(limits: CacheLimits, bytes: &[u8]) -> AnswerCache {
        let mut cache = AnswerCache::new(limits);
        let answers: Vec<CachedAnswer> = serde_json::from_slice(bytes).unwrap_or_default();
        answers.into_iter().for_each(|answer| cache.put(answer));
        cache
    }

    /// Returns the answers as a file, the last used one at the end.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let answers: Vec<&CachedAnswer> = self.answers.iter().rev().map(|(_, answer)| answer).collect();
        serde_json::to_vec(&answers).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(number: usize, bytes: usize) -> CachedAnswer {
        CachedAnswer { url: format!("u{number}"), etag: "\"e\"".to_owned(), time: 100, body: "x".repeat(bytes) }
    }

    #[test]
    fn the_least_recently_used_answers_are_dropped() {
        let limits = CacheLimits { total_bytes: 10_000, answer_bytes: 6_000, seconds: 50 };
        let mut cache = AnswerCache::new(limits);
        (0..3).for_each(|number| cache.put(answer(number, 3_000)));
        assert_eq!(cache.size().0, 3);
        assert!(cache.get("u0", 120).is_some(), "now the newest");
        cache.put(answer(3, 3_000));
        assert!(cache.get("u1", 120).is_none() && cache.get("u0", 120).is_some(), "the oldest is gone");
        assert!(cache.size().1 <= limits.total_bytes, "{:?}", cache.size());
        // One answer that is too large takes no other's place, but its own old one is outdated.
        cache.put(answer(0, 7_000));
        assert!(cache.get("u0", 120).is_none() && cache.get("u3", 120).is_some());
        let read = AnswerCache::from_bytes(limits, &cache.to_bytes());
        assert_eq!(read.size(), cache.size());
        // After its time, an answer isn't used.
        assert!(cache.get("u3", 150).is_none() && cache.get("u2", 99).is_none());
        assert_eq!(cache.size(), (0, 0));
        assert_eq!(AnswerCache::from_bytes(limits, b"[{\"url\": 1}]").size(), (0, 0));
        (0..1_000).for_each(|number| cache.put(answer(number, number)));
        assert!(cache.size().1 <= limits.total_bytes && cache.size().0 > 3, "{:?}", cache.size());
    }
}
