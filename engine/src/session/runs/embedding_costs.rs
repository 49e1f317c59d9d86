//! Costs outside of runs: embeddings that search gets from a paid endpoint. Checked against the month's budget before
//! each call, and stored per day.

use crate::session::apply_context::ApplyContext;
use crate::session::state::runs::RunsState;
use crate::session::state::workspace::WorkspaceState;
use agent::config::BudgetConfig;
use agent::run_records::{EMBEDDING_COSTS_KEY_PREFIX, EmbeddingCost};
use store::disk::RowWrite;
use text::time::UnixMillis;

impl RunsState {
    /// Returns costs outside of runs on this device: one entry per day and purpose, oldest first.
    pub(in crate::session) fn embedding_costs(&self) -> impl DoubleEndedIterator<Item = &EmbeddingCost> {
        self.embedding_costs.values()
    }

    /// Returns why search may not spend `more` US dollars, as a sentence; `None` if it may. `limits`: the current
    /// configuration.
    pub(in crate::session) fn over_search_budget_reason(
        &self,
        workspace: &WorkspaceState,
        limits: &BudgetConfig,
        now: UnixMillis,
        more: f64,
    ) -> Option<String> {
        let balance = self.month_budget_status(now, limits, &self.month_run_summaries(workspace, now));
        let why = balance.over_limit_reason(more + self.pending_cost())?;
        Some(format!(
            "{why} No text is sent to the endpoint of the sentence model; raise `budget` in the configuration."
        ))
    }

    pub(in crate::session) fn load_embedding_costs(&mut self, kept: Vec<EmbeddingCost>) {
        self.embedding_costs =
            kept.into_iter().map(|outlay| ((outlay.day_number(), outlay.what.clone()), outlay)).collect();
    }

    /// Adds a cost outside of runs to the day's total.
    pub(in crate::session) fn record_embedding_cost(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &WorkspaceState,
        new: EmbeddingCost,
    ) {
        let (day, what) = (new.day_number(), new.what.clone());
        let kept = match self.embedding_costs.get(&(day, what.clone())) {
            None => new,
            Some(known) => EmbeddingCost {
                what: new.what,
                calls: known.calls.saturating_add(new.calls),
                tokens: known.tokens.saturating_add(new.tokens),
                cost: known.cost + new.cost,
                unknown: known.unknown.saturating_add(new.unknown),
                at: known.at.max(new.at),
            },
        };
        let value = serde_json::to_vec(&kept).ok();
        self.embedding_costs.insert((day, what.clone()), kept);
        self.revision += 1;
        turn.append_writes(
            vec![RowWrite::Meta { key: format!("{EMBEDDING_COSTS_KEY_PREFIX}{day}/{what}"), value }],
            None,
        );
        let limits = self.setup().map(|setup| setup.config.budget.clone()).unwrap_or_default();
        let balance = self.month_budget_status(turn.now, &limits, &self.month_run_summaries(workspace, turn.now));
        self.notify_low_budget(turn, balance, 0.0);
    }
}
