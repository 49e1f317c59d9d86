//! `cmd_volumes`: lists volumes, adds and sets up one, and trusts one, so that agents follow its instruction files.

use super::{CliError, CommandContext, EXIT_DONE, parse, resolve, volume_settings, volumes};
use crate::arguments::VolumesArguments;
use engine::Command;
use serde_json::json;
use text::untrusted_text::escape_line;

pub(super) fn cmd_volumes(scene: &mut CommandContext<'_>, args: &VolumesArguments) -> Result<u8, CliError> {
    let settings = [&args.kind, &args.remote, &args.branch, &args.readonly, &args.folder];
    if !matches!(args.verb.as_deref(), Some("add" | "set")) && settings.iter().any(|option| option.is_some()) {
        return Err(CliError::usage("--kind, --remote, --branch, --readonly and --folder go with volumes add or set"));
    }
    let is_trusted = match args.verb.as_deref() {
        None | Some("list") => {
            let only = match &args.name {
                Some(name) => resolve::resolve_volume(scene, Some(name))?,
                None => None,
            };
            resolve::wait_for_volumes(scene, true)?;
            return volumes::list_volumes(scene, only, only.is_none());
        }
        Some("add") => return volume_settings::add(scene, args),
        Some("set") => return volume_settings::set(scene, args),
        Some("trust") => true,
        Some("distrust") => false,
        Some(other) => {
            return Err(CliError::usage(format!("volumes knows list, add, set, trust and distrust, not “{other}”")));
        }
    };
    let name = parse::needed(args.name.as_deref(), "the volume")?;
    let volume = resolve::resolve_volume(scene, Some(name))?;
    let volume = volume.ok_or_else(|| CliError::usage("there is no volume yet; `tracebook open` adds one"))?;
    let mut settings = scene.handle.read(|session| session.settings().clone())?;
    settings.trust_volume(volume, is_trusted);
    scene.handle.run_command(Command::Set { settings: Box::new(settings) })?;
    export::open_note::wait_until_saved(scene.handle)?;
    if scene.json {
        writeln!(scene.out, "{}", json!({"volume": name, "id": volume, "trusted": is_trusted}))?;
        return Ok(EXIT_DONE);
    }
    let name = escape_line(name);
    match is_trusted {
        true => writeln!(
            scene.out,
            "Agents follow AGENTS.md, CLAUDE.md and SKILL.md of {name} now, also after these files change. Messages in \
             other volumes can call its agents."
        )?,
        false => writeln!(
            scene.out,
            "Agents don't follow instruction files of {name}, and messages in other volumes can't call its agents."
        )?,
    }
    Ok(EXIT_DONE)
}
