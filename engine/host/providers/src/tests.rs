//! Tests of providers against a server on loopback: requests, answers, and every kind of failure.

mod cassettes;
mod faults;
mod requests;
mod server;

use crate::*;
use agent::model_call::WireProtocol;
use agent::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde_json::{Value, json};
use server::{Server, events, status};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use store::{DocId, MessageId, MessageRole, SessionMessage, ToolCall};

const PLANTED: &str = "sk-planted-4f1c9d7e2b";
const WIRES: [WireProtocol; 5] = [
    WireProtocol::OpenAi,
    WireProtocol::Responses,
    WireProtocol::Anthropic,
    WireProtocol::Google,
    WireProtocol::Ollama,
];

/// Time limits for tests, shorter than for users.
fn limits() -> ProviderTimeouts {
    ProviderTimeouts { first_retry_delay: Duration::from_millis(30), ..ProviderTimeouts::default() }
}

fn endpoint(wire: WireProtocol, address: &str) -> ModelEndpoint {
    ModelEndpoint {
        provider: "mine".to_owned(),
        wire,
        base_url: Some(address.to_owned()),
        // `genai` interprets suffixes such as this one; the name must stay unchanged all the same.
        model: if wire == WireProtocol::Google { "small-model" } else { "small-model-high" }.to_owned(),
        key: Some("MY_KEY".to_owned()),
        local: true,
    }
}

fn message(role: MessageRole, content: &str) -> SessionMessage {
    SessionMessage::new(MessageId(1), role, content, 0)
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("{name} for tests"),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        risk: ToolRisk::None,
        permissions: ToolPermissions::default(),
        idempotent: true,
        source: ToolSource::BuiltIn,
    }
}

fn ask(wire: WireProtocol, address: &str) -> ModelRequest {
    ModelRequest {
        endpoint: endpoint(wire, address),
        system: "You are brief.".to_owned(),
        messages: vec![message(MessageRole::User, "Hello")],
        tools: Vec::new(),
        max_tokens: Some(100),
        temperature: Some(0.0),
        tool_choice: None,
        limits: None,
        program: None,
    }
}

fn id(number: u64) -> ModelCallId {
    ModelCallId { run: DocId([7; 16]), number }
}

fn start(providers: &ProviderClient, request: ModelRequest) -> Receiver<ModelUpdate> {
    let (tell, heard) = channel();
    providers.start_call(id(1), request, Some(PLANTED.to_owned()), move |update| {
        let _ = tell.send(update);
    });
    heard
}

/// Returns all events of one call, the end last.
fn all(heard: &Receiver<ModelUpdate>) -> Vec<ModelUpdate> {
    let mut updates = Vec::new();
    loop {
        let update = heard.recv_timeout(Duration::from_secs(60)).expect("an end");
        // No event contains the key, even in its debug output.
        assert!(!format!("{update:?}").contains("planted"), "the key is out: {update:?}");
        let end = !matches!(update, ModelUpdate::Delta(_));
        updates.push(update);
        if end {
            assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "something comes after the end");
            return updates;
        }
    }
}

fn call(request: ModelRequest) -> Vec<ModelUpdate> {
    let providers = ProviderClient::new(limits());
    all(&start(&providers, request))
}

fn answer(updates: &[ModelUpdate]) -> &ModelResponse {
    match updates.last() {
        Some(ModelUpdate::Answer(answer)) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

fn failure(updates: &[ModelUpdate]) -> &ModelError {
    match updates.last() {
        Some(ModelUpdate::Failure(failure)) => failure,
        other => panic!("no failure: {other:?}"),
    }
}

fn said(updates: &[ModelUpdate]) -> String {
    let text = |update: &ModelUpdate| {
        if let ModelUpdate::Delta(ModelDelta::Text(text)) = update { Some(text.clone()) } else { None }
    };
    updates.iter().filter_map(text).collect()
}

fn again(updates: &[ModelUpdate]) -> Vec<String> {
    let why = |update: &ModelUpdate| {
        if let ModelUpdate::Delta(ModelDelta::Retry { why }) = update { Some(why.clone()) } else { None }
    };
    updates.iter().filter_map(why).collect()
}

/// Returns a stream of these words and its end, in each wire format.
fn spoken(wire: WireProtocol, words: &[&str], whole: bool) -> String {
    let data = |value: Value| format!("data: {value}\n\n");
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().expect("a type"));
    let mut text = String::new();
    match wire {
        WireProtocol::OpenAi => {
            for word in words {
                text += &data(json!({"choices": [{"index": 0, "delta": {"content": word}}]}));
            }
            if whole {
                text += &data(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
                text += &data(json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}));
                text += "data: [DONE]\n\n";
            }
        }
        WireProtocol::Responses => {
            text += &event(json!({"type": "response.created", "response": {"id": "r"}}));
            for word in words {
                text += &event(json!({"type": "response.output_text.delta", "delta": word}));
            }
            if whole {
                let usage = json!({"input_tokens": 12, "output_tokens": 3, "total_tokens": 15});
                let response = json!({"id": "r", "status": "completed", "model": "m", "output": [], "usage": usage});
                text += &event(json!({"type": "response.completed", "response": response}));
            }
        }
        WireProtocol::Anthropic => {
            text += &event(
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 12, "output_tokens": 1}}}),
            );
            text += &event(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            );
            for word in words {
                let delta = json!({"type": "text_delta", "text": word});
                text += &event(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            if whole {
                text += &event(json!({"type": "content_block_stop", "index": 0}));
                let delta = json!({"stop_reason": "end_turn"});
                text += &event(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}));
                text += &event(json!({"type": "message_stop"}));
            }
        }
        WireProtocol::Google => {
            for word in words {
                text += &data(json!({"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}}]}));
            }
            if whole {
                let content = json!({"role": "model", "parts": [{"text": ""}]});
                let usage = json!({"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15});
                text += &data(
                    json!({"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}),
                );
            }
        }
        WireProtocol::Ollama => {
            for word in words {
                text += &format!("{}\n", json!({"message": {"role": "assistant", "content": word}, "done": false}));
            }
            if whole {
                let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
                    "prompt_eval_count": 12, "eval_count": 3});
                text += &format!("{end}\n");
            }
        }
    }
    text
}

#[test]
fn each_wire_streams_an_answer() {
    for wire in WIRES {
        let server = Server::new(vec![events(&spoken(wire, &["Good ", "day", " to you."], true))]);
        let updates = call(ask(wire, &server.address));
        let answer = answer(&updates);
        assert_eq!(said(&updates), "Good day to you.", "{wire:?}");
        assert_eq!(updates.len(), 4, "{wire:?}: {updates:?}");
        assert_eq!((answer.text.as_str(), answer.stop), ("Good day to you.", agent::model_call::ModelStopReason::Done));
        assert_eq!(answer.spent, store::CallUsage { input_tokens: 12, output_tokens: 3, cost: Some(0.0) }, "{wire:?}");
        assert!(answer.calls.is_empty() && answer.malformed.is_empty());
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn prices_are_known_free_or_unknown() {
    let at = |wire, base_url: Option<&str>, model: &str, local| ModelEndpoint {
        base_url: base_url.map(str::to_owned),
        model: model.to_owned(),
        local,
        ..endpoint(wire, "")
    };
    let near = at(WireProtocol::OpenAi, Some("http://localhost:1/v1"), "whatever", true);
    assert_eq!(model_price(&near).map(|price| (price.input, price.output)), Some((0.0, 0.0)));
    let known = [
        at(WireProtocol::Responses, None, "gpt-5-mini", false),
        at(WireProtocol::Anthropic, None, "claude-sonnet-4-5", false),
        at(WireProtocol::Google, None, "gemini-2.5-flash", false),
        at(WireProtocol::OpenAi, Some("https://openrouter.ai/api/v1"), "qwen/qwen3-coder", false),
    ];
    for endpoint in known {
        let price = model_price(&endpoint).unwrap_or_else(|| panic!("{} has no price", endpoint.model));
        assert!(price.input > 0.0 && price.output >= price.input, "{}: {price:?}", endpoint.model);
        assert!(price.output < 100.0, "a price for a million tokens: {price:?}");
    }
    let small = at(WireProtocol::OpenAi, Some("https://api.openai.com/v1"), "text-embedding-3-small", false);
    let read = input_only_price(&small).expect("a model that makes vectors");
    assert!(read.input > 0.0 && read.input < 1.0 && read.output == 0.0, "{read:?}");
    let claude = at(WireProtocol::Anthropic, None, "claude-sonnet-4-5-20250929", false);
    assert!(context_window(&claude).is_some_and(|tokens| tokens >= 100_000));
    for unknown in [
        at(WireProtocol::OpenAi, None, "no-such-model-at-all", false),
        at(WireProtocol::OpenAi, Some("https://models.example.com/v1"), "gpt-5", false),
    ] {
        assert_eq!((model_price(&unknown), context_window(&unknown)), (None, None), "{}", unknown.model);
    }
}

/// Runs a provider test, and waits for its result.
fn tested(endpoint: ModelEndpoint, limits: ProviderTimeouts) -> Result<ProviderTestReport, ModelError> {
    let (tell, heard) = channel();
    let providers = ProviderClient::new(limits);
    providers.test_provider(endpoint, Some(PLANTED.to_owned()), move |found| {
        let _ = tell.send(found);
    });
    let found = heard.recv_timeout(Duration::from_secs(60)).expect("an end");
    assert!(!format!("{found:?}").contains("planted"), "the key is out: {found:?}");
    found
}

#[test]
fn a_provider_is_tested() {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let table = [
        (
            WireProtocol::OpenAi,
            json!({"data": [{"id": "a"}, {"id": "small-model-high"}]}),
            "GET /v1/models ",
            "authorization",
        ),
        (
            WireProtocol::Anthropic,
            json!({"data": [{"id": "a"}, {"id": "small-model-high"}]}),
            "GET /v1/models?",
            "x-api-key",
        ),
        (
            WireProtocol::Google,
            json!({"models": [{"name": "models/a"}, {"name": "models/small-model"}]}),
            "GET /v1beta/models?",
            "x-goog-api-key",
        ),
        (
            WireProtocol::Ollama,
            json!({"models": [{"name": "a"}, {"name": "small-model-high:latest"}]}),
            "GET /api/tags ",
            "authorization",
        ),
    ];
    for (wire, body, line, header) in table {
        let server = Server::new(vec![status(200, "", &body.to_string())]);
        let found = tested(endpoint(wire, &server.address), limits()).expect("there");
        assert_eq!(found.models.as_ref().map(Vec::len), Some(2));
        assert_eq!(found.listed, Some(true), "{wire:?}");
        let asked = &server.asked()[0];
        assert!(asked.line.starts_with(line), "{}", asked.line);
        assert!(asked.header(header).is_some_and(|value| value.ends_with(PLANTED)), "{asked:?}");
    }
    let server = Server::new(vec![status(200, "", r#"{"data": [{"id": "b"}, {"id": 5}, {"id": "c\u0007"}]}"#)]);
    let found = tested(endpoint(WireProtocol::OpenAi, &server.address), limits()).expect("there");
    assert_eq!((found.models, found.listed), (names(&["b"]), Some(false)));
    // A provider without a list is reachable all the same.
    let server = Server::new(vec![status(404, "", "no")]);
    let found = tested(endpoint(WireProtocol::OpenAi, &server.address), limits()).expect("there");
    assert_eq!((found.models, found.listed), (None, None));
}

#[test]
fn a_provider_that_fails_its_test_says_why() {
    let wrong =
        Server::new(vec![status(401, "", &format!("{{\"error\": {{\"message\": \"Incorrect key {PLANTED}\"}}}}"))]);
    let page = Server::new(vec![status(200, "", "<html>router</html>")]);
    let silent = Server::new(vec![server::stalls("", Duration::from_secs(30))]);
    let deaf = Server::new(vec![Box::new(|_| std::thread::sleep(Duration::from_secs(30)))]);
    let huge = Server::new(vec![status(200, "", &"x".repeat(9 << 20))]);
    let table = [
        (wrong.address.as_str(), ModelErrorKind::Key, "tracebook secrets set MY_KEY"),
        (page.address.as_str(), ModelErrorKind::Malformed, "wire “openai”"),
        (silent.address.as_str(), ModelErrorKind::Unreachable, "does not answer within"),
        (deaf.address.as_str(), ModelErrorKind::Unreachable, "does not answer within"),
        (huge.address.as_str(), ModelErrorKind::Malformed, "8 MB"),
        ("http://127.0.0.1:9", ModelErrorKind::Unreachable, "nothing is listening there"),
        ("http://nowhere.invalid", ModelErrorKind::Unreachable, "its name is not known"),
        ("localhost:1", ModelErrorKind::Refused, "is no address"),
    ];
    let limits = ProviderTimeouts { provider_test: Duration::from_millis(1_000), ..limits() };
    for (address, kind, words) in table {
        // Others may have the machine for a moment, so one fast attempt is enough; what is slow is slow in each.
        let is_fast = (0..5).any(|_| {
            let began = Instant::now();
            let why = tested(endpoint(WireProtocol::OpenAi, address), limits).expect_err(address);
            assert_eq!(why.kind, kind, "{why:?}");
            assert!(why.why.contains(words), "{}", why.why);
            began.elapsed() < Duration::from_secs(5)
        });
        assert!(is_fast, "{address}");
    }
}
