//! `tracebook.v1` at `tracebook serve`, beyond notes and runs: attachments, history, blocks, collections, memory and
//! traces over gRPC, with the refusals of REST.

use super::grpc::{
    DENIED, EXHAUSTED, EXISTS, INVALID, Message, NOT_FOUND, PRECONDITION, Reply, field_of, fields_of, framed, raw_call,
};
use super::grpc_v1::{ABORTED, HOSTILE_PATHS, call, note, text_of};
use super::http_api::house_with_collections;
use super::http_server::{Server, notes, token};
use super::{agents, memory};
use crate::program::{noise, until};
use serde_json::{Value, json};

const OUT_OF_RANGE: i32 = 11;
const ATTACHMENTS: &str = "/api/v1/volumes/notes/attachments";

fn number_of(message: &[u8], field: u64) -> u64 {
    field_of(message, field).try_into().map_or(0, u64::from_le_bytes)
}

fn named(name: &str) -> Message {
    Message::default().text(1, name)
}

/// Stores an attachment as a stream: where, then its parts.
fn store(server: &Server, token: &str, target: &Message, parts: &[&[u8]]) -> Reply {
    let mut body = framed(&Message::default().bytes(1, &target.0).0);
    for part in parts {
        body.extend(framed(&Message::default().bytes(2, part).0));
    }
    let bearer = format!("Bearer {token}");
    raw_call(server, &[("authorization", &bearer)], "tracebook.v1.AttachmentService/WriteAttachment", body, usize::MAX)
}

/// The bytes of an attachment that was sent, behind the message about it.
fn content(reply: &Reply) -> Vec<u8> {
    let parts = reply.messages[1..].iter().map(|message| field_of(message, 2));
    parts.inspect(|part| assert!(part.len() <= 1 << 20, "{} bytes at once", part.len())).flatten().collect()
}

#[test]
fn attachments_are_sent_in_parts_and_never_overwritten_unseen() {
    let house = notes();
    let large = noise(7, 3_000_000);
    house.write("notes/Pictures/boat.png", &large);
    house.write("notes/empty.bin", b"");
    house.write("notes/id_rsa", b"a key");
    house.write("other/secret.bin", b"secret");
    house.run(&["open", "other"]).good();
    let own = token(&house, "own", &["--scopes", "read,write", "--volume", "notes"]);
    let server = Server::new(&house);
    let read = |message: &Message| call(&server, &own, "AttachmentService/ReadAttachment", message);
    let list = |message: &Message| call(&server, &own, "AttachmentService/ListAttachments", message);
    until("it's listed", || !list(&named("notes").text(2, "Pict")).ok().field(1).is_empty());
    let listed = list(&named("notes")).ok();
    let paths: Vec<String> = fields_of(&listed.messages[0], 1).iter().map(|one| text_of(one, 2)).collect();
    assert_eq!(paths, ["Pictures/boat.png", "empty.bin"]);
    let page = list(&named("notes").number(3, 1)).ok();
    assert_eq!(fields_of(&page.messages[0], 1).len(), 1);
    let rest = list(&named("notes").number(3, 1).text(4, &page.text(2))).ok();
    assert_eq!(text_of(&fields_of(&rest.messages[0], 1)[0], 2), "empty.bin", "after {}", page.text(2));
    // All of it, with what REST says about it.
    let boat = note("notes", "Pictures/boat.png");
    let whole = read(&boat).ok();
    let known = whole.field(1);
    assert_eq!((number_of(&known, 3), text_of(&known, 6)), (large.len() as u64, "image/png".to_owned()));
    assert!(content(&whole) == large, "other bytes");
    let over_rest = server.get(&own, &format!("{ATTACHMENTS}/Pictures/boat.png")).code(200);
    assert_eq!(over_rest.header("ETag"), Some(format!("\"{}\"", text_of(&known, 5))));
    // A part, the rest after a lost connection, and nothing of nothing.
    let part = read(&boat.clone().number(3, 1_048_570).number(4, 1_048_590)).ok();
    assert!(content(&part) == large[1_048_570..2_097_160], "other bytes");
    let rest = read(&boat.clone().number(3, 2_999_000).text(5, &text_of(&known, 5))).ok();
    assert!(content(&rest) == large[2_999_000..], "other bytes");
    assert_eq!(content(&read(&boat.clone().number(3, 3_000_000)).ok()), b"");
    assert_eq!(content(&read(&note("notes", "empty.bin")).ok()), b"");
    read(&boat.clone().number(3, 3_000_001)).refused(OUT_OF_RANGE, "3000000 bytes");
    read(&boat.clone().number(3, -1)).refused(INVALID, "`offset`");
    read(&boat.clone().number(4, -1)).refused(INVALID, "`length`");
    read(&boat.clone().text(5, "0ld")).refused(ABORTED, "has changed");
    read(&boat.clone().text(5, "\"*\"")).refused(INVALID, "`if_match`");
    // What REST refuses.
    read(&note("notes", "id_rsa")).refused(DENIED, "commonly holds keys");
    read(&note("notes", "Boat.md")).refused(NOT_FOUND, "no attachment");
    read(&note("other", "secret.bin")).refused(DENIED, "another volume");
    list(&named("other")).refused(DENIED, "another volume");
    for path in HOSTILE_PATHS {
        read(&note("notes", path)).refused(INVALID, "path inside its volume");
        store(&server, &own, &note("notes", path), &[b"x"]).refused(INVALID, "path inside its volume");
        call(&server, &own, "AttachmentService/DeleteAttachment", &note("notes", path)).refused(INVALID, "path inside");
    }
    // Stored in parts, only where nothing is or over what was read.
    let table = note("notes", "New/tide table.csv");
    let made = store(&server, &own, &table, &[b"\xff\x00", b"", b"1\n"]).ok();
    assert_eq!(house.read("notes/New/tide table.csv"), b"\xff\x001\n");
    store(&server, &own, &table, &[b"2"]).refused(EXISTS, "exists already");
    let etag = text_of(&made.field(1), 5);
    let written = store(&server, &own, &table.clone().text(3, &etag), &[b"12345"]).ok();
    assert_eq!(house.read("notes/New/tide table.csv"), b"12345");
    store(&server, &own, &table.clone().text(3, &etag), &[b"lost"]).refused(ABORTED, "changed");
    assert_eq!(house.read("notes/New/tide table.csv"), b"12345");
    let part = vec![7; 8 << 20];
    let all = [part.as_slice(), &part, &part, &part];
    let full = store(&server, &own, &note("notes", "full.bin"), &all).ok();
    assert_eq!(number_of(&full.field(1), 3), 32 << 20);
    let more: Vec<&[u8]> = all.into_iter().chain([&b"x"[..]]).collect();
    store(&server, &own, &note("notes", "more.bin"), &more).refused(EXHAUSTED, "at most 33554432 bytes");
    assert!(!house.path("notes/more.bin").exists());
    for (path, why) in [("AGENTS.md", "protected"), (".git/hooks/pre-commit", "protected"), (".env", "commonly holds")]
    {
        store(&server, &own, &note("notes", path), &[b"x"]).refused(DENIED, why);
    }
    store(&server, &own, &note("other", "new.bin"), &[b"x"]).refused(DENIED, "another volume");
    let bearer = format!("Bearer {own}");
    let method = "tracebook.v1.AttachmentService/WriteAttachment";
    let content_first = framed(&Message::default().bytes(2, b"x").0);
    for body in [Vec::new(), framed(b""), content_first] {
        raw_call(&server, &[("authorization", &bearer)], method, body, usize::MAX).refused(INVALID, "`target`");
    }
    // Deleted ones are in the trash.
    let delete = |message: &Message| call(&server, &own, "AttachmentService/DeleteAttachment", message);
    delete(&table.clone().text(3, &etag)).refused(ABORTED, "changed");
    delete(&table.clone().text(3, &text_of(&written.field(1), 5))).ok();
    read(&table).refused(NOT_FOUND, "no attachment");
    assert!(house.run(&["trash"]).good().text().contains("New/tide table.csv"));
    server.end();
}

#[test]
fn versions_are_read_and_restored_and_blocks_join_to_the_note() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let other = token(&house, "other", &["--scopes", "read,write", "--volume", "other"]);
    let server = Server::new(&house);
    house.edit("Boat.md", 0, 0, "First.\n");
    house.edit("Boat.md", 0, 6, "Second");
    let boat = note("notes", "Boat.md");
    let list = |message: &Message| call(&server, &write, "HistoryService/ListNoteVersions", message);
    let listed = list(&boat).ok();
    let total = number_of(&listed.messages[0], 3);
    assert!(total >= 2, "{listed:?}");
    // Pages join to the list, and the last one has the last version.
    let page = list(&boat.clone().number(3, 1).text(4, &(total - 1).to_string())).ok();
    assert_eq!((number_of(&page.field(1), 1), page.text(2)), (total, String::new()));
    let over_rest = server.get(&write, "/api/v1/volumes/notes/history/Boat.md").code(200).json();
    let last = over_rest["versions"].as_array().expect("a list").last().expect("a version");
    assert_eq!(last["hash"], text_of(&page.field(1), 2));
    assert_eq!(last["time"].as_u64(), Some(number_of(&field_of(&page.field(1), 3), 1)));
    let version = |number: i64| boat.clone().number(3, number);
    let get = |message: &Message| call(&server, &write, "HistoryService/GetNoteVersion", message);
    let last = i64::try_from(total).expect("fits");
    assert_eq!(get(&version(last)).ok().field(1), house.read("notes/Boat.md"));
    let before = get(&version(last - 1)).ok().field(1);
    assert!(before.starts_with(b"First.\n"), "{}", String::from_utf8_lossy(&before));
    get(&version(last + 1)).refused(NOT_FOUND, "no change");
    get(&version(-1)).refused(INVALID, "`number`");
    get(&note("notes", "None.md").number(3, 1)).refused(NOT_FOUND, "no note");
    let restored = call(&server, &write, "HistoryService/RestoreNoteVersion", &version(last - 1)).ok();
    assert_eq!(house.read("notes/Boat.md"), before);
    let now = call(&server, &write, "NoteService/GetNote", &boat).ok();
    assert_eq!(now.text(4), restored.text(1));
    assert!(number_of(&list(&boat).ok().messages[0], 3) > total, "the changes are kept");
    call(&server, &write, "HistoryService/RestoreNoteVersion", &version(9_999)).refused(NOT_FOUND, "");
    // Blocks.
    let cells = note("notes", "Cells.md");
    let blocks = call(&server, &write, "NoteService/ListNoteBlocks", &cells).ok();
    let blocks = fields_of(&blocks.messages[0], 1);
    let joined: String = blocks.iter().map(|block| text_of(block, 3)).collect();
    assert_eq!(joined.as_bytes(), house.read("notes/Cells.md"));
    assert!(blocks.iter().any(|block| text_of(block, 4) == "python"), "{blocks:?}");
    // Paths that are none, and another volume.
    for method in ["ListNoteVersions", "GetNoteVersion", "RestoreNoteVersion"] {
        let method = format!("HistoryService/{method}");
        for path in HOSTILE_PATHS {
            call(&server, &write, &method, &note("notes", path)).refused(INVALID, "path inside its volume");
        }
        call(&server, &other, &method, &boat).refused(DENIED, "another volume");
    }
    call(&server, &other, "NoteService/ListNoteBlocks", &cells).refused(DENIED, "another volume");
    call(&server, &write, "NoteService/ListNoteBlocks", &note("notes", "../a.md")).refused(INVALID, "path inside");
    server.end();
}

#[test]
fn views_of_collections_are_queried() {
    let house = house_with_collections();
    let own = token(&house, "own", &["--volume", "notes"]);
    let server = Server::new(&house);
    let list = |volume: &str| call(&server, &own, "CollectionService/ListCollections", &named(volume));
    let listed = list("notes").ok();
    let shelves = fields_of(&listed.messages[0], 1);
    assert_eq!(shelves.iter().map(|one| text_of(one, 2)).collect::<Vec<_>>(), ["Shelf.base"]);
    let query = |message: &Message| call(&server, &own, "CollectionService/QueryCollection", message);
    let shelf = note("notes", "Shelf.base");
    let rows = query(&shelf.clone().text(3, "all")).ok();
    assert_eq!((number_of(&rows.messages[0], 3), rows.text(4)), (3, String::new()));
    let rows = fields_of(&rows.messages[0], 1);
    let row = rows.iter().find(|row| text_of(row, 1) == "b.md").expect("b.md");
    let cells: Value = serde_json::from_str(&text_of(row, 3)).expect("JSON");
    assert!(cells.is_object() && cells.to_string().contains('5') && text_of(row, 2).is_empty(), "{cells}");
    let last = query(&shelf.clone().number(4, 1).text(5, "2")).ok();
    assert_eq!((text_of(&last.field(1), 1), last.text(2)), ("b.md".to_owned(), String::new()));
    query(&shelf.clone().text(3, "none")).refused(INVALID, "no view");
    query(&shelf.clone().text(5, "last")).refused(INVALID, "`page_token`");
    query(&note("notes", "Hidden.base")).refused(NOT_FOUND, "no collection");
    query(&note("notes", "a.md")).refused(NOT_FOUND, "no collection");
    query(&note("other", "Hidden.base")).refused(DENIED, "another volume");
    list("other").refused(DENIED, "another volume");
    for path in HOSTILE_PATHS {
        query(&note("notes", path)).refused(INVALID, "path inside its volume");
    }
    server.end();
}

#[test]
fn memory_is_added_recalled_and_forgotten() {
    let house = notes();
    house.write("other/a.md", b"# A\n");
    house.run(&["open", "other"]).good();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let other = token(&house, "other", &["--scopes", "read,write", "--volume", "other"]);
    let server = Server::new(&house);
    let memory = |token: &str, method: &str, message: &Message| {
        call(&server, token, &format!("MemoryService/{method}"), message)
    };
    let new =
        named("Two coats are enough").text(2, "Paint the hull").number(3, 1).text(4, "notes").text(5, "2031-01-31");
    let id = memory(&write, "AddMemory", &new).ok().text(1);
    let shown = memory(&write, "GetMemory", &named(&id)).ok().field(1);
    let over_rest = server.get(&write, &format!("/api/v1/memory/{id}")).code(200).json();
    assert_eq!((text_of(&shown, 1), json!(text_of(&shown, 5))), (id.clone(), over_rest["learnings_or_issues"].clone()));
    assert_eq!((text_of(&shown, 3), text_of(&shown, 10)), ("Paint the hull".to_owned(), "2031-01-31".to_owned()));
    assert_eq!((number_of(&shown, 4), number_of(&shown, 7), number_of(&shown, 8)), (1, 1, 1), "{over_rest}");
    assert!(number_of(&field_of(&shown, 9), 1) > 1_700_000_000, "{over_rest}");
    let listed = memory(&write, "ListMemories", &named("notes")).ok();
    assert_eq!((number_of(&listed.messages[0], 3), text_of(&listed.field(1), 1)), (1, id.clone()));
    let recalled = memory(&write, "RecallMemories", &named("Paint the hull")).ok();
    let found = fields_of(&recalled.messages[0], 1);
    let first = found.iter().find(|one| text_of(one, 1) == id).unwrap_or_else(|| panic!("{recalled:?}"));
    assert_eq!((text_of(first, 2), text_of(first, 7)), ("experience".to_owned(), "Two coats are enough".to_owned()));
    // Another volume's token sees nothing of it, and can't name the volume.
    assert_eq!(number_of(&memory(&other, "ListMemories", &Message::default()).ok().messages.concat(), 3), 0);
    memory(&other, "ListMemories", &named("notes")).refused(DENIED, "another volume");
    memory(&other, "GetMemory", &named(&id)).refused(NOT_FOUND, "nothing is remembered");
    memory(&other, "DeleteMemory", &named(&id)).refused(NOT_FOUND, "nothing is remembered");
    memory(&other, "RecallMemories", &named("Paint").text(2, "notes")).refused(DENIED, "another volume");
    memory(&other, "AddMemory", &named("x").text(4, "notes")).refused(DENIED, "another volume");
    // An id is the whole id, and no option.
    for wrong in ["", &id[..id.len() - 1], "--json", "../../etc/passwd", "a\nb"] {
        memory(&write, "GetMemory", &named(wrong)).refused(NOT_FOUND, "nothing is remembered");
        memory(&write, "DeleteMemory", &named(wrong)).refused(NOT_FOUND, "nothing is remembered");
    }
    for (wrong, about) in [
        (named(" "), "`text`"),
        (named("a\0b").text(4, "notes"), "`text`"),
        (named("x").number(3, 9).text(4, "notes"), "outcome"),
        (named("x").text(4, "notes").text(5, "soon"), "`expire_day`"),
    ] {
        memory(&write, "AddMemory", &wrong).refused(INVALID, about);
    }
    assert_eq!(memory(&write, "AddMemory", &named("Wax the deck").text(2, "Wax")).status, INVALID, "which volume?");
    memory(&write, "AddMemory", &named("Wax the deck").text(4, "nowhere")).refused(NOT_FOUND, "no volume nowhere");
    memory(&write, "RecallMemories", &named("")).refused(INVALID, "`goal`");
    memory(&write, "RecallMemories", &named("x").text(2, "nowhere")).refused(NOT_FOUND, "no volume nowhere");
    memory(&write, "DeleteMemory", &named(&id)).ok();
    memory(&write, "GetMemory", &named(&id)).refused(NOT_FOUND, "nothing is remembered");
    server.end();
}

#[test]
fn a_memory_that_says_too_little_is_not_kept() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "write"]);
    let server = Server::new(&house);
    server.post(&write, "/api/v1/memory", &json!({"text": "ok"})).refused(409, "not kept");
    call(&server, &write, "MemoryService/AddMemory", &named("ok")).refused(PRECONDITION, "not kept");
    server.end();
}

#[test]
fn traces_are_shown_pinned_and_forgotten() {
    let (address, _) = memory::reporter();
    let csv = "day,sold\n1,517\n";
    let house = agents::house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", csv)]);
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    house.write("other/a.md", b"# A\n");
    house.run(&["open", "other"]).good();
    let all = token(&house, "all", &["--scopes", "read,write,approve"]);
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let other = token(&house, "other", &["--scopes", "read,write,approve", "--volume", "other"]);
    let server = Server::new(&house);
    let trace =
        |token: &str, method: &str, message: &Message| call(&server, token, &format!("TraceService/{method}"), message);
    let listed = trace(&all, "ListTraces", &Message::default()).ok();
    let known = listed.field(1);
    assert_eq!(
        (number_of(&listed.messages[0], 3), number_of(&known, 6), number_of(&known, 9)),
        (1, 2, 0),
        "{listed:?}"
    );
    let name = text_of(&known, 1);
    let details: Value = serde_json::from_str(&text_of(&known, 20)).expect("JSON");
    let over_rest = server.get(&all, "/api/v1/traces").code(200).json();
    assert_eq!(details, over_rest["traces"][0]);
    assert!(text_of(&known, 4).contains("report") && text_of(&known, 2) == "notes", "{details}");
    let shown = trace(&all, "GetTrace", &named(&name)).ok();
    assert!(shown.text(2).contains("reports/"), "{shown:?}");
    // To trust steps is a decision.
    for method in ["PinTrace", "UnpinTrace"] {
        trace(&write, method, &named(&name)).refused(DENIED, "`approve`");
    }
    let pinned = trace(&all, "PinTrace", &named(&name)).ok().field(1);
    assert_eq!((number_of(&pinned, 9), number_of(&pinned, 7), text_of(&pinned, 1)), (1, 1, name.clone()));
    let unpinned = trace(&all, "UnpinTrace", &named(&name)).ok().field(1);
    assert_eq!(number_of(&unpinned, 9), 0);
    // Names that are none, and another volume.
    for method in ["GetTrace", "DeleteTrace", "PinTrace", "UnpinTrace"] {
        for wrong in ["", "none", &name[..name.len() - 1], "--pin", "../a"] {
            trace(&all, method, &named(wrong)).refused(NOT_FOUND, "no such trace");
        }
        trace(&other, method, &named(&name)).refused(NOT_FOUND, "no such trace");
        trace(&other, method, &named(&name).text(2, "notes")).refused(DENIED, "another volume");
    }
    trace(&other, "ListTraces", &named("notes")).refused(DENIED, "another volume");
    trace(&write, "DeleteTrace", &named(&name).text(2, "notes")).ok();
    trace(&all, "GetTrace", &named(&name)).refused(NOT_FOUND, "no such trace");
    server.end();
}
