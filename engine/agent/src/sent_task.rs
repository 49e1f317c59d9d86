//! Tasks of plans that other devices carry out: the run of each task, and what its agent is told of the tasks before
//! it. The run's id depends only on the plan's run and the task, so that the task is found again after a restart, and
//! isn't sent a second time.

use crate::prompt_quote;
use crate::run_request::RunRequest;
use crate::task_block::TaskBlock;
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{BlobHash, DocId, ExecutionStep, StepKind};

/// The result of a call that was under way when the program ended.
pub const INTERRUPTED_CALL_TEXT: &str = "The program ended while this was under way. It was not run again.";
/// Maximum length of a task's prompt with the results before it, in bytes.
const MAX_PROMPT_BYTES: usize = 18_000;
/// Maximum length of one result in a prompt, in bytes.
const MAX_RESULT_BYTES: usize = 4_000;

/// A task of a plan that is sent to another device.
#[derive(Clone, Debug, PartialEq)]
pub struct SentPlanTask {
    /// The device: its name, the beginning of its key, or [`ANY_DEVICE`](crate::task_block::ANY_DEVICE).
    pub device: String,
    /// The run that carries out the task.
    pub request: RunRequest,
    /// Whether an earlier call, which a crash interrupted, may have sent it.
    pub is_resumed: bool,
}

/// A call in the steps of a plan's run that sends a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentTaskCall {
    /// Id of the call.
    pub call: String,
    /// Id of the task.
    pub task: String,
    /// The run that carries out the task.
    pub run: DocId,
    /// The session of that run.
    pub session: DocId,
}

/// Has a device of the user's choice do the tasks that name none. Tasks whose note names a device get a checkpoint: the
/// note may be another person's, and a sent task takes the user's rules and earlier results along.
pub fn assign_device(tasks: &mut [TaskBlock], device: Option<&str>) {
    for task in tasks {
        match task.device {
            Some(_) => task.checkpoint = true,
            None => task.device = device.map(str::to_owned),
        }
    }
}

pub(crate) fn text_of<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the ids of a run and its session that always belong to this text.
pub(crate) fn derived_ids(text: &str) -> [DocId; 2] {
    let seed = BlobHash::of(text.as_bytes()).0;
    let mut ids = [[0_u8; 16]; 2];
    ids.as_flattened_mut().copy_from_slice(&seed);
    ids.map(DocId::random)
}

/// Returns the result of a call that was under way when the program ended. A model may have delegated work continued.
pub fn interrupted_call_text(tool: &str, arguments: &Map<String, Value>) -> String {
    let is_goal = BuiltInTool::AskAgent.is_named(tool) && text_of(arguments, "task").is_empty();
    let next = if is_goal { " Ask the same agent for the same goal to have it continue." } else { "" };
    format!("{INTERRUPTED_CALL_TEXT}{next}")
}

/// Returns the calls of a plan's run that send tasks, oldest first. A call that was under way when the program ended is
/// followed by another one with the same run; each other call has a run of its own.
pub fn sent_task_calls(lead: DocId, steps: &[ExecutionStep]) -> Vec<SentTaskCall> {
    let interrupted: BTreeSet<&str> = steps
        .iter()
        .filter_map(|step| match &step.kind {
            StepKind::ToolResult { tool_call_id, error: Some(error), .. } if error == INTERRUPTED_CALL_TEXT => {
                Some(tool_call_id.as_str())
            }
            StepKind::ToolResult { .. }
            | StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => None,
        })
        .collect();
    let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut calls = Vec::new();
    for step in steps {
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { continue };
        let task = text_of(params, "task");
        if !BuiltInTool::AskAgent.is_named(tool_name) || task.is_empty() || text_of(params, "device").is_empty() {
            continue;
        }
        let attempt = attempts.entry(task).or_default();
        let [run, session] = derived_ids(&format!("task {lead} {attempt} {task}"));
        *attempt += usize::from(!interrupted.contains(tool_call_id.as_str()));
        calls.push(SentTaskCall { call: tool_call_id.clone(), task: task.to_owned(), run, session });
    }
    calls
}

/// Returns the calls of a tool in steps with their results, oldest first; `None` as the result of a pending call.
pub fn calls_of_tool(
    steps: &[ExecutionStep],
    tool: BuiltInTool,
) -> impl Iterator<Item = (&Map<String, Value>, Option<(bool, &str)>)> {
    steps.iter().filter_map(move |step| {
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { return None };
        if !tool.is_named(tool_name) {
            return None;
        }
        let result = steps.iter().find_map(|step| match &step.kind {
            StepKind::ToolResult { tool_call_id: id, success, result, error, .. } if id == tool_call_id => {
                let text = result.as_ref().and_then(Value::as_str).or(error.as_deref()).unwrap_or_default();
                Some((*success, text))
            }
            StepKind::ToolResult { .. }
            | StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => None,
        });
        Some((params, result))
    })
}

/// Returns the tasks that aren't begun again after the program ended in between: those that have ended, were refused or
/// wait for a decision. A task whose call was lost with the program is begun again. `waiting`: tasks whose calls wait.
pub fn begun_tasks(steps: &[ExecutionStep], waiting: &[&str]) -> BTreeSet<String> {
    let mut begun = BTreeSet::new();
    for (arguments, result) in calls_of_tool(steps, BuiltInTool::AskAgent) {
        let task = text_of(arguments, "task");
        match result.map_or_else(|| waiting.contains(&task), |(_, text)| text != INTERRUPTED_CALL_TEXT) {
            true => begun.insert(task.to_owned()),
            false => begun.remove(task),
        };
    }
    begun
}

/// Returns the arguments of the call that has an agent do a task. The user is asked before a task with a checkpoint,
/// and before one goes to a device that a model named.
pub fn task_call_arguments(task: &TaskBlock, (agent, goal): (&str, &str), is_by_model: bool) -> Map<String, Value> {
    let mut arguments = Map::new();
    let mut set = |key: &str, value: Value| _ = arguments.insert(key.to_owned(), value);
    set("agent", json!(agent));
    set("goal", json!(goal));
    set("task", json!(task.id));
    set("mode", json!(task.mode));
    task.device.iter().for_each(|device| set("device", json!(device)));
    task.budget().into_iter().for_each(|budget| set("budget", json!(budget)));
    task.deadline.iter().for_each(|deadline| set("deadline", json!(deadline)));
    if task.has_checkpoint() || task.device.is_some() && is_by_model {
        set("checkpoint", json!(true));
    }
    arguments
}

/// Returns the prompt of a task that another device carries out, which knows nothing of the tasks before it. `runs` are
/// the steps of the plan's run, and of earlier runs of the same plan, newest first.
pub fn sent_task_prompt(runs: &[&[ExecutionStep]], task: &TaskBlock) -> String {
    let result_of = |need: &str| {
        runs.iter().find_map(|steps| {
            let calls = calls_of_tool(steps, BuiltInTool::AskAgent);
            let (_, result) = calls.filter(|(arguments, _)| text_of(arguments, "task") == need).last()?;
            result.filter(|(is_good, _)| *is_good).map(|(_, text)| text)
        })
    };
    let mut needs = task.needs.clone();
    // A run of the plan doesn't name what was done before it; the run that did it names it.
    for need in runs.iter().skip(1).flat_map(|steps| planned_needs(steps, &task.id)) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    let results: Vec<(&str, &str)> = needs.iter().filter_map(|need| Some((need.as_str(), result_of(need)?))).collect();
    prompt_with_results(task, &results)
}

/// Returns the tasks that a task needs by the plan in these steps.
fn planned_needs(steps: &[ExecutionStep], task: &str) -> Vec<String> {
    let accepted = calls_of_tool(steps, BuiltInTool::Plan).filter(|(_, result)| result.is_some_and(|(good, _)| good));
    let tasks = accepted.last().and_then(|(arguments, _)| arguments.get("tasks")?.as_array());
    let planned = tasks.into_iter().flatten().find(|planned| planned["id"] == task);
    let needs = planned.and_then(|planned| planned["needs"].as_array());
    needs.into_iter().flatten().filter_map(|need| Some(need.as_str()?.to_owned())).collect()
}

/// Returns the prompt of a task with the results of the tasks that it needs: id and result of each.
fn prompt_with_results(task: &TaskBlock, results: &[(&str, &str)]) -> String {
    let mut prompt = task.prompt();
    let mut is_first = true;
    for (id, result) in results.iter().filter(|(_, result)| !result.trim().is_empty()) {
        let cut = result.floor_char_boundary(MAX_RESULT_BYTES);
        let quoted = prompt_quote::quote_block(&format!("the result of the task {id}"), &result[..cut]);
        if prompt.len() + quoted.len() > MAX_PROMPT_BYTES {
            break;
        }
        if std::mem::take(&mut is_first) {
            let preamble = prompt_quote::QUOTED_MATERIAL_PREAMBLE;
            prompt.push_str(&format!("\n\nHere is the result of the tasks before this one. {preamble}"));
        }
        prompt.push_str(&format!("\n{quoted}"));
    }
    prompt
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use store::StepId;

    const LEAD: DocId = DocId([1; 16]);

    /// A step of this kind.
    pub(crate) fn step(number: u64, kind: StepKind) -> ExecutionStep {
        let id = StepId(number);
        ExecutionStep {
            id,
            timestamp: 0,
            duration: None,
            parents: Vec::new(),
            kind,
            spent: None,
            route: None,
            tool: None,
        }
    }

    fn call(id: &str, task: &str, device: &str) -> ExecutionStep {
        let params = json!({"agent": "qa", "goal": "g", "task": task, "device": device});
        let params = params.as_object().cloned().expect("an object");
        step(1, StepKind::ToolCall { tool_call_id: id.to_owned(), tool_name: "ask_agent".to_owned(), params })
    }

    fn failure(id: &str, error: &str) -> ExecutionStep {
        let kind = StepKind::ToolResult {
            tool_call_id: id.to_owned(),
            success: false,
            result: None,
            error: Some(error.to_owned()),
            whole: None,
            attached: Vec::new(),
            files: Vec::new(),
        };
        step(2, kind)
    }

    #[test]
    fn only_a_device_that_the_note_names_is_asked_about() {
        let named = TaskBlock { device: Some("shed".to_owned()), ..TaskBlock::default() };
        let mut tasks = [named, TaskBlock::default()];
        assign_device(&mut tasks, None);
        assert_eq!((tasks[0].checkpoint, tasks[1].checkpoint, &tasks[1].device), (true, false, &None));
        assign_device(&mut tasks[1..], Some("desk"));
        assert_eq!((tasks[1].device.as_deref(), tasks[1].checkpoint), (Some("desk"), false));
    }

    #[test]
    fn a_task_keeps_its_run_over_a_crash_and_gets_another_after_a_failure() {
        let mut steps = vec![call("c0", "a", "shed"), call("c1", "b", "shed"), call("c2", "c", "")];
        let first = sent_task_calls(LEAD, &steps);
        assert_eq!(first.iter().map(|sent| sent.call.as_str()).collect::<Vec<_>>(), ["c0", "c1"]);
        assert_ne!(first[0].run, first[1].run);
        assert_ne!(sent_task_calls(DocId([2; 16]), &steps)[0].run, first[0].run);
        steps.push(failure("c0", INTERRUPTED_CALL_TEXT));
        steps.push(failure("c1", "qa came to no answer"));
        steps.extend([call("c3", "a", "shed"), call("c4", "b", "any")]);
        let then = sent_task_calls(LEAD, &steps);
        assert_eq!((then[2].run, then[2].session), (first[0].run, first[0].session));
        assert_ne!(then[3].run, first[1].run);
    }

    #[test]
    fn results_of_an_earlier_run_of_the_plan_go_along() {
        let answer = |id: &str, text: &str| {
            let kind = StepKind::ToolResult {
                tool_call_id: id.to_owned(),
                success: true,
                result: Some(json!(text)),
                error: None,
                whole: None,
                attached: Vec::new(),
                files: Vec::new(),
            };
            step(2, kind)
        };
        let plan = |tasks: Value| {
            let params = json!({"tasks": tasks}).as_object().cloned().expect("an object");
            step(1, StepKind::ToolCall { tool_call_id: "p".to_owned(), tool_name: "plan".to_owned(), params })
        };
        let before = [
            plan(json!([{"id": "a"}, {"id": "x"}, {"id": "b", "needs": ["a"]}])),
            answer("p", "The plan has 3 tasks."),
            call("c0", "a", ""),
            answer("c0", "There are 42 rows."),
            call("c1", "x", ""),
            answer("c1", "Of no use."),
        ];
        let now = [plan(json!([{"id": "b"}])), answer("p", "The plan has 1 task.")];
        let task = TaskBlock { id: "b".to_owned(), goal: "Write it".to_owned(), ..TaskBlock::default() };
        let prompt = sent_task_prompt(&[&now, &before], &task);
        assert!(prompt.contains("the result of the task a") && prompt.contains("There are 42 rows."), "{prompt}");
        assert!(!prompt.contains("Of no use."), "{prompt}");
        assert_eq!(sent_task_prompt(&[&now], &task), "Write it");
    }

    #[test]
    fn results_go_along_as_quotations_up_to_a_limit() {
        let task = TaskBlock { goal: "Write it".to_owned(), ..TaskBlock::default() };
        assert_eq!(prompt_with_results(&task, &[("a", " ")]), "Write it");
        let long = "x".repeat(9_000);
        let all: Vec<(&str, &str)> = ["a", "b", "c", "d", "e"].map(|id| (id, long.as_str())).to_vec();
        let prompt = prompt_with_results(&task, &all);
        assert!(prompt.contains("the result of the task a") && prompt.contains("nothing in it changes"), "{prompt}");
        assert!(prompt.len() <= MAX_PROMPT_BYTES + 1_000 && !prompt.contains("the result of the task e"));
    }
}
