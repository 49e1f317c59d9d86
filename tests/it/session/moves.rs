//! Files moved, deleted and restored, with the links to them, and crashes at every point.

use crate::twin::{Step, Twin, World};
use engine::Command;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::disk::DiskReader;
use store::{ActorId, BlobHash, DocId, VolumeDoc};
use text::outline::Outline;
use text::text_edit::TextEdit;

fn mv(twin: &mut Twin, from: &str, to: &str) {
    let note = twin.id(from);
    twin.command(Command::MoveFiles { moves: vec![(note, to.to_owned())] }).expect("moved");
}

const FILES: &[(&str, &str)] = &[
    ("a.md", "# A\n\nsee [[b|the other]] and [b](x/b.md#h)\n"),
    ("x/b.md", "![[a#A]] and [up](../a.md)\n\n# h\n"),
    ("c.md", "---\nup: \"[[b]]\"\n---\nno links but that\n"),
];

#[test]
fn a_move_takes_links_along_and_can_be_taken_back() {
    let mut twin = Twin::with(FILES);
    let b = twin.id("x/b.md");
    twin.open("a.md");
    mv(&mut twin, "x/b.md", "y/z/new b");
    twin.settle();
    assert_eq!(twin.id("y/z/new b.md"), b, "its id, and with it history and outputs, stay");
    assert_eq!(twin.file("a.md").as_deref(), Some("# A\n\nsee [[new b|the other]] and [b](y/z/new%20b.md#h)\n"));
    assert_eq!(twin.file("y/z/new b.md").as_deref(), Some("![[a#A]] and [up](../../a.md)\n\n# h\n"));
    assert_eq!(twin.file("c.md").as_deref(), Some("---\nup: \"[[new b]]\"\n---\nno links but that\n"));
    assert_eq!(twin.file("x/b.md"), None);
    twin.command(Command::UndoMove).expect("undone");
    twin.settle();
    for (path, text) in FILES {
        assert_eq!(twin.file(path).as_deref(), Some(*text), "{path}");
    }
    assert_eq!(twin.id("x/b.md"), b);
    let reject = twin.command(Command::UndoMove).expect_err("once");
    assert!(reject.0.contains("to undo"), "{reject}");
}

#[test]
fn a_note_that_is_open_and_being_typed_into_is_moved() {
    let (mut twin, note) = Twin::on("text\n");
    twin.edit(note, 4, 0, "!");
    mv(&mut twin, "a.md", "b.md");
    twin.edit(note, 5, 0, "?");
    twin.settle();
    assert_eq!((twin.file("a.md"), twin.file("b.md").as_deref()), (None, Some("text!?\n")));
    twin.edit(note, 6, 0, ".");
    twin.settle();
    twin.check_settled(note, "b.md");
    twin.command(Command::Undo { note }).expect("the note's own undo is untouched");
    assert_eq!(twin.text(note), "text\n");
}

#[test]
fn nothing_is_overwritten_by_a_move() {
    let mut twin = Twin::with(FILES);
    let note = twin.id("a.md");
    for (to, why) in [
        ("c.md", "that name already"),
        ("c", "that name already"),
        ("c.md/d.md", "not a folder"),
        ("../d.md", "inside its volume"),
        ("d#e.md", "a link cannot name"),
        ("", "needs a name"),
    ] {
        let reject = twin.command(Command::MoveFiles { moves: vec![(note, to.to_owned())] }).expect_err(to);
        assert!(reject.0.contains(why), "{to}: {reject}");
    }
    // The target is a file that the session doesn't know yet.
    twin.world.files.insert("/u/v/new.md".into(), (b"theirs".to_vec(), 99));
    twin.command(Command::MoveFiles { moves: vec![(note, "new.md".to_owned())] }).expect("begun");
    twin.settle();
    assert_eq!(twin.file("new.md").as_deref(), Some("theirs"));
    assert_eq!(twin.file("a.md").as_deref(), Some(FILES[0].1));
    assert!(twin.session.problems().iter().any(|problem| problem.contains("that name already")));
    assert_eq!(twin.id("a.md"), note);
}

#[test]
fn a_note_with_another_text_than_expected_is_not_deleted() {
    let (mut twin, note) = Twin::on("text\n");
    let expected = BlobHash::of(b"text\n");
    // Between the look at the text and the deletion, somebody types.
    twin.edit(note, 4, 0, "!");
    let reject = twin.command(Command::DeleteIfUnchanged { note, expected }).expect_err("changed");
    assert!(reject.0.contains("has changed"), "{reject}");
    twin.settle();
    assert_eq!(twin.file("a.md").as_deref(), Some("text!\n"));
    let expected = BlobHash::of(b"text!\n");
    twin.command(Command::DeleteIfUnchanged { note, expected }).expect("deleted");
    // Of a deletion and a change of the same text, only one is made.
    let edits = vec![TextEdit { at: 0, delete: 0, insert: "late ".to_owned() }];
    let reject = twin.command(Command::EditIfUnchanged { note, expected, edits }).expect_err("too late");
    assert!(reject.0.contains("being deleted"), "{reject}");
    twin.settle();
    assert_eq!((twin.file("a.md"), twin.session.trash().count()), (None, 1));
}

#[test]
fn a_deleted_note_lies_in_the_trash_and_comes_back_with_its_history() {
    let mut twin = Twin::with(FILES);
    let note = twin.open("c.md");
    let end = twin.note(note).length();
    twin.edit(note, end, 0, "more\n");
    twin.command(Command::DeleteFiles { files: vec![note] }).expect("deleted");
    twin.settle();
    assert_eq!(twin.file("c.md"), None);
    assert!(twin.session.note(note).is_none() && twin.session.locate_file(note).is_none());
    let trashed: Vec<DocId> = twin.session.trash().map(|(file, _)| file).collect();
    assert_eq!(trashed, [note]);
    assert!(twin.world.files.keys().any(|file| file.starts_with(Path::new("/w/trash"))));

    let mut twin = Twin::start(twin.crash(), 2);
    twin.settle();
    twin.outside("c.md", Some("another\n"));
    twin.settle();
    twin.command(Command::RestoreFile { file: note, path: None }).expect("restored");
    twin.settle();
    assert_eq!(twin.session.locate_file(note).map(|(_, path)| path.to_owned()).as_deref(), Some("c 2.md"));
    twin.open("c 2.md");
    assert!(twin.text(note).ends_with("more\n"));
    assert!(twin.note(note).document().is_some_and(|doc| doc.history().len() > 1), "its history is there");
    assert_eq!(twin.session.trash().count(), 0);
    twin.check_settled(note, "c 2.md");
    let volume = twin.session.volumes().next().expect("one");
    let b = twin.id("x/b.md");
    assert_eq!(volume.links.backlinks(b).iter().filter(|(from, _)| *from == note).count(), 1, "its links count again");
}

#[test]
fn the_index_follows_edits_and_lasts() {
    let mut twin = Twin::with(FILES);
    let (a, c) = (twin.id("a.md"), twin.open("c.md"));
    let back = |twin: &Twin, note| twin.session.volumes().next().expect("one").links.backlinks(note).len();
    assert_eq!(back(&twin, a), 2);
    let end = twin.note(c).length();
    twin.edit(c, end, 0, "[[A]]\n");
    twin.settle();
    assert_eq!(back(&twin, a), 3);
    twin.outside("c.md", Some("gone\n"));
    twin.settle();
    assert_eq!(back(&twin, a), 2);
    let mut twin = Twin::start(twin.crash(), 3);
    twin.rest();
    assert_eq!(back(&twin, a), 2);
}

/// The target of each link of each note, computed from the files' texts, in the links' order.
fn targets(twin: &Twin) -> BTreeMap<DocId, Vec<Option<DocId>>> {
    let volume = twin.session.volumes().next().expect("one");
    let notes = volume.files.values().filter(|row| row.kind == store::FileKind::Note);
    notes
        .map(|row| {
            let outline = Outline::of(&twin.file(&row.path).expect("its file"));
            (row.id, outline.links.iter().map(|link| volume.links.link_target(row.id, link)).collect())
        })
        .collect()
}

/// Random renames in a vault of real notes: every link still leads to the same note, and undoing all of them restores
/// every byte.
fn renames_in(vault: &str, seed: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/vaults").join(vault);
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(next) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.strip_prefix(&folder).expect("inside").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if let (true, Ok(text)) = (name.ends_with(".md"), std::fs::read_to_string(&path)) {
                files.push((name, text));
            }
        }
    }
    if files.is_empty() {
        println!("not tested: there is no {}", folder.display());
        return;
    }
    files.sort();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut twin = Twin::with(&borrowed);
    let mut chance = StdRng::seed_from_u64(seed);
    let before = targets(&twin);
    assert!(before.values().flatten().flatten().count() > 20, "the vault has links");
    let mut moves = 0;
    for turn in 0..8 {
        let paths: Vec<String> = {
            let volume = twin.session.volumes().next().expect("one");
            let linked = |path: &&String| !volume.links.backlinks(volume.files[*path].id).is_empty();
            volume.files.keys().filter(|path| turn % 3 == 0 || linked(path)).cloned().collect()
        };
        let from = &paths[chance.random_range(0..paths.len())];
        let name = Path::new(from).file_name().expect("a name").to_string_lossy().into_owned();
        let other = Path::new(&paths[chance.random_range(0..paths.len())]).to_owned();
        let to = match turn % 4 {
            0 => format!("New place/{name}"),
            1 => format!("{} again", from.trim_end_matches(".md")),
            2 => name,
            _ => format!("Deep/er/{}", other.file_name().expect("a name").to_string_lossy()),
        };
        let note = twin.id(from);
        if twin.command(Command::MoveFiles { moves: vec![(note, to.clone())] }).is_err() {
            continue; // the name is taken
        }
        twin.settle();
        moves += usize::from(*from != to);
        for (note, links) in targets(&twin) {
            let path = twin.session.locate_file(note).expect("a place").1;
            let same = links.iter().zip(&before[&note]).position(|(now, was)| was.is_some() && now != was);
            assert_eq!(
                (same, links.len()),
                (None, before[&note].len()),
                "seed {seed}: {from} -> {to}: links of {path}"
            );
        }
    }
    assert!(moves > 2);
    for _ in 0..moves {
        twin.command(Command::UndoMove).expect("undone");
        twin.settle();
    }
    for (path, text) in &files {
        assert_eq!(twin.file(path).as_ref(), Some(text), "seed {seed}: {path}");
    }
}

#[test]
fn links_of_real_vaults_follow_renames() {
    for seed in 1..3 {
        renames_in("kepano", seed);
        renames_in("logseq-docs", seed);
    }
}

/// Moves a note with links to it and checks that every state left by a crash is completed properly.
fn crash_everywhere(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut twin = Twin::with(FILES);
    let ids: Vec<DocId> = ["a.md", "x/b.md", "c.md"].map(|path| twin.id(path)).to_vec();
    twin.open("a.md");
    let mut left: Vec<World> = Vec::new();
    for turn in 0..120 {
        if turn == 5 {
            twin.edit(ids[0], 0, 0, "typed\n");
        }
        if turn == 8 {
            mv(&mut twin, "x/b.md", "y/new.md");
        }
        if turn == 60 {
            let _ = twin.command(Command::DeleteFiles { files: vec![ids[2]] });
        }
        twin.wander(&mut chance);
        left.push(twin.crash());
    }
    let a = "# A\n\nsee [[b|the other]] and [b](x/b.md#h)\n";
    let moved = "# A\n\nsee [[new|the other]] and [b](y/new.md#h)\n";
    for (at, world) in left.into_iter().enumerate() {
        let mut next = Twin::start(world, seed + 1);
        next.settle();
        let place = next.session.locate_file(ids[1]).map(|(_, path)| path.to_owned());
        let place = place.unwrap_or_else(|| panic!("seed {seed}, state {at}: the note is lost"));
        let there = [next.file("x/b.md").is_some(), next.file("y/new.md").is_some()];
        assert_eq!(there, [place == "x/b.md", place == "y/new.md"], "seed {seed}, state {at}");
        let text = next.file("a.md").expect("it stays").replace("typed\n", "");
        assert_eq!(text, if place == "x/b.md" { a } else { moved }, "seed {seed}, state {at}");
        let trashed = next.session.trash().any(|(file, _)| file == ids[2]);
        assert_eq!(next.file("c.md").is_none(), trashed, "seed {seed}, state {at}");
        assert_eq!(next.session.locate_file(ids[2]).is_none(), trashed, "seed {seed}, state {at}");
        assert!(next.session.pending_move().is_none() && next.session.is_saved(), "seed {seed}, state {at}");
    }
}

#[test]
fn a_crash_in_the_middle_of_a_move_loses_nothing() {
    (0..6).for_each(|seed| crash_everywhere(seed * 10));
}

#[test]
fn what_is_typed_while_a_note_goes_to_the_trash_comes_back_with_it() {
    for crash in [false, true] {
        let (mut twin, note) = Twin::on("text\n");
        twin.command(Command::DeleteFiles { files: vec![note] }).expect("deleted");
        // The file is gone, and the session doesn't know yet.
        for _ in 0..100 {
            if twin.file("a.md").is_none() {
                break;
            }
            let step = twin.steps().first().copied().expect("something is under way");
            twin.step(step);
        }
        assert_eq!(twin.file("a.md"), None);
        twin.edit(note, 4, 0, "!");
        while let Some(step) = twin.steps().into_iter().find(|step| matches!(step, Step::Commit { .. })) {
            twin.step(step);
        }
        if crash {
            twin = Twin::start(twin.crash(), 2);
        }
        twin.settle();
        assert!(twin.session.trash().any(|(file, _)| file == note), "crash: {crash}");
        twin.command(Command::RestoreFile { file: note, path: None }).expect("restored");
        twin.settle();
        assert_eq!(twin.file("a.md").as_deref(), Some("text!\n"), "crash: {crash}");
        assert!(twin.session.is_saved());
    }
}

#[test]
fn a_move_that_was_only_said_before_a_crash_waits_for_what_is_not_saved() {
    // A note is created and deleted at once: the disk has only its name and the typed text.
    for steps in 0..60 {
        let mut twin = Twin::with(FILES);
        let volume = twin.session.volumes().next().expect("a volume").id;
        let text = "new\n".to_owned();
        twin.command(Command::NewNote { volume, path: "new.md".to_owned(), text }).expect("made");
        let note = twin.id("new.md");
        twin.command(Command::DeleteFiles { files: vec![note] }).expect("deleted");
        for _ in 0..steps {
            if let Some(step) = twin.steps().first().copied() {
                twin.step(step);
            }
        }
        let mut twin = Twin::start(twin.crash(), 2);
        twin.settle();
        assert!(twin.session.pending_move().is_none(), "after {steps} steps it never ends");
        assert!(twin.session.is_saved(), "after {steps} steps");
        let there = twin.session.locate_file(note).is_some();
        let trashed = twin.session.trash().any(|(file, _)| file == note);
        assert!(!(there && trashed), "after {steps} steps");
        assert_eq!(twin.file("new.md").is_some(), there, "after {steps} steps");
        if trashed {
            twin.command(Command::RestoreFile { file: note, path: None }).expect("restored");
            twin.settle();
            assert_eq!(twin.file("new.md").as_deref(), Some("new\n"), "after {steps} steps");
        }
    }
}

#[test]
fn who_scans_before_the_disk_was_read_finds_nothing_new() {
    let mut twin = Twin::with(FILES);
    let ids: Vec<DocId> = FILES.iter().map(|(path, _)| twin.id(path)).collect();
    twin.outside("a.md", Some("other\n"));
    let mut twin = Twin::start(twin.crash(), 2);
    while twin.session.volumes().next().is_none() {
        let step = twin.steps().first().copied().expect("it starts");
        twin.step(step);
    }
    // Nothing of the volume has been read yet.
    twin.command(Command::Rescan).expect("scanned");
    while let Some(step) = twin.steps().last().copied() {
        twin.step(step);
    }
    twin.settle();
    assert_eq!(FILES.iter().map(|(path, _)| twin.id(path)).collect::<Vec<_>>(), ids);
    let volume = twin.session.volumes().next().expect("a volume").id;
    let chunks = twin.world.disk.chunks(volume).expect("read").into_iter().map(|chunk| chunk.bytes);
    let doc = VolumeDoc::load(volume, &chunks.collect::<Vec<_>>(), ActorId::from([0; 16])).expect("it loads").doc;
    assert_eq!(doc.files().into_keys().collect::<BTreeSet<_>>(), ids.into_iter().collect());
    assert_eq!(twin.file("a.md").as_deref(), Some("other\n"));
}
