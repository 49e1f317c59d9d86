//! Files at hubs over NATS: uploads interrupted midway, pieces lost by the servers, the same file sent to two replicas.

use super::{Cluster, Runs, joins, received, replica, shares, sync, until};
use crate::program::{House, noise};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::Duration;
use store::BlobHash;
use support::hub_load::free_port;

/// The size of a piece in bytes.
const PIECE: usize = 65_536;
const SOON: Duration = Duration::from_secs(60);

/// Sends a JetStream API request about the file stream, as NATS's own tools do.
fn ask(cluster: &Cluster, what: &str, question: &Value) -> Value {
    let mut way = TcpStream::connect(("127.0.0.1", cluster.ports[0])).expect("there");
    way.set_read_timeout(Some(SOON)).expect("set");
    let question = question.to_string();
    let length = question.len();
    write!(
        way,
        "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\n\
         PUB $JS.API.STREAM.{what}.TRACEBOOK-FILES answer {length}\r\n{question}\r\n"
    )
    .expect("asked");
    let mut way = BufReader::new(way);
    loop {
        let mut line = String::new();
        assert!(way.read_line(&mut line).expect("a line") > 0, "the server hung up");
        let Some(length) = line.trim().strip_prefix("MSG answer 1 ") else { continue };
        let mut answer = vec![0; length.parse().expect("a number")];
        way.read_exact(&mut answer).expect("an answer");
        return serde_json::from_slice(&answer).expect("JSON");
    }
}

/// The sequence numbers of messages about these bytes whose subject starts with `begin`.
fn lie(cluster: &Cluster, begin: &str, bytes: &[u8]) -> Vec<u64> {
    let hash = BlobHash::of(bytes).to_string();
    let last = ask(cluster, "INFO", &json!({}))["state"]["last_seq"].as_u64().expect("a number");
    let of = |sequence: &u64| {
        let found = ask(cluster, "MSG.GET", &json!({"seq": sequence}));
        let subject = found["message"]["subject"].as_str().unwrap_or_default();
        subject.starts_with(begin) && subject.ends_with(&hash)
    };
    (1..=last).filter(of).collect()
}

fn pieces(cluster: &Cluster, bytes: &[u8]) -> Vec<u64> {
    lie(cluster, "tracebook.file.", bytes)
}

/// Deletes a message on the leading server, and thereby on the others.
fn lose(cluster: &Cluster, sequence: u64) {
    let done = ask(cluster, "MSG.DELETE", &json!({"seq": sequence}));
    assert_eq!(done["success"], true, "{done}");
}

/// Starts two replicas, `R1` and `R2`. Returns their ports, addresses and processes.
fn two(house: &House, cluster: &Cluster) -> ([u16; 2], [String; 2], [Runs; 2]) {
    let ports = [free_port().expect("a port"), free_port().expect("a port")];
    let run = |at: usize| replica(house, ["R1", "R2"][at], ports[at], &cluster.urls());
    (ports, ports.map(|port| format!("ws://127.0.0.1:{port}")), [run(0), run(1)])
}

fn logged(house: &House, name: &str, words: &str) -> bool {
    String::from_utf8_lossy(&house.read(&format!("{name}.log"))).contains(words)
}

#[test]
fn an_upload_that_was_cut_is_served_to_nobody_until_the_rest_has_come() {
    let house = House::new();
    let Some(cluster) = Cluster::new(&house) else { return };
    let (ports, ats, _run) = two(&house, &cluster);
    let (first, address) = shares(&ats[0]);
    sync(&first);
    let large = noise(0, 60_000_000);
    first.write("notes/large.bin", &large);
    let mut sending = first.command(&["sync", "now", "--for", "100"]).spawn().expect("started");
    let there = || cluster.pieces().map_or(0, |(pieces, _)| pieces as usize);
    until("it is on its way", SOON, || there() > 100);
    sending.kill().expect("killed");
    sending.wait().expect("ended");
    assert!(there() * PIECE < large.len(), "it was killed in the middle: {}", there());
    // The file is known to exist, but neither replica serves any part of it.
    for at in &ats {
        let other = joins(&address.replace(&ats[0], at));
        sync(&other);
        let files = other.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
        assert_eq!((&files["coming"], &files["there"]), (&json!(1), &json!(0)), "{files}");
        assert!(!other.path("notes/large.bin").exists() && other.path("notes/a.md").exists());
        assert!(!other.path("W/coming").exists(), "a piece was served");
    }
    // The device that began the upload sends the rest to the other replica.
    let before = there() * PIECE;
    sync(&first);
    let came = received(&house, "R1", ports[0]) as usize;
    assert!(came < large.len() + 4_000_000, "{came} bytes came, {before} of them were there");
    let second = joins(&address.replace(&ats[0], &ats[1]));
    sync(&second);
    assert!(second.read("notes/large.bin") == large, "{}", second.run(&["sync", "log"]).text());
}

#[test]
fn a_piece_that_the_servers_lose_is_missed_and_the_file_is_brought_again() {
    let house = House::new();
    let Some(cluster) = Cluster::new(&house) else { return };
    let (_, ats, _run) = two(&house, &cluster);
    let (first, address) = shares(&ats[0]);
    let elsewhere = address.replace(&ats[0], &ats[1]);
    let cat = noise(0, 300_000);
    first.write("notes/cat.png", &cat);
    sync(&first);
    // Both replicas have read the file and know where its pieces are.
    for address in [&address, &elsewhere] {
        let early = joins(address);
        sync(&early);
        assert!(early.read("notes/cat.png") == cat);
    }
    let lies = pieces(&cluster, &cat);
    assert_eq!(lies.len(), cat.len().div_ceil(PIECE));
    lose(&cluster, lies[2]);
    let late = joins(&elsewhere);
    sync(&late);
    assert!(!late.path("notes/cat.png").exists(), "a file with a hole");
    let files = late.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    assert_eq!((&files["coming"], &files["there"]), (&json!(1), &json!(0)), "{files}");
    assert!(logged(&house, "R2", "NATS lost part of a file"));
    // The device that has the file connects to the other replica, which has read the file before.
    sync(&first);
    sync(&late);
    assert!(late.read("notes/cat.png") == cat, "{}", late.run(&["sync", "log"]).text());
    let third = joins(&address);
    sync(&third);
    assert!(third.read("notes/cat.png") == cat, "{}", third.run(&["sync", "log"]).text());
    assert_eq!(pieces(&cluster, &cat).len(), lies.len(), "nothing is there twice");
    // A connected device sends the file again without being told.
    let _stays = first.owner("a.md");
    lose(&cluster, pieces(&cluster, &cat)[0]);
    let fourth = joins(&elsewhere);
    until("it comes again by itself", SOON, || {
        sync(&fourth);
        fourth.path("notes/cat.png").exists()
    });
    assert!(fourth.read("notes/cat.png") == cat);
}

fn signal(process: &Child, name: &str) {
    let done = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status();
    assert!(done.expect("there is `kill`").success(), "{name}");
}

#[test]
fn two_devices_that_bring_the_same_file_to_two_replicas_at_once_make_one() {
    if crate::program::is_left_to_nightly() {
        return;
    }
    let house = House::new();
    let Some(cluster) = Cluster::new(&house) else { return };
    let (ports, ats, _run) = two(&house, &cluster);
    let (first, address) = shares(&ats[0]);
    sync(&first);
    let second = joins(&address.replace(&ats[0], &ats[1]));
    sync(&second);
    let (path, film) = ("notes/film.bin", noise(0, 20_000_000));
    let came_to = |at: usize| received(&house, ["R1", "R2"][at], ports[at]);
    let before = [0, 1].map(came_to);
    let mut sending = [&first, &second].map(|device| {
        device.write(path, &film);
        device.command(&["sync", "now", "--for", "100"]).spawn().expect("started")
    });
    // The first sender is paused until the other also sends; otherwise one could finish before the other starts.
    let brings = |at: usize| came_to(at) - before[at] > 1_000_000;
    let mut held = None;
    until("both bring the film", SOON, || {
        let both = [brings(0), brings(1)];
        if held.is_none()
            && let Some(ahead) = both.iter().position(|brings| *brings)
        {
            signal(&sending[ahead], "STOP");
            held = Some(ahead);
        }
        both == [true, true]
    });
    if let Some(ahead) = held {
        signal(&sending[ahead], "CONT");
    }
    for (device, sending) in [&first, &second].into_iter().zip(&mut sending) {
        assert!(sending.wait().expect("ended").success(), "{}", device.run(&["sync", "log"]).text());
    }
    assert_eq!(pieces(&cluster, &film).len(), film.len().div_ceil(PIECE), "nothing is there twice");
    assert_eq!(lie(&cluster, "tracebook.whole.", &film).len(), 1);
    for at in &ats {
        let other = joins(&address.replace(&ats[0], at));
        sync(&other);
        assert!(other.read(path) == film, "{}", other.run(&["sync", "log"]).text());
    }
    for device in [&first, &second] {
        let files = device.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
        assert_eq!(files, json!({"kept": true, "coming": 0, "there": 0, "going": 0, "refused": 0}));
    }
}
