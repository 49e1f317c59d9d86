//! Runs one model call: attempts, streamed events, the answer.

use crate::error::{self, ApiKey, ProviderError, redact_key};
use crate::event_sender::ModelEventSender;
use crate::genai_request::{self, ThoughtSignatures};
use crate::http_clients::HttpClients;
use crate::prices::{self, TokenCounts};
use crate::reasoning_tags::ReasoningTags;
use crate::stream_collector::{
    MAX_RESPONSE_TEXT_BYTES, MAX_TOOL_ARGUMENT_BYTES, MAX_TOOL_CALLS, PartialToolCall, StreamCollector,
};
use crate::{ModelUpdate, ProviderTimeouts, whole_answer};
use agent::model_call::{
    ModelCallId, ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStopReason, ToolCallChoice,
    WireProtocol,
};
use agent::router::estimate_prompt_tokens;
use futures_util::Stream;
use genai::chat::{ChatOptions, ChatStream, ChatStreamEvent, ReasoningEffort, StopReason, StreamEnd, ToolChoice};
use rand::Rng;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use store::{CallUsage, ToolCall};

/// Maximum number of attempts, including the first.
const MAX_TRIES: u32 = 3;

/// Maximum CPU time for one frame of a stream; normal frames take microseconds.
const MAX_FRAME_CPU_TIME: Duration = Duration::from_millis(1_500);

/// A model call, with everything that it needs.
pub(crate) struct ModelCallTask {
    pub(crate) id: ModelCallId,
    pub(crate) request: ModelRequest,
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) sender: Arc<ModelEventSender>,
    pub(crate) clients: Arc<HttpClients>,
    pub(crate) signatures: Arc<ThoughtSignatures>,
    pub(crate) limits: ProviderTimeouts,
}

impl ModelCallTask {
    /// Retries until there is an answer or a final error, and sends it.
    pub(crate) async fn run(self) {
        let host = genai_request::host_label(&self.request.endpoint);
        let began = Instant::now();
        let mut tried = 1;
        loop {
            let trouble = match self.attempt(&host).await {
                Ok(answer) => return self.sender.finish(ModelUpdate::Answer(answer)),
                Err(trouble) => trouble,
            };
            let came = self.sender.has_output();
            let pause = (tried < MAX_TRIES && !came)
                .then(|| retry_delay(&trouble, tried, began.elapsed(), &self.limits, &mut rand::rng()))
                .flatten();
            let why = redact_key(&trouble.why, self.api_key.as_ref());
            let Some(pause) = pause else {
                let partial = self.sender.partial_text();
                return self.sender.finish(ModelUpdate::Failure(ModelError { kind: trouble.kind, why, partial }));
            };
            tried += 1;
            let seconds = pause.as_secs_f64();
            let why = format!("{} Trying again in {seconds:.1} s ({tried} of {MAX_TRIES}).", why.trim());
            self.sender.send_delta(ModelDelta::Retry { why });
            tokio::select! {
                () = self.sender.wait_until_cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn attempt(&self, host: &str) -> Result<ModelResponse, ProviderError> {
        let endpoint = &self.request.endpoint;
        let target = genai_request::service_target(endpoint, self.api_key.as_ref().map(|key| key.0.as_str())).map_err(
            |why| {
                ProviderError::new(
                    ModelErrorKind::Refused,
                    format!("{why}. Set llm.providers.{}.base_url.", endpoint.provider),
                )
            },
        )?;
        let client = self
            .clients
            .genai_client(target.endpoint.base_url())
            .map_err(|why| ProviderError::new(ModelErrorKind::Refused, why.to_string()))?;
        let base = target.endpoint.base_url().to_owned();
        let gather = Arc::new(StreamCollector::new(endpoint.wire));
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_stream_header_timeout(self.limits.first_response_of(endpoint))
            .with_stream_read_timeout(self.limits.stream_idle)
            .with_raw_frame_sink_arc(gather.clone());
        // Tool calls of OpenAI's chat completions are assembled by the collector.
        if endpoint.wire != WireProtocol::OpenAi {
            options = options.with_capture_tool_calls(true);
        }
        if matches!(endpoint.wire, WireProtocol::OpenAi | WireProtocol::Responses) {
            // Otherwise `genai` would strip a suffix like “-high” from the model name. This setting itself is sent to
            // neither.
            options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        // `genai_client` assumes that Ollama has no key.
        if let (WireProtocol::Ollama, Some(ApiKey(key))) = (endpoint.wire, &self.api_key) {
            options = options.with_extra_headers(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        if let Some(most) = self.request.max_tokens {
            options = options.with_max_tokens(most);
        }
        if let Some(temperature) = self.request.temperature {
            options = options.with_temperature(temperature);
        }
        // Providers refuse a choice without tools.
        if let Some(choice) = self.request.tool_choice.filter(|_| !self.request.tools.is_empty()) {
            options = options.with_tool_choice(match choice {
                ToolCallChoice::Auto => ToolChoice::Auto,
                ToolCallChoice::Required => ToolChoice::Required,
                ToolCallChoice::None => ToolChoice::None,
            });
        }
        if self.clients.is_known_not_to_stream(&base) {
            return self.attempt_without_stream(host, &base).await;
        }
        let chat = genai_request::chat_request(&self.request, &self.signatures);
        let read =
            |error: &genai::Error| error::genai_error(endpoint, host, self.api_key.as_ref(), &self.limits, error);
        let stream = client.exec_chat_stream(target, chat, Some(&options));
        let stream = tokio::select! {
            () = self.sender.wait_until_cancelled() => return Err(cancelled_error()),
            stream = stream => stream,
        };
        let mut stream = stream.map_err(|error| read(&error))?.stream;
        let began = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let mut got = PartialResponse::default();
        loop {
            let event = tokio::select! {
                biased;
                () = self.sender.wait_until_cancelled() => return Err(cancelled_error()),
                event = next_event(&mut stream, &gather) => event,
                _ = tick.tick() => {
                    let (frames, last) = { let seen = gather.collected(); (seen.frame_count, seen.last_frame_at) };
                    // Bytes arrive but never form a whole frame, or the answer never ends.
                    if frames > 0 && last.elapsed() > self.limits.stream_idle {
                        return Err(error::stall_error(host, &self.limits));
                    }
                    if began.elapsed() > self.limits.whole_response {
                        return Err(error::late_error(host, &self.limits));
                    }
                    got.report_tool_calls(&self.sender, &gather);
                    continue;
                }
            };
            got.report_tool_calls(&self.sender, &gather);
            let Some(event) = event else {
                return Err(ProviderError::new(
                    ModelErrorKind::Malformed,
                    format!("{host} sends a piece without an end; the rest is left out."),
                ));
            };
            match event {
                None => break,
                Some(Err(error)) => {
                    let mut trouble = read(&error);
                    // A connection lost before any output counts as never made, so it can be retried.
                    trouble.can_retry |= trouble.kind == ModelErrorKind::Cut;
                    return Err(trouble);
                }
                Some(Ok(ChatStreamEvent::Chunk(chunk))) => got.push_text(&self.sender, chunk.content),
                Some(Ok(ChatStreamEvent::ReasoningChunk(chunk))) => {
                    got.push_delta(&self.sender, ModelDelta::Thinking(chunk.content))
                }
                Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) => {
                    let length = match &chunk.tool_call.fn_arguments {
                        Value::String(text) => text.len(),
                        whole => whole.to_string().len(),
                    };
                    // Of OpenAI's chat completions, the collector has the pieces.
                    if endpoint.wire != WireProtocol::OpenAi {
                        got.report_call_piece(&self.sender, chunk.tool_call.call_id, length as u64);
                    }
                    if length > MAX_TOOL_ARGUMENT_BYTES {
                        got.exceeded_limit = Some(format!(
                            "more than {} KB of arguments for one tool call",
                            MAX_TOOL_ARGUMENT_BYTES >> 10
                        ));
                    }
                }
                Some(Ok(ChatStreamEvent::End(end))) => {
                    got.end = Some(end);
                    break;
                }
                Some(Ok(
                    ChatStreamEvent::Start | ChatStreamEvent::ThoughtSignatureChunk(_) | ChatStreamEvent::Heartbeat,
                )) => {}
            }
            let over = gather.collected().exceeded_limit.take();
            if let Some(over) = got.exceeded_limit.take().or(over) {
                return Err(error::excess_error(host, &over));
            }
        }
        got.push_held_text(&self.sender);
        let is_no_stream = {
            let seen = gather.collected();
            seen.frame_count > 0 && !seen.has_events
        };
        if is_no_stream && endpoint.wire == WireProtocol::OpenAi {
            let why = format!("{host} doesn't stream its answers. Asking for a whole one; both are counted.");
            self.sender.send_delta(ModelDelta::Retry { why });
            let mut answer = self.attempt_without_stream(host, &base).await?;
            self.clients.remember_not_to_stream(base);
            // The server has made an answer that nobody has read. It says of this one only what it took.
            let CallUsage { input_tokens, output_tokens, cost } = answer.spent;
            let twice = |tokens: u64| tokens.saturating_mul(2);
            answer.spent = CallUsage {
                input_tokens: twice(input_tokens),
                output_tokens: twice(output_tokens),
                cost: cost.map(|cost| cost * 2.0),
            };
            return Ok(answer);
        }
        self.build_response(host, got, &gather)
    }

    /// Asks for a whole answer, of a server that sends none in pieces.
    async fn attempt_without_stream(&self, host: &str, base: &str) -> Result<ModelResponse, ProviderError> {
        let endpoint = &self.request.endpoint;
        let client = self
            .clients
            .http_client(base)
            .map_err(|why| ProviderError::new(ModelErrorKind::Refused, why.to_string()))?;
        let chat = genai_request::chat_request(&self.request, &self.signatures);
        let request = whole_answer::request_body(&self.request, chat);
        let about = (endpoint, host, self.api_key.as_ref());
        let answer = whole_answer::fetch(&client, base, about, &self.limits, &request);
        let answer = tokio::select! {
            () = self.sender.wait_until_cancelled() => return Err(cancelled_error()),
            answer = tokio::time::timeout(self.limits.whole_response, answer) => answer,
        };
        let body = answer.map_err(|_| error::late_error(host, &self.limits))??;
        if let Some(failure) = body.get("error").filter(|failure| !failure.is_null()) {
            return Err(error::stream_error(endpoint, host, self.api_key.as_ref(), failure));
        }
        let gather = StreamCollector::new(endpoint.wire);
        gather.collected().read_chunk(&body);
        let mut got = PartialResponse { end: Some(StreamEnd::default()), ..PartialResponse::default() };
        let message = body.pointer("/choices/0/message");
        let text = |name: &str| message.and_then(|message| message.get(name)?.as_str()).filter(|text| !text.is_empty());
        if let Some(thinking) = text("reasoning_content").or_else(|| text("reasoning")) {
            got.push_delta(&self.sender, ModelDelta::Thinking(thinking.to_owned()));
        }
        if let Some(content) = text("content") {
            got.push_text(&self.sender, content.to_owned());
            got.push_held_text(&self.sender);
        }
        got.report_tool_calls(&self.sender, &gather);
        let over = gather.collected().exceeded_limit.take();
        if let Some(over) = got.exceeded_limit.take().or(over) {
            return Err(error::excess_error(host, &over));
        }
        self.build_response(host, got, &gather)
    }

    /// Builds the answer from a finished stream.
    fn build_response(
        &self,
        host: &str,
        got: PartialResponse,
        gather: &StreamCollector,
    ) -> Result<ModelResponse, ProviderError> {
        let wire = self.request.endpoint.wire;
        let (pieces, finish, frames, counted) = {
            let mut seen = gather.collected();
            (std::mem::take(&mut seen.calls), seen.finish_reason.take(), seen.frame_count, seen.counted_tokens)
        };
        let nothing = got.text.is_empty() && got.thinking.is_empty() && pieces.is_empty();
        // Some servers end an answer without a reason.
        let is_empty = nothing && got.end.as_ref().is_none_or(|end| end.captured_content.is_none());
        let has_end = matches!(wire, WireProtocol::OpenAi | WireProtocol::Anthropic) && got.end.is_some();
        let is_ended = has_end && !is_empty;
        let mut end = got.end.unwrap_or_default();
        let reason = end.captured_stop_reason.take().or(finish.map(StopReason::from));
        let reason = reason.or_else(|| is_ended.then(|| StopReason::Completed("stop".to_owned())));
        if reason.is_none() {
            if nothing && frames == 0 {
                let why = format!(
                    "{host} answers, but with no stream of this kind. Is its wire “{}”?",
                    error::wire_name(wire)
                );
                return Err(ProviderError::new(ModelErrorKind::Malformed, why));
            }
            let why =
                format!("{host} stopped in the middle of its answer. Ask again, or continue from the partial answer.");
            return Err(ProviderError { can_retry: nothing, ..ProviderError::new(ModelErrorKind::Cut, why) });
        }
        let (calls, malformed) = self.collect_tool_calls(&end, pieces)?;
        if let Some(StopReason::ContentFilter(_)) = reason
            && got.text.is_empty()
            && calls.is_empty()
        {
            let why = format!("{host} does not answer this: its filter of contents stopped it.");
            return Err(ProviderError::new(ModelErrorKind::Refused, why));
        }
        let spent = self.count_spending((&end, counted), &got.text, &got.thinking, &calls);
        let stop = if matches!(reason, Some(StopReason::MaxTokens(_))) {
            ModelStopReason::Length
        } else {
            ModelStopReason::Done
        };
        Ok(ModelResponse { text: got.text, thinking: got.thinking, calls, malformed, spent, stop })
    }

    /// Collects the tool calls, with ids that are unique in the session and valid for every provider.
    #[allow(clippy::type_complexity, reason = "two lists that belong together")]
    fn collect_tool_calls(
        &self,
        end: &StreamEnd,
        pieces: Vec<PartialToolCall>,
    ) -> Result<(Vec<ToolCall>, Vec<(String, String)>), ProviderError> {
        let mut raw: Vec<(String, String, Value, Option<Vec<String>>)> =
            pieces.into_iter().map(|piece| (piece.id, piece.name, Value::String(piece.arguments), None)).collect();
        for call in end.captured_tool_calls().unwrap_or_default() {
            raw.push((
                call.call_id.clone(),
                call.fn_name.clone(),
                call.fn_arguments.clone(),
                call.thought_signatures.clone(),
            ));
        }
        raw.truncate(MAX_TOOL_CALLS);
        let before = self.request.messages.iter().flat_map(|message| &message.tool_calls);
        let mut taken: HashSet<String> = before.map(|call| call.id.clone()).collect();
        let (mut calls, mut malformed) = (Vec::new(), Vec::new());
        for (at, (mut id, name, arguments, signatures)) in raw.into_iter().enumerate() {
            let name: String = name.chars().take(200).collect();
            let arguments = match arguments {
                // Tools without parameters are often called without arguments.
                Value::Null => Ok(Map::new()),
                Value::Object(map) => Ok(map),
                Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
                Value::String(text) => match serde_json::from_str::<Value>(&text) {
                    Ok(Value::Object(map)) => Ok(map),
                    Ok(Value::Null) => Ok(Map::new()),
                    Ok(_) | Err(_) => Err(text),
                },
                other => Err(other.to_string()),
            };
            let arguments = match arguments {
                Ok(arguments) => arguments,
                Err(mut text) => {
                    text.truncate(text.floor_char_boundary(MAX_TOOL_ARGUMENT_BYTES));
                    malformed.push((name, text));
                    continue;
                }
            };
            let mut next = at;
            while !genai_request::is_valid_call_id(&id) || taken.contains(&id) {
                id = format!("call_{}_{next}", self.id.number);
                next += MAX_TOOL_CALLS;
            }
            taken.insert(id.clone());
            if self.request.endpoint.wire == WireProtocol::Google
                && let Some(signatures) = signatures
            {
                self.signatures.remember(&id, signatures);
            }
            calls.push(ToolCall { id, name, arguments });
        }
        Ok((calls, malformed))
    }

    /// Returns the tokens as the provider counted them; estimates them otherwise, so that cost limits hold.
    fn count_spending(
        &self,
        (end, counted): (&StreamEnd, (Option<u64>, Option<u64>)),
        text: &str,
        thinking: &str,
        calls: &[ToolCall],
    ) -> CallUsage {
        let positive =
            |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        let usage = end.captured_usage.as_ref();
        let read = || {
            let said = self.request.messages.iter().map(|message| {
                let asked = |call: &ToolCall| {
                    estimate_prompt_tokens(&call.name)
                        + estimate_prompt_tokens(&Value::Object(call.arguments.clone()).to_string())
                };
                estimate_prompt_tokens(&message.content) + message.tool_calls.iter().map(asked).sum::<u64>()
            });
            let offered = self.request.tools.iter().map(|tool| {
                estimate_prompt_tokens(&tool.description) + estimate_prompt_tokens(&tool.parameters.to_string())
            });
            estimate_prompt_tokens(&self.request.system) + said.sum::<u64>() + offered.sum::<u64>()
        };
        let written = || {
            let asked =
                calls.iter().map(|call| estimate_prompt_tokens(&Value::Object(call.arguments.clone()).to_string()));
            estimate_prompt_tokens(text) + estimate_prompt_tokens(thinking) + asked.sum::<u64>()
        };
        let details = usage.and_then(|usage| usage.prompt_tokens_details.as_ref());
        // `genai` reads only some of the places where servers put the counts.
        let (request, answer) = counted;
        let or_counted = |count: Option<i32>, other: Option<u64>| positive(count).or(other.filter(|count| *count > 0));
        let counted = TokenCounts {
            input: or_counted(usage.and_then(|usage| usage.prompt_tokens), request).unwrap_or_else(read),
            cache_read: positive(details.and_then(|details| details.cached_tokens)).unwrap_or(0),
            cache_written: positive(details.and_then(|details| details.cache_creation_tokens)).unwrap_or(0),
            output: or_counted(usage.and_then(|usage| usage.completion_tokens), answer).unwrap_or_else(written),
        };
        let cost = prices::token_cost(&self.request.endpoint, counted);
        CallUsage { input_tokens: counted.input, output_tokens: counted.output, cost }
    }
}

/// Returns the next event; `None` if a frame takes too much CPU time to assemble. `genai_client` copies the whole frame
/// with each packet, and has no limit of its own.
async fn next_event(
    stream: &mut ChatStream,
    gather: &StreamCollector,
) -> Option<Option<genai::Result<ChatStreamEvent>>> {
    let (mut busy, mut frames) = (Duration::ZERO, gather.collected().frame_count);
    std::future::poll_fn(|context| {
        if busy > MAX_FRAME_CPU_TIME {
            return Poll::Ready(None);
        }
        let began = Instant::now();
        let polled = Pin::new(&mut *stream).poll_next(context);
        busy += began.elapsed();
        let seen = gather.collected().frame_count;
        if seen != frames {
            (busy, frames) = (Duration::ZERO, seen);
        }
        polled.map(Some)
    })
    .await
}

/// The partial answer of one attempt.
#[derive(Default)]
struct PartialResponse {
    text: String,
    thinking: String,
    tags: ReasoningTags,
    end: Option<StreamEnd>,
    exceeded_limit: Option<String>,
    /// Bytes of the collector's tool calls that were reported.
    reported_call_bytes: u64,
    /// Bytes of arguments of each tool call that `genai` has assembled so far.
    call_sizes: BTreeMap<String, u64>,
}

impl PartialResponse {
    /// Reports what has arrived of tool calls since the last report: it's billed even if the answer breaks off, and
    /// shows that the model is at work.
    fn report_tool_calls(&mut self, line: &ModelEventSender, gather: &StreamCollector) {
        let all =
            gather.collected().calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>() as u64;
        let bytes = all.saturating_sub(self.reported_call_bytes);
        if bytes > 0 {
            self.reported_call_bytes = all;
            line.send_delta(ModelDelta::ToolCall { bytes });
        }
    }

    /// Reports a piece of a tool call, which comes with all that was sent of the call before.
    fn report_call_piece(&mut self, line: &ModelEventSender, id: String, length: u64) {
        let before = self.call_sizes.insert(id, length).unwrap_or_default();
        line.send_delta(ModelDelta::ToolCall { bytes: length.saturating_sub(before) });
    }

    /// Adds a piece of the answer's text, in which there may be reasoning.
    fn push_text(&mut self, line: &ModelEventSender, piece: String) {
        for delta in self.tags.split(piece) {
            self.push_delta(line, delta);
        }
    }

    /// Adds what may have been the start of a tag when the text has ended.
    fn push_held_text(&mut self, line: &ModelEventSender) {
        if let Some(delta) = self.tags.finish() {
            self.push_delta(line, delta);
        }
    }

    fn push_delta(&mut self, line: &ModelEventSender, delta: ModelDelta) {
        match &delta {
            ModelDelta::Text(text) => self.text.push_str(text),
            ModelDelta::Thinking(text) => self.thinking.push_str(text),
            ModelDelta::ToolCall { .. } | ModelDelta::Retry { .. } => {}
        }
        line.send_delta(delta);
        if self.text.len() + self.thinking.len() > MAX_RESPONSE_TEXT_BYTES {
            self.exceeded_limit = Some(format!("more than {} MB", MAX_RESPONSE_TEXT_BYTES >> 20));
        }
    }
}

fn cancelled_error() -> ProviderError {
    ProviderError { can_retry: false, ..ProviderError::new(ModelErrorKind::Cancelled, "You stopped it.") }
}

/// Returns the delay before the next attempt; `None` if there's none. A provider's request to wait is respected if time
/// permits.
fn retry_delay(
    trouble: &ProviderError,
    tried: u32,
    gone: Duration,
    limits: &ProviderTimeouts,
    rng: &mut impl Rng,
) -> Option<Duration> {
    if !trouble.can_retry {
        return None;
    }
    let spread = rng.random_range(0.5..1.5);
    let own = limits.first_retry_delay.mul_f64(3_f64.powi(i32::try_from(tried).unwrap_or(1) - 1) * spread);
    let pause = trouble.retry_after.map_or(own, |wait| wait.max(Duration::from_millis(100)));
    let patience =
        if trouble.kind == ModelErrorKind::Unreachable { limits.unreachable_retry_window } else { limits.retry_window };
    (gone + pause <= patience).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_vary_and_end() {
        let mut rng = rand::rng();
        let limits = ProviderTimeouts::default();
        let server = ProviderError::new(ModelErrorKind::Server, "");
        for _ in 0..200 {
            let first = retry_delay(&server, 1, Duration::ZERO, &limits, &mut rng).expect("one more");
            let second = retry_delay(&server, 2, first, &limits, &mut rng).expect("one more");
            assert!((0.3..1.1).contains(&first.as_secs_f64()), "{first:?}");
            assert!((1.0..3.2).contains(&second.as_secs_f64()), "{second:?}");
        }
        assert_eq!(retry_delay(&server, 2, Duration::from_secs(20), &limits, &mut rng), None, "no time is left");
        let asked = |seconds| ProviderError {
            retry_after: Some(Duration::from_secs(seconds)),
            ..ProviderError::new(ModelErrorKind::RateLimited, "")
        };
        assert_eq!(retry_delay(&asked(7), 1, Duration::ZERO, &limits, &mut rng), Some(Duration::from_secs(7)));
        assert_eq!(retry_delay(&asked(60), 1, Duration::ZERO, &limits, &mut rng), None, "nobody waits for a minute");
        let refused = ProviderError::new(ModelErrorKind::Refused, "");
        assert_eq!(retry_delay(&refused, 1, Duration::ZERO, &limits, &mut rng), None);
        let gone = ProviderError::new(ModelErrorKind::Unreachable, "");
        assert_eq!(retry_delay(&gone, 1, Duration::from_secs(2), &limits, &mut rng), None, "within five seconds");
        assert!(limits.unreachable_retry_window + limits.connect < Duration::from_secs(5));
    }
}
