//! `tools NAME --install`: the packages that a Python tool of the user's own lists, and their environment.

use super::super::kernel_environments::install_environment;
use super::super::{CliError, CommandContext, EXIT_DONE};
use agent::tool_job::ToolPackages;
use host::note_environment::lock_path;
use host::tools::tool_environment::{describe_tool_packages, tool_setup};
use serde_json::json;
use std::path::PathBuf;
use store::{RegisteredTool, UserTool};
use text::untrusted_text::escape_line;

/// Returns a line about a tool's packages; `None` if it needs none.
pub(super) fn describe(scene: &CommandContext<'_>, tool: &UserTool) -> Option<String> {
    let needed = match ToolPackages::of(tool) {
        Ok(needed) => needed?,
        Err(why) => return Some(format!("Packages: {why}")),
    };
    let (said, is_missing) = describe_tool_packages(scene.handle.workspace_folder(), &needed);
    let advice = format!("; `tracebook tools {} --install` installs them", tool.name);
    Some(if is_missing { said + &advice } else { said })
}

/// Installs the packages of the version that agents use.
pub(super) fn install_packages(
    scene: &mut CommandContext<'_>,
    tool: &RegisteredTool,
    chosen: &UserTool,
) -> Result<u8, CliError> {
    let name = &chosen.name;
    // A package can run code while it's installed, so the list is read first.
    if tool.approved != Some(chosen.version) {
        let version = chosen.version;
        return Err(CliError::usage(format!(
            "version {version} of {name} isn't approved: read it with `tracebook tools {name}@{version}`, then add \
             --approve"
        )));
    }
    let needed = ToolPackages::of(chosen).map_err(|why| CliError::usage(why.to_string()))?;
    let Some(needed) = needed else {
        return Err(CliError::usage(format!("{name} lists no packages; it runs in the built-in Python")));
    };
    let workspace = scene.handle.workspace_folder().to_owned();
    let roots: Vec<PathBuf> =
        scene.handle.read(|session| session.volumes().filter_map(|volume| volume.root.clone()).collect())?;
    let setup = tool_setup(&workspace, needed, roots).map_err(|why| CliError::workspace(why.to_string()))?;
    let lock = lock_path(&setup.note_file);
    let ready = install_environment(scene, setup)?;
    if scene.json {
        let said = json!({
            "tool": name, "python": ready.python, "version": ready.version, "environment": ready.folder, "lock": lock,
            "packages": ready.packages,
        });
        writeln!(scene.out, "{said}")?;
        return Ok(EXIT_DONE);
    }
    let said = format!("Python {} with {} is ready for {name}.", ready.version, ready.packages.join(", "));
    writeln!(scene.out, "{}", escape_line(&said))?;
    Ok(EXIT_DONE)
}
