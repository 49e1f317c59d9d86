//! The words of a query: their completions and corrections, and what each adds to the BM25 scores of passages.

use crate::analyzer;
use crate::error::IndexError;
use crate::filter::{self, AdmittedPassages};
use crate::fulltext::{FullTextIndex, language_mark};
use crate::language::{LanguageStemmer, StemLanguage};
use crate::rank_fusion::PassageScores;
use crate::ranking::RankingWeights;
use std::collections::{HashMap, HashSet};
use tantivy::postings::Postings;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, Term};

/// A word that occurs in at most this many indexed passages counts as rare.
const MAX_RARE_WORD_NOTES: u64 = 3;
/// Maximum number of corrections for a mistyped word.
const MAX_TYPO_WORDS: usize = 6;

/// A rare word of the query, and the passages that contain it.
pub(crate) type RareWord = (String, HashSet<DocAddress>);

/// A word of the query with the words that count as matches.
pub(crate) struct QueryWord {
    pub(crate) typed: String,
    /// Its stem in each language of the index, searched in the field of stems.
    pub(crate) stems: Vec<QueryStem>,
    /// Exact words to search for: the word itself, or its completions or corrections.
    pub(crate) words: Vec<String>,
    /// Whether `words` includes completions.
    is_prefix: bool,
    /// Whether `words` are corrections, because no passage contains the word.
    pub(crate) typo: bool,
}

/// A word's stem in one of the languages of the index.
pub(crate) struct QueryStem {
    pub(crate) language: StemLanguage,
    /// The stem as a term of the index.
    pub(crate) term: String,
    /// How much the word counts in passages of this language: less if it's a stop word there.
    pub(crate) weight: f32,
}

impl QueryWord {
    /// Whether this term of a passage is the word's stem.
    pub(crate) fn has_stem(&self, term: &str) -> bool {
        !self.typo && self.stems.iter().any(|stem| stem.term == term)
    }

    /// Returns how much the word counts in passages of this language.
    fn weight_in(&self, language: StemLanguage) -> f32 {
        self.stems.iter().find(|stem| stem.language == language).map_or(1.0, |stem| stem.weight)
    }
}

impl FullTextIndex {
    /// Returns the languages of the indexed passages.
    fn indexed_languages(&self, searcher: &Searcher) -> Result<Vec<StemLanguage>, IndexError> {
        let mut found = Vec::new();
        for language in StemLanguage::all() {
            if searcher.doc_freq(&Term::from_field_text(self.fields.marks, &language_mark(language)))? > 0 {
                found.push(language);
            }
        }
        Ok(found)
    }

    /// Returns the words of a query with their completions and corrections.
    pub(crate) fn query_words(
        &self,
        searcher: &Searcher,
        words: &[(String, bool)],
        stop_word_weight: f32,
    ) -> Result<Vec<QueryWord>, IndexError> {
        let stemmers: Vec<(StemLanguage, LanguageStemmer)> =
            self.indexed_languages(searcher)?.into_iter().map(|language| (language, language.stemmer())).collect();
        let mut all: Vec<QueryWord> = Vec::new();
        for (text, prefix) in words {
            let parts = analyzer::split_words(text);
            for (place, word) in parts.iter().enumerate() {
                let source = &text[word.range.clone()];
                let stem = |(language, stemmer): &(StemLanguage, LanguageStemmer)| QueryStem {
                    language: *language,
                    term: stemmer.stem_term(source),
                    weight: 1.0,
                };
                let mut wanted = QueryWord {
                    typed: word.text.clone(),
                    words: vec![word.text.clone()],
                    stems: stemmers.iter().map(stem).collect(),
                    is_prefix: false,
                    typo: false,
                };
                if *prefix && place + 1 == parts.len() {
                    wanted.words.extend(self.prefix_completions(searcher, &word.text)?);
                    wanted.is_prefix = true;
                }
                let there = |word: &str, field| searcher.doc_freq(&Term::from_field_text(field, word));
                let mut known = there(&wanted.typed, self.fields.title)? > 0 || wanted.words.len() > 1;
                for stem in &wanted.stems {
                    known = known || there(&stem.term, self.fields.stems)? > 0;
                }
                // Parts of an identifier aren't corrected separately.
                if !known && !word.whole {
                    wanted.words = self.typo_corrections(searcher, &word.text)?;
                    wanted.typo = !wanted.words.is_empty();
                }
                if all.iter().all(|other| other.typed != wanted.typed) {
                    all.push(wanted);
                }
            }
        }
        for (number, (language, _)) in stemmers.iter().enumerate() {
            // A query of stop words alone means them.
            if all.iter().all(|word| language.is_stop_word(&word.typed)) {
                continue;
            }
            for word in all.iter_mut().filter(|word| language.is_stop_word(&word.typed)) {
                word.stems[number].weight = stop_word_weight;
            }
        }
        Ok(all)
    }

    /// Returns how many passages contain a word by its stem in their language.
    pub(crate) fn stem_count(&self, searcher: &Searcher, word: &QueryWord) -> Result<u64, IndexError> {
        let mut count = 0;
        for stem in &word.stems {
            count += searcher.doc_freq(&Term::from_field_text(self.fields.stems, &stem.term))?;
        }
        Ok(count)
    }

    fn prefix_completions(&self, searcher: &Searcher, start: &str) -> Result<Vec<String>, IndexError> {
        let mut found: Vec<String> = Vec::new();
        if start.chars().count() < 2 {
            return Ok(found);
        }
        for segment in searcher.segment_readers() {
            found.extend(filter::words_with_prefix(segment, self.fields.words, start)?.into_iter().take(32));
        }
        found.sort();
        found.dedup();
        found.retain(|word| word != start);
        found.truncate(64);
        Ok(found)
    }

    /// Returns the most frequent words that differ from a word by one letter, or by up to two letters if it's long.
    fn typo_corrections(&self, searcher: &Searcher, word: &str) -> Result<Vec<String>, IndexError> {
        let letters = word.chars().count();
        if letters < 4 || word.chars().any(|c| c.is_ascii_digit()) {
            return Ok(Vec::new());
        }
        for distance in 1..=(if letters >= 8 { 2 } else { 1 }) {
            let term = Term::from_field_text(self.fields.words, word);
            let automaton = FuzzyTermQuery::new(term, distance, true);
            let mut found: HashMap<String, u32> = HashMap::new();
            for segment in searcher.segment_readers() {
                let index = segment.inverted_index(self.fields.words)?;
                let mut words = index.terms().search(automaton.automaton()?).into_stream()?;
                while words.advance() {
                    if let Ok(word) = std::str::from_utf8(words.key()) {
                        *found.entry(word.to_owned()).or_default() += words.value().doc_freq;
                    }
                }
            }
            if !found.is_empty() {
                let mut found: Vec<(String, u32)> = found.into_iter().collect();
                found.sort_by(|(a, left), (b, right)| right.cmp(left).then(a.cmp(b)));
                return Ok(found.into_iter().take(MAX_TYPO_WORDS).map(|(word, _)| word).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Adds a word's score to the passages that contain it.
    pub(crate) fn add_word_scores(
        &self,
        searcher: &Searcher,
        word: &QueryWord,
        tuning: &RankingWeights,
        admitted: Option<&AdmittedPassages>,
        scores: &mut PassageScores,
        rare: &mut Vec<RareWord>,
    ) -> Result<(), IndexError> {
        let fields = &self.fields;
        let total: u64 = searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
        let frequency = |field: Field, words: &[String]| -> Result<u64, IndexError> {
            let mut sum = 0;
            for word in words {
                sum += searcher.doc_freq(&Term::from_field_text(field, word))?;
            }
            Ok(sum.min(total))
        };
        let stems: Vec<String> = word.stems.iter().map(|stem| stem.term.clone()).collect();
        let stem_count = self.stem_count(searcher, word)?.min(total);
        let word_count = frequency(fields.words, &word.words)?;
        if !word.typo && !word.is_prefix && (1..=MAX_RARE_WORD_NOTES).contains(&word_count) {
            rare.push((word.typed.clone(), HashSet::new()));
        }
        let mut rare = rare.last_mut().filter(|(rare, _)| *rare == word.typed);
        let strength = if word.typo { 0.7 } else { 1.0 };
        // Corrected and completed words count like the stem.
        let exact = if word.typo || (word.is_prefix && stem_count == 0) { 1.0 } else { tuning.exact };
        let rows: [(Field, &[String], f32, u64); 3] = [
            (fields.stems, if word.typo { &[] } else { &stems }, 1.0, stem_count),
            (fields.words, &word.words, if word.is_prefix { exact.max(0.6) } else { exact }, word_count),
            (fields.title, &word.words, tuning.title, stem_count.max(word_count)),
        ];
        for (field, terms, weight, count) in rows {
            if weight == 0.0 || terms.is_empty() || count == 0 {
                continue;
            }
            let weight = weight * strength * idf(count, total) * (tuning.k1 + 1.0);
            let tokens: u64 = {
                let mut sum = 0;
                for segment in searcher.segment_readers() {
                    sum += segment.inverted_index(field)?.total_num_tokens();
                }
                sum
            };
            let average = (tokens as f32 / total.max(1) as f32).max(1.0);
            for (segment, number) in searcher.segment_readers().iter().zip(0_u32..) {
                let index = segment.inverted_index(field)?;
                let lengths = segment.get_fieldnorms_reader(field)?;
                let sessions = segment.fast_fields().column_opt::<u64>("session")?;
                let languages = segment.fast_fields().u64("language")?;
                let place = number as usize;
                let admitted = admitted.and_then(|admitted| admitted.get(place));
                for term in terms {
                    let term = Term::from_field_text(field, term);
                    let Some(mut postings) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else {
                        continue;
                    };
                    let mut doc = postings.doc();
                    while doc != TERMINATED {
                        let at = doc as usize;
                        let allowed = match admitted {
                            Some(admitted) => admitted[at],
                            None => !segment.is_deleted(doc),
                        };
                        if allowed {
                            let often = postings.term_freq() as f32;
                            let length = lengths.fieldnorm(doc) as f32 / average;
                            let is_turn = sessions.as_ref().is_some_and(|sessions| sessions.first(doc).is_some());
                            let b = if is_turn { tuning.turn_b } else { tuning.b };
                            let norm = tuning.k1 * (1.0 - b + b * length);
                            let language = languages.first(doc).unwrap_or_default();
                            let share = word.weight_in(StemLanguage::from_index_number(language));
                            scores.0[place][at] += share * weight * often / (often + norm);
                            if field == fields.words
                                && let Some((_, holders)) = &mut rare
                            {
                                holders.insert(DocAddress::new(number, doc));
                            }
                        }
                        doc = postings.advance();
                    }
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn idf(count: u64, total: u64) -> f32 {
    let (count, total) = (count as f32, total as f32);
    (1.0 + (total - count + 0.5) / (count + 0.5)).ln()
}

pub(crate) fn matched_terms(wanted: &[QueryWord]) -> HashSet<String> {
    let mut terms = HashSet::new();
    for word in wanted {
        if !word.typo {
            terms.extend(word.stems.iter().map(|stem| stem.term.clone()));
        }
        terms.extend(word.words.iter().cloned());
    }
    terms
}
