//! `ask --on`: sends runs to workers, and follows them.

use super::super::agents::{AskedRun, prepare_question, print_new_steps, resolve_run};
use super::super::{CliError, CommandContext, EXIT_DONE};
use super::exit_code;
use crate::arguments::AskArguments;
use agent::policy::ToolPolicy;
use engine::Session;
use host::peers::work::WorkClient;
use sent_runs::hub_sync::wait_until_hubs_have_all;
use sent_runs::{
    RunTask, SEND_TIMEOUT, SentQuestion, find_device, queue_of_volume, queued_label, queued_runs, send_run, shared_hubs,
};
use serde_json::json;
use std::time::Duration;
use store::{DocId, RunApproval};
use text::untrusted_text::escape_line;

/// How often a sent run is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of looks in a row at which the hub may be out of reach before that is said.
const MAX_SILENT_LOOKS: u32 = 10;

/// Sends a run to a worker (`on`: a device's name, or `any`), and follows it unless the user doesn't wait.
pub(crate) fn cmd_ask_on(scene: &mut CommandContext<'_>, on: &str, args: &AskArguments) -> Result<u8, CliError> {
    if args.fork.is_some() {
        return Err(CliError::usage("--on and --fork don't go together: a fork is a copy on this device"));
    }
    let asked = prepare_question(scene, args)?;
    let AskedRun { run, session, volume, note, parent, text, agent, budget, provider, allow, recall } = asked;
    if text.trim().is_empty() {
        return Err(CliError::usage("enter a goal"));
    }
    let hubs = scene.handle.read(shared_hubs)?;
    let client = queue_of_volume(&hubs, volume)?;
    let to = match on {
        "any" => None,
        word => Some(find_device(&client, word)?.0),
    };
    let task = RunTask {
        session,
        note,
        parent,
        text,
        agent,
        budget,
        provider: provider.map(String::from),
        allow,
        recall,
        policy: ToolPolicy::default(),
    };
    send_run(scene.handle, &client, &SentQuestion { run, volume, to, task })?;
    if args.no_wait {
        match scene.json {
            true => writeln!(scene.out, "{}", json!({"type": "sent", "run": run, "hub": client.hub_name()}))?,
            false => writeln!(scene.out, "{run}")?,
        }
        return Ok(EXIT_DONE);
    }
    follow_sent_run(scene, &client, volume, run)
}

/// Prints what a run does elsewhere, as it arrives, until it ends.
fn follow_sent_run(
    scene: &mut CommandContext<'_>,
    client: &WorkClient,
    volume: DocId,
    run: DocId,
) -> Result<u8, CliError> {
    let (mut said, mut steps, mut silent) = (String::new(), 0, 0);
    let mut asked: Vec<String> = Vec::new();
    loop {
        let queued = match queued_runs(client, vec![volume]) {
            Ok(runs) => runs.into_iter().find(|queued| queued.run == run),
            Err(why) => {
                silent += 1;
                if silent == MAX_SILENT_LOOKS {
                    writeln!(scene.errors, "tracebook: {why}; the run continues meanwhile")?;
                }
                None
            }
        };
        if let Some(queued) = &queued {
            silent = 0;
            let label = queued_label(queued);
            if label != said && queued.ending.is_none() {
                match scene.json {
                    true => writeln!(scene.out, "{}", json!({"type": "queue", "run": run, "what": label}))?,
                    false => writeln!(scene.errors, "{}: {}", &run.to_string()[..8], escape_line(&label))?,
                }
                scene.out.flush()?;
                said = label;
            }
        }
        let ended = queued.as_ref().and_then(|queued| queued.ending.clone());
        if ended.is_some() {
            // The worker has sent everything before it said so.
            wait_until_hubs_have_all(scene.handle, Some(client.address()), SEND_TIMEOUT)?;
        }
        if scene.handle.read(move |session| session.agents().runs().any(|(id, _)| id == run))? {
            resolve_run(scene, &run.to_string())?;
            steps = print_new_steps(scene, run, steps)?;
            print_new_approvals(scene, run, &mut asked)?;
        }
        if let Some(ending) = ended {
            if let Some(why) = queued.and_then(|queued| queued.why) {
                writeln!(scene.errors, "tracebook: {}", escape_line(&why))?;
            }
            return Ok(exit_code(&ending));
        }
        super::super::sleep(POLL_INTERVAL);
    }
}

/// Prints the requests for approval of a run elsewhere that weren't printed yet.
fn print_new_approvals(scene: &mut CommandContext<'_>, run: DocId, asked: &mut Vec<String>) -> Result<(), CliError> {
    sent_runs::open_waiting_parts(scene.handle, run)?;
    let look = move |session: &Session| {
        let agents = session.agents();
        let parts = agents.run_family(run).into_iter().filter_map(|part| agents.run(part));
        parts.flat_map(|part| part.pending().map(|one| (part.id, one.clone())).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    for (part, approval) in scene.handle.read(look)? {
        let name = format!("{}/{}", &part.to_string()[..8], approval.id);
        if asked.contains(&name) {
            continue;
        }
        if scene.json {
            let RunApproval { tool, arguments, what, reason, code, reach, .. } = &approval;
            let line = json!({"type": "approval_pending", "name": name, "tool": tool, "arguments": arguments,
                "what": what, "reason": reason, "call": approval.call_id(), "run": part, "code": code, "reach": reach});
            writeln!(scene.out, "{line}")?;
        }
        let title = agent::approval_text::title(&approval);
        writeln!(scene.errors, "{title}: waits for `tracebook approvals {name} --allow` or --deny")?;
        for line in agent::approval_text::body(&approval).lines() {
            writeln!(scene.errors, "    {line}")?;
        }
        scene.out.flush()?;
        asked.push(name);
    }
    Ok(())
}
