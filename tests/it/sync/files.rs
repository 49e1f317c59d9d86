//! Files that devices exchange besides documents: pictures, other attachments, large outputs.

use super::{NOTES, Two, now};
use crate::line::agents::{Said, house, model};
use crate::program::{House, bytes, noise};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::hub_load::free_port;

const SOON: Duration = Duration::from_secs(60);

/// Asserts that the volume's files are the same on both devices, and returns them.
#[track_caller]
fn same(both: &Two) -> BTreeMap<String, Vec<u8>> {
    let folders = [&both.one, &both.two].map(|house| bytes(&house.path("notes")));
    let shown = |files: &BTreeMap<String, Vec<u8>>| {
        files.iter().map(|(path, bytes)| format!("{path} {}", bytes.len())).collect::<Vec<String>>()
    };
    let log = both.two.run(&["sync", "log"]).text();
    assert_eq!(shown(&folders[0]), shown(&folders[1]), "log of the second: {log}");
    assert!(folders[0] == folders[1], "names and lengths are the same, bytes are not: {log}");
    folders[0].clone()
}

#[test]
fn pictures_attachments_and_large_outputs_arrive_as_they_are() {
    let mut notes = NOTES.to_vec();
    notes.push(("loud.md", "![A cat](pictures/cat.png)\n\n```python\nprint('loud ' * 100_000)\n```\n"));
    let both = Two::new(&notes);
    let (cat, large) = (noise(1, 50_000), noise(2, 5_000_000));
    both.one.write("notes/pictures/cat.png", &cat);
    both.one.write("notes/data/large.bin", &large);
    both.one.write("notes/data/empty.bin", b"");
    // The same bytes under two names.
    both.one.write("notes/cat again.png", &cat);
    both.one.run(&["run", "loud.md"]).good();
    both.settle();
    let files = same(&both);
    assert!(files["pictures/cat.png"] == cat && files["data/large.bin"] == large);
    let outputs = [&both.one, &both.two].map(|house| bytes(&house.path("W/blobs")));
    assert!(!outputs[0].is_empty() && outputs[0] == outputs[1], "{:?}", outputs[1].keys());
    let hub = both.one.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    let all = serde_json::json!({"kept": true, "coming": 0, "there": 0, "going": 0, "refused": 0});
    assert_eq!(hub, all);
    // Nothing remains in transit.
    assert_eq!(on_its_way(&both.two.path("W")), 0);
    assert!(bytes(&both.two.path("W/coming")).is_empty(), "what lies in its place is not kept twice");
    // A picture changed on one device changes on both; a deleted file is in the trash.
    both.two.write("notes/pictures/cat.png", &noise(3, 60_000));
    std::fs::rename(both.one.path("notes/data/large.bin"), both.one.path("notes/data/larger.bin")).expect("renamed");
    std::fs::remove_file(both.one.path("notes/cat again.png")).expect("removed");
    both.settle();
    both.settle();
    let files = same(&both);
    assert!(files["pictures/cat.png"] == noise(3, 60_000) && files["data/larger.bin"] == large);
    assert!(!files.contains_key("cat again.png") && !files.contains_key("data/large.bin"));
}

#[test]
fn an_attachment_that_differs_here_is_never_written_over() {
    let both = Two::new(NOTES);
    both.one.write("notes/a.png", &noise(1, 1_000));
    both.settle();
    assert!(same(&both)["a.png"] == noise(1, 1_000));
    both.apart();
    both.one.write("notes/a.png", &noise(2, 2_000));
    both.two.write("notes/a.png", &noise(3, 3_000));
    // Both devices create a file with the same name and different bytes.
    both.one.write("notes/b.png", &noise(4, 4_000));
    both.two.write("notes/b.png", &noise(5, 5_000));
    both.together();
    both.settle();
    let files = same(&both);
    for (name, versions) in [("a", [noise(2, 2_000), noise(3, 3_000)]), ("b", [noise(4, 4_000), noise(5, 5_000)])] {
        let found: Vec<&Vec<u8>> =
            files.iter().filter(|(path, _)| path.starts_with(name)).map(|(_, bytes)| bytes).collect();
        assert_eq!(found.len(), 2, "{:?}", files.keys());
        assert!(versions.iter().all(|version| found.contains(&version)), "both are kept: {:?}", files.keys());
    }
}

/// A hub that can be killed and restarted at the same address.
struct Hub(Child, String, PathBuf);

impl Hub {
    fn start(house: &House, listen: &str, more: &[&str]) -> Hub {
        let words = ["--json", "hub", "--folder", "H", "--listen", listen, "--open", "local"];
        let mut command = house.command(&[&words, more].concat());
        command.env("TRACEBOOK_KEYRING", "off");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("a line");
        std::thread::spawn(move || out.read_to_end(&mut Vec::new()));
        let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address = said["listening"].as_str().expect("an address").to_owned();
        Hub(child, address, house.path("H/metrics-token"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("ended");
    }

    /// The number of bytes that the hub has received since it started.
    fn received(&self) -> u64 {
        let at = self.1.trim_start_matches("ws://");
        let mut way = TcpStream::connect(at).expect("there");
        let token = String::from_utf8(std::fs::read(&self.2).expect("a token")).expect("text");
        let head = format!("GET /metrics HTTP/1.0\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\r\n");
        way.write_all(head.as_bytes()).expect("asked");
        let mut page = String::new();
        way.read_to_string(&mut page).expect("a page");
        let line = page.lines().find_map(|line| line.strip_prefix("tracebook_hub_received_bytes_total "));
        line.expect("counted").trim().parse().expect("a number")
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The total size of partially transferred files below a folder, in bytes.
fn on_its_way(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => on_its_way(&entry.path()),
        Ok(meta) if entry.path().extension().is_some_and(|ending| ending == "part") => meta.len(),
        Ok(_) | Err(_) => 0,
    };
    entries.map(size).sum()
}

#[test]
fn a_connection_that_is_cut_goes_on_where_it_was() {
    let (one, two) = (House::with(NOTES), House::new());
    let listen = format!("127.0.0.1:{}", free_port().expect("a port"));
    let mut hub = Hub::start(&one, &listen, &[]);
    let at = hub.1.clone();
    let address = one.json(&["sync", "share", "notes", &at])["address"].as_str().expect("an address").to_owned();
    now(&one);
    let large = noise(1, 60_000_000);
    one.write("notes/large.bin", &large);
    let begun = Instant::now();
    let mut sending = one.command(&["sync", "now", "--for", "50"]).spawn().expect("started");
    while on_its_way(&one.path("H/volumes")) < 4_000_000 {
        assert!(begun.elapsed() < SOON, "it is on its way");
        std::thread::sleep(Duration::from_millis(5));
    }
    hub.kill();
    let had = on_its_way(&one.path("H/volumes"));
    assert!(had < large.len() as u64, "it was cut");
    hub = Hub::start(&one, &listen, &[]);
    assert!(sending.wait().expect("ended").success(), "{}", one.run(&["sync", "log"]).text());
    let received = hub.received();
    assert!(received < large.len() as u64 - had + 4_000_000, "{received} bytes came, {had} were there");
    // The other direction, interrupted by the end of the device's own process.
    two.run(&["init"]).good();
    let mut joining = two.command(&["sync", "join", &address, "notes", "--for", "50"]).spawn().expect("started");
    while on_its_way(&two.path("W/coming")) < 4_000_000 {
        assert!(begun.elapsed() < 3 * SOON, "it is on its way back");
        std::thread::sleep(Duration::from_millis(5));
    }
    joining.kill().expect("killed");
    joining.wait().expect("ended");
    let had = on_its_way(&two.path("W/coming"));
    assert!(had < large.len() as u64 && !two.path("notes/large.bin").exists(), "it was cut");
    two.run(&["sync", "now", "--for", "50"]).good();
    assert!(two.read("notes/large.bin") == large, "{}", two.run(&["sync", "log"]).text());
}

/// A second device that shares `notes` with the first over the hub.
fn second(one: &House, hub: &str) -> House {
    let two = House::new();
    let address = one.json(&["sync", "share", "notes", hub])["address"].as_str().expect("an address").to_owned();
    now(one);
    two.run(&["init"]).good();
    two.run(&["sync", "join", &address, "notes", "--for", "50"]).good();
    now(&two);
    two
}

#[test]
fn plots_and_what_runs_name_follow_too() {
    let script = |turn: usize, _: &serde_json::Value| -> Said {
        match turn {
            0 => {
                let write = serde_json::json!({"path": "data.csv", "content": "a,b\n1,2\n"});
                let count = serde_json::json!({"command": "seq 1 9000"});
                (String::new(), vec![("write_file", write), ("shell", count)])
            }
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let code = "import matplotlib.pyplot as plt\nplt.plot([x * 0.37 % 11 for x in range(60_000)])";
    let plot = format!("# A plot\n\n```python\n{code}\n```\n");
    let one = house(&model(script), &[("plot.md", &plot)]);
    one.run(&["run", "plot.md"]).good();
    one.run(&["ask", "count", "--approve", "shell: seq *", "--approve", "write_file"]).good();
    let told = one.run(&["steps", "last", "--whole"]).good().text();
    assert!(told.contains("\n4500\n4501\n") && told.contains("\n9000\n"), "all of it: {} bytes", told.len());
    assert!(!one.run(&["steps", "last"]).good().text().contains("\n4500\n"), "otherwise its beginning");
    let hub = Hub::start(&one, "127.0.0.1:0", &[]);
    let two = second(&one, &hub.1);
    // The plot, the tool's output, and the file that the run made.
    let blobs = [&one, &two].map(|device| bytes(&device.path("W/blobs")));
    assert!(blobs[0].len() >= 3 && blobs[0] == blobs[1], "{:?}, {:?}", blobs[0].keys(), blobs[1].keys());
    assert_eq!(two.run(&["steps", "last", "--whole"]).good().text(), told);
    let saved = [&one, &two].map(|device| {
        device.run(&["outputs", "plot.md", "--save", "saved"]).good();
        bytes(&device.path("saved"))
    });
    assert!(!saved[0].is_empty() && saved[0] == saved[1], "{:?}", saved[1].keys());
    assert_eq!(two.read("notes/data.csv"), b"a,b\n1,2\n");
    // Blobs that a run refers to later are synced as well.
    one.run(&["ask", "count again", "--approve", "shell: seq *", "--approve", "write_file"]).good();
    now(&one);
    now(&two);
    let blobs = [&one, &two].map(|device| bytes(&device.path("W/blobs")));
    assert!(blobs[0] == blobs[1], "{:?}, {:?}", blobs[0].keys(), blobs[1].keys());
}

/// A hub deletes nothing by itself. Of what its owner deletes, devices send again what they still share.
#[test]
fn files_deleted_at_a_hub_come_again_from_devices_that_have_them() {
    let Two { _hub: hub, one, two } = Two::new(NOTES);
    one.write("notes/seen.png", &noise(9, 5_000));
    [&one, &two, &one].into_iter().for_each(now);
    let folder = one.path("H/volumes");
    let kept = || bytes(&folder).into_values().collect::<Vec<_>>();
    assert!(kept() == [noise(9, 5_000)], "{:?}", bytes(&folder).keys());
    let listen = hub.at.trim_start_matches("ws://").to_owned();
    drop(hub);
    std::fs::remove_dir_all(&folder).expect("deleted");
    let _hub = super::Hub::at(&one, &listen);
    [&one, &two, &one].into_iter().for_each(now);
    assert!(kept() == [noise(9, 5_000)], "{:?}", bytes(&folder).keys());
}

#[test]
fn hidden_files_stay_where_they_are() {
    let both = Two::new(NOTES);
    let hidden = [".env", "deep/.key.bin", ".private/photo.png"];
    for (at, path) in hidden.iter().enumerate() {
        both.one.write(&format!("notes/{path}"), &noise(at as u8, 5_000));
    }
    both.one.write("notes/seen.png", &noise(9, 5_000));
    both.two.write("notes/.env", &noise(8, 4_000));
    both.settle();
    both.settle();
    assert!(both.two.read("notes/seen.png") == noise(9, 5_000));
    assert!(both.two.read("notes/.env") == noise(8, 4_000) && both.one.read("notes/.env") == noise(0, 5_000));
    assert!(!both.two.path("notes/deep/.key.bin").exists() && !both.two.path("notes/.private").exists());
    let kept = bytes(&both.one.path("H/volumes"));
    assert_eq!(kept.len(), 1, "the hub has the one that is not hidden: {:?}", kept.keys());
    let files = both.two.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    assert_eq!((&files["coming"], &files["refused"]), (&0.into(), &0.into()), "nothing is waited for: {files}");
}

#[test]
fn a_file_that_another_device_hides_stays_as_it_is_here() {
    let both = Two::new(NOTES);
    both.one.write("notes/letter.bin", b"gitdir: pictures\n");
    both.settle();
    assert!(both.two.path("notes/letter.bin").exists());
    std::fs::rename(both.one.path("notes/letter.bin"), both.one.path("notes/.git")).expect("renamed");
    both.settle();
    both.settle();
    assert!(!both.two.path("notes/.git").exists(), "git would take the folder for a repository");
    assert!(both.two.path("notes/letter.bin").exists());
}

#[test]
fn a_hub_without_room_says_so_and_notes_are_unharmed() {
    let (one, two) = (House::with(NOTES), House::new());
    let hub = Hub::start(&one, "127.0.0.1:0", &["--quota", "2"]);
    let address = one.json(&["sync", "share", "notes", &hub.1])["address"].as_str().expect("an address").to_owned();
    one.write("notes/small.png", &noise(1, 10_000));
    one.write("notes/large.bin", &noise(2, 3_000_000));
    now(&one);
    let files = one.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    assert_eq!((&files["refused"], &files["going"]), (&1.into(), &0.into()), "{files}");
    let log = one.run(&["sync", "log"]).text();
    assert!(log.contains("are not taken: no room is left"), "{log}");
    two.run(&["init"]).good();
    two.run(&["sync", "join", &address, "notes", "--for", "50"]).good();
    two.run(&["sync", "now", "--for", "50"]).good();
    assert!(two.read("notes/small.png") == noise(1, 10_000) && !two.path("notes/large.bin").exists());
    let files = two.json(&["sync", "now", "--for", "50"])["hubs"][0]["files"].clone();
    assert_eq!((&files["coming"], &files["there"]), (&1.into(), &0.into()), "it is known to be missing: {files}");
}
