//! Relevance: whether anything matches at all. If the documents have no answer, even the best hits are dissimilar to
//! the question.

use crate::analyzer;
use crate::query_terms::QueryWord;
use crate::ranking::NoteHit;
use std::collections::HashSet;

/// Number of top hits that are examined.
const MAX_FIT_HITS: usize = 5;

/// How well the best hits fit a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelevanceFit {
    /// The highest cosine among them; `None` if none was compared by meaning.
    pub meaning: Option<f32>,
    /// Highest share of the query's words that one of them contains, 0 to 1. Rare words weigh more.
    pub words: f32,
}

impl Default for RelevanceFit {
    /// The fit of a query without words: everything that passes the filters matches.
    fn default() -> Self {
        RelevanceFit { meaning: None, words: 1.0 }
    }
}

/// Returns how well the hits match. Each word comes with its weight.
pub(crate) fn relevance_fit(wanted: &[(&QueryWord, f32)], hits: &[NoteHit]) -> RelevanceFit {
    let all: f32 = wanted.iter().map(|(_, weight)| weight).sum();
    let share = |hit: &NoteHit| {
        let (mut exact, mut stems) = (HashSet::new(), HashSet::new());
        let stemmer = hit.language.stemmer();
        for text in [&hit.title, &hit.heading, &hit.text] {
            for (stem, word) in analyzer::stem_words(text, &stemmer) {
                stems.insert(stem);
                exact.insert(word.text);
            }
        }
        let has = |word: &QueryWord| {
            stems.iter().any(|stem| word.has_stem(stem)) || word.words.iter().any(|w| exact.contains(w))
        };
        wanted.iter().filter(|(word, _)| has(word)).map(|(_, weight)| weight).sum::<f32>() / all.max(f32::MIN_POSITIVE)
    };
    let best = &hits[..hits.len().min(MAX_FIT_HITS)];
    RelevanceFit {
        meaning: best.iter().filter_map(|hit| hit.why.meaning).reduce(f32::max),
        words: if wanted.is_empty() { 1.0 } else { best.iter().map(share).fold(0.0, f32::max) },
    }
}
