//! One call of a model: tries, what comes on the way, the answer.

use crate::clients::Clients;
use crate::gather::{Gather, MOST_ARGUMENTS, MOST_CALLS, MOST_TEXT, Piece};
use crate::line::Line;
use crate::prices::{self, Counted};
use crate::trouble::{self, Key, Trouble, scrub};
use crate::wire::{self, Signatures};
use crate::{Limits, Update};
use agent::model_call::{
    ModelCallId, ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStopReason, WireProtocol,
};
use agent::router::estimate_prompt_tokens;
use futures_util::Stream;
use genai::chat::{ChatOptions, ChatStream, ChatStreamEvent, ReasoningEffort, StopReason, StreamEnd};
use rand::Rng;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use store::{Spent, ToolCall};

/// So many tries, the first with them.
const TRIES: u32 = 3;

/// So much time of the processor is spent on one frame of a stream; ordinary ones take microseconds.
const BUSY: Duration = Duration::from_millis(1_500);

/// What a call needs.
pub(crate) struct Call {
    pub(crate) id: ModelCallId,
    pub(crate) request: ModelRequest,
    pub(crate) key: Option<Key>,
    pub(crate) line: Arc<Line>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) signatures: Arc<Signatures>,
    pub(crate) limits: Limits,
}

impl Call {
    /// Tries until there is an answer or no hope, and says which.
    pub(crate) async fn run(self) {
        let host = wire::host(&self.request.endpoint);
        let began = Instant::now();
        let mut tried = 1;
        loop {
            let trouble = match self.attempt(&host).await {
                Ok(answer) => return self.line.end(Update::Answer(answer)),
                Err(trouble) => trouble,
            };
            let came = self.line.came();
            let pause = (tried < TRIES && !came)
                .then(|| pause(&trouble, tried, began.elapsed(), &self.limits, &mut rand::rng()))
                .flatten();
            let why = scrub(&trouble.why, self.key.as_ref());
            let Some(pause) = pause else {
                let partial = self.line.partial();
                return self.line.end(Update::Failure(ModelError { kind: trouble.kind, why, partial }));
            };
            tried += 1;
            let seconds = pause.as_secs_f64();
            let why = format!("{} Trying again in {seconds:.1} s ({tried} of {TRIES}).", why.trim());
            self.line.delta(ModelDelta::Retry { why });
            tokio::select! {
                () = self.line.stopped() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn attempt(&self, host: &str) -> Result<ModelResponse, Trouble> {
        let endpoint = &self.request.endpoint;
        let target = wire::target(endpoint, self.key.as_ref().map(|key| key.0.as_str())).map_err(|why| {
            Trouble::new(ModelErrorKind::Refused, format!("{why}. Set llm.providers.{}.base_url.", endpoint.provider))
        })?;
        let client =
            self.clients.genai(target.endpoint.base_url()).map_err(|why| Trouble::new(ModelErrorKind::Refused, why))?;
        let gather = Arc::new(Gather::new(endpoint.wire));
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_stream_header_timeout(if endpoint.local { self.limits.first_local } else { self.limits.first })
            .with_stream_read_timeout(self.limits.silent)
            .with_raw_frame_sink_arc(gather.clone());
        // Those of OpenAI's chat completions are put together by the gatherer.
        if endpoint.wire != WireProtocol::OpenAi {
            options = options.with_capture_tool_calls(true);
        }
        if matches!(endpoint.wire, WireProtocol::OpenAi | WireProtocol::Responses) {
            // A model whose name ends in “-high” or the like would otherwise lose it: a budget is sent to neither.
            options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        // `genai` takes it that an Ollama has no key.
        if let (WireProtocol::Ollama, Some(Key(key))) = (endpoint.wire, &self.key) {
            options = options.with_extra_headers(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        if let Some(most) = self.request.max_tokens {
            options = options.with_max_tokens(most);
        }
        if let Some(temperature) = self.request.temperature {
            options = options.with_temperature(temperature);
        }
        let chat = wire::chat(&self.request, &self.signatures);
        let read = |error: &genai::Error| trouble::read(endpoint, host, self.key.as_ref(), error);
        let stream = client.exec_chat_stream(target, chat, Some(&options));
        let stream = tokio::select! {
            () = self.line.stopped() => return Err(stopped()),
            stream = stream => stream,
        };
        let mut stream = stream.map_err(|error| read(&error))?.stream;
        let began = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let mut got = Got::default();
        loop {
            let event = tokio::select! {
                biased;
                () = self.line.stopped() => return Err(stopped()),
                event = next(&mut stream, &gather) => event,
                _ = tick.tick() => {
                    let (frames, last) = { let seen = gather.seen(); (seen.frames, seen.last) };
                    // Bytes come and never make a whole frame, or the answer never ends.
                    let stuck = frames > 0 && last.elapsed() > self.limits.silent;
                    if stuck || began.elapsed() > self.limits.whole {
                        let why = format!("{host} does not come to an end. Ask again, or go on from what came.");
                        return Err(Trouble::new(ModelErrorKind::Cut, why));
                    }
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(Trouble::new(
                    ModelErrorKind::Malformed,
                    format!("{host} sends a piece without an end; the rest is left out."),
                ));
            };
            match event {
                None => break,
                Some(Err(error)) => {
                    let mut trouble = read(&error);
                    // A connection that was lost before anything came is as good as none.
                    trouble.again |= trouble.kind == ModelErrorKind::Cut;
                    return Err(trouble);
                }
                Some(Ok(ChatStreamEvent::Chunk(chunk))) => got.text(&self.line, ModelDelta::Text(chunk.content)),
                Some(Ok(ChatStreamEvent::ReasoningChunk(chunk))) => {
                    got.text(&self.line, ModelDelta::Thinking(chunk.content))
                }
                Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) => {
                    let long = chunk.tool_call.fn_arguments.as_str().is_some_and(|text| text.len() > MOST_ARGUMENTS);
                    if long {
                        got.over =
                            Some(format!("more than {} KB of arguments for one tool call", MOST_ARGUMENTS >> 10));
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
            let over = gather.seen().over.take();
            if let Some(over) = got.over.take().or(over) {
                return Err(Trouble::new(
                    ModelErrorKind::Malformed,
                    format!("{host} sends {over}; the rest is left out."),
                ));
            }
        }
        self.answer(host, got, &gather)
    }

    /// The answer that a finished stream makes.
    fn answer(&self, host: &str, got: Got, gather: &Gather) -> Result<ModelResponse, Trouble> {
        let wire = self.request.endpoint.wire;
        let (pieces, finish, frames) = {
            let mut seen = gather.seen();
            (std::mem::take(&mut seen.calls), seen.finish.take(), seen.frames)
        };
        let mut end = got.end.unwrap_or_default();
        let reason = end.captured_stop_reason.take().or(finish.map(StopReason::from));
        if reason.is_none() {
            let nothing = got.text.is_empty() && got.thinking.is_empty() && pieces.is_empty();
            if nothing && frames == 0 {
                let why =
                    format!("{host} answers, but with no stream of this kind. Is its wire “{}”?", trouble::word(wire));
                return Err(Trouble::new(ModelErrorKind::Malformed, why));
            }
            let why = format!("{host} broke off in the middle. Ask again, or go on from what came.");
            return Err(Trouble { again: nothing, ..Trouble::new(ModelErrorKind::Cut, why) });
        }
        let (calls, malformed) = self.calls(&end, pieces)?;
        if let Some(StopReason::ContentFilter(_)) = reason
            && got.text.is_empty()
            && calls.is_empty()
        {
            let why = format!("{host} does not answer this: its filter of contents stopped it.");
            return Err(Trouble::new(ModelErrorKind::Refused, why));
        }
        let spent = self.spent(&end, &got.text, &got.thinking, &calls);
        let stop = if matches!(reason, Some(StopReason::MaxTokens(_))) {
            ModelStopReason::Length
        } else {
            ModelStopReason::Done
        };
        Ok(ModelResponse { text: got.text, thinking: got.thinking, calls, malformed, spent, stop })
    }

    /// Tool calls as they came, with ids that are unique in the session and fit for every provider.
    #[allow(clippy::type_complexity, reason = "two lists that belong together")]
    fn calls(&self, end: &StreamEnd, pieces: Vec<Piece>) -> Result<(Vec<ToolCall>, Vec<(String, String)>), Trouble> {
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
        raw.truncate(MOST_CALLS);
        let before = self.request.messages.iter().flat_map(|message| &message.tool_calls);
        let mut taken: HashSet<String> = before.map(|call| call.id.clone()).collect();
        let (mut calls, mut malformed) = (Vec::new(), Vec::new());
        for (at, (mut id, name, arguments, signatures)) in raw.into_iter().enumerate() {
            let name: String = name.chars().take(200).collect();
            let arguments = match arguments {
                // Tools that take nothing are often called with nothing.
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
                    text.truncate(text.floor_char_boundary(MOST_ARGUMENTS));
                    malformed.push((name, text));
                    continue;
                }
            };
            let mut next = at;
            while !wire::fit(&id) || taken.contains(&id) {
                id = format!("call_{}_{next}", self.id.number);
                next += MOST_CALLS;
            }
            taken.insert(id.clone());
            if self.request.endpoint.wire == WireProtocol::Google
                && let Some(signatures) = signatures
            {
                self.signatures.keep(&id, signatures);
            }
            calls.push(ToolCall { id, name, arguments });
        }
        Ok((calls, malformed))
    }

    /// Tokens as the provider counted them, else estimated so that limits of cost hold.
    fn spent(&self, end: &StreamEnd, text: &str, thinking: &str, calls: &[ToolCall]) -> Spent {
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
        let counted = Counted {
            input: positive(usage.and_then(|usage| usage.prompt_tokens)).unwrap_or_else(read),
            cached: positive(details.and_then(|details| details.cached_tokens)).unwrap_or(0),
            kept: positive(details.and_then(|details| details.cache_creation_tokens)).unwrap_or(0),
            output: positive(usage.and_then(|usage| usage.completion_tokens)).unwrap_or_else(written),
        };
        let cost = prices::cost(&self.request.endpoint, counted);
        Spent { input_tokens: counted.input, output_tokens: counted.output, cost }
    }
}

/// The next event; `None`: a frame is so long that putting it together takes all the time there is. `genai` copies
/// all that came of a frame with each packet, and has no limit of its own.
async fn next(stream: &mut ChatStream, gather: &Gather) -> Option<Option<genai::Result<ChatStreamEvent>>> {
    let (mut busy, mut frames) = (Duration::ZERO, gather.seen().frames);
    std::future::poll_fn(|context| {
        if busy > BUSY {
            return Poll::Ready(None);
        }
        let began = Instant::now();
        let polled = Pin::new(&mut *stream).poll_next(context);
        busy += began.elapsed();
        let seen = gather.seen().frames;
        if seen != frames {
            (busy, frames) = (Duration::ZERO, seen);
        }
        polled.map(Some)
    })
    .await
}

/// What has come of one try.
#[derive(Default)]
struct Got {
    text: String,
    thinking: String,
    end: Option<StreamEnd>,
    over: Option<String>,
}

impl Got {
    fn text(&mut self, line: &Line, delta: ModelDelta) {
        match &delta {
            ModelDelta::Text(text) => self.text.push_str(text),
            ModelDelta::Thinking(text) => self.thinking.push_str(text),
            ModelDelta::Retry { .. } => {}
        }
        line.delta(delta);
        if self.text.len() + self.thinking.len() > MOST_TEXT {
            self.over = Some(format!("more than {} MB", MOST_TEXT >> 20));
        }
    }
}

fn stopped() -> Trouble {
    Trouble { again: false, ..Trouble::new(ModelErrorKind::Cancelled, "You stopped it.") }
}

/// How long to wait before the next try; `None`: there is none. Who asks for patience is heard, if there is time.
fn pause(trouble: &Trouble, tried: u32, gone: Duration, limits: &Limits, rng: &mut impl Rng) -> Option<Duration> {
    if !trouble.again {
        return None;
    }
    let spread = rng.random_range(0.5..1.5);
    let own = limits.pause.mul_f64(3_f64.powi(i32::try_from(tried).unwrap_or(1) - 1) * spread);
    let pause = trouble.wait.map_or(own, |wait| wait.max(Duration::from_millis(100)));
    let patience = if trouble.kind == ModelErrorKind::Unreachable { limits.unreachable } else { limits.tries };
    (gone + pause <= patience).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_vary_and_end() {
        let mut rng = rand::rng();
        let limits = Limits::default();
        let server = Trouble::new(ModelErrorKind::Server, "");
        for _ in 0..200 {
            let first = pause(&server, 1, Duration::ZERO, &limits, &mut rng).expect("one more");
            let second = pause(&server, 2, first, &limits, &mut rng).expect("one more");
            assert!((0.3..1.1).contains(&first.as_secs_f64()), "{first:?}");
            assert!((1.0..3.2).contains(&second.as_secs_f64()), "{second:?}");
        }
        assert_eq!(pause(&server, 2, Duration::from_secs(20), &limits, &mut rng), None, "no time is left");
        let asked = |seconds| Trouble {
            wait: Some(Duration::from_secs(seconds)),
            ..Trouble::new(ModelErrorKind::RateLimited, "")
        };
        assert_eq!(pause(&asked(7), 1, Duration::ZERO, &limits, &mut rng), Some(Duration::from_secs(7)));
        assert_eq!(pause(&asked(60), 1, Duration::ZERO, &limits, &mut rng), None, "nobody waits for a minute");
        let refused = Trouble::new(ModelErrorKind::Refused, "");
        assert_eq!(pause(&refused, 1, Duration::ZERO, &limits, &mut rng), None);
        let gone = Trouble::new(ModelErrorKind::Unreachable, "");
        assert_eq!(pause(&gone, 1, Duration::from_secs(2), &limits, &mut rng), None, "within five seconds");
        assert!(limits.unreachable + limits.connect < Duration::from_secs(5));
    }
}
