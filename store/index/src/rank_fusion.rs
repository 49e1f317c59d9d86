//! Rank fusion: scales the scores by words and by meaning to the same range, and adds them.

use crate::error::IndexError;
use crate::fusion_gate::{GateSignals, QueryShape};
use crate::query::ParsedQuery;
use crate::query_terms::RareWord;
use crate::ranking::{SearchMode, SearchRequest};
use std::collections::{HashMap, HashSet};
use tantivy::columnar::Column;
use tantivy::{DocAddress, Searcher};

/// Scores are scaled to 0 to 1 between the best hit and the hit at this rank, regardless of the requested number.
pub(crate) const NORMALIZATION_RANK: usize = 100;
/// The constant of reciprocal rank fusion: with a small one, the first ranks count most.
const RECIPROCAL_RANK_OFFSET: f32 = 10.0;
/// A passage with a rare word of the query is moved up to at least this rank.
const MAX_RARE_WORD_RANK: usize = 3;

/// Scores of all passages, one list per segment.
pub(crate) struct PassageScores(pub(crate) Vec<Vec<f32>>);

impl PassageScores {
    pub(crate) fn new(searcher: &Searcher) -> PassageScores {
        PassageScores(searcher.segment_readers().iter().map(|segment| vec![0.0; segment.max_doc() as usize]).collect())
    }

    pub(crate) fn score(&self, address: DocAddress) -> f32 {
        self.0
            .get(address.segment_ord as usize)
            .and_then(|all| all.get(address.doc_id as usize))
            .copied()
            .unwrap_or(0.0)
    }

    /// Returns the score of a passage, to change it.
    pub(crate) fn score_mut(&mut self, address: DocAddress) -> Option<&mut f32> {
        self.0.get_mut(address.segment_ord as usize)?.get_mut(address.doc_id as usize)
    }

    /// Returns the `count` best scores, best first. Ties keep the order of the index.
    pub(crate) fn best_scores(&self, count: usize) -> Vec<(f32, DocAddress)> {
        let mut all: Vec<(f32, DocAddress)> = Vec::new();
        let mut floor = 0.0;
        for (scores, segment) in self.0.iter().zip(0..) {
            for (score, doc) in scores.iter().zip(0..).filter(|(score, _)| **score > 0.0) {
                if *score >= floor {
                    all.push((*score, DocAddress::new(segment, doc)));
                }
                if all.len() >= 4 * count + 64 {
                    truncate_ranked(&mut all, count);
                    floor = all.last().map_or(0.0, |(score, _)| *score);
                }
            }
        }
        truncate_ranked(&mut all, count);
        all
    }
}

/// Which passages are turns of conversations, by segment.
pub(crate) struct TurnSessions(Vec<Option<Column<u64>>>);

impl TurnSessions {
    pub(crate) fn open(searcher: &Searcher) -> Result<TurnSessions, IndexError> {
        let mut all = Vec::new();
        for segment in searcher.segment_readers() {
            all.push(segment.fast_fields().column_opt::<u64>("session")?);
        }
        Ok(TurnSessions(all))
    }

    fn is_turn(&self, address: DocAddress) -> bool {
        let sessions = self.0.get(address.segment_ord as usize).and_then(Option::as_ref);
        sessions.is_some_and(|sessions| sessions.first(address.doc_id).is_some())
    }
}

pub(crate) fn truncate_ranked(all: &mut Vec<(f32, DocAddress)>, count: usize) {
    all.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
    all.truncate(count);
}

/// Similarity of passages to the query by meaning.
#[derive(Default)]
pub(crate) struct MeaningScores {
    /// The nearest passages, best first.
    pub(crate) nearest: Vec<(f32, DocAddress)>,
    /// The cosine of each compared passage.
    pub(crate) cosines: HashMap<DocAddress, f32>,
}

impl MeaningScores {
    /// Keeps only the `count` nearest passages.
    pub(crate) fn keep_nearest(mut self, count: usize) -> MeaningScores {
        self.nearest.truncate(count);
        self
    }

    /// Rescales the cosines so that unrelated texts have 0.
    pub(crate) fn rescale_cosines(mut self, unrelated: f32) -> MeaningScores {
        if unrelated > 0.0 && unrelated < 1.0 {
            let nearest = self.nearest.iter_mut().map(|(near, _)| near);
            nearest.chain(self.cosines.values_mut()).for_each(|near| *near = (*near - unrelated) / (1.0 - unrelated));
        }
        self
    }
}

/// Returns the scores that are scaled to 1 and to 0: the best one, and the one at the end of the pool.
fn score_span(best: &[(f32, DocAddress)], none: f32) -> (f32, f32) {
    let high = best.first().map_or(1.0, |(score, _)| *score);
    let low = best.get(NORMALIZATION_RANK - 1).map_or(none, |(score, _)| *score).min(high);
    (high.max(low + 1e-6), low)
}

/// Returns what the reciprocal ranks of a ranking add to each of its passages: together with another ranking 0 to 1.
/// Passages with the same score have the same rank.
#[allow(clippy::cast_precision_loss, reason = "ranks")]
fn reciprocal_ranks(best: &[(f32, DocAddress)]) -> HashMap<DocAddress, f32> {
    let first = RECIPROCAL_RANK_OFFSET + 1.0;
    let (mut rank, mut above) = (0_u32, f32::INFINITY);
    let ranked = best.iter().take(NORMALIZATION_RANK).zip(0_u32..).map(|((score, address), place)| {
        if above - score > 1e-6 {
            rank = place;
        }
        above = *score;
        (*address, 0.5 * first / (first + rank as f32))
    });
    ranked.collect()
}

/// Returns what the fusion gate sees of a query, by its words and its two rankings.
pub(crate) fn gate_signals(
    shape: QueryShape,
    by_words: &[(f32, DocAddress)],
    nearest: &[(f32, DocAddress)],
) -> GateSignals {
    let spread = |best: &[(f32, DocAddress)], none: f32| {
        let (high, low) = score_span(best, none);
        if best.is_empty() { 0.0 } else { high - low }
    };
    GateSignals::measure(shape, spread(by_words, 0.0), spread(nearest, nearest.last().map_or(0.0, |(near, _)| *near)))
}

/// Merges both rankings by a convex sum of the scores, each scaled to 0 to 1 (Bruch, Gai and Ingber, 2023), plus their
/// reciprocal ranks. The query's signals decide how much its words count against meaning, except in turns of
/// conversations.
pub(crate) fn fuse_scores(
    ask: &SearchRequest,
    shape: QueryShape,
    turns: &TurnSessions,
    scores: &PassageScores,
    by_words: &[(f32, DocAddress)],
    meanings: &MeaningScores,
) -> Vec<(f32, DocAddress)> {
    let tuning = &ask.tuning;
    if ask.mode == SearchMode::Meaning {
        return meanings.nearest.clone();
    }
    if meanings.cosines.is_empty() {
        let most = by_words.first().map_or(1.0, |(score, _)| *score).max(f32::MIN_POSITIVE);
        return by_words.iter().map(|(score, address)| (score / most, *address)).collect();
    }
    let (most, least) = score_span(by_words, 0.0);
    let last = meanings.nearest.last().map_or(0.0, |(near, _)| *near);
    let (nearest, farthest) = score_span(&meanings.nearest, last);
    let mut candidates: Vec<DocAddress> = by_words.iter().map(|(_, address)| *address).collect();
    let seen: HashSet<DocAddress> = candidates.iter().copied().collect();
    // A single word is similar to many texts.
    let alone = !ParsedQuery::parse(&ask.text).meaning_text().trim().contains(char::is_whitespace);
    let floor = if alone { tuning.min_cosine + 0.1 } else { tuning.min_cosine };
    let others = meanings.nearest.iter().filter(|(near, address)| *near >= floor && !seen.contains(address));
    candidates.extend(others.map(|(_, address)| *address));
    let weight = tuning.gate.word_weight(shape, &gate_signals(shape, by_words, &meanings.nearest));
    let (word_ranks, meaning_ranks) = (reciprocal_ranks(by_words), reciprocal_ranks(&meanings.nearest));
    let mut fused: Vec<(f32, DocAddress)> = candidates
        .into_iter()
        .map(|address| {
            // Passages below the pool keep their order: a hundredth of the scale is reserved for them.
            let scaled = |value: f32, high: f32, low: f32| ((value - low) / (high - low)).max(0.0);
            let words = scaled(scores.score(address), most, least) + 0.01 * scores.score(address) / most;
            // A passage without a vector (yet) is ranked by its words only.
            let near = |near: &f32| scaled(*near, nearest, farthest) + 0.01 * near;
            let cosine = meanings.cosines.get(&address);
            let meaning = cosine.map_or(words, near);
            let rank = |of: &HashMap<DocAddress, f32>| of.get(&address).copied().unwrap_or(0.0);
            let by_rank = rank(&word_ranks);
            let ranks = by_rank + if cosine.is_some() { rank(&meaning_ranks) } else { by_rank };
            let weight = if turns.is_turn(address) { weight.max(tuning.turn_words) } else { weight };
            let score = weight * words + (1.0 - weight) * meaning + tuning.gate.ranks * ranks;
            (score / (1.0 + tuning.gate.ranks), address)
        })
        .collect();
    let all = fused.len();
    truncate_ranked(&mut fused, all);
    fused
}

/// Keeps the best passage with a rare query word among the first three: in a query of few words, a rare one is typed on
/// purpose.
pub(crate) fn promote_rare(ranked: &mut Vec<(f32, DocAddress)>, rare: &[RareWord]) {
    let holds = |address: &DocAddress| rare.iter().any(|(_, holders)| holders.contains(address));
    for (_, holders) in rare {
        let place = ranked.iter().position(|(_, address)| holders.contains(address));
        let Some(place) = place.filter(|place| *place >= MAX_RARE_WORD_RANK) else { continue };
        // The last of the top hits without such a word gives up its place.
        let Some(slot) = (0..MAX_RARE_WORD_RANK).rev().find(|slot| !holds(&ranked[*slot].1)) else { return };
        let (_, address) = ranked.remove(place);
        let (score, other) = ranked[slot];
        ranked[slot].1 = address;
        ranked.insert(MAX_RARE_WORD_RANK, (score.min(ranked[MAX_RARE_WORD_RANK - 1].0), other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rare_word_stays_in_sight() {
        let address = |doc: u32| DocAddress::new(0, doc);
        let mut ranked: Vec<(f32, DocAddress)> =
            (0_u8..8).map(|n| (1.0 - f32::from(n) / 10.0, address(n.into()))).collect();
        let rare = [5, 6].map(|doc| (doc.to_string(), HashSet::from([address(doc), address(7)])));
        promote_rare(&mut ranked, &rare);
        let order: Vec<u32> = ranked.iter().map(|(_, address)| address.doc_id).collect();
        assert_eq!(order, [0, 6, 5, 1, 2, 3, 4, 7]);
        assert!(ranked.is_sorted_by(|(a, _), (b, _)| a >= b), "{ranked:?}");
    }
}
