//! `cmd_tasks`: plans as notes: list, create, run, cancel.

use super::memory::{note_text_at, write_note};
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, agents, parse, recall_options, resolve};
use crate::arguments::TasksArguments;
use agent::agent_definition::AgentDefinition;
use agent::agent_registry::{AgentRegistry, PythonAgent};
use agent::memory::{RecallOptions, ReplayMode};
use agent::task_block::{self, TASKS_FOLDER, TaskBlock, TaskRiskLevel, TaskStatus};
use agent::{agent_definition, agent_registry, planner, sent_task};
use engine::{AgentRun, Command};
use host::agents::project_memory;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::DocId;
use text::untrusted_text;

/// Maximum time for the index of notes before plans are listed.
const INDEX_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn cmd_tasks(scene: &mut CommandContext<'_>, args: &TasksArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    let word = args.what.clone();
    let needed =
        |what: &str| word.clone().ok_or_else(|| CliError::usage(format!("say {what}: tracebook tasks {action} …")));
    resolve::wait_for_volumes(scene, action != "list")?;
    match action {
        "list" => list_plans(scene, args),
        "agents" => list_agents(scene, args),
        "add" => add_task(scene, args, &needed("the task's goal")?),
        "plan" => plan_goal(scene, args, needed("the goal")?),
        "show" => {
            let (_, tasks, id) = find_plan(scene, &needed("which plan, or PLAN#TASK")?)?;
            let wanted = tasks.iter().filter(|task| id.as_ref().is_none_or(|id| *id == task.id));
            for task in wanted {
                let shown = task_json(task);
                let line = serde_json::to_string_pretty(&shown).unwrap_or_default();
                scene.print_result(&shown, line)?;
            }
            Ok(EXIT_DONE)
        }
        "run" => run_plan(scene, args, &needed("which plan, or PLAN#TASK")?),
        "cancel" | "reopen" => {
            let (note, tasks, id) = find_plan(scene, &needed("which task: PLAN#TASK")?)?;
            let task = id.ok_or_else(|| CliError::usage("say which task of the plan: PLAN#TASK"))?;
            let gone = tasks.iter().any(|one| one.id == task && one.standing == TaskStatus::Cancelled);
            if action == "reopen" && !gone {
                return Err(CliError::usage(format!("the task {task} isn't canceled, so it can't be reopened")));
            }
            let said = if action == "reopen" { "is open again" } else { "is canceled" };
            let named = task.clone();
            scene.handle.run_command(match action {
                "reopen" => Command::ReopenTask { note, task, failed: false },
                _ => Command::CancelTask { note, task },
            })?;
            let done = |session: &engine::Session| (session.pending_note_jobs() == 0).then_some(());
            scene.handle.wait(Some(super::memory::DELETION_TIMEOUT), done)?;
            export::open_note::wait_until_saved(scene.handle)?;
            let standing = if action == "reopen" { TaskStatus::Open } else { TaskStatus::Cancelled };
            let line = format!("{named} {said}");
            scene.print_result(&json!({"id": named, "standing": standing.as_str()}), line)?;
            Ok(EXIT_DONE)
        }
        other => {
            let actions = ["list", "add", "plan", "show", "run", "cancel", "reopen", "agents"];
            Err(parse::unknown_action("tasks", &actions, other))
        }
    }
}

/// Returns a task as JSON with all its fields, including defaults.
fn task_json(task: &TaskBlock) -> Value {
    json!({
        "id": task.id, "goal": task.goal, "type": task.kind, "standing": task.standing.as_str(), "inputs": task.inputs,
        "constraints": task.constraints, "priority": task.priority, "tools_required": task.tools_required,
        "mode": task.mode, "agent": task.agent, "needs": task.needs, "risk": task.risk,
        "checkpoint": task.has_checkpoint(), "deadline": task.deadline, "device": task.device,
    })
}

/// Resolves a word to a plan: its note, its tasks, and the task named after `#`.
pub(crate) fn find_plan(
    scene: &mut CommandContext<'_>,
    word: &str,
) -> Result<(DocId, Vec<TaskBlock>, Option<String>), CliError> {
    let (name, id) = word.split_once('#').map_or((word, None), |(name, id)| (name, Some(id.to_owned())));
    let note = resolve::resolve_note(scene, name)?;
    let held = export::open_note::hold_note(scene.handle, note)?;
    let text = scene.handle.read(move |session| session.note(note).map(engine::Note::text))?.unwrap_or_default();
    drop(held);
    let (tasks, problems) = task_block::parse_tasks(&text);
    for problem in problems {
        writeln!(scene.errors, "tracebook: {problem}: {name}")?;
    }
    if let Some(id) = id.as_ref().filter(|id| tasks.iter().all(|task| task.id != **id)) {
        return Err(CliError::usage(format!("there is no task {id} in {name}; `tracebook tasks` lists them")));
    }
    Ok((note, tasks, id))
}

/// Returns the plans of a project, path and text: the notes in its folders of plans, and other notes with tasks for
/// agents.
fn plans_of(scene: &CommandContext<'_>, volume: DocId, root: &Path) -> Result<Vec<(String, String)>, CliError> {
    let mut plans = project_memory::read_plans(root);
    let elsewhere: BTreeSet<String> = scene.handle.read(move |session| {
        let all = engine::agenda::agenda_tasks(session, "", true);
        let is_here = |note: DocId| session.locate_file(note).is_some_and(|(of, _)| of == volume);
        // A task for an agent has an id.
        let has_id = |entry: &engine::agenda::AgendaEntry| entry.task.text.contains('^') && is_here(entry.note);
        let paths = all.into_iter().filter(has_id).map(|entry| entry.path);
        paths.filter(|path| !task_block::is_plan(path)).collect()
    })?;
    for path in elsewhere {
        let text = note_text_at(scene, volume, &path)?;
        plans.extend(task_block::holds_task_blocks(&text).then_some((path, text)));
    }
    Ok(plans)
}

fn list_plans(scene: &mut CommandContext<'_>, args: &TasksArguments) -> Result<u8, CliError> {
    let named = args.project.clone();
    let only = named.map(|name| agents::resolve_agent_volume(scene, Some(name), None)).transpose()?;
    // Until the notes are indexed, only the plans in their folder are known.
    scene.handle.wait(Some(INDEX_TIMEOUT), |session| session.is_indexed().then_some(()))?;
    let all: Vec<(DocId, String, PathBuf)> = scene.handle.read(|session| {
        session.volumes().filter_map(|volume| Some((volume.id, volume.name.clone(), volume.root.clone()?))).collect()
    })?;
    let mut is_empty = true;
    for (volume, name, root) in all.iter().filter(|(id, ..)| only.is_none_or(|only| only == *id)) {
        for (path, text) in plans_of(scene, *volume, root)? {
            let (tasks, problems) = task_block::parse_tasks(&text);
            is_empty &= tasks.is_empty();
            for problem in problems {
                writeln!(scene.errors, "tracebook: {problem}: {path}")?;
            }
            if !scene.json && !tasks.is_empty() {
                writeln!(scene.out, "{path}")?;
            }
            for task in &tasks {
                if scene.json {
                    let mut value = task_json(task);
                    value["plan"] = json!(path);
                    value["project"] = json!(name);
                    writeln!(scene.out, "{value}")?;
                } else {
                    writeln!(scene.out, "{}", task_line(task))?;
                }
            }
        }
    }
    scene.explain_empty_list(is_empty, "No plans yet. `tracebook tasks plan GOAL` makes one.")?;
    Ok(EXIT_DONE)
}

/// An agent in the list.
struct ListedAgent {
    agent: AgentDefinition,
    /// Whether the agent is the user's or the program's.
    whose: &'static str,
    /// The other volume that it comes from; `None` for agents of the project, the user and the program.
    volume: Option<String>,
    /// Whether it's used: the user has to trust another volume first.
    is_trusted: bool,
}

/// Returns what the list shows of an agent in Python.
fn python_definition(agent: PythonAgent) -> AgentDefinition {
    AgentDefinition {
        name: agent.name,
        description: agent.description,
        capabilities: agent.capabilities,
        path: Some(agent.path),
        ..AgentDefinition::default()
    }
}

/// Lists the agents that can do tasks: built-in ones, the user's own, those of the project, and those of other volumes,
/// whose names begin with the volume's.
fn list_agents(scene: &mut CommandContext<'_>, args: &TasksArguments) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?;
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    let (own, root, elsewhere) = scene.handle.read(move |session| {
        let own = session.agents().setup().map(|setup| setup.agents.clone()).unwrap_or_default();
        let root = session.volume(volume).and_then(|volume| volume.root.clone());
        (own, root, session.agent_volumes(volume))
    })?;
    let crew = root.map(|root| project_memory::read_agent_registry(&root)).unwrap_or_default();
    let mut all: Vec<ListedAgent> = Vec::new();
    let here = |agent, whose| ListedAgent { agent, whose, volume: None, is_trusted: true };
    let given = [("yours", own), ("built in", agent_definition::built_in()), ("project", crew.definitions)];
    for (whose, agents) in given {
        for agent in agents {
            if all.iter().all(|known| known.agent.name != agent.name) {
                all.push(here(agent, whose));
            }
        }
    }
    all.extend(crew.python.into_iter().map(|agent| here(python_definition(agent), "project, Python")));
    for other in elsewhere {
        let mut crew = AgentRegistry::default();
        // All are listed, also those that aren't used.
        crew.add_volume(&other.name, true, project_memory::read_agent_registry(&other.root));
        let definitions = crew.definitions.into_iter().map(|agent| (agent, "another volume"));
        let python = crew.python.into_iter().map(|agent| (python_definition(agent), "another volume, Python"));
        let (name, is_trusted) = (&other.name, other.is_trusted);
        let agents = definitions.chain(python);
        all.extend(agents.map(|(agent, whose)| ListedAgent { agent, whose, volume: Some(name.clone()), is_trusted }));
    }
    for ListedAgent { mut agent, whose, volume, is_trusted } in all {
        let first = agent.description.lines().next().unwrap_or_default().to_owned();
        let wanted = agent.name.clone();
        let (off, choices, active) = scene.handle.read(move |session| {
            let choices = session.agents().setup().map(|setup| setup.config.agents.clone()).unwrap_or_default();
            let active = session.agents().open_runs().filter(|run| run.is_busy() && run.about.agent == wanted);
            let active: Vec<Value> = active.map(run_progress_json).collect();
            (session.is_switched_off(&wanted), choices, active)
        })?;
        let name = agent.name.clone();
        agent.apply_choice(&name, &choices);
        let state = match (is_trusted, off) {
            (false, _) => ", not trusted",
            (true, true) => ", switched off",
            (true, false) => "",
        };
        let status = match (off || !is_trusted, active.is_empty()) {
            (true, _) => "disabled",
            (false, true) => "idle",
            (false, false) => "busy",
        };
        match scene.json {
            true => {
                let one = json!({
                    "id": name, "name": name, "role": agent.role(), "status": status, "progress": active,
                    "capabilities": agent.capabilities, "can_handle": agent.when, "from": whose,
                    "description": first, "enabled": !off && is_trusted, "llm_provider": agent.llm_provider,
                    "max_tokens": agent.max_tokens, "temperature": agent.temperature, "tools": agent.tools,
                    "deadline": agent.deadline,
                    "tool_choice": agent.tool_choice, "volume": volume, "trusted": is_trusted,
                });
                writeln!(scene.out, "{one}")?;
            }
            false => {
                let busy = if active.is_empty() { "" } else { ", busy" };
                let (name, first) = (untrusted_text::escape_line(&name), untrusted_text::escape_line(&first));
                writeln!(scene.out, "{name}  ({whose}{state}{busy})  {first}")?;
            }
        }
    }
    for problem in crew.problems {
        writeln!(scene.errors, "tracebook: {problem}")?;
    }
    Ok(EXIT_DONE)
}

/// Returns what an active run is doing: its id, state, model calls and todos, `done` of `of`.
fn run_progress_json(run: &AgentRun) -> Value {
    let done = run.todos.iter().filter(|todo| todo.status == store::TodoStatus::Completed).count();
    json!({
        "run": run.id.to_string(), "state": run.about.agent_state, "iteration": run.about.iteration,
        "limit": run.about.limit, "done": done, "of": run.todos.len(),
    })
}

fn task_line(task: &TaskBlock) -> String {
    let agent = task.agent.as_ref().map(|agent| format!("  @{agent}")).unwrap_or_default();
    let needs = if task.needs.is_empty() { String::new() } else { format!("  (after {})", task.needs.join(", ")) };
    let checkpoint = if task.has_checkpoint() { "  (you decide before it begins)" } else { "" };
    let on = task.device.as_ref().map(|device| format!("  (on {device})")).unwrap_or_default();
    format!("  [{}] {}  {}{agent}{needs}{on}{checkpoint}", task.standing.checkbox_mark(), task.id, task.goal)
}

/// Parses the option `--risk`.
fn parse_risk(word: &str) -> Result<TaskRiskLevel, CliError> {
    serde_json::from_value(Value::from(word))
        .map_err(|_| CliError::usage(format!("--risk is low, medium or high, not “{word}”")))
}

/// Adds a task to a plan.
fn add_task(scene: &mut CommandContext<'_>, args: &TasksArguments, goal: &str) -> Result<u8, CliError> {
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    if let Some(name) = args.agent.clone() {
        agents::ensure_agent_available(scene, volume, &name)?;
    }
    let path = args.plan.as_deref().map_or_else(|| format!("{TASKS_FOLDER}/tasks.md"), task_block::plan_path);
    let old = note_text_at(scene, volume, &path)?;
    let (mut all, _) = task_block::parse_tasks(&old);
    let priority = parse::number_option("priority", args.priority.as_deref())?
        .unwrap_or(u64::from(task_block::DEFAULT_TASK_PRIORITY));
    let mut inputs = std::collections::BTreeMap::new();
    for pair in args.input.clone() {
        let (name, text) =
            pair.split_once('=').ok_or_else(|| CliError::usage(format!("--input wants NAME=VALUE, not “{pair}”")))?;
        inputs.insert(name.to_owned(), serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    }
    let task = TaskBlock {
        id: (all.len() + 1..)
            .map(|number| format!("t{number}"))
            .find(|id| all.iter().all(|task| task.id != *id))
            .unwrap_or_default(),
        goal: goal.split_whitespace().collect::<Vec<_>>().join(" "),
        kind: args.kind.clone().filter(|kind| !kind.trim().is_empty()),
        standing: TaskStatus::Open,
        inputs,
        constraints: args.constraint.clone(),
        priority: u8::try_from(priority).unwrap_or(u8::MAX),
        tools_required: args.tool.clone(),
        mode: recall_options::parse_mode(args.mode.as_deref())?,
        agent: args.agent.clone(),
        needs: args.needs.clone(),
        risk: args.risk.as_deref().map(parse_risk).transpose()?,
        deadline: args.deadline.as_deref().map(recall_options::parse_task_deadline).transpose()?,
        checkpoint: args.checkpoint,
        device: args.on.clone(),
    };
    all.push(task.clone());
    agents::wait_for_setup(scene)?;
    let tools: BTreeSet<String> =
        scene.handle.read(|session| session.agent_tools().into_iter().map(|tool| tool.name).collect())?;
    task_block::execution_order(&all, &tools).map_err(|why| CliError::usage(why.to_string()))?;
    let text = match old.is_empty() {
        true => task_block::plan_to_markdown(&task_block::plan_title(&path), std::slice::from_ref(&task)),
        false => format!("{old}{}{}", if old.ends_with('\n') { "" } else { "\n" }, task.to_markdown()),
    };
    write_note(scene, volume, &path, &text)?;
    let mut added = task_json(&task);
    added["plan"] = json!(path);
    scene.print_result(&added, format!("{path}#{}", task.id))?;
    Ok(EXIT_DONE)
}

/// Splits a goal into tasks, by rules or by a model.
fn plan_goal(scene: &mut CommandContext<'_>, args: &TasksArguments, goal: String) -> Result<u8, CliError> {
    if goal.trim().is_empty() {
        return Err(CliError::usage("enter a goal"));
    }
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    if args.model {
        let run = agents::new_doc_id();
        let command = Command::Ask {
            run,
            session: agents::new_doc_id(),
            volume,
            note: None,
            parent: None,
            text: goal,
            agent: Some("planner".to_owned()),
            budget: agents::parse_budget(args.budget.as_deref())?,
            allow: Vec::new(),
            recall: RecallOptions { mode: ReplayMode::Learner, ..RecallOptions::default() },
            provider: None,
        };
        let problems = scene.handle.read(|session| session.problems().len())?;
        scene.handle.run_command(command)?;
        return agents::follow_run(scene, run, true, problems);
    }
    agents::wait_for_setup(scene)?;
    let known = scene.handle.read(|session| {
        let mut known = agent_definition::built_in();
        known.retain(|agent| !session.is_switched_off(&agent.name));
        known
    })?;
    let (mut tasks, _) = planner::plan_without_model(&goal, &known);
    for task in tasks.iter_mut().filter(|task| task.agent.is_none()) {
        task.agent = agent_registry::best_matching_agent(&task.routing_text(), known.iter()).map(|(name, _)| name);
    }
    let name = planner::slug(&goal);
    let path = args.plan.as_deref().map_or_else(|| format!("{TASKS_FOLDER}/{name}.md"), task_block::plan_path);
    if !note_text_at(scene, volume, &path)?.is_empty() {
        return Err(CliError::usage(format!(
            "a plan with that name already exists; choose another with --plan: {path}"
        )));
    }
    write_note(scene, volume, &path, &task_block::plan_to_markdown(&goal, &tasks))?;
    if scene.json {
        let tasks: Vec<Value> = tasks.iter().map(task_json).collect();
        writeln!(scene.out, "{}", json!({"plan": path, "tasks": tasks}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{path}")?;
    for task in &tasks {
        writeln!(scene.out, "{}", task_line(task))?;
    }
    writeln!(scene.out, "Rules made this plan; `--model` lets a model make one.")?;
    Ok(EXIT_DONE)
}

/// Runs a plan, or one task of it.
fn run_plan(scene: &mut CommandContext<'_>, args: &TasksArguments, word: &str) -> Result<u8, CliError> {
    let (note, mut tasks, id) = find_plan(scene, word)?;
    sent_task::assign_device(&mut tasks, args.on.as_deref());
    let run = agents::new_doc_id();
    let allow = args.approve.clone();
    let (session, budget) = (agents::new_doc_id(), agents::parse_budget(args.budget.as_deref())?);
    let problems = scene.handle.read(|session| session.problems().len())?;
    scene.handle.run_command(Command::RunTasks { run, session, note, tasks, only: id, budget, allow })?;
    let code = agents::follow_run(scene, run, args.no_wait, problems)?;
    Ok(if code == EXIT_DONE { EXIT_DONE } else { EXIT_FAILED })
}
