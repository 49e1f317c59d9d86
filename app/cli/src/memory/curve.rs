//! `tracebook memory curve`: how runs went in each week or month, and how many of them needed no model.

use super::super::agents::resolve_agent_volume;
use super::super::{CliError, CommandContext, EXIT_DONE};
use super::memory_files::now_ms;
use crate::arguments::MemoryArguments;
use agent::learning_curve::{CurvePeriod, CurvePoint, learning_curve};
use serde_json::json;
use store::DocId;
use text::task::CalendarDay;

/// Prints the learning curve of all projects, or of one.
pub(super) fn print_learning_curve(scene: &mut CommandContext<'_>, args: &MemoryArguments) -> Result<u8, CliError> {
    let word = args.by.as_deref().unwrap_or("week");
    let period =
        CurvePeriod::from_name(word).ok_or_else(|| CliError::usage(format!("--by is week or month, not “{word}”")))?;
    let only: Option<DocId> = match &args.project {
        Some(name) => Some(resolve_agent_volume(scene, Some(name.clone()), None)?),
        None => None,
    };
    let curve: Vec<CurvePoint> = scene.handle.read(move |session| {
        let agents = session.agents();
        let is_wanted = |volume: DocId| {
            let fork_of = || session.volume(volume).and_then(|volume| volume.fork_of.as_ref());
            only.is_none_or(|only| only == volume || fork_of().is_some_and(|origin| origin.volume == only))
        };
        let runs = agents.runs().filter(|(_, line)| is_wanted(line.volume));
        let runs = runs.map(|(id, line)| ([id, agents.ancestors(id).last().copied().unwrap_or(id)], line));
        learning_curve(runs, period, CalendarDay(now_ms().div_euclid(86_400_000)))
    })?;
    for point in &curve {
        if scene.json {
            let value = json!({
                "from": point.from.to_string(), "runs": point.runs, "done": point.done,
                "without_model": point.without_model, "model_calls": point.model_calls, "cost": point.cost,
                "unknown_cost": point.unknown_cost, "done_share": point.done_share(),
                "without_model_share": point.without_model_share(),
            });
            writeln!(scene.out, "{value}")?;
            continue;
        }
        writeln!(scene.out, "{}", point.describe())?;
    }
    if curve.is_empty() && !scene.json {
        writeln!(scene.errors, "tracebook: no run has ended yet")?;
    }
    Ok(EXIT_DONE)
}
