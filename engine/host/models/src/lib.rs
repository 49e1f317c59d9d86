//! Sentence models beyond the one that ships: all that `fastembed` knows, where an ONNX Runtime library is found; one
//! that lies in a folder; and endpoints that speak OpenAI's embeddings. Knows texts and vectors, no notes.

mod choice;
mod endpoint;
mod onnx;
mod runtime;

pub use choice::Choice;
pub use endpoint::KEY;
pub use onnx::{Known, Reranker, known, known_rerankers};
pub use runtime::{LIBRARY, Runtime};

use embed::{Embedder, MiniLm};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file of a model on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// Its name.
    pub file: String,
    /// Bytes that are here.
    pub bytes: u64,
    /// All of its bytes.
    pub all: u64,
}

/// Who pays for an endpoint: asked before each call, told after it.
pub trait Purse: Send + Sync {
    /// Whether about so many tokens may be sent to an endpoint; if so, [`Purse::end`] follows.
    ///
    /// # Errors
    /// A sentence: nothing is left to pay for them.
    fn begin(&self, endpoint: &Choice, tokens: u64) -> Result<(), String>;
    /// A call that [`Purse::begin`] allowed is over. `read`: tokens that the endpoint has read; `None`: it refused, or
    /// did not answer.
    fn end(&self, endpoint: &Choice, tokens: u64, read: Option<u64>);
}

/// Pays for everything: for tests, and for what costs nothing.
struct Open;

impl Purse for Open {
    fn begin(&self, _: &Choice, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn end(&self, _: &Choice, _: u64, _: Option<u64>) {}
}

/// Where models come from and lie, and who is told meanwhile.
#[derive(Clone)]
pub struct Place {
    /// Downloads are kept here.
    pub cache: PathBuf,
    /// The ONNX Runtime library that the user named, if any.
    pub library: Option<PathBuf>,
    /// Whether what is not here yet may be downloaded.
    pub download: bool,
    /// Told of downloads.
    pub progress: Arc<dyn Fn(Download) + Send + Sync>,
    /// Set to give a download up; what came of it stays, and the next one goes on from there.
    pub stop: Arc<AtomicBool>,
    /// Who pays for endpoints.
    pub purse: Arc<dyn Purse>,
}

impl Place {
    /// A place that tells nobody, and where endpoints cost nothing.
    pub fn quiet(cache: PathBuf) -> Place {
        let (progress, purse) = (Arc::new(|_| ()), Arc::new(Open));
        Place { cache, library: None, download: false, progress, stop: Arc::default(), purse }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Loads a model. Takes from milliseconds to, with a download, many minutes.
///
/// # Errors
/// A sentence: no such model, no ONNX Runtime, no network, or the model is not one for sentences.
pub fn load(choice: &Choice, place: &Place) -> Result<Arc<dyn Embedder>, String> {
    Ok(match choice {
        Choice::Embedded => Arc::new(MiniLm::load()?),
        Choice::Fastembed(name) => Arc::new(onnx::Onnx::known(choice, name, place)?),
        Choice::Folder(folder) => Arc::new(onnx::Onnx::folder(choice, folder, place)?),
        Choice::Endpoint { url, model } => Arc::new(endpoint::Endpoint::ask(choice, url, model, place.purse.clone())?),
    })
}
