//! Recorded answers of a real model (llama.cpp with Qwen2.5-Coder-0.5B), byte for byte as they came over the wire. The
//! server on loopback replays them in one piece, and in packets that split frames, lines and letters.

use super::server::Reply;
use super::*;
use std::io::Write;

/// Replays a recorded answer in packets of this many bytes.
fn plays(name: &str, packet: usize) -> Reply {
    let path = format!("{}/../../../tests/data/cassettes/{name}.http", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {path}"));
    Box::new(move |stream| {
        let _ = stream.set_nodelay(true);
        for part in bytes.chunks(packet) {
            if stream.write_all(part).is_err() {
                return;
            }
            if packet < bytes.len() {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    })
}

#[test]
fn what_a_real_model_says_is_heard() {
    let table = [
        ("openai-text", WireProtocol::OpenAi, 21),
        ("anthropic-text", WireProtocol::Anthropic, 21),
        ("responses-text", WireProtocol::Responses, 21),
    ];
    for (name, wire, input) in table {
        for packet in [1 << 20, 100, 7] {
            let server = Server::new(vec![plays(name, packet)]);
            let updates = call(ask(wire, &server.address));
            let answer = answer(&updates);
            assert_eq!(answer.text, "Three colours are red, blue, and green.", "{name} in packets of {packet}");
            assert_eq!(said(&updates), answer.text, "{name}");
            assert!(updates.len() > 8, "{name} came in {} pieces", updates.len());
            let spent = answer.spent;
            assert_eq!((spent.input_tokens, spent.output_tokens, spent.cost), (input, 11, Some(0.0)), "{name}");
        }
    }
}

#[test]
fn what_a_real_model_asks_for_is_heard() {
    for (name, wire) in [
        ("openai-tool", WireProtocol::OpenAi),
        ("anthropic-tool", WireProtocol::Anthropic),
        ("responses-tool", WireProtocol::Responses),
    ] {
        for packet in [1 << 20, 13] {
            let server = Server::new(vec![plays(name, packet)]);
            let updates = call(ModelRequest { tools: vec![tool("read_file")], ..ask(wire, &server.address) });
            let answer = answer(&updates);
            let calls: Vec<(&str, &Value)> =
                answer.calls.iter().map(|call| (call.name.as_str(), &call.arguments["path"])).collect();
            assert_eq!(calls, [("read_file", &json!("notes/plan.md"))], "{name} in packets of {packet}: {answer:?}");
            assert!(!answer.calls[0].id.is_empty() && answer.malformed.is_empty());
        }
    }
}

/// llama.cpp fails to parse its own model's output: it sends a success status, and an error inside the stream.
#[test]
fn what_a_real_server_could_not_finish_is_tried_again() {
    let server = Server::new(vec![plays("openai-error", 1 << 20), plays("openai-text", 1 << 20)]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    assert!(answer(&updates).text.contains("colours"));
    assert!(again(&updates)[0].contains("(500: The model produced output that does not match"), "{updates:?}");
}

#[test]
fn a_real_list_of_models_is_read() {
    let server = Server::new(vec![plays("models", 50)]);
    let found = tested(endpoint(WireProtocol::OpenAi, &server.address), limits()).expect("there");
    assert_eq!((found.models, found.listed), (Some(vec!["model.gguf".to_owned()]), Some(false)));
    assert_eq!(found.context, Some(4_096));
}
