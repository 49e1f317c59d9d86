//! Tests of requests and parsed tool calls for each API.

use super::*;

/// Returns a conversation with every case: tool calls and results, a call without a result, a result without its call,
/// system messages in between.
fn conversation() -> Vec<SessionMessage> {
    let asks = |id: &str, name: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: json!({"path": "a.md"}).as_object().cloned().expect("an object"),
    };
    let mut asked = message(MessageRole::Assistant, "I look.");
    asked.tool_calls = vec![asks("c1", "read_file"), asks("c2", "list files!"), asks("c3", "search")];
    let result = |id: &str, name: &str, content: &str, error: Option<&str>| {
        let mut result = message(MessageRole::Tool, content);
        (result.tool_call_id, result.tool_name) = (Some(id.to_owned()), Some(name.to_owned()));
        result.error = error.map(str::to_owned);
        result
    };
    vec![
        message(MessageRole::System, "Answer in English."),
        message(MessageRole::User, "What is in a.md?"),
        message(MessageRole::User, "And be quick."),
        asked,
        result("c2", "list files!", "", Some("no such folder")),
        result("c1", "read_file", "It says 42.", None),
        result("gone", "shell", "late", None),
        message(MessageRole::System, "Two todos are left."),
        message(MessageRole::Assistant, ""),
        message(MessageRole::User, "Well?"),
    ]
}

fn sent(wire: WireProtocol) -> (String, Value, Vec<(String, String)>) {
    let server = Server::new(vec![events(&spoken(wire, &["42"], true))]);
    let request =
        ModelRequest { messages: conversation(), tools: vec![tool("read_file")], ..ask(wire, &server.address) };
    answer(&call(request));
    let asked = server.asked().remove(0);
    (asked.line.clone(), serde_json::from_str(&asked.body).expect("JSON"), asked.headers)
}

#[test]
fn chat_completions_are_sent() {
    let (line, body, headers) = sent(WireProtocol::OpenAi);
    assert_eq!(line, "POST /v1/chat/completions HTTP/1.1");
    assert!(headers.contains(&("authorization".to_owned(), format!("Bearer {PLANTED}"))));
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("small-model-high"), &json!(true)),
        "the name stays as it is"
    );
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.0), &json!(100)));
    assert_eq!(body.get("reasoning_effort"), None);
    let roles: Vec<&str> =
        body["messages"].as_array().expect("a list").iter().filter_map(|one| one["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "tool", "user"]);
    let at = |index: usize| &body["messages"][index];
    assert_eq!(at(0)["content"], "You are brief.\n\nAnswer in English.");
    assert_eq!(at(1)["content"], "What is in a.md?\n\nAnd be quick.");
    assert_eq!(at(2)["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a.md\"}");
    assert_eq!(at(2)["tool_calls"][1]["function"]["name"], "list_files_");
    let results: Vec<(&str, &str)> = (3..6)
        .map(|index| (at(index)["tool_call_id"].as_str().unwrap_or(""), at(index)["content"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(
        results,
        [("c1", "It says 42."), ("c2", "Error: no such folder"), ("c3", "There is no result: it was interrupted."),]
    );
    let last = at(6)["content"].as_str().expect("text");
    assert_eq!(
        last,
        "Quoted from the result of shell:\n```\nlate\n```\n\n(From the program:) Two todos are left.\n\nWell?"
    );
    let function = &body["tools"][0]["function"];
    assert_eq!((&function["name"], &function["parameters"]["required"]), (&json!("read_file"), &json!(["path"])));
}

#[test]
fn the_other_forms_are_sent() {
    let (line, body, headers) = sent(WireProtocol::Anthropic);
    assert_eq!(line, "POST /v1/messages HTTP/1.1");
    assert!(headers.contains(&("x-api-key".to_owned(), PLANTED.to_owned())));
    assert!(body["system"].to_string().contains("You are brief.") && body["max_tokens"] == 100);
    let text = body["messages"].to_string();
    for word in ["\"tool_use\"", "\"tool_use_id\":\"c1\"", "\"tool_use_id\":\"c3\"", "It says 42.", "Well?"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(4));
    assert_eq!(body["tools"][0]["input_schema"]["required"], json!(["path"]));

    let (line, body, headers) = sent(WireProtocol::Responses);
    assert_eq!(line, "POST /v1/responses HTTP/1.1");
    assert!(headers.contains(&("authorization".to_owned(), format!("Bearer {PLANTED}"))));
    assert_eq!((&body["model"], &body["store"]), (&json!("small-model-high"), &json!(false)), "nothing is kept there");
    assert_eq!((body.get("reasoning"), body.get("include")), (None, None), "ordinary models refuse these");
    let kinds: Vec<&str> =
        body["input"].as_array().expect("a list").iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "function_call").count(), 3, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "function_call_output").count(), 3, "{kinds:?}");

    let (line, body, headers) = sent(WireProtocol::Google);
    assert!(line.starts_with("POST /v1beta/models/small-model:streamGenerateContent?alt=sse"), "{line}");
    assert!(headers.contains(&("x-goog-api-key".to_owned(), PLANTED.to_owned())) && !line.contains("planted"));
    let text = body["contents"].to_string();
    assert!(
        text.contains("functionCall") && text.contains("functionResponse") && text.contains("It says 42."),
        "{text}"
    );

    let (line, body, _) = sent(WireProtocol::Ollama);
    assert_eq!(line, "POST /api/chat HTTP/1.1");
    assert_eq!((&body["options"]["num_predict"], &body["stream"]), (&json!(100), &json!(true)));
    assert!(body["messages"].to_string().contains("It says 42."));
}

#[test]
fn a_conversation_that_does_not_begin_with_the_user_is_mended() {
    let server = Server::new(vec![events(&spoken(WireProtocol::Anthropic, &["Yes."], true))]);
    let messages = vec![message(MessageRole::Assistant, "Earlier I said this."), message(MessageRole::User, "Go on")];
    answer(&call(ModelRequest { messages, system: String::new(), ..ask(WireProtocol::Anthropic, &server.address) }));
    let body: Value = serde_json::from_str(&server.asked()[0].body).expect("JSON");
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn addresses_mean_what_users_write() {
    let table = [
        (WireProtocol::OpenAi, "http://h:1", "http://h:1/v1/"),
        (WireProtocol::OpenAi, "http://h:1/", "http://h:1/v1/"),
        (WireProtocol::OpenAi, "http://h:1/v1", "http://h:1/v1/"),
        (WireProtocol::OpenAi, "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/"),
        (WireProtocol::Anthropic, "http://h", "http://h/v1/"),
        (WireProtocol::Google, "http://h", "http://h/v1beta/"),
        (WireProtocol::Ollama, "http://h:11434", "http://h:11434/"),
    ];
    for (wire, given, expected) in table {
        assert_eq!(genai_request::base_url(&endpoint(wire, given)), Ok(expected.to_owned()));
    }
    for wrong in ["h:1", "ftp://h", "http://", ""] {
        assert!(genai_request::base_url(&endpoint(WireProtocol::OpenAi, wrong)).is_err(), "{wrong}");
    }
}

/// Returns a stream that calls `read_file` with these arguments, in each wire format.
fn calling(wire: WireProtocol, ids: &[&str], arguments: &str) -> String {
    let object = || serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!(arguments));
    let data = |value: Value| format!("data: {value}\n\n");
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().expect("a type"));
    let (half, rest) = arguments.split_at(arguments.len() / 2);
    let mut text = String::new();
    for (at, id) in ids.iter().enumerate() {
        match wire {
            WireProtocol::OpenAi => {
                let first = json!({"index": at, "id": id, "function": {"name": "read_file", "arguments": half}});
                let second = json!({"index": at, "function": {"arguments": rest}});
                for piece in [first, second] {
                    text += &data(json!({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}));
                }
            }
            WireProtocol::Responses => {
                let item = json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": ""});
                text += &event(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
                for piece in [half, rest] {
                    let kind = "response.function_call_arguments.delta";
                    text += &event(json!({"type": kind, "output_index": at, "delta": piece}));
                }
            }
            WireProtocol::Anthropic => {
                let block = json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}});
                text += &event(json!({"type": "content_block_start", "index": at, "content_block": block}));
                for piece in [half, rest] {
                    let delta = json!({"type": "input_json_delta", "partial_json": piece});
                    text += &event(json!({"type": "content_block_delta", "index": at, "delta": delta}));
                }
                text += &event(json!({"type": "content_block_stop", "index": at}));
            }
            WireProtocol::Google => {
                let function = json!({"name": "read_file", "args": object(), "id": id});
                let call = json!({"functionCall": function, "thoughtSignature": "signed"});
                text += &data(json!({"candidates": [{"content": {"role": "model", "parts": [call]}}]}));
            }
            WireProtocol::Ollama => {
                let call = json!({"id": id, "function": {"name": "read_file", "arguments": object()}});
                text += &format!("{}\n", json!({"message": {"content": "", "tool_calls": [call]}, "done": false}));
            }
        }
    }
    match wire {
        WireProtocol::OpenAi => {
            text + &data(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
                + "data: [DONE]\n\n"
        }
        other => text + &spoken(other, &[], true).replace("event: response.created", "event: ping-created"),
    }
}

#[test]
fn tool_calls_come_back() {
    for wire in WIRES {
        let server = Server::new(vec![events(&calling(wire, &["one", "two"], r#"{"path": "notes/é.md"}"#))]);
        let updates = call(ModelRequest { tools: vec![tool("read_file")], ..ask(wire, &server.address) });
        let answer = answer(&updates);
        assert_eq!(answer.calls.len(), 2, "{wire:?}: {answer:?}");
        assert!(answer.malformed.is_empty());
        // What is estimated of an answer that breaks off: each byte once. Of chat completions, names count, too.
        let bytes = |update: &ModelUpdate| match update {
            ModelUpdate::Delta(ModelDelta::ToolCall { bytes }) => *bytes,
            _ => 0,
        };
        let names = if wire == WireProtocol::OpenAi { 2 * "read_file".len() } else { 0 };
        let streamed = updates.iter().map(bytes).sum::<u64>() as usize - names;
        assert!((44..=46).contains(&streamed), "{wire:?}: {streamed}");
        for call in &answer.calls {
            assert_eq!((call.name.as_str(), &call.arguments["path"]), ("read_file", &json!("notes/é.md")), "{wire:?}");
        }
        assert_ne!(answer.calls[0].id, answer.calls[1].id);
    }
}

#[test]
fn ids_are_unique_in_a_session_and_fit_everybody() {
    let long = "x".repeat(65);
    let before = {
        let mut asked = message(MessageRole::Assistant, "");
        let arguments = serde_json::Map::new();
        asked.tool_calls = vec![ToolCall { id: "call_0".to_owned(), name: "read_file".to_owned(), arguments }];
        asked
    };
    let server = Server::new(vec![events(&calling(
        WireProtocol::OpenAi,
        &["call_0", "call_0", "", "a b", &long, "fine"],
        "{}",
    ))]);
    let messages = vec![message(MessageRole::User, "a"), before, message(MessageRole::User, "b")];
    let updates = call(ModelRequest { messages, ..ask(WireProtocol::OpenAi, &server.address) });
    let ids: Vec<&str> = answer(&updates).calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1_0", "call_1_1", "call_1_2", "call_1_3", "call_1_4", "fine"]);
}

#[test]
fn arguments_that_are_no_object_are_told_apart() {
    for wire in [WireProtocol::OpenAi, WireProtocol::Responses, WireProtocol::Anthropic] {
        for wrong in [r#"{"path": "#, "[1, 2]", "\"text\""] {
            let server = Server::new(vec![events(&calling(wire, &["one"], wrong))]);
            let updates = call(ModelRequest { tools: vec![tool("read_file")], ..ask(wire, &server.address) });
            let answer = answer(&updates);
            assert!(answer.calls.is_empty(), "{wire:?}: {answer:?}");
            assert_eq!(answer.malformed[0].0, "read_file");
            assert!(!answer.malformed[0].1.is_empty());
        }
        let server = Server::new(vec![events(&calling(wire, &["one"], ""))]);
        let updates = call(ask(wire, &server.address));
        assert!(answer(&updates).calls[0].arguments.is_empty(), "nothing at all is no arguments");
    }
}

#[test]
fn tools_that_nobody_offered_come_back_by_their_name() {
    let body = calling(WireProtocol::OpenAi, &["one"], "{}").replace("read_file", "rm -rf /; 雪");
    let server = Server::new(vec![events(&body)]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    assert_eq!(answer(&updates).calls[0].name, "rm -rf /; 雪", "what to do with it is the loop's to say");
}

#[test]
fn what_google_signed_is_sent_back() {
    let providers = ProviderClient::new(limits());
    let server = Server::new(vec![
        events(&calling(WireProtocol::Google, &["one"], "{}")),
        events(&spoken(WireProtocol::Google, &["Done."], true)),
    ]);
    let updates = all(&start(&providers, ask(WireProtocol::Google, &server.address)));
    let mut asked = message(MessageRole::Assistant, "");
    asked.tool_calls = answer(&updates).calls.clone();
    let messages = vec![message(MessageRole::User, "a"), asked];
    all(&start(&providers, ModelRequest { messages, ..ask(WireProtocol::Google, &server.address) }));
    assert!(server.asked()[1].body.contains("\"thoughtSignature\":\"signed\""), "{}", server.asked()[1].body);
}

#[test]
fn an_answer_that_is_too_long_says_so() {
    let body = spoken(WireProtocol::OpenAi, &["and so on"], true)
        .replace("\"finish_reason\":\"stop\"", "\"finish_reason\":\"length\"");
    let server = Server::new(vec![events(&body)]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    assert_eq!(answer(&updates).stop, agent::model_call::ModelStopReason::Length);
}

#[test]
fn tokens_that_nobody_counted_are_estimated() {
    let body = spoken(WireProtocol::OpenAi, &["twelve letters and more"], true)
        .replace("prompt_tokens", "x")
        .replace("completion_tokens", "y");
    let server = Server::new(vec![events(&body)]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    let spent = answer(&updates).spent;
    assert!(spent.input_tokens >= 5 && spent.output_tokens >= 5, "{spent:?}");
}

#[test]
fn a_server_that_does_not_stream_is_asked_for_a_whole_answer() {
    let one = |kind: &str, message: Value, finish: &str| {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        let body = json!({"choices": [choice], "usage": {"prompt_tokens": 70, "completion_tokens": 9}});
        status(200, &format!("Content-Type: {kind}\r\n"), &body.to_string())
    };
    let called = |id: &str, arguments: &str| {
        let function = json!({"name": "read_file", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let calls = json!([called("a", r#"{"path": "a.md"}"#), called("b", r#"{"path": "#)]);
    let asks = json!({"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": calls});
    let asking = || one("application/json", asks.clone(), "tool_calls");
    let says = one("text/plain", json!({"role": "assistant", "content": "Both are read."}), "stop");
    let providers = ProviderClient::new(limits());
    let server = Server::new(vec![asking(), asking(), says]);
    let first = all(&start(&providers, ask(WireProtocol::OpenAi, &server.address)));
    assert!(again(&first)[0].contains("doesn't stream its answers"), "{first:?}");
    let answered = answer(&first);
    assert_eq!((answered.thinking.as_str(), answered.calls.len()), ("Hm.", 1), "{answered:?}");
    assert_eq!((answered.calls[0].id.as_str(), &answered.calls[0].arguments["path"]), ("a", &json!("a.md")));
    assert_eq!(answered.malformed, [("read_file".to_owned(), r#"{"path": "#.to_owned())]);
    // The answer that couldn't be read is paid, too.
    assert_eq!((answered.spent.input_tokens, answered.spent.output_tokens), (140, 18));
    // From then on it's asked once.
    let second = all(&start(&providers, ask(WireProtocol::OpenAi, &server.address)));
    assert_eq!((answer(&second).text.as_str(), said(&second).as_str()), ("Both are read.", "Both are read."));
    let asked = server.asked();
    let streams: Vec<bool> = asked.iter().map(|asked| asked.body.contains(r#""stream":true"#)).collect();
    assert_eq!(streams, [true, false, false]);

    let failed = status(200, "Content-Type: application/json\r\n", r#"{"error": {"message": "Still loading."}}"#);
    let updates = call(ask(WireProtocol::OpenAi, &Server::new(vec![failed]).address));
    assert!(failure(&updates).why.contains("Still loading"), "{updates:?}");
}

#[test]
fn a_whole_answer_is_asked_for_like_a_stream() {
    let good = json!({"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}]}).to_string();
    let json = "Content-Type: application/json\r\n";
    for (model, choice) in
        [("small-model-high", None), ("gpt-5-mini", Some(agent::model_call::ToolCallChoice::Required))]
    {
        let server = Server::new(vec![status(200, json, &good)]);
        let mut request = ask(WireProtocol::OpenAi, &server.address);
        request.endpoint.model = model.to_owned();
        (request.messages, request.tools, request.tool_choice) = (conversation(), vec![tool("read_file")], choice);
        assert_eq!(answer(&call(request)).text, "So.");
        let asked = server.asked();
        let bodies: Vec<Value> = asked
            .iter()
            .map(|asked| {
                let mut body: Value = serde_json::from_str(&asked.body).expect("JSON");
                let fields = body.as_object_mut().expect("an object");
                fields.retain(|name, _| name != "stream" && name != "stream_options");
                body
            })
            .collect();
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(asked[0].header("authorization"), asked[1].header("authorization"));
        assert_eq!(asked[0].line, asked[1].line);
    }
}

#[test]
fn answers_end_and_are_counted_in_other_ways() {
    let counted =
        json!({"choices": [{"index": 0, "delta": {}}], "usage": {"prompt_tokens": 40, "completion_tokens": 4}});
    let body = format!("{}data: {counted}\n\ndata: [DONE]\n\n", spoken(WireProtocol::OpenAi, &["So it is."], false));
    let updates = call(ask(WireProtocol::OpenAi, &Server::new(vec![events(&body)]).address));
    let answered = answer(&updates);
    assert_eq!((answered.text.as_str(), answered.stop), ("So it is.", agent::model_call::ModelStopReason::Done));
    assert_eq!((answered.spent.input_tokens, answered.spent.output_tokens), (40, 4));
    for (wire, reason) in
        [(WireProtocol::Anthropic, r#""stop_reason":"end_turn""#), (WireProtocol::Ollama, r#","done_reason":"stop""#)]
    {
        let body = spoken(wire, &["So it is."], true).replace(reason, "");
        let updates = call(ask(wire, &Server::new(vec![events(&body)]).address));
        assert_eq!(answer(&updates).text, "So it is.", "{wire:?}: {body}");
    }
    // An end without any answer isn't one.
    let updates = call(ask(WireProtocol::OpenAi, &Server::new(vec![events("data: [DONE]\n\n")]).address));
    assert_eq!(failure(&updates).kind, ModelErrorKind::Cut);
}

#[test]
fn calls_that_are_numbered_alike_are_told_apart() {
    let piece =
        |call: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
    let begin = |id: &str, part: &str| {
        piece(json!({"index": 0, "id": id, "function": {"name": "read_file", "arguments": part}}))
    };
    // Some servers give each piece another id, but no name.
    let more = |id: Value, part: &str| piece(json!({"index": 0, "id": id, "function": {"arguments": part}}));
    let body = [
        begin("one", "{\"path\": "),
        more(json!("other"), "\"a.md\"}"),
        begin("two", "{\"path\""),
        more(Value::Null, ": \"b.md\"}"),
        spoken(WireProtocol::OpenAi, &[], true),
    ];
    let updates = call(ask(WireProtocol::OpenAi, &Server::new(vec![events(&body.concat())]).address));
    let calls = &answer(&updates).calls;
    let paths: Vec<&Value> = calls.iter().map(|call| &call.arguments["path"]).collect();
    assert_eq!(paths, ["a.md", "b.md"], "{calls:?}");
}
