//! `cmd_traces`: traces that runs can repeat without a model.

use super::super::agents;
use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use super::memory_files::{capitalized, find_trace, named_trace};
use super::trace_feedback::{learn_from_edits, parse_rating, rate_run, rate_trace};
use super::trace_library::{export_traces, import_traces};
use super::trace_verification::verify_traces;
use super::trace_versions::{list_versions, relearn_trace, show_version_diff, use_version};
use super::{RememberedProject, find_file, load_projects, move_to_trash, write_note};
use crate::arguments::TracesArguments;
use crate::plurals::counted;
use agent::memory::StoredTrace;
use agent::memory::trace::{RunTrace, TRACES_FOLDER};
use agent::memory::trace_trust::TraceTrust;
use engine::Command;
use serde_json::json;
use text::untrusted_text;

pub(crate) fn cmd_traces(scene: &mut CommandContext<'_>, args: &TracesArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    let name = args.name.clone();
    let needed =
        |what: &str| name.clone().ok_or_else(|| CliError::usage(format!("say {what}: tracebook traces {action} …")));
    match action {
        "list" => {
            let all = load_reviewed(scene, args)?;
            list_traces(scene, &all)
        }
        "show" => {
            let word = needed("which trace")?;
            let all = load_reviewed(scene, args)?;
            show_trace(scene, args, find_trace(&all, &word)?.1)
        }
        "rate" => {
            let word = needed("which trace or run, and good, bad or none")?;
            let all = load_reviewed(scene, args)?;
            let rating = parse_rating(&word, args.value.as_deref())?;
            match named_trace(&all, &word)? {
                Some((volume, filed)) => rate_trace(scene, volume, filed, rating),
                None => {
                    let run = agents::resolve_run(scene, &word)?;
                    rate_run(scene, run, rating)
                }
            }
        }
        "versions" => {
            let word = needed("which trace")?;
            let all = load_reviewed(scene, args)?;
            list_versions(scene, find_trace(&all, &word)?.1)
        }
        "diff" => {
            let word = needed("which trace")?;
            let all = load_reviewed(scene, args)?;
            show_version_diff(scene, find_trace(&all, &word)?.1, (args.value.as_deref(), args.other.as_deref()))
        }
        "use" => {
            let word = needed("which trace, and which version")?;
            let all = load_reviewed(scene, args)?;
            let (volume, filed) = find_trace(&all, &word)?;
            use_version(scene, volume, filed, args.value.as_deref())
        }
        "verify" => {
            let all = load_reviewed(scene, args)?;
            let wanted = chosen_traces(&all, name.as_deref())?;
            verify_traces(scene, &wanted)
        }
        "export" => {
            let all = load_projects(scene, args.project.as_deref())?;
            export_traces(scene, &chosen_traces(&all, name.as_deref())?, args.signed)
        }
        "import" => import_traces(scene, args, &needed("which file, or - for standard input")?),
        "forget" => {
            let all = load_projects(scene, args.project.as_deref())?;
            let (volume, filed) = find_trace(&all, &needed("which trace")?)?;
            let Some(id) = find_file(scene, volume, &filed.path)? else {
                return Err(CliError::workspace(format!("the file is not known yet; try again: {}", filed.path)));
            };
            move_to_trash(scene, vec![id])?;
            let line = format!("{} is in the trash; `tracebook restore-note` brings it back", filed.path);
            scene.print_result(&json!({"path": filed.path, "forgotten": true}), line)?;
            Ok(EXIT_DONE)
        }
        "learn" => learn_trace(scene, &needed("from which run")?),
        // A name alone shows that trace.
        other if name.is_none() => {
            let all = load_reviewed(scene, args)?;
            let Ok((_, filed)) = find_trace(&all, other) else { return Err(unknown_action(other)) };
            show_trace(scene, args, filed)
        }
        other => Err(unknown_action(other)),
    }
}

fn unknown_action(word: &str) -> CliError {
    let actions = ["list", "show", "rate", "versions", "diff", "use", "verify", "export", "import", "forget", "learn"];
    crate::parse::unknown_action("traces", &actions, word)
}

/// Loads the projects with their memory, and learns from what the user edited after the last runs of traces.
fn load_reviewed(scene: &mut CommandContext<'_>, args: &TracesArguments) -> Result<Vec<RememberedProject>, CliError> {
    agents::wait_for_setup(scene)?;
    // What isn't on disk yet isn't looked at; a note that can't be saved keeps nobody from looking at traces.
    let is_saved = export::open_note::wait_until_saved(scene.handle).is_ok();
    let mut all = load_projects(scene, args.project.as_deref())?;
    for project in all.iter_mut().filter(|_| is_saved) {
        if let Err(why) = learn_from_edits(scene, project) {
            writeln!(scene.errors, "tracebook: an edit could not be learned from: {}", why.why)?;
        }
    }
    Ok(all)
}

/// Returns how far the workspace trusts a trace.
fn trace_trust(scene: &CommandContext<'_>, trace: &RunTrace) -> Result<TraceTrust, CliError> {
    let trace = trace.clone();
    Ok(scene.handle.read(move |session| session.trace_trust(&trace))?)
}

/// Returns a trace's metadata and trust as JSON.
fn trace_json(filed: &StoredTrace, trust: &TraceTrust) -> serde_json::Value {
    let mut value = serde_json::to_value(&filed.trace.known).unwrap_or_default();
    if let (Some(value), serde_json::Value::Object(trust)) =
        (value.as_object_mut(), serde_json::to_value(trust).unwrap_or_default())
    {
        value.extend(trust);
    }
    value["path"] = json!(filed.path);
    value["follows"] = json!(trust.is_followed());
    value["reason"] = json!(trust.reason());
    value["fingerprint"] = json!(filed.trace.fingerprint());
    value["steps"] = json!(filed.trace.steps.len());
    value["version"] = json!(filed.trace.version.number);
    value["proposed"] = json!(filed.trace.proposed_version());
    value["feedback"] = json!(filed.trace.feedback);
    value
}

/// Shows a trace with its steps, and pins or unpins it.
fn show_trace(scene: &mut CommandContext<'_>, args: &TracesArguments, filed: &StoredTrace) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?;
    if args.pin || args.unpin {
        let mut settings = scene.handle.read(|session| session.settings().clone())?;
        settings.pin_trace(&filed.trace.fingerprint(), args.pin);
        scene.handle.run_command(Command::Set { settings: Box::new(settings) })?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    let trust = trace_trust(scene, &filed.trace)?;
    if scene.json {
        writeln!(scene.out, "{}", trace_json(filed, &trust))?;
        return Ok(EXIT_DONE);
    }
    write!(scene.out, "{}", filed.text)?;
    let use_of_it = if trust.is_followed() {
        "Runs replay it by themselves"
    } else {
        "Runs replay it when told to (--mode follower)"
    };
    writeln!(scene.out, "\n{use_of_it}: {}.", trust.reason())?;
    for run in &filed.trace.feedback {
        writeln!(scene.out, "{}", capitalized(&untrusted_text::escape_line(&run.describe())))?;
    }
    if args.pin {
        writeln!(scene.out, "The pin holds for exactly these steps on this device. Take it back with --unpin.")?;
    }
    Ok(EXIT_DONE)
}

/// Returns the named trace, or all.
fn chosen_traces<'a>(all: &'a [RememberedProject], word: Option<&str>) -> Result<Vec<&'a StoredTrace>, CliError> {
    Ok(match word {
        Some(word) => vec![find_trace(all, word)?.1],
        None => all.iter().flat_map(|project| &project.memory.traces).collect(),
    })
}

pub(super) fn list_traces(scene: &mut CommandContext<'_>, all: &[RememberedProject]) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?; // it says how sure a trace has to be
    let is_empty = all.iter().all(|project| project.memory.traces.is_empty());
    scene.explain_empty_list(is_empty, "No traces yet. A successful run becomes a trace.")?;
    let (mut tokens, mut money, mut is_unknown) = (0, 0.0, false);
    for project in all {
        for filed in &project.memory.traces {
            let StoredTrace { path, trace, .. } = filed;
            let known = &trace.known;
            let trust = trace_trust(scene, trace)?;
            tokens += known.saved_tokens;
            money += known.saved_usd;
            is_unknown |= known.is_cost_unknown && known.saved_tokens > 0;
            if scene.json {
                let mut value = trace_json(filed, &trust);
                value["project"] = json!(project.name);
                writeln!(scene.out, "{value}")?;
                continue;
            }
            let goal = known.goal_text.lines().next().unwrap_or_default();
            let used = if known.last_used.is_empty() { "never used" } else { known.last_used.get(..10).unwrap_or("") };
            let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md");
            let follows = if trust.is_followed() { "by itself" } else { "when told to" };
            let (steps, reason) = (counted(trace.steps.len(), "step"), trust.reason());
            let proposed = trace.proposed_version();
            let proposed = proposed.map_or_else(String::new, |number| format!("version {number} is proposed  "));
            writeln!(scene.out, "{name}  {steps}  {follows} ({reason})  {used}  {proposed}{goal}")?;
        }
        for problem in &project.memory.problems {
            writeln!(scene.errors, "tracebook: {problem}")?;
        }
    }
    if !scene.json && tokens > 0 {
        let more = if is_unknown { " and an unknown cost" } else { "" };
        writeln!(scene.out, "Saved so far: {tokens} tokens, ${money:.4}{more}")?;
    }
    Ok(EXIT_DONE)
}

/// Creates a trace from a finished run.
fn learn_trace(scene: &mut CommandContext<'_>, word: &str) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?;
    let run = agents::resolve_run(scene, word)?;
    let made = scene.handle.read(move |session| {
        let about = &session.agents().run(run)?.about;
        let note = about.note.and_then(|note| session.locate_file(note)).map(|(_, path)| path.to_owned());
        Some((about.volume, note, session.trace_of_run(run)))
    })?;
    let Some((volume, note, made)) = made else { return Err(CliError::workspace("the run was closed meanwhile")) };
    let trace = match made {
        Ok(trace) => trace,
        Err(why) => {
            writeln!(scene.errors, "tracebook: no trace can be made of it: {why}")?;
            return Ok(EXIT_FAILED);
        }
    };
    let path = format!("{}/{TRACES_FOLDER}/{}", agent::memory::memory_folder(note.as_deref()), trace.file_name());
    super::super::resolve::wait_for_volumes(scene, true)?;
    let volume = super::open_memory(scene, volume)?;
    if find_file(scene, volume, &path)?.is_some() {
        return relearn_trace(scene, (volume, &path), &trace);
    }
    write_note(scene, volume, &path, &trace.to_note())?;
    scene.print_result(&json!({"path": path, "version": trace.version.number}), &path)?;
    Ok(EXIT_DONE)
}
