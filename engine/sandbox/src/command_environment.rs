//! The environment of a confined command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the environment variables of a confined command: nothing of the user's except the language.
/// Its home is the private folder, so `~` doesn't lead to the user's files.
pub fn command_environment(private: &Path, readable: &[PathBuf]) -> Vec<(&'static str, OsString)> {
    let known = |folder: &PathBuf| {
        let system = ["/usr", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store", "/run/current-system", "/snap"];
        system.iter().any(|system| folder.starts_with(system)) || readable.iter().any(|open| folder.starts_with(open))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).filter(known).collect();
    for folder in ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let mut seen = vec![
        ("PATH", std::env::join_paths(folders).unwrap_or_else(|_| "/usr/bin:/bin".into())),
        ("HOME", private.into()),
        ("TMPDIR", private.into()),
        ("TERM", "dumb".into()),
    ];
    // Programs of `rustup` are proxies that search for the real ones.
    let rustup = readable.iter().find(|folder| folder.ends_with(".rustup"));
    seen.extend(rustup.map(|folder| ("RUSTUP_HOME", folder.clone().into())));
    seen.extend(["LANG", "LC_ALL", "TZ"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    seen
}
