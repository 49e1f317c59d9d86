//! The house rules of DESIGN.md, held as a test: who may import whom, what the sources may name, that the map in
//! ARCHITECTURE.md is the tree, that manifests and licences are in order. It reads manifests and sources only.
//!
//! A rule is a row of a table. A failure names the rule, the place and what to do. An exemption is a row too: it
//! carries its reason, and fails when nothing needs it any more.

mod graph;
mod source;

use graph::Graph;
use source::{Source, files, relative, root, sources};
use spdx::{Expression, Licensee, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Which crates of the workspace a crate may use.
const INSIDE: &[(&str, &[&str])] = &[
    ("system", &[]),
    ("store", &[]),
    ("embed", &[]),
    ("index", &["embed", "store"]),
    ("guarded", &[]),
    ("sandbox", &["guarded"]),
    ("engine", &["guarded", "store", "system"]),
    ("models", &["embed"]),
    ("providers", &["engine", "store"]),
    ("mcp", &[]),
    ("vcs", &[]),
    ("peers", &["store"]),
    ("hub", &["peers", "store"]),
    ("host", &["engine", "hub", "index", "mcp", "models", "peers", "providers", "sandbox", "store", "system", "vcs"]),
    ("plot", &[]),
    ("python", &["plot", "sandbox"]),
    ("jupyter", &["engine", "store"]),
    ("typeset", &["engine", "store"]),
    ("tracebook", &["engine", "host", "jupyter", "plot", "python", "store", "system", "typeset"]),
    ("tests", &["engine", "host", "index", "jupyter", "plot", "python", "store", "system", "tracebook", "typeset"]),
];

/// What a crate must never reach, however long the way.
const UNREACHABLE: &[(&str, &[&str], &str)] = &[
    (
        "store",
        &["tokio", "async-io", "rayon", "notify", "reqwest", "hyper", "rustls"],
        "it is sans-IO: no threads, async or network",
    ),
    (
        "store",
        &["egui", "eframe", "winit", "tantivy", "rustpython-vm", "interprocess"],
        "it is what lasts, nothing else",
    ),
    ("index", &["egui", "eframe", "winit", "tokio", "rustpython-vm"], "it searches, nothing else"),
    (
        "embed",
        &["egui", "tokio", "tantivy", "reqwest", "automerge"],
        "it knows texts and vectors, and downloads nothing",
    ),
    (
        "engine",
        &["tokio", "async-io", "rayon", "notify", "reqwest", "hyper", "interprocess", "landlock"],
        "it decides; IO is the host's",
    ),
    ("engine", &["egui", "eframe", "winit", "tantivy", "rustpython-vm"], "it knows no window, no index, no kernel"),
    ("host", &["egui", "eframe", "winit"], "it works headless"),
    ("host", &["rustpython-vm"], "a kernel is another process"),
    ("python", &["egui", "eframe", "winit", "tokio", "automerge", "rusqlite"], "it knows no notes, agents or window"),
    ("typeset", &["egui", "eframe", "winit", "tokio", "notify", "rustpython-vm"], "text goes in and text comes out"),
    ("plot", &["egui", "eframe", "winit", "rustpython-vm"], "one drawing code for every backend"),
    (
        "sandbox",
        &["tokio", "serde_json", "automerge", "rusqlite", "rustpython-vm", "egui"],
        "the code that confines others is small and knows none of them",
    ),
    ("system", &["serde_json", "tokio", "automerge", "rusqlite", "egui"], "it imports nothing"),
];

/// What a crate must not name in its own manifest, though what it uses may.
const NOT_IN_MANIFEST: &[(&str, &[&str], &str)] = &[
    (
        "store",
        &["rand", "rand_core", "getrandom", "uuid", "chrono", "time", "jiff", "tempfile"],
        "time and chance are arguments",
    ),
    (
        "engine",
        &["automerge", "rusqlite", "rustix", "libc", "directories", "tempfile"],
        "documents and files are the store's and the host's",
    ),
    (
        "engine",
        &["rand", "getrandom", "uuid", "chrono", "time", "jiff"],
        "time and chance are arguments (rand_core is a trait)",
    ),
    ("host", &["automerge", "rusqlite"], "documents change through `apply` and last through the store's Disk"),
    (
        "tracebook",
        &["automerge", "rusqlite", "tokio", "reqwest", "notify", "interprocess", "rustix"],
        "the window asks the host",
    ),
];

/// What the sources of a folder must not name outside the listed files (a name ending in `/` is a folder).
struct Ban {
    within: &'static [&'static str],
    words: &'static [&'static str],
    why: &'static str,
    except: &'static [(&'static str, &'static str)],
}

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
        within: &["engine/src/"],
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
        within: &["engine/src/"],
        words: &["Instant", "SystemTime", "thread_rng", "rand::rng", "rand::random"],
        why: "`apply` is pure: time and chance are arguments",
        except: &[],
    },
    Ban {
        within: &["app/", "engine/", "store/"],
        words: &["load_from_str", "load_from_parser", "serde_saphyr::from_str", "from_str_with_options"],
        why: "YAML is read within limits, by engine::yaml",
        except: &[("engine/src/yaml/read.rs", "the one door of YAML")],
    },
    Ban {
        within: &["app/", "engine/"],
        words: &["Parser::new_ext", "disable_recursion_limit"],
        why: "Markdown is parsed within limits, by engine::markdown::parse; JSON keeps its limit of depth",
        except: &[("engine/src/markdown/limits.rs", "the one door of Markdown")],
    },
    Ban {
        within: &["engine/host/src/"],
        words: &["apply_change", "automerge", "rusqlite"],
        why: "the host edits a document only through `apply` and stores only through the store's Disk",
        except: &[],
    },
    Ban {
        within: &["app/src/"],
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

/// What no source may hold.
const NOWHERE: &[(&str, &str)] = &[
    ("todo!", "finish it, or say in an issue that it is not there"),
    ("unimplemented!", "finish it, or say in an issue that it is not there"),
    ("dbg!", "take it out"),
    ("#[ignore", "a test runs or is not there; make it short, or give it a condition that it prints"),
];

/// Names that say nothing about what a file holds.
const NAMELESS: &[&str] = &["mod", "util", "utils", "common", "helper", "helpers", "misc"];

const WIDEST: usize = 120;
const LONGEST: usize = 1000;

/// Files that may be longer than `LONGEST` lines: flat tables, or the one reducer.
const LONG: &[(&str, &str)] = &[];

/// The closed enums: a new variant must stop the build wherever one is handled.
const CLOSED: &[&str] = &["Command", "Event", "Effect", "Input"];
const CLOSED_WITHIN: &[&str] = &["engine/src/", "engine/host/src/", "app/src/"];
/// Beside a `_ =>` in such a match, with the reason why it is right there.
const MARKER: &str = "tidy: open because";

/// The crates and the folder of their modules, as the map of ARCHITECTURE.md names them.
const ROOMS: &[(&str, &str)] = &[
    ("app/", "src"),
    ("engine/", "src"),
    ("engine/guarded/", "src"),
    ("engine/host/", "src"),
    ("engine/host/models/", "src"),
    ("engine/host/providers/", "src"),
    ("engine/host/mcp/", "src"),
    ("engine/host/vcs/", "src"),
    ("engine/host/hub/", "src"),
    ("engine/host/peers/", "src"),
    ("engine/jupyter/", "src"),
    ("engine/plot/", "src"),
    ("engine/python/", "src"),
    ("engine/sandbox/", "src"),
    ("engine/typeset/", "src"),
    ("store/", "src"),
    ("store/index/", "src"),
    ("store/index/embed/", "src"),
    ("system/", "src"),
    ("tests/", "it"),
];

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
    let listed: BTreeSet<&str> = INSIDE.iter().map(|(name, _)| *name).collect();
    for member in members.symmetric_difference(&listed) {
        found.push(format!("{member}: stands in only one of the workspace and INSIDE (tests/it/tidy.rs)"));
    }
    for (member, allowed) in INSIDE {
        for used in graph.direct(member).intersection(&members) {
            if !allowed.contains(used) {
                found.push(format!("{member} uses {used}: not in its row of INSIDE (DESIGN.md, \"The house\")"));
            }
        }
    }
    for (member, never, why) in UNREACHABLE {
        for target in *never {
            if let Some(way) = graph.way(member, target) {
                found.push(format!("{}: {member} must not reach {target}, {why}", way.join(" -> ")));
            }
        }
    }
    for (member, never, why) in NOT_IN_MANIFEST {
        let direct = graph.direct(member);
        for name in never.iter().filter(|name| direct.contains(*name)) {
            found.push(format!("{member}: its manifest names {name}, but {why}"));
        }
    }
    if !graph.direct("system").is_empty() {
        found.push(format!("system imports nothing, but its manifest names {:?}", graph.direct("system")));
    }
    report("A crate may import only what DESIGN.md's table allows: move the code to the crate that may.", &found);
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
fn closed_enums_are_matched_without_a_catch_all() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| CLOSED_WITHIN.iter().any(|place| source.path.starts_with(place))) {
        for line in source.catch_alls(CLOSED, MARKER) {
            found.push(format!("{}:{line}: name every variant, or write `// {MARKER} …` beside the arm", source.path));
        }
    }
    report("Command, Event, Effect and Input are matched without an arm for everything else.", &found);
}

/// The map: the first fenced block under `## Map`. A crate's line starts at the left and its name ends in `/`; the
/// lines below it, indented by two, are its modules, as paths below its source folder. Words follow every name.
#[test]
fn the_map_of_architecture_is_the_tree() {
    let text = read("ARCHITECTURE.md");
    let map = text.split("\n## Map\n").nth(1).and_then(|map| map.split("\n```").nth(1)).unwrap_or_default();
    let mut drawn: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut room = "";
    for line in map.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let (name, words) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        if words.trim().is_empty() {
            found.push(format!("{name}: say what it holds"));
        }
        if !line.starts_with(' ') {
            room = name;
            if drawn.insert(room, BTreeSet::new()).is_some() {
                found.push(format!("{room}: stands twice"));
            }
        } else if !drawn.entry(room).or_default().insert(name.to_owned()) {
            found.push(format!("{room} {name}: stands twice"));
        }
    }
    for room in drawn.keys().filter(|drawn| ROOMS.iter().all(|(room, _)| room != *drawn)) {
        found.push(format!("{room}: is no crate of the workspace"));
    }
    for (room, folder) in ROOMS {
        let Some(drawn) = drawn.get(room) else {
            found.push(format!("{room}: is not in the map"));
            continue;
        };
        let base = root().join(room).join(folder);
        let modules = files(&base).into_iter().map(|path| relative(&path, &base)).filter(|path| path.ends_with(".rs"));
        let built: BTreeSet<String> = modules.filter(|path| path != "lib.rs" && path != "main.rs").collect();
        for gone in drawn.difference(&built) {
            found.push(format!("{room} {gone}: is not in {room}{folder}: take its line out"));
        }
        for new in built.difference(drawn) {
            let text = fs::read_to_string(base.join(new)).unwrap_or_default();
            let head = text.lines().map_while(|line| line.strip_prefix("//!")).collect::<String>();
            let words = head.trim().split(". ").next().unwrap_or_default();
            found.push(format!("{room}: add the line `  {new:<18} {words}`"));
        }
    }
    report("The map in ARCHITECTURE.md lists every crate and every module once, and nothing that is gone.", &found);
}

#[test]
fn manifests_take_versions_and_lints_from_the_workspace() {
    let mut found = Vec::new();
    for (room, _) in ROOMS {
        let path = format!("{room}Cargo.toml");
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

/// What deny.toml allows, read line by line as its head says.
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
