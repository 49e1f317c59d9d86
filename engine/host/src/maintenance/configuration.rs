//! Locates the configuration: `config.yaml` in the workspace's folder overrides the user's, which overrides the
//! built-in one.
//!
//! It only reads files; `agent::config` interprets them.

use agent::config::{AgentConfig, ConfigError, ConfigLayer, merge};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name of the configuration file, in both folders.
pub const CONFIG_FILE: &str = "config.yaml";
/// Maximum size of a configuration file in bytes.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Returns the user's folder for configuration and secrets, `~/.config/tracebook` by default.
pub fn user_config_folder() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let windows = || std::env::var_os("APPDATA").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(config.or_else(windows).or_else(home)?.join("tracebook"))
}

/// Returns the paths of the configuration files in rising order of priority, whether they exist or not.
pub fn config_files(workspace: &Path) -> Vec<PathBuf> {
    user_config_folder().into_iter().chain([workspace.to_owned()]).map(|folder| folder.join(CONFIG_FILE)).collect()
}

/// Loads the effective configuration of this workspace.
///
/// # Errors
/// Returns an error with line and column if a file can't be read or is invalid.
pub fn load_config(workspace: &Path) -> Result<AgentConfig, ConfigError> {
    let mut layers = Vec::new();
    for path in config_files(workspace) {
        layers.extend(read_config_layer(&path)?);
    }
    merge(&layers)
}

/// Returns the effective configuration if the workspace's file had this content.
///
/// # Errors
/// Returns an error if the user's file can't be read, or the two can't be combined.
pub(crate) fn load_config_with(workspace: &Path, layer: ConfigLayer) -> Result<AgentConfig, ConfigError> {
    let mut layers = Vec::new();
    for path in config_files(workspace).iter().filter(|path| path.parent() != Some(workspace)) {
        layers.extend(read_config_layer(path)?);
    }
    layers.push(layer);
    merge(&layers)
}

/// Returns the default workspace from the user's configuration; `None` if there's none or the file can't be read.
///
/// [`load_config`] reports the error of an unreadable file.
pub(crate) fn configured_workspace() -> Option<PathBuf> {
    let path = user_config_folder()?.join(CONFIG_FILE);
    let layer = read_config_layer(&path).ok()??;
    let named = merge(&[layer]).ok()?.runtime.data_dir;
    let folder = match named.strip_prefix("~/") {
        Some(rest) => PathBuf::from(std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(named),
    };
    folder.is_absolute().then_some(folder)
}

fn read_config_layer(path: &Path) -> Result<Option<ConfigLayer>, ConfigError> {
    let name = path.display().to_string();
    let error = |what: String| ConfigError { file: name.clone(), place: None, what };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(error(format!("it can't be read: {why}"))),
    };
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(|why| error(format!("it can't be read: {why}")))?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(error(format!("it is longer than {MAX_CONFIG_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| error("it isn't valid UTF-8".to_owned()))?;
    ConfigLayer::parse(&name, &text).map(Some)
}
