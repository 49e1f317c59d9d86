//! Folders from GitHub in the window on a machine without Git: opened, changed, committed and pulled over the API.
//!
//! The API's address and the programs come from the environment, which a running process doesn't change; so the test
//! runs itself again in a process that has another one.

use super::source_control::{activate, has, open_page, wait};
use super::*;
use crate::line::github_api::Hub;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Variables of the inner process: the other clone of the repository, and where Git is.
const OTHER: &str = "TRACEBOOK_TEST_OTHER_CLONE";
const GIT_PATH: &str = "TRACEBOOK_TEST_GIT_PATH";

/// Runs this test in a process with a server as GitHub and without Git.
fn run_inside(test: &str, files: &[(&str, &str)]) {
    let hub = Hub::with(files);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]);
    command.env(OTHER, hub.house.path("other")).env(GIT_PATH, std::env::var_os("PATH").unwrap_or_default());
    command.env("GITHUB_API_URL", &hub.server.address).env("PATH", hub.house.path("no-programs"));
    command.env("HOME", hub.house.path("")).env("TRACEBOOK_KEYRING", "off");
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env_remove("GITHUB_TOKEN");
    let done = command.output().expect("started");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

fn git(folder: &Path, words: &[&str]) -> String {
    let path = std::env::var_os(GIT_PATH).expect("the inner process");
    let done = Command::new("git").args(words).current_dir(folder).env("PATH", path).output().expect("Git is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Commits a file through the other clone.
fn commit_elsewhere(other: &OsStr, file: &str, text: &str) {
    let other = Path::new(other);
    git(other, &["pull", "-q", "--rebase"]);
    std::fs::write(other.join(file), text).expect("written");
    git(other, &["commit", "-qam", "Elsewhere"]);
    git(other, &["push", "-q"]);
}

#[test]
fn a_repository_of_github_is_opened_committed_and_pulled_without_git() {
    let Some(other) = std::env::var_os(OTHER) else {
        let test = "window::github_folders::a_repository_of_github_is_opened_committed_and_pulled_without_git";
        return run_inside(test, &[("README.md", "one\ntwo\nthree\n"), ("Two.md", "2\n")]);
    };
    let bench = Bench::new(&[("First.md", "1\n")]);
    let clone = bench.folder.path().join("clone");
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::O);
    activate(&mut window, "Open repository…");
    type_text(&mut window, "ada/notes");
    window.get_by_label("New folder").focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, &clone.display().to_string());
    activate(&mut window, "Clone and open");
    // Its first note is shown at last, and would replace the page.
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("one\ntwo\nthree\n"));
    open_page(&mut window);
    activate(&mut window, "Repository: clone");
    wait(&mut window, "ada/notes, branch main");
    wait(&mut window, "Nothing has changed since the last pull or commit.");
    assert!(!has(&window, "Stashes") && !has(&window, "Push"), "nothing is offered that needs Git");

    std::fs::write(clone.join("New.md"), "new\n").expect("written");
    std::fs::write(clone.join("README.md"), "one\ntwo\nthree, changed\n").expect("written");
    wait(&mut window, "README.md, modified");
    wait(&mut window, "New.md, untracked");
    assert!(!has(&window, "Stage ") && !has(&window, "Discard "), "nothing is offered that needs Git");
    activate(&mut window, "Commit and push all");
    wait(&mut window, "Write a message first");
    window.get_by_label("Commit message").focus();
    window.run();
    type_text(&mut window, "From the window");
    pictured(&mut window, "github-folder");
    activate(&mut window, "Commit and push all");
    wait(&mut window, "Committed and pushed ");
    wait(&mut window, "Nothing has changed since the last pull or commit.");
    let remote = Path::new(&other).with_file_name("remote.git");
    assert_eq!(git(&remote, &["log", "--format=%s"]), "From the window\nFirst");
    assert_eq!(git(&remote, &["show", "main:New.md"]), "new");

    activate(&mut window, "Fetch");
    wait(&mut window, "There's nothing new.");
    commit_elsewhere(&other, "README.md", "one, elsewhere\ntwo\nthree, changed\n");
    activate(&mut window, "Fetch");
    wait(&mut window, "There are new commits to pull.");
    // The note is open, and another program changes its file.
    std::fs::write(clone.join("README.md"), "one\ntwo\nthree, again\n").expect("written");
    wait(&mut window, "README.md, modified");
    activate(&mut window, "Pull");
    wait(&mut window, "Merged with your changes: README.md.");
    let on_disk = || std::fs::read_to_string(clone.join("README.md")).expect("read");
    assert_eq!(on_disk(), "one, elsewhere\ntwo\nthree, again\n");

    // Both sides change the same line: the user decides.
    commit_elsewhere(&other, "README.md", "one, elsewhere\ntwo\nthree, theirs\n");
    activate(&mut window, "Pull");
    wait(&mut window, "Pull and keep both versions");
    assert!(!has(&window, "--keep-conflicts"), "the window names no flags of the command line");
    assert_eq!(on_disk(), "one, elsewhere\ntwo\nthree, again\n");
    pictured(&mut window, "github-folder-conflict");
    activate(&mut window, "Pull and keep both versions");
    wait(&mut window, "In conflict: README.md.");
    assert_eq!(on_disk(), "one, elsewhere\ntwo\nthree, again\n");
    wait(&mut window, "README (GitHub).md, untracked");
    let theirs = std::fs::read_to_string(clone.join("README (GitHub).md")).expect("read");
    assert_eq!(theirs, "one, elsewhere\ntwo\nthree, theirs\n");
}
