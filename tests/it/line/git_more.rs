//! More of Git on the command line: read-only volumes, signed commits of agents, settings of pulls, answers as JSON,
//! repositories of other users, and what is typed while Git works.

use super::agents::house;
use super::git::{caller, git, know_user, run_in, with_remote};
use crate::program::{Done, House, finish, is_root, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs `tracebook git …` in a folder, for the house's workspace.
fn run_at(house: &House, folder: &str, words: &[&str]) -> Done {
    let workspace = house.path("W").display().to_string();
    let all: Vec<&str> = ["git"].into_iter().chain(words.iter().copied()).chain(["--workspace", &workspace]).collect();
    let mut command = house.command(&all);
    command.current_dir(house.path(folder));
    finish(command, b"")
}

/// Writes a program.
fn write_program(house: &House, name: &str, script: &str) -> String {
    house.write(name, format!("#!/bin/sh\n{script}\n").as_bytes());
    let path = house.path(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    path.display().to_string()
}

#[test]
fn hooks_do_not_get_the_passphrase_of_the_workspace() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let seen = house.path("seen");
    write_program(&house, "notes/.git/hooks/pre-commit", &format!("env > {}", seen.display()));
    house.write("notes/a.md", b"two\n");
    let workspace = house.path("W").display().to_string();
    let mut commit = house.command(&["git", "commit", "--all", "-m", "two", "--workspace", &workspace]);
    commit.current_dir(house.path("notes")).env("TRACEBOOK_PASSPHRASE", "open sesame").env("OTHER", "kept");
    finish(commit, b"").good();
    let env = std::fs::read_to_string(seen).expect("the hook ran");
    assert!(env.contains("OTHER=kept") && !env.contains("sesame"), "{env}");
}

#[test]
fn git_in_the_folder_of_a_read_only_volume_changes_nothing() {
    const REFUSAL: &str = "notes is read-only. Remove `readonly` of notes from config.yaml to change it.";
    let house = House::with(&[("a.md", "one\n"), ("sub/b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    run_at(&house, "notes", &["push"]).good();
    git(&notes, &["branch", "idea"]);
    house.write("W/config.yaml", b"volumes:\n  notes: {readonly: true}\n");
    house.write("notes/a.md", b"two\n");
    house.write("notes/sub/b.md", b"c\n");
    let address = format!("file://{}", house.path("remote.git").display());
    let state = || {
        let files = crate::program::bytes(&notes);
        (git(&notes, &["for-each-ref"]), git(&notes, &["status", "--porcelain", "--branch"]), files)
    };
    let before = state();
    for folder in ["notes", "notes/sub"] {
        for words in [
            &["commit", "-m", "x"][..],
            &["commit", "-m", "x", "--push"],
            &["add", "b.md"],
            &["add", "--hunk", "1", "b.md"],
            &["restore", "b.md"],
            &["resolve", "b.md", "--ours"],
            &["pull"],
            &["switch", "idea"],
            &["merge", "idea"],
            &["rebase", "idea"],
            &["stash"],
            &["branch", "more"],
            &["tag", "v1"],
            &["clone", &address, "inside"],
            &["merge-driver", "--install", ".", "--yes"],
        ] {
            run_at(&house, folder, words).refused(2, REFUSAL);
        }
    }
    run_at(&house, "", &["merge-driver", "--install", "notes/sub", "--yes"]).refused(2, REFUSAL);
    run_at(&house, "", &["clone", &address, "notes/inside"]).refused(2, REFUSAL);
    house.run(&["git", "clone", &address, "inside", "--volume", "notes"]).refused(2, REFUSAL);
    assert_eq!(state(), before);

    // Looking, fetching and pushing change no file, and Git itself is another program.
    let looking = [&["status"][..], &["diff"], &["log"], &["branch"], &["tag"], &["stash", "list"]];
    for words in looking.into_iter().chain([&["fetch"][..], &["push"]]) {
        run_at(&house, "notes/sub", words).good();
    }
    for name in ["base", "ours", "theirs"] {
        house.write(name, b"x\n");
    }
    run_at(&house, "notes", &["merge-driver", "../base", "../ours", "../theirs"]).good();
    // Folders beside the volume, and other workspaces, are as always.
    git(&house.path(""), &["clone", "-q", "remote.git", "beside"]);
    know_user(&house.path("beside"));
    house.write("beside/a.md", b"three\n");
    run_at(&house, "beside", &["commit", "-m", "Beside"]).good();
    run_in(&house, "notes", &["add", "a.md"]).good();
    house.write("W/config.yaml", b"");
    run_at(&house, "notes/sub", &["commit", "-m", "Allowed", "b.md"]).good();
}

#[test]
fn an_agents_commit_is_signed_if_the_settings_want_that() {
    let calls = || {
        vec![
            ("write_file", json!({"path": "new.txt", "content": "new\n"})),
            ("write_file", json!({"path": "more.txt", "content": "more\n"})),
            ("git_commit", json!({"message": "Signed", "files": ["new.txt"]})),
            ("git_commit", json!({"message": "All of it"})),
        ]
    };
    let (address, results) = caller(calls());
    let house = house(&address, &[("a.md", "# A\n"), ("staged.txt", "old\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    // Like GnuPG, it says in a line of its own that it has made a signature.
    let signer = write_program(
        &house,
        "signer",
        "cat >/dev/null\necho >&2\necho '[GNUPG:] SIG_CREATED D' >&2\n\
         printf '%s\\n' '-----BEGIN PGP SIGNATURE-----' '' 'by-the-signer' '-----END PGP SIGNATURE-----'",
    );
    let settings = format!("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {signer}\n");
    house.write(".gitconfig", settings.as_bytes());
    for name in ["pre-commit", "commit-msg", "post-commit"] {
        write_program(&house, &format!("notes/.git/hooks/{name}"), &format!("touch {}", house.path("hook").display()));
    }
    house.write("notes/staged.txt", b"changed\n");
    git(&notes, &["add", "staged.txt"]);
    house.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[2].contains("“Signed”") && heard[2].contains("new.txt"), "{heard:?}");
    assert!(heard[3].contains("“All of it”") && heard[3].contains("more.txt"), "{heard:?}");
    for commit in ["HEAD", "HEAD~1"] {
        assert!(git(&notes, &["cat-file", "commit", commit]).contains("by-the-signer"), "{commit}");
    }
    assert_eq!(git(&notes, &["show", "--format=%s", "--name-only", "HEAD~1"]), "Signed\n\nnew.txt");
    assert_eq!(git(&notes, &["show", "--format=%s", "--name-only"]), "All of it\n\nmore.txt\nstaged.txt");
    assert!(!house.path("hook").exists(), "no hook ran");

    // A signer that fails leaves all as it was, and a program that the repository names isn't run.
    let (address, results) = caller(calls());
    let failing = self::house(&address, &[("a.md", "# A\n")]);
    with_remote(&failing);
    let notes = failing.path("notes");
    let signer = write_program(&failing, "signer", "exit 2");
    failing.write(".gitconfig", format!("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {signer}\n").as_bytes());
    failing.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    for result in &heard[2..4] {
        assert!(result.contains("want signed commits") && result.contains("failed to sign"), "{heard:?}");
    }
    assert_eq!(git(&notes, &["log", "--format=%s"]), "First");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "?? more.txt\n?? new.txt");

    let (address, results) = caller(calls());
    let hostile = self::house(&address, &[("a.md", "# A\n")]);
    with_remote(&hostile);
    let notes = hostile.path("notes");
    let evil = write_program(&hostile, "evil", &format!("touch {}", hostile.path("hacked").display()));
    git(&notes, &["config", "commit.gpgsign", "true"]);
    git(&notes, &["config", "gpg.program", &evil]);
    hostile.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[2].contains("gpg.program"), "{heard:?}");
    assert!(!hostile.path("hacked").exists(), "no setting ran");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "First");
}

#[test]
fn agents_commit_freely_and_ask_before_they_use_a_remote_or_switch() {
    let (address, results) = caller(vec![("git_commit", json!({"message": "By the agent"}))]);
    let free = house(&address, &[("a.md", "# A\n")]);
    with_remote(&free);
    free.write("notes/a.md", b"# B\n");
    free.run(&["ask", "commit it", "--json"]).good();
    assert!(results.lock().expect("heard")[0].contains("By the agent"), "{results:?}");
    assert_eq!(git(&free.path("notes"), &["log", "--format=%s"]), "By the agent\nFirst");

    for (tool, arguments, question) in [
        ("git_commit", json!({"message": "x", "push": true}), "Commit and push: x"),
        ("git_push", json!({}), "Push the branch to its remote"),
        ("git_pull", json!({}), "Pull from the remote"),
        ("git_fetch", json!({}), "Fetch from the remote"),
        ("git_switch", json!({"branch": "idea"}), "Switch to the branch idea"),
        ("git_branch", json!({"name": "more"}), ""),
        ("git_merge", json!({"branch": "idea"}), "Merge the branch idea"),
        ("git_stash", json!({"action": "push"}), "Stash all changes that aren't committed"),
        ("git_stash", json!({"action": "pop"}), "Apply stash 0, and delete it"),
        ("git_clone", json!({"repository": "ada/notes", "directory": "x"}), "Clone ada/notes into x"),
    ] {
        let (address, _) = caller(vec![(tool, arguments)]);
        let house = house(&address, &[("a.md", "# A\n")]);
        with_remote(&house);
        let notes = house.path("notes");
        git(&notes, &["push", "-q", "-u", "origin", "main"]);
        git(&notes, &["branch", "idea"]);
        house.write("notes/a.md", b"# B\n");
        let state = || (git(&notes, &["for-each-ref"]), git(&notes, &["status", "--porcelain", "--branch"]));
        let before = state();
        assert_eq!(house.fed(&["ask", "go", "--no-wait"], b"").code, 1, "{tool}");
        let asked = house.run(&["approvals"]).good().text();
        assert!(!asked.is_empty() && asked.contains(question), "{tool}: {asked}");
        assert_eq!(state(), before, "{tool}");
    }
}

#[test]
fn an_agent_shows_stages_merges_and_stashes() {
    let (address, results) = caller(vec![
        ("git-show", json!({})),
        ("git-add", json!({"files": ["notes/b.md"]})),
        ("git_commit", json!({"message": "Both", "staged": true, "files": ["a.md"]})),
        ("git_commit", json!({"message": "Only b", "staged": true})),
        ("git_commit", json!({"message": "Again", "staged": true})),
        ("git_show", json!({"volume": "user", "commit": "idea"})),
        ("git_show", json!({"commit": "nowhere"})),
        ("git_stash", json!({"action": "push", "message": "Later"})),
        ("git_stash", json!({"action": "list"})),
        ("git_merge", json!({"branch": "idea"})),
        ("git-stash", json!({"action": "pop"})),
        ("git_stash", json!({"action": "list"})),
        ("git_merge", json!({"branch": "clash"})),
    ]);
    let house = house(&address, &[("a.md", "# A\n"), ("b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    for (branch, file, text) in [("idea", "idea.md", "idea\n"), ("clash", "b.md", "clash\n")] {
        git(&notes, &["switch", "-qc", branch, "main"]);
        house.write(&format!("notes/{file}"), text.as_bytes());
        git(&notes, &["add", file]);
        git(&notes, &["commit", "-qm", branch]);
        git(&notes, &["switch", "-q", "main"]);
    }
    house.write("notes/a.md", b"# B\n");
    house.write("notes/b.md", b"b\nmore\n");
    house.run(&["ask", "work on it", "--approve", "git_merge", "--approve", "git_stash", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    let expected = [
        "+# A",
        "staged",
        "Name no files",
        "“Only b”",
        "nothing is staged",
        "+idea",
        "no such commit",
        "Saved working directory",
        "0 On main: Later",
        "on main, it has no remote branch",
        "a.md",
        "nothing is stashed",
        "Both sides have changed the same lines of b.md",
    ];
    assert_eq!(heard.len(), expected.len(), "{heard:?}");
    for (said, expected) in heard.iter().zip(expected) {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(git(&notes, &["log", "--first-parent", "--format=%s"]), "Merge branch 'idea'\nOnly b\nFirst");
    assert_eq!(git(&notes, &["show", "--format=", "--name-only", "HEAD~1"]), "b.md");
    assert_eq!((house.read("notes/a.md"), house.read("notes/b.md")), (b"# B\n".to_vec(), b"b\nmore\n".to_vec()));
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md", "a conflict leaves nothing half");

    // A volume that nobody changes isn't staged in, merged or stashed.
    let (address, results) = caller(vec![
        ("git_add", json!({})),
        ("git_merge", json!({"branch": "idea"})),
        ("git_show", json!({})),
        ("git_stash", json!({"action": "push"})),
        ("git_show", json!({"volume": "system"})),
    ]);
    let locked = self::house(&address, &[("a.md", "# A\n")]);
    with_remote(&locked);
    let config = String::from_utf8(locked.read("W/config.yaml")).expect("text");
    locked.write("W/config.yaml", format!("{config}volumes:\n  notes: {{readonly: true}}\n").as_bytes());
    locked.write("notes/a.md", b"# B\n");
    locked.run(&["ask", "work on it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!([0, 1, 3].iter().all(|at| heard[*at].contains("read-only")), "{heard:?}");
    assert!(heard[2].contains("+# A") && heard[4].contains("no history in Git"), "{heard:?}");
    assert_eq!(git(&locked.path("notes"), &["status", "--porcelain"]), "M a.md");
}

/// When a file was written, since 1970.
fn time_of(path: &Path) -> Duration {
    let time = path.metadata().and_then(|meta| meta.modified()).expect("a time");
    time.duration_since(UNIX_EPOCH).expect("after 1970")
}

#[test]
fn a_change_in_the_second_of_a_commit_is_seen_by_git() {
    // Of the system's clock, by which files get their times.
    const TICK: Duration = Duration::from_millis(10);
    let (address, results) = caller(vec![("git_add", json!({"files": ["b.md"]}))]);
    let house = house(&address, &[("a.md", "# 0\n"), ("b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let (file, index) = (notes.join("a.md"), notes.join(".git/index"));
    let mut number = 0;
    until("all of it is in one second", || {
        number += 1;
        house.write("notes/a.md", format!("# {}\n", number % 10).as_bytes());
        let begun = time_of(&file);
        for name in ["c.md", "d.md"] {
            house.write(&format!("notes/{name}"), format!("{number}\n").as_bytes());
            git(&notes, &["add", "-A"]);
            git(&notes, &["commit", "-qm", "One more"]);
        }
        house.write("notes/a.md", b"# !\n");
        let seconds = [begun, time_of(&index), time_of(&file)].map(|time| time.as_secs());
        seconds == [begun.as_secs(); 3] && time_of(&index) > begun + TICK && time_of(&file) > time_of(&index)
    });
    let next = Duration::from_secs(time_of(&file).as_secs() + 1);
    until("that second is over", || SystemTime::now() > UNIX_EPOCH + next);
    house.write("notes/b.md", b"b\nmore\n");
    house.run(&["ask", "work on it"]).good();
    assert_eq!(*results.lock().expect("heard"), ["staged\nb.md"]);
    assert!(time_of(&index) >= next);
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md\nM  b.md", "Git's own view");
}

#[test]
fn the_last_commit_is_amended() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    house.write("notes/a.md", b"two\n");
    // What isn't staged stays out of it.
    run_in(&house, "notes", &["commit", "--amend"]).good();
    assert_eq!(git(&notes, &["show", "HEAD:a.md"]), "one");
    let done = run_in(&house, "notes", &["commit", "--amend", "--all"]).good().text();
    assert!(done.contains("Ada: First"), "{done}");
    assert_eq!(git(&notes, &["show", "HEAD:a.md"]), "two");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    let done = run_in(&house, "notes", &["commit", "--amend", "-m", "Better words", "--json"]).good().json();
    assert_eq!(done["done"], "commit");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Better words");
}

/// Two clones, `notes` and `other`, of the remote.
fn cloned_twice() -> House {
    let house = House::with(&[("a.md", "one\n"), ("b.md", "one\n")]);
    with_remote(&house);
    git(&house.path("notes"), &["push", "-q", "-u", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house
}

#[test]
fn a_pull_merges_or_rebases_as_the_settings_say() {
    let house = cloned_twice();
    let (notes, other) = (house.path("notes"), house.path("other"));
    let diverge = |number: usize, mine: &str| {
        house.write("other/b.md", format!("theirs {number}\n").as_bytes());
        git(&other, &["commit", "-qam", "Theirs"]);
        git(&other, &["push", "-q"]);
        house.write(&format!("notes/{mine}"), format!("mine {number}\n").as_bytes());
        git(&notes, &["commit", "-qam", "Mine"]);
    };
    let level = || {
        git(&notes, &["push", "-q"]);
        git(&other, &["pull", "-q"]);
    };
    let own_merges = || git(&notes, &["rev-list", "--count", "--merges", "origin/main..HEAD"]);
    for (number, (name, value, words, merges)) in [
        ("pull.rebase", "false", &["pull"][..], "1"),
        ("pull.rebase", "true", &["pull"], "0"),
        ("branch.main.rebase", "false", &["pull"], "1"),
        ("branch.main.rebase", "false", &["pull", "--rebase"], "0"),
        ("branch.main.rebase", "interactive", &["pull"], "0"),
    ]
    .into_iter()
    .enumerate()
    {
        git(&notes, &["config", name, value]);
        diverge(number, "a.md");
        run_in(&house, "notes", words).good();
        assert_eq!(own_merges(), merges, "{name} = {value}");
        assert_eq!(house.read("notes/b.md"), format!("theirs {number}\n").as_bytes());
        level();
    }
    // A rebase can keep own merges.
    git(&notes, &["config", "branch.main.rebase", "merges"]);
    git(&notes, &["switch", "-q", "-c", "side"]);
    git(&notes, &["commit", "-q", "--allow-empty", "-m", "Aside"]);
    git(&notes, &["switch", "-q", "main"]);
    diverge(5, "a.md");
    git(&notes, &["merge", "-q", "--no-ff", "--no-edit", "side"]);
    run_in(&house, "notes", &["pull"]).good();
    assert_eq!(own_merges(), "1");
    assert_eq!(git(&notes, &["log", "-1", "--format=%s", "HEAD~2"]), "Theirs", "below the own commits");
    level();
    // A rebase with conflicts is taken back, too.
    diverge(6, "b.md");
    let before = git(&notes, &["rev-parse", "HEAD"]);
    run_in(&house, "notes", &["pull"]).refused(1, "b.md. Nothing was merged");
    assert_eq!((git(&notes, &["rev-parse", "HEAD"]), house.read("notes/b.md")), (before, b"mine 6\n".to_vec()));
    git(&notes, &["config", "branch.main.rebase", "sometimes"]);
    run_in(&house, "notes", &["pull"]).refused(2, "the setting branch.main.rebase of Git is “sometimes”");
}

#[test]
fn every_answer_is_json_on_request() {
    let house = cloned_twice();
    let notes = house.path("notes");
    let answer = |words: &[&str]| {
        let all: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        run_in(&house, "notes", &all).good().json()
    };
    let done = |words: &[&str]| {
        let answer = answer(words);
        assert_eq!(answer["done"], words[0], "{answer}");
        assert!(answer["folder"].as_str().is_some_and(|folder| folder.ends_with("/notes")), "{answer}");
        assert!(answer["output"].is_string(), "{answer}");
        answer["branch"].clone()
    };
    let shown = answer(&["show", "HEAD"]);
    assert_eq!((&shown["commit"]["summary"], &shown["complete"]), (&json!("First"), &json!(true)));
    assert!(shown["diff"].as_str().is_some_and(|diff| diff.contains("+one\n")), "{shown}");
    house.write("notes/c.md", b"c\n");
    done(&["add", "c.md"]);
    assert_eq!(git(&notes, &["diff", "--cached", "--name-only"]), "c.md");
    let branch = done(&["commit", "-m", "Add c"]);
    assert_eq!((&branch["branch"], &branch["ahead"], &branch["behind"]), (&json!("main"), &json!(1), &json!(0)));
    assert_eq!(branch["head"].as_str(), Some(git(&notes, &["rev-parse", "HEAD"]).as_str()));
    assert_eq!(done(&["push"])["ahead"], 0);
    git(&house.path("other"), &["pull", "-q"]);
    house.write("other/a.md", b"two\n");
    git(&house.path("other"), &["commit", "-qam", "Two"]);
    git(&house.path("other"), &["push", "-q"]);
    assert_eq!(done(&["fetch"])["behind"], 1);
    let branch = done(&["pull"]);
    assert_eq!((&branch["behind"], &branch["upstream"]), (&json!(0), &json!("origin/main")));
    assert_eq!(done(&["switch", "idea", "--create"])["branch"], "idea");
    house.write("notes/a.md", b"three\n");
    done(&["stash", "-m", "later"]);
    let listed = answer(&["stash", "list"]);
    assert_eq!((&listed[0]["number"], &listed[0]["message"]), (&json!(0), &json!("On idea: later")));
    done(&["stash", "pop"]);
    assert_eq!(house.read("notes/a.md"), b"three\n");

    let address = format!("file://{}", house.path("remote.git").display());
    let lines = run_in(&house, "", &["clone", &address, "copy", "--json"]).good().lines();
    let [cloned, opened] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&cloned["done"], &cloned["branch"]["branch"]), (&json!("clone"), &json!("main")));
    assert!(cloned["folder"].as_str().is_some_and(|folder| folder.ends_with("/copy")), "{cloned}");
    assert_eq!((&opened["volume"], &opened["notes"]), (&json!("copy"), &json!(3)));
}

#[test]
fn a_repository_of_another_user_is_explained_and_nothing_of_it_runs() {
    if !is_root() {
        println!("left out: only root can give files to another user");
        return;
    }
    let calls = vec![("git_status", json!({})), ("git_commit", json!({"message": "x"})), ("git_diff", json!({}))];
    let (address, results) = caller(calls);
    let house = house(&address, &[("a.md", "# A\n"), ("sub/b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let evil = write_program(&house, "evil", &format!("touch {}", house.path("hacked").display()));
    for name in ["core.fsmonitor", "core.sshCommand", "core.pager", "gpg.program", "filter.x.clean"] {
        git(&notes, &["config", name, &evil]);
    }
    std::fs::create_dir_all(notes.join(".git/hooks")).expect("made");
    for name in ["pre-commit", "post-checkout", "pre-push", "reference-transaction"] {
        std::fs::copy(&evil, notes.join(".git/hooks").join(name)).expect("copied");
    }
    house.write("notes/a.md", b"# B\n");
    house.write("notes/sub/b.md", b"c\n");
    let head = house.read("notes/.git/refs/heads/main");
    std::os::unix::fs::chown(notes.join(".git"), Some(65_534), Some(65_534)).expect("given away");
    let advice = format!("`git config --global --add safe.directory {}`", notes.display());
    for folder in ["notes", "notes/sub"] {
        for words in [
            &["status"][..],
            &["diff"],
            &["log"],
            &["show"],
            &["blame", "b.md"],
            &["branch"],
            &["tag"],
            &["stash", "list"],
            &["conflicts"],
            &["add", "b.md"],
            &["add", "--hunk", "1", "b.md"],
            &["restore", "b.md"],
            &["resolve", "b.md", "--ours"],
            &["commit", "-m", "x", "--all"],
            &["fetch"],
            &["pull"],
            &["push"],
            &["switch", "idea"],
            &["merge", "idea"],
            &["rebase", "idea"],
            &["stash"],
            &["merge-driver", "--install", ".", "--yes"],
        ] {
            let done = run_in(&house, folder, words).refused(2, "belongs to another user");
            assert!(done.err.contains(&advice), "{words:?}: {}", done.err);
        }
    }
    house.run(&["ask", "look", "--json"]).good();
    let heard: Vec<String> = results.lock().expect("heard").clone();
    assert!(heard.iter().all(|result| result.contains("belongs to another user")), "{heard:?}");
    assert!(!house.path("hacked").exists(), "something of it ran");
    assert_eq!(house.read("notes/.git/refs/heads/main"), head);
    assert_eq!(house.read("notes/sub/b.md"), b"c\n");
    // Once the user trusts it, it's a repository like any other.
    house.write(".gitconfig", format!("[safe]\n\tdirectory = {}\n", notes.display()).as_bytes());
    let status = run_in(&house, "notes/sub", &["status", "--json"]).good().json();
    assert_eq!(status["files"], json!([{"status": " M", "path": "b.md"}]));
    assert!(!house.path("hacked").exists(), "looking ran something");
}

#[test]
fn safe_directory_trusts_what_git_trusts() {
    if !is_root() {
        println!("left out: only root can give files to another user");
        return;
    }
    let house = House::with(&[("a.md", "# A\n"), ("sub/b.md", "b\n")]);
    with_remote(&house);
    git(&house.path("notes"), &["worktree", "add", "-q", "../tree"]);
    std::os::unix::fs::symlink(house.path("notes"), house.path("link")).expect("made");
    for given in ["notes/.git", "tree/.git", "tree"] {
        std::os::unix::fs::chown(house.path(given), Some(65_534), Some(65_534)).expect("given away");
    }
    house.write("notes/a.md", b"# B\n");
    house.write("tree/a.md", b"# B\n");
    let root = house.path("");
    let root = root.display().to_string();
    let root = root.trim_end_matches('/');
    let trusted = [
        (format!("directory = {root}/*"), true),
        (format!("directory = {root}/notes/\n\tdirectory = {root}/tree/"), true),
        ("directory = ~/notes\n\tdirectory = ~/tree".to_owned(), true),
        (format!("directory = {root}/link\n\tdirectory = ~/tree"), true),
        (format!("directory = %(prefix)/{root}/*"), true),
        ("directory = .".to_owned(), true),
        (format!("directory =\n\tdirectory = {root}/*"), true),
        (format!("directory = {root}/*\n\tdirectory ="), false),
        (format!("directory = {root}/*\n\tdirectory"), false),
        (format!("directory = {root}/notes/*\n\tdirectory = {root}/tree/*"), false),
        (format!("directory = {root}"), false),
    ];
    for (setting, is_trusted) in trusted {
        house.write(".gitconfig", format!("[user]\n\tname = Ada\n\temail = a@b.c\n[safe]\n\t{setting}\n").as_bytes());
        for folder in ["notes", "tree"] {
            let status = run_in(&house, folder, &["status", "--json"]);
            if is_trusted {
                assert_eq!(status.good().json()["files"], json!([{"status": " M", "path": "a.md"}]), "{setting}");
                run_in(&house, folder, &["add", "a.md"]).good();
                run_in(&house, folder, &["restore", "--staged", "a.md"]).good();
            } else {
                status.refused(2, "belongs to another user");
                run_in(&house, folder, &["add", "a.md"]).refused(2, "belongs to another user");
            }
        }
    }
}

#[test]
fn the_text_of_a_note_follows_a_stash() {
    let house = House::with(&[("a.md", "one\n\ntwo\n")]);
    with_remote(&house);
    let mut owner = house.owner("a.md");
    owner.types(0, 0, "typed ");
    until("it's in the file", || house.read("notes/a.md") == b"typed one\n\ntwo\n");
    run_in(&house, "notes", &["stash", "-m", "for later"]).good();
    until("the note is as committed", || house.cat("a.md") == b"one\n\ntwo\n");
    owner.types(8, 0, " and more"); // behind “two”
    until("it's in the file", || house.read("notes/a.md") == b"one\n\ntwo and more\n");
    let diff = run_in(&house, "notes", &["show", "stash@{0}"]).good().text();
    assert!(diff.contains("-one\n+typed one\n"), "{diff}");
    // Over other changes of the same file, Git refuses, and the stash stays.
    run_in(&house, "notes", &["stash", "pop"]).refused(2, "Changes that aren't committed would be lost");
    assert_eq!(house.cat("a.md"), b"one\n\ntwo and more\n");
    run_in(&house, "notes", &["commit", "-m", "More"]).good();
    run_in(&house, "notes", &["stash", "pop"]).good();
    until("the note has both", || house.cat("a.md") == b"typed one\n\ntwo and more\n");
    assert_eq!(house.read("notes/a.md"), b"typed one\n\ntwo and more\n");
    assert_eq!(run_in(&house, "notes", &["stash", "list", "--json"]).good().json(), Value::Array(Vec::new()));
    owner.end();
}

/// Two clones that have diverged. In `notes`, Git takes a second to write `A.bin`, which comes before `a.md`, and makes
/// the file `begun` before that. The branch `idea` is the remote's.
fn slow_repository() -> House {
    const TEXT: &str = "# Note\n\none\n\ntwo\n";
    let attributes = (".gitattributes", "*.bin filter=slow\n");
    let house = House::with(&[("a.md", TEXT), ("b.md", "b\n"), ("A.bin", "old"), attributes]);
    with_remote(&house);
    let (notes, other) = (house.path("notes"), house.path("other"));
    git(&notes, &["push", "-q", "-u", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&other);
    house.write("other/A.bin", b"new");
    house.write("other/a.md", TEXT.replace("two", "two by Grace").as_bytes());
    git(&other, &["commit", "-qam", "Grace's"]);
    git(&other, &["push", "-q"]);
    house.write("notes/b.md", b"mine\n");
    git(&notes, &["commit", "-qam", "Mine"]);
    git(&notes, &["fetch", "-q"]);
    git(&notes, &["branch", "-q", "--no-track", "idea", "origin/main"]);
    let smudge = format!("touch {}; sleep 1; cat", house.path("begun").display());
    git(&notes, &["config", "filter.slow.smudge", &smudge]);
    git(&notes, &["config", "filter.slow.clean", "cat"]);
    house
}

#[test]
fn what_is_typed_while_git_works_is_kept() {
    for words in [&["pull"][..], &["pull", "--rebase"], &["rebase", "idea"], &["switch", "idea"], &["merge", "idea"]] {
        let house = slow_repository();
        let notes = house.path("notes");
        let mut owner = house.owner("a.md");
        house.cat("a.md");
        let all: Vec<&str> = ["git"].into_iter().chain(words.iter().copied()).collect();
        let mut command = house.command(&all);
        command.current_dir(&notes);
        let work = std::thread::spawn(move || finish(command, b""));
        until("Git writes files", || house.path("begun").exists());
        owner.types(0, 0, "typed ");
        work.join().expect("it ended").good();
        let both = b"typed # Note\n\none\n\ntwo by Grace\n";
        until(&format!("{words:?}: the note has both"), || house.cat("a.md") == both);
        until(&format!("{words:?}: so has the file"), || house.read("notes/a.md") == both);
        assert_eq!(house.read("notes/A.bin"), b"new");
        assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md", "{words:?}");
        owner.end();
        assert_eq!(house.cat("a.md"), both, "{words:?}");
    }
}

#[test]
fn outputs_of_cells_go_along_only_when_asked_for() {
    let first = "```python\nprint('tide', 3)\n```\n";
    let house = House::with(&[("sub/a.md", &format!("# A\n\n{first}\n```python\n1 + 1\n```\n")), ("b.md", first)]);
    with_remote(&house);
    let status = || run_at(&house, "notes", &["status", "--json"]).good().json()["files"].clone();
    let staged = || git(&house.path("notes"), &["diff", "--cached", "--name-status"]);
    house.run(&["run", "sub/a.md"]).good();
    house.run(&["run", "b.md"]).good();
    assert_eq!(status(), json!([]), "outputs stay out of Git");
    run_at(&house, "notes", &["add"]).good();
    assert!(!house.path("notes/sub/a.md.outputs").exists());

    // From a folder of the volume, for one note.
    run_at(&house, "notes/sub", &["add", "a.md", "--with-outputs"]).good();
    assert_eq!(house.read("notes/sub/a.md.outputs/cell-1.txt"), b"tide 3\n");
    assert_eq!(house.read("notes/sub/a.md.outputs/cell-2.txt"), b"2\n");
    assert_eq!(staged(), "A\tsub/a.md.outputs/cell-1.txt\nA\tsub/a.md.outputs/cell-2.txt");
    assert!(!house.path("notes/b.md.outputs").exists(), "it wasn't named");
    run_at(&house, "notes", &["commit", "-m", "With outputs"]).good();
    // All notes of a volume by its name.
    house.run(&["git", "commit", "-m", "All", "--volume", "notes", "--with-outputs"]).good();
    assert_eq!(git(&house.path("notes"), &["show", "--format=", "--name-only"]), "b.md.outputs/cell-1.txt");

    // The same result again is no change.
    house.run(&["run", "sub/a.md"]).good();
    run_at(&house, "notes", &["add", "--with-outputs"]).good();
    assert_eq!((status(), staged().as_str()), (json!([]), ""));

    // Another result is one; a cell that is gone takes its file along, and files of others stay.
    house.write("notes/sub/a.md", b"# A\n\n```python\nprint('tide', 4)\n```\n");
    house.write("notes/sub/a.md.outputs/mine.txt", b"mine\n");
    house.run(&["run", "sub/a.md"]).good();
    let refused = run_at(&house, "notes", &["commit", "sub/a.md", "--with-outputs"]);
    refused.refused(2, "a commit needs a message");
    assert_eq!(house.read("notes/sub/a.md.outputs/cell-1.txt"), b"tide 3\n");
    run_at(&house, "notes", &["commit", "sub/a.md", "-m", "Rise", "--with-outputs"]).good();
    let shown = git(&house.path("notes"), &["show", "--format=", "--name-status"]);
    assert_eq!(shown, "M\tsub/a.md\nM\tsub/a.md.outputs/cell-1.txt\nD\tsub/a.md.outputs/cell-2.txt");
    assert_eq!(status(), json!([{"status": "??", "path": "sub/a.md.outputs/mine.txt"}]));

    // A deleted note takes its outputs along.
    house.run(&["rm", "b.md"]).good();
    run_at(&house, "notes", &["add", "--with-outputs"]).good();
    assert!(
        staged().contains("D\tb.md.outputs/cell-1.txt") && !house.path("notes/b.md.outputs").exists(),
        "{}",
        staged()
    );
    run_at(&house, "notes", &["status", "--with-outputs"]).refused(2, "--with-outputs goes with add and commit");
    run_at(&house, "W", &["add", "--with-outputs"]).refused(2, "no volume contains");
}

#[test]
fn what_git_does_not_know_is_said_in_plain_words() {
    let house = House::with(&[("a.md", "one\n")]);
    let empty = house.path("empty");
    std::fs::create_dir(&empty).expect("made");
    git(&empty, &["init", "-q", "-b", "main"]);
    let status = run_in(&house, "empty", &["status"]).good().text();
    assert_eq!(status, "On main, no commit yet\nThere's nothing to commit.\n");
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "First"]);
    let is_said = |words: &[&str], about: &str| {
        let done = run_in(&house, "notes", words).refused(2, about);
        assert!(!done.err.contains("fatal") && !done.err.contains("literal"), "{}", done.err);
    };
    for (words, about) in [
        (&["add", "b.md"][..], "There's no file or folder b.md here. The closest are: a.md."),
        (&["commit", "-m", "B", "b.md"], "There's no file or folder b.md here. The closest are: a.md."),
        (&["restore", "--staged", "b.md"], "no file or folder b.md here"),
        (&["switch", "nowhere"], "No branch, tag or commit is called nowhere."),
        (&["merge", "nowhere"], "No branch, tag or commit is called nowhere."),
        (&["rebase", "nowhere"], "No branch, tag or commit is called nowhere."),
        (&["branch", "idea", "nowhere"], "No branch, tag or commit is called nowhere."),
        (&["branch", "nowhere", "--delete"], "No branch, tag or commit is called nowhere."),
        (&["tag", "v1", "nowhere"], "No branch, tag or commit is called nowhere."),
        (&["stash", "pop"], "There's no stash with this number."),
        (&["stash", "drop", "7"], "There's no stash with this number."),
        (&["fetch"], "the repository has no remote"),
        (&["pull"], "the repository has no remote"),
        (&["blame"], "name the file"),
        (&["switch"], "name the branch"),
        (&["clone", "../notes", "copy", "--depth", "0"], "at least 1"),
        // What a subcommand wouldn't read is refused: it means more or less than was meant.
        (&["stash", "push", "--staged"], "--staged goes with diff and restore"),
        (&["commit", "-m", "B", "--rebase"], "--rebase goes with pull"),
        (&["push", "-m", "B"], "--message goes with commit, stash and tag"),
        (&["status", "--all"], "--all goes with add, commit and log"),
    ] {
        is_said(words, about);
    }
    // All is what `add` without names takes.
    run_in(&house, "notes", &["add", "--all"]).good();
    assert_eq!(git(&notes, &["log", "--format=%s"]), "First");
    assert!(!house.path("notes/copy").exists());
    git(&house.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    git(&notes, &["remote", "add", "origin", "../remote.git"]);
    is_said(&["pull"], "This branch follows no branch of a remote");
    run_in(&house, "notes", &["push"]).good();
    run_in(&house, "notes", &["pull"]).good();
    // A branch may follow one of its own repository, without any remote.
    git(&notes, &["remote", "remove", "origin"]);
    git(&notes, &["switch", "-qc", "idea"]);
    git(&notes, &["branch", "-q", "--set-upstream-to=main"]);
    run_in(&house, "notes", &["pull"]).good();
}
