//! A question that repeats a trace which the user names.

use super::super::{CliError, CommandContext};
use super::memory_files::{find_trace, load_projects};
use agent::memory::StoredTrace;
use agent::memory::goal::ParsedGoal;
use store::DocId;

/// A question in the words of a trace that the user named.
pub(crate) struct TraceQuestion {
    /// The trace's goal with the user's values.
    pub(crate) text: String,
    /// The agent from whose run the trace was learned.
    pub(crate) agent: String,
    /// Paths of other traces that fit this goal.
    pub(crate) others: Vec<String>,
}

/// Says a question in the words of the named trace of a volume, because the user says that it means the same.
pub(crate) fn question_of_trace(
    scene: &CommandContext<'_>,
    word: &str,
    (volume, note): (DocId, Option<DocId>),
    text: &str,
) -> Result<TraceQuestion, CliError> {
    let mut all = load_projects(scene, None)?;
    all.retain(|project| project.id == volume);
    let (_, filed) = find_trace(&all, word)?;
    let note: Option<String> = scene
        .handle
        .read(move |session| note.and_then(|note| session.locate_file(note)).map(|(_, path)| path.to_owned()))?;
    let text = filed
        .trace
        .goal_with_values_of(&ParsedGoal::parse(text), note.as_deref())
        .map_err(|why| CliError::usage(format!("{word} can't be repeated for this: {why}")))?;
    let goal = ParsedGoal::parse(&text);
    let fits =
        |other: &&StoredTrace| other.path != filed.path && other.trace.match_goal(&goal, note.as_deref()).is_ok();
    let others = all.iter().flat_map(|project| &project.memory.traces).filter(fits).map(|other| other.path.clone());
    let others = others.collect();
    Ok(TraceQuestion { agent: filed.trace.known.agent.clone(), text, others })
}
