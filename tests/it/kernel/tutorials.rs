//! Tutorials of pandas, numpy, scipy and scikit-learn through the command line, in the science kernel and in an
//! environment: every cell runs and gives what the tutorial shows or what native CPython gives.
//!
//! `tests/data/tutorials` has the notes; `convert.py` there makes them, and README.md names their sources.
//! `TRACEBOOK_SCIENCE_KERNELS` names the folder of an installed pack, `TRACEBOOK_TUTORIALS_ENVIRONMENT` an environment
//! with the packages (`.ci/run` makes both). Without them these tests fail in CI and are skipped elsewhere.

use super::note_runs::NoteRuns;
use regex_lite::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that differ by less are equal, since residuals can consist of rounding alone.
const SMALLEST_DIFFERENCE: f64 = 1e-8;
/// The allowed relative difference; numbers are printed with eight digits.
const RELATIVE_DIFFERENCE: f64 = 1e-6;

const TUTORIALS: NoteRuns = NoteRuns { folder: "tutorials", compare: differences };

fn read_json(name: &str) -> Value {
    serde_json::from_str(&TUTORIALS.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The output of a cell.
#[derive(Default)]
struct CellResult {
    /// What the cell printed, followed by its value.
    text: String,
    warnings: String,
    errors: String,
    figures: u64,
}

fn results_of(lines: &[Value]) -> BTreeMap<u64, CellResult> {
    let mut results: BTreeMap<u64, CellResult> = BTreeMap::new();
    for line in lines {
        let cell = results.entry(line["cell"].as_u64().expect("the cell's number")).or_default();
        let text = line["text"].as_str().unwrap_or_default();
        match line["output_type"].as_str() {
            Some("stream") if line["name"] == "stderr" => cell.warnings.push_str(text),
            Some("stream") => cell.text.push_str(text),
            Some("execute_result") => {
                cell.text.push_str(line["data"]["text/plain"].as_str().expect("the value as text"));
            }
            Some("display_data") if line["data"]["image/png"].is_string() => cell.figures += 1,
            _ => cell.errors.push_str(&line.to_string()),
        }
    }
    results
}

#[derive(Debug, PartialEq)]
enum Token {
    Number(f64),
    Letter(char),
}

/// Splits text into numbers and single characters, without white space. Object addresses become 0.
fn tokens(text: &str) -> Vec<Token> {
    let number = Regex::new(r"0x[0-9a-fA-F]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?").expect("an expression");
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).map(Token::Letter).collect::<Vec<_>>();
    let (mut found, mut place) = (Vec::new(), 0);
    for one in number.find_iter(text) {
        found.extend(letters(&text[place..one.start()]));
        found.push(Token::Number(one.as_str().parse().unwrap_or(0.0)));
        place = one.end();
    }
    found.extend(letters(&text[place..]));
    found
}

/// Whether two texts are equal apart from white space and the last digits of numbers.
fn agrees(wanted: &str, given: &str, tolerance: f64) -> bool {
    let (wanted, given) = (tokens(wanted), tokens(given));
    wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|pair| match pair {
            (Token::Number(a), Token::Number(b)) => {
                a == b || (a - b).abs() <= tolerance + RELATIVE_DIFFERENCE * a.abs()
            }
            (a, b) => a == b,
        })
}

/// Whether two texts have the same words, whatever their numbers. Used for iteration logs and random numbers.
fn has_form_of(wanted: &str, given: &str) -> bool {
    let address = Regex::new("0x[0-9a-f]+").expect("an expression");
    let words = |text: &str| {
        let text = address.replace_all(text, "");
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
        words.map(ToOwned::to_owned).collect::<BTreeSet<String>>()
    };
    words(wanted) == words(given)
}

#[test]
fn texts_are_compared_by_their_numbers() {
    let same = |a, b| agrees(a, b, SMALLEST_DIFFERENCE);
    assert!(same("array([1., -0.5])", "array([ 1.00000001,\n  -0.5])") && same("1.+0.j", "1.-0.j"));
    assert!(!same("array([1., 2.])", "array([1., 2.1])") && !same("[1, 2]", "[1, 2, 3]") && !same("True", "False"));
    assert!(!same("dtype('int64')", "dtype('int32')"));
    assert!(agrees("0.97", "0.9736", 0.01) && !agrees("0.97", "0.95", 0.01));
    assert!(has_form_of("array([1, 2])", "array([3, 4])") && !has_form_of("array([1, 2])", "None"));
}

/// Lists each cell of a note whose result differs from the expected one.
fn differences(kernel: &str, name: &str, lines: &[Value]) -> Vec<String> {
    let known = read_json("differences.json");
    let mut found = Vec::new();
    let results = results_of(lines);
    let expected = read_json(&format!("{name}.json"));
    let expected = expected.as_array().expect("a list of cells");
    assert!(!expected.is_empty(), "{name}");
    let nothing = CellResult::default();
    for (number, cell) in (1..).zip(expected) {
        let given = results.get(&number).unwrap_or(&nothing);
        let place = format!("{kernel}, {name}, cell {number}");
        let known = &known[kernel][name][number.to_string()];
        let wanted = known.as_str().or_else(|| cell["text"].as_str()).expect("text");
        let tolerance = cell["tolerance"].as_f64().unwrap_or(SMALLEST_DIFFERENCE);
        // A drawing call's value is omitted when the figure itself is shown.
        let is_artist = cell["figures"] != 0 && wanted.contains("<matplotlib") && given.text.is_empty();
        let is_right = match cell["varies"] == true {
            true => has_form_of(wanted, &given.text),
            false => agrees(wanted, &given.text, tolerance),
        };
        if !is_artist && !is_right {
            found.push(format!("{place} gives\n{}\nand not\n{wanted}", given.text));
        }
        if cell["figures"] != given.figures {
            found.push(format!("{place} shows {} figures and not {}", given.figures, cell["figures"]));
        }
        if !given.errors.is_empty() || (cell["warns"] == false && !given.warnings.is_empty()) {
            found.push(format!("{place} complains: {}{}", given.errors, given.warnings));
        }
    }
    found
}

#[test]
fn science_runs_the_tutorial_of_pandas() {
    TUTORIALS.check_in_science(&["pandas-10min"]);
}

#[test]
fn science_runs_the_quickstart_of_numpy() {
    TUTORIALS.check_in_science(&["numpy-quickstart"]);
}

#[test]
fn science_runs_the_tutorials_of_scipy_on_functions() {
    TUTORIALS.check_in_science(&["scipy-special", "scipy-integrate", "scipy-optimize", "scipy-linalg"]);
}

#[test]
fn science_runs_the_tutorials_of_scipy_on_signals() {
    TUTORIALS.check_in_science(&["scipy-interpolate", "scipy-fft"]);
}

#[test]
fn science_runs_the_start_of_scikit_learn() {
    TUTORIALS.check_in_science(&["scikit-learn"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_runs_the_tutorials_of_pandas_numpy_and_scikit_learn() {
    TUTORIALS.check_in_environment(&["pandas-10min", "numpy-quickstart", "scikit-learn"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_runs_the_tutorials_of_scipy() {
    let names =
        ["scipy-special", "scipy-integrate", "scipy-optimize", "scipy-linalg", "scipy-interpolate", "scipy-fft"];
    TUTORIALS.check_in_environment(&names);
}

#[test]
fn every_note_is_run_by_a_test() {
    let source = std::fs::read_to_string(file!().strip_prefix("tests/").unwrap_or(file!())).expect("this file");
    let mut count = 0;
    for entry in std::fs::read_dir(TUTORIALS.data()).expect("listed").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|kind| kind == "md") && path.with_extension("json").exists() {
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
            assert_eq!(source.matches(&format!("\"{name}\"")).count(), 2, "{name} runs once in each kernel");
            count += 1;
        }
    }
    assert_eq!(count, 9);
}
