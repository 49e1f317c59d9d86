//! Word pairs: passages where two words of the query follow each other, as in the query, are ranked higher. This is
//! the ordered part of the sequential dependence model (Metzler and Croft, 2005).

use crate::analyzer;
use crate::error::IndexError;
use crate::fulltext::FullTextIndex;
use crate::query_terms::idf;
use crate::rank_fusion::PassageScores;
use std::collections::BTreeMap;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, DocSet, Searcher, Term};

/// Maximum number of pairs of a query that count. A long text as a query has enough words.
const MAX_QUERY_PAIRS: usize = 64;
/// The number of occurrences in a passage at which a pair has half of its weight.
const HALF_WEIGHT_OCCURRENCES: f32 = 1.5;

impl FullTextIndex {
    /// Adds the scores of the query's pairs to the passages in `best`.
    #[allow(clippy::cast_precision_loss, reason = "occurrences")]
    pub(crate) fn add_pair_scores(
        &self,
        searcher: &Searcher,
        words: &[(String, bool)],
        weight: f32,
        best: &[(f32, DocAddress)],
        scores: &mut PassageScores,
    ) -> Result<(), IndexError> {
        let total: u64 = searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
        let mut candidates: BTreeMap<u32, Vec<DocId>> = BTreeMap::new();
        for (_, address) in best {
            candidates.entry(address.segment_ord).or_default().push(address.doc_id);
        }
        candidates.values_mut().for_each(|docs| docs.sort_unstable());
        let pairs = query_pairs(words);
        for (number, docs) in candidates.into_iter().filter(|_| weight > 0.0) {
            let index = searcher.segment_reader(number).inverted_index(self.fields.words)?;
            for pair in &pairs {
                let terms = pair.each_ref().map(|word| Term::from_field_text(self.fields.words, word));
                let count = searcher.doc_freq(&terms[0])?.min(searcher.doc_freq(&terms[1])?);
                let open = |term| index.read_postings(term, IndexRecordOption::WithFreqsAndPositions);
                let (Some(mut first), Some(mut second)) = (open(&terms[0])?, open(&terms[1])?) else { continue };
                let gain = weight * idf(count.min(total), total);
                for doc in &docs {
                    let often = count_pairs(&mut first, &mut second, *doc) as f32;
                    if let Some(score) = scores.score_mut(DocAddress::new(number, *doc)) {
                        *score += gain * often / (often + HALF_WEIGHT_OCCURRENCES);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the different words that follow each other in a query, each pair once.
fn query_pairs(words: &[(String, bool)]) -> Vec<[String; 2]> {
    let parts = words.iter().flat_map(|(text, _)| analyzer::split_words(text)).filter(|word| !word.whole);
    let parts: Vec<String> = parts.map(|word| word.text).take(MAX_QUERY_PAIRS + 1).collect();
    let mut pairs: Vec<[String; 2]> = Vec::new();
    for (first, second) in parts.iter().zip(parts.iter().skip(1)).filter(|(first, second)| first != second) {
        let pair = [first.clone(), second.clone()];
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

/// Returns how often a word directly follows another one in a passage. The passages must be asked in order.
fn count_pairs(first: &mut SegmentPostings, second: &mut SegmentPostings, doc: DocId) -> usize {
    let mut positions = [Vec::new(), Vec::new()];
    for (postings, positions) in [first, second].into_iter().zip(&mut positions) {
        if postings.doc() > doc || (postings.doc() < doc && postings.seek(doc) != doc) {
            return 0;
        }
        postings.positions(positions);
    }
    let [first, second] = positions;
    first.iter().filter(|position| second.binary_search(&(**position + 1)).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_words_that_follow_each_other() {
        let pairs = |text: &str| {
            let words: Vec<(String, bool)> = text.split(' ').map(|word| (word.to_owned(), false)).collect();
            query_pairs(&words).iter().map(|pair| pair.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(pairs("New York new york"), ["new york", "york new"]);
        assert_eq!(pairs("readFile now"), ["read file", "file now"], "parts of identifiers");
        assert_eq!(pairs("very very"), [""; 0]);
        assert_eq!(pairs(&"a b c ".repeat(100)).len(), 3);
    }
}
