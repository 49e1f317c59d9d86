//! Tests of every way in which a call may fail.

use super::server::{Reply, bytes, later, stalls, stream, torn};
use super::*;

#[test]
fn an_answer_that_breaks_off_keeps_what_came() {
    for wire in WIRES {
        let part = spoken(wire, &["Once upon ", "a time"], false);
        let cuts: [(&str, Reply); 2] = [("the end of the connection", events(&part)), ("a torn chunk", torn(&part))];
        for (how, cut) in cuts {
            let server = Server::new(vec![cut]);
            let updates = call(ask(wire, &server.address));
            let why = failure(&updates);
            assert_eq!(
                (why.kind, why.partial.as_str()),
                (ModelErrorKind::Cut, "Once upon a time"),
                "{wire:?}, {how}: {why:?}"
            );
            assert!(
                why.why.contains("127.0.0.1") && why.why.contains("continue from the partial answer"),
                "{}",
                why.why
            );
            assert_eq!(server.asked().len(), 1, "what the user has seen is not asked for twice");
        }
    }
}

#[test]
fn a_connection_lost_before_anything_came_is_tried_again() {
    for wire in WIRES {
        let good = events(&spoken(wire, &["Here."], true));
        let server = Server::new(vec![bytes(""), torn("\n\n"), good]);
        let updates = call(ask(wire, &server.address));
        assert_eq!(answer(&updates).text, "Here.", "{wire:?}");
        assert_eq!((server.asked().len(), again(&updates).len()), (3, 2), "{wire:?}");
        assert!(again(&updates)[1].ends_with("(3 of 3)."), "{updates:?}");
    }
}

#[test]
fn who_asks_for_patience_is_heard() {
    let good = || events(&spoken(WireProtocol::OpenAi, &["Now."], true));
    let server = Server::new(vec![status(429, "Retry-After: 1\r\n", "{}"), good()]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    assert_eq!(answer(&updates).text, "Now.");
    let asked = server.asked();
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(990));
    assert!(
        again(&updates)[0].contains("too many requests (429") && again(&updates)[0].contains("1.0 s"),
        "{updates:?}"
    );
    // Longer than any caller waits.
    let server =
        Server::new(vec![status(429, "Retry-After: 60\r\n", r#"{"error": {"message": "Slow down."}}"#), good()]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    let why = failure(&updates);
    assert_eq!((why.kind, server.asked().len()), (ModelErrorKind::RateLimited, 1));
    assert!(why.why.contains("(429: Slow down). Wait 60 s, or ask another provider"), "{}", why.why);
    for (header, words) in [("Retry-After: 3600", "Wait 60 min,"), ("retry-after-ms: 90000500", "Wait 26 h,")] {
        let server = Server::new(vec![status(429, &format!("{header}\r\n"), "{}")]);
        let updates = call(ask(WireProtocol::OpenAi, &server.address));
        assert!(failure(&updates).why.contains(words), "{updates:?}");
    }
}

#[test]
fn trouble_of_the_provider_is_tried_three_times() {
    for code in [500, 502, 503, 529] {
        let server = Server::new(vec![status(code, "", r#"{"type": "error", "error": {"message": "Overloaded"}}"#)]);
        let updates = call(ask(WireProtocol::Anthropic, &server.address));
        let why = failure(&updates);
        assert_eq!((why.kind, server.asked().len()), (ModelErrorKind::Server, 3), "{code}");
        assert!(why.why.contains(&format!("({code}: Overloaded)")), "{}", why.why);
    }
}

#[test]
fn what_is_refused_is_not_tried_again() {
    let echo = format!("{{\"error\": {{\"message\": \"Bad key {PLANTED} for {PLANTED}\"}}}}");
    let table = [
        (400, ModelErrorKind::Refused, "refuses the request (400: Bad key … for …)"),
        (401, ModelErrorKind::Key, "`tracebook secrets set MY_KEY`"),
        (403, ModelErrorKind::Key, "does not accept the key"),
        (404, ModelErrorKind::Refused, "`tracebook providers models mine`"),
        (408, ModelErrorKind::Refused, "(408"),
        (413, ModelErrorKind::Refused, "(413"),
        (422, ModelErrorKind::Refused, "(422"),
        (302, ModelErrorKind::Refused, "sends elsewhere"),
    ];
    for (code, kind, words) in table {
        let elsewhere = Server::new(vec![status(200, "", "")]);
        let headers = format!("Location: {}/v1/messages\r\nX-Echo: {PLANTED}\r\n", elsewhere.address);
        let server = Server::new(vec![status(code, &headers, &echo)]);
        let updates = call(ask(WireProtocol::Anthropic, &server.address));
        let why = failure(&updates);
        assert_eq!((why.kind, server.asked().len()), (kind, 1), "{code}");
        assert!(why.why.contains(words), "{}", why.why);
        assert!(elsewhere.asked().is_empty(), "the key was carried elsewhere");
    }
}

#[test]
fn errors_inside_a_stream_are_understood() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let overloaded = format!("event: error\ndata: {overloaded}\n\n");
    let server = Server::new(vec![events(&overloaded), events(&spoken(WireProtocol::Anthropic, &["Better."], true))]);
    assert_eq!(answer(&call(ask(WireProtocol::Anthropic, &server.address))).text, "Better.");

    let wrong = format!("data: {{\"error\":{{\"message\":\"context of {PLANTED} too long\",\"code\":400}}}}\n\n");
    let server = Server::new(vec![events(&wrong)]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    assert_eq!((failure(&updates).kind, server.asked().len()), (ModelErrorKind::Refused, 1));
    assert!(failure(&updates).why.contains("context of … too long"), "{updates:?}");

    let failed = json!({"type": "response.failed", "response": {"id": "r", "status": "failed", "model": "m",
        "output": [],
        "error": {"message": "it fell over"}}});
    let server = Server::new(vec![events(&format!("event: response.failed\ndata: {failed}\n\n"))]);
    let updates = call(ask(WireProtocol::Responses, &server.address));
    assert_eq!(failure(&updates).kind, ModelErrorKind::Server);
    assert!(failure(&updates).why.contains("it fell over"), "{updates:?}");
}

#[test]
fn what_cannot_be_read_is_said_and_nothing_falls_over() {
    let page = "<html><body>Sign in to this network</body></html>";
    for wire in WIRES {
        let good = spoken(wire, &["Hm"], false);
        let separator = if wire == WireProtocol::Ollama { "" } else { "data: " };
        let numbers = json!({"choices": [{"delta": {"content": 5}}], "message": {"content": 5}});
        let table: [(&str, Vec<u8>); 6] = [
            ("no JSON", format!("{good}{separator}{{\"choices\": [}}\n\n").into_bytes()),
            ("another shape", format!("{good}{separator}[[[5]]]\n\n").into_bytes()),
            ("numbers for words", format!("{good}{separator}{numbers}\n\n").into_bytes()),
            ("deep JSON", format!("{good}{separator}{}\n\n", "[".repeat(100_000)).into_bytes()),
            ("no UTF-8", [separator.as_bytes(), b"\xff\xfe\xc3(\n\n"].concat()),
            ("a page", page.as_bytes().to_vec()),
        ];
        for (what, body) in table {
            // Invalid UTF-8 arrives after a moment: everything in the same packet is lost with it.
            let reply = if what == "no UTF-8" { later(&good, &body) } else { stream(&body) };
            let server = Server::new(vec![reply]);
            let updates = call(ask(wire, &server.address));
            let why = failure(&updates);
            let kinds = [ModelErrorKind::Malformed, ModelErrorKind::Cut];
            assert!(kinds.contains(&why.kind), "{wire:?}, {what}: {why:?}");
            assert!(why.why.contains("127.0.0.1"), "{}", why.why);
            if what != "a page" {
                assert_eq!(why.partial, "Hm", "{wire:?}, {what}");
            }
        }
    }
}

#[test]
fn answers_without_end_are_bounded() {
    let word = "0123456789".repeat(100);
    let many: Vec<&str> = std::iter::repeat_n(word.as_str(), 10_000).collect();
    let tools =
        |calls: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}));
    let piece = |index: u64, arguments: &str| {
        json!([{"index": index, "id": format!("c{index}"),
        "function": {"name": "f", "arguments": arguments}}])
    };
    let ten = "x".repeat(10 << 20);
    let table = [
        ("10 MB in words", spoken(WireProtocol::OpenAi, &many, true), "more than 4 MB"),
        ("10 MB at once", spoken(WireProtocol::OpenAi, &[&ten], true), "the rest is left out"),
        ("10 MB of arguments at once", tools(piece(0, &ten)), "the rest is left out"),
        ("10 MB of arguments", (0..10_000).map(|_| tools(piece(0, &word))).collect(), "arguments for one tool call"),
        ("very many tools", (0..500).map(|index| tools(piece(index, "{}"))).collect(), "more than 128 tool calls"),
    ];
    for (what, body, words) in table {
        let server = Server::new(vec![events(&body)]);
        let began = Instant::now();
        let updates = call(ask(WireProtocol::OpenAi, &server.address));
        let why = failure(&updates);
        assert_eq!(why.kind, ModelErrorKind::Malformed, "{what}: {}", why.why);
        assert!(why.why.contains(words), "{what}: {}", why.why);
        assert!(why.partial.len() < 16 << 20 && began.elapsed() < Duration::from_secs(120), "{what}");
    }
    // A call with an index of about four billion counts as one call.
    let body = tools(piece(4_294_967_295, "{}")) + &spoken(WireProtocol::OpenAi, &[], true);
    let server = Server::new(vec![events(&body)]);
    assert_eq!(answer(&call(ask(WireProtocol::OpenAi, &server.address))).calls.len(), 1);
    // Token counts out of range.
    let end = json!({"message": {"content": "So."}, "done": true, "done_reason": "stop",
        "prompt_eval_count": 2_147_483_647,
        "eval_count": 2_147_483_647});
    let server = Server::new(vec![events(&format!("{end}\n"))]);
    let updates = call(ask(WireProtocol::Ollama, &server.address));
    assert!(matches!(updates.last(), Some(ModelUpdate::Answer(_) | ModelUpdate::Failure(_))));
}

/// Answers what doesn't stream: the client then asks for a whole answer.
fn no_stream() -> Reply {
    status(200, "Content-Type: application/json\r\n", r#"{"choices": []}"#)
}

#[test]
fn a_whole_answer_without_end_is_bounded() {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let endless: Reply = Box::new(move |stream| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"choices\": \"";
        let piece = [b'x'; 64 << 10];
        let mut more = stream.write_all(head);
        while more.is_ok() && count.load(Ordering::SeqCst) < 1 << 30 {
            more = stream.write_all(&piece);
            count.fetch_add(piece.len(), Ordering::SeqCst);
        }
    });
    let server = Server::new(vec![no_stream(), endless]);
    let updates = call(ask(WireProtocol::OpenAi, &server.address));
    let why = failure(&updates);
    assert_eq!((why.kind, server.asked().len()), (ModelErrorKind::Malformed, 2), "{why:?}");
    assert!(why.why.contains("more than 8 MB"), "{}", why.why);
    // What is beyond the limit is what the sockets hold.
    assert!(sent.load(Ordering::SeqCst) < 64 << 20, "{sent:?}");

    let error = status(400, "", &"too much ".repeat(1 << 20));
    let updates = call(ask(WireProtocol::OpenAi, &Server::new(vec![no_stream(), error]).address));
    assert!(failure(&updates).why.contains("refuses the request (400: too much"), "{updates:?}");
}

#[test]
fn a_whole_answer_has_the_same_limits_of_time() {
    let deaf: Reply = Box::new(|_| std::thread::sleep(Duration::from_secs(30)));
    let stuck: Reply = Box::new(|stream| {
        use std::io::Write;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
        std::thread::sleep(Duration::from_secs(30));
    });
    let impatient = Duration::from_secs(2);
    let table = [
        (deaf, ProviderTimeouts { first_response_local: impatient, ..limits() }, "watchdog.first_byte_local"),
        (stuck, ProviderTimeouts { stream_idle: impatient, ..limits() }, "watchdog.silence"),
    ];
    for (reply, timeouts, setting) in table {
        let server = Server::new(vec![no_stream(), reply]);
        let began = Instant::now();
        let updates = all(&start(&ProviderClient::new(timeouts), ask(WireProtocol::OpenAi, &server.address)));
        let why = &failure(&updates).why;
        assert!(why.contains(setting) && why.contains(" 2 s"), "{why}");
        assert!(began.elapsed() < Duration::from_secs(25), "{setting}");
    }
}

#[test]
fn a_call_is_stopped_at_once() {
    let middle = || stalls(&spoken(WireProtocol::OpenAi, &["As far as ", "this"], false), Duration::from_secs(20));
    let deaf = || -> Reply { Box::new(|_| std::thread::sleep(Duration::from_secs(20))) };
    let busy = || status(503, "Retry-After: 15\r\n", "");
    let cases: [(&str, &dyn Fn() -> Reply, &str); 3] = [
        ("in the middle", &middle, "As far as this"),
        ("before the first word", &deaf, ""),
        ("between tries", &busy, ""),
    ];
    for (what, reply, partial) in cases {
        let providers = ProviderClient::new(limits());
        let attempt = || {
            let server = Server::new(vec![reply()]);
            let heard = start(&providers, ask(WireProtocol::OpenAi, &server.address));
            let mut came = String::new();
            while came != partial {
                let update = heard.recv_timeout(Duration::from_secs(60)).expect("some words");
                if let ModelUpdate::Delta(ModelDelta::Text(text)) = update {
                    came.push_str(&text);
                }
            }
            std::thread::sleep(Duration::from_millis(500));
            let began = Instant::now();
            providers.cancel(id(1));
            let why = all(&heard);
            let took = began.elapsed();
            assert_eq!(
                (failure(&why).kind, failure(&why).partial.as_str()),
                (ModelErrorKind::Cancelled, partial),
                "{what}"
            );
            took
        };
        // Others may have the machine for a moment, so one fast attempt is enough; what is slow is slow in each.
        assert!((0..5).any(|_| attempt() < Duration::from_secs(1)), "{what}");
        // The next call doesn't wait for it.
        let good = Server::new(vec![events(&spoken(WireProtocol::OpenAi, &["Next."], true))]);
        assert_eq!(answer(&all(&start(&providers, ask(WireProtocol::OpenAi, &good.address)))).text, "Next.");
        providers.cancel(id(1));
        providers.cancel(id(99));
    }
}

#[test]
fn calls_run_at_the_same_time() {
    let slow = Server::new(vec![stalls("", Duration::from_secs(20))]);
    let good = Server::new(vec![events(&spoken(WireProtocol::OpenAi, &["Quick."], true))]);
    let providers = ProviderClient::new(limits());
    let waits = start(&providers, ask(WireProtocol::OpenAi, &slow.address));
    let (tell, heard) = channel();
    providers.start_call(id(2), ask(WireProtocol::OpenAi, &good.address), None, move |update| {
        let _ = tell.send(update);
    });
    assert_eq!(answer(&all(&heard)).text, "Quick.");
    // A call with the same id ends the previous one.
    let next = start(&providers, ask(WireProtocol::OpenAi, &good.address));
    assert_eq!(failure(&all(&waits)).kind, ModelErrorKind::Cancelled);
    assert_eq!(answer(&all(&next)).text, "Quick.");
}

#[test]
fn silence_has_an_end() {
    // Each has one short time only: a busy machine may use up the others.
    let impatient = ProviderTimeouts { first_response_local: Duration::from_millis(400), ..limits() };
    let providers = ProviderClient::new(impatient);
    let deaf = Server::new(vec![Box::new(|_| std::thread::sleep(Duration::from_secs(20)))]);
    let updates = all(&start(&providers, ask(WireProtocol::OpenAi, &deaf.address)));
    assert_eq!(failure(&updates).kind, ModelErrorKind::Unreachable);
    let why = &failure(&updates).why;
    assert!(why.contains("does not answer within 0.4 s. Raise watchdog.first_byte_local"), "{why}");
    let impatient = ProviderTimeouts { stream_idle: Duration::from_millis(400), ..limits() };
    let providers = ProviderClient::new(impatient);
    let stuck = Server::new(vec![stalls(&spoken(WireProtocol::OpenAi, &["I think"], false), Duration::from_secs(20))]);
    let updates = all(&start(&providers, ask(WireProtocol::OpenAi, &stuck.address)));
    assert_eq!((failure(&updates).kind, failure(&updates).partial.as_str()), (ModelErrorKind::Cut, "I think"));
    // Bytes that never form a frame.
    let drip: Reply = Box::new(|stream| {
        use std::io::Write;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(spoken(WireProtocol::OpenAi, &["Well"], false).as_bytes());
        while stream.write_all(b"data: x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let server = Server::new(vec![drip]);
    let whole_response = Duration::from_millis(1_500);
    let providers = ProviderClient::new(ProviderTimeouts { whole_response, ..impatient });
    let updates = all(&start(&providers, ask(WireProtocol::OpenAi, &server.address)));
    assert_eq!((failure(&updates).kind, failure(&updates).partial.as_str()), (ModelErrorKind::Cut, "Well"));
}

#[test]
fn an_endpoint_that_is_down_is_said_within_five_seconds() {
    let plain = Server::new(vec![bytes("This is no TLS.\r\n")]);
    let secure = plain.address.replace("http://", "https://");
    let table = [
        (
            "http://127.0.0.1:9".to_owned(),
            "127.0.0.1:9 cannot be reached: nothing is listening there. Start the server",
        ),
        ("http://nowhere.invalid/v1".to_owned(), "nowhere.invalid cannot be reached: its name is not known"),
        (secure, "127.0.0.1"),
    ];
    for (address, words) in table {
        let is_fast = (0..5).any(|_| {
            let began = Instant::now();
            let providers = ProviderClient::default();
            let updates = all(&start(&providers, ask(WireProtocol::OpenAi, &address)));
            let why = failure(&updates);
            assert_eq!(why.kind, ModelErrorKind::Unreachable, "{why:?}");
            assert!(why.why.contains(words), "{}", why.why);
            assert!(why.why.contains("llm.providers.mine.base_url") || address.starts_with("https"), "{}", why.why);
            began.elapsed() < Duration::from_secs(5)
        });
        assert!(is_fast, "{address}");
    }
    let far = ModelRequest {
        endpoint: ModelEndpoint { base_url: None, local: true, ..endpoint(WireProtocol::Ollama, "") },
        ..ask(WireProtocol::Ollama, "")
    };
    let updates = call(far);
    if let Some(ModelUpdate::Failure(why)) = updates.last() {
        assert!(why.why.contains("localhost:11434") && why.why.contains("ollama serve"), "{}", why.why);
    }
}
