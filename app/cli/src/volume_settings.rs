//! `volumes add` and `volumes set`: kinds of volumes, their remotes and branches in `config.yaml`, and how a volume is
//! got that isn't here yet.

use super::{CliError, CommandContext, EXIT_DONE, agents, git_read_only, parse, resolve, volumes};
use crate::arguments::VolumesArguments;
use agent::config::{VolumeConfig, VolumeKind, VolumeSettings, branch_refusal, remote_refusal};
use git_program::{GitCaller, GitOperation, RepositoryAddress};
use host::fs::copy;
use host::maintenance::config_edit::{ConfigChange, change_config};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use text::untrusted_text::escape_line;

/// What an option takes to remove a setting.
const NONE_WORD: &str = "none";

/// Says why a text isn't taken; `None` if it is.
type Refusal = fn(&str) -> Option<&'static str>;

/// Adds to the row of a listed volume what the configuration says of it.
pub(super) fn describe(settings: &VolumeSettings, row: &mut Value) {
    let Some(known) = row["name"].as_str().and_then(|name| settings.get(name)) else { return };
    add_settings(known, row);
    let folder = row["folder"].as_str().map(PathBuf::from);
    if let (Some(remote), Some(folder)) = (&known.remote, folder)
        && copy::is_folder(&folder)
        && !vcs::is_in_repository(&folder)
        && github::find_folder(&folder).is_none()
    {
        let remote = shown_remote(remote);
        let target = match copy::is_empty(&folder) {
            true => vcs::shell_word(&folder.display().to_string()),
            false => "NEW_FOLDER".to_owned(),
        };
        row["hint"] =
            format!("its folder has no repository yet: `tracebook git clone {} {target}`", vcs::shell_word(&remote))
                .into();
    }
}

/// Returns rows for volumes that the configuration names with a remote, and that aren't here.
pub(super) fn missing_rows(settings: &VolumeSettings, listed: &[Value]) -> Vec<Value> {
    let is_listed = |name: &str| listed.iter().any(|row| row["name"] == name);
    let missing = settings.0.iter().filter(|(name, volume)| volume.remote.is_some() && !is_listed(name));
    missing
        .map(|(name, volume)| {
            let hint = format!("not here yet: `tracebook volumes add {}`", vcs::shell_word(name));
            let mut row = json!({"id": null, "name": name, "folder": null, "readonly": volume.readonly, "hint": hint});
            add_settings(volume, &mut row);
            row
        })
        .collect()
}

fn add_settings(known: &VolumeConfig, row: &mut Value) {
    if let Some(kind) = known.kind {
        row["kind"] = kind.as_str().into();
    }
    if let Some(remote) = &known.remote {
        row["remote"] = shown_remote(remote).into();
    }
    if let Some(branch) = &known.branch {
        row["branch"] = branch.as_str().into();
    }
}

/// Returns what a line of the list says of a volume's settings, and the line that follows it, if any.
pub(super) fn settings_text(row: &Value) -> (String, Option<String>) {
    let text = |key: &str| row[key].as_str().map(escape_line);
    let kind = text("kind").map(|kind| format!("  {kind}")).unwrap_or_default();
    let remote = text("remote").map(|remote| format!("  {remote}")).unwrap_or_default();
    let branch = text("branch").map(|branch| format!("  branch {branch}")).unwrap_or_default();
    (kind + &remote + &branch, text("hint").map(|hint| format!("          {hint}")))
}

/// Returns an address without what only its owner should see.
fn shown_remote(remote: &str) -> String {
    RepositoryAddress::read(remote, Path::new("/")).map_or_else(|_| remote.to_owned(), |remote| remote.display_text())
}

/// Returns the changes of `config.yaml` that the options ask for.
fn config_changes(name: &str, args: &VolumesArguments) -> Result<Vec<ConfigChange>, CliError> {
    let key = |key: &str| vec!["volumes".to_owned(), name.to_owned(), key.to_owned()];
    let mut changes: Vec<ConfigChange> = Vec::new();
    if let Some(word) = args.readonly.as_deref() {
        let is_read_only = match word {
            "yes" | "true" => true,
            "no" | "false" => false,
            other => return Err(CliError::usage(format!("--readonly is yes or no, not “{other}”"))),
        };
        changes.push((key("readonly"), Some(is_read_only.into())));
    }
    if let Some(word) = args.kind.as_deref() {
        let kind = VolumeKind::from_name(word);
        if kind.is_none() && word != NONE_WORD {
            return Err(CliError::usage(format!("--kind is team, user or none, not “{word}”")));
        }
        changes.push((key("kind"), kind.map(|kind| kind.as_str().into())));
    }
    let texts: [(&str, &Option<String>, Refusal); 2] =
        [("remote", &args.remote, remote_refusal), ("branch", &args.branch, branch_refusal)];
    for (option, given, refusal) in texts {
        let Some(text) = given.as_deref() else { continue };
        if let Some(why) = refusal(text) {
            return Err(CliError::usage(format!("--{option}: {why}")));
        }
        changes.push((key(option), Some(text).filter(|text| *text != NONE_WORD && !text.is_empty()).map(Value::from)));
    }
    Ok(changes)
}

/// Changes `config.yaml`, and makes the session follow it.
fn write_settings(scene: &CommandContext<'_>, changes: &[ConfigChange]) -> Result<VolumeSettings, CliError> {
    let known = resolve::volume_settings(scene);
    // What isn't there can't be removed.
    let is_needed = |(names, value): &&ConfigChange| {
        let [_, name, key] = names.as_slice() else { return true };
        let known = known.get(name);
        value.is_some()
            || known.is_some_and(|known| match key.as_str() {
                "kind" => known.kind.is_some(),
                "remote" => known.remote.is_some(),
                _ => known.branch.is_some(),
            })
    };
    let changes: Vec<ConfigChange> = changes.iter().filter(is_needed).cloned().collect();
    let config = change_config(scene.handle.workspace_folder(), &changes).map_err(CliError::usage)?;
    agents::wait_for_setup(scene)?;
    Ok(config.volumes)
}

/// Changes the settings of a volume.
pub(super) fn set(scene: &mut CommandContext<'_>, args: &VolumesArguments) -> Result<u8, CliError> {
    let name = parse::needed(args.name.as_deref(), "the volume")?.to_owned();
    if args.folder.is_some() {
        return Err(CliError::usage("--folder goes with volumes add"));
    }
    let volume = resolve::resolve_volume(scene, Some(&name))?;
    let volume = volume.ok_or_else(|| CliError::usage("there is no volume yet; `tracebook open` adds one"))?;
    let name = scene.handle.read(move |session| session.volume(volume).map(|volume| volume.name.clone()))?;
    let name = name.ok_or_else(|| CliError::workspace("the volume was closed meanwhile"))?;
    let changes = config_changes(&name, args)?;
    if changes.is_empty() {
        return Err(CliError::usage("say what to set: --kind, --remote, --branch or --readonly"));
    }
    let settings = write_settings(scene, &changes)?;
    print_settings(scene, &name, &settings)
}

fn print_settings(scene: &mut CommandContext<'_>, name: &str, settings: &VolumeSettings) -> Result<u8, CliError> {
    let known = settings.get(name).cloned().unwrap_or_default();
    let mut row = json!({"name": name, "readonly": known.readonly});
    add_settings(&known, &mut row);
    if scene.json {
        writeln!(scene.out, "{row}")?;
        return Ok(EXIT_DONE);
    }
    let (said, _) = settings_text(&row);
    let read_only = if known.readonly { "  read-only" } else { "" };
    writeln!(scene.out, "{}{said}{read_only}", escape_line(name))?;
    Ok(EXIT_DONE)
}

/// Clones a repository and opens it as a volume of this name.
pub(super) fn add(scene: &mut CommandContext<'_>, args: &VolumesArguments) -> Result<u8, CliError> {
    let name = parse::needed(args.name.as_deref(), "the name of the new volume")?.to_owned();
    let mut changes = config_changes(&name, args)?;
    resolve::wait_for_volumes(scene, false)?;
    let wanted = name.to_lowercase();
    let is_taken = scene.handle.read(move |session| session.volumes().any(|one| one.name.to_lowercase() == wanted))?;
    if is_taken || name.eq_ignore_ascii_case(agent::system_volume::SYSTEM_VOLUME_NAME) {
        return Err(CliError::usage(format!("there is a volume {name} already; `tracebook volumes set` changes it")));
    }
    let known = resolve::volume_settings(scene).get(&name).cloned().unwrap_or_default();
    let given = |option: &Option<String>, known: Option<String>| match option.as_deref() {
        Some(NONE_WORD | "") => None,
        Some(text) => Some(text.to_owned()),
        None => known,
    };
    let remote = given(&args.remote, known.remote);
    let remote = parse::needed(remote.as_deref(), "the address of the repository, --remote URL,")?;
    let from = RepositoryAddress::read(remote, scene.folder).map_err(CliError::usage)?;
    // A folder on this device is named so that it's found from anywhere.
    for (names, value) in &mut changes {
        if names.last().is_some_and(|key| key == "remote") && value.is_some() {
            *value = Some(from.as_str().into());
        }
    }
    let folder = match args.folder.as_deref() {
        Some(folder) => copy::absolute_path(scene.folder, folder),
        None if is_folder_name(&name) => scene.handle.workspace_folder().join(&name),
        None => {
            let why = format!("a folder can't be called “{name}”; name the new folder, too: --folder PATH");
            return Err(CliError::usage(why));
        }
    };
    if copy::exists(&folder) {
        return Err(CliError::usage(format!(
            "there is something already: {}; name another folder with --folder",
            folder.display()
        )));
    }
    git_read_only::refuse_read_only_folder(scene.handle.workspace_folder(), folder.parent().unwrap_or(&folder))?;
    clone(scene, from, &folder, given(&args.branch, known.branch))?;
    let opened = volumes::open_volume(scene, folder.clone(), Some(name.clone()))?;
    if let Some(trouble) = opened.trouble {
        return Err(CliError::usage(trouble));
    }
    export::open_note::wait_until_saved(scene.handle)?;
    let settings = write_settings(scene, &changes)?;
    print_settings(scene, &name, &settings)
}

/// Returns whether a volume's name is also a plain name of a folder.
fn is_folder_name(name: &str) -> bool {
    !name.starts_with(['.', '-']) && !name.contains(['/', '\\', ':']) && !name.chars().any(char::is_control)
}

/// Clones a branch, or the remote's own, into a new folder.
fn clone(
    scene: &mut CommandContext<'_>,
    from: RepositoryAddress,
    folder: &Path,
    branch: Option<String>,
) -> Result<(), CliError> {
    let shows_progress = scene.own && !scene.json && std::io::stderr().is_terminal();
    let errors = &mut *scene.errors;
    let mut progress = |line: &str| {
        if shows_progress {
            // Progress that can't be shown isn't worth stopping for.
            let _ = write!(errors, "\r{:<78.78}", escape_line(line));
        }
    };
    let operation = GitOperation::Clone { from, folder: folder.to_owned(), depth: None, branch };
    git_program::run(scene.folder, &operation, GitCaller::User, &mut progress, &|| false)?;
    if shows_progress {
        write!(scene.errors, "\r{:<78}\r", "")?;
    }
    Ok(())
}
