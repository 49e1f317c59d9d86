//! `cmd_memory`: experiences from earlier work (list, query, add, consolidate, delete), and recent tasks.

use super::super::agents::read_session;
use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use super::memory_files::now_ms;
use super::task_context::{print_task_context, recall_for_goal};
use super::{RememberedProject, find_file, load_projects, write_note};
use crate::arguments::MemoryArguments;
use crate::consolidation::wait_until_consolidated;
use crate::parse::unknown_action;
use agent::memory::experience::{self, EXPERIENCE_LOG_FILE, Experience, ExperienceEntry, MemoryTier, RunOutcome};
use agent::memory::insight::{MemoryFilters, MemoryQuery};
use agent::memory::task_log::TaskLogEntry as Logged;
use agent::memory::{MEMORY_FOLDER, MemoryMaintenance};
use agent::model_context::estimate_message_tokens;
use engine::Command;
use engine::notice::{Notice, NumberedNotice};
use serde_json::json;
use store::DocId;
use text::task::CalendarDay;

pub(super) fn today() -> CalendarDay {
    CalendarDay(now_ms().div_euclid(86_400_000))
}

pub(crate) fn cmd_memory(scene: &mut CommandContext<'_>, args: &MemoryArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    if action == "curve" {
        return super::curve::print_learning_curve(scene, args);
    }
    let text = args.text.clone();
    let needed =
        |what: &str| text.clone().ok_or_else(|| CliError::usage(format!("say {what}: tracebook memory {action} …")));
    let all = load_projects(scene, args.project.as_deref())?;
    match action {
        "list" => list_experiences(scene, args, &all),
        "show" => {
            let (_, entry) = find_experience(&all, &needed("which experience")?)?;
            match scene.json {
                true => writeln!(scene.out, "{}", serde_json::to_string(&entry.experience).unwrap_or_default())?,
                false => write!(scene.out, "{}", entry.experience.to_markdown())?,
            }
            Ok(EXIT_DONE)
        }
        "log" => print_task_log(scene, args, &all),
        "bearing" => recall_for_goal(scene, all, &needed("on which goal")?),
        "context" => print_task_context(scene, all, &needed("of which task: PLAN#TASK")?),
        "analyze" => {
            let filters = MemoryFilters {
                project_type: args.about.clone().unwrap_or_default(),
                outcome: args.outcome.clone().unwrap_or_default(),
            };
            let query = MemoryQuery {
                query: needed("what is asked")?,
                filters,
                context: args.goal.clone().unwrap_or_default(),
            };
            // One answer across all projects.
            let mut whole = agent::memory::ProjectMemory::default();
            whole.entries.extend(all.into_iter().flat_map(|project| project.memory.entries));
            let said = whole.analyze(&query, today());
            writeln!(scene.out, "{}", serde_json::to_string_pretty(&said).unwrap_or_default())?;
            Ok(EXIT_DONE)
        }
        "add" => add_experience(scene, args, &all, needed("what was learned")?),
        "consolidate" => consolidate_memory(scene, &all),
        "forget" => {
            let (volume, entry) = find_experience(&all, &needed("which experience")?)?;
            remove_entries(scene, volume, &entry.path, std::slice::from_ref(&entry.experience.experience_id))?;
            let id = &entry.experience.experience_id;
            let line = format!("{id} is no longer in {}", entry.path);
            scene.print_result(&json!({"experience_id": id, "path": entry.path, "forgotten": true}), line)?;
            Ok(EXIT_DONE)
        }
        other => {
            let actions =
                ["list", "show", "log", "curve", "bearing", "context", "analyze", "add", "consolidate", "forget"];
            Err(unknown_action("memory", &actions, other))
        }
    }
}

/// Returns the experience with this id.
fn find_experience<'a>(all: &'a [RememberedProject], word: &str) -> Result<(DocId, &'a ExperienceEntry), CliError> {
    let entries = all.iter().flat_map(|project| project.memory.entries.iter().map(|entry| (project.home, entry)));
    let found: Vec<(DocId, &ExperienceEntry)> =
        entries.filter(|(_, entry)| !word.is_empty() && entry.experience.experience_id.starts_with(word)).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(CliError::usage(format!("there is no experience “{word}”; `tracebook memory` lists them"))),
        _ => Err(CliError::usage(format!("several experiences begin with “{word}”; give more of the id"))),
    }
}

/// Parses the option `--outcome`.
fn parse_outcome(args: &MemoryArguments) -> Result<Option<RunOutcome>, CliError> {
    let Some(word) = args.outcome.as_ref() else { return Ok(None) };
    let why = || CliError::usage(format!("--outcome is success, failure or success_with_recovery, not “{word}”"));
    RunOutcome::from_name(word).map(Some).ok_or_else(why)
}

/// Prints recent work: the tasks from session logs.
fn print_task_log(
    scene: &mut CommandContext<'_>,
    args: &MemoryArguments,
    all: &[RememberedProject],
) -> Result<u8, CliError> {
    let wanted = parse_outcome(args)?;
    for project in all {
        let fits = |entry: &&Logged| wanted.is_none_or(|wanted| entry.task.outcome() == Some(wanted));
        for Logged { path, task, .. } in project.memory.logged.iter().filter(fits) {
            if scene.json {
                let mut value = serde_json::to_value(task).unwrap_or_default();
                value["path"] = json!(path);
                writeln!(scene.out, "{value}")?;
                continue;
            }
            let (known, goal) = (&task.known, task.goal.lines().next().unwrap_or_default());
            let day = known.timestamp.get(..16).unwrap_or_default().replace('T', " ");
            writeln!(scene.out, "{day}  {}  {goal}  ({path})", known.status)?;
        }
        for problem in &project.memory.problems {
            writeln!(scene.errors, "tracebook: {problem}")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Prints the context of the last updated session: what a model reads of it.
fn print_session_context(scene: &mut CommandContext<'_>, all: &[RememberedProject]) -> Result<u8, CliError> {
    let volumes: Vec<DocId> = all.iter().map(|project| project.id).collect();
    let last = scene.handle.read(move |session| {
        let own = session.agents().sessions();
        let own = own.filter(|(_, line)| line.volume.is_none_or(|volume| volumes.contains(&volume)));
        own.max_by_key(|(_, line)| line.updated).map(|(id, _)| id)
    })?;
    let Some(id) = last else {
        writeln!(scene.errors, "tracebook: nothing was said yet")?;
        return Ok(EXIT_DONE);
    };
    for message in read_session(scene, id, |_, conversation| conversation.context())? {
        let tokens = estimate_message_tokens(&message);
        if scene.json {
            let mut value = serde_json::to_value(&message).unwrap_or_default();
            (value["session"], value["tokens"]) = (json!(id), json!(tokens));
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
        let said = message.content.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let said = said.unwrap_or_else(|| format!("calls {}", calls.join(", ")));
        writeln!(scene.out, "{:9}  {tokens:6} tokens  {said}", message.role.as_str())?;
    }
    Ok(EXIT_DONE)
}

/// Returns the experiences of all projects.
pub(crate) fn all_experiences(scene: &CommandContext<'_>) -> Result<Vec<ExperienceEntry>, CliError> {
    let projects = super::load_projects(scene, None)?;
    Ok(projects.into_iter().flat_map(|project| project.memory.entries).collect())
}

fn list_experiences(
    scene: &mut CommandContext<'_>,
    args: &MemoryArguments,
    all: &[RememberedProject],
) -> Result<u8, CliError> {
    let wanted = parse_outcome(args)?;
    let tier = match args.tier.as_ref().map(|word| word.to_lowercase()).as_deref() {
        None | Some("semantic" | "l4") => None,
        Some("context" | "l1") => return print_session_context(scene, all),
        Some("session" | "l2") => return print_task_log(scene, args, all),
        Some("traces" | "l3") => return super::traces::list_traces(scene, all),
        Some(word) => Some(MemoryTier::from_name(word).ok_or_else(|| {
            CliError::usage(format!(
                "--tier is context, session, traces or semantic (l1 to l4); of semantic memory episodic, short_term or \
                 long_term; not “{word}”"
            ))
        })?),
    };
    let mut is_empty = true;
    for project in all {
        for ExperienceEntry { path, experience, .. } in &project.memory.entries {
            let fits = wanted.is_none_or(|wanted| experience.final_outcome == wanted)
                && tier.is_none_or(|tier| experience.tier == tier);
            if !fits {
                continue;
            }
            is_empty = false;
            let counts = experience.is_current(today());
            if scene.json {
                let mut value = serde_json::to_value(experience).unwrap_or_default();
                value["path"] = json!(path);
                value["counts"] = json!(counts);
                writeln!(scene.out, "{value}")?;
                continue;
            }
            let day = experience.timestamp.get(..10).unwrap_or_default();
            let goal = experience.primary_goal.lines().next().unwrap_or_default();
            let state = match (counts, experience.superseded_by.as_str()) {
                (true, _) => String::new(),
                (false, "") => "  (over)".to_owned(),
                (false, by) => format!("  (see {by})"),
            };
            let times = if experience.count > 1 { format!(" ×{}", experience.count) } else { String::new() };
            let outcome = experience.final_outcome.as_str();
            writeln!(scene.out, "{}  {day}  {outcome}{times}  {goal}{state}", experience.experience_id)?;
        }
        for problem in &project.memory.problems {
            writeln!(scene.errors, "tracebook: {problem}")?;
        }
    }
    let why = match wanted.is_some() || tier.is_some() {
        true => "No matching memories.",
        false => "Nothing is remembered yet. `tracebook memory add TEXT --goal GOAL` adds something.",
    };
    scene.explain_empty_list(is_empty, why)?;
    Ok(EXIT_DONE)
}

/// Adds an experience from the user's own knowledge.
fn add_experience(
    scene: &mut CommandContext<'_>,
    args: &MemoryArguments,
    all: &[RememberedProject],
    text: String,
) -> Result<u8, CliError> {
    let outcome = args.outcome.clone().unwrap_or_else(|| "success".to_owned());
    let final_outcome = RunOutcome::from_name(&outcome).ok_or_else(|| {
        CliError::usage(format!("--outcome is success, failure or success_with_recovery, not “{outcome}”"))
    })?;
    let word = args.tier.clone().unwrap_or_else(|| "long_term".to_owned());
    let tier = MemoryTier::from_name(&word)
        .ok_or_else(|| CliError::usage(format!("--tier is episodic, short_term or long_term, not “{word}”")))?;
    let volume = super::super::agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    let project = all.iter().find(|project| project.id == volume);
    let project = project.ok_or_else(|| CliError::usage("say in which project: --project NAME"))?;
    let expires = args.expires.clone().unwrap_or_default();
    if !expires.is_empty() && CalendarDay::parse(&expires).is_none() {
        return Err(CliError::usage(format!("--expires wants a day such as 2027-01-31, not “{expires}”")));
    }
    let new = Experience {
        expires,
        experience_id: format!("exp_{:08x}", rand::random::<u32>()),
        project_name: project.name.clone(),
        primary_goal: args.goal.clone().unwrap_or_else(|| text.clone()),
        final_outcome,
        learnings_or_issues: text,
        tier,
        source: args.source.clone().unwrap_or_else(|| "the user".to_owned()),
        author: "user".to_owned(),
        ..Experience::default()
    };
    let new = new.with_limits(now_ms());
    let path = format!("{MEMORY_FOLDER}/{EXPERIENCE_LOG_FILE}");
    let volume = super::open_memory(scene, volume)?;
    let old = note_text_at(scene, volume, &path)?;
    let known = experience::parse_entries(&path, &old, &mut Vec::new());
    let count = known.len();
    match experience::decide_admission(&new, &known.iter().map(|entry| &entry.experience).collect::<Vec<_>>()) {
        experience::AdmissionDecision::Refuse(why) => {
            writeln!(scene.errors, "tracebook: it is not kept: {why}")?;
            return Ok(EXIT_FAILED);
        }
        experience::AdmissionDecision::Merge(at) => {
            let same = known.get(at).map_or("", |entry| entry.experience.experience_id.as_str());
            let line = format!("{same}: it was known already and counts once more");
            scene.print_result(&json!({"experience_id": same, "new": false}), line)?;
        }
        experience::AdmissionDecision::Keep | experience::AdmissionDecision::Supersede(_) => {
            scene.print_result(&json!({"experience_id": new.experience_id, "new": true}), &new.experience_id)?;
        }
    }
    if let Some(text) = experience::with_experience(&old, new)
        && (text != old || count == 0)
    {
        write_note(scene, volume, &path, &text)?;
    }
    Ok(EXIT_DONE)
}

/// Returns a note's text, or an empty text if there's no such note.
pub(crate) fn note_text_at(scene: &CommandContext<'_>, volume: DocId, path: &str) -> Result<String, CliError> {
    let Some(note) = find_file(scene, volume, path)? else { return Ok(String::new()) };
    let held = export::open_note::hold_note(scene.handle, note)?;
    let text = scene.handle.read(move |session| session.note(note).map(engine::Note::text))?;
    drop(held);
    Ok(text.unwrap_or_default())
}

/// Removes entries from their note.
fn remove_entries(scene: &CommandContext<'_>, volume: DocId, path: &str, ids: &[String]) -> Result<(), CliError> {
    let text = note_text_at(scene, volume, path)?;
    write_note(scene, volume, path, &experience::without_entries(&text, ids))
}

/// Consolidates session logs into long-term notes. What a project inside the volume has learned goes to the volume's
/// own memory.
fn consolidate_memory(scene: &mut CommandContext<'_>, all: &[RememberedProject]) -> Result<u8, CliError> {
    let before = scene.handle.read(|session| session.notices().last_number())?;
    for project in all {
        scene.handle.run_command(Command::Upkeep { volume: project.id, what: MemoryMaintenance::Consolidate })?;
    }
    wait_until_consolidated(scene)?;
    let new: Vec<NumberedNotice> =
        scene.handle.read(move |session| session.notices().notices_after(before).cloned().collect())?;
    for noticed in new {
        if let Notice::Consolidated { volume, .. } = &noticed.notice {
            let name = all
                .iter()
                .find(|project| [project.id, project.home].contains(volume))
                .map_or("", |project| project.name.as_str());
            let line = format!("{name}: {}", noticed.notice.describe());
            scene.print_result(&serde_json::to_value(&noticed).unwrap_or_default(), line)?;
        }
    }
    Ok(EXIT_DONE)
}
