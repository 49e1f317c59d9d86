//! Real vaults with a history of random edits on branches: after each step, the program's text is Git's. And twenty
//! edits of different cells on two branches: no conflict in a note, and one for each cell of a notebook beside it.

use super::git::{git, know_user, run_in, with_remote};
use crate::program::{House, line, shared, until};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Maximum size in bytes of a note that is taken from a vault.
const MAX_NOTE_BYTES: u64 = 20_000;
/// Number of notes that are taken from a vault.
const MAX_NOTES: usize = 60;
/// Number of times that both sides change a vault.
const ROUNDS: usize = 4;
/// Number of cells, and of edits.
const CELLS: usize = 20;

/// Copies notes of a vault into the folder `notes`. Returns their paths.
fn copy_notes(house: &House, vault: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![vault.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("listed").map(|entry| entry.expect("an entry"));
        for entry in entries {
            let (path, meta) = (entry.path(), entry.metadata().expect("known"));
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if meta.is_dir() && !is_hidden {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") && meta.len() < MAX_NOTE_BYTES {
                found.push(path);
            }
        }
    }
    found.sort();
    let step = found.len().div_ceil(MAX_NOTES).max(1);
    let chosen = found.into_iter().step_by(step).filter(|path| std::fs::read_to_string(path).is_ok());
    chosen
        .map(|path| {
            let name = path.strip_prefix(vault).expect("below").to_string_lossy().into_owned();
            house.write(&format!("notes/{name}"), &std::fs::read(&path).expect("read"));
            name
        })
        .collect()
}

/// Changes, adds or deletes some lines of a file.
fn edit_at_random(folder: &Path, name: &str, mark: &str, rng: &mut StdRng) {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).expect("text");
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for number in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=lines.len());
        match rng.random_range(0..4) {
            0 if at < lines.len() => _ = lines.remove(at),
            1 if at < lines.len() => {
                let end = if lines[at].ends_with('\n') { "\n" } else { "" };
                lines[at] = format!("{mark} instead of line {number}, with *stars* and [[links]]{end}");
            }
            _ => {
                if let Some(before) = at.checked_sub(1).and_then(|before| lines.get_mut(before))
                    && !before.ends_with('\n')
                {
                    before.push('\n');
                }
                lines.insert(at, format!("- {mark} {number}: größer als → ½\n"));
            }
        }
    }
    std::fs::write(path, lines.concat()).expect("written");
}

/// Commits all of a clone as another person.
fn commit_as(folder: &Path, author: &str, message: &str) {
    git(folder, &["add", "-A"]);
    git(
        folder,
        &["commit", "-q", "--allow-empty", "-m", message, "--author", &format!("{author} <{author}@example.org>")],
    );
}

/// The bytes of a file in the last commit.
fn committed(folder: &Path, name: &str) -> Vec<u8> {
    let done = Command::new("git").args(["show", &format!("HEAD:./{name}")]).current_dir(folder).output();
    let done = done.expect("git is there");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// Asserts that these notes are in the program, in the file and in the last commit the same.
#[track_caller]
fn are_the_same(house: &House, when: &str, names: &BTreeSet<&String>) {
    let notes = house.path("notes");
    for name in names {
        let expected = committed(&notes, name);
        let file = std::fs::read(notes.join(name)).expect("it's there");
        assert!(file == expected, "{when}: the file {name} isn't as committed");
        // Properties that an edit has broken are reported beside it.
        let shown = || house.run(&["cat", &format!("notes/{name}")]).code(0).out;
        if shown() != expected {
            // The watcher may need a moment.
            until(&format!("{when}: {name} is read as Git has written it"), || shown() == expected);
        }
    }
    assert_eq!(git(&notes, &["status", "--porcelain"]), "", "{when}: nothing else is changed");
}

fn edit_and_merge_a_vault(vault: &Path, seed: u64) {
    let house = House::new();
    let names = copy_notes(&house, vault);
    assert!(names.len() > 20, "{} has {} notes", vault.display(), names.len());
    house.write("notes/typed.md", b"end\n");
    house.run(&["open", "notes"]).code(0);
    // Notes that were edited here have a history, which names the authors of commits.
    let text = |name: &String| String::from_utf8(house.read(&format!("notes/{name}"))).expect("text");
    let edited: Vec<&String> = names.iter().filter(|name| text(name).is_ascii()).take(6).collect();
    for name in &edited {
        let end = text(name).len();
        let words = ["edit", &format!("notes/{name}")];
        house.fed(&words, line(end, 0, "\nEdited here.\n").as_bytes()).code(0);
        assert!(text(name).ends_with("Edited here.\n"), "{name}");
    }
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["push", "-q", "-u", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    let other = house.path("other");
    know_user(&other);
    let mut owner = house.owner("typed.md");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut typed = String::new();
    for (round, always) in edited.iter().copied().enumerate().take(ROUNDS) {
        let mut touched: BTreeSet<&String> = BTreeSet::new();
        let mut some = |most: usize, rng: &mut StdRng| -> Vec<&String> {
            let chosen: Vec<&String> = names.choose_multiple(rng, most).collect();
            touched.extend(&chosen);
            chosen
        };
        // The other clone: two branches, merged by plain Git. Where both changed the same lines, Grace's win.
        git(&other, &["pull", "-q", "--no-rebase", "--no-edit"]);
        git(&other, &["switch", "-q", "-c", "topic"]);
        for name in some(4, &mut rng) {
            edit_at_random(&other, name, &format!("Topic {round}"), &mut rng);
        }
        commit_as(&other, "Alan", &format!("Topic {round}"));
        git(&other, &["switch", "-q", "main"]);
        for name in some(4, &mut rng).into_iter().chain([always]) {
            edit_at_random(&other, name, &format!("Grace {round}"), &mut rng);
        }
        touched.insert(always);
        commit_as(&other, "Grace", &format!("Main {round}"));
        git(&other, &["merge", "-q", "--no-edit", "-X", "ours", "topic"]);
        git(&other, &["branch", "-qd", "topic"]);
        git(&other, &["push", "-q"]);
        // Here: typed in the open volume, and changed by another program.
        let word = format!("typed in round {round}\n");
        owner.types(0, 0, &word);
        typed = word + &typed;
        until("it's in the file", || house.read("notes/typed.md").starts_with(typed.as_bytes()));
        let mine: Vec<&String> = {
            let theirs = touched.clone();
            names.iter().filter(|name| !theirs.contains(name)).collect::<Vec<_>>()
        };
        let mine: Vec<&String> = mine.choose_multiple(&mut rng, 2).copied().collect();
        for name in &mine {
            edit_at_random(&notes, name, &format!("Mine {round}"), &mut rng);
        }
        run_in(&house, "notes", &["commit", "-m", &format!("Mine {round}")]).good();
        are_the_same(&house, &format!("round {round}, before"), &mine.iter().copied().collect());
        let words: &[&str] = if round % 2 == 0 { &["pull"] } else { &["pull", "--rebase"] };
        run_in(&house, "notes", words).good();
        run_in(&house, "notes", &["push"]).good();
        touched.extend(mine);
        are_the_same(&house, &format!("round {round}, after"), &touched);
        assert_eq!(house.cat("notes/typed.md"), format!("{typed}end\n").as_bytes(), "round {round}");
    }
    // And all of it, with a step back and forth.
    let all: BTreeSet<&String> = names.iter().step_by(5).collect();
    git(&notes, &["switch", "-q", "--detach", "HEAD~3"]);
    are_the_same(&house, "three commits ago", &all);
    run_in(&house, "notes", &["switch", "main"]).good();
    are_the_same(&house, "now", &all);
    owner.end();
    assert_eq!(house.cat("notes/typed.md"), format!("{typed}end\n").as_bytes());
    let blamed = edited[..ROUNDS].iter().filter(|name| {
        let spans = house.run(&["history", &format!("notes/{name}"), "--blame"]).code(0).text();
        spans.contains("Grace (commit ") && spans.contains("You")
    });
    let count = blamed.count();
    assert!(count >= ROUNDS / 2, "only {count} notes name Grace as the author of what she wrote");
    house.run(&["fsck"]).good();
}

#[test]
fn an_obsidian_vault_is_edited_on_branches_and_pulled() {
    let Some(vault) = shared("vaults/kepano") else { return };
    edit_and_merge_a_vault(&vault, 50);
}

#[test]
fn a_logseq_graph_is_edited_on_branches_and_pulled() {
    let Some(vault) = shared("vaults/logseq-docs") else { return };
    edit_and_merge_a_vault(&vault, 51);
}

fn code(at: usize, is_new: bool) -> String {
    format!("x{at} = {}", if is_new { "'new'" } else { "'old'" })
}

/// A note with twenty cells; some have another line.
fn note(is_new: impl Fn(usize) -> bool) -> String {
    (0..CELLS).map(|at| format!("```python\n{}\n```\n", code(at, is_new(at)))).collect()
}

/// The same as a notebook whose cells have all been run, as Jupyter writes it; counts begin with this.
fn notebook(is_new: impl Fn(usize) -> bool, first_count: usize) -> String {
    let cell = |at: usize| {
        let (code, count) = (code(at, is_new(at)), first_count + at);
        format!(
            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": {count},\n   \"id\": \"cell-{at}\",\n   \
             \"metadata\": {{}},\n   \"outputs\": [\n    {{\n     \"name\": \"stdout\",\n     \"output_type\": \
             \"stream\",\n     \"text\": [\n      \"{code}\\n\"\n     ]\n    }}\n   ],\n   \"source\": [\n    \
             \"{code}\\n\",\n    \"print(x{at})\"\n   ]\n  }}"
        )
    };
    let cells: Vec<String> = (0..CELLS).map(cell).collect();
    format!(
        "{{\n \"cells\": [\n{}\n ],\n \"metadata\": {{}},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n",
        cells.join(",\n")
    )
}

#[test]
fn twenty_edits_of_different_cells_are_no_conflict_in_a_note_and_twenty_in_a_notebook() {
    let (mine, theirs) = (|at: usize| at.is_multiple_of(2), |at: usize| !at.is_multiple_of(2));
    let house = House::with(&[("cells.md", &note(|_| false))]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["push", "-q", "-u", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house.write("other/cells.md", note(theirs).as_bytes());
    commit_as(&house.path("other"), "Grace", "Theirs");
    git(&house.path("other"), &["push", "-q"]);
    // Ten edits in the open volume, one after another.
    let mut owner = house.owner("cells.md");
    for at in (0..CELLS).filter(|at| mine(*at)) {
        let place = note(|_| false).find(&code(at, false)).expect("it's there") + format!("x{at} = '").len();
        owner.types(place, "old".len(), "new");
    }
    until("they are in the file", || house.read("notes/cells.md") == note(mine).as_bytes());
    run_in(&house, "notes", &["commit", "-m", "Mine"]).good();
    run_in(&house, "notes", &["pull"]).good();
    assert_eq!(house.read("notes/cells.md"), note(|_| true).as_bytes(), "no conflict, and all of it");
    until("the open volume has it", || house.cat("notes/cells.md") == note(|_| true).as_bytes());
    owner.end();
    assert_eq!(git(&notes, &["ls-files", "--unmerged"]), "");
    let spans = house.run(&["history", "cells.md", "--blame", "--json"]).good().lines();
    for who in ["You", "Grace"] {
        let written = spans.iter().filter(|span| span["who"].as_str().is_some_and(|name| name.starts_with(who)));
        assert!(written.count() >= CELLS / 2, "{who}: {spans:?}");
    }

    // The same edits in a notebook: each side has run all cells, so each cell has another count.
    let plain = house.path("plain");
    std::fs::create_dir(&plain).expect("made");
    git(&plain, &["init", "-q", "-b", "main"]);
    know_user(&plain);
    let write = |text: String, message: &str| {
        house.write("plain/cells.ipynb", text.as_bytes());
        git(&plain, &["add", "-A"]);
        git(&plain, &["commit", "-qm", message]);
    };
    write(notebook(|_| false, 1), "First");
    git(&plain, &["switch", "-q", "-c", "idea"]);
    write(notebook(theirs, 101), "Theirs");
    git(&plain, &["switch", "-q", "main"]);
    write(notebook(mine, 201), "Mine");
    let done = Command::new("git").args(["merge", "-q", "idea"]).current_dir(&plain).output().expect("git is there");
    assert!(!done.status.success(), "Git merges the notebook");
    let merged = String::from_utf8(house.read("plain/cells.ipynb")).expect("text");
    assert_eq!(merged.lines().filter(|line| line.starts_with("<<<<<<<")).count(), CELLS);
}
