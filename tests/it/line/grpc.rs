//! gRPC at `tracebook serve`: the seed's `mixagent.AgentService`, health and reflection. Messages are written and read
//! field by field, so that the test has its own understanding of the format; `.ci/grpc` has that of `grpcio`.

use super::agents;
use super::http_server::{Server, notes, token};
use crate::program::{House, until};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;

/// A call that isn't answered in this time is considered hung.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) const OK: i32 = 0;
pub(super) const INVALID: i32 = 3;
pub(super) const NOT_FOUND: i32 = 5;
pub(super) const EXISTS: i32 = 6;
pub(super) const DENIED: i32 = 7;
pub(super) const EXHAUSTED: i32 = 8;
pub(super) const PRECONDITION: i32 = 9;
const UNIMPLEMENTED: i32 = 12;
pub(super) const UNAUTHENTICATED: i32 = 16;

const SERVICES: [&str; 12] = [
    "mixagent.AgentService",
    "tracebook.v1.NoteService",
    "tracebook.v1.SearchService",
    "tracebook.v1.TodoService",
    "tracebook.v1.RunService",
    "tracebook.v1.CellService",
    "tracebook.v1.EventService",
    "tracebook.v1.AttachmentService",
    "tracebook.v1.HistoryService",
    "tracebook.v1.CollectionService",
    "tracebook.v1.MemoryService",
    "tracebook.v1.TraceService",
];

/// A message while it's written.
#[derive(Clone, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn number(mut self, field: u64, number: i64) -> Message {
        self.varint(field << 3);
        self.varint(number as u64);
        self
    }

    pub(super) fn entry(self, field: u64, name: &str, text: &str) -> Message {
        let entry = Message::default().text(1, name).text(2, text);
        self.bytes(field, &entry.0)
    }
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((first, rest)) = bytes.split_first() {
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        *bytes = rest;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// An answer: the gRPC status, its message, and the messages of the body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: i32,
    pub(super) why: String,
    pub(super) messages: Vec<Vec<u8>>,
}

impl Reply {
    #[track_caller]
    pub(super) fn ok(self) -> Reply {
        assert_eq!(self.status, OK, "{self:?}");
        self
    }

    #[track_caller]
    pub(super) fn refused(self, status: i32, about: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.why.contains(about), "does not say “{about}”: {self:?}");
    }

    /// Returns the bytes of a field of the first message; empty if it isn't there.
    pub(super) fn field(&self, field: u64) -> Vec<u8> {
        field_of(self.messages.first().map(Vec::as_slice).unwrap_or_default(), field)
    }

    pub(super) fn text(&self, field: u64) -> String {
        String::from_utf8(self.field(field)).expect("text")
    }

    pub(super) fn flag(&self, field: u64) -> bool {
        self.field(field).first() == Some(&1)
    }
}

/// Returns the bytes of each occurrence of a field in a message; numbers are eight bytes.
pub(super) fn fields_of(mut rest: &[u8], field: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let key = read_varint(&mut rest);
        let found = match key & 7 {
            0 => read_varint(&mut rest).to_le_bytes().to_vec(),
            1 => take(&mut rest, 8),
            2 => {
                let length = read_varint(&mut rest);
                take(&mut rest, length as usize)
            }
            kind => panic!("wire type {kind}"),
        };
        if key >> 3 == field {
            all.push(found);
        }
    }
    all
}

pub(super) fn field_of(message: &[u8], field: u64) -> Vec<u8> {
    fields_of(message, field).into_iter().next().unwrap_or_default()
}

fn take(bytes: &mut &[u8], count: usize) -> Vec<u8> {
    let (first, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    first.to_vec()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let code = (byte == b'%').then(|| rest.by_ref().take(2).collect::<Vec<_>>());
        let code = code.and_then(|code| u8::from_str_radix(&String::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends one message and reads until the end, or until there are `enough` messages. `pause` comes between the head and
/// the body of the answer, and blocks the whole connection.
async fn exchange(
    address: &str,
    headers: &[(&str, &str)],
    path: &str,
    body: Vec<u8>,
    enough: usize,
    pause: impl FnOnce(),
) -> Reply {
    let stream = TcpStream::connect(address).await.expect("connected");
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let mut client = client.ready().await.expect("ready");
    let mut request = http::Request::post(format!("http://{address}/{path}"));
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let (answer, mut sent) = client.send_request(request.body(()).expect("a request"), false).expect("sent");
    // A server that refuses early doesn't take the body.
    let _ = sent.send_data(Bytes::from(body), true);
    let (head, mut body) = answer.await.expect("an answer").into_parts();
    assert_eq!(head.status, 200);
    pause();
    let (mut received, mut messages) = (Vec::<u8>::new(), Vec::new());
    while messages.len() < enough
        && let Some(part) = body.data().await
    {
        let part = part.expect("a part");
        body.flow_control().release_capacity(part.len()).expect("released");
        received.extend_from_slice(&part);
        while received.len() >= 5 {
            let length = u32::from_be_bytes(received[1..5].try_into().expect("four")) as usize;
            if received.len() < 5 + length {
                break;
            }
            messages.push(received[5..5 + length].to_vec());
            received.drain(..5 + length);
        }
    }
    let trailers = if messages.len() < enough { body.trailers().await.expect("trailers") } else { None };
    let said = |name: &str| {
        let value = trailers.as_ref().and_then(|trailers| trailers.get(name)).or_else(|| head.headers.get(name));
        value.map(|value| value.to_str().expect("text").to_owned())
    };
    let status = said("grpc-status").and_then(|status| status.parse().ok());
    let status = status.or((messages.len() >= enough).then_some(OK)).expect("a status");
    connection.abort();
    Reply { status, why: percent_decoded(&said("grpc-message").unwrap_or_default()), messages }
}

pub(super) fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

pub(super) fn raw_call(server: &Server, headers: &[(&str, &str)], path: &str, body: Vec<u8>, enough: usize) -> Reply {
    paused_call(server, headers, path, body, enough, || {})
}

/// The same for a client that doesn't read for a while.
pub(super) fn paused_call(
    server: &Server,
    headers: &[(&str, &str)],
    path: &str,
    body: Vec<u8>,
    enough: usize,
    pause: impl FnOnce(),
) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let call = exchange(&server.address, headers, path, body, enough, pause);
    runtime.block_on(async { tokio::time::timeout(CALL_TIMEOUT, call).await.expect("an answer in time") })
}

fn call(server: &Server, token: &str, method: &str, message: &Message) -> Reply {
    let bearer = format!("Bearer {token}");
    let path = format!("mixagent.AgentService/{method}");
    raw_call(server, &[("authorization", &bearer)], &path, framed(&message.0), usize::MAX)
}

fn id(id: &str) -> Message {
    Message::default().text(1, id)
}

/// Asks for an approval over gRPC, for tests that decide it elsewhere, and waits. Returns whether it's approved.
pub(crate) fn ask_for_approval(house: &House, action: &str, description: &str) -> bool {
    let agent = token(house, "asking", &["--scopes", "agent"]);
    let server = Server::new(house);
    let asked = Message::default().text(1, action).text(2, "deploy").text(3, description).text(4, "ops");
    let asked = asked.number(5, 3).entry(6, "target", "production");
    let answer = call(&server, &agent, "RequestApproval", &asked).ok();
    server.end();
    answer.flag(2)
}

#[test]
fn a_task_is_submitted_asked_about_and_decided_over_grpc() {
    let model = agents::model(|turn, body| {
        if body["messages"].to_string().contains("Say hello") {
            return ("Hello.".to_owned(), Vec::new());
        }
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "echo made > made.txt"}))]),
            _ => ("It is made.".to_owned(), Vec::new()),
        }
    });
    let house = agents::house(&model, &[("Boat.md", "The panel gives 12 volts.\n")]);
    let all = token(&house, "all", &["--scopes", "read,agent"]);
    let other = token(&house, "other", &["--scopes", "read,agent"]);
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let task =
        Message::default().text(1, "build-1").text(2, "build").text(3, "Make it").entry(4, "color", "red").number(6, 2);
    let made = call(&server, &all, "SubmitTask", &task).ok();
    let run = made.text(1);
    assert!(made.flag(2) && run.len() == 32, "{made:?}");
    // The same again is the same task; another under its id is refused. Other tokens don't know the id.
    assert_eq!(call(&server, &all, "SubmitTask", &task).ok().text(1), run);
    let changed = task.clone().text(3, "Make another");
    call(&server, &all, "SubmitTask", &changed).refused(EXISTS, "another task");
    call(&server, &other, "GetTaskStatus", &id("build-1")).refused(NOT_FOUND, "no such");
    let after = Message::default().text(1, "build-2").text(3, "Say hello").text(5, "build-1");
    let second = call(&server, &all, "SubmitTask", &after).ok().text(1);
    let status = |of: &str| call(&server, &all, "GetTaskStatus", &id(of)).ok().text(2);
    let pending = || server.get(&approver, "/api/v1/approvals/pending").code(200).json();
    until("it waits for a decision", || !pending().as_array().expect("a list").is_empty());
    assert_eq!(
        (status("build-1"), status(&run), status(&second)),
        ("pending".into(), "pending".into(), "pending".into())
    );
    let action = pending()[0]["action_id"].as_str().expect("an id").to_owned();
    let decision = |of: &str, approved: i64| Message::default().text(1, of).number(2, approved).text(3, "fine");
    call(&server, &all, "SubmitDecision", &decision(&action, 1)).refused(DENIED, "`approve`");
    call(&server, &approver, "SubmitDecision", &decision("00000000:t0c0", 1)).refused(NOT_FOUND, "nothing waits");
    assert!(!house.path("notes/made.txt").exists());
    assert!(call(&server, &approver, "SubmitDecision", &decision(&action, 1)).ok().flag(2));
    until("it's done", || status("build-1") == "completed");
    let done = call(&server, &all, "GetTaskStatus", &id(&run)).ok();
    let result: Value = serde_json::from_str(&done.text(4)).expect("JSON");
    assert_eq!(
        (&result["answer"], f64::from_le_bytes(done.field(3).try_into().expect("8"))),
        (&json!("It is made."), 1.0)
    );
    assert!(house.path("notes/made.txt").exists());
    // What waited for it is done now.
    until("the second is done", || status("build-2") == "completed");
    // Dependencies that can't be met.
    let lost = Message::default().text(3, "x").text(5, "00000000000000000000000000000000");
    call(&server, &all, "SubmitTask", &lost).refused(NOT_FOUND, "no such task");
    // A message to an agent of the workspace is a task; its answer comes as a message.
    let hello = Message::default().text(1, "desk").text(2, "assistant").text(4, "Say hello");
    let given = call(&server, &all, "SendMessage", &hello).ok();
    assert!(given.flag(1) && given.text(2).len() == 32, "{given:?}");
    let bearer = format!("Bearer {all}");
    let stream = |name: &str, enough: usize| {
        let path = "mixagent.AgentService/StreamMessages";
        raw_call(&server, &[("authorization", &bearer)], path, framed(&id(name).0), enough)
    };
    let answer = stream("desk", 1).ok();
    assert_eq!(
        (answer.text(1), answer.text(3), answer.text(4)),
        ("assistant".into(), "answer".into(), "Hello.".into())
    );
    // A task that waits for one that never ends is taken out with it.
    let wait = Message::default().text(1, "build-3").text(3, "Make it again");
    call(&server, &all, "SubmitTask", &wait).ok();
    call(&server, &all, "SubmitTask", &Message::default().text(1, "build-4").text(3, "x").text(5, "build-3")).ok();
    until("it runs", || !pending().as_array().expect("a list").is_empty());
    assert!(call(&server, &all, "CancelTask", &id("build-3")).ok().flag(2));
    until("both have failed", || status("build-3") == "failed" && status("build-4") == "failed");
    call(&server, &all, "SubmitTask", &Message::default().text(3, "x").text(5, "build-3")).refused(PRECONDITION, "");
    server.end();
}

#[test]
fn programs_ask_for_approvals_and_send_messages() {
    let house = notes();
    let agent = token(&house, "agent", &["--scopes", "read,agent"]);
    let volume = token(&house, "volume", &["--scopes", "read,agent,approve", "--volume", "notes"]);
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let ask = |action: &str| {
        Message::default().text(1, action).text(2, "deploy").text(3, "Deploy it").text(4, "ops").number(5, 3).entry(
            6,
            "target",
            "production",
        )
    };
    let pending = |token: &str| server.get(token, "/api/v1/approvals/pending").code(200).json();
    let decision = |of: &str, approved: i64| Message::default().text(1, of).number(2, approved).text(3, "not today");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| call(&server, &agent, "RequestApproval", &ask("deploy-1")).ok());
        until("it waits", || !pending(&approver).as_array().expect("a list").is_empty());
        let shown = &pending(&approver)[0];
        assert_eq!((&shown["action_type"], &shown["parameters"]["target"]), (&json!("deploy"), &json!("production")));
        // It's of no volume, so a token for one doesn't see it.
        assert_eq!(pending(&volume), json!([]));
        call(&server, &volume, "SubmitDecision", &decision("deploy-1", 1)).refused(NOT_FOUND, "nothing waits");
        call(&server, &agent, "RequestApproval", &ask("deploy-1")).refused(EXISTS, "waits already");
        call(&server, &approver, "SubmitDecision", &decision("deploy-1", 0)).ok();
        let answer = asked.join().expect("an answer");
        assert_eq!((answer.text(1), answer.flag(2), answer.text(3)), ("deploy-1".into(), false, "not today".into()));
        // The same over REST.
        let asked = scope.spawn(|| call(&server, &agent, "RequestApproval", &ask("deploy-2")).ok());
        until("it waits", || !pending(&approver).as_array().expect("a list").is_empty());
        server.post(&approver, "/api/v1/approvals/deploy-2", &json!({"approved": true, "comment": "go"})).code(200);
        assert!(asked.join().expect("an answer").flag(2));
    });
    assert_eq!(pending(&approver), json!([]));
    // Messages wait for their receiver, in order, and those of a token for one volume are apart.
    let send = |token: &str, payload: &[u8]| {
        let message = Message::default().text(1, "a").text(2, "b").text(3, "note").bytes(4, payload).number(5, 7);
        call(&server, token, "SendMessage", &message).ok()
    };
    assert_eq!(send(&agent, b"\xff\x00first").text(2), "");
    send(&volume, b"other");
    send(&agent, b"second");
    let stream = |token: &str, enough: usize| {
        let bearer = format!("Bearer {token}");
        let path = "mixagent.AgentService/StreamMessages";
        raw_call(&server, &[("authorization", &bearer)], path, framed(&id("b").0), enough)
    };
    let got = stream(&agent, 2).ok();
    assert_eq!((got.field(4), got.messages.len()), (b"\xff\x00first".to_vec(), 2));
    assert_eq!(stream(&volume, 1).ok().field(4), b"other");
    // A stream ends when its token is revoked.
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| stream(&agent, 9));
        house.run(&["tokens", "revoke", "agent"]).good();
        ended.join().expect("an end").refused(UNAUTHENTICATED, "");
    });
    server.end();
}

#[test]
fn a_task_names_its_volume_if_there_are_several() {
    let house = notes();
    house.write("other/Note.md", b"# Note\n");
    house.run(&["open", "other"]).code(0);
    let agent = token(&house, "agent", &["--scopes", "agent"]);
    let server = Server::new(&house);
    let task = Message::default().text(3, "Make it");
    // It isn't accepted to fail later.
    call(&server, &agent, "SubmitTask", &task).refused(INVALID, "notes, other");
    call(&server, &agent, "SubmitTask", &task.entry(4, "project", "nowhere")).refused(NOT_FOUND, "no volume");
    server.end();
}

#[test]
fn what_may_not_be_called_over_grpc_is_refused_and_recorded() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let agent = token(&house, "agent", &["--scopes", "agent"]);
    let admin = token(&house, "admin", &["--scopes", "admin"]);
    let server = Server::new(&house);
    let task = Message::default().text(3, "x");
    let path = "mixagent.AgentService/SubmitTask";
    raw_call(&server, &[], path, framed(&task.0), usize::MAX).refused(UNAUTHENTICATED, "Bearer");
    call(&server, "tb_x_y", "SubmitTask", &task).refused(UNAUTHENTICATED, "isn't known");
    call(&server, &read, "SubmitTask", &task).refused(DENIED, "`agent`");
    for method in ["CancelTask", "SendMessage", "StreamMessages", "RequestApproval"] {
        call(&server, &read, method, &id("x")).refused(DENIED, "`agent`");
    }
    call(&server, &read, "SubmitDecision", &id("x")).refused(DENIED, "`approve`");
    call(&server, &agent, "GetTaskStatus", &id("x")).refused(DENIED, "`read`");
    let hostile = ["", "../../etc/passwd", "--stop", "a\nb", "\u{1b}[2J", "é", &"x".repeat(5_000)];
    for wrong in hostile {
        let status = call(&server, &read, "GetTaskStatus", &id(wrong)).status;
        assert!(matches!(status, INVALID | NOT_FOUND), "{wrong}: {status}");
        let status = call(&server, &agent, "RequestApproval", &id(wrong).text(2, "x").text(4, "x")).status;
        assert_eq!(status, INVALID, "{wrong}");
    }
    call(&server, &agent, "SubmitTask", &Message::default().text(1, "a\nb").text(3, "x")).refused(INVALID, "`id`");
    call(&server, &agent, "SubmitTask", &Message::default()).refused(INVALID, "`description`");
    let bearer = format!("Bearer {agent}");
    let known = ("authorization", bearer.as_str());
    raw_call(&server, &[known], path, framed(&vec![0; 5 << 20]), usize::MAX).refused(EXHAUSTED, "at most");
    assert_ne!(raw_call(&server, &[known], path, framed(b"\xff\xff\xff"), usize::MAX).status, OK);
    assert_ne!(raw_call(&server, &[known], path, vec![0, 0, 0, 0, 9, 1], usize::MAX).status, OK);
    raw_call(&server, &[known], "mixagent.AgentService/Nothing", framed(b""), usize::MAX).refused(UNIMPLEMENTED, "");
    raw_call(&server, &[known], "other.Service/Nothing", framed(b""), usize::MAX).refused(UNIMPLEMENTED, "reflection");
    raw_call(&server, &[known, ("origin", "http://evil.example")], path, framed(&task.0), usize::MAX)
        .refused(DENIED, "other sites");
    // The standard services, with the same token.
    let check = "grpc.health.v1.Health/Check";
    for service in SERVICES {
        let healthy = raw_call(&server, &[known], check, framed(&id(service).0), usize::MAX).ok();
        assert!(healthy.flag(1), "{service}: {healthy:?}");
    }
    raw_call(&server, &[], check, framed(&id("mixagent.AgentService").0), usize::MAX)
        .refused(UNAUTHENTICATED, "Bearer");
    let list = framed(&Message::default().text(7, "").0);
    for version in ["v1", "v1alpha"] {
        let path = format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let listed = raw_call(&server, &[known], &path, list.clone(), usize::MAX).ok();
        let listed = String::from_utf8_lossy(&listed.messages[0]).into_owned();
        for service in SERVICES {
            assert!(listed.contains(service), "{version}: {service}");
        }
    }
    // REST speaks HTTP/1.1 on the same port, and the log has all of it.
    let log = server.get(&admin, "/api/v1/audit?limit=1000").code(200).json();
    let log = log["entries"].as_array().expect("a list");
    for status in [401, 403, 404, 422] {
        let is_meant = |entry: &&Value| entry["status"] == status && entry["path"].to_string().contains("mixagent");
        assert!(log.iter().any(|entry| is_meant(&entry)), "{status}: {log:?}");
    }
    server.end();
}

#[test]
fn a_build_says_whether_it_has_grpc() {
    let house = House::with(&[("a.md", "# A\n")]);
    assert!(house.run(&["doctor"]).text().contains("gRPC server"));
}
