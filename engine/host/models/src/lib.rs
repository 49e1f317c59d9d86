//! Embedding models other than the bundled one: all models of `fastembed` if an ONNX Runtime library is found, models
//! in a folder, and endpoints with OpenAI's embeddings API. This crate works on texts and vectors, not notes.

mod embedder_choice;
mod embedding_endpoint;
mod error;
#[cfg(feature = "onnx")]
mod onnx;
#[cfg(not(feature = "onnx"))]
#[path = "onnx_left_out.rs"]
mod onnx;
mod onnx_runtime;

pub use embedder_choice::EmbedderChoice;
pub use embedding_endpoint::EMBEDDINGS_KEY_VAR;
pub use error::{
    EmbedderChoiceError, EndpointError, EndpointFault, ModelLoadError, OnnxEmbedError, OnnxLibraryError,
    OnnxRuntimeError, RerankError, SpendRefusal,
};
pub use onnx::{KnownModel, Reranker, known_models, known_rerankers};
pub use onnx_runtime::{ORT_LIBRARY_VAR, OnnxRuntime};

use embed::{MiniLm, SentenceEmbedder};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Progress of the download of one model file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Name of the file.
    pub file: String,
    /// Number of bytes received so far.
    pub received_bytes: u64,
    /// Size of the file in bytes.
    pub total_bytes: u64,
}

/// Limits spending at endpoints: called before and after each request.
pub trait EmbeddingSpendGuard: Send + Sync {
    /// Returns whether about this many tokens may be sent to an endpoint. If so, [`EmbeddingSpendGuard::finish_call`]
    /// follows.
    ///
    /// # Errors
    /// Returns a refusal if the payer can't pay for them.
    fn begin_call(&self, endpoint: &EmbedderChoice, tokens: u64) -> Result<(), SpendRefusal>;
    /// Reports that a call allowed by [`EmbeddingSpendGuard::begin_call`] has ended. `read` is the number of tokens
    /// that the endpoint read, or `None` if it refused or didn't answer.
    fn finish_call(&self, endpoint: &EmbedderChoice, tokens: u64, read: Option<u64>);
}

/// A spend guard that allows everything, for tests and for free endpoints.
struct UnlimitedSpending;

impl EmbeddingSpendGuard for UnlimitedSpending {
    fn begin_call(&self, _: &EmbedderChoice, _: u64) -> Result<(), SpendRefusal> {
        Ok(())
    }

    fn finish_call(&self, _: &EmbedderChoice, _: u64, _: Option<u64>) {}
}

/// Options for loading models: folders, sources, and the progress callback.
#[derive(Clone)]
pub struct ModelLoadOptions {
    /// Folder where downloads are kept.
    pub cache: PathBuf,
    /// Path of the ONNX Runtime library in the user's settings, if any.
    pub onnx_library: Option<PathBuf>,
    /// Whether missing files may be downloaded.
    pub allow_download: bool,
    /// Called with the progress of downloads.
    pub on_progress: Arc<dyn Fn(DownloadProgress) + Send + Sync>,
    /// Set to cancel a download. Downloaded parts stay, and the next download resumes.
    pub stop: Arc<AtomicBool>,
    /// The spend guard for endpoints.
    pub spend_guard: Arc<dyn EmbeddingSpendGuard>,
}

impl ModelLoadOptions {
    /// Returns options without a progress callback and with unlimited spending at endpoints.
    pub fn without_progress(cache: PathBuf) -> ModelLoadOptions {
        let (progress, purse) = (Arc::new(|_| ()), Arc::new(UnlimitedSpending));
        ModelLoadOptions {
            cache,
            onnx_library: None,
            allow_download: false,
            on_progress: progress,
            stop: Arc::default(),
            spend_guard: purse,
        }
    }

    #[cfg(feature = "onnx")]
    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Loads a model to test it, without downloading anything. Blocks for up to a minute.
///
/// # Errors
/// Those of [`load_embedder`].
pub fn test_embedder(choice: &EmbedderChoice, onnx_library: Option<PathBuf>) -> Result<(), ModelLoadError> {
    let options = ModelLoadOptions { onnx_library, ..ModelLoadOptions::without_progress(PathBuf::new()) };
    load_embedder(choice, &options).map(drop)
}

/// Loads a model. This takes from milliseconds to many minutes if the model must be downloaded.
///
/// # Errors
/// Returns an error if the model is unknown or isn't a sentence model. Also returns one if ONNX Runtime is missing or
/// the network fails.
pub fn load_embedder(
    choice: &EmbedderChoice,
    place: &ModelLoadOptions,
) -> Result<Arc<dyn SentenceEmbedder>, ModelLoadError> {
    Ok(match choice {
        EmbedderChoice::Embedded => Arc::new(MiniLm::load()?),
        EmbedderChoice::Fastembed(name) => Arc::new(onnx::OnnxEmbedder::load_known(choice, name, place)?),
        EmbedderChoice::Folder(folder) => Arc::new(onnx::OnnxEmbedder::load_folder(choice, folder, place)?),
        EmbedderChoice::Endpoint { url, model } => {
            Arc::new(embedding_endpoint::EmbeddingEndpoint::connect(choice, url, model, place.spend_guard.clone())?)
        }
    })
}
