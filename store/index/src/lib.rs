//! Search behind one interface: full text (tantivy) and vectors over the documents in `store`.
//!
//! The index is never a source of truth: it can be deleted and rebuilt from the documents. It starts no thread and
//! reads no clock. The caller decides when to use it, and never calls it from the UI thread.

pub mod analyzer;
mod boosts;
mod conversation;
mod dates;
mod error;
mod filter;
mod fork_hits;
mod fulltext;
mod fusion_gate;
mod highlights;
mod language;
mod passage;
mod query;
mod query_terms;
mod rank_fusion;
mod ranking;
mod relevance;
mod search_filters;
pub mod turns;
mod unread_passages;
mod vector_search;
mod vectors;
mod word_pairs;

pub use embed::{EmbeddingError, MiniLm, SentenceEmbedder, VECTOR_DIMENSIONS, vocabulary_words};
pub use error::IndexError;
pub use fulltext::{FullTextIndex, IndexCounts, MissingVectors};
pub use fusion_gate::{FusionGate, GATE_SIGNALS, GateSignals};
pub use highlights::{excerpt, highlight_ranges};
pub use language::{LanguageStemmer, StemLanguage};
pub use passage::{IndexedPassage, NoteText, PassageKind, link_name};
pub use query::{ParsedQuery, QueryAtom, QueryGroup};
pub use ranking::{HitReason, NoteHit, RankingWeights, ScorePart, SearchAnswer, SearchMode, SearchRequest};
pub use relevance::RelevanceFit;
pub use search_filters::SearchFilters;
