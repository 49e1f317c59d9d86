//! A recorded trace of two people typing into one text at the same time, replayed on two devices with a hub between
//! them that are sometimes offline: the final text is the recorded one.

use crate::program::{is_nightly, shared, strict};
use engine::{Command, Session, SyncStatus};
use host::hub::{HubServer, HubSettings, OpenAccess};
use host::peers::DeviceKey;
use host::{Driver, WorkspaceOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::DocId;

const PATIENCE: Duration = Duration::from_secs(120);
/// The number of keys typed on a user's machine. `.ci/nightly` and `TRACEBOOK_WHOLE` type all 26,078, which takes
/// minutes: a remote change costs the more, the longer the text is.
const SHORT: usize = 3_000;
/// The number of keys typed in CI: with these, both devices have been offline three times or more.
const CI_KEYS: usize = 10_000;
/// Each device goes offline once per this number of its keys.
const ALONE: usize = 1_100;

/// The number of a letter.
type Id = usize;

/// A keystroke.
#[derive(Clone, Debug)]
enum Key {
    /// Inserts letters after `left` (`None`: at the start), originally before `right`.
    Insert {
        left: Option<Id>,
        right: Option<Id>,
        first: Id,
        text: String,
    },
    Delete {
        letters: Vec<Id>,
    },
}

/// The keys of one transaction of one person.
#[derive(Debug)]
struct Typed {
    agent: usize,
    /// How many of each person's transactions the typist had seen.
    seen: [usize; 2],
    keys: Vec<Key>,
}

/// A text that tracks the identity of its letters, including deleted ones.
#[derive(Clone, Default)]
struct Letters {
    all: Vec<(Id, bool)>,
    /// A cached position, and the number of visible letters before it.
    near: (usize, usize),
    /// The position of the letter that was found last.
    found: usize,
    length: usize,
}

impl Letters {
    /// The position of the visible letter that has `count` before it, or the end if there is none.
    fn nth(&mut self, count: usize) -> usize {
        let (mut at, mut before) = self.near;
        while before > count {
            at -= 1;
            before -= usize::from(self.all[at].1);
        }
        while at < self.all.len() && (before < count || !self.all[at].1) {
            before += usize::from(self.all[at].1);
            at += 1;
        }
        self.near = (at, before);
        at
    }

    /// The number of visible letters before a position.
    fn before(&mut self, place: usize) -> usize {
        let (mut at, mut before) = self.near;
        while at > place {
            at -= 1;
            before -= usize::from(self.all[at].1);
        }
        while at < place {
            before += usize::from(self.all[at].1);
            at += 1;
        }
        self.near = (at, before);
        before
    }

    fn find(&mut self, id: Id) -> usize {
        let (mut low, mut high) = (self.found.min(self.all.len()), self.found.min(self.all.len()));
        loop {
            if high < self.all.len() && self.all[high].0 == id {
                self.found = high;
                return high;
            }
            if low > 0 && self.all[low - 1].0 == id {
                self.found = low - 1;
                return low - 1;
            }
            assert!(high < self.all.len() || low > 0, "letter {id} is not here");
            (low, high) = (low.saturating_sub(1), (high + 1).min(self.all.len()));
        }
    }

    fn insert(&mut self, place: usize, first: Id, count: usize) {
        self.all.splice(place..place, (first..first + count).map(|id| (id, true)));
        if place < self.near.0 {
            self.near = (self.near.0 + count, self.near.1 + count);
        }
        self.length += count;
        self.found = place;
    }

    fn remove(&mut self, place: usize) -> bool {
        if !std::mem::replace(&mut self.all[place].1, false) {
            return false;
        }
        if place < self.near.0 {
            self.near.1 -= 1;
        }
        self.length -= 1;
        true
    }

    /// Applies a keystroke. Returns the text splices that it results in.
    fn take(&mut self, key: &Key) -> Vec<(usize, usize, String)> {
        match key {
            Key::Insert { left, first, text, .. } => {
                let place = left.map_or(0, |left| self.find(left) + 1);
                let at = self.before(place);
                self.insert(place, *first, text.len());
                vec![(at, 0, text.clone())]
            }
            Key::Delete { letters } => {
                let mut splices = Vec::new();
                for letter in letters {
                    let place = self.find(*letter);
                    let at = self.before(place);
                    if self.remove(place) {
                        splices.push((at, 1, String::new()));
                    }
                }
                splices
            }
        }
    }

    fn text(&self, letters: &[u8]) -> String {
        self.all.iter().filter(|(_, there)| *there).map(|(id, _)| char::from(letters[*id])).collect()
    }
}

/// Reads the recorded trace: what was typed, all letters by number, and the final text if the trace is complete.
fn recorded(file: &Path, most: usize) -> (Vec<Typed>, Vec<u8>, Option<String>) {
    let plain = std::process::Command::new("gzip").arg("-dc").arg(file).output().expect("gzip");
    let trace: Value = serde_json::from_slice(&plain.stdout).expect("JSON");
    let transactions = trace["txns"].as_array().expect("a list");
    let number = |value: &Value| usize::try_from(value.as_u64().expect("a number")).expect("a small one");
    let mut views = [Letters::default(), Letters::default()];
    let mut letters = Vec::new();
    let (mut typed, mut clocks): (Vec<Typed>, Vec<[usize; 2]>) = (Vec::new(), Vec::new());
    let mut ranks: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for transaction in transactions.iter().take(most) {
        let agent = number(&transaction["agent"]);
        let other = 1 - agent;
        let mut seen = [0, 0];
        for parent in transaction["parents"].as_array().expect("a list") {
            let clock = clocks[number(parent)];
            seen = [seen[0].max(clock[0]), seen[1].max(clock[1])];
        }
        let known = typed.iter().rev().find(|one: &&Typed| one.agent == agent).map_or(0, |one| one.seen[other]);
        for index in ranks[other].iter().take(seen[other]).skip(known) {
            typed[*index].keys.iter().for_each(|key| _ = views[agent].take(key));
        }
        let view = &mut views[agent];
        let mut keys = Vec::new();
        for patch in transaction["patches"].as_array().expect("a list") {
            let (at, delete) = (number(&patch[0]), number(&patch[1]));
            let text = patch[2].as_str().expect("a text").to_owned();
            assert!(text.is_ascii(), "letters are bytes here");
            if delete > 0 {
                let mut gone = Vec::new();
                for _ in 0..delete {
                    let place = view.nth(at);
                    gone.push(view.all[place].0);
                    view.remove(place);
                }
                keys.push(Key::Delete { letters: gone });
            }
            if !text.is_empty() {
                let left = at.checked_sub(1).map(|left| view.nth(left));
                let place = left.map_or(0, |left| left + 1);
                let right = view.all[place..].iter().find(|(_, there)| *there).map(|(id, _)| *id);
                let left = left.map(|left| view.all[left].0);
                view.insert(place, letters.len(), text.len());
                keys.push(Key::Insert { left, right, first: letters.len(), text: text.clone() });
                letters.extend(text.bytes());
            }
        }
        let mut clock = seen;
        clock[agent] = ranks[agent].len() + 1;
        clocks.push(clock);
        ranks[agent].push(typed.len());
        typed.push(Typed { agent, seen, keys });
    }
    let end = (transactions.len() <= most).then(|| trace["endContent"].as_str().expect("a text").to_owned());
    (typed, letters, end)
}

/// A device with one note.
struct Device {
    driver: Driver,
    _folder: tempfile::TempDir,
    /// Its text, letter by letter, and how many of the other's transactions it contains.
    letters: Letters,
    heard: usize,
    typed: usize,
    revision: u64,
    alone: bool,
}

impl Device {
    fn new(begin: impl FnOnce(PathBuf) -> Command) -> Device {
        let folder = tempfile::tempdir().expect("a folder");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_tracebook-under-test"));
        let mut driver = host::open_workspace(&folder.path().join("W"), WorkspaceOptions { program, create: true })
            .expect("a workspace");
        std::fs::create_dir(folder.path().join("notes")).expect("made");
        driver.run_command(begin(folder.path().join("notes"))).expect("begun");
        let (letters, revision) = (Letters::default(), 0);
        Device { driver, _folder: folder, letters, heard: 0, typed: 0, revision, alone: false }
    }

    fn session(&self) -> &Session {
        self.driver.session()
    }

    fn text(&self, note: DocId) -> String {
        self.session().note(note).map(engine::Note::text).unwrap_or_default()
    }

    /// Finds out how much of the other's typing has arrived.
    fn learn(&mut self, note: DocId, theirs: &[&Typed], letters: &[u8]) {
        let revision = self.session().note(note).map_or(0, engine::Note::revision);
        if revision == self.revision {
            return;
        }
        let text = self.text(note);
        let (mut now, mut heard) = (self.letters.clone(), self.heard);
        while now.length != text.len() || now.text(letters) != text {
            // The keys of a transaction may arrive one by one; then this waits for the rest.
            let Some(next) = theirs.get(heard) else { return };
            next.keys.iter().for_each(|key| _ = now.take(key));
            heard += 1;
        }
        (self.letters, self.heard, self.revision) = (now, heard, revision);
    }

    /// Whether it's known which of the other's typing the text contains.
    fn is_learned(&self, note: DocId) -> bool {
        self.revision == self.session().note(note).map_or(0, engine::Note::revision)
    }

    /// Types a transaction at its place in this device's text.
    fn types(&mut self, note: DocId, typed: &Typed) {
        for key in &typed.keys {
            for (at, delete, insert) in self.letters.take(key) {
                self.driver.run_command(Command::Edit { note, at, delete, insert }).expect("typed");
            }
        }
        self.typed += 1;
        self.revision = self.session().note(note).map_or(0, engine::Note::revision);
    }

    fn has_network(&mut self, has: bool) {
        if self.alone == has {
            self.driver.run_command(Command::PauseSync { paused: !has }).expect("said");
            self.alone = !has;
        }
    }
}

fn until(one: &mut Device, two: &mut Device, what: &str, done: impl Fn(&Device, &Device) -> bool) {
    let begun = Instant::now();
    while !done(one, two) {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        one.driver.wait(Duration::from_millis(2));
        two.driver.wait(Duration::from_millis(2));
    }
}

#[test]
fn two_people_type_as_they_once_did() {
    let Some(traces) = shared("traces") else { return };
    let most = match is_nightly() || std::env::var_os("TRACEBOOK_WHOLE").is_some() {
        true => usize::MAX,
        false if strict() => CI_KEYS,
        false => SHORT,
    };
    let (typed, letters, end) = recorded(&traces.join("friendsforever.json.gz"), most);
    let by: [Vec<&Typed>; 2] = [0, 1].map(|agent| typed.iter().filter(|one| one.agent == agent).collect());
    let mut expected = Letters::default();
    typed.iter().flat_map(|one| &one.keys).for_each(|key| _ = expected.take(key));
    let expected = expected.text(&letters);
    if let Some(end) = end {
        assert_eq!(expected, end, "the trace is read as it is meant");
    }
    // Who typed each letter: the other's letters must have arrived before text is typed next to them.
    let mut whose = vec![(0, 0); letters.len()];
    for (agent, typed) in by.iter().enumerate() {
        for (rank, one) in typed.iter().enumerate() {
            for key in &one.keys {
                if let Key::Insert { first, text, .. } = key {
                    whose[*first..first + text.len()].fill((agent, rank));
                }
            }
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = HubSettings::new(folder.path().to_owned());
    (settings.listen, settings.open) = (([127, 0, 0, 1], 0).into(), OpenAccess::Loopback);
    let key = DeviceKey::generate().expect("a key");
    let hub = HubServer::start(settings, key, std::sync::Arc::new(|_| ())).expect("a hub");
    let mut one = Device::new(|folder| Command::OpenFolder { folder, name: None });
    let ready =
        |device: &Device| device.session().volumes().any(|volume| volume.scans > 0) && device.session().is_saved();
    while !ready(&one) {
        one.driver.wait(Duration::from_millis(10));
    }
    let volume = one.session().volumes().next().expect("a volume").id;
    let new = Command::NewNote { volume, path: "friends.md".to_owned(), text: String::new() };
    one.driver.run_command(new).expect("a note");
    let note = one.session().volume(volume).expect("it").files["friends.md"].id;
    one.driver.run_command(Command::OpenNote { note }).expect("open");
    one.driver.run_command(Command::ShareVolume { volume, hub: hub.public_address().to_owned() }).expect("shared");
    let address = engine::volume_address(hub.public_address(), volume);
    let mut two = Device::new(|folder| Command::JoinVolume { address, folder });
    until(&mut one, &mut two, "both have the note", |_, two| two.session().locate_file(note).is_some());
    two.driver.run_command(Command::OpenNote { note }).expect("open");
    let same = |device: &Device| device.session().sync_status() == SyncStatus::Synced { away: 0 };
    until(&mut one, &mut two, "both are in step", |one, two| {
        let ready = |device: &Device| device.session().note(note).is_some_and(engine::Note::is_settled);
        ready(one) && ready(two) && same(one) && same(two)
    });
    for device in [&mut one, &mut two] {
        device.revision = device.session().note(note).map_or(0, engine::Note::revision);
    }
    let mut devices = [one, two];
    for (number, typed) in typed.iter().enumerate() {
        let (agent, other) = (typed.agent, 1 - typed.agent);
        let beside = typed.keys.iter().flat_map(|key| match key {
            Key::Insert { left, right, .. } => left.iter().chain(right).copied().collect::<Vec<Id>>(),
            Key::Delete { letters } => letters.clone(),
        });
        let theirs = beside.map(|letter| whose[letter]).filter(|(agent, _)| *agent == other);
        let needs = theirs.map(|(_, rank)| rank + 1).max().unwrap_or(0);
        if devices[agent].heard < needs || !devices[agent].is_learned(note) {
            devices.iter_mut().for_each(|device| device.has_network(true));
            devices[other].driver.run_command(Command::Save).expect("saved");
            let begun = Instant::now();
            while devices[agent].heard < needs || !devices[agent].is_learned(note) {
                assert!(begun.elapsed() < PATIENCE, "what the other typed does not come: {number}");
                devices[other].driver.wait(Duration::from_millis(1));
                devices[agent].driver.wait(Duration::from_millis(1));
                let typed = devices[other].typed;
                devices[agent].learn(note, &by[other][..typed], &letters);
            }
        }
        devices[agent].types(note, typed);
        if devices[agent].typed.is_multiple_of(ALONE) {
            devices[agent].has_network(false);
        }
        if number.is_multiple_of(50) {
            for (agent, other) in [(0, 1), (1, 0)] {
                devices[agent].driver.pump(Duration::from_millis(20));
                let typed = devices[other].typed;
                devices[agent].learn(note, &by[other][..typed], &letters);
            }
        }
    }
    let [mut one, mut two] = devices;
    one.has_network(true);
    two.has_network(true);
    one.driver.run_command(Command::Save).expect("saved");
    two.driver.run_command(Command::Save).expect("saved");
    until(&mut one, &mut two, "both have the same", |one, two| {
        same(one) && same(two) && one.text(note) == two.text(note) && one.text(note).len() == expected.len()
    });
    assert_eq!(one.text(note), expected);
    let heads = |device: &Device| {
        let mut heads = device.session().note(note)?.document()?.heads();
        heads.sort_unstable();
        Some(heads)
    };
    assert!(heads(&one).is_some() && heads(&one) == heads(&two));
    one.driver.close().expect("all is saved");
    two.driver.close().expect("all is saved");
    hub.stop();
}
