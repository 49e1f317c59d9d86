//! The planner: splits a goal into tasks with dependencies. It uses rules if the goal lists its tasks, otherwise a
//! model that calls a tool with a fixed schema. Both results are checked the same way.

use crate::agent_definition::AgentDefinition;
use crate::agent_registry;
use crate::prompt_quote;
use crate::task_block::{self, TaskBlock, TaskOrderError, TaskStatus};
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub use crate::goal_slug::slug;

/// System prompt of the model that assigns tasks to agents.
pub const ASSIGN_PROMPT: &str = "You decide which agent does which task of a plan, by what each agent is good for. \
    You do none \
                       of the tasks yourself. Call the tool `assign` once, with every task in it.";
/// Maximum length of a task's goal in the assignment prompt, in bytes.
const MAX_SHOWN_GOAL_BYTES: usize = 500;
/// Maximum length of the goal in the task that reviews it, in bytes.
const MAX_REVIEWED_GOAL_BYTES: usize = 2_000;
/// The agent that reviews what others made.
const REVIEW_AGENT: &str = "qa";
/// Maximum number of tasks in a plan made by rules, without the review.
const MAX_RULE_PLANNED_TASKS: usize = 20;

/// An agent that a plan needs and that doesn't exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
pub struct ProposedAgent {
    /// Name of the agent: lowercase letters, digits and `-`.
    pub name: String,
    /// When to use the agent, in one sentence.
    pub description: String,
    /// Instructions for the model.
    pub prompt: String,
}

/// A goal broken down into tasks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TaskPlan {
    /// Name of the project: lowercase letters, digits and `_`.
    pub project: String,
    /// The tasks of the plan.
    pub tasks: Vec<TaskBlock>,
    /// Agents to create for the plan.
    pub agents: Vec<ProposedAgent>,
}

/// Returns the tool with which a model submits a plan.
pub fn plan_tool() -> ToolSpec {
    let name = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,47}$"});
    // Less strict than `name`: users choose task ids, and an agent may be a Python class.
    let word = json!({"type": "string", "pattern": "^[^\\s]{1,60}$"});
    let words = json!({"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 500}});
    ToolSpec {
        name: BuiltInTool::Plan.to_string(),
        description: "Give the plan: the tasks into which the goal is split, each small enough for one agent. A task \
                      begins once those that it needs are done; those that need nothing of each other go side by side."
            .to_owned(),
        parameters: json!({"type": "object", "additionalProperties": false, "required": ["tasks"], "properties": {
            "project": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,47}$", "description": "A short name"},
            "tasks": {"type": "array", "minItems": 1, "maxItems": task_block::MAX_PLAN_TASKS,
                "items": {"type": "object",
                "additionalProperties": false, "required": ["id", "goal"], "properties": {
                    "id": word,
                    "goal": {"type": "string", "minLength": 1, "maxLength": 10000},
                    "type": {"type": "string", "minLength": 1, "maxLength": task_block::MAX_TASK_TYPE_CHARS,
                        "description": "The kind of work, such as implementation, test or review"},
                    "needs": {"type": "array", "items": word, "description": "ids of tasks that must be done before"},
                    "agent": word,
                    "inputs": {"type": "object"},
                    "constraints": words,
                    "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                    "tools_required": words,
                    "mode": {"enum": ["auto", "learner", "follower"]},
                    "risk": {"enum": ["low", "medium", "high"],
                        "description": "high: it can't be taken back, costs money or leaves the project"},
                    "deadline": {"type": "string", "maxLength": 40, "description": "Such as 20 min"},
                    "device": {"type": "string", "minLength": 1, "maxLength": 80,
                        "description": "The other device that does it, only if the user names one"},
                    "checkpoint": {"type": "boolean", "description": "The user is asked before it begins"}}}},
            "agents": {"type": "array", "maxItems": 5, "items": {"type": "object", "additionalProperties": false,
                "required": ["name", "description", "prompt"], "properties": {
                    "name": name, "description": {"type": "string", "maxLength": 500},
                    "prompt": {"type": "string", "minLength": 1, "maxLength": 8000}}},
                "description": "Only where no agent that there is fits"}}}),
        risk: ToolRisk::None,
        permissions: ToolPermissions::default(),
        idempotent: true,
        source: ToolSource::BuiltIn,
    }
}

/// Returns the tool with which a model assigns tasks to agents.
pub fn assign_tool() -> ToolSpec {
    let word = json!({"type": "string", "pattern": "^[^\\s]{1,60}$"});
    ToolSpec {
        name: BuiltInTool::Assign.to_string(),
        description: "Say for each task which of the agents does it: the one that is good for it.".to_owned(),
        parameters: json!({"type": "object", "additionalProperties": false, "required": ["tasks"], "properties": {
            "tasks": {"type": "array", "minItems": 1, "maxItems": task_block::MAX_PLAN_TASKS,
                "items": {"type": "object",
                "additionalProperties": false, "required": ["task", "agent"], "properties": {
                    "task": word, "agent": word}}}}}),
        risk: ToolRisk::None,
        permissions: ToolPermissions::default(),
        idempotent: true,
        source: ToolSource::BuiltIn,
    }
}

/// Returns the prompt that asks which of the agents does which task.
pub fn assignment_prompt<'a>(tasks: impl Iterator<Item = &'a TaskBlock>, agents: &str) -> String {
    let line = |task: &TaskBlock| {
        let goal = &task.goal[..task.goal.floor_char_boundary(MAX_SHOWN_GOAL_BYTES)];
        format!("- {}: {}", task.id, prompt_quote::quote_inline(goal, MAX_SHOWN_GOAL_BYTES))
    };
    let tasks: Vec<String> = tasks.map(line).collect();
    format!("Tasks:\n{}\n\nAgents: {agents}.", tasks.join("\n"))
}

/// Returns the assigned pairs of task and agent, in the model's order.
pub fn parse_assignments(arguments: &Map<String, Value>) -> Vec<(&str, &str)> {
    let pairs = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    pairs.iter().filter_map(|pair| Some((pair.get("task")?.as_str()?, pair.get("agent")?.as_str()?))).collect()
}

/// Why a plan can't be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TaskPlanError {
    /// The arguments aren't a plan.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// The tasks contradict each other.
    #[error(transparent)]
    Order(#[from] TaskOrderError),
    /// The tasks may cost more than the run.
    #[error(
        "the tasks may cost ${sum:.2} together by their \u{201c}Max cost\u{201d}, and the budget is ${budget:.2}; \
         lower what they may cost, or raise the budget"
    )]
    Budget {
        /// What the tasks may cost together, in US dollars.
        sum: f64,
        /// The budget of the run in US dollars.
        budget: f64,
    },
    /// All tasks are done or given up.
    #[error("nothing is left to do in this plan")]
    NothingLeft,
    /// A task needs one that was given up.
    #[error("the task {task} needs {need}, which was given up")]
    NeedGivenUp {
        /// Id of the task.
        task: String,
        /// Id of the task that it needs.
        need: String,
    },
    /// A single task needs one that isn't done.
    #[error("the task {task} needs {need}, which is not done")]
    NeedNotDone {
        /// Id of the task.
        task: String,
        /// Id of the task that it needs.
        need: String,
    },
}

/// Checks what the tasks of a plan may cost together, by their constraints, against the budget of the run.
///
/// # Errors
/// Returns an error if the sum is larger than the budget.
pub fn check_budget(tasks: &[TaskBlock], budget: Option<f64>) -> Result<(), TaskPlanError> {
    let sum: f64 = tasks.iter().filter_map(TaskBlock::budget).sum();
    // Sums of decimal fractions aren't exact.
    match budget.filter(|budget| sum > budget + 1e-9) {
        Some(budget) => Err(TaskPlanError::Budget { sum, budget }),
        None => Ok(()),
    }
}

/// Returns the tasks of a plan in a note that are to be carried out: all that are left, or only this one. They no
/// longer need what is done.
///
/// # Errors
/// Returns an error if the tasks have no valid order, none is left, one needs what can't be done before it, or they may
/// cost more than `budget`.
pub fn tasks_left(
    mut tasks: Vec<TaskBlock>,
    only: Option<&str>,
    budget: Option<f64>,
) -> Result<Vec<TaskBlock>, TaskPlanError> {
    let names: BTreeSet<String> = tasks.iter().flat_map(|task| task.tools_required.clone()).collect();
    task_block::execution_order(&tasks, &names)?;
    let stand: BTreeMap<String, TaskStatus> = tasks.iter().map(|task| (task.id.clone(), task.standing)).collect();
    let left = |task: &TaskBlock| !matches!(task.standing, TaskStatus::Done | TaskStatus::Cancelled);
    tasks.retain(|task| left(task) && only.is_none_or(|only| task.id == only));
    if tasks.is_empty() {
        return Err(TaskPlanError::NothingLeft);
    }
    for task in &mut tasks {
        if let Some(need) = task.needs.iter().find(|need| stand.get(*need) == Some(&TaskStatus::Cancelled)) {
            return Err(TaskPlanError::NeedGivenUp { task: task.id.clone(), need: need.clone() });
        }
        task.needs.retain(|need| stand.get(need) != Some(&TaskStatus::Done));
        if let Some(need) = task.needs.first().filter(|_| only.is_some()) {
            return Err(TaskPlanError::NeedNotDone { task: task.id.clone(), need: need.clone() });
        }
        task.standing = TaskStatus::Open;
    }
    check_budget(&tasks, budget)?;
    Ok(tasks)
}

/// Parses a plan, and gives its tasks ids that a note can hold.
///
/// # Errors
/// Returns an error if the arguments aren't a plan.
pub fn read_plan(arguments: &Map<String, Value>) -> Result<TaskPlan, TaskPlanError> {
    let mut plan: TaskPlan = serde_json::from_value(Value::Object(arguments.clone()))?;
    for task in &mut plan.tasks {
        task.id = task_block::note_task_id(&task.id)?;
        task.needs = task.needs.iter().map(|need| task_block::note_task_id(need)).collect::<Result<_, _>>()?;
    }
    Ok(plan)
}

/// Parses and checks a plan.
///
/// # Errors
/// Returns an error if the arguments aren't a plan, its tasks have no valid order, or they may cost more than `budget`.
pub fn parse_plan(
    arguments: &Map<String, Value>,
    tools: &BTreeSet<String>,
    budget: Option<f64>,
) -> Result<TaskPlan, TaskPlanError> {
    let plan = read_plan(arguments)?;
    task_block::execution_order(&plan.tasks, tools)?;
    check_budget(&plan.tasks, budget)?;
    Ok(plan)
}

/// Parses a line as a list item: its text, and whether the list is numbered.
fn parse_list_item(line: &str) -> Option<(&str, bool)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or_else(|| line.strip_prefix("• "))
    {
        let rest = rest.trim_start_matches("[ ] ").trim();
        return (!rest.is_empty()).then_some((rest, false));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line[digits..].strip_prefix(['.', ')']).filter(|_| (1..4).contains(&digits))?;
    let rest = rest.strip_prefix(' ')?.trim();
    (!rest.is_empty()).then_some((rest, true))
}

/// Words that separate one task from the next.
const TASK_SEPARATORS: [&str; 6] = [", and then ", " and then ", "; then ", ", then ", "; ", ", after that "];

/// Splits a text into sentences, at line ends and at `.` or `!` followed by a space and a capital letter.
fn split_sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, stop) in text.match_indices(['.', '!', '\n']) {
        let after = &text[at + stop.len()..];
        let mut letters = after.chars();
        let ends = stop == "\n"
            || letters.next().is_some_and(char::is_whitespace)
                && after.trim_start().chars().next().is_some_and(char::is_uppercase);
        if ends {
            found.push(&text[from..at]);
            from = at + stop.len();
        }
    }
    found.push(&text[from..]);
    found
}

/// Returns the tasks that a goal lists; otherwise one task. The flag says whether it's a list, so that no model has to
/// plan.
pub fn plan_by_rules(goal: &str) -> (Vec<TaskBlock>, bool) {
    let lines: Vec<(&str, bool)> = goal.lines().filter_map(parse_list_item).take(MAX_RULE_PLANNED_TASKS).collect();
    let listed = lines.len() > 1;
    let parts: Vec<(String, bool)> = if listed {
        lines.into_iter().map(|(words, numbered)| (words.to_owned(), numbered)).collect()
    } else {
        let mut parts: Vec<String> = split_sentences(goal).into_iter().map(str::to_owned).collect();
        for word in TASK_SEPARATORS {
            parts = parts.iter().flat_map(|part| part.split(word).map(str::to_owned).collect::<Vec<_>>()).collect();
        }
        parts.into_iter().map(|part| (part, true)).collect()
    };
    let mut tasks: Vec<TaskBlock> = Vec::new();
    for (words, ordered) in parts {
        let words = words.trim().trim_end_matches(['.', ';', ',']).trim();
        let lower = words.to_lowercase();
        let then = ["then ", "after that ", "finally "].iter().find(|word| lower.starts_with(*word));
        let words = then.map_or(words, |word| words.get(word.len()..).unwrap_or(words).trim_start_matches([',', ' ']));
        if words.is_empty() || tasks.len() == MAX_RULE_PLANNED_TASKS {
            continue;
        }
        let mut letters = words.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        let needs = tasks.last().filter(|_| ordered || then.is_some()).map(|last| last.id.clone());
        tasks.push(TaskBlock {
            id: format!("t{}", tasks.len() + 1),
            goal: format!("{first}{}", letters.as_str()),
            needs: needs.into_iter().collect(),
            ..TaskBlock::default()
        });
    }
    (tasks, listed)
}

/// Returns the tasks of a goal without a model: those that it lists, or else its steps, each split by the areas of work
/// that it names. If it names several, the last task is a review. The flag says whether it's a list, so that no model
/// has to plan.
pub fn plan_without_model(goal: &str, agents: &[AgentDefinition]) -> (Vec<TaskBlock>, bool) {
    let (steps, listed) = plan_by_rules(goal);
    if listed {
        return (steps, listed);
    }
    let mut tasks: Vec<TaskBlock> = Vec::new();
    // The ids of the tasks that each step became.
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut has_areas = false;
    for step in &steps {
        let needed: Vec<String> = step.needs.iter().filter_map(|need| ids.get(need)).flatten().cloned().collect();
        let mut parts = plan_by_areas(&step.goal, agents);
        has_areas |= !parts.is_empty();
        if parts.is_empty() {
            parts.push(TaskBlock { needs: Vec::new(), ..step.clone() });
        }
        let before = tasks.len();
        let name = |id: &str| format!("t{}", before + id.trim_start_matches('t').parse::<usize>().unwrap_or(1));
        if steps.len() > 1 && before + parts.len() > MAX_RULE_PLANNED_TASKS {
            return (steps, listed);
        }
        for (at, part) in parts.iter_mut().enumerate() {
            part.id = format!("t{}", before + at + 1);
            part.needs = match part.needs.is_empty() {
                true => needed.clone(),
                false => part.needs.iter().map(|need| name(need)).collect(),
            };
        }
        ids.insert(step.id.clone(), parts.iter().map(|part| part.id.clone()).collect());
        tasks.extend(parts);
    }
    if has_areas && tasks.len() < task_block::MAX_PLAN_TASKS && agents.iter().any(|agent| agent.name == REVIEW_AGENT) {
        let review = review_task(goal, &tasks);
        tasks.push(review);
    }
    (tasks, listed)
}

/// Returns the task that reviews what all others made.
fn review_task(goal: &str, tasks: &[TaskBlock]) -> TaskBlock {
    let needed: BTreeSet<&String> = tasks.iter().flat_map(|task| &task.needs).collect();
    let last = tasks.iter().map(|task| &task.id).filter(|id| !needed.contains(id));
    let whole = goal.trim().trim_end_matches('.');
    TaskBlock {
        id: format!("t{}", tasks.len() + 1),
        goal: format!("Review what was made (of: {})", &whole[..whole.floor_char_boundary(MAX_REVIEWED_GOAL_BYTES)]),
        kind: Some(task_block::REVIEW_TASK_TYPE.to_owned()),
        agent: Some(REVIEW_AGENT.to_owned()),
        needs: last.cloned().collect(),
        ..TaskBlock::default()
    }
}

/// Words between the areas that a goal names.
const AREA_SEPARATORS: [&str; 7] = [" + ", ", and ", ", ", "; ", " and ", " & ", " plus "];

/// Order in which areas depend on each other, as the lead agent's guide (`system/agents/lead.md`) has it: what users
/// see needs what is behind it, checks need what is built, and a deployment needs the checks.
fn area_stage(agent: &str) -> u8 {
    match agent {
        "backend" | "data" => 0,
        "frontend" | "mobile" => 1,
        "qa" | "security" | "docs" => 2,
        "devops" => 3,
        _ => 1,
    }
}

/// Splits a goal that names several areas of work, such as “REST service + React page + tests”, into a task for each
/// agent whose area it is, with their dependencies. Returns no tasks if the goal names fewer than two areas.
pub fn plan_by_areas(goal: &str, agents: &[AgentDefinition]) -> Vec<TaskBlock> {
    let whole = goal.trim().trim_end_matches('.');
    let mut parts = vec![whole.to_owned()];
    for separator in AREA_SEPARATORS {
        parts = parts.iter().flat_map(|part| part.split(separator).map(str::to_owned).collect::<Vec<_>>()).collect();
    }
    // What names no area belongs to the part before it, or to the first part.
    let mut areas: Vec<(String, String)> = Vec::new();
    let mut before = String::new();
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        let agent = agent_registry::best_matching_agent(part, agents.iter()).map(|(name, _)| name);
        match (agent, areas.last_mut()) {
            (Some(agent), Some((last, words))) if *last == agent => words.push_str(&format!(", {part}")),
            (Some(agent), _) => areas.push((agent, format!("{}{part}", std::mem::take(&mut before)))),
            (None, Some((_, words))) => words.push_str(&format!(", {part}")),
            (None, None) => before.push_str(&format!("{part}, ")),
        }
        if areas.len() > MAX_RULE_PLANNED_TASKS {
            return Vec::new();
        }
    }
    let distinct: BTreeSet<&str> = areas.iter().map(|(agent, _)| agent.as_str()).collect();
    if distinct.len() < 2 {
        return Vec::new();
    }
    let built = |at: usize| area_stage(&areas[at].0) < 2;
    let tasks = areas.iter().enumerate().map(|(at, (agent, words))| {
        let stage = area_stage(agent);
        let needed = |other: &usize| *other != at && area_stage(&areas[*other].0) < stage;
        let all: Vec<usize> = (0..areas.len()).filter(needed).collect();
        // A deployment needs the checks, which need what is built; without checks it needs what is built.
        let checks: Vec<usize> = all.iter().copied().filter(|other| !built(*other)).collect();
        let needs = if checks.is_empty() { all } else { checks };
        let mut letters = words.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        TaskBlock {
            id: format!("t{}", at + 1),
            // The agent sees nothing but its task.
            goal: format!("{first}{} (a part of: {whole})", letters.as_str()),
            agent: Some(agent.clone()),
            needs: needs.into_iter().map(|other| format!("t{}", other + 1)).collect(),
            ..TaskBlock::default()
        }
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(goal: &str) -> Vec<(String, Vec<String>)> {
        plan_by_rules(goal).0.into_iter().map(|task| (task.goal, task.needs)).collect()
    }

    fn expected(tasks: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        let one = |(goal, needs): &(&str, &[&str])| {
            ((*goal).to_owned(), needs.iter().map(|need| (*need).to_owned()).collect())
        };
        tasks.iter().map(one).collect()
    }

    #[test]
    fn a_goal_that_says_its_tasks_is_split_by_rules() {
        let goal = "Read data.csv, then plot the sums and then write report.md.";
        let tasks: &[(&str, &[&str])] =
            &[("Read data.csv", &[]), ("Plot the sums", &["t1"]), ("Write report.md", &["t2"])];
        assert_eq!(split(goal), expected(tasks));
        let goal = "Do this:\n- test the page\n- write the docs\n- then deploy it";
        let tasks: &[(&str, &[&str])] = &[("Test the page", &[]), ("Write the docs", &[]), ("Deploy it", &["t2"])];
        assert_eq!((split(goal), plan_by_rules(goal).1), (expected(tasks), true));
        let goal = "1. Make a\n2) Make b";
        assert_eq!(split(goal), expected(&[("Make a", &[]), ("Make b", &["t1"])]));
        assert_eq!(
            split("Fetch v1.2 of example.org. Compare it. "),
            expected(&[("Fetch v1.2 of example.org", &[]), ("Compare it", &["t1"]),])
        );
        assert_eq!(split("Write the report"), expected(&[("Write the report", &[])]));
        assert_eq!(split(" "), Vec::new());
        assert_eq!(slug("Please write the report for October 2026!"), "write_report_october_2026");
    }

    #[test]
    fn a_goal_that_names_areas_is_split_by_them() {
        let agents = crate::agent_definition::built_in();
        let split = |goal: &str| -> Vec<(String, String, Vec<String>)> {
            let tasks = plan_by_areas(goal, &agents);
            let words = |goal: String| goal.split(" (a part of: ").next().unwrap_or_default().to_owned();
            tasks.into_iter().map(|task| (words(task.goal), task.agent.unwrap_or_default(), task.needs)).collect()
        };
        let expected = |rows: &[(&str, &str, &[&str])]| -> Vec<(String, String, Vec<String>)> {
            let one = |(goal, agent, needs): &(&str, &str, &[&str])| {
                ((*goal).to_owned(), (*agent).to_owned(), needs.iter().map(|need| (*need).to_owned()).collect())
            };
            rows.iter().map(one).collect()
        };
        assert_eq!(
            split("REST service + React page + tests + docs"),
            expected(&[
                ("REST service", "backend", &[]),
                ("React page", "frontend", &["t1"]),
                ("Tests", "qa", &["t1", "t2"]),
                ("Docs", "docs", &["t1", "t2"]),
            ])
        );
        assert_eq!(
            split("Build a small shop: an API with a database, a dashboard, tests and a deployment."),
            expected(&[
                ("Build a small shop: an API with a database", "backend", &[]),
                ("A dashboard", "frontend", &["t1"]),
                ("Tests", "qa", &["t1", "t2"]),
                ("A deployment", "devops", &["t3"]),
            ])
        );
        // Steps stay in their order, and each is split by itself.
        let (tasks, _) = plan_without_model("Build a REST API, a React page and tests, then deploy", &agents);
        let rows = tasks.iter().map(|task| (task.id.as_str(), task.agent.as_deref(), task.needs.join(" ")));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [
                ("t1", Some("backend"), String::new()),
                ("t2", Some("frontend"), "t1".to_owned()),
                ("t3", Some("qa"), "t1 t2".to_owned()),
                ("t4", None, "t1 t2 t3".to_owned()),
                ("t5", Some("qa"), "t4".to_owned()),
            ]
        );
        assert_eq!(tasks[4].kind.as_deref(), Some("review"));
        // Nobody reviews if that agent is switched off, and a single area needs no review.
        let others: Vec<AgentDefinition> = agents.iter().filter(|agent| agent.name != "qa").cloned().collect();
        assert_eq!(plan_without_model("REST service + React page", &others).0.len(), 2);
        assert_eq!(plan_without_model("Write the REST service, then deploy it", &agents).0.len(), 2);
        for single in ["Write the report", "Plot the rows of data.csv, and the averages", "", ", , +"] {
            assert_eq!(split(single), Vec::new(), "{single}");
        }
    }

    #[test]
    fn what_a_model_says_is_checked() {
        let tools = BTreeSet::from(["shell".to_owned()]);
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let good = object(json!({"project": "x", "tasks": [
            {"id": "a", "goal": "A", "tools_required": ["shell"], "mode": "learner", "inputs": {"n": 1}},
            {"id": "b", "goal": "B", "needs": ["a"], "agent": "qa", "priority": 70}]}));
        assert_eq!(crate::tool_call_parser::check_arguments(&plan_tool(), &good), Ok(()));
        let plan = parse_plan(&good, &tools, None).expect("read");
        assert_eq!((plan.tasks[1].needs.len(), plan.tasks[0].priority, plan.tasks[1].priority), (1, 50, 70));
        for wrong in [
            json!({"tasks": []}),
            json!({"tasks": [{"id": "A B", "goal": "x"}]}),
            json!({"tasks": [{"id": "a", "goal": "x", "standing": "done"}]}),
            json!({"tasks": [{"id": "a", "goal": "x", "mode": "dreamer"}]}),
            json!({"tasks": [{"id": "a", "goal": "x"}], "approve": ["shell"]}),
        ] {
            assert!(crate::tool_call_parser::check_arguments(&plan_tool(), &object(wrong.clone())).is_err(), "{wrong}");
        }
        // Ids that a note couldn't hold are mended, and would otherwise become part of the goal.
        let odd = json!({"tasks": [{"id": "../x_y", "goal": "A"}, {"id": "b", "goal": "B", "needs": ["../x_y"]}]});
        let plan = parse_plan(&object(odd), &tools, None).expect("read");
        assert_eq!((plan.tasks[0].id.as_str(), plan.tasks[1].needs[0].as_str()), ("x-y", "x-y"));
        let empty = json!({"tasks": [{"id": "../..", "goal": "A"}]});
        assert!(parse_plan(&object(empty), &tools, None).is_err_and(|why| why.to_string().contains("“../..”")));
        let circle =
            json!({"tasks": [{"id": "a", "goal": "A", "needs": ["b"]}, {"id": "b", "goal": "B", "needs": ["a"]}]});
        assert!(parse_plan(&object(circle), &tools, None).is_err_and(|why| why.to_string().contains("circle")));
    }

    #[test]
    fn areas_have_the_order_of_the_lead_agents_guide() {
        let guide = crate::agent_definition::find("lead", &[]).prompt;
        let mut named = Vec::new();
        for line in guide.lines() {
            let Some((number, rest)) = line.split_once(". ") else { continue };
            let (Ok(number), Some((agents, _))) = (number.parse::<u8>(), rest.split_once(": ")) else { continue };
            for agent in agents.split(", ") {
                let agent = if agent == "and every other agent" { "assistant" } else { agent };
                assert_eq!(area_stage(agent) + 1, number, "{agent}");
                named.push(agent.to_owned());
            }
        }
        assert_eq!(named.len(), 9, "{named:?}");
    }

    #[test]
    fn what_tasks_may_cost_fits_into_the_budget() {
        let task = |cost: &str| TaskBlock { constraints: vec![cost.to_owned()], ..TaskBlock::default() };
        let tasks = [task("Max cost $0.10"), task("be quick"), task("max budget $0.20")];
        assert!(check_budget(&tasks, None).is_ok() && check_budget(&tasks, Some(0.3)).is_ok());
        let why = check_budget(&tasks, Some(0.29)).expect_err("too little").to_string();
        assert!(why.contains("may cost $0.30 together") && why.contains("budget is $0.29"), "{why}");
    }

    proptest! {
        #[test]
        fn whatever_is_asked_gives_a_plan_that_holds(goal in "(\\PC|- |1\\. |, then | and then |\\. |\n|İ){0,60}") {
            let (tasks, _) = plan_by_rules(&goal);
            prop_assert!(tasks.is_empty() || task_block::execution_order(&tasks, &BTreeSet::new()).is_ok());
            let (tasks, _) = plan_without_model(&goal, &crate::agent_definition::built_in());
            prop_assert!(tasks.is_empty() || task_block::execution_order(&tasks, &BTreeSet::new()).is_ok());
            let tasks = plan_by_areas(&format!("tests, {goal}, api"), &crate::agent_definition::built_in());
            prop_assert!(tasks.is_empty() || task_block::execution_order(&tasks, &BTreeSet::new()).is_ok());
        }
    }
}
