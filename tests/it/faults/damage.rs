//! Files of the workspace and the volume that were cut, emptied or overwritten: the text is the old or the new one, or
//! an error says how to recover.

use super::{FIRST, NOTE, Place, Running, copy, insert, until};
use std::fs;
use std::path::{Path, PathBuf};
use store::disk::DATABASE_FILE;

/// Types, kills the process once `settle` returns true, and returns the typed text.
fn killed(place: &Place, settle: impl Fn(&str) -> bool) -> String {
    let mut running = Running::start(place, &["edit", NOTE]);
    let mut text = FIRST.to_owned();
    for number in 0..60 {
        let word = format!("{number} ");
        running.send(&insert(text.len(), &word));
        text.push_str(&word);
        running.acknowledged();
    }
    until("the moment", || settle(&text));
    running.kill();
    text
}

/// The log of a killed owner, cut at any place: the text is a prefix of what was typed, or an error points to `fsck`.
#[test]
fn a_cut_log() {
    for mirrored in [false, true] {
        let place = Place::new();
        let text = killed(&place, |text| !mirrored || place.on_disk() == text);
        let file = place.on_disk();
        let log = fs::read(place.workspace.join("tracebook.db-wal")).expect("read");
        let mut seen = std::collections::BTreeSet::new();
        for cut in 0..40 {
            let at = log.len() * cut / 39;
            let dir = tempfile::tempdir().expect("a folder");
            let workspace = dir.path().join("workspace");
            copy(&place.workspace, &workspace, &["tracebook.db-shm", "tracebook.db-wal", "lock", "socket"]);
            fs::write(workspace.join("tracebook.db-wal"), &log[..at]).expect("written");
            fs::write(place.file(), &file).expect("written");
            let copied = Place { workspace, folder: place.folder.clone(), volume: place.volume.clone(), _dir: dir };
            let done = copied.run(&["cat", NOTE]);
            match done.code {
                Some(3) => done.refused(3, "fsck"),
                // Cut before the volume was recorded: the note is unknown, and the error says so.
                Some(2) if done.errors.contains("there is no note") => assert!(at < log.len() / 2),
                Some(2) => done.refused(2, "its volume has no folder on this device"),
                _ => {
                    let there = done.fine();
                    // The log lost what the file already has. Both typed the same text, and nothing is lost.
                    let twice = there.strip_prefix(&file).filter(|_| file != FIRST);
                    let typed = text.strip_prefix(FIRST).expect("typed behind it");
                    let fits = text.starts_with(&there) || twice.is_some_and(|more| typed.contains(more));
                    let which = format!("cut at {at} of {}, mirrored {mirrored}", log.len());
                    assert!(fits && there.starts_with(&file), "{which}: {there:?}");
                    assert_eq!(place.on_disk(), there, "{which}: the file has it, too");
                    seen.insert(there.len());
                    // If the log has only the first half of a volume's record, `fsck` completes it.
                    copied.run(&["fsck"]);
                    copied.sound();
                }
            }
        }
        assert!(seen.contains(&text.len()), "the whole log gives the whole text");
        assert!(mirrored || seen.len() > 5, "{seen:?}");
    }
}

/// Databases that were cut, emptied or overwritten never become a new workspace silently, and `fsck` restores them.
#[test]
fn a_damaged_database() {
    let place = Place::new();
    place.run_with(&["edit", NOTE], &insert(FIRST.len(), "typed")).fine();
    let text = place.on_disk();
    assert_eq!(text, format!("{FIRST}typed"));
    let database = fs::read(place.workspace.join(DATABASE_FILE)).expect("read");
    let cuts = (0..5).map(|cut| database[..database.len() * (cut + 1) / 6].to_vec());
    let garbage: Vec<u8> = b"garbage ".repeat(16).into_iter().chain(database[128..].iter().copied()).collect();
    for (number, damaged) in cuts.chain([Vec::new(), garbage]).enumerate() {
        for with_log in [true, false] {
            let which = format!("damage {number}, with its log: {with_log}");
            let dir = tempfile::tempdir().expect("a folder");
            let workspace = dir.path().join("workspace");
            let without: &[&str] =
                if with_log { &["tracebook.db-shm"] } else { &["tracebook.db-shm", "tracebook.db-wal"] };
            copy(&place.workspace, &workspace, without);
            fs::write(workspace.join(DATABASE_FILE), &damaged).expect("written");
            let copied = Place { workspace, folder: place.folder.clone(), volume: place.volume.clone(), _dir: dir };
            let mut opened = 0;
            for words in [["cat", NOTE], ["open", place.folder.to_str().expect("UTF-8")]] {
                let done = copied.run(&words);
                if with_log && done.code == Some(0) {
                    // The log has every page that is missing from the database.
                    opened += 1;
                    continue;
                }
                assert_eq!(done.code, Some(3), "{which}: {done:?}");
                assert!(done.errors.contains("fsck"), "{which}: {done:?}");
            }
            let untouched = fs::read(copied.workspace.join(DATABASE_FILE)).expect("read") == damaged;
            assert!(opened > 0 || untouched, "{which}: it is as it was");
            let mended = copied.run(&["fsck"]);
            assert!(mended.code == Some(1) || opened > 0, "{which}: {mended:?}");
            let there = copied.run(&["cat", NOTE]);
            assert_eq!(there.code, Some(0), "{which}: {there:?} after {mended:?}");
            assert_eq!(there.out, text, "{which}");
            assert_eq!(place.on_disk(), text, "{which}");
            let checked = copied.run(&["fsck", "--check"]);
            assert_eq!(checked.code, Some(0), "{which}: {checked:?} after {mended:?}");
        }
    }
}

fn changes(place: &Place) -> usize {
    let history = place.run(&["history", NOTE, "--json"]).fine();
    serde_json::from_str::<Vec<serde_json::Value>>(&history).expect("JSON").len()
}

#[test]
fn a_file_emptied_while_closed() {
    let place = Place::new();
    place.run_with(&["edit", NOTE], &insert(FIRST.len(), "typed")).fine();
    let before = changes(&place);
    fs::write(place.file(), "").expect("emptied");
    assert_eq!(place.cat(), "");
    assert_eq!(place.on_disk(), "");
    assert!(changes(&place) > before, "it can be undone from the history");
    place.sound();
    place.run_with(&["edit", NOTE], &insert(0, "anew")).fine();
    assert_eq!((place.cat(), place.on_disk()), ("anew".to_owned(), "anew".to_owned()));
    // A note that was never edited simply has its file's text.
    let place = Place::new();
    fs::write(place.file(), "").expect("emptied");
    assert_eq!(place.cat(), "");
    place.sound();
}

#[test]
fn a_file_emptied_while_open() {
    let place = Place::new();
    let mut running = Running::start(&place, &["edit", NOTE]);
    running.send(&insert(FIRST.len(), "typed"));
    running.acknowledged();
    until("the file", || place.on_disk() == format!("{FIRST}typed"));
    let before = changes(&place);
    fs::write(place.file(), "").expect("emptied");
    let mut expected = String::new();
    for number in (0..20).rev() {
        let word = format!("{number} ");
        running.send(&insert(0, &word));
        running.acknowledged();
        expected.insert_str(0, &word);
    }
    until("the merge", || place.cat() == expected);
    until("the file", || place.on_disk() == expected);
    running.done().fine();
    assert_eq!((place.cat(), place.on_disk()), (expected.clone(), expected));
    assert!(changes(&place) > before);
    place.sound();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("listed").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_zeroed_output() {
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (dir.path().join("workspace"), dir.path().join("Notes"));
    let text = format!("{FIRST}\n```python\nprint('long ' * 40000)\n```\n");
    let place = Place::of(dir, workspace, folder, &[(NOTE, &text)]);
    assert!(place.run(&["run", NOTE]).fine().starts_with("long long "));
    let blobs = files(&place.workspace.join("blobs"));
    assert_eq!(blobs.len(), 1, "{blobs:?}");
    place.sound();
    let length = fs::metadata(&blobs[0]).expect("there").len();
    for zeros in [length, 0] {
        fs::write(&blobs[0], vec![0; usize::try_from(length.min(zeros)).expect("small")]).expect("written");
        let kept = place.run(&["outputs", NOTE, "--json"]).fine();
        let kept: serde_json::Value = serde_json::from_str(&kept).expect("one line of JSON");
        let shown = kept["outputs"][0]["text"].as_str().expect("text");
        assert!(shown.len() >= 60_000 && shown.starts_with("long long "), "{} bytes are shown", shown.len());
        let checked = place.run(&["fsck", "--check"]);
        let name = blobs[0].file_name().expect("named").to_string_lossy().into_owned();
        assert!(checked.code == Some(3) && checked.out.contains(&name), "{name}: {checked:?}");
        assert_eq!(place.cat(), text);
    }
}
