//! Common functions of all documents: loading from chunks, detecting damage, saving increments, and history.

use crate::error::StoreError;
use crate::id::DocId;
use crate::schema::{self, DocumentKind, TEXT_ENCODING};
use automerge::{ActorId, Automerge, ChangeHash, LoadOptions, ReadDoc};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A document loaded from its chunks.
pub struct LoadedDocument<D> {
    /// The readable part of the document.
    pub doc: D,
    /// Indexes of the chunks that couldn't be read or lack their predecessors. They should be quarantined.
    pub bad_chunks: Vec<usize>,
}

impl<D> std::fmt::Debug for LoadedDocument<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loaded with {} bad chunks", self.bad_chunks.len())
    }
}

/// One change in a document's history.
#[derive(Clone, Debug, serde::Serialize)]
pub struct HistoryEntry {
    /// Hash of the change, in hex.
    pub hash: String,
    /// Actor that wrote the change, in hexadecimal. Each process has its own.
    pub actor: String,
    /// Time of the change in seconds since 1970; 0 for frozen and imported changes.
    pub time: i64,
    /// Number of operations in the change.
    pub operations: u64,
    /// Purpose of the change, such as `import`, if recorded.
    pub message: Option<String>,
}

/// Received data for a document: changes or the whole document.
#[derive(Default)]
pub struct ChangeParcel {
    /// The bytes as received and as they must be stored.
    pub bytes: Vec<u8>,
    /// The document, if the bytes contain all of it and it's already loaded. Loading is most of the cost of merging.
    pub(crate) loaded: Option<Box<Automerge>>,
}

impl std::fmt::Debug for ChangeParcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let read = if self.loaded.is_some() { ", read" } else { "" };
        write!(f, "Parcel of {} bytes{read}", self.bytes.len())
    }
}

impl From<Vec<u8>> for ChangeParcel {
    fn from(bytes: Vec<u8>) -> ChangeParcel {
        ChangeParcel { bytes, loaded: None }
    }
}

/// Runs automerge code and converts a panic to an error. automerge has panicked on hostile bytes before (FACTS.md), so
/// a panic means that the input is damaged.
fn catch_panic<T>(id: DocId, work: impl FnOnce() -> Result<T, automerge::AutomergeError>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::Damaged { doc: id, why: error.to_string() }),
        Err(_) => Err(StoreError::Damaged { doc: id, why: "its bytes make the reader fail".to_owned() }),
    }
}

/// Loads a document of `kind` from its chunks (snapshots first, then increments). Further changes are written under
/// `actor`. Without chunks, it returns a new document.
///
/// # Errors
/// Returns [`StoreError::Damaged`] if nothing can be read, [`StoreError::Newer`], or [`StoreError::Kind`].
pub(crate) fn load_document(
    id: DocId,
    kind: DocumentKind,
    chunks: &[Vec<u8>],
    actor: ActorId,
) -> Result<LoadedDocument<Automerge>, StoreError> {
    if chunks.is_empty() {
        return Ok(LoadedDocument {
            doc: schema::first_change_document(kind)?.with_actor(actor),
            bad_chunks: Vec::new(),
        });
    }
    let whole = catch_panic(id, || {
        let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
        let doc = Automerge::load_with_options(&chunks.concat(), options)?;
        Ok(doc.get_missing_deps(&[]).is_empty().then_some(doc))
    });
    let (doc, bad) = match whole {
        Ok(Some(doc)) => (doc, Vec::new()),
        Ok(None) | Err(_) => load_piecewise(id, chunks)?,
    };
    schema::check_schema(id, kind, &doc)?;
    Ok(LoadedDocument { doc: doc.with_actor(actor), bad_chunks: bad })
}

/// Loads the readable chunks one by one. Returns the document and the indexes of bad chunks.
fn load_piecewise(id: DocId, chunks: &[Vec<u8>]) -> Result<(Automerge, Vec<usize>), StoreError> {
    let mut doc = Automerge::new_with_encoding(TEXT_ENCODING);
    let mut bad = Vec::new();
    let mut why = None;
    for (at, chunk) in chunks.iter().enumerate() {
        let before = doc.clone();
        let fed = catch_panic(id, || {
            doc.load_incremental(chunk)?;
            Ok(doc.get_missing_deps(&[]).is_empty())
        });
        match fed {
            Ok(true) => {}
            Ok(false) => {
                why.get_or_insert_with(|| "a change lacks its predecessors".to_owned());
                doc = before;
                bad.push(at);
            }
            Err(error) => {
                why.get_or_insert_with(|| error.to_string());
                doc = before;
                bad.push(at);
            }
        }
    }
    if doc.get_heads().is_empty() {
        let why = why.unwrap_or_else(|| "it holds no change".to_owned());
        return Err(StoreError::Damaged { doc: id, why });
    }
    Ok((doc, bad))
}

/// Why a document's chunks can't be compacted.
#[derive(Debug, thiserror::Error)]
pub enum ChunkCompactionError {
    /// automerge can't read them.
    #[error(transparent)]
    Unreadable(#[from] automerge::AutomergeError),
    /// They don't contain the whole document.
    #[error("a change lacks its predecessors")]
    MissingPredecessor,
    /// automerge panicked.
    #[error("its bytes make the reader fail")]
    ReaderPanicked,
}

/// Merges a document's chunks into one, without interpreting their content. For hosts that store documents but don't
/// read them.
///
/// # Errors
/// Returns an error if the chunks can't be read completely. They must then stay as they are.
pub fn compact_chunks(chunks: &[Vec<u8>]) -> Result<Vec<u8>, ChunkCompactionError> {
    let read = catch_unwind(AssertUnwindSafe(|| {
        let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
        let doc = Automerge::load_with_options(&chunks.concat(), options)?;
        match doc.get_missing_deps(&[]).is_empty() {
            true => Ok(doc.save()),
            false => Err(ChunkCompactionError::MissingPredecessor),
        }
    }));
    read.unwrap_or(Err(ChunkCompactionError::ReaderPanicked))
}

/// What a merge did to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeOutcome {
    /// The new changes are now part of it.
    Changes,
    /// It was empty, and was replaced by the received document.
    Replaced,
}

/// Merges changes from elsewhere (a stream of changes or a saved document), and passes each newly added change to
/// `take`.
///
/// If the document was empty, it's replaced and no change is passed: looking at each change of a newly received
/// document costs more than reading all of it. Changes that lack their predecessors wait inside the document until
/// those arrive.
///
/// `whole` is the document that the bytes contain, if it's already loaded.
///
/// This uses changes instead of automerge's patches: a patch contains its object's path, and finding that visits all
/// blocks of a note at every merge.
///
/// # Errors
/// Returns [`StoreError::Damaged`] if the bytes can't be read completely. Nothing is merged then.
pub(crate) fn merge_changes(
    id: DocId,
    doc: &mut Automerge,
    bytes: &[u8],
    whole: Option<Box<Automerge>>,
    mut take: impl FnMut(&automerge::ExpandedChange),
) -> Result<MergeOutcome, StoreError> {
    // `load_incremental` accepts the readable beginning of damaged bytes and only logs the rest. So a strict load into
    // a separate document comes first.
    let options = || LoadOptions::new().text_encoding(TEXT_ENCODING);
    let read = match whole {
        Some(whole) => Some(*whole),
        None => catch_panic(id, || match Automerge::load_with_options(bytes, options()) {
            Ok(read) => Ok(Some(read)),
            // Increments depend on changes that the document has or will have: all bytes were loaded.
            Err(automerge::AutomergeError::MissingDeps) => Ok(None),
            Err(error) => Err(error),
        })?,
    };
    let before = doc.get_heads();
    if let Some(read) = read.filter(|read| has_only_first_change(doc, &before) && contains_heads(read, &before)) {
        let actor = doc.get_actor().clone();
        *doc = read.with_actor(actor);
        return Ok(MergeOutcome::Replaced);
    }
    catch_panic(id, || {
        doc.load_incremental(bytes)?;
        doc.get_changes(&before).iter().for_each(|change| take(&change.decode()));
        Ok(MergeOutcome::Changes)
    })
}

/// Whether a document has only its first change, and no change waits for predecessors.
fn has_only_first_change(doc: &Automerge, heads: &[ChangeHash]) -> bool {
    let alone = |head| doc.get_change_meta_by_hash(head).is_some_and(|change| change.deps.is_empty());
    matches!(heads, [head] if alone(head)) && doc.get_missing_deps(&[]).is_empty()
}

/// Whether a document is complete and contains all these heads.
pub(crate) fn contains_heads(doc: &Automerge, heads: &[ChangeHash]) -> bool {
    heads.iter().all(|head| doc.get_change_meta_by_hash(head).is_some()) && doc.get_missing_deps(&[]).is_empty()
}

/// Returns all changes after `heads` as one increment.
pub(crate) fn save_since(doc: &Automerge, heads: &[ChangeHash]) -> Vec<u8> {
    doc.save_after(heads)
}

/// Returns all changes, oldest first.
pub(crate) fn read_history(doc: &Automerge) -> Vec<HistoryEntry> {
    doc.get_changes_meta(&[])
        .into_iter()
        .map(|change| HistoryEntry {
            hash: change.hash.to_string(),
            actor: change.actor.to_hex_string(),
            time: change.timestamp,
            operations: (change.max_op + 1).saturating_sub(change.start_op),
            message: change.message.as_ref().map(|message| message.to_string()),
        })
        .collect()
}

/// Parses a text value of a map as JSON.
pub(crate) fn parse_json_value<T: serde::de::DeserializeOwned>(item: &automerge::iter::MapRangeItem<'_>) -> Option<T> {
    match &item.value {
        automerge::ValueRef::Scalar(automerge::ScalarValueRef::Str(json)) => serde_json::from_str(json).ok(),
        automerge::ValueRef::Scalar(_) | automerge::ValueRef::Object(_) => None,
    }
}
