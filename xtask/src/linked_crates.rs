//! Reads from Cargo which crates are linked into the program, and their dependencies.
//!
//! Build scripts, procedural macros and tests are excluded, because they aren't in the program.

use crate::output_of;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name and a version.
pub(crate) type CrateId = (String, String);

/// A crate that's linked into the program.
#[derive(Debug)]
pub(crate) struct LinkedCrate {
    /// License as an SPDX expression.
    pub(crate) license: String,
    /// Authors, as in its manifest.
    pub(crate) authors: Vec<String>,
    /// Address of its source repository.
    pub(crate) repository: Option<String>,
    /// Description in one line.
    pub(crate) description: Option<String>,
    /// Folder of its source on this machine.
    pub(crate) folder: PathBuf,
    /// SHA-256 of its package in the registry; `None` for a crate of this workspace.
    pub(crate) checksum: Option<String>,
    /// The crates that it depends on.
    pub(crate) uses: BTreeSet<CrateId>,
}

/// The crates linked into the program.
pub(crate) struct LinkedCrates {
    /// Version of the program in this checkout.
    pub(crate) version: String,
    crates: BTreeMap<CrateId, LinkedCrate>,
}

impl LinkedCrates {
    /// Reads the crates of the program with all features from Cargo.
    pub(crate) fn read(checkout: &Path, target: &str) -> Result<LinkedCrates> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        // Only `cargo tree` selects features for a single package as its build does.
        let tree = output_of(
            Command::new(&cargo)
                .args(["tree", "--locked", "--package", "tracebook", "--features", "full", "--target", target])
                .args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", " {p}"])
                .current_dir(checkout),
        )?;
        let metadata = output_of(
            Command::new(&cargo)
                .args(["metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", target])
                .current_dir(checkout),
        )?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let lock = std::fs::read_to_string(checkout.join("Cargo.lock")).context("can't read Cargo.lock")?;
        let deny = std::fs::read_to_string(checkout.join("deny.toml")).context("can't read deny.toml")?;
        let (checksums, clarified) = (read_checksums(&lock)?, read_clarified_licenses(&deny)?);

        let mut uses = read_tree(&tree);
        let version = uses.keys().find(|(name, _)| name == "tracebook").map(|(_, version)| version.clone());
        let version = version.context("`cargo tree` doesn't name tracebook")?;
        let mut crates = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let text = |key: &str| package[key].as_str().map(str::to_owned);
            let (Some(name), Some(version), Some(manifest)) = (text("name"), text("version"), text("manifest_path"))
            else {
                continue;
            };
            let id = (name, version);
            let Some(uses) = uses.remove(&id) else { continue };
            let license = text("license").or_else(|| clarified.get(&id.0).cloned());
            let license = license.with_context(|| format!("{} {} states no license (deny.toml)", id.0, id.1))?;
            let authors = package["authors"].as_array().into_iter().flatten();
            let found = LinkedCrate {
                license: canonical_license(&license),
                authors: authors.filter_map(|author| author.as_str().map(str::to_owned)).collect(),
                repository: text("repository"),
                description: text("description").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
                folder: Path::new(&manifest).parent().map(Path::to_owned).unwrap_or_default(),
                checksum: checksums.get(&id).cloned(),
                uses,
            };
            crates.insert(id, found);
        }
        if let Some((name, version)) = uses.keys().next() {
            anyhow::bail!("`cargo metadata` doesn't know {name} {version}, which `cargo tree` names");
        }
        Ok(LinkedCrates { version, crates })
    }

    /// Returns all crates, ordered by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&CrateId, &LinkedCrate)> {
        self.crates.iter()
    }

    /// Returns the third-party crates: all that come from the registry.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = (&CrateId, &LinkedCrate)> {
        self.all().filter(|(_, found)| found.checksum.is_some())
    }
}

/// Parses `cargo tree --prefix depth --format ' {p}'` into the dependencies of each crate. A crate's dependencies are
/// listed only where it appears first.
fn read_tree(tree: &str) -> BTreeMap<CrateId, BTreeSet<CrateId>> {
    let mut uses: BTreeMap<CrateId, BTreeSet<CrateId>> = BTreeMap::new();
    let mut above: Vec<CrateId> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let depth = words.next().and_then(|depth| depth.parse::<usize>().ok());
        let (Some(depth), Some(name), Some(version)) = (depth, words.next(), words.next()) else { continue };
        let id = (name.to_owned(), version.trim_start_matches('v').to_owned());
        above.truncate(depth);
        if let Some(parent) = above.last() {
            uses.entry(parent.clone()).or_default().insert(id.clone());
        }
        uses.entry(id.clone()).or_default();
        above.push(id);
    }
    uses
}

/// Reads the checksums in Cargo.lock.
fn read_checksums(lock: &str) -> Result<BTreeMap<CrateId, String>> {
    let lock: toml::Table = toml::from_str(lock)?;
    let packages = lock.get("package").and_then(|all| all.as_array()).into_iter().flatten();
    let read = packages.filter_map(|package| {
        let text = |key: &str| package.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    });
    Ok(read.collect())
}

/// Reads the licenses that deny.toml gives to crates that state none.
fn read_clarified_licenses(deny: &str) -> Result<BTreeMap<String, String>> {
    let deny: toml::Table = toml::from_str(deny)?;
    let all = deny.get("licenses").and_then(|licenses| licenses.get("clarify")).and_then(|all| all.as_array());
    let read = all.into_iter().flatten().filter_map(|one| {
        let text = |key: &str| one.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        Some((text("crate")?, text("expression")?))
    });
    Ok(read.collect())
}

/// Converts a license to a valid SPDX expression: old manifests use `MIT/Apache-2.0`.
fn canonical_license(license: &str) -> String {
    spdx::Expression::canonicalize(license).ok().flatten().unwrap_or_else(|| license.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> CrateId {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn a_tree_becomes_a_graph() {
        let tree = "0 a v1.0.0 (/somewhere)\n1 b v1.0.0\n2 c v1.0.0\n1 c v1.0.0 (*)\n1 d v1.0.0\n2 b v1.0.0 (*)\n";
        let uses = read_tree(tree);
        let of = |name: &str| uses[&id(name)].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!((of("a"), of("b"), of("c"), of("d")), (vec!["b", "c", "d"], vec!["c"], vec![], vec!["b"]));
    }

    #[test]
    fn the_program_of_this_checkout_is_known_with_all_licenses() {
        let target = crate::host_target().expect("rustc is there");
        let crates = LinkedCrates::read(&crate::checkout_folder(), &target).expect("Cargo knows the checkout");
        let names: BTreeSet<&str> = crates.all().map(|((name, _), _)| name.as_str()).collect();
        // Crates of the window, of the hub (only with `--features full`), and of the kernel.
        assert!(["egui", "axum", "rustpython-vm", "window"].iter().all(|name| names.contains(name)), "{names:?}");
        // Crates of tests and of the compiler.
        assert!(
            ["egui_kittest", "serde_derive", "xtask", "tests"].iter().all(|name| !names.contains(name)),
            "{names:?}"
        );
        for ((name, version), found) in crates.foreign() {
            assert!(spdx::Expression::parse(&found.license).is_ok(), "{name} {version}: {}", found.license);
            assert!(found.folder.join("Cargo.toml").exists(), "{name} {version}: {}", found.folder.display());
        }
        let texts = crate::license_texts::collect(&crates, &crate::checkout_folder()).expect("readable sources");
        for needed in
            ["malachite-nz 0.", "SIL OPEN FONT LICENSE", "PYTHON SOFTWARE FOUNDATION LICENSE", "Mozilla Public"]
        {
            assert!(texts.contains(needed), "{needed} isn't among the licenses");
        }
    }
}
