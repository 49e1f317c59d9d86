//! A note and its file: other programs write, remove and rename it at any time, and crashes leave the two different.

use crate::twin::{Step, Twin, World};
use engine::{Command, Event, ScanState};
use store::disk::DiskReader;
use store::{BlockId, DocId};

#[test]
fn an_edit_by_another_program_is_the_smallest_splice() {
    let (mut twin, note) = Twin::on("one\n\n```python\nx = 1\n```\n\nend\n");
    twin.edit(note, 0, 0, "0 ");
    twin.settle();
    let ids: Vec<BlockId> = twin.note(note).blocks().map(|block| block.id).collect();
    twin.outside("a.md", Some("0 one\n\n```python\nx = 12\n```\n\nend.\n"));
    twin.settle();
    assert_eq!(twin.text(note), "0 one\n\n```python\nx = 12\n```\n\nend.\n");
    assert_eq!(twin.note(note).blocks().map(|block| block.id).collect::<Vec<_>>(), ids);
    twin.check_settled(note, "a.md");
    let last = twin.note(note).document().expect("loaded").history().last().expect("a change").operations;
    assert_eq!(last, 2, "two characters came");
}

#[test]
fn only_what_another_program_wrote_is_looked_for() {
    let (mut twin, note) = Twin::on("one\n");
    twin.edit(note, 0, 0, "0 ");
    twin.command(Command::CloseNote { note }).expect("closed");
    twin.settle();
    let scans = |twin: &Twin| twin.session.volumes().map(|volume| volume.scans).sum::<u64>();
    let before = scans(&twin);
    assert!(twin.session.note(note).is_none() && before > 0);
    twin.touched("a.md");
    twin.settle();
    assert_eq!(scans(&twin), before, "it is as it was written here");
    twin.outside("a.md", Some("0 one\ntwo\n"));
    twin.settle();
    assert!(scans(&twin) > before);
    twin.open("a.md");
    assert_eq!(twin.text(note), "0 one\ntwo\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn both_sides_of_a_race_stay() {
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 3, 0, " ours");
    twin.outside("a.md", Some("one\ntwo\nthree theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "one ours\ntwo\nthree theirs\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn an_edit_by_another_program_while_closed_is_merged() {
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    let mut world = twin.crash();
    world.files.insert("/u/v/a.md".into(), (b"our one\ntwo theirs\n".to_vec(), 77));
    let mut next = Twin::start(world, 2);
    next.settle();
    assert_eq!(next.file("a.md").as_deref(), Some("our one\ntwo theirs\n"));
    next.open("a.md");
    assert_eq!(next.text(note), "our one\ntwo theirs\n");
    next.check_settled(note, "a.md");
    assert!(next.note(note).document().expect("loaded").history().len() > 3, "the history goes on");
}

#[test]
fn an_edit_by_another_program_after_a_crash_is_merged_with_what_was_typed() {
    // The typed text was durable but not in the file; then another program wrote the file before the restart.
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 0, 0, "our ");
    let mut states = 0;
    while let Some(step) = twin.steps().first().copied() {
        twin.step(step);
        let mut world = twin.crash();
        if twin.written > 0 || world.disk.last_journal_seq().expect("read") == 0 {
            continue;
        }
        states += 1;
        world.files.insert("/u/v/a.md".into(), (b"one\ntwo\nthree theirs\n".to_vec(), 77));
        let mut next = Twin::start(world, 2);
        next.settle();
        next.open("a.md");
        assert_eq!(next.text(note), "our one\ntwo\nthree theirs\n", "state {states}");
        next.check_settled(note, "a.md");
    }
    assert!(states > 3, "only {states} states");
}

/// Starts on each of these worlds after another program has written the file once more, and checks the note.
fn meet_again(worlds: Vec<World>, note: DocId, theirs: &str, expected: &dyn Fn(&World) -> String) {
    for (at, mut world) in worlds.into_iter().enumerate() {
        let expected = expected(&world);
        world.files.insert("/u/v/a.md".into(), (theirs.as_bytes().to_vec(), 77));
        let mut next = Twin::start(world, 2);
        next.settle();
        next.open("a.md");
        assert_eq!(next.text(note), expected, "state {at}");
        next.check_settled(note, "a.md");
    }
}

#[test]
fn what_was_merged_before_a_crash_is_not_merged_again() {
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 0, 0, "0 ");
    twin.settle();
    twin.edit(note, 0, 0, "our ");
    twin.outside("a.md", Some("0 one\ntwo theirs\nthree\n"));
    // All steps until the file is written. At some point the merge is in the journal, and must not be applied twice.
    let mut worlds = twin.crashes();
    for _ in 0..6 {
        twin.pass(100);
        worlds.push(twin.crash());
    }
    let before = |world: &World| world.files.values().all(|(bytes, _)| bytes.starts_with(b"0"));
    worlds.retain(before);
    assert!(worlds.len() > 5);
    let typed = |world: &World| world.disk.last_journal_seq().expect("read") > 1;
    meet_again(worlds, note, "0 one\ntwo theirs\nthree again\n", &|world| {
        let ours = if typed(world) { "our " } else { "" };
        format!("{ours}0 one\ntwo theirs\nthree again\n")
    });
}

#[test]
fn a_file_that_was_empty_when_the_note_was_first_edited() {
    let (mut twin, note) = Twin::on("");
    twin.edit(note, 0, 0, "ours\n");
    let mut worlds = twin.crashes();
    worlds.retain(|world| world.files.values().all(|(bytes, _)| bytes.is_empty()));
    meet_again(worlds, note, "theirs\n", &|world| {
        if world.disk.last_journal_seq().expect("read") == 0 { "theirs\n" } else { "theirs\nours\n" }.to_owned()
    });
}

#[test]
fn a_file_that_changed_before_the_note_was_first_edited() {
    // The change is noticed while the note is open, or happens before it's opened.
    for open in [true, false] {
        let mut twin = Twin::with(&[("a.md", "")]);
        let note = twin.id("a.md");
        if open {
            twin.open("a.md");
        }
        twin.world.files.insert("/u/v/a.md".into(), (b"theirs\n".to_vec(), 55));
        twin.command(Command::Rescan).expect("asked");
        if !open {
            twin.command(Command::OpenNote { note }).expect("opened");
        }
        twin.rest();
        assert_eq!(twin.text(note), "theirs\n");
        twin.edit(note, 0, 0, "ours ");
        let mut worlds = twin.crashes();
        worlds.retain(|world| world.files.values().all(|(bytes, _)| bytes == b"theirs\n"));
        meet_again(worlds, note, "theirs\nagain\n", &|world| {
            if world.disk.last_journal_seq().expect("read") == 0 { "theirs\nagain\n" } else { "ours theirs\nagain\n" }
                .to_owned()
        });
    }
}

#[test]
fn what_was_read_before_a_write_is_old() {
    let (mut twin, note) = Twin::on("one\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    // The watcher reports a file, and a worker has read it but reports late: meanwhile we type and write.
    twin.outside("a.md", Some("our one\n"));
    for step in [Step::Notice, Step::Take, Step::Work] {
        twin.step(step);
    }
    twin.mute = true;
    twin.edit(note, 0, 0, "all ");
    twin.pass(1_000);
    assert_eq!(twin.file("a.md").as_deref(), Some("all our one\n"));
    twin.mute = false;
    twin.settle();
    assert_eq!(twin.text(note), "all our one\n", "what a worker read before is no edit of another program");
    twin.check_settled(note, "a.md");
}

#[test]
fn what_another_program_writes_during_a_write_is_seen() {
    let (mut twin, note) = Twin::on("one\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    twin.edit(note, 0, 0, "all ");
    twin.pass(450);
    // The write is done but not reported; then another program writes, and a worker reads that at once.
    twin.mute = true;
    twin.pass(100);
    assert_eq!(twin.file("a.md").as_deref(), Some("all our one\n"));
    twin.outside("a.md", Some("all our one\ntheirs\n"));
    twin.rest();
    assert_eq!(twin.text(note), "all our one\n");
    twin.mute = false;
    twin.settle();
    assert_eq!(twin.text(note), "all our one\ntheirs\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn a_removed_file_is_made_again_by_typing_only() {
    let (mut twin, note) = Twin::on("text\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    twin.outside("a.md", None);
    twin.settle();
    twin.pass(60_000);
    assert_eq!(twin.file("a.md"), None, "it is not made again by itself");
    assert!(twin.note(note).file.gone);
    assert_eq!(twin.text(note), "our text\n", "the note keeps its text");
    twin.edit(note, 0, 0, "all ");
    twin.settle();
    assert_eq!(twin.file("a.md").as_deref(), Some("all our text\n"));
    assert!(!twin.note(note).file.gone);
    twin.check_settled(note, "a.md");
}

#[test]
fn a_file_that_is_removed_and_comes_back_is_no_second_text() {
    // Some editors save by removing the file and writing a new one.
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    twin.outside("a.md", None);
    twin.settle();
    assert!(twin.note(note).file.gone);
    twin.outside("a.md", Some("our one\ntwo, theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "our one\ntwo, theirs\n");
    twin.check_settled(note, "a.md");
    // The same with an edit in between.
    twin.outside("a.md", None);
    twin.settle();
    twin.edit(note, 0, 0, "all ");
    twin.outside("a.md", Some("our one\ntwo, theirs!\n"));
    twin.settle();
    assert_eq!(twin.text(note), "all our one\ntwo, theirs!\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn a_file_that_vanishes_while_it_is_written_is_no_second_text() {
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    // The file is removed during the write and restored before the retry.
    twin.edit(note, 0, 0, "all ");
    twin.pass(499);
    twin.world.files.clear();
    twin.pass(100);
    assert_eq!(twin.file("a.md"), None);
    twin.outside("a.md", Some("our one\ntwo, theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "all our one\ntwo, theirs\n");
    twin.check_settled(note, "a.md");
    // Without an event from the watcher, the write itself notices the change.
    twin.edit(note, 0, 0, "not ");
    twin.pass(499);
    twin.world.files.clear();
    twin.pass(100);
    twin.world.files.insert("/u/v/a.md".into(), (b"all our one\ntwo, theirs!\n".to_vec(), 99));
    twin.settle();
    assert_eq!(twin.text(note), "not all our one\ntwo, theirs!\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn a_rename_keeps_the_note_and_its_history() {
    let (mut twin, note) = Twin::on("text\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    let history = twin.note(note).document().expect("loaded").history().len();
    for open in [true, false] {
        let (from, to) = if open { ("a.md", "b.md") } else { ("b.md", "sub/c.md") };
        if !open {
            twin.command(Command::CloseNote { note }).expect("closed");
            twin.settle();
        }
        let text = twin.file(from).expect("there");
        twin.outside(from, None);
        twin.outside(to, Some(&text));
        twin.command(Command::Rescan).expect("asked");
        twin.settle();
        assert_eq!(twin.id(to), note, "{to}");
        twin.open(to);
        twin.edit(note, 0, 0, "again ");
        twin.settle();
        twin.check_settled(note, to);
        assert_eq!(twin.file(from), None);
    }
    assert_eq!(twin.note(note).document().expect("loaded").history().len(), history + 2);
}

#[test]
fn an_empty_file_is_an_edit_that_can_be_taken_back() {
    let (mut twin, note) = Twin::on("# Much\n\n```python\nwork()\n```\n");
    twin.edit(note, 0, 0, "\n");
    twin.settle();
    twin.outside("a.md", Some(""));
    twin.settle();
    assert_eq!(twin.text(note), "");
    twin.check_settled(note, "a.md");
    let doc = twin.note(note).document().expect("loaded");
    let history = doc.history();
    let before: store::ChangeHash = history[history.len() - 2].hash.parse().expect("a hash");
    assert_eq!(doc.text_at(&[before]).expect("read"), "\n# Much\n\n```python\nwork()\n```\n");
}

#[test]
fn a_new_note_is_there_or_it_is_not() {
    let mut twin = Twin::with(&[("a.md", "a\n")]);
    let volume = twin.session.volumes().next().expect("a volume").id;
    let text = "# New\n\n```python\n1\n```\n";
    let command = Command::NewNote { volume, path: "sub/new".to_owned(), text: text.to_owned() };
    twin.command(command).expect("made");
    let mut seen = [0, 0];
    for (at, world) in twin.crashes().into_iter().enumerate() {
        let mut next = Twin::start(world, 2);
        next.settle();
        let known = next.session.volumes().next().expect("a volume").files.contains_key("sub/new.md");
        let expected = known.then(|| text.to_owned());
        assert_eq!(next.file("sub/new.md"), expected, "state {at}");
        if known {
            let note = next.open("sub/new.md");
            assert_eq!(next.text(note), text);
            next.check_settled(note, "sub/new.md");
        }
        seen[usize::from(known)] += 1;
    }
    // One commit creates everything, so it's missing only until something is written.
    assert!(seen[0] == 1 && seen[1] > 1, "{seen:?}");
    twin.settle();
    let note = twin.id("sub/new.md");
    twin.check_settled(note, "sub/new.md");
}

#[test]
fn changes_from_elsewhere_reach_a_note_that_nobody_looks_at() {
    let (mut twin, note) = Twin::on("one\n");
    let mut other = Twin::start(twin.crash(), 2);
    let mut edited = Twin::start(twin.crash(), 3);
    for replica in [&mut other, &mut edited] {
        replica.settle();
    }
    // One replica where the note was never edited, and one where it was.
    edited.open("a.md");
    edited.edit(note, 0, 0, "here ");
    edited.settle();
    edited.command(Command::CloseNote { note }).expect("closed");
    edited.settle();
    twin.edit(note, 3, 0, " there");
    twin.settle();
    for (mut replica, expected) in [(other, "one there\n"), (edited, "here one there\n")] {
        assert!(replica.session.note(note).is_none());
        for (_, bytes) in twin.sent.iter().filter(|(doc, _)| *doc == note) {
            replica.event(Event::Remote { note, bytes: bytes.clone() });
        }
        replica.settle();
        assert_eq!(replica.file("a.md").as_deref(), Some(expected));
        assert!(replica.session.note(note).is_none(), "it is let go again");
        replica.open("a.md");
        assert_eq!(replica.text(note), expected);
        replica.check_settled(note, "a.md");
    }
}

#[test]
fn at_a_start_the_tree_is_there_before_the_links_are() {
    let twin = Twin::with(&[("a.md", "[[b]]\n"), ("b.md", "words\n"), ("c.md", "[[b]]\n")]);
    let mut twin = Twin::start(twin.crash(), 2);
    let tree = |twin: &Twin| twin.session.volumes().next().is_some_and(|volume| volume.files.len() == 3);
    while !tree(&twin) {
        let step = *twin.steps().first().expect("something is still to come");
        twin.step(step);
    }
    let volume = twin.session.volumes().next().expect("a volume");
    assert!(volume.known && !volume.is_indexed() && volume.links.outlines().next().is_none());
    assert_eq!(volume.scanning, ScanState::Idle, "the folder is looked through once all is known");
    // Meanwhile a note can be read, but not renamed, since links to it may not be known yet.
    let (a, b) = (twin.id("a.md"), twin.id("b.md"));
    twin.command(Command::OpenNote { note: a }).expect("opened");
    let reject = twin.command(Command::MoveFiles { moves: vec![(b, "d.md".to_owned())] }).expect_err("too early");
    assert!(reject.0.contains("still being read"), "{reject}");
    twin.settle();
    assert_eq!(twin.text(a), "[[b]]\n");
    let volume = twin.session.volumes().next().expect("a volume");
    assert!(volume.is_indexed());
    let sources: Vec<DocId> = volume.links.backlinks(b).into_iter().map(|(source, _)| source).collect();
    assert_eq!(sources, [a, twin.id("c.md")]);
}
