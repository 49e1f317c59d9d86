//! The outcome of a run, derived from the results of its calls: a run that ends with an answer may have failed.

use super::experience::RunOutcome;
use super::trace_extraction::CompletedCall;
use crate::policy;
use store::RunEnding;

/// Maximum length of a reason in bytes.
const MAX_FAILURE_REASON_BYTES: usize = 300;

/// Returns whether a later call made up for a failed one: a successful call of the same tool, or of another tool with
/// the same main argument. If the failed call only read, or its tool doesn't exist, any later success counts.
fn is_recovered(failed: &CompletedCall, later: &[CompletedCall]) -> bool {
    let subject = policy::main_argument(&failed.arguments);
    let alike = |call: &&CompletedCall| {
        call.tool == failed.tool || (!subject.is_empty() && policy::main_argument(&call.arguments) == subject)
    };
    let mut good = later.iter().filter(|call| call.success == Some(true));
    if failed.is_harmless() { good.next().is_some() } else { good.any(|call| alike(&call)) }
}

/// Returns the outcome of a run with these calls and this ending.
pub fn outcome_of_calls(ending: RunEnding, calls: &[CompletedCall]) -> RunOutcome {
    let good = |call: &CompletedCall| call.success == Some(true);
    let failed = || calls.iter().enumerate().filter(|(_, call)| !good(call));
    match ending {
        RunEnding::Failed | RunEnding::Limit | RunEnding::Budget | RunEnding::Cancelled => RunOutcome::Failure,
        RunEnding::Done if failed().next().is_none() => RunOutcome::Success,
        RunEnding::Done if !calls.iter().any(good) => RunOutcome::Failure,
        RunEnding::Done => {
            let lost = failed().any(|(at, call)| !is_recovered(call, calls.get(at + 1..).unwrap_or_default()));
            if lost { RunOutcome::Failure } else { RunOutcome::SuccessWithRecovery }
        }
    }
}

/// Returns the tools that succeeded at least once, in order and without duplicates.
pub fn successful_tools(calls: &[CompletedCall]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for call in calls.iter().filter(|call| call.success == Some(true)) {
        if !tools.contains(&call.tool) {
            tools.push(call.tool.clone());
        }
    }
    tools
}

/// Returns a sentence for each failed call: tool and reason. Each reason is given once.
pub fn failure_sentences(calls: &[CompletedCall]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for call in calls.iter().filter(|call| call.success != Some(true)) {
        let words = format!("{} failed: {}", call.tool, failure_reason(&call.result));
        if !told.contains(&words) {
            told.push(words);
        }
    }
    told
}

/// Returns the first readable line of an error, without schemas and lists of tool names.
pub fn failure_reason(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with(['{', '[']))
        .unwrap_or("no reason was given");
    // `calls::check` appends a tool's parameters for the model, and the session the list of tools. Both are cut off.
    let ends = [". It takes {", "; there are ", " There are "].iter().filter_map(|end| line.find(end)).min();
    let line = line.get(..ends.unwrap_or(line.len())).unwrap_or(line);
    let line = line.find("{\"").map_or(line, |at| &line[..at]).trim_end_matches([' ', ':', ';', ',']);
    let line = if line.is_empty() { "no reason was given" } else { line };
    line[..line.floor_char_boundary(MAX_FAILURE_REASON_BYTES)].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    fn call(tool: &str, path: &str, success: Option<bool>) -> CompletedCall {
        let arguments = Map::from_iter([("path".to_owned(), Value::from(path))]);
        let looks = matches!(tool, "read_file" | "search");
        CompletedCall {
            tool: tool.to_owned(),
            arguments,
            result: "no".to_owned(),
            success,
            created: false,
            looks,
            known: tool != "fly",
        }
    }

    #[test]
    fn the_outcome_is_what_the_calls_came_to() {
        let (good, bad) = (Some(true), Some(false));
        type Made<'a> = &'a [(&'a str, &'a str, Option<bool>)];
        let cases: [(Made<'_>, RunOutcome); 9] = [
            (&[], RunOutcome::Success),
            (&[("write_file", "a", good)], RunOutcome::Success),
            (&[("write_file", "a", bad)], RunOutcome::Failure),
            (&[("fly", "a", bad)], RunOutcome::Failure),
            (&[("fly", "a", bad), ("write_file", "a", good)], RunOutcome::SuccessWithRecovery),
            (&[("write_file", "a", bad), ("read_file", "b", good)], RunOutcome::Failure),
            (&[("edit_file", "a", bad), ("write_file", "a", good)], RunOutcome::SuccessWithRecovery),
            (&[("read_file", "a", bad), ("write_file", "b", good)], RunOutcome::SuccessWithRecovery),
            (&[("write_file", "a", good), ("shell", "b", None)], RunOutcome::Failure),
        ];
        for (calls, outcome) in cases {
            let made: Vec<CompletedCall> =
                calls.iter().map(|(tool, path, success)| call(tool, path, *success)).collect();
            assert_eq!(outcome_of_calls(RunEnding::Done, &made), outcome, "{calls:?}");
            assert_eq!(outcome_of_calls(RunEnding::Failed, &made), RunOutcome::Failure);
        }
    }

    #[test]
    fn a_reason_is_a_sentence() {
        for (text, said) in [
            ("there is no tool fly; there are read_file, shell", "there is no tool fly"),
            (
                "shell was called wrongly: x is missing. It takes {\"type\":\"object\"}",
                "shell was called wrongly: x is missing",
            ),
            ("{\"type\": \"object\"}", "no reason was given"),
            ("\n\n  exit 1\nmore", "exit 1"),
            ("", "no reason was given"),
        ] {
            assert_eq!(failure_reason(text), said, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_only_failed_is_said_to_have_worked(
            made in proptest::collection::vec(("[a-d]", proptest::option::of(any::<bool>())), 0..12),
        ) {
            let calls: Vec<CompletedCall> = made.iter().map(|(tool, success)| call(tool, tool, *success)).collect();
            for tool in successful_tools(&calls) {
                prop_assert!(calls.iter().any(|call| call.tool == tool && call.success == Some(true)));
            }
            if !calls.is_empty() && successful_tools(&calls).is_empty() {
                prop_assert_eq!(outcome_of_calls(RunEnding::Done, &calls), RunOutcome::Failure);
            }
        }
    }
}
