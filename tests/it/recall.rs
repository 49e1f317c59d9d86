//! Search for programs: the queries of an agent's tool, and documents beside notes.

use engine::{Command, Session};
use host::search::{IndexedPassage, NoteText, PassageKind, SearchFilters, SearchRequest, SearchService, SearchSource};
use host::{Driver, WorkspaceOptions};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::DocId;

const PATIENCE: Duration = Duration::from_secs(120);

/// An in-memory search source for documents of other kinds.
#[derive(Clone, Default)]
pub(crate) struct Kept(pub(crate) Arc<Mutex<Vec<NoteText>>>);

impl SearchSource for Kept {
    fn list_documents(&mut self) -> Result<Vec<DocId>, store::disk::DiskError> {
        Ok(self.0.lock().unwrap().iter().map(|text| text.note).collect())
    }

    fn document_key(&mut self, doc: DocId) -> Option<u64> {
        self.read_document(doc).map(|text| text.key)
    }

    fn read_document(&mut self, doc: DocId) -> Option<NoteText> {
        self.0.lock().unwrap().iter().find(|text| text.note == doc).cloned()
    }
}

pub(crate) fn document(id: u8, path: &str, title: &str, passages: &[(PassageKind, &str, &str)]) -> NoteText {
    let passage = |(kind, place, text): &(PassageKind, &str, &str)| IndexedPassage {
        place: (*place).to_owned(),
        text: (*text).to_owned(),
        ..IndexedPassage::new(*kind)
    };
    NoteText {
        note: DocId([id; 16]),
        volume: "notes".to_owned(),
        path: path.to_owned(),
        title: title.to_owned(),
        tags: vec!["birds".to_owned()],
        modified: 1_795_305_600_000,
        key: u64::from(id),
        passages: passages.iter().map(passage).collect(),
    }
}

fn opened(folder: &std::path::Path) -> Driver {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tracebook-under-test"));
    let mut driver =
        host::open_workspace(&folder.join("W"), WorkspaceOptions { program, create: true }).expect("a workspace");
    driver.run_command(Command::OpenFolder { folder: folder.join("notes"), name: None }).expect("opened");
    let known = |session: &Session| session.volumes().any(|volume| volume.scans > 0) && session.is_saved();
    let begun = Instant::now();
    while !known(driver.session()) {
        assert!(begun.elapsed() < PATIENCE);
        driver.wait(Duration::from_millis(20));
    }
    driver
}

fn addresses(search: &SearchService, query: &str, filters: &SearchFilters) -> Vec<String> {
    let found = search.recall(query, filters, 9).expect("an answer");
    found.into_iter().map(|found| found.address).collect()
}

#[test]
fn steps_and_experiences_are_found_beside_notes() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("notes")).expect("made");
    std::fs::write(folder.path().join("notes/Plan.md"), "# Plan\n\nCount the herons at the weir.\n").expect("written");
    let driver = opened(folder.path());
    let search = driver.search().clone();
    let kept = Kept::default();
    let steps =
        [(PassageKind::Run, "s1", "Read the tide table."), (PassageKind::Run, "s2", "Count herons: 14 at the weir.")];
    kept.0.lock().unwrap().push(document(1, "run-7", "Morning count", &steps));
    let experience = [(PassageKind::Memory, "e1", "Herons are counted at low tide.")];
    kept.0.lock().unwrap().push(document(2, "memory", "Experiences", &experience));
    search.add_source(Box::new(kept.clone()));
    search.wait_until_indexed(PATIENCE).expect("settled");

    let all = addresses(&search, "herons", &SearchFilters::default());
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.iter().any(|address| address.starts_with("Plan.md#")) && all.contains(&"run-7#s2".to_owned()));
    let of = |kinds: &[PassageKind]| SearchFilters { kinds: kinds.to_vec(), ..SearchFilters::default() };
    assert_eq!(addresses(&search, "herons", &of(&[PassageKind::Run])), ["run-7#s2"]);
    assert_eq!(addresses(&search, "herons", &of(&[PassageKind::Run, PassageKind::Memory])).len(), 2);
    let birds = SearchFilters {
        tags: vec!["birds".to_owned()],
        after: Some("2026-11-22".to_owned()),
        ..SearchFilters::default()
    };
    assert_eq!(addresses(&search, "tide", &birds).len(), 2);
    assert_eq!(addresses(&search, "tide", &SearchFilters { before: Some("2026-11-22".to_owned()), ..birds }).len(), 0);
    // Each hit names its origin.
    let found = search.recall("tide table", &of(&[PassageKind::Run]), 1).expect("an answer").remove(0);
    assert_eq!((found.address.as_str(), found.kind, found.title.as_str()), ("run-7#s1", "run", "Morning count"));
    assert_eq!((found.volume.as_str(), found.document, found.modified), ("notes", DocId([1; 16]), 1_795_305_600_000));
    assert!(found.why.contains("tide") && found.text == "Read the tide table.", "{found:?}");
    let told = serde_json::to_value(&found).expect("JSON");
    assert_eq!(told["address"], "run-7#s1");
    assert!(
        search.recall("x", &SearchFilters { after: Some("soon".to_owned()), ..SearchFilters::default() }, 1).is_err()
    );
    // The same search with a user's query syntax.
    let hits = search
        .search_blocking(SearchRequest { text: "in:memory herons".to_owned(), limit: 9, ..SearchRequest::default() })
        .expect("found")
        .hits;
    assert_eq!(hits.iter().map(|hit| hit.link_address()).collect::<Vec<_>>(), ["memory#e1"]);

    // A query without matches has an empty answer.
    assert_eq!(addresses(&search, "zyzzyva quagga", &SearchFilters::default()), Vec::<String>::new());
    // A rebuilt index has these documents, too; removed ones are gone.
    search.rebuild(PATIENCE).expect("made again");
    assert_eq!(addresses(&search, "herons", &of(&[PassageKind::Run])), ["run-7#s2"]);
    kept.0.lock().unwrap().remove(0);
    search.add_source(Box::new(kept));
    search.wait_until_indexed(PATIENCE).expect("settled");
    assert_eq!(addresses(&search, "in:run", &SearchFilters::default()), Vec::<String>::new());
    assert_eq!(addresses(&search, "herons", &of(&[PassageKind::Memory])), ["memory#e1"]);
    driver.close().expect("closed");
}

#[test]
fn a_burst_of_keys_is_one_change_of_the_index() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("notes")).expect("a folder");
    std::fs::write(folder.path().join("notes/a.md"), "# Kites\n").expect("a file");
    let mut driver = opened(folder.path());
    driver.search().wait_until_indexed(PATIENCE).expect("indexed");
    let note = driver.session().volumes().flat_map(|volume| volume.files.values()).next().expect("the note").id;
    driver.run_command(Command::OpenNote { note }).expect("opened");
    let begun = Instant::now();
    while driver.session().note(note).is_none_or(|note| !note.is_settled()) {
        assert!(begun.elapsed() < PATIENCE);
        driver.wait(Duration::from_millis(20));
    }
    let (before, begun) = (driver.search().freshness().revision, Instant::now());
    for _ in 0..60 {
        driver.run_command(Command::Edit { note, at: 8, delete: 0, insert: "x".to_owned() }).expect("typed");
        let next = Instant::now() + Duration::from_millis(30);
        while Instant::now() < next {
            driver.wait(Duration::from_millis(5));
        }
    }
    // At most one index update per half second, even on a slow machine.
    let most = 2 + begun.elapsed().as_millis() / 500;
    let changes = driver.search().freshness().revision - before;
    assert!(u128::from(changes) <= most, "{changes} changes of the index, {most} would do");
    // A search doesn't wait for the pause.
    let last = "buzzard ".to_owned();
    driver.run_command(Command::Edit { note, at: 8, delete: 0, insert: last }).expect("typed");
    while !driver.session().is_saved() {
        driver.wait(Duration::from_millis(20));
    }
    driver.search().wait_until_indexed(PATIENCE).expect("indexed");
    let hits = driver
        .search()
        .search_blocking(SearchRequest { text: "buzzard".to_owned(), limit: 5, ..SearchRequest::default() })
        .expect("found");
    assert_eq!(hits.hits.len(), 1, "{hits:?}");
}
