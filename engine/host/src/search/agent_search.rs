//! Search for programs: queries of agents' search tools, with the source of each result. Also the interface by which
//! documents other than notes are indexed.

use super::{IndexTask, SearchService};
use anyhow::bail;
use index::{NoteText, SearchFilters, SearchRequest};
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

impl SearchService {
    /// Returns the `k` best passages, at most one per document; empty if nothing matches. Blocks, so don't call it on
    /// the UI thread.
    ///
    /// # Errors
    /// Returns a message if a filter isn't valid, or if the index is damaged and being rebuilt.
    pub fn recall(&self, query: &str, filters: &SearchFilters, k: usize) -> anyhow::Result<Vec<RecalledPassage>> {
        if let Some(said) = filters.misread_day() {
            bail!(said);
        }
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
