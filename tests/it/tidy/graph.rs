//! Reads `cargo metadata` for tidy: the packages of this machine's build and their dependencies. It needs no network:
//! the tree has been built before this test runs, so every package is there.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Command;

/// One package of the build.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: Option<String>,
    /// `None` for a crate of this workspace.
    pub(super) source: Option<String>,
    /// The path of its manifest on this machine.
    manifest: String,
    /// The ids of its dependencies, without those of its tests.
    uses: Vec<String>,
}

/// The dependency graph.
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
}

impl Graph {
    pub(super) fn read() -> Self {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let host = host_triple();
        let text = run(Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &host])
            .current_dir(super::source::root()));
        let metadata: Value = serde_json::from_str(&text).expect("cargo metadata prints JSON");
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let id = text(&package["id"]).expect("an id");
            let package = Package {
                name: text(&package["name"]).expect("a name"),
                version: text(&package["version"]).expect("a version"),
                licence: text(&package["license"]),
                source: text(&package["source"]),
                manifest: text(&package["manifest_path"]).expect("a manifest").replace('\\', "/"),
                uses: Vec::new(),
            };
            packages.insert(id, package);
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let shipped = |used: &&Value| list(&used["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            let uses = list(&node["deps"]).iter().filter(shipped).filter_map(|used| text(&used["pkg"])).collect();
            let id = text(&node["id"]).expect("an id");
            packages.get_mut(&id).expect("a node is a package").uses = uses;
        }
        Self { packages }
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.packages().any(|package| package.name == name)
    }

    /// The names of this workspace's crates.
    pub(super) fn members(&self) -> BTreeSet<&str> {
        self.packages().filter(|package| package.source.is_none()).map(|package| package.name.as_str()).collect()
    }

    /// The crates of this workspace, each with its folder relative to the checkout, ending in `/`.
    pub(super) fn folders(&self) -> Vec<(&str, String)> {
        let root = super::source::root().to_string_lossy().replace('\\', "/");
        let ours = self.packages().filter(|package| package.source.is_none());
        ours.map(|package| {
            let below = package.manifest.strip_prefix(&root).expect("a crate lies in the checkout");
            (package.name.as_str(), below.trim_start_matches('/').trim_end_matches("Cargo.toml").to_owned())
        })
        .collect()
    }

    /// The names of a workspace crate's direct dependencies.
    pub(super) fn direct(&self, member: &str) -> BTreeSet<&str> {
        let uses = &self.packages[self.id(member)].uses;
        uses.iter().map(|id| self.packages[id].name.as_str()).collect()
    }

    /// The shortest dependency path from a workspace crate to `target`, as names.
    pub(super) fn way(&self, member: &str, target: &str) -> Option<Vec<&str>> {
        let start = self.id(member);
        let mut came: BTreeMap<&str, &str> = BTreeMap::from([(start, start)]);
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            let package = &self.packages[id];
            if package.name == target {
                let mut way = vec![package.name.as_str()];
                let mut at = id;
                while came[at] != at {
                    at = came[at];
                    way.push(&self.packages[at].name);
                }
                way.reverse();
                return Some(way);
            }
            for used in &package.uses {
                if !came.contains_key(used.as_str()) {
                    came.insert(used, id);
                    queue.push_back(used);
                }
            }
        }
        None
    }

    fn id(&self, member: &str) -> &str {
        let ours = |(_, package): &(&String, &Package)| package.source.is_none() && package.name == member;
        self.packages.iter().find(ours).unwrap_or_else(|| panic!("no crate `{member}` in this workspace")).0
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the name of this machine's target, such as `x86_64-unknown-linux-gnu`.
pub(super) fn host_triple() -> String {
    let version = run(Command::new("rustc").arg("-vV"));
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc -vV names its host").to_owned()
}

/// Runs a command and returns what it prints. Fails if the command does.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{error}: {command:?}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed (is Cargo.lock up to date?):\n{said}");
    String::from_utf8(output.stdout).expect("cargo prints text")
}
