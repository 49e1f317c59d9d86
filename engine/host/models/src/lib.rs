//! Embedding models other than the bundled one: all models of `fastembed` if an ONNX Runtime library is found, models
//! in a folder, and endpoints with OpenAI's embeddings API. Works on texts and vectors, not notes.

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

/// A file of a model on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Name of the file.
    pub file: String,
    /// Bytes that are here.
    pub received_bytes: u64,
    /// All of its bytes.
    pub total_bytes: u64,
}

/// Guards spending at endpoints: asked before each call, and informed after it.
pub trait EmbeddingSpendGuard: Send + Sync {
    /// Whether about this many tokens may be sent to an endpoint; if so, [`EmbeddingSpendGuard::finish_call`] follows.
    ///
    /// # Errors
    /// Nothing is left to pay for them.
    fn begin_call(&self, endpoint: &EmbedderChoice, tokens: u64) -> Result<(), SpendRefusal>;
    /// A call that [`EmbeddingSpendGuard::begin_call`] allowed is over. `read`: tokens that the endpoint has read;
    /// `None`: it refused, or did not answer.
    fn finish_call(&self, endpoint: &EmbedderChoice, tokens: u64, read: Option<u64>);
}

/// Pays for everything: for tests, and for what costs nothing.
struct UnlimitedSpending;

impl EmbeddingSpendGuard for UnlimitedSpending {
    fn begin_call(&self, _: &EmbedderChoice, _: u64) -> Result<(), SpendRefusal> {
        Ok(())
    }

    fn finish_call(&self, _: &EmbedderChoice, _: u64, _: Option<u64>) {}
}

/// Sources and folders of models, and the progress callback.
#[derive(Clone)]
pub struct ModelLoadOptions {
    /// Downloads are kept here.
    pub cache: PathBuf,
    /// The ONNX Runtime library that the user named, if any.
    pub onnx_library: Option<PathBuf>,
    /// Whether what is not here yet may be downloaded.
    pub allow_download: bool,
    /// Called with the progress of downloads.
    pub on_progress: Arc<dyn Fn(DownloadProgress) + Send + Sync>,
    /// Set to cancel a download; downloaded parts stay, and the next download continues.
    pub stop: Arc<AtomicBool>,
    /// Who pays for endpoints.
    pub spend_guard: Arc<dyn EmbeddingSpendGuard>,
}

impl ModelLoadOptions {
    /// Options without a progress callback and with free endpoints.
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

/// Loads a model. Takes from milliseconds to, with a download, many minutes.
///
/// # Errors
/// No such model, no ONNX Runtime, no network, or the model is not one for sentences.
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
