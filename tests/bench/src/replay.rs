//! Benchmark of the safety of replays, on traces of the multi-turn tasks of BFCL v4 (PyPI `bfcl-eval`).
//!
//! The traces are learned from BFCL's ground truth. Their goals are then requested unchanged, in other words, with
//! other values, in changed environments, with changed tools, and as goals that only look alike. What the ground truth
//! copies from an earlier reply, it copies from the reply of the changed environment. Every trace counts as certain
//! here, so only matching and conditions protect against wrong actions; no model is called. The environments are BFCL's
//! own, in a Python process.

use super::replay_truth::{contains_word, copy_from_replies};
use super::report::{BenchReport, FigureGoal as Aim, percentile};
use agent::memory::goal::ParsedGoal;
use agent::memory::result_check::ResultDifference;
use agent::memory::slots;
use agent::memory::trace::{GoalMismatch, RunTrace, wilson_lower_bound};
use agent::memory::trace_extraction::{CompletedRun, ToolFacts, TraceLearnError, learn_trace};
use agent::memory::trace_trust::{DEFAULT_FOLLOW_CONFIDENCE, TraceTrust};
use agent::memory::{ProjectMemory, RecallOptions, ReplayMode, StoredTrace};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use store::{AgentState, CallUsage, DocId, ExecutionStep, MessageId, RunAbout, RunEnding, StepId, StepKind};

const BFCL_DRIVER: &str = include_str!("replay.py");

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct GroundTruthCall {
    name: String,
    args: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct ReplayTask {
    goal: String,
    config: Value,
    classes: Vec<String>,
    calls: Vec<GroundTruthCall>,
}

/// The result of a call: its text, whether it succeeded, and whether it changed the environment.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CallReply {
    pub(super) text: String,
    ok: bool,
    changed: bool,
}

/// BFCL's environments, in a Python process.
struct BfclEnvironments {
    child: Child,
    /// The parameters of all tools as text, by tool.
    parameters: BTreeMap<String, String>,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Drop for BfclEnvironments {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl BfclEnvironments {
    fn start(corpus: &Path) -> Result<BfclEnvironments, String> {
        let mut command = Command::new("python3");
        command.arg("-c").arg(BFCL_DRIVER).arg(corpus).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("python3 cannot be started ({error})"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (to, from) = to.zip(from).ok_or("python3 has no pipes")?;
        Ok(BfclEnvironments { child, parameters: BTreeMap::new(), to, from: BufReader::new(from) })
    }

    fn request(&mut self, what: &Value) -> Result<Value, String> {
        let broken =
            |error: std::io::Error| format!("the environments ended ({error}); is --corpus the unpacked wheel?");
        writeln!(self.to, "{what}").and_then(|()| self.to.flush()).map_err(broken)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(broken)?;
        serde_json::from_str(&line).map_err(|error| format!("the environments said no JSON ({error})"))
    }

    /// Creates a fresh environment; `None` if the configuration can't be used.
    fn create_environment(&mut self, config: &Value, classes: &[String]) -> Result<Option<u64>, String> {
        let said = self.request(&json!({"op": "start", "config": config, "classes": classes}))?;
        Ok(said["env"].as_u64())
    }

    fn call_tool(&mut self, env: u64, name: &str, args: &Map<String, Value>) -> Result<CallReply, String> {
        let said = self.request(&json!({"op": "call", "env": env, "name": name, "args": args}))?;
        serde_json::from_value(said).map_err(|error| error.to_string())
    }

    fn close_environment(&mut self, env: u64) -> Result<String, String> {
        Ok(self.request(&json!({"op": "close", "env": env}))?["state"].as_str().unwrap_or_default().to_owned())
    }

    /// Makes calls in a fresh environment. Returns their replies and the final state; `None` if it can't be created.
    fn run_calls(
        &mut self,
        task: &ReplayTask,
        config: &Value,
        calls: &[GroundTruthCall],
    ) -> Result<Option<(Vec<CallReply>, String)>, String> {
        let Some(env) = self.create_environment(config, &task.classes)? else { return Ok(None) };
        let mut said = Vec::new();
        for call in calls {
            said.push(self.call_tool(env, &call.name, &call.args)?);
        }
        Ok(Some((said, self.close_environment(env)?)))
    }
}

/// What the ground truth does in a changed environment, or for another value.
struct AdaptedTruth {
    said: Vec<CallReply>,
    state: String,
    /// Whether an argument came from an earlier reply that no longer says it, so that no replay can be right.
    is_stale: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplayEnd {
    /// No trace matches, so a model is called.
    Missed,
    /// A condition stopped the replay before its end, so a model continues.
    Stopped,
    /// All steps were done.
    Done,
}

/// The kinds of requests that a trace of the task may answer.
const REPLAYABLE_REQUESTS: [&str; 5] = [
    "the same goal",
    "other words",
    "other values",
    "other values that the tools know",
    "other numbers in the environment",
];

/// Counts for one kind of request.
#[derive(Clone, Copy, Debug, Default)]
struct ReplayCounts {
    asked: u64,
    /// Requests whose run was given a secret: these mustn't be replayed.
    secret: u64,
    hits: u64,
    right: u64,
    stopped: u64,
    wrong: u64,
}

struct ReplayBench {
    world: BfclEnvironments,
    memory: ProjectMemory,
    facts: BTreeMap<String, ToolFacts>,
    /// The texts that the tasks pass to tools, by tool and argument.
    argument_values: BTreeMap<(String, String), BTreeSet<String>>,
    /// Whether the tasks are reported in two halves.
    split: bool,
    /// Name of the half of the current task; empty without a split.
    half: &'static str,
    /// Number of the current task.
    task: usize,
    /// Why tasks have no trace, by their number.
    refused: BTreeMap<usize, TraceLearnError>,
    counts: BTreeMap<(&'static str, &'static str), ReplayCounts>,
    /// Why the current request wasn't replayed to its end.
    reason: String,
    /// How often a request of each kind wasn't replayed to its end, by reason.
    reasons: BTreeMap<(&'static str, &'static str, String), u64>,
    matching: Vec<f64>,
    /// Milliseconds of completed replays, and of stopped ones, each including matching.
    hits: Vec<f64>,
    stops: Vec<f64>,
    /// Number of tool calls in completed and in stopped replays.
    calls: [u64; 2],
}

/// Returns the half of a task: rules may be tuned on tasks with an even number, and never on the others.
fn half_of(at: usize) -> &'static str {
    if at.is_multiple_of(2) { "even tasks, for tuning" } else { "odd tasks, held out" }
}

/// Measures replays on BFCL's tasks; with `split`, the two halves of the tasks apart.
pub(super) fn measure(report: &mut BenchReport, corpus: &Path, split: bool) -> Result<(), String> {
    let mut world = BfclEnvironments::start(corpus)?;
    let mut read = world.request(&json!({"op": "tasks"}))?;
    let tasks: Vec<ReplayTask> = serde_json::from_value(read["tasks"].take()).map_err(|error| error.to_string())?;
    world.parameters = serde_json::from_value(read["parameters"].take()).map_err(|error| error.to_string())?;
    // Replies of the ground truth, and which tools only read.
    let mut truths = Vec::new();
    let mut changes: BTreeSet<String> = BTreeSet::new();
    for task in &tasks {
        let (said, state) = world.run_calls(task, &task.config, &task.calls)?.ok_or("a task has no environment")?;
        changes
            .extend(task.calls.iter().zip(&said).filter(|(_, said)| said.changed).map(|(call, _)| call.name.clone()));
        truths.push((said, state));
    }
    let names: BTreeSet<&String> = tasks.iter().flat_map(|task| task.calls.iter().map(|call| &call.name)).collect();
    let fact = |name: &&String| {
        let parameters = world.parameters.get(*name).cloned().unwrap_or_default();
        ((*name).clone(), ToolFacts { schema: format!("{name} 1"), idempotent: !changes.contains(*name), parameters })
    };
    let facts: BTreeMap<String, ToolFacts> = names.iter().map(fact).collect();
    let mut memory = ProjectMemory::default();
    let mut owner: Vec<usize> = Vec::new();
    let mut refused: BTreeMap<usize, TraceLearnError> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        match learn_task_trace(task, &truths[at].0, &facts) {
            Ok(trace) => {
                memory.traces.push(StoredTrace { path: format!("memory/traces/{at}.md"), text: String::new(), trace });
                owner.push(at);
            }
            Err(why) => {
                refused.insert(at, why);
            }
        }
    }
    report.add_figure("goals", tasks.len() as f64, "", Aim::None);
    report.add_figure("learned as traces", owner.len() as f64, "", Aim::None);
    report.add_figure("not learned, with a reason", refused.len() as f64, "", Aim::None);
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    refused.values().for_each(|why| *reasons.entry(why.to_string()).or_default() += 1);
    for (why, count) in reasons {
        report.add_figure(format!("not learned because {why}"), count as f64, "", Aim::None);
    }
    let mut argument_values: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for call in tasks.iter().flat_map(|task| &task.calls) {
        for (name, text) in call.args.iter().filter_map(|(name, value)| Some((name, value.as_str()?))) {
            argument_values.entry((call.name.clone(), name.clone())).or_default().insert(text.to_owned());
        }
    }
    let mut bench = ReplayBench {
        world,
        memory,
        facts,
        argument_values,
        split,
        half: "",
        task: 0,
        refused,
        reason: String::new(),
        counts: BTreeMap::new(),
        reasons: BTreeMap::new(),
        matching: Vec::new(),
        hits: Vec::new(),
        stops: Vec::new(),
        calls: [0; 2],
    };
    for (at, task) in tasks.iter().enumerate() {
        bench.half = if bench.split { half_of(at) } else { "" };
        bench.task = at;
        bench.measure_task(at, task, &truths[at].0)?;
    }
    bench.report_counts(report);
    Ok(())
}

/// Learns the trace of a task from a run that follows the ground truth.
fn learn_task_trace(
    task: &ReplayTask,
    said: &[CallReply],
    facts: &BTreeMap<String, ToolFacts>,
) -> Result<RunTrace, TraceLearnError> {
    let mut steps: Vec<ExecutionStep> = Vec::new();
    let mut add = |kind| {
        let id = StepId(steps.len() as u64);
        steps.push(ExecutionStep {
            id,
            timestamp: 0,
            duration: None,
            parents: vec![],
            kind,
            spent: None,
            route: None,
            tool: None,
        });
    };
    for (at, (call, said)) in task.calls.iter().zip(said).enumerate() {
        let (id, tool_name) = (format!("c{at}"), call.name.clone());
        add(StepKind::ToolCall { tool_call_id: id.clone(), tool_name, params: call.args.clone() });
        let (result, error) = (Some(Value::String(said.text.clone())), None);
        let (tool_call_id, attached, files) = (id, Vec::new(), Vec::new());
        add(StepKind::ToolResult { tool_call_id, success: said.ok, result, error, whole: None, attached, files });
    }
    add(StepKind::FinalAnswer { content: "Done.".to_owned() });
    let about = RunAbout {
        session: DocId([1; 16]),
        asked: MessageId(1),
        head: MessageId(1),
        volume: DocId([2; 16]),
        note: None,
        prompt: task.goal.clone(),
        agent: "assistant".to_owned(),
        start_time: 0,
        ended: Some(0),
        ending: Some(RunEnding::Done),
        iteration: 1,
        limit: 20,
        agent_state: AgentState::Idle,
        spent: CallUsage::default(),
        budget: None,
        origin: store::RunOrigin::User,
        phase: 0,
        imported: None,
        provider: None,
        deadline: None,
        is_follower: false,
    };
    let there = BTreeSet::new();
    learn_trace(&CompletedRun {
        about: &about,
        steps: &steps,
        approvals: &[],
        changes: &[],
        tools: facts,
        note: None,
        there: &there,
        run: "bench",
    })
}

/// Replaces a word in all texts of a value.
fn replace_word(value: &Value, old: &str, new: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(old, new)),
        Value::Array(items) => items.iter().map(|item| replace_word(item, old, new)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.replace(old, new), replace_word(item, old, new)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Shifts all numbers of a value slightly.
fn shift_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!(number.as_f64().unwrap_or_default() + 1.5),
        Value::Number(number) => number.as_i64().map_or(value.clone(), |number| json!(number + 1)),
        Value::Array(items) => items.iter().map(shift_numbers).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, item)| (key.clone(), shift_numbers(item))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Paraphrases a goal: adds polite phrases and uses synonyms.
pub(super) fn paraphrase_goal(goal: &str) -> Vec<String> {
    let mut bare = goal.trim().to_owned();
    if let Some(first) = bare.get(..1).map(str::to_lowercase) {
        bare.replace_range(..1, &first);
    }
    let swapped = goal.replace("director", "folder_").replace("folder_ies", "folders").replace("folder_y", "folder");
    let swapped = swapped.replace("create", "make").replace("Create", "Make").replace("delete", "remove");
    vec![format!("Please {bare}"), format!("Could you {bare} Thanks"), swapped, format!("I need you to {bare}")]
}

/// Returns goals that look similar but mean something else: another action, or the opposite.
fn misleading_goals(goal: &str) -> Vec<String> {
    let swaps = [
        ("move", "copy"),
        ("copy", "move"),
        ("create", "delete"),
        ("delete", "create"),
        ("lock", "unlock"),
        ("add", "remove"),
        ("buy", "sell"),
        ("book", "cancel"),
        ("send", "draft"),
        ("start", "stop"),
        ("display", "hide"),
        ("find", "rename"),
    ];
    let mut found =
        vec![format!("Do not {goal}"), format!("{goal} But leave the last step out."), format!("Undo this: {goal}")];
    let lower = goal.to_lowercase();
    found.extend(swaps.iter().filter(|(one, _)| lower.contains(one)).map(|(one, other)| lower.replacen(one, other, 1)));
    found
}

impl ReplayBench {
    /// Makes the calls of the ground truth for another value or environment. Returns `None` if it can't be created.
    fn adapt_truth(
        &mut self,
        task: &ReplayTask,
        config: &Value,
        calls: &[GroundTruthCall],
        before: &[CallReply],
    ) -> Result<Option<AdaptedTruth>, String> {
        let Some(env) = self.world.create_environment(config, &task.classes)? else { return Ok(None) };
        let goal = ParsedGoal::parse(&task.goal);
        let (mut said, mut is_stale) = (Vec::new(), false);
        for (at, (call, own)) in calls.iter().zip(&task.calls).enumerate() {
            let mut args = Map::new();
            for (key, value) in &call.args {
                let is_own = own.args.get(key) == Some(value);
                let copied =
                    is_own.then(|| copy_from_replies(value, &goal, (&before[..at], said.as_slice()), &mut is_stale));
                args.insert(key.clone(), copied.unwrap_or_else(|| value.clone()));
            }
            // A number that was read, and isn't there any more.
            let text =
                |replies: &[CallReply]| replies.iter().map(|reply| reply.text.as_str()).collect::<Vec<_>>().join(" ");
            let (then, now) = (text(&before[..at]), text(&said));
            is_stale |= args.values().filter(|value| value.is_number()).any(|value| {
                let written = value.to_string();
                contains_word(&then, &written) && !contains_word(&now, &written) && !goal.names_all(&written)
            });
            said.push(self.world.call_tool(env, &call.name, &args)?);
        }
        Ok(Some(AdaptedTruth { said, state: self.world.close_environment(env)?, is_stale }))
    }

    /// Requests a goal with another value, in the goal, the environment and the ground truth alike. Returns whether
    /// that makes sense: the calls then end as they did.
    fn ask_with_value(
        &mut self,
        kind: &'static str,
        task: &ReplayTask,
        said: &[CallReply],
        (value, new): (&str, &str),
    ) -> Result<bool, String> {
        let schemas = self.schemas();
        let goal = task.goal.replace(value, new);
        let config = replace_word(&task.config, value, new);
        let other = |call: &GroundTruthCall| {
            let args = replace_word(&Value::Object(call.args.clone()), value, new);
            GroundTruthCall { name: call.name.clone(), args: args.as_object().cloned().unwrap_or_default() }
        };
        let calls: Vec<GroundTruthCall> = task.calls.iter().map(other).collect();
        let Some(truth) = self.adapt_truth(task, &config, &calls, said)? else { return Ok(false) };
        if goal == task.goal || truth.said.iter().zip(said).any(|(now, before)| now.ok != before.ok) {
            return Ok(false);
        }
        let is_named = calls != task.calls;
        let (end, after) = self.replay_goal(&goal, task, &config, &schemas)?;
        // If no call names the value, the ground truth is about the old one, and nothing says what the new one needs.
        let kind = if is_named { kind } else { "another value that no call names" };
        self.record_end(kind, end, is_named && !truth.is_stale && after == truth.state);
        Ok(true)
    }

    fn schemas(&self) -> BTreeMap<String, String> {
        self.facts.iter().map(|(name, facts)| (name.clone(), facts.schema.clone())).collect()
    }

    /// Replays the trace that matches a goal, under the trace's conditions. Returns the outcome and the final state.
    fn replay_goal(
        &mut self,
        goal: &str,
        task: &ReplayTask,
        config: &Value,
        schemas: &BTreeMap<String, String>,
    ) -> Result<(ReplayEnd, String), String> {
        let begun = Instant::now();
        let recall = RecallOptions { mode: ReplayMode::Follower, ..RecallOptions::default() };
        let chosen = self.memory.choose_trace(goal, None, "assistant", schemas, &recall, &|trace| {
            TraceTrust::of_trace(trace, DEFAULT_FOLLOW_CONFIDENCE, false, true)
        });
        self.matching.push(super::to_ms(begun.elapsed()));
        let Some(fitting) = chosen else {
            self.reason = self.miss_reason(goal);
            return Ok((ReplayEnd::Missed, String::new()));
        };
        let trace = self.memory.traces.get(fitting.at).map(|filed| filed.trace.for_goal(&ParsedGoal::parse(goal)));
        let Some(trace) = trace.map(Cow::into_owned) else {
            return Ok((ReplayEnd::Missed, String::new()));
        };
        let Some(env) = self.world.create_environment(config, &task.classes)? else {
            return Ok((ReplayEnd::Missed, String::new()));
        };
        let begun = Instant::now();
        let mut results: Vec<String> = Vec::new();
        let mut end = ReplayEnd::Done;
        for step in &trace.steps {
            let args = match slots::fill_arguments(&step.input, &fitting.values, &results) {
                Ok(args) => args,
                Err(_) => {
                    end = ReplayEnd::Stopped;
                    self.reason = "an earlier result lacks a value".to_owned();
                    break;
                }
            };
            let said = self.world.call_tool(env, &step.tool, &args)?;
            if !said.ok {
                end = ReplayEnd::Stopped;
                self.reason = "a call failed".to_owned();
            } else if let Err(difference) = step.expect.check(&said.text, &fitting.values) {
                end = ReplayEnd::Stopped;
                self.reason = match difference {
                    ResultDifference::Shape { .. } => "a result has another form".to_owned(),
                    ResultDifference::Text => "a result says something else".to_owned(),
                };
            }
            results.push(said.text);
            if matches!(end, ReplayEnd::Stopped) {
                break;
            }
        }
        let took = self.matching.last().copied().unwrap_or(0.0) + super::to_ms(begun.elapsed());
        let stopped = matches!(end, ReplayEnd::Stopped);
        self.calls[usize::from(stopped)] += results.len() as u64;
        if stopped {
            self.stops.push(took)
        } else {
            self.hits.push(took)
        }
        Ok((end, self.world.close_environment(env)?))
    }

    /// Returns why no trace was replayed for a goal of the current task.
    fn miss_reason(&self, goal: &str) -> String {
        if let Some(why) = self.refused.get(&self.task) {
            return why.to_string();
        }
        let path = format!("memory/traces/{}.md", self.task);
        let Some(own) = self.memory.traces.iter().find(|filed| filed.path == path) else {
            return "its own trace is left out".to_owned();
        };
        let why = match own.trace.match_goal(&ParsedGoal::parse(goal), None) {
            Ok(_) => "two traces fit, or a tool has changed",
            Err(GoalMismatch::OtherWords) => "its words are others",
            Err(GoalMismatch::OtherValue { .. }) => "a value differs that isn't a slot",
            Err(GoalMismatch::SplitValue { .. } | GoalMismatch::SeparateValues { .. }) => {
                "values differ that were one or belonged together"
            }
            Err(GoalMismatch::MergedValues { .. }) => "two values are one now",
            Err(GoalMismatch::NoNote | GoalMismatch::MissingValue { .. }) => "a value is missing",
        };
        why.to_owned()
    }

    fn record_end(&mut self, kind: &'static str, end: ReplayEnd, right: bool) {
        let count = self.counts.entry((self.half, kind)).or_default();
        count.asked += 1;
        count.secret += u64::from(self.refused.get(&self.task) == Some(&TraceLearnError::HoldsSecret));
        if end != ReplayEnd::Done {
            *self.reasons.entry((self.half, kind, std::mem::take(&mut self.reason))).or_default() += 1;
        }
        match end {
            ReplayEnd::Missed => {}
            ReplayEnd::Stopped => count.stopped += 1,
            ReplayEnd::Done => {
                count.hits += 1;
                if right {
                    count.right += 1;
                } else {
                    count.wrong += 1;
                }
            }
        }
    }

    fn measure_task(&mut self, at: usize, task: &ReplayTask, said: &[CallReply]) -> Result<(), String> {
        let schemas = self.schemas();
        let Some((_, state)) = self.world.run_calls(task, &task.config, &task.calls)? else { return Ok(()) };
        let (end, after) = self.replay_goal(&task.goal, task, &task.config, &schemas)?;
        self.record_end("the same goal", end, after == state);
        for goal in paraphrase_goal(&task.goal) {
            let (end, after) = self.replay_goal(&goal, task, &task.config, &schemas)?;
            self.record_end("other words", end, after == state);
        }
        let values: Vec<String> = ParsedGoal::parse(&task.goal).values().map(|(_, text)| text.to_owned()).collect();
        for (number, value) in values.iter().enumerate().filter(|(_, value)| value.len() >= 3) {
            let new = match value.rsplit_once('.') {
                Some((stem, ending)) if !value.starts_with(|c: char| c.is_ascii_digit()) => {
                    format!("{stem}_{number}x.{ending}")
                }
                _ if value.parse::<f64>().is_ok() => continue,
                _ => format!("{value}{number}x"),
            };
            self.ask_with_value("other values", task, said, (value.as_str(), new.as_str()))?;
        }
        // The values above are made up. These are what other tasks pass to the same argument, which the tools may know.
        let config = task.config.to_string();
        for value in values.iter().filter(|value| value.len() >= 3) {
            let known = self.argument_values.iter().filter(|((tool, name), _)| {
                task.calls.iter().any(|call| {
                    call.name == *tool && call.args.get(name).and_then(Value::as_str) == Some(value.as_str())
                })
            });
            let known: BTreeSet<String> = known.flat_map(|(_, values)| values.iter().cloned()).collect();
            let fits =
                |new: &&String| new.len() >= 3 && !task.goal.contains(new.as_str()) && !config.contains(new.as_str());
            for new in known.iter().filter(fits) {
                if self.ask_with_value(
                    "other values that the tools know",
                    task,
                    said,
                    (value.as_str(), new.as_str()),
                )? {
                    break;
                }
            }
        }
        // Renames what the ground truth refers to in the environment, so that the old steps can't be right.
        let texts: BTreeSet<&str> = task
            .calls
            .iter()
            .flat_map(|call| call.args.values().filter_map(Value::as_str))
            .filter(|text| text.len() > 3)
            .collect();
        for text in texts {
            let config = replace_word(&task.config, text, &format!("{text}_gone"));
            let Some((truth, state)) = self.world.run_calls(task, &config, &task.calls)? else { continue };
            if config == task.config {
                continue;
            }
            let (end, after) = self.replay_goal(&task.goal, task, &config, &schemas)?;
            self.record_end("a changed environment", end, truth.iter().all(|said| said.ok) && after == state);
        }
        // Changes the numbers in the environment. A replay is right only if it used none of the old ones.
        let config = shift_numbers(&task.config);
        if let Some(truth) = self.adapt_truth(task, &config, &task.calls, said)? {
            let (end, after) = self.replay_goal(&task.goal, task, &config, &schemas)?;
            let is_right = !truth.is_stale && truth.said.iter().all(|said| said.ok) && after == truth.state;
            self.record_end("other numbers in the environment", end, is_right);
        }
        // Changes one of the task's tools.
        if let Some(call) = task.calls.get(at % task.calls.len().max(1)) {
            let mut schemas = schemas.clone();
            schemas.insert(call.name.clone(), format!("{} 2", call.name));
            let (end, _) = self.replay_goal(&task.goal, task, &task.config, &schemas)?;
            self.record_end("a changed tool", end, false);
        }
        // Similar goals. No replay is right, because a matching trace does something else.
        for goal in misleading_goals(&task.goal) {
            let (end, _) = self.replay_goal(&goal, task, &task.config, &schemas)?;
            self.record_end("goals that look alike", end, false);
        }
        // The goal without its own trace, so any match is another task's trace.
        let own = self.memory.traces.iter().position(|filed| filed.path == format!("memory/traces/{at}.md"));
        let gone = own.map(|own| self.memory.traces.remove(own));
        let (end, after) = self.replay_goal(&task.goal, task, &task.config, &schemas)?;
        self.record_end("another task's traces", end, after == state);
        if let (Some(own), Some(gone)) = (own, gone) {
            self.memory.traces.insert(own, gone);
        }
        Ok(())
    }

    fn report_counts(&mut self, report: &mut BenchReport) {
        let halves: BTreeSet<&str> = self.counts.keys().map(|(half, _)| *half).collect();
        for half in halves {
            self.report_half(report, half);
        }
        report.add_figure(
            "a goal matched against all traces, p50",
            percentile(&mut self.matching, 50),
            "ms",
            Aim::None,
        );
        // A replay uses no tokens; its costs are its tool calls, and those of replays that stop early.
        let [made, lost] = self.calls;
        report.add_figure("a hit with its matching, p50", percentile(&mut self.hits, 50), "ms", Aim::None);
        report.add_figure(
            "a replay that stops, with its matching, p50",
            percentile(&mut self.stops, 50),
            "ms",
            Aim::None,
        );
        report.add_figure("calls of tools in hits", made as f64, "", Aim::None);
        report.add_figure("calls of tools in replays that stopped", lost as f64, "", Aim::None);
    }

    fn report_half(&self, report: &mut BenchReport, half: &str) {
        let prefix = if half.is_empty() { String::new() } else { format!("{half}: ") };
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 * 100.0 };
        let mut whole = ReplayCounts::default();
        for ((_, kind), count) in self.counts.iter().filter(|((of, _), _)| *of == half) {
            let of = |name: &str| format!("{prefix}{kind}: {name}");
            report.add_figure(of("asked"), count.asked as f64, "", Aim::None);
            report.add_figure(of("replayed to the end"), count.hits as f64, "", Aim::None);
            report.add_figure(of("with the right state"), count.right as f64, "", Aim::None);
            report.add_figure(of("stopped by a condition"), count.stopped as f64, "", Aim::None);
            report.add_figure(of("silently wrong"), count.wrong as f64, "", Aim::None);
            // Only of requests for what the trace does; no other should be replayed.
            if REPLAYABLE_REQUESTS.contains(kind) {
                let may = share(count.hits, count.asked - count.secret);
                report.add_figure(of("hits, of those given no secret"), may, "%", Aim::None);
                let reasons = self.reasons.iter().filter(|((of, to, _), _)| of == &half && to == kind);
                for ((_, _, reason), count) in reasons {
                    report.add_figure(of(&format!("not replayed because {reason}")), *count as f64, "", Aim::None);
                }
            }
            whole.asked += count.asked;
            whole.hits += count.hits;
            whole.right += count.right;
            whole.stopped += count.stopped;
            whole.wrong += count.wrong;
        }
        report.add_figure(format!("{prefix}all: asked"), whole.asked as f64, "", Aim::None);
        report.add_figure(format!("{prefix}all: hits"), share(whole.hits, whole.asked), "%", Aim::None);
        report.add_figure(
            format!("{prefix}all: hits with the right state"),
            share(whole.right, whole.hits),
            "%",
            Aim::None,
        );
        let fallen = whole.asked - whole.hits;
        report.add_figure(format!("{prefix}all: fallen back to a model"), share(fallen, whole.asked), "%", Aim::None);
        report.add_figure(format!("{prefix}unsafe replays"), share(whole.wrong, whole.asked), "%", Aim::None);
        // The upper bound of the unsafe share is one minus the lower bound of the safe share.
        let upper = (1.0 - wilson_lower_bound(whole.asked - whole.wrong, whole.asked)) * 100.0;
        report.add_figure(format!("{prefix}unsafe replays, upper end at 95 %"), upper, "%", Aim::Under(1.0));
    }
}
