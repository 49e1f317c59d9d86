//! A crash at every point: durable edits are there, and unfinished work is completed.

use crate::twin::{Twin, World};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use store::DocId;
use store::disk::DiskReader;

/// Makes a random edit that fits the note's text.
fn random_edit(twin: &mut Twin, note: DocId, chance: &mut StdRng) {
    const PIECES: &[&str] = &[
        "a",
        "b ",
        "word",
        "\n",
        "\n\n",
        "\u{e4}\u{1f600}",
        "```python\n",
        "```\n",
        "x = 1\n",
        "# T\n",
        "```",
        "`",
        "\r\n",
    ];
    let text = twin.text(note);
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let from = chance.random_range(0..boundaries.len());
    let to =
        if chance.random_ratio(1, 3) { (from + chance.random_range(0..12)).min(boundaries.len() - 1) } else { from };
    let insert = if to > from && chance.random_bool(0.5) { "" } else { PIECES[chance.random_range(0..PIECES.len())] };
    twin.edit(note, boundaries[from], boundaries[to] - boundaries[from], insert);
}

/// Runs a session with random keystrokes in a world that answers in random order, and starts a new process on the state
/// after every step: its text is that of the last keystroke on disk, and it completes unfinished work.
fn crash_everywhere(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let first = "# Title\n\npara one\n\n```python\nx = 1\n```\n\nend\n";
    let (mut twin, note) = Twin::on(first);
    let mut texts = BTreeMap::from([(0, first.to_owned())]);
    let mut left: Vec<World> = Vec::new();
    let mut commits = twin.world.disk.commit_count();
    for turn in 0..160 {
        if turn < 120 && chance.random_ratio(1, 4) {
            random_edit(&mut twin, note, &mut chance);
            twin.check(note);
            texts.insert(twin.session.saving().last, twin.text(note));
        }
        let written = twin.written;
        twin.wander(&mut chance);
        // Only changes outside the process can make a difference.
        if twin.world.disk.commit_count() != commits || twin.written != written {
            commits = twin.world.disk.commit_count();
            left.push(twin.crash());
        }
    }
    twin.settle();
    twin.check_settled(note, "a.md");
    assert!(left.len() > 20, "the run came to only {} states", left.len());
    for (at, world) in left.into_iter().enumerate() {
        let seq = world.disk.last_journal_seq().expect("read");
        let expected = &texts[&seq];
        let mut next = Twin::start(world, seed + 1);
        next.settle();
        assert_eq!(next.file("a.md").as_ref(), Some(expected), "seed {seed}, state {at}: the file");
        next.open("a.md");
        assert_eq!(&next.text(note), expected, "seed {seed}, state {at}");
        next.check_settled(note, "a.md");
        // Editing can continue afterwards.
        next.edit(note, 0, 0, "on ");
        next.settle();
        next.check_settled(note, "a.md");
    }
}

#[test]
fn a_crash_anywhere_keeps_what_is_durable() {
    for seed in 0..12 {
        crash_everywhere(seed);
    }
}

#[test]
fn a_crash_between_the_first_keystroke_and_the_document() {
    let (mut twin, note) = Twin::on("one\n\n```python\n1\n```\n");
    twin.edit(note, 3, 0, "!");
    let mut states = Vec::new();
    while let Some(step) = twin.steps().first().copied() {
        twin.step(step);
        states.push(twin.crash());
    }
    for world in states {
        let typed = world.disk.last_journal_seq().expect("read") == 1;
        let mut next = Twin::start(world, 5);
        next.settle();
        next.open("a.md");
        assert_eq!(next.text(note), if typed { "one!\n\n```python\n1\n```\n" } else { "one\n\n```python\n1\n```\n" });
        next.check_settled(note, "a.md");
    }
}
