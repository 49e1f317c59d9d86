//! Requests to the API: version, token, ETags, redirects, retries and rate limits.

use crate::address::{ApiAddress, host_with_port, is_loopback};
use crate::answer_cache::{AnswerCache, CacheLimits, CachedAnswer};
use crate::api_error::{GitHubError, quoted};
use crate::wire::{WireAnswer, WireFault, WireRequest, agent, exchange};
use backon::{BackoffBuilder, ExponentialBuilder};
use serde::Deserialize;
use std::fs::File;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{HeaderMap, HeaderValue};
use url::Url;
use zeroize::Zeroizing;

/// Version of the API that this client speaks.
const API_VERSION: &str = "2022-11-28";
const JSON_MEDIA: &str = "application/vnd.github+json";
pub(crate) const RAW_MEDIA: &str = "application/vnd.github.raw+json";
/// Maximum size of a JSON answer in bytes.
const MAX_JSON_BYTES: u64 = 64 << 20;
const MAX_REDIRECTS: usize = 4;
/// Maximum number of retries, and the first pause. The pause doubles each time, and has a random part.
const MAX_RETRIES: usize = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(400);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(20);
/// Pause if a host asks for one and doesn't say how long, as GitHub's documentation has it.
const UNNAMED_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause that is waited for. A longer one is reported.
const MAX_PAUSE: Duration = Duration::from_secs(90);
const PAUSE_STEP: Duration = Duration::from_millis(50);

/// A token, which is never printed and is wiped from memory on drop.
pub struct ApiToken(Zeroizing<String>);

impl ApiToken {
    /// Keeps a token.
    pub fn new(text: &str) -> ApiToken {
        ApiToken(Zeroizing::new(text.trim().to_owned()))
    }
}

impl std::fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiToken(…)")
    }
}

/// Callbacks that follow and end an operation. Threads call them.
pub struct ApiControl<'a> {
    on_progress: &'a (dyn Fn(&str) + Sync),
    is_canceled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> ApiControl<'a> {
    /// `on_progress` gets a line about what happens now; `is_canceled` is asked many times a second.
    pub fn new(on_progress: &'a (dyn Fn(&str) + Sync), is_canceled: &'a (dyn Fn() -> bool + Sync)) -> ApiControl<'a> {
        ApiControl { on_progress, is_canceled }
    }

    pub(crate) fn report(&self, line: &str) {
        (self.on_progress)(line);
    }

    pub(crate) fn is_canceled(&self) -> bool {
        (self.is_canceled)()
    }

    pub(crate) fn check(&self) -> Result<(), GitHubError> {
        match self.is_canceled() {
            true => Err(GitHubError::Canceled),
            false => Ok(()),
        }
    }

    fn pause(&self, time: Duration) -> Result<(), GitHubError> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.check()?;
            std::thread::sleep(PAUSE_STEP.min(time.saturating_sub(begun.elapsed())));
        }
        self.check()
    }
}

/// A request for the API.
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: Url,
    pub(crate) media: &'static str,
    pub(crate) body: Option<Vec<u8>>,
    /// What it's about, for errors.
    pub(crate) what: &'a str,
    pub(crate) limit: u64,
    /// Where the body is written, if not to memory.
    pub(crate) file: Option<&'a File>,
}

/// What an attempt failed with.
enum AttemptFault {
    /// It won't succeed by itself.
    Final(GitHubError),
    /// It may succeed later: after this time, if the host says so.
    Transient { error: GitHubError, pause: Option<Duration> },
}

/// A client of the API with an optional token.
pub struct ApiClient {
    address: ApiAddress,
    agent: Agent,
    token: Option<ApiToken>,
    cache: Mutex<AnswerCache>,
}

impl ApiClient {
    /// Creates a client; nothing is sent.
    pub fn new(address: ApiAddress, token: Option<ApiToken>) -> ApiClient {
        let cache = Mutex::new(AnswerCache::new(CacheLimits::default()));
        ApiClient { address, agent: agent(), token, cache }
    }

    /// Returns where the API is.
    pub fn address(&self) -> &ApiAddress {
        &self.address
    }

    pub(crate) fn host(&self) -> String {
        self.address.host()
    }

    /// Uses answers that were kept by [`ApiClient::cache_bytes`].
    pub(crate) fn load_cache(&self, bytes: &[u8]) {
        *self.lock_cache() = AnswerCache::from_bytes(CacheLimits::default(), bytes);
    }

    pub(crate) fn cache_bytes(&self) -> Vec<u8> {
        self.lock_cache().to_bytes()
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, AnswerCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an address of the API. Each part becomes one segment.
    pub(crate) fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>, query: &[(&str, &str)]) -> Url {
        let mut url = self.address.url().clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(parts);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Gets JSON. An earlier answer is used if the host says that it's still right.
    pub(crate) fn get_json<T: for<'de> Deserialize<'de>>(
        &self,
        url: Url,
        what: &str,
        control: &ApiControl<'_>,
    ) -> Result<T, GitHubError> {
        let key = url.as_str().to_owned();
        let known = self.lock_cache().get(&key, now());
        let request =
            ApiRequest { method: "GET", url, media: JSON_MEDIA, body: None, what, limit: MAX_JSON_BYTES, file: None };
        let answer = self.send(request, known.as_ref().map(|known| known.etag.as_str()), control)?;
        let body = match (answer.status, known) {
            (304, Some(known)) => {
                // It counts from now on that the answer is right.
                self.lock_cache().put(CachedAnswer { time: now(), ..known.clone() });
                known.body
            }
            _ => {
                let body = String::from_utf8(answer.body).map_err(|_| self.malformed("it isn't UTF-8"))?;
                if let Some(etag) = header(&answer.headers, "etag") {
                    let answer = CachedAnswer { url: key, etag: etag.to_owned(), time: now(), body: body.clone() };
                    self.lock_cache().put(answer);
                }
                body
            }
        };
        serde_json::from_str(&body).map_err(|error| self.malformed(&format!("{what}: {error}")))
    }

    /// Sends JSON, and returns the answer's.
    pub(crate) fn send_json<T: for<'de> Deserialize<'de>>(
        &self,
        method: &'static str,
        url: Url,
        body: &serde_json::Value,
        what: &str,
        control: &ApiControl<'_>,
    ) -> Result<T, GitHubError> {
        let body = Some(body.to_string().into_bytes());
        let request = ApiRequest { method, url, media: JSON_MEDIA, body, what, limit: MAX_JSON_BYTES, file: None };
        let answer = self.send(request, None, control)?;
        serde_json::from_slice(&answer.body).map_err(|error| self.malformed(&format!("{what}: {error}")))
    }

    pub(crate) fn malformed(&self, why: &str) -> GitHubError {
        GitHubError::Malformed { host: self.host(), why: quoted(why) }
    }

    /// Sends a request, and tries again while that can help.
    pub(crate) fn send(
        &self,
        request: ApiRequest<'_>,
        etag: Option<&str>,
        control: &ApiControl<'_>,
    ) -> Result<WireAnswer, GitHubError> {
        let mut delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_RETRY_DELAY)
            .with_max_delay(MAX_RETRY_DELAY)
            .with_max_times(MAX_RETRIES)
            .with_jitter()
            .build();
        loop {
            control.check()?;
            let (error, pause) = match self.attempt(&request, etag, control) {
                Ok(answer) => return Ok(answer),
                Err(AttemptFault::Final(error)) => return Err(error),
                Err(AttemptFault::Transient { error, pause }) => (error, pause),
            };
            let Some(delay) = delays.next() else { return Err(error) };
            let pause = pause.unwrap_or(delay);
            if pause > MAX_PAUSE {
                return Err(error);
            }
            if pause > Duration::from_secs(1) {
                control.report(&format!("{} is busy; trying again in {} s", self.host(), pause.as_secs()));
            }
            control.pause(pause)?;
        }
    }

    /// Sends a request once, and follows redirects.
    fn attempt(
        &self,
        request: &ApiRequest<'_>,
        etag: Option<&str>,
        control: &ApiControl<'_>,
    ) -> Result<WireAnswer, AttemptFault> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let file = request.file.map(rewound).transpose().map_err(|error| {
                AttemptFault::Final(GitHubError::Refused(format!("The download can't be written: {error}.")))
            })?;
            let wire = WireRequest {
                method: request.method,
                url: url.clone(),
                headers: self.headers(request, &url, etag).map_err(AttemptFault::Final)?,
                body: request.body.clone(),
                limit: request.limit,
                file,
            };
            let answer = exchange(&self.agent, wire, control).map_err(|fault| self.wire_fault(fault, &url))?;
            match answer.status {
                200..=299 | 304 => return Ok(answer),
                301 | 302 | 307 | 308 => url = self.redirect(request, &url, &answer)?,
                _ => return Err(self.refusal(request, &url, &answer)),
            }
        }
        Err(AttemptFault::Final(self.malformed("it redirects without an end")))
    }

    fn headers(
        &self,
        request: &ApiRequest<'_>,
        url: &Url,
        etag: Option<&str>,
    ) -> Result<Vec<(&'static str, HeaderValue)>, GitHubError> {
        let mut headers = vec![
            ("accept", HeaderValue::from_static(request.media)),
            ("x-github-api-version", HeaderValue::from_static(API_VERSION)),
        ];
        if request.body.is_some() {
            headers.push(("content-type", HeaderValue::from_static("application/json")));
        }
        // The token and what was cached with it are for the API alone, wherever it redirects to.
        if url.origin() != self.address.url().origin() {
            return Ok(headers);
        }
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.push(("if-none-match", etag));
        }
        if let Some(ApiToken(token)) = &self.token {
            let text = Zeroizing::new(format!("Bearer {}", token.as_str()));
            let mut value = HeaderValue::from_str(&text).map_err(|_| GitHubError::Token { host: self.host() })?;
            value.set_sensitive(true);
            headers.push(("authorization", value));
        }
        Ok(headers)
    }

    fn redirect(&self, request: &ApiRequest<'_>, from: &Url, answer: &WireAnswer) -> Result<Url, AttemptFault> {
        let wrong = |why: &str| AttemptFault::Final(self.malformed(why));
        let next = header(&answer.headers, "location").and_then(|next| from.join(next).ok());
        let next = next.ok_or_else(|| wrong("a redirect without an address"))?;
        let api = self.address.url();
        let is_api = next.origin() == api.origin();
        // Another host gets nothing that is written, and http is only for tests on this device.
        let is_fit =
            is_api || request.method == "GET" && (next.scheme() == "https" || is_loopback(&next) && is_loopback(api));
        match is_fit && next.username().is_empty() && next.password().is_none() {
            true => Ok(next),
            false => Err(wrong("a redirect to a place that isn't used")),
        }
    }

    fn wire_fault(&self, fault: WireFault, url: &Url) -> AttemptFault {
        match fault {
            WireFault::Unreachable(why) => AttemptFault::Transient {
                error: GitHubError::Unreachable { host: host_with_port(url), why: quoted(&why) },
                pause: None,
            },
            WireFault::TooLarge => AttemptFault::Final(self.malformed("the answer is larger than expected")),
            WireFault::Unusable(why) => AttemptFault::Final(self.malformed(&why)),
            WireFault::Canceled => AttemptFault::Final(GitHubError::Canceled),
        }
    }

    /// Removes the token from what a careless server repeats.
    fn without_token(&self, text: &str) -> String {
        match &self.token {
            Some(ApiToken(token)) if !token.is_empty() => text.replace(token.as_str(), "…"),
            Some(_) | None => text.to_owned(),
        }
    }

    /// Interprets an answer that isn't a success, by GitHub's documentation.
    fn refusal(&self, request: &ApiRequest<'_>, url: &Url, answer: &WireAnswer) -> AttemptFault {
        let host = host_with_port(url);
        let has_token = self.token.is_some() && url.origin() == self.address.url().origin();
        let message = serde_json::from_slice::<ErrorBody>(&answer.body).map(|body| body.message).unwrap_or_default();
        let message = quoted(&self.without_token(message.trim_end_matches('.')));
        AttemptFault::Final(match answer.status {
            401 if has_token => GitHubError::Token { host },
            401 | 404 | 410 => GitHubError::NotFound { host, what: request.what.to_owned(), has_token },
            403 | 429 => return self.limit(&answer.headers, host, message, answer.status),
            409 if message.to_lowercase().contains("empty") => GitHubError::EmptyRepository,
            status @ (408 | 500..=599) => {
                return AttemptFault::Transient { error: GitHubError::Server { host, status }, pause: None };
            }
            status => GitHubError::Unexpected { host, status, message },
        })
    }

    /// Interprets a refusal that may be a rate limit.
    fn limit(&self, headers: &HeaderMap, host: String, message: String, status: u16) -> AttemptFault {
        let number = |name: &str| header(headers, name).and_then(|value| value.trim().parse::<i64>().ok());
        let is_secondary = status == 429 || message.to_lowercase().contains("secondary rate limit");
        let pause = match (number("retry-after"), number("x-ratelimit-remaining")) {
            (Some(seconds), _) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            (None, Some(0)) => {
                let (reset, has_token) = (number("x-ratelimit-reset"), self.token.is_some());
                return AttemptFault::Final(GitHubError::RateLimited { host, reset, has_token });
            }
            (None, _) if is_secondary => UNNAMED_PAUSE,
            (None, _) => return AttemptFault::Final(GitHubError::Forbidden { host, message }),
        };
        let until = now().saturating_add(i64::try_from(pause.as_secs()).unwrap_or(i64::MAX));
        AttemptFault::Transient { error: GitHubError::Pause { host, until }, pause: Some(pause) }
    }
}

/// GitHub's description of an error.
#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    message: String,
}

/// Returns a handle of a file that is empty now: what an attempt before has written isn't kept.
fn rewound(file: &File) -> std::io::Result<File> {
    use std::io::Seek;
    let mut file = file.try_clone()?;
    file.set_len(0)?;
    file.rewind()?;
    Ok(file)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the time in seconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
