//! Sync through the program's binary: two devices and a hub between them. Each command is a separate process, so work
//! that isn't done when one ends is done by the next.

mod devices;
mod files;
mod git;
mod kills;
mod states;

use crate::program::{House, bytes};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use store::disk::{DiskReader, SqliteReader};
use support::hub_load::free_port;

struct Hub {
    child: Child,
    at: String,
    /// The hub's output, kept open as long as the hub writes.
    _out: BufReader<ChildStdout>,
}

impl Hub {
    /// Starts one on a port that nothing else gets while the hub is stopped.
    fn new(house: &House) -> Hub {
        Hub::at(house, &format!("127.0.0.1:{}", free_port().expect("a port")))
    }

    fn at(house: &House, listen: &str) -> Hub {
        let words = ["--json", "hub", "--folder", "H", "--listen", listen, "--open", "local"];
        let mut command = house.command(&words);
        command.env("TRACEBOOK_KEYRING", "off").env("HOME", house.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("started");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("a line");
        let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let at = said["listening"].as_str().expect("an address").to_owned();
        Hub { child, at, _out: out }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two devices that share a volume, each in a house of its own.
struct Two {
    _hub: Hub,
    one: House,
    two: House,
}

impl Two {
    fn new(files: &[(&str, &str)]) -> Two {
        let (one, two) = (House::with(files), House::new());
        let hub = Hub::new(&one);
        let address =
            one.json(&["sync", "share", "notes", &hub.at])["address"].as_str().expect("an address").to_owned();
        now(&one);
        two.run(&["init"]).good();
        two.run(&["sync", "join", &address, "notes", "--for", "50"]).good();
        let pair = Two { _hub: hub, one, two };
        pair.same();
        pair
    }

    /// Syncs both devices until both have everything.
    fn settle(&self) {
        for house in [&self.one, &self.two, &self.one, &self.two] {
            now(house);
        }
    }

    /// Pauses sync on both devices, so that they work apart.
    fn apart(&self) {
        for house in [&self.one, &self.two] {
            house.run(&["sync", "pause"]).good();
        }
    }

    fn together(&self) {
        for house in [&self.one, &self.two] {
            house.run(&["sync", "resume"]).good();
        }
        self.settle();
        self.settle();
    }

    fn same(&self) {
        let folders = [&self.one, &self.two].map(|house| {
            let mut files: Vec<(String, String)> = bytes(&house.path("notes"))
                .into_iter()
                .map(|(path, bytes)| (path, String::from_utf8(bytes).expect("text")))
                .collect();
            files.sort();
            files
        });
        assert_eq!(folders[0], folders[1], "log of the second: {}", self.two.run(&["sync", "log"]).text());
    }
}

fn now(house: &House) {
    let done = house.run(&["sync", "now", "--for", "50"]);
    assert_eq!(done.code, 0, "{}{}{}", done.text(), done.err, house.run(&["sync", "log"]).text());
}

const NOTES: &[(&str, &str)] = &[
    ("plan.md", "# Plan\n\nOne, two.\n\n```python\nprint(6 * 7)\n```\n\nThe end.\n"),
    ("shop.md", "Milk\n"),
    ("deep/er/todo.md", "- [ ] sleep\n"),
];

#[test]
fn a_volume_goes_from_one_device_to_another_and_edits_go_both_ways() {
    let both = Two::new(NOTES);
    // Each device edits what the other also edits; on one side another program does.
    both.one.write("notes/plan.md", b"# The plan\n\nOne, two.\n\n```python\nprint(6 * 7)\n```\n\nThe end.\n");
    both.two.edit("plan.md", "# Plan\n\nOne, two.".len() - 1, 0, ", three");
    both.two.run(&["new", "from/two.md"]).good();
    both.settle();
    both.same();
    let plan = String::from_utf8(both.two.cat("plan.md")).expect("text");
    assert!(plan.starts_with("# The plan\n\nOne, two, three."), "{plan}");
    // Each device can show what the other changed: the note before and after.
    let merges = both.one.json(&["sync", "merges"]);
    let plan = merges.as_array().expect("a list").iter().find(|one| one["path"] == "plan.md").expect("an entry");
    let number = plan["number"].to_string();
    let texts = both.one.json(&["sync", "merges", &number])["texts"].clone();
    let text = |which: &str| texts[which].as_str().expect("a text").to_owned();
    assert!(!text("before").contains(", three") && text("after").contains(", three"), "{texts}");
    let told = both.one.run(&["sync", "merges", &number]).good().text();
    assert!(told.contains("plan.md was changed on") && told.contains("+One, two, three."), "{told}");
    both.one.run(&["sync", "merges", "999"]).refused(2, "there is no change 999");
    let state = both.one.json(&["sync", "status", "plan.md"]);
    assert!(state["address"].as_str().is_some_and(|at| at.starts_with("automerge:")), "{state}");
    assert_eq!(state["heads"], both.two.json(&["sync", "status", "plan.md"])["heads"]);
    // A cell's output is visible on the other device.
    both.one.run(&["run", "plan.md"]).good();
    both.settle();
    let printed = both.two.run(&["outputs", "plan.md"]).good().text();
    assert!(printed.contains("42"), "{printed}");
}

#[test]
fn files_of_one_name_are_both_kept_and_renames_meet_edits() {
    let both = Two::new(NOTES);
    both.apart();
    both.one.run(&["new", "2026-11-22.md"]).good();
    both.one.edit("2026-11-22.md", 0, 0, "of one\n");
    both.two.run(&["new", "2026-11-22.md"]).good();
    both.two.edit("2026-11-22.md", 0, 0, "of two\n");
    both.one.run(&["mv", "shop.md", "lists/shopping.md"]).good();
    both.two.edit("shop.md", 4, 0, ", bread");
    both.together();
    both.same();
    let files = bytes(&both.one.path("notes"));
    let texts: Vec<&[u8]> =
        files.iter().filter(|(path, _)| path.starts_with("2026-11-22")).map(|(_, bytes)| bytes.as_slice()).collect();
    assert_eq!(texts.len(), 2, "{:?}", files.keys());
    let merges = [&both.one, &both.two].map(|house| house.run(&["sync", "merges"]).good().text());
    assert!(merges.iter().any(|told| told.contains("was made on two devices; both are kept")), "{merges:?}");
    assert!(merges[1].contains("lists/shopping.md was shop.md before it was renamed"), "{}", merges[1]);
    assert!(texts.contains(&b"of one\n".as_slice()) && texts.contains(&b"of two\n".as_slice()), "{texts:?}");
    assert_eq!(files.get("lists/shopping.md").map(Vec::as_slice), Some(b"Milk, bread\n".as_slice()));
}

#[test]
fn what_is_deleted_goes_to_the_trash_and_what_was_edited_meanwhile_stays() {
    let both = Two::new(NOTES);
    both.apart();
    both.one.run(&["rm", "shop.md"]).good();
    both.one.run(&["rm", "deep/er/todo.md"]).good();
    both.two.edit("deep/er/todo.md", 0, 0, "- [ ] eat\n");
    both.together();
    both.same();
    let files = bytes(&both.two.path("notes"));
    assert!(!files.contains_key("shop.md"), "{:?}", files.keys());
    assert!(both.two.run(&["trash"]).good().text().contains("shop.md"));
    let told = both.two.run(&["sync", "merges"]).good().text();
    assert!(told.contains("shop.md was deleted on another device; it is in the trash"), "{told}");
    assert!(told.contains("todo.md was deleted on another device and edited on this one; it stays"), "{told}");
    let todo = files.get("deep/er/todo.md").expect("it stays");
    assert_eq!(String::from_utf8_lossy(todo), "- [ ] eat\n- [ ] sleep\n");
}

#[test]
fn without_a_hub_work_goes_on_and_it_is_no_error() {
    let house = House::with(NOTES);
    house.run(&["sync", "share", "notes", "ws://127.0.0.1:1"]).good();
    house.edit("shop.md", 0, 0, "Bread\n");
    let status = house.json(&["sync", "status"]);
    assert!(["offline", "trying"].contains(&status["hubs"][0]["reach"].as_str().expect("a word")), "{status}");
    house.run(&["sync", "pause"]).good();
    assert_eq!(house.json(&["sync", "status"])["paused"], true);
    house.run(&["sync", "share", "notes", "http://x"]).refused(2, "ws://");
    house.run(&["sync", "join", "ws://127.0.0.1:1#automerge:nonsense", "w"]).refused(2, "address");
    house.run(&["sync", "leave", "notes"]).good();
    assert!(house.json(&["sync", "status"])["hubs"].as_array().expect("a list").is_empty());
}

#[test]
fn joining_says_for_which_hub_it_waits_and_why() {
    let (one, two) = (House::with(NOTES), House::new());
    let shared = one.json(&["sync", "share", "notes", "ws://127.0.0.1:1"]);
    let address = shared["address"].as_str().expect("an address");
    two.run(&["init"]).good();
    let joined = two.run(&["sync", "join", address, "notes", "--for", "1"]).code(1);
    assert!(joined.text().starts_with("Waiting for ws://127.0.0.1:1: "), "{}", joined.text());
    assert!(joined.err.contains("it has not all arrived yet (ws://127.0.0.1:1: "), "{}", joined.err);
}

/// All bytes below a folder, plus its database's documents in uncompressed form.
fn everything(folder: &std::path::Path) -> Vec<u8> {
    let mut all: Vec<u8> = bytes(folder).into_values().flatten().collect();
    let reader = SqliteReader::open(folder).expect("a database");
    for doc in reader.document_ids().expect("documents") {
        let chunks: Vec<Vec<u8>> = reader.chunks(doc).expect("chunks").into_iter().map(|chunk| chunk.bytes).collect();
        all.extend(automerge::Automerge::load(&chunks.concat()).expect("a document").save_nocompress());
    }
    all
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn what_was_said_and_done_goes_along_and_what_is_secret_does_not() {
    let both = Two::new(&[("plan.md", "planted-in-a-note\n")]);
    let (one, two) = (&both.one, &both.two);
    // What isn't synced: a key, the configuration, settings, another volume and its sessions.
    let secret = |words: &[&str], input: &[u8]| {
        let mut command = one.command(words);
        command.env("TRACEBOOK_KEYRING", "off");
        crate::program::finish(command, input).good();
    };
    secret(&["secrets", "set", "MY_KEY"], b"planted-as-a-key\n");
    one.write("W/config.yaml", b"llm:\n  default_provider: planted-in-the-configuration\n");
    // What is synced: a session with a run and its steps.
    let context = serde_json::json!({"version": 1, "savedAt": 5, "fileUri": "plan.md", "messages": [
        {"role": "user", "content": "planted-in-a-session"}, {"role": "assistant", "content": "yes"}]});
    let session = one.fed(&["sessions", "--import", "-"], context.to_string().as_bytes());
    let session = session.good().text().trim().to_owned();
    let state = serde_json::json!({"version": 1, "savedAt": 9, "fileUri": "plan.md", "prompt": "planted-in-a-run",
        "startTime": 6, "iteration": 1, "agentState": "idle", "todos": [],
        "steps": [{"timestamp": 7, "type": "final_answer", "content": "planted-in-a-step"}]});
    one.fed(&["runs", &session, "--import", "-"], state.to_string().as_bytes()).good();
    one.write("planted-private/own.md", b"planted-in-another-volume\n");
    one.run(&["open", "planted-private"]).good();
    both.settle();
    let sessions = two.run(&["sessions", "--json"]).good().lines();
    assert_eq!((sessions.len(), &sessions[0]["messages"]), (1, &serde_json::json!(2)), "{sessions:?}");
    let said = two.run(&["sessions", &session, "--export", "md"]).good().text();
    assert!(said.contains("planted-in-a-session"), "{said}");
    let runs = two.run(&["runs", "--json"]).good().lines();
    assert_eq!((runs.len(), &runs[0]["prompt"]), (1, &serde_json::json!("planted-in-a-run")));
    assert!(two.run(&["steps", "last", "--json"]).good().text().contains("planted-in-a-step"));
    // Neither the hub nor the other device has anything else.
    for folder in [one.path("H"), two.path("W")] {
        let all = everything(&folder);
        for word in ["planted-in-a-note", "planted-in-a-session", "planted-in-a-run", "planted-in-a-step"] {
            assert!(holds(&all, word), "{word} is not in {}", folder.display());
        }
        for word in ["planted-as-a-key", "planted-in-the-configuration", "planted-in-another-volume", "planted-private"]
        {
            assert!(!holds(&all, word), "{word} is in {}", folder.display());
        }
    }
}

#[test]
fn what_waits_for_a_hub_that_is_away_is_said_and_nothing_else() {
    let Two { _hub: hub, one, two } = Two::new(&[("plan.md", "# Plan\n"), ("other.md", "# Other\n")]);
    [&one, &two, &one].into_iter().for_each(now);
    let listen = hub.at.trim_start_matches("ws://").to_owned();
    drop(hub);
    let state = |words: &[&str]| one.run(&[&["sync", "status"], words].concat()).good().text();
    assert!(state(&[]).contains("\n  notes: All sent, hub last seen 20"), "{}", state(&[]));
    let volume = one.json(&["sync", "status"])["hubs"][0]["volumes"][0].clone();
    assert_eq!((&volume["state"], &volume["behind"]), (&"All sent".into(), &0.into()));
    assert!(volume["seen"].as_u64().is_some_and(|at| at > 1_700_000_000_000), "{volume}");
    // Asking for the state changes nothing, even during a failed call.
    one.run(&["sync", "now", "--for", "1"]).code(1);
    assert!(state(&["plan.md"]).starts_with("plan.md: All sent, hub last seen 20"), "{}", state(&["plan.md"]));
    one.edit("plan.md", 0, 0, "Later. ");
    assert!(state(&[]).contains("\n  notes: Saved here, not sent yet\n"), "{}", state(&[]));
    assert!(state(&["plan.md"]).starts_with("plan.md: Saved here, not sent yet\n"));
    assert!(state(&["other.md"]).starts_with("other.md: All sent, "));
    // Another program's edit also waits, once it has been noticed.
    one.write("notes/other.md", b"# Another\n");
    one.cat("other.md");
    crate::program::until("it waits", || state(&[]).contains("\n  notes: Saved here, 2 not sent yet\n"));
    // The state is the same after a kill and a restart.
    one.owner("plan.md").kill();
    assert!(state(&[]).contains("\n  notes: Saved here, 2 not sent yet\n"), "{}", state(&[]));
    // The hub is back, and everything is sent.
    let _hub = Hub::at(&one, &listen);
    now(&one);
    assert!(
        state(&[]).contains("\n  notes: All sent, ") || state(&[]).contains("notes: Saved here and sent"),
        "{}",
        state(&[])
    );
    now(&two);
    assert_eq!(two.read("notes/plan.md"), b"Later. # Plan\n");
}
