//! First syncs that are killed midway, several times, on the receiving and the sending side. At the end everything is
//! there once, unchanged, with what was typed meanwhile.

use super::{Hub, now};
use crate::program::{House, bytes, noise};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The number of notes: enough that their files are created in batches, and that kills fall in the middle of a sync.
const NOTES: u32 = 180;

/// A random generator that can be repeated: its seed is printed, and `TRACEBOOK_SEED` sets it.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        let given = std::env::var("TRACEBOOK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or(u64::from(now.subsec_nanos()) | 1);
        println!("TRACEBOOK_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// The volume's files: short and long notes, some with a cell, some alike, one empty; pictures.
fn volume() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..NOTES {
        let lines = [0, 1, 8, 120][number as usize % 4];
        let mut text = format!("# Note {number}\n");
        (0..lines).for_each(|line| text.push_str(&format!("\nLine {line} of note {number}, with ä.\n")));
        if number % 12 == 0 {
            text.push_str("\n```python\nprint(6 * 7)\n```\n");
        }
        let path = if number % 3 == 0 { format!("note {number}.md") } else { format!("at {}/{number}.md", number % 7) };
        files.insert(path, text.into_bytes());
    }
    files.insert("empty.md".to_owned(), Vec::new());
    for number in 0..6 {
        files.insert(format!("alike {number}.md"), b"The same text.\n".to_vec());
        files.insert(format!("pictures/{number}.png"), noise(number, 30_000));
    }
    files
}

/// Runs a command for this time and kills it, like a power cut. Returns `false` if it had ended before.
fn kill_after(mut command: Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    std::thread::sleep(time);
    let runs = child.try_wait().expect("looked at").is_none();
    if runs {
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
    runs
}

#[track_caller]
fn is_whole(one: &House, two: &House, expected: &BTreeMap<String, Vec<u8>>, from: &str) {
    for house in [one, two, one, two] {
        now(house);
    }
    for (name, house) in [("one", one), ("two", two)] {
        let mut found = bytes(&house.path("notes"));
        // Temporary files of a killed process are removed once they are a day old.
        found.retain(|path, _| !path.contains(".tracebook-"));
        let shown = |files: &BTreeMap<String, Vec<u8>>, others: &BTreeMap<String, Vec<u8>>| {
            files.keys().filter(|path| !others.contains_key(*path)).cloned().collect::<Vec<String>>()
        };
        let (missing, more) = (shown(expected, &found), shown(&found, expected));
        let differ: Vec<&String> = expected.keys().filter(|path| found.get(*path) != expected.get(*path)).collect();
        let log = house.run(&["sync", "log"]).text();
        assert!(
            missing.is_empty() && more.is_empty() && differ.is_empty(),
            "{from}, device {name}: missing {missing:?}, more {more:?}, other bytes {differ:?}\n{log}"
        );
        assert_eq!(house.run(&["trash"]).text(), "", "{from}, device {name}: nobody has deleted anything");
        house.run(&["fsck"]).code(0);
    }
}

/// A device with the volume, shared over a hub, and the shared address.
fn shared(files: &BTreeMap<String, Vec<u8>>) -> (House, Hub, String) {
    let house = House::new();
    files.iter().for_each(|(path, bytes)| house.write(&format!("notes/{path}"), bytes));
    house.run(&["open", "notes"]).good();
    let hub = Hub::new(&house);
    let address = house.json(&["sync", "share", "notes", &hub.at])["address"].as_str().expect("one").to_owned();
    (house, hub, address)
}

/// Types at the beginning of a note, and updates the expected files.
fn types(house: &House, files: &mut BTreeMap<String, Vec<u8>>, path: &str, word: &str) {
    house.edit(path, 0, 0, word);
    let text = files.get_mut(path).expect("there");
    text.splice(0..0, word.bytes());
}

/// The minimum number of kills in a test. How many fall into one sync depends on the machine's speed.
const KILLS: u32 = 6;
/// The maximum number of syncs in which that many kills must happen.
const SYNCS: u32 = 40;

#[test]
fn a_first_sync_whose_receiver_is_killed_again_and_again_is_whole() {
    let mut chance = Chance::new();
    let mut files = volume();
    let (one, _hub, address) = shared(&files);
    now(&one);
    let mut kills = 0;
    for sync in 0.. {
        assert!(sync < SYNCS, "{kills} kills");
        kills += receives(&mut chance, &one, &address, &mut files);
        println!("{kills} kills");
        if kills >= KILLS {
            break;
        }
    }
}

/// Syncs everything to a new device while killing it repeatedly. Returns the number of kills.
fn receives(chance: &mut Chance, one: &House, address: &str, files: &mut BTreeMap<String, Vec<u8>>) -> u32 {
    let two = House::new();
    two.run(&["init"]).good();
    let mut kills = 0;
    for round in 0..9 {
        let hubs = two.json(&["sync", "status"])["hubs"].as_array().map_or(0, Vec::len);
        let words: &[&str] = match hubs {
            0 => &["sync", "join", address, "notes", "--for", "60"],
            _ => &["sync", "now", "--for", "60"],
        };
        let time = Duration::from_millis(20 + chance.below(1_200));
        if !kill_after(two.command(words), time) && bytes(&two.path("notes")).len() == files.len() {
            break;
        }
        kills += 1;
        // New edits meet the interrupted sync.
        if round % 3 == 0 {
            types(one, files, &format!("note {}.md", round * 3), "Typed on one. ");
            now(one);
        }
    }
    is_whole(one, &two, files, "the receiver was killed");
    // No device takes the interruption for a rename or deletion by the other.
    let told = two.run(&["sync", "merges"]).text();
    assert!(!told.contains("deleted") && !told.contains("two devices") && !told.contains("renamed"), "{told}");
    kills
}

#[test]
fn a_first_sync_whose_sender_is_killed_again_and_again_is_whole() {
    let mut chance = Chance::new();
    let mut kills = 0;
    for sync in 0.. {
        assert!(sync < SYNCS, "{kills} kills");
        kills += sends(&mut chance);
        println!("{kills} kills");
        if kills >= KILLS {
            break;
        }
    }
}

/// Sends everything from a device while killing it repeatedly. Returns the number of kills.
fn sends(chance: &mut Chance) -> u32 {
    let mut files = volume();
    let (one, _hub, address) = shared(&files);
    let mut kills = 0;
    for round in 0..7 {
        let time = Duration::from_millis(20 + chance.below(900));
        kills += u32::from(kill_after(one.command(&["sync", "now", "--for", "60"]), time));
        if round % 3 == 0 {
            types(&one, &mut files, &format!("note {}.md", round * 3), "Typed between. ");
        }
    }
    now(&one);
    let two = House::new();
    two.run(&["init"]).good();
    two.run(&["sync", "join", &address, "notes", "--for", "60"]).good();
    is_whole(&one, &two, &files, "the sender was killed");
    kills
}

#[test]
fn a_first_sync_of_hundreds_of_notes_leaves_them_as_they_are() {
    let files = volume();
    let (one, _hub, address) = shared(&files);
    now(&one);
    let two = House::new();
    two.run(&["init"]).good();
    two.run(&["sync", "join", &address, "notes", "--for", "60"]).good();
    is_whole(&one, &two, &files, "nobody was killed");
    for house in [&one, &two] {
        assert_eq!(house.json(&["sync", "merges"]), serde_json::json!([]), "nobody has changed anything");
    }
}
