//! Locates the configuration: `config.yaml` in the workspace's folder, over the user's, over the built-in one. Only
//! reads files; `agent::config` interprets them.

use agent::config::{AgentConfig, ConfigError, ConfigLayer, merge};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file's name, in both folders.
pub const CONFIG_FILE: &str = "config.yaml";
/// A longer file is refused, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The user's own folder for this program's configuration and secrets: `~/.config/tracebook`.
pub fn user_config_folder() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let windows = || std::env::var_os("APPDATA").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(config.or_else(windows).or_else(home)?.join("tracebook"))
}

/// The files that say something, the strongest last, whether they exist or not.
pub fn config_files(workspace: &Path) -> Vec<PathBuf> {
    user_config_folder().into_iter().chain([workspace.to_owned()]).map(|folder| folder.join(CONFIG_FILE)).collect()
}

/// The configuration that holds for this workspace.
///
/// # Errors
/// A file cannot be read, or says what it may not, with line and column.
pub fn load_config(workspace: &Path) -> Result<AgentConfig, ConfigError> {
    let mut layers = Vec::new();
    for path in config_files(workspace) {
        layers.extend(read_config_layer(&path)?);
    }
    merge(&layers)
}

/// The configuration that would hold if the workspace's file said this.
///
/// # Errors
/// The user's own file can't be read, or both don't fit together.
pub(crate) fn load_config_with(workspace: &Path, layer: ConfigLayer) -> Result<AgentConfig, ConfigError> {
    let mut layers = Vec::new();
    for path in config_files(workspace).iter().filter(|path| path.parent() != Some(workspace)) {
        layers.extend(read_config_layer(path)?);
    }
    layers.push(layer);
    merge(&layers)
}

/// The workspace that the user's own file names for where none is named. A file that cannot be read names none; the
/// error is for [`load_config`] to tell.
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
