//! The learning curve: how many runs of each week or month ended well, how many of them asked no model, and their cost.

use crate::agent_definition::BUTTON_AGENT;
use crate::budget::known_spending;
use crate::run_records::RunSummary;
use std::collections::BTreeMap;
use store::{DocId, RunEnding};
use text::task::CalendarDay;

/// Maximum number of periods in a learning curve.
const MAX_CURVE_POINTS: usize = 52;

/// Length of the periods of a learning curve, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurvePeriod {
    /// From Monday to Sunday.
    #[default]
    Week,
    /// A calendar month.
    Month,
}

impl CurvePeriod {
    /// Returns the period with this name: `week` or `month`.
    pub fn from_name(name: &str) -> Option<CurvePeriod> {
        match name {
            "week" => Some(CurvePeriod::Week),
            "month" => Some(CurvePeriod::Month),
            _ => None,
        }
    }

    /// Returns the first day of the period that a day belongs to.
    fn first_day(self, day: CalendarDay) -> CalendarDay {
        match self {
            CurvePeriod::Week => CalendarDay(day.0 - day.weekday()),
            CurvePeriod::Month => {
                let (year, month, _) = day.date();
                CalendarDay::from_date(year, month, 1)
            }
        }
    }

    /// Returns the first day of the period before the one that begins on this day.
    fn previous(self, first: CalendarDay) -> CalendarDay {
        match self {
            CurvePeriod::Week => CalendarDay(first.0 - 7),
            CurvePeriod::Month => first.add_months(-1),
        }
    }
}

/// Runs of one period. A run counts with all that it delegated, in the period in which it began.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// First day of the period.
    pub from: CalendarDay,
    /// Number of runs that ended.
    pub runs: u64,
    /// How many of them ended with an answer.
    pub done: u64,
    /// How many of these asked no model.
    pub without_model: u64,
    /// Number of model calls of all runs.
    pub model_calls: u64,
    /// Cost in US dollars, as far as it's known.
    pub cost: f64,
    /// Number of runs of which a part of the cost isn't known.
    pub unknown_cost: u64,
}

impl CurvePoint {
    fn of_period(from: CalendarDay) -> CurvePoint {
        CurvePoint { from, runs: 0, done: 0, without_model: 0, model_calls: 0, cost: 0.0, unknown_cost: 0 }
    }

    /// Returns the share of runs that ended with an answer, 0 to 1; `None` if there were no runs.
    pub fn done_share(&self) -> Option<f64> {
        self.share(self.done)
    }

    /// Returns the share of runs that ended with an answer and asked no model, 0 to 1; `None` if there were no runs.
    pub fn without_model_share(&self) -> Option<f64> {
        self.share(self.without_model)
    }

    fn share(&self, part: u64) -> Option<f64> {
        (self.runs > 0).then(|| part as f64 / self.runs as f64)
    }

    /// Describes the period in one line.
    pub fn describe(&self) -> String {
        let from = self.from;
        let (Some(done), Some(without)) = (self.done_share(), self.without_model_share()) else {
            return format!("{from}  no runs");
        };
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
        let unknown = match self.unknown_cost {
            0 => String::new(),
            count => format!(", {count} of unknown price"),
        };
        let (done, without) = (100.0 * done, 100.0 * without);
        format!("{from}  {runs}, {done:.0} % done, {without:.0} % without a model, ${:.4}{unknown}", self.cost)
    }
}

/// What is known of a run and of all that it delegated.
#[derive(Default)]
struct RunFamily {
    /// When the run itself began, in milliseconds since 1970, and how it ended; `None` if it isn't over, or not listed.
    ended: Option<(i64, RunEnding)>,
    model_calls: u64,
    cost: f64,
    is_cost_unknown: bool,
}

/// Returns the learning curve up to today: one point for each period since the first run, at most
/// [`MAX_CURVE_POINTS`]. `runs`: each run's id, the id of the run at the root of its delegation, and its summary.
/// Buttons of generated views don't count, because no agent works there.
pub fn learning_curve<'a>(
    runs: impl Iterator<Item = ([DocId; 2], &'a RunSummary)>,
    period: CurvePeriod,
    today: CalendarDay,
) -> Vec<CurvePoint> {
    let mut families: BTreeMap<DocId, RunFamily> = BTreeMap::new();
    for ([id, root], line) in runs {
        let family = families.entry(root).or_default();
        if id == root && line.agent != BUTTON_AGENT {
            family.ended = line.ending.map(|ending| (line.start_time, ending));
        }
        let (cost, _, is_unknown) = known_spending(line);
        family.model_calls = family.model_calls.saturating_add(line.iteration);
        family.cost += cost;
        family.is_cost_unknown |= is_unknown;
    }
    let mut points: BTreeMap<i64, CurvePoint> = BTreeMap::new();
    for family in families.into_values() {
        let Some((began, ending)) = family.ended else { continue };
        let day = CalendarDay(began.div_euclid(86_400_000));
        if day > today {
            continue; // the clock of the device that it comes from is wrong
        }
        let from = period.first_day(day);
        let point = points.entry(from.0).or_insert_with(|| CurvePoint::of_period(from));
        let is_done = ending == RunEnding::Done;
        point.runs += 1;
        point.done += u64::from(is_done);
        point.without_model += u64::from(is_done && family.model_calls == 0);
        point.model_calls = point.model_calls.saturating_add(family.model_calls);
        point.cost += family.cost;
        point.unknown_cost += u64::from(family.is_cost_unknown);
    }
    let Some(first) = points.keys().next().copied() else { return Vec::new() };
    let mut curve = Vec::new();
    let mut from = period.first_day(today);
    while from.0 >= first && curve.len() < MAX_CURVE_POINTS {
        curve.push(points.remove(&from.0).unwrap_or_else(|| CurvePoint::of_period(from)));
        from = period.previous(from);
    }
    curve.reverse();
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{CallUsage, RunOrigin};

    fn run(day: &str, ending: Option<RunEnding>, iteration: u64, cost: Option<f64>) -> RunSummary {
        RunSummary {
            session: DocId([9; 16]),
            volume: DocId([8; 16]),
            prompt: "x".to_owned(),
            start_time: CalendarDay::parse(day).expect("a day").0 * 86_400_000,
            ended: None,
            ending,
            iteration,
            pending: 0,
            spent: CallUsage { cost, ..CallUsage::default() },
            known_part: None,
            unsettled: None,
            steps: 1,
            agent: "assistant".to_owned(),
            origin: RunOrigin::User,
            phase: 0,
            device: None,
            budget: None,
            deadline: None,
            changed: Vec::new(),
        }
    }

    #[test]
    fn runs_are_counted_by_period_with_all_that_they_delegated() {
        let id = |number: u8| DocId([number; 16]);
        let done = Some(RunEnding::Done);
        let lines = [
            ([id(1), id(1)], run("2026-11-02", done, 3, Some(0.25))),
            ([id(2), id(2)], run("2026-11-08", Some(RunEnding::Failed), 1, None)),
            // It asked no model itself; the run that it delegated to did.
            ([id(3), id(3)], run("2026-11-16", done, 0, Some(0.0))),
            ([id(4), id(3)], run("2026-11-16", done, 2, Some(0.5))),
            ([id(5), id(5)], run("2026-11-22", done, 0, Some(0.0))),
            ([id(6), id(6)], run("2026-11-22", None, 1, Some(0.0))),
            ([id(7), id(7)], run("2027-01-01", done, 0, Some(0.0))),
            ([id(8), id(8)], RunSummary { agent: BUTTON_AGENT.to_owned(), ..run("2026-11-22", done, 0, Some(0.0)) }),
        ];
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        let curve = |period: CurvePeriod| {
            let runs = lines.iter().map(|(ids, line)| (*ids, line));
            learning_curve(runs, period, today).iter().map(CurvePoint::describe).collect::<Vec<String>>()
        };
        assert_eq!(
            curve(CurvePeriod::Week),
            [
                "2026-11-02  2 runs, 50 % done, 0 % without a model, $0.2500, 1 of unknown price",
                "2026-11-09  no runs",
                "2026-11-16  2 runs, 100 % done, 50 % without a model, $0.5000",
            ]
        );
        assert_eq!(
            curve(CurvePeriod::Month),
            ["2026-11-01  4 runs, 75 % done, 25 % without a model, $0.7500, 1 of unknown price"]
        );
        assert!(learning_curve(std::iter::empty(), CurvePeriod::Week, today).is_empty());
    }

    #[test]
    fn a_curve_is_bounded() {
        let first = ([DocId([1; 16]); 2], run("1971-01-01", Some(RunEnding::Done), 0, Some(0.0)));
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        let curve = learning_curve(std::iter::once((first.0, &first.1)), CurvePeriod::Week, today);
        assert_eq!((curve.len(), curve[0].runs), (MAX_CURVE_POINTS, 0));
    }
}
