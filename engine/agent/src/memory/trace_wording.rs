//! A goal in the words of a trace, for a user who says that another goal means the same. The trace then fits as it
//! does for its own words, with all of its checks.

use super::goal::{GoalToken, ParsedGoal, SlotKind};
use super::trace::{RunTrace, TraceSlot};

/// Why a goal can't be said in the words of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceWordingError {
    /// The goal has other values than the trace takes.
    #[error("it takes {wanted}, and this names {given}")]
    OtherValues {
        /// The kinds of values that the trace takes, in their order.
        wanted: String,
        /// The values of the goal.
        given: String,
    },
    /// The trace doesn't fit its own words with these values.
    #[error("it doesn't fit with these values: ask in the words of its goal")]
    Unfit,
}

impl RunTrace {
    /// Returns this trace's goal with the values of another goal, taken in their order.
    ///
    /// # Errors
    /// Returns an error if the other goal has too few or too many values, or values of other kinds.
    pub fn goal_with_values_of(&self, other: &ParsedGoal, note: Option<&str>) -> Result<String, TraceWordingError> {
        let own = ParsedGoal::parse(&self.known.goal_text);
        let slot_of =
            |kind: SlotKind, text: &str| self.slots.iter().find(|slot| slot.kind == kind && slot.value == text);
        let mut slots: Vec<&TraceSlot> = Vec::new();
        for slot in own.values().filter_map(|(kind, text)| slot_of(kind, text)) {
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        let is_fixed = |text: &str| own.values().any(|(kind, fixed)| fixed == text && slot_of(kind, fixed).is_none());
        let mut given: Vec<(SlotKind, &str)> = Vec::new();
        for value in other.values() {
            if !is_fixed(value.1) && !given.contains(&value) {
                given.push(value);
            }
        }
        let fits = slots.iter().zip(&given).all(|(slot, (kind, _))| slot.kind.accepts(*kind));
        if slots.len() != given.len() || !fits {
            let list = |names: Vec<&str>| if names.is_empty() { "no value".to_owned() } else { names.join(", ") };
            return Err(TraceWordingError::OtherValues {
                wanted: list(slots.iter().map(|slot| slot.kind.as_str()).collect()),
                given: list(given.iter().map(|(_, text)| *text).collect()),
            });
        }
        let token_text = |token: &GoalToken| match token {
            GoalToken::Word(word) => word.clone(),
            GoalToken::Value(kind, text) => {
                let slot = slot_of(*kind, text);
                let new = slots.iter().zip(&given).find(|(one, _)| slot == Some(**one)).map(|(_, new)| *new);
                value_text(new.unwrap_or((*kind, text.as_str())))
            }
        };
        let text = own.tokens.iter().map(token_text).collect::<Vec<_>>().join(" ");
        // What is written must be read as it was meant.
        let values = self.match_goal(&ParsedGoal::parse(&text), note).map_err(|_| TraceWordingError::Unfit)?;
        let is_meant = slots
            .iter()
            .zip(&given)
            .all(|(slot, (_, new))| values.get(&slot.name).is_some_and(|(_, text)| text.as_str() == *new));
        if is_meant { Ok(text) } else { Err(TraceWordingError::Unfit) }
    }
}

/// Writes a value so that a goal reads it as this value.
pub(super) fn value_text((kind, text): (SlotKind, &str)) -> String {
    match kind == SlotKind::Text || kind == SlotKind::Path && text.contains(' ') {
        true if text.contains('"') => format!("“{text}”"),
        true => format!("\"{text}\""),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> RunTrace {
        let slot = |name: &str, kind, value: &str| TraceSlot { name: name.to_owned(), kind, value: value.to_owned() };
        let mut trace = RunTrace::default();
        trace.known.goal_text = "Please make the summary of October 2026 for Ann Miller into out.md".to_owned();
        trace.slots = vec![slot("month", SlotKind::Month, "2026-10"), slot("name", SlotKind::Name, "Ann Miller")];
        trace
    }

    #[test]
    fn another_goal_is_said_in_the_words_of_a_trace() {
        let said = |text: &str| trace().goal_with_values_of(&ParsedGoal::parse(text), None);
        let expected = "create summary of 2026-11 for Bob Stone into out.md";
        assert_eq!(said("Summarize November 2026, it's for Bob Stone").as_deref(), Ok(expected));
        assert_eq!(said("The report on 2026-11, for Bob Stone, as out.md").as_deref(), Ok(expected));
        let wrong = said("Summarize November 2026").expect_err("a value lacks");
        assert_eq!(wrong.to_string(), "it takes month, name, and this names 2026-11");
        for other in ["For Bob Stone in November 2026", "2026-11, 2026-12 for Bob Stone", ""] {
            assert!(matches!(said(other), Err(TraceWordingError::OtherValues { .. })), "{other}");
        }
    }
}
