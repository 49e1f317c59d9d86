//! Client for OpenAI's embeddings API (`POST …/embeddings`), on the user's own server or at a provider.

use crate::{EmbedderChoice, EmbeddingSpendGuard, EndpointError, EndpointFault, ModelLoadError};
use embed::{EmbeddingError, SentenceEmbedder};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{RootCerts, TlsConfig};

/// Environment variable with the API key of an endpoint that needs one.
pub const EMBEDDINGS_KEY_VAR: &str = "TRACEBOOK_EMBEDDINGS_KEY";
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// Maximum number of dimensions of a vector.
const MAX_VECTOR_DIMENSIONS: usize = 16_384;
/// Number of texts in one request.
const TEXTS_PER_REQUEST: usize = 16;
/// Maximum length of a text in bytes; longer texts are truncated. Models read less than this.
const MAX_TEXT_BYTES: usize = 8_000;
/// Estimated number of bytes per token.
const BYTES_PER_TOKEN: usize = 4;
/// Time limit for connecting to an endpoint.
const ENDPOINT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ENDPOINT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of retries when an endpoint is busy. The delay doubles each time.
const MAX_RETRIES: u32 = 3;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

pub(crate) struct EmbeddingEndpoint {
    key: String,
    choice: EmbedderChoice,
    spend_guard: Arc<dyn EmbeddingSpendGuard>,
    url: String,
    model: String,
    api_key: Option<String>,
    dimensions: usize,
    unrelated: f32,
    agent: Agent,
}

impl EmbeddingEndpoint {
    /// Calls the endpoint once to check that it works and to learn the dimensions of its vectors.
    pub(crate) fn connect(
        choice: &EmbedderChoice,
        url: &str,
        model: &str,
        purse: Arc<dyn EmbeddingSpendGuard>,
    ) -> Result<EmbeddingEndpoint, ModelLoadError> {
        let agent = Agent::config_builder()
            .timeout_connect(Some(ENDPOINT_CONNECT_TIMEOUT))
            .timeout_global(Some(ENDPOINT_RESPONSE_TIMEOUT))
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .http_status_as_error(false)
            .build()
            .into();
        let secret = std::env::var(EMBEDDINGS_KEY_VAR).ok().filter(|key| !key.trim().is_empty());
        let (url, model) = (format!("{url}/embeddings"), model.to_owned());
        let (key, choice) = (choice.key(), choice.clone());
        let mut endpoint = EmbeddingEndpoint {
            key,
            choice,
            spend_guard: purse,
            url,
            model,
            api_key: secret,
            dimensions: 0,
            unrelated: 0.0,
            agent,
        };
        let first = endpoint.request_vectors(&["a question"])?;
        endpoint.dimensions = first.first().map_or(0, Vec::len);
        endpoint.unrelated = embed::measure_unrelated_cosine(&endpoint)?;
        Ok(endpoint)
    }

    /// Requests the vectors of texts, if the spend guard allows it.
    fn request_vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EndpointError> {
        let texts: Vec<&str> = texts.iter().map(|text| &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]).collect();
        let about = texts.iter().map(|text| (text.len() / BYTES_PER_TOKEN + 1) as u64).sum();
        self.spend_guard.begin_call(&self.choice, about)?;
        let mut read = None;
        let sent = self.post_with_retries(&texts, about, &mut read);
        self.spend_guard.finish_call(&self.choice, about, read);
        sent.map_err(|fault| EndpointError::Call { url: self.url.clone(), fault })
    }

    /// Sends texts and retries if the endpoint is busy.
    ///
    /// Once the endpoint has answered, `read` is set to the number of tokens it reports, or to the estimate `about`.
    /// The answer itself may still be invalid.
    fn post_with_retries(
        &self,
        texts: &[&str],
        about: u64,
        read: &mut Option<u64>,
    ) -> Result<Vec<Vec<f32>>, EndpointFault> {
        let body = serde_json::json!({"model": self.model, "input": texts});
        let mut pause = FIRST_RETRY_DELAY;
        for last in (0..=MAX_RETRIES).map(|time| time == MAX_RETRIES) {
            let mut request = self.agent.post(&self.url);
            if let Some(secret) = &self.api_key {
                request = request.header("Authorization", format!("Bearer {}", secret.trim()));
            }
            let mut response = request.send_json(&body).map_err(EndpointFault::Unreachable)?;
            let status = response.status();
            if (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()) && !last {
                std::thread::sleep(pause);
                pause *= 2;
                continue;
            }
            let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES);
            if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                return Err(EndpointFault::WantsKey(status));
            }
            if !status.is_success() {
                let told = body.read_to_string().unwrap_or_default();
                let told: String = told.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(EndpointFault::Refused { status, body: told });
            }
            *read = Some(about);
            let answer: EmbeddingsResponse = body.read_json().map_err(EndpointFault::NotVectors)?;
            *read = Some(answer.usage.as_ref().and_then(|usage| usage.prompt_tokens).unwrap_or(about));
            return self.vectors_in_order(answer, texts.len());
        }
        Err(EndpointFault::Busy)
    }

    /// Returns the vectors in the order of the texts.
    fn vectors_in_order(&self, answer: EmbeddingsResponse, wanted: usize) -> Result<Vec<Vec<f32>>, EndpointFault> {
        let mut vectors = vec![Vec::new(); wanted];
        for (place, item) in answer.data.into_iter().enumerate() {
            let slot = vectors.get_mut(item.index.unwrap_or(place));
            let slot = slot.ok_or(EndpointFault::TooManyVectors)?;
            *slot = item.embedding;
            embed::normalize(slot);
        }
        let length = if self.dimensions == 0 { vectors.first().map_or(0, Vec::len) } else { self.dimensions };
        let fits = |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|value| value.is_finite());
        if length == 0 || length > MAX_VECTOR_DIMENSIONS || !vectors.iter().all(fits) {
            return Err(EndpointFault::WrongVectors { dimensions: length });
        }
        Ok(vectors)
    }
}

#[derive(serde::Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
    usage: Option<EmbeddingsUsage>,
}

/// The endpoint's token count. Some endpoints send none.
#[derive(serde::Deserialize)]
struct EmbeddingsUsage {
    prompt_tokens: Option<u64>,
}

#[derive(serde::Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl SentenceEmbedder for EmbeddingEndpoint {
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
        Ok(self.embed_all(&[text])?.into_iter().next().unwrap_or_default())
    }

    fn batch_size(&self) -> usize {
        TEXTS_PER_REQUEST
    }

    fn embed_all(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        self.request_vectors(texts).map_err(EmbeddingError::other)
    }
}
