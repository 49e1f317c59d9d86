//! Sentence embeddings behind one trait, and the bundled model: MiniLM-L6 (Apache-2.0), run by `rten`. Nothing is
//! downloaded or installed. The crate knows texts and vectors, but not notes or files.

mod wordpiece;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::{NdTensor, prelude::*};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wordpiece::WordPiece;

/// Why the bundled model can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum MiniLmLoadError {
    /// The embedded bytes aren't a valid network.
    #[error("the embedded sentence model cannot be loaded ({0})")]
    Network(#[from] rten::LoadError),
    /// The network has an input with an unknown name.
    #[error("the embedded sentence model cannot be loaded (it wants {0})")]
    UnknownInput(String),
    /// The network has no output.
    #[error("the embedded sentence model cannot be loaded (it has no output)")]
    NoOutput,
    /// The vocabulary can't be read.
    #[error("the embedded sentence model cannot be loaded (its vocabulary is damaged)")]
    Vocabulary,
}

/// Why a text could not be embedded.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The bundled model's network failed.
    #[error("the sentence model failed ({0})")]
    Network(#[from] rten::RunError),
    /// The bundled model's network returned something other than a tensor of numbers.
    #[error("the sentence model failed (not a tensor of numbers)")]
    NotNumbers,
    /// The bundled model's output isn't contiguous in memory.
    #[error("the sentence model failed (its output is not in one piece)")]
    NotContiguous,
    /// The error of a model from another crate.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl EmbeddingError {
    /// Wraps the error of a model from another crate.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> EmbeddingError {
        EmbeddingError::Other(Box::new(error))
    }
}

/// Turns a text into a vector of length 1. The dot product of two vectors is the similarity of their meanings.
pub trait SentenceEmbedder: Send + Sync {
    /// Returns the model's name. Vectors of different models can't be compared.
    fn name(&self) -> &str;
    /// Returns the number of dimensions of the model's vectors.
    fn dimensions(&self) -> usize;
    /// Returns the vector of a text. Text beyond the model's input limit is ignored.
    ///
    /// # Errors
    /// Returns an error if the model fails.
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingError>;

    /// Embeds a query, if the model distinguishes queries from texts.
    ///
    /// # Errors
    /// As for [`SentenceEmbedder::embed`].
    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        self.embed(text)
    }

    /// Returns the model's mean cosine for unrelated texts, 0 to 1. Some models give all texts a high cosine.
    fn unrelated_cosine(&self) -> f32 {
        0.0
    }

    /// Returns the preferred number of texts per call of [`SentenceEmbedder::embed_all`], at least 1.
    fn batch_size(&self) -> usize {
        1
    }

    /// Returns the vectors of several texts, in the same order.
    ///
    /// # Errors
    /// As for [`SentenceEmbedder::embed`].
    fn embed_all(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        texts.iter().map(|text| self.embed(text)).collect()
    }
}

/// Sentences that are unrelated to each other.
const UNRELATED_TEXTS: [&str; 6] = [
    "The bakery on the corner sells rye bread and poppy seed rolls.",
    "Boundary layer transition was measured on a heated flat plate.",
    "def parse(line): return [int(field) for field in line.split(',')]",
    "My grandmother moved to Lisbon in the winter of 1962.",
    "Quarterly revenue fell by four percent after the merger.",
    "Water the tomatoes before the sun is high.",
];

/// Measures the mean cosine that a model gives to unrelated texts, 0 to 1.
///
/// # Errors
/// As for [`SentenceEmbedder::embed`].
pub fn measure_unrelated_cosine(model: &dyn SentenceEmbedder) -> Result<f32, EmbeddingError> {
    let vectors = model.embed_all(&UNRELATED_TEXTS)?;
    let pairs = (0..vectors.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let cosines = pairs.map(|(a, b)| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>());
    let (count, sum) = cosines.fold((0_u16, 0.0), |(count, sum), cosine| (count + 1, sum + cosine));
    Ok((sum / f32::from(count.max(1))).clamp(0.0, 0.99))
}

/// Scales a vector to length 1.
pub fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|value| *value /= length);
}

static MINILM_MODEL: &[u8] = include_bytes!("../../../../assets/embedding/minilm-l6-v2-dyn7.onnx");
static MINILM_VOCABULARY: &str = include_str!("../../../../assets/embedding/vocab.txt");
/// Returns the whole words of the vocabulary, most frequent first; used to generate benchmark texts.
pub fn vocabulary_words() -> Vec<&'static str> {
    let whole = |word: &&str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    MINILM_VOCABULARY.lines().filter(whole).collect()
}

/// Number of dimensions of the bundled model's vectors.
pub const VECTOR_DIMENSIONS: usize = 384;
/// Maximum number of word pieces that the model reads.
const MAX_INPUT_TOKENS: usize = 256;
/// Maximum number of texts that are read at the same time, on a machine with as many cores.
const MAX_TEXT_THREADS: usize = 8;
/// Texts per thread in a batch. Texts differ in length, and no thread should wait long for another.
const TEXTS_PER_THREAD: usize = 3;

/// An input of the network, identified by its name.
#[derive(Clone, Copy)]
enum NetworkInput {
    Ids,
    Mask,
    Types,
}

/// The bundled embedding model, MiniLM-L6-v2.
pub struct MiniLm {
    model: Model,
    inputs: Vec<(NodeId, NetworkInput)>,
    output: NodeId,
    words: WordPiece,
    /// The thread pools for texts, one for each core: two texts on two threads take less time than one after the other
    /// on both. Each has one thread, which takes the priority of the thread that first embeds a text in it. Whoever
    /// embeds many texts has a low one, because typing needs the cores.
    texts: Vec<OnceLock<Arc<ThreadPool>>>,
    /// A separate thread pool for queries, because users wait for them.
    questions: OnceLock<Arc<ThreadPool>>,
}

impl MiniLm {
    /// Loads the bundled model, which takes a few hundred milliseconds.
    ///
    /// # Errors
    /// Returns an error if the embedded bytes aren't the model.
    pub fn load() -> Result<MiniLm, MiniLmLoadError> {
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        let model = options.load_static_slice(MINILM_MODEL)?;
        let input = |id: &NodeId| {
            let name = model.node_info(*id).and_then(|node| node.name().map(ToOwned::to_owned)).unwrap_or_default();
            match name.as_str() {
                "input_ids" => Ok((*id, NetworkInput::Ids)),
                "attention_mask" => Ok((*id, NetworkInput::Mask)),
                "token_type_ids" => Ok((*id, NetworkInput::Types)),
                _ => Err(MiniLmLoadError::UnknownInput(name)),
            }
        };
        let inputs = model.input_ids().iter().map(input).collect::<Result<_, _>>()?;
        let output = *model.output_ids().first().ok_or(MiniLmLoadError::NoOutput)?;
        let words = WordPiece::new(MINILM_VOCABULARY).ok_or(MiniLmLoadError::Vocabulary)?;
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let texts = (0..cores.min(MAX_TEXT_THREADS)).map(|_| OnceLock::new()).collect();
        Ok(MiniLm { model, inputs, output, words, texts, questions: OnceLock::new() })
    }

    fn run_model(&self, text: &str, thread: &OnceLock<Arc<ThreadPool>>) -> Result<Vec<f32>, EmbeddingError> {
        // One text at a time: quantization depends on what else is in the batch.
        let ids = self.words.encode(text, MAX_INPUT_TOKENS);
        let length = ids.len();
        let ids = NdTensor::from_data([1, length], ids);
        let mask = NdTensor::<i32, 2>::full([1, length], 1);
        let types = NdTensor::<i32, 2>::zeros([1, length]);
        let given = self.inputs.iter().map(|(id, input)| {
            let tensor = match input {
                NetworkInput::Ids => &ids,
                NetworkInput::Mask => &mask,
                NetworkInput::Types => &types,
            };
            (*id, tensor.view().into())
        });
        let thread = thread.get_or_init(|| Arc::new(ThreadPool::with_num_threads(1)));
        let options = RunOptions::default().with_thread_pool(Some(thread.clone()));
        let [output]: [Value; 1] = self.model.run_n(given.collect(), [self.output], Some(options))?;
        let hidden: NdTensor<f32, 3> = output.try_into().map_err(|_| EmbeddingError::NotNumbers)?;
        let hidden = hidden.data().ok_or(EmbeddingError::NotContiguous)?;
        let mut mean = vec![0_f32; VECTOR_DIMENSIONS];
        for row in hidden.chunks_exact(VECTOR_DIMENSIONS) {
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        normalize(&mut mean);
        Ok(mean)
    }
}

impl SentenceEmbedder for MiniLm {
    fn name(&self) -> &str {
        "minilm-l6-v2-dyn7"
    }

    fn dimensions(&self) -> usize {
        VECTOR_DIMENSIONS
    }

    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        self.run_model(text, &self.texts[0])
    }

    fn batch_size(&self) -> usize {
        self.texts.len() * TEXTS_PER_THREAD
    }

    fn embed_all(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        // The longest first, so that no thread begins one when the others are done.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(texts[*place].len()));
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(texts.len())));
        let embed_next = |pool: &OnceLock<Arc<ThreadPool>>| {
            while let Some(place) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let vector = self.run_model(texts[*place], pool);
                results.lock().unwrap_or_else(PoisonError::into_inner).push((*place, vector));
            }
        };
        std::thread::scope(|threads| {
            for pool in self.texts[1..].iter().take(texts.len().saturating_sub(1)) {
                threads.spawn(move || embed_next(pool));
            }
            embed_next(&self.texts[0]);
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, vector)| vector).collect()
    }

    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbeddingError> {
        self.run_model(text, &self.questions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Number of queries measured one after another.
    const QUESTIONS: usize = 40;

    #[test]
    fn near_meanings_are_near() {
        let model = MiniLm::load().expect("loaded");
        let vector = |text: &str| model.embed(text).expect("embedded");
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cat = vector("A cat sleeps on the sofa");
        assert_eq!(cat.len(), VECTOR_DIMENSIONS);
        assert!((dot(&cat, &cat) - 1.0).abs() < 1e-4);
        let near = dot(&cat, &vector("a kitten naps on a couch"));
        let far = dot(&cat, &vector("quarterly tax report of the company"));
        assert!(near > 0.5 && far < 0.2, "{near} {far}");
        for odd in ["", "\0\u{fffd}", &"x".repeat(100_000), "日本語のテキスト", "👩‍👩‍👧‍👦"] {
            assert!(vector(odd).iter().all(|value| value.is_finite()), "{odd:.10}");
        }
    }

    #[test]
    fn texts_that_are_read_at_the_same_time_have_the_vectors_of_each_alone() {
        let model = MiniLm::load().expect("loaded");
        let words = vocabulary_words();
        let texts: Vec<String> = (1..40).map(|number| words[number * 7..][..number * 7 % 50].join(" ")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = model.embed_all(&texts).expect("embedded");
        let alone: Vec<Vec<f32>> = texts.iter().map(|text| model.embed(text).expect("embedded")).collect();
        assert_eq!(together, alone);
        let cores = std::thread::available_parallelism().expect("cores").get();
        assert_eq!(model.texts.len(), cores.min(MAX_TEXT_THREADS));
        assert!(model.batch_size() > model.texts.len() && model.embed_all(&[]).expect("none").is_empty());
    }

    #[test]
    fn a_question_is_answered_while_a_long_queue_of_texts_is_embedded() {
        let model = MiniLm::load().expect("loaded");
        let no_text_threads = || model.texts.iter().all(|pool| pool.get().is_none());
        assert!(no_text_threads() && model.questions.get().is_none(), "no thread before it is needed");
        model.embed_question("who?").expect("embedded");
        assert!(no_text_threads(), "a question needs no thread for texts");
        let text = vocabulary_words()[..MAX_INPUT_TOKENS].join(" ");
        let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let count = || done.load(Ordering::SeqCst);
        let (asked, meanwhile) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    model.embed(&text).expect("embedded");
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
            // Texts are queued when the query arrives.
            while count() == 0 {
                std::thread::yield_now();
            }
            let before = count();
            for _ in 0..QUESTIONS {
                model.embed_question("where is the cat?").expect("embedded");
            }
            let meanwhile = count() - before;
            stop.store(true, Ordering::SeqCst);
            (QUESTIONS, meanwhile)
        });
        // If questions shared the texts' thread, each question would wait for one of the texts.
        assert!(meanwhile * 2 < asked, "{meanwhile} texts were done before {asked} questions were answered");
    }
}
