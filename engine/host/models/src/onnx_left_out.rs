//! Replaces ONNX models in builds without the feature `onnx`: lists none, loads none, and explains how to get them.

use crate::{EmbedderChoice, ModelLoadError, ModelLoadOptions, RerankError};
use embed::{EmbeddingError, SentenceEmbedder};
use std::path::Path;

/// A model that `fastembed` knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Name in `fastembed`'s list.
    pub name: String,
    /// Name of its repository on Hugging Face.
    pub repository: String,
    /// Number of dimensions of its vectors; 0 for a reranker.
    pub dimensions: usize,
    /// Description of the model.
    pub description: String,
}

/// Returns an empty list, because this build has no `fastembed`.
pub fn known_models() -> Vec<KnownModel> {
    Vec::new()
}

/// Returns an empty list, because this build has no `fastembed`.
pub fn known_rerankers() -> Vec<KnownModel> {
    Vec::new()
}

/// A sentence model that can't exist in this build.
pub(crate) enum OnnxEmbedder {}

impl OnnxEmbedder {
    pub(crate) fn load_known(
        _: &EmbedderChoice,
        _: &str,
        _: &ModelLoadOptions,
    ) -> Result<OnnxEmbedder, ModelLoadError> {
        Err(ModelLoadError::BuiltWithoutOnnx)
    }

    pub(crate) fn load_folder(
        _: &EmbedderChoice,
        _: &Path,
        _: &ModelLoadOptions,
    ) -> Result<OnnxEmbedder, ModelLoadError> {
        Err(ModelLoadError::BuiltWithoutOnnx)
    }
}

impl SentenceEmbedder for OnnxEmbedder {
    fn name(&self) -> &str {
        match *self {}
    }

    fn dimensions(&self) -> usize {
        match *self {}
    }

    fn unrelated_cosine(&self) -> f32 {
        match *self {}
    }

    fn embed(&self, _: &str) -> Result<Vec<f32>, EmbeddingError> {
        match *self {}
    }
}

/// A reranker that can't exist in this build.
pub enum Reranker {}

impl Reranker {
    /// Always fails, because this build has no rerankers.
    ///
    /// # Errors
    /// Always returns an error that explains how to get a build with rerankers.
    pub fn load(_: &str, _: &ModelLoadOptions) -> Result<Reranker, ModelLoadError> {
        Err(ModelLoadError::BuiltWithoutOnnx)
    }

    /// Returns how well each passage answers the question, from 0 to 1.
    ///
    /// # Errors
    /// Never called, because no [`Reranker`] exists.
    pub fn scores(&self, _: &str, _: &[String]) -> Result<Vec<f32>, RerankError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_left_out_is_named_and_says_how_to_get_it() {
        assert!(known_models().is_empty() && known_rerankers().is_empty());
        let place = ModelLoadOptions::without_progress("/nowhere".into());
        let choice: EmbedderChoice = "fastembed:BGESmallENV15".parse().expect("a name of an older choice is kept");
        let why = crate::load_embedder(&choice, &place).err().map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains("--features full"), "{why}");
        assert!(crate::load_embedder(&EmbedderChoice::Embedded, &place).is_ok());
    }
}
