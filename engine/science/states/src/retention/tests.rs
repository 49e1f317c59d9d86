//! Tests thinning, compaction and hostile files, with memory that no Python fills.

use super::*;
use crate::{ChangedPages, SavedMemory, StateMove, StateRecord, list_states};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Number of pages of the memory that these tests save.
const PAGES: usize = 24;
const PACK: &str = "a pack";

/// A kernel without Python: memory that changes, and the expected content of each state.
struct FakeKernel {
    folder: StateFolder,
    fresh: Vec<u8>,
    memory: Vec<u8>,
    saved: SavedMemory,
    places: Vec<PagePlace>,
    model: BTreeMap<String, Vec<u8>>,
    rng: StdRng,
    count: u64,
}

impl FakeKernel {
    fn open(path: &Path, seed: u64) -> FakeKernel {
        let fresh: Vec<u8> = (0..PAGES * PAGE_BYTES).map(|at| (at / PAGE_BYTES % 5) as u8).collect();
        FakeKernel {
            folder: StateFolder::open(path, PACK).expect("opened"),
            memory: fresh.clone(),
            saved: SavedMemory::of_fresh(&fresh),
            places: SavedMemory::of_fresh(&fresh).places,
            fresh,
            model: BTreeMap::new(),
            rng: StdRng::seed_from_u64(seed),
            count: 0,
        }
    }

    /// Simulates a cell that changes some pages.
    fn change(&mut self) -> (ChangedPages, StateRecord) {
        for _ in 0..self.rng.random_range(1..6) {
            let page = self.rng.random_range(0..PAGES);
            let bytes = &mut self.memory[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
            match self.rng.random_range(0..4) {
                0 => bytes.fill(0),
                1 => bytes.fill(self.rng.random_range(0..4)),
                _ => self.rng.fill(bytes),
            }
        }
        self.count += 1;
        let record = StateRecord {
            cell: format!("cell {}", self.count),
            time: self.count,
            count: self.count,
            ..Default::default()
        };
        let changes = self.saved.take_changes(&self.memory);
        assert!(self.restored() == self.memory, "a change was missed");
        (changes, record)
    }

    fn run(&mut self) -> String {
        let (changes, record) = self.change();
        let record = self.folder.save(&mut self.places, &changes, record).expect("saved");
        self.model.insert(record.state.clone(), self.memory.clone());
        record.state
    }

    fn go(&mut self, to: &StateMove) {
        let heads = to.apply(self.folder.heads(), &|id| self.folder.record(id).ok()).expect("a move");
        self.folder.set_heads(heads).expect("moved");
        self.load_current();
    }

    /// Continues with the folder's current state.
    fn load_current(&mut self) {
        let Some(id) = self.folder.heads().current().map(ToOwned::to_owned) else {
            // A fresh kernel.
            self.saved = SavedMemory::of_fresh(&self.fresh);
            (self.places, self.memory) = (self.saved.places.clone(), self.fresh.clone());
            self.folder.forget_unsaved();
            return;
        };
        let plan = self.folder.replay_plan(&id).expect("a plan");
        self.saved = match &plan.base {
            Some(base) => {
                let mut saved = self.folder.load_pages(base).expect("loaded");
                saved.mark_fresh(&self.fresh).expect("as large");
                saved
            }
            None => SavedMemory::of_fresh(&self.fresh),
        };
        self.folder.forget_unsaved();
        self.places = self.saved.places.clone();
        self.memory = self.model[&id].clone(); // its cells have run again
        if !plan.cells.is_empty() {
            let changes = self.saved.take_changes(&self.memory);
            self.folder.keep_again(&mut self.places, &changes, &id).expect("kept again");
        }
        assert!(self.restored() == self.memory, "the state {id} holds something else");
    }

    /// The memory of an instance into which the saved memory was written.
    fn restored(&self) -> Vec<u8> {
        let mut memory = self.fresh.clone();
        self.saved.write_over(&mut memory, self.fresh.len());
        memory
    }

    /// Checks that each kept state still has its content.
    fn check(&mut self) {
        let kept: Vec<String> = self.folder.kept.keys().cloned().collect();
        for id in kept {
            let loaded = self.folder.load(&id, &self.fresh).unwrap_or_else(|why| panic!("{id}: {why}"));
            assert!(loaded.bytes == self.model[&id], "the state {id} holds something else");
        }
    }

    /// Simulates a killed process: only the files remain.
    fn reopen(self, path: &Path, seed: u64) -> FakeKernel {
        let FakeKernel { folder, model, count, fresh, .. } = self;
        drop(folder);
        let mut next = FakeKernel { model, count, ..FakeKernel::open(path, seed) };
        if let Some(id) = next.folder.heads().current().map(ToOwned::to_owned) {
            next.saved = next.folder.load(&id, &fresh).expect("the last state");
            next.places = next.saved.places.clone();
            next.memory = next.saved.bytes.clone();
            assert!(next.memory == next.model[&id], "the last state holds something else");
        }
        next
    }
}

/// Code can name variables as it likes. A record with such names must still be read, and be listed.
#[test]
fn names_beyond_all_measure_are_not_listed() {
    let place = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(place.path(), 11);
    let (changes, mut record) = kernel.change();
    record.defined = vec!["x".repeat(crate::files::MAX_STATE_BYTES), "kept".to_owned()];
    record.changed = vec!["y".to_owned(), "z".repeat(300)];
    kernel.folder.save(&mut kernel.places, &changes, record).expect("saved");
    drop(kernel);
    let listed = list_states(place.path());
    assert_eq!((listed.kept.len(), listed.damaged), (1, 0));
    assert_eq!(
        (&listed.kept[0].defined[..], &listed.kept[0].changed[..]),
        (&["kept".to_owned()][..], &["y".to_owned()][..])
    );
}

#[test]
fn what_is_needed_stays_and_old_states_stand_further_apart() {
    let mut states: Vec<Candidate> = (0..200)
        .map(|at: usize| Candidate {
            id: at.to_string(),
            parent: at.checked_sub(1),
            children: if at == 40 { 2 } else { 1 },
            stays: at >= 192 || at == 7,
            on_line: true,
            thinned: false,
        })
        .collect();
    for _ in 0..150 {
        let at = next_to_thin(&states).expect("one to thin");
        assert!(!states[at].stays && !states[at].thinned && at != 40, "{at}");
        thin(&mut states, at);
    }
    let there = |range: std::ops::Range<usize>| states[range].iter().filter(|state| !state.thinned).count();
    assert!(there(150..200) > 2 * there(0..50), "{} {}", there(0..50), there(150..200));
    // Without a second branch, a state is no longer a branch point.
    let leaf = states.len();
    states.push(Candidate { id: "leaf".into(), parent: Some(40), ..Candidate::default() });
    thin(&mut states, leaf);
    assert_eq!(states[40].children, 1);
}

#[test]
fn thinning_keeps_a_folder_in_its_budget_and_loses_nothing_that_stays() {
    for seed in 0..6 {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path();
        let mut kernel = FakeKernel::open(path, seed);
        let mut pinned = String::new();
        let budget = 500_000;
        for round in 0..160 {
            let id = kernel.run();
            if round == 5 {
                pinned = id;
                kernel.go(&StateMove::Pin(pinned.clone(), Some("good".into())));
            }
            match kernel.rng.random_range(0..12) {
                0 => kernel.go(&StateMove::Undo),
                1 if round == 60 || round == 61 => kernel.go(&StateMove::Fork(format!("fork {round}"), None)),
                2 => {
                    let mut all: Vec<String> = kernel.folder.kept.keys().cloned().collect();
                    all.sort(); // the seed alone says which one it is
                    let one = all[kernel.rng.random_range(0..all.len())].clone();
                    kernel.go(&StateMove::To(one));
                }
                3 => kernel = kernel.reopen(path, seed * 1000 + round),
                _ => {}
            }
            kernel.folder.set_budget(budget);
            // Cells run between the steps.
            for _ in 0..kernel.rng.random_range(0..9) {
                kernel.folder.tend(&mut kernel.places).expect("a step");
            }
        }
        kernel.check();
        kernel.folder.set_budget(budget);
        while kernel.folder.tend(&mut kernel.places).expect("a step") {}
        kernel.check();
        assert!(kernel.folder.used_bytes() <= budget, "seed {seed}: {}", kernel.folder.used_bytes());
        assert!(kernel.folder.kept.contains_key(&pinned), "seed {seed}");
        let kept = kernel.folder.kept.len();
        assert!((NEWEST_KEPT_STATES..150).contains(&kept), "seed {seed}: {kept} states");
        let used = kernel.folder.used_bytes();
        kernel = kernel.reopen(path, 1);
        kernel.check();
        let listed = list_states(path);
        assert_eq!((listed.kept.len(), listed.damaged, listed.used_bytes), (kept, 0, used), "seed {seed}");
        // A thinned state is kept again after its cells ran again.
        let others = kernel.folder.records.keys().filter(|id| !kernel.folder.kept.contains_key(*id));
        let thinned = others.min().expect("a thinned state").clone();
        kernel.go(&StateMove::To(thinned.clone()));
        let after = kernel.run();
        kernel = kernel.reopen(path, 2);
        assert!(kernel.folder.kept.contains_key(&thinned) && kernel.folder.kept.contains_key(&after));
        kernel.check();
    }
}

#[test]
fn states_of_many_visits_leave_space_for_those_of_the_user() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(dir.path(), 12);
    let own = kernel.run();
    let mut heads = Vec::new();
    for number in 0..60 {
        kernel.folder.visit_branch(&format!("session {number}")).expect("visited");
        heads.push(kernel.run());
        kernel.folder.end_visit();
        kernel.load_current();
    }
    let budget = kernel.folder.used_bytes() / 2;
    kernel.folder.set_budget(budget);
    while kernel.folder.tend(&mut kernel.places).expect("a step") {}
    assert!(kernel.folder.used_bytes() <= budget, "{} of {budget}", kernel.folder.used_bytes());
    assert!(kernel.folder.kept.contains_key(&own) && !kernel.folder.kept.contains_key(&heads[0]));
    kernel.check();
    // Such a branch is still there: its cells run again.
    let visited = kernel.folder.visit_branch("session 0").expect("visited");
    assert_eq!((visited.state.as_ref(), visited.needs_load, visited.is_new), (Some(&heads[0]), true, false));
    kernel.load_current();
    kernel.folder.end_visit();
    kernel.load_current();
    // It's the user's once they have switched to it.
    kernel.go(&StateMove::Switch("session 1".to_owned()));
    kernel.go(&StateMove::Switch("main".to_owned()));
    let visited = &kernel.folder.heads().visited;
    assert!(visited.contains("session 0") && !visited.contains("session 1"));
    kernel.reopen(dir.path(), 13).check();
}

#[test]
fn changes_that_could_not_be_written_belong_to_the_next_state() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(dir.path(), 7);
    let before = kernel.run();
    let (segments, away) = (dir.path().join("segments"), dir.path().join("away"));
    std::fs::rename(&segments, &away).expect("moved away");
    for _ in 0..5 {
        let (changes, record) = kernel.change();
        kernel.folder.save(&mut kernel.places, &changes, record).expect_err("no folder");
    }
    assert_eq!(kernel.folder.heads().current(), Some(before.as_str()));
    std::fs::rename(&away, &segments).expect("moved back");
    kernel.run();
    kernel.check();
    kernel.reopen(dir.path(), 8).check();
}

#[test]
fn a_thinning_that_fails_loses_no_state() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(dir.path(), 9);
    for _ in 0..60 {
        kernel.run();
    }
    // The index can't be replaced, because a folder has its name.
    std::fs::remove_file(dir.path().join("index")).ok();
    std::fs::create_dir_all(dir.path().join("index/x")).expect("made");
    kernel.folder.set_budget(1);
    let mut failed = false;
    for _ in 0..1_000 {
        match kernel.folder.tend(&mut kernel.places) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => failed = true,
        }
    }
    assert!(failed);
    assert_eq!(kernel.folder.kept.len(), 60);
    kernel.reopen(dir.path(), 10).check();
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(dir.path(), 11);
    for _ in 0..40 {
        kernel.run();
    }
    assert!(matches!(thin_folder(dir.path(), 0), Err(StateError::InUse { .. })));
    let mut reader = StateFolder::open_for_reading(dir.path(), PACK).expect("opened");
    let id = kernel.folder.heads().current().expect("a state").to_owned();
    assert!(reader.load(&id, &kernel.fresh).expect("loaded").bytes == kernel.memory);
    let FakeKernel { folder, .. } = kernel;
    let before = folder.used_bytes();
    drop(folder);
    let after = thin_folder(dir.path(), 0).expect("thinned");
    assert!(after < before, "{after} {before}");
    assert_eq!(list_states(dir.path()).kept.len(), NEWEST_KEPT_STATES);
}

/// Returns all files of a folder of states.
fn files_of(path: &Path) -> Vec<std::path::PathBuf> {
    let parts = [path.to_owned(), path.join("states"), path.join("segments")];
    let mut found: Vec<_> = parts
        .iter()
        .flat_map(|part| std::fs::read_dir(part).expect("a folder").flatten())
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && !path.ends_with("lock"))
        .collect();
    found.sort();
    found
}

#[test]
fn damage_is_reported_and_never_taken_for_a_state() {
    for seed in 0..60 {
        let dir = tempfile::tempdir().expect("a folder");
        let mut kernel = FakeKernel::open(dir.path(), seed);
        for _ in 0..14 {
            kernel.run();
        }
        kernel.folder.write_index().expect("written");
        kernel.run();
        let FakeKernel { folder, model, fresh, mut rng, .. } = kernel;
        drop(folder);
        for _ in 0..rng.random_range(1..4) {
            let files = files_of(dir.path());
            let file = &files[rng.random_range(0..files.len())];
            let mut bytes = std::fs::read(file).expect("read");
            match rng.random_range(0..6) {
                0 if !bytes.is_empty() => bytes.truncate(rng.random_range(0..bytes.len())),
                1 => bytes.extend_from_slice(&[0; 700]),
                2 => bytes.clear(),
                #[cfg(unix)]
                3 => {
                    std::fs::remove_file(file).expect("removed");
                    std::os::unix::fs::symlink(["/dev/zero", "/etc/passwd", "."][seed as usize % 3], file)
                        .expect("linked");
                    continue;
                }
                _ if !bytes.is_empty() => {
                    for _ in 0..rng.random_range(1..9) {
                        let at = rng.random_range(0..bytes.len());
                        bytes[at] ^= 1 << rng.random_range(0..8);
                    }
                }
                _ => {}
            }
            std::fs::write(file, bytes).expect("written");
        }
        let listed = list_states(dir.path());
        assert!(listed.kept.len() + listed.damaged <= 15, "seed {seed}");
        let mut folder = StateFolder::open(dir.path(), PACK).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for (id, memory) in &model {
            if let Ok(loaded) = folder.load(id, &fresh) {
                assert!(loaded.bytes == *memory, "seed {seed}: {id}");
            }
        }
        let heads = folder.heads().clone();
        for id in heads.branches.values().flatten() {
            folder.replay_plan(id).ok();
            assert!(folder.lineage(Some(id)).len() <= 15, "seed {seed}");
        }
        folder.set_budget(1);
        while folder.tend(&mut []).unwrap_or(false) {}
        // A cell can run and be saved whatever is damaged.
        let mut saved = SavedMemory::of_fresh(&fresh);
        let mut memory = fresh.clone();
        memory[..100].fill(9);
        let changes = saved.take_changes(&memory);
        let fresh_heads = StateMove::Fresh.apply(folder.heads(), &|_| None).expect("fresh");
        folder.set_heads(fresh_heads).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        folder.forget_unsaved();
        let record = StateRecord { time: 99, ..StateRecord::default() };
        let record =
            folder.save(&mut saved.places, &changes, record).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(folder.load(&record.state, &fresh).is_ok_and(|loaded| loaded.bytes == memory), "seed {seed}");
    }
}

/// Writes a state's file with this content and a correct hash.
fn write_forged(folder: &Path, file: &StateFile) -> String {
    let mut file = file.clone();
    file.record.state = "0123456789abcdef0123456789abcdef".to_owned();
    files::write_state(folder, &file).expect("written");
    file.record.state
}

/// Changes a state in a way that no kernel writes.
type Forgery = Box<dyn Fn(&mut StateFile)>;

#[test]
fn forged_files_with_right_hashes_are_refused_in_no_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut kernel = FakeKernel::open(dir.path(), 21);
    let id = kernel.run();
    let FakeKernel { folder, fresh, .. } = kernel;
    drop(folder);
    let good = files::read_state(dir.path(), &id).expect("read");
    let forgeries: Vec<Forgery> = vec![
        Box::new(|file| file.memory = usize::MAX - 4095),
        Box::new(|file| file.memory = 3),
        Box::new(|file| file.memory = 0),
        Box::new(|file| file.runs = vec![(0, u32::MAX, -1, 0)]),
        Box::new(|file| file.runs = vec![(u32::MAX, u32::MAX, 0, u32::MAX)]),
        Box::new(|file| file.runs = vec![(0, 1, 7, 0)]),
        Box::new(|file| file.runs = vec![(0, 1, i64::MIN, 0), (0, 1, i64::MAX, 0)]),
        Box::new(|file| file.runs = vec![(0, 20, -1, 0); 1_000_000]),
        Box::new(|file| file.runs = vec![(0, 1, 0, 500_000)]),
        Box::new(|file| file.segments = vec!["../../../../etc/passwd".to_owned()]),
        Box::new(|file| file.pack = "another".to_owned()),
    ];
    for (number, forge) in forgeries.iter().enumerate() {
        let mut file = good.clone();
        forge(&mut file);
        let forged = write_forged(dir.path(), &file);
        let began = std::time::Instant::now();
        let mut folder = StateFolder::open(dir.path(), PACK).expect("opened");
        assert!(folder.load(&forged, &fresh).is_err(), "forgery {number}");
        folder.set_budget(1);
        while folder.tend(&mut []).unwrap_or(false) {}
        assert!(folder.load(&id, &fresh).is_ok(), "forgery {number}");
        assert!(began.elapsed() < Duration::from_secs(20), "forgery {number}");
    }
    // Decompression bombs: 4 GB of zeros in a few bytes, as a state, as the index, and as a segment of one page.
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    for _ in 0..1_000 {
        std::io::Write::write_all(&mut bomb, &vec![0; 1 << 20]).expect("written");
    }
    let bomb = bomb.finish().expect("finished");
    let hashed = [page_hash(&bomb).as_slice(), &bomb].concat();
    let name = "fedcba9876543210fedcba9876543210";
    std::fs::write(dir.path().join("states").join(name), &hashed).expect("written");
    std::fs::write(dir.path().join("index"), &hashed).expect("written");
    let segment = [b"TBpages1".as_slice(), &1u32.to_le_bytes(), &[0; 16], &bomb].concat();
    let segment_name = blake3::hash(&segment).to_hex()[..32].to_owned();
    std::fs::write(dir.path().join("segments").join(&segment_name), &segment).expect("written");
    let mut file = good.clone();
    (file.segments, file.runs) = (vec![segment_name], vec![(0, 1, 0, 0)]);
    let forged = write_forged(dir.path(), &file);
    let mut folder = StateFolder::open(dir.path(), PACK).expect("opened");
    assert!(matches!(folder.load(name, &fresh), Err(StateError::Damaged { .. })));
    assert!(matches!(folder.load(&forged, &fresh), Err(StateError::Damaged { .. })));
    assert!(folder.load(&id, &fresh).is_ok());
    // A segment whose file is huge, and one whose header claims to be.
    let huge = std::fs::File::create(dir.path().join("segments").join(name)).expect("made");
    huge.set_len(1 << 40).expect("sparse");
    (file.segments, file.runs) = (vec![name.to_owned()], vec![(0, 1, 0, 0)]);
    let forged = write_forged(dir.path(), &file);
    assert!(matches!(folder.load(&forged, &fresh), Err(StateError::Damaged { .. })));
}
