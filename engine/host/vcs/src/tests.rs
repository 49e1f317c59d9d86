//! Tests with real repositories, created by libgit2 in temporary folders.

use super::*;
use std::fs;

/// Creates a repository with one commit, and with a volume in its folder `notes`.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let made = Repository::init(dir.path()).expect("made");
    let mut config = made.config().expect("a configuration");
    config.set_str("user.name", "Ada").expect("set");
    config.set_str("user.email", "ada@example.org").expect("set");
    fs::create_dir(dir.path().join("notes")).expect("made");
    fs::write(dir.path().join("notes/one.md"), "one\n").expect("written");
    fs::write(dir.path().join("beside.txt"), "beside\n").expect("written");
    let mut index = made.index().expect("an index");
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).expect("added");
    index.write().expect("written");
    let tree = made.find_tree(index.write_tree().expect("a tree")).expect("found");
    let who = made.signature().expect("somebody");
    made.commit(Some("HEAD"), &who, &who, "first", &tree, &[]).expect("committed");
    drop(tree);
    dir
}

#[test]
fn what_changed_is_told_and_committed_and_nothing_else() {
    let dir = repository();
    let notes = dir.path().join("notes");
    let part = RepositoryFolder::open(&notes).expect("opened");
    assert_eq!(part.status().expect("told"), (vec![], true));
    fs::write(notes.join("one.md"), "one\ntwo\n").expect("written");
    fs::create_dir(notes.join("sub")).expect("made");
    fs::write(notes.join("sub/new.md"), "new\n").expect("written");
    fs::write(dir.path().join("beside.txt"), "changed, and staged by the user\n").expect("written");
    let repository = Repository::open(dir.path()).expect("opened");
    let mut index = repository.index().expect("an index");
    index.add_path(Path::new("beside.txt")).expect("staged");
    index.write().expect("written");

    let (lines, _) = part.status().expect("told");
    assert_eq!(lines, [" M one.md", "?? sub/new.md"], "only what lies in the folder");
    let (diff, whole) = part.diff(None).expect("a diff");
    assert!(whole && diff.contains("+two\n") && diff.contains("+new\n") && !diff.contains("beside"), "{diff}");
    let (diff, _) = part.diff(Some("sub")).expect("a diff");
    assert!(diff.contains("+new\n") && !diff.contains("two"), "{diff}");

    // This hook would prevent the commit if it ran.
    let hook = dir.path().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").expect("written");
    let (commit, files) = part.commit("Second\n\nwith words", &["sub".to_owned()]).expect("committed");
    assert_eq!((commit.summary.as_str(), commit.author.as_str()), ("Second", "Ada"));
    assert_eq!(files, ["sub/new.md"]);
    assert_eq!(part.status().expect("told").0, [" M one.md"]);
    let (_, files) = part.commit("Third", &[]).expect("committed");
    assert_eq!(files, ["one.md"]);
    let log: Vec<String> = part.log(20).expect("a log").into_iter().map(|commit| commit.summary).collect();
    assert_eq!(log, ["Third", "Second", "first"]);
    let head = repository.head().and_then(|head| head.peel_to_tree()).expect("a tree");
    let beside = head.get_path(Path::new("beside.txt")).and_then(|entry| entry.to_object(&repository)).expect("there");
    assert_eq!(beside.as_blob().expect("a file").content(), b"beside\n", "what the user staged is not ours");
    assert_eq!(RepositoryFolder::open(dir.path()).and_then(|whole| whole.status()).expect("told").0, ["M  beside.txt"]);

    fs::remove_file(notes.join("one.md")).expect("removed");
    part.commit("Gone", &["one.md".to_owned()]).expect("committed");
    assert_eq!(part.status().expect("told").0, Vec::<String>::new());
    assert!(matches!(part.commit("Nothing", &[]), Err(VcsError::Refused(why)) if why.contains("nothing has changed")));
}

#[test]
fn a_repository_whose_files_are_in_the_folder_above_is_refused() {
    let dir = repository();
    let notes = dir.path().join("notes");
    fs::rename(dir.path().join(".git"), notes.join(".git")).expect("moved");
    let mut config = Repository::open(&notes).and_then(|made| made.config()).expect("a configuration");
    for (worktree, is_own) in [("../..", false), ("../../notes", true)] {
        config.set_str("core.worktree", worktree).expect("set");
        match RepositoryFolder::open(&notes) {
            Ok(_) => assert!(is_own, "{worktree}"),
            Err(why) => assert!(!is_own && why.to_string().contains("files are elsewhere"), "{worktree}: {why}"),
        }
    }
    // Those of a submodule are where its folder names it.
    fs::create_dir_all(dir.path().join("modules")).expect("made");
    fs::rename(notes.join(".git"), dir.path().join("modules/notes")).expect("moved");
    fs::write(notes.join(".git"), "gitdir: ../modules/notes\n").expect("written");
    let mut config = Repository::open(&notes).and_then(|made| made.config()).expect("a configuration");
    config.set_str("core.worktree", "../../notes").expect("set");
    assert!(RepositoryFolder::open(&notes).is_ok());
}

#[cfg(unix)]
#[test]
fn an_agent_uses_no_repository_that_only_the_folder_names() {
    let (private, dir) = (repository(), tempfile::tempdir().expect("a folder"));
    let made = Repository::open(private.path()).expect("opened");
    let place = |name: &str| dir.path().canonicalize().expect("there").join(name);
    let borrowed = |name: &str| {
        let refused = RepositoryFolder::open_own(&place(name)).err().map(|why| why.to_string());
        let says = |why: &String| why.contains("doesn't name this folder") || why.contains("files are elsewhere");
        assert!(refused.as_ref().is_none_or(says), "{refused:?}");
        refused.is_some()
    };
    made.worktree("tree", &place("tree"), None).expect("a worktree");
    assert!(!borrowed("tree") && RepositoryFolder::open_own(private.path()).is_ok());
    // Nor one whose folder is somebody else's.
    let tree = fs::read_to_string(place("tree/.git")).expect("read");
    let private = private.path().join(".git").display().to_string();
    for (name, text) in [("file", format!("gitdir: {private}\n")), ("copy", tree)] {
        fs::create_dir(place(name)).expect("made");
        fs::write(place(name).join(".git"), text).expect("written");
        assert!(borrowed(name), "{name}");
    }
    std::os::unix::fs::symlink(&private, place("file").join("link")).expect("linked");
    fs::remove_file(place("file/.git")).expect("removed");
    fs::rename(place("file/link"), place("file/.git")).expect("renamed");
    assert!(borrowed("file"), "a link");
    fs::create_dir_all(place("common/.git")).expect("made");
    fs::write(place("common/.git/HEAD"), "ref: refs/heads/main\n").expect("written");
    fs::write(place("common/.git/commondir"), format!("{private}\n")).expect("written");
    assert!(borrowed("common"));
}

#[test]
fn what_is_not_ours_is_refused() {
    let dir = repository();
    let notes = dir.path().join("notes");
    let part = RepositoryFolder::open(&notes).expect("opened");
    fs::write(dir.path().join("beside.txt"), "changed\n").expect("written");
    for outside in ["../beside.txt", "/etc/passwd", ".git/config", "sub/../../beside.txt"] {
        assert!(part.commit("Outside", &[outside.to_owned()]).is_err(), "{outside}");
        assert!(part.diff(Some(outside)).is_err(), "{outside}");
    }
    assert!(part.commit("  ", &[]).is_err());
    fs::write(notes.join(".gitattributes"), "*.bin filter=lfs\n").expect("written");
    fs::write(notes.join("large.bin"), "bytes\n").expect("written");
    let why = part.commit("Filtered", &["large.bin".to_owned()]).expect_err("refused").to_string();
    assert!(why.contains("filter lfs"), "{why}");

    let empty = tempfile::tempdir().expect("a folder");
    // If the temporary folder is itself in a repository, opening it succeeds.
    if let Err(error) = RepositoryFolder::open(empty.path()) {
        assert!(matches!(error, VcsError::None(_)) && error.to_string().contains("git init"), "{error}");
    }
    let fresh = Repository::init(empty.path()).expect("made");
    let part = RepositoryFolder::open(empty.path()).expect("opened");
    assert_eq!((part.log(5).expect("a log"), part.status().expect("told").0), (vec![], vec![]));
    fs::write(empty.path().join("a.md"), "a\n").expect("written");
    let mut config = fresh.config().expect("a configuration");
    config.set_str("user.name", "Ada").expect("set");
    config.set_str("user.email", "ada@example.org").expect("set");
    assert_eq!(part.commit("First", &[]).expect("committed").1, ["a.md"]);
}

#[test]
fn a_log_that_takes_too_long_says_so() {
    let dir = repository();
    let notes = dir.path().join("notes");
    let part = RepositoryFolder::open(&notes).expect("opened");
    for number in 0..3 {
        fs::write(notes.join("one.md"), format!("{number}\n")).expect("written");
        part.commit(&format!("Change {number}"), &[]).expect("committed");
    }
    for (revisions, count) in [(Vec::new(), 4), (vec!["HEAD~2..HEAD".to_owned()], 2)] {
        let range = part.commit_range(&revisions).expect("a range");
        let log = |limit, time| part.log_range(&range, limit, time).map(|(log, whole)| (log.len(), whole));
        assert_eq!(log(10, Duration::ZERO).expect("a log"), (0, false));
        assert_eq!(log(10, LOG_TIMEOUT).expect("a log"), (count, true));
        assert_eq!(log(1, LOG_TIMEOUT).expect("a log"), (1, true));
        let of_file = |time| part.file_commits("one.md", &range, 10, time).map(|(log, whole)| (log.len(), whole));
        assert_eq!(of_file(Duration::ZERO).expect("a log"), (0, false));
        assert_eq!(of_file(LOG_TIMEOUT).expect("a log"), (count, true));
    }
}

#[test]
fn staged_and_unstaged_changes_are_told_apart() {
    let dir = repository();
    let notes = dir.path().join("notes");
    let part = RepositoryFolder::open(&notes).expect("opened");
    fs::write(notes.join("long.md"), "a line that stays\n".repeat(20)).expect("written");
    fs::write(notes.join("gone.md"), "gone\n").expect("written");
    part.commit("More", &[]).expect("committed");
    fs::rename(notes.join("long.md"), notes.join("moved.md")).expect("moved");
    fs::remove_file(notes.join("gone.md")).expect("removed");
    fs::write(notes.join("one.md"), "staged\n").expect("written");
    let repository = Repository::open(dir.path()).expect("opened");
    let mut index = repository.index().expect("an index");
    index.remove_path(Path::new("notes/long.md")).expect("staged");
    index.add_path(Path::new("notes/moved.md")).expect("staged");
    index.add_path(Path::new("notes/one.md")).expect("staged");
    index.write().expect("written");
    fs::write(notes.join("one.md"), "staged\nand more\n").expect("written");
    fs::write(notes.join("new.md"), "new\n").expect("written");
    fs::write(dir.path().join("beside.txt"), "not in the folder\n").expect("written");
    let (changes, whole) = part.changes().expect("told");
    let rows: Vec<_> = changes
        .iter()
        .map(|change| (change.path.as_str(), change.old_path.as_deref(), change.staged, change.unstaged))
        .collect();
    let modified = Some(FileChangeKind::Modified);
    assert!(whole);
    assert_eq!(
        rows,
        [
            ("gone.md", None, None, Some(FileChangeKind::Deleted)),
            ("moved.md", Some("long.md"), Some(FileChangeKind::Renamed), None),
            ("new.md", None, None, Some(FileChangeKind::Untracked)),
            ("one.md", None, modified, modified),
        ]
    );
    let (staged, _) = part.staged_diff(Some("one.md")).expect("a diff");
    assert!(staged.contains("-one\n+staged\n") && !staged.contains("and more"), "{staged}");
    let (unstaged, _) = part.unstaged_diff("one.md").expect("a diff");
    assert!(unstaged.contains(" staged\n+and more\n") && !unstaged.contains("-one"), "{unstaged}");
    assert!(part.unstaged_diff("new.md").expect("a diff").0.contains("+new\n"));
    assert!(part.unstaged_diff("../beside.txt").is_err());

    let kept = part.keep_file("one.md").expect("kept").expect("a file");
    assert_eq!(part.kept_bytes(&kept).expect("there"), b"staged\nand more\n");
    assert_eq!(part.keep_file("gone.md").expect("no error"), None);
    assert!(part.keep_file("../beside.txt").is_err());
    let times = |part: &RepositoryFolder| -> Vec<_> {
        part.state_files().iter().map(|file| fs::metadata(file).and_then(|meta| meta.modified()).ok()).collect()
    };
    let before = times(&part);
    part.commit("Once more", &["one.md".to_owned()]).expect("committed");
    assert_ne!(times(&part), before, "a commit is seen by the files' times");
}

#[test]
fn a_line_is_not_looked_for_in_a_version_that_inflates_to_very_much() {
    let dir = repository();
    let part = RepositoryFolder::open(&dir.path().join("notes")).expect("opened");
    let file = dir.path().join("notes/one.md");
    let bomb = format!("one\ntwo\n{}", "x".repeat(17 << 20));
    fs::write(&file, bomb).expect("written");
    part.commit("Bomb", &[]).expect("committed");
    fs::write(&file, "one\ntwo\n").expect("written");
    let (after, _) = part.commit("After", &[]).expect("committed");
    let lines = part.blame("one.md").expect("blamed");
    let commits: Vec<Option<&str>> = lines.iter().map(|line| line.id.as_deref()).collect();
    assert_eq!(commits, [Some(after.id.as_str()), Some(after.id.as_str())]);
}
