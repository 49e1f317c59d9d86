//! Fetching from a server on this machine: what is read, and which addresses are refused.

use super::Bench;
use crate::program::assert_fast;
use agent::tool_job::{AccessRequest, ToolJob, ToolOutcome};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Serves an answer for each path until the test ends. Returns the port.
pub(super) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> u16 {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for stream in server.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut lines = BufReader::new(stream.try_clone().expect("the same")).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                // The client hangs up once it has read enough.
                let _ = stream.write_all(&answer(&path));
            });
        }
    });
    port
}

pub(super) fn page(mime: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {mime}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(super) fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// Fetches a URL, with access to these non-public addresses; redirects may lead to these hosts.
fn fetch(bench: &Bench, url: &str, inside: &[&str], hosts: &[&str]) -> ToolOutcome {
    let [inside, hosts] = [inside, hosts].map(|all| all.iter().map(|one| (*one).to_owned()).collect());
    bench.done(ToolJob::Fetch { url: url.to_owned(), hosts, inside })
}

#[test]
fn a_page_is_read_as_markdown() {
    let bench = Bench::new();
    let port = serve(|path| match path {
        "/page" => {
            page("text/html; charset=iso-8859-1", b"<h1>Gr\xfc\xdfe</h1><p>a <b>word</b><script>evil()</script>")
        }
        "/data.json" => page("application/json", b"{\"a\": 1}"),
        "/picture" => page("image/png", b"\x89PNG bytes"),
        "/large" => page("text/plain", &vec![b'x'; 3 << 20]),
        "/there" => redirect("/page"),
        "/deep" => page("text/html", "<div>".repeat(100_000).as_bytes()),
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ngone".to_vec(),
    });
    let get = |path: &str| fetch(&bench, &format!("http://127.0.0.1:{port}{path}"), &["127.0.0.1"], &[]);
    let read = get("/page");
    assert!(read.success && read.text.contains("# Grüße") && read.text.contains("a **word**"), "{read:?}");
    assert!(!read.text.contains("evil"));
    assert_eq!(get("/data.json").text, "{\"a\": 1}");
    let picture = get("/picture");
    assert_eq!(bench.blob(picture.attached[0].blob), b"\x89PNG bytes");
    let large = get("/large");
    assert!(large.success && large.text.ends_with("(only the first 2 MB are read)"), "{:.100}", large.text);
    let moved = get("/there");
    assert!(
        moved.success && moved.text.contains("# Grüße") && moved.text.contains("(from http://127.0.0.1"),
        "{moved:?}"
    );
    assert!(get("/deep").success);
    let missing = get("/nothing");
    assert_eq!((missing.success, missing.text.as_str()), (false, "(status 404)\ngone"));
}

#[test]
fn it_goes_nowhere_else() {
    let bench = Bench::new();
    let secret = serve(|_| page("text/plain", b"planted secret"));
    let port = serve(move |path| match path {
        "/name" => redirect(&format!("http://localhost:{secret}/")),
        "/file" => redirect("file:///etc/passwd"),
        "/loop" => redirect("/loop"),
        "/other" => redirect(&format!("http://127.0.0.1:{secret}/")),
        _ => Vec::new(),
    });
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let asked = |url: &str, inside: &[&str], hosts: &[&str]| {
        let outcome = fetch(&bench, url, inside, hosts);
        assert!(!outcome.success && !outcome.text.contains("planted"), "{url}: {outcome:?}");
        assert!(!outcome.text.contains("root:"), "{url}: {outcome:?}");
        outcome.asks
    };
    let (there, four) = (format!("http://localhost:{secret}/"), vec!["127.0.0.1".to_owned()]);
    // Another site needs approval, even on the same machine; a host allowed by name does if its address is private.
    let redirected = asked(&at("/name"), &["127.0.0.1"], &[]);
    assert_eq!(redirected, Some(AccessRequest::Redirect { url: there.clone() }));
    let listed = asked(&at("/name"), &["127.0.0.1"], &["localhost"]);
    assert!(
        matches!(&listed, Some(AccessRequest::PrivateAddress { url, ips }) if *url == there && ips.contains(&four[0])),
        "{listed:?}"
    );
    for url in [
        format!("http://127.0.0.1:{secret}/"),
        format!("http://[::ffff:127.0.0.1]:{secret}/"),
        format!("http://0x7f000001:{secret}/"),
        format!("http://2130706433:{secret}/"),
        format!("http://127.1:{secret}/"),
    ] {
        for hosts in [&[][..], &["example.org"], &[".0.0.1", ".1", "."]] {
            let inside = asked(&url, &["127.0.0.2"], hosts);
            assert!(
                matches!(&inside, Some(AccessRequest::PrivateAddress { ips, .. }) if *ips == four),
                "{url}: {inside:?}"
            );
        }
    }
    assert!(matches!(asked(&there, &[], &["localhost", ".localhost"]), Some(AccessRequest::PrivateAddress { .. })));
    for url in [
        at("/file"),
        at("/loop"),
        format!("http://example.org@127.0.0.1:{secret}/"),
        "file:///etc/passwd".to_owned(),
        "not an address".to_owned(),
    ] {
        assert_eq!(asked(&url, &["127.0.0.1"], &["127.0.0.1"]), None, "{url}");
    }
    assert_eq!(fetch(&bench, &there, &["127.0.0.1"], &[]).text, "planted secret");
    assert_eq!(
        fetch(&bench, &at("/other"), &["127.0.0.1"], &["127.0.0.1"]).text,
        format!("(from http://127.0.0.1:{secret}/)\nplanted secret")
    );
}

#[test]
fn a_server_that_does_not_answer_is_left_alone_at_once() {
    let bench = Bench::new();
    let port = serve(|_| {
        std::thread::sleep(Duration::from_secs(30));
        Vec::new()
    });
    let (url, inside) = (format!("http://127.0.0.1:{port}/"), vec!["127.0.0.1".to_owned()]);
    assert_fast("the end of a canceled call", Duration::from_secs(1), || {
        let waits = bench.start(3, ToolJob::Fetch { url: url.clone(), hosts: Vec::new(), inside: inside.clone() });
        assert!(waits.recv_timeout(Duration::from_millis(300)).is_err());
        let asked = Instant::now();
        bench.tools.cancel(3);
        let outcome = waits.recv_timeout(super::PATIENCE).expect("ended");
        assert!(!outcome.success, "{outcome:?}");
        asked.elapsed()
    });
}
