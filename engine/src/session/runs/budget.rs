//! Budgets: what runs have spent by task, session, project and month, what search has spent, and what remains. Checked
//! before each paid model call.

use crate::session::apply_context::ApplyContext;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::budget::{
    BudgetScope, BudgetStatus, LOW_BUDGET_SHARE, ScopeSpending, add_spending, known_spending, year_and_month,
};
use agent::config::BudgetConfig;
use agent::notice::Notice;
use agent::run_records::RunSummary;
use std::collections::BTreeMap;
use store::{DocId, ExecutionStep, StepKind};
use text::time::UnixMillis;

/// Route of the steps that report a low budget.
const BUDGET_NOTICE_ROUTE: &str = "budget";

impl RunsState {
    /// Returns this month's spending, in total and by project.
    pub(in crate::session) fn budget_statuses(
        &self,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        now: UnixMillis,
    ) -> Vec<BudgetStatus> {
        let limits = self.setup().map(|setup| setup.config.budget.clone()).unwrap_or_default();
        let lines = self.month_run_summaries(workspace, now);
        let mut all = vec![self.month_budget_status(now, &limits, &lines)];
        for volume in volumes.volumes() {
            all.push(volumes.project_budget_status(volume.id, &limits, &lines));
        }
        all
    }

    /// Returns a warning if little is left of the month's budget or of the budget of the volume's project.
    pub(in crate::session) fn low_budget_warning(
        &self,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        now: UnixMillis,
        volume: Option<DocId>,
    ) -> Option<String> {
        let limits = self.setup().map(|setup| &setup.config.budget)?;
        if limits.month.is_none() && limits.project.is_none() {
            return None;
        }
        let lines = self.month_run_summaries(workspace, now);
        let whole = self.month_budget_status(now, limits, &lines).low_warning();
        whole.or_else(|| volumes.project_budget_status(volume?, limits, &lines).low_warning())
    }

    /// Returns the runs of this device; the spending of other devices doesn't count for its budget.
    fn own_run_summaries(&self, workspace: &WorkspaceState) -> impl Iterator<Item = &RunSummary> {
        self.run_summaries.values().filter(|line| workspace.is_own_device(line.device.as_ref()))
    }

    /// Returns the spending per entry of a scope, latest first.
    pub(in crate::session) fn spending_by_scope(
        &self,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        by: BudgetScope,
    ) -> Vec<ScopeSpending> {
        let setup = self.setup();
        let month_limit = setup.and_then(|setup| setup.config.budget.month);
        let session_limit = setup.and_then(|setup| setup.config.llm.cost_limit);
        let lines = &self.run_summaries;
        let first_line = |run: &DocId| lines.get(run).and_then(|line| line.prompt.lines().next()).unwrap_or_default();
        let project = |volume: DocId| {
            let project = volumes.by_id.get(&volumes.project_of(volume));
            project.map_or("a closed project", |volume| &volume.name)
        };
        let mut all: BTreeMap<(Option<DocId>, String), ScopeSpending> = BTreeMap::new();
        for (id, line) in lines.iter().filter(|(_, line)| workspace.is_own_device(line.device.as_ref())) {
            let above = self.ancestors(*id);
            let root = above.last().copied().unwrap_or(*id);
            let session = lines.get(&root).map_or(line.session, |line| line.session);
            let purses: Vec<(Option<DocId>, String, &str, Option<f64>)> = match by {
                BudgetScope::Task => {
                    let one = |run: &DocId| {
                        let limit = lines.get(run).and_then(|line| line.budget);
                        (Some(*run), first_line(run).to_owned(), project(line.volume), limit)
                    };
                    above.iter().map(one).collect()
                }
                BudgetScope::Session => {
                    let title = self.session_summaries.get(&session).map(|known| known.title.clone());
                    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| first_line(&root).to_owned());
                    vec![(Some(session), title, project(line.volume), session_limit)]
                }
                BudgetScope::Project => {
                    vec![(Some(volumes.project_of(line.volume)), project(line.volume).to_owned(), "", None)]
                }
                BudgetScope::Month => {
                    let (year, month) = year_and_month(line.start_time);
                    vec![(None, format!("{year:04}-{month:02}"), "", month_limit)]
                }
            };
            for (doc, title, project, limit) in purses {
                let (cost, tokens, is_partly_unknown) = known_spending(line);
                let spent = (cost, tokens, is_partly_unknown, line.start_time);
                add_spending(&mut all, (doc, title, project, limit), spent);
            }
        }
        for outlay in self.embedding_costs() {
            let (title, limit) = match by {
                BudgetScope::Month => {
                    let (year, month) = year_and_month(outlay.at);
                    (format!("{year:04}-{month:02}"), month_limit)
                }
                BudgetScope::Task | BudgetScope::Session | BudgetScope::Project => {
                    (format!("Search by {}", outlay.what), None)
                }
            };
            let spent = (outlay.cost, outlay.tokens, outlay.unknown > 0, outlay.at);
            add_spending(&mut all, (None, title, "", limit), spent);
        }
        let mut all: Vec<ScopeSpending> = all.into_values().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.at));
        all
    }

    /// Returns this device's runs of the current month.
    pub(super) fn month_run_summaries(&self, workspace: &WorkspaceState, now: UnixMillis) -> Vec<&RunSummary> {
        self.own_run_summaries(workspace)
            .filter(|line| year_and_month(line.start_time) == year_and_month(now.0))
            .collect()
    }

    /// Returns the spending of runs and search in this month. `lines`: the month's runs.
    pub(super) fn month_budget_status(
        &self,
        now: UnixMillis,
        limits: &BudgetConfig,
        lines: &[&RunSummary],
    ) -> BudgetStatus {
        let runs = BudgetStatus::from_runs("this month".to_owned(), limits.month, lines);
        self.embedding_costs()
            .filter(|outlay| year_and_month(outlay.at) == year_and_month(now.0))
            .fold(runs, BudgetStatus::add_embedding_cost)
    }

    /// Returns the expected cost of pending calls in US dollars, which counts as spent, without what the summaries of
    /// their runs have of it.
    pub(super) fn pending_cost(&self) -> f64 {
        let listed = |run: &AgentRun| self.run_summaries.get(&run.id).and_then(|line| line.unsettled?.cost);
        self.runs.values().map(|run| (run.pending_cost() - listed(run).unwrap_or(0.0)).max(0.0)).sum()
    }

    /// Returns why a run may not spend `more` US dollars, as sentences; `None` if it may.
    pub(super) fn over_budget_reason(
        &self,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        run: &AgentRun,
        now: UnixMillis,
        more: f64,
    ) -> Option<String> {
        let limits = &self.setup()?.config.budget;
        if limits.month.is_none() && limits.project.is_none() {
            return None;
        }
        let lines = self.month_run_summaries(workspace, now);
        let more = more + self.pending_cost();
        let whole = self.month_budget_status(now, limits, &lines);
        whole
            .over_limit_advice(more)
            .or_else(|| volumes.project_budget_status(run.about.volume, limits, &lines).over_limit_advice(more))
    }
}

impl VolumesState {
    fn project_budget_status(&self, volume: DocId, limits: &BudgetConfig, lines: &[&RunSummary]) -> BudgetStatus {
        // Runs in forks count for the project.
        let project = self.project_of(volume);
        let is_own = |line: &&RunSummary| self.project_of(line.volume) == project;
        let own: Vec<&RunSummary> = lines.iter().copied().filter(is_own).collect();
        let name = self.by_id.get(&project).map_or("a project", |volume| volume.name.as_str());
        BudgetStatus::from_runs(format!("{name} this month"), limits.project, &own)
    }
}

impl RunsState {
    /// Notifies the user once a month that a budget is low. `more`: cost of the next call in US dollars.
    pub(super) fn notify_low_budgets(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        id: DocId,
        more: f64,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let limits = self.setup().map(|setup| setup.config.budget.clone()).unwrap_or_default();
        if limits.month.is_none() && limits.project.is_none() {
            return;
        }
        let lines = self.month_run_summaries(workspace, turn.now);
        let both = [
            self.month_budget_status(turn.now, &limits, &lines),
            volumes.project_budget_status(run.about.volume, &limits, &lines),
        ];
        both.into_iter().for_each(|balance| self.notify_low_budget(turn, balance, more));
    }

    /// Reports once in a run that little is left of its own budget or of its session's limit.
    pub(super) fn warn_of_low_run_budget(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        let Some(run) = self.runs.get(&id) else { return };
        let session_limit = self.setup().and_then(|setup| setup.config.llm.cost_limit);
        let scopes = [
            ("this run", run.about.budget, self.family_cost(id).0),
            ("this session", session_limit, self.session_cost(run)),
        ];
        let reported = |of: &str| {
            let says = |step: &ExecutionStep| {
                step.route.as_deref() == Some(BUDGET_NOTICE_ROUTE)
                    && matches!(&step.kind, StepKind::Thinking { content, .. } if content.contains(of))
            };
            run.steps.iter().any(says)
        };
        let mut warnings = Vec::new();
        for (of, limit, spent) in scopes {
            let status = BudgetStatus { of: of.to_owned(), limit, spent, tokens: 0, unknown: 0 };
            warnings.extend(status.low_warning().filter(|_| spent > 0.0 && !reported(of)));
        }
        if warnings.is_empty() {
            return;
        }
        let content = warnings.join("\n");
        let mut step = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        step.route = Some(BUDGET_NOTICE_ROUTE.to_owned());
        self.record_run(turn, sync, id, RunRecord { steps: vec![step], ..RunRecord::default() });
    }

    /// Notifies the user once a month that this budget is low. `more`: US dollars about to be spent.
    pub(super) fn notify_low_budget(&mut self, turn: &mut ApplyContext<'_>, balance: BudgetStatus, more: f64) {
        let (Some(limit), Some(left)) = (balance.limit, balance.remaining()) else { return };
        let low = left - more < limit * LOW_BUDGET_SHARE;
        if low && self.reported_low_budgets.insert((balance.of.clone(), year_and_month(turn.now.0))) {
            turn.notify(Notice::BudgetLow { of: balance.of, left, limit });
        }
    }
}
