//! `tracebook serve` and `tracebook tokens`: what a program gets over HTTP, and what is refused. The client writes its
//! requests byte by byte, because many of them are ones that no library would send.

use super::agents;
use super::follower::{NOVEMBER, learned};
use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A server that doesn't answer in this time is considered hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// `tracebook serve` in a house. Killed on drop.
pub(in crate::line) struct Server {
    child: Child,
    pub(in crate::line) address: String,
    pub(super) socket: String,
    /// The link that pairs one browser.
    pub(super) pair: String,
}

impl Server {
    pub(in crate::line) fn new(house: &House) -> Server {
        let server = Server::with(house, &["--listen", "127.0.0.1:0", "--host", "notes.example"]);
        assert!(!server.address.is_empty() && !server.pair.is_empty(), "no address");
        server
    }

    /// The same with these options. Without TCP, there's no address and no link.
    pub(super) fn with(house: &House, options: &[&str]) -> Server {
        let words: Vec<&str> = ["serve", "--json"].iter().chain(options).copied().collect();
        let mut child = house.command(&words).stderr(Stdio::inherit()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let places: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |name: &str| places[name].as_str().unwrap_or_default();
        let address = text("url").split_once("://").map_or("", |(_, address)| address).to_owned();
        let socket = house.path(places["socket"].as_str().expect("a socket")).display().to_string();
        let pair = text("pair").to_owned();
        Server { child, address, socket, pair }
    }

    /// Id of the server's process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(in crate::line) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Sends a request as it is, and returns the answer.
    pub(in crate::line) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early closes the connection while the body is still sent.
        let _ = stream.write_all(request);
        Answer::read(&mut stream)
    }

    pub(in crate::line) fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.raw(request_text(&self.address, token, method, path, headers, body).as_bytes())
    }

    pub(in crate::line) fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, "GET", path, &[], "")
    }

    pub(in crate::line) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(token, "POST", path, &[("Content-Type", "application/json")], &body.to_string())
    }

    /// Asks the server to end, and waits until it has.
    pub(in crate::line) fn end(mut self) {
        let pid = self.child.id().to_string();
        std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("told");
        until("the server ends", || self.child.try_wait().expect("a process").is_some());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(in crate::line) fn request_text(
    host: &str,
    token: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if headers.iter().all(|(name, _)| *name != "Host") {
        request += &format!("Host: {host}\r\n");
    }
    if !token.is_empty() {
        request += &format!("Authorization: Bearer {token}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + "\r\n" + body
}

/// An answer of the server.
#[derive(Debug)]
pub(in crate::line) struct Answer {
    pub(in crate::line) status: u16,
    pub(in crate::line) head: String,
    pub(in crate::line) body: Vec<u8>,
}

impl Answer {
    pub(in crate::line) fn read(stream: &mut impl Read) -> Answer {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut body = bytes[end + 4..].to_vec();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = dechunked(&body);
        }
        Answer { status, head, body }
    }

    #[track_caller]
    pub(in crate::line) fn code(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{} {}", self.head, String::from_utf8_lossy(&self.body));
        self
    }

    #[track_caller]
    pub(in crate::line) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(in crate::line) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    /// Asserts a refusal in the form of RFC 9457.
    #[track_caller]
    pub(in crate::line) fn refused(self, status: u16, about: &str) {
        let answer = self.code(status);
        assert_eq!(answer.header("Content-Type").as_deref(), Some("application/problem+json"));
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(about), "does not say “{about}”: {detail}");
        assert_eq!(answer.header("Access-Control-Allow-Origin"), None);
    }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).expect("a size");
        let from = end + 2;
        if size == 0 || rest.len() < from + size {
            break;
        }
        whole.extend_from_slice(&rest[from..from + size]);
        rest = rest.get(from + size + 2..).unwrap_or_default();
    }
    whole
}

pub(in crate::line) fn token(house: &House, name: &str, options: &[&str]) -> String {
    let words: Vec<&str> = ["tokens", "create", name, "--json"].iter().chain(options).copied().collect();
    house.run(&words).code(0).json()["token"].as_str().expect("a token").to_owned()
}

pub(in crate::line) const NOTE: &str = "/api/v1/volumes/notes/notes/";

pub(in crate::line) fn notes() -> House {
    House::with(&[
        ("Boat.md", "# Boat\n\nThe solar panel gives 12 volts.\n\n- [ ] Paint the hull\n"),
        ("Ideas/Sail é.md", "# Sail\r\n\r\nSee [[Boat]].\r\n"),
        ("Cells.md", "# Cells\n\n```python\nprint('from the cell')\n6 * 7\n```\n"),
    ])
}

#[test]
fn tokens_are_shown_once_listed_and_revoked() {
    let house = notes();
    let made = house.run(&["tokens", "create", "phone", "--scopes", "read,write", "--days", "1"]).code(0);
    let shown = made.text();
    assert!(shown.starts_with("tb_") && made.err.contains("only now"), "{made:?}");
    house.run(&["tokens", "create", "phone"]).refused(2, "named phone already");
    house.run(&["tokens", "create", "x", "--scopes", "read,root"]).refused(2, "there are read, write");
    house.run(&["tokens", "revoke", "nobody"]).refused(2, "no token nobody");
    let listed = &house.run(&["tokens", "--json"]).good().lines()[0];
    assert_eq!((&listed["name"], &listed["scopes"]), (&json!("phone"), &json!(["read", "write"])));
    assert!(listed["token"].is_null() && listed["hash"].is_null(), "{listed}");
    let kept = String::from_utf8(house.read("W/access-tokens.json")).expect("text");
    let secret = shown.trim().rsplit('_').next().expect("a secret");
    assert!(!kept.contains(secret), "the secret is kept");
    let mode = std::os::unix::fs::MetadataExt::mode(&house.path("W/access-tokens.json").metadata().expect("a file"));
    assert_eq!(mode & 0o777, 0o600);
    house.run(&["tokens", "revoke", "phone"]).good();
    assert!(house.run(&["tokens", "--json"]).good().lines().is_empty());
}

#[test]
fn only_a_valid_token_with_the_scope_is_answered() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let admin = token(&house, "admin", &["--scopes", "admin"]);
    let server = Server::new(&house);
    server.get(&read, "/api/v1/volumes").code(200);
    // Without, guessed, cut, and under another scheme.
    server.get("", "/api/v1/volumes").refused(401, "Bearer");
    assert!(server.get("", "/api/v1/volumes").header("WWW-Authenticate").is_some());
    let guessed = format!("{}{}", &read[..read.len() - 1], if read.ends_with('0') { '1' } else { '0' });
    for wrong in [guessed.as_str(), &read[..read.len() - 1], "tb_x_y", "x", "tb_"] {
        server.get(wrong, "/api/v1/volumes").refused(401, "isn't known");
    }
    let basic = format!("Basic {read}");
    server.send("", "GET", "/api/v1/volumes", &[("Authorization", &basic)], "").refused(401, "Bearer");
    // Of another scope.
    let task = json!({"description": "go"});
    server.post(&read, "/api/v1/tasks", &task).refused(403, "`agent`");
    server.post(&read, "/api/v1/approvals/x", &json!({"approved": true})).refused(403, "`approve`");
    server.post(&read, "/api/v1/cells/run", &json!({"volume": "notes", "path": "Cells.md"})).refused(403, "`run`");
    server.send(&read, "PUT", &format!("{NOTE}Boat.md"), &[], "x").refused(403, "`write`");
    server.send(&read, "DELETE", &format!("{NOTE}Boat.md"), &[], "").refused(403, "`write`");
    server.get(&read, "/api/v1/tokens").refused(403, "`admin`");
    server.get(&admin, "/api/v1/volumes").refused(403, "`read`");
    // Expired: the file has it in the past.
    let mut kept: Value = serde_json::from_slice(&house.read("W/access-tokens.json")).expect("JSON");
    let expires = kept[0]["expires"].take();
    kept[0]["expires"] = 1.into();
    house.write("W/access-tokens.json", kept.to_string().as_bytes());
    server.get(&read, "/api/v1/volumes").refused(401, "expired");
    kept[0]["expires"] = expires;
    house.write("W/access-tokens.json", kept.to_string().as_bytes());
    server.get(&read, "/api/v1/volumes").code(200);
    // Revoked, from a terminal and over HTTP: at once.
    let listed = server.get(&admin, "/api/v1/tokens").code(200).json();
    let id = listed["tokens"][0]["id"].as_str().expect("an id");
    server.send(&admin, "DELETE", &format!("/api/v1/tokens/{id}"), &[], "").code(204);
    server.get(&read, "/api/v1/volumes").refused(401, "isn't known");
    let log = server.get(&admin, "/api/v1/audit?limit=1000").code(200).json();
    let log = log["entries"].as_array().expect("a list");
    let has = |token: &Value, path: &str, status: u16| {
        log.iter().any(|entry| &entry["token"] == token && entry["path"] == path && entry["status"] == status)
    };
    assert!(has(&Value::Null, "/api/v1/volumes", 401) && has(&json!(id), "/api/v1/tasks", 403), "{log:?}");
    house.run(&["tokens", "revoke", "admin"]).good();
    server.get(&admin, "/api/v1/audit").refused(401, "isn't known");
    server.end();
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let path = "/api/v1/volumes";
    let port = server.address.rsplit(':').next().expect("a port").to_owned();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), "notes.example".to_owned()] {
        server.send(&read, "GET", path, &[("Host", &host)], "").code(200);
    }
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io"] {
        server.send(&read, "GET", path, &[("Host", host)], "").refused(403, "isn't known under that host");
        server.send("", "GET", "/api/v1/openapi.json", &[("Host", host)], "").refused(403, "host");
    }
    server.send(&read, "GET", path, &[("Host", "localhost"), ("Host", "evil.example")], "").refused(400, "Host");
    let own = format!("http://{}", server.address);
    server.send(&read, "GET", path, &[("Origin", &own)], "").code(200);
    for origin in ["http://evil.example", "null", "https://localhost", "http://127.0.0.1:1", ""] {
        server.send(&read, "GET", path, &[("Origin", origin)], "").refused(403, "other sites");
    }
    server.send(&read, "GET", path, &[("Sec-Fetch-Site", "cross-site")], "").refused(403, "other sites");
    // A browser asks before it sends a token from another page, and is never told that it may.
    let ask = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "GET")];
    server.send("", "OPTIONS", path, &ask, "").refused(403, "other sites");
    // The same over the socket in the workspace.
    let mut stream = UnixStream::connect(&server.socket).expect("connected");
    stream.write_all(request_text("localhost", &read, "GET", path, &[], "").as_bytes()).expect("sent");
    Answer::read(&mut stream).code(200);
    let mut stream = UnixStream::connect(&server.socket).expect("connected");
    stream.write_all(request_text("localhost", "", "GET", path, &[], "").as_bytes()).expect("sent");
    Answer::read(&mut stream).refused(401, "Bearer");
    server.end();
}

#[test]
fn notes_are_read_byte_by_byte_and_written_only_over_what_was_read() {
    let house = notes();
    house.write("notes/Latin.md", b"caf\xe9\n");
    let all = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let listed = server.get(&all, "/api/v1/volumes/notes/notes?limit=2").code(200).json();
    assert_eq!(listed["total"], 3, "{listed}");
    let next = format!("/api/v1/volumes/notes/notes?limit=2&cursor={}", listed["next_cursor"]);
    let rest = server.get(&all, &next).code(200).json();
    assert_eq!((rest["notes"].as_array().map(Vec::len), &rest["next_cursor"]), (Some(1), &Value::Null), "{rest}");
    let sail = server.get(&all, &format!("{NOTE}Ideas/Sail%20%C3%A9.md")).code(200);
    assert_eq!(sail.body, house.read("notes/Ideas/Sail é.md"));
    assert_eq!(server.get(&all, &format!("{NOTE}Ideas%2FSail%20%C3%A9.md")).code(200).body, sail.body);
    assert!(sail.header("Content-Type").is_some_and(|kind| kind.starts_with("text/markdown")), "{sail:?}");
    let tag = sail.header("ETag").expect("a tag");
    let path = format!("{NOTE}Ideas/Sail%20%C3%A9.md");
    server.send(&all, "GET", &path, &[("If-None-Match", &tag)], "").code(304);
    // A text is replaced only over the one that was read.
    server.send(&all, "PUT", &path, &[], "x").refused(428, "If-Match");
    let written = server.send(&all, "PUT", &path, &[("If-Match", &tag)], "# Sail\r\n\r\nCotton é.\r\n").code(200);
    let newer = written.header("ETag").expect("a tag");
    assert_ne!(newer, tag);
    assert_eq!(house.read("notes/Ideas/Sail é.md"), "# Sail\r\n\r\nCotton é.\r\n".as_bytes());
    server.send(&all, "PUT", &path, &[("If-Match", &tag)], "lost").refused(412, "another text");
    server.send(&all, "PUT", &path, &[("If-Match", &format!("W/{newer}"))], "lost").refused(412, "another text");
    server.send(&all, "DELETE", &path, &[("If-Match", &tag)], "").refused(412, "another text");
    // Another program changes it meanwhile.
    house.edit("Sail é.md", 0, 0, "from elsewhere\n");
    server.send(&all, "PUT", &path, &[("If-Match", &newer)], "lost").refused(412, "another text");
    assert!(house.read("notes/Ideas/Sail é.md").starts_with(b"from elsewhere\n# Sail"));
    // Of many at once with the same tag, one wins.
    let tag = server.get(&all, &path).code(200).header("ETag").expect("a tag");
    let won = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|number| {
                let (server, all, path, tag) = (&server, &all, &path, &tag);
                scope.spawn(move || {
                    server.send(all, "PUT", path, &[("If-Match", tag)], &format!("written by {number}\n")).status
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("answered")).filter(|status| *status == 200).count()
    });
    assert_eq!(won, 1);
    // New notes.
    let new = format!("{NOTE}New/Plan.md");
    server.get(&all, &new).refused(404, "no note New/Plan.md");
    server.send(&all, "PUT", &new, &[("If-Match", "*")], "x").refused(412, "another text");
    let made = server.send(&all, "PUT", &new, &[("If-None-Match", "*")], "# Plan\n").code(201);
    assert_eq!((made.json()["path"].as_str(), made.json()["bytes"].as_u64()), (Some("New/Plan.md"), Some(7)));
    assert_eq!(house.read("notes/New/Plan.md"), b"# Plan\n");
    server.send(&all, "PUT", &new, &[("If-None-Match", "*")], "lost").refused(412, "already");
    // A file that isn't UTF-8 is kept as an attachment, and its name is taken all the same.
    let latin = format!("{NOTE}Latin.md");
    server.get(&all, &latin).refused(404, "no note Latin.md");
    server.send(&all, "PUT", &latin, &[("If-None-Match", "*")], "lost").refused(412, "already exists");
    assert_eq!(house.read("notes/Latin.md"), b"caf\xe9\n");
    server.send(&all, "PUT", &format!("{latin}/A.md"), &[("If-None-Match", "*")], "lost").refused(422, "not a folder");
    let volume = server.get(&all, "/api/v1/volumes").code(200).json()["volumes"][0]["id"].take();
    let by_id = format!("/api/v1/volumes/{}/notes/ById.md", volume.as_str().expect("an id"));
    server.send(&all, "PUT", &by_id, &[("If-None-Match", "*")], "x").refused(404, "no volume");
    assert!(!house.path("notes/ById.md").exists());
    // An address is exact, also if a folder is called as the volume.
    let made = server.send(&all, "PUT", &format!("{NOTE}notes/Exact.md"), &[("If-None-Match", "*")], "x").code(201);
    assert_eq!(made.json()["path"], "notes/Exact.md");
    assert_eq!(house.read("notes/notes/Exact.md"), b"x");
    // Files that others run or obey, and what isn't a note.
    for (path, status) in [("AGENTS.md", 403), ("CLAUDE.local.md", 403), ("run.sh", 422), (".git/hooks/x.md", 403)] {
        let answer = server.send(&all, "PUT", &format!("{NOTE}{path}"), &[("If-None-Match", "*")], "obey");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(!house.path(&format!("notes/{path}")).exists());
    }
    // The trash, from which it comes back.
    server.send(&all, "DELETE", &new, &[], "").code(204);
    server.get(&all, &new).refused(404, "no note");
    server.send(&all, "DELETE", &new, &[], "").refused(404, "no note");
    house.run(&["restore-note", "Plan.md"]).code(0);
    assert_eq!(server.get(&all, &new).code(200).body, b"# Plan\n");
    server.end();
}

#[test]
fn no_path_leads_out_of_the_volume_of_the_token() {
    let house = notes();
    house.write("secret.md", b"secret\n");
    house.write("other/Boat.md", b"the other boat\n");
    house.write("other/Only.md", b"only here solar\n\n- [ ] Other todo\n");
    house.run(&["open", "other"]).good();
    let all = token(&house, "all", &["--scopes", "read,write,run,agent,approve,admin"]);
    let own = token(&house, "own", &["--scopes", "read,write,run", "--volume", "notes"]);
    let server = Server::new(&house);
    let before = crate::program::bytes(&house.path("other"));
    for path in [
        "..%2Fsecret.md",
        "../secret.md",
        "Ideas/..%2F..%2Fsecret.md",
        "%2e%2e/secret.md",
        "%2Fetc%2Fpasswd",
        "Ideas//Sail.md",
        "./Boat.md",
        "..%5Csecret.md",
        "Boat.md%00.md",
        "%00",
        "Boat%0A.md",
        "%FF.md",
        "%",
        "%zz",
        "other:Only.md",
        "notes:Boat.md",
        "Boat",
        "Boat.md%23x",
        "--workspace=%2Ftmp",
        "",
    ] {
        let mut was_made = false;
        for method in ["GET", "PUT", "DELETE"] {
            let headers = [("If-None-Match", "*")];
            let headers: &[(&str, &str)] = if method == "PUT" { &headers } else { &[] };
            let answer = server.send(&all, method, &format!("{NOTE}{path}"), headers, "x");
            // Odd names are names all the same, inside the volume.
            let is_name = (method == "PUT" && answer.status == 201) || (was_made && answer.status == 204);
            was_made |= is_name;
            assert!((400..500).contains(&answer.status) || is_name, "{method} {path}: {answer:?}");
        }
        for endpoint in ["cells/run", "cells/stop", "todos/check"] {
            let named = path.replace("%00", "\0").replace("%2F", "/").replace("%2e", ".").replace("%5C", "\\");
            let mut body = json!({"volume": "notes", "path": named});
            if endpoint == "todos/check" {
                body["text"] = "Paint".into();
                body["at"] = 0.into();
            }
            let answer = server.post(&all, &format!("/api/v1/{endpoint}"), &body);
            assert!((400..500).contains(&answer.status), "{endpoint} {path}: {answer:?}");
        }
        let outputs = server.get(&all, &format!("/api/v1/cells/outputs?volume=notes&path={path}"));
        assert!((400..500).contains(&outputs.status), "{path}: {outputs:?}");
        for endpoint in ["tasks", "runs", "tokens"] {
            let answer = server.get(&all, &format!("/api/v1/{endpoint}/{path}/x"));
            assert!((400..500).contains(&answer.status), "{endpoint} {path}: {answer:?}");
        }
        let answer = server.post(&all, &format!("/api/v1/approvals/{path}"), &json!({"approved": true}));
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
    }
    assert_eq!(house.read("secret.md"), b"secret\n");
    assert_eq!(crate::program::bytes(&house.path("other")), before);
    // A token for one volume sees nothing of the other.
    let volumes = server.get(&own, "/api/v1/volumes").code(200).json();
    assert_eq!(volumes["volumes"].as_array().map(Vec::len), Some(1), "{volumes}");
    server.get(&own, &format!("{NOTE}Boat.md")).code(200);
    for path in ["Boat.md", "Only.md", "notes:Boat.md"] {
        let path = format!("/api/v1/volumes/other/notes/{path}");
        server.get(&own, &path).refused(403, "another volume");
        server.send(&own, "PUT", &path, &[("If-None-Match", "*")], "x").refused(403, "another volume");
        server.send(&own, "DELETE", &path, &[], "").refused(403, "another volume");
    }
    server.post(&own, "/api/v1/cells/run", &json!({"volume": "other", "path": "Only.md"})).refused(403, "volume");
    let hits = server.get(&own, "/api/v1/search?query=solar").code(200).json();
    assert!(!hits["hits"].as_array().expect("hits").is_empty() && !hits.to_string().contains("Only"), "{hits}");
    assert!(server.get(&all, "/api/v1/search?query=solar").code(200).json().to_string().contains("Only"));
    let todos = server.get(&own, "/api/v1/todos").code(200).json();
    assert_eq!(todos["todos"].as_array().map(Vec::len), Some(1), "{todos}");
    server.end();
}

#[test]
fn large_and_slow_clients_cost_little() {
    let house = notes();
    let all = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let put = format!("{NOTE}Large.md");
    let body = "x".repeat(10 << 20);
    server.send(&all, "PUT", &put, &[("If-None-Match", "*")], &body).refused(413, "at most");
    let endless = format!(
        "PUT {put} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {all}\r\nIf-None-Match: *\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    server.raw(endless.as_bytes()).refused(413, "at most");
    assert!(!house.path("notes/Large.md").exists());
    server.post(&all, "/api/v1/todos/check", &json!({"volume": 7})).refused(422, "doesn't fit");
    server.send(&all, "POST", "/api/v1/todos/check", &[], "{}").refused(415, "application/json");
    server.get(&all, "/api/v1/search?query=x&limit=0").refused(400, "from 1 to");
    server.get(&all, "/api/v1/search").refused(400, "query");
    server.get(&all, "/api/v1/nowhere").refused(404, "nothing at this path");
    let patched = server.send(&all, "PATCH", "/api/v1/volumes", &[], "");
    assert!(patched.header("Allow").is_some_and(|allow| allow.contains("GET")), "{patched:?}");
    patched.refused(405, "other methods");
    // What names nothing isn't there, whatever it's made of; 3.0 is a whole number.
    let todo = json!({"volume": "notes", "path": "Boat.md", "text": "No such todo", "at": 3.0});
    server.post(&all, "/api/v1/todos/check", &todo).refused(404, "");
    server.get(&all, "/api/v1/search?query=@nobody").refused(404, "nobody");
    server.get(&all, "/api/v1/memory?project=%00").refused(404, "no volume");
    server.post(&all, "/api/v1/memory", &json!({"text": " "})).refused(409, "no words");
    // Half of a head, half of a body, and nothing at all: all are closed, and others are answered meanwhile.
    let mut halves: Vec<TcpStream> = (0..30).map(|_| server.connect()).collect();
    for (at, half) in halves.iter_mut().enumerate() {
        let half_body = format!(
            "PUT {put} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {all}\r\nIf-None-Match: *\r\n\
             Content-Length: 100\r\n\r\nhalf"
        );
        let text = ["", "GET /api/v1/volumes HTTP/1.1\r\nHost: local", half_body.as_str()][at % 3];
        half.write_all(text.as_bytes()).expect("sent");
    }
    let begun = Instant::now();
    server.get(&all, "/api/v1/volumes").code(200);
    for (at, half) in halves.iter_mut().enumerate() {
        let mut said = Vec::new();
        half.read_to_end(&mut said).expect("closed by the server");
        let said = String::from_utf8_lossy(&said);
        assert!(at % 3 < 2 || said.starts_with("HTTP/1.1 408"), "{at}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    assert!(!house.path("notes/Large.md").exists());
    server.end();
}

/// A client of `/api/v1/events`.
pub(super) struct EventClient(BufReader<TcpStream>);

impl EventClient {
    fn new(server: &Server, token: &str, headers: &[(&str, &str)]) -> EventClient {
        EventClient::over(server.connect(), server, token, headers)
    }

    /// The same over a connection.
    pub(super) fn over(mut stream: TcpStream, server: &Server, token: &str, headers: &[(&str, &str)]) -> EventClient {
        let request = request_text(&server.address, token, "GET", "/api/v1/events", headers, "");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut client = EventClient(BufReader::new(stream));
        let head = client.line();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        while !client.line().is_empty() {}
        client
    }

    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        assert!(!line.is_empty(), "the stream ended");
        line.trim_end().to_owned()
    }

    /// Returns the id and the data of the next event.
    pub(super) fn next(&mut self) -> (String, Value) {
        let (mut id, mut data) = (String::new(), None);
        loop {
            let line = self.line();
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")));
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return (id, data);
            }
        }
    }

    /// Returns the id of the next event of this file.
    fn created(&mut self, path: &str) -> String {
        loop {
            let (id, event) = self.next();
            if event["kind"] == "FILE_CHANGED" && event["path"] == path {
                return id;
            }
        }
    }
}

#[test]
fn a_client_that_was_away_gets_the_events_it_missed() {
    let house = notes();
    house.write("other/x.md", b"x\n");
    house.run(&["open", "other"]).good();
    let read = token(&house, "reader", &[]);
    let own = token(&house, "own", &["--volume", "other"]);
    let server = Server::new(&house);
    let mut client = EventClient::new(&server, &read, &[]);
    let mut other = EventClient::new(&server, &own, &[]);
    house.run(&["new", "One", "--volume", "notes", "--text", "x"]).good();
    let id = client.created("One.md");
    drop(client);
    house.run(&["new", "Two", "--volume", "notes", "--text", "x"]).good();
    house.run(&["new", "Three", "--volume", "other", "--text", "x"]).good();
    // Live, the other token gets only what is of its volume.
    let (_, event) = other.next();
    assert_eq!(event["path"], "Three.md", "{event}");
    let mut client = EventClient::new(&server, &read, &[("Last-Event-ID", &id)]);
    client.created("Two.md");
    client.created("Three.md");
    // An edit is an event, too.
    house.edit("Two.md", 0, 0, "more ");
    client.created("Two.md");
    // An id of another server, or none at all, is answered with a gap.
    for wrong in ["0-1", "nonsense", ""] {
        let mut client = EventClient::new(&server, &read, &[("Last-Event-ID", wrong)]);
        assert_eq!(client.next().1["kind"], "GAP");
    }
    server.get("", "/api/v1/events").refused(401, "Bearer");
    server.end();
}

#[test]
fn a_task_asks_for_approval_and_is_decided_over_http() {
    let model = agents::model(|turn, _| match turn {
        0 => (String::new(), vec![("shell", json!({"command": "echo made > made.txt"}))]),
        _ => ("It is made.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("Boat.md", "The panel gives 12 volts.\n")]);
    let all = token(&house, "all", &["--scopes", "read,agent"]);
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let agents = server.get(&all, "/api/v1/agents").code(200).json();
    for field in ["id", "name", "role", "status", "capabilities", "can_handle", "progress"] {
        assert!(!agents[0][field].is_null(), "{field}: {agents}");
    }
    let task = json!({"type": "build", "description": "Make it", "context": {"color": "red"}, "priority": 2});
    let made = server.post(&all, "/api/v1/tasks", &task).code(201);
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(made.header("Location"), Some(format!("/api/v1/tasks/{id}")));
    let status = || server.get(&all, &format!("/api/v1/tasks/{id}")).code(200).json();
    let pending = || server.get(&approver, "/api/v1/approvals/pending").code(200).json();
    until("it waits for a decision", || !pending().as_array().expect("a list").is_empty());
    // What its owner would be asked about was not done.
    assert!(!house.path("notes/made.txt").exists());
    assert_eq!(status()["status"], "pending");
    let agents = server.get(&all, "/api/v1/agents").code(200).json();
    let busy = agents.as_array().expect("a list").iter().find(|agent| agent["progress"][0]["run"] == id.as_str());
    let busy = busy.unwrap_or_else(|| panic!("no agent works on it: {agents}"));
    assert_eq!(busy["status"], "busy", "{busy}");
    assert!(busy["progress"][0]["limit"].as_u64().is_some_and(|limit| limit > 0), "{busy}");
    let waiting = pending();
    let action = waiting[0]["action_id"].as_str().expect("an id").to_owned();
    assert_eq!((&waiting[0]["action_type"], &waiting[0]["run"]), (&json!("shell"), &json!(id)), "{waiting}");
    let decide = format!("/api/v1/approvals/{action}");
    server.post(&all, &decide, &json!({"approved": true})).refused(403, "`approve`");
    server.post(&approver, &decide, &json!({"approved": "yes"})).refused(422, "doesn't fit");
    server.post(&approver, "/api/v1/approvals/00000000:t0c0", &json!({"approved": true})).refused(404, "nothing");
    server.post(&approver, &decide, &json!({"approved": true, "comment": "fine"})).code(200);
    until("it's done", || status()["status"] == "completed");
    let done = status();
    assert_eq!((&done["progress"], &done["result"]["answer"]), (&json!(1.0), &json!("It is made.")), "{done}");
    server.post(&approver, &decide, &json!({"approved": true})).refused(404, "nothing");
    let steps = server.get(&all, &format!("/api/v1/runs/{id}/steps")).code(200).json();
    assert!(steps["steps"].to_string().contains("made.txt"), "{steps}");
    let runs = server.get(&all, "/api/v1/runs").code(200).json();
    assert_eq!((&runs["total"], &runs["runs"][0]["id"]), (&json!(1), &json!(id)), "{runs}");
    assert!(server.get(&all, &format!("/api/v1/runs/{id}")).code(200).json()["about"].is_object());
    server.get(&all, "/api/v1/tasks/00000000000000000000000000000000").refused(404, "no such task");
    server.post(&all, "/api/v1/tasks", &json!({"description": ""})).refused(422, "`description`");
    // An agent that isn't there fails its task, with the reason.
    let wrong = server.post(&all, "/api/v1/tasks", &json!({"description": "x", "agent": "nobody"})).code(201).json();
    let path = format!("/api/v1/tasks/{}", wrong["id"].as_str().expect("an id"));
    let failed = || server.get(&all, &path).code(200).json();
    until("it has failed", || failed()["status"] == "failed");
    assert!(failed()["result"]["error"].as_str().is_some_and(|why| why.contains("nobody")), "{}", failed());
    server.end();
}

#[test]
fn a_replay_is_approved_over_http_and_asks_no_model() {
    let (house, count, asked) = learned();
    house.run(&["ask", NOVEMBER, "--mode", "follower", "--no-wait"]).code(1);
    let approver = token(&house, "phone", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let pending = || server.get(&approver, "/api/v1/approvals/pending").code(200).json();
    until("it waits", || pending()[0]["action_id"].is_string());
    let waiting = pending();
    let action = waiting[0]["action_id"].as_str().expect("an id");
    server.post(&approver, &format!("/api/v1/approvals/{action}"), &json!({"approved": true})).code(200);
    let newest = || house.run(&["runs", "--json"]).good().lines().remove(0);
    until("it is done", || newest()["standing"] == "done");
    assert!(house.path("notes/reports/2026-11.txt").exists());
    let over = newest();
    assert_eq!((&over["prompt"], &over["iteration"]), (&json!(NOVEMBER), &json!(0)), "{over}");
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    server.end();
}

#[test]
fn cells_run_and_their_outputs_are_read() {
    let house = notes();
    let run = token(&house, "runner", &["--scopes", "read,run"]);
    let server = Server::new(&house);
    let ran = server.post(&run, "/api/v1/cells/run", &json!({"volume": "notes", "path": "Cells.md"})).code(200).json();
    assert!(ran["ok"] == true && ran["outputs"].to_string().contains("from the cell"), "{ran}");
    let outputs = server.get(&run, "/api/v1/cells/outputs?volume=notes&path=Cells.md").code(200).json();
    assert_eq!(outputs["cells"][0]["status"], "ok", "{outputs}");
    let ninth = json!({"volume": "notes", "path": "Cells.md", "cell": 9});
    server.post(&run, "/api/v1/cells/run", &ninth).refused(404, "9");
    let todos = server.get(&run, "/api/v1/todos?words=hull").code(200).json();
    let todo = &todos["todos"][0];
    let check = json!({"volume": "notes", "path": todo["path"], "text": todo["text"], "at": todo["at"]});
    server.post(&run, "/api/v1/todos/check", &check).refused(403, "`write`");
    let write = token(&house, "writer", &["--scopes", "write"]);
    assert_eq!(server.post(&write, "/api/v1/todos/check", &check).code(200).json()["done"], true);
    until("the file has it", || String::from_utf8_lossy(&house.read("notes/Boat.md")).contains("- [x] Paint"));
    let described = server.get("", "/api/v1/openapi.json").code(200).json();
    assert_eq!(described["openapi"], "3.1.0");
    // Programs that read it take no null for what is left out.
    assert!(!described.to_string().contains(":null"), "{described}");
    server.end();
}

#[test]
fn mcp_over_http_offers_what_the_token_allows() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let accepts = ("Accept", "application/json, text/event-stream");
    let call = |token: &str, session: &str, message: &Value| -> Answer {
        let mut headers = vec![accepts, ("Content-Type", "application/json")];
        if !session.is_empty() {
            headers.extend([("Mcp-Session-Id", session), ("Mcp-Protocol-Version", "2025-06-18")]);
        }
        server.send(token, "POST", "/mcp", &headers, &message.to_string())
    };
    let result = |answer: Answer| -> Value {
        let text = String::from_utf8(answer.code(200).body).expect("text");
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let found = data.filter_map(|data| serde_json::from_str::<Value>(data).ok()).find(|value| value["id"] == 1);
        found.unwrap_or_else(|| panic!("no answer: {text}"))
    };
    let client = json!({"name": "t", "version": "1"});
    let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let open = |token: &str| -> String {
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
        let answer = call(token, "", &begin);
        let session = answer.header("Mcp-Session-Id").expect("a session");
        assert_eq!(result(answer)["result"]["serverInfo"]["name"], "tracebook");
        call(token, &session, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).code(202);
        session
    };
    let tool = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let session = open(&read);
    let note = result(call(&read, &session, &tool("read_note", json!({"note": "Boat.md"}))));
    let text = note["result"]["structuredContent"]["text"].as_str().expect("a text");
    assert_eq!(text.as_bytes(), house.read("notes/Boat.md"));
    let append = tool("append_to_note", json!({"note": "Boat.md", "text": "more"}));
    let refused = result(call(&read, &session, &append));
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("not allowed")), "{refused}");
    let reference = json!({"type": "ref/resource", "uri": "note://{volume}/{+path}"});
    let params = json!({"ref": reference, "argument": {"name": "path", "value": "boat"}});
    let complete = json!({"jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": params});
    let completed = result(call(&read, &session, &complete));
    assert_eq!(completed["result"]["completion"]["values"], json!(["Boat.md"]), "{completed}");
    // Nobody else gets into the session, and nothing happens without a token.
    let own = token(&house, "own", &["--volume", "notes"]);
    assert_eq!([&write, &own].map(|token| call(token, &session, &append).status), [404, 404]);
    call("", &session, &append).refused(401, "Bearer");
    let session = open(&write);
    assert!(result(call(&write, &session, &append))["result"]["structuredContent"].is_object());
    until("the file has it", || house.read("notes/Boat.md").ends_with(b"more\n"));
    house.run(&["tokens", "revoke", "writer"]).good();
    call(&write, &session, &append).refused(401, "isn't known");
    server.end();
}

#[test]
fn what_cannot_be_served_is_refused() {
    let house = notes();
    house.run(&["serve", "--listen", "0.0.0.0:0"]).refused(2, "--tls-cert");
    house.run(&["serve", "--listen", "localhost"]).refused(2, "ADDRESS:PORT");
    house.run(&["serve", "--tls-cert", "x.pem"]).refused(2, "both");
    house.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "x.pem", "--tls-key", "y.pem"]).refused(2, "x.pem");
    let server = Server::new(&house);
    house.run(&["serve", "--listen", "127.0.0.1:0"]).refused(2, "another `tracebook serve`");
    // A window or a command gets the workspace beside it.
    house.run(&["new", "Beside", "--text", "x"]).good();
    server.end();
    assert!(!house.path("W/http.sock").exists());
}

#[test]
fn versions_guard_a_text_on_the_command_line_too() {
    let house = notes();
    let version = house.json(&["cat", "Boat.md"])["version"].as_str().expect("a version").to_owned();
    let new = ["edit", "Boat.md", "--text", "--if-version", &version];
    house.fed(&new, b"# New\n").good();
    house.fed(&new, b"# Lost\n").refused(2, "has changed");
    assert_eq!(house.cat("Boat.md"), b"# New\n");
    let volumes = house.json(&["ls", "--volumes"]);
    assert_eq!((&volumes[0]["name"], &volumes[0]["notes"]), (&json!("notes"), &json!(3)), "{volumes}");
    assert!(house.run(&["ls", "--volumes"]).good().text().contains("  notes  3 notes  "));
}
