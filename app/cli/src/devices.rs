//! `cmd_devices` lists, adds and revokes paired devices; `cmd_pair` pairs another device by a code. Neither needs an
//! open workspace: the key and the list belong to the machine.

use super::{CliError, EXIT_DONE, EXIT_FAILED};
use crate::arguments::{DevicesArguments, PairArguments};
use host::peers::devices::{DeviceAccess, DeviceList, PairedDevice};
use host::peers::lan::LanVisibility;
use host::peers::pairing::Invitation;
use host::peers::pairing_flow::{self, PairingTarget};
use host::peers::{DeviceId, qr};
use host::sync::devices::{load_or_create_device_key, machine_name, open_device_list, own_device_name};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use text::untrusted_text;

fn device_error(why: impl std::fmt::Display) -> CliError {
    CliError { code: EXIT_FAILED, why: why.to_string() }
}

/// Returns the list to use: this machine's, or that of a hub's folder.
fn device_list(args: &DevicesArguments) -> Result<(DeviceList, bool), CliError> {
    match args.hub.as_ref() {
        Some(hub) if Path::new(hub).is_dir() => Ok((DeviceList::new(Path::new(hub)).map_err(device_error)?, true)),
        Some(hub) => Err(CliError::usage(format!("there is no hub's folder “{hub}”"))),
        None => Ok((open_device_list().map_err(device_error)?, false)),
    }
}

pub(super) fn cmd_devices(args: &DevicesArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let (devices, of_hub) = device_list(args)?;
    let word = || {
        let word = args.device.as_deref();
        word.ok_or_else(|| CliError::usage("which device? Give its name, or the beginning of its key"))
    };
    match args.what.as_deref().unwrap_or("list") {
        "list" => show_devices(&devices, of_hub, json, out),
        "revoke" => revoke_device(&devices, of_hub, word()?, json, out),
        "name" => {
            let (word, new) = (word()?, args.name.as_ref());
            let new = new.filter(|new| !new.trim().is_empty());
            let new = new.ok_or_else(|| CliError::usage("which name? `tracebook devices name DEVICE NAME`"))?;
            if word == "this" && !of_hub {
                let own = load_or_create_device_key().map_err(device_error)?.0.id();
                if devices.update_device(own, |device| device.name.clone_from(new)).is_err() {
                    devices.pair(own, new_device(new)).map_err(device_error)?;
                }
            } else {
                let (id, _) = devices.find_by_name_or_key(word).map_err(CliError::usage)?;
                devices.update_device(id, |device| device.name.clone_from(new)).map_err(device_error)?;
            }
            Ok(EXIT_DONE)
        }
        "access" => {
            let (word, new) = (word()?, args.name.as_deref().unwrap_or(""));
            let access = parse_access(new)?;
            let (id, _) = devices.find_by_name_or_key(word).map_err(CliError::usage)?;
            devices.update_device(id, |device| device.access = access).map_err(device_error)?;
            Ok(EXIT_DONE)
        }
        other => Err(CliError::usage(format!("`devices {other}` is not known: list, revoke, name, access"))),
    }
}

/// Parses `none`, `read` or `write`.
pub(super) fn parse_access(word: &str) -> Result<DeviceAccess, CliError> {
    match word {
        "none" => Ok(DeviceAccess::None),
        "read" => Ok(DeviceAccess::Read),
        "write" => Ok(DeviceAccess::Write),
        other => Err(CliError::usage(format!("“{other}” isn't an access right; use none, read or write"))),
    }
}

fn new_device(name: &str) -> PairedDevice {
    PairedDevice {
        name: name.to_owned(),
        added: 0,
        revoked: None,
        access: DeviceAccess::Write,
        admin: true,
        address: None,
        certificate: None,
    }
}

/// Describes a device's state.
fn device_state_label(device: &PairedDevice, own: bool) -> String {
    let rights = match device.access {
        DeviceAccess::None => "sees nothing",
        DeviceAccess::Read => "reads",
        DeviceAccess::Write => "reads and writes",
    };
    match (&device.address, own) {
        _ if !device.is_authorized() => "revoked".to_owned(),
        (_, true) => "this device".to_owned(),
        (Some(address), _) => format!("hub at {address}"),
        (None, _) => rights.to_owned(),
    }
}

fn show_devices(devices: &DeviceList, of_hub: bool, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let all = devices.list().map_err(device_error)?;
    let own = if of_hub { None } else { Some(load_or_create_device_key().map_err(device_error)?.0.id()) };
    if json {
        let one = |(id, device): (&DeviceId, &PairedDevice)| {
            json!({"key": id, "name": device.name, "added": device.added, "revoked": device.revoked,
                "access": device.access, "admin": device.admin, "address": device.address, "this": Some(*id) == own})
        };
        writeln!(out, "{}", json!({"this": own, "devices": all.iter().map(one).collect::<Vec<_>>()}))?;
        return Ok(EXIT_DONE);
    }
    if let Some(own) = own.filter(|own| !all.contains_key(own)) {
        writeln!(out, "{}  {}  this device", own.short_id(), machine_name())?;
    }
    let wide = all.values().map(|device| device.name.chars().count()).max().unwrap_or(0);
    for (id, device) in &all {
        let name = untrusted_text::escape_line(&device.name);
        writeln!(out, "{}  {name:wide$}  {}", id.short_id(), device_state_label(device, Some(*id) == own))?;
    }
    if !of_hub && all.len() < 2 {
        writeln!(out, "No other device is paired; `tracebook pair` shows a code for one.")?;
    }
    Ok(EXIT_DONE)
}

fn revoke_device(
    devices: &DeviceList,
    of_hub: bool,
    word: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let (id, device) = devices.find_by_name_or_key(word).map_err(CliError::usage)?;
    let told = match of_hub {
        true => devices.revoke(id).map(|()| Vec::new()).map_err(device_error)?,
        false => host::sync::devices::revoke_device(id).map_err(CliError::usage)?,
    };
    if json {
        let hubs: Vec<_> = told.iter().map(|(name, why)| json!({"hub": name, "why": why})).collect();
        writeln!(out, "{}", json!({"revoked": id, "hubs": hubs}))?;
        return Ok(EXIT_DONE);
    }
    let name = untrusted_text::escape_line(&device.name);
    writeln!(out, "Revoked {name}. It's disconnected within a second and can't connect again.")?;
    writeln!(out, "It keeps what it has already received; that can't be undone.")?;
    for (hub, why) in told {
        match why {
            None => writeln!(out, "{hub} was told; it takes this from devices that may change its list.")?,
            Some(why) => writeln!(out, "{hub} was not told: {why}. Revoke it there, too.")?,
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_pair(args: &PairArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let devices = open_device_list().map_err(device_error)?;
    let own = load_or_create_device_key().map_err(device_error)?.0;
    let called = match args.name.as_ref() {
        Some(name) => name.clone(),
        None => own_device_name().map_err(device_error)?,
    };
    let code = args.code.as_ref();
    let whom = args.place.as_ref();
    let met = match (whom, code) {
        (None, None) => {
            let reach = if args.local { LanVisibility::Loopback } else { LanVisibility::Local };
            let show = |invitation: &Invitation, _: &host::peers::pairing::OneTimeCode| {
                // Shown immediately, since the other device waits for it.
                let _ = show_invitation(invitation, json, out);
            };
            let log = |line: &str| eprintln!("{}", untrusted_text::escape_line(line));
            pairing_flow::offer_code(&own, &called, &devices, reach, show, || false, log).map_err(device_error)?
        }
        (Some(text), code) => {
            let invited: Option<Invitation> = text.parse().ok();
            let rights = invited.as_ref().and_then(|invited| invited.rights);
            if let Some(rights) = rights.filter(|_| !json) {
                writeln!(out, "By this invitation, this device {} there.", rights.describe())?;
                out.flush()?;
            }
            let (at, code, expected) = match (&invited, code) {
                (Some(invited), _) => (invited.at.clone(), invited.code.clone(), Some(invited.key)),
                (None, Some(code)) => (text.clone(), code.clone(), None),
                (None, None) => {
                    return Err(CliError::usage("give the code that is shown there: --code 1234-5678"));
                }
            };
            let whom: PairingTarget = at.parse().map_err(CliError::usage)?;
            pairing_flow::join_by_code(&whom, (expected, rights), &code, &own, &called, &devices)
                .map_err(device_error)?
        }
        (None, Some(code)) => {
            pairing_flow::join_by_code(&PairingTarget::Lan(Vec::new()), (None, None), code, &own, &called, &devices)
                .map_err(device_error)?
        }
    };
    let rights = met.rights();
    if json {
        let value = json!({"paired": met.device, "name": met.name, "address": met.address, "rights": rights});
        writeln!(out, "{value}")?;
        return Ok(EXIT_DONE);
    }
    let may = rights.map_or_else(String::new, |rights| format!(" This device {} there.", rights.describe()));
    writeln!(out, "Paired with {} ({}).{may}", untrusted_text::escape_line(&met.name), met.device.short_id())?;
    Ok(EXIT_DONE)
}

/// Shows an invitation as text and as a QR code.
pub(super) fn show_invitation(invitation: &Invitation, json: bool, out: &mut dyn Write) -> std::io::Result<()> {
    if json {
        let text = invitation.to_string();
        let rights = invitation.rights;
        let value = json!({"code": invitation.code, "at": invitation.at, "invitation": text, "rights": rights});
        writeln!(out, "{value}")?;
        return out.flush();
    }
    if let Ok(square) = qr::QrMatrix::new(&invitation.to_string()) {
        for line in square.terminal_lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "The code is {}. It can be used once, within ten minutes.", invitation.code)?;
    if let Some(rights) = invitation.rights {
        writeln!(out, "The device that uses it {}.", rights.describe())?;
    }
    match invitation.at.starts_with("lan") {
        true => writeln!(out, "On the other device: tracebook pair --code {}", invitation.code)?,
        false => writeln!(out, "On the device: tracebook pair {} --code {}", invitation.at, invitation.code)?,
    }
    writeln!(out, "Or: tracebook pair '{invitation}'")?;
    out.flush()
}
