//! Which literal arguments of a run were known before its results: those that the goal or a tool's parameters name. The
//! others may be findings, so that a replay needs the same findings.

use super::goal::{ParsedGoal, SlotKind};
use super::slots;
use super::trace::TraceStep;
use super::trace_extraction::{CompletedCall, ToolFacts, collect_slots};
use std::collections::{BTreeMap, BTreeSet};
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

/// The words and numbers that a tool's parameters name.
#[derive(Default)]
struct ParameterNames {
    words: BTreeSet<String>,
    numbers: BTreeSet<String>,
}

impl ParameterNames {
    fn of_tool(tool: &ToolFacts) -> ParameterNames {
        let numbers = tool.parameters.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-'));
        let numbers = numbers.filter_map(|text| slots::canonical_number(text.trim_end_matches('.')));
        ParameterNames { words: words_of(&tool.parameters), numbers: numbers.collect() }
    }

    /// Returns whether the parameters name every word and number of a line, as they do with what may be chosen.
    fn names_all(&self, line: &str) -> bool {
        match slots::canonical_number(line.trim()) {
            Some(number) => self.numbers.contains(&number),
            None => words_of(line).is_subset(&self.words),
        }
    }
}

fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Maximum number of the values that later calls may take from results. With more of them, none is taken.
const MAX_REUSABLE_VALUES: usize = 4_000;

/// Maximum number of a call's lines that are looked for in the goal and the parameters. Further ones count as unnamed.
const MAX_NAMED_LINES: usize = 1_000;

/// The values in results that later calls may take. A value that two places have is taken from neither, unless the
/// second result only repeats what its call was given.
#[derive(Default)]
pub(super) struct ReusableResults {
    count: usize,
    /// The place of each text; `None` if it's unknown which of several is meant.
    places: BTreeMap<String, Option<String>>,
}

impl ReusableResults {
    pub(super) fn add_call(&mut self, call: &CompletedCall) {
        let given = serde_json::to_string(&call.arguments).unwrap_or_default();
        self.add(&call.result, &|text| slots::find_word(&given, text, 0).is_some());
    }

    /// Adds the values of the next result. `is_given`: whether its call was given a value.
    pub(super) fn add(&mut self, result: &str, is_given: &dyn Fn(&str) -> bool) {
        self.count += 1;
        let named = slots::named_results(self.count, result);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        named.iter().for_each(|(name, _)| *counts.entry(name).or_default() += 1);
        if self.places.len() > MAX_REUSABLE_VALUES {
            return;
        }
        let key = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        for (name, text) in named.iter().filter(|(name, _)| counts.get(name.as_str()) == Some(&1)) {
            let Some(known) = self.places.get_mut(text) else {
                self.places.insert(text.clone(), Some(name.clone()));
                continue;
            };
            // A value of JSON over several lines is named by its path and by its line.
            let own = format!("step{}.", self.count);
            let is_same = known.as_ref().is_some_and(|known| known.starts_with(&own) && key(known) == key(name));
            if !is_same && !is_given(text) {
                *known = None;
            }
        }
    }

    /// Returns the places with their texts.
    pub(super) fn values(&self) -> Vec<(String, String)> {
        if self.places.len() > MAX_REUSABLE_VALUES {
            return Vec::new();
        }
        let one = |(text, place): (&String, &Option<String>)| Some((place.clone()?, text.clone()));
        self.places.iter().filter_map(one).collect()
    }
}

impl ToolFacts {
    /// Returns whether the parameters offer this text as a choice. Another choice is another action.
    pub(super) fn offers(&self, text: &str) -> bool {
        let is_quote = |c: char| matches!(c, '"' | '\'' | '\\');
        !text.is_empty()
            && self.parameters.match_indices(text).any(|(at, _)| {
                self.parameters[..at].ends_with(is_quote) && self.parameters[at + text.len()..].starts_with(is_quote)
            })
    }
}

/// Returns the places of values that steps take.
pub(super) fn taken_places(steps: &[TraceStep]) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    steps.iter().flat_map(|step| step.input.values()).for_each(|value| collect_slots(value, &mut places));
    places
}

/// Returns the numbers of the steps, from 1, of which one of these places is a line by its number: the lines must be
/// the same next time, or another one is there.
pub(super) fn taken_from_lines(places: &BTreeSet<String>) -> BTreeSet<usize> {
    let step = |place: &String| {
        let (step, line) = place.strip_prefix("step")?.split_once(".line")?;
        line.parse::<usize>().ok()?;
        step.parse().ok()
    };
    places.iter().filter_map(step).collect()
}

/// Returns the words of a step's result that only label rows whose values later steps take, in lower case: they mean
/// the same next time, as “Total” does.
pub(super) fn labels_of_taken_values((step, result): (usize, &str), places: &BTreeSet<String>) -> BTreeSet<String> {
    let labels = result.lines().filter_map(slots::summary_row).map(|(label, _)| label);
    let taken = labels.filter(|label| places.contains(&format!("step{step}.{label}")));
    let lower = result.to_lowercase();
    taken.map(str::to_lowercase).filter(|label| slots::is_once(&lower, label)).collect()
}

/// The literals of a run's calls, in the order of the calls.
pub(super) struct RunLiterals<'a> {
    goal: &'a ParsedGoal,
    /// Whether the goal has several values of one kind, so that a finding may have chosen among them.
    may_choose: bool,
    calls: Vec<CallLiterals>,
}

/// The literals of a call.
struct CallLiterals {
    literals: LiteralArguments,
    /// The lines that neither the goal nor the tool's parameters name.
    unnamed: BTreeSet<String>,
    /// Whether the tool only reads.
    looks: bool,
}

impl<'a> RunLiterals<'a> {
    pub(super) fn new(goal: &'a ParsedGoal) -> RunLiterals<'a> {
        let kind = |kind: SlotKind| if matches!(kind, SlotKind::Name | SlotKind::Text) { SlotKind::Path } else { kind };
        let kinds: Vec<SlotKind> = goal.values().map(|(of, _)| kind(of)).collect();
        let may_choose = kinds.iter().enumerate().any(|(at, kind)| kinds[..at].contains(kind));
        RunLiterals { goal, may_choose, calls: Vec::new() }
    }

    pub(super) fn push(&mut self, literals: LiteralArguments, tool: Option<&ToolFacts>) {
        let parameters = tool.map(ParameterNames::of_tool).unwrap_or_default();
        let is_unnamed = |(at, line): &(usize, &str)| {
            *at >= MAX_NAMED_LINES || (!parameters.names_all(line) && !self.goal.names_all(line))
        };
        let unnamed = literals.lines.lines().enumerate().filter(is_unnamed).map(|(_, line)| line.to_owned()).collect();
        self.calls.push(CallLiterals { literals, unnamed, looks: tool.is_some_and(|tool| tool.idempotent) });
    }

    /// Returns the literals of the calls in a range.
    pub(super) fn text(&self, range: Range<usize>) -> String {
        self.calls[range].iter().map(|call| call.literals.lines.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether a run that read nothing depends on something that only it knew.
    pub(super) fn needs_reading(&self) -> bool {
        // What the goal itself says isn't a finding, unless the goal says what to do only in some case.
        let depends = self.goal.depends && (self.goal.branches || !self.are_named(0));
        depends || self.chooses(0) || self.has_unnamed_numbers()
    }

    /// Returns whether a number is in a call that nobody named, and that was computed from something.
    pub(super) fn has_unnamed_numbers(&self) -> bool {
        let number = |call: &CallLiterals| call.literals.numbers.iter().any(|number| call.unnamed.contains(number));
        self.calls.iter().any(number)
    }

    /// Returns whether the calls behind the one with this index depend on its result.
    pub(super) fn depend_on_result(&self, at: usize) -> bool {
        let goal = self.goal;
        let depends = goal.depends && (goal.quantifies || !self.are_named(at + 1));
        goal.branches || self.chooses(at + 1) || self.compute_numbers(at) || depends
    }

    /// Returns whether the calls from an index may have chosen among values of the goal, as in "delete the oldest of
    /// a.md and b.md", and change something.
    fn chooses(&self, from: usize) -> bool {
        self.goal.chooses && self.may_choose && self.calls[from..].iter().any(|call| !call.looks)
    }

    /// Returns whether all literals of the calls from an index were known before: the goal, the parameters, or an
    /// earlier call named them.
    fn are_named(&self, from: usize) -> bool {
        let earlier = self.earlier_lines(from);
        self.calls[from..].iter().flat_map(|call| &call.unnamed).all(|line| earlier.contains(line.as_str()))
    }

    /// Returns whether a call behind the one with this index has a number that neither the goal nor an earlier call
    /// named, so that it may be computed from a result.
    fn compute_numbers(&self, at: usize) -> bool {
        let earlier = self.earlier_lines(at + 1);
        let mut later = self.calls[at + 1..].iter().flat_map(|call| &call.literals.numbers);
        later.any(|number| !earlier.contains(number.as_str()) && !self.goal.names_all(number))
    }

    fn earlier_lines(&self, to: usize) -> BTreeSet<&str> {
        self.calls[..to].iter().flat_map(|call| call.literals.lines.lines()).collect()
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
            assert!(ParameterNames::of_tool(&tool).names_all(line), "{line}");
        }
        for line in ["left2", "2", "right", "15"] {
            assert!(!ParameterNames::of_tool(&tool).names_all(line), "{line}");
        }
        assert!(tool.offers("rear_left") && tool.offers("low") && facts("\\\"high\\\"").offers("high"));
        assert!(!tool.offers("rear") && !tool.offers("One") && !tool.offers(""));
    }

    #[test]
    fn a_value_at_two_places_is_taken_from_neither() {
        let mut results = ReusableResults::default();
        let call = |arguments: serde_json::Value, result: &str| CompletedCall {
            tool: "get".to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            result: result.to_owned(),
            success: Some(true),
            created: false,
            looks: true,
            known: true,
        };
        let place = |results: &ReusableResults, text: &str| {
            results.values().into_iter().find(|(_, known)| known == text).map(|(place, _)| place)
        };
        results.add_call(&call(serde_json::json!({}), r#"{"id": 12446, "owner": "o-1"}"#));
        results.add_call(&call(serde_json::json!({"order": 12446}), r#"{"order": 12446}"#));
        assert_eq!(place(&results, "12446").as_deref(), Some("step1.id"), "the second was asked for it");
        results.add_call(&call(serde_json::json!({}), r#"{"winner": "o-1"}"#));
        assert_eq!(place(&results, "o-1"), None, "the winner may be someone else than the owner");
        results.add_call(&call(serde_json::json!({}), "{\n  \"a\": {\n    \"total\": 1234\n  }\n}"));
        assert_eq!(place(&results, "1234").as_deref(), Some("step4.total"));
        // Many results are bounded.
        let many: Vec<String> = (0..30).map(|at| format!("key{at}: value{at}")).collect();
        (0..400).for_each(|at| results.add(&many.join(format!(" of {at}\n").as_str()), &|_| false));
        assert!(results.values().is_empty());
    }

    #[test]
    fn a_label_is_no_finding_if_its_value_is_taken() {
        let places = BTreeSet::from(["step1.Total".to_owned(), "step1.north".to_owned()]);
        let is_label = |word: &str, result: &str| labels_of_taken_values((1, result), &places).contains(word);
        assert!(is_label("total", "shop,sold\nnorth,10\nTotal,517") && is_label("total", "Total: 517"));
        assert!(!is_label("north", "north,10\nTotal,517"), "another shop may be the best");
        assert!(!is_label("total", "loss,Total\nTotal,517"), "it's a value, too");
        assert!(!is_label("total", "total,517"), "its value is taken from nowhere");
        assert!(labels_of_taken_values((2, "Total,517"), &places).is_empty());
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
        let oldest = "Delete the oldest of a.md and b.md";
        assert_eq!(depends(oldest, &[&["a.md"], &["b.md"], &["a.md"]]), [true, true, false], "b.md may be the oldest");
        assert_eq!(depends("Delete the oldest of a.md", &[&["a.md"], &["a.md"]]), [false, false]);
        assert_eq!(depends("Show all prices of tea in a.md", &[&["tea"], &["a.md"]]), [true, true]);
        assert_eq!(depends("Buy tea if it is cheap", &[&["tea"]]), [true]);
        assert_eq!(depends("Buy tea of a.md", &[&["a.md"], &["tea", "17"]]), [true, false], "17 was computed");
        assert_eq!(depends("Buy 17 tea of a.md", &[&["a.md"], &["tea", "17.0"]]), [false, false]);
    }
}
