//! Agents on the command line: `cmd_ask` starts a run; `cmd_runs`, `cmd_steps`, `cmd_sessions`, `cmd_approvals` and
//! `cmd_tools` inspect and control existing work.

mod ask;
mod program_requests;
mod sessions;
mod tool_packages;
mod tools;

pub(super) use ask::{AskedRun, cmd_ask, follow_run, parse_budget, prepare_question, resolve_agent_volume};
pub(super) use sessions::{cmd_sessions, read_session};
pub(super) use tools::cmd_tools;

use super::parse::number_option;
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use crate::arguments::{ApprovalsArguments, RunsArguments, StepsArguments};
use crate::plurals::counted;
use crate::web_browser::open_page;
use agent::budget::usage_so_far;
use agent::memory::experience::RunOutcome;
use agent::run_result::{RecordedRun, RunMetrics, RunResult};
use agent::tool_catalog::BuiltInTool;
use agent::{approval_text, policy, server_form, session_files};
use engine::{AgentRun, Command, RunSummary, Session};
use serde_json::{Map, Value, json};
use std::time::Duration;
use store::{
    BlobRef, ChangeKind, DecisionRecord, DecisionScope, DocId, ExecutionStep, RunApproval, RunEnding, StepKind,
    TodoItem, TodoStatus,
};
use text::untrusted_text;

/// Maximum time to read a document.
const DOCUMENT_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a new random document id.
pub(super) fn new_doc_id() -> DocId {
    DocId::random(rand::random())
}

/// Resolves a word to one of these ids: the full id, or an unambiguous prefix.
fn resolve_id_prefix(word: &str, ids: impl Iterator<Item = DocId>, what: &str) -> Result<DocId, CliError> {
    // Search results refer to them as `run-0123abcd#step`.
    let wanted = word.split('#').next().unwrap_or(word).to_lowercase();
    let wanted = wanted.strip_prefix(&format!("{what}-")).unwrap_or(&wanted).to_owned();
    // Every id begins with nothing: an empty word would mean the only one there is.
    let fitting: Vec<DocId> = ids.filter(|id| !wanted.is_empty() && id.to_string().starts_with(&wanted)).collect();
    match fitting.as_slice() {
        [one] => Ok(*one),
        [] => Err(CliError::usage(format!("there is no {what} “{word}”; `tracebook {what}s` lists them"))),
        _ => Err(CliError::usage(format!("several {what}s begin with “{word}”; give more of the id"))),
    }
}

/// Resolves a word to a run, and loads it.
pub(super) fn resolve_run(scene: &CommandContext<'_>, word: &str) -> Result<DocId, CliError> {
    let ids: Vec<DocId> = scene.handle.read(|session| session.agents().runs().map(|(id, _)| id).collect())?;
    let run = if word == "last" {
        let newest =
            |session: &Session| session.agents().runs().max_by_key(|(_, line)| line.start_time).map(|(id, _)| id);
        scene.handle.read(newest)?.ok_or_else(|| CliError::usage("nothing was asked yet"))?
    } else {
        resolve_id_prefix(word, ids.into_iter(), "run")?
    };
    scene.handle.run_command(Command::OpenRun { run })?;
    let there = move |session: &Session| {
        let agents = session.agents();
        if let Some(why) = agents.read_error(run) {
            return Some(Err(why.to_owned()));
        }
        let one = agents.run(run)?;
        // A run that isn't over also needs its session, in which pending work continues.
        let whole = one.about.ending.is_some()
            || agents.session(one.about.session).is_some()
            || agents.read_error(one.about.session).is_some();
        whole.then_some(Ok(()))
    };
    match scene.handle.wait(Some(DOCUMENT_READ_TIMEOUT), there)? {
        Some(Ok(())) => Ok(run),
        Some(Err(why)) => Err(CliError::workspace(why)),
        None => Err(CliError::workspace("the run could not be read in a minute")),
    }
}

/// Reads a value from a loaded run.
pub(super) fn read_run<R: Send + 'static>(
    scene: &CommandContext<'_>,
    run: DocId,
    read: impl FnOnce(&AgentRun) -> R + Send + 'static,
) -> Result<R, CliError> {
    let found = scene.handle.read(move |session| session.agents().run(run).map(read))?;
    found.ok_or_else(|| CliError::workspace("the run was closed meanwhile"))
}

/// Waits until the agents' setup and the user's tools have been read.
pub(super) fn wait_for_setup(scene: &CommandContext<'_>) -> Result<(), CliError> {
    Ok(sent_runs::setup_checks::wait_for_setup(scene.handle)?)
}

/// Rejects an agent that isn't available in a volume; no other agent replaces it.
pub(super) fn ensure_agent_available(scene: &CommandContext<'_>, volume: DocId, name: &str) -> Result<(), CliError> {
    Ok(sent_runs::setup_checks::ensure_agent_available(scene.handle, volume, name)?)
}

/// Returns a run's status as a word.
pub(super) fn run_status_label(line: &RunSummary) -> &'static str {
    status_label(line.ending, line.pending > 0)
}

/// Returns the word for an ending, or for a run that isn't over.
fn status_label(ending: Option<RunEnding>, is_waiting: bool) -> &'static str {
    match ending {
        Some(RunEnding::Done) => "done",
        Some(RunEnding::Cancelled) => "stopped",
        Some(RunEnding::Failed) => "failed",
        Some(RunEnding::Limit) => "limit",
        Some(RunEnding::Budget) => "budget",
        None if is_waiting => "waits",
        None => "open",
    }
}

/// Describes a run's state in one line: how it ended, and the reason if it didn't end well.
fn describe_status(run: &AgentRun) -> String {
    let label = status_label(run.about.ending, run.pending().count() > 0);
    let reason = run.steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::Error { message, .. } => message.lines().next(),
        StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. } => None,
    });
    match (run.about.ending, reason) {
        (Some(RunEnding::Done), _) => label.to_owned(),
        (Some(_), Some(reason)) => format!("{label}: {}", untrusted_text::escape_line(reason)),
        (Some(_), None) => label.to_owned(),
        (None, _) => match run.pending().next() {
            Some(approval) => format!("{label}: {}", approval_text::title(approval)),
            None => format!("{label}: `tracebook runs ID --resume` continues it, if it isn't at work"),
        },
    }
}

pub(super) fn format_cost(cost: Option<f64>) -> String {
    match cost {
        Some(0.0) => "free".to_owned(),
        Some(cost) if cost < 0.0001 => "<$0.0001".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None => "unknown".to_owned(),
    }
}

pub(super) fn format_time(milliseconds: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Returns the name of the device that carries out a run, if it isn't this one.
pub(super) fn other_device(session: &Session, line: &RunSummary) -> Option<String> {
    line.device.as_ref().filter(|device| !session.is_own_device(Some(device))).map(|device| device.name.clone())
}

/// Runs `cmd_runs`: lists runs, or stops, resumes or reverts one.
pub(super) fn cmd_runs(scene: &mut CommandContext<'_>, args: &RunsArguments) -> Result<u8, CliError> {
    if !args.resume && (args.more.is_some() || args.budget.is_some() || args.no_wait) {
        return Err(CliError::usage("--more, --budget and --no-wait need --resume"));
    }
    let Some(word) = args.run.clone() else {
        let is_for_one = args.stop || args.resume || args.undo || args.redo || args.result || args.export;
        if is_for_one || args.change.is_some() || args.hunk.is_some() {
            return Err(CliError::usage("say which run; `tracebook runs` lists them"));
        }
        if args.import.is_some() {
            return Err(CliError::usage("say into which session; `tracebook sessions` lists them"));
        }
        let mut all: Vec<(DocId, RunSummary, Option<String>)> = scene.handle.read(move |session| {
            let runs = session.agents().runs();
            runs.map(|(id, line)| (id, line.clone(), other_device(session, line))).collect()
        })?;
        all.sort_by_key(|(_, line, _)| std::cmp::Reverse(line.start_time));
        scene.explain_empty_list(all.is_empty(), "No runs yet. `tracebook ask TEXT` starts one.")?;
        for (id, line, elsewhere) in all {
            if scene.json {
                let mut value = serde_json::to_value(&line).unwrap_or_default();
                value["id"] = json!(id);
                value["standing"] = json!(run_status_label(&line));
                writeln!(scene.out, "{value}")?;
            } else {
                let prompt = line.prompt.lines().next().unwrap_or("");
                // A model call that is under way, or that the program didn't outlive, is counted by estimate.
                let cost = format_cost(usage_so_far(&line).cost);
                let id = &id.to_string()[..8];
                let device = elsewhere.map_or_else(String::new, |name| format!("  (on {name})"));
                let deadline = line.deadline.filter(|_| line.ending.is_none()).map(format_time);
                let until = deadline.map_or_else(String::new, |at| format!("  (ends by {at})"));
                let (stands, at) = (run_status_label(&line), format_time(line.start_time));
                let (prompt, device) = (untrusted_text::escape_line(prompt), untrusted_text::escape_line(&device));
                writeln!(scene.out, "{id}  {stands:7}  {at}  {cost:>9}  {prompt}{until}{device}")?;
            }
        }
        return Ok(EXIT_DONE);
    };
    if let Some(file) = args.import.clone() {
        return sessions::import_run(scene, &word, &file);
    }
    let run = resolve_run(scene, &word)?;
    let only = match (number_option("change", args.change.as_deref())?, number_option("hunk", args.hunk.as_deref())?) {
        (Some(change), hunk) => Some((change, hunk.map(|hunk| hunk as usize))),
        (None, Some(_)) => return Err(CliError::usage("--hunk needs --change: the number that `runs RUN` shows")),
        (None, None) => None,
    };
    if args.stop {
        scene.handle.run_command(Command::CancelRun { run })?;
        sent_runs::stop_if_queued(scene.handle, run)?;
    } else if args.undo || args.redo {
        let before = scene.handle.read(|session| session.problems().len())?;
        scene.handle.run_command(Command::Revert { run, only, again: args.redo })?;
        let done = |session: &Session| {
            let pending = session.pending_note_jobs() + session.pending_restores();
            (pending == 0 && session.pending_move().is_none()).then_some(())
        };
        scene.handle.wait(Some(DOCUMENT_READ_TIMEOUT), done)?;
        export::open_note::wait_until_saved(scene.handle)?;
        let problems = scene.handle.read(move |session| session.problems()[before..].to_vec())?;
        for problem in &problems {
            writeln!(scene.errors, "{problem}")?;
        }
        if !problems.is_empty() {
            return Ok(EXIT_FAILED);
        }
    } else if args.resume {
        let budget = ask::parse_budget(args.budget.as_deref())?;
        scene.handle.run_command(Command::ResumeRun {
            run,
            more: number_option("more", args.more.as_deref())?,
            budget,
        })?;
        return ask::follow_run(scene, run, args.no_wait, usize::MAX);
    } else {
        return show_run(scene, run, args);
    }
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(EXIT_DONE)
}

/// Returns the result of a run with the runs that it delegated; `None` while it continues.
fn result_of_run(scene: &CommandContext<'_>, run: DocId) -> Result<Option<RunResult>, CliError> {
    let family = scene.handle.read(move |session| session.agents().paid_runs(run))?;
    for part in &family {
        resolve_run(scene, &part.to_string())?;
    }
    Ok(scene.handle.read(move |session| {
        let recorded = |id: DocId| {
            let AgentRun { about, steps, changes, .. } = session.agents().run(id)?;
            Some(RecordedRun { about, steps, changes })
        };
        let delegated: Vec<RecordedRun<'_>> = family.into_iter().filter(|id| *id != run).filter_map(recorded).collect();
        let agents = session.agents();
        let outcome = agents.run(run).and_then(|run| agents.outcome_of_run(run));
        RunResult::of_run(recorded(run)?, outcome, &delegated)
    })?)
}

/// Prints the result of a run.
fn show_result(scene: &mut CommandContext<'_>, result: Option<RunResult>) -> Result<u8, CliError> {
    let Some(result) = result else {
        writeln!(
            scene.errors,
            "tracebook: the run isn't over, so there is no result yet; `runs` says what it waits for"
        )?;
        return Ok(EXIT_FAILED);
    };
    if scene.json {
        writeln!(scene.out, "{}", json!(result))?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{}", untrusted_text::escape_block(&result.output))?;
    for path in &result.artifacts {
        writeln!(scene.out, "file: {}", untrusted_text::escape_line(path))?;
    }
    for error in &result.errors {
        writeln!(scene.out, "error: {}", untrusted_text::escape_line(error))?;
    }
    let RunMetrics { model_calls, tool_calls, failed_tool_calls, cost_usd, duration_ms, .. } = result.metrics;
    let seconds = duration_ms as f64 / 1_000.0;
    let cost = format_cost(cost_usd);
    writeln!(
        scene.out,
        "{model_calls} model calls, {tool_calls} tool calls ({failed_tool_calls} failed), {seconds:.1} s, {cost}"
    )?;
    Ok(EXIT_DONE)
}

/// Prints a run's prompt, steps and changes.
fn show_run(scene: &mut CommandContext<'_>, run: DocId, args: &RunsArguments) -> Result<u8, CliError> {
    let state =
        read_run(scene, run, |run| (run.about.clone(), run.todos.clone(), run.changes.clone(), describe_status(run)))?;
    let (about, todos, changes, mut status) = state;
    if args.export {
        let (uri, now) = (sessions::file_uri(scene, about.note)?, jiff::Timestamp::now().as_millisecond());
        let exported =
            read_run(scene, run, move |run| session_files::run_to_json(&run.about, &run.todos, &run.steps, &uri, now))?;
        writeln!(scene.out, "{}", serde_json::to_string_pretty(&exported).unwrap_or_default())?;
        return Ok(EXIT_DONE);
    }
    if scene.json || args.result {
        let result = result_of_run(scene, run)?;
        if args.result {
            return show_result(scene, result);
        }
        let value = json!({"id": run, "about": about, "todos": todos, "changes": changes, "result": result});
        writeln!(scene.out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{}", about.prompt)?;
    let spent = about.spent;
    writeln!(
        scene.out,
        "{}, {}, {} tokens read, {} written, {}",
        format_time(about.start_time),
        counted(about.iteration, "model call"),
        spent.input_tokens,
        spent.output_tokens,
        format_cost(spent.cost)
    )?;
    let find_outcome = move |session: &Session| {
        let agents = session.agents();
        agents.run(run).and_then(|run| agents.outcome_of_run(run))
    };
    if about.ending == Some(RunEnding::Done) && scene.handle.read(find_outcome)? == Some(RunOutcome::Failure) {
        status.push_str(", but what it tried failed");
    }
    writeln!(scene.out, "{status}")?;
    for todo in &todos {
        writeln!(scene.out, "{}", todo_line(todo))?;
    }
    for change in &changes {
        let gone = change.undone.len();
        let all = engine::revertible_parts(change);
        let state = match gone {
            0 => String::new(),
            gone if gone == all => ", reverted".to_owned(),
            gone => format!(", {gone} of {all} hunks reverted"),
        };
        let what = match &change.what {
            ChangeKind::Created { .. } => "created",
            ChangeKind::Edited { .. } => "changed",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Bytes { before: None, .. } => "created",
            ChangeKind::Bytes { after: None, .. } => "deleted",
            ChangeKind::Bytes { .. } => "changed",
        };
        writeln!(scene.out, "change {}: {what} {}{state}", change.number, untrusted_text::escape_line(&change.path))?;
        if let ChangeKind::Edited { hunks } = &change.what {
            for (at, hunk) in hunks.iter().enumerate() {
                writeln!(scene.out, "  hunk {at}")?;
                for (sign, text) in [('-', &hunk.removed), ('+', &hunk.inserted)] {
                    for line in text.lines() {
                        writeln!(scene.out, "  {sign}{line}")?;
                    }
                }
            }
        }
    }
    Ok(EXIT_DONE)
}

fn todo_line(todo: &TodoItem) -> String {
    let mark = match todo.status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '/',
        TodoStatus::Completed => 'x',
        TodoStatus::Cancelled => '-',
    };
    format!("- [{mark}] {}", untrusted_text::escape_line(&todo.content))
}

/// Runs `cmd_steps`: prints the steps of a run; with `--json` one per line, in the format of `llmbox.md`.
pub(super) fn cmd_steps(scene: &mut CommandContext<'_>, args: &StepsArguments) -> Result<u8, CliError> {
    let word = args.run.as_str();
    let run = resolve_run(scene, word)?;
    let (steps, approvals) = read_run(scene, run, |run| (run.steps.clone(), run.approvals.clone()))?;
    let only = word.split_once('#').map(|(_, step)| step.to_owned());
    let whole = args.whole && !scene.json;
    for step in steps.iter().filter(|step| only.as_ref().is_none_or(|only| step.id.to_string() == *only)) {
        match &step.kind {
            StepKind::ToolResult { whole: Some(said), .. } if whole => write_blob(scene, said)?,
            // A picture is shown by another program, so it's all that is written.
            StepKind::ToolResult { attached, .. } if whole && only.is_some() && !attached.is_empty() => {
                attached.iter().take(1).try_for_each(|file| write_blob(scene, file))?;
            }
            _ => print_step(scene, step, &approvals)?,
        }
    }
    Ok(EXIT_DONE)
}

/// Prints the steps of a run from this index on. Returns the number of its steps.
pub(super) fn print_new_steps(scene: &mut CommandContext<'_>, run: DocId, from: usize) -> Result<usize, CliError> {
    let (steps, approvals) =
        read_run(scene, run, move |run| (run.steps.get(from..).unwrap_or_default().to_vec(), run.approvals.clone()))?;
    for step in &steps {
        print_step(scene, step, &approvals)?;
    }
    scene.out.flush()?;
    Ok(from + steps.len())
}

/// Writes what a step keeps outside of the run.
fn write_blob(scene: &mut CommandContext<'_>, blob: &BlobRef) -> Result<(), CliError> {
    let bytes = scene.handle.read_blob(blob.blob).map_err(|why| {
        CliError::workspace(format!("{why}; what another device has comes with `tracebook sync now`"))
    })?;
    scene.out.write_all(&bytes)?;
    Ok(())
}

/// Returns the arguments that a call ran with if they differ from the requested ones: the user changed them, or the
/// call was redirected.
fn executed_arguments<'a>(
    call: &str,
    asked: &Map<String, Value>,
    approvals: &'a [RunApproval],
) -> Option<&'a Map<String, Value>> {
    let last = approvals.iter().rev().find(|approval| approval.call_id() == call)?;
    let decision = last.decision.as_ref().filter(|decision| decision.allowed)?;
    Some(decision.arguments.as_ref().unwrap_or(&last.arguments)).filter(|used| *used != asked)
}

/// Prints a step: as a line of JSON, or as readable text.
fn print_step(scene: &mut CommandContext<'_>, step: &ExecutionStep, approvals: &[RunApproval]) -> Result<(), CliError> {
    let used = match &step.kind {
        StepKind::ToolCall { tool_call_id, params, .. } => executed_arguments(tool_call_id, params, approvals),
        StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    };
    if scene.json {
        let mut value = serde_json::to_value(step).unwrap_or_default();
        if let Some(used) = used {
            value["executedParams"] = json!(used);
        }
        writeln!(scene.out, "{value}")?;
        return Ok(());
    }
    let short = |text: &str, lines: usize| -> String {
        let mut kept: Vec<&str> = text.lines().take(lines).collect();
        let more = text.lines().count().saturating_sub(lines);
        let rest = format!("… {more} more lines");
        if more > 0 {
            kept.push(&rest);
        }
        kept.join("\n    ")
    };
    match &step.kind {
        StepKind::Thinking { content, .. } if content.trim().is_empty() => {}
        StepKind::Thinking { content, .. } => writeln!(scene.out, "{}", content.trim())?,
        StepKind::ToolCall { tool_name, params, .. } => {
            let tool_name = untrusted_text::escape_line(tool_name);
            let about = |params: &Map<String, Value>| match policy::main_argument(params) {
                "" => serde_json::to_string(params).unwrap_or_default(),
                subject => subject.to_owned(),
            };
            match used {
                None => writeln!(scene.out, "› {tool_name}: {}", short(&about(params), 3))?,
                Some(used) => {
                    writeln!(scene.out, "› {tool_name}, asked for: {}", short(&about(params), 3))?;
                    writeln!(scene.out, "  {tool_name}, run: {}", short(&about(used), 3))?;
                }
            }
        }
        StepKind::ToolResult { success: true, result, attached, .. } => {
            let text = match result {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            writeln!(scene.out, "    {}", short(&text, 12))?;
            for file in attached {
                let kind = untrusted_text::escape_line(&file.mime);
                writeln!(scene.out, "    kept with it: {kind}, {} bytes", file.size)?;
            }
        }
        StepKind::ToolResult { error, .. } => {
            writeln!(scene.out, "    failed: {}", short(error.as_deref().unwrap_or("no reason was given"), 12))?;
        }
        StepKind::Todo { todos } => {
            for todo in todos {
                writeln!(scene.out, "    {}", todo_line(todo))?;
            }
        }
        StepKind::FinalAnswer { content } => writeln!(scene.out, "{content}")?,
        StepKind::Error { message, .. } => writeln!(scene.errors, "{message}")?,
    }
    Ok(())
}

/// Returns what is allowed instead of what was asked: other arguments, or the answers to a form.
fn decided_arguments(
    args: &ApprovalsArguments,
    approval: &RunApproval,
) -> Result<Option<Map<String, Value>>, CliError> {
    let object = |json: &str, option: &str| {
        let parsed: Result<Map<String, Value>, _> = serde_json::from_str(json);
        parsed.map_err(|error| CliError::usage(format!("{option} isn't a JSON object: {error}")))
    };
    match (&args.arguments, &args.answers) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(CliError::usage("give either --arguments or --answers, not both")),
        (Some(json), None) => Ok(Some(object(json, "--arguments")?)),
        (None, Some(json)) if BuiltInTool::McpForm.is_named(&approval.tool) => {
            Ok(Some(server_form::with_answers(&approval.arguments, object(json, "--answers")?)))
        }
        (None, Some(_)) => {
            Err(CliError::usage("--answers is for forms of tool servers; --comment answers an agent's question"))
        }
    }
}

/// Lists the lasting decisions about calls.
fn list_rules(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let rules = scene.handle.read(|session| session.agents().rules().to_vec())?;
    scene.explain_empty_list(rules.is_empty(), "No rules. A lasting answer to an approval becomes one.")?;
    for (at, rule) in rules.iter().enumerate() {
        if scene.json {
            writeln!(scene.out, "{}", serde_json::to_string(rule).unwrap_or_default())?;
        } else {
            let word = match rule.is_readable() {
                true => format!("{:?}", rule.word).to_lowercase(),
                false => "skip".to_owned(),
            };
            let (words, origin) = (rule.describe(), untrusted_text::escape_line(&rule.origin));
            let within = if rule.within.is_some() { ", in one project or run" } else { "" };
            let of = if rule.is_readable() { format!("  ({origin}{within})") } else { String::new() };
            writeln!(scene.out, "{}  {word:5}  {}{of}", at + 1, untrusted_text::escape_line(&words))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Prints an approval: a line, and what waits or was changed.
fn print_approval(scene: &mut CommandContext<'_>, run: DocId, approval: &store::RunApproval) -> Result<(), CliError> {
    if scene.json {
        let mut value = serde_json::to_value(approval).unwrap_or_default();
        value["run"] = json!(run);
        value["name"] = json!(approval_name(run, &approval.id));
        writeln!(scene.out, "{value}")?;
    } else {
        let state = match &approval.decision {
            None => "waits".to_owned(),
            Some(decision) => {
                let word = if decision.allowed { "allowed" } else { "denied" };
                format!("{word} by {} at {}", decision.by.as_str(), format_time(decision.at))
            }
        };
        let (what, reason) = (approval_text::title(approval), untrusted_text::escape_line(&approval.reason));
        writeln!(scene.out, "{}  {state}  {what} ({reason})", approval_name(run, &approval.id))?;
        let changed = approval.decision.as_ref().and_then(|decision| decision.arguments.as_ref());
        let run = changed
            .map(|changed| format!("run instead, as it was changed:\n{}", approval_text::format_arguments(changed)));
        // The full request of a pending call, and the replacement of a changed one.
        let body = if approval.decision.is_none() { approval_text::body(approval) } else { String::new() };
        for line in [body, run.unwrap_or_default()].iter().flat_map(|text| text.lines()) {
            writeln!(scene.out, "    {line}")?;
        }
    }
    Ok(())
}

/// Returns the name under which an approval is decided.
fn approval_name(run: DocId, id: &str) -> String {
    format!("{}/{id}", &run.to_string()[..8])
}

/// Runs `cmd_approvals`: lists pending approvals and past decisions, or decides one.
pub(super) fn cmd_approvals(scene: &mut CommandContext<'_>, args: &ApprovalsArguments) -> Result<u8, CliError> {
    if let Some(number) = number_option("forget", args.forget.as_deref())? {
        let number = (number as usize).checked_sub(1).ok_or_else(|| CliError::usage("rules are counted from 1"))?;
        scene.handle.run_command(Command::ForgetRule { number })?;
        export::open_note::wait_until_saved(scene.handle)?;
        return Ok(EXIT_DONE);
    }
    if args.rules {
        return list_rules(scene);
    }
    let details = [&args.scope, &args.arguments, &args.answers, &args.comment];
    if args.approval.is_none() && (args.allow || args.deny || details.iter().any(|detail| detail.is_some())) {
        return Err(CliError::usage("say which approval; `tracebook approvals` lists them"));
    }
    // Runs with pending approvals are loaded at the start; older ones are read only if all decisions are wanted.
    let all = args.all;
    let query = args.find.as_ref().map(|word| word.to_lowercase());
    let runs: Vec<DocId> = scene.handle.read(move |session| {
        let wanted = |line: &RunSummary| all || (line.ending.is_none() && line.pending > 0);
        session.agents().runs().filter(|(_, line)| wanted(line)).map(|(id, _)| id).collect()
    })?;
    let mut found: Vec<(DocId, store::RunApproval)> = Vec::new();
    for run in runs {
        let run = resolve_run(scene, &run.to_string())?;
        let of = read_run(scene, run, move |run| match all {
            true => run.approvals.clone(),
            false => run.pending().cloned().collect(),
        })?;
        found.extend(of.into_iter().map(|approval| (run, approval)));
    }
    if let Some(query) = &query {
        found.retain(|(_, approval)| {
            let words = format!("{} {} {:?}", approval.what, approval.tool, approval.arguments).to_lowercase();
            words.contains(query)
        });
    }
    let Some(word) = args.approval.as_ref() else {
        for (run, approval) in &found {
            print_approval(scene, *run, approval)?;
        }
        let listed = program_requests::list_requests(scene, query.as_deref())?;
        scene.explain_empty_list(found.is_empty() && listed == 0, "Nothing waits for your approval.")?;
        return Ok(EXIT_DONE);
    };
    if program_requests::decide_request(scene, word, args)? {
        return Ok(EXIT_DONE);
    }
    let fits = |(run, approval): &&(DocId, store::RunApproval)| {
        approval.decision.is_none() && (approval.id == *word || approval_name(*run, &approval.id) == *word)
    };
    let Some((run, approval)) = found.iter().find(fits) else {
        return Err(CliError::usage(format!(
            "nothing waits under the name {word}; `tracebook approvals` lists what does"
        )));
    };
    let allowed = match (args.allow, args.deny) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(CliError::usage("say --allow or --deny")),
    };
    let scope = match args.scope.as_deref().unwrap_or("once") {
        "once" => DecisionScope::Once,
        "run" => DecisionScope::Run,
        "project" => DecisionScope::Project,
        "always" => DecisionScope::Always,
        other => return Err(CliError::usage(format!("--scope is once, run, project or always, not “{other}”"))),
    };
    let arguments = decided_arguments(args, approval)?;
    let comment = args.comment.clone();
    let decision = DecisionRecord { arguments, comment, ..DecisionRecord::by_user(allowed, scope) };
    // Programs decide with this command, too, for users elsewhere: no browser opens here.
    let page = server_form::form_of(approval).filter(|_| allowed && !scene.json);
    let (run, approval) = (*run, approval.id.clone());
    if let Some(name) = sent_runs::send_decision(scene.handle, run, &approval, &decision)? {
        writeln!(scene.errors, "sent to {}", untrusted_text::escape_line(&name))?;
        page.map_or(Ok(()), |form| open_page(&form, false, scene.errors))?;
        return Ok(EXIT_DONE);
    }
    scene.handle.run_command(Command::Decide { run, approval, decision })?;
    page.map_or(Ok(()), |form| open_page(&form, false, scene.errors))?;
    export::open_note::wait_until_saved(scene.handle)?;
    if scene.own {
        return ask::follow_run(scene, run, args.no_wait, usize::MAX);
    }
    // The owning process may have the run's terminal, so the run isn't followed here.
    crate::guest_runs::hold_for(run);
    let word = if allowed { "Allowed" } else { "Denied" };
    if !scene.json {
        writeln!(scene.out, "{word}. The program that has the workspace open continues the run.")?;
    }
    Ok(EXIT_DONE)
}
