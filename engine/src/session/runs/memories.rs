//! What runs leave behind, and what they are told of it: an experience for each that did something, a task in the log
//! of the session, and before the next one what bears on its goal.

use super::addresses::step_address;
use super::{Record, Run, step};
use crate::notice::Notice;
use crate::session::{Reject, Session, Turn};
use agent::memory::experience::{self, Experience, Outcome};
use agent::memory::learn::Call;
use agent::memory::trace::iso;
use agent::memory::{self, Memory, insight, learn, log, outcome};
use agent::quote;
use store::{ChangeKind, DocId, Ending, Message, MessageId, Role, StepKind};
use text::task::Day;

/// Of an answer so much is kept as a summary, in bytes.
const SUMMARY: usize = 400;
/// Of what failed in a run so many things are remembered.
const LESSONS: usize = 5;

impl Session {
    /// Shows a run what bears on its goal, but for what the user has dropped: a step, and a message for the model.
    pub(super) fn consult(&mut self, turn: &mut Turn<'_>, id: DocId, memory: &Memory, record: &mut Record) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let about = &run.about;
        let today = Day(turn.now.0.div_euclid(86_400_000));
        let note = about.note.and_then(|note| self.place(note)).map(|(_, path)| path.to_owned());
        let schemas = self.schemas_of(&self.definition_of(run));
        let mut bearing = memory.bears(&about.prompt, note.as_deref(), &about.agent, &schemas, today);
        // What is said to be left out is there.
        let (without, unknown): (Vec<String>, Vec<String>) =
            run.remembered.recall.without.iter().cloned().partition(|name| memory.knows(name));
        bearing.retain(|one| !without.contains(&one.name));
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| quote::inline(name, 200)).collect();
            let content = format!("Nothing is remembered under these names: {}.", names.join(", "));
            let mut made = step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
            made.route = Some("notice".to_owned());
            record.steps.push(made);
        }
        let Some(words) = insight::told_of(&bearing, &without) else { return };
        let mut made = step(turn, run.last_step(), StepKind::Thinking { content: words, is_streaming: None });
        made.route = Some("memory".to_owned());
        record.steps.push(made);
        bearing.retain(|one| one.kind == insight::EXPERIENCE);
        if !bearing.is_empty() {
            let told = self.without_secrets(memory.told(&bearing));
            let head = record.messages.last().map_or(run.about.head, |message| message.id);
            record.messages.push(Message {
                parents: vec![head],
                run: Some(id),
                ..Message::new(MessageId(turn.name()), Role::System, told, turn.now.0)
            });
        }
    }

    /// What a run did becomes an experience and a task in the log, where it did something by a model.
    pub(super) fn remember_run(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let wanted = self.agents.setup().is_some_and(|setup| setup.config.memory.learn);
        let Some(run) = self.agents.runs.get(&id).filter(|run| wanted && run.about.iteration > 0) else { return };
        if super::lead::leads(run) {
            return; // it remembers in its own phases, and each part of it for itself
        }
        let about = &run.about;
        let Some(ending) = about.ending.filter(|ending| *ending != Ending::Cancelled) else { return };
        let calls = self.calls_of(run);
        if calls.is_empty() {
            return;
        }
        let (outcome, tools, learnings) = self.came_of(run, ending, &calls);
        let clip = |text: &str, most: usize| text[..text.floor_char_boundary(most)].trim().to_owned();
        let created = |change: &&store::Change| {
            matches!(change.what, ChangeKind::Created { .. } | ChangeKind::Bytes { before: None, .. })
        };
        let note = about.note.and_then(|note| self.place(note)).map(|(_, path)| path.to_owned());
        let folder = match &run.project {
            Some(project) => format!("{}/{project}/{}", memory::PROJECTS, memory::FOLDER),
            None => memory::folder(note.as_deref()),
        };
        let own = folder.strip_prefix(&format!("{}/", memory::PROJECTS)).and_then(|rest| rest.split('/').next());
        let volume = self.volumes.get(&about.volume).map_or("", |volume| volume.name.as_str());
        let ended = about.ended.unwrap_or(turn.now.0);
        let answer = learn::answer(&run.steps).unwrap_or_default();
        let one = Experience {
            experience_id: format!("exp_{}", id.to_string().chars().take(8).collect::<String>()),
            project_name: own.unwrap_or(volume).to_owned(),
            primary_goal: self.without_secrets(about.prompt.clone()),
            final_outcome: outcome,
            components_used: std::iter::once(about.agent.clone()).chain(tools).collect(),
            files_created: run.changes.iter().filter(created).count() as u64,
            output_summary: clip(&self.without_secrets(answer.to_owned()), SUMMARY),
            execution_time_ms: u64::try_from(ended.saturating_sub(about.start_time)).unwrap_or(0),
            learnings_or_issues: self.without_secrets(learnings),
            source: format!("run {id}"),
            step: run.steps.last().map(|last| step_address(id, last.id)).unwrap_or_default(),
            note: note.clone().unwrap_or_default(),
            author: about.agent.clone(),
            ..Experience::default()
        };
        let one = one.bounded(turn.now.0);
        let task = log::Task {
            known: log::Known {
                timestamp: iso(ended),
                action: "task_execution".to_owned(),
                status: if outcome.is_good() { "completed" } else { "failed" }.to_owned(),
                run: id.to_string(),
                agent: about.agent.clone(),
                ..log::Known::default()
            },
            goal: about.prompt.clone(),
            actions: calls.iter().map(log::Task::action).collect(),
            results: clip(answer, 4 * SUMMARY),
            code: calls.iter().filter_map(log::Task::code_of).collect(),
        };
        let volume = about.volume;
        self.put_into_memory(turn, volume, &format!("{folder}/{}", experience::LOG), Some(one), None);
        let logged = self.without_secrets(task.written());
        self.put_into_memory(turn, volume, &format!("{folder}/{}", log::LOG), None, Some(logged));
    }

    /// The calls of a run, with what is known of their tools.
    pub(super) fn calls_of(&self, run: &Run) -> Vec<Call> {
        let calls = learn::calls(&run.steps, &run.approvals, &run.changes);
        learn::known_calls(calls, &self.tool_facts(&self.definition_of(run)))
    }

    /// What came of a run that ended so and made these calls, the tools that it got somewhere with, and what is learned
    /// from it: what worked in the first line, and each thing that failed in a line of its own.
    fn came_of(&self, run: &Run, ending: Ending, calls: &[Call]) -> (Outcome, Vec<String>, String) {
        let came = outcome::of(ending, calls);
        let mut lines = outcome::failures(calls);
        lines.truncate(LESSONS);
        if came.is_good() {
            let tools = outcome::worked(calls);
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
            StepKind::Error { message, .. } => Some(outcome::reason(message)),
            StepKind::ToolResult { .. }
            | StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. } => None,
        });
        // Why the run ended stands first, where it ended with no answer.
        if let Some(why) = last.filter(|_| ending != Ending::Done) {
            lines.insert(0, why);
        }
        if lines.is_empty() {
            lines.push("It came to no answer.".to_owned());
        }
        (came, tools, lines.join("\n"))
    }

    /// Brings something into a note of memory, which is made where there is none.
    pub(in crate::session) fn put_into_memory(
        &mut self,
        turn: &mut Turn<'_>,
        volume: DocId,
        path: &str,
        experience: Option<Experience>,
        task: Option<String>,
    ) {
        let told = Notice::Remembered { volume, path: path.to_owned() };
        let Some(file) = self.file_of(volume, path) else {
            let text = match (experience, task) {
                (Some(one), _) => experience::admitted("", one),
                (None, Some(task)) => Some(log::logged("", &task)),
                (None, None) => None,
            };
            if let Some(text) = text {
                self.keep_note(turn, volume, path, &text);
                self.notify(turn, told);
            }
            return;
        };
        let made = match (experience, task) {
            (Some(one), _) => self.remember(turn, file, one),
            (None, Some(task)) => self.log_task(turn, file, task),
            (None, None) => Ok(()),
        };
        match made {
            Ok(()) => self.notify(turn, told),
            Err(Reject(why)) => {
                self.problems.push(format!("what was done could not be remembered ({why}): {path}"));
            }
        }
    }
}
