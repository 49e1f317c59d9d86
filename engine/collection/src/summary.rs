//! Summaries of a column's values.

use super::value::{ExprValue, day_of};
use std::collections::HashSet;

/// The built-in summaries, with the names that Obsidian's Bases gives them.
pub const SUMMARY_NAMES: [&str; 14] = [
    "Average",
    "Min",
    "Max",
    "Sum",
    "Range",
    "Median",
    "Stddev",
    "Earliest",
    "Latest",
    "Checked",
    "Unchecked",
    "Empty",
    "Filled",
    "Unique",
];

/// Summarizes values. Returns `Nothing` if the summary is unknown or applies to none of the values.
#[allow(clippy::cast_precision_loss, reason = "counts of rows")]
pub(super) fn summarize(summary: &str, values: &[ExprValue]) -> ExprValue {
    let count =
        |fits: &dyn Fn(&ExprValue) -> bool| ExprValue::Number(values.iter().filter(|value| fits(value)).count() as f64);
    let dates = || {
        values.iter().filter_map(|value| match value {
            ExprValue::Date(ms, timed) => Some((*ms, *timed)),
            _ => None,
        })
    };
    let date = |found: Option<(i64, bool)>| found.map_or(ExprValue::Nothing, |(ms, timed)| ExprValue::Date(ms, timed));
    match summary {
        "Checked" => return count(&|value| *value == ExprValue::Bool(true)),
        "Unchecked" => return count(&|value| *value == ExprValue::Bool(false)),
        "Empty" => return count(&ExprValue::is_empty),
        "Filled" => return count(&|value| !value.is_empty()),
        "Unique" => {
            let shown: HashSet<String> =
                values.iter().filter(|value| !value.is_empty()).map(ExprValue::to_text).collect();
            return ExprValue::Number(shown.len() as f64);
        }
        "Earliest" => return date(dates().min()),
        "Latest" => return date(dates().max()),
        "Range" if dates().next().is_some() => {
            let span = dates().max().zip(dates().min()).map(|(last, first)| day_of(last.0).0 - day_of(first.0).0);
            return span.map_or(ExprValue::Nothing, |days| ExprValue::Text(format!("{days} days")));
        }
        _ => {}
    }
    let mut numbers: Vec<f64> = values
        .iter()
        .filter_map(|value| match value {
            ExprValue::Number(number) => Some(*number),
            _ => None,
        })
        .collect();
    if numbers.is_empty() {
        return ExprValue::Nothing;
    }
    let many = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    numbers.sort_by(f64::total_cmp);
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let found = match summary {
        "Average" => sum / many,
        "Min" => first,
        "Max" => last,
        "Sum" => sum,
        "Range" => last - first,
        "Median" => (numbers[(numbers.len() - 1) / 2] + numbers[numbers.len() / 2]) / 2.0,
        "Stddev" => (numbers.iter().map(|number| (number - sum / many).powi(2)).sum::<f64>() / many).sqrt(),
        _ => return ExprValue::Nothing,
    };
    // Two decimals are enough for a reader.
    ExprValue::Number((found * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_to_something() {
        let numbers = [3.0, 1.0, 4.0, 1.0].map(ExprValue::Number);
        let found = |name: &str| summarize(name, &numbers).to_text();
        let all: Vec<String> = ["Average", "Min", "Max", "Sum", "Range", "Median", "Stddev", "Unique", "Filled"]
            .into_iter()
            .map(found)
            .collect();
        assert_eq!(all, ["2.25", "1", "4", "9", "3", "2", "1.3", "3", "4"]);
        let mixed = [
            ExprValue::Nothing,
            ExprValue::Bool(true),
            ExprValue::Bool(false),
            ExprValue::Date(86_400_000 * 3, false),
            ExprValue::Date(0, false),
        ];
        let found = |name: &str| summarize(name, &mixed).to_text();
        assert_eq!(
            ["Checked", "Unchecked", "Empty", "Earliest", "Latest", "Range"].map(found),
            ["1", "1", "1", "1970-01-01", "1970-01-04", "3 days"]
        );
        assert_eq!((summarize("Sum", &[]), summarize("unheard", &numbers)), (ExprValue::Nothing, ExprValue::Nothing));
    }
}
