//! The choice of an embedding model, as users write it and as it's stored.

use crate::EmbedderChoiceError;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Key of the embedded model, used to name its vectors.
const BUNDLED_MODEL_KEY: &str = "minilm-l6-v2-dyn7";
/// Maximum length of a choice in bytes, because it's part of a file name.
pub(crate) const MAX_CHOICE_BYTES: usize = 180;

/// A choice of sentence model.
///
/// It's written `embedded`, `fastembed:BGESmallENV15`, `folder:/models/mine`, or as an endpoint with the endpoint's
/// name for the model: `http://localhost:8080/v1#bge-small`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmbedderChoice {
    /// The model that ships with Tracebook.
    #[default]
    Embedded,
    /// One of [`crate::known_models`], by its name there.
    Fastembed(String),
    /// A folder with `model.onnx` and the files of its tokenizer.
    Folder(PathBuf),
    /// An endpoint that speaks OpenAI's embeddings API.
    Endpoint {
        /// URL of the endpoint, up to and including `/v1`.
        url: String,
        /// The endpoint's name for the model.
        model: String,
    },
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmbedderChoice::Embedded => f.write_str("embedded"),
            EmbedderChoice::Fastembed(name) => write!(f, "fastembed:{name}"),
            EmbedderChoice::Folder(folder) => write!(f, "folder:{}", folder.display()),
            EmbedderChoice::Endpoint { url, model } => write!(f, "{url}#{model}"),
        }
    }
}

impl FromStr for EmbedderChoice {
    type Err = EmbedderChoiceError;

    fn from_str(text: &str) -> Result<EmbedderChoice, EmbedderChoiceError> {
        let text = text.trim();
        if text.len() > MAX_CHOICE_BYTES {
            return Err(EmbedderChoiceError::TooLong);
        }
        if text.is_empty() || text == "embedded" {
            return Ok(EmbedderChoice::Embedded);
        }
        if let Some(name) = text.strip_prefix("fastembed:") {
            // A build without these models keeps another build's choice, and reports an error when the model is loaded.
            if cfg!(not(feature = "onnx")) && !name.is_empty() {
                return Ok(EmbedderChoice::Fastembed(name.to_owned()));
            }
            let known = crate::known_models();
            let found = known.iter().find(|known| known.name.eq_ignore_ascii_case(name) || known.repository == name);
            return found
                .map(|known| EmbedderChoice::Fastembed(known.name.clone()))
                .ok_or_else(|| EmbedderChoiceError::UnknownModel { name: name.to_owned() });
        }
        if let Some(folder) = text.strip_prefix("folder:") {
            return Ok(EmbedderChoice::Folder(PathBuf::from(folder)));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return match text.rsplit_once('#') {
                Some((url, model)) if !model.is_empty() => {
                    Ok(EmbedderChoice::Endpoint { url: url.trim_end_matches('/').to_owned(), model: model.to_owned() })
                }
                Some(_) | None => Err(EmbedderChoiceError::EndpointWithoutModel { url: text.to_owned() }),
            };
        }
        Err(EmbedderChoiceError::UnknownForm { text: text.to_owned() })
    }
}

impl EmbedderChoice {
    /// Returns the key that names the model's vectors. It's safe in a file name, and [`EmbedderChoice::from_key`] reads
    /// it.
    pub fn key(&self) -> String {
        if *self == EmbedderChoice::Embedded {
            return BUNDLED_MODEL_KEY.to_owned();
        }
        let mut key = String::new();
        for byte in self.to_string().bytes() {
            if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) {
                key.push(char::from(byte));
            } else {
                key.push_str(&format!("%{byte:02x}"));
            }
        }
        key
    }

    /// Parses a key made by [`EmbedderChoice::key`]; `None` if it's invalid.
    pub fn from_key(key: &str) -> Option<EmbedderChoice> {
        if key == BUNDLED_MODEL_KEY {
            return Some(EmbedderChoice::Embedded);
        }
        let mut bytes = Vec::new();
        let mut parts = key.split('%');
        bytes.extend(parts.next()?.bytes());
        for part in parts {
            bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
            bytes.extend(part.get(2..)?.bytes());
        }
        String::from_utf8(bytes).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back_from_their_words_and_keys() {
        let all = ["embedded", "fastembed:BGESmallENV15", "folder:/a b/ü", "http://localhost:8080/v1#bge-small/en%20"];
        for text in all {
            let choice: EmbedderChoice = text.parse().expect(text);
            assert_eq!(choice.to_string(), text);
            assert_eq!(EmbedderChoice::from_key(&choice.key()).as_ref(), Some(&choice), "{}", choice.key());
            assert!(!choice.key().contains(['/', '.', ' ', ':']), "{}", choice.key());
        }
        // A build without ONNX models knows none of their names, and keeps another build's choice.
        if cfg!(feature = "onnx") {
            let by_repository: EmbedderChoice = "fastembed:BAAI/bge-m3".parse().expect("known");
            assert_eq!(by_repository, EmbedderChoice::Fastembed("BGEM3".to_owned()));
            assert!("fastembed:nothing".parse::<EmbedderChoice>().is_err());
        }
        for wrong in ["fastembed:", "https://host/v1", "https://host/v1#", "mini", &"x".repeat(1_000)] {
            assert!(wrong.parse::<EmbedderChoice>().is_err(), "{wrong:.40}");
        }
        for odd in ["%", "%f", "%zz", "a%ffb", "%f0%9f"] {
            assert_eq!(EmbedderChoice::from_key(odd), None);
        }
    }
}
