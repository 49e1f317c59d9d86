//! `cmd_sync`: volumes shared with other devices over hubs.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::SyncArguments;
use crate::parse::needed;
use engine::{Command, HubConnection, HubState, LAN_HUB_ADDRESS, MergeRecord, SeenDevice, Session, SyncProgress};
use host::fs::copy;
use sent_runs::hub_sync::wait_until_hubs_have_all;
use serde_json::json;
use std::time::Duration;
use text::diff::unified_diff;
use text::untrusted_text;

/// Default time in seconds that `sync now` and `sync join` wait for completion.
const DEFAULT_SYNC_TIMEOUT_SECS: u64 = 60;
/// How long `sync join` waits before it says for what.
const JOIN_NOTICE_DELAY: Duration = Duration::from_secs(2);

pub(super) fn cmd_sync(scene: &mut CommandContext<'_>, args: &SyncArguments) -> Result<u8, CliError> {
    let patience = super::parse::number_option("for", args.for_secs.as_deref())?.unwrap_or(DEFAULT_SYNC_TIMEOUT_SECS);
    let patience = Duration::from_secs(patience.min(7 * 24 * 3_600));
    match args.what.as_str() {
        "status" => match args.name.as_deref() {
            Some(note) => print_note_status(scene, note),
            None => print_status(scene),
        },
        "log" => print_sync_log(scene),
        "merges" => match args.name.as_deref() {
            Some(number) => print_merge(scene, number),
            None => list_merges(scene),
        },
        "share" => {
            let volume = find_volume(scene, needed(args.name.as_deref(), "the volume")?)?;
            let hub = needed(args.place.as_deref(), "the hub's address")?.to_owned();
            scene.handle.run_command(Command::ShareVolume { volume, hub: hub.clone() })?;
            let address = engine::volume_address(&engine::hub_address(&hub)?, volume);
            if scene.json {
                writeln!(scene.out, "{}", json!({"address": address}))?;
            } else {
                writeln!(scene.out, "{address}")?;
            }
            Ok(EXIT_DONE)
        }
        "join" => {
            let address = needed(args.name.as_deref(), "the volume's address")?.to_owned();
            let folder = copy::absolute_path(scene.folder, needed(args.place.as_deref(), "the folder")?);
            if !copy::is_empty(&folder) {
                return Err(CliError::usage(format!("the folder is not empty: {}", folder.display())));
            }
            copy::create_folder(&folder).map_err(CliError::workspace)?;
            let (hub, volume) = engine::read_volume_address(&address)?;
            scene.handle.run_command(Command::JoinVolume { address, folder })?;
            let look = move |session: &Session| {
                let here = session.volume(volume).is_some_and(|volume| !session.sync().is_awaited(volume.id));
                here.then_some(())
            };
            let quiet = JOIN_NOTICE_DELAY.min(patience);
            let mut here = scene.handle.wait(Some(quiet), look)?.is_some();
            if !here {
                if !scene.json {
                    let state = hub_state_text(scene, &hub)?;
                    writeln!(scene.out, "Waiting for {state}")?;
                    scene.out.flush()?;
                }
                here = scene.handle.wait(Some(patience.saturating_sub(quiet)), look)?.is_some();
            }
            match here && wait_until_hubs_have_all(scene.handle, None, patience)? {
                true => print_status(scene),
                false => {
                    let state = hub_state_text(scene, &hub)?;
                    writeln!(
                        scene.errors,
                        "tracebook: it has not all arrived yet ({state}); it comes while Tracebook runs (`tracebook \
                         sync status`)"
                    )?;
                    Ok(EXIT_FAILED)
                }
            }
        }
        "leave" => {
            let volume = find_volume(scene, needed(args.name.as_deref(), "the volume")?)?;
            let hub = args.place.as_deref().unwrap_or_default().to_owned();
            scene.handle.run_command(Command::UnshareVolume { volume, hub })?;
            Ok(EXIT_DONE)
        }
        "pause" => {
            scene.handle.run_command(Command::PauseSync { paused: true })?;
            Ok(EXIT_DONE)
        }
        "resume" => {
            scene.handle.run_command(Command::PauseSync { paused: false })?;
            Ok(EXIT_DONE)
        }
        "retry" => {
            scene.handle.run_command(Command::RetrySync)?;
            Ok(EXIT_DONE)
        }
        "now" => {
            resolve::wait_for_volumes(scene, true)?;
            export::open_note::wait_until_saved(scene.handle)?;
            let done = wait_until_hubs_have_all(scene.handle, None, patience)?;
            print_status(scene)?;
            Ok(if done { EXIT_DONE } else { EXIT_FAILED })
        }
        other => {
            let actions = ["status", "log", "merges", "share", "join", "leave", "pause", "resume", "retry", "now"];
            Err(super::parse::unknown_action("sync", &actions, other))
        }
    }
}

fn find_volume(scene: &CommandContext<'_>, name: &str) -> Result<store::DocId, CliError> {
    resolve::resolve_volume(scene, Some(name))?.ok_or_else(|| CliError::usage(format!("there is no volume {name}")))
}

/// Describes the progress, and when unreachable devices were last seen.
fn progress_label(spread: &SyncProgress) -> String {
    let seen = spread.last_seen().map(|(who, at)| format!(", {who} last seen {}", host::clock::format_moment(at.0)));
    spread.describe() + &seen.unwrap_or_default()
}

/// Describes the connection to a hub: its address, its state, and the reason if it's offline.
fn hub_state_text(scene: &CommandContext<'_>, hub: &str) -> Result<String, CliError> {
    let url = hub.to_owned();
    let state = scene.handle.read(move |session| session.sync().states.get(&url).cloned())?;
    let state = state.unwrap_or_else(unknown_hub_state);
    let (reach, why) = connection_label(&state.reach);
    let why = if why.is_empty() { String::new() } else { format!(" ({})", untrusted_text::escape_line(why)) };
    let name = if hub == LAN_HUB_ADDRESS { "the local network" } else { hub };
    Ok(format!("{name}: {reach}{why}"))
}

fn print_status(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let hubs = scene.handle.read(|session| {
        let sync = session.sync();
        let name = |id| session.volume(id).map_or_else(|| "a volume that is closed".to_owned(), |one| one.name.clone());
        let one = |hub: &engine::SharedHub| {
            let volume =
                |id: &store::DocId| (name(*id), engine::volume_address(&hub.url, *id), session.sync_progress(*id));
            let volumes: Vec<(String, String, SyncProgress)> = hub.volumes.iter().map(volume).collect();
            (hub.url.clone(), sync.states.get(&hub.url).cloned().unwrap_or_else(unknown_hub_state), volumes)
        };
        let devices: Vec<(SeenDevice, bool)> =
            sync.devices().into_iter().map(|(seen, here)| (seen.clone(), here)).collect();
        (sync.shares.paused, session.sync_status(), sync.shares.hubs.iter().map(one).collect::<Vec<_>>(), devices)
    })?;
    let (paused, standing, hubs, devices) = hubs;
    if scene.json {
        let one = |(url, state, volumes): &(String, HubState, Vec<(String, String, SyncProgress)>)| {
            let volume = |(name, address, spread): &(String, String, SyncProgress)| {
                json!({"name": name, "address": address, "state": spread.describe(), "documents": spread.documents,
                    "behind": spread.behind, "coming": spread.coming,
                    "received": spread.last_received.map(|at| at.0), "same": spread.last_synced.map(|at| at.0),
                    "seen": spread.hub_last_seen.map(|at| at.0)})
            };
            let (reach, why) = connection_label(&state.reach);
            json!({"hub": url, "reach": reach, "why": why, "seen": state.seen.map(|seen| seen.0),
                "documents": state.documents, "behind": state.behind.len(), "files": blob_state_json(&state.blobs),
                "volumes": volumes.iter().map(volume).collect::<Vec<_>>()})
        };
        let all: Vec<serde_json::Value> = hubs.iter().map(one).collect();
        let device = |(seen, here): &(SeenDevice, bool)| json!({"name": seen.name, "here": here, "seen": seen.at.0});
        let devices: Vec<serde_json::Value> = devices.iter().map(device).collect();
        let line = json!({"paused": paused, "state": standing.describe(), "hubs": all, "devices": devices});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    if hubs.is_empty() {
        writeln!(scene.out, "Nothing is shared. `tracebook sync share VOLUME ws://hub:port` begins.")?;
    }
    if paused {
        writeln!(scene.out, "Sync is paused. Run `tracebook sync resume` to continue.")?;
    }
    for (url, state, volumes) in hubs {
        let (reach, why) = connection_label(&state.reach);
        let why = if why.is_empty() { String::new() } else { format!(" ({})", untrusted_text::escape_line(why)) };
        let name = if url == LAN_HUB_ADDRESS { "The local network" } else { &url };
        writeln!(
            scene.out,
            "{name}: {reach}{why}; {}, {} on their way",
            super::plurals::counted(state.documents, "document"),
            state.behind.len()
        )?;
        let words = state.blobs.describe();
        if !words.is_empty() {
            writeln!(scene.out, "  {words}")?;
        }
        for (name, address, spread) in volumes {
            writeln!(scene.out, "  {}: {}", untrusted_text::escape_line(&name), progress_label(&spread))?;
            writeln!(scene.out, "    {address}")?;
        }
    }
    for (seen, here) in devices {
        let when =
            if here { "here now".to_owned() } else { format!("last seen {}", host::clock::format_moment(seen.at.0)) };
        writeln!(scene.out, "{}: {when}", untrusted_text::escape_line(&seen.name))?;
    }
    Ok(EXIT_DONE)
}

/// Prints the sync progress of one note.
fn print_note_status(scene: &mut CommandContext<'_>, note: &str) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, note)?;
    let read = move |session: &Session| {
        (session.locate_file(note).map(|(_, path)| path.to_owned()).unwrap_or_default(), session.sync_progress(note))
    };
    let (path, spread) = scene.handle.read(read)?;
    // The address and heads let another program that uses automerge-repo find the note and compare its state.
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let heads = |note: &engine::Note| {
        let heads = note.document().map(|doc| doc.heads()).unwrap_or_default();
        let mut heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
        heads.sort_unstable();
        heads
    };
    let heads = export::open_note::read_loaded_note(scene.handle, note, heads)?;
    let address = store::sync::document_address(note);
    let moment = |at: Option<engine::UnixMillis>| at.map(|at| host::clock::format_moment(at.0));
    if scene.json {
        let line = json!({"note": path, "state": spread.describe(), "behind": spread.behind,
            "received": spread.last_received.map(|at| at.0), "same": spread.last_synced.map(|at| at.0),
            "address": address, "heads": heads});
        writeln!(scene.out, "{line}")?;
    } else {
        writeln!(scene.out, "{}: {}", untrusted_text::escape_line(&path), progress_label(&spread))?;
        writeln!(scene.out, "  {address}")?;
        if let Some(at) = moment(spread.last_received) {
            writeln!(scene.out, "  received from another device {at}")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Prints changes by other devices, newest first.
fn list_merges(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let merges: Vec<MergeRecord> =
        scene.handle.read(|session| session.sync().merges.iter().rev().cloned().collect())?;
    if scene.json {
        let one = |(at, merge): (usize, &MergeRecord)| {
            json!({"number": at + 1, "from": merge.from.0, "to": merge.to.0, "note": merge.note.to_string(),
                "path": merge.path, "what": merge.describe(), "texts": merge.has_texts()})
        };
        let all: Vec<serde_json::Value> = merges.iter().enumerate().map(one).collect();
        writeln!(scene.out, "{}", serde_json::Value::Array(all))?;
        return Ok(EXIT_DONE);
    }
    if merges.is_empty() {
        writeln!(scene.out, "Other devices have changed nothing yet.")?;
    }
    for (at, merge) in merges.iter().enumerate() {
        let when = host::clock::format_moment(merge.to.0);
        writeln!(
            scene.out,
            "{:>4}  {when}  {} {}",
            at + 1,
            untrusted_text::escape_line(&merge.path),
            untrusted_text::escape_line(&merge.describe())
        )?;
    }
    Ok(EXIT_DONE)
}

/// Prints one of these changes: the note before and after, as a diff.
fn print_merge(scene: &mut CommandContext<'_>, number: &str) -> Result<u8, CliError> {
    let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = scene.handle.read(move |session| session.sync().merges.iter().rev().nth(place?).cloned())?;
    let merge = found
        .ok_or_else(|| CliError::usage(format!("there is no change {number}; `tracebook sync merges` lists them")))?;
    resolve::wait_for_volumes(scene, true)?;
    let texts = scene.handle.compare_merge(&merge).map_err(CliError::workspace)?;
    if scene.json {
        let texts = texts.map(|texts| json!({"before": &*texts.old, "after": &*texts.new}));
        let line = json!({"path": merge.path, "what": merge.describe(), "texts": texts});
        writeln!(scene.out, "{line}")?;
        return Ok(EXIT_DONE);
    }
    writeln!(
        scene.out,
        "{} {}",
        untrusted_text::escape_line(&merge.path),
        untrusted_text::escape_line(&merge.describe())
    )?;
    if let Some(texts) = texts {
        write!(scene.out, "{}", unified_diff(&merge.path, Some(&texts.old), Some(&texts.new)))?;
    }
    Ok(EXIT_DONE)
}

/// Returns the state of a hub's blobs as JSON.
fn blob_state_json(blobs: &engine::HubBlobState) -> serde_json::Value {
    json!({"kept": blobs.kept, "coming": blobs.coming, "there": blobs.there, "going": blobs.going,
        "refused": blobs.refused})
}

/// Returns the state of a hub that hasn't answered yet.
fn unknown_hub_state() -> HubState {
    HubState { reach: HubConnection::Connecting, ..HubState::default() }
}

fn connection_label(reach: &HubConnection) -> (&'static str, &str) {
    match reach {
        HubConnection::Paused => ("off", ""),
        HubConnection::Connecting => ("trying", ""),
        HubConnection::Online => ("online", ""),
        HubConnection::Offline { why } => ("offline", why),
    }
}

fn print_sync_log(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    let lines: Vec<(i64, String)> =
        scene.handle.read(|session| session.sync().log.iter().map(|(at, line)| (at.0, line.clone())).collect())?;
    for (at, line) in lines {
        if scene.json {
            writeln!(scene.out, "{}", json!({"at": at, "line": line}))?;
        } else {
            writeln!(scene.out, "{}  {}", host::clock::format_moment(at), untrusted_text::escape_line(&line))?;
        }
    }
    Ok(EXIT_DONE)
}
