//! Paths, names and ids that lead elsewhere, at every endpoint: the description that the server gives of itself says
//! where a client can send one, so an endpoint that is added is tried, too.

use super::companion::Browser;
use super::http_server::{Answer, Server, notes, token};
use crate::program::House;
use serde_json::{Map, Value, json};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// What is in planted files outside of all volumes, and in folders and files that are protected.
const PROTECTED_TEXT: &str = "protected-5b1e";
/// What is in the volume that the token doesn't reach.
const FOREIGN_TEXT: &str = "foreign-83ac";
/// The planted files that nobody may read or change.
const PROTECTED_FILES: [&str; 8] = [
    "secret.md",
    "outside/secret.md",
    "W/planted.md",
    "notes/.git/config",
    "notes/.git/hooks/pre-commit",
    "notes/.git/secret.md",
    "notes/.vscode/tasks.json",
    "notes/.env",
];
/// Number of clients that send at the same time. Each has a token, because one has 1,000 requests at once.
const CLIENTS: usize = 4;

/// A request in which one value is tried.
struct TriedRequest {
    method: String,
    /// The path with its query.
    target: String,
    body: Option<Value>,
    /// Operation and name of the value.
    about: String,
}

/// Returns a value that is valid, or at least harmless.
fn plain_value(path: &str, name: &str) -> &'static str {
    match name {
        "path" if path.contains("/attachments/") => "Pictures/boat.png",
        "path" if path.contains("/collections/") => "Shelf.base",
        "path" => "Boat.md",
        "volume" | "project" => "notes",
        "version" => "1",
        "taskId" | "runId" => "00000000000000000000000000000000",
        "text" | "query" | "goal" | "description" => "hull",
        _ => "none",
    }
}

/// Encodes all that isn't a letter, a digit or a dash.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Returns the forms in which a text can be in a URL: encoded, and as it is if a URL can have it.
fn url_forms(text: &str) -> Vec<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%:".contains(&byte);
    let mut forms = vec![encoded(text)];
    forms.extend(text.bytes().all(is_plain).then(|| text.to_owned()).filter(|text| *text != forms[0]));
    forms
}

fn is_text(schema: &Value) -> bool {
    schema["type"] == "string" || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("string")))
}

/// Returns the requests of an operation with these texts, each in the place of one value.
fn tried_requests(described: &Value, path: &str, method: &str, texts: &[String]) -> Vec<TriedRequest> {
    let operation = &described["paths"][path][method];
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let name_of = |parameter: &Value| parameter["name"].as_str().expect("a name").to_owned();
    let target = |tried: Option<(&str, &str)>| {
        let (mut target, mut query) = (path.to_owned(), Vec::new());
        for parameter in &parameters {
            let name = name_of(parameter);
            let given = tried.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
            let is_tried = given.is_some();
            let value = given.unwrap_or_else(|| encoded(plain_value(path, &name)));
            if parameter["in"] == "path" {
                target = target.replace(&format!("{{{name}}}"), &value);
            } else if parameter["in"] == "query" && (is_tried || parameter["required"] == true) {
                query.push(format!("{name}={value}"));
            }
        }
        if query.is_empty() { target } else { format!("{target}?{}", query.join("&")) }
    };
    let schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
    let schema = schema.map(|at| described.pointer(at.trim_start_matches('#')).expect("a schema"));
    let plain_body = schema.map(|schema| {
        let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let field = |name: &str| {
            let value: Value = match &schema["properties"][name] {
                field if is_text(field) => plain_value(path, name).into(),
                field if field["type"] == "boolean" => true.into(),
                _ => 0.into(),
            };
            (name.to_owned(), value)
        };
        needed.map(field).collect::<Map<String, Value>>()
    });
    let request = |name: &str, target: String, body: Option<Value>| TriedRequest {
        method: method.to_uppercase(),
        target,
        body,
        about: format!("{} {path}: {name}", method.to_uppercase()),
    };
    let mut requests = Vec::new();
    let is_tried = |one: &&Value| one["in"] == "path" || (one["in"] == "query" && is_text(&one["schema"]));
    for name in parameters.iter().filter(is_tried).map(name_of) {
        for form in texts.iter().flat_map(|text| url_forms(text)) {
            let target = target(Some((name.as_str(), form.as_str())));
            requests.push(request(name.as_str(), target, plain_body.clone().map(Value::Object)));
        }
    }
    let properties = schema.and_then(|schema| schema["properties"].as_object()).into_iter().flatten();
    for (name, _) in properties.filter(|(_, schema)| is_text(schema)) {
        for text in texts {
            let mut body = plain_body.clone().unwrap_or_default();
            body.insert(name.clone(), text.as_str().into());
            requests.push(request(name.as_str(), target(None), Some(Value::Object(body))));
        }
    }
    requests
}

/// Asserts that an answer is one that reveals nothing, or a refusal in the form of RFC 9457.
fn assert_harmless(answer: &Answer, request: &TriedRequest, hidden: &[&str]) {
    let (head, body) = (&answer.head, String::from_utf8_lossy(&answer.body));
    let shown = format!("{} ({})\n{head}\n{body}", request.about, request.target);
    for text in hidden.iter().chain(&["root:x:0:"]) {
        assert!(!body.contains(*text) && !head.contains(*text), "{text} is revealed: {shown}");
    }
    assert!(answer.header("X-Injected").is_none(), "{shown}");
    let is_problem = answer.header("Content-Type").as_deref() == Some("application/problem+json");
    let is_refused = (400..500).contains(&answer.status) && answer.status != 429 && is_problem;
    assert!(is_refused || (200..300).contains(&answer.status), "{shown}");
}

/// Sends the requests, each client a part of them.
fn send_all(server: &Server, tokens: &[String], requests: &[TriedRequest], hidden: &[&str]) {
    std::thread::scope(|scope| {
        for (part, token) in requests.chunks(requests.len().div_ceil(tokens.len())).zip(tokens) {
            scope.spawn(move || {
                for request in part {
                    let mut headers = Vec::new();
                    if request.method == "PUT" {
                        headers.push(("If-None-Match", "*"));
                    }
                    if request.body.is_some() {
                        headers.push(("Content-Type", "application/json"));
                    }
                    let body = request.body.as_ref().map_or_else(|| "x".to_owned(), Value::to_string);
                    let body = if matches!(&*request.method, "GET" | "DELETE") { "" } else { &body };
                    let answer = server.send(token, &request.method, &request.target, &headers, body);
                    assert_harmless(&answer, request, hidden);
                }
            });
        }
    });
}

/// Returns all files below a folder, hidden ones, too, with their bytes.
fn all_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => found.push((path.display().to_string(), std::fs::read(&path).expect("a file"))),
        }
    }
    found.sort();
    found
}

/// A house with files that nobody may reach, and a volume that only some may.
fn planted() -> House {
    let house = notes();
    house.write("notes/Shelf.base", b"views:\n  - type: table\n    name: all\n");
    house.write("notes/Pictures/boat.png", b"no picture");
    for name in PROTECTED_FILES {
        house.write(name, format!("# {PROTECTED_TEXT}\n").as_bytes());
    }
    std::os::unix::fs::symlink(house.path("outside"), house.path("notes/link")).expect("a link");
    std::os::unix::fs::symlink(house.path("secret.md"), house.path("notes/linked.md")).expect("a link");
    for name in ["Only.md", "data.bin", "Hidden.base"] {
        house.write(&format!("other/{name}"), format!("{FOREIGN_TEXT}\n").as_bytes());
    }
    house.run(&["open", "other"]).code(0);
    let learned = format!("Remember {FOREIGN_TEXT} when you paint");
    house.run(&["memory", "add", &learned, "--project", "other", "--goal", "Paint the shed"]).code(0);
    house
}

/// Returns the texts that are tried.
fn tried_texts(house: &House) -> Vec<String> {
    let volumes = house.run(&["ls", "--volumes", "--json"]).code(0).json();
    let volumes = volumes.as_array().expect("a list");
    let other = volumes.iter().find(|volume| volume["name"] == "other").expect("the other volume");
    let memory = house.run(&["memory", "list", "--project", "other", "--json"]).code(0).lines();
    let absolute = house.path("secret.md").display().to_string();
    let fixed = [
        "../secret.md",
        "../../../../../../../../etc/passwd",
        "..%2fsecret.md",
        "%2e%2e%2fsecret.md",
        "%252e%252e%252fsecret.md",
        "/etc/passwd",
        "../W/planted.md",
        "../other/Only.md",
        "../other/data.bin",
        "other:Only.md",
        "other",
        "Only.md",
        "Hidden.base",
        ".git/config",
        ".git/secret.md",
        "notes:.git/secret.md",
        "Ideas/../.git/secret.md",
        ".GIT/config",
        ".vscode/tasks.json",
        ".env",
        "link/secret.md",
        "linked.md",
        "C:\\secret.md",
        "..\\secret.md",
        "\u{2025}/secret.md",
        "\u{ff0e}\u{ff0e}\u{ff0f}secret.md",
        "\0",
        "Boat.md\0.md",
        "Boat.md\r\nX-Injected: 1",
        "--workspace=/tmp",
        "-",
        "%FF",
    ];
    let mut texts: Vec<String> = fixed.map(str::to_owned).to_vec();
    texts.push("long".repeat(2_000));
    texts.push(absolute);
    texts.push(other["id"].as_str().expect("an id").to_owned());
    texts.push(memory[0]["experience_id"].as_str().expect("an id").to_owned());
    texts
}

#[test]
fn no_name_at_any_endpoint_leads_out_of_the_volume_or_into_protected_files() {
    let house = planted();
    let texts = tried_texts(&house);
    let tokens = |name: &str, volume: &[&str]| -> Vec<String> {
        let options = [&["--scopes", "read,write,run,agent,approve,admin"][..], volume].concat();
        (0..CLIENTS).map(|number| token(&house, &format!("{name} {number}"), &options)).collect()
    };
    let (own, all) = (tokens("own", &["--volume", "notes"]), tokens("all", &[]));
    let server = Server::new(&house);
    let described = server.get("", "/api/v1/openapi.json").code(200).json();
    let mut requests = Vec::new();
    for (path, operations) in described["paths"].as_object().expect("paths") {
        // Events have no end; what they take is no name.
        for method in operations.as_object().expect("methods").keys().filter(|_| !path.ends_with("/events")) {
            requests.extend(tried_requests(&described, path, method, &texts));
        }
    }
    for part in
        ["/history/", "/versions/", "/blocks/", "/attachments/", "/collections/", "/memory/", "/traces/", "/cells/"]
    {
        assert!(requests.iter().any(|request| request.target.contains(part)), "{part} isn't tried");
    }
    let protected = |house: &House| {
        let folders = ["outside", "notes/.git", "notes/.vscode"].map(|folder| all_files(&house.path(folder)));
        (folders, PROTECTED_FILES.map(|name| house.read(name)))
    };
    let (protected_before, other_before) = (protected(&house), crate::program::bytes(&house.path("other")));
    // What is tried would be noticed: a token for all volumes gets to the other one.
    let foreign = server.get(&all[0], "/api/v1/volumes/other/notes/Only.md").code(200);
    assert!(String::from_utf8_lossy(&foreign.body).contains(FOREIGN_TEXT));
    send_all(&server, &own, &requests, &[PROTECTED_TEXT, FOREIGN_TEXT]);
    assert_eq!(crate::program::bytes(&house.path("other")), other_before, "the other volume was changed");
    assert!(protected(&house) == protected_before, "a protected file was changed");
    // With a token for all volumes: what one for a volume is refused for.
    requests.retain(|request| {
        let name = request.about.rsplit(' ').next().unwrap_or_default();
        ["volume", "project", "tokenId", "cursor"].contains(&name)
    });
    assert!(requests.len() > texts.len() * 20, "{} requests", requests.len());
    send_all(&server, &all, &requests, &[PROTECTED_TEXT]);
    assert!(protected(&house) == protected_before, "a protected file was changed");
    // The volume is as it was: nothing was deleted that wasn't named.
    for (name, text) in [("Boat.md", "# Boat"), ("Cells.md", "# Cells"), ("Pictures/boat.png", "no picture")] {
        assert!(house.read(&format!("notes/{name}")).starts_with(text.as_bytes()), "{name} was changed");
    }
    server.end();
}

#[test]
fn no_id_of_a_component_leads_elsewhere() {
    let house = planted();
    let texts = tried_texts(&house);
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    browser.get("/components").code(200);
    for text in texts.iter().flat_map(|text| url_forms(text)) {
        for path in [format!("/components/{text}"), format!("/components/{text}/frame")] {
            let answer = browser.get(&path);
            let body = String::from_utf8_lossy(&answer.body);
            assert!((400..500).contains(&answer.status), "{path}: {} {body}", answer.head);
            assert!(!body.contains(PROTECTED_TEXT) && answer.header("X-Injected").is_none(), "{path}: {body}");
        }
    }
    server.end();
}

#[test]
fn an_attachment_takes_the_place_of_no_folder_and_no_link() {
    let house = notes();
    house.write("notes/Pictures/boat.png", b"no picture");
    house.write("outside.bin", b"outside");
    std::os::unix::fs::symlink(house.path("outside.bin"), house.path("notes/linked.bin")).expect("a link");
    std::os::unix::fs::symlink("nowhere.bin", house.path("notes/dangling.bin")).expect("a link");
    let token = token(&house, "own", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let put = |path: &str, condition: (&str, &str)| {
        let target = format!("/api/v1/volumes/notes/attachments/{path}");
        server.send(&token, "PUT", &target, &[condition], "written")
    };
    let create = ("If-None-Match", "*");
    put("Pictures", create).refused(422, "a folder with that name already exists");
    put("dangling.bin", create).refused(422, "a symbolic link with that name already exists");
    put("Pictures/boat.png/mast.png", create).refused(422, "");
    put(&format!("{}.bin", "n".repeat(300)), create).refused(422, "choose a shorter one");
    let linked = put("linked.bin", create);
    assert!((400..500).contains(&linked.status), "{}", linked.head);
    for path in ["Pictures", "linked.bin", "dangling.bin"] {
        let answer = put(path, ("If-Match", "\"0\""));
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.head);
    }
    assert_eq!(house.read("outside.bin"), b"outside");
    assert_eq!(house.read("notes/Pictures/boat.png"), b"no picture");
    assert!(!house.path("notes/nowhere.bin").exists());
    assert!(house.path("notes/linked.bin").is_symlink());
    // The same on the command line, and what may be written is.
    house.fed(&["attachments", "put", "Pictures"], b"written").refused(2, "a folder with that name already exists");
    put("Pictures/mast.png", create).code(201);
    assert_eq!(house.read("notes/Pictures/mast.png"), b"written");
    server.end();
}

#[test]
fn what_two_programs_could_read_in_two_ways_is_refused() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let own = format!("http://{}", server.address);
    let bearer = format!("Bearer {read}");
    for (name, value) in [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("If-Match", "*"),
        ("If-None-Match", "*"),
        ("Origin", own.as_str()),
        ("Range", "bytes=0-0"),
        ("Sec-Fetch-Site", "same-origin"),
    ] {
        let request = |count: usize| {
            let headers = format!("{name}: {value}\r\n").repeat(count);
            let bearer = if name == "Authorization" { String::new() } else { format!("Authorization: {bearer}\r\n") };
            let host = format!("Host: {}\r\nConnection: close\r\n", server.address);
            server.raw(format!("GET /api/v1/volumes HTTP/1.1\r\n{host}{bearer}{headers}\r\n").as_bytes())
        };
        request(1).code(200);
        request(2).refused(400, "more than once");
    }
    for host in ["localhost:1@evil.example", "localhost:80:80", "[::1]evil.example", "[::1"] {
        server.send(&read, "GET", "/api/v1/volumes", &[("Host", host)], "").refused(403, "isn't known under that host");
    }
    server.end();
}

#[test]
fn no_request_is_smuggled_within_another() {
    let house = notes();
    let all = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let about = format!("Host: localhost\r\nAuthorization: Bearer {all}\r\n");
    let put = "PUT /api/v1/volumes/notes/notes/Smuggled.md HTTP/1.1";
    let smuggled = format!("{put}\r\n{about}If-None-Match: *\r\nContent-Length: 1\r\n\r\nx");
    let whole = format!("Content-Length: {}", smuggled.len());
    let chunked = "Transfer-Encoding: chunked";
    for (lengths, begin) in [
        // The chunks count, and the connection ends with the answer.
        (format!("Content-Length: 0\r\n{chunked}"), "0\r\n\r\n"),
        (format!("{chunked}\r\n{whole}"), "0\r\n\r\n"),
        // What has no length that all read alike is refused.
        (format!("{whole}\r\nContent-Length: 0"), ""),
        (format!("Content-Length: 0\r\n{whole}"), ""),
        ("Content-Length: +0".to_owned(), ""),
        ("Content-Length : 0".to_owned(), ""),
        (format!("{chunked}, identity"), "0\r\n\r\n"),
        ("Transfer-Encoding: xchunked".to_owned(), "0\r\n\r\n"),
    ] {
        let request = format!("POST /api/v1/todos/check HTTP/1.1\r\n{about}{lengths}\r\n\r\n{begin}{smuggled}");
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        let mut said = Vec::new();
        // An end is an end, also an abrupt one; a timeout isn't.
        if let Err(error) = stream.read_to_end(&mut said) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{lengths}");
        }
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with("HTTP/1.1 4") && said.matches("HTTP/1.1 ").count() == 1, "{lengths}: {said}");
        assert!(!house.path("notes/Smuggled.md").exists(), "{lengths}");
    }
    server.end();
}

#[test]
fn a_token_for_a_volume_that_is_not_there_comes_with_a_warning() {
    let house = notes();
    let made = house.run(&["tokens", "create", "ours", "--volume", "notes"]).code(0);
    assert!(!made.err.contains("no volume"), "{}", made.err);
    let made = house.run(&["tokens", "create", "theirs", "--volume", "Notes"]).code(0);
    let warning = "there is no volume “Notes”, so this token reaches nothing yet; there are: notes";
    assert!(made.err.contains(warning), "{}", made.err);
}
