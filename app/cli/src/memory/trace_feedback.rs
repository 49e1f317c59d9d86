//! What the user thinks of runs of traces: ratings, and edits of what they wrote.

use super::super::{CliError, CommandContext, EXIT_DONE};
use super::memory_files::{RememberedProject, load_projects, now_ms, write_note, write_trace};
use agent::memory::StoredTrace;
use agent::memory::trace::{RunTrace, iso_timestamp};
use agent::memory::trace_feedback::{RatedRun, RunRating};
use engine::{Command, Session};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use store::DocId;

/// Maximum time until a trace's note is open.
const RATING_TIMEOUT: Duration = Duration::from_secs(60);

/// Learns from what the user edited of what the last runs of a project's traces wrote.
pub(super) fn learn_from_edits(scene: &CommandContext<'_>, project: &mut RememberedProject) -> Result<(), CliError> {
    let RememberedProject { id: volume, home, memory, .. } = project;
    let wrote = |filed: &StoredTrace| {
        let run = filed.trace.last_run.as_ref().map(|last| last.run.clone()).unwrap_or_default();
        filed.trace.written_paths().into_iter().map(move |path| (run.clone(), path)).collect::<Vec<_>>()
    };
    let written: Vec<(String, String)> = memory.traces.iter().flat_map(wrote).collect();
    if written.is_empty() {
        return Ok(());
    }
    let volume = *volume;
    let (root, by_others) = scene.handle.read(move |session| {
        let agents = session.agents();
        let is_wanted = agents.setup().is_some_and(|setup| setup.config.memory.learn);
        let root = session.volume(volume).and_then(|volume| volume.root.clone()).filter(|_| is_wanted);
        let mut written = written;
        written.retain(|(run, path)| agents.was_changed_by_later_run(run, volume, path));
        (root, written.into_iter().collect::<BTreeSet<_>>())
    })?;
    let Some(root) = root else { return Ok(()) };
    host::agents::project_memory::read_written_files(&root, memory);
    let is_by_user = |run: &str, path: &str| !by_others.contains(&(run.to_owned(), path.to_owned()));
    for at in memory.review_edits(&is_by_user, &iso_timestamp(now_ms())) {
        let Some(filed) = memory.traces.get_mut(at) else { continue };
        let Some(text) = filed.trace.written_into(&filed.text) else { continue };
        write_note(scene, *home, &filed.path, &text)?;
        filed.text = text;
    }
    Ok(())
}

/// Parses a rating; `None` takes it back.
pub(super) fn parse_rating(word: &str, rating: Option<&str>) -> Result<Option<RunRating>, CliError> {
    match rating {
        Some("good") => Ok(Some(RunRating::Good)),
        Some("bad") => Ok(Some(RunRating::Bad)),
        Some("none") => Ok(None),
        other => {
            let given = other.map_or_else(String::new, |other| format!(", not “{other}”"));
            Err(CliError::usage(format!("a rating is good, bad or none{given}: tracebook traces rate {word} …")))
        }
    }
}

/// Rates a trace as a whole, or takes the rating back.
pub(super) fn rate_trace(
    scene: &mut CommandContext<'_>,
    volume: DocId,
    filed: &StoredTrace,
    rating: Option<RunRating>,
) -> Result<u8, CliError> {
    let mut trace = filed.trace.clone();
    trace.rate_run(&RatedRun::default(), rating, &iso_timestamp(now_ms()));
    if trace != filed.trace {
        write_trace(scene, volume, filed, &trace)?;
    }
    show_rating(scene, "", rating, Some((filed.path.as_str(), trace)))
}

/// Rates an open run for the trace that it belongs to.
pub(super) fn rate_run(scene: &mut CommandContext<'_>, run: DocId, rating: Option<RunRating>) -> Result<u8, CliError> {
    scene.handle.run_command(Command::RateRun { run, rating })?;
    // The note is opened for it first.
    let is_done = |session: &Session| (session.pending_note_jobs() == 0).then_some(());
    scene.handle.wait(Some(RATING_TIMEOUT), is_done)?;
    export::open_note::wait_until_saved(scene.handle)?;
    let (all, run) = (load_projects(scene, None)?, run.to_string());
    let mut traces = all.iter().flat_map(|project| &project.memory.traces);
    let rated = traces.find(|filed| filed.trace.rating_of(&run).is_some());
    show_rating(scene, &run, rating, rated.map(|filed| (filed.path.as_str(), filed.trace.clone())))
}

/// Prints a rating, and how sure the trace is with it.
fn show_rating(
    scene: &mut CommandContext<'_>,
    run: &str,
    rating: Option<RunRating>,
    rated: Option<(&str, RunTrace)>,
) -> Result<u8, CliError> {
    let (path, trace) = rated.map_or((None, None), |(path, trace)| (Some(path), Some(trace)));
    let trust = trace.map(|trace| scene.handle.read(move |session| session.trace_trust(&trace))).transpose()?;
    if scene.json {
        let (name, sure) = (rating.map(RunRating::as_str), trust.map(|trust| trust.confidence));
        writeln!(scene.out, "{}", json!({"path": path, "run": run, "rating": name, "confidence": sure}))?;
        return Ok(EXIT_DONE);
    }
    let subject = if run.is_empty() { "The trace".to_owned() } else { format!("Run {}", &run[..8]) };
    let rated = match rating {
        Some(rating) => format!("is rated {}", rating.as_str()),
        None => "isn't rated".to_owned(),
    };
    match trust {
        Some(trust) => writeln!(scene.out, "{subject} {rated}: {}.", trust.reason())?,
        None => writeln!(scene.out, "{subject} {rated}.")?,
    }
    Ok(EXIT_DONE)
}
