//! A hub under attack, both by peers that have proven no key and by one that has: its memory stays bounded, deadlines
//! hold, and an honest device still gets through.

use super::{Runs, free_port, get, until};
use crate::program::{House, finish};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use store::sync::PeerId;
use store::sync::wire::{self, WireMessage};
use store::{ActorId, DocId, VolumeDoc};

/// The program as on another machine: with its own home and no keyring.
fn at_home(house: &House, home: &str, words: &[&str]) -> Command {
    let workspace = format!("W-{home}");
    let words: Vec<&str> = ["--workspace", &workspace].into_iter().chain(words.iter().copied()).collect();
    let mut command = house.command(&words);
    std::fs::create_dir_all(house.path(home)).expect("a home");
    command.env("HOME", house.path(home)).env("TRACEBOOK_KEYRING", "off");
    command
}

/// A hub with a limit on open files, and a device that shares its folder over it.
struct Attacked {
    house: House,
    hub: Runs,
    port: u16,
}

impl Attacked {
    fn new(files: u32, more: &[&str]) -> Attacked {
        host::rlimits::raise_open_file_limit();
        let house = House::new();
        let port = free_port().expect("a port");
        let listen = format!("127.0.0.1:{port}");
        let words = [&["--json", "hub", "--folder", "H", "--listen", &listen], more].concat();
        let plain = at_home(&house, "server", &words);
        // The same command under a limit that it can't raise.
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -n {files}; exec \"$@\"")).arg("sh");
        limited.arg(plain.get_program()).args(plain.get_args()).current_dir(plain.get_current_dir().expect("set"));
        plain.get_envs().for_each(|(name, value)| {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        });
        let log = std::fs::File::create(house.path("hub.log")).expect("a file");
        let mut hub = limited.stdout(Stdio::piped()).stderr(log).spawn().expect("started");
        let mut lines = BufReader::new(hub.stdout.take().expect("piped")).lines();
        let mut json = || -> serde_json::Value {
            serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
        };
        assert!(json()["listening"].is_string());
        let invitation = json()["invitation"].as_str().expect("an invitation").to_owned();
        let attacked = Attacked { house, hub: Runs(hub), port };
        attacked.run(&["pair", &invitation, "--name", "desk"]);
        attacked.house.write("notes/one.md", b"# One\n");
        attacked.run(&["open", "notes"]);
        attacked.run(&["sync", "share", "notes", &format!("ws://127.0.0.1:{port}")]);
        attacked.honest("before");
        attacked
    }

    fn run(&self, words: &[&str]) {
        let done = finish(at_home(&self.house, "desk", words), b"");
        assert_eq!(done.code, 0, "{words:?}: {}{}{}", done.text(), done.err, self.log());
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&self.house.read("hub.log")).into_owned()
    }

    /// Asserts that a new note reaches the hub.
    fn honest(&self, name: &str) {
        let begun = Instant::now();
        self.house.write(&format!("notes/{name}.md"), format!("# {name}\n").as_bytes());
        self.run(&["sync", "now", "--for", "50"]);
        println!("{name}: synced after {:.1} s", begun.elapsed().as_secs_f64());
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connected");
        stream.set_write_timeout(Some(Duration::from_secs(60))).expect("set");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream
    }

    /// Opens a WebSocket at this path and sends the first `bytes` of a binary message of 60 MB.
    fn begun(&self, path: &str, bytes: usize) -> TcpStream {
        let mut stream = self.upgraded(path);
        // The hub may stop reading.
        stream.set_write_timeout(Some(Duration::from_secs(2))).expect("set");
        let mut frame = vec![0x82, 0xff];
        frame.extend(60_000_000_u64.to_be_bytes());
        frame.extend([0; 4]);
        let _ = stream.write_all(&frame);
        let piece = vec![7; 1 << 20];
        for _ in 0..bytes >> 20 {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        stream
    }

    /// Opens a WebSocket at this path.
    fn upgraded(&self, path: &str) -> TcpStream {
        let mut stream = self.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("answered");
        assert_eq!(&answer, b"HTTP/1.1 101");
        stream
    }

    /// The hub's resident memory in MB: current and peak.
    fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.hub.0.id())).expect("it runs");
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("told");
            line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_000
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn large_messages_before_a_key_is_proven_cost_nothing() {
    let attacked = Attacked::new(1_024, &[]);
    let (before, _) = attacked.memory();
    // At most 30 connections from one address are admitted to pairing per minute.
    for (path, count) in [("/device", 30), ("/pair", 25)] {
        let begun: Vec<TcpStream> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(|| attacked.begun(path, 58_000_000))).collect();
            threads.into_iter().map(|thread| thread.join().expect("sent")).collect()
        });
        attacked.honest(&format!("large{}", path.replace('/', "-")));
        let (_, most) = attacked.memory();
        println!("{before} MB before, at most {most} MB");
        assert!(most < before + 60, "{before} MB became {most} MB");
        drop(begun);
    }
}

#[test]
fn idle_connections_and_half_sent_heads_keep_nobody_out() {
    let attacked = Attacked::new(1_024, &[]);
    let mut idle: Vec<TcpStream> = (0..1_500).map(|_| attacked.connect()).collect();
    let begun = Instant::now();
    let mut half: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = attacked.connect();
            stream.write_all(b"GET /device HTTP/1.1\r\nHost: ").expect("sent");
            stream
        })
        .collect();
    let mut silent: Vec<TcpStream> = (0..20).map(|_| attacked.begun("/device", 0)).collect();
    attacked.honest("idle");
    // A client that keeps sending a little at a time.
    let mut slow = attacked.connect();
    slow.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    until("all of them are closed", Duration::from_secs(30), || {
        let _ = slow.write_all(b"X-Slow: 1\r\n");
        idle.iter_mut().chain(&mut half).chain(&mut silent).all(is_closed) && is_closed(&mut slow)
    });
    assert!(begun.elapsed() > Duration::from_secs(5), "an honest one has its time");
    attacked.honest("after");
    until("it is said", Duration::from_secs(15), || attacked.log().contains("closed without having proven a key"));
    // Meanwhile other clients keep connecting.
    let (stop, port) = (std::sync::atomic::AtomicBool::new(false), attacked.port);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = std::collections::VecDeque::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                kept.extend(TcpStream::connect(("127.0.0.1", port)));
                if kept.len() > 1_000 {
                    kept.pop_front();
                }
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        attacked.honest("meanwhile");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn unfinished_messages_of_those_who_were_let_in_are_bounded_too() {
    let attacked = Attacked::new(1_024, &["--open", "local"]);
    let begun: Vec<TcpStream> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..30).map(|_| scope.spawn(|| attacked.begun("/", 58_000_000))).collect();
        threads.into_iter().map(|thread| thread.join().expect("sent")).collect()
    });
    attacked.honest("meanwhile");
    let (now, most) = attacked.memory();
    println!("{now} MB, at most {most} MB");
    assert!(most < 700, "30 messages of 60 MB take {most} MB");
    drop(begun);
}

/// Sends a protocol message in a WebSocket frame, as a client does.
fn say(stream: &mut TcpStream, message: &WireMessage) -> std::io::Result<()> {
    let bytes = wire::encode(message);
    let mut frame = vec![0x82, 0xff];
    frame.extend((bytes.len() as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(bytes);
    stream.write_all(&frame)
}

#[test]
fn those_who_never_read_are_hung_up_on_and_take_no_memory() {
    /// The amount of data that each client would be sent, in MB.
    const SENT_TO_EACH: u64 = 300;
    let attacked = Attacked::new(1_024, &["--open", "local"]);
    let (before, _) = attacked.memory();
    let (doc, hub) = (DocId([5; 16]), PeerId("hub".to_owned()));
    let greeted = |name: &str| {
        let mut stream = attacked.upgraded("/");
        let sender = PeerId(name.to_owned());
        let join = WireMessage::Join { sender, versions: vec!["1".to_owned()], metadata: Default::default() };
        say(&mut stream, &join).expect("sent");
        stream
    };
    // One client sends a document; several request it and stop reading.
    let mut talks = greeted("talks");
    let mut volume = VolumeDoc::load(doc, &[], ActorId::from([6; 16])).expect("made").doc;
    let chunk = volume.commit(Some("looked at"), &[], 0).expect("a change");
    // An automerge sync message with one change; its length is LEB128.
    let mut brings =
        vec![0x42, 0, 0, 0, 1, u8::try_from(chunk.len()).ok().filter(|length| *length < 128).expect("short")];
    brings.extend(chunk);
    let sync = |name: &str, data: Vec<u8>| {
        let (sender, target) = (PeerId(name.to_owned()), hub.clone());
        WireMessage::Sync { sender, target, doc, data }
    };
    say(&mut talks, &sync("talks", brings)).expect("sent");
    let mut silent: Vec<TcpStream> = (0..5)
        .map(|number| {
            let name = format!("silent {number}");
            let mut stream = greeted(&name);
            say(&mut stream, &sync(&name, vec![0x42, 0, 0, 0, 0])).expect("sent");
            stream
        })
        .collect();
    attacked.honest("silent");
    for count in 1..=SENT_TO_EACH * 16 {
        let (sender, session) = (PeerId("talks".to_owned()), "one".to_owned());
        let data = vec![0x40; 62_500];
        let message = WireMessage::Ephemeral { sender, target: hub.clone(), count, session, doc, data };
        let said = say(&mut talks, &message);
        said.unwrap_or_else(|error| panic!("the hub takes nothing any more: {error}: {}", attacked.log()));
    }
    until("all of them are hung up on", Duration::from_secs(60), || silent.iter_mut().all(is_closed));
    assert!(attacked.log().contains("it doesn't receive what it's sent"), "{}", attacked.log());
    let (now, most) = attacked.memory();
    println!("{before} MB before, {now} MB, at most {most} MB");
    assert!(most < before + 800, "{before} MB became {most} MB");
    assert!(!is_closed(&mut talks), "who reads stays: {}", attacked.log());
    attacked.honest("after-silent");
}

#[test]
fn metrics_are_for_those_with_the_token() {
    let attacked = Attacked::new(1_024, &[]);
    let page = get(attacked.port, "/metrics").expect("answered");
    assert!(page.starts_with("HTTP/1.0 401") && !page.contains("tracebook_hub"), "{page}");
    assert!(page.contains("metrics-token"), "{page}");
    assert!(get(attacked.port, "/healthz").expect("answered").ends_with("\r\n\r\nok\n"));
    let token = String::from_utf8(attacked.house.read("H/metrics-token")).expect("text");
    let ask = |token: &str| {
        let mut stream = attacked.connect();
        write!(stream, "GET /metrics HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n").expect("asked");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("answered");
        page
    };
    assert!(ask(&token).contains("tracebook_hub_connected_total"));
    assert!(ask(&token.replace(&token[..1], "x")).starts_with("HTTP/1.0 401"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(attacked.house.path("H/metrics-token")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
