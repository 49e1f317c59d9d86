//! `git` in a folder, rather than for a volume by its name: refuses to change a volume that the workspace's
//! configuration makes read-only.

use crate::CliError;
use crate::git_commands::{GitArguments, changes_files, clone_target};
use agent::config::read_only_sentence;
use host::maintenance::configuration;
use std::path::{Path, PathBuf};
use store::disk::read_marker;

/// Refuses a subcommand that changes files or history if its folder is in a read-only volume of the workspace.
///
/// The workspace isn't opened for this, because another process may have it open.
pub(super) fn refuse_in_read_only_volume(workspace: &Path, here: &Path, args: &GitArguments) -> Result<(), CliError> {
    let Some(changed) = changed_folder(here, args)? else { return Ok(()) };
    refuse_read_only_folder(workspace, &changed)
}

/// Refuses to change a folder that is in a read-only volume of the workspace.
pub(super) fn refuse_read_only_folder(workspace: &Path, folder: &Path) -> Result<(), CliError> {
    if !host::workspace_exists(workspace) {
        return Ok(());
    }
    // A configuration that can't be read makes no volume read-only; every command of the workspace reports it.
    let Ok(config) = configuration::load_config(workspace) else { return Ok(()) };
    let names = config.read_only_volumes();
    if names.is_empty() {
        return Ok(());
    }
    let volumes = read_marker(workspace).map_err(CliError::workspace)?.unwrap_or_default();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    // Of volumes inside each other, the innermost holds the files.
    let around = volumes.into_iter().filter(|volume| folder.starts_with(real(&volume.path)));
    match around.max_by_key(|volume| real(&volume.path).components().count()) {
        Some(volume) if names.contains(&volume.name) => Err(CliError::usage(read_only_sentence(&volume.name))),
        Some(_) | None => Ok(()),
    }
}

/// Returns the folder whose files or history a subcommand changes.
fn changed_folder(here: &Path, args: &GitArguments) -> Result<Option<PathBuf>, CliError> {
    match args.verb.as_str() {
        "clone" => {
            let target = clone_target(args, here)?;
            let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
            let real = target.file_name().and_then(|name| Some(parent?.join(name)));
            Ok(Some(real.unwrap_or(target)))
        }
        // Git itself calls it, and is another program.
        "merge-driver" => Ok(None),
        _ => Ok(changes_files(args).then(|| here.to_owned())),
    }
}
