//! Tests of access that never leaves its folder.

use super::*;
use std::os::unix::fs::symlink;

fn read(folder: &ConfinedFolder, path: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    folder.open_regular_file(path)?.0.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn nothing_steps_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("there");
    let root = dir.join("root");
    std::fs::create_dir_all(root.join("a/b")).expect("made");
    std::fs::write(dir.join("secret"), b"secret").expect("written");
    std::fs::write(root.join("a/b/in.txt"), b"in").expect("written");
    symlink("../secret", root.join("out")).expect("linked");
    symlink(&dir, root.join("up")).expect("linked");
    symlink("a/b", root.join("down")).expect("linked");
    symlink("../b/in.txt", root.join("a/b/back")).expect("linked");
    symlink(root.join("a/b/in.txt"), root.join("absolute")).expect("linked");
    symlink(root.join("../secret"), root.join("sly")).expect("linked");
    symlink("/proc/self/cwd", root.join("magic")).expect("linked");
    symlink("circle", root.join("circle")).expect("linked");
    let folder = ConfinedFolder::open_root(&root).expect("opened");
    let absolute = dir.join("secret").to_string_lossy().into_owned();
    let outside = ["../secret", "a/../../secret", "out", "up/secret", "sly", "magic", "circle", "/etc/passwd"];
    let inside = ["a/b/in.txt", "./a//b/in.txt", "down/in.txt", "a/b/back", "absolute"];
    for way in inside {
        assert_eq!(read(&folder, way).expect(way), "in");
    }
    for way in outside.into_iter().chain([absolute.as_str()]) {
        let refused = folder.open_file(way).expect_err(way);
        assert!(refused.is_outside(), "{way}: {refused}");
        let above = folder.open_parent(way, true).map(|(folder, name)| folder.original_path().join(name));
        assert!(above.is_err() || above.is_ok_and(|path| path.parent() == Some(folder.original_path())), "{way}");
    }
    // Part by part, as on older systems.
    for way in inside {
        let reached = folder.walk(&path_parts(Path::new(way)).expect("a path"), OFlags::RDONLY, true);
        assert!(reached.is_ok(), "{way}: {reached:?}");
    }
    for way in ["out", "up/secret", "sly", "magic", "circle", "a/b/in.txt/x"] {
        let parts = path_parts(Path::new(way)).expect("a path");
        let reached = folder.walk(&parts, OFlags::RDONLY, true);
        assert!(reached.is_err(), "{way}: {reached:?}");
    }
    let (above, name) = folder.open_parent("new/deep/file.txt", true).expect("made");
    assert_eq!(above.original_path().join(name), folder.original_path().join("new/deep/file.txt"));
    assert_eq!(
        folder.open_parent("down/new.txt", true).expect("made").0.original_path(),
        folder.original_path().join("a/b")
    );
    // What is changed is named by its own path.
    for way in ["down/new.txt", "down/deep/new.txt"] {
        let refused = folder.open_real_parent(way, true).expect_err("refused").to_string();
        assert!(refused.contains("leads elsewhere in the volume"), "{refused}");
        let walked = folder.walk(&path_parts(Path::new(way)).expect("a path")[..1], FOLDER_FLAGS, false);
        assert!(walked.is_err(), "{way}: {walked:?}");
    }
    for way in ["down/in.txt", "a/b/back", "absolute"] {
        let refused = folder.open_real_file(way).expect_err("refused").to_string();
        assert!(refused.contains("the file's own path is a/b/in.txt"), "{refused}");
    }
    assert!(folder.open_real_file("a/b/in.txt").is_ok());
    assert!(folder.open_real_file("out").expect_err("refused").is_outside());
    let refused = folder.open_real_parent("down/new.txt", true).expect_err("refused").to_string();
    assert!(refused.ends_with("the file's own path is a/b/new.txt"), "{refused}");
    assert!(!root.join("a/b/deep").exists());
    let (above, _) = folder.open_real_parent("a/b/deep/new.txt", true).expect("made");
    assert_eq!(above.original_path(), folder.original_path().join("a/b/deep"));
    assert!(folder.open_real_parent("up/new.txt", true).expect_err("refused").is_outside());
    assert!(folder.open_real_parent("gone/new.txt", false).expect_err("refused").is_missing());
    assert!(folder.open_parent("up/new/file.txt", true).expect_err("refused").is_outside());
    assert!(folder.open_parent("gone/file.txt", false).expect_err("refused").is_missing());
    assert_eq!(normalize_path("./a//b/"), Ok("a/b".to_owned()));
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let dir = tempfile::tempdir().expect("a folder");
    let fifo = dir.path().join("x.md");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s.md")).expect("bound");
    std::fs::create_dir(dir.path().join("f.md")).expect("made");
    let folder = ConfinedFolder::open_root(dir.path()).expect("opened");
    for name in ["x.md", "s.md", "f.md"] {
        let refused = folder.open_regular_file(name).map(drop).expect_err(name);
        assert!(refused.to_string().contains("not an ordinary file"), "{refused}");
    }
}

#[test]
fn a_root_may_be_a_symlink_and_is_not_replaced_by_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    for name in ["real", "other", "own"] {
        std::fs::create_dir(at(name)).expect("made");
        std::fs::write(at(name).join("n.md"), name).expect("written");
    }
    symlink(at("real"), at("chosen")).expect("linked");
    let text =
        |root: &Path| ConfinedFolder::open_root(root).map_err(Into::into).and_then(|folder| read(&folder, "n.md"));
    assert_eq!(text(&at("chosen")).expect("read"), "real");
    assert_eq!(text(&at("own")).expect("read"), "own");
    std::fs::rename(at("own"), at("moved")).expect("moved");
    symlink(at("other"), at("own")).expect("linked");
    assert!(text(&at("own")).expect_err("refused").to_string().contains("replaced by a symlink"));
    // A real folder in its place is the user's own change.
    std::fs::remove_file(at("own")).expect("removed");
    std::fs::create_dir(at("own")).expect("made");
    std::fs::write(at("own/n.md"), "new").expect("written");
    assert_eq!(text(&at("own")).expect("read"), "new");
    forget_root(&at("chosen"));
    std::fs::remove_file(at("chosen")).expect("removed");
    symlink(at("other"), at("chosen")).expect("linked");
    assert_eq!(text(&at("chosen")).expect("read"), "other", "chosen again");
}

/// Swaps a folder for a symlink thousands of times a second: nothing is read from or written to the outside.
#[test]
fn a_folder_that_is_swapped_for_a_symlink_leads_nowhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    for name in ["outside", "root", "root/sub"] {
        std::fs::create_dir(at(name)).expect("made");
    }
    std::fs::write(at("outside/n.md"), "secret").expect("written");
    std::fs::write(at("root/sub/n.md"), "own").expect("written");
    symlink(at("outside"), at("root/link")).expect("linked");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let path = ConfinedPath::new(&at("root"), "sub/n.md");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (sub, link) = (at("root/sub"), at("root/link"));
                // A failed exchange is retried at once.
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &sub,
                    rustix::fs::CWD,
                    &link,
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        let (mut own, mut refused) = (0, 0);
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_secs(20) && (own < 500 || refused < 500) {
            match path.read(100) {
                Some(text) => {
                    assert_eq!(text, b"own");
                    own += 1;
                }
                None => refused += 1,
            }
            if let Ok((folder, _)) = path.open_parent(true) {
                // The checks below show where the file was written, if at all.
                let _ = std::fs::write(folder.join(OsStr::new("new.md")), "x");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(own > 0 && refused > 0, "both were met: {own} {refused}");
    });
    let names: Vec<_> = std::fs::read_dir(at("outside")).expect("listed").flatten().collect();
    assert_eq!(names.len(), 1, "nothing was put outside");
}
