//! Checks that the crates of Python's compiler are built once for `cargo app`. RustPython's macros run that compiler
//! while building, and the program has it, too; cargo shares a crate only if both ask for the same features of it.

use super::graph;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Returns a line for each crate in the dependency tree of `package`, as `format` says. With the target named, cargo
/// lists crates of macros with their own features.
fn dependency_lines(package: &str, edges: &str, format: &str) -> Vec<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let text = graph::run(
        Command::new(cargo)
            .args(["tree", "--locked", "--offline", "--prefix", "none", "--target", &graph::host_triple()])
            .args(["--package", package, "--edges", edges, "--format", format])
            .current_dir(super::source::root()),
    );
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn crates_of_the_python_compiler_are_built_once() {
    let compiler: BTreeSet<String> =
        dependency_lines("rustpython-compiler", "normal,no-proc-macro", "{p}").into_iter().collect();
    assert!(compiler.len() > 50, "few crates: {compiler:?}");
    let mut built: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in dependency_lines("tracebook", "normal,build", "{p}|{f}") {
        if let Some((package, features)) = line.split_once('|') {
            built.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    let twice = built.iter().filter(|(package, features)| compiler.contains(*package) && features.len() > 1);
    let found: Vec<String> = twice.map(|(package, features)| format!("{package}: {features:?}")).collect();
    super::report(
        "Crates of the Python compiler are built once: give macros and program the same features of them, in \
         engine/python/Cargo.toml.",
        &found,
    );
}
