//! Compares the guide with the program's tables for tidy: the lists of keys, subcommands and configuration are made
//! from them, and the other pages name only what exists.

use super::guide::{DocumentParts, GUIDE, pages};
use super::source::root;
use super::{read, report};
use engine::Settings;
use engine::commands::{ArgumentForm, COMMANDS, CommandInfo};
use engine::keymap::{KeymapPreset, effective_keymap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

/// If this environment variable is set, pages made from tables are written instead of compared.
const WRITE_PAGES: &str = "TRACEBOOK_WRITE_GUIDE";
/// Keys that belong to the editor and to no command.
const EDITOR_KEYS: &[&str] = &["Shift+Tab"];

/// The groups of window commands on the page of keys, with the prefixes of their ids. The first match counts.
const KEY_GROUPS: &[(&str, &[&str])] = &[
    ("Find and help", &["palette.", "switcher.", "search.", "help.", "app."]),
    ("Cells and kernels", &["cell.", "cells.", "kernel.", "script.", "note.run_"]),
    ("Notes and files", &["note.", "folder.", "volume.", "files.", "trash.", "template.", "attachment."]),
    ("Tabs and panes", &["tab.", "pane."]),
    ("Text", &["text.", "row.", "select.", "find.", "fold.", "table.", "editor."]),
    ("Collections and figures", &["collection.", "figure."]),
    ("Panels and pages", &["view."]),
    ("Agents", &["agent.", "memory.", "model."]),
    ("Devices", &["sync."]),
    ("Export", &["export."]),
];

/// Formats text as a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn code_spans(keys: &[String]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

fn keys_page() -> String {
    let mut page = "# All commands and keys\n\nThis page is made from the program's own table. In the window, \
                    `Ctrl+Shift+P` finds any of them by name, and the [settings](settings-and-keys.md) change keys.\n"
        .to_owned();
    let group_of = |command: &CommandInfo| {
        let id = command.id.as_str();
        KEY_GROUPS.iter().position(|(_, areas)| areas.iter().any(|area| id.starts_with(area)))
    };
    for (number, (title, _)) in KEY_GROUPS.iter().enumerate() {
        let mut commands = COMMANDS.iter().filter(|command| command.window && group_of(command) == Some(number));
        let Some(first) = commands.next() else { continue };
        let _ = write!(page, "\n## {title}\n\n| Command | Keys | What it does |\n|---|---|---|\n");
        for command in std::iter::once(first).chain(commands) {
            let keys: Vec<String> = command.keys.iter().map(|key| (*key).to_owned()).collect();
            let _ =
                writeln!(page, "| {} | {} | {} |", cell(command.title), cell(&code_spans(&keys)), cell(command.help));
        }
    }
    let all = COMMANDS.iter().filter(|command| command.window && group_of(command).is_none());
    let left: Vec<&str> = all.map(|command| command.id.as_str()).collect();
    assert!(left.is_empty(), "give these commands a group in KEY_GROUPS (tests/it/tidy/guide_tables.rs): {left:?}");
    page.push_str(
        "\n## Other sets of keys\n\nChoose a set in the settings, page *Keyboard shortcuts*. Only what differs is \
         listed. The Vim set adds Vim's modes in the text, the Jupyter set adds command mode in cells.\n\n\
         | Command | Tracebook | VS Code | Obsidian | Vim |\n|---|---|---|---|---|\n",
    );
    let sets = [KeymapPreset::Tracebook, KeymapPreset::VsCode, KeymapPreset::Obsidian, KeymapPreset::Vim];
    let maps = sets.map(|preset| effective_keymap(&Settings { keymap_preset: preset, ..Settings::default() }));
    for command in COMMANDS.iter().filter(|command| maps.iter().any(|map| map[&command.id] != maps[0][&command.id])) {
        let keys = maps.each_ref().map(|map| cell(&code_spans(&map[&command.id])));
        let _ = writeln!(page, "| {} | {} |", cell(command.title), keys.join(" | "));
    }
    page
}

fn subcommands_page() -> String {
    let mut page =
        "# All subcommands\n\nThis page is made from the program's own table. `tracebook help NAME` explains \
                    a subcommand with all its options. [Command line](command-line.md) shows how to use them.\n\n\
                    | Subcommand | What it does |\n|---|---|\n"
            .to_owned();
    for command in COMMANDS {
        let Some(line) = &command.line else { continue };
        let mut usage = format!("tracebook {}", line.name);
        for argument in line.args {
            let _ = match argument.form {
                ArgumentForm::Needed => write!(usage, " {}", argument.name),
                ArgumentForm::Optional => write!(usage, " [{}]", argument.name),
                ArgumentForm::Many => write!(usage, " {}…", argument.name),
                ArgumentForm::Rest => write!(usage, " [{}…]", argument.name),
                ArgumentForm::Value | ArgumentForm::OptionalValue | ArgumentForm::Values | ArgumentForm::Flag => Ok(()),
            };
        }
        let _ = writeln!(page, "| `{}` | {} |", cell(&usage), cell(command.help));
    }
    page
}

fn configuration_page() -> String {
    format!(
        "# All keys of the configuration\n\nThese are the defaults. Write only what differs into \
         `~/.config/tracebook/config.yaml`; see [Models and keys](models.md#the-configuration).\n\n```yaml\n{}```\n",
        read("system/src/config.yaml")
    )
}

#[test]
fn pages_made_from_tables_agree_with_the_program() {
    let mut found = Vec::new();
    for (name, page) in
        [("keys.md", keys_page()), ("subcommands.md", subcommands_page()), ("configuration.md", configuration_page())]
    {
        let path = root().join(GUIDE).join(name);
        if std::env::var_os(WRITE_PAGES).is_some() {
            fs::write(&path, &page).expect("the page is written");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&*page) {
            found.push(format!("{GUIDE}{name} is out of date"));
        }
    }
    report(
        "Write these pages again: TRACEBOOK_WRITE_GUIDE=1 cargo test --workspace --ignore-rust-version --test it -- \
         tidy::guide_tables",
        &found,
    );
}

#[test]
fn commands_and_keys_in_the_guide_exist() {
    let presets =
        KeymapPreset::ALL.map(|preset| effective_keymap(&Settings { keymap_preset: preset, ..Settings::default() }));
    let mut keys: BTreeSet<&str> = presets.iter().flat_map(BTreeMap::values).flatten().map(String::as_str).collect();
    keys.extend(EDITOR_KEYS);
    let titles: BTreeSet<&str> = COMMANDS.iter().map(|command| command.title).collect();
    let mut documents: Vec<(String, String)> =
        pages().into_iter().map(|(name, page)| (format!("{GUIDE}{name}"), page)).collect();
    documents.push(("README.md".to_owned(), read("README.md")));
    let mut found = Vec::new();
    for (path, page) in documents {
        for (line, code) in DocumentParts::of(&page).code {
            if is_key(&code) && !keys.contains(&*code) {
                found.push(format!("{path}:{line}: no command has the key {code}"));
            }
            found.extend(unknown_words(&code).map(|what| format!("{path}:{line}: {what}: {code}")));
        }
        for (text, line) in page.lines().zip(1..) {
            let named = command_titles(text).into_iter().filter(|title| !titles.contains(title));
            found.extend(named.map(|title| format!("{path}:{line}: no command is called “{title}”")));
        }
    }
    report("README and guide name commands, keys and options that there are.", &found);
}

/// Whether inline code is a key of the window.
fn is_key(code: &str) -> bool {
    let function = code.strip_prefix('F').is_some_and(|number| number.parse::<u8>().is_ok());
    function
        || ["Ctrl+", "Alt+", "Shift+"].iter().any(|modifier| code.len() > modifier.len() && code.starts_with(modifier))
}

/// The part of a shell line that `tracebook` doesn't know, if any.
fn unknown_words(code: &str) -> Option<String> {
    let code = code.split(" #").next().unwrap_or_default();
    for part in code.split(['|', ';', '&', '>']) {
        let mut words = part.split_whitespace().skip_while(|word| word.contains('=')).peekable();
        if words.next() != Some("tracebook") {
            continue;
        }
        if words.next_if_eq(&"--workspace").is_some() {
            words.next();
        }
        let Some(name) = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
        else {
            continue;
        };
        if name == "help" || name.starts_with('-') {
            continue;
        }
        let Some(line) = COMMANDS.iter().filter_map(|command| command.line).find(|line| line.name == name) else {
            return Some(format!("no subcommand is called {name}"));
        };
        let known = |word: &str| {
            ["workspace", "json", "help"].contains(&word) || line.args.iter().any(|argument| argument.name == word)
        };
        // `--` alone stands before what is no option.
        let mut options = words.filter_map(|word| word.strip_prefix("--")).filter(|option| !option.is_empty());
        if let Some(option) = options.find(|option| !known(option)) {
            return Some(format!("{name} has no option --{option}"));
        }
    }
    None
}

/// The titles in a line such as “the command **Trash**” or “the commands **Cut** and **Paste**”.
fn command_titles(line: &str) -> Vec<&str> {
    let mut titles = Vec::new();
    for lead in ["command ", "commands "] {
        for (at, _) in line.match_indices(lead) {
            let mut rest = &line[at + lead.len()..];
            while let Some((title, after)) = rest.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
                titles.push(title);
                rest = [", ", " and ", " or "].iter().find_map(|joint| after.strip_prefix(joint)).unwrap_or_default();
            }
        }
    }
    titles
}

#[test]
fn keys_options_and_titles_are_recognized() {
    assert!(is_key("F5") && is_key("Ctrl+.") && !is_key("Ctrl+") && !is_key("Folder") && !is_key("# Ctrl+P"));
    assert_eq!(
        command_titles("the commands **A b**, **C** and **D**, or command **E**. **F**"),
        ["E", "A b", "C", "D"]
    );
    for good in
        ["tracebook", "tracebook help run", "tracebook --workspace ~/x ls --json", "ls", "A=1 tracebook ls # --x"]
    {
        assert_eq!(unknown_words(good), None, "{good}");
    }
    for wrong in ["tracebook lss", "tracebook ls --jsn", "echo a | tracebook cat A --wide"] {
        assert!(unknown_words(wrong).is_some(), "{wrong}");
    }
}
