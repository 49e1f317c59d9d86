//! The web companion of `tracebook serve`: pairing, sessions, forms, and what a browser gets and doesn't get.

use super::agents;
use super::http_server::{Answer, Server, request_text, token};
use super::mcp_forms;
use crate::program::{House, until};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

const TYPES: &str = "application/x-www-form-urlencoded";

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

fn fields(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Asserts a page with this status that says `about`, and that nothing in it can run.
    #[track_caller]
    fn page(self, status: u16, about: &str) -> String {
        let answer = self.code(status);
        let text = answer.text();
        assert_eq!(answer.header("Content-Type").as_deref(), Some("text/html; charset=utf-8"), "{text}");
        let policy = answer.header("Content-Security-Policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("X-Content-Type-Options").as_deref(), Some("nosniff"));
        assert_eq!(answer.header("Cache-Control").as_deref(), Some("no-store"));
        assert!(text.contains(about), "does not say “{about}”: {text}");
        assert!(!text.contains(" style=\"") && !text.contains("<style"), "an inline style: {text}");
        assert_eq!(text.matches("<script").count(), 1, "{text}");
        assert!(!text.contains(" onclick") && !text.contains("javascript:"), "{text}");
        text
    }

    /// Asserts a page with this status that says why.
    #[track_caller]
    pub(super) fn refused_page(self, status: u16, about: &str) {
        let text = self.code(status).text();
        let plain = text.replace("&#39;", "'").replace("&quot;", "\"");
        assert!(plain.contains(about), "does not say “{about}”: {text}");
    }

    /// Asserts that the browser is led on, and returns where.
    #[track_caller]
    fn led(self) -> String {
        self.code(303).header("Location").expect("a place")
    }
}

/// A paired browser.
pub(super) struct Browser<'s> {
    server: &'s Server,
    pub(super) cookie: String,
    form_token: String,
}

impl<'s> Browser<'s> {
    /// Pairs with the code of this link.
    pub(super) fn new(server: &'s Server, link: &str) -> Browser<'s> {
        let code = link.rsplit_once("code=").expect("a code").1;
        let answer = pair(server, code, "Test phone").code(303);
        let cookie = answer.header("Set-Cookie").expect("a cookie");
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        let mut browser = Browser { server, cookie, form_token: String::new() };
        let device = browser.get("/device").code(200).text();
        let secret = device.split("name=\"form_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        browser.form_token = secret.expect("a secret").to_owned();
        browser
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.server.send("", "GET", path, &[("Cookie", &self.cookie)], "")
    }

    fn sent(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers: Vec<(&str, &str)> = [("Cookie", self.cookie.as_str())].iter().chain(headers).copied().collect();
        self.server.send("", "POST", path, &headers, body)
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address)
    }

    pub(super) fn post(&self, path: &str, values: &[(&str, &str)]) -> Answer {
        let own = [("form_token", self.form_token.as_str())];
        let body = fields(&own.iter().chain(values).copied().collect::<Vec<_>>());
        self.sent(path, &[("Origin", &self.origin()), ("Content-Type", TYPES)], &body)
    }

    /// Sends the form that captures, as a browser does.
    fn capture(&self, form_token: &str, key: &str, text: &str, photo: &[u8]) -> Answer {
        let mut body = Vec::new();
        for (name, value) in [("form_token", form_token), ("key", key), ("text", text)] {
            body.extend(format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
        }
        let head = "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"../../evil.html\"\r\n\
                    Content-Type: text/html\r\n\r\n";
        body.extend(head.bytes());
        body.extend(photo);
        body.extend(b"\r\n--b--\r\n");
        let head = format!(
            "POST /capture HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {}\r\nOrigin: {}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n",
            self.server.address,
            self.cookie,
            self.origin(),
            body.len()
        );
        self.server.raw(&[head.as_bytes(), &body].concat())
    }

    fn captured(&self, key: &str, text: &str) -> String {
        self.capture(&self.form_token, key, text, b"").led()
    }
}

fn pair(server: &Server, code: &str, name: &str) -> Answer {
    let origin = format!("http://{}", server.address);
    let body = fields(&[("code", code), ("name", name)]);
    server.send("", "POST", "/pair", &[("Origin", &origin), ("Content-Type", TYPES)], &body)
}

pub(super) fn link(house: &House, options: &[&str]) -> String {
    let words: Vec<&str> = ["tokens", "create", "phone", "--qr", "--json"].iter().chain(options).copied().collect();
    house.run(&words).good().json()["link"].as_str().expect("a link").to_owned()
}

fn notes() -> House {
    House::with(&[
        ("Boat.md", "# Boat\n\nThe solar panel. See [[Sail]] and [[Ideas/Sail é|the sail]].\n\n- [ ] Paint the hull\n"),
        ("Ideas/Sail é.md", "# Sail\n\n$x^2$\n\n```mermaid\nflowchart LR\n A-->B\n```\n"),
        ("Cells.md", "# Cells\n\n```python\nprint('from the ' + 'cell')\n```\n\n```python\n1 / 0\n```\n"),
    ])
}

/// Returns the text of today's note; empty if there's none.
fn today(house: &House) -> String {
    let Ok(entries) = std::fs::read_dir(house.path("notes/Journal")) else { return String::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let found: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    found.iter().map(|name| String::from_utf8(house.read(&format!("notes/Journal/{name}"))).expect("text")).collect()
}

#[test]
fn a_browser_is_paired_once_and_signs_out() {
    let house = notes();
    house.run(&["tokens", "create", "phone", "--qr"]).refused(2, "no server runs");
    let server = Server::new(&house);
    let path = server.pair.strip_prefix(&format!("http://{}", server.address)).expect("an address").to_owned();
    let code = path.strip_prefix("/pair?code=").expect("a code");
    server.get("", "/").page(401, "isn't paired");
    server.get("", "/runs").page(401, "Pair this browser");
    // Looking at the link, also from another site's page, uses nothing up.
    for headers in [vec![], vec![("Sec-Fetch-Site", "cross-site")]] {
        server.send("", "GET", &path, &headers, "").page(200, code);
    }
    // Only a form of ours does.
    let form = fields(&[("code", code)]);
    let no_origin = [("Content-Type", TYPES)];
    server.send("", "POST", "/pair", &no_origin, &form).page(403, "doesn't say which page");
    let other = [("Content-Type", TYPES), ("Origin", "http://evil.example")];
    server.send("", "POST", "/pair", &other, &form).page(403, "other sites");
    pair(&server, "ABCD-EFGH-JKMN", "x").page(403, "isn't right");
    let paired = pair(&server, &code.to_lowercase().replace('-', " "), "Ada's <phone>").code(303);
    assert_eq!(paired.header("Location").as_deref(), Some("/"));
    let cookie = paired.header("Set-Cookie").expect("a cookie");
    for part in ["tracebook_session=tb_", "; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age="] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    let cookie = cookie.split(';').next().expect("a pair").to_owned();
    pair(&server, code, "x").page(403, "used already");
    let home = server.send("", "GET", "/", &[("Cookie", &cookie)], "").page(200, "Recent notes");
    assert!(home.contains("/notes/notes/Boat.md"), "{home}");
    // The cookie is no token of a program, and a token is no cookie.
    let shown = cookie.split_once('=').expect("a value").1;
    server.get(shown, "/api/v1/volumes").refused(401, "isn't known");
    server.send("", "GET", "/api/v1/volumes", &[("Cookie", &cookie)], "").refused(401, "Bearer");
    let program = token(&house, "program", &["--scopes", "read,write"]);
    let wrong = format!("tracebook_session={program}");
    server.send("", "GET", "/", &[("Cookie", &wrong)], "").page(401, "isn't paired");
    server.get(&program, "/").page(401, "isn't paired");
    server.send("", "GET", "/", &[("Cookie", &cookie), ("Host", "evil.example")], "").page(403, "host");
    server.send("", "GET", "/", &[("Cookie", &cookie), ("Sec-Fetch-Site", "cross-site")], "").page(403, "other sites");
    let listed = house.run(&["tokens"]).good().text();
    assert!(listed.contains("Ada's <phone>  (browser)") && listed.contains("read,write,run,approve"), "{listed}");
    for file in ["access-log.jsonl", "access-without-token.jsonl", "pairing-codes.json", "access-tokens.json"] {
        let kept = String::from_utf8(house.read(&format!("W/{file}"))).expect("text");
        assert!(!kept.contains(code) && !kept.contains(shown), "{file}");
    }
    // Signing out, and revoking from a terminal.
    let sign_out = |form: &str| {
        let origin = format!("http://{}", server.address);
        let headers = [("Cookie", cookie.as_str()), ("Origin", &origin), ("Content-Type", TYPES)];
        server.send("", "POST", "/sign-out", &headers, form)
    };
    sign_out("form_token=0").page(403, "another session");
    let device = server.send("", "GET", "/device", &[("Cookie", &cookie)], "").page(200, "Ada's &lt;phone&gt;");
    let secret = device.split("name=\"form_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let out = sign_out(&fields(&[("form_token", secret.expect("a secret"))])).code(200);
    assert!(out.header("Set-Cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")), "{out:?}");
    server.send("", "GET", "/", &[("Cookie", &cookie)], "").page(401, "isn't paired");
    let browser = Browser::new(&server, &link(&house, &[]));
    browser.get("/").page(200, "Recent notes");
    house.run(&["tokens", "revoke", "Test phone"]).good();
    browser.get("/").page(401, "isn't paired");
    let shown = house.run(&["tokens", "create", "phone", "--qr"]).good().text();
    assert!(shown.contains("█") && shown.contains("/pair?code=") && shown.contains("the code "), "{shown}");
    server.end();
    assert!(!house.path("W/http-server.json").exists());
}

#[test]
fn forms_of_others_change_nothing() {
    let house = notes();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let other = Browser::new(&server, &link(&house, &[]));
    let before = house.read("notes/Boat.md");
    let todo = [("volume", "notes"), ("path", "Boat.md"), ("text", "Paint the hull"), ("at", "0")];
    let own = browser.origin();
    for form_token in ["", "x", other.form_token.as_str()] {
        let body = fields(&[[("form_token", form_token)].as_slice(), &todo].concat());
        browser.sent("/todos", &[("Origin", &own), ("Content-Type", TYPES)], &body).page(403, "another session");
        browser.capture(form_token, "k", "lost", b"").page(403, "another session");
    }
    let body = fields(&[[("form_token", browser.form_token.as_str())].as_slice(), &todo].concat());
    let headers = |name, value| [(name, value), ("Content-Type", TYPES)];
    browser.sent("/todos", &headers("Origin", "http://evil.example"), &body).page(403, "other sites");
    browser.sent("/todos", &headers("Origin", "null"), &body).page(403, "other sites");
    browser.sent("/todos", &headers("Sec-Fetch-Site", "same-site"), &body).page(403, "other sites");
    browser.sent("/todos", &headers("X", "y"), &body).page(403, "doesn't say which page");
    browser.sent("/todos", &[("Origin", &own), ("Content-Type", "application/json")], "{}").page(415, "can't be read");
    browser.get("/todos?at=1").page(200, "Paint the hull");
    for path in ["/sign-out", "/runs/x/stop", "/approvals/x"] {
        browser.get(path).code(405);
    }
    assert_eq!(house.read("notes/Boat.md"), before);
    assert_eq!(today(&house), "");
    assert_eq!(browser.post("/todos", &todo).led(), "/todos?checked=Paint%20the%20hull");
    until("the file has it", || String::from_utf8_lossy(&house.read("notes/Boat.md")).contains("- [x] Paint"));
    browser.get("/todos?checked=Paint").page(200, "Changed: Paint");
    let all = browser.get("/todos?all=1").page(200, "Uncheck: Paint the hull");
    assert!(all.contains("name=\"at\""), "{all}");
    browser.post("/todos", &[("volume", "notes"), ("path", "../x.md"), ("text", "x"), ("at", "0")]).page(422, "path");
    server.end();
}

#[test]
fn a_browser_does_only_what_it_was_paired_for() {
    let house = notes();
    house.write("other/Only.md", b"only here solar\n\n- [ ] Other todo\n");
    house.run(&["open", "other"]).good();
    let server = Server::new(&house);
    let reader = Browser::new(&server, &link(&house, &["--scopes", "read", "--volume", "notes"]));
    let home = reader.get("/").page(200, "Recent notes");
    assert!(!home.contains("capture-form") && !home.contains("Only"), "{home}");
    reader.capture(&reader.form_token, "k", "x", b"").page(403, "`write`");
    reader
        .post("/todos", &[("volume", "notes"), ("path", "Boat.md"), ("text", "Paint the hull"), ("at", "0")])
        .page(403, "`write`");
    reader.post("/notes/notes/Cells.md", &[("do", "run")]).page(403, "`run`");
    reader.post("/approvals/x", &[("decision", "allow")]).page(403, "`approve`");
    reader.post("/runs/00000000000000000000000000000000/stop", &[]).page(403, "`approve`");
    let cells = reader.get("/notes/notes/Cells.md").page(200, "from the");
    assert!(!cells.contains("value=\"run\""), "{cells}");
    // Of another volume it sees nothing.
    reader.get("/notes/other/Only.md").page(403, "another volume");
    reader.get("/notes?volume=other").page(404, "no volume");
    let found = reader.get("/search?q=solar").page(200, "Boat");
    assert!(!found.contains("Only"), "{found}");
    assert!(!reader.get("/todos").page(200, "Paint").contains("Other todo"));
    let writer = Browser::new(&server, &link(&house, &["--scopes", "write"]));
    let home = writer.get("/").page(200, "capture-form");
    assert!(!home.contains("Boat"), "{home}");
    for path in ["/notes", "/notes/notes/Boat.md", "/search?q=solar", "/todos", "/runs", "/live"] {
        writer.get(path).page(403, "`read`");
    }
    assert!(Browser::new(&server, &server.pair).get("/search?q=solar").page(200, "Boat").contains("Only"));
    server.end();
}

#[test]
fn a_cookie_opens_no_path_of_programs() {
    let house = notes();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let origin = browser.origin();
    for path in ["/api/v1/volumes", "/mcp", "/tracebook.v1.SearchService/Search", "/mixagent.AgentService/SubmitTask"] {
        for kind in ["text/plain", "application/json", "application/grpc"] {
            let answer = browser.sent(path, &[("Origin", &origin), ("Content-Type", kind)], "");
            // gRPC has its own way to say so.
            let is_refused = answer.status == 401 || answer.header("grpc-status").as_deref() == Some("16");
            assert!(is_refused, "{path} as {kind}: {answer:?}");
        }
    }
    server.end();
}

#[test]
fn hostile_notes_and_files_run_nothing() {
    let evil = "# <img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\n[a](javascript:alert(1)) \
                <a href=\"javascript:x\" onclick=\"y\">b</a> ![\"onload=\"x](p.svg) [file](page.html)\n\n\
                - [ ] <script>alert(2)</script>\n\n</main><form action=\"https://evil.example\">\n";
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\" onload=\"alert(1)\">\
               <script>alert(1)</script><rect width=\"9\" height=\"9\"/></svg>";
    let house = House::with(&[
        ("Evil.md", evil),
        ("p.svg", svg),
        ("page.html", "<script>alert(1)</script>"),
        ("a b/pic.png", "\u{1}not a picture"),
        (".hidden/file.txt", "hidden words"),
        ("\"><script>x.md", "named\n"),
    ]);
    house.write("outside.txt", b"outside\n");
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let page = browser.get("/notes/notes/Evil.md").code(200);
    assert!(page.header("Content-Security-Policy").is_some_and(|policy| !policy.contains("unsafe")));
    let text = page.text();
    assert_eq!(text.matches("<script").count(), 1, "{text}");
    assert_eq!(text.matches("</main>").count(), 1, "{text}");
    for part in ["<img src=x", "href=\"javascript", "<a href=\"java", "<form action=\"https", "<svg onload"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
    assert!(text.contains("href=\"/notes/notes/page.html\""), "{text}");
    for path in [
        "/",
        "/notes?volume=notes",
        "/todos",
        "/search?q=alert",
        "/search?q=%3Cscript%3Ealert",
        "/todos?checked=%3Cscript%3E&q=%22%3E",
    ] {
        let text = browser.get(path).code(200).text();
        assert_eq!(text.matches("<script").count(), 1, "{path}: {text}");
    }
    // Files are what they are, and nothing in them runs.
    for (path, media) in
        [("p.svg", "image/svg+xml"), ("page.html", "text/html; charset=utf-8"), ("a%20b/pic.png", "image/png")]
    {
        let file = browser.get(&format!("/notes/notes/{path}")).code(200);
        assert_eq!(file.header("Content-Type").as_deref(), Some(media));
        assert_eq!(file.header("X-Content-Type-Options").as_deref(), Some("nosniff"));
        let policy = file.header("Content-Security-Policy").expect("a policy");
        assert!(
            policy.ends_with("sandbox") && policy.starts_with("default-src 'none'") && !policy.contains("script"),
            "{policy}"
        );
    }
    assert_eq!(browser.get("/notes/notes/p.svg").code(200).body, svg.as_bytes());
    for path in [
        "..%2Foutside.txt",
        "../outside.txt",
        "%2e%2e/outside.txt",
        "Nothing.md",
        "nothing.png",
        ".hidden/file.txt",
        "%00.png",
        "notes:p.svg",
        "..%5Coutside.txt",
        "a%20b",
    ] {
        let answer = browser.get(&format!("/notes/notes/{path}"));
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.text().contains("outside\n") && !answer.text().contains("hidden words"), "{path}");
    }
    server.end();
}

#[test]
fn notes_are_shown_with_links_to_pages() {
    let house = notes();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let boat = browser.get("/notes/notes/Boat.md").page(200, "<h1 id=\"boat\">Boat</h1>");
    assert!(boat.contains("<a href=\"/notes/notes/Ideas/Sail%20%C3%A9.md\">the sail</a>"), "{boat}");
    let sail = browser.get("/notes/notes/Ideas/Sail%20%C3%A9.md").code(200).text();
    assert!(sail.contains("<math") && sail.contains("<svg") && sail.contains("folder=Ideas"), "{sail}");
    assert!(browser.get("/notes").page(200, "Boat").contains("Ideas/"));
    browser.get("/notes?volume=notes&folder=Ideas").page(200, "Sail é");
    browser.get("/notes?volume=notes&folder=Nowhere").page(404, "no notes in Nowhere");
    browser.get("/search?q=solar").page(200, "<mark>solar</mark>");
    browser.get("/search?q=zzzqqq").page(200, "No results");
    browser.get("/search").page(200, "Words to find");
    browser.get("/nowhere").page(404, "no page");
    browser.get("/runs/x").page(404, "run");
    browser.get("/runs").page(200, "No agent has run yet");
    server.get("", "/nowhere").page(401, "isn't paired");
    // What anyone gets holds nothing of the user.
    let manifest = server.get("", "/manifest.webmanifest").code(200).json();
    assert_eq!(manifest["display"], "standalone");
    for icon in manifest["icons"].as_array().expect("icons") {
        server.get("", icon["src"].as_str().expect("an address")).code(200);
    }
    let offline = server.get("", "/offline").code(200).text();
    assert!(offline.contains("stay on this device") && !offline.contains("form_token"), "{offline}");
    // What is captured there is something that the server takes.
    assert!(offline.contains("maxlength=\"16384\"") && offline.contains("name=\"photo\""), "{offline}");
    let worker = server.get("", "/service-worker.js").code(200).text();
    let shell: Vec<&str> = worker.split('"').filter(|part| part.starts_with('/') && !part.ends_with('/')).collect();
    assert!(shell.len() >= 4, "{worker}");
    for path in shell {
        server.get("", path).code(200);
    }
    server.end();
}

#[test]
fn a_capture_is_in_todays_note_once() {
    let house = notes();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let place = browser.captured("k1", "Buy rope\r\nand a knife");
    browser.get(&place).page(200, "Added to <a href=\"/notes/notes/Journal/20");
    assert_eq!(browser.captured("k1", "Buy rope\r\nand a knife"), place);
    assert!(today(&house).ends_with("\n- Buy rope\n  and a knife\n"), "{}", today(&house));
    assert_eq!(today(&house).matches("Buy rope").count(), 1);
    // Many at once with one key, and a key that a browser shows again with another text.
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| browser.captured("k2", "Many at once"));
        }
    });
    browser.captured("k2", "Another text");
    let text = today(&house);
    assert_eq!((text.matches("Many at once").count(), text.matches("Another text").count()), (1, 1), "{text}");
    // The script gets JSON.
    let asked = browser.get("/capture/form-token").code(200).json();
    assert_eq!(asked["form_token"], browser.form_token.as_str());
    // A photo is stored once, under a name of ours.
    let photo = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 500]].concat();
    for _ in 0..2 {
        browser.capture(&browser.form_token, "k3", "The mast", &photo).led();
    }
    let text = today(&house);
    let name = text.split("![](").nth(1).and_then(|rest| rest.split(')').next()).expect("a picture").to_owned();
    assert!(name.starts_with("photo-20") && name.ends_with(".png"), "{text}");
    assert!(text.ends_with(&format!("- The mast\n  ![]({name})\n")), "{text}");
    assert_eq!(house.read(&format!("notes/Journal/{name}")), photo);
    let photos = std::fs::read_dir(house.path("notes/Journal")).expect("a folder");
    let photos = photos
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("photo")));
    assert_eq!(photos.count(), 1);
    until("it's served", || browser.get(&format!("/notes/notes/Journal/{name}")).status == 200);
    browser.capture(&browser.form_token, "k4", "", &photo).led();
    // What isn't a photo, too large, or nothing.
    browser.capture(&browser.form_token, "k5", "x", b"<svg onload=alert(1)>").page(415, "isn't a photo");
    browser.capture(&browser.form_token, "k6", " ", b"").page(422, "nothing to add");
    browser.capture(&browser.form_token, "", "x", b"").page(422, "no key");
    browser.capture(&browser.form_token, "k7", &"x".repeat(70_000), b"").page(413, "64 kB");
    let huge = [b"\xff\xd8\xff".as_slice(), &vec![0; 17 << 20]].concat();
    browser.capture(&browser.form_token, "k8", "", &huge).page(413, "16 MB");
    let before = today(&house);
    // After a crash, a capture that was begun is added only if the note lacks it.
    let cookie = browser.cookie.clone();
    let form_token = browser.form_token.clone();
    server.end();
    let mut kept: Value = serde_json::from_slice(&house.read("W/captures.json")).expect("JSON");
    for record in kept.as_array_mut().expect("a list") {
        record.as_object_mut().expect("an object").remove("note");
    }
    house.write("W/captures.json", kept.to_string().as_bytes());
    let server = Server::new(&house);
    let browser = Browser { server: &server, cookie, form_token };
    browser.captured("k1", "Buy rope\r\nand a knife");
    browser.capture(&browser.form_token, "k3", "The mast", &photo).led();
    assert_eq!(today(&house), before);
    server.end();
}

#[test]
fn cells_run_from_a_page() {
    let house = notes();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let path = "/notes/notes/Cells.md";
    let page = || browser.get(path).code(200).text();
    assert!(page().contains("Cell 2") && page().contains("data-running=\"false\""), "{}", page());
    assert_eq!(browser.post(path, &[("do", "run"), ("cell", "1")]).led(), path);
    until("the page shows that it ran", || page().contains("✓ The cells ran"));
    assert!(page().contains("<pre class=\"out\">from the cell</pre>"), "{}", page());
    browser.post(path, &[("do", "run"), ("cell", "")]).led();
    until("the page shows the error", || page().contains("✕ A cell failed") && page().contains("ZeroDivisionError"));
    browser.post(path, &[("do", "run"), ("cell", "9")]).led();
    until("the page says why", || page().contains("no cell 9"));
    browser.post(path, &[("do", "stop")]).led();
    browser.post(path, &[("do", "format the disk")]).page(422, "what to do");
    browser.post(path, &[("do", "run"), ("cell", "x")]).page(422, "numbered");
    browser.post("/notes/notes/Nothing.md", &[("do", "run")]).page(404, "no note");
    server.end();
}

#[test]
fn a_run_is_followed_approved_and_denied() {
    let model = agents::model(|turn, _| match turn {
        0 => ("I'll <script>make</script> it.".to_owned(), vec![("shell", json!({"command": "echo made > made.txt"}))]),
        1 => (String::new(), vec![("shell", json!({"command": "echo more > more.txt"}))]),
        _ => ("It is made.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("Boat.md", "The panel gives 12 volts.\n")]);
    let task = token(&house, "task", &["--scopes", "read,agent"]);
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let mut stream = server.connect();
    let request = request_text(&server.address, "", "GET", "/live", &[("Cookie", &browser.cookie)], "");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut events = BufReader::new(stream);
    let mut line = String::new();
    events.read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    let made = server.post(&task, "/api/v1/tasks", &json!({"description": "Make it"})).code(201).json();
    let id = made["id"].as_str().expect("an id").to_owned();
    let page = format!("/runs/{id}");
    let action = |command: &str| {
        let home = browser.get("/").code(200).text();
        let card = home.split("class=\"card\"").find(|card| card.contains(command))?.to_owned();
        Some(card.split("action=\"/approvals/").nth(1)?.split('"').next()?.to_owned())
    };
    until("the start page shows what waits", || action("made.txt").is_some());
    let shown = browser.get(&page).page(200, "Waits for approval");
    assert!(shown.contains("Allow once") && shown.contains("I'll &lt;script&gt;make"), "{shown}");
    assert!(shown.contains("Stop run"), "{shown}");
    until("events say so", || {
        line.clear();
        events.read_line(&mut line).expect("a line");
        line.starts_with("event: ASKED")
    });
    let first = format!("/approvals/{}", action("made.txt").expect("an action"));
    browser.post(&first, &[("decision", "perhaps")]).page(422, "what was decided");
    browser.post(&first, &[("decision", "allow"), ("comment", &"x".repeat(5_000))]).page(422, "at most");
    assert!(!house.path("notes/made.txt").exists());
    let place = browser.post(&first, &[("decision", "allow"), ("comment", "fine")]).led();
    assert_eq!(place, format!("{page}?decided=allow"));
    browser.get(&place).page(200, "Allowed once");
    browser.post(&first, &[("decision", "allow")]).page(404, "Nothing waits");
    until("the next one waits", || action("more.txt").is_some());
    let second = format!("/approvals/{}", action("more.txt").expect("an action"));
    browser.post(&second, &[("decision", "deny"), ("comment", "not that")]).led();
    until("it's done", || browser.get(&page).code(200).text().contains("It is made."));
    assert!(house.path("notes/made.txt").exists() && !house.path("notes/more.txt").exists());
    let done = browser.get(&page).page(200, "not that");
    assert!(!done.contains("Stop run") && done.contains("made.txt"), "{done}");
    browser.get("/runs").page(200, "Make it");
    let waits = server.post(&task, "/api/v1/tasks", &json!({"description": "Once more"})).code(201).json();
    let page = format!("/runs/{}", waits["id"].as_str().expect("an id"));
    until("it's listed", || browser.get(&page).status == 200);
    // A run may end before it's stopped: both are fine.
    let stopped = browser.post(&format!("{page}/stop"), &[]);
    assert!(stopped.status == 303 || browser.get(&page).text().contains("It is made."), "{stopped:?}");
    until("it's over", || !browser.get(&page).code(200).text().contains("Stop run"));
    server.end();
}

#[test]
fn an_approval_on_a_page_shows_all_that_would_run() {
    let counts: String = (0..2_000).map(|line| format!("print({line}, 'and so on')\n")).collect();
    let code = counts + "import os  # \u{202e}live\n";
    let model = agents::model(move |turn, _| match turn {
        0 => (String::new(), vec![("run_python", json!({"code": code}))]),
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("a.md", "# A\n")]);
    let task = token(&house, "task", &["--scopes", "read,agent"]);
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    server.post(&task, "/api/v1/tasks", &json!({"description": "Count"})).code(201);
    until("the start page shows what waits", || browser.get("/").code(200).text().contains("Allow once"));
    let home = browser.get("/").code(200).text();
    assert!(home.contains("print(1999, 'and so on')\nimport os  # \\u{202e}live"), "the end of the code is shown");
    assert!(!home.contains('\u{202e}'), "nothing turns the text around");
    let action = home.split("action=\"/approvals/").nth(1).and_then(|rest| rest.split('"').next());
    browser.post(&format!("/approvals/{}", action.expect("an action")), &[("decision", "deny")]).led();
    server.end();
}

#[test]
fn a_form_of_a_tool_server_is_filled_in_on_the_phone() {
    let house = mcp_forms::travelling();
    let server = Server::new(&house);
    let browser = Browser::new(&server, &server.pair);
    let done = mcp_forms::decided(&house, |_| {
        let home = browser.get("/").code(200).text();
        for part in ["own asks you", "City", "By the sea (optional)", "First", "Send"] {
            assert!(home.contains(part), "{part}: {home}");
        }
        let action = home.split("action=\"/approvals/").nth(1).and_then(|rest| rest.split('"').next());
        let path = format!("/approvals/{}", action.expect("an action"));
        browser.post(&path, &[("decision", "allow")]).page(422, "has no answer");
        // In the order of the server: city, days, sea, class.
        let wrong = [("decision", "allow"), ("answer-0", "Bonn"), ("answer-1", "many")];
        browser.post(&path, &wrong).page(422, "a whole number");
        // The default of the days is emptied, so it isn't sent.
        let answers = [("answer-0", "Bonn"), ("answer-1", ""), ("answer-2", "no"), ("answer-3", "b")];
        browser.post(&path, &[&[("decision", "allow")][..], &answers].concat()).led();
    });
    done.code(0);
    let content = json!({"city": "Bonn", "class": "b", "sea": false});
    assert_eq!(mcp_forms::told(&house), json!({"action": "accept", "content": content}));
    server.end();
}

/// `tracebook serve --tls` in a house. Killed on drop.
struct TlsServer {
    child: Child,
    /// Where a client on this machine connects.
    address: String,
    pair: String,
}

impl TlsServer {
    fn new(house: &House, options: &[&str]) -> TlsServer {
        let words: Vec<&str> = ["serve", "--tls", "--json"].iter().chain(options).copied().collect();
        let mut child = house.command(&words).stderr(Stdio::inherit()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let places: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let url = places["url"].as_str().expect("a URL");
        let port = url.strip_prefix("https://").and_then(|at| at.rsplit_once(':')).expect("an address with TLS").1;
        let pair = places["pair"].as_str().expect("a link").to_owned();
        TlsServer { child, address: format!("127.0.0.1:{port}"), pair }
    }

    /// Connects under a name, trusting nothing but this certificate.
    fn connect(&self, certificate: &[u8], name: &str) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(certificate).expect("PEM")).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }

    fn send(&self, certificate: &[u8], method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect(certificate, "127.0.0.1").expect("a connection");
        stream.write_all(request_text(&self.address, "", method, path, headers, body).as_bytes()).expect("sent");
        Answer::read(&mut stream)
    }

    fn end(mut self) {
        let pid = self.child.id().to_string();
        std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("told");
        until("the server ends", || self.child.try_wait().expect("a process").is_some());
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_phone_is_paired_over_tls_by_the_workspaces_own_certificate() {
    let house = notes();
    let options = ["--listen", "127.0.0.1:0", "--host", "notes.example"];
    let server = TlsServer::new(&house, &options);
    let (certificate, key) = (house.read("W/http-certificate.pem"), house.read("W/http-certificate.key"));
    for file in ["W/http-certificate.pem", "W/http-certificate.key"] {
        assert_eq!(house.path(file).metadata().expect("a file").mode() & 0o777, 0o600, "{file}");
    }
    assert!(!String::from_utf8_lossy(&certificate).contains("PRIVATE"), "the certificate file holds no key");
    // It's for the names under which the server is reached, and for no other.
    for name in ["127.0.0.1", "localhost", "notes.example"] {
        server.connect(&certificate, name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for name in ["127.0.0.2", "other.example", "evil.notes.example"] {
        let error = server.connect(&certificate, name).expect_err("another name");
        let why = error.to_string();
        assert!(why.contains("valid for name") || why.contains("NotValidForName"), "{name}: {why}");
    }
    // Without TLS nothing is answered.
    let mut plain = TcpStream::connect(&server.address).expect("connected");
    plain.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    plain.write_all(request_text(&server.address, "", "GET", "/pair", &[], "").as_bytes()).expect("sent");
    let mut answered = Vec::new();
    // The server may also reset the connection.
    let _ = plain.read_to_end(&mut answered);
    assert!(!answered.starts_with(b"HTTP/"), "{answered:?}");

    let path = server.pair.strip_prefix(&format!("https://{}", server.address)).expect("a link with TLS").to_owned();
    let code = path.strip_prefix("/pair?code=").expect("a code").to_owned();
    server.send(&certificate, "GET", &path, &[], "").page(200, &code);
    server.send(&certificate, "GET", "/", &[], "").page(401, "isn't paired");
    let form = fields(&[("code", code.as_str()), ("name", "Phone over TLS")]);
    let (own, without_tls) = (format!("https://{}", server.address), format!("http://{}", server.address));
    let post = |origin: &str| {
        server.send(&certificate, "POST", "/pair", &[("Origin", origin), ("Content-Type", TYPES)], &form)
    };
    post(&without_tls).page(403, "other sites");
    let line = post(&own).code(303).header("Set-Cookie").expect("a cookie");
    // Only this host gets it back, only over TLS, and no script and no other site. `__Host-` has browsers insist on it.
    let mut parts = line.split("; ");
    let cookie = parts.next().expect("a pair").to_owned();
    let value = cookie.strip_prefix("__Host-tracebook_session=").expect("its name");
    assert!(value.starts_with("tb_"), "{line}");
    let mut attributes: Vec<&str> = parts.collect();
    attributes.sort_unstable();
    let seconds = attributes.iter().find_map(|attribute| attribute.strip_prefix("Max-Age=")).expect("an end");
    assert_eq!(seconds, (90 * 86_400).to_string());
    let end = format!("Max-Age={seconds}");
    assert_eq!(attributes, ["HttpOnly", end.as_str(), "Path=/", "SameSite=Strict", "Secure"], "{line}");
    server.send(&certificate, "GET", "/", &[("Cookie", &cookie)], "").page(200, "Recent notes");
    // Under the name without the prefix, which another port or a page without TLS could set, it's no session.
    let unsafe_name = format!("tracebook_session={value}");
    server.send(&certificate, "GET", "/", &[("Cookie", &unsafe_name)], "").page(401, "isn't paired");
    server.end();

    // After a restart the certificate is the same, so browsers that trust it go on, and so do sessions.
    let server = TlsServer::new(&house, &options);
    assert_eq!(house.read("W/http-certificate.pem"), certificate);
    assert_eq!(house.read("W/http-certificate.key"), key);
    server.send(&certificate, "GET", "/", &[("Cookie", &cookie)], "").page(200, "Recent notes");
    let device = server.send(&certificate, "GET", "/device", &[("Cookie", &cookie)], "").page(200, "Phone over TLS");
    let secret = device.split("name=\"form_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let form = fields(&[("form_token", secret.expect("a secret"))]);
    let own = format!("https://{}", server.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", &own), ("Content-Type", TYPES)];
    let out = server.send(&certificate, "POST", "/sign-out", &headers, &form).code(200);
    let line = out.header("Set-Cookie").expect("a cookie");
    // A browser removes a cookie of this name only with what the name demands.
    for part in ["__Host-tracebook_session=;", "; Path=/", "; Max-Age=0", "; Secure"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    server.end();

    // Without its files a new one is made, which whoever trusts the old one doesn't trust.
    for file in ["W/http-certificate.pem", "W/http-certificate.key"] {
        std::fs::remove_file(house.path(file)).expect("removed");
    }
    let server = TlsServer::new(&house, &options);
    let newer = house.read("W/http-certificate.pem");
    assert_ne!(newer, certificate);
    server.connect(&certificate, "127.0.0.1").expect_err("another certificate");
    server.connect(&newer, "127.0.0.1").expect("connected");
    server.end();
}

#[test]
fn the_certificate_is_for_the_address_in_the_link() {
    let house = notes();
    let server = TlsServer::new(&house, &["--listen", "0.0.0.0:0"]);
    let certificate = house.read("W/http-certificate.pem");
    server.connect(&certificate, "localhost").expect("connected");
    let host = server.pair.strip_prefix("https://").and_then(|at| at.split(':').next()).expect("an address");
    let port = server.address.rsplit_once(':').expect("a port").1;
    assert!(server.pair.starts_with(&format!("https://{host}:{port}/pair?code=")), "{}", server.pair);
    // A machine without a network has no other address to name.
    let is_networked = host != "0.0.0.0";
    assert_eq!(server.connect(&certificate, host).is_ok(), is_networked, "{host}");
    server.end();
}
