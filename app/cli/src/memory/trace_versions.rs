//! `tracebook traces versions`, `diff` and `use`: what a trace did before, what is proposed, and which steps are used.

use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use super::memory_files::{capitalized, load_projects, now_ms, write_trace};
use crate::plurals::counted;
use agent::memory::StoredTrace;
use agent::memory::trace::{RunTrace, iso_timestamp};
use agent::memory::trace_diff::{VersionLineSide, compare_versions};
use agent::memory::trace_versions::{TraceVersion, VersionReason};
use serde_json::json;
use store::DocId;
use text::untrusted_text;

/// Returns the name of a trace on the command line.
fn trace_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md")
}

/// Lists the versions of a trace, the newest first.
pub(super) fn list_versions(scene: &mut CommandContext<'_>, filed: &StoredTrace) -> Result<u8, CliError> {
    let all = filed.trace.all_versions();
    for (version, is_used) in &all {
        let TraceVersion { origin, usage_count, verified_count, steps, .. } = version;
        let standing = match (is_used, version.is_proposed) {
            (true, _) => "in use",
            (false, true) => "proposed",
            (false, false) => "earlier",
        };
        if scene.json {
            let line = json!({
                "number": origin.number, "standing": standing, "created_at": origin.created_at,
                "reason": origin.reason, "run": origin.run, "of": origin.of, "used_since": origin.used_since,
                "usage_count": usage_count, "verified_count": verified_count, "feedback": version.feedback,
                "steps": steps.len(), "text": version.steps_text(),
            });
            writeln!(scene.out, "{line}")?;
            continue;
        }
        let day = untrusted_text::escape_line(origin.created_at.get(..10).unwrap_or_default()).into_owned();
        let why = untrusted_text::escape_line(&origin.describe()).into_owned();
        let count = counted(steps.len(), "step");
        let number = origin.number;
        writeln!(
            scene.out,
            "{number}  {standing}  {day}  {why}  {verified_count} of {usage_count} replays were good  {count}"
        )?;
        for run in &version.feedback {
            writeln!(scene.out, "   {}", capitalized(&untrusted_text::escape_line(&run.describe())))?;
        }
    }
    if let Some(number) = filed.trace.proposed_version().filter(|_| !scene.json) {
        let name = trace_name(&filed.path);
        writeln!(
            scene.out,
            "Version {number} is proposed, and not used. `tracebook traces diff {name}` shows what differs, `tracebook \
             traces use {name} {number}` uses it."
        )?;
    }
    Ok(EXIT_DONE)
}

/// Parses the number of a version.
fn parse_number(word: &str) -> Result<u64, CliError> {
    word.parse().map_err(|_| CliError::usage(format!("a version is a number, not “{word}”")))
}

/// Compares two versions: the one in use with the given one, or with the proposed one, or with the one before.
pub(super) fn show_version_diff(
    scene: &mut CommandContext<'_>,
    filed: &StoredTrace,
    (older, newer): (Option<&str>, Option<&str>),
) -> Result<u8, CliError> {
    let trace = &filed.trace;
    let used = trace.version.number;
    let (older, newer) = match (older.map(parse_number).transpose()?, newer.map(parse_number).transpose()?) {
        (Some(older), Some(newer)) => (older, newer),
        (Some(older), None) => (older, used),
        (None, _) => match trace.proposed_version() {
            Some(proposed) => (used, proposed),
            None => {
                let before = trace.versions.iter().map(|version| version.origin.number).filter(|number| *number < used);
                match before.max() {
                    Some(before) => (before, used),
                    None => return Err(CliError::usage("the trace has no other version to compare with")),
                }
            }
        },
    };
    let unknown = |why: agent::memory::trace_versions::TraceVersionError| CliError::usage(why.to_string());
    let older = trace.version_numbered(older).map_err(unknown)?;
    let newer = trace.version_numbered(newer).map_err(unknown)?;
    let lines = compare_versions(&older, &newer);
    if scene.json {
        let lines: Vec<_> =
            lines.iter().map(|(side, text)| json!({"sign": side.sign().to_string(), "text": text})).collect();
        let line = json!({"older": older.origin.number, "newer": newer.origin.number, "lines": lines});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    let title = |version: &TraceVersion| {
        let why = untrusted_text::escape_line(&version.origin.describe()).into_owned();
        format!("version {} ({why})", version.origin.number)
    };
    writeln!(scene.out, "--- {}\n+++ {}", title(&older), title(&newer))?;
    for (side, text) in &lines {
        writeln!(scene.out, "{}{}", side.sign(), untrusted_text::escape_line(text))?;
    }
    if lines.iter().all(|(side, _)| *side == VersionLineSide::Both) {
        writeln!(scene.errors, "tracebook: both versions do the same")?;
    }
    Ok(EXIT_DONE)
}

/// Uses another version of a trace.
pub(super) fn use_version(
    scene: &mut CommandContext<'_>,
    volume: DocId,
    filed: &StoredTrace,
    number: Option<&str>,
) -> Result<u8, CliError> {
    let number = number.ok_or_else(|| CliError::usage("say which version: tracebook traces use NAME VERSION"))?;
    let number = parse_number(number)?;
    let mut trace = filed.trace.clone();
    let used = match trace.use_version(number, &iso_timestamp(now_ms())) {
        Ok(used) => used,
        Err(why) => {
            writeln!(scene.errors, "tracebook: {why}; `tracebook traces versions` lists them")?;
            return Ok(EXIT_FAILED);
        }
    };
    write_trace(scene, volume, filed, &trace)?;
    let read = trace.clone();
    let trust = scene.handle.read(move |session| session.trace_trust(&read))?;
    if scene.json {
        let line = json!({"path": filed.path, "version": used, "follows": trust.is_followed()});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    let steps = if used == number { String::new() } else { format!(", with the steps of version {number}") };
    writeln!(scene.out, "Version {used} is in use{steps}: {}.", trust.reason())?;
    Ok(EXIT_DONE)
}

/// Makes what a run did a new version of the trace for its goal.
pub(super) fn relearn_trace(
    scene: &mut CommandContext<'_>,
    (volume, path): (DocId, &str),
    learned: &RunTrace,
) -> Result<u8, CliError> {
    match add_version(scene, (volume, path), learned, (VersionReason::Relearned, false))? {
        Some(number) => {
            let line = format!("{path}\nVersion {number} of the trace is in use now.");
            scene.print_result(&json!({"path": path, "version": number}), line)?;
            Ok(EXIT_DONE)
        }
        None => {
            writeln!(scene.errors, "tracebook: the trace for this goal does the same already: {path}")?;
            Ok(EXIT_FAILED)
        }
    }
}

/// Adds a trace to the versions of the one for the same goal at this path. Returns the number; `None` if that one does
/// the same, or is for another goal.
pub(super) fn add_version(
    scene: &CommandContext<'_>,
    (volume, path): (DocId, &str),
    learned: &RunTrace,
    (reason, is_proposed): (VersionReason, bool),
) -> Result<Option<u64>, CliError> {
    let all = load_projects(scene, None)?;
    let of_volume = all.iter().filter(|project| project.home == volume);
    let filed = of_volume.flat_map(|project| &project.memory.traces).find(|filed| filed.path == path);
    let Some(filed) = filed.filter(|filed| filed.trace.goal_signature() == learned.goal_signature()) else {
        return Ok(None);
    };
    let mut trace = filed.trace.clone();
    let added = trace.add_learned_version(learned, reason, is_proposed, &iso_timestamp(now_ms()));
    if added.is_some() {
        write_trace(scene, volume, filed, &trace)?;
    }
    Ok(added)
}
