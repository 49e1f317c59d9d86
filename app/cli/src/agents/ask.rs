//! `cmd_ask`: asks an agent, and prints what it does as it happens.

use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, new_fork, recall_options, resolve, run_cells};
use super::{new_doc_id, print_step, resolve_id_prefix};
use crate::arguments::AskArguments;
use crate::consolidation::consolidate_after_run;
use crate::form_prompt::read_form;
use crate::memory::trace_question::question_of_trace;
use crate::web_browser::open_page;
use agent::approval_text;
use agent::config::LogLevel;
use agent::memory::ReplayMode;
use agent::server_form::{self, FormAnswer, UserForm};
use agent::tool_call_parser;
use agent::tool_catalog::BuiltInTool;
use agent::tool_file::tool_to_json;
use engine::{AgentSession, Command, LiveModelCall, Session};
use serde_json::json;
use std::path::PathBuf;
use store::{
    BlobHash, DecisionRecord, DecisionScope, DocId, ExecutionStep, MessageId, RegisteredTool, RunApproval, RunEnding,
    RunOrigin, StepKind, UserTool,
};
use text::untrusted_text;

/// Maximum size of a prompt from standard input in bytes.
const MAX_PROMPT_BYTES: u64 = 1 << 20;
/// Number of digits of a whole id.
const DOC_ID_CHARS: usize = 32;

/// What the user asks for, with everything found that the words name.
pub(crate) struct AskedRun {
    pub(crate) run: DocId,
    pub(crate) session: DocId,
    pub(crate) volume: DocId,
    pub(crate) note: Option<DocId>,
    pub(crate) parent: Option<MessageId>,
    pub(crate) text: String,
    pub(crate) agent: Option<String>,
    pub(crate) budget: Option<f64>,
    pub(crate) provider: Option<Box<str>>,
    pub(crate) allow: Vec<String>,
    pub(crate) recall: agent::memory::RecallOptions,
}

/// What is new in a run since the last poll.
#[derive(Default)]
struct RunNews {
    steps: Vec<ExecutionStep>,
    /// Approvals of its calls, with decisions.
    approvals: Vec<RunApproval>,
    /// New text of the streamed answer: the call's number, and the text after the printed part.
    live: Option<(u64, String)>,
    /// New text of what the model thinks: the call's number, and the text after the printed part.
    thought: Option<(u64, String)>,
    /// Log lines: which model is used and why, and why a call is retried, depending on the log level.
    said: Vec<String>,
    /// A pending approval and its run: this one, or one that it delegated work to.
    approval: Option<(DocId, RunApproval)>,
    /// Tools that wait for approval since this run began.
    tools: Vec<UserTool>,
    trouble: Option<String>,
    ending: Option<RunEnding>,
}

pub(crate) fn parse_budget(word: Option<&str>) -> Result<Option<f64>, CliError> {
    let Some(word) = word else { return Ok(None) };
    let amount = agent::dollar_amount::parse_dollar_amount(word);
    amount.map(Some).ok_or_else(|| CliError::usage(format!("--budget wants US dollars, such as 0.50, not “{word}”")))
}

/// Finds what the arguments of `ask` name.
pub(crate) fn prepare_question(scene: &mut CommandContext<'_>, args: &AskArguments) -> Result<AskedRun, CliError> {
    let mut text = match args.text.as_str() {
        "-" => crate::parse::read_text_input(scene.input, MAX_PROMPT_BYTES)?,
        text => text.to_owned(),
    };
    resolve::wait_for_volumes(scene, false)?;
    let note = match args.note.as_ref() {
        Some(word) => Some(resolve::resolve_note(scene, word)?),
        None => None,
    };
    new_fork::ensure_no_fork_limit(args)?;
    let volume = resolve_agent_volume(scene, args.project.clone(), note)?;
    let sessions: Vec<DocId> = scene.handle.read(|session| session.agents().sessions().map(|(id, _)| id).collect())?;
    let session = match args.session.as_ref() {
        // A program that keeps ids of its own begins a session under a new one.
        Some(word) => match word.parse::<DocId>() {
            Ok(id) if word.len() == DOC_ID_CHARS => id,
            _ => resolve_id_prefix(word, sessions.into_iter(), "session")?,
        },
        None => new_doc_id(),
    };
    let parent = match args.from_step.as_ref() {
        Some(word) if word == "begin" => Some(MessageId::SESSION_ROOT),
        Some(word) => {
            let why = || CliError::usage(format!("--from wants a message's id, or begin, not “{word}”"));
            let message: MessageId = word.parse().map_err(|_| why())?;
            let is_root = message == MessageId::SESSION_ROOT;
            let has_session = scene.handle.read(move |all| all.agents().sessions().any(|(id, _)| id == session))?;
            let find = move |_: &Session, one: &AgentSession| one.tree().get(message).is_some();
            let is_there = is_root || (has_session && super::sessions::read_session(scene, session, find)?);
            if !is_there {
                let why = format!("there is no message {word} in the session; `tracebook sessions` shows them");
                return Err(CliError::usage(why));
            }
            Some(message)
        }
        None => None,
    };
    let run = match args.run_id.as_deref() {
        Some(word) => word.parse().map_err(|_| CliError::usage(format!("--run wants a new id, not “{word}”")))?,
        None => new_doc_id(),
    };
    if scene.handle.read(move |session| session.agents().runs().any(|(id, _)| id == run))? {
        return Err(CliError::usage(format!("there is a run {run} already")));
    }
    let budget = parse_budget(args.budget.as_deref())?;
    let provider = match args.model.as_deref() {
        // A worker has providers of its own.
        Some(model) if args.on.is_some() => Some(model.to_owned().into_boxed_str()),
        Some(model) => Some(crate::providers::find_provider(scene.handle.workspace_folder(), model)?.into_boxed_str()),
        None => None,
    };
    let mut agent = args.agent.as_ref().map(|name| name.trim_start_matches('@').to_owned());
    let (allow, mut recall) = (args.approve.clone(), recall_options::parse_recall_options(args)?);
    if let Some(word) = args.trace.as_deref() {
        if args.mode.is_some() {
            return Err(CliError::usage("--trace repeats that trace, so it takes no --mode"));
        }
        let question = question_of_trace(scene, word, (volume, note), &text)?;
        recall.mode = ReplayMode::Follower;
        recall.without.extend(question.others);
        text = question.text;
        agent = agent.or(Some(question.agent));
    }
    Ok(AskedRun { run, session, volume, note, parent, text, agent, budget, provider, allow, recall })
}

pub(crate) fn cmd_ask(scene: &mut CommandContext<'_>, args: &AskArguments) -> Result<u8, CliError> {
    let asked = prepare_question(scene, args)?;
    let AskedRun { run, session, text, agent, budget, provider, allow, recall, parent, .. } = asked;
    let (mut volume, mut note) = (asked.volume, asked.note);
    if let Some(name) = &agent {
        super::ensure_agent_available(scene, volume, name)?;
    }
    ensure_tools_known(scene, &allow)?;
    if args.fork.is_some() {
        let forked = new_fork::prepare_fork(scene, (volume, note), args, &text)?;
        (volume, note) = (forked.volume, forked.note);
    }
    let command = Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall, provider };
    let problems = scene.handle.read(|session| session.problems().len())?;
    scene.handle.run_command(command)?;
    let now = engine::UnixMillis(jiff::Timestamp::now().as_millisecond());
    let ready = |session: &Session| (!session.agents().is_reading()).then_some(());
    scene.handle.wait(Some(super::DOCUMENT_READ_TIMEOUT), ready)?;
    for word in unknown_agent_settings(scene, volume)? {
        writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&word))?;
    }
    if let Some(low) = scene.handle.read(move |session| session.low_budget_warning(now, Some(volume)))? {
        writeln!(scene.errors, "tracebook: {low}")?;
    }
    follow_run(scene, run, args.no_wait, problems)
}

/// Returns warnings about names in the settings of agents that mean nothing in a volume.
fn unknown_agent_settings(scene: &CommandContext<'_>, volume: DocId) -> Result<Vec<String>, CliError> {
    let (root, elsewhere) = scene.handle.read(move |session| {
        let root = session.volume(volume).and_then(|volume| volume.root.clone());
        (root, session.agent_volumes(volume))
    })?;
    let read = |root: PathBuf| host::agents::project_memory::read_callable_agents(&root, &elsewhere);
    let crew = root.map(read).unwrap_or_default();
    Ok(scene.handle.read(move |session| session.unknown_agent_settings(&crew))?)
}

/// Rejects `--approve` for a tool that doesn't exist, before anything runs.
fn ensure_tools_known(scene: &CommandContext<'_>, allow: &[String]) -> Result<(), CliError> {
    if allow.is_empty() {
        return Ok(());
    }
    super::wait_for_setup(scene)?;
    let allow = allow.to_vec();
    match scene.handle.read(move |session| session.unknown_tools(&allow).into_iter().next())? {
        Some(why) => Err(CliError::usage(format!("--approve: {why} `tracebook tools` lists the tools."))),
        None => Ok(()),
    }
}

/// Returns the volume in which an agent works: the named one, the note's, the one around the folder, or the only one.
pub(crate) fn resolve_agent_volume(
    scene: &CommandContext<'_>,
    named: Option<String>,
    note: Option<DocId>,
) -> Result<DocId, CliError> {
    let folder = scene.folder.to_owned();
    scene.handle.read(move |session| {
        let all: Vec<&engine::Volume> = session.volumes().filter(|volume| volume.root.is_some()).collect();
        if let Some(name) = named {
            return resolve::find_project(session, &name);
        }
        if let Some((volume, _)) = note.and_then(|note| session.locate_file(note)) {
            return Ok(volume);
        }
        let around = all.iter().find(|volume| volume.root.as_ref().is_some_and(|root| folder.starts_with(root)));
        match (around, all.as_slice()) {
            (Some(volume), _) => Ok(volume.id),
            (None, [one]) => Ok(one.id),
            (None, []) => Err(CliError::usage("there is no project yet; open a folder first: tracebook open FOLDER")),
            (None, _) => Err(CliError::usage("say in which project: --project NAME; `tracebook ls` shows them")),
        }
    })?
}

/// The streamed answer of a run, as far as it's printed.
#[derive(Default)]
struct StreamedAnswer {
    /// Number of the model's call, and how many bytes of it have arrived.
    call: (u64, usize),
    /// The text so far.
    coming: String,
    /// The printed part of it.
    printed: String,
}

impl StreamedAnswer {
    /// Prints what has arrived of a call's answer.
    fn print(&mut self, scene: &mut CommandContext<'_>, number: u64, more: &str) -> Result<(), CliError> {
        if number != self.call.0 {
            self.call = (number, 0);
            self.clear();
        }
        self.call.1 += more.len();
        self.coming.push_str(more);
        // A tool call written into the answer's text is printed as a step, once it's complete.
        let all = tool_call_parser::displayable_prefix(&self.coming);
        let new = all.get(self.printed.len()..).unwrap_or_default();
        if !scene.json {
            scene.out.write_all(new.as_bytes())?;
        } else if !new.is_empty() {
            writeln!(scene.out, "{}", json!({"type": "delta", "call": number, "content": new}))?;
        }
        scene.out.flush()?;
        self.printed = all;
        Ok(())
    }

    fn clear(&mut self) {
        self.coming.clear();
        self.printed.clear();
    }
}

/// Prints an approval that a run waits for as a line of JSON.
fn print_pending_approval(
    scene: &mut CommandContext<'_>,
    name: &str,
    run: DocId,
    approval: &RunApproval,
) -> Result<(), CliError> {
    let (tool, arguments) = (&approval.tool, &approval.arguments);
    let line = json!({"type": "approval_pending", "name": name, "tool": tool, "arguments": arguments,
        "what": approval.what, "reason": approval.reason, "call": approval.call_id(), "run": run,
        "code": approval.code, "reach": approval.reach});
    writeln!(scene.out, "{line}")?;
    Ok(scene.out.flush()?)
}

fn say_where_to_decide(scene: &mut CommandContext<'_>, name: &str, approval: &RunApproval) -> Result<(), CliError> {
    let title = approval_text::title(approval);
    Ok(writeln!(scene.errors, "{title}: waits for `tracebook approvals {name} --allow` or --deny")?)
}

/// Prints what a run does until it ends, and prompts the user for decisions if there is one.
pub(crate) fn follow_run(
    scene: &mut CommandContext<'_>,
    run: DocId,
    leave: bool,
    problems: usize,
) -> Result<u8, CliError> {
    let mut steps = 0;
    let mut answer = StreamedAnswer::default();
    let mut thought = (0, 0);
    let mut asked: Vec<String> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    // Nobody can answer: approvals are decided elsewhere, or expire.
    let mut deaf = false;
    // Proposed tools that were reported, or were there before.
    let mut pending: Vec<BlobHash> =
        scene.handle.read(|session| pending_tools(session).map(UserTool::content_hash).collect())?;
    loop {
        let (known, live, before) = (asked.clone(), [answer.call, thought], told.clone());
        let tools = pending.clone();
        let look =
            move |session: &Session| read_run_news(session, run, steps, live, (&known, &before, &tools), problems);
        let Some((news, level)) = scene.handle.wait_on_disk(None, look)? else { continue };
        for line in news.said {
            writeln!(scene.errors, "{line}")?;
            told.push(line);
        }
        if let Some((number, more)) = news.thought.filter(|_| scene.json) {
            let before = if thought.0 == number { thought.1 } else { 0 };
            thought = (number, before + more.len());
            writeln!(scene.out, "{}", json!({"type": "thinking_delta", "call": number, "content": more}))?;
            scene.out.flush()?;
        }
        if let Some((number, more)) = news.live {
            answer.print(scene, number, &more)?;
        }
        for step in &news.steps {
            steps += 1;
            if level >= LogLevel::Debug {
                writeln!(scene.errors, "{}", step_log_line(step))?;
            }
            let rest = match &step.kind {
                // Streamed text that was printed already isn't printed again.
                StepKind::Thinking { content, .. } | StepKind::FinalAnswer { content } => {
                    unprinted_answer(content, &answer.printed)
                }
                StepKind::ToolCall { .. }
                | StepKind::ToolResult { .. }
                | StepKind::Todo { .. }
                | StepKind::Error { .. } => None,
            };
            if let Some(rest) = rest.filter(|_| !scene.json) {
                writeln!(scene.out, "{rest}")?;
                answer.clear();
            } else {
                print_step(scene, step, &news.approvals)?;
            }
        }
        for tool in news.tools {
            if scene.json {
                writeln!(scene.out, "{}", json!({"type": "tool_pending", "tool": tool_to_json(&tool)}))?;
            }
            pending.push(tool.content_hash());
        }
        scene.out.flush()?;
        if let Some((of, approval)) = news.approval {
            let name = format!("{}/{}", &of.to_string()[..8], approval.id);
            asked.push(name.clone());
            if scene.json {
                print_pending_approval(scene, &name, of, &approval)?;
            }
            if leave {
                say_where_to_decide(scene, &name, &approval)?;
                if scene.own {
                    crate::guest_runs::hold_for(run); // calls beside the one that waits may be under way
                }
                wait_for_webhooks(scene)?;
                return Ok(EXIT_FAILED);
            }
            if deaf || !prompt_for_decision(scene, of, &approval)? {
                deaf = true;
                say_where_to_decide(scene, &name, &approval)?;
            }
        }
        if let Some(why) = news.trouble {
            return Err(CliError::usage(why));
        }
        if let Some(ending) = news.ending {
            // Also wait until memory of the run is saved.
            let kept = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
            scene.handle.wait(Some(super::DOCUMENT_READ_TIMEOUT), kept)?;
            export::open_note::wait_until_saved(scene.handle)?;
            if scene.own {
                consolidate_after_run(scene, run)?; // a program that stays does it once no agent has worked for a while
            }
            wait_for_webhooks(scene)?;
            return Ok(if ending == RunEnding::Done { EXIT_DONE } else { EXIT_FAILED });
        }
    }
}

/// Waits until messages to the webhook are sent or given up, and prints why, if so.
fn wait_for_webhooks(scene: &mut CommandContext<'_>) -> Result<(), CliError> {
    let done = |session: &Session| {
        let agents = session.agents();
        (!agents.has_pending_webhooks()).then(|| agents.webhook_failure().map(ToOwned::to_owned))
    };
    if let Some(Some(why)) = scene.handle.wait(Some(super::DOCUMENT_READ_TIMEOUT), done)? {
        writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&why))?;
    }
    Ok(())
}

/// Returns the rest of an answer whose start was `streamed`, or `None` if the answer starts differently.
fn unprinted_answer(content: &str, streamed: &str) -> Option<String> {
    let printed = streamed.trim_start();
    if printed.trim_end().is_empty() {
        return None;
    }
    // What looked like the start of a call was kept back, and none has come of it.
    if let Some(rest) = content.trim_start().strip_prefix(printed) {
        return Some(rest.trim_end().to_owned());
    }
    // The added line end marks the last line as complete, so that all of it is displayable.
    let whole = tool_call_parser::displayable_prefix(&format!("{content}\n"));
    match whole.trim_start().strip_prefix(printed) {
        Some(rest) => Some(rest.trim_end().to_owned()),
        None => answer_text(content).ends_with(&answer_text(streamed)).then(String::new),
    }
}

/// Returns an answer's text without the tool calls in it.
fn answer_text(text: &str) -> String {
    tool_call_parser::strip_fenced_calls(text, &tool_call_parser::find_fenced_calls(text))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns messages about a model call that weren't printed yet: retries, and how the model was chosen.
fn live_call_messages(live: &LiveModelCall, level: LogLevel, told: &[String]) -> Vec<String> {
    let number = live.call.number;
    let chosen = (level >= LogLevel::Info).then(|| format!("call {number}: {}", live.route));
    let again = live.again.as_ref().map(|why| format!("call {number}: {why}"));
    [chosen, again].into_iter().flatten().filter(|line| !told.contains(line)).collect()
}

/// Formats a step as one log line.
fn step_log_line(step: &ExecutionStep) -> String {
    let kind = match &step.kind {
        StepKind::Thinking { .. } => "thinking".to_owned(),
        StepKind::ToolCall { tool_name, .. } => format!("tool_call {tool_name}"),
        StepKind::ToolResult { success: true, .. } => "tool_result".to_owned(),
        StepKind::ToolResult { .. } => "tool_result, failed".to_owned(),
        StepKind::Todo { .. } => "todo".to_owned(),
        StepKind::FinalAnswer { .. } => "final_answer".to_owned(),
        StepKind::Error { .. } => "error".to_owned(),
    };
    let took = step.duration.map_or(String::new(), |took| format!(", {took} ms"));
    let spent = step.spent.as_ref().map_or(String::new(), |spent| {
        format!(", {} tokens read, {} written", spent.input_tokens, spent.output_tokens)
    });
    format!("step {}: {kind}{took}{spent}", step.id)
}

/// Returns the user's tools that wait for approval, in their newest version.
fn pending_tools(session: &Session) -> impl Iterator<Item = &UserTool> {
    let own = session.user_tools().unwrap_or_default().iter();
    own.filter(|tool| tool.has_pending_version()).filter_map(RegisteredTool::newest_version)
}

fn read_run_news(
    session: &Session,
    id: DocId,
    steps: usize,
    shown: [(u64, usize); 2],
    (asked, told, tools): (&[String], &[String], &[BlobHash]),
    problems: usize,
) -> Option<(RunNews, LogLevel)> {
    let agents = session.agents();
    let level = agents.setup().map(|setup| setup.config.runtime.log_level).unwrap_or_default();
    let mut news = RunNews::default();
    let Some(run) = agents.run(id) else {
        let said = session.problems().get(problems..).unwrap_or_default();
        let lost = !agents.is_request_pending(id);
        let why = said.last().cloned().unwrap_or_else(|| "the question was not accepted".to_owned());
        news.trouble = lost.then_some(why);
        return lost.then_some((news, level));
    };
    // Only steps on disk are printed, so printed output is never lost.
    news.steps = run.steps.get(steps..run.durable_steps()).unwrap_or_default().to_vec();
    news.approvals.clone_from(&run.approvals);
    if let Some(live) = run.live.as_ref().filter(|live| live.summary_of.is_empty()) {
        let more = |text: &str, (call, shown): (u64, usize)| {
            let from = if live.call.number == call { shown } else { 0 };
            let more = text.get(from..).unwrap_or_default();
            (!more.is_empty()).then(|| (live.call.number, more.to_owned()))
        };
        (news.live, news.thought) = (more(&live.text, shown[0]), more(&live.thinking, shown[1]));
    }
    // Tools that are missing from this run, such as those of a server that may not be reached.
    let missing = agents.setup().map(|setup| setup.problems.as_slice()).unwrap_or_default();
    let missing = missing.iter().map(|problem| format!("tracebook: {problem}"));
    news.said = missing.filter(|line| !told.contains(line)).collect();
    news.said.extend(run.live.iter().flat_map(|live| live_call_messages(live, level, told)));
    let mut family = agents.run_family(id);
    let sent = agents.sent_tasks().values().filter(|task| match task.request.origin {
        RunOrigin::Agent { run } => family.contains(&run),
        RunOrigin::User | RunOrigin::Schedule { .. } | RunOrigin::Device => false,
    });
    let sent: Vec<DocId> = sent.map(|task| task.request.run).collect();
    family.extend(sent);
    let open = family.iter().filter_map(|id| agents.run(*id)).filter(|run| run.is_durable());
    let mut waits = open.flat_map(|run| run.pending().map(|approval| (run.id, approval)));
    let new =
        |(of, approval): &(DocId, &RunApproval)| !asked.contains(&format!("{}/{}", &of.to_string()[..8], approval.id));
    news.approval = waits.find(new).map(|(of, approval)| (of, approval.clone()));
    let new_tools = pending_tools(session).filter(|tool| !tools.contains(&tool.content_hash()));
    news.tools = new_tools.cloned().collect();
    news.ending = run.about.ending.filter(|_| run.is_durable());
    // An interrupted run that's only being read isn't active.
    let idle = run.about.ending.is_none() && !run.is_busy() && steps > 0 && news.steps.is_empty();
    let any = !news.steps.is_empty()
        || !news.said.is_empty()
        || news.live.is_some()
        || news.thought.is_some()
        || news.approval.is_some()
        || !news.tools.is_empty()
        || news.ending.is_some();
    (any && !idle).then_some((news, level))
}

/// Has the user fill in a form of a tool server. Returns whether the user has sent or declined it.
fn prompt_for_form(
    scene: &mut CommandContext<'_>,
    run: DocId,
    approval: &RunApproval,
    form: &UserForm,
) -> Result<bool, CliError> {
    if form.page.is_none() {
        writeln!(scene.errors, "({})", untrusted_text::escape_line(&approval.reason))?;
    }
    let arguments = match read_form(form, scene.input, scene.errors)? {
        FormAnswer::Filled(answers) => Some(server_form::with_answers(&approval.arguments, answers)),
        FormAnswer::Declined => None,
        FormAnswer::Closed => return Ok(false),
    };
    let (allowed, scope) = (arguments.is_some(), DecisionScope::Once);
    let decision = DecisionRecord { arguments, ..DecisionRecord::by_user(allowed, scope) };
    take_decision(scene, run, approval, decision)?;
    if allowed {
        open_page(form, scene.own, scene.errors)?;
    }
    Ok(true)
}

/// Takes a decision here, or sends it to the worker that carries out a task of a plan.
fn take_decision(
    scene: &CommandContext<'_>,
    run: DocId,
    approval: &RunApproval,
    decision: DecisionRecord,
) -> Result<(), CliError> {
    if sent_runs::send_decision(scene.handle, run, &approval.id, &decision)?.is_none() {
        scene.handle.run_command(Command::Decide { run, approval: approval.id.clone(), decision })?;
    }
    Ok(())
}

/// Prompts the user for a decision. Returns whether there was an answer.
fn prompt_for_decision(scene: &mut CommandContext<'_>, run: DocId, approval: &RunApproval) -> Result<bool, CliError> {
    if let Some(form) = server_form::form_of(approval) {
        return prompt_for_form(scene, run, approval, &form);
    }
    let asks = BuiltInTool::AskUser.is_named(&approval.tool);
    let is_single = agent::policy::each_time_reason(&approval.tool).is_some();
    let choices = if is_single { "[y]es, [n]o" } else { "[y]es, [n]o, in this [r]un, in this [p]roject, [a]lways" };
    let words = match asks {
        true => format!("{}\n> ", untrusted_text::escape_block(&approval.what)),
        // The full request: the user must see exactly what is allowed.
        false => format!(
            "{}\n{}({}) {} Allow? {choices}: ",
            approval_text::title(approval),
            approval_text::body(approval).lines().map(|line| format!("    {line}\n")).collect::<String>(),
            untrusted_text::escape_line(&approval.reason),
            approval_text::lasting_scope(approval),
        ),
    };
    scene.errors.write_all(words.as_bytes())?;
    scene.errors.flush()?;
    loop {
        let Some(line) = run_cells::read_line(scene.input)? else {
            writeln!(scene.errors)?; // what follows isn't an answer
            return Ok(false);
        };
        let word = line.trim();
        let (allowed, scope) = match word.to_lowercase().as_str() {
            _ if asks => (true, DecisionScope::Once),
            "y" | "yes" => (true, DecisionScope::Once),
            "n" | "no" => (false, DecisionScope::Once),
            "r" | "run" if !is_single => (true, DecisionScope::Run),
            "p" | "project" if !is_single => (true, DecisionScope::Project),
            "a" | "always" if !is_single => (true, DecisionScope::Always),
            _ => {
                let choices: &[u8] = if is_single { b"y or n: " } else { b"y, n, r, p or a: " };
                scene.errors.write_all(choices)?;
                scene.errors.flush()?;
                continue;
            }
        };
        let comment = asks.then(|| word.to_owned());
        let decision = DecisionRecord { comment, ..DecisionRecord::by_user(allowed, scope) };
        take_decision(scene, run, approval, decision)?;
        return Ok(true);
    }
}
