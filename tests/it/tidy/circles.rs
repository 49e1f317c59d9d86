//! Import cycles within a crate, for tidy: the largest group of files that all reach each other. Counted are `use`
//! declarations and paths that begin with `crate::`, `super::` or `self::`, outside unit tests.

use super::source::{Source, uses, word_starts};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate's largest import cycle, in order; empty if no two files import each other.
pub(super) fn largest_cycle(folder: &str, sources: &[Source]) -> Vec<String> {
    let by_path: BTreeMap<&str, &Source> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let modules = modules(&format!("{folder}src/lib.rs"), &by_path);
    let paths: Vec<&Vec<String>> = modules.keys().collect();
    let index: BTreeMap<&[String], usize> = paths.iter().zip(0..).map(|(path, at)| (path.as_slice(), at)).collect();
    let imports: Vec<BTreeSet<usize>> = modules
        .iter()
        .zip(0..)
        .map(|((module, source), own)| {
            let named = references(&source.shipped).into_iter().filter_map(|path| resolve(&path, module, &index));
            named.filter(|at| *at != own).collect()
        })
        .collect();
    let cycles = Components::of(&imports);
    let largest = cycles.into_iter().filter(|cycle| cycle.len() > 1).max_by_key(Vec::len).unwrap_or_default();
    let mut files: Vec<String> = largest.into_iter().map(|at| modules[paths[at]].path.clone()).collect();
    files.sort_unstable();
    files
}

/// Every module with a file of its own, by its path in the crate (empty for the root), without test modules.
fn modules<'s>(root: &str, sources: &BTreeMap<&str, &'s Source>) -> BTreeMap<Vec<String>, &'s Source> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![(root.to_owned(), Vec::new())];
    while let Some((path, module)) = waiting.pop() {
        let Some(source) = sources.get(path.as_str()) else { continue };
        let base = match path.rsplit_once('/') {
            Some((folder, _)) if module.is_empty() => folder.to_owned(),
            _ => path.trim_end_matches(".rs").to_owned(),
        };
        for start in word_starts(&source.shipped, "mod") {
            let Some((name, _)) = source.shipped[start + 3..].split_once([';', '{']) else { continue };
            let name = name.trim();
            let mut child: Vec<String> = module.clone();
            child.push(name.to_owned());
            waiting.push((format!("{base}/{name}.rs"), child));
        }
        found.insert(module, *source);
    }
    found
}

/// The paths that a file names, split into segments.
fn references(code: &str) -> Vec<Vec<String>> {
    let split = |path: &str| path.split("::").map(|segment| segment.trim().to_owned()).collect::<Vec<_>>();
    let mut found: Vec<Vec<String>> = uses(code).iter().map(|(_, path)| split(path)).collect();
    let mut rest = code.to_owned();
    for start in word_starts(code, "use") {
        let is_import = code[start + 3..].starts_with(char::is_whitespace);
        if let Some(length) = code[start..].find(';').filter(|_| is_import) {
            rest.replace_range(start..start + length, &" ".repeat(length));
        }
    }
    for first in ["crate", "super", "self"] {
        for start in word_starts(&rest, first) {
            let before = rest[..start].trim_end();
            // Skips `super` of `super::super`, and the scope of `pub(in crate::…)`, which imports nothing.
            if before.ends_with("::") || before.ends_with("(in") {
                continue;
            }
            let named = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let end = rest[start..].find(|c: char| !named(c)).map_or(rest.len(), |length| start + length);
            let path = rest[start..end].trim_end_matches(':');
            if path.contains("::") {
                found.push(split(path));
            }
        }
    }
    found
}

/// The file to which a path in `module` leads: the longest prefix that is a module.
fn resolve(path: &[String], module: &[String], index: &BTreeMap<&[String], usize>) -> Option<usize> {
    let mut full: Vec<String> = Vec::new();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => rest = &path[1..],
        Some("self") => {
            full.extend_from_slice(module);
            rest = &path[1..];
        }
        Some("super") => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            full.extend_from_slice(module.get(..module.len().checked_sub(up)?)?);
            rest = &path[up..];
        }
        Some(first) => {
            full.extend_from_slice(module);
            full.push(first.to_owned());
            index.get(full.as_slice())?;
            full.pop();
        }
        None => return None,
    }
    full.extend_from_slice(rest);
    (0..=full.len()).rev().find_map(|length| index.get(&full[..length]).copied())
}

/// Tarjan's strongly connected components.
struct Components<'g> {
    imports: &'g [BTreeSet<usize>],
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    found: Vec<Vec<usize>>,
    next: usize,
}

impl<'g> Components<'g> {
    fn of(imports: &'g [BTreeSet<usize>]) -> Vec<Vec<usize>> {
        let count = imports.len();
        let mut search =
            Self { imports, order: vec![None; count], low: vec![0; count], stack: vec![], found: vec![], next: 0 };
        for node in 0..count {
            if search.order[node].is_none() {
                search.visit(node);
            }
        }
        search.found
    }

    fn visit(&mut self, node: usize) {
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        let imports = self.imports;
        for &other in &imports[node] {
            match self.order[other] {
                None => {
                    self.visit(other);
                    self.low[node] = self.low[node].min(self.low[other]);
                }
                Some(order) if self.stack.contains(&other) => self.low[node] = self.low[node].min(order),
                Some(_) => {}
            }
        }
        if Some(self.low[node]) == self.order[node] {
            let start = self.stack.iter().position(|at| *at == node).expect("it was pushed above");
            self.found.push(self.stack.split_off(start));
        }
    }
}

#[test]
fn a_cycle_is_found_through_use_trees_and_paths_and_unit_tests_left_out() {
    let file = |path: &str, text: &str| Source::new(format!("x/src/{path}"), text.to_owned());
    let cycle = |a: &str| {
        let sources = [
            file("lib.rs", "mod a; mod b; mod c; pub(in crate::c) fn f() {}"),
            file("a.rs", a),
            file("a/deep.rs", "fn f() { super::super::b::g() }"),
            file("b.rs", "use crate::{c::{self, C}, other};"),
            file("c.rs", "use crate::a::A;\n// crate::b::x\n#[cfg(test)] mod tests { use crate::b::B; }"),
        ];
        largest_cycle("x/", &sources)
    };
    assert_eq!(cycle("mod deep; use deep::D;"), ["x/src/a.rs", "x/src/a/deep.rs", "x/src/b.rs", "x/src/c.rs"]);
    assert_eq!(cycle("mod deep; use std::deep::D;"), [""; 0]);
}
