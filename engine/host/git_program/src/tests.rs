//! Tests with the real `git` and bare remotes on the local disk.

use super::*;
use std::fs;
use std::process::Command;

/// A bare remote and two clones of it.
struct Place {
    dir: tempfile::TempDir,
}

fn git(folder: &Path, words: &[&str]) -> String {
    let done = Command::new("git").args(words).current_dir(folder).output().expect("git is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a folder");
        git(dir.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        let place = Place { dir };
        let clone = GitOperation::Clone {
            from: RepositoryAddress::read("remote.git", place.dir.path()).expect("an address"),
            folder: place.path("one"),
            depth: None,
            branch: None,
        };
        run(place.dir.path(), &clone, GitCaller::User, &mut |_| {}, &|| false).expect("cloned");
        place.know_user("one");
        git(&place.path("one"), &["checkout", "-q", "-B", "main"]);
        fs::write(place.path("one/a.md"), "one\ntwo\nthree\n").expect("written");
        place.done("one", &GitOperation::Add { files: Vec::new() });
        place.done("one", &commit("First"));
        place.done("one", &GitOperation::Push { first: Some(("origin".to_owned(), "main".to_owned())) });
        git(place.dir.path(), &["clone", "-q", "remote.git", "two"]);
        place.know_user("two");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn know_user(&self, clone: &str) {
        git(&self.path(clone), &["config", "user.name", "Ada"]);
        git(&self.path(clone), &["config", "user.email", "ada@example.org"]);
    }

    fn tried(&self, clone: &str, operation: &GitOperation, caller: GitCaller) -> Result<String, GitProgramError> {
        run(&self.path(clone), operation, caller, &mut |_| {}, &|| false)
    }

    fn done(&self, clone: &str, operation: &GitOperation) -> String {
        self.tried(clone, operation, GitCaller::User).unwrap_or_else(|error| panic!("{operation:?}: {error}"))
    }
}

fn commit(message: &str) -> GitOperation {
    GitOperation::Commit { message: message.to_owned(), files: Vec::new(), all: true, amend: false, signoff: false }
}

#[test]
fn commits_travel_between_two_clones() {
    let place = Place::new();
    fs::write(place.path("one/a.md"), "one\ntwo\nthree\nfour\n").expect("written");
    place.done("one", &commit("Second"));
    place.done("one", &GitOperation::Push { first: None });
    fs::write(place.path("two/b.md"), "b\n").expect("written");
    place.done("two", &GitOperation::Add { files: vec!["b.md".to_owned()] });
    place.done("two", &commit("Beside"));
    let why = place.tried("two", &GitOperation::Push { first: None }, GitCaller::User).expect_err("rejected");
    assert!(matches!(why, GitProgramError::Rejected), "{why}");
    place.done("two", &GitOperation::Fetch);
    place.done("two", &GitOperation::Pull { rebase: true });
    place.done("two", &GitOperation::Push { first: None });
    place.done("one", &GitOperation::Pull { rebase: false });
    assert_eq!(git(&place.path("one"), &["log", "--format=%s"]), "Beside\nSecond\nFirst");

    place.done("one", &GitOperation::Switch { branch: "idea".to_owned(), create: true });
    fs::write(place.path("one/b.md"), "idea\n").expect("written");
    place.done("one", &GitOperation::StashPush { message: "later".to_owned(), is_within_folder: false });
    assert_eq!(fs::read_to_string(place.path("one/b.md")).expect("there"), "b\n");
    place.done("one", &GitOperation::StashApply { number: 0, pop: true });
    place.done("one", &commit("Idea"));
    place.done("one", &GitOperation::Switch { branch: "main".to_owned(), create: false });
    place.done("one", &GitOperation::Merge { branch: "idea".to_owned() });
    place.done("one", &GitOperation::DeleteBranch { name: "idea".to_owned() });
    let amend = GitOperation::Commit {
        message: "Better words".to_owned(),
        files: Vec::new(),
        all: false,
        amend: true,
        signoff: true,
    };
    place.done("one", &amend);
    assert!(git(&place.path("one"), &["log", "-1", "--format=%B"]).contains("Signed-off-by: Ada <ada@example.org>"));
    let why = place.tried("one", &commit("Nothing"), GitCaller::User).expect_err("nothing");
    assert!(matches!(why, GitProgramError::NothingToCommit), "{why}");
}

#[test]
fn a_conflict_leaves_everything_as_it_was() {
    for rebase in [false, true] {
        let place = Place::new();
        fs::write(place.path("one/a.md"), "one\n2\nthree\n").expect("written");
        place.done("one", &commit("Digits"));
        place.done("one", &GitOperation::Push { first: None });
        fs::write(place.path("two/a.md"), "one\nzwei\nthree\n").expect("written");
        place.done("two", &commit("German"));
        let why = place.tried("two", &GitOperation::Pull { rebase }, GitCaller::Agent).expect_err("a conflict");
        let GitProgramError::Conflict { files, is_undone: true } = &why else { panic!("{why}") };
        assert_eq!(files, &["a.md"]);
        assert_eq!(fs::read_to_string(place.path("two/a.md")).expect("there"), "one\nzwei\nthree\n");
        assert_eq!(git(&place.path("two"), &["status", "--porcelain"]), "");
        // What isn't committed is never overwritten.
        fs::write(place.path("two/a.md"), "one\ntyped\nthree\n").expect("written");
        let why = place.tried("two", &GitOperation::Pull { rebase }, GitCaller::Agent).expect_err("refused");
        assert!(matches!(why, GitProgramError::WouldOverwrite(_)), "{why}");
        assert_eq!(fs::read_to_string(place.path("two/a.md")).expect("there"), "one\ntyped\nthree\n");
    }
}

#[cfg(unix)]
#[test]
fn hooks_run_for_the_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    for (name, text) in [("pre-push", "touch ../pushed"), ("post-merge", "touch ../merged")] {
        let hook = place.path("two/.git/hooks").join(name);
        fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
        fs::write(&hook, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("set");
    }
    fs::write(place.path("one/a.md"), "changed\n").expect("written");
    place.done("one", &commit("Changed"));
    place.done("one", &GitOperation::Push { first: None });
    place.tried("two", &GitOperation::Pull { rebase: false }, GitCaller::Agent).expect("pulled");
    fs::write(place.path("two/a.md"), "again\n").expect("written");
    place.done("two", &commit("Again"));
    place.tried("two", &GitOperation::Push { first: None }, GitCaller::Agent).expect("pushed");
    assert!(!place.path("merged").exists() && !place.path("pushed").exists(), "an agent runs no hook");
    fs::write(place.path("two/a.md"), "once more\n").expect("written");
    place.done("two", &commit("Once more"));
    place.done("two", &GitOperation::Push { first: None });
    assert!(place.path("pushed").exists(), "the user's own push does");
}

#[test]
fn faults_are_explained() {
    let place = Place::new();
    fs::write(place.path("one/a.md"), "changed\n").expect("written");
    fs::write(place.path("one/.git/index.lock"), "").expect("written");
    let why = place.tried("one", &commit("Locked"), GitCaller::User).expect_err("locked");
    assert!(matches!(&why, GitProgramError::Locked { lock } if lock.ends_with(".git/index.lock")), "{why}");
    fs::remove_file(place.path("one/.git/index.lock")).expect("removed");
    place.done("one", &commit("Unlocked"));
    fs::write(place.path("one/.git/config.lock"), "").expect("written");
    let why = errors::explain(&place.path("one"), "error: could not lock config file .git/config: File exists", "");
    assert!(matches!(&why, GitProgramError::Locked { lock } if lock.ends_with("one/.git/config.lock")), "{why}");
    fs::remove_file(place.path("one/.git/config.lock")).expect("removed");

    fs::rename(place.path("remote.git"), place.path("gone.git")).expect("moved");
    let why = place.tried("one", &GitOperation::Push { first: None }, GitCaller::Agent).expect_err("gone");
    assert!(matches!(why, GitProgramError::Unreachable(_)), "{why}");
    git(&place.path("one"), &["remote", "set-url", "origin", "ext::sh -c touch% ../hacked"]);
    assert!(place.tried("one", &GitOperation::Fetch, GitCaller::User).is_err());
    assert!(!place.path("hacked").exists(), "an address never runs a program");
    for name in ["--upload-pack=touch hacked", "-f", "--help"] {
        let switch = GitOperation::Switch { branch: name.to_owned(), create: false };
        assert!(place.tried("one", &switch, GitCaller::Agent).is_err(), "{name}");
        assert!(place.tried("one", &GitOperation::Merge { branch: name.to_owned() }, GitCaller::Agent).is_err());
    }
    let canceled = run(&place.path("one"), &GitOperation::Fetch, GitCaller::Agent, &mut |_| {}, &|| true);
    assert!(matches!(canceled, Err(GitProgramError::Canceled | GitProgramError::Other(_))), "{canceled:?}");
}

/// Clones that have diverged: `one` has pushed a commit, and `two` has two of its own.
fn diverged() -> Place {
    let place = Place::new();
    fs::write(place.path("one/b.md"), "theirs\n").expect("written");
    place.done("one", &GitOperation::Add { files: vec!["b.md".to_owned()] });
    place.done("one", &commit("Theirs"));
    place.done("one", &GitOperation::Push { first: None });
    for text in ["mine\n", "mine still\n"] {
        fs::write(place.path("two/a.md"), text).expect("written");
        place.done("two", &commit("Mine"));
    }
    place.done("two", &GitOperation::Fetch);
    place
}

#[test]
fn a_rebase_that_stops_at_a_lock_can_be_tried_again() {
    let place = diverged();
    let two = place.path("two");
    let before = git(&two, &["rev-parse", "HEAD"]);
    let rebase = GitOperation::Rebase { onto: "origin/main".to_owned() };
    // What a rebase leaves that was killed while it noted down a merge or a message.
    for (name, rebase) in [
        ("AUTO_MERGE", rebase.clone()),
        ("AUTO_MERGE", GitOperation::KeepConflicts(Box::new(rebase.clone()))),
        ("MERGE_MSG", rebase.clone()),
    ] {
        let lock = two.join(".git").join(format!("{name}.lock"));
        fs::write(&lock, "").expect("written");
        let why = place.tried("two", &rebase, GitCaller::User).expect_err("locked");
        assert!(matches!(&why, GitProgramError::Locked { lock: named } if named.ends_with(&lock)), "{why}");
        assert_eq!(git(&two, &["rev-parse", "main", "HEAD"]), format!("{before}\n{before}"));
        assert_eq!(git(&two, &["symbolic-ref", "--short", "HEAD"]), "main");
        fs::remove_file(&lock).expect("removed");
    }
    // One that was under way before is the user's.
    fs::create_dir(two.join(".git/rebase-merge")).expect("made");
    place.tried("two", &rebase, GitCaller::User).expect_err("under way");
    assert!(two.join(".git/rebase-merge").exists());
    fs::remove_dir(two.join(".git/rebase-merge")).expect("removed");
    place.done("two", &rebase);
    assert_eq!(git(&two, &["log", "--format=%s"]), "Mine\nMine\nTheirs\nFirst");
    assert_eq!(fs::read_to_string(two.join("a.md")).expect("read"), "mine still\n");
}

#[test]
fn a_lock_of_the_branch_is_noticed_before_any_file_changes() {
    let place = diverged();
    let two = place.path("two");
    let rebase = GitOperation::Rebase { onto: "origin/main".to_owned() };
    // Git would write all files before it noticed these.
    let switch = GitOperation::Switch { branch: "side".to_owned(), create: true };
    let merge = GitOperation::Merge { branch: "origin/main".to_owned() };
    for name in ["HEAD", "refs/heads/main"] {
        let lock = two.join(".git").join(format!("{name}.lock"));
        fs::write(&lock, "").expect("written");
        for operation in [&rebase, &GitOperation::Pull { rebase: true }, &merge, &switch] {
            let why = place.tried("two", operation, GitCaller::User).expect_err("locked");
            assert!(matches!(&why, GitProgramError::Locked { lock: named } if *named == lock), "{why}");
            assert_eq!(git(&two, &["status", "--porcelain"]), "");
        }
        fs::remove_file(&lock).expect("removed");
    }
    // A lock that goes away soon is waited for, also one that Git notices itself.
    let done_behind = |name: &str, operation: &GitOperation| {
        let lock = two.join(".git").join(name);
        fs::write(&lock, "").expect("written");
        let unlock = std::thread::spawn(move || {
            std::thread::park_timeout(std::time::Duration::from_millis(100));
            fs::remove_file(lock).expect("removed");
        });
        place.done("two", operation);
        unlock.join().expect("unlocked");
    };
    done_behind("HEAD.lock", &switch);
    fs::write(two.join("b.md"), "new\n").expect("written");
    done_behind("index.lock", &GitOperation::Add { files: vec!["b.md".to_owned()] });
    done_behind("index.lock", &commit("Behind a lock"));
    place.done("two", &GitOperation::Switch { branch: "main".to_owned(), create: false });
    // A rebase that was killed while it moved the branch is taken back only without the lock.
    fs::write(two.join("a.md"), "theirs\n").expect("written");
    place.done("two", &commit("Conflict"));
    fs::write(place.path("one/a.md"), "ours\n").expect("written");
    place.done("one", &commit("Ours"));
    place.done("one", &GitOperation::Push { first: None });
    place.done("two", &GitOperation::Fetch);
    let before = git(&two, &["rev-parse", "HEAD"]);
    let kept = GitOperation::KeepConflicts(Box::new(rebase.clone()));
    place.tried("two", &kept, GitCaller::User).expect_err("a conflict");
    let lock = two.join(".git/refs/heads/main.lock");
    fs::write(&lock, "").expect("written");
    let abort = GitOperation::Abort(HalfDoneOperation::Rebase);
    let why = place.tried("two", &abort, GitCaller::User).expect_err("locked");
    assert!(matches!(&why, GitProgramError::Locked { lock: named } if *named == lock), "{why}");
    fs::remove_file(&lock).expect("removed");
    place.done("two", &abort);
    assert_eq!(git(&two, &["rev-parse", "HEAD", "main"]), format!("{before}\n{before}"));
    assert_eq!(git(&two, &["status", "--porcelain"]), "");
}

#[test]
fn what_a_killed_rebase_left_is_removed_only_where_none_is_under_way() {
    let place = Place::new();
    let one = place.path("one");
    let notes = one.join(".git/rebase-merge");
    let (abort, go_on) =
        (GitOperation::Abort(HalfDoneOperation::Rebase), GitOperation::Continue(HalfDoneOperation::Rebase));
    let before = git(&one, &["rev-parse", "main"]);
    for (operation, left) in [(&abort, &[][..]), (&abort, &["head-name", "orig-head"]), (&go_on, &["interactive"])] {
        fs::create_dir(&notes).expect("made");
        left.iter().for_each(|name| fs::write(notes.join(name), "refs/heads/main\n").expect("written"));
        if !left.is_empty() {
            fs::write(notes.join("onto"), "").expect("written");
        }
        assert_eq!(place.done("one", operation), crate::NO_REBASE);
        assert!(!notes.exists());
        assert_eq!(git(&one, &["rev-parse", "main", "HEAD"]), format!("{before}\n{before}"));
    }
    // Without a branch, what is left may be all that says where the user was.
    git(&one, &["checkout", "-q", "--detach"]);
    fs::create_dir(&notes).expect("made");
    place.tried("one", &abort, GitCaller::User).expect_err("unreadable");
    assert!(notes.exists());
    place.tried("one", &GitOperation::Continue(HalfDoneOperation::Merge), GitCaller::User).expect_err("no merge");
}

#[test]
fn addresses_are_read() {
    let here = tempfile::tempdir().expect("a folder");
    fs::create_dir(here.path().join("repo")).expect("made");
    let read = |text: &str| RepositoryAddress::read(text, here.path()).map(|address| address.as_str().to_owned());
    assert_eq!(read("rust-lang/log"), Ok("https://github.com/rust-lang/log.git".to_owned()));
    for same in ["https://example.org/a.git", "ssh://git@example.org:22/a", "git@example.org:a/b.git", "file:///x"] {
        assert_eq!(read(same), Ok(same.to_owned()));
    }
    assert!(read("repo").is_ok_and(|path| path.ends_with("/repo") && path.starts_with('/')));
    for wrong in ["", "-x", "ext::sh -c true", "ftp://x/y", "ssh://-oProxyCommand=x/y", "a/b/c", "nowhere", "a\nb"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    for (address, name) in [
        ("https://example.org/a/notes.git/", Some("notes")),
        ("git@example.org:a/b.git", Some("b")),
        ("git@example.org:c", Some("c")),
        ("rust-lang/log", Some("log")),
        ("/", None),
        ("a/..", None),
        (".git", None),
    ] {
        assert_eq!(crate::repository_folder_name(address), name, "{address}");
    }
    let host = |text: &str| RepositoryAddress::read(text, here.path()).ok().and_then(|address| address.host());
    assert_eq!(host("https://u:p@Example.org:8443/a").as_deref(), Some("example.org"));
    assert_eq!(host("git@example.org:a/b").as_deref(), Some("example.org"));
    assert_eq!(host("repo"), None);
}

#[test]
fn files_are_staged_unstaged_and_discarded_also_before_the_first_commit() {
    let place = Place::new();
    let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    fs::create_dir(place.path("fresh")).expect("made");
    place.done("fresh", &GitOperation::Init);
    fs::write(place.path("fresh/[a].md"), "a\n").expect("written");
    fs::write(place.path("fresh/a.md"), "a\n").expect("written");
    place.done("fresh", &GitOperation::Add { files: files(&["[a].md"]) });
    assert_eq!(git(&place.path("fresh"), &["status", "--porcelain"]), "A  [a].md\n?? a.md", "names aren't patterns");
    place.done("fresh", &GitOperation::Unstage { files: files(&["[a].md"]) });
    assert_eq!(git(&place.path("fresh"), &["status", "--porcelain"]), "?? [a].md\n?? a.md");

    fs::write(place.path("one/a.md"), "staged\n").expect("written");
    place.done("one", &GitOperation::Add { files: files(&["a.md"]) });
    fs::write(place.path("one/a.md"), "typed\n").expect("written");
    let discard = GitOperation::Discard { files: files(&["a.md"]) };
    place.done("one", &discard);
    assert_eq!(fs::read_to_string(place.path("one/a.md")).expect("there"), "staged\n");
    place.done("one", &GitOperation::Unstage { files: files(&["a.md"]) });
    assert_eq!(fs::read_to_string(place.path("one/a.md")).expect("there"), "staged\n", "the file stays");
    place.done("one", &discard);
    assert_eq!(fs::read_to_string(place.path("one/a.md")).expect("there"), "one\ntwo\nthree\n");
    fs::remove_file(place.path("one/a.md")).expect("removed");
    place.done("one", &GitOperation::Add { files: files(&["a.md"]) });
    assert_eq!(git(&place.path("one"), &["status", "--porcelain"]), "D  a.md", "a deletion can be staged");
    assert!(place.tried("one", &GitOperation::Discard { files: files(&["--help"]) }, GitCaller::Window).is_err());
}

#[test]
fn a_clone_gets_its_name_at_the_end() {
    let place = Place::new();
    let clone = |name: &str, address: &str| {
        let from = RepositoryAddress::read(address, place.dir.path()).expect("an address");
        let operation = GitOperation::Clone { from, folder: place.path(name), depth: None, branch: None };
        run(place.dir.path(), &operation, GitCaller::Window, &mut |_| {}, &|| false)
    };
    let hidden = place.path(".three.tracebook-clone");
    clone("three", &format!("file://{}", place.path("nowhere.git").display())).expect_err("there's no such remote");
    assert!(!place.path("three").exists() && !hidden.exists());
    // What a killed program has left is removed, unless another one works there.
    fs::create_dir_all(hidden.join("files/.git")).expect("made");
    fs::write(hidden.join("files/half.md"), "half").expect("written");
    let lock = fs::File::create(hidden.join("lock")).expect("made");
    lock.lock().expect("locked");
    let why = clone("three", "remote.git").expect_err("locked");
    assert!(why.to_string().contains("another program clones to it"), "{why}");
    drop(lock);
    let said = clone("three", "remote.git").expect("cloned");
    assert!(!said.contains("tracebook-clone"), "{said}");
    assert!(place.path("three/a.md").exists() && !place.path("three/half.md").exists() && !hidden.exists());
    assert_eq!(git(&place.path("three"), &["status", "--porcelain"]), "");
    let why = clone("three", "remote.git").expect_err("it's there");
    assert!(why.to_string().contains("already exists"), "{why}");
    // An empty folder is filled, as by Git itself.
    fs::create_dir(place.path("four")).expect("made");
    clone("four", "remote.git").expect("cloned");
    assert!(place.path("four/a.md").exists());
}

#[test]
fn messages_of_the_network_are_explained() {
    let explain = |messages: &str| errors::explain(Path::new("/nowhere"), messages, "");
    let broken = "error: RPC failed; curl 56 Recv failure\nsend-pack: unexpected disconnect while reading sideband \
                  packet\nfatal: the remote end hung up unexpectedly\nEverything up-to-date\n";
    let why = explain(broken);
    assert!(matches!(&why, GitProgramError::BrokenOff(said) if !said.contains("up-to-date")), "{why}");
    let why = explain("fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate\n");
    assert!(matches!(why, GitProgramError::Certificate(_)), "{why}");
    let why = explain("fatal: unable to access 'https://x/': Failed to connect to x port 443\n");
    assert!(matches!(why, GitProgramError::Unreachable(_)), "{why}");
    let why = explain("Host key verification failed.\nfatal: Could not read from remote repository.\n");
    assert!(matches!(why, GitProgramError::HostKey(_)), "{why}");
    let why = explain("a@x: Permission denied (publickey).\nfatal: Could not read from remote repository.\n");
    assert!(matches!(why, GitProgramError::Credentials(_)), "{why}");
    let why = explain("error: RPC failed; HTTP 403 curl 22\nfatal: the remote end hung up unexpectedly\n");
    assert!(matches!(why, GitProgramError::Refused(_)), "{why}");
    // A lock that is on the remote's device isn't one to delete here.
    let remote = "remote: error: cannot lock ref 'refs/heads/main': Unable to create \
                  '/srv/x.git/refs/heads/main.lock': File exists.\n ! [remote rejected] main -> main (failed to update \
                  ref)\n";
    let why = explain(remote);
    assert!(
        matches!(&why, GitProgramError::RemoteLocked { lock } if lock == "/srv/x.git/refs/heads/main.lock"),
        "{why}"
    );
}

#[test]
fn a_push_waits_for_locks_on_both_sides_and_names_those_that_stay() {
    let place = Place::new();
    let (one, push) = (place.path("one"), GitOperation::Push { first: None });
    let remote = "remote.git/refs/heads/main.lock";
    let tracking = "one/.git/refs/remotes/origin/main.lock";
    for (number, lock) in [remote, tracking].into_iter().enumerate() {
        fs::write(one.join("a.md"), format!("{number}\n")).expect("written");
        place.done("one", &commit("More"));
        let file = place.path(lock);
        fs::write(&file, "").expect("written");
        let why = place.tried("one", &push, GitCaller::User).expect_err("locked");
        let is_pushed = git(&one, &["rev-parse", "HEAD"]) == git(&place.path("remote.git"), &["rev-parse", "main"]);
        assert_eq!(is_pushed, lock == tracking, "{why}");
        assert_eq!(matches!(why, GitProgramError::PushedButLocked { .. }), is_pushed, "{why}");
        assert!(why.to_string().contains(&format!("delete {}", file.display())), "{why}");
        let unlock = std::thread::spawn(move || {
            std::thread::park_timeout(std::time::Duration::from_millis(100));
            fs::remove_file(file).expect("removed");
        });
        place.done("one", &push);
        unlock.join().expect("unlocked");
        assert_eq!(git(&one, &["status", "-sb"]), "## main...origin/main");
    }
}

#[test]
fn all_changes_are_those_of_files_and_not_of_submodules() {
    let place = Place::new();
    let one = place.path("one");
    git(&one, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../remote.git", "lib"]);
    place.done("one", &GitOperation::Add { files: Vec::new() });
    place.done("one", &commit("With a library"));
    let recorded = || git(&one, &["rev-parse", "HEAD:lib"]);
    let before = recorded();
    place.know_user("one/lib");
    git(&one.join("lib"), &["commit", "-q", "--allow-empty", "-m", "Moved"]);
    for files in [&[][..], &["."]] {
        fs::write(one.join("a.md"), format!("{files:?}\n")).expect("written");
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let all = files.is_empty();
        let message = "Text".to_owned();
        place.done("one", &GitOperation::Commit { message, files, all, amend: false, signoff: false });
        assert_eq!((recorded(), git(&one, &["diff", "--name-only"])), (before.clone(), "lib".to_owned()));
    }
    fs::write(one.join("a.md"), "more\n").expect("written");
    for files in [Vec::new(), vec![".".to_owned()]] {
        place.done("one", &GitOperation::Add { files });
        assert_eq!(git(&one, &["diff", "--cached", "--name-only"]), "a.md");
    }
    place.done("one", &GitOperation::Add { files: vec!["lib".to_owned()] });
    assert_eq!(git(&one, &["diff", "--cached", "--name-only"]), "a.md\nlib");
}
