//! No path leads out of a volume: neither a note that is a symlink, nor a folder that was replaced by one before or
//! during a command. Each fault is real, most are made by a sandboxed cell, and each is met through the program.

use crate::program::{Done, House, PROGRAM, is_nightly, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SECRET: &str = "PRIVATE KEY zyzzogeton\n";

/// The names and bytes of the files in a folder, to see what an attack added or changed.
fn all(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .expect("listed")
        .map(|entry| entry.expect("listed").path())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(&path)))
        .map(|(name, bytes)| (name, bytes.unwrap_or_default()))
        .collect();
    found.sort();
    found
}

/// A volume with a note in a folder, and a folder outside the volume with a file of the same name.
fn house() -> House {
    let house = House::with(&[("n.md", "top\n"), ("sub/n.md", "own\n"), ("sub/other.md", "[[n]]\n")]);
    house.write("outside/n.md", SECRET.as_bytes());
    house.write("outside/keep.txt", b"keep");
    house
}

/// Replaces the folder `sub` with a symlink to the folder outside.
fn swap(house: &House) {
    fs::rename(house.path("notes/sub"), house.path("notes/was")).expect("renamed");
    symlink(house.path("outside"), house.path("notes/sub")).expect("linked");
}

fn tells_nothing(done: &Done) {
    assert!(!done.text().contains("PRIVATE KEY") && !done.err.contains("PRIVATE KEY"), "{done:?}");
}

fn is_untouched(house: &House) {
    let expected = vec![("keep.txt".to_owned(), b"keep".to_vec()), ("n.md".to_owned(), SECRET.as_bytes().to_vec())];
    assert_eq!(all(&house.path("outside")), expected);
}

#[test]
fn a_link_that_a_cell_makes_shows_nobody_the_key() {
    let note = "```python\nimport os\nos.symlink('../key', 'key.md')\nos.symlink('../key', 'pic.png')\n\
                os.symlink('/etc', 'etc')\nos.symlink('n.md', 'alias.md')\n```\n\n![[key]]\n![[key.md]]\n\
                ![](pic.png)\n";
    let house = House::with(&[("n.md", note)]);
    house.write("key", SECRET.as_bytes());
    house.run(&["run", "n.md"]).good();
    assert!(house.path("notes/key.md").exists(), "the cell made the link");
    let opened = house.json(&["open", "notes"]);
    let skipped = opened["skipped"].as_array().expect("a list");
    let why = |path: &str| {
        let of = skipped.iter().find(|one| one["path"] == path).unwrap_or_else(|| panic!("{path}: {opened}"));
        of["why"].as_str().expect("a reason").to_owned()
    };
    for path in ["key.md", "pic.png", "etc"] {
        assert!(why(path).contains("leads out of the volume"), "{path}: {}", why(path));
    }
    assert!(why("alias.md").contains("stays in the volume"), "{}", why("alias.md"));
    let listed = house.run(&["ls"]).good().text();
    assert!(
        listed.contains("key.md  (skipped: it is a symlink") && listed.contains("leads out of the volume"),
        "{listed}"
    );
    let checked = house.run(&["fsck"]);
    assert!(checked.text().contains("key.md") && checked.text().contains("leads out of the volume"), "{checked:?}");
    for words in [&["cat", "key.md"][..], &["cat", "key"], &["history", "key.md"], &["edit", "key.md"]] {
        let done = house.run(words);
        assert_ne!(done.code, 0, "{words:?}: {done:?}");
        tells_nothing(&done);
    }
    tells_nothing(&house.run(&["search", "zyzzogeton"]));
    for to in ["out.html", "out.pdf", "out.md", "out.ipynb"] {
        tells_nothing(&house.run(&["export", "n.md", to]).good());
        let page = house.read(to);
        assert!(!page.windows(10).any(|part| part == b"zyzzogeton"), "{to}");
    }
    house.run(&["export", "notes", "folder"]).good();
    house.run(&["export", "notes", "site", "--html"]).good();
    let copied =
        Command::new("grep").args(["-rl", "zyzzogeton", "folder", "site"]).current_dir(house.path("")).output();
    assert_eq!(String::from_utf8_lossy(&copied.expect("grep").stdout), "");
    assert!(fs::symlink_metadata(house.path("folder/key.md")).is_err());
}

#[test]
fn a_folder_that_became_a_link_is_not_read_written_moved_or_removed_through() {
    // Each command runs on a fresh volume whose notes are known, after the folder was replaced unnoticed.
    let commands: &[&[&str]] = &[
        &["cat", "sub/n.md"],
        &["new", "sub/new.md", "--text", "mine"],
        &["new", "sub/deep/new.md", "--text", "mine"],
        &["mv", "n.md", "sub/moved.md"],
        &["mv", "sub/n.md", "moved.md"],
        &["rm", "sub/n.md"],
        &["history", "sub/n.md"],
        &["export", "sub/n.md", "out.html"],
        &["export", "notes", "out"],
        &["search", "zyzzogeton"],
        &["links", "sub/n.md"],
    ];
    for words in commands {
        let house = house();
        swap(&house);
        tells_nothing(&house.run(words));
        is_untouched(&house);
    }
    let house = house();
    swap(&house);
    tells_nothing(&house.fed(&["edit", "sub/n.md"], b"{\"at\":0,\"delete\":0,\"insert\":\"more\"}\n"));
    is_untouched(&house);
    // The typed text isn't lost: it's in the database, and reaches the file once the folder is back.
    fs::remove_file(house.path("notes/sub")).expect("removed");
    fs::rename(house.path("notes/was"), house.path("notes/sub")).expect("renamed");
    let text = house.run(&["cat", "sub/n.md"]).good().text();
    assert!(text == "moreown\n" || text == "own\n", "{text}");
}

/// A note that couldn't be created must block neither unrelated work nor its own deletion.
#[test]
fn a_note_that_cannot_be_made_holds_nothing_up() {
    let house = house();
    swap(&house);
    house.run(&["new", "sub/new.md", "--text", "mine"]).refused(2, "sub is there and isn't read (it is a symlink");
    // Where an empty folder has the name, only the disk says that it can't be made.
    fs::create_dir(house.path("notes/block.md")).expect("made");
    house.run(&["new", "block.md", "--text", "mine"]).refused(2, "block.md");
    let text = house.run(&["cat", "n.md"]).good().text();
    assert_ne!(house.run(&["cp", "n.md", "block.md"]).code, 0);
    let begun = Instant::now();
    let moved = house.run(&["mv", "n.md", "moved.md"]);
    assert!(house.path("notes/moved.md").exists(), "{moved:?}");
    let removed = house.run(&["rm", "block.md"]);
    assert_ne!(removed.code, 0, "{removed:?}");
    // Cells of another note run, and their command doesn't wait for it.
    house.write("notes/cell.md", b"```python\n40 + 2\n```\n");
    assert_eq!(house.run(&["run", "cell.md"]).good().text(), "42\n");
    // Which message appears depends on whether a save was attempted by then.
    let says = ["cannot be deleted before it is saved", "cannot be saved, so it was not deleted"];
    assert!(says.iter().any(|words| removed.err.contains(words)), "{removed:?}");
    house.run(&["undo"]);
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    assert_eq!(house.run(&["cat", "block.md"]).text(), text, "it is kept");
    is_untouched(&house);
}

#[test]
fn what_is_taken_back_does_not_go_through_a_link() {
    for words in [&["undo"][..], &["restore-note", "sub/n.md"], &["restore-note", "sub/n.md", "sub/again.md"]] {
        let house = house();
        house.run(&["rm", "sub/n.md"]).good();
        swap(&house);
        let done = house.run(words);
        assert_ne!(done.code, 0, "{words:?}: {done:?}");
        is_untouched(&house);
        fs::remove_file(house.path("notes/sub")).expect("removed");
        fs::rename(house.path("notes/was"), house.path("notes/sub")).expect("renamed");
        house.run(&["restore-note", "sub/n.md"]).good();
        assert_eq!(house.read("notes/sub/n.md"), b"own\n", "{words:?}");
    }
}

#[test]
fn a_note_that_is_open_is_not_saved_through_a_link() {
    let house = house();
    let mut owner = house.owner("sub/n.md");
    owner.types(0, 0, "one ");
    until("it is saved", || house.read("notes/sub/n.md") == b"one own\n");
    swap(&house);
    owner.types(0, 0, "two ");
    std::thread::sleep(Duration::from_secs(2));
    is_untouched(&house);
    fs::remove_file(house.path("notes/sub")).expect("removed");
    fs::rename(house.path("notes/was"), house.path("notes/sub")).expect("renamed");
    until("it is saved once the folder is back", || house.read("notes/sub/n.md") == b"two one own\n");
    owner.end();
}

/// Sets a flag when it's dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process swaps the folder and a symlink as fast as it can while commands work in the folder.
#[test]
fn a_folder_that_is_swapped_while_commands_work_leads_nowhere() {
    let house = house();
    symlink(house.path("outside"), house.path("notes/link")).expect("linked");
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let (sub, link) = (house.path("notes/sub"), house.path("notes/link"));
            let other = house.path("notes/between");
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    let _ = fs::rename(&sub, &other);
                    let _ = fs::rename(&link, &sub);
                    let _ = fs::rename(&sub, &link);
                    let _ = fs::rename(&other, &sub);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // The swapping ends with a failed check, too: the scope waits for its thread.
        let _stop = StopOnDrop(&stop);
        let begun = Instant::now();
        let time = Duration::from_secs(if is_nightly() { 60 } else { 20 });
        let mut round = 0;
        while begun.elapsed() < time {
            round += 1;
            tells_nothing(&house.run(&["cat", "sub/n.md"]));
            tells_nothing(&house.run(&["new", &format!("sub/new {round}.md"), "--text", "mine"]));
            tells_nothing(&house.fed(&["edit", "sub/n.md"], b"{\"at\":0,\"delete\":0,\"insert\":\"x\"}\n"));
            tells_nothing(&house.run(&["mv", &format!("sub/new {round}.md"), "sub/to.md"]));
            tells_nothing(&house.run(&["rm", "sub/to.md"]));
            tells_nothing(&house.run(&["export", "sub/n.md", &format!("out {round}.html")]));
        }
        assert!(round > 0);
    });
    is_untouched(&house);
}

#[test]
fn what_is_no_file_holds_nothing_up() {
    let house = House::with(&[("a.md", "text\n"), ("b.md", "other\n")]);
    fs::remove_file(house.path("notes/b.md")).expect("removed");
    for name in ["x.md", "b.md", "p.png"] {
        assert!(Command::new("mkfifo").arg(house.path("notes").join(name)).status().expect("mkfifo").success());
    }
    symlink("/dev/zero", house.path("notes/zero.md")).expect("linked");
    symlink("/proc/self/environ", house.path("notes/own.md")).expect("linked");
    symlink("circle.md", house.path("notes/circle.md")).expect("linked");
    let begun = Instant::now();
    let opened = house.run(&["open", "notes"]).good().text();
    assert!(opened.contains("x.md: it is not an ordinary file"), "{opened}");
    assert!(opened.contains("zero.md: it is a symlink (to /dev/zero) that leads out of the volume"), "{opened}");
    for words in [&["ls"][..], &["search", "text"], &["export", "notes", "out"], &["cat", "a.md"], &["fsck"]] {
        house.run(words).good();
    }
    for note in ["x.md", "b.md", "zero.md", "own.md", "circle.md"] {
        house.run(&["cat", note]);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_kernel_does_not_work_in_a_folder_behind_a_link() {
    let cell = "```python\nopen('made.txt', 'w').write('x')\nprint(open('n.md').read())\n```\n";
    let house = House::with(&[("n.md", "top\n"), ("sub/n.md", cell)]);
    house.write("outside/n.md", SECRET.as_bytes());
    house.write("outside/keep.txt", b"keep");
    swap(&house);
    // The program already knows the note's text.
    let done = house.run(&["run", "sub/n.md"]);
    tells_nothing(&done);
    is_untouched(&house);
}

/// Changes a backup's manifest, as anyone who hands over the backup could.
fn tamper(house: &House, change: impl FnOnce(&mut Value)) {
    let path = house.path("B/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).expect("written");
}

/// Writes a file into the backup and returns its manifest entry.
fn entry(house: &House, path: &str, bytes: &[u8]) -> Value {
    house.write(&format!("B/{path}"), bytes);
    let hash = store::BlobHash::of(bytes).to_string();
    json!({"path": path, "kind": "file", "size": bytes.len(), "hash": hash})
}

#[test]
fn a_hostile_backup_writes_nothing_outside_and_allows_nothing() {
    let house = House::with(&[("n.md", "```python\n1\n```\n")]);
    house.write("outside/keep.txt", b"keep");
    house.write("W/config.yaml", b"mcp:\n  servers:\n    evil: {command: sh}\n");
    house.run(&["grant", "n.md", "--network"]).good();
    let open = |folder: &str| {
        let options = host::WorkspaceOptions { program: PROGRAM.into(), create: false };
        host::open_workspace(&house.path(folder), options).expect("a workspace")
    };
    let mut owner = open("W");
    let mut settings = owner.session().settings().clone();
    (settings.carries_out_runs_of, settings.serves_programs) = (vec!["ab".repeat(32)], true);
    owner.run_command(engine::Command::Set { settings: Box::new(settings) }).expect("set");
    owner.close().expect("saved");
    house.run(&["backup", "B"]).good();
    let outside = house.path("outside").to_string_lossy().into_owned();
    let keys = house.path("keys");
    fs::create_dir(&keys).expect("made");
    fs::write(keys.join("key.md"), SECRET).expect("written");
    let manifest: Value = serde_json::from_slice(&house.read("B/manifest.json")).expect("JSON");
    let volume = manifest["mounts"][0]["id"].as_str().expect("an id").to_owned();
    let evil = entry(&house, &format!("volumes/{volume}/way/evil.txt"), b"evil");
    let blob = entry(&house, "blobs/zz/evil", b"evil");
    tamper(&house, |manifest| {
        // A missing folder of the user's, and a folder whose files the backup doesn't contain.
        manifest["mounts"][0]["path"] = json!(house.path("autostart"));
        let id = store::DocId([7; 16]).to_string();
        let far = json!({"id": id, "name": "far", "path": keys});
        manifest["mounts"].as_array_mut().expect("a list").push(far);
        let files = manifest["files"].as_array_mut().expect("a list");
        for (path, to) in [(format!("volumes/{volume}/way"), &outside), ("blobs/zz".to_owned(), &outside)] {
            files.push(json!({"path": path, "kind": "link", "to": to}));
        }
    });
    // The links are restored as links or skipped.
    let restored = house.run(&["restore", "B", "--workspace", "R", "--json"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(restored.err.contains("leads out of its volume"), "{}", restored.err);
    assert!(restored.err.contains("configuration may start programs"), "{}", restored.err);
    let places = restored.json();
    let inside = house.path("R").canonicalize().expect("there");
    for place in places["volumes"].as_array().expect("a list") {
        assert!(Path::new(place["path"].as_str().expect("a path")).starts_with(&inside), "{place}");
    }
    assert!(!house.path("autostart").exists());
    assert!(!house.path("R/config.yaml").exists() && house.path("R/config.yaml.from-backup").exists());
    assert!(fs::symlink_metadata(house.path("R/blobs/zz")).is_err());
    let granted = house.run(&["grant", "n.md", "--workspace", "R"]).good().text();
    assert!(granted.contains("nothing beyond"), "{granted}");
    let settings = |folder: &str| {
        let owner = open(folder);
        let settings = owner.session().settings().clone();
        owner.close().expect("closed");
        (settings.carries_out_runs_of, settings.serves_programs)
    };
    assert_eq!((settings("W").0.len(), settings("R")), (1, (Vec::new(), false)), "no device or program is served");
    tells_nothing(&house.run(&["cat", "key.md", "--workspace", "R"]));
    tells_nothing(&house.run(&["search", "zyzzogeton", "--workspace", "R"]));
    // Files behind the links are never written, even if the backup is trusted.
    tamper(&house, |manifest| {
        manifest["files"].as_array_mut().expect("a list").extend([evil.clone(), blob.clone()]);
    });
    for (words, folder) in [(&["restore", "B"][..], "R2"), (&["restore", "B", "--trusted"], "R3")] {
        let words: Vec<&str> = words.iter().copied().chain(["--workspace", folder]).collect();
        let refused = house.run(&words);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert_eq!(all(&house.path("outside")), [("keep.txt".to_owned(), b"keep".to_vec())], "{words:?}");
    }
}
