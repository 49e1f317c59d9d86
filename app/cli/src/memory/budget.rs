//! `cmd_budget`: spending of runs and search by task, session, project and month, and what is left of each budget.

use super::super::agents;
use super::super::{CliError, CommandContext, EXIT_DONE};
use crate::arguments::BudgetArguments;
use agent::budget::usage_so_far;
use engine::{BudgetScope, EmbeddingCost, RunSummary, ScopeSpending, UnixMillis};
use serde_json::json;
use store::DocId;
use text::task::CalendarDay;

/// Maximum number of runs shown from the log.
const MAX_LOGGED_RUNS: usize = 20;

/// Maximum number of listed budgets.
const MAX_LISTED_BUDGETS: usize = 100;

/// Prints the spending of each task, session, project or month.
fn print_spending(scene: &mut CommandContext<'_>, word: &str) -> Result<u8, CliError> {
    let by = BudgetScope::from_name(word)
        .ok_or_else(|| CliError::usage(format!("--by is task, session, project or month, not “{word}”")))?;
    let all: Vec<ScopeSpending> = scene.handle.read(move |session| session.spending_by_scope(by))?;
    for one in all.into_iter().take(MAX_LISTED_BUDGETS) {
        let left = one.limit.map(|limit| (limit - one.spent).max(0.0));
        if scene.json {
            let mut value = serde_json::to_value(&one).unwrap_or_default();
            value["left"] = json!(left);
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let ScopeSpending { doc, title, project, limit, spent, tokens, unknown, .. } = &one;
        let left = match (limit, left) {
            (Some(limit), Some(left)) => format!(", ${left:.4} of ${limit:.2} left"),
            _ => String::new(),
        };
        let unknown = if *unknown == 0 { String::new() } else { format!(", {unknown} of unknown price") };
        let project = if project.is_empty() { String::new() } else { format!("  ({project})") };
        let short = doc.map_or_else(String::new, |doc| format!("{}  ", &doc.to_string()[..8]));
        writeln!(scene.out, "{short}{title}: ${spent:.4}, {tokens} tokens{left}{unknown}{project}")?;
    }
    Ok(EXIT_DONE)
}

/// Prints a log line: what search spent on a day.
fn print_embedding_cost(scene: &mut CommandContext<'_>, outlay: &EmbeddingCost) -> Result<(), CliError> {
    if scene.json {
        writeln!(scene.out, "{}", json!({"search": outlay}))?;
        return Ok(());
    }
    let EmbeddingCost { what, calls, tokens, cost, unknown, .. } = outlay;
    let cost = if unknown == calls { "unknown".to_owned() } else { format!("${cost:.4}") };
    let day = CalendarDay(outlay.at.div_euclid(86_400_000));
    writeln!(scene.out, "{day}  {cost}  {tokens} tokens  {calls} calls of search by {what}")?;
    Ok(())
}

pub(crate) fn cmd_budget(scene: &mut CommandContext<'_>, args: &BudgetArguments) -> Result<u8, CliError> {
    agents::wait_for_setup(scene)?;
    if let Some(word) = args.by.as_ref() {
        return print_spending(scene, word);
    }
    let now = UnixMillis(jiff::Timestamp::now().as_millisecond());
    let balances = scene.handle.read(move |session| session.budget_statuses(now))?;
    for balance in &balances {
        if scene.json {
            let mut value = serde_json::to_value(balance).unwrap_or_default();
            value["left"] = json!(balance.remaining());
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let left = match (balance.limit, balance.remaining()) {
            (Some(limit), Some(left)) => format!("${left:.4} of ${limit:.2} left"),
            _ => "no limit".to_owned(),
        };
        let unknown = match balance.unknown {
            0 => String::new(),
            count => format!(", {count} of unknown price"),
        };
        let (of, spent, tokens) = (&balance.of, balance.spent, balance.tokens);
        writeln!(scene.out, "{of}: ${spent:.4}, {tokens} tokens, {left}{unknown}")?;
    }
    if args.log {
        let mut runs: Vec<(DocId, RunSummary, Option<String>)> = scene.handle.read(|session| {
            let runs = session.agents().runs();
            runs.map(|(id, line)| (id, line.clone(), agents::other_device(session, line))).collect()
        })?;
        runs.sort_by_key(|(_, line, _)| std::cmp::Reverse(line.start_time));
        let outlays: Vec<EmbeddingCost> =
            scene.handle.read(|session| session.embedding_costs().rev().take(MAX_LOGGED_RUNS).cloned().collect())?;
        let mut outlays = outlays.into_iter().peekable();
        for (id, line, elsewhere) in runs.into_iter().take(MAX_LOGGED_RUNS) {
            while let Some(outlay) = outlays.next_if(|outlay| outlay.at >= line.start_time) {
                print_embedding_cost(scene, &outlay)?;
            }
            let spent = usage_so_far(&line);
            if scene.json {
                writeln!(
                    scene.out,
                    "{}",
                    json!({"run": id, "at": line.start_time, "spent": spent, "goal": line.prompt, "paid_on": elsewhere})
                )?;
                continue;
            }
            let cost = spent.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
            let tokens = spent.input_tokens.saturating_add(spent.output_tokens);
            let goal = line.prompt.lines().next().unwrap_or_default();
            // What another device has paid isn't in the sums above.
            let paid = elsewhere.map_or_else(String::new, |name| format!("  (paid on {name})"));
            let paid = text::untrusted_text::escape_line(&paid);
            writeln!(scene.out, "{}  {cost}  {tokens} tokens  {goal}{paid}", &id.to_string()[..8])?;
        }
        outlays.try_for_each(|outlay| print_embedding_cost(scene, &outlay))?;
    }
    Ok(EXIT_DONE)
}
