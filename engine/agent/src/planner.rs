//! The planner: a goal becomes tasks that need one another. By rules, where the goal says so itself; by a model, which
//! calls a tool of a fixed form; what either says is checked the same way.

use crate::prompt_quote;
use crate::task_block::{self, TaskBlock, TaskOrderError};
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// System prompt of the model that assigns tasks to agents.
pub const ASSIGN_PROMPT: &str = "You decide which agent does which task of a plan, by what each agent is good for. \
    You do none \
                       of the tasks yourself. Call the tool `assign` once, with every task in it.";
/// Maximum length of a task's goal in that prompt, in bytes.
const MAX_SHOWN_GOAL_BYTES: usize = 500;
/// Maximum number of tasks in a plan made by rules.
const MAX_RULE_PLANNED_TASKS: usize = 20;

/// An agent that a plan needs and that doesn't exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
pub struct ProposedAgent {
    /// Its name: small letters, digits, `-`.
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
    /// The name of the project: small letters, digits, `_`.
    pub project: String,
    /// The tasks of the plan.
    pub tasks: Vec<TaskBlock>,
    /// Agents that are to be made for it.
    pub agents: Vec<ProposedAgent>,
}

/// The tool as a model sees it.
pub fn plan_tool() -> ToolSpec {
    let name = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,47}$"});
    // People give tasks ids of their own, and classes of Python are agents, too.
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
                    "needs": {"type": "array", "items": word, "description": "ids of tasks that must be done before"},
                    "agent": word,
                    "inputs": {"type": "object"},
                    "constraints": words,
                    "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                    "tools_required": words,
                    "mode": {"enum": ["auto", "learner", "follower"]}}}},
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

/// The tool by which a model says who does which tasks.
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

/// The question who does these tasks, of these agents.
pub fn assignment_prompt<'a>(tasks: impl Iterator<Item = &'a TaskBlock>, agents: &str) -> String {
    let line = |task: &TaskBlock| {
        let goal = &task.goal[..task.goal.floor_char_boundary(MAX_SHOWN_GOAL_BYTES)];
        format!("- {}: {}", task.id, prompt_quote::quote_inline(goal, MAX_SHOWN_GOAL_BYTES))
    };
    let tasks: Vec<String> = tasks.map(line).collect();
    format!("Tasks:\n{}\n\nAgents: {agents}.", tasks.join("\n"))
}

/// Who was said to do which task, in the order in which it was said.
pub fn parse_assignments(arguments: &Map<String, Value>) -> Vec<(&str, &str)> {
    let pairs = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    pairs.iter().filter_map(|pair| Some((pair.get("task")?.as_str()?, pair.get("agent")?.as_str()?))).collect()
}

/// Why a plan can't be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TaskPlanError {
    /// It hasn't the form of a plan.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// Its tasks don't fit together.
    #[error(transparent)]
    Order(#[from] TaskOrderError),
}

/// Reads and checks a plan.
///
/// # Errors
/// What of it cannot be carried out.
pub fn parse_plan(arguments: &Map<String, Value>, tools: &BTreeSet<String>) -> Result<TaskPlan, TaskPlanError> {
    let plan: TaskPlan = serde_json::from_value(Value::Object(arguments.clone()))?;
    task_block::execution_order(&plan.tasks, tools)?;
    Ok(plan)
}

/// A name for files, of the first words of a text: `write_the_report`.
pub fn slug(text: &str) -> String {
    let plain: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().filter(|word| !SLUG_STOP_WORDS.contains(word)).take(4).collect();
    let name: String = words.join("_").chars().take(40).collect();
    if name.is_empty() { "project".to_owned() } else { name }
}

/// Words that say little about the topic of a text.
const SLUG_STOP_WORDS: [&str; 10] = ["the", "a", "an", "of", "for", "and", "to", "in", "please", "with"];

/// The item of a list in a line: its words, and whether it is numbered.
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

/// Words at which one thing ends and the next begins.
const TASK_SEPARATORS: [&str; 6] = [", and then ", " and then ", "; then ", ", then ", "; ", ", after that "];

/// Where a sentence ends: a stop that a space and a capital follow.
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

/// Returns the tasks that a goal lists; otherwise one task. `listed`: whether it's a list, so that no model has to
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
    fn what_a_model_says_is_checked() {
        let tools = BTreeSet::from(["shell".to_owned()]);
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let good = object(json!({"project": "x", "tasks": [
            {"id": "a", "goal": "A", "tools_required": ["shell"], "mode": "learner", "inputs": {"n": 1}},
            {"id": "b", "goal": "B", "needs": ["a"], "agent": "qa", "priority": 70}]}));
        assert_eq!(crate::tool_call_parser::check_arguments(&plan_tool(), &good), Ok(()));
        let plan = parse_plan(&good, &tools).expect("read");
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
        let circle =
            json!({"tasks": [{"id": "a", "goal": "A", "needs": ["b"]}, {"id": "b", "goal": "B", "needs": ["a"]}]});
        assert!(parse_plan(&object(circle), &tools).is_err_and(|why| why.to_string().contains("circle")));
    }

    proptest! {
        #[test]
        fn whatever_is_asked_gives_a_plan_that_holds(goal in "(\\PC|- |1\\. |, then | and then |\\. |\n|İ){0,60}") {
            let (tasks, _) = plan_by_rules(&goal);
            prop_assert!(tasks.is_empty() || task_block::execution_order(&tasks, &BTreeSet::new()).is_ok());
        }
    }
}
