//! Arguments of a tool call, read one by one with an error that says what is wanted.

use serde_json::{Map, Value};

/// Why a tool call could not be carried out. The text is for the model that made the call.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ToolCallError(pub(crate) String);

impl ToolCallError {
    pub(crate) fn new(why: impl Into<String>) -> ToolCallError {
        ToolCallError(why.into())
    }
}

/// Arguments of a tool call.
pub(crate) struct ToolArguments<'a>(pub(crate) &'a Map<String, Value>);

impl ToolArguments<'_> {
    /// Returns a text that may be missing.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ToolCallError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                Err(ToolCallError(format!("`{name}` must not contain a NUL character")))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ToolCallError(format!("`{name}` must be a string"))),
        }
    }

    /// Returns a text that must be there and not be empty.
    pub(crate) fn needed_text(&self, name: &str) -> Result<&str, ToolCallError> {
        let missing = || ToolCallError(format!("`{name}` is missing"));
        self.text(name)?.filter(|text| !text.trim().is_empty()).ok_or_else(missing)
    }

    /// Returns a whole number that may be missing, limited to `max`.
    pub(crate) fn number(&self, name: &str, max: u64) -> Result<Option<u64>, ToolCallError> {
        let wrong = || ToolCallError(format!("`{name}` must be a whole number"));
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(|number| Some(number.min(max))).ok_or_else(wrong),
        }
    }

    /// Returns whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ToolCallError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| ToolCallError(format!("`{name}` must be true or false"))),
        }
    }
}
