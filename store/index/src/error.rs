//! Why the index refuses.

/// Why the index did not do it. It can always be thrown away and made again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search index {what} ({why})")]
pub struct IndexError {
    /// What was tried, in the past.
    pub what: &'static str,
    /// What went wrong.
    pub why: String,
    /// Whether trying again later can help, because the disk was full or refused.
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
