//! The last phases of an orchestrating run: logging, listing, summarizing and remembering its results.

use super::links::step_address;
use super::orchestrator::PhaseOutcome;
use crate::session::apply_context::ApplyContext;
use crate::session::runs::orchestrated_run::{
    PLANNER_AGENT, SYSTEM_AGENT, WORK_PHASE, argument_text, calls_of_tool, current_plan, goal_without_mention,
    is_planned_by_rules,
};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::decision_log::{DECISION_LOG_FILE, PlanDecisions};
use agent::memory::experience::{self, Experience};
use agent::memory::trace::iso_timestamp;
use agent::memory::{MEMORY_FOLDER, run_outcome, task_log};
use agent::planner;
use agent::task_block::{self, TaskBlock, TaskStatus};
use agent::tool_catalog::BuiltInTool;
use std::collections::BTreeSet;
use store::{ChangeKind, DocId, MessageId, MessageRole, RunEnding, SessionMessage, StepKind};

/// Maximum length of an agent's answer in the summary, in bytes.
const MAX_SUMMARIZED_ANSWER_BYTES: usize = 300;

impl RunsState {
    pub(super) fn log_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get(&id) else { return PhaseOutcome::Waiting };
        let Some(home) = run.project_folder() else { return PhaseOutcome::Finished };
        let tasks = run.tasks();
        let line = |task: &TaskBlock| {
            let agent = task.agent.as_deref().unwrap_or("assistant");
            format!("{} ({agent}): {}", task.goal.lines().next().unwrap_or_default(), task.standing.as_str())
        };
        let whole = tasks.iter().all(|task| task.standing == TaskStatus::Done) && self.failed_parts(run).is_empty();
        let logged = task_log::LoggedTask {
            known: task_log::TaskLogMetadata {
                timestamp: iso_timestamp(turn.now.0),
                action: "task_execution".to_owned(),
                status: if whole { "completed" } else { "failed" }.to_owned(),
                run: id.to_string(),
                agent: run.about.agent.clone(),
                ..task_log::TaskLogMetadata::default()
            },
            goal: goal_without_mention(run),
            actions: tasks.iter().map(line).collect(),
            results: self.run_summary_text(&files.volumes, run),
            code: Vec::new(),
        };
        let path = format!("{home}/{MEMORY_FOLDER}/{}", task_log::TASK_LOG_FILE);
        let volume = files.volumes.memory_home(run.about.volume);
        // Otherwise there would seem to be such a file in the project.
        let place = if volume == run.about.volume { "" } else { "the memory on this device: " };
        let logged = self.mask_secrets(logged.to_markdown());
        if self.setup().is_some_and(|setup| setup.config.memory.learn) {
            files.write_memory_note(turn, sync, volume, &path, None, Some(logged));
            self.add_program_step(turn, sync, id, None, format!("Logged in {place}{path}."));
        }
        PhaseOutcome::Finished
    }

    pub(super) fn output_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        sync: &mut SyncState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get(&id) else { return PhaseOutcome::Waiting };
        let words = match self.outputs_of(volumes, run).as_slice() {
            [] => "No file was made.".to_owned(),
            files => format!("Made: {}.", files.join(", ")),
        };
        self.add_program_step(turn, sync, id, None, words);
        PhaseOutcome::Finished
    }

    /// Returns a sentence for each delegated run that gave an answer although its calls failed.
    fn failed_parts(&self, run: &AgentRun) -> Vec<String> {
        let parts = self.run_family(run.id).into_iter().filter(|id| *id != run.id);
        let failed = parts.filter_map(|id| {
            let part = self.runs.get(&id).filter(|part| part.about.ending == Some(RunEnding::Done))?;
            let calls = self.completed_calls_of(part);
            let lost = run_outcome::outcome_of_calls(RunEnding::Done, &calls) == experience::RunOutcome::Failure;
            lost.then(|| run_outcome::failure_sentences(&calls).into_iter().next())?
        });
        failed.collect()
    }

    /// Returns files created by delegated runs, and those in the project's output folder.
    fn outputs_of(&self, volumes: &VolumesState, run: &AgentRun) -> Vec<String> {
        let mut files: BTreeSet<String> = BTreeSet::new();
        for id in self.run_family(run.id) {
            let Some(one) = self.runs.get(&id).filter(|_| id != run.id) else { continue };
            for change in &one.changes {
                let new = matches!(change.what, ChangeKind::Created { .. } | ChangeKind::Bytes { before: None, .. });
                if new && change.undone.is_empty() {
                    files.insert(change.path.clone());
                }
            }
        }
        if let (Some(home), Some(volume)) = (run.project_folder(), volumes.by_id.get(&run.about.volume)) {
            let below = format!("{home}/output/");
            files.extend(volume.files.keys().filter(|path| path.starts_with(&below)).cloned());
        }
        files.into_iter().filter(|path| !path.ends_with(".gitkeep")).take(50).collect()
    }

    /// Summarizes an orchestrating run, task by task.
    fn run_summary_text(&self, volumes: &VolumesState, run: &AgentRun) -> String {
        let tasks = run.tasks();
        if run.about.agent == PLANNER_AGENT {
            let lines: Vec<String> = tasks.iter().map(|task| format!("- {} ({})", task.goal, task.id)).collect();
            let path = format!("{}/{}.md", task_block::TASKS_FOLDER, planner::slug(&goal_without_mention(run)));
            return format!(
                "The plan is in {path}; `tracebook tasks run {path}` carries it out.\n{}",
                lines.join("\n")
            );
        }
        let done = tasks.iter().filter(|task| task.standing == TaskStatus::Done).count();
        let mut words = format!("{done} of {} tasks are done.", tasks.len());
        for task in &tasks {
            let last = calls_of_tool(run, BuiltInTool::AskAgent)
                .filter(|(known, _)| argument_text(known, "task") == task.id)
                .last();
            let said = last.and_then(|(_, result)| result).map_or("", |(_, said)| said);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            let said = &said[..said.floor_char_boundary(MAX_SUMMARIZED_ANSWER_BYTES)];
            let goal = task.goal.lines().next().unwrap_or_default();
            let colon = if said.is_empty() { "" } else { ": " };
            words.push_str(&format!("\n- {goal} ({}){colon}{said}", task.standing.as_str()));
        }
        let failed = self.failed_parts(run);
        if !failed.is_empty() {
            words.push_str(&format!("\n\nWhat was called failed in these parts: {}", failed.join("; ")));
        }
        let files = self.outputs_of(volumes, run);
        if !files.is_empty() {
            words.push_str(&format!("\n\nFiles: {}", files.join(", ")));
        }
        words
    }

    pub(super) fn memory_phase(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get(&id) else { return PhaseOutcome::Waiting };
        let (Some(home), Some(plan)) = (run.project_folder(), current_plan(run)) else { return PhaseOutcome::Finished };
        let tasks = run.tasks();
        let failed = self.failed_parts(run);
        let whole = tasks.iter().all(|task| task.standing == TaskStatus::Done) && failed.is_empty();
        let failures = calls_of_tool(run, BuiltInTool::AskAgent)
            .filter_map(|(_, result)| result.filter(|(good, _)| !good))
            .map(|(_, why)| why);
        let first = failures.map(run_outcome::failure_reason).chain(failed).next();
        let mut parts = vec![SYSTEM_AGENT.to_owned()];
        for task in &tasks {
            let agent = task.agent.clone().unwrap_or_else(|| "assistant".to_owned());
            if !parts.contains(&agent) {
                parts.push(agent);
            }
        }
        let came = match (whole, &first) {
            (true, None) => experience::RunOutcome::Success,
            (true, Some(_)) => experience::RunOutcome::SuccessWithRecovery,
            (false, _) => experience::RunOutcome::Failure,
        };
        let went_well = format!("{} tasks in this order went well: {}.", tasks.len(), steps_of(&tasks));
        let lesson = match (whole, first) {
            (true, None) => went_well,
            (true, Some(why)) => format!("{went_well}\na task failed: {why}"),
            (false, Some(why)) => why,
            (false, None) => "Not all tasks were done.".to_owned(),
        };
        let new = Experience {
            experience_id: format!("exp_{}", id.to_string().chars().take(8).collect::<String>()),
            project_name: plan.project,
            primary_goal: self.mask_secrets(goal_without_mention(run)),
            final_outcome: came,
            components_used: parts,
            files_created: self.outputs_of(&files.volumes, run).len() as u64,
            output_summary: self.mask_secrets(self.run_summary_text(&files.volumes, run)),
            execution_time_ms: u64::try_from(turn.now.0.saturating_sub(run.about.start_time)).unwrap_or(0),
            learnings_or_issues: self.mask_secrets(lesson),
            source: format!("run {id}"),
            step: run.steps.last().map(|last| step_address(id, last.id)).unwrap_or_default(),
            note: format!("{home}/{}/plan.md", task_block::TASKS_FOLDER),
            author: SYSTEM_AGENT.to_owned(),
            ..Experience::default()
        };
        let path = format!("{home}/{MEMORY_FOLDER}/{}", experience::EXPERIENCE_LOG_FILE);
        let volume = files.volumes.memory_home(run.about.volume);
        if self.setup().is_some_and(|setup| setup.config.memory.learn) {
            files.write_memory_note(turn, sync, volume, &path, Some(new.with_limits(turn.now.0)), None);
        }
        PhaseOutcome::Finished
    }

    /// Appends what was decided about a run's plan to the decision log of its project.
    fn log_decisions(&self, turn: &mut ApplyContext<'_>, files: &mut FilesState, sync: &mut SyncState, id: DocId) {
        let learns = self.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.runs.get(&id).filter(|run| learns && current_plan(run).is_some()) else { return };
        let agent_of = |task: TaskBlock| {
            let asked = calls_of_tool(run, BuiltInTool::AskAgent);
            let last = asked.filter(|(known, _)| argument_text(known, "task") == task.id).last();
            let agent = last.map(|(known, _)| argument_text(known, "agent").to_owned());
            (task, agent)
        };
        let decisions = PlanDecisions {
            at: turn.now.0,
            run: id.to_string(),
            goal: goal_without_mention(run),
            source: match (run.orchestrator.was_given, is_planned_by_rules(run)) {
                (true, _) => "from its note",
                (false, true) => "made by rules",
                (false, false) => "made by a model",
            },
            tasks: run.tasks().into_iter().map(agent_of).collect(),
            approvals: &run.approvals,
        };
        let text = self.mask_secrets(decisions.to_markdown());
        let home = run.project_folder().map_or_else(String::new, |home| format!("{home}/"));
        let volume = files.volumes.memory_home(run.about.volume);
        let path = format!("{home}{MEMORY_FOLDER}/{DECISION_LOG_FILE}");
        files.write_memory_note(turn, sync, volume, &path, None, Some(text));
    }

    /// Ends an orchestrating run after all phases, with its summary as the answer. If a task failed, the run can be
    /// resumed.
    pub(super) fn end_orchestrated_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        self.log_decisions(turn, files, sync, id);
        let Some(run) = self.runs.get(&id) else { return };
        let words = self.run_summary_text(&files.volumes, run);
        let left: Vec<String> = run
            .tasks()
            .iter()
            .filter(|task| !matches!(task.standing, TaskStatus::Done | TaskStatus::Cancelled))
            .map(|task| task.id.clone())
            .collect();
        if !left.is_empty() && run.about.agent != PLANNER_AGENT {
            let words = format!("{words}\n\nLeft: {}. Resume the run to try them again.", left.join(", "));
            // When resumed, the run continues with the work phase.
            if let Some(run) = self.runs.get_mut(&id) {
                run.about.phase = WORK_PHASE;
            }
            return self.fail_run(turn, files, sync, workspace, id, (words, RunEnding::Failed));
        }
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, words.clone(), turn.now.0)
        };
        let made = new_step(turn, run.last_step(), StepKind::FinalAnswer { content: words });
        self.end_run(
            turn,
            files,
            sync,
            workspace,
            id,
            (RunEnding::Done, RunRecord { steps: vec![made], messages: vec![message], ..RunRecord::default() }),
        );
    }
}

fn steps_of(tasks: &[TaskBlock]) -> String {
    let goals: Vec<&str> = tasks.iter().map(|task| task.goal.lines().next().unwrap_or_default()).collect();
    goals.join("; ")
}
