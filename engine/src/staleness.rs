//! Stale results of a note's cells: compares what each cell saw when it ran with what it would see now.

use crate::note::{Note, code_hash};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{BlockId, Execution, ExecutionId, ExecutionStatus};
use text::dataflow::CellFlow;
use text::markdown;
use text::python_scope::CellNames;
pub use text::reactivity::Reactivity;

/// Why a cell's result is out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// The cell's code has changed since it ran.
    Code,
    /// A cell that defines this name has changed, run again or failed since.
    Input(String),
    /// This name is now defined only by a cell below.
    Below(String),
    /// No cell defines this name any longer.
    Undefined(String),
}

impl StaleReason {
    /// Describes the reason for the user in a few words.
    pub fn describe(&self) -> String {
        match self {
            StaleReason::Code => "the code has changed since".to_owned(),
            StaleReason::Input(name) if name == text::dataflow::ANY_NAME => "what it uses has changed".to_owned(),
            StaleReason::Input(name) => format!("`{name}` has changed"),
            StaleReason::Below(name) => format!("`{name}` is now defined further down"),
            StaleReason::Undefined(name) => format!("no cell defines `{name}` now"),
        }
    }
}

/// A name that the kernel holds, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldName {
    /// Executions that bound the name, latest first. If the latest possibly didn't bind it, earlier ones follow.
    pub(crate) by: Vec<ExecutionId>,
    /// The cell of the latest execution.
    pub(crate) cell: BlockId,
}

/// The cells of a note and the state of their results.
#[derive(Debug, Default)]
pub(crate) struct CellStaleness {
    pub(crate) cells: Vec<BlockId>,
    pub(crate) names: Vec<Arc<CellNames>>,
    pub(crate) flow: Arc<CellFlow>,
    pub(crate) stale: BTreeMap<BlockId, StaleReason>,
    /// Indices of cells whose last run is still valid and succeeded.
    pub(crate) good: BTreeSet<usize>,
}

/// The last computed staleness, and the state that it was computed for.
#[derive(Debug, Default)]
pub(crate) struct KeptStaleness(RefCell<Option<(StalenessState, Arc<CellStaleness>)>>);

/// State of a note for which staleness was computed: the change counters of its cells and of their runs.
type StalenessState = (u64, u64);

impl Note {
    /// Returns what happens to the dependents of a cell that runs.
    pub fn reactivity(&self) -> Reactivity {
        self.reactivity
    }

    /// Returns why a cell's result is out of date; `None` if it isn't.
    pub fn stale_reason(&self, cell: BlockId) -> Option<StaleReason> {
        self.executions.get(&cell)?;
        self.cell_staleness().stale.get(&cell).cloned()
    }

    /// Returns the names that a cell uses and defines.
    pub fn cell_names(&self, cell: BlockId) -> Option<Arc<CellNames>> {
        let fresh = self.cell_staleness();
        let at = fresh.cells.iter().position(|other| *other == cell)?;
        Some(fresh.names[at].clone())
    }

    /// Returns the names of all cells, in order.
    pub fn all_cell_names(&self) -> Vec<Arc<CellNames>> {
        self.cell_staleness().names.clone()
    }

    /// Returns the data flow between the cells, in order.
    pub fn cell_flow(&self) -> CellFlow {
        CellFlow::clone(&self.cell_staleness().flow)
    }

    /// Returns remarks on a cell's names for the user, as sentences: which are also bound in other cells, and which are
    /// used here and bound only below.
    pub fn name_remarks(&self, cell: BlockId) -> Vec<String> {
        let fresh = self.cell_staleness();
        let Some(at) = fresh.cells.iter().position(|other| *other == cell) else { return Vec::new() };
        let mut said = Vec::new();
        for name in &fresh.names[at].defines {
            let others: Vec<String> = (0..fresh.cells.len())
                .filter(|other| *other != at && fresh.names[*other].defines.contains(name))
                .map(|other| (other + 1).to_string())
                .collect();
            if !others.is_empty() {
                let cells = if others.len() == 1 { "cell" } else { "cells" };
                said.push(format!("{name} is bound in {cells} {}, too", others.join(", ")));
            }
        }
        if self.is_declared_pure(cell) && self.pure_names(cell).is_none() {
            said.push("its result isn't cached: the names that it uses or assigns are unknown".to_owned());
        }
        for name in fresh.flow.names_from_below(at, &fresh.names[at]) {
            let writes = |other: &usize| fresh.flow.nodes[*other].writes.contains_key(&name);
            if let Some(below) = (at + 1..fresh.cells.len()).find(writes) {
                said.push(format!("{name} is bound only below, in cell {}", below + 1));
            }
        }
        said
    }

    fn is_declared_pure(&self, cell: BlockId) -> bool {
        self.kind == store::FileKind::Note && self.block(cell).is_some_and(|block| markdown::is_pure_cell(&block.text))
    }

    /// Returns the names that a cell marked as pure reads and those that it assigns. `None` if it isn't pure, or if the
    /// names can't be determined.
    pub(crate) fn pure_names(&self, cell: BlockId) -> Option<(Vec<String>, Vec<String>)> {
        let block = self.block(cell).filter(|_| self.is_declared_pure(cell))?;
        let fresh = self.cell_staleness();
        let at = fresh.cells.iter().position(|other| *other == block.id)?;
        let names = &fresh.names[at];
        if names.uses_any || names.defines_any {
            return None;
        }
        let node = &fresh.flow.nodes[at];
        let uses = node.uses.keys().filter(|name| *name != text::dataflow::ANY_NAME).cloned().collect();
        Some((uses, node.writes.keys().cloned().collect()))
    }

    pub(crate) fn cell_staleness(&self) -> Arc<CellStaleness> {
        let key = (self.cells_revision, self.runs);
        if let Some((of, fresh)) = &*self.kept_fresh.0.borrow()
            && *of == key
        {
            return fresh.clone();
        }
        let before = self.kept_fresh.0.borrow_mut().take();
        let fresh = Arc::new(self.compute_staleness(before.map(|(_, fresh)| fresh).as_deref()));
        *self.kept_fresh.0.borrow_mut() = Some((key, fresh.clone()));
        fresh
    }

    /// Computes the staleness of all cells, reusing what is unchanged from the last result, `before`.
    fn compute_staleness(&self, before: Option<&CellStaleness>) -> CellStaleness {
        let cells: Vec<BlockId> = self.cells().collect();
        let names: Vec<Arc<CellNames>> = cells.iter().map(|cell| self.parse_names(*cell)).collect();
        let flow = match before {
            // Most keystrokes change no cell's names.
            Some(before) if before.names == names => before.flow.clone(),
            Some(before) => Arc::new(before.flow.update(&before.names, &names)),
            None => Arc::new(CellFlow::of(&names)),
        };
        let mut fresh = CellStaleness { flow, ..CellStaleness::default() };
        for (at, cell) in cells.iter().enumerate() {
            let Some(run) = self.executions.get(cell) else { continue };
            let hash = || self.cell_code(*cell).map(code_hash).unwrap_or_default();
            let same = match self.meta.get(cell) {
                Some(meta) => *meta.code.get_or_init(hash) == run.code,
                None => hash() == run.code,
            };
            let why = if !same {
                Some(StaleReason::Code)
            } else if self.reactivity == Reactivity::Manual {
                None
            } else {
                self.find_stale_reason(&cells, &fresh, at, run)
            };
            match why {
                Some(why) if run.status.is_final() => _ = fresh.stale.insert(*cell, why),
                None if run.status == ExecutionStatus::Ok => _ = fresh.good.insert(at),
                Some(_) | None => {}
            }
        }
        CellStaleness { cells, names, ..fresh }
    }

    /// Returns why a cell would now see different values than in its last run; `None` if it wouldn't.
    fn find_stale_reason(
        &self,
        cells: &[BlockId],
        fresh: &CellStaleness,
        at: usize,
        run: &Execution,
    ) -> Option<StaleReason> {
        for (name, from) in &fresh.flow.nodes[at].uses {
            let input = || Some(StaleReason::Input(name.clone()));
            if from.iter().any(|source| !fresh.good.contains(source)) {
                return input();
            }
            let mut sources = from.iter().filter_map(|source| self.executions.get(&cells[*source]));
            match &run.inputs {
                Some(inputs) => match inputs.get(name) {
                    Some(_) if from.is_empty() => {
                        let below = fresh.flow.nodes[at + 1..].iter().any(|node| node.writes.contains_key(name));
                        let reason = if below { StaleReason::Below } else { StaleReason::Undefined };
                        return Some(reason(name.clone()));
                    }
                    Some(seen) if sources.map(|source| source.id).eq(seen.iter().copied()) => {}
                    None if from.is_empty() => {}
                    Some(_) | None => return input(),
                },
                // The run predates the recording of inputs, so the times are compared.
                None => {
                    if sources.any(|source| source.started > run.started) {
                        return input();
                    }
                }
            }
        }
        None
    }

    fn parse_names(&self, cell: BlockId) -> Arc<CellNames> {
        let read = || {
            // Names in other languages are left to their kernels.
            let python = self.cell_language(cell).is_none_or(|language| language == "python");
            Arc::new(match self.cell_parts(cell).filter(|_| python) {
                Some(parts) => parts.form.names(self.cell_code(cell).unwrap_or_default()),
                None => CellNames::default(),
            })
        };
        self.meta.get(&cell).map_or_else(read, |meta| meta.names.get_or_init(read).clone())
    }

    /// Returns the executions that a cell's input values would now come from, by name.
    pub(crate) fn cell_inputs(&self, fresh: &CellStaleness, at: usize) -> BTreeMap<String, Vec<ExecutionId>> {
        // After a restart, the variables of the cells above come from their saved state.
        let saved = |from: &[usize]| -> Option<Vec<ExecutionId>> {
            let run = |cell: &usize| self.executions.get(&fresh.cells[*cell]).map(|run| run.id);
            from.iter().map(run).collect::<Option<_>>().filter(|_| self.runs_cells_in_order() && !from.is_empty())
        };
        let input = |(name, from): (&String, &Vec<usize>)| {
            let held = self.held.get(name).map(|held| held.by.clone());
            Some((name.clone(), held.or_else(|| saved(from))?))
        };
        fresh.flow.nodes[at].uses.iter().filter_map(input).collect()
    }

    /// Returns the cells to run when these are requested, in the note's order.
    pub(crate) fn plan_cells(&self, asked: &[BlockId]) -> Vec<BlockId> {
        let fresh = self.cell_staleness();
        let place = |cell: &BlockId| fresh.cells.iter().position(|other| other == cell);
        let mut at: Vec<usize> = asked.iter().filter_map(place).collect();
        let good = |cell: usize| fresh.good.contains(&cell);
        let held = |name: &str, from: &[usize]| {
            let ids: Option<Vec<ExecutionId>> =
                from.iter().map(|cell| self.executions.get(&fresh.cells[*cell]).map(|run| run.id)).collect();
            self.held.get(name).map(|held| held.by.as_slice()).unwrap_or_default() == ids.unwrap_or_default()
        };
        let ran = |cell: usize| self.executions.contains_key(&fresh.cells[cell]);
        // Stale cells run too, unless that would run a cell that the user may still be writing.
        let open = |cell: &usize| {
            let run = self.executions.contains_key(&fresh.cells[*cell]);
            !run || fresh.stale.get(&fresh.cells[*cell]) == Some(&StaleReason::Code)
        };
        for cell in fresh.stale.keys().filter_map(place).collect::<Vec<_>>() {
            let needs = fresh.flow.plan_run(&[cell], &good, &held, &ran);
            if needs.iter().all(|other| at.contains(other) || !open(other)) {
                at.push(cell);
            }
        }
        let plan = fresh.flow.plan_run(&at, &good, &held, &ran);
        plan.into_iter().map(|cell| fresh.cells[cell]).collect()
    }

    /// Returns names that the kernel holds but a cell must not see: names of deleted cells, names that their code no
    /// longer assigns, and, if the note runs automatically, names that only a later cell assigns.
    pub(crate) fn outdated_names(&self, fresh: &CellStaleness, at: usize) -> Vec<String> {
        let strict = self.reactivity == Reactivity::Automatic;
        let cell = fresh.cells[at];
        let gone = |(name, held): &(&String, &HeldName)| {
            let writer = fresh.cells.iter().position(|other| *other == held.cell);
            let still = |at: usize| fresh.flow.nodes[at].writes.contains_key(*name);
            let lost = match writer {
                None => true,
                Some(writer) => held.cell == cell && !still(writer),
            };
            let elsewhere = || (0..fresh.cells.len()).any(still);
            let below = || {
                let uses = fresh.flow.nodes[at].uses.get(*name);
                uses.is_some_and(Vec::is_empty)
            };
            name.as_str() != text::dataflow::ANY_NAME && ((lost && (strict || !elsewhere())) || (strict && below()))
        };
        self.held.iter().filter(gone).map(|(name, _)| name.clone()).collect()
    }
}
