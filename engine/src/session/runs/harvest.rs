//! What comes of a run that leads: logged, listed, summarised, remembered. The last of its phases.

use super::addresses::step_address;
use super::lead::{Gone, PLANNER, SYSTEM, WORK, goal, made, planned, text};
use super::team::DELEGATE;
use super::{Record, Run, step};
use crate::session::{Session, Turn};
use agent::block::{self, Standing, TaskBlock};
use agent::memory::experience::{self, Experience};
use agent::memory::trace::iso;
use agent::memory::{FOLDER, log, outcome};
use agent::planner;
use std::collections::BTreeSet;
use store::{ChangeKind, DocId, Ending, Message, MessageId, Role, StepKind};

/// Of what an agent has answered so much stands in the summary, in bytes.
const ANSWER: usize = 300;

impl Session {
    pub(super) fn log_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get(&id) else { return Gone::Waits };
        let Some(home) = run.home() else { return Gone::On };
        let tasks = run.tasks();
        let line = |task: &TaskBlock| {
            let agent = task.agent.as_deref().unwrap_or("assistant");
            format!("{} ({agent}): {}", task.goal.lines().next().unwrap_or_default(), task.standing.word())
        };
        let whole = tasks.iter().all(|task| task.standing == Standing::Done) && self.failed_parts(run).is_empty();
        let logged = log::Task {
            known: log::Known {
                timestamp: iso(turn.now.0),
                action: "task_execution".to_owned(),
                status: if whole { "completed" } else { "failed" }.to_owned(),
                run: id.to_string(),
                agent: run.about.agent.clone(),
                ..log::Known::default()
            },
            goal: goal(run),
            actions: tasks.iter().map(line).collect(),
            results: self.summary(run),
            code: Vec::new(),
        };
        let (volume, path) = (run.about.volume, format!("{home}/{FOLDER}/{}", log::LOG));
        let logged = self.without_secrets(logged.written());
        self.put_into_memory(turn, volume, &path, None, Some(logged));
        self.remark(turn, id, None, format!("Logged in {path}."));
        Gone::On
    }

    pub(super) fn output_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get(&id) else { return Gone::Waits };
        let words = match self.outputs_of(run).as_slice() {
            [] => "No file was made.".to_owned(),
            files => format!("Made: {}.", files.join(", ")),
        };
        self.remark(turn, id, None, words);
        Gone::On
    }

    /// The parts of a run's work that came to an answer although what they called failed, a sentence each.
    fn failed_parts(&self, run: &Run) -> Vec<String> {
        let parts = self.agents.family(run.id).into_iter().filter(|id| *id != run.id);
        let failed = parts.filter_map(|id| {
            let part = self.agents.runs.get(&id).filter(|part| part.about.ending == Some(Ending::Done))?;
            let calls = self.calls_of(part);
            let lost = outcome::of(Ending::Done, &calls) == experience::Outcome::Failure;
            lost.then(|| outcome::failures(&calls).into_iter().next())?
        });
        failed.collect()
    }

    /// The files that those have made to whom a run handed work, and what lies in the project's folder of output.
    fn outputs_of(&self, run: &Run) -> Vec<String> {
        let mut files: BTreeSet<String> = BTreeSet::new();
        for id in self.agents.family(run.id) {
            let Some(one) = self.agents.runs.get(&id).filter(|_| id != run.id) else { continue };
            for change in &one.changes {
                let new = matches!(change.what, ChangeKind::Created { .. } | ChangeKind::Bytes { before: None, .. });
                if new && change.undone.is_empty() {
                    files.insert(change.path.clone());
                }
            }
        }
        if let (Some(home), Some(volume)) = (run.home(), self.volumes.get(&run.about.volume)) {
            let below = format!("{home}/output/");
            files.extend(volume.files.keys().filter(|path| path.starts_with(&below)).cloned());
        }
        files.into_iter().filter(|path| !path.ends_with(".gitkeep")).take(50).collect()
    }

    /// What came of a run that leads, task by task.
    fn summary(&self, run: &Run) -> String {
        let tasks = run.tasks();
        if run.about.agent == PLANNER {
            let lines: Vec<String> = tasks.iter().map(|task| format!("- {} ({})", task.goal, task.id)).collect();
            let path = format!("{}/{}.md", block::TASKS, planner::slug(&goal(run)));
            return format!(
                "The plan is in {path}; `tracebook tasks run {path}` carries it out.\n{}",
                lines.join("\n")
            );
        }
        let done = tasks.iter().filter(|task| task.standing == Standing::Done).count();
        let mut words = format!("{done} of {} tasks are done.", tasks.len());
        for task in &tasks {
            let last = made(run, DELEGATE).filter(|(known, _)| text(known, "task") == task.id).last();
            let said = last.and_then(|(_, result)| result).map_or("", |(_, said)| said);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            let said = &said[..said.floor_char_boundary(ANSWER)];
            let goal = task.goal.lines().next().unwrap_or_default();
            let colon = if said.is_empty() { "" } else { ": " };
            words.push_str(&format!("\n- {goal} ({}){colon}{said}", task.standing.word()));
        }
        let failed = self.failed_parts(run);
        if !failed.is_empty() {
            words.push_str(&format!("\n\nWhat was called failed in these parts: {}", failed.join("; ")));
        }
        let files = self.outputs_of(run);
        if !files.is_empty() {
            words.push_str(&format!("\n\nFiles: {}", files.join(", ")));
        }
        words
    }

    pub(super) fn memory_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get(&id) else { return Gone::Waits };
        let (Some(home), Some(plan)) = (run.home(), planned(run)) else { return Gone::On };
        let tasks = run.tasks();
        let failed = self.failed_parts(run);
        let whole = tasks.iter().all(|task| task.standing == Standing::Done) && failed.is_empty();
        let failures =
            made(run, DELEGATE).filter_map(|(_, result)| result.filter(|(good, _)| !good)).map(|(_, why)| why);
        let first = failures.map(outcome::reason).chain(failed).next();
        let mut parts = vec![SYSTEM.to_owned()];
        for task in &tasks {
            let agent = task.agent.clone().unwrap_or_else(|| "assistant".to_owned());
            if !parts.contains(&agent) {
                parts.push(agent);
            }
        }
        let came = match (whole, &first) {
            (true, None) => experience::Outcome::Success,
            (true, Some(_)) => experience::Outcome::SuccessWithRecovery,
            (false, _) => experience::Outcome::Failure,
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
            primary_goal: self.without_secrets(goal(run)),
            final_outcome: came,
            components_used: parts,
            files_created: self.outputs_of(run).len() as u64,
            output_summary: self.without_secrets(self.summary(run)),
            execution_time_ms: u64::try_from(turn.now.0.saturating_sub(run.about.start_time)).unwrap_or(0),
            learnings_or_issues: self.without_secrets(lesson),
            source: format!("run {id}"),
            step: run.steps.last().map(|last| step_address(id, last.id)).unwrap_or_default(),
            note: format!("{home}/{}/plan.md", block::TASKS),
            author: SYSTEM.to_owned(),
            ..Experience::default()
        };
        let (volume, path) = (run.about.volume, format!("{home}/{FOLDER}/{}", experience::LOG));
        if self.agents.setup().is_some_and(|setup| setup.config.memory.learn) {
            self.put_into_memory(turn, volume, &path, Some(new.bounded(turn.now.0)), None);
        }
        Gone::On
    }

    /// All phases are over: the summary is the answer. Where a task has failed the run can be let go on.
    pub(super) fn end_lead(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let words = self.summary(run);
        let left: Vec<String> = run
            .tasks()
            .iter()
            .filter(|task| !matches!(task.standing, Standing::Done | Standing::Cancelled))
            .map(|task| task.id.clone())
            .collect();
        if !left.is_empty() && run.about.agent != PLANNER {
            let words = format!("{words}\n\nLeft: {}. Resume the run to try them again.", left.join(", "));
            // It goes on with the work.
            if let Some(run) = self.agents.runs.get_mut(&id) {
                run.about.phase = WORK;
            }
            return self.fail_run(turn, id, words, Ending::Failed);
        }
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            ..Message::new(MessageId(turn.name()), Role::Assistant, words.clone(), turn.now.0)
        };
        let made = step(turn, run.last_step(), StepKind::FinalAnswer { content: words });
        self.end_run(
            turn,
            id,
            Ending::Done,
            Record { steps: vec![made], messages: vec![message], ..Record::default() },
        );
    }
}

fn steps_of(tasks: &[TaskBlock]) -> String {
    let goals: Vec<&str> = tasks.iter().map(|task| task.goal.lines().next().unwrap_or_default()).collect();
    goals.join("; ")
}
