//! Results of a measurement: printed as lines while it runs, or as one JSON object at its end.

use serde::Serialize;
use std::io::Write;
use support::measure;

/// The goal of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FigureGoal {
    /// No goal; the figure is informative.
    None,
    /// Less than this value.
    Under(f64),
    /// This value or more.
    AtLeast(f64),
    /// Exactly zero.
    Zero,
}

#[derive(Serialize)]
struct BenchFigure {
    name: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

#[derive(Serialize)]
struct LeftOutFigure {
    what: String,
    why: String,
}

/// The report of a measurement.
pub(super) struct BenchReport {
    json: bool,
    what: String,
    machine: String,
    date: String,
    build: &'static str,
    figures: Vec<BenchFigure>,
    left_out: Vec<LeftOutFigure>,
    wrong: Vec<String>,
}

impl BenchReport {
    /// Starts a report with what every figure must state: command, machine, build and date.
    pub(super) fn new(what: &str, json: bool) -> BenchReport {
        let (cores, model) = measure::processor_info();
        let folder = std::env::temp_dir();
        let disk = measure::file_system_kind(&folder).unwrap_or_else(|| "unknown".to_owned());
        let load = measure::load_average().map_or_else(String::new, |load| format!(", load {load:.2}"));
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let machine = format!("{cores} cores, {model}{load}, {disk} at {}", folder.display());
        let report = BenchReport {
            json,
            what: what.to_owned(),
            machine,
            date,
            build,
            figures: Vec::new(),
            left_out: Vec::new(),
            wrong: Vec::new(),
        };
        report.print_line(&format!("bench: {what}"));
        report.print_line(&format!("date: {}", report.date));
        report.print_line(&format!("machine: {}", report.machine));
        report.print_line(&format!("build: {build}"));
        if build == "debug" {
            report.warn("this is a debug build: its figures say nothing about the program");
        }
        if disk == "tmpfs" {
            report.warn("TMPDIR lies in memory, so writing costs nothing: set it to a folder on disk");
        }
        report
    }

    fn print_line(&self, text: &str) {
        if !self.json {
            write_stdout_line(text);
        }
    }

    /// Says on standard error how far a long measurement is.
    pub(super) fn show_progress(&self, text: &str) {
        eprintln!("{text}");
    }

    fn warn(&self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// Adds a figure.
    pub(super) fn add_figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str, goal: FigureGoal) {
        let name = name.into();
        let (words, met) = match goal {
            FigureGoal::None => (None, None),
            FigureGoal::Under(limit) => (Some(format!("under {} {unit}", format_number(limit))), Some(value < limit)),
            FigureGoal::AtLeast(limit) => {
                (Some(format!("at least {} {unit}", format_number(limit))), Some(value >= limit))
            }
            FigureGoal::Zero => (Some("0".to_owned()), Some(value == 0.0)),
        };
        let said = match (&words, met) {
            (Some(words), Some(true)) => format!(" (goal {words})"),
            (Some(words), _) => format!(" (goal {words}: missed)"),
            (None, _) => String::new(),
        };
        let space = if unit.is_empty() { "" } else { " " };
        self.print_line(&format!("{name}: {}{space}{unit}{said}", format_number(value)));
        self.figures.push(BenchFigure { name, value, unit, goal: words, met });
    }

    /// Adds the median and the 99th percentile of a sample; the goal applies to the latter.
    pub(super) fn add_percentiles(&mut self, name: &str, sample: &mut [f64], unit: &'static str, goal: FigureGoal) {
        self.add_figure(format!("{name} p50"), percentile(sample, 50), unit, FigureGoal::None);
        self.add_figure(format!("{name} p99"), percentile(sample, 99), unit, goal);
    }

    /// Records what couldn't be measured here, and why.
    pub(super) fn leave_out(&mut self, what: &str, why: impl Into<String>) {
        let (what, why) = (what.to_owned(), why.into());
        self.print_line(&format!("left out: {what}: {why}"));
        self.left_out.push(LeftOutFigure { what, why });
    }

    /// Records a wrong result, which makes the command fail.
    pub(super) fn add_error(&mut self, why: impl Into<String>) {
        let why = why.into();
        self.print_line(&format!("wrong: {why}"));
        self.wrong.push(why);
    }

    /// Returns whether all results were correct. A missed goal isn't an error.
    pub(super) fn is_correct(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Prints the JSON object if it was requested.
    pub(super) fn finish(&self) {
        if self.json {
            let object = serde_json::json!({
                "bench": self.what,
                "date": self.date,
                "machine": self.machine,
                "build": self.build,
                "figures": self.figures,
                "left_out": self.left_out,
                "wrong": self.wrong,
            });
            write_stdout_line(&object.to_string());
        }
    }
}

/// Prints a line. Write errors are ignored, so that the measurement continues if the reader closes the pipe.
fn write_stdout_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Returns the smallest value that at least `percent` percent of the sample don't exceed. Sorts the sample.
pub(super) fn percentile(sample: &mut [f64], percent: usize) -> f64 {
    sample.sort_by(f64::total_cmp);
    let rank = (sample.len() * percent).div_ceil(100).max(1);
    sample.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Formats a number with three significant digits.
fn format_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sample() {
        let mut sample: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((percentile(&mut sample, 50), percentile(&mut sample, 99)), (100.0, 198.0));
        assert_eq!(percentile(&mut [7.0], 99), 7.0);
        assert!(percentile(&mut [], 50).is_nan());
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.0123, 1.234, 12.34, 1234.5, 20.0].map(format_number);
        assert_eq!(shown, ["0", "0.012", "1.23", "12.3", "1234", "20"]);
    }
}
