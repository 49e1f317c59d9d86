//! Collects a streamed answer: text, reasoning, tool calls, each within limits. Tool calls of OpenAI's chat completions
//! are assembled here from raw frames, because `genai` allocates as many as a frame claims.

use agent::model_call::WireProtocol;
use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum size of text and reasoning in one answer, in bytes; no model writes more.
pub(crate) const MAX_RESPONSE_TEXT_BYTES: usize = 4 << 20;
/// Maximum number of tool calls in one answer; no model requests more.
pub(crate) const MAX_TOOL_CALLS: usize = 128;
/// Maximum size of one tool call's arguments, in bytes.
pub(crate) const MAX_TOOL_ARGUMENT_BYTES: usize = 1 << 20;
/// Maximum number of bytes on the wire for one answer: a few letters arrive in a frame of some hundred bytes.
const MAX_RESPONSE_WIRE_BYTES: usize = 256 << 20;

/// A tool call as received so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartialToolCall {
    index: Option<u64>,
    pub id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// Data collected from the raw frames of one answer.
#[derive(Debug)]
pub(crate) struct CollectedFrames {
    /// Tool calls; only for OpenAI's chat completions.
    pub(crate) calls: Vec<PartialToolCall>,
    /// The reason why the answer ended; only for OpenAI's chat completions and Ollama.
    pub(crate) finish_reason: Option<String>,
    /// Tokens of the request and the answer, as last counted by the server; only for OpenAI's chat completions.
    pub(crate) counted_tokens: (Option<u64>, Option<u64>),
    /// Number of frames.
    pub(crate) frame_count: u64,
    /// Whether a frame had an event. What isn't a stream of events arrives as frames without one.
    pub(crate) has_events: bool,
    /// When the last frame arrived.
    pub(crate) last_frame_at: Instant,
    /// The limit that was exceeded, if any.
    pub(crate) exceeded_limit: Option<String>,
    bytes: usize,
}

/// Collects the raw frames of one answer.
pub(crate) struct StreamCollector {
    wire: WireProtocol,
    collected: Mutex<CollectedFrames>,
}

impl StreamCollector {
    pub(crate) fn new(wire: WireProtocol) -> StreamCollector {
        let seen = CollectedFrames {
            calls: Vec::new(),
            finish_reason: None,
            counted_tokens: (None, None),
            frame_count: 0,
            has_events: false,
            last_frame_at: Instant::now(),
            exceeded_limit: None,
            bytes: 0,
        };
        StreamCollector { wire, collected: Mutex::new(seen) }
    }

    pub(crate) fn collected(&self) -> MutexGuard<'_, CollectedFrames> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for StreamCollector {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut seen = self.collected();
        seen.frame_count += 1;
        seen.has_events |= frame.event.is_some() || !frame.data.is_empty();
        seen.last_frame_at = Instant::now();
        seen.bytes = seen.bytes.saturating_add(frame.data.len());
        if seen.bytes > MAX_RESPONSE_WIRE_BYTES {
            seen.exceeded_limit = Some(format!("more than {} MB", MAX_RESPONSE_WIRE_BYTES >> 20));
        }
        let matters = ["tool_calls", "finish_reason", "usage"].iter().any(|name| frame.data.contains(name));
        if self.wire == WireProtocol::OpenAi
            && seen.exceeded_limit.is_none()
            && matters
            && let Ok(value) = serde_json::from_str::<Value>(frame.data)
        {
            seen.read_chunk(&value);
        }
        if self.wire == WireProtocol::Ollama
            && frame.data.contains("\"done\"")
            && let Ok(value) = serde_json::from_str::<Value>(frame.data)
            && value["done"] == true
        {
            // Some servers end an answer without a reason.
            seen.finish_reason = Some("stop".to_owned());
        }
    }
}

impl CollectedFrames {
    /// Reads a piece of an answer, or a whole answer that isn't streamed.
    pub(crate) fn read_chunk(&mut self, value: &Value) {
        let tokens = |name: &str| value.get("usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64);
        let (request, answer) = self.counted_tokens;
        self.counted_tokens = (tokens("prompt_tokens").or(request), tokens("completion_tokens").or(answer));
        let Some(choice) = value.get("choices").and_then(|choices| choices.get(0)) else { return };
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish_reason = Some(finish.chars().take(40).collect());
        }
        let message = choice.get("delta").or_else(|| choice.get("message"));
        let calls = message.and_then(|message| message.get("tool_calls")).and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.merge_tool_call(call);
        }
    }

    fn merge_tool_call(&mut self, call: &Value) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = call.get("function");
        let (id, name) = (text(call.get("id")), text(function.and_then(|function| function.get("name"))));
        // Some servers send the arguments as an object instead of text.
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(whole @ Value::Object(_)) => whole.to_string(),
            given => text(given),
        };
        let index = call.get("index").and_then(Value::as_u64);
        // Some servers number all calls alike: a name with another id starts a new one.
        let starts =
            |piece: &PartialToolCall| !name.is_empty() && !piece.name.is_empty() && !id.is_empty() && piece.id != id;
        let known = match index {
            // Further pieces belong to the last of them.
            Some(index) => self.calls.iter().rposition(|piece| piece.index == Some(index)),
            // Without an index, a new name starts a new call.
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let known = known.filter(|at| !self.calls.get(*at).is_some_and(starts));
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= MAX_TOOL_CALLS => {
                self.exceeded_limit = Some(format!("more than {MAX_TOOL_CALLS} tool calls"));
                return;
            }
            None => {
                self.calls.push(PartialToolCall { index, ..PartialToolCall::default() });
                self.calls.len() - 1
            }
        };
        let Some(piece) = self.calls.get_mut(at) else { return };
        if piece.id.is_empty() {
            piece.id = id;
        }
        if piece.name.is_empty() {
            piece.name = name;
        }
        piece.arguments.push_str(&arguments);
        if piece.arguments.len() > MAX_TOOL_ARGUMENT_BYTES {
            self.exceeded_limit =
                Some(format!("more than {} KB of arguments for one tool call", MAX_TOOL_ARGUMENT_BYTES >> 10));
        }
    }
}
