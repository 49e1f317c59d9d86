//! `cmd_schedule`: manages scheduled work, or keeps running to start it.

use super::parse::{number_option, unknown_action};
use super::recall_options::parse_mode;
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, agents, resolve};
use crate::arguments::ScheduleArguments;
use agent::memory::insight::{MemoryFilters, MemoryQuery};
use agent::schedule::{DEFAULT_CATCH_UP_SECS, Schedule, ScheduleOutcome, ScheduledWork};
use agent::tool_catalog::BuiltInTool;
use engine::notice::{Notice, NumberedNotice};
use engine::{Command, Session};
use host::clock;
use serde_json::json;
use std::time::Duration;
use store::{DocId, RunEnding};
use text::untrusted_text;

/// Maximum wait for scheduled work that needs no model.
const SCHEDULE_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn cmd_schedule(scene: &mut CommandContext<'_>, args: &ScheduleArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    let word = args.what.clone();
    let needed =
        |what: &str| word.clone().ok_or_else(|| CliError::usage(format!("say {what}: tracebook schedule {action} …")));
    match action {
        "list" => list_schedules(scene),
        "add" => add_schedule(scene, args, needed("when, as a cron expression in quotes")?),
        "show" => {
            let (id, one) = find_schedule(scene, &needed("which")?)?;
            writeln!(scene.out, "{}", serde_json::to_string_pretty(&schedule_json(id, &one)).unwrap_or_default())?;
            Ok(EXIT_DONE)
        }
        "remove" => {
            let (schedule, one) = find_schedule(scene, &needed("which")?)?;
            scene.handle.run_command(Command::RemoveSchedule { schedule })?;
            export::open_note::wait_until_saved(scene.handle)?;
            let removed = json!({"id": schedule, "name": one.name, "removed": true});
            scene.print_result(&removed, format!("{} is removed", one.name))?;
            Ok(EXIT_DONE)
        }
        "pause" | "resume" => {
            let (schedule, one) = find_schedule(scene, &needed("which")?)?;
            let paused = action == "pause";
            scene.handle.run_command(Command::PauseSchedule { schedule, paused })?;
            export::open_note::wait_until_saved(scene.handle)?;
            let line = format!("{} {}", one.name, if paused { "paused" } else { "resumed" });
            scene.print_result(&json!({"id": schedule, "name": one.name, "paused": paused}), line)?;
            Ok(EXIT_DONE)
        }
        "run" => run_schedule(scene, &needed("which")?),
        "due" => watch_schedules(scene, true),
        "watch" => watch_schedules(scene, false),
        other => {
            let actions = ["list", "add", "show", "remove", "pause", "resume", "run", "due", "watch"];
            Err(unknown_action("schedule", &actions, other))
        }
    }
}

/// Resolves a word to a schedule.
fn find_schedule(scene: &CommandContext<'_>, word: &str) -> Result<(DocId, Schedule), CliError> {
    let all: Vec<(DocId, Schedule)> =
        scene.handle.read(|session| session.schedules().map(|(id, one)| (id, one.clone())).collect())?;
    let exact = all.iter().find(|(id, one)| one.name == word || id.to_string() == word);
    let begins: Vec<&(DocId, Schedule)> =
        all.iter().filter(|(_, one)| !word.is_empty() && one.name.starts_with(word)).collect();
    match (exact, begins.as_slice()) {
        (Some(one), _) => Ok(one.clone()),
        (None, [one]) => Ok((*one).clone()),
        (None, []) => Err(CliError::usage(format!("there is no schedule “{word}”; `tracebook schedule` lists them"))),
        (None, _) => Err(CliError::usage(format!("several schedules begin with “{word}”; give more of the name"))),
    }
}

fn schedule_json(id: DocId, one: &Schedule) -> serde_json::Value {
    let mut value = serde_json::to_value(one).unwrap_or_default();
    value["id"] = json!(id);
    value["zone"] = json!(one.zone_clock().name);
    value
}

/// Describes a schedule's last outcome.
fn last_outcome_text(one: &Schedule) -> String {
    let Some(last) = &one.last else { return "not run yet".to_owned() };
    format!("{} {}", agents::format_time(last.at.0), last.describe())
}

fn list_schedules(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let mut all: Vec<(DocId, Schedule)> =
        scene.handle.read(|session| session.schedules().map(|(id, one)| (id, one.clone())).collect())?;
    all.sort_by(|(_, one), (_, other)| (one.next, &one.name).cmp(&(other.next, &other.name)));
    let none = "No schedules. `tracebook schedule add \"0 9 * * 1-5\" \"What to do\"` adds one.";
    scene.explain_empty_list(all.is_empty(), none)?;
    for (id, one) in &all {
        if scene.json {
            writeln!(scene.out, "{}", schedule_json(*id, one))?;
            continue;
        }
        let next = match (one.paused, one.next) {
            (true, _) => "paused".to_owned(),
            (false, Some(next)) => format!("next {}", agents::format_time(next.0)),
            (false, None) if one.waits_for_event() => "waits".to_owned(),
            (false, None) => "no next time".to_owned(),
        };
        let work = one.work.describe();
        let (name, work, last) =
            (untrusted_text::escape_line(&one.name), untrusted_text::escape_line(&work), last_outcome_text(one));
        writeln!(
            scene.out,
            "{name}  {}  {next}  {work}  (last: {})",
            untrusted_text::escape_line(&one.when_text()),
            untrusted_text::escape_line(&last)
        )?;
    }
    Ok(EXIT_DONE)
}

/// Parses a duration into seconds: `90s`, `30m`, `12h`, `3d`, or a number of seconds.
fn parse_duration_seconds(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &word[digits.len()..] {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn add_schedule(scene: &mut CommandContext<'_>, args: &ScheduleArguments, when: String) -> Result<u8, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let note = |word: Option<&str>| word.map(|word| resolve::resolve_note(scene, word)).transpose();
    let (about, cells) = (note(args.note.as_deref())?, note(args.run.as_deref())?);
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), about.or(cells))?;
    if let Some(name) = args.agent.clone() {
        agents::ensure_agent_available(scene, volume, &name)?;
    }
    let goal = args.goal.clone();
    let work = match (goal, cells, args.consolidate, args.analyze.clone()) {
        (Some(goal), None, false, None) => ScheduledWork::Goal {
            goal,
            note: about,
            agent: args.agent.clone(),
            budget: agents::parse_budget(args.budget.as_deref())?,
            mode: parse_mode(args.mode.as_deref())?,
        },
        (None, Some(note), false, None) => {
            ScheduledWork::Cells { note, cell: number_option("cell", args.cell.as_deref())? }
        }
        (None, None, true, None) => ScheduledWork::Consolidate,
        (None, None, false, Some(query)) => ScheduledWork::Analyze {
            query: MemoryQuery { query, filters: MemoryFilters::default(), context: String::new() },
        },
        _ => {
            let why = "say what begins: a goal behind the expression, --run NOTE, --consolidate, or --analyze QUESTION";
            return Err(CliError::usage(why));
        }
    };
    let window = match args.within.clone() {
        Some(word) => parse_duration_seconds(&word)
            .ok_or_else(|| CliError::usage(format!("--within wants a span such as 30m, 12h or 2d, not “{word}”")))?,
        None => DEFAULT_CATCH_UP_SECS,
    };
    let zone = match (args.utc, args.zone.clone()) {
        (true, None) => None,
        (false, name) => Some(clock::load_zone(name.as_deref()).map_err(CliError::usage)?),
        (true, Some(_)) => return Err(CliError::usage("the expression goes by UTC, or by a zone, not by both")),
    };
    let by = zone.as_ref().map_or_else(|| "UTC".to_owned(), |zone| zone.name.clone());
    let name = match args.name.clone() {
        Some(name) => name,
        None => unused_name(scene, &work)?,
    };
    let allow: Vec<String> = args.approve.clone();
    let needed = match &work {
        ScheduledWork::Cells { cell: Some(_), .. } => Some(BuiltInTool::RunCell),
        ScheduledWork::Cells { cell: None, .. } => Some(BuiltInTool::NoteCommand),
        _ => None, // tidy: open because all other work says itself what it needs
    };
    let missing = needed.filter(|tool| !allow.iter().any(|pattern| pattern.starts_with(tool.as_str())));
    let what = Schedule {
        name: name.clone(),
        when,
        offset: 0,
        zone,
        volume,
        work,
        allow,
        window,
        paused: false,
        next: None,
        last: None,
        triggered: Vec::new(),
    };
    let event = what.waits_for_event().then(|| what.when.clone());
    let schedule = agents::new_doc_id();
    scene.handle.run_command(Command::AddSchedule { schedule, what: Box::new(what) })?;
    export::open_note::wait_until_saved(scene.handle)?;
    let next = scene
        .handle
        .read(move |session| session.schedules().find(|(id, _)| *id == schedule).and_then(|(_, one)| one.next))?;
    let starts = match (event, next) {
        (Some(event), _) => format!("starts {event}"),
        (None, next) => format!("next {}, by {by}", next.map_or_else(String::new, |next| agents::format_time(next.0))),
    };
    let added = scene.handle.read(move |session| {
        let one = session.schedules().find(|(id, _)| *id == schedule);
        one.map(|(id, one)| schedule_json(id, one))
    })?;
    let line = format!("{name}: {starts}, while the window or `tracebook schedule watch` is open");
    scene.print_result(&added.unwrap_or_default(), line)?;
    if let Some(tool) = missing {
        writeln!(scene.errors, "each time it waits for your approval, unless you add --approve {tool}")?;
    }
    Ok(EXIT_DONE)
}

/// Returns an unused name built from the first words of the work.
fn unused_name(scene: &CommandContext<'_>, work: &ScheduledWork) -> Result<String, CliError> {
    let taken: Vec<String> =
        scene.handle.read(|session| session.schedules().map(|(_, one)| one.name.clone()).collect())?;
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    Ok(agent::schedule::unused_name(work, &taken))
}

/// Starts a schedule's work now, and prints its progress.
fn run_schedule(scene: &mut CommandContext<'_>, word: &str) -> Result<u8, CliError> {
    resolve::wait_for_volumes(scene, true)?;
    let (schedule, _) = find_schedule(scene, word)?;
    let problems = scene.handle.read(|session| session.problems().len())?;
    scene.handle.run_command(Command::RunSchedule { schedule })?;
    let last = move |session: &Session| {
        session.schedules().find(|(id, _)| *id == schedule).and_then(|(_, one)| one.last.clone())
    };
    match scene.handle.read(last)?.map(|last| last.came) {
        Some(ScheduleOutcome::Begun { run: Some(run) }) => agents::follow_run(scene, run, true, problems),
        Some(ScheduleOutcome::Failed { why }) => {
            writeln!(scene.errors, "tracebook: it could not begin: {why}")?;
            Ok(EXIT_FAILED)
        }
        Some(
            ScheduleOutcome::Begun { run: None }
            | ScheduleOutcome::Ended { .. }
            | ScheduleOutcome::Done
            | ScheduleOutcome::Skipped { .. },
        )
        | None => {
            let rests = move |session: &Session| {
                (!session.is_maintaining_memory() && session.pending_note_jobs() == 0).then_some(())
            };
            scene.handle.wait(Some(SCHEDULE_TIMEOUT), rests)?;
            export::open_note::wait_until_saved(scene.handle)?;
            let done = matches!(scene.handle.read(last)?.map(|last| last.came), Some(ScheduleOutcome::Done));
            Ok(if done { EXIT_DONE } else { EXIT_FAILED })
        }
    }
}

/// Keeps running, starts due work, and prints events. With `once`, only runs work that's due now, to its end.
fn watch_schedules(scene: &mut CommandContext<'_>, once: bool) -> Result<u8, CliError> {
    let mut number = scene.handle.read(|session| session.notices().last_number())?;
    let zones = clock::load_zones(scene.handle.read(clock::schedule_zone_names)?);
    scene.handle.run_command(Command::MindSchedules { zones })?;
    let mut good = true;
    loop {
        let look = move |session: &Session| {
            let new: Vec<NumberedNotice> = session.notices().notices_after(number).cloned().collect();
            let over = once && new.is_empty() && session.are_schedules_idle();
            (over || !new.is_empty()).then_some(new)
        };
        let Some(new) = scene.handle.wait(None, look)? else { continue };
        if new.is_empty() {
            break;
        }
        for noticed in new {
            number = noticed.number;
            good &= match &noticed.notice {
                Notice::RunEnded { ending, .. } => *ending == RunEnding::Done,
                Notice::Skipped { .. } => false,
                _ => true,
            };
            match scene.json {
                true => writeln!(scene.out, "{}", serde_json::to_string(&noticed).unwrap_or_default())?,
                false => writeln!(scene.out, "{}  {}", agents::format_time(noticed.at.0), noticed.notice.describe())?,
            }
        }
        scene.out.flush()?;
    }
    export::open_note::wait_until_saved(scene.handle)?;
    Ok(if good { EXIT_DONE } else { EXIT_FAILED })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        let cases = [("90", Some(90)), ("30m", Some(1_800)), ("12h", Some(43_200)), ("2d", Some(172_800))];
        for (word, span) in cases {
            assert_eq!(parse_duration_seconds(word), span);
        }
        for wrong in ["", "h", "1.5h", "3w", "-1", "99999999999999999999", "9999999999999999999d"] {
            assert_eq!(parse_duration_seconds(wrong), None, "{wrong}");
        }
    }
}
