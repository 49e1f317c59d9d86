//! Embedding models: the chosen one and the one that answers queries, when they are loaded, and when they are unloaded.
//! They are larger than everything else in a window's memory.

use super::SharedIndex;
use crate::workers;
use agent::secrets::InstallationKeys;
use anyhow::Context;
use index::{EmbeddingError, SentenceEmbedder};
use models::{EmbedderChoice, ModelLoadOptions, Reranker};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An unused model is unloaded after this time.
const MODEL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings for search by meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingChoice {
    /// The model whose vectors are computed.
    pub choice: EmbedderChoice,
    /// The ONNX Runtime library, if the user named one.
    pub library: Option<PathBuf>,
    /// Name of the reranker for the best hits; empty: none.
    pub reranker: String,
    /// Whether computing vectors is paused.
    pub paused: bool,
    /// Folders whose notes are never searched, as [`engine::Settings::unsearched`] has them.
    pub unsearched: Vec<String>,
}

impl EmbeddingChoice {
    /// Returns whether a note with this path is excluded from search.
    pub(super) fn is_excluded(&self, path: &str) -> bool {
        let below = |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.unsearched.iter().any(below)
    }

    /// Reads the choice from the settings. An invalid embedder is replaced by the embedded one, with the reason.
    pub fn from_settings(settings: &engine::Settings) -> (EmbeddingChoice, Option<String>) {
        let (choice, wrong) = match settings.embedder.parse::<EmbedderChoice>() {
            Ok(choice) => (choice, None),
            Err(why) => (EmbedderChoice::Embedded, Some(why.to_string())),
        };
        let library = Some(settings.onnx_runtime.trim()).filter(|path| !path.is_empty()).map(PathBuf::from);
        let reranker = settings.reranker.trim().to_owned();
        let unsearched = settings.unsearched.clone();
        (EmbeddingChoice { choice, library, reranker, paused: settings.meaning_paused, unsearched }, wrong)
    }
}

/// A model, or why it isn't available; shared by all users.
pub(super) type LoadedModel<M> = Result<Arc<M>, Arc<anyhow::Error>>;

/// A loaded model, with the time of its last use.
type ModelSlot = (LoadedModel<dyn SentenceEmbedder>, Instant);

/// The loaded models, with the times of their last use.
#[derive(Default)]
pub(super) struct EmbeddingModels {
    wanted: Mutex<EmbeddingChoice>,
    held: Mutex<HashMap<String, ModelSlot>>,
    reranker: Mutex<Option<(String, LoadedModel<Reranker>, Instant)>>,
    /// Set to cancel the running download.
    stop: Mutex<Arc<AtomicBool>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EmbeddingModels {
    pub(super) fn wanted_model(&self) -> EmbeddingChoice {
        lock(&self.wanted).clone()
    }

    /// Sets the chosen models; returns the previous choice.
    pub(super) fn set_wanted(&self, wanted: EmbeddingChoice) -> EmbeddingChoice {
        let before = std::mem::replace(&mut *lock(&self.wanted), wanted.clone());
        if (&before.choice, &before.reranker, &before.library) != (&wanted.choice, &wanted.reranker, &wanted.library) {
            std::mem::take(&mut *lock(&self.stop)).store(true, Ordering::Relaxed);
            // A model that failed before may be available now.
            lock(&self.held).retain(|_, (loaded, _)| loaded.is_ok());
            lock(&self.reranker).take();
        }
        before
    }

    /// Returns the time until a model can be unloaded; `None` if none is loaded.
    pub(super) fn time_until_unload(&self) -> Option<Duration> {
        let held = lock(&self.held).values().map(|(_, used)| *used).min();
        let reranker = lock(&self.reranker).as_ref().map(|(_, _, used)| *used);
        held.into_iter().chain(reranker).min().map(|used| MODEL_IDLE_TIMEOUT.saturating_sub(used.elapsed()))
    }

    /// Unloads models unused for a while. Returns whether there was one.
    pub(super) fn unload_idle(&self) -> bool {
        let before = (lock(&self.held).len(), lock(&self.reranker).is_some());
        lock(&self.held).retain(|_, (_, used)| used.elapsed() < MODEL_IDLE_TIMEOUT);
        lock(&self.reranker).take_if(|(_, _, used)| used.elapsed() >= MODEL_IDLE_TIMEOUT);
        before != (lock(&self.held).len(), lock(&self.reranker).is_some())
    }

    /// Records a model's failure, so that it isn't used for a while.
    pub(super) fn record_failure(&self, key: &str, why: Arc<anyhow::Error>) {
        lock(&self.held).insert(key.to_owned(), (Err(why), Instant::now()));
    }
}

impl SharedIndex {
    fn load_options(&self, download: bool) -> ModelLoadOptions {
        let stop = lock(&self.models.stop).clone();
        let (freshness, library) = (self.freshness.clone(), self.models.wanted_model().library);
        let progress = move |download| {
            freshness.lock().unwrap_or_else(PoisonError::into_inner).download = Some(download);
        };
        ModelLoadOptions {
            cache: model_cache_folder(),
            onnx_library: library,
            allow_download: download,
            on_progress: Arc::new(progress),
            stop,
            spend_guard: self.spend_guard.clone(),
        }
    }

    /// Returns a model by the key of its vectors, loading it if necessary. Nothing is downloaded, and no lock is held
    /// during loading.
    pub(super) fn load_if_present(&self, key: &str) -> LoadedModel<dyn SentenceEmbedder> {
        self.load_model(key, false)
    }

    fn load_model(&self, key: &str, download: bool) -> LoadedModel<dyn SentenceEmbedder> {
        if let Some((loaded, used)) = lock(&self.models.held).get_mut(key)
            && (loaded.is_ok() || !download)
        {
            // A failed model keeps its time, so that it's tried again once that has passed.
            if loaded.is_ok() {
                *used = Instant::now();
            }
            return loaded.clone();
        }
        let choice = EmbedderChoice::from_key(key)
            .with_context(|| format!("“{key}” is no sentence model of this version"))
            .map_err(Arc::new)?;
        let loaded = models::load_embedder(&choice, &self.load_options(download));
        let loaded = loaded.map_err(|why| Arc::new(anyhow::Error::from(why)));
        let loaded = match choice {
            EmbedderChoice::Endpoint { .. } => {
                let keys = crate::agents::model_setup::installation_keys(&self.folder);
                loaded.map(|model| Arc::new(WithoutSecrets { model, keys }) as Arc<dyn SentenceEmbedder>)
            }
            _ => loaded,
        };
        lock(&self.models.held).insert(key.to_owned(), (loaded.clone(), Instant::now()));
        loaded
    }

    /// Loads the chosen model on a thread of its own, downloading it if necessary.
    pub(super) fn start_loading(self: &Arc<SharedIndex>, key: &str) -> Receiver<LoadedModel<dyn SentenceEmbedder>> {
        let (answer, wait) = channel();
        let (common, key) = (self.clone(), key.to_owned());
        std::thread::spawn(move || {
            workers::lower_thread_priority();
            let loaded = common.load_model(&key, true);
            common.update_freshness(|fresh| fresh.download = None);
            let _ = answer.send(loaded); // nobody waits any more where another was chosen
        });
        wait
    }

    /// Loads the chosen reranker on a thread of its own, downloading it if necessary.
    pub(super) fn start_loading_reranker(self: &Arc<SharedIndex>) {
        let common = self.clone();
        std::thread::spawn(move || {
            workers::lower_thread_priority();
            if let Err(why) = common.load_reranker(true) {
                common.update_freshness(|fresh| fresh.reranker = Some(why.to_string()));
            }
            common.update_freshness(|fresh| fresh.download = None);
        });
    }

    /// Downloads a reranker's files without choosing it.
    pub(super) fn download_reranker(&self, name: &str) -> anyhow::Result<()> {
        let fetched = Reranker::load(name, &self.load_options(true));
        self.update_freshness(|fresh| fresh.download = None);
        fetched?;
        Ok(())
    }

    /// Returns the chosen reranker; `None` if none is chosen.
    pub(super) fn load_reranker(&self, download: bool) -> Result<Option<Arc<Reranker>>, Arc<anyhow::Error>> {
        let name = self.models.wanted_model().reranker;
        if name.is_empty() {
            return Ok(None);
        }
        if let Some((held, loaded, used)) = &mut *lock(&self.models.reranker)
            && *held == name
        {
            if loaded.is_ok() {
                *used = Instant::now();
            }
            return loaded.clone().map(Some);
        }
        let loaded = Reranker::load(&name, &self.load_options(download)).map(Arc::new);
        let loaded = loaded.map_err(|why| Arc::new(anyhow::Error::from(why)));
        *lock(&self.models.reranker) = Some((name, loaded.clone(), Instant::now()));
        loaded.map(Some)
    }
}

/// Wrapper for a remote model that masks secrets in its input.
struct WithoutSecrets {
    model: Arc<dyn SentenceEmbedder>,
    /// Keys that are masked wherever they occur, whatever they look like.
    keys: InstallationKeys,
}

impl SentenceEmbedder for WithoutSecrets {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        self.model.embed(&self.keys.mask_text(text))
    }

    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        self.model.embed_question(&self.keys.mask_text(text))
    }

    fn unrelated_cosine(&self) -> f32 {
        self.model.unrelated_cosine()
    }

    fn batch_size(&self) -> usize {
        self.model.batch_size()
    }

    fn embed_all(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let masked: Vec<_> = texts.iter().map(|text| self.keys.mask_text(text)).collect();
        self.model.embed_all(&masked.iter().map(AsRef::as_ref).collect::<Vec<&str>>())
    }
}

/// Returns the folder of downloaded models, shared with similar programs.
fn model_cache_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(shared) = variable("HF_HOME") {
        return shared;
    }
    let own = variable("XDG_CACHE_HOME").or_else(|| variable("LOCALAPPDATA"));
    own.or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("tracebook/models")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Still;

    impl SentenceEmbedder for Still {
        fn name(&self) -> &str {
            "still"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn embed(&self, _: &str) -> Result<Vec<f32>, EmbeddingError> {
            Ok(vec![1.0])
        }
    }

    #[test]
    fn a_model_that_nobody_uses_is_given_back() {
        let models = EmbeddingModels::default();
        assert_eq!(models.time_until_unload(), None);
        assert!(!models.unload_idle(), "there is none");
        let model: Arc<dyn SentenceEmbedder> = Arc::new(Still);
        let long_ago = Instant::now().checked_sub(MODEL_IDLE_TIMEOUT).expect("this machine has run for longer");
        lock(&models.held).insert("used".to_owned(), (Ok(model.clone()), Instant::now()));
        lock(&models.held).insert("left".to_owned(), (Ok(model.clone()), long_ago));
        assert_eq!(models.time_until_unload(), Some(Duration::ZERO), "one of them at once");
        assert!(models.unload_idle());
        assert_eq!(lock(&models.held).keys().collect::<Vec<_>>(), ["used"]);
        assert_eq!(Arc::strong_count(&model), 2, "its memory is free");
        assert!(
            models.time_until_unload().is_some_and(|left| left > MODEL_IDLE_TIMEOUT / 2) && !models.unload_idle(),
            "the other one stays"
        );
        models.record_failure("used", Arc::new(anyhow::anyhow!("torn")));
        assert_eq!(Arc::strong_count(&model), 1);
        let wanted = EmbeddingChoice { reranker: "another".to_owned(), ..EmbeddingChoice::default() };
        models.set_wanted(wanted);
        assert_eq!(models.time_until_unload(), None, "what failed is tried again once something else is wanted");
    }
}
