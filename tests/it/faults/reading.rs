//! Reading where nothing can be written: every reading command answers at once with what is there and writes nothing.
//! Commands that would change something say why they can't.

use super::disks::{Mounted, ballast};
use super::{FIRST, NOTE, Place, Running, insert, until};
use crate::program::assert_fast;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A second note, with a cell, a todo and a link.
const OTHER: &str = "# Charlie\n\n- [ ] buy delta\n\nSee [[a]].\n\n```python\nprint('echo')\n```\n";
const BASE: &str = "views:\n  - type: table\n    name: All\n";
/// The maximum duration of a command that reads so little.
const AT_ONCE: Duration = Duration::from_secs(8);

/// A workspace with some history on a disk of its own, its notes elsewhere.
fn used() -> Option<(Mounted, Place)> {
    let small = Mounted::small("24m")?;
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (small.path().join("workspace"), dir.path().join("Notes"));
    let place = Place::of(dir, workspace, folder, &[(NOTE, FIRST), ("c.md", OTHER)]);
    fs::write(place.folder.join("all.base"), BASE).expect("written");
    place.run_with(&["edit", NOTE], &insert(FIRST.len(), "typed foxtrot\n")).fine();
    place.run(&["run", "c.md"]).fine();
    place.run(&["search", "foxtrot"]).fine();
    Some((small, place))
}

/// The reading commands, each with text that it must print.
fn expectations(elsewhere: &Path) -> Vec<(Vec<String>, &'static str)> {
    let out = elsewhere.join("out.html").to_string_lossy().into_owned();
    let words = |line: &str| line.split(' ').map(ToOwned::to_owned).collect::<Vec<String>>();
    vec![
        (words("cat a.md"), "typed foxtrot"),
        (words("ls"), "a.md"),
        (words("ls --json"), "c.md"),
        (words("history a.md"), ""),
        (words("search foxtrot"), "a.md"),
        (words("links a.md"), "c.md"),
        (words("todos"), "buy delta"),
        (words("outputs c.md"), "echo"),
        (words("cells c.md"), ""),
        (words("runs"), ""),
        (words("sessions"), ""),
        (words("tasks"), ""),
        (words("base all.base"), "c"),
        (words("trash"), ""),
        (words("memory"), ""),
        (words("budget"), ""),
        (words("tools"), ""),
        (words("doctor"), ""),
        (words("fsck --check"), "in order"),
        (vec!["export".to_owned(), "c.md".to_owned(), out], ""),
    ]
}

/// Asserts that every command reads at once and leaves the workspace unchanged.
fn all_read(place: &Place) {
    let elsewhere = tempfile::tempdir().expect("a folder");
    for (words, expected) in expectations(elsewhere.path()) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_fast(&words.join(" "), AT_ONCE, || {
            let begun = Instant::now();
            let done = place.run(&words);
            let took = begun.elapsed();
            assert_eq!(done.code, Some(0), "{words:?}: {done:?}");
            assert!(done.out.contains(expected), "{words:?}: {done:?}");
            let _ = fs::remove_file(elsewhere.path().join("out.html"));
            took
        });
    }
}

/// Asserts that writing commands say that they can't write and why, and that they change nothing.
fn none_write(place: &Place, why: &str) {
    for (words, input) in [
        (vec!["edit", NOTE], insert(0, "lost?")),
        (vec!["new", "new.md"], String::new()),
        (vec!["mv", NOTE, "moved.md"], String::new()),
        (vec!["rm", "c.md"], String::new()),
        (vec!["trash", "--empty"], String::new()),
    ] {
        let begun = Instant::now();
        let done = place.run_with(&words, &input);
        if words[0] == "trash" && done.code == Some(0) {
            continue; // there was nothing in it
        }
        assert!(matches!(done.code, Some(2 | 3)), "{words:?}: {done:?}");
        assert!(done.errors.contains(why), "{words:?}: {done:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{words:?} took {:?}", begun.elapsed());
    }
}

fn tree(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = walkdir(folder);
    files.into_iter().map(|path| (path.clone(), fs::read(path).expect("read"))).collect()
}

fn walkdir(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("listed").path();
        if path.is_dir() { found.extend(walkdir(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn with_a_full_disk_everything_is_read() {
    let Some((small, place)) = used() else { return };
    let full = ballast(small.path());
    let before = tree(&place.folder);
    all_read(&place);
    none_write(&place, "the disk is full");
    assert!(tree(&place.folder) == before, "the user's files are as they were");
    fs::remove_file(full).expect("removed");
    assert!(place.cat().ends_with("typed foxtrot\n"));
    place.sound();
}

/// Opening a folder and asking an agent both fail at once with the reason, and leave nothing half done.
#[test]
fn with_a_full_disk_nothing_is_opened_and_nobody_is_asked() {
    let Some((small, place)) = used() else { return };
    let asked: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&asked);
    let model = crate::line::agents::model(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        ("Said by a model.".to_owned(), Vec::new())
    });
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
         \"{model}/v1\", model: m, context: 32000}}\n"
    );
    fs::write(place.workspace.join("config.yaml"), config).expect("written");
    let more = tempfile::tempdir().expect("a folder");
    fs::write(more.path().join("d.md"), "# Delta\n").expect("written");
    let folder = more.path().to_str().expect("UTF-8");
    let full = ballast(small.path());
    let (before, others) = (tree(&place.folder), tree(more.path()));
    for words in [vec!["open", folder], vec!["ask", "What is in a.md?"]] {
        let begun = Instant::now();
        let done = place.run(&words);
        assert_eq!(done.code, Some(3), "{words:?}: {done:?}");
        assert!(done.errors.contains("the disk is full"), "{words:?}: {done:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{words:?} took {:?}", begun.elapsed());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "no model is paid for an answer that nobody keeps");
    assert!(tree(&place.folder) == before && tree(more.path()) == others, "the user's files are as they were");
    all_read(&place);
    // With space again, both work as if nothing had happened.
    fs::remove_file(full).expect("removed");
    assert!(place.run(&["ask", "What is in a.md?"]).fine().contains("Said by a model."));
    place.run(&["open", folder]).fine();
    assert_eq!(place.run(&["cat", "d.md"]).fine(), "# Delta\n");
    assert!(place.cat().ends_with("typed foxtrot\n"));
    place.sound();
}

/// The same after a crash: text that only the journal has is read, and reaches the file once there is space.
#[test]
fn with_a_full_disk_the_journal_is_read_too() {
    let Some((small, place)) = used() else { return };
    let mut running = Running::start(&place, &["edit", NOTE]);
    running.send(&insert(0, "golf "));
    running.acknowledged();
    running.kill();
    let full = ballast(small.path());
    for _ in 0..2 {
        let read = place.run(&["cat", NOTE]).fine();
        assert!(read.starts_with("golf # Alpha") && read.matches("golf").count() == 1, "{read}");
    }
    fs::remove_file(full).expect("removed");
    assert!(place.cat().starts_with("golf # Alpha"));
    assert_eq!(place.on_disk().matches("golf").count(), 1);
    place.sound();
}

/// The disk fills up while a process has the workspace open: other processes read through it.
#[test]
fn with_a_full_disk_others_read_by_the_program_that_has_it_open() {
    let Some((small, place)) = used() else { return };
    let mut running = Running::start(&place, &["edit", "c.md"]);
    running.send(&insert(0, ""));
    running.acknowledged();
    let full = ballast(small.path());
    // From now on it can't save what is typed, and says so.
    running.send(&insert(0, &"w".repeat(200_000)));
    until("it is said", || running.said().contains("not on disk yet"));
    all_but_the_note_that_waits(&place);
    fs::remove_file(full).expect("removed");
    running.acknowledged();
    running.done().fine();
    place.sound();
}

fn all_but_the_note_that_waits(place: &Place) {
    let elsewhere = tempfile::tempdir().expect("a folder");
    for (words, expected) in expectations(elsewhere.path()) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // The owner's own process checks typed text that isn't on disk yet.
        if ["fsck", "export", "cells", "outputs"].contains(&words[0]) {
            continue;
        }
        assert_fast(&words.join(" "), AT_ONCE, || {
            let begun = Instant::now();
            let done = place.run(&words);
            assert_eq!(done.code, Some(0), "{words:?}: {done:?}");
            assert!(done.out.contains(expected), "{words:?}: {done:?}");
            begun.elapsed()
        });
    }
}

#[test]
fn on_a_read_only_disk_everything_is_read() {
    let Some((small, place)) = used() else { return };
    small.remount("ro");
    all_read(&place);
    none_write(&place, "read-only or belongs to another user");
    small.remount("rw");
    place.sound();
}

/// A read-only volume: its notes can be read, and typed text is kept in the workspace.
#[test]
fn a_read_only_volume_is_read() {
    let Some(small) = Mounted::small("4m") else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (dir.path().join("workspace"), small.path().join("Notes"));
    let place = Place::of(dir, workspace, folder, &[(NOTE, FIRST), ("c.md", OTHER)]);
    fs::write(place.folder.join("all.base"), BASE).expect("written");
    place.run_with(&["edit", NOTE], &insert(FIRST.len(), "typed foxtrot\n")).fine();
    place.run(&["run", "c.md"]).fine();
    small.remount("ro");
    all_read(&place);
    small.remount("rw");
    place.sound();
}
