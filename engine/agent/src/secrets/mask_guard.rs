//! Masks in the arguments of tool calls: secrets are masked for models, and a mask must not be written over a secret.

use super::{InstallationKeys, contains_mask};
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};

/// Maximum depth of arguments that are masked.
const MAX_MASKED_DEPTH: usize = 32;

impl InstallationKeys {
    /// Masks the secrets in all texts of a value.
    pub fn mask_value(&self, value: &mut Value) {
        self.mask_nested(value, 0);
    }

    fn mask_nested(&self, value: &mut Value, deep: usize) {
        match value {
            Value::String(text) => self.mask_in_place(text),
            Value::Array(items) if deep < MAX_MASKED_DEPTH => {
                items.iter_mut().for_each(|item| self.mask_nested(item, deep + 1));
            }
            Value::Object(map) if deep < MAX_MASKED_DEPTH => {
                map.values_mut().for_each(|item| self.mask_nested(item, deep + 1));
            }
            Value::Array(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns why a call would overwrite a secret with a mask; `None` if it wouldn't.
pub fn mask_write_refusal(tool: &str, arguments: &Map<String, Value>) -> Option<&'static str> {
    let keys: &[&str] = match BuiltInTool::from_name(tool) {
        Some(BuiltInTool::WriteFile) => &["content"],
        Some(BuiltInTool::EditFile) => &["old_content", "new_content"],
        _ => return None,
    };
    let text = |key: &&str| arguments.get(*key).and_then(Value::as_str).is_some_and(contains_mask);
    keys.iter().any(text).then_some(
        "The text holds a mask where the file holds a secret, and writing it would lose the secret. Use edit_file with \
         passages that hold no mask.",
    )
}
