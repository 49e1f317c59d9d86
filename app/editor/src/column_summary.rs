//! What a column of a table holds at a glance: the distribution of its numbers, or its most frequent values.

use crate::table_data::{TableData, number};
use std::collections::HashMap;
use ui::text::{counted, format_thousands};

/// Maximum number of bars of a column.
const MAX_BARS: usize = 20;
/// Maximum number of different values that are counted in a column of words.
const MAX_COUNTED_VALUES: usize = 10_000;
/// Maximum characters of a value in a description.
const MAX_VALUE_CHARS: usize = 40;

/// The values of a column.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ColumnSummary {
    /// The bars, from left to right.
    pub(crate) bars: Vec<SummaryBar>,
    /// What holds for the whole column, such as `0.5 to 9, 3 empty`.
    pub(crate) text: String,
}

/// A bar.
#[derive(Debug, PartialEq)]
pub(crate) struct SummaryBar {
    /// Number of cells.
    pub(crate) count: u32,
    /// What it counts, such as `12 rows from 0 to 5`.
    pub(crate) text: String,
}

impl TableData {
    /// Summarizes all columns.
    pub(crate) fn summaries(&self) -> Vec<ColumnSummary> {
        let summary = |(place, numeric)| if numeric { self.numbers(place) } else { self.words(place) };
        self.columns.iter().map(|column| column.numeric).enumerate().map(summary).collect()
    }

    fn cells(&self, place: usize) -> impl Iterator<Item = &str> {
        (0..self.rows).map(move |row| self.cell(row, place))
    }

    fn numbers(&self, place: usize) -> ColumnSummary {
        let values: Vec<f64> = self.cells(place).filter_map(number).filter(|value| value.is_finite()).collect();
        let empties = self.cells(place).filter(|cell| cell.is_empty()).count();
        let uncounted = self.rows - values.len() - empties;
        let (least, greatest) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(*value), b.max(*value)));
        if values.is_empty() {
            return ColumnSummary { bars: Vec::new(), text: "no numbers".to_owned() };
        }
        let text = match least == greatest {
            true => format!("all {}", short(least)),
            false => format!("{} to {}", short(least), short(greatest)),
        };
        let uncounted =
            if uncounted > 0 { format!(", {} NaN or infinite", format_thousands(uncounted)) } else { String::new() };
        let text = text + &empty(empties) + &uncounted;
        // Half of each, because the difference of two numbers may be too large to be one.
        let range = greatest / 2.0 - least / 2.0;
        let is_whole = range * 2.0 < MAX_BARS as f64 && values.iter().all(|value| value.fract() == 0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to the maximum of bars")]
        let count = if is_whole { (range * 2.0).round() as usize + 1 } else { MAX_BARS };
        let mut bars = vec![0_u32; count];
        for value in &values {
            let share = if range > 0.0 { (value / 2.0 - least / 2.0) / range } else { 0.0 };
            let scale = if is_whole { (count - 1) as f64 } else { count as f64 };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the bars")]
            let at = if is_whole { (share * scale).round() } else { share * scale } as usize;
            bars[at.min(count - 1)] += 1;
        }
        let edge = |at: usize| short(least + range / count as f64 * at as f64 * 2.0);
        let describe = |(at, rows): (usize, u32)| {
            let text = match is_whole {
                true => format!("{}: {}", short(least + at as f64), counted(rows as usize, "row")),
                false => format!("{} from {} to {}", counted(rows as usize, "row"), edge(at), edge(at + 1)),
            };
            SummaryBar { count: rows, text }
        };
        ColumnSummary { bars: bars.into_iter().enumerate().map(describe).collect(), text }
    }

    fn words(&self, place: usize) -> ColumnSummary {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        let mut others = 0;
        for cell in self.cells(place) {
            if cell.is_empty() {
                others += 1;
                continue;
            }
            if counts.len() >= MAX_COUNTED_VALUES && !counts.contains_key(cell) {
                let text = format!("more than {} different values", format_thousands(MAX_COUNTED_VALUES));
                return ColumnSummary { bars: Vec::new(), text };
            }
            *counts.entry(cell).or_default() += 1;
        }
        let different = counts.len();
        let text = match different {
            0 => return ColumnSummary { bars: Vec::new(), text: "all empty".to_owned() },
            1 => format!("all “{}”", counts.keys().next().map_or_else(String::new, |value| cut(value))),
            _ => format!("{} different values", format_thousands(different)),
        };
        let text = text + &empty(others);
        // Bars that are all equal say nothing.
        if different > 1 && counts.values().all(|count| *count == 1) {
            return ColumnSummary { bars: Vec::new(), text };
        }
        let mut ranked: Vec<(&str, u32)> = counts.into_iter().collect();
        ranked.sort_by(|(a, few), (b, many)| many.cmp(few).then_with(|| a.cmp(b)));
        let bars = ranked.into_iter().take(MAX_BARS).map(|(value, count)| SummaryBar {
            count,
            text: format!("“{}”: {}", cut(value), counted(count as usize, "row")),
        });
        ColumnSummary { bars: bars.collect(), text }
    }
}

/// Returns the number of empty cells as a part of a sentence.
fn empty(count: usize) -> String {
    if count > 0 { format!(", {} empty", format_thousands(count)) } else { String::new() }
}

/// Shortens a value.
fn cut(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Writes a number with about four digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = if size >= 1_000.0 { 1 } else { 4 };
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(csv: &str) -> ColumnSummary {
        TableData::parse_csv(csv).expect("a table").summaries().remove(0)
    }

    fn counts(summary: &ColumnSummary) -> Vec<u32> {
        summary.bars.iter().map(|bar| bar.count).collect()
    }

    #[test]
    fn numbers_are_counted_in_ranges() {
        let whole = summary("n\n1\n3\n3\n\n5\n");
        assert_eq!((counts(&whole), whole.text.as_str()), (vec![1, 0, 2, 0, 1], "1 to 5, 1 empty"));
        assert_eq!(whole.bars[2].text, "3: 2 rows");
        let parts = summary("n\n0\n0.5\n10\n");
        assert_eq!((parts.bars.len(), counts(&parts).iter().sum()), (20, 3));
        assert_eq!((parts.bars[1].text.as_str(), parts.bars[19].count), ("1 row from 0.5 to 1", 1));
        let same = summary("n\n-0.25\n-0.25\n");
        assert_eq!((same.text.as_str(), counts(&same)[0]), ("all -0.25", 2));
        let huge = summary("n\n-1.7e308\n1.7e308\n1e999\n");
        assert_eq!(
            (huge.text.as_str(), counts(&huge)[0], counts(&huge)[19]),
            ("-1.700e308 to 1.700e308, 1 NaN or infinite", 1, 1)
        );
    }

    #[test]
    fn words_are_counted_by_value() {
        let words = summary("w\nb\na\nb\n\n\"\"\nc\n");
        assert_eq!((counts(&words), words.text.as_str()), (vec![2, 1, 1], "3 different values, 2 empty"));
        assert_eq!((words.bars[0].text.as_str(), words.bars[1].text.as_str()), ("“b”: 2 rows", "“a”: 1 row"));
        assert_eq!(summary("w\na\nb\nc\n"), ColumnSummary { bars: vec![], text: "3 different values".to_owned() });
        assert_eq!(summary("w\nx\nx\n").text, "all “x”");
        let many: String = (0..20_000).map(|row| format!("w{row}\n")).collect();
        assert_eq!(summary(&format!("w\n{many}")).text, "more than 10\u{202f}000 different values");
        assert_eq!(summary("w,v\n,1\n").text, "all empty");
    }
}
