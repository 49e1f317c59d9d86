//! `tracebook traces verify`: compares traces with the runs of this workspace, without repeating anything.

use super::super::agents;
use super::super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED};
use agent::memory::StoredTrace;
use agent::memory::goal::ParsedGoal;
use agent::memory::trace::iso_timestamp;
use engine::Session;
use serde_json::json;
use store::{DocId, RunEnding};

/// Maximum number of runs that a trace is compared with; the newest count.
const MAX_COMPARED_RUNS: usize = 50;

/// Returns the runs that the version of a trace in use is compared with: the one from which it was learned, and the
/// newest completed ones that asked for the same since it's in use.
fn comparable_runs(session: &Session, filed: &StoredTrace) -> Vec<DocId> {
    let origin = filed.trace.origin_run().parse::<DocId>().ok();
    let used_since = filed.trace.version.used_since.as_str();
    let mut found: Vec<(i64, DocId)> = session
        .agents()
        .runs()
        .filter(|(id, line)| {
            let asks_the_same = || {
                let goal = ParsedGoal::parse(&line.prompt);
                used_since <= iso_timestamp(line.start_time).as_str()
                    && line.agent == filed.trace.known.agent
                    && filed.trace.match_goal(&goal, None).is_ok()
            };
            line.ending == Some(RunEnding::Done) && (Some(*id) == origin || asks_the_same())
        })
        .map(|(id, line)| (line.start_time, id))
        .collect();
    // The origin first, then the newest.
    found.sort_by_key(|(start, id)| (Some(*id) != origin, std::cmp::Reverse(*start)));
    found.truncate(MAX_COMPARED_RUNS);
    found.into_iter().map(|(_, id)| id).collect()
}

/// Verifies traces against recorded runs. Runs that the user took back don't count.
pub(super) fn verify_traces(scene: &mut CommandContext<'_>, traces: &[&StoredTrace]) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?;
    let mut is_all_good = true;
    for filed in traces {
        let known = (*filed).clone();
        let runs = scene.handle.read(move |session| comparable_runs(session, &known))?;
        let (mut equal, mut reverted, mut differences) = (0_usize, 0_usize, Vec::new());
        for run in runs {
            agents::resolve_run(scene, &run.to_string())?;
            let trace = filed.trace.clone();
            let (is_reverted, result) = scene.handle.read(move |session| {
                let changes = session.agents().run(run).map(|run| run.changes.as_slice()).unwrap_or_default();
                let is_reverted = !changes.is_empty() && changes.iter().all(|change| !change.undone.is_empty());
                (is_reverted, session.verify_trace(run, &trace))
            })?;
            match result {
                _ if is_reverted => reverted += 1,
                Ok(()) => equal += 1,
                Err(why) => differences.push((run, why.to_string())),
            }
        }
        is_all_good &= differences.is_empty();
        let name = filed.path.rsplit('/').next().unwrap_or(&filed.path).trim_end_matches(".md");
        if scene.json {
            let differences: Vec<_> =
                differences.iter().map(|(run, why)| json!({"run": run.to_string(), "difference": why})).collect();
            let line = json!({"path": filed.path, "equal": equal, "reverted": reverted, "differences": differences});
            writeln!(scene.out, "{line}")?;
            continue;
        }
        let left_out = if reverted == 0 { String::new() } else { format!(" ({reverted} that were undone left out)") };
        match equal + differences.len() {
            0 => writeln!(scene.out, "{name}  not verified: no run is known that did the same{left_out}")?,
            all => writeln!(scene.out, "{name}  does what {equal} of {all} recorded runs did{left_out}")?,
        }
        for (run, why) in differences {
            writeln!(scene.out, "  run {}: {why}", &run.to_string()[..8])?;
        }
    }
    Ok(if is_all_good { EXIT_DONE } else { EXIT_FAILED })
}
