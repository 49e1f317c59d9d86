//! Separates reasoning from an answer where a server sends both as text: `<think>…</think>` at the beginning.

use agent::model_call::ModelDelta;

const OPENING_TAG: &str = "<think>";
const CLOSING_TAG: &str = "</think>";
/// Maximum size of the blanks before a tag or an answer, in bytes.
const MAX_HELD_BYTES: usize = 1_000;

/// Splits the pieces of one answer's text into reasoning and answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningTags {
    part: AnswerPart,
    /// Text that may be a part of a tag, or blanks around one.
    held: String,
    has_reasoning: bool,
}

/// Where in the answer the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AnswerPart {
    /// Before the first letter.
    #[default]
    Start,
    Reasoning,
    /// After the reasoning, before the answer's first letter.
    Gap,
    Answer,
}

impl ReasoningTags {
    /// Returns what a piece adds.
    pub(crate) fn split(&mut self, piece: String) -> Vec<ModelDelta> {
        if self.part == AnswerPart::Answer {
            return vec![ModelDelta::Text(piece)];
        }
        self.held.push_str(&piece);
        let mut deltas = Vec::new();
        if self.part == AnswerPart::Start {
            let text = self.held.trim_start();
            if let Some(rest) = text.strip_prefix(OPENING_TAG) {
                (self.part, self.held) = (AnswerPart::Reasoning, rest.to_owned());
            } else if !OPENING_TAG.starts_with(text) || self.held.len() > MAX_HELD_BYTES {
                self.part = AnswerPart::Answer;
            }
        }
        if self.part == AnswerPart::Reasoning {
            let (reasoning, rest) = match self.held.split_once(CLOSING_TAG) {
                Some((reasoning, rest)) => {
                    self.part = AnswerPart::Gap;
                    (reasoning, rest)
                }
                None => self.held.split_at(self.held.len() - begun_tag_length(&self.held)),
            };
            // Models that were told not to reason send blanks.
            let reasoning = if self.has_reasoning { reasoning } else { reasoning.trim_start() };
            if !reasoning.is_empty() {
                self.has_reasoning = true;
                deltas.push(ModelDelta::Thinking(reasoning.to_owned()));
            }
            self.held = rest.to_owned();
        }
        let is_held = self.held.trim_start().is_empty() && self.held.len() <= MAX_HELD_BYTES;
        if self.part == AnswerPart::Gap && !is_held {
            (self.part, self.held) = (AnswerPart::Answer, self.held.trim_start().to_owned());
        }
        if self.part == AnswerPart::Answer {
            deltas.push(ModelDelta::Text(std::mem::take(&mut self.held)));
        }
        deltas
    }

    /// Returns what was held back when the answer ends.
    pub(crate) fn finish(&mut self) -> Option<ModelDelta> {
        let held = std::mem::take(&mut self.held);
        match self.part {
            _ if held.is_empty() => None,
            AnswerPart::Reasoning => Some(ModelDelta::Thinking(held)),
            AnswerPart::Gap => None,
            AnswerPart::Start | AnswerPart::Answer => Some(ModelDelta::Text(held)),
        }
    }
}

/// Returns the length of the end of a text that may be the beginning of the closing tag.
fn begun_tag_length(text: &str) -> usize {
    (1..CLOSING_TAG.len()).rev().find(|length| text.ends_with(&CLOSING_TAG[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns reasoning and answer of a text that comes in pieces of this many bytes.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut tags, mut reasoning, mut answer) = (ReasoningTags::default(), String::new(), String::new());
        let pieces: Vec<String> =
            text.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece).into()).collect();
        let mut deltas: Vec<ModelDelta> = pieces.into_iter().flat_map(|piece| tags.split(piece)).collect();
        deltas.extend(tags.finish());
        for delta in deltas {
            match delta {
                ModelDelta::Thinking(text) => reasoning += &text,
                ModelDelta::Text(text) => answer += &text,
                other => panic!("{other:?}"),
            }
        }
        (reasoning, answer)
    }

    #[test]
    fn only_tags_at_the_beginning_count() {
        let table = [
            ("<think>Hm, 1 < 2.\n</think>\n\nIt is 42.", "Hm, 1 < 2.\n", "It is 42."),
            ("\n<think>\n\n</think>\n\nYes.", "", "Yes."),
            ("<think>I never end</thin", "I never end</thin", ""),
            ("Write <think>so</think>.", "", "Write <think>so</think>."),
            ("<thin air", "", "<thin air"),
            ("<th", "", "<th"),
            ("  Indented", "", "  Indented"),
            ("", "", ""),
        ];
        for (text, reasoning, answer) in table {
            for size in [1, 2, 5, 7, 100] {
                assert_eq!(split(text, size), (reasoning.to_owned(), answer.to_owned()), "{text:?} by {size}");
            }
        }
    }
}
