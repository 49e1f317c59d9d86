//! The two agents of memory: their work without a model, by retrieval and counting; and the form of what a model says
//! for the one that answers questions.

use super::{Record, Run, lead, step};
use crate::notice::Notice;
use crate::session::{Reject, Session, Turn};
use agent::memory::Memory;
use agent::memory::insight::{Analysis, Query};
use std::sync::Arc;
use store::{DocId, Ending, Message, MessageId, Role, StepKind};
use text::task::Day;

/// The agent that answers questions about earlier work.
const ANALYSIS: &str = "memory-analysis";
/// The agent that makes long-term notes of logs.
const CONSOLIDATION: &str = "memory-consolidation";

/// Whether a run can do its work without a model.
pub(super) fn keeps_memory(run: &Run) -> bool {
    matches!(run.about.agent.as_str(), ANALYSIS | CONSOLIDATION)
}

/// The JSON in a text: from its first brace to its last.
fn object(text: &str) -> Option<&str> {
    text.get(text.find('{')?..=text.rfind('}')?)
}

/// What memory is asked: in the JSON of the reference, or in plain words.
fn query(run: &Run) -> Query {
    let text = lead::goal(run);
    let given = object(&text).and_then(|json| serde_json::from_str::<Query>(json).ok());
    given.filter(|query| !query.query.trim().is_empty()).unwrap_or(Query { query: text, ..Query::default() })
}

fn written(said: &Analysis) -> String {
    serde_json::to_string_pretty(said).unwrap_or_default()
}

impl Session {
    /// No model is asked, or none answers: what an agent of memory is there for is done without one.
    pub(super) fn keep_memory_alone(&mut self, turn: &mut Turn<'_>, id: DocId, why: &str) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let (volume, memory) = (run.about.volume, Arc::clone(&run.remembered.memory));
        let words = if run.about.agent == ANALYSIS {
            written(&memory.analyze(&query(run), today(turn)))
        } else {
            let before = self.notices.last();
            if let Err(Reject(why)) = self.consolidate(turn, volume, &memory) {
                let words = format!("Memory could not be consolidated: {why}.");
                return self.fail_run(turn, id, words, Ending::Failed);
            }
            let done = |notice: &Notice| matches!(notice, Notice::Consolidated { .. }).then(|| notice.words());
            let done: Vec<String> = self.notices.after(before).filter_map(|noticed| done(&noticed.notice)).collect();
            if done.is_empty() { "Nothing is remembered yet.".to_owned() } else { done.join("\n") }
        };
        let Some(run) = self.agents.runs.get(&id) else { return };
        let content = format!("Without a model ({}), by retrieval and counting.", why.trim_end_matches('.'));
        let told = step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            ..Message::new(MessageId(turn.name()), Role::Assistant, words.clone(), turn.now.0)
        };
        let made = step(turn, vec![told.id], StepKind::FinalAnswer { content: words });
        let record = Record { steps: vec![told, made], messages: vec![message], ..Record::default() };
        self.end_run(turn, id, Ending::Done, record);
    }

    /// What a model has answered, in the form that its agent's answers have; and a word on what was changed for that.
    pub(super) fn in_form(&self, turn: &Turn<'_>, id: DocId, text: String) -> (String, Option<String>) {
        let run = self.agents.runs.get(&id).filter(|run| run.about.agent == ANALYSIS);
        let Some(run) = run else { return (text, None) };
        let memory = &run.remembered.memory;
        match read(&text, memory) {
            Some((said, 0)) => (written(&said), None),
            Some((said, gone)) => {
                let word = format!("Left out: {gone} experiences that the model named and that are not there.");
                (written(&said), Some(word))
            }
            None => {
                let word =
                    "The model's answer was not in the form of an analysis, so this is by retrieval and counting.";
                (written(&memory.analyze(&query(run), today(turn))), Some(word.to_owned()))
            }
        }
    }
}

fn today(turn: &Turn<'_>) -> Day {
    Day(turn.now.0.div_euclid(86_400_000))
}

/// An analysis that a model has written, but for experiences that are not there: so many.
fn read(text: &str, memory: &Memory) -> Option<(Analysis, usize)> {
    let mut said: Analysis = serde_json::from_str(object(text)?).ok()?;
    if said.analysis_summary.trim().is_empty() || !said.confidence_score.is_finite() {
        return None;
    }
    let count = said.relevant_experiences.len();
    said.relevant_experiences.retain(|id| memory.entries.iter().any(|one| one.experience.experience_id == *id));
    said.confidence_score = said.confidence_score.clamp(0.0, 1.0);
    let gone = count - said.relevant_experiences.len();
    Some((said, gone))
}
