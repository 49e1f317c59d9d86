//! Score boosts besides words and meaning: recent changes, backlinks and stars. They only decide between hits that
//! match about equally well. A note whose whole name or alias was typed comes first, then a section whose heading was.

use crate::error::IndexError;
use crate::fulltext::FullTextIndex;
use crate::passage::link_name;
use crate::ranking::{ScorePart, SearchRequest};
use std::collections::{HashMap, HashSet};
use store::DocId;
use tantivy::columnar::StrColumn;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, Term};

/// Number of the best passages that are boosted. A boost only reorders passages with similar scores.
const MAX_BOOSTED_PASSAGES: usize = 50;
/// Age in milliseconds at which the boost for a recent change is halved.
const RECENCY_HALF_LIFE_MS: f32 = 30.0 * 86_400_000.0;
/// Number of links that earns the full link boost.
const FULL_LINK_COUNT: f32 = 32.0;
/// The boost for a section whose heading is the whole query, as a share of the boost for a note's name.
const HEADING_BOOST_SHARE: f32 = 0.5;
/// Smaller boosts aren't reported.
const MIN_REPORTED_BOOST: f32 = 0.001;

/// The boosts of each passage.
pub(crate) type ScoreBoosts = HashMap<DocAddress, Vec<ScorePart>>;

impl FullTextIndex {
    /// Adds the boosts to the best passages and sorts these again.
    pub(crate) fn apply_boosts(
        &self,
        searcher: &Searcher,
        ask: &SearchRequest,
        ranked: &mut [(f32, DocAddress)],
    ) -> Result<ScoreBoosts, IndexError> {
        let mut columns = Vec::new();
        for segment in searcher.segment_readers() {
            let fast = segment.fast_fields();
            columns.push((fast.str("note")?, fast.str("path")?, fast.i64("modified")?));
        }
        let wanted = ask.text.trim().to_lowercase();
        let aliases = self.passages_with_mark(searcher, "name", &wanted)?;
        let headings = self.passages_with_mark(searcher, "heading", &wanted)?;
        let mut known: HashMap<(u32, u64), Vec<ScorePart>> = HashMap::new();
        let mut lifts = ScoreBoosts::new();
        let count = ranked.len().min(MAX_BOOSTED_PASSAGES);
        let best = &mut ranked[..count];
        for (score, address) in best.iter_mut() {
            let Some((Some(notes), Some(paths), modified)) = columns.get(address.segment_ord as usize) else {
                continue;
            };
            let Some(number) = notes.term_ords(address.doc_id).next() else { continue };
            let mut parts = match known.get(&(address.segment_ord, number)) {
                Some(parts) => parts.clone(),
                None => {
                    let changed = modified.first(address.doc_id).unwrap_or(0);
                    let note = column_text(notes, Some(number))?;
                    let path = column_text(paths, paths.term_ords(address.doc_id).next())?;
                    let parts = self.boost_parts(searcher, ask, &note, &path, changed)?;
                    known.insert((address.segment_ord, number), parts.clone());
                    parts
                }
            };
            for (name, value, named) in [
                ("its alias", ask.tuning.name_boost, &aliases),
                ("its heading", ask.tuning.name_boost * HEADING_BOOST_SHARE, &headings),
            ] {
                if value >= MIN_REPORTED_BOOST && named.contains(address) {
                    parts.push(ScorePart { name: name.to_owned(), value });
                }
            }
            *score += parts.iter().map(|part| part.value).sum::<f32>();
            if !parts.is_empty() {
                lifts.insert(*address, parts);
            }
        }
        best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(lifts)
    }

    /// Returns the passages with an exact mark. An empty value marks none.
    fn passages_with_mark(
        &self,
        searcher: &Searcher,
        name: &str,
        value: &str,
    ) -> Result<HashSet<DocAddress>, IndexError> {
        let mut found = HashSet::new();
        if value.is_empty() {
            return Ok(found);
        }
        let term = Term::from_field_text(self.fields.marks, &format!("{name}:{value}"));
        for (segment_ord, segment) in (0..).zip(searcher.segment_readers()) {
            let index = segment.inverted_index(self.fields.marks)?;
            if let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
                let mut doc_id = postings.doc();
                while doc_id != TERMINATED {
                    found.insert(DocAddress { segment_ord, doc_id });
                    doc_id = postings.advance();
                }
            }
        }
        Ok(found)
    }

    #[allow(clippy::cast_precision_loss, reason = "days and links")]
    fn boost_parts(
        &self,
        searcher: &Searcher,
        ask: &SearchRequest,
        note: &str,
        path: &str,
        changed: i64,
    ) -> Result<Vec<ScorePart>, IndexError> {
        let mut parts = Vec::new();
        let mut part = |name: &str, value: f32| {
            if value >= MIN_REPORTED_BOOST {
                parts.push(ScorePart { name: name.to_owned(), value });
            }
        };
        if ask.now > 0 {
            let age = ask.now.saturating_sub(changed).max(0) as f32;
            part("changed lately", ask.tuning.recency_boost * 0.5_f32.powf(age / RECENCY_HALF_LIFE_MS));
        }
        let name = link_name(path);
        if !name.is_empty() && ask.text.trim().to_lowercase() == name {
            part("its name", ask.tuning.name_boost);
        }
        let link = Term::from_field_text(self.fields.marks, &format!("link:{name}"));
        let links = searcher.doc_freq(&link)? as f32;
        part("links to it", ask.tuning.link_boost * ((1.0 + links).log2() / (1.0 + FULL_LINK_COUNT).log2()).min(1.0));
        if !ask.starred.is_empty() && note.parse::<DocId>().is_ok_and(|note| ask.starred.contains(&note)) {
            part("starred", ask.tuning.star_boost);
        }
        Ok(parts)
    }
}

fn column_text(column: &StrColumn, number: Option<u64>) -> Result<String, IndexError> {
    let mut text = String::new();
    if let Some(number) = number {
        column.ord_to_str(number, &mut text)?;
    }
    Ok(text)
}
