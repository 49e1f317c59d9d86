//! Checks the configured address for a newer version. It downloads only that small file, and installs nothing.

use crate::tools::fetch_text_file;
use agent::config::UpdateConfig;
use semver::Version;
use serde::{Deserialize, Serialize};

/// Maximum size of the downloaded file in bytes.
const MAX_VERSION_FILE_BYTES: usize = 64 << 10;
/// The version of this program.
const CURRENT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Result of a check for updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpdateReport {
    /// The version of this program.
    pub current: String,
    /// The newest released version.
    pub latest: String,
    /// Date of that release, if the file has it.
    pub date: Option<String>,
    /// Whether the newest version is newer than this one.
    pub newer: bool,
}

/// Why a check for updates failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateCheckError {
    /// No address is configured, which is the default.
    #[error("there is no address to ask: set `update.url` in config.yaml to the address of a release's latest.json")]
    NotConfigured,
    /// The file couldn't be fetched.
    #[error("can't look for a newer version: {0}")]
    Unreachable(String),
    /// The file isn't what a release publishes.
    #[error("can't look for a newer version: the file doesn't name one ({0})")]
    Unreadable(String),
}

/// The version file that a release publishes. Later releases may add fields.
#[derive(Deserialize)]
struct VersionFile {
    version: String,
    date: Option<String>,
}

/// Fetches the newest version and compares it with this program's.
///
/// # Errors
/// Returns an error if no address is configured, or the file can't be fetched or parsed.
pub fn check_for_update(config: &UpdateConfig) -> Result<UpdateReport, UpdateCheckError> {
    if config.url.is_empty() {
        return Err(UpdateCheckError::NotConfigured);
    }
    let text = fetch_text_file(&config.url, MAX_VERSION_FILE_BYTES)
        .map_err(|why| UpdateCheckError::Unreachable(why.to_string()))?;
    compare_versions(CURRENT_VERSION, &text)
}

/// Compares the current version with the one in a release's version file.
fn compare_versions(current: &str, file: &str) -> Result<UpdateReport, UpdateCheckError> {
    let file: VersionFile =
        serde_json::from_str(file).map_err(|error| UpdateCheckError::Unreadable(error.to_string()))?;
    let read = |text: &str| Version::parse(text).map_err(|error| UpdateCheckError::Unreadable(error.to_string()));
    let (current, latest) = (read(current)?, read(&file.version)?);
    let newer = latest.cmp_precedence(&current).is_gt();
    Ok(UpdateReport { current: current.to_string(), latest: latest.to_string(), date: file.date, newer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let newer = |latest: &str| {
            let file = format!("{{\"version\": \"{latest}\", \"later\": 1}}");
            compare_versions("0.9.0", &file).map(|report| report.newer)
        };
        assert_eq!(
            ["0.10.0", "0.9.0", "0.8.9", "0.9.0-rc.1", "0.9.0+build"].map(newer),
            [true, false, false, false, false].map(Ok)
        );
        assert!(matches!(newer("next"), Err(UpdateCheckError::Unreadable(_))));
        assert!(matches!(compare_versions("0.9.0", "<html>"), Err(UpdateCheckError::Unreadable(_))));
    }
}
