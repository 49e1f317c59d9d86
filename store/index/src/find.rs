//! Ranking: BM25 over words and stems, cosine over vectors, and both made one order, with the reasons.

use crate::analyzer::{self, stem, stemmer};
use crate::filter::{self, Admitted};
use crate::fit::{self, Fit};
use crate::fuse::{Meanings, POOL, Scores, cut, fuse};
use crate::query::Query;
use crate::shelf::{Index, stored};
use crate::vectors::Small;
use crate::{IndexError, Kind};
use std::collections::{HashMap, HashSet};
use store::DocId;
use tantivy::postings::Postings;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, TantivyDocument, Term};

/// Passages that are looked at for a list of notes: this many for each note asked for.
const DEPTH: usize = 8;
/// The best passages of the first round, whose meanings join that of the question in the second.
const FEEDBACK: usize = 3;
/// The second round of a search looks at this many of the nearest passages of the first.
const WIDE: usize = 1_000;
/// A word in no more notes than this is a rare one.
const RARE: u64 = 3;
/// A question has an answer where a hit is this near in meaning, or has this share of the weight of its words.
const NEAR_ENOUGH: f32 = 0.35;
const WORDS_ENOUGH: f32 = 0.6;
/// At most this many words are taken for what was mistyped.
const TYPOS: usize = 6;

/// By what to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Words and meaning, as far as there are vectors.
    #[default]
    Both,
    /// Words alone.
    Words,
    /// Meaning alone.
    Meaning,
}

/// The numbers of the ranking, chosen by measuring (BENCHMARKS.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// How soon a repeated word counts no more.
    pub k1: f32,
    /// How much a long passage is held against it.
    pub b: f32,
    /// What the exact word adds to its stem.
    pub exact: f32,
    /// What a word in the title adds.
    pub title: f32,
    /// The share of words against meaning.
    pub words: f32,
    /// The share of the best passages' meaning in that of the question, 0 to 1: pseudo-relevance feedback after
    /// Rocchio (1971). None while the last word is being typed.
    pub feedback: f32,
    /// Below this cosine a passage without any of the words does not fit.
    pub near: f32,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { k1: 1.5, b: 0.75, exact: 0.1, title: 0.3, words: 0.4, feedback: 0.5, near: 0.35 }
    }
}

/// A question.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// What was typed.
    pub text: String,
    /// How many notes to answer with.
    pub limit: usize,
    /// Whether the last word may not be whole yet.
    pub typing: bool,
    /// By what to search.
    pub mode: Mode,
    /// The vector of [`Query::sentence`], by the model of [`Index::answering`].
    pub vector: Option<Vec<f32>>,
    /// The cosine that this model has for texts that have nothing to do with each other, 0 to 1. All cosines are told
    /// as if it were 0.
    pub unrelated: f32,
    /// The numbers of the ranking.
    pub tuning: Tuning,
}

/// One share of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Of what.
    pub name: String,
    /// How much.
    pub value: f32,
}

/// Why a hit is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// The words of the query that stand in it or its title, as they stand there.
    pub words: Vec<String>,
    /// Words that were taken for mistyped ones: what was asked, what is there.
    pub typos: Vec<(String, String)>,
    /// The cosine, if it was compared by meaning.
    pub meaning: Option<f32>,
    /// Whether it was put up because it has a rare word of the query.
    pub rare: bool,
    /// The parts of the score.
    pub parts: Vec<Part>,
}

impl Why {
    /// The reasons in words.
    pub fn sentence(&self) -> String {
        let mut said = Vec::new();
        if !self.words.is_empty() {
            said.push(format!("has {}", self.words.join(", ")));
        }
        for (asked, there) in &self.typos {
            said.push(format!("“{asked}” taken for {there}"));
        }
        if let Some(near) = self.meaning.filter(|near| *near >= 0.2) {
            said.push(format!("{} in meaning ({near:.2})", if near >= 0.5 { "close" } else { "related" }));
        }
        if said.is_empty() {
            said.push("fits the filters".to_owned());
        }
        said.join("; ")
    }
}

/// A note that fits, by its best passage.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The note.
    pub note: DocId,
    /// The name of its volume.
    pub volume: String,
    /// Its path inside.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The headings above the passage.
    pub heading: String,
    /// Where in the note: `block`, or `cell/output/2`.
    pub place: String,
    /// What the passage is.
    pub kind: Kind,
    /// The passage.
    pub text: String,
    /// Its score, 0 to about 1.
    pub score: f32,
    /// Why it is a hit.
    pub why: Why,
    /// Other passages of the note that fit.
    pub more: usize,
}

/// The hits of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The hits, best first, one for each note.
    pub hits: Vec<Hit>,
    /// The words, stems and completions that count as found, for marking.
    pub terms: HashSet<String>,
    /// Whether meaning was compared.
    pub by_meaning: bool,
    /// How well the best of them fit.
    pub fit: Fit,
}

impl Answer {
    /// Whether anything fits. Where nothing does, the hits are only what is nearest. The two numbers were chosen on one
    /// half of the queries of two collections, asked there and in the other one (BENCHMARKS.md).
    pub fn fits(&self) -> bool {
        let near = self.fit.meaning.is_none_or(|near| near >= NEAR_ENOUGH);
        !self.hits.is_empty() && (near || self.fit.words >= WORDS_ENOUGH)
    }

    /// Orders the first hits by how well a reranker found that they answer, 0 to 1. What holds a rare word of the query
    /// stays in the first three.
    pub fn read_again(&mut self, scores: &[f32]) {
        let first = self.hits.len().min(scores.len());
        for (hit, score) in self.hits.iter_mut().zip(scores) {
            hit.score = *score;
            hit.why.parts.push(Part { name: "read once more".to_owned(), value: *score });
        }
        self.hits[..first].sort_by(|a, b| b.score.total_cmp(&a.score));
        if let Some(place) = self.hits[..first].iter().position(|hit| hit.why.rare).filter(|place| *place > 2) {
            let hit = self.hits.remove(place);
            self.hits.insert(2, hit);
        }
    }
}

/// A word of the query, and what counts as it.
pub(crate) struct Wanted {
    asked: String,
    /// The stem, looked up among stems.
    pub(crate) stem: String,
    /// Exact words: itself, or what completes or mends it.
    pub(crate) words: Vec<String>,
    /// Whether `words` complete it.
    open: bool,
    /// Whether `words` are other words, as nothing has it.
    pub(crate) typo: bool,
}

impl Index {
    /// Finds what fits.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn search(&self, ask: &Ask) -> Result<Answer, IndexError> {
        let searcher = self.searcher();
        let query = Query::parse(&ask.text);
        let admitted = filter::admitted(&searcher, &self.fields, &query)?;
        let mut words = query.words();
        if ask.typing
            && ask.text.ends_with(|last: char| last.is_alphanumeric() || last == '_')
            && let Some((_, prefix)) = words.last_mut()
        {
            *prefix = true;
        }
        let count = (ask.limit.max(1) * DEPTH).max(2 * POOL);
        if words.is_empty() {
            return self.newest(&searcher, admitted.as_ref(), ask.limit);
        }
        let wanted = self.wanted(&searcher, &words)?;
        let mut scores = Scores::new(&searcher);
        let mut rare = Vec::new();
        if ask.mode != Mode::Meaning {
            for word in &wanted {
                self.score(&searcher, word, &ask.tuning, admitted.as_ref(), &mut scores, &mut rare)?;
            }
        }
        let by_words = scores.best(count);
        let fits = |vector: &&Vec<f32>| ask.mode != Mode::Words && vector.len() == self.dimensions();
        let vector = ask.vector.as_ref().filter(fits);
        let mut meanings = Meanings::default();
        let mut ranked = fuse(ask, &scores, &by_words, &meanings, &rare);
        if let Some(vector) = vector {
            let wide = self.meanings(&searcher, vector, admitted.as_ref(), &by_words, count.max(WIDE))?;
            let pool: Vec<DocAddress> = wide.cosines.keys().copied().collect();
            meanings = wide.cut(count).lifted(ask.unrelated);
            ranked = fuse(ask, &scores, &by_words, &meanings, &rare);
            if ask.mode == Mode::Both && !ask.typing && ask.tuning.feedback > 0.0 {
                let best: Vec<DocAddress> = ranked.iter().take(FEEDBACK).map(|(_, address)| *address).collect();
                if let Some(vector) = self.towards(&searcher, vector, &best, ask.tuning.feedback)? {
                    // What is nearest to the moved vector was near to the first one: all are not gone through again.
                    let again = self.among(&searcher, &vector, &pool)?.cut(count).lifted(ask.unrelated);
                    ranked = fuse(ask, &scores, &by_words, &again, &rare);
                }
            }
        }
        let cosines = &meanings.cosines;
        let terms = terms(&wanted);
        let hits = self.hits(&searcher, &ranked, cosines, &scores, &wanted, &rare, ask.limit)?;
        let fit = self.fit(&searcher, &wanted, &hits)?;
        Ok(Answer { hits, terms, by_meaning: !cosines.is_empty(), fit })
    }

    fn fit(&self, searcher: &Searcher, wanted: &[Wanted], hits: &[Hit]) -> Result<Fit, IndexError> {
        let total: u64 = searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
        let mut weighed = Vec::new();
        for word in wanted {
            let mut count = searcher.doc_freq(&Term::from_field_text(self.fields.stems, &word.stem))?;
            if word.typo || count == 0 {
                for exact in &word.words {
                    count += searcher.doc_freq(&Term::from_field_text(self.fields.words, exact))?;
                }
            }
            weighed.push((word, idf(count.min(total), total)));
        }
        Ok(fit::fit(&weighed, hits))
    }

    /// What is nearest in meaning, and how near what was found by words is.
    fn meanings(
        &self,
        searcher: &Searcher,
        vector: &[f32],
        admitted: Option<&Admitted>,
        by_words: &[(f32, DocAddress)],
        count: usize,
    ) -> Result<Meanings, IndexError> {
        let vector = Small::of(vector);
        let nearest = self.nearest(searcher, &vector, admitted, count)?;
        let mut cosines: HashMap<DocAddress, f32> = nearest.iter().map(|(near, address)| (*address, *near)).collect();
        for (_, address) in by_words {
            if !cosines.contains_key(address)
                && let Some(near) = self.near(searcher, *address, &vector)?
            {
                cosines.insert(*address, near);
            }
        }
        Ok(Meanings { nearest, cosines })
    }

    /// How near each of some passages is.
    fn among(&self, searcher: &Searcher, vector: &[f32], pool: &[DocAddress]) -> Result<Meanings, IndexError> {
        let vector = Small::of(vector);
        let mut nearest = Vec::with_capacity(pool.len());
        for address in pool {
            nearest.extend(self.near(searcher, *address, &vector)?.map(|near| (near, *address)));
        }
        let cosines = nearest.iter().map(|(near, address)| (*address, *near)).collect();
        cut(&mut nearest, pool.len());
        Ok(Meanings { nearest, cosines })
    }

    /// A vector moved towards the mean of what some passages mean; `None` where none of them has a vector.
    fn towards(
        &self,
        searcher: &Searcher,
        from: &[f32],
        passages: &[DocAddress],
        share: f32,
    ) -> Result<Option<Vec<f32>>, IndexError> {
        let mut sum = vec![0.0; from.len()];
        let mut any = false;
        let vectors = self.vectors();
        for address in passages {
            let column = searcher.segment_reader(address.segment_ord).fast_fields().u64("meaning")?;
            let Some(slot) = column.values_for_doc(address.doc_id).find_map(|hash| vectors.slot(hash)) else {
                continue;
            };
            any = true;
            sum.iter_mut().zip(vectors.get(slot)).for_each(|(sum, value)| *sum += value);
        }
        let length =
            |vector: &[f32]| vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        let (whole, own) = (length(&sum), length(from));
        Ok(any.then(|| from.iter().zip(sum).map(|(a, b)| (1.0 - share) * a / own + share * b / whole).collect()))
    }

    /// Notes whose meaning is near to that of a note, best first.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn related(&self, note: DocId, limit: usize) -> Result<Vec<Hit>, IndexError> {
        let searcher = self.searcher();
        let own = self.passages(&searcher, note)?;
        let mut mean: Vec<f32> = Vec::new();
        {
            let vectors = self.vectors();
            for address in &own {
                let column = searcher.segment_reader(address.segment_ord).fast_fields().u64("meaning")?;
                for slot in column.values_for_doc(address.doc_id).filter_map(|hash| vectors.slot(hash)) {
                    let vector = vectors.get(slot);
                    mean.resize(vector.len(), 0.0);
                    mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        if mean.is_empty() {
            return Ok(Vec::new());
        }
        let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        mean.iter_mut().for_each(|value| *value /= length);
        let own: HashSet<DocAddress> = own.into_iter().collect();
        let near = self.nearest(&searcher, &Small::of(&mean), None, limit * DEPTH + own.len())?;
        let floor = Tuning::default().near;
        let near: Vec<(f32, DocAddress)> =
            near.into_iter().filter(|(near, address)| *near >= floor && !own.contains(address)).collect();
        let cosines = near.iter().map(|(near, address)| (*address, *near)).collect();
        self.hits(&searcher, &near, &cosines, &Scores::new(&searcher), &[], &[], limit)
    }

    fn passages(&self, searcher: &Searcher, note: DocId) -> Result<Vec<DocAddress>, IndexError> {
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

    /// Without words: what was changed last of all that is admitted.
    fn newest(&self, searcher: &Searcher, admitted: Option<&Admitted>, limit: usize) -> Result<Answer, IndexError> {
        let Some(admitted) = admitted else { return Ok(Answer::default()) };
        let mut all: Vec<(i64, DocAddress)> = Vec::new();
        for ((segment, admitted), number) in searcher.segment_readers().iter().zip(admitted).zip(0..) {
            let modified = segment.fast_fields().i64("modified")?;
            for (_, doc) in admitted.iter().zip(0..).filter(|(admitted, _)| **admitted) {
                all.push((modified.first(doc).unwrap_or(0), DocAddress::new(number, doc)));
            }
        }
        all.sort_by(|(a, left), (b, right)| b.cmp(a).then(left.cmp(right)));
        let ranked: Vec<(f32, DocAddress)> = all.into_iter().map(|(_, address)| (1.0, address)).collect();
        let hits = self.hits(searcher, &ranked, &HashMap::new(), &Scores::new(searcher), &[], &[], limit)?;
        Ok(Answer { hits, ..Answer::default() })
    }

    /// The words of a query, with what completes or mends them.
    fn wanted(&self, searcher: &Searcher, words: &[(String, bool)]) -> Result<Vec<Wanted>, IndexError> {
        let stemmer = stemmer();
        let mut all: Vec<Wanted> = Vec::new();
        for (text, prefix) in words {
            let parts = analyzer::words(text);
            for (place, word) in parts.iter().enumerate() {
                let stem = stem(&stemmer, &word.text);
                let mut wanted =
                    Wanted { asked: word.text.clone(), words: vec![word.text.clone()], stem, open: false, typo: false };
                if *prefix && place + 1 == parts.len() {
                    wanted.words.extend(self.completions(searcher, &word.text)?);
                    wanted.open = true;
                }
                let there = |word: &str, field| searcher.doc_freq(&Term::from_field_text(field, word));
                let known = there(&wanted.stem, self.fields.stems)? > 0
                    || there(&wanted.asked, self.fields.title)? > 0
                    || wanted.words.len() > 1;
                // Parts of an identifier are not mended beside it.
                if !known && !word.whole {
                    wanted.words = self.mended(searcher, &word.text)?;
                    wanted.typo = !wanted.words.is_empty();
                }
                if all.iter().all(|other| other.asked != wanted.asked) {
                    all.push(wanted);
                }
            }
        }
        Ok(all)
    }

    fn completions(&self, searcher: &Searcher, start: &str) -> Result<Vec<String>, IndexError> {
        let mut found: Vec<String> = Vec::new();
        if start.chars().count() < 2 {
            return Ok(found);
        }
        for segment in searcher.segment_readers() {
            found.extend(filter::beginning(segment, self.fields.words, start)?.into_iter().take(32));
        }
        found.sort();
        found.dedup();
        found.retain(|word| word != start);
        found.truncate(64);
        Ok(found)
    }

    /// The most used words that differ from a word in one letter, or in two where it is long.
    fn mended(&self, searcher: &Searcher, word: &str) -> Result<Vec<String>, IndexError> {
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
                return Ok(found.into_iter().take(TYPOS).map(|(word, _)| word).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Adds what a word gives to the scores of the passages that have it.
    fn score(
        &self,
        searcher: &Searcher,
        word: &Wanted,
        tuning: &Tuning,
        admitted: Option<&Admitted>,
        scores: &mut Scores,
        rare: &mut Vec<(String, HashSet<DocAddress>)>,
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
        let stems = [word.stem.clone()];
        let stem_count = frequency(fields.stems, &stems)?;
        let word_count = frequency(fields.words, &word.words)?;
        if !word.typo && !word.open && (1..=RARE).contains(&word_count) {
            rare.push((word.asked.clone(), HashSet::new()));
        }
        let mut rare = rare.last_mut().filter(|(rare, _)| *rare == word.asked);
        let strength = if word.typo { 0.7 } else { 1.0 };
        // What is mended or completed counts as the stem itself would.
        let exact = if word.typo || (word.open && stem_count == 0) { 1.0 } else { tuning.exact };
        let rows: [(Field, &[String], f32, u64); 3] = [
            (fields.stems, if word.typo { &[] } else { &stems }, 1.0, stem_count),
            (fields.words, &word.words, if word.open { exact.max(0.6) } else { exact }, word_count),
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
                            let norm = tuning.k1 * (1.0 - tuning.b + tuning.b * length);
                            scores.0[place][at] += weight * often / (often + norm);
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

    /// The passages whose vectors are nearest.
    fn nearest(
        &self,
        searcher: &Searcher,
        vector: &Small,
        admitted: Option<&Admitted>,
        count: usize,
    ) -> Result<Vec<(f32, DocAddress)>, IndexError> {
        let vectors = self.vectors();
        let mut all = Vec::new();
        let mut floor = f32::MIN;
        for (segment, number) in searcher.segment_readers().iter().zip(0_u32..) {
            let places = self.places(segment, &vectors)?;
            let admitted = admitted.and_then(|admitted| admitted.get(number as usize));
            for of_one in places.chunk_by(|one, next| one.doc == next.doc) {
                let doc = of_one[0].doc;
                let allowed = match admitted {
                    Some(admitted) => admitted[doc as usize],
                    None => !segment.is_deleted(doc),
                };
                if !allowed {
                    continue;
                }
                // A long passage is as near as its nearest part.
                let near = of_one.iter().map(|place| vectors.near(place.slot, vector)).fold(f32::MIN, f32::max);
                if near > floor {
                    all.push((near, DocAddress::new(number, doc)));
                    if all.len() >= 4 * count + 64 {
                        cut(&mut all, count);
                        floor = all.last().map_or(floor, |(near, _)| *near);
                    }
                }
            }
        }
        cut(&mut all, count);
        Ok(all)
    }

    fn near(&self, searcher: &Searcher, address: DocAddress, vector: &Small) -> Result<Option<f32>, IndexError> {
        let column = searcher.segment_reader(address.segment_ord).fast_fields().u64("meaning")?;
        let vectors = self.vectors();
        let slots = column.values_for_doc(address.doc_id).filter_map(|hash| vectors.slot(hash));
        Ok(slots.map(|slot| vectors.near(slot, vector)).reduce(f32::max))
    }

    /// Ranked passages as notes with reasons.
    #[allow(clippy::too_many_arguments, reason = "all that a search knows, in one place that makes it readable")]
    fn hits(
        &self,
        searcher: &Searcher,
        ranked: &[(f32, DocAddress)],
        cosines: &HashMap<DocAddress, f32>,
        scores: &Scores,
        wanted: &[Wanted],
        rare: &[(String, HashSet<DocAddress>)],
        limit: usize,
    ) -> Result<Vec<Hit>, IndexError> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut places: HashMap<(String, u64), usize> = HashMap::new();
        let mut known: HashMap<(u32, u64), usize> = HashMap::new();
        let columns: Vec<_> = searcher
            .segment_readers()
            .iter()
            .map(|segment| segment.fast_fields().str("note"))
            .collect::<Result<_, _>>()?;
        for (score, address) in ranked {
            let Some(notes) = columns.get(address.segment_ord as usize).and_then(Option::as_ref) else { continue };
            let Some(number) = notes.term_ords(address.doc_id).next() else { continue };
            if let Some(place) = known.get(&(address.segment_ord, number)) {
                hits[*place].more += 1;
                continue;
            }
            let mut note = String::new();
            notes.ord_to_str(number, &mut note)?;
            // A note may lie in two segments.
            if let Some(place) = places.get(&(note.clone(), 0)) {
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
            let (title, text) = (stored(&doc, fields.name), stored(&doc, fields.text));
            let why = why(&title, &text, wanted, cosines.get(address).copied(), scores.of(*address), rare, *address);
            places.insert((note, 0), hits.len());
            known.insert((address.segment_ord, number), hits.len());
            hits.push(Hit {
                note: id,
                volume: stored(&doc, fields.volume),
                path: stored(&doc, fields.path),
                title,
                heading: stored(&doc, fields.heading),
                place: stored(&doc, fields.place),
                kind: filter::kind(doc.get_first(fields.kind).and_then(|kind| kind.as_u64()).unwrap_or(0)),
                text,
                score: *score,
                why,
                more: 0,
            });
        }
        Ok(hits)
    }
}

fn idf(count: u64, total: u64) -> f32 {
    let (count, total) = (count as f32, total as f32);
    (1.0 + (total - count + 0.5) / (count + 0.5)).ln()
}

fn terms(wanted: &[Wanted]) -> HashSet<String> {
    let mut terms = HashSet::new();
    for word in wanted {
        if !word.typo {
            terms.insert(word.stem.clone());
        }
        terms.extend(word.words.iter().cloned());
    }
    terms
}

fn why(
    title: &str,
    text: &str,
    wanted: &[Wanted],
    meaning: Option<f32>,
    score: f32,
    rare: &[(String, HashSet<DocAddress>)],
    address: DocAddress,
) -> Why {
    let mut why = Why { meaning, ..Why::default() };
    if !wanted.is_empty() {
        let stemmer = stemmer();
        let there: Vec<(String, String)> = analyzer::words(title)
            .into_iter()
            .chain(analyzer::words(text))
            .map(|word| (stem(&stemmer, &word.text), word.text))
            .collect();
        for word in wanted {
            let found = there.iter().find(|(_, exact)| *exact == word.asked).or_else(|| {
                there.iter().find(|(stem, exact)| (!word.typo && *stem == word.stem) || word.words.contains(exact))
            });
            match found {
                Some((_, exact)) if word.typo => why.typos.push((word.asked.clone(), exact.clone())),
                Some((_, exact)) if !why.words.contains(exact) => why.words.push(exact.clone()),
                Some(_) | None => {}
            }
        }
    }
    why.rare = rare.iter().any(|(_, holders)| holders.contains(&address));
    if score > 0.0 {
        why.parts.push(Part { name: "words".to_owned(), value: score });
    }
    why.parts.extend(meaning.map(|value| Part { name: "meaning".to_owned(), value }));
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NoteText, Passage};

    fn note(id: u8, text: &str) -> NoteText {
        let passage = Passage {
            place: "0".to_owned(),
            kind: Kind::Prose,
            lang: String::new(),
            heading: String::new(),
            text: text.to_owned(),
            todo: false,
            done: false,
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
        let index = Index::open(folder.path(), "m").expect("an index");
        index.grow("m", 3).expect("vectors");
        let vector = |text: &str| match text {
            text if text.contains("lantern") => vec![0.6, 0.8, 0.0],
            text if text.contains("beacon") => vec![0.1, 0.99, 0.0],
            _ => vec![0.0, 0.0, 1.0],
        };
        for (id, text) in [(1, "the lantern glows"), (2, "a beacon at sea"), (3, "soup of leeks")] {
            index.put(&note(id, text)).expect("kept");
        }
        index.commit().expect("committed");
        let mut missing = index.missing().expect("readable");
        while let Some((hash, text)) = missing.pop().expect("readable") {
            index.keep_vectors(&[(hash, vector(&text))]).expect("kept");
        }
        let found = |tuning: Tuning, typing: bool| -> Vec<u8> {
            let vector = Some(vec![1.0, 0.0, 0.0]);
            let ask = Ask { text: "lantern".to_owned(), limit: 10, typing, vector, tuning, ..Ask::default() };
            index.search(&ask).expect("an answer").hits.iter().map(|hit| hit.note.0[0]).collect()
        };
        let alone = Tuning { feedback: 0.0, ..Tuning::default() };
        assert_eq!(found(alone, false), [1], "the question alone is near to nothing else");
        assert_eq!(found(Tuning::default(), false), [1, 2], "what is near to the best passage is found, too");
        assert_eq!(found(Tuning::default(), true), [1], "not while the word is being typed");
    }

    fn hit(title: &str, rare: bool) -> Hit {
        Hit {
            note: DocId([0; 16]),
            volume: String::new(),
            path: String::new(),
            title: title.to_owned(),
            heading: String::new(),
            place: String::new(),
            kind: Kind::Prose,
            text: String::new(),
            score: 1.0,
            why: Why { rare, ..Why::default() },
            more: 0,
        }
    }

    #[test]
    fn hits_read_again_are_in_that_order_and_a_rare_word_stays_in_sight() {
        let hits = ["a", "b", "c", "rare", "late"].map(|title| hit(title, title == "rare")).to_vec();
        let mut answer = Answer { hits, ..Answer::default() };
        answer.read_again(&[0.1, 0.9, 0.5, 0.05]);
        let order: Vec<&str> = answer.hits.iter().map(|hit| hit.title.as_str()).collect();
        assert_eq!(order, ["b", "c", "rare", "a", "late"]);
        assert!(answer.hits[0].score > 0.8 && answer.hits[0].why.parts[0].name == "read once more");
    }
}
