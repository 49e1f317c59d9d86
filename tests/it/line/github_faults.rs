//! GitHub's API under faults: errors, limits, cut connections, hostile repositories, and the program killed at work.

use super::git::git;
use super::github_api::Hub;
use super::github_server::Fault;
use crate::program::finish;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn error(status: u16, headers: &[(&'static str, String)], text: &str) -> Fault {
    Fault::Answer(status, headers.to_vec(), json!({"message": text}).to_string().into_bytes())
}

fn seconds_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("a time")
}

#[test]
fn errors_that_pass_are_waited_for_and_others_reported() {
    let hub = Hub::with(&[("a.md", "one\n"), ("b.md", &"long text\n".repeat(1_000))]);
    // A server with trouble of its own, a busy one, and connections that are cut.
    hub.server.fail("git/ref", error(500, &[], "Server Error"));
    hub.server.fail("git/ref", error(502, &[], "Bad Gateway"));
    hub.server.fail("git/trees", Fault::Cut);
    hub.server.fail("git/blobs", Fault::Cut);
    hub.server.fail("git/commits", error(429, &[("retry-after", "1".to_owned())], "secondary rate limit"));
    let begun = Instant::now();
    hub.run_in("", &["clone", "ada/notes", "copy"]).good();
    assert!(begun.elapsed() >= Duration::from_secs(1), "it waits as it's asked to");
    assert_eq!(hub.text("copy/b.md").len(), 10_000);
    let statuses: Vec<u16> = hub.server.take_seen().iter().map(|one| one.status).filter(|one| *one != 200).collect();
    assert_eq!(statuses, [500, 502, 429]);

    // The limit of an hour isn't waited for. The time is the user's.
    let reset = (seconds_now() / 86_400 + 2) * 86_400 + 3_660;
    let headers = [("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset.to_string())];
    for (zone, time) in [("UTC", "01:01."), ("Asia/Tokyo", "10:01.")] {
        hub.server.fail("git/ref", error(403, &headers, "API rate limit exceeded for 127.0.0.1"));
        let mut command = hub.command("copy", &["git", "pull"]);
        command.env("TZ", zone);
        let refused = finish(command, b"").refused(2, "allows no more requests until");
        assert!(refused.err.contains(time) && refused.err.contains("With a token"), "{}", refused.err);
        assert_eq!(hub.server.take_seen().len(), 1, "it doesn't try again");
    }
    // A pause that is too long to wait for.
    hub.server
        .fail("git/ref", error(403, &[("retry-after", "3600".to_owned())], "You have exceeded a secondary rate limit"));
    hub.run_in("copy", &["pull"]).refused(2, "asks for a pause until");
    assert_eq!(hub.server.take_seen().len(), 1);
    hub.server.fail("git/ref", error(403, &[], "Resource not accessible by personal access token"));
    hub.run_in("copy", &["pull"]).refused(2, "Contents: read");
    // Trouble that doesn't end is reported after a bounded number of tries.
    (0..9).for_each(|_| hub.server.fail("git/ref", error(503, &[], "Service Unavailable")));
    hub.server.take_seen();
    hub.run_in("copy", &["pull"]).refused(2, "has an error of its own (status 503)");
    assert_eq!(hub.server.take_seen().len(), 5);
    let mut command = hub.command("", &["git", "clone", "ada/notes", "x"]);
    command.env("GITHUB_API_URL", "http://127.0.0.1:9");
    finish(command, b"").refused(2, "can't be reached");
    assert!(!hub.has("x") && !hub.has(".x.tracebook-clone"));
}

#[test]
fn a_tree_that_is_cut_off_is_read_folder_by_folder() {
    let names: Vec<String> =
        (0..40).map(|number| format!("d{}/e{}/f{number}/n{number}.md", number % 3, number % 2)).collect();
    let texts: Vec<String> = (0..40).map(|number| format!("text {number}\n")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    files.push(("top.md", "top\n"));
    let hub = Hub::with(&files);
    hub.server.cut_trees(10);
    hub.run_in("", &["clone", "ada/notes", "copy"]).good();
    for (name, text) in &files {
        assert_eq!(hub.text(&format!("copy/{name}")), **text, "{name}");
    }
    let status = hub.run_in("copy", &["status", "--json"]).good().json();
    assert_eq!(status["files"], json!([]));
}

#[test]
fn a_hostile_repository_writes_nothing_anywhere() {
    let hub = Hub::with(&[("a.md", "one\n")]);
    let remote = hub.house.path("remote.git");
    let blob = git(&remote, &["rev-parse", "main:a.md"]);
    let clone = |entries: Value, why: &str| {
        let tree = json!({"sha": "x", "truncated": false, "tree": entries}).to_string().into_bytes();
        hub.server.fail("git/trees", Fault::Answer(200, Vec::new(), tree));
        hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, why);
        assert!(!hub.has("copy") && !hub.has(".copy.tracebook-clone"), "{why}");
    };
    let entry = |path: &str| json!({"path": path, "mode": "100644", "type": "blob", "sha": blob, "size": 4});
    let elsewhere = hub.house.path("absolute.md").display().to_string();
    for path in [
        "../evil.md",
        "a/../../evil.md",
        &elsewhere,
        ".git/hooks/post-checkout",
        "sub/.GIT/config",
        "git~1/config",
        ".git\u{200c}/config",
        ".tracebook-github/record.json",
        "a\\..\\..\\evil.md",
        "a//b",
        "",
        "a\nb",
        ".",
    ] {
        clone(json!([entry("good.md"), entry(path)]), "isn't written here");
    }
    // A link or a file, and then something in it.
    let link = json!({"path": "dir", "mode": "120000", "type": "blob", "sha": blob, "size": 4});
    clone(json!([link, entry("dir/evil.md")]), "isn't a folder");
    clone(json!([entry("dir"), entry("dir/evil.md")]), "isn't a folder");
    clone(json!([entry("a.md"), entry("a.md")]), "twice");
    let device = json!({"path": "dev", "mode": "060000", "type": "blob", "sha": blob});
    clone(json!([device]), "no kind of file");
    clone(
        json!([{"path": "a.md", "mode": "100644", "type": "blob", "sha": "../../x", "size": 4}]),
        "hashes that can't be",
    );
    // Too large: a file, all of them, their number, and one that is longer than the tree says.
    let large =
        |path: &str, size: u64| json!({"path": path, "mode": "100644", "type": "blob", "sha": blob, "size": size});
    clone(json!([large("big.bin", 200 << 20)]), "big.bin has 200 MB, which is too much");
    let many: Vec<Value> = (0..30).map(|number| large(&format!("{number}"), 90 << 20)).collect();
    clone(json!(many), "GB together");
    let many: Vec<Value> = (0..50_001).map(|number| entry(&format!("{number}"))).collect();
    clone(json!(many), "more than 50000 files");
    hub.server.fail("git/blobs", Fault::Answer(200, Vec::new(), vec![b'x'; 1 << 20]));
    clone(json!([entry("a.md")]), "larger than expected");
    hub.server.fail("git/blobs", Fault::Answer(200, Vec::new(), b"evil".to_vec()));
    clone(json!([entry("a.md")]), "other bytes than its hash says");
    // No end of trees, redirects or JSON.
    let top = git(&remote, &["rev-parse", "main^{tree}"]);
    let folder = json!([{"path": "d", "mode": "040000", "type": "tree", "sha": top}]);
    for (text, is_cut) in [("recursive=1", true), ("git/trees", false)] {
        let tree = json!({"sha": top, "truncated": is_cut, "tree": folder}).to_string().into_bytes();
        (0..100).for_each(|_| hub.server.fail(text, Fault::Answer(200, Vec::new(), tree.clone())));
    }
    hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "very deep folders");
    let hub = Hub::with(&[("a.md", "one\n")]);
    for _ in 0..9 {
        let round = vec![("location", "/repos/ada/notes/git/ref/heads/main".to_owned())];
        hub.server.fail("git/ref", Fault::Answer(302, round, Vec::new()));
    }
    hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "redirects without an end");
    let hub = Hub::with(&[("a.md", "one\n")]);
    for body in [&b"[[[["[..], b"\xff\xfe", b"{\"default_branch\": \"../../x\"}", b"{\"default_branch\": 7}"] {
        hub.server.fail("GET /repos/ada/notes", Fault::Answer(200, Vec::new(), body.to_vec()));
        hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "sent something else");
    }
    for place in ["http://example.org/x", "https://u:p@example.org/x", "file:///etc/passwd"] {
        hub.server.fail("git/ref", Fault::Answer(302, vec![("location", place.to_owned())], Vec::new()));
        hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "isn't used");
    }
    // A record that another program has written.
    hub.clone();
    let record = "copy/.tracebook-github/record.json";
    let good = hub.text(record);
    for (from, to, why) in [
        ("a.md", "../a.md", "leads elsewhere"),
        ("\"main\"", "\"../x\"", "can't have that name"),
        ("\"notes\"", "\"..\"", "can't have that name"),
        ("127.0.0.1", "127.0.0.2", "This folder is from 127.0.0.2"),
        ("\"format\":1", "\"format\":2", "newer version"),
        ("{", "", "isn't a usable record"),
    ] {
        hub.house.write(record, good.replacen(from, to, 1).as_bytes());
        hub.run_in("copy", &["status"]).refused(2, why);
    }
}

#[test]
fn a_clone_that_is_killed_leaves_no_folder() {
    let hub = Hub::with(&[("a.md", "one\n"), ("b.md", "two\n")]);
    for place in ["git/trees", "git/blobs"] {
        let (arrived, open) = hub.server.gate(place);
        let mut child = hub.command("", &["git", "clone", "ada/notes", "copy"]).spawn().expect("started");
        arrived.recv_timeout(Duration::from_secs(60)).expect("it asks");
        child.kill().expect("killed");
        child.wait().expect("gone");
        drop(open);
        assert!(!hub.has("copy") && hub.has(".copy.tracebook-clone"));
    }
    // While another one works there, this one waits outside.
    let (arrived, open) = hub.server.gate("git/blobs");
    let mut child = hub.command("", &["git", "clone", "ada/notes", "copy"]).spawn().expect("started");
    arrived.recv_timeout(Duration::from_secs(60)).expect("it asks");
    hub.run_in("", &["clone", "ada/notes", "copy"]).refused(2, "another program clones to it");
    drop(open);
    assert!(child.wait().expect("ended").success());
    assert!(!hub.has(".copy.tracebook-clone"), "what was left is removed");
    assert_eq!((hub.text("copy/a.md"), hub.text("copy/b.md")), ("one\n".to_owned(), "two\n".to_owned()));
}

#[test]
fn a_pull_that_is_killed_leaves_whole_files_and_is_finished_later() {
    let names: Vec<String> = (0..300).map(|number| format!("n{}/{number}.md", number % 7)).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "old\n")).collect();
    files.push(("mine.md", "1\n2\n3\n4\n5\n"));
    let hub = Hub::with(&files);
    hub.clone();
    hub.house.write("copy/mine.md", b"mine\n2\n3\n4\n5\n");
    let mut changes: Vec<(&str, Option<&str>)> = names.iter().map(|name| (name.as_str(), Some("new\n"))).collect();
    changes[299].1 = None;
    changes.push(("mine.md", Some("1\n2\n3\n4\ntheirs\n")));
    hub.elsewhere(&changes, "All");

    // Killed while it downloads: nothing has changed.
    let before = crate::program::files(&hub.house.path("copy"));
    let (arrived, open) = hub.server.gate("git/blobs");
    let mut child = hub.command("copy", &["git", "pull"]).spawn().expect("started");
    arrived.recv_timeout(Duration::from_secs(60)).expect("it asks");
    child.kill().expect("killed");
    child.wait().expect("gone");
    drop(open);
    assert_eq!(crate::program::files(&hub.house.path("copy")), before);
    assert!(!hub.has("copy/.tracebook-github/pulling.json"));

    // Killed while it writes: each file is the old or the new one.
    let mut halfway = 0;
    for turn in 0..8 {
        let mut child = hub.command("copy", &["git", "pull"]).spawn().expect("started");
        let begun = Instant::now();
        while !hub.has("copy/.tracebook-github/pulling.json") && child.try_wait().expect("waited").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it doesn't begin");
            std::thread::park_timeout(Duration::from_micros(100));
        }
        std::thread::park_timeout(Duration::from_millis(turn * 40));
        // Fails if it has ended already.
        let _ = child.kill();
        child.wait().expect("gone");
        let texts: Vec<Option<String>> = names
            .iter()
            .map(|name| hub.has(&format!("copy/{name}")).then(|| hub.text(&format!("copy/{name}"))))
            .collect();
        for (text, name) in texts.iter().zip(&names) {
            assert!(matches!(text.as_deref(), Some("old\n" | "new\n") | None), "{name}: {text:?}");
        }
        let mine = hub.text("copy/mine.md");
        assert!(mine.starts_with("mine\n") && mine.lines().count() == 5, "{mine}");
        if hub.has("copy/.tracebook-github/pulling.json") {
            halfway += 1;
            let status = hub.run_in("copy", &["status"]).good().text();
            assert!(status.contains("A pull has stopped halfway"), "{status}");
            hub.run_in("copy", &["commit", "-m", "x", "--push"]).refused(1, "finish it");
        }
    }
    assert!(halfway > 0, "no kill came while files were written");
    // The branch moves on meanwhile.
    hub.elsewhere(&[("n0/0.md", Some("newer\n"))], "Newer");
    hub.run_in("copy", &["pull"]).good();
    for name in &names[1..299] {
        assert_eq!(hub.text(&format!("copy/{name}")), "new\n", "{name}");
    }
    assert!(!hub.has(&format!("copy/{}", names[299])));
    assert_eq!(hub.text("copy/n0/0.md"), "newer\n");
    assert_eq!(hub.text("copy/mine.md"), "mine\n2\n3\n4\ntheirs\n");
    let status = hub.run_in("copy", &["status", "--json"]).good().json();
    assert_eq!(status["files"], json!([{"status": " M", "path": "mine.md"}]));
    assert_eq!(status["branch"]["under_way"], Value::Null);
    hub.run_in("copy", &["commit", "-m", "Mine", "--push"]).good();
    assert_eq!(hub.log(), "Mine\nNewer\nAll\nFirst");
}
