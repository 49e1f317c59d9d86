//! Disks without space or permission. These tests need a small disk of their own, so root; `TRACEBOOK_CI=1` makes them
//! mandatory.

use super::{FIRST, NOTE, Place, Running, insert, until};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A small disk mounted for a test, unmounted on drop.
pub(crate) struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Mounts a tmpfs of this size. `None` if mounting isn't permitted.
    pub(crate) fn small(size: &str) -> Option<Mounted> {
        let dir = tempfile::tempdir().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(dir.path());
        let why = match mount.output() {
            Ok(done) if done.status.success() => return Some(Mounted(dir)),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "mount must work where TRACEBOOK_CI is set: {why}");
        println!("left out: needs root ({why})");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Remounts the disk with this option: `ro` or `rw`.
    pub(super) fn remount(&self, how: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(self.path()).output();
        let done = done.expect("mount");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status(); // the folder is removed after it
    }
}

/// Fills a disk to the last block with a file. Removing the file frees the space.
pub(crate) fn ballast(dir: &Path) -> PathBuf {
    let path = dir.join("ballast");
    let mut bytes = 4 << 20;
    let mut file = fs::File::create(&path).expect("made");
    while bytes > 0 {
        if file.write_all(&vec![0; bytes]).is_err() {
            bytes /= 2;
        }
    }
    path
}

/// A place whose workspace is on a small disk and whose folder is elsewhere.
fn small_workspace() -> Option<(Mounted, Place)> {
    let small = Mounted::small("6m")?;
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (small.path().join("workspace"), dir.path().join("Notes"));
    Some((small, Place::of(dir, workspace, folder, &[(NOTE, FIRST)])))
}

/// A place whose note folder is on a small disk and whose workspace is elsewhere.
fn small_folder() -> Option<(Mounted, Place)> {
    let small = Mounted::small("1m")?;
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (dir.path().join("workspace"), small.path().join("Notes"));
    Some((small, Place::of(dir, workspace, folder, &[(NOTE, FIRST)])))
}

/// Types into an open note until the disk refuses. Returns the typed text, the number of acknowledged edits, and when
/// the refusal was reported.
fn type_until_full(running: &mut Running) -> (String, usize, Instant) {
    let (mut typed, mut sent, mut acknowledged) = (String::new(), 0, 0);
    loop {
        let word = format!("{sent}:{} ", "w".repeat(20_000));
        running.send(&insert(FIRST.len() + typed.len(), &word));
        typed.push_str(&word);
        sent += 1;
        assert!(sent < 1_000, "the disk never fills up");
        until("an answer", || {
            acknowledged += running.lines.try_iter().inspect(|line| assert!(super::is_acknowledgement(line))).count();
            acknowledged == sent || running.said().contains("not on disk yet")
        });
        if acknowledged < sent {
            return (typed, acknowledged, Instant::now());
        }
    }
}

#[test]
fn a_full_disk_that_gets_room_again() {
    let Some((small, place)) = small_workspace() else { return };
    let mut running = Running::start(&place, &["edit", NOTE]);
    running.send(&insert(FIRST.len(), ""));
    running.acknowledged();
    let ballast = ballast(small.path());
    let (typed, acknowledged, told) = type_until_full(&mut running);
    assert!(running.said().contains("the disk is full"), "{}", running.said());
    while told.elapsed() < Duration::from_millis(1_200) {
        assert_eq!(running.lines.try_iter().count(), 0, "acknowledged, and nowhere on disk");
        thread::sleep(Duration::from_millis(50));
    }
    fs::remove_file(ballast).expect("removed");
    running.acknowledged();
    let all = format!("{FIRST}{typed}more");
    running.send(&insert(all.len() - 4, "more"));
    running.acknowledged();
    let done = running.done();
    assert_eq!(done.out.lines().count(), acknowledged + 3);
    done.fine();
    assert!(place.cat() == all && place.on_disk() == all);
    place.sound();
}

/// A cell prints onto a full disk: it runs, its output is printed, and an error says that the output isn't kept.
#[test]
fn a_full_disk_while_outputs_are_written() {
    let Some((small, place)) = small_workspace() else { return };
    let cell = "print('ready')\nbase = int(input())\nfor n in range(30_000): print(base + n)";
    let note = format!("```python timeout=0\n{cell}\n```\n");
    fs::write(place.folder.join("Prints.md"), note).expect("written");
    place.run_with(&["run", "Prints.md"], "100000\n").fine();
    let mut running = Running::start(&place, &["run", "Prints.md"]);
    until("it asks", || running.lines.try_iter().any(|line| line.trim() == "ready"));
    let full = ballast(small.path());
    running.send("200000\n");
    let done = running.done();
    // The whole output doesn't fit; part of the note's own share may still have.
    let said = done.errors.contains("not on disk") || done.errors.contains("only the beginning of this is kept");
    assert!(said && matches!(done.code, Some(0 | 3)), "{:?} {:.2000}", done.code, done.errors);
    assert!(done.out.contains("\n200000\n200001\n"), "{:.100}", done.out);
    fs::remove_file(full).expect("removed");
    place.run(&["outputs", "Prints.md"]).fine();
    let again = place.run_with(&["run", "Prints.md"], "300000\n").fine();
    assert!(again.ends_with("329998\n329999\n"), "{}", again.len());
    place.sound();
}

/// The disk stays full: the program exits with an error, and acknowledged edits are there.
#[test]
fn a_full_disk_that_stays_full() {
    let Some((small, place)) = small_workspace() else { return };
    let mut running = Running::start(&place, &["edit", NOTE]);
    running.send(&insert(FIRST.len(), ""));
    running.acknowledged();
    let ballast = ballast(small.path());
    let (typed, acknowledged, _) = type_until_full(&mut running);
    let done = running.done();
    done.refused(3, "not on disk");
    assert_eq!(done.out.lines().count(), acknowledged + 1);
    fs::remove_file(ballast).expect("removed");
    let text = place.cat();
    let words: Vec<&str> = typed.split_inclusive(' ').collect();
    let kept: String = words[..acknowledged].concat();
    assert!(text.strip_prefix(FIRST).is_some_and(|text| text.starts_with(&kept) && typed.starts_with(text)));
    assert!(place.on_disk() == text);
    place.sound();
}

/// The note folder's disk is full, the workspace's isn't: typing is safe there, and the file is always complete.
#[test]
fn a_full_folder() {
    let Some((small, place)) = small_folder() else { return };
    let ballast = ballast(small.path());
    let mut running = Running::start(&place, &["edit", NOTE]);
    let word = "w".repeat(50_000);
    let all = format!("{FIRST}{word}{word}");
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let over = Arc::new(AtomicBool::new(false));
    let (file, watched, end) = (place.file(), seen.clone(), over.clone());
    let watcher = thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            let text = fs::read_to_string(&file).expect("read");
            let mut watched = watched.lock().expect("held");
            if watched.last() != Some(&text) {
                watched.push(text);
            }
            drop(watched);
            thread::sleep(Duration::from_millis(1));
        }
    });
    running.send(&insert(FIRST.len(), &word));
    running.acknowledged();
    // Long enough for the file's write to have been attempted and to have failed.
    thread::sleep(Duration::from_millis(1_500));
    running.send(&insert(FIRST.len(), &word));
    running.acknowledged();
    assert_eq!(*seen.lock().expect("held"), [FIRST], "the file is as it was");
    fs::remove_file(ballast).expect("removed");
    until("the file", || place.on_disk() == all);
    running.done().fine();
    over.store(true, Ordering::Relaxed);
    watcher.join().expect("watched");
    assert!(*seen.lock().expect("held") == [FIRST, &all], "the old text, then the new one");
    assert_eq!(fs::read_dir(&place.folder).expect("listed").count(), 1, "nothing is left over");
    place.sound();
}

/// The folder is full until the program exits: the next process writes the file.
#[test]
fn a_full_folder_at_the_end() {
    let Some((small, place)) = small_folder() else { return };
    let ballast = ballast(small.path());
    let word = "w".repeat(50_000);
    let done = place.run_with(&["edit", NOTE], &insert(FIRST.len(), &word));
    assert!(done.errors.contains("disk is full"), "the file is behind, and nobody is told: {}", done.errors);
    assert_eq!(done.fine().lines().count(), 1);
    assert_eq!(place.on_disk(), FIRST);
    let all = format!("{FIRST}{word}");
    assert!(place.cat() == all);
    assert_eq!(place.on_disk(), FIRST);
    fs::remove_file(ballast).expect("removed");
    assert!(place.cat() == all && place.on_disk() == all);
    place.sound();
}

#[test]
fn a_read_only_folder() {
    let Some((small, place)) = small_folder() else { return };
    small.remount("ro");
    let done = place.run_with(&["edit", NOTE], &insert(FIRST.len(), "typed"));
    assert!(done.errors.contains("belongs to another user"), "the file is behind, and nobody is told: {}", done.errors);
    assert_eq!(done.fine().lines().count(), 1, "it is safe in the workspace");
    assert_eq!(place.on_disk(), FIRST);
    let all = format!("{FIRST}typed");
    assert_eq!(place.cat(), all);
    small.remount("rw");
    assert_eq!(place.cat(), all);
    assert_eq!(place.on_disk(), all);
    place.sound();
}

#[test]
fn a_read_only_workspace() {
    let Some((small, place)) = small_workspace() else { return };
    small.remount("ro");
    let done = place.run_with(&["edit", NOTE], &insert(0, "typed"));
    done.refused(3, "it is read-only or belongs to another user");
    assert_eq!(done.out, "", "nothing is acknowledged");
    assert_eq!(place.cat(), FIRST, "it is read all the same");
    assert_eq!(place.on_disk(), FIRST);
    small.remount("rw");
    assert_eq!(place.cat(), FIRST);
    place.sound();
}

#[test]
fn a_search_index_without_room_says_so_and_comes_back() {
    let Some(small) = Mounted::small("3m") else { return };
    let house = crate::program::House::with(&[("Soup.md", "# Soup\n\nPeel the carrots.\n")]);
    std::os::unix::fs::symlink(small.path(), house.path("W/index")).expect("linked");
    let ballast = ballast(small.path());
    let full = house.run(&["search", "carrots"]);
    assert!(full.code == 0 && full.text().contains("Soup"), "a copy of the index answers: {full:?}");
    // Everything else works as before.
    house.edit("Soup.md", 0, 0, "Turnips. ");
    assert!(house.cat("Soup.md").starts_with(b"Turnips. # Soup"));
    fs::remove_file(ballast).expect("removed");
    let hits = house.json(&["search", "turnips"]);
    assert_eq!(hits[0]["title"], "Soup", "{hits}");
}
