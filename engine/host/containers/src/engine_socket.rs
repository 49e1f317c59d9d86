//! Finds the engine's socket, and says in `tracebook doctor` what answers there.

use crate::ContainerError;
use std::path::{Path, PathBuf};

/// How to get an engine.
pub(crate) const INSTALL_HINT: &str = "install one (Debian and Ubuntu: `apt install podman`), start its socket \
                                       (`systemctl --user enable --now podman.socket`, as root without `--user`), or \
                                       name the socket as containers.socket in config.yaml";
/// Sockets that engines of the system listen at.
const SYSTEM_SOCKETS: [&str; 3] = ["/run/podman/podman.sock", "/var/run/docker.sock", "/run/docker.sock"];
/// Sockets that engines of the user listen at, below `XDG_RUNTIME_DIR`.
const USER_SOCKETS: [&str; 2] = ["podman/podman.sock", "docker.sock"];
/// Environment variables that name an engine, in the order in which they count.
const ENGINE_VARS: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Finds the engine's socket: the configured one, that of the environment, or else the first that is there.
///
/// # Errors
/// Returns an error if there is none, or it's named and not a socket of this machine.
pub(crate) fn find_socket(configured: Option<&str>) -> Result<PathBuf, ContainerError> {
    find_socket_in(configured, &|name| std::env::var(name).ok())
}

/// The same with these environment variables.
pub(crate) fn find_socket_in(
    configured: Option<&str>,
    env_var: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, ContainerError> {
    if let Some(named) = configured {
        let path = local_path("containers.socket", named)?;
        return if is_socket(&path) { Ok(path) } else { Err(ContainerError::NoSocket(path)) };
    }
    let set = |name: &str| env_var(name).filter(|value| !value.is_empty());
    for setting in ENGINE_VARS {
        if let Some(named) = set(setting) {
            let path = local_path(setting, &named)?;
            if is_socket(&path) {
                return Ok(path);
            }
        }
    }
    let own = set("XDG_RUNTIME_DIR").map(PathBuf::from);
    let users = own.iter().flat_map(|folder| USER_SOCKETS.iter().map(|name| folder.join(name)));
    users
        .chain(SYSTEM_SOCKETS.iter().map(PathBuf::from))
        .find(|path| is_socket(path))
        .ok_or(ContainerError::NotInstalled)
}

/// Returns the path of an address such as `unix:///run/podman/podman.sock`, or of a plain path.
fn local_path(setting: &'static str, address: &str) -> Result<PathBuf, ContainerError> {
    let path = address.strip_prefix("unix://").unwrap_or(address);
    if path.starts_with('/') {
        return Ok(PathBuf::from(path));
    }
    Err(ContainerError::Remote { setting, address: agent::prompt_quote::single_line(address, 200) })
}

fn is_socket(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
    }
    #[cfg(not(unix))]
    {
        let _ = path; // there are none
        false
    }
}

/// Describes for `tracebook doctor` whether agents can use containers: the engine, whether it's there, and the meaning.
pub fn describe_engine(configured: Option<&str>) -> (String, bool, String) {
    #[cfg(unix)]
    let found = find_socket(configured).and_then(|socket| {
        let limit = crate::engine_client::EngineLimit { is_stopped: &|| false };
        let client = crate::engine_client::EngineClient::connect(&socket)?;
        let name = client.run(client.engine_name(limit))?;
        Ok((name, socket))
    });
    #[cfg(not(unix))]
    let found: Result<(String, PathBuf), ContainerError> =
        find_socket(configured).and(Err(ContainerError::Unsupported));
    match found {
        Ok((name, socket)) => {
            (name, true, format!("agents run programs in containers with it, at {}", socket.display()))
        }
        Err(why) => ("none".to_owned(), false, format!("agents can't use containers: {why}")),
    }
}
