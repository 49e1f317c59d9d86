//! The error type of the index.

/// Why an index operation failed. The index can always be deleted and rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search index {what} ({why})")]
pub struct IndexError {
    /// What failed, for the error message, such as "cannot be opened".
    pub what: &'static str,
    /// The cause.
    pub why: String,
    /// Whether trying again later can help, because the disk was full or refused the operation.
    pub disk: bool,
}

impl IndexError {
    pub(crate) fn new(what: &'static str, why: impl ToString) -> IndexError {
        IndexError { what, why: why.to_string(), disk: false }
    }

    pub(crate) fn disk(what: &'static str, error: &std::io::Error) -> IndexError {
        IndexError { what, why: error.to_string(), disk: true }
    }
}

impl From<tantivy::TantivyError> for IndexError {
    fn from(error: tantivy::TantivyError) -> Self {
        let disk = matches!(error, tantivy::TantivyError::IoError(_));
        IndexError { what: "failed", why: error.to_string(), disk }
    }
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        IndexError::disk("cannot be read", &error)
    }
}
