//! Documents that are damaged, hostile or from a newer program, in place of a note's own: the text can be read, refused
//! edits get a clear error, and the documents' bytes are kept.

use super::{FIRST, Place, insert};
use crate::program::assert_fast;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::DocId;
use store::disk::{Disk, DiskReader, RowWrite, SqliteDisk, SqliteReader};

/// The time within which a note's text must be readable, whatever its document.
const LIMIT: Duration = Duration::from_secs(20);
/// The time that automerge may take for a foreign document of half a megabyte, longer in unoptimized builds.
const LOADED: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 20 });

/// A workspace with `count` notes, each edited once.
fn adopted(count: usize) -> (Place, Vec<(String, DocId)>) {
    let names: Vec<String> = (0..count).map(|number| format!("note {number}.md")).collect();
    let notes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), FIRST)).collect();
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (dir.path().join("workspace"), dir.path().join("Notes"));
    let place = Place::of(dir, workspace, folder, &notes);
    for name in &names {
        place.run_with(&["edit", name], &insert(FIRST.len(), "typed")).fine();
    }
    let volume: DocId = place.volume.parse().expect("an id");
    let files = SqliteReader::open(&place.workspace).expect("opened").file_rows(volume).expect("read");
    let id = |name: &String| files.iter().find(|row| row.path == *name).expect("known").id;
    let notes = names.iter().map(|name| (name.clone(), id(name))).collect();
    (place, notes)
}

/// Appends bytes to a note's document, or replaces the document by them.
fn plant(place: &Place, doc: DocId, bytes: &[u8], instead: bool) {
    let mut disk = SqliteDisk::open(&place.workspace, false).expect("opened");
    if instead {
        let chunks = disk.open_reader().expect("reader").chunks(doc).expect("read");
        assert!(!chunks.is_empty(), "it was edited");
        let aside = |seq| RowWrite::QuarantineChunk { doc, seq, why: "a test".to_owned(), at: 0 };
        disk.commit(&chunks.iter().map(|chunk| aside(chunk.seq)).collect::<Vec<_>>()).expect("committed");
    }
    disk.commit(&[RowWrite::Chunk { doc, bytes: bytes.to_vec() }]).expect("committed");
}

/// Whether the database still has the bytes, in the document or quarantined.
fn kept(place: &Place, doc: DocId, bytes: &[u8]) -> bool {
    let reader = SqliteReader::open(&place.workspace).expect("opened");
    let chunks = reader.chunks(doc).expect("read");
    let aside = reader.quarantined_rows().expect("read");
    chunks.iter().any(|chunk| chunk.bytes == bytes) || aside.iter().any(|row| row.bytes == bytes)
}

fn hostile() -> Option<Vec<PathBuf>> {
    let data = std::env::var_os("TRACEBOOK_DATA").map(PathBuf::from);
    let data = data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"));
    let folder = data.join("automerge");
    if !folder.is_dir() {
        assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "{} is missing", folder.display());
        println!("left out: {} is not here", folder.display());
        return None;
    }
    let files = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("listed").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| !path.ends_with("README.md") && !path.ends_with("LICENSE")).collect();
    files.sort();
    assert!(files.len() > 15);
    Some(files)
}

fn hostile_documents(instead: bool) {
    let Some(mut files) = hostile() else { return };
    if cfg!(debug_assertions) && !instead {
        println!("left out: moby-dick.automerge, which automerge without optimisation takes minutes for");
        files.retain(|file| !file.ends_with("moby-dick.automerge"));
    }
    let (place, notes) = adopted(files.len());
    for (file, (_, doc)) in files.iter().zip(&notes) {
        plant(&place, *doc, &fs::read(file).expect("read"), instead);
    }
    let text = format!("{FIRST}typed");
    for (file, (name, doc)) in files.iter().zip(&notes) {
        let bytes = fs::read(file).expect("read");
        let which = file.file_name().expect("named").to_string_lossy().into_owned();
        let mut done = None;
        assert_fast(&which, LIMIT, || {
            let begun = Instant::now();
            done = Some(place.run(&["cat", name]));
            begun.elapsed()
        });
        let done = done.expect("read");
        match done.code {
            Some(0) => assert_eq!(done.out, text, "{which}"),
            _ => done.refused(3, "the note cannot be read"),
        }
        assert!(kept(&place, *doc, &bytes), "{which}: its bytes are gone after {done:?}");
        let begun = Instant::now();
        let edited = place.run_with(&["edit", name], &insert(text.len(), ", more"));
        assert!(begun.elapsed() < LOADED, "{which}: {:?}", begun.elapsed());
        let there = place.run(&["cat", name]).fine();
        match edited.code {
            Some(0) => assert_eq!(there, format!("{text}, more"), "{which}: it was acknowledged"),
            Some(2 | 3) => {
                assert!(edited.errors.starts_with("tracebook: ") && edited.out.is_empty(), "{which}: {edited:?}");
                assert_eq!(there, text, "{which}: it was refused");
            }
            _ => panic!("{which}: {edited:?}"),
        }
        assert!(kept(&place, *doc, &bytes), "{which}: its bytes are gone after {edited:?}");
        let file = fs::read_to_string(place.folder.join(name)).expect("read");
        assert!(file.starts_with(&text), "{which}: the file became {file:?}");
    }
    // `fsck` handles each of them, and afterwards the notes are sound.
    place.run(&["fsck"]);
    place.sound();
    for (file, (name, doc)) in files.iter().zip(&notes) {
        assert!(kept(&place, *doc, &fs::read(file).expect("read")), "{}: after fsck", file.display());
        assert!(place.run(&["cat", name]).fine().starts_with(&text), "{}: after fsck", file.display());
    }
}

#[test]
fn hostile_documents_behind_a_notes_own() {
    hostile_documents(false);
}

#[test]
fn hostile_documents_instead_of_a_notes_own() {
    hostile_documents(true);
}

/// A document from a newer program: it can be read, nothing is written to it, and edits are refused with an error.
#[test]
fn a_newer_document() {
    let newer = include_bytes!("../../data/newer-note.automerge");
    let (place, notes) = adopted(1);
    let (name, doc) = &notes[0];
    plant(&place, *doc, newer, true);
    let text = format!("{FIRST}typed");
    assert_eq!(place.run(&["cat", name]).fine(), text);
    for _ in 0..5 {
        let edited = place.run_with(&["edit", name], &insert(text.len(), ", more"));
        assert!(matches!(edited.code, Some(2 | 3)), "{edited:?}");
        assert!(edited.errors.contains("newer Tracebook") && edited.out.is_empty(), "{edited:?}");
    }
    assert_eq!(place.run(&["cat", name]).fine(), text);
    assert_eq!(fs::read_to_string(place.folder.join(name)).expect("read"), text);
    place.run(&["fsck"]);
    let chunks = SqliteReader::open(&place.workspace).expect("opened").chunks(*doc).expect("read");
    assert!(chunks.len() == 1 && chunks[0].bytes == newer, "{} chunks", chunks.len());
}
