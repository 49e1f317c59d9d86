//! Generated components: custom elements that an agent proposes, as `{tagName, script, styles}` (the seed's
//! `preview_component`). They are files of the project, `components/TAG.json`.
//!
//! A component is code of a model. It's previewed only in a sandboxed frame without a network, and only after the user
//! has read and approved exactly this content: its id is the hash of all that it holds. It gets the properties of a
//! note that it names, and nothing else.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::BlobHash;

/// The folder of a project that holds its components.
pub const COMPONENTS_FOLDER: &str = "components";
/// Maximum size of a component's file in bytes.
pub const MAX_COMPONENT_BYTES: usize = 512 << 10;
/// Maximum size of a component's script and of its styles in bytes.
const MAX_SCRIPT_BYTES: usize = 256 << 10;
const MAX_STYLES_BYTES: usize = 64 << 10;
/// Maximum length of a tag's name in bytes.
const MAX_TAG_BYTES: usize = 60;
/// Maximum number of properties that a component may read.
const MAX_DATA_PROPERTIES: usize = 50;
/// Maximum length of the name of a property or note in bytes.
const MAX_DATA_NAME_BYTES: usize = 500;
/// Number of characters of a component's id.
const ID_CHARS: usize = 32;
/// Names that look like custom elements and belong to SVG and MathML (HTML standard, "valid custom element name").
const RESERVED_TAGS: [&str; 8] = [
    "annotation-xml",
    "color-profile",
    "font-face",
    "font-face-src",
    "font-face-uri",
    "font-face-format",
    "font-face-name",
    "missing-glyph",
];

/// Why something isn't a component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentFileError {
    /// It isn't JSON, a field is missing or unknown, or has the wrong type.
    #[error("a component is {{tagName, script, styles, data?: {{note, properties}}}}: {0}")]
    Form(String),
    /// The name can't be that of a custom element.
    #[error(
        "the name of a component has small letters, digits and at least one hyphen, such as my-chart, and at most \
         {MAX_TAG_BYTES} characters; not “{0}”"
    )]
    TagName(String),
    /// The script is empty.
    #[error("the script of {0} is empty; it calls customElements.define(\"{0}\", …)")]
    NoScript(String),
    /// It's too long.
    #[error(
        "a component's script has at most {} kB, its styles {} kB, and it names at most {MAX_DATA_PROPERTIES} \
         properties",
        MAX_SCRIPT_BYTES >> 10,
        MAX_STYLES_BYTES >> 10
    )]
    TooLong,
}

/// The data that a component may read: properties of one note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentData {
    /// Path of the note in the project.
    pub note: String,
    /// Names of the properties.
    pub properties: Vec<String>,
}

/// A generated component, as its file holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentFile {
    /// Name of the custom element.
    #[serde(rename = "tagName")]
    pub tag_name: String,
    /// JavaScript that defines the element.
    pub script: String,
    /// CSS for the page around the element.
    #[serde(default)]
    pub styles: String,
    /// The data that the component may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ComponentData>,
}

fn is_tag_name(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.len() <= MAX_TAG_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.contains('-')
        && name.split('-').all(is_part)
        && !RESERVED_TAGS.contains(&name)
}

impl ComponentFile {
    /// Reads the arguments of a call that proposes a component.
    ///
    /// # Errors
    /// Returns why they aren't a component.
    pub fn from_arguments(arguments: &Value) -> Result<ComponentFile, ComponentFileError> {
        let read: ComponentFile =
            serde_json::from_value(arguments.clone()).map_err(|error| ComponentFileError::Form(error.to_string()))?;
        read.checked()
    }

    /// Reads a component's file.
    ///
    /// # Errors
    /// Returns why it isn't a component.
    pub fn parse(text: &str) -> Result<ComponentFile, ComponentFileError> {
        if text.len() > MAX_COMPONENT_BYTES {
            return Err(ComponentFileError::TooLong);
        }
        let read: ComponentFile =
            serde_json::from_str(text).map_err(|error| ComponentFileError::Form(error.to_string()))?;
        read.checked()
    }

    fn checked(self) -> Result<ComponentFile, ComponentFileError> {
        if !is_tag_name(&self.tag_name) {
            return Err(ComponentFileError::TagName(self.tag_name.chars().take(MAX_TAG_BYTES).collect()));
        }
        if self.script.trim().is_empty() {
            return Err(ComponentFileError::NoScript(self.tag_name));
        }
        let is_long_name = |name: &str| name.len() > MAX_DATA_NAME_BYTES;
        let has_long_data = self.data.as_ref().is_some_and(|data| {
            data.properties.len() > MAX_DATA_PROPERTIES
                || is_long_name(&data.note)
                || data.properties.iter().any(|name| is_long_name(name))
        });
        if self.script.len() > MAX_SCRIPT_BYTES || self.styles.len() > MAX_STYLES_BYTES || has_long_data {
            return Err(ComponentFileError::TooLong);
        }
        Ok(self)
    }

    /// Returns the component as the text of its file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Returns the id, which changes with everything that the component holds.
    pub fn id(&self) -> String {
        // Serialization has one form for each value, and tells where a field ends.
        let text = serde_json::to_string(self).unwrap_or_default();
        BlobHash::of(text.as_bytes()).to_string().chars().take(ID_CHARS).collect()
    }

    /// Returns the path of the component's file in its project.
    pub fn path(&self) -> String {
        format!("{COMPONENTS_FOLDER}/{}.json", self.tag_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn names_are_those_of_custom_elements() {
        for (name, is_name) in [
            ("my-chart", true),
            ("a-1-b", true),
            ("chart", false),
            ("My-chart", false),
            ("1-chart", false),
            ("my-", false),
            ("my--chart", false),
            ("../my-chart", false),
            ("font-face", false),
            ("", false),
        ] {
            let read = ComponentFile::from_arguments(&json!({"tagName": name, "script": "1", "styles": ""}));
            assert_eq!(read.is_ok(), is_name, "{name}: {read:?}");
        }
    }

    #[test]
    fn every_byte_changes_the_id() {
        let one =
            ComponentFile { tag_name: "a-b".to_owned(), script: "x".to_owned(), styles: "y".to_owned(), data: None };
        assert_eq!(ComponentFile::parse(&one.to_text()), Ok(one.clone()));
        let moved = ComponentFile { script: "xy".to_owned(), styles: String::new(), ..one.clone() };
        let data = Some(ComponentData { note: "a.md".to_owned(), properties: vec!["b".to_owned()] });
        let reading = ComponentFile { data, ..one.clone() };
        let ids = [one.id(), moved.id(), reading.id()];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[0].len() == ID_CHARS, "{ids:?}");
    }

    #[test]
    fn what_is_none_says_why() {
        let long = "x".repeat(MAX_SCRIPT_BYTES + 1);
        for (given, about) in [
            (json!({"script": "1"}), "tagName"),
            (json!({"tagName": "a-b", "script": " "}), "customElements.define"),
            (json!({"tagName": "a-b", "script": long}), "at most 256 kB"),
            (json!({"tagName": "a-b", "script": "1", "onload": "x"}), "unknown field"),
            (json!([]), "a component is"),
        ] {
            let why = ComponentFile::from_arguments(&given).expect_err(about).to_string();
            assert!(why.contains(about), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in ".{0,200}") {
            let _ = ComponentFile::parse(&text);
        }
    }
}
