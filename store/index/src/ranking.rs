//! Ranking: BM25 over words and stems, cosine similarity over vectors, and their fusion with the reasons for each hit.

use crate::analyzer;
use crate::boosts::ScoreBoosts;
use crate::error::IndexError;
use crate::filter::{self, AdmittedPassages};
use crate::fulltext::{FullTextIndex, embedding_windows, stored_text};
use crate::fusion_gate::{FusionGate, GateSignals, QueryShape, SHORT_QUERY_TERMS};
use crate::highlights::{excerpt, highlight_ranges};
use crate::language::StemLanguage;
use crate::passage::PassageKind;
use crate::query::ParsedQuery;
use crate::query_terms::{QueryWord, RareWord, idf, matched_terms};
use crate::rank_fusion::{
    MeaningScores, NORMALIZATION_RANK, PassageScores, TurnSessions, fuse_scores, gate_signals, promote_rare,
};
use crate::relevance::{self, RelevanceFit};
use crate::vector_search::VectorField;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use store::DocId;
use tantivy::schema::Value;
use tantivy::{DocAddress, Searcher, TantivyDocument, Term};

/// Number of passages examined for each requested note.
pub(crate) const PASSAGES_PER_NOTE: usize = 8;
/// Number of the best passages in the first round whose vectors are mixed into the query's in the second round
/// (pseudo-relevance feedback).
const FEEDBACK_PASSAGES: usize = 3;
/// Number of nearest passages that the second round of a search examines.
const SECOND_ROUND_PASSAGES: usize = 1_000;
/// A query has an answer if a hit reaches this cosine, or `MIN_ANSWER_WORD_SHARE` of the weight of the query's words.
const MIN_ANSWER_COSINE: f32 = 0.35;
const MIN_ANSWER_WORD_SHARE: f32 = 0.6;

/// Which signals a search uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// Words, and meaning where vectors exist.
    #[default]
    Both,
    /// Full text only.
    Words,
    /// Vectors only.
    Meaning,
}

/// The ranking's parameters, chosen by measurement (BENCHMARKS.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankingWeights {
    /// BM25 `k1`: how soon further repetitions of a word stop counting.
    pub k1: f32,
    /// BM25 `b`: how strongly long passages are penalized.
    pub b: f32,
    /// BM25 `b` for turns of conversations: a long turn says more, and isn't about something else.
    pub turn_b: f32,
    /// Weight of the exact word in addition to its stem.
    pub exact: f32,
    /// Weight of a word in the title.
    pub title: f32,
    /// Weight of a stop word of a passage's language, 0 to 1.
    pub stop_word: f32,
    /// Weight of two words of the query that follow each other in a passage, too.
    pub pair: f32,
    /// How much words count compared to meaning, decided per query.
    pub gate: FusionGate,
    /// Minimum weight of words for turns of conversations, 0 to 1. A short turn's vector says little, and the gate was
    /// trained on longer texts (docs/decisions/0050).
    pub turn_words: f32,
    /// Weight of the best passages' vectors in the query's vector, 0 to 1: pseudo-relevance feedback after Rocchio
    /// (1971). Off, because it gains nothing on average over twelve collections (BENCHMARKS.md). Not used while the
    /// last word is being typed.
    pub feedback: f32,
    /// A passage without any of the words needs at least this cosine to be a hit.
    pub min_cosine: f32,
    /// Maximum boost for a recent change, halved after a month.
    pub recency_boost: f32,
    /// Boost for a note that many notes link to.
    pub link_boost: f32,
    /// Boost for a starred note.
    pub star_boost: f32,
    /// Boost for a note whose name is the whole query. It ranks the note above notes that only mention the name.
    pub name_boost: f32,
    /// Up to this many vectors, all are compared with the query. With more, only the nearest by sign bits are.
    pub exact_limit: usize,
    /// Number of vectors selected by sign bits.
    pub sieve_size: usize,
}

impl Default for RankingWeights {
    fn default() -> Self {
        RankingWeights {
            k1: 1.5,
            b: 0.75,
            turn_b: 0.15,
            exact: 0.1,
            title: 0.3,
            stop_word: 0.3,
            pair: 0.5,
            gate: FusionGate::default(),
            turn_words: 0.65,
            feedback: 0.0,
            min_cosine: 0.35,
            recency_boost: 0.02,
            link_boost: 0.02,
            star_boost: 0.03,
            name_boost: 1.0,
            exact_limit: 50_000,
            sieve_size: 4_000,
        }
    }
}

/// A search request: the query and its options.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// The query as the user typed it.
    pub text: String,
    /// Maximum number of notes to return.
    pub limit: usize,
    /// Whether the last word may still be incomplete.
    pub typing: bool,
    /// Which signals to use.
    pub mode: SearchMode,
    /// The vector of [`ParsedQuery::describe`], by the model of [`FullTextIndex::answering`].
    pub vector: Option<Vec<f32>>,
    /// The model's cosine for unrelated texts, 0 to 1. All cosines are scaled so that this becomes 0.
    pub unrelated: f32,
    /// Current time in milliseconds since 1970. With 0, recent changes get no boost.
    pub now: i64,
    /// The notes that the user starred.
    pub starred: Arc<HashSet<DocId>>,
    /// Name of the only volume whose passages are found; `None` for all.
    pub volume: Option<String>,
    /// Name of the fork that the query is made in, if it is; see [`SearchAnswer::without_forks`].
    pub fork: Option<String>,
    /// Whether each passage is its own hit, instead of each note by its best passage.
    pub per_passage: bool,
    /// The ranking's parameters.
    pub tuning: RankingWeights,
}

/// One component of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// Name of the component.
    pub name: String,
    /// Its contribution to the score.
    pub value: f32,
}

/// A lower cosine isn't mentioned as a reason.
const MIN_TOLD_COSINE: f32 = 0.2;

/// Why a passage is a hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HitReason {
    /// Words of the query as they occur in the passage or its title.
    pub words: Vec<String>,
    /// Corrected typos: the query's word and the word in the passage.
    pub typos: Vec<(String, String)>,
    /// The cosine, or `None` if the passage wasn't compared by meaning.
    pub meaning: Option<f32>,
    /// The part of a long passage that is nearest in meaning.
    pub nearest: Option<Range<usize>>,
    /// Whether it was moved up because it contains a rare word of the query.
    pub rare: bool,
    /// The components of the score.
    pub parts: Vec<ScorePart>,
}

impl HitReason {
    /// Whether the passage was found by meaning only and contains none of the words.
    pub fn is_by_meaning(&self) -> bool {
        self.words.is_empty() && self.typos.is_empty() && self.meaning.is_some_and(|near| near >= MIN_TOLD_COSINE)
    }

    /// Returns a description of the reasons for the user.
    pub fn describe(&self) -> String {
        let mut said = Vec::new();
        if !self.words.is_empty() {
            said.push(format!("has {}", self.words.join(", ")));
        }
        for (asked, there) in &self.typos {
            said.push(format!("“{asked}” taken for {there}"));
        }
        if let Some(near) = self.meaning.filter(|near| *near >= MIN_TOLD_COSINE) {
            said.push(format!("{} in meaning ({near:.2})", if near >= 0.5 { "close" } else { "related" }));
        }
        if said.is_empty() {
            said.push("fits the filters".to_owned());
        }
        said.join("; ")
    }
}

/// A matching note with its best passage.
#[derive(Clone, Debug, PartialEq)]
pub struct NoteHit {
    /// Document id of the note.
    pub note: DocId,
    /// Name of its volume.
    pub volume: String,
    /// The note's path relative to the volume's root.
    pub path: String,
    /// The note's title.
    pub title: String,
    /// The headings above the passage.
    pub heading: String,
    /// Place in the note: `block`, or `cell/output/2`.
    pub place: String,
    /// The kind of the passage.
    pub kind: PassageKind,
    /// The language by which its words are stemmed.
    pub language: StemLanguage,
    /// When the note was changed, in milliseconds since 1970.
    pub modified: i64,
    /// The text of the passage.
    pub text: String,
    /// Whether it's a turn of a conversation.
    pub is_turn: bool,
    /// The score, 0 to about 1.
    pub score: f32,
    /// The reasons for the hit.
    pub why: HitReason,
    /// Number of other passages of the note that match.
    pub more: usize,
}

impl NoteHit {
    /// Returns the passage's address as used in links: `path#place`.
    pub fn link_address(&self) -> String {
        if self.place.is_empty() { self.path.clone() } else { format!("{}#{}", self.path, self.place) }
    }

    /// Returns about `length` bytes of the passage on one line, around the matched words or else the most similar part,
    /// and the ranges of the words in it.
    pub fn excerpt(&self, terms: &HashSet<String>, length: usize) -> (String, Vec<Range<usize>>) {
        let found = highlight_ranges(&self.text, terms);
        match &self.why.nearest {
            Some(nearest) if found.is_empty() => {
                let (text, _) = excerpt(&self.text[nearest.start..], &[], length);
                (if nearest.start > 0 { format!("… {text}") } else { text }, Vec::new())
            }
            Some(_) | None => excerpt(&self.text, &found, length),
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// The hits, best first, one per note.
    pub hits: Vec<NoteHit>,
    /// The words, stems and completions that count as matches, for highlighting.
    pub terms: HashSet<String>,
    /// Whether passages were compared by meaning.
    pub by_meaning: bool,
    /// How well the best hits match.
    pub fit: RelevanceFit,
    /// What decided how much words counted against meaning; `None` if only one of them was searched.
    pub signals: Option<GateSignals>,
}

impl SearchAnswer {
    /// Whether anything matches. If nothing does, the hits are only the nearest passages. The two thresholds were
    /// chosen on half of the queries of two collections, each asked in its own collection and in the other one
    /// (BENCHMARKS.md).
    pub fn has_match(&self) -> bool {
        let near = self.fit.meaning.is_none_or(|near| near >= MIN_ANSWER_COSINE);
        !self.hits.is_empty() && (near || self.fit.words >= MIN_ANSWER_WORD_SHARE)
    }

    /// Reorders the first hits by a reranker's scores, 0 to 1. A hit with a rare word of the query stays in the first
    /// three.
    pub fn apply_rerank(&mut self, scores: &[f32]) {
        let first = self.hits.len().min(scores.len());
        for (hit, score) in self.hits.iter_mut().zip(scores) {
            hit.score = *score;
            hit.why.parts.push(ScorePart { name: "read once more".to_owned(), value: *score });
        }
        self.hits[..first].sort_by(|a, b| b.score.total_cmp(&a.score));
        if let Some(place) = self.hits[..first].iter().position(|hit| hit.why.rare).filter(|place| *place > 2) {
            let hit = self.hits.remove(place);
            self.hits.insert(2, hit);
        }
    }
}

impl FullTextIndex {
    /// Searches the index.
    ///
    /// # Errors
    /// Returns an error if the index is damaged.
    pub fn search(&self, ask: &SearchRequest) -> Result<SearchAnswer, IndexError> {
        let searcher = self.searcher();
        let query = ParsedQuery::parse(&ask.text);
        let admitted = filter::admitted_passages(&searcher, &self.fields, &query)?;
        let admitted = filter::passages_in_volume(&searcher, &self.fields, ask.volume.as_deref(), admitted)?;
        let mut words = query.ranking_words();
        if ask.typing
            && ask.text.ends_with(|last: char| last.is_alphanumeric() || last == '_')
            && let Some((_, prefix)) = words.last_mut()
        {
            *prefix = true;
        }
        let count = (ask.limit.max(1) * PASSAGES_PER_NOTE).max(2 * NORMALIZATION_RANK);
        if words.is_empty() {
            let admitted = admitted.filter(|_| query.is_strict());
            return self.newest_notes(&searcher, admitted.as_ref(), ask.limit);
        }
        let wanted = self.query_words(&searcher, &words, ask.tuning.stop_word)?;
        let weights = self.word_weights(&searcher, &wanted)?;
        let shape = QueryShape { terms: wanted.len(), rarity: weights.iter().sum() };
        let mut scores = PassageScores::new(&searcher);
        let mut rare = Vec::new();
        if ask.mode != SearchMode::Meaning {
            for word in &wanted {
                self.add_word_scores(&searcher, word, &ask.tuning, admitted.as_ref(), &mut scores, &mut rare)?;
            }
        }
        // A question holds rare words by chance.
        if words.len() > SHORT_QUERY_TERMS {
            rare.clear();
        }
        let mut by_words = scores.best_scores(count);
        if ask.mode != SearchMode::Meaning {
            self.add_pair_scores(&searcher, &words, ask.tuning.pair, &by_words, &mut scores)?;
            by_words = scores.best_scores(count);
        }
        let fits = |vector: &&[f32]| ask.mode != SearchMode::Words && vector.len() == self.dimensions();
        let vector = ask.vector.as_deref().filter(fits);
        let field = vector.map(|_| self.vector_field(&searcher)).transpose()?;
        let compared = vector.zip(field.as_ref());
        let mut meanings = MeaningScores::default();
        let turns = TurnSessions::open(&searcher)?;
        let order = |meanings: &MeaningScores| {
            let mut ranked = fuse_scores(ask, shape, &turns, &scores, &by_words, meanings);
            if ask.mode == SearchMode::Both {
                promote_rare(&mut ranked, &rare);
            }
            ranked
        };
        let mut ranked = order(&meanings);
        if let Some((vector, field)) = compared {
            let again = ask.mode == SearchMode::Both && !ask.typing && ask.tuning.feedback > 0.0;
            let wide = (if again { count.max(SECOND_ROUND_PASSAGES) } else { count }, &ask.tuning);
            let wide = self.meaning_scores(&searcher, field, vector, admitted.as_ref(), &by_words, wide);
            let pool: Vec<DocAddress> = wide.cosines.keys().copied().collect();
            meanings = wide.keep_nearest(count).rescale_cosines(ask.unrelated);
            ranked = order(&meanings);
            let best: Vec<DocAddress> = ranked.iter().take(FEEDBACK_PASSAGES).map(|(_, address)| *address).collect();
            if again && let Some(vector) = field.move_towards(vector, &best, ask.tuning.feedback) {
                // Passages near the moved vector were near the first one too, so the pool suffices.
                ranked = order(&field.score_among(&vector, &pool).keep_nearest(count).rescale_cosines(ask.unrelated));
            }
        }
        let mut lifts = self.rank_turns(&searcher, ask, &query.meaning_text(), &mut ranked)?;
        for (address, parts) in self.apply_boosts(&searcher, ask, &mut ranked)? {
            lifts.entry(address).or_default().extend(parts);
        }
        if ask.mode == SearchMode::Both {
            promote_rare(&mut ranked, &rare);
        }
        let grounds = HitGrounds {
            per_passage: ask.per_passage,
            cosines: Some(&meanings.cosines),
            scores: Some(&scores),
            wanted: &wanted,
            rare: &rare,
            boosts: Some(&lifts),
            compared,
        };
        let hits = self.build_hits(&searcher, &ranked, &grounds, ask.limit)?;
        let weighed: Vec<(&QueryWord, f32)> = wanted.iter().zip(weights).collect();
        let fit = relevance::relevance_fit(&weighed, &hits);
        let by_meaning = !meanings.cosines.is_empty();
        let fused = by_meaning && ask.mode == SearchMode::Both;
        let signals = fused.then(|| gate_signals(shape, &by_words, &meanings.nearest));
        Ok(SearchAnswer { hits, terms: matched_terms(&wanted), by_meaning, fit, signals })
    }

    /// Returns the inverse document frequency of each word.
    fn word_weights(&self, searcher: &Searcher, wanted: &[QueryWord]) -> Result<Vec<f32>, IndexError> {
        let total: u64 = searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
        let mut weights = Vec::new();
        for word in wanted {
            let mut count = self.stem_count(searcher, word)?;
            if word.typo || count == 0 {
                for exact in &word.words {
                    count += searcher.doc_freq(&Term::from_field_text(self.fields.words, exact))?;
                }
            }
            // Rare in one language and a stop word in another: what counts most.
            let share = word.stems.iter().map(|stem| stem.weight).reduce(f32::max).unwrap_or(1.0);
            weights.push(share * idf(count.min(total), total));
        }
        Ok(weights)
    }

    /// Returns the most recently changed admitted notes, for a query without words.
    fn newest_notes(
        &self,
        searcher: &Searcher,
        admitted: Option<&AdmittedPassages>,
        limit: usize,
    ) -> Result<SearchAnswer, IndexError> {
        let Some(admitted) = admitted else { return Ok(SearchAnswer::default()) };
        let mut all: Vec<(i64, DocAddress)> = Vec::new();
        for ((segment, admitted), number) in searcher.segment_readers().iter().zip(admitted).zip(0..) {
            let modified = segment.fast_fields().i64("modified")?;
            for (_, doc) in admitted.iter().zip(0..).filter(|(admitted, _)| **admitted) {
                all.push((modified.first(doc).unwrap_or(0), DocAddress::new(number, doc)));
            }
        }
        all.sort_by(|(a, left), (b, right)| b.cmp(a).then(left.cmp(right)));
        let ranked: Vec<(f32, DocAddress)> = all.into_iter().map(|(_, address)| (1.0, address)).collect();
        let hits = self.build_hits(searcher, &ranked, &HitGrounds::default(), limit)?;
        Ok(SearchAnswer { hits, ..SearchAnswer::default() })
    }

    /// Groups ranked passages into notes, with reasons.
    pub(crate) fn build_hits(
        &self,
        searcher: &Searcher,
        ranked: &[(f32, DocAddress)],
        grounds: &HitGrounds<'_>,
        limit: usize,
    ) -> Result<Vec<NoteHit>, IndexError> {
        let mut hits: Vec<NoteHit> = Vec::new();
        let mut places: HashMap<(String, u64), usize> = HashMap::new();
        let mut known: HashMap<(u32, u64), usize> = HashMap::new();
        let columns: Vec<_> = searcher
            .segment_readers()
            .iter()
            .map(|segment| segment.fast_fields().str("note"))
            .collect::<Result<_, _>>()?;
        let modified: Vec<_> = searcher
            .segment_readers()
            .iter()
            .map(|segment| segment.fast_fields().i64("modified"))
            .collect::<Result<_, _>>()?;
        for (score, address) in ranked {
            let Some(notes) = columns.get(address.segment_ord as usize).and_then(Option::as_ref) else { continue };
            let Some(number) = notes.term_ords(address.doc_id).next() else { continue };
            if let Some(place) = known.get(&(address.segment_ord, number)).filter(|_| !grounds.per_passage) {
                hits[*place].more += 1;
                continue;
            }
            let mut note = String::new();
            notes.ord_to_str(number, &mut note)?;
            // A note may be in two segments.
            if let Some(place) = places.get(&(note.clone(), 0)).filter(|_| !grounds.per_passage) {
                known.insert((address.segment_ord, number), *place);
                hits[*place].more += 1;
                continue;
            }
            if hits.len() >= limit {
                continue;
            }
            let doc: TantivyDocument = searcher.doc(*address)?;
            let Ok(id) = note.parse() else { continue };
            let fields = &self.fields;
            let (title, text) = (stored_text(&doc, fields.name), stored_text(&doc, fields.text));
            let kind =
                PassageKind::from_index_number(doc.get_first(fields.kind).and_then(|kind| kind.as_u64()).unwrap_or(0));
            let language = doc.get_first(fields.language).and_then(|language| language.as_u64()).unwrap_or(0);
            let language = StemLanguage::from_index_number(language);
            let why = grounds.explain_hit(kind, language, &title, &text, *address);
            places.insert((note, 0), hits.len());
            known.insert((address.segment_ord, number), hits.len());
            hits.push(NoteHit {
                note: id,
                volume: stored_text(&doc, fields.volume),
                path: stored_text(&doc, fields.path),
                title,
                heading: stored_text(&doc, fields.heading),
                place: stored_text(&doc, fields.place),
                kind,
                language,
                modified: modified
                    .get(address.segment_ord as usize)
                    .and_then(|all| all.first(address.doc_id))
                    .unwrap_or(0),
                text,
                is_turn: doc.get_first(fields.session).is_some(),
                score: *score,
                why,
                more: 0,
            });
        }
        Ok(hits)
    }
}

/// Everything a search knows about why a passage is a hit.
#[derive(Default)]
pub(crate) struct HitGrounds<'a> {
    /// Whether each passage is its own hit.
    pub(crate) per_passage: bool,
    pub(crate) cosines: Option<&'a HashMap<DocAddress, f32>>,
    pub(crate) scores: Option<&'a PassageScores>,
    pub(crate) wanted: &'a [QueryWord],
    pub(crate) rare: &'a [RareWord],
    pub(crate) boosts: Option<&'a ScoreBoosts>,
    /// The query's vector and the vectors that it was compared with.
    pub(crate) compared: Option<(&'a [f32], &'a VectorField<'a>)>,
}

impl HitGrounds<'_> {
    fn explain_hit(
        &self,
        kind: PassageKind,
        language: StemLanguage,
        title: &str,
        text: &str,
        address: DocAddress,
    ) -> HitReason {
        let meaning = self.cosines.and_then(|cosines| cosines.get(&address).copied());
        let mut why = HitReason { meaning, ..HitReason::default() };
        if !self.wanted.is_empty() {
            let stemmer = language.stemmer();
            let mut there = analyzer::stem_words(title, &stemmer);
            there.extend(analyzer::stem_words(text, &stemmer));
            let there: Vec<(String, String)> = there.into_iter().map(|(stem, word)| (stem, word.text)).collect();
            for word in self.wanted {
                let found = there
                    .iter()
                    .find(|(_, exact)| *exact == word.typed)
                    .or_else(|| there.iter().find(|(stem, exact)| word.has_stem(stem) || word.words.contains(exact)));
                match found {
                    Some((_, exact)) if word.typo => why.typos.push((word.typed.clone(), exact.clone())),
                    Some((_, exact)) if !why.words.contains(exact) => why.words.push(exact.clone()),
                    Some(_) | None => {}
                }
            }
        }
        why.rare = self.rare.iter().any(|(_, holders)| holders.contains(&address));
        let score = self.scores.map_or(0.0, |scores| scores.score(address));
        if score > 0.0 {
            why.parts.push(ScorePart { name: "words".to_owned(), value: score });
        }
        why.parts.extend(meaning.map(|value| ScorePart { name: "meaning".to_owned(), value }));
        why.parts.extend(self.boosts.and_then(|lifts| lifts.get(&address)).into_iter().flatten().cloned());
        if let Some((vector, field)) = self.compared {
            let parts = embedding_windows(kind, text);
            let nearest = field.nearest_part(address, vector, parts.len()).filter(|_| parts.len() > 1);
            why.nearest = nearest.and_then(|part| parts.into_iter().nth(part));
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexedPassage, NoteText, PassageKind};

    fn note(id: u8, text: &str) -> NoteText {
        let passage = IndexedPassage {
            place: "0".to_owned(),
            kind: PassageKind::Prose,
            text: text.to_owned(),
            ..IndexedPassage::new(PassageKind::Prose)
        };
        NoteText {
            note: DocId([id; 16]),
            volume: "V".to_owned(),
            path: format!("{id}.md"),
            title: format!("Note {id}"),
            tags: Vec::new(),
            modified: 0,
            key: u64::from(id),
            passages: vec![passage],
        }
    }

    #[test]
    fn what_the_best_passage_means_finds_what_the_question_alone_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        index.grow_vectors("m", 3).expect("vectors");
        let vector = |text: &str| match text {
            text if text.contains("lantern") => vec![0.6, 0.8, 0.0],
            text if text.contains("beacon") => vec![0.1, 0.99, 0.0],
            _ => vec![0.0, 0.0, 1.0],
        };
        for (id, text) in [(1, "the lantern glows"), (2, "a beacon at sea"), (3, "soup of leeks")] {
            index.put_note(&note(id, text)).expect("kept");
        }
        index.commit().expect("committed");
        let mut missing = index.missing_vectors().expect("readable");
        while let Some((hash, text)) = missing.pop().expect("readable") {
            index.store_vectors(&[(hash, vector(&text))]).expect("kept");
        }
        let found = |tuning: RankingWeights, typing: bool| -> Vec<u8> {
            let vector = Some(vec![1.0, 0.0, 0.0]);
            let ask = SearchRequest {
                text: "lantern".to_owned(),
                limit: 10,
                typing,
                vector,
                tuning,
                ..SearchRequest::default()
            };
            index.search(&ask).expect("an answer").hits.iter().map(|hit| hit.note.0[0]).collect()
        };
        let with = RankingWeights { feedback: 0.5, ..RankingWeights::default() };
        assert_eq!(found(RankingWeights::default(), false), [1], "the question alone is near to nothing else");
        assert_eq!(found(with, false), [1, 2], "what is near to the best passage is found, too");
        assert_eq!(found(with, true), [1], "not while the word is being typed");
    }

    #[test]
    fn a_rare_word_stays_in_sight_in_a_short_query_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        index.grow_vectors("m", 2).expect("vectors");
        for id in 1..=5 {
            index.put_note(&note(id, &format!("a garden, bed number {id}"))).expect("kept");
        }
        index.put_note(&note(6, "a zinnia in its pot")).expect("kept");
        index.commit().expect("committed");
        let mut missing = index.missing_vectors().expect("readable");
        while let Some((hash, text)) = missing.pop().expect("readable") {
            let vector = if text.contains("zinnia") { vec![0.0, 1.0] } else { vec![1.0, 0.0] };
            index.store_vectors(&[(hash, vector)]).expect("kept");
        }
        let place = |text: &str| {
            let tuning = RankingWeights { gate: FusionGate::fixed(0.0), ..RankingWeights::default() };
            let vector = Some(vec![1.0, 0.0]);
            let ask = SearchRequest { text: text.to_owned(), limit: 9, vector, tuning, ..SearchRequest::default() };
            let hits = index.search(&ask).expect("an answer").hits;
            hits.iter().position(|hit| hit.note.0[0] == 6).expect("the zinnia is found")
        };
        assert_eq!(place("garden zinnia"), 2, "who types so few words means each of them");
        assert_eq!(place("where in the garden does the zinnia grow"), 5, "the five that mean it stay first");
    }

    #[test]
    fn what_is_new_linked_or_starred_comes_first_among_equals() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        let day = 86_400_000;
        let links = IndexedPassage {
            links: vec!["4".to_owned()],
            text: "see four".to_owned(),
            ..IndexedPassage::new(PassageKind::Prose)
        };
        for (id, days) in [(1, 0), (2, 400), (3, 400), (4, 400), (5, 0)] {
            let text = if id == 5 { "the lantern and the lantern" } else { "a lantern, glass and brass, on a hook" };
            let mut note = NoteText { modified: (1_000 - days) * day, ..note(id, text) };
            note.passages.extend((id == 3).then(|| links.clone()));
            index.put_note(&note).expect("kept");
        }
        index.commit().expect("committed");
        let found = |starred: &[u8], tuning: RankingWeights| {
            let starred = Arc::new(starred.iter().map(|id| DocId([*id; 16])).collect());
            let ask = SearchRequest {
                text: "lantern".to_owned(),
                limit: 9,
                now: 1_000 * day,
                starred,
                tuning,
                ..SearchRequest::default()
            };
            index.search(&ask).expect("an answer").hits
        };
        let order = |hits: &[NoteHit]| hits.iter().map(|hit| hit.note.0[0]).collect::<Vec<_>>();
        let plain =
            RankingWeights { recency_boost: 0.0, link_boost: 0.0, star_boost: 0.0, ..RankingWeights::default() };
        assert_eq!(order(&found(&[2], plain)), [5, 1, 2, 3, 4], "equal ones in the order in which they came");
        let hits = found(&[2], RankingWeights::default());
        assert_eq!(order(&hits), [5, 2, 1, 4, 3], "a star, a change of today, a link");
        let parts = |hit: &NoteHit| hit.why.parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
        assert_eq!(parts(&hits[1]), ["words", "starred"]);
        assert_eq!(parts(&hits[2]), ["words", "changed lately"]);
        assert_eq!(parts(&hits[3]), ["words", "links to it"]);
        assert_eq!(parts(&hits[4]), ["words"]);
        let better = |hits: &[NoteHit]| hits[0].score - hits[1].score;
        assert!(better(&found(&[], plain)) > 0.08, "what fits much better");
        assert_eq!(
            order(&found(&[4], RankingWeights { recency_boost: 0.0, ..RankingWeights::default() }))[0],
            5,
            "stays first"
        );
    }

    #[test]
    fn the_note_with_the_name_that_was_typed_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        for (id, path, text) in [
            (1, "Idea.md", "a garden, the garden, my garden"),
            (2, "Rain.md", "garden garden garden garden"),
            (3, "Places/Garden.md", "Beds, paths and a shed behind the house. In the garden nothing is straight."),
            (4, "Garden party.md", "the garden, the garden and the garden"),
        ] {
            index.put_note(&NoteText { path: path.to_owned(), ..note(id, text) }).expect("kept");
        }
        index.commit().expect("committed");
        let first = |text: &str| {
            let ask = SearchRequest { text: text.to_owned(), limit: 9, ..SearchRequest::default() };
            index.search(&ask).expect("an answer").hits[0].note.0[0]
        };
        assert_eq!((first("garden"), first(" GARDEN ")), (3, 3));
        assert_ne!(first("gardens"), 3, "only the whole name counts");
    }

    #[test]
    fn each_passage_may_be_a_hit() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        let mut both = note(1, "a lantern");
        both.passages.push(IndexedPassage {
            place: "1".to_owned(),
            text: "two lanterns".to_owned(),
            ..both.passages[0].clone()
        });
        index.put_note(&both).expect("kept");
        index.commit().expect("committed");
        let found = |each: bool| {
            let ask =
                SearchRequest { text: "lantern".to_owned(), limit: 9, per_passage: each, ..SearchRequest::default() };
            index.search(&ask).expect("an answer").hits
        };
        assert_eq!((found(false).len(), found(false)[0].more), (1, 1));
        let places: Vec<String> = found(true).into_iter().map(|hit| hit.place).collect();
        assert_eq!(places, ["0", "1"]);
    }

    fn hit(title: &str, rare: bool) -> NoteHit {
        NoteHit {
            note: DocId([0; 16]),
            volume: String::new(),
            path: String::new(),
            title: title.to_owned(),
            heading: String::new(),
            place: String::new(),
            kind: PassageKind::Prose,
            language: StemLanguage::ENGLISH,
            modified: 0,
            text: String::new(),
            is_turn: false,
            score: 1.0,
            why: HitReason { rare, ..HitReason::default() },
            more: 0,
        }
    }

    #[test]
    fn hits_read_again_are_in_that_order_and_a_rare_word_stays_in_sight() {
        let hits = ["a", "b", "c", "rare", "late"].map(|title| hit(title, title == "rare")).to_vec();
        let mut answer = SearchAnswer { hits, ..SearchAnswer::default() };
        answer.apply_rerank(&[0.1, 0.9, 0.5, 0.05]);
        let order: Vec<&str> = answer.hits.iter().map(|hit| hit.title.as_str()).collect();
        assert_eq!(order, ["b", "c", "rare", "a", "late"]);
        assert!(answer.hits[0].score > 0.8 && answer.hits[0].why.parts[0].name == "read once more");
    }
}
