//! Tests states on their way between two devices' folders, without a kernel or a connection.

use super::*;
use crate::shared_state::{announce_state, begin_sharing, end_sharing, offered_files};
use crate::{ChangedPages, PagePlace, SavedMemory, StateMove, WithdrawnFile, read_heads, withdrawn_files};

const PACK: &str = "a pack";
const VOLUME: &str = "a volume";
const PAGES: usize = 4;

/// Two devices' folders of one note, and the memory of the first device's kernel.
struct Devices {
    one: tempfile::TempDir,
    two: tempfile::TempDir,
    memory: Vec<u8>,
    count: u64,
}

impl Devices {
    fn new() -> Devices {
        let folder = || tempfile::tempdir().expect("a folder");
        Devices { one: folder(), two: folder(), memory: vec![0; PAGES * PAGE_BYTES], count: 0 }
    }

    /// Runs a cell on the first device that fills a page with this byte.
    fn run(&mut self, byte: u8) {
        self.count += 1;
        save(self.one.path(), &mut self.memory, (self.count as usize, byte), self.count);
    }

    fn announce(&self) -> String {
        begin_sharing(self.one.path(), VOLUME).expect("written");
        announce_state(self.one.path(), VOLUME).expect("read").expect("a state").to_text().expect("short enough")
    }

    /// Copies the files that the second device lacks, changed by `alter`. Returns their number.
    fn fetch(&self, announcement: &str, alter: impl Fn(&mut Vec<u8>)) -> usize {
        let offered = offered_files(self.one.path(), VOLUME, announcement);
        let wanted = plan_receiving(self.two.path(), announcement, Some(PACK), false).expect("planned");
        let wanted = wanted.expect("it is taken over");
        for file in &wanted {
            let (_, path) = offered.iter().find(|(offered, _)| offered == file).expect("offered");
            let mut bytes = std::fs::read(self.one.path().join(path)).expect("there");
            alter(&mut bytes);
            std::fs::write(incoming_file(self.two.path(), file), bytes).expect("written");
        }
        wanted.len()
    }

    fn receive(&self) -> Result<String, StateError> {
        let mut folder = StateFolder::open(self.two.path(), PACK).expect("opened");
        let state = folder.receive()?;
        let heads = StateMove::To(state.clone()).apply(folder.heads(), &|id| folder.record(id).ok())?;
        folder.set_heads(heads)?;
        Ok(state)
    }

    fn memory_of_two(&self) -> Vec<u8> {
        let mut folder = StateFolder::open(self.two.path(), PACK).expect("opened");
        let current = folder.heads().current().expect("a state").to_owned();
        folder.load(&current, &[]).expect("read").bytes
    }
}

/// Saves a state whose memory has one page more that isn't zero.
fn save(folder: &Path, memory: &mut [u8], (page, byte): (usize, u8), count: u64) {
    let mut states = StateFolder::open(folder, PACK).expect("opened");
    let current = states.heads().current().map(ToOwned::to_owned);
    let mut saved = match current {
        Some(current) => states.load(&current, &[]).expect("read"),
        None => SavedMemory::of_pages(vec![0; memory.len()], vec![PagePlace::Zero; PAGES]),
    };
    memory[page % PAGES * PAGE_BYTES..][..PAGE_BYTES].fill(byte);
    let changes: ChangedPages = saved.take_changes(memory);
    let record = StateRecord {
        cell: format!("cell {count}"),
        execution: format!("e{count}"),
        defined: vec![format!("x{count}")],
        count,
        time: count,
        ..StateRecord::default()
    };
    states.save(&mut saved.places, &changes, record).expect("saved");
}

#[test]
fn a_shared_state_goes_to_another_device_and_later_ones_follow_it() {
    let mut devices = Devices::new();
    devices.run(1);
    devices.run(2);
    let first = devices.announce();
    let shared = SharedState::parse(&first).expect("an announcement");
    assert_eq!((shared.names.as_slice(), shared.pack.as_str()), (&["x1".to_owned(), "x2".to_owned()][..], PACK));
    assert_eq!(devices.fetch(&first, |_| ()), 4, "two states, each with a segment");
    devices.receive().expect("received");
    assert_eq!(devices.memory_of_two(), devices.memory);
    assert!(!devices.two.path().join("incoming").exists(), "nothing remains");
    // The line goes along, so a cell can run in the state above it.
    let folder = StateFolder::open(devices.two.path(), PACK).expect("opened");
    let line = folder.lineage(folder.heads().current());
    assert_eq!(line.iter().map(|record| record.execution.as_str()).collect::<Vec<_>>(), ["e1", "e2"]);
    drop(folder);
    assert!(plan_receiving(devices.two.path(), &first, Some(PACK), true).expect("planned").is_none(), "it is here");
    devices.run(3);
    let second = devices.announce();
    assert_eq!(devices.fetch(&second, |_| ()), 2, "only what is new");
    devices.receive().expect("received");
    assert_eq!(devices.memory_of_two(), devices.memory);
    // Who went back from it isn't moved forward again, also after a restart.
    let mut folder = StateFolder::open(devices.two.path(), PACK).expect("opened");
    let back = StateMove::To(shared.state).apply(folder.heads(), &|id| folder.record(id).ok()).expect("moved");
    folder.set_heads(back).expect("written");
    drop(folder);
    let plan = |asked| plan_receiving(devices.two.path(), &second, Some(PACK), asked).expect("planned");
    assert_eq!((plan(false), plan(true)), (None, Some(Vec::new())), "unless the user asks for it");
}

#[test]
fn nothing_is_announced_or_offered_that_the_user_does_not_share() {
    let mut devices = Devices::new();
    devices.run(1);
    let one = devices.one.path().to_owned();
    assert!(announce_state(&one, VOLUME).expect("read").is_none());
    let announcement = devices.announce();
    assert_eq!(offered_files(&one, VOLUME, &announcement).len(), 2);
    // What another device says of the files here isn't believed.
    let mut forged = SharedState::parse(&announcement).expect("an announcement");
    (forged.states[0].1.hash, forged.segments[0].size) = ("0".repeat(64), 1);
    assert!(offered_files(&one, VOLUME, &forged.to_text().expect("short enough")).is_empty());
    // Another volume has other devices.
    assert!(offered_files(&one, "another", &announcement).is_empty());
    assert!(announce_state(&one, "another").expect("read").is_none());
    // Another device's words alone share nothing.
    end_sharing(&one).expect("ended");
    assert!(offered_files(&one, VOLUME, &announcement).is_empty());
    assert!(announce_state(&one, VOLUME).expect("read").is_none());
}

/// The files of an announcement, as hubs have to delete them.
fn files_of(announcement: &str, volume: &str) -> HashSet<WithdrawnFile> {
    let shared = SharedState::parse(announcement).expect("an announcement");
    let file = |file: &SharedStateFile| WithdrawnFile { volume: volume.to_owned(), hash: file.hash.clone() };
    shared.files().map(file).collect()
}

fn withdrawn(folder: &Path) -> HashSet<WithdrawnFile> {
    withdrawn_files(folder).into_iter().collect()
}

#[test]
fn hubs_have_to_delete_what_is_shared_no_longer() {
    let mut devices = Devices::new();
    let one = devices.one.path().to_owned();
    devices.run(1);
    let first = devices.announce();
    devices.run(2);
    devices.announce();
    assert!(withdrawn(&one).is_empty(), "the line goes along");
    // Back to the first state: what follows it is announced no longer.
    let mut folder = StateFolder::open(&one, PACK).expect("opened");
    let state = SharedState::parse(&first).expect("an announcement").state;
    let back = StateMove::To(state.clone()).apply(folder.heads(), &|id| folder.record(id).ok()).expect("moved");
    folder.set_heads(back).expect("written");
    drop(folder);
    devices.announce();
    assert_eq!(withdrawn(&one).len(), 2, "a state and its segment");
    assert!(withdrawn(&one).is_disjoint(&files_of(&first, VOLUME)));
    // A later state that needs one of them again is shared with it.
    devices.run(3);
    let last = devices.announce();
    assert!(withdrawn(&one).is_disjoint(&files_of(&last, VOLUME)));
    // The note is moved to another volume.
    assert!(announce_state(&one, "another").expect("read").is_none());
    assert!(withdrawn(&one).is_superset(&files_of(&last, VOLUME)));
    assert!(offered_files(&one, VOLUME, &last).is_empty());
    begin_sharing(&one, "another").expect("written");
    let moved = announce_state(&one, "another").expect("read").expect("a state").to_text().expect("short enough");
    end_sharing(&one).expect("ended");
    assert!(withdrawn(&one).is_superset(&files_of(&moved, "another")));
    // Shared again.
    let again = devices.announce();
    assert!(withdrawn(&one).is_disjoint(&files_of(&again, VOLUME)));
    assert!(withdrawn(&one).is_superset(&files_of(&moved, "another")));
}

#[test]
fn variables_of_this_device_are_never_lost_to_those_of_another() {
    let mut devices = Devices::new();
    devices.run(1);
    let announcement = devices.announce();
    save(devices.two.path(), &mut vec![0; PAGES * PAGE_BYTES], (2, 9), 1);
    let two = devices.two.path();
    let own = read_heads(two).expect("read").current().expect("a state").to_owned();
    let plan = |asked| plan_receiving(two, &announcement, Some(PACK), asked).expect("planned");
    assert!(plan(false).is_none(), "unless the user asks for it");
    for file in plan(true).expect("asked") {
        let offered = offered_files(devices.one.path(), VOLUME, &announcement);
        let (_, path) = offered.iter().find(|(offered, _)| *offered == file).expect("offered");
        std::fs::copy(devices.one.path().join(path), incoming_file(two, &file)).expect("copied");
    }
    let state = devices.receive().expect("received");
    let heads = read_heads(two).expect("read");
    assert_eq!((heads.current(), heads.branches["here"].as_deref()), (Some(state.as_str()), Some(own.as_str())));
    // Who started over isn't given the variables of another device again.
    let mut folder = StateFolder::open(two, PACK).expect("opened");
    let heads = StateMove::Fresh.apply(folder.heads(), &|_| None).expect("moved");
    folder.set_heads(heads).expect("written");
    assert!(plan(false).is_none());
}

#[test]
fn what_does_not_match_is_refused_and_changes_nothing() {
    let mut devices = Devices::new();
    devices.run(1);
    devices.run(2);
    let announcement = devices.announce();
    let nothing = |devices: &Devices| read_heads(devices.two.path()).expect("read").current().is_none();
    // Pages that didn't come.
    assert!(plan_receiving(devices.two.path(), &announcement, Some(PACK), false).expect("planned").is_some());
    assert!(matches!(devices.receive(), Err(StateError::NotReceived)) && nothing(&devices));
    // A flipped bit, in every file.
    devices.fetch(&announcement, |bytes| *bytes.last_mut().expect("bytes") ^= 1);
    assert!(matches!(devices.receive(), Err(StateError::Damaged { .. })) && nothing(&devices));
    // Another pack: nothing is fetched.
    let plan = plan_receiving(devices.two.path(), &announcement, Some("another pack"), false).expect("planned");
    assert_eq!(plan, Some(Vec::new()));
    let mut folder = StateFolder::open(devices.two.path(), "another pack").expect("opened");
    assert!(matches!(folder.receive(), Err(StateError::OtherPack)));
    drop(folder);
    // It arrives whole after all of that.
    devices.fetch(&announcement, |_| ());
    devices.receive().expect("received");
    assert_eq!(devices.memory_of_two(), devices.memory);
}

/// Announces a file of the state as altered, with the hash and size that it then has.
fn forge(devices: &Devices, is_segment: bool, alter: impl Fn(&mut Vec<u8>)) -> Result<String, StateError> {
    let mut shared = SharedState::parse(&devices.announce()).expect("an announcement");
    let (file, path) = match is_segment {
        true => {
            let file = &mut shared.segments[0];
            let path = format!("segments/{}", file.segment_name());
            (file, path)
        }
        false => {
            let (id, file) = &mut shared.states[0];
            (file, format!("states/{id}"))
        }
    };
    let mut bytes = std::fs::read(devices.one.path().join(path)).expect("there");
    alter(&mut bytes);
    *file = SharedStateFile { hash: blake3::hash(&bytes).to_hex().to_string(), size: bytes.len() as u64 };
    let forged = incoming_file(devices.two.path(), file);
    let announcement = shared.to_text().expect("short enough");
    plan_receiving(devices.two.path(), &announcement, Some(PACK), false).expect("planned");
    std::fs::write(forged, bytes).expect("written");
    devices.fetch_rest(&announcement);
    devices.receive()
}

impl Devices {
    /// Copies what is still missing of a forged announcement.
    fn fetch_rest(&self, announcement: &str) {
        let offered = offered_files(self.one.path(), VOLUME, announcement);
        let wanted = plan_receiving(self.two.path(), announcement, Some(PACK), false).expect("planned");
        for file in wanted.expect("taken over") {
            let (_, path) = offered.iter().find(|(offered, _)| *offered == file).expect("offered");
            std::fs::copy(self.one.path().join(path), incoming_file(self.two.path(), &file)).expect("copied");
        }
    }
}

#[test]
fn a_dishonest_device_can_make_no_page_pass_for_another() {
    let mut devices = Devices::new();
    devices.run(7);
    // The hash of a page in a segment's header is another page's: later states would take its bytes for that page.
    let refused = forge(&devices, true, |bytes| bytes[12] ^= 1);
    assert!(matches!(refused, Err(StateError::Damaged { .. })), "{refused:?}");
    // A state that needs a segment that wasn't announced, by its name alone.
    let own = devices.two.path().join("segments");
    save(devices.two.path(), &mut vec![0; PAGES * PAGE_BYTES], (1, 5), 1);
    let name = std::fs::read_dir(&own).expect("segments").next().expect("one").expect("read").file_name();
    std::fs::remove_file(devices.two.path().join("heads")).expect("removed");
    let refused = forge(&devices, false, |bytes| {
        let id = SharedState::parse(&devices.announce()).expect("an announcement").state;
        let mut file = parse_state(Path::new("a state"), &id, bytes).expect("a state");
        file.segments = vec![name.to_str().expect("UTF-8").to_owned()];
        let text = serde_json::to_vec(&file).expect("JSON");
        let body = zstd::encode_all(text.as_slice(), 1).expect("compressed");
        *bytes = [crate::files::page_hash(&body).as_slice(), &body].concat();
    });
    assert!(matches!(refused, Err(StateError::Damaged { .. })), "{refused:?}");
}

#[test]
fn announcements_are_read_as_untrusted_text() {
    let mut devices = Devices::new();
    devices.run(1);
    let good = devices.announce();
    let with = |change: &dyn Fn(&mut SharedState)| {
        let mut shared = SharedState::parse(&good).expect("an announcement");
        change(&mut shared);
        SharedState::parse(&serde_json::to_string(&shared).expect("JSON"))
    };
    assert!(with(&|_| ()).is_ok());
    let refused: [&dyn Fn(&mut SharedState); 8] = [
        &|shared| shared.state = "../../../etc/passwd".to_owned(),
        &|shared| shared.parent = Some("..".to_owned()),
        &|shared| shared.states[0].0 = "0".repeat(32),
        &|shared| shared.states.clear(),
        &|shared| shared.segments[0].hash = "../".repeat(22),
        &|shared| shared.segments[0].size = u64::MAX,
        &|shared| shared.segments = vec![shared.segments[0].clone(); 5_000],
        &|shared| shared.ancestors = vec!["0".repeat(32); 257],
    ];
    for (number, change) in refused.into_iter().enumerate() {
        assert!(matches!(with(change), Err(StateError::BadAnnouncement)), "forgery {number}");
    }
    assert!(SharedState::parse(&" ".repeat(MAX_ANNOUNCEMENT_BYTES + 1)).is_err());
    assert!(SharedState::parse("{}").is_err());
}
