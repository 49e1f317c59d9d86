//! What is spent beside runs: by search, where an endpoint works out what texts mean. Checked against the month before
//! each call like what runs spend, and kept by day.

use crate::session::{Session, Turn};
use agent::config::Budget;
use serde::{Deserialize, Serialize};
use store::disk::Write;
use text::time::Time;

/// The beginning of the names under which the disk keeps what was spent beside runs.
pub const OUTLAYS: &str = "outlays/";
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// What was spent for one thing: by one call, or on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlay {
    /// For what: the endpoint and its model, `https://…/v1#model`.
    pub what: String,
    /// Calls.
    pub calls: u64,
    /// Tokens that were read.
    pub tokens: u64,
    /// US dollars of the calls whose price is known.
    pub cost: f64,
    /// Calls whose price is not.
    pub unknown: u64,
    /// When the last one was, milliseconds since 1970.
    pub at: i64,
}

impl Outlay {
    fn day(&self) -> i64 {
        self.at.div_euclid(DAY)
    }
}

impl Session {
    /// What was spent beside runs on this device, a line for each day and thing, the oldest first.
    pub fn outlays(&self) -> impl DoubleEndedIterator<Item = &Outlay> {
        self.agents.outlays.values()
    }

    /// Why search may not spend this much more, in US dollars: a sentence. `limits`: as the configuration has them now.
    pub fn over_search_budget(&self, limits: &Budget, now: Time, more: f64) -> Option<String> {
        let balance = self.balance_of_month(now, limits, &self.lines_of_month(now));
        let why = balance.lacks(more + self.coming())?;
        Some(format!(
            "{why} No text is sent to the endpoint of the sentence model; raise `budget` in the configuration."
        ))
    }

    pub(in crate::session) fn outlays_started(&mut self, kept: Vec<Outlay>) {
        self.agents.outlays = kept.into_iter().map(|outlay| ((outlay.day(), outlay.what.clone()), outlay)).collect();
    }

    /// Something was spent beside runs: it is added to what was on this day.
    pub(in crate::session) fn spent(&mut self, turn: &mut Turn<'_>, new: Outlay) {
        let (day, what) = (new.day(), new.what.clone());
        let kept = match self.agents.outlays.get(&(day, what.clone())) {
            None => new,
            Some(known) => Outlay {
                what: new.what,
                calls: known.calls.saturating_add(new.calls),
                tokens: known.tokens.saturating_add(new.tokens),
                cost: known.cost + new.cost,
                unknown: known.unknown.saturating_add(new.unknown),
                at: known.at.max(new.at),
            },
        };
        let value = serde_json::to_vec(&kept).ok();
        self.agents.outlays.insert((day, what.clone()), kept);
        self.agents.revision += 1;
        self.append(turn, vec![Write::Meta { key: format!("{OUTLAYS}{day}/{what}"), value }], None);
        let limits = self.agents.setup().map(|setup| setup.config.budget.clone()).unwrap_or_default();
        let balance = self.balance_of_month(turn.now, &limits, &self.lines_of_month(turn.now));
        self.tell_low(turn, balance, 0.0);
    }
}
