//! Tasks for agents: goal, inputs, constraints, dependencies. A plan is a note with a todo for each task, so that it
//! can be read, edited and checked off like any other. Details that don't fit on the todo's line are in a fenced YAML
//! block below it. Pure: texts in, texts out.

use crate::deadline::Deadline;
use crate::dollar_amount;
use crate::memory::ReplayMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::FileKind;
use text::task::NoteTask;

/// Folder of plans in a volume or a project.
pub const TASKS_FOLDER: &str = "tasks";
/// The word for whichever worker is free, in place of a device.
pub const ANY_DEVICE: &str = "any";
/// Maximum number of tasks in a plan.
pub const MAX_PLAN_TASKS: usize = 50;
/// Maximum length of a task's goal in bytes.
const MAX_TASK_GOAL_BYTES: usize = 10_000;
/// Maximum length of a task's type in characters.
pub const MAX_TASK_TYPE_CHARS: usize = 60;
/// Type of the task that reviews what the others made.
pub const REVIEW_TASK_TYPE: &str = "review";
/// Default priority of a task, in the range 0 to 100.
pub const DEFAULT_TASK_PRIORITY: u8 = 50;

fn middle() -> u8 {
    DEFAULT_TASK_PRIORITY
}

/// Status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    #[default]
    Open,
    /// An agent is working on it.
    Running,
    /// The task is completed.
    Done,
    /// The task failed.
    Failed,
    /// The task was canceled.
    Cancelled,
}

impl TaskStatus {
    /// Returns the character in the checkbox of the todo.
    pub fn checkbox_mark(self) -> char {
        match self {
            TaskStatus::Open => ' ',
            TaskStatus::Running => '/',
            TaskStatus::Done => 'x',
            TaskStatus::Failed => '!',
            TaskStatus::Cancelled => '-',
        }
    }

    fn from_mark(mark: char) -> TaskStatus {
        match mark {
            'x' | 'X' => TaskStatus::Done,
            '/' => TaskStatus::Running,
            '!' => TaskStatus::Failed,
            '-' => TaskStatus::Cancelled,
            _ => TaskStatus::Open,
        }
    }

    /// Returns the name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Open => "open",
            TaskStatus::Running => "running",
            TaskStatus::Done => "done",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }
}

/// How much harm a task can do, as its plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskRiskLevel {
    /// All of it can be undone.
    Low,
    /// It takes work to undo.
    Medium,
    /// It can't be taken back, costs money, or leaves the project. Such a task has a checkpoint.
    High,
}

impl TaskRiskLevel {
    /// Returns the name of the level.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskRiskLevel::Low => "low",
            TaskRiskLevel::Medium => "medium",
            TaskRiskLevel::High => "high",
        }
    }
}

/// A task of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskBlock {
    /// Id of the task in its plan: letters, digits and `-`, written after `^` on its line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The task's goal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The kind of work in a word of the plan, such as `review`. It helps to choose the agent, which is told.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Status of the task.
    #[serde(skip_serializing_if = "is_open")]
    pub standing: TaskStatus,
    /// Inputs of the task, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// Constraints as text. `Max cost $0.10` sets a budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Priority, 0 to 100. Among tasks that can start, the one with the highest priority is first.
    #[serde(default = "middle", skip_serializing_if = "is_middle")]
    pub priority: u8,
    /// Tools that the task requires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_required: Vec<String>,
    /// Whether a trace may be replayed for the task.
    #[serde(skip_serializing_if = "is_auto")]
    pub mode: ReplayMode,
    /// Name of the agent; `None` chooses it by the task's goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Ids of the tasks that must be done before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How much harm the task can do; `None` if the plan doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<TaskRiskLevel>,
    /// When the task's run ends at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Whether the user is asked before the task begins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// The device that does the task: its name, the beginning of its key, or `any` for whichever worker is free; `None`
    /// for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

fn is_open(standing: &TaskStatus) -> bool {
    *standing == TaskStatus::Open
}

fn is_middle(priority: &u8) -> bool {
    *priority == DEFAULT_TASK_PRIORITY
}

fn is_auto(mode: &ReplayMode) -> bool {
    *mode == ReplayMode::Auto
}

impl Default for TaskBlock {
    fn default() -> TaskBlock {
        TaskBlock {
            id: String::new(),
            goal: String::new(),
            kind: None,
            standing: TaskStatus::Open,
            inputs: BTreeMap::new(),
            constraints: Vec::new(),
            priority: DEFAULT_TASK_PRIORITY,
            tools_required: Vec::new(),
            mode: ReplayMode::Auto,
            agent: None,
            needs: Vec::new(),
            risk: None,
            deadline: None,
            checkpoint: false,
            device: None,
        }
    }
}

/// Maximum length of a task's id in bytes.
const MAX_TASK_ID_BYTES: usize = 60;

fn is_task_id_char(c: char) -> bool {
    c.is_alphanumeric() || c == '-'
}

/// Returns an id as a note can hold it: of letters, digits and `-`.
///
/// # Errors
/// Returns an error if nothing of it is a letter or a digit.
pub(crate) fn note_task_id(id: &str) -> Result<String, TaskOrderError> {
    let plain: String = id.chars().map(|c| if is_task_id_char(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    match &plain[..plain.floor_char_boundary(MAX_TASK_ID_BYTES)] {
        "" => Err(TaskOrderError::UnusableId { task: id.chars().take(MAX_TASK_ID_BYTES).collect() }),
        plain => Ok(plain.to_owned()),
    }
}

/// Splits the id after `^` from the end of a task's text.
fn split_task_id(words: &str) -> Option<(&str, &str)> {
    let (before, id) = words.rsplit_once('^')?;
    let plain = !id.is_empty() && id.len() <= MAX_TASK_ID_BYTES && id.chars().all(is_task_id_char);
    (plain && (before.is_empty() || before.ends_with(' '))).then_some((before.trim_end(), id))
}

/// Place of a task in a note: its line, and the YAML below it.
struct TaskSpan {
    line: std::ops::Range<usize>,
    yaml: Option<std::ops::Range<usize>>,
}

/// Returns the tasks of a note with their ids and places. The id of a task without one is its number, from 1.
fn find_tasks(text: &str) -> Vec<(NoteTask, String, TaskSpan)> {
    let mut found: Vec<(NoteTask, String, TaskSpan)> = Vec::new();
    let mut at = 0;
    // Inside a fence: its number of backticks, and where its text starts if it belongs to the last task.
    let mut fence: Option<(usize, Option<usize>)> = None;
    let mut near = false;
    for line in text.split_inclusive('\n') {
        let (start, bare) = (at, line.trim());
        at += line.len();
        let ticks = bare.bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            Some((open, from)) => {
                if ticks >= open && bare.len() == ticks {
                    if let (Some(from), Some((_, _, place))) = (from, found.last_mut()) {
                        place.yaml = Some(from..start);
                    }
                    fence = None;
                    near = false;
                }
            }
            None if ticks >= 3 => {
                let own = near && line.starts_with([' ', '\t']) && bare[ticks..].trim() == "yaml";
                fence = Some((ticks, own.then_some(at)));
            }
            None => {
                let body = line.trim_end_matches(['\n', '\r']);
                let Some(mut task) = NoteTask::parse_line(body, start).filter(|_| !line.starts_with([' ', '\t', '>']))
                else {
                    near &= bare.is_empty() || line.starts_with([' ', '\t']);
                    continue;
                };
                let number = (found.len() + 1).to_string();
                let (words, id) = split_task_id(&task.text)
                    .map_or((task.text.clone(), number), |(words, id)| (words.to_owned(), id.to_owned()));
                task.text = words;
                let place = TaskSpan { line: start..start + body.len(), yaml: None };
                found.push((task, id, place));
                near = true;
            }
        }
    }
    found
}

/// Parses the tasks of a note. The second list describes the parts that can't be read.
pub fn parse_tasks(text: &str) -> (Vec<TaskBlock>, Vec<String>) {
    let (mut tasks, mut problems) = (Vec::new(), Vec::new());
    for (task, id, place) in find_tasks(text).into_iter().take(MAX_PLAN_TASKS * 4) {
        let yaml = place.yaml.and_then(|range| text.get(range)).unwrap_or_default();
        let indent = yaml.len() - yaml.trim_start_matches([' ', '\t']).len();
        let lines = yaml.lines().map(|line| line.get(indent.min(line.len() - line.trim_start().len())..));
        let plain: Vec<&str> = lines.map(Option::unwrap_or_default).collect();
        let plain = plain.join("\n");
        let mut block = TaskBlock::default();
        if !plain.trim().is_empty() {
            match text::yaml_edit::parse_typed::<TaskBlock>(&plain) {
                Ok(read) => block = read,
                Err(error) => problems.push(format!("the text below the task {id} can't be read: {error}")),
            }
        }
        let standing = TaskStatus::from_mark(task.mark);
        tasks.push(TaskBlock { id, goal: task.text, standing, ..block });
    }
    (tasks, problems)
}

/// Returns the note's text with a task's new status; `None` if no task has this id, or the status doesn't change.
pub fn with_task_status(text: &str, id: &str, standing: TaskStatus) -> Option<String> {
    let (_, _, place) = find_tasks(text).into_iter().find(|(_, known, _)| known == id)?;
    let line = text.get(place.line.clone())?;
    let at = place.line.start + line.find('[')? + 1;
    let old = text.get(at..)?.chars().next()?;
    let mut new = text.to_owned();
    new.replace_range(at..at + old.len_utf8(), &standing.checkbox_mark().to_string());
    (new != text).then_some(new)
}

/// Units of limits that aren't about money, as in `Max budget 5000 tokens`.
const OTHER_BUDGET_UNITS: &[&str] =
    &["calls", "h", "hour", "hours", "min", "minute", "minutes", "s", "seconds", "steps", "tokens", "turns", "words"];

/// Returns the US dollars to which a constraint limits the cost: `None` if it's about something else, and `Some(None)`
/// if the amount can't be read.
fn cost_limit(words: &str) -> Option<Option<f64>> {
    let lower = words.to_lowercase();
    let has = |names: &[&str]| lower.split(|letter: char| !letter.is_alphabetic()).any(|word| names.contains(&word));
    let noun = ["cost", "budget"].iter().filter_map(|noun| Some(lower.find(noun)? + noun.len())).min();
    let after = &lower[noun.filter(|_| has(&["max", "maximum"]) && has(&["cost", "costs", "budget"]))?..];
    if let Some(amount) = dollar_amount::find_dollar_amount(&lower) {
        return Some(amount);
    }
    // Without a sign the unit has to be dollars, if there is one.
    let amount = after.trim_start_matches(['s', ':', '=', ' ']);
    let end = amount.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(amount.len());
    let (digits, unit) = (&amount[..end], amount[end..].trim_matches([' ', '.']));
    if !digits.is_empty() && OTHER_BUDGET_UNITS.contains(&unit.split(' ').next().unwrap_or_default()) {
        return None;
    }
    Some(dollar_amount::parse_dollar_amount(digits).filter(|_| matches!(unit, "" | "dollar")))
}

impl TaskBlock {
    /// Formats the task as lines of a note.
    pub fn to_markdown(&self) -> String {
        let goal = self.goal.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("- [{}] {goal} ^{}\n", self.standing.checkbox_mark(), self.id);
        let rest = TaskBlock { id: String::new(), goal: String::new(), standing: TaskStatus::Open, ..self.clone() };
        if rest == TaskBlock::default() {
            return line;
        }
        let yaml = serde_saphyr::to_string(&rest).unwrap_or_default();
        let yaml: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
        let mut fence = "```".to_owned();
        while yaml.contains(&fence) {
            fence.push('`');
        }
        format!("{line}  {fence}yaml\n{yaml}  {fence}\n")
    }

    /// Returns the maximum cost in US dollars, if a constraint sets it.
    pub fn budget(&self) -> Option<f64> {
        self.constraints.iter().find_map(|words| cost_limit(words)?)
    }

    /// Returns the first constraint that is to limit the cost, but whose amount can't be read. Without the amount the
    /// task would have no limit.
    fn unreadable_cost_limit(&self) -> Option<&str> {
        self.constraints.iter().map(String::as_str).find(|words| cost_limit(words) == Some(None))
    }

    /// Returns whether the user is asked before the task begins.
    pub fn has_checkpoint(&self) -> bool {
        self.checkpoint || self.risk == Some(TaskRiskLevel::High)
    }

    /// Returns the text by which rules choose an agent: the goal, and the type if there is one.
    pub fn routing_text(&self) -> String {
        self.kind.as_ref().map_or_else(|| self.goal.clone(), |kind| format!("{} ({kind})", self.goal))
    }

    /// Returns the prompt for the agent.
    pub fn prompt(&self) -> String {
        let mut words = self.goal.clone();
        if let Some(kind) = &self.kind {
            words.push_str(&format!("\n\nType: {kind}"));
        }
        if !self.inputs.is_empty() {
            words.push_str("\n\nInputs:");
            for (name, value) in &self.inputs {
                words.push_str(&format!("\n- {name}: {}", value.as_str().map_or(value.to_string(), str::to_owned)));
            }
        }
        if !self.constraints.is_empty() {
            words.push_str(&format!("\n\nKeep to this:\n- {}", self.constraints.join("\n- ")));
        }
        words
    }
}

/// Formats a plan as a note.
pub fn plan_to_markdown(title: &str, tasks: &[TaskBlock]) -> String {
    let title = title.lines().next().unwrap_or_default().trim();
    let lines: String = tasks.iter().map(TaskBlock::to_markdown).collect();
    format!("# Plan: {title}\n\n{lines}")
}

/// Why the tasks of a plan can't be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are ids of tasks and names of tools")]
pub enum TaskOrderError {
    /// The plan has no tasks.
    #[error("the plan has no task")]
    NoTask,
    /// The plan has too many tasks.
    #[error("the plan has {count} tasks; at most {MAX_PLAN_TASKS} can be carried out")]
    TooManyTasks { count: usize },
    /// A goal is empty or too long.
    #[error("the task {task} says nothing, or more than {MAX_TASK_GOAL_BYTES} bytes")]
    GoalSize { task: String },
    /// The type is too long.
    #[error("the type of the task {task} has more than {MAX_TASK_TYPE_CHARS} characters")]
    TypeSize { task: String },
    /// A priority is above 100.
    #[error("the priority of the task {task} is over 100")]
    Priority { task: String },
    /// A constraint is to limit the cost, but its amount can't be read.
    #[error("the task {task} says \u{201c}{words}\u{201d}; write the amount as in \u{201c}Max cost $0.20\u{201d}")]
    CostLimit { task: String, words: String },
    /// A tool doesn't exist.
    #[error("the task {task} needs the tool {tool}, which is not there")]
    MissingTool { task: String, tool: String },
    /// Two tasks have the same id.
    #[error("two tasks are called {task}")]
    DuplicateId { task: String },
    /// A task depends on one that isn't in the plan.
    #[error("the task {task} needs {need}, which is no task of the plan")]
    MissingTask { task: String, need: String },
    /// An id has no letter or digit.
    #[error("“{task}” can't be a task's id: use letters, digits and -")]
    UnusableId { task: String },
    /// Tasks depend on each other in a cycle.
    #[error("the tasks {tasks} wait for each other in a circle")]
    Circle { tasks: String },
}

/// Checks a plan and returns the order of its tasks: dependencies first, and among tasks that can start, the one with
/// the highest priority. `tools` are the names of available tools.
///
/// # Errors
/// Returns an error in these cases:
/// - The plan has no tasks or too many.
/// - A goal, type or priority is invalid, or an id occurs twice.
/// - A limit of the cost can't be read.
/// - A tool or a needed task doesn't exist.
/// - Dependencies form a cycle.
pub fn execution_order(tasks: &[TaskBlock], tools: &BTreeSet<String>) -> Result<Vec<usize>, TaskOrderError> {
    if tasks.is_empty() {
        return Err(TaskOrderError::NoTask);
    }
    if tasks.len() > MAX_PLAN_TASKS {
        return Err(TaskOrderError::TooManyTasks { count: tasks.len() });
    }
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let id = || task.id.clone();
        if task.goal.trim().is_empty() || task.goal.len() > MAX_TASK_GOAL_BYTES {
            return Err(TaskOrderError::GoalSize { task: id() });
        }
        if task.kind.as_ref().is_some_and(|kind| kind.chars().count() > MAX_TASK_TYPE_CHARS) {
            return Err(TaskOrderError::TypeSize { task: id() });
        }
        if task.priority > 100 {
            return Err(TaskOrderError::Priority { task: id() });
        }
        if task.standing == TaskStatus::Open
            && let Some(words) = task.unreadable_cost_limit()
        {
            let words = words.chars().take(80).collect();
            return Err(TaskOrderError::CostLimit { task: id(), words });
        }
        if let Some(tool) = task.tools_required.iter().find(|tool| !tools.contains(*tool)) {
            return Err(TaskOrderError::MissingTool { task: id(), tool: tool.clone() });
        }
        if ids.insert(task.id.as_str(), at).is_some() {
            return Err(TaskOrderError::DuplicateId { task: id() });
        }
    }
    for task in tasks {
        if let Some(need) = task.needs.iter().find(|need| !ids.contains_key(need.as_str())) {
            return Err(TaskOrderError::MissingTask { task: task.id.clone(), need: need.clone() });
        }
    }
    let mut order: Vec<usize> = Vec::new();
    while order.len() < tasks.len() {
        let placed = |id: &String| ids.get(id.as_str()).is_some_and(|at| order.contains(at));
        let free = (0..tasks.len()).filter(|at| !order.contains(at) && tasks[*at].needs.iter().all(placed));
        // Among tasks with the highest priority, the first.
        let next = free.max_by_key(|at| (tasks[*at].priority, std::cmp::Reverse(*at)));
        let Some(next) = next else {
            let round: Vec<&str> =
                (0..tasks.len()).filter(|at| !order.contains(at)).map(|at| tasks[at].id.as_str()).collect();
            return Err(TaskOrderError::Circle { tasks: round.join(", ") });
        };
        order.push(next);
    }
    Ok(order)
}

/// Returns the path of the note that a user calls by this name: `.md` may be left out.
pub fn plan_path(name: &str) -> String {
    let name = name.trim().trim_start_matches("./");
    if FileKind::from_path(name).is_text() { name.to_owned() } else { format!("{name}.md") }
}

/// Returns the title of a plan that is made at this path: its file's name, with spaces and a capital letter.
pub fn plan_title(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name).replace(['_', '-'], " ");
    let mut letters = name.trim().chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", letters.as_str())
}

/// Returns whether a note holds tasks for agents, and not only todos: it's titled as a plan, or a task has an id as
/// plans give it, or details below its line.
pub fn holds_task_blocks(text: &str) -> bool {
    let numbered = |id: &str| {
        let number = id.strip_prefix('t').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let tasks = find_tasks(text);
    let is_titled = || text.lines().any(|line| line.starts_with("# Plan:"));
    tasks.iter().any(|(_, id, place)| place.yaml.is_some() || numbered(id)) || (!tasks.is_empty() && is_titled())
}

/// Returns whether a path is that of a plan.
pub fn is_plan(path: &str) -> bool {
    let own = path.strip_prefix("projects/").and_then(|rest| rest.split_once('/')).map_or(path, |(_, rest)| rest);
    own.strip_prefix(TASKS_FOLDER).is_some_and(|rest| rest.starts_with('/')) && path.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(id: &str, goal: &str, needs: &[&str]) -> TaskBlock {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        TaskBlock { id: id.to_owned(), goal: goal.to_owned(), needs, ..TaskBlock::default() }
    }

    fn whole() -> TaskBlock {
        TaskBlock {
            kind: Some("writing".to_owned()),
            inputs: BTreeMap::from([("month".to_owned(), Value::from("2026-10")), ("rows".to_owned(), Value::from(3))]),
            constraints: vec!["Must be Python".to_owned(), "Max cost $0.10.".to_owned()],
            priority: 80,
            tools_required: vec!["write_file".to_owned()],
            mode: ReplayMode::Follower,
            agent: Some("data".to_owned()),
            device: Some("shed".to_owned()),
            standing: TaskStatus::Failed,
            ..task("report", "Write the report", &["read"])
        }
    }

    #[test]
    fn a_plan_is_a_note_of_todos() {
        let tasks = vec![task("read", "Read data/2026-10.csv", &[]), whole()];
        let text = plan_to_markdown("The report\nof October", &tasks);
        assert_eq!(parse_tasks(&text), (tasks, Vec::new()), "{text}");
        assert!(text.starts_with("# Plan: The report\n\n- [ ] Read data/2026-10.csv ^read\n- [!] Write"), "{text}");
        assert_eq!(whole().budget(), Some(0.1));
        let asked = whole().prompt();
        assert!(asked.contains("- month: 2026-10\n- rows: 3") && asked.contains("- Must be Python"), "{asked}");
        assert!(asked.starts_with("Write the report\n\nType: writing\n") && text.contains("type: writing\n"), "{text}");
        assert_eq!(whole().routing_text(), "Write the report (writing)");
    }

    #[test]
    fn what_people_write_is_read_and_only_the_box_is_changed() {
        let text = "Intro\n\n- [ ] First 📅 2026-12-01\n- [x] Second ^two\n\n  ```yaml\n  needs: [1] # why\n  ```\n\
                    \n```python\n- [ ] no task\n```\n  - [ ] below, so part of it\n* [/] Third\n  ```yaml\n  needs: [\n\
                    \x20 ```\n";
        let (tasks, problems) = parse_tasks(text);
        let seen: Vec<(&str, &str, TaskStatus)> =
            tasks.iter().map(|task| (task.id.as_str(), task.goal.as_str(), task.standing)).collect();
        let expected = [
            ("1", "First", TaskStatus::Open),
            ("two", "Second", TaskStatus::Done),
            ("3", "Third", TaskStatus::Running),
        ];
        assert_eq!(seen, expected);
        assert_eq!((tasks[1].needs.clone(), problems.len()), (vec!["1".to_owned()], 1), "{problems:?}");
        let new = with_task_status(text, "two", TaskStatus::Cancelled).expect("changed");
        assert_eq!(new, text.replace("- [x] Second", "- [-] Second"));
        assert_eq!(
            (with_task_status(text, "two", TaskStatus::Done), with_task_status(text, "nine", TaskStatus::Done)),
            (None, None)
        );
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let tools = BTreeSet::from(["write_file".to_owned()]);
        let mut tasks = vec![task("a", "A", &["b"]), task("b", "B", &[]), task("c", "C", &[])];
        assert_eq!(execution_order(&tasks, &tools), Ok(vec![1, 0, 2]));
        tasks[2].priority = 90;
        assert_eq!(execution_order(&tasks, &tools), Ok(vec![2, 1, 0]));
        let wrong = [
            (vec![], "no task"),
            (vec![task("a", "A", &["b"]), task("b", "B", &["a"]), task("c", "C", &[])], "a, b wait for each other"),
            (vec![task("a", "A", &["a"])], "circle"),
            (vec![task("a", "A", &["x"])], "needs x, which is no task"),
            (vec![task("a", "A", &[]), task("a", "B", &[])], "two tasks are called a"),
            (vec![task("a", " ", &[])], "says nothing"),
            (vec![TaskBlock { kind: Some("x".repeat(61)), ..task("a", "A", &[]) }], "more than 60 characters"),
            (vec![TaskBlock { tools_required: vec!["fly".to_owned()], ..task("a", "A", &[]) }], "the tool fly"),
            (
                vec![TaskBlock { constraints: vec!["Max cost €1".to_owned()], ..task("a", "A", &[]) }],
                "“Max cost $0.20”",
            ),
            (vec![task("a", "A", &[]); 51], "51 tasks"),
        ];
        for (tasks, why) in wrong {
            assert!(execution_order(&tasks, &tools).is_err_and(|said| said.to_string().contains(why)), "{why}");
        }
        assert!(is_plan("tasks/a.md") && is_plan("projects/x/tasks/a.md"));
        assert_eq!((plan_path("a"), plan_path(" ./x/a.md")), ("a.md".to_owned(), "x/a.md".to_owned()));
        assert_eq!(
            (plan_title("tasks/the_big-shop.md"), plan_title("tasks.md")),
            ("The big shop".into(), "Tasks".into())
        );
        assert!(!holds_task_blocks("- [ ] milk\n- [ ] tea ^abc\n") && !holds_task_blocks("# Plan: none\n"));
        assert!(holds_task_blocks("# Plan: x\n\n- [ ] milk\n") && holds_task_blocks("- [ ] milk ^t2\n"));
        assert!(!is_plan("tasks.md") && !is_plan("notes/tasks/a.md") && !is_plan("tasks/a.csv"));
    }

    #[test]
    fn a_limit_of_the_cost_is_read_or_refused() {
        for (words, limit) in [
            ("Max cost $0.20", Some(Some(0.2))),
            ("maximum costs: $.5 per run", Some(Some(0.5))),
            ("max budget 0.20", Some(Some(0.2))),
            ("Max cost USD 3", Some(Some(3.0))),
            ("Max cost 5$", Some(Some(5.0))),
            ("Max cost: 5.00 $ per run", Some(Some(5.0))),
            ("Max cost 5 USD per run", Some(Some(5.0))),
            ("Max 3 calls, max cost US$5", Some(Some(5.0))),
            ("Max budget 5000 tokens or 5 USD", Some(Some(5.0))),
            ("Max cost = 3 US dollars.", Some(Some(3.0))),
            ("Max cost banana", Some(None)),
            ("Max cost $-1", Some(None)),
            ("Max cost $0,20", Some(None)),
            ("Max cost 0,20$", Some(None)),
            ("Max cost 1 000 USD", Some(None)),
            ("Max cost $5k", Some(None)),
            ("Max cost two dollars", Some(None)),
            ("Max cost 3 EUR", Some(None)),
            ("Max cost", Some(None)),
            ("Maximize cost savings", None),
            ("Max budget: 5000 tokens", None),
            ("Max time budget 10 min per run", None),
            ("Max cost 3 per call", Some(None)),
            ("Must be Python", None),
        ] {
            assert_eq!(cost_limit(words), limit, "{words}");
        }
    }

    proptest! {
        #[test]
        fn any_note_is_read(text in "(- \\[ \\] a|\\^b|```|yaml|needs: \\[|  |\\PC|\n){0,40}", id in "[ab1-4]") {
            let (tasks, _) = parse_tasks(&text);
            let _ = execution_order(&tasks, &BTreeSet::new());
            if let Some(new) = with_task_status(&text, &id, TaskStatus::Done) {
                prop_assert_eq!(parse_tasks(&new).0.len(), tasks.len());
            }
        }
    }
}
