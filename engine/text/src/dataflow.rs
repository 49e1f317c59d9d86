//! Data flow between the cells of a note: which cell a name comes from. The order in the note decides: a name refers to
//! the nearest cell above that binds or changes it. This module is pure; it knows names, not documents.

use crate::python_scope::CellNames;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Represents unknown names, which `exec` or `from x import *` may have assigned.
pub const ANY_NAME: &str = "*";

/// A cell's node in the data flow graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowCell {
    /// Names that the cell uses, each with the cells above that it comes from, nearest first. If the nearest one binds
    /// it only conditionally, those above it follow. Empty if no cell above binds the name.
    pub uses: BTreeMap<String, Vec<usize>>,
    /// Names that the cell binds or changes, and whether it does so unconditionally.
    pub writes: BTreeMap<String, bool>,
    /// Names that functions in the cell's values use, and names that they change, when they are called later.
    carried: [BTreeSet<String>; 2],
}

impl FlowCell {
    /// Creates the node of a cell. `latest` maps a name to the last cells above that assign it, `known` lists all names
    /// assigned there.
    fn of(
        names: &CellNames,
        above: &[Arc<FlowCell>],
        latest: impl Fn(&str) -> Vec<usize>,
        known: impl FnOnce() -> Vec<String>,
    ) -> FlowCell {
        let mut writes: BTreeMap<String, bool> =
            names.defines.iter().map(|name| (name.clone(), names.surely.contains(name))).collect();
        // A name that is changed in place was used, and comes from this cell from now on.
        writes.extend(names.changes.iter().map(|name| (name.clone(), true)));
        for name in &names.later_changes {
            writes.entry(name.clone()).or_insert(false);
        }
        let (mut later, mut later_changes) = (names.later.clone(), names.later_changes.clone());
        let mut uses = BTreeMap::new();
        let mut open: Vec<String> = names.uses.union(&names.changes).cloned().collect();
        if names.uses_any || names.defines_any {
            open.extend(known());
        }
        if !open.is_empty() {
            open.push(ANY_NAME.to_owned());
        }
        while let Some(name) = open.pop() {
            if uses.contains_key(&name) {
                continue;
            }
            let from = latest(&name);
            for cell in &from {
                // This cell may call a function of that cell, and functions that it uses in turn.
                let [also, changed] = &above[*cell].carried;
                open.extend(also.iter().filter(|name| !names.surely.contains(*name)).cloned());
                later.extend(also.iter().cloned());
                later_changes.extend(changed.iter().cloned());
                for name in changed {
                    writes.entry(name.clone()).or_insert(false);
                }
            }
            uses.insert(name, from);
        }
        if names.defines_any {
            writes.insert(ANY_NAME.to_owned(), true);
        }
        FlowCell { uses, writes, carried: [later, later_changes] }
    }
}

/// Data flow graph of a note's cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellFlow {
    /// The cells in document order.
    pub nodes: Vec<Arc<FlowCell>>,
}

impl CellFlow {
    /// Builds the graph from the names of each cell.
    pub fn of(cells: &[Arc<CellNames>]) -> CellFlow {
        let mut nodes: Vec<Arc<FlowCell>> = Vec::with_capacity(cells.len());
        // Where each name comes from for a cell below the cells so far.
        let mut latest: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for names in cells {
            let from = |name: &str| latest.get(name).cloned().unwrap_or_default();
            let node = FlowCell::of(names, &nodes, from, || latest.keys().cloned().collect());
            for (name, surely) in &node.writes {
                let from = latest.entry(name.clone()).or_default();
                if *surely {
                    from.clear();
                }
                from.insert(0, nodes.len());
            }
            nodes.push(Arc::new(node));
        }
        CellFlow { nodes }
    }

    /// Updates a graph that was built from the names `was`. While the user types, the names of one cell change, and
    /// mostly only those it uses: then the other nodes are reused.
    pub fn update(&self, was: &[Arc<CellNames>], cells: &[Arc<CellNames>]) -> CellFlow {
        let mut changed = (0..cells.len()).filter(|at| was.get(*at) != Some(&cells[*at]));
        let (Some(at), None) = (changed.next(), changed.next()) else { return CellFlow::of(cells) };
        if was.len() != cells.len() || self.nodes.len() != cells.len() {
            return CellFlow::of(cells);
        }
        let above = &self.nodes[..at];
        let from = |name: &str| {
            let mut from = Vec::new();
            for (cell, node) in above.iter().enumerate().rev() {
                if let Some(surely) = node.writes.get(name) {
                    from.push(cell);
                    if *surely {
                        break;
                    }
                }
            }
            from
        };
        let known = || above.iter().flat_map(|node| node.writes.keys()).cloned().collect();
        let node = FlowCell::of(&cells[at], above, from, known);
        if node.writes != self.nodes[at].writes || node.carried != self.nodes[at].carried {
            return CellFlow::of(cells);
        }
        let mut nodes = self.nodes.clone();
        nodes[at] = Arc::new(node);
        CellFlow { nodes }
    }

    /// Returns the cells that use a name that a cell binds or changes, nearest first.
    pub fn dependants(&self, cell: usize) -> BTreeSet<usize> {
        let uses = |node: &Arc<FlowCell>| node.uses.values().any(|from| from.contains(&cell));
        (cell + 1..self.nodes.len()).filter(|other| uses(&self.nodes[*other])).collect()
    }

    /// Returns the cells to run, in order, so that `asked` and everything that depends on them are as after a run of
    /// the whole note. `good`: whether a cell's last run still counts; `held`: whether the kernel holds the value that
    /// a use needs; `ran`: whether a cell was run before. Cells that weren't run before are run only if needed.
    pub fn plan_run(
        &self,
        asked: &[usize],
        good: &dyn Fn(usize) -> bool,
        held: &dyn Fn(&str, &[usize]) -> bool,
        ran: &dyn Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let mut plan: BTreeSet<usize> = asked.iter().copied().filter(|cell| *cell < self.nodes.len()).collect();
        loop {
            let before = plan.len();
            let mut written: BTreeMap<&str, usize> = BTreeMap::new();
            for cell in &plan {
                self.nodes[*cell].writes.keys().for_each(|name| _ = written.entry(name).or_insert(*cell));
            }
            for cell in plan.clone() {
                for (name, from) in &self.nodes[cell].uses {
                    // Add its inputs, unless the kernel holds them and no earlier cell overwrites them.
                    let disturbed = written.get(name.as_str()).is_some_and(|first| *first < cell);
                    if disturbed || !held(name, from) || from.iter().any(|source| !good(*source)) {
                        plan.extend(from.iter().copied());
                    }
                }
            }
            for cell in 0..self.nodes.len() {
                let needs = |from: &Vec<usize>| from.iter().any(|source| plan.contains(source));
                if !plan.contains(&cell) && ran(cell) && self.nodes[cell].uses.values().any(needs) {
                    plan.insert(cell);
                }
            }
            if plan.len() == before {
                return plan;
            }
        }
    }

    /// Returns the names that a cell uses and that only a cell below it binds.
    pub fn names_from_below(&self, cell: usize, names: &CellNames) -> BTreeSet<String> {
        let bound = |name: &String| self.nodes[cell + 1..].iter().any(|node| node.writes.contains_key(name));
        let wanted = names.external_names();
        let missing = |name: &String| self.nodes[cell].uses.get(name).is_none_or(Vec::is_empty);
        wanted.into_iter().filter(|name| missing(name) && bound(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(cells: &[&str]) -> CellFlow {
        CellFlow::of(&cells.iter().map(|code| Arc::new(CellNames::of(code))).collect::<Vec<_>>())
    }

    /// Returns the names that a cell uses, and the cells they come from.
    fn from(flow: &CellFlow, cell: usize) -> Vec<(&str, Vec<usize>)> {
        let uses = flow.nodes[cell].uses.iter().filter(|(_, from)| !from.is_empty());
        uses.map(|(name, from)| (name.as_str(), from.clone())).collect()
    }

    #[test]
    fn the_order_decides() {
        let found = flow(&["x = 1", "y = x", "x = 2", "x + y"]);
        assert_eq!(from(&found, 1), [("x", vec![0])]);
        assert_eq!(from(&found, 3), [("x", vec![2]), ("y", vec![1])]);
        assert_eq!(found.dependants(0), BTreeSet::from([1]));
        let found = flow(&["x = 1", "if c: x = 2", "x"]);
        assert_eq!(from(&found, 2), [("x", vec![1, 0])]);
        let found = flow(&["xs = []", "xs.append(1)", "xs"]);
        assert_eq!((from(&found, 1), from(&found, 2)), (vec![("xs", vec![0])], vec![("xs", vec![1])]));
    }

    #[test]
    fn functions_use_what_stands_above_their_call() {
        let found = flow(&["def f(): return x", "x = 1", "f()", "g = f", "x = 2", "g()"]);
        assert_eq!(from(&found, 2), [("f", vec![0]), ("x", vec![1])]);
        assert_eq!(from(&found, 5), [("g", vec![3]), ("x", vec![4])]);
        let found = flow(&["n = 0", "def up():\n global n\n n += 1", "up()", "n"]);
        assert_eq!(from(&found, 3), [("n", vec![2, 1, 0])]);
    }

    #[test]
    fn what_cannot_be_known_comes_from_everywhere() {
        let found = flow(&["x = 1", "from m import *", "x + y", "1"]);
        assert_eq!(from(&found, 2), [("*", vec![1]), ("x", vec![0])]);
        assert_eq!(from(&found, 1), [("x", vec![0])]);
        assert_eq!(from(&found, 3), []);
    }

    #[test]
    fn one_cell_that_changes_is_as_if_all_had_been_looked_at() {
        let mut cells = [
            "x = 1",
            "def f(): return x",
            "if c: x = 2",
            "from m import *",
            "xs = []",
            "f() + y",
            "xs.append(x)",
            "g = f",
            "n = 0",
            "def up():\n global n\n n += 1",
            "up()",
            "n + x + g()",
        ]
        .map(|code| Arc::new(CellNames::of(code)));
        let mut flow = CellFlow::of(&cells);
        let others =
            ["x", "xa", "x = 3", "def f(): return n", "f()", "up()", "", "exec(s)", "xs", "import x", "(", "del x"];
        for (turn, code) in others.iter().cycle().take(200).enumerate() {
            let was = cells.clone();
            cells[turn * 7 % 12] = Arc::new(CellNames::of(code));
            flow = flow.update(&was, &cells);
            assert_eq!(flow, CellFlow::of(&cells), "{turn}: {code}");
        }
        assert_eq!(flow.update(&cells, &cells[..3]), CellFlow::of(&cells[..3]));
    }

    #[test]
    fn a_plan_restores_what_was_written_over() {
        let found = flow(&["x = 1", "y = x", "x = 2", "x"]);
        let all = |_: usize| true;
        // After a run of all cells, the kernel holds the `x` of the third one.
        let held = |name: &str, from: &[usize]| if name == "x" { from == [2] } else { true };
        let plan = found.plan_run(&[1], &all, &held, &all);
        assert_eq!(plan, BTreeSet::from([0, 1]));
        let plan = found.plan_run(&[0], &all, &held, &all);
        assert_eq!(plan, BTreeSet::from([0, 1]));
        let plan = found.plan_run(&[0, 3], &all, &held, &all);
        assert_eq!(plan, BTreeSet::from([0, 1, 2, 3]));
    }
}
