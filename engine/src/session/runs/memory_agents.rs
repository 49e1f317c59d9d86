//! The two memory agents: their work without a model, by retrieval and counting, and the answer format of the one that
//! answers questions.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::runs::orchestrated_run::goal_without_mention;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_definition::MEMORY_ANALYSIS_AGENT;
pub(super) use agent::agent_definition::is_memory_agent;
use agent::memory::insight::{MemoryAnalysis, MemoryQuery};
use agent::notice::Notice;
use std::sync::Arc;
use store::{DocId, MessageId, MessageRole, RunEnding, SessionMessage, StepKind};
use text::task::CalendarDay;

/// Returns whether this is the run of a memory agent.
pub(super) fn is_memory_agent_run(run: &AgentRun) -> bool {
    is_memory_agent(&run.about.agent)
}

/// Answers the query of a run by retrieval and counting.
fn analyze_for(turn: &ApplyContext<'_>, run: &AgentRun) -> String {
    let today = CalendarDay(turn.now.0.div_euclid(86_400_000));
    run.run_memory.memory.analyze(&MemoryQuery::of_text(goal_without_mention(run)), today).to_json()
}

impl RunsState {
    /// Returns whether a message is addressed to a memory agent.
    pub(in crate::session) fn is_for_memory(&self, text: &str, agent: Option<&str>) -> bool {
        let mentioned = agent.is_none().then(|| self.mentioned_agent(text)).flatten();
        agent.or(mentioned.as_deref()).is_some_and(is_memory_agent)
    }

    /// Does the work of a memory agent without a model, if none can be used.
    pub(super) fn run_memory_agent_without_model(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        why: &str,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let (volume, memory) = (run.about.volume, Arc::clone(&run.run_memory.memory));
        let words = if run.about.agent == MEMORY_ANALYSIS_AGENT {
            analyze_for(turn, run)
        } else {
            let before = turn.journal.notices.last_number();
            if let Err(CommandError(why)) = files.consolidate(turn, sync, volume, &memory) {
                let words = format!("Memory could not be consolidated: {why}.");
                return self.fail_run(turn, files, sync, workspace, id, (words, RunEnding::Failed));
            }
            let done = |notice: &Notice| matches!(notice, Notice::Consolidated { .. }).then(|| notice.describe());
            let done: Vec<String> =
                turn.journal.notices.notices_after(before).filter_map(|noticed| done(&noticed.notice)).collect();
            if done.is_empty() { "Nothing is remembered yet.".to_owned() } else { done.join("\n") }
        };
        let Some(run) = self.runs.get(&id) else { return };
        let content = format!("Without a model ({}), by retrieval and counting.", why.trim_end_matches('.'));
        let told = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, words.clone(), turn.now.0)
        };
        let made = new_step(turn, vec![told.id], StepKind::FinalAnswer { content: words });
        let record = RunRecord { steps: vec![told, made], messages: vec![message], ..RunRecord::default() };
        self.end_run(turn, files, sync, workspace, id, (RunEnding::Done, record));
    }

    /// Converts a model's answer into the format of its agent's answers. Also returns a remark on what was changed for
    /// that.
    pub(super) fn format_agent_answer(
        &self,
        turn: &ApplyContext<'_>,
        id: DocId,
        text: String,
    ) -> (String, Option<String>) {
        let run = self.runs.get(&id).filter(|run| run.about.agent == MEMORY_ANALYSIS_AGENT);
        let Some(run) = run else { return (text, None) };
        match MemoryAnalysis::parse_answer(&text, &run.run_memory.memory) {
            Some((said, 0)) => (said.to_json(), None),
            Some((said, gone)) => {
                let word = format!("Left out: {gone} experiences that the model named and that are not there.");
                (said.to_json(), Some(word))
            }
            None => {
                let word =
                    "The model's answer was not in the form of an analysis, so this is by retrieval and counting.";
                (analyze_for(turn, run), Some(word.to_owned()))
            }
        }
    }
}
