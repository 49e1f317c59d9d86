//! `memory bearing` and `memory context`: what is remembered of a goal, and of a task of a plan by kind of memory.

use super::super::agents::wait_for_setup;
use super::super::{CliError, CommandContext, EXIT_DONE};
use super::experiences::today;
use super::{DELETION_TIMEOUT, RememberedProject};
use crate::tasks::find_plan;
use agent::memory::experience::{Experience, MemoryTier};
use agent::memory::insight::RecalledItem;
use host::search::SearchMode;
use serde_json::{Value, json};

/// The parts of a task's context, and the maximum number of items of each.
const CONTEXT_PARTS: [(&str, usize); 4] = [("short_term", 10), ("long_term", 5), ("episodic", 3), ("strategic", 5)];

/// Returns what is remembered of a goal in a project, best first, with the experiences among it. The agents' setup must
/// have been read.
fn recalled_items(
    scene: &CommandContext<'_>,
    mut project: RememberedProject,
    goal: &str,
) -> Result<Vec<(RecalledItem, Option<Experience>)>, CliError> {
    let (search, memory) = (scene.handle.search(), &project.memory);
    let near = host::agents::project_memory::nearest_experiences(search, memory, goal, SearchMode::Both);
    project.memory.near = near;
    let (memory, goal) = (project.memory, goal.to_owned());
    Ok(scene.handle.read(move |session| {
        let schemas = session.tool_schemas("assistant");
        let trust = |trace: &_| session.trace_trust(trace);
        let found = memory.relevant_items(&goal, None, "assistant", &schemas, today(), &trust);
        let experience = |name: &str| memory.entries.iter().find(|entry| entry.experience.experience_id == name);
        let whole = |one: RecalledItem| {
            let known = experience(&one.name).map(|entry| entry.experience.clone());
            (one, known)
        };
        found.into_iter().map(whole).collect()
    })?)
}

/// Waits until memory can be searched.
fn wait_for_memory(scene: &CommandContext<'_>) -> Result<(), CliError> {
    wait_for_setup(scene)?;
    // Items that aren't indexed yet are matched by words.
    let _ = scene.handle.search().wait_until_indexed(DELETION_TIMEOUT);
    Ok(())
}

fn item_json(item: &RecalledItem, experience: Option<&Experience>) -> Value {
    let mut line = serde_json::to_value(item).unwrap_or_default();
    if let Some(experience) = experience {
        line["learned"] = json!(experience.learnings_or_issues);
    }
    line
}

/// Prints what fits a goal.
pub(super) fn recall_for_goal(
    scene: &mut CommandContext<'_>,
    all: Vec<RememberedProject>,
    goal: &str,
) -> Result<u8, CliError> {
    wait_for_memory(scene)?;
    for project in all {
        for (one, experience) in recalled_items(scene, project, goal)? {
            match scene.json {
                true => writeln!(scene.out, "{}", item_json(&one, experience.as_ref()))?,
                false => writeln!(scene.out, "{} {}  {}  ({})", one.kind, one.name, one.what, one.why)?,
            }
        }
    }
    Ok(EXIT_DONE)
}

/// Returns the part of a task's context to which an item belongs. Traces are the strategies.
fn context_part(experience: Option<&Experience>) -> &'static str {
    match experience.map(|experience| experience.tier) {
        Some(MemoryTier::ShortTerm) => "short_term",
        Some(MemoryTier::LongTerm) => "long_term",
        Some(MemoryTier::Episodic) => "episodic",
        None => "strategic",
    }
}

/// Prints what is remembered of a task of a plan, by kind of memory.
pub(super) fn print_task_context(
    scene: &mut CommandContext<'_>,
    all: Vec<RememberedProject>,
    word: &str,
) -> Result<u8, CliError> {
    let (note, tasks, id) = find_plan(scene, word)?;
    let task = tasks.into_iter().find(|task| Some(&task.id) == id.as_ref());
    let task = task.ok_or_else(|| CliError::usage("say which task of the plan: PLAN#TASK"))?;
    let volume = scene.handle.read(move |session| session.locate_file(note).map(|(volume, _)| volume))?;
    wait_for_memory(scene)?;
    let mut found = Vec::new();
    for project in all.into_iter().filter(|project| Some(project.id) == volume) {
        found.extend(recalled_items(scene, project, &task.goal)?);
    }
    let part = |name: &str, most: usize| {
        let items = found.iter().filter(|(_, experience)| context_part(experience.as_ref()) == name);
        items.take(most).collect::<Vec<_>>()
    };
    if scene.json {
        let mut context = json!({"task": task.id, "goal": task.goal});
        for (name, most) in CONTEXT_PARTS {
            let items = part(name, most).into_iter().map(|(item, experience)| item_json(item, experience.as_ref()));
            context[name] = items.collect();
        }
        writeln!(scene.out, "{context}")?;
        return Ok(EXIT_DONE);
    }
    for (name, most) in CONTEXT_PARTS {
        let items = part(name, most);
        if !items.is_empty() {
            writeln!(scene.out, "{name}")?;
        }
        for (one, _) in items {
            writeln!(scene.out, "  {} {}  {}  ({})", one.kind, one.name, one.what, one.why)?;
        }
    }
    Ok(EXIT_DONE)
}
