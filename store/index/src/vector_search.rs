//! Search by meaning: the passages whose vectors are nearest to a given one.
//!
//! Up to 50,000 vectors, all are compared. With more, only those that seem nearest by their sign bits are, see
//! `VectorTable::estimated_distances`.

use crate::error::IndexError;
use crate::filter::AdmittedPassages;
use crate::fulltext::{FullTextIndex, PassagePlace, SegmentPassages};
use crate::rank_fusion::{MeaningScores, truncate_ranked};
use crate::ranking::{HitGrounds, NoteHit, PASSAGES_PER_NOTE, RankingWeights};
use crate::vectors::{MAX_ESTIMATED_DISTANCE, QuantizedVector, VectorTable};
use std::collections::{HashMap, HashSet};
use std::sync::RwLockReadGuard;
use store::DocId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, Term};

/// Distance of excluded passages: larger than any other.
const NOT_ADMITTED_DISTANCE: u16 = u16::MAX;

/// The vectors of all passages, ready to be compared.
pub(crate) struct VectorField<'a> {
    vectors: RwLockReadGuard<'a, VectorTable>,
    /// The passages of each segment.
    places: Vec<SegmentPassages>,
}

impl VectorField<'_> {
    /// Returns where the vectors of a passage are.
    fn places_of(&self, address: DocAddress) -> &[PassagePlace] {
        let places = self.places.get(address.segment_ord as usize).map_or(&[][..], |places| places.as_slice());
        let from = places.partition_point(|place| place.doc < address.doc_id);
        let count = places[from..].iter().take_while(|place| place.doc == address.doc_id).count();
        &places[from..from + count]
    }

    /// Returns the cosine of a passage: for a long one, that of its nearest window. `None` if it has no vector.
    fn cosine_to(&self, address: DocAddress, to: &QuantizedVector) -> Option<f32> {
        self.places_of(address).iter().map(|place| self.vectors.cosine(place.slot, to)).reduce(f32::max)
    }
}

impl FullTextIndex {
    /// Returns the vectors that answer searches, with their passages.
    pub(crate) fn vector_field(&self, searcher: &Searcher) -> Result<VectorField<'_>, IndexError> {
        let vectors = self.lock_vectors();
        let places = searcher.segment_readers().iter().map(|segment| self.segment_passages(segment, &vectors));
        let places = places.collect::<Result<_, _>>()?;
        Ok(VectorField { vectors, places })
    }

    /// Returns the nearest passages by meaning, and the cosines of the passages found by words.
    pub(crate) fn meaning_scores(
        &self,
        searcher: &Searcher,
        field: &VectorField<'_>,
        vector: &[f32],
        admitted: Option<&AdmittedPassages>,
        by_words: &[(f32, DocAddress)],
        (count, tuning): (usize, &RankingWeights),
    ) -> MeaningScores {
        let vector = QuantizedVector::quantize(vector);
        let nearest = field.nearest_passages(searcher, &vector, admitted, count, tuning);
        let mut cosines: HashMap<DocAddress, f32> = nearest.iter().map(|(near, address)| (*address, *near)).collect();
        for (_, address) in by_words {
            if !cosines.contains_key(address)
                && let Some(near) = field.cosine_to(*address, &vector)
            {
                cosines.insert(*address, near);
            }
        }
        MeaningScores { nearest, cosines }
    }

    /// Returns notes similar in meaning to a note, best first.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn related_notes(&self, note: DocId, limit: usize, volume: Option<&str>) -> Result<Vec<NoteHit>, IndexError> {
        let searcher = self.searcher();
        let own: HashSet<DocAddress> = self.passages_of(&searcher, note)?.into_iter().collect();
        let public = crate::filter::public_passages(&searcher, &self.fields)?;
        let public = crate::filter::passages_in_volume(&searcher, &self.fields, volume, public)?;
        let near = {
            let field = self.vector_field(&searcher)?;
            let mut mean: Vec<f32> = Vec::new();
            for place in own.iter().flat_map(|address| field.places_of(*address)) {
                let vector = field.vectors.vector(place.slot);
                mean.resize(vector.len(), 0.0);
                mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
            }
            if mean.is_empty() {
                return Ok(Vec::new());
            }
            embed::normalize(&mut mean);
            field.nearest_passages(
                &searcher,
                &QuantizedVector::quantize(&mean),
                public.as_ref(),
                limit * PASSAGES_PER_NOTE + own.len(),
                &RankingWeights::default(),
            )
        };
        let floor = RankingWeights::default().min_cosine;
        let near: Vec<(f32, DocAddress)> =
            near.into_iter().filter(|(near, address)| *near >= floor && !own.contains(address)).collect();
        let cosines = near.iter().map(|(near, address)| (*address, *near)).collect();
        self.build_hits(&searcher, &near, &HitGrounds { cosines: Some(&cosines), ..HitGrounds::default() }, limit)
    }

    fn passages_of(&self, searcher: &Searcher, note: DocId) -> Result<Vec<DocAddress>, IndexError> {
        let term = Term::from_field_text(self.fields.note, &note.to_string());
        let mut found = Vec::new();
        for (segment, number) in searcher.segment_readers().iter().zip(0..) {
            let postings = segment.inverted_index(self.fields.note)?.read_postings(&term, IndexRecordOption::Basic)?;
            let Some(mut postings) = postings else { continue };
            let mut doc = postings.doc();
            while doc != TERMINATED {
                if !segment.is_deleted(doc) {
                    found.push(DocAddress::new(number, doc));
                }
                doc = postings.advance();
            }
        }
        Ok(found)
    }
}

impl VectorField<'_> {
    /// Returns the cosines of some passages.
    pub(crate) fn score_among(&self, vector: &[f32], pool: &[DocAddress]) -> MeaningScores {
        let vector = QuantizedVector::quantize(vector);
        let near = |address: &DocAddress| Some((self.cosine_to(*address, &vector)?, *address));
        let mut nearest: Vec<(f32, DocAddress)> = pool.iter().filter_map(near).collect();
        let cosines = nearest.iter().map(|(near, address)| (*address, *near)).collect();
        truncate_ranked(&mut nearest, pool.len());
        MeaningScores { nearest, cosines }
    }

    /// Returns the vector moved toward the mean of some passages, or `None` if none of them has a vector.
    pub(crate) fn move_towards(&self, from: &[f32], passages: &[DocAddress], share: f32) -> Option<Vec<f32>> {
        let mut sum = vec![0.0; from.len()];
        let mut any = false;
        for place in passages.iter().filter_map(|address| self.places_of(*address).first()) {
            any = true;
            sum.iter_mut().zip(self.vectors.vector(place.slot)).for_each(|(sum, value)| *sum += value);
        }
        let mut own = from.to_vec();
        embed::normalize(&mut own);
        embed::normalize(&mut sum);
        any.then(|| own.iter().zip(sum).map(|(a, b)| (1.0 - share) * a + share * b).collect())
    }

    /// Returns which window of a passage is nearest, or `None` if not all windows have a vector yet.
    pub(crate) fn nearest_part(&self, address: DocAddress, vector: &[f32], parts: usize) -> Option<usize> {
        let (vector, places) = (QuantizedVector::quantize(vector), self.places_of(address));
        let near = places.iter().map(|place| self.vectors.cosine(place.slot, &vector)).zip(0..);
        let nearest = near.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, part)| part);
        nearest.filter(|_| places.len() == parts)
    }

    /// Returns the passages whose vectors are nearest, best first.
    fn nearest_passages(
        &self,
        searcher: &Searcher,
        vector: &QuantizedVector,
        admitted: Option<&AdmittedPassages>,
        count: usize,
        tuning: &RankingWeights,
    ) -> Vec<(f32, DocAddress)> {
        let allows = |number: usize, doc: u32| match admitted.and_then(|admitted| admitted.get(number)) {
            Some(admitted) => admitted.get(doc as usize).is_some_and(|admitted| *admitted),
            None => !searcher.segment_readers()[number].is_deleted(doc),
        };
        let sieve = (self.vectors.len() > tuning.exact_limit)
            .then(|| self.sieve_by_signs(vector, allows, tuning.sieve_size.max(count)));
        let mut all = Vec::new();
        let mut floor = f32::MIN;
        for (places, number) in self.places.iter().zip(0_u32..) {
            let mut at = 0;
            for of_one in places.chunk_by(|one, next| one.doc == next.doc) {
                let from = at;
                at += of_one.len();
                let doc = of_one[0].doc;
                let passes = match &sieve {
                    Some((distances, farthest)) => {
                        distances[number as usize][from..at].iter().any(|distance| distance <= farthest)
                    }
                    None => allows(number as usize, doc),
                };
                if !passes {
                    continue;
                }
                let near = of_one.iter().map(|place| self.vectors.cosine(place.slot, vector)).fold(f32::MIN, f32::max);
                if near > floor {
                    all.push((near, DocAddress::new(number, doc)));
                    if all.len() >= 4 * count + 64 {
                        truncate_ranked(&mut all, count);
                        floor = all.last().map_or(floor, |(near, _)| *near);
                    }
                }
            }
        }
        truncate_ranked(&mut all, count);
        all
    }

    /// Returns for each segment its vectors' estimated distances, and the distance within which at least `wanted`
    /// vectors lie.
    fn sieve_by_signs(
        &self,
        to: &QuantizedVector,
        allows: impl Fn(usize, u32) -> bool,
        wanted: usize,
    ) -> (Vec<Vec<u16>>, u16) {
        let mut counts = vec![0_usize; usize::from(MAX_ESTIMATED_DISTANCE) + 1];
        let mut all = Vec::with_capacity(self.places.len());
        for (places, number) in self.places.iter().zip(0..) {
            let mut distances = self.vectors.estimated_distances(places, to);
            for (distance, place) in distances.iter_mut().zip(places.iter()) {
                if allows(number, place.doc) {
                    counts[usize::from(*distance)] += 1;
                } else {
                    *distance = NOT_ADMITTED_DISTANCE;
                }
            }
            all.push(distances);
        }
        let mut sum = 0;
        let farthest = counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        (all, farthest.and_then(|farthest| u16::try_from(farthest).ok()).unwrap_or(NOT_ADMITTED_DISTANCE - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexedPassage, MiniLm, NoteText, PassageKind, SentenceEmbedder};

    /// Real sentences, which give realistic vectors.
    const TEXTS: [&str; 2] = [include_str!("../../../ARCHITECTURE.md"), include_str!("../../../CHANGELOG.md")];

    /// With so few vectors, the ten nearest are a large part of all: an eighth is selected here. The benchmark has more
    /// vectors and selects a fortieth (BENCHMARKS.md).
    #[test]
    fn the_nearest_by_their_signs_hold_the_nearest() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        index.grow_vectors("m", crate::VECTOR_DIMENSIONS).expect("vectors");
        let lines = TEXTS.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| line.len() > 40);
        for (line, number) in lines.take(400).zip(0_u64..) {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_le_bytes());
            let passage = IndexedPassage { text: line.to_owned(), ..IndexedPassage::new(PassageKind::Prose) };
            let (volume, path, title) = Default::default();
            let tags = vec![if number % 3 == 0 { "third".to_owned() } else { "other".to_owned() }];
            let passages = vec![passage];
            let note = NoteText { note: DocId(id), volume, path, title, tags, modified: 0, key: number, passages };
            index.put_note(&note).expect("kept");
        }
        index.commit().expect("committed");
        let model = MiniLm::load().expect("the model");
        let mut missing = index.missing_vectors().expect("readable");
        let mut vectors = Vec::new();
        while let Some((hash, text)) = missing.pop().expect("readable") {
            vectors.push((hash, model.embed(&text).expect("a vector")));
        }
        assert!(vectors.len() > 200, "{}", vectors.len());
        index.store_vectors(&vectors).expect("kept");
        let (searcher, query) = (index.searcher(), crate::ParsedQuery::parse("tag:third"));
        let field = index.vector_field(&searcher).expect("vectors");
        let third = crate::filter::admitted_passages(&searcher, &index.fields, &query).expect("readable");
        let exact = RankingWeights { exact_limit: usize::MAX, ..RankingWeights::default() };
        let sieve = |sieve: usize| RankingWeights { exact_limit: 0, sieve_size: sieve, ..RankingWeights::default() };
        for (admitted, wanted) in [(None, vectors.len() / 8), (third.as_ref(), vectors.len() / 12)] {
            let (mut found, mut all) = (0, 0);
            for (_, vector) in vectors.iter().step_by(5) {
                let vector = QuantizedVector::quantize(vector);
                let nearest = |tuning| field.nearest_passages(&searcher, &vector, admitted, 10, &tuning);
                let (exact, fast) = (nearest(exact), nearest(sieve(wanted)));
                assert_eq!(fast.len(), 10);
                assert_eq!(exact, nearest(sieve(vectors.len())), "a sieve that holds nothing back");
                all += exact.len();
                found += exact.iter().filter(|near| fast.contains(near)).count();
            }
            assert!(found * 100 >= all * 98, "{found} of {all}");
        }
    }
}
