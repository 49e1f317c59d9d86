//! `cmd_hub`: runs a hub, a peer that always listens and stores what it receives, for the devices of a user or a team.

use super::devices::{parse_access, show_invitation};
use super::{CliError, EXIT_DONE, EXIT_FAILED, parse};
use crate::arguments::HubArguments;
use host::hub::{HubPolicy, HubServer, HubSettings, InvitationGrant, OpenAccess, TlsMode};
use host::peers::devices::{DeviceAccess, DeviceList, now_millis};
use host::peers::pairing::OneTimeCode;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time within which a running hub picks up an invitation.
const INVITATION_TIMEOUT: Duration = Duration::from_secs(2);

fn hub_error(why: impl std::fmt::Display) -> CliError {
    CliError { code: EXIT_FAILED, why: why.to_string() }
}

pub(super) fn cmd_hub(workspace: &Path, args: &HubArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let folder = args.folder.as_ref().map(PathBuf::from).unwrap_or_else(|| workspace.join("hub"));
    match args.what.as_deref().unwrap_or("run") {
        "run" => run_hub(hub_settings(folder, args)?, args, json, out),
        "invite" => request_pairing_code(&folder, args, json, out),
        "share" => set_share(&folder, args, json, out),
        other => Err(CliError::usage(format!("`hub {other}` is not known: run, invite, share"))),
    }
}

fn hub_settings(folder: PathBuf, args: &HubArguments) -> Result<HubSettings, CliError> {
    let mut settings = HubSettings::new(folder);
    if let Some(listen) = args.listen.clone() {
        settings.listen =
            listen.parse().map_err(|_| CliError::usage(format!("--listen wants ADDRESS:PORT, not “{listen}”")))?;
    }
    settings.tls = match (args.certificate.clone(), args.key.clone()) {
        (Some(certificate), Some(key)) => TlsMode::Files { certificate: certificate.into(), key: key.into() },
        (None, None) if settings.listen.ip().is_loopback() && !args.tls => TlsMode::Plain,
        (None, None) => TlsMode::Own,
        _ => return Err(CliError::usage("--certificate and --key come together")),
    };
    settings.open = match args.open_access.clone().as_deref() {
        None => OpenAccess::Closed,
        Some("local") => OpenAccess::Loopback,
        Some("token") => {
            let token = std::env::var("TRACEBOOK_HUB_TOKEN").ok().filter(|token| token.len() >= 16);
            OpenAccess::Token(token.ok_or_else(|| {
                CliError::usage("--open token takes the token from TRACEBOOK_HUB_TOKEN, 16 letters or more")
            })?)
        }
        Some(other) => return Err(CliError::usage(format!("--open wants local or token, not “{other}”"))),
    };
    settings.name = args.name.clone().unwrap_or_else(|| format!("hub on {}", host::sync::devices::machine_name()));
    settings.address = args.address.clone();
    settings.nats = args.store.clone().filter(|store| store != "sqlite");
    if let Some(store) = settings.nats.as_ref().filter(|store| !store.starts_with("nats://")) {
        return Err(CliError::usage(format!("--store wants sqlite or nats://HOST:PORT, not “{store}”")));
    }
    if let Some(seconds) = parse::number_option("lease", args.lease.as_deref())? {
        if !(5..=3_600).contains(&seconds) {
            return Err(CliError::usage(format!("--lease wants 5 to 3600 seconds, not {seconds}")));
        }
        settings.lease = Duration::from_secs(seconds);
    }
    let most = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    settings.quota = parse::number_option("quota", args.quota.as_deref())?
        .map_or(settings.quota, |megabytes| megabytes.saturating_mul(1_000_000));
    settings.rate = parse::number_option("rate", args.rate.as_deref())?
        .map_or(settings.rate, |rate| u32::try_from(rate).unwrap_or(u32::MAX));
    settings.largest_message = parse::number_option("largest", args.largest.as_deref())?
        .map_or(settings.largest_message, |m| most(m).saturating_mul(1_000_000));
    settings.connections =
        parse::number_option("connections", args.connections.as_deref())?.map_or(settings.connections, most);
    Ok(settings)
}

/// Prints a log line without the time, which the log collector adds.
fn print_log_line(line: &str) {
    eprintln!("{}", text::untrusted_text::escape_line(line));
}

fn run_hub(mut settings: HubSettings, args: &HubArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    settings.files = host::rlimits::raise_open_file_limit();
    let folder = settings.folder.clone();
    let key = host::sync::devices::load_or_create_hub_key(&folder).map_err(hub_error)?;
    let (id, name, open) = (key.id(), settings.name.clone(), settings.open.clone());
    host::logging::start_hub(&folder);
    let hub = HubServer::start(settings, key, Arc::new(print_log_line)).map_err(hub_error)?;
    let at = hub.public_address().to_owned();
    match json {
        true => writeln!(out, "{}", json!({"listening": at, "key": id, "name": name}))?,
        false => {
            writeln!(out, "{name} listens at {at} ({}). Ctrl+C ends it.", id.short_id())?;
            if open != OpenAccess::Closed {
                writeln!(out, "Other programs with automerge-repo are let in, too: {at}/")?;
            }
        }
    }
    out.flush()?;
    let none = DeviceList::new(&folder).map_err(hub_error)?.list().map_err(hub_error)?.is_empty();
    // The first paired device may change the list of devices, from wherever it connects.
    if args.pair || none {
        let invited = InvitationGrant {
            offer: OneTimeCode::new(now_millis()).map_err(hub_error)?,
            access: DeviceAccess::Write,
            admin: none,
        };
        show_invitation(&hub.invite(invited), json, out)?;
    }
    hub.wait();
    hub.stop();
    print_log_line("the hub has ended; all that it acknowledged is on disk");
    Ok(EXIT_DONE)
}

/// Requests a pairing code from the hub that runs in this folder.
fn request_pairing_code(folder: &Path, args: &HubArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let none = || CliError::usage(format!("no hub runs over this folder: {}", folder.display()));
    let mut invitation = host::hub::running_hub_invitation(folder).ok_or_else(none)?;
    let right = args.access.as_ref().map_or(Ok(DeviceAccess::Write), |word| parse_access(word))?;
    let offer = OneTimeCode::new(now_millis()).map_err(hub_error)?;
    invitation.code = offer.code();
    let invited = InvitationGrant { offer, access: right, admin: args.admin };
    invitation.rights = Some(invited.rights());
    invited.save_for_hub(folder).map_err(hub_error)?;
    let until = std::time::Instant::now() + INVITATION_TIMEOUT;
    while !InvitationGrant::is_taken(folder) {
        if std::time::Instant::now() > until {
            InvitationGrant::withdraw(folder);
            return Err(none());
        }
        super::sleep(Duration::from_millis(50));
    }
    show_invitation(&invitation, json, out)?;
    Ok(EXIT_DONE)
}

/// Sets what a hub shares of a volume, with all devices or with one.
fn set_share(folder: &Path, args: &HubArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let mut policy = HubPolicy::load(folder).map_err(hub_error)?;
    let Some(volume) = args.volume.as_ref() else {
        if json {
            let value = serde_json::to_value(&policy).map_err(|error| hub_error(error.to_string()))?;
            writeln!(out, "{value}")?;
            return Ok(EXIT_DONE);
        }
        let word = |access: DeviceAccess| format!("{access:?}").to_lowercase();
        writeln!(out, "all volumes  {}", word(policy.default))?;
        for (id, volume) in &policy.volumes {
            writeln!(out, "{id}  {}", word(volume.default))?;
            for (device, right) in &volume.devices {
                writeln!(out, "{id}  {}  {}", word(*right), device.short_id())?;
            }
        }
        return Ok(EXIT_DONE);
    };
    let right = parse_access(args.volume_access.as_deref().unwrap_or(""))?;
    let device = match args.device.as_ref() {
        None => None,
        Some(word) => Some(
            DeviceList::new(folder)
                .map_err(hub_error)?
                .find_by_name_or_key(word)
                .map_err(|why| CliError::usage(why.to_string()))?
                .0,
        ),
    };
    match (volume.as_str(), device) {
        ("all", None) => policy.default = right,
        ("all", Some(_)) => {
            return Err(CliError::usage(
                "what one device may do at most: `tracebook devices access DEVICE RIGHT --hub DIR`",
            ));
        }
        (volume, device) => {
            let id = volume.parse().map_err(|_| {
                CliError::usage(format!(
                    "“{volume}” isn't the id of a volume, which `tracebook volumes --json` shows; or write all"
                ))
            })?;
            let default = policy.default;
            let entry =
                policy.volumes.entry(id).or_insert_with(|| host::hub::VolumePolicy { default, ..Default::default() });
            match device {
                None => entry.default = right,
                Some(device) => drop(entry.devices.insert(device, right)),
            }
        }
    }
    policy.save(folder).map_err(hub_error)?;
    Ok(EXIT_DONE)
}
