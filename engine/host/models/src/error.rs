//! Errors of choosing, loading and running models.

use crate::embedder_choice::MAX_CHOICE_BYTES;
use crate::embedding_endpoint::EMBEDDINGS_KEY_VAR;
use embed::{EmbeddingError, MiniLmLoadError};
use std::path::PathBuf;
use ureq::http::StatusCode;

/// Maximum size of each file of a model, in bytes.
pub(crate) const MAX_MODEL_FILE_BYTES: u64 = 4 << 30;

/// Why a text isn't a valid choice of sentence model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderChoiceError {
    /// The text is too long to be part of a file name.
    #[error("the name of a sentence model has at most {MAX_CHOICE_BYTES} bytes")]
    TooLong,
    /// `fastembed` doesn't know the model.
    #[error("fastembed has no model “{name}”; `tracebook index models` lists those that it has")]
    UnknownModel {
        /// The unknown name.
        name: String,
    },
    /// The endpoint's URL has no model name.
    #[error("an endpoint needs the model's name behind a #, as in {url}#bge-small")]
    EndpointWithoutModel {
        /// The text as written.
        url: String,
    },
    /// The text has none of the known forms.
    #[error("“{text}” is no sentence model; use embedded, fastembed:NAME, folder:PATH or https://HOST/v1#MODEL")]
    UnknownForm {
        /// The text as written.
        text: String,
    },
}

/// Why no ONNX Runtime library can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxRuntimeError {
    /// There's no library at the configured path.
    #[error("there's no ONNX Runtime at {}; correct or remove this path in {origin}", path.display())]
    NotAtPath {
        /// Which setting gave the path.
        origin: &'static str,
        /// The path without a library.
        path: PathBuf,
    },
    /// No library was found in any of the usual places.
    #[error("ONNX Runtime isn't installed; run `pip install --user onnxruntime`")]
    NotFound,
    /// The library was found but doesn't work.
    #[error(
        "the ONNX Runtime from {origin}, {}, can't be used ({source}); install it again, or name another one in the \
         settings",
        path.display()
    )]
    Unusable {
        /// Which setting or package provided the library.
        origin: &'static str,
        /// Path of the library.
        path: PathBuf,
        /// The library's error.
        source: OnnxLibraryError,
    },
}

/// An error of the libraries that run ONNX models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxLibraryError {
    /// The library returned an error.
    #[error("{0}")]
    Refused(String),
    /// The library panicked while it ran a model.
    #[error("it failed")]
    Panicked,
    /// The library panicked while it was loaded.
    #[error("it failed while it was loaded")]
    LoadPanicked,
}

/// A refused payment for a call to an endpoint, with a sentence from the payer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpendRefusal(pub String);

/// Why an endpoint returns no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The call can't be paid for.
    #[error(transparent)]
    NotPaid(#[from] SpendRefusal),
    /// The call failed.
    #[error("the endpoint of the sentence model, {url}, {fault}")]
    Call {
        /// URL that was called.
        url: String,
        /// What went wrong.
        #[source]
        fault: EndpointFault,
    },
}

/// Why a call to an endpoint failed. Its message continues a sentence that starts with the URL.
#[derive(Debug, thiserror::Error)]
pub enum EndpointFault {
    /// The endpoint couldn't be reached.
    #[error("cannot be reached ({}; is it running?)", .0.to_string().trim_start_matches("io: "))]
    Unreachable(#[source] ureq::Error),
    /// The endpoint needs an API key, or a different one.
    #[error("wants a key ({0}); set {EMBEDDINGS_KEY_VAR}")]
    WantsKey(StatusCode),
    /// The endpoint refused the call.
    #[error("answered {status}: {body}")]
    Refused {
        /// HTTP status of the response.
        status: StatusCode,
        /// The start of the response.
        body: String,
    },
    /// The response isn't JSON of the expected form.
    #[error("answered what is not vectors ({0})")]
    NotVectors(#[source] ureq::Error),
    /// The response has more vectors than texts were sent.
    #[error("answered more vectors than were asked for")]
    TooManyVectors,
    /// The vectors are missing or too long, have a different length than before, or hold numbers that aren't finite.
    #[error("answered vectors that are not {dimensions} numbers each")]
    WrongVectors {
        /// Expected number of dimensions.
        dimensions: usize,
    },
    /// The endpoint was busy on every attempt.
    #[error("is busy")]
    Busy,
}

/// Why a model can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModelLoadError {
    /// The bundled model failed to load.
    #[error(transparent)]
    Bundled(#[from] MiniLmLoadError),
    /// The endpoint can't be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The model returned no vectors in a trial.
    #[error(transparent)]
    Trial(#[from] EmbeddingError),
    /// This build can't run ONNX models.
    #[error(
        "this build can't run ONNX models; build one that can with \
         `cargo build --release --ignore-rust-version --features full`, or choose the embedded model or an endpoint"
    )]
    BuiltWithoutOnnx,
    /// There's no usable ONNX Runtime library.
    #[error(transparent)]
    Runtime(#[from] OnnxRuntimeError),
    /// `fastembed` doesn't know the model, with its error message.
    #[error("{0}")]
    UnknownModel(String),
    /// `fastembed` doesn't know the reranker.
    #[error("fastembed has no reranker “{name}”; `tracebook index models` lists those that it has")]
    UnknownReranker {
        /// Name of the reranker.
        name: String,
    },
    /// A file of a model in a folder can't be read.
    #[error("{} is needed for a sentence model and cannot be read ({source})", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file of a model in a folder is too large.
    #[error(
        "{} is needed for a sentence model and cannot be read (it has more than {MAX_MODEL_FILE_BYTES} bytes)",
        path.display()
    )]
    FileTooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The libraries can't load a sentence model.
    #[error("the sentence model {model} cannot be loaded ({source})")]
    Model {
        /// The user's choice of the model.
        model: String,
        /// The library's error.
        source: OnnxLibraryError,
    },
    /// The libraries can't load a reranker.
    #[error("the reranker cannot be loaded ({0})")]
    Reranker(#[source] OnnxLibraryError),
    /// The model isn't on this machine, and downloading isn't allowed.
    #[error("the sentence model {repository} is not here; choose it again to download it")]
    NotDownloaded {
        /// Name of its repository on Hugging Face.
        repository: String,
    },
    /// The download failed.
    #[error("{repository} cannot be downloaded from {endpoint} ({why}); the model that was there stays in use")]
    Download {
        /// Name of its repository on Hugging Face.
        repository: String,
        /// URL of the server.
        endpoint: String,
        /// Error message of the download library.
        why: String,
    },
    /// The user stopped the download.
    #[error("the download was stopped")]
    DownloadStopped,
}

/// Why a loaded model returns no vector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sentence model failed ({0})")]
pub struct OnnxEmbedError(#[source] pub OnnxLibraryError);

/// Why passages can't be ranked against a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reranker failed ({0})")]
pub struct RerankError(#[source] pub OnnxLibraryError);
