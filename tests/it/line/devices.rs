//! `hub`, `pair`, `devices`: machines that pair, each with a home of its own, and one that is revoked.

use crate::program::{House, finish};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use support::hub_load::free_port;

/// The program as on another machine: with its own home and no keyring.
fn at_home(house: &House, home: &str, words: &[&str]) -> Command {
    let mut command = house.command(words);
    std::fs::create_dir_all(house.path(home)).expect("a home");
    command.env("HOME", house.path(home)).env("TRACEBOOK_KEYRING", "off").env_remove("TRACEBOOK_DEVICE_KEY");
    command.env_remove("TRACEBOOK_HUB_KEY").env_remove("TRACEBOOK_PASSPHRASE");
    command
}

fn json(house: &House, home: &str, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let done = finish(at_home(house, home, &words), b"");
    assert_eq!(done.code, 0, "{}", done.err);
    done.json()
}

/// A running process and the lines that it prints. Killed on drop.
struct Runs {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Runs {
    fn new(house: &House, home: &str, words: &[&str]) -> Runs {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let mut command = at_home(house, home, &words);
        let mut child = command.stderr(Stdio::inherit()).spawn().expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Runs { child, lines }
    }

    fn json(&mut self) -> Value {
        let line = self.lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends SIGTERM, as the system does, and asserts a clean exit.
    fn end(mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().expect("asked");
        assert!(asked.success());
        assert!(self.child.wait().expect("ended").success(), "it ends well");
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn names(list: &Value) -> Vec<(String, bool)> {
    let devices = list["devices"].as_array().expect("a list").iter();
    let name = |device: &Value| device["name"].as_str().expect("a name").to_owned();
    let mut names: Vec<_> = devices.map(|device| (name(device), device["revoked"].is_null())).collect();
    names.sort();
    names
}

#[test]
fn a_hub_gets_acquainted_with_two_devices_and_one_revokes_the_other() {
    let house = House::new();
    let hub = ["hub", "--folder", "H", "--listen", "127.0.0.1:0", "--name", "the hub", "--tls"];
    let mut running = Runs::new(&house, "server", &hub);
    let at = running.json()["listening"].as_str().expect("an address").to_owned();
    assert!(at.starts_with("wss://127.0.0.1:"), "{at}");
    // The first start prints a code for the device that may change the device list.
    let invitation = running.json()["invitation"].as_str().expect("an invitation").to_owned();
    let paired = json(&house, "desk", &["pair", &invitation, "--name", "desk"]);
    assert_eq!((&paired["name"], &paired["address"]), (&"the hub".into(), &at.as_str().into()));
    assert_eq!(paired["rights"], serde_json::json!({"access": "write", "admin": true}));
    // Another device gets a code that was requested next to the running hub.
    let offered = json(&house, "server", &["hub", "invite", "--folder", "H", "--access", "read"]);
    assert_eq!(offered["rights"], serde_json::json!({"access": "read", "admin": false}));
    // An invitation that promises more than the hub grants pairs nobody.
    let more = offered["invitation"].as_str().expect("an invitation").replace("may=read", "may=write,admin");
    let refused = finish(at_home(&house, "greedy", &["pair", &more, "--name", "greedy"]), b"");
    refused.refused(1, "may read and write, and change the list of devices");
    assert!(names(&json(&house, "greedy", &["devices"])).is_empty());
    json(&house, "server", &["devices", "revoke", "greedy", "--hub", "H"]);
    let offered = json(&house, "server", &["hub", "invite", "--folder", "H", "--access", "read"]);
    let code = offered["code"].as_str().expect("a code");
    assert!(offered["invitation"].as_str().expect("an invitation").ends_with("&may=read"), "{offered}");
    let wrong = if code.starts_with('1') { "2222-2222" } else { "1111-1111" };
    finish(at_home(&house, "phone", &["pair", &at, "--code", wrong]), b"")
        .refused(1, "the code is wrong; 4 more tries");
    let met = json(&house, "phone", &["pair", &at, "--code", code, "--name", "phone"]);
    assert_eq!(met["rights"], serde_json::json!({"access": "read", "admin": false}));
    let list = json(&house, "server", &["devices", "--hub", "H"]);
    let all = [("desk".to_owned(), true), ("greedy".to_owned(), false), ("phone".to_owned(), true)];
    assert_eq!(names(&list), all);
    let phone = list["devices"].as_array().expect("a list").iter().find(|one| one["name"] == "phone").expect("there");
    assert_eq!((&phone["access"], &phone["admin"]), (&"read".into(), &false.into()));
    assert_eq!(names(&json(&house, "phone", &["devices"])), [("phone".to_owned(), true), ("the hub".to_owned(), true)]);
    // The desk doesn't know the phone's name, but the hub does, so it's revoked there.
    let done = finish(at_home(&house, "server", &["devices", "revoke", "phone", "--hub", "H"]), b"").good();
    assert!(done.text().contains("It keeps what it has already received"), "{}", done.text());
    // The desk may revoke, too, and its request reaches the hub.
    let third = json(&house, "server", &["hub", "invite", "--folder", "H"])["code"].clone();
    json(&house, "tablet", &["pair", &at, "--code", third.as_str().expect("a code"), "--name", "tablet"]);
    let keys = json(&house, "server", &["devices", "--hub", "H"]);
    assert_eq!(names(&keys)[2..], [("phone".to_owned(), false), ("tablet".to_owned(), true)]);
    // Private keys are in no list, no output, and no file except the encrypted one.
    for home in ["desk", "phone", "server"] {
        for (path, bytes) in crate::program::bytes(&house.path(home)) {
            assert!(!String::from_utf8_lossy(&bytes).contains("PRIVATE KEY"), "{path}");
        }
    }
    running.end();
    finish(at_home(&house, "server", &["hub", "invite", "--folder", "H"]), b"")
        .refused(2, "no hub runs over this folder");
    finish(at_home(&house, "phone", &["pair", &at, "--code", "1234-5678"]), b"").refused(1, "the hub is not there");
}

#[test]
fn two_machines_pair_without_any_server() {
    let house = House::new();
    let mut offers = Runs::new(&house, "desk", &["pair", "--local", "--name", "desk"]);
    let shown = offers.json();
    let invitation = shown["invitation"].as_str().expect("an invitation").to_owned();
    assert!(invitation.starts_with("tracebook:pair?at=lan@127.0.0.1:"), "{invitation}");
    let met = json(&house, "phone", &["pair", &invitation, "--name", "phone"]);
    assert_eq!(met["name"], "desk");
    assert_eq!(offers.json()["name"], "phone");
    for home in ["desk", "phone"] {
        assert_eq!(names(&json(&house, home, &["devices"])), [("desk".to_owned(), true), ("phone".to_owned(), true)]);
    }
    json(&house, "desk", &["devices", "revoke", "phone"]);
    assert_eq!(names(&json(&house, "desk", &["devices"]))[1], ("phone".to_owned(), false));
    let own = finish(at_home(&house, "desk", &["devices", "revoke", "desk"]), b"");
    own.refused(2, "this device cannot revoke itself");
    finish(at_home(&house, "desk", &["devices", "revoke", "nobody"]), b"").refused(2, "there is no device “nobody”");
    finish(at_home(&house, "desk", &["pair", "--code", "12"]), b"").refused(1, "a code has eight digits");
}

#[test]
fn a_hub_that_would_be_open_to_all_is_refused() {
    let house = House::new();
    let refused = |words: &[&str], code, about: &str| {
        finish(at_home(&house, "server", words), b"").refused(code, about);
    };
    refused(&["hub", "--open", "all"], 2, "--open wants local or token");
    refused(&["hub", "--open", "token"], 2, "TRACEBOOK_HUB_TOKEN");
    refused(&["hub", "--store", "postgres://x"], 2, "--store wants sqlite or nats://");
    refused(&["hub", "--certificate", "a.pem"], 2, "come together");
    refused(&["hub", "stop"], 2, "run, invite, share");
    refused(&["hub", "share", "all", "everything"], 2, "none, read or write");
    refused(&["devices", "sell"], 2, "list, revoke, name, access");
    refused(&["pair", "wss://127.0.0.1:1"], 2, "--code");
    finish(at_home(&house, "server", &["hub", "share", "all", "read", "--folder", "."]), b"").good();
    assert_eq!(json(&house, "server", &["hub", "share", "--folder", "."])["default"], "read");
}

/// A hub with TLS that the desk is paired with, and its address.
fn hub_with_desk(house: &House) -> (Runs, String) {
    let hub = ["hub", "--folder", "H", "--listen", "127.0.0.1:0", "--name", "the hub", "--tls"];
    let mut running = Runs::new(house, "server", &hub);
    let at = running.json()["listening"].as_str().expect("an address").to_owned();
    let invitation = running.json()["invitation"].as_str().expect("an invitation").to_owned();
    json(house, "desk", &["pair", &invitation, "--name", "desk"]);
    (running, at)
}

#[test]
fn paired_machines_share_a_volume_over_the_hub_and_strangers_do_not() {
    let house = House::new();
    let (running, at) = hub_with_desk(&house);
    let code = json(&house, "server", &["hub", "invite", "--folder", "H"])["code"].clone();
    json(&house, "phone", &["pair", &at, "--code", code.as_str().expect("a code"), "--name", "phone"]);
    house.write("notes/one.md", b"# One\n\nwritten at the desk\n");
    let run = |home: &str, words: &[&str]| {
        let workspace = format!("W-{home}");
        let words: Vec<&str> = ["--workspace", &workspace].into_iter().chain(words.iter().copied()).collect();
        finish(at_home(&house, home, &words), b"")
    };
    run("desk", &["open", "notes"]).code(0);
    let address = run("desk", &["sync", "share", "notes", &at]).code(0).text().trim().to_owned();
    run("desk", &["sync", "now"]).code(0);
    for home in ["phone", "stranger"] {
        run(home, &["init"]).code(0);
    }
    run("phone", &["sync", "join", &address, "phone-notes"]).code(0);
    assert_eq!(house.read("phone-notes/one.md"), house.read("notes/one.md"));
    // A device that knows the address but has no accepted key gets nothing.
    run("stranger", &["sync", "join", &address, "stranger-notes", "--for", "3"]).code(1);
    assert!(!house.path("stranger-notes/one.md").exists());
    // Once revoked, the phone doesn't get what is written afterwards.
    json(&house, "server", &["devices", "revoke", "phone", "--hub", "H"]);
    house.write("notes/two.md", b"# Two\n");
    run("desk", &["sync", "now"]).code(0);
    run("phone", &["sync", "now", "--for", "3"]).code(1);
    assert!(!house.path("phone-notes/two.md").exists());
    running.end();
}

#[test]
fn two_paired_machines_share_a_volume_without_any_hub_until_one_is_revoked() {
    let house = House::new();
    let mut offers = Runs::new(&house, "desk", &["pair", "--local", "--name", "desk"]);
    let invitation = offers.json()["invitation"].as_str().expect("an invitation").to_owned();
    json(&house, "phone", &["pair", &invitation, "--name", "phone"]);
    offers.json();
    drop(offers);
    // Discovery doesn't work on loopback, so `TRACEBOOK_LAN` gives each device the other's address.
    let [desk_at, phone_at] = [0, 1].map(|_| format!("127.0.0.1:{}", free_port().expect("a port")));
    let command = |home: &str, words: &[&str]| {
        let workspace = format!("W-{home}");
        let words: Vec<&str> = ["--workspace", &workspace].into_iter().chain(words.iter().copied()).collect();
        let mut command = at_home(&house, home, &words);
        let lan = if home == "desk" { format!("{desk_at},{phone_at}") } else { format!("{phone_at},{desk_at}") };
        command.env("TRACEBOOK_LAN", lan);
        command
    };
    let run = |home: &str, words: &[&str]| finish(command(home, words), b"");
    house.write("notes/one.md", b"# One\n\nwritten at the desk\n");
    let picture = |seed: u32| (0..300_000_u32).map(|at| (at.wrapping_mul(seed) >> 13) as u8).collect::<Vec<u8>>();
    house.write("notes/pictures/cat.png", &picture(2_654_435_761));
    run("desk", &["open", "notes"]).code(0);
    let address = run("desk", &["sync", "share", "notes", "lan"]).code(0).text().trim().to_owned();
    assert!(address.starts_with("lan:#automerge:"), "{address}");
    // The desk keeps running, as with an open window.
    let mut stays = command("desk", &["edit", "one.md"]).spawn().expect("started");
    run("phone", &["init"]).code(0);
    let joined = run("phone", &["sync", "join", &address, "phone-notes", "--for", "50"]);
    assert_eq!(joined.code, 0, "{}{}{}", joined.text(), joined.err, run("desk", &["sync", "log"]).text());
    assert_eq!(house.read("phone-notes/one.md"), house.read("notes/one.md"));
    // An edit from the phone reaches the desk.
    house.write("phone-notes/two.md", b"# Two\n");
    run("phone", &["sync", "now", "--for", "50"]).code(0);
    crate::program::until("it has come to the desk", || house.path("notes/two.md").exists());
    // The phone has sent everything and waits for no hub, since a local network has none.
    let state = run("phone", &["sync", "status"]).code(0).text();
    assert!(state.starts_with("The local network: "), "{state}");
    assert!(state.contains("notes: All sent, others last seen 20") && !state.contains("hub last"), "{state}");
    // Pictures are exchanged, too.
    assert!(house.read("phone-notes/pictures/cat.png") == picture(2_654_435_761));
    house.write("phone-notes/dog.png", &picture(2_246_822_519));
    let mut also = command("phone", &["edit", "one.md"]).spawn().expect("started");
    crate::program::until("it has come to the desk", || house.path("notes/dog.png").exists());
    assert!(house.read("notes/dog.png") == picture(2_246_822_519));
    drop(also.stdin.take());
    also.wait().expect("ended");
    // The code is no longer offered, and the desk says so.
    let (_, rest) = invitation.split_once("&code=").expect("a code");
    let late = format!("tracebook:pair?at=lan@{desk_at}&code={rest}");
    let refused = "nothing is paired here now; ask for a code on that device";
    finish(at_home(&house, "stranger", &["pair", &late]), b"").refused(1, refused);
    // A revoked device gets nothing more.
    json(&house, "desk", &["devices", "revoke", "phone"]);
    crate::program::until("the desk refuses it", || run("phone", &["sync", "now", "--for", "2"]).code == 1);
    house.write("notes/three.md", b"# Three\n");
    run("desk", &["ls"]).code(0);
    run("phone", &["sync", "now", "--for", "2"]).code(1);
    assert!(!house.path("phone-notes/three.md").exists());
    drop(stays.stdin.take());
    stays.wait().expect("ended");
}

#[test]
fn who_is_refused_learns_why_and_the_rest_is_unharmed() {
    let house = House::new();
    let (running, at) = hub_with_desk(&house);
    let invite = |words: &[&str]| {
        let words: Vec<&str> = ["hub", "invite", "--folder", "H"].into_iter().chain(words.iter().copied()).collect();
        json(&house, "server", &words)["code"].as_str().expect("a code").to_owned()
    };
    let run = |home: &str, words: &[&str]| {
        let workspace = format!("W-{home}");
        let words: Vec<&str> = ["--workspace", &workspace].into_iter().chain(words.iter().copied()).collect();
        finish(at_home(&house, home, &words), b"")
    };
    // After five wrong codes, the right one is invalid.
    let code = invite(&[]);
    let wrong = if code.starts_with('1') { "2222-2222" } else { "1111-1111" };
    for left in ["4 more tries", "3 more tries", "2 more tries", "one more try", "the code is wrong"] {
        run("phone", &["pair", &at, "--code", wrong]).refused(1, left);
    }
    run("phone", &["pair", &at, "--code", &code]).refused(1, "tried too often");
    house.write("notes/one.md", b"# One\n");
    run("desk", &["open", "notes"]).code(0);
    let address = run("desk", &["sync", "share", "notes", &at]).code(0).text().trim().to_owned();
    run("desk", &["sync", "now"]).code(0);
    // The hub doesn't know its key: it gets nothing, and its log says why.
    run("phone", &["init"]).code(0);
    run("phone", &["sync", "join", &address, "phone-notes", "--for", "3"]).code(1);
    let logs = |words: &str| {
        let is_logged = || run("phone", &["sync", "log"]).code(0).text().contains(words);
        crate::program::until(words, || {
            is_logged() || {
                run("phone", &["sync", "now", "--for", "3"]).code(1);
                is_logged()
            }
        });
    };
    logs(&format!("{at} can't be reached ("));
    assert!(!house.path("phone-notes/one.md").exists());
    // What a device with read access writes stays on that device.
    let code = invite(&["--access", "read"]);
    json(&house, "phone", &["pair", &at, "--code", &code, "--name", "phone"]);
    run("phone", &["sync", "retry"]).code(0);
    run("phone", &["sync", "now"]).code(0);
    assert_eq!(house.read("phone-notes/one.md"), b"# One\n");
    let edit = b"{\"at\":0,\"delete\":0,\"insert\":\"mine \"}\n";
    finish(at_home(&house, "phone", &["--workspace", "W-phone", "edit", "one.md"]), edit).code(0);
    run("phone", &["sync", "now", "--for", "4"]).code(1);
    run("desk", &["sync", "now"]).code(0);
    assert_eq!(house.read("notes/one.md"), b"# One\n", "nobody gets what a reader writes");
    let state = finish(at_home(&house, "phone", &["--workspace", "W-phone", "sync", "status"]), b"").code(0).text();
    assert!(state.contains("not sent yet") || state.contains("offline") || state.contains("trying"), "{state}");
    // A revoked device gets no later changes, and its log says why.
    json(&house, "server", &["devices", "revoke", "phone", "--hub", "H"]);
    house.write("notes/two.md", b"# Two\n");
    run("desk", &["sync", "now"]).code(0);
    run("phone", &["sync", "now", "--for", "3"]).code(1);
    logs("this device was revoked");
    assert!(!house.path("phone-notes/two.md").exists());
    assert_eq!(house.read("notes/one.md"), b"# One\n");
    running.end();
}
