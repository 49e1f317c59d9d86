//! Ranks turns of conversations: what was said next to a turn and in its session counts for it, too, and so do the
//! speakers and days that a question names. Other passages are only affected by days.
//!
//! The weights were chosen on chats, scenes of series and minutes of meetings together, by an emulation of this ranking
//! in Python; those of days weren't.

use crate::analyzer;
use crate::boosts::ScoreBoosts;
use crate::dates::{DAY_MS, NamedDays, TimeQuestion, read_time_question};
use crate::error::IndexError;
use crate::fulltext::FullTextIndex;
use crate::ranking::{ScorePart, SearchRequest};
use std::collections::{HashMap, HashSet};
use tantivy::columnar::Column;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED, Term};

/// Shares of the better score next to a turn and two turns away, and of its session's best turns.
const NEXT_TURN_SHARE: f32 = 0.4;
const SECOND_TURN_SHARE: f32 = 0.25;
const SESSION_SHARE: f32 = 0.4;
/// Number of a session's best turns whose mean is the session's score.
const SESSION_TURNS: usize = 3;
/// Share of a question's score that the turn after it gets: it holds the answer.
const ANSWER_SHARE: f32 = 0.2;
/// What a turn loses if it's itself a question.
const ASKING_LOSS: f32 = 0.05;
/// Boosts for a speaker named in the question, and for a turn that names a time if the question asks for one.
const SPEAKER_BOOST: f32 = 0.2;
const WHEN_BOOST: f32 = 0.1;
/// Boost for a passage of one of the days in the question, and the factor for those of other days if it excludes them.
const DAY_BOOST: f32 = 0.15;
const OTHER_DAY_FACTOR: f32 = 0.5;
/// Maximum number of words of a question that are compared with names of speakers.
const MAX_NAME_WORDS: usize = 64;

/// What is known about the turns of a segment.
struct TurnColumns {
    /// Identifies a turn's session in its note; missing for passages that are no turns.
    session: Option<Column<u64>>,
    /// Whether a turn asks something (1).
    asks: Option<Column<u64>>,
    /// When a passage was said or written, in milliseconds since 1970.
    said: Option<Column<i64>>,
    /// The days that a passage is about: pairs of a first and a last day.
    about: Option<Column<i64>>,
    /// The turns of speakers that the question names.
    named: HashSet<u32>,
}

impl TurnColumns {
    fn open(segment: &SegmentReader) -> Result<TurnColumns, IndexError> {
        let fast = segment.fast_fields();
        Ok(TurnColumns {
            session: fast.column_opt("session")?,
            asks: fast.column_opt("asks")?,
            said: fast.column_opt("said")?,
            about: fast.column_opt("about")?,
            named: HashSet::new(),
        })
    }

    fn session(&self, doc: u32) -> Option<u64> {
        self.session.as_ref()?.first(doc)
    }

    fn asks(&self, doc: u32) -> bool {
        self.asks.as_ref().is_some_and(|asks| asks.first(doc) == Some(1))
    }

    fn names_a_time(&self, doc: u32) -> bool {
        self.about.as_ref().is_some_and(|about| about.first(doc).is_some())
    }

    /// Whether a passage is of these days: said on one, or about one; `None` if neither, and it isn't known when it
    /// was said.
    fn is_of(&self, doc: u32, days: &[NamedDays]) -> Option<bool> {
        let said = self.said.as_ref().and_then(|said| said.first(doc)).map(|said| said.div_euclid(DAY_MS));
        let about: Vec<i64> = self.about.iter().flat_map(|about| about.values_for_doc(doc)).collect();
        let mut all = said.into_iter().chain(about.iter().copied());
        let around = |pair: &[i64]| {
            let [first, last] = pair else { return false };
            days.iter().any(|days| matches!(days, NamedDays::Range(from, to) if from <= last && to >= first))
        };
        let fits = all.any(|day| days.iter().any(|days| days.contains(day))) || about.chunks(2).any(around);
        (fits || said.is_some()).then_some(fits)
    }
}

impl FullTextIndex {
    /// Adds to the scores of turns what their context says, and sorts the ranking again. The best turn keeps the score
    /// of the best turn before, so that conversations don't displace other notes.
    pub(crate) fn rank_turns(
        &self,
        searcher: &Searcher,
        ask: &SearchRequest,
        words: &str,
        ranked: &mut [(f32, DocAddress)],
    ) -> Result<ScoreBoosts, IndexError> {
        let mut columns = searcher.segment_readers().iter().map(TurnColumns::open).collect::<Result<Vec<_>, _>>()?;
        let time = read_time_question(words, ask.now);
        let undated = |one: &TurnColumns| one.about.is_none() && one.said.is_none();
        if columns.iter().all(|one| one.session.is_none() && (time.days.is_empty() || undated(one))) {
            return Ok(ScoreBoosts::new());
        }
        for (segment, columns) in searcher.segment_readers().iter().zip(&mut columns) {
            columns.named = self.turns_of_named_speakers(segment, words)?;
        }
        let scores: HashMap<DocAddress, f32> = ranked.iter().map(|(score, address)| (*address, *score)).collect();
        let best = |ranked: &[(f32, DocAddress)]| {
            let turns = ranked.iter().filter(|(_, address)| turn_session(&columns, *address).is_some());
            turns.map(|(score, _)| *score).reduce(f32::max)
        };
        let highest = best(ranked);
        let sessions = session_scores(&columns, ranked);
        let mut boosts = ScoreBoosts::new();
        for (score, address) in ranked.iter_mut() {
            let parts = turn_parts(&columns, &scores, &sessions, &time, *address);
            *score += parts.iter().map(|part| part.value).sum::<f32>();
            let of_days =
                columns.get(address.segment_ord as usize).and_then(|one| one.is_of(address.doc_id, &time.days));
            if time.strict && !time.days.is_empty() && of_days == Some(false) {
                *score *= OTHER_DAY_FACTOR;
            }
            if !parts.is_empty() {
                boosts.insert(*address, parts);
            }
        }
        if let (Some(before), Some(after)) = (highest, best(ranked))
            && after > before
            && before > 0.0
        {
            let turns = ranked.iter_mut().filter(|(_, address)| turn_session(&columns, *address).is_some());
            turns.for_each(|(score, _)| *score *= before / after);
        }
        ranked.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
        Ok(boosts)
    }

    /// Returns the turns whose speaker is named by a word of the question.
    fn turns_of_named_speakers(&self, segment: &SegmentReader, words: &str) -> Result<HashSet<u32>, IndexError> {
        let index = segment.inverted_index(self.fields.marks)?;
        let mut turns = HashSet::new();
        let mut names: Vec<String> = analyzer::split_words(words).into_iter().map(|word| word.text).collect();
        if names.iter().any(|name| matches!(name.as_str(), "i" | "me" | "my")) {
            names.extend(["me", "user"].map(str::to_owned));
        }
        names.sort();
        names.dedup();
        for name in names.iter().take(MAX_NAME_WORDS) {
            let term = Term::from_field_text(self.fields.marks, &format!("by:{name}"));
            if let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    turns.insert(doc);
                    doc = postings.advance();
                }
            }
        }
        Ok(turns)
    }
}

fn turn_session(columns: &[TurnColumns], address: DocAddress) -> Option<u64> {
    columns.get(address.segment_ord as usize)?.session(address.doc_id)
}

/// Returns the score of each session: the mean of its best turns.
#[allow(clippy::cast_precision_loss, reason = "a few turns")]
fn session_scores(columns: &[TurnColumns], ranked: &[(f32, DocAddress)]) -> HashMap<u64, f32> {
    let mut best: HashMap<u64, Vec<f32>> = HashMap::new();
    for (score, address) in ranked {
        if let Some(session) = turn_session(columns, *address) {
            best.entry(session).or_default().push(*score);
        }
    }
    let mean = |mut scores: Vec<f32>| {
        scores.sort_by(|a, b| b.total_cmp(a));
        scores.iter().take(SESSION_TURNS).sum::<f32>() / SESSION_TURNS as f32
    };
    best.into_iter().map(|(session, scores)| (session, mean(scores))).collect()
}

/// Returns what a passage gains from its context, its speaker and its day.
fn turn_parts(
    columns: &[TurnColumns],
    scores: &HashMap<DocAddress, f32>,
    sessions: &HashMap<u64, f32>,
    time: &TimeQuestion,
    address: DocAddress,
) -> Vec<ScorePart> {
    let mut parts = Vec::new();
    let mut part = |name: &str, value: f32| {
        if value != 0.0 {
            parts.push(ScorePart { name: name.to_owned(), value });
        }
    };
    let Some(here) = columns.get(address.segment_ord as usize) else { return parts };
    if !time.days.is_empty() && here.is_of(address.doc_id, &time.days) == Some(true) {
        part("its day", DAY_BOOST);
    }
    let Some(session) = here.session(address.doc_id) else { return parts };
    // The turns of a note are neighbors in the index.
    let score = |offset: i32| {
        let doc = address.doc_id.checked_add_signed(offset)?;
        let score = scores.get(&DocAddress::new(address.segment_ord, doc))?;
        (here.session(doc) == Some(session)).then_some(*score)
    };
    let better = |distance: i32| score(-distance).unwrap_or(0.0).max(score(distance).unwrap_or(0.0));
    let answers = address.doc_id.checked_sub(1).is_some_and(|before| here.asks(before));
    let answered = score(-1).filter(|_| answers).unwrap_or(0.0);
    part("turns next to it", NEXT_TURN_SHARE * better(1) + SECOND_TURN_SHARE * better(2) + ANSWER_SHARE * answered);
    part("its session", SESSION_SHARE * sessions.get(&session).copied().unwrap_or(0.0));
    part("its speaker", if here.named.contains(&address.doc_id) { SPEAKER_BOOST } else { 0.0 });
    part("names a time", if time.asks_when && here.names_a_time(address.doc_id) { WHEN_BOOST } else { 0.0 });
    part("asks", if here.asks(address.doc_id) { -ASKING_LOSS } else { 0.0 });
    parts
}

#[cfg(test)]
mod tests {
    use crate::{FullTextIndex, FusionGate, IndexedPassage, NoteText, PassageKind, RankingWeights, SearchRequest};
    use store::DocId;

    fn note(id: u8, turns: &[(&str, &str)]) -> NoteText {
        let turn = |(session, text): &(&str, &str)| IndexedPassage {
            place: text.split_whitespace().last().unwrap_or_default().to_owned(),
            text: (*text).to_owned(),
            session: (*session).to_owned(),
            speaker: text.split(':').next().unwrap_or_default().to_owned(),
            ..IndexedPassage::new(PassageKind::Prose)
        };
        NoteText {
            note: DocId([id; 16]),
            volume: "V".to_owned(),
            path: format!("{id}.md"),
            title: "Talk".to_owned(),
            tags: Vec::new(),
            modified: 0,
            key: u64::from(id),
            passages: turns.iter().map(turn).collect(),
        }
    }

    fn found(notes: &[NoteText], text: &str) -> Vec<(String, f32)> {
        let folder = tempfile::tempdir().expect("a folder");
        let index = FullTextIndex::open(folder.path(), "m").expect("an index");
        notes.iter().for_each(|note| index.put_note(note).expect("kept"));
        index.commit().expect("committed");
        let ask = SearchRequest { text: text.to_owned(), limit: 9, per_passage: true, ..SearchRequest::default() };
        index.search(&ask).expect("an answer").hits.into_iter().map(|hit| (hit.place, hit.score)).collect()
    }

    #[test]
    fn an_answer_moves_up_with_its_question_within_a_session() {
        let talk = [
            ("1", "Ann: the lantern was sold to a sailor, one"),
            ("1", "Bob: where did you buy the lantern? two"),
            ("1", "Ann: at the market, a brass lantern of some age and weight, with all that belongs to it, three"),
            ("2", "Bob: a brass lantern of some age and weight, with all that belongs to it, again, four"),
        ];
        let places = |session: &str| {
            let talk = talk.map(|(own, text)| (if session.is_empty() { "" } else { own }, text));
            let found = found(&[note(1, &talk)], "where did you buy the lantern");
            found.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
        };
        let (with, without) = (places("1"), places(""));
        assert_eq!(without, ["two", "one", "three", "four"], "by words alone, shorter ones first");
        assert_eq!(with, ["two", "three", "one", "four"], "what follows a question answers it");
    }

    #[test]
    fn words_count_more_than_meaning_in_turns() {
        let places = |sessions: [&str; 2]| -> Vec<String> {
            let folder = tempfile::tempdir().expect("a folder");
            let index = FullTextIndex::open(folder.path(), "m").expect("an index");
            index.grow_vectors("m", 2).expect("vectors");
            let talk = [(sessions[0], "the lantern was sold, one"), (sessions[1], "it shines at night, two")];
            index.put_note(&note(1, &talk)).expect("kept");
            index.commit().expect("committed");
            let mut missing = index.missing_vectors().expect("readable");
            while let Some((hash, text)) = missing.pop().expect("readable") {
                let vector = if text.contains("lantern") { vec![0.6, 0.8] } else { vec![1.0, 0.0] };
                index.store_vectors(&[(hash, vector)]).expect("kept");
            }
            let tuning = RankingWeights { gate: FusionGate::fixed(0.3), ..RankingWeights::default() };
            let (text, vector) = ("lantern sold".to_owned(), Some(vec![1.0, 0.0]));
            let ask = SearchRequest { text, limit: 9, per_passage: true, vector, tuning, ..SearchRequest::default() };
            index.search(&ask).expect("an answer").hits.into_iter().map(|hit| hit.place).collect()
        };
        assert_eq!(places(["", ""]), ["two", "one"], "the gate trusts meaning here");
        assert_eq!(places(["1", "2"]), ["one", "two"]);
    }

    #[test]
    fn conversations_do_not_displace_other_notes() {
        let other = note(2, &[("", "the lantern of brass, five")]);
        let talk: Vec<(&str, &str)> = (0..6).map(|_| ("1", "Ann: the lantern again")).collect();
        let found = found(&[note(1, &talk), other], "Ann lantern brass");
        assert_eq!(found[0].0, "five", "{found:?}");
        assert!(found.iter().all(|(_, score)| *score <= 1.1), "{found:?}");
    }
}
