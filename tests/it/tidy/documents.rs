//! Reads ARCHITECTURE.md and CONTRIBUTING.md for tidy: which crates they describe and which files they name.

use super::source::root;
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with the crates under `## Crates`: each must be there once, as a paragraph that starts with its
/// folder, `` - **`app/cli`** ``, and that has a sentence that starts with "Invariant:".
pub(super) fn crates_without_invariant(text: &str, folders: &[(&str, String)]) -> Vec<String> {
    let section = text.split_once("\n## Crates\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut described: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for paragraph in section.split("\n- **`").skip(1) {
        let (folder, body) = paragraph.split_once("`**").unwrap_or((paragraph, ""));
        described.entry(folder).or_default().push(body.split("\n\n").next().unwrap_or_default());
    }
    let mut found = Vec::new();
    for (name, folder) in folders {
        let folder = folder.trim_end_matches('/');
        match described.remove(folder).unwrap_or_default().as_slice() {
            [] => found.push(format!("{name}: no paragraph \"- **`{folder}`** …\" under \"## Crates\"")),
            [body] => {
                let invariant = body.split("Invariant: ").nth(1).unwrap_or_default();
                if invariant.split_whitespace().count() < 4 || !invariant.trim_end().ends_with('.') {
                    found.push(format!("{name}: say what always holds, in a sentence \"Invariant: ….\""));
                }
            }
            [_, _, ..] => found.push(format!("{name}: is described twice")),
        }
    }
    found.extend(described.keys().map(|folder| format!("{folder}: is no crate of the workspace")));
    found
}

/// The documents that users and contributors read: those at the top, under `docs`, and the sample notes. Descriptions
/// of earlier versions stay unchanged.
pub(super) fn all() -> Vec<String> {
    let mut found: Vec<String> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned).into();
    let mut folders = vec![root().join("docs"), root().join("assets/sample")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of documents").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let inside = path.strip_prefix(root()).expect("inside the checkout");
                found.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The files and folders that a document names in backticks, each with its line: text with a `/` that isn't a pattern,
/// an address or an example.
pub(super) fn paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = quoted.contains('/') && !quoted.contains("://") && !quoted.starts_with(['/', '.', '~']);
            let plain = quoted.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
            if plain && is_path {
                found.push((number, quoted.to_owned()));
            }
        }
    }
    found
}

/// The tests that a document names in backticks, each with its line: paths such as `line::tasks::a_plan_is_made`.
pub(super) fn tests(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let quoted = line.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains("::"));
        found.extend(quoted.map(|quoted| (number, quoted.to_owned())));
    }
    found
}

#[test]
fn a_crate_without_a_paragraph_or_an_invariant_is_found() {
    let folders = [("cli", "app/cli/".to_owned()), ("ui", "app/ui/".to_owned()), ("text", "engine/text/".to_owned())];
    let text = "# A\n## Crates\n\n- **`app/cli`** is the command line. Invariant: it never\n  reaches egui.\n\
                - **`app/ui`** draws.\n- **`app/gone`** was. Invariant: it is gone by now.\n\n## Walks\n";
    let found = crates_without_invariant(text, &folders);
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, start) in found.iter().zip(["ui: say what always holds", "text: no paragraph", "app/gone: is no crate"])
    {
        assert!(found.starts_with(start), "{found}");
    }
    let twice = "\n## Crates\n\n- **`app/cli`** a. Invariant: it is a b.\n- **`app/cli`** a.\n";
    assert_eq!(crates_without_invariant(twice, &folders[..1]), ["cli: is described twice"]);
}

#[test]
fn named_files_are_found_and_examples_left_out() {
    let text = "See `app/src/main.rs`, `cargo test`, `https://a.b/c`,\n`docs/decisions/NNNN-….md` and `engine/text`.";
    assert_eq!(paths(text), [(1, "app/src/main.rs".to_owned()), (2, "engine/text".to_owned())]);
}

/// The commands that stand in two rows of one table of a document, each with the line of the second: as the whole cell
/// of the first or second column.
fn repeated_commands(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        if !line.starts_with('|') {
            known.clear();
            continue;
        }
        let cells = line.trim_matches('|').split('|').take(2).map(str::trim);
        let is_command =
            |cell: &&str| cell.starts_with("`tracebook ") && cell.ends_with('`') && cell.matches('`').count() == 2;
        for command in cells.filter(is_command) {
            if !known.insert(command) {
                found.push((number, command.trim_matches('`').to_owned()));
            }
        }
    }
    found
}

#[test]
fn no_table_has_a_command_twice() {
    let text = "| To | Call |\n|---|---|\n| see | `tracebook a` |\n| `tracebook b` | all |\n| look | `tracebook a` |\n\
                \n| `tracebook a` | once more, in another table |\n";
    assert_eq!(repeated_commands(text), [(5, "tracebook a".to_owned())]);
    for path in all() {
        let text = std::fs::read_to_string(root().join(&path)).expect("a document");
        let found = repeated_commands(&text);
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}
