//! Git over the network: a real `git http-backend` behind TLS with passwords, and a real `sshd`, both on loopback.
//! Where a machine has none of them, these tests say so and are left out; with `TRACEBOOK_CI=1` they must be there.

use super::agents::configure;
use super::git::{caller, git, know_user, run_in};
use crate::program::{Done, House, PROGRAM, finish, is_root, noise, strict, until};
use base64::Engine as _;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use support::hub_load::free_port;

/// A password, and one that is wrong; nobody may see either.
const PASSWORD: &str = "correct-horse-battery";
const WRONG_PASSWORD: &str = "wrong-donkey-socket";
/// Size of a file that takes several packets, and more than Git sends as one.
const LARGE_FILE_BYTES: usize = 3 << 20;
/// A command that takes longer waits for an answer that nobody gives.
const MAX_COMMAND_TIME: Duration = Duration::from_secs(25);
/// Variables that would replace what the house configures.
const TESTERS_VARIABLES: [&str; 20] = [
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Where the server cuts the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// After so many bytes of the commits that are pushed.
    InPush(usize),
    /// After so many bytes of an answer with commits.
    InAnswer(usize),
    /// After a push has been taken, before the answer.
    BeforeAnswer,
}

#[derive(Default)]
struct ServerState {
    /// Method and path of each request with the right password.
    seen: Vec<String>,
    /// What happens once, to the next request that it concerns.
    cut: Option<Cut>,
}

/// A request as it came.
struct HttpRequest {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
}

impl HttpRequest {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn is_post_of(&self, service: &str) -> bool {
        self.method == "POST" && self.path.ends_with(service)
    }
}

type TlsStream = BufReader<StreamOwned<ServerConnection, TcpStream>>;

/// `git http-backend` behind TLS and a password. It runs until the test process ends.
#[derive(Clone)]
struct GitHttpsServer {
    /// The folder with the repositories.
    root: PathBuf,
    port: u16,
    config: Arc<ServerConfig>,
    state: Arc<Mutex<ServerState>>,
}

impl GitHttpsServer {
    /// Serves the repositories of a folder. Returns the server and its certificate.
    fn start(root: &Path) -> (GitHttpsServer, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("they fit");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let server = GitHttpsServer { root: root.to_owned(), port, config: Arc::new(config), state: Arc::default() };
        let shared = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = shared.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        (server, made.cert.pem())
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().expect("no thread of the server has failed")
    }

    fn cut(&self, cut: Cut) {
        self.lock().cut = Some(cut);
    }

    /// Asserts that the connection was cut as it was wanted.
    #[track_caller]
    fn has_cut(&self) {
        assert_eq!(self.lock().cut, None, "the connection was never cut");
    }

    /// Returns the requests since the last call.
    fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().seen)
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        stream.set_read_timeout(Some(MAX_COMMAND_TIME)).ok()?;
        let connection = ServerConnection::new(self.config.clone()).ok()?;
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        let request = read_request(&mut stream)?;
        let wanted = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("ada:{PASSWORD}")));
        if request.header("authorization") != wanted {
            let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"Git\"\r\nConnection: close\r\n";
            return send(stream, format!("{head}Content-Length: 0\r\n\r\n").as_bytes());
        }
        self.lock().seen.push(format!("{} {}", request.method, request.path));
        let cut = self.lock().cut;
        let most = match cut {
            Some(Cut::InPush(most)) if request.is_post_of("/git-receive-pack") => most,
            _ => usize::MAX,
        };
        let Some(body) = read_body(&mut stream, &request, most) else {
            self.lock().cut = None;
            return cut_off(&stream);
        };
        let answer = self.answer(&request, &body);
        // Git asks with four bytes first whether it may push.
        let is_push = request.is_post_of("/git-receive-pack") && body.len() > 4;
        let has_commits = answer.windows(4).any(|four| four == b"PACK");
        let sent = match cut {
            Some(Cut::BeforeAnswer) if is_push => 0,
            Some(Cut::InAnswer(most)) if request.is_post_of("/git-upload-pack") && has_commits => most,
            _ => return send(stream, &answer),
        };
        assert!(sent < answer.len(), "the answer has only {} bytes", answer.len());
        stream.get_mut().write_all(&answer[..sent]).ok()?;
        stream.get_mut().flush().ok()?;
        self.lock().cut = None;
        cut_off(&stream)
    }

    /// Runs `git http-backend` as a web server does. Returns the whole answer.
    fn answer(&self, request: &HttpRequest, body: &[u8]) -> Vec<u8> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let mut child = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("HOME", &self.root)
            .env("REMOTE_USER", "ada")
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("REQUEST_METHOD", &request.method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("CONTENT_TYPE", request.header("content-type"))
            .env("CONTENT_LENGTH", body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", request.header("content-encoding"))
            .env("GIT_PROTOCOL", request.header("git-protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git is there");
        let mut input = child.stdin.take().expect("piped");
        let done = std::thread::scope(|scope| {
            // It doesn't read all of what it refuses.
            scope.spawn(move || input.write_all(body));
            child.wait_with_output().expect("ended")
        });
        let end = done.stdout.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&done.stdout[..end]).into_owned();
        let content = &done.stdout[end + 4..];
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let mut answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", content.len());
        for line in head.lines().filter(|line| !line.starts_with("Status: ")) {
            answer += &format!("{line}\r\n");
        }
        let mut answer = (answer + "\r\n").into_bytes();
        answer.extend_from_slice(content);
        answer
    }
}

fn read_request(stream: &mut TlsStream) -> Option<HttpRequest> {
    let (mut first, mut line) = (String::new(), String::new());
    stream.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    while stream.read_line(&mut line).ok()? > 2 {
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_lowercase(), value.trim().to_owned());
        line.clear();
    }
    Some(HttpRequest { method, path, headers })
}

/// Returns the body, or nothing if it has more bytes than `most`: then only those were read.
fn read_body(stream: &mut TlsStream, request: &HttpRequest, most: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut read = |stream: &mut TlsStream, size: usize| {
        let size_read = size.min(most.saturating_sub(body.len()));
        let start = body.len();
        body.resize(start + size_read, 0);
        stream.read_exact(&mut body[start..]).ok()?;
        (size_read == size).then_some(())
    };
    if request.header("transfer-encoding") == "chunked" {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            read(stream, size)?;
            stream.read_line(&mut line).ok()?;
            if size == 0 {
                return Some(body);
            }
        }
    }
    read(stream, request.header("content-length").parse().unwrap_or(0))?;
    Some(body)
}

fn send(mut stream: TlsStream, answer: &[u8]) -> Option<()> {
    let stream = stream.get_mut();
    stream.write_all(answer).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Ends a connection as a network that fails does: nothing of TLS is said.
fn cut_off(stream: &TlsStream) -> Option<()> {
    stream.get_ref().sock.shutdown(Shutdown::Both).ok()
}

/// Runs `tracebook` in a folder of the house, without a terminal and without the tester's settings of Git.
fn run_apart(house: &House, folder: &str, words: &[&str]) -> Done {
    let mut command = Command::new("setsid");
    command.args(["--wait", PROGRAM]);
    house.surround(&mut command, words);
    command.current_dir(house.path(folder));
    for name in TESTERS_VARIABLES {
        command.env_remove(name);
    }
    let begun = Instant::now();
    let done = finish(command, b"");
    assert!(begun.elapsed() < MAX_COMMAND_TIME, "{words:?} took {:?}: {}", begun.elapsed(), done.err);
    for secret in [PASSWORD, WRONG_PASSWORD] {
        assert!(!done.err.contains(secret) && !done.text().contains(secret), "{words:?} shows a password: {done:?}");
    }
    done
}

/// A house with the bare repository `remote.git`, and another clone of it in `other`.
fn with_repository(files: &[(&str, &[u8])]) -> House {
    let house = House::new();
    git(&house.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    git(&house.path(""), &["init", "-q", "-b", "main", "other"]);
    know_user(&house.path("other"));
    git(&house.path("other"), &["remote", "add", "origin", "../remote.git"]);
    for (name, bytes) in files {
        house.write(&format!("other/{name}"), bytes);
    }
    elsewhere(&house, &[], "First");
    house
}

/// Writes files in the other clone, commits and pushes.
fn elsewhere(house: &House, files: &[(&str, &[u8])], message: &str) {
    let other = house.path("other");
    for (name, bytes) in files {
        house.write(&format!("other/{name}"), bytes);
    }
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-qm", message]);
    git(&other, &["push", "-q", "-u", "origin", "main"]);
}

fn remote_log(house: &House) -> String {
    git(&house.path("remote.git"), &["log", "--format=%s", "main"])
}

/// Asserts that both repositories are whole, and that no lock is left.
#[track_caller]
fn is_sound(house: &House) {
    git(&house.path("remote.git"), &["fsck", "--no-dangling"]);
    git(&house.path("copy"), &["fsck", "--no-dangling"]);
    assert!(!house.path("copy/.git/index.lock").exists() && !house.path("copy/.git/refs/heads/main.lock").exists());
}

fn branch_line(house: &House) -> String {
    let status = run_in(house, "copy", &["status"]).good().text();
    status.lines().next().unwrap_or_default().to_owned()
}

/// A house whose Git trusts the server's certificate and knows a password.
struct Net {
    house: House,
    server: GitHttpsServer,
    url: String,
}

impl Net {
    /// `None` if this machine's Git has no server, which on the project's own machine is a failure.
    fn start(files: &[(&str, &[u8])]) -> Option<Net> {
        let done = Command::new("git").arg("--exec-path").output().expect("git is there");
        let backend = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim()).join("git-http-backend");
        if !backend.is_file() {
            assert!(!strict(), "TRACEBOOK_CI=1 and there is no {}", backend.display());
            println!("left out: there is no {}", backend.display());
            return None;
        }
        let house = with_repository(files);
        let (server, certificate) = GitHttpsServer::start(&house.path(""));
        house.write("certificate.pem", certificate.as_bytes());
        let url = format!("https://localhost:{}/remote.git", server.port);
        let net = Net { house, server, url };
        net.trust(true);
        net.know_password(PASSWORD);
        Some(net)
    }

    /// Writes the house's own Git configuration.
    fn trust(&self, is_trusted: bool) {
        let certificate = self.house.path("certificate.pem");
        let trusted = match is_trusted {
            true => format!("[http]\n\tsslCAInfo = {}\n", certificate.display()),
            false => String::new(),
        };
        let user = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
        self.house.write(".gitconfig", format!("{trusted}{user}[credential]\n\thelper = store\n").as_bytes());
    }

    /// Gives Git's own credential helper a password. Git takes one back that was wrong.
    fn know_password(&self, password: &str) {
        let line = format!("https://ada:{password}@localhost:{}\n", self.server.port);
        self.house.write(".git-credentials", line.as_bytes());
    }

    fn run_in(&self, folder: &str, words: &[&str]) -> Done {
        let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
        run_apart(&self.house, folder, &all)
    }

    fn clone(&self) {
        self.run_in("", &["clone", &self.url, "copy"]).good();
        self.server.take_seen();
    }

    /// Asserts that a clone has left nothing, and nothing that is a volume.
    #[track_caller]
    fn has_no_copy(&self) {
        for name in ["copy", ".copy.tracebook-clone"] {
            assert!(self.house.path(name).symlink_metadata().is_err(), "{name} is left");
        }
    }
}

#[test]
fn commits_travel_over_tls_with_a_password() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    let house = &net.house;
    let done = net.run_in("", &["clone", &net.url, "copy"]).good().text();
    assert!(done.contains("On main, even with origin/main") && done.contains("copy: 1 note"), "{done}");
    assert_eq!(house.cat("copy/a.md"), b"one\n");
    let seen = net.server.take_seen();
    assert!(seen.contains(&"POST /remote.git/git-upload-pack".to_owned()), "{seen:?}");

    house.write("copy/a.md", b"one\ntwo\n");
    let done = net.run_in("copy", &["commit", "-m", "Two", "--push"]).good().text();
    assert!(done.contains("even with origin/main"), "{done}");
    assert_eq!(remote_log(house), "Two\nFirst");
    git(&house.path("other"), &["pull", "-q"]);
    elsewhere(house, &[("a.md", b"one\ntwo\nthree\n"), ("b.md", b"new\n")], "Three");
    net.run_in("copy", &["fetch"]).good();
    assert!(branch_line(house).contains("0 ahead of and 1 behind"), "{}", branch_line(house));
    net.run_in("copy", &["pull"]).good();
    assert_eq!((house.cat("copy/a.md"), house.cat("copy/b.md")), (b"one\ntwo\nthree\n".to_vec(), b"new\n".to_vec()));

    // The first push of a branch says where it goes.
    net.run_in("copy", &["switch", "idea", "--create"]).good();
    house.write("copy/b.md", b"idea\n");
    net.run_in("copy", &["commit", "-m", "Idea", "--push"]).good();
    assert!(branch_line(house).contains("On idea, even with origin/idea"), "{}", branch_line(house));
    let remote = house.path("remote.git");
    assert_eq!(git(&remote, &["log", "-1", "--format=%an: %s", "idea"]), "Ada: Idea");
    net.run_in("", &["clone", &net.url, "shallow", "--depth", "1"]).good();
    assert_eq!(git(&house.path("shallow"), &["rev-list", "--count", "HEAD"]), "1");
    is_sound(house);
}

#[test]
fn a_wrong_password_is_said_and_nobody_is_asked() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    let house = &net.house;
    let refused = "didn't accept your credentials";
    // A wrong one, none at all, and one in the address.
    net.know_password(WRONG_PASSWORD);
    net.run_in("", &["clone", &net.url, "copy"]).refused(2, refused);
    std::fs::remove_file(house.path(".git-credentials")).expect("it's there");
    net.run_in("", &["clone", &net.url, "copy"]).refused(2, refused);
    for user in ["ada".to_owned(), format!("ada:{WRONG_PASSWORD}")] {
        let address = net.url.replace("https://", &format!("https://{user}@"));
        net.run_in("", &["clone", &address, "copy"]).refused(2, refused);
    }
    net.has_no_copy();
    assert_eq!(net.server.take_seen(), Vec::<String>::new());

    net.know_password(PASSWORD);
    net.clone();
    house.write("copy/a.md", b"one\ntwo\n");
    net.run_in("copy", &["commit", "-m", "Two"]).good();
    for words in ["push", "pull", "fetch"] {
        net.know_password(WRONG_PASSWORD);
        let done = net.run_in("copy", &[words]).refused(2, refused);
        assert!(done.err.contains("credential helper or an SSH key"), "{}", done.err);
    }
    assert!(branch_line(house).contains("1 ahead of and 0 behind"), "{}", branch_line(house));

    // An agent hears the same at once.
    let (address, results) = caller(vec![("git_fetch", json!({})), ("git_push", json!({}))]);
    configure(house, &address);
    net.know_password(WRONG_PASSWORD);
    let words = ["ask", "push", "--project", "copy", "--approve", "git_fetch", "--approve", "git_push", "--json"];
    run_apart(house, "", &words).good();
    let results = results.lock().expect("heard").clone();
    assert!(results.len() == 2 && results.iter().all(|result| result.contains(refused)), "{results:?}");
    assert!(!results.concat().contains(WRONG_PASSWORD), "{results:?}");
    assert_eq!(remote_log(house), "First");

    net.know_password(PASSWORD);
    net.run_in("copy", &["push"]).good();
    assert_eq!(remote_log(house), "Two\nFirst");
}

#[test]
fn a_certificate_that_is_not_trusted_gets_no_password() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    net.clone();
    net.trust(false);
    for (folder, words) in [("", &["clone", net.url.as_str(), "more"][..]), ("copy", &["fetch"]), ("copy", &["push"])] {
        let done = net.run_in(folder, words).refused(2, "certificate isn't trusted");
        assert!(done.err.contains("http.sslCAInfo"), "{}", done.err);
    }
    assert!(!net.house.path("more").exists() && !net.house.path(".more.tracebook-clone").exists());
    assert_eq!(net.server.take_seen(), Vec::<String>::new());
    net.trust(true);
    net.run_in("copy", &["fetch"]).good();
}

#[test]
fn a_clone_or_pull_that_is_cut_off_leaves_nothing_half() {
    let large = noise(1, LARGE_FILE_BYTES);
    let Some(net) = Net::start(&[("a.md", b"one\n"), ("large.bin", &large)]) else { return };
    let house = &net.house;
    for (bytes, depth) in [(0, "1"), (900, "1"), (LARGE_FILE_BYTES / 2, "9")] {
        net.server.cut(Cut::InAnswer(bytes));
        let done = net.run_in("", &["clone", &net.url, "copy", "--depth", depth]);
        done.refused(2, "The connection to the remote broke off");
        net.server.has_cut();
        net.has_no_copy();
    }
    net.clone();
    assert_eq!(house.read("copy/large.bin"), large);

    let larger = noise(2, LARGE_FILE_BYTES);
    elsewhere(house, &[("a.md", b"one\ntwo\n"), ("large.bin", &larger)], "Two");
    house.write("copy/mine.md", b"mine\n");
    let head = git(&house.path("copy"), &["rev-parse", "HEAD"]);
    for words in [&["pull"][..], &["pull", "--rebase"], &["fetch"]] {
        net.server.cut(Cut::InAnswer(LARGE_FILE_BYTES / 3));
        net.run_in("copy", words).refused(2, "Your files and commits are as they were");
        net.server.has_cut();
        assert_eq!(git(&house.path("copy"), &["rev-parse", "HEAD", "origin/main"]), format!("{head}\n{head}"));
        assert_eq!((house.read("copy/a.md"), house.read("copy/mine.md")), (b"one\n".to_vec(), b"mine\n".to_vec()));
        is_sound(house);
    }
    net.run_in("copy", &["pull"]).good();
    assert_eq!((house.cat("copy/a.md"), house.read("copy/large.bin")), (b"one\ntwo\n".to_vec(), larger));
    assert_eq!(house.cat("copy/mine.md"), b"mine\n");
    is_sound(house);
}

#[test]
fn a_push_that_is_cut_off_is_repeated() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    let house = &net.house;
    net.clone();
    let large = noise(3, LARGE_FILE_BYTES);
    house.write("copy/large.bin", &large);
    house.write("copy/a.md", b"one\ntwo\n");
    net.run_in("copy", &["commit", "-m", "Large"]).good();
    for bytes in [5, 900, LARGE_FILE_BYTES / 2] {
        net.server.cut(Cut::InPush(bytes));
        let done = net.run_in("copy", &["push"]).refused(2, "The connection to the remote broke off");
        assert!(!done.err.contains("up-to-date"), "{}", done.err);
        net.server.has_cut();
        assert_eq!(remote_log(house), "First");
        assert!(branch_line(house).contains("1 ahead of and 0 behind"), "{}", branch_line(house));
        is_sound(house);
    }
    net.run_in("copy", &["push"]).good();
    assert_eq!(remote_log(house), "Large\nFirst");
    git(&house.path("other"), &["pull", "-q"]);
    assert_eq!(house.read("other/large.bin"), large);

    // The remote has taken it, and only its answer is lost.
    house.write("copy/a.md", b"one\ntwo\nthree\n");
    net.run_in("copy", &["commit", "-m", "Three"]).good();
    net.server.cut(Cut::BeforeAnswer);
    net.run_in("copy", &["push"]).refused(2, "what has arrived isn't sent twice");
    net.server.has_cut();
    assert_eq!(remote_log(house), "Three\nLarge\nFirst");
    net.run_in("copy", &["push"]).good();
    assert!(branch_line(house).contains("even with origin/main"), "{}", branch_line(house));
    assert_eq!(remote_log(house), "Three\nLarge\nFirst");
    is_sound(house);
}

#[test]
fn a_push_that_the_servers_hook_rejects_says_why() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    let house = &net.house;
    net.clone();
    let hook = house.path("remote.git/hooks/pre-receive");
    house.write("remote.git/hooks/pre-receive", b"#!/bin/sh\necho No pushes on Fridays >&2\nexit 1\n");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("set");
    house.write("copy/a.md", b"one\ntwo\n");
    let done = net.run_in("copy", &["commit", "-m", "Two", "--push"]).refused(2, "The remote refused the push");
    assert!(
        done.err.starts_with("tracebook: Committed as ") && done.err.contains(", but not pushed. "),
        "{}",
        done.err
    );
    assert!(done.err.contains("No pushes on Fridays") && done.err.contains("[remote rejected]"), "{}", done.err);
    assert_eq!(remote_log(house), "First");
    assert!(branch_line(house).contains("1 ahead of and 0 behind"), "{}", branch_line(house));
    std::fs::remove_file(hook).expect("removed");
    net.run_in("copy", &["push"]).good();
    assert_eq!(remote_log(house), "Two\nFirst");
    // What the remote has and this clone hasn't is said in other words.
    git(&house.path("other"), &["pull", "-q"]);
    elsewhere(house, &[("a.md", b"three\n")], "Three");
    house.write("copy/b.md", b"b\n");
    net.run_in("copy", &["commit", "-m", "B"]).good();
    net.run_in("copy", &["push"]).refused(1, "Pull first");
}

#[test]
fn submodules_of_a_repository_are_not_fetched_and_their_addresses_not_run() {
    let Some(net) = Net::start(&[("a.md", b"one\n")]) else { return };
    let house = &net.house;
    let mark = house.path("hacked");
    git(&house.path(""), &["clone", "-q", "--bare", "remote.git", "library.git"]);
    let other = house.path("other");
    let head = git(&other, &["rev-parse", "HEAD"]);
    let modules = format!(
        "[submodule \"lib\"]\n\tpath = lib\n\turl = https://localhost:{}/library.git\n\tfetchRecurseSubmodules = true\n\
         [submodule \"ext\"]\n\tpath = ext\n\turl = \"ext::sh -c touch% {}\"\n\
         [submodule \"option\"]\n\tpath = option\n\turl = --upload-pack=touch\n",
        net.server.port,
        mark.display()
    );
    for name in ["lib", "ext", "option"] {
        git(&other, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},{name}")]);
    }
    house.write("other/.gitmodules", modules.as_bytes());
    git(&other, &["add", ".gitmodules", "a.md"]);
    git(&other, &["commit", "-qm", "Modules"]);
    git(&other, &["push", "-q"]);
    let is_untouched = |what: &str| {
        let seen = net.server.take_seen();
        assert!(seen.iter().all(|one| one.contains("/remote.git/")), "{what}: {seen:?}");
        assert!(!mark.exists(), "{what} ran an address");
        for name in ["lib", "ext", "option"] {
            let inside = std::fs::read_dir(house.path("copy").join(name)).expect("a folder").count();
            assert_eq!(inside, 0, "{what} filled {name}");
        }
    };
    net.run_in("", &["clone", &net.url, "copy"]).good();
    is_untouched("clone");
    // Another commit of each, and text beside it.
    let next = git(&other, &["rev-parse", "HEAD"]);
    house.write("other/a.md", b"one\ntwo\n");
    git(&other, &["add", "a.md"]);
    for name in ["lib", "ext", "option"] {
        git(&other, &["update-index", "--cacheinfo", &format!("160000,{next},{name}")]);
    }
    git(&other, &["commit", "-qm", "Moved"]);
    git(&other, &["push", "-q"]);
    for words in [&["fetch"][..], &["pull"]] {
        net.run_in("copy", words).good();
        is_untouched(words[0]);
    }
    assert_eq!(house.cat("copy/a.md"), b"one\ntwo\n");
    assert_eq!(git(&house.path("copy"), &["rev-parse", "HEAD:lib"]), next);
    assert_eq!(run_in(house, "copy", &["status"]).good().text().lines().count(), 2, "nothing has changed");
    // Git itself refuses a repository that wants a program to update its submodules. That's said, and nothing runs.
    let evil = modules.replace("\tpath = lib\n", &format!("\tpath = lib\n\tupdate = !touch {}\n", mark.display()));
    house.write("other/.gitmodules", evil.as_bytes());
    git(&other, &["add", ".gitmodules"]);
    git(&other, &["commit", "-qm", "Evil"]);
    git(&other, &["push", "-q"]);
    for _ in 0..2 {
        let done = net.run_in("copy", &["pull"]);
        assert!(done.code == 0 || done.err.contains("submodule.lib.update"), "{done:?}");
        is_untouched("pull");
    }
    net.run_in("", &["clone", &net.url, "second"]).code(0);
    assert!(!mark.exists());
}

/// A real `sshd` for the user who runs the tests. Ended on drop.
struct SshServer {
    child: Child,
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a key in the house's folder.
fn make_key(house: &House, name: &str) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(house.path(name));
    let done = command.output().expect("ssh-keygen is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Starts the server for a house, whose SSH then knows it as `hub`. `None` if this machine has none, which on the
/// project's own machine is a failure.
fn start_sshd(house: &House) -> Option<SshServer> {
    let places = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"];
    let Some(program) = places.iter().map(Path::new).find(|place| place.is_file()) else {
        assert!(!strict(), "TRACEBOOK_CI=1 and there is no sshd: `apt install openssh-server`");
        println!("left out: there is no sshd");
        return None;
    };
    for name in ["host-key", "key", "foreign-key"] {
        make_key(house, name);
    }
    if is_root() {
        // Where Debian's own service has never started, this folder isn't there yet.
        std::fs::create_dir_all("/run/sshd").expect("made");
    }
    let port = free_port().expect("a port");
    let at = |name: &str| house.path(name).display().to_string();
    let settings = format!(
        "Port {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM \
         no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
        port,
        at("host-key"),
        at("key.pub")
    );
    house.write("sshd_config", settings.as_bytes());
    let mut command = Command::new(program);
    command.arg("-D").arg("-E").arg(house.path("sshd.log")).arg("-f").arg(house.path("sshd_config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = SshServer { child: command.spawn().expect("started") };
    until("sshd listens", || {
        let ended = server.child.try_wait().expect("waited");
        assert!(ended.is_none(), "sshd ended: {}", String::from_utf8_lossy(&house.read("sshd.log")));
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let user = Command::new("id").arg("-un").output().expect("id is there");
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let client = format!(
        "Host hub\n  HostName 127.0.0.1\n  Port {}\n  User {user}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
         IdentityAgent none\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n",
        port,
        at("key"),
        at("known_hosts")
    );
    house.write("ssh_config", client.as_bytes());
    let known = String::from_utf8(house.read("host-key.pub")).expect("text");
    house.write("known_hosts", format!("[127.0.0.1]:{port} {known}").as_bytes());
    let user = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
    let program = format!("[core]\n\tsshCommand = ssh -F {}\n", at("ssh_config"));
    house.write(".gitconfig", format!("{user}{program}").as_bytes());
    Some(server)
}

#[test]
fn commits_travel_over_ssh_and_wrong_keys_are_said() {
    let house = with_repository(&[("a.md", b"one\n")]);
    let Some(_server) = start_sshd(&house) else { return };
    let run = |folder: &str, words: &[&str]| {
        let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
        run_apart(&house, folder, &all)
    };
    let address = format!("hub:{}", house.path("remote.git").display());
    let url = format!("ssh://hub{}", house.path("remote.git").display());
    run("", &["clone", &address, "copy"]).good();
    run("", &["clone", &url, "second"]).good();
    assert_eq!((house.cat("copy/a.md"), house.cat("second/a.md")), (b"one\n".to_vec(), b"one\n".to_vec()));
    house.write("copy/a.md", b"one\ntwo\n");
    run("copy", &["commit", "-m", "Two", "--push"]).good();
    assert_eq!(remote_log(&house), "Two\nFirst");
    run("second", &["pull"]).good();
    assert_eq!(house.cat("second/a.md"), b"one\ntwo\n");

    // Another key than the one that the server knows.
    let config = String::from_utf8(house.read("ssh_config")).expect("text");
    let key = house.path("key").display().to_string();
    let foreign = config.replace(&key, &house.path("foreign-key").display().to_string());
    house.write("ssh_config", foreign.as_bytes());
    house.write("copy/a.md", b"one\ntwo\nthree\n");
    run("copy", &["commit", "-m", "Three"]).good();
    for words in [&["push"][..], &["fetch"], &["pull"]] {
        let done = run("copy", words).refused(2, "didn't accept your credentials");
        assert!(done.err.contains("an SSH key"), "{}", done.err);
    }
    run("", &["clone", &url, "third"]).refused(2, "didn't accept your credentials");
    assert!(!house.path("third").exists() && !house.path(".third.tracebook-clone").exists());
    assert_eq!(remote_log(&house), "Two\nFirst");
    house.write("ssh_config", config.as_bytes());

    // A host key that isn't known, and one that has changed.
    let known = house.read("known_hosts");
    let changed = String::from_utf8(known.clone()).expect("text");
    let other_key = String::from_utf8(house.read("foreign-key.pub")).expect("text");
    let changed = format!("{} {other_key}", changed.split(' ').next().expect("a host"));
    for wrong in [b"".to_vec(), changed.into_bytes()] {
        house.write("known_hosts", &wrong);
        let done = run("copy", &["push"]).refused(2, "host key isn't known on this device, or it has changed");
        assert!(done.err.contains("nothing was sent"), "{}", done.err);
        assert_eq!(house.read("known_hosts"), wrong, "and nobody has accepted it");
    }
    house.write("known_hosts", &known);
    run("copy", &["push"]).good();
    assert_eq!(remote_log(&house), "Three\nTwo\nFirst");
}
