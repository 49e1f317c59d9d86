//! `tracebook.v1` at `tracebook serve`: notes, search, todos, runs, cells and events over gRPC. `.ci/grpc` does it with
//! `grpcio`, and looks at the details of errors.

use super::agents;
use super::grpc::{
    DENIED, EXHAUSTED, EXISTS, INVALID, Message, NOT_FOUND, OK, PRECONDITION, Reply, UNAUTHENTICATED, field_of,
    fields_of, framed, paused_call, raw_call,
};
use super::http_server::{NOTE, Server, notes, token};
use crate::program::until;
use serde_json::{Value, json};

pub(super) const ABORTED: i32 = 10;

/// States of runs.
const RUNNING: u8 = 2;
const WAITING: u8 = 3;
const DONE: u8 = 4;
const CANCELED: u8 = 5;

pub(super) fn call(server: &Server, token: &str, method: &str, message: &Message) -> Reply {
    stream(server, token, method, message, usize::MAX)
}

/// Calls a method, and reads until there are `enough` messages.
fn stream(server: &Server, token: &str, method: &str, message: &Message, enough: usize) -> Reply {
    let bearer = format!("Bearer {token}");
    let path = format!("tracebook.v1.{method}");
    raw_call(server, &[("authorization", &bearer)], &path, framed(&message.0), enough)
}

pub(super) fn text_of(message: &[u8], field: u64) -> String {
    String::from_utf8(field_of(message, field)).expect("text")
}

pub(super) fn note(volume: &str, path: &str) -> Message {
    Message::default().text(1, volume).text(2, path)
}

fn run_id(id: &str) -> Message {
    Message::default().text(1, id)
}

/// Names that are no path of a note.
pub(super) const HOSTILE_PATHS: [&str; 10] = [
    "",
    "../outside.md",
    "/etc/passwd",
    "Ideas/../Boat.md",
    "./Boat.md",
    "a//b.md",
    "a\\b.md",
    "Boat.md\0",
    "a\nb.md",
    "\u{1b}[2J.md",
];

#[test]
fn notes_are_written_over_grpc_for_the_version_that_was_read() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let volumes = call(&server, &read, "NoteService/ListVolumes", &Message::default()).ok();
    assert_eq!(text_of(&volumes.field(1), 2), "notes");
    // Pages join to the list.
    let (mut token_of_page, mut paths) = (String::new(), Vec::new());
    loop {
        let asked = Message::default().text(1, "notes").number(3, 2).text(4, &token_of_page);
        let page = call(&server, &read, "NoteService/ListNotes", &asked).ok();
        paths.extend(fields_of(&page.messages[0], 1).iter().map(|entry| text_of(entry, 2)));
        token_of_page = page.text(2);
        if token_of_page.is_empty() {
            break;
        }
    }
    assert_eq!(paths, ["Boat.md", "Cells.md", "Ideas/Sail é.md"]);
    let asked = Message::default().text(1, "notes").text(2, "Ideas/");
    assert_eq!(fields_of(&call(&server, &read, "NoteService/ListNotes", &asked).ok().messages[0], 1).len(), 1);
    // The bytes of the file, and the entity tag of REST.
    let sail = call(&server, &read, "NoteService/GetNote", &note("notes", "Ideas/Sail é.md")).ok();
    assert_eq!(sail.field(3), house.read("notes/Ideas/Sail é.md"));
    let over_rest = server.get(&read, &format!("{NOTE}Ideas/Sail%20%C3%A9.md")).code(200);
    assert_eq!(over_rest.header("ETag"), Some(format!("\"{}\"", sail.text(4))));
    // A note is created once, replaced for the right version, and deleted.
    let log = |text: &str| note("notes", "Log.md").text(3, text);
    let made = call(&server, &write, "NoteService/CreateNote", &log("# Log\n")).ok();
    call(&server, &write, "NoteService/CreateNote", &log("x")).refused(EXISTS, "exists already");
    assert_eq!(house.read("notes/Log.md"), b"# Log\n");
    let changed = call(&server, &write, "NoteService/UpdateNote", &log("# Log\r\nTwo\r\n").text(4, &made.text(1))).ok();
    assert_ne!(changed.text(1), made.text(1));
    call(&server, &write, "NoteService/UpdateNote", &log("lost").text(4, &made.text(1)))
        .refused(ABORTED, "another text");
    call(&server, &write, "NoteService/DeleteNote", &note("notes", "Log.md").text(3, &made.text(1)))
        .refused(ABORTED, "another text");
    assert_eq!(house.read("notes/Log.md"), b"# Log\r\nTwo\r\n");
    for wrong in ["", "*", "\"x\"", "a, b", &"a".repeat(200)] {
        call(&server, &write, "NoteService/UpdateNote", &log("lost").text(4, wrong)).refused(INVALID, "`if_match`");
    }
    call(&server, &write, "NoteService/UpdateNote", &note("notes", "No.md").text(3, "x").text(4, "abc"))
        .refused(NOT_FOUND, "no note No.md");
    call(&server, &write, "NoteService/DeleteNote", &note("notes", "Log.md").text(3, &changed.text(1))).ok();
    call(&server, &read, "NoteService/GetNote", &note("notes", "Log.md")).refused(NOT_FOUND, "no note Log.md");
    // What isn't a text, isn't a note, or is protected.
    let binary = note("notes", "Binary.md").bytes(3, b"ok\xff");
    call(&server, &write, "NoteService/CreateNote", &binary).refused(INVALID, "`content` isn't UTF-8 at byte 2");
    call(&server, &write, "NoteService/CreateNote", &note("notes", "a.txt")).refused(INVALID, "ends with .md");
    call(&server, &write, "NoteService/CreateNote", &note("notes", "AGENTS.md")).refused(DENIED, "protected");
    call(&server, &write, "NoteService/CreateNote", &note("nowhere", "a.md")).refused(NOT_FOUND, "no volume nowhere");
    let huge = note("notes", "Huge.md").bytes(3, &vec![b'a'; 10 << 20]);
    call(&server, &write, "NoteService/CreateNote", &huge).refused(EXHAUSTED, "at most");
    // More than gRPC takes by itself is received: this is refused for its last byte.
    let large = note("notes", "Large.md").bytes(3, &[vec![b'a'; 5 << 20], vec![0xff]].concat());
    call(&server, &write, "NoteService/CreateNote", &large).refused(INVALID, "`content` isn't UTF-8 at byte 5242880");
    server.end();
}

#[test]
fn what_may_not_be_called_in_tracebook_v1_is_refused() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let write = token(&house, "writer", &["--scopes", "write"]);
    let other = token(&house, "other", &["--scopes", "read,write,agent", "--volume", "other"]);
    let server = Server::new(&house);
    for path in HOSTILE_PATHS {
        for method in ["CreateNote", "UpdateNote", "DeleteNote"] {
            call(&server, &write, &format!("NoteService/{method}"), &note("notes", path)).refused(INVALID, "");
        }
        call(&server, &read, "NoteService/GetNote", &note("notes", path)).refused(INVALID, "path inside its volume");
        let status = call(&server, &read, "NoteService/GetNote", &note(path, "Boat.md")).status;
        assert!(matches!(status, INVALID | NOT_FOUND), "{path:?}: {status}");
        for method in ["GetRun", "ListRunSteps", "WatchRun"] {
            call(&server, &read, &format!("RunService/{method}"), &run_id(path)).refused(NOT_FOUND, "no such run");
        }
    }
    assert!(!house.path("outside.md").exists());
    // Each scope, and none.
    let unscoped = [
        ("NoteService/CreateNote", "write"),
        ("NoteService/UpdateNote", "write"),
        ("NoteService/DeleteNote", "write"),
        ("TodoService/ToggleTodo", "write"),
        ("RunService/StartRun", "agent"),
        ("RunService/CancelRun", "agent"),
        ("RunService/DecideApproval", "approve"),
        ("CellService/RunCells", "run"),
        ("CellService/InterruptCells", "run"),
        ("AttachmentService/WriteAttachment", "write"),
        ("AttachmentService/DeleteAttachment", "write"),
        ("HistoryService/RestoreNoteVersion", "write"),
        ("MemoryService/AddMemory", "write"),
        ("MemoryService/DeleteMemory", "write"),
        ("TraceService/DeleteTrace", "write"),
        ("TraceService/PinTrace", "approve"),
        ("TraceService/UnpinTrace", "approve"),
    ];
    for (method, scope) in unscoped {
        call(&server, &read, method, &Message::default()).refused(DENIED, &format!("`{scope}`"));
    }
    for method in [
        "NoteService/ListVolumes",
        "NoteService/ListNotes",
        "NoteService/GetNote",
        "SearchService/SearchNotes",
        "TodoService/ListTodos",
        "RunService/ListAgents",
        "RunService/GetRun",
        "RunService/ListRuns",
        "RunService/ListRunSteps",
        "RunService/WatchRun",
        "RunService/ListPendingApprovals",
        "CellService/ListCellOutputs",
        "EventService/WatchEvents",
        "NoteService/ListNoteBlocks",
        "AttachmentService/ListAttachments",
        "AttachmentService/ReadAttachment",
        "HistoryService/ListNoteVersions",
        "HistoryService/GetNoteVersion",
        "CollectionService/ListCollections",
        "CollectionService/QueryCollection",
        "MemoryService/ListMemories",
        "MemoryService/GetMemory",
        "MemoryService/RecallMemories",
        "TraceService/ListTraces",
        "TraceService/GetTrace",
    ] {
        call(&server, &write, method, &Message::default()).refused(DENIED, "`read`");
        call(&server, "tb_x_y", method, &Message::default()).refused(UNAUTHENTICATED, "isn't known");
    }
    // A token for another volume.
    call(&server, &other, "NoteService/GetNote", &note("notes", "Boat.md")).refused(DENIED, "another volume");
    call(&server, &other, "NoteService/CreateNote", &note("notes", "New.md")).refused(DENIED, "another volume");
    let started = Message::default().text(1, "x").text(2, "notes");
    call(&server, &other, "RunService/StartRun", &started).refused(DENIED, "another volume");
    // Fields with wrong values.
    let page = Message::default().text(1, "notes").number(3, -1);
    call(&server, &read, "NoteService/ListNotes", &page).refused(INVALID, "`page_size`");
    let page = Message::default().text(1, "notes").text(4, "second");
    call(&server, &read, "NoteService/ListNotes", &page).refused(INVALID, "`page_token`");
    call(&server, &read, "SearchService/SearchNotes", &Message::default()).refused(INVALID, "`query`");
    server.end();
}

#[test]
fn search_todos_and_events_over_grpc() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let found = call(&server, &write, "SearchService/SearchNotes", &run_id("solar panel")).ok();
    let first = found.field(1);
    assert_eq!((text_of(&first, 2), text_of(&first, 3)), ("notes".to_owned(), "Boat.md".to_owned()));
    assert!(text_of(&first, 7).contains("12 volts") && !text_of(&first, 9).is_empty(), "{found:?}");
    let parts = fields_of(&first, 10);
    let score = f64::from_le_bytes(field_of(&first, 8).try_into().expect("8"));
    assert!(!parts.is_empty() && score > 0.0, "{found:?}");
    // Every note has a heading: pages of one result each join to all of them, and end.
    let (mut token_of_page, mut addresses) = (String::new(), Vec::new());
    loop {
        let asked = run_id("Boat OR Sail OR Cells").number(2, 1).text(3, &token_of_page);
        let page = call(&server, &write, "SearchService/SearchNotes", &asked).ok();
        addresses.push(text_of(&page.field(1), 1));
        token_of_page = page.text(2);
        if token_of_page.is_empty() {
            break;
        }
    }
    let whole = call(&server, &write, "SearchService/SearchNotes", &run_id("Boat OR Sail OR Cells")).ok();
    let whole: Vec<String> = fields_of(&whole.messages[0], 1).iter().map(|result| text_of(result, 1)).collect();
    assert!(whole.len() > 1);
    assert_eq!(addresses, whole);
    let todos = call(&server, &write, "TodoService/ListTodos", &Message::default()).ok();
    let todo = todos.field(1);
    assert_eq!(text_of(&todo, 4), "Paint the hull");
    let at = i64::from_le_bytes(field_of(&todo, 3).try_into().expect("8"));
    let toggle = note("notes", "Boat.md").text(3, "Paint the hull").number(4, at);
    assert!(call(&server, &write, "TodoService/ToggleTodo", &toggle).ok().flag(1));
    until("it's on disk", || house.read("notes/Boat.md").windows(5).any(|part| part == b"- [x]"));
    call(&server, &write, "TodoService/ToggleTodo", &note("notes", "Boat.md").text(3, "No such todo"))
        .refused(INVALID, "");
    let done = call(&server, &write, "TodoService/ListTodos", &Message::default()).ok();
    assert!(fields_of(&done.messages[0], 1).is_empty(), "{done:?}");
    // An event that was missed comes when the client is back.
    let watch =
        |after: &str, enough: usize| stream(&server, &write, "EventService/WatchEvents", &run_id(after), enough);
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| watch("", 1).ok());
        // A client that has just connected gets the next event.
        let mut number = 0;
        while !first.is_finished() {
            number += 1;
            let made = note("notes", &format!("New {number}.md"));
            call(&server, &write, "NoteService/CreateNote", &made).ok();
            std::thread::yield_now();
        }
        first.join().expect("an event")
    });
    assert!(!first.text(1).is_empty() && !first.text(2).is_empty(), "{first:?}");
    call(&server, &write, "NoteService/CreateNote", &note("notes", "Missed.md")).ok();
    let mut after = first.text(1);
    loop {
        let missed = watch(&after, 1).ok();
        let event: Value = serde_json::from_str(&missed.text(4)).expect("JSON");
        assert_eq!(event["kind"], json!(missed.text(2)));
        if event["path"] == "Missed.md" {
            break;
        }
        after = missed.text(1);
    }
    let lost = watch("0-1", 1).ok();
    // Its id is the newest: a client continues after it.
    assert!(!lost.text(1).is_empty() && lost.text(2) == "GAP", "{lost:?}");
    server.end();
}

/// What was streamed of a run.
#[derive(Debug, Default, PartialEq)]
struct Watched {
    /// Ids of events.
    ids: Vec<String>,
    /// Number of the field that holds each step's kind.
    steps: Vec<u64>,
    /// States, with the number of pending approvals.
    states: Vec<(u8, usize)>,
    /// The answer of the last event.
    answer: String,
}

fn watched(reply: &Reply) -> Watched {
    let mut seen = Watched::default();
    for message in &reply.messages {
        seen.ids.push(text_of(message, 1));
        for step in fields_of(message, 2) {
            let kind = (4..=9).find(|kind| !fields_of(&step, *kind).is_empty());
            seen.steps.push(kind.expect("a kind"));
        }
        for update in fields_of(message, 3) {
            let run = field_of(&update, 1);
            seen.states.push((field_of(&run, 2).first().copied().unwrap_or(0), fields_of(&update, 2).len()));
            seen.answer = text_of(&field_of(&update, 3), 1);
        }
    }
    seen
}

#[test]
fn a_run_is_started_watched_decided_and_canceled_over_grpc() {
    let model = agents::model(|turn, _| match turn {
        0 => ("I make it.".to_owned(), vec![("shell", json!({"command": "echo made > made.txt"}))]),
        _ => ("It is made.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("Boat.md", "The panel gives 12 volts.\n")]);
    let all = token(&house, "all", &["--scopes", "read,agent,approve"]);
    let server = Server::new(&house);
    let agents = call(&server, &all, "RunService/ListAgents", &Message::default()).ok();
    assert!(agents.messages[0].windows(9).any(|part| part == b"assistant"), "{agents:?}");
    let asked = Message::default().text(1, "Make it").text(2, "notes").entry(4, "color", "red").text(7, "first");
    let started = call(&server, &all, "RunService/StartRun", &asked).ok();
    let id = text_of(&started.field(1), 1);
    // The same request again is the same run; another one under its name is refused.
    assert_eq!(text_of(&call(&server, &all, "RunService/StartRun", &asked).ok().field(1), 1), id);
    let changed = asked.clone().text(1, "Make another");
    call(&server, &all, "RunService/StartRun", &changed).refused(EXISTS, "`request_id`");
    let pending = || call(&server, &all, "RunService/ListPendingApprovals", &run_id(&id));
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| call(&server, &all, "RunService/WatchRun", &run_id(&id)).ok());
        until("it waits for a decision", || {
            let reply = pending();
            reply.status == OK && !reply.field(1).is_empty()
        });
        let agents = call(&server, &all, "RunService/ListAgents", &Message::default()).ok();
        let progress = fields_of(&agents.messages[0], 1).into_iter().map(|agent| text_of(&field_of(&agent, 7), 1));
        assert!(progress.into_iter().any(|run| run == id), "an agent works on it");
        let approval = pending().ok().field(1);
        assert_eq!((text_of(&approval, 2), text_of(&approval, 5)), ("shell".to_owned(), id.clone()));
        let arguments: Value = serde_json::from_str(&text_of(&approval, 7)).expect("JSON");
        assert_eq!(arguments["command"], "echo made > made.txt");
        let decision = |word: i64| Message::default().text(1, &text_of(&approval, 1)).number(2, word);
        call(&server, &all, "RunService/DecideApproval", &decision(0)).refused(INVALID, "`decision`");
        let unknown = Message::default().text(1, "00000000:t0c0").number(2, 1);
        call(&server, &all, "RunService/DecideApproval", &unknown).refused(NOT_FOUND, "nothing waits");
        assert!(!house.path("notes/made.txt").exists());
        call(&server, &all, "RunService/DecideApproval", &decision(1)).ok();
        watched(&watch.join().expect("a stream"))
    });
    assert!(house.path("notes/made.txt").exists());
    // Said, called, returned, and answered; the last event has the result.
    assert_eq!(seen.steps.last(), Some(&8), "{seen:?}");
    for kind in [4, 5, 6] {
        assert!(seen.steps.contains(&kind), "{kind}: {seen:?}");
    }
    assert!(seen.states.contains(&(WAITING, 1)), "{seen:?}");
    assert_eq!((seen.states.last(), seen.answer.as_str()), (Some(&(DONE, 0)), "It is made."), "{seen:?}");
    // The steps are those of REST, also in pages.
    let (mut token_of_page, mut count) = (String::new(), 0);
    loop {
        let asked = run_id(&id).number(2, 1).text(3, &token_of_page);
        let page = call(&server, &all, "RunService/ListRunSteps", &asked).ok();
        count += fields_of(&page.messages[0], 1).len();
        token_of_page = page.text(2);
        if token_of_page.is_empty() {
            break;
        }
    }
    let over_rest = server.get(&all, &format!("/api/v1/runs/{id}/steps")).code(200).json();
    assert_eq!((seen.steps.len(), count), (over_rest["steps"].as_array().expect("a list").len(), count));
    // A client that comes back gets what is behind the last event that it has, and the state.
    let rest = watched(&call(&server, &all, "RunService/WatchRun", &run_id(&id).text(2, &seen.ids[1])).ok());
    let had: usize = seen.ids[1].parse().expect("a number");
    assert_eq!((rest.steps.as_slice(), rest.states), (&seen.steps[had..], vec![(DONE, 0)]));
    for wrong in ["999", "-1", "first", "1.5"] {
        call(&server, &all, "RunService/WatchRun", &run_id(&id).text(2, wrong)).refused(INVALID, "`after_event_id`");
    }
    let about = call(&server, &all, "RunService/GetRun", &run_id(&id)).ok();
    assert_eq!(text_of(&about.field(4), 1), "It is made.");
    let listed = call(&server, &all, "RunService/ListRuns", &Message::default()).ok();
    assert_eq!(text_of(&listed.field(1), 1), id);
    // One that is canceled ends its streams.
    let asked = Message::default().text(1, "Make it").text(2, "notes");
    let second = text_of(&call(&server, &all, "RunService/StartRun", &asked).ok().field(1), 1);
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| call(&server, &all, "RunService/WatchRun", &run_id(&second)).ok());
        until("it waits", || {
            let about = call(&server, &all, "RunService/GetRun", &run_id(&second)).ok();
            field_of(&about.field(1), 2).first() == Some(&WAITING)
        });
        call(&server, &all, "RunService/CancelRun", &run_id(&second)).ok();
        watched(&watch.join().expect("a stream"))
    });
    assert_eq!(seen.states.last(), Some(&(CANCELED, 0)), "{seen:?}");
    let unknown = run_id("00000000000000000000000000000000");
    for method in ["GetRun", "ListRunSteps", "WatchRun", "CancelRun", "ListPendingApprovals"] {
        call(&server, &all, &format!("RunService/{method}"), &unknown).refused(NOT_FOUND, "no such run");
    }
    for wrong in ["", "  "] {
        call(&server, &all, "RunService/StartRun", &run_id(wrong)).refused(INVALID, "`prompt`");
    }
    let nowhere = Message::default().text(1, "x").text(2, "nowhere");
    call(&server, &all, "RunService/StartRun", &nowhere).refused(NOT_FOUND, "no volume nowhere");
    server.end();
}

#[test]
fn a_client_that_stops_reading_holds_up_nobody_and_loses_nothing() {
    const TURNS: usize = 12;
    let model = agents::model(|turn, _| match turn {
        // All together are more than HTTP/2 sends ahead. Few words, because each one comes as an event of its own.
        0..TURNS => {
            (format!("{} ", "long".repeat(25)).repeat(300), vec![("read_file", json!({"path": format!("{turn}.md")}))])
        }
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let files: Vec<(String, &str)> = (0..TURNS).map(|turn| (format!("{turn}.md"), "# A\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let house = agents::house(&model, &files);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    house.write("W/config.yaml", config.replace("32000", "1000000").as_bytes());
    let all = token(&house, "all", &["--scopes", "read,agent"]);
    let server = Server::new(&house);
    let asked = Message::default().text(1, "Read it").text(2, "notes");
    let id = text_of(&call(&server, &all, "RunService/StartRun", &asked).ok().field(1), 1);
    let bearer = format!("Bearer {all}");
    let headers = [("authorization", bearer.as_str())];
    let path = "tracebook.v1.RunService/WatchRun";
    let mut whole = Watched::default();
    // While this client doesn't read, the run ends and another one sees all of it.
    let slow = paused_call(&server, &headers, path, framed(&run_id(&id).0), usize::MAX, || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| watched(&call(&server, &all, "RunService/WatchRun", &run_id(&id)).ok()));
            whole = other.join().expect("a stream");
        });
    });
    let slow = watched(&slow.ok());
    assert!(whole.steps.len() > 2 * TURNS, "{whole:?}");
    assert_eq!((slow.steps, slow.states.last()), (whole.steps, Some(&(DONE, 0))));
    assert!(whole.states.contains(&(RUNNING, 0)) && whole.states.last() == Some(&(DONE, 0)));
    server.end();
}

#[test]
fn cells_send_their_outputs_one_by_one_and_stop_with_their_client() {
    let house = notes();
    house.write("notes/Two.md", b"# Two\n\n```python\nprint('first')\n```\n\n```python\nwhile True: pass\n```\n");
    let run = token(&house, "runner", &["--scopes", "read,run"]);
    let server = Server::new(&house);
    let outputs = |reply: &Reply| -> Vec<(u8, String)> {
        let outputs = reply.messages.iter().flat_map(|message| fields_of(message, 1));
        outputs.map(|output| (field_of(&output, 1)[0], text_of(&output, 2))).collect()
    };
    let whole = call(&server, &run, "CellService/RunCells", &note("notes", "Cells.md")).ok();
    let printed = outputs(&whole);
    assert!(printed.iter().all(|(cell, _)| *cell == 1) && printed[0].1.contains("from the cell"), "{printed:?}");
    let end = field_of(whole.messages.last().expect("an end"), 2);
    assert_eq!(field_of(&end, 1).first(), Some(&1), "{whole:?}");
    // The first cell's output comes while the second one runs. Then the client leaves, and the second one stops.
    let first = stream(&server, &run, "CellService/RunCells", &note("notes", "Two.md"), 1).ok();
    assert!(outputs(&first)[0].1.contains("first"), "{first:?}");
    let executions = || call(&server, &run, "CellService/ListCellOutputs", &note("notes", "Two.md")).ok();
    until("the second one was stopped", || {
        let executions = fields_of(&executions().messages[0], 1);
        let second = executions.iter().find(|execution| field_of(execution, 1).first() == Some(&2));
        second.is_some_and(|second| {
            let about: Value = serde_json::from_str(&text_of(second, 3)).expect("JSON");
            !matches!(about["status"].as_str(), Some("running" | "queued"))
        })
    });
    // One that is interrupted ends with what it has.
    std::thread::scope(|scope| {
        let endless = note("notes", "Two.md").number(3, 2);
        let ended = scope.spawn(|| call(&server, &run, "CellService/RunCells", &note("notes", "Two.md").number(3, 2)));
        until("it was interrupted", || {
            let stopped = call(&server, &run, "CellService/InterruptCells", &note("notes", "Two.md")).status;
            assert!(matches!(stopped, OK | PRECONDITION), "{stopped}");
            ended.is_finished()
        });
        let ended = ended.join().expect("an end").ok();
        let end = field_of(ended.messages.last().expect("an end"), 2);
        assert_eq!(field_of(&end, 1), b"", "{ended:?}");
        call(&server, &run, "CellService/RunCells", &endless.number(5, 1)).ok();
    });
    call(&server, &run, "CellService/RunCells", &note("notes", "Two.md").number(3, 9)).refused(INVALID, "no cell 9");
    call(&server, &run, "CellService/RunCells", &note("notes", "No.md")).refused(NOT_FOUND, "no note");
    call(&server, &run, "CellService/RunCells", &note("notes", "Two.md").number(3, -1)).refused(INVALID, "`cell`");
    server.end();
}
