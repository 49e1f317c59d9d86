//! Search for programs: queries of agents' search tools, with the source of each result. Also the interface by which
//! documents other than notes are indexed.

use super::{IndexTask, SearchService};
use agent::secrets;
use anyhow::bail;
use index::{NoteText, ParsedQuery, PassageKind, SearchRequest};
use serde::Serialize;
use store::DocId;
use store::disk::DiskError;

/// Maximum length of a returned passage in bytes.
const MAX_RECALLED_BYTES: usize = 1_000;
/// Maximum number of returned passages.
const MAX_RECALLED: usize = 100;

/// Documents other than notes to index: sessions, runs, memories. Called on the indexing thread at its start and after
/// chunks of a document were written, so changes needn't be reported.
pub trait SearchSource: Send {
    /// Lists all documents of this source.
    ///
    /// # Errors
    /// Returns an error if they can't be read; the call is retried.
    fn list_documents(&mut self) -> Result<Vec<DocId>, DiskError>;
    /// Returns the key of a document's state; `None` if it isn't from this source, or isn't searchable.
    fn document_key(&mut self, doc: DocId) -> Option<u64>;
    /// Reads a document for the index, with its key.
    fn read_document(&mut self, doc: DocId) -> Option<NoteText>;
}

/// Filters besides those in the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilters {
    /// Kinds of passages; empty: all.
    pub kinds: Vec<PassageKind>,
    /// Tags that a note must have, all of them.
    pub tags: Vec<String>,
    /// A part of the path.
    pub path: Option<String>,
    /// Only notes changed before this day, such as `2026-11-22`.
    pub before: Option<String>,
    /// Only notes changed on this day or later.
    pub after: Option<String>,
}

impl SearchFilters {
    /// Adds these filters to a query, in query syntax.
    fn apply_to(&self, query: &str) -> String {
        let quoted = |name: &str, value: &str| format!("{name}:\"{}\" ", value.replace('"', " "));
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("in:{}", kind.name())).collect();
        let mut text = kinds.join(" OR ");
        text.push(' ');
        text.extend(self.tags.iter().map(|tag| quoted("tag", tag)));
        let others = [("path", &self.path), ("before", &self.before), ("after", &self.after)];
        text.extend(others.iter().filter_map(|(name, value)| Some(quoted(name, value.as_ref()?))));
        // The query's first word has no left side for `OR`.
        text.push_str(query.trim_start().trim_start_matches("OR "));
        text.trim().to_owned()
    }

    /// Returns an error for an invalid filter.
    fn check_days(&self) -> anyhow::Result<()> {
        for (name, day) in [("before", &self.before), ("after", &self.after)] {
            if let Some(said) = day.as_ref().and_then(|day| ParsedQuery::misread_filter(&format!("{name}:\"{day}\""))) {
                bail!(said);
            }
        }
        Ok(())
    }
}

/// A matching passage, with its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecalledPassage {
    /// Address in the form of a link in a note: `path#block`, `path#cell/output/2`, `run#step`.
    pub address: String,
    /// Name of the volume that contains the path.
    pub volume: String,
    /// Document id of the note, session or run.
    pub document: DocId,
    /// Title of the document.
    pub title: String,
    /// The headings above the passage.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub heading: String,
    /// Kind of passage: `prose`, `code`, `output`, `run` or `memory`.
    pub kind: &'static str,
    /// Modification time in milliseconds since 1970.
    pub modified: i64,
    /// The passage, or its best matching part.
    pub text: String,
    /// Relevance from 0 to about 1, comparable within one answer.
    pub score: f32,
    /// Why it was found, as text.
    pub why: String,
    /// Number of other matching passages in the same document.
    pub more: usize,
}

/// Returns the start of a message as a query: messages to agents aren't in query syntax. Secrets are masked first,
/// since they can't be recognized without their punctuation, and a remote model may embed the query.
pub(crate) fn query_of_message(message: &str, max_chars: usize) -> String {
    let masked = secrets::mask_known_secrets(message);
    let plain: String = masked.chars().take(max_chars).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    plain.replace(" OR ", " or ")
}

impl SearchService {
    /// Returns the `k` best passages, at most one per document; empty if nothing matches. Blocks, so don't call it on
    /// the UI thread.
    ///
    /// # Errors
    /// Returns a message if a filter isn't valid, or if the index is damaged and being rebuilt.
    pub fn recall(&self, query: &str, filters: &SearchFilters, k: usize) -> anyhow::Result<Vec<RecalledPassage>> {
        filters.check_days()?;
        let answer = self.search_blocking(SearchRequest {
            text: filters.apply_to(query),
            limit: k.clamp(1, MAX_RECALLED),
            ..SearchRequest::default()
        })?;
        if !answer.has_match() {
            return Ok(Vec::new());
        }
        let recalled = answer.hits.iter().map(|hit| RecalledPassage {
            address: hit.link_address(),
            volume: hit.volume.clone(),
            document: hit.note,
            title: hit.title.clone(),
            heading: hit.heading.clone(),
            kind: hit.kind.name(),
            modified: hit.modified,
            text: hit.excerpt(&answer.terms, MAX_RECALLED_BYTES).0,
            score: hit.score,
            why: hit.why.describe(),
            more: hit.more,
        });
        Ok(recalled.collect())
    }

    /// Adds a source of documents to index.
    pub fn add_source(&self, further: Box<dyn SearchSource>) {
        // Sending fails only when the program or the connection ends.
        let _ = self.tasks.send(IndexTask::AddSource(further));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_a_query() {
        let filters = SearchFilters {
            kinds: vec![PassageKind::Run, PassageKind::Memory],
            tags: vec!["a b\"".to_owned()],
            path: Some("x/y".to_owned()),
            before: None,
            after: Some("2026-11".to_owned()),
        };
        let text = filters.apply_to("OR plan -not");
        assert_eq!(text, "in:run OR in:memory tag:\"a b \" path:\"x/y\" after:\"2026-11\" plan -not");
        assert_eq!(ParsedQuery::parse(&text).groups.len(), 6);
        assert_eq!(SearchFilters::default().apply_to(" plan "), "plan");
        filters.check_days().expect("days");
        let wrong = SearchFilters { before: Some("soon".to_owned()), ..SearchFilters::default() };
        assert!(wrong.check_days().is_err_and(|why| why.to_string().contains("soon")));
    }
}
