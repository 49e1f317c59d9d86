//! Clients of the HTTP server that ask too often, are too many, are slow, or don't read: what they get, and that others
//! are answered meanwhile.

use super::agents;
use super::http_server::{Answer, EventClient, NOTE, Server, notes, request_text, token};
use crate::program::{strict, until};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

const VOLUMES: &str = "/api/v1/volumes";
/// Beyond this number of connections, requests are refused.
const MAX_CONNECTIONS: usize = 2_048;
/// Others are answered in this time, whatever a few clients do.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Sends the same request many times over each of eight connections, without waiting for answers. Returns the answers.
fn ask_often(server: &Server, token: &str, path: &str, count: usize) -> String {
    const CONNECTIONS: usize = 8;
    let host = &server.address;
    let one = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    let last = request_text(host, token, "GET", path, &[], "");
    let requests = one.repeat(count / CONNECTIONS - 1) + &last;
    std::thread::scope(|scope| {
        let ask = || {
            let mut stream = server.connect();
            stream.write_all(requests.as_bytes()).expect("sent");
            let mut answers = Vec::new();
            stream.read_to_end(&mut answers).expect("answers");
            String::from_utf8(answers).expect("text")
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().expect("answers")).collect()
    })
}

/// Returns how many answers have this status.
fn count_status(answers: &str, status: u16) -> usize {
    answers.matches(&format!("HTTP/1.1 {status} ")).count()
}

#[test]
fn who_asks_too_often_waits_and_others_do_not() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let eager = token(&house, "eager", &[]);
    let server = Server::new(&house);
    let guessed = format!("{}x", &read[..read.len() - 1]);
    // 200 wrong tokens at once, and 20 a second.
    for wrong in [guessed.as_str(), "tb_000000000000_0", "x"] {
        let answers = ask_often(&server, wrong, VOLUMES, 400);
        let (refused, limited) = (count_status(&answers, 401), count_status(&answers, 429));
        assert_eq!(refused + limited, 400, "{wrong}: {answers}");
        assert!(limited > 0, "{wrong}: {refused} were answered");
        let lower = answers.to_lowercase();
        assert_eq!(lower.matches("retry-after: 1\r\n").count(), limited, "{wrong}");
        assert_eq!(lower.matches("content-type: application/problem+json").count(), 400, "{wrong}");
        assert!(answers.contains("too many requests without a valid token"), "{wrong}");
        // Meanwhile a valid token is answered.
        server.get(&read, VOLUMES).code(200);
    }
    // After the time that was named, a wrong token is called wrong again.
    std::thread::sleep(Duration::from_millis(1_200));
    server.get(&guessed, VOLUMES).refused(401, "isn't known");
    // A valid token is limited to 1,000 at once, and 200 a second. What it may not do costs little.
    let answers = ask_often(&server, &eager, "/api/v1/tokens", 3_200);
    let (answered, limited) = (count_status(&answers, 403), count_status(&answers, 429));
    assert_eq!(answered + limited, 3_200);
    assert!(answered >= 1_000 && limited > 0, "{answered} were answered");
    assert!(answers.contains("too many requests with this token"));
    server.get(&read, VOLUMES).code(200);
    until("the token is answered again", || server.get(&eager, VOLUMES).status == 200);
    server.end();
}

#[test]
fn who_has_no_token_is_limited_and_pushes_nothing_out_of_the_log() {
    const COUNT: usize = 1_600;
    let house = notes();
    let read = token(&house, "reader", &[]);
    let admin = token(&house, "admin", &["--scopes", "admin"]);
    let server = Server::new(&house);
    server.get(&read, VOLUMES).code(200);
    // 400 requests at once for what needs no token, and 50 a second.
    let answers = ask_often(&server, "", "/api/v1/docs.css", COUNT);
    let (answered, limited) = (count_status(&answers, 200), count_status(&answers, 429));
    assert_eq!(answered + limited, COUNT);
    assert!(answered >= 400 && limited > 0, "{answered} were answered");
    assert!(answers.contains("too many requests without a token"));
    assert_eq!(answers.to_lowercase().matches("retry-after: 1\r\n").count(), limited);
    // They're recorded apart from those with a token, who are answered as ever.
    server.get(&read, VOLUMES).code(200);
    let recorded = |name: &str| String::from_utf8(house.read(name)).expect("text").lines().count();
    assert_eq!((recorded("W/access-without-token.jsonl"), recorded("W/access-log.jsonl")), (COUNT, 2));
    // The log is read as one: the newest first.
    let mut entries = Vec::new();
    let mut query = "limit=1000".to_owned();
    while entries.len() <= COUNT {
        let page = server.get(&admin, &format!("/api/v1/audit?{query}")).code(200).json();
        entries.extend(page["entries"].as_array().expect("a list").iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("limit=1000&cursor={next}");
    }
    let named = |entry: &Value| entry["token"].is_string() && entry["path"] == VOLUMES;
    assert!(named(&entries[0]), "{}", entries[0]);
    assert_eq!(entries.iter().filter(|entry| named(entry)).count(), 2);
    assert_eq!(entries.iter().filter(|entry| entry["token"].is_null()).count(), COUNT);
    server.end();
}

#[test]
fn beyond_the_maximum_of_connections_requests_are_refused_until_some_end() {
    // This process holds one end of each.
    if host::rlimits::raise_open_file_limit() < 2 * MAX_CONNECTIONS {
        assert!(!strict(), "TRACEBOOK_CI=1 and too few open files are allowed: `ulimit -Hn`");
        println!("left out: too few open files are allowed");
        return;
    }
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let mut idle: VecDeque<TcpStream> = (0..MAX_CONNECTIONS / 2).map(|_| server.connect()).collect();
    server.get(&read, VOLUMES).code(200);
    let mut refused = None;
    until("a request is refused", || {
        idle.extend((idle.len()..MAX_CONNECTIONS + 50).map(|_| server.connect()));
        let answer = server.get(&read, VOLUMES);
        if answer.status == 200 {
            // The server has closed the oldest meanwhile, since they say nothing.
            idle.drain(..MAX_CONNECTIONS / 4);
            return false;
        }
        refused = Some(answer);
        true
    });
    refused.expect("an answer").refused(503, "too many connections are open");
    // Another machine isn't concerned.
    let mut other = connect_from(&server, "127.0.0.2");
    other.write_all(request_text(&server.address, &read, "GET", VOLUMES, &[], "").as_bytes()).expect("sent");
    Answer::read(&mut other).code(200);
    drop(idle);
    until("requests are answered again", || server.get(&read, VOLUMES).status == 200);
    server.end();
}

/// Returns whether a process listens on any TCP port.
fn listens_on_tcp(pid: u32) -> bool {
    let listed = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    let listed = listed("/proc/net/tcp") + &listed("/proc/net/tcp6");
    // The fourth field is the state, of which 0A is to listen; the tenth is the socket's number.
    let listening: BTreeSet<String> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0A"))
        .filter_map(|fields| fields.get(9).map(|number| format!("socket:[{number}]")))
        .collect();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the process's files");
    let mut targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.any(|target| listening.contains(&*target.to_string_lossy()))
}

#[test]
fn without_tcp_only_the_socket_in_the_workspace_is_served() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    house.run(&["serve", "--no-tcp", "--listen", "127.0.0.1:0"]).refused(2, "choose one of --listen and --no-tcp");
    let server = Server::with(&house, &["--no-tcp"]);
    assert_eq!((server.address.as_str(), server.pair.as_str()), ("", ""));
    assert!(!listens_on_tcp(server.pid()));
    let ask = |token: &str| {
        let mut stream = UnixStream::connect(&server.socket).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream.write_all(request_text("localhost", token, "GET", VOLUMES, &[], "").as_bytes()).expect("sent");
        Answer::read(&mut stream)
    };
    assert_eq!(ask(&read).code(200).json()["volumes"][0]["name"], "notes");
    ask("").refused(401, "Bearer");
    let mode = std::fs::metadata(&server.socket).expect("a socket").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    server.end();
    // Without the option, it listens.
    let server = Server::new(&house);
    assert!(listens_on_tcp(server.pid()));
    server.end();
}

/// Returns what a cell printed, of the outputs of a run.
fn printed(ran: &Value, cell: u64) -> String {
    let outputs = ran["outputs"].as_array().expect("a list").iter().filter(|output| output["cell"] == cell);
    outputs.map(|output| output["text"].to_string()).collect()
}

#[test]
fn a_running_cell_is_interrupted() {
    let house = notes();
    let first = "```python\nimport time\nkept = time.time()\nprint(kept)\n```";
    let cells = format!("# Long\n\n{first}\n\n```python\nwhile True: pass\n```\n");
    house.write("notes/Long.md", cells.as_bytes());
    let run = token(&house, "runner", &["--scopes", "read,run"]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let stop = json!({"volume": "notes", "path": "Long.md"});
    let ask = |cell: u64| {
        let body = json!({"volume": "notes", "path": "Long.md", "cell": cell});
        server.post(&run, "/api/v1/cells/run", &body)
    };
    let status = |cell: usize| {
        let outputs = server.get(&read, "/api/v1/cells/outputs?volume=notes&path=Long.md").code(200).json();
        let cells = outputs["cells"].as_array().expect("a list").clone();
        cells.into_iter().find(|one| one["cell"] == cell).map_or(Value::Null, |one| one["status"].clone())
    };
    let kept = ask(1).code(200).json();
    assert!(printed(&kept, 1).contains('.'), "{kept}");
    let ended = std::thread::scope(|scope| {
        let endless = scope.spawn(|| ask(2));
        until("it runs", || status(2) == "running");
        server.post(&read, "/api/v1/cells/stop", &stop).refused(403, "`run`");
        let other = json!({"volume": "notes", "path": "Cells.md"});
        let others = server.post(&run, "/api/v1/cells/stop", &other).status;
        assert!(matches!(others, 204 | 422), "{others}");
        assert!(!endless.is_finished() && status(2) == "running", "{}", status(2));
        server.post(&run, "/api/v1/cells/stop", &stop).code(204);
        endless.join().expect("an answer").code(200).json()
    });
    assert_eq!(ended["ok"], false, "{ended}");
    assert_ne!(status(2), "running");
    // The next one runs as ever.
    let again = ask(1).code(200).json();
    assert!(again["ok"] == true && printed(&again, 1).contains('.'), "{again}");
    // Where nothing runs, nothing is interrupted.
    let idle = server.post(&run, "/api/v1/cells/stop", &stop).status;
    assert!(matches!(idle, 204 | 422), "{idle}");
    server.post(&run, "/api/v1/cells/stop", &json!({"volume": "notes", "path": "None.md"})).refused(404, "no note");
    server.end();
}

#[test]
fn tasks_are_canceled_while_they_wait_and_while_they_run() {
    let model = agents::model(|_, _| (String::new(), vec![("shell", json!({"command": "echo made > made.txt"}))]));
    let house = agents::house(&model, &[("Boat.md", "# Boat\n")]);
    let all = token(&house, "all", &["--scopes", "read,agent"]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let begin = || {
        let task = server.post(&all, "/api/v1/tasks", &json!({"description": "Make it"})).code(201).json();
        task["id"].as_str().expect("an id").to_owned()
    };
    let cancel = |token: &str, id: &str| server.send(token, "DELETE", &format!("/api/v1/tasks/{id}"), &[], "");
    let status = |id: &str| server.get(&all, &format!("/api/v1/tasks/{id}")).code(200).json()["status"].clone();
    // Four run at a time, and wait for a decision. The fifth waits for one of them.
    let tasks: Vec<String> = (0..5).map(|_| begin()).collect();
    let pending = || server.get(&all, "/api/v1/approvals/pending").code(200).json();
    until("four wait for a decision", || pending().as_array().is_some_and(|waiting| waiting.len() == 4));
    cancel(&read, &tasks[0]).refused(403, "`agent`");
    cancel(&all, &"0".repeat(32)).refused(404, "no such");
    cancel(&all, &tasks[4]).code(204);
    assert_eq!(status(&tasks[4]), "failed");
    for task in &tasks[..4] {
        cancel(&all, task).code(204);
        until("it has failed", || status(task) == "failed");
    }
    // What is over stays as it was.
    cancel(&all, &tasks[0]).code(204);
    assert!(pending().as_array().is_some_and(Vec::is_empty), "{}", pending());
    assert!(!house.path("notes/made.txt").exists());
    server.end();
}

/// A client that sends one byte after the other.
struct DrippingClient {
    stream: TcpStream,
    said: Vec<u8>,
    is_closed: bool,
}

impl DrippingClient {
    fn new(server: &Server, first: &str) -> DrippingClient {
        let mut stream = server.connect();
        stream.write_all(first.as_bytes()).expect("sent");
        stream.set_nonblocking(true).expect("set");
        DrippingClient { stream, said: Vec::new(), is_closed: false }
    }

    /// Takes what has arrived, and sends a byte more.
    fn drip(&mut self) {
        let mut bytes = [0; 4_096];
        while !self.is_closed {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.is_closed = true,
                Ok(length) => self.said.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
        // If it's closed meanwhile, the next read says so.
        let _ = self.stream.write(b"x");
    }
}

#[test]
fn clients_that_drip_bytes_are_closed_and_hold_up_nobody() {
    let house = notes();
    let all = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let head = format!("GET {VOLUMES} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {all}\r\nX-Slow: ");
    let body = format!(
        "PUT {NOTE}Slow.md HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {all}\r\nIf-None-Match: *\r\n\
         Content-Length: 10000\r\n\r\n"
    );
    let firsts = [head.as_str(), body.as_str()];
    let mut clients: Vec<DrippingClient> = (0..60).map(|at| DrippingClient::new(&server, firsts[at % 2])).collect();
    let begun = Instant::now();
    while clients.iter().any(|client| !client.is_closed) {
        assert!(begun.elapsed() < Duration::from_secs(50), "some are still open");
        clients.iter_mut().for_each(DrippingClient::drip);
        let asked = Instant::now();
        server.get(&all, VOLUMES).code(200);
        assert!(asked.elapsed() < ANSWER_TIME, "{:?}", asked.elapsed());
        std::thread::sleep(Duration::from_millis(200));
    }
    // They weren't refused for another reason.
    assert!(begun.elapsed() > Duration::from_secs(8), "{:?}", begun.elapsed());
    for (at, client) in clients.iter().enumerate() {
        let said = String::from_utf8_lossy(&client.said);
        let is_slow = said.starts_with("HTTP/1.1 408");
        assert!(is_slow || (at % 2 == 0 && said.is_empty()), "{at}: {said}");
    }
    assert!(!house.path("notes/Slow.md").exists());
    server.end();
}

/// Resident memory of a process in MiB.
fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process's state");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_024
}

/// Connects with a socket that was set up in another way.
fn connect_by(server: &Server, set_up: impl Fn(&TcpSocket) -> std::io::Result<()>) -> TcpStream {
    let address = server.address.parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connected: std::io::Result<TcpStream> = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        set_up(&socket)?;
        socket.connect(address).await?.into_std()
    });
    let stream = connected.expect("connected");
    stream.set_nonblocking(false).expect("set");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    stream
}

/// Connects with a small buffer, which is soon full of what isn't read.
fn connect_with_small_buffer(server: &Server) -> TcpStream {
    connect_by(server, |socket| socket.set_recv_buffer_size(32 << 10))
}

/// Connects from another address, as another machine would.
fn connect_from(server: &Server, address: &str) -> TcpStream {
    let address = format!("{address}:0").parse().expect("an address");
    connect_by(server, |socket| socket.bind(address))
}

#[test]
fn a_stranger_locks_out_no_other() {
    let house = notes();
    let server = Server::new(&house);
    let ask = |path: &str| {
        let mut stream = connect_from(&server, "127.0.0.2");
        stream.write_all(request_text(&server.address, "x", "GET", path, &[], "").as_bytes()).expect("sent");
        Answer::read(&mut stream).status
    };
    for (path, status) in [(VOLUMES, 401_u16), ("/api/v1/docs.css", 200)] {
        let answers = ask_often(&server, "x", path, 1_600);
        assert!(count_status(&answers, 429) > 0, "{path}: nobody is limited");
        let others: Vec<u16> = (0..30).map(|_| ask(path)).collect();
        assert_eq!(others, [status; 30], "{path}");
    }
    // The same holds for front ends that don't say who they are.
    let open = |from: &str| {
        let mut stream = connect_from(&server, from);
        let head = format!(
            "GET /api/v1/agent HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer");
        (stream, status.ends_with(b"101"))
    };
    let many: Vec<(TcpStream, bool)> = (0..20).map(|_| open("127.0.0.3")).collect();
    assert_eq!(many.iter().filter(|(_, is_open)| *is_open).count(), 16);
    assert!(open("127.0.0.4").1);
    server.end();
}

#[test]
fn a_token_that_asks_often_pushes_no_other_out_of_the_log() {
    // Each entry has about a thousand bytes; one token gets a mebibyte of a file.
    const COUNT: usize = 1_600;
    const MAX_SHARE_BYTES: usize = 1 << 20;
    let house = notes();
    let read = token(&house, "reader", &[]);
    let eager = token(&house, "eager", &[]);
    let admin = token(&house, "admin", &["--scopes", "admin"]);
    let path = format!("/api/v1/tokens?{}", "x".repeat(1_200));
    let size = |name: &str| house.read(name).len();
    for beyond_share in [10_000, 1_000_000] {
        let server = Server::new(&house);
        server.get(&read, VOLUMES).code(200);
        ask_often(&server, &eager, &path, COUNT);
        server.get(&read, VOLUMES).code(200);
        let page = server.get(&admin, "/api/v1/audit?limit=1000").code(200).json();
        let next = page["next_cursor"].as_str().expect("more").to_owned();
        assert_eq!(page["entries"][0]["path"], VOLUMES, "{}", page["entries"][0]);
        let more = server.get(&admin, &format!("/api/v1/audit?limit=1000&cursor={next}")).code(200).json();
        let long = |page: &Value| {
            let entries = page["entries"].as_array().expect("a list").clone();
            entries.iter().filter(|entry| entry["path"].as_str().is_some_and(|path| path.len() == 1_000)).count()
        };
        // What is beyond its share is in a log of its own, also after a restart; the server reads them as one.
        assert!(long(&page) > 990 && long(&more) >= 600, "{} {}", long(&page), long(&more));
        assert!(size("W/access-log.jsonl") < MAX_SHARE_BYTES + 10_000, "{}", size("W/access-log.jsonl"));
        // A thousand requests at once are answered, and few more; the others have no place there.
        assert!(size("W/access-busy-tokens.jsonl") > beyond_share, "{}", size("W/access-busy-tokens.jsonl"));
        server.end();
    }
}

#[test]
fn a_token_sends_a_bounded_number_of_bodies_at_the_same_time() {
    const MAX_BODIES_OF_TOKEN: usize = 64;
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let other = token(&house, "other", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let half = format!(
        "PUT {NOTE}Slow.md HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {write}\r\nIf-None-Match: *\r\n\
         Content-Length: 100\r\n\r\nhalf"
    );
    let (mut halves, mut refused) = (Vec::new(), None);
    until("all places are taken", || {
        let answer = server.send(&write, "PUT", &format!("{NOTE}More.md"), &[("If-None-Match", "*")], "x");
        refused = Some(answer).filter(|answer| answer.status == 429);
        // The request above had a place itself, so one of these may have got none.
        if refused.is_none() {
            halves.push(server.connect());
            halves.last_mut().expect("a stream").write_all(half.as_bytes()).expect("sent");
        }
        refused.is_some()
    });
    assert!(halves.len() >= MAX_BODIES_OF_TOKEN);
    let put =
        |token: &str, name: &str| server.send(token, "PUT", &format!("{NOTE}{name}"), &[("If-None-Match", "*")], "x");
    refused.expect("an answer").refused(429, "with a body at the same time");
    put(&other, "Other.md").code(201);
    server.get(&write, VOLUMES).code(200);
    drop(halves);
    until("there is a place again", || matches!(put(&write, "Last.md").status, 201 | 412));
    server.end();
}

#[test]
fn a_token_that_sends_many_keys_pushes_out_no_answer_of_another() {
    const MAX_KEPT_ANSWERS: usize = 1_000;
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let eager = token(&house, "eager", &[]);
    let server = Server::new(&house);
    let send = |token: &str, key: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        server.send(token, "POST", "/api/v1/todos/check", &headers, &body.to_string())
    };
    let todo = json!({"volume": "notes", "path": "Boat.md", "text": "Paint the hull", "at": 0});
    let first = send(&write, "mine", &todo).code(200);
    assert_eq!(first.json()["done"], true);
    // A refusal is an answer, which is kept.
    for number in 0..MAX_KEPT_ANSWERS + 20 {
        send(&eager, &number.to_string(), &json!({})).refused(403, "`write`");
    }
    let again = send(&write, "mine", &todo).code(200);
    assert_eq!((again.json(), again.header("Idempotency-Replayed")), (first.json(), Some("true".to_owned())));
    server.end();
}

#[test]
fn clients_that_do_not_read_a_large_file_cost_no_memory() {
    const CLIENTS: u64 = 20;
    const FILE_MIB: u64 = 30;
    let house = notes();
    let large: Vec<u8> = (0..FILE_MIB << 20).map(|at| (at >> 12) as u8).collect();
    house.write("notes/large.bin", &large);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let path = "/api/v1/volumes/notes/attachments/large.bin";
    let part = server.send(&read, "GET", path, &[("Range", "bytes=0-2097151")], "").code(206);
    assert!(part.body == large[..2 << 20], "other bytes");
    let before = memory_of(server.pid());
    let mut idle: Vec<TcpStream> = (1..CLIENTS).map(|_| connect_with_small_buffer(&server)).collect();
    idle.push(server.connect());
    for stream in &mut idle {
        let request = request_text(&server.address, &read, "GET", path, &[], "");
        stream.write_all(request.as_bytes()).expect("sent");
        // The answer has begun.
        stream.read_exact(&mut [0; 15]).expect("an answer");
    }
    let asked = Instant::now();
    for _ in 0..20 {
        server.get(&read, VOLUMES).code(200);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(asked.elapsed() < ANSWER_TIME, "{:?}", asked.elapsed());
    let grown = memory_of(server.pid()).saturating_sub(before);
    assert!(grown < CLIENTS * FILE_MIB / 3, "{grown} MiB for {CLIENTS} clients that don't read");
    // One that reads later gets the rest.
    let mut late = idle.pop().expect("a client");
    drop(idle);
    let mut rest = Vec::new();
    late.read_to_end(&mut rest).expect("the rest");
    assert!(rest.ends_with(&large), "other bytes");
    server.end();
}

/// Reads events until `count` runs have ended. Returns the number of bytes of all.
fn read_until_ended(client: &mut EventClient, count: usize) -> usize {
    let (mut bytes, mut ended) = (0, 0);
    while ended < count {
        let (_, event) = client.next();
        assert_ne!(event["kind"], "GAP", "{event}");
        bytes += event.to_string().len();
        ended += usize::from(event["kind"] == "RUN_ENDED");
    }
    bytes
}

#[test]
fn clients_that_do_not_read_events_hold_up_nobody_and_lose_nothing() {
    const CLIENTS: usize = 20;
    const TASKS: usize = 60;
    // Without spaces, the model sends it at once.
    let model = agents::model(|_, _| ("long\n".repeat(12_000), Vec::new()));
    let house = agents::house(&model, &[("Boat.md", "# Boat\n")]);
    let all = token(&house, "all", &["--scopes", "read,agent"]);
    let server = Server::new(&house);
    let client = |stream: TcpStream| EventClient::over(stream, &server, &all, &[]);
    let mut reader = client(server.connect());
    let mut idle: Vec<EventClient> = (0..CLIENTS).map(|_| client(connect_with_small_buffer(&server))).collect();
    let before = memory_of(server.pid());
    let sent = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read_until_ended(&mut reader, TASKS));
        let description = "Say a word. ".repeat(2_500);
        for _ in 0..TASKS {
            server.post(&all, "/api/v1/tasks", &json!({"description": description})).code(201);
        }
        reading.join().expect("all events")
    });
    // More than what the system keeps for a client that doesn't read.
    assert!(sent > 3 << 20, "{sent} bytes");
    let grown = memory_of(server.pid()).saturating_sub(before);
    assert!(grown < 400, "{grown} MiB");
    let asked = Instant::now();
    server.get(&all, VOLUMES).code(200);
    assert!(asked.elapsed() < ANSWER_TIME, "{:?}", asked.elapsed());
    // Those that read later get all of it.
    for late in idle.iter_mut().take(2) {
        let late = read_until_ended(late, TASKS);
        assert!(late.abs_diff(sent) < 10_000, "{late} of {sent} bytes");
    }
    drop((idle, reader));
    server.end();
}

/// The first message of a TLS connection, for TLS 1.2 with one cipher suite.
fn client_hello() -> Vec<u8> {
    let extensions = [
        &[0x00_u8, 0x0a, 0, 4, 0, 2, 0x00, 0x1d][..], // groups: X25519
        &[0x00, 0x0b, 0, 2, 1, 0],                    // points: uncompressed
        &[0x00, 0x0d, 0, 4, 0, 2, 0x04, 0x03],        // signatures: ECDSA with P-256
        &[0x00, 0x17, 0, 0],                          // extended master secret
    ]
    .concat();
    let mut hello = [&[3_u8, 3][..], &[7; 32], &[0], &[0, 2, 0xc0, 0x2b], &[1, 0]].concat();
    hello.extend([0, extensions.len() as u8]);
    hello.extend(extensions);
    let handshake = [&[1, 0, 0, hello.len() as u8][..], &hello].concat();
    [&[22, 3, 1, 0, handshake.len() as u8][..], &handshake].concat()
}

#[test]
fn half_a_tls_handshake_is_closed_and_holds_up_nobody() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::with(&house, &["--listen", "127.0.0.1:0", "--tls"]);
    let hello = client_hello();
    // Nothing, the beginning of a message, and a message that isn't followed by the next one.
    let parts = [&[][..], &hello[..1], &hello[..hello.len() / 2], &hello];
    let mut halves: Vec<TcpStream> = (0..80).map(|_| server.connect()).collect();
    for (at, half) in halves.iter_mut().enumerate() {
        half.write_all(parts[at % parts.len()]).expect("sent");
    }
    let begun = Instant::now();
    // Others get to the server's first message, and over the socket to an answer.
    for _ in 0..5 {
        let mut other = server.connect();
        other.write_all(&hello).expect("sent");
        let mut answer = [0; 6];
        other.read_exact(&mut answer).expect("an answer");
        assert_eq!((answer[0], answer[5]), (22, 2), "no hello of a server: {answer:?}");
        let mut stream = UnixStream::connect(&server.socket).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream.write_all(request_text("localhost", &read, "GET", VOLUMES, &[], "").as_bytes()).expect("sent");
        Answer::read(&mut stream).code(200);
    }
    assert!(begun.elapsed() < ANSWER_TIME, "{:?}", begun.elapsed());
    for (at, half) in halves.iter_mut().enumerate() {
        let mut said = Vec::new();
        // An end is an end, also an abrupt one; a timeout isn't.
        if let Err(error) = half.read_to_end(&mut said) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{at}");
        }
        assert!(at % parts.len() == 3 || said.len() < 20, "{at}: {said:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    server.end();
}

#[test]
fn a_token_opens_a_bounded_number_of_mcp_sessions() {
    const MAX_TOKEN_SESSIONS: usize = 100;
    let house = notes();
    let (read, other) = (token(&house, "reader", &[]), token(&house, "other", &[]));
    let server = Server::new(&house);
    let headers = [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    let about = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "eager", "version": "1"}});
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).to_string();
    let open = |token: &str| server.send(token, "POST", "/mcp", &headers, &begin);
    let sessions: Vec<String> =
        (0..MAX_TOKEN_SESSIONS).map(|_| open(&read).code(200).header("Mcp-Session-Id").expect("a session")).collect();
    open(&read).refused(429, "too many MCP sessions of this token");
    open(&other).code(200);
    // The open ones are still served, and an end makes room.
    let own = [headers[0], headers[1], ("Mcp-Session-Id", sessions[0].as_str())];
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    server.send(&read, "POST", "/mcp", &own, &begun).code(202);
    server.send(&read, "DELETE", "/mcp", &own, "").code(204);
    open(&read).code(200);
    server.end();
}

#[test]
fn a_comment_of_a_decision_is_bounded() {
    let house = notes();
    let approve = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let decide = |comment: String| {
        let decision = json!({"approved": false, "comment": comment});
        server.post(&approve, "/api/v1/approvals/nothing", &decision)
    };
    decide("x".repeat(64 << 10)).refused(404, "nothing waits");
    decide("x".repeat((64 << 10) + 1)).refused(422, "at most 65536 bytes");
    server.end();
}
