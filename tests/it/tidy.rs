//! The rules of ARCHITECTURE.md as a test: which crate may import which, which names the sources may use, the size of
//! crates and of their import cycles, type names, and the state of manifests and licenses. The test reads only
//! manifests, sources and documents.
//!
//! Each rule is a row of a table. A failure names the rule, the place and what to do. An exemption is a row, too: it
//! has a reason, and fails when nothing needs it.

mod built_once;
mod circles;
mod crate_arrows;
mod documents;
mod graph;
mod guide;
mod guide_tables;
mod ignored;
mod names;
mod source;
mod typed;
mod wording;

use crate_arrows::INSIDE;
use graph::Graph;
use names::TypeNames;
use source::{Source, root, sources};
use spdx::{Expression, Licensee, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The crates that do no I/O.
const PURE: &[&str] = &["agent", "collection", "engine", "text"];

/// The crates that draw, and those that must not.
const DRAWN: &[&str] =
    &["agent_ui", "editor", "notebook", "package_page", "settings_pages", "source_control", "ui", "window"];
const HEADLESS: &[&str] = &["cli", "export", "host"];

/// The crates that use the host: program, window, command line and their parts.
const APP: &[&str] = &[
    "agent_ui",
    "cli",
    "editor",
    "export",
    "notebook",
    "package_page",
    "settings_pages",
    "source_control",
    "tracebook",
    "ui",
    "window",
];

/// Crates that must not be reachable from others, even indirectly.
const UNREACHABLE: &[(&[&str], &[&str], &str)] = &[
    (
        &["store"],
        &["tokio", "async-io", "rayon", "notify", "reqwest", "hyper", "rustls"],
        "it is sans-IO: no threads, async or network",
    ),
    (
        &["store"],
        &["egui", "eframe", "winit", "tantivy", "rustpython-vm", "interprocess"],
        "it is what lasts, nothing else",
    ),
    (&["index"], &["egui", "eframe", "winit", "tokio", "rustpython-vm"], "it searches, nothing else"),
    (
        &["embed"],
        &["egui", "tokio", "tantivy", "reqwest", "automerge"],
        "it knows texts and vectors, and downloads nothing",
    ),
    (
        PURE,
        &["tokio", "async-io", "rayon", "notify", "reqwest", "hyper", "interprocess", "landlock"],
        "it decides; IO is the host's",
    ),
    (PURE, &["egui", "eframe", "winit", "tantivy", "rustpython-vm"], "it knows no window, no index, no kernel"),
    (HEADLESS, &["egui", "eframe", "winit"], "it works without a display"),
    (&["host"], &["rustpython-vm"], "a kernel is another process"),
    (DRAWN, &["rustpython-vm"], "a kernel is another process"),
    (
        &["python"],
        &["egui", "eframe", "winit", "tokio", "automerge", "rusqlite"],
        "it knows no notes, agents or window",
    ),
    (&["typeset"], &["egui", "eframe", "winit", "tokio", "notify", "rustpython-vm"], "text goes in and text comes out"),
    (&["plot"], &["egui", "eframe", "winit", "rustpython-vm"], "one drawing code for every backend"),
    (
        &["sandbox"],
        &["tokio", "serde_json", "automerge", "rusqlite", "rustpython-vm", "egui"],
        "the code that confines others is small and knows none of them",
    ),
    (&["system"], &["serde_json", "tokio", "automerge", "rusqlite", "egui"], "it imports nothing"),
];

/// Crates that others must not name in their own manifests, though their dependencies may.
const NOT_IN_MANIFEST: &[(&[&str], &[&str], &str)] = &[
    (
        &["store"],
        &["rand", "rand_core", "getrandom", "uuid", "chrono", "time", "jiff", "tempfile"],
        "time and chance are arguments",
    ),
    (
        PURE,
        &["automerge", "rusqlite", "rustix", "libc", "directories", "tempfile"],
        "documents and files are the store's and the host's",
    ),
    (
        PURE,
        &["rand", "getrandom", "uuid", "chrono", "time", "jiff"],
        "time and chance are arguments (rand_core is a trait)",
    ),
    (&["host"], &["automerge", "rusqlite"], "documents change through `apply` and last through the store's Disk"),
    (
        APP,
        &["automerge", "rusqlite", "tokio", "reqwest", "notify", "interprocess", "rustix"],
        "the window and the command line ask the host",
    ),
];

/// The maximum size of a crate, in lines without tests and benches.
const LARGEST_CRATE_LINES: usize = 25_000;

/// Larger crates, the maximum number of lines of each, and the reason. A row may only shrink.
const LARGE_CRATES: &[(&str, usize, &str)] = &[];
/// How many lines a crate may be below its row before the row must be reduced.
const CEILING_SLACK_LINES: usize = 500;

/// The maximum number of files of one crate that import each other in a cycle.
const LARGEST_IMPORT_CYCLE_FILES: usize = 10;

/// Crates with a larger cycle, and its number of files. A row may only shrink.
const LARGE_IMPORT_CYCLES: &[(&str, usize)] = &[];

/// The files whose functions see the whole session: dispatch and queries. All other functions of the session belong to
/// one aggregate and take the others that they need as arguments.
const WHOLE_SESSION_FILES: &[&str] = &["engine/src/session.rs", "engine/src/session/queries.rs"];

/// The maximum number of files in which the window's root object has methods. All other methods belong to a group of
/// its state and take the groups that they need. The number may only shrink.
const MAX_APP_WINDOW_FILES: usize = 9;
/// Methods of the window for tests, behind a feature. They aren't counted.
const TEST_ACCESS_FILE: &str = "app/window/src/test_access.rs";

/// The pages that name tests for the promises of the references.
const ROWS_PAGES: [&str; 2] = ["docs/rows/agents.md", "docs/rows/volumes.md"];

/// The maximum size of ARCHITECTURE.md, so that it can be read in one sitting.
const MAX_ARCHITECTURE_BYTES: usize = 16_000;

/// The maximum share of type names that are one word, and that are declared in several files, in percent of all.
const MAX_ONE_WORD_TYPES_PERCENT: usize = 35;
const MAX_REPEATED_TYPES_PERCENT: usize = 8;

/// Words that the sources of a folder must not use outside the listed files (a name ending in `/` is a folder).
struct Ban {
    within: &'static [&'static str],
    words: &'static [&'static str],
    why: &'static str,
    except: &'static [(&'static str, &'static str)],
}

/// The source folders of `PURE` and of `APP`.
const PURE_FOLDERS: &[&str] = &["engine/src/", "engine/text/src/", "engine/agent/src/", "engine/collection/src/"];
const APP_FOLDERS: &[&str] = &[
    "app/src/",
    "app/agent_ui/src/",
    "app/cli/src/",
    "app/editor/src/",
    "app/export/src/",
    "app/notebook/src/",
    "app/package_page/src/",
    "app/settings_pages/src/",
    "app/source_control/src/",
    "app/ui/src/",
    "app/window/src/",
];

const BANS: &[Ban] = &[
    Ban {
        within: &["store/src/"],
        words: &["std::fs", "std::env", "File::open", "File::create", "OpenOptions", "rusqlite", "rustix"],
        why: "files and SQLite are disk.rs's alone",
        except: &[("store/src/disk/", "the one door to the disk: SQLite, blobs, durable writes")],
    },
    Ban {
        within: &["store/src/", "store/index/src/"],
        words: &[
            "std::thread",
            "thread::spawn",
            "std::net",
            "process::Command",
            "Instant",
            "SystemTime",
            "async fn",
            "rand",
        ],
        why: "the store has no threads, clock, chance or network: they are arguments, or the host's",
        except: &[],
    },
    Ban {
        within: PURE_FOLDERS,
        words: &[
            "std::fs",
            "std::env",
            "std::thread",
            "std::net",
            "std::process",
            "File::open",
            "OpenOptions",
            "async fn",
        ],
        why: "the engine decides; the host reads, waits and sends",
        except: &[],
    },
    Ban {
        within: &["engine/typeset/src/"],
        words: &[
            "std::fs",
            "std::env",
            "std::thread",
            "std::net",
            "std::process",
            "File::open",
            "Instant",
            "SystemTime",
        ],
        why: "typesetting is pure: text goes in, text comes out",
        except: &[],
    },
    Ban {
        within: PURE_FOLDERS,
        words: &["Instant", "SystemTime", "thread_rng", "rand::rng", "rand::random"],
        why: "`apply` is pure: time and chance are arguments",
        except: &[],
    },
    Ban {
        within: &["app/", "engine/", "store/"],
        words: &["load_from_str", "load_from_parser", "serde_saphyr::from_str", "from_str_with_options"],
        why: "YAML is read within limits, by text::yaml_edit",
        except: &[("engine/text/src/yaml_edit/read.rs", "the one door of YAML")],
    },
    Ban {
        within: &["app/", "engine/"],
        words: &["Parser::new_ext", "disable_recursion_limit"],
        why: "Markdown is parsed within limits, by text::markdown::parse; JSON keeps its limit of depth",
        except: &[("engine/text/src/markdown/limits.rs", "the one door of Markdown")],
    },
    Ban {
        within: &["engine/host/src/"],
        words: &["apply_change", "automerge", "rusqlite"],
        why: "the host edits a document only through `apply` and stores only through the store's Disk",
        except: &[],
    },
    Ban {
        within: APP_FOLDERS,
        words: &["std::fs", "std::net", "File::open", "File::create", "OpenOptions", "thread::sleep"],
        why: "the window asks the host for files and network and never waits",
        except: &[],
    },
    Ban {
        within: &["system/src/"],
        words: &[
            "std::fs",
            "std::io",
            "std::env",
            "std::net",
            "std::process",
            "std::thread",
            "Mutex",
            "RwLock",
            "RefCell",
        ],
        why: "the system volume does no IO and does not change at run time",
        except: &[],
    },
];

/// Text that no source may contain, and what to do instead.
const NOWHERE: &[(&str, &str)] = &[
    ("todo!", "finish it, or say in an issue that it is not there"),
    ("unimplemented!", "finish it, or say in an issue that it is not there"),
    ("dbg!", "take it out"),
    ("#[ignore", "a test runs or is not there; make it short, or give it a condition that it prints"),
];

/// File names that don't say what a file contains.
const NAMELESS: &[&str] = &["mod", "util", "utils", "common", "helper", "helpers", "misc"];

const WIDEST: usize = 120;
const LONGEST: usize = 1000;

/// Files that may be longer than `LONGEST` lines: flat tables, or the single reducer.
const LONG: &[(&str, &str)] = &[("engine/commands/src/lib.rs", "the one table of commands")];

/// The closed enums: a new variant must break the build wherever the enum is handled.
const CLOSED: &[&str] = &["Command", "Event", "Effect", "SessionInput"];
const CLOSED_WITHIN: &[&str] = &["engine/src/", "engine/agent/src/", "engine/host/src/", "app/"];
/// The marker beside a `_ =>` in such a match, followed by the reason.
const MARKER: &str = "tidy: open because";

fn report(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "\n{rule}\n  {}\n", found.join("\n  "));
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{error}: {path}"))
}

fn under(path: &str, place: &str) -> bool {
    path == place || (place.ends_with('/') && path.starts_with(place))
}

#[test]
fn crates_use_only_what_the_house_allows() {
    let graph = Graph::read();
    let mut found = Vec::new();
    let members = graph.members();
    let listed: BTreeSet<&str> = INSIDE.iter().map(|(_, name, _)| *name).collect();
    for member in members.symmetric_difference(&listed) {
        found.push(format!("{member}: stands in only one of the workspace and INSIDE (tests/it/tidy.rs)"));
    }
    let floors: BTreeMap<&str, u32> = INSIDE.iter().map(|(floor, name, _)| (*name, *floor)).collect();
    for (floor, member, allowed) in INSIDE.iter().filter(|(_, member, _)| members.contains(member)) {
        let direct = graph.direct(member);
        for used in direct.intersection(&members) {
            if !allowed.contains(used) {
                found.push(format!("{member} uses {used}: not in its row of INSIDE (ARCHITECTURE.md, \"Crates\")"));
            }
            if floors.get(used).is_some_and(|below| below >= floor) {
                found.push(format!("{member} uses {used}, which does not stand on a lower floor"));
            }
        }
        for unused in allowed.iter().filter(|name| !direct.contains(*name)) {
            found.push(format!("{member} does not use {unused} any more: take it out of its row of INSIDE"));
        }
    }
    for (rows, never, why) in UNREACHABLE {
        for (member, target) in rows.iter().flat_map(|member| never.iter().map(move |target| (member, target))) {
            if let Some(way) = graph.way(member, target) {
                found.push(format!("{}: {member} must not reach {target}, {why}", way.join(" -> ")));
            }
        }
    }
    for (rows, never, why) in NOT_IN_MANIFEST {
        for member in *rows {
            let direct = graph.direct(member);
            for name in never.iter().filter(|name| direct.contains(*name)) {
                found.push(format!("{member}: its manifest names {name}, but {why}"));
            }
        }
    }
    if !graph.direct("system").is_empty() {
        found.push(format!("system imports nothing, but its manifest names {:?}", graph.direct("system")));
    }
    report("A crate may import only what its row allows: move the code to the crate that may.", &found);
}

#[test]
fn sources_name_only_what_their_room_allows() {
    let sources = sources();
    let mut found = Vec::new();
    for ban in BANS {
        let mut needed = BTreeSet::new();
        for source in sources.iter().filter(|source| ban.within.iter().any(|place| source.path.starts_with(place))) {
            let names = source.names(ban.words);
            let exempt = ban.except.iter().find(|(place, _)| under(&source.path, place));
            match exempt {
                Some((place, _)) if !names.is_empty() => _ = needed.insert(*place),
                Some(_) => {}
                None => found.extend(
                    names.iter().map(|(line, word)| format!("{}:{line}: names `{word}`: {}", source.path, ban.why)),
                ),
            }
        }
        for (place, reason) in ban.except.iter().filter(|(place, _)| !needed.contains(place)) {
            found.push(format!("{place}: exempted ({reason}) and names none of it: take the row out of BANS"));
        }
    }
    report("What a room must not name: ask the room that may, or add a row with its reason.", &found);
}

#[test]
fn sources_are_in_order() {
    let mut found = Vec::new();
    let sources = sources();
    for Source { path, text, code, .. } in &sources {
        if !text.starts_with("//!") {
            found.push(format!("{path}:1: begin with `//!`: what the room is for and what it must not do"));
        }
        let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs");
        if NAMELESS.contains(&stem) {
            found.push(format!("{path}: name the file for what it holds"));
        }
        for ((code, text), number) in code.lines().zip(text.lines()).zip(1..) {
            for (word, what) in NOWHERE.iter().filter(|(word, _)| code.contains(word)) {
                found.push(format!("{path}:{number}: `{word}`: {what}"));
            }
            let wide = text.chars().count();
            if wide > WIDEST {
                found.push(format!("{path}:{number}: {wide} characters wide; {WIDEST} is the most"));
            }
        }
        let long = text.lines().count();
        match LONG.iter().any(|(name, _)| name == path) {
            false if long > LONGEST => {
                found.push(format!("{path}: {long} lines; split it by meaning, or add a row to LONG"))
            }
            true if long <= LONGEST => found.push(format!("{path}: short enough now: take its row out of LONG")),
            _ => {}
        }
    }
    for (name, _) in LONG.iter().filter(|(name, _)| sources.iter().all(|source| source.path != *name)) {
        found.push(format!("{name}: gone: take its row out of LONG"));
    }
    report("Sources in order.", &found);
}

#[test]
fn strings_and_documents_are_in_plain_english() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.path.starts_with("tests/")) {
        for (line, phrase, instead) in wording::lines_with_ruled_out(source) {
            found.push(format!("{}:{line}: “{phrase}”: {instead}", source.path));
        }
    }
    for path in documents::all() {
        for (line, number) in read(&path).lines().zip(1..) {
            for (phrase, instead) in wording::ruled_out(line) {
                found.push(format!("{path}:{number}: “{phrase}”: {instead}"));
            }
        }
    }
    report("Strings and documents in plain English, as CONTRIBUTING.md asks.", &found);
}

#[test]
fn closed_enums_are_matched_without_a_catch_all() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| CLOSED_WITHIN.iter().any(|place| source.path.starts_with(place))) {
        for line in source.catch_alls(CLOSED, MARKER) {
            found.push(format!("{}:{line}: name every variant, or write `// {MARKER} …` beside the arm", source.path));
        }
    }
    report("Command, Event, Effect and SessionInput are matched without an arm for everything else.", &found);
}

#[test]
fn ignored_results_say_why() {
    let mut found = Vec::new();
    for Source { path, text, shipped, .. } in sources().iter().filter(|source| !source.path.starts_with("tests/")) {
        let lines = ignored::results_ignored_without_reason(text, shipped);
        found.extend(lines.iter().map(|line| format!("{path}:{line}")));
    }
    report("Handle a result, log it, or say in a comment why it doesn't matter.", &found);
}

#[test]
fn crates_stay_small() {
    let (graph, sources) = (Graph::read(), sources());
    let folders = graph.folders();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.path.starts_with("tests/")) {
        let home = folders.iter().filter(|(_, folder)| source.path.starts_with(folder)).max_by_key(|(_, at)| at.len());
        if let Some((name, _)) = home {
            *lines.entry(*name).or_default() += source.shipped_lines();
        }
    }
    let mut found = Vec::new();
    for (name, lines) in &lines {
        let row = LARGE_CRATES.iter().find(|(large, ..)| large == name);
        let most = row.map_or(LARGEST_CRATE_LINES, |(_, most, _)| *most);
        if *lines > most {
            found.push(format!(
                "{name}: {lines} lines; {most} is the most: move what stands by itself to its own crate"
            ));
        } else if row.is_some() && *lines <= LARGEST_CRATE_LINES {
            found.push(format!("{name}: {lines} lines are few enough: take its row out of LARGE_CRATES"));
        } else if row.is_some() && lines + CEILING_SLACK_LINES < most {
            found.push(format!("{name}: {lines} lines: lower its row of LARGE_CRATES"));
        }
    }
    for (name, ..) in LARGE_CRATES.iter().filter(|(name, ..)| !lines.contains_key(name)) {
        found.push(format!("{name}: gone: take its row out of LARGE_CRATES"));
    }
    report("No crate is larger than 25,000 lines without tests, or than its row in LARGE_CRATES.", &found);
}

#[test]
fn import_cycles_stay_small() {
    let (graph, sources) = (Graph::read(), sources());
    let mut found = Vec::new();
    let members = graph.members();
    for (name, folder) in graph.folders() {
        let cycle = circles::largest_cycle(&folder, &sources);
        let row = LARGE_IMPORT_CYCLES.iter().find(|(large, _)| *large == name);
        let most = row.map_or(LARGEST_IMPORT_CYCLE_FILES, |(_, most)| *most);
        if cycle.len() > most {
            let (size, files) = (cycle.len(), cycle.join(" "));
            found.push(format!("{name}: {size} files import each other, {most} is the most: {files}"));
        } else if row.is_some() && cycle.len() < most {
            found.push(match cycle.len() {
                0..=LARGEST_IMPORT_CYCLE_FILES => format!("{name}: take its row out of LARGE_IMPORT_CYCLES"),
                size => format!("{name}: lower its row of LARGE_IMPORT_CYCLES to {size}"),
            });
        }
    }
    for (name, _) in LARGE_IMPORT_CYCLES.iter().filter(|(name, _)| !members.contains(name)) {
        found.push(format!("{name}: gone: take its row out of LARGE_IMPORT_CYCLES"));
    }
    report("Few files of a crate import each other in a circle: move what both need below them.", &found);
}

#[test]
fn few_files_see_the_whole_session() {
    let whole =
        |line: &str| ["impl Session {", "impl SessionState {"].contains(&line) || line.contains("&mut SessionState");
    let sources = sources();
    let engine = sources.iter().filter(|source| under(&source.path, "engine/src/"));
    let seen: Vec<&str> =
        engine.filter(|source| source.shipped.lines().any(whole)).map(|source| source.path.as_str()).collect();
    let mut found: Vec<String> = Vec::new();
    for path in seen.iter().filter(|path| !WHOLE_SESSION_FILES.contains(path)) {
        found.push(format!("{path}: give the function to an aggregate of session/state"));
    }
    for path in WHOLE_SESSION_FILES.iter().filter(|path| !seen.contains(path)) {
        found.push(format!("{path}: take it out of WHOLE_SESSION_FILES"));
    }
    report("What a handler may touch is in its signature: aggregates, not the session.", &found);
}

#[test]
fn the_window_has_few_methods_on_its_root_object() {
    let sources = sources();
    let inside = sources.iter().filter(|source| source.path.starts_with("app/window/src/"));
    let files: Vec<&str> = inside
        .filter(|source| source.shipped.contains("impl AppWindow {") && source.path != TEST_ACCESS_FILE)
        .map(|source| source.path.as_str())
        .collect();
    let mut found = Vec::new();
    if files.len() != MAX_APP_WINDOW_FILES {
        let (count, names) = (files.len(), files.join(" "));
        found.push(format!(
            "{count} files have `impl AppWindow`, MAX_APP_WINDOW_FILES is {MAX_APP_WINDOW_FILES}: {names}"
        ));
    }
    report("A method of the window belongs to the group of state that it changes; the number only shrinks.", &found);
}

#[test]
fn methods_for_tests_are_left_out_of_the_program() {
    let mut found = Vec::new();
    if !read("app/window/src/lib.rs").contains("#[cfg(feature = \"test-access\")]\nmod test_access;\n") {
        found.push(format!("{TEST_ACCESS_FILE}: put it behind the feature test-access in app/window/src/lib.rs"));
    }
    for (name, folder) in Graph::read().folders().into_iter().filter(|(_, folder)| !folder.starts_with("tests/")) {
        let manifest = read(&format!("{folder}Cargo.toml"));
        let uses = manifest.lines().filter(|line| line.contains("test-access")).count();
        if uses != usize::from(name == "window") {
            found.push(format!("{folder}Cargo.toml: only tests and benchmarks turn on test-access"));
        }
    }
    report("What only tests call isn't in the program that users build.", &found);
}

#[test]
fn types_are_named_with_enough_words() {
    let names = TypeNames::read();
    let (one_word, repeated) = (names.one_word(), names.repeated());
    let percent = |part: usize| 100.0 * part as f64 / names.count() as f64;
    let mut found = Vec::new();
    if one_word.len() * 100 > names.count() * MAX_ONE_WORD_TYPES_PERCENT {
        found.push(format!(
            "{:.1} % of {} type names are one word; {MAX_ONE_WORD_TYPES_PERCENT} % is the most: {} …",
            percent(one_word.len()),
            names.count(),
            one_word[..one_word.len().min(40)].join(" "),
        ));
    }
    if repeated.len() * 100 > names.count() * MAX_REPEATED_TYPES_PERCENT {
        let most: Vec<String> = repeated.iter().take(20).map(|(name, files)| format!("{name} {files}")).collect();
        found.push(format!(
            "{:.1} % of {} type names stand in several files; {MAX_REPEATED_TYPES_PERCENT} % is the most: {} …",
            percent(repeated.len()),
            names.count(),
            most.join(", "),
        ));
    }
    report("A type's name says what it is, in words enough to be unique (CONTRIBUTING.md, \"Names\").", &found);
}

#[test]
fn architecture_describes_every_crate_and_names_files_that_are_there() {
    let graph = Graph::read();
    let architecture = read("ARCHITECTURE.md");
    let mut found = documents::crates_without_invariant(&architecture, &graph.folders());
    if architecture.len() > MAX_ARCHITECTURE_BYTES {
        found.push(format!("ARCHITECTURE.md: {} bytes; {MAX_ARCHITECTURE_BYTES} is the most", architecture.len()));
    }
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let gone = documents::paths(&text).into_iter().filter(|(_, path)| !root().join(path).exists());
        found.extend(gone.map(|(line, path)| format!("{document}:{line}: names {path}, which is gone")));
    }
    report("ARCHITECTURE.md has a paragraph with an invariant for each crate; documents name what is there.", &found);
}

#[test]
fn tests_that_rows_name_exist() {
    let sources = sources();
    let mut found = Vec::new();
    let named: Vec<(&str, usize, String)> = ROWS_PAGES
        .iter()
        .flat_map(|page| documents::tests(&read(page)).into_iter().map(move |(line, path)| (*page, line, path)))
        .collect();
    for page in ROWS_PAGES {
        assert!(named.iter().filter(|named| named.0 == page).count() > 100, "{page} names too few tests");
    }
    for (page, line, path) in &named {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path.as_str()));
        let file = format!("tests/it/{}.rs", module.replace("::", "/"));
        let declared = format!("fn {name}()");
        let has_test = |source: &Source| source.text.contains(&declared);
        let is_there = match sources.iter().find(|source| source.path == file) {
            Some(source) => has_test(source),
            None => sources.iter().filter(|source| !source.path.starts_with("tests/it/")).any(has_test),
        };
        if !is_there {
            found.push(format!("{page}:{line}: there is no test {path}"));
        }
    }
    report("Each row names tests that exist: name the one that shows the promise now.", &found);
}

#[test]
fn the_changelog_has_only_the_headings_of_its_form() {
    const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    let text = read("CHANGELOG.md");
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (line, number) in text.lines().zip(1..) {
        let Some((level, heading)) = line.split_once(' ').filter(|(level, _)| level.starts_with('#')) else { continue };
        match level {
            "#" => {}
            "##" => seen.clear(),
            "###" if KINDS.contains(&heading) && seen.insert(heading) => {}
            _ => found.push(format!("CHANGELOG.md:{number}: {heading}: once for each version: {}", KINDS.join(", "))),
        }
    }
    report("The form of CHANGELOG.md is Keep a Changelog's.", &found);
}

#[test]
fn manifests_take_versions_and_lints_from_the_workspace() {
    let mut found = Vec::new();
    for (_, folder) in Graph::read().folders() {
        let path = format!("{folder}Cargo.toml");
        let text = read(&path);
        let mut section = String::new();
        let mut lints = false;
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
                if section.contains("dependencies.") {
                    found.push(format!("{path}:{number}: one line a dependency: `name.workspace = true`"));
                }
            } else if section.ends_with("dependencies") && !line.is_empty() && !line.starts_with('#') {
                let entry: String = line.split_whitespace().collect();
                if !(entry.contains(".workspace=true") || entry.contains("workspace=true")) {
                    found.push(format!(
                        "{path}:{number}: `{line}`: give the version in /Cargo.toml, here `workspace = true`"
                    ));
                }
            } else if section == "lints" && line == "workspace = true" {
                lints = true;
            }
        }
        if !lints {
            found.push(format!("{path}: add `[lints]` with `workspace = true`"));
        }
    }
    report("One version of each dependency and one set of lints, in the workspace's manifest.", &found);
}

/// The contents of deny.toml, read line by line as its header says.
#[derive(Default)]
struct Deny {
    allow: Vec<String>,
    exceptions: BTreeMap<String, Vec<String>>,
    clarified: BTreeMap<String, String>,
    banned: Vec<String>,
    without_reason: Vec<String>,
}

impl Deny {
    fn read() -> Self {
        let mut deny = Self::default();
        let (mut section, mut list, mut clarified) = (String::new(), String::new(), String::new());
        let text = read("deny.toml");
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            let (entry, comment) = line.split_once('#').unwrap_or((line, ""));
            let entry = entry.trim();
            let quoted: Vec<String> = entry.split('"').skip(1).step_by(2).map(ToOwned::to_owned).collect();
            if let Some(name) = entry.strip_suffix("= [") {
                list = name.trim().to_owned();
            } else if entry == "]" {
                list.clear();
            } else if list.is_empty() && entry.starts_with('[') {
                section = entry.to_owned();
            } else if let Some((first, rest)) = quoted.split_first() {
                let mut reason = comment.trim();
                match (section.as_str(), list.as_str()) {
                    ("[licenses]", "allow") => deny.allow.push(first.clone()),
                    ("[licenses]", "exceptions") => _ = deny.exceptions.insert(first.clone(), rest.to_vec()),
                    ("[bans]", "deny") => {
                        deny.banned.push(first.clone());
                        reason = rest.first().map_or("", |reason| reason);
                    }
                    ("[[licenses.clarify]]", "") if entry.starts_with("crate") => {
                        clarified.clone_from(first);
                        continue;
                    }
                    ("[[licenses.clarify]]", "") if entry.starts_with("expression") => {
                        deny.clarified.insert(clarified.clone(), first.clone());
                    }
                    _ => continue,
                }
                if reason.is_empty() {
                    deny.without_reason.push(format!("deny.toml:{number}: {first}: give the reason beside it"));
                }
            }
        }
        deny
    }

    fn permits(&self, name: &str, licence: &str) -> Result<bool, spdx::ParseError> {
        let own = self.exceptions.get(name).map_or(&[][..], Vec::as_slice);
        let allowed: Result<Vec<_>, _> = self.allow.iter().chain(own).map(|licence| Licensee::parse(licence)).collect();
        let allowed = allowed?;
        let expression = Expression::parse_mode(licence, ParseMode::LAX)?;
        Ok(expression.evaluate(|wanted| allowed.iter().any(|licence| licence.satisfies(wanted))))
    }
}

#[test]
fn licences_and_sources_are_those_of_deny_toml() {
    let graph = Graph::read();
    let deny = Deny::read();
    let mut found = deny.without_reason.clone();
    if deny.allow.is_empty() || deny.banned.is_empty() {
        found.push("deny.toml: no `allow` or no `deny` list was found in it: one entry a line".into());
    }
    for package in graph.packages() {
        let (name, version) = (&package.name, &package.version);
        let Some(source) = &package.source else {
            if package.licence.as_deref() != Some("MIT OR Apache-2.0") {
                found.push(format!("{name}: write `license.workspace = true` in its manifest"));
            }
            continue;
        };
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            found.push(format!("{name} {version}: comes from {source}; only crates.io is a source"));
        }
        match package.licence.as_ref().or_else(|| deny.clarified.get(name)) {
            None => {
                found.push(format!("{name} {version}: states no licence: read its file, add `[[licenses.clarify]]`"))
            }
            Some(licence) => match deny.permits(name, licence) {
                Ok(true) => {}
                Ok(false) => found.push(format!("{name} {version}: {licence}: not allowed by deny.toml")),
                Err(error) => found.push(format!("{name} {version}: {licence}: cannot be read: {}", error.reason)),
            },
        }
    }
    for name in deny.banned.iter().filter(|name| graph.has(name)) {
        found.push(format!("{name}: is banned by deny.toml, which says what to use instead"));
    }
    for name in deny.exceptions.keys().chain(deny.clarified.keys()).filter(|name| !graph.has(name)) {
        found.push(format!("{name}: is not used any more: take it out of deny.toml"));
    }
    report("Licences, bans and sources stand in deny.toml, each with a reason.", &found);
}

#[test]
fn every_asset_has_its_origin_and_licence_written_down() {
    let words = read("assets/README.md");
    let entries = fs::read_dir(root().join("assets")).expect("assets/ is there");
    let names = entries.map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned());
    let unnamed = names.filter(|name| name != "README.md" && !words.contains(&format!("`{name}")));
    let mut found: Vec<_> = unnamed.map(|name| format!("assets/{name}: is not in assets/README.md")).collect();
    let there = |name: &&str| !root().join(name).is_file();
    let missing = ["LICENSE-MIT", "LICENSE-APACHE"].iter().filter(|name| there(name));
    found.extend(missing.map(|name| format!("{name}: is missing")));
    report("An asset stands in assets/README.md with where it is from and under which licence.", &found);
}
