//! Memory of runs: stores an experience for each run that did something, adds a task to the session's log, and recalls
//! what is relevant for the next goal.

use super::links::step_address;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::memory::experience::{self, Experience, RunOutcome};
use agent::memory::trace::iso_timestamp;
use agent::memory::trace_extraction::CompletedCall;
use agent::memory::{self, ProjectMemory, insight, run_outcome, task_log, trace_extraction};
use agent::notice::Notice;
use agent::prompt_quote;
use store::{ChangeKind, DocId, MessageId, MessageRole, RunEnding, SessionMessage, StepKind};
use text::task::CalendarDay;

/// Maximum length of an answer's summary in bytes.
const MAX_ANSWER_SUMMARY_BYTES: usize = 400;
/// Maximum number of failures remembered from one run.
const MAX_RUN_LESSONS: usize = 5;

impl RunsState {
    /// Adds what is relevant to a run's goal as a step and a message for the model, without what the user has excluded.
    pub(super) fn recall_for_run(
        &self,
        turn: &mut ApplyContext<'_>,
        (volumes, sync, workspace): (&VolumesState, &SyncState, &WorkspaceState),
        id: DocId,
        memory: &ProjectMemory,
        record: &mut RunRecord,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let about = &run.about;
        let today = CalendarDay(turn.now.0.div_euclid(86_400_000));
        let note = about.note.and_then(|note| volumes.locate_file(note)).map(|(_, path)| path.to_owned());
        let schemas = self.schemas_of(&self.definition_of(run));
        let trust = |trace: &_| self.trace_trust((volumes, sync), &workspace.settings, trace);
        let mut bearing = memory.relevant_items(&about.prompt, note.as_deref(), &about.agent, &schemas, today, &trust);
        // Separate the exclusions that exist from unknown ones.
        let (without, unknown): (Vec<String>, Vec<String>) =
            run.run_memory.recall.without.iter().cloned().partition(|name| memory.contains_item(name));
        bearing.retain(|one| !without.contains(&one.name));
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| prompt_quote::quote_inline(name, 200)).collect();
            let content = format!("Nothing is remembered under these names: {}.", names.join(", "));
            let mut made = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
            made.route = Some("notice".to_owned());
            record.steps.push(made);
        }
        let Some(words) = insight::recall_step_text(&bearing, &without) else { return };
        let mut made = new_step(turn, run.last_step(), StepKind::Thinking { content: words, is_streaming: None });
        made.route = Some("memory".to_owned());
        record.steps.push(made);
        bearing.retain(|one| one.kind == insight::EXPERIENCE_KIND);
        if !bearing.is_empty() {
            let told = self.mask_secrets(memory.recall_prompt(&bearing));
            let head = record.messages.last().map_or(run.about.head, |message| message.id);
            record.messages.push(SessionMessage {
                parents: vec![head],
                run: Some(id),
                ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, told, turn.now.0)
            });
        }
    }

    /// Stores what a run did as an experience and a task in the log, if a model did something in it.
    pub(super) fn remember_run(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) {
        let wanted = self.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.runs.get(&id).filter(|run| wanted && run.about.iteration > 0) else { return };
        if crate::session::runs::orchestrated_run::is_orchestrated(run) {
            return; // it remembers in its own phases, and each part of it for itself
        }
        let about = &run.about;
        let Some(ending) = about.ending.filter(|ending| *ending != RunEnding::Cancelled) else { return };
        let calls = self.completed_calls_of(run);
        if calls.is_empty() {
            return;
        }
        let (outcome, tools, learnings) = self.assess_run(run, ending, &calls);
        let clip = |text: &str, most: usize| text[..text.floor_char_boundary(most)].trim().to_owned();
        let created = |change: &&store::RunChange| {
            matches!(change.what, ChangeKind::Created { .. } | ChangeKind::Bytes { before: None, .. })
        };
        let note = about.note.and_then(|note| files.volumes.locate_file(note)).map(|(_, path)| path.to_owned());
        let folder = match &run.project {
            Some(project) => format!("{}/{project}/{}", memory::PROJECTS_FOLDER, memory::MEMORY_FOLDER),
            None => memory::memory_folder(note.as_deref()),
        };
        let own = folder.strip_prefix(&format!("{}/", memory::PROJECTS_FOLDER)).and_then(|rest| rest.split('/').next());
        let volume = files.volumes.by_id.get(&about.volume).map_or("", |volume| volume.name.as_str());
        let ended = about.ended.unwrap_or(turn.now.0);
        let answer = trace_extraction::final_answer(&run.steps).unwrap_or_default();
        let one = Experience {
            experience_id: format!("exp_{}", id.to_string().chars().take(8).collect::<String>()),
            project_name: own.unwrap_or(volume).to_owned(),
            primary_goal: self.mask_secrets(about.prompt.clone()),
            final_outcome: outcome,
            components_used: std::iter::once(about.agent.clone()).chain(tools).collect(),
            files_created: run.changes.iter().filter(created).count() as u64,
            output_summary: clip(&self.mask_secrets(answer.to_owned()), MAX_ANSWER_SUMMARY_BYTES),
            execution_time_ms: u64::try_from(ended.saturating_sub(about.start_time)).unwrap_or(0),
            learnings_or_issues: self.mask_secrets(learnings),
            source: format!("run {id}"),
            step: run.steps.last().map(|last| step_address(id, last.id)).unwrap_or_default(),
            note: note.clone().unwrap_or_default(),
            author: about.agent.clone(),
            ..Experience::default()
        };
        let one = one.with_limits(turn.now.0);
        let task = task_log::LoggedTask {
            known: task_log::TaskLogMetadata {
                timestamp: iso_timestamp(ended),
                action: "task_execution".to_owned(),
                status: if outcome.is_good() { "completed" } else { "failed" }.to_owned(),
                run: id.to_string(),
                agent: about.agent.clone(),
                ..task_log::TaskLogMetadata::default()
            },
            goal: about.prompt.clone(),
            actions: calls.iter().map(task_log::LoggedTask::action_line).collect(),
            results: clip(answer, 4 * MAX_ANSWER_SUMMARY_BYTES),
            code: calls.iter().filter_map(task_log::LoggedTask::call_code).collect(),
        };
        let volume = files.volumes.memory_home(about.volume);
        files.write_memory_note(
            turn,
            sync,
            volume,
            &format!("{folder}/{}", experience::EXPERIENCE_LOG_FILE),
            Some(one),
            None,
        );
        let logged = self.mask_secrets(task.to_markdown());
        files.write_memory_note(
            turn,
            sync,
            volume,
            &format!("{folder}/{}", task_log::TASK_LOG_FILE),
            None,
            Some(logged),
        );
    }

    /// Returns the calls of a run with the facts about their tools.
    pub(super) fn completed_calls_of(&self, run: &AgentRun) -> Vec<CompletedCall> {
        let calls = trace_extraction::completed_calls(&run.steps, &run.approvals, &run.changes);
        trace_extraction::with_tool_facts(calls, &self.tool_facts(&self.definition_of(run)))
    }

    /// Returns what a run came to by its calls; `None` while it continues. It may have failed although it ended with
    /// an answer.
    pub fn outcome_of_run(&self, run: &AgentRun) -> Option<RunOutcome> {
        Some(run_outcome::outcome_of_calls(run.about.ending?, &self.completed_calls_of(run)))
    }

    /// Returns the outcome of a run from its ending and its calls, the tools that worked, and the lessons: what worked
    /// on the first line, then one line per failure.
    fn assess_run(
        &self,
        run: &AgentRun,
        ending: RunEnding,
        calls: &[CompletedCall],
    ) -> (RunOutcome, Vec<String>, String) {
        let came = run_outcome::outcome_of_calls(ending, calls);
        let mut lines = run_outcome::failure_sentences(calls);
        lines.truncate(MAX_RUN_LESSONS);
        if came.is_good() {
            let tools = run_outcome::successful_tools(calls);
            lines.insert(0, format!("{} did it, in {} model calls.", tools.join(", "), run.about.iteration));
            return (came, tools, lines.join("\n"));
        }
        let mut tools: Vec<String> = Vec::new();
        for call in calls.iter().filter(|call| call.known) {
            if !tools.contains(&call.tool) {
                tools.push(call.tool.clone());
            }
        }
        let last = run.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::Error { message, .. } => Some(run_outcome::failure_reason(message)),
            StepKind::ToolResult { .. }
            | StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. } => None,
        });
        // If the run ended without an answer, the reason comes first.
        if let Some(why) = last.filter(|_| ending != RunEnding::Done) {
            lines.insert(0, why);
        }
        if lines.is_empty() {
            lines.push("It came to no answer.".to_owned());
        }
        (came, tools, lines.join("\n"))
    }
}

impl FilesState {
    /// Adds an experience or a task to a note of memory, which is created if it doesn't exist.
    pub(in crate::session) fn write_memory_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        volume: DocId,
        path: &str,
        experience: Option<Experience>,
        task: Option<String>,
    ) {
        let told = Notice::Remembered { volume, path: path.to_owned() };
        let Some(file) = self.volumes.find_file(volume, path) else {
            let text = match (experience, task) {
                (Some(one), _) => experience::with_experience("", one),
                (None, Some(task)) => Some(task_log::with_logged_task("", &task)),
                (None, None) => None,
            };
            if let Some(text) = text {
                self.create_own_note(turn, sync, volume, path, &text);
                turn.notify(told);
            }
            return;
        };
        let made = match (experience, task) {
            (Some(one), _) => self.add_experience(turn, sync, file, one),
            (None, Some(task)) => self.log_task(turn, sync, file, task),
            (None, None) => Ok(()),
        };
        match made {
            Ok(()) => turn.notify(told),
            Err(CommandError(why)) => {
                turn.journal.problems.push(format!("what was done could not be remembered ({why}): {path}"));
            }
        }
    }
}
