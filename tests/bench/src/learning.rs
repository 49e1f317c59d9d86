//! Benchmark of learning: 100 recurring tasks over 30 days, with memory off and with three thresholds of trust.
//!
//! The model is a server of this process that speaks OpenAI's protocol. It knows what each task is about and errs as
//! often as [`MODEL_SKILL`] says; the user undoes its errors. Some days' data has another form, some requests are
//! worded otherwise, and some only look like the task. Everything else is real: workspace, files, tools, policy,
//! memory. A run without a model is unsafe if it leaves another text than a model without errors would have left, or
//! changes another file.

use super::report::{BenchReport, FigureGoal};
use super::{drive_until, open_volume, open_workspace, to_ms};
use agent::memory::{RecallOptions, ReplayMode};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use engine::{Command, Session};
use host::Driver;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use store::{DecisionRecord, DecisionScope, DocId};
use support::measure::ScratchFolder;

/// Number of recurring tasks.
const TASK_COUNT: usize = 100;
/// Number of simulated days, unless the caller says otherwise.
pub(super) const DEFAULT_DAY_COUNT: usize = 30;
/// Share of the model's runs that are right.
const MODEL_SKILL: f64 = 0.95;
/// Share of days on which a task's data has another form.
const DRIFT_SHARE: f64 = 0.04;
/// Share of requests in other words.
const REWORDED_SHARE: f64 = 0.2;
/// Share of requests that are followed by one that only looks like them.
const LOOKALIKE_SHARE: f64 = 0.03;
/// The thresholds of trust that are compared; `None` is memory switched off.
const THRESHOLDS: [Option<f64>; 4] = [None, Some(0.8), Some(0.9), Some(0.95)];
/// After so many days, the workspace is closed and opened again.
const DAYS_BETWEEN_RESTARTS: usize = 10;
/// Price of the model in US dollars per million tokens, in and out.
const MODEL_PRICE: (f64, f64) = (3.0, 15.0);

const PLACES: [&str; 10] = ["bern", "cork", "delft", "essen", "faro", "ghent", "hobart", "izmir", "jena", "kyoto"];
const GOODS: [&str; 10] = ["apples", "bread", "candles", "dates", "eggs", "flour", "grapes", "honey", "ink", "jam"];

/// What a recurring task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecurringWork {
    /// Reads the data, and writes a report that names it.
    Report,
    /// Reads the data, and writes a copy of it.
    Copy,
    /// Adds a line to a log.
    Log,
    /// Reads the data and shows it.
    Lookup,
    /// Counts lines in the shell, which is asked about each time.
    Shell,
    /// Writes what only a model can conclude from the data.
    Judgment,
}

/// A task that recurs every few days.
#[derive(Clone, Copy, Debug)]
struct RecurringTask {
    number: usize,
    work: RecurringWork,
    /// Days between two requests.
    every: usize,
}

/// One request for a task.
#[derive(Clone, Debug)]
struct TaskRequest {
    task: RecurringTask,
    day: usize,
    /// Whether it only looks like the task: the file is to be deleted.
    lookalike: bool,
    /// Whether the model errs if it's asked.
    error: bool,
}

/// Returns a deterministic pseudorandom number from 0 to 1 for a decision about a request.
fn chance(decision: &str, task: usize, day: usize) -> f64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for byte in decision.bytes().chain([task as u8, day as u8]) {
        state = (state ^ u64::from(byte)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state ^= state >> 29;
    }
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

/// Formats a simulated day, which is in October or November 2026.
fn date_of(day: usize) -> String {
    let (month, first) = if day < 31 { (10, 0) } else { (11, 31) };
    format!("2026-{month}-{:02}", day - first + 1)
}

impl RecurringTask {
    /// Returns all tasks: 30 reports, 20 copies, 15 logs, 15 lookups, 10 in the shell and 10 judgments. Of each ten,
    /// six recur daily, two every third day, and two weekly.
    fn all() -> Vec<RecurringTask> {
        let works = [
            (RecurringWork::Report, 30),
            (RecurringWork::Copy, 20),
            (RecurringWork::Log, 15),
            (RecurringWork::Lookup, 15),
            (RecurringWork::Shell, 10),
            (RecurringWork::Judgment, 10),
        ];
        let works = works.into_iter().flat_map(|(work, count)| std::iter::repeat_n(work, count));
        let one = |(number, work): (usize, RecurringWork)| {
            let every = match number % 10 {
                6 | 7 => 3,
                8 | 9 => 7,
                _ => 1,
            };
            RecurringTask { number, work, every }
        };
        works.enumerate().take(TASK_COUNT).map(one).collect()
    }

    fn name(&self) -> String {
        format!("{}-{}", GOODS[self.number % 10], PLACES[self.number / 10 % 10])
    }

    fn data_path(&self, day: usize) -> String {
        format!("data/{}-{}.csv", self.name(), date_of(day))
    }

    fn is_drifted(&self, day: usize) -> bool {
        day > 0 && chance("drift", self.number, day) < DRIFT_SHARE
    }

    /// Returns the number of goods sold on a day.
    fn sold(&self, day: usize) -> u64 {
        100 + (chance("sold", self.number, day) * 900.0) as u64
    }

    fn data(&self, day: usize) -> String {
        let sold = self.sold(day);
        if self.is_drifted(day) {
            return format!("shop;sold;price\n1;{sold};3\n");
        }
        format!("shop,sold\n1,{sold}\n2,{}\n", sold / 2)
    }

    /// Returns the file that the task writes, if it writes one.
    fn target(&self, day: usize) -> Option<String> {
        let (name, date) = (self.name(), date_of(day));
        match self.work {
            RecurringWork::Report => Some(format!("reports/{name}-{date}.md")),
            RecurringWork::Copy => Some(format!("copies/{name}-{date}.md")),
            RecurringWork::Log => Some(format!("logs/{name}.md")),
            RecurringWork::Shell => Some(format!("counts/{name}-{date}.txt")),
            RecurringWork::Judgment => Some(format!("verdicts/{name}-{date}.md")),
            RecurringWork::Lookup => None,
        }
    }

    fn log_text(&self, days: &[usize]) -> String {
        let lines = days.iter().rev().fold(String::new(), |mut text, day| {
            let _ = writeln!(text, "- {}", date_of(*day));
            text
        });
        format!("# Log of {}\n\n## Dates\n{lines}", self.name())
    }
}

impl TaskRequest {
    fn goal(&self) -> String {
        let (task, date) = (self.task, date_of(self.day));
        let (goods, place) = (GOODS[task.number % 10], PLACES[task.number / 10 % 10]);
        let target = task.target(self.day).unwrap_or_default();
        if self.lookalike {
            return format!("Delete the report on {goods} in {place} for {date} from {target}");
        }
        let goal = match task.work {
            RecurringWork::Report => format!("Write the report on {goods} in {place} for {date} into {target}"),
            RecurringWork::Copy => format!("Copy the list of {goods} in {place} for {date} into {target}"),
            RecurringWork::Log => format!("Add {date} to the log of {goods} in {place}"),
            RecurringWork::Lookup => format!("Show the list of {goods} in {place} for {date}"),
            RecurringWork::Shell => format!("Count the lines on {goods} in {place} for {date} into {target}"),
            RecurringWork::Judgment => format!("Judge the day of {goods} in {place} for {date} in {target}"),
        };
        if chance("words", task.number, self.day) >= REWORDED_SHARE {
            return goal;
        }
        let mut letters = goal.chars();
        let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
        format!("Please {first}{}", letters.as_str())
    }

    /// Returns the calls that a model without errors makes, one for each turn.
    fn calls(&self) -> Vec<(&'static str, Value)> {
        let task = self.task;
        let target = task.target(self.day).unwrap_or_default();
        if self.lookalike {
            return vec![("delete_file", json!({"path": target}))];
        }
        let read = ("read_file", json!({"path": task.data_path(self.day)}));
        match task.work {
            RecurringWork::Lookup => vec![read],
            RecurringWork::Log => {
                let (old, new) = ("## Dates\n".to_owned(), format!("## Dates\n- {}\n", date_of(self.day)));
                vec![("edit_file", json!({"path": target, "old_content": old, "new_content": new}))]
            }
            RecurringWork::Shell => {
                let command = format!("mkdir -p counts && wc -l < {} > {target}", task.data_path(self.day));
                vec![read, ("shell", json!({"command": command}))]
            }
            RecurringWork::Report | RecurringWork::Copy | RecurringWork::Judgment => {
                vec![read, ("write_file", json!({"path": target, "content": self.expected_text(&[])}))]
            }
        }
    }

    /// Returns the text of the target after a run without errors. `logged` are the days that are in the log already.
    fn expected_text(&self, logged: &[usize]) -> String {
        let (task, date) = (self.task, date_of(self.day));
        let path = task.data_path(self.day);
        match task.work {
            RecurringWork::Report | RecurringWork::Copy | RecurringWork::Judgment if task.is_drifted(self.day) => {
                format!("{path} has another form than before.\n")
            }
            RecurringWork::Report => format!("# {}, {date}\n\nSee {path}\n", task.name()),
            RecurringWork::Copy => task.data(self.day),
            RecurringWork::Judgment => {
                let sold = task.sold(self.day);
                format!("{sold} were sold, which is {}.\n", if sold > 500 { "good" } else { "bad" })
            }
            RecurringWork::Shell => format!("{}\n", task.data(self.day).lines().count()),
            RecurringWork::Log => task.log_text(&[logged, &[self.day]].concat()),
            RecurringWork::Lookup => String::new(),
        }
    }

    /// Returns the text of the model's last message.
    fn answer(&self) -> String {
        match self.task.work {
            RecurringWork::Lookup if !self.lookalike => self.task.data(self.day),
            _ => "It is done.".to_owned(),
        }
    }
}

/// The scripted model: the request that it works on, and the number of its answers.
#[derive(Debug, Default)]
struct ScriptedModel {
    request: Option<TaskRequest>,
    answers: u64,
}

type SharedModel = Arc<Mutex<ScriptedModel>>;

/// Answers a call of OpenAI's chat protocol as server-sent events.
async fn answer_call(State(model): State<SharedModel>, body: String) -> impl IntoResponse {
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    let messages = asked["messages"].as_array().cloned().unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "tool").count();
    let (text, call) = {
        let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
        model.answers += 1;
        model.request.as_ref().map_or_else(Default::default, |request| {
            let call = request.calls().into_iter().nth(turn);
            let call = call.map(|(name, mut arguments)| {
                // An error of the model: the right tool, and a text of its own.
                if request.error && arguments["content"].is_string() {
                    arguments["content"] = json!("I think all went well.\n");
                }
                (name, arguments)
            });
            (if call.is_some() { String::new() } else { request.answer() }, call)
        })
    };
    let mut events = String::new();
    let mut send = |delta: Value, end: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        let _ = write!(events, "data: {chunk}\n\n");
    };
    send(json!({"role": "assistant", "content": text}), None);
    let ending = if call.is_some() { "tool_calls" } else { "stop" };
    let written = text.len() + call.as_ref().map_or(0, |(_, arguments)| arguments.to_string().len());
    if let Some((name, arguments)) = call {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let called = json!({"index": 0, "id": format!("t{turn}"), "type": "function", "function": function});
        send(json!({"tool_calls": [called]}), None);
    }
    send(json!({}), Some(ending));
    // About four bytes are a token.
    let (prompt, completion) = (body.len() / 4, written / 4 + 5);
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
    let _ =
        write!(events, "data: {}\n\ndata: [DONE]\n\n", json!({"id": "x", "model": "m", "choices": [], "usage": usage}));
    ([(CONTENT_TYPE, "text/event-stream")], events)
}

/// Starts the scripted model, and returns its address.
fn start_model(model: SharedModel) -> Result<String, String> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let served = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
                let address = listener.local_addr().map_err(|error| error.to_string())?;
                let routes = Router::new().route("/v1/chat/completions", post(answer_call)).with_state(model);
                if send.send(Ok(format!("http://{address}"))).is_err() {
                    return Ok(());
                }
                axum::serve(listener, routes).await.map_err(|error| error.to_string())
            })
        });
        if let Err(why) = served {
            let _ = send.send(Err(why)); // nobody waits once the address is known
        }
    });
    receive.recv().map_err(|_| "the model did not start".to_owned())?
}

/// What one simulation found.
#[derive(Clone, Debug, Default)]
struct LearningCounts {
    /// Requests in all, and those after the first of their task.
    requests: u64,
    recurring: u64,
    /// Of the recurring ones: without a model, and without a model and without a question.
    without_model: u64,
    unattended: u64,
    /// Runs without a model that left something else than they should have.
    unsafe_runs: u64,
    /// Runs that ended as they should have, before the user corrected any.
    right: u64,
    model_calls: u64,
    tokens: u64,
    dollars: f64,
    /// Milliseconds of each run.
    times: Vec<f64>,
    /// Milliseconds of each run without a model.
    replay_times: Vec<f64>,
    /// Unattended ones and recurring ones by days between requests: 1, 3 and 7.
    by_interval: [(u64, u64); 3],
}

/// The state of a simulation.
struct LearningBench {
    driver: Driver,
    volume: DocId,
    model: SharedModel,
    counts: LearningCounts,
    /// Days that are in each task's log.
    logged: Vec<Vec<usize>>,
    next_id: u128,
}

pub(super) fn measure(report: &mut BenchReport, days: usize) -> Result<(), String> {
    let days = days.clamp(2, 61);
    report.add_figure("tasks", TASK_COUNT as f64, "", FigureGoal::None);
    report.add_figure("days", days as f64, "", FigureGoal::None);
    report.add_figure("runs of the model that are right", MODEL_SKILL * 100.0, "%", FigureGoal::None);
    let mut dollars_without = f64::NAN;
    for threshold in THRESHOLDS {
        let name = threshold.map_or_else(|| "memory off".to_owned(), |threshold| format!("trust {threshold}"));
        let mut found = simulate(report, &name, threshold, days)?;
        report_counts(report, &name, &mut found);
        match threshold {
            None => dollars_without = found.dollars,
            Some(_) => {
                let share = found.dollars / dollars_without * 100.0;
                report.add_figure(format!("{name}: cost, of that with memory off"), share, "%", FigureGoal::None);
            }
        }
    }
    Ok(())
}

fn report_counts(report: &mut BenchReport, name: &str, found: &mut LearningCounts) {
    let percent = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
    let mut add = |what: &str, value: f64, unit: &'static str, goal: FigureGoal| {
        report.add_figure(format!("{name}: {what}"), value, unit, goal);
    };
    add("requests", found.requests as f64, "", FigureGoal::None);
    add("right before corrections", percent(found.right, found.requests), "%", FigureGoal::None);
    add("model calls", found.model_calls as f64, "", FigureGoal::None);
    add("tokens", found.tokens as f64, "", FigureGoal::None);
    add("cost", found.dollars, "dollars", FigureGoal::None);
    add("time of a run p50", super::report::percentile(&mut found.times, 50), "ms", FigureGoal::None);
    if name == "memory off" {
        return;
    }
    add("recurring requests", found.recurring as f64, "", FigureGoal::None);
    add("without a model", percent(found.without_model, found.recurring), "%", FigureGoal::None);
    add("without a model and unattended", percent(found.unattended, found.recurring), "%", FigureGoal::AtLeast(60.0));
    for ((unattended, recurring), interval) in found.by_interval.iter().zip(["daily", "every third day", "weekly"]) {
        add(&format!("unattended, {interval}"), percent(*unattended, *recurring), "%", FigureGoal::None);
    }
    add("unsafe", found.unsafe_runs as f64, "", FigureGoal::Zero);
    add("time of a replay p50", super::report::percentile(&mut found.replay_times, 50), "ms", FigureGoal::None);
}

/// Writes the configuration and the data of all days.
fn write_data(scratch: &ScratchFolder, address: &str, threshold: Option<f64>, days: usize) -> Result<(), String> {
    let memory = threshold.map_or_else(
        || "learn: false".to_owned(),
        |threshold| format!("learn: true\n  follow_confidence: {threshold}"),
    );
    let (input, output) = MODEL_PRICE;
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  cost_limit: null\n  providers:\n    test: {{local: \
         false, wire: openai, base_url: \"{address}/v1\", model: m, context: 64000, price: {{input: {input}, \
         output: {output}}}}}\n\
         memory:\n  {memory}\n"
    );
    scratch.write("W/config.yaml", config.as_bytes())?;
    for task in RecurringTask::all() {
        if task.work == RecurringWork::Log {
            scratch.write(&format!("N/logs/{}.md", task.name()), task.log_text(&[]).as_bytes())?;
        }
        for day in (0..days).filter(|day| (day + task.number).is_multiple_of(task.every)) {
            scratch.write(&format!("N/{}", task.data_path(day)), task.data(day).as_bytes())?;
        }
    }
    Ok(())
}

/// Simulates the days at a threshold of trust.
fn simulate(report: &BenchReport, name: &str, threshold: Option<f64>, days: usize) -> Result<LearningCounts, String> {
    let scratch = ScratchFolder::new("learning")?;
    let model = SharedModel::default();
    let address = start_model(Arc::clone(&model))?;
    write_data(&scratch, &address, threshold, days)?;
    let mut driver = open_workspace(&scratch)?;
    let volume = open_volume(&mut driver, &scratch.folder().join("N"))?;
    let (counts, logged) = (LearningCounts::default(), vec![Vec::new(); TASK_COUNT]);
    let mut bench = LearningBench { driver, volume, model, counts, logged, next_id: 1 };
    let mut asked = [false; TASK_COUNT];
    for day in 0..days {
        report.show_progress(&format!("{name}: day {} of {days}", day + 1));
        if day > 0 && day.is_multiple_of(DAYS_BETWEEN_RESTARTS) {
            bench = bench.restart(&scratch)?;
        }
        for task in RecurringTask::all() {
            if !(day + task.number).is_multiple_of(task.every) {
                continue;
            }
            let error = chance("error", task.number, day) >= MODEL_SKILL;
            bench.ask(&TaskRequest { task, day, lookalike: false, error }, asked[task.number])?;
            asked[task.number] = true;
            if task.work == RecurringWork::Report && chance("lookalike", task.number, day) < LOOKALIKE_SHARE {
                bench.ask(&TaskRequest { task, day, lookalike: true, error: false }, false)?;
            }
        }
    }
    bench.driver.close().map_err(|why| why.to_string())?;
    Ok(bench.counts)
}

impl LearningBench {
    /// Closes the workspace and opens it again.
    fn restart(self, scratch: &ScratchFolder) -> Result<LearningBench, String> {
        let LearningBench { driver, volume, model, counts, logged, next_id } = self;
        driver.close().map_err(|why| why.to_string())?;
        let mut driver = open_workspace(scratch)?;
        let known = |session: &Session| session.volume(volume).is_some_and(|volume| volume.scans > 0);
        drive_until(&mut driver, "the folder is known again", known)?;
        Ok(LearningBench { driver, volume, model, counts, logged, next_id })
    }

    fn new_id(&mut self) -> DocId {
        self.next_id += 1;
        DocId((self.next_id | 1 << 100).to_be_bytes())
    }

    /// Asks once, decides what is asked, checks what was done, and corrects it if it's wrong.
    fn ask(&mut self, request: &TaskRequest, recurring: bool) -> Result<(), String> {
        let (run, session) = (self.new_id(), self.new_id());
        let answers_before = {
            let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
            model.request = Some(request.clone());
            model.answers
        };
        let begun = Instant::now();
        let command = Command::Ask {
            run,
            session,
            volume: self.volume,
            note: None,
            parent: None,
            text: request.goal(),
            agent: None,
            budget: None,
            allow: Vec::new(),
            recall: RecallOptions { mode: ReplayMode::Auto, ..RecallOptions::default() },
            provider: None,
        };
        self.driver.run_command(command).map_err(|reject| reject.0)?;
        let mut questions = 0_u64;
        loop {
            let ended = move |session: &Session| {
                session
                    .agents()
                    .run(run)
                    .is_some_and(|run| run.about.ending.is_some() || run.pending().next().is_some())
            };
            drive_until(&mut self.driver, "the run ends or asks", ended)?;
            let one = self.driver.session().agents().run(run).ok_or("the run is gone")?;
            let pending = one.pending().next().map(|approval| approval.id.clone());
            let Some(approval) = pending else { break };
            questions += 1;
            let decision = DecisionRecord::by_user(true, DecisionScope::Once);
            self.driver.run_command(Command::Decide { run, approval, decision }).map_err(|reject| reject.0)?;
        }
        let took = to_ms(begun.elapsed());
        drive_until(&mut self.driver, "everything is kept", Session::is_saved)?;
        let answers = self.model.lock().unwrap_or_else(PoisonError::into_inner).answers - answers_before;
        let is_right = self.is_right(run, request)?;
        let one = self.driver.session().agents().run(run).ok_or("the run is gone")?;
        let (spent, changed) = (one.about.spent, !one.changes.is_empty());
        let counts = &mut self.counts;
        counts.requests += 1;
        counts.model_calls += answers;
        counts.right += u64::from(is_right);
        counts.tokens += spent.input_tokens + spent.output_tokens;
        counts.dollars += spent.cost.unwrap_or_default();
        counts.times.push(took);
        if answers == 0 {
            counts.replay_times.push(took);
            counts.unsafe_runs += u64::from(!is_right);
        }
        if recurring {
            let unattended = u64::from(answers == 0 && questions == 0);
            counts.recurring += 1;
            counts.without_model += u64::from(answers == 0);
            counts.unattended += unattended;
            let at = usize::from(request.task.every > 1) + usize::from(request.task.every > 3);
            counts.by_interval[at].0 += unattended;
            counts.by_interval[at].1 += 1;
        }
        if is_right {
            if request.task.work == RecurringWork::Log && !request.lookalike {
                self.logged[request.task.number].push(request.day);
            }
        } else if changed {
            // The user sees that it's wrong, and takes it back.
            let undo = Command::Revert { run, only: None, again: false };
            self.driver.run_command(undo).map_err(|reject| reject.0)?;
            drive_until(&mut self.driver, "it is taken back", Session::is_saved)?;
        }
        Ok(())
    }

    /// Returns whether a run left exactly what a model without errors would have left, and changed nothing else.
    fn is_right(&mut self, run: DocId, request: &TaskRequest) -> Result<bool, String> {
        let target = request.task.target(request.day);
        let volume = self.volume;
        let root = self.driver.session().volume(volume).and_then(|volume| volume.root.clone());
        let root = root.ok_or("the volume has no folder")?;
        let one = self.driver.session().agents().run(run).ok_or("the run is gone")?;
        let only_target = one.changes.iter().all(|change| Some(&change.path) == target.as_ref());
        let ended = one.about.ending == Some(store::RunEnding::Done);
        let answer = agent::memory::trace_extraction::final_answer(&one.steps).unwrap_or_default().to_owned();
        let Some(target) = target else {
            return Ok(ended && only_target && answer.trim() == request.answer().trim());
        };
        let text = std::fs::read_to_string(root.join(&target)).ok();
        let wanted =
            if request.lookalike { None } else { Some(request.expected_text(&self.logged[request.task.number])) };
        Ok(ended && only_target && text == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_distinct_and_their_requests_are_the_same_each_time() {
        let tasks = RecurringTask::all();
        let names: std::collections::BTreeSet<String> = tasks.iter().map(RecurringTask::name).collect();
        assert_eq!((tasks.len(), names.len()), (TASK_COUNT, TASK_COUNT));
        assert!(tasks.iter().all(|task| task.data(4) == task.data(4)));
        assert_eq!(
            (date_of(0), date_of(30), date_of(31)),
            ("2026-10-01".into(), "2026-10-31".into(), "2026-11-01".into())
        );
        let drifted = tasks.iter().flat_map(|task| (0..30).map(|day| task.is_drifted(day))).filter(|drifted| *drifted);
        let share = drifted.count() as f64 / 3_000.0;
        assert!((0.02..0.06).contains(&share), "{share}");
    }
}
