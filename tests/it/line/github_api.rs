//! Repositories of GitHub without Git: clone, status, pull and commit over the API, against a local server.

use super::git::{git, know_user};
use super::github_server::{Fault, GitHubServer, Seen, commit_elsewhere};
use crate::program::{Done, House, finish};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// A token of the right form, which must be printed and stored nowhere.
const TOKEN: &str = "github_pat_11PLANTED0token_thatNobodyMaySee";

/// A house with a repository, another clone of it in `other`, and a server for it.
pub(crate) struct Hub {
    pub(crate) house: House,
    pub(crate) server: GitHubServer,
}

impl Hub {
    pub(crate) fn with(files: &[(&str, &str)]) -> Hub {
        let house = House::new();
        for (name, text) in files {
            house.write(&format!("other/{name}"), text.as_bytes());
        }
        let other = house.path("other");
        git(&house.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        git(&other, &["init", "-q", "-b", "main"]);
        know_user(&other);
        git(&other, &["remote", "add", "origin", "../remote.git"]);
        git(&other, &["add", "-A"]);
        git(&other, &["commit", "-qm", "First"]);
        git(&other, &["push", "-q", "-u", "origin", "main"]);
        let server = GitHubServer::start(&house.path("remote.git"));
        Hub { house, server }
    }

    /// The program with the server as GitHub, and without Git.
    pub(super) fn command(&self, folder: &str, words: &[&str]) -> std::process::Command {
        let mut command = self.house.command(words);
        command.current_dir(self.house.path(folder)).env("PATH", self.house.path("no-programs"));
        command.env("GITHUB_API_URL", &self.server.address).env("TRACEBOOK_KEYRING", "off").env("TZ", "UTC");
        command.env_remove("GITHUB_TOKEN").env_remove("TRACEBOOK_PASSPHRASE");
        command
    }

    pub(super) fn run_in(&self, folder: &str, words: &[&str]) -> Done {
        let mut all = vec!["git"];
        all.extend(words);
        finish(self.command(folder, &all), b"")
    }

    pub(super) fn clone(&self) {
        self.run_in("", &["clone", "ada/notes", "copy"]).good();
        self.server.take_seen();
    }

    /// Commits through the other clone.
    pub(super) fn elsewhere(&self, changes: &[(&str, Option<&str>)], message: &str) {
        commit_elsewhere(&self.house.path("other"), changes, message);
    }

    pub(super) fn log(&self) -> String {
        git(&self.house.path("remote.git"), &["log", "--format=%s", "main"])
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.house.path(name).symlink_metadata().is_ok()
    }

    pub(super) fn text(&self, name: &str) -> String {
        String::from_utf8(self.house.read(name)).expect("UTF-8")
    }
}

fn requests(seen: &[Seen]) -> Vec<String> {
    seen.iter()
        .map(|one| format!("{} {} {}", one.method, one.path.replace("/repos/ada/notes", ""), one.status))
        .collect()
}

#[test]
fn a_repository_is_cloned_changed_and_committed_without_git() {
    let hub =
        Hub::with(&[("a.md", "one\n"), ("b/c.md", "deep\n"), ("run.sh", "#!/bin/sh\n"), (".gitignore", "*.log\n")]);
    let other = hub.house.path("other");
    std::fs::set_permissions(other.join("run.sh"), std::fs::Permissions::from_mode(0o755)).expect("set");
    std::os::unix::fs::symlink("a.md", other.join("link")).expect("linked");
    hub.elsewhere(&[("gone.md", Some("soon gone\n"))], "More");
    let said = hub.run_in("", &["clone", "ada/notes", "copy"]).good().text();
    assert!(said.contains("1 symbolic link of the repository isn't in the folder"), "{said}");
    assert!(said.contains("Downloaded 5 files without Git: main at "), "{said}");
    assert_eq!((hub.text("copy/a.md"), hub.text("copy/b/c.md")), ("one\n".to_owned(), "deep\n".to_owned()));
    assert!(!hub.has("copy/link") && !hub.has(".copy.tracebook-clone"));
    let mode = hub.house.path("copy/run.sh").metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o100, 0o100, "it can be run");
    // It's a volume, in which what is recorded isn't a file.
    let listed = hub.house.json(&["ls", "--volume", "copy"]).to_string();
    assert!(listed.contains("a.md") && !listed.contains("record.json"), "{listed}");
    let seen = hub.server.take_seen();
    assert!(seen.iter().all(|one| !one.headers.contains_key("authorization")), "there's no token");

    let status = hub.run_in("copy", &["status"]).good().text();
    let head = git(&other, &["rev-parse", "HEAD"]);
    let short = &head[..8];
    let line = format!("On main at {short}, from ada/notes without Git\n");
    assert_eq!(status, format!("{line}Nothing has changed since the last pull or commit.\n"));
    hub.house.write("copy/a.md", b"one\ntwo\n");
    hub.house.write("copy/new/note.md", b"new\n");
    hub.house.write("copy/out.log", b"ignored\n");
    std::fs::remove_file(hub.house.path("copy/gone.md")).expect("removed");
    let status = hub.run_in("copy", &["status"]).good().text();
    assert_eq!(status, format!("{line} M a.md\n D gone.md\n?? new/note.md\n"));
    // From a folder inside, and as JSON.
    let status = hub.run_in("copy/b", &["status", "--json"]).good().json();
    assert_eq!(status["files"][1], json!({"status": " D", "path": "gone.md"}));
    assert_eq!((&status["branch"]["branch"], &status["branch"]["head"]), (&json!("main"), &json!(head)));
    assert!(hub.server.take_seen().is_empty(), "a status asks nobody");

    hub.run_in("copy", &["commit", "-m", "Two"]).refused(2, "add --push");
    hub.run_in("copy", &["push"]).refused(2, "in one step");
    hub.run_in("copy", &["commit", "--push"]).refused(2, "a commit needs a message");
    hub.run_in("copy", &["commit", "-m", "x", "--push", "b"]).refused(2, "Nothing has changed there");
    hub.run_in("copy", &["commit", "-m", "x", "--push", "../other"]).refused(2, "leads out");
    let said = hub.run_in("copy/new", &["commit", "-m", "New\n\nWith a body", "--push", "note.md"]).good().text();
    assert!(said.contains("Ada: New\nOn main at "), "{said}");
    let said = hub.run_in("copy", &["commit", "-m", "Rest", "--push", "--json"]).good().json();
    assert_eq!(said["details"]["files"], json!(["a.md", "gone.md"]));
    hub.run_in("copy", &["commit", "-m", "Nothing", "--push"]).refused(1, "Nothing has changed");
    assert_eq!(hub.log(), "Rest\nNew\nMore\nFirst");
    let remote = hub.house.path("remote.git");
    let files = git(&remote, &["ls-tree", "-r", "--format=%(objectmode) %(path)", "main"]);
    let kept =
        ["100644 .gitignore", "100644 a.md", "100644 b/c.md", "120000 link", "100644 new/note.md", "100755 run.sh"];
    assert_eq!(files, kept.join("\n"), "what isn't in the folder stays");
    assert_eq!(git(&remote, &["show", "-s", "--format=%b", "main~1"]), "With a body");
    assert_eq!(git(&remote, &["show", "main:a.md"]), "one\ntwo");
    let log = hub.run_in("copy", &["log", "--limit", "2"]).good().text();
    assert!(log.contains("Ada: Rest\n") && log.contains("Ada: New\n") && log.lines().count() == 2, "{log}");

    for words in [&["stash"][..], &["diff"], &["branch", "x"], &["switch", "x"], &["merge", "x"], &["pull", "--rebase"]]
    {
        hub.run_in("copy", words).refused(2, "needs Git, and a clone that Git has made");
    }
    hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "there is something at");
    hub.run_in("", &["clone", "ada/nothing", "x"]).refused(2, "has no repository ada/nothing, or it's private");
    hub.run_in("", &["clone", "https://example.org/a/b", "x"]).refused(2, "Git isn't installed");
    assert!(!hub.has("x"));
    // A repository of Git that is nearer counts.
    git(&hub.house.path("copy"), &["init", "-q"]);
    let listed = git(&hub.house.path("copy"), &["status", "--short", "--untracked-files=all"]);
    assert!(listed.contains("a.md") && !listed.contains("tracebook"), "{listed}");
}

#[test]
fn with_git_installed_the_api_is_used_on_request() {
    let hub = Hub::with(&[("a.md", "one\n")]);
    let mut command = hub.command("", &["git", "clone", "ada/notes", "copy", "--api", "--json"]);
    command.env("PATH", std::env::var_os("PATH").expect("a path"));
    let done = finish(command, b"").good();
    assert!(done.lines().iter().any(|line| line["done"] == "clone"), "{}", done.text());
    assert!(hub.has("copy/.tracebook-github/record.json") && !hub.has("copy/.git"));
    hub.run_in("copy", &["status", "--api"]).refused(2, "--api goes with clone");
    let mut command = hub.command("", &["git", "clone", "ada/notes", "more", "--api"]);
    command.env("GITHUB_API_URL", "http://github.example.org");
    finish(command, b"").refused(2, "GITHUB_API_URL must be an https address");
}

#[test]
fn a_private_repository_needs_the_right_token_and_only_the_api_gets_it() {
    let names: Vec<String> = (0..30).map(|number| format!("n/{number}.md")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "text\n")).collect();
    files.extend([
        (".gitattributes", "secret.md export-ignore\nstamp.md export-subst\n"),
        ("secret.md", "not in archives\n"),
    ]);
    files.push(("stamp.md", "$Format:%H$\n"));
    let hub = Hub::with(&files);
    hub.server.require_token(TOKEN);
    let archives = GitHubServer::start_archives(&hub.house.path("remote.git"));
    hub.server.redirect_archives(&archives);
    let run = |words: &[&str], token: Option<&str>| {
        let mut command = hub.command("", words);
        command.env("TRACEBOOK_LOG", "trace").env("TRACEBOOK_LOG_CONTENT", "1").env("RUST_LOG", "trace");
        token.map(|token| command.env("GITHUB_TOKEN", token));
        finish(command, b"")
    };
    let clone = ["git", "clone", "ada/notes", "copy"];
    run(&clone, None).refused(2, "needs a token");
    run(&clone, Some("ghp_wrong")).refused(2, "didn't accept the token");
    assert!(!hub.has("copy"));
    // A repository that was renamed is found by its number, with the token.
    let moved = vec![("location", "/repositories/1".to_owned())];
    hub.server.fail("GET /repos/ada/notes", Fault::Answer(301, moved, Vec::new()));
    finish(hub.command("", &["secrets", "set", "GITHUB_TOKEN"]), TOKEN.as_bytes()).good();
    hub.server.take_seen();
    let done = run(&clone, None).good();
    assert_eq!(hub.text("copy/secret.md"), "not in archives\n");
    assert_eq!(hub.text("copy/stamp.md"), "$Format:%H$\n", "the archive's text isn't the repository's");
    let seen = hub.server.take_seen();
    let bearer = format!("Bearer {TOKEN}");
    assert!(seen.iter().all(|one| one.headers.get("authorization") == Some(&bearer)), "{:?}", requests(&seen));
    let blobs = seen.iter().filter(|one| one.path.contains("/git/blobs/")).count();
    assert_eq!(blobs, 2, "the archive has all others: {:?}", requests(&seen));
    let seen = archives.take_seen();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].headers.contains_key("authorization"), "the other host gets no token");
    // The token is nowhere: not in what was printed, logged or written.
    let mut printed = done.text() + &done.err;
    printed += &run(&["git", "status"], None).err;
    assert!(!printed.contains("PLANTED"), "{printed}");
    let mut folders = vec![hub.house.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("listed").flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path()).unwrap_or_default();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains("PLANTED"), "{}", entry.path().display());
                }
            }
        }
    }
    // A server that repeats the token, and one that redirects a commit elsewhere.
    hub.house.write("copy/new.md", b"new\n");
    let body = json!({"message": format!("{TOKEN} may not write")}).to_string().into_bytes();
    hub.server.fail("POST", Fault::Answer(403, Vec::new(), body));
    let commit = |folder: &str| hub.run_in(folder, &["commit", "-m", "x", "--push"]);
    let refused = commit("copy").refused(2, "Contents: write");
    assert!(!refused.err.contains("PLANTED"), "{}", refused.err);
    let elsewhere = vec![("location", format!("{}/repos/ada/notes/git/blobs", archives.address))];
    hub.server.fail("POST", Fault::Answer(307, elsewhere, Vec::new()));
    commit("copy").refused(2, "redirect to a place that isn't used");
    assert!(archives.take_seen().is_empty());
    commit("copy").good();
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let hub = Hub::with(&[("a.md", "one\n"), ("b.md", "two\n")]);
    hub.clone();
    // Nothing is new: one request, which costs nothing of the rate limit.
    assert!(hub.run_in("copy", &["pull"]).good().text().contains("There's nothing new"));
    assert_eq!(requests(&hub.server.take_seen()), ["GET /git/ref/heads/main 304"]);
    assert!(hub.run_in("copy", &["fetch"]).good().text().contains("no newer commits"));
    assert_eq!(requests(&hub.server.take_seen()), ["GET /git/ref/heads/main 304"]);
    hub.run_in("copy", &["log"]).good();
    hub.run_in("copy", &["log"]).good();
    let statuses: Vec<u16> = hub.server.take_seen().iter().map(|one| one.status).collect();
    assert_eq!(statuses, [200, 304]);
    hub.elsewhere(&[("a.md", Some("1\n"))], "Digits");
    let said = hub.run_in("copy", &["fetch", "--json"]).good().json();
    assert_eq!(said["details"]["is_behind"], true);
    hub.server.take_seen();
    hub.run_in("copy", &["pull"]).good();
    // What fetch has seen is known, and only the changed file is downloaded.
    let seen = requests(&hub.server.take_seen());
    assert_eq!((seen[0].as_str(), seen.len()), ("GET /git/ref/heads/main 304", 4), "{seen:?}");
    assert_eq!((hub.text("copy/a.md"), hub.text("copy/b.md")), ("1\n".to_owned(), "two\n".to_owned()));
    // What is kept stays within bounds, and a damaged file costs only a request.
    let kept = hub.house.path("copy/.tracebook-github/answers.json");
    assert!(kept.metadata().expect("kept").len() < 9 << 20);
    std::fs::write(&kept, b"[{\"url\":").expect("written");
    hub.run_in("copy", &["pull"]).good();
    assert_eq!(requests(&hub.server.take_seen()), ["GET /git/ref/heads/main 200"]);
}

#[test]
fn a_pull_merges_files_and_refuses_conflicts_by_name() {
    let lines = |words: &str| words.split(' ').map(|word| format!("{word}\n")).collect::<String>();
    let base = lines("one two three four five");
    let hub = Hub::with(&[
        ("text.md", &base),
        ("same.md", "old\n"),
        ("mine.md", "old\n"),
        ("gone.md", "old\n"),
        ("dir/only.md", "old\n"),
        ("clash.md", "old\n"),
        ("deleted-here.md", "old\n"),
        ("deleted-there.md", "old\n"),
        ("sentence.md", "First sentence. Second sentence.\n"),
    ]);
    hub.clone();
    hub.elsewhere(
        &[
            ("text.md", Some(&lines("one two three four 5"))),
            ("same.md", Some("same\n")),
            ("gone.md", None),
            ("dir/only.md", None),
            ("dir", Some("now a file\n")),
            ("clash.md", Some("theirs\n")),
            ("deleted-here.md", Some("theirs\n")),
            ("deleted-there.md", None),
            ("both-new.md", Some("theirs\n")),
            ("sentence.md", Some("First sentence. Another second.\n")),
        ],
        "Elsewhere",
    );
    let write = |name: &str, text: &str| hub.house.write(&format!("copy/{name}"), text.as_bytes());
    write("text.md", &lines("1 two three four five"));
    write("same.md", "same\n");
    write("mine.md", "mine\n");
    write("clash.md", "ours\n");
    write("deleted-there.md", "ours\n");
    write("both-new.md", "ours\n");
    write("sentence.md", "Another first. Second sentence.\n");
    std::fs::remove_file(hub.house.path("copy/deleted-here.md")).expect("removed");
    let before = crate::program::files(&hub.house.path("copy"));
    let refused = hub.run_in("copy", &["pull"]).refused(1, "Nothing was pulled");
    assert!(refused.err.contains("git pull --keep-conflicts"), "{}", refused.err);
    for name in ["both-new.md", "clash.md", "deleted-here.md", "deleted-there.md"] {
        assert!(refused.err.contains(name), "{}", refused.err);
    }
    assert!(!refused.err.contains("text.md") && !refused.err.contains("sentence.md"), "{}", refused.err);
    assert_eq!(crate::program::files(&hub.house.path("copy")), before, "nothing has changed");

    let said = hub.run_in("copy", &["pull", "--keep-conflicts", "--json"]).good().json();
    assert_eq!(said["details"]["merged"], json!(["sentence.md", "text.md"]));
    assert_eq!(said["details"]["conflicts"], json!(["both-new.md", "clash.md", "deleted-there.md"]));
    let merged = lines("1 two three four 5");
    let expected = [
        ("text.md", merged.as_str()),
        ("sentence.md", "Another first. Another second.\n"),
        ("same.md", "same\n"),
        ("mine.md", "mine\n"),
        ("dir", "now a file\n"),
        ("clash.md", "ours\n"),
        ("clash (GitHub).md", "theirs\n"),
        ("both-new.md", "ours\n"),
        ("both-new (GitHub).md", "theirs\n"),
        ("deleted-here.md", "theirs\n"),
        ("deleted-there.md", "ours\n"),
    ];
    for (name, text) in expected {
        assert_eq!(hub.text(&format!("copy/{name}")), text, "{name}");
    }
    assert!(!hub.has("copy/gone.md"));
    // The user's changes are on top of what was pulled.
    let status = hub.run_in("copy", &["status"]).good().text();
    let changes: Vec<&str> = status.lines().skip(1).collect();
    let expected = [
        "?? both-new (GitHub).md",
        " M both-new.md",
        "?? clash (GitHub).md",
        " M clash.md",
        "?? deleted-there.md",
        " M mine.md",
        " M sentence.md",
        " M text.md",
    ];
    assert_eq!(changes, expected);
    assert!(hub.run_in("copy", &["pull"]).good().text().contains("nothing new"));
    hub.run_in("copy", &["commit", "-m", "Mine", "--push", "mine.md", "text.md"]).good();
    assert_eq!(hub.log(), "Mine\nElsewhere\nFirst");
    // A file that is in the way of a folder is kept, too.
    hub.elsewhere(&[("sub/a.md", Some("a\n"))], "Sub");
    write("sub", "a file of mine\n");
    hub.run_in("copy", &["pull"]).refused(1, "sub/a.md");
    assert_eq!(hub.text("copy/sub"), "a file of mine\n");
}

#[test]
fn a_commit_that_others_overtake_is_refused_and_changes_nothing() {
    let hub = Hub::with(&[("a.md", "one\ntwo\nthree\n"), ("b.md", "b\n")]);
    hub.clone();
    hub.elsewhere(&[("b.md", Some("theirs\n"))], "Theirs");
    hub.house.write("copy/a.md", b"1\ntwo\nthree\n");
    let commit = || hub.run_in("copy", &["commit", "-m", "Mine", "--push"]);
    commit().refused(1, "Pull first");
    assert!(hub.server.take_seen().iter().all(|one| one.method == "GET"), "nothing was uploaded");
    hub.run_in("copy", &["pull"]).good();
    // Someone is faster between the look at the branch and its change.
    let other = hub.house.path("other");
    let faster = move || commit_elsewhere(&other, &[("a.md", Some("one\ntwo\n3\n"))], "Faster");
    hub.server.fail("PATCH", Fault::Before(Box::new(faster)));
    commit().refused(1, "Pull first");
    assert_eq!(hub.log(), "Faster\nTheirs\nFirst");
    assert_eq!(hub.text("copy/a.md"), "1\ntwo\nthree\n");
    hub.run_in("copy", &["pull"]).good();
    assert_eq!(hub.text("copy/a.md"), "1\ntwo\n3\n");
    commit().good();
    assert_eq!(hub.log(), "Mine\nFaster\nTheirs\nFirst");
    // A protected branch.
    hub.house.write("copy/b.md", b"mine\n");
    let body = json!({"message": "Repository rule violations found"}).to_string().into_bytes();
    hub.server.fail("PATCH", Fault::Answer(422, Vec::new(), body));
    commit().refused(2, "Repository rule violations found");
    let status = hub.run_in("copy", &["status"]).good().text();
    assert!(status.contains(" M b.md"), "{status}");
    // The branch is changed, and the answer is lost.
    hub.server.fail("PATCH", Fault::Cut);
    commit().good();
    assert_eq!(hub.log(), "Mine\nMine\nFaster\nTheirs\nFirst");
    assert!(hub.run_in("copy", &["pull"]).good().text().contains("nothing new"));
}

#[test]
fn an_agent_works_in_a_folder_from_github() {
    let hub = Hub::with(&[("a.md", "one\n"), ("b.md", "other\n")]);
    hub.clone();
    let calls = [
        ("write_file", json!({"path": "a.md", "content": "one\nby the agent\n"})),
        ("git_status", json!({})),
        ("git_log", json!({})),
        ("git_fetch", json!({})),
        ("git_diff", json!({})),
        ("read_file", json!({"path": "a.md"})),
        ("git_commit", json!({"message": "Not sent"})),
        ("read_file", json!({"path": "b.md"})),
        ("git_push", json!({})),
        ("list_files", json!({})),
        ("git_commit", json!({"message": "Too early", "push": true})),
        ("git_pull", json!({})),
        ("git_commit", json!({"message": "By the agent", "files": ["a.md"], "push": true})),
        ("git_switch", json!({"branch": "x"})),
        ("git_clone", json!({"repository": "ada/notes", "directory": "second"})),
    ];
    let script = calls.to_vec();
    let model = super::agents::model(move |turn, _| match script.get(turn) {
        Some(call) => (String::new(), vec![call.clone()]),
        None => ("Done.".to_owned(), Vec::new()),
    });
    super::agents::configure(&hub.house, &model);
    hub.elsewhere(&[("b.md", Some("changed elsewhere\n"))], "Elsewhere");
    let mut words = vec!["ask", "work on it", "--project", "copy", "--json"];
    for tool in ["git_commit", "git_push", "git_fetch", "git_pull", "git_switch", "git_clone", "write_file"] {
        words.extend(["--approve", tool]);
    }
    let steps = finish(hub.command("", &words), b"").good().lines();
    let said: Vec<String> = steps
        .iter()
        .filter(|step| step["type"] == "tool_result")
        .map(|step| step["result"].as_str().or(step["error"].as_str()).unwrap_or_default().to_owned())
        .collect();
    let head = git(&hub.house.path("other"), &["log", "-1", "--format=%h", "--abbrev=8", "HEAD~1"]);
    let wanted = [
        "",
        &format!("on main at {head}, from ada/notes of GitHub without Git\n M a.md"),
        "git_fetch lists them",
        "main has newer commits than",
        "a clone that Git has made",
        "by the agent",
        "git_commit with push commits and sends it",
        "other",
        "git_commit with push commits and sends it",
        "a.md",
        "has commits that aren't here, so nothing was committed",
        "Pulled. Files written: 1, deleted: 0.",
        "committed to ada/notes:",
        "a clone that Git has made",
        "downloaded the files of",
    ];
    assert_eq!(said.len(), wanted.len(), "{steps:?}");
    for (said, wanted) in said.iter().zip(wanted) {
        assert!(said.contains(wanted), "“{wanted}” isn't in: {said}");
    }
    assert!(said[3].contains("Ada: Elsewhere\n") && said[3].contains("Ada: First"), "{}", said[3]);
    assert_eq!(hub.log(), "By the agent\nElsewhere\nFirst");
    assert_eq!(git(&hub.house.path("remote.git"), &["show", "main:a.md"]), "one\nby the agent");
    assert_eq!(hub.text("copy/b.md"), "changed elsewhere\n");
    assert_eq!(hub.text("copy/second/a.md"), "one\nby the agent\n");
}
