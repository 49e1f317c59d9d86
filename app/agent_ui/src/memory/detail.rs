//! An item on the memory page: an experience, a task from a session log, a trace, or a message of the context.

use super::traces;
use agent::memory::experience::{Experience, ExperienceEntry, RunOutcome};
use agent::memory::{PROJECTS_FOLDER, StoredTrace, task_log};
use agent::model_context;
use std::borrow::Cow;
use store::{DocId, SessionMessage};
use text::task::CalendarDay;

/// A remembered item.
#[derive(Clone, Copy)]
pub(super) enum MemoryItem<'a> {
    Experience(&'a ExperienceEntry),
    /// A task from a session log.
    Task(&'a task_log::TaskLogEntry),
    Trace(&'a StoredTrace),
    /// A message of the context.
    Message(&'a SessionMessage),
}

impl<'a> MemoryItem<'a> {
    /// Returns the item's key on this page.
    pub(super) fn name(self) -> Cow<'a, str> {
        match self {
            MemoryItem::Experience(entry) => Cow::Borrowed(&entry.experience.experience_id),
            MemoryItem::Task(entry) => {
                let known = &entry.task.known;
                Cow::Owned(format!("{} {} {}", entry.path, known.timestamp, known.run))
            }
            MemoryItem::Trace(filed) => Cow::Borrowed(&filed.path),
            MemoryItem::Message(message) => Cow::Owned(message.id.to_string()),
        }
    }

    /// Returns the item's details. `of`: name of its volume.
    pub(super) fn detail(self, of: &str, today: CalendarDay) -> MemoryDetail<'a> {
        match self {
            MemoryItem::Experience(entry) => MemoryDetail::experience(entry, today),
            MemoryItem::Task(entry) => MemoryDetail::task(entry, of),
            MemoryItem::Trace(filed) => MemoryDetail::trace(filed, of),
            MemoryItem::Message(message) => MemoryDetail::message(message),
        }
    }
}

/// Returns the project of a memory file: the one whose folder contains it, otherwise its volume.
pub(super) fn project<'a>(path: &'a str, volume: &'a str) -> &'a str {
    let below = path.strip_prefix(PROJECTS_FOLDER).and_then(|rest| rest.strip_prefix('/'));
    below.and_then(|rest| rest.split('/').next()).unwrap_or(volume)
}

/// Details of a remembered item.
pub(super) struct MemoryDetail<'a> {
    pub(super) name: String,
    /// Accessible name: kind and goal.
    pub(super) label: String,
    /// Path of its note; empty if it has none and is read-only.
    pub(super) path: &'a str,
    pub(super) at: usize,
    pub(super) text: &'a str,
    pub(super) goal: &'a str,
    pub(super) about: String,
    pub(super) came: Option<RunOutcome>,
    /// Whether it's drawn muted, because it no longer counts.
    pub(super) dim: bool,
    pub(super) run: Option<(DocId, String)>,
    pub(super) superseded_by: &'a str,
    pub(super) facts: Vec<(&'static str, String)>,
}

impl<'a> MemoryDetail<'a> {
    fn experience(entry: &'a ExperienceEntry, today: CalendarDay) -> MemoryDetail<'a> {
        let one = &entry.experience;
        let goal = one.primary_goal.lines().next().unwrap_or_default();
        let state = state(one, today);
        let mut about = vec![one.final_outcome.as_str().replace('_', " "), one.tier.as_str().replace('_', " ")];
        about.push(one.project_name.clone());
        about.extend((one.count > 1).then(|| format!("{} times", one.count)));
        about.push(one.timestamp.get(..10).unwrap_or_default().to_owned());
        about.extend(state.clone());
        about.retain(|part| !part.is_empty());
        let run = one.source.strip_prefix("run ").and_then(|id| id.trim().parse::<DocId>().ok());
        let step = one.step.split_once('#').map_or("", |(_, step)| step).to_owned();
        MemoryDetail {
            name: one.experience_id.clone(),
            label: format!("Experience: {goal}"),
            path: &entry.path,
            at: entry.at,
            text: &entry.text,
            goal,
            about: about.join("  ·  "),
            came: Some(one.final_outcome),
            dim: state.is_some(),
            run: run.map(|run| (run, step)),
            superseded_by: &one.superseded_by,
            facts: facts(one, today),
        }
    }

    fn task(entry: &'a task_log::TaskLogEntry, volume: &str) -> MemoryDetail<'a> {
        let task_log::LoggedTask { known, goal, actions, results, code } = &entry.task;
        let goal = goal.lines().next().unwrap_or_default();
        let day = known.timestamp.get(..10).unwrap_or_default();
        let mut about = vec![known.status.as_str(), "session log", project(&entry.path, volume), day];
        about.retain(|part| !part.is_empty());
        let did: Vec<String> = actions.iter().zip(1..).map(|(one, number)| format!("\n{number}. {one}")).collect();
        let by = if known.agent.is_empty() { String::new() } else { format!(", by {}", known.agent) };
        let from = match known.run.as_str() {
            "" => format!("{}{by}", entry.path),
            run => format!("run {run}{by}"),
        };
        let code: Vec<String> = code.iter().map(|piece| format!("\n{piece}")).collect();
        MemoryDetail {
            name: MemoryItem::Task(entry).name().into_owned(),
            label: format!("Logged: {goal}"),
            path: &entry.path,
            at: entry.at,
            text: &entry.text,
            goal,
            about: about.join("  ·  "),
            came: entry.task.outcome(),
            dim: false,
            run: known.run.parse::<DocId>().ok().map(|run| (run, String::new())),
            superseded_by: "",
            facts: vec![
                ("Asked", entry.task.goal.clone()),
                ("Did", did.concat()),
                ("Led to", results.clone()),
                ("Code", code.concat()),
                ("From", from),
                ("Became an experience", known.consolidated.clone()),
            ],
        }
    }

    fn trace(filed: &'a StoredTrace, volume: &str) -> MemoryDetail<'a> {
        let known = &filed.trace.known;
        let goal = known.goal_text.lines().next().unwrap_or_default();
        let steps = filed.trace.steps.len();
        let used = match known.usage_count {
            0 => "never used".to_owned(),
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let day = known.created_at.get(..10).unwrap_or_default().to_owned();
        let mut about = vec![format!("trace of {steps} steps"), project(&filed.path, volume).to_owned(), used, day];
        about.retain(|part| !part.is_empty());
        MemoryDetail {
            name: filed.path.clone(),
            label: format!("Trace: {goal}"),
            path: &filed.path,
            at: 0,
            text: "",
            goal,
            about: about.join("  ·  "),
            came: Some(RunOutcome::Success),
            dim: false,
            run: None,
            superseded_by: "",
            facts: traces::trace_facts(volume, filed, None),
        }
    }

    fn message(message: &'a SessionMessage) -> MemoryDetail<'a> {
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
        let calls = calls.join(", ");
        let said = message.content.lines().find(|line| !line.trim().is_empty()).unwrap_or("(It said nothing.)");
        let mut about = vec![
            message.role.as_str().to_owned(),
            format!("{} tokens", model_context::estimate_message_tokens(message)),
        ];
        about.extend((!calls.is_empty()).then(|| format!("calls {calls}")));
        about.extend((!message.summary_of.is_empty()).then(|| "a summary".to_owned()));
        MemoryDetail {
            name: MemoryItem::Message(message).name().into_owned(),
            label: format!("In the context: {said}"),
            path: "",
            at: 0,
            text: "",
            goal: said,
            about: about.join("  ·  "),
            came: None,
            dim: false,
            run: message.run.map(|run| (run, String::new())),
            superseded_by: "",
            facts: vec![("Said", message.content.clone()), ("Calls", calls)],
        }
    }
}

fn facts(one: &Experience, today: CalendarDay) -> Vec<(&'static str, String)> {
    let took = if one.execution_time_ms == 0 {
        String::new()
    } else {
        format!("{:.1} s", one.execution_time_ms as f64 / 1_000.0)
    };
    let state = state(one, today);
    let until = if one.expires.is_empty() || state.is_some() { String::new() } else { one.expires.clone() };
    let files = if one.files_created == 0 { String::new() } else { one.files_created.to_string() };
    let beside = if one.note.is_empty() { String::new() } else { format!(", beside {}", one.note) };
    vec![
        ("Learned", one.learnings_or_issues.clone()),
        ("Led to", one.output_summary.clone()),
        ("With", one.components_used.join(", ")),
        ("Took", took),
        ("Files made", files),
        ("From", format!("{}, by {}{beside}", one.source, one.author)),
        ("Counts until", until),
        ("Does not count", state.unwrap_or_default()),
        ("Name", one.experience_id.clone()),
    ]
}

/// Returns why an experience doesn't count, or `None` if it does.
fn state(one: &Experience, today: CalendarDay) -> Option<String> {
    match (one.is_current(today), one.superseded_by.as_str()) {
        (true, _) => None,
        (false, "") => Some(format!("expired on {}", one.expires)),
        (false, by) => Some(format!("superseded by {by}")),
    }
}
