//! An endpoint that speaks OpenAI's embeddings (`POST …/embeddings`): a server of the user's own, or a provider.

use crate::{Choice, Purse};
use embed::Embedder;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::StatusCode;

/// The environment's variable with the key of an endpoint that wants one.
pub const KEY: &str = "TRACEBOOK_EMBEDDINGS_KEY";
/// An answer may have this many bytes.
const LARGEST: u64 = 64 << 20;
/// A vector may have this many numbers.
const WIDEST: usize = 16_384;
/// Texts that are sent together.
const TOGETHER: usize = 16;
/// A text may have this many bytes; a model reads less.
const LONGEST: usize = 8_000;
/// About so many bytes are a token.
const BYTES: usize = 4;
/// How long an endpoint may take to be there, and to answer.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(60);
/// A busy endpoint is asked again this often, after a pause that doubles.
const AGAIN: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Endpoint {
    key: String,
    choice: Choice,
    purse: Arc<dyn Purse>,
    url: String,
    model: String,
    secret: Option<String>,
    dimensions: usize,
    unrelated: f32,
    agent: Agent,
}

impl Endpoint {
    /// Asks it once, which says whether it is there and how long its vectors are.
    pub(crate) fn ask(choice: &Choice, url: &str, model: &str, purse: Arc<dyn Purse>) -> Result<Endpoint, String> {
        let agent = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(ANSWER))
            .http_status_as_error(false)
            .build()
            .into();
        let secret = std::env::var(KEY).ok().filter(|key| !key.trim().is_empty());
        let (url, model) = (format!("{url}/embeddings"), model.to_owned());
        let (key, choice) = (choice.key(), choice.clone());
        let mut endpoint = Endpoint { key, choice, purse, url, model, secret, dimensions: 0, unrelated: 0.0, agent };
        let first = endpoint.send(&["a question"])?;
        endpoint.dimensions = first.first().map_or(0, Vec::len);
        endpoint.unrelated = embed::measure_unrelated(&endpoint)?;
        Ok(endpoint)
    }

    /// Asks for vectors, if they can be paid for.
    fn send(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let texts: Vec<&str> = texts.iter().map(|text| &text[..text.floor_char_boundary(LONGEST)]).collect();
        let about = texts.iter().map(|text| (text.len() / BYTES + 1) as u64).sum();
        self.purse.begin(&self.choice, about)?;
        let mut read = None;
        let sent = self.post(&texts, about, &mut read);
        self.purse.end(&self.choice, about, read);
        sent
    }

    /// Sends texts. `read` becomes the tokens that the endpoint has read, by its own word or else `about`, where it has
    /// answered; what it answered may be nonsense all the same.
    fn post(&self, texts: &[&str], about: u64, read: &mut Option<u64>) -> Result<Vec<Vec<f32>>, String> {
        let body = serde_json::json!({"model": self.model, "input": texts});
        let say = |why: String| format!("the endpoint of the sentence model, {}, {why}", self.url);
        let mut pause = PAUSE;
        for last in (0..=AGAIN).map(|time| time == AGAIN) {
            let mut request = self.agent.post(&self.url);
            if let Some(secret) = &self.secret {
                request = request.header("Authorization", format!("Bearer {}", secret.trim()));
            }
            let mut response = match request.send_json(&body) {
                Ok(response) => response,
                Err(error) => return Err(say(format!("cannot be reached ({error}); is it running?"))),
            };
            let status = response.status();
            if (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()) && !last {
                std::thread::sleep(pause);
                pause *= 2;
                continue;
            }
            let body = response.body_mut().with_config().limit(LARGEST);
            if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                return Err(say(format!("wants a key ({status}); set {KEY}")));
            }
            if !status.is_success() {
                let told = body.read_to_string().unwrap_or_default();
                let told: String = told.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(say(format!("answered {status}: {told}")));
            }
            *read = Some(about);
            let answer: Answer =
                body.read_json().map_err(|error| say(format!("answered what is not vectors ({error})")))?;
            *read = Some(answer.usage.as_ref().and_then(|usage| usage.prompt_tokens).unwrap_or(about));
            return self.vectors(answer, texts.len()).map_err(say);
        }
        Err(say("is busy".to_owned()))
    }

    /// The vectors in the order of the texts.
    fn vectors(&self, answer: Answer, wanted: usize) -> Result<Vec<Vec<f32>>, String> {
        let mut vectors = vec![Vec::new(); wanted];
        for (place, item) in answer.data.into_iter().enumerate() {
            let slot = vectors.get_mut(item.index.unwrap_or(place));
            let slot = slot.ok_or_else(|| "answered more vectors than were asked for".to_owned())?;
            *slot = item.embedding;
            embed::to_unit(slot);
        }
        let length = if self.dimensions == 0 { vectors.first().map_or(0, Vec::len) } else { self.dimensions };
        let fits = |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|value| value.is_finite());
        if length == 0 || length > WIDEST || !vectors.iter().all(fits) {
            return Err(format!("answered vectors that are not {length} numbers each"));
        }
        Ok(vectors)
    }
}

#[derive(serde::Deserialize)]
struct Answer {
    data: Vec<Item>,
    usage: Option<Usage>,
}

/// What the endpoint counted; some do not.
#[derive(serde::Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
}

#[derive(serde::Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Embedder for Endpoint {
    fn name(&self) -> &str {
        &self.key
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn unrelated(&self) -> f32 {
        self.unrelated
    }

    fn embed(&self, text: &str) -> Result<Vec<f32>, String> {
        Ok(self.send(&[text])?.into_iter().next().unwrap_or_default())
    }

    fn together(&self) -> usize {
        TOGETHER
    }

    fn embed_all(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        self.send(texts)
    }
}
