//! Where tokens for MCP servers come from: servers of the protocol's first revision with OAuth, which give them
//! themselves, and identity providers that vouch for the user.

use super::mcp_client::{agreed, configured, decoded, login, request_of};
use crate::program::{Done, House, finish};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Status, header lines and body.
type HttpAnswer = (&'static str, String, String);
/// Heads and bodies of requests.
type SentRequests = Arc<Mutex<Vec<(String, String)>>>;

fn ok(value: &Value) -> HttpAnswer {
    ("200 OK", String::new(), value.to_string())
}

/// Answers requests at a port of this computer, and returns the port's address. `answer` gets that address, and the
/// head and the body of a request.
fn serve(answer: impl Fn(&str, &str, &str) -> HttpAnswer + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let known = base.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some((head, body)) = request_of(&mut stream) else { continue };
            let (status, header, text) = answer(&known, &head, &body);
            let said = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\nConnection: \
                 close\r\n\r\n{text}",
                text.len()
            );
            let _ = stream.write_all(said.as_bytes());
        }
    });
    base
}

/// Serves the tool `read` to those with the token `t1`.
fn protected(head: &str, body: &str, challenge: &str) -> HttpAnswer {
    if !head.lines().any(|line| line == "authorization: Bearer t1") {
        return ("401 Unauthorized", format!("WWW-Authenticate: Bearer {challenge}\r\n"), "{}".to_owned());
    }
    let Ok(message) = serde_json::from_str::<Value>(body) else {
        return ("405 Method Not Allowed", String::new(), String::new());
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}),
        _ => return ("202 Accepted", String::new(), String::new()),
    };
    ok(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// What a server says about itself as a protected resource.
#[derive(Clone, Copy, PartialEq)]
enum ResourceMetadata {
    Absent,
    Published,
    /// Named in the challenge, at a place of the server's choice.
    Elsewhere,
    /// Named in the challenge, but not there.
    Lost,
}

/// A server that is its own authorization server, and what it got for registrations and tokens.
fn own_server(metadata: fn(&str) -> Value, resource: ResourceMetadata) -> (String, SentRequests) {
    let sent = SentRequests::default();
    let seen = sent.clone();
    let base = serve(move |base, head, body| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let keep = || seen.lock().expect("unpoisoned").push((head.to_owned(), body.to_owned()));
        match path {
            "/.well-known/oauth-authorization-server" if !metadata(base).is_null() => ok(&metadata(base)),
            "/.well-known/oauth-protected-resource/mcp" if resource == ResourceMetadata::Published => {
                ok(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            "/elsewhere" if resource == ResourceMetadata::Elsewhere => {
                ok(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [format!("{base}/oauth")]}))
            }
            "/.well-known/oauth-authorization-server/oauth" if resource == ResourceMetadata::Elsewhere => {
                ok(&with_path(base))
            }
            // Without a token, such servers may answer only those who post.
            "/mcp" if resource == ResourceMetadata::Elsewhere && !head.starts_with("POST") => {
                ("404 Not Found", String::new(), "{}".to_owned())
            }
            "/mcp" if resource == ResourceMetadata::Elsewhere => {
                protected(head, body, &format!("resource_metadata=\"{base}/elsewhere\""))
            }
            "/mcp" if resource == ResourceMetadata::Lost => {
                protected(head, body, &format!("resource_metadata=\"{base}/lost\""))
            }
            "/mcp" => protected(head, body, "error=\"invalid_token\""),
            _ if path.ends_with("/register") => {
                keep();
                let client: Value = serde_json::from_str(body).expect("JSON");
                let client = json!({"client_id": "c1", "redirect_uris": client["redirect_uris"]});
                ("201 Created", String::new(), client.to_string())
            }
            _ if path.ends_with("/token") => {
                keep();
                ok(&json!({"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}))
            }
            _ => ("404 Not Found", String::new(), "{}".to_owned()),
        }
    });
    (base, sent)
}

/// Metadata whose issuer has a path, though they are at the root.
fn with_path(base: &str) -> Value {
    json!({"issuer": format!("{base}/oauth"), "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"), "registration_endpoint": format!("{base}/oauth/register"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]})
}

fn other_issuer(base: &str) -> Value {
    let mut metadata = with_path(base);
    metadata["issuer"] = Value::from("http://127.0.0.1:9/oauth");
    metadata
}

fn other_tokens(base: &str) -> Value {
    let mut metadata = with_path(base);
    metadata["token_endpoint"] = Value::from("http://127.0.0.1:9/token");
    metadata
}

fn other_clients(base: &str) -> Value {
    let mut metadata = with_path(base);
    metadata["registration_endpoint"] = Value::from("http://127.0.0.1:9/register");
    metadata
}

fn no_metadata(_: &str) -> Value {
    Value::Null
}

fn house_for(base: &str) -> House {
    configured(&format!("    far:\n      url: {base}/mcp\n"))
}

fn first_lines(sent: &SentRequests) -> Vec<String> {
    let sent = sent.lock().expect("unpoisoned");
    sent.iter().map(|(head, _)| head.lines().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_server_without_resource_metadata_is_its_own_authorization_server() {
    let cases: [(fn(&str) -> Value, &str); 2] = [(with_path, "/oauth"), (no_metadata, "")];
    for (metadata, folder) in cases {
        let (base, sent) = own_server(metadata, ResourceMetadata::Absent);
        let house = house_for(&base);
        house.run(&["mcp", "tools", "far"]).refused(2, "tracebook mcp login far");
        login(&house, "far", agreed).code(0);
        let address = String::from_utf8(house.read("address")).expect("text");
        assert!(address.starts_with(&format!("{base}{folder}/authorize?")), "{address}");
        // Another process finds the same server, and takes its token.
        assert!(house.run(&["mcp", "tools", "far"]).good().text().starts_with("read"));
        let lines = [format!("POST {folder}/register HTTP/1.1"), format!("POST {folder}/token HTTP/1.1")];
        assert_eq!(first_lines(&sent), lines);
        assert!(sent.lock().expect("unpoisoned")[1].1.contains("code_verifier="));
    }
}

#[test]
fn metadata_that_only_the_challenge_names_are_found_again_by_later_processes() {
    let (base, sent) = own_server(no_metadata, ResourceMetadata::Elsewhere);
    let house = house_for(&base);
    house.run(&["mcp", "tools", "far"]).refused(2, "tracebook mcp login far");
    login(&house, "far", agreed).code(0);
    for _ in 0..2 {
        assert!(house.run(&["mcp", "tools", "far"]).good().text().starts_with("read"));
    }
    assert_eq!(first_lines(&sent), ["POST /oauth/register HTTP/1.1", "POST /oauth/token HTTP/1.1"]);
}

#[test]
fn a_server_with_resource_metadata_is_not_taken_for_an_old_one() {
    let cases: [(fn(&str) -> Value, ResourceMetadata, &str); 6] = [
        (with_path, ResourceMetadata::Published, "issuer mismatch"),
        (with_path, ResourceMetadata::Lost, "issuer mismatch"),
        (no_metadata, ResourceMetadata::Lost, "can't be read"),
        // An old server speaks for itself only.
        (other_issuer, ResourceMetadata::Absent, "issuer mismatch"),
        (other_tokens, ResourceMetadata::Absent, "issuer mismatch"),
        (other_clients, ResourceMetadata::Absent, "issuer mismatch"),
    ];
    for (metadata, resource, why) in cases {
        let (base, sent) = own_server(metadata, resource);
        login(&house_for(&base), "far", |_| panic!("no page opens")).refused(2, why);
        assert_eq!(first_lines(&sent), Vec::<String>::new());
    }
}

fn form_of(body: &str) -> BTreeMap<String, String> {
    body.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

/// An assertion for one server, as an identity provider writes it. Nobody here checks its signature.
fn identity_assertion(issuer: &str, audience: &str, resource: &str) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"iss": issuer, "sub": "ada", "aud": audience, "client_id": "me", "jti": "1", "iat": 1,
        "exp": 4_102_444_800_u64, "resource": resource});
    let header = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
    format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode("signed"))
}

/// An identity provider that knows the user by `good-token`, and what it got. With `stray-token`, its assertion is for
/// another server.
fn identity_provider() -> (String, SentRequests) {
    let sent = SentRequests::default();
    let seen = sent.clone();
    let base = serve(move |base, head, body| {
        seen.lock().expect("unpoisoned").push((head.to_owned(), body.to_owned()));
        let form = form_of(body);
        let audience = match form["subject_token"].as_str() {
            "good-token" => form["audience"].as_str(),
            "stray-token" => "http://127.0.0.1:9",
            _ => return ("400 Bad Request", String::new(), json!({"error": "invalid_grant"}).to_string()),
        };
        ok(&json!({"access_token": identity_assertion(base, audience, &form["resource"]), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}))
    });
    (base, sent)
}

/// A server whose authorization server takes assertions, and what that got.
fn vouched_server() -> (String, SentRequests) {
    let sent = SentRequests::default();
    let seen = sent.clone();
    let base = serve(move |base, head, body| match head.split(' ').nth(1).unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => {
            ok(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
        }
        "/.well-known/oauth-authorization-server" => ok(&json!({"issuer": base,
            "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
            "token_endpoint_auth_methods_supported": ["client_secret_basic"]})),
        "/token" => {
            seen.lock().expect("unpoisoned").push((head.to_owned(), body.to_owned()));
            ok(&json!({"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}))
        }
        "/mcp" => protected(head, body, "error=\"invalid_token\""),
        _ => ("404 Not Found", String::new(), "{}".to_owned()),
    });
    (base, sent)
}

fn basic(client: &str) -> String {
    format!("authorization: Basic {}", STANDARD.encode(client))
}

#[test]
fn an_identity_provider_vouches_for_the_user() {
    for (setting, is_public) in [("id_token", true), ("refresh_token", false)] {
        let ((provider, asked), (base, granted)) = (identity_provider(), vouched_server());
        let secret = if is_public { "" } else { "\n          client_secret: ${DESK_SECRET}" };
        let oauth = format!(
            "        grant: cross_app_access\n        client_id: me\n        client_secret: ${{APP_SECRET}}\n        \
             identity_provider:\n          issuer: {provider}\n          token_endpoint: {provider}/token\n          \
             client_id: desk{secret}\n          {setting}: ${{WORK_TOKEN}}\n"
        );
        let house = configured(&format!("    far:\n      url: {base}/mcp\n      oauth:\n{oauth}"));
        let run = |words: &[&str], token: &str| -> Done {
            let mut command = house.command(words);
            command.env("WORK_TOKEN", token).env("APP_SECRET", "made-for-me").env("DESK_SECRET", "made-for-desk");
            finish(command, b"")
        };
        assert!(run(&["mcp", "tools", "far"], "good-token").good().text().starts_with("read"));
        let (head, body) = asked.lock().expect("unpoisoned")[0].clone();
        let form = form_of(&body);
        for (name, value) in [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
            ("subject_token_type", format!("urn:ietf:params:oauth:token-type:{setting}").as_str()),
            ("subject_token", "good-token"),
            ("audience", base.as_str()),
            ("resource", format!("{base}/mcp").as_str()),
        ] {
            assert_eq!(form[name], value, "{name}");
        }
        assert_eq!(form.get("client_id").map(String::as_str), is_public.then_some("desk"));
        assert_eq!(head.contains(&basic("desk:made-for-desk")), !is_public, "{head}");
        // The authorization server gets the assertion, and nothing of the user's token.
        let (head, body) = granted.lock().expect("unpoisoned")[0].clone();
        assert!(head.contains(&basic("me:made-for-me")), "{head}");
        assert!(!head.contains("good-token") && !body.contains("good-token"), "{head}{body}");
        let form = form_of(&body);
        assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
        assert_eq!(form["assertion"], identity_assertion(&provider, &base, &format!("{base}/mcp")));
        // What the provider refuses, or gives for another server, goes nowhere.
        let expired = run(&["mcp", "tools", "far"], "expired-token").refused(2, "may have expired");
        let stray = run(&["mcp", "tools", "far"], "stray-token").refused(2, "unusable answer");
        assert!(!expired.err.contains("expired-token") && !stray.err.contains("stray-token"), "{expired:?}{stray:?}");
        assert_eq!(granted.lock().expect("unpoisoned").len(), 1);
        run(&["mcp", "login", "far"], "good-token").refused(2, "needs no browser");
        assert!(!house.run(&["secrets", "list", "--json"]).good().text().contains("MCP_LOGIN"));
        house.run(&["mcp", "tools", "far"]).refused(2, "APP_SECRET is missing");
    }
}
