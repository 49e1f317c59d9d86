//! Finds the browser, and the user that it runs as.

use crate::BrowserError;
use std::path::{Path, PathBuf};

/// Names of browsers on the `PATH`, in the order in which they're tried.
pub(crate) const BROWSER_PROGRAMS: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge"];
/// How to get a browser.
pub(crate) const INSTALL_HINT: &str = "install one (Debian and Ubuntu: `apt install chromium`; macOS: Google Chrome), \
                                       or name it as browser.program in config.yaml";
/// Places outside the `PATH`.
const OTHER_PLACES: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
/// The user without rights, who owns nothing. Linux and Debian give this number to `nobody`.
const NOBODY_ID: u32 = 65_534;

/// Finds the browser's program: the configured one, or else the first that's installed.
///
/// # Errors
/// Returns an error if there is none.
pub(crate) fn find_browser(configured: Option<&Path>) -> Result<PathBuf, BrowserError> {
    if let Some(program) = configured {
        // A bare name is looked for like the others.
        let found = match program.components().count() {
            1 => on_path(&program.to_string_lossy()),
            _ => Some(program.to_owned()).filter(|program| program.is_file()),
        };
        return found.ok_or_else(|| BrowserError::NoProgram(program.to_owned()));
    }
    let other = OTHER_PLACES.iter().map(PathBuf::from).find(|program| program.is_file());
    BROWSER_PROGRAMS.iter().find_map(|name| on_path(name)).or(other).ok_or(BrowserError::NotInstalled)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Describes for `tracebook doctor` whether agents can open pages: the program, whether it's there, and what it means.
pub fn describe_browser(configured: Option<&str>) -> (String, bool, String) {
    match find_browser(configured.map(Path::new)) {
        Ok(program) => {
            let user = match sandbox_user() {
                SandboxUser::Same => "",
                SandboxUser::Nobody { .. } => "; because you are root, it runs as the user nobody",
            };
            let note = format!("agents open web pages with it, in its own sandbox{user}");
            (program.display().to_string(), true, note)
        }
        Err(why) => ("none".to_owned(), false, format!("agents can't open web pages: {why}")),
    }
}

/// The user that a browser runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxUser {
    /// The same as this process.
    Same,
    /// A user without rights, because this process is root's and Chromium's own sandbox doesn't work for root.
    Nobody {
        /// Number of the user and of its group.
        id: u32,
    },
}

/// Returns the user that a browser runs as.
pub(crate) fn sandbox_user() -> SandboxUser {
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() {
        return SandboxUser::Nobody { id: NOBODY_ID };
    }
    SandboxUser::Same
}
