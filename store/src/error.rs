//! The error type of this crate.

use crate::id::DocId;

/// Why something could not be read, written or merged.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The bytes of a document are inconsistent. The document is left unchanged.
    #[error("the document is damaged ({why}): {doc}")]
    Damaged {
        /// The document that's damaged.
        doc: DocId,
        /// What is inconsistent.
        why: String,
    },
    /// The document was written with a newer major schema version. It's left unchanged.
    #[error("the document was made by a newer Tracebook (schema {found}, this one knows {known}): {doc}")]
    Newer {
        /// The document that's newer.
        doc: DocId,
        /// The document's schema version, `major.minor`.
        found: String,
        /// Highest schema version that this version reads, `major.minor`.
        known: String,
    },
    /// The document has another kind than expected.
    #[error("the document is a {found}, not a {wanted}: {doc}")]
    Kind {
        /// The document that has another kind.
        doc: DocId,
        /// The document's kind.
        found: String,
        /// The kind that was expected.
        wanted: String,
    },
    /// An operation refers to a block or an offset that doesn't exist.
    #[error("the edit does not fit the note: {0}")]
    Edit(String),
    /// A journal record or other stored value cannot be read back.
    #[error("a stored record cannot be read: {0}")]
    Record(String),
    /// automerge refused a change to the document.
    #[error("the document could not be changed: {0}")]
    Automerge(#[from] automerge::AutomergeError),
}
