//! `tracebook mcp tools|call|login|logout`: a person uses the MCP servers of the configuration, and signs in where one
//! asks for it.

use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server on standard input and output: `half`; `ask`, which wants a form filled in; `wait`, which never answers; and
/// `end`, which ends it.
const PROGRAM_SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }
say() { answer "$1" '{"content":[{"type":"text","text":"'"$2"'"}]}'; }
while read -r line; do
    case "$line" in
    *'"initialize"'*) answer "$(id)" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer "$(id)" '{"tools":[{"name":"half","description":"Halves.",
        "inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}},
        {"name":"ask","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}},
        {"name":"end","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"wait"'*) ;;
    *'"name":"end"'*) exit 3 ;;
    *'"name":"half"'*) say "$(id)" "$(printf '%s' "$line" | sed -n 's/.*"x":\([0-9]*\).*/\1/p') halved" ;;
    *'"name":"fail"'*) answer "$(id)" '{"isError":true,"content":[{"type":"text","text":"not so"}]}' ;;
    *'"name":"ask"'*) asked=$(id)
        printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Who?",'
        printf '"requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"Ada"}}}}}\n' ;;
    *'"id":900'*) say "$asked" "$(printf '%s' "$line" | tr -d '"\\')" ;;
    esac
done"#;

pub(super) fn configured(server: &str) -> House {
    let house = House::with(&[("Boat.md", "12 volts\n")]);
    house.write("server.sh", PROGRAM_SERVER.as_bytes());
    let before = String::from_utf8_lossy(&std::fs::read(house.path("W/config.yaml")).unwrap_or_default()).into_owned();
    house.write("W/config.yaml", format!("{before}\nmcp:\n  servers:\n{server}").as_bytes());
    house
}

fn program_house() -> House {
    let house = configured("");
    let script = house.path("server.sh").display().to_string();
    let config = format!("mcp:\n  servers:\n    own:\n      command: sh\n      args: ['{script}']\n");
    house.write("W/config.yaml", config.as_bytes());
    house
}

#[test]
fn a_server_does_not_start_among_the_notes() {
    let house = configured("");
    let (script, log) = (house.path("server.sh").display().to_string(), house.path("where").display().to_string());
    house.write("where.sh", format!("pwd > '{log}'\nexec sh '{script}'\n").as_bytes());
    let start = house.path("where.sh").display().to_string();
    let config = format!("mcp:\n  servers:\n    own:\n      command: sh\n      args: ['{start}']\n");
    house.write("W/config.yaml", config.as_bytes());
    let workspace = house.path("W").display().to_string();
    let mut command = house.command(&["mcp", "tools", "own", "--workspace", &workspace]);
    command.current_dir(house.path("notes"));
    assert!(crate::program::finish(command, b"").good().text().starts_with("half "));
    let place = std::fs::read_to_string(log).expect("a path");
    let home = house.path("").canonicalize().expect("there");
    assert_eq!(std::path::Path::new(place.trim()).canonicalize().expect("there"), home);
}

#[test]
fn a_person_calls_tools_of_a_server() {
    let house = program_house();
    assert!(house.run(&["mcp", "tools", "own"]).good().text().starts_with("half "));
    assert_eq!(house.run(&["mcp", "tools", "own", "--json"]).good().lines()[0]["name"], "half");
    let call = |tool: &str, more: &[&str]| house.run(&[&["mcp", "call", "own", tool], more].concat());
    assert_eq!(call("half", &["--arguments", r#"{"x": 8}"#]).good().text(), "8 halved\n");
    assert_eq!(
        house.fed(&["mcp", "call", "own", "half", "--arguments", "-"], br#"{"x": 6}"#).good().text(),
        "6 halved\n"
    );
    assert_eq!(call("fail", &["--json"]).code(1).json(), json!({"text": "not so", "failed": true, "attached": []}));
    // A form: its defaults, or nobody to ask.
    assert!(call("ask", &["--yes"]).good().text().contains("action:accept"));
    let closed = call("ask", &[]).good().text();
    assert!(closed.contains("action:cancel") && !closed.contains("Ada"), "{closed}");
    for (words, about) in [
        (&["mcp", "call", "own"][..], "TOOL"),
        (&["mcp", "tools"], "NAME"),
        (&["mcp", "call", "own", "other"], "there are half, fail, ask"),
        (&["mcp", "tools", "other"], "there are own"),
        (&["mcp", "call", "own", "half", "--arguments", "[1]"], "JSON object"),
        (&["mcp", "call", "own", "half", "--arguments", "{"], "JSON object"),
        (&["mcp", "login", "own"], "nobody signs in"),
        (&["mcp", "logout", "own"], "nobody signs in"),
        (&["mcp", "tools", "own", "half"], "name of a server only"),
        (&["mcp", "sell", "own"], "login or logout"),
    ] {
        house.run(words).refused(2, about);
    }
    // A server that is gone or too slow is no wrong use.
    house.run(&["mcp", "tools", "http://127.0.0.1:9/mcp"]).refused(1, "could not be started");
    house.run(&["mcp", "login", "http://127.0.0.1:9/mcp"]).refused(1, "could not be started");
    call("wait", &["--timeout", "1"]).refused(1, "has not answered within 1 s");
    call("end", &[]).refused(1, "ended while it worked on this");
}

/// What the server with accounts has seen.
#[derive(Default)]
struct Seen {
    /// Bodies of requests for tokens.
    tokens: Vec<String>,
    /// Bodies of registrations.
    clients: Vec<Value>,
}

/// A server with accounts, and its authorization server, on one port. The token `t1` reads, `t2` also writes.
struct AccountServer {
    url: String,
    seen: Arc<Mutex<Seen>>,
}

pub(super) fn request_of(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

impl AccountServer {
    fn start() -> AccountServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (url, known) = (format!("{base}/mcp"), seen.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some((head, body)) = request_of(&mut stream) else { continue };
                let (status, header, answer) = AccountServer::answer(&base, &head, &body, &known);
                let said = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\nConnection: \
                     close\r\n\r\n{answer}",
                    answer.len()
                );
                let _ = stream.write_all(said.as_bytes());
            }
        });
        AccountServer { url, seen }
    }

    fn answer(base: &str, head: &str, body: &str, seen: &Mutex<Seen>) -> (&'static str, String, String) {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let ok = |value: Value| ("200 OK", String::new(), value.to_string());
        let mut seen = seen.lock().expect("unpoisoned");
        match path {
            "/.well-known/oauth-protected-resource/mcp" => {
                ok(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            })),
            "/register" => {
                let client: Value = serde_json::from_str(body).expect("JSON");
                seen.clients.push(client.clone());
                (
                    "201 Created",
                    String::new(),
                    json!({"client_id": "c1", "redirect_uris": client["redirect_uris"]}).to_string(),
                )
            }
            "/token" => {
                seen.tokens.push(body.to_owned());
                let token = format!("t{}", seen.tokens.len());
                ok(json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
            }
            "/mcp" => AccountServer::serve(base, head, body),
            _ => ("404 Not Found", String::new(), "{}".to_owned()),
        }
    }

    fn serve(base: &str, head: &str, body: &str) -> (&'static str, String, String) {
        let asks = |error: &str, scope: &str| {
            let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
            format!("WWW-Authenticate: Bearer {error}scope=\"{scope}\", resource_metadata=\"{metadata}\"\r\n")
        };
        let token = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
        let Some(token) = token.filter(|token| matches!(*token, "t1" | "t2")) else {
            return ("401 Unauthorized", asks("", "read"), "{}".to_owned());
        };
        let Ok(message) = serde_json::from_str::<Value>(body) else {
            return ("405 Method Not Allowed", String::new(), String::new());
        };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "write", "inputSchema": {"type": "object"}}]}),
            "tools/call" if token == "t1" => {
                return ("403 Forbidden", asks("error=\"insufficient_scope\", ", "read write"), "{}".to_owned());
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "written"}]}),
            _ => return ("202 Accepted", String::new(), String::new()),
        };
        ("200 OK", String::new(), json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    }
}

/// Signs in: the browser is a script that writes down the address; `come_back` makes the address with which it returns.
pub(super) fn login(house: &House, server: &str, come_back: impl FnOnce(&Value) -> String) -> crate::program::Done {
    let noted = house.path("address");
    let _ = std::fs::remove_file(&noted);
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n", noted.display());
    house.write("browser", script.as_bytes());
    let mut chmod = std::process::Command::new("chmod");
    assert!(chmod.arg("+x").arg(house.path("browser")).status().expect("told").success());
    let mut command = house.command(&["mcp", "login", server]);
    command.env("BROWSER", house.path("browser"));
    std::thread::scope(|scope| {
        let running = scope.spawn(move || crate::program::finish(command, b""));
        until("the browser opens, or it ends", || noted.exists() || running.is_finished());
        if noted.exists() {
            let address = String::from_utf8(house.read("address")).expect("text");
            let query = address.split_once('?').expect("a query").1;
            let asked: Value = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), Value::from(decoded(value))))
                .collect::<serde_json::Map<_, _>>()
                .into();
            let back = come_back(&asked);
            let rest = back.strip_prefix("http://").expect("an address");
            let (host, path) = rest.split_once('/').expect("a path");
            let mut stream = TcpStream::connect(host).expect("connected");
            // A stranger that asks for something else isn't the browser.
            stream.write_all(b"GET /other HTTP/1.1\r\n\r\n").expect("sent");
            let mut stream = TcpStream::connect(host).expect("connected");
            stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("sent");
            let mut shown = String::new();
            stream.read_to_string(&mut shown).expect("a page");
            assert!(shown.contains("close this page"), "{shown}");
        }
        running.join().expect("ended")
    })
}

pub(super) fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        whole.push(char::from(u8::from_str_radix(digits, 16).expect("digits")));
        whole.push_str(rest);
    }
    whole
}

pub(super) fn agreed(asked: &Value) -> String {
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    format!("{}?code=the-code&state={}", text("redirect_uri"), text("state"))
}

#[test]
fn a_person_signs_in_where_a_server_asks_for_it() {
    let accounts = AccountServer::start();
    let house = configured(&format!("    far:\n      url: {}\n", accounts.url));
    let write = |house: &House| house.run(&["mcp", "call", "far", "write"]);
    write(&house).refused(2, "tracebook mcp login far");
    house.run(&["mcp", "tools", "far"]).refused(2, "tracebook mcp login far");
    // Nothing is kept of a sign-in that the user refuses, or that someone else sends.
    let text = |asked: &Value, name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    let denied = |asked: &Value| format!("{}?error=access_denied&state=x", text(asked, "redirect_uri"));
    let failed = |done: crate::program::Done, why: &str| assert!(done.code == 2 && done.err.contains(why), "{done:?}");
    failed(login(&house, "far", denied), "signing in failed: access_denied");
    let forged = |asked: &Value| format!("{}?code=x&state=forged", text(asked, "redirect_uri"));
    failed(login(&house, "far", forged), "signing in failed");
    assert!(accounts.seen.lock().expect("unpoisoned").tokens.is_empty());
    let done = login(&house, "far", |asked| {
        assert_eq!(
            (text(asked, "scope"), text(asked, "code_challenge_method")),
            ("read".to_owned(), "S256".to_owned())
        );
        assert_eq!(text(asked, "resource"), accounts.url);
        assert!(text(asked, "redirect_uri").starts_with("http://127.0.0.1:"), "{asked}");
        agreed(asked)
    });
    assert_eq!(done.code(0).text(), "Signed in at far\n");
    assert!(house.run(&["mcp", "tools", "far"]).good().text().starts_with("write"));
    let sent = accounts.seen.lock().expect("unpoisoned").tokens[0].clone();
    assert!(sent.contains("code_verifier=") && sent.contains("code=the-code"), "{sent}");
    let client = accounts.seen.lock().expect("unpoisoned").clients.last().expect("registered").clone();
    assert_eq!(
        (&client["client_name"], &client["application_type"]),
        (&json!("Tracebook"), &json!("native")),
        "{client}"
    );
    // The call wants more, and the next sign-in asks for all of it.
    write(&house).refused(2, "more rights (read write)");
    login(&house, "far", |asked| {
        assert_eq!(text(asked, "scope"), "read write");
        agreed(asked)
    })
    .code(0);
    assert_eq!(write(&house).good().text(), "written\n");
    // Tokens belong to the address, are kept as secrets, and are shown nowhere.
    let secrets = house.run(&["secrets", "list", "--json"]).good().text();
    assert!(secrets.contains("MCP_LOGIN_127_0_0_1_") && !secrets.contains("t2"), "{secrets}");
    let other = AccountServer::start();
    house.run(&["mcp", "call", &other.url, "write"]).refused(2, "sign in");
    assert!(house.run(&["mcp", "logout", "far"]).good().text().contains("Signed out"));
    assert!(house.run(&["mcp", "logout", "far"]).good().text().contains("Nobody"));
    write(&house).refused(2, "tracebook mcp login far");
}

/// The body of a P-256 key for tests only.
const CLIENT_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2 \
    OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r \
    1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G";

#[test]
fn a_client_signs_in_by_itself() {
    let key = format!("-----BEGIN {0}----- {CLIENT_KEY} -----END {0}-----", "PRIVATE KEY");
    for (setting, value, proof) in [
        ("client_secret", "made-for-the-build", &["client_id=me", "client_secret=made-for-the-build"][..]),
        ("private_key", key.as_str(), &["jwt-bearer", "client_assertion=ey"]),
    ] {
        let accounts = AccountServer::start();
        let oauth = format!("{{grant: client_credentials, client_id: me, {setting}: '${{BUILD_PROOF}}'}}");
        let house = configured(&format!("    far:\n      url: {}\n      oauth: {oauth}\n", accounts.url));
        let run = |words: &[&str], proof: &str| {
            let mut command = house.command(words);
            command.env("BUILD_PROOF", proof);
            crate::program::finish(command, b"")
        };
        assert!(run(&["mcp", "tools", "far"], value).good().text().starts_with("write"));
        let sent = accounts.seen.lock().expect("unpoisoned").tokens.clone();
        assert_eq!(sent.len(), 1, "one token for all requests of a connection");
        assert!(sent[0].contains("grant_type=client_credentials") && sent[0].contains("resource=http"), "{sent:?}");
        assert!(proof.iter().all(|part| sent[0].contains(part)), "{sent:?}");
        run(&["mcp", "login", "far"], value).refused(2, "needs no browser");
        // The second token may write; the server takes no third one.
        assert_eq!(run(&["mcp", "call", "far", "write"], value).good().text(), "written\n");
        run(&["mcp", "call", "far", "write"], value).refused(2, "can't sign in");
        house.run(&["mcp", "tools", "far"]).refused(2, "BUILD_PROOF is missing");
    }
}
