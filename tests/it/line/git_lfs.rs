//! Files whose content is in Git LFS, with a small filter in its place, and repositories with submodules.

use super::agents::house;
use super::git::{caller, git, know_user, run_in};
use super::github_api::Hub;
use crate::program::{Done, House, PROGRAM, finish, noise};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// What stands for `git-lfs`: it keeps contents in the home folder under their hash, and notes its calls.
const FILTER: &str = r#"#!/bin/sh
store="$HOME/lfs"
mkdir -p "$store"
echo "$1" >>"$HOME/lfs-calls"
case "$1" in
clean)
  cat >"$store/new.$$"
  id=$(sha256sum <"$store/new.$$" | cut -d' ' -f1)
  size=$(($(wc -c <"$store/new.$$")))
  mv "$store/new.$$" "$store/$id"
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' "$id" "$size"
  ;;
smudge)
  pointer=$(cat)
  id=$(printf '%s\n' "$pointer" | sed -n 's/^oid sha256://p')
  if [ -n "$id" ] && [ -f "$store/$id" ]; then cat "$store/$id"; else printf '%s\n' "$pointer"; fi
  ;;
esac
"#;
/// How a pointer begins.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:";

/// Puts the filter on the house's path, and configures it as `git lfs install` does.
fn install_filter(house: &House) {
    house.write("bin/git-lfs", FILTER.as_bytes());
    std::fs::set_permissions(house.path("bin/git-lfs"), std::fs::Permissions::from_mode(0o755)).expect("set");
    let filter =
        "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\trequired = true\n";
    let user = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n";
    house.write(".gitconfig", format!("{filter}{user}").as_bytes());
}

/// The environment of a user with the filter.
fn surround(house: &House, mut command: Command, folder: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [house.path("bin")].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).expect("a path"));
    command.env_remove("GIT_CONFIG_GLOBAL").current_dir(house.path(folder));
    command
}

/// Runs the program with the filter.
fn run_program(house: &House, folder: &str, words: &[&str]) -> Done {
    let mut command = Command::new(PROGRAM);
    house.surround(&mut command, words);
    finish(surround(house, command, folder), b"")
}

/// Runs `tracebook git …` with the filter.
fn run_filtered(house: &House, folder: &str, words: &[&str]) -> Done {
    let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
    run_program(house, folder, &all)
}

/// Runs Git itself with the filter.
#[track_caller]
fn git_filtered(house: &House, folder: &str, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(words);
    house.enclose(&mut command);
    let done = finish(surround(house, command, folder), b"");
    assert_eq!(done.code, 0, "{words:?}: {}", done.err);
    done.out
}

/// Returns how often the filter was called since the last time.
fn take_calls(house: &House) -> usize {
    let calls = std::fs::read_to_string(house.path("lfs-calls")).unwrap_or_default();
    let _ = std::fs::remove_file(house.path("lfs-calls"));
    calls.lines().count()
}

#[test]
fn contents_in_lfs_are_committed_as_pointers_and_looking_runs_no_filter() {
    let house = House::new();
    install_filter(&house);
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\nlarge.md filter=lfs diff=lfs merge=lfs -text\n";
    house.write("notes/.gitattributes", attributes.as_bytes());
    house.write("notes/a.md", b"one\n");
    house.write("notes/large.md", b"# Large\n\nfirst\n");
    let data = noise(11, 40_000);
    house.write("notes/data.bin", &data);
    git_filtered(&house, "", &["init", "-q", "--bare", "remote.git"]);
    git_filtered(&house, "notes", &["init", "-q"]);
    git_filtered(&house, "notes", &["remote", "add", "origin", "../remote.git"]);
    house.run(&["open", "notes"]).good();
    let show = |folder: &str, name: &str| git_filtered(&house, folder, &["cat-file", "blob", name]);

    run_filtered(&house, "notes", &["commit", "-m", "First", "--push"]).good();
    assert!(take_calls(&house) >= 2, "Git has run the filter");
    assert!(show("notes", "HEAD:data.bin").starts_with(POINTER) && show("notes", "HEAD:large.md").starts_with(POINTER));
    assert_eq!(house.read("notes/data.bin"), data);
    assert_eq!(house.cat("notes/large.md"), b"# Large\n\nfirst\n");
    let clean = "On main, even with origin/main\nNothing has changed since the last commit.\n";
    assert_eq!(run_in(&house, "notes", &["status"]).good().text(), clean);
    assert_eq!(run_in(&house, "notes", &["diff"]).good().text(), "");
    // Files that are only touched haven't changed, as Git finds with the filter.
    house.write("notes/data.bin", &data);
    house.write("notes/large.md", b"# Large\n\nfirst\n");
    assert_eq!(run_in(&house, "notes", &["status"]).good().text(), clean);
    assert_eq!(run_in(&house, "notes", &["diff"]).good().text(), "");
    assert_eq!(take_calls(&house), 0, "looking runs no filter");

    house.write("notes/data.bin", &noise(12, 40_000));
    house.write("notes/large.md", b"# Large\n\nsecond\n");
    for words in [&["status"][..], &["diff"], &["diff", "--hunks"], &["log", "large.md"], &["show"], &["blame", "a.md"]]
    {
        run_in(&house, "notes", words).good();
    }
    assert_eq!(take_calls(&house), 0, "looking runs no filter");
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert!(status.contains(" M data.bin\n") && status.contains(" M large.md\n"), "{status}");
    assert_eq!(house.cat("notes/large.md"), b"# Large\n\nsecond\n");
    run_filtered(&house, "notes", &["commit", "-m", "Second", "--push"]).good();
    assert!(show("notes", "HEAD:data.bin").starts_with(POINTER));
    assert_ne!(show("notes", "HEAD:data.bin"), show("notes", "HEAD~1:data.bin"));

    // Another branch, a clone, and a pull bring contents; without the filter, a clone has what names them.
    run_filtered(&house, "notes", &["branch", "old", "HEAD~1"]).good();
    run_filtered(&house, "notes", &["switch", "old"]).good();
    assert_eq!((house.read("notes/data.bin"), house.cat("notes/large.md")), (data, b"# Large\n\nfirst\n".to_vec()));
    run_filtered(&house, "notes", &["switch", "main"]).good();
    assert_eq!(house.cat("notes/large.md"), b"# Large\n\nsecond\n");
    let address = format!("file://{}", house.path("remote.git").display());
    run_filtered(&house, "", &["clone", &address, "copy"]).good();
    assert_eq!(house.read("copy/data.bin"), noise(12, 40_000));
    assert_eq!(house.cat("copy/large.md"), b"# Large\n\nsecond\n");
    house.write("copy/large.md", b"# Large\n\nthird\n");
    run_filtered(&house, "copy", &["commit", "-m", "Third", "--push"]).good();
    run_filtered(&house, "notes", &["pull"]).good();
    assert_eq!(house.cat("notes/large.md"), b"# Large\n\nthird\n");
    let history = house.run(&["history", "notes/large.md"]).good().text();
    assert!(!history.contains("git-lfs") && history.contains("Third"), "{history}");
    git(&house.path(""), &["clone", "-q", &address, "bare-pointers"]);
    house.run(&["open", "bare-pointers"]).good();
    assert!(house.cat("bare-pointers/large.md").starts_with(POINTER));
    house.run(&["fsck"]).good();
}

/// A house with the filter, and with a repository whose binary files go through it.
fn filtered_house(calls: Vec<(&'static str, Value)>) -> (House, Arc<Mutex<Vec<String>>>) {
    let (address, results) = caller(calls);
    let house = house(&address, &[("a.md", "one\n")]);
    install_filter(&house);
    house.write("notes/.gitattributes", b"*.bin filter=lfs diff=lfs merge=lfs -text\nplain.bin -filter\n");
    git_filtered(&house, "notes", &["init", "-q"]);
    git_filtered(&house, "notes", &["add", "-A"]);
    git_filtered(&house, "notes", &["commit", "-qm", "First"]);
    house.write("notes/a.md", b"one\ntwo\n");
    house.write("notes/data.bin", b"content\n");
    (house, results)
}

#[test]
fn an_agent_commits_no_content_past_the_filter() {
    let both = || vec![("git_commit", json!({"message": "Both"}))];
    let (house, results) = filtered_house(vec![
        ("git_commit", json!({"message": "Both"})),
        ("git_commit", json!({"message": "The note", "files": ["a.md"]})),
    ]);
    // Without the filter in its settings, Git itself would commit the content.
    house.write(".gitconfig", b"[user]\n\tname = Ada\n\temail = ada@example.org\n");
    house.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("filter lfs") && heard[0].contains("data.bin"), "{heard:?}");
    assert!(heard[1].contains("The note"), "{heard:?}");
    assert_eq!(git(&house.path("notes"), &["log", "--format=%s"]), "The note\nFirst");
    assert_eq!(house.read("notes/data.bin"), b"content\n");
    assert_eq!(take_calls(&house), 0);

    // A filter that fails commits nothing, and one that the repository itself names doesn't run.
    let (failing, results) = filtered_house(both());
    std::fs::write(failing.path("bin/git-lfs"), "#!/bin/sh\nexit 3\n").expect("written");
    run_program(&failing, "", &["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("data.bin") && heard[0].contains("its filter lfs"), "{heard:?}");
    assert_eq!(git(&failing.path("notes"), &["log", "--format=%s"]), "First");
    let (hostile, results) = filtered_house(both());
    let evil = format!("touch {}", hostile.path("hacked").display());
    git(&hostile.path("notes"), &["config", "filter.lfs.clean", &evil]);
    run_program(&hostile, "", &["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("filter.lfs.clean"), "{heard:?}");
    assert!(!hostile.path("hacked").exists(), "no setting ran");
    assert_eq!(git(&hostile.path("notes"), &["log", "--format=%s"]), "First");
}

#[test]
fn an_agents_commit_of_a_file_in_lfs_is_made_by_git() {
    let (house, results) = filtered_house(vec![
        ("git_commit", json!({"message": "The data", "files": ["data.bin"]})),
        ("git_commit", json!({"message": "The rest"})),
    ]);
    house.write("notes/more.bin", b"more\n");
    house.write("notes/plain.bin", b"as it is\n");
    run_program(&house, "", &["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("“The data”") && heard[0].contains("data.bin"), "{heard:?}");
    assert!(heard[1].contains("“The rest”") && heard[1].contains("more.bin"), "{heard:?}");
    let show = |name: &str| git_filtered(&house, "notes", &["cat-file", "blob", name]);
    assert!(show("HEAD~1:data.bin").starts_with(POINTER) && show("HEAD:more.bin").starts_with(POINTER));
    assert_eq!((show("HEAD:a.md"), show("HEAD:plain.bin")), (b"one\ntwo\n".to_vec(), b"as it is\n".to_vec()));
    let named = |commit: &str| git(&house.path("notes"), &["show", "--format=", "--name-only", commit]);
    assert_eq!((named("HEAD~1").as_str(), named("HEAD").as_str()), ("data.bin", "a.md\nmore.bin\nplain.bin"));
    assert_eq!(house.read("notes/data.bin"), b"content\n");
}

#[test]
fn a_fork_begins_with_the_pointers_of_files_in_lfs() {
    let (house, results) = filtered_house(vec![
        ("write_file", json!({"path": "made.md", "content": "made\n"})),
        ("git_commit", json!({"message": "By the agent"})),
    ]);
    // Neither a proxy nor what a submodule's settings name has to do with it.
    git(&house.path("notes"), &["config", "http.proxy", "http://127.0.0.1:9"]);
    house.write("lib/x.txt", b"x\n");
    let lib = house.path("lib");
    git(&lib, &["init", "-q"]);
    know_user(&lib);
    git(&lib, &["add", "-A"]);
    git(&lib, &["commit", "-qm", "Library"]);
    git_local(&house.path("notes"), &["submodule", "--quiet", "add", &lib.display().to_string(), "lib"]);
    git_filtered(&house, "notes", &["commit", "-qm", "With a submodule"]);
    for (name, value) in [("filter.own.clean", "cat"), ("hook.own.command", "true")] {
        git(&house.path("notes/lib"), &["config", name, value]);
    }
    run_program(&house, "", &["ask", "commit it", "--fork", "f", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[1].contains("made.md") && !heard[1].contains("data.bin"), "{heard:?}");
    let before = git_filtered(&house, "W/forks/f/f", &["cat-file", "blob", "HEAD~1:data.bin"]);
    assert!(before.starts_with(POINTER), "{}", String::from_utf8_lossy(&before));
    assert_eq!(house.read("W/forks/f/f/data.bin"), b"content\n");
}

#[test]
fn a_clone_over_the_api_says_which_files_are_only_named() {
    let pointer = |byte: char| {
        let id: String = std::iter::repeat_n(byte, 64).collect();
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 40000\n")
    };
    let (first, second) = (pointer('a'), pointer('b'));
    let hub = Hub::with(&[("a.md", "one\n"), ("data.bin", &first), ("b/more.bin", &second)]);
    let said = hub.run_in("", &["clone", "ada/notes", "copy"]).good().text();
    assert!(
        said.contains("2 files are in Git LFS: the folder has only what names the content. Git gets it."),
        "{said}"
    );
    assert_eq!(hub.text("copy/data.bin"), first);
    // A pull and a commit leave them as they are.
    hub.elsewhere(&[("a.md", Some("one\ntwo\n"))], "Two");
    hub.run_in("copy", &["pull"]).good();
    hub.house.write("copy/a.md", b"one\ntwo\nthree\n");
    hub.run_in("copy", &["commit", "-m", "Three", "--push"]).good();
    let remote = hub.house.path("remote.git");
    assert_eq!(git(&remote, &["show", "--format=", "--name-only", "main"]), "a.md");
    assert_eq!(git(&remote, &["show", "main:b/more.bin"]), second.trim());
}

/// Runs Git with submodules on the local disk, which it refuses by default.
fn git_local(folder: &Path, words: &[&str]) -> String {
    let all: Vec<&str> = ["-c", "protocol.file.allow=always"].iter().chain(words).copied().collect();
    git(folder, &all)
}

#[test]
fn submodules_stay_where_they_are_when_a_pull_or_switch_moves_them() {
    let house = House::new();
    // A library with two commits, and a repository that uses the first.
    house.write("library/lib.md", b"first\n");
    let library = house.path("library");
    git(&library, &["init", "-q", "-b", "main"]);
    know_user(&library);
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "-qm", "First"]);
    house.write("other/a.md", b"one\n");
    let other = house.path("other");
    git(&other, &["init", "-q", "-b", "main"]);
    know_user(&other);
    git_local(&other, &["submodule", "--quiet", "add", &library.display().to_string(), "lib"]);
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-qm", "With a library"]);
    git(&house.path(""), &["clone", "-q", "--bare", "other", "remote.git"]);
    git(&other, &["remote", "add", "origin", "../remote.git"]);
    git(&other, &["fetch", "-q"]);
    git(&other, &["branch", "-q", "-u", "origin/main"]);
    house.write("library/lib.md", b"second\n");
    git(&library, &["commit", "-qam", "Second"]);
    let [first, second] = ["HEAD~1", "HEAD"].map(|name| git(&library, &["rev-parse", name]));

    let address = format!("file://{}", house.path("remote.git").display());
    run_in(&house, "", &["clone", &address, "copy"]).good();
    let copy = house.path("copy");
    know_user(&copy);
    assert_eq!(std::fs::read_dir(copy.join("lib")).expect("a folder").count(), 0, "it isn't fetched unasked");
    let clean = "On main, even with origin/main\nNothing has changed since the last commit.\n";
    assert_eq!(run_in(&house, "copy", &["status"]).good().text(), clean);

    // The user gets it with Git. Elsewhere it moves.
    git_local(&copy, &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(house.read("copy/lib/lib.md"), b"first\n");
    git(&other.join("lib"), &["fetch", "-q"]);
    git(&other.join("lib"), &["checkout", "-q", &second]);
    house.write("other/a.md", b"one\ntwo\n");
    git(&other, &["commit", "-qam", "Moved"]);
    git(&other, &["push", "-q"]);
    house.write("copy/lib/mine.md", b"mine\n");
    run_in(&house, "copy", &["pull"]).good();
    let recorded = |name: &str| git(&copy, &["rev-parse", &format!("{name}:lib")]);
    assert_eq!((recorded("HEAD"), house.cat("copy/a.md")), (second.clone(), b"one\ntwo\n".to_vec()));
    // Its own files are the user's, who updates it with Git.
    assert_eq!(git(&copy.join("lib"), &["rev-parse", "HEAD"]), first);
    assert_eq!(
        (house.read("copy/lib/lib.md"), house.read("copy/lib/mine.md")),
        (b"first\n".to_vec(), b"mine\n".to_vec())
    );
    assert_eq!(run_in(&house, "copy", &["status"]).good().text(), clean);

    // A commit doesn't move it back unasked, since no list shows that.
    for (number, more) in [&[][..], &["--all"], &["."]].into_iter().enumerate() {
        house.write("copy/a.md", format!("number {number}\n").as_bytes());
        let words: Vec<&str> = ["commit", "-m", "Text"].iter().chain(more).copied().collect();
        run_in(&house, "copy", &words).good();
        assert_eq!(git(&copy, &["show", "--format=", "--name-only", "HEAD"]), "a.md", "{words:?}");
        assert_eq!(recorded("HEAD"), second, "{words:?}");
    }
    // One that names it does.
    run_in(&house, "copy", &["add", "lib"]).good();
    assert!(run_in(&house, "copy", &["status"]).good().text().contains("M  lib\n"));
    run_in(&house, "copy", &["commit", "-m", "Back"]).good();
    assert_eq!(recorded("HEAD"), first);

    run_in(&house, "copy", &["switch", "before", "--create"]).good();
    run_in(&house, "copy", &["switch", "main"]).good();
    git(&copy, &["branch", "-qf", "before", "HEAD~1"]);
    run_in(&house, "copy", &["switch", "before"]).good();
    assert_eq!(recorded("HEAD"), second);
    assert_eq!(house.read("copy/lib/mine.md"), b"mine\n");
    run_in(&house, "copy", &["switch", "main"]).good();
    git_local(&copy, &["submodule", "--quiet", "update"]);
    assert_eq!(house.read("copy/lib/lib.md"), b"first\n");
    git(&copy, &["fsck", "--no-dangling"]);
}
