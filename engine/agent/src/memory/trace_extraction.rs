//! Learns a trace from a successful run. A run that can't be repeated by rule isn't learned, and the reason is given:
//! a missing trace costs money, a wrong one costs trust.

use super::goal::{ParsedGoal, SlotKind};
use super::result_check::ResultCheck;
use super::slots::{self, SlotValues, TemplatePart};
use super::trace::{MAX_TRACE_SLOTS, RunTrace, TraceMetadata, TraceSlot, TraceStep, iso_timestamp};
use super::trace_compression::without_redundant_calls;
use super::trace_findings::{
    LiteralArguments, ReusableResults, RunLiterals, labels_of_taken_values, taken_from_lines, taken_places,
};
use crate::secrets;
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use store::{ChangeKind, ExecutionStep, RunAbout, RunApproval, StepKind};

/// Tools whose calls have no lasting effect and no relevant result for the run: what a server asks comes again with its
/// tool.
const IGNORED_TOOLS: [BuiltInTool; 3] = [BuiltInTool::TodoWrite, BuiltInTool::McpSampling, BuiltInTool::McpForm];
/// Tools that need a person or another agent, who may be absent during a replay.
const INTERACTIVE_TOOLS: [BuiltInTool; 3] = [BuiltInTool::AskUser, BuiltInTool::CreateTool, BuiltInTool::MessageAgent];

/// Properties of a tool that decide whether and how a call is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Hash of the tool's schema.
    pub schema: String,
    /// Whether calling the tool twice has the same effect as once.
    pub idempotent: bool,
    /// The parameters as text. What they name, such as a choice, no run has to find.
    pub parameters: String,
}

/// A finished run with its context.
#[derive(Clone, Copy, Debug)]
pub struct CompletedRun<'a> {
    /// Metadata of the run.
    pub about: &'a RunAbout,
    /// The steps of the run.
    pub steps: &'a [ExecutionStep],
    /// The user's decisions in the run.
    pub approvals: &'a [RunApproval],
    /// Changes that the run made to files.
    pub changes: &'a [store::RunChange],
    /// The available tools, by name.
    pub tools: &'a BTreeMap<String, ToolFacts>,
    /// Path of the note that was open when the user asked.
    pub note: Option<&'a str>,
    /// Paths named in the run that exist now.
    pub there: &'a BTreeSet<String>,
    /// Id of the run, as text.
    pub run: &'a str,
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedCall {
    /// Name of the called tool.
    pub tool: String,
    /// The arguments, including changes that the user made on approval.
    pub arguments: Map<String, Value>,
    /// The result as text, or the error.
    pub result: String,
    /// Whether the call succeeded; `None` if it has no result.
    pub success: Option<bool>,
    /// Whether the call created a file.
    pub created: bool,
    /// Whether the tool only reads.
    pub looks: bool,
    /// Whether the tool exists.
    pub known: bool,
}

impl CompletedCall {
    /// Returns whether a failure of this call can't have had an effect.
    pub fn is_harmless(&self) -> bool {
        self.looks || !self.known
    }
}

/// Returns the calls of a run in order, without those of `IGNORED_TOOLS`.
pub fn completed_calls(
    steps: &[ExecutionStep],
    approvals: &[RunApproval],
    changes: &[store::RunChange],
) -> Vec<CompletedCall> {
    let mut found = Vec::new();
    for step in steps {
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { continue };
        if IGNORED_TOOLS.iter().any(|tool| tool.is_named(tool_name)) {
            continue;
        }
        // If the user was asked about a call several times, the last decision counts.
        let decided = approvals.iter().rev().find(|approval| approval.call_id() == tool_call_id);
        let changed = decided.and_then(|approval| approval.decision.as_ref()?.arguments.clone());
        let of = |other: &&ExecutionStep| match &other.kind {
            StepKind::ToolResult { tool_call_id: id, .. } => id == tool_call_id,
            StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => false,
        };
        let (mut result, mut success) = (String::new(), None);
        if let Some(StepKind::ToolResult { success: good, result: said, error, .. }) =
            steps.iter().find(of).map(|step| &step.kind)
        {
            success = Some(*good);
            result = match said {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => error.clone().unwrap_or_default(),
            };
        }
        let made = |change: &store::RunChange| {
            let new = matches!(change.what, ChangeKind::Created { .. } | ChangeKind::Bytes { before: None, .. });
            new && change.step == step.id
        };
        found.push(CompletedCall {
            tool: tool_name.clone(),
            arguments: changed.unwrap_or_else(|| params.clone()),
            result,
            success,
            created: changes.iter().any(made),
            looks: false,
            known: true,
        });
    }
    found
}

/// Adds facts about tools to the calls.
pub fn with_tool_facts(calls: Vec<CompletedCall>, tools: &BTreeMap<String, ToolFacts>) -> Vec<CompletedCall> {
    let with = |call: CompletedCall| {
        let facts = tools.get(&call.tool);
        CompletedCall { looks: facts.is_some_and(|facts| facts.idempotent), known: facts.is_some(), ..call }
    };
    calls.into_iter().map(with).collect()
}

/// Returns the final answer of a run.
pub fn final_answer(steps: &[ExecutionStep]) -> Option<&str> {
    steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::FinalAnswer { content } => Some(content.as_str()),
        StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::Error { .. } => None,
    })
}

/// A value of the goal with the ways in which it can be written.
struct SlotCandidate {
    slot: TraceSlot,
    written: Vec<(String, String)>,
}

/// Why a run can't be repeated by rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceLearnError {
    /// The run failed, was stopped, or isn't finished.
    #[error("the run did not end with an answer")]
    NoAnswer,
    /// The goal can't be compared with others.
    #[error("its goal is empty, or too long to be known again")]
    UnusableGoal,
    /// The run used one of `INTERACTIVE_TOOLS`, or a browser.
    #[error("it used {tool}, whose outcome is another each time")]
    InteractiveTool {
        /// Name of the tool.
        tool: String,
    },
    /// A call failed that may have changed something.
    #[error("a call to {tool} failed, and may have changed something first")]
    FailedCall {
        /// Name of the tool.
        tool: String,
    },
    /// A tool no longer exists.
    #[error("the tool {tool} no longer exists")]
    MissingTool {
        /// Name of the tool.
        tool: String,
    },
    /// The run called no tools.
    #[error("it used no tools, so there is nothing to do again")]
    NoCalls,
    /// The goal or the arguments contain a secret.
    #[error("it was given a secret, which is kept nowhere")]
    HoldsSecret,
    /// The goal depends on findings, but the run read nothing.
    #[error("the goal depends on what it finds, but the run read nothing")]
    ReadNothing,
}

/// Learns a trace from a run.
///
/// # Errors
/// Returns the reason if the run can't be repeated by rule.
pub fn learn_trace(lived: &CompletedRun<'_>) -> Result<RunTrace, TraceLearnError> {
    learn_with(lived, false)
}

/// Learns a trace in which the numbers of the goal may differ next time, unless it `keeps_numbers`.
fn learn_with(lived: &CompletedRun<'_>, keeps_numbers: bool) -> Result<RunTrace, TraceLearnError> {
    let about = lived.about;
    if about.ending != Some(store::RunEnding::Done) {
        return Err(TraceLearnError::NoAnswer);
    }
    let goal = ParsedGoal::parse(&about.prompt);
    if goal.tokens.is_empty() || about.prompt.len() > super::goal::MAX_GOAL_BYTES {
        return Err(TraceLearnError::UnusableGoal);
    }
    let calls = repeatable_calls(lived)?;
    let facts = |tool: &str| lived.tools.get(tool);
    let looked = calls.iter().any(|call| facts(&call.tool).is_some_and(|facts| facts.idempotent));
    let candidates = slot_candidates(&goal, lived.note);
    if candidates.len() > MAX_TRACE_SLOTS {
        return Err(TraceLearnError::UnusableGoal);
    }
    let mut offered = offered_values(&candidates, &calls, lived.tools);
    let of_numbers = candidates.iter().map(|candidate| &candidate.slot).filter(|slot| slot.kind == SlotKind::Number);
    offered.extend(of_numbers.filter(|_| keeps_numbers).map(|slot| slot.name.clone()));
    let pinned = pinned_values(&candidates, &calls, offered);
    let known: Vec<(String, String)> = candidates
        .iter()
        .filter(|candidate| !pinned.contains(&candidate.slot.name))
        .flat_map(|candidate| candidate.written.iter().cloned())
        .collect();
    let numbers = number_slots(candidates.iter().filter(|candidate| !pinned.contains(&candidate.slot.name)));
    let mut steps: Vec<TraceStep> = Vec::new();
    let mut literals = RunLiterals::new(&goal);
    let mut made: BTreeSet<String> = BTreeSet::new();
    let mut reusable = ReusableResults::default();
    for call in &calls {
        let mut results = reusable.values();
        reusable.add_call(call);
        // What the goal names, and what can be chosen, isn't taken from a result.
        results.retain(|(_, text)| {
            let offered = facts(&call.tool).is_some_and(|facts| facts.offers(text));
            !offered && slots::find_word(&about.prompt, text, 0).is_none()
        });
        let mut lifting = SlotExtractor::new(&known, &numbers, results);
        let input =
            call.arguments.iter().map(|(key, value)| (key.clone(), lifting.extract_from_value(value, 0))).collect();
        literals.push(lifting.rest, facts(&call.tool));
        let Some(facts) = facts(&call.tool) else { continue };
        let mut step =
            TraceStep { tool: call.tool.clone(), schema: facts.schema.clone(), input, ..TraceStep::default() };
        if let Some(path) = call.arguments.get("path").and_then(Value::as_str) {
            add_path_conditions(&mut step, call, path, lived.there.contains(path), &mut made);
        }
        steps.push(step);
    }
    if !looked && literals.needs_reading() {
        return Err(TraceLearnError::ReadNothing);
    }
    // Such a number may be computed from one of the goal's.
    if !numbers.is_empty() && literals.has_unnamed_numbers() {
        return learn_with(lived, true);
    }
    let mut lifting = SlotExtractor::new(&known, &numbers, reusable.values());
    let answer = final_answer(lived.steps).map(|text| lifting.extract_from_text(text));
    let of_answer = lifting.rest.lines;
    let goal_words = distinctive_words(&about.prompt);
    let free = candidates.iter().map(|candidate| &candidate.slot).filter(|slot| !pinned.contains(&slot.name));
    let values: SlotValues = free.map(|slot| (slot.name.clone(), (slot.kind, slot.value.clone()))).collect();
    let places = taken_places(&steps);
    let listed = taken_from_lines(&places);
    for (at, (call, step)) in calls.iter().zip(&mut steps).enumerate() {
        let later = literals.text(at + 1..calls.len());
        let own = literals.text(0..at + 1);
        let shape = super::result_check::result_shape(&call.result);
        let mut telling = new_information(&call.result, &[&shape, &own], &goal_words);
        let labels = labels_of_taken_values((at + 1, call.result.as_str()), &places);
        telling.retain(|word| !labels.contains(word));
        let used = distinctive_words(&later).iter().any(|word| telling.contains(word));
        let same = used || listed.contains(&(at + 1)) || literals.depend_on_result(at);
        step.expect = ResultCheck::from_result(&call.result, same, &values);
        let looks = facts(&call.tool).is_some_and(|facts| facts.idempotent);
        step.expect.is_last = looks && at + 1 == calls.len();
        // The text result of a tool that changes something is only for people.
        if !looks && !listed.contains(&(at + 1)) && step.expect.shape == "text" {
            step.expect = ResultCheck::default();
        }
    }
    // An answer that contains findings would repeat them next time.
    let mut found = BTreeSet::new();
    for call in &calls {
        found.extend(new_information(&call.result, &[], &goal_words));
    }
    let stale = distinctive_words(&of_answer).iter().any(|word| found.contains(word))
        || of_answer.chars().any(|c| c.is_ascii_digit())
        || candidates.iter().any(|candidate| {
            let kept = pinned.contains(&candidate.slot.name);
            !kept && contains_remnant(&candidate.slot, &of_answer)
        });
    let slots: Vec<TraceSlot> =
        candidates.into_iter().map(|candidate| candidate.slot).filter(|slot| !pinned.contains(&slot.name)).collect();
    let mut trace = RunTrace {
        known: learned_metadata(lived),
        slots,
        steps,
        answer: answer.filter(|_| !stale),
        ..RunTrace::default()
    };
    trace.known.goal_signature = trace.goal_signature();
    Ok(trace)
}

/// Returns the calls of a run that a trace repeats.
fn repeatable_calls(lived: &CompletedRun<'_>) -> Result<Vec<CompletedCall>, TraceLearnError> {
    let calls = completed_calls(lived.steps, lived.approvals, lived.changes);
    let facts = |tool: &str| lived.tools.get(tool);
    // A page may be another one by then, and names of its elements hold for one document only.
    let is_interactive = |tool: BuiltInTool| INTERACTIVE_TOOLS.contains(&tool) || tool.is_for_browser();
    let interacts = |call: &&CompletedCall| BuiltInTool::from_name(&call.tool).is_some_and(is_interactive);
    if let Some(call) = calls.iter().find(interacts) {
        return Err(TraceLearnError::InteractiveTool { tool: call.tool.clone() });
    }
    let calls = without_redundant_calls(calls, lived.tools);
    if let Some(call) = calls.iter().find(|call| call.success != Some(true)) {
        return Err(TraceLearnError::FailedCall { tool: call.tool.clone() });
    }
    if let Some(call) = calls.iter().find(|call| facts(&call.tool).is_none()) {
        return Err(TraceLearnError::MissingTool { tool: call.tool.clone() });
    }
    if calls.is_empty() {
        return Err(TraceLearnError::NoCalls);
    }
    let given = |call: &CompletedCall| serde_json::to_string(&call.arguments).unwrap_or_default();
    let secret =
        |text: &str| secrets::contains_mask(text) || matches!(secrets::mask_known_secrets(text), Cow::Owned(_));
    if secret(&lived.about.prompt) || calls.iter().any(|call| secret(&given(call))) {
        return Err(TraceLearnError::HoldsSecret);
    }
    Ok(calls)
}

/// Adds what a step expects of the file with this path, and what it leaves. `there`: whether the file is there after
/// the run; `made`: the files that earlier steps create.
fn add_path_conditions(
    step: &mut TraceStep,
    call: &CompletedCall,
    path: &str,
    there: bool,
    made: &mut BTreeSet<String>,
) {
    let place = match step.input.get("path") {
        Some(Value::String(place)) => place.clone(),
        _ => path.to_owned(),
    };
    match (call.created, BuiltInTool::from_name(&call.tool)) {
        (true, _) => {
            step.free.push(place.clone());
            if there {
                step.leaves.push(place);
            }
            made.insert(path.to_owned());
        }
        (false, Some(BuiltInTool::DeleteFile)) if !there => {
            step.needs.push(place.clone());
            step.removes.push(place);
        }
        (false, _) if there || made.contains(path) => step.needs.push(place),
        (false, _) => {}
    }
}

/// Returns what a trace keeps of the run that it was learned from.
fn learned_metadata(lived: &CompletedRun<'_>) -> TraceMetadata {
    let about = lived.about;
    let spent = about.spent;
    let secs = about.ended.unwrap_or(about.start_time).saturating_sub(about.start_time).max(0) as f64 / 1_000.0;
    let slow: u64 = lived.steps.iter().filter(|step| step.spent.is_none()).filter_map(|step| step.duration).sum();
    TraceMetadata {
        kind: "trace".to_owned(),
        goal_text: about.prompt.trim().to_owned(),
        created_at: iso_timestamp(about.ended.unwrap_or(about.start_time)),
        estimated_time_secs: slow as f64 / 1_000.0,
        learned_tokens: spent.input_tokens.saturating_add(spent.output_tokens),
        learned_usd: spent.cost.unwrap_or(0.0),
        is_cost_unknown: spent.cost.is_none(),
        learned_secs: secs,
        agent: about.agent.clone(),
        learned_from: lived.run.to_owned(),
        ..TraceMetadata::default()
    }
}

fn slot_candidates(goal: &ParsedGoal, note: Option<&str>) -> Vec<SlotCandidate> {
    let mut found: Vec<SlotCandidate> = Vec::new();
    let mut counts: BTreeMap<SlotKind, usize> = BTreeMap::new();
    let mut add = |name: String, kind: SlotKind, value: &str| {
        let written = slots::written_forms(&name, kind, value);
        let slot = TraceSlot { name, kind, value: value.to_owned() };
        found.push(SlotCandidate { slot, written });
    };
    let mut seen: Vec<(SlotKind, &str)> = Vec::new();
    for (kind, value) in goal.values() {
        if !seen.contains(&(kind, value)) {
            seen.push((kind, value));
            let count = counts.entry(kind).or_default();
            *count += 1;
            add(format!("{}{count}", kind.as_str()), kind, value);
        }
    }
    if let Some(note) = note.filter(|note| seen.iter().all(|(_, value)| value != note)) {
        add("note".to_owned(), SlotKind::Path, note);
    }
    found
}

/// Returns the slots whose value is a whole argument that its tool offers as a choice, in any form: another choice
/// would be another action.
fn offered_values(
    candidates: &[SlotCandidate],
    calls: &[CompletedCall],
    tools: &BTreeMap<String, ToolFacts>,
) -> BTreeSet<String> {
    let mut chosen: BTreeSet<&str> = BTreeSet::new();
    for call in calls {
        if let Some(facts) = tools.get(&call.tool) {
            let texts = call.arguments.values().flat_map(|value| match value {
                Value::Array(items) => items.iter().collect(),
                other => vec![other],
            });
            chosen.extend(texts.filter_map(Value::as_str).filter(|text| facts.offers(text)));
        }
    }
    let is_chosen = |slot: &TraceSlot| {
        slots::value_renderings(slot.kind, &slot.value).iter().any(|(_, text)| chosen.contains(text.as_str()))
    };
    let slots = candidates.iter().map(|candidate| &candidate.slot);
    slots.filter(|slot| is_chosen(slot)).map(|slot| slot.name.clone()).collect()
}

/// Returns the slots of numbers with their values as they're written in the goal, by the numbers.
fn number_slots<'a>(candidates: impl Iterator<Item = &'a SlotCandidate>) -> BTreeMap<String, (&'a str, &'a str)> {
    let numbers = candidates.map(|candidate| &candidate.slot).filter(|slot| slot.kind == SlotKind::Number);
    let one =
        |slot: &'a TraceSlot| Some((slots::canonical_number(&slot.value)?, (slot.name.as_str(), slot.value.as_str())));
    numbers.filter_map(one).collect()
}

/// Returns the slots whose values must stay the same in a replay: those that no step uses, those with equal values,
/// those with remnants in an unknown form, and those in `pinned`.
fn pinned_values(
    candidates: &[SlotCandidate],
    calls: &[CompletedCall],
    mut pinned: BTreeSet<String>,
) -> BTreeSet<String> {
    // Two equal texts can't be told apart. Different values that can be written alike must be alike again in a replay
    // (`RunTrace::match_goal`).
    for (at, one) in candidates.iter().enumerate() {
        for other in &candidates[at + 1..] {
            let number =
                |slot: &TraceSlot| slots::canonical_number(&slot.value).filter(|_| slot.kind == SlotKind::Number);
            let same_number = number(&one.slot).is_some() && number(&one.slot) == number(&other.slot);
            if one.slot.value == other.slot.value || same_number {
                pinned.extend([one.slot.name.clone(), other.slot.name.clone()]);
            }
        }
    }
    loop {
        let free = || candidates.iter().filter(|candidate| !pinned.contains(&candidate.slot.name));
        let known: Vec<(String, String)> = free().flat_map(|candidate| candidate.written.iter().cloned()).collect();
        let numbers = number_slots(free());
        let mut used: BTreeSet<String> = BTreeSet::new();
        let mut rest = String::new();
        for call in calls {
            let mut lifting = SlotExtractor::new(&known, &numbers, Vec::new());
            for value in call.arguments.values() {
                collect_slots(&lifting.extract_from_value(value, 0), &mut used);
            }
            rest.push_str(&lifting.rest.lines);
            rest.push('\n');
        }
        let again: Vec<String> = free()
            .filter(|candidate| {
                let SlotCandidate { slot, .. } = candidate;
                let is_left = || slots::contains_date_number(slot.kind, &slot.value, &rest);
                !used.contains(&slot.name) || contains_remnant(slot, &rest) || is_left()
            })
            .map(|candidate| candidate.slot.name.clone())
            .collect();
        if again.is_empty() {
            return pinned;
        }
        pinned.extend(again);
    }
}

/// Returns whether a part of a slot's value remains in a text.
pub(super) fn contains_remnant(slot: &TraceSlot, text: &str) -> bool {
    slots::value_remnants(slot.kind, &slot.value).iter().any(|remnant| slots::contains_word(text, remnant))
}

pub(super) fn collect_slots(value: &Value, into: &mut BTreeSet<String>) {
    if let Some(slot) = slots::number_slot(value) {
        into.insert(slot.to_owned());
        return;
    }
    match value {
        Value::String(text) => {
            for part in slots::parse_template(text).unwrap_or_default() {
                if let TemplatePart::Place(place) = part {
                    into.insert(place.split(':').next().unwrap_or(&place).to_owned());
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_slots(item, into)),
        Value::Object(map) => map.values().for_each(|item| collect_slots(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces values in arguments by slots, and collects the remaining literals.
struct SlotExtractor<'a> {
    known: &'a [(String, String)],
    numbers: &'a BTreeMap<String, (&'a str, &'a str)>,
    results: Vec<(String, String)>,
    /// The results that may be a part of a text.
    parts: Vec<(String, String)>,
    rest: LiteralArguments,
}

impl<'a> SlotExtractor<'a> {
    fn new(
        known: &'a [(String, String)],
        numbers: &'a BTreeMap<String, (&'a str, &'a str)>,
        results: Vec<(String, String)>,
    ) -> SlotExtractor<'a> {
        let parts = results.iter().filter(|(_, text)| !slots::is_code_word(text)).cloned().collect();
        SlotExtractor { known, numbers, results, parts, rest: LiteralArguments::default() }
    }

    fn extract_from_text(&mut self, text: &str) -> String {
        if let Some((slot, _)) = self.numbers.get(text).filter(|(_, value)| *value == text) {
            return format!("{{{slot}}}");
        }
        let parts = slots::extract_values(vec![TemplatePart::Literal(text.to_owned())], self.known);
        let is_whole = matches!(parts.as_slice(), [TemplatePart::Literal(_)]);
        if let Some((place, _)) = self.results.iter().find(|(_, result)| is_whole && result == text) {
            return format!("{{{place}}}");
        }
        let parts = slots::extract_values(parts, &self.parts);
        for part in &parts {
            if let TemplatePart::Literal(literal) = part {
                self.rest.add_text(literal);
            }
        }
        slots::render_template(&parts)
    }

    fn extract_from_value(&mut self, value: &Value, deep: usize) -> Value {
        match value {
            Value::String(text) => Value::String(self.extract_from_text(text)),
            Value::Number(number) => {
                let text = number.to_string();
                if let Some((slot, _)) = slots::canonical_number(&text).and_then(|text| self.numbers.get(&text)) {
                    return slots::number_slot_object(&slots::number_place(slot, number));
                }
                // A number of few digits may be there by chance.
                let from = self.results.iter().find(|(_, result)| *result == text && slots::is_identifier(&text));
                if let Some((place, _)) = from {
                    return slots::number_slot_object(place);
                }
                self.rest.add_number(&text);
                value.clone()
            }
            Value::Array(items) if deep < 32 => {
                Value::Array(items.iter().map(|item| self.extract_from_value(item, deep + 1)).collect())
            }
            Value::Object(map) if deep < 32 => Value::Object(
                map.iter().map(|(key, item)| (key.clone(), self.extract_from_value(item, deep + 1))).collect(),
            ),
            other => other.clone(),
        }
    }
}

/// Returns the words by which a text can be recognized: those with five or more bytes, or with digits.
pub(super) fn distinctive_words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let telling = |word: &&str| word.len() >= 5 || (word.len() >= 2 && word.chars().any(|c| c.is_ascii_digit()));
    words.filter(telling).map(str::to_lowercase).collect()
}

/// Returns distinctive words of a result that are neither in the goal nor in the texts in `beside`.
fn new_information(result: &str, beside: &[&str], goal: &BTreeSet<String>) -> BTreeSet<String> {
    let mut words = distinctive_words(result);
    words.retain(|word| !goal.contains(word));
    for text in beside {
        let known = distinctive_words(text);
        words.retain(|word| !known.contains(word));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use store::{AgentState, CallUsage, DocId, MessageId, RunEnding, StepId};

    fn about(prompt: &str) -> RunAbout {
        RunAbout {
            session: DocId([1; 16]),
            asked: MessageId(1),
            head: MessageId(1),
            volume: DocId([2; 16]),
            note: None,
            prompt: prompt.to_owned(),
            agent: "assistant".to_owned(),
            start_time: 0,
            ended: Some(60_000),
            ending: Some(RunEnding::Done),
            iteration: 3,
            limit: 20,
            agent_state: AgentState::Idle,
            spent: CallUsage { input_tokens: 900, output_tokens: 100, cost: Some(0.5) },
            budget: None,
            origin: store::RunOrigin::User,
            phase: 0,
            imported: None,
            provider: None,
            deadline: None,
            is_follower: false,
        }
    }

    /// Returns the steps of a run with these calls (tool, arguments, result).
    fn steps(calls: &[(&str, Value, &str)], answer: &str) -> Vec<ExecutionStep> {
        let mut all = Vec::new();
        let mut add = |kind| {
            let id = StepId(all.len() as u64);
            all.push(ExecutionStep {
                id,
                timestamp: 0,
                duration: None,
                parents: vec![],
                kind,
                spent: None,
                route: None,
                tool: None,
            });
        };
        for (at, (tool, arguments, result)) in calls.iter().enumerate() {
            let (id, tool_name) = (format!("c{at}"), (*tool).to_owned());
            let params = arguments.as_object().cloned().expect("an object");
            add(StepKind::ToolCall { tool_call_id: id.clone(), tool_name, params });
            let result = Some(Value::String((*result).to_owned()));
            let (tool_call_id, attached, files) = (id, Vec::new(), Vec::new());
            add(StepKind::ToolResult {
                tool_call_id,
                success: true,
                result,
                error: None,
                whole: None,
                attached,
                files,
            });
        }
        add(StepKind::FinalAnswer { content: answer.to_owned() });
        all
    }

    fn learned(prompt: &str, calls: &[(&str, Value, &str)], answer: &str) -> Result<RunTrace, TraceLearnError> {
        let tool = |idempotent| ToolFacts { schema: "x".to_owned(), idempotent, parameters: String::new() };
        let named = |name: &str, idempotent| (name.to_owned(), tool(idempotent));
        let tools = BTreeMap::from([
            named("read_file", true),
            named("run_python", false),
            named("write_file", false),
            named("ask_user", true),
        ]);
        let (about, steps) = (about(prompt), steps(calls, answer));
        let there = BTreeSet::from(["data/2026-10.csv".to_owned()]);
        let lived = CompletedRun {
            about: &about,
            steps: &steps,
            approvals: &[],
            changes: &[],
            tools: &tools,
            note: None,
            there: &there,
            run: "r",
        };
        learn_trace(&lived)
    }

    const REPORT: &str = "Write the report for October 2026 into reports/2026-10.md";

    fn report() -> Vec<(&'static str, Value, &'static str)> {
        vec![
            ("read_file", json!({"path": "data/2026-10.csv"}), "day,sold\n1,517\n2,623\n"),
            ("run_python", json!({"code": "sum('data/2026-10.csv', column='sold')"}), "total: 1140"),
            (
                "write_file",
                json!({"path": "reports/2026-10.md", "content": "# October 2026\n\nSold: 1140\n"}),
                "Changed",
            ),
        ]
    }

    #[test]
    fn a_report_is_learned_and_done_for_another_month() {
        let trace = learned(REPORT, &report(), "The report for October 2026 is written.").expect("learned");
        assert_eq!(trace.slots.len(), 2, "{:?}", trace.slots);
        let values = trace
            .match_goal(&ParsedGoal::parse("Write a report for 2026-11 into reports/2026-11.md"), None)
            .expect("it fits");
        let results = ["day,sold\n1,5".to_owned(), "total: 77".to_owned()];
        let calls: Vec<_> =
            trace.predicted_calls(&values, &results).into_iter().map(|call| call.expect("filled").1).collect();
        assert_eq!(calls[0]["path"], "data/2026-11.csv");
        assert_eq!(calls[2]["path"], "reports/2026-11.md");
        assert_eq!(calls[2]["content"], "# November 2026\n\nSold: 77\n");
        assert_eq!(trace.steps[0].needs, ["data/{month1}.csv"]);
        assert_eq!(trace.steps[0].expect.shape, "table day,sold");
        assert_eq!(trace.steps[0].expect.same, "", "only the columns count");
        let said = slots::fill_template(trace.answer.as_deref().expect("an answer"), &values, &results);
        assert_eq!(said, Ok("The report for November 2026 is written.".to_owned()));
    }

    #[test]
    fn detours_of_the_run_are_not_repeated() {
        let mut calls = report();
        calls.insert(1, calls[0].clone());
        let draft = json!({"path": "reports/2026-10.md", "content": "# A draft\n"});
        calls.insert(3, ("write_file", draft, "Changed"));
        let trace = learned(REPORT, &calls, "The report for October 2026 is written.").expect("learned");
        assert_eq!(trace, learned(REPORT, &report(), "The report for October 2026 is written.").expect("learned"));
    }

    #[test]
    fn what_was_read_off_a_result_binds_the_result() {
        let mut calls = report();
        calls[2].1 =
            json!({"path": "reports/2026-10.md", "content": "About 1100 were sold, most of it on day 2: 623."});
        let trace = learned(REPORT, &calls, "Done: 1140 sold.").expect("learned");
        assert_ne!(trace.steps[0].expect.same, "", "623 comes from there and cannot be found by rule");
        assert_eq!(trace.answer.as_deref(), Some("Done: {step2.total} sold."));
        let trace = learned(REPORT, &calls, "Done: day 2 was best.").expect("learned");
        assert_eq!(trace.answer, None, "the answer tells what was found");
    }

    #[test]
    fn values_that_no_step_shows_are_kept_as_they_are() {
        let calls = [("write_file", json!({"path": "reports/2026-10.md", "content": "Sold in 10/2026."}), "Changed")];
        let trace = learned(REPORT, &calls, "Done.").expect("learned");
        let names: Vec<&str> = trace.slots.iter().map(|slot| slot.name.as_str()).collect();
        assert_eq!(names, ["path1"], "the month is left in a form that is not known");
        let two = "Copy the first 2 lines of a.md to b.md";
        let calls = [("write_file", json!({"path": "b.md", "content": "1 2 3"}), "Changed")];
        assert!(learned(two, &calls, "Done.").is_err_and(|why| why.to_string().contains("the run read nothing")));
    }

    #[test]
    fn a_goal_that_names_all_it_needs_is_learned_without_a_reading() {
        let write = |path: &str, text: &str| [("write_file", json!({"path": path, "content": text}), "Changed")];
        let all = "Write both of 'tea' and 'rice' into lists/all.md";
        let trace = learned(all, &write("lists/all.md", "tea and rice"), "Done.").expect("all of it is in the goal");
        let other = ParsedGoal::parse("Write both of 'oil' and 'salt' into lists/all.md");
        let calls = trace.predicted_calls(&trace.match_goal(&other, None).expect("it fits"), &[]);
        assert_eq!(calls[0].as_ref().expect("filled").1["content"], "oil and salt");
        for (goal, text) in [(all, "tea and bread"), ("Write 'tea' into lists/all.md if it is missing", "tea")] {
            let why = learned(goal, &write("lists/all.md", text), "Done.").expect_err("it was found somewhere");
            assert_eq!(why, TraceLearnError::ReadNothing);
        }
    }

    #[test]
    fn a_reading_may_say_the_same_about_another_value() {
        let calls = [
            ("read_file", json!({"path": "people/Ada.md"}), "Ada still has 14 days"),
            ("write_file", json!({"path": "rest.md", "content": "Rest of Ada is 14 days"}), "Changed"),
        ];
        let trace = learned("Note how many days 'Ada' has left in rest.md", &calls, "Done.").expect("learned");
        let goal = ParsedGoal::parse("Note how many days 'Bob' has left in rest.md");
        let values = trace.match_goal(&goal, None).expect("it fits");
        let check = |text: &str| trace.steps[0].expect.check(text, &values);
        assert!(check("Bob still has 14 days").is_ok() && check("Bob still has 15 days").is_err(), "{:?}", trace.steps);
    }

    #[test]
    fn what_cannot_be_done_again_is_not_learned() {
        let asks = [("ask_user", json!({"question": "Which?"}), "this one")];
        assert!(learned("Write a.md", &asks, "Done.").is_err_and(|why| why.to_string().contains("ask_user")));
        let opens = [("browser_open", json!({"url": "http://a.example/"}), "Page")];
        assert!(learned("Open it", &opens, "Done.").is_err_and(|why| why.to_string().contains("browser_open")));
        assert!(learned("Write a.md", &[], "Done.").is_err_and(|why| why.to_string().contains("no tools")));
        assert!(learned("Write a.md", &[("gone", json!({}), "")], "Done.").is_err());
    }
}
