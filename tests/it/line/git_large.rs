//! A large repository: files that can't be compressed, and thousands of notes in hundreds of commits. It's read in
//! little memory, and what a kill leaves of it is whole. The files have 22 MB here, and 2.2 GB every night.

use super::agents::{Said, configure, model};
use super::git::{git, know_user, run_in, with_remote};
use super::git_faults::{end_at_work, kill_program};
use crate::program::{Done, House, is_nightly, peak_memory, processes_naming, start_import, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Size in bytes of each large file. At night, it's a hundred times that.
const LARGE_FILE_BYTES: u64 = 2_000_000;
/// Number of large files.
const LARGE_FILES: u64 = 11;
/// Number of commits, of which each adds notes, and changes `index.md`.
const COMMITS: u64 = 200;
/// Number of notes that each commit adds.
const NOTES_PER_COMMIT: u64 = 10;
/// Number of commits from one that adds a large file to the next one.
const COMMITS_PER_LARGE_FILE: u64 = 18;
/// When the first commit was made, in seconds since 1970.
const FIRST_TIME: u64 = 1_700_000_000;
/// Maximum memory in bytes of a command that opens no workspace: less than one large file has at night.
const MAX_READ_BYTES: u64 = 180_000_000;
/// Maximum memory in bytes of a command that opens the workspace.
const MAX_WORKSPACE_BYTES: u64 = 500_000_000;
/// A command that takes longer than this is considered hung.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(900);
/// How often a clone is killed with each signal until it was at work.
const MAX_KILLS: usize = 5;

fn large_file_bytes() -> u64 {
    if is_nightly() { LARGE_FILE_BYTES * 100 } else { LARGE_FILE_BYTES }
}

/// The path of a note, and its text.
fn note(number: u64) -> (String, String) {
    (format!("n/{}/{number}.md", number / 50), format!("# Note {number}\n\nIt's the only one with this number.\n"))
}

/// Writes `index.md`'s lines after so many commits.
fn index_text(commits: u64) -> String {
    (1..=commits).map(|number| format!("Line of commit {number}\n")).collect()
}

/// Writes the whole history as `git fast-import` reads it.
fn write_history(stream: &mut dyn Write) -> std::io::Result<()> {
    let bytes = large_file_bytes();
    for commit in 1..=COMMITS {
        writeln!(stream, "commit refs/heads/main")?;
        writeln!(stream, "committer Ada <ada@example.org> {} +0000", FIRST_TIME + commit)?;
        writeln!(stream, "data <<END\nCommit {commit}\nEND")?;
        let notes = (NOTES_PER_COMMIT * (commit - 1)..NOTES_PER_COMMIT * commit).map(note);
        for (path, text) in notes.chain([("index.md".to_owned(), index_text(commit))]) {
            write!(stream, "M 644 inline {path}\ndata {}\n{text}\n", text.len())?;
        }
        let (number, rest) = (commit / COMMITS_PER_LARGE_FILE, commit % COMMITS_PER_LARGE_FILE);
        if rest == 1 && number < LARGE_FILES {
            write!(stream, "M 644 inline large{number}.bin\ndata {bytes}\n")?;
            std::io::copy(&mut File::open("/dev/urandom")?.take(bytes), stream)?;
            writeln!(stream)?;
        }
        writeln!(stream)?;
    }
    stream.flush()
}

/// Settings of a repository with large files, so that Git itself takes neither minutes nor gigabytes.
fn expect_large_files(repository: &Path) {
    git(repository, &["config", "core.bigFileThreshold", "1m"]);
    git(repository, &["config", "core.compression", "0"]);
}

/// Makes the folder `notes` the large repository, with all of its files.
fn make_repository(house: &House) {
    let notes = house.path("notes");
    std::fs::create_dir(&notes).expect("made");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    expect_large_files(&notes);
    let mut import = start_import(&notes);
    let mut stream = BufWriter::new(import.stdin.take().expect("piped"));
    write_history(&mut stream).expect("written");
    drop(stream);
    assert!(import.wait().expect("ended").success());
    git(&notes, &["reset", "-q", "--hard", "main"]);
}

/// Runs the program to its end, and asserts that it stays within its memory. Git, which it starts, isn't counted.
#[track_caller]
fn run_within(house: &House, folder: &str, words: &[&str], most: u64) -> Done {
    let mut child = house.command(words).current_dir(house.path(folder)).spawn().expect("started");
    drop(child.stdin.take());
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let begun = Instant::now();
    let mut peak = 0;
    let (out, err, code) = std::thread::scope(|scope| {
        let out = scope.spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        });
        let err = scope.spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let status = loop {
            peak = peak.max(peak_memory(child.id(), &|name| !name.starts_with("git")));
            if let Some(status) = child.try_wait().expect("waited") {
                break status;
            }
            if begun.elapsed() > COMMAND_TIMEOUT {
                child.kill().expect("killed");
                panic!("hangs: {words:?}");
            }
            // A short command is watched closely; it's over soon.
            let pause = if begun.elapsed() < Duration::from_secs(2) { 2 } else { 50 };
            std::thread::sleep(Duration::from_millis(pause));
        };
        (out.join().expect("read").expect("read"), err.join().expect("read").expect("text"), status.code())
    });
    println!("{words:?}: {:.1} s, {} MB", begun.elapsed().as_secs_f64(), peak / 1_000_000);
    let is_short = begun.elapsed() < Duration::from_secs(2); // it may be over before it's looked at
    assert!((peak > 0 || is_short) && peak < most, "{words:?} takes {} MB", peak / 1_000_000);
    Done { code: code.unwrap_or(-1), out, err }
}

/// Runs `tracebook git …` in `notes`, in the memory of a command that opens no workspace.
#[track_caller]
fn read(house: &House, words: &[&str]) -> Done {
    let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
    run_within(house, "notes", &all, MAX_READ_BYTES)
}

/// The size in bytes of the files below a folder, which others may be writing.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[track_caller]
fn length(value: &Value) -> u64 {
    value.as_array().expect("a list").len() as u64
}

/// Opens the repository as a volume, and reads its history.
fn read_history(house: &House) {
    run_within(house, "", &["open", "notes"], MAX_WORKSPACE_BYTES).code(0);
    let (path, text) = note(COMMITS * NOTES_PER_COMMIT - 1);
    let shown = run_within(house, "", &["cat", &format!("notes/{path}")], MAX_WORKSPACE_BYTES).code(0);
    assert_eq!(shown.text(), text);

    let clean = "On main\nNothing has changed since the last commit.\n";
    assert_eq!(read(house, &["status"]).good().text(), clean);
    let limit = (2 * COMMITS).to_string();
    let log = read(house, &["log", "--limit", &limit, "--json"]).good().json();
    assert_eq!((length(&log), &log[0]["summary"]), (COMMITS, &json!(format!("Commit {COMMITS}"))));
    let graph = read(house, &["log", "--graph", "--all", "--limit", &limit, "--json"]).good().json();
    assert_eq!(length(&graph), COMMITS);
    for (file, commits) in [("index.md", COMMITS), ("large0.bin", 1), (path.as_str(), 1)] {
        let log = read(house, &["log", "--limit", &limit, "--json", "--", file]).good().json();
        assert_eq!(length(&log), commits, "{file}");
    }
    let blame = read(house, &["blame", "index.md", "--json"]).good().json();
    let ids: BTreeSet<&str> = blame.as_array().expect("a list").iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!((length(&blame), ids.len() as u64), (COMMITS, COMMITS), "each line is from a commit of its own");
    assert!(!read(house, &["blame", "large0.bin"]).code(2).err.is_empty());
    let first = format!("HEAD~{}", COMMITS - 1);
    let shown = read(house, &["show", &first]).good().text();
    assert!(shown.contains("Commit 1\n") && shown.contains("b/large0.bin differ\n"), "{shown}");
    assert!(read(house, &["diff", &first, "HEAD"]).good().text().contains("b/large1.bin differ\n"));
}

/// Changes large files, and looks at the changes and at the commit that they become.
fn change_large_files(house: &House) {
    let notes = house.path("notes");
    let write_end = |name: &str| {
        let mut file = File::options().append(true).open(notes.join(name)).expect("opened");
        file.write_all(b"changed").expect("written");
    };
    write_end("large2.bin");
    assert_eq!(read(house, &["status"]).good().text(), "On main\n M large2.bin\n");
    assert!(read(house, &["diff"]).good().text().contains("b/large2.bin differ\n"));
    git(&notes, &["mv", "large1.bin", "moved.bin"]);
    write_end("moved.bin");
    git(&notes, &["add", "-A"]);
    let status = read(house, &["status"]).good().text();
    // Only small contents are compared.
    let moved = match is_nightly() {
        true => "On main\nD  large1.bin\nM  large2.bin\nA  moved.bin\n",
        false => "On main\nM  large2.bin\nR  large1.bin -> moved.bin\n",
    };
    assert_eq!(status, moved);
    assert!(read(house, &["diff", "--staged"]).good().text().contains("moved.bin"));
    read(house, &["commit", "-m", "Change large files"]).good();
    assert!(read(house, &["show"]).good().text().contains("moved.bin"));
    let log = read(house, &["log", "--json", "--", "moved.bin"]).good().json();
    assert_eq!(length(&log), if is_nightly() { 1 } else { 2 });
}

/// Asks for a run in a fork, which would be a copy of all files.
fn ask_for_fork(house: &House) {
    configure(house, &model(|_, _| -> Said { ("Done.".to_owned(), Vec::new()) }));
    let megabytes = ((LARGE_FILES - 1) * large_file_bytes() / 1_000_000).to_string();
    let mut asked = vec![vec!["ask", "go", "--fork", "--fork-limit", megabytes.as_str()]];
    if is_nightly() {
        asked.push(vec!["ask", "go", "--fork"]);
    }
    for words in asked {
        run_within(house, "", &words, MAX_WORKSPACE_BYTES).refused(2, "--fork-limit");
    }
    assert_eq!(house.json(&["forks"]), json!([]));
    assert_eq!(git(&house.path("notes"), &["worktree", "list"]).lines().count(), 1);
}

/// Kills a push in the middle, and pushes again.
fn push_and_kill(house: &House) {
    let (notes, remote) = (house.path("notes"), house.path("remote.git"));
    git(&notes, &["remote", "add", "origin", "../remote.git"]);
    let head = git(&notes, &["rev-parse", "HEAD"]);
    let is_at_work = || folder_bytes(&remote.join("objects")) > LARGE_FILES * large_file_bytes() / 8;
    let mut kills = 0;
    loop {
        git(&house.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        expect_large_files(&remote);
        kill_program(house, "notes", &["git", "push"], &is_at_work, Duration::ZERO);
        kills += 1;
        let branches = git(&remote, &["for-each-ref", "--format=%(objectname)"]);
        assert!(branches.is_empty() || branches == head, "a branch has all or nothing: {branches}");
        git(&remote, &["fsck", "--connectivity-only"]);
        if branches.is_empty() {
            break;
        }
        if kills == MAX_KILLS {
            // By day it takes so little time that a busy machine may miss it.
            assert!(!is_nightly(), "no push was killed at work");
            break;
        }
        std::fs::remove_dir_all(&remote).expect("removed");
    }
    assert_eq!(git(&notes, &["rev-parse", "HEAD"]), head);
    assert!(read(house, &["status"]).good().text().ends_with("\nNothing has changed since the last commit.\n"));
    read(house, &["push"]).good();
    assert_eq!(git(&remote, &["rev-parse", "main"]), head);
    git(&remote, &["fsck", "--connectivity-only"]);
    let status = read(house, &["status"]).good().text();
    assert!(status.starts_with("On main, even with origin/main\n"), "{status}");
}

/// Ends clones in the middle, and clones again.
fn clone_and_kill(house: &House) {
    let address = format!("file://{}", house.path("remote.git").display());
    let (copy, hidden) = (house.path("copy"), house.path(".copy.tracebook-clone"));
    let clone = ["git", "clone", address.as_str(), "copy"];
    // As Ctrl+C does in a terminal, and as a crash.
    for signal in ["-INT", "-KILL"] {
        let mut kills = 0;
        loop {
            let mut command = house.command(&clone);
            command.current_dir(house.path(""));
            let is_at_work = || folder_bytes(&hidden) > LARGE_FILES * large_file_bytes() / 8;
            end_at_work(command, signal, &is_at_work, Duration::ZERO);
            let marker = hidden.display().to_string();
            until("Git has ended, too", || processes_naming(&marker).is_empty());
            kills += 1;
            if !copy.exists() {
                break;
            }
            is_whole(house, "copy");
            std::fs::remove_dir_all(&copy).expect("removed");
            if kills == MAX_KILLS {
                assert!(!is_nightly(), "no clone was ended at work by {signal}");
                break;
            }
        }
    }
    run_within(house, "", &clone, MAX_WORKSPACE_BYTES).code(0);
    assert!(!hidden.exists(), "what was left is removed");
    is_whole(house, "copy");
    let shown = run_within(house, "", &["cat", "copy/index.md"], MAX_WORKSPACE_BYTES).code(0);
    assert_eq!(shown.text(), index_text(COMMITS));
}

/// Asserts that a clone has all commits and files.
#[track_caller]
fn is_whole(house: &House, name: &str) {
    let (notes, copy) = (house.path("notes"), house.path(name));
    assert_eq!(git(&copy, &["rev-parse", "HEAD"]), git(&notes, &["rev-parse", "HEAD"]));
    assert_eq!(git(&copy, &["status", "--porcelain"]), "");
    git(&copy, &["fsck", "--connectivity-only"]);
    for file in ["large0.bin", "moved.bin"] {
        let committed = git(&notes, &["rev-parse", &format!("HEAD:{file}")]);
        assert_eq!(git(&copy, &["hash-object", file]), committed, "{file}");
    }
}

#[test]
fn a_large_repository_is_read_changed_pushed_and_cloned_in_little_memory() {
    let house = House::new();
    make_repository(&house);
    read_history(&house);
    change_large_files(&house);
    ask_for_fork(&house);
    push_and_kill(&house);
    clone_and_kill(&house);
    house.run(&["fsck"]).code(0);
}

/// Size in bytes of a file that is too large to be compared with others.
const INCOMPARABLE_BYTES: u64 = 17 << 20;

#[test]
fn large_files_that_were_moved_are_found_only_if_they_are_the_same() {
    let house = House::with(&[("a.md", "one\n")]);
    let random = |name: &str, bytes: u64| {
        let mut file = File::create(house.path("notes").join(name)).expect("made");
        std::io::copy(&mut File::open("/dev/urandom").expect("opened").take(bytes), &mut file).expect("written");
    };
    random("changed.bin", INCOMPARABLE_BYTES);
    random("same.bin", INCOMPARABLE_BYTES);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["config", "core.compression", "0"]);
    git(&notes, &["mv", "same.bin", "same2.bin"]);
    git(&notes, &["mv", "changed.bin", "changed2.bin"]);
    let mut changed = File::options().append(true).open(notes.join("changed2.bin")).expect("opened");
    changed.write_all(b"changed").expect("written");
    git(&notes, &["add", "-A"]);
    let files = run_in(&house, "notes", &["status", "--json"]).good().json()["files"].clone();
    let expected = json!([
        {"status": "D ", "path": "changed.bin"},
        {"status": "A ", "path": "changed2.bin"},
        {"status": "R ", "path": "same2.bin", "old_path": "same.bin"},
    ]);
    assert_eq!(files, expected);
    let staged = run_in(&house, "notes", &["diff", "HEAD", "--staged"]).good().text();
    git(&notes, &["commit", "-qm", "Move"]);
    let shown = run_in(&house, "notes", &["show"]).good().text();
    for text in [&staged, &shown] {
        assert!(text.contains("rename from same.bin\nrename to same2.bin\n"), "{text}");
        assert!(text.contains("a/changed.bin and /dev/null differ") && !text.contains("from changed.bin"), "{text}");
    }
}
