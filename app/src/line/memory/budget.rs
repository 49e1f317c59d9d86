//! `budget`: what runs have spent, and what is left.

use super::super::agents;
use super::super::{DONE, Refusal, Scene};
use clap::ArgMatches;
use engine::{RunLine, Time};
use serde_json::json;
use store::DocId;

/// So many runs of the log are shown.
const LOG: usize = 20;

pub(in crate::line) fn budget(scene: &mut Scene<'_>, args: &ArgMatches) -> Result<u8, Refusal> {
    agents::setup_known(scene)?;
    let now = Time(jiff::Timestamp::now().as_millisecond());
    let balances = scene.handle.read(move |session| session.balances(now))?;
    for balance in &balances {
        if scene.json {
            let mut value = serde_json::to_value(balance).unwrap_or_default();
            value["left"] = json!(balance.left());
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let left = match (balance.limit, balance.left()) {
            (Some(limit), Some(left)) => format!("${left:.4} of ${limit:.2} left"),
            _ => "no limit".to_owned(),
        };
        let unknown = match balance.unknown {
            0 => String::new(),
            count => format!(", {count} runs of unknown price"),
        };
        let (of, spent, tokens) = (&balance.of, balance.spent, balance.tokens);
        writeln!(scene.out, "{of}: ${spent:.4}, {tokens} tokens, {left}{unknown}")?;
    }
    if args.get_flag("log") {
        let mut runs: Vec<(DocId, RunLine)> =
            scene.handle.read(|session| session.agents().runs().map(|(id, line)| (id, line.clone())).collect())?;
        runs.sort_by_key(|(_, line)| std::cmp::Reverse(line.start_time));
        for (id, line) in runs.into_iter().take(LOG) {
            let spent = line.spent;
            if scene.json {
                writeln!(
                    scene.out,
                    "{}",
                    json!({"run": id, "at": line.start_time, "spent": spent, "goal": line.prompt})
                )?;
                continue;
            }
            let cost = spent.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
            let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
            let goal = line.prompt.lines().next().unwrap_or_default();
            writeln!(scene.out, "{}  {cost}  {tokens} tokens  {goal}", &id.to_string()[..8])?;
        }
    }
    Ok(DONE)
}
