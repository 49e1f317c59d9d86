//! `cmd_traces`: traces that runs can repeat without a model.

use super::super::agents;
use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use super::{RememberedProject, find_file, load_projects, move_to_trash, write_note};
use crate::arguments::TracesArguments;
use agent::memory::StoredTrace;
use agent::memory::trace::{self, AUTO_REPLAY_CONFIDENCE, TRACES_FOLDER};
use serde_json::json;
use std::io::Read;
use store::DocId;

/// Maximum size of an imported trace library in bytes.
const MAX_TRACE_LIBRARY_BYTES: u64 = 64 << 20;

pub(crate) fn cmd_traces(scene: &mut CommandContext<'_>, args: &TracesArguments) -> Result<u8, CliError> {
    let action = args.action.as_deref().unwrap_or("list");
    let name = args.name.clone();
    let needed =
        |what: &str| name.clone().ok_or_else(|| CliError::usage(format!("say {what}: tracebook traces {action} …")));
    match action {
        "list" => list_traces(scene, &load_projects(scene, args.project.as_deref())?),
        "show" => {
            let word = needed("which trace")?;
            let all = load_projects(scene, args.project.as_deref())?;
            let (_, filed) = find_trace(&all, &word)?;
            write!(scene.out, "{}", filed.text)?;
            Ok(EXIT_DONE)
        }
        "export" => {
            let all = load_projects(scene, args.project.as_deref())?;
            let wanted: Vec<&StoredTrace> = match &name {
                Some(word) => vec![find_trace(&all, word)?.1],
                None => all.iter().flat_map(|project| &project.memory.traces).collect(),
            };
            let texts: Vec<String> = wanted.iter().map(|filed| filed.trace.to_library_yaml()).collect();
            write!(scene.out, "{}", texts.join("\n"))?;
            Ok(EXIT_DONE)
        }
        "import" => import_traces(scene, args, &needed("which file, or - for standard input")?),
        "forget" => {
            let all = load_projects(scene, args.project.as_deref())?;
            let (volume, filed) = find_trace(&all, &needed("which trace")?)?;
            let Some(id) = find_file(scene, volume, &filed.path)? else {
                return Err(CliError::workspace(format!("the file is not known yet; try again: {}", filed.path)));
            };
            move_to_trash(scene, vec![id])?;
            writeln!(scene.out, "{} is in the trash; `tracebook restore-note` brings it back", filed.path)?;
            Ok(EXIT_DONE)
        }
        "learn" => learn_trace(scene, &needed("from which run")?),
        other => Err(CliError::usage(format!(
            "traces can be listed (list), shown (show), exported (export), imported (import), forgotten (forget) and \
             learned (learn), not “{other}”"
        ))),
    }
}

/// Resolves a word to a trace: its path, its file name, or a prefix of its signature.
fn find_trace<'a>(all: &'a [RememberedProject], word: &str) -> Result<(DocId, &'a StoredTrace), CliError> {
    let found: Vec<(DocId, &StoredTrace)> = all
        .iter()
        .flat_map(|project| project.memory.traces.iter().map(|filed| (project.home, filed)))
        .filter(|(_, filed)| {
            let name = filed.path.rsplit('/').next().unwrap_or_default();
            let signed = word.len() >= 4 && filed.trace.known.goal_signature.starts_with(word);
            filed.path == word || name == word || name.trim_end_matches(".md") == word || signed
        })
        .collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(CliError::usage(format!("there is no trace {word}; `tracebook traces` lists them"))),
        _ => Err(CliError::usage(format!("several traces are called {word}; give the whole path"))),
    }
}

pub(super) fn list_traces(scene: &mut CommandContext<'_>, all: &[RememberedProject]) -> Result<u8, CliError> {
    let (mut tokens, mut money) = (0, 0.0);
    for project in all {
        for StoredTrace { path, trace, .. } in &project.memory.traces {
            let known = &trace.known;
            let confidence = trace.confidence();
            tokens += known.saved_tokens;
            money += known.saved_usd;
            if scene.json {
                let mut value = serde_json::to_value(known).unwrap_or_default();
                value["path"] = json!(path);
                value["project"] = json!(project.name);
                value["confidence"] = json!(confidence);
                value["follows"] = json!(confidence > AUTO_REPLAY_CONFIDENCE);
                value["steps"] = json!(trace.steps.len());
                writeln!(scene.out, "{value}")?;
                continue;
            }
            let goal = known.goal_text.lines().next().unwrap_or_default();
            let used = if known.last_used.is_empty() { "never used" } else { known.last_used.get(..10).unwrap_or("") };
            let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md");
            let (good, count) = (known.verified_count, known.usage_count);
            let steps = trace.steps.len();
            writeln!(
                scene.out,
                "{name}  {steps} steps  {good} of {count} good, {:.0} % sure  {used}  {goal}",
                confidence * 100.0
            )?;
        }
        for problem in &project.memory.problems {
            writeln!(scene.errors, "tracebook: {problem}")?;
        }
    }
    if !scene.json && tokens > 0 {
        writeln!(scene.out, "Saved so far: {tokens} tokens, ${money:.4}")?;
    }
    Ok(EXIT_DONE)
}

/// Imports a trace library. Statistics of imported traces are reset, since they were measured elsewhere.
fn import_traces(scene: &mut CommandContext<'_>, args: &TracesArguments, from: &str) -> Result<u8, CliError> {
    let mut text = String::new();
    if from == "-" {
        scene.input.take(MAX_TRACE_LIBRARY_BYTES).read_to_string(&mut text)?;
    } else {
        let path = scene.folder.join(from);
        let bytes =
            host::fs::copy::read(&path, MAX_TRACE_LIBRARY_BYTES).and_then(|bytes| String::from_utf8(bytes).ok());
        text = bytes
            .ok_or_else(|| CliError::usage(format!("it is not there, too long, or no text: {}", path.display())))?;
    }
    let found = trace::parse_library(&text).map_err(|why| CliError::usage(format!("{from}: {why}")))?;
    super::super::resolve::wait_for_volumes(scene, true)?;
    let volume = agents::resolve_agent_volume(scene, args.project.clone(), None)?;
    let volume = super::open_memory(scene, volume)?;
    for trace in found {
        let trace = trace.reset_for_import();
        let path = format!("{}/{TRACES_FOLDER}/{}", agent::memory::MEMORY_FOLDER, trace.file_name());
        if find_file(scene, volume, &path)?.is_some() {
            writeln!(scene.errors, "tracebook: there is a trace for this goal already, so it was left out: {path}")?;
            continue;
        }
        write_note(scene, volume, &path, &trace.to_note())?;
        writeln!(scene.out, "{path}")?;
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
        writeln!(scene.errors, "tracebook: there is a trace for this goal already: {path}")?;
        return Ok(EXIT_FAILED);
    }
    write_note(scene, volume, &path, &trace.to_note())?;
    writeln!(scene.out, "{path}")?;
    Ok(EXIT_DONE)
}
