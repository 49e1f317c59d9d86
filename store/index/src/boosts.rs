//! Score boosts besides words and meaning: recent changes, backlinks and stars. They only decide between hits that
//! match about equally well. A note whose whole name was typed comes first.

use crate::error::IndexError;
use crate::fulltext::FullTextIndex;
use crate::passage::link_name;
use crate::ranking::{ScorePart, SearchRequest};
use std::collections::HashMap;
use store::DocId;
use tantivy::columnar::StrColumn;
use tantivy::{DocAddress, Searcher, Term};

/// Number of the best passages that are boosted. A boost only reorders passages with similar scores.
const MAX_BOOSTED_PASSAGES: usize = 50;
/// Age in milliseconds at which the boost for a recent change is halved.
const RECENCY_HALF_LIFE_MS: f32 = 30.0 * 86_400_000.0;
/// Number of links that earns the full link boost.
const FULL_LINK_COUNT: f32 = 32.0;
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
        let mut known: HashMap<(u32, u64), Vec<ScorePart>> = HashMap::new();
        let mut lifts = ScoreBoosts::new();
        let count = ranked.len().min(MAX_BOOSTED_PASSAGES);
        let best = &mut ranked[..count];
        for (score, address) in best.iter_mut() {
            let Some((Some(notes), Some(paths), modified)) = columns.get(address.segment_ord as usize) else {
                continue;
            };
            let Some(number) = notes.term_ords(address.doc_id).next() else { continue };
            let parts = match known.get(&(address.segment_ord, number)) {
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
            *score += parts.iter().map(|part| part.value).sum::<f32>();
            if !parts.is_empty() {
                lifts.insert(*address, parts);
            }
        }
        best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(lifts)
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
