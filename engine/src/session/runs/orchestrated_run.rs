//! State of an orchestrating run derived from its steps: phases, plan, tasks and project.

use crate::session::state::agent_run::AgentRun;
pub use agent::agent_phases::PHASE_NAMES;
pub(in crate::session) use agent::agent_phases::{
    LEAD_AGENT, PLANNER_AGENT, SYSTEM_AGENT, WORK_PHASE, agent_phases, is_orchestrator, phase_name,
};
use agent::memory::PROJECTS_FOLDER;
use agent::model_context::mentions;
use agent::planner;
use agent::planner::TaskPlan;
use agent::task_block::{TaskBlock, TaskStatus};
use agent::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use store::{StepKind, TodoStatus};

/// Returns whether a run is orchestrating.
pub(in crate::session) fn is_orchestrated(run: &AgentRun) -> bool {
    is_orchestrator(&run.about.agent)
}

/// Returns the name of a phase of a run, and the text of the step that announces the phase.
pub(in crate::session) fn phase_title(run: &AgentRun, phase: u8) -> (&'static str, String) {
    let own = agent_phases(&run.about.agent);
    let name = phase_name(&run.about.agent, phase);
    let place = own.iter().position(|known| *known == phase).map_or(0, |at| at + 1);
    (name, format!("Phase {place} of {}: {name}.", own.len()))
}

/// Returns the goal of a run without the mention of its agent.
pub(in crate::session) fn goal_without_mention(run: &AgentRun) -> String {
    let (prompt, agent) = (&run.about.prompt, run.about.agent.to_lowercase());
    let mentions = mentions(prompt);
    let is_part = |name: &&String| name.len() > 2 && agent.contains(&name.to_lowercase());
    let called = mentions.iter().find(|name| **name == run.about.agent).or_else(|| mentions.iter().find(is_part));
    called.map_or_else(|| prompt.clone(), |name| prompt.replacen(&format!("@{name}"), "", 1)).trim().to_owned()
}

/// Returns the calls of a tool in a run with their results, oldest first; `None` as the result of a pending call.
pub(in crate::session) fn calls_of_tool(
    run: &AgentRun,
    tool: BuiltInTool,
) -> impl Iterator<Item = (&Map<String, Value>, Option<(bool, &str)>)> {
    agent::sent_task::calls_of_tool(&run.steps, tool)
}

pub(in crate::session) fn argument_text<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the plan of a run; `None` until a plan was accepted.
pub(in crate::session) fn current_plan(run: &AgentRun) -> Option<TaskPlan> {
    let (arguments, _) =
        calls_of_tool(run, BuiltInTool::Plan).filter(|(_, result)| result.is_some_and(|(good, _)| good)).last()?;
    let mut plan = planner::read_plan(arguments).ok()?;
    if plan.project.is_empty() {
        plan.project = planner::slug(&goal_without_mention(run));
    }
    Some(plan)
}

/// Returns whether the run's plan was made by rules or given by the user, and not by a model.
pub(in crate::session) fn is_planned_by_rules(run: &AgentRun) -> bool {
    let called = |step: &&store::ExecutionStep| {
        matches!(&step.kind, StepKind::ToolCall { tool_name,
        .. } if BuiltInTool::Plan.is_named(tool_name))
    };
    run.steps.iter().rev().find(called).is_some_and(|step| step.route.is_some())
}

/// Returns the status of a task, from its results and the user's changes.
pub(in crate::session) fn task_status(run: &AgentRun, task: &TaskBlock) -> TaskStatus {
    let last = calls_of_tool(run, BuiltInTool::AskAgent)
        .filter(|(arguments, _)| argument_text(arguments, "task") == task.id)
        .last();
    let said = run.todos.iter().find(|todo| todo.id == task.id).map(|todo| todo.status);
    match (said, last) {
        (Some(TodoStatus::Cancelled), _) => TaskStatus::Cancelled,
        (Some(TodoStatus::Completed), _) | (_, Some((_, Some((true, _))))) => TaskStatus::Done,
        (_, Some((_, Some((false, _))))) => TaskStatus::Failed,
        (_, Some((_, None))) => TaskStatus::Running,
        (_, None) => TaskStatus::Open,
    }
}

/// Returns the project that a run leads, if any.
pub(in crate::session) fn orchestrated_project(run: &AgentRun) -> Option<String> {
    if run.about.agent == SYSTEM_AGENT { current_plan(run).map(|plan| plan.project) } else { None }
}

pub(in crate::session) fn into_object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

impl AgentRun {
    /// Returns the tasks of the run's plan with their status; empty if there's no plan.
    pub fn tasks(&self) -> Vec<TaskBlock> {
        let plan = current_plan(self).unwrap_or_default();
        plan.tasks.into_iter().map(|task| TaskBlock { standing: task_status(self, &task), ..task }).collect()
    }

    /// Returns the folder of the project that the run leads, if any.
    pub(in crate::session) fn project_folder(&self) -> Option<String> {
        orchestrated_project(self).map(|project| format!("{PROJECTS_FOLDER}/{project}"))
    }
}
