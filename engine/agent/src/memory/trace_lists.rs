//! Lists: a trace that does the same with each value of a list, in steps of their own or in a list of an argument, does
//! it for a list of another length, too.

use super::goal::{GoalToken, ParsedGoal, SlotKind};
use super::slots::{self, SlotValues, TemplatePart};
use super::trace::{GoalMismatch, MAX_TRACE_STEPS, RunTrace, TraceSlot, TraceStep};
use super::trace_wording::value_text;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of values in a list.
const MAX_LIST_VALUES: usize = 50;
/// Words for how many values a list has, or for the share of each.
const COUNT_WORDS: [&str; 19] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "both", "pair",
    "couple", "half", "third", "quarter", "twice", "double",
];
/// Start of the names of the slots of a list of another length.
const ITEM_PREFIX: &str = "item";

impl RunTrace {
    /// Returns the trace for a goal: if one of the goal's lists has another length than the trace's, the trace with as
    /// many values and steps; otherwise the trace itself, which may not match the goal.
    pub fn for_goal(&self, goal: &ParsedGoal) -> Cow<'_, RunTrace> {
        let own = ParsedGoal::parse(&self.known.goal_text);
        self.resized_for_goal(&own, goal).map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// Matches a goal, whose lists may have another length, and returns the values of the slots of
    /// [`RunTrace::for_goal`].
    ///
    /// # Errors
    /// Returns the reason if the trace doesn't match the goal.
    pub fn match_goal_with_lists(&self, goal: &ParsedGoal, note: Option<&str>) -> Result<SlotValues, GoalMismatch> {
        let own = ParsedGoal::parse(&self.known.goal_text);
        match self.resized_for_goal(&own, goal) {
            Some(trace) => trace.match_goal(goal, note),
            None => self.match_parsed_goal(&own, goal, note),
        }
    }

    /// Returns the trace with another list, if one of the goal's has another length than the trace's and the steps do
    /// the same with each value.
    fn resized_for_goal(&self, own: &ParsedGoal, goal: &ParsedGoal) -> Option<RunTrace> {
        let mut at = 0;
        while at < own.tokens.len().min(goal.tokens.len()) {
            let learned = list_at(&own.tokens, at);
            let wanted = if learned.len() > 1 { list_at(&goal.tokens, at) } else { Vec::new() };
            if learned.len() > 1 && (learned.len() != wanted.len() || token_range(&learned) != token_range(&wanted)) {
                return self.with_list(own, &learned, &goal.tokens, &wanted);
            }
            at = learned.last().map_or(at, |(last, ..)| *last) + 1;
        }
        None
    }

    /// Returns the trace with another list; `None` if its steps don't do the same with each value.
    fn with_list(
        &self,
        own: &ParsedGoal,
        learned: &[ListValue<'_>],
        goal: &[GoalToken],
        wanted: &[ListValue<'_>],
    ) -> Option<RunTrace> {
        let find =
            |(_, kind, text): &ListValue<'_>| self.slots.iter().find(|slot| slot.kind == *kind && slot.value == *text);
        let old: Vec<&TraceSlot> = learned.iter().map(find).collect::<Option<_>>()?;
        let (kind, others) = (old.first()?.kind, || self.slots.iter().filter(|slot| !old.contains(slot)));
        let counts = |step: &TraceStep| step.input.values().any(|value| may_count(own, learned.len(), value));
        let fits = (1..=MAX_LIST_VALUES).contains(&wanted.len())
            && learned.len() <= MAX_LIST_VALUES
            && !self.steps.iter().any(counts)
            && wanted.iter().all(|(_, new, _)| kind.accepts(*new))
            && old.iter().all(|slot| slot.kind == kind)
            && others().all(|other| !other.name.starts_with(ITEM_PREFIX))
            && old.iter().all(|slot| others().all(|other| !can_be_written_alike(slot, other)));
        if !fits {
            return None;
        }
        let new: Vec<TraceSlot> = wanted
            .iter()
            .enumerate()
            .map(|(at, (_, kind, text))| TraceSlot {
                name: format!("{ITEM_PREFIX}{}", at + 1),
                kind: *kind,
                value: (*text).to_owned(),
            })
            .collect();
        let list = ListChange {
            old: old.iter().map(|slot| slot.name.clone()).collect(),
            new: new.iter().map(|slot| slot.name.clone()).collect(),
        };
        let mut trace = self.clone();
        trace.slots.retain(|slot| !list.old.contains(&slot.name));
        trace.slots.extend(new);
        (trace.steps, trace.answer) = list.repeat_steps(&self.steps, self.answer.as_deref())?;
        trace.answer = trace.answer.filter(|text| !may_count(own, learned.len(), &Value::String(text.clone())));
        let (from, to) = (token_range(learned), token_range(wanted));
        let mut tokens = own.tokens[..from.start].to_vec();
        tokens.extend_from_slice(&goal[to]);
        tokens.extend_from_slice(&own.tokens[from.end..]);
        trace.known.goal_text = goal_text(&tokens);
        // What is written must be read as it was meant.
        (ParsedGoal::parse(&trace.known.goal_text).tokens == tokens).then_some(trace)
    }
}

/// Returns whether an argument or an answer says a number that the goal doesn't name, or a word for how many there are:
/// it may be the length of the list, a sum or a share, which another list changes.
fn may_count(goal: &ParsedGoal, length: usize, value: &Value) -> bool {
    let named: Vec<String> = goal.values().filter_map(|(_, text)| slots::canonical_number(text)).collect();
    let is_known = |text: &str| {
        slots::canonical_number(text).is_some_and(|number| named.contains(&number) && number != length.to_string())
    };
    let says_number = |text: &str| {
        let mut digits = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.contains(char::is_numeric));
        let mut words = text.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
        digits.any(|word| !is_known(word)) || words.any(|word| COUNT_WORDS.contains(&word.as_str()))
    };
    any_literal(value, 0, &says_number)
}

/// Returns whether a literal of an argument says something; one that is nested too deeply may do so.
fn any_literal(value: &Value, deep: usize, says: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Number(number) => says(&number.to_string()),
        Value::String(template) => {
            let is_literal = |part: &TemplatePart| matches!(part, TemplatePart::Literal(text) if says(text));
            slots::parse_template(template).is_ok_and(|parts| parts.iter().any(is_literal))
        }
        Value::Array(items) if deep < 32 => items.iter().any(|item| any_literal(item, deep + 1, says)),
        Value::Object(_) if slots::number_slot_place(value).is_some() => false,
        Value::Object(map) if deep < 32 => map.values().any(|item| any_literal(item, deep + 1, says)),
        Value::Array(_) | Value::Object(_) => true,
        Value::Null | Value::Bool(_) => false,
    }
}

/// A value of a list: the index of its token, its kind, and its text.
type ListValue<'a> = (usize, SlotKind, &'a str);

/// Returns the values of the list that begins at a token: one behind the other, or with "and" between them.
fn list_at(tokens: &[GoalToken], at: usize) -> Vec<ListValue<'_>> {
    let value = |at: usize| match tokens.get(at) {
        Some(GoalToken::Value(kind, text)) => Some((at, *kind, text.as_str())),
        Some(GoalToken::Word(_)) | None => None,
    };
    let is_and = |at: usize| matches!(tokens.get(at), Some(GoalToken::Word(word)) if word == "and");
    let mut found: Vec<ListValue<'_>> = value(at).into_iter().collect();
    while let Some((last, ..)) = found.last() {
        let next = last + 1;
        match value(next).or_else(|| value(next + 1).filter(|_| is_and(next))) {
            Some(next) => found.push(next),
            None => break,
        }
    }
    found
}

/// Returns the range of the tokens of a list.
fn token_range(list: &[ListValue<'_>]) -> Range<usize> {
    match (list.first(), list.last()) {
        (Some((first, ..)), Some((last, ..))) => *first..last + 1,
        _ => 0..0,
    }
}

fn can_be_written_alike(one: &TraceSlot, other: &TraceSlot) -> bool {
    let of_other = slots::value_renderings(other.kind, &other.value);
    let of_one = slots::value_renderings(one.kind, &one.value);
    of_one.iter().any(|(_, text)| of_other.iter().any(|(_, known)| known == text))
}

/// Writes tokens as a goal.
fn goal_text(tokens: &[GoalToken]) -> String {
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            GoalToken::Word(word) => text.push_str(word),
            GoalToken::Value(kind, value) => {
                text.push_str(&value_text((*kind, value.as_str())));
                // Two names in a row would be one.
                if matches!(tokens.get(at + 1), Some(GoalToken::Value(..))) {
                    text.push(',');
                }
            }
        }
        text.push(' ');
    }
    text.trim_end().to_owned()
}

/// A list of slots that takes the place of another one.
struct ListChange {
    old: Vec<String>,
    new: Vec<String>,
}

impl ListChange {
    /// Returns the steps and the answer for the new list; `None` if a step does anything else with the old one than the
    /// same for each value.
    fn repeat_steps(&self, steps: &[TraceStep], answer: Option<&str>) -> Option<(Vec<TraceStep>, Option<String>)> {
        let mut made: Vec<TraceStep> = Vec::new();
        // Numbers of the steps that are there once, before and now: later steps may refer to their results.
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            if let Some(repeated) = self.repeat_block(&steps[at..]) {
                made.extend(repeated);
                at += self.old.len();
            } else {
                let input = self.repeat_in_lists(&Value::Object(step.input.clone()), 0)?;
                made.push(TraceStep { input: input.as_object()?.clone(), ..step.clone() });
                at += 1;
                numbers.insert(at, made.len());
            }
        }
        let renumber = |place: &str| -> Option<String> {
            let (name, _) = place.split_once(':').unwrap_or((place, ""));
            if self.old.iter().any(|old| old == name) {
                return None;
            }
            let Some((number, rest)) = step_reference(place) else { return Some(place.to_owned()) };
            Some(format!("step{}{rest}", numbers.get(&number)?))
        };
        let (count, is_last) = (made.len(), steps.last().is_some_and(|step| step.expect.is_last));
        let mut repeated: Vec<TraceStep> = made.iter().map(|step| map_step(step, &renumber)).collect::<Option<_>>()?;
        for (at, step) in repeated.iter_mut().enumerate() {
            step.expect.is_last = is_last && at + 1 == count;
        }
        // An answer that names the old values says nothing about the new ones.
        let answer = answer.and_then(|answer| map_template(answer, &renumber));
        (1..=MAX_TRACE_STEPS).contains(&count).then_some((repeated, answer))
    }

    /// Returns the steps for the new list, if the first steps do the same with each value of the old one.
    fn repeat_block(&self, steps: &[TraceStep]) -> Option<Vec<TraceStep>> {
        let (first, block) = (steps.first()?, steps.get(..self.old.len())?);
        let of_first = self.old.first()?;
        let rename = |to: &str| map_step(first, &|place| Some(rename_place(place, of_first, to)));
        let is_same = |(step, name): (&TraceStep, &String)| {
            // What a result has to say is known for the old values only.
            let may_repeat = step.expect.same.is_empty() && step.expect.shape == first.expect.shape;
            let renamed = rename(name).map(|renamed| TraceStep { expect: step.expect.clone(), ..renamed });
            may_repeat && renamed.as_ref() == Some(step) && step.input != first.input
        };
        block.iter().zip(&self.old).skip(1).all(is_same).then_some(())?;
        if !first.expect.same.is_empty() {
            return None;
        }
        self.new.iter().map(|name| rename(name)).collect()
    }

    /// Returns an argument with the lists in it that do the same with each value of the old list.
    fn repeat_in_lists(&self, value: &Value, deep: usize) -> Option<Value> {
        if deep > 32 {
            return None;
        }
        match value {
            Value::Array(items) => {
                let first = items.first().filter(|_| items.len() == self.old.len());
                let of_first = self.old.first()?;
                let rename =
                    |item: &Value, to: &str| map_places(item, &|place| Some(rename_place(place, of_first, to)), 0);
                let repeats = first.is_some_and(|first| {
                    let mut pairs = items.iter().zip(&self.old).skip(1);
                    pairs.all(|(item, name)| item != first && rename(first, name).as_ref() == Some(item))
                });
                match first.filter(|_| repeats) {
                    Some(first) => {
                        self.new.iter().map(|name| rename(first, name)).collect::<Option<_>>().map(Value::Array)
                    }
                    None => {
                        let items: Option<_> = items.iter().map(|item| self.repeat_in_lists(item, deep + 1)).collect();
                        items.map(Value::Array)
                    }
                }
            }
            Value::Object(map) => {
                let one = |(key, item): (&String, &Value)| Some((key.clone(), self.repeat_in_lists(item, deep + 1)?));
                Some(Value::Object(map.iter().map(one).collect::<Option<Map<_, _>>>()?))
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        }
    }
}

fn rename_place(place: &str, from: &str, to: &str) -> String {
    match place.strip_prefix(from) {
        Some(form) if form.is_empty() || form.starts_with(':') => format!("{to}{form}"),
        Some(_) | None => place.to_owned(),
    }
}

/// Returns the number of the step that a placeholder refers to, and the rest of the placeholder.
fn step_reference(place: &str) -> Option<(usize, &str)> {
    let behind = place.strip_prefix("step")?;
    let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    Some((behind[..end].parse().ok()?, &behind[end..]))
}

/// Returns a template with other placeholders; `None` if there's none for one of them.
fn map_template(template: &str, other: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let one = |part: TemplatePart| match part {
        TemplatePart::Place(place) => Some(TemplatePart::Place(other(&place)?)),
        literal => Some(literal),
    };
    let parts: Option<Vec<TemplatePart>> = slots::parse_template(template).ok()?.into_iter().map(one).collect();
    Some(slots::render_template(&parts?))
}

/// Does the same for an argument.
fn map_places(value: &Value, other: &dyn Fn(&str) -> Option<String>, deep: usize) -> Option<Value> {
    if deep > 32 {
        return None;
    }
    match value {
        Value::String(template) => map_template(template, other).map(Value::String),
        Value::Array(items) => {
            let items: Option<_> = items.iter().map(|item| map_places(item, other, deep + 1)).collect();
            items.map(Value::Array)
        }
        Value::Object(map) => {
            if let Some(place) = slots::number_slot_place(value) {
                return Some(slots::number_slot_object(&other(place)?));
            }
            let one = |(key, item): (&String, &Value)| Some((key.clone(), map_places(item, other, deep + 1)?));
            Some(Value::Object(map.iter().map(one).collect::<Option<Map<_, _>>>()?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

/// Does the same for a step.
fn map_step(step: &TraceStep, other: &dyn Fn(&str) -> Option<String>) -> Option<TraceStep> {
    let paths = |paths: &[String]| paths.iter().map(|path| map_template(path, other)).collect::<Option<Vec<String>>>();
    let input = map_places(&Value::Object(step.input.clone()), other, 0)?;
    Some(TraceStep {
        input: input.as_object()?.clone(),
        needs: paths(&step.needs)?,
        free: paths(&step.free)?,
        leaves: paths(&step.leaves)?,
        removes: paths(&step.removes)?,
        ..step.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn trace(goal: &str, slots: &[(&str, SlotKind, &str)], steps: &[(&str, Value)]) -> RunTrace {
        let mut trace = RunTrace::default();
        trace.known.goal_text = goal.to_owned();
        let slot = |(name, kind, value): &(&str, SlotKind, &str)| TraceSlot {
            name: (*name).to_owned(),
            kind: *kind,
            value: (*value).to_owned(),
        };
        trace.slots = slots.iter().map(slot).collect();
        let step = |(tool, input): &(&str, Value)| TraceStep {
            tool: (*tool).to_owned(),
            input: input.as_object().cloned().unwrap_or_default(),
            ..TraceStep::default()
        };
        trace.steps = steps.iter().map(step).collect();
        trace
    }

    /// Returns the arguments of the calls for a goal; `None` if the trace doesn't fit.
    fn calls(trace: &RunTrace, goal: &str) -> Option<Vec<Value>> {
        let goal = ParsedGoal::parse(goal);
        let trace = trace.for_goal(&goal);
        let values = trace.match_goal(&goal, None).ok()?;
        let results = vec![r#"{"id": "id-1"}"#.to_owned(); trace.steps.len()];
        let calls = trace.predicted_calls(&values, &results);
        Some(calls.into_iter().map(|call| Value::Object(call.expect("filled").1)).collect())
    }

    const FILES: [(&str, SlotKind, &str); 3] =
        [("path1", SlotKind::Path, "a.pdf"), ("path2", SlotKind::Path, "b.pdf"), ("text1", SlotKind::Text, "old")];

    #[test]
    fn steps_are_repeated_over_a_list() {
        let step = |path: &str| ("move", json!({"path": path, "to": "{text1}/{step1.id}"}));
        let steps = [("open", json!({"name": "{text1}"})), step("{path1}"), step("{path2}")];
        let mut two = trace("Move 'a.pdf' and 'b.pdf' to 'old'", &FILES, &steps);
        two.answer = Some("Moved to {text1}.".to_owned());
        two.steps[2].expect.is_last = true;
        let moved = |names: &[&str]| {
            let open = json!({"name": "new"});
            let moves = names.iter().map(|name| json!({"path": name, "to": "new/id-1"}));
            Some([open].into_iter().chain(moves).collect::<Vec<_>>())
        };
        assert_eq!(calls(&two, "Move 'c.pdf' and 'd.pdf' to 'new'"), moved(&["c.pdf", "d.pdf"]));
        assert_eq!(calls(&two, "Move 'c.pdf', 'd.pdf' and 'e.pdf' to 'new'"), moved(&["c.pdf", "d.pdf", "e.pdf"]));
        assert_eq!(calls(&two, "Move 'c.pdf', 'd.pdf' to 'new'"), moved(&["c.pdf", "d.pdf"]));
        assert_eq!(calls(&two, "Move 'c.pdf' to 'new'"), moved(&["c.pdf"]));
        assert_eq!(calls(&two, "Copy 'c.pdf' to 'new'"), None);
        assert_eq!(calls(&two, "Move 'c.pdf' and 'c.pdf' and 'e.pdf' to 'new'"), None, "one is there twice");
        let three = ParsedGoal::parse("Move 'c.pdf', 'd.pdf' and 'e.pdf' to 'new'");
        let fitted = two.for_goal(&three);
        assert_eq!(fitted.answer.as_deref(), Some("Moved to {text1}."));
        assert!(fitted.steps[3].expect.is_last && !fitted.steps[2].expect.is_last);
        assert_eq!(*two.for_goal(&ParsedGoal::parse("Move 'c.pdf' and 'd.pdf' to 'new'")), two);
    }

    #[test]
    fn what_differs_within_a_list_is_not_repeated() {
        let three = "Move 'c.pdf', 'd.pdf' and 'e.pdf' to 'new'";
        let of = |steps: &[(&str, Value)]| trace("Move 'a.pdf' and 'b.pdf' to 'old'", &FILES, steps);
        let step = |tool: &'static str, path: &str| (tool, json!({"path": path, "to": "{text1}"}));
        assert!(calls(&of(&[step("move", "{path1}"), step("move", "{path2}")]), three).is_some());
        assert_eq!(calls(&of(&[step("move", "{path1}"), step("copy", "{path2}")]), three), None);
        assert_eq!(calls(&of(&[step("move", "{path2}"), step("move", "{path1}")]), three), None);
        assert_eq!(
            calls(&of(&[step("move", "{path1}"), step("move", "{path2}"), step("read", "{path2}")]), three),
            None
        );
        let refers = ("note", json!({"path": "n.md", "to": "{text1}: {step2.id}"}));
        assert_eq!(calls(&of(&[step("move", "{path1}"), step("move", "{path2}"), refers]), three), None);
        let counts = |note: Value| of(&[step("move", "{path1}"), step("move", "{path2}"), ("note", note)]);
        for note in
            [json!({"count": 2}), json!({"text": "Both moved"}), json!({"text": "2 of them"}), json!({"share": 0.5})]
        {
            assert_eq!(calls(&counts(note.clone()), three), None, "{note}");
        }
        assert!(calls(&counts(json!({"text": "All moved"})), three).is_some());
        let mut plain = of(&[step("move", "{path1}"), step("move", "{path2}")]);
        plain.answer = Some("Both are moved.".to_owned());
        let fitted = plain.for_goal(&ParsedGoal::parse(three)).into_owned();
        assert_eq!(fitted.answer, None);
        assert!(fitted.steps.iter().all(|step| !step.expect.is_last), "a trace of an older version stays as strict");
        let mut bound = of(&[step("move", "{path1}"), step("move", "{path2}")]);
        bound.steps[1].expect.same = "0".to_owned();
        assert_eq!(calls(&bound, three), None);
    }

    #[test]
    fn lists_of_arguments_grow_and_shrink() {
        let slots = [("number1", SlotKind::Number, "12"), ("number2", SlotKind::Number, "15")];
        let numbers = json!({"of": [[{"$slot": "number1:decimal"}, {"$slot": "number2:decimal"}]], "by": "{step1.id}"});
        let mean = trace("Show the mean of 12 and 15", &slots, &[("open", json!({})), ("mean", numbers)]);
        let of = |list: Value| Some(vec![json!({}), json!({"of": [list], "by": "id-1"})]);
        assert_eq!(calls(&mean, "Show the mean of 3, 4.5 and 6"), of(json!([3.0, 4.5, 6.0])));
        assert_eq!(calls(&mean, "Show the mean of 3"), of(json!([3.0])));
        let names = [("name1", SlotKind::Name, "Ann Miller"), ("name2", SlotKind::Name, "Bob")];
        let send = trace("Write to Ann Miller and Bob", &names, &[("send", json!({"to": ["{name1}", "{name2}"]}))]);
        let sent = calls(&send, "Write to Cid, Dan Stone and Eve");
        assert_eq!(sent, Some(vec![json!({"to": ["Cid", "Dan Stone", "Eve"]})]));
    }

    proptest! {
        /// A list of any length gets a step for each of its values, in their order.
        #[test]
        fn each_value_has_its_step(names in proptest::collection::btree_set("[a-z]{3,8}", 1..20)) {
            let step = |path: &str| ("move", json!({"path": path}));
            let two = trace("Move 'a.pdf' and 'b.pdf' away", &FILES[..2], &[step("{path1}"), step("{path2}")]);
            let files: Vec<String> = names.iter().map(|name| format!("{name}.md")).collect();
            let list = files.iter().map(|file| format!("'{file}'")).collect::<Vec<_>>().join(", ");
            let expected: Vec<Value> = files.iter().map(|file| json!({"path": file})).collect();
            prop_assert_eq!(calls(&two, &format!("Move {list} away")), Some(expected));
        }

        #[test]
        fn any_goal_is_tried(goal in "(Move|'a.pdf'|and|,|to|12|Ann|'old'| ){0,20}") {
            let both = [("move", json!({"path": "{path1}{path2}"}))];
            let two = trace("Move 'a.pdf' and 'b.pdf' to 'old'", &FILES, &both);
            let goal = ParsedGoal::parse(&goal);
            let matched = two.for_goal(&goal).match_goal(&goal, None);
            prop_assert_eq!(two.match_goal_with_lists(&goal, None).ok(), matched.ok());
        }
    }
}
