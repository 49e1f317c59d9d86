//! Budgets: what was spent of a limit, and what is said of it.

use crate::config::ProviderConfig;
use crate::router::{self, ProviderLatencies};
use crate::run_records::{AgentSetup, EmbeddingCost, RunSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use store::{CallUsage, DocId, ExecutionStep};
use text::task::CalendarDay;

/// Remaining share of a budget below which it counts as low.
pub const LOW_BUDGET_SHARE: f64 = 0.2;

/// Adds to a message what is billed for a call that was stopped, which is an estimate.
pub fn with_estimate(message: &str, usage: Option<CallUsage>) -> String {
    let Some(usage) = usage else { return message.to_owned() };
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    let price = match usage.cost {
        Some(0.0) => "which is free".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None => "at an unknown price".to_owned(),
    };
    format!("{message} What was sent and received until then is counted by estimate: {tokens} tokens, {price}.")
}

/// Adds the usage of a call to a sum. If one cost is unknown, the sum is unknown.
pub fn add_usage(sum: &mut CallUsage, more: CallUsage) {
    sum.input_tokens = sum.input_tokens.saturating_add(more.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(more.output_tokens);
    sum.cost = sum.cost.zip(more.cost).map(|(sum, more)| sum + more);
}

/// Returns the known part of the cost of a run's calls in US dollars; `None` if all of it is known.
pub fn known_part(usage: CallUsage, steps: &[ExecutionStep]) -> Option<f64> {
    let known = || steps.iter().filter_map(|step| step.spent?.cost).fold(0.0, |sum, cost| sum + cost);
    usage.cost.is_none().then(known)
}

/// Returns what a run has used so far, with the estimate of a call whose cost isn't known yet: it's under way, or the
/// program was killed in it.
pub fn usage_so_far(line: &RunSummary) -> CallUsage {
    let mut usage = line.spent;
    line.unsettled.into_iter().for_each(|more| add_usage(&mut usage, more));
    usage
}

/// Returns the known part of what a run has cost so far in US dollars, its tokens, and whether a part is unknown.
pub fn known_spending(line: &RunSummary) -> (f64, u64, bool) {
    let usage = usage_so_far(line);
    let unsettled = line.unsettled.and_then(|usage| usage.cost);
    let known = line.known_cost() + unsettled.unwrap_or(0.0);
    (known, usage.input_tokens.saturating_add(usage.output_tokens), usage.cost.is_none())
}

/// Formats a limit in US dollars, with more digits where it's below a cent.
fn format_limit(limit: f64) -> String {
    if limit > 0.0 && limit < 0.01 { format!("{limit:.4}") } else { format!("{limit:.2}") }
}

/// Says that a run may not spend `more` US dollars: it, or the run that it works for, has used its budget.
pub fn over_run_budget_reason(is_own: bool, spent: f64, budget: f64, more: f64) -> String {
    let whose = if is_own { "The run" } else { "The run that it works for" };
    let next = if more > 0.0 { format!(", and the next call costs about ${more:.4}") } else { String::new() };
    let limit = format_limit(budget);
    format!("{whose} has used ${spent:.4} of its ${limit}{next}. Raise its budget to let it go on.")
}

/// Returns the usable provider whose call costs least and less than `more` US dollars, as a sentence for the user.
/// `tokens`: estimated tokens of the request.
pub fn cheaper_model_advice(
    setup: &AgentSetup,
    latencies: &ProviderLatencies,
    tokens: u64,
    more: f64,
) -> Option<String> {
    let cost = |name: &String, provider: &ProviderConfig| {
        let status = setup.known.get(name);
        if !provider.is_enabled() || status.is_some_and(|status| status.barred.is_some()) {
            return None;
        }
        let local = setup.config.endpoint(name)?.local;
        if local && latencies.median_latency(name).is_none() {
            return None; // nothing says that such a model runs here
        }
        let price = provider.price.or_else(|| status?.price.filter(|_| !local));
        let answer = provider.max_tokens.map_or(router::DEFAULT_ANSWER_TOKENS, u64::from);
        price.map(|price| price.of(tokens, answer)).or(local.then_some(0.0))
    };
    let all = setup.config.llm.providers.iter();
    let (name, cost) = all
        .filter_map(|(name, provider)| Some((name, cost(name, provider)?)))
        .filter(|(_, cost)| *cost < more)
        .min_by(|one, other| one.1.total_cmp(&other.1))?;
    let price = if cost > 0.0 { format!("about ${cost:.4}") } else { "nothing".to_owned() };
    Some(format!(
        "{name} would cost {price} for this call: set `agents.lead.llm_provider: {name}` in config.yaml and resume the \
         run."
    ))
}

/// Spending and limit of a budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetStatus {
    /// Name of the budget: `this month`, or `NAME this month`.
    pub of: String,
    /// Limit in US dollars; `None` for no limit.
    pub limit: Option<f64>,
    /// Spending in US dollars.
    pub spent: f64,
    /// Number of input and output tokens.
    pub tokens: u64,
    /// Number of runs and days of search whose price is partly unknown; the known part is counted.
    pub unknown: u64,
}

impl BudgetStatus {
    /// Returns the spending of these runs.
    pub fn from_runs(of: String, limit: Option<f64>, lines: &[&RunSummary]) -> BudgetStatus {
        // Starts from 0.0, because an empty float sum is -0.0, which is displayed with a minus sign.
        let mut status = BudgetStatus { of, limit, spent: 0.0, tokens: 0, unknown: 0 };
        for (cost, tokens, is_partly_unknown) in lines.iter().map(|line| known_spending(line)) {
            status.spent += cost;
            status.tokens = status.tokens.saturating_add(tokens);
            status.unknown += u64::from(is_partly_unknown);
        }
        status
    }

    /// Adds a cost of search.
    #[must_use]
    pub fn add_embedding_cost(mut self, outlay: &EmbeddingCost) -> BudgetStatus {
        self.spent += outlay.cost;
        self.tokens = self.tokens.saturating_add(outlay.tokens);
        self.unknown += u64::from(outlay.unknown > 0);
        self
    }

    /// Returns the remaining US dollars; `None` if there's no limit.
    pub fn remaining(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.spent).max(0.0))
    }

    /// Returns a warning if nothing or less than a fifth of the limit is left.
    pub fn low_warning(&self) -> Option<String> {
        let (limit, left) = (self.limit?, self.remaining()?);
        let of = &self.of;
        if left <= 0.0 {
            return Some(format!("Nothing is left of ${limit:.2} for {of}: no model that costs something is called."));
        }
        (left < LOW_BUDGET_SHARE * limit).then(|| format!("Low balance: ${left:.4} of ${limit:.2} for {of} are left."))
    }

    /// Returns why a run may not spend `more` US dollars and what to do, as sentences; `None` if it may.
    pub fn over_limit_advice(&self, more: f64) -> Option<String> {
        let why = self.over_limit_reason(more)?;
        Some(format!("{why} What was done is kept; raise `budget` in the configuration and resume the run."))
    }

    /// Returns why spending `more` US dollars would exceed the limit; `None` if it wouldn't.
    pub fn over_limit_reason(&self, more: f64) -> Option<String> {
        let limit = self.limit.filter(|limit| self.spent >= *limit || self.spent + more > *limit)?;
        let BudgetStatus { of, spent, .. } = self;
        Some(format!(
            "The balance is too low: ${spent:.4} of ${limit:.2} for {of} are spent, and the next call costs about \
             ${more:.4}."
        ))
    }
}

/// Scope by which spending is grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    /// A run with all runs delegated from it.
    Task,
    /// A session with all runs delegated from its runs.
    Session,
    /// One project.
    Project,
    /// A calendar month, UTC.
    Month,
}

impl BudgetScope {
    /// Parses the name of a scope.
    pub fn from_name(word: &str) -> Option<BudgetScope> {
        match word {
            "task" => Some(BudgetScope::Task),
            "session" => Some(BudgetScope::Session),
            "project" => Some(BudgetScope::Project),
            "month" => Some(BudgetScope::Month),
            _ => None,
        }
    }
}

/// Spending of one entry in a scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScopeSpending {
    /// The run, session or project; `None` for a month, or for the spending of search.
    pub doc: Option<DocId>,
    /// Title of the line.
    pub title: String,
    /// Name of the project that it belongs to; empty if it belongs to several or is a project itself.
    pub project: String,
    /// Limit in US dollars; `None` if none is set.
    pub limit: Option<f64>,
    /// Spending in US dollars.
    pub spent: f64,
    /// Number of input and output tokens.
    pub tokens: u64,
    /// Number of runs and days of search whose price is partly unknown; the known part is counted.
    pub unknown: u64,
    /// Time of the last start of paid work, milliseconds since 1970.
    pub at: i64,
}

/// Adds spending to its entry: US dollars, tokens, whether a price is unknown, and time.
pub fn add_spending(
    all: &mut BTreeMap<(Option<DocId>, String), ScopeSpending>,
    (doc, title, project, limit): (Option<DocId>, String, &str, Option<f64>),
    (spent, tokens, unknown, at): (f64, u64, bool, i64),
) {
    // Only entries without a document are distinguished by title.
    let key = (doc, if doc.is_none() { title.clone() } else { String::new() });
    let project = project.to_owned();
    let new = ScopeSpending { doc, title, project, limit, spent: 0.0, tokens: 0, unknown: 0, at };
    let one = all.entry(key).or_insert(new);
    one.spent += spent;
    one.tokens = one.tokens.saturating_add(tokens);
    one.unknown += u64::from(unknown);
    one.at = one.at.max(at);
}

/// Returns the year and month of a time in milliseconds since 1970, UTC.
pub fn year_and_month(at: i64) -> (i64, i64) {
    let (year, month, _) = CalendarDay(at.div_euclid(86_400_000)).date();
    (year, month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_says_when_it_is_short() {
        let balance = |limit, spent| BudgetStatus { of: "this month".to_owned(), limit, spent, tokens: 0, unknown: 0 };
        assert_eq!(balance(None, 900.0).over_limit_advice(1.0), None);
        assert_eq!(balance(Some(1.0), 0.5).over_limit_advice(0.4), None);
        assert!(balance(Some(1.0), 0.5).over_limit_advice(0.6).is_some_and(|why| why.contains("$0.5000 of $1.00")));
        assert!(balance(Some(1.0), 1.0).over_limit_advice(0.0).is_some());
        assert_eq!((balance(None, 9.0).low_warning(), balance(Some(1.0), 0.75).low_warning()), (None, None));
        assert!(balance(Some(1.0), 0.95).low_warning().is_some_and(|word| word.contains("$0.0500 of $1.00")));
        assert!(balance(Some(1.0), 1.0).low_warning().is_some_and(|word| word.contains("Nothing is left")));
        assert_eq!((balance(Some(1.0), 1.5).remaining(), balance(None, 1.0).remaining()), (Some(0.0), None));
        // 1970-01-31 and 1970-02-01.
        assert_ne!(year_and_month(30 * 86_400_000), year_and_month(31 * 86_400_000));
    }
}
