//! Conflicts of Git as choices on the command line, with the real `git`.

use super::agents;
use super::git::{caller, git, know_user, run_in, with_remote};
use crate::program::{House, start_import};
use serde_json::{Value, json};

/// Thirty lines, of which some have other words.
fn lines(changes: &[(usize, &str)]) -> String {
    let word = |number: usize| changes.iter().find(|(at, _)| *at == number).map(|(_, word)| (*word).to_owned());
    (1..=30).map(|number| word(number).unwrap_or_else(|| format!("line {number}")) + "\n").collect()
}

/// A repository whose branches `main` and `idea` have changed the same files: what `main`, and then `idea`, writes or
/// deletes.
fn diverged(files: &[(&str, &[u8], Option<&[u8]>, Option<&[u8]>)]) -> House {
    let house = House::new();
    for (name, base, _, _) in files {
        house.write(&format!("notes/{name}"), base);
    }
    house.run(&["open", "notes"]).good();
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["branch", "idea"]);
    for branch in ["main", "idea"] {
        git(&notes, &["switch", "-q", branch]);
        for (name, _, main, idea) in files {
            match if branch == "main" { main } else { idea } {
                Some(bytes) => house.write(&format!("notes/{name}"), bytes),
                None => std::fs::remove_file(notes.join(name)).expect("removed"),
            }
        }
        git(&notes, &["add", "-A"]);
        git(&notes, &["commit", "-qm", &format!("Change on {branch}")]);
    }
    git(&notes, &["switch", "-q", "main"]);
    house
}

fn resolve(house: &House, words: &[&str]) -> String {
    run_in(house, "notes", &[&["resolve"], words].concat()).good().text()
}

fn refuse(house: &House, words: &[&str], why: &str) {
    run_in(house, "notes", &[&["resolve"], words].concat()).refused(2, why);
}

fn unmerged(house: &House) -> String {
    git(&house.path("notes"), &["diff", "--name-only", "--diff-filter=U"])
}

#[test]
fn a_merge_is_resolved_conflict_by_conflict() {
    let main = lines(&[(2, "main 2"), (28, "main 28")]);
    let idea = lines(&[(2, "idea 2"), (15, "idea 15"), (28, "idea 28")]);
    let house = diverged(&[
        ("a.md", lines(&[]).as_bytes(), Some(main.as_bytes()), Some(idea.as_bytes())),
        ("crlf.md", b"one\r\ntwo\r\n", Some(b"one\r\nmain\r\n"), Some(b"one\r\nidea\r\n")),
        ("data.bin", b"\0old", Some(b"\0main"), Some(b"\0idea\r\n")),
        ("gone.md", b"old\n", Some(b"main\n"), None),
        ("kept.md", b"old\n", None, Some(b"idea\n")),
    ]);
    let notes = house.path("notes");
    assert_eq!(run_in(&house, "notes", &["conflicts"]).good().text(), "No file is in conflict.\n");
    run_in(&house, "notes", &["merge", "idea"]).refused(1, "To choose between both sides");
    assert_eq!(house.read("notes/a.md"), main.as_bytes(), "it was taken back");
    run_in(&house, "notes", &["push", "--keep-conflicts"]).refused(2, "goes with merge, rebase and pull");
    run_in(&house, "notes", &["merge", "--abort", "--keep-conflicts"]).refused(2, "goes with merge, rebase and pull");
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).refused(1, "`tracebook git conflicts` lists them");

    // Notes have the user's own text where both have changed it, and all that is no conflict.
    let merged = lines(&[(2, "main 2"), (15, "idea 15"), (28, "main 28")]);
    assert_eq!(house.read("notes/a.md"), merged.as_bytes());
    assert_eq!(house.read("notes/crlf.md"), b"one\r\nmain\r\n");
    let listed = run_in(&house, "notes", &["conflicts", "--json"]).good().json();
    assert_eq!(listed["sides"]["ours"], json!({"name": "Your change (main)", "is_yours": true}));
    assert_eq!(listed["sides"]["theirs"], json!({"name": "From idea", "is_yours": false}));
    assert_eq!((&listed["under_way"], &listed["complete"]), (&json!("merge"), &json!(true)));
    let file = |file: &Value| (file["path"].clone(), file["kind"].clone(), file["regions"].clone());
    let files: Vec<_> = listed["files"].as_array().into_iter().flatten().map(file).collect();
    let expected = [
        ("a.md", "both-modified", 2),
        ("crlf.md", "both-modified", 1),
        ("data.bin", "both-modified", 0),
        ("gone.md", "deleted-by-theirs", 0),
        ("kept.md", "deleted-by-ours", 0),
    ];
    assert_eq!(files, expected.map(|(path, kind, count)| (json!(path), json!(kind), json!(count))));
    assert_eq!(listed["files"][2]["is_binary"], json!(true));
    let text = run_in(&house, "notes", &["conflicts"]).good().text();
    assert!(text.contains("--theirs  From idea\n") && text.contains("a.md  changed on both sides, 2 conflicts\n"));
    let text = run_in(&house, "notes", &["conflicts", "a.md"]).good().text();
    assert!(
        text.contains("conflict 2, line ") && text.contains("  --ours: Your change (main)\n    main 28\n"),
        "{text}"
    );

    // Staging would take one side without a choice.
    run_in(&house, "notes", &["add", "a.md"]).refused(2, "a.md is in conflict");
    run_in(&house, "notes", &["add"]).refused(2, "is in conflict");
    run_in(&house, "notes", &["commit", "--all", "-m", "No"]).refused(2, "is in conflict");
    // Wrong input.
    let before = house.read("notes/a.md");
    refuse(&house, &["a.md"], "one of --ours, --theirs and --both");
    refuse(&house, &["a.md", "--ours", "--both"], "one of --ours, --theirs and --both");
    refuse(&house, &["--ours"], "resolve needs one file");
    refuse(&house, &["a.md", "--ours", "--region", "3"], "there is no conflict 3 in it, it has 2");
    refuse(&house, &["a.md", "--ours", "--region", "0"], "there is no conflict 0");
    refuse(&house, &["a.md", "--ours", "--region", "x"], "wants a whole number");
    refuse(&house, &["nowhere.md", "--ours"], "it isn't in conflict");
    refuse(&house, &["../W/a.md", "--ours"], "leads out of the volume");
    refuse(&house, &["data.bin", "--both"], "it isn't text");
    refuse(&house, &["gone.md", "--ours", "--region", "1"], "only one side has this file");
    run_in(&house, "notes", &["conflicts", "nowhere.md"]).refused(2, "it isn't in conflict");
    run_in(&house, "W", &["conflicts"]).refused(2, "there is no git repository");
    run_in(&house, "W", &["resolve", "a.md", "--ours"]).refused(2, "there is no git repository");
    assert_eq!(house.read("notes/a.md"), before);

    // One conflict; what was typed meanwhile stays, and a choice for an older text is refused.
    let seen = run_in(&house, "notes", &["conflicts", "a.md", "--json"]).good().json();
    assert_eq!(seen["file"]["regions"][0]["theirs"], json!("idea 2\n"));
    let seen = seen["file"]["seen"].as_str().expect("a hash").to_owned();
    let said = resolve(&house, &["a.md", "--theirs", "--region", "2", "--seen", &seen]);
    assert!(said.starts_with("Kept “From idea” in a.md. 1 conflict is left in it.\nTo get the former text back: "));
    let partly = lines(&[(2, "main 2"), (15, "idea 15"), (28, "idea 28")]);
    assert_eq!(house.read("notes/a.md"), partly.as_bytes());
    let typed = format!("{partly}typed\n");
    house.write("notes/a.md", typed.as_bytes());
    refuse(&house, &["a.md", "--ours", "--region", "1", "--seen", &seen], "a.md has changed meanwhile");
    assert_eq!(house.read("notes/a.md"), typed.as_bytes());
    let said = resolve(&house, &["a.md", "--both", "--region", "1"]);
    assert!(said.contains("Kept both sides in a.md. No conflicts are left in it, so it's staged."), "{said}");
    let both = lines(&[(2, "main 2\nidea 2"), (15, "idea 15"), (28, "idea 28")]) + "typed\n";
    assert_eq!(house.read("notes/a.md"), both.as_bytes());
    assert_eq!(unmerged(&house), "crlf.md\ndata.bin\ngone.md\nkept.md");

    resolve(&house, &["crlf.md", "--both"]);
    assert_eq!(house.read("notes/crlf.md"), b"one\r\nmain\r\nidea\r\n");
    resolve(&house, &["data.bin", "--theirs"]);
    assert_eq!(house.read("notes/data.bin"), b"\0idea\r\n");
    house.write("notes/gone.md", b"main\nand more\n");
    let done = run_in(&house, "notes", &["resolve", "gone.md", "--theirs", "--json"]).good().json();
    assert!(!notes.join("gone.md").exists(), "{done}");
    assert_eq!(done["conflicts_left"], json!(0));
    resolve(&house, &["kept.md", "--theirs"]);
    assert_eq!((house.read("notes/kept.md"), unmerged(&house)), (b"idea\n".to_vec(), String::new()));
    run_in(&house, "notes", &["merge", "--continue"]).good();
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    assert_eq!(git(&notes, &["ls-files"]), "a.md\ncrlf.md\ndata.bin\nkept.md");
    // The deleted text is kept.
    run_in(&house, "notes", &["restore", "gone.md", "--from", done["kept"].as_str().expect("a hash")]).good();
    assert_eq!(house.read("notes/gone.md"), b"main\nand more\n");
}

#[test]
fn the_sides_of_rebase_pull_cherry_pick_and_stash_have_names() {
    let house = diverged(&[("a.md", b"one\n", Some(b"main\n"), Some(b"idea\n"))]);
    let notes = house.path("notes");
    let sides = || {
        let listed = run_in(&house, "notes", &["conflicts", "--json"]).good().json();
        let side = |which: &str| {
            let side = &listed["sides"][which];
            (side["name"].as_str().unwrap_or_default().to_owned(), side["is_yours"] == json!(true))
        };
        (side("ours"), side("theirs"))
    };
    let pair =
        |ours: (&str, bool), theirs: (&str, bool)| ((ours.0.to_owned(), ours.1), (theirs.0.to_owned(), theirs.1));
    // In a rebase, Git's theirs is the user's change.
    git(&notes, &["switch", "-q", "idea"]);
    run_in(&house, "notes", &["rebase", "main", "--keep-conflicts"]).refused(1, "Choose a side for each conflict");
    assert_eq!(sides(), pair(("From main", false), ("Your change: Change on idea", true)));
    assert_eq!(house.read("notes/a.md"), b"idea\n", "the user's own text stays");
    run_in(&house, "notes", &["rebase", "--continue"]).refused(1, "Files are still in conflict");
    assert!(resolve(&house, &["a.md", "--theirs"]).contains("Kept “Your change: Change on idea” in a.md."));
    run_in(&house, "notes", &["rebase", "--continue"]).good();
    assert_eq!(house.read("notes/a.md"), b"idea\n");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Change on idea\nChange on main\nFirst");

    git(&notes, &["switch", "-q", "-c", "picked", "main~1"]);
    let pick = std::process::Command::new("git").args(["cherry-pick", "idea"]).current_dir(&notes).output();
    assert!(!pick.expect("git is there").status.success());
    assert_eq!(sides(), pair(("Your change (picked)", true), ("From the commit: Change on idea", false)));
    git(&notes, &["cherry-pick", "--abort"]);
    git(&notes, &["switch", "-q", "main"]);
    let revert = std::process::Command::new("git").args(["revert", "main~1"]).current_dir(&notes).output();
    assert!(!revert.expect("git is there").status.success());
    assert_eq!(sides(), pair(("Your change (main)", true), ("Without: First", false)));
    git(&notes, &["revert", "--abort"]);

    // A pull, with both ways to bring changes together.
    git(&notes, &["push", "-qu", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house.write("other/a.md", b"other\n");
    git(&house.path("other"), &["commit", "-qam", "Other"]);
    git(&house.path("other"), &["push", "-q"]);
    house.write("notes/a.md", b"mine");
    git(&notes, &["commit", "-qam", "Mine"]);
    run_in(&house, "notes", &["pull"]).refused(1, "Nothing was merged");
    run_in(&house, "notes", &["pull", "--rebase", "--keep-conflicts"]).refused(1, "Choose a side");
    assert_eq!(sides(), pair(("From origin/main", false), ("Your change: Mine", true)));
    run_in(&house, "notes", &["rebase", "--abort"]).good();
    run_in(&house, "notes", &["pull", "--keep-conflicts"]).refused(1, "Choose a side");
    assert_eq!(sides(), pair(("Your change (main)", true), ("From origin/main", false)));
    // A side whose last line has no end keeps it that way.
    resolve(&house, &["a.md", "--ours", "--region", "1"]);
    assert_eq!(house.read("notes/a.md"), b"mine");
    run_in(&house, "notes", &["merge", "--continue"]).good();

    // A stash that doesn't fit leaves conflicts, though nothing is under way.
    house.write("notes/a.md", b"stashed\n");
    run_in(&house, "notes", &["stash"]).good();
    house.write("notes/a.md", b"later\n");
    run_in(&house, "notes", &["commit", "-m", "Later"]).good();
    run_in(&house, "notes", &["stash", "pop"]).refused(1, "Choose a side for each conflict");
    assert_eq!(sides(), pair(("Your files", true), ("From the stash", false)));
    run_in(&house, "notes", &["commit", "-m", "No"]).refused(1, "Files are still in conflict");
    resolve(&house, &["a.md", "--theirs", "--region", "1"]);
    assert_eq!(house.read("notes/a.md"), b"stashed\n");
    run_in(&house, "notes", &["commit", "-m", "Stashed"]).good();
}

#[test]
fn a_note_in_conflict_has_no_markers_and_keeps_its_choices() {
    let (main, idea) = (lines(&[(2, "main 2"), (28, "main 28")]), lines(&[(2, "idea 2"), (28, "idea 28")]));
    let texts = |name| (name, lines(&[]).into_bytes(), main.clone().into_bytes(), idea.clone().into_bytes());
    let files = ["a.md", "b.md", "code.txt"].map(texts);
    let files: Vec<_> =
        files.iter().map(|(name, base, main, idea)| (*name, &**base, Some(&**main), Some(&**idea))).collect();
    let house = diverged(&files);
    let notes = house.path("notes");
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).refused(1, "Choose a side for each conflict");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "UU a.md\nUU b.md\nUU code.txt");
    assert_eq!(house.read("notes/a.md"), main.as_bytes());
    assert_eq!(house.cat("a.md"), main.as_bytes(), "nor has the document");
    assert!(String::from_utf8_lossy(&house.read("notes/code.txt")).contains("<<<<<<< HEAD\nmain 2\n"));
    let one = |path: &str| run_in(&house, "notes", &["conflicts", path, "--json"]).good().json()["file"].clone();
    let count = |path: &str| one(path)["regions"].as_array().map_or(0, Vec::len);

    // A choice may leave the text as it is, and another one for the same numbers is refused.
    let seen = one("a.md")["seen"].as_str().expect("a hash").to_owned();
    assert!(
        resolve(&house, &["a.md", "--ours", "--region", "1", "--seen", &seen]).contains("1 conflict is left in it.")
    );
    assert_eq!((house.read("notes/a.md"), count("a.md")), (main.clone().into_bytes(), 1));
    refuse(&house, &["a.md", "--ours", "--region", "1", "--seen", &seen], "a.md has changed meanwhile");
    run_in(&house, "notes", &["add", "a.md"]).refused(2, "a.md is in conflict");
    run_in(&house, "notes", &["commit", "-m", "No"]).refused(1, "Files are still in conflict");
    // What is edited elsewhere moves a conflict.
    house.write("notes/a.md", format!("top\n{}", main.replace("line 20\n", "line 20\r\n")).as_bytes());
    let file = one("a.md");
    assert_eq!((&file["regions"][0]["line"], &file["regions"][0]["theirs"]), (&json!(29), &json!("idea 28\n")));
    resolve(&house, &["a.md", "--theirs", "--region", "1"]);
    let resolved = format!("top\n{}", lines(&[(2, "main 2"), (28, "idea 28")]).replace("line 20\n", "line 20\r\n"));
    assert_eq!(house.read("notes/a.md"), resolved.as_bytes());
    assert_eq!(unmerged(&house), "b.md\ncode.txt");
    // One that is edited itself is left to the user.
    house.write("notes/b.md", main.replace("main 28", "main and idea 28").as_bytes());
    let why = "the text of 1 conflict was edited, so choose for the others, and then stage it if it's as you want it";
    assert_eq!((count("b.md"), &one("b.md")["trouble"]), (1, &json!(why)));
    run_in(&house, "notes", &["add", "b.md"]).refused(2, "b.md is in conflict");
    assert!(resolve(&house, &["b.md", "--both", "--region", "1"]).contains("1 conflict is left in it."));
    refuse(&house, &["b.md", "--ours", "--region", "1"], "the text of 1 conflict was edited, so stage it");
    assert_eq!(unmerged(&house), "b.md\ncode.txt");
    run_in(&house, "notes", &["add", "b.md"]).good();
    let both = lines(&[(2, "main 2\nidea 2"), (28, "main and idea 28")]);
    assert_eq!(git(&notes, &["show", ":b.md"]), both.trim_end());

    // Another merge of the same versions begins without choices, and one by Git itself has its own markers.
    run_in(&house, "notes", &["merge", "--abort"]).good();
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).code(1);
    assert_eq!((count("a.md"), count("b.md")), (2, 2));
    run_in(&house, "notes", &["merge", "--abort"]).good();
    let merge = std::process::Command::new("git").args(["merge", "idea"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success());
    assert!(String::from_utf8_lossy(&house.read("notes/a.md")).contains("<<<<<<< HEAD\n"));
    house.write("notes/a.md", main.as_bytes());
    assert_eq!(one("a.md")["trouble"], json!("no conflict is marked in it, so stage it if it's as you want it"));
    run_in(&house, "notes", &["add", "a.md"]).good();
}

#[test]
fn choices_stay_with_their_merge_and_not_with_its_time() {
    let (main, idea) = (lines(&[(2, "main 2"), (28, "main 28")]), lines(&[(2, "idea 2"), (28, "idea 28")]));
    let house = diverged(&[
        ("a.md", lines(&[]).as_bytes(), Some(main.as_bytes()), Some(idea.as_bytes())),
        ("b.md", b"b", Some(b"b"), Some(b"b")),
    ]);
    let notes = house.path("notes");
    // A branch with the same text of the note in another commit.
    git(&notes, &["switch", "-q", "-c", "other", "idea"]);
    house.write("notes/b.md", b"other");
    git(&notes, &["commit", "-qam", "Other"]);
    git(&notes, &["switch", "-q", "main"]);
    let set_time = || {
        let file = std::fs::File::options().append(true).open(notes.join(".git/MERGE_HEAD")).expect("a merge");
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).expect("set");
    };
    let file = || run_in(&house, "notes", &["conflicts", "a.md", "--json"]).good().json()["file"].clone();
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).code(1);
    resolve(&house, &["a.md", "--theirs", "--region", "1"]);
    // As in a copy of the repository.
    set_time();
    assert_eq!(file()["regions"].as_array().map(Vec::len), Some(1), "the other conflict is still open");
    run_in(&house, "notes", &["add", "a.md"]).refused(2, "a.md is in conflict");
    // Another merge between the same versions, at the same time, of which Git has written the note.
    git(&notes, &["merge", "--abort"]);
    let merge = std::process::Command::new("git").args(["merge", "other"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success());
    set_time();
    house.write("notes/a.md", lines(&[(2, "idea 2"), (28, "main 28")]).as_bytes());
    assert_eq!(file()["trouble"], json!("no conflict is marked in it, so stage it if it's as you want it"));
    run_in(&house, "notes", &["add", "a.md"]).good();
}

#[test]
fn a_note_renamed_on_both_sides_is_resolved_name_by_name() {
    let house = diverged(&[("old.md", lines(&[]).as_bytes(), None, None)]);
    let notes = house.path("notes");
    for (branch, name) in [("idea", "theirs.md"), ("main", "ours.md")] {
        git(&notes, &["switch", "-q", branch]);
        git(&notes, &["reset", "-q", "--hard", "HEAD~1"]);
        git(&notes, &["mv", "old.md", name]);
        git(&notes, &["commit", "-qm", "Rename"]);
    }
    run_in(&house, "notes", &["merge", "idea"]).refused(1, "To choose between both sides");
    assert!(!notes.join("theirs.md").exists(), "it was taken back");
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).code(1);
    let listed = run_in(&house, "notes", &["conflicts", "--json"]).good().json();
    let file = |file: &Value| (file["path"].clone(), file["kind"].clone());
    let files: Vec<_> = listed["files"].as_array().into_iter().flatten().map(file).collect();
    let expected = [("old.md", "both-deleted"), ("ours.md", "added-by-ours"), ("theirs.md", "added-by-theirs")];
    assert_eq!(files, expected.map(|(path, kind)| (json!(path), json!(kind))));
    for name in ["old.md", "ours.md", "theirs.md"] {
        resolve(&house, &[name, "--theirs"]);
    }
    run_in(&house, "notes", &["merge", "--continue"]).good();
    assert_eq!(git(&notes, &["ls-files"]), "theirs.md");
    assert_eq!(house.read("notes/theirs.md"), lines(&[]).as_bytes());
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
}

#[test]
fn an_agent_commits_no_markers() {
    let commit = json!({"volume": "notes", "message": "By the agent", "files": ["notes/a.md"]});
    let (address, results) = caller(vec![("git_commit", commit)]);
    let house = agents::house(&address, &[("a.md", "one\n")]);
    with_remote(&house);
    house.write("notes/a.md", b"stashed\n");
    run_in(&house, "notes", &["stash"]).good();
    house.write("notes/a.md", b"later\n");
    run_in(&house, "notes", &["commit", "-m", "Later"]).good();
    run_in(&house, "notes", &["stash", "pop"]).refused(1, "Choose a side for each conflict");
    house.run(&["ask", "commit it", "--approve", "git_commit", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("files are in conflict in this repository"), "{results:?}");
    assert_eq!(git(&house.path("notes"), &["log", "-1", "--format=%s"]), "Later");
}

#[test]
fn lines_that_look_like_markers_stay_text() {
    let sample = "Git writes:\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> idea\nend\n";
    let with = |text: &str, from: &str, to: &str| text.replace(from, to).into_bytes();
    let heading = "Summary\n=======\nold\n";
    let large = |end: &str| format!("{}{end}\n", "long line\n".repeat(450_000)).into_bytes();
    let house = diverged(&[
        ("heading.md", heading.as_bytes(), Some(b"Project\n=======\nmain\n"), Some(b"Results\n=======\nidea\n")),
        ("large.md", &large("old"), Some(&large("main")), Some(&large("idea"))),
        ("notes.md", b"old\n", Some(b"main\n"), Some(b"idea\n")),
        ("plain.txt", b"old\n", Some(b"main\n"), Some(b"idea\n")),
        ("sample.md", sample.as_bytes(), Some(&with(sample, "end", "main")), Some(&with(sample, "end", "idea"))),
        ("sample.txt", sample.as_bytes(), Some(&with(sample, "end", "main")), Some(&with(sample, "end", "idea"))),
        ("sub/wide.md", b"old\n", Some(b"main =======\n"), Some(b"=======\n")),
    ]);
    // Git's own setting for longer markers.
    house.write("notes/.gitattributes", b"wide.md conflict-marker-size=12\n");
    git(&house.path("notes"), &["add", "-A"]);
    git(&house.path("notes"), &["commit", "-qm", "Attributes"]);
    run_in(&house, "notes", &["merge", "idea", "--keep-conflicts"]).refused(1, "Choose a side");
    let one = |path: &str| run_in(&house, "notes", &["conflicts", path, "--json"]).good().json()["file"].clone();

    let file = one("heading.md");
    assert_eq!(file["regions"][0]["ours"], json!("Project\n=======\nmain\n"), "{file}");
    assert_eq!(file["regions"][0]["theirs"], json!("Results\n=======\nidea\n"), "{file}");
    resolve(&house, &["heading.md", "--theirs", "--region", "1"]);
    assert_eq!(house.read("notes/heading.md"), b"Results\n=======\nidea\n");

    let file = one("sample.txt");
    assert!(file["trouble"].as_str().is_some_and(|why| why.contains("its own text has lines like conflict markers")));
    let before = house.read("notes/sample.txt");
    refuse(&house, &["sample.txt", "--ours", "--region", "1"], "its own text has lines like conflict markers");
    assert_eq!(house.read("notes/sample.txt"), before);
    resolve(&house, &["sample.txt", "--theirs"]);
    assert_eq!(house.read("notes/sample.txt"), with(sample, "end", "idea"));
    // A note has no markers but its own.
    assert_eq!(house.read("notes/sample.md"), with(sample, "end", "main"));
    let file = one("sample.md");
    assert_eq!((&file["regions"][0]["ours"], &file["regions"][0]["theirs"]), (&json!("main\n"), &json!("idea\n")));
    resolve(&house, &["sample.md", "--theirs", "--region", "1"]);
    assert_eq!(house.read("notes/sample.md"), with(sample, "end", "idea"));

    assert!(one("large.md")["trouble"].as_str().is_some_and(|why| why.contains("larger than 4 MB")));
    refuse(&house, &["large.md", "--both"], "larger than 4 MB");
    resolve(&house, &["large.md", "--ours"]);

    // In a folder of its own, paths are relative to that.
    let listed = run_in(&house, "notes/sub", &["conflicts", "--json"]).good().json();
    assert_eq!((listed["files"].as_array().map(Vec::len), &listed["files"][0]["path"]), (Some(1), &json!("wide.md")));
    run_in(&house, "notes/sub", &["resolve", "wide.md", "--theirs", "--region", "1"]).good();
    assert_eq!(house.read("notes/sub/wide.md"), b"=======\n");

    // Edited markers: nothing is guessed.
    let marked = String::from_utf8(house.read("notes/plain.txt")).expect("text");
    let edited = marked.replace("=======\n", "");
    house.write("notes/plain.txt", edited.as_bytes());
    refuse(&house, &["plain.txt", "--ours", "--region", "1"], "its conflict markers were edited");
    assert_eq!(house.read("notes/plain.txt"), edited.as_bytes());
    house.write("notes/plain.txt", b"by hand\n");
    refuse(&house, &["plain.txt", "--both"], "no conflict is marked in it");
    house.write("notes/notes.md", b"by hand\n");
    refuse(&house, &["notes.md", "--both"], "the text of 1 conflict was edited, so stage it if it's as you want it");
    run_in(&house, "notes", &["add", "notes.md", "plain.txt"]).good();
    run_in(&house, "notes", &["merge", "--continue"]).good();
    assert_eq!(house.cat("notes/notes.md"), b"by hand\n");
    assert_eq!(git(&house.path("notes"), &["status", "--porcelain"]), "");
}

#[test]
fn the_log_has_each_commit_before_its_parents() {
    use std::io::Write;
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let mut import = start_import(&notes);
    // Two lines of unequal length from one commit, all of one second, except that the clock of the first was fast.
    let commits = [
        (1, 2_000, ""),
        (2, 1_000, "from :1\n"),
        (3, 1_000, "from :2\n"),
        (4, 1_000, "from :3\n"),
        (5, 1_000, "from :1\n"),
        (6, 1_000, "from :5\nmerge :4\n"),
    ];
    let mut to = import.stdin.take().expect("a pipe");
    for (number, seconds, parents) in commits {
        let head = format!("commit refs/heads/odd\nmark :{number}\ncommitter Ada <a@example.org> {seconds} +0000\n");
        write!(to, "{head}data 1\n{number}\n{parents}M 100644 inline n{number}.md\ndata 1\nx\n\n").expect("written");
    }
    drop(to);
    assert!(import.wait().expect("ended").success());
    git(&notes, &["switch", "-q", "odd"]);
    let log = run_in(&house, "notes", &["log", "--json"]).good().json();
    let ids: Vec<&str> = log.as_array().into_iter().flatten().filter_map(|commit| commit["id"].as_str()).collect();
    assert_eq!(ids.len(), commits.len());
    for line in git(&notes, &["rev-list", "--parents", "odd"]).lines() {
        let mut places = line.split(' ').map(|id| ids.iter().position(|known| *known == id).expect("it's listed"));
        let own = places.next().expect("a commit");
        assert!(places.all(|parent| own < parent), "{log}");
    }
    let log = run_in(&house, "notes", &["log", "--limit", "3", "--json"]).good().json();
    assert_eq!((log.as_array().map(Vec::len), &log[0]["id"]), (Some(3), &json!(ids[0])));
}
