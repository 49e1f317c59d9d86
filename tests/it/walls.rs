//! What a cell may not do, tried for real: each fault is in a note of its own, run by the program as users run it.
//! Whatever the cell does, the program keeps running, the next cell runs, and the note's text and outputs stay.

mod guarded;
mod science;

use crate::line::states::science_pack;
use crate::program::{Done, House, finish};
use std::net::TcpListener;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A house whose note `try.md` runs in one of the kernels that confine cells.
struct WalledHouse {
    house: House,
    /// Where the science pack is installed, if cells run in the science kernel; `None`: in the instant one.
    pack: Option<PathBuf>,
}

impl Deref for WalledHouse {
    type Target = House;

    fn deref(&self) -> &House {
        &self.house
    }
}

impl WalledHouse {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.house.command(words);
        command.envs(self.pack.iter().map(|pack| ("TRACEBOOK_KERNELS", pack)));
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        finish(self.command(words), b"")
    }

    /// A note with one cell. Nothing is saved, so that each run begins with what is granted by then.
    fn note(&self, code: &str) -> String {
        let properties = if self.pack.is_some() { "---\nkernel: science\nstate: off\n---\n" } else { "" };
        format!("{properties}# Try\n\n```python\n{code}\n```\n")
    }
}

/// Runs `code` as a note's only cell, then a harmless note beside it. Returns the exit code and the printed text.
#[track_caller]
fn tried(house: &WalledHouse, code: &str, words: &[&str]) -> (i32, String) {
    let text = house.note(code);
    house.write("notes/try.md", text.as_bytes());
    let mut all = vec!["run", "try.md"];
    all.extend(words);
    let done = house.run(&all);
    let printed = format!("{}{}", String::from_utf8_lossy(&done.out), done.err);
    assert_eq!(house.read("notes/try.md"), text.as_bytes(), "the note is as it was");
    assert_eq!(house.run(&["run", "well.md"]).good().out, b"2\n", "the program lives on");
    house.run(&["fsck", "--check"]).good();
    (done.code, printed)
}

fn house() -> WalledHouse {
    let house = House::with(&[("try.md", "```python\n0\n```\n"), ("well.md", "```python\n1 + 1\n```\n")]);
    WalledHouse { house, pack: None }
}

/// A house with the science kernel; `None`, which the caller takes as skipped, where its pack isn't installed.
fn science_house() -> Option<WalledHouse> {
    Some(WalledHouse { pack: Some(science_pack()?), ..house() })
}

#[track_caller]
fn fails(house: &WalledHouse, code: &str, says: &str) {
    let (status, printed) = tried(house, code, &[]);
    assert!(status == 1 && printed.contains(says), "{code}\n{status}: {printed:.2000}");
}

#[test]
fn memory_has_an_end() {
    let house = house();
    fails(&house, "x = bytearray(10 * 1024 ** 3)", "MemoryError");
    fails(&house, "def deep(n): return deep(n + 1)\ndeep(0)", "RecursionError");
    let endless = "import sys\nsys.setrecursionlimit(10**9)\ndef deep(n): return deep(n + 1)\ndeep(0)";
    let (status, printed) = tried(&house, endless, &["--timeout", "300"]);
    assert!(
        status == 1 && printed.contains("RecursionError") && printed.contains("entries left out"),
        "{printed:.2000}"
    );
}

#[test]
fn a_process_that_ends_itself_ends_only_itself() {
    let house = house();
    fails(&house, "print('before', flush=True)\nimport os\nos._exit(0)", "the kernel's process ended");
    let kept = house.run(&["outputs", "try.md"]).good().text();
    assert!(kept.contains("before"), "{kept}");
    let kill = "import os, signal\nprint('x' * 100_000, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)";
    fails(&house, kill, "the kernel's process ended");
    fails(&house, "import os\nfor number in range(3, 256):\n    try: os.close(number)\n    except OSError: pass", "");
    let (status, printed) = tried(&house, "import sys, os\nsys.stdout.close()\nos.close(1)\nprint('still')", &[]);
    assert_eq!((status, printed.as_str()), (0, "still\n"));
}

#[test]
fn output_has_an_end() {
    let house = house();
    let (status, printed) = tried(&house, "for i in range(10_000_000): print(i)", &["--timeout", "20"]);
    assert!(printed.starts_with("0\n1\n2\n") && printed.contains("\n1000\n"), "{printed:.100}");
    assert!(printed.len() < 9 << 20, "{}", printed.len());
    let ended = printed.contains("output limit of 8 MiB") || printed.contains("TimeLimit");
    assert!(ended && matches!(status, 0 | 1), "{status}");
    let binary = "import sys\nprint(''.join(map(chr, range(256))))\nsys.stdout.buffer";
    fails(&house, binary, "AttributeError");
    let (status, printed) = tried(&house, "print(bytes(range(256)).decode('latin-1'))", &[]);
    assert!(status == 0 && printed.starts_with("\0\u{1}"), "{printed:?}");
}

#[test]
fn time_has_an_end() {
    let house = house();
    let (status, printed) = tried(&house, "kept = 1\nwhile True: pass", &["--timeout", "1"]);
    assert!(status == 1 && printed.contains("TimeLimit: stopped after 1 s"), "{printed}");
    let (status, printed) = tried(&house, "sum(range(10 ** 12))", &["--timeout", "1"]);
    assert!(status == 1 && printed.contains("TimeLimit: stopped after 1 s"), "{printed}");
    assert!(printed.contains("variables are gone"), "{printed}");
    let own = "# T\n\n```python timeout=1\nimport time\ntime.sleep(60)\n```\n";
    house.write("notes/own.md", own.as_bytes());
    let done = house.run(&["run", "own.md"]).code(1);
    assert!(done.text().contains("TimeLimit: stopped after 1 s"), "{done:?}");
}

/// Whether `doctor` reports this sandbox mechanism. Without Landlock or seccomp these tests can't hold.
fn has(house: &WalledHouse, wall: &str) -> bool {
    let offers = house.json(&["doctor"]);
    let found = offers.as_array().into_iter().flatten();
    let wall = found.into_iter().find(|offer| offer["area"] == "sandbox" && offer["name"] == wall);
    let there = wall.unwrap_or_else(|| panic!("doctor says nothing of it: {offers}"))["there"] == true;
    assert!(there || !crate::program::strict(), "no sandbox on this machine, and it is asked for");
    there
}

#[test]
fn no_file_outside_the_folder_is_reached() {
    let house = house();
    if !has(&house, "files") {
        return;
    }
    house.write(".ssh/id_ed25519", b"secret");
    house.write("beside.txt", b"mine");
    house.write("notes/data.csv", b"1,2\n");
    let secret = house.path(".ssh/id_ed25519");
    fails(&house, &format!("open({secret:?}).read()"), "PermissionError");
    fails(&house, "import os\nopen(os.path.expanduser('~/.ssh/id_ed25519')).read()", "only the folder of their note");
    fails(&house, "import os\nos.listdir('..')", "PermissionError");
    fails(&house, "open('../beside.txt', 'w')", "PermissionError");
    fails(&house, "import os\nos.symlink('../beside.txt', 'link')\nopen('link').read()", "PermissionError");
    fails(&house, "import os\nos.remove('../beside.txt')", "PermissionError");
    fails(&house, "open('/etc/passwd').read()", "PermissionError");
    fails(&house, "open('/tmp/tracebook-was-here', 'w')", "PermissionError");
    assert!(!Path::new("/tmp/tracebook-was-here").exists());
    assert_eq!(house.read("beside.txt"), b"mine");
    let well = "open('new.txt', 'w').write(open('data.csv').read())\nimport tempfile\n\
                with tempfile.TemporaryFile() as file: file.write(b'x')\nimport time\nimport mimetypes\n\
                time.localtime().tm_year > 2000 and mimetypes.guess_type('a.png') == ('image/png', None)";
    assert_eq!(tried(&house, well, &[]), (0, "True\n".to_owned()));
    assert_eq!(house.read("notes/new.txt"), b"1,2\n");
}

#[test]
fn a_note_in_the_home_folder_does_not_open_what_is_hidden_there() {
    try_a_note_in_the_home_folder(&house());
}

fn try_a_note_in_the_home_folder(house: &WalledHouse) {
    if !has(house, "files") {
        return;
    }
    house.write("notes/.ssh/id_ed25519", b"secret");
    house.write("notes/seen.txt", b"seen");
    let note = house.note("print(open('seen.txt').read())\nopen('.ssh/id_ed25519').read()");
    house.write("notes/try.md", note.as_bytes());
    let mut run = house.command(&["run", "try.md"]);
    run.env("HOME", house.path("notes"));
    let done = finish(run, b"").code(1);
    assert!(done.text().starts_with("seen\n") && done.text().contains("PermissionError"), "{done:?}");
}

#[test]
fn no_network_and_no_process_is_reached() {
    let house = house();
    if !has(&house, "network") || !has(&house, "processes") {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    fails(&house, &format!("import socket\nsocket.create_connection(('127.0.0.1', {port}))"), "PermissionError");
    fails(&house, "import socket\nsocket.socket(socket.AF_UNIX)", "no network");
    fails(&house, "import os\nwhile True: os.fork()", "PermissionError");
    fails(&house, "import subprocess\nsubprocess.run(['/bin/true'])", "PermissionError");
    fails(&house, "import os\nos.execv('/bin/true', ['true'])", "PermissionError");
    fails(&house, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "PermissionError");
    // Code that needs neither works: threads, and asyncio, which uses a socket pair internally.
    let well = "import threading, asyncio\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n\
                async def f():\n    await asyncio.sleep(0.01)\n    return 'done'\nasyncio.run(f())";
    assert_eq!(tried(&house, well, &[]), (0, "thread\n'done'\n".to_owned()));
}

/// Only the user can extend a note's sandbox, and can restore it.
#[test]
fn what_is_granted_is_reached_and_nothing_beside_it() {
    let house = house();
    house.write("data/in.txt", b"from outside");
    house.write("other/in.txt", b"not granted");
    let data = house.path("data").canonicalize().expect("there");
    let other = house.path("other").canonicalize().expect("there");
    let read = format!("open({:?}).read()", data.join("in.txt"));
    let write = format!("open({:?}, 'w').write('out')", data.join("out.txt"));
    fails(&house, &read, "cells reach only the folder of their note");
    let said = house.run(&["grant", "try.md", "--read", data.to_str().expect("text")]).good().text();
    assert!(said.contains("data (to read)"), "{said}");
    let (status, printed) = tried(&house, &read, &[]);
    assert_eq!((status, printed.as_str()), (0, "'from outside'\n"));
    fails(&house, &write, "and what was granted to it");
    fails(&house, &format!("open({:?}).read()", other.join("in.txt")), "and what was granted to it");
    house.write("notes/well2.md", format!("```python\n{read}\n```\n").as_bytes());
    house.run(&["run", "well2.md"]).code(1);
    house.run(&["grant", "try.md", "--write", data.to_str().expect("text")]).good();
    assert_eq!(tried(&house, &write, &[]).0, 0);
    assert_eq!(house.read("data/out.txt"), b"out");
    // The network is granted and then revoked.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("import socket\nsocket.create_connection(('127.0.0.1', {port}), 5).close()\n'met'");
    fails(&house, &connect, "Error");
    house.run(&["grant", "try.md", "--network"]).good();
    assert_eq!(tried(&house, &connect, &[]), (0, "'met'\n".to_owned()));
    let said = house.run(&["grant", "try.md", "--none"]).good().text();
    assert!(said.contains("nothing beyond its folder"), "{said}");
    fails(&house, &connect, "Error");
    fails(&house, &read, "cells reach only the folder of their note");
    for wrong in [&["--read", "/nowhere/at/all"][..], &["--none", "--network"], &["--read", "/"]] {
        let mut words = vec!["grant", "try.md"];
        words.extend(wrong);
        let done = house.run(&words);
        assert!(done.code != 0 && !done.err.is_empty(), "{wrong:?}");
    }
    assert!(house.run(&["grant", "try.md"]).good().text().contains("nothing beyond its folder"));
}
