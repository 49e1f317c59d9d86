//! A local server that implements what GitHub documents of its REST API for Git objects, in front of a real bare
//! repository, with faults on request.

use super::git::git;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) status: u16,
}

/// What happens to the next requests instead of an answer.
pub(super) enum Fault {
    /// This status, with these headers and this body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// The right answer, of which only the first half is sent.
    Cut,
    /// The right answer, once the other end of the channel is closed. The test hears of it at the first.
    Gate(Sender<()>, Receiver<()>),
    /// A program that runs first.
    Before(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct ServerState {
    seen: Vec<Seen>,
    /// Faults for requests whose method and path contain a text.
    faults: Vec<(String, Fault)>,
    /// Required token.
    token: Option<String>,
    /// Trees with more entries are cut off.
    tree_limit: Option<usize>,
    /// Where archives are.
    archives: Option<String>,
}

/// The server. It runs until the test process ends.
#[derive(Clone)]
pub(crate) struct GitHubServer {
    repository: PathBuf,
    pub(crate) address: String,
    state: Arc<Mutex<ServerState>>,
}

/// An answer: status, headers, body.
type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

fn message(status: u16, text: &str) -> Answer {
    let body = json!({"message": text, "documentation_url": "https://docs.github.com/rest"});
    (status, Vec::new(), body.to_string().into_bytes())
}

fn answer(status: u16, body: &Value) -> Answer {
    (status, Vec::new(), body.to_string().into_bytes())
}

impl GitHubServer {
    /// Serves the bare repository in `folder` as `ada/notes`.
    pub(super) fn start(repository: &Path) -> GitHubServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let server = GitHubServer { repository: repository.to_owned(), address, state: Arc::default() };
        let shared = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = shared.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().expect("no test thread has failed here")
    }

    pub(super) fn require_token(&self, token: &str) {
        self.lock().token = Some(token.to_owned());
    }

    pub(super) fn cut_trees(&self, limit: usize) {
        self.lock().tree_limit = Some(limit);
    }

    /// Redirects archives to another server.
    pub(super) fn redirect_archives(&self, to: &GitHubServer) {
        self.lock().archives = Some(to.address.clone());
    }

    /// The next request with this text in its method and path has a fault.
    pub(super) fn fail(&self, text: &str, fault: Fault) {
        self.lock().faults.push((text.to_owned(), fault));
    }

    /// Lets the next request with this text wait. Returns what hears of it, and what ends the wait when it's dropped.
    pub(super) fn gate(&self, text: &str) -> (Receiver<()>, Sender<()>) {
        let ((tell, told), (open, opened)) = (channel(), channel());
        self.fail(text, Fault::Gate(tell, opened));
        (told, open)
    }

    /// Returns the requests since the last call.
    pub(super) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.lock().seen)
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let (mut first, mut line) = (String::new(), String::new());
        reader.read_line(&mut first).ok()?;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = BTreeMap::new();
        while reader.read_line(&mut line).ok()? > 2 {
            let (name, value) = line.split_once(':')?;
            headers.insert(name.to_lowercase(), value.trim().to_owned());
            line.clear();
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let wanted = format!("{method} {path}");
        let fault = {
            let mut state = self.lock();
            let at = state.faults.iter().position(|(text, _)| wanted.contains(text.as_str()));
            at.map(|at| state.faults.remove(at).1)
        };
        let mut is_cut = false;
        let given = match fault {
            Some(Fault::Answer(status, headers, body)) => Some((status, headers, body)),
            Some(Fault::Cut) => {
                is_cut = true;
                None
            }
            Some(Fault::Gate(tell, opened)) => {
                tell.send(()).ok()?;
                // Closed without a message.
                assert!(opened.recv().is_err());
                None
            }
            Some(Fault::Before(run)) => {
                run();
                None
            }
            None => None,
        };
        let (mut status, mut fields, mut bytes) = given.unwrap_or_else(|| self.answer(&method, &path, &headers, &body));
        if status == 200 && method == "GET" {
            // Weak, as GitHub's are for JSON.
            let etag = format!("W/\"{:x}\"", checksum(&bytes));
            if headers.get("if-none-match") == Some(&etag) {
                (status, bytes) = (304, Vec::new());
            }
            fields.push(("etag", etag));
        }
        self.lock().seen.push(Seen { method, path, headers, status });
        let mut head = format!("HTTP/1.1 {status} Answer\r\ncontent-length: {}\r\nconnection: close\r\n", bytes.len());
        fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let mut stream = stream;
        stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
        let sent = if is_cut { &bytes[..bytes.len() / 2] } else { &bytes[..] };
        stream.write_all(sent).ok()
    }

    fn answer(&self, method: &str, path: &str, headers: &BTreeMap<String, String>, body: &[u8]) -> Answer {
        if !headers.contains_key("user-agent") {
            return message(403, "Request forbidden by administrative rules.");
        }
        if headers.get("x-github-api-version").map(String::as_str) != Some("2022-11-28") {
            return message(400, "Unsupported API version");
        }
        let (token, tree_limit, archives) = {
            let state = self.lock();
            (state.token.clone(), state.tree_limit, state.archives.clone())
        };
        match (token, headers.get("authorization")) {
            (Some(_), None) => return message(404, "Not Found"),
            (Some(token), Some(given)) if *given != format!("Bearer {token}") => {
                return message(401, "Bad credentials");
            }
            _ => {}
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some(rest) = path.strip_prefix("/repos/ada/notes").or_else(|| path.strip_prefix("/repositories/1")) else {
            return message(404, "Not Found");
        };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method, parts.as_slice()) {
            ("GET", []) => answer(200, &json!({"id": 1, "full_name": "ada/notes", "default_branch": "main"})),
            ("GET", ["git", "ref", "heads", branch @ ..]) => match self.branch(&branch.join("/")) {
                Some(id) => answer(200, &reference(&branch.join("/"), &id)),
                None if self.branch("main").is_none() => message(409, "Git Repository is empty."),
                None => message(404, "Not Found"),
            },
            ("GET", ["git", "commits", id]) => match self.read(&["rev-parse", "--verify", &format!("{id}^{{commit}}")])
            {
                Some(id) => answer(200, &self.commit(&id)),
                None => message(404, "Not Found"),
            },
            ("GET", ["git", "trees", id]) => self.tree(id, query == "recursive=1", tree_limit),
            ("GET", ["git", "blobs", id]) => self.blob(id, headers),
            ("GET", ["tarball", id]) => match archives {
                Some(host) => (302, vec![("location", format!("{host}/archive/{id}"))], Vec::new()),
                None => message(404, "Not Found"),
            },
            ("GET", ["commits"]) => self.list(query),
            ("POST", ["git", "blobs"]) => {
                use base64::Engine as _;
                assert_eq!(sent["encoding"], "base64");
                let content = sent["content"].as_str().unwrap_or_default();
                let bytes = base64::engine::general_purpose::STANDARD.decode(content).expect("base64");
                answer(201, &json!({"sha": self.feed(&["hash-object", "-w", "--stdin"], &bytes)}))
            }
            ("POST", ["git", "trees"]) => self.new_tree(&sent),
            ("POST", ["git", "commits"]) => {
                let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
                let parent = sent["parents"][0].as_str().unwrap_or_default().to_owned();
                let words = ["commit-tree", &text("tree"), "-p", &parent, "-F", "-"];
                answer(201, &self.commit(&self.feed(&words, text("message").as_bytes())))
            }
            ("PATCH", ["git", "refs", "heads", branch @ ..]) => self.move_branch(&branch.join("/"), &sent),
            _ => message(404, "Not Found"),
        }
    }

    /// Serves archives as a second host does, which knows nothing of the API.
    pub(super) fn start_archives(repository: &Path) -> GitHubServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let server = GitHubServer { repository: repository.to_owned(), address, state: Arc::default() };
        let shared = server.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let reader = BufReader::new(stream.try_clone().expect("the same"));
                let lines: Vec<String> =
                    reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let path = lines[0].split_whitespace().nth(1).unwrap_or_default().to_owned();
                let pairs = lines[1..].iter().filter_map(|line| line.split_once(':'));
                let headers = pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
                let id = path.trim_start_matches("/archive/").to_owned();
                let words = ["archive", "--format=tar.gz", "--prefix=ada-notes-1/", &id];
                let bytes = shared.bytes(&words).unwrap_or_default();
                shared.lock().seen.push(Seen { method: "GET".to_owned(), path, headers, status: 200 });
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
                // The program hangs up when it's stopped.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
            }
        });
        server
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.repository);
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            command.env(name, "Ada");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            command.env(name, "ada@example.org");
        }
        command
    }

    fn bytes(&self, words: &[&str]) -> Option<Vec<u8>> {
        let done = self.command(words).output().expect("git is there");
        done.status.success().then_some(done.stdout)
    }

    fn read(&self, words: &[&str]) -> Option<String> {
        self.bytes(words).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn feed(&self, words: &[&str], input: &[u8]) -> String {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git is there");
        child.stdin.take().expect("piped").write_all(input).expect("written");
        let done = child.wait_with_output().expect("ended");
        assert!(done.status.success(), "{words:?}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    fn branch(&self, name: &str) -> Option<String> {
        self.read(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")])
    }

    fn commit(&self, id: &str) -> Value {
        let text = self.read(&["show", "-s", "--format=%T%n%an%n%aI%n%P%n%B", id]).expect("a commit");
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (tree, author, date, parents) = (next(), next(), next(), next());
        let parents: Vec<Value> = parents.split_whitespace().map(|id| json!({"sha": id})).collect();
        let message = text.lines().skip(4).collect::<Vec<_>>().join("\n");
        let who = json!({"name": author, "email": "ada@example.org", "date": date});
        let tree = json!({"sha": tree});
        json!({"sha": id, "tree": tree, "author": who, "committer": who, "message": message, "parents": parents})
    }

    fn list(&self, query: &str) -> Answer {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        let count = format!("-{}", value("per_page").unwrap_or("30"));
        let ids = self.read(&["log", "--format=%H", &count, value("sha").unwrap_or("main")]).unwrap_or_default();
        let listed = |id: &str| json!({"sha": id, "commit": self.commit(id)});
        answer(200, &Value::Array(ids.lines().map(listed).collect()))
    }

    fn tree(&self, id: &str, is_recursive: bool, limit: Option<usize>) -> Answer {
        let mut words = vec!["ls-tree", "-l", "-z"];
        if is_recursive {
            words.extend(["-r", "-t"]);
        }
        words.push(id);
        let Some(listed) = self.bytes(&words) else { return message(404, "Not Found") };
        let listed = String::from_utf8(listed).expect("UTF-8");
        let entry = |line: &str| {
            let (head, path) = line.split_once('\t').expect("an entry");
            let [mode, kind, sha, size] = head.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{head}") };
            match size.parse::<u64>() {
                Ok(size) => json!({"path": path, "mode": mode, "type": kind, "sha": sha, "size": size}),
                Err(_) => json!({"path": path, "mode": mode, "type": kind, "sha": sha}),
            }
        };
        let mut entries: Vec<Value> = listed.split('\0').filter(|line| !line.is_empty()).map(entry).collect();
        let is_cut = is_recursive && limit.is_some_and(|limit| entries.len() > limit);
        if is_cut {
            entries.truncate(limit.unwrap_or_default());
        }
        answer(200, &json!({"sha": id, "tree": entries, "truncated": is_cut}))
    }

    fn blob(&self, id: &str, headers: &BTreeMap<String, String>) -> Answer {
        use base64::Engine as _;
        let Some(bytes) = self.bytes(&["cat-file", "blob", id]) else { return message(404, "Not Found") };
        match headers.get("accept").is_some_and(|accept| accept.starts_with("application/vnd.github.raw")) {
            true => (200, Vec::new(), bytes),
            false => {
                let content = base64::engine::general_purpose::STANDARD.encode(&bytes);
                answer(200, &json!({"sha": id, "size": bytes.len(), "content": content, "encoding": "base64"}))
            }
        }
    }

    fn new_tree(&self, sent: &Value) -> Answer {
        let index = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        std::fs::remove_file(&index).expect("removed");
        let run = |words: &[&str], input: &str| {
            let mut command = self.command(words);
            command.env("GIT_INDEX_FILE", &index).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("git is there");
            child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
            let done = child.wait_with_output().expect("ended");
            assert!(done.status.success(), "{words:?} {input}");
            String::from_utf8_lossy(&done.stdout).trim().to_owned()
        };
        run(&["read-tree", sent["base_tree"].as_str().expect("a base")], "");
        let mut lines = String::new();
        for entry in sent["tree"].as_array().expect("entries") {
            let path = entry["path"].as_str().expect("a path");
            lines += &match (entry["mode"].as_str(), entry["sha"].as_str()) {
                (Some(mode), Some(sha)) => format!("{mode} {sha}\t{path}\0"),
                (_, None) => format!("0 {}\t{path}\0", "0".repeat(40)),
                (None, Some(_)) => panic!("no mode: {entry}"),
            };
        }
        run(&["update-index", "-z", "--index-info"], &lines);
        answer(201, &json!({"sha": run(&["write-tree"], "")}))
    }

    fn move_branch(&self, branch: &str, sent: &Value) -> Answer {
        let id = sent["sha"].as_str().unwrap_or_default();
        let Some(old) = self.branch(branch) else { return message(422, "Reference does not exist") };
        let is_forward = self.read(&["merge-base", "--is-ancestor", &old, id]).is_some();
        if !is_forward && sent["force"] != true {
            return message(422, "Update is not a fast forward");
        }
        self.read(&["update-ref", &format!("refs/heads/{branch}"), id]).expect("updated");
        answer(200, &reference(branch, id))
    }
}

fn reference(branch: &str, id: &str) -> Value {
    json!({"ref": format!("refs/heads/{branch}"), "object": {"type": "commit", "sha": id}})
}

fn checksum(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Changes files of the repository's branch through another clone; `None` deletes one.
pub(super) fn commit_elsewhere(other: &Path, changes: &[(&str, Option<&str>)], message: &str) {
    git(other, &["pull", "-q"]);
    for (path, text) in changes {
        let place = other.join(path);
        match text {
            Some(text) => {
                std::fs::create_dir_all(place.parent().expect("above")).expect("made");
                std::fs::write(place, text).expect("written");
            }
            None => {
                std::fs::remove_file(&place).expect("removed");
                // Refused while other files are in it.
                let _ = std::fs::remove_dir(place.parent().expect("above"));
            }
        }
    }
    git(other, &["add", "-A"]);
    git(other, &["commit", "-qm", message]);
    git(other, &["push", "-q", "origin", "main"]);
}
