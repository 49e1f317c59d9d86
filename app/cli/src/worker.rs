//! `cmd_worker`: carries out runs of other devices, and shows and stops those in the queues of hubs. `ask --on` puts
//! them there.

mod sending;

pub(super) use sending::cmd_ask_on;

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::WorkerArguments;
use host::peers::DeviceId;
use host::peers::devices::{MIN_TRUSTED_KEY_DIGITS, trusted_key_digits};
use host::peers::work::{QueuedRun, WorkClient, WorkRequest};
use host::sync::devices::open_device_list;
use sent_runs::run_worker::{RunWorker, WorkerNotice, WorkerNoticeKind};
use sent_runs::send_errors::SentRunError;
use sent_runs::{queue_at, queued_label, queued_runs, read_order, shared_hubs};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;
use store::DocId;
use text::untrusted_text::escape_line;

/// How often the queues are looked at while nothing is carried out.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_secs(2);

pub(super) fn cmd_worker(scene: &mut CommandContext<'_>, args: &WorkerArguments) -> Result<u8, CliError> {
    match args.what.as_deref().unwrap_or("run") {
        "run" => serve_queues(scene, args),
        "list" => list_queues(scene),
        "stop" => {
            let word = args.run.as_deref();
            stop_queued(scene, word.ok_or_else(|| CliError::usage("which run? `tracebook worker list` shows them"))?)
        }
        other => Err(CliError::usage(format!("`worker {other}` is not known: run, list, stop"))),
    }
}

/// Returns the beginnings of the keys of devices whose runs are carried out.
fn trusted_keys(words: &[String]) -> Result<Vec<String>, CliError> {
    if words.is_empty() {
        return Err(CliError::usage(
            "whose runs? Name the device: --for KEY, with the key that `tracebook devices` shows there as “this \
             device”",
        ));
    }
    let list = open_device_list().map_err(CliError::workspace)?;
    let key_of = |word: &String| {
        if let Some(digits) = trusted_key_digits(word) {
            return Ok(digits);
        }
        match list.find_by_name_or_key(word) {
            Ok((id, _)) => Ok(id.to_string()),
            Err(_) => Err(CliError::usage(format!(
                "no device “{word}” is paired with this one; give the {MIN_TRUSTED_KEY_DIGITS} digits of its key that \
                 `tracebook devices` shows there"
            ))),
        }
    };
    words.iter().map(key_of).collect()
}

/// Prints a message of the worker.
fn say(json: bool, out: &mut dyn Write, notice: &WorkerNotice) -> io::Result<()> {
    let WorkerNotice { kind, run, words } = notice;
    if json {
        writeln!(out, "{}", json!({"type": notice_word(*kind), "run": run, "what": words}))?;
    } else {
        writeln!(out, "{}  {}", &run.to_string()[..8], escape_line(words))?;
    }
    out.flush()
}

/// Returns the word for a message in JSON.
fn notice_word(kind: WorkerNoticeKind) -> &'static str {
    match kind {
        WorkerNoticeKind::Refused | WorkerNoticeKind::DecisionRefused => "refused",
        WorkerNoticeKind::Claimed => "claimed",
        WorkerNoticeKind::ApprovalPending => "approval_pending",
        WorkerNoticeKind::Ended => "ended",
        WorkerNoticeKind::Lost => "lost",
        WorkerNoticeKind::Released => "released",
    }
}

fn serve_queues(scene: &mut CommandContext<'_>, args: &WorkerArguments) -> Result<u8, CliError> {
    let trusted = trusted_keys(&args.owners)?;
    if !scene.own {
        return Err(CliError::usage(
            "another program has this workspace open; close it, give the worker a workspace of its own (--workspace \
             DIR), or enter the device's key in the window's settings, page Devices",
        ));
    }
    resolve::wait_for_volumes(scene, true)?;
    let mut hubs = scene.handle.read(shared_hubs)?;
    if hubs.is_empty() {
        return Err(CliError::usage(
            "no volume is shared over a hub here; join one first: `tracebook sync join ADDRESS FOLDER`",
        ));
    }
    let mut clients: Vec<(WorkClient, Vec<DocId>)> = Vec::new();
    for (address, volumes) in &hubs {
        clients.push((queue_at(address)?, volumes.iter().copied().collect()));
    }
    let names: Vec<&str> = clients.iter().map(|(client, _)| client.hub_name()).collect();
    if scene.json {
        writeln!(scene.out, "{}", json!({"type": "ready", "hubs": names}))?;
    } else {
        writeln!(scene.out, "Waiting for runs at {}. Ctrl+C ends it.", names.join(", "))?;
    }
    scene.out.flush()?;
    let mut troubles: BTreeMap<DeviceId, String> = BTreeMap::new();
    let is_trusted = |owner: &str| trusted.iter().any(|key| owner.starts_with(key.as_str()));
    let mut worker = RunWorker::new(scene.handle.clone(), &is_trusted);
    loop {
        let mut is_done = false;
        let now = scene.handle.read(shared_hubs)?;
        if now != hubs {
            clients = follow_volumes(scene, &now)?;
            hubs = now;
        }
        for (client, volumes) in &clients {
            match queued_runs(client, volumes.clone()) {
                Ok(runs) => {
                    troubles.remove(&client.hub);
                    let (json, out) = (scene.json, &mut *scene.out);
                    is_done |= worker.carry_out_first(client, &runs, &mut |notice| say(json, out, &notice))?;
                }
                Err(why) => {
                    let why = format!("{}: {why}", client.hub_name());
                    if troubles.insert(client.hub, why.clone()).as_ref() != Some(&why) {
                        writeln!(scene.errors, "tracebook: {why}; it's tried again")?;
                    }
                }
            }
        }
        if is_done && args.once {
            return Ok(EXIT_DONE);
        }
        if !is_done {
            super::sleep(QUEUE_POLL_INTERVAL);
        }
    }
}

/// Returns the ways to the queues of these hubs, whose volumes have changed while the worker runs, and says so.
fn follow_volumes(
    scene: &mut CommandContext<'_>,
    hubs: &[(String, BTreeSet<DocId>)],
) -> Result<Vec<(WorkClient, Vec<DocId>)>, CliError> {
    let mut clients = Vec::new();
    for (address, volumes) in hubs {
        match queue_at(address) {
            Ok(client) => clients.push((client, volumes.iter().copied().collect::<Vec<DocId>>())),
            Err(why) => writeln!(scene.errors, "tracebook: no runs of {}: {why}", escape_line(address))?,
        }
    }
    let all: BTreeSet<DocId> = clients.iter().flat_map(|(_, volumes)| volumes.iter().copied()).collect();
    let names: Vec<String> = scene.handle.read(move |session| {
        all.iter().filter_map(|id| session.volume(*id)).map(|volume| volume.name.clone()).collect()
    })?;
    if scene.json {
        writeln!(scene.out, "{}", json!({"type": "volumes", "volumes": names}))?;
    } else if names.is_empty() {
        writeln!(scene.out, "No volume is shared over a hub here now.")?;
    } else {
        writeln!(scene.out, "Waiting for runs in {}.", escape_line(&names.join(", ")))?;
    }
    scene.out.flush()?;
    Ok(clients)
}

/// Returns the runs in the queues of all hubs, each with its hub's queue.
fn all_queued(scene: &mut CommandContext<'_>) -> Result<Vec<(WorkClient, QueuedRun)>, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let mut all = Vec::new();
    for (address, volumes) in scene.handle.read(shared_hubs)? {
        let client = queue_at(&address)?;
        let runs = queued_runs(&client, volumes.into_iter().collect()).map_err(SentRunError::from)?;
        all.extend(runs.into_iter().map(|run| (client.clone(), run)));
    }
    Ok(all)
}

fn list_queues(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let all = all_queued(scene)?;
    scene.explain_empty_list(all.is_empty(), "No runs in the queues. `tracebook ask TEXT --on any` sends one.")?;
    for (client, queued) in all {
        let read = read_order(&client, &queued);
        let prompt = read.as_ref().map_or_else(ToString::to_string, |(_, task)| task.text.clone());
        if scene.json {
            let to = read.as_ref().ok().and_then(|(order, _)| order.to);
            let line = json!({"run": queued.run, "hub": client.hub_name(), "owner": queued.owner,
                "prompt": prompt, "to": to, "worker": queued.holder.as_ref().map(|(_, name)| name),
                "claims": queued.epoch, "free": queued.is_free, "cancelled": queued.cancelled,
                "ending": queued.ending, "why": queued.why});
            writeln!(scene.out, "{line}")?;
        } else {
            let (id, prompt) = (&queued.run.to_string()[..8], prompt.lines().next().unwrap_or_default().to_owned());
            let (state, owner) = (queued_label(&queued), &queued.owner);
            writeln!(
                scene.out,
                "{id}  {}  {}  (of {})",
                escape_line(&state),
                escape_line(&prompt),
                escape_line(owner)
            )?;
        }
    }
    Ok(EXIT_DONE)
}

fn stop_queued(scene: &mut CommandContext<'_>, word: &str) -> Result<u8, CliError> {
    let wanted = word.trim_start_matches("run-").to_lowercase();
    let mut meant: Vec<(WorkClient, QueuedRun)> = all_queued(scene)?;
    meant.retain(|(_, queued)| !wanted.is_empty() && queued.run.to_string().starts_with(&wanted));
    let [(client, queued)] = meant.as_slice() else {
        let words = if meant.is_empty() { "no run in the queue begins" } else { "several runs in the queue begin" };
        return Err(CliError::usage(format!("{words} with “{word}”; `tracebook worker list` shows them")));
    };
    match client.ask(&WorkRequest::Cancel(queued.run)) {
        Ok(_) => Ok(EXIT_DONE),
        Err(why) => Err(SentRunError::from(why).into()),
    }
}

/// Returns the exit code for how a run ended elsewhere.
fn exit_code(ending: &str) -> u8 {
    if ending == "done" { EXIT_DONE } else { EXIT_FAILED }
}
