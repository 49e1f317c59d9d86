//! Why a model is not chosen, not loaded, or gives no vectors.

use crate::embedder_choice::MAX_CHOICE_BYTES;
use crate::embedding_endpoint::EMBEDDINGS_KEY_VAR;
use crate::onnx_runtime::ORT_LIBRARY_VAR;
use embed::{EmbeddingError, MiniLmLoadError};
use std::path::PathBuf;
use ureq::http::StatusCode;

/// A model's files may have this many bytes each.
pub(crate) const MAX_MODEL_FILE_BYTES: u64 = 4 << 30;

/// Why a text names no sentence model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderChoiceError {
    /// It is too long to be part of a file's name.
    #[error("the name of a sentence model has at most {MAX_CHOICE_BYTES} bytes")]
    TooLong,
    /// `fastembed` has no such model.
    #[error("fastembed has no model “{name}”; `tracebook index models` lists those that it has")]
    UnknownModel {
        /// The name.
        name: String,
    },
    /// An endpoint without the name of a model.
    #[error("an endpoint needs the model's name behind a #, as in {url}#bge-small")]
    EndpointWithoutModel {
        /// What was written.
        url: String,
    },
    /// It has none of the forms.
    #[error("“{text}” is no sentence model; use embedded, fastembed:NAME, folder:PATH or https://HOST/v1#MODEL")]
    UnknownForm {
        /// What was written.
        text: String,
    },
}

/// Why no ONNX Runtime library can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxRuntimeError {
    /// There is none where it is said to be.
    #[error("{origin} names {}, and no ONNX Runtime is there", path.display())]
    NotAtPath {
        /// Who named the path.
        origin: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// There is none anywhere.
    #[error(
        "no ONNX Runtime library is here (looked for in the settings, {ORT_LIBRARY_VAR}, the system's \
                    folders and \
                 Python's packages); `pip install --user onnxruntime` brings one, the embedded model needs none"
    )]
    NotFound,
    /// The library that was found doesn't work.
    #[error("the ONNX Runtime of {origin} ({}) cannot be used ({source})", path.display())]
    Unusable {
        /// Who named the library or brought it.
        origin: &'static str,
        /// Path of the library.
        path: PathBuf,
        /// What it says.
        source: OnnxLibraryError,
    },
}

/// What the libraries that run ONNX models say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxLibraryError {
    /// An error of theirs.
    #[error("{0}")]
    Refused(String),
    /// They panicked with a model.
    #[error("it failed")]
    Panicked,
    /// They panicked when they were loaded.
    #[error("it failed while it was loaded")]
    LoadPanicked,
}

/// Nothing is left to pay an endpoint for a call: a sentence of who pays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpendRefusal(pub String);

/// Why an endpoint gives no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The call can't be paid for.
    #[error(transparent)]
    NotPaid(#[from] SpendRefusal),
    /// The call failed.
    #[error("the endpoint of the sentence model, {url}, {fault}")]
    Call {
        /// The address that was called.
        url: String,
        /// What went wrong.
        #[source]
        fault: EndpointFault,
    },
}

/// What went wrong with a call of an endpoint: the rest of a sentence that begins with its address.
#[derive(Debug, thiserror::Error)]
pub enum EndpointFault {
    /// No connection.
    #[error("cannot be reached ({0}; is it running?)")]
    Unreachable(#[source] ureq::Error),
    /// It wants a key, or another one.
    #[error("wants a key ({0}); set {EMBEDDINGS_KEY_VAR}")]
    WantsKey(StatusCode),
    /// It refused the call.
    #[error("answered {status}: {body}")]
    Refused {
        /// The status of its answer.
        status: StatusCode,
        /// The beginning of its answer.
        body: String,
    },
    /// Its answer is not JSON of the expected form.
    #[error("answered what is not vectors ({0})")]
    NotVectors(#[source] ureq::Error),
    /// Its answer has more vectors than texts were sent.
    #[error("answered more vectors than were asked for")]
    TooManyVectors,
    /// Its vectors have another length than before, or than is possible.
    #[error("answered vectors that are not {dimensions} numbers each")]
    WrongVectors {
        /// How many numbers each should have.
        dimensions: usize,
    },
    /// It was busy each time it was asked.
    #[error("is busy")]
    Busy,
}

/// Why a model can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModelLoadError {
    /// The bundled model.
    #[error(transparent)]
    Bundled(#[from] MiniLmLoadError),
    /// An endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The model gave no vectors when it was tried.
    #[error(transparent)]
    Trial(#[from] EmbeddingError),
    /// This build has no ONNX models.
    #[error(
        "this build can't run ONNX models; build one that can with \
         `cargo build --release --ignore-rust-version --features full`, or choose the embedded model or an endpoint"
    )]
    BuiltWithoutOnnx,
    /// No ONNX Runtime library.
    #[error(transparent)]
    Runtime(#[from] OnnxRuntimeError),
    /// `fastembed` doesn't know the model: what it says.
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
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of a model in a folder is too large.
    #[error(
        "{} is needed for a sentence model and cannot be read (it has more than {MAX_MODEL_FILE_BYTES} bytes)",
        path.display()
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The libraries refuse a sentence model.
    #[error("the sentence model {model} cannot be loaded ({source})")]
    Model {
        /// The choice of the model.
        model: String,
        /// What they say.
        source: OnnxLibraryError,
    },
    /// The libraries refuse a reranker.
    #[error("the reranker cannot be loaded ({0})")]
    Reranker(#[source] OnnxLibraryError),
    /// The model isn't here, and was not to be downloaded.
    #[error("the sentence model {repository} is not here; choose it again to download it")]
    NotDownloaded {
        /// Where its files are, as Hugging Face names it.
        repository: String,
    },
    /// The download failed.
    #[error("{repository} cannot be downloaded from {endpoint} ({why}); the model that was there stays in use")]
    Download {
        /// Where its files are, as Hugging Face names it.
        repository: String,
        /// The server.
        endpoint: String,
        /// What the library that downloads says.
        why: String,
    },
    /// The user stopped the download.
    #[error("the download was stopped")]
    DownloadStopped,
}

/// Why a model that is loaded gives no vector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sentence model failed ({0})")]
pub struct OnnxEmbedError(#[source] pub OnnxLibraryError);

/// Why passages can't be compared with a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reranker failed ({0})")]
pub struct RerankError(#[source] pub OnnxLibraryError);
