//! The environments of the user's Python tools that list packages: made, locked and shared as those of notes are. The
//! lock file is in the folder of plugins, under the tool's name. A call installs nothing.

use crate::kernel::note_environment::{EnvironmentSetup, MissingEnvironment, environments_folder, find_environment};
use agent::tool_job::ToolPackages;
use anyhow::anyhow;
use std::path::{Path, PathBuf};

/// Name of the folder for plugins, in the workspace's folder.
pub(crate) const PLUGINS_FOLDER: &str = "plugins";

/// The Python that runs a tool.
pub(super) struct ToolPython {
    /// Path of the interpreter.
    pub(super) python: PathBuf,
    /// Advice for an import that fails; `{package}` stands for the package's name.
    pub(super) advice: String,
}

/// Why a tool can't run in its environment.
#[derive(Debug, thiserror::Error)]
#[error("{tool} can't run: {why}. The user installs them with `tracebook tools {tool} --install`")]
struct NoToolEnvironment {
    tool: String,
    why: MissingEnvironment,
}

/// Returns the file next to which a tool's lock file is.
fn plugin_file(workspace: &Path, tool: &str) -> PathBuf {
    workspace.join(PLUGINS_FOLDER).join(format!("{tool}.py"))
}

/// Returns the settings that install a tool's packages, and creates the folder of their lock file. `volumes` are the
/// folders that cells and agents can write.
///
/// # Errors
/// Returns an error if the folder can't be created.
pub fn tool_setup(workspace: &Path, needed: ToolPackages, volumes: Vec<PathBuf>) -> anyhow::Result<EnvironmentSetup> {
    let folder = workspace.join(PLUGINS_FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| anyhow!("{} can't be created: {error}", folder.display()))?;
    Ok(EnvironmentSetup {
        note_file: plugin_file(workspace, &needed.tool),
        packages: needed.packages,
        only_locked: false,
        root: environments_folder(),
        shared: volumes.into_iter().chain([workspace.to_owned()]).collect(),
        variables: Vec::new(),
    })
}

/// Returns what is known of a tool's packages, as a sentence without a full stop; the other value is whether they must
/// be installed first.
pub fn describe_tool_packages(workspace: &Path, needed: &ToolPackages) -> (String, bool) {
    match find_environment(&environments_folder(), &plugin_file(workspace, &needed.tool), &needed.packages) {
        Ok(ready) => (format!("Packages, installed: {}", ready.packages.join(", ")), false),
        Err(why) => (format!("Packages: {why}"), true),
    }
}

/// Returns the Python that has the tool's packages.
pub(super) fn find_tool_python(workspace: &Path, needed: &ToolPackages) -> anyhow::Result<ToolPython> {
    let tool = &needed.tool;
    let file = plugin_file(workspace, tool);
    let found = find_environment(&environments_folder(), &file, &needed.packages)
        .map_err(|why| NoToolEnvironment { tool: tool.clone(), why })?;
    let advice = format!("list it in the tool's block `# /// script`, then `tracebook tools {tool} --install`");
    Ok(ToolPython { python: found.python, advice })
}
