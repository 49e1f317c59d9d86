//! A workspace that is older than the user's files, or damaged anywhere: the file has typed text once, keeps what it
//! has, and `fsck` reports what is wrong.

use super::{Done, FIRST, NOTE, Place, Running, copy, insert};
use crate::program::is_nightly;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A snapshot of the workspace and the note's file.
struct Moment {
    workspace: PathBuf,
    file: String,
    /// The text that was acknowledged by then.
    typed: String,
}

fn signal(process: u32, name: &str) {
    let done = Command::new("kill").args([name, &process.to_string()]).status().expect("kill");
    assert!(done.success());
}

/// Types words, some at the end and some elsewhere, and keeps a snapshot after each.
fn moments(place: &Place, dir: &Path, words: usize, seed: u64) -> Vec<Moment> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut running = Running::start(place, &["edit", NOTE]);
    let (mut text, mut moments, mut at) = (FIRST.to_owned(), Vec::new(), FIRST.len());
    for number in 0..words {
        let word = format!("w{number} ");
        if rng.random_range(0..5) == 0 {
            // Moves to a place between two words.
            at = text.match_indices(' ').nth(rng.random_range(0..4)).map_or(text.len(), |(at, _)| at + 1);
        }
        running.send(&insert(at, &word));
        running.acknowledged();
        text.insert_str(at, &word);
        at += word.len();
        // Sometimes long enough for a burst to end and the file to be written.
        thread::sleep(Duration::from_millis([0, 5, 200, 900][rng.random_range(0..4)]));
        // The process is stopped, so that all copied files are from the same moment.
        signal(running.child.id(), "-STOP");
        let workspace = dir.join(number.to_string());
        copy(&place.workspace, &workspace, &["lock", "socket"]);
        moments.push(Moment { workspace, file: place.on_disk(), typed: text.clone() });
        signal(running.child.id(), "-CONT");
    }
    running.done().fine();
    moments.push(Moment { workspace: dir.join("none"), file: place.on_disk(), typed: text });
    moments
}

/// A place with a copy of one snapshot's workspace and the file of another.
fn put(place: &Place, workspace: &Path, file: &str) -> Place {
    let dir = tempfile::tempdir().expect("a folder");
    let own = dir.path().join("workspace");
    copy(workspace, &own, &[]);
    fs::write(place.file(), file).expect("written");
    Place { workspace: own, folder: place.folder.clone(), volume: place.volume.clone(), _dir: dir }
}

fn counts(text: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Asserts that no word is duplicated and none of the file's words is lost.
#[track_caller]
fn once(which: &str, there: &str, file: &str, all: &str) {
    let (there_counts, all) = (counts(there), counts(all));
    for (word, count) in &there_counts {
        let most = all.get(word).copied().unwrap_or(1);
        assert!(*count <= most, "{which}: {word} stands there {count} times: {there:?} of {file:?}");
    }
    for word in counts(file).keys() {
        assert!(there_counts.contains_key(word), "{which}: {word} is lost: {there:?} of {file:?}");
    }
}

/// The workspace after each commit, with the file as it was then and at every later time.
#[test]
fn a_workspace_of_any_moment_and_a_file_of_any_later_one() {
    for seed in [1, 2] {
        println!("seed {seed}");
        let place = Place::new();
        let dir = tempfile::tempdir().expect("a folder");
        let moments = moments(&place, dir.path(), 14, seed);
        let mut newer = 0;
        for (at, moment) in moments.iter().enumerate().take(moments.len() - 1) {
            let mut files: Vec<&str> = moments[at..].iter().map(|later| later.file.as_str()).collect();
            files.dedup();
            for file in files {
                let which = format!("seed {seed}, workspace after {at} words, {} bytes of file", file.len());
                let copied = put(&place, &moment.workspace, file);
                let there = copied.run(&["cat", NOTE]).fine();
                once(&which, &there, file, &moments[moments.len() - 1].typed);
                // Words are only added, so the later of the two has all of them.
                let expected = if file.len() >= moment.typed.len() { file } else { &moment.typed };
                assert_eq!(there, expected, "{which}");
                assert_eq!(place.on_disk(), expected, "{which}: the file");
                newer += usize::from(file.len() > moment.typed.len());
                copied.sound();
            }
        }
        assert!(newer > 10, "{newer} files were newer than their workspace");
    }
}

/// Damages a file's bytes in a random way. Returns a description.
fn damage(bytes: &mut Vec<u8>, rng: &mut StdRng) -> String {
    if bytes.is_empty() {
        return "left alone".to_owned();
    }
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..5) {
        0 => {
            bytes[at] ^= 1 << rng.random_range(0..8);
            format!("a bit at {at}")
        }
        1 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        2 => {
            let page = at / 4096 * 4096;
            let end = (page + 4096).min(bytes.len());
            bytes[page..end].fill(0);
            format!("zeros at {page}")
        }
        3 => {
            let end = (at + rng.random_range(1..200)).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = rng.random());
            format!("noise at {at}")
        }
        _ => {
            let size = bytes.len();
            let cut = size - rng.random_range(0..size.min(20_000));
            bytes.truncate(cut);
            format!("cut at {cut} of {size}")
        }
    }
}

fn is_refusal(done: &Done) -> bool {
    matches!(done.code, Some(2 | 3)) && done.errors.starts_with("tracebook: ")
}

/// Any workspace file is damaged anywhere, at any moment, with the user's file from then or later.
#[test]
fn random_damage_is_told_of_or_does_no_harm() {
    // Another seed tests other damage: TRACEBOOK_SEED=7.
    let seed = std::env::var("TRACEBOOK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_124);
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let place = Place::new();
    let dir = tempfile::tempdir().expect("a folder");
    let moments = moments(&place, dir.path(), 12, seed);
    let all = moments[moments.len() - 1].typed.clone();
    let (mut refused, mut told, mut harmless) = (0, 0, 0);
    // More of them every night.
    let rounds = if is_nightly() { 160 } else { 80 };
    for round in 0..rounds {
        let at = rng.random_range(0..moments.len() - 1);
        let moment = &moments[at];
        let file = if rng.random() { &moment.file } else { &moments[rng.random_range(at..moments.len())].file };
        let copied = put(&place, &moment.workspace, file);
        let ends = ["", "", "-wal", "-wal", "-wal", "-shm", "-progress"];
        let name = format!("tracebook.db{}", ends[rng.random_range(0..ends.len())]);
        let path = copied.workspace.join(&name);
        let mut bytes = fs::read(&path).unwrap_or_default();
        let which = format!("round {round}, after {at} words, {name}: {}", damage(&mut bytes, &mut rng));
        fs::write(&path, bytes).expect("written");
        let before = copied.run(&["fsck", "--check"]);
        let read = copied.run(&["cat", NOTE]);
        let file_now = place.on_disk();
        once(&format!("{which}: the file"), &file_now, file, &all);
        if read.code == Some(0) {
            once(&which, &read.out, file, &all);
            let complete = counts(&moment.typed).keys().all(|word| counts(&read.out).contains_key(word));
            assert!(complete || before.code == Some(3), "{which}: words are lost, and fsck says {before:?}");
            harmless += usize::from(complete);
        } else {
            assert!(is_refusal(&read), "{which}: {read:?}");
            refused += 1;
        }
        told += usize::from(before.code == Some(3));
        // After the repair it's the same text.
        let mended = copied.run(&["fsck"]);
        assert!(matches!(mended.code, Some(0 | 1 | 3)), "{which}: {mended:?}");
        let again = copied.run(&["cat", NOTE]);
        if again.code == Some(0) {
            once(&format!("{which}, mended"), &again.out, file, &all);
        } else {
            assert!(is_refusal(&again), "{which}: {again:?}");
        }
        once(&format!("{which}, mended: the file"), &place.on_disk(), file, &all);
    }
    println!("{refused} could not be opened, {told} were told of, {harmless} did no harm");
    assert!(told * 8 > rounds && harmless * 8 > rounds, "{refused} {told} {harmless} of {rounds}");
}
