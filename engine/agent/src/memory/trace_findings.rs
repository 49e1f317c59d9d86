//! Which literal arguments of a run were known before its results: those that the goal or a tool's parameters name. The
//! others may be findings, so that a replay needs the same findings.

use super::goal::ParsedGoal;
use super::slots;
use super::trace_extraction::ToolFacts;
use std::collections::BTreeSet;
use std::ops::Range;

/// What of a call's arguments isn't in a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LiteralArguments {
    /// The texts and numbers, one a line.
    pub(super) lines: String,
    /// The arguments that are numbers.
    numbers: Vec<String>,
}

impl LiteralArguments {
    pub(super) fn add_text(&mut self, text: &str) {
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    pub(super) fn add_number(&mut self, number: &str) {
        self.numbers.push(number.to_owned());
        self.add_text(number);
    }
}

impl ToolFacts {
    /// Returns whether the parameters name every word and number of a line, as they do with what may be chosen.
    fn names_all(&self, line: &str) -> bool {
        let words = |text: &str| -> BTreeSet<String> {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect()
        };
        if let Some(number) = slots::canonical_number(line.trim()) {
            let numbers = self.parameters.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-'));
            let mut named = numbers.filter_map(|text| slots::canonical_number(text.trim_end_matches('.')));
            return named.any(|named| named == number);
        }
        words(line).is_subset(&words(&self.parameters))
    }

    /// Returns whether the parameters offer this text as a choice. Another choice is another action.
    pub(super) fn offers(&self, text: &str) -> bool {
        let is_quote = |c: char| matches!(c, '"' | '\'' | '\\');
        !text.is_empty()
            && self.parameters.match_indices(text).any(|(at, _)| {
                self.parameters[..at].ends_with(is_quote) && self.parameters[at + text.len()..].starts_with(is_quote)
            })
    }
}

/// The literals of a run's calls, in the order of the calls.
pub(super) struct RunLiterals<'a> {
    goal: &'a ParsedGoal,
    calls: Vec<(LiteralArguments, Option<&'a ToolFacts>)>,
}

impl<'a> RunLiterals<'a> {
    pub(super) fn new(goal: &'a ParsedGoal) -> RunLiterals<'a> {
        RunLiterals { goal, calls: Vec::new() }
    }

    pub(super) fn push(&mut self, literals: LiteralArguments, tool: Option<&'a ToolFacts>) {
        self.calls.push((literals, tool));
    }

    /// Returns the literals of the calls in a range.
    pub(super) fn text(&self, range: Range<usize>) -> String {
        self.calls[range].iter().map(|(literals, _)| literals.lines.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether a run that read nothing depends on something that only it knew.
    pub(super) fn needs_reading(&self) -> bool {
        // What the goal itself says isn't a finding, unless the goal says what to do only in some case.
        let depends = self.goal.depends && (self.goal.branches || !self.are_named(0));
        // A number that nobody named was computed from something.
        let number = |(literals, tool): &(LiteralArguments, Option<&ToolFacts>)| {
            literals.numbers.iter().any(|number| !self.is_named(number, *tool))
        };
        depends || self.calls.iter().any(number)
    }

    /// Returns whether the calls behind the one with this index depend on its result.
    pub(super) fn depend_on_result(&self, at: usize) -> bool {
        let goal = self.goal;
        goal.branches || self.compute_numbers(at) || (goal.depends && (goal.quantifies || !self.are_named(at + 1)))
    }

    fn is_named(&self, line: &str, tool: Option<&ToolFacts>) -> bool {
        self.goal.names_all(line) || tool.is_some_and(|tool| tool.names_all(line))
    }

    /// Returns whether all literals of the calls from an index were known before: the goal, the parameters, or an
    /// earlier call named them.
    fn are_named(&self, from: usize) -> bool {
        let earlier = self.earlier_lines(from);
        let mut later = self.calls[from..]
            .iter()
            .flat_map(|(literals, tool)| literals.lines.lines().map(move |line| (line, *tool)));
        later.all(|(line, tool)| earlier.contains(line) || self.is_named(line, tool))
    }

    /// Returns whether a call behind the one with this index has a number that neither the goal nor an earlier call
    /// named, so that it may be computed from a result.
    fn compute_numbers(&self, at: usize) -> bool {
        let earlier = self.earlier_lines(at + 1);
        let mut later = self.calls[at + 1..].iter().flat_map(|(literals, _)| &literals.numbers);
        later.any(|number| !earlier.contains(number.as_str()) && !self.goal.names_all(number))
    }

    fn earlier_lines(&self, to: usize) -> BTreeSet<&str> {
        self.calls[..to].iter().flat_map(|(literals, _)| literals.lines.lines()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(parameters: &str) -> ToolFacts {
        ToolFacts { schema: String::new(), idempotent: false, parameters: parameters.to_owned() }
    }

    #[test]
    fn parameters_name_what_may_be_chosen() {
        let tool =
            facts(r#"{"door": {"enum": ["left", "rear_left"]}, "speed": {"description": "One of 'low', 1.50."}}"#);
        for line in ["left", "rear left", "1.5", ""] {
            assert!(tool.names_all(line), "{line}");
        }
        for line in ["left2", "2", "right", "15"] {
            assert!(!tool.names_all(line), "{line}");
        }
        assert!(tool.offers("rear_left") && tool.offers("low") && facts("\\\"high\\\"").offers("high"));
        assert!(!tool.offers("rear") && !tool.offers("One") && !tool.offers(""));
    }

    #[test]
    fn what_only_a_result_said_is_a_finding() {
        let depends = |goal: &str, calls: &[&[&str]]| -> Vec<bool> {
            let (goal, tool) = (ParsedGoal::parse(goal), facts(r#"{"mode": {"enum": ["slow"]}}"#));
            let mut run = RunLiterals::new(&goal);
            for call in calls {
                let mut literals = LiteralArguments::default();
                for argument in *call {
                    if argument.parse::<f64>().is_ok() {
                        literals.add_number(argument);
                    } else {
                        literals.add_text(argument);
                    }
                }
                run.push(literals, Some(&tool));
            }
            (0..calls.len()).map(|at| run.depend_on_result(at)).collect()
        };
        let latest = "Show the latest price of tea and note it in a.md";
        assert_eq!(depends(latest, &[&["tea"], &["a.md", "slow"]]), [false, false], "all is named");
        assert_eq!(depends(latest, &[&["tea7"], &["a.md", "tea7"]]), [false, false], "it was known before");
        assert_eq!(depends(latest, &[&["tea"], &["a.md", "cheap"]]), [true, false]);
        assert_eq!(depends("Show all prices of tea in a.md", &[&["tea"], &["a.md"]]), [true, true]);
        assert_eq!(depends("Buy tea if it is cheap", &[&["tea"]]), [true]);
        assert_eq!(depends("Buy tea of a.md", &[&["a.md"], &["tea", "17"]]), [true, false], "17 was computed");
        assert_eq!(depends("Buy 17 tea of a.md", &[&["a.md"], &["tea", "17.0"]]), [false, false]);
    }
}
