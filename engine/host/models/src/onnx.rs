//! Runs ONNX models with `fastembed` on an ONNX Runtime library.

use crate::error::MAX_MODEL_FILE_BYTES;
use crate::{
    DownloadProgress, EmbedderChoice, ModelLoadError, ModelLoadOptions, OnnxEmbedError, OnnxLibraryError, RerankError,
    onnx_runtime,
};
use embed::{EmbeddingError, SentenceEmbedder};
use fastembed::{
    EmbeddingModel, InitOptionsUserDefined, Pooling, RerankInitOptions, RerankerModel, TextEmbedding, TextInitOptions,
    TextRerank, TokenizerFiles, UserDefinedEmbeddingModel,
};
use hf_hub::api::Progress;
use hf_hub::api::sync::ApiBuilder;
use hf_hub::{Cache, Repo};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Environment variable with the server for model downloads, if not Hugging Face.
const HF_ENDPOINT_VAR: &str = "HF_ENDPOINT";
/// Files that every model has besides its network.
const TOKENIZER_FILES: [&str; 4] =
    ["tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

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

/// Returns the sentence models that `fastembed` knows, sorted by name.
pub fn known_models() -> Vec<KnownModel> {
    let all = TextEmbedding::list_supported_models().into_iter().map(|info| KnownModel {
        name: format!("{:?}", info.model),
        repository: info.model_code,
        dimensions: info.dim,
        description: info.description,
    });
    sort_by_name(all.collect())
}

/// Returns the rerankers that `fastembed` knows, sorted by name.
pub fn known_rerankers() -> Vec<KnownModel> {
    let all = TextRerank::list_supported_models().into_iter().map(|info| KnownModel {
        name: format!("{:?}", info.model),
        repository: info.model_code,
        dimensions: 0,
        description: info.description,
    });
    sort_by_name(all.collect())
}

fn sort_by_name(mut all: Vec<KnownModel>) -> Vec<KnownModel> {
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// A loaded ONNX sentence model.
pub(crate) struct OnnxEmbedder {
    key: String,
    dimensions: usize,
    unrelated: f32,
    /// Prefixes that the model expects before queries and before passages.
    prefixes: (&'static str, &'static str),
    model: Mutex<TextEmbedding>,
}

impl OnnxEmbedder {
    /// Loads a model that `fastembed` knows. Downloads missing files if that's allowed.
    pub(crate) fn load_known(
        choice: &EmbedderChoice,
        name: &str,
        place: &ModelLoadOptions,
    ) -> Result<OnnxEmbedder, ModelLoadError> {
        let model: EmbeddingModel = name.parse().map_err(ModelLoadError::UnknownModel)?;
        let info = TextEmbedding::get_model_info(&model);
        let info = info.map_err(|error| ModelLoadError::UnknownModel(error.to_string()))?;
        // The library comes before the download, which would be useless without it.
        let environment = onnx_runtime::shared_environment(place.onnx_library.as_deref())?;
        download_missing(&info.model_code, &info.model_file, &info.additional_files, place)?;
        let options = TextInitOptions::new(model.clone())
            .with_cache_dir(place.cache.clone())
            .with_show_download_progress(false)
            .with_environment(environment)
            // One thread, because typing needs the other cores.
            .with_intra_threads(1);
        let loaded = catch_panic(|| TextEmbedding::try_new(options));
        let loaded = loaded.map_err(|source| ModelLoadError::Model { model: choice.to_string(), source })?;
        OnnxEmbedder::from_loaded(choice, prompt_prefixes(&info.model_code), loaded)
    }

    /// Loads a model from a folder: `model.onnx` and the four files of its tokenizer.
    pub(crate) fn load_folder(
        choice: &EmbedderChoice,
        folder: &Path,
        place: &ModelLoadOptions,
    ) -> Result<OnnxEmbedder, ModelLoadError> {
        let read = |name: &str| -> Result<Vec<u8>, ModelLoadError> {
            let path = folder.join(name);
            let unreadable = |source| ModelLoadError::File { path: path.clone(), source };
            if std::fs::metadata(&path).map_err(unreadable)?.len() > MAX_MODEL_FILE_BYTES {
                return Err(ModelLoadError::FileTooLarge { path });
            }
            std::fs::read(&path).map_err(unreadable)
        };
        let [tokenizer, config, special, tokenizer_config] = TOKENIZER_FILES.map(read);
        let tokenizer_files = TokenizerFiles {
            tokenizer_file: tokenizer?,
            config_file: config?,
            special_tokens_map_file: special?,
            tokenizer_config_file: tokenizer_config?,
        };
        let environment = onnx_runtime::shared_environment(place.onnx_library.as_deref())?;
        let model = UserDefinedEmbeddingModel::new(read("model.onnx")?, tokenizer_files).with_pooling(Pooling::Mean);
        let options = InitOptionsUserDefined::new().with_environment(environment).with_intra_threads(1);
        let loaded = catch_panic(|| TextEmbedding::try_new_from_user_defined(model, options));
        let loaded = loaded.map_err(|source| ModelLoadError::Model { model: choice.to_string(), source })?;
        OnnxEmbedder::from_loaded(choice, ("", ""), loaded)
    }

    /// Embeds a sample text to learn the number of dimensions.
    fn from_loaded(
        choice: &EmbedderChoice,
        before: (&'static str, &'static str),
        model: TextEmbedding,
    ) -> Result<OnnxEmbedder, ModelLoadError> {
        let mut onnx = OnnxEmbedder {
            key: choice.key(),
            dimensions: 0,
            unrelated: 0.0,
            prefixes: before,
            model: Mutex::new(model),
        };
        onnx.dimensions = onnx.embed_raw("a question")?.len();
        onnx.unrelated = embed::measure_unrelated_cosine(&onnx)?;
        Ok(onnx)
    }

    fn embed_raw(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        // One text at a time, because quantization depends on the other texts in the batch.
        let vectors = catch_panic(|| model.embed([text], None));
        let vector = vectors.map(|vectors| vectors.into_iter().next().unwrap_or_default());
        let mut vector = vector.map_err(|why| EmbeddingError::other(OnnxEmbedError(why)))?;
        embed::normalize(&mut vector);
        Ok(vector)
    }
}

impl SentenceEmbedder for OnnxEmbedder {
    fn name(&self) -> &str {
        &self.key
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn unrelated_cosine(&self) -> f32 {
        self.unrelated
    }

    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        match self.prefixes.1 {
            "" => self.embed_raw(text),
            before => self.embed_raw(&format!("{before}{text}")),
        }
    }

    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        match self.prefixes.0 {
            "" => self.embed_raw(text),
            before => self.embed_raw(&format!("{before}{text}")),
        }
    }
}

/// Returns the prefixes that a model expects before a query and before a passage, from its model card.
fn prompt_prefixes(repository: &str) -> (&'static str, &'static str) {
    let name = repository.to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    if has("e5") {
        ("query: ", "passage: ")
    } else if has("nomic") || has("modernbert-embed") {
        ("search_query: ", "search_document: ")
    } else if has("embeddinggemma") {
        ("task: search result | query: ", "title: none | text: ")
    } else if (has("bge") && has("en-v1.5")) || has("mxbai") || has("snowflake") {
        ("Represent this sentence for searching relevant passages: ", "")
    } else if has("bge") && has("zh") {
        ("为这个句子生成表示以用于检索相关文章：", "")
    } else {
        ("", "")
    }
}

/// Ranks passages by reading each together with the question.
pub struct Reranker(Mutex<TextRerank>);

impl Reranker {
    /// Loads one of [`known_rerankers`]. Downloads missing files if that's allowed.
    ///
    /// # Errors
    /// Returns the same errors as [`crate::load_embedder`].
    pub fn load(name: &str, place: &ModelLoadOptions) -> Result<Reranker, ModelLoadError> {
        let all = TextRerank::list_supported_models();
        let same = |model: &RerankerModel| format!("{model:?}").eq_ignore_ascii_case(name);
        let info = all.into_iter().find(|info| same(&info.model) || info.model_code == name);
        let info = info.ok_or_else(|| ModelLoadError::UnknownReranker { name: name.to_owned() })?;
        let environment = onnx_runtime::shared_environment(place.onnx_library.as_deref())?;
        download_missing(&info.model_code, &info.model_file, &info.additional_files, place)?;
        let options = RerankInitOptions::new(info.model.clone())
            .with_cache_dir(place.cache.clone())
            .with_show_download_progress(false)
            .with_environment(environment)
            .with_intra_threads(1);
        let loaded = catch_panic(|| TextRerank::try_new(options));
        loaded.map(|model| Reranker(Mutex::new(model))).map_err(ModelLoadError::Reranker)
    }

    /// Returns how well each passage answers the question, from 0 to 1.
    ///
    /// # Errors
    /// Returns an error if the reranker fails.
    pub fn scores(&self, question: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ranked = catch_panic(|| model.rerank(question, &passages, false, None));
        let mut scores = vec![0.0; passages.len()];
        for result in ranked.map_err(RerankError)? {
            if let Some(score) = scores.get_mut(result.index) {
                *score = 1.0 / (1.0 + (-result.score).exp());
            }
        }
        Ok(scores)
    }
}

/// Reports the progress of a download, and cancels it on request.
struct DownloadWatcher<'a> {
    options: &'a ModelLoadOptions,
    progress: DownloadProgress,
}

/// Payload unwound through the download library, which has no other way to be stopped.
struct DownloadStopped;

impl Progress for DownloadWatcher<'_> {
    fn init(&mut self, size: usize, filename: &str) {
        self.progress = DownloadProgress { file: filename.to_owned(), received_bytes: 0, total_bytes: size as u64 };
        (self.options.on_progress)(self.progress.clone());
    }

    fn update(&mut self, size: usize) {
        if self.options.is_stopped() {
            // Unlike a panic, this prints nothing, and `download_missing` catches it. Downloaded parts stay for the
            // next time.
            std::panic::resume_unwind(Box::new(DownloadStopped));
        }
        self.progress.received_bytes += size as u64;
        (self.options.on_progress)(self.progress.clone());
    }

    fn finish(&mut self) {
        self.progress.received_bytes = self.progress.total_bytes;
        (self.options.on_progress)(self.progress.clone());
    }
}

/// Downloads the files of a model that aren't in the cache.
fn download_missing(
    repository: &str,
    network: &str,
    others: &[String],
    place: &ModelLoadOptions,
) -> Result<(), ModelLoadError> {
    let files = [network].into_iter().chain(others.iter().map(String::as_str)).chain(TOKENIZER_FILES);
    let cache = Cache::new(place.cache.clone());
    let here = cache.repo(Repo::model(repository.to_owned()));
    let missing: Vec<&str> = files.filter(|file| here.get(file).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !place.allow_download {
        return Err(ModelLoadError::NotDownloaded { repository: repository.to_owned() });
    }
    let endpoint = std::env::var(HF_ENDPOINT_VAR).unwrap_or_else(|_| "https://huggingface.co".to_owned());
    let failed = |why: &dyn std::fmt::Display| ModelLoadError::Download {
        repository: repository.to_owned(),
        endpoint: endpoint.clone(),
        why: why.to_string(),
    };
    let api = ApiBuilder::from_cache(cache).with_endpoint(endpoint.clone()).with_progress(false).build();
    let api = api.map_err(|error| failed(&error))?.model(repository.to_owned());
    for file in missing {
        let watched = DownloadWatcher { options: place, progress: DownloadProgress::default() };
        let got = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| api.download_with_progress(file, watched)));
        match got {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(failed(&error)),
            Err(thrown) if thrown.is::<DownloadStopped>() => return Err(ModelLoadError::DownloadStopped),
            Err(_) => return Err(failed(&"it failed half way")),
        }
    }
    Ok(())
}

/// Calls a foreign library, and converts a panic to an error.
fn catch_panic<R>(what: impl FnOnce() -> fastembed::Result<R>) -> Result<R, OnnxLibraryError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
    let done = caught.map_err(|_| OnnxLibraryError::Panicked)?;
    done.map_err(|error| OnnxLibraryError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_there_and_a_missing_library_or_model_is_a_sentence() {
        let all = known_models();
        assert!(all.len() > 30 && all.iter().any(|known| known.name == "MultilingualE5Small"), "{}", all.len());
        assert!(!known_rerankers().is_empty());
        let folder = tempfile::tempdir().expect("a folder");
        let place = ModelLoadOptions {
            onnx_library: Some("/nowhere".into()),
            ..ModelLoadOptions::without_progress(folder.path().to_owned())
        };
        let choice: EmbedderChoice = "fastembed:BGESmallENV15".parse().expect("known");
        let why = |choice: &EmbedderChoice| crate::load_embedder(choice, &place).err().map(|why| why.to_string());
        assert!(why(&choice).is_some_and(|why| why.contains("/nowhere")));
        let in_folder = why(&EmbedderChoice::Folder(folder.path().to_owned()));
        assert!(in_folder.is_some_and(|why| why.contains("tokenizer.json")));
        assert_eq!(prompt_prefixes("intfloat/multilingual-e5-small").0, "query: ");
        let info =
            download_missing("a/b", "model.onnx", &[], &ModelLoadOptions::without_progress(folder.path().to_owned()));
        assert!(matches!(info, Err(ModelLoadError::NotDownloaded { .. })));
    }
}
