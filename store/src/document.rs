//! Common parts of all documents: loading from chunks, detecting damage, increments, history.

use crate::error::StoreError;
use crate::id::DocId;
use crate::schema::{self, DocumentKind, TEXT_ENCODING};
use automerge::{ActorId, Automerge, ChangeHash, LoadOptions, ReadDoc};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A document as it came from its chunks.
pub struct LoadedDocument<D> {
    /// The document as far as it could be read.
    pub doc: D,
    /// Which of the chunks (by place in the list) could not be read or lack their predecessors: to be set aside.
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
    /// The process that wrote it, in hexadecimal.
    pub actor: String,
    /// Seconds since 1970; 0 for frozen and imported changes.
    pub time: i64,
    /// How many operations it holds.
    pub operations: u64,
    /// Purpose of the change, such as `import`, if recorded.
    pub message: Option<String>,
}

/// What has come for a document from elsewhere: changes, or all of it.
#[derive(Default)]
pub struct ChangeParcel {
    /// As they came, and as they are to be kept.
    pub bytes: Vec<u8>,
    /// The document, if the bytes contain all of it and it was loaded already: loading is most of the cost of merging.
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

/// automerge has panicked on hostile bytes before (FACTS.md): a panic in it is damage in the input, not in us.
fn catch_panic<T>(id: DocId, work: impl FnOnce() -> Result<T, automerge::AutomergeError>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::Damaged { doc: id, why: error.to_string() }),
        Err(_) => Err(StoreError::Damaged { doc: id, why: "its bytes make the reader fail".to_owned() }),
    }
}

/// Loads a document of `kind` from its chunks (snapshots first, then increments) and writes under `actor` from now on.
/// No chunks make a fresh document.
///
/// # Errors
/// [`StoreError::Damaged`] when nothing can be read, [`StoreError::Newer`], [`StoreError::Kind`].
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

/// Takes what can be read, chunk by chunk.
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

/// Why the chunks of a document can't become one.
#[derive(Debug, thiserror::Error)]
pub enum ChunkCompactionError {
    /// automerge can't read them.
    #[error(transparent)]
    Unreadable(#[from] automerge::AutomergeError),
    /// They aren't the whole document.
    #[error("a change lacks its predecessors")]
    MissingPredecessor,
    /// automerge panicked.
    #[error("its bytes make the reader fail")]
    ReaderPanicked,
}

/// A document's chunks as one, whatever it holds: for those that keep documents and do not read them.
///
/// # Errors
/// The chunks cannot be read whole; then they must stay as they are.
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

/// What a merge has done to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeOutcome {
    /// The changes that were handed over have become part of it.
    Changes,
    /// It was empty, and was replaced by the received document.
    Replaced,
}

/// Merges changes from elsewhere (a stream of changes or a saved document) and hands over each that has become part of
/// the document by it, unless it held nothing yet: to look at each change of a document that has just come costs more
/// than to read all of it. What lacks its predecessors waits inside the document until they come.
///
/// `whole`: the document that the bytes are, if somebody has read it.
///
/// Uses the changes and not automerge's patches: a patch contains its object's path, and finding that visits all blocks
/// of a note at every merge.
///
/// # Errors
/// [`StoreError::Damaged`] when the bytes cannot be read whole; then nothing of them was taken.
pub(crate) fn merge_changes(
    id: DocId,
    doc: &mut Automerge,
    bytes: &[u8],
    whole: Option<Box<Automerge>>,
    mut take: impl FnMut(&automerge::ExpandedChange),
) -> Result<MergeOutcome, StoreError> {
    // `load_incremental` takes the readable beginning of damaged bytes and only logs the rest, so a strict load into
    // a document of its own comes first.
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

/// Whether a document has no more than its first change, and nothing waits in it.
fn has_only_first_change(doc: &Automerge, heads: &[ChangeHash]) -> bool {
    let alone = |head| doc.get_change_meta_by_hash(head).is_some_and(|change| change.deps.is_empty());
    matches!(heads, [head] if alone(head)) && doc.get_missing_deps(&[]).is_empty()
}

/// Whether a document is whole and has all these changes.
pub(crate) fn contains_heads(doc: &Automerge, heads: &[ChangeHash]) -> bool {
    heads.iter().all(|head| doc.get_change_meta_by_hash(head).is_some()) && doc.get_missing_deps(&[]).is_empty()
}

/// Everything after `heads` as one increment.
pub(crate) fn save_since(doc: &Automerge, heads: &[ChangeHash]) -> Vec<u8> {
    doc.save_after(heads)
}

/// All changes, oldest first.
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

/// A value of a map that is text, as JSON.
pub(crate) fn parse_json_value<T: serde::de::DeserializeOwned>(item: &automerge::iter::MapRangeItem<'_>) -> Option<T> {
    match &item.value {
        automerge::ValueRef::Scalar(automerge::ScalarValueRef::Str(json)) => serde_json::from_str(json).ok(),
        automerge::ValueRef::Scalar(_) | automerge::ValueRef::Object(_) => None,
    }
}
